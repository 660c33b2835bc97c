// [slow] Saving and loading features: any cut gives the same bits as no cut, at every rate; bytes that are not a state are
// refused.
#include "frontend/resample.h"
#include "frontend/source.h"
#include "tests/frontend/support.h"

static const int rates[] = {16000, 8000, 11025, 44100};

enum { N_RATES = sizeof rates / sizeof rates[0], D = 40 };

static lin_extractor *make(int rate, int channels, int channel)
{
    lin_feature_options o = lin_feature_options_default();
    lin_extractor *f;
    o.channel = channel;
    OK(lin_extractor_create(rate, channels, &o, &f, &err));
    return f;
}

static int push(lin_extractor *f, const float *x, int n, float *frames, int capacity)
{
    int got;
    OK(lin_extractor_push(f, x, n, frames, capacity, &got, &err));
    return got;
}

static int finish(lin_extractor *f, float *frames, int capacity)
{
    int got;
    OK(lin_extractor_finish(f, frames, capacity, &got, &err));
    return got;
}

// Loads the state of f into another extractor, which keeps its past if `again`.
static lin_extractor *move(lin_extractor *f, int rate, int channels, int channel, int again)
{
    const size_t bytes = lin_extractor_state_bytes(f);
    void *state = test_buffer(bytes, 1);
    OK(lin_extractor_save(f, state, &err));
    lin_extractor_destroy(f);
    f = make(rate, channels, channel);
    if (again) OK(lin_extractor_keep_past(f, &err));
    OK(lin_extractor_load(f, state, bytes, &err));
    test_buffer_free(state);
    return f;
}

// Twelve seconds, cut in five places, among them twice at once, within a window and within a block of the resampler.
static void cut_anywhere(int rate, int channels, int channel, double seconds)
{
    const int n = (int)(seconds * rate), lanes = channel == LIN_CHANNEL_EACH ? channels : 1, capacity = (int)(seconds * 100) + 10;
    float *x = test_buffer((size_t)n * (size_t)channels, sizeof *x);
    float *whole = test_buffer((size_t)(capacity * lanes * D), sizeof *x), *cut = test_buffer((size_t)(capacity * D), sizeof *x);
    fill_tone(x, n * channels, rate, 440, 0.3, 0.3);
    lin_extractor *f = make(rate, channels, channel);
    int total = push(f, x, n, whole, capacity);
    float *tail = test_buffer((size_t)(capacity * lanes * D), sizeof *x);
    const int last = finish(f, tail, capacity);
    for (int l = 0; l < lanes; l++)
        memcpy(whole + (l * capacity + total) * D, tail + l * capacity * D, (size_t)(last * D) * sizeof *x);
    total += last;
    lin_extractor_destroy(f);

    const int cuts[] = {7, (int)(0.1 * n), (int)(0.1 * n) + 1, (int)(0.77 * n), n - 3, n};
    f = make(rate, channels, channel);
    OK(lin_extractor_keep_past(f, &err));
    int done = 0, at = 0;
    for (int i = 0; i <= 6; i++) {
        const int to = i < 6 ? cuts[i] : n;
        const int got = i < 6 ? push(f, x + at * channels, to - at, tail, capacity) : finish(f, tail, capacity);
        // A lane at a time.
        for (int l = 0; l < lanes; l++) {
            memcpy(cut, whole + (l * capacity + done) * D, (size_t)(got * D) * sizeof *x);
            ck_assert_msg(memcmp(cut, tail + l * capacity * D, (size_t)(got * D) * sizeof *x) == 0,
                          "%d Hz: other bits in frames %d to %d of lane %d", rate, done, done + got, l);
        }
        done += got;
        at = to;
        if (i < 6) f = move(f, rate, channels, channel, i < 5);
        if (i == 1) f = move(f, rate, channels, channel, 1);
    }
    ck_assert_int_eq(done, total);
    lin_extractor_destroy(f);
    TEST_FREE(x, whole, cut, tail);
}

START_TEST(any_cut_gives_the_same_bits) { cut_anywhere(rates[_i], 1, LIN_CHANNEL_MIX, rates[_i] == 44100 ? 14 : 4); }
END_TEST

START_TEST(any_cut_of_several_channels)
{
    cut_anywhere(8000, 3, LIN_CHANNEL_MIX, 2);
    cut_anywhere(8000, 3, LIN_CHANNEL_EACH, 2);
    cut_anywhere(16000, 3, LIN_CHANNEL_EACH, 2);
    cut_anywhere(8000, 2, 1, 2);
}
END_TEST

// For any positions of the blocks of 5 ms and of libsoxr's blocks, a state can be saved, and saving checks it.
START_TEST(it_can_be_saved_at_any_moment)
{
    enum { RATE = 22050, N = 8 * RATE };
    float *x = test_buffer(N, sizeof *x), *frames = test_buffer(200 * D, sizeof *x);
    fill_tone(x, N, RATE, 300, 0.2, 0.2);
    lin_extractor *f = make(RATE, 1, LIN_CHANNEL_MIX);
    OK(lin_extractor_keep_past(f, &err));
    for (int at = 0; at + 997 <= N; at += 997) {
        push(f, x + at, 997, frames, 200);
        void *state = test_buffer(lin_extractor_state_bytes(f), 1);
        OK(lin_extractor_save(f, state, &err));
        test_buffer_free(state);
    }
    lin_extractor_destroy(f);
    TEST_FREE(x, frames);
}
END_TEST

