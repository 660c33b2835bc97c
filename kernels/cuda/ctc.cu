/*
 * ctc.cu - connectionist temporal classification (Graves et al. 2006).
 *
 * Two kernels. ctc_paths goes through the frames in order: one block computes alpha of an utterance forwards while another
 * computes beta backwards, and both store every frame's states in scratch. ctc_gradient, parallel over all frames, multiplies
 * them.
 *
 * Probabilities are pairs (m, e), value m 2^e, as on the CPU (kernels/cpu/ctc.c): they have the range of the log domain, but the
 * sums and products of a frame need no exponentials or logarithms of the states, and the error of thousands of frames is only
 * that of thousands of roundings. Mantissas are normalised to [1, 2) once per stretch of frames, within which they stay between
 * 2^-4 and 2^17. Zero is (0, ZERO). A NaN in logp stays a NaN in m and in the loss.
 *
 * A position u of the label sequence has two states: B[u], the blank before label u (u = U: after the last), and L[u], label u.
 *   alpha, frame t included:     B'[u] = (B[u] + L[u-1]) y_blank       L'[u] = (L[u] + B[u] + L[u-1] if it differs) y_label(u)
 *   beta,  frame t not included: B[u] = GB[u] + GL[u]                  L[u] = GL[u] + GB[u+1] + GL[u+1] if it differs
 * with G = beta y of frame t+1. d loss / d logit_v = y_v - sum of alpha beta / p over the states that emit v.
 *
 * The time of ctc_paths is the number of frames times the latency of one. So a thread keeps its positions in registers,
 * neighbours exchange theirs by shuffles, warps by one barrier per frame (none if one warp holds all), and log-probabilities are
 * loaded one stretch ahead. Sequences too long for that use memory (ctc_paths_long).
 */
#include <float.h>
#include <math.h>

#include "kernels/cuda/cuda.h"

enum {
    ZERO = -(1 << 29),
    STRETCH = 8,        // frames
    PATH_THREADS = 256, // of a block of ctc_paths, at most
    LONG_THREADS = 512,
    GRADIENT_THREADS = 256,
    GRADIENT_ROWS = 32, // of a block
};

typedef struct pair {
    float m;
    int e;
} pair;

// p of an utterance, for the gradient; path 0: no path exists.
typedef struct path_total {
    float inverse; // of the mantissa
    int exponent, path;
} path_total;

typedef struct ctc_job {
    const float *logp;
    const int *offsets, *labels, *label_offsets;
    double *loss;
    int first, V;              // of the launch: its utterances are numbered from `first`
    int most;                  // labels of an utterance
    int shift, threads, pitch; // position u is element (u % P) threads + u / P of a row of `pitch`, P = 1 << shift
    int4 *alpha, *beta;        // [rows of the launch, pitch]: m and e of B, of L; NULL where only the loss is wanted
    path_total *totals;        // [utterances of the launch]
    int2 *order;               // [utterances of the launch, most]: positions by label; the first of each has the count, others 0
} ctc_job;

// The data of the utterance that a block or a warp processes.
typedef struct utterance {
    int T, U;
    const float *logp; // [T, V]
    const int *labels; // [U]
    size_t row;        // of its first frame among the rows of the launch
} utterance;

static __device__ __forceinline__ utterance utterance_of(const ctc_job &job, int i)
{
    const int b = job.first + i, row = job.offsets[b], label = job.label_offsets[b];
    return {.T = job.offsets[b + 1] - row,
            .U = job.label_offsets[b + 1] - label,
            .logp = job.logp + (size_t)row * (size_t)job.V,
            .labels = job.labels + label,
            .row = (size_t)(row - job.offsets[job.first])};
}

