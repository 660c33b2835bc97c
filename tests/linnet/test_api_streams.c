// linnet.h: sessions and engines, failing allocations, and what is allocated while sound streams in.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "model/model.h"
#include "tests/linnet/api_sound.h"

/* ---- sessions -------------------------------------------------------------------------------------------------------------- */

typedef struct transcript {
    char text[4096]; // of utterances that ended, a line each
    int views, ended, provisional;
    linnet_end last;
} transcript;

static void drain(linnet_session *s, transcript *t)
{
    const linnet_utterance *u;
    while ((u = linnet_session_next(s)) != NULL) {
        t->views++;
        t->provisional += linnet_result_phones(u->provisional);
        ck_assert_double_le(u->start_s, u->end_s);
        if (u->end == LINNET_GROWS) continue;
        ck_assert_int_eq(u->number, ++t->ended);
        ck_assert_int_eq(linnet_result_phones(u->provisional), 0);
        snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s", linnet_result_text(u->settled));
        for (int i = 0; i < linnet_result_keywords(u->settled); i++) {
            const linnet_keyword *k = linnet_result_keyword(u->settled, i);
            snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " (%s %.3f-%.3f %.4f)", k->text, k->start_s,
                     k->end_s, (double)k->confidence);
        }
        strcat(t->text, "\n");
        t->last = u->end;
    }
    ck_assert_ptr_null(linnet_session_next(s));
}

static linnet_session *make_session_with(linnet_decoder *d, int can_save, int resets)
{
    linnet_session *s;
    DEFAULTS(linnet_session_options, o);
    ck_assert_int_eq(o.reset_at_endpoints, -1);
    o.decoder = d;
    o.can_save = can_save;
    o.silence_after_s = 0.4;
    o.reset_at_endpoints = resets;
    require_ok(linnet_session_create(model, &o, &s, &err));
    return s;
}

// Reset, so that both halves of the sound give phones and words.
static linnet_session *make_session(linnet_decoder *d, int can_save) { return make_session_with(d, can_save, 1); }

// From sample `from` on, in pieces of `piece`, asking for results after each.
static void talk(linnet_session *s, size_t from, size_t piece, transcript *t)
{
    for (size_t at = from; at < N; at += piece) {
        require_ok(linnet_session_push(s, sound + at, N - at < piece ? N - at : piece, &err));
        drain(s, t);
    }
    require_ok(linnet_session_finish(s, &err));
    drain(s, t);
}

START_TEST(sessions)
{
    linnet_session *s = make_session(NULL, 0);
    transcript one = {0}, other = {0};
    talk(s, 0, 160, &one);
    ck_assert_int_ge(one.ended, 2);
    ck_assert_int_gt(one.views, 2 * one.ended);
    ck_assert_int_gt(one.provisional, 0);
    require_fails(LINNET_INVALID, linnet_session_push(s, sound, 10, &err));
    // Any cut, 16 bits, results asked for at the end only: the same.
    const size_t pieces[] = {N, 1, 777};
    for (int i = 0; i < 3; i++) {
        require_ok(linnet_session_reset(s, &err));
        other = (transcript){0};
        talk(s, 0, pieces[i], &other);
        ck_assert_str_eq(other.text, one.text);
    }
    require_ok(linnet_session_reset(s, &err));
    other = (transcript){0};
    require_ok(linnet_session_push_int16(s, sound_16, N, &err));
    require_ok(linnet_session_push_int16(s, NULL, 0, &err));
    require_ok(linnet_session_finish(s, &err));
    drain(s, &other);
    ck_assert_str_eq(other.text, one.text);
    ck_assert_int_eq(other.views, other.ended);
    // By hand.
    require_ok(linnet_session_reset(s, &err));
    other = (transcript){0};
    require_ok(linnet_session_push(s, sound, RATE, &err));
    require_ok(linnet_session_end_utterance(s, &err));
    drain(s, &other);
    ck_assert_int_eq(other.ended, 1);
    ck_assert_int_eq(other.last, LINNET_ASKED);
    sound[3] = INFINITY;
    require_fails(LINNET_NUMERIC, linnet_session_push(s, sound, 10, &err));
    sound[3] = 0;
    require_fails(LINNET_INVALID, linnet_session_push(s, NULL, 10, &err));
    require_fails(LINNET_INVALID, linnet_session_push_int16(s, NULL, 10, &err));
    require_ok(linnet_session_push(s, NULL, 0, &err));
    linnet_session_destroy(s);
    linnet_session_destroy(NULL);
}
END_TEST

