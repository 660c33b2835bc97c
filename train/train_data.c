// train_data.c - the utterances of a run: where they are, their order in an epoch, the part of each process, and their random
// augmentation. See train.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "kernels/acoustics.h"
#include "linnet/recognizer.h"
#include "model/model.h"
#include "train/train_internal.h"
#include "train/voices.h"

/* ---- collecting ------------------------------------------------------------------------------------------------------------ */

// NULL if the utterance can be used.
static const char *why_not(const lin_train_data *d, const lin_train_item *it, int for_training)
{
    if (it->frames < 1) return "it is shorter than a row of the network";
    if (d->model->config.voice) return it->frames < LIN_VOICE_PIECE_LEAST ? "it is too short to hear a voice" : NULL;
    if (!for_training) return NULL;
    if (it->frames > d->options->max_frames) return "it is longer than --set max-frames allows";
    if (d->model->config.tokens) return NULL;
    return lin_ctc_frames_needed(it->labels, it->n_labels) > it->rows ? "CTC has no path: too few frames for its phonemes" : NULL;
}

// Number of pieces of `size` frames that an utterance gives: a network of voices has an item for each.
static int pieces_of(const lin_train_data *d, int frames, int size)
{
    return d->model->config.voice && frames > size ? frames / size : 1;
}

// Makes an item piece k of its utterance of `whole` frames.
static void cut_piece(const lin_train_data *d, lin_train_item *it, int whole, int k, int size, const int *voice)
{
    it->first = k * size;
    it->frames = it->recorded = whole < size ? whole : size;
    it->rows = lin_config_frames_out(&d->model->config, it->frames);
    it->labels = voice;
    it->n_labels = it->counted = 1;
}

static lin_status collect(lin_train_data *d, lin_train_list *list, const lin_train_hooks *hooks, lin_error *err)
{
    const lin_config *c = &d->model->config;
    const int for_training = list == &d->train, size = for_training ? LIN_VOICE_PIECE_MOST : LIN_VOICE_PIECE_MEASURED;
    size_t total = 0;
    long long labels = 0;
    const char *left_out = NULL, *reason = ""; // the last utterance that is left out
    int voices = 0;
    if (c->voice) LIN_TRY(lin_voices_number(list->sets, list->n_sets, &list->voices, &voices, err));
    if (c->voice && for_training && voices != c->outputs)
        return lin_fail(err, LIN_MISMATCH, "the sets to train on have %d voices, the model %d", voices, c->outputs);
    for (int s = 0; s < list->n_sets; s++)
        for (int i = 0; i < list->sets[s]->count; i++) total += (size_t)pieces_of(d, list->sets[s]->utterances[i].frames, size);
    list->items = lin_calloc(total, sizeof *list->items);
    list->frames = lin_calloc(total, sizeof *list->frames);
    if (!list->items || !list->frames) return lin_no_memory(err, "the list of utterances", total * sizeof *list->items);
    const int *speakers = list->voices; // of the set
    for (int s = 0; s < list->n_sets; s++) {
        const lin_dataset *set = list->sets[s];
        if (set->tokens != c->tokens)
            return lin_fail(err, LIN_MISMATCH, "%s has %d different tokens, the model %d (0: features of sound)",
                            set->path, set->tokens, c->tokens);
        if (c->mixture && set->V != LIN_LEVELS)
            return lin_fail(err, LIN_MISMATCH, "the targets of %s have %d values; a mixture is of %d", set->path, set->V,
                            LIN_LEVELS);
        const int same = strcmp(set->phones, d->model->phones) == 0;
        if (set->D != c->mel_bins || (c->tokens && (!same || set->V != lin_config_symbols(c))))
            return lin_fail(err, LIN_MISMATCH, "%s has other features or phones than the model", set->path);
        if (!same && !c->voice) {
            char how[128];
            return lin_fail(err, LIN_MISMATCH, "%s and the model have different phones: %s; linnet prepare --phones MODEL uses "
                                               "those of a model", set->path,
                            lin_phones_difference(set->phones, d->model->phones, how, sizeof how));
        }
        for (int i = 0; i < set->count; i++) {
            const lin_dataset_utterance *u = &set->utterances[i];
            lin_train_item it = {.set = set, .index = i, .frames = u->frames, .labels = u->labels, .n_labels = u->n_labels};
            for (int k = 0; k < it.n_labels; k++) it.counted += it.labels[k] >= 0;
            // another utterance may continue this one: it must end with a whole row
            if (for_training && d->options->join_part > 0) it.frames -= it.frames % c->stack;
            it.recorded = it.frames;
            it.rows = lin_config_frames_out(c, it.frames);
            const char *why = why_not(d, &it, for_training);
            if (why && !c->voice) lin_train_note(hooks, "%s: %s is left out: %s", set->path, set->utterances[i].id, why);
            if (why) left_out = set->utterances[i].id, reason = why;
            if (why) continue;
            const int whole = it.frames, pieces = pieces_of(d, whole, size);
            for (int k = 0; k < pieces; k++) {
                if (c->voice) cut_piece(d, &it, whole, k, size, &speakers[u->speaker]);
                labels += it.counted;
                list->items[list->n] = it;
                list->frames[list->n++] = it.frames;
            }
        }
        if (speakers) speakers += set->n_speakers;
    }
    const char *use = for_training ? "train on" : "measure on";
    if (list->n == 0 && left_out)
        return lin_fail(err, LIN_INVALID, "no utterance to %s; %s, for example, is left out: %s", use, left_out, reason);
    if (list->n == 0) return lin_fail(err, LIN_INVALID, "no utterance to %s", use);
    if (labels == 0 && c->tokens)
        return lin_fail(err, LIN_INVALID, "no token of the sets to %s has a target", use);
    if (labels == 0) return lin_fail(err, LIN_INVALID, "nobody speaks in the sets to %s: they have no phonemes", use);
    return LIN_OK;
}

