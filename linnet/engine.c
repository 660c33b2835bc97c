// engine.c - the places of an engine's streams and what their owners call; the threads are in engine_shard.c; see engine.h.

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/fbank.h"
#include "frontend/resample.h"
#include "linnet/engine_internal.h"

enum { MOST_CAPACITY = 1 << 20, MOST_SHARDS = 1024, MOST_CHUNK = 32, BLOCK = 1024 };

_Thread_local int lin_engine_own_thread;

lin_engine_options lin_engine_default(int capacity)
{
    return (lin_engine_options){.capacity = capacity,
                                .pins = 1,
                                .chunk_frames = 4,
                                .max_wait_ms = 100,
                                .gather_ms = 5,
                                .queue_s = 1,
                                .endpoint = lin_endpoint_default()};
}

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

// Frames that so many samples complete.
static int64_t frames_of(const lin_engine *e, int64_t samples)
{
    return samples < e->window ? 0 : 1 + (samples - e->window) / e->hop;
}

// The same of samples as a stream's owner counts.
static int64_t frames_at(const lin_engine *e, const lin_place *p, int64_t samples)
{
    return frames_of(e, p->rate_hz == e->rate_hz ? samples : samples * e->rate_hz / p->rate_hz);
}

// Frames that its sound will give and the network has not been given; of sound that is resampled to one or two.
static int64_t new_frames(const lin_engine *e, const lin_place *p)
{
    const int unfed = p->anew ? 0 : lin_session_unfed(&p->session);
    return unfed / (e->on_sound ? e->hop : 1) + frames_at(e, p, p->written) - frames_at(e, p, p->taken);
}

static int room(const lin_place *p) { return p->room - (int)(p->written - p->taken); }

// The queue has room for them. A mark is needed only where a frame becomes complete.
static void take_in(const lin_engine *e, lin_place *p, const float *samples, int n)
{
    const int64_t frames = frames_at(e, p, p->written);
    for (int done = 0, some; done < n; done += some) {
        const int at = (int)(p->written % p->room);
        some = n - done < p->room - at ? n - done : p->room - at;
        if (p->channels == 1) memcpy(p->queue + at, samples + done, (size_t)some * sizeof *samples);
        else lin_mix_down(p->queue + at, samples + (size_t)done * (size_t)p->channels, some, p->channels);
        p->written += some;
    }
    if (frames_at(e, p, p->written) == frames) return;
    if (p->n_marks < LIN_ARRIVALS) p->marks[(p->first_mark + p->n_marks++) % LIN_ARRIVALS] = (lin_arrival){p->written, lin_now()};
    else p->marks[(p->first_mark + p->n_marks - 1) % LIN_ARRIVALS].end = p->written; // counts as older than it is
}

/* ---- lists ----------------------------------------------------------------------------------------------------------------- */

static void unlist(lin_place_list *list, lin_place *p)
{
    *(p->before ? &p->before->behind : &list->first) = p->behind;
    *(p->behind ? &p->behind->before : &list->last) = p->before;
    list->n--;
}

