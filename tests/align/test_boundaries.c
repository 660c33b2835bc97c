// align/boundaries.c: planted onsets, the rules of segments, silences, long and short and hostile sound.
#include "align/boundaries.h"

#include <math.h>

#include "base/hash.h"
#include "decoder/result.h"
#include "tests/lexicon/support.h"

enum { D = 40, T_MAX = 40000, N_MAX = 4000, SILENT = 117, CEPSTRA = 12, STATES = 3 };
static const double ROW = 0.03, HOP = 0.01;

static const int16_t table[][2][2 * (CEPSTRA + 1)] = {
#include "align/boundaries.inc"
};

static lin_phones *phones;
static lin_boundaries *b;
static float sound[T_MAX * D];
static lin_path_phone said[N_MAX];
static lin_path_word words[N_MAX];
static lin_segment segments[N_MAX];
static int onsets[N_MAX + 1]; // frames; the last one is the end

// The filterbank of the table.
static lin_fbank_config table_fbank(void)
{
    lin_fbank_config c = lin_fbank_default();
    c.high_hz = 5500;
    return c;
}

static void begin(void)
{
    const lin_fbank_config o = table_fbank();
    OK(lin_phones_create(NULL, &phones, &err));
    OK(lin_boundaries_create(phones, &o, &b, &err));
}

static void end(void)
{
    lin_boundaries_destroy(b);
    lin_phones_destroy(phones);
}

// Frames from .. to-1 of a state of the table, with noise; `level` (natural logarithm) is added where the state is as loud as
// speech.
static void plant(int from, int to, int row, double level, double noise)
{
    for (int t = from; t < to; t++) {
        float *x = sound + t * D;
        double energy = 0;
        for (int d = 0; d < D; d++) {
            double sum = 0;
            for (int k = 0; k < CEPSTRA; k++)
                sum += (double)table[row][0][k] / 1000 * sqrt(2.0 / D) * cos(M_PI * (k + 1) * (d + 0.5) / D);
            sum += noise * (lin_random_uniform(9, (uint64_t)(t * D + d)) - 0.5);
            energy += exp(sum) / D;
            x[d] = (float)sum;
        }
        const double shift = level + (double)table[row][0][CEPSTRA] / 1000 - log(energy);
        for (int d = 0; d < D; d++) x[d] += (float)shift;
    }
}

static int row_of(int label) { return (label - 1) * STATES + 1; }

// All three states of a phone.
static void plant_phone(int from, int to, int label, double level)
{
    const int third = (to - from) / 3;
    plant(from, from + third, row_of(label) - 1, level, 1);
    plant(from + third, to - third, row_of(label), level, 1);
    plant(to - third, to, row_of(label) + 1, level, 1);
}

// Sounds that differ clearly from each other and from silence: AA ER IY M S.
static const int distinct[] = {1, 12, 18, 22, 29};

// n phones of 6 to 20 frames, two to a word, from frame `at` on, 25 frames of silence before every pauses-th word; each phone's
// rows are late_s after its middle. Returns the number of frames, including 30 of silence at the end.
static int utterance(int n, int at, int pauses, double late_s, double level, uint64_t seed)
{
    plant(0, at, SILENT, level, 1);
    int64_t free_row = 0;
    for (int i = 0; i < n; i++) {
        if (pauses && i && i % 2 == 0 && i / 2 % pauses == 0) {
            plant(at, at + 25, SILENT, level, 1);
            at += 25;
        }
        do said[i].label = distinct[lin_random_below(seed, (uint64_t)(3 * i), 5)];
        while (i && said[i].label == said[i - 1].label && ++seed);
        const int length = 6 + (int)lin_random_below(seed, (uint64_t)(3 * i + 1), 15);
        onsets[i] = at;
        plant_phone(at, at + length, said[i].label, level);
        at += length;
        const int64_t row = (int64_t)(((at - length / 2.0) * HOP + late_s) / ROW);
        said[i].start = row > free_row ? row : free_row;
        said[i].end = free_row = said[i].start + 1;
        said[i].confidence = 1;
        words[i / 2] =
            (lin_path_word){.word = i / 2, .first_phone = i / 2 * 2, .n_phones = 2, .start = said[i].start, .end = said[i].end};
    }
    onsets[n] = at;
    plant(at, at + 30, SILENT, level, 1);
    return at + 30;
}

