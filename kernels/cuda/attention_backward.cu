// Linear attention, backward (Katharopoulos et al. 2020, eq. 13-15 and Algorithm 1). The forward keeps nothing but its inputs and
// y. With d_i the denominator, G'_i = dy_i / d_i and c_i = -(dy_i . y_i) / d_i, and j <= i under the causal mask:
//   dphi(q_i) = sum_j (G'_i . v_j + c_i) phi(k_j)           a scan over the rows with sums (S, z), as in the forward
//   dphi(k_j) = sum_i (G'_i . v_j + c_i) phi(q_i)           and a reverse scan with R = sum phi(q_i) G'_iᵀ and
//   dv_j      = sum_i (phi(q_i) . phi(k_j)) G'_i            r = sum c_i phi(q_i)
// attention.h describes the division into tiles. The first scan stores 1/d_i and c_i for the second.
#include "kernels/cuda/attention.h"

/* ---- gradients of queries -------------------------------------------------------------------------------------------------- */

// Tiles of keys and values, twice; with the causal mask the own rows of queries, dy and y.
template <int EP, int CAUSAL> struct query_sizes {
    enum { tiles = CAUSAL ? 7 : 4, group_floats = tiles * sizes<EP>::tile + sizes<EP>::sum_tile };
};

// A lane's part of minus a . b, for its upper and its lower row.
template <int EP>
static __device__ __forceinline__ void subtract_dot(float &upper, float &lower, const float (&a)[EP / 8][4],
                                                    const float (&b)[EP / 8][4])
{
#pragma unroll
    for (int s = 0; s < EP / 8; s++) {
        upper = fmaf(-a[s][2], b[s][2], fmaf(-a[s][0], b[s][0], upper));
        lower = fmaf(-a[s][3], b[s][3], fmaf(-a[s][1], b[s][1], lower));
    }
}

// out += upper z, lower z.
template <int EP>
static __device__ __forceinline__ void add_scaled(float (&out)[EP / 8][4], float upper, float lower, const float *z, int lane)
{
#pragma unroll
    for (int n = 0; n < EP / 8; n++) {
        const float2 x = *reinterpret_cast<const float2 *>(z + 8 * n + 2 * (lane & 3));
        out[n][0] = fmaf(upper, x.x, out[n][0]);
        out[n][1] = fmaf(upper, x.y, out[n][1]);
        out[n][2] = fmaf(lower, x.x, out[n][2]);
        out[n][3] = fmaf(lower, x.y, out[n][3]);
    }
}

// Turns gradients with respect to phi(x) into gradients with respect to x; phi_x is a left operand, whose elements a lane holds
// in another order.
template <int EP> static __device__ __forceinline__ void times_slope(float (&out)[EP / 8][4], const float (&phi_x)[EP / 8][4])
{
#pragma unroll
    for (int n = 0; n < EP / 8; n++) {
        out[n][0] *= phi_slope(phi_x[n][0]);
        out[n][1] *= phi_slope(phi_x[n][2]);
        out[n][2] *= phi_slope(phi_x[n][1]);
        out[n][3] *= phi_slope(phi_x[n][3]);
    }
}

