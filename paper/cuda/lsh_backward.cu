// LSH attention, backward, in tiles: see lsh.h and lsh_tiles.h. With p_ij = exp(s_ij - lse_i), D_i = dy_i . y_i,
// ds_ij = p_ij (dy_i . v_j - D_i), 0 for i = j, and w_j = 1 / (|q_j| sqrt(E)):
//   dv_j = sum_i p_ij dy_i
//   dq_i = sum_j ds_ij w_j q_j, as a query, + sum_j ds_ji w_i q_j - q_i sum_j ds_ji s_ji / |q_i|^2, as a key.
// A block reads first the keys that its frames see, then the queries that see them.
#include "paper/cuda/lsh_tiles.h"

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

template <int EP, int SPLIT> static void run_tiles(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const size_t shared = sizeof(lsh_tile<EP>);
    for (int i = 0; i < job.rounds; i++) {
        job.round = i;
        LIN_LAUNCH(exec, (backward_tiles<EP, SPLIT>), lsh_tile_grid(job, segments), GROUP, shared, job);
    }
}

void lin_lsh_backward_tiles(lin_exec *exec, lsh_job &job, const lin_segments *segments)
{
    const int split = exec->precision == LIN_PRECISION_FP32;
    job.wide = (job.E == 32 || job.E == 64) && lin_cuda_aligned(job.qv, job.dy);
    if (job.E > 32 && split) run_tiles<64, 1>(exec, job, segments);
    else if (job.E > 32) run_tiles<64, 0>(exec, job, segments);
    else if (split) run_tiles<32, 1>(exec, job, segments);
    else run_tiles<32, 0>(exec, job, segments);
}
