// streams.c - states of many streams in one block, and their ticks; see streams.h.

#include "model/streams.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

enum {
    DEFAULT_BATCH = 16384,
    DEFAULT_FRAMES = 576,
    MOST_FRAMES = 1024,
    FIRST_CACHE_ROWS = 256,
    BLOCK_READ = 0, // numbers of fences
    INPUT_READ = 1
};

/* The host's record of a stream. */
typedef struct slot_state {
    int samples; // waiting for a whole window
    lin_stream_image at;
    lin_cache cache; // of softmax attention: the keys and values of earlier rows, in the backend's memory
    long long tick; // number of its last tick
} slot_state;

/* The upload of one pass: [B+1] offsets of each kind, [B] numbers. */
typedef struct pass_block {
    // offsets: of the input; of samples, with those that waited; of new frames; of frames, with those that waited; of rows
    int *input, *sound, *fresh, *window, *rows;
    int *samples_have, *samples_keep, *frames_have, *frames_keep, *slots;
    float **states;
    lin_cache *caches; // NULL: the model has none
} pass_block;

/* Rows of each kind in one pass: exact on a CPU, bounds on a GPU. */
typedef struct pass_shape {
    int B, input, sound, fresh, window, rows;
} pass_shape;

struct lin_streams {
    const lin_encoder *encoder;
    lin_ops table; // the encoder's, with another precision
    const lin_ops *ops; // &table
    lin_exec *exec;
    int capacity, batch, longest, decodes, search;
    int most_samples, most_window, most_rows; // of one stream in one tick: samples with those that waited, frames likewise, rows
    int sound;                                // the input is sound
    lin_fbank_table fbank;                    // arrays in the backend's memory
    size_t stride, at_frames, at_samples;     // floats of a stream, and the offsets of its parts in them
    slot_state *slots;
    long long ticks;
    size_t cache_count; // floats of a row of a cache, all layers
    lin_activations *activations;
    lin_wave wave;
    lin_graphs graphs;
    // in the backend's memory
    float *states, *input, *samples, *frames, *window, *logp;
    lin_run *runs;
    lin_phone *phones;
    int *n_phones;
    void *device_bytes;
    pass_block device;
    void *fbank_arrays;
    // on the host
    float *host_input;
    void *host_bytes;
    size_t block_bytes;
    int *offsets; // [capacity + 1]
    float *host_logp;
    lin_phone *host_phones;
    int *host_n_phones;
};

static const lin_run new_run = {.label = -1};

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static size_t lay_out(const lin_streams *s, void *bytes, pass_block *block)
{
    lin_arena arena = {.base = bytes, .size = SIZE_MAX / 2};
    int **const offsets[] = {&block->input, &block->sound, &block->fresh, &block->window, &block->rows};
    int **const numbers[] = {&block->samples_have, &block->samples_keep, &block->frames_have, &block->frames_keep, &block->slots};
    for (int i = 0; i < 5; i++) *offsets[i] = lin_arena_take(&arena, (size_t)s->batch + 1, sizeof(int));
    for (int i = 0; i < 5; i++) *numbers[i] = lin_arena_take(&arena, (size_t)s->batch, sizeof(int));
    block->states = lin_arena_take(&arena, (size_t)s->batch, sizeof *block->states);
    block->caches = s->cache_count ? lin_arena_take(&arena, (size_t)s->batch, sizeof *block->caches) : NULL;
    return arena.used;
}

