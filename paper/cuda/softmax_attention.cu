// Softmax attention (Vaswani et al. 2017) in tiles; softmax_attention.h describes the division of the work.
#include "paper/cuda/softmax_attention.h"

#include <float.h>

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// Softmax attention, forward (Vaswani et al. 2017), in tiles with a running maximum and sum (Milakov & Gimelshein 2018, Dao et
// al. 2022). softmax_attention.h describes the division of the work. A second kernel is for many streams with few rows each.

// Appends the rows' keys and values, which are adjacent in qkv and in the cache. One block for each four rows of an utterance.
static __global__ void __launch_bounds__(GROUP) append(softmax_job job)
{
    const int b = (int)blockIdx.x, row = (int)(blockIdx.y * 4 + threadIdx.x / 32);
    const lin_cache cache = job.caches[b];
    if (!cache.kv || row >= job.offsets[b + 1] - job.offsets[b]) return;
    const size_t width = (size_t)job.H * (size_t)job.E;
    const float *from = job.qkv + ((size_t)job.offsets[b] + (size_t)row) * 3 * width + width;
    float *to = (float *)cache.kv + ((size_t)job.layer * (size_t)cache.capacity + (size_t)cache.n + (size_t)row) * 2 * width;
    for (size_t i = threadIdx.x % 32; i < 2 * width; i += 32) to[i] = from[i];
}

// The running state of a warp's own rows: their maximum score in units of base 2, a lane's part of their sums of exponentials,
// and the sums of values.
template <int EP, int M> struct running_rows {
    float top[M][2], sum[M][2], out[M][EP / 8][4];
};

template <int EP, int M> static __device__ __forceinline__ void clear_running_rows(running_rows<EP, M> &r)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
        r.top[m][0] = r.top[m][1] = -INFINITY;
        r.sum[m][0] = r.sum[m][1] = 0;
        clear_rows<EP>(r.out[m]);
    }
}

// Adds 16 N keys and values, the first of them key j, to the rows from `row` on; keys from `end` on and, causal, those after a
// row are masked. PART: a row may have seen no key so far; minus infinity minus itself would then be NaN.
template <int EP, int SPLIT, int M, int N, int PART>
static __device__ __forceinline__ void add_keys(running_rows<EP, M> &r, const float (&q)[M][EP / 8][4], const float *keys,
                                                const float *values, int j, int row, int end, int causal, float scale, int lane)
{
    float w[N][2][M][4], factor[M][2];
#pragma unroll
    for (int u = 0; u < N; u++) multiply_own<EP, SPLIT, M>(w[u], q, keys + 16 * u * sizes<EP>::stride, lane);
    if (j + 16 * N > end || (causal && j + 16 * N - 1 > row)) {
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int m = 0; m < M; m++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int column = j + 16 * u + column_in(h, i, lane);
                        if (column >= end || (causal && column > row + row_in(m, i, lane))) w[u][h][m][i] = -INFINITY;
                    }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = -INFINITY, sum = 0;
#pragma unroll
            for (int u = 0; u < N; u++)
#pragma unroll
                for (int h = 0; h < 2; h++) top = fmaxf(top, fmaxf(w[u][h][m][2 * half], w[u][h][m][2 * half + 1]));
            top = fmaxf(r.top[m][half], quad_max(top) * scale);
            const float base = PART && top == -INFINITY ? 0 : top;
            factor[m][half] = exp2f(r.top[m][half] - base);
            r.top[m][half] = top;
#pragma unroll
            for (int u = 0; u < N; u++)
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int i = 2 * half; i < 2 * half + 2; i++) {
                        w[u][h][m][i] = exp2f(fmaf(w[u][h][m][i], scale, -base));
                        sum += w[u][h][m][i];
                    }
            r.sum[m][half] = fmaf(r.sum[m][half], factor[m][half], sum);
        }
    add_own<EP, SPLIT, M, N>(r.out, w, values, factor, lane);
}

