// streams.c - states of many streams in one block, and their ticks; see streams.h.

#include "model/streams.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "model/encoder_internal.h"

enum { DEFAULT_BATCH = 16384, MOST_FRAMES = 64, BLOCK_READ = 0, INPUT_READ = 1 /* fences */ };

/* The host's record of a stream. */
typedef struct slot_state {
    int samples; // waiting for a whole window
    lin_stream_place at;
    long long tick; // of its last tick
} slot_state;

/* The upload of one pass: [B+1] offsets of each kind, [B] numbers. */
typedef struct pass_block {
    // offsets: of the input; of samples, with those that waited; of new frames; of frames, with those that waited; of rows
    int *input, *sound, *fresh, *window, *rows;
    int *samples_have, *samples_keep, *frames_have, *frames_keep, *slots;
    float **states;
} pass_block;

/* Rows of each kind in one pass: exact on a CPU, bounds on a GPU. */
typedef struct pass_shape {
    int B, input, sound, fresh, window, rows;
} pass_shape;

struct lin_streams {
    const lin_encoder *encoder;
    lin_ops table; // the encoder's, but for the precision
    const lin_ops *ops; // &table
    lin_exec *exec;
    int capacity, batch, longest, decodes, search;
    int most_samples, most_window, most_rows; // of one stream in one tick: samples with those that waited, frames likewise, rows
    int sound;                                // the input is sound
    lin_fbank_table fbank;                    // arrays in the backend's memory
    size_t stride, at_frames, at_samples;     // floats of a stream, and the offsets of its parts in them
    slot_state *slots;
    long long ticks;
    lin_activations *activations;
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
    return arena.used;
}

// Copies the table's arrays into one block of the backend's memory.
static lin_status place_fbank(lin_streams *s, const lin_fbank_table *t, lin_error *err)
{
    const size_t W = (size_t)t->window_samples, D = (size_t)t->D, bins = (size_t)t->n_fft / 2 + 1;
    const size_t window = (W * sizeof(float) + 255) / 256 * 256, mel = (D * bins * sizeof(float) + 255) / 256 * 256;
    lin_status status = s->ops->memory_create(s->exec, window + mel + 2 * D * sizeof(int), &s->fbank_arrays, err);
    if (status != LIN_OK) return status;
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
    s->slots[slot].at = (lin_stream_place){0};
    s->ops->zero(s->exec, state_of(s, slot), s->stride * sizeof(float));
    if (s->decodes) s->ops->upload(s->exec, &s->runs[slot], &new_run, sizeof new_run);
}

static lin_status make_room(lin_streams *s, const lin_fbank_table *fbank, lin_error *err)
{
    const lin_config *c = &s->encoder->model->config;
    const size_t D = (size_t)c->mel_bins, V = (size_t)c->outputs, batch = (size_t)s->batch, capacity = (size_t)s->capacity;
    const size_t per_tick = (size_t)s->longest * (s->sound ? (size_t)fbank->hop_samples : D);
    const size_t rows = batch * (size_t)s->most_rows, all_rows = capacity * (size_t)s->most_rows;
    pass_block unused; // laid out without memory, to learn its size
    s->block_bytes = lay_out(s, s, &unused);
    lin_status status = place(s, &s->states, capacity * s->stride, sizeof *s->states, err);
    if (status == LIN_OK) status = place(s, &s->input, batch * per_tick, sizeof *s->input, err);
    if (status == LIN_OK && s->sound) status = place(s, &s->samples, batch * (size_t)s->most_samples, sizeof *s->samples, err);
    if (status == LIN_OK && s->sound) status = place(s, &s->frames, batch * (size_t)s->longest * D, sizeof *s->frames, err);
    if (status == LIN_OK) status = place(s, &s->window, batch * (size_t)s->most_window * D, sizeof *s->window, err);
    if (status == LIN_OK) status = place(s, &s->logp, rows * V, sizeof *s->logp, err);
    if (status == LIN_OK) status = place(s, &s->device_bytes, s->block_bytes, 1, err);
    if (status == LIN_OK) status = stage(s, &s->host_bytes, s->block_bytes, 1, err);
    if (status == LIN_OK) status = stage(s, &s->host_input, capacity * per_tick, sizeof *s->host_input, err);
    if (s->decodes) {
        if (status == LIN_OK) status = place(s, &s->runs, capacity, sizeof *s->runs, err);
        if (status == LIN_OK) status = place(s, &s->phones, rows, sizeof *s->phones, err);
        if (status == LIN_OK) status = place(s, &s->n_phones, batch, sizeof *s->n_phones, err);
        if (status == LIN_OK) status = stage(s, &s->host_phones, all_rows, sizeof *s->host_phones, err);
        if (status == LIN_OK) status = stage(s, &s->host_n_phones, capacity, sizeof *s->host_n_phones, err);
    } else if (status == LIN_OK) {
        status = stage(s, &s->host_logp, all_rows * V, sizeof *s->host_logp, err);
    }
    if (status == LIN_OK && s->sound) status = place_fbank(s, fbank, err);
    if (status == LIN_OK)
        status = lin_activations_create(s->ops, s->exec, c, s->batch * s->most_rows, s->most_rows, 0, &s->activations, err);
    if (status != LIN_OK) return status;
    lay_out(s, s->device_bytes, &s->device);
    s->slots = lin_calloc(capacity, sizeof *s->slots);
    s->offsets = lin_calloc(capacity + 1, sizeof *s->offsets);
    if (!s->slots || !s->offsets) return lin_no_memory(err, "a table of streams", capacity * sizeof *s->slots);
    for (int i = 0; i < s->capacity; i++) clear(s, i);
    return s->ops->finish(s->exec, err);
}

