// The data of a training run in the backend's memory, its batches, and one step. See train.h.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "kernels/acoustics.h"
#include "score/edit.h"
#include "train/train_internal.h"

// Parts of a step: one for each of its batches on each process.
static int parts_of(const lin_trainer *t) { return lin_train_ranks(t) * lin_train_step_batches(t); }
static int has_parts(const lin_trainer *t) { return t->parallel.comm != NULL || lin_train_step_batches(t) > 1; }

/* ---- utterances ------------------------------------------------------------------------------------------------------------- */

static void leave_out(const lin_trainer *t, const lin_dataset *set, int i, const char *why)
{
    if (t->hooks->left_out) t->hooks->left_out(t->hooks->context, lin_dataset_path(set), lin_dataset_id(set, i), why);
}

lin_status lin_train_collect(lin_trainer *t, const lin_dataset *const *sets, int n_sets, int for_training, lin_train_list *list,
                             lin_error *err)
{
    size_t total = 0;
    long long labels = 0;
    for (int s = 0; s < n_sets; s++) total += (size_t)lin_dataset_count(sets[s]);
    list->items = lin_calloc(total, sizeof *list->items);
    list->frames = lin_calloc(total, sizeof *list->frames);
    if (!list->items || !list->frames) return lin_no_memory(err, "the list of utterances", total * sizeof *list->items);
    const lin_config *c = &t->model->config;
    for (int s = 0; s < n_sets; s++) {
        const lin_dataset *set = sets[s];
        if (lin_dataset_mel_bins(set) != c->mel_bins || lin_dataset_outputs(set) != c->outputs ||
            strcmp(lin_dataset_phones(set), t->model->phones) != 0)
            return lin_fail(err, LIN_MISMATCH, "%s has other features or phones than the model", lin_dataset_path(set));
        for (int i = 0; i < lin_dataset_count(set); i++) {
            lin_train_item it = {.set = set, .index = i, .frames = lin_dataset_frames(set, i)};
            it.labels = lin_dataset_labels(set, i, &it.n_labels);
            // an utterance that another may follow ends with a whole row
            if (for_training && t->options->join_part > 0) it.frames -= it.frames % c->stack;
            it.rows = lin_config_frames_out(c, it.frames);
            const char *why = NULL;
            if (it.frames < 1) why = "it is shorter than a row of the network";
            else if (for_training && it.frames > t->options->max_frames) why = "it is longer than max_frames";
            else if (for_training && lin_ctc_frames_needed(it.labels, it.n_labels) > it.rows)
                why = "CTC has no path: too few frames for its phonemes";
            if (why) {
                leave_out(t, set, i, why);
                continue;
            }
            labels += it.n_labels;
            list->items[list->n] = it;
            list->frames[list->n++] = it.frames;
        }
    }
    if (list->n == 0) return lin_fail(err, LIN_INVALID, "no utterance to %s", for_training ? "train on" : "measure on");
    if (labels == 0)
        return lin_fail(err, LIN_INVALID, "nobody speaks in the sets to %s: they have no phonemes", for_training ? "train on" : "measure on");
    return LIN_OK;
}

// A block of the backend's memory with the n floats at `from`, which are freed; on a CPU the block is `from` itself.
static lin_status place_floats(lin_trainer *t, float *from, size_t n, float **device, lin_error *err)
{
    *device = NULL;
    if (!from) return lin_no_memory(err, "the data's normalisation", n * sizeof *from);
    if (t->ops->on_host) {
        *device = from;
        return LIN_OK;
    }
    lin_status status = t->ops->memory_create(t->exec, n * sizeof *from, (void **)device, err);
    if (status == LIN_OK) t->ops->upload(t->exec, *device, from, n * sizeof *from);
    if (status == LIN_OK) status = t->ops->finish(t->exec, err);
    lin_free(from);
    return status;
}