static double seconds_of(int T) { return (T - 1) * HOP + 0.025; }

// Checks what holds for all results; returns the number of silences between phones.
static int check_rules(const lin_path *path, int T)
{
    int silences = 0;
    for (int i = 0; i < path->n_phones; i++) {
        const lin_segment *s = &segments[i];
        test_require(s->end_s - s->start_s > HOP * 0.99, "phone %d from %g to %g s", i, s->start_s, s->end_s);
        const double gap = s->start_s - (i ? s[-1].end_s : 0);
        test_require(fabs(gap) < 1e-9 || gap > LIN_BOUNDARIES_SILENCE * HOP * 0.99, "a gap of %g s before phone %d", gap, i);
        silences += i && gap > 1e-9;
    }
    test_require(segments[path->n_phones - 1].end_s <= seconds_of(T), "the last ends at %g of %g s",
                 segments[path->n_phones - 1].end_s, seconds_of(T));
    return silences;
}

// The segments of a path in T frames, which keep the rules; returns the number of silences between phones.
static int place(const lin_path *path, const float *frames, int T)
{
    lin_boundaries_reset(b);
    OK(lin_boundaries_push(b, frames, T, &err));
    OK(lin_boundaries_find(b, 0, SIZE_MAX, path, ROW, seconds_of(T), segments, &err));
    return check_rules(path, T);
}

// The largest error against the planted onsets, in frames.
static double worst_error(int n)
{
    double worst = 0;
    for (int i = 0; i < n; i++) {
        const double error = fabs((segments[i].start_s - 0.007) / HOP - onsets[i]);
        if (error > worst) worst = error;
    }
    return worst;
}

START_TEST(planted_onsets_are_found)
{
    static const double late[] = {0, 0.05, 0.09, 0.13}, levels[] = {18, 12, 9};
    for (uint64_t seed = 0; seed < 48; seed++) {
        const int n = 2 + 2 * (int)lin_random_below(seed, 77, 20), pauses = (int)(seed % 3);
        const int T = utterance(n, 20, pauses, late[seed % 4], levels[seed / 4 % 3], seed * 1000);
        const lin_path path = {.phones = said, .n_phones = n, .words = words, .n_words = n / 2};
        const int silences = place(&path, sound, T);
        test_require(worst_error(n) < 1.01, "seed %d: an onset is off by %g frames", (int)seed, worst_error(n));
        ck_assert_int_eq(silences, pauses ? (n / 2 - 1) / pauses : 0);
        const double last = (segments[n - 1].end_s - 0.007) / HOP;
        test_require(fabs(last - onsets[n]) < 1.01, "seed %d: the end is at %g, not %d", (int)seed, last, onsets[n]);
    }
}
END_TEST

START_TEST(words_have_the_ends_of_their_phones)
{
    const int n = 8, T = utterance(n, 20, 2, 0.09, 15, 5);
    const lin_path path = {.phones = said, .n_phones = n, .words = words, .n_words = n / 2};
    lin_result r = {0};
    place(&path, sound, T);
    OK(lin_result_begin(&r, "x", NULL, 1, &err));
    OK(lin_result_add_path(&r, &path, ROW, NULL, NULL, &err));
    lin_result_set_times(&r, segments);
    for (int i = 0; i < n; i++) ck_assert(r.phones[i].start_s == segments[i].start_s && r.phones[i].end_s == segments[i].end_s);
    for (int i = 0; i < n / 2; i++) {
        ck_assert(r.words[i].start_s == segments[2 * i].start_s);
        ck_assert(r.words[i].end_s == segments[2 * i + 1].end_s);
    }
    lin_result_free(&r);
}
END_TEST

