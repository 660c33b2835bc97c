// Linear attention with decays (kernels/ops.h), in fp32. Heads wider than 64: attention.cu.
#include "kernels/cuda/attention.h"

static __device__ __forceinline__ float *state_of(const attention_job &job, int b, int h)
{
    const size_t E = (size_t)job.E;
    return job.states && job.states[b] ? job.states[b] + job.at + (size_t)h * (E + 1) * E : NULL;
}

/* ---- heads up to 64 wide --------------------------------------------------------------------------------------------------- */

// A few rows are processed one by one, more in chunks of 32 (Yang et al. 2024, Gated Linear Attention Transformers, section 4;
// here a head and row have one decay). One block per (utterance, head) goes through its chunks; the sums of earlier rows stay in
// registers, and within a chunk all is products of small matrices, in fp32.
//
// With L_i the sum of log a of the chunk's rows up to i, v' = (v, 1) and G' = (dy / den, g), g = -(dy . y) / den:
//   y'_i  = sum_{j<=i} P_ij v'_j + e^L_i S'ᵀ φ(q_i)             P_ij = e^(L_i - L_j) φ(q_i) . φ(k_j); y = y' / den, den its last
//   dφ(q_i) = sum_{j<=i} W_ij φ(k_j) + e^L_i S' G'_i            W_ij = e^(L_i - L_j) G'_i . v'_j
//   dv_j  = sum_{i>=j} P_ij G_i + e^(L_n - L_j) Rᵀ φ(k_j)
//   dφ(k_j) = sum_{i>=j} W_ij φ(q_i) + e^(L_n - L_j) R' v'_j
// S' = sum φ(k) v'ᵀ over the rows before the chunk, R' = sum φ(q) G'ᵀ over those after it, both with the decays applied.
// All exponents are at most 0.
//
// Products are out[4 rows][column] += sum over k of A[k][4 rows] B[k][column], by each thread: A is a tile whose columns are the
// rows of the chunk (read by fours), B one whose columns are those of a head. E is padded with zeros to EP; column EP of v' and
// G' is the last one.

enum {
    ROWS = 32,
    STRIDE = ROWS + 4, // of a tile whose columns are rows of the chunk: by fours without bank conflicts
    STEP_WARPS = 4,
    STEP_MOST = 15 // rows of the longest utterance of a call that goes row after row
};

template <int EP> struct chunk {
    enum {
        columns = EP + 8, // of v', G', S' and R'; those beyond EP are 0 and unused
        threads = columns * ROWS / 4,
        warps = threads / 32,
        loads = 4,                        // elements of a matrix [ROWS, EP] that a thread loads
        each = EP / 8,                    // rows of S' that a thread owns
        odd = columns + 1,                // stride of S' and R', which are read along both
        together = EP <= 40 ? 2 : 1       // blocks of a multiprocessor, for which ptxas leaves registers
    };
};

// The elements of a matrix [ROWS, EP] that a thread loads are of column e, in rows row, row + 8, ...: eight columns by four rows
// for each warp at once, so that neither the copy nor the transposed one has bank conflicts. 0: there are none.
template <int EP> static __device__ __forceinline__ int element(int &row, int &e)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    row = (int)(warp / (EP / 8) * 4 + lane / 8);
    e = (int)(warp % (EP / 8) * 8 + lane % 8);
    return row < 8;
}

// Rows 0..n-1 of a head, `stride` floats apart, to registers, for the next chunk.
template <int EP>
static __device__ __forceinline__ void fetch(float (&x)[chunk<EP>::loads], const float *from, int stride, int n, int E)
{
    int row, e;
    const int any = element<EP>(row, e) && e < E;
    from += row * stride + e;
#pragma unroll
    for (int i = 0; i < chunk<EP>::loads; i++) x[i] = any && row + 8 * i < n ? from[8 * i * stride] : 0;
}

// A thread's elements of the rows of q, k and v.
template <int EP> struct chunk_rows {
    float q[chunk<EP>::loads], k[chunk<EP>::loads], v[chunk<EP>::loads];
};

