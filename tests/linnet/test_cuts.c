// linnet/recognizer.h: where a long sound is divided for a model that needs whole utterances.
#include "linnet/recognizer.h"

#include "base/hash.h"
#include "tests/support.h"

enum { D = 3, STACK = 4, MOST = 12000 };

static float frames[MOST * D];

static void fill(uint64_t seed)
{
    for (int i = 0; i < MOST * D; i++) frames[i] = (float)(5 + lin_random_uniform(seed, (uint64_t)i));
}

static int next(int n) { return lin_next_utterance(frames, n, D, 10, STACK); }

START_TEST(an_utterance_of_36_s_stays_whole)
{
    fill(1);
    ck_assert_int_eq(next(0), 0);
    ck_assert_int_eq(next(1), 1);
    ck_assert_int_eq(next(3600), 3600);
    ck_assert_int_lt(next(3601), 3601);
}
END_TEST

// The first pause after 4 s, where 60 frames are quiet; one before that is too early, later ones are not looked for.
START_TEST(cuts_are_in_the_first_pause)
{
    static const int quiet[] = {440, 1240, 2000, 3111, 3500};
    for (int i = 0; i < 5; i++) {
        fill(2 + (uint64_t)i);
        for (int t = 0; t < 60 * D; t++) {
            frames[quiet[i] * D + t] -= 5;
            frames[200 * D + t] -= 5;
            if (quiet[i] < 3500) frames[(quiet[i] + 200) * D + t] -= 5.5F;
            frames[4000 * D + t] -= 9;
        }
        const int at = next(9000);
        ck_assert_int_eq(at % STACK, 0);
        ck_assert_msg(at > quiet[i] + 15 && at < quiet[i] + 45, "%d: cut at %d", quiet[i], at);
    }
}
END_TEST

// Nowhere in the lowest fifth after 4 s: the quietest place there.
START_TEST(else_in_the_quietest_place)
{
    fill(9);
    for (int t = 0; t < 60 * D; t++) {
        frames[100 * D + t] -= 9;
        frames[2500 * D + t] -= 1;
    }
    const int at = next(9000);
    ck_assert_msg(at > 2515 && at < 2545, "cut at %d", at);
}
END_TEST

START_TEST(all_of_a_sound_is_divided)
{
    for (int n = 1; n <= MOST; n += 371) {
        fill((uint64_t)n);
        int at = 0;
        while (at < n) {
            const int length = lin_next_utterance(frames + (size_t)at * D, n - at, D, 10, STACK);
            ck_assert_int_ge(length, 1);
            ck_assert_int_le(length, 3600);
            if (at + length < n) ck_assert_int_eq(length % STACK, 0);
            at += length;
        }
        ck_assert_int_eq(at, n);
    }
}
END_TEST

// Silence, and values that no front end gives.
START_TEST(equal_and_bad_values_are_cut_too)
{
    const float values[] = {0, -15.9F, NAN, INFINITY, -INFINITY};
    for (int v = 0; v < 5; v++) {
        for (int i = 0; i < MOST * D; i++) frames[i] = values[v];
        const int at = next(MOST);
        ck_assert(at >= 350 && at <= 3600);
    }
}
END_TEST

TEST_MAIN("linnet/cuts", TEST(an_utterance_of_36_s_stays_whole), TEST(cuts_are_in_the_first_pause),
          TEST(else_in_the_quietest_place), TEST(all_of_a_sound_is_divided), TEST(equal_and_bad_values_are_cut_too))
