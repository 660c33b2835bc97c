// The growing result of greedy decoding: endpoints that reset and that do not, look-ahead that is not lost, states, forks. What
// holds for every search is in test_stream_words.c.
#include "linnet/stream.h"

#include "decoder/search.h"
#include "tests/linnet/heard.h"
#include "tests/model/one_stream.h"

// Decoded at once by a network that hears frames from .. until-1.
static int decode(int from, int until, lin_result_phone *phones)
{
    const int stack = recognizer.model->config.stack, T = until - from, rows = (T + stack - 1) / stack;
    float *logp = lin_alloc((size_t)(rows * recognizer.V), sizeof *logp);
    lin_greedy greedy;
    lin_path found = {0};
    lin_result result = {0};
    lin_streams *stream = one_stream(recognizer.encoder, 1, 0);
    const int n = one_stream_feed(stream, D, recognizer.V, features + (size_t)(from * D), T, 1, logp);
    lin_greedy_reset(&greedy, recognizer.V, from / stack, 0);
    OK(lin_greedy_push(&greedy, logp, n, &found, &err));
    OK(lin_greedy_finish(&greedy, &found, &err));
    OK(lin_result_add_path(&result, &found, recognizer.row_seconds, NULL, NULL, &err));
    ck_assert_int_lt(result.n_phones, MOST);
    if (result.n_phones) memcpy(phones, result.phones, (size_t)result.n_phones * sizeof *phones);
    const int count = result.n_phones;
    lin_result_free(&result);
    lin_streams_destroy(stream);
    lin_free(logp);
    lin_path_free(&found);
    return count;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static heard a, b;

START_TEST(without_resets_all_utterances_are_one)
{
    static lin_result_phone want[MOST];
    lin_session_options o = options_of_sound();
    const int n = decode(0, n_features, want);
    const double longest[] = {30, 0.3, 0.06}; // the last two cut phones in two
    o.ends.resets = 0;
    for (int i = 0; i < 3; i++) {
        o.ends.rules.longest_s = longest[i];
        listen_to(&o, 30, 3, &a);
        ck_assert_int_ge(a.ends, i == 0 ? 3 : 10);
        ck_assert_int_eq(a.n_phones, n);
        for (int p = 0; p < n; p++) {
            ck_assert_int_eq(a.phones[p].label, want[p].label);
            ck_assert_double_eq(a.phones[p].start_s, want[p].start_s);
            if (i == 0) ck_assert_double_eq(a.phones[p].end_s, want[p].end_s);
        }
    }
}
END_TEST

// Each utterance is what a new network makes of the sound from where the one before ended: nothing of the look-ahead is lost,
// nothing of the past remembered, no first phone swallowed.
START_TEST(with_resets_each_utterance_begins_anew)
{
    static lin_result_phone want[MOST];
    lin_session_options o = options_of_sound();
    const double longest[] = {30, 0.9, 0.45};
    for (int i = 0; i < 3; i++) {
        o.ends.rules.longest_s = longest[i];
        if (i) o.ends.rules.after_s = 30;
        if (i) o.ends.rules.before_s = 0;
        lin_session *session = create(&o, &a);
        int fed = 0;
        while (fed < n_features && a.ends < MOST - 1) {
            const int n = n_features - fed < 9 ? n_features - fed : 9;
            OK(push_frames(session, fed, n, &err));
            fed += n;
        }
        session_destroy(session);
        ck_assert_int_ge(a.ends, 3);
        for (int u = 0; u < a.ends; u++) {
            // Where utterances without a phone lie between,
            // the beginning is not known: only the rules by length make none unseen.
            const double begin = u ? a.ended_at[u - 1] : 0;
            const double length = a.ended_at[u] - begin;
            if (i > 0 && length > longest[i] + 0.001) continue;
            const int from = (int)lround(begin * 100), until = from + (int)lround(length * 100) + 30;
            decode(from, until < n_features ? until : n_features, want);
            const int count = (u + 1 < a.ends ? first_of(&a, u + 1) : a.n_phones) - first_of(&a, u);
            ck_assert_int_gt(count, 0);
            for (int p = 0; p < count; p++) {
                ck_assert_int_eq(a.phones[first_of(&a, u) + p].label, want[p].label);
                ck_assert_double_eq_tol(a.phones[first_of(&a, u) + p].start_s, want[p].start_s, 1e-9);
            }
        }
    }
}
END_TEST

START_TEST(an_end_may_be_asked_for)
{
    lin_session_options o = options_of_sound();
    o.ends.rules.after_s = o.ends.rules.before_s = o.ends.rules.longest_s = 0;
    lin_session *session = create(&o, &a);
    OK(lin_session_end_utterance(session, &err)); // nothing has been said: nothing is told
    ck_assert_int_eq(a.views, 0);
    OK(push_frames(session, 0, 100, &err));
    ck_assert_int_eq(a.ends, 0);
    ck_assert_int_gt(a.views, 0);
    OK(lin_session_end_utterance(session, &err));
    ck_assert_int_eq(a.ends, 1);
    ck_assert_int_eq(a.why[0], LINNET_ASKED);
    OK(push_frames(session, 100, n_features - 100, &err));
    OK(lin_session_finish(session, &err));
    ck_assert_int_eq(a.ends, 2);
    ck_assert_int_eq(a.why[1], LINNET_FINISHED);
    session_destroy(session);
    static lin_result_phone want[MOST];
    const int n = decode((int)lround(a.ended_at[0] * 100), n_features, want);
    ck_assert_int_eq(a.n_phones - first_of(&a, 1), n);
    for (int p = 0; p < n; p++) ck_assert_int_eq(a.phones[first_of(&a, 1) + p].label, want[p].label);
    // And just before the sound ends.
    session = create(&o, &b);
    OK(push_frames(session, 0, n_features, &err));
    const int growing = b.growing_phones;
    OK(lin_session_end_utterance(session, &err));
    ck_assert_int_ge(b.n_phones, growing);
    OK(lin_session_finish(session, &err));
    session_destroy(session);
}
END_TEST

START_TEST(failures)
{
    lin_error why = {0};
    lin_session_options o = options_of_sound();
    lin_session *session = create(&o, &a);
    a.fail_at = 3;
    lin_status status = LIN_OK;
    for (int at = 0; at < n_features && status == LIN_OK; at += 5)
        status = push_frames(session, at, 5, &why);
    ck_assert_int_eq(status, LIN_IO);
    ck_assert_str_eq(why.message, "the sink is full");
    ck_assert_int_eq(a.views, 3);
    session_destroy(session);
    o.ends.rules.blank = 2;
    const lin_utterances_sink sink = {.context = &a, .show = hear};
    ck_assert_int_eq(session_create(&o, &sink, &session, &why), LIN_INVALID);
    ck_assert_ptr_null(session);
    o = options_of_sound();
    FAIL_EVERY_ALLOCATION_OF(session, session_create(&o, &sink, &session, &why), session_destroy(session));
}
END_TEST

START_TEST(construction_latency)
{
    const lin_session_delay d = lin_session_construction(&recognizer);
    ck_assert_double_eq_tol(d.step_s, 0.03, 1e-9);
    ck_assert_double_eq_tol(d.ahead_s, 0.12, 1e-9);
    ck_assert_double_eq_tol(d.window_s, 0.015, 1e-9);
    ck_assert_double_eq_tol(d.total_s, 0.165, 1e-9);
    // A phone is settled by the feed of just that frame: the sound that has come by then ends total_s behind the phone.
    const lin_session_options o = options_of_sound();
    lin_session *session = create(&o, &a);
    int seen = 0;
    for (int at = 0; at < 150; at++) {
        OK(push_frames(session, at, 1, &err));
        const double sound_s = at * 0.01 + 0.025;
        for (; seen < a.growing_phones; seen++) ck_assert_double_eq_tol(sound_s - a.phones[seen].end_s, d.total_s, 1e-6);
    }
    ck_assert_int_gt(seen, 3);
    session_destroy(session);
}
END_TEST

/* ---- sound, saved and forked sessions -------------------------------------------------------------------------------------- */

static lin_session_options of_sound(int rate_hz, int channels)
{
    lin_session_options o = options_of_sound();
    o.rate_hz = rate_hz;
    o.channels = channels;
    return o;
}

// Samples from .. to-1 in pieces of random length.
static void push(lin_session *session, const float *sound, int channels, int from, int to, uint64_t seed)
{
    for (int at = from, n, i = 0; at < to; at += n, i++) {
        n = (int)lin_random_below(seed, (uint64_t)i, 5000);
        if (n > to - at) n = to - at;
        OK(lin_session_push(session, sound + (size_t)(at * channels), n, &err));
    }
}

static float *stereo_sound(void)
{
    float *sound = lin_alloc(2 * SAMPLES, sizeof *sound);
    for (int i = 0; i < SAMPLES; i++) sound[2 * i] = whole_sound[i] * 1.5f, sound[2 * i + 1] = whole_sound[i] * 0.5f;
    return sound;
}

enum { CUT_STEP = TEST_ASAN ? 3 : 1 };

static const int cuts[] = {0, 1, 700, 20000, 30011, SAMPLES / 2 + 7, SAMPLES - 1};

#define LATE_S 1.5 /* an emission delay within which phones have been settled, at some of the cuts */

static void all_have_a_length(const heard *h)
{
    for (int i = 0; i < h->n_phones; i++)
        ck_assert(h->phones[i].end_s > h->phones[i].start_s && h->phones[i].start_s >= (i ? h->phones[i - 1].end_s : 0));
}

START_TEST(saved_and_loaded)
{
    static heard before, after;
    lin_state state = {0}, read = {0};
    lin_session *session, *next;
    const char *path = test_path("state");
    float *sound = stereo_sound();
    lin_session_options o = of_sound(22050, 2); // at another rate than it has: it is resampled
    o.ends.rules.longest_s = 1;
    for (o.ends.resets = 0; o.ends.resets < 2; o.ends.resets++) {
        recognizer.delay_s = o.ends.resets ? LATE_S : 0;
        session = create(&o, &a);
        push(session, sound, 2, 0, SAMPLES, 3);
        OK(lin_session_finish(session, &err));
        session_destroy(session);
        ck_assert_int_ge(a.ends, 3);
        all_have_a_length(&a);
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i += CUT_STEP) {
            session = create(&o, &before);
            push(session, sound, 2, 0, cuts[i], 4);
            OK(lin_session_save(session, &state, &err));
            OK(lin_state_write(&state, path, &err));
            session_destroy(session);
            OK(lin_state_read(path, &read, &err));
            next = create(&o, &after);
            push(next, sound, 2, 0, 5000, 1); // whatever was there is gone
            memset(&after, 0, sizeof after);
            OK(lin_session_load(next, &read, &err));
            push(next, sound, 2, cuts[i], SAMPLES, 5);
            OK(lin_session_finish(next, &err));
            session_destroy(next);
            before.n_phones += before.growing_phones; // the second run may show some of them in another utterance
            ck_assert_int_eq(before.n_phones + after.n_phones, a.n_phones);
            for (int p = 0; p < a.n_phones; p++)
                same_phone(p < before.n_phones ? &before.phones[p] : &after.phones[p - before.n_phones], &a.phones[p]);
        }
    }
    recognizer.delay_s = 0;
    // Of something else.
    lin_session_options others[] = {of_sound(16000, 2), of_sound(44100, 2), of_sound(44100, 2)};
    others[1].channel = 1;
    others[2].ends.rules.after_s = 0.5;
    for (int i = 0; i < 3; i++) {
        next = create(&others[i], &b);
        FAILS(lin_session_load(next, &read, &err), LIN_MISMATCH, "");
        OK(lin_session_push(next, sound, 1000, &err));
        session_destroy(next);
    }
    o.saves = 0;
    session = create(&o, &b);
    FAILS(lin_session_save(session, &state, &err), LIN_INVALID, "");
    session_destroy(session);
    lin_state_free(&state);
    lin_state_free(&read);
    lin_free(sound);
}
END_TEST

