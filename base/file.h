/*
 * file.h - files that are whole or not there: how every output of the project is written.
 *
 *   lin_file_writer *w;
 *   lin_file_create("model.safetensors", &w, &err);    writes to model.safetensors.linnet-0.tmp, locked against a second writer
 *   lin_file_write(w, bytes, n, &err);                 buffered
 *   lin_file_commit(w, &err);                          flush, sync, rename; or lin_file_abort(w), or lin_file_keep(w, ...)
 *
 * The old file is untouched until the rename, and stays where anything fails or the process is killed. The temporary file is made
 * with O_EXCL: a link or a file of somebody else under its name is neither followed nor written, another name is taken. What a
 * killed process of the same user left is recognised by name, owner and missing lock, and removed.
 *
 * A symlink stays: the file that it points to is replaced. The new file has the old one's permissions, and its owner where the
 * process may give it away. What is no regular file (a device, a FIFO, /dev/stdout) is written in place where the format allows
 * it (LIN_FILE_STREAM), and never replaced.
 *
 * Threads: one at a time per writer; SIGXFSZ must be ignored, else a file size limit kills the process.
 */
#ifndef LIN_BASE_FILE_H
#define LIN_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct lin_file_writer lin_file_writer;

enum {
    LIN_FILE_STREAM = 1,    /* written from front to back: what is no regular file may take it, in place */
    LIN_FILE_OF_MANY = 2,   /* small and not synced: empty after a power cut, perhaps; of two writers the later one's stays */
    LIN_FILE_KEEP_STALE = 4 /* what a killed process left of this output is not removed: it cannot be made again */
};

/* LIN_IO where the system refuses, where path is not a regular file and flags do not allow it, or where another process is writing
 * it. The message names the path and what to do. */
lin_status lin_file_open(const char *path, int flags, lin_file_writer **writer, lin_error *err);
/* The same with no flags: regular files only. */
lin_status lin_file_create(const char *path, lin_file_writer **writer, lin_error *err);

/* Appends. After a failure every later call fails too, and the message stays the first one's. */
lin_status lin_file_write(lin_file_writer *writer, const void *bytes, size_t n_bytes, lin_error *err);
/* Overwrites what was written before, offset + n_bytes at most the bytes written so far. LIN_IO in a pipe. */
lin_status lin_file_patch(lin_file_writer *writer, uint64_t offset, const void *bytes, size_t n_bytes, lin_error *err);

/* For libraries that write by themselves: the open file, owned by the writer. lin_file_write must not be used with it. */
int lin_file_descriptor(const lin_file_writer *writer);
/* Whether lin_file_patch can work: 0 for a pipe. */
int lin_file_can_seek(const lin_file_writer *writer);
/* Whether the path is no regular file, so that what is written is there at once and cannot be taken back. */
int lin_file_in_place(const lin_file_writer *writer);

/* Each of these three frees the writer whatever happens, and closes its descriptor. */
/* On failure the temporary file is removed and the old file untouched. */
lin_status lin_file_commit(lin_file_writer *writer, lin_error *err);
/* Removes the temporary file. NULL is allowed. */
void lin_file_abort(lin_file_writer *writer);
/* What there is of it stays beside the path, as <path>.part or, where that is there, <path>.part-2 and so on: its name goes to
 * `name`, "" for what is written in place. The old file is untouched. On failure there is no such file. */
lin_status lin_file_keep(lin_file_writer *writer, char *name, size_t capacity, lin_error *err);

/* All of a small file at once, atomically: configurations, curves. */
lin_status lin_file_write_all(const char *path, const void *bytes, size_t n_bytes, lin_error *err);

#endif
