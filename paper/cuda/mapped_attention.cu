// Linear attention with other feature maps (Katharopoulos et al. 2020, eq. 4-15, with phi of degree 2 or of random features). The
// maps have hundreds to thousands of features, so the sums are divided by features: a block has a slice of them for one
// (utterance, head), keeps its part of the sums in shared memory and goes over the rows in chunks of 8. Numerators, denominators
// and gradients are then summed over the slices, in order.
//
// With v+ = [v, 1], c_i = -dy_i . y_i, d_i the denominators, and [g, c] = [dy_i, c_i] / d_i:
//   forward    M = sum_j phi(k_j) v+_jᵀ      numerator and denominator of y_i = Mᵀ phi(q_i)
//   queries    the same M                    dphi(q_i) = M [dy_i, c_i] / d_i
//   keys       M = sum_i phi(q_i) [g, c]ᵀ    dphi(k_j) = M v+_j, dv_j = Mᵀ phi(k_j); causal: i from the last row to j
// Within a chunk each element of M advances row by row in a register, so causal sums need no matrix of weights.
#include <math.h>

#include "kernels/cuda/attention.h"

enum { CHUNK = 8, MAPPED_THREADS = 256, LONG_ROW = 257 }; // one warp for each row of a chunk
typedef enum mapped_pass { PASS_FORWARD, PASS_QUERIES, PASS_KEYS } mapped_pass;

typedef struct mapped_job {
    const float *qkv, *omega, *y, *dy;
    float *partial;     // [slices, rows, H, n]: forward y then d, n = E+1; queries dq then d; keys dk then dv, n = 2 E
    float *terms;       // [rows, H, 2]: 1 / d_i and c_i / d_i
    float *out;         // y or dqkv
    const int *offsets; // [B+1]
    float *const *states;
    size_t at;
    int rows, B, H, E, D, slice, slices; // slice: features of a block
    int random, causal;
    float scale, norm; // E^(-1/4), 1 / sqrt(D)
} mapped_job;

// Shared memory. Rows of x: [CHUNK, E+1]; fq, fk, rho [slice, CHUNK]; v, g [E+1, CHUNK].
typedef struct mapped_shared {
    float *M, *fq, *fk, *rho, *xq, *xk, *v, *g, *sums, *norms;
    int *first, *second; // of POLY2: feature d is weight x+_first x+_second, x+ = [x, 1]
} mapped_shared;

static __host__ __device__ __forceinline__ size_t mapped_floats(int E, int slice)
{
    const size_t wide = (size_t)E + 1, features = (size_t)slice;
    return features * wide + 2 * features * CHUNK + CHUNK * MAPPED_THREADS + 4 * wide * CHUNK + CHUNK * LONG_ROW + 2 * CHUNK +
           2 * features;
}

static __device__ __forceinline__ mapped_shared mapped_divide(float *at, int E, int slice)
{
    mapped_shared s;
    const size_t wide = (size_t)E + 1, features = (size_t)slice;
    s.fq = at;
    s.fk = s.fq + features * CHUNK;
    s.rho = s.fk + features * CHUNK;
    s.v = s.rho + CHUNK * MAPPED_THREADS;
    s.g = s.v + wide * CHUNK;
    s.xq = s.g + wide * CHUNK;
    s.xk = s.xq + wide * CHUNK;
    s.sums = s.xk + wide * CHUNK;
    s.norms = s.sums + CHUNK * LONG_ROW;
    s.first = reinterpret_cast<int *>(s.norms + 2 * CHUNK);
    s.second = s.first + features;
    s.M = reinterpret_cast<float *>(s.second + features);
    return s;
}

// The factors of feature d of POLY2: squares, then pairs, then the elements themselves, then 1. E stands for the element 1 of x+.
static __device__ __forceinline__ void factors_of(int d, int E, int *first, int *second)
{
    *first = *second = d;
    if (d < E) return;
    d -= E;
    for (int i = 0; i < E - 1; i++) {
        *first = i;
        *second = i + 1 + d;
        if (*second < E) return;
        d -= E - 1 - i;
    }
    *first = d < E ? d : E;
    *second = E;
}

static __device__ __forceinline__ float weight_of(int first, int second)
{
    return first == second ? 1.0f : 1.41421356237309504880f;
}

// The row of the utterance that is row r of a chunk.
static __device__ __forceinline__ int row_at(int chunk, int r, int T, int reverse)
{
    return reverse ? T - 1 - chunk * CHUNK - r : chunk * CHUNK + r;
}