template <int EP, int SPLIT, int CAUSAL>
__global__ void __launch_bounds__(EP == 32 ? LIN_GROUPS_HERE(BACKWARD_GROUPS) * GROUP : GROUP) backward_queries(attention_job job)
{
    LIN_SHARED(float, shared);
    attention_place place;
    if (!attention_find(&place, job, blockIdx.y)) return;
    enum { group_floats = query_sizes<EP, CAUSAL>::group_floats, own_stride = 16 * sizes<EP>::stride };
    const tile_walk walk = walk_of(place.rows, 0);
    const int who = (int)threadIdx.x % GROUP, warp = who / 32, lane = who % 32;
    const int part = (warp + walk.group + (int)blockIdx.x) & 3;
    const size_t width = (size_t)job.H * (size_t)job.E, stride = 3 * width, head = (size_t)place.h * (size_t)job.E;
    const float *q = job.qkv + place.first * stride + head, *k = q + width, *v = k + width;
    const float *dy = job.dy + place.first * width + head, *y = job.y + place.first * width + head;
    float *const tiles = shared + walk.group * group_floats, *const own = tiles + 4 * sizes<EP>::tile + 3 * part * own_stride;
    float *const first_sums = shared + query_sizes<EP, CAUSAL>::tiles * sizes<EP>::tile,
                 *const sums = first_sums + (CAUSAL ? walk.group * group_floats : 0);
    running_sums<EP> r;
    if (job.sums) {
        load_running<EP>(r, job.sums + (CAUSAL ? place.slot : place.first_slot) * sizes<EP>::sums);
    } else if (!CAUSAL) {
        const tile_source keys = {k, stride}, values = {v, stride}, none = {NULL, 0};
        sum_stretch<EP, SPLIT>(r, shared, shared, first_sums, group_floats, keys, values, none, 0, place.rows, job.E, job.wide);
    } else {
        clear_running<EP>(r);
    }
    if (!CAUSAL) {
        spread_running<EP, SPLIT>(r, first_sums);
        __syncthreads();
    }
    for (int step = CAUSAL ? -1 : 0; step < walk.n_steps; step++) {
        float *const keys = tiles + (step & 1) * 2 * sizes<EP>::tile, *const values = keys + sizes<EP>::tile;
        float x[EP / 8][4], g[EP / 8][4], out[EP / 8][4], upper = 0, lower = 0, c_upper = 0, c_lower = 0;
        int n, n_next;
        const size_t tile = (size_t)walk_tile(walk, step, &n) * TILE, next = (size_t)walk_tile(walk, step + 1, &n_next) * TILE;
        const int mine = n - part * 16;
        if (CAUSAL) sum_step<EP, SPLIT>(tiles, sums, walk, step, k, v, stride, job.E, job.wide);
        if (!CAUSAL) {
            if (mine <= 0) continue;
            const size_t row = tile + (size_t)part * 16;
            fetch_own<EP>(x, q + row * stride, stride, mine, job.E, job.wide, lane);
            fetch_own<EP>(g, dy + row * width, width, mine, job.E, job.wide, lane);
            fetch_own<EP>(out, y + row * width, width, mine, job.E, job.wide, lane);
        } else if (step >= 0) {
            __syncwarp();
            load_own<EP>(x, own, lane);
            load_own<EP>(g, own + own_stride, lane);
            load_own<EP>(out, own + 2 * own_stride, lane);
        }
        if (step >= 0) {
            own_operands<EP, SPLIT, 1>(x);
            own_operands<EP, SPLIT, 0>(g);
            subtract_dot<EP>(c_upper, c_lower, g, out); // with the same rounded dy that multiplies v: the two nearly cancel
            if (CAUSAL) __syncwarp();
        }
        if (CAUSAL && step + 1 < walk.n_steps) {
            const size_t row = next + (size_t)part * 16;
            const int n_own = n_next - part * 16;
            copy_rows<EP, 32, 16>(own, q + row * stride, stride, n_own, job.E, job.wide, lane);
            copy_rows<EP, 32, 16>(own + own_stride, dy + row * width, width, n_own, job.E, job.wide, lane);
            copy_rows<EP, 32, 16>(own + 2 * own_stride, y + row * width, width, n_own, job.E, job.wide, lane);
            lin_copy_commit();
        }
        if (step < 0) continue;
        c_upper = quad_sum(c_upper);
        c_lower = quad_sum(c_lower);
        clear_rows<EP>(out);
        if (CAUSAL) {
            for (int j = 0; j <= part && mine > 0; j++) {
                const float *key_rows = keys + j * own_stride, *value_rows = values + j * own_stride;
                float w[2][4];
                multiply_rows<EP, SPLIT>(w, x, key_rows, lane);
                if (j == part) mask_diagonal<0>(w, lane);
                add_weights(upper, lower, w);
                multiply_rows<EP, SPLIT>(w, g, value_rows, lane);
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int i = 0; i < 4; i++) w[h][i] += i < 2 ? c_upper : c_lower;
                if (j == part) mask_diagonal<0>(w, lane);
                add_rows<EP, SPLIT>(out, w, key_rows, lane);
            }
            __syncthreads();
            pass_sums<EP, SPLIT>(r, first_sums, group_floats);
            __syncthreads();
        }
        if (mine <= 0) continue;
        const float *z = sums + EP * sizes<EP>::sum_stride;
        add_sums_transposed<EP, SPLIT>(out, g, sums, lane);
        add_scaled<EP>(out, c_upper, c_lower, z, lane);
        add_dot<EP>(upper, lower, x, z, lane);
        upper = 1 / (quad_sum(upper) + LIN_ATTENTION_EPS);
        lower = 1 / (quad_sum(lower) + LIN_ATTENTION_EPS);
        times_slope<EP>(out, x);
        const size_t first = place.first + tile + (size_t)part * 16;
        store_result<EP>(job, first * stride + head, stride, out, upper, lower, mine, lane);
        if ((lane & 3) < 2) { // lanes 0 of a quad write the upper rows' terms, lanes 1 the lower rows'
            const int row = (lane >> 2) + 8 * (lane & 1);
            float *terms = job.terms + ((first + (size_t)row) * (size_t)job.H + (size_t)place.h) * 2;
            if (row < mine) {
                terms[0] = lane & 1 ? lower : upper;
                terms[1] = lane & 1 ? lower * c_lower : upper * c_upper;
            }
        }
    }
}

