/*
 * guard.h - no output is an input: what a command reads, and whether what it will write is one of those files.
 *
 * Files are compared by device and inode, so that symlinks and hard links are the same file. Main holds the options and operands of
 * every command against each other before the command runs; a command that finds more inputs (lists, data directories) adds them:
 *
 *   lin_guard_reads("talk.flac", &err);
 *   lin_guard_writes("talk.srt", &err);       // LIN_INVALID: it is one of them
 *
 * Devices, pipes and what is not there are no inputs that could be lost. The set lives until lin_guard_free. One thread.
 */
#ifndef LIN_APP_GUARD_H
#define LIN_APP_GUARD_H

#include "app/options.h"

/* Every option marked with `writes` against every file that is named by other options, by operands, or by default (model, lexicon,
 * letter-to-sound rules, language model), and against each other. LIN_INVALID: a message with the file and what to do; LIN_NO_MEMORY. */
lin_status lin_guard_command(const lin_parsed *parsed, lin_error *err);

/* A file, or the lists in a data directory. NULL and "-" are allowed. LIN_NO_MEMORY. */
lin_status lin_guard_reads(const char *path, lin_error *err);
lin_status lin_guard_writes(const char *path, lin_error *err);

void lin_guard_free(void);

#endif
