// Every backward operation of ref/ against central finite differences of its forward, in double.
// A loss is always sum(weights * output), so the gradient passed to the backward is `weights`.
#include "base/memory.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

enum { MANY = 4096 };

static const lin_ops_f64 *ops;
static lin_exec *exec;

static lin_dropout dropout_of(double p)
{
    static const uint64_t key = 77;
    return (lin_dropout){p, &key, 1234, 0};
}

static void setup(void)
{
    ops = lin_ops_ref();
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
}

static void teardown(void) { ops->exec_destroy(exec); }

static double *filled(size_t n, uint64_t key, double lo, double hi)
{
    double *x = test_buffer(n, sizeof *x);
    test_fill_f64(x, n, key, lo, hi);
    return x;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// Fourth-order central differences: with h = 1e-3 the error of the formula is about 1e-12 and rounding about 1e-13 / h.
static void check_gradient(const char *what, double (*loss)(void *), void *context, double *x, const double *gradient, size_t n)
{
    double *numeric = test_buffer(n, sizeof *numeric);
    const double h = 1e-3;
    for (size_t i = 0; i < n; i++) {
        double keep = x[i], at[4];
        const double steps[4] = {-2 * h, -h, h, 2 * h};
        for (int s = 0; s < 4; s++) {
            x[i] = keep + steps[s];
            at[s] = loss(context);
        }
        x[i] = keep;
        numeric[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
    }
    double largest = 0.01; // where a gradient is 0, finite differences give some 1e-14
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(numeric[i]));
    for (size_t i = 0; i < n; i++)
        test_require(fabs(gradient[i] - numeric[i]) <= 1e-8 * largest, "%s: element %zu of %zu is %.12g, by differences %.12g",
                     what, i, n, gradient[i], numeric[i]);
    test_buffer_free(numeric);
}

// The value nearest to a kink of relu or elu + 1 must stay on its side of it when it is varied.
static void away_from_zero(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) < 0.01) x[i] = x[i] < 0 ? x[i] - 0.02 : x[i] + 0.02;
}

/* ---- linear ---------------------------------------------------------------------------------------------------------------- */

typedef struct linear_case {
    int rows, n, k;
    lin_activation act;
    double *x, *w, *b, *weights;
} linear_case;

static double linear_loss(void *context)
{
    linear_case *c = context;
    double y[MANY], packed[MANY];
    ops->weights_pack(exec, packed, c->w, &(lin_packing){.n = c->n, .k = c->k}, 1);
    ops->linear_forward(exec, y, c->x, packed, c->b, c->rows, c->n, c->k, c->act);
    return dot(y, c->weights, (size_t)(c->rows * c->n));
}

START_TEST(linear)
{
    const int shapes[][3] = {{1, 1, 1}, {5, 3, 4}, {7, 8, 2}, {2, 1, 9}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        linear_case c = {.rows = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2]};
        size_t nx = (size_t)(c.rows * c.k), nw = (size_t)(c.n * c.k), ny = (size_t)(c.rows * c.n), nb = (size_t)c.n;
        c.x = filled(nx, 1 + s, -1, 1);
        c.w = filled(nw, 100 + s, -1, 1);
        c.b = filled(nb, 200 + s, -1, 1);
        c.weights = filled(ny, 300 + s, -1, 1);
        double *dx = test_buffer(nx, sizeof *dx), *dw = filled(nw, 400, -1, 1), *db = filled(nb, 500, -1, 1), packed[MANY];
        double *dw0 = filled(nw, 400, -1, 1), *db0 = filled(nb, 500, -1, 1);
        ops->weights_pack(exec, packed, c.w, &(lin_packing){.n = c.n, .k = c.k, .transposed = 1}, 1);
        ops->linear_forward(exec, dx, c.weights, packed, NULL, c.rows, c.k, c.n, LIN_LINEAR);
        ops->linear_backward_weight(exec, dw, db, c.weights, c.x, c.rows, c.n, c.k);
        for (size_t i = 0; i < nw; i++) dw[i] -= dw0[i]; // "+=" must keep the old values
        for (size_t i = 0; i < nb; i++) db[i] -= db0[i];
        check_gradient("linear dx", linear_loss, &c, c.x, dx, nx);
        check_gradient("linear dw", linear_loss, &c, c.w, dw, nw);
        check_gradient("linear db", linear_loss, &c, c.b, db, nb);
        double *all[] = {c.x, c.w, c.b, c.weights, dx, dw, db, dw0, db0};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            test_guards(all[i], "linear");
            test_buffer_free(all[i]);
        }
    }
}
END_TEST

// relu alone, and dropout(relu(x)) whose backward is relu_backward with scale 1/(1-p).
typedef struct relu_case {
    size_t n;
    double p, *x, *weights;
} relu_case;

