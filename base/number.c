// number.c - half precision over arrays, and weights of eight bits; see number.h.

#include "base/number.h"

#include <float.h>
#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- half precision -------------------------------------------------------------------------------------------------------- */

// With the processor's own conversion, which is exact too: a model's weights are widened each time that it is loaded.
#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static size_t widen_eights(const unsigned char *from, size_t count, float *to)
{
    size_t i = 0;
    if (!__builtin_cpu_supports("avx2")) return 0; // all of these have f16c, which clang 14 cannot ask for
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 2 * i))));
    return i;
}
#elif defined(__aarch64__)
static size_t widen_eights(const unsigned char *from, size_t count, float *to)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(from + 2 * i));
        vst1q_f32(to + i, vcvt_f32_f16(vget_low_f16(halves)));
        vst1q_f32(to + i + 4, vcvt_high_f32_f16(halves));
    }
    return i;
}
#else
static size_t widen_eights(const unsigned char *from, size_t count, float *to)
{
    (void)from, (void)count, (void)to;
    return 0;
}
#endif

void lin_half_widen(const void *from, size_t count, float *to)
{
    const unsigned char *bytes = from;
    for (size_t i = widen_eights(bytes, count, to); i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = lin_half_to_float(half);
    }
}

void lin_half_narrow(const float *from, size_t count, void *to)
{
    unsigned char *bytes = to;
    for (size_t i = 0; i < count; i++) {
        const uint16_t half = lin_float_to_half(from[i]);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

static int is_not_finite(const unsigned char *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return (half & 0x7C00) == 0x7C00;
}

size_t lin_half_find_not_finite(const void *from, size_t count)
{
    const unsigned char *bytes = from;
    const size_t step = 1024; // most blocks have none: tested as a whole, vectorised
    size_t i = 0;
    for (int bad = 0; i < count && !bad; i += bad ? 0 : step) {
        const size_t n = count - i < step ? count - i : step;
        for (size_t j = 0; j < n; j++) bad |= is_not_finite(bytes + 2 * (i + j));
    }
    while (i < count && !is_not_finite(bytes + 2 * i)) i++;
    return i < count ? i : count;
}

/* ---- eight bits ------------------------------------------------------------------------------------------------------------ */

enum { MOST = 127, LOW_BITS = 0x7F }; // LOW_BITS: of a float's 24 bits of mantissa those that a scale does not use

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float lin_int8_narrow(const float *w, size_t count, signed char *q)
{
    uint32_t most = 0; // magnitudes are in the order of their bits, and a NaN is the largest
    for (size_t i = 0; i < count; i++) {
        const uint32_t magnitude = bits_of(w[i]) & 0x7FFFFFFFu;
        most = magnitude > most ? magnitude : most;
    }
    memset(q, 0, count);
    if (most >= bits_of(0x1p127F)) return NAN;
    float largest, scale;
    memcpy(&largest, &most, sizeof largest);
    scale = (float)((double)largest / MOST);
    const uint32_t up = (bits_of(scale) + LOW_BITS) & ~(uint32_t)LOW_BITS;
    memcpy(&scale, &up, sizeof scale);
    if (scale < FLT_MIN) return 0;
    for (size_t i = 0; i < count; i++) {
        const float sum = w[i] / scale + 0x1.8p23F; // rounds to nearest even: the low bits of the sum are the whole number
        q[i] = (signed char)(int32_t)(bits_of(sum) - bits_of(0x1.8p23F));
    }
    return scale;
}

void lin_int8_widen(const signed char *q, size_t count, float scale, float *w)
{
    for (size_t i = 0; i < count; i++) w[i] = (float)q[i] * scale;
}

const char *lin_int8_check(const signed char *q, size_t count, float scale)
{
    int lowest = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        lowest = q[i] < lowest ? q[i] : lowest;
        highest = q[i] > highest ? q[i] : highest;
    }
    if (!isfinite(scale) || scale < 0) return "has a scale that is negative or not finite";
    if (scale == 0) return lowest || highest ? "has weights other than 0, and the scale 0" : NULL;
    if (scale < FLT_MIN || scale >= 0x1p121F) return "has a scale out of range";
    if (bits_of(scale) & LOW_BITS) return "has a scale of more than 17 bits of mantissa";
    if (lowest < -MOST) return "holds -128; the lowest is -127";
    if (lowest > -MOST && highest < MOST) return "has no weight of the magnitude 127";
    return NULL;
}
