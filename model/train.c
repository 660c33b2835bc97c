// train.c - the training loop: epochs, schedule, when to save and when to stop; see train.h.

#include "model/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/rng.h"
#include "model/model_file.h"
#include "model/train_internal.h"

/* How often, within an epoch, the host reads the totals of a GPU; those of a CPU after every step. */
static const double LOOK_EVERY_S = 0.5;

/* With more labels than about this, CTC on a CPU needs a block of memory of its own (kernels/cpu/ctc.c). */
enum { MANY_LABELS = 4000 };

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
                               .precision = LIN_PRECISION_TF32,
                               .checkpoint_s = 300};
}

static uint64_t hash_items(const lin_train_list *list)
{
    uint64_t h = (uint64_t)list->n;
    for (int i = 0; i < list->n; i++) {
        h = lin_mix64(h + (uint64_t)list->items[i].frames);
        h = lin_mix64(h + (uint64_t)list->items[i].n_labels);
    }
    return h;
}

// Hash of the sets' contents: lin_dataset_fingerprint of each, in order. 0 for none.
static uint64_t hash_sets(const lin_dataset *const *sets, int n_sets)
{
    uint64_t h = 0;
    for (int s = 0; s < n_sets; s++) h = lin_mix64(h + lin_dataset_fingerprint(sets[s])) | 1;
    return h;
}

// Reports one sentence to the user.
static void note(const lin_trainer *t, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (!t->hooks->note) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    t->hooks->note(t->hooks->context, text);
}

// The plan of an epoch.
static lin_status plan_epoch(lin_trainer *t, const lin_train_list *list, int epoch, lin_batches *plan, lin_error *err)
{
    return lin_batches_plan(list->frames, list->n, t->options->batch_frames, t->options->seed, epoch, plan, err);
}

/* ---- one step --------------------------------------------------------------------------------------------------------------- */

static double learning_rate(const lin_trainer *t, const lin_batches *plan)
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

static void train_batch(lin_trainer *t, const lin_batches *plan, lin_train_progress *p)
{
    const int first = plan->offsets[t->counters.batch], n = plan->offsets[t->counters.batch + 1] - first;
    p->lr = learning_rate(t, plan);
    lin_train_step(t, plan->items + first, n, p->lr);
    t->counters.step++;
    t->counters.batch++;
}

// The tally starts from the counters: at an epoch's first step, or when a run is resumed.
static void begin_tally(lin_trainer *t)
{
    const lin_tally tally = {.loss = t->counters.loss_sum, .steps = t->counters.step};
    t->ops->upload(t->exec, t->tally, &tally, sizeof tally);
}

// Waits for the steps in progress and reads their totals. LIN_NUMERIC names the first fault.
static lin_status look(lin_trainer *t, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    lin_tally tally;
    t->ops->download(t->exec, &tally, t->tally, sizeof tally);
    lin_status status = t->ops->finish(t->exec, err);
    if (status != LIN_OK) return status;
    t->counters.loss_sum = tally.loss;
    p->gradient_norm = tally.norm;
    if (tally.bad == LIN_BAD_NOTHING) return LIN_OK;
    const int first = plan->offsets[t->counters.batch - (t->counters.step - tally.steps)];
    const int which = tally.bad == LIN_BAD_LOSS ? tally.bad_index : 0;
    const lin_train_item *it = &t->train.items[plan->items[first + which]];
    const char *id = lin_dataset_id(it->set, it->index);
    if (tally.bad == LIN_BAD_LOSS) {
        char labels[96] = "";
        if (it->n_labels > MANY_LABELS)
            snprintf(labels, sizeof labels, ", or there is too little memory for its %d labels (--max-frames)", it->n_labels);
        return lin_fail(
            err, LIN_NUMERIC,
            "epoch %lld, step %lld: the loss of utterance %s in %s is not finite; lower the learning rate or check its sound%s",
            t->counters.epoch + 1, (long long)tally.steps, id, lin_dataset_path(it->set), labels);
    }
    return lin_fail(err, LIN_NUMERIC,
                    "epoch %lld, step %lld: the gradient of %s is not finite, in the batch that begins with utterance %s",
                    t->counters.epoch + 1, (long long)tally.steps, t->model->params.table[tally.bad_index].name, id);
}

