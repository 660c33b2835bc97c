/*
 * readable.h - words as people write them: numbers as digits, capitals, full stops, commas and question marks.
 *
 * Pipeline: decoder/result (words with times) -> [this, by lexicon/written] -> decoder/writers, app/results.
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
 *
 * Marks and capitals are those of two log-linear models over hashed features, learnt from books (train/learn/punctuation_learn):
 * which mark stands in the gap between two words, from the words around it, the beginning of the sentence and of the clause, and
 * their lengths; and whether a word has a capital inside a sentence. A feature is one of 2^bits keys; each slot of the file has
 * the weights of the most informative key that falls into it. The length of the pause is independent of the words given the mark:
 * its logarithmic likelihood ratio is added (Stolcke et al. 1998, "Automatic detection of sentence boundaries and disfluencies
 * based on recognized words"). But a pause alone does not make a sentence of one or two words. A word that was surely a name once
 * is likelier one from then on.
 *
 * Threads: one at a time per lin_readable; the model is immutable and shared.
 */
#ifndef LIN_LEXICON_READABLE_H
#define LIN_LEXICON_READABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/written.h"

typedef enum lin_mark { LIN_MARK_NONE, LIN_MARK_COMMA, LIN_MARK_STOP, LIN_MARK_QUESTION, LIN_MARKS } lin_mark;

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

/*
 * The file: a header, then n_marks slots of {key / n_marks, weights of comma, full stop, question mark}, then n_capitals slots of
 * {key / n_capitals, weight}. A byte each; weights are signed and times the scale of the header.
 */
#define LIN_PUNCTUATION_MAGIC "LINPUNC\n"

enum {
    LIN_PUNCTUATION_VERSION = 1,
    LIN_PUNCTUATION_MARK_FEATURES = 16,
    LIN_PUNCTUATION_CAPITAL_FEATURES = 9,
    LIN_PUNCTUATION_MARK_SLOT = LIN_MARKS, /* bytes */
    LIN_PUNCTUATION_CAPITAL_SLOT = 2,
    LIN_PUNCTUATION_MAX_BITS = 30,
    LIN_READABLE_NAMES = 256
};

typedef struct lin_punctuation_header {
    char magic[8];
    uint32_t version, bits; /* of a key */
    uint32_t n_marks, n_capitals;
    float mark_scale, capital_scale; /* of the weights */
    float mark_bias[LIN_MARKS - 1], capital_bias;
    uint64_t checksum; /* lin_hash of the file with 0 here */
} lin_punctuation_header;

typedef struct lin_punctuation {
    lin_punctuation_header header;
    unsigned char *slots;
    size_t n; /* bytes of the slots */
    lin_written *numbers; /* rules by which numbers are written as digits, owned by the model; NULL: they stay words. Set before
                             the model is shared */
} lin_punctuation;

/* Around a gap. Words are lin_punctuation_word; 0: there is none. */
typedef struct lin_gap {
    uint64_t before[3], after[3];  /* the nearest first; before[0] is the word that the mark would follow */
    uint64_t sentence[2], clause[2]; /* the first words since the last full stop or question mark, since the last mark */
    int sentence_words, clause_words; /* so far, before[0] among them */
} lin_gap;

/* A number for a word in small letters, not 0. */
uint64_t lin_punctuation_word(const char *word);

/* After a word was put in a gap: moves the gap behind the next word. mark: what the gap got; word: the next one. The caller sets
 * `after`. An all-zero gap with LIN_MARK_STOP begins a text. */
void lin_gap_move(lin_gap *gap, int mark, uint64_t word);

/* LIN_FORMAT: damaged, or no such model; LIN_IO; LIN_NO_MEMORY. parse copies the bytes; name is for messages. */
lin_status lin_punctuation_open(const char *path, lin_punctuation **p, lin_error *err);
lin_status lin_punctuation_parse(const void *bytes, size_t n, const char *name, lin_punctuation **p, lin_error *err);
lin_status lin_punctuation_write(const lin_punctuation *p, const char *path, lin_error *err);
void lin_punctuation_destroy(lin_punctuation *p); /* NULL is fine */

/* Keys below 2^bits of the features of a gap, of a word. */
void lin_punctuation_mark_keys(const lin_gap *gap, unsigned bits, uint32_t keys[LIN_PUNCTUATION_MARK_FEATURES]);
void lin_punctuation_capital_keys(uint64_t before, int capital, uint64_t word, uint64_t after, unsigned bits,
                                  uint32_t keys[LIN_PUNCTUATION_CAPITAL_FEATURES]);

static inline size_t lin_punctuation_bytes(const lin_punctuation_header *h)
{
    return (size_t)h->n_marks * LIN_PUNCTUATION_MARK_SLOT + (size_t)h->n_capitals * LIN_PUNCTUATION_CAPITAL_SLOT;
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

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
    uint64_t names[LIN_READABLE_NAMES]; /* since begin; the newest word at its number modulo the size */
} lin_readable;

/* The model must outlive it. */
void lin_readable_begin(lin_readable *readable, const lin_punctuation *model);

/* A word in small letters and its times; NAN: not known. known: 0: outside the lexicon, written as it is, or as "[...]" if it is
 * empty. LIN_NO_MEMORY. Allocates only what is larger than all before. */
lin_status lin_readable_push(lin_readable *readable, const char *word, double start_s, double end_s, int known, lin_error *err);

/* Ends the text: the last word gets a full stop or a question mark. The next word begins a new text. */
lin_status lin_readable_finish(lin_readable *readable, lin_error *err);

/* Drops the tokens, not the words that wait. */
void lin_readable_clear(lin_readable *readable);

const char *lin_readable_token_text(const lin_readable *readable, int i);
void lin_readable_free(lin_readable *readable);

/* Class of a pause, for counts: LIN_PAUSES of them; 0: not known. */
enum { LIN_PAUSES = 11 };
int lin_readable_pause(double seconds);

#endif