START_TEST(forked)
{
    static heard fork;
    lin_session *session, *copy;
    float *sound = stereo_sound();
    const lin_session_options o = of_sound(44100, 2);
    recognizer.delay_s = LATE_S;
    session = create(&o, &a);
    push(session, sound, 2, 0, SAMPLES, 3);
    OK(lin_session_finish(session, &err));
    all_have_a_length(&a);
    FAILS(session_fork(session, &(lin_utterances_sink){.context = &fork, .show = hear}, &copy, &err), LIN_INVALID, "");
    ck_assert_ptr_null(copy);
    session_destroy(session);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i += CUT_STEP) {
        session = create(&o, &b);
        push(session, sound, 2, 0, cuts[i], 4);
        fork = b; // it goes on with all that was shown
        OK(session_fork(session, &(lin_utterances_sink){.context = &fork, .show = hear}, &copy, &err));
        push(session, sound, 2, cuts[i], SAMPLES, 5);
        push(copy, sound, 2, cuts[i], SAMPLES, 6);
        OK(lin_session_finish(session, &err));
        OK(lin_session_finish(copy, &err));
        same(&a, &b);
        same(&a, &fork);
        session_destroy(session);
        session_destroy(copy);
    }
    lin_free(sound);
    recognizer.delay_s = 0;
}
END_TEST

