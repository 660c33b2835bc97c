// engine.c - many live streams at once: places for them, what their owners call, and the threads that move them on; see engine.h.

#include "linnet/engine.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/fbank.h"
#include "frontend/resample.h"
#include "linnet/stream.h"

enum { MOST_CAPACITY = 1 << 20, MOST_SHARDS = 1024, MOST_CHUNK = 32 };

// Streams of a tick: enough for the weights, which are read once a tick, to cost little; few enough for a tick to be short.
enum { HOST_BATCH = 128, DEVICE_BATCH = 16384, ENOUGH_ROWS = 128 };

// A shard waits this long for more streams before a small tick, but no longer than its last tick took, so hardly where there is
// little to do.
static const double GATHER_S = 5e-3;

// When samples came: those before `end` (and behind the mark before) were there at `time`.
typedef struct arrival {
    int64_t end;
    double time;
} arrival;

enum { ARRIVALS = 128 };

// In which of its shard's lists a place waits.
typedef enum listed_in { UNLISTED, WAITING, RIPE } listed_in;

// The place of one stream. Samples are counted from the stream's opening or reset.
typedef struct lin_place {
    pthread_mutex_t lock;   // of everything here but the lists; taken before the shard's
    pthread_cond_t settled; // delivering, or a second pass, is over
    struct lin_shard *shard;
    int number, slot;       // among all places; of the shard's lin_streams

    // the owner's
    uint32_t generation; // part of the id
    int open, delivering, aside; // aside: in a second pass, or finding who speaks
    unsigned long life; // rises with each opening, reset and closing: results of an earlier one are dropped
    void *user;
    int rate_hz, channels;

    // sound, mixed down
    float *queue, *own_queue; // [room]; own_queue: NULL, or that of a rate for which the engine's memory is too small
    int room;
    int64_t taken, written; // those between wait
    int64_t lost, lost_reported, lost_at; // lost_at: `written` at the first loss that no event has reported
    int64_t end_at; // the utterance ends behind this many samples; -1: where the rules say so
    int64_t last_end_at; // the last end_at; -1: none
    int ending, ended, failed;
    double ended_at; // when finish was called
    arrival marks[ARRIVALS];
    int first_mark, n_marks;

    // the session is used by the shard's thread; by others between ticks, with the lock, while nothing is delivered
    lin_session session;
    lin_decoding decoding; // the options' with phrases of its own, where it has them
    int anew;              // it begins with a new stream, or one that goes on from this state
    lin_state state;
    int64_t earlier;       // samples of the stream before it was loaded
    double save_s, saved_at;

    // lists, under the shard's lock
    listed_in listed;
    struct lin_place *before, *behind;
    double since;
    struct lin_place *next_free; // under the engine's lock
} lin_place;

typedef struct place_list {
    lin_place *first, *last;
    int n;
} place_list;

// One stream's part in a tick.
typedef struct entry {
    lin_place *place;
    unsigned long life;
    int ends_utterance;
} entry;

typedef struct lin_shard {
    struct lin_engine *engine;
    pthread_t thread;
    int started;
    pthread_mutex_t lock; // of the lists and of `stop`
    pthread_cond_t wake;
    place_list lists[3]; // by listed_in; nothing is in the first
    int awaited, stop; // awaited: the thread sleeps until so many places are ripe; 0: it is awake
    int capacity, n_open; // n_open and free places: under the engine's lock
    lin_place *free;

    // the thread's own
    lin_streams *streams;
    lin_fbank *fbank;
    int batch, enough; // streams of a tick at most; so many are worth one
    double rests;      // until this time
    lin_second_pass *second; // NULL: none
    lin_state saving;
    lin_place **taken; // [batch], as the next three
    entry *entries;
    int *slots, *counts;
    unsigned char *last;
    double *times;            // [most_rows]: when the sound of each row was there
    unsigned long life; // of the stream whose results are delivered; delivery stops once its place has another one
} lin_shard;

