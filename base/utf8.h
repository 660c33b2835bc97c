/*
 * utf8.h - UTF-8 (RFC 3629): decoding, counting, and checking that text is safe to print and to write to other files.
 *
 * Well-formed means: no overlong forms, no surrogates, nothing beyond U+10FFFF.
 *
 * Threads: no shared state.
 */
#ifndef LIN_BASE_UTF8_H
#define LIN_BASE_UTF8_H

#include <stddef.h>

/* Decodes the first character of text [n]; returns its number of bytes, 1 to 4, or 0 if it is not well-formed. */
size_t lin_utf8_decode(const char *text, size_t n, unsigned *code);

/* The same, but returns only the number of bytes. */
size_t lin_utf8_length(const char *text, size_t n);

/* The inverse: writes `code`, at most U+10FFFF, to out; returns the number of bytes. */
size_t lin_utf8_encode(unsigned code, char out[4]);

/* Number of characters of a well-formed C string. */
size_t lin_utf8_count(const char *text);

/* Number of bytes before the first one that is not part of a well-formed character, or is a control character (U+0000-001F,
 * U+007F-009F) other than those in `allowed` (a C string, such as "\t\n"); n if there is none. */
size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed);

/* The text, or a replacement for it in a message of one line. */
const char *lin_utf8_line(const char *text);

#endif
