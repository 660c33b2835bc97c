// LSTM: the recurrent product, and the cells.
//
// Step s of a pass processes, for all utterances at once, the s-th frame of each in the order of the pass. A block owns 8 units
// of one direction: its rows of the recurrent matrix (4 x 8 rows of R forward, 8 rows of Rᵀ backward) stay in its registers,
// divided over 8 warps by the inner dimension; all steps are one launch, between which the blocks of a direction and group wait
// for each other. (Where that is not possible, each step is a launch.) In a step the warps multiply the previous rows (h, or the
// gradient of the gates) of 16 utterances, their sums meet in shared memory, and the threads compute the cells. A block
// processes the tiles of 16 utterances of its group one after another; all groups of a direction hold the same weights.
//
// Fragments: as in attention.h, lane t of a quad holds elements 2t and 2t+1 of eight of the inner dimension, one 8-byte access.
// Precision: fp32 in near fp32 (cuda.h), tf32, or bf16, whose numbers are tf32 numbers as well. Sums have the same order
// whatever the launch, so that the results do not depend on it.
#include "kernels/cuda/cuda.h"

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

// The part that a block computes, and the thread's place in it.
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
        enum { ONCE = STEPS > 10 ? STEPS / 4 : STEPS }; // loads in flight, as many as registers allow
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
    return {.packed = packed,
            .apart = lstm_round_up(lin_cuda_weight_size(outputs, inner), 16),
            .inner = inner,
            .width = exec->precision == LIN_PRECISION_BF16 ? (int)lstm_round_up((size_t)inner, 8) : inner,
            .steps = (inner + 8 * WARPS - 1) / (8 * WARPS),
            .offsets = segments->offsets,
            .B = segments->B,
            .U = U,
            .directions = directions};
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

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

// Hochreiter & Schmidhuber 1997.

typedef struct forward_job {
    // TILES: products of a unit; WIDER: of the inner dimension, in units; PART: floats between the sums of two products, so that
    // lanes of a pair read other banks
    enum { TILES = 4, WIDER = 1, PART = BATCH * UNITS + 8 };
    lstm_layer layer;
    float *h, *cells, *gates;
    float *const *states;
    size_t at;
    unsigned *arrived; // [directions, groups]: all steps in one launch, with the blocks that arrived so far; NULL: one step
    int step;
} forward_job;

static __device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static __device__ __forceinline__ const float *state_of(const forward_job &job, int b)
{
    return job.states && job.states[b] ? job.states[b] + job.at : NULL;
}

// The h before an utterance's row `step`; NULL: zeros, or no such row.
static __device__ __forceinline__ const float *before(const forward_job &job, const lstm_place &p, int b, int step, int *wide)
{
    const lstm_span s = lstm_rows_of(job.layer, b);
    if (step >= s.length) return NULL;
    if (step > 0) return job.h + lstm_row(job.layer, p, s, step - 1, p.direction) * (size_t)job.layer.U;
    *wide = 0;
    return state_of(job, b);
}

// The sums of all warps, and from them the cells of the tile: lane pairs compute a unit, each lane two of its gates.
static __device__ __forceinline__ void find_cells(const forward_job &job, const lstm_place &p, const float *parts, int tile,
                                                     int step)
{
    const lstm_layer &l = job.layer;
    const int half = p.lane & 1, m = p.warp * 2 + (p.lane >> 4), j = p.lane >> 1 & 7;
    const int b = tile * BATCH + m, unit = p.unit + j;
    const lstm_span s = lstm_rows_of(l, b);
    const int mine = unit < l.U && step < s.length;
    float z[2] = {0, 0}, c = 0;
    size_t row = 0;
    float *gates = NULL;
    if (mine) {
        row = lstm_row(l, p, s, step, p.direction) * (size_t)l.U + (size_t)unit;
        gates = job.gates + row * 4 - 3 * (size_t)unit + 2 * (size_t)half * (size_t)l.U;
        z[0] = gates[0];
        z[1] = gates[l.U];
        if (j == 0 && step + 1 < s.length) {
            const size_t next = lstm_row(l, p, s, step + 1, p.direction) * 4 * (size_t)l.U + (size_t)unit;
            lin_prefetch(job.gates + next + 2 * (size_t)half * (size_t)l.U);
            lin_prefetch(job.gates + next + (2 * (size_t)half + 1) * (size_t)l.U);
        }
        if (step > 0) c = job.cells[lstm_row(l, p, s, step - 1, p.direction) * (size_t)l.U + (size_t)unit];
        else if (const float *state = state_of(job, b)) c = state[l.U + unit];
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = 0;
        for (int w = 0; w < WARPS; w++) sum += parts[(w * 4 + 2 * half + i) * forward_job::PART + m * UNITS + j];
        z[i] += sum;
    }
    const float first = half ? tanhf(z[0]) : sigmoid(z[0]), second = sigmoid(z[1]);
    const float other_first = __shfl_xor_sync(0xffffffffu, first, 1), other_second = __shfl_xor_sync(0xffffffffu, second, 1);
    if (!mine) return;
    gates[0] = first;
    gates[l.U] = second;
    c = half ? fmaf(other_second, c, other_first * first) : fmaf(second, c, first * other_first);
    if (half) job.h[row] = second * tanhf(c);
    else job.cells[row] = c;
}