START_TEST(any_pieces_and_any_filterbank)
{
    const int n = 20, T = utterance(n, 20, 3, 0.09, 15, 11);
    const lin_path path = {.phones = said, .n_phones = n, .words = words, .n_words = n / 2};
    static lin_segment again[N_MAX];
    place(&path, sound, T);
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &path, ROW, seconds_of(T), again, &err)); // frames stay
    ck_assert(!memcmp(segments, again, (size_t)n * sizeof *segments));
    lin_boundaries_reset(b);
    for (int t = 0; t < T; t += 7) OK(lin_boundaries_push(b, sound + t * D, T - t < 7 ? T - t : 7, &err));
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &path, ROW, seconds_of(T), again, &err));
    ck_assert(!memcmp(segments, again, (size_t)n * sizeof *segments));
    // Between other frames, which have no influence.
    lin_boundaries_reset(b);
    OK(lin_boundaries_push(b, sound + 100 * D, 70, &err));
    OK(lin_boundaries_push(b, sound, T, &err));
    OK(lin_boundaries_push(b, sound + 50 * D, 90, &err));
    OK(lin_boundaries_find(b, 70, 70 + (size_t)T, &path, ROW, seconds_of(T), again, &err));
    ck_assert(!memcmp(segments, again, (size_t)n * sizeof *segments));
    lin_boundaries_destroy(b);
    // Twice as many bins in the same band: the even ones of 81 have the frequencies of the 40.
    static float fine[T_MAX * 81];
    for (int t = 0; t < T; t++) {
        for (int d = 0; d < 81; d++) {
            const float *x = sound + t * D;
            const int lower = d ? (d - 1) / 2 : 0, upper = d % 2 ? lower : lower + 1 < D ? lower + 1 : lower;
            fine[t * 81 + d] = d ? (x[lower] + x[upper]) / 2 : x[0];
        }
    }
    lin_fbank_config o = table_fbank();
    o.mel_bins = 81;
    OK(lin_boundaries_create(phones, &o, &b, &err));
    OK(lin_boundaries_push(b, fine, T, &err));
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &path, ROW, seconds_of(T), again, &err));
    for (int i = 0; i < n; i++) test_require(fabs(segments[i].start_s - again[i].start_s) < 1.01 * HOP, "phone %d", i);
}
END_TEST

START_TEST(phones_that_the_table_lacks)
{
    lin_phones *stressed;
    const lin_fbank_config o = table_fbank();
    static const char names[] = "<blank> AA1 qq S IY0";
    OK(lin_phones_create(names, &stressed, &err));
    lin_boundaries_destroy(b);
    OK(lin_boundaries_create(stressed, &o, &b, &err));
    int at = 20;
    plant(0, at, SILENT, 15, 1);
    // AA, S, IH for the one that the table lacks, IY
    static const int labels[] = {1, 3, 2, 4}, planted[] = {0, 28, 16, 17};
    for (int i = 0; i < 4; i++) {
        onsets[i] = at;
        plant_phone(at, at + 12, planted[i] + 1, 15);
        said[i] = (lin_path_phone){.label = labels[i], .start = (at + 6) / 3, .end = (at + 6) / 3 + 1};
        at += 12;
    }
    plant(at, at + 20, SILENT, 15, 1);
    const lin_path path = {.phones = said, .n_phones = 4};
    place(&path, sound, at + 20);
    for (int i = 0; i < 4; i++) { // the neighbours of the unknown one may lose frames to it, the others do not
        const double error = (segments[i].start_s - 0.007) / HOP - onsets[i];
        test_require(fabs(error) < (i == 0 ? 1.01 : 12), "phone %d is off by %g frames", i, error);
    }
    lin_phones_destroy(stressed);
}
END_TEST

