/*
 * file.h - writes files completely or not at all, opens files for reading, and maps them; every output of the project is written
 * with it.
 *
 *   lin_file_writer *w;
 *   lin_file_open("model.safetensors", 0, &w, &err);   writes to model.safetensors.linnet-0.tmp, locked against a second writer
 *   lin_file_write(w, bytes, n, &err);                 buffered
 *   lin_file_commit(w, &err);                          flush, sync, rename; or lin_file_abort(w), or lin_file_keep(w, ...)
 *
 * The old file is unchanged until the rename, and remains if anything fails or the process is killed. The temporary file is
 * created with O_EXCL: a link or another user's file of that name is not followed or written; another name is used. A temporary
 * file of a killed process of the same user is recognised by name, owner and missing lock, and removed.
 *
 * A symlink is kept: the file that it points to is replaced. The new file gets the old one's permissions, and its owner if the
 * process may change it. Anything but a regular file (a device, a FIFO, /dev/stdout) is written in place if the format allows
 * it (LIN_FILE_STREAM), and never replaced.
 *
 * If another program truncates a mapped file, or a disk fails, reading the file raises SIGBUS. Every mapping is registered with
 * its path, so that the program's signal handler can name the file: lin_file_map_find(info->si_addr).
 *
 * Threads: one at a time per writer or map. lin_file_map_find is async-signal-safe. SIGXFSZ must be ignored, otherwise a file
 * size limit kills the process.
 */
#ifndef LIN_BASE_FILE_H
#define LIN_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

typedef struct lin_file_writer lin_file_writer;

enum {
    LIN_FILE_STREAM = 1,    /* written from front to back: may be written in place to something that is not a regular file */
    LIN_FILE_OF_MANY = 2,   /* small and not synced: may be empty after a power failure; of two writers the later one wins */
    LIN_FILE_KEEP_STALE = 4 /* keep the temporary file of a killed process: this output cannot be made again */
};

/* LIN_IO if the system refuses, if path is not a regular file and flags do not allow it, or if another process is writing it.
 * The message names the path and what to do. */
lin_status lin_file_open(const char *path, int flags, lin_file_writer **writer, lin_error *err);

/* Appends. After a failure every later call fails too, with the message of the first. */
lin_status lin_file_write(lin_file_writer *writer, const void *bytes, size_t n_bytes, lin_error *err);
/* Overwrites bytes written before; offset + n_bytes is at most their number. LIN_IO for a pipe. */
lin_status lin_file_patch(lin_file_writer *writer, uint64_t offset, const void *bytes, size_t n_bytes, lin_error *err);

/* For libraries that write by themselves: the open file, owned by the writer. Do not use lin_file_write with it. */
int lin_file_descriptor(const lin_file_writer *writer);
/* Whether lin_file_patch can work: 0 for a pipe. */
int lin_file_can_seek(const lin_file_writer *writer);
/* Whether the path is not a regular file, so that output appears at once and cannot be undone. */
int lin_file_in_place(const lin_file_writer *writer);

/* Each of these three frees the writer in any case, and closes its descriptor. */
/* On failure the temporary file is removed and the old file is unchanged. */
lin_status lin_file_commit(lin_file_writer *writer, lin_error *err);
/* Removes the temporary file. Accepts NULL. */
void lin_file_abort(lin_file_writer *writer);
/* Keeps the bytes written so far beside the path, as <path>.part or, if that exists, <path>.part-2 and so on: writes that name to
 * `name`, "" for output in place. The old file is unchanged. On failure there is no such file. */
lin_status lin_file_keep(lin_file_writer *writer, char *name, size_t capacity, lin_error *err);

/* Writes a whole small file at once, atomically: configurations, curves. */
lin_status lin_file_write_all(const char *path, const void *bytes, size_t n_bytes, lin_error *err);

/* An unnamed file to write and read, in *folder: $TMPDIR or /tmp, or "memory" if that cannot be written to. It is deleted when
 * its descriptor is closed, also if the process is killed. -1 with the folder's errno. */
int lin_file_open_unnamed(const char **folder);

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

/* The last part of a path. */
const char *lin_base_name(const char *path);

/* Opens a file for reading; LIN_IO for what would block or never end: a directory, a named pipe, a socket, a device. Descriptors
 * that the process was given, /dev/stdin and /dev/fd/N (a shell's `<(...)`), and /dev/null may be anything. */
lin_status lin_file_open_input(const char *path, int *fd, lin_error *err);
lin_status lin_file_open_stream(const char *path, FILE **file, lin_error *err);

/* A regular file in memory, read-only. With size 0, bytes is valid but must not be read. */
typedef struct lin_file_map {
    const unsigned char *bytes;
    size_t size;
} lin_file_map;

/* LIN_IO if the file cannot be opened, is not a regular file or cannot be mapped. */
lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err);
/* The first `size` bytes, 1 or more, of an open file, which may be closed afterwards; path is its name. */
lin_status lin_file_map_descriptor(int file, size_t size, const char *path, lin_file_map *map, lin_error *err);
void lin_file_map_close(lin_file_map *map);

/* The last LIN_MAP_PATH - 1 bytes of the path of the mapped file that contains this address, or NULL. At most LIN_MAP_FILES files
 * are registered at once; for others it gives NULL. */
enum { LIN_MAP_FILES = 256, LIN_MAP_PATH = 512 };
const char *lin_file_map_find(const void *address);

#endif
