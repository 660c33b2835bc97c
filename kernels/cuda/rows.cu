// Operations on rows and elements: softmax and log-softmax, cross entropy, dropout and the gradient of ReLU, greedy decoding.
#include "kernels/cuda/cuda.h"

#include <math.h>

enum { THREADS = 256 };

/* ---- softmax and log-softmax ----------------------------------------------------------------------------------------------- */

// Softmax and log-softmax. 8 lanes process a row of typical width (V = 40), so that every load of a warp fills its sectors; it is
// read once.

// LANES lanes per row, N values in each. Safe in place: a lane writes only where it has read.
template <int LANES, int N> static __global__ void log_softmax_short(float *logp, const float *logits, int rows, int V)
{
    const int lane = (int)threadIdx.x % LANES;
    const size_t row = ((size_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
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
    const float norm = logf(lin_warp_sum<LANES>(sum));
#pragma unroll
    for (int i = 0; i < N; i++)
        if (inside && lane + i * LANES < V) logp[row * (size_t)V + (size_t)(lane + i * LANES)] = x[i] - top - norm;
}

// Any width, one warp per row, which is read three times.
static __global__ void log_softmax_long(float *logp, const float *logits, int rows, int V)
{
    const int lane = (int)(threadIdx.x & 31);
    const size_t row = ((size_t)blockIdx.x * THREADS + threadIdx.x) / 32;
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
    const unsigned blocks = lin_cuda_blocks((size_t)rows, THREADS / LANES);
    LIN_LAUNCH(exec, (log_softmax_short<LANES, N>), blocks, THREADS, 0, logp, logits, rows, V);
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
        LIN_LAUNCH(exec, log_softmax_long, lin_cuda_blocks((size_t)rows, THREADS / 32), THREADS, 0, logp, logits, rows,
                   V);
}

/* ---- softmax, and its gradient: one warp per row --------------------------------------------------------------------------- */

static __global__ void exponentials(float *p, const float *logp, size_t count)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) p[i] = expf(logp[i]);
}

void lin_cuda_softmax_rows(lin_exec *exec, float *p, const float *logits, int rows, int V)
{
    if (rows < 1 || V < 1) return;
    const size_t count = (size_t)rows * (size_t)V;
    lin_cuda_log_softmax(exec, p, logits, rows, V);
    LIN_LAUNCH(exec, exponentials, lin_cuda_blocks(count, THREADS), THREADS, 0, p, p, count);
}

// Safe in place: a lane writes only where it has read.
static __global__ void softmax_gradient(float *dlogits, const float *dp, const float *__restrict__ p, int rows, int V)
{
    const int lane = (int)(threadIdx.x & 31);
    const size_t row = ((size_t)blockIdx.x * THREADS + threadIdx.x) / 32;
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
    LIN_LAUNCH(exec, softmax_gradient, lin_cuda_blocks((size_t)rows, THREADS / 32), THREADS, 0, dlogits, dp, p, rows,
               V);
}

/* ---- cross entropy --------------------------------------------------------------------------------------------------------- */

// Cross entropy with a target per frame: a block per utterance for the losses, then a thread per element for the gradient,
// which may overwrite the log-probabilities. The sum of a loss has a fixed order: a thread's frames, then the threads.

static __global__ void __launch_bounds__(THREADS)
    sum_losses(double *__restrict__ loss, const float *__restrict__ logp, const int *__restrict__ offsets,
               const int *__restrict__ targets, int V)
{
    LIN_SHARED(double, sums);
    const int b = (int)blockIdx.x, tid = (int)threadIdx.x;
    double sum = 0;
    for (int t = offsets[b] + tid; t < offsets[b + 1]; t += THREADS)
        if (targets[t] >= 0) sum -= (double)logp[(size_t)t * (size_t)V + (size_t)targets[t]];
    sums[tid] = sum;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (tid < half) sums[tid] += sums[tid + half];
    }
    if (tid == 0) loss[b] = sums[0];
}

// dlogits may be logp.
static __global__ void __launch_bounds__(THREADS) gradient(float *dlogits, const float *logp, const int *__restrict__ targets,
                                                           const double *__restrict__ scale, size_t count, int V)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const size_t row = i / (size_t)V;
    const int target = targets[row], v = (int)(i - row * (size_t)V);
    dlogits[i] = target < 0 ? 0 : (float)*scale * (expf(logp[i]) - (v == target ? 1.0f : 0.0f));
}

