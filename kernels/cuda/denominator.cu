/*
 * denominator.cu - the sum over all label sequences of an utterance (kernels/cpu/ctc.c has the recursions), one block
 * each.
 *
 * The frames' states are in scratch: alpha of all frames, then beta of two. Within a frame a thread has pairs of labels (b, c),
 * and neighbours read neighbouring trigrams, which all blocks read from the second-level cache. A frame's sum divides the next
 * one.
 */
#include <float.h>
#include <math.h>

#include "kernels/cuda/cuda.h"

enum { THREADS = 512 };

typedef struct denominator_job {
    double *sums, *loss;
    float *dlogits;
    const float *logp;
    const int *offsets, *label_offsets;
    lin_trigrams q;
    int first, V;
    double weight;
    const double *scale;
    float *rows; // [utterances of the launch, pitch]
    size_t pitch;
} denominator_job;

static __device__ __forceinline__ void read_frame(float *y, const float *logp, int V)
{
    __syncthreads();
    for (int v = (int)threadIdx.x; v < V; v += THREADS) y[v] = expf(logp[v]);
    __syncthreads();
}

// alpha of a frame from that of the one before, times `inverse`; returns its sum.
static __device__ float forward_frame(float *now, const float *before, const float *y, const denominator_job &job, float inverse,
                                      float *shared)
{
    const int V = job.V, S = V * V;
    float sum = 0;
    for (int i = (int)threadIdx.x; i < S; i += THREADS) {
        const int b = i / V, c = i - b * V;
        const float *B = before + b * V, *L = B + S, *next = job.q.next + (size_t)b * (size_t)S + c;
        const float blank = (before[i] + before[S + i]) * inverse * y[0];
        float to = 0;
        for (int a = 0; a < V; a++) to = fmaf(B[a] + L[a], next[(size_t)a * (size_t)V], to);
        for (int a = 0; a < V && c == b; a++) to = fmaf(B[a], job.q.again[b * V + a], to);
        const float label = c ? (to + before[S + c * V + b]) * inverse * y[c] : 0;
        now[i] = blank;
        now[S + c * V + b] = label;
        sum += blank + label;
    }
    return lin_block_sum(sum, shared, THREADS / 32);
}

// beta of a frame from that of the next one, times `inverse`, and the next one's y.
static __device__ float backward_frame(float *now, const float *after, const float *y, const denominator_job &job, float inverse,
                                       float *shared)
{
    const int V = job.V, S = V * V;
    float sum = 0;
    for (int i = (int)threadIdx.x; i < S; i += THREADS) {
        const int b = i / V, a = i - b * V;
        const float *back = job.q.back + (size_t)b * (size_t)S + a;
        float both = y[0] * after[i];
        for (int c = 1; c < V; c++) both = fmaf(y[c] * after[S + c * V + b], back[(size_t)c * (size_t)V], both);
        const float blank = (b ? fmaf(job.q.again[i], y[b] * after[S + b * V + b], both) : both) * inverse;
        const float label = b ? fmaf(y[b], after[S + i], both) * inverse : 0;
        now[i] = blank;
        now[S + i] = label;
        sum += blank + label;
    }
    return lin_block_sum(sum, shared, THREADS / 32);
}

// Adds the shares of a frame's outputs, minus their probabilities. shares: [V] of labels, then [V] of the blank. Returns false in
// all threads, and adds nothing, if their sum is subnormal or 0: shares have lost bits or are missing.
static __device__ bool add_shares(float *out, const float *alpha, const float *beta, const float *y, int V, float factor,
                                  float *shares)
{
    const int S = V * V, lane = (int)(threadIdx.x % 32);
    for (int v = (int)(threadIdx.x / 32); v < V; v += THREADS / 32) {
        float label = 0, blank = 0;
        for (int a = lane; a < V; a += 32) {
            const int i = v * V + a;
            blank = fmaf(alpha[i], beta[i], blank);
            label = fmaf(alpha[S + i], beta[S + i], label);
        }
        label = lin_warp_sum(label);
        blank = lin_warp_sum(blank);
        if (lane == 0) shares[v] = label, shares[V + v] = blank;
    }
    __syncthreads();
    float whole = 0, blank = 0;
    for (int v = 0; v < V; v++) blank += shares[V + v];
    for (int v = 1; v < V; v++) whole += shares[v];
    whole += blank;
    if (!(whole >= FLT_MIN)) return false;
    for (int v = (int)threadIdx.x; v < V; v += THREADS) out[v] += factor * ((v ? shares[v] : blank) / whole - y[v]);
    return true;
}

