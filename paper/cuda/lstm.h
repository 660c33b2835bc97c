/*
 * lstm.h - device code shared by the forward and backward passes of the LSTM: the recurrent product, and who computes what.
 *
 * Internal to paper/cuda/lstm*.cu. Step s of a pass processes, for all utterances at once, the s-th frame of each in the
 * order of the pass. A block owns 8 units of one direction: its rows of the recurrent matrix (4 x 8 rows of R forward, 8 rows
 * of Rᵀ backward) stay in its registers, divided over 8 warps by the inner dimension; all steps are one launch, between which
 * the blocks of a direction and group wait for each other. (Where that is not possible, each step is a launch.) In a step the
 * warps multiply the previous rows (h, or the gradient of the gates) of 16 utterances, their sums meet in shared memory, and
 * the threads compute the cells. A block processes the tiles of 16 utterances of its group one after another; all groups of a
 * direction hold the same weights.
 *
 * Fragments: as in attention.h, lane t of a quad holds elements 2t and 2t+1 of eight of the inner dimension, one 8-byte access.
 * Precision: fp32 in near fp32 (products.h), tf32, or bf16, whose numbers are tf32 numbers as well. Sums have the same order
 * whatever the launch, so that the results do not depend on it.
 */
#ifndef LIN_PAPER_CUDA_LSTM_H
#define LIN_PAPER_CUDA_LSTM_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/products.h"

enum { UNITS = 8, BATCH = 16, WARPS = 8, THREADS = 32 * WARPS };

typedef struct lstm_layer {
    const float *packed; // [outputs, inner] of each direction
    size_t apart;        // floats between directions
    int inner, width;    // inner dimension; elements between rows, which are bf16 if narrow
    int steps;           // of 8 elements of the inner dimension that a warp sums over
    const int *offsets;  // [B+1]
    int B, U, directions, groups;
    int wide; // rows of the left operand are aligned to 8 bytes
} lstm_layer;

// What a block computes, and the thread in it.
typedef struct lstm_place {
    int unit, direction, group, warp, lane;
} lstm_place;

static __device__ __forceinline__ lstm_place lstm_find(const lstm_layer &l)
{
    const int y = (int)blockIdx.y, tid = (int)threadIdx.x;
    return {(int)blockIdx.x * UNITS, y / l.groups, y % l.groups, tid >> 5, tid & 31};
}

// The rows of an utterance; none beyond the last utterance.
typedef struct lstm_span {
    int first, length;
} lstm_span;

static __device__ __forceinline__ lstm_span lstm_rows_of(const lstm_layer &l, int b)
{
    if (b >= l.B) return {0, 0};
    const int first = l.offsets[b];
    return {first, l.offsets[b + 1] - first};
}

// Row `step` of an utterance, from the end if `reverse`, of a matrix with a row for each direction.
static __device__ __forceinline__ size_t lstm_row(const lstm_layer &l, const lstm_place &p, lstm_span s, int step, int reverse)
{
    const int row = reverse ? s.first + s.length - 1 - step : s.first + step;
    return (size_t)row * (size_t)l.directions + (size_t)p.direction;
}

// Whether an utterance of the tile has a frame for this step; the same in all threads.
static __device__ __forceinline__ int lstm_any(const lstm_layer &l, int tile, int step, int lane)
{
    return __any_sync(0xffffffffu, lane < BATCH && lstm_rows_of(l, tile * BATCH + lane).length > step);
}

// The frames of the longest utterance of a block's tiles.
static __device__ __forceinline__ int lstm_longest(const lstm_layer &l, const lstm_place &p)
{
    int most = 0;
    for (int tile = p.group; tile * BATCH < l.B; tile += l.groups)
        if (p.lane < BATCH) most = max(most, lstm_rows_of(l, tile * BATCH + p.lane).length);
    return __reduce_max_sync(0xffffffffu, most);
}

// Waits for the blocks of a direction and group: each calls it once per step, and `all` is their number times the calls so far.
static __device__ __forceinline__ void lstm_meet(unsigned *arrived, unsigned all)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        lin_signal(arrived);
        lin_await(arrived, all);
    }
    __syncthreads();
}

// Elements k and k+1 of row `row` of the weights, as operands.
template <int NARROW, int SPLIT>
static __device__ __forceinline__ void lstm_weight(float (&b)[2], const lstm_layer &l, int direction, int row, int k)
{
    const float *from = l.packed + (size_t)direction * l.apart;
    const size_t at = (size_t)row * (size_t)l.width + (size_t)k;
    if (NARROW) {
        const uint32_t two = k < l.width ? *reinterpret_cast<const uint32_t *>(reinterpret_cast<const uint16_t *>(from) + at) : 0;
        b[0] = __uint_as_float(two << 16);
        b[1] = __uint_as_float(two & 0xFFFF0000u);
    } else {
        b[0] = k < l.inner ? operand<SPLIT>(from[at]) : 0;
        b[1] = k + 1 < l.inner ? operand<SPLIT>(from[at + 1]) : 0;
    }
}

// The weights of a warp: STEPS steps of 8, TILES rows of each of the block's units, `between` rows apart.
template <int STEPS, int TILES, int NARROW, int SPLIT>
static __device__ __forceinline__ void lstm_load(float (&w)[STEPS ? STEPS : 1][TILES][2], const lstm_layer &l,
                                                 const lstm_place &p)
{
    const int unit = p.unit + (p.lane >> 2);
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int q = 0; q < TILES; q++) {
            w[s][q][0] = w[s][q][1] = 0;
            if (s < l.steps && unit < l.U)
                lstm_weight<NARROW, SPLIT>(w[s][q], l, p.direction, q * l.U + unit,
                                           (p.warp * l.steps + s) * 8 + 2 * (p.lane & 3));
        }
}