struct lin_engine {
    const lin_recognizer *recognizer;
    lin_engine_options options;
    lin_fbank_table table; // for a backend that makes filterbanks
    int on_sound;          // the network is given sound; else frames
    int width, window, hop;    // width: floats of a unit; window and hop in samples
    int rate_hz, queue_room;
    int longest;   // frames of a stream in one tick
    int most_rows; // of a stream in one tick
    lin_place *places; // [capacity]
    lin_shard *shards;
    int n_shards;
    void *memory; // queues
    size_t queue_bytes, bytes_each;

    pthread_mutex_t lock; // of what follows
    lin_engine_stats did; // what is counted of it
    lin_lags lags;
    double since;
};

// 1 while the calling thread is one of an engine's own.
static _Thread_local int own_thread;

lin_engine_options lin_engine_default(int capacity)
{
    return (lin_engine_options){.capacity = capacity,
                                .pins = 1,
                                .chunk_frames = 4,
                                .max_wait_ms = 100,
                                .queue_s = 1,
                                .ends = {.rules = lin_endpoint_default()}};
}

/* ---- sound of a place ------------------------------------------------------------------------------------------------------ */

// Frames that so many samples, as a stream's owner counts, complete.
static int64_t frames_at(const lin_engine *e, const lin_place *p, int64_t samples)
{
    const int64_t n = p->rate_hz == e->rate_hz ? samples : samples * e->rate_hz / p->rate_hz;
    return n < e->window ? 0 : 1 + (n - e->window) / e->hop;
}

// Frames that the network can be given once all queued sound is heard; off by one or two where sound is resampled.
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
    if (p->n_marks < ARRIVALS) p->marks[(p->first_mark + p->n_marks++) % ARRIVALS] = (arrival){p->written, lin_now()};
    else p->marks[(p->first_mark + p->n_marks - 1) % ARRIVALS].end = p->written; // counts as older than it is
}

/* ---- lists ----------------------------------------------------------------------------------------------------------------- */

static void unlist(lin_shard *s, lin_place *p)
{
    place_list *list = &s->lists[p->listed];
    *(p->before ? &p->before->behind : &list->first) = p->behind;
    *(p->behind ? &p->behind->before : &list->last) = p->before;
    list->n--;
    p->listed = UNLISTED;
}