static double relu_loss(void *context)
{
    relu_case *c = context;
    double y[MANY];
    for (size_t i = 0; i < c->n; i++) y[i] = c->x[i] > 0 ? c->x[i] : 0;
    const lin_dropout d = dropout_of(c->p);
    ops->dropout(exec, y, y, c->n, &d);
    return dot(y, c->weights, c->n);
}

START_TEST(relu_and_its_dropout)
{
    for (int with_dropout = 0; with_dropout < 2; with_dropout++) {
        relu_case c = {.n = 50, .p = with_dropout ? 0.3 : 0};
        c.x = filled(c.n, 1, -1, 1);
        away_from_zero(c.x, c.n);
        c.weights = filled(c.n, 2, -1, 1);
        double y[50], dx[50];
        for (size_t i = 0; i < c.n; i++) y[i] = c.x[i] > 0 ? c.x[i] : 0;
        const lin_dropout d = dropout_of(c.p);
        ops->dropout(exec, y, y, c.n, &d);
        ops->relu_backward(exec, dx, c.weights, y, c.n, 1 / (1 - c.p));
        check_gradient("relu", relu_loss, &c, c.x, dx, c.n);
        test_buffer_free(c.x);
        test_buffer_free(c.weights);
    }
}
END_TEST

/* ---- layer norm ------------------------------------------------------------------------------------------------------------ */

typedef struct norm_case {
    int rows, C;
    double *x, *gamma, *beta, *weights;
} norm_case;

static double norm_loss(void *context)
{
    norm_case *c = context;
    double y[MANY];
    ops->layer_norm_forward(exec, y, NULL, c->x, c->gamma, c->beta, c->rows, c->C);
    return dot(y, c->weights, (size_t)(c->rows * c->C));
}

START_TEST(layer_norm)
{
    const int shapes[][2] = {{1, 1}, {1, 2}, {3, 7}, {5, 16}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        norm_case c = {.rows = shapes[s][0], .C = shapes[s][1]};
        size_t n = (size_t)(c.rows * c.C), C = (size_t)c.C;
        c.x = filled(n, 1 + s, -2, 3);
        c.gamma = filled(C, 100 + s, 0.5, 1.5);
        c.beta = filled(C, 200 + s, -1, 1);
        c.weights = filled(n, 300 + s, -1, 1);
        double y[MANY], stats[64], dx[MANY], dgamma[64] = {0}, dbeta[64] = {0};
        ops->layer_norm_forward(exec, y, stats, c.x, c.gamma, c.beta, c.rows, c.C);
        ops->layer_norm_backward(exec, dx, NULL, dgamma, dbeta, NULL, c.weights, NULL, NULL, c.x, stats, c.gamma, c.rows, c.C,
                                 NULL);
        check_gradient("layer_norm dx", norm_loss, &c, c.x, dx, n);
        check_gradient("layer_norm dgamma", norm_loss, &c, c.gamma, dgamma, C);
        check_gradient("layer_norm dbeta", norm_loss, &c, c.beta, dbeta, C);
        double part[MANY], other[MANY], dgamma2[MANY] = {0}, dbeta2[MANY] = {0}; // the gradient of y in two parts
        for (size_t i = 0; i < n; i++) part[i] = c.weights[i] - (other[i] = (double)i - 7);
        ops->layer_norm_backward(exec, dx, NULL, dgamma2, dbeta2, NULL, part, other, NULL, c.x, stats, c.gamma, c.rows, c.C,
                                 NULL);
        check_gradient("layer_norm dx, more", norm_loss, &c, c.x, dx, n);
        check_gradient("layer_norm dgamma, more", norm_loss, &c, c.gamma, dgamma2, C);
        check_gradient("layer_norm dbeta, more", norm_loss, &c, c.beta, dbeta2, C);
        double *all[] = {c.x, c.gamma, c.beta, c.weights};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) test_buffer_free(all[i]);
    }
}
END_TEST

/* ---- dropout: linear, so its backward is itself ---------------------------------------------------------------------------- */

typedef struct dropout_case {
    double *x, *r, *weights, p;
    size_t n;
} dropout_case;

static double dropout_loss(void *context)
{
    dropout_case *c = context;
    double y[MANY];
    const lin_dropout d = dropout_of(c->p);
    ops->add_dropout(exec, y, c->x, c->r, c->n, &d);
    return dot(y, c->weights, c->n);
}

