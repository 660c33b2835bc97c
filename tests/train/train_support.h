/*
 * train_support.h - a task that a small network learns in seconds, and runs of it, for any device.
 */
#ifndef LIN_TESTS_TRAIN_SUPPORT_H
#define LIN_TESTS_TRAIN_SUPPORT_H

#include <errno.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "tests/model/networks.h"
#include "train/train.h"

enum { D = 6, V = 5, UTTERANCES = 40, STACK = 2, EPOCHS = 40 };

// Errors of the dev set after EPOCHS: the task can be learnt without any, and these runs do so with every instruction set.
// Rounding may cost a few of the 47 labels; a method that does not learn has a PER near 1.
#define FEW_WRONG 0.05

static const char *train_path, *dev_path;

// Each label is a few frames with one loud bin, so that a small network can learn the task. The last `wordless` utterances sound
// the same, but for the last bin, which is loud throughout, and have no labels.
static inline void write_set(const char *path, int n, int wordless, uint64_t key, int with_impossible)
{
    lin_dataset_writer *writer;
    const lin_features features = lin_features_default();
    OK(lin_dataset_create(path, D, &features, "<blank> a b c d", "made by a test", &writer, &err));
    for (int u = 0; u < n + wordless; u++) {
        float x[80 * D];
        int labels[10], T = 0, U = 3 + (int)lin_random_below(key, (uint64_t)u, 5);
        for (int i = 0; i < U; i++) {
            labels[i] = 1 + (int)lin_random_below(key + 1, (uint64_t)(u * 10 + i), V - 1);
            for (int t = 0; t < 8; t++, T++)
                for (int d = 0; d < D; d++)
                    x[T * D + d] = (float)(lin_random_uniform(key + 2, (uint64_t)((u * 80 + T) * D + d)) +
                                           (d == labels[i] && t < 5 ? 4 : 0)) +
                                   (u >= n && d == D - 1 ? 4 : 0);
        }
        char id[32];
        snprintf(id, sizeof id, "spk%d-utt%03d", u % 3, u);
        OK(lin_dataset_add(writer, id, id, x, T, labels, u < n ? U : 0, &err));
    }
    if (with_impossible) {
        const float x[4 * D] = {0};
        OK(lin_dataset_add(writer, "impossible", "s", x, 4, (const int[]){1, 1, 2}, 3, &err));
    }
    OK(lin_dataset_finish(writer, &err));
}

static inline void set_up(void)
{
    train_path = test_path("train.lfc");
    dev_path = test_path("dev.lfc");
    write_set(train_path, UTTERANCES, 0, 100, 1);
    write_set(dev_path, 10, 0, 200, 0);
}

/* ---- one run --------------------------------------------------------------------------------------------------------------- */

typedef struct watch {
    lin_train_progress last;
    int left_out, stop_after; // steps that were told; 0: never; -1: at once, after one step
    int delay_ms;             // of the model that the run begins with
    char note[512];           // all of them
} watch;

static inline void on_progress(void *context, const lin_train_progress *p) { ((watch *)context)->last = *p; }

static inline void on_note(void *context, const char *text)
{
    watch *w = context;
    const size_t used = strlen(w->note);
    if (strstr(text, ": impossible is left out: CTC")) w->left_out++;
    else snprintf(w->note + used, sizeof w->note - used, "%s%s", used ? "; " : "", text);
}

static inline int on_stop(void *context)
{
    watch *w = context;
    return w->stop_after && w->last.step >= w->stop_after;
}

// Some of everything, for the features of write_set.
static inline lin_augment_options some_acoustics(double silence_part)
{
    return (lin_augment_options){.gain_db = 1, .tempo = 0.3, .noise_part = 0.3, .babble_part = 0.2, .snr_low_db = 15,
                                 .snr_high_db = 30, .band_part = 0.1, .room_part = 0.1, .silence_part = silence_part};
}

static inline lin_train_options quick_options(const char *run)
{
    lin_train_options o = lin_train_default();
    o.folder = run;
    o.device = "cpu";
    o.epochs = 4;
    o.batch_frames = 400;
    o.lr = 0.01;
    o.warmup_steps = 5;
    o.schedule = LIN_SCHEDULE_COSINE;
    o.threads = 2;
    o.checkpoint_s = 0; // after every step
    o.optimizer.kind = LIN_ADAM;
    o.augment = (lin_augment_options){.time_masks = 1, .time_width = 1, .time_part = 1}; // some that depends on its key
    return o;
}

