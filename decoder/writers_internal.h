/*
 * writers_internal.h - shared by the writers: the tokens of a result, their spelling, and undoing a failed call.
 *
 * A token is a phone or a word. Every writer runs
 *
 *   lin_tokens t;
 *   status = lin_tokens_of(&t, result, options, err);           // checks the result once and chooses phones or words
 *   for (i = 0; i < t.n; i++) ... lin_token_at(&t, i) ... lin_token_spell(&t, i, out) ...
 *   return lin_written(out, before, err);
 */
#ifndef LIN_DECODER_WRITERS_INTERNAL_H
#define LIN_DECODER_WRITERS_INTERNAL_H

#include "decoder/writers.h"
#include "lexicon/readable.h"

typedef struct lin_tokens {
    const lin_result *result;
    const lin_writer_options *options;
    int words; /* tokens are words, else phones */
    int n;
    const lin_readable *readable; /* not NULL: tokens are its */
} lin_tokens;

typedef struct lin_token {
    double start_s, end_s;
    float confidence, goodness; /* NAN for a word */
} lin_token;

/* LIN_INVALID for a result that the options do not fit; see lin_write_function. */
lin_status lin_tokens_of(lin_tokens *tokens, const lin_result *result, const lin_writer_options *options, lin_error *err);

/* The phones or the words of a result that was checked. */
lin_tokens lin_tokens_only(const lin_result *result, const lin_writer_options *options, int words);

/* The words as readable text if the options want that: from here on the tokens are those of `readable`, which must be zeroed before
 * and is freed by lin_readable_free after the last use. LIN_NO_MEMORY. */
lin_status lin_tokens_make_readable(lin_tokens *tokens, lin_readable *readable, lin_error *err);

/* Pushes word i of tokens that are plain words. A word outside the lexicon of 2 to 15 phones is as the speller spells it, any other
 * "[...]". LIN_NO_MEMORY. */
lin_status lin_token_push_readable(const lin_tokens *tokens, int i, lin_readable *readable, lin_error *err);

lin_token lin_token_at(const lin_tokens *tokens, int i);

/* Name of a phone, spelling of a word, or the mark of one outside the lexicon: its bytes as they are. */
void lin_token_spell(const lin_tokens *tokens, int i, lin_buffer *out);

/* The same as a string in `scratch`, which remembers a failure and hands it to `out` when it is freed. */
const char *lin_token_text(const lin_tokens *tokens, int i, lin_buffer *scratch);
void lin_scratch_free(lin_buffer *scratch, lin_buffer *out);

const char *lin_phone_text(const lin_writer_options *options, int label);

/* The same of a phone of a result, with its stress where that is asked for. text: room for it. Returns text. */
enum { LIN_PHONE_TEXT = 64 };
const char *lin_stressed_text(const lin_writer_options *options, const lin_result_phone *phone, char text[LIN_PHONE_TEXT]);

/* UTF-8 for formats that are text for everybody: bytes that are not UTF-8, and control characters other than those in `keep`,
 * become U+FFFD; a `quote` (0: none) is doubled. */
void lin_put_clean(lin_buffer *out, const char *text, const char *keep, char quote);

/* Milliseconds, at least 0; 0 for a NaN. */
int64_t lin_ms(double seconds);
void lin_put_ms_as_seconds(lin_buffer *out, int64_t ms);

/* A token of text without ids and times: what divides it from the one before, and where the caller is to append it; then the end of
 * its line, if it made that too long. */
size_t lin_begin_text_token(const lin_writer_options *options, const lin_writer_layout *layout, double start_s, lin_buffer *out);
void lin_end_text_token(const lin_writer_options *options, lin_writer_layout *layout, size_t from, double end_s, lin_buffer *out);

/* The header where the call makes a whole file. */
void lin_put_header(const lin_writer_options *options, const char *header, lin_buffer *out);

/* An utterance was appended after byte `before`: counts it, or removes all of it if memory failed. */
lin_status lin_written(const lin_writer_options *options, lin_buffer *out, size_t before, lin_error *err);

/* Removes everything after byte `before`. */
void lin_take_back(lin_buffer *out, size_t before);

extern const char lin_csv_header[], lin_vtt_header[];

lin_status lin_write_text(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_ctm(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_trn(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_json(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_srt(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_vtt(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_textgrid(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_textgrid_speakers(const lin_result *const *list, int n, const lin_writer_options *o, lin_buffer *out,
                                       lin_error *err);
lin_status lin_write_csv(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);
lin_status lin_write_audacity(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err);

#endif