// `width` floats lie between q, k and v of a row.
template <int EP>
static __device__ __forceinline__ void fetch_rows(chunk_rows<EP> &x, const float *from, int width, int n, int E)
{
    fetch<EP>(x.q, from, 3 * width, n, E);
    fetch<EP>(x.k, from + width, 3 * width, n, E);
    fetch<EP>(x.v, from + 2 * width, 3 * width, n, E);
}

// Logarithms of decays summed up to each row of a chunk, their exponentials, and those of the sums from each row to the chunk's
// end; rows from n on have no decay. By warp 0.
static __device__ __forceinline__ void sum_gates(float *sums, const attention_job &job, size_t row, int h, int n)
{
    const int lane = (int)threadIdx.x;
    float sum = lane < n ? log1pf(expf(-gate_of(job, row + (size_t)lane, h))) * -0.0625f : 0;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, sum, (unsigned)o);
        if (lane >= o) sum += before;
    }
    sums[lane] = sum;
    sums[ROWS + lane] = expf(sum);
    sums[2 * ROWS + lane] = expf(__shfl_sync(0xffffffffu, sum, 31) - sum);
}

// A thread's four rows of a product with `depth` terms; B's columns are `width` apart, its rows `stride`.
template <int DEPTH>
static __device__ __forceinline__ void multiply_fours(float (&sum)[4], const float *A, const float *B, int stride)
{
#pragma unroll 8
    for (int k = 0; k < DEPTH; k++) {
        const float4 a = *reinterpret_cast<const float4 *>(A + k * STRIDE);
        const float b = B[k * stride];
        sum[0] = fmaf(a.x, b, sum[0]);
        sum[1] = fmaf(a.y, b, sum[1]);
        sum[2] = fmaf(a.z, b, sum[2]);
        sum[3] = fmaf(a.w, b, sum[3]);
    }
}

// Row 4 warp + u, column lane of a product of two tiles, with the decay between the two rows: 0 above the diagonal.
template <int DEPTH>
static __device__ __forceinline__ void multiply_masked(float (&sum)[4], const float *A, const float *B, const float *sums)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < 4; u++) sum[u] = 0;
    multiply_fours<DEPTH>(sum, A + 4 * warp, B + lane, STRIDE);
#pragma unroll
    for (int u = 0; u < 4; u++)
        sum[u] = lane <= 4 * warp + u ? sum[u] * expf(sums[4 * warp + u] - sums[lane]) : 0;
}

// The thread's part of the running sums times the decay of the chunk, plus the chunk's own: sum of scale[i] x[i][e] w[i][c].
template <int EP>
static __device__ __forceinline__ void add_chunk(float (&M)[chunk<EP>::each], const float *x, const float *w, const float *scale,
                                                 float decay, int first, int c)
{
#pragma unroll
    for (int u = 0; u < chunk<EP>::each; u++) M[u] *= decay;
#pragma unroll 4
    for (int i = 0; i < ROWS; i++) {
        const float f = w[i * chunk<EP>::columns + c] * scale[i];
#pragma unroll
        for (int u = 0; u < chunk<EP>::each; u++) M[u] = fmaf(x[i * EP + first + u], f, M[u]);
    }
}

template <int EP>
static __device__ __forceinline__ void write_sums(float *to, const float (&M)[chunk<EP>::each], int first, int c)
{
#pragma unroll
    for (int u = 0; u < chunk<EP>::each; u++) to[(first + u) * chunk<EP>::odd + c] = M[u];
}

// v' or G' of a chunk as [row][column]: column EP and zeros behind it. last: the numbers of column EP, or NULL for 1 (rows before
// n).
template <int EP> static __device__ __forceinline__ void write_last(float *natural, float *turned, const float *last, int n)
{
    const int row = (int)threadIdx.x % ROWS, i = (int)threadIdx.x / ROWS;
    if (i >= 8) return;
    const float x = i > 0 || row >= n ? 0 : last ? last[row] : 1;
    if (natural) natural[row * chunk<EP>::columns + EP + i] = x;
    if (turned && i == 0) turned[EP * STRIDE + row] = x;
}

