/*
 * attention.h - device code shared by the forward and backward of linear attention: tiles, products, running sums.
 *
 * Internal to kernels/cuda/attention*.cu. Katharopoulos et al. 2020, eq. 4-20, divided into tiles of 64 rows: within a tile the
 * weights a_ij = phi(q_i) . phi(k_j) are computed and masked; earlier rows enter through S = sum phi(k_j) v_jᵀ and z = sum
 * phi(k_j). All of these are products of 64- and 32-wide matrices, computed by the tensor cores.
 *
 *   block    1 to 4 groups of 4 warps. In each step every group processes the next tile of the block's stretch of rows.
 *   tile     64 rows of one head in shared memory, E padded with zeros to EP (32 or 64). Two kinds: tiles that all warps of a
 *            group read (keys, values) are double-buffered; tiles of which a warp reads only its own 16 rows (queries) are loaded
 *            into registers at once, and their memory is then refilled. Without a causal mask these rows have no tile: they go
 *            straight into registers.
 *   sums     (S, z) [EP+1, EP]. Each group sums its own tile into shared memory; then the threads, each of which owns a few
 *            elements of the running sums, replace these by the sums before each group's tile.
 *   stretch  if utterances are few and long, several blocks share one (utterance, head): first the sums of each stretch, then
 *            the sums over stretches, then the rows.
 *
 * Fragments. A product may sum over its index in any order. Along a row (summing over e) lane t of a quad reads columns 2t and
 * 2t+1 of eight, one 8-byte access, and the columns of a result (its rows of the other operand) are assigned so that it can be
 * the left operand of the next product without moving: lane t holds j = result_row(2t) and result_row(2t+1). With rows of EP + 8
 * floats neither way of reading has bank conflicts (no_conflicts); only S read along its rows (add_sums_transposed) has two lanes
 * per bank.
 *
 * Precision. SPLIT 0: operands rounded to tf32. SPLIT 1: x = big + small, both tf32, and three of the four products: the dropped
 * one is 2^-22 of the result, so the precision is near fp32. Sums over tiles, denominators and row terms are fp32 additions in
 * both.
 */
#ifndef LIN_KERNELS_CUDA_ATTENTION_H
#define LIN_KERNELS_CUDA_ATTENTION_H

#include "kernels/cuda/linear.h"

#define LIN_ATTENTION_EPS 1e-6f

// The most groups of a block: what fits the shared memory of a multiprocessor (228 KiB of 9.0 to 11.0, up to 164 of others).
enum { TILE = 64, GROUP = 128, FORWARD_GROUPS = 4, BACKWARD_GROUPS = 3 };
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
#define LIN_GROUPS_HERE(groups) 2
#define LIN_BLOCKS_HERE 2 // of a multiprocessor without a causal mask, for which ptxas leaves registers
#else
#define LIN_GROUPS_HERE(groups) groups
#define LIN_BLOCKS_HERE 1
#endif
enum { FEWER_GROUPS = 200 << 10 }; // bytes of shared memory of a block; with fewer there are at most 2 groups

template <int EP> struct sizes {
    enum {
        stride = EP + 8,      // between rows of a tile
        tile = TILE * stride, // floats
        sum_stride = EP + 4,
        sum_tile = (EP + 1) * sum_stride,
        sums = (EP + 1) * EP,                       // elements of (S, z), as laid out in scratch
        own_fours = (sums / 4 + GROUP - 1) / GROUP, // the most fours of elements that a thread owns
        sum_columns = (EP / 16) * (EP / 8) / 4,     // 8-column tiles of S that a warp of a group computes, of one 16-row tile
    };
};

// The arguments of all kernels.
typedef struct attention_job {
    const float *qkv, *y, *dy; // [rows, 3, H, E], [rows, H, E] twice
    const float *gates;        // of the decays, [rows, H], or, with constant = 1, [H]; NULL: no decays
    float *out;                // y or dqkv; NULL: not written
    bf16 *narrow;              // the same as bf16, E even; NULL: not written
    const int *offsets;        // [B+1]
    float *sums;               // [slots, H, EP+1, EP]; NULL: each utterance is one stretch
    float *dgates;             // [rows, H], or NULL
    float *terms;              // [rows, H, 2]: 1/d_i and c_i of the backward
    float *const *states;
    size_t at;
    int H, E, constant;
    int stretch; // rows; INT_MAX: each utterance is one stretch
    int wide;    // E = EP, and all pointers are aligned to 16 bytes
} attention_job;

// The rows that a block works on. Stretch s of utterance b has slot offsets[b] / stretch + b + s, which is unique.
typedef struct attention_place {
    int b, h, rows;
    size_t first, slot, first_slot;
} attention_place;

