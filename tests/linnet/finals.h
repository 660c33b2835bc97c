/*
 * finals.h - the utterances of a stream that have ended, of sessions and of several streams of an engine at once.
 */
#ifndef LIN_TESTS_LINNET_FINALS_H
#define LIN_TESTS_LINNET_FINALS_H

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

static void same_result(const lin_result *got, const lin_result *want)
{
    ck_assert_int_eq(got->n_phones, want->n_phones);
    ck_assert_int_eq(got->n_words, want->n_words);
    ck_assert_int_eq(got->n_alternatives, want->n_alternatives);
    ck_assert(got->score == want->score);
    for (int i = 0; i < got->n_phones; i++) {
        const lin_result_phone *a = &got->phones[i], *b = &want->phones[i];
        ck_assert_msg(a->label == b->label && a->start_s == b->start_s && a->end_s == b->end_s && a->confidence == b->confidence,
                      "phone %d is %d at %.3f-%.3f, wanted %d at %.3f-%.3f", i, a->label, a->start_s, a->end_s, b->label,
                      b->start_s, b->end_s);
        ck_assert_int_eq(a->speaker, b->speaker);
    }
    for (int i = 0; i < got->n_words; i++) {
        const lin_result_word *a = &got->words[i], *b = &want->words[i];
        ck_assert_str_eq(lin_result_word_text(got, i), lin_result_word_text(want, i));
        ck_assert(a->start_s == b->start_s && a->end_s == b->end_s && a->confidence == b->confidence);
    }
    for (int i = 0; i < got->n_alternatives; i++) ck_assert_int_eq(got->alternatives[i].n_phones, want->alternatives[i].n_phones);
    ck_assert_int_eq(got->n_voices, want->n_voices);
    if (got->n_voices) ck_assert_mem_eq(got->voices, want->voices, (size_t)(got->n_voices * got->voice_size) * sizeof(float));
}

// The utterances of `got` are those of `want` from number `first` on.
static void same(const heard *got, const heard *want, int first)
{
    ck_assert_int_eq(got->ends, want->ends - first);
    for (int i = 0; i < got->ends; i++) {
        ck_assert_int_eq(got->rows[i], want->rows[i + first]);
        ck_assert_int_eq(got->replaced[i], want->replaced[i + first]);
        same_result(&got->finals[i], &want->finals[i + first]);
    }
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

static atomic_int n_over;

static void deliver(void *context, const lin_engine_event *event)
{
    (void)context;
    ck_assert_int_ne(event->kind, LIN_ENGINE_FAILED);
    if (event->kind == LIN_ENGINE_VIEW) OK(hear(event->user, event->view, &err));
    n_over += event->kind == LIN_ENGINE_FINISHED;
}

// There is room for one more than STREAMS.
static lin_engine_options options_of_engine(const lin_session_options *o)
{
    lin_engine_options e = engine_options(o, STREAMS + 1, deliver);
    e.threads = 2; // two streams share one
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
    wait_for(&n_over, STREAMS);
    lin_engine_destroy(engine);
}

#endif
