// Log-softmax, rows divided among the threads; cross entropy, one work item per utterance.
#include "kernels/cpu/cpu.h"

enum {
    BLOCK_ROWS = 64,
    SMALL = 8192, // below this many elements, starting a second thread costs more time than it saves
};

LIN_DISPATCH_DECLARE(void, lin_log_softmax_rows, (float *logp, const float *logits, int rows, int V));
LIN_DISPATCH_DECLARE(double, lin_cross_entropy_rows,
                     (float *dlogits, const float *logp, const int *targets, int rows, int V, float scale));

typedef struct softmax_job {
    float *logp;
    const float *logits;
    int rows, V;
} softmax_job;

static void softmax_piece(void *context, int piece, int thread)
{
    const softmax_job *job = context;
    (void)thread;
    int first = piece * BLOCK_ROWS, rows = job->rows - first < BLOCK_ROWS ? job->rows - first : BLOCK_ROWS;
    size_t at = (size_t)first * (size_t)job->V;
    LIN_DISPATCH(lin_log_softmax_rows)(job->logp + at, job->logits + at, rows, job->V);
}

void lin_cpu_log_softmax(lin_exec *exec, float *logp, const float *logits, int rows, int V)
{
    softmax_job job = {logp, logits, rows, V};
    int small = (size_t)rows * (size_t)V < SMALL;
    lin_pool_run(small ? NULL : exec->pool, (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, softmax_piece, &job);
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
