// engine_shard.c - one of an engine's threads: takes what is ready, moves it on in one tick, hands the results over; see engine.h.

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/mel.h"
#include "linnet/engine_internal.h"

// Streams of a tick: enough for the weights, which are read once a tick, to cost little; few enough for a tick to be short.
enum { HOST_BATCH = 128, DEVICE_BATCH = 16384, ENOUGH_ROWS = 128 };

/* ---- what is ready ---------------------------------------------------------------------------------------------------------- */

static lin_place *pop(lin_place_list *list)
{
    lin_place *p = list->first;
    list->first = p->behind;
    *(p->behind ? &p->behind->before : &list->last) = NULL;
    list->n--;
    p->listed = LIN_UNLISTED;
    return p;
}

// When the one that has waited longest for a whole chunk must wait no more.
static double deadline(const lin_shard *s) { return s->waiting.first->since + 1e-3 * s->engine->options.max_wait_ms; }

static void sleep_until(lin_shard *s, double when) { lin_condition_wait_until(&s->wake, &s->lock, (int64_t)(1e9 * when)); }

// Fills s->taken with streams that are ready, those first that were first; waits for one, and a little for company. 0: the end.
static int take(lin_shard *s)
{
    int n = 0;
    pthread_mutex_lock(&s->lock);
    double now = lin_now();
    for (; !s->stop; now = lin_now()) {
        const int expired = s->waiting.first && deadline(s) <= now, ready = s->ripe.n || expired;
        if (s->ripe.n >= s->enough || (ready && now >= s->rests)) break;
        s->wants = ready ? s->enough : 1;
        if (ready) sleep_until(s, s->rests);
        else if (s->waiting.first) sleep_until(s, deadline(s));
        else pthread_cond_wait(&s->wake, &s->lock);
        s->wants = 0;
    }
    while (!s->stop && n < s->batch && s->ripe.first) s->taken[n++] = pop(&s->ripe);
    while (!s->stop && n < s->batch && s->waiting.first && deadline(s) <= now) s->taken[n++] = pop(&s->waiting);
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- sound ------------------------------------------------------------------------------------------------------------------ */

static void read_ring(const lin_engine *e, const lin_place *p, int64_t from, int n, float *to)
{
    const int at = (int)(from % e->ring_samples), first = n < e->ring_samples - at ? n : e->ring_samples - at;
    memcpy(to, p->ring + at, (size_t)first * sizeof *to);
    memcpy(to + first, p->ring, (size_t)(n - first) * sizeof *to);
}

// The mean square of the samples from one frame to the next, for frames first .. first+n-1 of the segment.
static void note_sound(const lin_engine *e, lin_place *p, int64_t first, int n)
{
    for (int64_t f = first; f < first + n; f++) {
        int at = (int)((p->origin + f * e->hop) % e->ring_samples);
        double sum = 0;
        for (int i = 0; i < e->hop; i++) {
            sum += (double)p->ring[at] * (double)p->ring[at];
            if (++at == e->ring_samples) at = 0;
        }
        p->energy[f % e->energies] = sum / e->hop;
    }
}

// The sum of a frame's energies, for the same frames, from features [n, D]: the scale is another.
static void note_features(const lin_engine *e, lin_place *p, int64_t first, int n, const float *features)
{
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int d = 0; d < e->D; d++) sum += exp((double)features[i * e->D + d]);
        p->energy[(first + i) % e->energies] = sum;
    }
}

