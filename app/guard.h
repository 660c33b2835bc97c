/*
 * guard.h - no output is an input: the set of files that a command reads, and whether an output is one of them.
 *
 * Files are compared by device and inode, so that symlinks and hard links are the same file. Main compares the options and
 * operands of every command before the command runs; a command that finds more inputs (lists, data directories) adds them:
 *
 *   lin_guard_reads("talk.flac", &err);
 *   lin_guard_writes("talk.srt", &err);       // LIN_INVALID: it is one of them
 *
 * Devices, pipes and missing files cannot be lost and are not in the set. The set lives until lin_guard_free. One thread.
 */
#ifndef LIN_APP_GUARD_H
#define LIN_APP_GUARD_H

#include "app/options.h"

/* Compares every option marked with `writes` with every file that is named by other options, by operands, or by default (model,
 * lexicon, letter-to-sound rules, language model), and with each other. LIN_INVALID: a message with the file and what to do. */
lin_status lin_guard_command(const lin_parsed *parsed, lin_error *err);

/* A file, or the lists in a data directory. NULL and "-" are allowed. LIN_NO_MEMORY. */
lin_status lin_guard_reads(const char *path, lin_error *err);
lin_status lin_guard_writes(const char *path, lin_error *err);

/* 1 for the same file, existing or not: the same inode, or the same name in the same folder. */
int lin_guard_is_same(const char *a, const char *b);

void lin_guard_free(void);

#endif
