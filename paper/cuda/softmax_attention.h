/*
 * softmax_attention.h - device code shared by the forward and backward of softmax attention: places, products, masks.
 *
 * Internal to paper/cuda/softmax_attention*.cu. Tiles, fragments and the two precisions are those of attention.h. A block of 4
 * warps has the same rows (queries, or keys in one of the backward kernels) from begin to end, 16 M of them per warp, in
 * registers; the rows of the other kind pass through shared memory in tiles of 64, two pairs of tiles, of which one is filled
 * while the other is in use. Each operand read from shared memory serves M products; M is 2 where the registers suffice, else 1.
 *
 * Scores stay raw products q . k; their scale, 1 / sqrt(E) and the base 2 of the exponential, is applied in the subtraction of
 * the maximum, one fused multiply-add. Products of a few tiles' columns are summed by the tensor core, the sums over columns by
 * fp32 additions: the tensor core truncates, and over many tiles that error would accumulate.
 */
#ifndef LIN_PAPER_CUDA_SOFTMAX_ATTENTION_H
#define LIN_PAPER_CUDA_SOFTMAX_ATTENTION_H

#include <math.h>

#include "kernels/cuda/attention.h"

#define LIN_LOG2_E 1.44269504088896340736f
#define LIN_LN_2 0.69314718055994530942f

// The arguments of all kernels.
typedef struct softmax_job {
    const float *qkv, *y, *dy, *lse; // [rows, 3, H, E], [rows, H, E] twice, [rows, H]
    float *out, *out_lse;            // y or dqkv; lse or NULL
    float *terms;                    // [rows, H]: dy_i . y_i, from the first kernel of the backward to the second
    const int *offsets;              // [B+1]
    const lin_cache *caches;
    int B, H, E, causal, layer;
    int wide;    // E = EP, and the pointers are aligned to 16 bytes
    float scale; // 1 / sqrt(E)
} softmax_job;

// One (utterance, head). With a cache, keys and values of the earlier frames and of the rows are in it: row i is frame before +
// i.
typedef struct softmax_place {
    int b, h, rows, before, wide;
    size_t first;       // row
    const float *k, *v; // of the first frame
    size_t stride;      // floats from frame to frame
} softmax_place;

static __device__ __forceinline__ int softmax_find(softmax_place *p, const softmax_job &job, unsigned pair)
{
    p->b = (int)(pair / (unsigned)job.H);
    p->h = (int)(pair % (unsigned)job.H);
    p->first = (size_t)job.offsets[p->b];
    p->rows = job.offsets[p->b + 1] - job.offsets[p->b];
    p->before = 0;
    p->wide = job.wide;
    const size_t width = (size_t)job.H * (size_t)job.E;
    const lin_cache *cache = job.caches ? &job.caches[p->b] : NULL;
    if (cache && cache->kv) {
        p->k = (const float *)cache->kv + (size_t)job.layer * (size_t)cache->capacity * 2 * width;
        p->before = cache->n;
        p->stride = 2 * width;
        p->wide = job.wide && ((uintptr_t)p->k & 15) == 0;
    } else {
        p->k = job.qkv + p->first * 3 * width + width;
        p->stride = 3 * width;
    }
    p->k += (size_t)p->h * (size_t)job.E;
    p->v = p->k + width;
    return p->rows > 0;
}

static __device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* ---- own rows -------------------------------------------------------------------------------------------------------------- */

// M times 16 rows of a head as left operands. Rows from n on and columns from E on are 0.
template <int EP, int M>
static __device__ __forceinline__ void load_global(float (&x)[M][EP / 8][4], const float *from, size_t stride, int n, int E,
                                                   int wide, int lane)
{
#pragma unroll
    for (int m = 0; m < M; m++) fetch_own<EP>(x[m], from + (size_t)(16 * m) * stride, stride, n - 16 * m, E, wide, lane);
}

template <int EP, int SPLIT, int M> static __device__ __forceinline__ void round_own(float (&x)[M][EP / 8][4])
{
#pragma unroll
    for (int m = 0; m < M; m++) own_operands<EP, SPLIT, 0>(x[m]);
}