START_TEST(loud_and_silent_stretches)
{
    // 20 s of sound as loud as speech that is not in the text, between two words: part of no phone.
    int T = utterance(4, 20, 0, 0.09, 15, 3);
    const int before = onsets[4];
    for (int i = 0; i < 4; i++) said[4 + i] = said[i];
    plant(before, before + 2000, row_of(1), 15, 8);
    for (int i = 4; i < 8; i++) {
        const int length = 12;
        const int from = before + 2000 + (i - 4) * length;
        plant_phone(from, from + length, said[i].label, 15);
        said[i].start = (from + 15) / 3;
        said[i].end = said[i].start + 1;
        words[i / 2] = (lin_path_word){.word = i / 2, .first_phone = i / 2 * 2, .n_phones = 2};
        T = from + length;
    }
    plant(T, T + 30, SILENT, 15, 1);
    T += 30;
    const lin_path path = {.phones = said, .n_phones = 8, .words = words, .n_words = 4};
    place(&path, sound, T);
    for (int i = 0; i < 8; i++) {
        const double length = segments[i].end_s - segments[i].start_s;
        test_require(length < 0.8, "phone %d has %g s", i, length);
    }
    // With its rows known, also the phones beside it are where they were.
    lin_path_other other = {(before + 15) / 3, (before + 2000) / 3};
    const lin_path marked = {.phones = said, .n_phones = 8, .words = words, .n_words = 4, .others = &other, .n_others = 1};
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &marked, ROW, seconds_of(T), segments, &err));
    check_rules(&marked, T);
    test_require(fabs((segments[3].end_s - 0.007) / HOP - before) < 4, "it begins at %g, not %d", segments[3].end_s / HOP,
                 before);
    test_require(fabs((segments[4].start_s - 0.007) / HOP - before - 2000) < 4, "it ends at %g, not %d",
                 segments[4].start_s / HOP, before + 2000);
    // Digital silence throughout: a result that keeps the rules.
    for (int i = 0; i < T_MAX * D; i++) sound[i] = -15.9424f;
    const lin_path four = {.phones = said, .n_phones = 4, .words = words, .n_words = 2};
    place(&four, sound, 500);
    test_require(segments[3].end_s - segments[0].start_s < 1, "%g s of phones in silence",
                 segments[3].end_s - segments[0].start_s);
}
END_TEST

START_TEST(long_sound_and_its_changes_of_level)
{
    // One recording of many utterances, every second one 10 dB fainter.
    int n = 0, at = 0;
    static float whole[T_MAX * D];
    static lin_path_phone all[N_MAX];
    static lin_path_word all_words[N_MAX];
    static int known[N_MAX + 1];
    for (uint64_t seed = 0; at < T_MAX - 4000; seed++) {
        const int more = 120, T = utterance(more, 30, 4, 0.09, seed % 2 ? 16 : 13.7, 100 * seed);
        memcpy(whole + at * D, sound, (size_t)T * D * sizeof *sound);
        for (int i = 0; i < more; i++) {
            all[n] = said[i];
            all[n].start += at / 3;
            all[n].end += at / 3;
            known[n++] = onsets[i] + at;
        }
        at += T;
    }
    for (int i = 0; i < n / 2; i++) all_words[i] = (lin_path_word){.word = i, .first_phone = 2 * i, .n_phones = 2};
    const lin_path path = {.phones = all, .n_phones = n, .words = all_words, .n_words = n / 2};
    place(&path, whole, at);
    memcpy(onsets, known, sizeof onsets);
    int beside = 0;
    for (int i = 0; i < n; i++) beside += fabs((segments[i].start_s - 0.007) / HOP - onsets[i]) > 1.01;
    test_require(beside * 100 < n, "%d of %d onsets are off by more than a frame", beside, n);
}
END_TEST

// Constant sound: each phone is placed by its rows minus their lag, which is nearly the same for all.
START_TEST(rows_decide_where_the_sound_does_not)
{
    enum { N = 60, EVERY = 12 };
    const int T = N * EVERY + 60;
    plant(0, 20, SILENT, 15, 1);
    plant(20, T - 40, row_of(1), 15, 6);
    plant(T - 40, T, SILENT, 15, 1);
    double mean = 0, worst = 0;
    for (int i = 0; i < N; i++) {
        const int64_t row = (20 + i * EVERY + EVERY / 2 + 9) / 3;
        said[i] = (lin_path_phone){.label = i % 3 == 0 ? 1 : i % 3 == 1 ? 12 : 29, .start = row, .end = row + 1};
    }
    const lin_path path = {.phones = said, .n_phones = N};
    place(&path, sound, T);
    for (int i = 0; i < N; i++) mean += ((double)said[i].start + 0.5) * ROW - (segments[i].start_s + segments[i].end_s) / 2;
    mean /= N;
    for (int i = 0; i < N; i++) {
        const double lag = ((double)said[i].start + 0.5) * ROW - (segments[i].start_s + segments[i].end_s) / 2;
        worst = fmax(worst, fabs(lag - mean));
    }
    test_require(worst < 0.13, "a phone is %g s from the place of its rows", worst);
}
END_TEST