int lin_streams_take_sound(const lin_encoder *e) { return e->ops->fbank != NULL && !(e->model->features.level_db > 0); }

static lin_status check_options(const lin_encoder *e, const lin_streams_options *o, lin_error *err)
{
    const lin_config *c = &e->model->config;
    if (o->capacity < 1 || o->batch < 0 || o->longest < 1 || o->longest > MOST_FRAMES)
        return lin_fail(err, LIN_INVALID,
                        "%d streams with %d frames per tick requested; must be at least 1 stream, and 1 to %d frames",
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

lin_status lin_streams_create(const lin_encoder *e, const lin_streams_options *o, lin_streams **out, lin_error *err)
{
    *out = NULL;
    lin_status status = lin_stream_check(e, err);
    if (status == LIN_OK && lin_config_cache_count(&e->model->config))
        status = lin_fail(err, LIN_UNSUPPORTED,
                          "this model has softmax attention, whose streams grow: it runs one at a time, not many together");
    if (status == LIN_OK) status = check_options(e, o, err);
    if (status != LIN_OK) return status;
    lin_streams *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "streams", sizeof *s);
    const lin_config *c = &e->model->config;
    const int batch = o->batch ? o->batch : DEFAULT_BATCH;
    s->encoder = e;
    s->table = *e->ops;
    if (!o->exact && !s->table.on_host && s->table.precision == LIN_PRECISION_FP32) s->table.precision = LIN_PRECISION_TF32;
    s->ops = &s->table;
    s->capacity = o->capacity;
    s->batch = batch < o->capacity ? batch : o->capacity;
    s->longest = o->longest;
    s->decodes = o->decodes;
    s->search = o->search;
    s->sound = o->fbank != NULL;
    s->most_samples = s->sound ? o->fbank->window_samples - 1 + o->longest * o->fbank->hop_samples : 0;
    s->most_window = lin_stream_most_waiting(c) + o->longest;
    s->most_rows = lin_config_frames_out(c, s->most_window);
    s->at_frames = e->state_count;
    s->at_samples = (lin_stream_floats(e) + 3) / 4 * 4;
    s->stride = (s->at_samples + (s->sound ? (size_t)o->fbank->window_samples : 0) + 63) / 64 * 64;
    status = check_sizes(s, err);
    if (status == LIN_OK) status = s->ops->exec_create(s->ops, o->threads, &s->exec, err);
    if (status == LIN_OK) status = make_room(s, o->fbank, err);
    if (status != LIN_OK) {
        lin_streams_destroy(s);
        return status;
    }
    *out = s;
    return LIN_OK;
}

void lin_streams_destroy(lin_streams *s)
{
    if (!s) return;
    const lin_ops *ops = s->ops;
    if (s->exec) {
        void *const device[] = {s->states, s->input, s->samples, s->frames, s->window, s->logp, s->runs, s->phones, s->n_phones,
                               s->device_bytes, s->fbank_arrays};
        void *const host[] = {s->host_bytes, s->host_input, s->host_logp, s->host_phones, s->host_n_phones};
        lin_graphs_free(&s->graphs, ops);
        lin_activations_destroy(s->activations);
        for (size_t i = 0; i < sizeof device / sizeof *device; i++) ops->memory_destroy(s->exec, device[i]);
        for (size_t i = 0; i < sizeof host / sizeof *host; i++) ops->staging_destroy(s->exec, host[i]);
        ops->exec_destroy(s->exec);
    }
    lin_free(s->slots);
    lin_free(s->offsets);
    lin_free(s);
}

size_t lin_streams_bytes_each(const lin_streams *s) { return s->stride * sizeof(float) + (s->decodes ? sizeof(lin_run) : 0); }

float *lin_streams_input(lin_streams *s) { return s->host_input; }

/* ---- slots ----------------------------------------------------------------------------------------------------------------- */

static lin_status check_slot(const lin_streams *s, int slot, lin_error *err)
{
    return slot >= 0 && slot < s->capacity ? LIN_OK : lin_fail(err, LIN_INVALID, "there is no stream %d", slot);
}

lin_status lin_streams_reset(lin_streams *s, int slot, lin_error *err)
{
    lin_status status = check_slot(s, slot, err);
    if (status == LIN_OK) clear(s, slot);
    return status;
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

// The only operation that reads s->input, into which the next pass's input is then copied while this pass computes.
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

// Everything between that and the download; recorded if the backend has graphs.
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
        .search = s->search};
    lin_network_forward(e->weights, s->activations, s->exec, &batch, s->logp);
    if (s->decodes) ops->greedy(s->exec, s->phones, s->n_phones, s->logp, &rows, c->outputs, s->runs, device->slots);
}

