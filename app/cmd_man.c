// cmd_man.c - linnet man, linnet completion: what `make install` puts beside the program, generated from the option tables.

#include "app/commands.h"
#include "app/common.h"

static const lin_option no_options[] = {{.type = LIN_OPTION_END}};

static int run_man(lin_parsed *parsed)
{
    if (parsed->operands.count == 0) {
        lin_man_program(stdout, lin_commands);
        return LIN_EXIT_OK;
    }
    for (int i = 0; lin_commands[i]; i++) {
        const char *a = lin_commands[i]->name, *b = parsed->operands.items[0];
        while (*a && *a == *b) a++, b++;
        if (*a == *b) {
            lin_man_command(stdout, lin_commands[i]);
            return LIN_EXIT_OK;
        }
    }
    return lin_misuse(parsed, "there is no command '%.60s'", parsed->operands.items[0]);
}

const lin_command lin_command_man = {
    .name = "man",
    .operands = "[COMMAND]",
    .summary = "print the manual page of the program or of one command",
    .description = "Prints the manual page of the program, or of one command, as roff: 'linnet man | man -l -'.",
    .options = no_options,
    .max_operands = 1,
    .hidden = 1,
    .run = run_man,
};

static int run_completion(lin_parsed *parsed)
{
    lin_error err = {0};
    if (lin_completion(stdout, lin_commands, parsed->operands.items[0], &err) != LIN_OK)
        return lin_misuse(parsed, "%s", err.message);
    return LIN_EXIT_OK;
}

const lin_command lin_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that lets a shell complete commands and options",
    .examples = "  linnet completion bash > ~/.local/share/bash-completion/completions/linnet",
    .options = no_options,
    .min_operands = 1,
    .max_operands = 1,
    .run = run_completion,
};
