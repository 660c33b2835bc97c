// Training: it learns, it repeats itself bit for bit, it survives being stopped and killed.
#include "model/train.h"

#include <signal.h>
#include <sys/wait.h>

#include "kernels/memory.h"
#include "model/model_file.h"
#include "model/stream.h"
#include "tests/support.h"

enum { D = 6, V = 5, UTTERANCES = 40, STACK = 2, EPOCHS = 40 };

static char folder[256], train_path[300], dev_path[300];

// Each label is a few frames with one loud bin, so that a small network can learn the task.
static void write_set(const char *path, int n, uint64_t key, int with_impossible)
{
    lin_dataset_writer *writer;
    lin_error err = {0};
    const lin_features features = lin_features_default();
    ck_assert_msg(lin_dataset_create(path, D, &features, "<blank> a b c d", "made by a test", &writer, &err) == LIN_OK, "%s",
                  err.message);
    for (int u = 0; u < n; u++) {
        float x[80 * D];
        int labels[10], T = 0, U = 3 + (int)lin_random_below(key, (uint64_t)u, 5);
        for (int i = 0; i < U; i++) {
            labels[i] = 1 + (int)lin_random_below(key + 1, (uint64_t)(u * 10 + i), V - 1);
            for (int t = 0; t < 8; t++, T++)
                for (int d = 0; d < D; d++)
                    x[T * D + d] =
                        (float)(lin_random_uniform(key + 2, (uint64_t)((u * 80 + T) * D + d)) + (d == labels[i] && t < 5 ? 4 : 0));
        }
        char id[32];
        snprintf(id, sizeof id, "spk%d-utt%03d", u % 3, u);
        ck_assert_msg(lin_dataset_add(writer, id, id, x, T, labels, U, &err) == LIN_OK, "%s", err.message);
    }
    if (with_impossible) {
        const float x[4 * D] = {0};
        ck_assert(lin_dataset_add(writer, "impossible", "s", x, 4, (const int[]){1, 1, 2}, 3, &err) == LIN_OK);
        ck_assert(lin_dataset_add(writer, "silent", "s", x, 4, NULL, 0, &err) == LIN_OK);
    }
    ck_assert_msg(lin_dataset_finish(writer, &err) == LIN_OK, "%s", err.message);
}

static void set_up(void)
{
    test_folder(folder, sizeof folder);
    snprintf(train_path, sizeof train_path, "%s/train.lfc", folder);
    snprintf(dev_path, sizeof dev_path, "%s/dev.lfc", folder);
    write_set(train_path, UTTERANCES, 100, 1);
    write_set(dev_path, 10, 200, 0);
}

static void tear_down(void) { test_folder_remove(folder); }

/* ---- one run ---------------------------------------------------------------------------------------------------------------- */

typedef struct watch {
    lin_train_progress last;
    int left_out, stop_after; // steps; 0: never
} watch;

static int greedy_errors(void *context, const float *logp, int T, int n, const int *labels, int U)
{
    (void)context;
    int hyp[256], H = 0, before = 0;
    for (int t = 0; t < T; t++) {
        int best = 0;
        for (int v = 1; v < n; v++)
            if (logp[t * n + v] > logp[t * n + best]) best = v;
        if (best && best != before && H < 256) hyp[H++] = best;
        before = best;
    }
    int row[257];
    for (int j = 0; j <= H; j++) row[j] = j;
    for (int i = 1; i <= U; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= H; j++) {
            const int above = row[j], same = corner + (labels[i - 1] != hyp[j - 1]);
            row[j] = same < above + 1 ? same : above + 1;
            if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
            corner = above;
        }
    }
    return row[H];
}

static void on_progress(void *context, const lin_train_progress *p) { ((watch *)context)->last = *p; }

static void on_left_out(void *context, const char *set, const char *id, const char *why)
{
    (void)set;
    ck_assert(strcmp(id, "impossible") == 0 ? strstr(why, "CTC") != NULL : strcmp(id, "silent") == 0);
    ((watch *)context)->left_out++;
}