// Copies the weights, and for a checkpoint the moments, to the host. After look no step is in progress.
static lin_status fetch_model(lin_trainer *t, int with_moments, lin_error *err)
{
    if (t->ops->on_host) return LIN_OK;
    t->ops->download(t->exec, t->model->values, t->values, t->model->params.n_elements * sizeof(float));
    if (with_moments) lin_optimizer_fetch(t->optimizer, t->exec);
    return t->ops->finish(t->exec, err);
}

static lin_status evaluate(lin_trainer *t, lin_train_progress *p, lin_error *err)
{
    p->dev_loss = p->dev_per = -1;
    if (t->dev.n == 0) return LIN_OK;
    lin_batches plan;
    lin_status status = plan_epoch(t, &t->dev, -1, &plan, err);
    if (status != LIN_OK) return status;
    double loss = 0;
    long long labels = 0, loss_labels = 0, wrong = 0;
    for (int i = 0; i < plan.n_batches && status == LIN_OK; i++) {
        const int *picked = plan.items + plan.offsets[i], n = plan.offsets[i + 1] - plan.offsets[i];
        status = lin_train_measure(t, picked, n, err);
        for (int b = 0; b < n && status == LIN_OK; b++) {
            const int U = t->dev.items[picked[b]].n_labels;
            labels += U;
            if (t->hooks->errors) wrong += t->wrong[b];
            if (t->host_losses[b] >= 0) {
                loss += t->host_losses[b];
                loss_labels += U;
            }
        }
    }
    lin_batches_free(&plan);
    p->dev_loss = loss_labels ? loss / (double)loss_labels : -1;
    p->dev_per = t->hooks->errors && labels ? (double)wrong / (double)labels : -1;
    return status;
}

/* ---- the run ---------------------------------------------------------------------------------------------------------------- */

static void fill_progress(const lin_trainer *t, const lin_batches *plan, lin_train_progress *p)
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

// Whether a resumed epoch has completed the first batches of this plan: its frames and labels add up to the same counts.
static int goes_on(const lin_trainer *t, const lin_batches *plan)
{
    const lin_train_counters *c = &t->counters;
    if (c->batch > plan->n_batches) return 0;
    long long frames = 0, labels = 0;
    for (int i = 0; i < plan->offsets[c->batch]; i++) {
        frames += t->train.items[plan->items[i]].frames;
        labels += t->train.items[plan->items[i]].n_labels;
    }
    return frames == c->frame_sum && labels == c->label_sum;
}

static void clear_sums(lin_train_counters *c)
{
    c->batch = 0;
    c->loss_sum = c->epoch_seconds = 0;
    c->label_sum = c->frame_sum = 0;
}

static int wants_stop(const lin_trainer *t) { return t->hooks->stop && t->hooks->stop(t->hooks->context); }

// Epochs without progress before the rate is halved. Before a CTC network recognises anything its outputs are blanks, and its error
// rate says nothing: that phase may take five times as long.
static int patience_of(const lin_trainer *t, double dev_per)
{
    return dev_per >= 0.95 ? 5 * t->options->patience : t->options->patience;
}

// Between two epochs: measures, adapts the rate, keeps the best model, writes the log.
static lin_status end_epoch(lin_trainer *t, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    lin_train_counters *c = &t->counters;
    const double begin = lin_now();
    lin_status status = LIN_OK;
    // verify that the training data are those that were opened, even if a mapped file is overwritten
    for (int i = 0; i < t->n_sets && status == LIN_OK; i++) status = lin_dataset_verify(t->sets[i], err);
    if (status == LIN_OK) status = evaluate(t, p, err);
    if (status != LIN_OK) return status;
    const double judged = p->dev_per >= 0 ? p->dev_per : p->dev_loss >= 0 ? p->dev_loss : p->loss;
    if (c->best_per < 0 || judged < c->best_per) {
        c->best_per = judged;
        c->epochs_since_best = 0;
        char path[4096];
        const int n = snprintf(path, sizeof path, "%s/best.safetensors", t->options->folder);
        if (n < 0 || (size_t)n >= sizeof path) return lin_fail(err, LIN_INVALID, "the path of the run's folder is too long");
        status = fetch_model(t, 0, err);
        if (status != LIN_OK) return status;
        lin_model_seal(t->model);
        status = lin_model_save(t->model, path, t->options->half ? LIN_F16 : LIN_F32, err);
        if (status != LIN_OK) return status;
    } else {
        c->epochs_since_best++;
        if (t->options->schedule == LIN_SCHEDULE_PLATEAU && c->epochs_since_best >= patience_of(t, p->dev_per)) {
            c->lr_factor /= 2;
            c->epochs_since_best = 0;
        }
    }
    c->run_seconds += lin_now() - begin;
    fill_progress(t, plan, p);
    status = lin_train_log(t->options, p, err);
    if (status != LIN_OK) return status;
    if (t->hooks->progress) t->hooks->progress(t->hooks->context, p);
    c->epoch++;
    clear_sums(c);
    return LIN_OK;
}

