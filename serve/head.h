/*
 * head.h - the head of an HTTP request, as it is given to the network library.
 *
 * Pipeline: bytes of a connection -> [this] -> libwebsockets' parser (serve/web/lws.c, serve/web/tls_head.c).
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
#ifndef LIN_SERVE_HEAD_H
#define LIN_SERVE_HEAD_H

#include <stddef.h>

enum { LIN_HEAD_MOST = 16384, LIN_HEAD_PASSED = 8000, LIN_HEAD_ANSWER = 512 };

/* Of a head with its empty line; 0: it is not complete. */
size_t lin_head_length(const char *bytes, size_t n);
/* out [LIN_HEAD_PASSED] receives n_out bytes of the head [n]. Else the status of the refusal, and why. */
int lin_head_read(const char *head, size_t n, char *out, size_t *n_out, const char **why);
/* A whole answer into [LIN_HEAD_ANSWER]; its length. */
size_t lin_head_refusal(int status, const char *why, char *answer);

#endif
