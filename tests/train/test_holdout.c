// train/holdout: whole speakers where possible, the same choice in any order, limits, failing allocations.
#include "train/holdout.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

enum { MOST = 1000 };

// A directory of n utterances in the order of step. n_speakers 0: each has its own; the first `ones` are all of speaker 0.
static lin_datadir *directory_of(int n, int n_speakers, int step, int ones)
{
    static char scp[MOST * 40], spk[MOST * 40];
    size_t a = 0, b = 0;
    lin_datadir *dir;
    for (int k = 0; k < n; k++) {
        const int i = (k * step) % n;
        a += (size_t)sprintf(scp + a, "u%04d u%d.wav\n", i, i);
        b += (size_t)sprintf(spk + b, "u%04d s%d\n", i, i < ones ? 0 : n_speakers ? i % n_speakers : i);
    }
    const lin_datadir_file files[LIN_DATADIR_FILES] = {[LIN_DATADIR_WAV] = {"wav.scp", scp, a},
                                                       [LIN_DATADIR_SPEAKERS] = {"utt2spk", spk, b}};
    OK(lin_datadir_parse(files, &(lin_datadir_options){.audio_root = "."}, &dir, &err));
    return dir;
}

static lin_datadir *directory(int n, int n_speakers, int step) { return directory_of(n, n_speakers, step, 0); }

static lin_holdout choose(const lin_datadir *dir, double part, int most, unsigned char *held)
{
    lin_holdout h;
    memset(held, 0, MOST);
    const lin_holdout_options o = {part, most, 1};
    OK(lin_holdout_choose(dir, &o, held, &h, &err));
    int n = 0;
    for (int i = 0; i < lin_datadir_count(dir); i++) n += held[i];
    ck_assert_int_eq(n, h.held);
    ck_assert_int_ge(n, 1);
    ck_assert_int_lt(n, h.n);
    ck_assert_int_le(n, most);
    return h;
}

START_TEST(whole_speakers)
{
    unsigned char held[MOST];
    static const int speakers[] = {3, 7, 20, 100};
    for (int k = 0; k < 4; k++) {
        lin_datadir *dir = directory(300, speakers[k], 1);
        const lin_holdout h = choose(dir, 0.1, 300, held);
        ck_assert_int_eq(h.speakers, speakers[k]);
        ck_assert_int_ge(h.held_speakers, 1);
        ck_assert_int_ge(h.held, 30);
        ck_assert_int_le(h.held, 100);
        for (int i = 0; i < 300; i++) ck_assert_int_eq(held[i], held[i % speakers[k]]);
        lin_datadir_destroy(dir);
    }
}
END_TEST

// A speaker who has more than a third of the data is not held out.
START_TEST(one_who_says_much)
{
    unsigned char held[MOST];
    for (int n_speakers = 3; n_speakers < 12; n_speakers++) {
        lin_datadir *dir = directory_of(240, n_speakers, 1, 90);
        const lin_holdout h = choose(dir, 0.3, 300, held);
        ck_assert_int_ge(h.held_speakers, 1);
        ck_assert_int_eq(held[0], 0);
        ck_assert_int_le(h.held, 80);
        lin_datadir_destroy(dir);
    }
}
END_TEST

START_TEST(single_utterances)
{
    unsigned char held[MOST];
    for (int n_speakers = 1; n_speakers <= 2; n_speakers++) {
        lin_datadir *dir = directory(200, n_speakers, 1);
        const lin_holdout h = choose(dir, 0.1, 300, held);
        ck_assert_int_eq(h.held_speakers, 0);
        ck_assert_int_eq(h.held, 20);
        lin_datadir_destroy(dir);
    }
    lin_datadir *dir = directory(600, 5, 1); // every speaker has 120
    const lin_holdout h = choose(dir, 0.1, 50, held);
    ck_assert_int_eq(h.held_speakers, 0);
    ck_assert_int_eq(h.held, 50);
    lin_datadir_destroy(dir);
    dir = directory(2, 0, 1);
    ck_assert_int_eq(choose(dir, 0.1, 10, held).held, 1);
    lin_datadir_destroy(dir);
}
END_TEST

START_TEST(any_order)
{
    unsigned char a[MOST], b[MOST];
    static const int speakers[] = {1, 11};
    for (int k = 0; k < 2; k++) {
        lin_datadir *one = directory(101, speakers[k], 1), *other = directory(101, speakers[k], 7);
        choose(one, 0.1, 100, a);
        choose(other, 0.1, 100, b);
        for (int i = 0; i < 101; i++) ck_assert_int_eq(a[(i * 7) % 101], b[i]);
        lin_datadir_destroy(one);
        lin_datadir_destroy(other);
    }
}
END_TEST

START_TEST(refused)
{
    unsigned char held[MOST] = {0};
    lin_datadir *dir = directory(10, 5, 1), *one = directory(1, 1, 1);
    lin_holdout h;
    static const lin_holdout_options bad[] = {{0, 1, 1}, {0.6, 1, 1}, {0.1, 0, 1}};
    for (int i = 0; i < 3; i++) FAILS(lin_holdout_choose(dir, &bad[i], held, &h, &err), LIN_INVALID, "");
    const lin_holdout_options o = {0.1, 10, 1};
    FAILS(lin_holdout_choose(one, &o, held, &h, &err), LIN_INVALID, "1 utterances: at least 2");
    FAIL_EVERY_ALLOCATION((memset(held, 0, sizeof held), lin_holdout_choose(dir, &o, held, &h, NULL)), (void)0);
    lin_datadir_destroy(dir);
    lin_datadir_destroy(one);
}
END_TEST

TEST_MAIN("holdout", TEST(whole_speakers), TEST(one_who_says_much), TEST(single_utterances), TEST(any_order), TEST(refused))