// The beginning of a chunk in the passes from the first chunk to the last: tiles of q, k and v, and the sums of earlier rows.
// A barrier must follow. turned_v may be NULL.
template <int EP, typename Tiles>
static __device__ __forceinline__ void load_chunk(Tiles *s, float *turned_v, const chunk_rows<EP> &x,
                                                  const float (&M)[chunk<EP>::each], const attention_job &job, size_t first,
                                                  int h, int n, int mine, int c)
{
    int top, e;
    const int any = element<EP>(top, e);
#pragma unroll
    for (int i = 0; i < chunk<EP>::loads; i++) {
        const int row = top + 8 * i, valid = row < n && e < job.E;
        if (!any) continue;
        s->q[e * STRIDE + row] = valid ? phi<1>(x.q[i]) : 0;
        s->k[e * STRIDE + row] = s->keys[row * EP + e] = valid ? phi<1>(x.k[i]) : 0;
        s->v[row * chunk<EP>::columns + e] = x.v[i];
        if (turned_v) turned_v[e * STRIDE + row] = x.v[i];
    }
    write_last<EP>(s->v, turned_v, NULL, n);
    write_sums<EP>(s->S, M, mine, c);
    if (threadIdx.x < 32) sum_gates(s->sums, job, first, h, n);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

template <int EP> struct forward_tiles {
    float q[EP * STRIDE], k[EP * STRIDE], weights[ROWS * STRIDE], keys[ROWS * EP], v[ROWS * chunk<EP>::columns],
        S[EP * chunk<EP>::odd], sums[3 * ROWS], inverse[ROWS];
};

template <int EP> __global__ void __launch_bounds__(chunk<EP>::threads, chunk<EP>::together) decayed_forward(attention_job job)
{
    enum { columns = chunk<EP>::columns, each = chunk<EP>::each };
    LIN_SHARED(forward_tiles<EP>, s);
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, E = job.E, who = (int)threadIdx.x;
    const int rows = job.offsets[b + 1] - job.offsets[b], group = (int)(threadIdx.x / columns), c = (int)(threadIdx.x % columns),
              mine = group * each;
    const int width = job.H * E, head = h * E;
    size_t first = (size_t)job.offsets[b];
    float *const state = state_of(job, b, h), M[each];
    chunk_rows<EP> x;
    if (rows <= 0) return;
#pragma unroll
    for (int u = 0; u < each; u++)
        M[u] = !state || mine + u >= E ? 0
               : c < E                 ? state[(size_t)(mine + u) * (size_t)E + (size_t)c]
               : c == EP               ? state[(size_t)E * (size_t)E + (size_t)(mine + u)]
                                       : 0;
    const float *from = job.qkv + first * (size_t)(3 * width) + head;
    fetch_rows<EP>(x, from, width, rows, E);
    for (int left = rows; left > 0; left -= ROWS, first += ROWS) {
        const int n = left < ROWS ? left : ROWS;
        __syncthreads();
        load_chunk<EP>(s, NULL, x, M, job, first, h, n, mine, c);
        __syncthreads();
        from += ROWS * 3 * width;
        fetch_rows<EP>(x, from, width, left - ROWS, E);
        if (who < 256) {
            float P[4];
            multiply_masked<EP>(P, s->q, s->k, s->sums);
            *reinterpret_cast<float4 *>(s->weights + who % 32 * STRIDE + who / 32 * 4) = make_float4(P[0], P[1], P[2], P[3]);
        }
        float sum[4] = {0, 0, 0, 0};
        multiply_fours<EP>(sum, s->q + 4 * group, s->S + c, chunk<EP>::odd);
#pragma unroll
        for (int u = 0; u < 4; u++) sum[u] *= s->sums[ROWS + 4 * group + u];
        add_chunk<EP>(M, s->keys, s->v, s->sums + 2 * ROWS, s->sums[2 * ROWS - 1], mine, c);
        __syncthreads();
        multiply_fours<ROWS>(sum, s->weights + 4 * group, s->v + c, columns);
        if (c == EP)
#pragma unroll
            for (int u = 0; u < 4; u++) s->inverse[4 * group + u] = 1 / (sum[u] + LIN_ATTENTION_EPS);
        __syncthreads();
        float *const to = job.out + (first + (size_t)(4 * group)) * (size_t)width + head + c;
        if (c < E)
#pragma unroll
            for (int u = 0; u < 4; u++)
                if (4 * group + u < n)
                    to[u * width] = sum[u] * s->inverse[4 * group + u];
    }
#pragma unroll
    for (int u = 0; u < each; u++) {
        if (!state || mine + u >= E) continue;
        if (c < E) state[(size_t)(mine + u) * (size_t)E + (size_t)c] = M[u];
        if (c == EP) state[(size_t)E * (size_t)E + (size_t)(mine + u)] = M[u];
    }
}

/* ---- backward: queries ----------------------------------------------------------------------------------------------------- */

template <int EP> struct query_tiles {
    float q[EP * STRIDE], k[EP * STRIDE], turned_v[(EP + 1) * STRIDE], dy[(EP + 1) * STRIDE], weights[ROWS * STRIDE],
        keys[ROWS * EP], v[ROWS * chunk<EP>::columns], S[EP * chunk<EP>::odd], sums[3 * ROWS], inverse[ROWS], dots[ROWS];
};

// dφ(q), and the terms of all rows.
template <int EP> __global__ void __launch_bounds__(chunk<EP>::threads, chunk<EP>::together) decayed_queries(attention_job job)
{
    enum { columns = chunk<EP>::columns, loads = chunk<EP>::loads, each = chunk<EP>::each, warps = chunk<EP>::warps };
    LIN_SHARED(query_tiles<EP>, s);
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, E = job.E, who = (int)threadIdx.x, warp = who / 32,
              lane = who % 32;
    const int rows = job.offsets[b + 1] - job.offsets[b], group = (int)(threadIdx.x / columns), c = (int)(threadIdx.x % columns),
              mine = group * each;
    const int width = job.H * E, head = h * E;
    size_t first = (size_t)job.offsets[b];
    float M[each] = {}, dy[loads];
    chunk_rows<EP> x;
    if (rows <= 0) return;
    const float *from = job.qkv + first * (size_t)(3 * width) + head;
    fetch_rows<EP>(x, from, width, rows, E);
    fetch<EP>(dy, job.dy + first * (size_t)width + head, width, rows, E);
    for (int left = rows; left > 0; left -= ROWS, first += ROWS) {
        const int n = left < ROWS ? left : ROWS;
        __syncthreads();
        load_chunk<EP>(s, s->turned_v, x, M, job, first, h, n, mine, c);
        int top, e;
        const int any = element<EP>(top, e);
#pragma unroll
        for (int i = 0; i < loads; i++)
            if (any) s->dy[e * STRIDE + top + 8 * i] = dy[i];
        for (int row = warp; row < ROWS; row += warps) {
            const size_t at = (first + (size_t)row) * (size_t)width + (size_t)head;
            float dot = 0;
            for (int e = lane; e < E && row < n; e += 32) dot = fmaf(-job.dy[at + (size_t)e], job.y[at + (size_t)e], dot);
            dot = lin_warp_sum(dot);
            if (lane == 0) s->dots[row] = s->dy[EP * STRIDE + row] = dot;
        }
        __syncthreads();
        from += ROWS * 3 * width;
        fetch_rows<EP>(x, from, width, left - ROWS, E);
        fetch<EP>(dy, job.dy + (first + ROWS) * (size_t)width + head, width, left - ROWS, E);
        if (who < 256) {
            float P[4], W[4];
            multiply_masked<EP>(P, s->q, s->k, s->sums);
            multiply_masked<EP + 1>(W, s->dy, s->turned_v, s->sums);
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int row = 4 * warp + u;
                float den = 0;
                for (int e = lane; e < EP; e += 32) den = fmaf(s->q[e * STRIDE + row], s->S[e * chunk<EP>::odd + EP], den);
                den = lin_warp_sum(fmaf(den, s->sums[ROWS + row], P[u]));
                const float inverse = 1 / (den + LIN_ATTENTION_EPS);
                W[u] *= inverse;
                if (lane != 0) continue;
                s->inverse[row] = inverse;
                if (row >= n) continue;
                float *const terms = job.terms + 2 * ((first + (size_t)row) * (size_t)job.H + (size_t)h);
                terms[0] = inverse;
                terms[1] = s->dots[row] * inverse;
            }
            *reinterpret_cast<float4 *>(s->weights + lane * STRIDE + 4 * warp) = make_float4(W[0], W[1], W[2], W[3]);
        }
        add_chunk<EP>(M, s->keys, s->v, s->sums + 2 * ROWS, s->sums[2 * ROWS - 1], mine, c);
        float sum[4] = {0, 0, 0, 0};
        if (c < EP) multiply_fours<EP + 1>(sum, s->dy + 4 * group, s->S + c * chunk<EP>::odd, 1);
        __syncthreads();
        if (c >= E) continue;
#pragma unroll
        for (int u = 0; u < 4; u++) sum[u] *= s->sums[ROWS + 4 * group + u] * s->inverse[4 * group + u];
        multiply_fours<ROWS>(sum, s->weights + 4 * group, s->keys + c, EP);
        float *const to = job.out + (first + (size_t)(4 * group)) * (size_t)(3 * width) + head + c;
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (4 * group + u < n)
                to[u * 3 * width] = sum[u] * phi_slope(s->q[c * STRIDE + 4 * group + u]);
    }
}

