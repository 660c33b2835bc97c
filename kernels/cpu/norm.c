// Layer normalisation (Ba et al. 2016): rows divided among the threads, the sums for gamma and beta over blocks of rows whose
// boundaries depend only on the number of rows.
#include "kernels/cpu/cpu.h"

#include <assert.h>

enum {
    BLOCK_ROWS = 64,    // rows of a work item, forward; backward, rows done at once, so that dropout finds them in the cache
    SMALL = 16384,      // below this many elements, starting a second thread costs more time than it saves
    MAX_PARTIALS = 32,  // blocks of the backward pass, each with its own sums
};

LIN_DISPATCH_DECLARE(void, lin_norm_forward,
                     (float *y, float *stats, const float *x, const float *gamma, const float *beta, int rows, int C));
LIN_DISPATCH_DECLARE(void, lin_norm_backward,
                     (float *dx, float *dgamma, float *dbeta, const float *dy, const float *residual, const float *x,
                      const float *stats, const float *gamma, int rows, int C));

typedef struct norm_job {
    float *y, *stats_out, *partials, *sum, *dropped;
    const float *x, *r, *gamma, *beta, *dy, *more, *residual, *stats;
    int rows, C, block;
    lin_cpu_mask mask;
} norm_job;

static void forward_piece(void *context, int piece, int thread)
{
    const norm_job *job = context;
    (void)thread;
    int first = piece * BLOCK_ROWS, rows = job->rows - first < BLOCK_ROWS ? job->rows - first : BLOCK_ROWS;
    size_t at = (size_t)first * (size_t)job->C;
    const float *x = job->x + at;
    if (job->sum) {
        lin_cpu_dropout_span(job->sum + at, x, job->r + at, at, (size_t)rows * (size_t)job->C, &job->mask);
        x = job->sum + at;
    }
    LIN_DISPATCH(lin_norm_forward)
    (job->y + at, job->stats_out ? job->stats_out + 2 * (size_t)first : NULL, x, job->gamma, job->beta, rows, job->C);
}

static void run_forward(lin_exec *exec, norm_job *job)
{
    assert(job->rows >= 0 && job->C > 0);
    int small = (size_t)job->rows * (size_t)job->C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, (job->rows + BLOCK_ROWS - 1) / BLOCK_ROWS, forward_piece, job);
}

void lin_cpu_layer_norm_forward(lin_exec *exec, float *y, float *stats, const float *x, const float *gamma, const float *beta,
                                int rows, int C)
{
    norm_job job = {.y = y, .stats_out = stats, .x = x, .gamma = gamma, .beta = beta, .rows = rows, .C = C};
    run_forward(exec, &job);
}

void lin_cpu_add_dropout_norm_forward(lin_exec *exec, float *sum, float *y, float *stats, const float *x, const float *r,
                                      const float *gamma, const float *beta, int rows, int C, const lin_dropout *dropout)
{
    norm_job job = {.y = y, .stats_out = stats, .sum = sum, .x = x, .r = r, .gamma = gamma, .beta = beta, .rows = rows, .C = C};
    job.mask = lin_cpu_mask_of(dropout);
    run_forward(exec, &job);
}

// Rows first .. end-1 of the backward pass; their sums are added to dgamma and dbeta.
static void backward_rows(const norm_job *job, float *dgamma, float *dbeta, int first, int end)
{
    for (int row = first; row < end; row += BLOCK_ROWS) {
        int rows = end - row < BLOCK_ROWS ? end - row : BLOCK_ROWS;
        size_t at = (size_t)row * (size_t)job->C, count = (size_t)rows * (size_t)job->C;
        const float *dy = job->dy + at;
        if (job->more) {
            lin_cpu_dropout_span(job->y + at, dy, job->more + at, at, count, &(lin_cpu_mask){0});
            dy = job->y + at;
        }
        LIN_DISPATCH(lin_norm_backward)(job->y + at, dgamma, dbeta, dy, job->residual ? job->residual + at : NULL, job->x + at,
                                        job->stats + 2 * (size_t)row, job->gamma, rows, job->C);
        if (job->dropped) lin_cpu_dropout_span(job->dropped + at, NULL, job->y + at, at, count, &job->mask);
    }
}

static void backward_piece(void *context, int piece, int thread)
{
    const norm_job *job = context;
    (void)thread;
    int first = piece * job->block, rows = job->rows - first < job->block ? job->rows - first : job->block;
    size_t C = (size_t)job->C;
    float *dgamma = job->partials + 2 * C * (size_t)piece, *dbeta = dgamma + C;
    for (size_t c = 0; c < 2 * C; c++) dgamma[c] = 0;
    backward_rows(job, dgamma, dbeta, first, first + rows);
}

static void run_backward(lin_exec *exec, norm_job *job, float *dgamma, float *dbeta)
{
    const int rows = job->rows, C = job->C;
    // The partial sums are in the scratch of thread 0, the caller; the work items use none of their own.
    int fit = (int)(LIN_SCRATCH_BYTES / (2 * sizeof(float) * (size_t)C)), partials = fit < MAX_PARTIALS ? fit : MAX_PARTIALS;
    if (partials < 1) { // more than 131,072 columns
        backward_rows(job, dgamma, dbeta, 0, rows);
        return;
    }
    job->partials = lin_scratch(exec, 0);
    job->block = (rows + partials - 1) / partials;
    if (job->block < 16) job->block = 16;
    int pieces = (rows + job->block - 1) / job->block, small = (size_t)rows * (size_t)C < SMALL;
    lin_pool_run(small ? NULL : exec->pool, pieces, backward_piece, job);
    for (int piece = 0; piece < pieces; piece++) {
        const float *sums = job->partials + 2 * (size_t)C * (size_t)piece;
        for (int c = 0; c < C; c++) dgamma[c] += sums[c];
        for (int c = 0; c < C; c++) dbeta[c] += sums[C + c];
    }
}

void lin_cpu_layer_norm_backward(lin_exec *exec, float *dx, float *dropped, float *dgamma, float *dbeta, float *db,
                                 const float *dy, const float *more, const float *residual, const float *x, const float *stats,
                                 const float *gamma, int rows, int C, const lin_dropout *dropout)
{
    assert(rows >= 0 && C > 0);
    assert(!more || !residual); // there is one second way around the norm
    norm_job job = {.y = dx, .dropped = dropped, .dy = dy, .more = more, .residual = residual, .x = x, .stats = stats,
                    .gamma = gamma, .rows = rows, .C = C};
    if (dropped) job.mask = lin_cpu_mask_of(dropout);
    run_backward(exec, &job, dgamma, dbeta);
    const float *last = dropped ? dropped : dx;
    for (size_t row = 0; db && row < (size_t)rows; row++) // not used in training: see sums_in_norm
        for (size_t c = 0; c < (size_t)C; c++) db[c] += last[row * (size_t)C + c];
}