static lin_status check_tick(lin_streams *s, const lin_tick *tick, lin_error *err)
{
    const int most = s->longest * (s->sound ? s->fbank.hop_samples : 1);
    if (tick->n < 0 || tick->n > s->capacity)
        return lin_fail(err, LIN_INVALID, "a tick of %d streams; there are %d", tick->n, s->capacity);
    s->ticks++;
    for (int i = 0; i < tick->n; i++) {
        lin_status status = check_slot(s, tick->slots[i], err);
        if (status != LIN_OK) return status;
        slot_state *slot = &s->slots[tick->slots[i]];
        if (slot->tick == s->ticks) return lin_fail(err, LIN_INVALID, "stream %d is repeated in one tick", tick->slots[i]);
        if (slot->at.finished)
            return lin_fail(err, LIN_INVALID, "stream %d is finished; reset it before feeding it again", tick->slots[i]);
        if (tick->counts[i] < 0 || tick->counts[i] > most)
            return lin_fail(err, LIN_INVALID, "stream %d gets %d %s; a tick accepts 0 to %d", tick->slots[i], tick->counts[i],
                            s->sound ? "samples" : "frames", most);
        slot->tick = s->ticks;
    }
    return LIN_OK;
}

// Makes entry i of the tick number b of the pass: its input, its output, and what waits afterwards.
static void plan_one(lin_streams *s, const lin_tick *tick, int i, pass_block *host, int b)
{
    const lin_config *c = &s->encoder->model->config;
    slot_state *slot = &s->slots[tick->slots[i]];
    const int count = tick->counts[i], ends = tick->last && tick->last[i];
    int frames = count;
    host->slots[b] = tick->slots[i];
    host->states[b] = state_of(s, tick->slots[i]);
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
    s->offsets[i + 1] = s->offsets[i] + rows;
}

static int round_up(int n, int quantum) { return (n + quantum - 1) / quantum * quantum; }

// The sizes of a pass of n streams. On a GPU there are few different ones: B is filled up with empty utterances, the rest are
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
    ops->wait(s->exec, BLOCK_READ); // the previous pass's
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
    lin_status status = check_tick(s, tick, err);
    if (status != LIN_OK) return status;
    const float *input = tick->input;
    for (int first = 0; first < tick->n; first += s->batch)
        run_pass(s, tick, first, tick->n - first < s->batch ? tick->n - first : s->batch, &input);
    return s->ops->finish(s->exec, err);
}

lin_status lin_streams_pending(lin_streams *s, int slot, lin_phone *phone, int *pending, lin_error *err)
{
    *pending = 0;
    lin_status status = check_slot(s, slot, err);
    if (status != LIN_OK || !s->decodes) return status;
    lin_run run;
    s->ops->download(s->exec, &run, &s->runs[slot], sizeof run);
    status = s->ops->finish(s->exec, err);
    if (status != LIN_OK || run.label <= 0 || run.emitted) return status;
    const double mean = run.sum_logp / (double)(run.frame - run.start);
    *phone = (lin_phone){.label = run.label, .confidence = (float)exp(mean < 0 ? mean : 0), .start = run.start, .end = run.frame};
    *pending = 1;
    return LIN_OK;
}

/* ---- one of them alone ----------------------------------------------------------------------------------------------------- */

static lin_status check_move(const lin_streams *s, int slot, lin_error *err)
{
    if (s->sound)
        return lin_fail(err, LIN_UNSUPPORTED, "streams of sound hold samples, for which a stream of features has no place");
    return check_slot(s, slot, err);
}

lin_status lin_streams_get(lin_streams *s, int slot, lin_stream *to, lin_error *err)
{
    float *floats;
    lin_status status = check_move(s, slot, err);
    if (status != LIN_OK) return status;
    *lin_stream_inside(to, &floats) = s->slots[slot].at;
    s->ops->download(s->exec, floats, state_of(s, slot), lin_stream_floats(s->encoder) * sizeof *floats);
    return s->ops->finish(s->exec, err);
}

lin_status lin_streams_put(lin_streams *s, int slot, lin_stream *from, lin_error *err)
{
    float *floats;
    lin_status status = check_move(s, slot, err);
    if (status != LIN_OK) return status;
    clear(s, slot);
    s->slots[slot].at = *lin_stream_inside(from, &floats);
    s->ops->upload(s->exec, state_of(s, slot), floats, lin_stream_floats(s->encoder) * sizeof *floats);
    return s->ops->finish(s->exec, err);
}