static int on_stop(void *context)
{
    watch *w = context;
    return w->stop_after && w->last.step >= w->stop_after;
}

static int hide_one(void *context, int T, int Dx, uint64_t key, lin_mask *masks) // an augmentation that depends on its key
{
    (void)context;
    const int t = (int)lin_random_below(key, 0, (uint32_t)T), d = (int)lin_random_below(key, 1, (uint32_t)Dx);
    *masks = (lin_mask){t, t + 1, d, d + 1};
    return 1;
}

static lin_train_options quick_options(const char *run)
{
    lin_train_options o = lin_train_default();
    o.folder = run;
    o.epochs = 4;
    o.batch_frames = 400;
    o.lr = 0.01;
    o.warmup_steps = 5;
    o.schedule = LIN_SCHEDULE_COSINE;
    o.threads = 2;
    o.checkpoint_s = 0; // after every step
    o.optimizer.kind = LIN_ADAM;
    return o;
}

// Trains a new small model in its own folder. *values receives its weights, released by the caller.
static lin_status train(const lin_train_options *options, watch *w, float **values, lin_error *err)
{
    lin_config config = lin_config_default(V);
    config.layers = 2;
    config.heads = 2;
    config.head_width = 8;
    config.feedforward = 32;
    config.mel_bins = D;
    config.stack = STACK;
    config.positions = LIN_POSITIONS_CONV;
    config.conv_kernel = 3;
    config.conv_layers = 2;
    config.norm = LIN_NORM_PRE;
    lin_model *model;
    lin_dataset *set, *dev;
    const lin_features features = lin_features_default();
    ck_assert_msg(lin_model_create(&config, &features, "<blank> a b c d", 3, &model, err) == LIN_OK, "%s", err->message);
    ck_assert_msg(lin_dataset_open(train_path, &set, err) == LIN_OK, "%s", err->message);
    ck_assert_msg(lin_dataset_open(dev_path, &dev, err) == LIN_OK, "%s", err->message);
    const lin_train_hooks hooks = {.context = w,
                                   .masks = hide_one,
                                   .most_masks = 1,
                                   .errors = greedy_errors,
                                   .progress = on_progress,
                                   .left_out = on_left_out,
                                   .stop = on_stop};
    const lin_status status =
        lin_train(options, model, (const lin_dataset *const[]){set}, 1, (const lin_dataset *const[]){dev}, 1, &hooks, err);
    if (values) {
        *values = malloc(model->params.n_elements * sizeof(float));
        ck_assert(*values != NULL);
        memcpy(*values, model->values, model->params.n_elements * sizeof(float));
    }
    lin_dataset_close(set);
    lin_dataset_close(dev);
    lin_model_destroy(model);
    return status;
}

static void run_folder(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
    char command[600];
    snprintf(command, sizeof command, "mkdir -p '%s'", path);
    ck_assert(system(command) == 0);
}