/* ---- backward: keys, values, gates ----------------------------------------------------------------------------------------- */

template <int EP> struct key_tiles {
    float q[EP * STRIDE], k[EP * STRIDE], v[(EP + 1) * STRIDE], turned_G[(EP + 1) * STRIDE], P[ROWS * STRIDE], W[ROWS * STRIDE],
        queries[ROWS * EP], G[ROWS * chunk<EP>::columns], R[EP * chunk<EP>::odd], products[ROWS * chunk<EP>::odd],
        sums[3 * ROWS], inverse[ROWS], g[ROWS], dots[ROWS];
};

// From the last chunk to the first. d log a_i = -sum_{t>=i} (eps g_t + φ(k_t) . dφ(k_t)).
template <int EP> __global__ void __launch_bounds__(chunk<EP>::threads) decayed_keys(attention_job job)
{
    enum { columns = chunk<EP>::columns, loads = chunk<EP>::loads, each = chunk<EP>::each, warps = chunk<EP>::warps };
    LIN_SHARED(key_tiles<EP>, s);
    const int b = (int)blockIdx.x / job.H, h = (int)blockIdx.x % job.H, E = job.E, who = (int)threadIdx.x, warp = who / 32,
              lane = who % 32;
    const int rows = job.offsets[b + 1] - job.offsets[b], group = (int)(threadIdx.x / columns), c = (int)(threadIdx.x % columns),
              mine = group * each;
    const int width = job.H * E, head = h * E;
    const size_t begin = (size_t)job.offsets[b];
    float M[each] = {}, dy[loads];
    chunk_rows<EP> x;
    double future = 0; // of warp 0
    if (rows <= 0) return;
    for (int start = (rows - 1) / ROWS * ROWS; start >= 0; start -= ROWS) {
        const size_t first = begin + (size_t)start;
        const int n = rows - start < ROWS ? rows - start : ROWS;
        const float *from = job.qkv + first * (size_t)(3 * width) + head;
        if (start + n == rows) {
            fetch_rows<EP>(x, from, width, n, E);
            fetch<EP>(dy, job.dy + first * (size_t)width + head, width, n, E);
        }
        __syncthreads();
        if (warp == 0) {
            const float *terms = job.terms + 2 * ((first + (size_t)lane) * (size_t)job.H + (size_t)h);
            s->inverse[lane] = lane < n ? terms[0] : 0;
            s->g[lane] = lane < n ? terms[1] : 0;
            sum_gates(s->sums, job, first, h, n);
        }
        write_sums<EP>(s->R, M, mine, c);
        __syncthreads();
        int top, e;
        const int any = element<EP>(top, e);
#pragma unroll
        for (int i = 0; i < loads; i++) {
            const int row = top + 8 * i, valid = row < n && e < E;
            if (!any) continue;
            s->q[e * STRIDE + row] = s->queries[row * EP + e] = valid ? phi<1>(x.q[i]) : 0;
            s->k[e * STRIDE + row] = valid ? phi<1>(x.k[i]) : 0;
            s->v[e * STRIDE + row] = x.v[i];
            s->turned_G[e * STRIDE + row] = s->G[row * columns + e] = dy[i] * s->inverse[row];
        }
        write_last<EP>(NULL, s->v, NULL, n);
        write_last<EP>(s->G, s->turned_G, s->g, n);
        __syncthreads();
        if (start > 0) {
            from -= ROWS * 3 * width;
            fetch_rows<EP>(x, from, width, ROWS, E);
            fetch<EP>(dy, job.dy + (first - ROWS) * (size_t)width + head, width, ROWS, E);
        }
        if (who < 256) {
            float w[4];
            multiply_masked<EP>(w, s->q, s->k, s->sums);
#pragma unroll
            for (int u = 0; u < 4; u++) s->P[(4 * warp + u) * STRIDE + lane] = w[u];
            multiply_masked<EP + 1>(w, s->turned_G, s->v, s->sums);
#pragma unroll
            for (int u = 0; u < 4; u++) s->W[(4 * warp + u) * STRIDE + lane] = w[u];
        }
        float values[4] = {0, 0, 0, 0}, keys[4] = {0, 0, 0, 0};
        if (c < EP) {
            multiply_fours<EP>(values, s->k + 4 * group, s->R + c, chunk<EP>::odd);
            multiply_fours<EP + 1>(keys, s->v + 4 * group, s->R + c * chunk<EP>::odd, 1);
        }
        add_chunk<EP>(M, s->queries, s->G, s->sums + ROWS, s->sums[2 * ROWS - 1], mine, c);
        __syncthreads();
        if (c < EP) {
#pragma unroll
            for (int u = 0; u < 4; u++) {
                values[u] *= s->sums[2 * ROWS + 4 * group + u];
                keys[u] *= s->sums[2 * ROWS + 4 * group + u];
            }
            multiply_fours<ROWS>(values, s->P + 4 * group, s->G + c, columns);
            multiply_fours<ROWS>(keys, s->W + 4 * group, s->queries + c, EP);
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int row = 4 * group + u;
            if (c >= EP) continue;
            const float phi_k = s->k[c * STRIDE + row];
            s->products[row * chunk<EP>::odd + c] = phi_k * keys[u];
            if (row >= n || c >= E) continue;
            float *const to = job.out + (first + (size_t)row) * (size_t)(3 * width) + width + head + c;
            to[0] = keys[u] * phi_slope(phi_k);
            to[width] = values[u];
        }
        if (!job.dgates) continue;
        __syncthreads();
        for (int row = warp; row < ROWS; row += warps) {
            float dot = 0;
            for (int e = lane; e < EP; e += 32) dot += s->products[row * chunk<EP>::odd + e];
            dot = lin_warp_sum(dot);
            if (lane == 0) s->dots[row] = dot;
        }
        __syncthreads();
        if (warp != 0) continue;
        double all = future;
        for (int t = ROWS - 1; t >= 0; t--) {
            future -= (double)s->dots[t] + 1e-6 * (double)s->g[t];
            if (t == lane) all = future;
        }
        if (lane >= n) continue;
        const float odds = expf(-gate_of(job, first + (size_t)lane, h));
        job.dgates[(first + (size_t)lane) * (size_t)job.H + (size_t)h] = (float)((double)(odds / (1 + odds)) * all / 16);
    }
}

