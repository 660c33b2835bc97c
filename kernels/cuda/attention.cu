// Linear attention, forward (Katharopoulos et al. 2020, eq. 4-12 and 16-20). attention.h describes the division into tiles. This
// file has the kernels for rows, causal or not; for the sums of stretches; and for many streams with few rows each, one warp for
// each (stream, head).
#include "kernels/cuda/attention.h"

#include <float.h>
#include <limits.h>

/* ---- division of the work -------------------------------------------------------------------------------------------------- */

lin_attention_plan lin_attention_divide(lin_exec *exec, const lin_segments *segments, int H, int E, size_t group_bytes, int most)
{
    const int longest = segments->longest < segments->rows ? segments->longest : segments->rows;
    const double per_head = (double)segments->rows * H / exec->multiprocessors; // rows, if the work is divided evenly
    lin_attention_plan plan = {.EP = E <= 32 ? 32 : 64, .stretch = INT_MAX, .stretches = 1,
                               .heads = (unsigned)segments->B * (unsigned)H};
    const int fit = E > 64 ? 0 : (int)(exec->shared_most / group_bytes);
    if (fit == 0) return plan;
    if (most > fit) most = fit;
    if (most > 2 && exec->shared_most < FEWER_GROUPS) most = 2; // as LIN_GROUPS_HERE has it
    plan.groups = 1;
    if (longest <= 1024 || longest <= 2 * per_head) {
        // One block per (utterance, head), with as many groups as fit on a multiprocessor beside the other blocks there.
        const int tiles = (longest + TILE - 1) / TILE;
        int groups = (int)((unsigned)most * (unsigned)exec->multiprocessors / plan.heads);
        if (groups > most) groups = most;
        if (groups > tiles) groups = tiles;
        if (groups > 1) plan.groups = groups;
        return plan;
    }
    // As many blocks as fit at a time, but none with so few rows that computing its sums costs too much.
    const double rows = per_head / most < 256 ? 256 : per_head / most;
    plan.stretch = ((int)rows + TILE - 1) / TILE * TILE;
    plan.stretches = (longest + plan.stretch - 1) / plan.stretch;
    plan.slots = ((size_t)segments->rows / (size_t)plan.stretch + (size_t)segments->B + 1) * (size_t)H;
    return plan;
}

/* ---- sums of stretches ----------------------------------------------------------------------------------------------------- */

template <int EP, int SPLIT, int BACKWARD> __global__ void __launch_bounds__(GROUP) stretch_sums(attention_job job)
{
    LIN_SHARED(float, shared);
    attention_place place;
    if (!attention_find(&place, job, blockIdx.y)) return;
    const size_t width = (size_t)job.H * (size_t)job.E, head = (size_t)place.h * (size_t)job.E;
    const float *q = job.qkv + place.first * 3 * width + head;
    tile_source x = {q + width, 3 * width}, y = {q + 2 * width, 3 * width}, terms = {NULL, 0};
    if (BACKWARD) {
        x.rows = q;
        y.rows = job.dy + place.first * width + head;
        y.stride = width;
        terms.rows = job.terms + (place.first * (size_t)job.H + (size_t)place.h) * 2;
        terms.stride = 2 * (size_t)job.H;
    }
    running_sums<EP> r;
    float *sums = shared + 4 * sizes<EP>::tile, *scales = sums + sizes<EP>::sum_tile;
    sum_stretch<EP, SPLIT>(r, shared, scales, sums, 0, x, y, terms, !BACKWARD, place.rows, job.E, job.wide);
    store_running<EP>(r, job.sums + place.slot * sizes<EP>::sums);
}

template <int EP, int SPLIT, int BACKWARD>
static void launch_sums(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan)
{
    const size_t bytes = (4 * sizes<EP>::tile + sizes<EP>::sum_tile + 4 * TILE) * sizeof(float);
    LIN_ALLOW_SHARED(exec, (stretch_sums<EP, SPLIT, BACKWARD>), bytes);
    LIN_LAUNCH(exec, (stretch_sums<EP, SPLIT, BACKWARD>), dim3(plan.heads, (unsigned)plan.stretches), GROUP, bytes, job);
}

