#include "model/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/memory.h"
#include "kernels/pool.h"
#include "kernels/rng.h"
#include "model/batches.h"
#include "model/model_file.h"
#include "model/network.h"
#include "model/train_internal.h"

/* An utterance that will be trained on or measured. */
typedef struct item {
    const lin_dataset *set;
    int index;      // in its set
    int frames, rows;
    const int *labels;
    int n_labels;
} item;

typedef struct item_list {
    item *items;
    int *frames; // the same lengths again, for the plan
    int n;
} item_list;

typedef struct trainer {
    const lin_train_options *options;
    const lin_train_hooks *hooks;
    lin_model *model;
    const lin_ops *ops;
    lin_exec *exec;
    lin_pool *pool;
    lin_weights *weights;
    lin_activations *activations;
    lin_optimizer *optimizer;
    item_list train, dev;
    lin_train_counters counters;
    float *gradients;
    // one batch
    int max_frames, max_rows, max_items, max_labels;
    float *features, *zeros, *ones, *logp, *dlogits;
    int *in_offsets, *offsets, *labels, *label_offsets, *wrong;
    double *losses;
    // the batch being assembled
    const item_list *from;
    const int *picked;
    int augmented;
} trainer;

enum { KEY_DROPOUT = 1, KEY_AUGMENT = 2, MOST_BINS = 512 };

