// api_engine.c - linnet.h: many streams. Events go from the engine's threads to the caller's function, or into a queue.

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"
#include "linnet/api.h"
#include "linnet/engine.h"
#include "linnet/session.h"

// An event, and the utterance that it may be about.
typedef struct item {
    linnet_event event;
    linnet_utterance seen;
    struct item *next;
} item;

// What belongs to one open stream.
typedef struct stream {
    struct linnet_engine *engine;
    linnet_stream id;
    void *user;
    int closed, busy; // busy: its events are being told
    item *latest; // waits, is of this stream's last utterance, and that still grows: overwritten by what follows
    struct stream *next;
} stream;

struct linnet_engine {
    linnet_model *model;
    linnet_decoder *decoder;
    linnet_engine_options options;
    lin_decoding decoding;
    lin_engine *engine;
    pthread_mutex_t lock; // of all below
    pthread_cond_t ready;
    stream *streams; // open
    int64_t missed;  // events for which there was no memory
    item *first, **last, *spare, *taken; // events that wait; room; what linnet_engine_next returned
};

static const linnet_engine_options defaults = {.streams = 64, .endpoints = 1, .silence_before_s = 5, .silence_after_s = 0.8,
                                               .longest_s = 30, .reset_at_endpoints = -1, .queue_s = 1};

