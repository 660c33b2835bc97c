/*
 * common.h - the commands of the program, one file cmd_<name>.c each, how one is run, and what they share: messages, the
 * interrupt flag, output files, the progress line.
 *
 * Only app/ prints: results go to standard output or a file, everything else to standard error.
 */
#ifndef LIN_APP_COMMON_H
#define LIN_APP_COMMON_H

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "app/options.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "base/system.h"
#include "linnet/find.h"

/* ---- the commands ---------------------------------------------------------------------------------------------------------- */

extern const lin_command lin_command_transcribe, lin_command_train, lin_command_score, lin_command_features,
    lin_command_posteriors, lin_command_prepare, lin_command_phonemize, lin_command_g2p, lin_command_info, lin_command_bench,
    lin_command_man, lin_command_completion, lin_command_devices, lin_command_ngram, lin_command_listen, lin_command_decode,
    lin_command_align, lin_command_plot, lin_command_average, lin_command_readable, lin_command_serve, lin_command_lexicon,
    lin_command_lm, lin_command_adapt, lin_command_quantise, lin_command_validate;
/* In paper/. */
extern const lin_command lin_command_generate, lin_command_paper;

/* All commands in the order of --help; ends with NULL. */
extern const lin_command *const lin_commands[];

/* Parses the command's words, checks them and runs it: for main, and for a command that runs others (train/cmd_adapt.c). Reports
 * errors and returns the exit status. words[0] is the first word after the command's name. One thread. */
int lin_run_command(const lin_command *command, int n, char **words);

/* ---- messages -------------------------------------------------------------------------------------------------------------- */

/* Exit statuses. */
enum { LIN_EXIT_OK = 0, LIN_EXIT_FAILED = 1, LIN_EXIT_USAGE = 2, LIN_EXIT_INTERRUPTED = 130 };

/* Set to the signal's number by the first SIGINT or SIGTERM; the second kills. Long loops check it. */
extern volatile sig_atomic_t lin_interrupted;

/* "linnet: <message>\n" on standard error, after erasing the progress line. Thread-safe. */
void lin_complain(const char *fmt, ...) LIN_PRINTF(1, 2);
/* From now on each message is a line of JSON: {"time", "message"}. */
void lin_complain_in_json(void);
/* Such a line with other members: begin starts the object with its time, end closes it, writes it and frees the buffer. */
void lin_complaint_begin(lin_buffer *out);
void lin_complaint_end(lin_buffer *out);

/* Passes the library's warnings to lin_complain; quiet: without advice. */
lin_warnings lin_complaints(int quiet);

/* Prints the error with the name of the file before it, unless the message begins with it. */
void lin_complain_of(const char *path, const char *message);

/* "3 marks such as [laughs] are not words and were skipped", if there are any. */
void lin_complain_of_marks(long n, const char *first);

/* Complains and returns LIN_EXIT_FAILED, LIN_EXIT_INTERRUPTED for LIN_STOPPED: `return lin_give_up(&err);` */
int lin_give_up(const lin_error *err);

/* Complains, points at --help, and returns LIN_EXIT_USAGE: for errors in options that the table cannot detect. */
int lin_misuse(const lin_parsed *parsed, const char *fmt, ...) LIN_PRINTF(2, 3);

/* Whether a word is in a list in which each is followed by a blank. */
int lin_list_has(const char *list, const char *word);

/* lin_misuse for a given option that does not apply to this verb. names: the options that apply, each followed by a blank;
 * --quiet always does. */
int lin_verb_options(const lin_parsed *parsed, const char *verb, const char *names);

/* Makes the folder that the first n bytes of path name, and those above it that are missing. LIN_IO; LIN_INVALID where it is too
 * long. */
lin_status lin_make_folders(const char *path, size_t n, lin_error *err);
/* Makes the folders that lead to a file. */
lin_status lin_make_folders_of(const char *file, lin_error *err);

/* ---- output ---------------------------------------------------------------------------------------------------------------- */

/* A file that appears when it is complete (base/file.h), or standard output. */
typedef struct lin_output {
    FILE *file;
    const char *path; /* NULL: standard output */
    lin_file_writer *writer;
} lin_output;

/* path NULL or "-": standard output. flags: of lin_file_open, besides LIN_FILE_STREAM. */
lin_status lin_output_open(const char *path, int flags, lin_output *output, lin_error *err);
/* Ends it, and returns status, or why the output is lost. By status:
 *   LIN_OK       flushes, and reports errors of earlier writes: a full disk is an error here, and the old file stays
 *   LIN_STOPPED  the old file stays, and the output so far is kept beside it under a name that is reported
 *   any other    the old file stays, nothing is left beside it
 */
lin_status lin_output_end(lin_output *output, lin_status status, lin_error *err);
/* All of a buffer, opened and closed. */
lin_status lin_output_write(const char *path, int flags, const lin_buffer *buffer, lin_error *err);

/* ---- progress -------------------------------------------------------------------------------------------------------------- */

/* One line on standard error, redrawn at most ten times a second, only where that is a terminal; cut to its width, which is
 * read each time, so that it never folds. */

typedef struct lin_progress {
    int shown;         /* standard error is a terminal, and --quiet was not given */
    double last, begun;
} lin_progress;

void lin_progress_begin(lin_progress *progress, int quiet);
/* Redraws if it is time, with "42 %, 1:23 left, " before the text. fraction: of the work done since lin_progress_begin, 0..1;
 * below 0 if unknown: no such prefix. Thread-safe. */
void lin_progress_of(lin_progress *progress, double fraction, const char *fmt, ...) LIN_PRINTF(3, 4);
/* Removes the line. */
void lin_progress_end(lin_progress *progress);

#endif
