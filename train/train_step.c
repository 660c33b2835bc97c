// train_step.c - the buffers of a run, its batches, and one step. See train.h.
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "kernels/acoustics.h"
#include "lexicon/ngram.h"
#include "linnet/find.h"
#include "train/score/edit.h"
#include "train/train_internal.h"
#include "train/voices.h"

/* ---- the trigram of mmi ---------------------------------------------------------------------------------------------------- */

// Fills the row of probabilities of all labels after a and b, in this state of the model. Returns the smallest.
static float fill_row(const lin_ngram *lm, lin_ngram_state state, const int *words, int V, int a, int b, float *block)
{
    const size_t n = (size_t)V, S = n * n, row = (size_t)b * n + (size_t)a;
    float least = block[2 * S * n + S + row] = expf(lin_ngram_end(lm, state));
    lin_ngram_state unused;
    for (int c = 1; c < V; c++) {
        const float p = expf(lin_ngram_score(lm, state, words[c], &unused));
        least = fminf(least, p);
        if (c == b) block[2 * S * n + row] = p;
        else block[row * n + (size_t)c] = block[S * n + ((size_t)b * n + (size_t)c) * n + (size_t)a] = p;
    }
    return least;
}

static float fill_trigrams(const lin_ngram *lm, const int *words, int V, float *block)
{
    const lin_ngram_state begin = lin_ngram_begin(lm), empty = LIN_NGRAM_EMPTY;
    lin_ngram_state first, second;
    float least = fill_row(lm, begin, words, V, 0, 0, block);
    for (int a = 0; a < V; a++) {
        if (a) lin_ngram_score(lm, empty, words[a], &first);
        for (int b = 1; b < V; b++) {
            lin_ngram_score(lm, a ? first : begin, words[b], &second);
            least = fminf(least, fill_row(lm, second, words, V, a, b, block));
        }
    }
    return least;
}