START_TEST(dropout)
{
    const double rates[] = {0, 0.1, 0.5};
    for (size_t s = 0; s < 3; s++) {
        dropout_case c = {.n = 101, .p = rates[s]};
        c.x = filled(c.n, 1, -1, 1);
        c.r = filled(c.n, 2, -1, 1);
        c.weights = filled(c.n, 3, -1, 1);
        double dr[101];
        const lin_dropout d = dropout_of(c.p);
        ops->dropout(exec, dr, c.weights, c.n, &d);
        check_gradient("add_dropout dr", dropout_loss, &c, c.r, dr, c.n);
        check_gradient("add_dropout dx", dropout_loss, &c, c.x, c.weights, c.n);
        test_buffer_free(c.x);
        test_buffer_free(c.r);
        test_buffer_free(c.weights);
    }
}
END_TEST

/* ---- the end of a block: norm(x + dropout(r)), and the operations beside it ------------------------------------------------ */

typedef struct block_case {
    int rows, C;
    double *x, *r, *gamma, *beta, *weights, *beside, p;
} block_case;

// The loss depends on the norm, and directly on the sum (the input of the next block).
static double block_loss(void *context)
{
    block_case *c = context;
    double sum[MANY], y[MANY];
    const lin_dropout d = dropout_of(c->p);
    ops->add_dropout_norm_forward(exec, sum, y, NULL, c->x, c->r, c->gamma, c->beta, c->rows, c->C, &d);
    return dot(y, c->weights, (size_t)(c->rows * c->C)) + dot(sum, c->beside, (size_t)(c->rows * c->C));
}

START_TEST(block_end)
{
    for (int form = 0; form < 2; form++) {
        block_case c = {.rows = 5, .C = 7, .p = form ? 0.3 : 0};
        const size_t n = 35, C = 7;
        c.x = filled(n, 1, -2, 3);
        c.r = filled(n, 2, -1, 1);
        c.gamma = filled(C, 3, 0.5, 1.5);
        c.beta = filled(C, 4, -1, 1);
        c.weights = filled(n, 5, -1, 1);
        c.beside = filled(n, 6, -1, 1);
        double sum[35], y[35], stats[10], dx[35], dr[35], dgamma[7] = {0}, dbeta[7] = {0};
        const lin_dropout d = dropout_of(c.p);
        ops->add_dropout_norm_forward(exec, sum, y, stats, c.x, c.r, c.gamma, c.beta, c.rows, c.C, &d);
        ops->layer_norm_backward(exec, dx, dr, dgamma, dbeta, NULL, c.weights, NULL, c.beside, sum, stats, c.gamma, c.rows, c.C,
                                 &d);
        check_gradient("block_end dx", block_loss, &c, c.x, dx, n);
        check_gradient("block_end dr", block_loss, &c, c.r, dr, n);
        check_gradient("block_end dgamma", block_loss, &c, c.gamma, dgamma, C);
        check_gradient("block_end dbeta", block_loss, &c, c.beta, dbeta, C);
        double *all[] = {c.x, c.r, c.gamma, c.beta, c.weights, c.beside};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) test_buffer_free(all[i]);
    }
}
END_TEST

/* ---- convolution ----------------------------------------------------------------------------------------------------------- */

static const int offsets[] = {0, 5, 5, 6, 13}; // four utterances, one of them empty
enum { B = 4, ROWS = 13 };
static const lin_segments segments = {B, ROWS, 7, offsets};

typedef struct conv_case {
    int C, K, after;
    double *x, *w, *b, *weights;
} conv_case;

static double conv_loss(void *context)
{
    conv_case *c = context;
    double y[MANY];
    ops->conv_forward(exec, y, c->x, c->w, c->b, &segments, c->C, c->K, c->after, NULL, 0);
    return dot(y, c->weights, (size_t)(ROWS * c->C));
}

START_TEST(conv)
{
    const int kernels[] = {1, 2, 5, 15, 5, 4, 6}, afters[] = {0, 0, 0, 0, 2, 2, 5};
    for (size_t s = 0; s < 7; s++) {
        conv_case c = {.C = 3, .K = kernels[s], .after = afters[s]};
        size_t n = (size_t)(ROWS * c.C), nw = (size_t)(c.K * c.C), C = (size_t)c.C;
        c.x = filled(n, 1 + s, -1, 1);
        c.w = filled(nw, 100 + s, -1, 1);
        c.b = filled(C, 200 + s, -1, 1);
        c.weights = filled(n, 300 + s, -1, 1);
        double dx[MANY], dw[64] = {0}, db[8] = {0};
        test_poison(dx, sizeof dx);
        ops->conv_backward(exec, dx, dw, db, c.weights, c.x, c.w, &segments, c.C, c.K, c.after);
        check_gradient("conv dx", conv_loss, &c, c.x, dx, n);
        check_gradient("conv dw", conv_loss, &c, c.w, dw, nw);
        check_gradient("conv db", conv_loss, &c, c.b, db, C);
        double *all[] = {c.x, c.w, c.b, c.weights};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) test_buffer_free(all[i]);
    }
}
END_TEST

