// LSH attention (Reformer; Kitaev et al. 2020), defined in kernels/ops.h.
//
// Forward: the buckets of all frames (hash), one stable counting sort per utterance, head and round (sort), then attention, one
// launch per round: frames are processed in their sorted order, and since a round holds each frame once, a launch may add to
// what earlier rounds left in y and lse, or in dqv, without atomics and in a fixed order.
//
// A frame at sorted position p sees the keys in positions lsh_from(p) .. lsh_end(p)-1, and is a key of the queries in the
// positions from the start of its chunk to the end of the next one.
#include "kernels/cuda/attention.h"

#include <limits.h>

#define LSH_SELF_SCORE -1e5f
#define LSH_LEAST_NORM 1e-6f
#define LSH_MOST_INVERSE 0.99999e6f // of a norm that depends on its frame
#define LSH_NO_OTHER -5e4f // an lse below: the frame saw itself alone in all rounds

typedef struct lsh_job {
    const float *qv, *dy; // [rows, 2, H, E], [rows, H, E]
    float *y, *lse;       // [rows, H, E], [rows, H]; read by the backward pass
    float *dqv;
    const int *offsets; // [B+1]
    const int *order;   // [rounds, H, rows]
    const float *terms; // [rows, H, 2]: 1 / (|q| sqrt(E)) and y . dy
    int rows, H, E, causal, chunk, rounds, round;
    int wide; // E = EP, and all pointers are aligned to 16 bytes
} lsh_job;

// One head of one utterance.
typedef struct lsh_place {
    int h, T;
    size_t first;     // row
    const int *order; // [T] of the job's round
} lsh_place;

static __device__ __forceinline__ lsh_place lsh_find(const lsh_job &job)
{
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H), first = job.offsets[b];
    return {h, job.offsets[b + 1] - first, (size_t)first,
            job.order + ((size_t)job.round * (size_t)job.H + (size_t)h) * (size_t)job.rows + first};
}

static __device__ __forceinline__ int lsh_from(const lsh_job &job, int p)
{
    return p < job.chunk ? 0 : (p / job.chunk - 1) * job.chunk;
}
static __device__ __forceinline__ int lsh_end(const lsh_job &job, int p, int T)
{
    const long long end = ((long long)p / job.chunk + 1) * job.chunk;
    return end < T ? (int)end : T;
}

// The end of the positions whose queries see p as a key; they begin at p / chunk * chunk.
static __device__ __forceinline__ int lsh_seen_end(const lsh_job &job, int p, int T)
{
    const long long end = ((long long)p / job.chunk + 2) * job.chunk;
    return end < T ? (int)end : T;
}

// The frame's part of q (0) or v (1); of y and dy.
static __device__ __forceinline__ size_t lsh_at(const lsh_job &job, const lsh_place &p, int frame, int part)
{
    return (((p.first + (size_t)frame) * 2 + (size_t)part) * (size_t)job.H + (size_t)p.h) * (size_t)job.E;
}
static __device__ __forceinline__ size_t lsh_row(const lsh_job &job, const lsh_place &p, int frame)
{
    return (p.first + (size_t)frame) * (size_t)job.H + (size_t)p.h;
}

// The probability of a pair. A frame that saw itself alone counts once per round: exp cannot tell, because lse is -1e5 +
// ln(rounds).
static __device__ __forceinline__ float lsh_probability(const lsh_job &job, float score, float lse)
{
    if (lse < LSH_NO_OTHER) return score == LSH_SELF_SCORE ? 1.0f / (float)job.rounds : 0;
    return expf(score - lse);
}

// Merges a round into the result of earlier ones: y = y old + o fresh.
static __device__ __forceinline__ float lsh_merge(float lse, float round, float *old, float *fresh)
{
    *fresh = 1 / (1 + expf(lse - round));
    *old = 1 - *fresh;
    return fmaxf(lse, round) + log1pf(expf(-fabsf(lse - round)));
}

/* ---- sorting --------------------------------------------------------------------------------------------------------------- */

