// A second pass over each utterance that has ended: its result is that of the second model on these frames alone, and on the same
// piece of sound as a file; another hop; any split gives the same; what is settled before is as without it; states; refusals.
#include <math.h>

#include "linnet/judges.h"
#include "linnet/files.h"

#include "tests/linnet/finals.h"

static lin_recognizer second;

static void hear_every(lin_recognizer *r, double hop_ms)
{
    r->model->features.hop_ms = r->fbank.hop_ms = hop_ms;
    r->row_seconds = r->model->config.stack * hop_ms / 1000;
}

// With the stream's hop, except where another one is the subject.
static void begin(void)
{
    setup();
    OK(lin_recognizer_open(&second, "tests/golden/en/offline.safetensors", "cpu", LIN_PRECISION_FP32, NULL, &err));
    hear_every(&second, recognizer.fbank.hop_ms);
}

static void end(void)
{
    lin_recognizer_close(&second);
    teardown();
}

/* ---- searches -------------------------------------------------------------------------------------------------------------- */

// Greedy; a beam with alternatives; words; the sound of the stream's model too.
enum { SEARCHES = 4 };
static lin_decoding_values searches[SEARCHES];

static void choose_searches(void)
{
    for (int i = 0; i < SEARCHES; i++) {
        lin_decoding_values *v = &searches[i];
        *v = lin_decoding_default();
        v->words = i > 1;
        v->beam = (const int[]){0, 8, 32, 32}[i];
        v->n_best = (const int[]){1, 3, 1, 2}[i];
        v->rescore_n = 8;
        if (i == 3) v->combine = "";
    }
}

static lin_decoding search;
static heard h, whole, pieces, plain, half, copy, loaded, dropped, together[STREAMS];

static void close_all(void)
{
    heard *const all[] = {&h, &whole, &pieces, &plain, &half, &copy, &loaded, &dropped};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    for (int i = 0; i < STREAMS; i++) drop(&together[i]);
    lin_decoding_close(&search);
}

static void open_search(int i)
{
    choose_searches();
    OK(lin_decoding_open(&search, &searches[i], recognizer.phones, recognizer.row_seconds, 0, NULL, &err));
    if (searches[i].combine) search.combined = &recognizer;
}

