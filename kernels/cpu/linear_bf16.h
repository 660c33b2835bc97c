/*
 * linear_bf16.h - the matrix product of operands rounded to bf16, sums in fp32, for CPUs with AVX512-BF16 or arm64's BFDOT.
 *
 * Both operands are pairs: a 32-bit word holds elements 2t (low half) and 2t+1 of a row; with an odd k the missing one is 0. A
 * word is stored in place of a float, so packed weights have the layout of linear.h with (k+1)/2 words in place of k floats, and
 * linear_body.h computes with them: its multiply-add is vdpbf16ps or bfdot, which adds both products of a pair to an fp32 sum.
 * Rounding is to nearest even; values that are subnormal in bf16 count as 0 in products.
 *
 * Internal to kernels/cpu/. x86-64 and arm64 only.
 */
#ifndef LIN_KERNELS_CPU_LINEAR_BF16_H
#define LIN_KERNELS_CPU_LINEAR_BF16_H

#include "kernels/cpu/linear.h"

#if defined(__aarch64__)
#define LIN_BF16(function) function##_neonbf16
#else
#define LIN_BF16(function) function##_avx512bf16
#endif

/* Words of a row of k elements. */
static inline int lin_bf16_words(int k) { return k / 2 + k % 2; }

/* words [rows, lin_bf16_words(k)] = x [rows, k], rounded. */
void LIN_BF16(lin_bf16_round)(float *words, const float *x, int rows, int k);

/* A panel [lin_bf16_words(k), width] of packed weights: a column of it is the words of one of the `rows` rows of w [rows, k]. */
void LIN_BF16(lin_bf16_pack_rows)(float *panel, const float *w, int rows, int k, int width);

/* A panel [lin_bf16_words(rows), width] whose words are the pairs of rows 2t and 2t+1 of w, in its first `columns` columns; rows
 * of w are ld floats apart. In both panels the other words are 0; width is 16, 32 or 48. */
void LIN_BF16(lin_bf16_pack_columns)(float *panel, const float *w, int rows, size_t ld, int columns, int width);

/* y [rows, n] = act(x wᵀ + bias) on the calling thread; x [rows, words] and the packed weights as above;
 * expected as in linear.h. */
void LIN_BF16(lin_linear_rows)(float *y, const float *x, const float *packed, const float *bias, int rows, int n, int words,
                               lin_activation act, lin_expected *expected);

/* As lin_linear_tile of linear.h: adds dyᵀ x, both rounded, to dw. Pairs are of rows 2t and 2t+1; db sums dy as it is. */
void LIN_BF16(lin_linear_tile)(float *dw, float *db, const float *dy, const float *x, int rows, lin_tile tile, float *scratch);

#endif
