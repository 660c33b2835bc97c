// Training at the lengths of WSJ: a synthetic feature cache, the batches of an epoch, and the trainer's own speed on them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/gpu/gpu.h"
#include "base/memory.h"
#include "base/hash.h"
#include "base/system.h"
#include "train/batches.h"
#include "train/dataset.h"
#include "train/train.h"

enum { SEED = 1, FRAMES_PER_HOUR = 360000 };

// Of utterance i: all --rows, if that is given; else as in WSJ, a quarter of it with --quick.
static int frames_of(const gpu_bench *b, int i)
{
    if (b->rows > 0) return b->rows < LONGEST ? b->rows : LONGEST;
    return gpu_utterance_frames(SEED, i) / (b->quick ? 4 : 1);
}

static int utterances_of(const gpu_bench *b)
{
    const double n = b->hours * FRAMES_PER_HOUR / MEAN_FRAMES;
    return n < 1 ? 1 : (int)n;
}

/* ---- data ------------------------------------------------------------------------------------------------------------------ */

// Random features of plausible size and random labels: nothing is learnt, but every step does its full work.
void gpu_part_cache(gpu_bench *b)
{
    enum { NOISE = 1 << 20 };
    lin_error err = {0};
    lin_dataset_writer *writer;
    const lin_features features = lin_features_default();
    char phones[V * 8] = "<blank>";
    for (int v = 1; v < V; v++) snprintf(phones + strlen(phones), sizeof phones - strlen(phones), " p%d", v);
    float *noise = lin_alloc(NOISE + LONGEST * D, sizeof *noise);
    if (!b->file || !noise) gpu_must(lin_fail(&err, LIN_INVALID, "cache needs --file FILE, and memory"), &err);
    for (uint64_t i = 0; i < NOISE + LONGEST * D; i++) noise[i] = (float)(8 + 6 * lin_random_uniform(SEED, i));
    gpu_must(lin_dataset_create(b->file, D, &features, phones, "synthetic", &writer, &err), &err);
    const int n = utterances_of(b);
    for (int i = 0; i < n; i++) {
        int labels[LONGEST];
        char id[32], speaker[32];
        // 97 phonemes in a mean utterance of WSJ. With --quick more for each frame: CTC has two states a thread there too.
        const int T = frames_of(b, i), U = T / (b->quick ? 3 : 8);
        for (int u = 0; u < U; u++) labels[u] = 1 + (int)lin_random_below(SEED + 1, (uint64_t)i * LONGEST + (uint64_t)u, V - 1);
        snprintf(id, sizeof id, "u%06d", i);
        snprintf(speaker, sizeof speaker, "s%03d", i % 283);
        const float *x = noise + lin_random_below(SEED + 2, (uint64_t)i, NOISE);
        gpu_must(lin_dataset_add(writer, id, speaker, x, T, labels, U, &err), &err);
    }
    gpu_must(lin_dataset_finish(writer, &err), &err);
    lin_free(noise);
}

// About b->hours of a cache: utterances at equal distances, so that all speakers are in it. The codes of features are made again;
// the error is at most that of the cache.
void gpu_part_cut(gpu_bench *b)
{
    lin_error err = {0};
    lin_dataset *set;
    lin_dataset_writer *writer;
    float *x = NULL;
    if (!b->source || !b->file) gpu_must(lin_fail(&err, LIN_INVALID, "cut needs --source FILE and --file FILE"), &err);
    gpu_must(lin_dataset_open(b->source, &set, &err), &err);
    gpu_must(lin_dataset_create(b->file, set->D, &set->features, set->phones, set->source, &writer, &err), &err);
    const double share = b->hours * FRAMES_PER_HOUR / (double)set->total_frames;
    double due = 0;
    for (int i = 0; i < set->count; i++, due -= due >= 1) {
        due += share < 1 ? share : 1;
        if (due < 1) continue;
        const lin_dataset_utterance *u = &set->utterances[i];
        const int T = u->frames;
        lin_free(x);
        x = lin_alloc((size_t)T * (size_t)set->D, sizeof *x);
        if (!x) gpu_must(lin_no_memory(&err, "an utterance", (size_t)T * sizeof *x), &err);
        lin_dataset_features(set, i, x);
        gpu_must(lin_dataset_add(writer, u->id, lin_dataset_speaker_name(set, u->speaker), x, T, u->labels, u->n_labels, &err),
                 &err);
    }
    gpu_must(lin_dataset_finish(writer, &err), &err);
    lin_dataset_close(set);
    lin_free(x);
}

// The batches of the trainer's first epoch on that cache, one per line, "frames:labels" for every utterance.
void gpu_part_plan(gpu_bench *b)
{
    lin_error err = {0};
    lin_batches plan;
    const int n = utterances_of(b);
    int *frames = lin_alloc((size_t)n, sizeof *frames);
    if (!frames) gpu_must(lin_no_memory(&err, "lengths", (size_t)n * sizeof *frames), &err);
    for (int i = 0; i < n; i++) frames[i] = frames_of(b, i);
    gpu_must(lin_batches_plan(frames, n, b->batch_frames, 0, SEED, 0, &plan, &err), &err);
    for (int i = 0; i < plan.n_batches; i++) {
        for (int j = plan.offsets[i]; j < plan.offsets[i + 1]; j++)
            printf("%d:%d ", frames[plan.items[j]], frames[plan.items[j]] / 8);
        putchar('\n');
    }
    lin_batches_free(&plan);
    lin_free(frames);
}

