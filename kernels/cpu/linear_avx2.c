// linear_avx2.c - the loops of the matrix product for AVX2; see linear.h.

#include <immintrin.h>

#include "kernels/cpu/linear.h"

#define LIN_SUFFIX avx2
#define PAIRS 0
#define LANES 8
typedef __m256 vec;
#define vec_load(p) _mm256_loadu_ps(p)
#define vec_store(p, v) _mm256_storeu_ps(p, v)
#define vec_set1(s) _mm256_set1_ps(s)
#define vec_add(a, b) _mm256_add_ps(a, b)
#define vec_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vec_max(a, b) _mm256_max_ps(a, b)
#define lane_mask(count) _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define vec_load_part(p, count) _mm256_maskload_ps(p, lane_mask(count))
#define vec_store_part(p, v, count) _mm256_maskstore_ps(p, lane_mask(count), v)

// 12 sums, 3 vectors of weights and one value of x in 16 registers. 4 x 24 instead of 6 x 16: fewer loads per product. A panel of
// 24 columns, 18 KB with k = 192, stays in a first-level cache of 32 KB during all rows; a panel of 48 would not.
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

#include "kernels/cpu/linear_body.h"

/* ---- packing --------------------------------------------------------------------------------------------------------------- */

// 8 rows of w [.., k] from column t on become 8 rows of the panel.
static inline void transpose_8x8(float *to, size_t width, const float *w, size_t k)
{
    vec a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = vec_load(w + (size_t)i * k);
    for (int i = 0; i < 8; i += 2) { // pairs of rows
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { // fours
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xEE);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        vec_store(to + (size_t)i * width, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        vec_store(to + (size_t)(i + 4) * width, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

void lin_pack_rows_avx2(float *to, const float *w, int rows, int k, int width)
{
    const int whole = k / 8 * 8;
    int c = 0;
    for (; c + 8 <= rows; c += 8)
        for (int t = 0; t < whole; t += 8)
            transpose_8x8(to + (size_t)t * (size_t)width + c, (size_t)width, w + (size_t)c * (size_t)k + t, (size_t)k);
    for (int t = 0; t < k; t++) // what is left
        for (int i = t < whole ? c : 0; i < rows; i++)
            to[(size_t)t * (size_t)width + (size_t)i] = w[(size_t)i * (size_t)k + (size_t)t];
}
