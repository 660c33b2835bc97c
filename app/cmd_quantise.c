// cmd_quantise.c - linnet quantise: a model with weights of eight bits.

#include "app/commands.h"
#include "app/common.h"
#include "app/inputs.h"
#include "app/lexicon_options.h"
#include "linnet/find.h"
#include "model/model_file.h"

typedef struct quantise_values {
    const char *output, *language;
} quantise_values;

static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .required = 1,
     .at = offsetof(quantise_values, output), .help = "The model to write"},
    LIN_LANGUAGE_ROW(quantise_values, language),
    {.type = LIN_OPTION_END},
};

static int run(lin_parsed *parsed)
{
    const quantise_values *v = parsed->values;
    lin_error err = {0};
    lin_model *model = NULL;
    char path[4096];
    lin_status status = lin_find_model(parsed->operands.items[0], path, sizeof path, &err);
    if (status == LIN_OK) status = lin_guard_reads(path, &err);
    if (status == LIN_OK) status = lin_guard_writes(v->output, &err);
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
        "CPU its results are those of MODEL with --precision int8, to the bit; in another precision the rounded weights are "
        "used. MODEL is a file, or default or offline, which are installed with the program.",
    .examples = "  linnet quantise exp/train/best.safetensors -o small.safetensors\n"
                "  linnet transcribe --model small.safetensors talk.flac",
    .options = options,
    .values_size = sizeof(quantise_values),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