lin_status lin_trigrams_open(const char *given, const char *phones, int V, float **block, lin_error *err)
{
    lin_ngram *lm = NULL;
    lin_symbols names;
    char path[4096];
    int *words = NULL;
    *block = NULL;
    LIN_TRY(lin_find_lm(NULL, given, path, sizeof path, err));
    if (V > LIN_TRIGRAMS_OUTPUTS)
        return lin_fail(err, LIN_UNSUPPORTED, "mmi is for at most %d phones, and the network has %d", LIN_TRIGRAMS_OUTPUTS - 1,
                        V - 1);
    lin_status status = lin_phones_split(phones, &names, err);
    if (status == LIN_OK) status = lin_ngram_open(path, &lm, err);
    if (status == LIN_OK && !(words = lin_calloc((size_t)V, sizeof *words))) status = lin_no_memory(err, "phones", sizeof *words);
    for (int v = 1; v < V && status == LIN_OK; v++)
        if ((words[v] = lin_ngram_find(lm, lin_symbols_text(&names, v), names.items[v].n)) < 0)
            status = lin_fail(err, LIN_MISMATCH, "%s has no phone %s, which the network has", path, lin_symbols_text(&names, v));
    if (status == LIN_OK && !(*block = lin_calloc(lin_trigrams_count(V), sizeof **block)))
        status = lin_no_memory(err, "a trigram", lin_trigrams_count(V) * sizeof **block);
    // Smaller probabilities would underflow in float.
    if (status == LIN_OK && fill_trigrams(lm, words, V, *block) < FLT_MIN) {
        status = lin_fail(err, LIN_UNSUPPORTED, "%s: a phone or the end has probability 0 after two others, and mmi needs "
                          "probabilities above 1e-38; make a smoothed model (linnet ngram count)", path);
        lin_free(*block);
        *block = NULL;
    }
    lin_free(words);
    lin_symbols_free(&names);
    lin_ngram_destroy(lm);
    return status;
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

static int round_up(int n, int quantum) { return (n + quantum - 1) / quantum * quantum; }

// Sets the pointers of a block into its bytes; returns its size in bytes.
static size_t lay_out(const lin_train_device *v, const lin_train_data *d, void *bytes, lin_train_block *block)
{
    lin_arena arena = {.base = bytes, .size = SIZE_MAX / 2};
    const lin_augment_options *augment = &d->options->augment;
    const size_t B = (size_t)v->most.items, heard = d->acoustics ? B : 0, all = B * (size_t)v->parts + 1;
    block->in_offsets = lin_arena_take(&arena, B + 1, sizeof *block->in_offsets);
    block->offsets = lin_arena_take(&arena, B + 1, sizeof *block->offsets);
    block->joined_in = lin_arena_take(&arena, B + 1, sizeof *block->joined_in);
    block->joined = lin_arena_take(&arena, B + 1, sizeof *block->joined);
    block->label_offsets = lin_arena_take(&arena, B + 1, sizeof *block->label_offsets);
    block->labels = lin_arena_take(&arena, (size_t)v->most.labels, sizeof *block->labels);
    block->items = lin_arena_take(&arena, B, sizeof *block->items);
    block->masks = lin_arena_take(&arena, B * (size_t)(augment->freq_masks + augment->time_masks), sizeof *block->masks);
    block->acoustics = lin_arena_take(&arena, heard, sizeof *block->acoustics);
    block->bins = lin_arena_take(&arena, heard * LIN_ACOUSTICS_ROWS * (size_t)d->model->config.mel_bins, sizeof *block->bins);
    block->key = lin_arena_take(&arena, 2, sizeof *block->key);
    block->all_offsets = lin_arena_take(&arena, all, sizeof *block->all_offsets);
    block->all_label_offsets = lin_arena_take(&arena, all, sizeof *block->all_label_offsets);
    block->scale = lin_arena_take(&arena, 2, sizeof *block->scale);
    block->adam = lin_arena_take(&arena, 2, sizeof *block->adam);
    return arena.used;
}

// The largest batch of any epoch cannot be known in advance, but it has a bound: batch_frames, or one longer utterance.
static lin_train_sizes find_bounds(const lin_train_data *d, int ranks, int on_host)
{
    const lin_config *c = &d->model->config;
    const lin_train_options *o = d->options;
    const lin_train_list *lists[] = {&d->train, &d->dev};
    lin_train_sizes s = {0};
    int longest = 1;
    const double tempo[] = {o->augment.tempo, 0};
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->n; i++) {
            const int frames = lin_train_frames_at(d, &lists[l]->items[i], 1 - tempo[l]);
            if (frames > longest) longest = frames;
        }
    const int longest_rows = lin_config_frames_out(c, longest);
    // with several parts, each has at most its share plus half of an utterance at either end
    const int whole = o->batch_frames, cut = ranks > 1 && o->join_part <= 0 && whole / ranks < whole - longest;
    const int share = cut ? whole / ranks + longest : whole;
    if (share > longest) longest = share;
    for (int l = 0; l < 2; l++) {
        int shortest = longest;
        double labels_per_frame = 0;
        for (int i = 0; i < lists[l]->n; i++) {
            const lin_train_item *it = &lists[l]->items[i];
            const int frames = c->voice ? LIN_VOICE_PIECE_LEAST : lin_train_frames_at(d, it, 1 + tempo[l]);
            if (frames < shortest) shortest = frames;
            if (it->n_labels > s.labels_of_one) s.labels_of_one = it->n_labels;
            labels_per_frame = fmax(labels_per_frame, (double)it->n_labels / frames);
        }
        const int most = lists[l]->n < longest / shortest ? lists[l]->n : longest / shortest;
        const int most_labels = (int)ceil(labels_per_frame * longest) + 1;
        if (most > s.items) s.items = most;
        if (most_labels > s.labels) s.labels = most_labels;
    }
    s.frames = longest;
    s.rows = longest / c->stack + s.items;
    s.longest_rows = o->join_part > 0 ? s.rows : longest_rows;
    if (on_host) return s;
    // gives a few tens of shapes in all, because batches are nearly full
    s.row_quantum = round_up(s.rows / 32 + 1, 64);
    s.longest_quantum = round_up(s.longest_rows / 4 + 1, 64);
    s.item_quantum = round_up(s.items / 8 + 1, 8);
    s.rows = round_up(s.rows, s.row_quantum);
    s.longest_rows = round_up(s.longest_rows > s.row_quantum ? s.longest_rows : s.row_quantum, s.longest_quantum);
    s.frames = s.rows * c->stack;
    s.items = round_up(s.items + 1, s.item_quantum);
    if (c->tokens) s.labels = s.rows; // those without an utterance have no target
    return s;
}

// Logits per row. A network of voices has V cosines per utterance, which has several rows; its vector may need more room.
static size_t logits_of(const lin_config *c) { return (size_t)(c->voice > c->outputs ? c->voice : c->outputs); }

// A buffer in the backend's memory, by the address of its pointer. On a CPU the last two are the host's.
typedef struct buffer {
    void *at;
    size_t bytes;
} buffer;
enum { BUFFERS = 12 };