static lin_status place_norms(lin_trainer *t, const lin_dataset *const *sets, int n_sets, lin_train_list *list, lin_error *err)
{
    const size_t D = (size_t)t->model->config.mel_bins;
    size_t n = 0;
    for (int s = 0; s < n_sets; s++) n += (size_t)lin_dataset_n_speakers(sets[s]);
    if (!t->options->speaker_norm) n = 1;
    float *norms = lin_alloc(n * 2 * D, sizeof *norms), *next = norms;
    if (norms && !t->options->speaker_norm) {
        memcpy(norms, t->model->mean, D * sizeof *norms);
        memcpy(norms + D, t->model->istd, D * sizeof *norms);
    }
    for (int s = 0; norms && t->options->speaker_norm && s < n_sets; s++)
        for (int i = 0; i < lin_dataset_n_speakers(sets[s]); i++, next += 2 * D)
            lin_dataset_speaker_norm(sets[s], i, next, next + D);
    return place_floats(t, norms, n * 2 * D, &list->norms, err);
}

lin_status lin_train_place(lin_trainer *t, const lin_dataset *const *sets, int n_sets, lin_train_list *list, lin_error *err)
{
    const size_t D = (size_t)t->model->config.mel_bins;
    lin_status status = place_norms(t, sets, n_sets, list, err);
    float *steps = lin_alloc((size_t)list->n * 2 * D, sizeof *steps);
    for (int i = 0; steps && i < list->n; i++)
        lin_dataset_steps(list->items[i].set, list->items[i].index, steps + (size_t)i * 2 * D);
    if (status == LIN_OK && steps && list == &t->train) status = lin_train_find_powers(t, list, steps, err);
    if (status == LIN_OK) {
        status = place_floats(t, steps, (size_t)list->n * 2 * D, &list->steps, err);
    } else {
        lin_free(steps);
    }
    if (status != LIN_OK) return status;
    list->blocks = lin_calloc((size_t)n_sets, sizeof *list->blocks);
    if (!list->blocks) return lin_no_memory(err, "the list of sets", (size_t)n_sets * sizeof *list->blocks);
    list->n_blocks = n_sets;
    const float *speakers = list->norms;
    int i = 0;
    for (int s = 0; s < n_sets; s++) {
        size_t bytes;
        const unsigned char *body = lin_dataset_body(sets[s], &bytes), *device = body;
        if (!t->ops->on_host) {
            status = t->ops->memory_create(t->exec, bytes, &list->blocks[s], err);
            if (status != LIN_OK) return status;
            t->ops->upload(t->exec, list->blocks[s], body, bytes);
            device = list->blocks[s];
        }
        for (; i < list->n && list->items[i].set == sets[s]; i++) { // the list is in the order of the sets
            lin_train_item *it = &list->items[i];
            const size_t speaker = t->options->speaker_norm ? (size_t)lin_dataset_speaker(it->set, it->index) : 0;
            it->gather = (lin_gather){.codes = device + (lin_dataset_codes(it->set, it->index) - body),
                                      .steps = list->steps + (size_t)i * 2 * D,
                                      .mean = speakers + speaker * 2 * D,
                                      .istd = speakers + speaker * 2 * D + D};
        }
        if (t->options->speaker_norm) speakers += (size_t)lin_dataset_n_speakers(sets[s]) * 2 * D;
    }
    return t->ops->finish(t->exec, err);
}

void lin_train_list_free(lin_trainer *t, lin_train_list *list)
{
    lin_free(list->items);
    lin_free(list->frames);
    if (t->exec) {
        for (int i = 0; i < list->n_blocks; i++) t->ops->memory_destroy(t->exec, list->blocks[i]);
        t->ops->memory_destroy(t->exec, list->steps);
        t->ops->memory_destroy(t->exec, list->norms);
    }
    lin_free(list->blocks);
    lin_free(list->powers);
}

/* ---- buffers ---------------------------------------------------------------------------------------------------------------- */

static int round_up(int n, int quantum) { return (n + quantum - 1) / quantum * quantum; }