/* ---- attention ------------------------------------------------------------------------------------------------------------- */

typedef struct attention_case {
    int H, E, causal;
    double *qkv, *weights;
} attention_case;

static double attention_loss(void *context)
{
    attention_case *c = context;
    double y[MANY];
    ops->attention_forward(exec, y, c->qkv, &segments, c->H, c->E, c->causal, NULL, 0);
    return dot(y, c->weights, (size_t)(ROWS * c->H * c->E));
}

START_TEST(attention)
{
    const int shapes[][2] = {{1, 1}, {2, 3}, {1, 8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int causal = 0; causal < 2; causal++) {
            attention_case c = {.H = shapes[s][0], .E = shapes[s][1], .causal = causal};
            size_t n = (size_t)(ROWS * c.H * c.E);
            c.qkv = filled(3 * n, 1 + s, -2, 2);
            away_from_zero(c.qkv, 3 * n);
            c.weights = filled(n, 300 + s, -1, 1);
            double y[MANY], dqkv[MANY];
            test_poison(dqkv, sizeof dqkv);
            ops->attention_forward(exec, y, c.qkv, &segments, c.H, c.E, causal, NULL, 0);
            ops->attention_backward(exec, dqkv, c.weights, c.qkv, y, &segments, c.H, c.E, causal);
            check_gradient(causal ? "causal attention" : "bidirectional attention", attention_loss, &c, c.qkv, dqkv, 3 * n);
            test_buffer_free(c.qkv);
            test_buffer_free(c.weights);
        }
}
END_TEST

// With one frame the denominator cancels but for eps: y = v s / (s + 1e-6). Two frames by hand, E = 1.
START_TEST(attention_by_hand)
{
    const double qkv[] = {0.5, -1, 3, -2, 0.25, 7}; // (q, k, v) of two frames
    const double q0 = 1.5, k0 = exp(-1), q1 = exp(-2), k1 = 1.25;
    const int both[] = {0, 2};
    const lin_segments pieces = {1, 2, 2, both};
    double y[2], want[2];
    ops->attention_forward(exec, y, qkv, &pieces, 1, 1, 1, NULL, 0);
    want[0] = q0 * k0 * 3 / (q0 * k0 + 1e-6);
    want[1] = (q1 * k0 * 3 + q1 * k1 * 7) / (q1 * k0 + q1 * k1 + 1e-6);
    test_close_f64("causal", y, want, 2, 1e-15);
    ops->attention_forward(exec, y, qkv, &pieces, 1, 1, 0, NULL, 0);
    want[0] = (q0 * k0 * 3 + q0 * k1 * 7) / (q0 * k0 + q0 * k1 + 1e-6);
    test_close_f64("bidirectional", y, want, 2, 1e-15);
}
END_TEST

/* ---- attention that forgets ------------------------------------------------------------------------------------------------ */

typedef struct decayed_case {
    int H, E, constant;
    double *qkv, *gates, *weights;
} decayed_case;

static double decayed_loss(void *context)
{
    decayed_case *c = context;
    double y[MANY];
    ops->decayed_attention_forward(exec, y, c->qkv, c->gates, c->constant, &segments, c->H, c->E, NULL, 0);
    return dot(y, c->weights, (size_t)(ROWS * c->H * c->E));
}

// Gates of every strength; a constant gate's gradient is the sum of those of all rows.
START_TEST(decayed_attention)
{
    const int shapes[][2] = {{1, 1}, {2, 3}, {1, 8}};
    const double ranges[][2] = {{-3, 3}, {-60, -20}, {4, 8}};
    for (size_t s = 0; s < 9; s++)
        for (int constant = 0; constant < 2; constant++) {
            decayed_case c = {.H = shapes[s % 3][0], .E = shapes[s % 3][1], .constant = constant};
            const size_t n = (size_t)(ROWS * c.H * c.E), n_gates = (size_t)(constant ? c.H : ROWS * c.H);
            c.qkv = filled(3 * n, 1 + s, -2, 2);
            away_from_zero(c.qkv, 3 * n);
            c.weights = filled(n, 300 + s, -1, 1);
            c.gates = filled(n_gates, 500 + s, ranges[s / 3][0], ranges[s / 3][1]);
            double y[MANY], dqkv[MANY], dgates[ROWS * 2], alone[MANY];
            test_poison(dqkv, sizeof dqkv);
            test_poison(dgates, sizeof dgates);
            ops->decayed_attention_forward(exec, y, c.qkv, c.gates, constant, &segments, c.H, c.E, NULL, 0);
            ops->decayed_attention_backward(exec, dqkv, dgates, c.weights, c.qkv, c.gates, constant, y, &segments, c.H, c.E);
            ops->decayed_attention_backward(exec, alone, NULL, c.weights, c.qkv, c.gates, constant, y, &segments, c.H, c.E);
            ck_assert_int_eq(memcmp(alone, dqkv, 3 * n * sizeof *dqkv), 0);
            for (int h = 0; constant && h < c.H; h++)
                for (int t = 1; t < ROWS; t++) dgates[h] += dgates[t * c.H + h];
            check_gradient("decayed attention", decayed_loss, &c, c.qkv, dqkv, 3 * n);
            check_gradient("gates", decayed_loss, &c, c.gates, dgates, n_gates);
            test_buffer_free(c.qkv);
            test_buffer_free(c.gates);
            test_buffer_free(c.weights);
        }
}
END_TEST

// Two frames by hand, E = 1: the second forgets the first by a = sigmoid(g)^(1/16). And one frame after a state.
START_TEST(decayed_attention_by_hand)
{
    const double qkv[] = {0.5, -1, 3, -2, 0.25, 7}, gates[] = {9, -24}; // (q, k, v) of two frames
    const double q0 = 1.5, k0 = exp(-1), q1 = exp(-2), k1 = 1.25;
    const double a0 = pow(1 / (1 + exp(-9)), 1.0 / 16), a1 = pow(1 / (1 + exp(24)), 1.0 / 16);
    const int both[] = {0, 2};
    const lin_segments pieces = {1, 2, 2, both};
    double y[2], want[2], state[] = {5, 2}, *states[] = {state};
    ops->decayed_attention_forward(exec, y, qkv, gates, 0, &pieces, 1, 1, NULL, 0);
    want[0] = q0 * k0 * 3 / (q0 * k0 + 1e-6);
    want[1] = q1 * (a1 * k0 * 3 + k1 * 7) / (q1 * (a1 * k0 + k1) + 1e-6);
    test_close_f64("two frames", y, want, 2, 1e-15);
    ops->decayed_attention_forward(exec, y, qkv, gates, 0, &pieces, 1, 1, states, 0);
    const double S0 = a0 * 5 + k0 * 3, z0 = a0 * 2 + k0, S1 = a1 * S0 + k1 * 7, z1 = a1 * z0 + k1, sums[] = {S1, z1};
    want[0] = q0 * S0 / (q0 * z0 + 1e-6);
    want[1] = q1 * S1 / (q1 * z1 + 1e-6);
    test_close_f64("after a state", y, want, 2, 1e-15);
    test_close_f64("the state", state, sums, 2, 1e-15);
}
END_TEST

/* ---- CTC through log_softmax ----------------------------------------------------------------------------------------------- */

enum { V = 4 };

typedef struct ctc_case {
    double *logits;
    const int *labels, *label_offsets;
} ctc_case;

static double ctc_loss(void *context)
{
    ctc_case *c = context;
    double logp[ROWS * V], loss[B], sum = 0;
    ops->log_softmax(exec, logp, c->logits, ROWS, V);
    ops->ctc(exec, loss, NULL, logp, &segments, c->labels, c->label_offsets, 4, V, NULL);
    for (int b = 0; b < B; b++) sum += 0.25 * loss[b];
    return sum;
}

START_TEST(ctc)
{
    const int labels[] = {1, 1, 3, 2, 3, 1, 2, 2}, label_offsets[] = {0, 3, 3, 4, 8};
    ctc_case c = {filled(ROWS * V, 9, -3, 3), labels, label_offsets};
    double logp[ROWS * V], loss[B], dlogits[ROWS * V];
    test_poison(dlogits, sizeof dlogits);
    ops->log_softmax(exec, logp, c.logits, ROWS, V);
    const double quarter = 0.25;
    ops->ctc(exec, loss, dlogits, logp, &segments, labels, label_offsets, 4, V, &quarter);
    check_gradient("ctc", ctc_loss, &c, c.logits, dlogits, ROWS * V);
    test_buffer_free(c.logits);
}
END_TEST

/* ---- the sum over all label sequences -------------------------------------------------------------------------------------- */

// Trigrams [V, V, V] of any positive numbers.
static const float *trigram_block(void)
{
    enum { S = V * V };
    static float block[2 * S * V + 2 * S];
    for (int b = 0; b < V; b++)
        for (int a = 0; a < V; a++) {
            for (int k = 1; k < V; k++) {
                const float p = (float)(1 + (7 * a + 3 * b + 5 * k) % 11) / 16;
                if (k == b) block[2 * S * V + b * V + a] = p;
                else block[(b * V + a) * V + k] = block[S * V + (b * V + k) * V + a] = p;
            }
            block[2 * S * V + S + b * V + a] = (float)(1 + (2 * a + 3 * b) % 5) / 8;
        }
    return block;
}

static double denominator_loss(void *context)
{
    ctc_case *c = context;
    double logp[ROWS * V], sums[B], sum = 0;
    const lin_trigrams q = lin_trigrams_at(trigram_block(), V);
    ops->log_softmax(exec, logp, c->logits, ROWS, V);
    ops->denominator(exec, sums, NULL, NULL, logp, &segments, c->label_offsets, &q, V, 0.75, NULL);
    for (int b = 0; b < B; b++) sum += 0.75 * 0.25 * sums[b];
    return sum;
}

// The sum of e^-CTC(l) q(l) over the sequences that begin with the n labels so far.
static double enumerate(const double *logp, int T, int *labels, int n, double q, const lin_trigrams *t)
{
    const int a = n > 1 ? labels[n - 2] : 0, b = n ? labels[n - 1] : 0, rows[] = {0, T}, of_one[] = {0, n};
    double loss, sum = 0;
    ops->ctc(exec, &loss, NULL, logp, &(lin_segments){1, T, T, rows}, labels, of_one, n, V, NULL);
    if (loss != -1) sum = exp(-loss) * q * (double)t->end[b * V + a];
    for (int k = 1; k < V && n < T; k++) {
        labels[n] = k;
        sum += enumerate(logp, T, labels, n + 1, q * (double)(k == b ? t->again[b * V + a] : t->next[(b * V + a) * V + k]), t);
    }
    return sum;
}

START_TEST(denominator)
{
    const int labels[] = {1, 1, 3, 2, 3, 1, 2, 2}, label_offsets[] = {0, 3, 3, 4, 8};
    ctc_case c = {filled(ROWS * V, 9, -3, 3), labels, label_offsets};
    double logp[ROWS * V], sums[B], dlogits[ROWS * V] = {0};
    const double quarter = 0.25;
    const lin_trigrams q = lin_trigrams_at(trigram_block(), V);
    ops->log_softmax(exec, logp, c.logits, ROWS, V);
    ops->denominator(exec, sums, NULL, dlogits, logp, &segments, label_offsets, &q, V, 0.75, &quarter);
    check_gradient("denominator", denominator_loss, &c, c.logits, dlogits, ROWS * V);
    for (int b = 0; b < B; b++) {
        int any[ROWS];
        const int T = segments.offsets[b + 1] - segments.offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        const double want = U && U <= T ? log(enumerate(logp + segments.offsets[b] * V, T, any, 0, 1, &q)) : 0;
        ck_assert_msg(fabs(sums[b] - want) < 1e-12, "the sum of utterance %d is %.15g, enumerated %.15g", b, sums[b], want);
    }
    test_buffer_free(c.logits);
}
END_TEST

/* ---- softmax --------------------------------------------------------------------------------------------------------------- */

typedef struct softmax_case {
    double *logits, *weights;
} softmax_case;

static double softmax_loss(void *context)
{
    softmax_case *c = context;
    double p[ROWS * V];
    ops->softmax_rows(exec, p, c->logits, ROWS, V);
    return dot(p, c->weights, ROWS * V);
}

START_TEST(softmax_rows)
{
    softmax_case c = {filled(ROWS * V, 31, -3, 3), filled(ROWS * V, 32, -1, 1)};
    double p[ROWS * V], dlogits[ROWS * V];
    test_poison(dlogits, sizeof dlogits);
    ops->softmax_rows(exec, p, c.logits, ROWS, V);
    ops->softmax_rows_backward(exec, dlogits, c.weights, p, ROWS, V);
    check_gradient("softmax_rows", softmax_loss, &c, c.logits, dlogits, ROWS * V);
    test_buffer_free(c.logits);
    test_buffer_free(c.weights);
}
END_TEST

/* ---- label smoothing, beside a loss that is a weighted sum of logp --------------------------------------------------------- */

enum { SMOOTHED = 20 }; // per cent

static double smoothed_loss(void *context)
{
    softmax_case *c = context;
    double logp[ROWS * V], sum = 0;
    ops->log_softmax(exec, logp, c->logits, ROWS, V);
    for (int i = 0; i < ROWS * V; i++)
        sum += (1 - 0.01 * SMOOTHED) * c->weights[i] * logp[i] + 0.01 * SMOOTHED * 0.25 * exp(logp[i]) * (logp[i] + log(V));
    return sum;
}

START_TEST(label_smoothing)
{
    softmax_case c = {filled(ROWS * V, 33, -3, 3), filled(ROWS * V, 34, -1, 1)};
    double logp[ROWS * V], dlogits[ROWS * V];
    const double quarter = 0.25;
    ops->log_softmax(exec, logp, c.logits, ROWS, V);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int v = 0; v < V; v++) sum += c.weights[r * V + v];
        for (int v = 0; v < V; v++) dlogits[r * V + v] = c.weights[r * V + v] - exp(logp[r * V + v]) * sum;
    }
    ops->label_smoothing(exec, dlogits, logp, ROWS, V, 0.01 * SMOOTHED, &quarter);
    check_gradient("label_smoothing", smoothed_loss, &c, c.logits, dlogits, ROWS * V);
    test_buffer_free(c.logits);
    test_buffer_free(c.weights);
}
END_TEST

