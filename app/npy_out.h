/*
 * npy_out.h - a matrix of floats to a NumPy file, row by row, in constant memory. The file appears when all is written.
 *
 *   lin_npy_out out;
 *   lin_npy_begin(&out, "x.npy", 40, &err);
 *   lin_npy_rows(&out, rows, n, &err);
 *   lin_npy_finish(&out, &err);             // or lin_npy_abort(&out)
 */
#ifndef LIN_APP_NPY_OUT_H
#define LIN_APP_NPY_OUT_H

#include "model/file.h"

typedef struct lin_npy_out {
    lin_file_writer *file;
    long long rows;
    int columns;
} lin_npy_out;

lin_status lin_npy_begin(lin_npy_out *out, const char *path, int columns, lin_error *err);
/* rows [n, columns] */
lin_status lin_npy_rows(lin_npy_out *out, const float *rows, int n, lin_error *err);
lin_status lin_npy_finish(lin_npy_out *out, lin_error *err);
/* Leaves what was there before. Harmless after a finish. */
void lin_npy_abort(lin_npy_out *out);

#endif