/* ---- pairs ----------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ pair zero_pair(void)
{
    pair p = {0.0f, ZERO};
    return p;
}

// 2^d for d <= 127, 0 for d <= -127.
static __device__ __forceinline__ float power(int d) { return __int_as_float((max(d, -127) + 127) << 23); }

static __device__ __forceinline__ pair plus(pair a, pair b)
{
    pair y;
    y.e = max(a.e, b.e);
    y.m = fmaf(a.m, power(a.e - y.e), b.m * power(b.e - y.e));
    return y;
}

static __device__ __forceinline__ pair plus(pair a, pair b, pair c)
{
    pair y;
    y.e = max(max(a.e, b.e), c.e);
    y.m = fmaf(a.m, power(a.e - y.e), fmaf(b.m, power(b.e - y.e), c.m * power(c.e - y.e)));
    return y;
}

static __device__ __forceinline__ pair times(pair a, pair b)
{
    pair y = {a.m * b.m, max(a.e + b.e, (int)ZERO)};
    return y;
}

// The value with m normalised to [1, 2), or zero, or NaN. m is not negative.
static __device__ __forceinline__ pair tidy(pair a)
{
    const int up = (__float_as_int(a.m) >> 23) - 127;
    pair y = {a.m * __int_as_float((127 - up) << 23), a.m == 0.0f ? (int)ZERO : max(a.e + up, (int)ZERO)};
    return y;
}

// e^x for x <= 0 or slightly above. Finite x below -80000 are raised to it, so that no sum of exponents overflows.
static __device__ __forceinline__ pair exp_pair(float x)
{
    const float bounded = x < -80000.0f ? -80000.0f : x;
    const float shifted = fmaf(bounded, 1.44269504f, 12582912.0f), k = shifted - 12582912.0f; // rounded to the nearest integer
    // ln 2 in three parts; the first two are short enough that their product with k is exact for all |k| < 2^17.
    float r = fmaf(k, -0x1.6p-1f, bounded);
    r = fmaf(k, -0x1.7p-8f, r);
    r = fmaf(k, -0x1.0bfbe8p-15f, r);
    pair y = {expf(r), __float_as_int(shifted) - 0x4B400000};
    if (x < -FLT_MAX) y = zero_pair();
    if (!(x <= FLT_MAX)) y.e = 0; // a NaN
    return y;
}

/* ---- shared by both forms of the paths ------------------------------------------------------------------------------------- */

// Whether the labels fit into the frames: one frame each, and a blank between equal ones. The same in all threads.
static __device__ __forceinline__ int has_path(const utterance &a, int *shared)
{
    if (a.U > a.T) return 0; // the labels are not read
    int repeats = 0;
    for (int u = 1 + (int)threadIdx.x; u < a.U; u += (int)blockDim.x) repeats += a.labels[u] == a.labels[u - 1];
    return a.U + lin_block_sum(repeats, shared, blockDim.x / 32) <= a.T;
}

// Sorts positions by their labels, so that the gradient of a label is a sum over neighbours, in a fixed order. The rank of a
// position is the number of positions before it: U^2 comparisons, divided among all threads, take little time compared with the
// frames.
static __device__ __forceinline__ void sort_positions(int2 *order, const utterance &a)
{
    for (int u = (int)threadIdx.x; u < a.U; u += (int)blockDim.x) {
        const int label = a.labels[u];
        int less = 0, equal = 0, before = 0;
        for (int i = 0; i < a.U; i++) {
            const int other = a.labels[i];
            less += other < label;
            equal += other == label;
            before += other == label && i < u;
        }
        order[less + before] = make_int2(u, before ? 0 : equal);
    }
}

static __device__ __forceinline__ void report_no_path(const ctc_job &job)
{
    if (threadIdx.x) return;
    path_total none = {0, 0, 0};
    job.loss[job.first + (int)blockIdx.x] = -1;
    job.totals[blockIdx.x] = none;
}

// p is the probability of ending in the last blank or the last label. Called by one thread.
static __device__ __forceinline__ void report_loss(const ctc_job &job, pair blank, pair label)
{
    const int e = max(blank.e, label.e);
    const double p = (double)blank.m * (double)power(blank.e - e) + (double)label.m * (double)power(label.e - e);
    path_total total = {(float)(1 / p), e, 1};
    double loss = 0 - (log(p) + e * 0.69314718055994530942);
    if (p == 0 || (p == p && e <= ZERO / 2)) {
        loss = -1;
        total.path = 0;
    }
    job.loss[job.first + (int)blockIdx.x] = loss;
    job.totals[blockIdx.x] = total;
}

static __device__ __forceinline__ int4 packed(pair b, pair l)
{
    return make_int4(__float_as_int(b.m), b.e, __float_as_int(l.m), l.e);
}

static __device__ __forceinline__ pair unpacked(int m, int e)
{
    pair p = {__int_as_float(m), e};
    return p;
}