template <int EP, int SPLIT>
static void launch_sums_of(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, int backward)
{
    if (backward) launch_sums<EP, SPLIT, 1>(exec, job, plan);
    else launch_sums<EP, SPLIT, 0>(exec, job, plan);
}

void lin_attention_sum(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, int backward)
{
    LIN_TILED(launch_sums_of, plan.EP, exec, job, plan, backward);
}

enum { COMBINE_AHEAD = 8 };

// One thread per element of (S, z): goes over the stretches of an utterance in order, with several loads in flight.
__global__ void combine_sums(attention_job job, int EP, attention_order order)
{
    attention_place place;
    const int n_elements = (EP + 1) * EP, i = (int)(blockIdx.y * blockDim.x + threadIdx.x);
    if (!attention_find(&place, job, 0) || i >= n_elements) return;
    const int T = job.offsets[place.b + 1] - job.offsets[place.b], n = (T - 1) / job.stretch + 1;
    const size_t step = (size_t)job.H * (size_t)n_elements;
    float *first = job.sums + place.first_slot * (size_t)n_elements + i, sum = 0;
    float *state =
        job.states && job.states[place.b] ? job.states[place.b] + job.at + (size_t)place.h * (size_t)((job.E + 1) * job.E) : NULL;
    const int at = state ? state_at(i, EP, job.E) : -1;
    if (at >= 0) sum = state[at];
    for (int s = 0; s < n; s += COMBINE_AHEAD) {
        float x[COMBINE_AHEAD];
        for (int k = 0; k < COMBINE_AHEAD; k++)
            x[k] = s + k < n ? first[(size_t)(order == ORDER_REVERSE ? n - 1 - s - k : s + k) * step] : 0;
        for (int k = 0; k < COMBINE_AHEAD && s + k < n; k++) {
            if (order != ORDER_TOTAL) first[(size_t)(order == ORDER_REVERSE ? n - 1 - s - k : s + k) * step] = sum;
            sum += x[k];
        }
    }
    if (order == ORDER_TOTAL) *first = sum;
    if (at >= 0) state[at] = sum;
}

