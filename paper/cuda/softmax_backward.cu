// Softmax attention, backward (Dao et al. 2022, Algorithm 4). The forward keeps y and lse; with p_ij = exp(s q_i k_j - lse_i),
// s = 1 / sqrt(E), D_i = dy_i . y_i and u_ij = p_ij (dy_i . v_j - D_i):
//   dq_i = s sum_j u_ij k_j                                  one kernel, by blocks of queries, over the keys
//   dk_j = s sum_i u_ij q_i       dv_j = sum_i p_ij dy_i     another, by blocks of keys, over the queries
// so no sum needs atomics. softmax_attention.h describes the division of the work. The first kernel stores D_i for the second.
#include "paper/cuda/softmax_attention.h"

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
    if (segments->B == 0 || segments->rows == 0 || segments->longest == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec)) return;
    softmax_job job = {};
    job.qkv = qkv;
    job.y = y;
    job.dy = dy;
    job.lse = lse;
    job.out = dqkv;
    job.offsets = segments->offsets;
    job.B = segments->B;
    job.H = H;
    job.E = E;
    job.causal = causal != 0;
    job.wide = (E == 32 || E == 64) && lin_cuda_aligned(dqkv, dy, qkv, y);
    job.scale = 1 / sqrtf((float)E);
    job.terms = (float *)lin_cuda_scratch(exec, (size_t)segments->rows * (size_t)H * sizeof(float));
    if (!job.terms) return;
    const int split = exec->precision == LIN_PRECISION_FP32;
    if (E > 64) lin_softmax_backward_general(exec, job, segments);
    else if (E <= 32 && split) run_backward<32, 1>(exec, job, segments);
    else if (E <= 32) run_backward<32, 0>(exec, job, segments);
    else if (split) run_backward<64, 1>(exec, job, segments);
    else run_backward<64, 0>(exec, job, segments);
}
