/*
 * gzip.h - gzip'd bytes to plain ones, for base/textfile: every reader of text takes gzip too.
 *
 *   if (lin_gzip_is(bytes, n)) lin_gzip_expand(bytes, n, LIN_TEXT_MAX_BYTES, "x.gz", &text, &n_text, &err);
 *
 * RFC 1952: one or several members, one after the other. Threads: no shared state.
 */
#ifndef LIN_BASE_GZIP_H
#define LIN_BASE_GZIP_H

#include <stddef.h>

#include "base/status.h"

/* Whether the bytes begin as a gzip file does. */
static inline int lin_gzip_is(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    return n >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/*
 * Expands all of it to *text, NUL-terminated behind its *n_text bytes and released with lin_free. LIN_FORMAT, naming the byte: cut,
 * damaged, followed by something else, or over `most` bytes when expanded. LIN_NO_MEMORY. On failure *text is NULL.
 */
lin_status lin_gzip_expand(const void *bytes, size_t n, size_t most, const char *name, char **text, size_t *n_text, lin_error *err);

#endif