// What a stream, locked, brings to the tick: *n frames' sound to s->sound, or *n samples to `to` where the network takes sound.
// 0: nothing, now that it is looked at.
static int bring(lin_shard *s, lin_place *p, lin_entry *entry, int *n, float *to)
{
    const lin_engine *e = s->engine;
    if (!p->open || p->ended || p->failed) return 0;
    if (p->ending && lin_place_flush(e, p, NULL) != LIN_OK) p->flushed = 1; // its last milliseconds are lost to lack of memory
    const int64_t fresh = lin_place_new_frames(e, p), behind = p->written - p->origin - p->samples, rest = behind > 0 ? behind : 0;
    int64_t frames = fresh < e->longest ? fresh : e->longest, samples = 0;
    if (e->on_sound) {
        samples = rest < e->longest * e->hop ? rest : (int64_t)e->longest * e->hop;
        const int64_t total = p->samples + samples;
        frames = (total < e->window ? 0 : 1 + (total - e->window) / e->hop) - p->frames;
    }
    const int ends = p->ending && p->flushed && (e->on_sound ? samples == rest : frames == fresh);
    if (frames == 0 && !ends && !(samples && (p->ending || samples < rest))) return 0; // a window may be longer than a tick
    if (p->energy && e->on_sound) note_sound(e, p, p->frames, (int)frames);
    if (e->on_sound) read_ring(e, p, p->origin + p->samples, (int)samples, to);
    else if (frames) read_ring(e, p, p->origin + p->frames * e->hop, (int)(frames - 1) * e->hop + e->window, s->sound);
    *entry = (lin_entry){.place = p, .life = p->life, .first_frame = p->frames, .ends = ends};
    p->frames += frames;
    p->samples += samples;
    *n = (int)(e->on_sound ? samples : frames);
    return 1;
}

// The tick's input from the n streams taken; returns how many take part.
static int gather(lin_shard *s, int n)
{
    const lin_engine *e = s->engine;
    float *input = lin_streams_input(s->streams);
    int m = 0;
    for (int i = 0; i < n; i++) {
        lin_place *p = s->taken[i];
        pthread_mutex_lock(&p->lock);
        const int takes_part = bring(s, p, &s->entries[m], &s->counts[m], input), restart = takes_part && p->restart;
        if (takes_part) p->restart = 0;
        pthread_mutex_unlock(&p->lock);
        if (!takes_part) continue;
        if (restart) lin_streams_reset(s->streams, p->slot, NULL);
        const int count = s->counts[m];
        if (!e->on_sound && count) {
            int made;
            lin_fbank_reset(s->fbank);
            lin_fbank_push(s->fbank, s->sound, (count - 1) * e->hop + e->window, input, count, &made, NULL);
            if (p->energy) note_features(e, p, s->entries[m].first_frame, count, input);
        }
        s->slots[m] = p->slot;
        s->last[m] = (unsigned char)s->entries[m].ends;
        input += (size_t)count * (size_t)(e->on_sound ? 1 : e->D);
        m++;
    }
    return m;
}

/* ---- results ---------------------------------------------------------------------------------------------------------------- */

static void add_phone(lin_shard *s, int *n, int label, float confidence, int64_t start, int64_t end)
{
    const double row_s = s->engine->recognizer->row_seconds;
    s->events[(*n)++] = (lin_engine_event){.kind = LIN_ENGINE_PHONE,
                                           .label = label,
                                           .confidence = confidence,
                                           .start_s = (double)start * row_s,
                                           .end_s = (double)end * row_s};
}

static void add_phones(lin_shard *s, int *n, const lin_greedy_phone *phones, int n_phones)
{
    for (int i = 0; i < n_phones; i++) add_phone(s, n, phones[i].label, phones[i].confidence, phones[i].start, phones[i].end);
}

// Loudness of row `row` of the segment, in decibels; unknown for a last row that lacks frames.
static double loudness(const lin_engine *e, const lin_place *p, int64_t row)
{
    double sum = 0;
    if (!p->energy || (row + 1) * e->stack > p->frames) return NAN;
    for (int64_t f = row * e->stack; f < (row + 1) * e->stack; f++) sum += p->energy[f % e->energies];
    return 10 * log10(sum + 1e-12);
}

// When the sound of the next row was there; marks of older sound are dropped.
static double row_time(const lin_engine *e, lin_place *p, int64_t row)
{
    int64_t frame = (row + 1) * e->stack - 1 + e->ahead;
    const int64_t needed = p->origin + frame * e->hop + e->window - 1;
    while (p->n_marks && p->marks[p->first_mark].end <= needed) {
        p->first_mark = (p->first_mark + 1) % LIN_MARKS;
        p->n_marks--;
    }
    return p->n_marks ? p->marks[p->first_mark].time : p->ended_at;
}

