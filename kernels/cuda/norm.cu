// Layer normalisation and the operations beside it in a block: residual, dropout, and the gradients of all of them.
//
// All are limited by memory bandwidth, so every matrix is read once and written once. Rows of a multiple of 4 columns, at most
// 1,024, are held in registers by 16 or 32 threads each, four neighbouring elements per load and per draw of dropout; all loads
// of a row start before the first is used. Other shapes and alignments use a warp per row that reads the row three times.
//
// The gradients of gamma, beta and the bias before the norm: each block sums its rows in registers, then over its threads in
// order, and writes one row of partial sums; lin_cuda_fold adds those up in order.
#include "kernels/cuda/linear.h"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    GRADIENT_BLOCKS = 512, // independent of the GPU, so that sums are the same: two to four for each multiprocessor
};

#define EPSILON 1e-5f

static __device__ __forceinline__ float4 add4(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 mul4(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

// (a - m) s
static __device__ __forceinline__ float4 scaled4(float4 a, float m, float s)
{
    return make_float4((a.x - m) * s, (a.y - m) * s, (a.z - m) * s, (a.w - m) * s);
}

static __device__ __forceinline__ float total4(float4 a) { return (a.x + a.y) + (a.z + a.w); }

static __device__ __forceinline__ float4 zero4(void) { return make_float4(0, 0, 0, 0); }

// Four elements of x, group by group, or zeros.
static __device__ __forceinline__ float4 load4(const float *x, size_t group, int use)
{
    float4 v = zero4();
    if (use) v = reinterpret_cast<const float4 *>(x)[group];
    return v;
}

// The same in bf16.
static __device__ __forceinline__ void store4(bf16 *to, size_t group, float4 v)
{
    reinterpret_cast<uint2 *>(to)[group] = make_uint2(to_bf16(v.x) | (uint32_t)to_bf16(v.y) << 16,
                                                      to_bf16(v.z) | (uint32_t)to_bf16(v.w) << 16);
}

/* ---- forward, rows in registers -------------------------------------------------------------------------------------------- */

// LANES threads hold a row, GROUPS times four elements each: lane g % LANES has group g of the row. sum, r: NULL if there is
// nothing to add. sum may be x, or y: then it is not kept. operand: NULL, or y in bf16 too.
template <int LANES, int GROUPS>
static __global__ void __launch_bounds__(THREADS)
    norm_rows(bf16 *operand, float *sum, float *y, float *stats, const float *x, const float *r,
              const float *__restrict__ gamma, const float *__restrict__ beta, int rows, int width, lin_cuda_mask mask)
{
    const int lane = (int)threadIdx.x % LANES;
    const int row = (int)(blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES);
    const int there = row < rows; // no early return: the sums need whole warps
    const size_t at = (size_t)(there ? row : 0) * (size_t)width;
    float4 v[GROUPS], d[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const int g = lane + i * LANES;
        const int use = there && g < width;
        v[i] = load4(x, at + (size_t)g, use);
        d[i] = load4(r, at + (size_t)g, use && r);
    }
    if (r) {
        const lin_cuda_draw draw = lin_cuda_draw_of(mask);
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int g = lane + i * LANES;
            if (mask.key) d[i] = lin_cuda_drop4(d[i], lin_cuda_bits4(draw, at + (size_t)g), mask);
            v[i] = add4(v[i], d[i]);
            if (there && g < width && sum != y) reinterpret_cast<float4 *>(sum)[at + (size_t)g] = v[i];
        }
    }
    float total = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) total += total4(v[i]);
    const float C = (float)(4 * width);
    const float mean = lin_warp_sum<LANES>(total) / C;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const float4 c = scaled4(v[i], mean, 1);
        if (lane + i * LANES < width) squares += total4(mul4(c, c));
    }
    const float rstd = 1 / sqrtf(lin_warp_sum<LANES>(squares) / C + EPSILON);
    if (!there) return;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const int g = lane + i * LANES;
        if (g >= width) continue;
        const float4 a = reinterpret_cast<const float4 *>(gamma)[g], b = reinterpret_cast<const float4 *>(beta)[g];
        const float4 out = add4(mul4(scaled4(v[i], mean, rstd), a), b);
        reinterpret_cast<float4 *>(y)[at + (size_t)g] = out;
        if (operand) store4(operand, at + (size_t)g, out);
    }
    if (stats && lane == 0) {
        stats[2 * (size_t)row] = mean;
        stats[2 * (size_t)row + 1] = rstd;
    }
}

/* ---- forward, any shape ---------------------------------------------------------------------------------------------------- */

