// Norms of gradients, clipping, and the step of Adam and RAdam; the formula is given at lin_adam_step in kernels/ops.h.
//
// One launch covers all tensors: they are divided into spans, one per block. A block finds its tensor in a table that is passed
// to the kernel by value (so that a graph holds it). Networks of more than LISTED tensors need several launches.
#include <math.h>

#include "kernels/cuda/cuda.h"

enum {
    LISTED = 200, // tensors per launch: the table must fit the 4 KiB of kernel arguments that all drivers accept
    SPAN = 4096,  // elements per block
    OPTIMIZER_THREADS = 256,
};

typedef struct tensor_list {
    size_t offsets[LISTED + 1];
    int spans[LISTED + 1]; // number of the first span of each tensor
    unsigned char decay[LISTED];
    int first, n; // tensors first .. first+n-1
} tensor_list;

// As many tensors from `first` on as fit a list.
static tensor_list list_from(const lin_tensors *tensors, int first)
{
    tensor_list list;
    list.first = first;
    list.n = tensors->n - first < LISTED ? tensors->n - first : LISTED;
    list.spans[0] = 0;
    list.offsets[0] = tensors->offsets[first];
    for (int i = 0; i < list.n; i++) {
        list.offsets[i + 1] = tensors->offsets[first + i + 1];
        list.spans[i + 1] = list.spans[i] + (int)((list.offsets[i + 1] - list.offsets[i] + SPAN - 1) / SPAN);
        list.decay[i] = tensors->decay ? tensors->decay[first + i] : 0;
    }
    return list;
}

// The tensor of a span. A macro, because passing the list to a function would copy it.
#define TENSOR_OF(list, span, tensor)                                                                                            \
    int tensor = 0;                                                                                                              \
    for (int high = (list).n - 1; tensor < high;) {                                                                              \
        const int middle = (tensor + high) / 2;                                                                                  \
        if ((list).spans[middle + 1] > (span)) high = middle;                                                                    \
        else tensor = middle + 1;                                                                                                \
    }

// Number of elements before p reaches a 16-byte boundary.
static __device__ __forceinline__ size_t unaligned(const float *p, size_t n)
{
    const size_t head = ((16 - ((uintptr_t)p & 15)) & 15) / 4;
    return head < n ? head : n;
}

/* ---- norms ----------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ double square(float x) { return (double)x * (double)x; }

static __global__ void sum_spans(double *partials, const float *__restrict__ x, tensor_list list)
{
    LIN_SHARED(double, shared);
    const int span = (int)blockIdx.x;
    TENSOR_OF(list, span, tensor)
    const size_t from = list.offsets[tensor] + (size_t)(span - list.spans[tensor]) * SPAN, left = list.offsets[tensor + 1] - from;
    const size_t n = left < (size_t)SPAN ? left : (size_t)SPAN, head = unaligned(x + from, n), fours = (n - head) / 4;
    const float4 *middle = (const float4 *)(x + from + head);
    double sum = 0;
    if (threadIdx.x < head) sum += square(x[from + threadIdx.x]);
    for (size_t i = threadIdx.x; i < fours; i += OPTIMIZER_THREADS) {
        const float4 v = middle[i];
        sum += square(v.x) + square(v.y) + (square(v.z) + square(v.w));
    }
    const size_t tail = head + 4 * fours + threadIdx.x;
    if (tail < n) sum += square(x[from + tail]);
    sum = lin_block_sum(sum, shared, OPTIMIZER_THREADS / 32);
    if (threadIdx.x == 0) partials[span] = sum;
}

// One warp per tensor.
static __global__ void sum_tensors(double *norms, const double *partials, tensor_list list)
{
    const int tensor = (int)((blockIdx.x * OPTIMIZER_THREADS + threadIdx.x) / 32);
    if (tensor >= list.n) return; // the whole warp returns
    double sum = 0;
    for (int i = list.spans[tensor] + (int)(threadIdx.x % 32); i < list.spans[tensor + 1]; i += 32) sum += partials[i];
    sum = lin_warp_sum(sum);
    if (threadIdx.x % 32 == 0) norms[list.first + tensor] = sum;
}

void lin_cuda_sum_squares(lin_exec *exec, double *norms, const float *x, const lin_tensors *tensors)
{
    for (int first = 0; first < tensors->n; first += LISTED) {
        const tensor_list list = list_from(tensors, first);
        const int spans = list.spans[list.n];
        double *partials = (double *)lin_cuda_scratch(exec, ((size_t)spans + 1) * sizeof(double));
        if (!partials) return;
        if (spans) LIN_LAUNCH(exec, sum_spans, (unsigned)spans, OPTIMIZER_THREADS, 32 * sizeof(double), partials, x, list);
        LIN_LAUNCH(exec, sum_tensors, lin_cuda_blocks((size_t)list.n, OPTIMIZER_THREADS / 32), OPTIMIZER_THREADS, 0, norms,
                   partials, list);
    }
}

/* ---- clipping -------------------------------------------------------------------------------------------------------------- */

