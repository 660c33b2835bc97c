/*
 * writers_internal.h - shared by the writers: names as text.
 */
#ifndef LIN_DECODER_WRITERS_INTERNAL_H
#define LIN_DECODER_WRITERS_INTERNAL_H

#include "decoder/writers.h"

/* lin_token_spell as a string in `scratch`, which keeps a failure. */
const char *lin_token_text(const lin_tokens *tokens, int i, lin_buffer *scratch);

const char *lin_phone_text(const lin_writer_options *options, int label);

/* The text of a phone of a result, with its stress if the options ask for it. text: room for it. Returns text. */
enum { LIN_PHONE_TEXT = 64 };
const char *lin_stressed_text(const lin_writer_options *options, const lin_result_phone *phone, char text[LIN_PHONE_TEXT]);

/* Text as UTF-8: bytes that are not UTF-8, and control characters other than those in `keep`, become U+FFFD; a `quote` (0: none)
 * is doubled. */
void lin_put_clean(lin_buffer *out, const char *text, const char *keep, char quote);

/* Milliseconds, at least 0; 0 for a NaN. */
int64_t lin_ms(double seconds);
void lin_put_ms_as_seconds(lin_buffer *out, int64_t ms);

/* Writes the header if the call makes a whole file. */
void lin_put_header(const lin_writer_options *options, const char *header, lin_buffer *out);

extern const char lin_vtt_header[];

lin_status lin_write_json(const lin_tokens *t, lin_buffer *out, lin_error *err);
lin_status lin_write_srt(const lin_tokens *t, lin_buffer *out, lin_error *err);
lin_status lin_write_vtt(const lin_tokens *t, lin_buffer *out, lin_error *err);
lin_status lin_write_textgrid(const lin_result *const *list, int n, const lin_writer_options *o, lin_buffer *out, lin_error *err);

#endif