// Copies the table's arrays into one block of the backend's memory.
static lin_status place_fbank(lin_streams *s, const lin_fbank_table *t, lin_error *err)
{
    const size_t W = (size_t)t->window_samples, D = (size_t)t->D, bins = (size_t)t->n_fft / 2 + 1;
    const size_t window = (W * sizeof(float) + 255) / 256 * 256, mel = (D * bins * sizeof(float) + 255) / 256 * 256;
    LIN_TRY(s->ops->memory_create(s->exec, window + mel + 2 * D * sizeof(int), &s->fbank_arrays, err));
    unsigned char *base = s->fbank_arrays;
    int *from = (int *)(void *)(base + window + mel), *to = from + D;
    s->ops->upload(s->exec, base, t->window, W * sizeof(float));
    s->ops->upload(s->exec, base + window, t->mel, D * bins * sizeof(float));
    s->ops->upload(s->exec, from, t->mel_from, D * sizeof(int));
    s->ops->upload(s->exec, to, t->mel_to, D * sizeof(int));
    s->fbank = *t;
    s->fbank.window = (const float *)(const void *)base;
    s->fbank.mel = (const float *)(const void *)(base + window);
    s->fbank.mel_from = from;
    s->fbank.mel_to = to;
    return LIN_OK;
}

static lin_status place(lin_streams *s, void *device, size_t count, size_t size, lin_error *err)
{
    return s->ops->memory_create(s->exec, count * size, device, err);
}

static lin_status stage(lin_streams *s, void *host, size_t count, size_t size, lin_error *err)
{
    return s->ops->staging_create(s->exec, count * size, host, err);
}

static float *state_of(const lin_streams *s, int slot) { return s->states + (size_t)slot * s->stride; }

static void clear(lin_streams *s, int slot)
{
    s->slots[slot].samples = 0;
    s->slots[slot].at = (lin_stream_image){0};
    s->slots[slot].cache.n = 0;
    s->ops->zero(s->exec, state_of(s, slot), s->stride * sizeof(float));
    if (s->decodes) s->ops->upload(s->exec, &s->runs[slot], &new_run, sizeof new_run);
}

// Copies the rows in use between two caches, which may lie in different places: `copy` is the backend's upload, download or copy.
static void copy_rows(const lin_streams *s, void (*copy)(lin_exec *exec, void *to, const void *from, size_t bytes), float *to,
                      size_t to_rows, const float *from, size_t from_rows, size_t n)
{
    const size_t layers = (size_t)s->encoder->model->config.layers, row = s->cache_count / layers;
    for (size_t l = 0; l < layers; l++)
        copy(s->exec, to + l * to_rows * row, from + l * from_rows * row, n * row * sizeof *to);
}

// Makes room for so many rows in a cache; it grows at least twofold, so that growing costs little in the long run.
static lin_status reserve_cache(lin_streams *s, lin_cache *cache, int rows, lin_error *err)
{
    if (!s->cache_count || rows <= cache->capacity) return LIN_OK;
    const int capacity = rows > 2 * cache->capacity ? rows : 2 * cache->capacity;
    void *kv;
    LIN_TRY(s->ops->memory_create(s->exec, s->cache_count * (size_t)capacity * sizeof(float), &kv, err));
    copy_rows(s, s->ops->copy, kv, (size_t)capacity, cache->kv, (size_t)cache->capacity, (size_t)cache->n);
    const lin_status status = s->ops->finish(s->exec, err);
    s->ops->memory_destroy(s->exec, status == LIN_OK ? cache->kv : kv);
    LIN_TRY(status);
    cache->kv = kv;
    cache->capacity = capacity;
    return LIN_OK;
}

