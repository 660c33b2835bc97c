// linnet/front.c: where a long sound is divided for a model that needs whole utterances.
#include "linnet/front.h"

#include "base/rng.h"
#include "tests/support.h"

enum { D = 3, STACK = 4, MOST = 12000 };

static float frames[MOST * D];

static void fill(uint64_t seed)
{
    for (int i = 0; i < MOST * D; i++) frames[i] = (float)(5 + lin_random_uniform(seed, (uint64_t)i));
}

static int next(int n) { return lin_front_next_utterance(frames, n, D, 10, STACK); }

START_TEST(an_utterance_of_36_s_stays_whole)
{
    fill(1);
    ck_assert_int_eq(next(0), 0);
    ck_assert_int_eq(next(1), 1);
    ck_assert_int_eq(next(3600), 3600);
    ck_assert_int_lt(next(3601), 3601);
}
END_TEST

// Where 40 frames are quiet, between 12 and 36 s, there the sound is cut; other places, also quieter ones, are too early or too
// late.
START_TEST(cuts_are_in_the_quietest_place)
{
    static const int quiet[] = {1240, 2000, 3111, 3540};
    for (int i = 0; i < 4; i++) {
        fill(2 + (uint64_t)i);
        for (int t = 0; t < 40 * D; t++) {
            frames[quiet[i] * D + t] -= 5;
            frames[600 * D + t] -= 9;
            frames[4000 * D + t] -= 9;
        }
        const int at = next(9000);
        ck_assert_int_eq(at % STACK, 0);
        ck_assert_msg(at > quiet[i] + 5 && at < quiet[i] + 35, "%d: cut at %d", quiet[i], at);
    }
}
END_TEST

START_TEST(all_of_a_sound_is_divided)
{
    for (int n = 1; n <= MOST; n += 371) {
        fill((uint64_t)n);
        int at = 0;
        while (at < n) {
            const int length = lin_front_next_utterance(frames + (size_t)at * D, n - at, D, 10, STACK);
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
        ck_assert(at >= 1150 && at <= 3600);
    }
}
END_TEST

TEST_MAIN("linnet/front", TEST(an_utterance_of_36_s_stays_whole), TEST(cuts_are_in_the_quietest_place),
          TEST(all_of_a_sound_is_divided), TEST(equal_and_bad_values_are_cut_too))
