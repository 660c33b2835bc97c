// linnet/diarizer.c: groups of vectors against all averages of cosines, computed anew for each joining; speakers of a result,
// told apart by a small network of voices; a stream of utterances, whose speakers stay; what is too short; failing memory, and
// what follows it.
#include "linnet/diarizer.h"

#include <math.h>

#include "base/memory.h"
#include "tests/model/networks.h"

enum { BINS = 40, SIZE = 16 };

static lin_error err;

/* ---- groups ---------------------------------------------------------------------------------------------------------------- */

enum { MOST = 40, LENGTH = 6 };

// Unit vectors around `centres` directions.
static void draw_vectors(float *vectors, float *weights, int n, int centres, uint64_t seed)
{
    float middle[MOST * LENGTH], noise[MOST * LENGTH];
    test_fill_f32(middle, (size_t)centres * LENGTH, seed, -1, 1);
    test_fill_f32(noise, (size_t)n * LENGTH, seed + 1, -0.6, 0.6);
    test_fill_f32(weights, (size_t)n, seed + 2, 0.5, 2);
    for (int i = 0; i < n; i++) {
        float *v = vectors + i * LENGTH, norm = 0;
        for (int d = 0; d < LENGTH; d++) v[d] = middle[i % centres * LENGTH + d] + noise[i * LENGTH + d], norm += v[d] * v[d];
        for (int d = 0; d < LENGTH; d++) v[d] /= sqrtf(norm);
    }
}

// The average, by weights, of the cosines between the vectors of two groups.
static double average(const float *vectors, const float *weights, const int *group, int n, int a, int b)
{
    double sum = 0, of = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (group[i] != a || group[j] != b) continue;
            double c = 0;
            for (int d = 0; d < LENGTH; d++) c += (double)vectors[i * LENGTH + d] * (double)vectors[j * LENGTH + d];
            sum += c * (double)weights[i] * (double)weights[j];
            of += (double)weights[i] * (double)weights[j];
        }
    }
    return of > 0 ? sum / of : -INFINITY;
}

// Joins by the definition; the number of groups that are left.
static int join_by_definition(const float *vectors, const float *weights, int *group, int n, int fixed, int wanted, double least)
{
    int left = n;
    for (int i = 0; i < n; i++) group[i] = i;
    while (!wanted || left > wanted) {
        double best = -INFINITY;
        int into = -1, from = -1;
        for (int a = 0; a < n; a++) {
            for (int b = (a < fixed ? fixed : a + 1); b < n; b++) {
                const double c = average(vectors, weights, group, n, a, b);
                if (c > best) best = c, into = a, from = b;
            }
        }
        if (into < 0 || best == -INFINITY || (!wanted && best < least)) break;
        for (int i = 0; i < n; i++) group[i] = group[i] == from ? into : group[i];
        left--;
    }
    return left;
}

START_TEST(groups_by_definition)
{
    const int n = 5 + _i % 25, fixed = _i % 3 == 2 ? 2 : 0, wanted = _i % 2 ? 3 : 0;
    const double least = 0.3 + 0.1 * (_i % 5);
    float vectors[MOST * LENGTH], weights[MOST];
    int group[MOST];
    lin_voice_groups g = {.size = LENGTH};
    draw_vectors(vectors, weights, n, 1 + _i % 4, 100 + (uint64_t)_i);
    if (fixed) ck_assert(lin_voice_groups_add(&g, vectors, weights, fixed, 0, fixed, 0, &err) == LIN_OK);
    const float *rest = vectors + fixed * LENGTH;
    ck_assert(lin_voice_groups_add(&g, rest, weights + fixed, n - fixed, fixed, wanted, least, &err) == LIN_OK);
    const int left = join_by_definition(vectors, weights, group, n, fixed, wanted, least);
    ck_assert_int_eq(g.n, left);
    // Each group of the definition is one of these, with its weight and its sum; the first ones keep their places.
    for (int a = 0; a < n; a++) {
        double sum[LENGTH] = {0}, weight = 0;
        int found = 0;
        for (int i = 0; i < n; i++) {
            weight += group[i] == a ? (double)weights[i] : 0;
            for (int d = 0; d < LENGTH && group[i] == a; d++) sum[d] += (double)weights[i] * (double)vectors[i * LENGTH + d];
        }
        for (int k = 0; k < g.n && weight > 0; k++) {
            int same = fabs((double)g.weights[k] - weight) < 1e-4;
            for (int d = 0; d < LENGTH; d++) same &= fabs((double)g.sums[k * LENGTH + d] - sum[d]) < 1e-4;
            found += same && (a >= fixed || k == a);
        }
        ck_assert_int_eq(found, weight > 0);
    }
    lin_free(g.sums);
    lin_free(g.weights);
}
END_TEST