void lin_attention_combine(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, attention_order order)
{
    const size_t n_elements = (size_t)((plan.EP + 1) * plan.EP);
    LIN_LAUNCH(exec, combine_sums, dim3(plan.heads, lin_cuda_blocks(n_elements, GROUP)), GROUP, 0, job, plan.EP, order);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

template <int EP, int CAUSAL> struct forward_sizes {
    enum { tiles = CAUSAL ? 5 : 4, group_floats = tiles * sizes<EP>::tile + sizes<EP>::sum_tile };
};

// y += the masked weights of the 16 rows that a warp shares with itself, times their values. 0 times NaN or infinity is NaN, so
// values that are not finite are taken out first and then added only to the rows that may see them.
template <int EP, int SPLIT>
static __device__ __forceinline__ void add_diagonal(float (&y)[EP / 8][4], const float (&w)[2][4], const float *values, int lane)
{
    const int g = lane >> 2, t = lane & 3;
    float b[2][EP / 8][2], probe = 0;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int n = 0; n < EP / 8; n++) {
            load_rows<EP>(b[h][n], values, h, n, lane);
            probe = fmaf(b[h][n][0], 0.0f, fmaf(b[h][n][1], 0.0f, probe));
        }
    int first_bad = 16;
    if (__any_sync(0xffffffffu, probe != 0)) {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < EP / 8; n++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    if (!(fabsf(b[h][n][i]) <= FLT_MAX)) {
                        const int row = 8 * h + result_row(2 * t + i);
                        first_bad = row < first_bad ? row : first_bad;
                        b[h][n][i] = 0;
                    }
        for (int o = 16; o; o >>= 1) {
            const int other = __shfl_xor_sync(0xffffffffu, first_bad, o);
            first_bad = other < first_bad ? other : first_bad;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float a[4] = {operand<SPLIT>(w[h][0]), operand<SPLIT>(w[h][2]), operand<SPLIT>(w[h][1]), operand<SPLIT>(w[h][3])};
#pragma unroll
        for (int n = 0; n < EP / 8; n++) multiply<SPLIT>(y[n], a, b[h][n]);
    }
    if (first_bad < 16) {
#pragma unroll
        for (int n = 0; n < EP / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (g + 8 * (i >> 1) >= first_bad) y[n][i] = nanf("");
    }
}

template <int EP, int SPLIT, int CAUSAL>
__global__ void __launch_bounds__(EP == 32 ? LIN_GROUPS_HERE(FORWARD_GROUPS) * GROUP : 2 * GROUP) forward_rows(attention_job job)
{
    LIN_SHARED(float, shared);
    attention_place place;
    if (!attention_find(&place, job, blockIdx.y)) return;
    enum { group_floats = forward_sizes<EP, CAUSAL>::group_floats };
    const tile_walk walk = walk_of(place.rows, 0);
    const int who = (int)threadIdx.x % GROUP, warp = who / 32, lane = who % 32;
    // Under the causal mask the fourth part has four times the work of the first: rotate the parts over the schedulers.
    const int part = (warp + walk.group + (int)blockIdx.x) & 3;
    const size_t width = (size_t)job.H * (size_t)job.E, stride = 3 * width, head = (size_t)place.h * (size_t)job.E;
    const float *q = job.qkv + place.first * stride + head, *k = q + width, *v = k + width;
    float *const tiles = shared + walk.group * group_floats, *const own =
                                                                 tiles + 4 * sizes<EP>::tile + part * 16 * sizes<EP>::stride;
    float *const first_sums = shared + forward_sizes<EP, CAUSAL>::tiles * sizes<EP>::tile,
                 *const sums = first_sums + (CAUSAL ? walk.group * group_floats : 0);
    float *state = CAUSAL && !job.sums && job.states && job.states[place.b]
                       ? job.states[place.b] + job.at + (size_t)place.h * (size_t)((job.E + 1) * job.E)
                       : NULL;
    running_sums<EP> r;
    if (job.sums) {
        load_running<EP>(r, job.sums + (CAUSAL ? place.slot : place.first_slot) * sizes<EP>::sums);
    } else if (!CAUSAL) {
        const tile_source keys = {k, stride}, values = {v, stride}, none = {NULL, 0};
        sum_stretch<EP, SPLIT>(r, shared, shared, first_sums, group_floats, keys, values, none, 0, place.rows, job.E, job.wide);
    } else {
        load_state<EP>(r, state, job.E);
    }
    if (!CAUSAL) {
        spread_running<EP, SPLIT>(r, first_sums);
        __syncthreads();
    }

    for (int step = CAUSAL ? -1 : 0; step < walk.n_steps; step++) {
        float *const keys = tiles + (step & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
        float x[EP / 8][4], out[EP / 8][4], upper = 0, lower = 0;
        int n, n_next;
        const size_t tile = (size_t)walk_tile(walk, step, &n), next = (size_t)walk_tile(walk, step + 1, &n_next) * TILE * stride;
        const int mine = n - part * 16; // rows of this warp
        if (CAUSAL) sum_step<EP, SPLIT>(tiles, sums, walk, step, k, v, stride, job.E, job.wide);
        if (!CAUSAL) {
            if (mine <= 0) continue;
            fetch_own<EP>(x, q + (tile * TILE + (size_t)part * 16) * stride, stride, mine, job.E, job.wide, lane);
        } else if (step >= 0) {
            __syncwarp();
            load_own<EP>(x, own, lane);
            __syncwarp();
        }
        if (CAUSAL && step + 1 < walk.n_steps) {
            copy_rows<EP, 32, 16>(own, q + next + (size_t)part * 16 * stride, stride, n_next - part * 16, job.E, job.wide, lane);
            lin_copy_commit();
        }
        if (step < 0) continue;
        own_operands<EP, SPLIT, 1>(x);
        clear_rows<EP>(out);
        if (CAUSAL) {
            if (mine > 0) {
                float w[2][4];
                for (int j = 0; j < part; j++) {
                    multiply_rows<EP, SPLIT>(w, x, keys + j * 16 * sizes<EP>::stride, lane);
                    add_weights(upper, lower, w);
                    add_rows<EP, SPLIT>(out, w, values + j * 16 * sizes<EP>::stride, lane);
                }
                multiply_rows<EP, SPLIT>(w, x, keys + part * 16 * sizes<EP>::stride, lane);
                mask_diagonal<0>(w, lane);
                add_weights(upper, lower, w);
                add_diagonal<EP, SPLIT>(out, w, values + part * 16 * sizes<EP>::stride, lane);
            }
            __syncthreads();
            pass_sums<EP, SPLIT>(r, first_sums, group_floats);
            __syncthreads();
        }
        if (mine <= 0) continue;
        add_sums<EP, SPLIT>(out, x, sums, lane);
        add_dot<EP>(upper, lower, x, sums + EP * sizes<EP>::sum_stride, lane);
        upper = 1 / (quad_sum(upper) + LIN_ATTENTION_EPS);
        lower = 1 / (quad_sum(lower) + LIN_ATTENTION_EPS);
        store_result<EP>(job, (place.first + tile * TILE + (size_t)part * 16) * width + head, width, out, upper, lower, mine,
                         lane);
    }
    if (state) store_state<EP>(r, state, job.E);
}

template <int EP, int SPLIT, int CAUSAL>
static void launch_rows(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan)
{
    const size_t bytes = (size_t)plan.groups * forward_sizes<EP, CAUSAL>::group_floats * sizeof(float);
    LIN_ALLOW_SHARED(exec, (forward_rows<EP, SPLIT, CAUSAL>), bytes);
    LIN_LAUNCH(exec, (forward_rows<EP, SPLIT, CAUSAL>), dim3(plan.heads, (unsigned)plan.stretches), plan.groups * GROUP, bytes,
               job);
}

template <int EP, int SPLIT>
static void launch_rows_of(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, int causal)
{
    if (causal) launch_rows<EP, SPLIT, 1>(exec, job, plan);
    else launch_rows<EP, SPLIT, 0>(exec, job, plan);
}

/* ---- few rows of many streams ---------------------------------------------------------------------------------------------- */

enum { STEP_WARPS = 4, STEP_ROWS = 4, STEP_MOST = 16 };

// Lane m of a warp holds column m of S, read and written once: 4,224 bytes each way per (stream, head), which dominates the time.
// Rows are processed four at a time while the next four are loaded; phi of q and k goes to all lanes through shared memory.
__global__ void __launch_bounds__(STEP_WARPS * 32) forward_step(attention_job job, unsigned heads)
{
    LIN_SHARED(float, shared);
    const int lane = (int)threadIdx.x % 32, E = job.E;
    const unsigned pair = blockIdx.x * STEP_WARPS + threadIdx.x / 32;
    if (pair >= heads) return;
    const int b = (int)(pair / (unsigned)job.H), h = (int)(pair % (unsigned)job.H), first = job.offsets[b],
              n = job.offsets[b + 1] - first;
    float *state = job.states && job.states[b] ? job.states[b] + job.at + (size_t)h * (size_t)((E + 1) * E) : NULL;
    if (n == 0) return;
    const int in = lane < E;
    const size_t width = (size_t)job.H * (size_t)E;
    const float *x = job.qkv + (size_t)first * 3 * width + (size_t)h * (size_t)E + (in ? lane : 0);
    float *y = job.out + (size_t)first * width + (size_t)h * (size_t)E + lane;
    float s[32], z, q[STEP_ROWS], k[STEP_ROWS], v[STEP_ROWS];
#pragma unroll
    for (int e = 0; e < 32; e++) s[e] = state && in && e < E ? state[e * E + lane] : 0;
    z = state && in ? state[E * E + lane] : 0;
#pragma unroll
    for (int i = 0; i < STEP_ROWS; i++) {
        const float *row = x + (size_t)(i < n ? i : 0) * 3 * width;
        q[i] = row[0];
        k[i] = row[width];
        v[i] = row[2 * width];
    }
    float *const fq = shared + threadIdx.x / 32 * (2 * STEP_ROWS * 32), *const fk = fq + STEP_ROWS * 32;
    for (int at = 0; at < n; at += STEP_ROWS) {
        float value[STEP_ROWS], own_q[STEP_ROWS], own_k[STEP_ROWS];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < STEP_ROWS; i++) {
            value[i] = v[i];
            own_q[i] = in ? phi<1>(q[i]) : 0;
            own_k[i] = in ? phi<1>(k[i]) : 0;
            fq[i * 32 + lane] = own_q[i];
            fk[i * 32 + lane] = own_k[i];
        }
        __syncwarp();
        if (at + STEP_ROWS < n) {
#pragma unroll
            for (int i = 0; i < STEP_ROWS; i++) {
                const int next = at + STEP_ROWS + i;
                const float *row = x + (size_t)(next < n ? next : 0) * 3 * width;
                q[i] = row[0];
                k[i] = row[width];
                v[i] = row[2 * width];
            }
        }
#pragma unroll
        for (int i = 0; i < STEP_ROWS; i++) {
            if (at + i >= n) break;
            float sum[4] = {0, 0, 0, 0};
#pragma unroll
            for (int e = 0; e < 32; e += 4) {
                const float4 kk = *reinterpret_cast<const float4 *>(fk + i * 32 + e);
                const float4 qq = *reinterpret_cast<const float4 *>(fq + i * 32 + e);
                s[e] = fmaf(kk.x, value[i], s[e]);
                s[e + 1] = fmaf(kk.y, value[i], s[e + 1]);
                s[e + 2] = fmaf(kk.z, value[i], s[e + 2]);
                s[e + 3] = fmaf(kk.w, value[i], s[e + 3]);
                sum[0] = fmaf(qq.x, s[e], sum[0]);
                sum[1] = fmaf(qq.y, s[e + 1], sum[1]);
                sum[2] = fmaf(qq.z, s[e + 2], sum[2]);
                sum[3] = fmaf(qq.w, s[e + 3], sum[3]);
            }
            z += own_k[i];
            const float d = lin_warp_sum(own_q[i] * z) + LIN_ATTENTION_EPS;
            if (in) y[(size_t)(at + i) * width] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) / d;
        }
    }
    if (!state || !in) return;
#pragma unroll
    for (int e = 0; e < 32; e++)
        if (e < E) state[e * E + lane] = s[e];
    state[E * E + lane] = z;
}

/* ---- the operation --------------------------------------------------------------------------------------------------------- */

template <int EP> static size_t group_bytes(int causal)
{
    const size_t with_mask = forward_sizes<EP, 1>::group_floats, without = forward_sizes<EP, 0>::group_floats;
    return sizeof(float) * (causal ? with_mask : without);
}

// Returns 0 if narrow is requested and there are no tiles.
static int forward(lin_exec *exec, float *y, bf16 *narrow, const float *qkv, const lin_segments *segments, int H, int E,
                   int causal, float *const *states, size_t at)
{
    if (segments->B == 0 || segments->rows == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec)) return 1;
    attention_job job = {.qkv = qkv, .out = y, .narrow = narrow, .offsets = segments->offsets,
                         .states = causal ? states : NULL, .at = at, .H = H, .E = E, .stretch = INT_MAX,
                         .wide = (E == 32 || E == 64) && lin_cuda_aligned(y, qkv)};
    const unsigned heads = (unsigned)segments->B * (unsigned)H;
    if (causal && segments->longest <= STEP_MOST && E <= 32 && !narrow) {
        const size_t bytes = STEP_WARPS * 2 * STEP_ROWS * 32 * sizeof(float);
        LIN_LAUNCH(exec, forward_step, lin_cuda_blocks(heads, STEP_WARPS), STEP_WARPS * 32, bytes, job, heads);
        return 1;
    }
    const size_t group = E <= 32 ? group_bytes<32>(causal) : group_bytes<64>(causal);
    const lin_attention_plan plan = lin_attention_divide(exec, segments, H, E, group, E <= 32 ? FORWARD_GROUPS : 2);
    job.stretch = plan.stretch;
    if (plan.groups == 0) {
        if (narrow) return 0;
        lin_attention_forward_general(exec, job, segments, causal);
        return 1;
    }
    if (plan.stretches > 1) {
        job.sums = (float *)lin_cuda_scratch(exec, plan.slots * (size_t)((plan.EP + 1) * plan.EP) * sizeof(float));
        if (!job.sums) return 1;
        lin_attention_sum(exec, job, plan, 0);
        lin_attention_combine(exec, job, plan, causal ? ORDER_FORWARD : ORDER_TOTAL);
    }
    LIN_TILED(launch_rows_of, E, exec, job, plan, causal);
    return 1;
}

