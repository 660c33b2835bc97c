// The gradient of the whole network, CTC or the loss of voices included, against finite differences in double.
#define LIN_REAL_DOUBLE
#include "model/network.c"
#include "model/pooling.c"
#include "model/transformer.c"
#ifndef LIN_NO_PAPER
#include "paper/networks.c"
#endif

#include "tests/kernels/ref/reference.h"
#include "tests/model/networks.h"

enum { D = 3, V = 4, B = 3, MAX_ROWS = 40, MIXED = 2, TOKENS = 5, WIDEST = 3 * MIXED > V ? 3 * MIXED : V };

typedef struct problem {
    lin_config config;
    lin_params params;
    lin_exec *exec;
    lin_weights *weights;
    lin_activations *activations;
    lin_batch batch;
    double *values, *gradients, features[MAX_ROWS * D], mean[D], istd[D], logp[MAX_ROWS * WIDEST], dlogits[MAX_ROWS * WIDEST],
        inner_dlogits[2][MAX_ROWS * V], d_search[MAX_ROWS * V];
    int targets[MAX_ROWS];
    lin_inner inner[2];
    int in_offsets[B + 1], offsets[B + 1], labels[8], label_offsets[B + 1];
    uint64_t key;
} problem;

static double loss(problem *p)
{
    double each[B], sum = 0, scale = 1;
    lin_weights_pack(p->weights, p->exec);
    lin_network_forward(p->weights, p->activations, p->exec, &p->batch, p->logp);
    if (p->config.voice) {
        lin_network_voices(p->weights, p->activations, p->exec, &p->batch, p->logp);
        lin_voice_loss(each, p->dlogits, p->logp, p->labels, B, V, scale);
    } else if (p->config.mixture)
        lin_ops_ref()->mixture(p->exec, each, p->dlogits, p->logp, &p->batch.out, p->targets, MIXED, &scale);
    else if (p->config.tokens)
        lin_ops_ref()->cross_entropy(p->exec, each, p->dlogits, p->logp, &p->batch.out, p->targets, V, &scale);
    else lin_ops_ref()->ctc(p->exec, each, p->dlogits, p->logp, &p->batch.out, p->labels, p->label_offsets, 3, V, &scale);
    for (int b = 0; b < B; b++) sum += each[b];
    if (p->config.search) {
        scale = 0.7;
        lin_network_search(p->weights, p->activations, p->exec, &p->batch, p->logp);
        lin_ops_ref()->ctc(p->exec, each, p->d_search, p->logp, &p->batch.out, p->labels, p->label_offsets, 3, V, &scale);
        for (int b = 0; b < B; b++) sum += scale * each[b];
    }
    for (int i = 0; i < p->batch.n_inner; i++) {
        scale = 0.3 + i;
        lin_network_inner(p->weights, p->activations, p->exec, &p->batch, p->inner[i].layer, p->logp);
        lin_ops_ref()->ctc(p->exec, each, p->inner_dlogits[i], p->logp, &p->batch.out, p->labels, p->label_offsets, 3, V, &scale);
        for (int b = 0; b < B; b++) sum += scale * each[b];
    }
    return sum;
}

static const struct {
    lin_norm norm;
    lin_positions positions;
    int causal, stack, ahead;
    double dropout;
    enum { LINEAR, SOFTMAX, NAIVE, LSH, POLY2, RANDOM, LSTM, FIXED, GATED, CONDITION, KIND = 15, OF_TOKENS = 16,
           MIXTURE = 32, SEARCH = 64, VOICE = 128 } variant;
} cases[] = {{LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 1, 0, 0, LINEAR},     {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 2, 1, 0, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_CONV, 1, 1, 2, 0.2, LINEAR},
             {LIN_NORM_PRE, LIN_POSITIONS_NONE, 0, 1, 0, 0.3, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_SINUSOID, 0, 2, 0, 0, LINEAR},
             {LIN_NORM_PRE, LIN_POSITIONS_SINUSOID, 1, 1, 0, 0.1, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, SOFTMAX},  {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, SOFTMAX},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, NAIVE},    {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, NAIVE},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, LSH},      {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, LSH},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, POLY2},    {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, POLY2},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, RANDOM},   {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, RANDOM},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 1, 1, 0.2, LSTM},     {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 2, 0, 0, LSTM},
             {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0.1, LINEAR},
             {LIN_NORM_PRE, LIN_POSITIONS_CENTRED_CONV, 0, 1, 0, 0, LINEAR},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 1, 0, 0, FIXED},
             {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 2, 1, 0.1, FIXED},
             {LIN_NORM_POST, LIN_POSITIONS_CONV, 1, 1, 0, 0.2, GATED},
             {LIN_NORM_PRE, LIN_POSITIONS_NONE, 1, 1, 0, 0, GATED},       {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0.1, GATED},
             {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0.1, CONDITION},
             {LIN_NORM_PRE, LIN_POSITIONS_NONE, 0, 1, 0, 0.1, CONDITION},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 2, 1, 0, CONDITION},
             {LIN_NORM_POST, LIN_POSITIONS_SINUSOID, 1, 1, 0, 0.1, LINEAR | OF_TOKENS},
             {LIN_NORM_PRE, LIN_POSITIONS_SINUSOID, 0, 1, 0, 0, SOFTMAX | OF_TOKENS},
             {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0, GATED | OF_TOKENS | MIXTURE},
             {LIN_NORM_POST, LIN_POSITIONS_SINUSOID, 1, 1, 0, 0.1, LSH | OF_TOKENS | MIXTURE},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 1, 0, 0.1, LSTM | OF_TOKENS},
             {LIN_NORM_PRE, LIN_POSITIONS_CONV, 1, 1, 0, 0.1, CONDITION | SEARCH},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 0, 2, 0, 0, LINEAR | SEARCH},
             {LIN_NORM_PRE, LIN_POSITIONS_CENTRED_CONV, 0, 2, 1, 0.1, LINEAR | VOICE},
             {LIN_NORM_POST, LIN_POSITIONS_NONE, 1, 1, 0, 0, GATED | VOICE}};