/* ---- few rows of many streams ---------------------------------------------------------------------------------------------- */

// A warp for each (utterance, head), whose S is in registers, read and written once: a lane has each eighth column, and of these
// a quarter of the rows. phi(q), phi(k) and v go to all lanes through shared memory.
template <int EP> __global__ void __launch_bounds__(STEP_WARPS * 32) decayed_step(attention_job job, unsigned heads)
{
    enum { tall = EP / 4, wide = EP / 8, parts = (EP + 31) / 32 };
    LIN_SHARED(float, shared);
    const int lane = (int)threadIdx.x % 32, E = job.E, top = lane / 8 * tall, left = lane % 8;
    const unsigned pair = blockIdx.x * STEP_WARPS + threadIdx.x / 32;
    if (pair >= heads) return;
    const int b = (int)(pair / (unsigned)job.H), h = (int)(pair % (unsigned)job.H), n = job.offsets[b + 1] - job.offsets[b];
    const size_t width = (size_t)job.H * (size_t)E, head = (size_t)h * (size_t)E;
    size_t row = (size_t)job.offsets[b];
    float *const state = state_of(job, b, h);
    float *const fq = shared + threadIdx.x / 32 * (3 * EP), *const fk = fq + EP, *const fv = fk + EP;
    float S[tall][wide], z[parts], q[parts], k[parts], v[parts];
    if (n <= 0) return;
#pragma unroll
    for (int i = 0; i < tall; i++)
#pragma unroll
        for (int j = 0; j < wide; j++)
            S[i][j] = state && top + i < E && left + 8 * j < E ? state[(top + i) * E + left + 8 * j] : 0;
    const float *from = job.qkv + row * 3 * width + head + lane;
#pragma unroll
    for (int i = 0; i < parts; i++) {
        const int e = lane + 32 * i, in = e < E;
        z[i] = state && in ? state[E * E + e] : 0;
        q[i] = in ? from[32 * i] : 0;
        k[i] = in ? from[width + 32 * i] : 0;
        v[i] = in ? from[2 * width + 32 * i] : 0;
    }
    for (int t = 0; t < n; t++, row++) {
        const float a = expf(log1pf(expf(-gate_of(job, row, h))) * -0.0625f);
        float den = 0, x[wide], sum[wide];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < parts; i++) {
            const int e = lane + 32 * i, in = e < E;
            const float own_q = in ? phi<1>(q[i]) : 0, own_k = in ? phi<1>(k[i]) : 0;
            z[i] = fmaf(z[i], a, own_k);
            den = fmaf(own_q, z[i], den);
            if (e >= EP) continue;
            fq[e] = own_q;
            fk[e] = own_k;
            fv[e] = v[i];
        }
        __syncwarp();
        if (t + 1 < n) {
            from += 3 * width;
#pragma unroll
            for (int i = 0; i < parts; i++) {
                if (lane + 32 * i >= E) continue;
                q[i] = from[32 * i];
                k[i] = from[width + 32 * i];
                v[i] = from[2 * width + 32 * i];
            }
        }
        const float inverse = 1 / (lin_warp_sum(den) + LIN_ATTENTION_EPS);
#pragma unroll
        for (int j = 0; j < wide; j++) x[j] = fv[left + 8 * j], sum[j] = 0;
#pragma unroll
        for (int i = 0; i < tall; i++) {
            const float own_q = fq[top + i], own_k = fk[top + i];
#pragma unroll
            for (int j = 0; j < wide; j++) {
                S[i][j] = fmaf(own_k, x[j], S[i][j] * a);
                sum[j] = fmaf(own_q, S[i][j], sum[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < wide; j++) {
            sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], 8);
            sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], 16);
            if (lane / 8 == j % 4 && left + 8 * j < E) job.out[row * width + head + (size_t)(left + 8 * j)] = sum[j] * inverse;
        }
    }
    if (!state) return;
