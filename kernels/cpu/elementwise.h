/*
 * elementwise.h - additions, dropout, the backward pass of ReLU, the stacking of frames and sinusoids, once per instruction set.
 * elementwise.c and frames.c have the threads.
 */
#include "base/hash.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"

void LIN_NAME(lin_add_span)(float *y, const float *a, const float *b, size_t count);
void LIN_NAME(lin_add_span)(float *y, const float *a, const float *b, size_t count)
{
    size_t i = 0;
    for (; i + LIN_WIDTH <= count; i += LIN_WIDTH) vstore(y + i, vload(a + i) + vload(b + i));
    int rest = (int)(count - i);
    if (rest) vstore_n(y + i, vload_n(a + i, rest) + vload_n(b + i, rest), rest);
}

void LIN_NAME(lin_relu_backward_span)(float *dx, const float *dy, const float *y, size_t count, float scale);
void LIN_NAME(lin_relu_backward_span)(float *dx, const float *dy, const float *y, size_t count, float scale)
{
    vf zero = {0}, factor = vset(scale);
    size_t i = 0;
    for (; i + LIN_WIDTH <= count; i += LIN_WIDTH) vstore(dx + i, vblend(vgt(vload(y + i), zero), vload(dy + i) * factor, zero));
    int rest = (int)(count - i);
    if (rest) vstore_n(dx + i, vblend(vgt(vload_n(y + i, rest), zero), vload_n(dy + i, rest) * factor, zero), rest);
}

// lin_mix64 in each lane of n vectors. Two at once, step by step: one alone waits for each of its steps.
LIN_INLINE void LIN_NAME(mix64)(const int n, vu64 *z)
{
    for (int i = 0; i < n; i++) z[i] = (z[i] ^ (z[i] >> 30)) * 0xBF58476D1CE4E5B9u;
    for (int i = 0; i < n; i++) z[i] = (z[i] ^ (z[i] >> 27)) * 0x94D049BB133111EBu;
    for (int i = 0; i < n; i++) z[i] ^= z[i] >> 31;
}

// Random bits of n vectors of counters from *state on, which moves on.
LIN_INLINE void LIN_NAME(random_bits)(const int n, vu64 *bits, vu64 *state, vu64 key)
{
    for (int i = 0; i < n; i++, *state += 0x9E3779B97F4A7C15u * (uint64_t)(LIN_WIDTH / 2)) bits[i] = *state;
    LIN_NAME(mix64)(n, bits);
    for (int i = 0; i < n; i++) bits[i] ^= key;
    LIN_NAME(mix64)(n, bits);
}

// Masks of 2 LIN_WIDTH elements from as many 16-bit lanes of random bits: set where the element is kept.
LIN_INLINE void LIN_NAME(keep_masks)(vm *low, vm *high, vu64 bits, uint32_t threshold)
{
#if LIN_WIDTH == 16
    __mmask32 keep = _mm512_cmpge_epu16_mask((__m512i)bits, _mm512_set1_epi16((short)threshold));
    *low = (__mmask16)keep;
    *high = (__mmask16)(keep >> 16);
#elif LIN_WIDTH == 8
    const __m256i lanes = (__m256i)bits, most = _mm256_max_epu16(lanes, _mm256_set1_epi16((short)threshold));
    const __m256i keep = _mm256_cmpeq_epi16(most, lanes);
    *low = (vi)_mm256_cvtepi16_epi32(_mm256_castsi256_si128(keep));
    *high = (vi)_mm256_cvtepi16_epi32(_mm256_extracti128_si256(keep, 1));
#else
    typedef uint16_t half __attribute__((vector_size(2 * LIN_WIDTH)));
    half lanes[2];
    memcpy(lanes, &bits, sizeof bits);
    *low = (vi)(__builtin_convertvector(lanes[0], vi) >= (int32_t)threshold);
    *high = (vi)(__builtin_convertvector(lanes[1], vi) >= (int32_t)threshold);
#endif
}

