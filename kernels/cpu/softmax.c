// Softmax and log-softmax, rows divided among the threads; cross entropy, one work item per utterance.
#include "kernels/cpu/cpu.h"

enum {
    BLOCK_ROWS = 64,
    SMALL = 8192, // below this many elements, starting a second thread costs more time than it saves
};

LIN_DISPATCH_DECLARE(void, lin_log_softmax_rows, (float *logp, const float *logits, int rows, int V));
LIN_DISPATCH_DECLARE(void, lin_softmax_rows, (float *p, const float *logits, int rows, int V));
LIN_DISPATCH_DECLARE(void, lin_softmax_backward_rows, (float *dlogits, const float *dp, const float *p, int rows, int V));
LIN_DISPATCH_DECLARE(void, lin_label_smoothing_rows,
                     (float *dlogits, const float *logp, int rows, int V, float keep, float share));
LIN_DISPATCH_DECLARE(double, lin_cross_entropy_rows,
                     (float *dlogits, const float *logp, const int *targets, int rows, int V, float scale));

typedef struct softmax_job {
    enum { LOG_SOFTMAX, SOFTMAX, SOFTMAX_BACKWARD, SMOOTHING } what;
    float *y;
    const float *x, *p;
    int rows, V;
    float keep, share;
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
    case SMOOTHING: LIN_DISPATCH(lin_label_smoothing_rows)(job->y + at, job->x + at, rows, job->V, job->keep, job->share); break;
    }
}

static void run_softmax(lin_exec *exec, softmax_job job)
{
    int small = (size_t)job.rows * (size_t)job.V < SMALL;
    lin_pool_run(small ? NULL : exec->pool, (job.rows + BLOCK_ROWS - 1) / BLOCK_ROWS, softmax_piece, &job);
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

void lin_cpu_label_smoothing(lin_exec *exec, float *dlogits, const float *logp, int rows, int V, double part, const double *scale)
{
    run_softmax(exec, (softmax_job){.what = SMOOTHING, .y = dlogits, .x = logp, .rows = rows, .V = V, .keep = (float)(1 - part),
                                    .share = (float)(part * *scale)});
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
    int small = (size_t)segments->rows * (size_t)V < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B, entropy_piece, &job);
}
