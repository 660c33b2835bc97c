// cmd_man.c - linnet man, linnet completion: what `make install` puts beside the program, generated from the option tables.

#include <string.h>

#include "app/commands.h"
#include "app/common.h"

typedef struct man_values {
    const char *output_dir, *doc_dir;
} man_values;

static const lin_option man_options[] = {
    {.name = "output-dir", .type = LIN_OPTION_FOLDER, .writes = 1, .at = offsetof(man_values, output_dir),
     .help = "Write the pages of the program and of all commands there: linnet.1, linnet-align.1, ..."},
    {.name = "doc-dir", .type = LIN_OPTION_FOLDER, .at = offsetof(man_values, doc_dir),
     .help = "Folder of the documentation to print in the pages; if not given, the present one"},
    {.type = LIN_OPTION_END},
};

// The page of one command; NULL: of the program.
static int write_page(const man_values *v, const lin_command *command, const char *docs)
{
    char path[4096];
    lin_error err = {0};
    lin_output out;
    const int n = snprintf(path, sizeof path, "%s/linnet%s%s.1", v->output_dir, command ? "-" : "", command ? command->name : "");
    if (n < 0 || (size_t)n >= sizeof path) lin_fail(&err, LIN_INVALID, "the name %.200s... is too long", v->output_dir);
    if (err.status != LIN_OK || lin_output_open(path, 0, &out, &err) != LIN_OK) return lin_give_up(&err);
    if (command) {
        lin_man_command(out.file, command, docs);
    } else {
        lin_man_program(out.file, lin_commands, docs);
    }
    return lin_output_close(&out, &err) == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

static int run_man(lin_parsed *parsed)
{
    const man_values *v = parsed->values;
    const char *docs = v->doc_dir ? v->doc_dir : lin_doc_folder();
    const lin_command *command = NULL;
    for (int i = 0; parsed->operands.count && lin_commands[i]; i++) {
        if (!strcmp(lin_commands[i]->name, parsed->operands.items[0])) command = lin_commands[i];
    }
    if (parsed->operands.count && !command) return lin_misuse(parsed, "there is no command '%.60s'", parsed->operands.items[0]);
    if (v->output_dir && command) return lin_misuse(parsed, "--output-dir is for the pages of all commands");
    if (!v->output_dir && command) lin_man_command(stdout, command, docs);
    if (!v->output_dir && !command) lin_man_program(stdout, lin_commands, docs);
    int status = v->output_dir ? write_page(v, NULL, docs) : LIN_EXIT_OK;
    for (int i = 0; v->output_dir && lin_commands[i] && status == LIN_EXIT_OK; i++) {
        if (!lin_commands[i]->hidden) status = write_page(v, lin_commands[i], docs);
    }
    return status;
}

const lin_command lin_command_man = {
    .name = "man",
    .operands = "[COMMAND]",
    .summary = "print the manual page of the program or of one command",
    .description = "Prints the manual page of the program, or of one command, as roff: 'linnet man align | man -l -'. make "
                   "install writes all of them.",
    .options = man_options,
    .values_size = sizeof(man_values),
    .max_operands = 1,
    .hidden = 1,
    .run = run_man,
};

static const lin_option no_options[] = {{.type = LIN_OPTION_END}};

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