#pragma unroll
    for (int i = 0; i < tall; i++)
#pragma unroll
        for (int j = 0; j < wide; j++)
            if (top + i < E && left + 8 * j < E) state[(top + i) * E + left + 8 * j] = S[i][j];
#pragma unroll
    for (int i = 0; i < parts; i++)
        if (lane + 32 * i < E) state[E * E + lane + 32 * i] = z[i];
}

/* ---- the operation --------------------------------------------------------------------------------------------------------- */

template <int EP> static void forward(lin_exec *exec, const attention_job &job, unsigned heads, int longest)
{
    if (longest <= STEP_MOST) {
        const size_t bytes = STEP_WARPS * 3 * EP * sizeof(float);
        LIN_LAUNCH(exec, decayed_step<EP>, lin_cuda_blocks(heads, STEP_WARPS), STEP_WARPS * 32, bytes, job, heads);
    } else if (LIN_ALLOW_SHARED(exec, decayed_forward<EP>, sizeof(forward_tiles<EP>))) {
        LIN_LAUNCH(exec, decayed_forward<EP>, heads, chunk<EP>::threads, sizeof(forward_tiles<EP>), job);
    }
}

template <int EP> static void backward(lin_exec *exec, const attention_job &job, unsigned heads)
{
    static_assert(sizeof(key_tiles<EP>) <= 99 << 10, "a block of 8.6 and 12.0 has 99 KiB of shared memory");
    if (!LIN_ALLOW_SHARED(exec, decayed_queries<EP>, sizeof(query_tiles<EP>)) ||
        !LIN_ALLOW_SHARED(exec, decayed_keys<EP>, sizeof(key_tiles<EP>)))
        return;
    LIN_LAUNCH(exec, decayed_queries<EP>, heads, chunk<EP>::threads, sizeof(query_tiles<EP>), job);
    LIN_LAUNCH(exec, decayed_keys<EP>, heads, chunk<EP>::threads, sizeof(key_tiles<EP>), job);
}

