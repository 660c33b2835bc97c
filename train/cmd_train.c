// cmd_train.c - linnet train: a model from feature caches.

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/inputs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/system.h"
#include "linnet/linnet.h"
#include "model/model.h"
#include "train/cmd_train_options.h"
#include "train/cmd_train_sweep.h"
#include "train/inherit.h"

/* ---- hooks ----------------------------------------------------------------------------------------------------------------- */

typedef struct watcher {
    const lin_train_values *v;
    lin_progress progress;
    double printed; // seconds of the run at the last line, if standard error is not a terminal
    int tokens;     // losses are compared, not error rates
} watcher;

enum { LINE_EVERY_S = 60 };

static void print_time(char *text, size_t size, double seconds)
{
    const int s = (int)seconds;
    if (s >= 3600) snprintf(text, size, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    else snprintf(text, size, "%d:%02d", s / 60, s % 60);
}

static void progress(void *context, const lin_train_progress *p)
{
    watcher *w = context;
    char left[32];
    print_time(left, sizeof left, p->seconds_left);
    if (p->epoch < 0) {
        if (!w->v->quiet)
            fprintf(stderr, "before training  dev loss %.4f  dev %s %.2f %%\n", p->dev_loss, w->tokens ? "errors" : "PER",
                    100 * p->dev_per);
        return;
    }
    if (p->batch < p->n_batches) {
        char line[256], best[64];
        if (w->tokens) snprintf(best, sizeof best, "loss %.4f", p->best_per < 0 ? NAN : p->best_per);
        else snprintf(best, sizeof best, "PER %.2f %%", p->best_per < 0 ? 100.0 : 100 * p->best_per);
        snprintf(line, sizeof line, "epoch %d/%d  %3d %%  loss %.3f  %.0f %s/s  lr %.2g  best dev %s  %s left", p->epoch + 1,
                 p->epochs, 100 * p->batch / p->n_batches, p->loss, p->frames_per_s, w->tokens ? "tokens" : "frames", p->lr, best,
                 left);
        lin_progress_show(&w->progress, "%s", line);
        if (!w->progress.shown && !w->v->quiet && p->seconds - w->printed > LINE_EVERY_S) {
            fprintf(stderr, "%s\n", line);
            w->printed = p->seconds;
        }
        return;
    }
    lin_progress_end(&w->progress);
    if (w->v->quiet) return;
    fprintf(stderr, "epoch %d/%d  loss %.4f  ", p->epoch + 1, p->epochs, p->loss);
    if (w->tokens && p->dev_loss >= 0)
        fprintf(stderr, "dev loss %.4f, %.4f bits%s  ", p->dev_loss, p->dev_loss / log(2),
                p->dev_loss <= p->best_per ? " (best)" : "");
    else if (p->dev_per >= 0)
        fprintf(stderr, "dev loss %.4f  dev PER %.2f %%%s  ", p->dev_loss, 100 * p->dev_per,
                p->dev_per <= p->best_per ? " (best)" : "");
    fprintf(stderr, "lr %.2g  %.0f %s/s", p->lr, p->frames_per_s, w->tokens ? "tokens" : "frames");
    if (!w->tokens) fprintf(stderr, " (%.0f x real time)", p->frames_per_s / 100);
    fprintf(stderr, "  %s left\n", left);
}

static void left_out(void *context, const char *set, const char *id, const char *why)
{
    const watcher *w = context;
    if (!w->v->quiet) lin_complain("%s: %s is left out: %s", set, id, why);
}

static void note(void *context, const char *text)
{
    const watcher *w = context;
    if (!w->v->quiet) lin_complain("%s", text);
}

static int asked_to_stop(void) { return lin_interrupted != 0; }

static int stop(void *context)
{
    (void)context;
    return asked_to_stop();
}

/* ---- the command ----------------------------------------------------------------------------------------------------------- */

typedef struct sets {
    lin_dataset **items;
    int n;
} sets;

static lin_status open_sets(const lin_list *paths, sets *s, lin_error *err)
{
    s->items = lin_calloc((size_t)paths->count, sizeof *s->items);
    if (!s->items) return lin_no_memory(err, "the list of caches", (size_t)paths->count * sizeof *s->items);
    for (; s->n < paths->count; s->n++) {
        const lin_status status = lin_dataset_open(paths->items[s->n], &s->items[s->n], err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static void close_sets(sets *s)
{
    for (int i = 0; i < s->n; i++) lin_dataset_close(s->items[i]);
    lin_free(s->items);
}

// The provenance of the model as JSON for its file: the caches, those of the model that it began with, and every option that
// differs from its default.
static lin_status label(lin_model *model, const lin_parsed *parsed, const sets *train, lin_error *err)
{
    const lin_train_values *v = parsed->values;
    cJSON *root = cJSON_CreateObject(), *data = cJSON_AddArrayToObject(root, "trained_on");
    int good = data != NULL;
    for (int i = 0; i < train->n; i++) {
        cJSON *set = cJSON_CreateObject();
        good = good && cJSON_AddStringToObject(set, "set", lin_base_name(train->items[i]->source)) &&
               cJSON_AddNumberToObject(set, "utterances", train->items[i]->count) &&
               cJSON_AddNumberToObject(set, "frames", (double)train->items[i]->total_frames);
        if (!cJSON_AddItemToArray(data, set)) cJSON_Delete(set);
    }
    cJSON *settings = cJSON_AddObjectToObject(root, "options");
    for (const lin_option *o = lin_train_rows; o->type != LIN_OPTION_END; o++) {
        const void *at = (const char *)parsed->values + o->at;
        if (o->type == LIN_OPTION_INT) good = good && cJSON_AddNumberToObject(settings, o->name, *(const int *)at);
        if (o->type == LIN_OPTION_DOUBLE) good = good && cJSON_AddNumberToObject(settings, o->name, *(const double *)at);
        if (o->type == LIN_OPTION_NUMBERS) {
            const lin_numbers *numbers = at;
            if (numbers->count == 0) continue;
            cJSON *array = cJSON_CreateDoubleArray(numbers->items, numbers->count);
            if (!cJSON_AddItemToObject(settings, o->name, array)) cJSON_Delete(array), good = 0;
        }
        if (o->type == LIN_OPTION_CHOICE) {
            lin_buffer word = {0};
            lin_train_put_value(&word, o, *(const int *)at);
            good = good && word.data && cJSON_AddStringToObject(settings, o->name, word.data);
            lin_buffer_free(&word);
        }
    }
    good = good && lin_inherit_provenance(root, model->provenance);
    char *json = good ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (!json) return lin_no_memory(err, "the model's provenance", 1);
    const lin_status status = lin_model_label(model, v->name, v->license, json, err);
    cJSON_free(json);
    return status;
}

// Half-lives in seconds, as steps of the network.
static lin_status init_decay(const lin_train_values *v, lin_model *model, lin_error *err)
{
    const lin_numbers *range = &v->decay_half_life_s;
    const double step_s = model->config.stack * model->features.hop_ms / 1000;
    if (range->count != 2 || range->items[0] > range->items[1])
        return lin_fail(err, LIN_INVALID, "decay-half-life-s must be two numbers, the lower one first (0.5,60)");
    lin_params_init_decay(&model->params, model->values, range->items[0] / step_s, range->items[1] / step_s);
    return LIN_OK;
}

// The provenance of the run so far. A checkpoint that cannot be read is not reported here: lin_train does it.
static lin_status resume_provenance(const lin_train_values *v, lin_model *model, lin_error *err)
{
    char path[4096];
    lin_model *from;
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", v->learning.folder);
    if (lin_model_load(path, &from, &(lin_error){0}) != LIN_OK) return LIN_OK;
    const lin_status status = lin_model_label(model, NULL, NULL, from->provenance, err);
    lin_model_destroy(from);
    return status;
}

// keeps_norm: whether the model has a normalisation already, that of --init.
static lin_status make_model(const lin_parsed *parsed, const sets *train, int first_process, lin_model **model, int *keeps_norm,
                             lin_error *err)
{
    const lin_train_values *v = parsed->values;
    const lin_dataset *first = train->items[0];
    const lin_config config = lin_train_network(v, first);
    if (v->network.mixture && (!config.tokens || first->V != LIN_LEVELS))
        return lin_fail(err, LIN_INVALID, "a mixture predicts tokens of %d values, and %s has others; leave out mixture",
                        LIN_LEVELS, first->path);
    lin_status status = lin_model_create(&config, &first->features, first->phones,
                                         (uint64_t)v->seed, model, err);
    if (status == LIN_OK && config.decay) status = init_decay(v, *model, err);
    if (status == LIN_OK && v->learning.resume) return resume_provenance(v, *model, err);
    if (status != LIN_OK || !v->init) return status;
    lin_model *from;
    status = lin_model_load(v->init, &from, err);
    if (status != LIN_OK) return status;
    lin_error why;
    char *differ = lin_train_differences(&config, &from->config);
    status = lin_inherit_weights(*model, from, &why);
    if (status != LIN_OK)
        lin_fail(err, status, "--init %s cannot be used: %s%s%s", v->init, why.message, differ ? ": " : "", differ ? differ : "");
    else if (differ && !v->quiet && first_process)
        lin_complain("this network differs from that of %s: %s; what that model lacks begins with its initial values", v->init,
                     differ);
    lin_free(differ);
    if (status == LIN_OK && !lin_features_equal(&from->features, &(*model)->features) && !v->quiet && first_process)
        lin_complain("%s has another filterbank than %s: prepare the caches with the model's (linnet info names it)", v->init,
                     first->path);
    (*model)->delay_ms = from->delay_ms;
    (*model)->features.level_db = from->features.level_db;
    *keeps_norm = status == LIN_OK && !from->speaker_norm;
    if (*keeps_norm) {
        memcpy((*model)->mean, from->mean, (size_t)config.mel_bins * sizeof *from->mean);
        memcpy((*model)->istd, from->istd, (size_t)config.mel_bins * sizeof *from->istd);
    }
    if (status == LIN_OK) status = lin_model_label(*model, NULL, NULL, from->provenance, err);
    lin_model_destroy(from);
    return status;
}

// Refuses a folder that already contains a run: its checkpoint may be days of work.
static lin_status check_folder(const lin_train_values *v, lin_error *err)
{
    char path[4096];
    static const char *const written[] = {"train.conf", "best.safetensors", "log.tsv", "curves.svg"};
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", v->learning.folder);
    if (v->learning.resume) return LIN_OK;
    if (access(path, F_OK) == 0)
        return lin_fail(err, LIN_INVALID, "%s already contains a run; resume it with --resume, or name another --folder",
                        v->learning.folder);
    lin_status status = LIN_OK;
    for (size_t i = 0; i < sizeof written / sizeof *written && status == LIN_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", v->learning.folder, written[i]);
        status = lin_guard_writes(path, err);
    }
    return status;
}

// Writes the options to the folder, in the form that `linnet train` reads.
static lin_status keep_options(const lin_parsed *parsed, lin_error *err)
{
    const lin_train_values *v = parsed->values;
    char path[4096], *text;
    snprintf(path, sizeof path, "%s/train.conf", v->learning.folder);
    lin_status status = lin_options_text(parsed, LIN_FROM_DEFAULT, &text, err);
    if (status != LIN_OK) return status;
    status = lin_file_write_all(path, text, strlen(text), err);
    lin_free(text);
    return status;
}

static void report_threads(const lin_comm *comm, int threads)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    fprintf(stderr, "%d processes, %d on this machine, %d %s each%s\n", comm->size, comm->local_size, threads,
            threads == 1 ? "thread" : "threads",
            lin_cores() < cores && (long)threads * comm->local_size < cores
                ? "; the launcher has bound each to a part of the cores: mpirun --bind-to none, or srun -c, gives them more"
                : "");
}

// Connects to the processes that mpirun or srun started with this one; NULL if there are none.
static lin_status join(const lin_train_values *v, lin_comm **comm, lin_error *err)
{
    const lin_status status = lin_comm_open(LINNET_VERSION, comm, err);
    if (!*comm) return status;
    (*comm)->patience_s = 60 * v->patience_minutes;
    (*comm)->interrupted = asked_to_stop;
    return status;
}

// The options of this process: of several each has its share of the cores, or its own GPU, whose name is then in `device`.
static lin_status learning_of(const lin_train_values *v, lin_comm *comm, char device[32], lin_train_options *o, lin_error *err)
{
    *o = v->learning;
    o->comm = comm;
    o->seed = (unsigned long long)v->seed;
    o->checkpoint_s = 60 * v->checkpoint_minutes;
    o->measures_first = v->init != NULL;
    if (comm && !o->threads) o->threads = lin_comm_threads(comm);
    if (comm && (strcmp(o->device, "cuda") == 0 || (strcmp(o->device, "auto") == 0 && !*lin_device_why_none(NULL, NULL)))) {
        lin_device gpu;
        int n = 0;
        while (lin_device_get(n, &gpu)) n++;
        snprintf(device, 32, "cuda:%d", n ? comm->local_rank % n : 0);
        o->device = device;
    }
    if (comm && lin_comm_first(comm) && !v->quiet && strncmp(o->device, "cuda", 4) != 0) report_threads(comm, o->threads);
    return lin_train_inner_layers(v, o, err);
}

// The folder, locked; its options are written down.
static lin_status open_folder(const lin_parsed *parsed, int *lock, lin_error *err)
{
    const lin_train_values *v = parsed->values;
    const char *folder = v->learning.folder;
    lin_status status = lin_make_folders(folder, strlen(folder), err);
    if (status == LIN_OK) status = lin_train_lock(folder, lock, err);
    if (status == LIN_OK) status = check_folder(v, err); // again, now that the lock is held
    if (status == LIN_OK) status = keep_options(parsed, err);
    return status;
}

static int run_one(lin_parsed *parsed)
{
    const lin_train_values *v = parsed->values;
    lin_error err = {0};
    watcher w = {.v = v};
    sets train = {0}, dev = {0};
    lin_model *model = NULL;
    lin_train_options learning = {0};
    lin_comm *comm = NULL;
    int lock = -1;
    char device[32];
    lin_status status = join(v, &comm, &err);
    const int first = lin_comm_first(comm);
    if (status == LIN_OK) status = lin_train_complete(parsed, &err);
    if (status == LIN_OK) status = lin_train_check_network(parsed, &err);
    if (status == LIN_OK) status = learning_of(v, comm, device, &learning, &err);
    if (status == LIN_OK) status = lin_augment_check(&learning.augment, &err);
    if (status == LIN_OK && first) status = check_folder(v, &err);
    if (status == LIN_OK && learning.resume && v->init && !v->quiet && first)
        lin_complain("--init is ignored: --resume uses the weights of the checkpoint");
    if (status == LIN_OK) status = open_sets(&v->train, &train, &err);
    if (status == LIN_OK) status = open_sets(&v->dev, &dev, &err);
    if (status == LIN_OK) status = make_model(parsed, &train, first, &model, &learning.keeps_norm, &err);
    w.tokens = status == LIN_OK && model->config.tokens;
    if (status == LIN_OK) status = label(model, parsed, &train, &err);
    if (status == LIN_OK && first) status = open_folder(parsed, &lock, &err);
    status = lin_comm_agree(comm, status, &err);
    if (status == LIN_OK) {
        const lin_train_hooks hooks = {&w, progress, note, left_out, stop};
        lin_progress_begin(&w.progress, v->quiet || !first);
        status = lin_train(&learning, model, (const lin_dataset *const *)train.items, train.n,
                           (const lin_dataset *const *)dev.items, dev.n, &hooks, &err);
        lin_progress_end(&w.progress);
    }
    const int known = comm && (comm->agreed || comm->lost); // to all: then one says it
    int exit_status = status == LIN_STOPPED ? LIN_EXIT_INTERRUPTED : status == LIN_OK ? LIN_EXIT_OK : LIN_EXIT_FAILED;
    if (status != LIN_OK && (!known || lin_comm_speaks(comm))) exit_status = lin_give_up(&err);
    lin_train_unlock(lock);
    lin_model_destroy(model);
    close_sets(&train);
    close_sets(&dev);
    lin_comm_close(comm, status != LIN_OK);
    return exit_status;
}

static int run(lin_parsed *parsed)
{
    lin_train_values *v = parsed->values;
    lin_error err = {0};
    if (!v->sweep && v->sweep_seeds.count) return lin_misuse(parsed, "--sweep-seeds belongs to --sweep");
    if (!v->sweep) return run_one(parsed);
    lin_comm *comm;
    if (lin_comm_open(LINNET_VERSION, &comm, &err) != LIN_OK) return lin_give_up(&err);
    if (comm) {
        const int first = lin_comm_first(comm);
        lin_comm_close(comm, 0);
        if (first) lin_complain("a sweep is run by one process, not by mpirun or srun");
        return LIN_EXIT_FAILED;
    }
    const char *table = v->sweep;
    const lin_numbers seeds = v->sweep_seeds;
    v->sweep = NULL;
    v->sweep_seeds = (lin_numbers){NULL, 0};
    return lin_train_sweep(parsed, table, &seeds, v->learning.folder, lin_train_complete, run_one);
}

const lin_command lin_command_train = {
    .name = "train",
    .operands = "CONF",
    .summary = "train a model from feature caches",
    .description =
        "CONF is a file of lines 'name = value' with the names of the options below; the command line overrides it. linnet "
        "prepare makes the caches. An interrupted run (Ctrl-C, kill) keeps its last checkpoint; resume it with --resume. Started "
        "by mpirun "
        "or srun, several processes train one model: each computes its part of every batch.",
    .examples = "  linnet train recipes/open/causal.conf --train train.lfc --dev dev.lfc --folder exp/causal\n"
                "  linnet train recipes/open/causal.conf --train train.lfc --dev dev.lfc --folder exp/causal --resume\n"
                "  linnet train recipes/open/causal.conf --train train.lfc --dev dev.lfc --folder exp/sweep --sweep table.txt\n"
                "  mpirun -np 4 linnet train recipes/open/causal.conf --train train.lfc --dev dev.lfc --folder exp/causal",
    .options = lin_train_rows,
    .values_size = sizeof(lin_train_values),
    .min_operands = 0,
    .max_operands = 1,
    .conf_operand = 1,
    .run = run,
};
