/*
 * golden_training.h - compares ten steps of training with tests/golden/training.py, PyTorch in double. Run from the root of the
 * tree.
 */
#ifndef LIN_TESTS_GOLDEN_TRAINING_H
#define LIN_TESTS_GOLDEN_TRAINING_H

#include "tests/model/golden.h"
#include "train/optimizer.h"

enum { GOLDEN_STEPS = 10, GOLDEN_TRACES = 8 };

static const char *const golden_models[] = {"pre-conv", "post-sinusoid"};

/* The options of one trace of losses. */
typedef struct golden_trace {
    char name[64];
    double lr;
    lin_optimizer_options options;
} golden_trace;

typedef struct golden_traces {
    int n;
    golden_trace all[GOLDEN_TRACES];
} golden_traces;

static inline void golden_trace_key(void *user, const char *key, char *value)
{
    golden_traces *t = user;
    if (strcmp(key, "trace") != 0) return;
    ck_assert_int_lt(t->n, GOLDEN_TRACES);
    golden_trace *next = &t->all[t->n++];
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

/* Ten steps on the whole data; losses[i] is the mean over utterances before step i. */
static inline void golden_train(const golden_case *g, const lin_ops *ops, const golden_trace *t, float *values, double *losses)
{
    const int B = g->n_utterances;
    const size_t n = g->params.n_elements;
    golden_device device = golden_begin(g, ops, 1, 1.0 / B);
    lin_optimizer optimizer;
    OK(lin_optimizer_init(&optimizer, ops, device.exec, &g->params, &t->options, &err));
    lin_adam_step *scalars = golden_place(&device, NULL, sizeof *scalars);
    lin_tally *tally = golden_place(&device, NULL, sizeof *tally), counted;
    for (int step = 0; step <= GOLDEN_STEPS; step++) {
        golden_step(g, &device);
        double *each = golden_fetch(&device, device.losses, (size_t)B, sizeof *each);
        losses[step] = 0;
        for (int b = 0; b < B; b++) losses[step] += each[b] / B;
        test_buffer_free(each);
        if (step == GOLDEN_STEPS) break;
        const lin_adam_step now = lin_optimizer_scalars(&t->options, ++optimizer.step, t->lr);
        ops->upload(device.exec, scalars, &now, sizeof now);
        lin_optimizer_step(&optimizer, device.exec, device.values, device.gradient, scalars, tally);
        lin_weights_pack(device.weights, device.exec);
    }
    ops->download(device.exec, &counted, tally, sizeof counted);
    ops->download(device.exec, values, device.values, n * sizeof *values);
    OK(ops->finish(device.exec, &err));
    ck_assert(counted.bad == LIN_BAD_NOTHING && counted.steps == GOLDEN_STEPS);
    lin_optimizer_free(&optimizer);
    golden_end(&device);
}

/* All traces of one model on a backend: losses and the weights at the end within `tolerance`. */
static inline void golden_check_traces(const char *model, const lin_ops *ops, double tolerance)
{
    char folder[64], block[96];
    snprintf(folder, sizeof folder, "training/%s", model);
    golden_case g;
    golden_traces all = {0};
    golden_open(&g, folder, golden_trace_key, &all);
    golden_load(&g);
    ck_assert_int_ge(all.n, 5);
    const size_t n = g.params.n_elements;
    float *values = test_buffer(n, sizeof *values);
    for (int i = 0; i < all.n; i++) {
        const golden_trace *t = &all.all[i];
        double losses[GOLDEN_STEPS + 1];
        golden_train(&g, ops, t, values, losses);
        double *want = golden_block(&g, t->name, GOLDEN_STEPS + 1);
        for (int step = 0; step <= GOLDEN_STEPS; step++)
            ck_assert_msg(fabs(losses[step] - want[step]) <= tolerance, "%s, %s: the loss after %d steps is %.9g, expected %.9g",
                          model, t->name, step, losses[step], want[step]);
        snprintf(block, sizeof block, "%s-params", t->name);
        double *end = golden_block(&g, block, n);
        golden_near(folder, block, values, end, n, tolerance);
        free(want);
        free(end);
    }
    test_buffer_free(values);
    golden_close(&g);
}

#endif