static __device__ __forceinline__ int attention_find(attention_place *p, const attention_job &job, unsigned s)
{
    p->b = (int)(blockIdx.x / (unsigned)job.H);
    p->h = (int)(blockIdx.x % (unsigned)job.H);
    const size_t start = (size_t)job.offsets[p->b], end = (size_t)job.offsets[p->b + 1];
    p->first = start + (size_t)s * (size_t)job.stretch;
    if (p->first >= end) return 0;
    const size_t left = end - p->first;
    p->rows = left < (size_t)job.stretch ? (int)left : job.stretch;
    p->first_slot = start / (size_t)job.stretch + (size_t)p->b;
    p->slot = (p->first_slot + s) * (size_t)job.H + (size_t)p->h;
    p->first_slot = p->first_slot * (size_t)job.H + (size_t)p->h;
    return 1;
}

/* ---- elements and products ------------------------------------------------------------------------------------------------- */

// eq. 7. The fast exponential has an error of 2^-21 near 0, less than tf32's 2^-11. Computed for all x, and then selected: a
// branch takes more instructions than both.
template <int SPLIT> static __device__ __forceinline__ float phi(float x)
{
    const float below = SPLIT ? expf(x) : lin_exp2(x * 1.44269504f);
    return x > 0 ? x + 1 : below;
}

// phi'(x) from phi(x): 1 above 0, exp(x) below.
static __device__ __forceinline__ float phi_slope(float phi_x) { return fminf(phi_x, 1.0f); }

static __device__ __forceinline__ float gate_of(const attention_job &job, size_t row, int h)
{
    const float gate = job.gates[(job.constant ? 0 : row * (size_t)job.H) + (size_t)h];
    return gate < -80 ? -80 : gate;
}

// Sum over the four lanes that share a row of a fragment.
static __device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------------- */

// Starts copying rows 0..n-1 (stride floats apart) of a head to ROWS rows of a tile, by thread `who` of MANY; zeros beyond n and
// E.
template <int EP, int MANY, int ROWS>
static __device__ __forceinline__ void copy_rows(float *tile, const float *from, size_t stride, int n, int E, int wide, int who)
{
    enum { per_row = EP / 4, step = MANY / per_row };
    const int col = who % per_row * 4;
    float *to = tile + who / per_row * sizes<EP>::stride + col;
    const float *x = from + (size_t)(who / per_row) * stride + col;
    if (wide) {
#pragma unroll
        for (int row = who / per_row; row < ROWS; row += step, to += step * sizes<EP>::stride, x += step * stride)
            if (row < n) lin_copy_async16(to, x);
            else *reinterpret_cast<float4 *>(to) = make_float4(0, 0, 0, 0);
        return;
    }
#pragma unroll 1
    for (int row = who / per_row; row < ROWS; row += step, to += step * sizes<EP>::stride, x += step * stride)
#pragma unroll 1
        for (int i = 0; i < 4; i++)
            if (row < n && col + i < E) lin_copy_async4(to + i, x + i);
            else to[i] = 0;
}

// Copies 1/d_i of a tile's rows, then c_i, which are adjacent; one thread of a group for each number.
static __device__ __forceinline__ void copy_terms(float *scale, const float *from, size_t stride, int n, int who)
{
    if (who % TILE < n) lin_copy_async4(scale + who, from + (size_t)(who % TILE) * stride + who / TILE);
    else scale[who] = 0;
}

// phi of rows 0..n-1 and columns 0..E-1, by the threads of a group. The padding stays 0, because phi(0) is 1 and would count.
template <int EP, int SPLIT> static __device__ __forceinline__ void tile_phi(float *tile, int n, int E, int who)
{
    enum { step = GROUP / (EP / 4) }; // rows
    const int first = who / (EP / 4), col = who % (EP / 4) * 4;
    float *const start = tile + first * sizes<EP>::stride + col;
#pragma unroll
    for (int i = 0; i < TILE / step; i++) {
        const int row = first + i * step;
        float4 *at = reinterpret_cast<float4 *>(start + i * step * sizes<EP>::stride);
        float4 x = *at;
        const int width = row < n ? E : 0;
        x.x = col < width ? operand<SPLIT>(phi<SPLIT>(x.x)) : 0;
        x.y = col + 1 < width ? operand<SPLIT>(phi<SPLIT>(x.y)) : 0;
        x.z = col + 2 < width ? operand<SPLIT>(phi<SPLIT>(x.z)) : 0;
        x.w = col + 3 < width ? operand<SPLIT>(phi<SPLIT>(x.w)) : 0;
        *at = x;
    }
}