// Dropout of one element.
static __device__ __forceinline__ float drop_one(float v, size_t i, lin_cuda_draw d, lin_cuda_mask m)
{
    if (!m.key) return v;
    i += d.first;
    const unsigned lane = (unsigned)(lin_random_bits(d.key, i / 4) >> 16 * (i % 4)) & 0xFFFFu;
    return lane >= m.threshold ? v * m.scale : 0;
}

static __global__ void __launch_bounds__(THREADS)
    norm_any(float *sum, float *y, float *stats, const float *x, const float *r, const float *__restrict__ gamma,
             const float *__restrict__ beta, int rows, int C, lin_cuda_mask mask)
{
    const int lane = (int)threadIdx.x % 32, row = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (row >= rows) return;
    const size_t at = (size_t)row * (size_t)C;
    const lin_cuda_draw draw = lin_cuda_draw_of(mask);
    const float *in = r ? sum : x; // a lane reads back only what it wrote
    float total = 0, squares = 0;
    for (int c = lane; c < C; c += 32) {
        float v = x[at + (size_t)c];
        if (r) {
            v += drop_one(r[at + (size_t)c], at + (size_t)c, draw, mask);
            sum[at + (size_t)c] = v;
        }
        total += v;
    }
    const float mean = lin_warp_sum(total) / (float)C;
    for (int c = lane; c < C; c += 32) {
        const float v = in[at + (size_t)c] - mean;
        squares += v * v;
    }
    const float rstd = 1 / sqrtf(lin_warp_sum(squares) / (float)C + EPSILON);
    for (int c = lane; c < C; c += 32) y[at + (size_t)c] = (in[at + (size_t)c] - mean) * rstd * gamma[c] + beta[c];
    if (stats && lane == 0) {
        stats[2 * (size_t)row] = mean;
        stats[2 * (size_t)row + 1] = rstd;
    }
}

// F(LANES, GROUPS) for rows of C columns.
#define BY_WIDTH(C, F)                                                                                                           \
    do {                                                                                                                         \
        if ((C) <= 64) F(16, 1);                                                                                                 \
        else if ((C) <= 128) F(32, 1);                                                                                           \
        else if ((C) <= 192) F(16, 3);                                                                                           \
        else if ((C) <= 256) F(32, 2);                                                                                           \
        else if ((C) <= 512) F(32, 4);                                                                                           \
        else F(32, 8);                                                                                                           \
    } while (0)

#define NORM_ROWS(LANES, GROUPS)                                                                                                 \
    LIN_LAUNCH(exec, (norm_rows<LANES, GROUPS>), lin_cuda_blocks((size_t)rows, THREADS / LANES), THREADS, 0, operand, sum, y,    \
               stats, x, r, gamma, beta, rows, C / 4, mask)

static void forward(lin_exec *exec, bf16 *operand, float *sum, float *y, float *stats, const float *x, const float *r,
                    const float *gamma, const float *beta, int rows, int C, lin_cuda_mask mask)
{
    if (rows == 0 || C == 0) return;
    if (C % 4 != 0 || C > 1024 || !lin_cuda_aligned(sum, y, x, r) || !lin_cuda_aligned(gamma, beta)) {
        LIN_LAUNCH(exec, norm_any, lin_cuda_blocks((size_t)rows, WARPS), THREADS, 0, sum, y, stats, x, r, gamma, beta, rows, C,
                   mask);
        if (operand) lin_cuda_narrow(exec, operand, y, rows, C);
    } else {
        BY_WIDTH(C, NORM_ROWS);
    }
}

void lin_cuda_layer_norm_forward(lin_exec *exec, float *y, float *stats, const float *x, const float *gamma, const float *beta,
                                 int rows, int C)
{
    forward(exec, NULL, NULL, y, stats, x, NULL, gamma, beta, rows, C, lin_cuda_mask_of(NULL));
}

void lin_cuda_add_dropout_norm_forward(lin_exec *exec, void *operand, float *sum, float *y, float *stats, const float *x,
                                       const float *r, const float *gamma, const float *beta, int rows, int C,
                                       const lin_dropout *dropout)
{
    forward(exec, (bf16 *)operand, sum, y, stats, x, r, gamma, beta, rows, C, lin_cuda_mask_of(dropout));
}

/* ---- backward, rows in registers ------------------------------------------------------------------------------------------- */