// Loads a chunk's rows, each by a warp; zeros where there is none.
template <mapped_pass PASS>
static __device__ __forceinline__ void load_chunk(const mapped_shared &s, const mapped_job &job, int b, int h, int chunk, int T)
{
    const int r = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, E = job.E, t = row_at(chunk, r, T, PASS == PASS_KEYS);
    const int there = t >= 0 && t < T;
    const size_t width = (size_t)job.H * (size_t)E, row = (size_t)job.offsets[b] + (size_t)(there ? t : 0);
    const float *q = job.qkv + row * 3 * width + (size_t)h * (size_t)E, *k = q + width, *v = k + width;
    const size_t pair = row * (size_t)job.H + (size_t)h;
    const float inverse = PASS == PASS_KEYS && there ? job.terms[2 * pair] : 1;
    float norm_q = 0, norm_k = 0, c = 0;
    for (int e = lane; e < E; e += 32) {
        const float xq = there ? q[e] * job.scale : 0, xk = there ? k[e] * job.scale : 0;
        norm_q = fmaf(xq, xq, norm_q);
        norm_k = fmaf(xk, xk, norm_k);
        s.xq[r * (E + 1) + e] = xq;
        s.xk[r * (E + 1) + e] = xk;
        s.v[e * CHUNK + r] = there ? v[e] : 0;
        if (PASS == PASS_FORWARD) continue;
        const float g = there ? job.dy[pair * (size_t)E + (size_t)e] : 0;
        if (PASS == PASS_QUERIES && there) c = fmaf(-g, job.y[pair * (size_t)E + (size_t)e], c);
        s.g[e * CHUNK + r] = g * inverse;
    }
    norm_q = lin_warp_sum(norm_q);
    norm_k = lin_warp_sum(norm_k);
    if (PASS == PASS_QUERIES) c = lin_warp_sum(c);
    if (lane != 0) return;
    if (PASS == PASS_KEYS && there) c = job.terms[2 * pair + 1];
    s.norms[r] = norm_q / 2;
    s.norms[CHUNK + r] = norm_k / 2;
    s.xq[r * (E + 1) + E] = s.xk[r * (E + 1) + E] = 1;
    s.v[E * CHUNK + r] = there ? 1 : 0;
    s.g[E * CHUNK + r] = c;
}

// phi of a chunk's queries and keys; 0 where there is no row, and for features from n on.
static __device__ __forceinline__ void chunk_features(const mapped_shared &s, const mapped_job &job, int h, int d0, int n,
                                                      int rows)
{
    const int d = (int)threadIdx.x % job.slice, parts = MAPPED_THREADS / job.slice, E = job.E;
    const float *omega = job.random && d < n ? job.omega + ((size_t)h * (size_t)job.D + (size_t)(d0 + d)) * (size_t)E : NULL;
    for (int r = (int)threadIdx.x / job.slice; r < CHUNK; r += parts) {
        const float *xq = s.xq + r * (E + 1), *xk = s.xk + r * (E + 1);
        float fq = 0, fk = 0;
        if (d < n && r < rows && job.random) {
            for (int e = 0; e < E; e++) {
                fq = fmaf(omega[e], xq[e], fq);
                fk = fmaf(omega[e], xk[e], fk);
            }
            fq = expf(fq - s.norms[r]) * job.norm;
            fk = expf(fk - s.norms[CHUNK + r]) * job.norm;
        } else if (d < n && r < rows) {
            const int i = s.first[d], j = s.second[d];
            fq = weight_of(i, j) * xq[i] * xq[j];
            fk = weight_of(i, j) * xk[i] * xk[j];
        }
        s.fq[d * CHUNK + r] = fq;
        s.fk[d * CHUNK + r] = fk;
    }
}

// An element of M before and after a row: advances it through the rows of a chunk; use(r, s) is called with it after row r.
template <typename F>
static __device__ __forceinline__ float advance(float element, const float *left, const float *right, int update, F use)
{
#pragma unroll
    for (int r = 0; r < CHUNK; r++) {
        if (update) element = fmaf(left[r], right[r], element);
        use(r, element);
    }
    return element;
}