// Turns rows into operands, each times scale[row] if scale is given.
template <int EP, int SPLIT> static __device__ __forceinline__ void tile_operands(float *tile, const float *scale, int who)
{
    if (SPLIT && !scale) return;
    enum { step = GROUP / (EP / 4) }; // rows
    const int first = who / (EP / 4), col = who % (EP / 4) * 4;
    float *const start = tile + first * sizes<EP>::stride + col;
#pragma unroll
    for (int i = 0; i < TILE / step; i++) {
        const int row = first + i * step;
        float4 *at = reinterpret_cast<float4 *>(start + i * step * sizes<EP>::stride);
        float4 x = *at;
        const float f = scale ? scale[row] : 1.0f;
        x.x = operand<SPLIT>(x.x * f);
        x.y = operand<SPLIT>(x.y * f);
        x.z = operand<SPLIT>(x.z * f);
        x.w = operand<SPLIT>(x.w * f);
        *at = x;
    }
}

// A warp's own 16 rows as left operands: step s covers columns 8s..8s+7. `rows` points to the first of them.
template <int EP> static __device__ __forceinline__ void load_own(float (&x)[EP / 8][4], const float *rows, int lane)
{
    const float *at = rows + (lane >> 2) * sizes<EP>::stride + 2 * (lane & 3);
#pragma unroll
    for (int s = 0; s < EP / 8; s++) {
        const float2 upper = *reinterpret_cast<const float2 *>(at + 8 * s);
        const float2 lower = *reinterpret_cast<const float2 *>(at + 8 * s + 8 * sizes<EP>::stride);
        x[s][0] = upper.x;
        x[s][2] = upper.y;
        x[s][1] = lower.x;
        x[s][3] = lower.y;
    }
}

// The same directly from memory, rows 0..n-1; zeros beyond n and E. For kernels without a causal mask: their warps do not wait
// for each other in the loop over rows, so some compute while others load, and shared memory is their limit.
template <int EP>
static __device__ __forceinline__ void fetch_own(float (&x)[EP / 8][4], const float *rows, size_t stride, int n, int E, int wide,
                                                 int lane)
{
    const int g = lane >> 2, col = 2 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float *at = rows + (size_t)(g + 8 * half) * stride + col;
#pragma unroll
        for (int s = 0; s < EP / 8; s++) {
            float2 v = make_float2(0, 0);
            if (g + 8 * half < n && wide) {
                v = *reinterpret_cast<const float2 *>(at + 8 * s);
            } else if (g + 8 * half < n) {
                if (8 * s + col < E) v.x = at[8 * s];
                if (8 * s + col + 1 < E) v.y = at[8 * s + 1];
            }
            x[s][half] = v.x;
            x[s][2 + half] = v.y;
        }
    }
}

template <int EP, int SPLIT, int PHI> static __device__ __forceinline__ void own_operands(float (&x)[EP / 8][4])
{
#pragma unroll
    for (int s = 0; s < EP / 8; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) x[s][i] = operand<SPLIT>(PHI ? phi<SPLIT>(x[s][i]) : x[s][i]);
}

// Keeps the compiler from splitting own rows before a loop: for E = 64 both parts of them exceed the registers.
template <int EP, int SPLIT> static __device__ __forceinline__ void split_late(float (&x)[EP / 8][4])
{
    if constexpr (EP == 64 && SPLIT) {
#pragma unroll
        for (int s = 0; s < EP / 8; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) lin_opaque(x[s][i]);
    }
}

// The row of the other operand, of eight, that column c of a result belongs to: 0, 2, 1, 3, 6, 4, 7, 5.
static __host__ __device__ __forceinline__ constexpr int result_row(int c)
{
    return ((c >> 1) | (c >> 1 & 2) << 1) ^ (c & 1) << 1;
}

// Whether each of the 32 banks is read once: by the 16 lanes of each half of a warp in multiply_rows, which reads 8 bytes per
// lane, and by all lanes in load_rows, which reads 4.
template <int EP> constexpr bool no_conflicts()
{
    unsigned halves[2] = {}, loads[2] = {};
    for (int g = 0; g < 8; g++)
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < 2; i++) {
                halves[g / 4] |= 1u << (result_row(g) * sizes<EP>::stride + 2 * t + i) % 32;
                loads[i] |= 1u << (result_row(2 * t + i) * sizes<EP>::stride + g) % 32;
            }
    return halves[0] == ~0u && halves[1] == ~0u && loads[0] == ~0u && loads[1] == ~0u;
}
static_assert(no_conflicts<32>() && no_conflicts<64>(), "two lanes read the same bank");

template <int EP> static __device__ __forceinline__ void clear_rows(float (&x)[EP / 8][4])
{
#pragma unroll
    for (int n = 0; n < EP / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) x[n][i] = 0;
}

