/*
 * numbers.h - spoken English numbers as digits (inverse text normalisation).
 *
 * Pipeline: words -> [this] -> lexicon/readable.
 *
 *   twenty three                      23              three thousand four hundred and five   3,405
 *   the twenty first                  21st            nineteen eighty four                   1984
 *   three point one four              3.14            two point five million                 2.5 million
 *   five percent                      5%              two dollars and fifty cents            $2.50
 *   ten thirty am                     10:30 am        five five five one two three four      5551234
 *
 * Numbers below ten stay words unless a unit follows; so do "half past", fractions, "a hundred", and what could be several
 * things, such as "five thirty". No tables to load, the same in every locale.
 * Threads: any.
 */
#ifndef LIN_LEXICON_NUMBERS_H
#define LIN_LEXICON_NUMBERS_H

#include <stddef.h>

#include "base/buffer.h"

/* 1 if a number can contain this word, in small letters: "twenty", "and", "percent". */
int lin_number_word(const char *word);

/*
 * Reads the number that begins at the first of n words. `before` is the word before it, or "". Appends its digits to `out` and
 * returns the number of words that they stand for; 0 and nothing appended if there is none, or if it stays as it is. Looks at
 * words behind the number, at most one behind the last lin_number_word. `keep` gets how many words belong together as they are
 * where 0 is returned, at least 1: "five thirty" is not to be read from its second word on.
 */
int lin_number_read(const char *const *words, int n, const char *before, lin_buffer *out, int *keep);

#endif