/* ---- along the frames, states in registers --------------------------------------------------------------------------------- */

// Log-probabilities of a stretch of frames: of the blank and of a thread's P labels.
template <int P> struct stretch_logp {
    float blank[STRETCH], label[STRETCH][P];
};

// Frames f .. f+STRETCH-1 of the pass, which goes forwards or backwards in time. label -1: a position without a label.
template <int P>
static __device__ __forceinline__ void fetch_stretch(stretch_logp<P> &to, const utterance &a, int f, int backwards, int V,
                                                     const int (&label)[P])
{
#pragma unroll
    for (int k = 0; k < STRETCH; k++) {
        const int in = f + k < a.T, t = backwards ? a.T - 1 - f - k : f + k;
        const float *row = a.logp + (size_t)(in ? t : 0) * (size_t)V;
        to.blank[k] = in ? row[0] : 0.0f;
#pragma unroll
        for (int i = 0; i < P; i++) to.label[k][i] = in && label[i] >= 0 ? row[label[i]] : -INFINITY;
    }
}

// Advances alpha by one frame in place; left: L of the position before the thread's first.
template <int P>
static __device__ __forceinline__ void alpha_frame(pair (&B)[P], pair (&L)[P], pair left, const int (&skips)[P], float blank,
                                                   const float (&label)[P])
{
    const pair y = exp_pair(blank);
#pragma unroll
    for (int i = P - 1; i >= 0; i--) { // downwards: L[i-1] must still be the previous frame's
        const pair before = i ? L[i > 0 ? i - 1 : 0] : left;
        pair skip = before;
        if (!skips[i]) skip = zero_pair();
        L[i] = times(plus(L[i], B[i], skip), exp_pair(label[i]));
        B[i] = times(plus(B[i], before), y);
    }
}

// One frame of beta: B and L receive it; GB and GL receive the values for the previous frame. right_B, right_L: G of the position
// after the thread's last.
template <int P>
static __device__ __forceinline__ void beta_frame(pair (&B)[P], pair (&L)[P], pair (&GB)[P], pair (&GL)[P], pair right_B,
                                                  pair right_L, const int (&skips)[P], float blank, const float (&label)[P])
{
    const pair y = exp_pair(blank);
#pragma unroll
    for (int i = 0; i < P; i++) {
        const pair next_B = i + 1 < P ? GB[i + 1 < P ? i + 1 : i] : right_B;
        pair skip = i + 1 < P ? GL[i + 1 < P ? i + 1 : i] : right_L;
        if (!skips[i]) skip = zero_pair();
        B[i] = plus(GB[i], GL[i]);
        L[i] = plus(GL[i], next_B, skip);
        GB[i] = times(B[i], y);
        GL[i] = times(L[i], exp_pair(label[i]));
    }
}

// Shared memory: the border positions that warps exchange, for two frames alternately; then one int per warp; then the two states
// in which paths end.
static size_t paths_shared(unsigned threads) { return threads / 32 * (2 * sizeof(int4) + sizeof(int)) + sizeof(int4) + 16; }

template <int P, int MANY> static __device__ void walk_alpha(const ctc_job &job, const utterance &a, int4 *borders, int4 *ends)
{
    const int q = (int)threadIdx.x, lane = q % 32, warp = q / 32, n_warps = (int)blockDim.x / 32;
    int label[P], skips[P];
    pair B[P], L[P];
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int u = q * P + i;
        label[i] = u < a.U ? a.labels[u] : -1;
        skips[i] = u >= 1 && u < a.U && a.labels[u] != a.labels[u - 1];
        B[i] = L[i] = zero_pair();
        if (u == 0) B[i].m = 1, B[i].e = 0; // before the first frame: at the first blank with probability 1
    }
    if (MANY) {
        if (lane == 31) borders[n_warps + warp] = packed(B[P - 1], L[P - 1]);
        __syncthreads();
    }
    stretch_logp<P> now, ahead;
    fetch_stretch(ahead, a, 0, 0, job.V, label);
    for (int f = 0; f < a.T; f += STRETCH) {
        now = ahead;
        fetch_stretch(ahead, a, f + STRETCH, 0, job.V, label);
#pragma unroll
        for (int k = 0; k < STRETCH; k++) {
            if (f + k >= a.T) break;
            pair left = {__shfl_up_sync(0xffffffffu, L[P - 1].m, 1), __shfl_up_sync(0xffffffffu, L[P - 1].e, 1)};
            if (lane == 0) {
                left = zero_pair();
                if (MANY && warp) {
                    const int4 border = borders[((k + 1) % 2) * n_warps + warp - 1];
                    left = unpacked(border.z, border.w);
                }
            }
            alpha_frame(B, L, left, skips, now.blank[k], now.label[k]);
            if (k == STRETCH - 1) {
#pragma unroll
                for (int i = 0; i < P; i++) {
                    B[i] = tidy(B[i]);
                    L[i] = tidy(L[i]);
                }
            }
            if (job.alpha) {
                int4 *row = job.alpha + (a.row + (size_t)(f + k)) * (size_t)job.pitch;
#pragma unroll
                for (int i = 0; i < P; i++)
                    if (q * P + i <= a.U) row[i * job.threads + q] = packed(B[i], L[i]);
            }
            if (MANY) {
                if (lane == 31) borders[(k % 2) * n_warps + warp] = packed(B[P - 1], L[P - 1]);
                __syncthreads();
            }
        }
    }