// Elements k and k+1 of a row that another block may just have written; zeros without a row.
template <int NARROW, int SPLIT>
static __device__ __forceinline__ void lstm_left(float &first, float &second, const float *row, int k, int inner, int wide)
{
    float2 x = make_float2(0, 0);
    if (row && k < inner) {
        if (wide) x = __ldcg(reinterpret_cast<const float2 *>(row + k));
        else {
            x.x = __ldcg(row + k);
            if (k + 1 < inner) x.y = __ldcg(row + k + 1);
        }
    }
    first = NARROW ? lin_bf16(x.x) : operand<SPLIT>(x.x);
    second = NARROW ? lin_bf16(x.y) : operand<SPLIT>(x.y);
}

// acc[q] [16, 8] += the warp's part of the product: 16 rows, of which this lane reads two, times the weights of the block's
// units.
template <int STEPS, int TILES, int NARROW, int SPLIT>
static __device__ __forceinline__ void lstm_multiply(float (&acc)[TILES][4], const float (&w)[STEPS ? STEPS : 1][TILES][2],
                                                     const lstm_layer &l, const lstm_place &p, const float *upper,
                                                     const float *lower, int wide)
{
    const int k = p.warp * l.steps * 8 + 2 * (p.lane & 3), unit = p.unit + (p.lane >> 2);
    if constexpr (STEPS > 0) {
        enum { ONCE = STEPS > 10 ? STEPS / 4 : STEPS }; // so many loads in flight, as there are registers for
#pragma unroll
        for (int from = 0; from < STEPS; from += ONCE) {
            float a[ONCE][4];
#pragma unroll
            for (int s = 0; s < ONCE; s++) {
                const int at = from + s < l.steps ? k + 8 * (from + s) : l.inner;
                lstm_left<NARROW, SPLIT>(a[s][0], a[s][2], upper, at, l.inner, wide);
                lstm_left<NARROW, SPLIT>(a[s][1], a[s][3], lower, at, l.inner, wide);
            }
#pragma unroll
            for (int s = 0; s < ONCE; s++)
#pragma unroll
                for (int q = 0; q < TILES; q++) multiply<SPLIT>(acc[q], a[s], w[from + s][q]);
        }
    } else {
        for (int s = 0; s < l.steps; s++) {
            float a[4], b[2] = {0, 0};
            lstm_left<NARROW, SPLIT>(a[0], a[2], upper, k + 8 * s, l.inner, wide);
            lstm_left<NARROW, SPLIT>(a[1], a[3], lower, k + 8 * s, l.inner, wide);
            for (int q = 0; q < TILES; q++) {
                if (unit < l.U) lstm_weight<NARROW, SPLIT>(b, l, p.direction, q * l.U + unit, k + 8 * s);
                multiply<SPLIT>(acc[q], a, b);
            }
        }
    }
}

static inline size_t lstm_round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// The layer of a pass with `outputs` x `inner` weights.
static inline lstm_layer lstm_layer_of(const lin_exec *exec, const float *packed, int outputs, int inner,
                                       const lin_segments *segments, int U, int directions)
{
    lstm_layer l = {};
    l.packed = packed;
    l.apart = lstm_round_up(lin_cuda_weight_size(outputs, inner), 16);
    l.inner = inner;
    l.width = exec->precision == LIN_PRECISION_BF16 ? (int)lstm_round_up((size_t)inner, 8) : inner;
    l.steps = (inner + 8 * WARPS - 1) / (8 * WARPS);
    l.offsets = segments->offsets;
    l.B = segments->B;
    l.U = U;
    l.directions = directions;
    return l;
}

static inline int lstm_tiles(int B) { return (B + BATCH - 1) / BATCH; }
static inline int lstm_blocks(int U) { return (U + UNITS - 1) / UNITS; }

// One for each direction and group, of which there are no more than tiles.
static inline size_t lstm_counters(const lstm_layer &l) { return (size_t)l.directions * (size_t)lstm_tiles(l.B); }

// The number of groups, at most one for each tile, with which all blocks are resident at the same time; 0: not possible.
static inline int lstm_groups(lin_exec *exec, const lstm_layer &l, const void *kernel, size_t shared_bytes)
{
    const int most = lin_cuda_resident(exec, kernel, THREADS, shared_bytes) / (lstm_blocks(l.U) * l.directions);
    return most < lstm_tiles(l.B) ? most : lstm_tiles(l.B);
}

static inline dim3 lstm_grid(const lstm_layer &l)
{
    return dim3((unsigned)lstm_blocks(l.U), (unsigned)(l.directions * l.groups));
}

// All steps of a pass: one launch if the kernel holds its weights (`together`) and all blocks are resident at the same time, else
// a launch for each step. `shared_bytes` of a block; `longest` utterance.
template <typename Job>
static inline void lstm_run(lin_exec *exec, void (*lstm_steps)(Job), Job &job, int together, size_t shared_bytes, int longest)
{
    const int resident = lstm_groups(exec, job.layer, (const void *)lstm_steps, shared_bytes);
    job.layer.groups = resident > 0 ? resident : lstm_tiles(job.layer.B);
    job.step = 0;
    if (together && resident > 0 && longest > 2) {
        lin_cuda_check(exec, cudaMemsetAsync(job.arrived, 0, lstm_counters(job.layer) * sizeof *job.arrived, exec->stream),
                       "clearing counters");
        LIN_LAUNCH_TOGETHER(exec, lstm_steps, lstm_grid(job.layer), THREADS, shared_bytes, job);
        return;
    }
    job.arrived = NULL;
    for (; job.step < longest; job.step++) LIN_LAUNCH(exec, lstm_steps, lstm_grid(job.layer), THREADS, shared_bytes, job);
}

#endif
