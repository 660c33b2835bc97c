// Depthwise convolution with residual. Forward: one work item per utterance. Backward: blocks of rows whose boundaries
// depend only on the number of rows, each with its own sums for w and b.
#include <assert.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

enum {
    STRETCH = 64,      // rows that stay in the second-level cache while the columns are processed
    SMALL = 16384,     // below this many elements, starting a second thread costs more time than it saves
    MAX_PARTIALS = 32, // blocks of the backward pass
};

LIN_DISPATCH_DECLARE(void, lin_conv_rows, (float *y, const float *x, const float *w, const float *bias, const float *tail,
                                           int first, int rows, int T, int C, int K, int after));
LIN_DISPATCH_DECLARE(void, lin_conv_backward_rows, (float *dx, float *dw, float *db, const float *dy, const float *x,
                                                    const float *w, int t0, int t1, int T, int C, int K, int after));

typedef struct conv_job {
    float *y, *partials;
    const float *x, *w, *bias, *dy;
    const int *offsets;
    int B, C, K, after, block;
    float *const *tails;
    size_t at;
} conv_job;

// Updates the tail [K-1, C] after T more frames: shifts its last frames up, then appends the newest of x.
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
    float *tail = job->tails && job->tails[b] ? job->tails[b] + job->at : NULL;
    for (int first = 0; first < T; first += STRETCH)
        LIN_DISPATCH(lin_conv_rows)(job->y + at, job->x + at, job->w, job->bias, tail, first,
                                    T - first < STRETCH ? T - first : STRETCH, T, job->C, job->K, job->after);
    if (tail && T > 0) move_tail(tail, job->x + at, T, job->C, job->K);
}

void lin_cpu_conv_forward(lin_exec *exec, float *y, const float *x, const float *w, const float *bias,
                          const lin_segments *segments, int C, int K, int after, float *const *tails, size_t at)
{
    assert(lin_segments_hold(segments) && C > 0 && K >= 1 && after >= 0 && after < K);
    assert(!tails || after == 0); // a tail has earlier frames; later ones are not there yet
    conv_job job = {.y = y, .x = x, .w = w, .bias = bias, .offsets = segments->offsets, .C = C, .K = K, .after = after};
    job.tails = tails;
    job.at = at;
    int small = (size_t)segments->rows * (size_t)C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, segments->B, forward_piece, &job);
}

// Rows first .. end-1 of the batch, utterance by utterance.
static void backward_block(const conv_job *job, float *dw, float *db, int first, int end)
{
    for (int b = 0; b < job->B; b++) {
        int start = job->offsets[b], stop = job->offsets[b + 1] < end ? job->offsets[b + 1] : end,
            T = job->offsets[b + 1] - start;
        size_t at = (size_t)start * (size_t)job->C;
        for (int row = start > first ? start : first; row < stop; row += STRETCH)
            LIN_DISPATCH(lin_conv_backward_rows)
            (job->y + at, dw, db, job->dy + at, job->x + at, job->w, row - start,
             (stop - row < STRETCH ? stop : row + STRETCH) - start, T, job->C, job->K, job->after);
    }
}

static void backward_piece(void *context, int piece, int thread)
{
    const conv_job *job = context;
    (void)thread;
    size_t C = (size_t)job->C, size = ((size_t)job->K + 1) * C;
    float *sums = job->partials + size * (size_t)piece;
    for (size_t i = 0; i < size; i++) sums[i] = 0;
    int first = piece * job->block, rows = job->offsets[job->B];
    backward_block(job, sums, sums + size - C, first, rows - first < job->block ? rows : first + job->block);
}

void lin_cpu_conv_backward(lin_exec *exec, float *dx, float *dw, float *db, const float *dy, const float *x, const float *w,
                           const lin_segments *segments, int C, int K, int after)
{
    assert(lin_segments_hold(segments) && C > 0 && K >= 1 && after >= 0 && after < K);
    conv_job job = {
        .y = dx, .x = x, .w = w, .dy = dy, .offsets = segments->offsets, .B = segments->B, .C = C, .K = K, .after = after};
    int rows = segments->rows;
    // The partial sums [K+1, C] are in the scratch of thread 0, the caller; the work items use none of their own.
    size_t size = ((size_t)K + 1) * (size_t)C, fit = LIN_SCRATCH_BYTES / (sizeof(float) * size);
    if (fit < 1) {
        backward_block(&job, dw, db, 0, rows);
        return;
    }
    int partials = fit < MAX_PARTIALS ? (int)fit : MAX_PARTIALS;
    job.partials = lin_scratch(exec, 0);
    job.block = (rows + partials - 1) / partials;
    if (job.block < STRETCH) job.block = STRETCH;
    int pieces = (rows + job.block - 1) / job.block, small = (size_t)rows * (size_t)C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, pieces, backward_piece, &job);
    for (int piece = 0; piece < pieces; piece++) {
        const float *sums = job.partials + size * (size_t)piece;
        for (size_t i = 0; i < size - (size_t)C; i++) dw[i] += sums[i];
        for (int c = 0; c < C; c++) db[c] += sums[size - (size_t)C + (size_t)c];
    }
}
