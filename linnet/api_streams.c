// api_streams.c - linnet.h: sessions, whose views wait for linnet_session_next, and engines, whose events go from their
// threads to the caller's function or into a queue.

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"
#include "linnet/api.h"
#include "linnet/engine.h"
#include "linnet/stream.h"

// Phrases of a session, which its forks share.
typedef struct own_phrases {
    atomic_int owners;
    lin_phrases made;
} own_phrases;

struct linnet_session {
    linnet_model *model, *second; // second: of a second pass; NULL: none
    linnet_decoder *decoder; // NULL: greedy
    linnet_session_options options;
    lin_decoding decoding;
    own_phrases *phrases; // NULL: the decoder's
    lin_session session;
    linnet_utterance *seen; // [n]: n_ended that wait, the first `next` of them seen; one that grows; then those for later use
    int n_ended, next, changed, n, capacity; // changed: the one that grows, since the caller took it
    float *block; // [BLOCK, channels], of 16-bit samples
};

enum { BLOCK = 1024 };

/* ---- views that wait ------------------------------------------------------------------------------------------------------- */

static void release_utterance(linnet_utterance *seen)
{
    linnet_result_destroy(seen->settled);
    linnet_result_destroy(seen->provisional);
    *seen = (linnet_utterance){0};
}

static lin_status create_utterance(linnet_model *model, linnet_utterance *seen, lin_error *err)
{
    *seen = (linnet_utterance){0};
    lin_status status = lin_api_result_create(model, &seen->settled, err);
    if (status == LIN_OK) status = lin_api_result_create(model, &seen->provisional, err);
    if (status != LIN_OK) release_utterance(seen);
    return status;
}

static void clear_utterance(linnet_utterance *seen)
{
    lin_api_result_clear(seen->settled);
    lin_api_result_clear(seen->provisional);
    seen->number = 0;
    seen->end = LINNET_GROWS;
}

static lin_status show_utterance(linnet_utterance *seen, const lin_session_view *view, lin_error *err)
{
    const int ended = view->end != LINNET_GROWS;
    // The same utterance only grows; with alternatives, speakers, and by a second pass, its final form is another one.
    const int anew = view->replaced || (ended && (view->settled->n_alternatives || view->settled->n_voices));
    if (seen->number != view->utterance || anew) lin_api_result_clear(seen->settled);
    lin_api_result_clear(seen->provisional);
    lin_status status = lin_api_result_follow(seen->settled, view->settled, ended, err);
    if (status == LIN_OK) status = lin_api_result_follow(seen->provisional, view->provisional, 0, err);
    if (status != LIN_OK) {
        clear_utterance(seen);
        return status;
    }
    seen->number = view->utterance;
    seen->end = view->end;
    seen->incomplete = view->incomplete;
    seen->start_s = view->start_s;
    seen->end_s = view->end_s;
    seen->processed_s = view->processed_s;
    return LIN_OK;
}

static void drop_views(linnet_session *s)
{
    s->n_ended = s->next = s->changed = 0;
    if (s->n) clear_utterance(&s->seen[0]);
}

// Makes room for seen[n_ended].
static lin_status make_view(linnet_session *s, lin_error *err)
{
    if (s->n_ended < s->n) return LIN_OK;
    LIN_TRY(lin_grow_int(&s->seen, &s->capacity, (int64_t)s->n + 1, sizeof *s->seen, "utterances", err));
    LIN_TRY(create_utterance(s->model, &s->seen[s->n], err));
    s->n++;
    return LIN_OK;
}

static lin_status show(void *context, const lin_session_view *view, lin_error *err)
{
    linnet_session *s = context;
    LIN_TRY(make_view(s, err));
    LIN_TRY(show_utterance(&s->seen[s->n_ended], view, err));
    s->changed = view->end == LINNET_GROWS;
    if (s->changed) return LIN_OK;
    s->n_ended++;
    if (s->n_ended < s->n) clear_utterance(&s->seen[s->n_ended]);
    return LIN_OK;
}

// Moves views that the caller has seen behind the others.
static void recycle(linnet_session *s)
{
    for (int i = 0; s->next && i + s->next < s->n; i++) {
        const linnet_utterance old = s->seen[i];
        s->seen[i] = s->seen[i + s->next];
        s->seen[i + s->next] = old;
    }
    s->n_ended -= s->next;
    s->next = 0;
}