void lin_cuda_attention_forward(lin_exec *exec, float *y, const float *qkv, const lin_segments *segments, int H, int E,
                                int causal, float *const *states, size_t at)
{
    forward(exec, y, NULL, qkv, segments, H, E, causal, states, at);
}

int lin_attention_forward_narrow(lin_exec *exec, float *y, bf16 *narrow_y, const float *qkv, const lin_segments *segments, int H,
                                 int E, int causal)
{
    return forward(exec, y, narrow_y, qkv, segments, H, E, causal, NULL, 0);
}

/* ---- any width ------------------------------------------------------------------------------------------------------------- */

// Linear attention, with decays or without, for head widths without tiles (E > 64, or a GPU with too little shared memory): row
// after row, with the sums in global memory; correct for any E, but slow. A block processes one (utterance, head) after another;
// its threads own columns of the matrices, so that these need no barriers, and rows of q, k, v pass through shared memory.

enum { GENERAL_MOST = 256 }; // threads

// Element i of the head's row t of q (part 0), k (1) or v (2).
static __device__ __forceinline__ const float *row_of(const attention_job &job, const attention_place &p, int t, int part)
{
    return job.qkv + (((p.first + (size_t)t) * 3 + (size_t)part) * (size_t)job.H + (size_t)p.h) * (size_t)job.E;
}

