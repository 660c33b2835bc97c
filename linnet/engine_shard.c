// engine_shard.c - one of an engine's threads: takes what is ready, moves it on in one tick, gives the results; see engine.h.

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/system.h"
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

/* ---- results --------------------------------------------------------------------------------------------------------------- */

// When the sound of a row was there, of a session that has been given so many units; marks of older sound are dropped.
static double row_time(const lin_engine *e, lin_place *p, int64_t row, int64_t given)
{
    const int64_t frame = (row + 1) * e->stack - 1 + e->ahead, needed = e->on_sound ? frame * e->hop + e->window - 1 : frame;
    const double samples = (double)p->rate_hz / e->rate_hz * (e->on_sound ? 1 : e->hop); // of a unit
    const int64_t sample = p->taken - 1 - (int64_t)((double)(given - 1 - needed) * samples);
    while (p->n_marks && p->marks[p->first_mark].end <= sample) {
        p->first_mark = (p->first_mark + 1) % LIN_ARRIVALS;
        p->n_marks--;
    }
    return p->n_marks ? p->marks[p->first_mark].time : p->ended_at;
}

// The owner's callbacks run with the stream unlocked: meanwhile it may be reset, or closed and opened again. LIN_STOPPED if so.
static lin_status tell(lin_place *p, lin_engine_event event)
{
    const lin_shard *s = p->shard;
    const lin_engine_options *o = &s->engine->options;
    if (!o->deliver) return LIN_OK;
    event.stream = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    event.user = p->user;
    p->delivering = 1;
    pthread_mutex_unlock(&p->lock);
    o->deliver(o->context, &event);
    pthread_mutex_lock(&p->lock);
    p->delivering = 0;
    pthread_cond_broadcast(&p->settled);
    return p->life == s->life ? LIN_OK : LIN_STOPPED;
}

static lin_status take_settled(void *context, lin_result *result, lin_error *err)
{
    (void)err;
    return result->n_phones ? tell(context, (lin_engine_event){.kind = LIN_ENGINE_SETTLED, .settled = result}) : LIN_OK;
}

static lin_status take_view(void *context, const lin_session_view *view, lin_error *err)
{
    (void)err;
    return tell(context, (lin_engine_event){.kind = LIN_ENGINE_VIEW, .view = view, .time_s = view->processed_s});
}

// A second pass takes long: sound is taken in meanwhile, and whoever resets or closes the stream waits, as for a delivery.
static void go_aside(void *context, int begins)
{
    lin_place *p = context;
    if (!begins) pthread_mutex_lock(&p->lock);
    p->aside = begins;
    if (begins) pthread_mutex_unlock(&p->lock);
    else pthread_cond_broadcast(&p->settled);
}

lin_utterances_sink lin_place_sink(lin_place *p)
{
    const int shows = p->shard->engine->options.views;
    return (lin_utterances_sink){
        .context = p, .show = shows ? take_view : NULL, .settled = shows ? NULL : take_settled, .aside = go_aside};
}

// The rows of a stream become results; *counted of them: those behind an endpoint that resets the network do not count.
static lin_status decode_rows(lin_shard *s, lin_place *p, const float *logp, int rows, int *counted, lin_error *err)
{
    const int64_t first = p->session.row, given = first * p->session.per_row + p->session.n;
    LIN_TRY(lin_session_take(&p->session, logp, rows, counted, err));
    for (int i = 0; i < *counted; i++) s->times[i] = row_time(s->engine, p, first + i, given);
    return LIN_OK;
}

// Phones that the device has decoded.
static lin_status add_phones(lin_shard *s, lin_place *p, const lin_phone *phones, int n, int rows, int *counted, lin_error *err)
{
    if (n < 0) return lin_fail(err, LIN_NUMERIC, "the log-probabilities are not numbers");
    const int64_t first = p->session.row, given = first * p->session.per_row + p->session.n;
    for (int i = 0; i < n; i++)
        s->phones[i] = (lin_path_phone){phones[i].label, phones[i].confidence, phones[i].start, phones[i].end};
    LIN_TRY(lin_session_add(&p->session, s->phones, n, rows, err));
    for (int i = 0; i < rows; i++) s->times[i] = row_time(s->engine, p, first + i, given);
    *counted = rows;
    return LIN_OK;
}