static size_t n_elements(void)
{
    char path[400];
    lin_model *model;
    lin_error err = {0};
    snprintf(path, sizeof path, "%s/whole/best.safetensors", folder);
    ck_assert_msg(lin_model_load(path, &model, &err) == LIN_OK, "%s", err.message);
    const size_t n = model->params.n_elements;
    lin_model_destroy(model);
    return n;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------ */

START_TEST(it_learns_and_repeats_itself)
{
    char run[300];
    lin_error err = {0};
    float *whole, *again;
    watch w = {0};
    run_folder(run, sizeof run, "whole");
    lin_train_options o = quick_options(run);
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    ck_assert_msg(train(&o, &w, &whole, &err) == LIN_OK, "%s", err.message);
    ck_assert_int_eq(w.left_out, 2);
    ck_assert_int_eq(w.last.epoch, EPOCHS - 1);
    ck_assert_int_eq(w.last.batch, w.last.n_batches);
    ck_assert_msg(w.last.dev_per >= 0 && w.last.dev_per < 0.2, "PER %g after %lld steps", w.last.dev_per, w.last.step);
    ck_assert(w.last.dev_loss < 0.5 && w.last.best_per <= w.last.dev_per);
    const size_t n = n_elements();

    // another number of threads: the same bits
    char other[300];
    run_folder(other, sizeof other, "threads");
    o = quick_options(other);
    o.epochs = EPOCHS;
    o.checkpoint_s = 1e9;
    o.threads = 1;
    ck_assert(train(&o, &(watch){0}, &again, &err) == LIN_OK);
    test_same_f32("with one thread", again, whole, n);
    free(again);

    // another seed: other bits
    run_folder(other, sizeof other, "seed");
    o = quick_options(other);
    o.epochs = 1;
    o.seed = 2;
    ck_assert(train(&o, &(watch){0}, &again, &err) == LIN_OK);
    ck_assert(memcmp(again, whole, n * sizeof *whole) != 0);
    free(again);
    free(whole);

    // the log has a head and one line for each epoch
    char path[400], line[256];
    snprintf(path, sizeof path, "%s/log.tsv", run);
    FILE *log = fopen(path, "r");
    ck_assert(log != NULL);
    int lines = 0;
    while (fgets(line, sizeof line, log)) ck_assert(lines++ == 0 ? strncmp(line, "epoch\t", 6) == 0 : atoi(line) == lines - 1);
    fclose(log);
    ck_assert_int_eq(lines, EPOCHS + 1);
}
END_TEST

START_TEST(stopped_and_resumed_gives_the_same_bits)
{
    char run[300];
    lin_error err = {0};
    float *whole, *resumed;
    run_folder(run, sizeof run, "whole");
    lin_train_options o = quick_options(run);
    ck_assert(train(&o, &(watch){0}, &whole, &err) == LIN_OK);
    const size_t n = n_elements();
    run_folder(run, sizeof run, "stopped");
    o = quick_options(run);
    lin_status status = train(&o, &(watch){.stop_after = 3}, NULL, &err);
    ck_assert_int_eq(status, LIN_STOPPED);
    o.resume = 1;
    for (int stop = 7; (status = train(&o, &(watch){.stop_after = stop}, &resumed, &err)) == LIN_STOPPED; stop += 5) free(resumed);
    ck_assert_msg(status == LIN_OK, "%s", err.message);
    test_same_f32("after resuming", resumed, whole, n);
    free(resumed);

    // what does not belong together is refused
    o.seed = 9;
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_MISMATCH);
    run_folder(run, sizeof run, "empty");
    o = quick_options(run);
    o.resume = 1;
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_IO);
    ck_assert(strstr(err.message, "checkpoint.safetensors") != NULL);
    free(whole);
}
END_TEST

START_TEST(killed_at_random_moments_gives_the_same_bits)
{
    char run[300];
    lin_error err = {0};
    float *whole, *resumed;
    const char *asked = getenv("LINNET_KILLS"); // more than the few that a quick test can afford
    const int kills = asked ? atoi(asked) : 8;
    run_folder(run, sizeof run, "whole");
    lin_train_options o = quick_options(run);
    o.epochs = kills; // enough work to be killed in so often
    ck_assert(train(&o, &(watch){0}, &whole, &err) == LIN_OK);
    const size_t n = n_elements();
    run_folder(run, sizeof run, "killed");
    o.folder = run;
    char checkpoint[400];
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", run);
    for (int i = 0; i < kills; i++) {
        o.resume = access(checkpoint, F_OK) == 0;
        const pid_t child = fork();
        ck_assert(child >= 0);
        if (child == 0) {
            train(&o, &(watch){0}, NULL, &err);
            _exit(0);
        }
        usleep(5000 + lin_random_below(11, (uint64_t)i, 40000));
        kill(child, SIGKILL);
        ck_assert(waitpid(child, NULL, 0) == child);
    }
    o.resume = access(checkpoint, F_OK) == 0;
    ck_assert_msg(train(&o, &(watch){0}, &resumed, &err) == LIN_OK, "%s", err.message);
    test_same_f32("after being killed", resumed, whole, n);
    free(resumed);
    free(whole);
}
END_TEST

