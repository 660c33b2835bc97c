/*
 * golden.h - compares the network with tests/golden/network.py, an independent implementation in PyTorch, float64.
 *
 * Written for lin_real, so that the same cases test the program's float network on the CPU's kernels (test_golden.c, 1e-4) and
 * the same source in double on the reference (test_golden_f64.c, where only rounding may differ). Run from the root of the tree.
 */
#ifndef LIN_TESTS_GOLDEN_H
#define LIN_TESTS_GOLDEN_H

#include "kernels/ops.h"
#include "model/config.h"
#include "model/network.h"
#include "tests/support.h"

enum { GOLDEN_MAX = 32 };

/* One folder of golden values, whole in memory. Blocks of the features and so on as in tests/golden/network.py. */
typedef struct golden_case {
    char folder[256];
    lin_config config;
    lin_params params;
    int n_utterances, frames[GOLDEN_MAX], label_counts[GOLDEN_MAX], n_labels, labels[GOLDEN_MAX * 8];
    int in_offsets[GOLDEN_MAX + 1], offsets[GOLDEN_MAX + 1], label_offsets[GOLDEN_MAX + 1];
    lin_real *values, *features, *mean, *istd;
} golden_case;

/* NAME.f64 of the folder, which must hold exactly n little-endian doubles. */
static inline double *golden_block(const golden_case *g, const char *name, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.f64", g->folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s; tests run from the root of the source tree", path);
    double *block = calloc(n + 1, sizeof *block);
    ck_assert(block != NULL);
    size_t got = fread(block, sizeof *block, n + 1, file);
    fclose(file);
    ck_assert_msg(got == n, "%s holds %zu doubles, not %zu", path, got, n);
    return block;
}

static inline lin_real *golden_reals(const golden_case *g, const char *name, size_t n)
{
    double *block = golden_block(g, name, n);
    lin_real *reals = malloc((n + 1) * sizeof *reals);
    ck_assert(reals != NULL);
    for (size_t i = 0; i < n; i++) reals[i] = (lin_real)block[i];
    free(block);
    return reals;
}

static inline int golden_ints(char *text, int *values, int capacity)
{
    for (int n = 0;; n++) {
        char *end;
        long x = strtol(text, &end, 10);
        if (end == text) return n;
        ck_assert_msg(n < capacity, "too many numbers in a line of a golden configuration");
        values[n] = (int)x;
        text = end;
    }
}

static inline void golden_key(golden_case *g, const char *key, char *value)
{
    lin_config *c = &g->config;
    const struct {
        const char *name;
        int *field;
    } fields[] = {{"layers", &c->layers},       {"heads", &c->heads},     {"head_width", &c->head_width},
                  {"feedforward", &c->feedforward}, {"mel_bins", &c->mel_bins}, {"outputs", &c->outputs},
                  {"stack", &c->stack},         {"ahead", &c->ahead},     {"conv_kernel", &c->conv_kernel},
                  {"conv_layers", &c->conv_layers}, {"causal", &c->causal}, {"features", &c->features},
                  {"lsh_rounds", &c->lsh_rounds}, {"lsh_chunk", &c->lsh_chunk}, {"width", &c->width},
                  {"condition_every", &c->condition_every}, {"tokens", &c->tokens}, {"mixture", &c->mixture}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(key, fields[i].name) == 0) *fields[i].field = atoi(value);
    if (strcmp(key, "positions") == 0)
        for (int i = 0; lin_position_names[i]; i++)
            if (strcmp(value, lin_position_names[i]) == 0) c->positions = (lin_positions)i;
    if (strcmp(key, "network") == 0) c->network = strcmp(value, "lstm") == 0 ? LIN_NETWORK_LSTM : LIN_NETWORK_TRANSFORMER;
    for (int i = 0; lin_attention_names[i] && strcmp(key, "attention") == 0; i++)
        if (strcmp(value, lin_attention_names[i]) == 0) c->attention = (lin_attention_kind)i;
    for (int i = 0; lin_feature_map_names[i] && strcmp(key, "feature_map") == 0; i++)
        if (strcmp(value, lin_feature_map_names[i]) == 0) c->feature_map = (lin_map_kind)i;
    for (int i = 0; lin_decay_names[i] && strcmp(key, "decay") == 0; i++)
        if (strcmp(value, lin_decay_names[i]) == 0) c->decay = (lin_decay_kind)i;
    if (strcmp(key, "norm") == 0) c->norm = strcmp(value, "pre") == 0 ? LIN_NORM_PRE : LIN_NORM_POST;
    if (strcmp(key, "frames") == 0) g->n_utterances = golden_ints(value, g->frames, GOLDEN_MAX);
    if (strcmp(key, "label_counts") == 0) ck_assert_int_eq(golden_ints(value, g->label_counts, GOLDEN_MAX), g->n_utterances);
    if (strcmp(key, "labels") == 0) g->n_labels = golden_ints(value, g->labels, GOLDEN_MAX * 8);
    if (strcmp(key, "n_params") == 0 && !TEST_LACKS(c)) {
        lin_error err = {0};
        ck_assert_msg(lin_params_create(c, &g->params, &err) == LIN_OK, "%s: %s", g->folder, err.message);
        ck_assert_uint_eq(g->params.n_elements, strtoul(value, NULL, 10));
    }
}