/* ---- the trainer ----------------------------------------------------------------------------------------------------------- */

enum { EPOCHS = 4 };

typedef struct watch {
    const gpu_bench *b;
    double begin, ends[EPOCHS], said[EPOCHS]; // by the clock here, and frames per second as reported by the trainer
    int epochs;
    size_t free_before, free_least;
} watch;

static size_t free_bytes(const gpu_bench *b)
{
    lin_device device;
    const char *number = strchr(b->device, ':');
    if (strncmp(b->device, "cuda", 4) != 0) return 0;
    return lin_device_get(number ? atoi(number + 1) : 0, &device) ? device.free_bytes : 0;
}

static void on_progress(void *context, const lin_train_progress *p)
{
    watch *w = context;
    if (p->batch < p->n_batches || w->epochs == EPOCHS) return;
    w->ends[w->epochs] = lin_now();
    w->said[w->epochs++] = p->frames_per_s;
    const size_t now = free_bytes(w->b);
    if (now < w->free_least) w->free_least = now;
}

static int on_stop(void *context)
{
    const watch *w = context;
    return w->epochs >= 2 && gpu_late(w->b);
}

static void remove_run(const char *folder)
{
    static const char *const files[] = {"log.tsv", "checkpoint.safetensors", "best.safetensors", "curves.svg"};
    char path[4200];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

// With the setting for gradients of weights (kernels/cuda/linear.cu), where there is one.
static const char *name_of_run(void)
{
    static char name[64] = "linnet";
    const char *rows = getenv("LINNET_CUDA_SLICE_ROWS");
    if (rows) snprintf(name, sizeof name, "linnet, LINNET_CUDA_SLICE_ROWS=%.20s", rows);
    return name;
}

static void say_epoch(const gpu_bench *b, const watch *w, double frames)
{
    // The first epoch also loads the data and captures graphs. The others count completely, checkpoints included; the fastest.
    int best = 1;
    for (int i = 2; i < w->epochs; i++)
        if (w->ends[i] - w->ends[i - 1] < w->ends[best] - w->ends[best - 1]) best = i;
    const double seconds = w->epochs > 1 ? w->ends[best] - w->ends[best - 1] : w->ends[0] - w->begin;
    const double whole = (double)UTTERANCES * MEAN_FRAMES;
    gpu_line("epoch", name_of_run());
    gpu_text("precision", b->precision_name);
    gpu_number("causal", b->causal);
    gpu_number("batch_frames", b->batch_frames);
    gpu_number("frames_per_s", frames / seconds);
    gpu_number("epoch_s", whole * seconds / frames);
    gpu_number("measured_s", seconds);
    gpu_number("epochs", w->epochs);
    gpu_number("hours", frames / FRAMES_PER_HOUR);
    gpu_number("prepared_s", w->ends[0] - w->begin);
    gpu_number("trainer_frames_per_s", w->said[w->epochs > 1 ? best : 0]);
    if (w->free_before) gpu_number("mib", ((double)w->free_before - (double)w->free_least) / (1 << 20));
    gpu_line_end();
}

void gpu_part_epoch(gpu_bench *b)
{
    lin_error err = {0};
    lin_dataset *set;
    lin_model *model;
    if (!b->file) gpu_must(lin_fail(&err, LIN_INVALID, "epoch needs --file CACHE, as part cache writes it"), &err);
    gpu_must(lin_dataset_open(b->file, &set, &err), &err);
    lin_config config = lin_config_default(V);
    config.causal = b->causal;
    config.dropout = 0.1;
    gpu_must(lin_model_create(&config, &set->features, set->phones, SEED, &model, &err), &err);
    char folder[4096];
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/linnet-bench-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) gpu_must(lin_fail(&err, LIN_IO, "cannot make the folder %s", folder), &err);
    watch w = {.b = b, .free_before = free_bytes(b)};
    w.free_least = w.free_before;
    const lin_train_hooks hooks = {.context = &w, .progress = on_progress, .stop = on_stop};
    lin_train_options options = lin_train_default();
    options.folder = folder;
    options.device = b->device;
    options.precision = b->precision;
    options.epochs = b->quick ? 2 : EPOCHS;
    options.batch_frames = b->batch_frames;
    options.seed = SEED;
    options.checkpoint_s = 1e9;
    options.schedule = LIN_SCHEDULE_CONSTANT;
    const lin_dataset *const sets[] = {set};
    w.begin = lin_now();
    const lin_status status = lin_train(&options, model, sets, 1, NULL, 0, &hooks, &err);
    remove_run(folder);
    if (w.epochs) {
        say_epoch(b, &w, (double)set->total_frames);
    } else {
        gpu_line("epoch", name_of_run());
        gpu_text("precision", b->precision_name);
        gpu_number("causal", b->causal);
        gpu_number("batch_frames", b->batch_frames);
        gpu_text("left_out", err.message);
        gpu_line_end();
    }
    lin_model_destroy(model);
    lin_dataset_close(set);
    if (status != LIN_OK && status != LIN_STOPPED) gpu_must(status, &err);
}
