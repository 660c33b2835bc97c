// Feature caches: stored values are restored within half a step, and the reader refuses every damaged file.
#include "train/dataset.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/memory.h"
#include "tests/support.h"

enum { D = 5, N = 12, LONGEST = 60 };

static const char phones[] = "<blank> AA B CH";
static const char *path;
static float features[N][LONGEST * D];
static int frames[N], labels[N][8], n_labels[N];

// Utterances of 1..LONGEST frames; bin 3 never changes, bin 4 spans the range that is allowed.
static void enter(void)
{
    path = test_path("x.lds");
    for (int i = 0; i < N; i++) {
        frames[i] = 1 + i * (LONGEST - 1) / (N - 1);
        n_labels[i] = i % 7;
        for (int u = 0; u < n_labels[i]; u++) labels[i][u] = 1 + (i + u) % 3;
        test_fill_f32(features[i], (size_t)(frames[i] * D), (uint64_t)i, -16, 9);
        for (int t = 0; t < frames[i]; t++) {
            features[i][t * D + 3] = -15.9424F;
            features[i][t * D + 4] *= 3750;
        }
    }
}

static const char *id_of(int i)
{
    static char text[32];
    snprintf(text, sizeof text, "utt-%d", i);
    return text;
}

static const char *speaker_of(int i) { return i % 3 == 0 ? "alice" : i % 3 == 1 ? "bob" : "\xC3\x89mile"; }

static lin_dataset_writer *begin(const char *names)
{
    lin_dataset_writer *writer;
    const lin_features f = {16000, 25, 10, 20, 5500, 0.97, 0};
    OK(lin_dataset_create(path, D, &f, names, "made up", &writer, &err));
    return writer;
}

static void write_set(void)
{
    lin_dataset_writer *writer = begin(phones);
    for (int i = 0; i < N; i++)
        OK(lin_dataset_add(writer, id_of(i), speaker_of(i), features[i], frames[i], labels[i], n_labels[i], &err));
    OK(lin_dataset_finish(writer, &err));
}

static lin_dataset *open_set(void)
{
    lin_dataset *set;
    OK(lin_dataset_open(path, &set, &err));
    return set;
}

static unsigned char *read_all(size_t *n)
{
    unsigned char *bytes = malloc(1 << 20);
    *n = test_read_file(path, bytes, 1 << 20);
    return bytes;
}

/* ---- round trips ----------------------------------------------------------------------------------------------------------- */

START_TEST(everything_comes_back)
{
    write_set();
    lin_dataset *set = open_set();
    ck_assert_int_eq(set->count, N);
    ck_assert_int_eq(set->D, D);
    ck_assert_int_eq(set->V, 4);
    ck_assert_str_eq(set->phones, phones);
    ck_assert_str_eq(set->source, "made up");
    ck_assert_str_eq(set->path, path);
    ck_assert(set->features.high_hz == 5500);
    ck_assert_int_eq(set->n_speakers, 3);
    OK(lin_dataset_verify(set, NULL));
    int64_t all = 0, all_labels = 0;
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(set->utterances[i].id, id_of(i));
        ck_assert_str_eq(lin_dataset_speaker_name(set, set->utterances[i].speaker), speaker_of(i));
        ck_assert_int_eq(set->utterances[i].frames, frames[i]);
        const int U = set->utterances[i].n_labels;
        ck_assert_int_eq(U, n_labels[i]);
        ck_assert(memcmp(set->utterances[i].labels, labels[i], (size_t)U * sizeof(int)) == 0);
        all += frames[i];
        all_labels += U;
    }
    ck_assert_int_eq(set->total_frames, all);
    ck_assert_int_eq(set->total_labels, all_labels);
    lin_dataset_close(set);
}
END_TEST