// Hash of the sets' contents: lin_dataset_fingerprint of each, in order. 0 for none.
static uint64_t hash_sets(const lin_train_list *list)
{
    uint64_t h = 0;
    for (int s = 0; s < list->n_sets; s++) h = lin_mix64(h + lin_dataset_fingerprint(list->sets[s])) | 1;
    return h;
}

lin_status lin_train_data_open(lin_train_data *d, const lin_train_hooks *hooks, lin_error *err)
{
    lin_status status = collect(d, &d->train, hooks, err);
    if (status == LIN_OK && d->dev.n_sets > 0) status = collect(d, &d->dev, hooks, err);
    if (status == LIN_OK && lin_acoustics_any(&d->options->augment)) {
        const lin_fbank_config fbank =
            lin_fbank_from_model(&d->train.sets[0]->features, d->model->config.mel_bins);
        status = lin_acoustics_create(&d->options->augment, &fbank, &d->acoustics, err);
    }
    d->lengths = (uint64_t)d->train.n;
    for (int i = 0; i < d->train.n; i++) {
        const lin_train_item *it = &d->train.items[i];
        d->lengths = lin_mix64(d->lengths + (uint64_t)it->set->utterances[it->index].frames);
        d->lengths = lin_mix64(d->lengths + (uint64_t)it->n_labels);
    }
    d->content = hash_sets(&d->train);
    d->dev_content = hash_sets(&d->dev);
    return status;
}

/* ---- in the backend's memory ----------------------------------------------------------------------------------------------- */

// A block of the backend's memory with the n floats at `from`, which are freed; on a CPU the block is `from` itself.
static lin_status place_floats(const lin_ops *ops, lin_exec *exec, float *from, size_t n, float **device, lin_error *err)
{
    *device = NULL;
    if (!from) return lin_no_memory(err, "the data's normalisation", n * sizeof *from);
    if (ops->on_host) {
        *device = from;
        return LIN_OK;
    }
    lin_status status = ops->memory_create(exec, n * sizeof *from, (void **)device, err);
    if (status == LIN_OK) ops->upload(exec, *device, from, n * sizeof *from);
    if (status == LIN_OK) status = ops->finish(exec, err);
    lin_free(from);
    return status;
}

// Mean and istd [2, D] of each speaker, or one for all.
static float *norms_of(const lin_train_data *d, const lin_train_list *list, size_t *n)
{
    const size_t D = (size_t)d->model->config.mel_bins;
    const int by_speaker = d->options->speaker_norm;
    size_t count = by_speaker ? 0 : 1;
    for (int s = 0; s < list->n_sets && by_speaker; s++) count += (size_t)list->sets[s]->n_speakers;
    *n = count * 2 * D;
    float *norms = lin_alloc(*n, sizeof *norms), *next = norms;
    if (norms && !by_speaker) {
        memcpy(norms, d->model->mean, D * sizeof *norms);
        memcpy(norms + D, d->model->istd, D * sizeof *norms);
    }
    for (int s = 0; norms && by_speaker && s < list->n_sets; s++)
        for (int i = 0; i < list->sets[s]->n_speakers; i++, next += 2 * D)
            lin_dataset_speaker_norm(list->sets[s], i, next, next + D);
    return norms;
}