lin_train_options lin_train_default(void)
{
    return (lin_train_options){.epochs = 40,
                               .batch_frames = 16000,
                               .max_frames = 2400,
                               .lr = 1e-4,
                               .schedule = LIN_SCHEDULE_PLATEAU,
                               .patience = 2,
                               .min_lr = 1e-6,
                               .optimizer = lin_optimizer_default(),
                               .seed = 1,
                               .checkpoint_s = 300};
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- data ------------------------------------------------------------------------------------------------------------------- */

static void leave_out(const trainer *t, const lin_dataset *set, int i, const char *why)
{
    if (t->hooks->left_out) t->hooks->left_out(t->hooks->context, lin_dataset_path(set), lin_dataset_id(set, i), why);
}

// All usable utterances of the sets; in training those without labels or without a CTC path are named and left out.
static lin_status collect(trainer *t, const lin_dataset *const *sets, int n_sets, int for_training, item_list *list, lin_error *err)
{
    size_t total = 0;
    for (int s = 0; s < n_sets; s++) total += (size_t)lin_dataset_count(sets[s]);
    list->items = lin_calloc(total, sizeof *list->items);
    list->frames = lin_calloc(total, sizeof *list->frames);
    if (!list->items || !list->frames) return lin_no_memory(err, "the list of utterances", total * sizeof *list->items);
    const lin_config *c = &t->model->config;
    for (int s = 0; s < n_sets; s++) {
        const lin_dataset *set = sets[s];
        if (lin_dataset_mel_bins(set) != c->mel_bins || lin_dataset_outputs(set) != c->outputs ||
            strcmp(lin_dataset_phones(set), t->model->phones) != 0)
            return lin_fail(err, LIN_MISMATCH, "%s was made for other features or phones than the model", lin_dataset_path(set));
        for (int i = 0; i < lin_dataset_count(set); i++) {
            item it = {.set = set, .index = i, .frames = lin_dataset_frames(set, i)};
            it.labels = lin_dataset_labels(set, i, &it.n_labels);
            it.rows = lin_config_frames_out(c, it.frames);
            const char *why = NULL;
            if (it.n_labels == 0) why = "it has no phonemes";
            else if (for_training && it.frames > t->options->max_frames) why = "it is longer than max_frames";
            else if (for_training && lin_ctc_frames_needed(it.labels, it.n_labels) > it.rows)
                why = "CTC has no path: too few frames for its phonemes";
            if (why) {
                leave_out(t, set, i, why);
                continue;
            }
            list->items[list->n] = it;
            list->frames[list->n++] = it.frames;
        }
    }
    if (list->n == 0) return lin_fail(err, LIN_INVALID, "no utterance to %s", for_training ? "train on" : "measure on");
    return LIN_OK;
}

static uint64_t hash_items(const item_list *list)
{
    uint64_t h = (uint64_t)list->n;
    for (int i = 0; i < list->n; i++) {
        h = lin_mix64(h + (uint64_t)list->items[i].frames);
        h = lin_mix64(h + (uint64_t)list->items[i].n_labels);
    }
    return h;
}

// The plan of an epoch, and the largest sizes over it.
static lin_status plan_epoch(trainer *t, const item_list *list, int epoch, lin_batches *plan, lin_error *err)
{
    return lin_batches_plan(list->frames, list->n, t->options->batch_frames, t->options->seed, epoch, plan, err);
}

static void assemble_one(void *context, int piece, int thread)
{
    (void)thread;
    trainer *t = context;
    const item *it = &t->from->items[t->picked[piece]];
    const int D = t->model->config.mel_bins;
    float *x = t->features + (size_t)t->in_offsets[piece] * (size_t)D;
    float speaker_mean[MOST_BINS], speaker_istd[MOST_BINS];
    const float *mean = t->model->mean, *istd = t->model->istd;
    if (t->options->speaker_norm) {
        lin_dataset_speaker_norm(it->set, lin_dataset_speaker(it->set, it->index), speaker_mean, speaker_istd);
        mean = speaker_mean;
        istd = speaker_istd;
    }
    lin_dataset_features(it->set, it->index, x);
    for (int i = 0; i < it->frames; i++, x += D)
        for (int d = 0; d < D; d++) x[d] = (x[d] - mean[d]) * istd[d];
    x -= it->frames * D;
    if (t->augmented && t->hooks->augment) {
        const uint64_t key = lin_random_key(lin_random_key(t->options->seed, KEY_AUGMENT), (uint64_t)t->counters.epoch);
        t->hooks->augment(t->hooks->context, x, it->frames, D, lin_random_key(key, (uint64_t)t->picked[piece]));
    }
}

// Utterances picked[0..n-1] of a list become t's batch.
static lin_batch assemble(trainer *t, const item_list *list, const int *picked, int n, int for_training)
{
    t->from = list;
    t->picked = picked;
    t->augmented = for_training;
    for (int b = 0; b < n; b++) {
        const item *it = &list->items[picked[b]];
        t->in_offsets[b + 1] = t->in_offsets[b] + it->frames;
        t->offsets[b + 1] = t->offsets[b] + it->rows;
        t->label_offsets[b + 1] = t->label_offsets[b] + it->n_labels;
        memcpy(t->labels + t->label_offsets[b], it->labels, (size_t)it->n_labels * sizeof(int));
    }
    lin_pool_run(t->pool, n, assemble_one, t);
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, KEY_DROPOUT), (uint64_t)t->counters.step);
    return (lin_batch){.B = n,
                       .features = t->features,
                       .mean = t->zeros, // already normalised, because augmentation comes after
                       .istd = t->ones,
                       .in_offsets = t->in_offsets,
                       .offsets = t->offsets,
                       .dropout_key = for_training && t->model->config.dropout > 0 ? key | 1 : 0};
}

/* ---- one step --------------------------------------------------------------------------------------------------------------- */

static double learning_rate(const trainer *t, const lin_batches *plan)
{
    const lin_train_options *o = t->options;
    double lr = o->lr * t->counters.lr_factor;
    if (o->schedule == LIN_SCHEDULE_COSINE) {
        const double done = ((double)t->counters.epoch + (double)t->counters.batch / plan->n_batches) / o->epochs;
        lr *= 0.5 * (1 + cos(acos(-1) * done));
    }
    if (t->counters.step < o->warmup_steps) lr *= (double)(t->counters.step + 1) / (o->warmup_steps + 1);
    return lr;
}

