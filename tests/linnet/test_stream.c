// The growing result: any split of the sound, endpoints that reset and that do not, what is settled stays,
// look-ahead is not lost.
#include "linnet/stream.h"

#include "decoder/search.h"
#include "tests/linnet/stream_sound.h"
#include "tests/model/one_stream.h"

enum { MOST_PHONES = 400, MOST_ENDS = 512 };

/* ---- what is shown --------------------------------------------------------------------------------------------------------- */

typedef struct shown {
    lin_result_phone phones[MOST_PHONES], growing[MOST_PHONES];
    int n, n_growing;           // of utterances that ended, and settled ones of the one that grows
    int ends, first[MOST_ENDS]; // first[i]: index of the first phone of utterance i
    double ended_at[MOST_ENDS]; // sound judged when it ended
    linnet_end why[MOST_ENDS];
    int revision, views;
    int fail_at; // the view that fails, 0: none
} shown;

static void same_phones(const lin_result_phone *got, const lin_result_phone *want, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        ck_assert_msg(got[i].label == want[i].label && got[i].start_s == want[i].start_s && got[i].end_s == want[i].end_s &&
                          got[i].confidence == want[i].confidence,
                      "%s: phone %d is %d at %.3f-%.3f, wanted %d at %.3f-%.3f", what, i, got[i].label, got[i].start_s,
                      got[i].end_s, want[i].label, want[i].start_s, want[i].end_s);
    }
}

static lin_status hear(void *context, const lin_session_view *v, lin_error *err)
{
    shown *h = context;
    if (++h->views == h->fail_at) return lin_fail(err, LIN_IO, "the sink is full");
    ck_assert_int_eq(v->utterance, h->ends + 1);
    ck_assert_int_eq(v->revision, ++h->revision);
    ck_assert_int_eq(v->old_phones, h->n_growing);
    // What was settled once is there again, unchanged.
    ck_assert_int_ge(v->settled->n_phones, h->n_growing);
    same_phones(v->settled->phones, h->growing, h->n_growing, "a settled phone");
    ck_assert_int_lt(h->n + v->settled->n_phones, MOST_PHONES);
    h->n_growing = v->settled->n_phones;
    if (h->n_growing) memcpy(h->growing, v->settled->phones, (size_t)h->n_growing * sizeof *h->growing);
    ck_assert_int_gt(v->settled->n_phones + v->provisional->n_phones, 0);
    ck_assert_double_eq(v->start_s, v->settled->n_phones ? v->settled->phones[0].start_s : v->provisional->phones[0].start_s);
    const lin_result *last = v->provisional->n_phones ? v->provisional : v->settled;
    ck_assert_double_eq(v->end_s, last->phones[last->n_phones - 1].end_s);
    ck_assert_double_le(v->end_s, v->processed_s + 1e-9);
    if (v->end == LINNET_GROWS) return LIN_OK;
    ck_assert_int_eq(v->provisional->n_phones, 0);
    ck_assert_int_lt(h->ends, MOST_ENDS);
    h->first[h->ends] = h->n;
    h->ended_at[h->ends] = v->processed_s;
    h->why[h->ends++] = v->end;
    memcpy(h->phones + h->n, h->growing, (size_t)h->n_growing * sizeof *h->growing);
    h->n += h->n_growing;
    h->n_growing = h->revision = 0;
    return LIN_OK;
}

static lin_session *create(const lin_session_options *o, shown *h)
{
    lin_error err = {0};
    lin_session *session;
    memset(h, 0, sizeof *h);
    require_ok(session_create(o, &(lin_utterances_sink){.context = h, .show = hear}, &session, &err));
    return session;
}

// In pieces of random length up to `most` frames.
static void listen_to(const lin_session_options *o, int most, uint64_t seed, shown *h)
{
    lin_error err = {0};
    lin_session *session = create(o, h);
    feed_frames(session, 0, n_features, most, seed);
    require_ok(lin_session_finish(session, &err));
    session_destroy(session);
}

static void same(const shown *a, const shown *b)
{
    ck_assert_int_eq(a->n, b->n);
    ck_assert_int_eq(a->ends, b->ends);
    same_phones(a->phones, b->phones, a->n, "another split");
    for (int i = 0; i < a->ends; i++) {
        ck_assert_int_eq(a->first[i], b->first[i]);
        ck_assert_int_eq(a->why[i], b->why[i]);
        ck_assert_double_eq(a->ended_at[i], b->ended_at[i]);
    }
}

