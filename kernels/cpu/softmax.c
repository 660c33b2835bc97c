// softmax.c - softmax and log-softmax, rows divided among the threads; cross entropy, one work item per utterance.
#include <math.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_log_softmax_rows, (float *logp, const float *logits, int rows, int V));
LIN_DISPATCH_DECLARE(void, lin_softmax_rows, (float *p, const float *logits, int rows, int V));
LIN_DISPATCH_DECLARE(void, lin_softmax_backward_rows, (float *dlogits, const float *dp, const float *p, int rows, int V));
LIN_DISPATCH_DECLARE(double, lin_cross_entropy_rows,
                     (float *dlogits, const float *logp, const int *targets, int rows, int V, float scale));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

void LIN_NAME(lin_log_softmax_rows)(float *logp, const float *logits, int rows, int V)
{
    int whole = V / LIN_WIDTH * LIN_WIDTH, rest = V - whole;
    for (int r = 0; r < rows; r++) {
        const float *in = logits + (size_t)r * (size_t)V;
        float *out = logp + (size_t)r * (size_t)V;
        vf top = vset(in[0]), sum = {0};
        for (int v = 0; v < whole; v += LIN_WIDTH) top = vmax(vload(in + v), top);
        float peak = vsum_max(top);
        for (int v = whole; v < V; v++) peak = in[v] > peak ? in[v] : peak;
        for (int v = 0; v < whole; v += LIN_WIDTH) sum += vexp(vload(in + v) - peak);
        if (rest) { // lanes past the end of the row add e^-inf = 0
            float last[LIN_WIDTH];
            vstore(last, vset(-INFINITY));
            memcpy(last, in + whole, (size_t)rest * sizeof *in);
            sum += vexp(vload(last) - peak);
        }
        vf norm = vset((float)log((double)vsum(sum)));
        for (int v = 0; v < V; v += LIN_WIDTH) vput_lanes(out, vlanes(in, v, V) - peak - norm, v, V);
    }
}

// As log-softmax, with the exponentials divided by their sum.
void LIN_NAME(lin_softmax_rows)(float *p, const float *logits, int rows, int V)
{
    LIN_NAME(lin_log_softmax_rows)(p, logits, rows, V);
    for (int r = 0; r < rows; r++, p += V)
        for (int v = 0; v < V; v += LIN_WIDTH) vput_lanes(p, vexp(vlanes(p, v, V)), v, V);
}

// dlogits may alias dp.
void LIN_NAME(lin_softmax_backward_rows)(float *dlogits, const float *dp, const float *p, int rows, int V)
{
    for (int r = 0; r < rows; r++, p += V, dp += V, dlogits += V) {
        vf sum = {0};
        for (int v = 0; v < V; v += LIN_WIDTH) sum = vfma(vlanes(p, v, V), vlanes(dp, v, V), sum);
        const vf mean = vset(vsum(sum));
        for (int v = 0; v < V; v += LIN_WIDTH) vput_lanes(dlogits, vlanes(p, v, V) * (vlanes(dp, v, V) - mean), v, V);
    }
}

// The loss of `rows` rows; dlogits may be NULL, and may alias logp.
double LIN_NAME(lin_cross_entropy_rows)(float *dlogits, const float *logp, const int *targets, int rows, int V, float scale)
{
    double loss = 0;
    for (int r = 0; r < rows; r++) {
        const float *in = logp + (size_t)r * (size_t)V;
        if (targets[r] >= 0) loss -= (double)in[targets[r]];
        if (!dlogits) continue;
        float *out = dlogits + (size_t)r * (size_t)V;
        if (targets[r] < 0) {
            memset(out, 0, (size_t)V * sizeof *out);
            continue;
        }
        float hit = (vexp(vset(in[targets[r]]))[0] - 1.0f) * scale; // one rounding of e^logp - 1, before the scale
        for (int v = 0; v < V; v += LIN_WIDTH) vput_lanes(out, vexp(vlanes(in, v, V)) * scale, v, V);
        out[targets[r]] = hit;
    }
    return loss;
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { BLOCK_ROWS = 64, SMALL = 8192 };

typedef struct softmax_job {
    enum { LOG_SOFTMAX, SOFTMAX, SOFTMAX_BACKWARD } what;
    float *y;
    const float *x, *p;
    int rows, V;
} softmax_job;

static void softmax_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    (void)thread;
    int first = piece * BLOCK_ROWS, rows = job->rows - first < BLOCK_ROWS ? job->rows - first : BLOCK_ROWS;
    size_t at = (size_t)first * (size_t)job->V;
    switch (job->what) {
    case LOG_SOFTMAX: LIN_DISPATCH(lin_log_softmax_rows)(job->y + at, job->x + at, rows, job->V); break;
    case SOFTMAX: LIN_DISPATCH(lin_softmax_rows)(job->y + at, job->x + at, rows, job->V); break;
    case SOFTMAX_BACKWARD: LIN_DISPATCH(lin_softmax_backward_rows)(job->y + at, job->x + at, job->p + at, rows, job->V); break;
    }
}

static void run_softmax(lin_exec *exec, softmax_job job)
{
    lin_pool_run(lin_threads_for(exec, job.rows, job.V, SMALL), (job.rows + BLOCK_ROWS - 1) / BLOCK_ROWS, softmax_piece, &job);
}

void lin_cpu_log_softmax(lin_exec *exec, float *logp, const float *logits, int rows, int V)
{
    run_softmax(exec, (softmax_job){.what = LOG_SOFTMAX, .y = logp, .x = logits, .rows = rows, .V = V});
}

void lin_cpu_softmax_rows(lin_exec *exec, float *p, const float *logits, int rows, int V)
{
    run_softmax(exec, (softmax_job){.what = SOFTMAX, .y = p, .x = logits, .rows = rows, .V = V});
}

void lin_cpu_softmax_rows_backward(lin_exec *exec, float *dlogits, const float *dp, const float *p, int rows, int V)
{
    run_softmax(exec, (softmax_job){.what = SOFTMAX_BACKWARD, .y = dlogits, .x = dp, .p = p, .rows = rows, .V = V});
}

typedef struct entropy_job {
    double *loss;
    float *dlogits, scale;
    const float *logp;
    const int *offsets, *targets;
    int V;
} entropy_job;

static void entropy_piece(void *context, int b, int thread)
{
    const entropy_job *job = context;
    (void)thread;
    const int first = job->offsets[b], T = job->offsets[b + 1] - first;
    const size_t at = (size_t)first * (size_t)job->V;
    job->loss[b] = T == 0 ? 0
                          : LIN_DISPATCH(lin_cross_entropy_rows)(job->dlogits ? job->dlogits + at : NULL, job->logp + at,
                                                                 job->targets + first, T, job->V, job->scale);
}

void lin_cpu_cross_entropy(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments,
                           const int *targets, int V, const double *scale)
{
    entropy_job job = {loss, dlogits, dlogits ? (float)*scale : 0, logp, segments->offsets, targets, V};
    lin_pool_run(lin_threads_for(exec, segments->rows, V, SMALL), segments->B, entropy_piece, &job);
}
#endif
