/*
 * plans.h - matrix products through cublasLt: what it is asked for, and the algorithms that were found for it.
 *
 * Internal to linear.cu, which says how the two products look to cublasLt. A plan is made once per class of shapes and kept by the
 * exec. Making one while a graph is recorded works where cublasLt allows it (some versions do not, and then the graph holds a slow
 * product of our own): run the operations once before recording them.
 * LINNET_CUDA_TUNE=1 times the candidates and takes the fastest instead of the first, no longer the same in every run.
 */
#ifndef LIN_KERNELS_CUDA_PLANS_H
#define LIN_KERNELS_CUDA_PLANS_H

#include "kernels/cuda/cuda.h"

typedef struct lin_cuda_product {
    int forward; /* d [rows, n] = act(b [rows, k] aᵀ + bias), a [n, k]; else d [n, k] += bᵀ a with a [rows, k], b [rows, n] */
    int narrow;  /* a and b are bf16, their rows padded to a multiple of 8 elements */
    int rows, n, k;
    lin_activation act;
} lin_cuda_product;

/* 1 if it was done, or failed with an error noted in exec; 0 if cublasLt does not do such a product. bias [n] may be NULL. */
int lin_cuda_multiply(lin_exec *exec, const lin_cuda_product *product, float *d, const void *a, const void *b, const float *bias);

/* Columns of a bf16 matrix of k. */
static inline int lin_cuda_padded(int k) { return (k + 7) / 8 * 8; }

#endif
