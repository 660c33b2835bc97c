// Linear attention with other feature maps, as the explicit N x N sum (Katharopoulos et al. 2020, eq. 4 and 9): with a_ij =
// phi(q_i) . phi(k_j), j running over 1..i (causal) or 1..N,   y_i = sum_j a_ij v_j / (sum_j a_ij + eps).
// For LIN_MAP_POLY2 a_ij = (q_i . k_j / sqrt(E) + 1)^2; its features serve only the states.
#include <math.h>

#include "tests/kernels/ref/ref.h"

#define ATTENTION_EPS 1e-6

// One head of one utterance: row t of q is q + t * stride (of y, y + t * stride_y). fq, fk [T, D]: phi of q and k; gq, gk [T, D]:
// the gradients of these, in the backward pass of LIN_MAP_RANDOM only. omega [D, E].
typedef struct head {
    int T, E, D;
    lin_map_kind kind;
    size_t stride, stride_y;
    const double *q, *k, *v, *omega;
    double *fq, *fk, *gq, *gk;
} head;

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// phi(x) [D]; x [E].
static void features(double *phi, const double *x, const head *h)
{
    const double scale = pow(h->E, -0.25);
    double norm = 0;
    int d = 0;
    for (int i = 0; i < h->E; i++) norm += scale * x[i] * scale * x[i];
    for (; h->kind == LIN_MAP_RANDOM && d < h->D; d++)
        phi[d] = exp(scale * dot(h->omega + (size_t)d * (size_t)h->E, x, h->E) - norm / 2) / sqrt(h->D);
    if (h->kind == LIN_MAP_RANDOM) return;
    for (int i = 0; i < h->E; i++) phi[d++] = scale * x[i] * scale * x[i];
    for (int i = 0; i < h->E; i++)
        for (int j = i + 1; j < h->E; j++) phi[d++] = sqrt(2) * scale * x[i] * scale * x[j];
    for (int i = 0; i < h->E; i++) phi[d++] = sqrt(2) * scale * x[i];
    phi[d] = 1;
}

// Head number `number` of rows first .. end-1 of qkv [rows, 3, H, E].
static head head_of(lin_exec *exec, const double *qkv, const double *omega, const lin_map *map, int first, int end, int number,
                    int H, int E)
{
    size_t width = (size_t)H * (size_t)E, D = (size_t)map->D, n = (size_t)(end - first) * D;
    head h = {.T = end - first, .E = E, .D = map->D, .kind = map->kind, .stride = 3 * width, .stride_y = width};
    h.q = qkv + (size_t)first * h.stride + (size_t)number * (size_t)E;
    h.k = h.q + width;
    h.v = h.k + width;
    h.omega = omega ? omega + (size_t)number * D * (size_t)E : NULL;
    h.fq = lin_ref_scratch(exec, 4 * n);
    h.fk = h.fq + n;
    h.gq = h.fk + n;
    h.gk = h.gq + n;
    for (size_t t = 0; t < (size_t)h.T; t++) {
        features(h.fq + t * D, h.q + t * h.stride, &h);
        features(h.fk + t * D, h.k + t * h.stride, &h);
    }
    for (size_t i = 0; i < n; i++) h.gq[i] = h.gk[i] = 0;
    return h;
}

// q_i . k_j / sqrt(E) + 1, the square root of a_ij of LIN_MAP_POLY2.
static double root(const head *h, int i, int j)
{
    return dot(h->q + (size_t)i * h->stride, h->k + (size_t)j * h->stride, h->E) / sqrt(h->E) + 1;
}

// a_ij.
static double weight(const head *h, int i, int j)
{
    if (h->kind == LIN_MAP_POLY2) return root(h, i, j) * root(h, i, j);
    return dot(h->fq + (size_t)i * (size_t)h->D, h->fk + (size_t)j * (size_t)h->D, h->D);
}

// state [D, E+1] or NULL: the sums over all frames before the first.
static void forward_head(double *y, const head *h, int causal, double *state)
{
    size_t E = (size_t)h->E, D = (size_t)h->D;
    for (int i = 0; i < h->T; i++) {
        double *out = y + (size_t)i * h->stride_y, denominator = ATTENTION_EPS;
        const double *phi = h->fq + (size_t)i * D;
        for (size_t m = 0; m < E; m++) out[m] = 0;
        for (size_t d = 0; state && d < D; d++) {
            for (size_t m = 0; m < E; m++) out[m] += phi[d] * state[d * (E + 1) + m];
            denominator += phi[d] * state[d * (E + 1) + E];
        }
        for (int j = 0; j < (causal ? i + 1 : h->T); j++) {
            double a = weight(h, i, j);
            for (size_t m = 0; m < E; m++) out[m] += a * h->v[(size_t)j * h->stride + m];
            denominator += a;
        }
        for (size_t m = 0; m < E; m++) out[m] /= denominator;
    }
    for (size_t j = 0; state && j < (size_t)h->T; j++)
        for (size_t d = 0; d < D; d++) {
            for (size_t m = 0; m < E; m++) state[d * (E + 1) + m] += h->fk[j * D + d] * h->v[j * h->stride + m];
            state[d * (E + 1) + E] += h->fk[j * D + d];
        }
}

