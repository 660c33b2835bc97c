/*
 * buffer.h - growing text: writers and reports put their output here before it goes to a file.
 *
 *   lin_buffer out = {0};
 *   lin_buffer_text(&out, "PER ");
 *   lin_buffer_fixed(&out, 12.3456, 2);                  // "12.35", with a point in every locale
 *   if (lin_buffer_status(&out, &err)) ...               // an allocation failed; text appended since is missing
 *   lin_buffer_free(&out);
 *
 * Appending returns nothing: a failure is stored and reported once at the end, so that the code of writers reads like their
 * output.
 * Threads: one at a time per buffer.
 */
#ifndef LIN_BASE_BUFFER_H
#define LIN_BASE_BUFFER_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

typedef struct lin_buffer {
    char *data; /* NUL-terminated after n bytes once anything was appended; NULL before */
    size_t n, capacity;
    size_t failed; /* bytes of the failed allocation, 0 if none failed */
} lin_buffer;

void lin_buffer_bytes(lin_buffer *buffer, const void *bytes, size_t n);
void lin_buffer_text(lin_buffer *buffer, const char *text);
void lin_buffer_char(lin_buffer *buffer, char c);
/* As printf. For numbers that are not whole use lin_buffer_fixed: the point of %f depends on the locale. */
void lin_buffer_format(lin_buffer *buffer, const char *fmt, ...) LIN_PRINTF(2, 3);
void lin_buffer_integer(lin_buffer *buffer, long long value);

/* Decimal with `digits` (0..9) digits after the point, rounded half away from zero. Values that are not finite give "0" with its
 * zeros; values beyond +-9e15 give 9e15 with their sign. */
void lin_buffer_fixed(lin_buffer *buffer, double value, int digits);

/* A JSON string with its quotes (RFC 8259): escapes characters as required, and replaces bytes that are not UTF-8 by U+FFFD. */
void lin_buffer_json(lin_buffer *buffer, const char *text, size_t n);

/*
 * JSON by a format in which ' stands for ". %s is a quoted string, or null for NULL; %d and %lld are whole numbers; %.3f is
 * written by lin_buffer_fixed. There are no other conversions. Also for other text whose numbers must not depend on the locale:
 * "%.3f to %.3f s".
 *
 *   lin_buffer_json_format(&out, "{'word':%s,'start':%.3f}", word, start_s);
 */
void lin_buffer_json_format(lin_buffer *buffer, const char *fmt, ...) LIN_PRINTF(2, 3);

/* The key of a JSON object's member, after a comma unless the object begins here. */
void lin_buffer_key(lin_buffer *buffer, const char *key);

/* Text of an HTML element or of a quoted attribute: escapes <, >, &, " and ', and replaces control characters and bytes that are
 * not UTF-8 by U+FFFD. */
void lin_buffer_html(lin_buffer *buffer, const char *text, size_t n);

/* A word as a POSIX shell reads it: between single quotes unless every character is plain. */
void lin_buffer_shell(lin_buffer *buffer, const char *word);

/* Appends blanks until the text from byte `from` fills `width` bytes; with `right` they go before it. For tables. */
void lin_buffer_pad(lin_buffer *buffer, size_t from, size_t width, int right);

/* LIN_NO_MEMORY if any append failed. */
lin_status lin_buffer_status(const lin_buffer *buffer, lin_error *err);

/* Writes the whole text to an open file; `name` is for the message. LIN_IO if writing fails. */
lin_status lin_buffer_write(const lin_buffer *buffer, FILE *file, const char *name, lin_error *err);

void lin_buffer_clear(lin_buffer *buffer); /* keeps the memory */
void lin_buffer_free(lin_buffer *buffer);
void lin_scratch_free(lin_buffer *scratch, lin_buffer *out); /* after its text went to `out`, which takes over its failure */

/* A list of strings that it does not own: operands, phrases, columns. */
typedef struct lin_list {
    const char **items; /* [count] */
    int count;
} lin_list;

#endif