static lin_status make_room(lin_streams *s, const lin_fbank_table *fbank, lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t D = (size_t)c->mel_bins, V = (size_t)c->outputs, batch = (size_t)s->batch, capacity = (size_t)s->capacity;
    const size_t per_tick = (size_t)s->longest * (s->sound ? (size_t)fbank->hop_samples : D);
    const size_t rows = batch * (size_t)s->most_rows, all_rows = capacity * (size_t)s->most_rows;
    pass_block unused; // laid out without memory, to learn its size
    s->block_bytes = lay_out(s, s, &unused);
    LIN_TRY(place(s, &s->states, capacity * s->stride, sizeof *s->states, err));
    LIN_TRY(place(s, &s->input, batch * per_tick, sizeof *s->input, err));
    if (s->sound) {
        LIN_TRY(place(s, &s->samples, batch * (size_t)s->most_samples, sizeof *s->samples, err));
        LIN_TRY(place(s, &s->frames, batch * (size_t)s->longest * D, sizeof *s->frames, err));
        LIN_TRY(place_fbank(s, fbank, err));
    }
    LIN_TRY(place(s, &s->window, batch * (size_t)s->most_window * D, sizeof *s->window, err));
    LIN_TRY(place(s, &s->logp, rows * V, sizeof *s->logp, err));
    LIN_TRY(place(s, &s->device_bytes, s->block_bytes, 1, err));
    LIN_TRY(stage(s, &s->host_bytes, s->block_bytes, 1, err));
    LIN_TRY(stage(s, &s->host_input, capacity * per_tick, sizeof *s->host_input, err));
    if (s->decodes) {
        LIN_TRY(place(s, &s->runs, capacity, sizeof *s->runs, err));
        LIN_TRY(place(s, &s->phones, rows, sizeof *s->phones, err));
        LIN_TRY(place(s, &s->n_phones, batch, sizeof *s->n_phones, err));
        LIN_TRY(stage(s, &s->host_phones, all_rows, sizeof *s->host_phones, err));
        LIN_TRY(stage(s, &s->host_n_phones, capacity, sizeof *s->host_n_phones, err));
    } else {
        LIN_TRY(stage(s, &s->host_logp, all_rows * V, sizeof *s->host_logp, err));
    }
    LIN_TRY(lin_activations_create(s->ops, s->exec, c, s->batch * s->most_rows, s->most_rows, 0, &s->activations, err));
    lay_out(s, s->device_bytes, &s->device);
    s->slots = lin_calloc(capacity, sizeof *s->slots);
    s->offsets = lin_calloc(capacity + 1, sizeof *s->offsets);
    if (!s->slots || !s->offsets) return lin_no_memory(err, "a table of streams", capacity * sizeof *s->slots);
    for (int i = 0; i < s->capacity; i++) {
        LIN_TRY(reserve_cache(s, &s->slots[i].cache, FIRST_CACHE_ROWS, err));
        clear(s, i);
    }
    return s->ops->finish(s->exec, err);
}

int lin_streams_take_sound(const lin_encoder *e) { return e->ops->fbank != NULL && !(e->model->features.level_db > 0); }

static lin_status check_options(const lin_encoder *e, const lin_streams_options *o, lin_error *err)
{
    const lin_config *c = &e->model->config;
    const char *why = lin_config_why_not_stream(c);
    if (why) return lin_fail(err, LIN_UNSUPPORTED, "this model %s", why);
    if (e->model->speaker_norm)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "this model normalises by speaker: it needs all of a speaker's sound first and cannot stream");
    if (o->capacity < 1 || o->batch < 0 || o->longest < 0 || o->longest > MOST_FRAMES)
        return lin_fail(err, LIN_INVALID,
                        "%d streams with %d frames per tick requested; must be at least 1 stream, and up to %d frames",
                        o->capacity, o->longest, (int)MOST_FRAMES);
    if (!o->fbank) return LIN_OK;
    if (!lin_streams_take_sound(e))
        return lin_fail(err, LIN_UNSUPPORTED, "this device cannot compute filterbanks; give the streams features");
    if (o->fbank->D != c->mel_bins || o->fbank->hop_samples < 1 || o->fbank->window_samples < o->fbank->hop_samples)
        return lin_fail(err, LIN_MISMATCH, "these filterbanks have %d bins; the model needs %d", o->fbank->D, c->mel_bins);
    return LIN_OK;
}