// Half a step of 1/255 of the bin's range, with 1 % for the half-precision step and minimum, which widen the range a little.
START_TEST(values_are_within_half_a_step)
{
    write_set();
    lin_dataset *set = open_set();
    for (int i = 0; i < N; i++) {
        float *x = test_buffer((size_t)frames[i] * D, sizeof *x);
        lin_dataset_features(set, i, x);
        test_guards(x, "lin_dataset_features");
        for (int d = 0; d < D; d++) {
            float low = INFINITY, high = -INFINITY;
            for (int t = 0; t < frames[i]; t++) {
                low = fminf(low, features[i][t * D + d]);
                high = fmaxf(high, features[i][t * D + d]);
            }
            const float bound = ((high - low) * 1.01F + fabsf(low) * 0x1p-10F) / 510;
            for (int t = 0; t < frames[i]; t++) {
                const float error = fabsf(x[t * D + d] - features[i][t * D + d]);
                test_require(error <= bound, "utterance %d, frame %d, bin %d: off by %g, over %g", i, t, d, (double)error,
                             (double)bound);
            }
        }
        test_buffer_free(x);
    }
    lin_dataset_close(set);
}
END_TEST

// speaker NULL: of all utterances
static void check_norm(const char *speaker, const float *mean, const float *istd)
{
    for (int d = 0; d < D; d++) {
        double sum = 0, squares = 0, n = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < N; i++) {
                if (speaker && strcmp(speaker, speaker_of(i)) != 0) continue;
                for (int t = 0; t < frames[i]; t++) {
                    const double x = (double)features[i][t * D + d];
                    if (pass) squares += (x - sum / n) * (x - sum / n);
                    else sum += x, n++;
                }
            }
        test_close_f32("mean", &mean[d], (double[]){sum / n}, 1, 1e-6);
        test_close_f32("istd", &istd[d], (double[]){1 / fmax(sqrt(squares / n), 1e-2)}, 1, 1e-6);
    }
}

START_TEST(means_and_deviations_are_those_of_the_originals)
{
    write_set();
    lin_dataset *set = open_set();
    float mean[D], istd[D];
    const lin_dataset *const sets[] = {set, set};
    for (int n = 1; n <= 2; n++) { // two copies have the same mean and variance
        OK(lin_dataset_norm(sets, n, mean, istd, NULL));
        check_norm(NULL, mean, istd);
    }
    for (int s = 0; s < 3; s++) {
        lin_dataset_speaker_norm(set, s, mean, istd);
        check_norm(lin_dataset_speaker_name(set, s), mean, istd);
    }
    lin_dataset_close(set);
}
END_TEST

