// engine_shard.c - one of an engine's threads: takes what is ready, moves it on in one tick, hands the results over;
// see engine.h.

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/loudness.h"
#include "frontend/mel.h"
#include "linnet/engine_internal.h"

// Streams of a tick: enough for the weights, which are read once a tick, to cost little; few enough for a tick to be short.
enum { HOST_BATCH = 128, DEVICE_BATCH = 16384, ENOUGH_ROWS = 128 };

/* ---- what is ready --------------------------------------------------------------------------------------------------------- */

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

// Fills s->taken with streams that are ready, the oldest first; waits for one, and a little for more. 0: the engine ends.
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

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

static void read_ring(const lin_engine *e, const lin_place *p, int64_t from, int n, float *to)
{
    const int at = (int)(from % e->ring_samples), first = n < e->ring_samples - at ? n : e->ring_samples - at;
    memcpy(to, p->ring + at, (size_t)first * sizeof *to);
    memcpy(to + first, p->ring, (size_t)(n - first) * sizeof *to);
}

// Where the loudness of the row of a frame of the segment is summed up.
static double *loudness_of(const lin_engine *e, lin_place *p, int64_t frame)
{
    double *sum = &p->loudness[frame / e->stack % e->loud_rows];
    if (frame % e->stack == 0) *sum = 0;
    return sum;
}

// Of frames first .. first+n-1 of the segment, from the samples between one frame and the next.
static void note_sound(lin_shard *s, lin_place *p, int64_t first, int n)
{
    const lin_engine *e = s->engine;
    for (int64_t f = first; f < first + n; f++) {
        double *sum = loudness_of(e, p, f);
        read_ring(e, p, p->origin + f * e->hop, e->hop, s->sound);
        *sum = lin_loudness_sound(*sum, s->sound, e->hop);
    }
}

// The same from features [n, D].
static void note_features(const lin_engine *e, lin_place *p, int64_t first, int n, const float *features)
{
    for (int i = 0; i < n; i++) {
        double *sum = loudness_of(e, p, first + i);
        *sum = lin_loudness_frame(*sum, features + (size_t)i * (size_t)e->D, e->D);
    }
}

// What a stream, locked, brings to the tick: *n frames' sound to s->sound, or *n samples to `to` where the network takes sound.
// 0: nothing, now that it is looked at.
static int bring(lin_shard *s, lin_place *p, lin_entry *entry, int *n, float *to)
{
    const lin_engine *e = s->engine;
    if (!p->open || p->ended || p->failed) return 0;
    if (p->ending && lin_place_flush(e, p, NULL) != LIN_OK) p->flushed = 1; // its last milliseconds are lost to lack of memory
    const int64_t fresh = lin_place_new_frames(e, p), behind = p->written - p->origin - p->samples,
                  rest = behind > 0 ? behind : 0;
    int64_t frames = fresh < e->longest ? fresh : e->longest, samples = 0;
    if (e->on_sound) {
        samples = rest < e->longest * e->hop ? rest : (int64_t)e->longest * e->hop;
        const int64_t total = p->samples + samples;
        frames = (total < e->window ? 0 : 1 + (total - e->window) / e->hop) - p->frames;
    }
    const int ends = p->ending && p->flushed && (e->on_sound ? samples == rest : frames == fresh);
    if (frames == 0 && !ends && !(samples && (p->ending || samples < rest))) return 0; // a window may be longer than a tick
    if (p->loudness && e->on_sound) note_sound(s, p, p->frames, (int)frames);
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
        if (takes_part && p->anew) lin_utterances_begin(p->utterances, NULL);
        if (takes_part) p->anew = 0;
        pthread_mutex_unlock(&p->lock);
        if (!takes_part) continue;
        if (restart) lin_streams_reset(s->streams, p->slot, NULL);
        const int count = s->counts[m];
        if (!e->on_sound && count) {
            int made;
            lin_fbank_reset(s->fbank);
            lin_fbank_push(s->fbank, s->sound, (count - 1) * e->hop + e->window, input, count, &made, NULL);
            if (p->loudness) note_features(e, p, s->entries[m].first_frame, count, input);
        }
        s->slots[m] = p->slot;
        s->last[m] = (unsigned char)s->entries[m].ends;
        input += (size_t)count * (size_t)(e->on_sound ? 1 : e->D);
        m++;
    }
    return m;
}

/* ---- results --------------------------------------------------------------------------------------------------------------- */

// Loudness of row `row` of the segment, in decibels; unknown for a last row that lacks frames.
static double loudness(const lin_engine *e, const lin_place *p, int64_t row)
{
    return (row + 1) * e->stack <= p->frames ? lin_loudness_db(p->loudness[row % e->loud_rows]) : NAN;
}

// When the sound of the next row was there; marks of older sound are dropped.
static double row_time(const lin_engine *e, lin_place *p, int64_t row)
{
    int64_t frame = (row + 1) * e->stack - 1 + e->ahead;
    const int64_t needed = p->origin + frame * e->hop + e->window - 1;
    while (p->n_marks && p->marks[p->first_mark].end <= needed) {
        p->first_mark = (p->first_mark + 1) % LIN_ARRIVALS;
        p->n_marks--;
    }
    return p->n_marks ? p->marks[p->first_mark].time : p->ended_at;
}