// c[h] = own rows times 16 rows of a tile, transposed: column 8h + result_row(2t) of the 16 in c[h][0] and [2], 8h +
// result_row(2t+1) in c[h][1] and [3].
template <int EP, int SPLIT>
static __device__ __forceinline__ void multiply_rows(float (&c)[2][4], const float (&own)[EP / 8][4], const float *rows, int lane)
{
    const float *at = rows + result_row(lane >> 2) * sizes<EP>::stride + 2 * (lane & 3);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[h][i] = 0;
#pragma unroll
    for (int s = 0; s < EP / 8; s++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float2 x = *reinterpret_cast<const float2 *>(at + 8 * h * sizes<EP>::stride + 8 * s);
            const float b[2] = {x.x, x.y};
            multiply<SPLIT>(c[h], own[s], b);
        }
}

// Clears the masked elements in the 16 columns that a warp's own rows share with themselves: columns above the row, or below it.
template <int REVERSE> static __device__ __forceinline__ void mask_diagonal(float (&c)[2][4], int lane)
{
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = g + (i >> 1) * 8, col = 8 * h + result_row(2 * t + (i & 1));
            if (REVERSE ? col < row : col > row) c[h][i] = 0;
        }
}

// A lane's part of the sums of the upper and the lower row.
static __device__ __forceinline__ void add_weights(float &upper, float &lower, const float (&w)[2][4])
{
    upper += (w[0][0] + w[0][1]) + (w[1][0] + w[1][1]);
    lower += (w[0][2] + w[0][3]) + (w[1][2] + w[1][3]);
}

// The right operand of add_rows for columns 8n..8n+7 and rows 8h.. of 16.
template <int EP> static __device__ __forceinline__ void load_rows(float (&b)[2], const float *rows, int h, int n, int lane)
{
    const float *at = rows + 8 * h * sizes<EP>::stride + 8 * n + (lane >> 2);
    b[0] = at[result_row(2 * (lane & 3)) * sizes<EP>::stride];
    b[1] = at[result_row(2 * (lane & 3) + 1) * sizes<EP>::stride];
}

// out += w times 16 rows of a tile, w from multiply_rows.
template <int EP, int SPLIT>
static __device__ __forceinline__ void add_rows(float (&out)[EP / 8][4], const float (&w)[2][4], const float *rows, int lane)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float a[4] = {operand<SPLIT>(w[h][0]), operand<SPLIT>(w[h][2]), operand<SPLIT>(w[h][1]), operand<SPLIT>(w[h][3])};
#pragma unroll
        for (int n = 0; n < EP / 8; n++) {
            float b[2];
            load_rows<EP>(b, rows, h, n, lane);
            multiply<SPLIT>(out[n], a, b);
        }
    }
}

// out += own S, which pass_sums or spread_running has written as operands.
template <int EP, int SPLIT>
static __device__ __forceinline__ void add_sums(float (&out)[EP / 8][4], const float (&own)[EP / 8][4], const float *sums,
                                                int lane)
{
    const float *at = sums + 2 * (lane & 3) * sizes<EP>::sum_stride + (lane >> 2);
#pragma unroll
    for (int s = 0; s < EP / 8; s++)
#pragma unroll
        for (int n = 0; n < EP / 8; n++) {
            const float b[2] = {at[8 * s * sizes<EP>::sum_stride + 8 * n], at[(8 * s + 1) * sizes<EP>::sum_stride + 8 * n]};
            multiply<SPLIT>(out[n], own[s], b);
        }
}

// out += own Sᵀ, likewise.
template <int EP, int SPLIT>
static __device__ __forceinline__ void add_sums_transposed(float (&out)[EP / 8][4], const float (&own)[EP / 8][4],
                                                           const float *sums, int lane)
{
    const float *at = sums + (lane >> 2) * sizes<EP>::sum_stride + 2 * (lane & 3);
#pragma unroll
    for (int s = 0; s < EP / 8; s++)
#pragma unroll
        for (int n = 0; n < EP / 8; n++) {
            const float2 x = *reinterpret_cast<const float2 *>(at + 8 * n * sizes<EP>::sum_stride + 8 * s);
            const float b[2] = {x.x, x.y};
            multiply<SPLIT>(out[n], own[s], b);
        }
}

// A lane's part of own . z, for its upper and its lower row.
template <int EP>
static __device__ __forceinline__ void add_dot(float &upper, float &lower, const float (&own)[EP / 8][4], const float *z,
                                               int lane)
{
#pragma unroll
    for (int s = 0; s < EP / 8; s++) {
        const float2 x = *reinterpret_cast<const float2 *>(z + 8 * s + 2 * (lane & 3));
        upper = fmaf(own[s][2], x.y, fmaf(own[s][0], x.x, upper));
        lower = fmaf(own[s][3], x.y, fmaf(own[s][1], x.x, lower));
    }
}