// One block. Shared memory: a double and an int per warp.
static __global__ void clip_tensors(double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor)
{
    LIN_SHARED(double, sums);
    int *firsts = (int *)(sums + 32), bad = n;
    double sum = 0;
    if (tally->bad) return; // all threads return: it is not written before the barriers below
    for (int i = (int)threadIdx.x; i < n; i += OPTIMIZER_THREADS) {
        sum += norms[i];
        if (!isfinite(norms[i]) && i < bad) bad = i;
    }
    for (int o = 16; o; o /= 2) bad = min(bad, __shfl_xor_sync(0xffffffffu, bad, o));
    if (threadIdx.x % 32 == 0) firsts[threadIdx.x / 32] = bad;
    const double total = lin_block_sum(sum, sums, OPTIMIZER_THREADS / 32);
    for (int i = 0; i < OPTIMIZER_THREADS / 32; i++) bad = min(bad, firsts[i]);
    if (bad < n) {
        if (threadIdx.x == 0) {
            tally->bad = LIN_BAD_GRADIENT;
            tally->bad_index = bad;
        }
        return;
    }
    if (threadIdx.x == 0) {
        tally->norm = sqrt(total);
        tally->steps++;
    }
    for (int i = (int)threadIdx.x; i < n; i += OPTIMIZER_THREADS) {
        const double size = sqrt(per_tensor ? norms[i] : total);
        scale[i] = most > 0 && size > most ? most / size : 1;
    }
}

void lin_cuda_clip(lin_exec *exec, double *scale, lin_tally *tally, const double *norms, int n, double most, int per_tensor)
{
    LIN_LAUNCH(exec, clip_tensors, 1, OPTIMIZER_THREADS, 32 * (sizeof(double) + sizeof(int)), scale, tally, norms, n, most,
               per_tensor);
}

/* ---- the step -------------------------------------------------------------------------------------------------------------- */

// The step for one tensor in single precision, as the CPU does it.
typedef struct adam_factors {
    float factor, l2, shrink, b1, b2, c1, c2, rate, v_scale, eps;
    int adaptive;
} adam_factors;

static __device__ __forceinline__ adam_factors factors_of(const lin_adam_step *step, double scale, int decay)
{
    const double weight_decay = decay ? step->weight_decay : 0;
    return {.factor = (float)scale, .l2 = step->decoupled ? 0.0f : (float)weight_decay,
            .shrink = step->decoupled ? (float)(1 - step->lr * weight_decay) : 1.0f, .b1 = (float)step->beta1,
            .b2 = (float)step->beta2, .c1 = (float)(1 - step->beta1), .c2 = (float)(1 - step->beta2),
            .rate = (float)step->step_size, .v_scale = (float)step->v_scale, .eps = (float)step->eps, .adaptive = step->adaptive};
}

static __device__ __forceinline__ void adam_element(const adam_factors &f, float grad, float &p, float &m, float &v)
{
    const float g = f.factor * grad + f.l2 * p;
    m = f.b1 * m + f.c1 * g;
    v = f.b2 * v + f.c2 * g * g;
    const float change = f.adaptive ? m / (sqrtf(v) * f.v_scale + f.eps) : m;
    p = f.shrink * p - f.rate * change;
}

// together: the four arrays have the same offset from a 16-byte boundary.
static __global__ void adam_spans(float *__restrict__ p, const float *__restrict__ grad, float *__restrict__ m,
                                  float *__restrict__ v, const double *scale, const lin_adam_step *step, const lin_tally *tally,
                                  int together, tensor_list list)
{
    if (tally && tally->bad) return;
    const int span = (int)blockIdx.x;
    TENSOR_OF(list, span, tensor)
    const adam_factors f = factors_of(step, scale[list.first + tensor], list.decay[tensor]);
    const size_t from = list.offsets[tensor] + (size_t)(span - list.spans[tensor]) * SPAN, left = list.offsets[tensor + 1] - from;
    const size_t n = left < (size_t)SPAN ? left : (size_t)SPAN, head = together ? unaligned(p + from, n) : n,
                 fours = (n - head) / 4;
    p += from;
    grad += from;
    m += from;
    v += from;
    for (size_t i = threadIdx.x; i < fours; i += OPTIMIZER_THREADS) {
        const size_t at = head + 4 * i;
        const float4 g4 = *(const float4 *)(grad + at);
        float4 p4 = *(float4 *)(p + at), m4 = *(float4 *)(m + at), v4 = *(float4 *)(v + at);
        adam_element(f, g4.x, p4.x, m4.x, v4.x);
        adam_element(f, g4.y, p4.y, m4.y, v4.y);
        adam_element(f, g4.z, p4.z, m4.z, v4.z);
        adam_element(f, g4.w, p4.w, m4.w, v4.w);
        *(float4 *)(p + at) = p4;
        *(float4 *)(m + at) = m4;
        *(float4 *)(v + at) = v4;
    }
    for (size_t i = threadIdx.x; i < n - 4 * fours; i += OPTIMIZER_THREADS) { // before and after them, or all
        const size_t at = i < head ? i : i + 4 * fours;
        adam_element(f, grad[at], p[at], m[at], v[at]);
    }
}

void lin_cuda_adam(lin_exec *exec, float *p, const float *grad, float *m, float *v, const lin_tensors *tensors,
                   const double *scale, const lin_adam_step *step, const lin_tally *tally)
{
    const uintptr_t stand = (uintptr_t)p & 15;
    const int together = ((uintptr_t)grad & 15) == stand && ((uintptr_t)m & 15) == stand && ((uintptr_t)v & 15) == stand;
    for (int first = 0; first < tensors->n; first += LISTED) {
        const tensor_list list = list_from(tensors, first);
        if (list.spans[list.n] == 0) continue;
        LIN_LAUNCH(exec, adam_spans, (unsigned)list.spans[list.n], OPTIMIZER_THREADS, 0, p, grad, m, v, scale, step, tally,
                   together, list);
    }
}