START_TEST(sound_that_is_none)
{
    static float sound[3000];
    lin_session *session;
    lin_session_options o = of_sound(RATE, 2);
    session = create(&o, &b);
    sound[2999] = NAN;
    FAILS(lin_session_push(session, sound, 1500, &err), LIN_NUMERIC, ""); // more than a block of the front end
    ck_assert_double_eq(lin_session_seconds(session), 0);
    FAILS(lin_session_push(session, sound + 2000, 500, &err), LIN_NUMERIC, "");
    ck_assert_double_eq(lin_session_seconds(session), 0);
    FAILS(lin_session_push(session, sound, -1, &err), LIN_INVALID, "");
    OK(lin_session_push(session, sound, 1000, &err));
    session_destroy(session);
    const lin_utterances_sink sink = {.context = &b, .show = hear};
    o.channel = 2;
    FAILS(session_create(&o, &sink, &session, &err), LIN_INVALID, "");
    o.channel = LIN_CHANNEL_EACH;
    FAILS(session_create(&o, &sink, &session, &err), LIN_INVALID, "");
    o = of_sound(10, 1);
    FAILS(session_create(&o, &sink, &session, &err), LIN_UNSUPPORTED, "");
    ck_assert_ptr_null(session);
}
END_TEST

TEST_MAIN_ONCE(setup, teardown, NULL, "linnet/stream", TEST(without_resets_all_utterances_are_one),
               TEST(with_resets_each_utterance_begins_anew), TEST(an_end_may_be_asked_for), TEST(failures),
               TEST(construction_latency), TEST(saved_and_loaded), TEST(forked), TEST(sound_that_is_none))
