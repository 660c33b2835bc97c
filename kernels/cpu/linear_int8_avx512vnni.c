// linear_int8_avx512vnni.c - the eight-bit product for AVX512-VNNI; see linear_int8.h.

#include "kernels/cpu/linear_avx512.h"

#define LIN_SUFFIX int8_avx512vnni
#define PER_WORD 4
#define SHIFT 0
#define vec_fma(a, b, c) (vec)_mm512_dpbusd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b))

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    const __m512i zeros = _mm512_mullo_epi32((__m512i)vec_set1(a[1]), (__m512i)vec_load(b + b_step));
    const vec whole = _mm512_cvtepi32_ps(_mm512_sub_epi32((__m512i)sum, zeros));
    return _mm512_mul_ps(_mm512_mul_ps(whole, vec_load(b)), vec_set1(a[0]));
}

#include "kernels/cpu/linear_int8_body.h"
