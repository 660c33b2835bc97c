// linear_avx512bf16.c - the loops of the bf16 matrix product for AVX512-BF16; see linear_bf16.h.

#include "kernels/cpu/linear_avx512.h"
#include "kernels/cpu/linear_bf16.h"

// A vector of sums, or of pairs of bf16 stored as floats: only the dot product and the last addition interpret the values; all
// other instructions just move them.
#define LIN_SUFFIX avx512bf16
#define LIN_FORWARD_ONLY
#define vec_fma(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))

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