// Sets the pointers of a block into its bytes; returns its size in bytes.
static size_t lay_out(const lin_trainer *t, void *bytes, lin_train_block *block)
{
    lin_arena arena = {.base = bytes, .size = SIZE_MAX / 2};
    const lin_augment_options *augment = &t->options->augment;
    const size_t B = (size_t)t->max_items;
    block->in_offsets = lin_arena_take(&arena, B + 1, sizeof *block->in_offsets);
    block->offsets = lin_arena_take(&arena, B + 1, sizeof *block->offsets);
    block->joined_in = lin_arena_take(&arena, B + 1, sizeof *block->joined_in);
    block->joined = lin_arena_take(&arena, B + 1, sizeof *block->joined);
    block->label_offsets = lin_arena_take(&arena, B + 1, sizeof *block->label_offsets);
    block->labels = lin_arena_take(&arena, (size_t)t->max_labels, sizeof *block->labels);
    block->items = lin_arena_take(&arena, B, sizeof *block->items);
    block->masks = lin_arena_take(&arena, B * (size_t)(augment->freq_masks + augment->time_masks), sizeof *block->masks);
    const size_t heard = t->acoustics ? B : 0;
    block->acoustics = lin_arena_take(&arena, heard, sizeof *block->acoustics);
    block->bins = lin_arena_take(&arena, heard * LIN_ACOUSTICS_ROWS * (size_t)t->model->config.mel_bins, sizeof *block->bins);
    block->key = lin_arena_take(&arena, 2, sizeof *block->key);
    const size_t all = has_parts(t) ? B * (size_t)parts_of(t) + 1 : 0;
    block->all_offsets = lin_arena_take(&arena, all, sizeof *block->all_offsets);
    block->all_label_offsets = lin_arena_take(&arena, all, sizeof *block->all_label_offsets);
    block->scale = lin_arena_take(&arena, 2, sizeof *block->scale);
    block->adam = lin_arena_take(&arena, 2, sizeof *block->adam);
    return arena.used;
}

// The largest batch of any epoch cannot be known in advance, but it has a bound: batch_frames, or one longer utterance.
static void find_bounds(lin_trainer *t)
{
    const lin_config *c = &t->model->config;
    const lin_train_list *lists[] = {&t->train, &t->dev};
    int longest = 1, longest_rows = 1;
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            if (lists[l]->frames[i] > longest) longest = lists[l]->frames[i];
            if (lists[l]->items[i].rows > longest_rows) longest_rows = lists[l]->items[i].rows;
        }
    // of several parts, none has more than its share and half of the utterance at either end
    const int ranks = lin_train_ranks(t), whole = t->options->batch_frames;
    const int cut = ranks > 1 && t->options->join_part <= 0 && whole / ranks < whole - longest;
    const int share = cut ? whole / ranks + longest : whole;
    if (share > longest) longest = share;
    for (int l = 0; l < 2; l++) {
        int shortest = longest;
        double labels_per_frame = 0;
        for (int i = 0; i < lists[l]->n; i++) {
            const lin_train_item *it = &lists[l]->items[i];
            if (it->frames < shortest) shortest = it->frames;
            if (it->n_labels > t->most_labels) t->most_labels = it->n_labels;
            if ((double)it->n_labels / it->frames > labels_per_frame) labels_per_frame = (double)it->n_labels / it->frames;
        }
        const int most = lists[l]->n < longest / shortest ? lists[l]->n : longest / shortest;
        if (most > t->max_items) t->max_items = most;
        const int most_labels = (int)ceil(labels_per_frame * longest) + 1;
        if (most_labels > t->max_labels) t->max_labels = most_labels;
    }
    t->max_frames = longest;
    t->max_rows = longest / c->stack + t->max_items;
    if (t->options->join_part > 0) longest_rows = t->max_rows;
    t->longest_rows = longest_rows;
    if (t->ops->on_host) return;
    // a few tens of shapes in all: batches are nearly full, and the longer the utterances the fewer
    t->row_quantum = round_up(t->max_rows / 32 + 1, 64);
    t->longest_quantum = round_up(longest_rows / 4 + 1, 64);
    t->item_quantum = round_up(t->max_items / 8 + 1, 8);
    t->max_rows = round_up(t->max_rows, t->row_quantum);
    t->longest_rows = round_up(longest_rows > t->row_quantum ? longest_rows : t->row_quantum, t->longest_quantum);
    t->max_frames = t->max_rows * c->stack;
    t->max_items = round_up(t->max_items + 1, t->item_quantum);
}