static lin_session_options options_with(const lin_decoding *decoding)
{
    lin_session_options o = options_of_sound();
    o.decoding = decoding;
    o.second = &second;
    return o;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

// What the second model and the search make of frames, in a stream in which they begin at row `row`.
static void recognize_frames(const lin_decoding *decoding, const float *frames, int n, int row, lin_result *result)
{
    lin_worker *worker;
    lin_row_decoder decoder = {0};
    lin_decoding own = *decoding;
    const int stack = second.model->config.stack, rows = (n + stack - 1) / stack, offsets[] = {0, n};
    float *logp = lin_alloc((size_t)(rows * second.V), sizeof *logp);
    own.search = own.whole;
    own.delay_s = second.delay_s;
    OK(lin_worker_create(second.encoder, 1, &worker, &err));
    worker->search = own.language;
    OK(lin_encoder_run(worker, frames, offsets, 1, logp, &err));
    OK(lin_row_decoder_create(&decoder, &own, &err));
    lin_row_decoder_reset(&decoder, row);
    OK(lin_row_decoder_push(&decoder, logp, rows, &err));
    OK(lin_row_decoder_combine(&decoder, &second, 1, &err));
    OK(lin_combiner_push(decoder.combiner, frames, n, &err));
    OK(lin_row_decoder_finish(&decoder, result, &err));
    lin_row_decoder_free(&decoder);
    lin_worker_destroy(worker);
    lin_free(logp);
}

// Of the stream's frames from `first` on.
static void recognize(const lin_decoding *decoding, int first, int n, lin_result *result)
{
    recognize_frames(decoding, features + (size_t)first * (size_t)D, n, first / second.model->config.stack, result);
}

START_TEST(each_utterance_is_that_of_the_second_model)
{
    lin_result want = {0};
    open_search(_i);
    for (int resets = 0; resets < 2; resets++) {
        lin_session_options o = options_with(&search);
        o.ends.resets = resets;
        listen_to(&o, 4000, &h);
        ck_assert_int_eq(h.ends, PARTS);
        for (int i = 0, from = 0, to; i < h.ends; from = to, i++) {
            to = (int)h.rows[i] * recognizer.model->config.stack;
            if (to > n_features) to = n_features;
            OK(lin_result_begin(&want, "", NULL, 1, &err));
            recognize(&search, from, to - from, &want);
            ck_assert_int_eq(h.replaced[i], 1);
            ck_assert_int_gt(want.n_phones, 3);
            same_result(&h.finals[i], &want);
        }
        drop(&h);
    }
    lin_result_free(&want);
}
END_TEST

// Where second passes are skipped, results are those of the first.
START_TEST(skipped)
{
    static const volatile sig_atomic_t skips = 1;
    open_search(_i);
    lin_session_options o = options_with(&search);
    second.skip = &skips;
    listen_to(&o, 4000, &h);
    o.second = NULL;
    listen_to(&o, 4000, &plain);
    same(&h, &plain, 0);
    for (int i = 0; i < h.ends; i++) ck_assert_int_eq(h.replaced[i], 0);
}
END_TEST

// `linnet transcribe --model offline` of these samples.
static void same_as_file(const lin_result *got, const float *samples, int n, lin_decoding decoding)
{
    lin_file_worker *session;
    lin_file_report report;
    lin_result result = {0};
    decoding.search = decoding.whole;
    decoding.delay_s = second.delay_s;
    OK(lin_result_begin(&result, "", NULL, 1, &err));
    OK(lin_file_worker_create(&second, 1, &(lin_utterances_options){.decoding = &decoding}, &session, &err));
    const lin_sound sound = {.samples = samples, .n_samples = n, .rate_hz = RATE, .channels = 1, .channel = LIN_CHANNEL_MIX,
                             .results = &result};
    OK(lin_file_worker_run(session, &sound, &(lin_file_sink){0}, &report, &err));
    same_result(got, &result);
    lin_file_worker_destroy(session);
    lin_result_free(&result);
}

// Words of whole utterances have a wider search with exact sums, unless the options say how wide; a network that streams has its
// own beside it, one that does not has no other.
START_TEST(searches_of_whole_utterances)
{
    choose_searches();
    lin_decoding_values unsaid = lin_decoding_default();
    unsaid.words = 1;
    const lin_words_options narrow = lin_decoding_words_options(&unsaid, 0), wide = lin_decoding_words_options(&unsaid, 1),
                            said = lin_decoding_words_options(&searches[2], 1);
    ck_assert_int_lt(narrow.width, wide.width);
    ck_assert_double_lt(narrow.score, wide.score);
    ck_assert_int_eq(narrow.n_best, 1);
    ck_assert_int_gt(wide.n_best, 1);
    ck_assert_int_eq(said.width, 32);
    for (int i = 0; i < SEARCHES; i++) {
        lin_decoding streams, files;
        OK(lin_decoding_open_for(&recognizer, &searches[i], NULL, &streams, &err));
        OK(lin_decoding_open_for(&second, &searches[i], NULL, &files, &err));
        ck_assert_int_eq(streams.search.id != streams.whole.id, searches[i].words);
        ck_assert_uint_eq(files.search.id, files.whole.id);
        ck_assert_uint_eq(files.search.id, streams.whole.id);
        lin_decoding_close(&streams);
        lin_decoding_close(&files);
    }
}
END_TEST

// The first utterance of a stream, as far as its frames reach.
START_TEST(the_same_as_a_file)
{
    open_search(_i);
    const lin_session_options o = options_with(&search);
    listen_to(&o, SAMPLES, &h);
    const int frames = (int)h.rows[0] * recognizer.model->config.stack;
    same_as_file(&h.finals[0], whole_sound, (frames - 1) * 160 + 400, search);
}
END_TEST

// The time of a phone of the first utterance: an early phone, as one is with the longer hop, halves the times.
static double late(double at_s, int early) { return fmax(at_s, early ? (at_s + second.delay_s) / 2 : 0); }

// A second model with frames every 8 or 11.5 ms hears those of the stream interpolated, and its times are the stream's.
START_TEST(another_hop)
{
    static const double hops[] = {8, 11.5};
    const double own_hop = recognizer.fbank.hop_ms, hop = hops[_i];
    hear_every(&second, hop);
    open_search(0);
    const lin_session_options o = options_with(&search);
    listen_to(&o, 4000, &h);
    ck_assert_int_eq(h.ends, PARTS);
    search.row_seconds = second.row_seconds;
    for (int i = 0, from = 0, to; i < h.ends; from = to, i++) {
        to = (int)h.rows[i] * recognizer.model->config.stack;
        if (to > n_features) to = n_features;
        const int n = (int)((to - from - 1) * own_hop / hop) + 1;
        float *frames = lin_alloc((size_t)(n * D), sizeof *frames);
        for (int t = 0; t < n; t++)
            for (int d = 0; d < D; d++) {
                const double at = t * hop / own_hop, before = floor(at);
                const float *a = features + (from + (int)before) * D + d;
                frames[t * D + d] = (float)(a[0] + (at > before ? (at - before) * ((double)a[D] - (double)a[0]) : 0));
            }
        lin_result want = {0};
        OK(lin_result_begin(&want, "", NULL, 1, &err));
        // At a row so late that the delay fits before it.
        recognize_frames(&search, frames, n, 1000, &want);
        const double earlier_s = 1000 * second.row_seconds - from * own_hop / 1000;
        const lin_result *got = &h.finals[i];
        ck_assert_int_gt(want.n_phones, 3);
        ck_assert_int_eq(got->n_phones, want.n_phones);
        const int early = want.phones[0].end_s <= earlier_s;
        ck_assert(!early || i == 0);
        for (int k = 0; k < got->n_phones; k++) {
            const lin_result_phone *a = &got->phones[k], *b = &want.phones[k];
            ck_assert_int_eq(a->label, b->label);
            ck_assert_double_eq_tol(a->start_s, late(b->start_s - earlier_s, early), 1e-9);
            ck_assert_double_eq_tol(a->end_s, late(b->end_s - earlier_s, early), 1e-9);
            ck_assert_double_eq_tol(a->confidence, b->confidence, 1e-3);
        }
        lin_result_free(&want);
        lin_free(frames);
    }
    hear_every(&second, own_hop);
}
END_TEST

// One that lasts longer than models are trained on is cut where a file is.
START_TEST(a_long_utterance)
{
    enum { TIMES = 5 };
    open_search(0);
    lin_session_options o = options_with(&search);
    o.ends.endpoints = o.ends.resets = 0;
    float *sound = lin_alloc(TIMES * SAMPLES, sizeof *sound);
    lin_session *session = create(&o, &h);
    for (int i = 0; i < TIMES; i++) {
        memcpy(sound + i * SAMPLES, whole_sound, SAMPLES * sizeof *sound);
        OK(lin_session_push(session, whole_sound, SAMPLES, &err));
    }
    OK(lin_session_finish(session, &err));
    ck_assert_int_eq(h.ends, 1);
    same_as_file(&h.finals[0], sound, TIMES * SAMPLES, search);
    session_destroy(session);
    lin_free(sound);
}
END_TEST

START_TEST(any_split_gives_the_same)
{
    open_search(_i);
    lin_session_options o = options_with(&search);
    listen_to(&o, SAMPLES, &whole);
    listen_to(&o, 999, &pieces);
    same(&pieces, &whole, 0);
    // What is shown before is as without a second pass.
    o.second = NULL;
    listen_to(&o, 999, &plain);
    ck_assert(plain.live == pieces.live);
    ck_assert_int_eq(plain.ends, pieces.ends);
    for (int i = 0; i < plain.ends; i++) {
        ck_assert_int_eq(plain.replaced[i], 0);
        ck_assert_int_eq(plain.rows[i], pieces.rows[i]);
    }
}
END_TEST

// In the middle of the second utterance.
START_TEST(forked_and_saved)
{
    lin_session *fork, *other;
    lin_state state = {0}, read = {0};
    const int middle = PART_SAMPLES + 12000;
    open_search(0);
    lin_session_options o = options_with(&search);
    listen_to(&o, SAMPLES, &whole);
    lin_session *session = create(&o, &half);
    feed(session, 0, middle, 999);
    ck_assert_int_eq(half.ends, 1);
    OK(session_fork(session, &(lin_utterances_sink){.context = &copy, .show = hear}, &fork, &err));
    feed(fork, middle, SAMPLES, 999);
    same(&copy, &whole, 1);
    // A state has the frames of the utterance in progress.
    OK(lin_session_save(session, &state, &err));
    lin_state_seal(&state);
    OK(lin_state_parse(state.bytes, state.n, "state", &read, &err));
    ck_assert_uint_ge(read.sizes.frames, 40 * sizeof(float));
    other = create(&o, &loaded);
    OK(lin_session_load(other, &read, &err));
    feed(other, middle, SAMPLES, 999);
    same(&loaded, &whole, 1);
    // Frames of other rows than the utterance's.
    lin_state_lane_of(&read, 0)->first_row = 1;
    FAILS(lin_session_load(other, &read, &err), LIN_FORMAT, "");
    // A session without a second pass does not use them; its states have none, and the utterance in progress gets no second pass.
    o.second = NULL;
    lin_session *without = create(&o, &plain);
    OK(lin_session_load(without, &state, &err));
    OK(lin_session_save(without, &state, &err));
    ck_assert_uint_eq(state.sizes.frames, 0);
    drop(&loaded);
    OK(lin_session_load(other, &state, &err));
    feed(without, middle, SAMPLES, 999);
    feed(other, middle, SAMPLES, 999);
    ck_assert(!loaded.replaced[0] && loaded.replaced[1] && !plain.replaced[1]);
    same_result(&loaded.finals[0], &plain.finals[0]);
    same_result(&loaded.finals[1], &whole.finals[PARTS - 1]);
    lin_session *const sessions[] = {session, fork, other, without};
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) session_destroy(sessions[i]);
    lin_state_free(&state);
    lin_state_free(&read);
}
END_TEST