// Rows, frames and samples of a tick are counted in ints.
static lin_status check_sizes(const lin_streams *s, lin_error *err)
{
    const long long most = INT_MAX, each = s->most_samples > s->most_window ? s->most_samples : s->most_window;
    if (s->batch * each <= most && (long long)s->capacity * s->most_rows <= most) return LIN_OK;
    return lin_fail(err, LIN_INVALID,
                    "%d streams with %d frames per tick, %d streams in a pass: more than %d rows or samples in a tick",
                    s->capacity, s->longest, s->batch, INT_MAX);
}

int lin_streams_longest(const lin_streams *s) { return s->longest; }

int lin_streams_hop(const lin_streams *s) { return s->sound ? s->fbank.hop_samples : 0; }

int lin_streams_threads(const lin_streams *s) { return lin_pool_threads(s->wave.pool); }

// The most frames that can wait between ticks: one fewer than make an output.
static int most_waiting(const lin_config *c) { return c->stack + c->ahead - 1; }

// Floats of an image: the network's state, then the waiting frames.
static size_t image_floats(const lin_encoder *e)
{
    return e->state_count + (size_t)most_waiting(&e->model->config) * (size_t)e->model->config.mel_bins;
}

static lin_status create(lin_streams *s, const lin_streams_options *o, lin_error *err)
{
    const lin_encoder *e = s->encoder;
    const lin_config *c = &e->model->config;
    const int batch = o->batch ? o->batch : DEFAULT_BATCH, pass = e->pass_rows * c->stack;
    s->table = *e->ops;
    if (!o->exact && !s->table.on_host && s->table.precision == LIN_PRECISION_FP32) s->table.precision = LIN_PRECISION_TF32;
    s->ops = &s->table;
    s->capacity = o->capacity;
    s->batch = batch < o->capacity ? batch : o->capacity;
    s->longest = o->longest ? o->longest : pass < DEFAULT_FRAMES ? pass : DEFAULT_FRAMES;
    s->decodes = o->decodes;
    s->search = o->search;
    s->sound = o->fbank != NULL;
    s->most_samples = s->sound ? o->fbank->window_samples - 1 + s->longest * o->fbank->hop_samples : 0;
    s->most_window = most_waiting(c) + s->longest;
    s->most_rows = lin_config_frames_out(c, s->most_window);
    s->cache_count = lin_config_cache_count(c);
    s->at_frames = e->state_count;
    s->at_samples = (image_floats(e) + 3) / 4 * 4;
    s->stride = (s->at_samples + (s->sound ? (size_t)o->fbank->window_samples : 0) + 63) / 64 * 64;
    LIN_TRY(check_sizes(s, err));
    LIN_TRY(s->ops->exec_create(s->ops, o->threads, &s->exec, err));
    LIN_TRY(make_room(s, o->fbank, err));
    return s->batch == 1 && s->most_rows >= 2 * LIN_WAVE_ROWS ? lin_wave_create(e, o->threads, &s->wave, err) : LIN_OK;
}

lin_status lin_streams_create(const lin_encoder *e, const lin_streams_options *o, lin_streams **out, lin_error *err)
{
    *out = NULL;
    LIN_TRY(check_options(e, o, err));
    lin_streams *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "streams", sizeof *s);
    s->encoder = e;
    const lin_status status = create(s, o, err);
    if (status == LIN_OK) *out = s;
    else lin_streams_destroy(s);
    return status;
}

void lin_streams_destroy(lin_streams *s)
{
    if (!s) return;
    const lin_ops *ops = s->ops;
    if (s->exec) {
        void *const device[] = {s->states, s->input, s->samples, s->frames, s->window, s->logp, s->runs, s->phones, s->n_phones,
                               s->device_bytes, s->fbank_arrays};
        void *const host[] = {s->host_bytes, s->host_input, s->host_logp, s->host_phones, s->host_n_phones};
        for (int i = 0; i < s->capacity && s->slots; i++) ops->memory_destroy(s->exec, s->slots[i].cache.kv);
        lin_graphs_free(&s->graphs, ops);
        lin_activations_destroy(s->activations);
        for (size_t i = 0; i < sizeof device / sizeof *device; i++) ops->memory_destroy(s->exec, device[i]);
        for (size_t i = 0; i < sizeof host / sizeof *host; i++) ops->staging_destroy(s->exec, host[i]);
        ops->exec_destroy(s->exec);
    }
    lin_wave_destroy(&s->wave, s->encoder);
    lin_free(s->slots);
    lin_free(s->offsets);
    lin_free(s);
}