// Writes y and lse of a warp's own rows, the first of them row `row` of the utterance.
template <int EP, int M>
static __device__ __forceinline__ void store_own(const running_rows<EP, M> &r, const softmax_job &job, const softmax_place &p,
                                                 int row, int lane)
{
    const size_t width = (size_t)job.H * (size_t)job.E;
#pragma unroll
    for (int m = 0; m < M; m++) {
        const int n = p.rows - row - 16 * m;
        const float upper = quad_sum(r.sum[m][0]), lower = quad_sum(r.sum[m][1]);
        const size_t first = p.first + (size_t)(row + 16 * m);
        store_rows<EP>(job.out + first * width + (size_t)p.h * (size_t)job.E, width, r.out[m], 1 / upper, 1 / lower, n, job.E,
                       job.wide, lane);
        if (job.out_lse && (lane & 3) < 2) { // lanes 0 of a quad write the upper rows, lanes 1 the lower rows
            const int at = (lane >> 2) + 8 * (lane & 1);
            const float lse = lane & 1 ? fmaf(r.top[m][1], LIN_LN_2, logf(lower)) : fmaf(r.top[m][0], LIN_LN_2, logf(upper));
            if (at < n) job.out_lse[(first + (size_t)at) * (size_t)job.H + (size_t)p.h] = lse;
        }
    }
}

// For a tile of values that some rows may not see: 0 times NaN or infinity is NaN, so values that are not finite become 0.
// Returns the first row of the tile with one, TILE if there is none; poison_rows then makes the sums of rows that see it NaN.
// Contains a barrier.
template <int EP> static __device__ __forceinline__ int clean_values(float *tile, int who)
{
    enum { step = GROUP / (EP / 4) }; // rows
    int mine = TILE, found = 0;
#pragma unroll 1
    for (int row = TILE - step + who / (EP / 4); row >= 0; row -= step) {
        float *at = tile + row * sizes<EP>::stride + who % (EP / 4) * 4;
        for (int c = 0; c < 4; c++)
            if (!(fabsf(at[c]) <= FLT_MAX)) {
                at[c] = 0;
                mine = row;
            }
    }
    if (!__syncthreads_or(mine < TILE)) return TILE;
    int least = mine < TILE; // whether mine may be the least of all
    for (int bit = TILE / 2; bit; bit /= 2)
        if (__syncthreads_or(least && !(mine & bit))) least = least && !(mine & bit);
        else found |= bit;
    return found;
}

// `after`: the number of own rows before the first that sees the value.
template <int EP, int M> static __device__ __forceinline__ void poison_rows(running_rows<EP, M> &r, int after, int lane)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (row_in(m, 2 * half, lane) >= after) r.sum[m][half] = nanf("");
}