// An utterance has ended behind the segment's last row.
static void end_utterance(lin_shard *s, lin_place *p, lin_endpoint_rule rule, int *n)
{
    const lin_engine *e = s->engine;
    const int64_t rows = p->rows_before + p->rows;
    lin_greedy_phone phone;
    int n_phones;
    lin_greedy_finish(&p->greedy, &phone, &n_phones);
    add_phones(s, n, &phone, n_phones);
    s->events[(*n)++] = (lin_engine_event){
        .kind = LIN_ENGINE_ENDPOINT, .rule = rule, .end_s = (double)rows * e->recognizer->row_seconds};
    if (e->options.reset_at_endpoint) lin_place_new_segment(e, p, p->origin + p->rows * e->stack * e->hop, rows, 0);
    else lin_greedy_reset(&p->greedy, e->V, rows, 1);
}

// The rows of a stream become events; returns how many rows counted: those behind an endpoint where the network forgets do not.
static int judge_rows(lin_shard *s, lin_place *p, const float *logp, int rows, int *n, lin_error *err)
{
    const lin_engine *e = s->engine;
    int n_phones;
    for (int i = 0; i < rows; i++) {
        const float *row = logp + (size_t)i * (size_t)e->V;
        if (lin_greedy_push(&p->greedy, row, 1, s->phones, 1, &n_phones, err) != LIN_OK) return -1;
        add_phones(s, n, s->phones, n_phones);
        s->times[i] = row_time(e, p, p->rows);
        p->rows++;
        if (!e->options.endpoints) continue;
        const lin_endpoint_rule rule = lin_endpoint_push(&p->endpoint, row, loudness(e, p, p->rows - 1));
        if (rule == LIN_ENDPOINT_NONE) continue;
        end_utterance(s, p, rule, n);
        if (p->restart) return i + 1;
    }
    return rows;
}

// Phones that the network's own decoder found.
static int take_phones(lin_shard *s, lin_place *p, const lin_phone *phones, int n_phones, int rows, int *n, lin_error *err)
{
    if (n_phones < 0) {
        lin_fail(err, LIN_NUMERIC, "the log-probabilities are not numbers");
        return -1;
    }
    for (int i = 0; i < n_phones; i++) add_phone(s, n, phones[i].label, phones[i].confidence, phones[i].start, phones[i].end);
    for (int i = 0; i < rows; i++) s->times[i] = row_time(s->engine, p, p->rows++);
    return rows;
}

static lin_status end_stream(lin_shard *s, lin_place *p, int *n, lin_error *err)
{
    const lin_engine *e = s->engine;
    int n_phones = 0;
    if (e->on_sound && !e->options.endpoints) {
        lin_phone phone;
        lin_status status = lin_streams_pending(s->streams, p->slot, &phone, &n_phones, err);
        if (status != LIN_OK) return status;
        if (n_phones) add_phone(s, n, phone.label, phone.confidence, phone.start, phone.end);
    } else {
        lin_greedy_phone phone;
        lin_greedy_finish(&p->greedy, &phone, &n_phones);
        add_phones(s, n, &phone, n_phones);
    }
    s->events[(*n)++] = (lin_engine_event){.kind = LIN_ENGINE_FINISHED, .end_s = (double)p->written / e->rate_hz};
    p->ended = 1;
    return LIN_OK;
}

static void tell_of_loss(lin_shard *s, lin_place *p, int *n)
{
    if (p->lost == p->lost_told) return;
    s->events[(*n)++] = (lin_engine_event){
        .kind = LIN_ENGINE_LOST, .lost = p->lost - p->lost_told, .end_s = (double)p->lost_at / s->engine->rate_hz};
    p->lost_told = p->lost;
}