void lin_ref_mapped_attention_forward(lin_exec *exec, double *y, const double *qkv, const double *omega,
                                      const lin_segments *segments, const lin_map *map, int H, int E, int causal,
                                      double *const *states, size_t at)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int number = 0; number < H; number++) {
            size_t state_size = (size_t)map->D * (size_t)(E + 1);
            double *state = causal && states && states[b] ? states[b] + at + (size_t)number * state_size : NULL;
            double *out = y + ((size_t)offsets[b] * (size_t)H + (size_t)number) * (size_t)E;
            head h = head_of(exec, qkv, omega, map, offsets[b], offsets[b + 1], number, H, E);
            forward_head(out, &h, causal, state);
        }
}

// dx [E] += the gradient of phi(x) passed on: of exp(omega_d x' - |x'|^2 / 2), phi_d (omega_d - x').
static void pass_features(double *dx, const double *gradient, const double *phi, const double *x, const head *h)
{
    const double scale = pow(h->E, -0.25);
    for (int d = 0; d < h->D; d++)
        for (int e = 0; e < h->E; e++) dx[e] += gradient[d] * phi[d] * (h->omega[d * h->E + e] - scale * x[e]) * scale;
}

// With d_i the denominator and G = dL/dy:
//   dL/dv_j  = sum_i a_ij / d_i G_i
//   dL/da_ij = G_i . (v_j - y_i) / d_i
//   random:  dL/dphi(q_i) = sum_j dL/da_ij phi(k_j)               dL/dphi(k_j) = sum_i dL/da_ij phi(q_i)
//   poly2:   dL/dq_i = sum_j dL/da_ij 2 sqrt(a_ij) k_j / sqrt(E)   and the same for k_j
// dq points to the head's part of dqkv, as h->q does into qkv.
static void backward_head(double *dq, const double *dy, const double *y, const head *h, int causal)
{
    double *dk = dq + (h->k - h->q), *dv = dq + (h->v - h->q);
    size_t E = (size_t)h->E, D = (size_t)h->D;
    for (int i = 0; i < h->T; i++) {
        int n = causal ? i + 1 : h->T;
        const double *out = y + (size_t)i * h->stride_y, *up = dy + (size_t)i * h->stride_y;
        double denominator = ATTENTION_EPS;
        for (int j = 0; j < n; j++) denominator += weight(h, i, j);
        for (int j = 0; j < n; j++) {
            size_t at_i = (size_t)i * h->stride, at_j = (size_t)j * h->stride;
            double a = weight(h, i, j), da = 0;
            for (size_t m = 0; m < E; m++) da += up[m] * (h->v[at_j + m] - out[m]) / denominator;
            for (size_t m = 0; m < E; m++) dv[at_j + m] += a / denominator * up[m];
            if (h->kind == LIN_MAP_POLY2) {
                double factor = da * 2 * root(h, i, j) / sqrt(h->E);
                for (size_t e = 0; e < E; e++) dq[at_i + e] += factor * h->k[at_j + e];
                for (size_t e = 0; e < E; e++) dk[at_j + e] += factor * h->q[at_i + e];
                continue;
            }
            for (size_t d = 0; d < D; d++) h->gq[(size_t)i * D + d] += da * h->fk[(size_t)j * D + d];
            for (size_t d = 0; d < D; d++) h->gk[(size_t)j * D + d] += da * h->fq[(size_t)i * D + d];
        }
    }
    for (size_t t = 0; h->kind == LIN_MAP_RANDOM && t < (size_t)h->T; t++) {
        pass_features(dq + t * h->stride, h->gq + t * D, h->fq + t * D, h->q + t * h->stride, h);
        pass_features(dk + t * h->stride, h->gk + t * D, h->fk + t * D, h->k + t * h->stride, h);
    }
}

void lin_ref_mapped_attention_backward(lin_exec *exec, double *dqkv, const double *dy, const double *qkv, const double *omega,
                                       const double *y, const lin_segments *segments, const lin_map *map, int H, int E,
                                       int causal)
{
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++)
        for (int number = 0; number < H; number++) {
            head h = head_of(exec, qkv, omega, map, offsets[b], offsets[b + 1], number, H, E);
            double *dq = dqkv + (h.q - qkv);
            size_t row = ((size_t)offsets[b] * (size_t)H + (size_t)number) * (size_t)E;
            for (int t = 0; t < h.T; t++)
                for (int part = 0; part < 3; part++)
                    for (int e = 0; e < E; e++) dq[(size_t)t * h.stride + (size_t)part * h.stride_y + (size_t)e] = 0;
            backward_head(dq, dy + row, y + row, &h, causal);
        }
}
