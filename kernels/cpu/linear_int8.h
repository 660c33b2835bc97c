/*
 * linear_int8.h - the matrix product of eight-bit operands, with sums of 32 bits: the same bits on every processor.
 *
 * Weights: each output channel has whole numbers q in -127..127 and a scale (base/number.h). Activations: each row of x has its
 * own grid of 255 steps, made when it is multiplied, which covers its range and 0 (as ONNX's DynamicQuantizeLinear):
 *
 *   lo = min(0, min x)   hi = max(0, max x)   step = (hi - lo) / 255   inverse = 255 / (hi - lo)
 *   zero = -round(lo * inverse)   u = min(255, round(x * inverse) + zero)
 *
 * hi - lo and both quotients are computed in double, then rounded to float; round: to nearest, ties to even. The range need not
 * be symmetric: rows behind a ReLU use all 256 values. Then, in this order, each operation of floats rounded on its own:
 *
 *   y = max(floor, ((float)(sum over k of q (u - zero)) * scale) * step + bias)
 *
 * The sum is exact for any order, up to k = 65,536, so all instruction sets, numbers of rows and threads agree to the bit. A row
 * whose range is below 2^-100 counts as 0; one that holds a NaN or an infinity gives NaN in all of its outputs.
 *
 * Layout. A 32-bit word, stored in place of a float, holds four elements of eight bits, or two of sixteen where the instruction
 * set has no product of unsigned and signed bytes that cannot overflow. AVX2's vpmaddubsw adds two products in 16 bits, which
 * 255 * 127 * 2 exceeds; 7 bits for x would avoid that and lose accuracy everywhere, and moving the signs of x to the weights
 * needs as many instructions as vpmaddwd on operands of sixteen bits. Rows of x have TAIL words behind them, step and zero, and
 * panels of weights TAIL rows, the scales and the sums of q: for linear_body.h both have k = words + TAIL floats. With four in a
 * word u is multiplied, and zero times the sum of q is subtracted at the end; with two in a word u - zero.
 *
 * Internal to kernels/cpu/ and its tests.
 */
#ifndef LIN_KERNELS_CPU_LINEAR_INT8_H
#define LIN_KERNELS_CPU_LINEAR_INT8_H

#include "kernels/cpu/linear.h"

#define LIN_INT8_TAIL 2 /* the preprocessor reads it */
enum { LIN_INT8_COLUMNS = 65536 };

typedef struct lin_int8_kernel {
    const char *name;
    lin_isa level; /* the instruction set of LINNET_ISA from which on it is used */
    int per_word;  /* elements in a word: 4 or 2 */
    int panel;     /* columns of a whole panel */
    /* words [rows, k / per_word rounded up + TAIL] = x [rows, k] on their grids. */
    lin_row_rounding *round;
    lin_row_product *product; /* over words; k includes the tail */
} lin_int8_kernel;

/* The kernels that this processor has at the level in use, best first; NULL from the end on. The last one is always there. */
const lin_int8_kernel *lin_int8_kernel_at(int i);

/* For tests: the kernel to use instead of the best one, or NULL for that. Weights must be packed again. */
void lin_int8_force(const lin_int8_kernel *kernel);

static inline int lin_int8_depth(const lin_int8_kernel *kernel, int k)
{
    return (k + kernel->per_word - 1) / kernel->per_word + LIN_INT8_TAIL;
}

#define LIN_INT8_DECLARE(suffix)                                                                                                 \
    lin_row_rounding lin_int8_round_##suffix;                                                                                    \
    lin_row_product lin_int8_rows_##suffix
LIN_INT8_DECLARE(portable);
#if defined(__x86_64__)
LIN_INT8_DECLARE(avx2);
LIN_INT8_DECLARE(avxvnni);
LIN_INT8_DECLARE(avx512);
LIN_INT8_DECLARE(avx512vnni);
#elif defined(__aarch64__)
LIN_INT8_DECLARE(neondot);
LIN_INT8_DECLARE(neoni8mm); /* its round is neondot's */
#endif

#endif
