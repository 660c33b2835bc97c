// elementwise.c - operations that treat every element alike: additions, dropout, the backward pass of ReLU; spans of elements,
// divided among the threads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_add_span, (float *y, const float *a, const float *b, size_t count));
LIN_DISPATCH_DECLARE(void, lin_relu_backward_span, (float *dx, const float *dy, const float *y, size_t count, float scale));
LIN_DISPATCH_DECLARE(void, lin_dropout_span, (float *y, const float *base, const float *r, size_t first, size_t count,
                                              uint32_t threshold, float scale, uint64_t key));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

void LIN_NAME(lin_add_span)(float *y, const float *a, const float *b, size_t count)
{
    size_t i = 0;
    for (; i + LIN_WIDTH <= count; i += LIN_WIDTH) vstore(y + i, vload(a + i) + vload(b + i));
    int rest = (int)(count - i);
    if (rest) vstore_n(y + i, vload_n(a + i, rest) + vload_n(b + i, rest), rest);
}

void LIN_NAME(lin_relu_backward_span)(float *dx, const float *dy, const float *y, size_t count, float scale)
{
    vf zero = {0}, factor = vset(scale);
    size_t i = 0;
    for (; i + LIN_WIDTH <= count; i += LIN_WIDTH) vstore(dx + i, vblend(vgt(vload(y + i), zero), vload(dy + i) * factor, zero));
    int rest = (int)(count - i);
    if (rest) vstore_n(dx + i, vblend(vgt(vload_n(y + i, rest), zero), vload_n(dy + i, rest) * factor, zero), rest);
}

// lin_mix64 in each lane of n vectors, interleaved: with one vector alone, each step would wait for the one before.
LIN_INLINE void mix64(const int n, vu64 *z)
{
    for (int i = 0; i < n; i++) z[i] = (z[i] ^ (z[i] >> 30)) * 0xBF58476D1CE4E5B9u;
    for (int i = 0; i < n; i++) z[i] = (z[i] ^ (z[i] >> 27)) * 0x94D049BB133111EBu;
    for (int i = 0; i < n; i++) z[i] ^= z[i] >> 31;
}

// Random bits of n vectors of counters from *state on, which advances.
LIN_INLINE void random_bits(const int n, vu64 *bits, vu64 *state, vu64 key)
{
    for (int i = 0; i < n; i++, *state += 0x9E3779B97F4A7C15u * (uint64_t)(LIN_WIDTH / 2)) bits[i] = *state;
    mix64(n, bits);
    for (int i = 0; i < n; i++) bits[i] ^= key;
    mix64(n, bits);
}

// Masks of 2 LIN_WIDTH elements from as many 16-bit lanes of random bits: set where the element is kept.
LIN_INLINE void keep_masks(vm *low, vm *high, vu64 bits, uint32_t threshold)
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
LIN_INLINE void dropout_any(float *y, const float *base, const float *r, size_t first, size_t count, uint32_t threshold,
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
        random_bits(2, bits, &state, hash);
        keep_masks(&keep[0], &keep[1], bits[0], threshold);
        keep_masks(&keep[2], &keep[3], bits[1], threshold);
        LIN_UNROLL
        for (int k = 0; k < 4; k++) {
            const size_t at = i + (size_t)(k * LIN_WIDTH);
            const vf kept = vblend(keep[k], vload(r + at) * factor, zero);
            vstore(y + at, base ? vload(base + at) + kept : kept);
        }
    }
    for (; i < count; i += STEP) {
        vu64 bits;
        vm keep[2];
        random_bits(1, &bits, &state, hash);
        keep_masks(&keep[0], &keep[1], bits, threshold);
        const int left = count - i < STEP ? (int)(count - i) : STEP;
        for (int e = 0; e < left; e += LIN_WIDTH) {
            const vf kept = vblend(keep[e / LIN_WIDTH], vlanes(r + i, e, left) * factor, zero);
            vput_lanes(y + i, base ? vlanes(base + i, e, left) + kept : kept, e, left);
        }
    }
}

