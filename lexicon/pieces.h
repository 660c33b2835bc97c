/*
 * pieces.h - words as sequences of a few hundred to a few thousand pieces, for language models of words.
 *
 * The pieces are those of byte pair encoding (Sennrich et al. 2016). Piece 0 is <s>, which begins and ends a sentence; then come
 * "_", which begins each word, and the 27 characters of words, a-z and the apostrophe; then the merged pieces, the most frequent
 * first. A word is spelled "_word", and the pair that makes the first piece of the list is merged, again and again. So the list,
 * separated by spaces, defines everything; it is stored as the symbols of a set of tokens and as the phones of its model.
 *
 *   lin_pieces_create("<s> _ ' a b ... z th _th ...", &pieces, &err);
 *   lin_pieces_encode(pieces, "the", 3, out, capacity, &n, &err);
 *   lin_pieces_words(pieces, out, n, &text);                         // "the"
 *   lin_pieces_destroy(pieces);
 *
 * Threads: immutable; any number.
 */
#ifndef LIN_LEXICON_PIECES_H
#define LIN_LEXICON_PIECES_H

#include "base/buffer.h"
#include "base/status.h"
#include "base/symbols.h"

enum {
    LIN_PIECES_FIRST = 29, /* pieces that each list begins with */
    LIN_PIECES_MOST = 4096,
    LIN_PIECE_BYTES = 63 /* of a name, as of a model's symbol */
};

typedef struct lin_pieces {
    lin_symbols names; /* <s>, the marker, the characters, then in the order of merging */
} lin_pieces;

/* The list of the LIN_PIECES_FIRST pieces alone: every word is spelled. */
extern const char lin_pieces_characters[];

/* names: the list, separated by single spaces. LIN_MISMATCH if it is not one of pieces; LIN_NO_MEMORY. */
lin_status lin_pieces_create(const char *names, lin_pieces **pieces, lin_error *err);
void lin_pieces_destroy(lin_pieces *pieces); /* NULL is fine */

/* Merges at [n] as far as the list goes and returns the new n. */
int lin_pieces_merge(const lin_pieces *pieces, int *at, int n);

/* LIN_FORMAT for an empty word, one over LIN_WORD_MAX bytes, and for other characters than a-z and the apostrophe. */
lin_status lin_pieces_check(const char *word, size_t n, lin_error *err);

/* The pieces of a word of n bytes, to out [capacity]: n + 1 are enough. As lin_pieces_check; LIN_TOO_SMALL. */
lin_status lin_pieces_encode(const lin_pieces *pieces, const char *word, size_t n, int *out, int capacity, int *n_out,
                             lin_error *err);

/* Appends the words of n pieces, with a space between two. <s> ends a word and is not written. */
void lin_pieces_words(const lin_pieces *pieces, const int *at, int n, lin_buffer *text);

#endif