enum { N_CASES = sizeof cases / sizeof *cases };

// Three layers of one of these cases, with losses of layer 1 and of the one above.
static const int with_inner[] = {0, 2, 1, 3, 18, 6, 7, 22, 24, 25, 26, 27, 33, 34};

static lin_config vary(lin_config c, int variant)
{
    static const network_kind kinds[] = {OF_LINEAR, OF_SOFTMAX, OF_NAIVE, OF_LSH, OF_POLY2, OF_RANDOM, OF_LSTM, OF_FIXED,
                                         OF_GATED, OF_CONDITION};
    c = of_kind(c, kinds[variant]);
    if (variant == LSH) c.lsh_chunk = 3;
    if (variant == RANDOM) c.features = 4;
    if (variant == LSTM) c.layers = 3, c.width = 4;
    return c;
}

START_TEST(gradient_equals_finite_differences)
{
    const int inner = _i >= N_CASES, of = inner ? with_inner[_i - N_CASES] : _i;
    problem p = {.labels = {1, 1, 2, 3, 2, 1}, .label_offsets = {0, 3, 4, 6}, .key = 77};
    static const int frames[B] = {13, 4, 9};
    const lin_real_ops *ops = lin_ops_ref();
    p.config = sized_config(inner ? 3 : 2, 2, 3, 7, D, V);
    p.config.norm = cases[of].norm;
    p.config.positions = cases[of].positions;
    p.config.causal = cases[of].causal;
    p.config.stack = cases[of].stack;
    p.config.ahead = cases[of].ahead;
    p.config.dropout = cases[of].dropout;
    if (cases[of].positions >= LIN_POSITIONS_CONV) {
        p.config.conv_kernel = 3;
        p.config.conv_layers = 1;
    }
    p.config = vary(p.config, cases[of].variant & KIND);
    p.config.search = (cases[of].variant & SEARCH) != 0;
    if (cases[of].variant & VOICE) p.config.voice = 5;
    if (cases[of].variant & OF_TOKENS) p.config.tokens = TOKENS, p.config.mel_bins = 2;
    if (cases[of].variant & MIXTURE) p.config.mixture = MIXED, p.config.outputs = 3 * MIXED;
    if (TEST_LACKS(&p.config)) return;
    OK(lin_params_create(&p.config, &p.params, &err));
    const size_t n = p.params.n_elements;
    p.values = test_buffer(n, sizeof *p.values);
    p.gradients = test_buffer(n, sizeof *p.gradients);
    test_fill_f64(p.values, n, 21, -0.7, 0.7);
    memset(p.gradients, 0, n * sizeof *p.gradients);
    test_fill_f64(p.features, MAX_ROWS * D, 22, -1, 1);
    for (int r = 0; r < MAX_ROWS; r++) {
        const int token = r * 7 % 11 % TOKENS;
        if (p.config.tokens) p.features[2 * r] = token / 2, p.features[2 * r + 1] = token - token / 2;
        p.targets[r] = r % 5 == 3 ? -1 : p.config.mixture ? r * 37 % 256 : r % V;
        if (p.config.mixture && r % 9 == 1) p.targets[r] = r % 2 ? 255 : 0;
    }
    test_fill_f64(p.mean, D, 23, -0.2, 0.2);
    test_fill_f64(p.istd, D, 24, 0.5, 1.5);
    for (int b = 0; b < B; b++) {
        p.in_offsets[b + 1] = p.in_offsets[b] + frames[b];
        p.offsets[b + 1] = p.offsets[b] + lin_config_frames_out(&p.config, frames[b]);
    }
    OK(ops->exec_create(ops, 1, &p.exec, &err));
    OK(lin_weights_create(ops, p.exec, &p.config, &p.params, p.values, NULL, 1, &p.weights, &err));
    OK(lin_activations_create(ops, p.exec, &p.config, MAX_ROWS, 0, 1, &p.activations, &err));
    p.batch = (lin_batch){.in = {.B = B, .rows = p.in_offsets[B], .longest = p.in_offsets[B], .offsets = p.in_offsets},
                          .out = {.B = B, .rows = p.offsets[B], .longest = p.offsets[B], .offsets = p.offsets},
                          .features = p.features,
                          .mean = p.mean,
                          .istd = p.istd,
                          .dropout_key = cases[of].dropout > 0 ? &p.key : NULL,
                          .inner = p.inner,
                          .n_inner = inner ? 2 : 0,
                          .d_search = p.config.search ? p.d_search : NULL};
    for (int i = 0; i < 2; i++) p.inner[i] = (lin_inner){.layer = 1 + i, .dlogits = p.inner_dlogits[i]};
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
            ck_assert_msg(fabs(got - want) <= 2e-7 * largest + 1e-8, "%s[%zu]: gradient %.9g, finite difference %.9g",
                          tensor->name, j, got, want);
        }
    }
    lin_activations_destroy(p.activations);
    lin_weights_destroy(p.weights);
    ops->exec_destroy(p.exec);
    lin_params_free(&p.params);
    TEST_FREE(p.values, p.gradients);
}
END_TEST

TEST_MAIN("model/network_gradient",
          TESTS(gradient_equals_finite_differences, 0, N_CASES + (int)(sizeof with_inner / sizeof *with_inner)))