#pragma unroll
    for (int i = 0; i < P; i++) { // the last blank is at position U, the last label at the one before
        if (q * P + i == a.U) ends->x = __float_as_int(B[i].m), ends->y = B[i].e;
        if (q * P + i == a.U - 1) ends->z = __float_as_int(L[i].m), ends->w = L[i].e;
    }
    __syncthreads();
    if (q == 0) report_loss(job, unpacked(ends->x, ends->y), a.U > 0 ? unpacked(ends->z, ends->w) : zero_pair());
}

template <int P, int MANY> static __device__ void walk_beta(const ctc_job &job, const utterance &a, int4 *borders)
{
    const int q = (int)threadIdx.x, lane = q % 32, warp = q / 32, n_warps = (int)blockDim.x / 32;
    int label[P], skips[P];
    pair B[P], L[P], GB[P], GL[P];
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int u = q * P + i;
        label[i] = u < a.U ? a.labels[u] : -1;
        skips[i] = u + 1 < a.U && a.labels[u + 1] != a.labels[u];
        GB[i] = GL[i] = zero_pair();
        if (u == a.U) GB[i].m = 1, GB[i].e = 0; // after the last frame: at the last blank with probability 1
    }
    if (MANY) {
        if (lane == 0) borders[n_warps + warp] = packed(GB[0], GL[0]);
        __syncthreads();
    }
    stretch_logp<P> now, ahead;
    fetch_stretch(ahead, a, 0, 1, job.V, label);
    for (int f = 0; f < a.T; f += STRETCH) {
        now = ahead;
        fetch_stretch(ahead, a, f + STRETCH, 1, job.V, label);
#pragma unroll
        for (int k = 0; k < STRETCH; k++) {
            if (f + k >= a.T) break;
            pair right_B = {__shfl_down_sync(0xffffffffu, GB[0].m, 1), __shfl_down_sync(0xffffffffu, GB[0].e, 1)};
            pair right_L = {__shfl_down_sync(0xffffffffu, GL[0].m, 1), __shfl_down_sync(0xffffffffu, GL[0].e, 1)};
            if (lane == 31) {
                right_B = right_L = zero_pair();
                if (MANY && warp + 1 < n_warps) {
                    const int4 border = borders[((k + 1) % 2) * n_warps + warp + 1];
                    right_B = unpacked(border.x, border.y);
                    right_L = unpacked(border.z, border.w);
                }
            }
            beta_frame(B, L, GB, GL, right_B, right_L, skips, now.blank[k], now.label[k]);
            int4 *row = job.beta + (a.row + (size_t)(a.T - 1 - f - k)) * (size_t)job.pitch;
#pragma unroll
            for (int i = 0; i < P; i++) {
                if (q * P + i <= a.U) row[i * job.threads + q] = packed(B[i], L[i]);
                if (k == STRETCH - 1) {
                    GB[i] = tidy(GB[i]);
                    GL[i] = tidy(GL[i]);
                }
            }
            if (MANY) {
                if (lane == 0) borders[(k % 2) * n_warps + warp] = packed(GB[0], GL[0]);
                __syncthreads();
            }
        }
    }
}