static __device__ __forceinline__ size_t out_at(const attention_job &job, const attention_place &p, int t)
{
    return ((p.first + (size_t)t) * (size_t)job.H + (size_t)p.h) * (size_t)job.E;
}

static __device__ __forceinline__ int place_of(attention_place *p, const attention_job &job, unsigned pair)
{
    p->b = (int)(pair / (unsigned)job.H);
    p->h = (int)(pair % (unsigned)job.H);
    p->first = (size_t)job.offsets[p->b];
    p->rows = job.offsets[p->b + 1] - job.offsets[p->b];
    return p->rows > 0;
}

static __device__ __forceinline__ float dot(const float *a, const float *b, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++) sum = fmaf(a[i], b[i], sum);
    return sum;
}

// a = sigmoid(gate)^(1/16) of row t; 1 without gates.
static __device__ __forceinline__ float decay_of(const attention_job &job, const attention_place &p, int t)
{
    if (!job.gates) return 1;
    return sqrtf(sqrtf(sqrtf(sqrtf(1 / (1 + expf(-gate_of(job, p.first + (size_t)t, p.h)))))));
}

// matrices: E x E floats per block.
__global__ void __launch_bounds__(GENERAL_MOST) forward_general(attention_job job, unsigned heads, float *matrices, int causal)
{
    LIN_SHARED(float, q);
    const int E = job.E, step = (int)blockDim.x, tid = (int)threadIdx.x;
    const size_t wide = (size_t)E;
    float *k = q + E, *z = k + E, *S = matrices + (size_t)blockIdx.x * wide * wide;
    for (unsigned pair = blockIdx.x; pair < heads; pair += gridDim.x) {
        attention_place p;
        if (!place_of(&p, job, pair)) continue;
        float *state = job.states && job.states[p.b] ? job.states[p.b] + job.at + (size_t)p.h * (wide + 1) * wide : NULL;
        for (int m = tid; m < E; m += step) {
            for (int e = 0; e < E; e++) S[(size_t)e * wide + m] = state ? state[(size_t)e * wide + m] : 0;
            z[m] = state ? state[wide * wide + m] : 0;
        }
        for (int sweep = causal; sweep < 2; sweep++)
            for (int t = 0; t < p.rows; t++) {
                const float keep = decay_of(job, p, t);
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    if (causal || sweep == 0) z[e] = fmaf(z[e], keep, k[e]);
                }
                __syncthreads();
                const float d = dot(q, z, E) + LIN_ATTENTION_EPS;
                for (int m = tid; m < E; m += step) {
                    const float v = row_of(job, p, t, 2)[m];
                    float sum = 0;
                    for (int e = 0; e < E; e++) {
                        float *s = &S[(size_t)e * wide + m];
                        if (causal || sweep == 0) *s = fmaf(k[e], v, *s * keep);
                        if (sweep == 1) sum = fmaf(q[e], *s, sum);
                    }
                    if (sweep == 1) job.out[out_at(job, p, t) + m] = sum / d;
                }
                __syncthreads();
            }
        for (int m = tid; m < E && state; m += step) {
            for (int e = 0; e < E; e++) state[(size_t)e * wide + m] = S[(size_t)e * wide + m];
            state[wide * wide + m] = z[m];
        }
    }
}