size_t lin_streams_bytes_each(const lin_streams *s) { return s->stride * sizeof(float) + (s->decodes ? sizeof(lin_run) : 0); }

size_t lin_streams_attention_bytes(const lin_encoder *e)
{
    const lin_config *c = &e->model->config;
    return (size_t)c->layers * lin_network_of(c)->state(c) * sizeof(float);
}

size_t lin_streams_state_bytes(const lin_encoder *e)
{
    const size_t cache = lin_config_cache_count(&e->model->config) * FIRST_CACHE_ROWS;
    return sizeof(slot_state) + (image_floats(e) + cache) * sizeof(float);
}

float *lin_streams_input(lin_streams *s) { return s->host_input; }

/* ---- slots ----------------------------------------------------------------------------------------------------------------- */

static lin_status check_slot(const lin_streams *s, int slot, lin_error *err)
{
    return slot >= 0 && slot < s->capacity ? LIN_OK : lin_fail(err, LIN_INVALID, "there is no stream %d", slot);
}

lin_status lin_streams_reset(lin_streams *s, int slot, lin_error *err)
{
    LIN_TRY(check_slot(s, slot, err));
    clear(s, slot);
    return LIN_OK;
}

/* ---- a tick ---------------------------------------------------------------------------------------------------------------- */

typedef struct asked {
    lin_streams *s;
    pass_shape shape;
} asked;

static void carry_frames(const asked *a, const float *frames)
{
    lin_streams *s = a->s;
    const pass_block *device = &s->device;
    const lin_segments fresh = {a->shape.B, a->shape.fresh, s->longest, device->fresh},
                       window = {a->shape.B, a->shape.window, s->most_window, device->window};
    s->ops->carry(s->exec, s->window, &window, frames, &fresh, device->states, s->at_frames, device->frames_have,
                  device->frames_keep, s->encoder->model->config.mel_bins);
}

// The only operation that reads s->input: after it, the next pass's input is copied there while this pass computes.
static void take_in(const asked *a)
{
    lin_streams *s = a->s;
    const pass_block *device = &s->device;
    if (!s->sound) {
        carry_frames(a, s->input);
        return;
    }
    const lin_segments input = {a->shape.B, a->shape.input, s->longest * s->fbank.hop_samples, device->input},
                       sound = {a->shape.B, a->shape.sound, s->most_samples, device->sound};
    s->ops->carry(s->exec, s->samples, &sound, s->input, &input, device->states, s->at_samples, device->samples_have,
                  device->samples_keep, 1);
}

// Everything between take_in and the download; recorded if the backend has graphs.
static void compute(void *context)
{
    const asked *a = context;
    lin_streams *s = a->s;
    const lin_ops *ops = s->ops;
    const lin_encoder *e = s->encoder;
    const lin_config *c = &e->model->config;
    const pass_block *device = &s->device;
    const pass_shape *n = &a->shape;
    const lin_segments sound = {n->B, n->sound, s->most_samples, device->sound},
                       fresh = {n->B, n->fresh, s->longest, device->fresh},
                       window = {n->B, n->window, s->most_window, device->window},
                       rows = {n->B, n->rows, s->most_rows, device->rows};
    if (s->sound) {
        ops->fbank(s->exec, s->frames, &fresh, s->samples, &sound, &s->fbank);
        carry_frames(a, s->frames);
    }
    const lin_batch batch = {
        .in = window, .out = rows, .features = s->window, .mean = e->mean, .istd = e->istd, .states = device->states,
        .caches = device->caches, .search = s->search};
    lin_wave_forward(&s->wave, e->weights, s->activations, s->exec, &batch, s->logp);
    if (s->decodes) ops->greedy(s->exec, s->phones, s->n_phones, s->logp, &rows, c->outputs, s->runs, device->slots);
}

