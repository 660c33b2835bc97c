// cmd_features.c - linnet features, linnet posteriors: matrices for other tools.

#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "linnet/files.h"
#include "linnet/find.h"
#include "model/model.h"
#include "train/lab/npy.h"

// Closes the matrix under its name; after Ctrl-C the rows so far are kept beside it. Returns status, or that of closing.
static lin_status end(lin_npy_writer *out, lin_status status, lin_error *err)
{
    char name[4096];
    if (status == LIN_OK) return lin_npy_close(out, err);
    if (status == LIN_STOPPED && out) {
        if (lin_npy_keep(out, name, sizeof name, NULL) == LIN_OK && *name) lin_complain("the results so far are in %s", name);
    } else {
        lin_npy_abandon(out);
    }
    return status;
}

/* ---- features -------------------------------------------------------------------------------------------------------------- */

typedef struct features_values {
    const char *output, *model;
    lin_input_values input;
    lin_fbank_config fbank;
} features_values;

static const lin_option features_options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1,
     .at = offsetof(features_values, output), .help = "The NumPy file to write: float32 [frames, bins]"},
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(features_values, model),
     .choices = "default|offline|small",
     .help = "Take the filterbank of this model (a file, default, offline or small), before its normalisation, instead of "
             "the values of --fbank but dereverb"},
    LIN_FBANK_ROWS(features_values, fbank),
    LIN_CHANNEL_ROWS(features_values, input),
    LIN_PART_ROWS(features_values, input),
    {.type = LIN_OPTION_END},
};

static lin_status choose_fbank(const features_values *v, lin_fbank_config *config, lin_error *err)
{
    *config = v->fbank;
    if (v->model) {
        lin_model *model;
        char path[4096];
        LIN_TRY(lin_find_model(v->model, path, sizeof path, err));
        lin_status status = lin_model_load(path, &model, err);
        if (status != LIN_OK) return status;
        status = lin_model_check_sound(model, v->model, err);
        if (status == LIN_OK) *config = lin_fbank_from_model(&model->features, model->config.mel_bins);
        lin_model_destroy(model);
        if (status != LIN_OK) return status;
        config->dereverb = v->fbank.dereverb;
    }
    return lin_fbank_check(config, err);
}

