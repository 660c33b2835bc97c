// Speakers of live streams: each utterance gets them when it ends, however the sound is cut, in sessions, forks, saved streams
// and engines; saved streams that lack them; damaged ones.
#include <math.h>
#include <pthread.h>

#include "linnet/engine.h"
#include "tests/model/networks.h"

#include "tests/linnet/stream_sound.h" // whose names those before would hide

enum { SIZE = 16, MIDDLE = PART_SAMPLES + 2000 }; // MIDDLE: in the second utterance, before its first phone has settled

static const char *path;
static lin_decoding decoding; // greedy, with a network of voices

static void begin(void)
{
    setup();
    lin_config c = sized_config(2, 2, 8, 24, D, 3);
    c.voice = SIZE;
    c.causal = 0;
    c.stack = 3;
    c.ahead = 1;
    lin_model *m = model_of(&c, NULL, 5);
    for (int i = 0; i < D; i++) m->mean[i] = 0, m->istd[i] = 0.1F;
    lin_model_seal(m);
    path = test_path("voices.safetensors");
    OK(lin_model_save(m, path, LIN_F32, &err));
    lin_model_destroy(m);
    const lin_decoding_values values = {.n_best = 1};
    OK(lin_decoding_open(&decoding, &values, recognizer.phones, recognizer.row_seconds, 0, NULL, &err));
    OK(lin_voice_open(path, &decoding.voice, &err));
    decoding.speakers = LIN_SPEAKERS_UNKNOWN;
}

static void end(void)
{
    lin_decoding_close(&decoding);
    teardown();
}

// The utterances that have ended.
typedef struct heard {
    lin_result finals[PARTS + 1];
    int ends;
} heard;

static lin_status hear(void *context, const lin_session_view *v, lin_error *why)
{
    heard *h = context;
    if (v->end == LINNET_GROWS) {
        for (int i = 0; i < v->settled->n_phones; i++) ck_assert_int_eq(v->settled->phones[i].speaker, 0);
        return LIN_OK;
    }
    ck_assert_int_lt(h->ends, PARTS + 1);
    lin_result *r = &h->finals[h->ends++];
    const lin_status status = lin_result_begin(r, "", NULL, 1, why);
    return status == LIN_OK ? lin_result_follow(r, v->settled, why) : status;
}

static void drop(heard *h)
{
    for (int i = 0; i <= PARTS; i++) lin_result_free(&h->finals[i]);
    *h = (heard){0};
}

// Utterance `first` of h and those behind it are those of `want`; they begin in `got` with number 0.
static void same(const heard *got, const heard *want, int first)
{
    ck_assert_int_eq(got->ends, want->ends - first);
    for (int i = 0; i < got->ends; i++) {
        const lin_result *a = &got->finals[i], *b = &want->finals[i + first];
        ck_assert_int_eq(a->n_phones, b->n_phones);
        for (int k = 0; k < a->n_phones; k++) {
            ck_assert_int_eq(a->phones[k].label, b->phones[k].label);
            ck_assert_int_eq(a->phones[k].speaker, b->phones[k].speaker);
        }
        ck_assert_int_eq(a->n_voices, b->n_voices);
        ck_assert_mem_eq(a->voices, b->voices, (size_t)(a->n_voices * SIZE) * sizeof *a->voices);
    }
}

static lin_session_options options_with(const lin_decoding *how)
{
    lin_session_options o = options_of_sound();
    o.decoding = how;
    o.ends.rules.before_s = o.ends.rules.longest_s = 0;
    return o;
}

static lin_session *create(const lin_decoding *how, heard *h)
{
    lin_session *session;
    const lin_session_options o = options_with(how);
    OK(session_create(&o, &(lin_utterances_sink){.context = h, .show = hear}, &session, &err));
    return session;
}

static void feed(lin_session *s, int from, int to, int most)
{
    for (int at = from; at < to; at += most) OK(lin_session_push(s, whole_sound + at, most < to - at ? most : to - at, &err));
}

static void feed_rest(lin_session *s, int from)
{
    feed(s, from, SAMPLES, 999);
    OK(lin_session_finish(s, &err));
}

static void listen_whole(int most, heard *h)
{
    lin_session *s = create(&decoding, h);
    feed(s, 0, SAMPLES, most);
    OK(lin_session_finish(s, &err));
    session_destroy(s);
}

START_TEST(each_utterance_when_it_ends)
{
    heard whole = {0}, pieces = {0};
    listen_whole(SAMPLES, &whole);
    ck_assert_int_ge(whole.ends, 2);
    for (int i = 0; i < whole.ends; i++) {
        const lin_result *r = &whole.finals[i];
        ck_assert_int_ge(r->n_voices, 1);
        for (int k = 0; k < r->n_phones; k++) {
            ck_assert_int_ge(r->phones[k].speaker, 1);
            ck_assert_int_le(r->phones[k].speaker, r->n_voices);
        }
    }
    listen_whole(999, &pieces);
    same(&pieces, &whole, 0);
    drop(&whole);
    drop(&pieces);
}
END_TEST