static lin_status place(lin_trainer *t, void *device, size_t bytes, lin_error *err)
{
    return t->ops->memory_create(t->exec, bytes, device, err);
}

static lin_status place_values(lin_trainer *t, lin_error *err)
{
    const size_t n = t->model->params.n_elements * sizeof(float);
    t->values = t->model->values;
    if (t->ops->on_host) return LIN_OK;
    t->values = NULL;
    lin_status status = place(t, &t->values, n, err);
    if (status == LIN_OK) t->ops->upload(t->exec, t->values, t->model->values, n);
    return status;
}

lin_status lin_train_make_buffers(lin_trainer *t, lin_error *err)
{
    const lin_config *c = &t->model->config;
    find_bounds(t);
    const size_t D = (size_t)c->mel_bins, items = (size_t)t->max_items, logits = (size_t)t->max_rows * (size_t)c->outputs;
    lin_train_block unused; // laid out without memory, to learn its size
    t->block_bytes = lay_out(t, t, &unused);
    t->n_blocks = t->ops->on_host ? 1 : LIN_TRAIN_BLOCKS;
    lin_status status = place_values(t, err);
    if (status == LIN_OK) status = place(t, &t->gradients, t->model->params.n_elements * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->features, (size_t)t->max_frames * D * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->zeros, D * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->ones, D * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->logp, logits * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->dlogits, (size_t)(1 + t->options->n_inner) * logits * sizeof(float), err);
    if (status == LIN_OK) status = place(t, &t->inner_losses, items * sizeof(double), err);
    if (status == LIN_OK) status = place(t, &t->losses, items * (size_t)parts_of(t) * sizeof(double), err);
    if (status == LIN_OK) status = place(t, &t->tally, sizeof *t->tally, err);
    for (int i = 0; i < t->n_blocks && status == LIN_OK; i++)
        status = t->ops->staging_create(t->exec, t->block_bytes, &t->host_bytes[i], err);
    t->device_bytes = t->host_bytes[0];
    if (status == LIN_OK && !t->ops->on_host) status = place(t, &t->device_bytes, t->block_bytes, err);
    if (status != LIN_OK) return status;
    lay_out(t, t->device_bytes, &t->device);
    const float one = 1;
    for (size_t d = 0; d < D; d++) t->ops->upload(t->exec, t->ones + d, &one, sizeof one);
    t->host_losses = lin_calloc(items, sizeof *t->host_losses);
    t->wrong = lin_calloc(items, sizeof *t->wrong);
    t->host_logp = t->logp;
    if (!t->ops->on_host) t->host_logp = lin_alloc(logits, sizeof *t->host_logp);
    if (!t->host_losses || !t->wrong || !t->host_logp)
        return lin_no_memory(err, "a training batch", logits * sizeof *t->host_logp);
    return lin_activations_create(t->ops, t->exec, c, t->max_rows, t->longest_rows, 1, &t->activations, err);
}

void lin_train_free_buffers(lin_trainer *t)
{
    lin_activations_destroy(t->activations);
    lin_graphs_free(&t->graphs, t->ops);
    if (t->exec) {
        const int on_host = t->ops->on_host;
        void *const blocks[] = {on_host ? NULL : t->values, t->gradients, t->features, t->zeros,
                                t->ones,                    t->logp,      t->dlogits,  t->losses,  t->inner_losses,
                                t->tally,                   on_host ? NULL : t->device_bytes};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) t->ops->memory_destroy(t->exec, blocks[i]);
        for (int i = 0; i < t->n_blocks; i++) t->ops->staging_destroy(t->exec, t->host_bytes[i]);
    }
    if (t->ops && !t->ops->on_host) lin_free(t->host_logp);
    lin_free(t->host_losses);
    lin_free(t->wrong);
}

/* ---- batches ---------------------------------------------------------------------------------------------------------------- */