// LSH attention: buckets, and the frames of each utterance, head and round sorted by them.

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

// The larger of two values, on a tie that of the lower bucket.
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

// A stable sort: the warps own stretches of the frames, and the places of a bucket are assigned by warp, then by frame. Buckets
// are counted a window at a time, which bounds the shared memory.
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

// order [rounds, H, rows]
static void put_in_order(lin_exec *exec, int *order, const float *qv, const float *R, const lin_segments *segments,
                         const lin_lsh *lsh, int H, int E)
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

// terms [rows, H, 2], the second part 0 without dy.
static void take_terms(lin_exec *exec, float *terms, const lsh_job &job)
{
    const size_t count = (size_t)job.rows * (size_t)job.H;
    LIN_LAUNCH(exec, find_terms, lin_cuda_blocks(count, THREADS), THREADS, 0, terms, job, count);
}

// A block for 64 positions of an (utterance, head) in a round's order.
static dim3 lsh_grid(const lsh_job &job, const lin_segments *segments)
{
    return dim3((unsigned)segments->B * (unsigned)job.H, lin_cuda_blocks((size_t)segments->longest, TILE));
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------------- */

// Tiles of 64 sorted frames, on the tensor cores. A block owns 64 positions of the sorted order of one round, each of its 4
// warps 16 of them in registers, and reads the positions that may meet them in tiles of 64, gathered through the order.
// Products, fragments and precision are those of attention.h; E is padded with zeros to EP (32 or 64). Chunks need not be
// related to tiles: pairs that do not see each other are masked, and sixteen positions that no row of a warp sees are skipped.

// In shared memory.
template <int EP> struct lsh_tile {
    float left[sizes<EP>::tile], right[sizes<EP>::tile];
    float scale[TILE], lse[TILE], D[TILE];
    int frames[TILE]; // -1: none
    int own[TILE];    // of the block's own positions
};

// The two of a warp's 16 rows that a lane holds a part of: g and g + 8.
typedef struct lsh_rows {
    int frame[2];            // -1: none
    int from[2], end[2];     // the positions that they meet
    int warp_from, warp_end; // that any row of the warp meets
} lsh_rows;

// Starts copying part `part` of qv, or dy if part is -1, of the frames of a tile; zeros where there is none and beyond E.
template <int EP>
static __device__ __forceinline__ void lsh_gather(float *tile, const lsh_job &job, const lsh_place &p, int part,
                                                  const int *frames, int who)
{
    enum { per_row = EP / 4, step = GROUP / per_row };
    const int col = who % per_row * 4;
#pragma unroll 4
    for (int row = who / per_row; row < TILE; row += step) {
        float *to = tile + row * sizes<EP>::stride + col;
        const int frame = frames[row];
        const float *from = NULL;
        if (frame >= 0) from = part < 0 ? job.dy + lsh_row(job, p, frame) * (size_t)job.E : job.qv + lsh_at(job, p, frame, part);
        if (job.wide && frame >= 0) lin_copy_async16(to, from + col);
        else
            for (int i = 0; i < 4; i++)
                if (frame >= 0 && col + i < job.E) lin_copy_async4(to + i, from + col + i);
                else to[i] = 0;
    }
}

// The frames at positions from .. from + 63, those before `end`, by threads 0..63.
static __device__ __forceinline__ void lsh_frames(int *frames, const lsh_place &p, int from, int end, int who)
{
    if (who < TILE) frames[who] = from + who < end ? p.order[from + who] : -1;
}

// Loads the terms of these frames, by the threads that read them.
template <int EP>
static __device__ __forceinline__ void lsh_numbers(lsh_tile<EP> *tile, const lsh_job &job, const lsh_place &p, int with_lse,
                                                   int who)
{
    if (who >= TILE || tile->frames[who] < 0) return;
    const size_t row = lsh_row(job, p, tile->frames[who]);
    tile->scale[who] = job.terms[2 * row];
    if (!with_lse) return;
    tile->lse[who] = job.lse[row];
    tile->D[who] = job.terms[2 * row + 1];
}

// Both copies of a tile have arrived: their numbers as operands, for all threads.
template <int EP, int SPLIT> static __device__ __forceinline__ void lsh_arrived(lsh_tile<EP> *tile, int who)
{
    lin_copy_commit();
    lin_copy_wait<0>();
    tile_operands<EP, SPLIT>(tile->left, NULL, who);
    tile_operands<EP, SPLIT>(tile->right, NULL, who);
    __syncthreads();
}

// Element i of c[h] of multiply_rows, in subtile j: which of a lane's two rows, and which of the tile's 64.
static __device__ __forceinline__ int lsh_half(int i) { return i >> 1; }
static __device__ __forceinline__ int lsh_column(int j, int h, int i, int lane)
{
    return 16 * j + 8 * h + result_row(2 * (lane & 3) + (i & 1));
}

// The lane's rows; as_keys: what they meet are the queries that see them.
static __device__ __forceinline__ lsh_rows lsh_rows_of(const lsh_job &job, const lsh_place &p, const int *own, int first,
                                                       int as_keys, int warp, int lane)
{
    lsh_rows r;
    for (int half = 0; half < 2; half++) {
        const int row = warp * 16 + (lane >> 2) + 8 * half, at = first + row;
        r.frame[half] = own[row];
        r.from[half] = at >= p.T ? 0 : as_keys ? at / job.chunk * job.chunk : lsh_from(job, at);
        r.end[half] = at >= p.T ? 0 : as_keys ? lsh_seen_end(job, at, p.T) : lsh_end(job, at, p.T);
    }
    const int low = first + warp * 16, high = min(low + 15, p.T - 1);
    r.warp_from = r.warp_end = 0;
    if (low < p.T) {
        r.warp_from = as_keys ? low / job.chunk * job.chunk : lsh_from(job, low);
        r.warp_end = as_keys ? lsh_seen_end(job, high, p.T) : lsh_end(job, high, p.T);
    }
    return r;
}

// Whether row `half` meets the position `at` with its frame; `before`: in a causal pass only if that frame is not after the
// row's, else only if it is not before it.
static __device__ __forceinline__ int lsh_meets(const lsh_job &job, const lsh_rows &r, int half, int at, int frame, int before)
{
    if (at < r.from[half] || at >= r.end[half]) return 0;
    return !job.causal || (before ? frame <= r.frame[half] : frame >= r.frame[half]);
}

/* ---- tiles: forward -------------------------------------------------------------------------------------------------------- */

// Softmax with a running maximum and sum (Milakov & Gimelshein 2018), a tile at a time.

#define LOWEST -1e30f // a maximum before the first score: finite, so that exp(-inf - LOWEST) is 0

// A warp's 16 queries: out [16, EP], and of the lane's two rows the maximum and the lane's part of the sum.
template <int EP> struct forward_sums {
    float out[EP / 8][4], top[2], sum[2];
};

// The scores of a warp's rows and one tile, -inf where they do not meet. w[j]: of sixteen keys.
template <int EP, int SPLIT>
static __device__ __forceinline__ void forward_scores(float (&w)[4][2][4], const lsh_job &job, const lsh_rows &r,
                                                      const float (&own)[EP / 8][4], const lsh_tile<EP> *tile, int from, int lane)
{
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int met = from + 16 * j < r.warp_end && from + 16 * j + 16 > r.warp_from;
        if (met) multiply_rows<EP, SPLIT>(w[j], own, tile->left + 16 * j * sizes<EP>::stride, lane);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int half = lsh_half(i), column = lsh_column(j, h, i, lane), frame = tile->frames[column];
                if (!met || !lsh_meets(job, r, half, from + column, frame, 1)) w[j][h][i] = -INFINITY;
                else w[j][h][i] = frame == r.frame[half] ? LSH_SELF_SCORE : w[j][h][i] * tile->scale[column];
            }
    }
}

