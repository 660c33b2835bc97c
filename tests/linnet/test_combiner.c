// Hypotheses that the sound of a second network judges (linnet/judges.h): scores are those of the formula, with sums over
// alignments computed by their definition; frames in pieces; hypotheses that cannot be; what is refused.
#include "linnet/judges.h"

#include <math.h>

#include "tests/decoder/paths.h"
#include "tests/linnet/stream_sound.h"

enum { FRAMES = 300, PHONES = 12 };

static const double BLANK_PENALTY = 1.5;
static const lin_recognizer *second;
static double weight;
static lin_combiner *combiner;

static lin_status create(const lin_recognizer *first, lin_combiner **c, lin_error *err)
{
    return lin_combiner_create(first, second, weight, BLANK_PENALTY, 1, 1, c, err);
}

static void begin(void)
{
    setup();
    second = &recognizer;
    weight = 0.3;
    OK(create(&recognizer, &combiner, &err));
}

static void end(void)
{
    lin_combiner_destroy(combiner);
    teardown();
}

// Rows of features first .. first + n - 1, alone.
static int rows_of(int first, int n, float *logp)
{
    lin_worker *worker;
    const int offsets[] = {0, n};
    OK(lin_worker_create(recognizer.encoder, 1, &worker, &err));
    worker->search = 1;
    OK(lin_encoder_run(worker, features + first * D, offsets, 1, logp, &err));
    lin_worker_destroy(worker);
    return lin_config_frames_out(&recognizer.model->config, n);
}

static lin_status read_tail(void *context, int number, lin_path *tail, lin_error *err)
{
    (void)number;
    (void)err;
    *tail = *(const lin_path *)context;
    return LIN_OK;
}

static double scored(const int *labels, int n, int settled)
{
    lin_path_phone phones[1000];
    lin_judged judged;
    for (int i = 0; i < n; i++) phones[i] = (lin_path_phone){.label = labels[i]};
    const lin_path before = {.phones = phones, .n_phones = settled};
    lin_path rest = {.phones = phones + settled, .n_phones = n - settled, .acoustic = -40, .score = -70, .language = -9}, room;
    const lin_hypotheses one = {.n = 1, .settled = &before, .tail = &room, .read = read_tail, .context = &rest};
    OK(lin_judge(NULL, combiner, &one, &judged, &err));
    ck_assert_double_eq_tol(judged.score + 70, judged.acoustic + 40, 1e-9);
    ck_assert(judged.language == -9);
    return judged.acoustic;
}

START_TEST(the_mean_of_both_sums)
{
    static float logp[(FRAMES + 300) * 64];
    int labels[PHONES];
    for (int pieces = 1; pieces <= 2; pieces++) { // two are heard each alone; an utterance does not know the last
        int rows = 0;
        lin_combiner_begin(combiner);
        for (int i = 0; i < pieces; i++) {
            OK(lin_combiner_push(combiner, features + i * FRAMES / 2 * D, FRAMES / 2, &err));
            rows += rows_of(i * FRAMES / 2, FRAMES / 2, logp + rows * recognizer.V);
        }
        for (uint64_t seed = 0; seed < 20; seed++) {
            const int n = (int)lin_random_below(seed, 0, PHONES + 1);
            for (int i = 0; i < n; i++) // equal neighbours too
                labels[i] = 1 + (int)lin_random_below(seed, 1 + (uint64_t)i, 3) * (int)(1 + seed % 7);
            const double want = 0.7 * -40 + 0.3 * ctc_log(logp, rows, recognizer.V, labels, n, BLANK_PENALTY);
            ck_assert_double_eq_tol(scored(labels, n, 0), want, 1e-6 * fabs(want));
            if (n) ck_assert(scored(labels, n, n / 2) == scored(labels, n, 0));
        }
    }
}
END_TEST

START_TEST(hypotheses_that_cannot_be)
{
    int labels[1000];
    for (int i = 0; i < 1000; i++) labels[i] = 1 + i % 2;
    lin_combiner_begin(combiner);
    OK(lin_combiner_push(combiner, features, FRAMES, &err));
    ck_assert_double_lt(scored(labels, 1000, 10), -1e5); // more phones than rows
    ck_assert_double_gt(scored(labels, 5, 2), -1e5);
    lin_combiner_begin(combiner);
    ck_assert(scored(labels, 5, 2) == -40); // no rows
}
END_TEST

START_TEST(none)
{
    lin_combiner *no;
    weight = 0;
    OK(create(&recognizer, &no, &err));
    ck_assert_ptr_null(no);
    lin_combiner_begin(NULL);
    OK(lin_combiner_push(NULL, features, FRAMES, &err));
    lin_combiner_destroy(NULL);
}
END_TEST

START_TEST(other_models)
{
    lin_combiner *no;
    lin_recognizer other = recognizer;
    lin_model model = *recognizer.model;
    other.model = &model;
    second = &other;
    model.config.stack++;
    FAILS(create(&recognizer, &no, &err), LIN_MISMATCH, "different steps");
    ck_assert_ptr_null(no);
    model.config.stack--;
    model.speaker_norm = 1;
    FAILS(create(&recognizer, &no, &err), LIN_UNSUPPORTED, "");
    second = &recognizer;
    FAILS(create(&other, &no, &err), LIN_UNSUPPORTED, "");
}
END_TEST

TEST_MAIN_WITH(begin, end, "linnet/combiner", TEST(the_mean_of_both_sums), TEST(hypotheses_that_cannot_be), TEST(none),
               TEST(other_models))
