/*
 * line_reader.h - the lines of a file or pipe of any length, one after the other.
 *
 *   lin_line_reader r = {.file = stdin, .name = "standard input"};
 *   while ((status = lin_line_next(&r, &err)) == LIN_OK && r.text) use(r.text, r.n, r.number);
 *   lin_line_free(&r);
 *
 * Unlike getline, it distinguishes the end from an error and from a failed allocation. One thread.
 */
#ifndef LIN_APP_LINE_READER_H
#define LIN_APP_LINE_READER_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

enum { LIN_LINE_MOST = 64 << 20 }; /* bytes */

typedef struct lin_line_reader {
    FILE *file;       /* owned by the caller */
    const char *name; /* for messages */
    const char *text; /* the line without its LF or CR LF, followed by a NUL; may contain others; NULL at the end */
    size_t n;
    int number; /* from 1 */
    char *room;
    size_t capacity;
} lin_line_reader;

/* LIN_IO: reading failed; LIN_NO_MEMORY; LIN_FORMAT: over LIN_LINE_MOST bytes; LIN_STOPPED: a signal requested the end. With any
 * of them text is NULL, and the message names the line. */
lin_status lin_line_next(lin_line_reader *reader, lin_error *err);

void lin_line_free(lin_line_reader *reader);

#endif
