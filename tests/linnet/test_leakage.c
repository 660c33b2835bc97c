// linnet/leakage.c: words of a channel that are another channel's, for several levels, delays and noise; words of its own stay,
// alone and at the same time, loud and quiet.
#include "linnet/leakage.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tests/lexicon/support.h"

enum { RATE = 16000, SECONDS = 8, N = RATE * SECONDS, SYLLABLE = RATE / 10, DELAY = 40 };

static float voices[2][N], sound[N * 2];

static double noise_at(uint64_t seed, int i) { return sqrt(12) * (lin_random_uniform(seed, (uint64_t)i) - 0.5); }

// Syllables of four tones, each with a pitch and a level of its own; noise far below them.
static void make_voice(float *to, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        const int syllable = i / SYLLABLE;
        const double t = (double)i / RATE, envelope = sin(3.14159265 * (i % SYLLABLE) / SYLLABLE);
        double sum = 1e-4 * noise_at(seed, i);
        for (int k = 0; k < 4; k++) {
            const uint64_t at = (uint64_t)(1000000 + syllable * 8 + k);
            const double hz = 200 * pow(2, 4.2 * lin_random_uniform(seed, at));
            const double level = 0.3 + 0.7 * lin_random_uniform(seed, at + 4);
            sum += 0.05 * level * envelope * sin(6.28318531 * hz * t);
        }
        to[i] = (float)sum;
    }
}

// When each speaks, as words of 0.3 s.
static int speaks(int turns, int channel, int word) { return !turns || word / 5 % 2 == channel; }

typedef struct call {
    double leak_db, second_db, noise_db; /* second_db: of the second voice */
    int delay, turns; /* turns: one after the other; 0: both at once */
    int twice;        /* words of each channel that are leakage: those of the other one's turns; 0: none */
} call;

static void make_sound(const call *c)
{
    const double leak = pow(10, c->leak_db / 20), gains[2] = {1, pow(10, c->second_db / 20)}, noise = pow(10, c->noise_db / 20);
    make_voice(voices[0], 1);
    make_voice(voices[1], 2);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++)
            if (!speaks(c->turns, k, i / (RATE * 3 / 10))) voices[k][i] = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            const double other = i >= c->delay ? gains[1 - k] * (double)voices[1 - k][i - c->delay] : 0;
            sound[i * 2 + k] =
                (float)(gains[k] * (double)voices[k][i] + leak * other + noise * noise_at(3, i * 2 + k));
        }
}

static const char *spell(const void *context, int word)
{
    (void)context;
    return word ? "odd" : "even";
}

static void make_result(lin_result *r, int channel, int words)
{
    OK(lin_result_begin(r, "x", "anna", channel + 1, &err));
    for (int i = 0; i < SECONDS * 10 / 3; i++) {
        lin_path_phone phone = {.label = 1 + i % 30, .confidence = 1, .start = i * 30 + 3, .end = i * 30 + 27};
        lin_path_word word = {.word = i % 2, .n_phones = 1, .confidence = 1, .start = phone.start, .end = phone.end};
        const lin_path path = {.phones = &phone, .n_phones = 1, .words = &word, .n_words = words};
        OK(lin_result_add_path(r, &path, 0.01, words ? spell : NULL, NULL, &err));
    }
    r->seconds = SECONDS;
}

static void measure(lin_leakage *l, double at_s)
{
    const lin_audio_format format = {.rate_hz = RATE, .channels = 2};
    for (int at = 0, n; at < N; at += n) {
        n = N - at < 1009 ? N - at : 1009;
        OK(lin_leakage_push(l, &format, at_s + (double)at / RATE, sound + at * 2, n, &err));
    }
}

static const call calls[] = {
    {-12, 0, -90, 0, 1, 1},      {-20, 0, -90, 0, 1, 1},      {-30, 0, -90, 0, 1, 1},    {-20, 0, -90, DELAY, 1, 1},
    {-20, 0, -70, 0, 1, 1},      {-20, -10, -90, 0, 1, 1}, // the second speaker is quiet, too
    {-300, 0, -90, 0, 1, 0},     {-300, -20, -90, 0, 1, 0},   {-300, 0, -90, 0, 0, 0},   {-300, -20, -90, 0, 0, 0},
    {-12, 0, -90, 0, 0, 0},      {-20, 0, -90, 0, 0, 0},      {-30, -10, -90, 0, 0, 0}, // both at once: all stays
};

