// Operations that treat every element (or every frame) alike: spans of elements shared out between threads.
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

enum {
    SPAN = 32768,  // elements of one piece of work: 128 KiB, a multiple of every vector
    SMALL = 16384, // elements below which a second thread costs more than it gives
    PAIRS = 64,    // columns pairs of one tile of sinusoids
    TURNS = 64,    // rows after which sine and cosine are worked out afresh
};

LIN_DISPATCH_DECLARE(void, lin_add_span, (float *y, const float *x, size_t count));
LIN_DISPATCH_DECLARE(void, lin_relu_backward_span, (float *dx, const float *dy, const float *y, size_t count, float scale));
LIN_DISPATCH_DECLARE(void, lin_dropout_span, (float *y, const float *base, const float *r, size_t first, size_t count,
                                              uint32_t threshold, float scale, uint64_t key));
LIN_DISPATCH_DECLARE(void, lin_standardise, (float *y, const float *x, const float *mean, const float *istd, int D));
LIN_DISPATCH_DECLARE(void, lin_sinusoid_rows,
                     (float *x, int rows, int C, int pairs, double *s, double *c, const double *ws, const double *wc));

typedef struct span_job {
    float *y;
    const float *a, *b;
    size_t count;
    float scale;
    uint32_t threshold;
    uint64_t key;
} span_job;

static void run_spans(lin_exec *exec, lin_pool_work work, span_job *job)
{
    // Pieces are counted in int: 2^31 spans of 32768 elements are beyond any memory.
    lin_pool_run(job->count < SMALL ? NULL : exec->pool, (int)((job->count + SPAN - 1) / SPAN), work, job);
}

static size_t span_of(const span_job *job, int piece, size_t *count)
{
    size_t first = (size_t)piece * SPAN;
    *count = job->count - first < SPAN ? job->count - first : SPAN;
    return first;
}

static void add_piece(void *context, int piece, int thread)
{
    const span_job *job = context;
    size_t count, at = span_of(job, piece, &count);
    (void)thread;
    LIN_DISPATCH(lin_add_span)(job->y + at, job->a + at, count);
}

void lin_cpu_add(lin_exec *exec, float *y, const float *x, size_t count)
{
    span_job job = {.y = y, .a = x, .count = count};
    run_spans(exec, add_piece, &job);
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

static void dropout_piece(void *context, int piece, int thread)
{
    const span_job *job = context;
    size_t count, at = span_of(job, piece, &count);
    (void)thread;
    LIN_DISPATCH(lin_dropout_span)(job->y + at, job->a ? job->a + at : NULL, job->b + at, at, count, job->threshold, job->scale,
                                   job->key);
}

// y = base + dropout(r), base may be NULL. p so close to 1 that its threshold has no 16-bit number drops everything.
static void dropout(lin_exec *exec, float *y, const float *base, const float *r, size_t count, double p, uint64_t key)
{
    double threshold = floor(p * 65536 + 0.5);
    span_job job = {.y = y, .a = base, .b = r, .count = count, .scale = (float)(1 / (1 - p)), .key = key};
    if (threshold > 65535) {
        job.threshold = 65535;
        job.scale = 0;
    } else {
        job.threshold = (uint32_t)threshold;
    }
    run_spans(exec, dropout_piece, &job);
}

void lin_cpu_dropout(lin_exec *exec, float *y, const float *x, size_t count, double p, uint64_t key)
{
    if (p > 0)
        dropout(exec, y, NULL, x, count, p, key);
    else if (y != x && count)
        memcpy(y, x, count * sizeof *y);
}

void lin_cpu_add_dropout(lin_exec *exec, float *y, const float *x, const float *r, size_t count, double p, uint64_t key)
{
    dropout(exec, y, x, r, count, p, key); // with p = 0 every element passes the threshold 0 and is multiplied by 1
}

typedef struct frames_job {
    float *y;
    const float *x, *mean, *istd;
    const int *in_offsets, *out_offsets;
    int width, stack, span;
} frames_job;

static void stack_piece(void *context, int b, int thread)
{
    const frames_job *job = context;
    (void)thread;
    const float *in = job->x + (size_t)job->in_offsets[b] * (size_t)job->width;
    float *out = job->y + (size_t)job->out_offsets[b] * (size_t)job->width * (size_t)job->span;
    int last = job->in_offsets[b + 1] - job->in_offsets[b] - 1;
    for (int t = 0; t < job->out_offsets[b + 1] - job->out_offsets[b]; t++)
        for (int j = 0; j < job->span; j++, out += job->width) {
            int frame = t * job->stack + j < last ? t * job->stack + j : last;
            LIN_DISPATCH(lin_standardise)(out, in + (size_t)frame * (size_t)job->width, job->mean, job->istd, job->width);
        }
}

void lin_cpu_stack_frames(lin_exec *exec, float *y, const float *x, const float *mean, const float *istd, const int *in_offsets,
                          const int *out_offsets, int B, int D, int stack, int ahead)
{
    frames_job job = {y, x, mean, istd, in_offsets, out_offsets, D, stack, stack + ahead};
    int small = B < 1 || (size_t)(out_offsets[B] - out_offsets[0]) * (size_t)job.span * (size_t)D < SMALL;
    lin_pool_run(small ? NULL : exec->pool, B, stack_piece, &job);
}

typedef struct sinusoid_job {
    float *x;
    const int *offsets;
    int C;
} sinusoid_job;

// One utterance. From row to row the angles grow by a constant, so sine and cosine turn (in double); every TURNS rows, counted from
// the start of the utterance, they are worked out afresh.
static void sinusoid_piece(void *context, int b, int thread)
{
    const sinusoid_job *job = context;
    (void)thread;
    size_t C = (size_t)job->C;
    float *x = job->x + (size_t)job->offsets[b] * C;
    int T = job->offsets[b + 1] - job->offsets[b];
    for (int first = 0; first < job->C / 2; first += PAIRS) {
        int pairs = job->C / 2 - first < PAIRS ? job->C / 2 - first : PAIRS;
        double w[PAIRS], ws[PAIRS], wc[PAIRS], s[PAIRS], c[PAIRS];
        for (int i = 0; i < pairs; i++) {
            w[i] = pow(10000.0, -2.0 * (first + i) / job->C);
            ws[i] = sin(w[i]);
            wc[i] = cos(w[i]);
        }
        for (int t = 0; t < T; t += TURNS) {
            for (int i = 0; i < pairs; i++) {
                s[i] = sin(t * w[i]);
                c[i] = cos(t * w[i]);
            }
            LIN_DISPATCH(lin_sinusoid_rows)(x + (size_t)t * C + 2 * first, T - t < TURNS ? T - t : TURNS, job->C, pairs, s, c, ws,
                                            wc);
        }
    }
}

void lin_cpu_add_sinusoid(lin_exec *exec, float *x, const int *offsets, int B, int C)
{
    sinusoid_job job = {x, offsets, C};
    int small = B < 1 || (size_t)(offsets[B] - offsets[0]) * (size_t)C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, B, sinusoid_piece, &job);
}