/* ---- gradients of keys and values ------------------------------------------------------------------------------------------ */

// Tiles of queries and G', twice; with the causal mask own rows of keys and values; 1/d and c, twice.
template <int EP, int CAUSAL> struct key_sizes {
    enum { tiles = CAUSAL ? 6 : 4, group_floats = tiles * sizes<EP>::tile + sizes<EP>::sum_tile + 4 * TILE };
};

template <int EP, int SPLIT, int CAUSAL>
__global__ void __launch_bounds__(EP == 32 ? LIN_GROUPS_HERE(BACKWARD_GROUPS) * GROUP : GROUP,
                                  EP == 32 && !SPLIT && !CAUSAL ? LIN_BLOCKS_HERE : 1) backward_keys(attention_job job)
{
    LIN_SHARED(float, shared);
    attention_place place;
    if (!attention_find(&place, job, blockIdx.y)) return;
    enum { group_floats = key_sizes<EP, CAUSAL>::group_floats, own_stride = 16 * sizes<EP>::stride };
    const tile_walk walk = walk_of(place.rows, 1);
    const int who = (int)threadIdx.x % GROUP, warp = who / 32, lane = who % 32;
    const int part = (warp + walk.group + (int)blockIdx.x) & 3;
    const size_t width = (size_t)job.H * (size_t)job.E, stride = 3 * width, head = (size_t)place.h * (size_t)job.E;
    const float *q = job.qkv + place.first * stride + head, *k = q + width, *v = k + width,
                *dy = job.dy + place.first * width + head;
    const tile_source terms = {job.terms + (place.first * (size_t)job.H + (size_t)place.h) * 2, 2 * (size_t)job.H};
    float *const tiles = shared + walk.group * group_floats, *const own = tiles + 4 * sizes<EP>::tile + 2 * part * own_stride;
    float *const first_sums = shared + key_sizes<EP, CAUSAL>::tiles * sizes<EP>::tile,
                 *const sums = first_sums + (CAUSAL ? walk.group * group_floats : 0);
    float *const first_scales = first_sums + sizes<EP>::sum_tile, *const scales = first_scales + walk.group * group_floats;
    running_sums<EP> r;
    if (job.sums) {
        load_running<EP>(r, job.sums + (CAUSAL ? place.slot : place.first_slot) * sizes<EP>::sums);
    } else if (!CAUSAL) {
        const tile_source queries = {q, stride}, gradients = {dy, width};
        sum_stretch<EP, SPLIT>(r, shared, first_scales, first_sums, group_floats, queries, gradients, terms, 0, place.rows, job.E,
                               job.wide);
    } else {
        clear_running<EP>(r);
    }
    if (!CAUSAL) {
        spread_running<EP, SPLIT>(r, first_sums);
        __syncthreads();
    }
    for (int step = CAUSAL ? -1 : 0; step < walk.n_steps; step++) {
        float *const queries = tiles + (step & 1) * 2 * sizes<EP>::tile, *const gradients = queries + sizes<EP>::tile;
        float *const scale = scales + (step & 1) * 2 * TILE;
        float x[EP / 8][4], u[EP / 8][4], dk[EP / 8][4], dv[EP / 8][4];
        int n, n_next;
        const size_t tile = (size_t)walk_tile(walk, step, &n) * TILE, next = (size_t)walk_tile(walk, step + 1, &n_next) * TILE;
        const int mine = n - part * 16;
        if (CAUSAL && step >= 0) lin_copy_wait<0>();
        if (CAUSAL) {
            if (step >= 0) __syncthreads();
            if (step + 1 < walk.n_steps) {
                float *to = tiles + ((step + 1) & 1) * 2 * sizes<EP>::tile;
                copy_rows<EP, GROUP, TILE>(to, q + next * stride, stride, n_next, job.E, job.wide, who);
                copy_rows<EP, GROUP, TILE>(to + sizes<EP>::tile, dy + next * width, width, n_next, job.E, job.wide, who);
                copy_terms(scales + ((step + 1) & 1) * 2 * TILE, terms.rows + next * terms.stride, terms.stride, n_next, who);
            }
            if (step >= 0) {
                partial_sums<EP> p;
                clear_sums<EP>(p);
                tile_phi<EP, SPLIT>(queries, n, job.E, who);
                tile_operands<EP, SPLIT>(gradients, scale, who);
                __syncthreads();
                sum_tile<EP, SPLIT>(p, queries, gradients, scale + TILE, warp, lane);
                publish_sums<EP>(sums, p, warp, lane);
            }
        }
        if (!CAUSAL) {
            if (mine <= 0) continue;
            const size_t row = tile + (size_t)part * 16;
            fetch_own<EP>(x, k + row * stride, stride, mine, job.E, job.wide, lane);
            fetch_own<EP>(u, v + row * stride, stride, mine, job.E, job.wide, lane);
            own_operands<EP, SPLIT, 1>(x);
            own_operands<EP, SPLIT, 0>(u);
        } else if (step >= 0) {
            __syncwarp();
            load_own<EP>(x, own, lane);
            load_own<EP>(u, own + own_stride, lane);
            own_operands<EP, SPLIT, 1>(x);
            own_operands<EP, SPLIT, 0>(u);
            __syncwarp();
        }
        if (CAUSAL && step + 1 < walk.n_steps) {
            const size_t row = next + (size_t)part * 16;
            const int n_own = n_next - part * 16;
            copy_rows<EP, 32, 16>(own, k + row * stride, stride, n_own, job.E, job.wide, lane);
            copy_rows<EP, 32, 16>(own + own_stride, v + row * stride, stride, n_own, job.E, job.wide, lane);
            lin_copy_commit();
        }
        if (step < 0) continue;
        clear_rows<EP>(dk);
        clear_rows<EP>(dv);
        if (CAUSAL) {
            for (int j = part; j < TILE / 16 && j * 16 < n; j++) {
                const float *query_rows = queries + j * own_stride, *gradient_rows = gradients + j * own_stride;
                const float *c = scale + TILE + j * 16;
                float w[2][4];
                multiply_rows<EP, SPLIT>(w, x, query_rows, lane);
                if (j == part) mask_diagonal<1>(w, lane);
                add_rows<EP, SPLIT>(dv, w, gradient_rows, lane);
                multiply_rows<EP, SPLIT>(w, u, gradient_rows, lane);
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int i = 0; i < 4; i++) w[h][i] += c[8 * h + result_row(2 * (lane & 3) + (i & 1))];
                if (j == part) mask_diagonal<1>(w, lane);
                add_rows<EP, SPLIT>(dk, w, query_rows, lane);
            }
            __syncthreads();
            pass_sums<EP, SPLIT>(r, first_sums, group_floats);
            __syncthreads();
        }
        if (mine <= 0) continue;
        add_sums<EP, SPLIT>(dv, x, sums, lane);
        add_sums_transposed<EP, SPLIT>(dk, u, sums, lane);
        add_scaled<EP>(dk, 1, 1, sums + EP * sizes<EP>::sum_stride, lane);
        times_slope<EP>(dk, x);
        const size_t to = (place.first + tile + (size_t)part * 16) * stride + head;
        store_result<EP>(job, to + width, stride, dk, 1, 1, mine, lane);
        store_result<EP>(job, to + 2 * width, stride, dv, 1, 1, mine, lane);
    }
}