// Returns false in all threads if a frame's sum is not positive and finite.
static __device__ bool sum_utterance(const denominator_job &job, float *shared)
{
    const int b = job.first + (int)blockIdx.x, V = job.V, S = V * V, tid = (int)threadIdx.x;
    const int row = job.offsets[b], T = job.offsets[b + 1] - row, U = job.label_offsets[b + 1] - job.label_offsets[b];
    const float *logp = job.logp + (size_t)row * (size_t)V;
    float *rows = job.rows + (size_t)blockIdx.x * job.pitch, *y = shared + THREADS / 32, *shares = y + V;
    float *beta[2] = {rows + (size_t)(T + 1) * 2 * S, rows + (size_t)(T + 2) * 2 * S};
    double total = 0;
    float sum = 1;
    if (tid == 0) job.sums[b] = 0;
    if (U == 0 || U > T) return true;
    for (int i = tid; i < 2 * S; i += THREADS) rows[i] = i == 0;
    for (int t = 0; t < T; t++) {
        float *before = rows + (size_t)t * 2 * S;
        read_frame(y, logp + (size_t)t * (size_t)V, V);
        sum = forward_frame(before + 2 * S, before, y, job, 1 / sum, shared);
        if (!(sum > 0 && sum < INFINITY)) return false;
        total += log((double)sum);
    }
    const float *last = rows + (size_t)T * 2 * S;
    float ends = 0;
    __syncthreads();
    for (int i = tid; i < S; i += THREADS) {
        ends = fmaf(last[i] + last[S + i], job.q.end[i], ends);
        beta[0][i] = beta[0][S + i] = job.q.end[i];
    }
    ends = lin_block_sum(ends, shared, THREADS / 32) / sum;
    if (!(ends > 0)) return false;
    if (tid == 0) job.sums[b] = total + log((double)ends);
    const float factor = job.dlogits ? (float)(job.weight * *job.scale) : 0;
    float inverse = 1;
    for (int t = T; t-- > 0 && job.dlogits;) {
        const float *now = beta[(T - 1 - t) & 1];
        read_frame(y, logp + (size_t)t * (size_t)V, V);
        if (!add_shares(job.dlogits + (size_t)(row + t) * (size_t)V, rows + (size_t)(t + 1) * 2 * S, now, y, V, factor, shares))
            return false;
        if (t == 0) break;
        sum = backward_frame(beta[(T - t) & 1], now, y, job, inverse, shared);
        if (!(sum > 0 && sum < INFINITY)) return false;
        inverse = 1 / sum;
    }
    return true;
}

static __global__ void __launch_bounds__(THREADS) sum_sequences(denominator_job job)
{
    LIN_SHARED(float, shared);
    const int b = job.first + (int)blockIdx.x, row = job.offsets[b], end = job.offsets[b + 1];
    if (sum_utterance(job, shared)) return;
    __syncthreads(); // other threads may still be adding
    for (size_t i = (size_t)row * (size_t)job.V + threadIdx.x; job.dlogits && i < (size_t)end * (size_t)job.V; i += THREADS)
        job.dlogits[i] = NAN;
    if (threadIdx.x == 0) job.sums[b] = (double)NAN;
    if (threadIdx.x == 0 && job.loss) job.loss[b] = (double)NAN;
}

void lin_cuda_denominator(lin_exec *exec, double *sums, double *loss, float *dlogits, const float *logp,
                          const lin_segments *segments, const int *label_offsets, const lin_trigrams *trigrams, int V,
                          double weight, const double *scale)
{
    const int B = segments->B, longest = segments->longest < segments->rows ? segments->longest : segments->rows;
    if (B < 1) return;
    denominator_job job = {.sums = sums, .loss = loss, .dlogits = dlogits, .logp = logp, .offsets = segments->offsets,
                           .label_offsets = label_offsets, .q = *trigrams, .V = V, .weight = weight, .scale = scale,
                           .pitch = ((size_t)longest + 3) * 2 * (size_t)V * (size_t)V};
    size_t group = lin_cuda_most_scratch() / (job.pitch * sizeof(float));
    if (group < 1) group = 1;
    if (group > (size_t)B) group = (size_t)B;
    job.rows = (float *)lin_cuda_scratch(exec, group * job.pitch * sizeof(float));
    if (!job.rows) return;
    for (job.first = 0; job.first < B; job.first += (int)group) {
        const int n = B - job.first < (int)group ? B - job.first : (int)group;
        LIN_LAUNCH(exec, sum_sequences, n, THREADS, (THREADS / 32 + 3 * (size_t)V) * sizeof(float), job);
    }
}
