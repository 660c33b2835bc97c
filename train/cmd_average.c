// cmd_average.c - linnet average: one model with the mean of the weights of several.

#include <math.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "base/memory.h"
#include "model/model.h"
#include "train/inherit.h"

typedef struct average_values {
    const char *output, *name, *license;
    int half, ema, delay_ms;
    double level_db, hop_ms, blank_bias;
} average_values;

static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1, .at = offsetof(average_values, output),
     .help = "The model to write"},
    {.name = "name", .type = LIN_OPTION_STRING, .at = offsetof(average_values, name),
     .help = "Name of the model, stored in its file; the first model's if not given"},
    {.name = "license", .type = LIN_OPTION_STRING, .at = offsetof(average_values, license),
     .help = "Licence of the model, stored in its file; the first model's if not given"},
    {.name = "delay-ms", .type = LIN_OPTION_INT, .at = offsetof(average_values, delay_ms), .text = "-1", .min = -1, .max = 1000,
     .value = "MS",
     .help = "Emission delay of the model, stored in its file: transcripts give times that are earlier by this; -1 takes the "
             "delay of the first model that has one"},
    {.name = "level-db", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, level_db), .text = "-1", .min = -1, .max = 150,
     .help = "The level to which the model brings speech, so that its results do not depend on how loud the speech was recorded "
             "(docs/models.md: 103 for the shipped models); 0: none; if not given, that of the first model"},
    {.name = "hop-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, hop_ms), .text = "0", .min = 0, .max = 1000,
     .value = "MS",
     .help = "Time between two frames of the model's features. With a shorter time than in training, speech is slower for the "
             "model, which helps with fast speakers (docs/models.md: 9.5 for the shipped offline model), in whole samples; 0: as "
             "in the first model"},
    {.name = "blank-bias", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, blank_bias), .text = "0",
     .min = -20, .max = 20,
     .help = "Add this to the output bias of the blank. Above 0, greedy decoding finds fewer phonemes; a model that was trained "
             "with mmi needs it (docs/training.md)"},
    {.name = "ema", .type = LIN_OPTION_FLAG, .at = offsetof(average_values, ema),
     .help = "Take the moving average of a checkpoint of linnet train --ema; best.safetensors has it after an epoch"},
    {.name = "half", .type = LIN_OPTION_FLAG, .at = offsetof(average_values, half),
     .help = "Store the model in half precision: half the size. A network of voices then forgets those that it was trained on"},
    {.type = LIN_OPTION_END},
};

// The name of a difference that makes a mean of the weights meaningless; NULL: none.
static const char *difference(const lin_model *a, const lin_model *b)
{
    const size_t D = (size_t)a->config.mel_bins * sizeof *a->mean;
    if (!lin_config_same_shape(&a->config, &b->config)) return "network";
    if (strcmp(a->phones, b->phones) != 0) return "phones";
    if (!lin_features_equal(&a->features, &b->features)) return "filterbank";
    if (a->speaker_norm != b->speaker_norm || memcmp(a->mean, b->mean, D) != 0 || memcmp(a->istd, b->istd, D) != 0)
        return "normalisation of the features";
    return NULL;
}

// Takes over the emission delay of a later model if the first one's is unknown (0).
static void join_delays(const char *path, const lin_model *model, lin_model *first)
{
    if (!first->delay_ms) first->delay_ms = model->delay_ms;
    else if (model->delay_ms && model->delay_ms != first->delay_ms)
        lin_complain("%s has an emission delay of %d ms, a model before it one of %d ms, which is used; --delay-ms gives another",
                     path, model->delay_ms, first->delay_ms);
}

typedef struct averaging {
    const average_values *v;
    const lin_list *paths;
    lin_model *model; // the first one, later the mean
    double *sums;     // of the weights
    cJSON *provenance;
    int moving; // checkpoints whose moving average is taken
} averaging;

static lin_status read_weights(averaging *a, const char *path, lin_model **model, lin_error *err)
{
    lin_checkpoint checkpoint;
    LIN_TRY(lin_model_load_checkpoint(path, model, &checkpoint, err));
    lin_status status = LIN_OK;
    if (a->v->ema && lin_safetensors_find(&checkpoint.file, "train.average")) {
        status = lin_checkpoint_read(&checkpoint, "train.average", (*model)->params.n_elements, (*model)->values, err);
        a->moving++;
    } else if (a->v->ema && lin_safetensors_find(&checkpoint.file, "train.m")) {
        status = lin_fail(err, LIN_INVALID, "%s is a checkpoint of a run without --ema: it has no moving average", path);
    }
    lin_checkpoint_close(&checkpoint);
    return status;
}

static lin_status add_model(averaging *a, const char *path, const lin_model *model, lin_error *err)
{
    const char *other = difference(a->model, model);
    if (other)
        return lin_fail(err, LIN_MISMATCH, "%s has another %s than %s; average models of one run", path, other,
                        a->paths->items[0]);
    for (size_t i = 0; i < model->params.n_elements; i++) a->sums[i] += (double)model->values[i];
    if (!lin_inherit_provenance(a->provenance, model->provenance)) return lin_no_memory(err, "the model's provenance", 1);
    if (a->v->delay_ms < 0) join_delays(path, model, a->model);
    return LIN_OK;
}