template <int SPLIT> static __device__ __forceinline__ float exponential(float x) { return SPLIT ? expf(x) : __expf(x); }

// Adds a tile: x from forward_scores.
template <int EP, int SPLIT>
static __device__ __forceinline__ void forward_add(forward_sums<EP> &s, float (&w)[4][2][4], const lsh_rows &r,
                                                   const float *values, int from, int lane)
{
    float top[2] = {s.top[0], s.top[1]};
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) top[lsh_half(i)] = fmaxf(top[lsh_half(i)], w[j][h][i]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        for (int o = 1; o < 4; o *= 2) top[half] = fmaxf(top[half], __shfl_xor_sync(0xffffffffu, top[half], o));
        const float before = exponential<SPLIT>(s.top[half] - top[half]);
        s.top[half] = top[half];
        s.sum[half] *= before;
#pragma unroll
        for (int n = 0; n < EP / 8; n++) {
            s.out[n][2 * half] *= before;
            s.out[n][2 * half + 1] *= before;
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (from + 16 * j >= r.warp_end || from + 16 * j + 16 <= r.warp_from) continue;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) w[j][h][i] = exponential<SPLIT>(w[j][h][i] - top[lsh_half(i)]);
        add_weights(s.sum[0], s.sum[1], w[j]);
        add_rows<EP, SPLIT>(s.out, w[j], values + 16 * j * sizes<EP>::stride, lane);
    }
}

