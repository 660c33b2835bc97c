// The gradient of the whole network, CTC included, against finite differences in double.
#define LIN_REAL_DOUBLE
#include "model/lstm.c"
#include "model/network.c"
#include "model/transformer.c"

#include "tests/support.h"

enum { D = 3, V = 4, B = 3, MAX_ROWS = 40 };

typedef struct problem {
    lin_config config;
    lin_params params;
    lin_exec *exec;
    lin_weights *weights;
    lin_activations *activations;
    lin_batch batch;
    double *values, *gradients, features[MAX_ROWS * D], mean[D], istd[D], logp[MAX_ROWS * V], dlogits[MAX_ROWS * V];
    int in_offsets[B + 1], offsets[B + 1], labels[8], label_offsets[B + 1];
    uint64_t key;
} problem;

static double loss(problem *p)
{
    double each[B], sum = 0, scale = 1;
    lin_weights_pack(p->weights, p->exec);
    lin_network_forward(p->weights, p->activations, p->exec, &p->batch, p->logp);
    lin_ops_ref()->ctc(p->exec, each, p->dlogits, p->logp, &p->batch.out, p->labels, p->label_offsets, 3, V, &scale);
    for (int b = 0; b < B; b++) sum += each[b];
    return sum;
}

static const struct {
    lin_norm norm;
    lin_positions positions;
    int causal, stack, ahead;
    double dropout;
    enum { LINEAR, SOFTMAX, NAIVE, LSH, POLY2, RANDOM, LSTM } variant;
} cases[] = {{LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 1, 0, 0, LINEAR},     {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 2, 1, 0, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_CONV, 1, 1, 2, 0.2, LINEAR},   {LIN_NORM_PRE, LIN_POSITIONS_NONE, 0, 1, 0, 0.3, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_SINUSOID, 0, 2, 0, 0, LINEAR}, {LIN_NORM_PRE, LIN_POSITIONS_SINUSOID, 1, 1, 0, 0.1, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, SOFTMAX},  {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, SOFTMAX},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, NAIVE},    {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, NAIVE},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, LSH},      {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, LSH},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, POLY2},    {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, POLY2},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, RANDOM},   {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, RANDOM},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 1, 0.2, LSTM},     {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 2, 0, 0, LSTM}};

static void vary(lin_config *c, int variant)
{
    if (variant == SOFTMAX) c->attention = LIN_ATTENTION_SOFTMAX;
    if (variant == NAIVE) c->attention = LIN_ATTENTION_SOFTMAX_NAIVE;
    if (variant == LSH) c->attention = LIN_ATTENTION_LSH, c->lsh_rounds = 2, c->lsh_chunk = 3;
    if (variant == POLY2) c->feature_map = LIN_MAP_POLY2;
    if (variant == RANDOM) c->feature_map = LIN_MAP_RANDOM, c->features = 4;
    if (variant != LSTM) return;
    c->network = LIN_NETWORK_LSTM;
    c->heads = c->head_width = c->feedforward = 0;
    c->layers = 3;
    c->width = 4;
}

START_TEST(gradient_equals_finite_differences)
{
    problem p = {.labels = {1, 1, 2, 3, 2, 1}, .label_offsets = {0, 3, 4, 6}, .key = 77};
    static const int frames[B] = {13, 4, 9};
    lin_error err = {0};
    const lin_real_ops *ops = lin_ops_ref();
    p.config = lin_config_default(V);
    p.config.layers = 2;
    p.config.heads = 2;
    p.config.head_width = 3;
    p.config.feedforward = 7;
    p.config.mel_bins = D;
    p.config.norm = cases[_i].norm;
    p.config.positions = cases[_i].positions;
    p.config.causal = cases[_i].causal;
    p.config.stack = cases[_i].stack;
    p.config.ahead = cases[_i].ahead;
    p.config.dropout = cases[_i].dropout;
    if (cases[_i].positions == LIN_POSITIONS_CONV) {
        p.config.conv_kernel = 3;
        p.config.conv_layers = 1;
    }
    vary(&p.config, cases[_i].variant);
    ck_assert_msg(lin_params_create(&p.config, &p.params, &err) == LIN_OK, "%s", err.message);
    const size_t n = p.params.n_elements;
    p.values = test_buffer(n, sizeof *p.values);
    p.gradients = test_buffer(n, sizeof *p.gradients);
    test_fill_f64(p.values, n, 21, -0.7, 0.7);
    memset(p.gradients, 0, n * sizeof *p.gradients);
    test_fill_f64(p.features, MAX_ROWS * D, 22, -1, 1);
    test_fill_f64(p.mean, D, 23, -0.2, 0.2);
    test_fill_f64(p.istd, D, 24, 0.5, 1.5);
    for (int b = 0; b < B; b++) {
        p.in_offsets[b + 1] = p.in_offsets[b] + frames[b];
        p.offsets[b + 1] = p.offsets[b] + lin_config_frames_out(&p.config, frames[b]);
    }
    ck_assert(ops->exec_create(ops, 1, &p.exec, &err) == LIN_OK);
    ck_assert(lin_weights_create(ops, p.exec, &p.config, &p.params, p.values, 1, &p.weights, &err) == LIN_OK);
    ck_assert(lin_activations_create(ops, p.exec, &p.config, MAX_ROWS, 0, 1, &p.activations, &err) == LIN_OK);
    p.batch = (lin_batch){.in = {.B = B, .rows = p.in_offsets[B], .longest = p.in_offsets[B], .offsets = p.in_offsets},
                          .out = {.B = B, .rows = p.offsets[B], .longest = p.offsets[B], .offsets = p.offsets},
                          .features = p.features,
                          .mean = p.mean,
                          .istd = p.istd,
                          .dropout_key = cases[_i].dropout > 0 ? &p.key : NULL};
    const double at = loss(&p);
    ck_assert(isfinite(at) && at > 0);
    lin_network_backward(p.weights, p.activations, p.exec, &p.batch, p.dlogits, p.gradients);
    test_guards(p.gradients, "lin_network_backward");
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(p.gradients[i]));
    for (int t = 0; t < p.params.n_tensors; t++) {
        const lin_param *tensor = &p.params.table[t];
        const size_t count = (size_t)tensor->n * (size_t)(tensor->k ? tensor->k : 1);
        for (size_t j = 0; j < count && tensor->is_fixed; j++) ck_assert(p.gradients[tensor->offset + j] == 0);
        if (tensor->is_fixed) continue;
        for (size_t j = 0; j < count; j += 1 + count / 7) { // a few of each tensor
            double *x = &p.values[tensor->offset + j], kept = *x, h = 1e-6;
            *x = kept + h;
            const double above = loss(&p);
            *x = kept - h;
            const double below = loss(&p);
            *x = kept;
            const double want = (above - below) / (2 * h), got = p.gradients[tensor->offset + j];
            ck_assert_msg(fabs(got - want) <= 2e-7 * largest + 1e-8, "%s[%zu]: gradient %.9g, finite difference %.9g", tensor->name,
                          j, got, want);
        }
    }
    lin_activations_destroy(p.activations);
    lin_weights_destroy(p.weights);
    ops->exec_destroy(p.exec);
    lin_params_free(&p.params);
    test_buffer_free(p.values);
    test_buffer_free(p.gradients);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model/network_gradient");
    TCase *tests = tcase_create("gradient");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, gradient_equals_finite_differences, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