// What entry i of the tick gave, for its stream, which is locked: events to s->events; rows that counted, their times to s->times.
static int judge(lin_shard *s, int i, const lin_tick_results *heard, lin_status status, int *n, lin_error *err)
{
    const lin_engine *e = s->engine;
    const lin_entry *entry = &s->entries[i];
    lin_place *p = entry->place;
    int rows = -1;
    if (status == LIN_OK) {
        const int from = heard->offsets[i], there = heard->offsets[i + 1] - from;
        rows = heard->logp ? judge_rows(s, p, heard->logp + (size_t)from * (size_t)e->V, there, n, err)
                           : take_phones(s, p, heard->phones + from, heard->n_phones[i], there, n, err);
        // Where the network forgot on the last rows, what lies behind them is heard once more.
        if (rows >= 0 && entry->ends && !p->restart && end_stream(s, p, n, err) != LIN_OK) rows = -1;
    }
    tell_of_loss(s, p, n);
    if (rows < 0) {
        s->events[(*n)++] = (lin_engine_event){.kind = LIN_ENGINE_FAILED, .status = err->status};
        p->failed = 1;
        return 0;
    }
    p->released = p->origin + (e->keeps ? p->rows * e->stack * e->hop : e->on_sound ? p->samples : p->frames * e->hop);
    if (p->released > p->written) p->released = p->written;
    return rows;
}

// Events [n] of a locked stream to its queue, the oldest making room; returns how many did.
static int queue_events(const lin_engine *e, lin_place *p, const lin_engine_event *events, int n)
{
    int missed = 0;
    for (int i = 0; i < n; i++) {
        if (p->n_events == e->options.results) {
            p->first_event = (p->first_event + 1) % e->options.results;
            p->n_events--;
            missed++;
        }
        p->events[(p->first_event + p->n_events++) % e->options.results] = events[i];
    }
    p->missed += missed;
    return missed;
}

// To the callback, with the stream unlocked for as long.
static void call(const lin_engine *e, lin_place *p, const lin_engine_event *events, int n)
{
    const lin_engine_id id = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    void *user = p->user;
    p->delivering = 1;
    pthread_mutex_unlock(&p->lock);
    e->options.heard(e->options.context, id, user, events, n);
    pthread_mutex_lock(&p->lock);
    p->delivering = 0;
    pthread_cond_broadcast(&p->settled);
}