// y and lse of the rows of a warp, with what earlier rounds left.
template <int EP>
static __device__ __forceinline__ void forward_store(const lsh_job &job, const lsh_place &p, const lsh_rows &r,
                                                     forward_sums<EP> &s, int lane)
{
    const int t = lane & 3;
    float lse[2], old[2] = {0, 0}, fresh[2] = {1, 1};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        s.sum[half] = quad_sum(s.sum[half]);
        lse[half] = s.top[half] + logf(s.sum[half]);
        if (job.round > 0 && r.frame[half] >= 0)
            lse[half] = lsh_merge(job.lse[lsh_row(job, p, r.frame[half])], lse[half], &old[half], &fresh[half]);
    }
    __syncwarp(); // all lanes of a row have read its lse
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (r.frame[half] < 0) continue;
        const size_t row = lsh_row(job, p, r.frame[half]);
        float *y = job.y + row * (size_t)job.E;
        if (t == 0) job.lse[row] = lse[half];
#pragma unroll
        for (int n = 0; n < EP / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int e = 8 * n + 2 * t + i;
                if (e >= job.E) continue;
                y[e] = fmaf(s.out[n][2 * half + i] / s.sum[half], fresh[half], job.round > 0 ? y[e] * old[half] : 0);
            }
    }
}

template <int EP, int SPLIT> static __global__ void __launch_bounds__(GROUP) forward_tiles(lsh_job job)
{
    LIN_SHARED(lsh_tile<EP>, tile);
    const lsh_place p = lsh_find(job);
    const int who = (int)threadIdx.x, warp = who >> 5, lane = who & 31, first = (int)blockIdx.y * TILE;
    if (first >= p.T) return;
    lsh_frames(tile->own, p, first, p.T, who);
    __syncthreads();
    lsh_gather<EP>(tile->left, job, p, 0, tile->own, who);
    lin_copy_commit();
    lin_copy_wait<0>();
    __syncthreads();
    float own[EP / 8][4];
    load_own<EP>(own, tile->left + warp * 16 * sizes<EP>::stride, lane);
    own_operands<EP, SPLIT, 0>(own);
    const lsh_rows r = lsh_rows_of(job, p, tile->own, first, 0, warp, lane);
    const int end = lsh_end(job, min(first + TILE, p.T) - 1, p.T);
    forward_sums<EP> s;
    clear_rows<EP>(s.out);
    s.top[0] = s.top[1] = LOWEST;
    s.sum[0] = s.sum[1] = 0;
    for (int from = lsh_from(job, first); from < end; from += TILE) {
        __syncthreads(); // the last tile has been read
        lsh_frames(tile->frames, p, from, end, who);
        lsh_numbers<EP>(tile, job, p, 0, who);
        __syncthreads();
        lsh_gather<EP>(tile->left, job, p, 0, tile->frames, who);
        lsh_gather<EP>(tile->right, job, p, 1, tile->frames, who);
        lsh_arrived<EP, SPLIT>(tile, who);
        if (from >= r.warp_end || from + TILE <= r.warp_from) continue;
        float w[4][2][4];
        forward_scores<EP, SPLIT>(w, job, r, own, tile, from, lane);
        forward_add<EP, SPLIT>(s, w, r, tile->right, from, lane);
    }
    forward_store<EP>(job, p, r, s, lane);
}

