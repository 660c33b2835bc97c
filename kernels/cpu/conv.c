/*
 * conv.c - depthwise convolution with residual, LIN_WIDTH columns at a time. Forward, a work item is an utterance; backward, a
 * block of rows whose boundaries depend only on the number of rows, with its own sums for w and b.
 *
 * Every output adds its bias and then its taps in order, oldest first. Frames outside of an utterance count as zeros, so the
 * bits are those of a call with a tail of zeros.
 */
#include <assert.h>
#include <string.h>

#include "kernels/cpu/simd.h"

LIN_DISPATCH_DECLARE(void, lin_conv_rows, (float *y, const float *x, const float *w, const float *bias, const float *tail,
                                           int first, int rows, int T, int C, int K, int after));
LIN_DISPATCH_DECLARE(void, lin_conv_backward_rows, (float *dx, float *dw, float *db, const float *dy, const float *x,
                                                    const float *w, int t0, int t1, int T, int C, int K, int after));

/* ---- for each instruction set ---------------------------------------------------------------------------------------------- */

/* Prefetches a column of the rows after first .. first+rows-1, as many again but none past T: the hardware prefetcher does not
 * follow a block that is read column by column. */
LIN_INLINE void fetch_column(const float *p, int first, int rows, int T, size_t stride)
{
    for (int t = first + rows; t < first + 2 * rows && t < T; t++) __builtin_prefetch(p + (size_t)t * stride);
}

LIN_INLINE void fetch_column_to_write(const float *p, int first, int rows, int T, size_t stride)
{
    for (int t = first + rows; t < first + 2 * rows && t < T; t++) __builtin_prefetch(p + (size_t)t * stride, 1);
}

/* n <= LIN_WIDTH columns of row t of an utterance of T, some of whose taps are outside of it; tail may be NULL. */
LIN_INLINE void conv_edge_row(float *y, const float *x, const float *w, vf bias, const float *tail, int t, int T, int C,
                              int K, int after, int n)
{
    size_t stride = (size_t)C;
    vf sum = bias;
    for (int j = 0; j < K; j++) {
        int from = t + after - K + 1 + j;
        vf frame = {0};
        if (from >= 0 && from < T)
            frame = vlanes(x + (size_t)from * stride, 0, n);
        else if (from < 0 && tail)
            frame = vlanes(tail + (size_t)(K - 1 + from) * stride, 0, n);
        sum = vfma(vlanes(w + (size_t)j * stride, 0, n), frame, sum);
    }
    vput_lanes(y + (size_t)t * stride, vlanes(x + (size_t)t * stride, 0, n) + sum, 0, n);
}

/* LIN_WIDTH columns of four rows: y = x plus the sum of K taps, which begins as `bias`. The first row's frame of tap 0 is at
 * `from`, the next tap's `step` floats further on. */
LIN_INLINE void conv_four_rows(float *y, const float *x, const float *from, ptrdiff_t step, const float *taps, vf bias,
                               size_t stride, int K)
{
    vf sum0 = bias, sum1 = bias, sum2 = bias, sum3 = bias;
    for (int j = 0; j < K; j++, from += step, taps += stride) {
        vf tap = vload(taps);
        sum0 = vfma(tap, vload(from), sum0);
        sum1 = vfma(tap, vload(from + stride), sum1);
        sum2 = vfma(tap, vload(from + 2 * stride), sum2);
        sum3 = vfma(tap, vload(from + 3 * stride), sum3);
    }
    vstore(y, vload(x) + sum0);
    vstore(y + stride, vload(x + stride) + sum1);
    vstore(y + 2 * stride, vload(x + 2 * stride) + sum2);
    vstore(y + 3 * stride, vload(x + 3 * stride) + sum3);
}

/* Rows first .. first+rows-1 of an utterance of T; x, y and tail point to the utterance's own data, tail may be NULL. */
void LIN_NAME(lin_conv_rows)(float *y, const float *x, const float *w, const float *bias, const float *tail, int first, int rows,
                             int T, int C, int K, int after)
{
    size_t stride = (size_t)C;
    // rows lag .. inner-1 have all taps
    const int lag = K - 1 - after, end = first + rows, inner = end < T - after ? end : T - after;
    for (int c = 0; c < C; c += LIN_WIDTH) {
        int n = C - c < LIN_WIDTH ? C - c : LIN_WIDTH, t = first;
        vf b = vlanes(bias + c, 0, n);
        fetch_column(x + c, first, rows, T, stride);
        fetch_column_to_write(y + c, first, rows, T, stride);
        for (; t < end && t < lag; t++)
            conv_edge_row(y + c, x + c, w + c, b, tail ? tail + c : NULL, t, T, C, K, after, n);
        for (; n == LIN_WIDTH && t + 4 <= inner; t += 4) {
            const size_t at = (size_t)t * stride + (size_t)c;
            conv_four_rows(y + at, x + at, x + at - (ptrdiff_t)stride * lag, (ptrdiff_t)stride, w + c, b, stride, K);
        }
        for (; t < inner; t++) {
            vf sum = b;
            for (int j = 0; j < K; j++)
                sum = vfma(vlanes(w + (size_t)j * stride + c, 0, n),
                           vlanes(x + (size_t)(t - lag + j) * stride + c, 0, n), sum);
            vput_lanes(y + (size_t)t * stride + c, vlanes(x + (size_t)t * stride + c, 0, n) + sum, 0, n);
        }
        for (; t < end; t++) conv_edge_row(y + c, x + c, w + c, b, tail ? tail + c : NULL, t, T, C, K, after, n);
    }
}