void lin_cuda_decayed_attention_forward(lin_exec *exec, float *y, const float *qkv, const float *gates, int constant,
                                        const lin_segments *segments, int H, int E, float *const *states, size_t at)
{
    const attention_job job = {.qkv = qkv, .gates = gates, .out = y, .offsets = segments->offsets, .states = states, .at = at,
                               .H = H, .E = E, .constant = constant};
    const unsigned heads = (unsigned)segments->B * (unsigned)H;
    if (segments->B == 0 || segments->rows == 0) return;
    if (E <= 32) forward<32>(exec, job, heads, segments->longest);
    else if (E <= 40) forward<40>(exec, job, heads, segments->longest);
    else if (E <= 64) forward<64>(exec, job, heads, segments->longest);
    else lin_attention_forward_general(exec, job, segments, 1);
}

void lin_cuda_decayed_attention_backward(lin_exec *exec, float *dqkv, float *dgates, const float *dy, const float *qkv,
                                         const float *gates, int constant, const float *y, const lin_segments *segments, int H,
                                         int E)
{
    attention_job job = {.qkv = qkv, .y = y, .dy = dy, .gates = gates, .out = dqkv,
                         .offsets = segments->offsets, .dgates = dgates, .H = H, .E = E, .constant = constant};
    const unsigned heads = (unsigned)segments->B * (unsigned)H;
    if (segments->B == 0 || segments->rows == 0) return;
    if (E > 64) {
        lin_attention_backward_general(exec, job, segments, 1);
        return;
    }
    job.terms = (float *)lin_cuda_scratch(exec, (size_t)segments->rows * (size_t)H * 2 * sizeof(float));
    if (!job.terms) return;
    if (E <= 32) backward<32>(exec, job, heads);
    else if (E <= 40) backward<40>(exec, job, heads);
    else backward<64>(exec, job, heads);
}
