// linear_int8_avxvnni.c - the eight-bit product for AVX-VNNI; see linear_int8.h.

#include "kernels/cpu/linear_avx2.h"

#define LIN_SUFFIX int8_avxvnni
#define PER_WORD 4
#define SHIFT 0
#define vec_fma(a, b, c) (vec)_mm256_dpbusd_epi32((__m256i)(c), (__m256i)(a), (__m256i)(b))

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    const __m256i zeros = _mm256_mullo_epi32((__m256i)vec_set1(a[1]), (__m256i)vec_load(b + b_step));
    const vec whole = _mm256_cvtepi32_ps(_mm256_sub_epi32((__m256i)sum, zeros));
    return _mm256_mul_ps(_mm256_mul_ps(whole, vec_load(b)), vec_set1(a[0]));
}

#include "kernels/cpu/linear_int8_body.h"
