// half.c - half precision over arrays; see half.h.

#include "base/half.h"

// With the processor's own conversion, which is exact too: a model's weights are widened each time that it is loaded.
#if defined(__x86_64__)
#include <immintrin.h>
__attribute__((target("avx,f16c"))) static size_t widen_eights(const unsigned char *from, size_t count, float *to)
{
    size_t i = 0;
    if (!__builtin_cpu_supports("avx2")) return 0; // those have f16c, whose name clang 14 does not know
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 2 * i))));
    return i;
}
#elif defined(__aarch64__)
#include <arm_neon.h>
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
    const size_t step = 1024; // none in most blocks: looked at together, as vectors
    size_t i = 0;
    for (int bad = 0; i < count && !bad; i += bad ? 0 : step) {
        const size_t n = count - i < step ? count - i : step;
        for (size_t j = 0; j < n; j++) bad |= is_not_finite(bytes + 2 * (i + j));
    }
    while (i < count && !is_not_finite(bytes + 2 * i)) i++;
    return i < count ? i : count;
}