void lin_place_enlist(const lin_engine *e, lin_place *p, double now)
{
    const int64_t n = new_frames(e, p);
    const int ripe = n >= e->options.chunk_frames || p->ending || p->end_at >= 0;
    const lin_listed where = ripe ? LIN_RIPE : n > 0 ? LIN_WAITING : LIN_UNLISTED;
    lin_shard *s = p->shard;
    if (!p->open || p->ended || p->failed || where == LIN_UNLISTED) return;
    pthread_mutex_lock(&s->lock);
    if (where > p->listed) {
        if (p->listed == LIN_WAITING) unlist(&s->waiting, p);
        lin_place_list *list = where == LIN_RIPE ? &s->ripe : &s->waiting;
        p->listed = where;
        p->since = now;
        p->behind = NULL;
        p->before = list->last;
        *(list->last ? &list->last->behind : &list->first) = p;
        list->last = p;
        list->n++;
        const int wakes = where == LIN_RIPE ? s->ripe.n == s->wants : s->wants && s->waiting.first == p;
        if (wakes) pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- places ---------------------------------------------------------------------------------------------------------------- */

// As newly opened.
static void begin_life(lin_place *p)
{
    p->life++;
    p->taken = p->written = p->lost = p->lost_told = p->lost_at = p->earlier = 0;
    p->end_at = p->asked_at = -1;
    p->ending = p->ended = p->failed = 0;
    p->n_marks = 0;
    p->saved_at = 0;
    p->anew = 1;
    lin_state_free(&p->state);
}

// The place of an open stream, locked; NULL, and err filled, if there is none.
static lin_place *find(lin_engine *e, lin_engine_id id, lin_error *err)
{
    const uint32_t number = (uint32_t)id, generation = (uint32_t)(id >> 32);
    if (number < (uint32_t)e->options.capacity) {
        lin_place *p = &e->places[number];
        pthread_mutex_lock(&p->lock);
        if (p->open && p->generation == generation) return p;
        pthread_mutex_unlock(&p->lock);
    }
    lin_fail(err, LIN_INVALID, "there is no open stream %08x-%08x", generation, number);
    return NULL;
}

// The same when it is not in a second pass and no event of it is on its way; of an event one of the engine's threads may be the
// caller, which would wait for itself.
static lin_place *find_settled(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    while (p && (p->aside || (p->delivering && !lin_engine_own_thread))) {
        pthread_cond_wait(&p->settled, &p->lock);
        if (p->open && p->generation == (uint32_t)(id >> 32)) continue;
        pthread_mutex_unlock(&p->lock); // somebody else closed it meanwhile
        lin_fail(err, LIN_INVALID, "the stream was closed");
        return NULL;
    }
    return p;
}

// A free place of the shard that has the fewest streams.
static lin_place *take_place(lin_engine *e)
{
    lin_shard *best = NULL;
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->n_shards; i++)
        if (e->shards[i].n_free && (!best || e->shards[i].n_open < best->n_open)) best = &e->shards[i];
    lin_place *p = best ? best->free[--best->n_free] : NULL;
    if (best) best->n_open++;
    else e->refused++;
    pthread_mutex_unlock(&e->lock);
    return p;
}

static void give_place(lin_engine *e, lin_place *p)
{
    pthread_mutex_lock(&e->lock);
    p->shard->n_open--;
    p->shard->free[p->shard->n_free++] = p;
    pthread_mutex_unlock(&e->lock);
}

// A front end and a queue for sound at this rate.
static lin_status prepare(const lin_engine *e, lin_place *p, const lin_engine_stream *o, lin_error *err)
{
    const int saves = o->save_s > 0 || o->state, queue = (int)ceil(e->options.queue_s * o->rate_hz);
    lin_session *s = &p->session;
    lin_status status = LIN_OK;
    if (!s->features || s->options.rate_hz != o->rate_hz || (saves && !s->options.saves))
        status = lin_session_tune(s, o->rate_hz, !e->on_sound && (saves || o->rate_hz == e->rate_hz), err);
    p->room = queue > e->queue_room || o->rate_hz < e->rate_hz ? queue : e->queue_room;
    if (status == LIN_OK && queue > e->queue_room) {
        p->queue = p->own_queue = lin_alloc((size_t)queue, sizeof *p->queue);
        if (!p->queue) status = lin_no_memory(err, "a stream to be resampled", (size_t)queue * sizeof *p->queue);
    }
    if (status == LIN_OK && o->state) {
        status = lin_state_parse(o->state, o->n_state, "the state", &p->state, err);
        p->earlier = p->state.about.samples;
        p->saved_at = (double)p->earlier / o->rate_hz;
    }
    return status;
}

// What is of this stream alone, but for a front end at the model's rate.
static void clear_out(const lin_engine *e, lin_place *p)
{
    lin_free(p->own_queue);
    p->own_queue = NULL;
    p->queue = (float *)(void *)((unsigned char *)e->memory + (size_t)p->number * e->queue_bytes);
    lin_state_free(&p->state);
    if (p->session.options.rate_hz == e->rate_hz) return;
    lin_extractor_destroy(p->session.features);
    p->session.features = NULL;
}

static lin_status open_stream(lin_engine *e, const lin_engine_stream *o, lin_engine_id *id, lin_error *err)
{
    *id = 0;
    lin_status status = lin_audio_check_format("the stream", o->rate_hz, o->channels, err);
    if (status != LIN_OK) return status;
    lin_place *p = take_place(e);
    if (!p) return lin_fail(err, LIN_TOO_SMALL, "all %d streams are taken", e->options.capacity);
    pthread_mutex_lock(&p->lock);
    p->generation++;
    p->user = o->user;
    p->rate_hz = o->rate_hz;
    p->channels = o->channels;
    p->save_s = o->save_s;
    begin_life(p);
    status = prepare(e, p, o, err);
    p->open = status == LIN_OK;
    if (p->open) *id = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    else clear_out(e, p);
    pthread_mutex_unlock(&p->lock);
    if (status != LIN_OK) give_place(e, p);
    return status;
}

lin_status lin_engine_open(lin_engine *e, int rate_hz, int channels, void *user, lin_engine_id *id, lin_error *err)
{
    return open_stream(e, &(lin_engine_stream){.rate_hz = rate_hz, .channels = channels, .user = user}, id, err);
}

lin_status lin_engine_open_saved(lin_engine *e, const lin_engine_stream *stream, lin_engine_id *id, lin_error *err)
{
    if (e->options.saves) return open_stream(e, stream, id, err);
    *id = 0;
    return lin_fail(err, LIN_UNSUPPORTED, "this engine was not created to save its streams");
}

void lin_engine_close(lin_engine *e, lin_engine_id id)
{
    lin_place *p = find_settled(e, id, NULL);
    if (!p) return;
    p->open = 0;
    p->life++;
    if (e->options.decoding) lin_session_decode_by(&p->session, e->options.decoding);
    clear_out(e, p);
    pthread_cond_broadcast(&p->settled); // others that wait to close or reset it
    pthread_mutex_unlock(&p->lock);
    give_place(e, p);
}

lin_status lin_engine_reset(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find_settled(e, id, err);
    if (!p) return LIN_INVALID;
    begin_life(p);
    pthread_mutex_unlock(&p->lock);
    return LIN_OK;
}

lin_status lin_engine_set_phrases(lin_engine *e, lin_engine_id id, const lin_phrases *phrases, lin_error *err)
{
    const lin_decoding *shared = e->options.decoding;
    if (lin_engine_own_thread) return lin_fail(err, LIN_INVALID, "a callback cannot give a stream other phrases");
    if (!shared || !shared->parts) return lin_fail(err, LIN_UNSUPPORTED, "greedy decoding does not use phrases");
    lin_place *p = find_settled(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = LIN_OK;
    if (shared->n_best > 1 && !p->anew) {
        status = lin_fail(err, LIN_UNSUPPORTED, "phrases of a stream with alternatives (n_best over 1) cannot be changed");
    } else if (!phrases) {
        lin_session_decode_by(&p->session, shared);
    } else {
        p->decoding = *shared;
        p->decoding.context = (lin_search_context){.phones = phrases->phones, .words = phrases->words};
        lin_session_decode_by(&p->session, &p->decoding);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

lin_status lin_engine_finish(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = LIN_OK;
    if (p->ending || p->failed) {
        status = lin_fail(err, LIN_INVALID, "the stream %s; reset it first", p->failed ? "failed" : "is finished already");
    } else {
        p->ending = 1;
        p->ended_at = lin_now();
        lin_place_enlist(e, p, p->ended_at);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

static lin_status lose(lin_engine *e, lin_place *p, int n, lin_error *err)
{
    if (p->lost == p->lost_told) p->lost_at = p->written;
    p->lost += n;
    pthread_mutex_lock(&e->lock);
    e->lost += n;
    pthread_mutex_unlock(&e->lock);
    return lin_fail(err, LIN_TOO_SMALL, "%d samples do not fit the stream's queue of %g s: %lld lost so far", n,
                    e->options.queue_s, (long long)p->lost);
}

// Whether it takes sound.
static lin_status check_takes(const lin_place *p, lin_error *err)
{
    if (!p->ending && !p->failed) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "the stream %s; reset it before pushing more", p->failed ? "failed" : "is finished");
}

lin_status lin_engine_push(lin_engine *e, lin_engine_id id, const float *samples, int n, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    const size_t count = n > 0 ? (size_t)n * (size_t)p->channels : 0, bad = lin_audio_find_bad(samples, count);
    lin_status status = n < 0 ? lin_fail(err, LIN_INVALID, "%d samples cannot be pushed", n) : check_takes(p, err);
    if (status != LIN_OK) {
        // refused
    } else if (bad < count) {
        status = lin_fail(err, LIN_NUMERIC, "sample %zu of channel %zu is %g, which is not finite", bad / (size_t)p->channels,
                          bad % (size_t)p->channels + 1, (double)samples[bad]);
    } else if (n > room(p)) {
        status = lose(e, p, n, err);
    } else {
        take_in(e, p, samples, n);
        lin_place_enlist(e, p, lin_now());
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

lin_status lin_engine_end_utterance(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = check_takes(p, err);
    if (status == LIN_OK && e->on_sound && !e->options.endpoints)
        status = lin_fail(err, LIN_UNSUPPORTED, "this engine's streams are one utterance each");
    const int is_new = p->asked_at != p->written; // else nothing has come since the end before, and it changes nothing
    if (status == LIN_OK && is_new && p->end_at >= 0)
        status = lin_fail(err, LIN_TOO_SMALL, "the end before this one is not reached yet");
    if (status == LIN_OK && is_new) {
        p->end_at = p->asked_at = p->written;
        lin_place_enlist(e, p, lin_now());
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

lin_status lin_engine_room(lin_engine *e, lin_engine_id id, int *samples, double *waiting_s, lin_error *err)
{
    *samples = 0;
    *waiting_s = 0;
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    const double unit_s = (double)(e->on_sound ? 1 : e->hop) / e->rate_hz;
    *samples = room(p);
    *waiting_s = (double)(p->written - p->taken) / p->rate_hz + (p->anew ? 0 : unit_s * p->session.n);
    const lin_status status = check_takes(p, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- what it did ----------------------------------------------------------------------------------------------------------- */

void lin_engine_stats_get(lin_engine *e, lin_engine_stats *stats)
{
    lin_shard_counts sum = {0};
    *stats = (lin_engine_stats){.capacity = e->options.capacity, .shards = e->n_shards, .bytes_each = e->bytes_each};
    for (int i = 0; i < e->n_shards; i++) {
        lin_shard *s = &e->shards[i];
        pthread_mutex_lock(&s->counting);
        const lin_shard_counts *c = &s->counts_now;
        sum.ticks += c->ticks;
        sum.chunks += c->chunks;
        sum.rows += c->rows;
        sum.sound_s += c->sound_s;
        sum.network_s += c->network_s;
        sum.results_s += c->results_s;
        lin_lags_merge(&sum.lags, &c->lags);
        pthread_mutex_unlock(&s->counting);
    }
    stats->ticks = sum.ticks;
    stats->chunks = sum.chunks;
    stats->rows = sum.rows;
    stats->sound_s = sum.sound_s;
    stats->network_s = sum.network_s;
    stats->results_s = sum.results_s;
    stats->lag_p50_ms = 1e3 * lin_lags_quantile(&sum.lags, 0.50);
    stats->lag_p95_ms = 1e3 * lin_lags_quantile(&sum.lags, 0.95);
    stats->lag_p99_ms = 1e3 * lin_lags_quantile(&sum.lags, 0.99);
    stats->lag_most_ms = 1e3 * sum.lags.most_s;
    pthread_mutex_lock(&e->lock);
    stats->seconds = lin_now() - e->since;
    stats->refused = e->refused;
    stats->lost_samples = e->lost;
    for (int i = 0; i < e->n_shards; i++) stats->open += e->shards[i].n_open;
    pthread_mutex_unlock(&e->lock);
}

void lin_engine_stats_reset(lin_engine *e)
{
    for (int i = 0; i < e->n_shards; i++) {
        pthread_mutex_lock(&e->shards[i].counting);
        e->shards[i].counts_now = (lin_shard_counts){0};
        pthread_mutex_unlock(&e->shards[i].counting);
    }
    pthread_mutex_lock(&e->lock);
    e->refused = e->lost = 0;
    e->since = lin_now();
    pthread_mutex_unlock(&e->lock);
}

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_engine_options *o, lin_error *err)
{
    if (o->capacity < 1 || o->capacity > MOST_CAPACITY)
        return lin_fail(err, LIN_INVALID, "an engine of %d streams; 1 to %d are possible", o->capacity, (int)MOST_CAPACITY);
    if (o->threads < 0 || o->threads > MOST_SHARDS || o->shards < 0 || o->shards > MOST_SHARDS)
        return lin_fail(err, LIN_INVALID, "an engine of %d threads in %d shards; 0 to %d are possible", o->threads, o->shards,
                        (int)MOST_SHARDS);
    if (o->chunk_frames < 1 || o->chunk_frames > MOST_CHUNK)
        return lin_fail(err, LIN_INVALID, "chunks of %d frames; 1 to %d are possible", o->chunk_frames, (int)MOST_CHUNK);
    if (!(o->max_wait_ms >= 0 && o->max_wait_ms <= 60000))
        return lin_fail(err, LIN_INVALID, "waiting %g ms for more sound; 0 to 60000 are possible", o->max_wait_ms);
    if (!(o->gather_ms >= 0 && o->gather_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "waiting %g ms for other streams; 0 to 1000 are possible", o->gather_ms);
    if (!(o->queue_s >= 0.5 && o->queue_s <= 60))
        return lin_fail(err, LIN_INVALID, "a queue of %g s of sound; 0.5 to 60 are possible", o->queue_s);
    if (o->second && !o->views) return lin_fail(err, LIN_INVALID, "a second pass needs views: it replaces what was settled");
    return o->endpoints ? lin_endpoint_check(&o->endpoint, err) : LIN_OK;
}

// What follows from the model and the options.
static void measure(lin_engine *e)
{
    const lin_recognizer *r = e->recognizer;
    const lin_config *c = &r->model->config;
    lin_engine_options *o = &e->options;
    e->fbank = r->fbank;
    e->on_sound = lin_streams_take_sound(r->encoder) && !o->saves && !o->second;
    e->width = e->on_sound ? 1 : c->mel_bins;
    e->V = r->V;
    e->stack = c->stack;
    e->ahead = c->ahead;
    e->window = lin_mel_samples(&e->fbank, e->fbank.window_ms);
    e->hop = lin_mel_samples(&e->fbank, e->fbank.hop_ms);
    e->rate_hz = (int)lround(e->fbank.sample_hz);
    e->longest = 2 * o->chunk_frames; // one that fell behind catches up
    const int most_window = c->stack - 1 + c->ahead + e->longest;
    e->most_rows = lin_config_frames_out(c, most_window);
    e->queue_room = (int)ceil(o->queue_s * e->rate_hz) + e->longest * e->hop + e->window;
    e->queue_bytes = ((size_t)e->queue_room * sizeof(float) + 63) / 64 * 64;
    if (!o->threads) o->threads = lin_cores();
    if (!o->shards) o->shards = lin_streams_take_sound(r->encoder) ? 1 : o->threads;
    if (o->threads != o->shards || o->shards > lin_cores()) o->pins = 0;
    e->n_shards = o->shards < o->capacity ? o->shards : o->capacity;
}

static lin_status make_places(lin_engine *e, lin_error *err)
{
    const size_t n = (size_t)e->options.capacity;
    e->bytes_each = sizeof(lin_place) + e->queue_bytes;
    e->places = lin_calloc(n, sizeof *e->places);
    e->memory = lin_calloc(n, e->queue_bytes);
    if (!e->places || !e->memory) return lin_no_memory(err, "streams", n * e->bytes_each);
    for (size_t i = 0; i < n; i++) {
        lin_place *p = &e->places[i];
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->settled, NULL);
        p->number = (int)i;
        p->queue = (float *)(void *)((unsigned char *)e->memory + i * e->queue_bytes);
    }
    return LIN_OK;
}

static lin_status make_sessions(lin_engine *e, lin_error *err)
{
    const lin_engine_options *o = &e->options;
    lin_session_options how = {.rate_hz = e->rate_hz,
                               .channels = 1,
                               .channel = LIN_CHANNEL_MIX,
                               .endpoints = o->endpoints,
                               .resets = o->reset_at_endpoint,
                               .rules = o->endpoint,
                               .decoding = o->decoding,
                               .saves = !e->on_sound};
    lin_status status = LIN_OK;
    for (int i = 0; i < o->capacity && status == LIN_OK; i++) {
        lin_place *p = &e->places[i];
        const lin_utterances_sink sink = lin_place_sink(p);
        how.network = p->shard->streams;
        how.slot = p->slot;
        how.beside = p->shard->fbank;
        how.pass = p->shard->second;
        status = lin_session_open(&p->session, e->recognizer, &how, &sink, err);
        if (status == LIN_OK) status = lin_utterances_reserve(&p->session.utterances, e->most_rows, err);
    }
    if (status != LIN_OK) return status;
    e->bytes_each += lin_session_bytes(&e->places[0].session);
    return LIN_OK;
}

// Capacity and threads divided evenly; each shard owns a run of places.
static lin_status make_shards(lin_engine *e, lin_error *err)
{
    const int n = e->n_shards, capacity = e->options.capacity;
    e->shards = lin_calloc((size_t)n, sizeof *e->shards);
    if (!e->shards) return lin_no_memory(err, "shards", (size_t)n * sizeof *e->shards);
    lin_status status = e->on_sound ? lin_fbank_table_create(&e->fbank, &e->table, err) : LIN_OK;
    for (int i = 0, first = 0; i < n && status == LIN_OK; i++) {
        lin_shard *s = &e->shards[i];
        const int threads = e->options.threads / n;
        s->engine = e;
        s->capacity = capacity / n + (i < capacity % n);
        status = lin_shard_create(s, threads > 1 ? threads : 1, err);
        for (int k = s->capacity; k-- && status == LIN_OK; s->free[s->n_free++] = &e->places[first + k]) {
            e->places[first + k].shard = s;
            e->places[first + k].slot = k;
        }
        first += s->capacity;
    }
    if (status == LIN_OK) e->bytes_each += lin_streams_bytes_each(e->shards[0].streams);
    return status;
}

lin_status lin_engine_create(const lin_recognizer *recognizer, const lin_engine_options *options, lin_engine **out,
                             lin_error *err)
{
    *out = NULL;
    LIN_TRY(check_options(options, err));
    if (lin_config_cache_count(&recognizer->model->config))
        return lin_fail(err, LIN_UNSUPPORTED,
                        "this model has softmax attention, whose streams grow: it runs one at a time, not many together");
    lin_engine *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an engine", sizeof *e);
    e->recognizer = recognizer;
    e->options = *options;
    e->since = lin_now();
    pthread_mutex_init(&e->lock, NULL);
    measure(e);
    lin_status status = make_places(e, err);
    if (status == LIN_OK) status = make_shards(e, err);
    if (status == LIN_OK) status = make_sessions(e, err);
    for (int i = 0; i < e->n_shards && status == LIN_OK; i++) status = lin_shard_start(&e->shards[i], err);
    if (status != LIN_OK) {
        lin_engine_destroy(e);
        return status;
    }
    *out = e;
    return LIN_OK;
}

void lin_engine_destroy(lin_engine *e)
{
    if (!e) return;
    for (int i = 0; i < e->n_shards && e->shards; i++) lin_shard_stop(&e->shards[i]);
    for (int i = 0; i < e->options.capacity && e->places && e->memory; i++) {
        lin_place *p = &e->places[i];
        lin_session_close(&p->session);
        lin_state_free(&p->state);
        lin_free(p->own_queue);
        pthread_cond_destroy(&p->settled);
        pthread_mutex_destroy(&p->lock);
    }
    for (int i = 0; i < e->n_shards && e->shards; i++) lin_shard_destroy(&e->shards[i]);
    pthread_mutex_destroy(&e->lock);
    lin_fbank_table_free(&e->table);
    lin_free(e->shards);
    lin_free(e->places);
    lin_free(e->memory);
    lin_free(e);
}
