/* model_options.h - the option rows of commands that run a model. */
#ifndef LIN_APP_MODEL_OPTIONS_H
#define LIN_APP_MODEL_OPTIONS_H

#include "app/options.h"

typedef struct lin_model_values {
    const char *model, *device;
} lin_model_values;

#define LIN_MODEL_ROWS(owner, field)                                                                                              \
    {.name = "model", .letter = 'm', .type = LIN_OPTION_FILE, .at = offsetof(owner, field.model),                                 \
     .help = "The model; if not given, $LINNET_MODEL, else the one installed with the program"},                                  \
    {.name = "device", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.device), .text = "auto",                            \
     .value = "auto|cpu|cuda[:N]", .help = "Where the network runs"}

#endif