/* ---- cross entropy through log_softmax ------------------------------------------------------------------------------------- */

typedef struct entropy_case {
    double *logits;
    const int *targets;
} entropy_case;

static double entropy_loss(void *context)
{
    entropy_case *c = context;
    double logp[ROWS * V], loss[B], sum = 0;
    ops->log_softmax(exec, logp, c->logits, ROWS, V);
    ops->cross_entropy(exec, loss, NULL, logp, &segments, c->targets, V, NULL);
    for (int b = 0; b < B; b++) sum += 0.25 * loss[b];
    return sum;
}

START_TEST(cross_entropy)
{
    int targets[ROWS];
    for (int t = 0; t < ROWS; t++) targets[t] = (t * 3) % (V + 1) - 1; // -1 too
    entropy_case c = {filled(ROWS * V, 10, -3, 3), targets};
    double logp[ROWS * V], loss[B], dlogits[ROWS * V];
    test_poison(dlogits, sizeof dlogits);
    ops->log_softmax(exec, logp, c.logits, ROWS, V);
    const double quarter = 0.25;
    ops->cross_entropy(exec, loss, dlogits, logp, &segments, targets, V, &quarter);
    check_gradient("cross_entropy", entropy_loss, &c, c.logits, dlogits, ROWS * V);
    for (int b = 0; b < B; b++) {
        double want = 0;
        for (int t = segments.offsets[b]; t < segments.offsets[b + 1]; t++)
            if (targets[t] >= 0) want -= logp[t * V + targets[t]];
        test_close_f64("loss", &loss[b], &want, 1, 1e-15);
    }
    test_buffer_free(c.logits);
}
END_TEST

