// npy_out.c - a matrix of floats to a NumPy file; see npy_out.h. Format: numpy.lib.format, version 1.0.

#include "app/npy_out.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 128 }; // a multiple of 64, with room for any shape: the number of rows is known only at the end

static void make_header(const lin_npy_out *out, char header[HEADER])
{
    memset(header, ' ', HEADER);
    static const char magic[10] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(HEADER - 10), 0};
    memcpy(header, magic, sizeof magic);
    char text[HEADER];
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %d), }", out->rows, out->columns);
    memcpy(header + sizeof magic, text, (size_t)n);
    header[HEADER - 1] = '\n';
}

lin_status lin_npy_begin(lin_npy_out *out, const char *path, int columns, lin_error *err)
{
    char header[HEADER];
    *out = (lin_npy_out){.columns = columns};
    lin_status status = lin_file_create(path, &out->file, err);
    if (status != LIN_OK) {
        out->file = NULL;
        return status;
    }
    make_header(out, header);
    return lin_file_write(out->file, header, HEADER, err);
}

lin_status lin_npy_rows(lin_npy_out *out, const float *rows, int n, lin_error *err)
{
    size_t count = (size_t)n * (size_t)out->columns;
    out->rows += n;
    const union { uint16_t number; unsigned char first; } order = {1};
    if (order.first == 1) return lin_file_write(out->file, rows, count * sizeof *rows, err);
    // A big-endian machine turns each value round.
    lin_status status = LIN_OK;
    for (size_t i = 0; i < count && status == LIN_OK; i++) {
        unsigned char bytes[4], turned[4];
        memcpy(bytes, &rows[i], 4);
        for (int b = 0; b < 4; b++) turned[b] = bytes[3 - b];
        status = lin_file_write(out->file, turned, 4, err);
    }
    return status;
}

lin_status lin_npy_finish(lin_npy_out *out, lin_error *err)
{
    char header[HEADER];
    make_header(out, header);
    lin_status status = lin_file_patch(out->file, 0, header, HEADER, err);
    if (status != LIN_OK) {
        lin_npy_abort(out);
        return status;
    }
    lin_file_writer *file = out->file;
    out->file = NULL;
    return lin_file_commit(file, err);
}

void lin_npy_abort(lin_npy_out *out)
{
    lin_file_abort(out->file);
    out->file = NULL;
}