/* ---- the operation --------------------------------------------------------------------------------------------------------- */

template <int EP, int SPLIT, int CAUSAL>
static void run_backward(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan)
{
    const size_t groups = (size_t)plan.groups * sizeof(float), queries = groups * query_sizes<EP, CAUSAL>::group_floats,
                 keys = groups * key_sizes<EP, CAUSAL>::group_floats;
    const dim3 grid(plan.heads, (unsigned)plan.stretches);
    if (job.sums) {
        lin_attention_sum(exec, job, plan, 0);
        lin_attention_combine(exec, job, plan, CAUSAL ? ORDER_FORWARD : ORDER_TOTAL);
    }
    LIN_ALLOW_SHARED(exec, (backward_queries<EP, SPLIT, CAUSAL>), queries);
    LIN_LAUNCH(exec, (backward_queries<EP, SPLIT, CAUSAL>), grid, plan.groups * GROUP, queries, job);
    if (job.sums) {
        lin_attention_sum(exec, job, plan, 1);
        lin_attention_combine(exec, job, plan, CAUSAL ? ORDER_REVERSE : ORDER_TOTAL);
    }
    LIN_ALLOW_SHARED(exec, (backward_keys<EP, SPLIT, CAUSAL>), keys);
    LIN_LAUNCH(exec, (backward_keys<EP, SPLIT, CAUSAL>), grid, plan.groups * GROUP, keys, job);
}

