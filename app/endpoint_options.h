/* endpoint_options.h - the option rows of commands that divide sound into utterances. */
#ifndef LIN_APP_ENDPOINT_OPTIONS_H
#define LIN_APP_ENDPOINT_OPTIONS_H

#include "app/options.h"
#include "decoder/endpoint.h"

typedef struct lin_endpoint_values {
    lin_endpoint_options rules;
    int reset; /* of --reset's choices */
} lin_endpoint_values;

enum { LIN_RESET_ENDPOINT = 0, LIN_RESET_NEVER = 1, LIN_RESET_AUTO = 2 };

/* reset_default: one of reset_choices, which are in the order above. */
#define LIN_ENDPOINT_ROWS(owner, field, reset_default, reset_choices, reset_help)                                                 \
    {.type = LIN_OPTION_HEADING, .help = "Endpoints"},                                                                            \
    {.name = "silence-after", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.after_s), .text = "0.8",               \
     .max = 86400, .value = "S", .help = "End an utterance after this much silence after speech; 0: never"},                      \
    {.name = "silence-before", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.before_s), .text = "5",               \
     .max = 86400, .value = "S", .help = "End an utterance without speech after this much silence; 0: never"},                    \
    {.name = "longest", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.longest_s), .text = "30", .max = 86400,      \
     .value = "S", .help = "End an utterance of this length in any case; 0: never"},                                              \
    {.name = "blank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.blank), .text = "0.8", .max = 1,               \
     .value = "P", .help = "A step with at least this probability of blank is silence"},                                          \
    {.name = "loud", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.loud_db), .text = "20", .max = 200,             \
     .value = "DB", .help = "Silence that is this much louder than the quietest recent sound counts half; 0: loudness is "        \
                            "ignored"},                                                                                           \
    {.name = "reset", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.reset), .text = reset_default,                       \
     .choices = reset_choices, .help = reset_help}

#endif