/* Reads config.txt. `other` (may be NULL) is called with every line, for keys that only some folders have. */
static inline void golden_open(golden_case *g, const char *folder, void (*other)(void *user, const char *key, char *value),
                               void *user)
{
    *g = (golden_case){.config = {.dropout = 0}};
    snprintf(g->folder, sizeof g->folder, "tests/golden/%s", folder);
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/config.txt", g->folder);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s; tests run from the root of the source tree", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *space = strchr(line, ' ');
        char *value = space ? space + 1 : line + strlen(line);
        if (space) *space = 0;
        golden_key(g, line, value);
        if (other) other(user, line, value);
    }
    fclose(file);
    for (int b = 0; b < g->n_utterances; b++) {
        g->in_offsets[b + 1] = g->in_offsets[b] + g->frames[b];
        g->offsets[b + 1] = g->offsets[b] + lin_config_frames_out(&g->config, g->frames[b]);
        g->label_offsets[b + 1] = g->label_offsets[b] + g->label_counts[b];
    }
    ck_assert_int_eq(g->label_offsets[g->n_utterances], g->n_labels);
}

/* Parameters and data from the folder's blocks. */
static inline void golden_load(golden_case *g)
{
    const size_t D = (size_t)g->config.mel_bins;
    g->values = golden_reals(g, "params", g->params.n_elements);
    g->features = golden_reals(g, "features", (size_t)g->in_offsets[g->n_utterances] * D);
    g->mean = golden_reals(g, "mean", D);
    g->istd = golden_reals(g, "istd", D);
}

static inline void golden_close(golden_case *g)
{
    lin_params_free(&g->params);
    free(g->values);
    free(g->features);
    free(g->mean);
    free(g->istd);
}

/* A case in the backend's memory: data, a network with its weights, and room for the outputs. */
typedef struct golden_device {
    const lin_real_ops *ops;
    lin_exec *exec;
    lin_weights *weights;
    lin_activations *activations;
    lin_batch batch;
    lin_real *values, *logp, *dlogits, *gradient;
    int *labels, *label_offsets, most_labels;
    double *losses, *scale;
    void *blocks[16];
    int n_blocks;
} golden_device;

static inline void *golden_place(golden_device *t, const void *from, size_t bytes)
{
    ck_assert_int_lt(t->n_blocks, 16);
    void **block = &t->blocks[t->n_blocks++];
    OK(t->ops->memory_create(t->exec, bytes, block, &err));
    if (from) t->ops->upload(t->exec, *block, from, bytes);
    return *block;
}