// With h = (x - mean) rstd, u = dy + more and g = u gamma: dx = residual + rstd (g - mean(g) - h mean(g h)); beside is more, or
// the residual. A block processes every gridDim.x-th group of rows and writes partial [gridDim.x, SUMS C]: its sums of u h, then
// of u, then, with SUMS = 3, of dropped, or of dx if there is none. dx may be dy or beside. operand: NULL, or in place of dropped
// the same in bf16.
template <int LANES, int GROUPS, int SUMS>
static __global__ void __launch_bounds__(THREADS)
    gradient_rows(bf16 *operand, float *dx, float *dropped, float *__restrict__ partial, const float *dy, const float *beside,
                  int is_more, const float *__restrict__ x, const float *__restrict__ stats, const float *__restrict__ gamma,
                  int rows, int width, lin_cuda_mask mask)
{
    constexpr int ROWS = THREADS / LANES;
    LIN_SHARED(float, sums); // [ROWS, 4 width]
    const int lane = (int)threadIdx.x % LANES, slot = (int)threadIdx.x / LANES;
    const lin_cuda_draw draw = lin_cuda_draw_of(mask);
    const float part = 1 / (float)(4 * width);
    float4 total[SUMS][GROUPS];
#pragma unroll
    for (int which = 0; which < SUMS; which++)
#pragma unroll
        for (int i = 0; i < GROUPS; i++) total[which][i] = zero4();
    for (int64_t row0 = (int64_t)blockIdx.x * ROWS; row0 < rows; row0 += (int64_t)gridDim.x * ROWS) {
        const int64_t row = row0 + slot;
        const int there = row < rows;
        const size_t at = (size_t)(there ? row : 0) * (size_t)width;
        float4 up[GROUPS], h[GROUPS], rest[GROUPS];
        const float mean = there ? stats[2 * row] : 0, rstd = there ? stats[2 * row + 1] : 0;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int g = lane + i * LANES;
            const int use = there && g < width;
            up[i] = load4(dy, at + (size_t)g, use);
            h[i] = load4(x, at + (size_t)g, use);
            rest[i] = load4(beside, at + (size_t)g, use && beside);
        }
        float mean_g = 0, mean_gh = 0;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int g = lane + i * LANES;
            const float4 weight = load4(gamma, (size_t)g, g < width);
            h[i] = scaled4(h[i], mean, rstd);
            if (is_more) {
                up[i] = add4(up[i], rest[i]);
                rest[i] = zero4();
            }
            const float4 uh = mul4(up[i], h[i]);
            total[0][i] = add4(total[0][i], uh);
            total[1][i] = add4(total[1][i], up[i]);
            up[i] = mul4(up[i], weight);
            mean_g += total4(up[i]);
            mean_gh += total4(mul4(uh, weight));
        }
        mean_g = lin_warp_sum<LANES>(mean_g) * part;
        mean_gh = lin_warp_sum<LANES>(mean_gh) * part;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int g = lane + i * LANES;
            if (!there || g >= width) continue;
            float4 out =
                add4(rest[i],
                     make_float4(rstd * (up[i].x - mean_g - h[i].x * mean_gh), rstd * (up[i].y - mean_g - h[i].y * mean_gh),
                                 rstd * (up[i].z - mean_g - h[i].z * mean_gh), rstd * (up[i].w - mean_g - h[i].w * mean_gh)));
            reinterpret_cast<float4 *>(dx)[at + (size_t)g] = out;
            if (mask.key && (operand || dropped)) out = lin_cuda_drop4(out, lin_cuda_bits4(draw, at + (size_t)g), mask);
            if (operand) store4(operand, at + (size_t)g, out);
            else if (dropped) reinterpret_cast<float4 *>(dropped)[at + (size_t)g] = out;
            if constexpr (SUMS == 3) total[2][i] = add4(total[2][i], out);
        }
    }
    // Over the rows that the block held in parallel, in order: one sum after the other in the same memory.
    float *to = partial + (size_t)blockIdx.x * SUMS * 4 * (size_t)width;
#pragma unroll
    for (int which = 0; which < SUMS; which++) {
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int g = lane + i * LANES;
            if (g < width) reinterpret_cast<float4 *>(sums)[slot * width + g] = total[which][i];
        }
        __syncthreads();
        for (int c = (int)threadIdx.x; c < 4 * width; c += THREADS) {
            float sum = 0;
            for (int s = 0; s < ROWS; s++) sum += sums[s * 4 * width + c];
            to[which * 4 * width + c] = sum;
        }
        __syncthreads();
    }
}

/* ---- backward, any shape --------------------------------------------------------------------------------------------------- */

// partial [slices, 2, C]: for each slice of the rows, the sums of u h and of u.
static __global__ void __launch_bounds__(LIN_SUM_THREADS)
    sum_any(float *__restrict__ partial, const float *__restrict__ dy, const float *__restrict__ more,
            const float *__restrict__ x, const float *__restrict__ stats, int rows, int C, int rows_each)
{
    lin_sum_slice<1, 2>(partial, rows, C, rows_each, [=](float (&v)[2], int row, int column) {
        const size_t at = (size_t)row * (size_t)C + (size_t)column;
        v[1] = dy[at] + (more ? more[at] : 0);
        v[0] = v[1] * (x[at] - stats[2 * (size_t)row]) * stats[2 * (size_t)row + 1];
    });
}

