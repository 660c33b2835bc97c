// linear_avx2.c - the loops of the matrix product for AVX2; see linear.h.

#include "kernels/cpu/linear_avx2.h"

#define LIN_SUFFIX avx2
#define PAIRS 0
#define vec_fma(a, b, c) _mm256_fmadd_ps(a, b, c)

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
