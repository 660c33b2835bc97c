// Linear attention as the explicit masked N x N sum of Katharopoulos et al. 2020, eq. 4 and 9: with a_ij = phi(q_i) . phi(k_j),
// j running over 1..i (causal) or 1..N,   y_i = sum_j a_ij v_j / (sum_j a_ij + eps).
#include <math.h>

#include "kernels/ref/ref.h"

#define ATTENTION_EPS 1e-6

static double phi(double x) { return x > 0 ? x + 1 : exp(x); } // eq. 7

static double phi_derivative(double x) { return x > 0 ? 1 : exp(x); }

// Row t, part 0 (q), 1 (k) or 2 (v), head h of qkv [rows, 3, H, E].
static size_t at(int t, int part, int h, int H, int E)
{
    return (((size_t)t * 3 + (size_t)part) * (size_t)H + (size_t)h) * (size_t)E;
}

static double dot_phi(const double *q, const double *k, int E)
{
    double sum = 0;
    for (int e = 0; e < E; e++) sum += phi(q[e]) * phi(k[e]);
    return sum;
}

// One utterance, one head. state [E+1, E] or NULL: what the frames before the first have left, as additive terms.
static void forward_head(double *y, const double *qkv, int T, int h, int H, int E, int causal, double *state)
{
    for (int i = 0; i < T; i++) {
        const double *q = qkv + at(i, 0, h, H, E);
        double *out = y + ((size_t)i * (size_t)H + (size_t)h) * (size_t)E, denominator = ATTENTION_EPS;
        for (int m = 0; m < E; m++) out[m] = 0;
        for (int e = 0; state && e < E; e++) {
            for (int m = 0; m < E; m++) out[m] += phi(q[e]) * state[e * E + m];
            denominator += phi(q[e]) * state[E * E + e];
        }
        for (int j = 0; j < (causal ? i + 1 : T); j++) {
            const double *v = qkv + at(j, 2, h, H, E);
            double a = dot_phi(q, qkv + at(j, 1, h, H, E), E);
            for (int m = 0; m < E; m++) out[m] += a * v[m];
            denominator += a;
        }
        for (int m = 0; m < E; m++) out[m] /= denominator;
    }
    for (int j = 0; state && j < T; j++) {
        const double *k = qkv + at(j, 1, h, H, E), *v = qkv + at(j, 2, h, H, E);
        for (int e = 0; e < E; e++) {
            for (int m = 0; m < E; m++) state[e * E + m] += phi(k[e]) * v[m];
            state[E * E + e] += phi(k[e]);
        }
    }
}

void lin_ref_attention_forward(lin_exec *exec, double *y, const double *qkv, const int *offsets, int B, int H, int E, int causal,
                               double *const *states)
{
    (void)exec;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++) {
            double *state = causal && states && states[b] ? states[b] + (size_t)h * (size_t)((E + 1) * E) : NULL;
            forward_head(y + (size_t)offsets[b] * (size_t)(H * E), qkv + at(offsets[b], 0, 0, H, E), offsets[b + 1] - offsets[b], h, H,
                         E, causal, state);
        }
}

// One utterance, one head. With d_i the denominator and G = dL/dy:
//   dL/dv_j  = sum_i a_ij / d_i G_i
//   dL/da_ij = G_i . (v_j - y_i) / d_i
//   dL/dphi(q_i) = sum_j dL/da_ij phi(k_j)      dL/dphi(k_j) = sum_i dL/da_ij phi(q_i)
static void backward_head(double *dqkv, const double *dy, const double *qkv, const double *y, int T, int h, int H, int E, int causal)
{
    for (int i = 0; i < T; i++)
        for (int part = 0; part < 3; part++)
            for (int e = 0; e < E; e++) dqkv[at(i, part, h, H, E) + (size_t)e] = 0;
    for (int i = 0; i < T; i++) {
        int n = causal ? i + 1 : T;
        const double *q = qkv + at(i, 0, h, H, E);
        const double *out = y + ((size_t)i * (size_t)H + (size_t)h) * (size_t)E;
        const double *up = dy + ((size_t)i * (size_t)H + (size_t)h) * (size_t)E;
        double denominator = ATTENTION_EPS;
        for (int j = 0; j < n; j++) denominator += dot_phi(q, qkv + at(j, 1, h, H, E), E);
        for (int j = 0; j < n; j++) {
            const double *k = qkv + at(j, 1, h, H, E), *v = qkv + at(j, 2, h, H, E);
            double *dq = dqkv + at(i, 0, h, H, E), *dk = dqkv + at(j, 1, h, H, E), *dv = dqkv + at(j, 2, h, H, E);
            double a = dot_phi(q, k, E), da = 0;
            for (int m = 0; m < E; m++) da += up[m] * (v[m] - out[m]) / denominator;
            for (int m = 0; m < E; m++) dv[m] += a / denominator * up[m];
            for (int e = 0; e < E; e++) dq[e] += da * phi(k[e]) * phi_derivative(q[e]);
            for (int e = 0; e < E; e++) dk[e] += da * phi(q[e]) * phi_derivative(k[e]);
        }
    }
}

void lin_ref_attention_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *y, const int *offsets,
                                int B, int H, int E, int causal)
{
    (void)exec;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++) {
            size_t row = (size_t)offsets[b] * (size_t)(H * E), row3 = at(offsets[b], 0, 0, H, E);
            backward_head(dqkv + row3, dy + row, qkv + row3, y + row, offsets[b + 1] - offsets[b], h, H, E, causal);
        }
}
