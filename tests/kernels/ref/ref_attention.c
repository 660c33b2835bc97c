// Linear attention as the explicit masked N x N sum of Katharopoulos et al. 2020, eq. 4 and 9, and linear attention that forgets.
// With A_ij the product of the decays a_m over m = j+1..i, 1 without gates, and j running over 1..i (causal) or 1..N,
//   w_ij = A_ij phi(q_i) . phi(k_j)      y_i = sum_j w_ij v_j / (sum_j w_ij + eps).
#include <math.h>

#include "tests/kernels/ref/ref.h"

#define ATTENTION_EPS 1e-6
enum { ROOT = 16 };

static double phi(double x) { return x > 0 ? x + 1 : exp(x); } // eq. 7

static double phi_derivative(double x) { return x > 0 ? 1 : exp(x); }

static double limited(double gate) { return gate < -80 ? -80 : gate; }

// log a of a gate: log sigmoid(g) / 16.
static double log_decay(double gate) { return -log1p(exp(-limited(gate))) / ROOT; }

static double log_decay_derivative(double gate) { return 1 / (1 + exp(limited(gate))) / ROOT; }

// What both operations are given; gates are NULL without decay, and constant: one for each head, not for each row and head.
typedef struct operands {
    const double *qkv, *gates;
    int constant, H, E, causal;
} operands;

// One head of one utterance: row t of q is q + t * stride (of y, y + t * stride_y), and fq, fk [T, E] are phi of q and k. sums[t]
// is the sum of log a over the rows before t; dla [T] the gradients of log a, NULL without gates.
typedef struct head {
    int T, E, causal;
    size_t stride, stride_y;
    const double *q, *k, *v;
    double *fq, *fk, *sums, *dla;
} head;

// The gate of a row.
static size_t gate_at(const operands *o, int row, int h) { return (o->constant ? 0 : (size_t)row * (size_t)o->H) + (size_t)h; }

// Head h of rows first .. end-1 of qkv [rows, 3, H, E].
static head head_of(lin_exec *exec, const operands *o, int first, int end, int h)
{
    const size_t E = (size_t)o->E, width = (size_t)o->H * E, T = (size_t)(end - first), n = T * E;
    head x = {.T = end - first, .E = o->E, .causal = o->causal, .stride = 3 * width, .stride_y = width};
    x.q = o->qkv + (size_t)first * x.stride + (size_t)h * E;
    x.k = x.q + width;
    x.v = x.k + width;
    x.fq = lin_ref_scratch(exec, 2 * n + 2 * T + 1);
    x.fk = x.fq + n;
    x.sums = x.fk + n;
    x.dla = o->gates ? x.sums + T + 1 : NULL;
    x.sums[0] = 0;
    for (size_t t = 0; t < T; t++) {
        for (size_t e = 0; e < E; e++) {
            x.fq[t * E + e] = phi(x.q[t * x.stride + e]);
            x.fk[t * E + e] = phi(x.k[t * x.stride + e]);
        }
        x.sums[t + 1] = x.sums[t] + (o->gates ? log_decay(o->gates[gate_at(o, first + (int)t, h)]) : 0);
        if (x.dla) x.dla[t] = 0;
    }
    return x;
}

// The product of a over rows from .. i.
static double decay_over(const head *x, int from, int i) { return exp(x->sums[i + 1] - x->sums[from]); }

static double weight(const head *x, int i, int j)
{
    double sum = 0;
    for (int e = 0; e < x->E; e++) sum += x->fq[i * x->E + e] * x->fk[j * x->E + e];
    return decay_over(x, j + 1, i) * sum;
}

// state [E+1, E] or NULL: the sums over all frames before the first.
static void forward_head(double *y, const head *x, double *state)
{
    const int E = x->E;
    for (int i = 0; i < x->T; i++) {
        double *out = y + (size_t)i * x->stride_y, denominator = ATTENTION_EPS, before = decay_over(x, 0, i);
        for (int m = 0; m < E; m++) out[m] = 0;
        for (int e = 0; state && e < E; e++) {
            const double query = before * x->fq[i * E + e];
            for (int m = 0; m < E; m++) out[m] += query * state[e * E + m];
            denominator += query * state[E * E + e];
        }
        for (int j = 0; j < (x->causal ? i + 1 : x->T); j++) {
            const double w = weight(x, i, j);
            for (int m = 0; m < E; m++) out[m] += w * x->v[(size_t)j * x->stride + (size_t)m];
            denominator += w;
        }
        for (int m = 0; m < E; m++) out[m] /= denominator;
    }
    for (int i = 0; state && i < (E + 1) * E; i++) state[i] *= decay_over(x, 0, x->T - 1);
    for (int j = 0; state && j < x->T; j++)
        for (int e = 0; e < E; e++) {
            const double key = decay_over(x, j + 1, x->T - 1) * x->fk[j * E + e];
            for (int m = 0; m < E; m++) state[e * E + m] += key * x->v[(size_t)j * x->stride + (size_t)m];
            state[E * E + e] += key;
        }
}