static inline golden_device golden_begin(const golden_case *g, const lin_real_ops *ops, int for_training, double scale)
{
    golden_device t = {.ops = ops};
    const int B = g->n_utterances, rows = g->offsets[B], frames = g->in_offsets[B];
    const size_t D = (size_t)g->config.mel_bins, logits = (size_t)rows * (size_t)g->config.outputs, n = g->params.n_elements;
    const size_t offsets = (size_t)(B + 1) * sizeof(int);
    OK(ops->exec_create(ops, 2, &t.exec, &err));
    t.values = golden_place(&t, g->values, n * sizeof *t.values);
    t.logp = golden_place(&t, NULL, logits * sizeof *t.logp);
    t.dlogits = golden_place(&t, NULL, logits * sizeof *t.dlogits);
    t.gradient = golden_place(&t, NULL, n * sizeof *t.gradient);
    t.labels = golden_place(&t, g->labels, (size_t)g->n_labels * sizeof *t.labels);
    t.label_offsets = golden_place(&t, g->label_offsets, offsets);
    t.losses = golden_place(&t, NULL, (size_t)B * sizeof *t.losses);
    t.scale = golden_place(&t, &scale, sizeof scale);
    t.batch = (lin_batch){
        .in = {.B = B, .rows = frames, .longest = frames, .offsets = golden_place(&t, g->in_offsets, offsets)},
        .out = {.B = B, .rows = rows, .longest = rows, .offsets = golden_place(&t, g->offsets, offsets)},
        .features = golden_place(&t, g->features, (size_t)frames * D * sizeof *g->features),
        .mean = golden_place(&t, g->mean, D * sizeof *g->mean),
        .istd = golden_place(&t, g->istd, D * sizeof *g->istd)};
    for (int b = 0; b < B; b++)
        if (g->label_counts[b] > t.most_labels) t.most_labels = g->label_counts[b];
    OK(lin_weights_create(ops, t.exec, &g->config, &g->params, t.values, NULL, for_training, &t.weights, &err));
    OK(lin_activations_create(ops, t.exec, &g->config, rows, 0, for_training, &t.activations, &err));
    return t;
}

static inline void golden_end(golden_device *t)
{
    OK(t->ops->finish(t->exec, &err));
    lin_activations_destroy(t->activations);
    lin_weights_destroy(t->weights);
    for (int i = 0; i < t->n_blocks; i++) t->ops->memory_destroy(t->exec, t->blocks[i]);
    t->ops->exec_destroy(t->exec);
}

/* A block of the backend's, copied into a buffer of the test's. */
static inline void *golden_fetch(golden_device *t, const void *block, size_t count, size_t size)
{
    void *host = test_buffer(count, size);
    t->ops->download(t->exec, host, block, count * size);
    OK(t->ops->finish(t->exec, &err));
    return host;
}

/* Forward, loss and gradients of its sum. */
static inline void golden_step(const golden_case *g, golden_device *t)
{
    lin_network_forward(t->weights, t->activations, t->exec, &t->batch, t->logp);
    if (g->config.mixture)
        t->ops->mixture(t->exec, t->losses, t->dlogits, t->logp, &t->batch.out, t->labels, g->config.mixture, t->scale);
    else if (g->config.tokens)
        t->ops->cross_entropy(t->exec, t->losses, t->dlogits, t->logp, &t->batch.out, t->labels, g->config.outputs, t->scale);
    else
        t->ops->ctc(t->exec, t->losses, t->dlogits, t->logp, &t->batch.out, t->labels, t->label_offsets, t->most_labels,
                    g->config.outputs, t->scale);
    t->ops->zero(t->exec, t->gradient, g->params.n_elements * sizeof *t->gradient);
    lin_network_backward(t->weights, t->activations, t->exec, &t->batch, t->dlogits, t->gradient);
}

/* Log-probabilities [rows, V], CTC losses [B] and the gradient of their sum [n_params]; the caller frees them. */
typedef struct golden_result {
    lin_real *logp, *gradient;
    double *losses;
} golden_result;