// Masks of the b-th utterance, counted from `first`; returns their number.
static int draw_masks(const lin_trainer *t, const lin_train_block *host, int first, int item)
{
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, LIN_TRAIN_KEY_MASKS), (uint64_t)t->counters.epoch);
    return lin_augment_masks(t->train.items[item].frames, t->model->config.mel_bins, &t->options->augment,
                             lin_random_key(key, (uint64_t)item), host->masks + first);
}

int lin_train_continues(const lin_trainer *t, int item)
{
    if (t->options->join_part <= 0) return 0;
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, LIN_TRAIN_KEY_JOIN), (uint64_t)t->counters.epoch);
    return lin_random_uniform(key, (uint64_t)item) < t->options->join_part;
}

// Rounds the sizes up and adds padding utterances: the first gets all padding rows, with more labels than frames, so that CTC
// gives it neither loss nor gradient.
static void pad(const lin_trainer *t, lin_train_block *host, lin_train_shape *shape)
{
    const int n = shape->B;
    lin_train_shape s = *shape;
    if (t->ops->on_host) return;
    s.rows = round_up(s.rows, t->row_quantum);
    s.in_rows = s.rows * t->model->config.stack;
    s.B = round_up(n + 1, t->item_quantum);
    const int over = s.rows - host->offsets[n];
    s.longest = round_up(over > s.longest ? over : s.longest, t->longest_quantum);
    s.longest_joined = round_up(over > s.longest_joined ? over : s.longest_joined, t->longest_quantum);
    for (int b = n; b < s.B; b++) {
        host->items[b] = (lin_gather){0};
        host->offsets[b + 1] = s.rows;
        host->in_offsets[b + 1] = s.in_rows;
        host->label_offsets[b + 1] = host->label_offsets[b] + (b == n && over > 0 ? over + 1 : 0);
    }
    for (; s.sequences < s.B; s.sequences++) {
        host->joined[s.sequences + 1] = s.rows;
        host->joined_in[s.sequences + 1] = s.in_rows;
    }
    *shape = s;
}

// Fills t's batch with utterances picked[0..n-1] of a list. In training the caller fills the rest of the block.
static lin_train_shape assemble(lin_trainer *t, lin_train_block *host, const lin_train_list *list, const int *picked, int n)
{
    const int for_training = list == &t->train;
    int n_masks = 0;
    lin_train_shape s = {.B = n};
    for (int b = 0; b < n; b++) {
        const lin_train_item *it = &list->items[picked[b]];
        if (b == 0 || !for_training || !lin_train_continues(t, picked[b])) s.sequences++;
        host->in_offsets[b + 1] = host->in_offsets[b] + it->frames;
        host->offsets[b + 1] = host->offsets[b] + it->rows;
        const int n_labels = for_training ? lin_train_labels(t, picked[b]) : it->n_labels;
        host->label_offsets[b + 1] = host->label_offsets[b] + n_labels;
        memcpy(host->labels + host->label_offsets[b], it->labels, (size_t)n_labels * sizeof *host->labels);
        host->items[b] = it->gather;
        if (for_training) lin_train_draw_acoustics(t, host, b, picked[b]);
        host->items[b].first_mask = n_masks;
        host->items[b].n_masks = for_training ? draw_masks(t, host, n_masks, picked[b]) : 0;
        n_masks += host->items[b].n_masks;
        host->joined_in[s.sequences] = host->in_offsets[b + 1];
        host->joined[s.sequences] = host->offsets[b + 1];
        const int joined = host->joined[s.sequences] - host->joined[s.sequences - 1];
        if (it->rows > s.longest) s.longest = it->rows;
        if (joined > s.longest_joined) s.longest_joined = joined;
    }
    s.rows = host->offsets[n];
    s.in_rows = host->in_offsets[n];
    pad(t, host, &s);
    return s;
}

