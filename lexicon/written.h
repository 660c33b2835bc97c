/*
 * written.h - what a text writes otherwise than it is said: numbers, years, times, amounts, ordinals, signs, abbreviations. Rules
 * in a file give the words, and of spoken numbers the digits; a language is a file.
 *
 * Pipeline: a text -> [this] -> lexicon/transcript (the first reading), align/spoken (all of them: the sound decides);
 * words -> [this] -> lexicon/readable.
 *
 *   lin_written_load("share/linnet/en/numbers.txt", &written, &err);
 *   lin_readings readings = {0};                                         // reused
 *   lin_written_match(written, text, n, at, &end, &readings, &err);      // end 0: nothing at this byte
 *   for (i = 0; i < readings.n; i++) ... readings.items[i] ...           // "nineteen eighty four", "one thousand ..."
 *   lin_readings_free(&readings);
 *   used = lin_number_read(written, words, n, "", &out, &keep);          // "twenty", "three": 2 words, "23"
 *   lin_written_destroy(written);
 *
 * The file (docs/formats.md) has sets of rules, each with the form of ICU's RuleBasedNumberFormat:
 *
 *   [cardinal]
 *   0: zero                         from 0 on
 *   20: twenty[ >]                  from 20 on: what is in [] only if a rest is left, what is in () only if none is
 *   100: < hundred[ >and>] | ...    < is the number divided by the rule's power of ten, > the rest, by the same set; <name< and
 *                                   >name> by another, =name= is the whole number; | separates readings, the most usual first
 *   1100/100: <cardinal< >pair>     a divisor of its own
 *
 * one section of what may stand in a text, in which {N} is a whole number, {D} digits, {Y} a year of four digits, {H} an hour,
 * {M} two digits below 60, {C} any two digits:
 *
 *   [written]
 *   ${N}.{D} = {1:cardinal} point {2*digit} dollars        {1:set} the first of them by a set, {2*set} the second digit by digit
 *   Mr. = mister
 *
 * and one of what is said and written as digits, a line each. There the sets are used backwards: {number} matches the words of
 * any number of the set. The first line that fits counts, with as many words as it can have:
 *
 *   [spoken]
 *   {number} dollar|dollars and {cents} cent|cents = ${1:#,}.{2:two}
 *
 * The longest match counts. A "+" in a reading joins two parts of one word ("ein+und+zwanzig").
 * Threads: immutable once made, shared by all; readings belong to one thread.
 */
#ifndef LIN_LEXICON_WRITTEN_H
#define LIN_LEXICON_WRITTEN_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/status.h"

typedef struct lin_written lin_written;

/* Readings of one match at most; values of numbers are below 10^15, and longer ones are read digit by digit if the rules can. */
enum { LIN_READINGS_MOST = 24 };

typedef struct lin_readings {
    char **items; /* words separated by single blanks; [n], the most usual first */
    int n, capacity;
} lin_readings;

/* LIN_FORMAT with name:line: what is no rule, a set that is not defined, bases that do not increase, over 4096 rules. LIN_IO,
 * LIN_NO_MEMORY. On failure *written is NULL. */
lin_status lin_written_load(const char *path, lin_written **written, lin_error *err);
lin_status lin_written_parse(const char *text, size_t n, const char *name, lin_written **written, lin_error *err);
void lin_written_destroy(lin_written *written); /* NULL is fine */

/*
 * The form that begins at byte `at` of text [n]: *end is the byte behind it, 0 if there is none. Replaces the readings. A match
 * neither begins nor ends in the middle of a word or number. LIN_NO_MEMORY.
 */
lin_status lin_written_match(const lin_written *written, const char *text, size_t n, size_t at, size_t *end,
                             lin_readings *readings, lin_error *err);

/* Bytes of the blank at the beginning of a text, 0 if there is none. Those that join a number and its unit, U+00A0, U+202F and
 * U+2009, are blanks too. */
size_t lin_written_blank(const char *text, size_t n);

void lin_readings_clear(lin_readings *readings); /* keeps the list's memory */
void lin_readings_free(lin_readings *readings);

/* ---- spoken numbers as digits ---------------------------------------------------------------------------------------------- */

/* 1 if what the rules write as digits can contain this word, in small letters: "twenty", "and", "percent". rules: NULL for
 * none. */
int lin_number_word(const lin_written *rules, const char *word);

/*
 * Reads the number that begins at the first of n words. `before` is the word before it, or "". Appends its digits to `out` and
 * returns the number of words that they stand for; 0 and nothing appended if there is none, or if it stays as it is. Looks at
 * words behind the number, at most one behind the last lin_number_word. Where it returns 0, `keep` is the number of words that
 * stay as they are, at least 1: "five thirty" must not be read from its second word on.
 */
int lin_number_read(const lin_written *rules, const char *const *words, int n, const char *before, lin_buffer *out, int *keep);

/* How a title is written before a name, of the section [titles]: "Mr." for "mister". NULL: it is none. */
const char *lin_number_title(const lin_written *rules, const char *word);

#endif
