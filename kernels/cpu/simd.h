/*
 * simd.h - vectors of LIN_WIDTH floats for the files that are compiled once per instruction set, and their exponential.
 *
 * Included only with LIN_WIDTH 16 (AVX-512), 8 (AVX2 + FMA) or 4 (portable: GCC vector extensions, so SSE2, NEON with its fused
 * multiply-add, or scalars).
 * Each operation treats every lane the same way, independent of the other lanes. There is no separate scalar code for the end of
 * a row: a shorter last vector is padded with zeros. So the bits of an element depend only on its own inputs.
 *
 *   vf vectors, vi integer vectors, vm masks (a mask register on AVX-512, all-ones lanes elsewhere)
 *   vset vload vload_n vstore vstore_n vfma vmax vmin vsqrt vgt vblend vsum vsum_max vexp
 */
#ifndef LIN_KERNELS_CPU_SIMD_H
#define LIN_KERNELS_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

#if LIN_WIDTH > 4
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef float vf __attribute__((vector_size(4 * LIN_WIDTH)));
typedef int32_t vi __attribute__((vector_size(4 * LIN_WIDTH)));
typedef uint32_t vu __attribute__((vector_size(4 * LIN_WIDTH)));
typedef uint64_t vu64 __attribute__((vector_size(4 * LIN_WIDTH)));

#if LIN_WIDTH == 16
typedef __mmask16 vm;
#else
typedef vi vm;
#endif

// A sanitizer checks every access of the unrolled blocks, which costs minutes of compilation; so do not unroll.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) ||                    \
    __has_feature(undefined_behavior_sanitizer) || __has_feature(coverage_sanitizer)
#define SANITIZED 1
#endif
#endif

// Unrolls the next loop completely, so that an array of vectors indexed by its counter stays in registers.
#if defined(SANITIZED)
#define LIN_UNROLL
#elif defined(__clang__)
#define LIN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LIN_UNROLL _Pragma("GCC unroll 16")
#endif

#define LIN_INLINE static inline __attribute__((always_inline, unused))

#if LIN_WIDTH == 16
LIN_INLINE vf vset(float x) { return (vf)_mm512_set1_ps(x); }
#elif LIN_WIDTH == 8
LIN_INLINE vf vset(float x) { return (vf)_mm256_set1_ps(x); }
#else
LIN_INLINE vf vset(float x) { return (vf){x, x, x, x}; }
#endif
LIN_INLINE vi viset(int32_t x) { return x - (vi){0}; }

