/*
 * punctuation.h - the full stops, commas, question marks and capitals that belong to plain words.
 *
 * Pipeline: words and pauses -> [this] -> lexicon/readable.
 *
 * Two log-linear models over hashed features, learnt from books (train/learn/punctuation_learn.h): which mark stands in the gap
 * between two words, from the words around it, the beginning of the sentence and of the clause, and their lengths; and whether a
 * word has a capital inside a sentence. A feature is one of 2^bits keys; each slot of the file has the weights of the most
 * informative key that falls into it. The length of the pause is independent of the words given the mark: its logarithmic
 * likelihood ratio is added (Stolcke et al. 1998, "Automatic detection of sentence boundaries and disfluencies based on recognized
 * words").
 *
 *   lin_punctuation_open("words.punctuation", &p, &err);
 *   lin_punctuation_marks(p, &gap, scores);          // the largest is the mark
 *   lin_punctuation_destroy(p);
 *
 * Threads: immutable, any number.
 */
#ifndef LIN_LEXICON_PUNCTUATION_H
#define LIN_LEXICON_PUNCTUATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "lexicon/prose.h"

typedef struct lin_punctuation lin_punctuation;
struct lin_written; /* lexicon/written.h */

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

/* Scores of the marks, natural logarithm but for a constant: scores[LIN_MARK_NONE] is 0. */
void lin_punctuation_marks(const lin_punctuation *p, const lin_gap *gap, float scores[LIN_MARKS]);

/* Above 0: the word has a capital inside a sentence. before: the word before it, 0: none; capital: it has one. */
float lin_punctuation_capital(const lin_punctuation *p, uint64_t before, int capital, uint64_t word, uint64_t after);

/* LIN_FORMAT: damaged, or no such model; LIN_IO; LIN_NO_MEMORY. parse copies the bytes; name is for messages. */
lin_status lin_punctuation_open(const char *path, lin_punctuation **p, lin_error *err);
lin_status lin_punctuation_parse(const void *bytes, size_t n, const char *name, lin_punctuation **p, lin_error *err);
lin_status lin_punctuation_write(const lin_punctuation *p, const char *path, lin_error *err);
void lin_punctuation_destroy(lin_punctuation *p); /* NULL is fine */

/* The rules of the language, by which numbers are written as digits (lexicon/numbers.h); NULL: they stay words. The model owns
 * them. Set before it is shared. */
void lin_punctuation_take_numbers(lin_punctuation *p, struct lin_written *numbers);
const struct lin_written *lin_punctuation_numbers(const lin_punctuation *p);

#endif