// Wherever a stream is saved, in the silence behind an utterance that is settled too.
START_TEST(saved_anywhere)
{
    open_search(0);
    const lin_session_options o = options_with(&search);
    listen_to(&o, SAMPLES, &whole);
    for (int at = 4000; at < SAMPLES; at += 4000) {
        heard before = {0}, after = {0};
        lin_state state = {0};
        lin_session *session = create(&o, &before), *other = create(&o, &after);
        feed(session, 0, at, 999);
        OK(lin_session_save(session, &state, &err));
        OK(lin_session_load(other, &state, &err));
        feed(other, at, SAMPLES, 999);
        same(&after, &whole, before.ends);
        session_destroy(session);
        session_destroy(other);
        lin_state_free(&state);
        drop(&before);
        drop(&after);
    }
}
END_TEST

START_TEST(ends_that_are_asked_for)
{
    lin_result want = {0};
    const lin_decoding greedy = lin_decoding_greedy(second.V, second.row_seconds, second.delay_s);
    lin_session_options o = options_with(NULL);
    o.ends.endpoints = o.ends.resets = 0;
    lin_session *session = create(&o, &h);
    feed(session, 0, PART_SAMPLES / 2, 999);
    OK(lin_session_end_utterance(session, &err));
    ck_assert_int_eq(h.ends, 1);
    ck_assert_int_eq(h.replaced[0], 1);
    OK(lin_result_begin(&want, "", NULL, 1, &err));
    recognize(&greedy, 0, (int)h.rows[0] * recognizer.model->config.stack, &want);
    same_result(&h.finals[0], &want);
    OK(lin_session_finish(session, &err));
    session_destroy(session);
    lin_result_free(&want);
}
END_TEST

