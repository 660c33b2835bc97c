// Streams of an engine that are saved, loaded, and whose utterances end on request: each gives what a session gives.
#include "linnet/engine.h"

#include "linnet/stream.h"
#include "tests/linnet/heard.h"

enum { MOST_STATES = 40 };

static float *sound;
static const int rates[] = {RATE, 8000, 48000};

typedef struct owner {
    heard h; // first: sessions have it alone
    void *states[MOST_STATES];
    size_t sizes[MOST_STATES];
    double seconds[MOST_STATES], end_s;
    int n_states;
    char failure[1024];
    atomic_int over; // all above may be read once it is seen
    atomic_int holds, is_held; // holds: the engine's thread stays in the last event until it is 0
} owner;

static void keep_state(owner *h, const lin_engine_event *event)
{
    test_require(h->n_states < MOST_STATES, "too many states");
    void *copy = h->states[h->n_states] = malloc(event->n_state);
    memcpy(copy, event->state, event->n_state);
    h->sizes[h->n_states] = event->n_state;
    h->seconds[h->n_states++] = event->time_s;
}

static void on_event(void *context, const lin_engine_event *event)
{
    owner *h = event->user;
    (void)context;
    if (event->view) hear(&h->h, event->view, NULL);
    if (event->kind == LIN_ENGINE_SAVED) keep_state(h, event);
    if (event->kind == LIN_ENGINE_FAILED) snprintf(h->failure, sizeof h->failure, "%s", event->message);
    h->end_s = event->time_s;
    h->over |= event->kind == LIN_ENGINE_FAILED || event->kind == LIN_ENGINE_FINISHED;
    for (h->is_held = h->over; h->over && h->holds;) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

// The last phones of the whole.
static void same_rest(const heard *got, const heard *want)
{
    ck_assert_int_le(got->n_phones, want->n_phones);
    for (int i = 1; i <= got->n_phones; i++) same_phone(&got->phones[got->n_phones - i], &want->phones[want->n_phones - i]);
}

static lin_session *make_session(int rate, int resets, heard *h)
{
    lin_session_options o = options_of_sound();
    o.rate_hz = rate;
    o.ends.resets = resets;
    return create(&o, h);
}

static lin_engine *make_engine(int resets)
{
    lin_engine *e;
    lin_session_options like = options_of_sound();
    like.ends.resets = resets;
    lin_engine_options o = engine_options(&like, 4, on_event);
    o.queue_s = 40;
    o.saves = 1;
    o.threads = o.shards = 2;
    OK(lin_engine_create(&recognizer, &o, &e, &err));
    return e;
}

// In the middle of speech, of a rest, and where nothing has been pushed since.
START_TEST(utterances_end_on_request)
{
    static heard want;
    static owner got;
    lin_error why = {0};
    const int rate = rates[_i / 2], cuts[] = {0, 9000, 30011, 30011, 60500, SAMPLES};
    lin_session *s = make_session(rate, _i % 2, &want);
    lin_engine *e = make_engine(_i % 2);
    lin_engine_id id;
    memset(&got, 0, sizeof got);
    OK(lin_engine_open(e, rate, 1, &got, &id, &err));
    for (int i = 0; i < 5; i++) {
        OK(lin_session_push(s, sound + cuts[i], cuts[i + 1] - cuts[i], &err));
        OK(i < 4 ? lin_session_end_utterance(s, &err) : lin_session_finish(s, &err));
        push_part(e, id, sound, cuts[i], cuts[i + 1]);
        while (i < 4 && lin_engine_end_utterance(e, id, &why) != LIN_OK) ck_assert_int_eq(why.status, LIN_TOO_SMALL);
    }
    OK(lin_engine_finish(e, id, &err));
    ck_assert_int_eq(lin_engine_end_utterance(e, id, &why), LIN_INVALID);
    wait_for(&got.over, 1);
    same(&got.h, &want);
    int asked = 0;
    for (int i = 0; i < want.ends; i++) asked += want.why[i] == LINNET_ASKED;
    if (rate == RATE) ck_assert_int_ge(asked, 2); // at others it is less like speech
    lin_engine_destroy(e);
    session_destroy(s);
}
END_TEST

// Behind an end that is not reached, another one without sound between is the same one.
START_TEST(ends_without_sound_between)
{
    static owner first, beside, second;
    lin_error why = {0};
    lin_engine_id ids[3];
    lin_engine *e = make_engine(0);
    first.holds = 1;
    owner *const all[] = {&first, &beside, &second}; // the first and the last have the same thread
    for (int i = 0; i < 3; i++) OK(lin_engine_open(e, RATE, 1, all[i], &ids[i], &err));
    OK(lin_engine_finish(e, ids[0], &err));
    wait_for(&first.is_held, 1);
    push_part(e, ids[2], sound, 0, 9000);
    for (int i = 0; i < 3; i++) OK(lin_engine_end_utterance(e, ids[2], &err));
    push_part(e, ids[2], sound, 9000, 9700);
    ck_assert_int_eq(lin_engine_end_utterance(e, ids[2], &why), LIN_TOO_SMALL);
    first.holds = 0;
    while (lin_engine_end_utterance(e, ids[2], &why) != LIN_OK) ck_assert_int_eq(why.status, LIN_TOO_SMALL);
    OK(lin_engine_finish(e, ids[2], &err));
    wait_for(&second.over, 1);
    lin_engine_destroy(e);
}
END_TEST

// The rest of the sound, in a session and in a stream of an engine that go on from a state.
static void go_on(lin_engine *e, int rate, const void *state, size_t n, double seconds, const heard *whole)
{
    static heard rest;
    static owner again;
    lin_state parsed = {0};
    lin_engine_id id;
    const int from = (int)(seconds * rate + 0.5);
    OK(lin_state_parse(state, n, "a state", &parsed, &err));
    ck_assert_int_eq(parsed.about.samples, from);
    lin_session *s = make_session(rate, 1, &rest);
    OK(lin_session_load(s, &parsed, &err));
    OK(lin_session_push(s, sound + from, SAMPLES - from, &err));
    OK(lin_session_finish(s, &err));
    same_rest(&rest, whole);
    ck_assert_int_ge(rest.n_phones, rate == RATE ? 4 : 0); // at others it is less like speech
    memset(&again, 0, sizeof again);
    const lin_engine_stream about = {.rate_hz = rate, .channels = 1, .user = &again, .state = state, .n_state = n};
    OK(lin_engine_open_saved(e, &about, &id, &err));
    push_part(e, id, sound, from, SAMPLES);
    OK(lin_engine_finish(e, id, &err));
    wait_for(&again.over, 1);
    ck_assert_str_eq(again.failure, "");
    ck_assert_double_eq_tol(again.end_s, (double)SAMPLES / rate, 1e-9);
    same(&again.h, &rest);
    lin_engine_close(e, id);
    session_destroy(s);
    lin_state_free(&parsed);
}

START_TEST(saved_and_loaded)
{
    static heard whole;
    static owner got;
    lin_state state = {0};
    lin_engine_id id;
    const int rate = rates[_i];
    lin_engine *e = make_engine(1);
    lin_session *s = make_session(rate, 1, &whole);
    OK(lin_session_push(s, sound, SAMPLES / 3, &err));
    OK(lin_session_save(s, &state, &err));
    lin_state_seal(&state);
    OK(lin_session_push(s, sound + SAMPLES / 3, SAMPLES - SAMPLES / 3, &err));
    OK(lin_session_finish(s, &err));
    memset(&got, 0, sizeof got);
    const double every = SAMPLES / (6.0 * rate);
    const lin_engine_stream about = {.rate_hz = rate, .channels = 1, .user = &got, .save_s = every};
    OK(lin_engine_open_saved(e, &about, &id, &err));
    push_part(e, id, sound, 0, SAMPLES);
    OK(lin_engine_finish(e, id, &err));
    wait_for(&got.over, 1);
    same(&got.h, &whole);
    ck_assert_int_ge(got.n_states, 4);
    for (int i = 0; i < got.n_states; i++) {
        ck_assert_double_ge(got.seconds[i], every * (i + 1) - 1e-6);
        if (got.seconds[i] < 0.75 * SAMPLES / rate) go_on(e, rate, got.states[i], got.sizes[i], got.seconds[i], &whole);
        free(got.states[i]);
    }
    lin_engine_close(e, id);
    go_on(e, rate, state.bytes, state.n, (double)(SAMPLES / 3) / rate, &whole);
    lin_state_free(&state);
    lin_engine_destroy(e);
    session_destroy(s);
}
END_TEST

START_TEST(what_cannot_go_on)
{
    static heard none;
    static owner got;
    lin_state state = {0};
    lin_engine_id id;
    lin_engine *e = make_engine(1), *plain;
    lin_session *s = make_session(RATE, 1, &none);
    OK(lin_session_push(s, sound, SAMPLES / 3, &err));
    OK(lin_session_save(s, &state, &err));
    lin_state_seal(&state);
    lin_engine_stream about = {.rate_hz = 8000, .channels = 1, .user = &got, .state = state.bytes, .n_state = state.n};
    FAILS(lin_engine_open_saved(e, &about, &id, &err), LIN_MISMATCH, "other sound: 16000 Hz");
    about.n_state--;
    FAILS(lin_engine_open_saved(e, &about, &id, &err), LIN_FORMAT, "");
    ck_assert_uint_eq(id, 0);
    for (int i = 0; i < 4; i++) OK(lin_engine_open(e, RATE, 1, &got, &id, &err)); // no place was lost
    const lin_engine_options o = lin_engine_default(1);
    OK(lin_engine_create(&recognizer, &o, &plain, &err));
    FAILS(lin_engine_open_saved(plain, &about, &id, &err), LIN_UNSUPPORTED, "");
    lin_engine_destroy(plain);
    lin_engine_destroy(e);
    session_destroy(s);
    lin_state_free(&state);
}
END_TEST

static void begin(void)
{
    setup();
    sound = lin_alloc(SAMPLES, sizeof *sound);
    // the third sentence first: the rest after each state has phonemes enough
    for (int t = 0; t < SAMPLES; t++) sound[t] = whole_sound[(t + 2 * PART_SAMPLES) % SAMPLES];
}

static void end(void)
{
    lin_free(sound);
    teardown();
}

TEST_MAIN_ONCE(begin, end, NULL, "linnet/engine, saved", TESTS(utterances_end_on_request, 0, TEST_ASAN ? 2 : 6),
               TEST(ends_without_sound_between), TESTS(saved_and_loaded, 0, TEST_ASAN ? 1 : 3), TEST(what_cannot_go_on))