// Writes a warp's 16 result rows, times `upper` and `lower`; only rows before n exist.
template <int EP>
static __device__ __forceinline__ void store_rows(float *to, size_t stride, const float (&x)[EP / 8][4], float upper, float lower,
                                                  int n, int E, int wide, int lane)
{
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float f = half ? lower : upper;
        float *at = to + (size_t)row * stride + 2 * t;
        if (row >= n) continue;
#pragma unroll
        for (int c = 0; c < EP / 8; c++) {
            const float a = x[c][2 * half] * f, b = x[c][2 * half + 1] * f;
            if (wide) {
                *reinterpret_cast<float2 *>(at + 8 * c) = make_float2(a, b);
            } else {
                if (8 * c + 2 * t < E) at[8 * c] = a;
                if (8 * c + 2 * t + 1 < E) at[8 * c + 1] = b;
            }
        }
    }
}

// Writes a tile as bf16; E is even.
template <int EP>
static __device__ __forceinline__ void store_narrow(bf16 *to, size_t stride, const float (&x)[EP / 8][4], float upper,
                                                    float lower, int n, int E, int lane)
{
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = g + 8 * half;
        const float f = half ? lower : upper;
        bf16 *at = to + (size_t)row * stride + 2 * t;
        if (row >= n) continue;
#pragma unroll
        for (int c = 0; c < EP / 8; c++)
            if (8 * c + 2 * t < E)
                *reinterpret_cast<uint32_t *>(at + 8 * c) =
                    to_bf16(x[c][2 * half] * f) | (uint32_t)to_bf16(x[c][2 * half + 1] * f) << 16;
    }
}

// Writes result rows as the job requests, from element `at` on.
template <int EP>
static __device__ __forceinline__ void store_result(const attention_job &job, size_t at, size_t stride,
                                                    const float (&x)[EP / 8][4], float upper, float lower, int n, int lane)
{
    if (job.out) store_rows<EP>(job.out + at, stride, x, upper, lower, n, job.E, job.wide, lane);
    if (job.narrow) store_narrow<EP>(job.narrow + at, stride, x, upper, lower, n, job.E, lane);
}

/* ---- running sums ---------------------------------------------------------------------------------------------------------- */

// The part of a group's tile that a warp sums: 16 rows of S from `row`, 8-column tiles from `column`, and z of these rows.
template <int EP> struct partial_sums {
    float s[sizes<EP>::sum_columns][4], z[2];
};

template <int EP> static __device__ __forceinline__ int sums_row(int warp) { return EP == 32 ? (warp >> 1) * 16 : warp * 16; }
template <int EP> static __device__ __forceinline__ int sums_column(int warp) { return EP == 32 ? (warp & 1) * 2 : 0; }

