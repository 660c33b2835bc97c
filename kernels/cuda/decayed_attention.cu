// Linear attention that forgets (kernels/ops.h) for heads up to 256 wide, row after row; decayed_chunks.cu has those up to
// 64. The sums of one (utterance, head) are divided by columns; a block has 32 of them, one for each lane, and its 8 warps divide
// the rows of the matrix, which stays in registers. Rows come in chunks through shared memory, and after each chunk the warps'
// parts of its results are added, in order.
//
// All passes are one scan, M = a M + x wᵀ, then out = Mᵀ r, with the vectors x, w, r of each row, and G_i = dy_i / den_i,
// g_i = -(dy_i . y_i) / den_i (kernels/cpu/attention.c):
//   y         φ(k), v, φ(q)      divided by the denominator
//   dφ(q)     v, φ(k), G         + z g
//   dφ(k)     G, φ(q), v         + r; from the last row to the first, with the decay of the row after; r = a r + φ(q) g
//   dv        φ(q), G, φ(k)      likewise
// One warp for each (utterance, head) computes denominators first, with the sums z of keys; another one the gates' gradients at
// the end.
#include "kernels/cuda/decayed.h"

enum { COLUMNS = 32, WARPS = 8, CHUNK = 8, MOST_WIDTH = 256, MOST_EACH = MOST_WIDTH / 32, EACH = MOST_WIDTH / WARPS };

typedef enum decayed_pass { PASS_Y, PASS_QUERIES, PASS_KEYS, PASS_VALUES } decayed_pass;

// a = sigmoid(gate)^(1/16); 1 from a gate of about 17 on.
static __device__ __forceinline__ float decay_of(const decayed_job &job, size_t row, int h)
{
    return sqrtf(sqrtf(sqrtf(sqrtf(1 / (1 + expf(-gate_of(job, row, h)))))));
}

// terms of all rows; in a backward pass (dy not NULL) both, else the first only. Lane l has the elements l, l + 32, ... of z.
__global__ void __launch_bounds__(32) decayed_terms(decayed_job job)
{
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, lane = (int)threadIdx.x, E = job.E;
    const int first = job.offsets[b], rows = job.offsets[b + 1] - first;
    float *state = job.dy ? NULL : state_of(job, b, h), *sums = state ? state + (size_t)E * (size_t)E : NULL, z[MOST_EACH];
    if (rows <= 0) return;
#pragma unroll
    for (int i = 0; i < MOST_EACH; i++) z[i] = sums && lane + 32 * i < E ? sums[lane + 32 * i] : 0;
    for (int t = 0; t < rows; t++) {
        const size_t row = (size_t)(first + t), pair = row * (size_t)job.H + (size_t)h, width = (size_t)job.H * (size_t)E;
        const float *q = job.qkv + row * 3 * width + (size_t)h * (size_t)E, *k = q + width, a = decay_of(job, row, h);
        float den = 0, c = 0;
#pragma unroll
        for (int i = 0; i < MOST_EACH; i++) {
            const int e = lane + 32 * i;
            if (e >= E) break;
            z[i] = fmaf(z[i], a, phi<1>(k[e]));
            den = fmaf(phi<1>(q[e]), z[i], den);
            if (job.dy) c = fmaf(-job.dy[pair * (size_t)E + (size_t)e], job.y[pair * (size_t)E + (size_t)e], c);
        }
        den = lin_warp_sum(den);
        c = lin_warp_sum(c);
        if (lane != 0) continue;
        job.terms[2 * pair] = 1 / (den + LIN_ATTENTION_EPS);
        job.terms[2 * pair + 1] = c * job.terms[2 * pair];
    }
#pragma unroll
    for (int i = 0; i < MOST_EACH; i++)
        if (sums && lane + 32 * i < E) sums[lane + 32 * i] = z[i];
}

// Shared memory: x and r [CHUNK, E], w [CHUNK, COLUMNS], the parts of the results [WARPS, CHUNK, COLUMNS], and of each row a, 1 /
// den, g.
typedef struct decayed_shared {
    float *x, *r, *w, *parts, *decay, *inverse, *g;
} decayed_shared;

static __host__ __device__ __forceinline__ size_t decayed_floats(int E)
{
    return (size_t)(2 * CHUNK * E + CHUNK * COLUMNS + WARPS * CHUNK * COLUMNS + 3 * CHUNK);
}

static __device__ __forceinline__ decayed_shared decayed_divide(float *at, int E)
{
    decayed_shared s;
    s.x = at;
    s.r = s.x + CHUNK * E;
    s.w = s.r + CHUNK * E;
    s.parts = s.w + CHUNK * COLUMNS;
    s.decay = s.parts + WARPS * CHUNK * COLUMNS;
    s.inverse = s.decay + CHUNK;
    s.g = s.inverse + CHUNK;
    return s;
}

