// engine.c - the places of an engine's streams and what their owners call; the threads are in engine_shard.c; see engine.h.

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/memory.h"
#include "frontend/mel.h"
#include "frontend/mix.h"
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

int64_t lin_place_new_frames(const lin_engine *e, const lin_place *p) { return frames_of(e, p->written - p->origin) - p->frames; }

static int64_t room(const lin_engine *e, const lin_place *p) { return e->ring_samples - (p->written - p->released); }

// The ring has room for them. A mark is needed only where a frame becomes complete.
static void write_ring(const lin_engine *e, lin_place *p, const float *samples, int n, double now)
{
    if (n == 0) return;
    const int at = (int)(p->written % e->ring_samples), first = n < e->ring_samples - at ? n : e->ring_samples - at;
    memcpy(p->ring + at, samples, (size_t)first * sizeof *samples);
    memcpy(p->ring, samples + first, (size_t)(n - first) * sizeof *samples);
    const int64_t frames = frames_of(e, p->written);
    p->written += n;
    if (frames_of(e, p->written) == frames) return;
    if (p->n_marks < LIN_ARRIVALS) p->marks[(p->first_mark + p->n_marks++) % LIN_ARRIVALS] = (lin_arrival){p->written, now};
    else p->marks[(p->first_mark + p->n_marks - 1) % LIN_ARRIVALS].end = p->written; // counts as older than it is
}

// Samples that fit, mixed down and at the model's rate into the ring.
static lin_status take_in(const lin_engine *e, lin_place *p, const float *samples, int n, double now, lin_error *err)
{
    if (p->channels == 1 && !p->resampler) {
        write_ring(e, p, samples, n, now);
        return LIN_OK;
    }
    float mono[BLOCK];
    for (int at = 0; at < n; at += BLOCK) {
        int block = n - at < BLOCK ? n - at : BLOCK, given;
        lin_mix_down(mono, samples + (size_t)at * (size_t)p->channels, block, p->channels);
        if (!p->resampler) {
            write_ring(e, p, mono, block, now);
            continue;
        }
        const int most = lin_resampler_most_out(p->resampler, block);
        lin_status status = lin_resampler_push(p->resampler, mono, block, p->resampled, most, &given, err);
        if (status != LIN_OK) return status;
        write_ring(e, p, p->resampled, given, now);
    }
    return LIN_OK;
}

