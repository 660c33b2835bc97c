// linear_int8_neondot.c - the eight-bit product for arm64 with the dot product (FEAT_DotProd); see linear_int8.h.

#include <arm_neon.h>

#define LIN_SUFFIX int8_neondot
#define PER_WORD 4
#define SHIFT 128 // its dot product is of signed bytes
#include "kernels/cpu/linear_four.h"

// As in linear_neonbf16.c: all lanes of b times the first word of a, so a may be the register that a float has been loaded to.
#if !defined(__clang__)
static inline vec factor(float s)
{
    vec v;
    __asm__("" : "=w"(v) : "0"(s));
    return v;
}
#define vec_factor factor
#endif

static inline vec vec_fma(vec a, vec b, vec c)
{
    return (vec)vdotq_laneq_s32((int32x4_t)c, (int8x16_t)b, (int8x16_t)a, 0);
}

static inline vec vec_scaled(vec sum, const float *b, size_t b_step, const float *a)
{
    const int32x4_t whole = vmlsq_s32((int32x4_t)sum, (int32x4_t)vec_set1(a[1]), (int32x4_t)vec_load(b + b_step));
    return (vec)vcvtq_f32_s32(whole) * vec_load(b) * vec_set1(a[0]);
}

#include "kernels/cpu/linear_int8_body.h"