void linnet_engine_options_init(linnet_engine_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

/* ---- items; the engine is locked ------------------------------------------------------------------------------------------- */

static void free_item(item *it)
{
    if (!it) return;
    lin_api_utterance_release(&it->seen);
    lin_free(it);
}

static lin_status take_item(linnet_engine *e, item **it, lin_error *err)
{
    *it = e->spare;
    if (*it) {
        e->spare = (*it)->next;
        lin_api_utterance_clear(&(*it)->seen);
        return LIN_OK;
    }
    item *made = lin_calloc(1, sizeof *made);
    if (!made) return lin_no_memory(err, "an event", sizeof *made);
    lin_status status = lin_api_utterance_create(e->model, &made->seen, err);
    if (status == LIN_OK) *it = made;
    else lin_free(made);
    return status;
}

static void give_item(linnet_engine *e, item *it)
{
    it->next = e->spare;
    e->spare = it;
}

static void append_item(linnet_engine *e, item *it)
{
    it->next = NULL;
    *e->last = it;
    e->last = &it->next;
    pthread_cond_signal(&e->ready);
}

// Of a stream that is closed or reset.
static void drop_items(linnet_engine *e, linnet_stream id)
{
    item *it = e->first;
    e->first = NULL;
    e->last = &e->first;
    while (it) {
        item *next = it->next;
        if (it->event.stream == id) give_item(e, it);
        else append_item(e, it);
        it = next;
    }
}

/* ---- events, on a thread of the engine ------------------------------------------------------------------------------------- */

static item *new_event(stream *s, linnet_event_kind kind, double time_s)
{
    item *it;
    if (take_item(s->engine, &it, NULL) != LIN_OK) {
        s->engine->missed++;
        return NULL;
    }
    it->event = (linnet_event){.kind = kind, .stream = s->id, .user = s->user, .time_s = time_s};
    return it;
}

// The engine is locked; where there is a callback it is called without the lock.
static void deliver(stream *s, item *it)
{
    linnet_engine *e = s->engine;
    if (!e->options.event) {
        append_item(e, it);
        return;
    }
    pthread_mutex_unlock(&e->lock);
    e->options.event(e->options.context, &it->event);
    pthread_mutex_lock(&e->lock);
    give_item(e, it);
}

static void show(stream *s, const lin_session_view *v)
{
    linnet_engine *e = s->engine;
    const int ended = v->end != LIN_SESSION_OPEN;
    if (!ended && !e->options.growing) return;
    item *it = s->latest;
    if (it && it->seen.number == v->utterance) {
        if (lin_api_utterance_show(&it->seen, v, NULL) != LIN_OK) e->missed++;
        it->event.time_s = v->processed_s;
    } else {
        it = new_event(s, LINNET_UTTERANCE, v->processed_s);
        if (!it) return;
        it->event.utterance = &it->seen;
        if (lin_api_utterance_show(&it->seen, v, NULL) != LIN_OK) {
            e->missed++;
            give_item(e, it);
            return;
        }
        s->latest = e->options.event ? NULL : it;
        deliver(s, it);
    }
    if (ended) s->latest = NULL;
}

static void tell(stream *s, linnet_event_kind kind, const lin_engine_event *event)
{
    item *it = new_event(s, kind, event->end_s);
    if (!it) return;
    it->event.lost = event->lost;
    it->event.status = (linnet_status)event->status;
    deliver(s, it);
}

// Events of a stream begin: 0, and nothing is locked, if it is closed.
static int begin(stream *s, lin_engine_id id)
{
    pthread_mutex_lock(&s->engine->lock);
    s->busy = 1;
    s->id = id; // may be known here before lin_engine_open has returned
    return !s->closed;
}

static void end(stream *s)
{
    s->busy = 0;
    const int orphan = s->closed == 2; // closed by its own event
    pthread_mutex_unlock(&s->engine->lock);
    if (orphan) lin_free(s);
}

static void take_view(void *context, lin_engine_id id, void *user, const lin_session_view *view)
{
    (void)context;
    if (begin(user, id)) show(user, view);
    end(user);
}

static void take_events(void *context, lin_engine_id id, void *user, const lin_engine_event *events, int n)
{
    stream *s = user;
    int open = begin(s, id);
    (void)context;
    for (int i = 0; i < n && open; i++) {
        const lin_engine_kind kind = events[i].kind;
        if (kind == LIN_ENGINE_LOST) tell(s, LINNET_LOST, &events[i]);
        if (kind == LIN_ENGINE_FAILED) tell(s, LINNET_FAILED, &events[i]);
        if (kind == LIN_ENGINE_FINISHED) tell(s, LINNET_ENDED, &events[i]);
        open = !s->closed;
    }
    end(s);
}

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

static lin_status create(linnet_model *model, const linnet_engine_options *given, linnet_engine **engine, lin_error *err)
{
    linnet_engine_options o = defaults;
    *engine = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    lin_status status = lin_api_take(&o, sizeof o, given, "engine_options", err);
    if (status == LIN_OK && o.streams < 1) status = lin_fail(err, LIN_INVALID, "streams is %d: at least 1", o.streams);
    if (status != LIN_OK) return status;
    linnet_engine *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an engine", sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    lin_condition_init(&e->ready);
    e->model = lin_api_keep_model(model);
    e->decoder = lin_api_keep_decoder(o.decoder);
    e->options = o;
    e->last = &e->first;
    status = lin_api_decoding(model, o.decoder, &e->decoding, err);
    lin_engine_options how = lin_engine_default(o.streams);
    how.threads = o.threads;
    how.queue_s = o.queue_s;
    how.exact = o.exact != 0;
    how.endpoints = o.endpoints != 0;
    how.endpoint.before_s = o.silence_before_s;
    how.endpoint.after_s = o.silence_after_s;
    how.endpoint.longest_s = o.longest_s;
    how.reset_at_endpoint = o.reset_at_endpoints < 0 ? !model->r.forgets : o.reset_at_endpoints;
    how.decoding = &e->decoding;
    how.show = take_view;
    how.deliver = take_events;
    how.context = e;
    if (status == LIN_OK) status = lin_engine_create(&model->r, &how, &e->engine, err);
    if (status == LIN_OK) *engine = e;
    else linnet_engine_destroy(e);
    return status;
}

linnet_status linnet_engine_create(linnet_model *model, const linnet_engine_options *options, linnet_engine **engine,
                                   linnet_error *err)
{
    lin_error why = {0};
    return lin_api_end(create(model, options, engine, &why), &why, err);
}

static void free_items(item *it)
{
    while (it) {
        item *next = it->next;
        free_item(it);
        it = next;
    }
}

void linnet_engine_destroy(linnet_engine *e)
{
    if (!e) return;
    lin_engine_destroy(e->engine); // no event comes afterwards
    while (e->streams) {
        stream *s = e->streams;
        e->streams = s->next;
        lin_free(s);
    }
    free_items(e->first);
    free_items(e->spare);
    free_item(e->taken);
    pthread_cond_destroy(&e->ready);
    pthread_mutex_destroy(&e->lock);
    linnet_decoder_destroy(e->decoder);
    linnet_model_destroy(e->model);
    lin_free(e);
}

static void unlink_stream(linnet_engine *e, const stream *s)
{
    stream **at = &e->streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
}

// NULL if it is not open.
static stream *find_stream(const linnet_engine *e, linnet_stream id)
{
    stream *s = e->streams;
    while (s && s->id != id) s = s->next;
    return s;
}

static lin_status open_stream(linnet_engine *e, int rate_hz, int channels, void *user, linnet_stream *id, lin_error *err)
{
    *id = 0;
    stream *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a stream", sizeof *s);
    s->engine = e;
    s->user = user;
    pthread_mutex_lock(&e->lock);
    s->next = e->streams;
    e->streams = s;
    pthread_mutex_unlock(&e->lock);
    const lin_status status = lin_engine_open(e->engine, rate_hz, channels, s, id, err);
    pthread_mutex_lock(&e->lock);
    s->id = *id;
    if (status != LIN_OK) unlink_stream(e, s);
    pthread_mutex_unlock(&e->lock);
    if (status != LIN_OK) lin_free(s);
    return status;
}

linnet_status linnet_engine_open(linnet_engine *e, int rate_hz, int channels, void *user, linnet_stream *id, linnet_error *err)
{
    lin_error why = {0};
    return lin_api_end(open_stream(e, rate_hz, channels, user, id, &why), &why, err);
}

linnet_status linnet_engine_push(linnet_engine *e, linnet_stream id, const float *samples, size_t n, linnet_error *err)
{
    lin_error why = {0};
    lin_status status;
    if (n && !samples) status = lin_fail(&why, LIN_INVALID, "there are no samples");
    else if (n > INT_MAX) status = lin_fail(&why, LIN_TOO_SMALL, "%zu samples do not fit the queue", n);
    else status = lin_engine_push(e->engine, id, samples, (int)n, &why);
    return lin_api_end(status, &why, err);
}

linnet_status linnet_engine_room(linnet_engine *e, linnet_stream id, size_t *n, linnet_error *err)
{
    lin_error why = {0};
    int samples;
    double waiting_s;
    const lin_status status = lin_engine_room(e->engine, id, &samples, &waiting_s, &why);
    *n = (size_t)samples;
    return lin_api_end(status, &why, err);
}

linnet_status linnet_engine_finish(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    lin_error why = {0};
    return lin_api_end(lin_engine_finish(e->engine, id, &why), &why, err);
}

linnet_status linnet_engine_reset(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    lin_error why = {0};
    const lin_status status = lin_engine_reset(e->engine, id, &why);
    pthread_mutex_lock(&e->lock);
    if (status == LIN_OK) drop_items(e, id);
    stream *s = status == LIN_OK ? find_stream(e, id) : NULL;
    if (s) s->latest = NULL;
    pthread_mutex_unlock(&e->lock);
    return lin_api_end(status, &why, err);
}

void linnet_engine_close(linnet_engine *e, linnet_stream id)
{
    pthread_mutex_lock(&e->lock);
    stream *s = id ? find_stream(e, id) : NULL; // 0: one that is being opened
    if (s) {
        unlink_stream(e, s);
        s->closed = 1;
    }
    pthread_mutex_unlock(&e->lock);
    if (!s) return;
    lin_engine_close(e->engine, id); // waits for events that are being told, but for those of this thread
    pthread_mutex_lock(&e->lock);
    drop_items(e, id);
    const int busy = s->busy;
    if (busy) s->closed = 2;
    pthread_mutex_unlock(&e->lock);
    if (!busy) lin_free(s);
}

const linnet_event *linnet_engine_next(linnet_engine *e, double wait_s)
{
    const int64_t until = lin_now_ns() + (int64_t)(fmin(fmax(wait_s, 0), 1e6) * 1e9);
    pthread_mutex_lock(&e->lock);
    if (e->taken) give_item(e, e->taken);
    e->taken = NULL;
    while (!e->first && wait_s > 0 && lin_condition_wait_until(&e->ready, &e->lock, until) == 0) continue;
    item *it = e->first;
    if (it) {
        e->first = it->next;
        if (!e->first) e->last = &e->first;
        e->taken = it;
        for (stream *s = e->streams; s; s = s->next) {
            if (s->latest == it) s->latest = NULL;
        }
    }
    pthread_mutex_unlock(&e->lock);
    return it ? &it->event : NULL;
}

linnet_status linnet_engine_measure(linnet_engine *e, linnet_engine_stats *stats, linnet_error *err)
{
    lin_error why = {0};
    lin_engine_stats now;
    const size_t size = stats ? stats->size : 0;
    if (size <= sizeof size || size > 1 << 16)
        return lin_api_end(lin_fail(&why, LIN_INVALID, "stats->size is not set"), &why, err);
    lin_engine_stats_get(e->engine, &now);
    pthread_mutex_lock(&e->lock);
    const int64_t missed = e->missed;
    pthread_mutex_unlock(&e->lock);
    const linnet_engine_stats all = {.open = now.open, .streams = now.capacity, .stream_bytes = now.bytes_each,
                                     .lag_p50_ms = now.lag_p50_ms, .lag_p95_ms = now.lag_p95_ms, .lag_p99_ms = now.lag_p99_ms,
                                     .lost = now.lost_samples, .missed = missed};
    lin_api_init(stats, size, &all, sizeof all);
    return lin_api_end(LIN_OK, &why, err);
}
