/*
 * file.h - files that are whole or not there: atomic writing, and mapping for reading.
 *
 *   lin_file_writer *w;
 *   lin_file_create("model.safetensors", &w, &err);    writes to model.safetensors.tmp, locked against a second writer
 *   lin_file_write(w, bytes, n, &err);                 buffered
 *   lin_file_commit(w, &err);                          flush, fsync, rename; or lin_file_abort(w)
 *
 * The old file is untouched until the rename. A temporary file left by a killed process is reused by the next writer.
 */
#ifndef LIN_MODEL_FILE_H
#define LIN_MODEL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

typedef struct lin_file_writer lin_file_writer;

/* LIN_IO where the system refuses, where path exists and is not a regular file, or where another process is writing it. */
lin_status lin_file_create(const char *path, lin_file_writer **writer, lin_error *err);
/* Appends. After a failure every later call fails too, and the message stays the first one's. */
lin_status lin_file_write(lin_file_writer *writer, const void *bytes, size_t n_bytes, lin_error *err);
/* Overwrites what was written before, offset + n_bytes at most the bytes written so far. */
lin_status lin_file_patch(lin_file_writer *writer, uint64_t offset, const void *bytes, size_t n_bytes, lin_error *err);
/* Frees the writer whatever happens; on failure the temporary file is removed and the old file untouched. */
lin_status lin_file_commit(lin_file_writer *writer, lin_error *err);
/* Removes the temporary file. NULL is allowed. */
void lin_file_abort(lin_file_writer *writer);

/* All of a small file at once, atomically: configurations, curves. */
lin_status lin_file_write_all(const char *path, const void *bytes, size_t n_bytes, lin_error *err);

/* A regular file in memory, read-only. size 0: bytes is a valid pointer to nothing. */
typedef struct lin_file_map {
    const unsigned char *bytes;
    size_t size;
} lin_file_map;

lin_status lin_file_map_open(const char *path, lin_file_map *map, lin_error *err);
void lin_file_map_close(lin_file_map *map);

#endif
