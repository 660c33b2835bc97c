// main.c - the program: finds a command and runs it, or, as a child of another linnet, decodes a file for it
// (frontend/processes.h).

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/options.h"
#include "base/child.h"
#include "base/file.h"
#include "frontend/audio.h"
#include "frontend/processes.h"
#include "frontend/source.h"
#include "linnet/linnet.h"

static void on_signal(int number) { lin_interrupted = number; }

static void tell(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(LIN_EXIT_FAILED);
}

// A mapped file that was truncated, or cannot be read. Only calls that are safe in a handler. Several threads may fault at once:
// one of them prints, the others wait for the end.
static void on_fault(int number, siginfo_t *info, void *context)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    (void)context;
    const char *path = lin_file_map_find(info->si_addr);
    if (!path) { // not of a mapped file: the fault is raised again and ends the program as usual
        signal(number, SIG_DFL);
        return;
    }
    while (atomic_flag_test_and_set(&printed)) pause();
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

/* ---- a process that reads a file for another one --------------------------------------------------------------------------- */

// Reads as many frames at once as frontend/source.c: after damage in FLAC, libsndfile continues only in short reads.
enum { SAMPLES = 1 << 14, FRAMES = LIN_SOURCE_BLOCK };

// No exit handlers: a sanitizer's leak check needs system calls that the sandbox refuses.
static _Noreturn void end(int status) { _exit(status); }

static void send(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        const ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) end(1); // the reader is gone
        at += done;
        n -= (size_t)done;
    }
}

static void report(const char *fmt, ...) LIN_PRINTF(1, 2);

static void report(const char *fmt, ...)
{
    char line[LIN_HELPER_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    strcat(line, "\n");
    send(STDERR_FILENO, line, strlen(line));
}

static void report_warning(const lin_audio_format *info)
{
    if (info->warning[0]) report("%s %s", info->incomplete ? "missing" : "warning", info->warning);
}

// SIGXCPU needs a handler: the first process of a PID namespace gets only signals that it handles.
static void take_too_long(int number)
{
    static const char line[] = LIN_ISOLATE_TOO_LONG "\n";
    (void)number;
    send(STDERR_FILENO, line, sizeof line - 1);
    end(1);
}

// Reads standard input, a regular file, and ends the program. name: for messages.
static _Noreturn void read_sound(const char *name)
{
    static float samples[SAMPLES];
    static unsigned char bytes[4 * SAMPLES];
    lin_audio *audio;
    lin_error err = {0};
    int n = 1;
    signal(SIGXCPU, take_too_long);
    lin_child_share_group();
    lin_audio_bound_gaps(LIN_AUDIO_STRANGERS_GAP_S);
    lin_status status = lin_audio_open_fd(STDIN_FILENO, 0, name, NULL, &audio, &err);
    if (status == LIN_OK) {
        const lin_audio_format *info = lin_audio_info(audio);
        report("frames %lld", (long long)info->frames);
        if (info->notice[0]) report("notice %s", info->notice);
        report_warning(info);
        const int most = SAMPLES / info->channels < FRAMES ? SAMPLES / info->channels : FRAMES;
        lin_helper_put_header(bytes, info->rate_hz, info->channels);
        send(STDOUT_FILENO, bytes, LIN_HELPER_HEADER);
        while (status == LIN_OK && n > 0) {
            status = lin_audio_read(audio, samples, most, &n, &err);
            lin_helper_put(bytes, samples, n * info->channels);
            send(STDOUT_FILENO, bytes, 4 * (size_t)n * (size_t)info->channels);
        }
        if (status == LIN_OK) report_warning(info);
    }
    if (status != LIN_OK) report("fail %d %s", (int)status, err.message);
    if (status == LIN_OK) lin_audio_close(audio);
    end(0);
}

/* ---- commands -------------------------------------------------------------------------------------------------------------- */

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
    int best_cost = strlen(name) < 3 ? 2 : 3; // two letters differ from any two others by two
    for (int i = 0; lin_commands[i]; i++) {
        int cost = lin_edit_cost(name, lin_commands[i]->name);
        if (cost < best_cost && !lin_commands[i]->hidden) {
            best_cost = cost;
            best = lin_commands[i]->name;
        }
    }
    if (best) lin_complain("unknown command '%.60s'; did you mean %s?", name, best);
    else if (lin_is_folder(name)) lin_complain("%.200s is a folder; name the files in it", name);
    else if (strpbrk(name, "./")) lin_complain("there is no file %.200s, and no command of this name", name);
    else lin_complain("unknown command '%.60s'", name);
    fputs("Try 'linnet --help', which lists the commands.\n", stderr);
    return LIN_EXIT_USAGE;
}

static int finish_output(int status)
{
    lin_output out = {.file = stdout};
    lin_error err = {0};
    if (status != LIN_EXIT_OK && ferror(stdout)) return status; // the command has reported it
    if (lin_output_end(&out, LIN_OK, &err) == LIN_OK) return status;
    lin_complain("%s", err.message);
    return status == LIN_EXIT_OK ? LIN_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    watch_signals();
    lin_audio_stop_on(&lin_interrupted);
    const char *name = argc > 1 ? argv[1] : NULL;
    if (argc == 3 && strcmp(name, LIN_ISOLATE_COMMAND) == 0) read_sound(argv[2]);
    if (!name) {
        lin_help_program(stderr, lin_commands);
        return LIN_EXIT_USAGE;
    }
    const int is_version = strcmp(name, "--version") == 0 || strcmp(name, "version") == 0;
    const int is_help = strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    const lin_command *command = find_command(is_help && argc > 2 ? argv[2] : name);
    if (is_help && argc > 2 && !command) return unknown_command(argv[2]);
    if (is_version) puts("linnet " LINNET_VERSION);
    else if (is_help && command) lin_help_command(stdout, command, 0);
    else if (is_help) lin_help_program(stdout, lin_commands);
    if (is_version || is_help) return finish_output(LIN_EXIT_OK);
    if (name[0] == '-' && name[1] && strcmp(name, "--") != 0) {
        lin_complain("unknown option %.60s; a command or a file comes first: linnet FILE %.60s", name, name);
        fputs("Try 'linnet --help'.\n", stderr);
        return LIN_EXIT_USAGE;
    }
    if (command) return finish_output(lin_run_command(command, argc - 2, argv + 2));
    const int is_file = name[0] == '-' || strstr(name, "://") || (access(name, F_OK) == 0 && !lin_is_folder(name));
    if (!is_file) return unknown_command(name);
    // linnet FILE..., or - for standard input, or -- before names, is linnet transcribe --words FILE...
    static char words[] = "--words";
    argv[0] = words;
    return finish_output(lin_run_command(&lin_command_transcribe, argc, argv));
}