/* ---- engines --------------------------------------------------------------------------------------------------------------- */

// One that is closed may be in the middle of a second pass.
START_TEST(streams_of_an_engine)
{
    lin_engine *engine;
    open_search(_i);
    lin_session_options o = options_with(&search);
    o.ends.resets = 0;
    listen_to(&o, SAMPLES, &whole);
    lin_engine_options how = options_of_engine(&o);
    how.views = 0;
    FAILS(lin_engine_create(&recognizer, &how, &engine, &err), LIN_INVALID, "");
    how.views = 1;
    listen_together(&how, together, &dropped);
    for (int i = 0; i < STREAMS; i++) same(&together[i], &whole, 0);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------------------------------------- */

START_TEST(models_that_do_not_fit)
{
    lin_session *session;
    static const char *const wanted[] = {"different features", "different levels", "different steps", "different phones",
                                         "by speaker"};
    for (int i = 0; i < 5; i++) {
        lin_model model = *second.model;
        lin_recognizer other = second;
        lin_session_options o = options_with(NULL);
        char phones[] = "<blank> AA";
        other.model = &model;
        o.second = &other;
        if (i == 0) model.features.high_hz = 7000;
        if (i == 1) model.features.level_db = 0;
        if (i == 2) model.config.stack = 4;
        if (i == 3) model.phones = phones;
        if (i == 4) model.speaker_norm = 1;
        const lin_utterances_sink sink = {.context = &h, .show = hear};
        FAILS(session_create(&o, &sink, &session, &err), i == 4 ? LIN_UNSUPPORTED : LIN_MISMATCH, wanted[i]);
        ck_assert_ptr_null(session);
    }
}
END_TEST

TEST_MAIN_ONCE(begin, end, close_all, "a second pass", TESTS(each_utterance_is_that_of_the_second_model, 0, SEARCHES),
               TESTS(skipped, 0, SEARCHES), TEST(searches_of_whole_utterances), TESTS(the_same_as_a_file, 0, SEARCHES),
               TESTS(another_hop, 0, 2), TEST(a_long_utterance), TESTS(any_split_gives_the_same, 0, SEARCHES),
               TEST(forked_and_saved), TEST(saved_anywhere), TEST(ends_that_are_asked_for),
               TESTS(streams_of_an_engine, 0, SEARCHES), TEST(models_that_do_not_fit))