// Into the list where a locked place belongs now.
static void enlist(const lin_engine *e, lin_place *p, double now)
{
    const int64_t n = new_frames(e, p);
    const int ripe = n >= e->options.chunk_frames || p->ending || p->end_at >= 0;
    const listed_in where = ripe ? RIPE : n > 0 ? WAITING : UNLISTED;
    lin_shard *s = p->shard;
    place_list *list = &s->lists[where];
    if (!p->open || p->ended || p->failed) return;
    pthread_mutex_lock(&s->lock);
    if (where > p->listed) {
        if (p->listed) unlist(s, p);
        p->listed = where;
        p->since = now;
        p->behind = NULL;
        p->before = list->last;
        *(list->last ? &list->last->behind : &list->first) = p;
        list->last = p;
        list->n++;
        const int wakes = where == RIPE ? list->n == s->awaited : s->awaited && list->first == p;
        if (wakes) pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- places ---------------------------------------------------------------------------------------------------------------- */

// As newly opened.
static void begin_life(lin_place *p)
{
    p->life++;
    p->taken = p->written = p->lost = p->lost_reported = p->lost_at = p->earlier = 0;
    p->end_at = p->last_end_at = -1;
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

// The same when it is not aside and no event of it is on its way. An engine thread may be calling from the stream's own event;
// waiting for that event would deadlock.
static lin_place *find_settled(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    while (p && (p->aside || (p->delivering && !own_thread))) {
        pthread_cond_wait(&p->settled, &p->lock);
        if (p->open && p->generation == (uint32_t)(id >> 32)) continue;
        pthread_mutex_unlock(&p->lock); // another thread closed it meanwhile
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
        if (e->shards[i].free && (!best || e->shards[i].n_open < best->n_open)) best = &e->shards[i];
    lin_place *p = best ? best->free : NULL;
    if (p) best->free = p->next_free, best->n_open++;
    else e->did.refused++;
    pthread_mutex_unlock(&e->lock);
    return p;
}

static void give_place(lin_engine *e, lin_place *p)
{
    pthread_mutex_lock(&e->lock);
    p->shard->n_open--;
    p->next_free = p->shard->free;
    p->shard->free = p;
    pthread_mutex_unlock(&e->lock);
}

// A front end and a queue for sound at this rate.
static lin_status prepare(const lin_engine *e, lin_place *p, const lin_engine_stream *o, lin_error *err)
{
    const int saves = o->save_s > 0 || o->state, queue = (int)ceil(e->options.queue_s * o->rate_hz);
    lin_session *s = &p->session;
    if (!s->features || s->options.rate_hz != o->rate_hz || (saves && !s->options.saves))
        LIN_TRY(lin_session_tune(s, o->rate_hz, !e->on_sound && (saves || o->rate_hz == e->rate_hz), err));
    p->room = queue > e->queue_room || o->rate_hz < e->rate_hz ? queue : e->queue_room;
    if (queue > e->queue_room) {
        p->queue = p->own_queue = lin_alloc((size_t)queue, sizeof *p->queue);
        if (!p->queue) return lin_no_memory(err, "a stream to be resampled", (size_t)queue * sizeof *p->queue);
    }
    if (!o->state) return LIN_OK;
    LIN_TRY(lin_state_parse(o->state, o->n_state, "the state", &p->state, err));
    p->earlier = p->state.about.samples;
    p->saved_at = (double)p->earlier / o->rate_hz;
    return lin_session_check_state(s, &p->state.about, err);
}

// Frees what belongs to this stream alone; a front end at the model's rate stays for the next one.
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

lin_status lin_engine_open_saved(lin_engine *e, const lin_engine_stream *o, lin_engine_id *id, lin_error *err)
{
    *id = 0;
    if ((o->save_s > 0 || o->state) && !e->options.saves)
        return lin_fail(err, LIN_UNSUPPORTED, "this engine was not created to save its streams");
    LIN_TRY(lin_audio_check_format("the stream", o->rate_hz, o->channels, err));
    lin_place *p = take_place(e);
    if (!p) return lin_fail(err, LIN_TOO_SMALL, "all %d streams are taken", e->options.capacity);
    pthread_mutex_lock(&p->lock);
    p->generation++;
    p->user = o->user;
    p->rate_hz = o->rate_hz;
    p->channels = o->channels;
    p->save_s = o->save_s;
    begin_life(p);
    const lin_status status = prepare(e, p, o, err);
    p->open = status == LIN_OK;
    if (p->open) *id = (uint64_t)p->generation << 32 | (uint32_t)p->number;
    else clear_out(e, p);
    pthread_mutex_unlock(&p->lock);
    if (status != LIN_OK) give_place(e, p);
    return status;
}

lin_status lin_engine_open(lin_engine *e, int rate_hz, int channels, void *user, lin_engine_id *id, lin_error *err)
{
    return lin_engine_open_saved(e, &(lin_engine_stream){.rate_hz = rate_hz, .channels = channels, .user = user}, id, err);
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
    if (own_thread) return lin_fail(err, LIN_INVALID, "a callback cannot give a stream other phrases");
    if (!shared || !shared->parts) return lin_fail(err, LIN_UNSUPPORTED, "greedy decoding does not use phrases");
    lin_place *p = find_settled(e, id, err);
    if (!p) return LIN_INVALID;
    const int fixed = shared->n_best > 1 && !p->anew;
    if (!fixed && phrases) {
        p->decoding = *shared;
        lin_phrases_use(phrases, &p->decoding);
    }
    if (!fixed) lin_session_decode_by(&p->session, phrases ? &p->decoding : shared);
    pthread_mutex_unlock(&p->lock);
    if (!fixed) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "phrases of a stream with alternatives (n_best over 1) cannot be changed");
}

// Whether it takes sound.
static lin_status check_takes(const lin_place *p, lin_error *err)
{
    if (!p->ending && !p->failed) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "the stream %s; reset it first", p->failed ? "failed" : "is finished");
}

lin_status lin_engine_finish(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    const lin_status status = check_takes(p, err);
    if (status == LIN_OK) {
        p->ending = 1;
        p->ended_at = lin_now();
        enlist(e, p, p->ended_at);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

lin_status lin_engine_push(lin_engine *e, lin_engine_id id, const float *samples, int n, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = n < 0 ? lin_fail(err, LIN_INVALID, "%d samples cannot be pushed", n) : check_takes(p, err);
    if (status == LIN_OK) status = lin_audio_check_samples(samples, n, p->channels, err);
    if (status != LIN_OK) {
        // refused
    } else if (n > room(p)) {
        if (p->lost == p->lost_reported) p->lost_at = p->written;
        p->lost += n;
        pthread_mutex_lock(&e->lock);
        e->did.lost_samples += n;
        pthread_mutex_unlock(&e->lock);
        status = lin_fail(err, LIN_TOO_SMALL, "%d samples do not fit the stream's queue of %g s: %lld lost so far", n,
                          e->options.queue_s, (long long)p->lost);
    } else {
        take_in(e, p, samples, n);
        enlist(e, p, lin_now());
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

lin_status lin_engine_end_utterance(lin_engine *e, lin_engine_id id, lin_error *err)
{
    lin_place *p = find(e, id, err);
    if (!p) return LIN_INVALID;
    lin_status status = check_takes(p, err);
    if (status == LIN_OK && e->on_sound && !e->options.ends.endpoints)
        status = lin_fail(err, LIN_UNSUPPORTED, "this engine's streams are one utterance each");
    const int is_new = p->last_end_at != p->written; // else nothing has come since the end before, and it changes nothing
    if (status == LIN_OK && is_new && p->end_at >= 0)
        status = lin_fail(err, LIN_TOO_SMALL, "the end before this one is not reached yet");
    if (status == LIN_OK && is_new) {
        p->end_at = p->last_end_at = p->written;
        enlist(e, p, lin_now());
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

/* ---- what is ready --------------------------------------------------------------------------------------------------------- */

static void sleep_until(lin_shard *s, double when) { lin_condition_wait_until(&s->wake, &s->lock, (int64_t)(1e9 * when)); }

// Fills s->taken with streams that are ready, the oldest first; waits for one, and a little for more. 0: the engine ends.
static int take(lin_shard *s)
{
    place_list *const ripe = &s->lists[RIPE], *const waiting = &s->lists[WAITING];
    const double most_s = 1e-3 * s->engine->options.max_wait_ms;
    int n = 0;
    pthread_mutex_lock(&s->lock);
    double now = lin_now();
    for (; !s->stop; now = lin_now()) {
        // When the one that has waited longest for a whole chunk must wait no more.
        const double deadline = waiting->first ? waiting->first->since + most_s : INFINITY;
        const int ready = ripe->n || deadline <= now;
        if (ripe->n >= s->enough || (ready && now >= s->rests)) break;
        s->awaited = ready ? s->enough : 1;
        if (ready) sleep_until(s, s->rests);
        else if (waiting->first) sleep_until(s, deadline);
        else pthread_cond_wait(&s->wake, &s->lock);
        s->awaited = 0;
    }
    while (!s->stop && n < s->batch) {
        lin_place *p = ripe->first ? ripe->first : waiting->first;
        if (!p || (p->listed == WAITING && p->since + most_s > now)) break;
        unlist(s, p);
        s->taken[n++] = p;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- results out ----------------------------------------------------------------------------------------------------------- */

// When the sound of a row had come. given: units that the session was given. Marks of older sound are dropped.
static double row_time(const lin_engine *e, lin_place *p, int64_t row, int64_t given)
{
    const lin_config *c = &e->recognizer->model->config;
    const int64_t frame = (row + 1) * c->stack - 1 + c->ahead, needed = e->on_sound ? frame * e->hop + e->window - 1 : frame;
    const double samples = (double)p->rate_hz / e->rate_hz * (e->on_sound ? 1 : e->hop); // of a unit
    const int64_t sample = p->taken - 1 - (int64_t)((double)(given - 1 - needed) * samples);
    while (p->n_marks && p->marks[p->first_mark].end <= sample) {
        p->first_mark = (p->first_mark + 1) % ARRIVALS;
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

// A second pass takes long, and so does finding who speaks: sound is taken in meanwhile, and whoever resets or closes the stream
// waits, as for a delivery.
static void go_aside(void *context, int begins)
{
    lin_place *p = context;
    if (!begins) pthread_mutex_lock(&p->lock);
    p->aside = begins;
    if (begins) pthread_mutex_unlock(&p->lock);
    else pthread_cond_broadcast(&p->settled);
}

// Makes results of what a tick gave for part i. *counted: its rows, without those behind an endpoint that resets the network.
static lin_status take_rows(lin_shard *s, lin_place *p, int i, const lin_tick_results *results, int *counted, lin_error *err)
{
    lin_session *session = &p->session;
    const int from = results->offsets[i], rows = results->offsets[i + 1] - from;
    const int64_t first = session->row, given = first * session->per_row + session->n;
    if (results->logp) {
        const float *logp = results->logp + (size_t)from * (size_t)s->engine->recognizer->V;
        LIN_TRY(lin_session_take(session, logp, rows, counted, err));
    } else { // the device has decoded them
        if (results->n_phones[i] < 0) return lin_fail(err, LIN_NUMERIC, "the log-probabilities are not numbers");
        LIN_TRY(lin_session_add(session, results->phones + from, results->n_phones[i], rows, err));
        *counted = rows;
    }
    for (int row = 0; row < *counted; row++) s->times[row] = row_time(s->engine, p, first + row, given);
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
    int pending = 0;
    lin_phone phone;
    if (decoded) LIN_TRY(lin_streams_pending(s->streams, p->slot, &phone, &pending, err));
    if (pending) LIN_TRY(lin_session_add(&p->session, &phone, 1, 0, err));
    LIN_TRY(lin_utterances_finish(&p->session.utterances, err));
    p->ended = 1;
    return tell(p, (lin_engine_event){.kind = LIN_ENGINE_FINISHED, .time_s = seconds_at(p, p->written)});
}

// Part i of a tick, for its stream, which is locked. LIN_STOPPED if the stream is another one since a callback.
static lin_status take_results(lin_shard *s, int i, const lin_tick_results *results, int *counted, lin_error *err)
{
    const entry *part = &s->entries[i];
    lin_place *p = part->place;
    LIN_TRY(take_rows(s, p, i, results, counted, err));
    if (s->engine->options.views) LIN_TRY(lin_utterances_show(&p->session.utterances, err));
    // Where the network was reset on the last rows, what lies behind them is processed once more.
    const int all = lin_session_unfed(&p->session) == 0;
    if (part->ends_utterance && all) {
        p->end_at = -1;
        LIN_TRY(lin_session_cut(&p->session, err)); // behind what had been pushed before lin_engine_end_utterance
    }
    LIN_TRY(save(s, p, err));
    return s->last[i] && all && lin_session_unfed(&p->session) == 0 ? end_stream(s, p, !results->logp, err) : LIN_OK;
}

static void finish_entry(const lin_shard *s, lin_place *p, lin_status status, const lin_error *err)
{
    const int64_t lost = p->lost - p->lost_reported;
    if (status == LIN_STOPPED) return;
    p->lost_reported = p->lost;
    const lin_engine_event loss = {.kind = LIN_ENGINE_LOST, .lost = lost, .time_s = seconds_at(p, p->lost_at)};
    if (lost && tell(p, loss) != LIN_OK) return;
    const lin_engine_event failed = {.kind = LIN_ENGINE_FAILED, .status = status, .message = err->message};
    p->failed = status != LIN_OK;
    if (!p->failed || tell(p, failed) == LIN_OK) enlist(s->engine, p, lin_now());
}

// The results of a tick of n streams to their owners.
static void deliver(lin_shard *s, int n, const lin_tick_results *results, lin_status tick, lin_error *err)
{
    lin_engine *e = s->engine;
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
        pthread_mutex_lock(&e->lock);
        for (int r = 0; r < rows; r++) lin_lags_add(&e->lags, now - s->times[r]);
        e->did.rows += rows;
        pthread_mutex_unlock(&e->lock);
    }
}

/* ---- sound in -------------------------------------------------------------------------------------------------------------- */

// Sound that waits goes through the front end, until there is enough for a tick or the utterance is to end behind it.
static lin_status hear(lin_place *p, lin_error *err)
{
    const int64_t until = p->end_at >= 0 ? p->end_at : p->written;
    if (p->anew) {
        p->anew = 0;
        lin_session *s = &p->session;
        const lin_status status = p->state.bytes ? lin_session_load(s, &p->state, err) : lin_session_reset(s, err);
        lin_state_free(&p->state);
        LIN_TRY(status);
    }
    for (int heard = 1; heard && p->taken < until; p->taken += heard) {
        const int at = (int)(p->taken % p->room), n = until - p->taken < p->room - at ? (int)(until - p->taken) : p->room - at;
        LIN_TRY(lin_session_hear(&p->session, p->queue + at, n, &heard, err));
    }
    const int ends = p->ending && p->taken == p->written && p->end_at < 0 && !p->session.finished;
    return ends ? lin_session_hear_end(&p->session, err) : LIN_OK;
}

// Copies the *n units that a locked stream brings to the tick to `to`. 0: it brings none after all.
static int bring(lin_shard *s, lin_place *p, entry *part, int *n, unsigned char *last, float *to)
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
    *last = session->finished && all;
    *part = (entry){.place = p, .life = p->life, .ends_utterance = all && p->end_at >= 0 && p->taken >= p->end_at};
    return *n || *last || part->ends_utterance;
}

// The tick's input from the n streams taken; returns how many take part.
static int gather(lin_shard *s, int n)
{
    float *input = lin_streams_input(s->streams);
    int m = 0;
    for (int i = 0; i < n; i++) {
        lin_place *p = s->taken[i];
        pthread_mutex_lock(&p->lock);
        const int takes_part = bring(s, p, &s->entries[m], &s->counts[m], &s->last[m], input);
        pthread_mutex_unlock(&p->lock);
        if (!takes_part) continue;
        s->slots[m] = p->slot;
        input += (size_t)s->counts[m] * (size_t)s->engine->width;
        m++;
    }
    return m;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------ */

static void *run(void *argument)
{
    lin_shard *s = argument;
    lin_engine *e = s->engine;
    lin_error err = {0};
    lin_tick_results results;
    own_thread = 1;
    // Otherwise two shards may share a core for some time before the system moves one of them.
    if (e->options.pins) lin_core_pin((int)(s - e->shards));
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
        s->rests = now + fmin(now - begun, GATHER_S);
        pthread_mutex_lock(&e->lock);
        e->did.ticks++;
        e->did.chunks += n;
        e->did.sound_s += gathered - begun;
        e->did.network_s += ticked - gathered;
        e->did.results_s += now - ticked;
        pthread_mutex_unlock(&e->lock);
    }
}

/* ---- what it did ----------------------------------------------------------------------------------------------------------- */

void lin_engine_stats_get(lin_engine *e, lin_engine_stats *stats)
{
    pthread_mutex_lock(&e->lock);
    *stats = e->did;
    stats->capacity = e->options.capacity;
    stats->shards = e->n_shards;
    stats->bytes_each = e->bytes_each;
    stats->seconds = lin_now() - e->since;
    stats->lag_p50_ms = 1e3 * lin_lags_quantile(&e->lags, 0.50);
    stats->lag_p95_ms = 1e3 * lin_lags_quantile(&e->lags, 0.95);
    stats->lag_p99_ms = 1e3 * lin_lags_quantile(&e->lags, 0.99);
    stats->lag_most_ms = 1e3 * e->lags.most_s;
    for (int i = 0; i < e->n_shards; i++) stats->open += e->shards[i].n_open;
    pthread_mutex_unlock(&e->lock);
}

void lin_engine_stats_reset(lin_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->did = (lin_engine_stats){0};
    e->lags = (lin_lags){0};
    e->since = lin_now();
    pthread_mutex_unlock(&e->lock);
}

/* ---- creation -------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_engine_options *o, lin_error *err)
{
    const lin_range ranges[] = {
        {"the number of streams", o->capacity, 1, MOST_CAPACITY},
        {"the number of threads", o->threads, 0, MOST_SHARDS},
        {"the number of shards", o->shards, 0, MOST_SHARDS},
        {"the number of frames of a chunk", o->chunk_frames, 1, MOST_CHUNK},
        {"the wait for more sound, in ms,", o->max_wait_ms, 0, 60000},
        {"the queue of sound, in seconds,", o->queue_s, 0.5, 60},
    };
    LIN_TRY(lin_check_ranges(ranges, sizeof ranges / sizeof *ranges, "an engine: ", err));
    if (o->second && !o->views) return lin_fail(err, LIN_INVALID, "a second pass needs views: it replaces what was settled");
    return o->ends.endpoints ? lin_endpoint_check(&o->ends.rules, err) : LIN_OK;
}

// What follows from the model and the options.
static void measure(lin_engine *e)
{
    const lin_recognizer *r = e->recognizer;
    const lin_config *c = &r->model->config;
    lin_engine_options *o = &e->options;
    e->on_sound = lin_streams_take_sound(r->encoder) && !r->fbank.dereverb && !o->saves && !o->second &&
                  !(o->decoding && o->decoding->voice);
    e->width = e->on_sound ? 1 : c->mel_bins;
    e->window = lin_mel_samples(&r->fbank, r->fbank.window_ms);
    e->hop = lin_mel_samples(&r->fbank, r->fbank.hop_ms);
    e->rate_hz = r->fbank.sample_hz;
    e->longest = 2 * o->chunk_frames; // one that fell behind catches up
    const int most_window = c->stack - 1 + c->ahead + e->longest;
    e->most_rows = lin_config_frames_out(c, most_window);
    e->queue_room = (int)ceil(o->queue_s * e->rate_hz) + e->longest * e->hop + e->window;
    e->queue_bytes = ((size_t)e->queue_room * sizeof(float) + 63) / 64 * 64;
    if (!o->threads) o->threads = lin_cores();
    if (!o->shards) o->shards = e->on_sound ? 1 : o->threads; // filterbanks on the host take several threads
    if (o->threads != o->shards || o->shards > lin_cores()) o->pins = 0;
    e->n_shards = o->shards < o->capacity ? o->shards : o->capacity;
}

static lin_status create_shard(lin_shard *s, int n_threads, lin_error *err)
{
    const lin_engine *e = s->engine;
    const lin_engine_options *o = &e->options;
    const int on_device = !e->recognizer->encoder->ops->on_host, most = on_device ? DEVICE_BATCH : HOST_BATCH;
    const int greedy = !o->decoding || (o->decoding->search.kind == LIN_SEARCH_GREEDY && !o->decoding->keywords);
    pthread_mutex_init(&s->lock, NULL);
    lin_condition_init(&s->wake);
    s->batch = on_device ? s->capacity : s->capacity < most ? s->capacity : most;
    s->enough = (ENOUGH_ROWS * e->recognizer->model->config.stack + o->chunk_frames - 1) / o->chunk_frames;
    if (s->enough > s->batch) s->enough = s->batch;
    const size_t batch = (size_t)s->batch, rows = (size_t)e->most_rows;
    const lin_streams_options options = {.capacity = s->capacity,
                                         .batch = most,
                                         .longest = e->longest,
                                         .fbank = e->on_sound ? &e->table : NULL,
                                         .decodes = e->on_sound && !o->ends.endpoints && !o->views && greedy,
                                         .search = o->decoding && o->decoding->language,
                                         .exact = o->exact,
                                         .threads = n_threads};
    LIN_TRY(lin_streams_create(e->recognizer->encoder, &options, &s->streams, err));
    if (!e->on_sound) LIN_TRY(lin_fbank_create(&e->recognizer->fbank, &s->fbank, err));
    if (o->second) LIN_TRY(lin_second_pass_create(e->recognizer, o->second, o->decoding, n_threads, &s->second, err));
    s->taken = lin_calloc(batch, sizeof *s->taken);
    s->entries = lin_calloc(batch, sizeof *s->entries);
    s->slots = lin_calloc(batch, sizeof *s->slots);
    s->counts = lin_calloc(batch, sizeof *s->counts);
    s->last = lin_calloc(batch, 1);
    s->times = lin_calloc(rows, sizeof *s->times);
    if (!s->taken || !s->entries || !s->slots || !s->counts || !s->last || !s->times)
        return lin_no_memory(err, "a shard", batch * (sizeof *s->taken + sizeof *s->entries + 2 * sizeof *s->slots + 1));
    return LIN_OK;
}

static void destroy_shard(lin_shard *s)
{
    if (!s->engine) return; // never created
    lin_streams_destroy(s->streams);
    lin_fbank_destroy(s->fbank);
    lin_second_pass_destroy(s->second);
    lin_state_free(&s->saving);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    void *const blocks[] = {s->taken, s->entries, s->slots, s->counts, s->last, s->times};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
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
                               .ends = o->ends,
                               .decoding = o->decoding,
                               .saves = !e->on_sound};
    for (int i = 0; i < o->capacity; i++) {
        lin_place *p = &e->places[i];
        const lin_utterances_sink sink = {.context = p, .show = o->views ? take_view : NULL,
                                          .settled = o->views ? NULL : take_settled, .aside = go_aside};
        how.network = p->shard->streams;
        how.slot = p->slot;
        how.beside = p->shard->fbank;
        how.pass = p->shard->second;
        LIN_TRY(lin_session_open(&p->session, e->recognizer, &how, &sink, err));
        LIN_TRY(lin_utterances_reserve(&p->session.utterances, e->most_rows, err));
    }
    e->bytes_each += lin_session_bytes(&e->places[0].session);
    return LIN_OK;
}

// Capacity and threads divided evenly; each shard owns a run of places.
static lin_status make_shards(lin_engine *e, lin_error *err)
{
    const int n = e->n_shards, capacity = e->options.capacity;
    e->shards = lin_calloc((size_t)n, sizeof *e->shards);
    if (!e->shards) return lin_no_memory(err, "shards", (size_t)n * sizeof *e->shards);
    if (e->on_sound) LIN_TRY(lin_fbank_table_create(&e->recognizer->fbank, &e->table, err));
    for (int i = 0, first = 0; i < n; i++) {
        lin_shard *s = &e->shards[i];
        const int threads = e->options.threads / n;
        s->engine = e;
        s->capacity = capacity / n + (i < capacity % n);
        for (int k = s->capacity; k--;) {
            lin_place *p = &e->places[first + k];
            p->shard = s;
            p->slot = k;
            p->next_free = s->free;
            s->free = p;
        }
        first += s->capacity;
        LIN_TRY(create_shard(s, threads > 1 ? threads : 1, err));
    }
    e->bytes_each += lin_streams_bytes_each(e->shards[0].streams);
    return LIN_OK;
}

static lin_status start(lin_engine *e, lin_error *err)
{
    LIN_TRY(make_places(e, err));
    LIN_TRY(make_shards(e, err));
    LIN_TRY(make_sessions(e, err));
    for (int i = 0; i < e->n_shards; i++) {
        lin_shard *s = &e->shards[i];
        s->started = pthread_create(&s->thread, NULL, run, s) == 0;
        if (!s->started) return lin_fail(err, LIN_NO_MEMORY, "cannot start a thread of the engine");
    }
    return LIN_OK;
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
    const lin_status status = start(e, err);
    if (status == LIN_OK) *out = e;
    else lin_engine_destroy(e);
    return status;
}

void lin_engine_destroy(lin_engine *e)
{
    if (!e) return;
    for (int i = 0; i < e->n_shards && e->shards; i++) {
        lin_shard *s = &e->shards[i];
        if (!s->started) continue;
        pthread_mutex_lock(&s->lock);
        s->stop = 1;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    for (int i = 0; i < e->options.capacity && e->places && e->memory; i++) {
        lin_place *p = &e->places[i];
        lin_session_close(&p->session);
        lin_state_free(&p->state);
        lin_free(p->own_queue);
        pthread_cond_destroy(&p->settled);
        pthread_mutex_destroy(&p->lock);
    }
    for (int i = 0; i < e->n_shards && e->shards; i++) destroy_shard(&e->shards[i]);
    pthread_mutex_destroy(&e->lock);
    lin_fbank_table_free(&e->table);
    lin_free(e->shards);
    lin_free(e->places);
    lin_free(e->memory);
    lin_free(e);
}