static int list_buffers(lin_train_device *v, const lin_train_data *d, buffer list[BUFFERS])
{
    const size_t D = (size_t)d->model->config.mel_bins, items = (size_t)v->most.items, weights = d->model->params.n_elements,
                 logits = (size_t)v->most.rows * logits_of(&d->model->config),
                 losses = 1 + (size_t)d->options->n_inner + (size_t)d->model->config.search,
                 trigrams = lin_trigrams_count(d->model->config.outputs);
    const buffer all[BUFFERS] = {{&v->gradients, weights * sizeof(float)},
                                 {&v->features, (size_t)v->most.frames * D * sizeof(float)},
                                 {&v->zeros, D * sizeof(float)},
                                 {&v->ones, D * sizeof(float)},
                                 {&v->logp, logits * sizeof(float)},
                                 {&v->dlogits, losses * logits * sizeof(float)},
                                 {&v->inner_losses, items * sizeof(double)},
                                 {&v->losses, items * (size_t)v->parts * sizeof(double)},
                                 {&v->trigram_block, d->options->mmi > 0 ? trigrams * sizeof(float) : 0},
                                 {&v->tally, sizeof *v->tally},
                                 {&v->values, weights * sizeof(float)},
                                 {&v->device_bytes, v->block_bytes}};
    memcpy(list, all, sizeof all);
    return v->ops->on_host ? BUFFERS - 2 : BUFFERS;
}

static lin_status place_trigrams(lin_train_device *v, const lin_train_options *o, const lin_model *model, lin_error *err)
{
    const int V = model->config.outputs;
    float *block;
    LIN_TRY(lin_trigrams_open(o->mmi_lm, model->phones, V, &block, err));
    v->ops->upload(v->exec, v->trigram_block, block, lin_trigrams_count(V) * sizeof *block);
    v->trigrams = lin_trigrams_at(v->trigram_block, V);
    lin_free(block);
    return v->ops->finish(v->exec, err);
}

lin_status lin_train_device_create(lin_train_device *v, const lin_train_data *d, int ranks, lin_model *model,
                                   const lin_optimizer *optimizer, lin_error *err)
{
    const lin_config *c = &model->config;
    const lin_params *params = &model->params;
    const lin_ops *ops = v->ops;
    lin_train_block unused; // laid out without memory, to learn its size
    buffer list[BUFFERS];
    v->most = find_bounds(d, ranks, ops->on_host);
    v->parts = ranks * lin_train_step_batches(d->options);
    v->block_bytes = lay_out(v, d, v, &unused);
    v->n_blocks = ops->on_host ? 1 : LIN_TRAIN_BLOCKS;
    const int n = list_buffers(v, d, list);
    for (int i = 0; i < n; i++) LIN_TRY(ops->memory_create(v->exec, list[i].bytes, list[i].at, err));
    for (int i = 0; i < v->n_blocks; i++) LIN_TRY(ops->staging_create(v->exec, v->block_bytes, &v->host_bytes[i], err));
    if (ops->on_host) {
        v->values = model->values;
        v->device_bytes = v->host_bytes[0];
    } else ops->upload(v->exec, v->values, model->values, params->n_elements * sizeof(float));
    lay_out(v, d, v->device_bytes, &v->block);
    if (d->options->mmi > 0) LIN_TRY(place_trigrams(v, d->options, model, err));
    const float one = 1;
    for (int i = 0; i < c->mel_bins; i++) ops->upload(v->exec, v->ones + i, &one, sizeof one);
    const size_t logits = (size_t)v->most.rows * logits_of(c);
    v->host_losses = lin_calloc((size_t)v->most.items, sizeof *v->host_losses);
    v->host_logp = ops->on_host ? v->logp : lin_alloc(logits, sizeof *v->host_logp);
    if (!v->host_losses || !v->host_logp) return lin_no_memory(err, "a training batch", logits * sizeof *v->host_logp);
    LIN_TRY(lin_activations_create(ops, v->exec, c, v->most.rows, v->most.longest_rows, 1, &v->activations, err));
    LIN_TRY(lin_weights_create(ops, v->exec, c, params, v->values, NULL, 1, &v->weights, err));
    if (!optimizer->average) return LIN_OK;
    const float *average = optimizer->device + 2 * params->n_elements;
    return lin_weights_create(ops, v->exec, c, params, average, NULL, 0, &v->averaged, err);
}