START_TEST(sets_that_differ_are_not_mixed)
{
    write_set();
    lin_dataset *set = open_set(), *other;
    const char *second = test_path("y.lds");
    float mean[512], istd[512], x[8] = {0};
    const struct {
        int D, hz;
        const char *phones, *message;
    } cases[] = {{4, 16000, phones, "numbers of mel bins"},
                 {D, 8000, phones, "feature parameters"},
                 {D, 16000, "<blank> B AA CH", "phones: they have another order, another language or other IPA"},
                 {D, 16000, "<blank> AA B D", "phones: 'CH' is only in the first"},
                 {D, 16000, "<blank> AA B CH D\td", "phones: 'D' is only in the second"},
                 {D, 16000, "<blank> AA B CH\ttʃ", "phones: they have another order, another language or other IPA"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_features f = set->features;
        f.sample_hz = cases[i].hz;
        f.high_hz = cases[i].hz == 8000 ? 4000 : 5500;
        lin_dataset_writer *writer;
        OK(lin_dataset_create(second, cases[i].D, &f, cases[i].phones, "", &writer, &err));
        OK(lin_dataset_add(writer, "a", "a", x, 1, NULL, 0, &err));
        OK(lin_dataset_finish(writer, &err));
        OK(lin_dataset_open(second, &other, &err));
        const lin_dataset *const sets[] = {set, other};
        FAILS(lin_dataset_norm(sets, 2, mean, istd, &err), LIN_MISMATCH, cases[i].message, "x.lds", "y.lds");
        lin_dataset_close(other);
    }
    lin_dataset_close(set);
}
END_TEST

START_TEST(many_phones_take_two_bytes)
{
    char names[3000] = "<blank>";
    for (int i = 1; i < 400; i++) sprintf(names + strlen(names), " %d", i);
    lin_dataset_writer *writer = begin(names);
    const int wide[] = {1, 255, 256, 257, 399};
    OK(lin_dataset_add(writer, "a", "a", features[5], frames[5], wide, 5, NULL));
    OK(lin_dataset_finish(writer, NULL));
    lin_dataset *set = open_set();
    ck_assert_int_eq(set->utterances[0].n_labels, 5);
    ck_assert(memcmp(set->utterances[0].labels, wide, sizeof wide) == 0);
    lin_dataset_close(set);
}
END_TEST

// 16 hours: 5.76 million frames of 40 bins, 3.7 s and 40 phones each, must stay well under 250 MB. Measured on a part.
START_TEST(sixteen_hours_take_less_than_235_megabytes)
{
    enum { BINS = 40, T = 370, COUNT = 100 };
    lin_dataset_writer *writer;
    const lin_features f = lin_features_default();
    OK(lin_dataset_create(path, BINS, &f, phones, "", &writer, NULL));
    float *x = test_buffer(T * BINS, sizeof *x);
    test_fill_f32(x, T * BINS, 1, -16, 9);
    int phonemes[40];
    for (int u = 0; u < 40; u++) phonemes[u] = 1 + u % 3;
    for (int i = 0; i < COUNT; i++) OK(lin_dataset_add(writer, id_of(i), "a", x, T, phonemes, 40, NULL));
    test_buffer_free(x);
    OK(lin_dataset_finish(writer, NULL));
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    const double size = (double)info.st_size / (T * COUNT) * 16 * 3600 * 100;
    ck_assert_msg(size < 235e6, "%.1f MB", size / 1e6);
}
END_TEST

START_TEST(an_empty_set_is_a_set)
{
    OK(lin_dataset_finish(begin(phones), NULL));
    lin_dataset *set = open_set();
    float mean[D], istd[D];
    ck_assert_int_eq(set->count, 0);
    ck_assert_int_eq(lin_dataset_norm((const lin_dataset *const[]){set}, 1, mean, istd, NULL), LIN_INVALID);
    lin_dataset_close(set);
}
END_TEST

/* ---- bad utterances -------------------------------------------------------------------------------------------------------- */

START_TEST(bad_utterances_are_left_out)
{
    lin_dataset_writer *writer = begin(phones);
    lin_error why = {0};
    float bad[2 * D] = {0};
    char name[300];
    memset(name, 'x', 256);
    name[256] = '\0';
    OK(lin_dataset_add(writer, "good", "s", bad, 2, (int[]){1}, 1, &err));
    const struct {
        const char *id, *speaker;
        int T, label;
        float value;
        lin_status status;
        const char *message;
    } cases[] = {{"good", "s", 2, 1, 0, LIN_INVALID, "good is in the data set already"},
                 {"", "s", 2, 1, 0, LIN_INVALID, "the name of an utterance has 0 bytes"},
                 {name, "s", 2, 1, 0, LIN_INVALID, "the name of an utterance has 256 bytes; must have 1 to 255"},
                 {"a", "", 2, 1, 0, LIN_INVALID, "the name of a speaker has 0 bytes"},
                 {"a\n", "s", 2, 1, 0, LIN_INVALID, "the name of an utterance is not UTF-8 text"},
                 {"a", "\xFF", 2, 1, 0, LIN_INVALID, "the name of a speaker is not UTF-8 text"},
                 {"a", "s", 0, 1, 0, LIN_INVALID, "a: 0 frames and 1 labels"},
                 {"a", "s", 2, 0, 0, LIN_INVALID, "a: label 0 is 0; must be 1 to 3"},
                 {"a", "s", 2, 4, 0, LIN_INVALID, "a: label 0 is 4"},
                 {"a", "s", 2, 1, NAN, LIN_NUMERIC, "a: feature 3 of frame 1 is"},
                 {"a", "s", 2, 1, -INFINITY, LIN_NUMERIC, "a: feature 3 of frame 1 is -inf"},
                 {"a", "s", 2, 1, 60001, LIN_NUMERIC, "a: feature 3 of frame 1 is 60001"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bad[D + 3] = cases[i].value;
        const lin_status status =
            lin_dataset_add(writer, cases[i].id, cases[i].speaker, bad, cases[i].T, &cases[i].label, 1, &why);
        ck_assert_msg(status == cases[i].status && strstr(why.message, cases[i].message), "case %zu: %s", i, why.message);
    }
    bad[D + 3] = 0;
    OK(lin_dataset_add(writer, "a", "s", bad, 2, (int[]){3}, 1, &err));
    OK(lin_dataset_finish(writer, &err));
    lin_dataset *set = open_set();
    ck_assert_int_eq(set->count, 2);
    ck_assert_int_eq(set->n_speakers, 1);
    lin_dataset_close(set);
}
END_TEST

START_TEST(bad_parameters_are_refused)
{
    lin_dataset_writer *writer;
    lin_features f = lin_features_default();
    FAILS(lin_dataset_create(path, 513, &f, phones, "", &writer, &err), LIN_INVALID, "");
    FAILS(lin_dataset_create(path, D, &f, "one", "", &writer, &err), LIN_INVALID, "");
    FAILS(lin_dataset_create(path, D, &f, phones, "a\tb", &writer, &err), LIN_INVALID, "");
    f.sample_hz = 1;
    FAILS(lin_dataset_create(path, D, &f, phones, "", &writer, &err), LIN_INVALID, "");
    f = lin_features_default();
    FAILS(lin_dataset_create(test_path(""), D, &f, phones, "", &writer, &err), LIN_IO, "");
    ck_assert_ptr_null(writer);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

START_TEST(no_part_of_a_set_is_a_set)
{
    write_set();
    size_t n;
    unsigned char *bytes = read_all(&n);
    for (size_t part = 0; part < n; part++) {
        lin_dataset *set;
        lin_error err = {0};
        unsigned char *copy = malloc(part ? part : 1);
        memcpy(copy, bytes, part);
        test_require(lin_dataset_open_memory(copy, part, "m", &set, &err) == LIN_FORMAT && !set, "%zu bytes were taken", part);
        test_require(strncmp(err.message, "m: ", 3) == 0, "%s", err.message);
        free(copy);
    }
    free(bytes);
}
END_TEST

START_TEST(any_flipped_bit_is_found)
{
    write_set();
    size_t n;
    unsigned char *bytes = read_all(&n);
    for (size_t bit = 0; bit < n * 8; bit++) {
        const size_t at = bit / 8;
        lin_dataset *set;
        lin_error err = {0};
        bytes[at] ^= (unsigned char)(1u << (bit % 8));
        test_require(lin_dataset_open_memory(bytes, n, "m", &set, &err) != LIN_OK, "bit %zu of byte %zu", bit % 8, at);
        test_require(strncmp(err.message, "m: ", 3) == 0 && strstr(err.message, "feature cache"), "%s", err.message);
        bytes[at] ^= (unsigned char)(1u << (bit % 8));
    }
    free(bytes);
}
END_TEST

// Wrong values with correct checksums: only the checks of each value can find them.
START_TEST(forged_values_are_refused)
{
    write_set();
    size_t n;
    unsigned char *bytes = read_all(&n), *forged = malloc(n);
    lin_dataset_header h;
    memcpy(&h, bytes, sizeof h);
    const size_t tail = (size_t)h.tail, index = tail + 8, steps = index + N * sizeof(lin_dataset_entry);
    const size_t first_label = steps + N * 4 * D;
    size_t all = 0, alice = 0;
    for (int i = 0; i < N; i++) all += (size_t)n_labels[i];
    for (int i = 0; i < N; i += 3) alice += (size_t)frames[i];
    const size_t sums = first_label + all, speakers = sums + 16 * D, names = speakers + 3 * (16 + 16 * D);
#define AT(field) offsetof(lin_dataset_header, field)
    const struct {
        size_t at;
        int bytes;
        uint64_t value;
        const char *message;
        lin_status status;
    } cases[] = {{0, 1, 'X', "not a feature cache", LIN_FORMAT},
                 {AT(version), 4, 2, "feature cache version 2; this program reads version 1", LIN_UNSUPPORTED},
                 {AT(D), 4, 0, "numbers of mel bins", LIN_FORMAT},
                 {AT(D), 4, 513, "numbers of mel bins", LIN_FORMAT},
                 {AT(D), 4, D + 1, "differs from its header", LIN_FORMAT},
                 {AT(V), 4, 1, "numbers of mel bins and phones", LIN_FORMAT},
                 {AT(V), 4, 5, "the number of its phones differs", LIN_FORMAT},
                 {AT(sample_hz), 4, 0xFFFFFFFF, "sample_hz", LIN_FORMAT},
                 {AT(window_ms), 8, 0x7FF8000000000000, "window_ms", LIN_FORMAT},
                 {AT(count), 8, UINT64_MAX, "larger counts than the file can hold", LIN_FORMAT},
                 {AT(count), 8, N + 1, "", LIN_FORMAT},
                 {AT(count), 8, N - 1, "", LIN_FORMAT},
                 {AT(frames), 8, UINT64_MAX / D, "larger counts than the file can hold", LIN_FORMAT},
                 {AT(labels), 8, all + 1, "", LIN_FORMAT},
                 {AT(labels), 8, UINT64_MAX, "larger counts", LIN_FORMAT},
                 {AT(speakers), 4, N + 1, "larger counts", LIN_FORMAT},
                 {AT(speakers), 4, 2, "", LIN_FORMAT},
                 {AT(tokens), 4, 1, "its number of tokens is out of range", LIN_FORMAT}, // D is not 1
                 {AT(tokens), 4, 65537, "its number of tokens is out of range", LIN_FORMAT},
                 {AT(tail), 8, UINT64_MAX, "truncated or damaged", LIN_FORMAT},
                 {AT(tail), 8, tail + 1, "truncated or damaged", LIN_FORMAT},
                 {AT(tail_bytes), 8, UINT64_MAX, "truncated or damaged", LIN_FORMAT},
                 {index, 4, 0, "an entry of its index is out of range", LIN_FORMAT},
                 {index, 4, 0xFFFFFFFF, "an entry of its index is out of range", LIN_FORMAT},
                 {index, 4, 2, "the totals of its index differ from its header", LIN_FORMAT},
                 {index + 4, 4, 1, "the totals of its index differ from its header", LIN_FORMAT},
                 {index + 8, 4, 3, "an entry of its index is out of range", LIN_FORMAT},
                 {index + 12, 4, 0, "an entry of its index is out of range", LIN_FORMAT},
                 {index + 12, 4, 3, "an entry of its index is out of range", LIN_FORMAT},
                 {index + 12, 4, 0x7FFFFFFF, "an entry of its index is out of range", LIN_FORMAT},
                 {steps, 2, 0x7C00, "a step is not a number", LIN_FORMAT},
                 {steps + 2 * D, 2, 0x7E01, "a step is not a number", LIN_FORMAT},
                 {steps + 2 * D, 2, 0x8001, "a step is not a number above 0", LIN_FORMAT},
                 {first_label, 1, 0, "a label is out of range", LIN_FORMAT},
                 {first_label, 1, 4, "a label is out of range", LIN_FORMAT},
                 {sums, 8, 0x7FF0000000000000, "its sums are out of range", LIN_FORMAT},
                 {sums + 8 * D, 8, 0xBFF0000000000000, "its sums are out of range", LIN_FORMAT},
                 {speakers, 4, 1, "a speaker is out of range", LIN_FORMAT},
                 {speakers + 8, 8, 0, "a speaker is out of range", LIN_FORMAT},
                 {speakers + 8, 8, alice + 1, "the totals of its speakers differ from its header", LIN_FORMAT},
                 {speakers + 16, 8, 0x7FF8000000000000, "its sums are out of range", LIN_FORMAT},
                 {names, 1, 0xFF, "its names are not UTF-8", LIN_FORMAT},
                 {names, 1, ' ', "phones: name 1 is empty", LIN_FORMAT},
                 {names + 12, 2, 'A' << 8 | 'A', "phones", LIN_FORMAT},
                 {n - 1, 1, 'x', "its last name is not terminated", LIN_FORMAT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_dataset *set;
        lin_error err = {0};
        memcpy(forged, bytes, n);
        memcpy(forged + cases[i].at, &cases[i].value, (size_t)cases[i].bytes);
        memcpy(&h, forged, sizeof h);
        h.tail_hash = lin_hash(forged + tail, n - tail, 0);
        h.header_hash = lin_hash(&h, AT(header_hash), 0);
        memcpy(forged, &h, sizeof h);
        const lin_status status = lin_dataset_open_memory(forged, n, "m", &set, &err);
        ck_assert_msg(status == cases[i].status && strstr(err.message, cases[i].message), "case %zu: %s", i, err.message);
        ck_assert_ptr_null(set);
    }
    free(forged);
    free(bytes);
}
END_TEST

START_TEST(files_of_another_kind_are_refused)
{
    lin_dataset *set;
    FAILS(lin_dataset_open(path, &set, &err), LIN_IO, "");
    FAILS(lin_dataset_open(test_path(""), &set, &err), LIN_IO, "");
    test_write_file(path, "", 0);
    FAILS(lin_dataset_open(path, &set, &err), LIN_FORMAT, "");
    test_write_file(path, "To be, or not to be\n", 20);
    FAILS(lin_dataset_open(path, &set, &err), LIN_FORMAT, "x.lds: not a feature cache; linnet prepare makes one");
}
END_TEST

/* ---- the disk -------------------------------------------------------------------------------------------------------------- */

START_TEST(abort_and_failure_leave_the_old_file)
{
    write_set();
    size_t n, m;
    unsigned char *before = read_all(&n);
    char temporary[320];
    snprintf(temporary, sizeof temporary, "%s.linnet-0.tmp", path);
    lin_dataset_writer *writer = begin(phones);
    OK(lin_dataset_add(writer, "a", "a", features[9], frames[9], NULL, 0, NULL));
    ck_assert_int_eq(access(temporary, F_OK), 0);
    lin_dataset_abort(writer);
    ck_assert_int_ne(access(temporary, F_OK), 0);

    lin_error why = {0};
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t all = limit.rlim_cur;
    for (rlim_t most = 0; most <= 400000; most += 100000) { // in the header, in the body, and at its very end
        writer = begin(phones);
        static float wide[15000 * D];
        limit.rlim_cur = most;
        setrlimit(RLIMIT_FSIZE, &limit);
        lin_status status = LIN_OK;
        for (int i = 0; i < 5; i++) {
            const lin_status added = lin_dataset_add(writer, id_of(i), "a", wide, 15000, NULL, 0, &why);
            if (status == LIN_OK) status = added;
        }
        if (status != LIN_OK)
            ck_assert_msg(strstr(why.message, "nothing can be added") != NULL || status == LIN_IO, "%s", why.message);
        const lin_status finished = lin_dataset_finish(writer, &why);
        limit.rlim_cur = all;
        setrlimit(RLIMIT_FSIZE, &limit);
        ck_assert_int_ne(finished, most < 376000 ? LIN_OK : LIN_IO);
        if (finished == LIN_OK) break;
        ck_assert_int_ne(access(temporary, F_OK), 0);
        unsigned char *after = read_all(&m);
        ck_assert(m == n && memcmp(before, after, n) == 0);
        free(after);
    }
    signal(SIGXFSZ, SIG_DFL);
    free(before);
}
END_TEST

START_TEST(a_set_is_written_by_one_at_a_time)
{
    lin_dataset_writer *writer = begin(phones), *second;
    const lin_features f = lin_features_default();
    FAILS(lin_dataset_create(path, D, &f, phones, "", &second, &err), LIN_IO, "another process is writing it");
    OK(lin_dataset_finish(writer, &err));
    OK(lin_dataset_create(path, D, &f, phones, "", &second, &err));
    lin_dataset_abort(second);

    // the file of a killed process is overwritten
    char temporary[320];
    snprintf(temporary, sizeof temporary, "%s.linnet-0.tmp", path);
    char junk[9999] = {0};
    test_write_file(temporary, junk, sizeof junk);
    write_set();
    lin_dataset_close(open_set());
}
END_TEST

static lin_status write_once(void)
{
    const lin_features f = lin_features_default();
    lin_dataset_writer *writer;
    lin_status status = lin_dataset_create(path, D, &f, phones, "", &writer, NULL);
    for (int i = 0; i < N && status == LIN_OK; i++)
        status = lin_dataset_add(writer, id_of(i), speaker_of(i), features[i], frames[i], labels[i], n_labels[i], NULL);
    if (status == LIN_OK) return lin_dataset_finish(writer, NULL);
    lin_dataset_abort(writer);
    return status;
}

START_TEST(a_failed_allocation_is_an_error)
{
    lin_error err = {0};
    lin_dataset *set;
    FAIL_EVERY_ALLOCATION_OF(access(path, F_OK) == 0, write_once(), ck_assert(access(path, F_OK) == 0));
    FAIL_EVERY_ALLOCATION_OF(set, lin_dataset_open(path, &set, &err), lin_dataset_close(set));
}
END_TEST

// Sequences of tokens, in one byte each or in two, with targets of which some are missing.
START_TEST(tokens_come_back)
{
    static const struct {
        int tokens, V, top; // top: the highest target
    } kinds[] = {{1, 2, 1}, {256, 255, 254}, {256, 256, 255}, {257, 256, 255}, {40000, 300, 299}};
    enum { T = 9 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        lin_dataset_writer *writer;
        lin_dataset *set;
        char names[4096] = "v";
        int tokens[T], targets[T];
        float x[2 * T];
        for (int v = 1; v < kinds[k].V; v++) snprintf(names + strlen(names), sizeof names - strlen(names), " %d", v);
        for (int t = 0; t < T; t++) tokens[t] = t == 3 ? kinds[k].tokens - 1 : t * 131 % kinds[k].tokens;
        for (int t = 0; t < T; t++) targets[t] = t % 4 == 1 ? -1 : t == 2 ? kinds[k].top : t % kinds[k].V;
        OK(lin_dataset_create_tokens(path, kinds[k].tokens, names, "made up", &writer, &err));
        tokens[0] = kinds[k].tokens;
        FAILS(lin_dataset_add_tokens(writer, "bad", tokens, targets, T, &err), LIN_INVALID, "");
        tokens[0] = 0;
        targets[0] = kinds[k].V;
        FAILS(lin_dataset_add_tokens(writer, "bad", tokens, targets, T, &err), LIN_INVALID, "");
        targets[0] = 0;
        OK(lin_dataset_add_tokens(writer, "a", tokens, targets, T, &err));
        OK(lin_dataset_finish(writer, &err));
        OK(lin_dataset_open(path, &set, &err));
        ck_assert_int_eq(set->tokens, kinds[k].tokens);
        const int D_ = set->D, *got = set->utterances[0].labels;
        ck_assert_int_eq(D_, kinds[k].tokens > 256 ? 2 : 1);
        ck_assert_int_eq(set->utterances[0].n_labels, T);
        lin_dataset_features(set, 0, x);
        for (int t = 0; t < T; t++) {
            ck_assert_int_eq(got[t], targets[t]);
            ck_assert_int_eq((int)x[D_ * t] + (D_ > 1 ? (int)x[D_ * t + 1] : 0), tokens[t]);
        }
        lin_dataset_close(set);
    }
}
END_TEST

TEST_MAIN_WITH(enter, NULL, "train/dataset", TEST(everything_comes_back), TEST(values_are_within_half_a_step),
               TEST(means_and_deviations_are_those_of_the_originals), TEST(sets_that_differ_are_not_mixed),
               TEST(many_phones_take_two_bytes), TEST(sixteen_hours_take_less_than_235_megabytes), TEST(an_empty_set_is_a_set),
               TEST(tokens_come_back),
               TEST(bad_utterances_are_left_out), TEST(bad_parameters_are_refused), TEST(no_part_of_a_set_is_a_set),
               TEST(any_flipped_bit_is_found), TEST(forged_values_are_refused), TEST(files_of_another_kind_are_refused),
               TEST(abort_and_failure_leave_the_old_file), TEST(a_set_is_written_by_one_at_a_time),
               TEST(a_failed_allocation_is_an_error))
