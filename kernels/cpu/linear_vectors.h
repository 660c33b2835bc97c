/*
 * linear_vectors.h - block sizes of the matrix product, for the sources that define vec_fma and include linear_body.h, which
 * describes them.
 */
#ifndef LIN_KERNELS_CPU_LINEAR_VECTORS_H
#define LIN_KERNELS_CPU_LINEAR_VECTORS_H

#include "kernels/cpu/linear.h"
#include "kernels/cpu/simd.h"

// clang turns the zeroing of the sums into a call of memset and then keeps them in memory.
#if defined(__clang__)
#define NO_MEMSET __attribute__((no_builtin("memset")))
#else
#define NO_MEMSET
#endif

#define LANES LIN_WIDTH

#if LIN_WIDTH == 16

// 24 sums, 3 vectors of weights and one value of x (bf16: one pair) in 32 registers.
#define MAIN_ROWS 8
#define VECS_AT_ONCE {0, 3, 3, 3, 3, 3, 3, 3, 3}
#define FEW_AHEAD 0
#define OWN_TILES 0
#define PANELS_AT_ONCE {0, 4, 4, 2, 2, 1, 1, 1}
#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V) F(5, 1, V) F(6, 1, V) F(7, 1, V) F(8, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) F(1, 2, 3) F(1, 4, 3) F(2, 2, 3) F(2, 4, 3) F(3, 2, 3) F(4, 2, 3)
#define PANEL LIN_PANEL

#elif LIN_WIDTH == 8

// 12 sums, 3 vectors of weights and one value of x (eight-bit: one word) in 16 registers. 4 x 24 instead of 6 x 16: fewer loads
// per product. A panel of 24 columns, 18 KB with k = 192, stays in a first-level cache of 32 KB during all rows; a panel of 48
// would not.
#define PANEL LIN_PANEL_AVX2
#define MAIN_ROWS 4
#define VECS_AT_ONCE {0, 3, 3, 3, 3}
// 4 KB ahead: a live chunk of a few rows reads its weights from the third-level cache or memory. This reaches into the next
// panel, and the next matrix. A single row gains nothing.
#define FEW_AHEAD 1024
#define OWN_TILES 1
#define PANELS_AT_ONCE {0, 4, 2, 1}
#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) F(1, 2, 3) F(1, 4, 3) F(2, 2, 3)

#else

#if defined(__aarch64__)
// 24 sums in 32 registers. gcc would load all factors of a step first, for which there are not enough.
#if !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define MAIN_ROWS 8
#define VECS_AT_ONCE {0, 6, 6, 4, 4, 3, 3, 3, 3}
#define PANELS_AT_ONCE {0, 1, 1, 1, 1, 1, 1, 1}
#define MORE_ROWS_OF(F, V) F(5, 1, V) F(6, 1, V) F(7, 1, V) F(8, 1, V)
#define MORE_BLOCKS(F) MORE_ROWS_OF(F, 1) MORE_ROWS_OF(F, 2) MORE_ROWS_OF(F, 3) F(3, 1, 4) F(4, 1, 4)
#else
// 8 sums in 16 registers, one of which holds the product
#define MAIN_ROWS 4
#define VECS_AT_ONCE {0, 6, 4, 2, 2}
#define PANELS_AT_ONCE {0, 1, 1, 1}
#define MORE_BLOCKS(F)
#endif

#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V)
#define WIDE_OF(F, V) F(1, 1, V) F(2, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) WIDE_OF(F, 4) WIDE_OF(F, 5) WIDE_OF(F, 6) MORE_BLOCKS(F)

#define OWN_TILES 0
#define PANEL LIN_PANEL
#define FEW_AHEAD 0

#if defined(__aarch64__) && !defined(__clang__)
// For instructions that multiply all lanes by the first of a: a may be the register that a float has been loaded to.
LIN_INLINE vf vec_first(float s)
{
    vf v;
    __asm__("" : "=w"(v) : "0"(s));
    return v;
}
#else
#define vec_first vset
#endif

#endif

#endif
