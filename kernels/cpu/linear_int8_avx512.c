// linear_int8_avx512.c - the eight-bit product for AVX-512 without VNNI, of operands of sixteen bits; see linear_int8.h.

#include "kernels/cpu/linear_avx512.h"

#define LIN_SUFFIX int8_avx512
#define PER_WORD 2
#define SHIFT 0
#define vec_fma(a, b, c) (vec)_mm512_add_epi32((__m512i)(c), _mm512_madd_epi16((__m512i)(a), (__m512i)(b)))

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    (void)b_step;
    return _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps((__m512i)sum), vec_load(b)), vec_set1(a[0]));
}

#include "kernels/cpu/linear_int8_body.h"
