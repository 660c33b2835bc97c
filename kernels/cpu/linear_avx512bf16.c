// linear_avx512bf16.c - the loops of the bf16 matrix product for AVX512-BF16; see linear_bf16.h.

#include <string.h>

#include "kernels/cpu/linear_avx512.h"
#include "kernels/cpu/linear_bf16.h"

// A vector of sums, or of pairs of bf16 stored as floats: only the dot product and the last addition interpret the values; all
// other instructions just move them.
#define LIN_SUFFIX avx512bf16
#define PAIRS 1
#define vec_fma(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))

/* ---- operands of the weight gradient: a word is the pair of an element of row 2t and the one below it, in row 2t + 1 ------- */

static inline __m512i place_in_pairs(void) // 0, 16, 1, 17, ...
{
    const __m512i low = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
}

static inline vec paired(__m512i places, vec even, vec odd)
{
    return (vec)_mm512_permutexvar_epi16(places, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

static inline __mmask16 first_lanes(int count)
{
    return (__mmask16)(count >= LANES ? 0xFFFFu : count > 0 ? (1u << count) - 1 : 0u);
}

void lin_bf16_pack_columns_avx512bf16(float *panel, const float *w, int rows, size_t ld, int columns, int width)
{
    const __m512i places = place_in_pairs();
    for (int t = 0; t < rows; t += 2, w += 2 * ld) {
        for (int c = 0; c < width; c += LANES, panel += LANES) {
            const __mmask16 have = first_lanes(columns - c);
            const vec even = _mm512_maskz_loadu_ps(have, w + c);
            const vec odd = _mm512_maskz_loadu_ps(t + 1 < rows ? have : 0, w + ld + c);
            vec_store(panel, paired(places, even, odd));
        }
    }
}

// The first `columns` columns of x as a panel [(rows + 1) / 2, PANEL] of words, the others zero.
static void pack_x(float *packed, const float *x, int rows, size_t ld, int columns)
{
    lin_bf16_pack_columns_avx512bf16(packed, x, rows, ld, columns, PANEL);
}

// Columns of dy as tiles [(rows + 1) / 2, MAIN_ROWS] of words, with zeros for the missing columns of the last one; db, if not
// NULL, += the columns' sums, which are not rounded.
static void pack_dy(float *packed, float *db, const float *dy, int rows, size_t ld, int columns)
{
    const __m512i places = place_in_pairs();
    const size_t stride = (size_t)(rows + 1) / 2 * MAIN_ROWS;
    for (; columns > 0; columns -= LANES, dy += LANES, packed += 2 * stride) {
        const __mmask16 have = first_lanes(columns);
        const float *from = dy;
        float *to = packed;
        vec sum = _mm512_setzero_ps();
        for (int t = 0; t < rows; t += 2, from += 2 * ld, to += MAIN_ROWS) {
            const vec even = _mm512_maskz_loadu_ps(have, from);
            const vec odd = _mm512_maskz_loadu_ps(t + 1 < rows ? have : 0, from + ld);
            const __m512d words = (__m512d)paired(places, even, odd);
            _mm256_storeu_pd((double *)to, _mm512_castpd512_pd256(words));
            if (columns > MAIN_ROWS) _mm256_storeu_pd((double *)(to + stride), _mm512_extractf64x4_pd(words, 1));
            sum = vec_add(vec_add(sum, even), odd);
        }
        if (!db) continue;
        _mm512_mask_storeu_ps(db, have, vec_add(_mm512_maskz_loadu_ps(have, db), sum));
        db += LANES;
    }
}

#include "kernels/cpu/linear_body.h"

/* ---- rounding -------------------------------------------------------------------------------------------------------------- */

void lin_bf16_round_avx512bf16(float *words, const float *x, int rows, int k)
{
    size_t count = (size_t)k;
    if (k % 2 == 0) { // rows without gaps
        count *= (size_t)rows;
        rows = rows > 0;
    }
    for (; rows > 0; rows--) {
        size_t left = count;
        for (; left >= 2 * LANES; left -= 2 * LANES, x += 2 * LANES, words += LANES) {
            vec_store(words, (__m512)_mm512_cvtne2ps_pbh(vec_load(x + LANES), vec_load(x)));
        }
        if (!left) continue;
        const __mmask32 have = (1u << left) - 1;
        const vec low = _mm512_maskz_loadu_ps((__mmask16)have, x);
        const vec high = left > LANES ? vec_load_part(x + LANES, left - LANES) : _mm512_setzero_ps();
        vec_store_part(words, (__m512)_mm512_cvtne2ps_pbh(high, low), (left + 1) / 2);
        x += left;
        words += (left + 1) / 2;
    }
}

/* ---- packing rows of weights ----------------------------------------------------------------------------------------------- */

// Up to 32 floats, the others zero, as 16 words.
static inline vec words_of(const float *x, int count)
{
    const vec low = _mm512_maskz_loadu_ps(first_lanes(count), x),
              high = _mm512_maskz_loadu_ps(first_lanes(count - LANES), x + LANES);
    return (vec)_mm512_cvtne2ps_pbh(high, low);
}

// Transposes 16 vectors: each round rotates the bits of the index (row, lane) by one.
static inline void transpose(vec *t)
{
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(LANES / 2));
    for (int round = 0; round < 4; round++) {
        vec s[LANES];
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            s[2 * i] = _mm512_permutex2var_ps(t[i], low, t[i + LANES / 2]);
            s[2 * i + 1] = _mm512_permutex2var_ps(t[i], high, t[i + LANES / 2]);
        }
        UNROLL
        for (int i = 0; i < LANES; i++) t[i] = s[i];
    }
}

void lin_bf16_pack_rows_avx512bf16(float *panel, const float *w, int rows, int k, int width)
{
    const size_t row = (size_t)k;
    for (int t = 0; t < k; t += 2 * LANES, panel += LANES * (size_t)width) {
        const int words = (k - t + 1) / 2 < LANES ? (k - t + 1) / 2 : LANES;
        for (int c = 0; c < width; c += LANES) {
            vec block[LANES];
            for (int i = 0; i < LANES; i++) {
                block[i] = c + i < rows ? words_of(w + (size_t)(c + i) * row + t, k - t) : _mm512_setzero_ps();
            }
            transpose(block);
            for (int i = 0; i < words; i++) vec_store(panel + (size_t)i * (size_t)width + c, block[i]);
        }
    }
}
