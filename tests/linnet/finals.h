/*
 * finals.h - the utterances of a stream that have ended, of sessions and of several streams of an engine at once.
 */
#ifndef LIN_TESTS_LINNET_FINALS_H
#define LIN_TESTS_LINNET_FINALS_H

#include <pthread.h>

#include "linnet/engine.h"
#include "tests/linnet/stream_sound.h"

enum { MOST_ENDS = 16, STREAMS = 3 };

typedef struct heard {
    lin_result finals[MOST_ENDS];
    int ends, replaced[MOST_ENDS];
    int64_t rows[MOST_ENDS]; // behind the utterance
    uint64_t live;           // a hash of all that was shown of utterances that grew, without pieces of no change
} heard;

static lin_status hear(void *context, const lin_session_view *v, lin_error *err)
{
    heard *h = context;
    const lin_result *r = v->settled;
    if (v->end == LINNET_GROWS) {
        ck_assert_int_eq(v->replaced, 0);
        for (int i = 0; i < r->n_phones; i++) ck_assert_int_eq(r->phones[i].speaker, 0);
        for (int i = v->old_phones; i < r->n_phones; i++) h->live = h->live * 31 + (uint64_t)r->phones[i].label;
        return LIN_OK;
    }
    ck_assert_int_lt(h->ends, MOST_ENDS);
    const int i = h->ends++;
    h->replaced[i] = v->replaced;
    h->rows[i] = (int64_t)lround(v->processed_s / recognizer.row_seconds);
    lin_status status = lin_result_begin(&h->finals[i], "", NULL, 1, err);
    if (status == LIN_OK) status = lin_result_follow(&h->finals[i], r, err);
    for (int a = 0; a < r->n_alternatives && status == LIN_OK; a++)
        status = lin_result_append(lin_result_add_alternative(&h->finals[i]), &r->alternatives[a], err);
    h->finals[i].score = r->score;
    return status;
}

static void drop(heard *h)
{
    for (int i = 0; i < MOST_ENDS; i++) lin_result_free(&h->finals[i]);
    *h = (heard){0};
}

static lin_session *create(const lin_session_options *o, heard *h)
{
    lin_session *session;
    OK(session_create(o, &(lin_utterances_sink){.context = h, .show = hear}, &session, &err));
    return session;
}

// Samples from .. to-1 in pieces of random length up to `most`; all that is left, if to is SAMPLES, and the end of the sound.
static void feed(lin_session *session, int from, int to, int most)
{
    for (int at = from, n, i = 0; at < to; at += n, i++) {
        n = 1 + (int)lin_random_below(7, (uint64_t)i, (uint32_t)most);
        if (n > to - at) n = to - at;
        OK(lin_session_push(session, whole_sound + at, n, &err));
    }
    if (to == SAMPLES) OK(lin_session_finish(session, &err));
}

static void listen_to(const lin_session_options *o, int most, heard *h)
{
    lin_session *session = create(o, h);
    feed(session, 0, SAMPLES, most);
    session_destroy(session);
}

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int n_over;

static void deliver(void *context, const lin_engine_event *event)
{
    (void)context;
    ck_assert_int_ne(event->kind, LIN_ENGINE_FAILED);
    if (event->kind == LIN_ENGINE_VIEW) OK(hear(event->user, event->view, &err));
    pthread_mutex_lock(&lock);
    n_over += event->kind == LIN_ENGINE_FINISHED;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
}

// Streams that are sessions with these options; there is room for one more than STREAMS.
static lin_engine_options engine_options(const lin_session_options *o)
{
    lin_engine_options e = lin_engine_default(STREAMS + 1);
    e.threads = 2; // two streams share one
    e.queue_s = 10;
    e.endpoints = e.views = 1;
    e.endpoint = o->ends.rules;
    e.reset_at_endpoint = o->ends.resets;
    e.decoding = o->decoding;
    e.second = o->second;
    e.deliver = deliver;
    return e;
}

// Streams of an engine that hear the whole sound; one more is closed as soon as it has been given its sound.
static void listen_together(const lin_engine_options *how, heard got[STREAMS], heard *closed)
{
    lin_engine *engine;
    lin_engine_id id[STREAMS], other;
    OK(lin_engine_create(&recognizer, how, &engine, &err));
    n_over = 0;
    OK(lin_engine_open(engine, RATE, 1, closed, &other, &err));
    for (int i = 0; i < STREAMS; i++) OK(lin_engine_open(engine, RATE, 1, &got[i], &id[i], &err));
    OK(lin_engine_push(engine, other, whole_sound, SAMPLES, &err));
    for (int at = 0, n; at < SAMPLES; at += n) {
        n = SAMPLES - at < 3333 ? SAMPLES - at : 3333;
        for (int i = 0; i < STREAMS; i++) OK(lin_engine_push(engine, id[i], whole_sound + at, n, &err));
    }
    lin_engine_close(engine, other);
    for (int i = 0; i < STREAMS; i++) OK(lin_engine_finish(engine, id[i], &err));
    pthread_mutex_lock(&lock);
    while (n_over < STREAMS) pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    lin_engine_destroy(engine);
}

#endif