static lin_status save(lin_trainer *t, lin_error *err)
{
    lin_status status = fetch_model(t, 1, err);
    return status == LIN_OK ? lin_train_save(t->options, t->model, t->optimizer, &t->counters, err) : status;
}

static lin_status run(lin_trainer *t, lin_error *err)
{
    const lin_train_options *o = t->options;
    lin_train_counters *c = &t->counters;
    lin_train_progress p = {.dev_loss = -1, .dev_per = -1, .best_per = -1};
    double saved = lin_now();
    lin_status status = LIN_OK;
    if (o->resume && c->epoch >= o->epochs)
        note(t, "%s has completed %lld epochs and %d are requested: nothing to do", o->folder, c->epoch, o->epochs);
    while (status == LIN_OK && c->epoch < o->epochs) {
        if (o->schedule == LIN_SCHEDULE_PLATEAU && o->lr * c->lr_factor < o->min_lr) break;
        lin_batches plan;
        status = plan_epoch(t, &t->train, (int)c->epoch, &plan, err);
        if (status != LIN_OK) break;
        if (!goes_on(t, &plan)) {
            note(t,
                 "the checkpoint was saved within epoch %lld with other batches than these options give (--batch-frames?); that "
                 "epoch starts again from its first batch",
                 c->epoch + 1);
            clear_sums(c);
        }
        begin_tally(t);
        int stopped = 0;
        double looked = lin_now();
        while (status == LIN_OK && !stopped && c->batch < plan.n_batches) {
            const double begin = lin_now();
            train_batch(t, &plan, &p);
            stopped = wants_stop(t);
            const int due = stopped || c->batch == plan.n_batches || begin - saved > o->checkpoint_s;
            const int looks = due || t->ops->on_host || begin - looked > LOOK_EVERY_S;
            if (looks) status = look(t, &plan, &p, err);
            const double end = lin_now();
            c->epoch_seconds += end - begin;
            c->run_seconds += end - begin;
            if (!looks || status != LIN_OK) continue;
            looked = end;
            fill_progress(t, &plan, &p);
            if (t->hooks->progress && c->batch < plan.n_batches) t->hooks->progress(t->hooks->context, &p);
            if (c->batch < plan.n_batches && due) {
                status = save(t, err);
                saved = end;
            }
        }
        if (status == LIN_OK && c->batch == plan.n_batches) {
            status = end_epoch(t, &plan, &p, err);
            if (status == LIN_OK) status = save(t, err);
            saved = lin_now();
        }
        lin_batches_free(&plan);
        if (status == LIN_OK && stopped)
            status = lin_fail(err, LIN_STOPPED, "stopped after step %lld; continue with --resume", c->step);
    }
    if (status == LIN_OK || status == LIN_STOPPED) {
        lin_status fetched = fetch_model(t, 0, err);
        if (fetched != LIN_OK) status = fetched;
    }
    lin_model_seal(t->model);
    return status;
}

