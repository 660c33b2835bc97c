// LSH attention: the operations, and the forward pass in tiles; see lsh.h and lsh_tiles.h. Softmax with a running maximum and sum
// (Milakov & Gimelshein 2018), a tile at a time.
#include "paper/cuda/lsh_tiles.h"

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

template <int EP, int SPLIT> static void run_tiles(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const size_t shared = sizeof(lsh_tile<EP>);
    for (int i = 0; i < job.rounds; i++) {
        job.round = i;
        LIN_LAUNCH(exec, (forward_tiles<EP, SPLIT>), lsh_tile_grid(job, segments), GROUP, shared, job);
    }
}

static void forward(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const int split = exec->precision == LIN_PRECISION_FP32;
    job.wide = (job.E == 32 || job.E == 64) && lin_cuda_aligned(job.qv);
    if (job.E > 64) lin_lsh_forward_general(exec, job, segments);
    else if (job.E > 32 && split) run_tiles<64, 1>(exec, job, segments);
    else if (job.E > 32) run_tiles<64, 0>(exec, job, segments);
    else if (split) run_tiles<32, 1>(exec, job, segments);
    else run_tiles<32, 0>(exec, job, segments);
}

static int nothing_to_do(lin_exec *exec, const lin_segments *segments, const lin_lsh *lsh, int H, int E)
{
    return segments->B == 0 || segments->rows == 0 || lsh->rounds == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec);
}

static lsh_job job_of(const float *qv, const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E,
                      int causal)
{
    lsh_job job = {};
    job.qv = qv;
    job.order = order;
    job.offsets = segments->offsets;
    job.rows = segments->rows;
    job.H = H;
    job.E = E;
    job.causal = causal;
    job.chunk = lsh->chunk;
    job.rounds = lsh->rounds;
    return job;
}

void lin_cuda_lsh_forward(lin_exec *exec, float *y, float *lse, int *order, const float *qv, const float *R,
                          const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    lin_lsh_sort(exec, order, qv, R, segments, lsh, H, E);
    lsh_job job = job_of(qv, order, segments, lsh, H, E, causal);
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    if (!terms) return;
    job.y = y;
    job.lse = lse;
    job.terms = terms;
    lin_lsh_terms(exec, terms, job);
    forward(exec, job, segments);
}

void lin_cuda_lsh_backward(lin_exec *exec, float *dqv, const float *dy, const float *qv, const float *y, const float *lse,
                           const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    if (nothing_to_do(exec, segments, lsh, H, E)) return;
    lsh_job job = job_of(qv, order, segments, lsh, H, E, causal);
    float *terms = (float *)lin_cuda_scratch(exec, 2 * (size_t)segments->rows * (size_t)H * sizeof(float));
    if (!terms) return;
    job.y = const_cast<float *>(y);
    job.lse = const_cast<float *>(lse);
    job.dy = dy;
    job.dqv = dqv;
    job.terms = terms;
    lin_lsh_terms(exec, terms, job);
    if (E > 64) lin_lsh_backward_general(exec, job, segments);
    else lin_lsh_backward_tiles(exec, job, segments);
}