// The states after the last rows: [2, U], h and c. Separate, because other blocks read the old h until the first step ends.
static __global__ void __launch_bounds__(THREADS) save_states(forward_job job)
{
    const int U = job.layer.U, i = (int)blockIdx.y * THREADS + (int)threadIdx.x, b = (int)blockIdx.x;
    const lstm_span s = lstm_rows_of(job.layer, b);
    float *state = job.states[b];
    if (!state || s.length == 0 || i >= 2 * U) return;
    const size_t last = (size_t)(s.first + s.length - 1) * (size_t)U;
    state[job.at + (size_t)i] = i < U ? job.h[last + (size_t)i] : job.cells[last + (size_t)(i - U)];
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// Steps run against the order of the forward pass. The gradient of R is one product over all rows
// at the end, with the h before each row.

enum { MOST_ROWS = 4096 }; // of an utterance that `shift` processes at a time

typedef struct backward_job {
    enum { TILES = 1, WIDER = 4, PART = BATCH * UNITS + 4 };
    lstm_layer layer;
    const float *dh, *cells, *gates;
    float *dgates;
    float *carried; // [B, directions, U]: gradient of the cells before the last row processed
    unsigned *arrived; // [directions, groups]: all steps in one launch, with the blocks that arrived so far; NULL: one step
    int step;
} backward_job;

// The gradient of the gates of the row processed before; NULL: zeros, or no such row.
static __device__ __forceinline__ const float *before(const backward_job &job, const lstm_place &p, int b, int step, int *)
{
    const lstm_span s = lstm_rows_of(job.layer, b);
    if (step == 0 || step >= s.length) return NULL;
    return job.dgates + lstm_row(job.layer, p, s, step - 1, !p.direction) * (size_t)job.layer.inner;
}

// The sums of all warps, and from them the gradients of the tile: lane pairs compute a unit, each lane two of its gates.
static __device__ __forceinline__ void find_cells(const backward_job &job, const lstm_place &p, const float *parts, int tile,
                                                      int step)
{
    const lstm_layer &l = job.layer;
    const int half = p.lane & 1, m = p.warp * 2 + (p.lane >> 4), j = p.lane >> 1 & 7;
    const int b = tile * BATCH + m, unit = p.unit + j;
    const lstm_span s = lstm_rows_of(l, b);
    const int mine = unit < l.U && step < s.length;
    const size_t U = (size_t)l.U, carry = ((size_t)b * (size_t)l.directions + (size_t)p.direction) * U + (size_t)unit;
    size_t gate = 0;
    float first = 0, second = 0, c = 0, c_before = 0, dc = 0, dh = 0;
    if (mine) {
        const size_t row = lstm_row(l, p, s, step, !p.direction) * U + (size_t)unit;
        gate = row * 4 - 3 * (size_t)unit + 2 * (size_t)half * U;
        first = job.gates[gate]; // i or g
        second = job.gates[gate + U]; // f or o
        c = job.cells[row];
        dh = job.dh[row];
        if (step + 1 < s.length) {
            const size_t next = lstm_row(l, p, s, step + 1, !p.direction) * U;
            c_before = job.cells[next + (size_t)unit];
            if (j == 0) {
                lin_prefetch(job.gates + next * 4 + 2 * (size_t)half * U + (size_t)unit);
                lin_prefetch(job.gates + next * 4 + (2 * (size_t)half + 1) * U + (size_t)unit);
                lin_prefetch(job.dh + next + (size_t)unit);
            }
        }
        if (step > 0) dc = job.carried[carry];
    }
    float sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS / 2; w++) sum += parts[(half * WARPS / 2 + w) * backward_job::PART + m * UNITS + j];
    dh += sum + __shfl_xor_sync(0xffffffffu, sum, 1);
    const float other_first = __shfl_xor_sync(0xffffffffu, first, 1), other_second = __shfl_xor_sync(0xffffffffu, second, 1);
    if (!mine) return;
    const float tanh_c = tanhf(c), o = half ? second : other_second;
    dc = fmaf(dh * o, 1 - tanh_c * tanh_c, dc);
    if (half) {
        job.dgates[gate] = dc * other_first * (1 - first * first);
        job.dgates[gate + U] = dh * tanh_c * second * (1 - second);
    } else {
        job.dgates[gate] = dc * other_first * first * (1 - first);
        job.dgates[gate + U] = dc * c_before * second * (1 - second);
        job.carried[carry] = dc * second;
    }
}