static lin_status train_batch(trainer *t, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    const lin_config *c = &t->model->config;
    const int first = plan->offsets[t->counters.batch], n = plan->offsets[t->counters.batch + 1] - first;
    const lin_batch batch = assemble(t, &t->train, plan->items + first, n, 1);
    const int rows = t->offsets[n];
    lin_network_forward(t->weights, t->activations, t->exec, &batch, t->logp);
    // per frame, so that batches of long and of short utterances weigh the same
    t->ops->ctc(t->exec, t->losses, t->dlogits, t->logp, t->offsets, t->labels, t->label_offsets, n, c->outputs, 1.0 / rows);
    double sum = 0;
    for (int b = 0; b < n; b++) {
        if (!isfinite(t->losses[b]) || t->losses[b] < 0) {
            const item *it = &t->train.items[plan->items[first + b]];
            return lin_fail(
                err, LIN_NUMERIC,
                "epoch %lld, step %lld: the loss of utterance %s in %s is not finite; lower the learning rate or look at its sound",
                t->counters.epoch + 1, t->counters.step, lin_dataset_id(it->set, it->index), lin_dataset_path(it->set));
        }
        sum += t->losses[b];
    }
    memset(t->gradients, 0, t->model->params.n_elements * sizeof *t->gradients);
    lin_network_backward(t->weights, t->activations, t->exec, &batch, t->dlogits, t->gradients);
    p->lr = learning_rate(t, plan);
    lin_error inner = {0};
    lin_status status = lin_optimizer_step(t->optimizer, t->exec, &t->model->params, t->model->values, t->gradients, p->lr,
                                           &p->gradient_norm, &inner);
    if (status != LIN_OK) {
        const item *it = &t->train.items[plan->items[first]];
        return lin_fail(err, status, "epoch %lld, step %lld: %s, in the batch that begins with utterance %s", t->counters.epoch + 1,
                        t->counters.step, inner.message, lin_dataset_id(it->set, it->index));
    }
    lin_weights_pack(t->weights, t->exec);
    t->counters.step++;
    t->counters.batch++;
    t->counters.loss_sum += sum;
    t->counters.label_sum += t->label_offsets[n];
    t->counters.frame_sum += t->in_offsets[n];
    return LIN_OK;
}

static void count_wrong(void *context, int piece, int thread)
{
    (void)thread;
    trainer *t = context;
    const item *it = &t->from->items[t->picked[piece]];
    const int V = t->model->config.outputs;
    t->wrong[piece] =
        t->hooks->errors(t->hooks->context, t->logp + (size_t)t->offsets[piece] * (size_t)V, it->rows, V, it->labels, it->n_labels);
}

static lin_status evaluate(trainer *t, lin_train_progress *p, lin_error *err)
{
    p->dev_loss = p->dev_per = -1;
    if (t->dev.n == 0) return LIN_OK;
    lin_batches plan;
    lin_status status = plan_epoch(t, &t->dev, -1, &plan, err);
    if (status != LIN_OK) return status;
    double loss = 0;
    long long labels = 0, loss_labels = 0, wrong = 0;
    for (int i = 0; i < plan.n_batches; i++) {
        const int first = plan.offsets[i], n = plan.offsets[i + 1] - first;
        const lin_batch batch = assemble(t, &t->dev, plan.items + first, n, 0);
        lin_network_forward(t->weights, t->activations, t->exec, &batch, t->logp);
        t->ops->ctc(t->exec, t->losses, NULL, t->logp, t->offsets, t->labels, t->label_offsets, n, t->model->config.outputs, 1);
        if (t->hooks->errors) lin_pool_run(t->pool, n, count_wrong, t);
        for (int b = 0; b < n; b++) {
            const int U = t->label_offsets[b + 1] - t->label_offsets[b];
            labels += U;
            if (t->hooks->errors) wrong += t->wrong[b];
            if (t->losses[b] >= 0) {
                loss += t->losses[b];
                loss_labels += U;
            }
        }
    }
    lin_batches_free(&plan);
    p->dev_loss = loss_labels ? loss / (double)loss_labels : -1;
    p->dev_per = t->hooks->errors && labels ? (double)wrong / (double)labels : -1;
    return LIN_OK;
}

