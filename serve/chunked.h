/*
 * chunked.h - a body that comes in chunks, because its length was not known (RFC 9112, 7.1).
 *
 * Pipeline: serve/web.h, whose pieces are cut anywhere -> [this] -> serve/serve_files.c.
 *
 *   lin_chunked c = {0};
 *   for (size_t at = 0; at < n; keep(data, n_data)) at += lin_chunked_take(&c, bytes + at, n - at, &data, &n_data);
 *
 * Extensions of chunks and the fields behind the last one are read and forgotten. Line ends are CR LF; LF alone is a mistake.
 */
#ifndef LIN_SERVE_CHUNKED_H
#define LIN_SERVE_CHUNKED_H

#include <stddef.h>
#include <stdint.h>

typedef enum lin_chunked_state {
    LIN_CHUNKED_SIZE, /* its digits */
    LIN_CHUNKED_EXTENSION, /* up to CR */
    LIN_CHUNKED_SIZE_END, /* LF */
    LIN_CHUNKED_DATA,
    LIN_CHUNKED_DATA_CR, LIN_CHUNKED_DATA_LF,
    LIN_CHUNKED_FIELD, /* the beginning of a line behind the last chunk */
    LIN_CHUNKED_FIELD_REST, LIN_CHUNKED_FIELD_LF, LIN_CHUNKED_LAST_LF,
    LIN_CHUNKED_DONE, /* the body is complete: what comes behind it is no part of it */
    LIN_CHUNKED_BAD
} lin_chunked_state;

typedef struct lin_chunked {
    lin_chunked_state state;
    int digits, extra; /* of the size; bytes of extensions and fields so far */
    uint64_t left;     /* of the chunk */
} lin_chunked;

/* Reads some of the bytes [n] and returns how many, at least 1 of n > 0. data [n_data]: the part of them that is the body's,
 * maybe none. In the states DONE and BAD the rest is taken at once, without data. */
size_t lin_chunked_take(lin_chunked *chunked, const char *bytes, size_t n, const char **data, size_t *n_data);

#endif