/* n <= LIN_WIDTH columns of row t of dx, some terms of which lie outside of the utterance of T. */
LIN_INLINE void conv_dx_row(float *dx, const float *dy, const float *w, int t, int T, int C, int K, int after, int n)
{
    size_t stride = (size_t)C;
    vf sum = {0};
    for (int j = K - 1; j >= 0 && t + K - 1 - after - j < T; j--)
        if (t + K - 1 - after - j >= 0)
            sum = vfma(vlanes(w + (size_t)j * stride, 0, n),
                       vlanes(dy + (size_t)(t + K - 1 - after - j) * stride, 0, n), sum);
    vput_lanes(dx + (size_t)t * stride, vlanes(dy + (size_t)t * stride, 0, n) + sum, 0, n);
}

/* n <= LIN_WIDTH columns of dx for frames t .. end-1 of an utterance of T: dx[t] = dy[t] + sum_j w[j] dy[t+K-1-after-j]. */
LIN_INLINE void conv_dx(float *dx, const float *dy, const float *w, int t, int end, int T, int C, int K, int after,
                        int n)
{
    size_t stride = (size_t)C;
    const int lag = K - 1 - after;
    for (; t < end && t < after; t++) conv_dx_row(dx, dy, w, t, T, C, K, after, n);
    for (; n == LIN_WIDTH && t + 4 <= end && t + 4 + lag <= T; t += 4) {
        const size_t at = (size_t)t * stride;
        conv_four_rows(dx + at, dy + at, dy + at + (ptrdiff_t)stride * lag, -(ptrdiff_t)stride, w, (vf){0}, stride, K);
    }
    for (; t < end; t++) conv_dx_row(dx, dy, w, t, T, C, K, after, n);
}

/* Up to 8 sums over whole vectors, in registers: sums[j] += sum over t0 .. t1-1 of dy[t] x[t-lag+j]. */
LIN_INLINE void correlate(vf *sums, const float *dy, const float *x, int t0, int t1, int lag, size_t stride, int taps)
{
    vf sum[8];
    LIN_UNROLL
    for (int j = 0; j < taps; j++) sum[j] = sums[j];
    for (int t = t0; t < t1; t++) {
        const float *from = x + (size_t)(t - lag) * stride;
        vf up = vload(dy + (size_t)t * stride);
        LIN_UNROLL
        for (int j = 0; j < taps; j++) sum[j] = vfma(up, vload(from + (size_t)j * stride), sum[j]);
    }
    LIN_UNROLL
    for (int j = 0; j < taps; j++) sums[j] = sum[j];
}

/* conv_dw at a frame where some taps reach outside of the utterance. */
LIN_INLINE void conv_dw_row(vf *sums, const float *dy, const float *x, int t, int T, int lag, int taps, int C, int n)
{
    size_t stride = (size_t)C;
    vf up = vlanes(dy + (size_t)t * stride, 0, n);
    for (int j = 0; j < taps; j++)
        if (t - lag + j >= 0 && t - lag + j < T)
            sums[j] = vfma(up, vlanes(x + (size_t)(t - lag + j) * stride, 0, n), sums[j]);
}

/* dw[j] of up to 8 consecutive taps over frames t0 .. t1-1 of an utterance of T: += sum_t dy[t] x[t-lag+j]; lag, which may be
 * negative, is K-1-after minus the number of the first tap. */
