// Causal depthwise convolution with residual: forward, pieces of one utterance each; backward, pieces of some columns each, so that a
// column's gradient is summed by one thread in the order of the rows.
#include <string.h>

#include "kernels/cpu/cpu.h"

enum {
    COLUMNS = 16,  // columns of one piece of the backward pass
    SMALL = 16384, // elements below which a second thread costs more than it gives
};

LIN_DISPATCH_DECLARE(void, lin_conv_rows, (float *y, const float *x, const float *w, const float *bias, const float *tail, int first,
                                           int rows, int C, int K));
LIN_DISPATCH_DECLARE(void, lin_conv_backward_columns, (float *dx, float *dw, float *db, const float *dy, const float *x,
                                                       const float *w, const int *offsets, int B, int C, int K, int c, int columns));

typedef struct conv_job {
    float *y, *dw, *db;
    const float *x, *w, *bias, *dy;
    const int *offsets;
    int B, C, K;
    float *const *tails;
} conv_job;

// The tail [K-1, C] after T more frames: its own last frames moved up, then the newest of x.
static void move_tail(float *tail, const float *x, int T, int C, int K)
{
    int kept = T < K - 1 ? K - 1 - T : 0, added = K - 1 - kept;
    size_t row = (size_t)C;
    memmove(tail, tail + (size_t)(K - 1 - kept) * row, (size_t)kept * row * sizeof *tail);
    memcpy(tail + (size_t)kept * row, x + (size_t)(T - added) * row, (size_t)added * row * sizeof *tail);
}

static void forward_piece(void *context, int b, int thread)
{
    const conv_job *job = context;
    (void)thread;
    size_t at = (size_t)job->offsets[b] * (size_t)job->C;
    int T = job->offsets[b + 1] - job->offsets[b];
    float *tail = job->tails ? job->tails[b] : NULL;
    // Rows are worked off in blocks that stay in the second-level cache while the columns pass over them.
    for (int first = 0; first < T; first += 64)
        LIN_DISPATCH(lin_conv_rows)(job->y + at, job->x + at, job->w, job->bias, tail, first, T - first < 64 ? T - first : 64, job->C,
                                    job->K);
    if (tail && T > 0) move_tail(tail, job->x + at, T, job->C, job->K);
}

void lin_cpu_conv_forward(lin_exec *exec, float *y, const float *x, const float *w, const float *bias, const int *offsets, int B, int C,
                          int K, float *const *tails)
{
    conv_job job = {.y = y, .x = x, .w = w, .bias = bias, .offsets = offsets, .C = C, .K = K, .tails = tails};
    int small = B < 1 || (size_t)(offsets[B] - offsets[0]) * (size_t)C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, B, forward_piece, &job);
}

static void backward_piece(void *context, int piece, int thread)
{
    const conv_job *job = context;
    (void)thread;
    int c = piece * COLUMNS, columns = job->C - c < COLUMNS ? job->C - c : COLUMNS;
    LIN_DISPATCH(lin_conv_backward_columns)(job->y, job->dw, job->db, job->dy, job->x, job->w, job->offsets, job->B, job->C, job->K, c,
                                            columns);
}

void lin_cpu_conv_backward(lin_exec *exec, float *dx, float *dw, float *db, const float *dy, const float *x, const float *w,
                           const int *offsets, int B, int C, int K)
{
    conv_job job = {.y = dx, .dw = dw, .db = db, .dy = dy, .x = x, .w = w, .offsets = offsets, .B = B, .C = C, .K = K};
    lin_pool_run(exec->pool, (C + COLUMNS - 1) / COLUMNS, backward_piece, &job);
}