// out[r, m - m0] = sum_d M[d, m] f[d, r] over the slice, m from m0 to m1 - 1, into the partial sums from element `to` on. Divided
// over groups of features, summed in order. left, right: the rows by which M advances; store: M is left as it is after the chunk.
static __device__ __forceinline__ void column_products(const mapped_shared &s, const mapped_job &job, const float *left,
                                                       const float *right, const float *f, int m0, int m1, int update,
                                                       int product, int store)
{
    const int tid = (int)threadIdx.x, wide = job.E + 1, n = m1 - m0, columns = n < MAPPED_THREADS ? n : MAPPED_THREADS;
    const int groups = MAPPED_THREADS / columns, group = tid / columns, each = (job.slice + groups - 1) / groups;
    for (int m = m0 + tid % columns; m < m1 && group < groups; m += columns) {
        float sum[CHUNK] = {};
        for (int d = group * each; d < (group + 1) * each && d < job.slice; d++) {
            const float *fd = f + d * CHUNK;
            const float x = advance(s.M[d * wide + m], left + d * CHUNK, right + m * CHUNK, update, [&](int r, float element) {
                if (product) sum[r] = fmaf(fd[r], element, sum[r]);
            });
            if (store) s.M[d * wide + m] = x;
        }
#pragma unroll
        for (int r = 0; r < CHUNK; r++) s.sums[(group * CHUNK + r) * n + m - m0] = sum[r];
    }
}

// Sums the groups of column_products into the partial sums of the chunk's rows. After a barrier.
static __device__ __forceinline__ void store_columns(const mapped_shared &s, float *to, size_t stride, int step, int m0, int m1,
                                                     int rows)
{
    const int n = m1 - m0, columns = n < MAPPED_THREADS ? n : MAPPED_THREADS, groups = MAPPED_THREADS / columns;
    for (int i = (int)threadIdx.x; i < rows * n; i += MAPPED_THREADS) {
        const int r = i / n, m = i % n;
        float sum = 0;
        for (int group = 0; group < groups; group++) sum += s.sums[(group * CHUNK + r) * n + m];
        to[(ptrdiff_t)(r * step) * (ptrdiff_t)stride + m] = sum;
    }
}

// rho[d, r] = sum_m M[d, m] w[m, r]: the gradients of the features; M is left as it is after the chunk.
static __device__ __forceinline__ void row_products(const mapped_shared &s, const mapped_job &job, const float *left,
                                                    const float *right, const float *w, int update, int product)
{
    const int tid = (int)threadIdx.x, wide = job.E + 1, d = tid % job.slice, parts = MAPPED_THREADS / job.slice;
    float sum[CHUNK] = {};
    for (int m = tid / job.slice; m < wide; m += parts) {
        const float *wm = w + m * CHUNK;
        s.M[d * wide + m] = advance(s.M[d * wide + m], left + d * CHUNK, right + m * CHUNK, update, [&](int r, float element) {
            if (product) sum[r] = fmaf(wm[r], element, sum[r]);
        });
    }
#pragma unroll
    for (int r = 0; r < CHUNK; r++) s.rho[tid * CHUNK + r] = sum[r];
}

// Sums the parts of row_products, times what all derivatives of a feature have in common. After a barrier.
static __device__ __forceinline__ void finish_rows(const mapped_shared &s, const mapped_job &job, const float *f, int n)
{
    for (int i = (int)threadIdx.x; i < job.slice * CHUNK; i += MAPPED_THREADS) {
        float sum = 0;
        for (int part = 0; part < MAPPED_THREADS / job.slice; part++) sum += s.rho[part * job.slice * CHUNK + i];
        const int d = i / CHUNK;
        if (job.random) sum *= f[i];
        else sum *= d < n ? weight_of(s.first[d], s.second[d]) : 0;
        s.rho[i] = sum;
    }
}

// The gradient of x from rho: dx_e = scale sum_d rho_d dphi_d/dx'_e. After a barrier.
static __device__ __forceinline__ void store_gradients(const mapped_shared &s, const mapped_job &job, const float *x, int h,
                                                       int d0, int n, float *to, size_t stride, int step, int rows)
{
    const int E = job.E;
    const float *omega = job.random ? job.omega + ((size_t)h * (size_t)job.D + (size_t)d0) * (size_t)E : NULL;
    for (int i = (int)threadIdx.x; i < rows * E; i += MAPPED_THREADS) {
        const int r = i / E, e = i % E;
        const float *row = x + r * (E + 1);
        float sum = 0;
        for (int d = 0; d < n; d++) {
            const float rho = s.rho[d * CHUNK + r];
            if (job.random) {
                sum = fmaf(rho, omega[(size_t)d * (size_t)E + (size_t)e] - row[e], sum);
            } else {
                if (s.first[d] == e) sum = fmaf(rho, row[s.second[d]], sum);
                if (s.second[d] == e) sum = fmaf(rho, row[s.first[d]], sum);
            }
        }
        to[(ptrdiff_t)(r * step) * (ptrdiff_t)stride + e] = sum * job.scale;
    }
}