static lin_status check_tick(lin_streams *s, const lin_tick *tick, lin_error *err)
{
    const int most = s->longest * (s->sound ? s->fbank.hop_samples : 1);
    if (tick->n < 0 || tick->n > s->capacity)
        return lin_fail(err, LIN_INVALID, "a tick of %d streams; there are %d", tick->n, s->capacity);
    s->ticks++;
    for (int i = 0; i < tick->n; i++) {
        LIN_TRY(check_slot(s, tick->slots[i], err));
        slot_state *slot = &s->slots[tick->slots[i]];
        if (slot->tick == s->ticks) return lin_fail(err, LIN_INVALID, "stream %d is repeated in one tick", tick->slots[i]);
        if (slot->at.finished)
            return lin_fail(err, LIN_INVALID, "stream %d is finished; reset it before feeding it again", tick->slots[i]);
        if (tick->counts[i] < 0 || tick->counts[i] > most)
            return lin_fail(err, LIN_INVALID, "stream %d gets %d %s; a tick accepts 0 to %d", tick->slots[i], tick->counts[i],
                            s->sound ? "samples" : "frames", most);
        const int frames = slot->at.waiting + tick->counts[i];
        const int rows = s->sound ? s->most_rows : lin_config_frames_out(&s->encoder->model->config, frames);
        LIN_TRY(reserve_cache(s, &slot->cache, slot->cache.n + rows, err));
        slot->tick = s->ticks;
    }
    return LIN_OK;
}

// Makes entry i of the tick entry b of the pass: its input, its output, and what waits afterwards.
static void plan_one(lin_streams *s, const lin_tick *tick, int i, pass_block *host, int b)
{
    const lin_config *c = &s->encoder->model->config;
    slot_state *slot = &s->slots[tick->slots[i]];
    const int count = tick->counts[i], ends = tick->last && tick->last[i];
    int frames = count;
    host->slots[b] = tick->slots[i];
    host->states[b] = state_of(s, tick->slots[i]);
    if (s->cache_count) host->caches[b] = slot->cache;
    host->input[b + 1] = host->input[b] + count;
    if (s->sound) {
        const int W = s->fbank.window_samples, hop = s->fbank.hop_samples, total = slot->samples + count;
        frames = total < W ? 0 : 1 + (total - W) / hop;
        host->samples_have[b] = slot->samples;
        host->samples_keep[b] = slot->samples = ends ? 0 : total - frames * hop;
        host->sound[b + 1] = host->sound[b] + total;
    }
    const int total = slot->at.waiting + frames, usable = total - c->ahead;
    const int rows = ends ? lin_config_frames_out(c, total) : usable > 0 ? usable / c->stack : 0;
    host->frames_have[b] = slot->at.waiting;
    host->frames_keep[b] = slot->at.waiting = ends ? 0 : total - rows * c->stack;
    host->fresh[b + 1] = host->fresh[b] + frames;
    host->window[b + 1] = host->window[b] + total;
    host->rows[b + 1] = host->rows[b] + rows;
    slot->at.frames_in += frames;
    slot->at.finished = ends;
    if (s->cache_count) slot->cache.n += rows;
    s->offsets[i + 1] = s->offsets[i] + rows;
}

static int round_up(int n, int quantum) { return (n + quantum - 1) / quantum * quantum; }