// blockIdx.x: the utterance; y: 0 alpha and the loss, 1 beta and the order of positions. P positions per thread; MANY: several
// warps.
template <int P, int MANY> static __global__ void __launch_bounds__(PATH_THREADS) ctc_paths(ctc_job job)
{
    LIN_SHARED(int4, borders);
    int4 *ends = borders + 2 * (blockDim.x / 32);
    const utterance a = utterance_of(job, (int)blockIdx.x);
    if (!has_path(a, (int *)(ends + 1))) {
        if (blockIdx.y == 0) report_no_path(job);
        return;
    }
    if (blockIdx.y == 0) {
        walk_alpha<P, MANY>(job, a, borders, ends);
    } else {
        sort_positions(job.order + (size_t)blockIdx.x * (size_t)job.most, a);
        walk_beta<P, MANY>(job, a, borders);
    }
}

/* ---- along the frames, states in memory ------------------------------------------------------------------------------------ */

// A sequence of any length: the previous frame's states are read from memory. keep: the states of every frame are kept, else two
// rows.
static __global__ void __launch_bounds__(LONG_THREADS) ctc_paths_long(ctc_job job, int keep)
{
    LIN_SHARED(int, shared);
    const utterance a = utterance_of(job, (int)blockIdx.x);
    const size_t pitch = (size_t)job.pitch, first = keep ? a.row : 2 * (size_t)blockIdx.x;
    if (!has_path(a, shared)) {
        if (blockIdx.y == 0) report_no_path(job);
        return;
    }
    int4 *states = (blockIdx.y ? job.beta : job.alpha) + first * pitch;
    if (blockIdx.y) sort_positions(job.order + (size_t)blockIdx.x * (size_t)job.most, a);
    for (int f = 0; f < a.T; f++) {
        const int t = blockIdx.y ? a.T - 1 - f : f, from = blockIdx.y ? t + 1 : t - 1;
        const int4 *before = states + (size_t)(keep ? from : from & 1) * pitch; // not read in the first frame
        int4 *now = states + (size_t)(keep ? t : t & 1) * pitch;
        const float *row = a.logp + (size_t)(blockIdx.y ? from : t) * (size_t)job.V; // beta: the next frame's
        for (int u = (int)threadIdx.x; u <= a.U; u += LONG_THREADS) {
            const int has_label = u < a.U, label = has_label ? a.labels[u] : 0;
            pair B = zero_pair(), L = zero_pair(), next_B = zero_pair(), next_L = zero_pair();
            if (blockIdx.y == 0) {
                if (f > 0) {
                    const int4 own = before[u];
                    B = unpacked(own.x, own.y);
                    L = unpacked(own.z, own.w);
                    if (u) next_L = unpacked(before[u - 1].z, before[u - 1].w);
                } else if (u == 0) {
                    B.m = 1;
                    B.e = 0;
                }
                const pair into_B = plus(B, next_L);
                if (!(has_label && u && label != a.labels[u - 1])) next_L = zero_pair();
                const pair into_L = plus(L, B, next_L);
                B = tidy(times(into_B, exp_pair(row[0])));
                L = has_label ? tidy(times(into_L, exp_pair(row[label]))) : zero_pair();
            } else {
                if (f > 0) {
                    const int4 own = before[u];
                    const pair y = exp_pair(row[0]);
                    B = times(unpacked(own.x, own.y), y);
                    if (has_label) {
                        const int4 next = before[u + 1];
                        L = times(unpacked(own.z, own.w), exp_pair(row[label]));
                        next_B = times(unpacked(next.x, next.y), y);
                        if (u + 1 < a.U && a.labels[u + 1] != label)
                            next_L = times(unpacked(next.z, next.w), exp_pair(row[a.labels[u + 1]]));
                    }
                } else if (u == a.U) {
                    B.m = 1;
                    B.e = 0;
                } else if (u == a.U - 1) {
                    next_B.m = 1;
                    next_B.e = 0;
                }
                B = tidy(plus(B, L));
                L = tidy(plus(L, next_B, next_L));
            }
            now[u] = packed(B, L);
        }
        __syncthreads();
    }
    if (blockIdx.y || threadIdx.x) return;
    const int4 *last = states + (size_t)(keep ? a.T - 1 : (a.T - 1) & 1) * pitch;
    pair blank = {1, 0}, label = zero_pair(); // no frames: the empty path
    if (a.T > 0) blank = unpacked(last[a.U].x, last[a.U].y);
    if (a.U > 0) label = unpacked(last[a.U - 1].z, last[a.U - 1].w);
    report_loss(job, blank, label);
}

