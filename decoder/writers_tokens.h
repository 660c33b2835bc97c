/*
 * writers_tokens.h - the tokens of a result and their spelling, for the writers and for text that grows token by token.
 *
 * A token is a phone or a word. Every writer runs
 *
 *   lin_tokens t;
 *   status = lin_tokens_of(&t, result, options, err);           // checks the result once and chooses phones or words
 *   for (i = 0; i < t.n; i++) ... lin_token_at(&t, i) ... lin_token_spell(&t, i, out) ...
 *
 * Threads: no shared state.
 */
#ifndef LIN_DECODER_WRITERS_TOKENS_H
#define LIN_DECODER_WRITERS_TOKENS_H

#include "decoder/writers.h"
#include "lexicon/readable.h"

typedef struct lin_tokens {
    const lin_result *result;
    const lin_writer_options *options;
    int words; /* tokens are words, else phones */
    int n;
    const lin_readable *readable; /* not NULL: tokens are its */
    int written;                  /* tokens are the words as the aligned text has them */
} lin_tokens;

typedef struct lin_token {
    double start_s, end_s;
    float confidence, goodness; /* NAN where they were not measured */
} lin_token;

/* LIN_INVALID for a result that the options do not fit; see lin_write_function. */
lin_status lin_tokens_of(lin_tokens *tokens, const lin_result *result, const lin_writer_options *options, lin_error *err);

/* The phones or the words of a result that was checked. */
lin_tokens lin_tokens_only(const lin_result *result, const lin_writer_options *options, int words);

/* The words as the aligned text has them, if the result knows that; else as readable text if the options want that: from here on
 * the tokens are those of `readable`, which must be zeroed before and is freed by lin_readable_free after the last use.
 * LIN_NO_MEMORY. */
lin_status lin_tokens_make_readable(lin_tokens *tokens, lin_readable *readable, lin_error *err);

/* Pushes word i of tokens that are plain words. A word outside the lexicon of 2 to 15 phones is as the speller spells it, any
 * other "[...]". LIN_NO_MEMORY. */
lin_status lin_token_push_readable(const lin_tokens *tokens, int i, lin_readable *readable, lin_error *err);

lin_token lin_token_at(const lin_tokens *tokens, int i);

/* Name of a phone, spelling of a word, or the mark of one outside the lexicon: its bytes as they are. */
void lin_token_spell(const lin_tokens *tokens, int i, lin_buffer *out);

/* A token of text without ids and times: what divides it from the one before, and where the caller is to append it; then the end
 * of its line, if it made that too long. */
size_t lin_begin_text_token(const lin_writer_options *options, const lin_writer_layout *layout, double start_s, lin_buffer *out);
void lin_end_text_token(const lin_writer_options *options, lin_writer_layout *layout, size_t from, double end_s, lin_buffer *out);

#endif
