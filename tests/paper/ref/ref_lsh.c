// LSH attention (Reformer; Kitaev et al. 2020) from its definition in ops.h: every round lists which keys each query sees,
// and one softmax runs over the lists of all rounds; a key counts as often as it is listed:
//   y_i = sum_(r, j) exp(s_ij - m_i) v_j / sum_(r, j) exp(s_ij - m_i),    m_i = max_(r, j) s_ij
#include <math.h>

#include "tests/kernels/ref/ref.h"
#include "paper/networks.h"

#define SELF_SCORE -1e5
#define LEAST_NORM 1e-6

// One head of one utterance: row t of q and v is at t * stride, of y at t * stride_y, and the orders of two rounds are
// order_stride apart. norm, top and sum [T]: of each frame its norm, m_i and the denominator of y_i.
typedef struct head {
    int T, E, causal;
    lin_lsh lsh;
    size_t stride, stride_y, order_stride;
    const double *q, *v;
    const int *order;
    double *norm, *top, *sum;
} head;

static double norm_of(const double *q, int E)
{
    double sum = 0;
    for (int e = 0; e < E; e++) sum += q[e] * q[e];
    return fmax(sqrt(sum), LEAST_NORM);
}

// Head h of rows first .. end-1 of qv [rows, 2, H, E].
static head head_of(lin_exec *exec, const double *qv, const int *order, const lin_segments *segments, int b, const lin_lsh *lsh,
                    int h, int H, int E, int causal)
{
    size_t width = (size_t)H * (size_t)E, first = (size_t)segments->offsets[b];
    head x = {.T = segments->offsets[b + 1] - segments->offsets[b], .E = E, .causal = causal, .lsh = *lsh};
    x.stride = 2 * width;
    x.stride_y = width;
    x.order_stride = (size_t)H * (size_t)segments->rows;
    x.q = qv + first * x.stride + (size_t)h * (size_t)E;
    x.v = x.q + width;
    x.order = order + (size_t)h * (size_t)segments->rows + first;
    x.norm = lin_ref_scratch(exec, 3 * (size_t)x.T);
    x.top = x.norm + x.T;
    x.sum = x.top + x.T;
    for (int t = 0; t < x.T; t++) x.norm[t] = norm_of(x.q + (size_t)t * x.stride, E);
    return x;
}

/* ---- the order ------------------------------------------------------------------------------------------------------------- */

// argmax [q R; -q R] over the first `columns` columns of R [E, rotations].
static int bucket_of(const double *q, const double *R, int E, int rotations, int columns)
{
    double best = -INFINITY;
    int bucket = 0;
    for (int i = 0; i < 2 * columns; i++) {
        double value = 0;
        for (int e = 0; e < E; e++) value += q[e] * R[(size_t)e * (size_t)rotations + (size_t)(i % columns)];
        if (i >= columns) value = -value;
        if (value > best) bucket = i;
        if (value > best) best = value;
    }
    return bucket;
}

// One round; R [E, rotations] is this round's. The buckets are in x->sum until the order is complete.
static void sort_frames(int *order, const head *x, const double *R)
{
    const int64_t half = (x->T + 2 * (int64_t)x->lsh.chunk - 1) / (2 * (int64_t)x->lsh.chunk);
    const int columns = half < x->lsh.rotations ? (int)half : x->lsh.rotations;
    int n = 0;
    for (int t = 0; t < x->T; t++) x->sum[t] = bucket_of(x->q + (size_t)t * x->stride, R, x->E, x->lsh.rotations, columns);
    for (int bucket = 0; bucket < 2 * columns; bucket++)
        for (int t = 0; t < x->T; t++)
            if ((int)x->sum[t] == bucket) order[n++] = t;
}

/* ---- the softmax ----------------------------------------------------------------------------------------------------------- */

static double score(const head *x, int i, int j)
{
    if (i == j) return SELF_SCORE;
    double sum = 0;
    for (int e = 0; e < x->E; e++) sum += x->q[(size_t)i * x->stride + (size_t)e] * x->q[(size_t)j * x->stride + (size_t)e];
    return sum / x->norm[j] / sqrt(x->E);
}

// Calls visit(x, i, j, user) for every query i and every key j in its list, of all rounds.
static void visit_pairs(const head *x, void (*visit)(const head *x, int i, int j, void *user), void *user)
{
    for (int round = 0; round < x->lsh.rounds; round++) {
        const int *order = x->order + (size_t)round * x->order_stride;
        for (int at = 0; at < x->T; at++) {
            int64_t chunk = at / x->lsh.chunk, from = (chunk - 1) * x->lsh.chunk, end = (chunk + 1) * x->lsh.chunk;
            for (int64_t to = from < 0 ? 0 : from; to < end && to < x->T; to++)
                if (!x->causal || order[to] <= order[at]) visit(x, order[at], order[to], user);
        }
    }
}

static void raise_top(const head *x, int i, int j, void *user)
{
    (void)user;
    x->top[i] = fmax(x->top[i], score(x, i, j));
}

static void add_to_sum(const head *x, int i, int j, void *user)
{
    (void)user;
    x->sum[i] += exp(score(x, i, j) - x->top[i]);
}

