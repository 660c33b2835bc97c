// Softmax attention as the paper timed it: all scores are computed and stored, then their softmax, then the product with the
// values; the causal mask saves no work. Products as in attention.h, by the tensor cores, 64 rows times 64 at a time.
//
// The lengths of utterances are known only on the device, so that a graph can serve many batches. A library's batched product
// would need them on the host, and products with an inner dimension of E are limited by the memory traffic of p anyway.
#include "paper/cuda/softmax_attention.h"

enum { SOFTMAX_WARPS = 8 };

typedef struct naive_job {
    const float *qkv, *y, *dy;
    float *p;            // [H, T, T] of each utterance
    const size_t *bases; // [B]: element of p where an utterance begins
    const int *offsets;
    int B, H, E, causal, aligned;
    float scale;
} naive_job;

// A matrix of rows of E columns, a head's part of it first.
typedef struct naive_rows {
    const float *x;
    size_t stride;
} naive_rows;

typedef struct naive_place {
    int rows;
    size_t first, head; // row of the utterance, column of the head
    float *p;
} naive_place;

static __device__ __forceinline__ int naive_find(naive_place *place, const naive_job &job)
{
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H);
    place->first = (size_t)job.offsets[b];
    place->rows = job.offsets[b + 1] - job.offsets[b];
    place->head = (size_t)h * (size_t)job.E;
    place->p = job.p + job.bases[b] + (size_t)h * (size_t)place->rows * (size_t)place->rows;
    return place->rows > 0;
}

// Columns of the slice of EP columns from e0 on, and whether they may be read 16 bytes at a time.
template <int EP> static __device__ __forceinline__ int slice_of(const naive_job &job, int e0, int *wide)
{
    const int E = job.E - e0 < EP ? job.E - e0 : EP;
    *wide = job.aligned && E == EP && job.E % 4 == 0;
    return E;
}

// bases[b] = H times the sum of T^2 over the utterances before b. One warp.
static __global__ void __launch_bounds__(32) naive_bases(size_t *bases, const int *offsets, int B, int H)
{
    const int lane = (int)threadIdx.x;
    unsigned long long before = 0;
    for (int b0 = 0; b0 < B; b0 += 32) {
        const int b = b0 + lane;
        const unsigned long long T = b < B ? (unsigned long long)(offsets[b + 1] - offsets[b]) : 0;
        unsigned long long sum = T * T;
        for (int o = 1; o < 32; o *= 2) {
            const unsigned long long other = __shfl_up_sync(0xffffffffu, sum, (unsigned)o);
            if (lane >= o) sum += other;
        }
        if (b < B) bases[b] = (size_t)((before + sum - T * T) * (unsigned long long)H);
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
}

// GRADIENT 0: p_ij = s q_i k_j, minus infinity where masked. GRADIENT 1: p_ij becomes p_ij (dy_i . v_j - dy_i . y_i).
template <int EP, int SPLIT, int GRADIENT> __global__ void __launch_bounds__(GROUP) naive_tile(naive_job job)
{
    LIN_SHARED(float, tile);
    naive_place place;
    if (!naive_find(&place, job)) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32;
    const int row = (int)blockIdx.y * TILE + warp * 16, column = (int)blockIdx.z * TILE, T = place.rows;
    if ((int)blockIdx.y * TILE >= T || column >= T) return;
    const size_t width = (size_t)job.H * (size_t)job.E, at = place.first + (size_t)row;
    const float *left = GRADIENT ? job.dy + at * width : job.qkv + at * 3 * width;
    const float *right = job.qkv + (place.first + (size_t)column) * 3 * width + (GRADIENT ? 2 : 1) * width;
    const size_t left_stride = GRADIENT ? width : 3 * width;
    float w[4][2][1][4] = {}, upper = 0, lower = 0;
    for (int e0 = 0; e0 < job.E; e0 += EP) {
        int wide;
        const int E = slice_of<EP>(job, e0, &wide);
        const size_t head = place.head + (size_t)e0;
        float own[1][EP / 8][4];
        __syncthreads();
        copy_rows<EP, GROUP, TILE>(tile, right + head, 3 * width, T - column, E, wide, who);
        lin_copy_commit();
        if (GRADIENT) {
            float y[1][EP / 8][4];
            load_global<EP, 1>(y, job.y + at * width + head, width, T - row, E, wide, lane);
            load_global<EP, 1>(own, left + head, left_stride, T - row, E, wide, lane);
            round_own<EP, SPLIT, 1>(own);
#pragma unroll
            for (int s = 0; s < EP / 8; s++) {
                upper = fmaf(own[0][s][0], y[0][s][0], fmaf(own[0][s][2], y[0][s][2], upper));
                lower = fmaf(own[0][s][1], y[0][s][1], fmaf(own[0][s][3], y[0][s][3], lower));
            }
        } else {
            load_global<EP, 1>(own, left + head, left_stride, T - row, E, wide, lane);
            round_own<EP, SPLIT, 1>(own);
        }
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(tile, NULL, who);
        __syncthreads();
#pragma unroll
        for (int u = 0; u < 4; u++) {
            float part[2][1][4];
            multiply_own<EP, SPLIT, 1>(part, own, tile + 16 * u * sizes<EP>::stride, lane);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < 4; i++) w[u][h][0][i] += part[h][0][i];
        }
    }
    upper = quad_sum(upper);
    lower = quad_sum(lower);
#pragma unroll
    for (int u = 0; u < 4; u++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int r = row + row_in(0, i, lane), c = column + 16 * u + column_in(h, i, lane);
                if (r >= T || c >= T) continue;
                float *to = place.p + (size_t)r * (size_t)T + (size_t)c;
                if (GRADIENT) *to *= w[u][h][0][i] - (i >> 1 ? lower : upper);
                else *to = job.causal && c > r ? -INFINITY : w[u][h][0][i] * job.scale;
            }
}