// More vectors than are compared at once: the groups of three directions that are far apart.
START_TEST(many_vectors)
{
    enum { N = 1800 };
    float *vectors = lin_calloc(N * LENGTH, sizeof *vectors), *weights = lin_calloc(N, sizeof *weights);
    lin_voice_groups g = {.size = LENGTH};
    for (int i = 0; i < N; i++) vectors[i * LENGTH + i % 3] = 1, weights[i] = 0.5F;
    for (int wanted = 0; wanted <= 3; wanted += 3) {
        g.n = 0;
        ck_assert(lin_voice_groups_add(&g, vectors, weights, N, 0, wanted, 0.5, &err) == LIN_OK);
        ck_assert_int_eq(g.n, 3);
        for (int k = 0; k < 3; k++) ck_assert_float_eq_tol(g.weights[k], N / 6, 0.01F);
    }
    lin_free(vectors);
    lin_free(weights);
    lin_free(g.sums);
    lin_free(g.weights);
}
END_TEST

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

static lin_voice *voice;

static void enter(void)
{
    ck_assert(lin_voice_open(save_voices(SIZE, BINS, 1), &voice, &err) == LIN_OK);
}

static void leave(void) { lin_voice_destroy(voice); }

// Frames of a sound: each letter is a second of a voice, whose spectrum it draws, with a little noise; a blank is a pause. In
// each second of speech there are nine phones.
static lin_status say(lin_diarizer *d, lin_result *r, const char *text, double from_s)
{
    const int seconds = (int)strlen(text);
    lin_matrix all = {0};
    lin_status status = LIN_OK;
    lin_path_phone phones[200];
    lin_path p = {.phones = phones};
    for (int s = 0; s < seconds && status == LIN_OK; s++) {
        float frames[100 * BINS], spectrum[BINS];
        test_fill_f32(frames, 100 * BINS, 31 * (uint64_t)s + 7, -0.1, 0.1);
        test_fill_f32(spectrum, BINS, (uint64_t)text[s], -2, 2);
        for (int i = 0; i < 100 * BINS && text[s] != ' '; i++) frames[i] += spectrum[i % BINS];
        status = lin_matrix_append(&all, frames, 100, BINS, &err);
        for (int k = 0; k < 9 && text[s] != ' '; k++) {
            const int64_t at = (int64_t)lround(from_s * 100) + 100 * s + 10 * k + 10;
            phones[p.n_phones++] = (lin_path_phone){.label = 1, .confidence = 1, .start = at, .end = at + 3};
        }
    }
    if (status == LIN_OK) status = lin_result_begin(r, "sound", NULL, 1, &err);
    if (status == LIN_OK) status = lin_result_add_path(r, &p, 0.01, NULL, NULL, &err);
    if (status == LIN_OK) status = lin_diarizer_mark(d, &all, r, from_s, &err);
    lin_matrix_free(&all);
    return status;
}

// "1112": the speaker in the middle of each second, "-" in pauses.
static const char *heard(const lin_result *r, const char *text, double from_s)
{
    static char out[64];
    memset(out, '-', sizeof out);
    out[strlen(text)] = 0;
    for (int i = 0; i < r->n_phones; i++) {
        const double at = r->phones[i].start_s - from_s;
        if (fabs(at - floor(at) - 0.5) < 0.06) out[(int)at] = (char)('0' + r->phones[i].speaker);
    }
    return out;
}

static const struct {
    int wanted;
    const char *text, *want;
} cases[] = {
    {2, "aaaa bbbb aaa bbb", "1111-2222-111-222"}, // at pauses
    {2, "aaaabbbbaaaa", "111122221111"},           // without any
    {3, "bbbb aaaa cccc bbb", "1111-2222-3333-111"}, // numbered as they come
    {1, "aaaa bbbb", "1111-1111"},
    {LIN_SPEAKERS_UNKNOWN, "aaaa aaaa", "1111-1111"},
    {LIN_SPEAKERS_UNKNOWN, "a", "1"},
    {LIN_SPEAKERS_UNKNOWN, "   ", "---"},
    {LIN_SPEAKERS_MOST, "aaa bbb", "111-222"}, // fewer windows than speakers would be wanted do no harm
};

START_TEST(who_speaks)
{
    lin_diarizer d = {.voice = voice, .wanted = cases[_i].wanted, .hop_s = 0.01};
    lin_result r = {0};
    for (int again = 0; again < 2; again++) {
        const double from_s = again ? 100 : 0;
        lin_diarizer_forget(&d);
        ck_assert(say(&d, &r, cases[_i].text, from_s) == LIN_OK);
        if (cases[_i].wanted < LIN_SPEAKERS_MOST) ck_assert_str_eq(heard(&r, cases[_i].text, from_s), cases[_i].want);
    }
    ck_assert_int_eq(r.n_voices, d.speakers.n);
    for (int k = 0; k < r.n_voices; k++) {
        double norm = 0;
        for (int i = 0; i < SIZE; i++) norm += (double)(r.voices[k * SIZE + i] * r.voices[k * SIZE + i]);
        ck_assert_double_eq_tol(norm, 1, 1e-5);
    }
    lin_result_free(&r);
    lin_diarizer_close(&d);
}
END_TEST