static lin_status save(lin_shard *s, lin_place *p, lin_error *err)
{
    const double seconds = lin_session_seconds(&p->session);
    if (p->save_s <= 0 || seconds - p->saved_at < p->save_s || p->session.finished) return LIN_OK;
    p->saved_at = seconds;
    LIN_TRY(lin_session_save(&p->session, &s->saving, err));
    lin_state_seal(&s->saving);
    return tell(p, (lin_engine_event){
                       .kind = LIN_ENGINE_SAVED, .state = s->saving.bytes, .n_state = s->saving.n, .time_s = seconds});
}

static double seconds_at(const lin_place *p, int64_t sample) { return (double)(p->earlier + sample) / p->rate_hz; }

static lin_status end_stream(lin_shard *s, lin_place *p, int decoded, lin_error *err)
{
    int pending = 0, counted;
    lin_status status = LIN_OK;
    lin_phone phone;
    if (decoded) status = lin_streams_pending(s->streams, p->slot, &phone, &pending, err);
    if (status == LIN_OK && pending) status = add_phones(s, p, &phone, 1, 0, &counted, err);
    if (status == LIN_OK) status = lin_utterances_finish(&p->session.utterances, err);
    if (status != LIN_OK) return status;
    p->ended = 1;
    return tell(p, (lin_engine_event){.kind = LIN_ENGINE_FINISHED, .time_s = seconds_at(p, p->written)});
}

static lin_status tell_of_loss(lin_place *p)
{
    const int64_t lost = p->lost - p->lost_told;
    p->lost_told = p->lost;
    if (!lost) return LIN_OK;
    return tell(p, (lin_engine_event){.kind = LIN_ENGINE_LOST, .lost = lost, .time_s = seconds_at(p, p->lost_at)});
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
    if (status == LIN_OK && e->options.views) status = lin_utterances_show(&p->session.utterances, err);
    // Where the network is reset on the last rows, what lies behind them is processed once more.
    if (status == LIN_OK && entry->ends_utterance && !lin_session_unfed(&p->session)) {
        p->end_at = -1;
        status = lin_session_cut(&p->session, err); // behind what had been pushed when the owner asked for it
    }
    if (status == LIN_OK) status = save(s, p, err);
    if (status == LIN_OK && entry->ends && !lin_session_unfed(&p->session)) status = end_stream(s, p, decoded, err);
    return status;
}

static void finish_entry(const lin_shard *s, lin_place *p, lin_status status, const lin_error *err)
{
    if (status == LIN_STOPPED || tell_of_loss(p) != LIN_OK) return;
    const lin_engine_event failed = {.kind = LIN_ENGINE_FAILED, .status = status, .message = err->message};
    p->failed = status != LIN_OK;
    if (!p->failed || tell(p, failed) == LIN_OK) lin_place_enlist(s->engine, p, lin_now());
}

// The results of a tick of n streams to their owners.
static void deliver(lin_shard *s, int n, const lin_tick_results *results, lin_status tick, lin_error *err)
{
    for (int i = 0; i < n; i++) {
        lin_place *p = s->entries[i].place;
        int rows = 0;
        s->life = s->entries[i].life;
        pthread_mutex_lock(&p->lock);
        if (p->life != s->life) { // closed or reset meanwhile
            pthread_mutex_unlock(&p->lock);
            continue;
        }
        const lin_status status = tick == LIN_OK ? take_results(s, i, results, &rows, err) : tick;
        finish_entry(s, p, status, err);
        pthread_mutex_unlock(&p->lock);
        if (status != LIN_OK) rows = 0;
        const double now = lin_now();
        pthread_mutex_lock(&s->counting);
        for (int r = 0; r < rows; r++) lin_lags_add(&s->counts_now.lags, now - s->times[r]);
        s->counts_now.rows += rows;
        pthread_mutex_unlock(&s->counting);
    }
}

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

// The session of a locked place as it begins: reset, or loaded.
static lin_status begin(lin_place *p, lin_error *err)
{
    p->anew = 0;
    if (!p->state.bytes) return lin_session_reset(&p->session, err);
    const lin_status status = lin_session_load(&p->session, &p->state, err);
    lin_state_free(&p->state);
    return status;
}