/* ---- the run ---------------------------------------------------------------------------------------------------------------- */

static void fill_progress(const trainer *t, const lin_batches *plan, lin_train_progress *p)
{
    const lin_train_counters *c = &t->counters;
    p->epoch = (int)c->epoch;
    p->epochs = t->options->epochs;
    p->batch = (int)c->batch;
    p->n_batches = plan->n_batches;
    p->step = c->step;
    p->loss = c->label_sum ? c->loss_sum / (double)c->label_sum : 0;
    p->best_per = c->best_per;
    p->frames_per_s = c->epoch_seconds > 0 ? (double)c->frame_sum / c->epoch_seconds : 0;
    p->seconds = c->run_seconds;
    const double done = (double)c->epoch + (double)c->batch / plan->n_batches;
    p->seconds_left = done > 0 ? c->run_seconds / done * (p->epochs - done) : 0;
}

static int wants_stop(const trainer *t) { return t->hooks->stop && t->hooks->stop(t->hooks->context); }

// What happens between two epochs: measure, adapt the rate, keep the best, write the log.
static lin_status end_epoch(trainer *t, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    lin_train_counters *c = &t->counters;
    const double begin = seconds_now();
    lin_status status = evaluate(t, p, err);
    if (status != LIN_OK) return status;
    const double judged = p->dev_per >= 0 ? p->dev_per : p->dev_loss >= 0 ? p->dev_loss : p->loss;
    if (c->best_per < 0 || judged < c->best_per) {
        c->best_per = judged;
        c->epochs_since_best = 0;
        char path[4096];
        const int n = snprintf(path, sizeof path, "%s/best.safetensors", t->options->folder);
        if (n < 0 || (size_t)n >= sizeof path) return lin_fail(err, LIN_INVALID, "the path of the run's folder is too long");
        lin_model_seal(t->model);
        status = lin_model_save(t->model, path, t->options->half ? LIN_F16 : LIN_F32, err);
        if (status != LIN_OK) return status;
    } else {
        c->epochs_since_best++;
        if (t->options->schedule == LIN_SCHEDULE_PLATEAU && c->epochs_since_best >= t->options->patience) {
            c->lr_factor /= 2;
            c->epochs_since_best = 0;
        }
    }
    c->run_seconds += seconds_now() - begin;
    fill_progress(t, plan, p);
    status = lin_train_log(t->options, p, err);
    if (status != LIN_OK) return status;
    if (t->hooks->progress) t->hooks->progress(t->hooks->context, p);
    c->epoch++;
    c->batch = 0;
    c->loss_sum = c->epoch_seconds = 0;
    c->label_sum = c->frame_sum = 0;
    return LIN_OK;
}

static lin_status save(trainer *t, lin_error *err) { return lin_train_save(t->options, t->model, t->optimizer, &t->counters, err); }