static void forward(lin_exec *exec, double *y, operands o, const lin_segments *segments, double *const *states, size_t at)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < o.H; h++) {
            double *state = o.causal && states && states[b] ? states[b] + at + (size_t)h * (size_t)((o.E + 1) * o.E) : NULL;
            double *out = y + ((size_t)offsets[b] * (size_t)o.H + (size_t)h) * (size_t)o.E;
            const head x = head_of(exec, &o, offsets[b], offsets[b + 1], h);
            forward_head(out, &x, state);
        }
}

void lin_ref_attention_forward(lin_exec *exec, double *y, const double *qkv, const lin_segments *segments, int H, int E,
                               int causal, double *const *states, size_t at)
{
    forward(exec, y, (operands){qkv, NULL, 0, H, E, causal}, segments, states, at);
}

void lin_ref_decayed_attention_forward(lin_exec *exec, double *y, const double *qkv, const double *gates, int constant,
                                       const lin_segments *segments, int H, int E, double *const *states, size_t at)
{
    forward(exec, y, (operands){qkv, gates, constant, H, E, 1}, segments, states, at);
}

// With d_i the denominator and G = dL/dy:
//   dL/dv_j  = sum_i w_ij / d_i G_i
//   dL/dw_ij = G_i . (v_j - y_i) / d_i
//   dL/dphi(q_i) = sum_j dL/dw_ij A_ij phi(k_j)      dL/dphi(k_j) = sum_i dL/dw_ij A_ij phi(q_i)
//   dL/dlog a_m = sum over i >= m > j of dL/dw_ij w_ij
// dq points to the head's part of dqkv, as x->q does into qkv.
static void backward_head(double *dq, const double *dy, const double *y, const head *x)
{
    double *dk = dq + (x->k - x->q), *dv = dq + (x->v - x->q);
    const int E = x->E;
    for (int i = 0; i < x->T; i++) {
        const int n = x->causal ? i + 1 : x->T;
        const double *out = y + (size_t)i * x->stride_y, *up = dy + (size_t)i * x->stride_y;
        double denominator = ATTENTION_EPS;
        for (int j = 0; j < n; j++) denominator += weight(x, i, j);
        for (int j = 0; j < n; j++) {
            const size_t at_i = (size_t)i * x->stride, at_j = (size_t)j * x->stride;
            const double w = weight(x, i, j), A = decay_over(x, j + 1, i);
            double dw = 0;
            for (int m = 0; m < E; m++) dw += up[m] * (x->v[at_j + (size_t)m] - out[m]) / denominator;
            for (int m = 0; m < E; m++) dv[at_j + (size_t)m] += w / denominator * up[m];
            for (int e = 0; e < E; e++) dq[at_i + (size_t)e] += dw * A * x->fk[j * E + e];
            for (int e = 0; e < E; e++) dk[at_j + (size_t)e] += dw * A * x->fq[i * E + e];
            for (int m = j + 1; x->dla && m <= i; m++) x->dla[m] += dw * w;
        }
    }
    for (int t = 0; t < x->T; t++)
        for (int e = 0; e < E; e++) {
            const size_t at = (size_t)t * x->stride + (size_t)e;
            dq[at] *= phi_derivative(x->q[at]);
            dk[at] *= phi_derivative(x->k[at]);
        }
}

static void backward(lin_exec *exec, double *dqkv, double *dgates, const double *dy, operands o, const double *y,
                     const lin_segments *segments)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < o.H; h++) {
            const head x = head_of(exec, &o, offsets[b], offsets[b + 1], h);
            double *dq = dqkv + (x.q - o.qkv);
            const size_t row = ((size_t)offsets[b] * (size_t)o.H + (size_t)h) * (size_t)o.E;
            for (int t = 0; t < x.T; t++)
                for (int part = 0; part < 3; part++)
                    for (int e = 0; e < x.E; e++) dq[(size_t)t * x.stride + (size_t)part * x.stride_y + (size_t)e] = 0;
            backward_head(dq, dy + row, y + row, &x);
            for (int t = 0; dgates && t < x.T; t++)
                dgates[(size_t)(offsets[b] + t) * (size_t)o.H + (size_t)h] =
                    x.dla[t] * log_decay_derivative(o.gates[gate_at(&o, offsets[b] + t, h)]);
        }
}

void lin_ref_attention_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *y,
                                const lin_segments *segments, int H, int E, int causal)
{
    backward(exec, dqkv, NULL, dy, (operands){qkv, NULL, 0, H, E, causal}, y, segments);
}

void lin_ref_decayed_attention_backward(lin_exec *exec, double *dqkv, double *dgates, const double *dy, const double *qkv,
                                        const double *gates, int constant, const double *y, const lin_segments *segments, int H,
                                        int E)
{
    backward(exec, dqkv, dgates, dy, (operands){qkv, gates, constant, H, E, 1}, y, segments);
}
