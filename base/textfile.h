/*
 * textfile.h - reads text files: whole files (also gzip'd), lines, fields, and quotes their bytes in messages.
 *
 * Dictionaries, transcripts and result files are parsed from memory, so that the same parser serves files, tests and fuzzing:
 *
 *   lin_text_read("x.dict", &text, &n, &err);                      // one block, the caller frees it with lin_free
 *   lin_lines lines = {0};
 *   lin_lines_begin(&lines, text, n);
 *   while (lin_lines_next(&lines)) ... lines.text, lines.n, lines.number ...
 *   while (lin_field_next(&at, end, &field, &n_field)) ...
 *
 * Threads: no shared state.
 */
#ifndef LIN_BASE_TEXTFILE_H
#define LIN_BASE_TEXTFILE_H

#include <stddef.h>

#include "base/status.h"

/* Larger than any dictionary or transcript; a longer file is a mistake (a device, an audio file). */
#define LIN_TEXT_MAX_BYTES ((size_t)1 << 30)

/* Reads a whole file, and expands it if it is gzip'd. *text is NUL-terminated after its n bytes and released with lin_free.
 * /dev/stdin is read from its present position. LIN_IO; LIN_STOPPED if a signal interrupts it; LIN_FORMAT for a file that is too
 * large, or truncated or damaged gzip; LIN_NO_MEMORY. On failure *text is NULL. */
lin_status lin_text_read(const char *path, char **text, size_t *n, lin_error *err);

/* Bytes of the UTF-8 byte order mark at the start of text [n]: 3 or 0. */
size_t lin_text_mark(const char *text, size_t n);

/* Lines of a block: the end of line (LF or CR LF) is not part of `text`; a UTF-8 byte order mark at the start is skipped. */
typedef struct lin_lines {
    const char *text; /* the current line, not NUL-terminated */
    size_t n;         /* its bytes */
    int number;       /* counted from 1 */
    size_t offset;    /* of its first byte in the block */
    const char *begin, *next, *end;
} lin_lines;

void lin_lines_begin(lin_lines *lines, const char *text, size_t n);
int lin_lines_next(lin_lines *lines); /* 0 at the end */

/* Next run of bytes that are not lin_is_space in [*at, end); moves *at past it. 0 if there is none. */
int lin_field_next(const char **at, const char *end, const char **field, size_t *n);

/* Index of the first control character (below 32 except tab, or 127) among n bytes, or n. */
size_t lin_text_find_control(const char *text, size_t n);

/* LIN_FORMAT, with the name of the file, where the current line holds a control character. */
lin_status lin_lines_check(const lin_lines *lines, const char *name, lin_error *err);

/* n bytes for use in a message: UTF-8 unchanged, control characters and other bytes as '?', truncated to fit with "..." at the
 * end. Returns out. */
#define LIN_QUOTE 48
const char *lin_quote(char out[LIN_QUOTE], const char *text, size_t n);

/* A copy of n bytes followed by a NUL, released with lin_free; NULL if out of memory. */
char *lin_text_copy(const char *text, size_t n);

/* A plain decimal number ("12", "-0.5", "1e-3") in C notation, in every locale. 0 unless all n bytes are part of it. */
int lin_text_number(const char *text, size_t n, double *value);

/* ASCII only, in every locale. */
static inline int lin_is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; } /* within a line */
static inline int lin_is_blank(char c) { return lin_is_space(c) || c == '\n'; } /* within a text */
static inline char lin_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static inline char lin_upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }
static inline int lin_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static inline int lin_is_digit(char c) { return c >= '0' && c <= '9'; }

/* ---- gzip ------------------------------------------------------------------------------------------------------------------ */

/* RFC 1952: one or several members, one after the other. Every reader of text also accepts it. */

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
