/*
 * npy.h - float matrices in NumPy's .npy format, for features, posteriors and golden values.
 *
 * Written: version 1.0, '<f4', C order, shape (T, D), a header of 128 bytes for any T, so that T may be unknown until the end.
 * Read: versions 1.0 to 3.0, '<f4', C order, one or two dimensions; anything else is refused with one sentence. Files may be
 * hostile: every value is checked against the file's real size before it is used.
 *
 *   lin_npy_writer *w;
 *   lin_npy_create("x.npy", D, &w, &err);
 *   while (...) lin_npy_append(w, frames, n, &err);
 *   lin_npy_close(w, &err);                             // or lin_npy_abandon(w)
 *
 * The file appears under its name when it is complete (base/file.h).
 */
#ifndef LIN_LAB_NPY_H
#define LIN_LAB_NPY_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_npy_writer lin_npy_writer;

/* D >= 1 columns. LIN_IO if the file cannot be created; a device is written in place;
 * a pipe is refused, because it cannot seek. */
lin_status lin_npy_create(const char *path, int D, lin_npy_writer **writer, lin_error *err);

/* Appends rows [n, D]. After a failure only lin_npy_abandon and lin_npy_close may follow. */
lin_status lin_npy_append(lin_npy_writer *writer, const float *rows, size_t n, lin_error *err);

/* Completes the header and renames; frees the writer in any case. On failure the unfinished file is removed. */
lin_status lin_npy_close(lin_npy_writer *writer, lin_error *err);

/* Keeps the rows written so far as a matrix beside the path, and writes its name to `name` (lin_file_keep); "" if there are no
 * rows. Frees the writer in any case. */
lin_status lin_npy_keep(lin_npy_writer *writer, char *name, size_t capacity, lin_error *err);

/* Removes the unfinished file and frees the writer. Accepts NULL. */
void lin_npy_abandon(lin_npy_writer *writer);

/* Reads a matrix; a vector of T elements gives D = 1. The caller frees *rows with lin_free. On failure *rows is NULL. */
lin_status lin_npy_read(const char *path, float **rows, size_t *T, int *D, lin_error *err);

/* Reads the header of a file. `name` is for messages. On success the matrix is T x D floats from byte *offset on, all inside the
 * file. */
lin_status lin_npy_parse(const char *name, const unsigned char *bytes, size_t n_bytes, size_t *offset, size_t *T, int *D,
                         lin_error *err);

#endif
