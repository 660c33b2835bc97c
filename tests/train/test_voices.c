// Training on voices: their numbers, the equal error rate, the pieces of an epoch; a network learns to tell voices apart that it
// has not heard; resumed it is the same run; what belongs to speech is refused.
#include <math.h>

#include "model/voice.h"
#include "tests/train/train_support.h"
#include "train/batches.h"
#include "train/train_internal.h"
#include "train/voices.h"

enum { VOICES = 12, EACH = 4, SIZE = 8 };

// A voice is loud in two bins of its own; another bin drowns in each stretch of speech. Names begin at `first`, and the last
// utterance is long.
static void write_voices(const char *path, int first, int n, uint64_t key)
{
    lin_dataset_writer *writer;
    const lin_features features = lin_features_default();
    OK(lin_dataset_create(path, D, &features, "<blank> a b c d", "made by a test", &writer, &err));
    for (int u = 0; u < n * EACH; u++) {
        const int voice = first + u % n, T = u == n * EACH - 1 ? 4500 : 200 + (int)lin_random_below(key, (uint64_t)u, 160);
        float *x = test_buffer((size_t)T * D, sizeof *x);
        char id[32], speaker[32];
        for (int i = 0; i < T * D; i++) {
            const int loud = i % D == voice % D || i % D == (voice / D + voice) % D;
            x[i] = (float)lin_random_uniform(key + 1, (uint64_t)u * 100000 + (uint64_t)i) * 2 + (loud ? 3 : 0) -
                   (i % D == i / D / 70 % D ? 4 : 0);
        }
        snprintf(id, sizeof id, "u%03d", u);
        snprintf(speaker, sizeof speaker, "v%d", voice);
        OK(lin_dataset_add(writer, id, speaker, x, T, NULL, 0, &err));
        TEST_FREE(x);
    }
    OK(lin_dataset_finish(writer, &err));
}

static void enter(void)
{
    train_path = test_path("train.lfc");
    dev_path = test_path("dev.lfc");
    write_voices(train_path, 0, VOICES, 100);
    write_voices(dev_path, VOICES, 4, 200);
}

static lin_config voice_config(void)
{
    lin_config c = quick_config();
    c.voice = SIZE;
    c.outputs = VOICES;
    c.causal = 0;
    c.dropout = 0.1;
    return c;
}

static lin_train_options voice_options(const char *run)
{
    lin_train_options o = quick_run(run);
    o.epochs = 6;
    o.batch_frames = 3000;
    o.max_frames = 1; // says nothing of pieces
    return o;
}

static lin_status train_voices(const lin_train_options *o, watch *w, float **values, size_t *n, lin_error *err)
{
    const lin_config c = voice_config();
    const lin_train_hooks hooks = {w, on_progress, on_note, on_stop};
    return train_model(model_of(&c, NULL, 3), train_path, o, &hooks, values, n, err);
}

/* ---- numbers --------------------------------------------------------------------------------------------------------------- */

START_TEST(a_name_is_a_voice)
{
    lin_dataset *sets[3];
    int *voices, count;
    const char *more = test_path("more.lfc");
    write_voices(more, VOICES - 2, 3, 300); // two of the first set, one of the second
    const char *const paths[] = {train_path, dev_path, more};
    for (int i = 0; i < 3; i++) OK(lin_dataset_open(paths[i], &sets[i], &err));
    OK(lin_voices_number((const lin_dataset *const *)sets, 3, &voices, &count, &err));
    ck_assert_int_eq(count, VOICES + 4);
    for (int s = 0, at = 0; s < 3; s++)
        for (int i = 0; i < sets[s]->n_speakers; i++, at++) {
            const int named = atoi(lin_dataset_speaker_name(sets[s], i) + 1);
            ck_assert_int_eq(voices[at], named); // in the order of the sets, which is that of the names here
        }
    lin_free(voices);
    for (int i = 0; i < 3; i++) lin_dataset_close(sets[i]);
    write_voices(more, 0, 1, 300);
    OK(lin_dataset_open(more, &sets[0], &err));
    FAILS(lin_voices_number((const lin_dataset *const *)sets, 1, &voices, &count, &err), LIN_INVALID, "");
    ck_assert_ptr_null(voices);
    lin_dataset_close(sets[0]);
}
END_TEST