// The owner's callbacks run with the stream unlocked: meanwhile it may be reset, or closed and opened again. LIN_STOPPED if so.
static lin_status call(lin_shard *s, lin_place *p, const lin_session_view *view)
{
    const lin_engine_options *o = &s->engine->options;
    const lin_engine_id id = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    void *user = p->user;
    p->delivering = 1;
    pthread_mutex_unlock(&p->lock);
    if (view) o->show(o->context, id, user, view);
    else o->deliver(o->context, id, user, s->events, s->n_events);
    pthread_mutex_lock(&p->lock);
    p->delivering = 0;
    pthread_cond_broadcast(&p->settled);
    return p->life == s->life ? LIN_OK : LIN_STOPPED;
}

// What waits in s->events to the owner of a locked stream.
static lin_status flush(lin_shard *s, lin_place *p)
{
    lin_status status = LIN_OK;
    if (s->n_events && s->engine->options.deliver) status = call(s, p, NULL);
    s->n_events = 0;
    return status;
}

static lin_status add_event(lin_shard *s, lin_place *p, const lin_engine_event *event)
{
    lin_status status = s->n_events == s->most_events ? flush(s, p) : LIN_OK;
    if (status == LIN_OK) s->events[s->n_events++] = *event;
    return status;
}

static lin_status take_settled(void *context, lin_result *result, lin_error *err)
{
    lin_place *p = context;
    lin_status status = LIN_OK;
    (void)err;
    for (int i = 0; i < result->n_phones && status == LIN_OK; i++) {
        const lin_result_phone *phone = &result->phones[i];
        status = add_event(p->shard, p,
                           &(lin_engine_event){.kind = LIN_ENGINE_PHONE,
                                               .label = phone->label,
                                               .confidence = phone->confidence,
                                               .start_s = phone->start_s,
                                               .end_s = phone->end_s});
    }
    return status;
}

static lin_status take_view(void *context, const lin_session_view *view, lin_error *err)
{
    lin_place *p = context;
    (void)err;
    lin_status status = flush(p->shard, p);
    return status == LIN_OK ? call(p->shard, p, view) : status;
}

static lin_status take_end(void *context, lin_session_end end, int64_t row, lin_error *err)
{
    lin_place *p = context;
    const lin_engine *e = p->shard->engine;
    (void)err;
    if (end == LIN_SESSION_STOPPED) return LIN_OK;
    return add_event(p->shard, p,
                     &(lin_engine_event){.kind = LIN_ENGINE_ENDPOINT,
                                         .rule = LIN_ENDPOINT_BEFORE + (end - LIN_SESSION_BEFORE),
                                         .end_s = (double)row * e->recognizer->row_seconds});
}

lin_utterances_sink lin_place_sink(lin_place *p)
{
    const int shows = p->shard->engine->options.show != NULL;
    return (lin_utterances_sink){p, shows ? take_view : NULL, shows ? NULL : take_settled, take_end};
}

// Rows that were decoded: when their sound was there.
static void count_rows(lin_shard *s, lin_place *p, int n)
{
    for (int i = 0; i < n; i++) s->times[i] = row_time(s->engine, p, p->rows++);
}

// The rows of a stream become results; *counted of them: those behind an endpoint that resets the network do not count.
static lin_status decode_rows(lin_shard *s, lin_place *p, const float *logp, int rows, int *counted, lin_error *err)
{
    const lin_engine *e = s->engine;
    int reset = 0;
    for (int i = 0; i < rows && p->loudness; i++) s->db[i] = loudness(e, p, p->rows + i);
    lin_status status = lin_utterances_push(p->utterances, logp, rows, p->loudness ? s->db : NULL, counted, &reset, err);
    if (status != LIN_OK) return status;
    count_rows(s, p, *counted);
    if (reset) lin_place_new_segment(p, p->origin + p->rows * e->stack * e->hop);
    return LIN_OK;
}

// Phones that the device has decoded.
static lin_status add_phones(lin_shard *s, lin_place *p, const lin_phone *phones, int n, int rows, int *counted, lin_error *err)
{
    if (n < 0) return lin_fail(err, LIN_NUMERIC, "the log-probabilities are not numbers");
    for (int i = 0; i < n; i++)
        s->phones[i] = (lin_path_phone){phones[i].label, phones[i].confidence, phones[i].start, phones[i].end};
    lin_status status = lin_utterances_add(p->utterances, s->phones, n, rows, err);
    if (status != LIN_OK) return status;
    count_rows(s, p, rows);
    *counted = rows;
    return LIN_OK;
}

static lin_status end_stream(lin_shard *s, lin_place *p, int decoded, lin_error *err)
{
    const lin_engine *e = s->engine;
    int pending = 0, counted;
    lin_status status = LIN_OK;
    lin_phone phone;
    if (decoded) status = lin_streams_pending(s->streams, p->slot, &phone, &pending, err);
    if (status == LIN_OK && pending) status = add_phones(s, p, &phone, 1, 0, &counted, err);
    if (status == LIN_OK) status = lin_utterances_finish(p->utterances, err);
    if (status != LIN_OK) return status;
    p->ended = 1;
    return add_event(s, p, &(lin_engine_event){.kind = LIN_ENGINE_FINISHED, .end_s = (double)p->written / e->rate_hz});
}