template <int EP, int SPLIT> static void run_forward(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const dim3 grid = lsh_grid(job, segments);
    for (job.round = 0; job.round != job.rounds; job.round++)
        LIN_LAUNCH(exec, (forward_tiles<EP, SPLIT>), grid, GROUP, sizeof(lsh_tile<EP>), job);
}

/* ---- tiles: backward ------------------------------------------------------------------------------------------------------- */

// With p_ij = exp(s_ij - lse_i), D_i = dy_i . y_i,
// ds_ij = p_ij (dy_i . v_j - D_i), 0 for i = j, and w_j = 1 / (|q_j| sqrt(E)):
//   dv_j = sum_i p_ij dy_i
//   dq_i = sum_j ds_ij w_j q_j, as a query, + sum_j ds_ji w_i q_j - q_i sum_j ds_ji s_ji / |q_i|^2, as a key.
// A block reads first the keys that its frames see, then the queries that see them.

// One element: its probability and the gradient of its score. Of the pair, `lse` and `D` belong to the query, `scale` to the key.
static __device__ __forceinline__ float pair_gradient(const lsh_job &job, int itself, float &score, float dp, float scale,
                                                      float lse, float D, float *probability)
{
    score = itself ? LSH_SELF_SCORE : score * scale;
    *probability = lsh_probability(job, score, lse);
    return itself ? 0 : *probability * (dp - D);
}

// The block's frames as queries: dq += ds w q over one tile of keys, q in its left half, v in its right one. x: own q, u: own dy.
template <int EP, int SPLIT>
static __device__ __forceinline__ void as_queries(float (&dq)[EP / 8][4], const lsh_job &job, const lsh_rows &r,
                                                  float (&x)[EP / 8][4], float (&u)[EP / 8][4], const float (&lse)[2],
                                                  const float (&D)[2], const lsh_tile<EP> *tile, int from, int lane)
{
    for (int j = 0; j < 4; j++) {
        if (from + 16 * j >= r.warp_end || from + 16 * j + 16 <= r.warp_from) continue;
        float w[2][4], ds[2][4], p;
        split_late<EP, SPLIT>(x);
        split_late<EP, SPLIT>(u);
        multiply_rows<EP, SPLIT>(w, x, tile->left + 16 * j * sizes<EP>::stride, lane);
        multiply_rows<EP, SPLIT>(ds, u, tile->right + 16 * j * sizes<EP>::stride, lane);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int half = lsh_half(i), column = lsh_column(j, h, i, lane), frame = tile->frames[column];
                if (lsh_meets(job, r, half, from + column, frame, 1)) {
                    const float scale = tile->scale[column];
                    ds[h][i] =
                        scale * pair_gradient(job, frame == r.frame[half], w[h][i], ds[h][i], scale, lse[half], D[half], &p);
                } else {
                    ds[h][i] = 0;
                }
            }
        add_rows<EP, SPLIT>(dq, ds, tile->left + 16 * j * sizes<EP>::stride, lane);
    }
}