// One block for 64 M rows of an (utterance, head), those with the most keys first.
template <int EP, int SPLIT, int M> __global__ void __launch_bounds__(GROUP) softmax_rows(softmax_job job)
{
    LIN_SHARED(float, shared);
    enum { BLOCK_ROWS = 64 * M, WARP_ROWS = 16 * M, N = EP == 64 && SPLIT ? 1 : 2 };
    softmax_place p;
    if (!softmax_find(&p, job, blockIdx.x)) return;
    const int last = (p.rows - 1) / BLOCK_ROWS;
    if ((int)blockIdx.y > last) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32;
    const int block_row = (last - (int)blockIdx.y) * BLOCK_ROWS, row = block_row + warp * WARP_ROWS;
    const size_t width = (size_t)job.H * (size_t)job.E;
    const float scale = job.scale * LIN_LOG2_E;
    int end = p.before + p.rows; // of the keys that the block, and this warp, need
    if (job.causal && p.before + block_row + BLOCK_ROWS < end) end = p.before + block_row + BLOCK_ROWS;
    int own_end = row >= p.rows ? 0 : job.causal && p.before + row + WARP_ROWS < end ? p.before + row + WARP_ROWS : end;
    float q[M][EP / 8][4];
    running_rows<EP, M> r;
    copy_pair<EP>(shared, p.k, p.stride, p.v, p.stride, 0, end, job.E, p.wide, who);
    lin_copy_commit();
    load_global<EP, M>(q, job.qkv + (p.first + (size_t)row) * 3 * width + (size_t)p.h * (size_t)job.E, 3 * width, p.rows - row,
                       job.E, job.wide, lane);
    round_own<EP, SPLIT, M>(q);
    clear_running_rows(r);
    for (int tile = 0; tile < end; tile += TILE) {
        float *const keys = shared + (tile / TILE & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(keys, NULL, who); // a thread prepares only elements that it copied
        tile_operands<EP, SPLIT>(values, NULL, who);
        int bad = TILE;
        if (job.causal && tile + TILE > p.before + block_row + 1) bad = clean_values<EP>(values, who);
        else __syncthreads(); // all threads have also used the other pair of tiles
        if (tile + TILE < end) {
            float *next = shared + ((tile / TILE + 1) & 1) * 2 * sizes<EP>::tile;
            copy_pair<EP>(next, p.k, p.stride, p.v, p.stride, tile + TILE, end, job.E, p.wide, who);
            lin_copy_commit();
        }
        for (int j = 0; j < TILE && tile + j < own_end; j += 16 * N)
            add_keys<EP, SPLIT, M, N, 0>(r, q, keys + j * sizes<EP>::stride, values + j * sizes<EP>::stride, tile + j,
                                         p.before + row, own_end, job.causal, scale, lane);
        if (bad < TILE) poison_rows<EP, M>(r, tile + bad - p.before - row, lane);
    }
    if (row < p.rows) store_own<EP, M>(r, job, p, row, lane);
}

/* ---- few rows of many streams ---------------------------------------------------------------------------------------------- */

enum { STEP_ROWS = 16 };

// A warp's part of the sums, in shared memory: out [16, EP], then top and sum [16].
template <int EP> struct step_sizes {
    enum { stride = EP + 4, part = STEP_ROWS * stride + 2 * STEP_ROWS };
};

template <int EP> static __device__ __forceinline__ void publish_part(float *part, const running_rows<EP, 1> &r, int lane)
{
    float *const tops = part + STEP_ROWS * step_sizes<EP>::stride;
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float sum = quad_sum(r.sum[0][half]);
#pragma unroll
        for (int n = 0; n < EP / 8; n++)
            *reinterpret_cast<float2 *>(part + row * step_sizes<EP>::stride + 8 * n + 2 * t) =
                make_float2(r.out[0][n][2 * half], r.out[0][n][2 * half + 1]);
        if (t == 0) {
            tops[row] = r.top[0][half];
            tops[STEP_ROWS + row] = sum;
        }
    }
}

// y and lse from the parts of four warps, in order; a thread for each element.
template <int EP>
static __device__ __forceinline__ void store_parts(const float *parts, const softmax_job &job, const softmax_place &p)
{
    const float *const tops = parts + STEP_ROWS * step_sizes<EP>::stride;
    const size_t width = (size_t)job.H * (size_t)job.E;
    for (int i = (int)threadIdx.x; i < p.rows * job.E; i += GROUP) {
        const int row = i / job.E, e = i % job.E;
        float top = -INFINITY, sum = 0, y = 0;
#pragma unroll
        for (int w = 0; w < 4; w++) top = fmaxf(top, tops[w * step_sizes<EP>::part + row]);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float factor = exp2f(tops[w * step_sizes<EP>::part + row] - top);
            sum = fmaf(factor, tops[w * step_sizes<EP>::part + STEP_ROWS + row], sum);
            y = fmaf(factor, parts[w * step_sizes<EP>::part + row * step_sizes<EP>::stride + e], y);
        }
        const size_t at = p.first + (size_t)row;
        job.out[at * width + (size_t)p.h * (size_t)job.E + (size_t)e] = y / sum;
        if (job.out_lse && e == 0) job.out_lse[at * (size_t)job.H + (size_t)p.h] = fmaf(top, LIN_LN_2, logf(sum));
    }
}