void LIN_NAME(lin_dropout_span)(float *y, const float *base, const float *r, size_t first, size_t count, uint32_t threshold,
                                float scale, uint64_t key)
{
    if (base)
        dropout_any(y, base, r, first, count, threshold, scale, key);
    else
        dropout_any(y, NULL, r, first, count, threshold, scale, key);
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { SPAN = 32768 }; // elements of one work item: 128 KiB, a multiple of every vector

typedef struct span_job {
    float *y;
    const float *a, *b;
    size_t count;
    float scale;
    lin_cpu_mask mask;
} span_job;

static void run_spans(lin_exec *exec, lin_pool_work work, span_job *job)
{
    // Work items are counted in int: 2^31 spans of 32768 elements exceed any memory.
    lin_pool_run(job->count < LIN_SMALL ? NULL : exec->pool, (int)((job->count + SPAN - 1) / SPAN), work, job);
}

static size_t span_of(const span_job *job, int piece, size_t *count)
{
    size_t first = (size_t)piece * SPAN;
    *count = job->count - first < SPAN ? job->count - first : SPAN;
    return first;
}

static void relu_piece(void *context, int piece, int thread)
{
    const span_job *job = context;
    size_t count, at = span_of(job, piece, &count);
    (void)thread;
    LIN_DISPATCH(lin_relu_backward_span)(job->y + at, job->a + at, job->b + at, count, job->scale);
}

void lin_cpu_relu_backward(lin_exec *exec, float *dx, const float *dy, const float *y, size_t count, double scale)
{
    span_job job = {.y = dx, .a = dy, .b = y, .count = count, .scale = (float)scale};
    run_spans(exec, relu_piece, &job);
}

lin_cpu_mask lin_cpu_mask_of(const lin_dropout *dropout)
{
    if (!dropout || !(dropout->p > 0)) return (lin_cpu_mask){.scale = 1};
    assert(dropout->key && dropout->p <= 1);
    lin_cpu_mask mask = {.drops = 1, .scale = (float)(1 / (1 - dropout->p)), .key = lin_random_key(*dropout->key, dropout->site)};
    if (dropout->width) mask.first = (size_t)(dropout->key[1] * dropout->width);
    double threshold = floor(dropout->p * 65536 + 0.5);
    if (threshold > 65535) { // p so close to 1 that its threshold exceeds 16 bits drops everything
        mask.threshold = 65535;
        mask.scale = 0;
    } else {
        mask.threshold = (uint32_t)threshold;
    }
    return mask;
}

void lin_cpu_dropout_span(float *y, const float *base, const float *r, size_t first, size_t count, const lin_cpu_mask *mask)
{
    if (!mask->drops) {
        if (base)
            LIN_DISPATCH(lin_add_span)(y, base, r, count);
        else if (y != r && count)
            memcpy(y, r, count * sizeof *y);
        return;
    }
    first += mask->first;
    size_t head = (32 - first % 32) % 32; // the vectors align with those of the whole array
    if (head > count) head = count;
    for (size_t i = 0; i < head; i++) {
        uint64_t lane = lin_random_bits(mask->key, (first + i) / 4) >> 16 * ((first + i) % 4) & 0xFFFF;
        const float kept = lane >= mask->threshold ? r[i] * mask->scale : 0;
        y[i] = base ? base[i] + kept : kept;
    }
    LIN_DISPATCH(lin_dropout_span)
    (y + head, base ? base + head : NULL, r + head, first + head, count - head, mask->threshold, mask->scale, mask->key);
}

static void dropout_piece(void *context, int piece, int thread)
{
    const span_job *job = context;
    size_t count, at = span_of(job, piece, &count);
    (void)thread;
    lin_cpu_dropout_span(job->y + at, job->a ? job->a + at : NULL, job->b + at, at, count, &job->mask);
}

void lin_cpu_dropout(lin_exec *exec, float *y, const float *x, size_t count, const lin_dropout *dropout)
{
    span_job job = {.y = y, .b = x, .count = count, .mask = lin_cpu_mask_of(dropout)};
    if (job.mask.drops || y != x) run_spans(exec, dropout_piece, &job);
}

void lin_cpu_add_dropout(lin_exec *exec, float *y, const float *x, const float *r, size_t count, const lin_dropout *dropout)
{
    span_job job = {.y = y, .a = x, .b = r, .count = count, .mask = lin_cpu_mask_of(dropout)};
    run_spans(exec, dropout_piece, &job);
}
#endif
