/*
 * buffer.h - text that grows: where writers and reports put their output before it goes to a file.
 *
 *   lin_buffer out = {0};
 *   lin_buffer_text(&out, "PER ");
 *   lin_buffer_fixed(&out, 12.3456, 2);                  // "12.35", with a point whatever the locale says
 *   if (lin_buffer_status(&out, &err)) ...               // an allocation failed on the way; what was appended since is missing
 *   lin_buffer_free(&out);
 *
 * Appending returns nothing: a failure is remembered and told once at the end, so that writers read like the text they write.
 * Threads: one at a time per buffer.
 */
#ifndef LIN_BASE_BUFFER_H
#define LIN_BASE_BUFFER_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

typedef struct lin_buffer {
    char *data; /* NUL-terminated behind n bytes once anything was appended; NULL before */
    size_t n, capacity;
    size_t failed; /* bytes that could not be had, 0 if all is well */
} lin_buffer;

void lin_buffer_bytes(lin_buffer *buffer, const char *bytes, size_t n);
void lin_buffer_text(lin_buffer *buffer, const char *text);
void lin_buffer_char(lin_buffer *buffer, char c);
/* As printf. For numbers that are not whole use lin_buffer_fixed: the point of %f depends on the locale. */
void lin_buffer_format(lin_buffer *buffer, const char *fmt, ...) LIN_PRINTF(2, 3);
void lin_buffer_integer(lin_buffer *buffer, long long value);

/* Decimal with `digits` (0..9) digits behind the point, half away from zero; "0" with its zeros for what is not finite, and 9e15
 * with its sign for what is farther from 0 than that. */
void lin_buffer_fixed(lin_buffer *buffer, double value, int digits);

/* A JSON string with its quotes (RFC 8259): escapes what must be, and writes bytes that are not UTF-8 as U+FFFD. */
void lin_buffer_json(lin_buffer *buffer, const char *text, size_t n);

/* Members of a JSON object: its key, behind a comma unless the object begins here, and its value; a text that is NULL is null. */
void lin_buffer_key(lin_buffer *buffer, const char *key);
void lin_buffer_member_text(lin_buffer *buffer, const char *key, const char *text);
void lin_buffer_member_integer(lin_buffer *buffer, const char *key, long long value);
void lin_buffer_member_fixed(lin_buffer *buffer, const char *key, double value, int digits);

/* Text of an HTML element or of a quoted attribute: escapes <, >, &, " and ', and writes control characters and bytes that are not
 * UTF-8 as U+FFFD. */
void lin_buffer_html(lin_buffer *buffer, const char *text, size_t n);

/* Blanks until the text since byte `from` fills `width` bytes; with `right` they go before it. For tables. */
void lin_buffer_pad(lin_buffer *buffer, size_t from, size_t width, int right);

/* LIN_NO_MEMORY if any append failed. */
lin_status lin_buffer_status(const lin_buffer *buffer, lin_error *err);

/* Writes all of it to an open file; `name` stands in the message. LIN_IO if the file does not take it. */
lin_status lin_buffer_write(const lin_buffer *buffer, FILE *file, const char *name, lin_error *err);

void lin_buffer_clear(lin_buffer *buffer); /* keeps the memory */
void lin_buffer_free(lin_buffer *buffer);

#endif