typedef struct powers_job {
    const lin_train_list *list;
    const float *steps;
    int D;
} powers_job;

static void power_of_utterance(void *context, int i, int thread)
{
    const powers_job *job = context;
    const lin_train_item *it = &job->list->items[i];
    const int D = job->D;
    const unsigned char *codes = it->set->utterances[it->index].codes;
    const float *steps = job->steps + (size_t)i * 2 * (size_t)D;
    double sum = 0;
    (void)thread;
    for (int t = 0; t < it->recorded; t++, codes += D)
        for (int d = 0; d < D; d++) {
            const float feature = steps[d] + steps[D + d] * (float)codes[d];
            sum += (double)expf(feature < LIN_ACOUSTICS_MOST ? feature : LIN_ACOUSTICS_MOST);
        }
    job->list->powers[i] = (float)(sum / it->recorded);
}

static lin_status find_powers(lin_train_list *list, const float *steps, int D, lin_pool *pool, lin_error *err)
{
    list->powers = lin_calloc((size_t)list->n, sizeof *list->powers);
    if (!list->powers) return lin_no_memory(err, "the power of each utterance", (size_t)list->n * sizeof *list->powers);
    powers_job job = {list, steps, D};
    lin_pool_run(pool, list->n, power_of_utterance, &job);
    return LIN_OK;
}

static lin_status place(lin_train_data *d, lin_train_list *list, const lin_ops *ops, lin_exec *exec, lin_pool *pool,
                        lin_error *err)
{
    const size_t D = (size_t)d->model->config.mel_bins, n_steps = (size_t)list->n * 2 * D;
    size_t n_norms, at = 0;
    float *norms = norms_of(d, list, &n_norms);
    LIN_TRY(place_floats(ops, exec, norms, n_norms, &list->norms, err));
    float *steps = lin_alloc(n_steps, sizeof *steps);
    for (int i = 0; steps && i < list->n; i++)
        lin_dataset_steps(list->items[i].set, list->items[i].index, steps + (size_t)i * 2 * D);
    const int needs_powers = steps && list == &d->train && d->acoustics;
    const lin_status found = needs_powers ? find_powers(list, steps, (int)D, pool, err) : LIN_OK;
    LIN_TRY(place_floats(ops, exec, steps, n_steps, &list->steps, err)); // in any case, so that they are freed
    LIN_TRY(found);
    list->blocks = lin_calloc((size_t)list->n_sets, sizeof *list->blocks);
    if (!list->blocks) return lin_no_memory(err, "the list of sets", (size_t)list->n_sets * sizeof *list->blocks);
    const float *speakers = list->norms;
    for (int s = 0; s < list->n_sets; s++) {
        const lin_dataset *set = list->sets[s];
        const size_t bytes = (size_t)set->total_frames * (size_t)set->D;
        const unsigned char *device = set->body;
        if (!ops->on_host) {
            LIN_TRY(ops->memory_create(exec, bytes, &list->blocks[s], err));
            ops->upload(exec, list->blocks[s], set->body, bytes);
            device = list->blocks[s];
        }
        for (; at < (size_t)list->n && list->items[at].set == set; at++) { // the list is in the order of the sets
            lin_train_item *it = &list->items[at];
            const float *norm = speakers + (d->options->speaker_norm ? (size_t)set->utterances[it->index].speaker * 2 * D : 0);
            it->gather = (lin_gather){.codes = device + (set->utterances[it->index].codes - set->body),
                                      .steps = list->steps + at * 2 * D,
                                      .mean = norm,
                                      .istd = norm + D,
                                      .frames = list == &d->train && d->options->augment.tempo > 0 ? it->recorded : 0};
        }
        if (d->options->speaker_norm) speakers += (size_t)set->n_speakers * 2 * D;
    }
    return ops->finish(exec, err);
}

lin_status lin_train_data_place(lin_train_data *d, const lin_ops *ops, lin_exec *exec, lin_pool *pool, lin_error *err)
{
    const lin_status status = place(d, &d->train, ops, exec, pool, err);
    return status == LIN_OK && d->dev.n > 0 ? place(d, &d->dev, ops, exec, pool, err) : status;
}

void lin_train_data_free(lin_train_data *d, const lin_ops *ops, lin_exec *exec)
{
    lin_train_list *const lists[] = {&d->train, &d->dev};
    for (int l = 0; l < 2; l++) {
        lin_train_list *list = lists[l];
        for (int s = 0; list->blocks && s < list->n_sets; s++) ops->memory_destroy(exec, list->blocks[s]);
        if (exec) ops->memory_destroy(exec, list->steps);
        if (exec) ops->memory_destroy(exec, list->norms);
        void *const blocks[] = {list->items, list->frames, list->blocks, list->powers, list->voices};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
    }
    lin_acoustics_destroy(d->acoustics);
}