// The results of a tick of n streams to their owners.
static void deliver(lin_shard *s, int n, const lin_tick_results *heard, lin_status status, lin_error *err)
{
    const lin_engine *e = s->engine;
    for (int i = 0; i < n; i++) {
        lin_place *p = s->entries[i].place;
        int n_events = 0, missed = 0;
        pthread_mutex_lock(&p->lock);
        if (p->life != s->entries[i].life) { // closed or reset meanwhile
            pthread_mutex_unlock(&p->lock);
            continue;
        }
        const int rows = judge(s, i, heard, status, &n_events, err);
        lin_place_enlist(e, p, lin_now());
        if (n_events && e->options.heard) call(e, p, s->events, n_events);
        else if (n_events) missed = queue_events(e, p, s->events, n_events);
        pthread_mutex_unlock(&p->lock);
        const double now = lin_now();
        pthread_mutex_lock(&s->counting);
        for (int r = 0; r < rows; r++) lin_lags_add(&s->counts_now.lags, now - s->times[r]);
        s->counts_now.rows += rows;
        s->counts_now.missed += missed;
        pthread_mutex_unlock(&s->counting);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------- */

static void *run(void *argument)
{
    lin_shard *s = argument;
    lin_error err = {0};
    lin_tick_results heard;
    lin_engine_own_thread = 1;
    // Two shards that meet on one core wait for each other longer than the machine takes to part them.
    if (s->engine->options.pins) lin_core_pin((int)(s - s->engine->shards));
    for (;;) {
        int n = take(s);
        if (!n) return NULL;
        const double begun = lin_now();
        n = gather(s, n);
        if (!n) continue;
        const double gathered = lin_now();
        const lin_tick tick = {
            .n = n, .slots = s->slots, .counts = s->counts, .last = s->last, .input = lin_streams_input(s->streams)};
        const lin_status status = lin_streams_tick(s->streams, &tick, &heard, &err);
        const double heard_at = lin_now();
        deliver(s, n, &heard, status, &err);
        const double now = lin_now();
        s->rests = now + fmin(now - begun, 1e-3 * s->engine->options.gather_ms);
        pthread_mutex_lock(&s->counting);
        s->counts_now.ticks++;
        s->counts_now.chunks += n;
        s->counts_now.sound_s += gathered - begun;
        s->counts_now.network_s += heard_at - gathered;
        s->counts_now.results_s += now - heard_at;
        pthread_mutex_unlock(&s->counting);
    }
}

lin_status lin_shard_create(lin_shard *s, int n_threads, lin_error *err)
{
    const lin_engine *e = s->engine;
    const int most = e->on_sound ? DEVICE_BATCH : HOST_BATCH;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->counting, NULL);
    lin_condition_init(&s->wake);
    s->batch = e->on_sound ? s->capacity : s->capacity < most ? s->capacity : most;
    s->enough = (ENOUGH_ROWS * e->stack + e->options.chunk_frames - 1) / e->options.chunk_frames;
    if (s->enough > s->batch) s->enough = s->batch;
    const size_t batch = (size_t)s->batch, rows = (size_t)e->most_rows;
    const lin_streams_options options = {.capacity = s->capacity,
                                         .batch = most,
                                         .longest = e->longest,
                                         .fbank = e->on_sound ? &e->table : NULL,
                                         .decodes = e->on_sound && !e->options.endpoints,
                                         .threads = n_threads};
    lin_status status = lin_streams_create(e->recognizer->encoder, &options, &s->streams, err);
    if (status == LIN_OK && !e->on_sound) status = lin_fbank_create(&e->fbank, &s->fbank, err);
    for (int i = 0, slot; i < s->capacity && status == LIN_OK; i++) status = lin_streams_open(s->streams, &slot, err);
    if (status != LIN_OK) return status;
    s->free = lin_calloc((size_t)s->capacity, sizeof *s->free);
    s->sound = lin_calloc((size_t)(e->window + e->longest * e->hop), sizeof *s->sound);
    s->taken = lin_calloc(batch, sizeof *s->taken);
    s->entries = lin_calloc(batch, sizeof *s->entries);
    s->slots = lin_calloc(batch, sizeof *s->slots);
    s->counts = lin_calloc(batch, sizeof *s->counts);
    s->last = lin_calloc(batch, 1);
    s->times = lin_calloc(rows, sizeof *s->times);
    s->events = lin_calloc(3 * rows + 4, sizeof *s->events);
    s->phones = lin_calloc(rows + 1, sizeof *s->phones);
    if (!s->free || !s->sound || !s->taken || !s->entries || !s->slots || !s->counts || !s->last || !s->times || !s->events ||
        !s->phones)
        return lin_no_memory(err, "a shard", batch * (sizeof *s->taken + sizeof *s->entries + 2 * sizeof *s->slots + 1));
    return LIN_OK;
}

lin_status lin_shard_start(lin_shard *s, lin_error *err)
{
    if (pthread_create(&s->thread, NULL, run, s) != 0) return lin_fail(err, LIN_NO_MEMORY, "cannot start a thread of the engine");
    s->started = 1;
    return LIN_OK;
}

void lin_shard_stop(lin_shard *s)
{
    if (!s->started) return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->started = 0;
}

void lin_shard_destroy(lin_shard *s)
{
    if (!s->engine) return; // never created
    lin_streams_destroy(s->streams);
    lin_fbank_destroy(s->fbank);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->counting);
    void *const blocks[] = {s->free, s->sound, s->taken, s->entries, s->slots, s->counts, s->last, s->times, s->events, s->phones};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}
