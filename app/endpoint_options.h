/* endpoint_options.h - the option rows of commands that divide sound into utterances. */
#ifndef LIN_APP_ENDPOINT_OPTIONS_H
#define LIN_APP_ENDPOINT_OPTIONS_H

#include "app/options.h"
#include "decoder/endpoint.h"
#include "linnet/recognizer.h"

typedef struct lin_endpoint_values {
    lin_endpoint_options rules;
    int reset; /* of --reset's choices, in the order below */
} lin_endpoint_values;

enum { LIN_RESET_AUTO, LIN_RESET_ENDPOINT, LIN_RESET_NEVER };

/* Whether endpoints of a live stream reset the network. */
static inline int lin_endpoint_resets(const lin_endpoint_values *values, const lin_recognizer *recognizer)
{
    return values->reset == LIN_RESET_AUTO ? !recognizer->forgets : values->reset == LIN_RESET_ENDPOINT;
}

#define LIN_ENDPOINT_ROWS(owner, field, reset_help)                                                                              \
    {.type = LIN_OPTION_HEADING, .help = "Endpoints"},                                                                           \
    {.name = "silence-after", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.after_s), .text = "0.8",              \
     .max = 86400, .value = "S", .help = "End an utterance after this much silence after speech; 0: never"},                     \
    {.name = "silence-before", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.before_s),          \
     .text = "5", .max = 86400, .value = "S", .help = "End an utterance without speech after this much silence; 0: never"},      \
    {.name = "longest", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.longest_s),                \
     .text = "30", .max = 86400, .value = "S", .help = "End an utterance of this length in any case; 0: never"},                 \
    {.name = "blank", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.blank), .text = "0.8",       \
     .max = 1, .value = "P", .help = "A step with at least this probability of blank is silence"},                               \
    {.name = "loud", .under = "tune", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.rules.loud_db), .text = "20",       \
     .max = 200, .value = "DB",                                                                                                  \
     .help = "Silence that is this much louder than the quietest recent sound counts half; 0: loudness is ignored"},             \
    {.name = "reset", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.reset), .text = "auto",                             \
     .choices = "auto|endpoint|never", .help = reset_help}

#endif