const linnet_utterance *linnet_session_next(linnet_session *s)
{
    if (s && s->next < s->n_ended) return &s->seen[s->next++];
    if (!s || !s->changed) return NULL;
    s->changed = 0;
    return &s->seen[s->n_ended];
}

/* ---- sessions -------------------------------------------------------------------------------------------------------------- */

static const linnet_session_options session_defaults = {
    .channels = 1, .channel = LINNET_MIX, .endpoints = 1, .silence_before_s = 5, .silence_after_s = 0.8, .longest_s = 30,
    .reset_at_endpoints = -1};

void linnet_session_options_init(linnet_session_options *options, size_t size)
{
    lin_api_init(options, size, &session_defaults, sizeof session_defaults);
}

static void drop_phrases(own_phrases *p)
{
    if (!p || atomic_fetch_sub(&p->owners, 1) > 1) return;
    lin_phrases_free(&p->made);
    lin_free(p);
}

// A session without the one inside.
static lin_status create_shell(linnet_model *model, const linnet_session_options *o, linnet_session **session, lin_error *err)
{
    linnet_session *s = lin_calloc(1, sizeof *s);
    *session = NULL;
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    s->model = lin_api_keep_model(model);
    s->decoder = lin_api_keep_decoder(o->decoder);
    s->second = lin_api_second_pass(o->second_pass, o->decoder);
    s->options = *o;
    if (!s->options.rate_hz) s->options.rate_hz = model->info.sample_hz;
    lin_status status = lin_api_decoding(model, o->decoder, &s->decoding, err);
    if (status == LIN_OK) *session = s;
    else linnet_session_destroy(s);
    return status;
}

linnet_status linnet_session_create(linnet_model *model, const linnet_session_options *given, linnet_session **session,
                                    linnet_error *err)
{
    linnet_session_options o = session_defaults;
    linnet_session *s;
    *session = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    LIN_TRY(lin_api_take(&o, sizeof o, given, "session_options", err));
    if (o.channel < LINNET_MIX) return lin_fail(err, LIN_INVALID, "channel is %d; must be LINNET_MIX, or 0 and more", o.channel);
    LIN_TRY(create_shell(model, &o, &s, err));
    lin_session_options how = lin_session_options_default();
    how.rate_hz = s->options.rate_hz;
    how.channels = o.channels;
    how.channel = o.channel == LINNET_MIX ? LIN_CHANNEL_MIX : o.channel;
    how.ends.resets = o.reset_at_endpoints < 0 ? !model->r.forgets : o.reset_at_endpoints;
    how.ends.rules.before_s = o.endpoints ? o.silence_before_s : 0;
    how.ends.rules.after_s = o.endpoints ? o.silence_after_s : 0;
    how.ends.rules.longest_s = o.endpoints ? o.longest_s : 0;
    how.decoding = &s->decoding;
    how.saves = o.can_save != 0;
    how.second = s->second ? &s->second->r : NULL;
    const lin_utterances_sink sink = {.context = s, .show = show};
    const lin_status status = lin_session_open(&s->session, &model->r, &how, &sink, err);
    if (status == LIN_OK) *session = s;
    else linnet_session_destroy(s);
    return status;
}

void linnet_session_destroy(linnet_session *s)
{
    if (!s) return;
    lin_session_close(&s->session);
    for (int i = 0; i < s->n; i++) release_utterance(&s->seen[i]);
    lin_free(s->seen);
    drop_phrases(s->phrases);
    lin_free(s->block);
    linnet_decoder_destroy(s->decoder);
    linnet_model_destroy(s->model);
    linnet_model_destroy(s->second);
    lin_free(s);
}

linnet_status linnet_session_push(linnet_session *s, const float *samples, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (n > INT_MAX) return lin_fail(err, LIN_INVALID, "%zu samples are too many for one call; the limit is %d", n, INT_MAX);
    recycle(s);
    return lin_session_push(&s->session, samples, (int)n, err);
}

linnet_status linnet_session_push_int16(linnet_session *s, const int16_t *samples, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    const size_t channels = (size_t)s->options.channels;
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (!s->block) s->block = lin_alloc(BLOCK * channels, sizeof *s->block);
    if (!s->block) return lin_no_memory(err, "samples", BLOCK * channels * sizeof *s->block);
    size_t done = 0, piece;
    recycle(s);
    do {
        piece = n - done < BLOCK ? n - done : BLOCK;
        for (size_t i = 0; i < piece * channels; i++) s->block[i] = (float)samples[done * channels + i] / 32768;
        LIN_TRY(lin_session_push(&s->session, s->block, (int)piece, err));
    } while ((done += piece) < n);
    return LIN_OK;
}