// y = base + kept r scale; `first`, the index of y[0] in the whole array, is a multiple of 2 LIN_WIDTH.
LIN_INLINE void LIN_NAME(dropout_any)(float *y, const float *base, const float *r, size_t first, size_t count, uint32_t threshold,
                                      float scale, uint64_t key)
{
    enum { STEP = 2 * LIN_WIDTH };
    vu64 state, hash = key - (vu64){0};
    for (int i = 0; i < LIN_WIDTH / 2; i++) state[i] = key + 0x9E3779B97F4A7C15u * (first / 4 + (uint64_t)i + 1);
    vf factor = vset(scale), zero = {0};
    size_t i = 0;
    for (; count - i >= 2 * STEP; i += 2 * STEP) {
        vu64 bits[2];
        vm keep[4];
        LIN_NAME(random_bits)(2, bits, &state, hash);
        LIN_NAME(keep_masks)(&keep[0], &keep[1], bits[0], threshold);
        LIN_NAME(keep_masks)(&keep[2], &keep[3], bits[1], threshold);
        LIN_UNROLL
        for (int k = 0; k < 4; k++) {
            const size_t at = i + (size_t)(k * LIN_WIDTH);
            const vf kept = vblend(keep[k], vload(r + at) * factor, zero);
            vstore(y + at, base ? vload(base + at) + kept : kept);
        }
    }
    for (; i < count; i += STEP) {
        vu64 bits;
        vm low, high;
        LIN_NAME(random_bits)(1, &bits, &state, hash);
        LIN_NAME(keep_masks)(&low, &high, bits, threshold);
        if (count - i >= STEP) {
            vf a = vblend(low, vload(r + i) * factor, zero), b = vblend(high, vload(r + i + LIN_WIDTH) * factor, zero);
            vstore(y + i, base ? vload(base + i) + a : a);
            vstore(y + i + LIN_WIDTH, base ? vload(base + i + LIN_WIDTH) + b : b);
            continue;
        }
        int rest = (int)(count - i), n = rest < LIN_WIDTH ? rest : LIN_WIDTH;
        vf a = vblend(low, vload_n(r + i, n) * factor, zero);
        vstore_n(y + i, base ? vload_n(base + i, n) + a : a, n);
        n = rest - n;
        vf b = vblend(high, vload_n(r + i + LIN_WIDTH, n) * factor, zero);
        vstore_n(y + i + LIN_WIDTH, base ? vload_n(base + i + LIN_WIDTH, n) + b : b, n);
    }
}

void LIN_NAME(lin_dropout_span)(float *y, const float *base, const float *r, size_t first, size_t count, uint32_t threshold,
                                float scale, uint64_t key);
void LIN_NAME(lin_dropout_span)(float *y, const float *base, const float *r, size_t first, size_t count, uint32_t threshold,
                                float scale, uint64_t key)
{
    if (base)
        LIN_NAME(dropout_any)(y, base, r, first, count, threshold, scale, key);
    else
        LIN_NAME(dropout_any)(y, NULL, r, first, count, threshold, scale, key);
}

// One row y [D] = (x - mean) istd.
void LIN_NAME(lin_standardise)(float *y, const float *x, const float *mean, const float *istd, int D);
void LIN_NAME(lin_standardise)(float *y, const float *x, const float *mean, const float *istd, int D)
{
    int d = 0;
    for (; d + LIN_WIDTH <= D; d += LIN_WIDTH) vstore(y + d, (vload(x + d) - vload(mean + d)) * vload(istd + d));
    int rest = D - d;
    if (rest) vstore_n(y + d, (vload_n(x + d, rest) - vload_n(mean + d, rest)) * vload_n(istd + d, rest), rest);
}

/* x [rows, C], columns 2 i .. 2 i + 1 for `pairs` values of i: x += (s, c), with (s, c) rotated by (ws, wc) from row to row. */
void LIN_NAME(lin_sinusoid_rows)(float *x, int rows, int C, int pairs, double *s, double *c, const double *ws, const double *wc);
void LIN_NAME(lin_sinusoid_rows)(float *x, int rows, int C, int pairs, double *s, double *c, const double *ws, const double *wc)
{
    for (int t = 0; t < rows; t++, x += C)
        for (int i = 0; i < pairs; i++) {
            double sine = s[i], cosine = c[i];
            x[2 * i] += (float)sine;
            x[2 * i + 1] += (float)cosine;
            s[i] = sine * wc[i] + cosine * ws[i];
            c[i] = cosine * wc[i] - sine * ws[i];
        }
}