static __global__ void __launch_bounds__(THREADS)
    gradient_any(float *dx, float *dropped, const float *dy, const float *more, const float *residual,
                 const float *__restrict__ x, const float *__restrict__ stats, const float *__restrict__ gamma, int rows, int C,
                 lin_cuda_mask mask)
{
    const int lane = (int)threadIdx.x % 32, row = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (row >= rows) return;
    const size_t at = (size_t)row * (size_t)C;
    const float mean = stats[2 * (size_t)row], rstd = stats[2 * (size_t)row + 1];
    const lin_cuda_draw draw = lin_cuda_draw_of(mask);
    float mean_g = 0, mean_gh = 0;
    for (int c = lane; c < C; c += 32) {
        const float g = (dy[at + (size_t)c] + (more ? more[at + (size_t)c] : 0)) * gamma[c];
        mean_g += g;
        mean_gh += g * ((x[at + (size_t)c] - mean) * rstd);
    }
    mean_g = lin_warp_sum(mean_g) / (float)C;
    mean_gh = lin_warp_sum(mean_gh) / (float)C;
    for (int c = lane; c < C; c += 32) {
        const size_t i = at + (size_t)c;
        const float h = (x[i] - mean) * rstd, g = (dy[i] + (more ? more[i] : 0)) * gamma[c];
        const float out = (residual ? residual[i] : 0) + rstd * (g - mean_g - h * mean_gh);
        dx[i] = out;
        if (dropped) dropped[i] = drop_one(out, i, draw, mask);
    }
}

#define GRADIENT_SUMS(LANES, GROUPS, SUMS)                                                                                       \
    LIN_LAUNCH(exec, (gradient_rows<LANES, GROUPS, SUMS>), parts, THREADS, (THREADS / LANES) * (size_t)C * sizeof(float),        \
               operand, dx, dropped, partial, dy, beside, more != NULL, x, stats, gamma, rows, C / 4, mask)
#define GRADIENT_ROWS(LANES, GROUPS)                                                                                             \
    do {                                                                                                                         \
        parts = (int)lin_cuda_blocks((size_t)rows, THREADS / LANES);                                                             \
        if (parts > GRADIENT_BLOCKS) parts = GRADIENT_BLOCKS;                                                                    \
        if (db) GRADIENT_SUMS(LANES, GROUPS, 3);                                                                                 \
        else GRADIENT_SUMS(LANES, GROUPS, 2);                                                                                    \
    } while (0)

void lin_cuda_layer_norm_backward(lin_exec *exec, void *narrow, float *dx, float *dropped, float *dgamma, float *dbeta, float *db,
                                  const float *dy, const float *more, const float *residual, const float *x, const float *stats,
                                  const float *gamma, int rows, int C, const lin_dropout *dropout)
{
    bf16 *const operand = (bf16 *)narrow;
    const float *beside = more ? more : residual;
    const lin_cuda_mask mask = lin_cuda_mask_of(dropout);
    if (rows == 0 || C == 0) return;
    if (C % 4 != 0 || C > 1024 || !lin_cuda_aligned(dx, dropped, dy, beside, x) || !lin_cuda_aligned(gamma)) {
        const lin_cuda_sums s = lin_cuda_sums_begin(exec, rows, C, 1, 2);
        if (!s.partial) return;
        // Sums first: dx may overwrite dy.
        LIN_LAUNCH(exec, sum_any, s.grid, s.block, s.shared_bytes, s.partial, dy, more, x, stats, rows, C, s.rows_each);
        LIN_LAUNCH(exec, gradient_any, lin_cuda_blocks((size_t)rows, WARPS), THREADS, 0, dx, dropped, dy, more, residual, x,
                   stats, gamma, rows, C, mask);
        lin_cuda_fold(exec, s.partial, s.slices, {dgamma, C}, {dbeta, C});
        if (operand) lin_cuda_narrow(exec, operand, dropped ? dropped : dx, rows, C);
        if (db) lin_cuda_sum_columns(exec, db, dropped ? dropped : dx, rows, C);
        return;
    }
    int parts = 0;
    float *partial = (float *)lin_cuda_scratch(exec, (size_t)GRADIENT_BLOCKS * 3 * (size_t)C * sizeof *partial);
    if (!partial) return;
    BY_WIDTH(C, GRADIENT_ROWS);
    lin_cuda_fold(exec, partial, parts, {dgamma, C}, {dbeta, C}, {db, db ? C : 0});
}