static double probability(const head *x, int i, int j) { return exp(score(x, i, j) - x->top[i]) / x->sum[i]; }

static void find_sums(const head *x)
{
    for (int t = 0; t < x->T; t++) x->top[t] = -INFINITY;
    for (int t = 0; t < x->T; t++) x->sum[t] = 0;
    visit_pairs(x, raise_top, NULL);
    visit_pairs(x, add_to_sum, NULL);
}

static void add_value(const head *x, int i, int j, void *user)
{
    double *y = user, p = probability(x, i, j);
    for (int m = 0; m < x->E; m++) y[(size_t)i * x->stride_y + (size_t)m] += p * x->v[(size_t)j * x->stride + (size_t)m];
}

static void attend(lin_exec *exec, double *y, double *lse, const int *order, const double *qv, const lin_segments *segments,
                   const lin_lsh *lsh, int H, int E, int causal)
{
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const size_t row = (size_t)segments->offsets[b] * (size_t)H + (size_t)h;
            head x = head_of(exec, qv, order, segments, b, lsh, h, H, E, causal);
            double *out = y + row * (size_t)E;
            for (int i = 0; i < x.T * E; i++) out[(size_t)(i / E) * x.stride_y + (size_t)(i % E)] = 0;
            find_sums(&x);
            visit_pairs(&x, add_value, out);
            for (int t = 0; t < x.T; t++) lse[row + (size_t)t * (size_t)H] = x.top[t] + log(x.sum[t]);
        }
}

void lin_ref_lsh_forward(lin_exec *exec, double *y, double *lse, int *order, const double *qv, const double *R,
                         const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            head x = head_of(exec, qv, order, segments, b, lsh, h, H, E, causal);
            for (int round = 0; round < lsh->rounds; round++) {
                const size_t matrix = (size_t)round * (size_t)H + (size_t)h;
                sort_frames(order + matrix * (size_t)segments->rows + segments->offsets[b], &x,
                            R + matrix * (size_t)E * (size_t)lsh->rotations);
            }
        }
    attend(exec, y, lse, order, qv, segments, lsh, H, E, causal);
}

/* ---- the gradient ---------------------------------------------------------------------------------------------------------- */

typedef struct gradient {
    double *dq, *dv;     // the head's parts of dqv
    const double *dy, *y; // the head's parts
} gradient;

// With G = dL/dy, p the probability of one entry of i's list and k_j = q_j / |q_j|:
//   dL/dv_j = p G_i                     dL/ds = p G_i . (v_j - y_i) =: a, 0 for i = j, where s is constant
//   dL/dq_i = a k_j / sqrt(E)           dL/dk_j = a q_i / sqrt(E)
//   dL/dq_j = (dL/dk_j - k_j (k_j . dL/dk_j)) / |q_j|, without the second term where the norm is the constant LEAST_NORM
static void add_gradient(const head *x, int i, int j, void *user)
{
    const gradient *g = user;
    const double *G = g->dy + (size_t)i * x->stride_y, *y = g->y + (size_t)i * x->stride_y;
    const double *qi = x->q + (size_t)i * x->stride, *qj = x->q + (size_t)j * x->stride, *v = x->v + (size_t)j * x->stride;
    double *dqi = g->dq + (size_t)i * x->stride, *dqj = g->dq + (size_t)j * x->stride, *dv = g->dv + (size_t)j * x->stride;
    double p = probability(x, i, j), a = 0, along = 0, norm = x->norm[j], root = sqrt(x->E);
    for (int m = 0; m < x->E; m++) a += p * G[m] * (v[m] - y[m]);
    for (int m = 0; m < x->E; m++) dv[m] += p * G[m];
    if (i == j) return;
    for (int e = 0; e < x->E && norm > LEAST_NORM; e++) along += qj[e] / norm * a * qi[e] / root;
    for (int e = 0; e < x->E; e++) dqi[e] += a * qj[e] / norm / root;
    for (int e = 0; e < x->E; e++) dqj[e] += (a * qi[e] / root - qj[e] / norm * along) / norm;
}

void lin_ref_lsh_backward(lin_exec *exec, double *dqv, const double *dy, const double *qv, const double *y, const double *lse,
                          const int *order, const lin_segments *segments, const lin_lsh *lsh, int H, int E, int causal)
{
    (void)lse; // computed again: the reference trusts nothing that the forward pass kept but its order
    for (int b = 0; b < segments->B; b++)
        for (int h = 0; h < H; h++) {
            const size_t row = ((size_t)segments->offsets[b] * (size_t)H + (size_t)h) * (size_t)E;
            head x = head_of(exec, qv, order, segments, b, lsh, h, H, E, causal);
            gradient g = {.dq = dqv + (x.q - qv), .dv = dqv + (x.v - qv), .dy = dy + row, .y = y + row};
            for (int i = 0; i < x.T * E; i++) {
                size_t at = (size_t)(i / E) * x.stride + (size_t)(i % E);
                g.dq[at] = g.dv[at] = 0;
            }
            find_sums(&x);
            visit_pairs(&x, add_gradient, &g);
        }
}