/* ---- products -------------------------------------------------------------------------------------------------------------- */

// c[m] += a[m] b for M left operands that share the right one.
template <int SPLIT, int M>
static __device__ __forceinline__ void multiply_all(float (&c)[M][4], const float (&a)[M][4], const float (&b)[2])
{
#pragma unroll
    for (int m = 0; m < M; m++) multiply<SPLIT>(c[m], a[m], b);
}

// w[m][h] = own rows times 16 rows of a tile, transposed; the columns as in multiply_rows of attention.h.
template <int EP, int SPLIT, int M>
static __device__ __forceinline__ void multiply_own(float (&w)[2][M][4], const float (&own)[M][EP / 8][4], const float *rows,
                                                    int lane)
{
    const float *at = rows + result_row(lane >> 2) * sizes<EP>::stride + 2 * (lane & 3);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) w[h][m][i] = 0;
#pragma unroll
    for (int s = 0; s < EP / 8; s++) {
        float a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) a[m][i] = own[m][s][i];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float2 x = *reinterpret_cast<const float2 *>(at + 8 * h * sizes<EP>::stride + 8 * s);
            const float b[2] = {x.x, x.y};
            multiply_all<SPLIT, M>(w[h], a, b);
        }
    }
}

// out = factor out + w times 16 N rows of a tile, w from multiply_own, factor [m][half] (NULL: 1).
template <int EP, int SPLIT, int M, int N>
static __device__ __forceinline__ void add_own(float (&out)[M][EP / 8][4], const float (&w)[N][2][M][4], const float *rows,
                                               const float (*factor)[2], int lane)
{
    float a[N][2][M][4];
#pragma unroll
    for (int u = 0; u < N; u++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int m = 0; m < M; m++) {
                a[u][h][m][0] = operand<SPLIT>(w[u][h][m][0]);
                a[u][h][m][1] = operand<SPLIT>(w[u][h][m][2]);
                a[u][h][m][2] = operand<SPLIT>(w[u][h][m][1]);
                a[u][h][m][3] = operand<SPLIT>(w[u][h][m][3]);
            }
#pragma unroll
    for (int n = 0; n < EP / 8; n++) {
        float sum[M][4] = {};
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float b[2];
                load_rows<EP>(b, rows + 16 * u * sizes<EP>::stride, h, n, lane);
                multiply_all<SPLIT, M>(sum, a[u][h], b);
            }
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[m][n][i] = factor ? fmaf(out[m][n][i], factor[m][i >> 1], sum[m][i]) : out[m][n][i] + sum[m][i];
    }
}

// The row and the column, among a warp's own rows and 16 columns, of element i of w[h][m].
static __device__ __forceinline__ int row_in(int m, int i, int lane) { return 16 * m + 8 * (i >> 1) + (lane >> 2); }
static __device__ __forceinline__ int column_in(int h, int i, int lane) { return 8 * h + result_row(2 * (lane & 3) + (i & 1)); }

/* ---- tiles ----------------------------------------------------------------------------------------------------------------- */

// Starts copying frames tile .. tile+63, of which `frames` exist in all, of two matrices.
template <int EP>
static __device__ __forceinline__ void copy_pair(float *to, const float *x, size_t x_stride, const float *y, size_t y_stride,
                                                 int tile, int frames, int E, int wide, int who)
{
    const int n = frames - tile < TILE ? frames - tile : TILE;
    copy_rows<EP, GROUP, TILE>(to, x + (size_t)tile * x_stride, x_stride, n, E, wide, who);
    copy_rows<EP, GROUP, TILE>(to + sizes<EP>::tile, y + (size_t)tile * y_stride, y_stride, n, E, wide, who);
}

// A block for `rows` rows of an (utterance, head).
static inline dim3 lin_softmax_grid(const softmax_job &job, const lin_segments *segments, size_t rows)
{
    return dim3((unsigned)(job.B * job.H), lin_cuda_blocks((size_t)segments->longest, rows));
}

#endif
