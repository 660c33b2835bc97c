// linear_avx512bf16.c - the loops of the bf16 matrix product for AVX512-BF16; see linear_bf16.h.

#include <immintrin.h>

#include "kernels/cpu/linear_bf16.h"

// A vector of sums, or of pairs of bf16 stored as floats: only the dot product and the last addition interpret the values; all
// other instructions just move them.
#define LIN_SUFFIX avx512bf16
#define LIN_FORWARD_ONLY
#define LANES 16
typedef __m512 vec;
#define vec_load(p) _mm512_loadu_ps(p)
#define vec_store(p, v) _mm512_storeu_ps(p, v)
#define vec_set1(s) _mm512_set1_ps(s)
#define vec_add(a, b) _mm512_add_ps(a, b)
#define vec_fma(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define vec_max(a, b) _mm512_max_ps(a, b)
#define vec_load_part(p, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), p)
#define vec_store_part(p, v, count) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (count)) - 1), v)

// As with AVX-512: 24 sums, 3 vectors of weights and one pair of x in 32 registers.
#define MAIN_ROWS 8
#define VECS_AT_ONCE {0, 3, 3, 3, 3, 3, 3, 3, 3}
#define PANELS_AT_ONCE {0, 4, 4, 2, 2, 1, 1, 1}
#define ROWS_OF(F, V) F(1, 1, V) F(2, 1, V) F(3, 1, V) F(4, 1, V) F(5, 1, V) F(6, 1, V) F(7, 1, V) F(8, 1, V)
#define BLOCKS(F) ROWS_OF(F, 1) ROWS_OF(F, 2) ROWS_OF(F, 3) F(1, 2, 3) F(1, 4, 3) F(2, 2, 3) F(2, 4, 3) F(3, 2, 3) F(4, 2, 3)

#define PANEL LIN_PANEL
#include "kernels/cpu/linear_body.h"

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