linnet_status linnet_session_end_utterance(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    recycle(s);
    return lin_session_end_utterance(&s->session, err);
}

linnet_status linnet_session_finish(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    recycle(s);
    return lin_session_finish(&s->session, err);
}

linnet_status linnet_session_reset(linnet_session *s, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    drop_views(s);
    return lin_session_reset(&s->session, err);
}

linnet_status linnet_session_set_phrases(linnet_session *s, const linnet_phrase *phrases, int n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    if (s->decoding.n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "phrases of a session with alternatives (n_best over 1) cannot be changed");
    own_phrases *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "phrases", sizeof *p);
    atomic_init(&p->owners, 1);
    lin_status status = lin_decoding_make_phrases(&s->decoding, phrases, n, &p->made, err);
    if (status != LIN_OK) {
        drop_phrases(p);
        return status;
    }
    lin_phrases_use(&p->made, &s->decoding);
    drop_phrases(s->phrases);
    s->phrases = p;
    return LIN_OK;
}

linnet_status linnet_session_save(linnet_session *s, void **bytes, size_t *n, linnet_error *err)
{
    *bytes = NULL;
    *n = 0;
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    lin_state state = {0};
    lin_status status = lin_session_save(&s->session, &state, err);
    if (status != LIN_OK) {
        lin_state_free(&state);
        return status;
    }
    lin_state_seal(&state);
    *bytes = state.bytes; // the caller's from now on
    *n = state.n;
    return LIN_OK;
}

linnet_status linnet_session_load(linnet_session *s, const void *bytes, size_t n, linnet_error *err)
{
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    lin_state state = {0};
    drop_views(s);
    lin_status status = bytes ? lin_state_parse(bytes, n, "the saved session", &state, err)
                              : lin_fail(err, LIN_INVALID, "there is no saved session");
    if (status == LIN_OK) status = lin_session_load(&s->session, &state, err);
    else lin_session_reset(&s->session, NULL);
    lin_state_free(&state);
    return status;
}

linnet_status linnet_session_fork(linnet_session *s, linnet_session **copy, linnet_error *err)
{
    *copy = NULL;
    if (!s) return lin_fail(err, LIN_INVALID, "there is no session");
    linnet_session *c;
    LIN_TRY(create_shell(s->model, &s->options, &c, err));
    const lin_status status = lin_session_fork(&s->session, &(lin_utterances_sink){.context = c, .show = show}, &c->session, err);
    if (status != LIN_OK) {
        linnet_session_destroy(c);
        return status;
    }
    c->phrases = s->phrases;
    if (c->phrases) atomic_fetch_add(&c->phrases->owners, 1);
    c->decoding.context = s->decoding.context;
    lin_session_decode_by(&c->session, &c->decoding);
    *copy = c;
    return LIN_OK;
}

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

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

static const linnet_engine_options engine_defaults = {
    .streams = 64, .endpoints = 1, .silence_before_s = 5, .silence_after_s = 0.8, .longest_s = 30, .reset_at_endpoints = -1,
    .queue_s = 1};

void linnet_engine_options_init(linnet_engine_options *options, size_t size)
{
    lin_api_init(options, size, &engine_defaults, sizeof engine_defaults);
}

// A process that was forked has a copy without the threads, whose locks may stay locked for ever.
static int is_copy(const linnet_engine *e) { return e->process != getpid(); }

static linnet_status check_engine(const linnet_engine *e, linnet_error *err)
{
    if (!e) return lin_fail(err, LIN_INVALID, "there is no engine");
    if (!is_copy(e)) return LINNET_OK;
    return lin_fail(err, LIN_INVALID, "the engine was created before this process was forked: create another one here");
}

/* ---- items; the engine is locked ------------------------------------------------------------------------------------------- */

static void free_item(item *it)
{
    if (!it) return;
    release_utterance(&it->seen);
    lin_free(it);
}