START_TEST(what_leaks_is_left_out)
{
    const call *c = &calls[_i / 2];
    const int words = _i % 2;
    lin_leakage l = {0};
    lin_result r[2] = {0};
    lin_leakage_found found[2];
    make_sound(c);
    measure(&l, 0);
    for (int k = 0; k < 2; k++) make_result(&r[k], k, words);
    OK(lin_leakage_find(&l, r, 2, 0, found, &err));
    for (int k = 0; k < 2; k++) ck_assert_int_eq(words ? r[k].n_words : r[k].n_phones, found[k].of); // they are only counted
    OK(lin_leakage_find(&l, r, 2, 1, found, &err));
    for (int k = 0; k < 2; k++) {
        int left = 0;
        for (int i = 0; i < found[k].of; i++) {
            if (c->twice && !speaks(1, k, i)) continue;
            ck_assert_int_lt(left, r[k].n_phones);
            ck_assert_int_eq(r[k].phones[left].label, 1 + i % 30);
            ck_assert_double_eq_tol(r[k].phones[left].start_s, i * 0.3 + 0.03, 1e-9);
            if (words) ck_assert_str_eq(lin_result_word_text(&r[k], left), i % 2 ? "odd" : "even");
            left++;
        }
        ck_assert_int_eq(r[k].n_phones, left);
        ck_assert_int_eq(r[k].has_words, words);
        ck_assert_int_eq(found[k].n, found[k].of - left);
        if (found[k].n) ck_assert_int_eq(found[k].from, 1 - k);
        ck_assert_double_eq(r[k].seconds, SECONDS);
        ck_assert_str_eq(r[k].speaker, "anna");
        lin_result_free(&r[k]);
    }
    lin_leakage_free(&l);
}
END_TEST

// The first of two equal channels keeps everything, the second nothing; of a part of a sound too.
START_TEST(equal_channels_are_one)
{
    lin_leakage l = {0};
    lin_result r[2] = {0};
    lin_leakage_found found[2];
    make_sound(&(call){.leak_db = -300, .noise_db = -90});
    for (int i = 0; i < N; i++) sound[i * 2 + 1] = sound[i * 2];
    measure(&l, 100);
    for (int k = 0; k < 2; k++) {
        make_result(&r[k], k, 1);
        lin_result_shift(&r[k], 100);
    }
    OK(lin_leakage_find(&l, r, 2, 1, found, &err));
    ck_assert_int_eq(found[0].n, 0);
    ck_assert_int_eq(r[0].n_words, SECONDS * 10 / 3);
    ck_assert_int_eq(found[1].n, found[1].of);
    ck_assert(r[1].n_words == 0 && r[1].n_phones == 0 && r[1].has_words);
    for (int k = 0; k < 2; k++) lin_result_free(&r[k]);
    lin_leakage_free(&l);
}
END_TEST

static lin_status push_and_find(void)
{
    const lin_audio_format format = {.rate_hz = RATE, .channels = 2};
    lin_leakage l = {0};
    lin_result r[2] = {0};
    lin_leakage_found found[2];
    lin_status status = lin_leakage_push(&l, &format, 0, sound, N, NULL);
    const lin_path_phone phones[] = {{.label = 1, .start = 50, .end = 80}, {.label = 2, .start = 180, .end = 200}};
    const lin_path path = {.phones = (lin_path_phone *)phones, .n_phones = 2};
    for (int k = 0; k < 2 && status == LIN_OK; k++) {
        status = lin_result_begin(&r[k], "x", NULL, k + 1, NULL);
        if (status == LIN_OK) status = lin_result_add_path(&r[k], &path, 0.01, NULL, NULL, NULL);
    }
    if (status == LIN_OK) status = lin_leakage_find(&l, r, 2, 1, found, NULL);
    for (int k = 0; k < 2; k++) lin_result_free(&r[k]);
    lin_leakage_free(&l);
    return status;
}

START_TEST(failed_allocations_leak_nothing)
{
    make_sound(&calls[0]);
    FAIL_EVERY_ALLOCATION(push_and_find(), (void)0);
}
END_TEST

TEST_MAIN("linnet/leakage", TESTS(what_leaks_is_left_out, 0, 2 * (int)(sizeof calls / sizeof *calls)),
          TEST(equal_channels_are_one),
          TEST(failed_allocations_leak_nothing))