// A block for each slice of features of an (utterance, head).
template <mapped_pass PASS> __global__ void __launch_bounds__(MAPPED_THREADS) mapped_rows(mapped_job job)
{
    LIN_SHARED(float, shared);
    const int b = (int)(blockIdx.x / (unsigned)job.H), h = (int)(blockIdx.x % (unsigned)job.H), E = job.E, wide = E + 1;
    const int T = job.offsets[b + 1] - job.offsets[b], d0 = (int)blockIdx.y * job.slice, tid = (int)threadIdx.x;
    const int n = job.D - d0 < job.slice ? job.D - d0 : job.slice, step = PASS == PASS_KEYS ? -1 : 1;
    if (T == 0) return;
    const mapped_shared s = mapped_divide(shared, E, job.slice);
    const float *left = PASS == PASS_KEYS ? s.fq : s.fk, *right = PASS == PASS_KEYS ? s.g : s.v; // M += left rightᵀ
    const float *f = PASS == PASS_KEYS ? s.fk : s.fq, *other = PASS == PASS_KEYS ? s.v : s.g,
                *x = PASS == PASS_KEYS ? s.xk : s.xq;
    const size_t width = PASS == PASS_KEYS ? 2 * (size_t)E : (size_t)wide, stride = (size_t)job.H * width;
    float *state = PASS == PASS_FORWARD && job.states && job.states[b]
                       ? job.states[b] + job.at + ((size_t)h * (size_t)job.D + (size_t)d0) * (size_t)wide
                       : NULL;
    for (int i = tid; i < job.slice * wide; i += MAPPED_THREADS) s.M[i] = state && i < n * wide ? state[i] : 0;
    for (int d = tid; d < n && !job.random; d += MAPPED_THREADS) factors_of(d0 + d, E, &s.first[d], &s.second[d]);
    for (int sweep = job.causal; sweep < 2; sweep++) {
        const int update = job.causal || sweep == 0, product = sweep == 1;
        for (int chunk = 0; chunk * CHUNK < T; chunk++) {
            const int rows = T - chunk * CHUNK < CHUNK ? T - chunk * CHUNK : CHUNK;
            const size_t row = (size_t)job.offsets[b] + (size_t)row_at(chunk, 0, T, PASS == PASS_KEYS);
            float *to = job.partial + (((size_t)blockIdx.y * (size_t)job.rows + row) * (size_t)job.H + (size_t)h) * width;
            __syncthreads();
            load_chunk<PASS>(s, job, b, h, chunk, T);
            __syncthreads();
            chunk_features(s, job, h, d0, n, rows);
            __syncthreads();
            if (PASS == PASS_FORWARD) {
                column_products(s, job, left, right, f, 0, wide, update, product, 1);
                __syncthreads();
                if (product) store_columns(s, to, stride, step, 0, wide, rows);
                continue;
            }
            const int m0 = PASS == PASS_KEYS ? 0 : E, m1 = PASS == PASS_KEYS ? E : wide;
            if (product) {
                column_products(s, job, left, right, f, m0, m1, update, 1, 0);
                __syncthreads(); // before M advances
            }
            row_products(s, job, left, right, other, update, product);
            __syncthreads();
            if (!product) continue;
            store_columns(s, to + E, stride, step, m0, m1, rows);
            finish_rows(s, job, f, n);
            __syncthreads();
            store_gradients(s, job, x, h, d0, n, to, stride, step, rows);
        }
    }
    __syncthreads();
    for (int i = tid; i < n * wide && state; i += MAPPED_THREADS) state[i] = s.M[i];
}

/* ---- sums over the slices: a thread for each element of out ---------------------------------------------------------------- */

static __device__ __forceinline__ float sum_slices(const mapped_job &job, size_t element, size_t n)
{
    const size_t step = (size_t)job.rows * (size_t)job.H * n;
    float sum = 0;
    for (int s = 0; s < job.slices; s++) sum += job.partial[(size_t)s * step + element];
    return sum;
}

// y (queries 0), or dq and the terms.
static __global__ void __launch_bounds__(MAPPED_THREADS) mapped_divided(mapped_job job, int queries)
{
    const size_t i = (size_t)blockIdx.x * MAPPED_THREADS + threadIdx.x, E = (size_t)job.E, width = (size_t)job.H * E;
    if (i >= (size_t)job.rows * width) return;
    const size_t pair = i / E, e = i % E, row = pair / (size_t)job.H, h = pair % (size_t)job.H;
    if (row >= (size_t)job.offsets[job.B]) return; // of no utterance: there are no sums
    const float inverse = 1 / (sum_slices(job, pair * (E + 1) + E, E + 1) + LIN_ATTENTION_EPS);
    const float x = sum_slices(job, pair * (E + 1) + e, E + 1) * inverse;
    if (!queries) {
        job.out[i] = x;
        return;
    }
    job.out[row * 3 * width + h * E + e] = x;
    if (e != 0) return;
    float c = 0;
    for (size_t j = 0; j < E; j++) c = fmaf(-job.dy[i + j], job.y[i + j], c);
    job.terms[pair * 2] = inverse;
    job.terms[pair * 2 + 1] = c * inverse;
}

