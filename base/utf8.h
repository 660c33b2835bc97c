/*
 * utf8.h - UTF-8 (RFC 3629): decoding, counting, and whether a text may be printed and written to other files.
 *
 * Well-formed means: no overlong forms, no surrogates, nothing beyond U+10FFFF.
 *
 * Threads: no shared state.
 */
#ifndef LIN_BASE_UTF8_H
#define LIN_BASE_UTF8_H

#include <stddef.h>

/* Decodes the character that text [n] begins with; its bytes, 1 to 4, or 0 if there is no well-formed one. */
size_t lin_utf8_decode(const char *text, size_t n, unsigned *code);

/* The same where only its bytes matter. */
size_t lin_utf8_length(const char *text, size_t n);

/* The opposite: writes `code`, at most U+10FFFF, to out and returns its bytes. */
size_t lin_utf8_encode(unsigned code, char out[4]);

/* Characters of a well-formed C string. */
size_t lin_utf8_count(const char *text);

/* Bytes before the first one that is not part of a well-formed character, or is a control character (U+0000-001F, U+007F-009F)
 * other than those in `allowed` (a C string, such as "\t\n"); n if all is well. */
size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed);

/* The text, or a replacement for it in a message of one line. */
const char *lin_utf8_line(const char *text);

#endif