// Sound that waits goes through the front end, until there is enough for a tick or the utterance is to end behind it.
static lin_status hear(lin_place *p, lin_error *err)
{
    lin_status status = p->anew ? begin(p, err) : LIN_OK;
    const int64_t until = p->end_at >= 0 ? p->end_at : p->written;
    for (int heard = 1; status == LIN_OK && heard && p->taken < until; p->taken += heard) {
        const int at = (int)(p->taken % p->room), n = until - p->taken < p->room - at ? (int)(until - p->taken) : p->room - at;
        status = lin_session_hear(&p->session, p->queue + at, n, &heard, err);
    }
    if (status == LIN_OK && p->ending && p->taken == p->written && p->end_at < 0 && !p->session.finished)
        status = lin_session_hear_end(&p->session, err);
    return status;
}

// What a stream, locked, brings to the tick: *n units to `to`. 0: nothing, now that it is looked at.
static int bring(lin_shard *s, lin_place *p, lin_entry *entry, int *n, float *to)
{
    lin_error err = {0};
    lin_session *session = &p->session;
    if (!p->open || p->ended || p->failed) return 0;
    const lin_status status = hear(p, &err);
    if (status != LIN_OK) {
        s->life = p->life;
        finish_entry(s, p, status, &err);
        return 0;
    }
    const float *units = lin_session_next(session, n);
    const int all = lin_session_unfed(session) == 0;
    memcpy(to, units, (size_t)*n * (size_t)s->engine->width * sizeof *to);
    *entry = (lin_entry){.place = p, .life = p->life, .ends = session->finished && all};
    entry->ends_utterance = all && p->end_at >= 0 && p->taken >= p->end_at;
    return *n || entry->ends || entry->ends_utterance;
}

// The tick's input from the n streams taken; returns how many take part.
static int gather(lin_shard *s, int n)
{
    float *input = lin_streams_input(s->streams);
    int m = 0;
    for (int i = 0; i < n; i++) {
        lin_place *p = s->taken[i];
        pthread_mutex_lock(&p->lock);
        const int takes_part = bring(s, p, &s->entries[m], &s->counts[m], input);
        pthread_mutex_unlock(&p->lock);
        if (!takes_part) continue;
        s->slots[m] = p->slot;
        s->last[m] = (unsigned char)s->entries[m].ends;
        input += (size_t)s->counts[m] * (size_t)s->engine->width;
        m++;
    }
    return m;
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
    const int on_device = lin_streams_take_sound(e->recognizer->encoder), most = on_device ? DEVICE_BATCH : HOST_BATCH;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->counting, NULL);
    lin_condition_init(&s->wake);
    s->batch = on_device ? s->capacity : s->capacity < most ? s->capacity : most;
    s->enough = (ENOUGH_ROWS * e->stack + e->options.chunk_frames - 1) / e->options.chunk_frames;
    if (s->enough > s->batch) s->enough = s->batch;
    const size_t batch = (size_t)s->batch, rows = (size_t)e->most_rows;
    const lin_streams_options options = {.capacity = s->capacity,
                                         .batch = most,
                                         .longest = e->longest,
                                         .fbank = e->on_sound ? &e->table : NULL,
                                         .decodes = e->on_sound && !e->options.endpoints && !e->options.views && is_greedy(e),
                                         .search = e->options.decoding && e->options.decoding->language,
                                         .exact = e->options.exact,
                                         .threads = n_threads};
    lin_status status = lin_streams_create(e->recognizer->encoder, &options, &s->streams, err);
    if (status == LIN_OK && !e->on_sound) status = lin_fbank_create(&e->fbank, &s->fbank, err);
    if (status == LIN_OK && e->options.second)
        status = lin_second_pass_create(e->recognizer, e->options.second, e->options.decoding, n_threads, &s->second, err);
    if (status != LIN_OK) return status;
    s->free = lin_calloc((size_t)s->capacity, sizeof *s->free);
    s->taken = lin_calloc(batch, sizeof *s->taken);
    s->entries = lin_calloc(batch, sizeof *s->entries);
    s->slots = lin_calloc(batch, sizeof *s->slots);
    s->counts = lin_calloc(batch, sizeof *s->counts);
    s->last = lin_calloc(batch, 1);
    s->times = lin_calloc(rows, sizeof *s->times);
    s->phones = lin_calloc(rows + 1, sizeof *s->phones);
    if (!s->free || !s->taken || !s->entries || !s->slots || !s->counts || !s->last || !s->times || !s->phones)
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
    lin_second_pass_destroy(s->second);
    lin_state_free(&s->saving);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->counting);
    void *const blocks[] = {s->free, s->taken, s->entries, s->slots, s->counts, s->last, s->times, s->phones};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}