// p += kᵀ v over the 64 rows of two tiles, z += sum of weight[j] k_j (weight NULL: 1). The additions to p are rounded to nearest;
// the tensor core truncates, and over many tiles that error would accumulate.
template <int EP, int SPLIT>
static __device__ __forceinline__ void sum_tile(partial_sums<EP> &p, const float *k, const float *v, const float *weight,
                                                int warp, int lane)
{
    const int g = lane >> 2, t = lane & 3;
    const float *ka = k + t * sizes<EP>::stride + sums_row<EP>(warp) + g,
                *va = v + t * sizes<EP>::stride + 8 * sums_column<EP>(warp) + g;
    float c[sizes<EP>::sum_columns][4];
#pragma unroll
    for (int n = 0; n < sizes<EP>::sum_columns; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[n][i] = 0;
#pragma unroll 4
    for (int j = 0; j < TILE; j += 8) {
        const float *x = ka + j * sizes<EP>::stride, *y = va + j * sizes<EP>::stride;
        const float a[4] = {x[0], x[8], x[4 * sizes<EP>::stride], x[4 * sizes<EP>::stride + 8]};
        const float w0 = weight ? weight[j + t] : 1.0f, w1 = weight ? weight[j + t + 4] : 1.0f;
        p.z[0] = fmaf(w1, a[2], fmaf(w0, a[0], p.z[0]));
        p.z[1] = fmaf(w1, a[3], fmaf(w0, a[1], p.z[1]));
#pragma unroll
        for (int n = 0; n < sizes<EP>::sum_columns; n++) {
            const float b[2] = {y[8 * n], y[8 * n + 4 * sizes<EP>::stride]};
            multiply<SPLIT>(c[n], a, b);
        }
    }
#pragma unroll
    for (int n = 0; n < sizes<EP>::sum_columns; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) p.s[n][i] += c[n][i];
}

template <int EP> static __device__ __forceinline__ void clear_sums(partial_sums<EP> &p)
{
    p.z[0] = p.z[1] = 0;
#pragma unroll
    for (int n = 0; n < sizes<EP>::sum_columns; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) p.s[n][i] = 0;
}

template <int EP> static __device__ __forceinline__ void publish_sums(float *sums, const partial_sums<EP> &p, int warp, int lane)
{
    const int g = lane >> 2, t = lane & 3, row = sums_row<EP>(warp), column = sums_column<EP>(warp);
    float *at = sums + (row + g) * sizes<EP>::sum_stride + 8 * column + 2 * t;
#pragma unroll
    for (int n = 0; n < sizes<EP>::sum_columns; n++) {
        *reinterpret_cast<float2 *>(at + 8 * n) = make_float2(p.s[n][0], p.s[n][1]);
        *reinterpret_cast<float2 *>(at + 8 * n + 8 * sizes<EP>::sum_stride) = make_float2(p.s[n][2], p.s[n][3]);
    }
    const float upper = quad_sum(p.z[0]), lower = quad_sum(p.z[1]);
    if (column == 0 && t == 0) {
        sums[EP * sizes<EP>::sum_stride + row + g] = upper;
        sums[EP * sizes<EP>::sum_stride + row + g + 8] = lower;
    }
}

// Each thread of the block owns fours of elements of the running sums: numbers tid, tid + blockDim, ...
template <int EP> struct running_sums {
    float x[sizes<EP>::own_fours][4];
};

// Where this thread's elements are in shared memory: the first, and the distance to the next.
template <int EP> static __device__ __forceinline__ float *own_place(float *sums)
{
    return sums + (int)threadIdx.x / (EP / 4) * sizes<EP>::sum_stride + (int)threadIdx.x % (EP / 4) * 4;
}
template <int EP> static __device__ __forceinline__ int own_step(void)
{
    return (int)blockDim.x / (EP / 4) * sizes<EP>::sum_stride;
}
template <int EP> static __device__ __forceinline__ int owned(int k)
{
    return (int)threadIdx.x + k * (int)blockDim.x < sizes<EP>::sums / 4;
}

static __device__ __forceinline__ float4 four(const float (&x)[4]) { return make_float4(x[0], x[1], x[2], x[3]); }

// The k-th four of this thread's running sums as all warps read it: S as operands, rounded here once, z unchanged.
template <int EP, int SPLIT> static __device__ __forceinline__ float4 four_to_read(const running_sums<EP> &r, int k)
{
    float4 x = four(r.x[k]);
    if (SPLIT || (int)threadIdx.x + k * (int)blockDim.x >= EP * EP / 4) return x;
    x.x = operand<SPLIT>(x.x);
    x.y = operand<SPLIT>(x.y);
    x.z = operand<SPLIT>(x.z);
    x.w = operand<SPLIT>(x.w);
    return x;
}

// Replaces the sums that the groups have published by the sums before each group's tile, in the order of the groups, and advances
// the running sums. SPLIT 1: S does not become operands. Needs barriers before and after.
template <int EP, int SPLIT>
static __device__ __forceinline__ void pass_sums(running_sums<EP> &r, float *sums, int group_floats)
{
    float *mine = own_place<EP>(sums);
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++, mine += own_step<EP>()) {
        if (!owned<EP>(k)) break;
        float *at = mine;
#pragma unroll 1
        for (unsigned group = 0; group < blockDim.x / GROUP; group++, at += group_floats) {
            const float4 x = *reinterpret_cast<const float4 *>(at);
            *reinterpret_cast<float4 *>(at) = four_to_read<EP, SPLIT>(r, k);
            r.x[k][0] += x.x;
            r.x[k][1] += x.y;
            r.x[k][2] += x.z;
            r.x[k][3] += x.w;
        }
    }
}

template <int EP> static __device__ __forceinline__ void clear_running(running_sums<EP> &r)
{
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++) r.x[k][0] = r.x[k][1] = r.x[k][2] = r.x[k][3] = 0;
}

template <int EP> static __device__ __forceinline__ void load_running(running_sums<EP> &r, const float *from)
{
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++) {
        float4 x = make_float4(0, 0, 0, 0);
        if (owned<EP>(k)) x = reinterpret_cast<const float4 *>(from)[threadIdx.x + (unsigned)k * blockDim.x];
        r.x[k][0] = x.x;
        r.x[k][1] = x.y;
        r.x[k][2] = x.z;
        r.x[k][3] = x.w;
    }
}

template <int EP> static __device__ __forceinline__ void store_running(const running_sums<EP> &r, float *to)
{
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++)
        if (owned<EP>(k)) reinterpret_cast<float4 *>(to)[threadIdx.x + (unsigned)k * blockDim.x] = four(r.x[k]);
}

// Writes the running sums to the shared memory of the first group, for use by every row. Needs a barrier after.
template <int EP, int SPLIT> static __device__ __forceinline__ void spread_running(const running_sums<EP> &r, float *sums)
{
    float *at = own_place<EP>(sums);
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++, at += own_step<EP>())
        if (owned<EP>(k)) *reinterpret_cast<float4 *>(at) = four_to_read<EP, SPLIT>(r, k);
}