// The block's frames as keys: dv += p dy and dk += ds q over one tile of queries, q in its left half, dy in its right one. x:
// own q, u: own v; along: the lane's part of the sums of ds s.
template <int EP, int SPLIT>
static __device__ __forceinline__ void as_keys(float (&dk)[EP / 8][4], float (&dv)[EP / 8][4], float (&along)[2],
                                               const lsh_job &job, const lsh_rows &r, float (&x)[EP / 8][4],
                                               float (&u)[EP / 8][4], const float (&scale)[2], const lsh_tile<EP> *tile,
                                               int from, int lane)
{
    for (int j = 0; j < 4; j++) {
        if (from + 16 * j >= r.warp_end || from + 16 * j + 16 <= r.warp_from) continue;
        float p[2][4], ds[2][4];
        split_late<EP, SPLIT>(x);
        split_late<EP, SPLIT>(u);
        multiply_rows<EP, SPLIT>(p, x, tile->left + 16 * j * sizes<EP>::stride, lane);
        multiply_rows<EP, SPLIT>(ds, u, tile->right + 16 * j * sizes<EP>::stride, lane);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int half = lsh_half(i), column = lsh_column(j, h, i, lane), frame = tile->frames[column];
                if (lsh_meets(job, r, half, from + column, frame, 0)) {
                    float score = p[h][i];
                    ds[h][i] = pair_gradient(job, frame == r.frame[half], score, ds[h][i], scale[half], tile->lse[column],
                                             tile->D[column], &p[h][i]);
                    along[half] = fmaf(ds[h][i], score, along[half]);
                    ds[h][i] *= scale[half];
                } else {
                    p[h][i] = ds[h][i] = 0;
                }
            }
        add_rows<EP, SPLIT>(dv, p, tile->right + 16 * j * sizes<EP>::stride, lane);
        add_rows<EP, SPLIT>(dk, ds, tile->left + 16 * j * sizes<EP>::stride, lane);
    }
}

// Adds a warp's rows to dqv, or writes them in the first round.
template <int EP>
static __device__ __forceinline__ void backward_store(const lsh_job &job, const lsh_place &p, const lsh_rows &r,
                                                      const float (&dq)[EP / 8][4], const float (&dv)[EP / 8][4],
                                                      const float (&along)[2], const float (&scale)[2], int lane)
{
    const float root = sqrtf((float)job.E);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float inverse = scale[half] * root, sum = quad_sum(along[half]);
        const float back = inverse < LSH_MOST_INVERSE ? sum * inverse * inverse : 0;
        if (r.frame[half] < 0) continue;
        const size_t to_q = lsh_at(job, p, r.frame[half], 0), to_v = lsh_at(job, p, r.frame[half], 1);
#pragma unroll
        for (int n = 0; n < EP / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const size_t e = (size_t)(8 * n + 2 * (lane & 3) + i);
                if ((int)e >= job.E) continue;
                const float q = dq[n][2 * half + i] - job.qv[to_q + e] * back, v = dv[n][2 * half + i];
                job.dqv[to_q + e] = job.round > 0 ? job.dqv[to_q + e] + q : q;
                job.dqv[to_v + e] = job.round > 0 ? job.dqv[to_v + e] + v : v;
            }
    }
}

// The positions first..: their frames, numbers and both matrices (parts of lsh_gather) into the tile.
template <int EP, int SPLIT>
static __device__ __forceinline__ void fill(lsh_tile<EP> *tile, const lsh_job &job, const lsh_place &p, int first, int end,
                                            int right, int who)
{
    __syncthreads(); // the last tile has been read
    lsh_frames(tile->frames, p, first, end, who);
    lsh_numbers<EP>(tile, job, p, 1, who);
    __syncthreads();
    lsh_gather<EP>(tile->left, job, p, 0, tile->frames, who);
    lsh_gather<EP>(tile->right, job, p, right, tile->frames, who);
    lsh_arrived<EP, SPLIT>(tile, who);
}

