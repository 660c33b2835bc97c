// train.c - the training loop: epochs, schedule, when to save and when to stop; see train.h.

#include "train/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/system.h"
#include "model/model.h"
#include "train/train_internal.h"

/* Seconds between two readings of a GPU's totals within an epoch; a CPU's are read after every step. */
static const double LOOK_EVERY_S = 0.5;

/* With more labels than about this, CTC on a CPU needs a block of memory of its own (kernels/cpu/ctc.c). */
enum { MANY_LABELS = 4000 };

lin_train_options lin_train_default(void)
{
    return (lin_train_options){.epochs = 40,
                               .batch_frames = 16000,
                               .accumulate = 1,
                               .inner_weight = 0.3,
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

void lin_train_note(const lin_train_hooks *hooks, const char *format, ...)
{
    char text[4800];
    va_list arguments;
    if (!hooks->note) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    hooks->note(hooks->context, text);
}

/* ---- one step -------------------------------------------------------------------------------------------------------------- */

static double learning_rate(const lin_train_run *r, const lin_batches *plan)
{
    const lin_train_options *o = r->options;
    double lr = o->lr * r->counters.lr_factor;
    if (o->schedule == LIN_SCHEDULE_COSINE) {
        const double from = (double)r->counters.arc_begin,
                     at = (double)r->counters.epoch + (double)r->counters.batch / plan->n_batches;
        const double done = (at - from) / (o->epochs - from);
        lr *= 0.5 * (1 + cos(acos(-1) * done));
    }
    if (r->counters.step < o->warmup_steps) lr *= (double)(r->counters.step + 1) / (o->warmup_steps + 1);
    if (o->drop_step > 0 && r->counters.step >= o->drop_step) lr /= 10;
    return lr;
}

// Returns 0 if the step was not taken because the other processes are lost.
static int train_batch(lin_train_run *r, const lin_batches *plan, lin_train_progress *p)
{
    const lin_train_counters before = r->counters;
    const int from = (int)before.batch, left = plan->n_batches - from, most = lin_train_step_batches(r->options);
    const int n = most < left ? most : left;
    p->lr = learning_rate(r, plan);
    lin_train_step(r, plan, from, from + n, p->lr);
    if (r->parallel.status != LIN_OK) {
        r->counters = before;
        r->optimizer.step--;
        return 0;
    }
    r->step_from = from;
    r->counters.step++;
    r->counters.batch += n;
    return 1;
}

// Sets the tally to the counters, at an epoch's first step or when a run is resumed.
static void begin_tally(lin_train_run *r)
{
    const lin_tally tally = {.loss = r->counters.loss_sum, .steps = r->counters.step};
    r->device.ops->upload(r->device.exec, r->device.tally, &tally, sizeof tally);
}

// The utterance whose loss is at fault; for a gradient, the first utterance of its step.
static const lin_train_item *item_at_fault(const lin_train_run *r, const lin_batches *plan, const lin_tally *tally)
{
    const int batches = lin_train_step_batches(r->options);
    const int part = tally->bad == LIN_BAD_LOSS ? tally->bad_index / r->device.most.items : 0;
    const long long batch = r->step_from - (r->counters.step - 1 - tally->steps) * batches + part % batches;
    const int first = plan->offsets[batch], n = plan->offsets[batch + 1] - first;
    int which = 0;
    if (tally->bad == LIN_BAD_LOSS)
        which = lin_train_cut(&r->data, plan->items + first, n, part / batches, lin_train_ranks(&r->parallel)).from +
                tally->bad_index % r->device.most.items;
    return &r->data.train.items[plan->items[first + which]];
}

// Waits for the steps in progress and reads their totals. LIN_NUMERIC names the first fault.
static lin_status look(lin_train_run *r, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    lin_tally tally;
    r->device.ops->download(r->device.exec, &tally, r->device.tally, sizeof tally);
    LIN_TRY(r->device.ops->finish(r->device.exec, err));
    r->counters.loss_sum = tally.loss;
    p->gradient_norm = tally.norm;
    if (tally.bad == LIN_BAD_NOTHING) return LIN_OK;
    const lin_train_item *it = item_at_fault(r, plan, &tally);
    const char *id = it->set->utterances[it->index].id;
    if (tally.bad == LIN_BAD_LOSS) {
        char labels[96] = "";
        if (it->n_labels > MANY_LABELS)
            snprintf(labels, sizeof labels, ", or there is too little memory for its %d labels (--set max-frames)", it->n_labels);
        return lin_fail(
            err, LIN_NUMERIC,
            "epoch %lld, step %lld: the loss of utterance %s in %s%s is not finite; lower the learning rate or check its sound%s",
            r->counters.epoch + 1, (long long)tally.steps, id, it->set->path,
            r->options->mmi > 0 ? ", or its sum over all phone sequences (mmi)," : "", labels);
    }
    return lin_fail(err, LIN_NUMERIC,
                    "epoch %lld, step %lld: the gradient of %s is not finite, in the step that begins with utterance %s",
                    r->counters.epoch + 1, (long long)tally.steps, r->model->params.table[tally.bad_index].name, id);
}

// Copies the weights, and for a checkpoint the moments, to the host. After look no step is in progress.
static lin_status fetch_model(lin_train_run *r, int with_moments, lin_error *err)
{
    if (r->device.ops->on_host) return LIN_OK;
    r->device.ops->download(r->device.exec, r->model->values, r->device.values, r->model->params.n_elements * sizeof(float));
    if (with_moments || r->optimizer.average) lin_optimizer_fetch(&r->optimizer, r->device.exec);
    return r->device.ops->finish(r->device.exec, err);
}

/* ---- the run --------------------------------------------------------------------------------------------------------------- */

static void fill_progress(const lin_train_run *r, const lin_batches *plan, lin_train_progress *p)
{
    const lin_train_counters *c = &r->counters;
    p->epoch = (int)c->epoch;
    p->epochs = r->options->epochs;
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

// Whether a resumed epoch has completed the first batches of this plan: frames must add up to the saved count, and labels at
// least to theirs, which lacks those of utterances replaced by noise.
static int goes_on(const lin_train_run *r, const lin_batches *plan)
{
    const lin_train_counters *c = &r->counters;
    if (c->batch > plan->n_batches) return 0;
    long long frames = 0, labels = 0;
    for (int i = 0; i < plan->offsets[c->batch]; i++) {
        frames += r->data.train.items[plan->items[i]].frames;
        labels += r->data.train.items[plan->items[i]].n_labels;
    }
    return frames == c->frame_sum && labels >= c->label_sum;
}

static void clear_sums(lin_train_counters *c)
{
    c->batch = 0;
    c->loss_sum = c->epoch_seconds = 0;
    c->label_sum = c->frame_sum = 0;
}

static int wants_stop(const lin_train_run *r) { return r->hooks->stop && r->hooks->stop(r->hooks->context); }

// Epochs without progress before the rate is halved. Until a CTC network recognises anything, all its outputs are blanks and its
// error rate is meaningless: this phase may take five times as long.
static int patience_of(const lin_train_run *r, double dev_per)
{
    return dev_per >= 0.95 && !r->model->config.tokens ? 5 * r->options->patience : r->options->patience;
}

// The value that epochs are compared by: the dev PER; for tokens, or without it, a loss.
static double judged(const lin_train_run *r, const lin_train_progress *p)
{
    return p->dev_per >= 0 && !r->model->config.tokens ? p->dev_per : p->dev_loss >= 0 ? p->dev_loss : p->loss;
}

// Saves the model, with the averaged weights if there are any, in the run's folder.
static lin_status save_model(lin_train_run *r, const char *name, lin_error *err)
{
    char path[4096];
    if (lin_train_rank(&r->parallel) != 0) return LIN_OK;
    LIN_TRY(lin_train_path(r->options, name, path, err));
    LIN_TRY(fetch_model(r, 0, err));
    lin_model best = *r->model;
    if (r->optimizer.average) best.values = r->optimizer.average;
    lin_model_seal(&best);
    return lin_model_save(&best, path, r->options->half ? LIN_F16 : LIN_F32, err);
}

// Saves the model of an epoch among the last ones, and removes those before: several, if the run kept more before.
static lin_status keep_model(lin_train_run *r, lin_error *err)
{
    const long long epoch = r->counters.epoch + 1;
    char name[64], old[4096];
    if (r->options->keep < 1 || lin_train_rank(&r->parallel) != 0) return LIN_OK;
    snprintf(name, sizeof name, "epoch-%lld.safetensors", epoch);
    LIN_TRY(save_model(r, name, err));
    for (long long past = epoch - r->options->keep; past > 0; past--) {
        snprintf(name, sizeof name, "epoch-%lld.safetensors", past);
        LIN_TRY(lin_train_path(r->options, name, old, err));
        if (remove(old) != 0) break; // there are none before
    }
    return LIN_OK;
}

// Between two epochs: measures, adapts the rate, keeps the best model, writes the log.
static lin_status end_epoch(lin_train_run *r, const lin_batches *plan, lin_train_progress *p, lin_error *err)
{
    lin_train_counters *c = &r->counters;
    const double begin = lin_now();
    // verify that the training data are those that were opened, even if a mapped file is overwritten
    for (int i = 0; i < r->data.train.n_sets; i++) LIN_TRY(lin_dataset_verify(r->data.train.sets[i], err));
    LIN_TRY(lin_train_evaluate(r, p, err));
    if (r->parallel.comm) {
        LIN_TRY(lin_comm_agree(r->parallel.comm, fetch_model(r, 0, err), err));
        LIN_TRY(lin_parallel_compare(&r->parallel, r->model, c->epoch, err));
    }
    p->is_best = c->best_per < 0 || judged(r, p) < c->best_per;
    if (p->is_best) {
        c->best_per = judged(r, p);
        c->epochs_since_best = 0;
        LIN_TRY(save_model(r, "best.safetensors", err));
    } else {
        c->epochs_since_best++;
        if (r->options->schedule == LIN_SCHEDULE_PLATEAU && c->epochs_since_best >= patience_of(r, p->dev_per)) {
            c->lr_factor /= 2;
            c->epochs_since_best = 0;
        }
    }
    LIN_TRY(keep_model(r, err));
    c->run_seconds += lin_now() - begin;
    fill_progress(r, plan, p);
    if (lin_train_rank(&r->parallel) == 0) LIN_TRY(lin_train_log(r->options, p, r->model->config.tokens > 0, err));
    if (r->hooks->progress) r->hooks->progress(r->hooks->context, p);
    c->epoch++;
    clear_sums(c);
    return LIN_OK;
}

static lin_status save(lin_train_run *r, lin_error *err)
{
    if (lin_train_rank(&r->parallel) != 0) return LIN_OK;
    LIN_TRY(fetch_model(r, 1, err));
    return lin_train_save(r->options, r->model, &r->optimizer, &r->counters, err);
}

// After a step: whether any process ends the run, because it is asked to stop or because it failed. *status becomes a failure of
// another one, unless this one failed itself; if both happen at once, the next agreement has the failure.
static int agree_to_stop(const lin_train_run *r, lin_status *status, lin_error *err)
{
    lin_comm *comm = r->parallel.comm;
    lin_error why = {0};
    if (*status != LIN_OK && err) why = *err;
    const lin_status own = *status == LIN_OK && wants_stop(r) ? LIN_STOPPED : *status, all = lin_comm_agree(comm, own, &why);
    if (all != LIN_STOPPED || (comm && comm->lost)) *status = all == LIN_OK ? LIN_OK : lin_fail_as(err, &why);
    return all != LIN_OK;
}

// After a failure anywhere between two steps: if the other processes are lost, rank 0 can save the state after the last step.
static lin_status save_what_is_left(lin_train_run *r, lin_status status, lin_error *err)
{
    lin_error failed = {0}, own = {0};
    if (!err) err = &own;
    const lin_error copy = *err, *why = &copy;
    if (status == LIN_OK || !r->parallel.comm || !r->parallel.comm->lost) return status;
    if (lin_train_rank(&r->parallel) != 0 || r->counters.step == 0)
        return lin_fail(err, why->status, "%s; resume from the last checkpoint with --resume, on any number of processes",
                        why->message);
    if (save(r, &failed) != LIN_OK) return lin_fail(err, why->status, "%s, and %s", why->message, failed.message);
    return lin_fail(err, why->status,
                    "%s; the state after step %lld is saved: continue with --resume, on any number of processes", why->message,
                    r->counters.step);
}

// Runs the remaining batches of an epoch. *stopped: the run is to end.
static lin_status run_batches(lin_train_run *r, const lin_batches *plan, lin_train_progress *p, double *saved, int *stopped,
                              lin_error *err)
{
    lin_train_counters *c = &r->counters;
    lin_status status = LIN_OK;
    double looked = lin_now();
    *stopped = 0;
    // with several processes, a failure of this one must first reach the others (agree_to_stop)
    while ((status == LIN_OK || r->parallel.comm) && !*stopped && c->batch < plan->n_batches) {
        const double begin = lin_now();
        if (!train_batch(r, plan, p)) return lin_fail_as(err, &r->parallel.err);
        *stopped = agree_to_stop(r, &status, err);
        if (r->parallel.comm && r->parallel.comm->lost) break;
        const int due = *stopped || c->batch == plan->n_batches || begin - *saved > r->options->checkpoint_s;
        const int looks = due || r->device.ops->on_host || begin - looked > LOOK_EVERY_S;
        if (looks && status == LIN_OK) status = look(r, plan, p, err);
        const double end = lin_now();
        c->epoch_seconds += end - begin;
        c->run_seconds += end - begin;
        if (!looks || status != LIN_OK) continue;
        looked = end;
        fill_progress(r, plan, p);
        if (r->hooks->progress && c->batch < plan->n_batches) r->hooks->progress(r->hooks->context, p);
        if (c->batch < plan->n_batches && due) {
            status = save(r, err);
            *saved = end;
        }
    }
    // the others were lost after a step whose totals have not been read yet
    if (r->parallel.comm && r->parallel.comm->lost) look(r, plan, p, NULL);
    return lin_comm_agree(r->parallel.comm, status, err);
}

static lin_status run_epoch(lin_train_run *r, lin_train_progress *p, double *saved, lin_error *err)
{
    lin_train_counters *c = &r->counters;
    lin_batches plan;
    int stopped = 0;
    LIN_TRY(lin_train_plan(&r->data, (int)c->epoch, lin_train_ranks(&r->parallel), &plan, err));
    if (!goes_on(r, &plan)) {
        lin_train_note(r->hooks,
                       "the checkpoint was saved within epoch %lld with other batches than these options give (--batch-frames?); "
                       "that epoch starts again from its first batch", c->epoch + 1);
        clear_sums(c);
    }
    begin_tally(r);
    lin_status status = run_batches(r, &plan, p, saved, &stopped, err);
    if (status == LIN_OK && c->batch == plan.n_batches) {
        status = end_epoch(r, &plan, p, err);
        if (status == LIN_OK) status = save(r, err);
        status = lin_comm_agree(r->parallel.comm, status, err);
        *saved = lin_now();
    }
    lin_batches_free(&plan);
    if (status == LIN_OK && stopped)
        status = lin_fail(err, LIN_STOPPED, "stopped after step %lld; continue with --resume", c->step);
    return status;
}

// Measures the initial model for the line of epoch 0. It never becomes best.safetensors, which is a model of this run.
static lin_status measure_first(lin_train_run *r, lin_train_progress *p, lin_error *err)
{
    lin_status status = lin_train_evaluate(r, p, err);
    if (status != LIN_OK) return status;
    p->epoch = -1;
    p->epochs = r->options->epochs;
    p->loss = -1;
    if (lin_train_rank(&r->parallel) == 0) status = lin_train_log(r->options, p, r->model->config.tokens > 0, err);
    if (status == LIN_OK && r->hooks->progress) r->hooks->progress(r->hooks->context, p);
    return lin_comm_agree(r->parallel.comm, status, err);
}

// Warns if the rate still rises in the second half of the run, which is probably a mistake.
static lin_status check_warmup(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    const lin_train_counters *c = &r->counters;
    const int each = lin_train_step_batches(r->options);
    lin_batches plan;
    if (o->warmup_steps == 0 || c->epoch >= o->epochs) return LIN_OK;
    LIN_TRY(lin_train_plan(&r->data, (int)c->epoch, lin_train_ranks(&r->parallel), &plan, err));
    const long long steps = (long long)((plan.n_batches + each - 1) / each) * o->epochs;
    lin_batches_free(&plan);
    if (2LL * o->warmup_steps > steps)
        lin_train_note(r->hooks,
                       "the learning rate rises for %d steps (--set warmup-steps), more than half of the run, which has about "
                       "%lld in %d epoch%s", o->warmup_steps, steps, o->epochs, o->epochs == 1 ? "" : "s");
    return LIN_OK;
}

static int has_settled(const lin_train_run *r)
{
    return r->options->schedule == LIN_SCHEDULE_PLATEAU && r->options->lr * r->counters.lr_factor < r->options->min_lr;
}

static lin_status run(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    lin_train_counters *c = &r->counters;
    lin_train_progress p = {.dev_loss = -1, .dev_per = -1, .best_per = -1};
    double saved = lin_now();
    double first = -1;
    lin_status status = check_warmup(r, err);
    if (status == LIN_OK && o->measures_first && !o->resume && r->data.dev.n > 0) {
        status = measure_first(r, &p, err);
        first = judged(r, &p);
    }
    if (o->resume && c->epoch >= o->epochs)
        lin_train_note(r->hooks, "%s has completed %lld epochs and %d are requested: nothing to do", o->folder, c->epoch,
                       o->epochs);
    else if (o->resume && has_settled(r))
        lin_train_note(r->hooks, "the learning rate of %s has fallen below min-lr, %g: nothing to do", o->folder, o->min_lr);
    while (status == LIN_OK && c->epoch < o->epochs && !has_settled(r)) status = run_epoch(r, &p, &saved, err);
    status = save_what_is_left(r, status, err);
    if (status == LIN_OK && first >= 0 && c->best_per > first)
        lin_train_note(r->hooks, "no epoch is better on the development set than the model that the run began with");
    if (status == LIN_OK || (status == LIN_STOPPED && !(r->parallel.comm && r->parallel.comm->lost))) {
        lin_status fetched = fetch_model(r, 0, err);
        if (fetched != LIN_OK) status = fetched;
    }
    lin_model_seal(r->model);
    return status;
}

/* ---- setting up ------------------------------------------------------------------------------------------------------------ */

static lin_status check_options(const lin_train_options *o, lin_error *err)
{
    if (!o->folder || !*o->folder) return lin_fail(err, LIN_INVALID, "training needs a folder for the run");
    if (o->mmi > 0 && !o->mmi_lm) return lin_fail(err, LIN_INVALID, "mmi needs a language model of phones (mmi-lm)");
    if (!(o->lr > 0)) return lin_fail(err, LIN_INVALID, "the learning rate is %g; must be above 0", o->lr);
    if (o->augment.snr_low_db > o->augment.snr_high_db)
        return lin_fail(err, LIN_INVALID, "snr-low-db is %g, above snr-high-db, %g", o->augment.snr_low_db,
                        o->augment.snr_high_db);
    if (o->schedule == LIN_SCHEDULE_PLATEAU && o->lr < o->min_lr)
        return lin_fail(err, LIN_INVALID,
                        "the learning rate %g is below %g, at which a run with schedule plateau ends; lower min-lr, or choose "
                        "another schedule", o->lr, o->min_lr);
    return LIN_OK;
}

static lin_status check_network(const lin_train_options *o, const lin_config *c, lin_error *err)
{
    const int lstm = c->network == LIN_NETWORK_LSTM;
    if (c->tokens && (o->speaker_norm || o->n_inner || o->augment.freq_masks || o->augment.time_masks || o->augment.tempo > 0 ||
                      o->mmi > 0 || lin_acoustics_any(&o->augment)))
        return lin_fail(err, LIN_INVALID,
                        "these sets hold tokens: speakers, tempo, masks, acoustics, mmi and losses of inner layers are for "
                        "speech");
    if (c->voice && (o->speaker_norm || o->n_inner || o->augment.tempo > 0 || o->mmi > 0 || o->join_part > 0 ||
                     o->augment.silence_part > 0))
        return lin_fail(err, LIN_INVALID,
                        "this is a network of voices: normalisation by speaker, tempo, joined or silent utterances, mmi "
                        "and losses of inner layers are for speech");
    if (!c->causal && o->join_part > 0)
        return lin_fail(err, LIN_INVALID, "only a causal network can continue from one utterance to the next (join_part)");
    if (lstm && o->n_inner > 0) return lin_fail(err, LIN_INVALID, "only a transformer has losses of inner layers");
    for (int i = 0; i < o->n_inner; i++)
        if (o->inner_layers[i] < 1 || o->inner_layers[i] >= c->layers)
            return lin_fail(err, LIN_INVALID, "a loss of layer %d of %d: inner layers are 1 to %d", o->inner_layers[i], c->layers,
                            c->layers - 1);
    return LIN_OK;
}

// The counters of a new run.
static lin_train_counters counters_of(const lin_train_run *r)
{
    const lin_train_list *list = &r->data.train;
    lin_train_counters c = {.lr_factor = 1,
                            .best_per = -1,
                            .seed = r->options->seed,
                            .data = r->data.lengths,
                            .content = r->data.content,
                            .dev = r->data.dev_content,
                            .arc_end = r->options->epochs,
                            .utterances = list->n};
    for (int i = 0; i < list->n; i++) c.frames += list->frames[i];
    return c;
}

// All caches have the filterbank of the first one, which is the model's.
static lin_status check_filterbanks(const lin_train_run *r, lin_error *err)
{
    const lin_train_list *lists[] = {&r->data.train, &r->data.dev};
    char how[256];
    for (int l = 0; l < 2 && !r->model->config.tokens; l++)
        for (int s = 0; s < lists[l]->n_sets; s++) {
            const lin_features *f = &lists[l]->sets[s]->features;
            if (!lin_features_equal(f, &r->model->features))
                return lin_fail(err, LIN_MISMATCH, "%s has another filterbank than the model of this run: %s",
                                lists[l]->sets[s]->path,
                                lin_features_difference(f, &r->model->features, how, sizeof how));
        }
    return LIN_OK;
}

// How the training data differ from those of the counters; "" if they are the same.
static const char *data_difference(const lin_train_run *r, const lin_train_counters *c, char *text, size_t size)
{
    const lin_train_counters now = counters_of(r);
    text[0] = 0;
    if (c->data == now.data && c->content != now.content) snprintf(text, size, "with other features or phones");
    if (c->data == now.data) return text;
    if (c->utterances != now.utterances || c->frames != now.frames)
        snprintf(text, size, "with other utterances (%lld of %lld frames in all, now %lld of %lld)", c->utterances, c->frames,
                 now.utterances, now.frames);
    else snprintf(text, size, "with other utterances, or another order of them");
    return text;
}

// Counters of a new run, or those of the checkpoint, with its model and moments.
static lin_status load(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    lin_train_counters *c = &r->counters;
    LIN_TRY(lin_train_load(o, r->model, &r->optimizer, c, err));
    char other[160];
    if (c->seed != o->seed)
        return lin_fail(err, LIN_MISMATCH,
                        "%s/checkpoint.safetensors is of a run with --seed %llu, not %llu; resume with that seed", o->folder,
                        c->seed, o->seed);
    if (*data_difference(r, c, other, sizeof other))
        return lin_fail(err, LIN_MISMATCH,
                        "%s/checkpoint.safetensors is of a run %s; resume with the caches and --set max-frames of that run, or "
                        "start another from its best.safetensors (--init)", o->folder, other);
    if (c->dev && c->dev != r->data.dev_content && c->best_per >= 0) {
        lin_train_note(r->hooks, "the development set has changed; the best model is determined again");
        c->best_per = -1;
        c->epochs_since_best = 0;
    }
    c->dev = r->data.dev_content;
    // a warm restart (Loshchilov & Hutter 2017)
    if (o->schedule == LIN_SCHEDULE_COSINE && c->epoch == c->arc_end && o->epochs > c->epoch) {
        lin_train_note(r->hooks,
                       "the cosine schedule was complete after epoch %lld: it starts again at the full rate and ends with epoch "
                       "%d", c->epoch, o->epochs);
        c->arc_begin = c->epoch;
    }
    if (c->epoch < o->epochs) c->arc_end = o->epochs;
    return LIN_OK;
}

// Prepares the model for the first step, on one process or on all.
static lin_status begin(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    lin_model *m = r->model;
    lin_status status = LIN_OK;
    r->counters = counters_of(r);
    if (o->resume) {
        if (lin_train_rank(&r->parallel) == 0) status = load(r, err);
    } else {
        m->speaker_norm = o->speaker_norm;
        if (o->speaker_norm) {
            for (int d = 0; d < m->config.mel_bins; d++) m->mean[d] = 0, m->istd[d] = 1;
        } else if (!o->keeps_norm && !m->config.tokens && lin_train_rank(&r->parallel) == 0) {
            status = lin_dataset_norm(r->data.train.sets, r->data.train.n_sets, m->mean, m->istd, err);
        }
    }
    LIN_TRY(lin_comm_agree(r->parallel.comm, status, err));
    LIN_TRY(lin_parallel_share(&r->parallel, o, m, &r->optimizer, &r->counters, err));
    if (r->optimizer.average && !o->resume)
        memcpy(r->optimizer.average, m->values, m->params.n_elements * sizeof *m->values);
    if (o->resume || r->optimizer.average) lin_optimizer_place(&r->optimizer, r->device.exec);
    return LIN_OK;
}

// The set-up that needs no other process.
static lin_status set_up_alone(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    const lin_model *m = r->model;
    lin_train_device *v = &r->device;
    LIN_TRY(check_options(o, err));
    LIN_TRY(check_network(o, &m->config, err));
    if (m->config.voice && !v->ops->on_host)
        return lin_fail(err, LIN_UNSUPPORTED, "a network of voices is trained on the CPU: --device cpu");
    LIN_TRY(check_filterbanks(r, err));
    LIN_TRY(lin_train_data_open(&r->data, r->hooks, err));
    LIN_TRY(lin_pool_create(o->threads, &v->pool, err));
    LIN_TRY(v->ops->exec_create(v->ops, o->threads, &v->exec, err));
    LIN_TRY(lin_optimizer_init(&r->optimizer, v->ops, v->exec, &m->params, &o->optimizer, err));
    return lin_parallel_create(&r->parallel, v->exec, o, m, err);
}

static lin_status set_up(lin_train_run *r, lin_error *err)
{
    const lin_train_options *o = r->options;
    lin_train_device *v = &r->device;
    lin_train_parallel *p = &r->parallel;
    LIN_TRY(lin_comm_agree(o->comm, lin_backend_open(o->device, o->precision, &v->ops, err), err));
    p->ops = v->ops;
    LIN_TRY(lin_comm_agree(o->comm, set_up_alone(r, err), err));
    LIN_TRY(lin_parallel_check(p, &r->data, err));
    LIN_TRY(begin(r, err));
    lin_status status = lin_train_data_place(&r->data, v->ops, v->exec, v->pool, err);
    if (status == LIN_OK) status = lin_train_device_create(v, &r->data, lin_train_ranks(p), r->model, &r->optimizer, err);
    p->gradients = v->gradients;
    return lin_comm_agree(o->comm, status, err);
}

static void tear_down(lin_train_run *r)
{
    lin_train_device *v = &r->device;
    lin_parallel_destroy(&r->parallel);
    lin_train_device_free(v, &r->data);
    lin_train_data_free(&r->data, v->ops, v->exec);
    lin_optimizer_free(&r->optimizer);
    if (v->exec) v->ops->exec_destroy(v->exec);
    lin_pool_destroy(v->pool);
}

lin_status lin_train(const lin_train_options *options, lin_model *model, const lin_dataset *const *sets, int n_sets,
                     const lin_dataset *const *dev_sets, int n_dev_sets, const lin_train_hooks *hooks, lin_error *err)
{
    lin_train_hooks used = {0};
    if (hooks) used = *hooks;
    if (!lin_comm_first(options->comm)) used.progress = NULL, used.note = NULL; // rank 0 reports
    lin_train_run r = {.options = options, .hooks = &used, .model = model, .parallel.comm = options->comm};
    r.data = (lin_train_data){.options = options, .model = model, .train = {.sets = sets, .n_sets = n_sets},
                              .dev = {.sets = dev_sets, .n_sets = n_dev_sets}};
    lin_status status = set_up(&r, err);
    if (status == LIN_OK) status = run(&r, err);
    tear_down(&r);
    return status;
}