// The place of element i of [EP+1, EP] in a state [E+1, E]; -1: padding.
static __device__ __forceinline__ int state_at(int i, int EP, int E)
{
    const int e = i / EP, m = i % EP;
    return m >= E || (e >= E && e < EP) ? -1 : (e == EP ? E : e) * E + m;
}

template <int EP> static __device__ __forceinline__ void load_state(running_sums<EP> &r, const float *state, int E)
{
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int i = ((int)threadIdx.x + k * (int)blockDim.x) * 4 + c, at = state && owned<EP>(k) ? state_at(i, EP, E) : -1;
            r.x[k][c] = at >= 0 ? state[at] : 0;
        }
}

template <int EP> static __device__ __forceinline__ void store_state(const running_sums<EP> &r, float *state, int E)
{
#pragma unroll
    for (int k = 0; k < sizes<EP>::own_fours; k++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const int i = ((int)threadIdx.x + k * (int)blockDim.x) * 4 + c, at = owned<EP>(k) ? state_at(i, EP, E) : -1;
            if (at >= 0) state[at] = r.x[k][c];
        }
}

/* ---- the walk over a stretch ----------------------------------------------------------------------------------------------- */

// The tile of a group in a step, and its number of rows; 0 if there are no tiles left.
typedef struct tile_walk {
    int rows, n_tiles, n_steps, groups, group, reverse;
} tile_walk;

static __device__ __forceinline__ tile_walk walk_of(int rows, int reverse)
{
    tile_walk w;
    w.rows = rows;
    w.n_tiles = (rows - 1) / TILE + 1;
    w.groups = (int)(blockDim.x / GROUP);
    w.group = (int)(threadIdx.x / GROUP);
    w.n_steps = (w.n_tiles + w.groups - 1) / w.groups;
    w.reverse = reverse;
    return w;
}

static __device__ __forceinline__ int walk_tile(const tile_walk &w, int step, int *n)
{
    const int i = step * w.groups + w.group, tile = w.reverse ? w.n_tiles - 1 - i : i;
    const int left = i < w.n_tiles ? w.rows - tile * TILE : 0;
    *n = left < TILE ? left : TILE;
    return i < w.n_tiles ? tile : 0;
}

// One of the two matrices whose tiles all warps of a group read.
typedef struct tile_source {
    const float *rows;
    size_t stride;
} tile_source;

// The sums of the whole stretch, into the running sums (which are overwritten), from its first tile or (reverse) from its last:
// the rows processed last, from which the next kernel starts, are then in the L2 cache. x is the matrix under phi, y the other;
// terms [., 2] (NULL: none) holds 1/d_i, by which y_i is multiplied, and c_i, the weight of x_i in z. `tiles` holds two pairs of
// tiles and `scales` two pairs of 64 floats per group, sums one tile of sums; group_floats is the distance between groups.
template <int EP, int SPLIT>
static __device__ __forceinline__ void sum_stretch(running_sums<EP> &r, float *tiles, float *scales, float *sums,
                                                   int group_floats, tile_source x, tile_source y, tile_source terms, int reverse,
                                                   int rows, int E, int wide)
{
    const tile_walk w = walk_of(rows, reverse);
    const int who = (int)threadIdx.x % GROUP, warp = who / 32, lane = who % 32;
    float *const tile0 = tiles + w.group * group_floats, *const scale0 = scales + w.group * group_floats;
    partial_sums<EP> p;
    clear_sums<EP>(p);
    for (int step = -1; step < w.n_steps; step++) {
        if (step >= 0) {
            lin_copy_wait<0>();
            __syncthreads();
        }
        if (step + 1 < w.n_steps) {
            int n;
            const size_t from = (size_t)walk_tile(w, step + 1, &n) * TILE;
            float *to = tile0 + ((step + 1) & 1) * 2 * sizes<EP>::tile, *scale = scale0 + ((step + 1) & 1) * 2 * TILE;
            copy_rows<EP, GROUP, TILE>(to, x.rows + from * x.stride, x.stride, n, E, wide, who);
            copy_rows<EP, GROUP, TILE>(to + sizes<EP>::tile, y.rows + from * y.stride, y.stride, n, E, wide, who);
            if (terms.rows) copy_terms(scale, terms.rows + from * terms.stride, terms.stride, n, who);
            lin_copy_commit();
        }
        if (step < 0) continue;
        int n;
        walk_tile(w, step, &n);
        float *tile = tile0 + (step & 1) * 2 * sizes<EP>::tile, *scale = scale0 + (step & 1) * 2 * TILE;
        tile_phi<EP, SPLIT>(tile, n, E, who);
        tile_operands<EP, SPLIT>(tile + sizes<EP>::tile, terms.rows ? scale : NULL, who);
        __syncthreads();
        sum_tile<EP, SPLIT>(p, tile, tile + sizes<EP>::tile, terms.rows ? scale + TILE : NULL, warp, lane);
    }
    publish_sums<EP>(sums + w.group * group_floats, p, warp, lane);
    clear_running<EP>(r);
    __syncthreads();
    pass_sums<EP, 1>(r, sums, group_floats);
    __syncthreads();
}

