// LSTM, backward: see lstm.h. Steps run against the order of the forward pass. The gradient of R is one product over all rows
// at the end, with the h before each row.
#include "paper/cuda/lstm.h"

enum {
    PART = BATCH * UNITS + 4, // floats between the sums of warps: lanes of a pair read other banks
    MOST_ROWS = 4096,         // of an utterance that `shift` processes at a time
};

typedef struct backward_job {
    lstm_layer layer;
    const float *dh, *cells, *gates;
    float *dgates;
    float *carried; // [B, directions, U]: gradient of the cells before the last row processed
    unsigned *arrived; // [directions, groups]: all steps in one launch, with the blocks that arrived so far; NULL: one step
    int step;
} backward_job;

// The gradient of the gates of the row processed before; NULL: zeros, or no such row.
static __device__ __forceinline__ const float *before(const backward_job &job, const lstm_place &p, int b, int step)
{
    const lstm_span s = lstm_rows_of(job.layer, b);
    if (step == 0 || step >= s.length) return NULL;
    return job.dgates + lstm_row(job.layer, p, s, step - 1, !p.direction) * (size_t)job.layer.inner;
}

// The sums of all warps, and from them the gradients of the tile: lane pairs compute a unit, each lane two of its gates.
static __device__ __forceinline__ void backward_cells(const backward_job &job, const lstm_place &p, const float *parts, int tile,
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
    for (int w = 0; w < WARPS / 2; w++) sum += parts[(half * WARPS / 2 + w) * PART + m * UNITS + j];
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

template <int STEPS, int NARROW, int SPLIT>
static __device__ __forceinline__ void backward_tile(const backward_job &job, const lstm_place &p,
                                                     const float (&w)[STEPS ? STEPS : 1][1][2], float *parts, int tile, int step)
{
    const int g = p.lane >> 2, t = p.lane & 3;
    const float *upper = before(job, p, tile * BATCH + g, step), *lower = before(job, p, tile * BATCH + g + 8, step);
    float acc[1][4] = {};
    if (step > 0) lstm_multiply<STEPS, 1, NARROW, SPLIT>(acc, w, job.layer, p, upper, lower, job.layer.wide);
    float *to = parts + p.warp * PART + g * UNITS + 2 * t;
    *reinterpret_cast<float2 *>(to) = make_float2(acc[0][0], acc[0][1]);
    *reinterpret_cast<float2 *>(to + 8 * UNITS) = make_float2(acc[0][2], acc[0][3]);
    __syncthreads();
    backward_cells(job, p, parts, tile, step);
}

template <int STEPS, int NARROW, int SPLIT> static __global__ void __launch_bounds__(THREADS) backward_steps(backward_job job)
{
    LIN_SHARED(float, parts); // [2, WARPS, PART]
    const lstm_place p = lstm_find(job.layer);
    float w[STEPS ? STEPS : 1][1][2];
    lstm_load<STEPS, 1, NARROW, SPLIT>(w, job.layer, p);
    const int end = job.arrived ? lstm_longest(job.layer, p) : job.step + 1;
    int buffer = 0;
    for (int step = job.step; step < end; step++) {
        if (step > job.step) lstm_meet(job.arrived + blockIdx.y, (unsigned)(step - job.step) * gridDim.x);
        for (int tile = p.group; tile * BATCH < job.layer.B; tile += job.layer.groups) {
            if (!lstm_any(job.layer, tile, step, p.lane)) continue;
            backward_tile<STEPS, NARROW, SPLIT>(job, p, w, parts + buffer * WARPS * PART, tile, step);
            buffer ^= 1; // one barrier per tile is enough
        }
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

template <int STEPS, int NARROW, int SPLIT> static void run(lin_exec *exec, backward_job &job, int longest)
{
    lstm_run(exec, backward_steps<STEPS, NARROW, SPLIT>, job, STEPS > 0, 2 * WARPS * PART * sizeof(float), longest);
}

template <int NARROW, int SPLIT> static void run_width(lin_exec *exec, backward_job &job, int longest)
{
    const int steps = job.layer.steps;
    if (steps <= 8) run<8, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 20) run<20, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 32) run<32, NARROW, SPLIT>(exec, job, longest);
    else run<0, NARROW, SPLIT>(exec, job, longest);
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
    backward_job job = {};
    job.layer = lstm_layer_of(exec, packed, U, 4 * U, segments, U, directions);
    float *scratch = (float *)lin_cuda_scratch(exec, (carried + shifted + dense + lstm_counters(job.layer)) * sizeof(float));
    if (!scratch) return;
    job.layer.wide = (uintptr_t)dgates % 8 == 0;
    job.dh = dh;
    job.cells = cells;
    job.gates = gates;
    job.dgates = dgates;
    job.carried = scratch;
    job.arrived = reinterpret_cast<unsigned *>(scratch + carried + shifted + dense);
    if (exec->precision == LIN_PRECISION_BF16) run_width<1, 0>(exec, job, segments->longest);
    else if (exec->precision == LIN_PRECISION_TF32) run_width<0, 0>(exec, job, segments->longest);
    else run_width<0, 1>(exec, job, segments->longest);
    weight_gradient(exec, dR, h, job, segments, scratch + carried, dense ? scratch + carried + shifted : NULL);
}