// Decoded at once by a network that hears frames from .. until-1.
static int decode(int from, int until, lin_result_phone *phones)
{
    lin_error err = {0};
    const int stack = recognizer.model->config.stack, T = until - from, rows = (T + stack - 1) / stack;
    float *logp = lin_alloc((size_t)(rows * recognizer.V), sizeof *logp);
    lin_greedy_phone *found = lin_alloc((size_t)rows + 1, sizeof *found);
    lin_greedy greedy;
    lin_result result = {0};
    int n_phones, last;
    lin_streams *stream = one_stream(recognizer.encoder, 1, 0);
    const int n = one_stream_feed(stream, D, recognizer.V, features + (size_t)(from * D), T, 1, logp);
    lin_greedy_reset(&greedy, recognizer.V, from / stack, 0);
    require_ok(lin_greedy_push(&greedy, logp, n, found, rows, &n_phones, &err));
    lin_greedy_finish(&greedy, found + n_phones, &last);
    require_ok(lin_result_add_path(&result, &(lin_path){.phones = found, .n_phones = n_phones + last}, recognizer.row_seconds,
                                   NULL, NULL, &err));
    ck_assert_int_lt(result.n_phones, MOST_PHONES);
    if (result.n_phones) memcpy(phones, result.phones, (size_t)result.n_phones * sizeof *phones);
    const int count = result.n_phones;
    lin_result_free(&result);
    lin_streams_destroy(stream);
    lin_free(logp);
    lin_free(found);
    return count;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static shown a, b;

START_TEST(any_split_gives_the_same)
{
    lin_session_options o = options_of_sound();
    for (o.ends.resets = 0; o.ends.resets < 2; o.ends.resets++) {
        listen_to(&o, n_features, 1, &a);
        ck_assert_int_ge(a.ends, 3);
        ck_assert_int_ge(a.n, 12);
        const int most[] = {7, 1, 300, 3, 40};
        const int splits = TEST_ASAN ? 1 : 5;
        for (int i = 0; i < splits; i++) {
            listen_to(&o, most[i], 11 + (uint64_t)i, &b);
            same(&a, &b);
        }
    }
}
END_TEST

START_TEST(without_resets_all_utterances_are_one)
{
    static lin_result_phone want[MOST_PHONES];
    lin_session_options o = options_of_sound();
    const int n = decode(0, n_features, want);
    const double longest[] = {30, 0.3, 0.06}; // the last two cut phones in two
    o.ends.resets = 0;
    for (int i = 0; i < 3; i++) {
        o.ends.rules.longest_s = longest[i];
        listen_to(&o, 30, 3, &a);
        ck_assert_int_ge(a.ends, i == 0 ? 3 : 10);
        ck_assert_int_eq(a.n, n);
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
    static lin_result_phone want[MOST_PHONES];
    lin_session_options o = options_of_sound();
    const double longest[] = {30, 0.9, 0.45};
    for (int i = 0; i < 3; i++) {
        o.ends.rules.longest_s = longest[i];
        if (i) o.ends.rules.after_s = 30;
        if (i) o.ends.rules.before_s = 0;
        lin_error err = {0};
        lin_session *session = create(&o, &a);
        int fed = 0;
        while (fed < n_features && a.ends < MOST_ENDS - 1) {
            const int n = n_features - fed < 9 ? n_features - fed : 9;
            require_ok(push_frames(session, fed, n, &err));
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
            const int count = (u + 1 < a.ends ? a.first[u + 1] : a.n) - a.first[u];
            ck_assert_int_gt(count, 0);
            for (int p = 0; p < count; p++) {
                ck_assert_int_eq(a.phones[a.first[u] + p].label, want[p].label);
                ck_assert_double_eq_tol(a.phones[a.first[u] + p].start_s, want[p].start_s, 1e-9);
            }
        }
    }
}
END_TEST

// A network that hears one phone without an end: every end cuts it in two.
START_TEST(a_phone_that_an_end_cuts)
{
    lin_error err = {0};
    lin_session_options o = options_of_sound();
    lin_recognizer deaf = recognizer;
    const lin_params *params = &recognizer.model->params;
    float *bias = recognizer.model->values + params->table[params->output[1]].offset + 5;
    *bias += 1000;
    require_ok(lin_encoder_create(recognizer.model, lin_ops_cpu(), &deaf.encoder, &err));
    const int rows = (n_features + 2) / 3;
    o.ends.rules.longest_s = 0.06; // two rows
    lin_recognizer sound = recognizer;
    for (o.ends.resets = 0; o.ends.resets < 2; o.ends.resets++) {
        recognizer = deaf;
        listen_to(&o, 50, 8, &a);
        recognizer = sound;
        // Carried on, it is one phone, told once; after a reset it is a phone of its own.
        ck_assert_int_eq(a.n, o.ends.resets ? (rows + 1) / 2 : 1);
        ck_assert_int_eq(a.ends, a.n);
        for (int i = 0; i < a.n; i++) {
            ck_assert_int_eq(a.phones[i].label, 5);
            ck_assert_double_eq_tol(a.phones[i].start_s, 0.06 * i, 1e-9);
        }
    }
    lin_encoder_destroy(deaf.encoder);
    *bias -= 1000;
}
END_TEST

START_TEST(an_end_may_be_asked_for)
{
    lin_error err = {0};
    lin_session_options o = options_of_sound();
    o.ends.rules.after_s = o.ends.rules.before_s = o.ends.rules.longest_s = 0;
    lin_session *session = create(&o, &a);
    require_ok(lin_session_end_utterance(session, &err)); // nothing has been said: nothing is told
    ck_assert_int_eq(a.views, 0);
    require_ok(push_frames(session, 0, 100, &err));
    ck_assert_int_eq(a.ends, 0);
    ck_assert_int_gt(a.views, 0);
    require_ok(lin_session_end_utterance(session, &err));
    ck_assert_int_eq(a.ends, 1);
    ck_assert_int_eq(a.why[0], LINNET_ASKED);
    require_ok(push_frames(session, 100, n_features - 100, &err));
    require_ok(lin_session_finish(session, &err));
    ck_assert_int_eq(a.ends, 2);
    ck_assert_int_eq(a.why[1], LINNET_FINISHED);
    session_destroy(session);
    static lin_result_phone want[MOST_PHONES];
    const int n = decode((int)lround(a.ended_at[0] * 100), n_features, want);
    ck_assert_int_eq(a.n - a.first[1], n);
    for (int p = 0; p < n; p++) ck_assert_int_eq(a.phones[a.first[1] + p].label, want[p].label);
    // And just before the sound ends.
    session = create(&o, &b);
    require_ok(push_frames(session, 0, n_features, &err));
    const int growing = b.n_growing;
    require_ok(lin_session_end_utterance(session, &err));
    ck_assert_int_ge(b.n, growing);
    require_ok(lin_session_finish(session, &err));
    session_destroy(session);
}
END_TEST

START_TEST(nothing_is_allocated_on_the_way)
{
    lin_error err = {0};
    const lin_session_options o = options_of_sound();
    lin_session *session = create(&o, &a);
    const unsigned long before = lin_memory_count();
    unsigned long first_utterance = 0;
    for (int at = 0; at + 4 <= n_features; at += 4) {
        require_ok(push_frames(session, at, 4, &err));
        if (a.ends == 1 && !first_utterance) first_utterance = lin_memory_count() + 1;
    }
    ck_assert_int_ge(a.ends, 3);
    ck_assert_uint_eq(lin_memory_count() + 1, first_utterance); // the room of the longest utterance, once, in four lists
    ck_assert_uint_le(lin_memory_count() - before, 4);
    session_destroy(session);
}
END_TEST

START_TEST(failures)
{
    lin_error err = {0};
    lin_session_options o = options_of_sound();
    lin_session *session = create(&o, &a);
    a.fail_at = 3;
    lin_status status = LIN_OK;
    for (int at = 0; at < n_features && status == LIN_OK; at += 5)
        status = push_frames(session, at, 5, &err);
    ck_assert_int_eq(status, LIN_IO);
    ck_assert_str_eq(err.message, "the sink is full");
    ck_assert_int_eq(a.views, 3);
    session_destroy(session);
    o.ends.rules.blank = 2;
    const lin_utterances_sink sink = {.context = &a, .show = hear};
    ck_assert_int_eq(session_create(&o, &sink, &session, &err), LIN_INVALID);
    ck_assert_ptr_null(session);
    o = options_of_sound();
    FAIL_EVERY_ALLOCATION_OF(session, session_create(&o, &sink, &session, &err), session_destroy(session));
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
    lin_error err = {0};
    const lin_session_options o = options_of_sound();
    lin_session *session = create(&o, &a);
    int seen = 0;
    for (int at = 0; at < 150; at++) {
        require_ok(push_frames(session, at, 1, &err));
        const double sound_s = at * 0.01 + 0.025;
        for (; seen < a.n_growing; seen++) ck_assert_double_eq_tol(sound_s - a.growing[seen].end_s, d.total_s, 1e-6);
    }
    ck_assert_int_gt(seen, 3);
    session_destroy(session);
}
END_TEST

/* ---- sound, saved and forked sessions -------------------------------------------------------------------------------------- */

static lin_session_options of_sound(int rate_hz, int channels)
{
    lin_session_options o = lin_session_options_default();
    o.rate_hz = rate_hz;
    o.channels = channels;
    o.saves = 1;
    return o;
}

// Samples from .. to-1 in pieces of random length.
static void push(lin_session *session, const float *sound, int channels, int from, int to, uint64_t seed)
{
    lin_error err = {0};
    for (int at = from, n, i = 0; at < to; at += n, i++) {
        n = (int)lin_random_below(seed, (uint64_t)i, 5000);
        if (n > to - at) n = to - at;
        require_ok(lin_session_push(session, sound + (size_t)(at * channels), n, &err));
    }
}

static float *stereo_sound(void)
{
    float *mono = lin_alloc(SAMPLES, sizeof *mono), *sound = lin_alloc(2 * SAMPLES, sizeof *sound);
    make_sound(mono);
    for (int i = 0; i < SAMPLES; i++) sound[2 * i] = mono[i] * 1.5f, sound[2 * i + 1] = mono[i] * 0.5f;
    lin_free(mono);
    return sound;
}

START_TEST(sound_gives_what_its_frames_give)
{
    lin_error err = {0};
    float *sound = lin_alloc(SAMPLES, sizeof *sound);
    make_sound(sound);
    lin_session_options o = of_sound(RATE, 1);
    const lin_session_options of_frames = options_of_sound();
    listen_to(&of_frames, n_features, 1, &a);
    for (int i = 0; i < 3; i++) {
        lin_session *session = create(&o, &b);
        if (i == 0) require_ok(lin_session_push(session, sound, SAMPLES, &err));
        else push(session, sound, 1, 0, SAMPLES, (uint64_t)i);
        ck_assert_double_eq_tol(lin_session_seconds(session), (double)SAMPLES / RATE, 1e-9);
        require_ok(lin_session_finish(session, &err));
        same(&a, &b);
        // After a reset it is as new.
        ck_assert_int_eq(lin_session_push(session, sound, 1, &err), LIN_INVALID);
        require_ok(lin_session_reset(session, &err));
        memset(&b, 0, sizeof b);
        push(session, sound, 1, 0, SAMPLES, 9);
        require_ok(lin_session_finish(session, &err));
        same(&a, &b);
        session_destroy(session);
    }
    lin_free(sound);
}
END_TEST

// All phones of two runs, the second of which may show some of them in another utterance.
static void all_phones(shown *h)
{
    memcpy(h->phones + h->n, h->growing, (size_t)h->n_growing * sizeof *h->growing);
    h->n += h->n_growing;
    h->n_growing = 0;
}

enum { CUT_STEP = TEST_ASAN ? 3 : 1 };

static const int cuts[] = {0, 1, 700, 20000, 30011, SAMPLES / 2 + 7, SAMPLES - 1};

#define LATE_S 1.5 /* an emission delay within which phones have been settled, at some of the cuts */

static void all_have_a_length(const shown *h)
{
    for (int i = 0; i < h->n; i++)
        ck_assert(h->phones[i].end_s > h->phones[i].start_s && h->phones[i].start_s >= (i ? h->phones[i - 1].end_s : 0));
}

START_TEST(saved_and_loaded)
{
    static shown before, after;
    lin_error err = {0};
    lin_state state = {0}, read = {0};
    lin_session *session, *next;
    char path[300], folder[256];
    test_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/state", folder);
    float *sound = stereo_sound();
    lin_session_options o = of_sound(22050, 2); // at another rate than it has: it is resampled
    o.ends.rules.longest_s = 1;
    for (o.ends.resets = 0; o.ends.resets < 2; o.ends.resets++) {
        recognizer.delay_s = o.ends.resets ? LATE_S : 0;
        session = create(&o, &a);
        push(session, sound, 2, 0, SAMPLES, 3);
        require_ok(lin_session_finish(session, &err));
        session_destroy(session);
        ck_assert_int_ge(a.ends, 3);
        all_have_a_length(&a);
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i += CUT_STEP) {
            session = create(&o, &before);
            push(session, sound, 2, 0, cuts[i], 4);
            require_ok(lin_session_save(session, &state, &err));
            require_ok(lin_state_write(&state, path, &err));
            session_destroy(session);
            require_ok(lin_state_read(path, &read, &err));
            next = create(&o, &after);
            push(next, sound, 2, 0, 5000, 1); // whatever was there is gone
            memset(&after, 0, sizeof after);
            require_ok(lin_session_load(next, &read, &err));
            push(next, sound, 2, cuts[i], SAMPLES, 5);
            require_ok(lin_session_finish(next, &err));
            session_destroy(next);
            all_phones(&before);
            ck_assert_int_eq(before.n + after.n, a.n);
            same_phones(before.phones, a.phones, before.n, "before");
            same_phones(after.phones, a.phones + before.n, after.n, "after");
        }
    }
    recognizer.delay_s = 0;
    // Of something else.
    lin_session_options others[] = {of_sound(16000, 2), of_sound(44100, 2), of_sound(44100, 2)};
    others[1].channel = 1;
    others[2].ends.rules.after_s = 0.5;
    for (int i = 0; i < 3; i++) {
        next = create(&others[i], &b);
        ck_assert_int_eq(lin_session_load(next, &read, &err), LIN_MISMATCH);
        require_ok(lin_session_push(next, sound, 1000, &err));
        session_destroy(next);
    }
    o.saves = 0;
    session = create(&o, &b);
    ck_assert_int_eq(lin_session_save(session, &state, &err), LIN_INVALID);
    session_destroy(session);
    lin_state_free(&state);
    lin_state_free(&read);
    lin_free(sound);
    test_folder_remove(folder);
}
END_TEST

START_TEST(forked)
{
    static shown fork;
    lin_error err = {0};
    lin_session *session, *copy;
    float *sound = stereo_sound();
    const lin_session_options o = of_sound(44100, 2);
    recognizer.delay_s = LATE_S;
    session = create(&o, &a);
    push(session, sound, 2, 0, SAMPLES, 3);
    require_ok(lin_session_finish(session, &err));
    all_have_a_length(&a);
    ck_assert_int_eq(session_fork(session, &(lin_utterances_sink){.context = &fork, .show = hear}, &copy, &err), LIN_INVALID);
    ck_assert_ptr_null(copy);
    session_destroy(session);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i += CUT_STEP) {
        session = create(&o, &b);
        push(session, sound, 2, 0, cuts[i], 4);
        fork = b; // it goes on with all that was shown
        require_ok(session_fork(session, &(lin_utterances_sink){.context = &fork, .show = hear}, &copy, &err));
        push(session, sound, 2, cuts[i], SAMPLES, 5);
        push(copy, sound, 2, cuts[i], SAMPLES, 6);
        require_ok(lin_session_finish(session, &err));
        require_ok(lin_session_finish(copy, &err));
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
    lin_error err = {0};
    static float sound[3000];
    lin_session *session;
    lin_session_options o = of_sound(RATE, 2);
    session = create(&o, &b);
    sound[2999] = NAN;
    ck_assert_int_eq(lin_session_push(session, sound, 1500, &err), LIN_NUMERIC); // more than a block of the front end
    ck_assert_double_eq(lin_session_seconds(session), 0);
    ck_assert_int_eq(lin_session_push(session, sound + 2000, 500, &err), LIN_NUMERIC);
    ck_assert_double_eq(lin_session_seconds(session), 0);
    ck_assert_int_eq(lin_session_push(session, sound, -1, &err), LIN_INVALID);
    require_ok(lin_session_push(session, sound, 1000, &err));
    session_destroy(session);
    const lin_utterances_sink sink = {.context = &b, .show = hear};
    o.channel = 2;
    ck_assert_int_eq(session_create(&o, &sink, &session, &err), LIN_INVALID);
    o.channel = LIN_CHANNEL_EACH;
    ck_assert_int_eq(session_create(&o, &sink, &session, &err), LIN_INVALID);
    o = of_sound(10, 1);
    ck_assert_int_eq(session_create(&o, &sink, &session, &err), LIN_UNSUPPORTED);
    ck_assert_ptr_null(session);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linnet/stream");
    TCase *cases = tcase_create("session");
    tcase_add_unchecked_fixture(cases, setup, teardown);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, any_split_gives_the_same);
    tcase_add_test(cases, without_resets_all_utterances_are_one);
    tcase_add_test(cases, with_resets_each_utterance_begins_anew);
    tcase_add_test(cases, a_phone_that_an_end_cuts);
    tcase_add_test(cases, an_end_may_be_asked_for);
    tcase_add_test(cases, nothing_is_allocated_on_the_way);
    tcase_add_test(cases, failures);
    tcase_add_test(cases, construction_latency);
    tcase_add_test(cases, sound_gives_what_its_frames_give);
    tcase_add_test(cases, saved_and_loaded);
    tcase_add_test(cases, forked);
    tcase_add_test(cases, sound_that_is_none);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
