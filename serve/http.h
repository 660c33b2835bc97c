/*
 * http.h - the parts of HTTP that linnet serve parses itself: the head of a request, before the network library gets it, and
 * chunked bodies.
 *
 * Pipeline: bytes of a connection -> [this] -> libwebsockets' parser (serve/web/lws.c, serve/web/tls.c).
 *
 * The parser of libwebsockets 4.1 reads a field whose name is the beginning of one that it knows (X-Auth, of X-Auth-Token) into
 * the next line, and hangs if that is the last one. It closes the connection if fields take more than 8 KB, and refuses the
 * absolute form of an address (RFC 9112, 3.2.2). So it gets only the fields that linnet serve reads, and addresses that begin
 * with a slash. Heads that it would refuse are refused here, with an answer of our own.
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

/* The length of a head with its empty line; 0: it is not complete. */
size_t lin_head_length(const char *bytes, size_t n);
/* Writes the head [n] as the parser gets it, n_out bytes, to out [LIN_HEAD_PASSED], and returns 0; or returns the status of a
 * refusal, and why. */
int lin_head_read(const char *head, size_t n, char *out, size_t *n_out, const char **why);
/* Writes a whole answer to answer [LIN_HEAD_ANSWER] and returns its length. */
size_t lin_head_refusal(int status, const char *why, char *answer);

/* ---- a body in chunks ------------------------------------------------------------------------------------------------------ */

/*
 * A chunked body (RFC 9112, 7.1).
 *
 * Pipeline: serve/web.h, whose pieces are cut anywhere -> [this] -> serve/serve_files.c.
 *
 *   lin_chunked c = {0};
 *   for (size_t at = 0; at < n; keep(data, n_data)) at += lin_chunked_take(&c, bytes + at, n - at, &data, &n_data);
 *
 * Chunk extensions and trailer fields are skipped. Line ends are CR LF; LF alone is an error.
 */
typedef enum lin_chunked_state {
    LIN_CHUNKED_SIZE, /* its digits */
    LIN_CHUNKED_EXTENSION, /* up to CR */
    LIN_CHUNKED_SIZE_END, /* LF */
    LIN_CHUNKED_DATA,
    LIN_CHUNKED_DATA_CR, LIN_CHUNKED_DATA_LF,
    LIN_CHUNKED_FIELD, /* the beginning of a line after the last chunk */
    LIN_CHUNKED_FIELD_REST, LIN_CHUNKED_FIELD_LF, LIN_CHUNKED_LAST_LF,
    LIN_CHUNKED_DONE, /* the body is complete: further bytes are not part of it */
    LIN_CHUNKED_BAD
} lin_chunked_state;

typedef struct lin_chunked {
    lin_chunked_state state;
    int digits, extra; /* of the size; bytes of extensions and fields so far */
    uint64_t left;     /* of the chunk */
} lin_chunked;

/* Reads some of the bytes [n > 0] and returns how many, at least 1. data [n_data]: the bytes of the body among them, maybe none.
 * In the states DONE and BAD it takes all bytes, without data. */
size_t lin_chunked_take(lin_chunked *chunked, const char *bytes, size_t n, const char **data, size_t *n_data);

#endif
