// linear_int8_avx2.c - the eight-bit product for AVX2, of operands of sixteen bits; see linear_int8.h.

#include "kernels/cpu/linear_avx2.h"

#define LIN_SUFFIX int8_avx2
#define PER_WORD 2
#define SHIFT 0
#define vec_fma(a, b, c) (vec)_mm256_add_epi32((__m256i)(c), _mm256_madd_epi16((__m256i)(a), (__m256i)(b)))

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    (void)b_step;
    return _mm256_mul_ps(_mm256_mul_ps(_mm256_cvtepi32_ps((__m256i)sum), vec_load(b)), vec_set1(a[0]));
}

#include "kernels/cpu/linear_int8_body.h"
