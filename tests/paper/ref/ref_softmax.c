// Softmax attention as the explicit N x N sum of Vaswani et al. 2017, eq. 1: with s_ij = q_i . k_j / sqrt(E), j running over 1..i
// (causal) or 1..N,   p_ij = exp(s_ij) / sum_j exp(s_ij),   y_i = sum_j p_ij v_j.
#include <assert.h>
#include <math.h>

#include "tests/kernels/ref/ref.h"

// One head of one utterance. Frame j of q, k and v is j * stride further.
typedef struct head {
    int T, E, causal;
    size_t stride;
    const double *q, *k, *v;
} head;

// Head h of rows first .. end-1 of qkv [rows, 3, H, E].
static head head_of(const double *qkv, int first, int end, int h, int H, int E, int causal)
{
    const size_t C = (size_t)H * (size_t)E;
    const double *q = qkv + (size_t)first * 3 * C + (size_t)h * (size_t)E;
    return (head){.T = end - first, .E = E, .causal = causal, .stride = 3 * C, .q = q, .k = q + C, .v = q + 2 * C};
}

// The number of frames that row i sees.
static int seen(const head *x, int i) { return x->causal ? i + 1 : x->T; }

static double score(const head *x, int i, int j)
{
    const double *q = x->q + (size_t)i * x->stride, *k = x->k + (size_t)j * x->stride;
    double sum = 0;
    for (int e = 0; e < x->E; e++) sum += q[e] * k[e];
    return sum / sqrt(x->E);
}

// p_i1 .. p_in of row i, n = seen(x, i); returns ln sum_j exp(s_ij).
static double probabilities(double *p, const head *x, int i)
{
    int n = seen(x, i);
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < n; j++) {
        p[j] = score(x, i, j);
        top = fmax(top, p[j]);
    }
    for (int j = 0; j < n; j++) sum += exp(p[j] - top);
    double lse = top + log(sum);
    for (int j = 0; j < n; j++) p[j] = exp(p[j] - lse);
    return lse;
}

// y_i from p_i.
static void weigh(double *y, const double *p, const head *x, int i)
{
    for (int e = 0; e < x->E; e++) {
        y[e] = 0;
        for (int j = 0; j < seen(x, i); j++) y[e] += p[j] * x->v[(size_t)j * x->stride + (size_t)e];
    }
}

void lin_ref_softmax_forward(lin_exec *exec, double *y, double *lse, const double *qkv, const lin_segments *segments, int H,
                             int E, int causal, const lin_cache *caches, int layer)
{
    const int *offsets = segments->offsets;
    (void)layer;
    assert(!caches); // of streams: backends are compared with their own results without
    for (int b = 0; b < segments->B; b++) {
        double *p = lin_ref_scratch(exec, (size_t)(offsets[b + 1] - offsets[b]) + 1);
        for (int h = 0; h < H; h++) {
            const head x = head_of(qkv, offsets[b], offsets[b + 1], h, H, E, causal);
            for (int i = 0; i < x.T; i++) {
                size_t at = (size_t)(offsets[b] + i) * (size_t)H + (size_t)h;
                const double sum = probabilities(p, &x, i);
                if (lse) lse[at] = sum;
                weigh(y + at * (size_t)E, p, &x, i);
            }
        }
    }
}

// With G = dL/dy:   dL/dv_j = sum_i p_ij G_i,   dL/ds_ij = p_ij (G_i . v_j - G_i . y_i),
// dL/dq_i = sum_j dL/ds_ij k_j / sqrt(E),   dL/dk_j = sum_i dL/ds_ij q_i / sqrt(E).
// Adds row i's part; dq, dk and dv point to the head's parts of dqkv. ds, which may be p, receives dL/ds_i1 .. dL/ds_in.
static void backward_row(double *dq, double *ds, const double *p, const double *dy, const double *y, const head *x, int i)
{
    double *dk = dq + (x->k - x->q), *dv = dq + (x->v - x->q), own = 0;
    size_t at_i = (size_t)i * x->stride;
    for (int e = 0; e < x->E; e++) own += dy[e] * y[e];
    for (int j = 0; j < seen(x, i); j++) {
        size_t at_j = (size_t)j * x->stride;
        double dp = 0;
        for (int e = 0; e < x->E; e++) dp += dy[e] * x->v[at_j + (size_t)e];
        for (int e = 0; e < x->E; e++) dv[at_j + (size_t)e] += p[j] * dy[e];
        ds[j] = p[j] * (dp - own);
        for (int e = 0; e < x->E; e++) dq[at_i + (size_t)e] += ds[j] * x->k[at_j + (size_t)e] / sqrt(x->E);
        for (int e = 0; e < x->E; e++) dk[at_j + (size_t)e] += ds[j] * x->q[at_i + (size_t)e] / sqrt(x->E);
    }
}

void lin_ref_softmax_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *y,
                              const double *lse, const lin_segments *segments, int H, int E, int causal)
{
    const int *offsets = segments->offsets;
    size_t C = (size_t)H * (size_t)E;
    double *p = lin_ref_scratch(exec, (size_t)segments->rows + 1);
    for (size_t i = 0; i < (size_t)segments->rows * 3 * C; i++) dqkv[i] = 0;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const head x = head_of(qkv, offsets[b], offsets[b + 1], h, H, E, causal);
            for (int i = 0; i < x.T; i++) {
                size_t at = (size_t)(offsets[b] + i) * (size_t)H + (size_t)h;
                for (int j = 0; j < seen(&x, i); j++) p[j] = exp(score(&x, i, j) - lse[at]);
                backward_row(dqkv + (x.q - qkv), p, p, dy + at * (size_t)E, y + at * (size_t)E, &x, i);
            }
        }
}

void lin_ref_softmax_naive_forward(lin_exec *exec, double *y, double *p, const double *qkv, const lin_segments *segments, int H,
                                   int E, int causal)
{
    (void)exec;
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const head x = head_of(qkv, offsets[b], offsets[b + 1], h, H, E, causal);
            for (int i = 0; i < x.T; i++, p += x.T) {
                probabilities(p, &x, i);
                for (int j = seen(&x, i); j < x.T; j++) p[j] = 0;
                weigh(y + ((size_t)(offsets[b] + i) * (size_t)H + (size_t)h) * (size_t)E, p, &x, i);
            }
        }
}

void lin_ref_softmax_naive_backward(lin_exec *exec, double *dqkv, double *p, const double *dy, const double *qkv, const double *y,
                                    const lin_segments *segments, int H, int E, int causal)
{
    (void)exec;
    const int *offsets = segments->offsets;
    size_t C = (size_t)H * (size_t)E;
    for (size_t i = 0; i < (size_t)segments->rows * 3 * C; i++) dqkv[i] = 0;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const head x = head_of(qkv, offsets[b], offsets[b + 1], h, H, E, causal);
            for (int i = 0; i < x.T; i++, p += x.T) {
                size_t at = ((size_t)(offsets[b] + i) * (size_t)H + (size_t)h) * (size_t)E;
                backward_row(dqkv + (x.q - qkv), p, p, dy + at, y + at, &x, i);
            }
        }
}
