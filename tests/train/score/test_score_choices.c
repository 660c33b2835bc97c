// train/score/edit.c, trn_times.c: alternatives, optional words and STM against sclite's counts; names; failing memory.
//
//   test_score_choices [FOLDER]     FOLDER (default tests/golden) holds what tests/golden/score_choices.py makes
#include <stdlib.h>

#include "train/score/edit.h"
#include "train/score/score.h"
#include "tests/train/score/transcripts.h"

START_TEST(counts_of_trn_are_sclites)
{
    ck_assert_int_ge(compare_with_sclite("choices_ref.trn", "choices_hyp.trn", "choices_trn_counts.txt"), 120);
}
END_TEST

START_TEST(counts_of_stm_are_sclites)
{
    ck_assert_int_ge(compare_with_sclite("choices.stm", "choices.ctm", "choices_stm_counts.txt"), 120);
}
END_TEST

// Without choices the steps are those of train/score/edit.
START_TEST(plain_sequences)
{
    enum { MOST = 12 };
    for (uint64_t seed = 0; seed < 3000; seed++) {
        int ref[MOST], hyp[MOST], n_steps, n_choices;
        const int n = (int)lin_random_below(seed, 0, MOST + 1), m = (int)lin_random_below(seed, 1, MOST + 1);
        for (int i = 0; i < MOST; i++) {
            ref[i] = (int)lin_random_below(seed, (uint64_t)i + 100, 3);
            hyp[i] = (int)lin_random_below(seed, (uint64_t)i + 200, 3);
        }
        lin_edit_pair steps[2 * MOST], choices[2 * MOST];
        OK(lin_edit_align(ref, n, hyp, m, 0, steps, &n_steps, &err));
        OK(lin_edit_choices(ref, n, hyp, m, 0, choices, &n_choices, &err));
        ck_assert_int_eq(n_steps, n_choices);
        for (int k = 0; k < n_steps; k++) {
            ck_assert_int_eq(choices[k].ref, steps[k].ref);
            ck_assert_int_eq(choices[k].hyp, steps[k].hyp);
            ck_assert(choices[k].is_right == steps[k].is_right && steps[k].is_right == (steps[k].ref == steps[k].hyp));
        }
    }
}
END_TEST

// A sequence of about n words in nested alternatives and optional words.
static int random_sequence(uint64_t seed, int n, int depth, int *out)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t kind = lin_random_below(seed, (uint64_t)(1000 * depth + 2 * i), 8);
        const int token = (int)lin_random_below(seed, (uint64_t)(1000 * depth + 2 * i + 1), 4);
        if (kind == 0) out[k++] = LIN_EDIT_OPTIONAL;
        if (kind > 1 || depth == 2) {
            out[k++] = kind == 7 ? LIN_EDIT_NULL : token;
            if (kind == 0) out[k - 1] = token;
            continue;
        }
        if (kind == 0) k--;
        out[k++] = LIN_EDIT_OPEN;
        for (int j = 0; j <= token; j++) {
            if (j) out[k++] = LIN_EDIT_OR;
            k += random_sequence(seed + 1 + (uint64_t)j, 1 + j % 3, depth + 1, out + k);
        }
        out[k++] = LIN_EDIT_CLOSE;
    }
    return k;
}

// The steps are the same for every block size.
START_TEST(in_blocks)
{
    enum { MOST = 4000 };
    static int ref[MOST], hyp[MOST];
    static lin_edit_pair want[2 * MOST], got[2 * MOST];
    int n_want, n_got;
    for (uint64_t seed = 0; seed < 300; seed++) {
        const int n = random_sequence(seed, (int)lin_random_below(seed, 1, 40), 0, ref);
        const int m = random_sequence(seed + 1, (int)lin_random_below(seed, 2, 40), 0, hyp);
        test_require(n <= MOST && m <= MOST, "%d and %d", n, m);
        OK(lin_edit_choices(ref, n, hyp, m, 0, want, &n_want, &err));
        for (size_t pairs = 1; pairs < 4000; pairs = 3 * pairs + 1) {
            OK(lin_edit_choices(ref, n, hyp, m, pairs, got, &n_got, &err));
            test_require(n_want == n_got && !memcmp(want, got, (size_t)n_want * sizeof *want), "%d and %d in %zu", n, m, pairs);
        }
    }
    FAIL_EVERY_ALLOCATION(lin_edit_choices(ref, 3, ref, 3, 1, got, &n_got, NULL), (void)0);
}
END_TEST