/* ---- the gradient ---------------------------------------------------------------------------------------------------------- */

// The share of the paths that pass through a state.
static __device__ __forceinline__ float share(int2 alpha, int2 beta, path_total total)
{
    return __int_as_float(alpha.x) * __int_as_float(beta.x) * total.inverse * power(alpha.y + beta.y - total.exponent);
}

// One warp per row, GRADIENT_ROWS rows of one utterance per block; tiles: of the longest utterance.
static __global__ void ctc_gradient(float *dlogits, ctc_job job, int tiles, const double *scale)
{
    const int i = (int)(blockIdx.x / (unsigned)tiles), lane = (int)(threadIdx.x % 32), V = job.V, P = 1 << job.shift;
    const utterance a = utterance_of(job, i);
    const path_total total = job.totals[i];
    const int2 *order = job.order + (size_t)i * (size_t)job.most;
    const float factor = (float)*scale;
    const int t0 = (int)(blockIdx.x % (unsigned)tiles) * GRADIENT_ROWS, t1 = min(t0 + GRADIENT_ROWS, a.T);
    for (int t = t0 + (int)(threadIdx.x / 32); t < t1; t += GRADIENT_THREADS / 32) {
        const float *logp = a.logp + (size_t)t * (size_t)V;
        float *out = dlogits + (size_t)(logp - job.logp);
        if (!total.path) {
            for (int v = lane; v < V; v += 32) out[v] = 0;
            continue;
        }
        // As halves of states: element 2 j is B of state j, 2 j + 1 is L.
        const int2 *alpha = (const int2 *)(job.alpha + (a.row + (size_t)t) * (size_t)job.pitch);
        const int2 *beta = (const int2 *)(job.beta + (a.row + (size_t)t) * (size_t)job.pitch);
        float blank = 0;
        for (int k = 0; k < P; k++)
            for (int q = lane; q * P + k <= a.U; q += 32) {
                const int j = 2 * (k * job.threads + q);
                blank += share(alpha[j], beta[j], total);
            }
        blank = lin_warp_sum(blank);
        for (int v = lane; v < V; v += 32) out[v] = factor * (expf(logp[v]) - (v ? 0.0f : blank));
        __syncwarp(); // the code below writes elements that other lanes wrote
        for (int s = lane; s < a.U; s += 32) {
            const int n = order[s].y;
            if (!n) continue; // not the first of its label
            const int label = a.labels[order[s].x];
            float sum = 0;
            for (int k = 0; k < n; k++) {
                const int u = order[s + k].x, j = 2 * ((u & (P - 1)) * job.threads + (u >> job.shift)) + 1;
                sum += share(alpha[j], beta[j], total);
            }
            out[label] = factor * (expf(logp[label]) - sum);
        }
    }
}

/* ---- launching ------------------------------------------------------------------------------------------------------------- */

enum { LONG = -1 };

// Distributes positions over threads. Returns LONG, or whether several warps share an utterance.
static int spread_positions(ctc_job *job)
{
    const int n = job->most + 1;
    job->shift = n <= 32 ? 0 : n <= 2 * PATH_THREADS ? 1 : 2;
    job->threads = ((n + (1 << job->shift) - 1) / (1 << job->shift) + 31) / 32 * 32;
    if (job->threads > PATH_THREADS) {
        job->shift = 0;
        job->threads = job->pitch = n;
        return LONG;
    }
    job->pitch = job->threads << job->shift;
    return job->threads > 32;
}

static void launch_paths(lin_exec *exec, const ctc_job &job, int form, int n, int gradient)
{
    const dim3 grid((unsigned)n, gradient ? 2u : 1u);
    const unsigned threads = (unsigned)job.threads;
    if (form == LONG) LIN_LAUNCH(exec, ctc_paths_long, grid, LONG_THREADS, LONG_THREADS / 32 * sizeof(int), job, gradient);
    else if (job.shift == 0) LIN_LAUNCH(exec, (ctc_paths<1, 0>), grid, threads, paths_shared(threads), job);
    else if (form == 0) LIN_LAUNCH(exec, (ctc_paths<2, 0>), grid, threads, paths_shared(threads), job);
    else if (job.shift == 1) LIN_LAUNCH(exec, (ctc_paths<2, 1>), grid, threads, paths_shared(threads), job);
    else LIN_LAUNCH(exec, (ctc_paths<4, 1>), grid, threads, paths_shared(threads), job);
}

