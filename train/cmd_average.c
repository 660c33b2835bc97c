// cmd_average.c - linnet average: one model with the mean of the weights of several.

#include <string.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/inputs.h"
#include "base/json.h"
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
     .value = "MS", .help = "Emission delay of the model, stored in its file: transcripts give times that much earlier; -1: that "
                            "of the first model that has one"},
    {.name = "level-db", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, level_db), .text = "-1", .min = -1, .max = 150,
     .help = "The running level to which the model brings speech, so that its results do not depend on how loud it was recorded "
             "(docs/models.md: 103 for the shipped ones); 0: none; if not given, the first model's"},
    {.name = "hop-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, hop_ms), .text = "0", .min = 0, .max = 1000,
     .value = "MS", .help = "Time between two frames of the model's features: with less than it was trained with, speech sounds "
                            "slower to it, which helps it with fast speakers (docs/models.md: 9.5 for the shipped offline one); "
                            "0: the first model's"},
    {.name = "blank-bias", .type = LIN_OPTION_DOUBLE, .at = offsetof(average_values, blank_bias), .text = "0",
     .min = -20, .max = 20,
     .help = "Added to the output bias of the blank: above 0 greedy decoding finds fewer phonemes, as a model needs that was "
             "trained with mmi (docs/training.md)"},
    {.name = "ema", .type = LIN_OPTION_FLAG, .at = offsetof(average_values, ema),
     .help = "Of a checkpoint of linnet train --ema take the moving average, which best.safetensors has after an epoch"},
    {.name = "half", .type = LIN_OPTION_FLAG, .at = offsetof(average_values, half),
     .help = "Store the model in half precision: half the size"},
    {.type = LIN_OPTION_END},
};

// What must be equal for a mean of the weights to mean anything; NULL if all is.
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

// An emission delay of 0 is an unknown one.
static void join_delays(const char *path, const lin_model *model, lin_model *first)
{
    if (!first->delay_ms) first->delay_ms = model->delay_ms;
    else if (model->delay_ms && model->delay_ms != first->delay_ms)
        lin_complain("%s has an emission delay of %d ms, a model before it one of %d ms, which is used; --delay-ms gives another",
                     path, model->delay_ms, first->delay_ms);
}

// moving counts the checkpoints whose moving average is taken.
static lin_status add(const char *path, const char *first_path, const average_values *v, lin_model *first, int *moving,
                      double *sums, cJSON *provenance, lin_error *err)
{
    lin_model *model;
    lin_checkpoint checkpoint;
    lin_status status = lin_model_load_checkpoint(path, &model, &checkpoint, err);
    if (status != LIN_OK) return status;
    if (v->ema && lin_safetensors_find(&checkpoint.file, "train.average")) {
        status = lin_checkpoint_read(&checkpoint, "train.average", LIN_F32, model->params.n_elements, model->values, err);
        ++*moving;
    }
    lin_checkpoint_close(&checkpoint);
    if (status != LIN_OK) {
        lin_model_destroy(model);
        return status;
    }
    const char *other = difference(first, model);
    if (other)
        status = lin_fail(err, LIN_MISMATCH, "%s has another %s than %s; average models of one run", path, other, first_path);
    for (size_t i = 0; i < first->params.n_elements && status == LIN_OK; i++) sums[i] += (double)model->values[i];
    if (status == LIN_OK && !lin_inherit_provenance(provenance, model->provenance))
        status = lin_no_memory(err, "the model's provenance", 1);
    if (status == LIN_OK && v->delay_ms < 0) join_delays(path, model, first);
    lin_model_destroy(model);
    return status;
}

// The first model's provenance with the sets of the others, and the number of models.
static lin_status label(lin_model *model, const average_values *v, int n, cJSON *provenance, lin_error *err)
{
    if (n > 1) cJSON_DeleteItemFromObject(provenance, "averaged");
    char *json = n == 1 || cJSON_AddNumberToObject(provenance, "averaged", n) ? cJSON_PrintUnformatted(provenance) : NULL;
    if (!json) return lin_no_memory(err, "the model's provenance", 1);
    const lin_status status = lin_model_label(model, v->name, v->license, json, err);
    cJSON_free(json);
    return status;
}

static int run(lin_parsed *parsed)
{
    const average_values *v = parsed->values;
    const lin_list *paths = &parsed->operands;
    lin_error err = {0};
    lin_model *model = NULL;
    double *sums = NULL;
    cJSON *provenance = NULL;
    int moving = 0;
    lin_status status = LIN_OK;
    for (int i = 0; i < paths->count && status == LIN_OK; i++) status = lin_guard_reads(paths->items[i], &err);
    if (v->level_db > 0 && v->level_db < 1) return lin_misuse(parsed, "--level-db is 1 to 150, or 0");
    if (status == LIN_OK) status = lin_guard_writes(v->output, &err);
    if (status == LIN_OK) status = lin_model_load(paths->items[0], &model, &err);
    const size_t n = model ? model->params.n_elements : 0;
    if (status == LIN_OK) sums = lin_alloc(n, sizeof *sums);
    if (status == LIN_OK && !sums) status = lin_no_memory(&err, "the sums of the weights", n * sizeof *sums);
    if (status == LIN_OK) {
        provenance = *model->provenance ? cJSON_Parse(model->provenance) : cJSON_CreateObject();
        if (!provenance) status = lin_no_memory(&err, "the model's provenance", 1);
    }
    for (size_t i = 0; i < n && status == LIN_OK; i++) sums[i] = -0.0; // the mean of -0 is -0
    for (int i = 0; i < paths->count && status == LIN_OK; i++)
        status = add(paths->items[i], paths->items[0], v, model, &moving, sums, provenance, &err);
    if (status == LIN_OK && v->ema && !moving)
        status = lin_fail(&err, LIN_INVALID, "--ema: none of the models is a checkpoint of a run with --ema");
    if (status == LIN_OK) status = label(model, v, paths->count, provenance, &err);
    if (status == LIN_OK) {
        for (size_t i = 0; i < n; i++) model->values[i] = (float)(sums[i] / paths->count);
        if (v->delay_ms >= 0) model->delay_ms = v->delay_ms;
        if (v->level_db >= 0) model->features.level_db = v->level_db;
        if (v->hop_ms > 0) model->features.hop_ms = v->hop_ms;
        const lin_params *p = &model->params;
        if (v->blank_bias != 0)
            model->values[p->table[(p->search[1] >= 0 ? p->search : p->output)[1]].offset] += (float)v->blank_bias;
        status = lin_features_check(&model->features, &err);
    }
    if (status == LIN_OK) {
        lin_model_seal(model);
        status = lin_model_save(model, v->output, v->half ? LIN_F16 : LIN_F32, &err);
    }
    lin_free(sums);
    cJSON_Delete(provenance);
    lin_model_destroy(model);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_average = {
    .name = "average",
    .operands = "MODEL...",
    .summary = "average the weights of models",
    .description =
        "Writes the model whose weights are the means of those of the MODELs, which must have the same network, phones, features "
        "and normalisation: models of one run, or of runs that began with the same weights (linnet train --init) and the same "
        "data. A checkpoint is read as the model that it holds; see --ema.",
    .examples =
        "  linnet average exp/a/epoch-18.safetensors exp/a/epoch-19.safetensors exp/a/epoch-20.safetensors -o mean.safetensors",
    .options = options,
    .values_size = sizeof(average_values),
    .min_operands = 1,
    .max_operands = 1000,
    .run = run,
};
