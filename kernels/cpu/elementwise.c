// Operations that treat every element alike: spans of elements, divided among the threads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/cpu/cpu.h"

enum {
    SPAN = 32768,  // elements of one work item: 128 KiB, a multiple of every vector
    SMALL = 16384, // below this many elements, starting a second thread costs more time than it saves
};

LIN_DISPATCH_DECLARE(void, lin_add_span, (float *y, const float *a, const float *b, size_t count));
LIN_DISPATCH_DECLARE(void, lin_relu_backward_span, (float *dx, const float *dy, const float *y, size_t count, float scale));
LIN_DISPATCH_DECLARE(void, lin_dropout_span, (float *y, const float *base, const float *r, size_t first, size_t count,
                                              uint32_t threshold, float scale, uint64_t key));

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
    lin_pool_run(job->count < SMALL ? NULL : exec->pool, (int)((job->count + SPAN - 1) / SPAN), work, job);
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