// matrices: 2 x E x E floats per block.
__global__ void __launch_bounds__(GENERAL_MOST) backward_general(attention_job job, unsigned heads, float *matrices, int causal)
{
    LIN_SHARED(float, q);
    const int E = job.E, step = (int)blockDim.x, tid = (int)threadIdx.x;
    const size_t wide = (size_t)E;
    float *k = q + E, *v = k + E, *g = v + E, *y = g + E, *z = y + E;
    float *A = matrices + (size_t)blockIdx.x * 2 * wide * wide, *R = A + wide * wide; // A: Sᵀ, then Rᵀ
    for (unsigned pair = blockIdx.x; pair < heads; pair += gridDim.x) {
        attention_place p;
        if (!place_of(&p, job, pair)) continue;
        for (int i = tid; i < E; i += step) {
            for (int m = 0; m < E; m++) A[(size_t)m * wide + i] = 0;
            z[i] = 0;
        }
        for (int sweep = causal; sweep < 2; sweep++)
            for (int t = 0; t < p.rows; t++) {
                const float keep = decay_of(job, p, t);
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    v[e] = row_of(job, p, t, 2)[e];
                    g[e] = job.dy[out_at(job, p, t) + e];
                    y[e] = job.y[out_at(job, p, t) + e];
                    if (causal || sweep == 0) z[e] = fmaf(z[e], keep, k[e]);
                }
                __syncthreads();
                const float inverse = 1 / (dot(q, z, E) + LIN_ATTENTION_EPS), c = -dot(g, y, E);
                for (int e = tid; e < E; e += step) {
                    float sum = c * z[e];
                    for (int m = 0; m < E; m++) {
                        float *s = &A[(size_t)m * wide + e];
                        if (causal || sweep == 0) *s = fmaf(k[e], v[m], *s * keep);
                        sum = fmaf(g[m], *s, sum);
                    }
                    if (sweep == 1) job.out[(size_t)(row_of(job, p, t, 0) - job.qkv) + e] = sum * inverse * phi_slope(q[e]);
                }
                if (tid == 0 && sweep == 1) {
                    float *terms = job.terms + ((p.first + (size_t)t) * (size_t)job.H + (size_t)p.h) * 2;
                    terms[0] = inverse;
                    terms[1] = c * inverse;
                }
                __syncthreads();
            }
        for (int i = tid; i < E; i += step) {
            for (int m = 0; m < E; m++) A[(size_t)m * wide + i] = R[(size_t)m * wide + i] = 0;
            z[i] = 0;
        }
        for (int sweep = causal; sweep < 2; sweep++)
            for (int t = p.rows - 1; t >= 0; t--) {
                const float *terms = job.terms + ((p.first + (size_t)t) * (size_t)job.H + (size_t)p.h) * 2;
                const float keep = t + 1 < p.rows ? decay_of(job, p, t + 1) : 1;
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    v[e] = row_of(job, p, t, 2)[e];
                    g[e] = job.dy[out_at(job, p, t) + e] * terms[0];
                    if (causal || sweep == 0) z[e] = fmaf(terms[1], q[e], z[e] * keep);
                }
                __syncthreads();
                for (int i = tid; i < E; i += step) {
                    float dk = z[i], dv = 0;
                    for (int j = 0; j < E; j++) {
                        float *a = &A[(size_t)j * wide + i], *r = &R[(size_t)j * wide + i];
                        if (causal || sweep == 0) {
                            *a = fmaf(q[i], g[j], *a * keep);
                            *r = fmaf(q[j], g[i], *r * keep);
                        }
                        dk = fmaf(v[j], *a, dk);
                        dv = fmaf(k[j], *r, dv);
                    }
                    if (sweep == 1) {
                        job.out[(size_t)(row_of(job, p, t, 1) - job.qkv) + i] = dk * phi_slope(k[i]);
                        job.out[(size_t)(row_of(job, p, t, 2) - job.qkv) + i] = dv;
                    }
                }
                __syncthreads();
            }
    }
}

