/*
 * bench_copy.c - linnet bench copy: how fast each variant learns to repeat a sequence (Katharopoulos et al. 2020, section 4.1.1
 * and figure 2).
 *
 * A sequence is 0 w 0 w: a separator, symbols w, the separator, and the same symbols again. The length of w is uniform from 1
 * to (length - 2) / 2, its symbols are uniform. A causal network predicts each next symbol. The loss is the cross entropy of
 * the symbols of the second w, in nats per symbol: those of the first one are random. A network that always guesses has
 * ln(symbols).
 *
 * The network is that of model/network.h with one-hot symbols as features, sinusoidal positions, post-norm, a feed-forward
 * width of 4 C and no dropout; RAdam as in the paper's library, without weight decay. Every variant sees the same sequences.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/rng.h"
#include "lab/bench.h"
#include "model/model.h"
#include "model/network.h"
#include "train/optimizer.h"

enum { MOST_BLOCKS = 16, DROP_STEP = 3000, STEPS = 10000, LENGTH = 128, BATCH = 64, LAYERS = 4, HEADS = 8, LOG_EVERY = 50 };

typedef struct task {
    int length, symbols, batch, steps, drop_step, log_every;
    double lr;
    uint64_t seed;
} task;

typedef struct learner {
    const task *task;
    const lin_ops *ops;
    lin_exec *exec;
    lin_model *model;
    lin_weights *weights;
    lin_activations *activations;
    lin_optimizer *optimizer;
    void *blocks[MOST_BLOCKS];
    int n_blocks;
    // in the backend's memory
    float *values, *gradients, *features, *mean, *istd, *logp, *dlogits;
    double *losses, *scale;
    int *offsets, *targets;
    lin_adam_step *adam;
    lin_tally *tally;
    // on the host
    float *host_features;
    double *host_losses;
    int *host_offsets, *host_targets;
} learner;

/* ---- the task -------------------------------------------------------------------------------------------------------------- */

static int most_rows(const task *t) { return t->batch * (t->length - 1); }

// One-hot symbols and targets of sequence b of a step, at `row`; returns its rows. Symbol 0 separates.
static int make_sequence(const task *t, int step, int b, float *features, int *targets, int row)
{
    const uint64_t key = lin_random_key(lin_random_key(t->seed, (uint64_t)step), (uint64_t)b);
    const int n = 1 + (int)lin_random_below(key, 0, (uint32_t)(t->length - 2) / 2), V = t->symbols + 1;
    int symbols[4096];
    for (int i = 0; i <= n; i++)
        symbols[i] = symbols[n + 1 + i] = i ? 1 + (int)lin_random_below(key, (uint64_t)i, (uint32_t)t->symbols) : 0;
    for (int i = 0; i < 2 * n + 1; i++) {
        float *x = features + (size_t)(row + i) * (size_t)V;
        memset(x, 0, (size_t)V * sizeof *x);
        x[symbols[i]] = 1;
        targets[row + i] = i > n ? symbols[i + 1] : -1;
    }
    return 2 * n + 1;
}

// Returns the number of symbols that count.
static int make_batch(learner *l, int step, int *rows, int *longest)
{
    const task *t = l->task;
    int counted = 0;
    *rows = *longest = 0;
    for (int b = 0; b < t->batch; b++) {
        const int n = make_sequence(t, step, b, l->host_features, l->host_targets, *rows);
        l->host_offsets[b] = *rows;
        *rows += n;
        counted += n / 2;
        if (n > *longest) *longest = n;
    }
    l->host_offsets[t->batch] = *rows;
    return counted;
}

/* ---- the network ----------------------------------------------------------------------------------------------------------- */

static lin_status room(learner *l, size_t bytes, void *at, lin_error *err)
{
    void *block;
    const lin_status status = l->ops->memory_create(l->exec, bytes, &block, err);
    if (status != LIN_OK) return status;
    l->blocks[l->n_blocks++] = block;
    memcpy(at, &block, sizeof block);
    return LIN_OK;
}