template <int EP, int SPLIT>
static void run_backward_of(lin_exec *exec, const attention_job &job, const lin_attention_plan &plan, int causal)
{
    if (causal) run_backward<EP, SPLIT, 1>(exec, job, plan);
    else run_backward<EP, SPLIT, 0>(exec, job, plan);
}

// Shared memory of a group, of the kernel that needs more.
template <int EP> static size_t group_bytes(int causal)
{
    const size_t with_mask = query_sizes<EP, 1>::group_floats, without = key_sizes<EP, 0>::group_floats;
    return sizeof(float) * (causal ? with_mask : without);
}

// dqkv or narrow is NULL. Returns 0 if narrow is requested and there are no tiles.
static int backward(lin_exec *exec, float *dqkv, bf16 *narrow, const float *dy, const float *qkv, const float *y,
                    const lin_segments *segments, int H, int E, int causal)
{
    if (segments->B == 0 || segments->rows == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec)) return 1;
    attention_job job = {.qkv = qkv, .y = y, .dy = dy, .out = dqkv, .narrow = narrow, .offsets = segments->offsets, .H = H,
                         .E = E, .wide = (E == 32 || E == 64) && lin_cuda_aligned(dqkv, dy, qkv, y)};
    const size_t group = E <= 32 ? group_bytes<32>(causal) : group_bytes<64>(causal);
    const lin_attention_plan plan = lin_attention_divide(exec, segments, H, E, group, E <= 32 ? BACKWARD_GROUPS : 1);
    job.stretch = plan.stretch;
    if (plan.groups == 0) {
        if (narrow) return 0;
        lin_attention_backward_general(exec, job, segments, causal);
        return 1;
    }
    const size_t terms = (size_t)segments->rows * (size_t)H * 2, sums = plan.slots * (size_t)((plan.EP + 1) * plan.EP);
    float *scratch = (float *)lin_cuda_scratch(exec, (sums + terms) * sizeof(float));
    if (!scratch) return 1;
    if (sums > 0) job.sums = scratch;
    job.terms = scratch + sums;
    LIN_TILED(run_backward_of, E, exec, job, plan, causal);
    return 1;
}