// A warp for each (utterance, head), after backward_general. d log a_i = -sum_{t>=i} (eps c_t + φ(k_t) . dφ(k_t)), and
// φ dφ = dk max(φ, 1), because dk = dφ min(φ, 1).
__global__ void __launch_bounds__(32) gates_general(attention_job job)
{
    const int lane = (int)threadIdx.x;
    attention_place p;
    double future = 0;
    if (!place_of(&p, job, blockIdx.x)) return;
    for (int t = p.rows - 1; t >= 0; t--) {
        const size_t pair = (p.first + (size_t)t) * (size_t)job.H + (size_t)p.h;
        const float *k = row_of(job, p, t, 1), *dk = job.out + (k - job.qkv);
        float sum = 0;
        for (int e = lane; e < job.E; e += 32) sum = fmaf(fmaxf(phi<1>(k[e]), 1.0f), dk[e], sum);
        future -= (double)lin_warp_sum(sum) + 1e-6 * (double)job.terms[2 * pair + 1];
        const float odds = expf(-gate_of(job, p.first + (size_t)t, p.h));
        if (lane == 0) job.dgates[pair] = (float)((double)(odds / (1 + odds)) * future / 16);
    }
}

static unsigned general_blocks(const lin_exec *exec, const lin_segments *segments, int H)
{
    const unsigned heads = (unsigned)segments->B * (unsigned)H, most = 2 * (unsigned)exec->multiprocessors;
    return heads < most ? heads : most;
}

