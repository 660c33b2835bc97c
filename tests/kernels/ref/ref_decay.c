// Linear attention that forgets, as the explicit masked N x N sum: with A_ij the product of a_m over m = j+1..i,
//   w_ij = A_ij phi(q_i) . phi(k_j)      y_i = sum_{j<=i} w_ij v_j / (sum_{j<=i} w_ij + eps).
#include <math.h>

#include "tests/kernels/ref/ref.h"

#define ATTENTION_EPS 1e-6
enum { ROOT = 16 };

static double phi(double x) { return x > 0 ? x + 1 : exp(x); } // Katharopoulos et al. 2020, eq. 7

static double phi_derivative(double x) { return x > 0 ? 1 : exp(x); }

static double limited(double gate) { return gate < -80 ? -80 : gate; }

// log a of a gate: log sigmoid(g) / 16.
static double log_decay(double gate) { return -log1p(exp(-limited(gate))) / ROOT; }

static double log_decay_derivative(double gate) { return 1 / (1 + exp(limited(gate))) / ROOT; }

// One head of one utterance: row t of q is q + t * stride (of y, y + t * stride_y); sums[t] is the sum of log a over the rows
// before t.
typedef struct head {
    int T, E;
    size_t stride, stride_y;
    const double *q, *k, *v;
    double *sums, *dla; // [T + 1], [T]
} head;

// Head h of rows first .. end-1. sums is NULL if memory is short.
static head head_of(lin_exec *exec, const double *qkv, const double *gates, int constant, int first, int end, int h, int H, int E)
{
    const size_t width = (size_t)H * (size_t)E;
    head x = {.T = end - first, .E = E, .stride = 3 * width, .stride_y = width};
    x.q = qkv + (size_t)first * x.stride + (size_t)h * (size_t)E;
    x.k = x.q + width;
    x.v = x.k + width;
    x.sums = lin_ref_scratch(exec, 2 * (size_t)x.T + 1);
    if (!x.sums) return x;
    x.dla = x.sums + x.T + 1;
    x.sums[0] = 0;
    for (int t = 0; t < x.T; t++)
        x.sums[t + 1] = x.sums[t] + log_decay(gates[(constant ? 0 : (size_t)(first + t) * (size_t)H) + (size_t)h]);
    return x;
}

// The product of a over rows from .. i.
static double decay_over(const head *x, int from, int i) { return exp(x->sums[i + 1] - x->sums[from]); }

static double weight(const head *x, int i, int j)
{
    double sum = 0;
    for (int e = 0; e < x->E; e++)
        sum += phi(x->q[(size_t)i * x->stride + (size_t)e]) * phi(x->k[(size_t)j * x->stride + (size_t)e]);
    return decay_over(x, j + 1, i) * sum;
}

// state [E+1, E] or NULL: the sums at the frame before the first.
static void forward_head(double *y, const head *x, double *state)
{
    const int E = x->E;
    for (int i = 0; i < x->T; i++) {
        double *out = y + (size_t)i * x->stride_y, denominator = ATTENTION_EPS, before = decay_over(x, 0, i);
        for (int m = 0; m < E; m++) out[m] = 0;
        for (int e = 0; state && e < E; e++) {
            const double query = before * phi(x->q[(size_t)i * x->stride + (size_t)e]);
            for (int m = 0; m < E; m++) out[m] += query * state[e * E + m];
            denominator += query * state[E * E + e];
        }
        for (int j = 0; j <= i; j++) {
            const double w = weight(x, i, j);
            for (int m = 0; m < E; m++) out[m] += w * x->v[(size_t)j * x->stride + (size_t)m];
            denominator += w;
        }
        for (int m = 0; m < E; m++) out[m] /= denominator;
    }
    for (int i = 0; state && i < (E + 1) * E; i++) state[i] *= decay_over(x, 0, x->T - 1);
    for (int j = 0; state && j < x->T; j++)
        for (int e = 0; e < E; e++) {
            const double key = decay_over(x, j + 1, x->T - 1) * phi(x->k[(size_t)j * x->stride + (size_t)e]);
            for (int m = 0; m < E; m++) state[e * E + m] += key * x->v[(size_t)j * x->stride + (size_t)m];
            state[E * E + e] += key;
        }
}