void lin_cuda_cross_entropy(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments,
                            const int *targets, int V, const double *scale)
{
    const size_t count = (size_t)segments->rows * (size_t)V;
    if (segments->B == 0) return;
    LIN_LAUNCH(exec, sum_losses, segments->B, THREADS, THREADS * sizeof(double), loss, logp, segments->offsets, targets, V);
    if (!dlogits || count == 0) return;
    LIN_LAUNCH(exec, gradient, lin_cuda_blocks(count, THREADS), THREADS, 0, dlogits, logp, targets, scale, count, V);
}

/* ---- elements -------------------------------------------------------------------------------------------------------------- */

// Operations that treat every element alike, four elements per thread: one draw of 64 random bits gives the dropout of four.

typedef struct span {
    size_t count;
    int wide; // all pointers are aligned to 16 bytes
} span;

static __device__ __forceinline__ float4 load(const float *x, size_t group, span s)
{
    const size_t i = 4 * group;
    if (s.wide && i + 4 <= s.count) return *reinterpret_cast<const float4 *>(x + i);
    float4 v = make_float4(0, 0, 0, 0);
    if (i < s.count) v.x = x[i];
    if (i + 1 < s.count) v.y = x[i + 1];
    if (i + 2 < s.count) v.z = x[i + 2];
    if (i + 3 < s.count) v.w = x[i + 3];
    return v;
}

static __device__ __forceinline__ void store(float *y, float4 v, size_t group, span s)
{
    const size_t i = 4 * group;
    if (s.wide && i + 4 <= s.count) {
        *reinterpret_cast<float4 *>(y + i) = v;
        return;
    }
    if (i < s.count) y[i] = v.x;
    if (i + 1 < s.count) y[i + 1] = v.y;
    if (i + 2 < s.count) y[i + 2] = v.z;
    if (i + 3 < s.count) y[i + 3] = v.w;
}

// y = x + dropout(r), or y = dropout(r) if x is NULL. y may be x or r, so nothing here is __restrict__.
static __global__ void __launch_bounds__(THREADS) drop(float *y, const float *x, const float *r, span s, lin_cuda_mask mask)
{
    const size_t group = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (4 * group >= s.count) return;
    float4 v = load(r, group, s);
    if (mask.key) v = lin_cuda_drop4(v, lin_cuda_bits4(lin_cuda_draw_of(mask), group), mask);
    if (x) {
        const float4 a = load(x, group, s);
        v = make_float4(a.x + v.x, a.y + v.y, a.z + v.z, a.w + v.w);
    }
    store(y, v, group, s);
}

static __global__ void __launch_bounds__(THREADS) relu_gradient(float *dx, const float *dy, const float *y, span s, float scale)
{
    const size_t group = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (4 * group >= s.count) return;
    const float4 up = load(dy, group, s), out = load(y, group, s);
    store(dx,
          make_float4(out.x > 0 ? up.x * scale : 0, out.y > 0 ? up.y * scale : 0, out.z > 0 ? up.z * scale : 0,
                      out.w > 0 ? up.w * scale : 0),
          group, s);
}

static unsigned blocks_of(size_t count) { return lin_cuda_blocks((count + 3) / 4, THREADS); }

void lin_cuda_dropout(lin_exec *exec, float *y, const float *x, size_t count, const lin_dropout *dropout)
{
    const lin_cuda_mask mask = lin_cuda_mask_of(dropout);
    const span s = {count, lin_cuda_aligned(x, y)};
    if (count == 0 || (!mask.key && x == y)) return;
    LIN_LAUNCH(exec, drop, blocks_of(count), THREADS, 0, y, (const float *)NULL, x, s, mask);
}

void lin_cuda_add_dropout(lin_exec *exec, float *y, const float *x, const float *r, size_t count, const lin_dropout *dropout)
{
    const span s = {count, lin_cuda_aligned(x, y, r)};
    if (count == 0) return;
    LIN_LAUNCH(exec, drop, blocks_of(count), THREADS, 0, y, x, r, s, lin_cuda_mask_of(dropout));
}