void lin_train_device_free(lin_train_device *v, const lin_train_data *d)
{
    buffer list[BUFFERS];
    lin_weights_destroy(v->weights);
    lin_weights_destroy(v->averaged);
    lin_activations_destroy(v->activations);
    lin_graphs_free(&v->graphs, v->ops);
    for (int i = v->exec ? list_buffers(v, d, list) : 0; i-- > 0;) {
        void *block;
        memcpy(&block, list[i].at, sizeof block);
        v->ops->memory_destroy(v->exec, block);
    }
    for (int i = 0; i < v->n_blocks; i++) v->ops->staging_destroy(v->exec, v->host_bytes[i]);
    if (v->ops && !v->ops->on_host) lin_free(v->host_logp);
    lin_free(v->host_losses);
}

/* ---- batches --------------------------------------------------------------------------------------------------------------- */

// Rounds the sizes up and adds padding utterances: the first gets all padding rows, with more labels than frames, so that CTC
// gives it neither loss nor gradient.
static void pad(const lin_train_device *v, const lin_config *c, lin_train_block *host, lin_train_shape *shape)
{
    const int n = shape->B;
    lin_train_shape s = *shape;
    if (v->ops->on_host) return;
    s.rows = round_up(s.rows, v->most.row_quantum);
    s.in_rows = s.rows * c->stack;
    s.B = round_up(n + 1, v->most.item_quantum);
    for (int i = host->offsets[n]; i < s.rows && c->tokens; i++) host->labels[i] = -1;
    const int over = s.rows - host->offsets[n];
    s.longest = round_up(over > s.longest ? over : s.longest, v->most.longest_quantum);
    s.longest_joined = round_up(over > s.longest_joined ? over : s.longest_joined, v->most.longest_quantum);
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

// Draws acoustics and masks of the b-th utterance of a batch; *n_masks counts the batch's masks.
static void draw(const lin_train_device *v, const lin_train_data *d, lin_train_block *host, int b, int item, int *n_masks)
{
    lin_gather *to = &host->items[b];
    if (d->acoustics) {
        const size_t row = (size_t)b * LIN_ACOUSTICS_ROWS * (size_t)d->model->config.mel_bins;
        const int heard = lin_train_draw_acoustics(d, item, &host->acoustics[b], host->bins + row);
        if (heard) host->acoustics[b].bins = v->block.bins + row, to->acoustics = v->block.acoustics + b;
    }
    to->first_mask = *n_masks;
    to->n_masks = lin_train_draw_masks(d, item, host->masks + *n_masks);
    *n_masks += to->n_masks;
}

// Fills a block with utterances picked[0..n-1] of a list. In training the caller fills the rest of it.
static lin_train_shape assemble(const lin_train_device *v, const lin_train_data *d, lin_train_block *host,
                                const lin_train_list *list, const int *picked, int n)
{
    const int for_training = list == &d->train;
    int n_masks = 0;
    lin_train_shape s = {.B = n};
    for (int b = 0; b < n; b++) {
        const lin_train_item *it = &list->items[picked[b]];
        const int silent = for_training && !d->model->config.tokens && !lin_train_labels(d, picked[b]);
        const int n_labels = silent ? 0 : it->n_labels; // every token has one, even without a target
        if (b == 0 || !for_training || !lin_train_continues(d, picked[b])) s.sequences++;
        host->in_offsets[b + 1] = host->in_offsets[b] + it->frames;
        host->offsets[b + 1] = host->offsets[b] + it->rows;
        host->label_offsets[b + 1] = host->label_offsets[b] + n_labels;
        memcpy(host->labels + host->label_offsets[b], it->labels, (size_t)n_labels * sizeof *host->labels);
        host->items[b] = it->gather;
        host->items[b].codes += (size_t)it->first * (size_t)d->model->config.mel_bins;
        if (for_training) draw(v, d, host, b, picked[b], &n_masks);
        host->joined_in[s.sequences] = host->in_offsets[b + 1];
        host->joined[s.sequences] = host->offsets[b + 1];
        const int joined = host->joined[s.sequences] - host->joined[s.sequences - 1];
        if (it->rows > s.longest) s.longest = it->rows;
        if (joined > s.longest_joined) s.longest_joined = joined;
    }
    s.rows = host->offsets[n];
    s.in_rows = host->in_offsets[n];
    assert(n <= v->most.items && s.in_rows <= v->most.frames && s.rows <= v->most.rows);
    assert(s.longest_joined <= v->most.longest_rows && host->label_offsets[n] <= v->most.labels);
    pad(v, &d->model->config, host, &s);
    return s;
}

// A block on the host that no operation in progress reads; *number: its number.
static lin_train_block block_to_fill(lin_train_device *v, const lin_train_data *d, int *number)
{
    lin_train_block host;
    const int i = *number = (int)(v->filled++ % (unsigned)v->n_blocks);
    v->ops->wait(v->exec, i);
    lay_out(v, d, v->host_bytes[i], &host);
    host.in_offsets[0] = host.offsets[0] = host.joined_in[0] = host.joined[0] = host.label_offsets[0] = 0;
    return host;
}

static void send(lin_train_device *v, int i)
{
    if (v->ops->on_host) return;
    v->ops->upload(v->exec, v->device_bytes, v->host_bytes[i], v->block_bytes);
    v->ops->fence(v->exec, i);
}

// Gathers the features of a batch. *rows: the rows of each utterance, for its labels and loss. Returns the network's input:
// sequences of one or more utterances.
static lin_batch gather(lin_train_device *v, const lin_train_shape *s, int mel_bins, lin_segments *rows)
{
    const lin_train_block *block = &v->block;
    const lin_segments frames = {.B = s->B, .rows = s->in_rows, .longest = s->in_rows, .offsets = block->in_offsets};
    *rows = (lin_segments){.B = s->B, .rows = s->rows, .longest = s->longest, .offsets = block->offsets};
    v->ops->gather(v->exec, v->features, block->items, block->masks, &frames, mel_bins);
    return (lin_batch){.in = {.B = s->sequences, .rows = s->in_rows, .longest = s->in_rows, .offsets = block->joined_in},
                       .out = {.B = s->sequences, .rows = s->rows, .longest = s->longest_joined, .offsets = block->joined},
                       .features = v->features,
                       .mean = v->zeros, // already normalised, because augmentation comes after
                       .istd = v->ones};
}

/* ---- one step -------------------------------------------------------------------------------------------------------------- */

typedef struct asked {
    lin_train_run *run;
    lin_train_shape shape;
    int number, last; // of the batch among those of the step; whether it is the last
} asked;

// The losses of v->logp, and their gradients: CTC, or of each token's target.
static void compute_loss(lin_train_device *v, double *losses, float *dlogits, const lin_segments *rows, const lin_config *c,
                         const double *scale)
{
    const lin_train_block *block = &v->block;
    const int V = c->outputs;
    if (c->mixture) {
        v->ops->mixture(v->exec, losses, dlogits, v->logp, rows, block->labels, c->mixture, scale);
        return;
    }
    if (c->tokens) {
        v->ops->cross_entropy(v->exec, losses, dlogits, v->logp, rows, block->labels, V, scale);
        return;
    }
    v->ops->ctc(v->exec, losses, dlogits, v->logp, rows, block->labels, block->label_offsets, v->most.labels_of_one, V, scale);
}

static void compute(void *context)
{
    const asked *a = context;
    lin_train_run *r = a->run;
    lin_train_device *v = &r->device;
    const lin_train_options *o = r->options;
    const lin_ops *ops = v->ops;
    const lin_config *c = &r->model->config;
    lin_inner inner[LIN_TRAIN_INNER];
    lin_segments rows;
    lin_batch batch = gather(v, &a->shape, c->mel_bins, &rows);
    batch.dropout_key = c->dropout > 0 ? v->block.key : NULL;
    batch.is_part = 1;
    batch.layer_done = r->parallel.comm && a->last ? lin_parallel_layer : NULL;
    batch.layer_context = &r->parallel;
    batch.inner = inner;
    batch.n_inner = o->n_inner;
    lin_network_forward(v->weights, v->activations, v->exec, &batch, v->logp);
    const int part = lin_train_rank(&r->parallel) * lin_train_step_batches(o) + a->number;
    double *losses = v->losses + (size_t)part * (size_t)v->most.items;
    if (c->voice) {
        lin_network_voices(v->weights, v->activations, v->exec, &batch, v->logp);
        lin_voice_loss(losses, v->dlogits, v->logp, v->block.labels, rows.B, c->outputs, *v->block.scale);
    } else {
        compute_loss(v, losses, v->dlogits, &rows, c, v->block.scale);
    }
    float *compared = v->dlogits; // of the output that is trained with mmi
    if (c->search) {
        batch.d_search = compared += (size_t)(1 + o->n_inner) * (size_t)v->most.rows * (size_t)c->outputs;
        lin_network_search(v->weights, v->activations, v->exec, &batch, v->logp);
        compute_loss(v, v->inner_losses, compared, &rows, c, v->block.scale);
    }
    if (o->mmi > 0)
        ops->denominator(v->exec, v->inner_losses, losses, compared, v->logp, &rows, v->block.label_offsets, &v->trigrams,
                         c->outputs, o->mmi, v->block.scale);
    for (int i = 0; i < o->n_inner; i++) {
        float *dlogits = v->dlogits + (size_t)(1 + i) * (size_t)v->most.rows * (size_t)c->outputs;
        inner[i] = (lin_inner){.layer = o->inner_layers[i], .dlogits = dlogits};
        lin_network_inner(v->weights, v->activations, v->exec, &batch, inner[i].layer, v->logp);
        compute_loss(v, v->inner_losses, dlogits, &rows, c, v->block.scale + 1);
    }
    if (a->number == 0) ops->zero(v->exec, v->gradients, r->model->params.n_elements * sizeof *v->gradients);
    lin_network_backward(v->weights, v->activations, v->exec, &batch, v->dlogits, v->gradients);
    if (!a->last) return;
    const lin_segments all = {.B = v->parts * v->most.items, .offsets = v->block.all_offsets};
    const size_t own = (size_t)(lin_train_step_batches(o) * v->most.items) * sizeof *v->losses;
    if (r->parallel.comm && !lin_parallel_end(&r->parallel, v->losses, own)) return; // the weights stay those of the step before
    ops->tally_losses(v->exec, v->tally, v->losses, &all, v->block.all_label_offsets);
    lin_optimizer_step(&r->optimizer, v->exec, v->values, v->gradients, v->block.adam, v->tally);
    if (r->optimizer.average)
        lin_optimizer_average(&r->optimizer, v->exec, v->values, v->gradients, v->block.adam + 1, v->tally);
    lin_weights_pack(v->weights, v->exec);
}

// Offsets of the utterances of all parts, for the tally. Each part has most.items entries; an unused entry has no frame and one
// label, so it does not count.
static void place_parts(const lin_train_run *r, lin_train_block *host, const lin_batches *plan, int from, int to)
{
    const lin_train_data *d = &r->data;
    const int batches = lin_train_step_batches(r->options);
    int at = 0;
    host->all_offsets[0] = host->all_label_offsets[0] = 0;
    for (int p = 0; p < r->device.parts; p++) {
        const int i = from + p % batches, first = i < to ? plan->offsets[i] : 0, n = i < to ? plan->offsets[i + 1] - first : 0;
        const int *picked = plan->items + first;
        const lin_train_part part = lin_train_cut(d, picked, n, p / batches, lin_train_ranks(&r->parallel));
        for (int b = 0; b < r->device.most.items; b++, at++) {
            const int used = part.from + b < part.to, item = used ? picked[part.from + b] : 0;
            host->all_offsets[at + 1] = host->all_offsets[at] + (used ? d->train.items[item].rows : 0);
            host->all_label_offsets[at + 1] = host->all_label_offsets[at] + (used ? lin_train_labels(d, item) : 1);
        }
    }
}

// Fills a block with this process's part of a batch. *before: rows of the step so far; those of this batch are added.
static lin_train_shape fill(lin_train_run *r, lin_train_block *host, const int *picked, int n, int *before)
{
    const lin_train_list *list = &r->data.train;
    const lin_train_part part = lin_train_cut(&r->data, picked, n, lin_train_rank(&r->parallel), lin_train_ranks(&r->parallel));
    const lin_train_shape shape = assemble(&r->device, &r->data, host, list, picked + part.from, part.to - part.from);
    host->key[1] = (uint64_t)*before;
    for (int b = 0; b < n; b++) {
        const int rows = list->items[picked[b]].rows;
        if (b < part.from) host->key[1] += (uint64_t)rows;
        *before += rows;
    }
    return shape;
}

// No graphs with several processes, whose batches have different shapes: one would replay a graph while another runs operations
// directly.
static void launch(lin_train_run *r, asked *a)
{
    const int key[LIN_GRAPH_KEY] = {a->shape.B, a->shape.rows, a->shape.longest_joined, a->shape.longest,
                                    2 * a->number + a->last};
    if (r->parallel.comm) compute(a);
    else lin_graphs_run(&r->device.graphs, r->device.ops, r->device.exec, key, compute, a);
}

void lin_train_step(lin_train_run *r, const lin_batches *plan, int from, int to, double lr)
{
    const lin_train_options *o = r->options;
    const long long step = ++r->optimizer.step;
    const uint64_t key = lin_random_key(lin_random_key(o->seed, LIN_TRAIN_KEY_DROPOUT), (uint64_t)r->counters.step) | 1;
    const double inner = o->n_inner ? o->inner_weight : 0;
    int rows = 0, before = 0;
    long long labels = 0;
    for (int i = plan->offsets[from]; i < plan->offsets[to]; i++) {
        const lin_train_item *it = &r->data.train.items[plan->items[i]];
        rows += it->rows;
        labels += lin_train_labels(&r->data, plan->items[i]);
        r->counters.frame_sum += it->frames;
    }
    r->counters.label_sum += labels;
    // mean over frames, so that batches of long and of short utterances weigh the same; over targets of tokens, pieces of voices
    const double each = 1.0 / (r->model->config.tokens || r->model->config.voice ? (double)(labels ? labels : 1) : rows);
    r->parallel.n_started = 0;
    r->parallel.status = LIN_OK;
    for (int k = from; k < to; k++) {
        const int first = plan->offsets[k];
        int block;
        lin_train_block host = block_to_fill(&r->device, &r->data, &block);
        asked a = {.run = r, .number = k - from, .last = k + 1 == to};
        a.shape = fill(r, &host, plan->items + first, plan->offsets[k + 1] - first, &before);
        place_parts(r, &host, plan, from, to);
        host.key[0] = key;
        host.scale[0] = (1.0 - inner) * each;
        host.scale[1] = o->n_inner ? inner / o->n_inner * each : 0;
        host.adam[0] = lin_optimizer_scalars(&o->optimizer, step, lr);
        host.adam[1] = lin_optimizer_average_scalars(&o->optimizer, step);
        send(&r->device, block);
        launch(r, &a);
    }
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------- */

// The measurement of an utterance of the development list; loss -1: not measured here.
typedef struct measured {
    double loss;
    long long wrong;
} measured;

typedef struct measuring {
    const lin_train_run *run;
    const int *picked, *offsets;
    measured *of;
} measuring;

// Number of tokens whose target is not the most probable one; 0 for mixtures.
static long long wrong_tokens(const float *logp, const lin_train_item *it, const lin_config *c)
{
    long long wrong = 0;
    for (int r = 0; r < it->rows && !c->mixture; r++, logp += c->outputs) {
        int best = 0;
        for (int v = 1; v < c->outputs; v++)
            if (logp[v] > logp[best]) best = v;
        wrong += it->labels[r] >= 0 && it->labels[r] != best;
    }
    return wrong;
}

static void count_wrong(void *context, int b, int thread)
{
    (void)thread;
    const measuring *m = context;
    const lin_train_item *it = &m->run->data.dev.items[m->picked[b]];
    const lin_config *c = &m->run->model->config;
    const float *logp = m->run->device.host_logp + (size_t)m->offsets[b] * (size_t)c->outputs;
    m->of[b] =
        (measured){m->run->device.host_losses[b],
                   c->tokens ? wrong_tokens(logp, it, c) : lin_edit_greedy(logp, it->rows, c->outputs, it->labels, it->n_labels)};
}

// Computes the network's output for utterances of the development list, in v->logp.
static lin_train_block forward_batch(lin_train_run *r, const int *picked, int n, lin_segments *rows)
{
    lin_train_device *v = &r->device;
    int block;
    lin_train_block host = block_to_fill(v, &r->data, &block);
    const lin_train_shape shape = assemble(v, &r->data, &host, &r->data.dev, picked, n);
    send(v, block);
    const lin_batch batch = gather(v, &shape, r->model->config.mel_bins, rows);
    lin_network_forward(v->averaged ? v->averaged : v->weights, v->activations, v->exec, &batch, v->logp);
    return host;
}

static lin_status measure_batch(lin_train_run *r, const int *picked, int n, measured *of, lin_error *err)
{
    lin_train_device *v = &r->device;
    const lin_ops *ops = v->ops;
    const lin_config *c = &r->model->config;
    lin_segments rows;
    const lin_train_block host = forward_batch(r, picked, n, &rows);
    compute_loss(v, v->losses, NULL, &rows, c, NULL);
    ops->download(v->exec, v->host_losses, v->losses, (size_t)n * sizeof *v->losses);
    if (!ops->on_host)
        ops->download(v->exec, v->host_logp, v->logp, (size_t)host.offsets[n] * (size_t)c->outputs * sizeof *v->logp);
    lin_status status = ops->finish(v->exec, err);
    measuring m = {r, picked, host.offsets, of};
    if (status == LIN_OK) lin_pool_run(r->device.pool, n, count_wrong, &m);
    return status;
}

// Fills all [ranks, dev.n]: each process measures the utterances of its batches, then all exchange theirs.
static lin_status measure(lin_train_run *r, const lin_batches *plan, measured *all, lin_error *err)
{
    const int ranks = lin_train_ranks(&r->parallel), rank = lin_train_rank(&r->parallel), n = r->data.dev.n;
    lin_status status = LIN_OK;
    for (int i = rank; i < plan->n_batches && status == LIN_OK; i += ranks) {
        const int at = plan->offsets[i];
        status = measure_batch(r, plan->items + at, plan->offsets[i + 1] - at, all + (size_t)rank * (size_t)n + at, err);
    }
    status = lin_comm_agree(r->parallel.comm, status, err);
    return status == LIN_OK ? lin_comm_gather(r->parallel.comm, all, (size_t)n * sizeof *all, err) : status;
}

// The equal error rate of all pairs of pieces within each set; every process computes it.
static lin_status evaluate_voices(lin_train_run *r, double *rate, lin_error *err)
{
    const lin_train_list *dev = &r->data.dev;
    const size_t n = (size_t)dev->n, D = (size_t)r->model->config.voice;
    float *vectors = lin_alloc(n * D, sizeof *vectors);
    int *voices = lin_alloc(2 * n, sizeof *voices), *groups = voices + n;
    lin_batches plan = {0};
    lin_status status = vectors && voices ? LIN_OK : lin_no_memory(err, "vectors of voices", n * D * sizeof *vectors);
    if (status == LIN_OK) status = lin_train_plan(&r->data, -1, 1, &plan, err);
    for (int i = 0; i < plan.n_batches && status == LIN_OK; i++) {
        const int *picked = plan.items + plan.offsets[i], count = plan.offsets[i + 1] - plan.offsets[i];
        lin_segments rows;
        forward_batch(r, picked, count, &rows);
        status = r->device.ops->finish(r->device.exec, err);
        for (int b = 0; b < count; b++)
            memcpy(vectors + (size_t)picked[b] * D, r->device.logp + (size_t)b * D, D * sizeof *vectors);
    }
    for (int i = 0, s = 0; i < dev->n && status == LIN_OK; i++) {
        while (dev->items[i].set != dev->sets[s]) s++; // in the order of the sets
        voices[i] = *dev->items[i].labels;
        groups[i] = s;
    }
    if (status == LIN_OK) status = lin_voices_equal_error(vectors, voices, groups, dev->n, (int)D, rate, err);
    lin_batches_free(&plan);
    lin_free(vectors);
    lin_free(voices);
    return status;
}

lin_status lin_train_evaluate(lin_train_run *r, lin_train_progress *p, lin_error *err)
{
    const lin_train_list *dev = &r->data.dev;
    p->dev_loss = p->dev_per = -1;
    if (dev->n == 0) return LIN_OK;
    if (r->device.averaged) lin_weights_pack(r->device.averaged, r->device.exec);
    if (r->model->config.voice) return evaluate_voices(r, &p->dev_per, err);
    const size_t ranks = (size_t)lin_train_ranks(&r->parallel), n = (size_t)dev->n;
    lin_batches plan;
    measured *all = lin_calloc(ranks * n, sizeof *all);
    if (!all) return lin_no_memory(err, "the development set's results", ranks * n * sizeof *all);
    lin_status status = lin_train_plan(&r->data, -1, (int)ranks, &plan, err);
    if (status == LIN_OK) status = measure(r, &plan, all, err);
    double loss = 0;
    long long labels = 0, loss_labels = 0, wrong = 0;
    for (int i = 0; i < plan.n_batches && status == LIN_OK; i++)
        for (int at = plan.offsets[i]; at < plan.offsets[i + 1]; at++) {
            const measured *m = all + ((size_t)i % ranks) * n + at;
            const int U = dev->items[plan.items[at]].counted;
            labels += U;
            wrong += m->wrong;
            if (m->loss < 0) continue;
            loss += m->loss;
            loss_labels += U;
        }
    lin_batches_free(&plan);
    lin_free(all);
    p->dev_loss = loss_labels ? loss / (double)loss_labels : -1;
    p->dev_per = labels && !r->model->config.mixture ? (double)wrong / (double)labels : -1;
    return status;
}