// A causal walk at `step` (-1: before the first): copies the next tile of keys and values, and publishes the sums of this one,
// which then is ready for products.
template <int EP, int SPLIT>
static __device__ __forceinline__ void sum_step(float *tiles, float *sums, const tile_walk &walk, int step, const float *k,
                                                const float *v, size_t stride, int E, int wide)
{
    const int who = (int)threadIdx.x % GROUP, warp = who / 32, lane = who % 32;
    int n;
    if (step >= 0) lin_copy_wait<0>();
    // No barrier needed: a thread prepares only elements that it copied, and all threads have passed the barriers after the
    // last products.
    if (step + 1 < walk.n_steps) {
        float *to = tiles + ((step + 1) & 1) * 2 * sizes<EP>::tile;
        const size_t next = (size_t)walk_tile(walk, step + 1, &n) * TILE * stride;
        copy_rows<EP, GROUP, TILE>(to, k + next, stride, n, E, wide, who);
        copy_rows<EP, GROUP, TILE>(to + sizes<EP>::tile, v + next, stride, n, E, wide, who);
    }
    if (step < 0) return;
    float *const keys = tiles + (step & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
    partial_sums<EP> p;
    walk_tile(walk, step, &n);
    clear_sums<EP>(p);
    tile_phi<EP, SPLIT>(keys, n, E, who);
    tile_operands<EP, SPLIT>(values, NULL, who);
    __syncthreads();
    sum_tile<EP, SPLIT>(p, keys, values, NULL, warp, lane);
    publish_sums<EP>(sums, p, warp, lane);
}

/* ---- sums of several stretches: attention.cu ------------------------------------------------------------------------------- */

typedef enum attention_order { ORDER_FORWARD, ORDER_REVERSE, ORDER_TOTAL } attention_order;

// function<EP, SPLIT>(exec, ...) for heads of E elements, at most 64.
#define LIN_TILED(function, E, exec, ...)                                                                                        \
    do {                                                                                                                         \
        const int split = (exec)->precision == LIN_PRECISION_FP32;                                                               \
        if ((E) <= 32 && split) function<32, 1>(exec, __VA_ARGS__);                                                              \
        else if ((E) <= 32) function<32, 0>(exec, __VA_ARGS__);                                                                  \
        else if (split) function<64, 1>(exec, __VA_ARGS__);                                                                      \
        else function<64, 0>(exec, __VA_ARGS__);                                                                                 \
    } while (0)

// For operations that have only tiles: 1 if nothing failed so far; wider heads are an error, which it records.
static inline int lin_attention_tiled(lin_exec *exec, int E)
{
    return lin_cuda_check(exec, E <= 64 ? cudaSuccess : cudaErrorInvalidValue, "this attention with heads wider than 64") &&
           lin_cuda_ready(exec);
}

// The division of the work of a call.
typedef struct lin_attention_plan {
    int EP, groups;
    int stretch;    // rows; INT_MAX: all rows of an utterance
    int stretches;  // of the longest utterance; 1: no sums in scratch
    size_t slots;   // of sums
    unsigned heads; // B H
} lin_attention_plan;

// group_bytes: shared memory per group of the kernel that needs the most; most: groups of a block. No groups: it does not fit.
lin_attention_plan lin_attention_divide(lin_exec *exec, const lin_segments *segments, int H, int E, size_t group_bytes, int most);

// Writes the sums of each stretch to job.sums: of keys and values, or (backward) of queries and G', which needs job.terms.
void lin_attention_sum(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, int backward);

// Replaces the sums of each stretch in job.sums by the sums before (or after) it, beginning with the states if given, to which
// the sums over all rows are written; or (ORDER_TOTAL) the first stretch's slot receives the sums over all.
void lin_attention_combine(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, attention_order order);

// Any E, with decays or without; causal = 1 with decays.
void lin_attention_forward_general(lin_exec *exec, const attention_job &job, const lin_segments *segments, int causal);
void lin_attention_backward_general(lin_exec *exec, const attention_job &job, const lin_segments *segments, int causal);

// attention_forward without states that writes y as bf16 too, and attention_backward that writes dqkv only as bf16; E is even. 1
// if it was done, or failed with an error recorded in exec; 0 if there are no tiles for this E on this GPU.
int lin_attention_forward_narrow(lin_exec *exec, float *y, bf16 *narrow_y, const float *qkv, const lin_segments *segments, int H,
                                 int E, int causal);
int lin_attention_backward_narrow(lin_exec *exec, bf16 *dqkv, const float *dy, const float *qkv, const float *y,
                                  const lin_segments *segments, int H, int E, int causal);

#endif