// The operands of the gradient of R in one direction: the h before each row, zeros before the first; and, if there are two
// directions, the gradient of the gates as a dense matrix.
static __global__ void __launch_bounds__(THREADS)
    shift(float *__restrict__ h_before, float *__restrict__ dense, const float *__restrict__ h, backward_job job, int direction)
{
    const lstm_layer &l = job.layer;
    const lstm_span s = lstm_rows_of(l, (int)blockIdx.x);
    const size_t U = (size_t)l.U, directions = (size_t)l.directions;
    for (int i = (int)blockIdx.y; i < s.length; i += (int)gridDim.y) {
        const size_t row = (size_t)(s.first + i);
        const int at_end = direction ? i == s.length - 1 : i == 0;
        const float *from = h + ((direction ? row + 1 : row - 1) * directions + (size_t)direction) * U;
        for (size_t u = threadIdx.x; u < U; u += THREADS) h_before[row * U + u] = at_end ? 0 : from[u];
        const float *z = job.dgates + (row * directions + (size_t)direction) * 4 * U;
        for (size_t u = threadIdx.x; dense && u < 4 * U; u += THREADS) dense[row * 4 * U + u] = z[u];
    }
}

/* ---- both passes ----------------------------------------------------------------------------------------------------------- */

// A step of a tile of 16 utterances: the warps' parts of the product meet in `parts`, from which the threads compute the cells.
template <int STEPS, int NARROW, int SPLIT, typename Job>
static __device__ __forceinline__ void process_tile(const Job &job, const lstm_place &p,
                                                    const float (&w)[STEPS ? STEPS : 1][Job::TILES][2], float *parts, int tile,
                                                    int step)
{
    const int g = p.lane >> 2, t = p.lane & 3;
    int wide = job.layer.wide;
    const float *upper = before(job, p, tile * BATCH + g, step, &wide),
                *lower = before(job, p, tile * BATCH + g + 8, step, &wide);
    float acc[Job::TILES][4] = {};
    lstm_multiply<STEPS, Job::TILES, NARROW, SPLIT>(acc, w, job.layer, p, upper, lower, wide);
#pragma unroll
    for (int q = 0; q < Job::TILES; q++) {
        float *to = parts + (p.warp * Job::TILES + q) * Job::PART + g * UNITS + 2 * t;
        *reinterpret_cast<float2 *>(to) = make_float2(acc[q][0], acc[q][1]);
        *reinterpret_cast<float2 *>(to + 8 * UNITS) = make_float2(acc[q][2], acc[q][3]);
    }
    __syncthreads();
    find_cells(job, p, parts, tile, step);
}

template <int STEPS, int NARROW, int SPLIT, typename Job> static __global__ void __launch_bounds__(THREADS) lstm_steps(Job job)
{
    LIN_SHARED(float, parts); // [2, WARPS, TILES, PART]
    const lstm_place p = lstm_find(job.layer);
    float w[STEPS ? STEPS : 1][Job::TILES][2];
    lstm_load<STEPS, Job::TILES, NARROW, SPLIT>(w, job.layer, p);
    const int end = job.arrived ? lstm_longest(job.layer, p) : job.step + 1;
    int buffer = 0;
    for (int step = job.step; step < end; step++) {
        if (step > job.step) lstm_meet(job.arrived + blockIdx.y, (unsigned)(step - job.step) * gridDim.x);
        for (int tile = p.group; tile * BATCH < job.layer.B; tile += job.layer.groups) {
            if (!lstm_any(job.layer, tile, step, p.lane)) continue;
            process_tile<STEPS, NARROW, SPLIT>(job, p, w, parts + buffer * WARPS * Job::TILES * Job::PART, tile, step);
            buffer ^= 1; // one barrier per tile is enough
        }
    }
}