void lin_cuda_relu_backward(lin_exec *exec, float *dx, const float *dy, const float *y, size_t count, double scale)
{
    const span s = {count, lin_cuda_aligned(dx, dy, y)};
    if (count == 0) return;
    LIN_LAUNCH(exec, relu_gradient, blocks_of(count), THREADS, 0, dx, dy, y, s, (float)scale);
}

/* ---- greedy decoding ------------------------------------------------------------------------------------------------------- */

// Greedy CTC decoding of many streams (Graves et al. 2006, section 3.2), with the phones, frames and confidences of
// decoder/search. One warp per utterance. First it finds the best labels of up to 32 rows, which are independent; then all lanes
// process these rows in order, each with the same state.

enum { GREEDY_THREADS = 128 };

// Index and value of the largest of a row, the first of equals, in all lanes; -1 if one is NaN or the largest is infinite.
static __device__ __forceinline__ int best_of(const float *row, int V, float *value)
{
    const int lane = (int)(threadIdx.x % 32);
    float top = lane < V ? row[lane] : -INFINITY;
    int best = lane < V ? lane : V, ordered = top == top;
    for (int v = lane + 32; v < V; v += 32) {
        const float x = row[v];
        ordered &= x == x;
        if (x > top) {
            top = x;
            best = v;
        }
    }
    for (int o = 16; o; o /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, top, o);
        const int its = __shfl_xor_sync(0xffffffffu, best, o);
        if (other > top || (other == top && its < best)) {
            top = other;
            best = its;
        }
    }
    *value = top;
    return __all_sync(0xffffffffu, ordered) && isfinite(top) ? best : -1;
}

static __global__ void greedy_utterances(lin_phone *phones, int *n_phones, const float *logp, const int *offsets, int B, int V,
                                         lin_run *runs, const int *slots)
{
    const int lane = (int)(threadIdx.x % 32);
    const size_t b = ((size_t)blockIdx.x * GREEDY_THREADS + threadIdx.x) / 32;
    if (b >= (size_t)B) return; // the whole warp returns
    const int slot = slots[b], first = offsets[b], end = offsets[b + 1];
    if (slot < 0) {
        if (lane == 0) n_phones[b] = 0;
        return;
    }
    lin_run run = runs[slot];
    int n = 0;
    for (int row0 = first; row0 < end && n >= 0; row0 += 32) {
        const int rows = min(32, end - row0);
        int label = 0; // of row row0 + lane
        float logp_of_label = 0;
        for (int i = 0; i < rows; i++) {
            float value;
            const int best = best_of(logp + (size_t)(row0 + i) * (size_t)V, V, &value);
            if (lane == i) {
                label = best;
                logp_of_label = value;
            }
        }
        if (__any_sync(0xffffffffu, label < 0)) {
            n = -1;
            break;
        }
        for (int i = 0; i < rows; i++) {
            const int now = __shfl_sync(0xffffffffu, label, i);
            const float value = __shfl_sync(0xffffffffu, logp_of_label, i);
            if (now != run.label) {
                if (run.label > 0 && !run.emitted) {
                    const double mean = run.sum_logp / (double)(run.frame - run.start);
                    if (lane == 0) {
                        const lin_phone phone = {run.label, (float)exp(mean < 0 ? mean : 0), run.start, run.frame};
                        phones[(size_t)first + (size_t)n] = phone;
                    }
                    n++;
                }
                run.label = now;
                run.emitted = 0;
                run.start = run.frame;
                run.sum_logp = 0;
            }
            run.sum_logp += (double)value;
            run.frame++;
        }
    }
    if (lane) return;
    n_phones[b] = n;
    if (n >= 0) runs[slot] = run;
}

void lin_cuda_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const float *logp, const lin_segments *segments, int V,
                     lin_run *runs, const int *slots)
{
    if (segments->B < 1) return;
    LIN_LAUNCH(exec, greedy_utterances, lin_cuda_blocks((size_t)segments->B, GREEDY_THREADS / 32), GREEDY_THREADS, 0, phones,
               n_phones, logp, segments->offsets, segments->B, V, runs, slots);
}