// An hour of speech in one utterance.
START_TEST(an_hour)
{
    enum { WORDS = TEST_ASAN ? 4200 : 8200 }; // over 2^24 pairs, and over 2^26
    int *ref = malloc((WORDS + 5) * sizeof *ref), *hyp = malloc(WORDS * sizeof *hyp), n;
    lin_edit_pair *steps = malloc(2 * (WORDS + 5) * sizeof *steps);
    const int choice[] = {LIN_EDIT_OPEN, 1, LIN_EDIT_OR, 2, 3, LIN_EDIT_CLOSE};
    memcpy(ref, choice, sizeof choice);
    for (int i = 0; i < WORDS; i++) hyp[i] = i == 0 ? 1 : i % 7;
    for (int i = 1; i < WORDS; i++) ref[5 + i] = i % 1000 ? hyp[i] : 9;
    OK(lin_edit_choices(ref, WORDS + 5, hyp, WORDS, 0, steps, &n, &err));
    int wrong = 0;
    for (int k = 0; k < n; k++) wrong += !steps[k].is_right;
    ck_assert_int_eq(n, WORDS);
    ck_assert_int_eq(wrong, (WORDS - 1) / 1000);
    free(ref);
    free(hyp);
    free(steps);
}
END_TEST

START_TEST(too_many)
{
    enum { N = 20000 };
    int *long_one = malloc(N * sizeof *long_one), n;
    lin_edit_pair *steps = malloc(2 * N * sizeof *steps);
    for (int i = 0; i < N; i++) long_one[i] = i % 2 ? 1 : LIN_EDIT_OR;
    long_one[0] = LIN_EDIT_OPEN;
    long_one[N - 1] = LIN_EDIT_CLOSE;
    FAILS(lin_edit_choices(long_one, N, long_one, N, 0, steps, &n, &err), LIN_INVALID, "9999 and 9999 words");
    for (int i = 0; i < 3; i++) long_one[i] = 1;
    FAIL_EVERY_ALLOCATION(lin_edit_choices(long_one, 3, long_one, 2, 0, steps, &n, NULL), (void)0);
    const int nested[] = {LIN_EDIT_OPEN, 0, LIN_EDIT_OR, LIN_EDIT_OPEN, 1, LIN_EDIT_OR, 2, LIN_EDIT_CLOSE, LIN_EDIT_CLOSE, 3};
    const int two[] = {2, 3};
    FAIL_EVERY_ALLOCATION(lin_edit_choices(nested, 10, two, 2, 0, steps, &n, NULL), (void)0);
    OK(lin_edit_choices(nested, 10, two, 2, 0, steps, &n, &err));
    ck_assert(n == 2 && steps[0].is_right && steps[1].is_right);
    free(long_one);
    free(steps);
}
END_TEST

// "ok" or the counts of the whole; the message of a failure.
static const char *score_of(const char *stm, const char *hyp, const char *hyp_name)
{
    static char out[512];
    static lin_error err;
    lin_score *s;
    if (lin_score_texts(stm, strlen(stm), "r.stm", hyp, strlen(hyp), hyp_name, NULL, &s, &err)) return err.message;
    const lin_score_counts c = s->total;
    snprintf(out, sizeof out, "%lld %lld %lld %lld in %lld, %d missing", c.correct, c.sub, c.del, c.ins, c.utterances,
             s->n_without_line);
    lin_score_destroy(s);
    return out;
}