LIN_INLINE vf vload(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

LIN_INLINE void vstore(float *p, vf v) { memcpy(p, &v, sizeof v); }

LIN_INLINE vi viload(const int32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

LIN_INLINE void vistore(int32_t *p, vi v) { memcpy(p, &v, sizeof v); }

// A product rounded before anything is added to it, where the compiler would fuse the two.
LIN_INLINE vf vrounded(vf product)
{
#if LIN_WIDTH == 16
    __asm__("" : "+v"(product));
#elif LIN_WIDTH == 8
    __asm__("" : "+x"(product));
#endif
    return product;
}

LIN_INLINE int least(int a, int b) { return a < b ? a : b; }

// Rounds up to a whole number of vectors.
LIN_INLINE int vround(int n) { return (n + LIN_WIDTH - 1) / LIN_WIDTH * LIN_WIDTH; }

#if LIN_WIDTH == 16

// The first n lanes, 0 <= n <= 16; the others are 0.
LIN_INLINE vf vload_n(const float *p, int n) { return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p); }
LIN_INLINE void vstore_n(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v); }
LIN_INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
// vmax(a, b) is b if either is NaN; vmin likewise.
LIN_INLINE vf vmax(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
LIN_INLINE vf vmin(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
LIN_INLINE vf vsqrt(vf a) { return (vf)_mm512_sqrt_ps((__m512)a); }
LIN_INLINE vi vimax(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
LIN_INLINE vi vimin(vi a, vi b) { return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b); }
LIN_INLINE vm vgt(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
LIN_INLINE vm veq(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ); }
// a where the mask is set, else b.
LIN_INLINE vf vblend(vm m, vf a, vf b) { return (vf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
LIN_INLINE vi viblend(vm m, vi a, vi b) { return (vi)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a); }

#else

LIN_INLINE vm vgt(vf a, vf b) { return (vi)(a > b); }
LIN_INLINE vm veq(vf a, vf b) { return (vi)(a == b); }
LIN_INLINE vi viblend(vm m, vi a, vi b) { return (m & a) | (~m & b); }
LIN_INLINE vi vimax(vi a, vi b) { return viblend((vi)(a > b), a, b); }
LIN_INLINE vi vimin(vi a, vi b) { return viblend((vi)(a < b), a, b); }

#if LIN_WIDTH == 8
LIN_INLINE vi vfirst(int n) { return viset(n) > (vi){0, 1, 2, 3, 4, 5, 6, 7}; }
LIN_INLINE vf vload_n(const float *p, int n) { return (vf)_mm256_maskload_ps(p, (__m256i)vfirst(n)); }
LIN_INLINE void vstore_n(float *p, vf v, int n) { _mm256_maskstore_ps(p, (__m256i)vfirst(n), (__m256)v); }
LIN_INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
LIN_INLINE vf vmax(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
LIN_INLINE vf vmin(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
LIN_INLINE vf vsqrt(vf a) { return (vf)_mm256_sqrt_ps((__m256)a); }
LIN_INLINE vf vblend(vm m, vf a, vf b) { return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
#else
LIN_INLINE vf vload_n(const float *p, int n)
{
    vf v = {0};
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

LIN_INLINE void vstore_n(float *p, vf v, int n) { memcpy(p, &v, (size_t)n * sizeof *p); }
#if defined(__aarch64__)
LIN_INLINE vf vfma(vf a, vf b, vf c) { return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#else
LIN_INLINE vf vfma(vf a, vf b, vf c) { return a * b + c; }
#endif
LIN_INLINE vf vblend(vm m, vf a, vf b) { return (vf)viblend(m, (vi)a, (vi)b); }
LIN_INLINE vf vmax(vf a, vf b) { return vblend((vi)(a > b), a, b); }
LIN_INLINE vf vmin(vf a, vf b) { return vblend((vi)(a < b), a, b); }
LIN_INLINE vf vsqrt(vf a)
{
    for (int i = 0; i < LIN_WIDTH; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
#endif

#endif

// Sum of the lanes, always in the same tree order: one half is added to the other.
LIN_INLINE float vsum(vf v)
{
#if LIN_WIDTH == 16
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256((__m512)v), _mm512_extractf32x8_ps((__m512)v, 1));
#elif LIN_WIDTH == 8
    __m256 half = (__m256)v;
#endif
#if LIN_WIDTH > 4
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
#else
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

// Largest lane. NaNs may be ignored.
LIN_INLINE float vsum_max(vf v)
{
    float lanes[LIN_WIDTH], top;
    vstore(lanes, v);
    top = lanes[0];
    for (int i = 1; i < LIN_WIDTH; i++) top = lanes[i] > top ? lanes[i] : top;
    return top;
}

// e^r - 1 = r + r² q(r) for |r| <= ln(2)/2, q the best fit of degree 4: relative error of e^r 3e-9 before rounding.
LIN_INLINE vf vexpm1_reduced(vf r)
{
    vf q = vset(0x1.6a2256p-10f);
    q = vfma(q, r, vset(0x1.123b02p-7f));
    q = vfma(q, r, vset(0x1.5558f8p-5f));
    q = vfma(q, r, vset(0x1.555490p-3f));
    q = vfma(q, r, vset(0x1.fffffcp-2f));
    return vfma(q, r * r, r);
}

LIN_INLINE vf vexp_reduced(vf r) { return vexpm1_reduced(r) + 1.0f; }

// Adding it to x log2(e) rounds to an integer k in the low bits of a float: 1.5 2^23 + k.
#define LIN_ROUNDER 0x1.8p23f
#define LIN_LOG2E 0x1.715476p0f

/* e^x for x <= 88, to about 1 unit in the last place; 0 below -86.6; NaN for NaN. */
LIN_INLINE vf vexp(vf x)
{
    vf shifted = vfma(x, vset(LIN_LOG2E), vset(LIN_ROUNDER)), k = shifted - LIN_ROUNDER;
    // ln 2 in two parts, the first of 10 bits, so that its product with k is exact without a fused multiply-add too.
    vf r = vfma(k, vset(-0x1.63p-1f), x);
    r = vfma(k, vset(0x1.bd0106p-13f), r);
    vf y = (vf)((vu)vexp_reduced(r) + ((vu)shifted << 23));
    return vblend(vgt(vset(-86.6f), x), (vf){0}, y);
}

// The LIN_WIDTH lanes from e of a vector of E floats; 0 past its end.
LIN_INLINE vf vlanes(const float *p, int e, int E) { return E - e >= LIN_WIDTH ? vload(p + e) : vload_n(p + e, E - e); }

// The same, but e may be past the end.
LIN_INLINE vf vpadded(const float *p, int e, int E) { return e < E ? vlanes(p, e, E) : (vf){0}; }

LIN_INLINE void vput_lanes(float *p, vf v, int e, int E)
{
    if (E - e >= LIN_WIDTH) vstore(p + e, v);
    else vstore_n(p + e, v, E - e);
}

// n floats, rounded up to a whole number of vectors, become 0.
LIN_INLINE void vclear(float *p, size_t n)
{
    for (size_t i = 0; i < n; i += LIN_WIDTH) vstore(p + i, (vf){0});
}

#endif