START_TEST(forked_and_saved)
{
    heard whole = {0}, half = {0}, copy = {0}, loaded = {0}, plain = {0};
    lin_session *fork;
    lin_state state = {0}, read = {0};
    listen_whole(SAMPLES, &whole);
    lin_session *session = create(&decoding, &half), *other = create(&decoding, &loaded), *without = create(NULL, &plain);
    feed(session, 0, MIDDLE, 999);
    ck_assert_int_eq(half.ends, 1);
    OK(session_fork(session, &(lin_utterances_sink){.context = &copy, .show = hear}, &fork, &err));
    feed_rest(fork, MIDDLE);
    same(&copy, &whole, 1);
    OK(lin_session_save(session, &state, &err));
    lin_state_seal(&state);
    OK(lin_state_parse(state.bytes, state.n, "state", &read, &err));
    ck_assert_uint_eq(read.sizes.speakers, (SIZE + 1) * sizeof(float));
    OK(lin_session_load(other, &read, &err));
    feed_rest(other, MIDDLE);
    same(&loaded, &whole, 1);
    // A session that tells nobody apart goes on with it. Its own states have neither speakers nor frames of the utterance.
    OK(lin_session_load(without, &read, &err));
    OK(lin_session_save(without, &state, &err));
    ck_assert_uint_eq(state.sizes.speakers + state.sizes.frames, 0);
    feed_rest(without, MIDDLE);
    drop(&loaded);
    OK(lin_session_load(other, &state, &err));
    feed_rest(other, MIDDLE);
    ck_assert_int_eq(loaded.ends, plain.ends);
    ck_assert_int_eq(loaded.finals[0].phones[0].speaker, 0);
    ck_assert_int_eq(loaded.finals[1].phones[0].speaker, 1);
    heard *const all[] = {&whole, &half, &copy, &loaded, &plain};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    lin_session *const sessions[] = {session, fork, other, without};
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) session_destroy(sessions[i]);
    lin_state_free(&state);
    lin_state_free(&read);
}
END_TEST

START_TEST(damaged)
{
    heard h = {0};
    lin_error why = {0};
    lin_state state = {0};
    lin_session *session = create(&decoding, &h), *other = create(&decoding, &h);
    feed(session, 0, MIDDLE, 999);
    OK(lin_session_save(session, &state, &err));
    float *speakers = lin_state_speakers(&state, 0);
    const float good = speakers[_i];
    const float bad[] = {NAN, 0, -1, INFINITY};
    for (int i = 0; i < 4; i++) {
        speakers[_i] = bad[i];
        ck_assert_int_eq(lin_session_load(other, &state, &why), _i && isfinite(bad[i]) ? LIN_OK : LIN_FORMAT);
    }
    speakers[_i] = good;
    OK(lin_session_load(other, &state, &err));
    state.sizes.speakers -= sizeof(float);
    ck_assert_int_eq(lin_session_load(other, &state, &why), LIN_FORMAT);
    session_destroy(session);
    session_destroy(other);
    lin_state_free(&state);
    drop(&h);
}
END_TEST

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int n_over;

static void deliver(void *context, const lin_engine_event *e)
{
    (void)context;
    if (e->kind == LIN_ENGINE_VIEW) OK(hear(e->user, e->view, &err));
    ck_assert_int_ne(e->kind, LIN_ENGINE_FAILED);
    pthread_mutex_lock(&lock);
    n_over += e->kind == LIN_ENGINE_FINISHED;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
}

START_TEST(streams_of_an_engine)
{
    enum { STREAMS = 3 };
    heard want = {0}, got[STREAMS] = {0};
    lin_engine *engine;
    lin_engine_id id[STREAMS];
    listen_whole(SAMPLES, &want);
    lin_engine_options how = lin_engine_default(STREAMS);
    how.threads = 2;
    how.queue_s = 10;
    how.endpoints = how.views = how.reset_at_endpoint = 1;
    how.endpoint = options_with(&decoding).ends.rules;
    how.decoding = &decoding;
    how.deliver = deliver;
    OK(lin_engine_create(&recognizer, &how, &engine, &err));
    n_over = 0;
    for (int i = 0; i < STREAMS; i++) OK(lin_engine_open(engine, RATE, 1, &got[i], &id[i], &err));
    for (int at = 0, n; at < SAMPLES; at += n) {
        n = SAMPLES - at < 3333 ? SAMPLES - at : 3333;
        for (int i = 0; i < STREAMS; i++) OK(lin_engine_push(engine, id[i], whole_sound + at, n, &err));
    }
    for (int i = 0; i < STREAMS; i++) OK(lin_engine_finish(engine, id[i], &err));
    pthread_mutex_lock(&lock);
    while (n_over < STREAMS) pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    lin_engine_destroy(engine);
    for (int i = 0; i < STREAMS; i++) same(&got[i], &want, 0), drop(&got[i]);
    drop(&want);
}
END_TEST

TEST_MAIN_WITH(begin, end, "speakers of live streams", TEST(each_utterance_when_it_ends), TEST(forked_and_saved),
               TESTS(damaged, 0, 2), TEST(streams_of_an_engine))
