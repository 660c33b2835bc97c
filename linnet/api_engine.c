// api_engine.c - linnet.h: many streams. Events go from the engine's threads to the caller's function, or into a queue.

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

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

struct linnet_engine {
    linnet_model *model, *second; // second: of a second pass; NULL: none
    linnet_decoder *decoder;
    linnet_engine_options options;
    lin_decoding decoding;
    lin_engine *engine;
    pid_t process; // in which its threads are
    pthread_mutex_t lock; // of all below
    pthread_cond_t ready;
    int64_t missed; // events for which there was no memory
    item *first, **last, *spare, *taken; // events that wait; room; what linnet_engine_next returned
    item **latest; // [streams], by place: waits, and is of an utterance that still grows: overwritten by what follows
};

static const linnet_engine_options defaults = {.streams = 64, .endpoints = 1, .silence_before_s = 5, .silence_after_s = 0.8,
                                               .longest_s = 30, .reset_at_endpoints = -1, .queue_s = 1};

void linnet_engine_options_init(linnet_engine_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

// A process that was forked has a copy without the threads, whose locks may stay locked for ever.
static int is_copy(const linnet_engine *e) { return e->process != getpid(); }

static linnet_status check(const linnet_engine *e, linnet_error *err)
{
    if (!e) return lin_fail(err, LIN_INVALID, "there is no engine");
    if (!is_copy(e)) return LINNET_OK;
    return lin_fail(err, LIN_INVALID, "the engine was created before this process was forked: create another one here");
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

static item **latest_of(const linnet_engine *e, linnet_stream id) { return &e->latest[(uint32_t)id]; }

// It is no longer overwritten.
static void settle_item(const linnet_engine *e, const item *it)
{
    item **latest = latest_of(e, it->event.stream);
    if (*latest == it) *latest = NULL;
}

// Of a stream that is closed or reset.
static void drop_items(linnet_engine *e, linnet_stream id)
{
    pthread_mutex_lock(&e->lock);
    item *it = e->first;
    e->first = NULL;
    e->last = &e->first;
    while (it) {
        item *next = it->next;
        if (it->event.stream == id) {
            settle_item(e, it);
            give_item(e, it);
        } else {
            append_item(e, it);
        }
        it = next;
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- events, on a thread of the engine ------------------------------------------------------------------------------------- */

// Where there is a callback it is called without the lock.
static void deliver(linnet_engine *e, item *it)
{
    if (!e->options.event) {
        append_item(e, it);
        return;
    }
    pthread_mutex_unlock(&e->lock);
    e->options.event(e->options.context, &it->event);
    pthread_mutex_lock(&e->lock);
    give_item(e, it);
}

static void take(void *context, const lin_engine_event *event)
{
    linnet_engine *e = context;
    const lin_session_view *view = event->view;
    const int grows = view && view->end == LINNET_GROWS;
    if (grows && !e->options.growing) return;
    pthread_mutex_lock(&e->lock);
    item **latest = latest_of(e, event->stream), *it = view ? *latest : NULL;
    const int waits = it && it->seen.number == view->utterance;
    lin_status status = waits ? LIN_OK : take_item(e, &it, NULL);
    if (status == LIN_OK) {
        it->event = (linnet_event){.kind = (linnet_event_kind)event->kind,
                                   .stream = event->stream,
                                   .user = event->user,
                                   .utterance = view ? &it->seen : NULL,
                                   .time_s = event->time_s,
                                   .lost = event->lost,
                                   .status = event->status};
        if (view) status = lin_api_utterance_show(&it->seen, view, NULL);
        if (status != LIN_OK && !waits) give_item(e, it);
    }
    e->missed += status != LIN_OK;
    if (view) *latest = grows && status == LIN_OK && !e->options.event ? it : NULL;
    if (status == LIN_OK && !waits) deliver(e, it);
    pthread_mutex_unlock(&e->lock);
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
    e->process = getpid();
    pthread_mutex_init(&e->lock, NULL);
    lin_condition_init(&e->ready);
    e->model = lin_api_keep_model(model);
    e->decoder = lin_api_keep_decoder(o.decoder);
    if (o.second_pass) e->second = lin_api_keep_model(o.second_pass);
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
    how.views = 1;
    how.second = e->second ? &e->second->r : NULL;
    how.deliver = take;
    how.context = e;
    if (status == LIN_OK) status = lin_engine_create(&model->r, &how, &e->engine, err);
    if (status == LIN_OK && !(e->latest = lin_calloc((size_t)o.streams, sizeof *e->latest)))
        status = lin_no_memory(err, "streams", (size_t)o.streams * sizeof *e->latest);
    if (status == LIN_OK) *engine = e;
    else linnet_engine_destroy(e);
    return status;
}

linnet_status linnet_engine_create(linnet_model *model, const linnet_engine_options *options, linnet_engine **engine,
                                   linnet_error *err)
{
    return create(model, options, engine, err);
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
    if (!e || is_copy(e)) return; // a copy stays as it is
    lin_engine_destroy(e->engine); // no event comes afterwards
    free_items(e->first);
    free_items(e->spare);
    free_item(e->taken);
    lin_free(e->latest);
    pthread_cond_destroy(&e->ready);
    pthread_mutex_destroy(&e->lock);
    linnet_decoder_destroy(e->decoder);
    linnet_model_destroy(e->model);
    linnet_model_destroy(e->second);
    lin_free(e);
}

linnet_status linnet_engine_open(linnet_engine *e, int rate_hz, int channels, void *user, linnet_stream *id, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    return lin_engine_open(e->engine, rate_hz, channels, user, id, err);
}

linnet_status linnet_engine_push(linnet_engine *e, linnet_stream id, const float *samples, size_t n, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (n > INT_MAX) return lin_fail(err, LIN_TOO_SMALL, "%zu samples do not fit the queue", n);
    return lin_engine_push(e->engine, id, samples, (int)n, err);
}

linnet_status linnet_engine_room(linnet_engine *e, linnet_stream id, size_t *n, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    int samples;
    double waiting_s;
    const lin_status status = lin_engine_room(e->engine, id, &samples, &waiting_s, err);
    *n = (size_t)samples;
    return status;
}

linnet_status linnet_engine_finish(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    return lin_engine_finish(e->engine, id, err);
}

linnet_status linnet_engine_reset(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    const lin_status status = lin_engine_reset(e->engine, id, err);
    if (status == LIN_OK) drop_items(e, id);
    return status;
}

void linnet_engine_close(linnet_engine *e, linnet_stream id)
{
    if (!e || is_copy(e)) return;
    lin_engine_close(e->engine, id); // waits for an event that is being told, but for one of this thread
    drop_items(e, id);
}

const linnet_event *linnet_engine_next(linnet_engine *e, double wait_s)
{
    if (!e || is_copy(e)) return NULL;
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
        settle_item(e, it);
    }
    pthread_mutex_unlock(&e->lock);
    return it ? &it->event : NULL;
}

linnet_status linnet_engine_measure(linnet_engine *e, linnet_engine_stats *stats, linnet_error *err)
{
    if (check(e, err) != LINNET_OK) return LINNET_INVALID;
    lin_engine_stats now;
    const size_t size = stats ? stats->size : 0;
    if (size <= sizeof size || size > 1 << 16) return lin_fail(err, LIN_INVALID, "stats->size is not set");
    lin_engine_stats_get(e->engine, &now);
    pthread_mutex_lock(&e->lock);
    const int64_t missed = e->missed;
    pthread_mutex_unlock(&e->lock);
    const linnet_engine_stats all = {.open = now.open, .streams = now.capacity, .stream_bytes = now.bytes_each,
                                     .lag_p50_ms = now.lag_p50_ms, .lag_p95_ms = now.lag_p95_ms, .lag_p99_ms = now.lag_p99_ms,
                                     .lost = now.lost_samples, .missed = missed};
    lin_api_init(stats, size, &all, sizeof all);
    return LIN_OK;
}