template <int EP, int SPLIT> static __global__ void __launch_bounds__(GROUP) backward_tiles(lsh_job job)
{
    LIN_SHARED(lsh_tile<EP>, tile);
    const lsh_place p = lsh_find(job);
    const int who = (int)threadIdx.x, warp = who >> 5, lane = who & 31, first = (int)blockIdx.y * TILE;
    const int rows = warp * 16 * sizes<EP>::stride, last = min(first + TILE, p.T) - 1;
    if (first >= p.T) return;
    lsh_frames(tile->own, p, first, p.T, who);
    fill<EP, SPLIT>(tile, job, p, first, p.T, -1, who);
    float x[EP / 8][4], u[EP / 8][4], dq[EP / 8][4], dv[EP / 8][4];
    float lse[2] = {0, 0}, D[2] = {0, 0}, scale[2] = {0, 0}, along[2] = {0, 0};
    load_own<EP>(x, tile->left + rows, lane);
    load_own<EP>(u, tile->right + rows, lane);
    for (int half = 0; half < 2; half++) {
        const int row = warp * 16 + (lane >> 2) + 8 * half;
        if (tile->own[row] < 0) continue;
        lse[half] = tile->lse[row];
        D[half] = tile->D[row];
        scale[half] = tile->scale[row];
    }
    clear_rows<EP>(dq);
    lsh_rows r = lsh_rows_of(job, p, tile->own, first, 0, warp, lane);
    for (int from = lsh_from(job, first), end = lsh_end(job, last, p.T); from < end; from += TILE) {
        fill<EP, SPLIT>(tile, job, p, from, end, 1, who);
        as_queries<EP, SPLIT>(dq, job, r, x, u, lse, D, tile, from, lane);
    }
    fill<EP, SPLIT>(tile, job, p, first, p.T, 1, who);
    load_own<EP>(u, tile->right + rows, lane);
    clear_rows<EP>(dv);
    r = lsh_rows_of(job, p, tile->own, first, 1, warp, lane);
    for (int from = first / job.chunk * job.chunk, end = lsh_seen_end(job, last, p.T); from < end; from += TILE) {
        fill<EP, SPLIT>(tile, job, p, from, end, -1, who);
        as_keys<EP, SPLIT>(dq, dv, along, job, r, x, u, scale, tile, from, lane);
    }
    backward_store<EP>(job, p, r, dq, dv, along, scale, lane);
}

template <int EP, int SPLIT> static void run_backward(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const dim3 grid = lsh_grid(job, segments);
    for (job.round = 0; job.round != job.rounds; job.round++)
        LIN_LAUNCH(exec, (backward_tiles<EP, SPLIT>), grid, GROUP, sizeof(lsh_tile<EP>), job);
}

/* ---- the operations -------------------------------------------------------------------------------------------------------- */

static int nothing_to_do(lin_exec *exec, const lin_segments *segments, const lin_lsh *lsh, int H, int E)
{
    return segments->B == 0 || segments->rows == 0 || lsh->rounds == 0 || H == 0 || E == 0 || !lin_attention_tiled(exec, E);
}

void lin_cuda_lsh_forward(lin_exec *exec, float *y, float *lse, int *order, const float *qv, const float *R,
                          const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    put_in_order(exec, order, qv, R, segments, lsh, H, E);
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    lsh_job job = {.qv = qv, .y = y, .lse = lse, .offsets = segments->offsets, .order = order, .terms = terms,
                   .rows = segments->rows, .H = H, .E = E, .causal = causal, .chunk = lsh->chunk, .rounds = lsh->rounds};
    if (!terms) return;
    take_terms(exec, terms, job);
    job.wide = (E == 32 || E == 64) && lin_cuda_aligned(qv);
    LIN_TILED(run_forward, E, exec, job, segments);
}

void lin_cuda_lsh_backward(lin_exec *exec, float *dqv, const float *dy, const float *qv, const float *y, const float *lse,
                           const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    lsh_job job = {.qv = qv, .dy = dy, .y = const_cast<float *>(y), .lse = const_cast<float *>(lse), .dqv = dqv,
                   .offsets = segments->offsets, .order = order, .terms = terms, .rows = segments->rows, .H = H, .E = E,
                   .causal = causal, .chunk = lsh->chunk, .rounds = lsh->rounds};
    if (!terms) return;
    take_terms(exec, terms, job);
    job.wide = (E == 32 || E == 64) && lin_cuda_aligned(qv, dy);
    LIN_TILED(run_backward, E, exec, job, segments);
}

