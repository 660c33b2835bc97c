/*
 * http.h - what is read of HTTP itself: the head of a request, as it is given to the network library, and a body in chunks.
 *
 * Pipeline: bytes of a connection -> [this] -> libwebsockets' parser (serve/web/lws.c, serve/web/tls.c).
 *
 * The parser of libwebsockets 4.1 reads a field whose name is the beginning of one that it knows (X-Auth, of X-Auth-Token) into
 * the next line, and waits for ever if that is the last one. It closes the connection where fields take more than 8 KB, and
 * refuses the absolute form of an address (RFC 9112, 3.2.2). So it gets only the fields that linnet serve reads, and addresses
 * that begin with a slash. What it would refuse in words of its own is refused here.
 *
 *   size_t n_head = lin_head_length(bytes, n);                       // 0: more must come
 *   lin_head_read(bytes, n_head, out, &n_out, &why);                 // 0, or the status of a refusal
 *   lin_head_refusal(status, why, answer);
 *
 * Threads: any.
 */
#ifndef LIN_SERVE_HTTP_H
#define LIN_SERVE_HTTP_H

#include <stddef.h>
#include <stdint.h>

/* ---- the head of a request ------------------------------------------------------------------------------------------------- */

enum { LIN_HEAD_MOST = 16384, LIN_HEAD_PASSED = 8000, LIN_HEAD_ANSWER = 512 };

/* Of a head with its empty line; 0: it is not complete. */
size_t lin_head_length(const char *bytes, size_t n);
/* out [LIN_HEAD_PASSED] receives n_out bytes of the head [n]. Else the status of the refusal, and why. */
int lin_head_read(const char *head, size_t n, char *out, size_t *n_out, const char **why);
/* A whole answer into [LIN_HEAD_ANSWER]; its length. */
size_t lin_head_refusal(int status, const char *why, char *answer);

/* ---- a body in chunks ------------------------------------------------------------------------------------------------------ */

/*
 * A body that comes in chunks, because its length was not known (RFC 9112, 7.1).
 *
 * Pipeline: serve/web.h, whose pieces are cut anywhere -> [this] -> serve/serve_files.c.
 *
 *   lin_chunked c = {0};
 *   for (size_t at = 0; at < n; keep(data, n_data)) at += lin_chunked_take(&c, bytes + at, n - at, &data, &n_data);
 *
 * Extensions of chunks and the fields behind the last one are read and forgotten. Line ends are CR LF; LF alone is a mistake.
 */
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