static lin_status make_room(learner *l, lin_error *err)
{
    const task *t = l->task;
    const size_t V = (size_t)t->symbols + 1, rows = (size_t)most_rows(t), B = (size_t)t->batch, n = l->model->params.n_elements;
    lin_status status = room(l, n * sizeof(float), &l->values, err);
    if (status == LIN_OK) status = room(l, n * sizeof(float), &l->gradients, err);
    if (status == LIN_OK) status = room(l, rows * V * sizeof(float), &l->features, err);
    if (status == LIN_OK) status = room(l, V * sizeof(float), &l->mean, err);
    if (status == LIN_OK) status = room(l, V * sizeof(float), &l->istd, err);
    if (status == LIN_OK) status = room(l, rows * V * sizeof(float), &l->logp, err);
    if (status == LIN_OK) status = room(l, rows * V * sizeof(float), &l->dlogits, err);
    if (status == LIN_OK) status = room(l, B * sizeof(double), &l->losses, err);
    if (status == LIN_OK) status = room(l, sizeof(double), &l->scale, err);
    if (status == LIN_OK) status = room(l, (B + 1) * sizeof(int), &l->offsets, err);
    if (status == LIN_OK) status = room(l, rows * sizeof(int), &l->targets, err);
    if (status == LIN_OK) status = room(l, sizeof(lin_adam_step), &l->adam, err);
    if (status == LIN_OK) status = room(l, sizeof(lin_tally), &l->tally, err);
    if (status != LIN_OK) return status;
    l->host_features = lin_alloc(rows * V, sizeof(float));
    l->host_losses = lin_alloc(B, sizeof(double));
    l->host_offsets = lin_alloc(B + 1, sizeof(int));
    l->host_targets = lin_alloc(rows, sizeof(int));
    if (!l->host_features || !l->host_losses || !l->host_offsets || !l->host_targets)
        return lin_no_memory(err, "a batch", rows * V * sizeof(float));
    return LIN_OK;
}

static lin_config network_of(const task *t, const lin_bench_values *v, const lin_bench_variant *variant)
{
    lin_config c = lin_config_default(t->symbols + 1);
    c.mel_bins = t->symbols + 1;
    c.layers = v->layers ? v->layers : LAYERS;
    c.heads = v->heads ? v->heads : HEADS;
    c.head_width = v->head_width;
    c.feedforward = 4 * c.heads * c.head_width;
    c.positions = LIN_POSITIONS_SINUSOID;
    c.causal = 1;
    c.dropout = 0;
    lin_bench_apply(variant, &c);
    return c;
}

static lin_status begin(learner *l, const lin_config *config, const lin_bench_values *v, lin_error *err)
{
    const lin_features features = lin_features_default();
    lin_optimizer_options how = lin_optimizer_default();
    how.weight_decay = 0;
    lin_status status = lin_model_create(config, &features, NULL, l->task->seed, &l->model, err);
    if (status == LIN_OK) status = lin_backend_open(v->model.device, lin_model_precision(&v->model), &l->ops, err);
    if (status == LIN_OK) status = l->ops->exec_create(l->ops, v->threads, &l->exec, err);
    if (status == LIN_OK && !l->ops->cross_entropy)
        status = lin_fail(err, LIN_UNSUPPORTED, "the %s backend has no cross entropy", l->ops->name);
    if (status == LIN_OK) status = make_room(l, err);
    if (status != LIN_OK) return status;
    l->ops->upload(l->exec, l->values, l->model->values, l->model->params.n_elements * sizeof(float));
    l->ops->upload(l->exec, l->istd, l->model->istd, (size_t)config->mel_bins * sizeof(float)); // mean 0, istd 1
    const int rows = most_rows(l->task);
    status = lin_weights_create(l->ops, l->exec, config, &l->model->params, l->values, NULL, 1, &l->weights, err);
    if (status == LIN_OK)
        status = lin_activations_create(l->ops, l->exec, config, rows, l->task->length - 1, 1, &l->activations, err);
    if (status == LIN_OK) status = lin_optimizer_create(l->ops, l->exec, &l->model->params, &how, &l->optimizer, err);
    return status;
}

static void end(learner *l)
{
    lin_optimizer_destroy(l->optimizer);
    lin_activations_destroy(l->activations);
    lin_weights_destroy(l->weights);
    while (l->n_blocks > 0) l->ops->memory_destroy(l->exec, l->blocks[--l->n_blocks]);
    if (l->exec) l->ops->exec_destroy(l->exec);
    lin_model_destroy(l->model);
    lin_free(l->host_features);
    lin_free(l->host_losses);
    lin_free(l->host_offsets);
    lin_free(l->host_targets);
}

