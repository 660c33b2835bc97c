// Linear attention as the explicit masked N x N sum of Katharopoulos et al. 2020, eq. 4 and 9: with a_ij = phi(q_i) . phi(k_j),
// j running over 1..i (causal) or 1..N,   y_i = sum_j a_ij v_j / (sum_j a_ij + eps).
#include <math.h>

#include "tests/kernels/ref/ref.h"

#define ATTENTION_EPS 1e-6

static double phi(double x) { return x > 0 ? x + 1 : exp(x); } // eq. 7

static double phi_derivative(double x) { return x > 0 ? 1 : exp(x); }

// One head of one utterance: row t of q is q + t * stride (of y, y + t * stride_y), and fq, fk [T, E] are phi of q and k.
typedef struct head {
    int T, E;
    size_t stride, stride_y;
    const double *q, *k, *v;
    double *fq, *fk;
} head;

// Head h of rows first .. end-1 of qkv [rows, 3, H, E]. fq is NULL if memory is short.
static head head_of(lin_exec *exec, const double *qkv, int first, int end, int h, int H, int E)
{
    size_t width = (size_t)H * (size_t)E, n = (size_t)(end - first) * (size_t)E;
    head x = {.T = end - first, .E = E, .stride = 3 * width, .stride_y = width};
    x.q = qkv + (size_t)first * x.stride + (size_t)h * (size_t)E;
    x.k = x.q + width;
    x.v = x.k + width;
    x.fq = lin_ref_scratch(exec, 2 * n);
    x.fk = x.fq ? x.fq + n : NULL;
    for (size_t t = 0; x.fq && t < (size_t)x.T; t++)
        for (size_t e = 0; e < (size_t)E; e++) {
            x.fq[t * (size_t)E + e] = phi(x.q[t * x.stride + e]);
            x.fk[t * (size_t)E + e] = phi(x.k[t * x.stride + e]);
        }
    return x;
}

// a_ij of eq. 4.
static double weight(const head *x, int i, int j)
{
    double sum = 0;
    for (int e = 0; e < x->E; e++) sum += x->fq[i * x->E + e] * x->fk[j * x->E + e];
    return sum;
}

// state [E+1, E] or NULL: the sums over all frames before the first.
static void forward_head(double *y, const head *x, int causal, double *state)
{
    int E = x->E;
    for (int i = 0; i < x->T; i++) {
        double *out = y + (size_t)i * x->stride_y, denominator = ATTENTION_EPS;
        for (int m = 0; m < E; m++) out[m] = 0;
        for (int e = 0; state && e < E; e++) {
            for (int m = 0; m < E; m++) out[m] += x->fq[i * E + e] * state[e * E + m];
            denominator += x->fq[i * E + e] * state[E * E + e];
        }
        for (int j = 0; j < (causal ? i + 1 : x->T); j++) {
            double a = weight(x, i, j);
            for (int m = 0; m < E; m++) out[m] += a * x->v[(size_t)j * x->stride + (size_t)m];
            denominator += a;
        }
        for (int m = 0; m < E; m++) out[m] /= denominator;
    }
    for (int j = 0; state && j < x->T; j++)
        for (int e = 0; e < E; e++) {
            for (int m = 0; m < E; m++) state[e * E + m] += x->fk[j * E + e] * x->v[(size_t)j * x->stride + (size_t)m];
            state[E * E + e] += x->fk[j * E + e];
        }
}

void lin_ref_attention_forward(lin_exec *exec, double *y, const double *qkv, const lin_segments *segments, int H, int E,
                               int causal, double *const *states, size_t at)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            double *state = causal && states && states[b] ? states[b] + at + (size_t)h * (size_t)((E + 1) * E) : NULL;
            double *out = y + ((size_t)offsets[b] * (size_t)H + (size_t)h) * (size_t)E;
            head x = head_of(exec, qkv, offsets[b], offsets[b + 1], h, H, E);
            if (x.fq) {
                forward_head(out, &x, causal, state);
                continue;
            }
            for (int i = 0; i < x.T * E; i++) out[(size_t)(i / E) * x.stride_y + (size_t)(i % E)] = NAN;
        }
}

// With d_i the denominator and G = dL/dy:
//   dL/dv_j  = sum_i a_ij / d_i G_i
//   dL/da_ij = G_i . (v_j - y_i) / d_i
//   dL/dphi(q_i) = sum_j dL/da_ij phi(k_j)      dL/dphi(k_j) = sum_i dL/da_ij phi(q_i)
// dq points to the head's part of dqkv, as x->q does into qkv.
static void backward_head(double *dq, const double *dy, const double *y, const head *x, int causal)
{
    double *dk = dq + (x->k - x->q), *dv = dq + (x->v - x->q);
    int E = x->E;
    for (int i = 0; i < x->T; i++) {
        int n = causal ? i + 1 : x->T;
        const double *out = y + (size_t)i * x->stride_y, *up = dy + (size_t)i * x->stride_y;
        double denominator = ATTENTION_EPS;
        for (int j = 0; j < n; j++) denominator += weight(x, i, j);
        for (int j = 0; j < n; j++) {
            size_t at_i = (size_t)i * x->stride, at_j = (size_t)j * x->stride;
            double a = weight(x, i, j), da = 0;
            for (int m = 0; m < E; m++) da += up[m] * (x->v[at_j + (size_t)m] - out[m]) / denominator;
            for (int m = 0; m < E; m++) dv[at_j + (size_t)m] += a / denominator * up[m];
            for (int e = 0; e < E; e++) dq[at_i + (size_t)e] += da * x->fk[j * E + e];
            for (int e = 0; e < E; e++) dk[at_j + (size_t)e] += da * x->fq[i * E + e];
        }
    }
    for (int t = 0; t < x->T; t++)
        for (int e = 0; e < E; e++) {
            size_t at = (size_t)t * x->stride + (size_t)e;
            dq[at] *= phi_derivative(x->q[at]);
            dk[at] *= phi_derivative(x->k[at]);
        }
}

void lin_ref_attention_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *y,
                                const lin_segments *segments, int H, int E, int causal)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            head x = head_of(exec, qkv, offsets[b], offsets[b + 1], h, H, E);
            double *dq = dqkv + (x.q - qkv);
            size_t row = ((size_t)offsets[b] * (size_t)H + (size_t)h) * (size_t)E;
            for (int t = 0; t < x.T; t++)
                for (int part = 0; part < 3; part++)
                    for (int e = 0; e < E; e++) dq[(size_t)t * x.stride + (size_t)part * x.stride_y + (size_t)e] = x.fq ? 0 : NAN;
            if (x.fq) backward_head(dq, dy + row, y + row, &x, causal);
        }
}