// Against counting at every threshold.
START_TEST(equal_error_rate)
{
    enum { N = 60, W = 3 };
    float x[N * W];
    int voices[N], groups[N];
    double rate, best = 2, at_best = -1;
    for (int i = 0; i < N; i++) {
        double length = 0;
        voices[i] = i % 7;
        groups[i] = i % 2;
        for (int d = 0; d < W; d++) {
            x[i * W + d] = (float)(lin_random_uniform(1, (uint64_t)(voices[i] * W + d)) - 0.5 +
                                   0.6 * (lin_random_uniform(2, (uint64_t)(i * W + d)) - 0.5) +
                                   (d == 0 && groups[i])); // the groups are far apart
            length += (double)x[i * W + d] * (double)x[i * W + d];
        }
        for (int d = 0; d < W; d++) x[i * W + d] /= (float)sqrt(length);
    }
    OK(lin_voices_equal_error(x, voices, groups, N, W, &rate, &err));
    for (double threshold = -1; threshold <= 1; threshold += 1e-4) {
        double missed = 0, same = 0, alarms = 0, others = 0;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++) {
                double cosine = 0;
                if (groups[i] != groups[j]) continue;
                for (int d = 0; d < W; d++) cosine += (double)x[i * W + d] * (double)x[j * W + d];
                if (voices[i] == voices[j]) same++, missed += cosine <= threshold;
                else others++, alarms += cosine > threshold;
            }
        const double gap = fabs(missed / same - alarms / others);
        if (gap < best) best = gap, at_best = (missed / same + alarms / others) / 2;
    }
    ck_assert_msg(rate > 0.01 && fabs(rate - at_best) < 0.01, "%g, counted %g", rate, at_best);
    for (int i = 0; i < N; i++) voices[i] = i;
    OK(lin_voices_equal_error(x, voices, groups, N, W, &rate, &err));
    ck_assert(rate == -1); // no pair of one voice
}
END_TEST

/* ---- pieces ---------------------------------------------------------------------------------------------------------------- */