static __global__ void __launch_bounds__(MAPPED_THREADS) mapped_summed(mapped_job job)
{
    const size_t i = (size_t)blockIdx.x * MAPPED_THREADS + threadIdx.x, E = (size_t)job.E, width = (size_t)job.H * E;
    if (i >= (size_t)job.rows * 2 * width) return;
    const size_t pair = i / (2 * E), e = i % (2 * E), row = pair / (size_t)job.H, h = pair % (size_t)job.H;
    job.out[row * 3 * width + (e < E ? width + e : width + e + width - E) + h * E] = sum_slices(job, i, 2 * E);
}

/* ---- the operations -------------------------------------------------------------------------------------------------------- */

static mapped_job mapped_of(const float *qkv, const float *omega, const lin_segments *segments, const lin_map *map, int H, int E,
                            int causal)
{
    mapped_job job = {};
    job.qkv = qkv;
    job.omega = omega;
    job.offsets = segments->offsets;
    job.rows = segments->rows;
    job.B = segments->B;
    job.H = H;
    job.E = E;
    job.D = map->D;
    job.slice = E <= 64 ? 128 : 32;
    job.slices = (job.D + job.slice - 1) / job.slice;
    job.random = map->kind == LIN_MAP_RANDOM;
    job.causal = causal != 0;
    job.scale = 1 / sqrtf(sqrtf((float)E));
    job.norm = 1 / sqrtf((float)map->D);
    return job;
}

template <mapped_pass PASS> static void run_pass(lin_exec *exec, const mapped_job &job)
{
    const size_t bytes = mapped_floats(job.E, job.slice) * sizeof(float);
    LIN_ALLOW_SHARED(exec, (mapped_rows<PASS>), bytes);
    LIN_LAUNCH(exec, (mapped_rows<PASS>), dim3((unsigned)(job.B * job.H), (unsigned)job.slices), MAPPED_THREADS, bytes, job);
}

void lin_cuda_mapped_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *omega,
                                       const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                       float *const *states, size_t at)
{
    if (segments->B == 0 || segments->rows == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec)) return;
    mapped_job job = mapped_of(qkv, omega, segments, map, H, E, causal);
    const size_t rows = (size_t)job.rows * (size_t)H;
    job.states = causal ? states : NULL;
    job.at = at;
    job.out = y;
    job.partial = (float *)lin_cuda_scratch(exec, (size_t)job.slices * rows * (size_t)(E + 1) * sizeof(float));
    if (!job.partial) return;
    run_pass<PASS_FORWARD>(exec, job);
    LIN_LAUNCH(exec, mapped_divided, lin_cuda_blocks(rows * (size_t)E, MAPPED_THREADS), MAPPED_THREADS, 0, job, 0);
}

void lin_cuda_mapped_attention_backward(lin_exec *exec, float *dqkv, const float *dy, const float *qkv, const float *omega,
                                        const float *y, const lin_segments *segments, const lin_map *map, int H, int E,
                                        int causal)
{
    if (segments->B == 0 || segments->rows == 0 || H == 0 || E == 0 || !lin_cuda_ready(exec)) return;
    mapped_job job = mapped_of(qkv, omega, segments, map, H, E, causal);
    const size_t rows = (size_t)job.rows * (size_t)H;
    job.dy = dy;
    job.y = y;
    job.out = dqkv;
    job.terms = (float *)lin_cuda_scratch(exec, rows * ((size_t)job.slices * 2 * (size_t)E + 2) * sizeof(float));
    if (!job.terms) return;
    job.partial = job.terms + rows * 2;
    run_pass<PASS_QUERIES>(exec, job);
    LIN_LAUNCH(exec, mapped_divided, lin_cuda_blocks(rows * (size_t)E, MAPPED_THREADS), MAPPED_THREADS, 0, job, 1);
    run_pass<PASS_KEYS>(exec, job);
    LIN_LAUNCH(exec, mapped_summed, lin_cuda_blocks(rows * 2 * (size_t)E, MAPPED_THREADS), MAPPED_THREADS, 0, job);
}