static inline golden_result golden_run(const golden_case *g, const lin_real_ops *ops, int backward)
{
    golden_device t = golden_begin(g, ops, backward, 1);
    golden_result r = {0};
    if (backward) {
        golden_step(g, &t);
        r.losses = golden_fetch(&t, t.losses, (size_t)g->n_utterances, sizeof *r.losses);
        r.gradient = golden_fetch(&t, t.gradient, g->params.n_elements, sizeof *r.gradient);
    } else {
        lin_network_forward(t.weights, t.activations, t.exec, &t.batch, t.logp);
    }
    r.logp = golden_fetch(&t, t.logp, (size_t)t.batch.out.rows * (size_t)g->config.outputs, sizeof *r.logp);
    golden_end(&t);
    return r;
}

static inline void golden_result_free(golden_result *r)
{
    TEST_FREE(r->logp, r->gradient, r->losses);
}

/* |got - want| <= tolerance for every element. */
static inline void golden_near(const char *folder, const char *what, const lin_real *got, const double *want, size_t n,
                               double tolerance)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= tolerance, "%s: %s %zu of %zu is %.12g, expected %.12g", folder, what, i,
                      n, (double)got[i], want[i]);
}

/* One small configuration: log-probabilities and losses within `tolerance`, and every tensor's gradient within `tolerance` of
 * that tensor's largest element, so that a small gradient (of a norm's bias, say) is not hidden by a large one. */
static inline void golden_check_case(const char *name, const lin_real_ops *ops, double tolerance)
{
    char folder[128];
    const int naive = strncmp(name, "naive ", 6) == 0; // softmax-naive is the same function as softmax
    snprintf(folder, sizeof folder, "network/%s", naive ? name + 6 : name);
    golden_case g;
    golden_open(&g, folder, NULL, NULL);
    if (TEST_LACKS(&g.config)) return;
    golden_load(&g);
    if (naive) g.config.attention = LIN_ATTENTION_SOFTMAX_NAIVE;
    const size_t count = (size_t)g.offsets[g.n_utterances] * (size_t)g.config.outputs;
    double *logp = golden_block(&g, "logp", count), *losses = golden_block(&g, "losses", (size_t)g.n_utterances);
    double *gradient = golden_block(&g, "gradient", g.params.n_elements);

    golden_result inference = golden_run(&g, ops, 0);
    golden_near(folder, "log-probability (inference)", inference.logp, logp, count, tolerance);
    golden_result training = golden_run(&g, ops, 1);
    golden_near(folder, "log-probability (training)", training.logp, logp, count, tolerance);
    for (int b = 0; b < g.n_utterances; b++)
        ck_assert_msg(fabs(training.losses[b] - losses[b]) <= tolerance * (1 + losses[b]), "%s: loss %d is %.12g, expected %.12g",
                      folder, b, training.losses[b], losses[b]);
    for (int i = 0; i < g.params.n_tensors; i++) {
        const lin_param *t = &g.params.table[i];
        const size_t n = (size_t)t->n * (size_t)(t->k ? t->k : 1);
        double largest = 0;
        for (size_t j = 0; j < n; j++) largest = fmax(largest, fabs(gradient[t->offset + j]));
        char what[96];
        snprintf(what, sizeof what, "gradient of %s", t->name);
        golden_near(folder, what, training.gradient + t->offset, gradient + t->offset, n, tolerance * largest);
    }

    golden_result_free(&inference);
    golden_result_free(&training);
    free(logp);
    free(losses);
    free(gradient);
    golden_close(&g);
}

static const char *const golden_names[] = {"post-causal", "post-bidirectional-sinusoid", "pre-causal-conv-stack",
                                           "pre-bidirectional-sinusoid", "post-causal-conv", "softmax-causal-conv",
                                           "softmax-bidirectional", "naive softmax-causal-conv", "naive softmax-bidirectional",
                                           "lsh-causal", "lsh-bidirectional", "poly2-causal-conv", "random-causal",
                                           "random-bidirectional", "lstm-bidirectional", "lstm-causal", "pre-centred-conv-stack",
                                           "decay-fixed", "decay-gated-conv", "decay-gated",
                                           "condition-pre-conv", "condition-post", "tokens-post", "tokens-pre-softmax",
                                           "tokens-pre-gated", "tokens-mixture-post", "tokens-mixture-pre-softmax",
                                           "tokens-lstm"};