START_TEST(nan_stops_with_the_name_of_an_utterance)
{
    char run[300];
    lin_error err = {0};
    run_folder(run, sizeof run, "nan");
    lin_train_options o = quick_options(run);
    lin_config config = lin_config_default(V);
    config.layers = 1;
    config.mel_bins = D;
    lin_model *model;
    lin_dataset *set;
    const lin_features features = lin_features_default();
    ck_assert(lin_model_create(&config, &features, "<blank> a b c d", 3, &model, &err) == LIN_OK);
    ck_assert(lin_dataset_open(train_path, &set, &err) == LIN_OK);
    model->values[model->params.table[model->params.output[0]].offset] = NAN;
    ck_assert_int_eq(lin_train(&o, model, (const lin_dataset *const[]){set}, 1, NULL, 0, NULL, &err), LIN_NUMERIC);
    ck_assert_msg(strstr(err.message, "spk") != NULL && strstr(err.message, "train.lfc") != NULL, "%s", err.message);
    lin_dataset_close(set);
    lin_model_destroy(model);
}
END_TEST

START_TEST(the_plateau_schedule_ends)
{
    char run[300];
    lin_error err = {0};
    run_folder(run, sizeof run, "plateau");
    lin_train_options o = quick_options(run);
    o.schedule = LIN_SCHEDULE_PLATEAU;
    o.patience = 1;
    o.epochs = 200;
    o.lr = 1e-5; // so small that nothing improves for long
    o.min_lr = 4e-6;
    o.checkpoint_s = 1e9;
    watch w = {0};
    ck_assert_msg(train(&o, &w, NULL, &err) == LIN_OK, "%s", err.message);
    ck_assert_int_lt(w.last.epoch, 199);
}
END_TEST

START_TEST(normalised_by_speaker)
{
    char run[300], path[400];
    lin_error err = {0};
    run_folder(run, sizeof run, "speaker");
    lin_train_options o = quick_options(run);
    o.speaker_norm = 1;
    o.epochs = 1;
    float *by_speaker, *global;
    ck_assert_msg(train(&o, &(watch){0}, &by_speaker, &err) == LIN_OK, "%s", err.message);
    lin_model *model;
    snprintf(path, sizeof path, "%s/best.safetensors", run);
    ck_assert_msg(lin_model_load(path, &model, &err) == LIN_OK, "%s", err.message);
    ck_assert_int_eq(model->speaker_norm, 1);
    const size_t n = model->params.n_elements;
    for (int d = 0; d < D; d++) ck_assert(model->mean[d] == 0 && model->istd[d] == 1);
    lin_encoder *encoder;
    lin_stream *stream;
    ck_assert(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err) == LIN_OK);
    ck_assert_int_eq(lin_stream_create(encoder, &stream, &err), LIN_UNSUPPORTED);
    ck_assert(strstr(err.message, "speaker") != NULL);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    o.resume = 1;
    o.speaker_norm = 0;
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_MISMATCH);
    run_folder(run, sizeof run, "global");
    o = quick_options(run);
    o.epochs = 1;
    ck_assert(train(&o, &(watch){0}, &global, &err) == LIN_OK);
    ck_assert(memcmp(by_speaker, global, n * sizeof *global) != 0);
    free(by_speaker);
    free(global);
}
END_TEST

START_TEST(bad_options_are_refused)
{
    lin_error err = {0};
    lin_train_options o = quick_options("");
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_INVALID);
    o = quick_options(folder);
    o.lr = -1;
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_INVALID);
    o = quick_options("no/such/folder");
    o.epochs = 1;
    ck_assert_int_eq(train(&o, &(watch){0}, NULL, &err), LIN_IO);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model/train");
    TCase *tests = tcase_create("train");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_learns_and_repeats_itself);
    tcase_add_test(tests, stopped_and_resumed_gives_the_same_bits);
    tcase_add_test(tests, killed_at_random_moments_gives_the_same_bits);
    tcase_add_test(tests, nan_stops_with_the_name_of_an_utterance);
    tcase_add_test(tests, the_plateau_schedule_ends);
    tcase_add_test(tests, normalised_by_speaker);
    tcase_add_test(tests, bad_options_are_refused);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
