// Softmax and log-softmax. 8 lanes process a row of typical width (V = 40), so that every load of a warp fills its sectors; it is
// read once.
#include <math.h>

#include "kernels/cuda/cuda.h"

enum { ROWS_THREADS = 256 };

// LANES lanes per row, N values in each. Safe in place: a lane writes only where it has read.
template <int LANES, int N> static __global__ void log_softmax_short(float *logp, const float *logits, int rows, int V)
{
    const int lane = (int)threadIdx.x % LANES;
    const size_t row = ((size_t)blockIdx.x * ROWS_THREADS + threadIdx.x) / LANES;
    const int inside = row < (size_t)rows; // lanes of rows past the end still take part in the shuffles
    const float *in = logits + (inside ? row : 0) * (size_t)V;
    float x[N], top = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int v = lane + i * LANES;
        x[i] = inside && v < V ? in[v] : -INFINITY;
        top = fmaxf(top, x[i]);
    }
    for (int o = LANES / 2; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
#pragma unroll
    for (int i = 0; i < N; i++)
        if (inside && lane + i * LANES < V) sum += expf(x[i] - top); // a NaN, which the maximum ignores, enters the sum here
    for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    const float norm = logf(sum);
#pragma unroll
    for (int i = 0; i < N; i++)
        if (inside && lane + i * LANES < V) logp[row * (size_t)V + (size_t)(lane + i * LANES)] = x[i] - top - norm;
}

// Any width, one warp per row, which is read three times.
static __global__ void log_softmax_long(float *logp, const float *logits, int rows, int V)
{
    const int lane = (int)(threadIdx.x & 31);
    const size_t row = ((size_t)blockIdx.x * ROWS_THREADS + threadIdx.x) / 32;
    if (row >= (size_t)rows) return; // the whole warp returns
    const float *in = logits + row * (size_t)V;
    float top = -INFINITY, sum = 0;
    for (int v = lane; v < V; v += 32) top = fmaxf(top, in[v]);
    top = lin_warp_max(top);
    for (int v = lane; v < V; v += 32) sum += expf(in[v] - top);
    const float norm = logf(lin_warp_sum(sum));
    for (int v = lane; v < V; v += 32) logp[row * (size_t)V + (size_t)v] = in[v] - top - norm;
}

template <int LANES, int N> static void launch_short(lin_exec *exec, float *logp, const float *logits, int rows, int V)
{
    const unsigned blocks = lin_cuda_blocks((size_t)rows, ROWS_THREADS / LANES);
    LIN_LAUNCH(exec, (log_softmax_short<LANES, N>), blocks, ROWS_THREADS, 0, logp, logits, rows, V);
}

void lin_cuda_log_softmax(lin_exec *exec, float *logp, const float *logits, int rows, int V)
{
    if (rows < 1 || V < 1) return;
    if (V <= 8) launch_short<8, 1>(exec, logp, logits, rows, V);
    else if (V <= 16) launch_short<8, 2>(exec, logp, logits, rows, V);
    else if (V <= 32) launch_short<8, 4>(exec, logp, logits, rows, V);
    else if (V <= 48) launch_short<8, 6>(exec, logp, logits, rows, V);
    else if (V <= 64) launch_short<8, 8>(exec, logp, logits, rows, V);
    else if (V <= 128) launch_short<16, 8>(exec, logp, logits, rows, V);
    else if (V <= 256) launch_short<32, 8>(exec, logp, logits, rows, V);
    else
        LIN_LAUNCH(exec, log_softmax_long, lin_cuda_blocks((size_t)rows, ROWS_THREADS / 32), ROWS_THREADS, 0, logp, logits, rows,
                   V);
}

/* ---- softmax, and its gradient: one warp per row --------------------------------------------------------------------------- */

static __global__ void exponentials(float *p, const float *logp, size_t count)
{
    const size_t i = (size_t)blockIdx.x * ROWS_THREADS + threadIdx.x;
    if (i < count) p[i] = expf(logp[i]);
}

void lin_cuda_softmax_rows(lin_exec *exec, float *p, const float *logits, int rows, int V)
{
    if (rows < 1 || V < 1) return;
    const size_t count = (size_t)rows * (size_t)V;
    lin_cuda_log_softmax(exec, p, logits, rows, V);
    LIN_LAUNCH(exec, exponentials, lin_cuda_blocks(count, ROWS_THREADS), ROWS_THREADS, 0, p, p, count);
}

// Safe in place: a lane writes only where it has read.
static __global__ void softmax_gradient(float *dlogits, const float *dp, const float *__restrict__ p, int rows, int V)
{
    const int lane = (int)(threadIdx.x & 31);
    const size_t row = ((size_t)blockIdx.x * ROWS_THREADS + threadIdx.x) / 32;
    if (row >= (size_t)rows) return; // the whole warp returns
    const size_t at = row * (size_t)V;
    float sum = 0;
    for (int v = lane; v < V; v += 32) sum = fmaf(p[at + (size_t)v], dp[at + (size_t)v], sum);
    sum = lin_warp_sum(sum);
    for (int v = lane; v < V; v += 32) dlogits[at + (size_t)v] = p[at + (size_t)v] * (dp[at + (size_t)v] - sum);
}

void lin_cuda_softmax_rows_backward(lin_exec *exec, float *dlogits, const float *dp, const float *p, int rows, int V)
{
    if (rows < 1 || V < 1) return;
    LIN_LAUNCH(exec, softmax_gradient, lin_cuda_blocks((size_t)rows, ROWS_THREADS / 32), ROWS_THREADS, 0, dlogits, dp, p, rows,
               V);
}

/* ---- label smoothing: one warp per row ------------------------------------------------------------------------------------- */

static __global__ void smooth(float *dlogits, const float *__restrict__ logp, int rows, int V, double part, const double *scale)
{
    const int lane = (int)(threadIdx.x & 31);
    const size_t row = ((size_t)blockIdx.x * ROWS_THREADS + threadIdx.x) / 32;
    if (row >= (size_t)rows) return; // the whole warp returns
    const size_t at = row * (size_t)V;
    const float keep = (float)(1 - part), share = (float)(part * *scale);
    float mean = 0;
    for (int v = lane; v < V; v += 32) mean = fmaf(expf(logp[at + (size_t)v]), logp[at + (size_t)v], mean);
    mean = lin_warp_sum(mean);
    for (int v = lane; v < V; v += 32) {
        const float x = logp[at + (size_t)v];
        dlogits[at + (size_t)v] = fmaf(expf(x) * share, x - mean, dlogits[at + (size_t)v] * keep);
    }
}

void lin_cuda_label_smoothing(lin_exec *exec, float *dlogits, const float *logp, int rows, int V, double part,
                              const double *scale)
{
    if (rows < 1 || V < 1) return;
    LIN_LAUNCH(exec, smooth, lin_cuda_blocks((size_t)rows, ROWS_THREADS / 32), ROWS_THREADS, 0, dlogits, logp, rows, V, part,
               scale);
}
