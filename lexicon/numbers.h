/*
 * numbers.h - spoken numbers as digits (inverse text normalisation), by the rules of a language.
 *
 * Pipeline: words -> [this, by lexicon/written] -> lexicon/readable.
 *
 *   twenty three                      23              zweiundvierzig                 42
 *   nineteen eighty four              1984            drei komma eins vier           3,14
 *   two dollars and fifty cents       $2.50           cincuenta por ciento           50 %
 *
 * The sets of rules that say how numbers are spoken (written.h) are used backwards: all numbers that a set says with the words
 * that come. The section [spoken] has what is written as digits, a line each; the first line that fits counts, with as many words
 * as it can have (docs/formats.md):
 *
 *   [spoken]
 *   {number} dollar|dollars and {cents} cent|cents = ${1:#,}.{2:two}
 *
 * What no line has stays as it is.
 * Threads: any.
 */
#ifndef LIN_LEXICON_NUMBERS_H
#define LIN_LEXICON_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "lexicon/written.h"

/* 1 if what the rules write as digits can contain this word, in small letters: "twenty", "and", "percent". rules: NULL for
 * none. */
int lin_number_word(const lin_written *rules, const char *word);

/*
 * Reads the number that begins at the first of n words. `before` is the word before it, or "". Appends its digits to `out` and
 * returns the number of words that they stand for; 0 and nothing appended if there is none, or if it stays as it is. Looks at
 * words behind the number, at most one behind the last lin_number_word. `keep` gets how many words belong together as they are
 * where 0 is returned, at least 1: "five thirty" is not to be read from its second word on.
 */
int lin_number_read(const lin_written *rules, const char *const *words, int n, const char *before, lin_buffer *out, int *keep);

/* The number that a set of the rules says with all of these words. 0: there is none. */
int lin_number_value(const lin_written *rules, const char *set, const char *words, uint64_t *value);

/* How a title is written before a name, of the section [titles]: "Mr." for "mister". NULL: it is none. */
const char *lin_number_title(const lin_written *rules, const char *word);

#endif