// The sizes of a pass of n streams. On a GPU, so that few shapes occur, B is filled up with empty utterances, and the others are
// bounds.
static pass_shape shape_of(const lin_streams *s, pass_block *host, int n)
{
    pass_shape shape = {n, host->input[n], host->sound[n], host->fresh[n], host->window[n], host->rows[n]};
    if (s->ops->on_host) return shape;
    int quantum = 8;
    while (quantum * 16 < n) quantum *= 2;
    int B = round_up(n, quantum);
    if (B > s->batch) B = s->batch;
    for (int b = n; b < B; b++) {
        host->slots[b] = -1;
        host->states[b] = NULL;
        if (s->cache_count) host->caches[b] = (lin_cache){0};
        host->samples_have[b] = host->samples_keep[b] = host->frames_have[b] = host->frames_keep[b] = 0;
        host->input[b + 1] = host->input[b];
        host->sound[b + 1] = host->sound[b];
        host->fresh[b + 1] = host->fresh[b];
        host->window[b + 1] = host->window[b];
        host->rows[b + 1] = host->rows[b];
    }
    int rows = round_up(shape.rows, quantum);
    if (rows > B * s->most_rows) rows = B * s->most_rows;
    return (pass_shape){.B = B,
                        .input = B * s->longest * (s->sound ? s->fbank.hop_samples : 1),
                        .sound = B * s->most_samples,
                        .fresh = B * s->longest,
                        .window = B * s->most_window,
                        .rows = rows};
}

// Processes entries first .. first+n-1, whose input begins at *input, and advances *input.
static void run_pass(lin_streams *s, const lin_tick *tick, int first, int n, const float **input)
{
    const lin_ops *ops = s->ops;
    const lin_config *c = &s->encoder->model->config;
    const size_t width = s->sound ? 1 : (size_t)c->mel_bins;
    pass_block host;
    ops->wait(s->exec, BLOCK_READ); // until the previous pass has read the block
    lay_out(s, s->host_bytes, &host);
    host.input[0] = host.sound[0] = host.fresh[0] = host.window[0] = host.rows[0] = 0;
    for (int b = 0; b < n; b++) {
        host.sound[b + 1] = 0;
        plan_one(s, tick, first + b, &host, b);
    }
    asked a = {s, shape_of(s, &host, n)};
    const size_t floats = (size_t)host.input[n] * width, from = (size_t)s->offsets[first], rows = (size_t)host.rows[n];
    ops->upload(s->exec, s->device_bytes, s->host_bytes, s->block_bytes);
    ops->fence(s->exec, BLOCK_READ);
    ops->upload_beside(s->exec, s->input, *input, floats * sizeof **input, INPUT_READ);
    *input += floats;
    take_in(&a);
    ops->fence(s->exec, INPUT_READ);
    const int key[LIN_GRAPH_KEY] = {a.shape.B, a.shape.rows};
    lin_graphs_run(&s->graphs, ops, s->exec, key, compute, &a);
    if (s->decodes) {
        ops->fetch(s->exec, s->host_phones + from, s->phones, rows * sizeof *s->phones);
        ops->fetch(s->exec, s->host_n_phones + first, s->n_phones, (size_t)n * sizeof *s->n_phones);
    } else {
        ops->fetch(s->exec, s->host_logp + from * (size_t)c->outputs, s->logp, rows * (size_t)c->outputs * sizeof *s->logp);
    }
}

lin_status lin_streams_tick(lin_streams *s, const lin_tick *tick, lin_tick_results *results, lin_error *err)
{
    *results = (lin_tick_results){
        .offsets = s->offsets, .logp = s->host_logp, .phones = s->host_phones, .n_phones = s->host_n_phones};
    LIN_TRY(check_tick(s, tick, err));
    const float *input = tick->input;
    for (int first = 0; first < tick->n; first += s->batch)
        run_pass(s, tick, first, tick->n - first < s->batch ? tick->n - first : s->batch, &input);
    return s->ops->finish(s->exec, err);
}

