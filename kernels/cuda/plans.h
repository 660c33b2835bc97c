/*
 * plans.h - matrix products through cublasLt: the description of a product, and the algorithms found for it.
 *
 * Internal to linear.cu, which explains how the two products map to cublasLt. A plan is made once per class of shapes and kept by
 * the exec. Making one while a graph is recorded works only if cublasLt allows it (with some versions it does not, and the graph
 * then contains a slow plain product): run the operations once before recording them.
 * LINNET_CUDA_SLICE_ROWS=N sets lin_cuda_slice_rows, for measurements.
 * LINNET_CUDA_TUNE=1 times the candidates and uses the fastest instead of the first; the choice may then differ between runs.
 */
#ifndef LIN_KERNELS_CUDA_PLANS_H
#define LIN_KERNELS_CUDA_PLANS_H

#include "kernels/cuda/cuda.h"

typedef struct lin_cuda_product {
    int forward; /* d [rows, n] = act(b [rows, k] aᵀ + bias), a [n, k]; else d [n, k] += bᵀ a with a [rows, k], b [rows, n] */
    int narrow;  /* a and b are bf16, their rows padded to a multiple of 8 elements */
    int narrow_d; /* d too (forward, n a multiple of 8, no bias, no activation) */
    int rows, n, k;
    lin_activation act;
    int slices; /* 0: none. Else (not forward) a product for each slice of `rows` rows, all after each other in a and b, and
                   d [slices, n, k] = bᵀ a of each; n and k are multiples of 4, if narrow of 8 */
} lin_cuda_product;

/* 1 if it was done, or failed with an error recorded in exec; 0 if cublasLt does not support the product.
 * bias [n] may be NULL. */
int lin_cuda_multiply(lin_exec *exec, const lin_cuda_product *product, void *d, const void *a, const void *b, const float *bias);

/* The fewest rows of a slice in the gradients of weights (linear.cu); 0: no slices, only those that cublasLt makes. */
int lin_cuda_slice_rows(const lin_exec *exec);

/* Padded number of columns of a bf16 matrix of k columns. */
static inline int lin_cuda_padded(int k) { return (k + 7) / 8 * 8; }

#endif