static lin_status copy_frames(lin_source *source, lin_npy_writer *out, lin_error *err)
{
    enum { BLOCK = 1024 };
    float *frames = lin_alloc((size_t)BLOCK * (size_t)lin_source_bins(source), sizeof *frames);
    if (!frames) return lin_no_memory(err, "features", (size_t)BLOCK * (size_t)lin_source_bins(source) * sizeof *frames);
    lin_status status = LIN_OK;
    for (int n = 1; status == LIN_OK && n > 0;) {
        if (lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
        if (status == LIN_OK) status = lin_source_read(source, frames, BLOCK, &n, err);
        if (status == LIN_OK && n) status = lin_npy_append(out, frames, (size_t)n, err);
    }
    lin_free(frames);
    return status;
}

// incomplete: some of the sound is missing.
static lin_status features(const void *values, int channel, lin_part part, const char *path, int *incomplete, lin_error *err)
{
    const features_values *v = values;
    lin_feature_options how = lin_feature_options_default();
    lin_pcm_format raw;
    lin_audio *audio;
    lin_source *source;
    lin_npy_writer *out = NULL;
    how.channel = channel;
    LIN_TRY(choose_fbank(v, &how.fbank, err));
    LIN_TRY(lin_audio_open(path, lin_input_format(&v->input, &raw), &audio, err));
    lin_status status = lin_source_from_audio(audio, &how, &source, err);
    if (status != LIN_OK) return lin_fail_at(err, status, "%s", path);
    if (lin_source_info(source)->notice[0]) lin_complain("%s", lin_source_info(source)->notice);
    if (v->input.start || v->input.end) status = lin_source_part(source, part.start_s, part.end_s, err);
    if (status == LIN_INVALID) lin_fail_at(err, status, "%s", path);
    if (status == LIN_OK) status = lin_npy_create(v->output, lin_source_bins(source), &out, err);
    if (status == LIN_OK) status = copy_frames(source, out, err);
    if (status == LIN_OK && lin_source_info(source)->warning[0]) lin_complain_of(path, lin_source_info(source)->warning);
    status = end(out, status, err);
    *incomplete = lin_source_info(source)->incomplete;
    lin_source_close(source);
    return status;
}

typedef lin_status (*making)(const void *values, int channel, lin_part part, const char *path, int *incomplete, lin_error *err);

static int run(const lin_parsed *parsed, const lin_input_values *input, making make)
{
    lin_error err = {0};
    lin_part part;
    int channel, incomplete = 0;
    if (lin_input_part(parsed, input, &part, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (lin_input_channel(parsed, input, &channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (make(parsed->values, channel, part, parsed->operands.items[0], &incomplete, &err) != LIN_OK) return lin_give_up(&err);
    return incomplete ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

static int run_features(lin_parsed *parsed) { return run(parsed, &((const features_values *)parsed->values)->input, features); }

const lin_command lin_command_features = {
    .name = "features",
    .operands = "FILE",
    .summary = "write the log-mel filterbank of a sound file as a NumPy matrix",
    .description = "Writes Kaldi's log-mel filterbank of a sound file (povey window, no dither, snip_edges, natural logarithm) "
                   "as a NumPy matrix with one row per frame. FILE may be - for standard input.",
    .examples = "  linnet features talk.flac -o talk.npy",
    .options = features_options,
    .values_size = sizeof(features_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_features,
};

/* ---- posteriors ------------------------------------------------------------------------------------------------------------ */

typedef struct posteriors_values {
    const char *output;
    int jobs, search;
    lin_model_values model;
    lin_input_values input;
} posteriors_values;

static const lin_option posteriors_options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1,
     .at = offsetof(posteriors_values, output),
     .help = "The NumPy file to write: float32 [steps, outputs], natural-log probabilities, the blank first"},
    LIN_JOBS_ROW(offsetof(posteriors_values, jobs)),
    {.name = "search", .type = LIN_OPTION_FLAG, .at = offsetof(posteriors_values, search),
     .help = "Write the second output of the network, if it has one; linnet transcribe uses it for words and for phonemes with a "
             "language model"},
    LIN_MODEL_ROWS(posteriors_values, model),
    LIN_CHANNEL_ROWS(posteriors_values, input),
    LIN_PART_ROWS(posteriors_values, input),
    {.type = LIN_OPTION_END},
};

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    return lin_npy_append(*(lin_npy_writer **)context, logp, (size_t)n, err);
}

static lin_status posteriors(const void *values, int channel, lin_part part, const char *path, int *incomplete, lin_error *err)
{
    const posteriors_values *v = values;
    lin_recognizer recognizer;
    lin_pcm_format raw;
    lin_npy_writer *out = NULL;
    lin_file_report report;
    lin_file_worker *session = NULL;
    lin_sound sound = {.path = path, .raw = lin_input_format(&v->input, &raw), .channel = channel, .part = part};
    lin_file_sink sink = {.context = &out, .rows = take_rows};
    LIN_TRY(lin_open_recognizer(&recognizer, &v->model, err));
    lin_status status = lin_file_worker_create(&recognizer, v->jobs, NULL, &session, err);
    if (status == LIN_OK && v->search) lin_file_worker_search(session);
    if (status == LIN_OK) status = lin_npy_create(v->output, recognizer.V, &out, err);
    if (status == LIN_OK) status = lin_file_worker_run(session, &sound, &sink, &report, err);
    if (status == LIN_OK && report.warning[0]) lin_complain_of(path, report.warning);
    *incomplete = status == LIN_OK && report.incomplete;
    status = end(out, status, err);
    lin_file_worker_destroy(session);
    lin_recognizer_close(&recognizer);
    return status;
}

static int run_posteriors(lin_parsed *parsed)
{
    return run(parsed, &((const posteriors_values *)parsed->values)->input, posteriors);
}

const lin_command lin_command_posteriors = {
    .name = "posteriors",
    .operands = "FILE",
    .summary = "write the phoneme log-probabilities of a sound file as a NumPy matrix",
    .description = "Writes the network's output for a sound file as a NumPy matrix with one row per step and one column per "
                   "phoneme (linnet info lists them), the CTC blank first. FILE may be - for standard input.",
    .examples = "  linnet posteriors talk.flac -o talk.npy",
    .options = posteriors_options,
    .values_size = sizeof(posteriors_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_posteriors,
};