/* ---- an embedding: each row's own sum of its token ------------------------------------------------------------------------- */

enum { TOKENS = 4, EMBEDDED = 3 };

typedef struct embed_case {
    double *table, *weights, x[ROWS * 2];
} embed_case;

static double embed_loss(void *context)
{
    embed_case *c = context;
    double y[ROWS * EMBEDDED];
    ops->embed_forward(exec, y, c->x, c->table, ROWS, 2, TOKENS, EMBEDDED);
    return dot(y, c->weights, ROWS * EMBEDDED);
}

START_TEST(embed)
{
    embed_case c = {.table = filled(TOKENS * EMBEDDED, 41, -1, 1), .weights = filled(ROWS * EMBEDDED, 42, -1, 1)};
    double dtable[TOKENS * EMBEDDED], y[ROWS * EMBEDDED];
    for (int r = 0; r < ROWS; r++) { // never token 2; 9 and -4 count as the last and the first
        static const int tokens[] = {0, 1, 3, 3, 9, -4, 1};
        c.x[2 * r] = 0.5 * r;
        c.x[2 * r + 1] = tokens[r % 7] - c.x[2 * r];
    }
    for (int i = 0; i < TOKENS * EMBEDDED; i++) dtable[i] = 0.125;
    ops->embed_backward(exec, dtable, c.weights, c.x, ROWS, 2, TOKENS, EMBEDDED);
    for (int i = 0; i < TOKENS * EMBEDDED; i++) dtable[i] -= 0.125; // it is added
    check_gradient("embed", embed_loss, &c, c.table, dtable, TOKENS * EMBEDDED);
    for (int i = 0; i < EMBEDDED; i++) ck_assert(dtable[2 * EMBEDDED + i] == 0);
    ops->embed_forward(exec, y, c.x, c.table, ROWS, 2, TOKENS, EMBEDDED);
    test_close_f64("row 1", y + EMBEDDED, c.table + EMBEDDED, EMBEDDED, 0);
    test_close_f64("row 4", y + 4 * EMBEDDED, c.table + 3 * EMBEDDED, EMBEDDED, 0);
    test_buffer_free(c.table);
    test_buffer_free(c.weights);
}
END_TEST

