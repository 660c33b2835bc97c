/*
 * gzip.h - expands gzip data, for base/textfile: every reader of text also accepts gzip.
 *
 *   if (lin_gzip_is(bytes, n)) lin_gzip_expand(bytes, n, LIN_TEXT_MAX_BYTES, "x.gz", &text, &n_text, &err);
 *
 * RFC 1952: one or several members, one after the other. Threads: no shared state.
 */
#ifndef LIN_BASE_GZIP_H
#define LIN_BASE_GZIP_H

#include <stddef.h>

#include "base/status.h"

/* Whether the bytes begin like a gzip file. */
static inline int lin_gzip_is(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    return n >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

/*
 * Expands all data to *text, NUL-terminated after its *n_text bytes and released with lin_free. LIN_FORMAT, naming the byte:
 * truncated, damaged, followed by other data, or over `most` bytes when expanded. LIN_NO_MEMORY. On failure *text is NULL.
 */
lin_status lin_gzip_expand(const void *bytes, size_t n, size_t most, const char *name, char **text, size_t *n_text,
                           lin_error *err);

#endif
