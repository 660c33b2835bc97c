// main.c - the program: finds the command, reads its options, runs it.

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/guard.h"
#include "app/options.h"
#include "app/version.h"
#include "base/map.h"
#include "base/memory.h"
#include "frontend/isolate.h"
#include "serve/read_sound.h"

static void on_signal(int number)
{
    lin_interrupted = number;
}

static void tell(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(LIN_EXIT_FAILED);
}

// A mapped file that was truncated, or cannot be read. Only calls that are safe in a handler.
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *path = lin_file_map_find(info->si_addr);
    if (!path) { // not of a mapped file: the fault is raised again and ends the program as usual
        signal(number, SIG_DFL);
        return;
    }
    tell("linnet: ");
    tell(path);
    tell(": another program made the file shorter while it was in use, or it cannot be read; put it back and start again\n");
    _exit(LIN_EXIT_FAILED);
}

// The first signal requests an orderly end; its handler is removed, so the next one kills.
// No SA_RESTART: reads from pipes return.
static void watch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    // a terminal that is closed, unless the program was started with nohup
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); // a write beyond the limit of file sizes fails and is reported
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}

static const lin_command *find_command(const char *name)
{
    for (int i = 0; lin_commands[i]; i++) {
        if (strcmp(lin_commands[i]->name, name) == 0) return lin_commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *best = NULL;
    int best_cost = 3;
    for (int i = 0; lin_commands[i]; i++) {
        int cost = lin_edit_cost(name, lin_commands[i]->name);
        if (cost < best_cost && !lin_commands[i]->hidden) {
            best_cost = cost;
            best = lin_commands[i]->name;
        }
    }
    if (best) {
        lin_complain("unknown command '%.60s'; did you mean %s?", name, best);
    } else {
        lin_complain("unknown command '%.60s'", name);
    }
    fputs("Try 'linnet --help'.\n", stderr);
    return LIN_EXIT_USAGE;
}

static int finish_output(int status)
{
    lin_output out = {.file = stdout};
    lin_error err = {0};
    if (status != LIN_EXIT_OK && ferror(stdout)) return status; // the command has reported it
    if (lin_output_close(&out, &err) == LIN_OK) return status;
    lin_complain("%s", err.message);
    return status == LIN_EXIT_OK ? LIN_EXIT_FAILED : status;
}

// Defaults, command line, configuration file.
static lin_status read_options(const lin_command *command, void *values, lin_parsed *parsed, int argc, char **argv,
                               lin_error *err)
{
    lin_status status = lin_options_begin(command, values, parsed, err);
    if (status == LIN_OK) status = lin_options_command_line(parsed, argc, argv, err);
    if (status != LIN_OK || parsed->help) return status;
    if (command->conf_operand && parsed->operands.count > 0) {
        status = lin_options_conf_file(parsed, parsed->operands.items[0], err);
    }
    for (int i = 0; command->options[i].type != LIN_OPTION_END; i++) {
        const lin_option *o = &command->options[i];
        if (!parsed->old[i]) continue;
        const char *value = o->under && o->type != LIN_OPTION_FLAG ? "=..." : "";
        lin_complain("--%s is now --%s%s%s%s; the old name will go in the next version", o->under ? o->name : o->was,
                     o->under ? o->under : "", o->under ? " " : "", o->name, value);
    }
    if (status == LIN_OK) status = lin_options_finish(parsed, err);
    return status;
}

static int run_command(const lin_command *command, int argc, char **argv)
{
    lin_error err = {0};
    lin_parsed parsed = {0};
    void *values = lin_calloc(1, command->values_size + 1);
    if (!values) {
        lin_no_memory(&err, "options", command->values_size);
        return lin_give_up(&err);
    }
    int exit_status;
    lin_status status = read_options(command, values, &parsed, argc, argv, &err);
    if (status == LIN_NO_MEMORY || status == LIN_IO) {
        exit_status = lin_give_up(&err);
    } else if (status != LIN_OK) {
        exit_status = lin_misuse(&parsed, "%s", err.message);
    } else if (parsed.help == LIN_HELP_MAN) {
        lin_man_command(stdout, command, lin_doc_folder());
        exit_status = LIN_EXIT_OK;
    } else if (parsed.help == LIN_HELP_SETTINGS) {
        lin_help_settings(stdout, command, parsed.settings);
        exit_status = LIN_EXIT_OK;
    } else if (parsed.help) {
        lin_help_command(stdout, command);
        exit_status = LIN_EXIT_OK;
    } else if (lin_guard_command(&parsed, &err) != LIN_OK) {
        exit_status = err.status == LIN_INVALID ? lin_misuse(&parsed, "%s", err.message) : lin_give_up(&err);
    } else {
        exit_status = command->run(&parsed);
    }
    lin_guard_free();
    lin_options_free(&parsed);
    lin_free(values);
    return finish_output(exit_status);
}

int main(int argc, char **argv)
{
    watch_signals();
    lin_commands_begin();
    const char *name = argc > 1 ? argv[1] : NULL;
    if (argc == 3 && strcmp(name, LIN_ISOLATE_COMMAND) == 0) lin_read_sound(argv[2]);
    if (!name) {
        lin_help_program(stderr, lin_commands);
        return LIN_EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        puts("linnet " LIN_VERSION);
        return finish_output(LIN_EXIT_OK);
    }
    int is_help = strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (strcmp(name, "--help=man") == 0) {
        lin_man_program(stdout, lin_commands, lin_doc_folder());
        return finish_output(LIN_EXIT_OK);
    }
    if (is_help && argc == 2) {
        lin_help_program(stdout, lin_commands);
        return finish_output(LIN_EXIT_OK);
    }
    if (is_help) {
        const lin_command *command = find_command(argv[2]);
        if (!command) return unknown_command(argv[2]);
        lin_help_command(stdout, command);
        return finish_output(LIN_EXIT_OK);
    }
    if (name[0] == '-') {
        lin_complain("unknown option %.60s", name);
        fputs("Try 'linnet --help'.\n", stderr);
        return LIN_EXIT_USAGE;
    }
    const lin_command *command = find_command(name);
    return command ? run_command(command, argc - 2, argv + 2) : unknown_command(name);
}