static linnet_decoder *make_spotter(void)
{
    const char *const keywords[] = {"a=0.001", "oh say=0.001", "never heard"};
    linnet_decoder *d;
    DEFAULTS(linnet_decoder_options, o);
    o.lexicon = LEXICON;
    o.keywords = keywords;
    o.n_keywords = 3;
    require_ok(linnet_decoder_create(model, &o, &d, &err));
    return d;
}

// The installed model forgets: without a choice it is not reset.
START_TEST(resets)
{
    transcript t[3] = {0};
    for (int i = 0; i < 3; i++) {
        linnet_session *s = make_session_with(NULL, 0, i - 1);
        talk(s, 0, N, &t[i]);
        linnet_session_destroy(s);
    }
    ck_assert_str_eq(t[0].text, t[1].text);
    ck_assert_str_ne(t[0].text, t[2].text);
}
END_TEST

START_TEST(session_options)
{
    linnet_session *s;
    DEFAULTS(linnet_session_options, o);
    o.rate_hz = 100;
    require_fails(LINNET_UNSUPPORTED, linnet_session_create(model, &o, &s, &err));
    linnet_session_options_init(&o, sizeof o);
    o.channel = 1;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    o.channel = -2;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    linnet_session_options_init(&o, sizeof o);
    o.silence_after_s = -1;
    require_fails(LINNET_INVALID, linnet_session_create(model, &o, &s, &err));
    require_fails(LINNET_INVALID, linnet_session_create(NULL, NULL, &s, &err));
    ck_assert_ptr_null(s);
    linnet_session_options_init(&o, sizeof o); // two channels at another rate, no endpoints
    o.rate_hz = 8000;
    o.channels = 2;
    o.endpoints = 0;
    require_ok(linnet_session_create(model, &o, &s, &err));
    transcript t = {0};
    require_ok(linnet_session_push(s, sound, N / 2, &err));
    require_ok(linnet_session_finish(s, &err));
    drain(s, &t);
    ck_assert_int_eq(t.ended, 1);
    ck_assert_int_eq(t.last, LINNET_FINISHED);
    void *bytes;
    size_t n;
    require_fails(LINNET_INVALID, linnet_session_save(s, &bytes, &n, &err));
    linnet_session_destroy(s);
}
END_TEST