// Each warp loads a row of the chunk, whose n rows begin at row t of the utterance and go on in its direction.
template <decayed_pass PASS>
static __device__ __forceinline__ void load_chunk(const decayed_shared &s, const decayed_job &job, int first, int rows, int h,
                                                  int t, int n, int column)
{
    const int f = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, E = job.E,
              reverse = PASS == PASS_KEYS || PASS == PASS_VALUES;
    if (f >= n) return;
    const int at = reverse ? t - f : t + f;
    const size_t row = (size_t)(first + at), width = (size_t)job.H * (size_t)E, pair = row * (size_t)job.H + (size_t)h;
    const float *q = job.qkv + row * 3 * width + (size_t)h * (size_t)E, *k = q + width, *v = k + width;
    const float *dy = PASS == PASS_Y ? NULL : job.dy + pair * (size_t)E, inverse = job.terms[2 * pair];
    for (int e = lane; e < E; e += 32) {
        s.x[f * E + e] = PASS == PASS_Y ? phi<1>(k[e]) : PASS == PASS_QUERIES ? v[e] : PASS == PASS_KEYS ? dy[e] * inverse
            : phi<1>(q[e]);
        s.r[f * E + e] = PASS == PASS_Y ? phi<1>(q[e]) : PASS == PASS_QUERIES ? dy[e] * inverse : PASS == PASS_KEYS ? v[e]
            : phi<1>(k[e]);
    }
    const int c = column + lane;
    s.w[f * COLUMNS + lane] = c >= E                 ? 0
                              : PASS == PASS_Y       ? v[c]
                              : PASS == PASS_QUERIES ? phi<1>(k[c])
                              : PASS == PASS_KEYS    ? phi<1>(q[c])
                                                     : dy[c] * inverse;
    if (lane != 0) return;
    s.decay[f] = !reverse ? decay_of(job, row, h) : at + 1 < rows ? decay_of(job, row + 1, h) : 1;
    s.inverse[f] = inverse;
    s.g[f] = PASS == PASS_Y ? 0 : job.terms[2 * pair + 1];
}

// The results of a chunk: row f by warp f.
template <decayed_pass PASS>
static __device__ __forceinline__ void store_chunk(const decayed_shared &s, const decayed_job &job, int first, int h, int t,
                                                   int n, int column, float *extra)
{
    const int f = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, c = column + lane, E = job.E;
    const int reverse = PASS == PASS_KEYS || PASS == PASS_VALUES;
    float more = 0; // z or r at row f: every warp goes through all rows of the chunk
    for (int i = 0; i < n && (PASS == PASS_QUERIES || PASS == PASS_KEYS); i++) {
        *extra = fmaf(*extra, s.decay[i], PASS == PASS_KEYS ? s.w[i * COLUMNS + lane] * s.g[i] : s.w[i * COLUMNS + lane]);
        if (i == f) more = PASS == PASS_KEYS ? *extra : *extra * s.g[i];
    }
    if (f >= n || c >= E) return;
    float sum = more;
    for (int p = 0; p < WARPS; p++) sum += s.parts[(p * CHUNK + f) * COLUMNS + lane];
    const size_t row = (size_t)(first + (reverse ? t - f : t + f)), width = (size_t)job.H * (size_t)E;
    const size_t wide = row * 3 * width + (size_t)h * (size_t)E + (size_t)c;
    if (PASS == PASS_Y) job.out[row * width + (size_t)h * (size_t)E + (size_t)c] = sum * s.inverse[f];
    if (PASS == PASS_QUERIES) job.out[wide] = sum * phi_slope(phi<1>(job.qkv[wide]));
    if (PASS == PASS_KEYS) job.out[wide + width] = sum * phi_slope(phi<1>(job.qkv[wide + width]));
    if (PASS == PASS_VALUES) job.out[wide + 2 * width] = sum;
}

// A thread has the elements (warp + 8 i, column) of the matrix, i < EACH.
template <decayed_pass PASS> __global__ void __launch_bounds__(32 * WARPS) decayed_scan(decayed_job job)
{
    LIN_SHARED(float, shared);
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, column = (int)blockIdx.y * COLUMNS, E = job.E;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, c = column + lane;
    const int first = job.offsets[b], rows = job.offsets[b + 1] - first;
    const decayed_shared s = decayed_divide(shared, E);
    if (rows <= 0) return;
    float *state = PASS == PASS_Y ? state_of(job, b, h) : NULL, M[EACH], extra = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = warp + WARPS * i;
        M[i] = state && e < E && c < E ? state[(size_t)e * (size_t)E + (size_t)c] : 0;
    }
    for (int done = 0; done < rows; done += CHUNK) {
        const int n = rows - done < CHUNK ? rows - done : CHUNK,
                  t = PASS == PASS_KEYS || PASS == PASS_VALUES ? rows - 1 - done : done;
        load_chunk<PASS>(s, job, first, rows, h, t, n, column);
        __syncthreads();
        for (int f = 0; f < n; f++) {
            const float w = s.w[f * COLUMNS + lane], a = s.decay[f];
            float sum = 0;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int e = warp + WARPS * i;
                if (e >= E) break;
                M[i] = fmaf(s.x[f * E + e], w, M[i] * a);
                sum = fmaf(s.r[f * E + e], M[i], sum);
            }
            s.parts[(warp * CHUNK + f) * COLUMNS + lane] = sum;
        }
        __syncthreads();
        store_chunk<PASS>(s, job, first, h, t, n, column, &extra);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = warp + WARPS * i;
        if (state && e < E && c < E) state[(size_t)e * (size_t)E + (size_t)c] = M[i];
    }
}