lin_status lin_streams_pending(lin_streams *s, int slot, lin_phone *phone, int *pending, lin_error *err)
{
    *pending = 0;
    LIN_TRY(check_slot(s, slot, err));
    if (!s->decodes) return LIN_OK;
    lin_run run;
    s->ops->download(s->exec, &run, &s->runs[slot], sizeof run);
    LIN_TRY(s->ops->finish(s->exec, err));
    if (run.label <= 0 || run.emitted) return LIN_OK;
    const double mean = run.sum_logp / (double)(run.frame - run.start);
    *phone = (lin_phone){.label = run.label, .confidence = (float)exp(mean < 0 ? mean : 0), .start = run.start, .end = run.frame};
    *pending = 1;
    return LIN_OK;
}

/* ---- images ---------------------------------------------------------------------------------------------------------------- */

static size_t image_bytes(const lin_streams *s, size_t rows)
{
    return sizeof(lin_stream_image) + (image_floats(s->encoder) + rows * s->cache_count) * sizeof(float);
}

size_t lin_streams_image_bytes(const lin_streams *s, int slot) { return image_bytes(s, (size_t)s->slots[slot].cache.n); }

static lin_status check_image(const lin_streams *s, int slot, lin_error *err)
{
    if (s->sound)
        return lin_fail(err, LIN_UNSUPPORTED, "streams of sound hold samples, for which the image of a stream has no place");
    return check_slot(s, slot, err);
}

lin_status lin_streams_save(lin_streams *s, int slot, void *image, lin_error *err)
{
    LIN_TRY(check_image(s, slot, err));
    const size_t n = image_floats(s->encoder);
    const slot_state *from = &s->slots[slot];
    float *floats = (float *)(void *)((lin_stream_image *)image + 1);
    memcpy(image, &from->at, sizeof from->at);
    s->ops->download(s->exec, floats, state_of(s, slot), n * sizeof *floats);
    if (from->cache.n)
        copy_rows(s, s->ops->download, floats + n, (size_t)from->cache.n, from->cache.kv, (size_t)from->cache.capacity,
                  (size_t)from->cache.n);
    return s->ops->finish(s->exec, err);
}

lin_status lin_streams_load(lin_streams *s, int slot, const void *image, size_t size, lin_error *err)
{
    LIN_TRY(check_image(s, slot, err));
    const size_t n = image_floats(s->encoder), plain = image_bytes(s, 0), row = s->cache_count * sizeof(float);
    const size_t rows = row && size > plain ? (size - plain) / row : 0;
    const float *floats = (const float *)(const void *)((const lin_stream_image *)image + 1);
    slot_state *to = &s->slots[slot];
    lin_stream_image at;
    if (size < plain || size != image_bytes(s, rows) || rows > INT32_MAX - MOST_FRAMES)
        return lin_fail(err, LIN_FORMAT, "this image has %zu bytes; an image of this model's streams has %zu%s", size, plain,
                        row ? " and those of its keys and values" : "");
    memcpy(&at, image, sizeof at);
    if (at.frames_in < 0 || at.waiting < 0 || at.waiting > most_waiting(&s->encoder->model->config))
        return lin_fail(err, LIN_FORMAT, "this image of a stream contradicts itself");
    LIN_TRY(reserve_cache(s, &to->cache, (int)rows, err));
    clear(s, slot);
    to->at = at;
    to->at.finished = at.finished != 0;
    s->ops->upload(s->exec, state_of(s, slot), floats, n * sizeof *floats);
    if (rows) copy_rows(s, s->ops->upload, to->cache.kv, (size_t)to->cache.capacity, floats + n, rows, rows);
    to->cache.n = (int)rows;
    return s->ops->finish(s->exec, err);
}

const float *lin_streams_image_frames(const lin_streams *s, const void *image)
{
    return (const float *)(const void *)((const lin_stream_image *)image + 1) + s->encoder->state_count;
}