enum { GOLDEN_CASES = sizeof golden_names / sizeof *golden_names };

/* ---- tokens drawn one by one ----------------------------------------------------------------------------------------------- */

enum { GOLDEN_TOKENS = 22, GOLDEN_DRAWN = 20 }; /* the first of golden_names; those drawn after a first one */

static inline void golden_drawn_key(void *user, const char *key, char *value)
{
    if (strcmp(key, "drawn") == 0) ck_assert_int_eq(golden_ints(value, user, GOLDEN_DRAWN + 1), GOLDEN_DRAWN + 1);
}

/* What the network says after each of the tokens that PyTorch drew. */
static inline void golden_check_drawn(const char *name, const lin_real_ops *ops, double tolerance)
{
    char folder[128];
    int drawn[GOLDEN_DRAWN + 1];
    golden_case g;
    snprintf(folder, sizeof folder, "network/%s", name);
    golden_open(&g, folder, golden_drawn_key, drawn);
    if (TEST_LACKS(&g.config)) return;
    golden_load(&g);
    const size_t D = (size_t)g.config.mel_bins, count = GOLDEN_DRAWN * (size_t)g.config.outputs;
    g.n_utterances = 1;
    g.frames[0] = g.in_offsets[1] = g.offsets[1] = GOLDEN_DRAWN;
    for (size_t t = 0; t < GOLDEN_DRAWN * D; t++) g.features[t] = t % D ? 0 : (lin_real)drawn[t / D];
    double *want = golden_block(&g, "drawn_logp", count);
    golden_result r = golden_run(&g, ops, 0);
    golden_near(folder, "what is said of a drawn token", r.logp, want, count, tolerance);
    golden_result_free(&r);
    free(want);
    golden_close(&g);
}

static inline void golden_rows_key(void *user, const char *key, char *value)
{
    if (strcmp(key, "rows") == 0) ck_assert_int_eq(golden_ints(value, user, 4), 4);
}

/* The paper's network with parameters of lin_params_init, seed 1; data by the formula in network.py, default_case. */
static inline void golden_check_default(const lin_real_ops *ops, double tolerance)
{
    int rows[4];
    golden_case g;
    golden_open(&g, "network/default", golden_rows_key, rows);
    const size_t D = (size_t)g.config.mel_bins, V = (size_t)g.config.outputs, n = (size_t)g.in_offsets[1] * D;
    float *values = calloc(g.params.n_elements, sizeof *values);
    g.values = calloc(g.params.n_elements, sizeof *g.values);
    g.features = calloc(n, sizeof *g.features);
    g.mean = calloc(D, sizeof *g.mean);
    g.istd = calloc(D, sizeof *g.istd);
    lin_params_init(&g.params, values, 1);
    for (size_t i = 0; i < g.params.n_elements; i++) g.values[i] = values[i];
    for (size_t i = 0; i < n; i++) g.features[i] = (float)(6 * lin_random_uniform(lin_random_key(2, 0), i) - 3);
    for (size_t i = 0; i < D; i++) {
        g.mean[i] = (float)(lin_random_uniform(lin_random_key(2, 1), i) - 0.5);
        g.istd[i] = (float)(0.5 + lin_random_uniform(lin_random_key(2, 2), i));
    }
    double *want = golden_block(&g, "rows", 4 * V);
    golden_result r = golden_run(&g, ops, 0);
    for (size_t i = 0; i < 4; i++)
        golden_near("network/default", "log-probability", r.logp + (size_t)rows[i] * V, want + i * V, V, tolerance);
    golden_result_free(&r);
    free(want);
    free(values);
    golden_close(&g);
}

#endif