// d log a_i = -sum_{t>=i} (eps g_t + φ(k_t) . dφ(k_t)), and φ dφ = dk max(φ, 1), because dk = dφ min(φ, 1).
__global__ void __launch_bounds__(32) decayed_gates(decayed_job job)
{
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, lane = (int)threadIdx.x, E = job.E;
    const int first = job.offsets[b], rows = job.offsets[b + 1] - first;
    double future = 0;
    for (int t = rows - 1; t >= 0; t--) {
        const size_t row = (size_t)(first + t), width = (size_t)job.H * (size_t)E, pair = row * (size_t)job.H + (size_t)h;
        const size_t k = row * 3 * width + width + (size_t)h * (size_t)E;
        float sum = 0;
        for (int e = lane; e < E; e += 32) sum = fmaf(fmaxf(phi<1>(job.qkv[k + (size_t)e]), 1.0f), job.out[k + (size_t)e], sum);
        sum = lin_warp_sum(sum);
        future -= (double)sum + 1e-6 * (double)job.terms[2 * pair + 1];
        const float e = expf(-gate_of(job, row, h));
        if (lane == 0) job.dgates[pair] = (float)((double)(e / (1 + e)) * future / 16);
    }
}

template <decayed_pass PASS> static void launch_scan(lin_exec *exec, const decayed_job &job, int B)
{
    const dim3 grid((unsigned)B * (unsigned)job.H, (unsigned)((job.E + COLUMNS - 1) / COLUMNS));
    const size_t bytes = decayed_floats(job.E) * sizeof(float);
    LIN_LAUNCH(exec, decayed_scan<PASS>, grid, 32 * WARPS, bytes, job);
}

// The memory of terms. 0: no memory.
static int take_terms(lin_exec *exec, decayed_job *job, const lin_segments *segments)
{
    job->terms = (float *)lin_cuda_scratch(exec, (size_t)segments->rows * (size_t)job->H * 2 * sizeof(float));
    return job->terms != NULL;
}

void lin_cuda_decayed_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *gates, int constant,
                                        const lin_segments *segments, int H, int E, float *const *states, size_t at)
{
    decayed_job job = {};
    if (segments->B == 0 || segments->rows == 0) return;
    job.offsets = segments->offsets;
    job.qkv = qkv;
    job.gates = gates;
    job.out = y;
    job.states = states;
    job.at = at;
    job.H = H;
    job.E = E;
    job.constant = constant;
    if (lin_cuda_decayed_chunks_forward(exec, &job, segments) || !take_terms(exec, &job, segments)) return;
    LIN_LAUNCH(exec, decayed_terms, (unsigned)segments->B * (unsigned)H, 32, 0, job);
    launch_scan<PASS_Y>(exec, job, segments->B);
}

void lin_cuda_decayed_attention_backward(lin_exec *exec, float *dqkv, float *dgates, const float *dy, const float *qkv,
                                         const float *gates, int constant, const float *y, const lin_segments *segments, int H,
                                         int E)
{
    decayed_job job = {};
    if (segments->B == 0 || segments->rows == 0) return;
    job.offsets = segments->offsets;
    job.qkv = qkv;
    job.gates = gates;
    job.y = y;
    job.dy = dy;
    job.out = dqkv;
    job.dgates = dgates;
    job.H = H;
    job.E = E;
    job.constant = constant;
    if (!take_terms(exec, &job, segments) || lin_cuda_decayed_chunks_backward(exec, &job, segments)) return;
    const unsigned heads = (unsigned)segments->B * (unsigned)H;
    LIN_LAUNCH(exec, decayed_terms, heads, 32, 0, job);
    launch_scan<PASS_QUERIES>(exec, job, segments->B);
    launch_scan<PASS_KEYS>(exec, job, segments->B);
    launch_scan<PASS_VALUES>(exec, job, segments->B);
    if (dgates) LIN_LAUNCH(exec, decayed_gates, heads, 32, 0, job);
}
