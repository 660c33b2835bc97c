/*
 * readable.h - words as people write them: numbers as digits, capitals, full stops, commas and question marks.
 *
 * Pipeline: decoder/result (words with times) -> [this, by lexicon/numbers and lexicon/punctuation] -> decoder/writers,
 * app/results.
 *
 *   lin_readable r;
 *   lin_readable_begin(&r, punctuation);
 *   lin_readable_push(&r, "twenty", 0.1, 0.5, 1, &err);          // words in order, as they come
 *   ... r.tokens[0 .. r.n) ... lin_readable_clear(&r);           // what is certain so far
 *   lin_readable_finish(&r, &err);                               // the rest, with a mark behind the last word
 *   lin_readable_free(&r);
 *
 * A token is a word, or the words of a number, with its mark. It is certain three words later, behind a number three words after
 * its end, so the text does not depend on how the words come. It is never changed. Words outside the lexicon that have no
 * spelling are "[...]", several without a pause once: their phones are not for reading.
 * Threads: one at a time per lin_readable; the model is shared.
 */
#ifndef LIN_LEXICON_READABLE_H
#define LIN_LEXICON_READABLE_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/punctuation.h"

typedef struct lin_readable_token {
    size_t text; /* where it begins in lin_readable.text; it ends with a NUL */
    double start_s, end_s;
} lin_readable_token;

typedef struct lin_readable_pending lin_readable_pending;

typedef struct lin_readable {
    lin_buffer text;
    lin_readable_token *tokens;
    int n, capacity;
    int words_only; /* set after begin: numbers stay words, and so do titles: for measuring */
    double paragraph_s; /* set after begin: a longer pause ends the text as lin_readable_finish does; 0: none does */
    /* Its own: */
    const lin_punctuation *model;
    lin_readable_pending *words; /* that wait */
    lin_buffer spellings, digits;
    int n_words, words_capacity;
    lin_gap gap;
    int mark, capital; /* of the word before */
    int keep;          /* words that stay as they are */
    double end_s;      /* of the last word */
    char before[16];   /* the word before, or its beginning */
} lin_readable;

/* The model must outlive it. */
void lin_readable_begin(lin_readable *readable, const lin_punctuation *model);

/* A word in small letters and its times; NAN: not known. known: 0: outside the lexicon, written as it is, or as "[...]" if it is
 * empty. LIN_NO_MEMORY. Allocates only what is larger than all before. */
lin_status lin_readable_push(lin_readable *readable, const char *word, double start_s, double end_s, int known, lin_error *err);

/* Ends the text: the last word gets a full stop or a question mark. The next word begins a new text. */
lin_status lin_readable_finish(lin_readable *readable, lin_error *err);

/* Forgets the tokens, not what waits. */
void lin_readable_clear(lin_readable *readable);

const char *lin_readable_token_text(const lin_readable *readable, int i);
void lin_readable_free(lin_readable *readable);

/* Class of a pause, for counts: LIN_PAUSES of them; 0: not known. */
enum { LIN_PAUSES = 6 };
int lin_readable_pause(double seconds);

#endif
