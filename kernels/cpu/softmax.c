// Log-softmax: rows divided among the threads.
#include "kernels/cpu/cpu.h"

enum {
    BLOCK_ROWS = 64,
    SMALL = 8192, // below this many elements, starting a second thread costs more time than it saves
};

LIN_DISPATCH_DECLARE(void, lin_log_softmax_rows, (float *logp, const float *logits, int rows, int V));

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
