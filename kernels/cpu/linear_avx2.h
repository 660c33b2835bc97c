/*
 * linear_avx2.h - vectors and block sizes of the matrix product for AVX2. Included by linear_avx2.c and the files of eight-bit
 * products for AVX2 (linear_int8.h), which define vec_fma and include linear_body.h.
 */
#include <immintrin.h>

#define LANES 8
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