lin_status lin_place_flush(const lin_engine *e, lin_place *p, lin_error *err)
{
    int given = 0;
    if (p->flushed) return LIN_OK;
    if (p->resampler) {
        const int most = lin_resampler_most_out(p->resampler, 0);
        if (room(e, p) < most) return LIN_OK; // when more has been decoded
        lin_status status = lin_resampler_finish(p->resampler, p->resampled, most, &given, err);
        if (status != LIN_OK) return status;
    }
    p->flushed = 1;
    write_ring(e, p, p->resampled, given, p->ended_at);
    return LIN_OK;
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
    const int64_t n = lin_place_new_frames(e, p);
    lin_listed where = n >= e->options.chunk_frames || p->ending ? LIN_RIPE : n > 0 ? LIN_WAITING : LIN_UNLISTED;
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

void lin_place_new_segment(lin_place *p, int64_t origin)
{
    p->origin = origin;
    p->frames = p->samples = p->rows = 0;
    p->restart = 1;
}

// As newly opened.
static void begin_life(lin_place *p)
{
    p->life++;
    p->released = p->written = p->lost = p->lost_told = p->lost_at = 0;
    p->ending = p->flushed = p->ended = p->failed = 0;
    p->n_marks = 0;
    lin_place_new_segment(p, 0);
    p->anew = 1;
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

// The same when no event of it is on its way, unless the caller is one of the engine's threads, which would wait for itself.
static lin_place *find_settled(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    while (p && p->delivering && !lin_engine_own_thread) {
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

static lin_status make_resampler(const lin_engine *e, int rate_hz, lin_resampler **resampler, float **resampled, lin_error *err)
{
    *resampler = NULL;
    *resampled = NULL;
    if (rate_hz == e->rate_hz) return LIN_OK;
    // A block's samples and all that the filter holds back: less than a second of input.
    const size_t most = (size_t)ceil((double)(BLOCK + rate_hz) * e->rate_hz / rate_hz) + BLOCK;
    *resampled = lin_alloc(most, sizeof **resampled);
    if (!*resampled) return lin_no_memory(err, "a stream to be resampled", most * sizeof **resampled);
    lin_status status = lin_resampler_create(rate_hz, e->rate_hz, resampler, err);
    if (status != LIN_OK) lin_free(*resampled);
    return status;
}

lin_status lin_engine_open(lin_engine *e, int rate_hz, int channels, void *user, lin_engine_id *id, lin_error *err)
{
    *id = 0;
    lin_resampler *resampler;
    float *resampled;
    lin_status status = lin_audio_check_format("the stream", rate_hz, channels, err);
    if (status != LIN_OK) return status;
    lin_place *p = take_place(e);
    if (!p) return lin_fail(err, LIN_TOO_SMALL, "all %d streams are taken", e->options.capacity);
    status = make_resampler(e, rate_hz, &resampler, &resampled, err);
    if (status != LIN_OK) {
        give_place(e, p);
        return status;
    }
    pthread_mutex_lock(&p->lock);
    p->generation++;
    p->open = 1;
    p->user = user;
    p->channels = channels;
    p->resampler = resampler;
    p->resampled = resampled;
    begin_life(p);
    *id = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    pthread_mutex_unlock(&p->lock);
    return LIN_OK;
}

void lin_engine_close(lin_engine *e, lin_engine_id id)
{
    lin_place *p = find_settled(e, id, NULL);
    if (!p) return;
    p->open = 0;
    p->life++;
    if (e->options.decoding) lin_utterances_decode_by(p->utterances, e->options.decoding);
    lin_resampler_destroy(p->resampler);
    lin_free(p->resampled);
    p->resampler = NULL;
    p->resampled = NULL;
    pthread_cond_broadcast(&p->settled); // others that wait to close or reset it
    pthread_mutex_unlock(&p->lock);
    give_place(e, p);
}

lin_status lin_engine_reset(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find_settled(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = p->resampler ? lin_resampler_reset(p->resampler, err) : LIN_OK;
    begin_life(p);
    if (status != LIN_OK) p->failed = 1;
    pthread_mutex_unlock(&p->lock);
    return status;
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
        lin_utterances_decode_by(p->utterances, shared);
    } else {
        p->decoding = *shared;
        p->decoding.context = (lin_search_context){.phones = phrases->phones, .words = phrases->words};
        lin_utterances_decode_by(p->utterances, &p->decoding);
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
    } else if ((p->resampler ? lin_resampler_most_out(p->resampler, n) : n) > room(e, p)) {
        status = lose(e, p, n, err);
    } else {
        const double now = lin_now();
        status = take_in(e, p, samples, n, now, err);
        if (status != LIN_OK) p->failed = 1;
        lin_place_enlist(e, p, now);
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
    const int64_t left = room(e, p);
    *waiting_s = (double)(p->written - p->released) / e->rate_hz;
    int64_t n = left > 0 ? left : 0;
    if (p->resampler) {
        // The most that fit: between none and what the lowest rate that is resampled to the highest would give.
        int64_t most = n * 64 < INT_MAX ? n * 64 : INT_MAX;
        for (n = 0; n < most;) {
            const int64_t middle = n + (most - n + 1) / 2;
            if (lin_resampler_most_out(p->resampler, (int)middle) <= left) n = middle;
            else most = middle - 1;
        }
    }
    *samples = (int)n;
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
    return o->endpoints ? lin_endpoint_check(&o->endpoint, err) : LIN_OK;
}

// What follows from the model and the options.
static void measure(lin_engine *e)
{
    const lin_recognizer *r = e->recognizer;
    const lin_config *c = &r->model->config;
    lin_engine_options *o = &e->options;
    e->fbank = r->fbank;
    e->on_sound = lin_streams_take_sound(r->encoder);
    e->D = c->mel_bins;
    e->V = r->V;
    e->stack = c->stack;
    e->ahead = c->ahead;
    e->window = lin_mel_samples(&e->fbank, e->fbank.window_ms);
    e->hop = lin_mel_samples(&e->fbank, e->fbank.hop_ms);
    e->rate_hz = (int)lround(e->fbank.sample_hz);
    e->longest = 2 * o->chunk_frames; // one that fell behind catches up
    e->keeps = o->endpoints;
    const int most_window = c->stack - 1 + c->ahead + e->longest;
    e->most_rows = lin_config_frames_out(c, most_window);
    e->loud_rows = o->endpoints && o->endpoint.loud_db > 0 ? most_window / c->stack + 2 : 0;
    e->ring_samples = (int)ceil(o->queue_s * e->rate_hz) + (e->keeps ? most_window + c->stack : e->longest) * e->hop + e->window;
    if (!o->threads) o->threads = lin_cores();
    if (!o->shards) o->shards = e->on_sound ? 1 : o->threads;
    if (o->threads != o->shards || o->shards > lin_cores()) o->pins = 0;
    e->n_shards = o->shards < o->capacity ? o->shards : o->capacity;
}

static lin_status make_places(lin_engine *e, lin_error *err)
{
    const size_t n = (size_t)e->options.capacity, ring = ((size_t)e->ring_samples * sizeof(float) + 63) / 64 * 64,
                 loudness = ((size_t)e->loud_rows * sizeof(double) + 63) / 64 * 64, each = ring + loudness;
    e->bytes_each = sizeof(lin_place) + each;
    e->places = lin_calloc(n, sizeof *e->places);
    e->memory = lin_calloc(n, each);
    if (!e->places || !e->memory) return lin_no_memory(err, "streams", n * e->bytes_each);
    for (size_t i = 0; i < n; i++) {
        lin_place *p = &e->places[i];
        unsigned char *base = (unsigned char *)e->memory + i * each;
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->settled, NULL);
        p->number = (int)i;
        p->ring = (float *)(void *)base;
        p->loudness = loudness ? (double *)(void *)(base + ring) : NULL;
    }
    return LIN_OK;
}

static lin_status make_utterances(lin_engine *e, lin_error *err)
{
    const lin_engine_options *o = &e->options;
    const lin_utterances_options how = {
        .decoding = o->decoding, .ends = {.endpoints = o->endpoints, .rules = o->endpoint, .resets = o->reset_at_endpoint}};
    lin_status status = LIN_OK;
    for (int i = 0; i < o->capacity && status == LIN_OK; i++) {
        lin_place *p = &e->places[i];
        const lin_utterances_sink sink = lin_place_sink(p);
        status = lin_utterances_create(e->recognizer, &how, &sink, &p->utterances, err);
        if (status == LIN_OK) status = lin_utterances_reserve(p->utterances, e->most_rows, err);
    }
    if (status == LIN_OK) e->bytes_each += lin_utterances_bytes(e->places[0].utterances);
    return status;
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
    lin_status status = check_options(options, err);
    if (status != LIN_OK) return status;
    lin_engine *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an engine", sizeof *e);
    e->recognizer = recognizer;
    e->options = *options;
    e->since = lin_now();
    pthread_mutex_init(&e->lock, NULL);
    measure(e);
    status = make_places(e, err);
    if (status == LIN_OK) status = make_shards(e, err);
    if (status == LIN_OK) status = make_utterances(e, err);
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
    for (int i = 0; i < e->n_shards && e->shards; i++) lin_shard_destroy(&e->shards[i]);
    for (int i = 0; i < e->options.capacity && e->places && e->memory; i++) {
        lin_place *p = &e->places[i];
        lin_utterances_destroy(p->utterances);
        lin_resampler_destroy(p->resampler);
        lin_free(p->resampled);
        pthread_cond_destroy(&p->settled);
        pthread_mutex_destroy(&p->lock);
    }
    pthread_mutex_destroy(&e->lock);
    lin_fbank_table_free(&e->table);
    lin_free(e->shards);
    lin_free(e->places);
    lin_free(e->memory);
    lin_free(e);
}