// The softmax of each row of p, in place, by a warp.
static __global__ void __launch_bounds__(SOFTMAX_WARPS * 32) naive_softmax(naive_job job)
{
    naive_place place;
    const int row = (int)(blockIdx.y * SOFTMAX_WARPS + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    if (!naive_find(&place, job) || row >= place.rows) return;
    float *p = place.p + (size_t)row * (size_t)place.rows, top = -INFINITY, sum = 0;
#pragma unroll 4
    for (int j = lane; j < place.rows; j += 32) top = fmaxf(top, p[j]);
    top = lin_warp_max(top);
#pragma unroll 4
    for (int j = lane; j < place.rows; j += 32) {
        const float x = expf(p[j] - top);
        sum += x;
        p[j] = x;
    }
    const float inverse = 1 / lin_warp_sum(sum);
#pragma unroll 4
    for (int j = lane; j < place.rows; j += 32) p[j] *= inverse;
}

// out_i = factor sum_j p_ij x_j or, TRANSPOSED, factor sum_j p_ji x_j; x and out point to the first row and column of the batch.
template <int EP, int SPLIT, int TRANSPOSED>
__global__ void __launch_bounds__(GROUP) naive_product(naive_job job, float *out, size_t out_stride, naive_rows x, float factor)
{
    LIN_SHARED(float, shared);
    naive_place place;
    if (!naive_find(&place, job)) return;
    const int who = (int)threadIdx.x, warp = who / 32, lane = who % 32, T = place.rows;
    const int row = (int)blockIdx.y * TILE + warp * 16, e0 = (int)blockIdx.z * EP;
    if ((int)blockIdx.y * TILE >= T) return;
    int wide;
    const int E = slice_of<EP>(job, e0, &wide);
    const size_t head = place.head + (size_t)e0, rows_apart = TRANSPOSED ? 1 : (size_t)T,
                 columns_apart = TRANSPOSED ? (size_t)T : 1;
    const float *from = x.x + place.first * x.stride + head;
    float sum[1][EP / 8][4];
    clear_rows<EP>(sum[0]);
    copy_rows<EP, GROUP, TILE>(shared, from, x.stride, T, E, wide, who);
    lin_copy_commit();
    int odd = 0;
    for (int tile = 0; tile < T; tile += TILE, odd ^= 1) {
        float *const rows = shared + odd * sizes<EP>::tile;
        lin_copy_wait<0>();
        tile_operands<EP, SPLIT>(rows, NULL, who);
        __syncthreads();
        if (tile + TILE < T) {
            copy_rows<EP, GROUP, TILE>(shared + (odd ^ 1) * sizes<EP>::tile, from + (size_t)(tile + TILE) * x.stride, x.stride,
                                       T - tile - TILE, E, wide, who);
            lin_copy_commit();
        }
        for (int j = 0; j < TILE && tile + j < T && row < T; j += 16) {
            float w[1][2][1][4];
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int r = row + row_in(0, i, lane), c = tile + j + column_in(h, i, lane);
                    w[0][h][0][i] = r < T && c < T ? place.p[(size_t)r * rows_apart + (size_t)c * columns_apart] : 0;
                }
            add_own<EP, SPLIT, 1, 1>(sum, w, rows + j * sizes<EP>::stride, NULL, lane);
        }
    }
    store_rows<EP>(out + (place.first + (size_t)row) * out_stride + head, out_stride, sum[0], factor, factor, T - row, E, wide,
                   lane);
}

