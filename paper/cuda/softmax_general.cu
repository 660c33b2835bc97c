// Softmax attention for head widths without tiles in softmax_attention.cu (64 < E <= 256): a warp for each row, with the row's
// columns spread over its lanes; correct, but slow.
#include "paper/cuda/softmax_attention.h"

enum { LANE_COLUMNS = 8, GENERAL_WARPS = 4 }; // E <= 256

// Column lane + 32 c of a row in x[c]; 0 from E on.
static __device__ __forceinline__ void load_row(float (&x)[LANE_COLUMNS], const float *from, int E)
{
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; c++) x[c] = lane + 32 * c < E ? from[lane + 32 * c] : 0;
}

static __device__ __forceinline__ void store_row(float *to, const float (&x)[LANE_COLUMNS], float factor, int E)
{
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; c++)
        if (lane + 32 * c < E) to[lane + 32 * c] = x[c] * factor;
}

static __device__ __forceinline__ float dot_rows(const float (&a)[LANE_COLUMNS], const float (&b)[LANE_COLUMNS])
{
    float sum = 0;
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; c++) sum = fmaf(a[c], b[c], sum);
    return lin_warp_sum(sum);
}

static __device__ __forceinline__ void add_row(float (&out)[LANE_COLUMNS], float w, const float (&x)[LANE_COLUMNS])
{
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; c++) out[c] = fmaf(w, x[c], out[c]);
}

// The warp's row; returns 0 if there is none.
static __device__ __forceinline__ int general_row(softmax_place *p, const softmax_job &job, int *row)
{
    *row = (int)(blockIdx.y * GENERAL_WARPS + threadIdx.x / 32);
    return softmax_find(p, job, blockIdx.x) && *row < p->rows;
}

static __global__ void __launch_bounds__(GENERAL_WARPS * 32) softmax_forward_general(softmax_job job)
{
    softmax_place p;
    int row;
    if (!general_row(&p, job, &row)) return;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)p.h * (size_t)job.E, at = p.first + (size_t)row;
    const int end = p.before + (job.causal ? row + 1 : p.rows);
    float q[LANE_COLUMNS], x[LANE_COLUMNS], out[LANE_COLUMNS] = {}, top = -INFINITY, sum = 0;
    load_row(q, job.qkv + at * 3 * width + head, job.E);
    for (int j = 0; j < end; j++) {
        load_row(x, p.k + (size_t)j * p.stride, job.E);
        const float score = dot_rows(q, x) * job.scale, higher = fmaxf(top, score);
        const float factor = expf(top - higher), w = expf(score - higher);
        load_row(x, p.v + (size_t)j * p.stride, job.E);
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; c++) out[c] = fmaf(out[c], factor, w * x[c]);
        sum = fmaf(sum, factor, w);
        top = higher;
    }
    store_row(job.out + at * width + head, out, 1 / sum, job.E);
    if (job.out_lse && threadIdx.x % 32 == 0) job.out_lse[at * (size_t)job.H + (size_t)p.h] = top + logf(sum);
}

static __global__ void __launch_bounds__(GENERAL_WARPS * 32) softmax_queries_general(softmax_job job)
{
    softmax_place p;
    int row;
    if (!general_row(&p, job, &row)) return;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)p.h * (size_t)job.E, at = p.first + (size_t)row;
    const size_t term = at * (size_t)job.H + (size_t)p.h;
    const int end = job.causal ? row + 1 : p.rows;
    float q[LANE_COLUMNS], g[LANE_COLUMNS], k[LANE_COLUMNS], v[LANE_COLUMNS], dq[LANE_COLUMNS] = {};
    load_row(q, job.qkv + at * 3 * width + head, job.E);
    load_row(g, job.dy + at * width + head, job.E);
    load_row(v, job.y + at * width + head, job.E);
    const float lse = job.lse[term], D = dot_rows(g, v);
    if (threadIdx.x % 32 == 0) job.terms[term] = D;
    for (int j = 0; j < end; j++) {
        load_row(k, p.k + (size_t)j * p.stride, job.E);
        load_row(v, p.v + (size_t)j * p.stride, job.E);
        add_row(dq, expf(fmaf(dot_rows(q, k), job.scale, -lse)) * (dot_rows(g, v) - D), k);
    }
    store_row(job.out + at * 3 * width + head, dq, job.scale, job.E);
}

static __global__ void __launch_bounds__(GENERAL_WARPS * 32) softmax_keys_general(softmax_job job)
{
    softmax_place p;
    int row;
    if (!general_row(&p, job, &row)) return;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)p.h * (size_t)job.E, at = p.first + (size_t)row;
    float q[LANE_COLUMNS], g[LANE_COLUMNS], k[LANE_COLUMNS], v[LANE_COLUMNS], dk[LANE_COLUMNS] = {}, dv[LANE_COLUMNS] = {};
    load_row(k, p.k + (size_t)row * p.stride, job.E);
    load_row(v, p.v + (size_t)row * p.stride, job.E);
    for (int i = job.causal ? row : 0; i < p.rows; i++) {
        const size_t query = p.first + (size_t)i, term = query * (size_t)job.H + (size_t)p.h;
        load_row(q, job.qkv + query * 3 * width + head, job.E);
        load_row(g, job.dy + query * width + head, job.E);
        const float w = expf(fmaf(dot_rows(q, k), job.scale, -job.lse[term]));
        add_row(dv, w, g);
        add_row(dk, w * (dot_rows(g, v) - job.terms[term]), q);
    }
    store_row(job.out + at * 3 * width + width + head, dk, job.scale, job.E);
    store_row(job.out + at * 3 * width + 2 * width + head, dv, 1, job.E);
}

void lin_softmax_forward_general(lin_exec *exec, const softmax_job &job, const lin_segments *segments)
{
    LIN_LAUNCH(exec, softmax_forward_general, lin_softmax_grid(job, segments, GENERAL_WARPS), GENERAL_WARPS * 32, 0, job);
}

void lin_softmax_backward_general(lin_exec *exec, const softmax_job &job, const lin_segments *segments)
{
    LIN_LAUNCH(exec, softmax_queries_general, lin_softmax_grid(job, segments, GENERAL_WARPS), GENERAL_WARPS * 32, 0, job);
    LIN_LAUNCH(exec, softmax_keys_general, lin_softmax_grid(job, segments, GENERAL_WARPS), GENERAL_WARPS * 32, 0, job);
}
