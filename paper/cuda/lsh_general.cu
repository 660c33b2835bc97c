// LSH attention for head widths without tiles in lsh.cu: a warp per frame, in its sorted order; correct for any E, but slow.
// The lanes of a warp own keys (or queries) for the scores and columns for the sums.
#include "paper/cuda/lsh.h"

enum { WARPS = 4, THREADS = 32 * WARPS };

static __device__ __forceinline__ float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum = fmaf(a[i], b[i], sum);
    return sum;
}

// The position of a warp; -1: none.
static __device__ __forceinline__ int position_of(const lsh_place &p)
{
    const int at = (int)blockIdx.y * WARPS + ((int)threadIdx.x >> 5);
    return at < p.T ? at : -1;
}

static __device__ __forceinline__ float score_of(const lsh_job &job, const lsh_place &p, int i, int j)
{
    if (i == j) return LSH_SELF_SCORE;
    return dot(job.qv + lsh_at(job, p, i, 0), job.qv + lsh_at(job, p, j, 0), job.E) * job.terms[2 * lsh_row(job, p, j)];
}

// sums [E] = sums * before + the sum over the lanes of weight * row; rows of lanes without weight are not read.
static __device__ __forceinline__ void add_rows(float *sums, float before, float weight, const float *row, int E, int lane)
{
    for (int e = lane; e - lane < E; e += 32) {
        float sum = e < E ? sums[e] * before : 0;
        for (int k = 0; k < 32; k++) {
            const float w = __shfl_sync(0xffffffffu, weight, k);
            const float *from = (const float *)__shfl_sync(0xffffffffu, (unsigned long long)(uintptr_t)row, k);
            if (w != 0 && e < E) sum = fmaf(w, from[e], sum);
        }
        if (e < E) sums[e] = sum;
    }
    __syncwarp();
}

static __global__ void __launch_bounds__(THREADS) forward_general(lsh_job job)
{
    LIN_SHARED(float, shared); // [WARPS, E]
    const lsh_place p = lsh_find(job);
    const int lane = (int)threadIdx.x & 31, at = position_of(p), E = job.E;
    float *sums = shared + ((int)threadIdx.x >> 5) * E, top = -INFINITY, sum = 0;
    if (at < 0) return;
    const int i = p.order[at], end = lsh_end(job, at, p.T);
    for (int e = lane; e < E; e += 32) sums[e] = 0;
    for (int from = lsh_from(job, at); from < end; from += 32) {
        const int j = from + lane < end ? p.order[from + lane] : i, seen = from + lane < end && (!job.causal || j <= i);
        const float score = seen ? score_of(job, p, i, j) : -INFINITY, most = fmaxf(top, lin_warp_max(score));
        if (most == -INFINITY) continue;
        const float weight = expf(score - most), before = expf(top - most);
        sum = fmaf(sum, before, lin_warp_sum(weight));
        add_rows(sums, before, weight, job.qv + lsh_at(job, p, j, 1), E, lane);
        top = most;
    }
    const size_t row = lsh_row(job, p, i);
    float lse = top + logf(sum), old = 0, fresh = 1;
    if (job.round > 0) lse = lsh_merge(job.lse[row], lse, &old, &fresh);
    for (int e = lane; e < E; e += 32) {
        const float before = job.round > 0 ? job.y[row * (size_t)E + (size_t)e] * old : 0;
        job.y[row * (size_t)E + (size_t)e] = fmaf(sums[e] / sum, fresh, before);
    }
    __syncwarp();
    if (lane == 0) job.lse[row] = lse;
}

// One pair: its probability and the gradient of its score; the score of a frame with itself is a constant.
static __device__ __forceinline__ float pair_gradient(const lsh_job &job, const lsh_place &p, int i, int j, float *probability,
                                                      float *score)
{
    const size_t row = lsh_row(job, p, i);
    *score = score_of(job, p, i, j);
    *probability = lsh_probability(job, *score, job.lse[row]);
    if (i == j) return 0;
    const float dp = dot(job.dy + row * (size_t)job.E, job.qv + lsh_at(job, p, j, 1), job.E);
    return *probability * (dp - job.terms[2 * row + 1]);
}

static __global__ void __launch_bounds__(THREADS) backward_general(lsh_job job)
{
    LIN_SHARED(float, shared); // [WARPS, 3, E]: dq as a query, dk, dv
    const lsh_place p = lsh_find(job);
    const int lane = (int)threadIdx.x & 31, at = position_of(p), E = job.E;
    float *dq = shared + ((int)threadIdx.x >> 5) * 3 * E, *dk = dq + E, *dv = dk + E, along = 0, probability, score;
    if (at < 0) return;
    const int i = p.order[at];
    for (int e = lane; e < 3 * E; e += 32) dq[e] = 0;
    __syncwarp();
    for (int from = lsh_from(job, at), end = lsh_end(job, at, p.T); from < end; from += 32) {
        const int j = from + lane < end ? p.order[from + lane] : i, seen = from + lane < end && (!job.causal || j <= i);
        float ds = seen ? pair_gradient(job, p, i, j, &probability, &score) : 0;
        ds *= job.terms[2 * lsh_row(job, p, j)];
        add_rows(dq, 1, ds, job.qv + lsh_at(job, p, j, 0), E, lane);
    }
    for (int from = at / job.chunk * job.chunk, end = lsh_seen_end(job, at, p.T); from < end; from += 32) {
        const int j = from + lane < end ? p.order[from + lane] : i, seen = from + lane < end && (!job.causal || i <= j);
        probability = score = 0;
        const float ds = seen ? pair_gradient(job, p, j, i, &probability, &score) : 0;
        add_rows(dv, 1, seen ? probability : 0, job.dy + lsh_row(job, p, j) * (size_t)E, E, lane);
        add_rows(dk, 1, ds, job.qv + lsh_at(job, p, j, 0), E, lane);
        along = fmaf(ds, score, along);
    }
    const float scale = job.terms[2 * lsh_row(job, p, i)], inverse = scale * sqrtf((float)E);
    along = inverse < LSH_MOST_INVERSE ? lin_warp_sum(along) * inverse * inverse : 0;
    for (int e = lane; e < E; e += 32) {
        float *to_q = job.dqv + lsh_at(job, p, i, 0) + e, *to_v = job.dqv + lsh_at(job, p, i, 1) + e;
        const float q = job.qv[lsh_at(job, p, i, 0) + (size_t)e], whole = dq[e] + dk[e] * scale - q * along;
        *to_q = job.round > 0 ? *to_q + whole : whole;
        *to_v = job.round > 0 ? *to_v + dv[e] : dv[e];
    }
}

static dim3 grid_of(const lsh_job &job, const lin_segments *segments)
{
    return dim3((unsigned)segments->B * (unsigned)job.H, lin_cuda_blocks((size_t)segments->longest, WARPS));
}

void lin_lsh_forward_general(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const size_t shared = WARPS * (size_t)job.E * sizeof(float);
    for (int i = 0; i < job.rounds; i++) {
        job.round = i;
        LIN_LAUNCH(exec, forward_general, grid_of(job, segments), THREADS, shared, job);
    }
}

void lin_lsh_backward_general(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const size_t shared = WARPS * 3 * (size_t)job.E * sizeof(float);
    for (int i = 0; i < job.rounds; i++) {
        job.round = i;
        LIN_LAUNCH(exec, backward_general, grid_of(job, segments), THREADS, shared, job);
    }
}