/* ---- the operations -------------------------------------------------------------------------------------------------------- */

template <int EP, int SPLIT, int GRADIENT> static void run_tiles(lin_exec *exec, const naive_job &job, unsigned tiles)
{
    const size_t bytes = sizes<EP>::tile * sizeof(float);
    LIN_LAUNCH(exec, (naive_tile<EP, SPLIT, GRADIENT>), dim3((unsigned)(job.B * job.H), tiles, tiles), GROUP, bytes, job);
}

template <int EP, int SPLIT, int TRANSPOSED>
static void run_product(lin_exec *exec, const naive_job &job, unsigned tiles, float *out, size_t out_stride, const float *x,
                        size_t x_stride, float factor)
{
    const naive_rows rows = {x, x_stride};
    const size_t bytes = 2 * sizes<EP>::tile * sizeof(float);
    const dim3 grid((unsigned)(job.B * job.H), tiles, lin_cuda_blocks((size_t)job.E, EP));
    LIN_LAUNCH(exec, (naive_product<EP, SPLIT, TRANSPOSED>), grid, GROUP, bytes, job, out, out_stride, rows, factor);
}

template <int EP, int SPLIT> static void run_forward(lin_exec *exec, const naive_job &job, int longest, float *y)
{
    const size_t width = (size_t)job.H * (size_t)job.E;
    const unsigned tiles = lin_cuda_blocks((size_t)longest, TILE);
    run_tiles<EP, SPLIT, 0>(exec, job, tiles);
    LIN_LAUNCH(exec, naive_softmax, dim3((unsigned)(job.B * job.H), lin_cuda_blocks((size_t)longest, SOFTMAX_WARPS)),
               SOFTMAX_WARPS * 32, 0, job);
    run_product<EP, SPLIT, 0>(exec, job, tiles, y, width, job.qkv + 2 * width, 3 * width, 1);
}

template <int EP, int SPLIT> static void run_backward(lin_exec *exec, const naive_job &job, int longest, float *dqkv)
{
    const size_t width = (size_t)job.H * (size_t)job.E;
    const unsigned tiles = lin_cuda_blocks((size_t)longest, TILE);
    run_product<EP, SPLIT, 1>(exec, job, tiles, dqkv + 2 * width, 3 * width, job.dy, width, 1);
    run_tiles<EP, SPLIT, 1>(exec, job, tiles);
    run_product<EP, SPLIT, 0>(exec, job, tiles, dqkv, 3 * width, job.qkv + width, 3 * width, job.scale);
    run_product<EP, SPLIT, 1>(exec, job, tiles, dqkv + width, 3 * width, job.qkv, 3 * width, job.scale);
}

static naive_job job_of(lin_exec *exec, float *p, const float *dy, const float *qkv, const float *y, const lin_segments *segments,
                        int H, int E, int causal)
{
    size_t *bases = (size_t *)lin_cuda_scratch(exec, (size_t)segments->B * sizeof *bases);
    if (bases) LIN_LAUNCH(exec, naive_bases, 1, 32, 0, bases, segments->offsets, segments->B, H);
    return {.qkv = qkv, .y = y, .dy = dy, .p = p, .bases = bases, .offsets = segments->offsets, .B = segments->B, .H = H, .E = E,
            .causal = causal != 0, .scale = 1 / sqrtf((float)E)};
}

static int nothing(const lin_segments *segments, int H, int E)
{
    return segments->B == 0 || segments->rows == 0 || segments->longest == 0 || H == 0 || E == 0;
}

void lin_cuda_softmax_naive_forward(lin_exec *exec, float *y, float *p, const float *qkv, const lin_segments *segments, int H,
                                    int E, int causal)
{
    if (nothing(segments, H, E) || !lin_cuda_ready(exec)) return;
    naive_job job = job_of(exec, p, NULL, qkv, NULL, segments, H, E, causal);
    if (!job.bases) return;
    job.aligned = lin_cuda_aligned(y, qkv);
    LIN_TILED(run_forward, E, exec, job, segments->longest, y);
}

void lin_cuda_softmax_naive_backward(lin_exec *exec, float *dqkv, float *p, const float *dy, const float *qkv, const float *y,
                                     const lin_segments *segments, int H, int E, int causal)
{
    if (nothing(segments, H, E) || !lin_cuda_ready(exec)) return;
    naive_job job = job_of(exec, p, dy, qkv, y, segments, H, E, causal);
    if (!job.bases) return;
    job.aligned = lin_cuda_aligned(dqkv, dy, qkv, y);
    LIN_TILED(run_backward, E, exec, job, segments->longest, dqkv);
}