START_TEST(names)
{
    static const char two[] = "x A s1 0 1 a\ny 2 s2 0 1 b c\n";
    ck_assert_str_eq(score_of(two, "a (x)\nb c (y)\n", "h.trn"), "3 0 0 0 in 2, 0 missing");
    ck_assert_str_eq(score_of(two, "x-a a\ny-B b c\n", "h"), "3 0 0 0 in 2, 0 missing");
    ck_assert_str_eq(score_of(two, "x_1 a\ny_2 b\n", "h"), "2 0 1 0 in 2, 0 missing");
    ck_assert_str_eq(score_of(two, "a (s1-000)\nb c (s2-000)\n", "h.trn"), "3 0 0 0 in 2, 0 missing");
    ck_assert_str_eq(score_of(two, two, "h.stm"), "3 0 0 0 in 2, 0 missing");
    HAS(score_of(two, "a (x)\nb c (z)\n", "h.trn"), "give a CTM");
    HAS(score_of("x 1 s 0 1 a\nx 1 s 1 2 b\n", "a (x)\n", "h.trn"), "give a CTM");
    // channels are letters or numbers, and have the names that linnet gives them
    ck_assert_str_eq(score_of(two, "X 1 0.2 0.1 a\ny b 0 1 b\ny b 3 1 c\n", "h.ctm"), "3 0 0 0 in 2, 0 missing");
    ck_assert_str_eq(score_of(two, "y-2 2 0 1 b\ny-2 2 3 1 c\n", "h.ctm"), "2 0 1 0 in 2, 1 missing");
    HAS(score_of(two, "y-3 2 0 1 b\n", "h.ctm"), "h.ctm:1: r.stm has no line for this file and channel");
    HAS(score_of(two, "y-2 2 0 1 b\ny 2 0 1 b\n", "h.ctm"), "under two names");
    // words are cut by their middles; lines need not be in order
    ck_assert_str_eq(score_of("x 1 s 1 2 b\nx 1 s 0 1 a\n", "x 1 0.9 0.1 a\nx 1 0.9 0.2 b\n", "h.ctm"),
                     "2 0 0 0 in 2, 0 missing");
}
END_TEST

START_TEST(out_of_memory)
{
    static const char stm[] = "x A s1 0 1 a { b / c } (d)\ny 2 s2 0 1 IGNORE_TIME_SEGMENT_IN_SCORING\ny 2 s2 1 2 a\n";
    static const char ctm[] = "x 1 0 1 a\nx 1 * * <ALT_BEGIN>\nx 1 1 1 b\nx 1 * * <ALT>\nx 1 * * <ALT_END>\ny 2 0 1 z\n";
    static const char one[] = "x A s1 0 1 a\n", trn[] = "a (x-a)\n";
    lin_score *s;
    FAIL_EVERY_ALLOCATION(lin_score_texts(stm, sizeof stm - 1, "r.stm", ctm, sizeof ctm - 1, "h.ctm", NULL, &s, NULL),
                          lin_score_destroy(s));
    FAIL_EVERY_ALLOCATION(lin_score_texts(one, sizeof one - 1, "r.stm", trn, sizeof trn - 1, "h.trn", NULL, &s, NULL),
                          lin_score_destroy(s));
}
END_TEST

int main(int argc, char **argv)
{
    const test_entry tests[] = {TEST(counts_of_trn_are_sclites), TEST(counts_of_stm_are_sclites), TEST(plain_sequences),
                                TEST(in_blocks), TEST(an_hour), TEST(too_many), TEST(names), TEST(out_of_memory)};
    if (argc > 1) golden_folder = argv[1];
    return test_all("score of choices", NULL, NULL, NULL, NULL, tests, sizeof tests / sizeof *tests);
}