// No voice has more than its share, each piece lies in its utterance, passes differ, and one repeated is the same.
START_TEST(pieces_of_an_epoch)
{
    lin_dataset *set;
    lin_train_options o = voice_options("none");
    const lin_train_hooks hooks = {0};
    const lin_config c = voice_config();
    lin_model *model = model_of(&c, NULL, 3);
    OK(lin_dataset_open(train_path, &set, &err));
    const lin_dataset *const sets[] = {set};
    lin_train_data data = {.options = &o, .model = model, .train = {.sets = sets, .n_sets = 1}};
    OK(lin_train_data_open(&data, &hooks, &err));
    ck_assert_int_eq(data.train.n, VOICES * EACH - 1 + 4500 / LIN_VOICE_PIECE_MOST);
    uint64_t before = 0;
    for (int pass = 0; pass < 4; pass++) {
        int heard[VOICES] = {0}, capped = 0;
        lin_batches plan;
        uint64_t sum = 1;
        OK(lin_train_plan(&data, pass == 3 ? 2 : pass, 1, &plan, &err));
        for (int i = 0; i < plan.offsets[plan.n_batches]; i++) {
            const lin_train_item *it = &data.train.items[plan.items[i]];
            const int whole = set->utterances[it->index].frames;
            ck_assert(it->frames >= LIN_VOICE_PIECE_LEAST && it->frames <= LIN_VOICE_PIECE_MOST && it->first >= 0);
            ck_assert(it->first + it->frames <= whole && it->rows == (it->frames + STACK - 1) / STACK);
            ck_assert_int_eq(it->n_labels, 1);
            ck_assert_int_eq(*it->labels, set->utterances[it->index].speaker);
            heard[*it->labels]++;
            sum = lin_mix64(sum + (uint64_t)(it->first * 1000 + it->frames) + (uint64_t)plan.items[i] * 1000000);
        }
        for (int v = 0; v < VOICES; v++) {
            ck_assert(heard[v] >= EACH && heard[v] <= LIN_VOICE_PIECES);
            capped += heard[v] == LIN_VOICE_PIECES;
        }
        ck_assert_int_eq(capped, 1);
        ck_assert(pass == 3 ? sum == before : sum != before);
        before = sum;
        lin_batches_free(&plan);
    }
    lin_train_data_free(&data, lin_ops_cpu(), NULL);
    lin_model_destroy(model);
    lin_dataset_close(set);
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

START_TEST(strangers_are_told_apart)
{
    watch w = {0};
    lin_train_options o = voice_options("whole");
    o.epochs = 30;
    o.checkpoint_s = 1e9;
    OK(train_voices(&o, &w, NULL, NULL, &err));
    ck_assert_msg(w.last.loss < 3 && w.last.dev_loss == -1 && w.last.dev_per >= 0 && w.last.dev_per < 0.1, "loss %g, error %g",
                  w.last.loss, w.last.dev_per);

    lin_voice *voice;
    float x[200 * D], vectors[3][SIZE];
    const char *path = test_path("whole/best.safetensors");
    OK(lin_voice_open(path, &voice, &err));
    lin_dataset *dev;
    OK(lin_dataset_open(dev_path, &dev, &err));
    const int of[] = {0, 4, 1}; // two of one voice, one of another
    double same = 0, other = 0;
    for (int i = 0; i < 3; i++) {
        float *all = test_buffer((size_t)dev->utterances[of[i]].frames * D, sizeof *all);
        lin_dataset_features(dev, of[i], all);
        memcpy(x, all, sizeof x);
        TEST_FREE(all);
        OK(lin_voice_vector(voice, x, 200, vectors[i], &err));
    }
    for (int d = 0; d < SIZE; d++) {
        same += (double)vectors[0][d] * (double)vectors[1][d];
        other += (double)vectors[0][d] * (double)vectors[2][d];
    }
    ck_assert_msg(same > other, "%g with itself, %g with another", same, other);
    lin_dataset_close(dev);
    lin_voice_destroy(voice);
}
END_TEST

// The error of the log is that of the saved network, asked for the vectors of the pieces one by one.
START_TEST(the_error_of_an_epoch)
{
    enum { MOST = EACH * 4 * 3 + 4500 / LIN_VOICE_PIECE_MEASURED };
    watch w = {0};
    lin_train_options o = voice_options("one");
    lin_voice *voice;
    lin_dataset *dev;
    float vectors[MOST][SIZE];
    int voices[MOST], groups[MOST] = {0}, n = 0;
    double rate;
    o.epochs = 1;
    OK(train_voices(&o, &w, NULL, NULL, &err));
    const char *path = test_path("one/best.safetensors");
    OK(lin_voice_open(path, &voice, &err));
    OK(lin_dataset_open(dev_path, &dev, &err));
    for (int i = 0; i < dev->count; i++) {
        const int frames = dev->utterances[i].frames, piece = LIN_VOICE_PIECE_MEASURED; // none is shorter
        float *x = test_buffer((size_t)frames * D, sizeof *x);
        lin_dataset_features(dev, i, x);
        for (int at = 0; at + piece <= frames; at += LIN_VOICE_PIECE_MEASURED, n++) {
            voices[n] = dev->utterances[i].speaker;
            OK(lin_voice_vector(voice, x + at * D, piece, vectors[n], &err));
        }
        TEST_FREE(x);
    }
    OK(lin_voices_equal_error(&vectors[0][0], voices, groups, n, SIZE, &rate, &err));
    ck_assert_msg(rate > 0.05 && fabs(rate - w.last.dev_per) < 1e-3, "%g, in the log %g", rate, w.last.dev_per);
    lin_dataset_close(dev);
    lin_voice_destroy(voice);
}
END_TEST

START_TEST(resumed_it_is_the_same_run)
{
    float *whole, *resumed;
    size_t n;
    lin_train_options o = voice_options("through");
    o.optimizer.average = _i ? 0.9 : 0;
    o.accumulate = _i ? 2 : 1;
    OK(train_voices(&o, &(watch){0}, &whole, &n, &err));
    o.folder = voice_options("stopped").folder;
    FAILS(train_voices(&o, &(watch){.stop_after = 7}, NULL, NULL, &err), LIN_STOPPED, "");
    o.resume = 1;
    o.threads = 1;
    OK(train_voices(&o, &(watch){0}, &resumed, &n, &err));
    ck_assert(memcmp(whole, resumed, n * sizeof *whole) == 0);
    free(whole);
    free(resumed);
}
END_TEST

START_TEST(what_belongs_to_speech_is_refused)
{
    lin_train_options o = voice_options("refused");
    if (_i == 0) o.augment.tempo = 0.1;
    if (_i == 1) o.speaker_norm = 1;
    if (_i == 2) o.augment.silence_part = 0.1;
    FAILS(train_voices(&o, &(watch){0}, NULL, NULL, &err), LIN_INVALID, "network of voices");
}
END_TEST

TEST_MAIN_WITH(enter, NULL, "train/voices", TEST(a_name_is_a_voice), TEST(equal_error_rate), TEST(pieces_of_an_epoch),
               TEST(strangers_are_told_apart), TEST(the_error_of_an_epoch), TESTS(resumed_it_is_the_same_run, 0, 2),
               TESTS(what_belongs_to_speech_is_refused, 0, 3))