/* ---- an epoch -------------------------------------------------------------------------------------------------------------- */

int lin_train_frames_at(const lin_train_data *d, const lin_train_item *it, double rate)
{
    const int stack = d->model->config.stack, most = d->options->max_frames;
    if (rate == 1) return it->recorded;
    long frames = lround(it->recorded / rate);
    if (frames > most) frames = most;
    if (d->options->join_part > 0) frames -= frames % stack;
    const int needed = lin_ctc_frames_needed(it->labels, it->n_labels), rows = needed > 1 ? needed : 1;
    const int least = rows * stack < it->recorded ? rows * stack : it->recorded; // CTC has a path at rate 1
    return frames > least ? (int)frames : least;
}

// Draws the speaking rates of a pass over the data, maybe several epochs, and so the lengths for its batches.
static void draw_rates(lin_train_data *d, int pass)
{
    const lin_augment_options *augment = &d->options->augment;
    const uint64_t key = lin_random_key(lin_random_key(d->options->seed, LIN_TRAIN_KEY_TEMPO), (uint64_t)pass);
    for (int i = 0; i < d->train.n && augment->tempo > 0; i++) {
        lin_train_item *it = &d->train.items[i];
        it->frames = d->train.frames[i] =
            lin_train_frames_at(d, it, lin_augment_rate(augment, lin_random_key(key, (uint64_t)i)));
        it->rows = lin_config_frames_out(&d->model->config, it->frames);
    }
}

// Draws lengths and positions of the pieces for a pass.
static void draw_pieces(lin_train_data *d, uint64_t key)
{
    for (int i = 0; i < d->train.n; i++) {
        lin_train_item *it = &d->train.items[i];
        const uint32_t whole = (uint32_t)it->set->utterances[it->index].frames;
        const uint32_t drawn = LIN_VOICE_PIECE_LEAST +
                               lin_random_below(key, 2 * (uint64_t)i, LIN_VOICE_PIECE_MOST - LIN_VOICE_PIECE_LEAST + 1);
        it->frames = d->train.frames[i] = (int)(drawn < whole ? drawn : whole);
        it->first = (int)lin_random_below(key, 2 * (uint64_t)i + 1, whole - (uint32_t)it->frames + 1);
        it->rows = lin_config_frames_out(&d->model->config, it->frames);
    }
}

// The plan of a pass of a network of voices: at most LIN_VOICE_PIECES pieces of each voice, drawn anew in each pass.
static lin_status plan_pieces(lin_train_data *d, int pass, lin_batches *plan, lin_error *err)
{
    const lin_train_options *o = d->options;
    const lin_train_list *list = &d->train;
    const uint64_t key = lin_random_key(lin_random_key(o->seed, LIN_TRAIN_KEY_PIECES), (uint64_t)pass);
    const size_t n = (size_t)list->n;
    int *items = lin_alloc(2 * n, sizeof *items), *frames = items + n, kept = 0;
    int *heard = lin_calloc((size_t)d->model->config.outputs, sizeof *heard);
    lin_status status = items && heard ? LIN_OK : lin_no_memory(err, "the plan of an epoch", 2 * n * sizeof *items);
    if (status == LIN_OK) draw_pieces(d, key);
    for (int i = 0; i < list->n && status == LIN_OK; i++) { // Fisher-Yates, from the front
        items[i] = i;
        const int j = (int)lin_random_below(~key, (uint64_t)i, (uint32_t)i + 1), moved = items[j];
        items[j] = i;
        items[i] = moved;
    }
    for (int i = 0; i < list->n && status == LIN_OK; i++) {
        const int item = items[i];
        if (heard[*list->items[item].labels]++ >= LIN_VOICE_PIECES) continue;
        items[kept] = item;
        frames[kept++] = list->frames[item];
    }
    if (status == LIN_OK) status = lin_batches_plan(frames, kept, o->batch_frames, o->batch_sequences, o->seed, pass, plan, err);
    for (int i = 0; i < kept && status == LIN_OK; i++) plan->items[i] = items[plan->items[i]];
    lin_free(items);
    lin_free(heard);
    return status;
}