// All steps of a pass: one launch if the kernel holds its weights (STEPS > 0) and all blocks are resident at the same time, else
// a launch for each step.
template <int STEPS, int NARROW, int SPLIT, typename Job> static void run(lin_exec *exec, Job &job, int longest)
{
    const size_t shared_bytes = 2 * WARPS * Job::TILES * Job::PART * sizeof(float);
    void (*const kernel)(Job) = lstm_steps<STEPS, NARROW, SPLIT, Job>;
    const int resident = lstm_groups(exec, job.layer, (const void *)kernel, shared_bytes);
    job.layer.groups = resident > 0 ? resident : lstm_tiles(job.layer.B);
    job.step = 0;
    if (STEPS > 0 && resident > 0 && longest > 2) {
        lin_cuda_check(exec, cudaMemsetAsync(job.arrived, 0, lstm_counters(job.layer) * sizeof *job.arrived, exec->stream),
                       "clearing counters");
        LIN_LAUNCH_TOGETHER(exec, kernel, lstm_grid(job.layer), THREADS, shared_bytes, job);
        return;
    }
    job.arrived = NULL;
    for (; job.step < longest; job.step++) LIN_LAUNCH(exec, kernel, lstm_grid(job.layer), THREADS, shared_bytes, job);
}

template <int NARROW, int SPLIT, typename Job> static void run_width(lin_exec *exec, Job &job, int longest)
{
    const int steps = job.layer.steps;
    if (steps <= 2 * Job::WIDER) run<2 * Job::WIDER, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 5 * Job::WIDER) run<5 * Job::WIDER, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 8 * Job::WIDER) run<8 * Job::WIDER, NARROW, SPLIT>(exec, job, longest);
    else run<0, NARROW, SPLIT>(exec, job, longest);
}

template <typename Job> static void run_precision(lin_exec *exec, Job &job, int longest)
{
    if (exec->precision == LIN_PRECISION_BF16) run_width<1, 0>(exec, job, longest);
    else if (exec->precision == LIN_PRECISION_TF32) run_width<0, 0>(exec, job, longest);
    else run_width<0, 1>(exec, job, longest);
}

/* ---- the operations -------------------------------------------------------------------------------------------------------- */

void lin_cuda_lstm_forward(lin_exec *exec, float *h, float *cells, float *gates, const float *packed,
                           const lin_segments *segments, int U, int directions, float *const *states, size_t at)
{
    if (segments->B == 0 || segments->rows == 0 || U == 0 || directions == 0) return;
    forward_job job = {.layer = lstm_layer_of(exec, packed, 4 * U, U, segments, U, directions), .h = h, .cells = cells,
                       .gates = gates, .states = directions == 1 ? states : NULL, .at = at};
    job.layer.wide = U % 2 == 0 && (uintptr_t)h % 8 == 0;
    job.arrived = (unsigned *)lin_cuda_scratch(exec, lstm_counters(job.layer) * sizeof *job.arrived);
    if (!job.arrived) return;
    run_precision(exec, job, segments->longest);
    if (job.states)
        LIN_LAUNCH(exec, save_states, dim3((unsigned)segments->B, lin_cuda_blocks(2 * (size_t)U, THREADS)), THREADS, 0, job);
}

static void weight_gradient(lin_exec *exec, float *dR, const float *h, const backward_job &job, const lin_segments *segments,
                            float *h_before, float *dense)
{
    const int U = job.layer.U, directions = job.layer.directions;
    const dim3 grid((unsigned)segments->B, (unsigned)(segments->longest < MOST_ROWS ? segments->longest : MOST_ROWS));
    for (int d = 0; d < directions; d++) {
        LIN_LAUNCH(exec, shift, grid, THREADS, 0, h_before, dense, h, job, d);
        lin_cuda_linear_backward_weight(exec, dR + (size_t)d * 4 * (size_t)U * (size_t)U, NULL, dense ? dense : job.dgates,
                                        h_before, segments->rows, 4 * U, U);
    }
}

void lin_cuda_lstm_backward(lin_exec *exec, float *dgates, float *dR, const float *dh, const float *h, const float *cells,
                            const float *gates, const float *packed, const lin_segments *segments, int U, int directions)
{
    if (segments->B == 0 || segments->rows == 0 || U == 0 || directions == 0) return;
    const size_t rows = (size_t)segments->rows, width = lstm_round_up((size_t)U, 4);
    const size_t carried = (size_t)segments->B * (size_t)directions * width, shifted = rows * width;
    const size_t dense = directions == 1 ? 0 : rows * 4 * (size_t)U;
    backward_job job = {.layer = lstm_layer_of(exec, packed, U, 4 * U, segments, U, directions), .dh = dh, .cells = cells,
                        .gates = gates, .dgates = dgates};
    float *scratch = (float *)lin_cuda_scratch(exec, (carried + shifted + dense + lstm_counters(job.layer)) * sizeof(float));
    if (!scratch) return;
    job.layer.wide = (uintptr_t)dgates % 8 == 0;
    job.carried = scratch;
    job.arrived = reinterpret_cast<unsigned *>(scratch + carried + shifted + dense);
    run_precision(exec, job, segments->longest);
    weight_gradient(exec, dR, h, job, segments, scratch + carried, dense ? scratch + carried + shifted : NULL);
}
