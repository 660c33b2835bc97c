// The depthwise convolution by its direct sum.
#include "tests/kernels/ref/ref.h"

// Input frame t of channel c; t < 0 reaches into the tail [K-1, C], whose last row is frame -1.
static double frame(const double *x, const double *tail, int t, int T, int c, int C, int K)
{
    if (t >= T) return 0;
    if (t >= 0) return x[(size_t)t * (size_t)C + (size_t)c];
    return tail ? tail[(size_t)(K - 1 + t) * (size_t)C + (size_t)c] : 0;
}

void lin_ref_conv_forward(lin_exec *exec, double *y, const double *x, const double *w, const double *bias,
                          const lin_segments *segments, int C, int K, int after, double *const *tails, size_t at)
{
    (void)exec;
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++) {
        int T = offsets[b + 1] - offsets[b];
        const double *in = x + (size_t)offsets[b] * (size_t)C;
        double *out = y + (size_t)offsets[b] * (size_t)C, *tail = tails && tails[b] ? tails[b] + at : NULL;
        for (int t = 0; t < T; t++)
            for (int c = 0; c < C; c++) {
                double sum = in[t * C + c] + bias[c];
                for (int j = 0; j < K; j++) sum += w[j * C + c] * frame(in, tail, t + after - K + 1 + j, T, c, C, K);
                out[t * C + c] = sum;
            }
        // The new tail's row r is frame T-K+1+r. Rows are filled upwards, and the row read, r + T >= r, is not yet overwritten.
        for (int r = 0; tail && r < K - 1; r++)
            for (int c = 0; c < C; c++) tail[r * C + c] = frame(in, tail, T - K + 1 + r, T, c, C, K);
    }
}

void lin_ref_conv_backward(lin_exec *exec, double *dx, double *dw, double *db, const double *dy, const double *x, const double *w,
                           const lin_segments *segments, int C, int K, int after)
{
    (void)exec;
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++) {
        int T = offsets[b + 1] - offsets[b];
        size_t base = (size_t)offsets[b] * (size_t)C;
        for (int t = 0; t < T; t++)
            for (int c = 0; c < C; c++) dx[base + (size_t)(t * C + c)] = dy[base + (size_t)(t * C + c)];
        for (int t = 0; t < T; t++)
            for (int c = 0; c < C; c++) {
                double up = dy[base + (size_t)(t * C + c)];
                db[c] += up;
                for (int j = 0; j < K; j++) {
                    int from = t + after - K + 1 + j;
                    if (from < 0 || from >= T) continue;
                    dw[j * C + c] += up * x[base + (size_t)(from * C + c)];
                    dx[base + (size_t)(from * C + c)] += up * w[j * C + c];
                }
            }
    }
}
