/* model_options.h - the option rows of commands that run a model. */
#ifndef LIN_APP_MODEL_OPTIONS_H
#define LIN_APP_MODEL_OPTIONS_H

#include "app/options.h"
#include "kernels/ops.h"
#include "linnet/recognizer.h"

typedef struct lin_model_values {
    const char *model, *device;
    int offline;   /* of LIN_OFFLINE_ROW */
    int precision; /* index of --precision's choices; see lin_model_precision */
} lin_model_values;

enum { LIN_MODEL_AUTO, LIN_MODEL_FP32, LIN_MODEL_BF16, LIN_MODEL_INT8 }; /* the choices of --precision */

static inline lin_precision lin_model_precision(const lin_model_values *values)
{
    static const lin_precision of[] = {LIN_PRECISION_AUTO, LIN_PRECISION_FP32, LIN_PRECISION_BF16, LIN_PRECISION_INT8};
    return of[values->precision];
}

#define LIN_MODEL_ROWS(owner, field)                                                                                             \
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(owner, field.model),                                \
     .help = "The model: a file, or default or offline, which are installed with the program; if not given, "                    \
             "$LINNET_MODEL, else default"},                                                                                     \
    {.name = "device", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.device), .text = "auto",                           \
     .value = "auto|cpu|cuda[:N]", .help = "Device for the network"},                                                            \
    {.name = "precision", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.precision), .text = "auto",                     \
     .choices = "auto|fp32|bf16|int8",                                                                                           \
     .help = "Precision of the network's matrix products. bf16: half the memory for weights and nearly twice the speed, on a "   \
             "GPU and on CPUs with AVX512-BF16 or BF16 of arm64. int8: eight bits, on every CPU, with the same products on all " \
             "of them (linnet quantise). auto: int8 on a CPU for a model that is stored in eight bits, else fp32, but "          \
             "tf32 for many live streams on a GPU"}

/* Of commands whose model is an operand, a network of tokens. */
#define LIN_NETWORK_ROWS(owner, field)                                                                                           \
    {.name = "device", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.device), .text = "auto",                           \
     .value = "auto|cpu|cuda[:N]", .help = "Device for the network"},                                                            \
    {.name = "precision", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.precision), .text = "auto",                     \
     .choices = "auto|fp32|bf16", .help = "Precision of the network's matrix products; auto: fp32"}

#define LIN_OFFLINE_ROW(owner, field)                                                                                            \
    {.name = "offline", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.offline),                                           \
     .help = "Use the installed model that reads whole utterances: more accurate, but results come at the end. The same as "     \
             "--model offline"}

/* Of commands that recognise live streams. */
#define LIN_SECOND_PASS_ROW(owner, field)                                                                                        \
    {.name = "second-pass", .type = LIN_OPTION_FILE, .at = offsetof(owner, field), .value = "MODEL",                             \
     .help = "When an utterance has ended, recognise it once more with this model: its final result has fewer errors and comes " \
             "a little later. offline: the installed one that reads whole utterances"}

/* Of commands that hear whole utterances, in the values of decoding. */
#define LIN_COMBINE_ROW(owner, field)                                                                                            \
    {.name = "combine", .type = LIN_OPTION_FILE, .at = offsetof(owner, field.combine), .value = "MODEL",                         \
     .help = "The best hypotheses of each utterance that is heard whole (by a model that cannot stream, --second-pass) are "     \
             "judged by the sound of this model too, such as default: a twentieth fewer errors of words"}

/* What --model and --offline name. LIN_INVALID if both are given. */
lin_status lin_model_named(const lin_model_values *values, const char **name, lin_error *err);

/* lin_recognizer_open with this program's warnings and its interrupt flag. */
lin_status lin_open_recognizer(lin_recognizer *recognizer, const char *model, const char *device, lin_precision precision,
                               lin_error *err);

#endif