// At most 16 rows of an (utterance, head): each warp has all of them, and 16 keys of every tile. Bound by reading the caches.
template <int EP, int SPLIT> __global__ void __launch_bounds__(GROUP) softmax_step(softmax_job job)
{
    LIN_SHARED(float, shared);
    softmax_place p;
    if (!softmax_find(&p, job, blockIdx.x)) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32, end = p.before + p.rows;
    const size_t width = (size_t)job.H * (size_t)job.E;
    float q[1][EP / 8][4];
    running_rows<EP, 1> r;
    copy_pair<EP>(shared, p.k, p.stride, p.v, p.stride, 0, end, job.E, p.wide, who);
    lin_copy_commit();
    load_global<EP, 1>(q, job.qkv + p.first * 3 * width + (size_t)p.h * (size_t)job.E, 3 * width, p.rows, job.E, job.wide, lane);
    round_own<EP, SPLIT, 1>(q);
    clear_running_rows(r);
    for (int tile = 0; tile < end; tile += TILE) {
        float *const keys = shared + (tile / TILE & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(keys, NULL, who);
        tile_operands<EP, SPLIT>(values, NULL, who);
        int bad = TILE;
        if (job.causal && tile + TILE > p.before + 1) bad = clean_values<EP>(values, who);
        else __syncthreads();
        if (tile + TILE < end) {
            float *next = shared + ((tile / TILE + 1) & 1) * 2 * sizes<EP>::tile;
            copy_pair<EP>(next, p.k, p.stride, p.v, p.stride, tile + TILE, end, job.E, p.wide, who);
            lin_copy_commit();
        }
        const int own = 16 * warp;
        if (tile + own < end)
            add_keys<EP, SPLIT, 1, 1, 1>(r, q, keys + own * sizes<EP>::stride, values + own * sizes<EP>::stride, tile + own,
                                         p.before, end, job.causal, job.scale * LIN_LOG2_E, lane);
        if (bad < TILE) poison_rows<EP, 1>(r, tile + bad - p.before, lane);
    }
    __syncthreads();
    publish_part<EP>(shared + warp * step_sizes<EP>::part, r, lane);
    __syncthreads();
    store_parts<EP>(shared, job, p);
}

template <int EP, int SPLIT> static void run_forward(lin_exec *exec, const softmax_job &job, const lin_segments *segments)
{
    enum { M = EP == 32 ? 2 : 1 };
    const size_t bytes = 4 * sizes<EP>::tile * sizeof(float);
    if (segments->longest <= STEP_ROWS) {
        LIN_ALLOW_SHARED(exec, (softmax_step<EP, SPLIT>), bytes);
        LIN_LAUNCH(exec, (softmax_step<EP, SPLIT>), (unsigned)(job.B * job.H), GROUP, bytes, job);
        return;
    }
    LIN_ALLOW_SHARED(exec, (softmax_rows<EP, SPLIT, M>), bytes);
    LIN_LAUNCH(exec, (softmax_rows<EP, SPLIT, M>), lin_softmax_grid(job, segments, 64 * M), GROUP, bytes, job);
}

void lin_cuda_softmax_forward(lin_exec *exec, float *y, float *lse, const float *qkv, const lin_segments *segments, int H, int E,
                              int causal, const lin_cache *caches, int layer)
{
    if (segments->B == 0 || segments->rows == 0 || segments->longest == 0 || H == 0 || E == 0) return;
    if (!lin_attention_tiled(exec, E)) return;
    const softmax_job job = {.qkv = qkv, .out = y, .out_lse = lse, .offsets = segments->offsets, .caches = causal ? caches : NULL,
                             .B = segments->B, .H = H, .E = E, .causal = causal != 0, .layer = layer,
                             .wide = (E == 32 || E == 64) && lin_cuda_aligned(y, qkv), .scale = 1 / sqrtf((float)E)};
    if (job.caches) LIN_LAUNCH(exec, append, dim3((unsigned)job.B, lin_cuda_blocks((size_t)segments->longest, 4)), GROUP, 0, job);
    LIN_TILED(run_forward, E, exec, job, segments);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// Softmax attention, backward (Dao et al. 2022, Algorithm 4). The forward keeps y and lse; with p_ij = exp(s q_i k_j - lse_i),
// s = 1 / sqrt(E), D_i = dy_i . y_i and u_ij = p_ij (dy_i . v_j - D_i):
//   dq_i = s sum_j u_ij k_j                                  one kernel, by blocks of queries, over the keys
//   dk_j = s sum_i u_ij q_i       dv_j = sum_i p_ij dy_i     another, by blocks of keys, over the queries
// so no sum needs atomics. softmax_attention.h describes the division of the work. The first kernel stores D_i for the second.

// Element i of w, a raw product, becomes a probability; 0 where masked.
static __device__ __forceinline__ float probability(float w, float scale, float lse, int masked)
{
    return masked ? 0.0f : exp2f(fmaf(w, scale, -lse));
}

// dy . y of a warp's own rows, the same in all lanes of a quad; with the same rounded dy that multiplies v: the two nearly
// cancel.
template <int EP, int M>
static __device__ __forceinline__ void dot_own(float (&d)[M][2], const float (&a)[M][EP / 8][4], const float (&b)[M][EP / 8][4])
{
#pragma unroll
    for (int m = 0; m < M; m++) {
        d[m][0] = d[m][1] = 0;
#pragma unroll
        for (int s = 0; s < EP / 8; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) d[m][i & 1] = fmaf(a[m][s][i], b[m][s][i], d[m][i & 1]);
        d[m][0] = quad_sum(d[m][0]);
        d[m][1] = quad_sum(d[m][1]);
    }
}

template <int EP, int SPLIT, int M> __global__ void __launch_bounds__(GROUP) softmax_queries(softmax_job job)
{
    LIN_SHARED(float, shared);
    enum { BLOCK_ROWS = 64 * M, WARP_ROWS = 16 * M };
    softmax_place p;
    if (!softmax_find(&p, job, blockIdx.x)) return;
    const int last = (p.rows - 1) / BLOCK_ROWS;
    if ((int)blockIdx.y > last) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32;
    const int block_row = (last - (int)blockIdx.y) * BLOCK_ROWS, row = block_row + warp * WARP_ROWS;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)p.h * (size_t)job.E, first = p.first + (size_t)row;
    const float scale = job.scale * LIN_LOG2_E;
    const int end = job.causal && block_row + BLOCK_ROWS < p.rows ? block_row + BLOCK_ROWS : p.rows;
    const int own_end = row >= p.rows ? 0 : job.causal && row + WARP_ROWS < end ? row + WARP_ROWS : end;
    float q[M][EP / 8][4], g[M][EP / 8][4], dq[M][EP / 8][4], lse[M][2], D[M][2];
    copy_pair<EP>(shared, p.k, p.stride, p.v, p.stride, 0, end, job.E, p.wide, who);
    lin_copy_commit();
    load_global<EP, M>(g, job.dy + first * width + head, width, p.rows - row, job.E, job.wide, lane);
    load_global<EP, M>(q, job.y + first * width + head, width, p.rows - row, job.E, job.wide, lane);
    round_own<EP, SPLIT, M>(g);
    dot_own<EP, M>(D, g, q);
    load_global<EP, M>(q, job.qkv + first * 3 * width + head, 3 * width, p.rows - row, job.E, job.wide, lane);
    round_own<EP, SPLIT, M>(q);
#pragma unroll
    for (int m = 0; m < M; m++) {
        clear_rows<EP>(dq[m]);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int at = row_in(m, 2 * half, lane);
            const size_t term = (first + (size_t)at) * (size_t)job.H + (size_t)p.h;
            lse[m][half] = row + at < p.rows ? job.lse[term] * LIN_LOG2_E : 0;
            if (row + at < p.rows && (lane & 3) == 0) job.terms[term] = D[m][half];
        }
    }
    for (int tile = 0; tile < end; tile += TILE) {
        float *const keys = shared + (tile / TILE & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(keys, NULL, who);
        tile_operands<EP, SPLIT>(values, NULL, who);
        __syncthreads();
        if (tile + TILE < end) {
            float *next = shared + ((tile / TILE + 1) & 1) * 2 * sizes<EP>::tile;
            copy_pair<EP>(next, p.k, p.stride, p.v, p.stride, tile + TILE, end, job.E, p.wide, who);
            lin_copy_commit();
        }
#pragma unroll 1
        for (int j = 0; j < TILE && tile + j < own_end; j += 16) {
            float w[2][M][4], u[1][2][M][4];
            for (int m = 0; m < M; m++) split_late<EP, SPLIT>(q[m]);
            for (int m = 0; m < M; m++) split_late<EP, SPLIT>(g[m]);
            multiply_own<EP, SPLIT, M>(w, q, keys + j * sizes<EP>::stride, lane);
            multiply_own<EP, SPLIT, M>(u[0], g, values + j * sizes<EP>::stride, lane);
            const int edge = tile + j + 16 > own_end || (job.causal && tile + j + 15 > row);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int m = 0; m < M; m++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int column = tile + j + column_in(h, i, lane);
                        const int masked = edge && (column >= own_end || (job.causal && column > row + row_in(m, i, lane)));
                        u[0][h][m][i] = probability(w[h][m][i], scale, lse[m][i >> 1], masked) * (u[0][h][m][i] - D[m][i >> 1]);
                    }
            add_own<EP, SPLIT, M, 1>(dq, u, keys + j * sizes<EP>::stride, NULL, lane);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
        store_rows<EP>(job.out + (first + (size_t)(16 * m)) * 3 * width + head, 3 * width, dq[m], job.scale, job.scale,
                       p.rows - row - 16 * m, job.E, job.wide, lane);
}

// lse and D of 64 queries from `tile` on; 0 where there is none, which with rows of zeros adds nothing to the gradients.
static __device__ __forceinline__ void copy_query_terms(float *to, const softmax_job &job, const softmax_place &p, int tile,
                                                        int who)
{
    const int row = tile + who % TILE;
    const float *from = who < TILE ? job.lse : job.terms;
    if (row < p.rows) lin_copy_async4(to + who, from + (p.first + (size_t)row) * (size_t)job.H + (size_t)p.h);
    else to[who] = 0;
}

template <int EP, int SPLIT, int M> __global__ void __launch_bounds__(GROUP) softmax_keys(softmax_job job)
{
    LIN_SHARED(float, shared);
    enum { BLOCK_ROWS = 64 * M, WARP_ROWS = 16 * M };
    softmax_place p;
    if (!softmax_find(&p, job, blockIdx.x)) return;
    if ((int)blockIdx.y > (p.rows - 1) / BLOCK_ROWS) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32;
    const int block_row = (int)blockIdx.y * BLOCK_ROWS, row = block_row + warp * WARP_ROWS;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)p.h * (size_t)job.E, first = p.first + (size_t)row;
    const float scale = job.scale * LIN_LOG2_E;
    const float *queries_from = job.qkv + p.first * 3 * width + head, *gradients_from = job.dy + p.first * width + head;
    const int begin = job.causal ? block_row : 0; // a multiple of the tile
    float *const terms = shared + 4 * sizes<EP>::tile;
    float k[M][EP / 8][4], v[M][EP / 8][4], dk[M][EP / 8][4], dv[M][EP / 8][4];
    copy_pair<EP>(shared, queries_from, 3 * width, gradients_from, width, begin, p.rows, job.E, job.wide, who);
    copy_query_terms(terms, job, p, begin, who);
    lin_copy_commit();
    load_global<EP, M>(k, p.k + (size_t)row * p.stride, p.stride, p.rows - row, job.E, job.wide, lane);
    load_global<EP, M>(v, p.v + (size_t)row * p.stride, p.stride, p.rows - row, job.E, job.wide, lane);
    round_own<EP, SPLIT, M>(k);
    round_own<EP, SPLIT, M>(v);
#pragma unroll
    for (int m = 0; m < M; m++) {
        clear_rows<EP>(dk[m]);
        clear_rows<EP>(dv[m]);
    }
    int odd = 0;
    for (int tile = begin; tile < p.rows; tile += TILE, odd ^= 1) {
        float *const queries = shared + odd * 2 * sizes<EP>::tile, *const gradients = queries + sizes<EP>::tile;
        const float *const lse = terms + odd * 2 * TILE, *const D = lse + TILE;
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(queries, NULL, who);
        tile_operands<EP, SPLIT>(gradients, NULL, who);
        __syncthreads();
        if (tile + TILE < p.rows) {
            copy_pair<EP>(shared + (odd ^ 1) * 2 * sizes<EP>::tile, queries_from, 3 * width, gradients_from, width, tile + TILE,
                          p.rows, job.E, job.wide, who);
            copy_query_terms(terms + (odd ^ 1) * 2 * TILE, job, p, tile + TILE, who);
            lin_copy_commit();
        }
#pragma unroll 1
        for (int i0 = 0; i0 < TILE && tile + i0 < p.rows && row < p.rows; i0 += 16) {
            if (job.causal && tile + i0 + 15 < row) continue; // before all own keys
            const float *query_rows = queries + i0 * sizes<EP>::stride, *gradient_rows = gradients + i0 * sizes<EP>::stride;
            const int edge = job.causal && tile + i0 < row + WARP_ROWS;
            float w[1][2][M][4], u[1][2][M][4];
            for (int m = 0; m < M; m++) split_late<EP, SPLIT>(k[m]);
            multiply_own<EP, SPLIT, M>(w[0], k, query_rows, lane);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int column = i0 + column_in(h, i, lane);
                    const float of_column = lse[column] * LIN_LOG2_E;
#pragma unroll
                    for (int m = 0; m < M; m++)
                        w[0][h][m][i] =
                            probability(w[0][h][m][i], scale, of_column, edge && tile + column < row + row_in(m, i, lane));
                }
            add_own<EP, SPLIT, M, 1>(dv, w, gradient_rows, NULL, lane);
            for (int m = 0; m < M; m++) split_late<EP, SPLIT>(v[m]);
            multiply_own<EP, SPLIT, M>(u[0], v, gradient_rows, lane);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float of_column = D[i0 + column_in(h, i, lane)];
#pragma unroll
                    for (int m = 0; m < M; m++) u[0][h][m][i] = w[0][h][m][i] * (u[0][h][m][i] - of_column);
                }
            add_own<EP, SPLIT, M, 1>(dk, u, query_rows, NULL, lane);
        }
    }
    float *to = job.out + first * 3 * width + width + head;