// One update. *loss: of its sequences before it, nats per symbol.
static lin_status update(learner *l, int step, double lr, double *loss, lin_error *err)
{
    const task *t = l->task;
    const lin_ops *ops = l->ops;
    const int V = t->symbols + 1, B = t->batch;
    int rows, longest;
    const int counted = make_batch(l, step, &rows, &longest);
    const double scale = 1.0 / counted;
    const lin_adam_step adam = lin_optimizer_scalars(&l->optimizer->options, ++l->optimizer->step, lr);
    ops->upload(l->exec, l->features, l->host_features, (size_t)rows * (size_t)V * sizeof(float));
    ops->upload(l->exec, l->offsets, l->host_offsets, ((size_t)B + 1) * sizeof(int));
    ops->upload(l->exec, l->targets, l->host_targets, (size_t)rows * sizeof(int));
    ops->upload(l->exec, l->scale, &scale, sizeof scale);
    ops->upload(l->exec, l->adam, &adam, sizeof adam);
    const lin_segments segments = {.B = B, .rows = rows, .longest = longest, .offsets = l->offsets};
    const lin_batch batch = {.in = segments, .out = segments, .features = l->features, .mean = l->mean, .istd = l->istd};
    lin_network_forward(l->weights, l->activations, l->exec, &batch, l->logp);
    ops->cross_entropy(l->exec, l->losses, l->dlogits, l->logp, &segments, l->targets, V, l->scale);
    ops->zero(l->exec, l->gradients, l->model->params.n_elements * sizeof(float));
    lin_network_backward(l->weights, l->activations, l->exec, &batch, l->dlogits, l->gradients);
    lin_optimizer_step(l->optimizer, l->exec, l->values, l->gradients, l->adam, l->tally);
    lin_weights_pack(l->weights, l->exec);
    ops->download(l->exec, l->host_losses, l->losses, (size_t)B * sizeof(double));
    double sum = 0;
    for (int b = 0; b < B; b++) sum += l->host_losses[b];
    *loss = sum / counted;
    lin_status status = ops->finish(l->exec, err);
    if (status == LIN_OK && !isfinite(*loss)) status = lin_fail(err, LIN_NUMERIC, "the loss of step %d is not finite", step + 1);
    return status;
}

static lin_status learn(const task *t, const lin_bench_values *v, const lin_bench_variant *variant, lin_buffer *out,
                        lin_error *err)
{
    learner l = {.task = t};
    lin_progress progress;
    const lin_config config = network_of(t, v, variant);
    lin_status status = begin(&l, &config, v, err);
    const double begun = lin_now();
    double sum = 0, loss;
    lin_progress_begin(&progress, 0);
    for (int step = 0; status == LIN_OK && step < t->steps; step++) {
        const double lr = step < t->drop_step ? t->lr : 0.1 * t->lr;
        status = update(&l, step, lr, &loss, err);
        if (status == LIN_OK && lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
        sum += loss;
        lin_progress_of(&progress, (double)step / t->steps, "%s, step %d, loss %.4f", variant->name, step + 1, loss);
        if (status != LIN_OK || (step + 1) % t->log_every != 0) continue;
        lin_buffer_format(out, "%s\t%llu\t%d\t%.6f\t%g\t%.3f\n", variant->name, (unsigned long long)t->seed, step + 1,
                          sum / t->log_every, lr, lin_now() - begun);
        sum = 0;
    }
    lin_progress_end(&progress);
    end(&l);
    return status;
}

static int pick(int given, int quick, int small, int full) { return given ? given : quick ? small : full; }

int lin_bench_copy(const lin_parsed *parsed)
{
    const lin_bench_values *v = parsed->values;
    const task t = {.length = pick(v->length, v->quick, 12, LENGTH),
                    .symbols = v->symbols,
                    .batch = pick(v->batch, v->quick, 4, BATCH),
                    .steps = pick(v->steps, v->quick, 20, STEPS),
                    .drop_step = pick(v->drop_step, v->quick, 10, DROP_STEP),
                    .log_every = pick(v->log_every, v->quick, 5, LOG_EVERY),
                    .lr = v->lr,
                    .seed = (uint64_t)v->seed};
    lin_bench_variant variants[LIN_BENCH_VARIANTS];
    lin_buffer out = {0};
    const lin_ops *ops;
    int n;
    lin_error err = {0};
    lin_status status = lin_bench_variants(v->variants ? v->variants : "linear,softmax,lsh-4", variants, &n, &err);
    if (status != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (t.length < 4) return lin_misuse(parsed, "--set length is 4 or more");
    status = lin_backend_open(v->model.device, lin_model_precision(&v->model), &ops, &err);
    if (status == LIN_OK) {
        lin_bench_head(&out, "copy", ops, v->threads);
        lin_buffer_format(
            &out,
            "# copy task: %d symbols, at most %d long, %d sequences a step, %d layers, %d heads of %d, rate %g, a tenth "
            "after %d steps\n",
            t.symbols, t.length, t.batch, v->layers ? v->layers : LAYERS, v->heads ? v->heads : HEADS, v->head_width, t.lr,
            t.drop_step);
        lin_buffer_text(&out, "variant\tseed\tstep\tloss\tlr\tseconds\n");
    }
    for (int i = 0; i < n && status == LIN_OK; i++) {
        status = learn(&t, v, &variants[i], &out, &err);
        if (status != LIN_UNSUPPORTED) continue;
        lin_complain("%s is left out: %s", variants[i].name, err.message);
        status = LIN_OK;
    }
    return lin_bench_end(&out, v->output, status, &err);
}
