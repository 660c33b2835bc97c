// cmd_files.c - files that the recogniser maps: linnet lexicon packs a lexicon, linnet quantise stores a model's weights in eight
// bits.

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "linnet/decoding.h"
#include "linnet/find.h"
#include "model/model.h"

/* ---- linnet lexicon -------------------------------------------------------------------------------------------------------- */

typedef struct lexicon_values {
    const char *model, *lm, *output;
    int no_lm, all_words, quiet;
    const char *language;
} lexicon_values;

static const lin_option lexicon_options[] = {
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(lexicon_values, model),
     .choices = "default|offline|small",
     .help = "The model (a file, default, offline or small) whose phones the lexicon is packed for; if not given, "
             "$LINNET_MODEL, else default"},
    LIN_LANGUAGE_ROW(lexicon_values, language),
    {.name = "lm", .type = LIN_OPTION_FILE, .at = offsetof(lexicon_values, lm),
     .help = "The language model that it is packed for; if not given, $LINNET_LM, else the installed one"},
    {.name = "no-lm", .type = LIN_OPTION_FLAG, .at = offsetof(lexicon_values, no_lm), .help = "Pack it for use with --no-lm"},
    {.name = "all-words", .type = LIN_OPTION_FLAG, .at = offsetof(lexicon_values, all_words),
     .help = "Pack it for use with --tune all-words"},
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(lexicon_values, output),
     .help = "The file to write; if not given, DICT" LIN_PACKED_LEXICON ", where it is looked for"},
    LIN_QUIET_ROW(offsetof(lexicon_values, quiet), "Print no summary"),
    {.type = LIN_OPTION_END},
};

static lin_status pack(const lexicon_values *v, const char *lexicon, const lin_phones *phones, lin_error *err)
{
    lin_decoding_values values = lin_decoding_default();
    lin_decoding decoding;
    const lin_warnings warnings = lin_complaints(v->quiet);
    values.words = 1;
    values.lexicon = lexicon;
    values.lm = v->lm;
    values.no_lm = v->no_lm;
    values.all_words = v->all_words;
    LIN_TRY(lin_decoding_open(&decoding, &values, phones, 0.01, 0, &warnings, err));
    lin_status status = lin_decoding_pack_lexicon(&decoding, v->output, err);
    if (status == LIN_OK && !v->quiet) {
        lin_complain("%s%s: %d words", v->output ? v->output : lexicon, v->output ? "" : LIN_PACKED_LEXICON,
                     lin_decoding_vocabulary(&decoding));
    }
    lin_decoding_close(&decoding);
    return status;
}

static int run_lexicon(lin_parsed *parsed)
{
    const lexicon_values *v = parsed->values;
    lin_error err = {0};
    lin_model *model = NULL;
    lin_phones *phones = NULL;
    char path[4096], name[4096];
    if (v->lm && v->no_lm) return lin_misuse(parsed, "--lm and --no-lm exclude each other");
    lin_status status = lin_find_model(v->model, name, sizeof name, &err);
    if (status == LIN_OK) status = lin_model_load(name, &model, &err);
    if (status == LIN_OK) status = lin_model_check_sound(model, name, &err);
    if (status == LIN_OK) status = lin_phones_create(model->phones, &phones, &err);
    if (status == LIN_OK)
        status = lin_find_lexicon(phones, parsed->operands.count ? parsed->operands.items[0] : NULL, path, sizeof path, &err);
    if (status == LIN_OK && !*path) status = lin_fail(&err, LIN_IO, "no lexicon is installed; name a DICT");
    if (status == LIN_OK) status = lin_guard_found(path, v->output, &err);
    if (status == LIN_OK) status = pack(v, path, phones, &err);
    lin_phones_destroy(phones);
    lin_model_destroy(model);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_lexicon = {
    .name = "lexicon",
    .operands = "[DICT]",
    .summary = "pack a lexicon, so that the recognition of words starts sooner",
    .description =
        "Reading a lexicon and ordering its words by their phones takes a tenth of a second for 50,000 words. linnet lexicon "
        "does it once and writes the result beside the lexicon, as DICT" LIN_PACKED_LEXICON
        ". Commands that recognise words use this file if lexicon, phones, language model and all-words have not changed since; "
        "otherwise they read DICT, which remains the file to edit. Without DICT the installed lexicon is packed.",
    .examples = "  linnet lexicon my.dict\n"
                "  linnet lexicon --lm my.lm my.dict",
    .options = lexicon_options,
    .values_size = sizeof(lexicon_values),
    .max_operands = 1,
    .run = run_lexicon,
};

/* ---- linnet quantise ------------------------------------------------------------------------------------------------------- */

typedef struct quantise_values {
    const char *output, *language;
} quantise_values;

static const lin_option quantise_options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1,
     .at = offsetof(quantise_values, output), .help = "The model to write"},
    LIN_LANGUAGE_ROW(quantise_values, language),
    {.type = LIN_OPTION_END},
};

static int run_quantise(lin_parsed *parsed)
{
    const quantise_values *v = parsed->values;
    lin_error err = {0};
    lin_model *model = NULL;
    char path[4096];
    lin_status status = lin_find_model(parsed->operands.items[0], path, sizeof path, &err);
    if (status == LIN_OK) status = lin_guard_found(path, v->output, &err);
    if (status == LIN_OK) status = lin_model_load(path, &model, &err);
    if (status == LIN_OK) status = lin_model_save(model, v->output, LIN_I8, &err);
    lin_model_destroy(model);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

const lin_command lin_command_quantise = {
    .name = "quantise",
    .operands = "MODEL",
    .summary = "store a model's weights in eight bits",
    .description =
        "Writes MODEL with the weights of its blocks as whole numbers of eight bits and a scale for each output of a layer; the "
        "first and the last layer, norms and biases stay as they are. The file is half as large as one in half precision. On a "
        "CPU it gives the results of MODEL with --precision int8, to the bit; other precisions use the rounded weights. "
        "MODEL is a file, or default, offline or small, which are installed with the program.",
    .examples = "  linnet quantise exp/train/best.safetensors -o small.safetensors\n"
                "  linnet transcribe --model small.safetensors talk.flac",
    .options = quantise_options,
    .values_size = sizeof(quantise_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_quantise,
};