static lin_status tell_of_loss(lin_shard *s, lin_place *p)
{
    if (p->lost == p->lost_told) return LIN_OK;
    const lin_engine_event lost = {
        .kind = LIN_ENGINE_LOST, .lost = p->lost - p->lost_told, .end_s = (double)p->lost_at / s->engine->rate_hz};
    p->lost_told = p->lost;
    return add_event(s, p, &lost);
}

// What entry i of the tick gave, for its stream, which is locked. LIN_STOPPED if the stream is another one since a callback.
static lin_status take_results(lin_shard *s, int i, const lin_tick_results *results, int *counted, lin_error *err)
{
    const lin_engine *e = s->engine;
    const lin_entry *entry = &s->entries[i];
    lin_place *p = entry->place;
    const int from = results->offsets[i], rows = results->offsets[i + 1] - from, decoded = !results->logp;
    lin_status status =
        decoded ? add_phones(s, p, results->phones + from, results->n_phones[i], rows, counted, err)
                : decode_rows(s, p, results->logp + (size_t)from * (size_t)e->V, rows, counted, err);
    if (status == LIN_OK && e->options.show) status = lin_utterances_show(p->utterances, err);
    // Where the network is reset on the last rows, what lies behind them is processed once more.
    if (status == LIN_OK && entry->ends && !p->restart) status = end_stream(s, p, decoded, err);
    return status;
}

static void finish_entry(lin_shard *s, lin_place *p, lin_status status)
{
    const lin_engine *e = s->engine;
    if (status == LIN_STOPPED || tell_of_loss(s, p) != LIN_OK) return;
    if (status != LIN_OK) {
        p->failed = 1;
        if (add_event(s, p, &(lin_engine_event){.kind = LIN_ENGINE_FAILED, .status = status}) != LIN_OK) return;
    } else {
        p->released = p->origin + (e->keeps ? p->rows * e->stack * e->hop : e->on_sound ? p->samples : p->frames * e->hop);
        if (p->released > p->written) p->released = p->written;
    }
    lin_place_enlist(e, p, lin_now());
    flush(s, p);
}

// The results of a tick of n streams to their owners.
static void deliver(lin_shard *s, int n, const lin_tick_results *results, lin_status tick, lin_error *err)
{
    for (int i = 0; i < n; i++) {
        lin_place *p = s->entries[i].place;
        int rows = 0;
        s->life = s->entries[i].life;
        s->n_events = 0;
        pthread_mutex_lock(&p->lock);
        if (p->life != s->life) { // closed or reset meanwhile
            pthread_mutex_unlock(&p->lock);
            continue;
        }
        const lin_status status = tick == LIN_OK ? take_results(s, i, results, &rows, err) : tick;
        finish_entry(s, p, status);
        pthread_mutex_unlock(&p->lock);
        if (status != LIN_OK) rows = 0;
        const double now = lin_now();
        pthread_mutex_lock(&s->counting);
        for (int r = 0; r < rows; r++) lin_lags_add(&s->counts_now.lags, now - s->times[r]);
        s->counts_now.rows += rows;
        pthread_mutex_unlock(&s->counting);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------ */

static void *run(void *argument)
{
    lin_shard *s = argument;
    lin_error err = {0};
    lin_tick_results results;
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
        const lin_status status = lin_streams_tick(s->streams, &tick, &results, &err);
        const double ticked = lin_now();
        deliver(s, n, &results, status, &err);
        const double now = lin_now();
        s->rests = now + fmin(now - begun, 1e-3 * s->engine->options.gather_ms);
        pthread_mutex_lock(&s->counting);
        s->counts_now.ticks++;
        s->counts_now.chunks += n;
        s->counts_now.sound_s += gathered - begun;
        s->counts_now.network_s += ticked - gathered;
        s->counts_now.results_s += now - ticked;
        pthread_mutex_unlock(&s->counting);
    }
}

static int is_greedy(const lin_engine *e)
{
    return !e->options.decoding || e->options.decoding->search.kind == LIN_SEARCH_GREEDY;
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
                                         .decodes = e->on_sound && !e->options.endpoints && !e->options.show && is_greedy(e),
                                         .exact = e->options.exact,
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
    s->db = lin_calloc(rows, sizeof *s->db);
    s->most_events = (int)(3 * rows + 4);
    s->events = lin_calloc((size_t)s->most_events, sizeof *s->events);
    s->phones = lin_calloc(rows + 1, sizeof *s->phones);
    if (!s->free || !s->sound || !s->taken || !s->entries || !s->slots || !s->counts || !s->last || !s->times || !s->db ||
        !s->events || !s->phones)
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
    void *const blocks[] = {s->free, s->sound, s->taken, s->entries, s->slots, s->counts,
                            s->last, s->times, s->db,    s->events,  s->phones};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}
