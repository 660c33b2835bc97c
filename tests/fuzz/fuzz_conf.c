// The configuration reader on any bytes: it accepts them or reports where they are wrong; accepted values read back equal.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/options.h"
#include "base/memory.h"

struct values {
    int flag, whole, choice;
    double number;
    const char *text, *file;
    lin_list files;
    lin_numbers numbers, under;
};

static const lin_option options[] = {
    {.type = LIN_OPTION_HEADING, .help = "All types"},
    {.name = "flag", .type = LIN_OPTION_FLAG, .at = offsetof(struct values, flag), .help = "a"},
    {.name = "whole", .type = LIN_OPTION_INT, .at = offsetof(struct values, whole), .text = "3", .min = -10, .max = 1e9,
     .help = "b"},
    {.name = "choice", .type = LIN_OPTION_CHOICE, .at = offsetof(struct values, choice), .choices = "one|two|three", .help = "c"},
    {.name = "number", .type = LIN_OPTION_DOUBLE, .at = offsetof(struct values, number), .min = -1e300, .max = 1e300,
     .help = "d"},
    {.name = "text", .type = LIN_OPTION_STRING, .at = offsetof(struct values, text), .help = "e"},
    {.name = "a-file", .type = LIN_OPTION_FILE, .at = offsetof(struct values, file), .help = "f"},
    {.name = "files", .type = LIN_OPTION_FILES, .at = offsetof(struct values, files), .help = "g"},
    {.name = "numbers", .type = LIN_OPTION_NUMBERS, .at = offsetof(struct values, numbers), .min = -1e9, .max = 1e9, .help = "h"},
    {.name = "set", .type = LIN_OPTION_SETTINGS, .help = "i"},
    {.name = "under", .under = "set", .type = LIN_OPTION_NUMBERS, .at = offsetof(struct values, under), .min = -9, .max = 9,
     .help = "j"},
    {.type = LIN_OPTION_END},
};

static const lin_command command = {
    .name = "fuzz", .operands = "", .summary = "", .options = options, .values_size = sizeof(struct values)};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct values values, again;
    lin_parsed parsed, second;
    lin_error err = {0};
    unsigned long live = lin_memory_live();
    if (lin_options_begin(&command, &values, &parsed, &err) != LIN_OK) abort();
    lin_status status = lin_options_conf(&parsed, (const char *)data, size, "fuzz.conf", &err);
    if (status != LIN_OK) {
        if (!strstr(err.message, "fuzz.conf:") || strchr(err.message, '\n')) abort();
    } else {
        char *text, *text2;
        if (lin_options_text(&parsed, LIN_FROM_DEFAULT, &text, &err) != LIN_OK) abort();
        if (lin_options_begin(&command, &again, &second, &err) != LIN_OK) abort();
        if (lin_options_conf(&second, text, strlen(text), "again.conf", &err) != LIN_OK) abort();
        if (lin_options_text(&second, LIN_FROM_DEFAULT, &text2, &err) != LIN_OK) abort();
        if (strcmp(text, text2) != 0) abort();
        lin_free(text);
        lin_free(text2);
        lin_options_free(&second);
    }
    lin_options_free(&parsed);
    if (lin_memory_live() != live) abort();
    return 0;
}