// A block on the host that no operation in progress reads; *number is its own.
static lin_train_block block_to_fill(lin_trainer *t, int *number)
{
    lin_train_block host;
    const int i = *number = (int)(t->filled++ % (unsigned)t->n_blocks);
    t->ops->wait(t->exec, i);
    lay_out(t, t->host_bytes[i], &host);
    host.in_offsets[0] = host.offsets[0] = host.joined_in[0] = host.joined[0] = host.label_offsets[0] = 0;
    return host;
}

static void send(lin_trainer *t, int i)
{
    if (t->ops->on_host) return;
    t->ops->upload(t->exec, t->device_bytes, t->host_bytes[i], t->block_bytes);
    t->ops->fence(t->exec, i);
}

// The utterances: what has features, labels and a loss of its own.
static lin_segments frames_of(const lin_trainer *t, const lin_train_shape *s)
{
    return (lin_segments){.B = s->B, .rows = s->in_rows, .longest = s->in_rows, .offsets = t->device.in_offsets};
}

static lin_segments rows_of(const lin_trainer *t, const lin_train_shape *s)
{
    return (lin_segments){.B = s->B, .rows = s->rows, .longest = s->longest, .offsets = t->device.offsets};
}

// What the network sees: sequences of one or more utterances.
static lin_batch batch_of(lin_trainer *t, const lin_train_shape *s, int for_training)
{
    return (lin_batch){.in = {.B = s->sequences, .rows = s->in_rows, .longest = s->in_rows, .offsets = t->device.joined_in},
                       .out = {.B = s->sequences, .rows = s->rows, .longest = s->longest_joined, .offsets = t->device.joined},
                       .features = t->features,
                       .mean = t->zeros, // already normalised, because augmentation comes after
                       .istd = t->ones,
                       .dropout_key = for_training && t->model->config.dropout > 0 ? t->device.key : NULL,
                       .is_part = for_training && has_parts(t)};
}

/* ---- one step --------------------------------------------------------------------------------------------------------------- */

typedef struct asked {
    lin_trainer *t;
    lin_train_shape shape;
    int all_rows;     // of all parts
    int number, last; // of the batch among those of the step; whether it is the last
    uint64_t skipped; // layers
} asked;

// The CTC losses of t->logp, and their gradients.
static void compute_ctc(lin_trainer *t, double *losses, float *dlogits, const lin_segments *rows, const double *scale)
{
    const lin_train_block *device = &t->device;
    const int V = t->model->config.outputs;
    t->ops->ctc(t->exec, losses, dlogits, t->logp, rows, device->labels, device->label_offsets, t->most_labels, V, scale);
    const double part = t->options->label_smoothing;
    if (part > 0) t->ops->label_smoothing(t->exec, dlogits, t->logp, rows->rows, V, part, scale);
}

// The losses of inner layers, with their gradients in `inner`.
static void compute_inner(lin_trainer *t, lin_batch *batch, const lin_segments *rows, lin_inner *inner)
{
    const int n = t->options->n_inner, V = t->model->config.outputs;
    for (int i = 0; i < n; i++) {
        float *dlogits = t->dlogits + (size_t)(1 + i) * (size_t)t->max_rows * (size_t)V;
        inner[i] = (lin_inner){.layer = t->options->inner_layers[i], .dlogits = dlogits};
        lin_network_inner(t->weights, t->activations, t->exec, batch, inner[i].layer, t->logp);
        compute_ctc(t, t->inner_losses, dlogits, rows, t->device.scale + 1);
    }
    batch->inner = inner;
    batch->n_inner = n;
}

