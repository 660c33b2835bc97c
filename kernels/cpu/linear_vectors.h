/*
 * linear_vectors.h - vectors of LIN_WIDTH floats and block sizes of the matrix product, for the sources that define vec_fma and
 * include linear_body.h, which describes them.
 */
#ifndef LIN_KERNELS_CPU_LINEAR_VECTORS_H
#define LIN_KERNELS_CPU_LINEAR_VECTORS_H

#include <string.h>
#if LIN_WIDTH > 4
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/cpu/linear.h"

// A sanitizer checks every access of the unrolled blocks, which costs minutes of compilation; so do not unroll.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) ||                    \
    __has_feature(undefined_behavior_sanitizer) || __has_feature(coverage_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(SANITIZED)
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
// clang turns the zeroing of the sums into a call of memset and then keeps them in memory.
#if defined(__clang__)
#define NO_MEMSET __attribute__((no_builtin("memset")))
#else
#define NO_MEMSET
#endif
#define INLINE static inline __attribute__((always_inline))

#define LANES LIN_WIDTH

#if LIN_WIDTH == 16

typedef __m512 vec;
#define vec_load(p) _mm512_loadu_ps(p)
#define vec_store(p, v) _mm512_storeu_ps(p, v)
#define vec_set1(s) _mm512_set1_ps(s)
#define vec_add(a, b) _mm512_add_ps(a, b)
#define vec_max(a, b) _mm512_max_ps(a, b)
#define vec_load_part(p, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), p)
#define vec_store_part(p, v, count) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (count)) - 1), v)

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

typedef __m256 vec;
#define vec_load(p) _mm256_loadu_ps(p)
#define vec_store(p, v) _mm256_storeu_ps(p, v)
#define vec_set1(s) _mm256_set1_ps(s)
#define vec_add(a, b) _mm256_add_ps(a, b)
#define vec_max(a, b) _mm256_max_ps(a, b)
#define lane_mask(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define vec_load_part(p, count) _mm256_maskload_ps(p, lane_mask(count))
#define vec_store_part(p, v, count) _mm256_maskstore_ps(p, lane_mask(count), v)

// 12 sums, 3 vectors of weights and one value of x (eight-bit: one word) in 16 registers. 4 x 24 instead of 6 x 16: fewer loads
// per product. A panel of 24 columns, 18 KB with k = 192, stays in a first-level cache of 32 KB during all rows; a panel of 48
// would not.
#define PANEL LIN_PANEL_AVX2
#define MAIN_ROWS 4
#define VECS_AT_ONCE {0, 3, 3, 3, 3}
// 4 KB ahead: a live chunk of a few rows reads its weights from the third-level cache or memory. Reaches into the next panel, and
// the next matrix. One row gains nothing.
#define FEW_AHEAD 1024
#define OWN_TILES 1
#define PANELS_AT_ONCE {0, 4, 2, 1}
#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) F(1, 2, 3) F(1, 4, 3) F(2, 2, 3)

#else

typedef float vec __attribute__((vector_size(16)));
typedef int vec_mask __attribute__((vector_size(16)));

static inline vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vec_store(float *p, vec v) { memcpy(p, &v, sizeof v); }

static inline vec vec_load_part(const float *p, int count)
{
    vec v = {0};
    memcpy(&v, p, (size_t)count * sizeof *p);
    return v;
}

static inline void vec_store_part(float *p, vec v, int count) { memcpy(p, &v, (size_t)count * sizeof *p); }

static inline vec vec_set1(float s) { return (vec){s, s, s, s}; }

static inline vec vec_add(vec a, vec b) { return a + b; }

static inline vec vec_max(vec a, vec b)
{
    vec_mask a_wins = a > b;
    return (vec)(((vec_mask)a & a_wins) | ((vec_mask)b & ~a_wins));
}

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
static inline __attribute__((unused)) vec vec_first(float s)
{
    vec v;
    __asm__("" : "=w"(v) : "0"(s));
    return v;
}
#else
#define vec_first vec_set1
#endif

#endif

#endif