void lin_cuda_ctc(lin_exec *exec, double *loss, float *dlogits, const float *logp, const lin_segments *segments,
                  const int *labels, const int *label_offsets, int most_labels, int V, const double *scale)
{
    const int B = segments->B, longest = segments->longest < segments->rows ? segments->longest : segments->rows;
    if (B < 1) return;
    ctc_job job = {.logp = logp, .offsets = segments->offsets, .labels = labels, .label_offsets = label_offsets, .loss = loss,
                   .V = V, .most = most_labels < longest ? most_labels : longest}; // of utterances that have a path
    const int form = spread_positions(&job);
    const size_t row = (size_t)job.pitch * sizeof(int4);
    const size_t kept = sizeof(path_total) + (dlogits ? (size_t)job.most * sizeof(int2) : form == LONG ? 2 * row : 0);
    const size_t all = (dlogits ? 2 * row * (size_t)segments->rows : 0) + kept * (size_t)B;
    size_t each = (dlogits ? 2 * row * (size_t)longest : 0) + kept, group = (size_t)B;
    const size_t most = lin_cuda_most_scratch();
    if (all > most) group = each < most ? most / each : 1;
    if (group > (size_t)B) group = (size_t)B;
    size_t rows = group * (size_t)longest;
    if (rows > (size_t)segments->rows) rows = (size_t)segments->rows;
    if (!dlogits) rows = form == LONG ? 2 * group : 0;

    const size_t states = rows * row, orders = dlogits ? group * (size_t)job.most * sizeof(int2) : 0;
    unsigned char *scratch =
        (unsigned char *)lin_cuda_scratch(exec, (dlogits ? 2 : 1) * states + orders + group * sizeof(path_total));
    if (!scratch) return;
    job.alpha = rows ? (int4 *)scratch : NULL;
    job.beta = dlogits ? (int4 *)(scratch + states) : NULL;
    job.order = (int2 *)(scratch + (dlogits ? 2 : 1) * states);
    job.totals = (path_total *)(scratch + (dlogits ? 2 : 1) * states + orders);
    for (job.first = 0; job.first < B; job.first += (int)group) {
        const int n = B - job.first < (int)group ? B - job.first : (int)group;
        const int tiles = (longest + GRADIENT_ROWS - 1) / GRADIENT_ROWS;
        launch_paths(exec, job, form, n, dlogits != NULL);
        if (dlogits && tiles)
            LIN_LAUNCH(exec, ctc_gradient, (unsigned)n * (unsigned)tiles, GRADIENT_THREADS, 0, dlogits, job, tiles, scale);
    }
}

/* ---- the sum of the losses ------------------------------------------------------------------------------------------------- */

// One warp, which reads 32 losses at a time and adds them in order.
static __global__ void tally_up(lin_tally *tally, const double *loss, const int *offsets, const int *label_offsets, int B)
{
    const int lane = (int)threadIdx.x;
    double sum = 0;
    int bad = B;
    const int stopped = tally->bad;
    __syncwarp(); // before anything below is written
    if (stopped) return;
    for (int first = 0; first < B && bad == B; first += 32) {
        const int b = first + lane;
        double own = 0;
        if (b < B && label_offsets[b + 1] - label_offsets[b] <= offsets[b + 1] - offsets[b]) own = loss[b];
        const unsigned wrong = __ballot_sync(0xffffffffu, !isfinite(own) || own < 0);
        if (wrong) bad = first + __ffs((int)wrong) - 1;
        for (int i = 0; i < 32; i++) sum += __shfl_sync(0xffffffffu, own, i);
    }
    if (lane) return;
    if (bad == B) {
        tally->loss += sum;
    } else {
        tally->bad = LIN_BAD_LOSS;
        tally->bad_index = bad;
    }
}

void lin_cuda_tally_losses(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                           const int *label_offsets)
{
    if (segments->B > 0) LIN_LAUNCH(exec, tally_up, 1, 32, 0, tally, loss, segments->offsets, label_offsets, segments->B);
}
