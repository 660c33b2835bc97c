/*
 * linear_avx512.h - vectors and block sizes of the matrix product for AVX-512. Included by linear_avx512.c and
 * linear_avx512bf16.c, which define vec_fma and include linear_body.h.
 */
#include <immintrin.h>

#define LANES 16
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
