// LSH attention: buckets, and the frames of each utterance, head and round sorted by them; see lsh.h.
#include <limits.h>

#include "paper/cuda/lsh.h"

enum { WARPS = 8, THREADS = 32 * WARPS, WINDOW = 1024, FRAMES = 32 /* of a block of `hash` */ };

typedef struct sort_job {
    int *order, *buckets; // [rounds, H, rows]
    const float *qv, *R;
    const int *offsets;
    lin_lsh lsh;
    int rows, H, E;
} sort_job;

// Columns of R that an utterance of T frames uses: half of its buckets.
static __device__ __forceinline__ int columns_of(const sort_job &job, int T)
{
    const long long most = ((long long)T + 2 * (long long)job.lsh.chunk - 1) / (2 * (long long)job.lsh.chunk);
    return most < job.lsh.rotations ? (int)most : job.lsh.rotations;
}

// The largest of two values, on a tie that of the lower bucket.
static __device__ __forceinline__ void choose(float &best, int &bucket, float value, int other)
{
    if (value > best || (value == best && other < bucket)) best = value, bucket = other;
}

// A warp finds the bucket of one frame after another; its lanes own columns of R. Products of fp32 in all precisions.
static __global__ void __launch_bounds__(THREADS) hash(sort_job job)
{
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H), round = (int)blockIdx.z;
    const int first = job.offsets[b], T = job.offsets[b + 1] - first, columns = columns_of(job, T);
    const int warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31, end = min(T, ((int)blockIdx.y + 1) * FRAMES);
    const size_t matrix = (size_t)round * (size_t)job.H + (size_t)h, E = (size_t)job.E, across = (size_t)job.lsh.rotations;
    const float *R = job.R + matrix * E * across;
    for (int t = (int)blockIdx.y * FRAMES + warp; t < end; t += WARPS) {
        const float *q = job.qv + ((size_t)(first + t) * 2 * (size_t)job.H + (size_t)h) * E;
        float best = -INFINITY;
        int bucket = INT_MAX;
        for (int c = lane; c < columns; c += 32) {
            float value = 0;
            for (size_t e = 0; e < E; e++) value = fmaf(q[e], R[e * across + (size_t)c], value);
            choose(best, bucket, value, c);
            choose(best, bucket, -value, columns + c);
        }
        for (int o = 16; o; o >>= 1) {
            const float value = __shfl_xor_sync(0xffffffffu, best, o);
            choose(best, bucket, value, __shfl_xor_sync(0xffffffffu, bucket, o));
        }
        if (lane == 0) job.buckets[matrix * (size_t)job.rows + (size_t)(first + t)] = bucket == INT_MAX ? 0 : bucket;
    }
}

// The lanes with the same bucket, of the lanes that have one in 0 .. 2^bits - 1.
static __device__ __forceinline__ unsigned same_bucket(int bucket, int has, int bits)
{
    unsigned same = __ballot_sync(0xffffffffu, has);
    for (int i = 0; i < bits; i++) {
        const unsigned ones = __ballot_sync(0xffffffffu, bucket >> i & 1);
        same &= bucket >> i & 1 ? ones : ~ones;
    }
    return same;
}

// Counts, or moves, the frames of a warp's stretch whose buckets are in the window; counts [WINDOW, WARPS].
template <int MOVE>
static __device__ __forceinline__ void walk(int *order, const int *buckets, int *counts, int T, int window, int bits, int warp,
                                            int lane)
{
    const int stretch = (T + THREADS - 1) / THREADS * 32, end = min(T, (warp + 1) * stretch);
    for (int from = warp * stretch; from < end; from += 32) {
        const int t = from + lane, bucket = t < end ? buckets[t] - window : -1, has = bucket >= 0 && bucket < WINDOW;
        const unsigned same = same_bucket(bucket, has, bits);
        int *count = has ? &counts[bucket * WARPS + warp] : NULL;
        const int begun = has ? *count : 0;
        __syncwarp();
        if (has && (same & ((1u << lane) - 1)) == 0) *count = begun + __popc(same);
        if (MOVE && has) order[begun + __popc(same & ((1u << lane) - 1))] = t;
        __syncwarp();
    }
}