LIN_INLINE void conv_dw(float *dw, const float *dy, const float *x, int t0, int t1, int T, int lag, int taps, int C,
                        int n)
{
    size_t stride = (size_t)C;
    const int inner = t1 < T + lag - taps + 1 ? t1 : T + lag - taps + 1; // frames lag .. inner-1 have all taps
    int t = t0;
    vf sums[8] = {{0}};
    for (; t < t1 && t < lag; t++) conv_dw_row(sums, dy, x, t, T, lag, taps, C, n);
    switch (n == LIN_WIDTH ? taps : 0) { // a constant number of taps keeps the sums in registers
    case 1: correlate(sums, dy, x, t, inner, lag, stride, 1); break;
    case 2: correlate(sums, dy, x, t, inner, lag, stride, 2); break;
    case 3: correlate(sums, dy, x, t, inner, lag, stride, 3); break;
    case 4: correlate(sums, dy, x, t, inner, lag, stride, 4); break;
    case 5: correlate(sums, dy, x, t, inner, lag, stride, 5); break;
    case 6: correlate(sums, dy, x, t, inner, lag, stride, 6); break;
    case 7: correlate(sums, dy, x, t, inner, lag, stride, 7); break;
    case 8: correlate(sums, dy, x, t, inner, lag, stride, 8); break;
    default:
        for (int i = t; i < inner; i++) conv_dw_row(sums, dy, x, i, T, lag, taps, C, n);
    }
    if (t < inner) t = inner;
    for (; t < t1; t++) conv_dw_row(sums, dy, x, t, T, lag, taps, C, n);
    for (int j = 0; j < taps; j++) {
        float *out = dw + (size_t)j * stride;
        vput_lanes(out, vlanes(out, 0, n) + sums[j], 0, n);
    }
}

/* dx of frames t0 .. t1-1 of an utterance of T frames, and their part of dw and db;
 * pointers are to the start of the utterance. */
void LIN_NAME(lin_conv_backward_rows)(float *dx, float *dw, float *db, const float *dy, const float *x, const float *w, int t0,
                                      int t1, int T, int C, int K, int after)
{
    for (int c = 0; c < C; c += LIN_WIDTH) {
        int n = C - c < LIN_WIDTH ? C - c : LIN_WIDTH;
        fetch_column(x + c, t0, t1 - t0, T, (size_t)C);
        fetch_column(dy + c, t0 + K - 1 - after, t1 - t0, T, (size_t)C);
        fetch_column_to_write(dx + c, t0, t1 - t0, T, (size_t)C);
        conv_dx(dx + c, dy + c, w + c, t0, t1, T, C, K, after, n);
        vf sum = {0};
        for (int t = t0; t < t1; t++) sum += vlanes(dy + (size_t)t * (size_t)C + c, 0, n);
        vput_lanes(db + c, vlanes(db + c, 0, n) + sum, 0, n);
        for (int j = 0; j < K; j += 8) {
            int taps = K - j < 8 ? K - j : 8;
            conv_dw(dw + (size_t)j * (size_t)C + c, dy + c, x + c, t0, t1, T, K - 1 - after - j, taps, C, n);
        }
    }
}

#ifdef LIN_ONCE
/* ---- threads --------------------------------------------------------------------------------------------------------------- */

enum { STRETCH = 64 }; // so many rows stay in the second-level cache while the columns are processed

typedef struct conv_job {
    float *y;
    const float *x, *w, *bias, *dy;
    const int *offsets;
    int B, C, K, after;
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
    assert(!tails || after == 0); // a stream has no later frames yet
    conv_job job = {.y = y, .x = x, .w = w, .bias = bias, .offsets = segments->offsets, .C = C, .K = K, .after = after,
                    .tails = tails, .at = at};
    lin_pool_run(lin_threads_for(exec, segments->rows, C, LIN_SMALL), segments->B, forward_piece, &job);
}

// Rows first .. end-1 of the batch, utterance by utterance.
static void backward_rows(const void *context, float *dw, float *db, int first, int end)
{
    const conv_job *job = context;
    for (int b = 0; b < job->B; b++) {
        int start = job->offsets[b], stop = job->offsets[b + 1] < end ? job->offsets[b + 1] : end,
            T = job->offsets[b + 1] - start;
        size_t at = (size_t)start * (size_t)job->C;
        for (int row = start > first ? start : first; row < stop; row += STRETCH)
            LIN_DISPATCH(lin_conv_backward_rows)(job->y + at, dw, db, job->dy + at, job->x + at, job->w, row - start,
                                                 (stop - row < STRETCH ? stop : row + STRETCH) - start, T, job->C, job->K,
                                                 job->after);
    }
}

void lin_cpu_conv_backward(lin_exec *exec, float *dx, float *dw, float *db, const float *dy, const float *x, const float *w,
                           const lin_segments *segments, int C, int K, int after)
{
    assert(lin_segments_hold(segments) && C > 0 && K >= 1 && after >= 0 && after < K);
    conv_job job = {
        .y = dx, .x = x, .w = w, .dy = dy, .offsets = segments->offsets, .B = segments->B, .C = C, .K = K, .after = after};
    lin_sum_rows(exec, backward_rows, &job, dw, (size_t)K * (size_t)C, db, (size_t)C, segments->rows, C, STRETCH);
}
#endif
