/*
 * norm.c - layer normalisation (Ba et al. 2016): rows divided among the threads, the sums for gamma and beta over blocks of rows
 * whose boundaries depend only on the number of rows.
 *
 * The last vector of a row is padded with zeros, which are masked out of the sum of squared distances.
 */
#include <assert.h>
#include <math.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_norm_forward,
                     (float *y, float *stats, const float *x, const float *gamma, const float *beta, int rows, int C));
LIN_DISPATCH_DECLARE(void, lin_norm_backward,
                     (float *dx, float *dgamma, float *dbeta, const float *dy, const float *residual, const float *x,
                      const float *stats, const float *gamma, int rows, int C));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

#define LIN_NORM_EPS 1e-5f

// x - mean in the first n lanes, 0 in the others.
LIN_INLINE vf centred(const float *x, float mean, int n)
{
    float means[LIN_WIDTH];
    vstore(means, vset(mean));
    return vload_n(x, n) - vload_n(means, n);
}

void LIN_NAME(lin_norm_forward)(float *y, float *stats, const float *x, const float *gamma, const float *beta, int rows, int C)
{
    int whole = C / LIN_WIDTH * LIN_WIDTH, rest = C - whole;
    float share = 1.0f / (float)C;
    for (int r = 0; r < rows; r++) {
        const float *in = x + (size_t)r * (size_t)C;
        float *out = y + (size_t)r * (size_t)C;
        vf sum0 = {0}, sum1 = {0};
        int c = 0;
        for (; c + 2 * LIN_WIDTH <= whole; c += 2 * LIN_WIDTH) {
            sum0 += vload(in + c);
            sum1 += vload(in + c + LIN_WIDTH);
        }
        if (c < whole) sum0 += vload(in + c);
        if (rest) sum1 += vload_n(in + whole, rest);
        float mean = vsum(sum0 + sum1) * share;
        vf middle = vset(mean);
        sum0 = sum1 = (vf){0};
        for (c = 0; c + 2 * LIN_WIDTH <= whole; c += 2 * LIN_WIDTH) {
            vf d0 = vload(in + c) - middle, d1 = vload(in + c + LIN_WIDTH) - middle;
            sum0 = vfma(d0, d0, sum0);
            sum1 = vfma(d1, d1, sum1);
        }
        if (c < whole) {
            vf d = vload(in + c) - middle;
            sum0 = vfma(d, d, sum0);
        }
        if (rest) {
            vf d = centred(in + whole, mean, rest);
            sum1 = vfma(d, d, sum1);
        }
        float rstd = 1.0f / sqrtf(vsum(sum0 + sum1) * share + LIN_NORM_EPS);
        vf scale = vset(rstd);
        for (c = 0; c < C; c += LIN_WIDTH)
            vput_lanes(out, vfma((vlanes(in, c, C) - middle) * scale, vlanes(gamma, c, C), vlanes(beta, c, C)), c, C);
        if (stats) {
            stats[2 * r] = mean;
            stats[2 * r + 1] = rstd;
        }
    }
}

/* dx of the rows; their sums of dy xhat and dy are added to dgamma and dbeta. With g = dy gamma:
 * dx = residual + rstd (g - mean(g) - xhat mean(g xhat)); residual may be NULL. */
void LIN_NAME(lin_norm_backward)(float *dx, float *dgamma, float *dbeta, const float *dy,
                                 const float *residual, const float *x, const float *stats, const float *gamma, int rows, int C)
{
    float share = 1.0f / (float)C;
    for (int r = 0; r < rows; r++) {
        const float *in = x + (size_t)r * (size_t)C, *above = dy + (size_t)r * (size_t)C;
        const float *beside = residual ? residual + (size_t)r * (size_t)C : NULL;
        float *out = dx + (size_t)r * (size_t)C;
        vf mean = vset(stats[2 * r]), rstd = vset(stats[2 * r + 1]), sum_g = {0}, sum_gx = {0};
        for (int c = 0; c < C; c += LIN_WIDTH) {
            vf up = vlanes(above, c, C), xhat = (vlanes(in, c, C) - mean) * rstd, g = up * vlanes(gamma, c, C);
            sum_g += g;
            sum_gx = vfma(g, xhat, sum_gx);
            vput_lanes(dgamma, vfma(up, xhat, vlanes(dgamma, c, C)), c, C);
            vput_lanes(dbeta, up + vlanes(dbeta, c, C), c, C);
        }
        vf g_mean = vset(vsum(sum_g) * share), gx_mean = vset(vsum(sum_gx) * share);
        for (int c = 0; c < C; c += LIN_WIDTH) {
            vf xhat = (vlanes(in, c, C) - mean) * rstd, g = vlanes(above, c, C) * vlanes(gamma, c, C);
            vf d = vrounded((g - g_mean - xhat * gx_mean) * rstd);
            vput_lanes(out, beside ? vlanes(beside, c, C) + d : d, c, C);
        }
    }
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

// Rows of a work item, forward; backward, rows done at once, so that dropout finds them in the cache.
enum { BLOCK_ROWS = 64 };

typedef struct norm_job {
    float *y, *stats_out, *sum, *dropped;
    const float *x, *r, *gamma, *beta, *dy, *more, *residual, *stats;
    int rows, C;
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
    const int pieces = (job->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    lin_pool_run(lin_threads_for(exec, job->rows, job->C, LIN_SMALL), pieces, forward_piece, job);
}

void lin_cpu_layer_norm_forward(lin_exec *exec, float *y, float *stats, const float *x, const float *gamma, const float *beta,
                                int rows, int C)
{
    norm_job job = {.y = y, .stats_out = stats, .x = x, .gamma = gamma, .beta = beta, .rows = rows, .C = C};
    run_forward(exec, &job);
}

void lin_cpu_add_dropout_norm_forward(lin_exec *exec, void *operand, float *sum, float *y, float *stats, const float *x,
                                      const float *r, const float *gamma, const float *beta, int rows, int C,
                                      const lin_dropout *dropout)
{
    assert(!operand);
    (void)operand;
    norm_job job = {.y = y, .stats_out = stats, .sum = sum, .x = x, .r = r, .gamma = gamma, .beta = beta, .rows = rows, .C = C};
    job.mask = lin_cpu_mask_of(dropout);
    run_forward(exec, &job);
}

// Rows first .. end-1 of the backward pass; their sums are added to dgamma and dbeta.
static void backward_rows(const void *context, float *dgamma, float *dbeta, int first, int end)
{
    const norm_job *job = context;
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

void lin_cpu_layer_norm_backward(lin_exec *exec, void *operand, float *dx, float *dropped, float *dgamma, float *dbeta, float *db,
                                 const float *dy, const float *more, const float *residual, const float *x, const float *stats,
                                 const float *gamma, int rows, int C, const lin_dropout *dropout)
{
    assert(rows >= 0 && C > 0 && !operand);
    (void)operand;
    assert(!more || !residual); // there is one residual path
    norm_job job = {.y = dx, .dropped = dropped, .dy = dy, .more = more, .residual = residual, .x = x, .stats = stats,
                    .gamma = gamma, .rows = rows, .C = C};
    if (dropped) job.mask = lin_cpu_mask_of(dropout);
    lin_sum_rows(exec, backward_rows, &job, dgamma, (size_t)C, dbeta, (size_t)C, rows, C, 16);
    const float *last = dropped ? dropped : dx;
    for (size_t row = 0; db && row < (size_t)rows; row++) // not used in training: see sums_in_norm
        for (size_t c = 0; c < (size_t)C; c++) db[c] += last[row * (size_t)C + c];
}
#endif