static inline lin_config quick_config(void)
{
    lin_config config = with_conv(sized_config(2, 2, 8, 32, D, V), 3, 2);
    config.stack = STACK;
    config.norm = LIN_NORM_PRE;
    return config;
}

static inline lin_model *new_network(const lin_config *config)
{
    return model_of(config, config->tokens ? NULL : "<blank> a b c d", 3);
}

// Trains the model on the set at `path`, and releases it. *values [*n] receives its weights, released by the caller; both may be
// NULL.
static inline lin_status train_model(lin_model *model, const char *path, const lin_train_options *options,
                                     const lin_train_hooks *hooks, float **values, size_t *n, lin_error *err)
{
    lin_dataset *set, *dev;
    ck_assert_msg(lin_dataset_open(path, &set, err) == LIN_OK, "%s", err->message);
    ck_assert_msg(lin_dataset_open(dev_path, &dev, err) == LIN_OK, "%s", err->message);
    const lin_status status =
        lin_train(options, model, (const lin_dataset *const[]){set}, 1, (const lin_dataset *const[]){dev}, 1, hooks, err);
    if (n) *n = model->params.n_elements;
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

// A new small model in its own folder.
static inline lin_status train_network(lin_config config, const lin_train_options *options, watch *w, float **values, size_t *n,
                                       lin_error *err)
{
    lin_model *model = new_network(&config);
    const lin_train_hooks hooks = {w, on_progress, on_note, on_stop};
    model->delay_ms = w->delay_ms;
    return train_model(model, train_path, options, &hooks, values, n, err);
}

static inline void weights_close(const char *what, const float *got, const float *want, size_t n, double tolerance)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    test_require(worst <= tolerance, "%s: a weight differs by %g", what, worst);
    if (getenv("TEST_VERBOSE")) fprintf(stderr, "%s: %g\n", what, worst);
}

static inline lin_status train(const lin_train_options *options, watch *w, float **values, lin_error *err)
{
    return train_network(quick_config(), options, w, values, NULL, err);
}

static inline const char *run_folder(const char *name)
{
    const char *path = test_path(name);
    ck_assert(mkdir(path, 0777) == 0 || errno == EEXIST);
    return path;
}

/* Quick options of a run in a folder of this name. */
static inline lin_train_options quick_run(const char *name) { return quick_options(run_folder(name)); }

/* A model of a run: best, checkpoint, epoch-3. */
static inline lin_model *model_of_run(const char *run, const char *name)
{
    char path[400];
    lin_model *model;
    snprintf(path, sizeof path, "%s/%s.safetensors", run, name);
    OK(lin_model_load(path, &model, &err));
    return model;
}

static inline size_t n_elements(void)
{
    lin_model *model = model_of_run(test_path("whole"), "best");
    const size_t n = model->params.n_elements;
    lin_model_destroy(model);
    return n;
}

/*
 * A run in the folder "whole", and the same in "parts", on one thread, stopped after each of these steps (0 ends them) and
 * resumed: the same bits, and nothing starts again. Returns the weights, released by the caller; w: of the whole run. *o becomes
 * the options with which the parts were resumed.
 */
static inline float *same_in_parts(lin_config config, lin_train_options *o, const int *stops, watch *w)
{
    float *whole, *parts;
    size_t n;
    o->folder = run_folder("whole");
    OK(train_network(config, o, w, &whole, &n, &err));
    o->folder = run_folder("parts");
    o->threads = 1;
    for (; *stops; stops++, o->resume = 1) {
        watch part = {.stop_after = *stops};
        FAILS(train_network(config, o, &part, NULL, NULL, &err), LIN_STOPPED, "");
        ck_assert_msg(!strstr(part.note, "starts again"), "%s", part.note);
    }
    watch last = {0};
    OK(train_network(config, o, &last, &parts, NULL, &err));
    ck_assert_msg(!strstr(last.note, "starts again"), "%s", last.note);
    test_same_f32("in parts", parts, whole, n);
    free(parts);
    return whole;
}

#endif