static int general_threads(int E) { return E < GENERAL_MOST ? (E + 31) / 32 * 32 : GENERAL_MOST; }

void lin_attention_forward_general(lin_exec *exec, const attention_job &job, const lin_segments *segments, int causal)
{
    const unsigned blocks = general_blocks(exec, segments, job.H);
    const size_t matrix = (size_t)job.E * (size_t)job.E, row = (size_t)job.E * sizeof(float);
    float *matrices = (float *)lin_cuda_scratch(exec, blocks * matrix * sizeof(float));
    if (!matrices) return;
    LIN_LAUNCH(exec, forward_general, blocks, general_threads(job.E), 3 * row, job, (unsigned)segments->B * (unsigned)job.H,
               matrices, causal != 0);
}

void lin_attention_backward_general(lin_exec *exec, const attention_job &job, const lin_segments *segments, int causal)
{
    const unsigned blocks = general_blocks(exec, segments, job.H);
    const size_t matrix = (size_t)job.E * (size_t)job.E, row = (size_t)job.E * sizeof(float);
    const size_t terms = (size_t)segments->rows * (size_t)job.H * 2;
    attention_job with_terms = job;
    float *matrices = (float *)lin_cuda_scratch(exec, (blocks * 2 * matrix + terms) * sizeof(float));
    if (!matrices) return;
    with_terms.terms = matrices + blocks * 2 * matrix;
    const unsigned heads = (unsigned)segments->B * (unsigned)job.H;
    LIN_LAUNCH(exec, backward_general, blocks, general_threads(job.E), 6 * row, with_terms, heads, matrices, causal != 0);
    if (job.dgates) LIN_LAUNCH(exec, gates_general, heads, 32, 0, with_terms);
}