static lin_status take_item(linnet_engine *e, item **it, lin_error *err)
{
    *it = e->spare;
    if (*it) {
        e->spare = (*it)->next;
        clear_utterance(&(*it)->seen);
        return LIN_OK;
    }
    item *made = lin_calloc(1, sizeof *made);
    if (!made) return lin_no_memory(err, "an event", sizeof *made);
    lin_status status = create_utterance(e->model, &made->seen, err);
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

// From now on the item is not overwritten.
static void settle_item(const linnet_engine *e, const item *it)
{
    item **latest = latest_of(e, it->event.stream);
    if (*latest == it) *latest = NULL;
}

// Drops the events of a stream that is closed or reset.
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
    const int waits = it && it->event.stream == event->stream && it->seen.number == view->utterance;
    lin_status status = waits ? LIN_OK : take_item(e, &it, NULL);
    if (status == LIN_OK) {
        it->event = (linnet_event){.kind = (linnet_event_kind)event->kind,
                                   .stream = event->stream,
                                   .user = event->user,
                                   .utterance = view ? &it->seen : NULL,
                                   .time_s = event->time_s,
                                   .lost = event->lost,
                                   .status = event->status};
        if (view) status = show_utterance(&it->seen, view, NULL);
        if (status != LIN_OK && !waits) give_item(e, it);
    }
    e->missed += status != LIN_OK;
    if (view) *latest = grows && status == LIN_OK && !e->options.event ? it : NULL;
    if (status == LIN_OK && !waits) deliver(e, it);
    pthread_mutex_unlock(&e->lock);
}

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

linnet_status linnet_engine_create(linnet_model *model, const linnet_engine_options *given, linnet_engine **engine,
                                   linnet_error *err)
{
    linnet_engine_options o = engine_defaults;
    *engine = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    LIN_TRY(lin_api_take(&o, sizeof o, given, "engine_options", err));
    if (o.streams < 1) return lin_fail(err, LIN_INVALID, "streams is %d; must be at least 1", o.streams);
    linnet_engine *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an engine", sizeof *e);
    e->process = getpid();
    pthread_mutex_init(&e->lock, NULL);
    lin_condition_init(&e->ready);
    e->model = lin_api_keep_model(model);
    e->decoder = lin_api_keep_decoder(o.decoder);
    e->second = lin_api_second_pass(o.second_pass, o.decoder);
    e->options = o;
    e->last = &e->first;
    lin_status status = lin_api_decoding(model, o.decoder, &e->decoding, err);
    lin_engine_options how = lin_engine_default(o.streams);
    how.threads = o.threads;
    how.queue_s = o.queue_s;
    how.exact = o.exact != 0;
    how.ends.endpoints = o.endpoints != 0;
    how.ends.rules.before_s = o.silence_before_s;
    how.ends.rules.after_s = o.silence_after_s;
    how.ends.rules.longest_s = o.longest_s;
    how.ends.resets = o.reset_at_endpoints < 0 ? !model->r.forgets : o.reset_at_endpoints;
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
    LIN_TRY(check_engine(e, err));
    return lin_engine_open(e->engine, rate_hz, channels, user, id, err);
}

linnet_status linnet_engine_push(linnet_engine *e, linnet_stream id, const float *samples, size_t n, linnet_error *err)
{
    LIN_TRY(check_engine(e, err));
    if (n && !samples) return lin_fail(err, LIN_INVALID, "there are no samples");
    if (n > INT_MAX) return lin_fail(err, LIN_TOO_SMALL, "%zu samples do not fit the queue", n);
    return lin_engine_push(e->engine, id, samples, (int)n, err);
}

linnet_status linnet_engine_room(linnet_engine *e, linnet_stream id, size_t *n, linnet_error *err)
{
    LIN_TRY(check_engine(e, err));
    int samples;
    double waiting_s;
    const lin_status status = lin_engine_room(e->engine, id, &samples, &waiting_s, err);
    *n = (size_t)samples;
    return status;
}

linnet_status linnet_engine_finish(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    LIN_TRY(check_engine(e, err));
    return lin_engine_finish(e->engine, id, err);
}

linnet_status linnet_engine_reset(linnet_engine *e, linnet_stream id, linnet_error *err)
{
    LIN_TRY(check_engine(e, err));
    const lin_status status = lin_engine_reset(e->engine, id, err);
    if (status == LIN_OK) drop_items(e, id);
    return status;
}

void linnet_engine_close(linnet_engine *e, linnet_stream id)
{
    if (!e || is_copy(e)) return;
    lin_engine_close(e->engine, id); // waits for a callback that is running, except on this thread
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
    LIN_TRY(check_engine(e, err));
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
