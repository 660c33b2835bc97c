/*
 * ngram_pairs.h - a filter of the pairs of words that a model's n-grams end in, which spares most of the searches in it.
 *
 * Pipeline: lexicon/ngram -> [this] -> lexicon/tree, which holds the bits -> decoder/words.
 * Most words that a search scores follow their context in no n-gram: the score is that of the unigram plus the context's back-off
 * weights. The filter has a bit for each pair of a context's last word and a word, which is set if an n-gram of any order above 1
 * ends in the pair. Other pairs may have the same bit (Bloom 1970, with one hash); a bit that is not set is certain. The bits of
 * 512 words in order of their spelling are in one cache line, because a search asks for words that begin alike.
 *
 *   bits = lin_calloc(lin_ngram_pairs_size(lm), sizeof *bits);
 *   lin_ngram_pairs_fill(lm, bits);
 *   lin_ngram_pairs pairs = {bits, lin_ngram_pairs_size(lm)};
 *   lin_ngram_context context = lin_ngram_context_of(lm, state);
 *   logp = lin_ngram_pairs_lack(&pairs, &context, word) ? lin_ngram_unseen(lm, &context, word, &next)
 *                                                       : lin_ngram_score(lm, state, word, &next);
 *
 * Threads: nothing here changes but the bits while they are filled.
 */
#ifndef LIN_LEXICON_NGRAM_PAIRS_H
#define LIN_LEXICON_NGRAM_PAIRS_H

#include "lexicon/ngram.h"

enum { LIN_NGRAM_PAIRS_LINE = 8 };

typedef struct lin_ngram_pairs {
    const uint64_t *bits;
    size_t n; /* a power of two, LIN_NGRAM_PAIRS_LINE at least; 0: no filter, every pair may exist */
} lin_ngram_pairs;

/* What the scores of all words after a state have in common. */
typedef struct lin_ngram_context {
    lin_ngram_state last; /* of the last word alone; 0: it has none, and the filter knows nothing of this context */
    float backoffs;       /* sum of the back-off weights down to the empty context */
} lin_ngram_context;

/* Number of 64-bit words of the filter: 4 to 8 bits for each bigram. 0 for a model of unigrams. */
size_t lin_ngram_pairs_size(const lin_ngram *lm);

/* Fills bits [lin_ngram_pairs_size], which are 0 before. About 10 ns for each n-gram. */
void lin_ngram_pairs_fill(const lin_ngram *lm, uint64_t *bits);

lin_ngram_context lin_ngram_context_of(const lin_ngram *lm, lin_ngram_state state);

/* Which of n 64-bit words has the bit of a pair: bit `word % 64`. Packed lexicons hold the bits: a change needs a new version. */
static inline size_t lin_ngram_pairs_at(size_t n, lin_ngram_state last, uint32_t word)
{
    const uint64_t key = ((uint64_t)last << 32 | word / 512) * UINT64_C(0x9E3779B97F4A7C15);
    const size_t line = (size_t)(key >> 32) & (n / LIN_NGRAM_PAIRS_LINE - 1);
    return line * LIN_NGRAM_PAIRS_LINE + word / 64 % LIN_NGRAM_PAIRS_LINE;
}

/* 1: no n-gram ends in the last word of the context and the word. */
static inline int lin_ngram_pairs_lack(const lin_ngram_pairs *pairs, const lin_ngram_context *context, int word)
{
    if (!pairs->n || !context->last || word < 0) return 0;
    return !(pairs->bits[lin_ngram_pairs_at(pairs->n, context->last, (uint32_t)word)] >> (word & 63) & 1);
}

/* lin_ngram_score of a word below lin_ngram_words after a context that lacks it, to the bit. */
float lin_ngram_unseen(const lin_ngram *lm, const lin_ngram_context *context, int word, lin_ngram_state *next);

#endif