/* ---- setting up ------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_train_options *o, lin_error *err)
{
    if (!o->folder || !*o->folder) return lin_fail(err, LIN_INVALID, "training needs a folder for the run");
    if (o->epochs < 1 || o->batch_frames < 1 || o->max_frames < 1 || o->warmup_steps < 0 || o->patience < 1)
        return lin_fail(err, LIN_INVALID,
                        "epochs, batch_frames, max_frames and patience must be at least 1, warmup_steps at least 0");
    if (!(o->lr > 0 && o->lr <= 1))
        return lin_fail(err, LIN_INVALID, "the learning rate is %g; must be above 0 and at most 1", o->lr);
    return LIN_OK;
}

static lin_status set_up(lin_trainer *t, const lin_dataset *const *sets, int n_sets, const lin_dataset *const *dev_sets,
                         int n_dev_sets, lin_error *err)
{
    const lin_train_options *o = t->options;
    lin_model *m = t->model;
    lin_status status = check_options(o, err);
    if (status == LIN_OK) status = lin_train_collect(t, sets, n_sets, 1, &t->train, err);
    if (status == LIN_OK && n_dev_sets > 0) status = lin_train_collect(t, dev_sets, n_dev_sets, 0, &t->dev, err);
    if (status == LIN_OK) status = lin_pool_create(o->threads, &t->pool, err);
    if (status == LIN_OK) status = t->ops->exec_create(t->ops, o->threads, &t->exec, err);
    if (status == LIN_OK) status = lin_optimizer_create(t->ops, t->exec, &m->params, &o->optimizer, &t->optimizer, err);
    if (status != LIN_OK) return status;
    const uint64_t data = hash_items(&t->train), content = hash_sets(sets, n_sets), dev = hash_sets(dev_sets, n_dev_sets);
    t->counters =
        (lin_train_counters){.lr_factor = 1, .best_per = -1, .seed = o->seed, .data = data, .content = content, .dev = dev};
    if (o->resume) {
        lin_train_counters *c = &t->counters;
        status = lin_train_load(o, m, t->optimizer, c, err);
        if (status != LIN_OK) return status;
        const char *other = c->seed != o->seed                    ? "with another --seed"
                            : c->data != data                     ? "with other utterances, or another order of them"
                            : c->content && c->content != content ? "with other features or phones"
                                                                  : NULL;
        if (other)
            return lin_fail(err, LIN_MISMATCH,
                            "%s/checkpoint.safetensors is of a run %s; resume with the options and data of that run", o->folder,
                            other);
        if (c->dev && c->dev != dev && c->best_per >= 0) {
            note(t, "the development set has changed; the best model is determined again");
            c->best_per = -1;
            c->epochs_since_best = 0;
        }
        c->content = content;
        c->dev = dev;
        lin_optimizer_place(t->optimizer, t->exec);
    } else {
        m->speaker_norm = o->speaker_norm;
        if (o->speaker_norm) {
            for (int d = 0; d < m->config.mel_bins; d++) m->mean[d] = 0, m->istd[d] = 1;
        } else {
            status = lin_dataset_norm(sets, n_sets, m->mean, m->istd, err);
        }
    }
    if (status == LIN_OK) status = lin_train_place(t, sets, n_sets, &t->train, err);
    if (status == LIN_OK && n_dev_sets > 0) status = lin_train_place(t, dev_sets, n_dev_sets, &t->dev, err);
    if (status == LIN_OK) status = lin_train_make_buffers(t, err);
    if (status == LIN_OK)
        status = lin_weights_create(t->ops, t->exec, &m->config, &m->params, t->values, 1, &t->weights, err);
    return status;
}

static void tear_down(lin_trainer *t)
{
    lin_weights_destroy(t->weights);
    lin_train_free_buffers(t);
    lin_train_list_free(t, &t->train);
    lin_train_list_free(t, &t->dev);
    lin_optimizer_destroy(t->optimizer);
    if (t->exec) t->ops->exec_destroy(t->exec);
    lin_pool_destroy(t->pool);
}

lin_status lin_train(const lin_train_options *options, lin_model *model, const lin_dataset *const *sets, int n_sets,
                     const lin_dataset *const *dev_sets, int n_dev_sets, const lin_train_hooks *hooks, lin_error *err)
{
    static const lin_train_hooks no_hooks;
    lin_trainer t = {.options = options, .hooks = hooks ? hooks : &no_hooks, .model = model, .sets = sets, .n_sets = n_sets};
    lin_status status = lin_backend_open(options->device, options->precision, &t.ops, err);
    if (status == LIN_OK && t.ops->on_host && t.ops->precision == LIN_PRECISION_BF16) {
        return lin_fail(err, LIN_UNSUPPORTED, "training in bf16 needs a GPU; on a CPU use --precision fp32");
    }
    if (status == LIN_OK) status = set_up(&t, sets, n_sets, dev_sets, n_dev_sets, err);
    if (status == LIN_OK) status = run(&t, err);
    tear_down(&t);
    return status;
}
