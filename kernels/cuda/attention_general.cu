// Linear attention for head widths without tiles in attention.cu (E > 64, or a GPU with too little shared memory): row after row,
// with the sums in global memory; correct for any E, but slow. A block processes one (utterance, head) after another; its threads
// own columns of the matrices, so that these need no barriers, and rows of q, k, v pass through shared memory.
#include "kernels/cuda/attention.h"

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
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    if (causal || sweep == 0) z[e] += k[e];
                }
                __syncthreads();
                const float d = dot(q, z, E) + LIN_ATTENTION_EPS;
                for (int m = tid; m < E; m += step) {
                    const float v = row_of(job, p, t, 2)[m];
                    float sum = 0;
                    for (int e = 0; e < E; e++) {
                        float *s = &S[(size_t)e * wide + m];
                        if (causal || sweep == 0) *s = fmaf(k[e], v, *s);
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
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    v[e] = row_of(job, p, t, 2)[e];
                    g[e] = job.dy[out_at(job, p, t) + e];
                    y[e] = job.y[out_at(job, p, t) + e];
                    if (causal || sweep == 0) z[e] += k[e];
                }
                __syncthreads();
                const float inverse = 1 / (dot(q, z, E) + LIN_ATTENTION_EPS), c = -dot(g, y, E);
                for (int e = tid; e < E; e += step) {
                    float sum = c * z[e];
                    for (int m = 0; m < E; m++) {
                        float *s = &A[(size_t)m * wide + e];
                        if (causal || sweep == 0) *s = fmaf(k[e], v[m], *s);
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
                for (int e = tid; e < E; e += step) {
                    q[e] = phi<1>(row_of(job, p, t, 0)[e]);
                    k[e] = phi<1>(row_of(job, p, t, 1)[e]);
                    v[e] = row_of(job, p, t, 2)[e];
                    g[e] = job.dy[out_at(job, p, t) + e] * terms[0];
                    if (causal || sweep == 0) z[e] = fmaf(terms[1], q[e], z[e]);
                }
                __syncthreads();
                for (int i = tid; i < E; i += step) {
                    float dk = z[i], dv = 0;
                    for (int j = 0; j < E; j++) {
                        float *a = &A[(size_t)j * wide + i], *r = &R[(size_t)j * wide + i];
                        if (causal || sweep == 0) {
                            *a = fmaf(q[i], g[j], *a);
                            *r = fmaf(q[j], g[i], *r);
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
    LIN_LAUNCH(exec, backward_general, blocks, general_threads(job.E), 6 * row, with_terms,
               (unsigned)segments->B * (unsigned)job.H, matrices, causal != 0);
}