#ifndef LIN_NO_PAPER

/* ---- mixtures of discretised logistics ------------------------------------------------------------------------------------- */

enum { MIXED = 3 };

typedef struct mixture_case {
    double *x;
    const int *targets;
} mixture_case;

static double mixture_loss(void *context)
{
    mixture_case *c = context;
    double loss[B], sum = 0;
    ops->mixture(exec, loss, NULL, c->x, &segments, c->targets, MIXED, NULL);
    for (int b = 0; b < B; b++) sum += 0.25 * loss[b];
    return sum;
}

// The scales are such that the fourth derivative is small: a width of a value is 1/128.
START_TEST(mixture)
{
    static const int values[] = {0, 255, -1, 1, 127, 254, 60};
    int targets[ROWS];
    mixture_case c = {filled(ROWS * 3 * MIXED, 43, -1, 1), targets};
    double dx[ROWS * 3 * MIXED];
    const double quarter = 0.25;
    for (int t = 0; t < ROWS; t++) {
        targets[t] = values[t % 7];
        c.x[t * 3 * MIXED + 3 * MIXED - 1] = -9; // counts as -7: its mean is far away, and it has no gradient of its own
        c.x[t * 3 * MIXED + 2 * MIXED - 1] = targets[t] < 128 ? 1.5 : -1.5;
    }
    test_poison(dx, sizeof dx);
    ops->mixture(exec, (double[B]){0}, dx, c.x, &segments, targets, MIXED, &quarter);
    check_gradient("mixture", mixture_loss, &c, c.x, dx, ROWS * 3 * MIXED);
    for (int t = 0; t < ROWS; t++) ck_assert(dx[t * 3 * MIXED + 3 * MIXED - 1] == 0);
    test_buffer_free(c.x);
}
END_TEST