START_TEST(little_sound)
{
    const lin_path none = {0}, one = {.phones = said, .n_phones = 1};
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &none, ROW, 0, NULL, &err));
    said[0] = (lin_path_phone){.label = 1, .start = 0, .end = 1};
    FAILS(lin_boundaries_find(b, 0, SIZE_MAX, &one, ROW, 0, segments, &err), LIN_MISMATCH, "1 phones in 0 frames");
    // As many phones as frames, one row each: every phone gets one frame. Also at every length down to that.
    enum { N = 12 };
    for (int T = 1; T <= 60; T++) {
        plant(0, T, row_of(1), 15, 4);
        lin_boundaries_reset(b);
        OK(lin_boundaries_push(b, sound, T, &err));
        const int n = T < N ? T : N;
        for (int i = 0; i < n; i++) said[i] = (lin_path_phone){.label = 1 + i, .start = i * (T / n), .end = i * (T / n) + 1};
        const lin_path path = {.phones = said, .n_phones = n};
        OK(lin_boundaries_find(b, 0, SIZE_MAX, &path, HOP, seconds_of(T), segments, &err));
        check_rules(&path, T);
        if (n == T) ck_assert(segments[0].start_s == 0 && segments[n - 1].end_s == seconds_of(T));
    }
}
END_TEST

START_TEST(what_is_refused)
{
    plant(0, 100, row_of(1), 15, 1);
    OK(lin_boundaries_push(b, sound, 50, &err));
    sound[7 * D + 3] = NAN;
    FAILS(lin_boundaries_push(b, sound, 50, &err), LIN_NUMERIC, "frame 57: bin 3 is not a number");
    sound[7 * D + 3] = INFINITY;
    FAILS(lin_boundaries_push(b, sound, 50, &err), LIN_NUMERIC, "frame 57: bin 3 is not a number");
    said[0] = (lin_path_phone){.label = 1, .start = 1, .end = 2};
    said[1] = (lin_path_phone){.label = 2, .start = 2, .end = 3};
    const lin_path path = {.phones = said, .n_phones = 2};
    OK(lin_boundaries_find(b, 0, SIZE_MAX, &path, ROW, 1, segments, &err)); // and none of it did harm
}
END_TEST

static lin_status all_of_it(void)
{
    lin_boundaries *own = NULL;
    const lin_fbank_config o = table_fbank();
    const lin_path path = {.phones = said, .n_phones = 4};
    lin_status status = lin_boundaries_create(phones, &o, &own, NULL);
    if (status == LIN_OK) status = lin_boundaries_push(own, sound, 200, NULL);
    if (status == LIN_OK) status = lin_boundaries_find(own, 0, SIZE_MAX, &path, ROW, 2, segments, NULL);
    lin_boundaries_destroy(own);
    return status;
}

START_TEST(memory_that_is_not_there)
{
    utterance(4, 20, 0, 0.09, 15, 1);
    FAIL_EVERY_ALLOCATION(all_of_it(), (void)0);
}
END_TEST

TEST_MAIN_WITH(begin, end, "boundaries", TEST(planted_onsets_are_found), TEST(words_have_the_ends_of_their_phones),
               TEST(any_pieces_and_any_filterbank), TEST(phones_that_the_table_lacks), TEST(loud_and_silent_stretches),
               TEST(long_sound_and_its_changes_of_level), TEST(rows_decide_where_the_sound_does_not), TEST(little_sound),
               TEST(what_is_refused), TEST(memory_that_is_not_there))
