/*
 * marks.h - marks in a transcript that are not words: [laughs], <noise>, (coughs).
 *
 * Pipeline: text -> [this] -> lexicon/transcript. Texts for alignment, training and scoring have marks of sounds and of the
 * transcriber; they are skipped and counted:
 *
 *   [anything]  <anything>          square and angle brackets
 *   (coughs)  {sighs}  *laughter*   only if the first word names a sound or a silence (laugh, cough, breath, noise, music,
 *                                   silence, inaudible, ...) and there are at most three: ordinary parentheses hold words
 *   &=laughs                        CHAT's form
 *
 * A mark is at most LIN_MARK_MAX bytes long and within one line;
 * brackets without an end separate words, as other punctuation does.
 */
#ifndef LIN_LEXICON_MARKS_H
#define LIN_LEXICON_MARKS_H

#include <stddef.h>

enum { LIN_MARK_MAX = 80 };

/* Length in bytes of the mark at the beginning of text [n]; 0 if there is none. */
size_t lin_mark_length(const char *text, size_t n);

#endif
