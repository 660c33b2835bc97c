// linear_int8_portable.c - the eight-bit product for any machine, of operands of sixteen bits; see linear_int8.h.

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LIN_SUFFIX int8_portable
#define PER_WORD 2
#define SHIFT 0
#include "kernels/cpu/linear_four.h"

static inline vec vec_fma(vec a, vec b, vec c)
{
#if defined(__SSE2__)
    return (vec)_mm_add_epi32((__m128i)c, _mm_madd_epi16((__m128i)a, (__m128i)b));
#elif defined(__wasm_simd128__)
    return (vec)wasm_i32x4_add((v128_t)c, wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b));
#elif defined(__aarch64__)
    const int16x8_t p = (int16x8_t)a, q = (int16x8_t)b;
    const int32x4_t low = vmull_s16(vget_low_s16(p), vget_low_s16(q)), high = vmull_high_s16(p, q);
    return (vec)vaddq_s32((int32x4_t)c, vpaddq_s32(low, high));
#else
    typedef unsigned bits __attribute__((vector_size(16)));
    const vec_mask low = (vec_mask)((bits)a << 16) >> 16, other = (vec_mask)((bits)b << 16) >> 16;
    return (vec)((vec_mask)c + low * other + ((vec_mask)a >> 16) * ((vec_mask)b >> 16));
#endif
}

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    (void)b_step;
    return __builtin_convertvector((vec_mask)sum, vec) * vec_load(b) * vec_set1(a[0]);
}

#include "kernels/cpu/linear_int8_body.h"