static void compute(void *context)
{
    const asked *a = context;
    lin_trainer *t = a->t;
    const lin_ops *ops = t->ops;
    const lin_config *c = &t->model->config;
    const lin_train_block *device = &t->device;
    lin_inner inner[LIN_TRAIN_INNER];
    const lin_segments frames = frames_of(t, &a->shape), rows = rows_of(t, &a->shape);
    lin_batch batch = batch_of(t, &a->shape, 1);
    batch.skipped = a->skipped;
    batch.layer_done = t->parallel.comm && a->last ? lin_parallel_layer : NULL;
    batch.layer_context = t;
    ops->gather(t->exec, t->features, device->items, device->masks, &frames, c->mel_bins);
    lin_network_forward(t->weights, t->activations, t->exec, &batch, t->logp);
    const int part = lin_train_rank(t) * lin_train_step_batches(t) + a->number;
    double *losses = t->losses + (size_t)part * (size_t)t->max_items;
    compute_ctc(t, losses, t->dlogits, &rows, device->scale);
    compute_inner(t, &batch, &rows, inner);
    if (a->number == 0) ops->zero(t->exec, t->gradients, t->model->params.n_elements * sizeof *t->gradients);
    lin_network_backward(t->weights, t->activations, t->exec, &batch, t->dlogits, t->gradients);
    if (!a->last) return;
    if (!has_parts(t)) {
        ops->tally_losses(t->exec, t->tally, t->losses, &rows, device->label_offsets);
    } else {
        const int places = parts_of(t) * t->max_items;
        const lin_segments all = {.B = places, .rows = a->all_rows, .longest = a->all_rows, .offsets = device->all_offsets};
        if (t->parallel.comm && !lin_parallel_end(t)) return; // the weights stay those of the step before
        ops->tally_losses(t->exec, t->tally, t->losses, &all, device->all_label_offsets);
    }
    lin_optimizer_step(t->optimizer, t->exec, t->values, t->gradients, device->adam, t->tally);
    if (t->optimizer->average) lin_optimizer_average(t->optimizer, t->exec, t->values, t->gradients, device->adam + 1, t->tally);
    lin_weights_pack(t->weights, t->exec);
}

// Where the utterances of all parts are, for the tally: each part has max_items places, and the places without an utterance have
// one label in no frame, so that they do not count. Returns the number of rows.
static int place_parts(const lin_trainer *t, lin_train_block *host, const lin_batches *plan, int from, int to)
{
    const int batches = lin_train_step_batches(t);
    int at = 0;
    host->all_offsets[0] = host->all_label_offsets[0] = 0;
    for (int p = 0; p < parts_of(t); p++) {
        const int i = from + p % batches, first = i < to ? plan->offsets[i] : 0, n = i < to ? plan->offsets[i + 1] - first : 0;
        const int *picked = plan->items + first;
        const lin_train_part part = lin_train_cut(t, &t->train, picked, n, p / batches);
        for (int b = 0; b < t->max_items; b++, at++) {
            const lin_train_item *it = part.from + b < part.to ? &t->train.items[picked[part.from + b]] : NULL;
            host->all_offsets[at + 1] = host->all_offsets[at] + (it ? it->rows : 0);
            host->all_label_offsets[at + 1] = host->all_label_offsets[at] + (it ? lin_train_labels(t, picked[part.from + b]) : 1);
        }
    }
    return host->all_offsets[at];
}

static uint64_t draw_skipped(const lin_trainer *t)
{
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, LIN_TRAIN_KEY_LAYER_DROP), (uint64_t)t->counters.step);
    uint64_t skipped = 0;
    for (int l = 0; l < t->model->config.layers && t->options->layer_drop > 0; l++)
        if (lin_random_uniform(key, (uint64_t)l) < t->options->layer_drop) skipped |= (uint64_t)1 << l;
    return skipped;
}

// Fills a block with this process's part of a batch. *before: rows of the step so far; those of this batch are added.
static lin_train_shape fill(lin_trainer *t, lin_train_block *host, const int *picked, int n, int *before)
{
    const lin_train_part part = lin_train_cut(t, &t->train, picked, n, lin_train_rank(t));
    const lin_train_shape shape = assemble(t, host, &t->train, picked + part.from, part.to - part.from);
    host->key[1] = (uint64_t)*before;
    for (int b = 0; b < n; b++) {
        const int rows = t->train.items[picked[b]].rows;
        if (b < part.from) host->key[1] += (uint64_t)rows;
        *before += rows;
    }
    return shape;
}

