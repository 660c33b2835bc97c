/*
 * ref_int8.h - the product of eight-bit operands as kernels/cpu/linear_int8.h defines it, one element after the other: what every
 * kernel of it must equal to the bit. Floats, because its roundings are part of the definition.
 */
#ifndef LIN_KERNELS_REF_REF_INT8_H
#define LIN_KERNELS_REF_REF_INT8_H

#include "kernels/ops.h"

/* y [rows, n] = act(x [rows, k] wᵀ + bias [n]); bias may be NULL; w [n, k] finite. */
void lin_ref_int8_linear(float *y, const float *x, const float *w, const float *bias, int rows, int n, int k, lin_activation act);

/* The whole numbers q [k] of a row of weights, and their scale. */
float lin_ref_int8_weights(const float *w, int k, int *q);

#endif