// What failed to be created is not there.
START_TEST(without_a_session_or_engine)
{
    const int16_t samples = 0;
    linnet_session *copy = (linnet_session *)&copy;
    void *bytes = &bytes;
    size_t n = 1;
    linnet_stream stream;
    linnet_engine_stats stats = {.size = sizeof stats};
    require_says(LINNET_INVALID, "there is no session", linnet_session_push(NULL, sound, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_push_int16(NULL, &samples, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_end_utterance(NULL, &err));
    require_fails(LINNET_INVALID, linnet_session_finish(NULL, &err));
    require_fails(LINNET_INVALID, linnet_session_reset(NULL, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(NULL, NULL, 0, &err));
    require_fails(LINNET_INVALID, linnet_session_load(NULL, "x", 1, &err));
    require_fails(LINNET_INVALID, linnet_session_save(NULL, &bytes, &n, &err));
    require_fails(LINNET_INVALID, linnet_session_fork(NULL, &copy, &err));
    ck_assert(!bytes && !n && !copy && !linnet_session_next(NULL));
    require_says(LINNET_INVALID, "there is no engine", linnet_engine_open(NULL, RATE, 1, NULL, &stream, &err));
    require_fails(LINNET_INVALID, linnet_engine_push(NULL, 1, sound, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_room(NULL, 1, &n, &err));
    require_fails(LINNET_INVALID, linnet_engine_finish(NULL, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_reset(NULL, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_measure(NULL, &stats, &err));
    linnet_engine_close(NULL, 1);
    ck_assert(!linnet_engine_next(NULL, 0));
}
END_TEST

START_TEST(saved_and_forked)
{
    linnet_decoder *d = _i ? make_spotter() : make_decoder(0, 8, 1);
    linnet_session *s = make_session(d, 1), *other = make_session(d, 1), *copy, *greedy = make_session(NULL, 1);
    transcript whole = {0}, rest = {0}, start = {0}, forked = {0};
    void *bytes;
    size_t n;
    talk(s, 0, 800, &whole);
    ck_assert_int_eq(strchr(whole.text, '(') != NULL, _i);
    require_ok(linnet_session_reset(s, &err));
    require_ok(linnet_session_push(s, sound, N / 2, &err)); // within the silence behind the first utterance
    drain(s, &start);
    ck_assert_int_eq(start.ended, 1);
    require_ok(linnet_session_save(s, &bytes, &n, &err));
    require_ok(linnet_session_fork(s, &copy, &err));
    linnet_session_destroy(s);
    require_ok(linnet_session_load(other, bytes, n, &err));
    talk(other, N / 2, 1600, &rest);
    strcat(start.text, rest.text);
    ck_assert_str_eq(start.text, whole.text);
    forked.ended = 1; // it goes on counting
    talk(copy, N / 2, 999, &forked);
    ck_assert_str_eq(forked.text, rest.text);
    require_fails(LINNET_MISMATCH, linnet_session_load(greedy, bytes, n, &err));
    require_fails(LINNET_FORMAT, linnet_session_load(other, bytes, n - 1, &err));
    ((char *)bytes)[n / 2] ^= 1;
    require_fails(LINNET_FORMAT, linnet_session_load(other, bytes, n, &err));
    require_fails(LINNET_INVALID, linnet_session_load(other, NULL, 0, &err));
    rest = (transcript){0};
    talk(other, 0, 800, &rest); // as new
    ck_assert_str_eq(rest.text, whole.text);
    linnet_free(bytes);
    linnet_session_destroy(copy);
    linnet_decoder *best = make_decoder(0, 8, 2);
    linnet_session *alternatives = make_session(best, 1);
    require_fails(LINNET_UNSUPPORTED, linnet_session_save(alternatives, &bytes, &n, &err));
    require_ok(linnet_session_fork(alternatives, &copy, &err));
    linnet_session_destroy(alternatives);
    linnet_decoder_destroy(best);
    linnet_session_destroy(copy);
    linnet_session_destroy(other);
    linnet_session_destroy(greedy);
    linnet_decoder_destroy(d);
}
END_TEST

// The offline model with the streaming one's hop, so that both have the same frames.
static linnet_model *load_offline(void)
{
    linnet_model *made;
    lin_model *from;
    const char *path = test_path("offline.safetensors");
    ck_assert_int_eq(lin_model_load("tests/golden/en/offline.safetensors", &from, NULL), LIN_OK);
    from->features.hop_ms = lin_features_default().hop_ms;
    lin_model_seal(from);
    ck_assert_int_eq(lin_model_save(from, path, LIN_F32, NULL), LIN_OK);
    lin_model_destroy(from);
    require_ok(linnet_model_load(path, NULL, &made, &err));
    return made;
}

// What the second model hears in the whole sound is the final form, live and of a fork; it does not begin with what had settled.
START_TEST(second_pass)
{
    linnet_model *offline = load_offline();
    linnet_session *s, *copy;
    linnet_engine *engine;
    linnet_stream stream;
    linnet_result *whole;
    transcript live = {0}, second = {0}, forked = {0};
    const linnet_sound all = in_memory();
    require_ok(linnet_decode(offline, &all, NULL, &whole, &err));
    DEFAULTS(linnet_session_options, o);
    o.endpoints = 0;
    o.can_save = 1;
    require_ok(linnet_session_create(model, &o, &s, &err));
    talk(s, 0, 1600, &live);
    linnet_session_destroy(s);
    o.second_pass = offline;
    require_ok(linnet_session_create(model, &o, &s, &err));
    require_ok(linnet_session_push(s, sound, N / 2, &err));
    require_ok(linnet_session_fork(s, &copy, &err));
    DEFAULTS(linnet_engine_options, many);
    many.endpoints = 0;
    many.streams = 1;
    many.queue_s = SECONDS + 1;
    many.second_pass = offline;
    require_ok(linnet_engine_create(model, &many, &engine, &err));
    linnet_model_destroy(offline); // it is kept
    talk(s, N / 2, 1600, &second);
    talk(copy, N / 2, 8000, &forked);
    ck_assert_int_eq(second.ended, 1);
    ck_assert_str_eq(second.text, forked.text);
    ck_assert_str_ne(second.text, live.text);
    ck_assert_msg(strncmp(second.text, linnet_result_text(whole), strlen(linnet_result_text(whole))) == 0, "%s, and %s",
                  second.text, linnet_result_text(whole));
    require_ok(linnet_engine_open(engine, RATE, 1, NULL, &stream, &err));
    require_ok(linnet_engine_push(engine, stream, sound, N, &err));
    require_ok(linnet_engine_finish(engine, stream, &err));
    const linnet_event *e = linnet_engine_next(engine, 600);
    ck_assert(e && e->kind == LINNET_UTTERANCE && e->utterance->end == LINNET_FINISHED);
    ck_assert_str_eq(linnet_result_text(e->utterance->settled), linnet_result_text(whole));
    linnet_engine_destroy(engine);
    linnet_session_destroy(s);
    linnet_session_destroy(copy);
    linnet_result_destroy(whole);
}
END_TEST

// `best` is the installed models, each where it belongs; what the caller names stays.
START_TEST(fewest_errors)
{
    linnet_decoder_options how;
    linnet_model *first, *offline;
    linnet_decoder *d;
    linnet_session *s;
    linnet_result *r;
    transcript of[3] = {0};
    char texts[2][16384];
    const linnet_sound all = in_memory();
    require_ok(linnet_model_load("default", NULL, &first, &err));
    require_ok(linnet_model_load("offline", NULL, &offline, &err));
    DEFAULTS(linnet_session_options, o);
    o.endpoints = 0;
    for (int i = 0; i < 3; i++) { // plain, best, what it stands for
        linnet_decoder_options_init(&how, sizeof how);
        how.best = i == 1;
        how.combine = i == 2 ? first : NULL;
        require_ok(linnet_decoder_create(first, &how, &d, &err));
        o.decoder = d;
        o.second_pass = i == 2 ? offline : NULL;
        require_ok(linnet_session_create(first, &o, &s, &err));
        linnet_decoder_destroy(d);
        talk(s, 0, 1600, &of[i]);
        linnet_session_destroy(s);
    }
    ck_assert_str_eq(of[1].text, of[2].text);
    ck_assert_str_ne(of[1].text, of[0].text);
    for (int i = 0; i < 2; i++) { // of a sound that is there as a whole: scores too
        linnet_decoder_options_init(&how, sizeof how);
        how.best = i == 0;
        how.combine = i == 1 ? first : NULL;
        require_ok(linnet_decoder_create(offline, &how, &d, &err));
        require_ok(linnet_decode(offline, &all, d, &r, &err));
        snprintf(texts[i], sizeof texts[i], "%s %.6f", linnet_result_text(r), linnet_result_describe(r)->acoustic);
        linnet_result_destroy(r);
        linnet_decoder_destroy(d);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    linnet_model_destroy(first);
    linnet_model_destroy(offline);
}
END_TEST

START_TEST(phrases_of_a_session)
{
    linnet_decoder *d = make_decoder(1, 64, 1), *best = make_decoder(0, 8, 2);
    linnet_session *s = make_session(d, 1), *greedy = make_session(NULL, 0), *alternatives = make_session(best, 0), *copy;
    transcript plain = {0}, likely = {0}, again = {0}, forked = {0};
    // Any word can be made likely enough to appear.
    const linnet_phrase phrases[] = {{"oh", 60}, {"yahoo", 20}};
    talk(s, 0, 800, &plain);
    require_ok(linnet_session_set_phrases(s, phrases, 2, &err));
    require_ok(linnet_session_reset(s, &err));
    require_ok(linnet_session_fork(s, &copy, &err));
    talk(s, 0, 800, &likely);
    ck_assert_str_ne(likely.text, plain.text);
    require_ok(linnet_session_set_phrases(s, NULL, 0, &err));
    require_ok(linnet_session_reset(s, &err));
    talk(s, 0, 800, &again);
    ck_assert_str_eq(again.text, plain.text);
    linnet_session_destroy(s);
    linnet_decoder_destroy(d);
    talk(copy, 0, 800, &forked); // has the phrases still
    ck_assert_str_eq(forked.text, likely.text);
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){"...", 1}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){NULL, 1}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, &(linnet_phrase){"yes", NAN}, 1, &err));
    require_fails(LINNET_INVALID, linnet_session_set_phrases(copy, NULL, 1, &err));
    require_fails(LINNET_UNSUPPORTED, linnet_session_set_phrases(greedy, phrases, 1, &err));
    require_fails(LINNET_UNSUPPORTED, linnet_session_set_phrases(alternatives, phrases, 1, &err));
    linnet_session_destroy(copy);
    linnet_session_destroy(greedy);
    linnet_session_destroy(alternatives);
    linnet_decoder_destroy(best);
}
END_TEST

START_TEST(nothing_is_allocated_while_sound_streams)
{
    linnet_session *s = make_session(NULL, 0);
    transcript t = {0};
    for (int round = 0; round < 2; round++) {
        const unsigned long before = lin_memory_count();
        for (int again = 0; again < 2; again++) {
            for (size_t at = 0; at + 800 <= N; at += 800) {
                require_ok(linnet_session_push(s, sound + at, 800, &err));
                const linnet_utterance *u;
                while ((u = linnet_session_next(s)) != NULL) t.views += linnet_result_phones(u->settled);
            }
        }
        if (round) ck_assert_uint_eq(lin_memory_count(), before);
    }
    ck_assert_int_gt(t.views, 10);
    linnet_session_destroy(s);
}
END_TEST

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

enum { STREAMS = 6 };

static linnet_engine_options engine_options(int streams)
{
    DEFAULTS(linnet_engine_options, o);
    o.streams = streams;
    o.queue_s = 10;
    o.silence_after_s = 0.4;
    o.reset_at_endpoints = 1;
    return o;
}

// As a session with the same options has it.
static transcript of_session(linnet_decoder *d)
{
    linnet_session *s = make_session(d, 0);
    transcript t = {0};
    talk(s, 0, 800, &t);
    linnet_session_destroy(s);
    return t;
}

START_TEST(engines)
{
    linnet_engine_options o = engine_options(STREAMS);
    linnet_engine *e;
    linnet_stream streams[STREAMS], more;
    transcript got[STREAMS], want = of_session(NULL);
    const linnet_event *event;
    memset(got, 0, sizeof got);
    o.growing = 1;
    require_ok(linnet_engine_create(model, &o, &e, &err));
    ck_assert_ptr_null(linnet_engine_next(e, 0));
    for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_open(e, RATE, 1, &got[i], &streams[i], &err));
    require_fails(LINNET_TOO_SMALL, linnet_engine_open(e, RATE, 1, NULL, &more, &err));
    require_fails(LINNET_NUMERIC, linnet_engine_push(e, streams[0], &(float){NAN}, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_push(e, streams[0], NULL, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_push(e, 77, sound, 1, &err));
    require_fails(LINNET_INVALID, linnet_engine_finish(e, 77, &err));
    require_fails(LINNET_INVALID, linnet_engine_reset(e, 77, &err));
    linnet_engine_close(e, 77);
    for (int round = 0; round < 2; round++) {
        for (size_t at = 0; at < N; at += 1000) {
            for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_push(e, streams[i], sound + at, 1000, &err));
        }
        for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_finish(e, streams[i], &err));
        require_fails(LINNET_INVALID, linnet_engine_push(e, streams[0], sound, 1, &err));
        size_t none;
        require_fails(LINNET_INVALID, linnet_engine_room(e, streams[0], &none, &err));
        for (int left = STREAMS; left > 0;) {
            event = linnet_engine_next(e, 60);
            ck_assert_ptr_nonnull(event);
            transcript *t = event->user;
            ck_assert(event->stream == streams[t - got]);
            if (event->kind == LINNET_ENDED) {
                ck_assert_double_eq_tol(event->time_s, SECONDS, 0.05);
                left--;
                continue;
            }
            ck_assert_int_eq(event->kind, LINNET_UTTERANCE);
            const linnet_utterance *u = event->utterance;
            t->views++;
            if (u->end == LINNET_GROWS) continue;
            ck_assert_int_eq(u->number, ++t->ended);
            snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%s\n", linnet_result_text(u->settled));
        }
        for (int i = 0; i < STREAMS; i++) ck_assert_str_eq(got[i].text, want.text);
        memset(got, 0, sizeof got);
        for (int i = 0; i < STREAMS; i++) require_ok(linnet_engine_reset(e, streams[i], &err));
    }
    linnet_engine_stats stats = {.size = sizeof stats};
    require_ok(linnet_engine_measure(e, &stats, &err));
    ck_assert(stats.open == STREAMS && stats.streams == STREAMS && stats.stream_bytes > 1000 && stats.lost == 0 &&
              stats.missed == 0);
    stats.size = 0;
    require_fails(LINNET_INVALID, linnet_engine_measure(e, &stats, &err));
    // What fits the queue now is taken.
    static float silence[3 * N]; // longer than the queue
    size_t room = 0;
    require_ok(linnet_engine_room(e, streams[1], &room, &err));
    ck_assert(room >= RATE / 2 && room < 3 * N);
    require_ok(linnet_engine_push(e, streams[1], silence, room, &err));
    require_fails(LINNET_INVALID, linnet_engine_room(e, 77, &room, &err));
    ck_assert_uint_eq(room, 0);
    require_ok(linnet_engine_reset(e, streams[1], &err));
    // What does not fit is lost, and told.
    require_ok(linnet_engine_push(e, streams[0], sound, RATE, &err));
    require_fails(LINNET_TOO_SMALL, linnet_engine_push(e, streams[0], silence, 3 * N, &err));
    linnet_engine_finish(e, streams[0], NULL);
    int64_t lost = 0;
    while ((event = linnet_engine_next(e, 60)) != NULL && event->kind != LINNET_ENDED) {
        if (event->kind == LINNET_LOST) lost += event->lost;
    }
    ck_assert_int_eq(lost, 3 * N);
    linnet_engine_close(e, streams[0]);
    linnet_engine_close(e, streams[0]);
    require_ok(linnet_engine_open(e, 8000, 2, NULL, &more, &err));
    require_ok(linnet_engine_push(e, more, sound, 4000, &err));
    linnet_engine_destroy(e); // with streams open and sound waiting
    linnet_engine_destroy(NULL);
    o = engine_options(0);
    require_fails(LINNET_INVALID, linnet_engine_create(model, &o, &e, &err));
    require_fails(LINNET_INVALID, linnet_engine_create(NULL, NULL, &e, &err));
    ck_assert_ptr_null(e);
}
END_TEST

// Sessions and engines that leave the room in: equal, saved without it, and not loaded by others.
START_TEST(with_the_room)
{
    linnet_engine_options o = engine_options(1);
    linnet_model *plain = model;
    linnet_session *heard = make_session(NULL, 1), *s;
    linnet_engine *e;
    linnet_stream stream;
    const linnet_event *event;
    transcript start = {0}, rest = {0}, live = {0};
    void *bytes, *more;
    size_t n, n_more;
    DEFAULTS(linnet_model_options, m);
    m.dereverb = 0;
    require_ok(linnet_model_load(MODEL, &m, &model, &err));
    const transcript whole = of_session(NULL);
    s = make_session(NULL, 1);
    require_ok(linnet_session_push(heard, sound, N / 2, &err));
    require_ok(linnet_session_push(s, sound, N / 2, &err));
    drain(s, &start);
    require_ok(linnet_session_save(heard, &bytes, &n, &err));
    require_ok(linnet_session_save(s, &more, &n_more, &err));
    ck_assert_uint_gt(n, n_more + 100000);
    require_fails(LINNET_MISMATCH, linnet_session_load(heard, more, n_more, &err));
    require_fails(LINNET_MISMATCH, linnet_session_load(s, bytes, n, &err));
    require_ok(linnet_session_load(s, more, n_more, &err));
    talk(s, N / 2, 999, &rest);
    strcat(start.text, rest.text);
    ck_assert_str_eq(start.text, whole.text);
    require_ok(linnet_engine_create(model, &o, &e, &err));
    require_ok(linnet_engine_open(e, RATE, 1, NULL, &stream, &err));
    require_ok(linnet_engine_push(e, stream, sound, N, &err));
    require_ok(linnet_engine_finish(e, stream, &err));
    while ((event = linnet_engine_next(e, 60)) != NULL && event->kind != LINNET_ENDED)
        if (event->kind == LINNET_UTTERANCE && event->utterance->end != LINNET_GROWS)
            snprintf(live.text + strlen(live.text), sizeof live.text - strlen(live.text), "%s\n",
                     linnet_result_text(event->utterance->settled));
    ck_assert_str_eq(live.text, whole.text);
    linnet_engine_stats left_in = {.size = sizeof left_in}, taken_out = left_in;
    require_ok(linnet_engine_measure(e, &left_in, &err));
    linnet_engine_destroy(e);
    require_ok(linnet_engine_create(plain, &o, &e, &err));
    require_ok(linnet_engine_measure(e, &taken_out, &err));
    ck_assert_uint_gt(taken_out.stream_bytes, left_in.stream_bytes + 100000);
    linnet_engine_destroy(e);
    linnet_session_destroy(heard);
    linnet_session_destroy(s);
    linnet_free(bytes);
    linnet_free(more);
    linnet_model_destroy(model);
    model = plain;
}
END_TEST

// Threads that open and close more streams than fit: each gets its own or is refused, and the list of open streams stays whole.
enum { OPENERS = 4, ROUNDS = 300 };

static void *open_and_close(void *arg)
{
    linnet_engine *e = arg;
    intptr_t opened = 0;
    for (int i = 0; i < ROUNDS || !opened; i++) { // the others may have all places for as long as they run
        linnet_stream mine[2] = {0};
        linnet_error why;
        for (int k = 0; k < 2; k++) {
            if (linnet_engine_open(e, RATE, 1, NULL, &mine[k], &why) != LINNET_OK) continue;
            if (linnet_engine_push(e, mine[k], sound, 100, &why) == LINNET_OK) opened++;
        }
        for (int k = 0; k < 2; k++) {
            if (mine[k]) linnet_engine_close(e, mine[k]);
        }
    }
    return (void *)opened; // NOLINT: a number
}

// The copy of an engine refuses everything, and nothing waits for its threads; a session goes on.
static int use_copies(linnet_engine *e, linnet_stream stream, linnet_session *s, transcript *t)
{
    linnet_stream more;
    size_t room;
    linnet_engine_stats stats = {.size = sizeof stats};
    int wrong = 0;
    alarm(60); // which ends it if something waits
    wrong += linnet_engine_open(e, RATE, 1, NULL, &more, &err) != LINNET_INVALID || !strstr(err.message, "forked");
    wrong += linnet_engine_push(e, stream, sound, 1000, &err) != LINNET_INVALID;
    wrong += linnet_engine_room(e, stream, &room, &err) != LINNET_INVALID;
    wrong += linnet_engine_finish(e, stream, &err) != LINNET_INVALID;
    wrong += linnet_engine_reset(e, stream, &err) != LINNET_INVALID;
    wrong += linnet_engine_measure(e, &stats, &err) != LINNET_INVALID;
    wrong += linnet_engine_next(e, 60) != NULL;
    linnet_engine_close(e, stream);
    linnet_engine_destroy(e);
    talk(s, N / 2, 1600, t);
    linnet_session_destroy(s);
    return wrong;
}

START_TEST(forked_process)
{
    linnet_engine_options o = engine_options(1);
    linnet_engine *e;
    linnet_stream stream;
    linnet_session *s = make_session(NULL, 0);
    transcript want = {0}, got = {0};
    require_ok(linnet_engine_create(model, &o, &e, &err));
    require_ok(linnet_engine_open(e, RATE, 1, NULL, &stream, &err));
    require_ok(linnet_session_push(s, sound, N / 2, &err));
    drain(s, &want);
    got = want;
    const pid_t child = fork();
    if (child == 0) {
        const int wrong = use_copies(e, stream, s, &got);
        _exit(wrong || got.ended < 2);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    talk(s, N / 2, 1600, &want);
    ck_assert_int_ge(want.ended, 2);
    require_ok(linnet_engine_finish(e, stream, &err));
    const linnet_event *event = linnet_engine_next(e, 60);
    ck_assert(event && event->kind == LINNET_ENDED);
    linnet_session_destroy(s);
    linnet_engine_destroy(e);
}
END_TEST

START_TEST(engine_opened_by_many)
{
    linnet_engine_options o = engine_options(OPENERS);
    linnet_engine *e;
    linnet_engine_stats stats = {.size = sizeof stats};
    pthread_t threads[OPENERS];
    require_ok(linnet_engine_create(model, &o, &e, &err));
    for (int i = 0; i < OPENERS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_close, e), 0);
    for (int i = 0; i < OPENERS; i++) {
        void *opened;
        pthread_join(threads[i], &opened);
        ck_assert_int_gt((intptr_t)opened, 0);
    }
    require_ok(linnet_engine_measure(e, &stats, &err));
    ck_assert_int_eq(stats.open, 0);
    linnet_engine_destroy(e);
}
END_TEST

typedef struct told {
    linnet_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t all;
    int left, utterances;
} told;

// Closes the stream when it has ended.
static void tell(void *context, const linnet_event *event)
{
    told *t = context;
    if (event->kind == LINNET_ENDED) linnet_engine_close(t->engine, event->stream);
    if (event->kind == LINNET_UTTERANCE && event->utterance->end != LINNET_GROWS)
        ck_assert(linnet_result_describe(event->utterance->settled)->has_words);
    pthread_mutex_lock(&t->lock);
    t->utterances += event->kind == LINNET_UTTERANCE && event->utterance->end != LINNET_GROWS;
    t->left -= event->kind == LINNET_ENDED;
    pthread_cond_signal(&t->all);
    pthread_mutex_unlock(&t->lock);
}

START_TEST(engine_with_a_callback)
{
    told t = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER, .left = STREAMS};
    linnet_engine_options o = engine_options(STREAMS);
    linnet_stream s;
    linnet_decoder *d = make_decoder(1, 32, 2);
    const transcript want = of_session(d);
    o.decoder = d;
    o.event = tell;
    o.context = &t;
    require_ok(linnet_engine_create(model, &o, &t.engine, &err));
    linnet_decoder_destroy(d); // the engine keeps it
    for (int i = 0; i < STREAMS; i++) {
        require_ok(linnet_engine_open(t.engine, RATE, 1, NULL, &s, &err));
        require_ok(linnet_engine_push(t.engine, s, sound, N, &err));
        require_ok(linnet_engine_finish(t.engine, s, &err));
    }
    pthread_mutex_lock(&t.lock);
    while (t.left) pthread_cond_wait(&t.all, &t.lock);
    pthread_mutex_unlock(&t.lock);
    ck_assert_int_eq(t.utterances, STREAMS * want.ended);
    ck_assert_ptr_null(linnet_engine_next(t.engine, 0));
    linnet_engine_destroy(t.engine);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static linnet_status whole_path(linnet_decoder *d)
{
    const linnet_sound s = in_memory();
    linnet_result *r = NULL, *copy = NULL;
    char *text = NULL;
    linnet_status status = linnet_decode(model, &s, d, &r, &err);
    if (status == LINNET_OK) status = linnet_result_copy(r, &copy, &err);
    if (status == LINNET_OK) status = linnet_result_format(copy, "json", NULL, &text, NULL, &err);
    linnet_free(text);
    linnet_result_destroy(copy);
    linnet_result_destroy(r);
    return status;
}

static linnet_status session_path(linnet_decoder *d)
{
    linnet_session *s = NULL, *copy = NULL;
    void *bytes = NULL;
    size_t n;
    DEFAULTS(linnet_session_options, o);
    o.decoder = d;
    o.can_save = 1;
    o.silence_after_s = 0.4;
    linnet_status status = linnet_session_create(model, &o, &s, &err);
    if (status == LINNET_OK) status = linnet_session_push(s, sound, N, &err);
    while (status == LINNET_OK && linnet_session_next(s)) continue;
    if (status == LINNET_OK) status = linnet_session_save(s, &bytes, &n, &err);
    if (status == LINNET_OK) status = linnet_session_load(s, bytes, n, &err);
    if (status == LINNET_OK) status = linnet_session_fork(s, &copy, &err);
    if (status == LINNET_OK) status = linnet_session_finish(copy, &err);
    linnet_free(bytes);
    linnet_session_destroy(s);
    linnet_session_destroy(copy);
    return status;
}

// Under AddressSanitizer, which is slow, fewer of the later ones.
static unsigned long next_allocation(unsigned long k)
{
#if TEST_ASAN
    return k + 1 + k / 8;
#else
    return k + 1;
#endif
}

START_TEST(every_allocation_may_fail)
{
    linnet_status (*const paths[])(linnet_decoder *) = {whole_path, session_path};
    linnet_decoder *either[] = {make_spotter(), make_decoder(0, 4, 2)};
    const int i = _i / 2, alternatives = _i % 2;
    if (i == 1 && alternatives) goto done; // alternatives are not saved
    const unsigned long live = lin_memory_live();
    for (unsigned long k = 1;; k = next_allocation(k)) {
        lin_memory_fail_at(k);
        const linnet_status status = paths[i](either[alternatives]);
        lin_memory_fail_at(0);
        ck_assert_uint_eq(lin_memory_live(), live);
        if (status == LINNET_OK) break;
        ck_assert_msg(status == LINNET_NO_MEMORY, "allocation %lu: %s: %s", k, linnet_status_name(status), err.message);
        ck_assert_uint_lt(k, 5000);
    }
done:
    linnet_decoder_destroy(either[0]);
    linnet_decoder_destroy(either[1]);
}
END_TEST

TEST_MAIN_WITH(api_setup, api_teardown, "linnet.h, streams", TEST(sessions), TEST(resets), TEST(session_options),
               TEST(without_a_session_or_engine), TESTS(saved_and_forked, 0, 2), TEST(second_pass), TEST(fewest_errors),
               TEST(phrases_of_a_session), TEST(nothing_is_allocated_while_sound_streams), TEST(engines), TEST(with_the_room),
               TEST(forked_process),
               TEST(engine_opened_by_many), TEST(engine_with_a_callback), TESTS(every_allocation_may_fail, 0, 4))