// The kept past of the resampler does not grow, and neither does a state.
START_TEST(the_past_is_bounded)
{
    lin_extractor *f = make(8000, 1, LIN_CHANNEL_MIX);
    float *x = test_buffer(8000, sizeof *x), *frames = test_buffer(200 * D, sizeof *x);
    OK(lin_extractor_keep_past(f, &err));
    fill_tone(x, 8000, 8000, 300, 0.2, 0.2);
    const unsigned long before = lin_memory_count();
    size_t most = 0;
    for (int i = 0; i < 600; i++) {
        push(f, x, 7999, frames, 200);
        const size_t bytes = lin_extractor_state_bytes(f);
        most = bytes > most ? bytes : most;
    }
    ck_assert_uint_eq(lin_memory_count(), before);
    ck_assert_uint_lt(most, 40000);
    lin_extractor_destroy(f);
    TEST_FREE(x, frames);
}
END_TEST

START_TEST(periods)
{
    int64_t period = 1;
    OK(lin_resampler_find_period(16000, 16000, &period, &err));
    ck_assert_int_eq(period, 0);
    OK(lin_resampler_find_period(48000, 16000, &period, &err));
    ck_assert_int_gt(period, 0);
    ck_assert_int_eq(period % 3, 0);
    FAILS(lin_resampler_find_period(14400.5, 16000, &period, &err), LIN_UNSUPPORTED, "14400.5 to 16000");
    ck_assert_int_eq(period, 0);
}
END_TEST

START_TEST(what_is_no_state_is_refused)
{
    enum { N = 8000 * 2 };
    float *x = test_buffer(N, sizeof *x), *frames = test_buffer(300 * D, sizeof *x);
    fill_tone(x, N, 8000, 300, 0.2, 0.2);
    lin_extractor *f = make(8000, 1, LIN_CHANNEL_MIX), *g = make(8000, 1, LIN_CHANNEL_MIX),
                  *other = make(8000, 2, LIN_CHANNEL_EACH);
    lin_extractor *fast = make(48000, 1, LIN_CHANNEL_MIX);
    char none[64];
    FAILS(lin_extractor_save(f, none, &err), LIN_INVALID, "does not keep its past");
    OK(lin_extractor_keep_past(f, &err));
    push(f, x, N, frames, 300);
    const size_t bytes = lin_extractor_state_bytes(f);
    unsigned char *state = test_buffer(bytes, 1);
    OK(lin_extractor_save(f, state, &err));
    FAILS(lin_extractor_load(other, state, bytes, &err), LIN_FORMAT, "other channels");
    FAILS(lin_extractor_load(fast, state, bytes, &err), LIN_FORMAT, "from 8000 to 16000");
    // A state truncated at any byte, or with any bit of a count changed, is refused or loads other samples: it never crashes.
    for (size_t n = 0; n < bytes; n += n < 300 ? 7 : 1997) ck_assert_int_ne(lin_extractor_load(g, state, n, NULL), LIN_OK);
    for (size_t bit = 0; bit < 8 * 84; bit += 3) {
        state[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int got;
        if (lin_extractor_load(g, state, bytes, NULL) == LIN_OK)
            lin_extractor_push(g, x, 100, frames, 300, &got, NULL);
        state[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    OK(lin_extractor_load(g, state, bytes, &err));
    lin_extractor_destroy(f);
    lin_extractor_destroy(g);
    lin_extractor_destroy(other);
    lin_extractor_destroy(fast);
    TEST_FREE(state, x, frames);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const unsigned long live = lin_memory_live();
    float x[2000], frames[60 * D];
    fill_tone(x, 2000, 8000, 300, 0.2, 0.2);
    unsigned long k = 1;
    for (;; k++) {
        lin_extractor *f = make(8000, 1, LIN_CHANNEL_MIX), *g = make(8000, 1, LIN_CHANNEL_MIX);
        unsigned char state[20000];
        lin_memory_fail_at(k);
        lin_status status = lin_extractor_keep_past(f, NULL);
        int got = 0;
        if (status == LIN_OK) status = lin_extractor_push(f, x, 2000, frames, 60, &got, NULL);
        if (status == LIN_OK) status = lin_extractor_save(f, state, NULL);
        if (status == LIN_OK) status = lin_extractor_load(g, state, lin_extractor_state_bytes(f), NULL);
        lin_memory_fail_at(0);
        lin_extractor_destroy(f);
        lin_extractor_destroy(g);
        ck_assert_uint_eq(lin_memory_live(), live);
        if (status == LIN_OK) break;
        ck_assert_int_eq(status, LIN_NO_MEMORY);
    }
    ck_assert_uint_gt(k, 6);
}
END_TEST

TEST_MAIN("frontend/save", TESTS(any_cut_gives_the_same_bits, 0, N_RATES), TEST(any_cut_of_several_channels),
          TEST(it_can_be_saved_at_any_moment), TEST(the_past_is_bounded), TEST(periods), TEST(what_is_no_state_is_refused),
          TEST(every_allocation_may_fail))