static int in_order(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

lin_status lin_train_plan(lin_train_data *d, int epoch, int ranks, lin_batches *plan, lin_error *err)
{
    const lin_train_list *list = epoch >= 0 ? &d->train : &d->dev;
    const lin_train_options *o = d->options;
    const int whole = o->batch_frames, share = whole / ranks, parts = o->epoch_parts > 1 ? o->epoch_parts : 1;
    if (epoch >= 0) draw_rates(d, epoch / parts);
    lin_status status =
        epoch >= 0 && d->model->config.voice ? plan_pieces(d, epoch / parts, plan, err) :
        epoch < 0 ? lin_batches_plan(list->frames, list->n, share > 1 ? share : 1, 0, o->seed, epoch, plan, err)
                  : lin_batches_plan(list->frames, list->n, whole, o->batch_sequences, o->seed, epoch / parts, plan, err);
    if (status != LIN_OK || epoch < 0) return status;
    if (parts > 1) status = lin_batches_keep(plan, epoch % parts, parts, err);
    if (status != LIN_OK) {
        lin_batches_free(plan);
        return status;
    }
    d->epoch = epoch;
    if (o->join_part <= 0) return LIN_OK;
    const uint64_t key = lin_random_key(lin_random_key(o->seed, LIN_TRAIN_KEY_ORDER), (uint64_t)epoch);
    for (int b = 0; b < plan->n_batches; b++)
        if (lin_random_uniform(key, (uint64_t)b) < 0.5)
            qsort(plan->items + plan->offsets[b], (size_t)(plan->offsets[b + 1] - plan->offsets[b]), sizeof *plan->items,
                  in_order);
    return LIN_OK;
}

// The batch's frames are cut into equal parts: an utterance belongs to the part that contains its middle, or if it continues a
// sequence, to the part of the sequence.
lin_train_part lin_train_cut(const lin_train_data *d, const int *picked, int n, int rank, int ranks)
{
    const int *frames = d->train.frames;
    int64_t total = 0, before = 0;
    lin_train_part part = {0, 0};
    int owner = 0;
    for (int i = 0; i < n; i++) total += frames[picked[i]];
    for (int i = 0; i < n; i++) {
        const int64_t middle = 2 * before + frames[picked[i]];
        if (i == 0 || !lin_train_continues(d, picked[i])) owner = (int)(middle * ranks / (2 * total));
        part.from += owner < rank;
        part.to += owner <= rank;
        before += frames[picked[i]];
    }
    return part;
}

/* ---- what is drawn --------------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const lin_train_data *d, uint64_t purpose)
{
    return lin_random_key(lin_random_key(d->options->seed, purpose), (uint64_t)d->epoch);
}

int lin_train_continues(const lin_train_data *d, int item)
{
    return d->options->join_part > 0 && lin_random_uniform(key_of(d, LIN_TRAIN_KEY_JOIN), (uint64_t)item) < d->options->join_part;
}

int lin_train_labels(const lin_train_data *d, int item)
{
    const uint64_t key = lin_random_key(key_of(d, LIN_TRAIN_KEY_ACOUSTICS), (uint64_t)item);
    return d->acoustics && lin_acoustics_silent(d->acoustics, key) ? 0 : d->train.items[item].counted;
}

int lin_train_draw_masks(const lin_train_data *d, int item, lin_mask *masks)
{
    return lin_augment_masks(d->train.items[item].frames, d->model->config.mel_bins, &d->options->augment,
                             lin_random_key(key_of(d, LIN_TRAIN_KEY_MASKS), (uint64_t)item), masks);
}

int lin_train_draw_acoustics(const lin_train_data *d, int item, lin_acoustics *a, float *bins)
{
    const lin_train_list *list = &d->train;
    uint64_t key = lin_random_key(key_of(d, LIN_TRAIN_KEY_ACOUSTICS), (uint64_t)item);
    if (!d->acoustics || !lin_acoustics_draw(d->acoustics, list->items[item].frames, list->powers[item], key, a, bins)) return 0;
    key = lin_random_key(key, LIN_TRAIN_KEY_ACOUSTICS);
    for (int v = 0; v < a->n_voices; v++) { // another utterance in each, from a random frame on
        int other = item;
        if (list->n > 1) other = (int)lin_random_below(key, 2 * (uint64_t)v, (uint32_t)list->n - 1);
        other += list->n > 1 && other >= item;
        const lin_train_item *it = &list->items[other];
        a->voices[v] = (lin_acoustics_voice){.codes = it->gather.codes,
                                   .steps = it->gather.steps,
                                   .frames = it->recorded,
                                   .first = (int)lin_random_below(key, 2 * (uint64_t)v + 1, (uint32_t)it->recorded),
                                   .scale = a->voices[v].scale / fmaxf(list->powers[other], LIN_ACOUSTICS_FLOOR)};
    }
    return 1;
}
