/*
 * pieces_learn.h - learns a list of pieces: byte pair encoding of words with their counts (Sennrich et al. 2016).
 *
 * All words are spelled; then, again and again, the two neighbours that occur together most often become one piece, and all words
 * are merged as lexicon/pieces.h does. Of equally frequent pairs the one whose pieces come first in the list wins. The order of
 * the words does not matter.
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_PIECES_LEARN_H
#define LIN_LEARN_PIECES_LEARN_H

#include <stdint.h>

#include "lexicon/pieces.h"

/*
 * words: each spelled in a-z and apostrophes; counts [words->n]. count: pieces, LIN_PIECES_FIRST..LIN_PIECES_MOST; there are
 * fewer if no pair occurs twice. LIN_INVALID; LIN_FORMAT for another word; LIN_NO_MEMORY. *pieces is destroyed by the caller.
 */
lin_status lin_pieces_learn(const lin_symbols *words, const uint64_t *counts, int count, lin_pieces **pieces, lin_error *err);

/* Appends the names with a space between two: what lin_pieces_create reads. */
void lin_pieces_list(const lin_pieces *pieces, lin_buffer *text);

#endif