#pragma unroll
    for (int m = 0; m < M; m++, to += 16 * 3 * width) {
        store_rows<EP>(to, 3 * width, dk[m], job.scale, job.scale, p.rows - row - 16 * m, job.E, job.wide, lane);
        store_rows<EP>(to + width, 3 * width, dv[m], 1, 1, p.rows - row - 16 * m, job.E, job.wide, lane);
    }
}

template <int EP, int SPLIT> static void run_backward(lin_exec *exec, const softmax_job &job, const lin_segments *segments)
{
    enum { QUERIES = EP == 32 && !SPLIT ? 2 : 1, KEYS = 1 };
    const size_t tiles = 4 * sizes<EP>::tile * sizeof(float), with_terms = tiles + 4 * TILE * sizeof(float);
    LIN_ALLOW_SHARED(exec, (softmax_queries<EP, SPLIT, QUERIES>), tiles);
    LIN_LAUNCH(exec, (softmax_queries<EP, SPLIT, QUERIES>), lin_softmax_grid(job, segments, 64 * QUERIES), GROUP, tiles, job);
    LIN_ALLOW_SHARED(exec, (softmax_keys<EP, SPLIT, KEYS>), with_terms);
    LIN_LAUNCH(exec, (softmax_keys<EP, SPLIT, KEYS>), lin_softmax_grid(job, segments, 64 * KEYS), GROUP, with_terms, job);
}

void lin_cuda_softmax_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y, const float *lse,
                               const lin_segments *segments, int H, int E, int causal)
{
    if (segments->B == 0 || segments->rows == 0 || segments->longest == 0 || H == 0 || E == 0) return;
    if (!lin_attention_tiled(exec, E)) return;
    const softmax_job job = {.qkv = qkv, .y = y, .dy = dy, .lse = lse, .out = dqkv,
                             .terms = (float *)lin_cuda_scratch(exec, (size_t)segments->rows * (size_t)H * sizeof(float)),
                             .offsets = segments->offsets, .B = segments->B, .H = H, .E = E, .causal = causal != 0,
                             .wide = (E == 32 || E == 64) && lin_cuda_aligned(dqkv, dy, qkv, y), .scale = 1 / sqrtf((float)E)};
    if (!job.terms) return;
    LIN_TILED(run_backward, E, exec, job, segments);
}

