// LSTM, forward (Hochreiter & Schmidhuber 1997): see lstm.h.
#include "paper/cuda/lstm.h"

enum { PART = BATCH * UNITS + 8 }; // floats between the gates' sums of a warp: lanes of a pair read other banks

typedef struct forward_job {
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
static __device__ __forceinline__ void forward_cells(const forward_job &job, const lstm_place &p, const float *parts, int tile,
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
        for (int w = 0; w < WARPS; w++) sum += parts[(w * 4 + 2 * half + i) * PART + m * UNITS + j];
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

template <int STEPS, int NARROW, int SPLIT>
static __device__ __forceinline__ void forward_tile(const forward_job &job, const lstm_place &p,
                                                    const float (&w)[STEPS ? STEPS : 1][4][2], float *parts, int tile, int step)
{
    const int g = p.lane >> 2, t = p.lane & 3;
    int wide = job.layer.wide;
    const float *upper = before(job, p, tile * BATCH + g, step, &wide),
                *lower = before(job, p, tile * BATCH + g + 8, step, &wide);
    float acc[4][4] = {};
    lstm_multiply<STEPS, 4, NARROW, SPLIT>(acc, w, job.layer, p, upper, lower, wide);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        float *to = parts + (p.warp * 4 + q) * PART + g * UNITS + 2 * t;
        *reinterpret_cast<float2 *>(to) = make_float2(acc[q][0], acc[q][1]);
        *reinterpret_cast<float2 *>(to + 8 * UNITS) = make_float2(acc[q][2], acc[q][3]);
    }
    __syncthreads();
    forward_cells(job, p, parts, tile, step);
}

template <int STEPS, int NARROW, int SPLIT> static __global__ void __launch_bounds__(THREADS) forward_steps(forward_job job)
{
    LIN_SHARED(float, parts); // [2, WARPS, 4, PART]
    const lstm_place p = lstm_find(job.layer);
    float w[STEPS ? STEPS : 1][4][2];
    lstm_load<STEPS, 4, NARROW, SPLIT>(w, job.layer, p);
    const int end = job.arrived ? lstm_longest(job.layer, p) : job.step + 1;
    int buffer = 0;
    for (int step = job.step; step < end; step++) {
        if (step > job.step) lstm_meet(job.arrived + blockIdx.y, (unsigned)(step - job.step) * gridDim.x);
        for (int tile = p.group; tile * BATCH < job.layer.B; tile += job.layer.groups) {
            if (!lstm_any(job.layer, tile, step, p.lane)) continue;
            forward_tile<STEPS, NARROW, SPLIT>(job, p, w, parts + buffer * WARPS * 4 * PART, tile, step);
            buffer ^= 1; // one barrier per tile is enough
        }
    }
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

template <int STEPS, int NARROW, int SPLIT> static void run(lin_exec *exec, forward_job &job, int longest)
{
    lstm_run(exec, forward_steps<STEPS, NARROW, SPLIT>, job, STEPS > 0, 2 * WARPS * 4 * PART * sizeof(float), longest);
}

template <int NARROW, int SPLIT> static void run_width(lin_exec *exec, forward_job &job, int longest)
{
    const int steps = job.layer.steps;
    if (steps <= 2) run<2, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 5) run<5, NARROW, SPLIT>(exec, job, longest);
    else if (steps <= 8) run<8, NARROW, SPLIT>(exec, job, longest);
    else run<0, NARROW, SPLIT>(exec, job, longest);
}

void lin_cuda_lstm_forward(lin_exec *exec, float *h, float *cells, float *gates, const float *packed,
                           const lin_segments *segments, int U, int directions, float *const *states, size_t at)
{
    if (segments->B == 0 || segments->rows == 0 || U == 0 || directions == 0) return;
    forward_job job = {};
    job.layer = lstm_layer_of(exec, packed, 4 * U, U, segments, U, directions);
    job.layer.wide = U % 2 == 0 && (uintptr_t)h % 8 == 0;
    job.h = h;
    job.cells = cells;
    job.gates = gates;
    job.states = directions == 1 ? states : NULL;
    job.at = at;
    job.arrived = (unsigned *)lin_cuda_scratch(exec, lstm_counters(job.layer) * sizeof *job.arrived);
    if (!job.arrived) return;
    if (exec->precision == LIN_PRECISION_BF16) run_width<1, 0>(exec, job, segments->longest);
    else if (exec->precision == LIN_PRECISION_TF32) run_width<0, 0>(exec, job, segments->longest);
    else run_width<0, 1>(exec, job, segments->longest);
    if (job.states)
        LIN_LAUNCH(exec, save_states, dim3((unsigned)segments->B, lin_cuda_blocks(2 * (size_t)U, THREADS)), THREADS, 0, job);
}
