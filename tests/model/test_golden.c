// The program's network and optimisers, float on the CPU's kernels, against PyTorch in double (golden.h, tests/golden/training.py).
#include "model/optimizer.h"
#include "tests/model/golden.h"

enum { STEPS = 10, MAX_TRACES = 8 };

static const char *const models[] = {"pre-conv", "post-sinusoid"};

/* How one trace of losses was made. */
typedef struct trace {
    char name[64];
    double lr;
    lin_optimizer_options options;
} trace;

typedef struct traces {
    int n;
    trace all[MAX_TRACES];
} traces;

START_TEST(small_case) { golden_check_case(golden_names[_i], lin_ops_cpu(), 1e-4); }
END_TEST

START_TEST(default_network) { golden_check_default(lin_ops_cpu(), 1e-4); }
END_TEST

static void trace_key(void *user, const char *key, char *value)
{
    traces *t = user;
    if (strcmp(key, "trace") != 0) return;
    ck_assert_int_lt(t->n, MAX_TRACES);
    trace *next = &t->all[t->n++];
    char optimiser[16], decayed[16], clip[16];
    lin_optimizer_options *o = &next->options;
    *o = lin_optimizer_default();
    ck_assert_int_eq(
        sscanf(value, "%63s %15s %lf %lf %15s %15s", next->name, optimiser, &next->lr, &o->weight_decay, decayed, clip), 6);
    o->kind = strcmp(optimiser, "radam") == 0 ? LIN_RADAM : LIN_ADAM;
    o->decay_vectors = strcmp(decayed, "all") == 0;
    o->clip_norm = strcmp(clip, "none") == 0 ? 0 : 1;
    o->clip = strcmp(clip, "tensor") == 0 ? LIN_CLIP_TENSOR : LIN_CLIP_GLOBAL;
}

// Ten steps on the whole data; losses[i] is the mean over utterances before step i.
static void train(const golden_case *g, const trace *t, float *values, double *losses)
{
    const lin_ops *ops = lin_ops_cpu();
    const int B = g->n_utterances, rows = g->offsets[B], V = g->config.outputs;
    const size_t count = (size_t)rows * (size_t)V, n = g->params.n_elements;
    lin_exec *exec;
    lin_weights *weights;
    lin_activations *activations;
    lin_optimizer *optimizer;
    lin_error err = {0};
    ck_assert(ops->exec_create(2, &exec, &err) == LIN_OK);
    ck_assert(lin_weights_create(ops, exec, &g->config, &g->params, values, 1, &weights, &err) == LIN_OK);
    ck_assert(lin_activations_create(&g->config, rows, B, 1, &activations, &err) == LIN_OK);
    ck_assert(lin_optimizer_create(ops, &g->params, &t->options, &optimizer, &err) == LIN_OK);
    float *logp = test_buffer(count, sizeof *logp), *dlogits = test_buffer(count, sizeof *dlogits);
    float *gradient = test_buffer(n, sizeof *gradient);
    double each[GOLDEN_MAX];
    const lin_batch batch = {.B = B, .features = g->features, .mean = g->mean, .istd = g->istd, .in_offsets = g->in_offsets,
                             .offsets = g->offsets};
    for (int step = 0; step <= STEPS; step++) {
        lin_network_forward(weights, activations, exec, &batch, logp);
        ops->ctc(exec, each, dlogits, logp, g->offsets, g->labels, g->label_offsets, B, V, 1.0 / B);
        losses[step] = 0;
        for (int b = 0; b < B; b++) losses[step] += each[b] / B;
        if (step == STEPS) break;
        memset(gradient, 0, n * sizeof *gradient);
        lin_network_backward(weights, activations, exec, &batch, dlogits, gradient);
        ck_assert_msg(lin_optimizer_step(optimizer, exec, &g->params, values, gradient, t->lr, NULL, &err) == LIN_OK, "%s",
                      err.message);
        lin_weights_pack(weights, exec);
    }
    test_buffer_free(logp);
    test_buffer_free(dlogits);
    test_buffer_free(gradient);
    lin_optimizer_destroy(optimizer);
    lin_activations_destroy(activations);
    lin_weights_destroy(weights);
    ops->exec_destroy(exec);
}

START_TEST(training_trace)
{
    char folder[64], block[96];
    snprintf(folder, sizeof folder, "training/%s", models[_i]);
    golden_case g;
    traces all = {0};
    golden_open(&g, folder, trace_key, &all);
    golden_load(&g);
    ck_assert_int_ge(all.n, 5);
    const size_t n = g.params.n_elements;
    float *values = test_buffer(n, sizeof *values);
    for (int i = 0; i < all.n; i++) {
        const trace *t = &all.all[i];
        double losses[STEPS + 1];
        memcpy(values, g.values, n * sizeof *values);
        train(&g, t, values, losses);
        double *want = golden_block(&g, t->name, STEPS + 1);
        for (int step = 0; step <= STEPS; step++)
            ck_assert_msg(fabs(losses[step] - want[step]) <= 1e-4, "%s, %s: the loss after %d steps is %.9g, expected %.9g",
                          models[_i], t->name, step, losses[step], want[step]);
        snprintf(block, sizeof block, "%s-params", t->name);
        double *end = golden_block(&g, block, n);
        golden_near(folder, block, values, end, n, 1e-4);
        free(want);
        free(end);
    }
    test_buffer_free(values);
    golden_close(&g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model/golden");
    TCase *tests = tcase_create("golden");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, small_case, 0, GOLDEN_CASES);
    tcase_add_test(tests, default_network);
    tcase_add_loop_test(tests, training_trace, 0, sizeof models / sizeof *models);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