// The processes' batches have different shapes, and a graph of one would meet operations outside of graphs of another. With layers
// left out, there would be too many graphs.
static void launch(lin_trainer *t, asked *a)
{
    const int key[LIN_GRAPH_KEY] = {a->shape.B, a->shape.rows, a->shape.longest_joined, a->shape.longest, 2 * a->number + a->last};
    if (t->parallel.comm || a->skipped) compute(a);
    else lin_graphs_run(&t->graphs, t->ops, t->exec, key, compute, a);
}

void lin_train_step(lin_trainer *t, const lin_batches *plan, int from, int to, double lr)
{
    const long long step = ++t->optimizer->step;
    const uint64_t key = lin_random_key(lin_random_key(t->options->seed, LIN_TRAIN_KEY_DROPOUT), (uint64_t)t->counters.step) | 1,
                   skipped = draw_skipped(t);
    const int n_inner = t->options->n_inner;
    const double inner = n_inner ? t->options->inner_weight : 0;
    int rows = 0, before = 0;
    for (int i = plan->offsets[from]; i < plan->offsets[to]; i++) {
        const lin_train_item *it = &t->train.items[plan->items[i]];
        rows += it->rows;
        t->counters.label_sum += lin_train_labels(t, plan->items[i]);
        t->counters.frame_sum += it->frames;
    }
    lin_parallel_begin(t);
    for (int k = from; k < to; k++) {
        const int first = plan->offsets[k];
        int block;
        lin_train_block host = block_to_fill(t, &block);
        asked a = {.t = t, .number = k - from, .last = k + 1 == to, .skipped = skipped};
        a.shape = fill(t, &host, plan->items + first, plan->offsets[k + 1] - first, &before);
        if (has_parts(t)) a.all_rows = place_parts(t, &host, plan, from, to);
        host.key[0] = key;
        host.scale[0] = (1.0 - inner) / rows; // per frame, so that batches of long and of short utterances weigh the same
        host.scale[1] = n_inner ? inner / n_inner / rows : 0;
        host.adam[0] = lin_optimizer_scalars(&t->optimizer->options, step, lr);
        host.adam[1] = lin_optimizer_average_scalars(&t->optimizer->options, step);
        send(t, block);
        launch(t, &a);
    }
}

/* ---- measuring -------------------------------------------------------------------------------------------------------------- */

typedef struct measured {
    lin_trainer *t;
    const int *picked;
    const lin_train_block *host;
} measured;

static void count_wrong(void *context, int piece, int thread)
{
    (void)thread;
    const measured *m = context;
    lin_trainer *t = m->t;
    const lin_train_item *it = &t->dev.items[m->picked[piece]];
    const int V = t->model->config.outputs;
    t->wrong[piece] =
        lin_edit_greedy(t->host_logp + (size_t)m->host->offsets[piece] * (size_t)V, it->rows, V, it->labels, it->n_labels);
}

lin_status lin_train_measure(lin_trainer *t, const int *picked, int n, lin_error *err)
{
    const lin_ops *ops = t->ops;
    const lin_config *c = &t->model->config;
    int block;
    lin_train_block host = block_to_fill(t, &block);
    const lin_train_shape shape = assemble(t, &host, &t->dev, picked, n);
    send(t, block);
    const lin_segments frames = frames_of(t, &shape), rows = rows_of(t, &shape);
    const lin_batch batch = batch_of(t, &shape, 0);
    ops->gather(t->exec, t->features, t->device.items, t->device.masks, &frames, c->mel_bins);
    lin_network_forward(t->averaged ? t->averaged : t->weights, t->activations, t->exec, &batch, t->logp);
    ops->ctc(t->exec, t->losses, NULL, t->logp, &rows, t->device.labels, t->device.label_offsets, t->most_labels, c->outputs, NULL);
    ops->download(t->exec, t->host_losses, t->losses, (size_t)n * sizeof *t->losses);
    if (!ops->on_host)
        ops->download(t->exec, t->host_logp, t->logp, (size_t)host.offsets[n] * (size_t)c->outputs * sizeof *t->logp);
    lin_status status = ops->finish(t->exec, err);
    measured m = {t, picked, &host};
    if (status == LIN_OK) lin_pool_run(t->pool, n, count_wrong, &m);
    return status;
}