// The probabilities of all values add up to 1 whatever the parameters, and those between the ends are differences of the
// distribution function, where these have digits left.
START_TEST(mixture_by_hand)
{
    const double means[] = {-1.2, 0, 0.31, 1}, scales[] = {-7.5, -7, -4, -1, 2};
    const int one_row[] = {0, 1};
    const lin_segments one = {1, 1, 1, one_row};
    for (int i = 0; i < 20; i++) {
        const double m = means[i % 4], s = exp(fmax(-7, scales[i / 4])), x[] = {0.3, m, scales[i / 4]};
        double sum = 0, before = 0;
        for (int v = 0; v < 256; v++) {
            double loss, upper = v == 255 ? 1 : 1 / (1 + exp(-((v + 0.5) / 127.5 - 1 - m) / s));
            ops->mixture(exec, &loss, NULL, x, &one, &v, 1, NULL);
            ck_assert_double_eq_tol(exp(-loss), upper - before, 1e-13);
            sum += exp(-loss);
            before = upper;
        }
        ck_assert_double_eq_tol(sum, 1, 1e-12);
    }
    // a NaN anywhere is one in the loss
    for (int i = 0; i < 6; i++) {
        double x[] = {0, 0, 0, 0, 0, 0}, loss;
        const int v = 100;
        x[i] = NAN;
        ops->mixture(exec, &loss, NULL, x, &one, &v, 2, NULL);
        ck_assert_msg(isnan(loss), "with element %d not a number the loss is %g", i, loss);
    }
}
END_TEST

#endif

START_TEST(nothing_is_leaked)
{
    unsigned long before = lin_memory_live();
    lin_exec *one = NULL;
    lin_error err = {0};
    lin_memory_fail_at(1);
    ck_assert_int_eq(ops->exec_create(ops, 1, &one, &err), LIN_NO_MEMORY);
    ck_assert_ptr_null(one);
    lin_memory_fail_at(0);
    ck_assert_int_eq(ops->exec_create(ops, -1, &one, &err), LIN_INVALID);
    ck_assert_int_eq(ops->exec_create(ops, 0, &one, &err), LIN_OK);
    const double logp[] = {-0.5, -1, -2, -0.3};
    const int rows[] = {0, 2}, labels[] = {1}, label_offsets[] = {0, 1};
    const lin_segments two = {1, 2, 2, rows};
    const double scale = 1;
    double loss, dlogits[4];
    lin_memory_fail_at(1); // operations cannot fail: without memory the result is NaN, never a wrong number
    ops->ctc(one, &loss, dlogits, logp, &two, labels, label_offsets, 1, 2, &scale);
    lin_memory_fail_at(0);
    ck_assert(isnan(loss) && isnan(dlogits[0]) && isnan(dlogits[3]));
    ops->ctc(one, &loss, dlogits, logp, &two, labels, label_offsets, 1, 2, &scale);
    ck_assert(isfinite(loss) && isfinite(dlogits[0]));
    ops->exec_destroy(one);
    ops->exec_destroy(NULL);
    ck_assert_uint_eq(lin_memory_live(), before);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "ops_gradient", TEST(linear), TEST(relu_and_its_dropout), TEST(layer_norm), TEST(dropout),
               TEST(block_end), TEST(conv), TEST(attention), TEST(attention_by_hand), TEST(decayed_attention),
               TEST(decayed_attention_by_hand), TEST(ctc), TEST(denominator), TEST(softmax_rows), TEST(label_smoothing),
               TEST(cross_entropy), TEST(embed), TEST(mixture), TEST(mixture_by_hand), TEST(nothing_is_leaked))