// Replaces the counts by the sums of those before each, beginning with `begun`; returns the sum of all.
static __device__ __forceinline__ int sum_counts(int *counts, int *sums, int begun)
{
    enum { OWN = WINDOW * WARPS / THREADS };
    const int tid = (int)threadIdx.x, lane = tid & 31;
    int sum = 0;
    for (int i = 0; i < OWN; i++) sum += counts[tid * OWN + i];
    int before = sum;
    for (int o = 1; o < 32; o *= 2) {
        const int lower = __shfl_up_sync(0xffffffffu, before, o);
        if (lane >= o) before += lower;
    }
    if (lane == 31) sums[tid >> 5] = before;
    __syncthreads();
    before += begun - sum;
    for (int w = 0; w < WARPS; w++) {
        if (w < tid >> 5) before += sums[w];
        begun += sums[w];
    }
    for (int i = 0; i < OWN; i++) {
        const int count = counts[tid * OWN + i];
        counts[tid * OWN + i] = before;
        before += count;
    }
    __syncthreads();
    return begun;
}

// Stable: the warps own stretches of the frames, and the places of a bucket are given out by warp, then by frame. Buckets are
// counted a window at a time, which bounds the shared memory.
static __global__ void __launch_bounds__(THREADS) sort(sort_job job)
{
    LIN_SHARED(int, counts); // [WINDOW, WARPS], then sums [WARPS]
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H), tid = (int)threadIdx.x;
    const int first = job.offsets[b], T = job.offsets[b + 1] - first, n_buckets = 2 * columns_of(job, T);
    const size_t at = ((size_t)blockIdx.y * (size_t)job.H + (size_t)h) * (size_t)job.rows + (size_t)first;
    int bits = 1, begun = 0;
    while (bits < 10 && 1 << bits < n_buckets) bits++;
    for (int window = 0; window < n_buckets; window += WINDOW) {
        for (int i = tid; i < WINDOW * WARPS; i += THREADS) counts[i] = 0;
        __syncthreads();
        walk<0>(NULL, job.buckets + at, counts, T, window, bits, tid >> 5, tid & 31);
        __syncthreads();
        begun = sum_counts(counts, counts + WINDOW * WARPS, begun);
        walk<1>(job.order + at, job.buckets + at, counts, T, window, bits, tid >> 5, tid & 31);
        __syncthreads();
    }
}

void lin_lsh_sort(lin_exec *exec, int *order, const float *qv, const float *R, const lin_segments *segments, const lin_lsh *lsh,
                  int H, int E)
{
    const size_t count = (size_t)lsh->rounds * (size_t)H * (size_t)segments->rows;
    sort_job job = {order, NULL, qv, R, segments->offsets, *lsh, segments->rows, H, E};
    job.buckets = (int *)lin_cuda_scratch(exec, count * sizeof *job.buckets);
    if (!job.buckets) return;
    const unsigned heads = (unsigned)segments->B * (unsigned)H, rounds = (unsigned)lsh->rounds;
    LIN_LAUNCH(exec, hash, dim3(heads, lin_cuda_blocks((size_t)segments->longest, FRAMES), rounds), THREADS, 0, job);
    LIN_LAUNCH(exec, sort, dim3(heads, rounds), THREADS, (WINDOW + 1) * WARPS * sizeof(int), job);
}

/* ---- what the passes need of each frame ------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(THREADS) find_terms(float *terms, lsh_job job, size_t count)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, E = (size_t)job.E, H = (size_t)job.H;
    if (i >= count) return;
    const float *q = job.qv + (i / H * 2 * H + i % H) * E;
    float squares = 0, dot = 0;
    for (size_t e = 0; e < E; e++) squares = fmaf(q[e], q[e], squares);
    for (size_t e = 0; job.dy && e < E; e++) dot = fmaf(job.y[i * E + e], job.dy[i * E + e], dot);
    terms[2 * i] = 1 / (fmaxf(sqrtf(squares), LSH_LEAST_NORM) * sqrtf((float)job.E));
    terms[2 * i + 1] = dot;
}

void lin_lsh_terms(lin_exec *exec, float *terms, const lsh_job &job)
{
    const size_t count = (size_t)job.rows * (size_t)job.H;
    LIN_LAUNCH(exec, find_terms, lin_cuda_blocks(count, THREADS), THREADS, 0, terms, job, count);
}