// Each utterance keeps its speakers; who was heard before is known, and somebody else is new.
START_TEST(utterance_after_utterance)
{
    static const char *const said[] = {"aaaa", "bbbb", "aaaa", "bbb aaa", "cccc"};
    static const char *const want[] = {"1111", "2222", "1111", "222-111", "3333"};
    static const int wanted[] = {1, 2, 2, 2, 3};
    lin_diarizer d = {.voice = voice, .hop_s = 0.01};
    lin_result r = {0};
    for (int i = 0; i < 5; i++) {
        d.wanted = wanted[i];
        ck_assert(say(&d, &r, said[i], 20 * i) == LIN_OK);
        ck_assert_str_eq(heard(&r, said[i], 20 * i), want[i]);
    }
    lin_result_free(&r);
    lin_diarizer_close(&d);
}
END_TEST

// Of a stream the number of speakers is the most: one of them may speak alone, and all that come are those.
START_TEST(no_more_than_said)
{
    static const char *const said[] = {"aaaa", "bbbb", "cccc", "dddd aaaa"};
    lin_diarizer d = {.voice = voice, .wanted = LIN_SPEAKERS_UNKNOWN, .most = 2, .hop_s = 0.01};
    lin_result r = {0};
    for (int i = 0; i < 4; i++) {
        ck_assert(say(&d, &r, said[i], 20 * i) == LIN_OK);
        ck_assert_int_gt(r.n_phones, 0);
        for (int k = 0; k < r.n_phones; k++) ck_assert(r.phones[k].speaker >= 1 && r.phones[k].speaker <= (i ? 2 : 1));
    }
    ck_assert_int_eq(d.speakers.n, 2);
    lin_result_free(&r);
    lin_diarizer_close(&d);
}
END_TEST

// What each says, as a result of their own.
START_TEST(a_result_for_each)
{
    lin_diarizer d = {.voice = voice, .wanted = 2, .hop_s = 0.01};
    lin_result all = {0}, one = {0};
    int n = 0;
    ck_assert(say(&d, &all, "aaaa bbbb aaa", 0) == LIN_OK);
    for (int k = 1; k <= 2; k++) {
        ck_assert(lin_result_begin(&one, "sound", k == 1 ? "Anna" : "Ben", 1, &err) == LIN_OK);
        ck_assert(lin_result_append_speaker(&one, &all, k, &err) == LIN_OK);
        for (int i = 0; i < one.n_phones; i++) ck_assert_int_eq(one.phones[i].speaker, k);
        ck_assert_int_eq(one.n_voices, 1);
        ck_assert_mem_eq(one.voices, all.voices + (k - 1) * SIZE, SIZE * sizeof *one.voices);
        n += one.n_phones;
    }
    ck_assert_int_eq(n, all.n_phones);
    lin_result_free(&all);
    lin_result_free(&one);
    lin_diarizer_close(&d);
}
END_TEST

static lin_status said_once(void)
{
    lin_diarizer d = {.voice = voice, .wanted = 2, .hop_s = 0.01};
    lin_result r = {0};
    const lin_status status = say(&d, &r, "aaa bbb", 0);
    lin_result_free(&r);
    lin_diarizer_close(&d);
    return status;
}

START_TEST(without_memory)
{
    FAIL_EVERY_ALLOCATION(said_once(), (void)0);
}
END_TEST

// What failed in the middle leaves nobody behind: the next utterance is told apart as if it were the first.
START_TEST(again_after_failed_memory)
{
    static const char text[] = "aaaabbbbccccddddeeee";
    lin_diarizer d = {.voice = voice, .wanted = LIN_SPEAKERS_UNKNOWN, .hop_s = 0.01};
    lin_result want = {0}, r = {0};
    ck_assert(say(&d, &want, text, 0) == LIN_OK);
    int k = 1;
    for (lin_status status = LIN_NO_MEMORY; status != LIN_OK; k++) {
        lin_diarizer_close(&d);
        d = (lin_diarizer){.voice = voice, .wanted = LIN_SPEAKERS_UNKNOWN, .hop_s = 0.01};
        lin_memory_fail_at((unsigned long)k);
        status = say(&d, &r, text, 0);
        lin_memory_fail_at(0);
        ck_assert_int_le(d.speakers.n, LIN_SPEAKERS_MOST);
        if (status != LIN_OK) ck_assert(say(&d, &r, text, 0) == LIN_OK);
        ck_assert_int_eq(r.n_voices, want.n_voices);
        for (int i = 0; i < r.n_phones; i++) ck_assert_int_eq(r.phones[i].speaker, want.phones[i].speaker);
    }
    lin_result_free(&want);
    lin_result_free(&r);
    lin_diarizer_close(&d);
}
END_TEST

TEST_MAIN_ONCE(enter, leave, NULL, "linnet/diarizer", TESTS(groups_by_definition, 0, 60), TEST(many_vectors),
               TESTS(who_speaks, 0, sizeof cases / sizeof *cases), TEST(utterance_after_utterance), TEST(no_more_than_said),
               TEST(a_result_for_each), TEST(without_memory), TEST(again_after_failed_memory))