static lin_status run(trainer *t, lin_error *err)
{
    const lin_train_options *o = t->options;
    lin_train_counters *c = &t->counters;
    lin_train_progress p = {.dev_loss = -1, .dev_per = -1, .best_per = -1};
    double saved = seconds_now();
    lin_status status = LIN_OK;
    while (status == LIN_OK && c->epoch < o->epochs) {
        if (o->schedule == LIN_SCHEDULE_PLATEAU && o->lr * c->lr_factor < o->min_lr) break;
        lin_batches plan;
        status = plan_epoch(t, &t->train, (int)c->epoch, &plan, err);
        if (status != LIN_OK) break;
        int stopped = 0;
        while (status == LIN_OK && !stopped && c->batch < plan.n_batches) {
            const double begin = seconds_now();
            status = train_batch(t, &plan, &p, err);
            if (status != LIN_OK) break;
            const double end = seconds_now();
            c->epoch_seconds += end - begin;
            c->run_seconds += end - begin;
            fill_progress(t, &plan, &p);
            if (t->hooks->progress && c->batch < plan.n_batches) t->hooks->progress(t->hooks->context, &p);
            stopped = wants_stop(t);
            if (c->batch < plan.n_batches && (stopped || end - saved > o->checkpoint_s)) {
                status = save(t, err);
                saved = end;
            }
        }
        if (status == LIN_OK && c->batch == plan.n_batches) {
            status = end_epoch(t, &plan, &p, err);
            if (status == LIN_OK) status = save(t, err);
            saved = seconds_now();
        }
        lin_batches_free(&plan);
        if (status == LIN_OK && stopped)
            status = lin_fail(err, LIN_STOPPED, "stopped after step %lld; go on with --resume", c->step);
    }
    lin_model_seal(t->model);
    return status;
}

/* ---- setting up ------------------------------------------------------------------------------------------------------------- */

// The largest batch of any epoch cannot be known in advance, but it is bounded: by batch_frames, or one longer utterance.
static lin_status make_buffers(trainer *t, lin_error *err)
{
    const lin_config *c = &t->model->config;
    const item_list *lists[] = {&t->train, &t->dev};
    int longest = t->options->batch_frames;
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            if (lists[l]->frames[i] > longest) longest = lists[l]->frames[i];
        }
    // as many of the shortest utterances as fit, and their labels: no more labels than a label per frame can be... except on dev
    for (int l = 0; l < 2; l++) {
        int shortest = longest;
        double labels_per_frame = 0;
        for (int i = 0; i < lists[l]->n; i++) {
            const item *it = &lists[l]->items[i];
            if (it->frames < shortest) shortest = it->frames;
            if ((double)it->n_labels / it->frames > labels_per_frame) labels_per_frame = (double)it->n_labels / it->frames;
        }
        const int most = lists[l]->n < longest / shortest ? lists[l]->n : longest / shortest;
        if (most > t->max_items) t->max_items = most;
        const int most_labels = (int)ceil(labels_per_frame * longest) + 1;
        if (most_labels > t->max_labels) t->max_labels = most_labels;
    }
    t->max_frames = longest;
    t->max_rows = longest / c->stack + t->max_items;
    const size_t D = (size_t)c->mel_bins, V = (size_t)c->outputs, items = (size_t)t->max_items + 1;
    t->features = lin_alloc((size_t)t->max_frames * D, sizeof(float));
    t->logp = lin_alloc((size_t)t->max_rows * V, sizeof(float));
    t->dlogits = lin_alloc((size_t)t->max_rows * V, sizeof(float));
    t->zeros = lin_calloc(D, sizeof(float));
    t->ones = lin_calloc(D, sizeof(float));
    t->in_offsets = lin_calloc(items, sizeof(int));
    t->offsets = lin_calloc(items, sizeof(int));
    t->label_offsets = lin_calloc(items, sizeof(int));
    t->wrong = lin_calloc(items, sizeof(int));
    t->losses = lin_calloc(items, sizeof(double));
    t->labels = lin_calloc((size_t)t->max_labels, sizeof(int));
    t->gradients = lin_calloc(t->model->params.n_elements, sizeof(float));
    if (!t->features || !t->logp || !t->dlogits || !t->zeros || !t->ones || !t->in_offsets || !t->offsets || !t->label_offsets ||
        !t->wrong || !t->losses || !t->labels || !t->gradients)
        return lin_no_memory(err, "a training batch", (size_t)t->max_frames * D * sizeof(float));
    for (size_t d = 0; d < D; d++) t->ones[d] = 1;
    return lin_activations_create(c, t->max_rows, t->max_items, 1, &t->activations, err);
}