void lin_ref_decayed_attention_forward(lin_exec *exec, double *y, const double *qkv, const double *gates, int constant,
                                       const lin_segments *segments, int H, int E, double *const *states, size_t at)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            double *state = states && states[b] ? states[b] + at + (size_t)h * (size_t)((E + 1) * E) : NULL;
            double *out = y + ((size_t)offsets[b] * (size_t)H + (size_t)h) * (size_t)E;
            const head x = head_of(exec, qkv, gates, constant, offsets[b], offsets[b + 1], h, H, E);
            if (x.sums) {
                forward_head(out, &x, state);
                continue;
            }
            for (int i = 0; i < x.T * E; i++) out[(size_t)(i / E) * x.stride_y + (size_t)(i % E)] = NAN;
        }
}

// With d_i the denominator and G = dL/dy:
//   dL/dv_j  = sum_i w_ij / d_i G_i
//   dL/dw_ij = G_i . (v_j - y_i) / d_i
//   dL/dphi(q_i) = sum_j dL/dw_ij A_ij phi(k_j)      dL/dphi(k_j) = sum_i dL/dw_ij A_ij phi(q_i)
//   dL/dlog a_m = sum over i >= m > j of dL/dw_ij w_ij
static void backward_head(double *dq, const double *dy, const double *y, const head *x)
{
    double *dk = dq + (x->k - x->q), *dv = dq + (x->v - x->q);
    const int E = x->E;
    for (int i = 0; i < x->T; i++) {
        const double *out = y + (size_t)i * x->stride_y, *up = dy + (size_t)i * x->stride_y;
        double denominator = ATTENTION_EPS;
        for (int j = 0; j <= i; j++) denominator += weight(x, i, j);
        for (int j = 0; j <= i; j++) {
            const size_t at_i = (size_t)i * x->stride, at_j = (size_t)j * x->stride;
            const double w = weight(x, i, j), A = decay_over(x, j + 1, i);
            double dw = 0;
            for (int m = 0; m < E; m++) dw += up[m] * (x->v[at_j + (size_t)m] - out[m]) / denominator;
            for (int m = 0; m < E; m++) dv[at_j + (size_t)m] += w / denominator * up[m];
            for (int e = 0; e < E; e++) dq[at_i + (size_t)e] += dw * A * phi(x->k[at_j + (size_t)e]);
            for (int e = 0; e < E; e++) dk[at_j + (size_t)e] += dw * A * phi(x->q[at_i + (size_t)e]);
            for (int m = j + 1; m <= i; m++) x->dla[m] += dw * w;
        }
    }
    for (int t = 0; t < x->T; t++)
        for (int e = 0; e < E; e++) {
            const size_t at = (size_t)t * x->stride + (size_t)e;
            dq[at] *= phi_derivative(x->q[at]);
            dk[at] *= phi_derivative(x->k[at]);
        }
}

void lin_ref_decayed_attention_backward(lin_exec *exec, double *dqkv, double *dgates, const double *dy, const double *qkv,
                                        const double *gates, int constant, const double *y, const lin_segments *segments, int H,
                                        int E)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const head x = head_of(exec, qkv, gates, constant, offsets[b], offsets[b + 1], h, H, E);
            double *dq = dqkv + (x.q - qkv);
            const size_t row = ((size_t)offsets[b] * (size_t)H + (size_t)h) * (size_t)E;
            for (int t = 0; t < x.T; t++) {
                if (x.sums) x.dla[t] = 0;
                for (int part = 0; part < 3; part++)
                    for (int e = 0; e < E; e++)
                        dq[(size_t)t * x.stride + (size_t)part * x.stride_y + (size_t)e] = x.sums ? 0 : NAN;
            }
            if (x.sums) backward_head(dq, dy + row, y + row, &x);
            for (int t = 0; dgates && t < x.T; t++) {
                const size_t from = (size_t)(offsets[b] + t) * (size_t)H + (size_t)h;
                dgates[from] = x.sums ? x.dla[t] * log_decay_derivative(gates[constant ? (size_t)h : from]) : NAN;
            }
        }
}