void lin_cuda_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *y,
                                 const lin_segments *segments, int H, int E, int causal)
{
    backward(exec, dqkv, NULL, dy, qkv, y, segments, H, E, causal);
}

int lin_attention_backward_narrow(lin_exec *exec, bf16 *dqkv, const float *dy, const float *qkv, const float *y,
                                  const lin_segments *segments, int H, int E, int causal)
{
    return backward(exec, NULL, dqkv, dy, qkv, y, segments, H, E, causal);
}

/* ---- the attention block in training --------------------------------------------------------------------------------------- */

// The products around linear attention, and attention itself. Operands of the products are written as bf16 once, where they are
// computed, and used for the gradients of the weights too; the gradient of q, k and v, three times as wide as the rest, is stored
// as bf16 only.
//
//   operands  x [rows, C], y [rows, C]      d_qkv  dy [rows, C], dqkv [rows, 3C]
// A norm may have written x or dy (`operand` of ops.h).

void lin_cuda_attention_block_forward(lin_exec *exec, float *out, float *qkv, float *y, float *operands, const float *x,
                                      const float *wqkv, const float *bqkv, const float *wout, const float *bout,
                                      const lin_segments *segments, int H, int E, int causal)
{
    const int rows = segments->rows, C = H * E;
    bf16 *narrow_x = reinterpret_cast<bf16 *>(operands), *narrow_y = narrow_x + (size_t)rows * (size_t)C;
    if (rows == 0) return;
    if (x) lin_cuda_narrow(exec, narrow_x, x, rows, C);
    lin_cuda_narrow_forward(exec, qkv, narrow_x, wqkv, bqkv, rows, 3 * C, C, 0);
    if (!lin_attention_forward_narrow(exec, y, narrow_y, qkv, segments, H, E, causal)) {
        lin_cuda_attention_forward(exec, y, qkv, segments, H, E, causal, NULL, 0);
        lin_cuda_narrow(exec, narrow_y, y, rows, C);
    }
    lin_cuda_narrow_forward(exec, out, narrow_y, wout, bout, rows, C, C, 0);
}

void lin_cuda_attention_block_backward(lin_exec *exec, float *dx, float *dwqkv, float *dbqkv, float *dwout, const float *dy,
                                       const float *x, const float *qkv, const float *y, const float *operands, float *d_qkv,
                                       const float *wqkv, const float *wout, const lin_segments *segments, int H, int E,
                                       int causal)
{
    const int rows = segments->rows, C = H * E;
    const size_t count = (size_t)rows * (size_t)C;
    const bf16 *narrow_x = reinterpret_cast<const bf16 *>(operands);
    bf16 *narrow_dy = reinterpret_cast<bf16 *>(d_qkv), *dqkv = narrow_dy + count;
    if (rows == 0) return;
    if (dy) lin_cuda_narrow(exec, narrow_dy, dy, rows, C);
    lin_cuda_narrow_backward_weight(exec, dwout, NULL, narrow_dy, narrow_x + count, rows, C, C);
    lin_cuda_narrow_forward(exec, dx, narrow_dy, wout, NULL, rows, C, C, 0); // dx is the gradient of y at first
    if (lin_attention_backward_narrow(exec, dqkv, dx, qkv, y, segments, H, E, causal)) {
        lin_cuda_narrow_backward_weight(exec, dwqkv, dbqkv, dqkv, narrow_x, rows, 3 * C, C);
        lin_cuda_narrow_forward(exec, dx, dqkv, wqkv, NULL, rows, C, 3 * C, 0);
    } else {
        lin_cuda_attention_backward(exec, d_qkv, dx, qkv, y, segments, H, E, causal);
        lin_cuda_linear_backward_weight(exec, dwqkv, dbqkv, d_qkv, x, rows, 3 * C, C);
        lin_cuda_linear_forward(exec, dx, d_qkv, wqkv, NULL, rows, C, 3 * C, LIN_LINEAR);
    }
}