static lin_status check_options(const lin_train_options *o, lin_error *err)
{
    if (!o->folder || !*o->folder) return lin_fail(err, LIN_INVALID, "training needs a folder for the run");
    if (o->epochs < 1 || o->batch_frames < 1 || o->max_frames < 1 || o->warmup_steps < 0 || o->patience < 1)
        return lin_fail(err, LIN_INVALID,
                        "epochs, batch_frames, max_frames and patience must be at least 1, warmup_steps at least 0");
    if (!(o->lr > 0 && o->lr <= 1))
        return lin_fail(err, LIN_INVALID, "the learning rate is %g, must be above 0 and at most 1", o->lr);
    return LIN_OK;
}

static lin_status set_up(trainer *t, const lin_dataset *const *sets, int n_sets, const lin_dataset *const *dev_sets, int n_dev_sets,
                         lin_error *err)
{
    const lin_train_options *o = t->options;
    lin_model *m = t->model;
    lin_status status = check_options(o, err);
    if (status == LIN_OK) status = collect(t, sets, n_sets, 1, &t->train, err);
    if (status == LIN_OK && n_dev_sets > 0) status = collect(t, dev_sets, n_dev_sets, 0, &t->dev, err);
    if (status == LIN_OK) status = lin_pool_create(o->threads, &t->pool, err);
    if (status == LIN_OK) status = t->ops->exec_create(o->threads, &t->exec, err);
    if (status == LIN_OK) status = lin_optimizer_create(t->ops, &m->params, &o->optimizer, &t->optimizer, err);
    if (status == LIN_OK) status = make_buffers(t, err);
    if (status != LIN_OK) return status;
    t->counters = (lin_train_counters){.lr_factor = 1, .best_per = -1, .seed = o->seed, .data = hash_items(&t->train)};
    if (o->resume) {
        status = lin_train_load(o, m, t->optimizer, &t->counters, err);
        if (status == LIN_OK && (t->counters.seed != o->seed || t->counters.data != hash_items(&t->train)))
            status =
                lin_fail(err, LIN_MISMATCH, "%s/checkpoint.safetensors is of a run with another seed or other data", o->folder);
    } else {
        m->speaker_norm = o->speaker_norm;
        if (o->speaker_norm) {
            for (int d = 0; d < m->config.mel_bins; d++) m->mean[d] = 0, m->istd[d] = 1;
        } else {
            status = lin_dataset_norm(sets, n_sets, m->mean, m->istd, err);
        }
    }
    if (status != LIN_OK) return status;
    return lin_weights_create(t->ops, t->exec, &m->config, &m->params, m->values, 1, &t->weights, err);
}

static void tear_down(trainer *t)
{
    lin_weights_destroy(t->weights);
    lin_activations_destroy(t->activations);
    lin_optimizer_destroy(t->optimizer);
    if (t->exec) t->ops->exec_destroy(t->exec);
    lin_pool_destroy(t->pool);
    void *const blocks[] = {t->train.items, t->train.frames, t->dev.items, t->dev.frames, t->gradients,     t->features,
                            t->zeros,       t->ones,         t->logp,      t->dlogits,    t->in_offsets,    t->offsets,
                            t->labels,      t->losses,       t->wrong,     t->label_offsets};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

lin_status lin_train(const lin_train_options *options, lin_model *model, const lin_dataset *const *sets, int n_sets,
                     const lin_dataset *const *dev_sets, int n_dev_sets, const lin_train_hooks *hooks, lin_error *err)
{
    static const lin_train_hooks no_hooks;
    trainer t = {.options = options, .hooks = hooks ? hooks : &no_hooks, .model = model};
    lin_status status = lin_backend_open(options->device ? options->device : "auto", &t.ops, err);
    if (status == LIN_OK) status = set_up(&t, sets, n_sets, dev_sets, n_dev_sets, err);
    if (status == LIN_OK) status = run(&t, err);
    tear_down(&t);
    return status;
}
