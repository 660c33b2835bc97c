// commands.c - the table of commands, and how one is run; see common.h.

#include "app/common.h"
#include "app/inputs.h"
#include "base/memory.h"
#include "linnet/find.h"

const lin_command *const lin_commands[] = {
    &lin_command_transcribe,
    &lin_command_listen,
    &lin_command_serve,
    &lin_command_align,
    &lin_command_decode,
    &lin_command_train,
    &lin_command_adapt,
    &lin_command_average,
    &lin_command_quantise,
    &lin_command_score,
    &lin_command_features,
    &lin_command_posteriors,
    &lin_command_validate,
    &lin_command_prepare,
    &lin_command_phonemize,
    &lin_command_g2p,
    &lin_command_lexicon,
    &lin_command_ngram,
    &lin_command_lm,
    &lin_command_readable,
    &lin_command_info,
    &lin_command_bench,
#ifndef LIN_NO_PAPER
    &lin_command_generate,
    &lin_command_paper,
#endif
    &lin_command_plot,
    &lin_command_devices,
    &lin_command_completion,
    &lin_command_man,
    NULL,
};

// Defaults, command line, configuration file.
static lin_status read_options(const lin_command *command, void *values, lin_parsed *parsed, int n, char **words,
                               lin_error *err)
{
    LIN_TRY(lin_options_begin(command, values, parsed, err));
    LIN_TRY(lin_options_command_line(parsed, n, words, err));
    if (parsed->help) return LIN_OK;
    if (command->conf_operand && parsed->operands.count > 0)
        LIN_TRY(lin_options_conf_file(parsed, parsed->operands.items[0], err));
    return lin_options_finish(parsed, err);
}

// Selects --language for all later searches for files, also in commands that this one runs.
static lin_status choose_language(const lin_parsed *parsed, lin_error *err)
{
    const int row = parsed->command->options ? lin_options_find(parsed->command, "language") : -1;
    if (row < 0) return LIN_OK;
    const char *given = *(const char *const *)(const void *)((const char *)parsed->values + parsed->command->options[row].at);
    return given ? lin_find_language(given, err) : LIN_OK;
}

int lin_run_command(const lin_command *command, int n, char **words)
{
    lin_error err = {0};
    lin_parsed parsed = {0};
    void *values = lin_calloc(1, command->values_size + 1);
    if (!values) {
        lin_no_memory(&err, "options", command->values_size);
        return lin_give_up(&err);
    }
    int exit_status = LIN_EXIT_OK;
    lin_status status = read_options(command, values, &parsed, n, words, &err);
    if (status == LIN_NO_MEMORY || status == LIN_IO) exit_status = lin_give_up(&err);
    else if (status != LIN_OK) exit_status = lin_misuse(&parsed, "%s", err.message);
    else if (parsed.help == LIN_HELP_SETTINGS) lin_help_settings(stdout, command, parsed.settings);
    else if (parsed.help) lin_help_command(stdout, command, parsed.help == LIN_HELP_ALL);
    else if (choose_language(&parsed, &err) != LIN_OK) exit_status = lin_misuse(&parsed, "--language: %s", err.message);
    else if (lin_guard_command(&parsed, &err) != LIN_OK)
        exit_status = err.status == LIN_INVALID ? lin_misuse(&parsed, "%s", err.message) : lin_give_up(&err);
    else exit_status = command->run(&parsed);
    lin_guard_free();
    lin_options_free(&parsed);
    lin_free(values);
    return exit_status;
}