// A model by its path, or an installed one by its name.
static lin_status find(const averaging *a, const char *given, char path[4096], lin_error *err)
{
    LIN_TRY(lin_find_model(given, path, 4096, err));
    return lin_guard_found(path, a->v->output, err);
}

static lin_status add(averaging *a, const char *given, lin_error *err)
{
    lin_model *model = NULL;
    char path[4096];
    LIN_TRY(find(a, given, path, err));
    lin_status status = read_weights(a, path, &model, err);
    if (status == LIN_OK) status = add_model(a, path, model, err);
    lin_model_destroy(model);
    return status;
}

// The first model's provenance with the sets of the others, and the number of models.
static lin_status label(averaging *a, lin_error *err)
{
    const int n = a->paths->count;
    if (n > 1) cJSON_DeleteItemFromObject(a->provenance, "averaged");
    const int good = n == 1 || cJSON_AddNumberToObject(a->provenance, "averaged", n);
    char *json = good ? cJSON_PrintUnformatted(a->provenance) : NULL;
    if (!json) return lin_no_memory(err, "the model's provenance", 1);
    const lin_status status = lin_model_label(a->model, a->v->name, a->v->license, json, err);
    cJSON_free(json);
    return status;
}

// The rows of the output are voice vectors of real people, which a published network does not need: replaces them with unit
// vectors along the axes, from which training can continue.
static void forget_voices(lin_model *m)
{
    const lin_param *rows = &m->params.table[m->params.output[0]];
    float *values = m->values + rows->offset;
    memset(values, 0, lin_param_count(rows) * sizeof *values);
    for (int i = 0; i < rows->n; i++) values[(size_t)i * (size_t)rows->k + (size_t)(i % rows->k)] = 1;
}

static lin_status average(averaging *a, lin_error *err)
{
    const average_values *v = a->v;
    const lin_list *paths = a->paths;
    char path[4096];
    LIN_TRY(find(a, paths->items[0], path, err));
    LIN_TRY(lin_model_load(path, &a->model, err));
    lin_model *m = a->model;
    const size_t n = m->params.n_elements;
    a->sums = lin_alloc(n, sizeof *a->sums);
    if (!a->sums) return lin_no_memory(err, "the sums of the weights", n * sizeof *a->sums);
    a->provenance = *m->provenance ? cJSON_Parse(m->provenance) : cJSON_CreateObject();
    if (!a->provenance) return lin_no_memory(err, "the model's provenance", 1);
    for (size_t i = 0; i < n; i++) a->sums[i] = -0.0; // the mean of -0 is -0
    for (int i = 0; i < paths->count; i++) LIN_TRY(add(a, paths->items[i], err));
    if (v->ema && !a->moving)
        return lin_fail(err, LIN_INVALID, "--ema: none of the models is a checkpoint of a run with --ema");
    LIN_TRY(label(a, err));
    for (size_t i = 0; i < n; i++) m->values[i] = (float)(a->sums[i] / paths->count);
    if (v->delay_ms >= 0) m->delay_ms = v->delay_ms;
    if (v->level_db >= 0) m->features.level_db = v->level_db;
    if (v->hop_ms > 0) { // whole samples, or times would drift
        const double hz = m->features.sample_hz;
        m->features.hop_ms = floor(v->hop_ms * hz / 1000 + 1e-3) * 1000 / hz;
    }
    const lin_params *p = &m->params;
    if (v->blank_bias != 0 && m->config.voice)
        return lin_fail(err, LIN_INVALID, "a network of voices has no blank (--blank-bias)");
    if (v->blank_bias != 0)
        m->values[p->table[(p->search[1] >= 0 ? p->search : p->output)[1]].offset] += (float)v->blank_bias;
    LIN_TRY(lin_features_check(&m->features, err));
    if (v->half && m->config.voice) forget_voices(m);
    lin_model_seal(m);
    return lin_model_save(m, v->output, v->half ? LIN_F16 : LIN_F32, err);
}

static int run(lin_parsed *parsed)
{
    averaging a = {.v = parsed->values, .paths = &parsed->operands};
    lin_error err = {0};
    if (a.v->level_db != -1 && a.v->level_db != 0 && a.v->level_db < 1) return lin_misuse(parsed, "--level-db is 1 to 150, or 0");
    const lin_status status = average(&a, &err);
    lin_free(a.sums);
    cJSON_Delete(a.provenance);
    lin_model_destroy(a.model);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_average = {
    .name = "average",
    .operands = "MODEL...",
    .summary = "average the weights of models",
    .description =
        "Writes a model with the mean weights of all MODELs. Their networks, phones, filterbanks and normalisations must be "
        "equal, as those of models of one run are, or of runs that began with one model (linnet train --init) and have the same "
        "data. Of a checkpoint its model is taken; see --ema.",
    .examples =
        "  linnet average exp/a/epoch-18.safetensors exp/a/epoch-19.safetensors exp/a/epoch-20.safetensors -o mean.safetensors",
    .options = options,
    .values_size = sizeof(average_values),
    .min_operands = 1,
    .max_operands = 1000,
    .run = run,
};
