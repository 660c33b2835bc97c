/*
 * ngram_draft.h - a back-off n-gram model under construction: n-grams order by order, in double precision.
 *
 * Pipeline: train/learn/kneser_ney (from text), or a finished model -> [this] -> ARPA text, or a finished model.
 * lexicon/ngram holds finished models, which are small and fast; a draft is plain sorted arrays.
 *
 *   lin_ngram_draft_of(lm, &draft, &err);
 *   logp = lin_ngram_draft_logp(&draft, words, 3);          // P(words[2] | words[0], words[1]), backing off
 *   lin_ngram_draft_write_arpa(&draft, 0, file, "phones.arpa", &err);
 *   lin_ngram_draft_finish(&draft, "phones.arpa", &lm, &err);
 *
 * The n-grams of an order are sorted by their word numbers, the first word first. A valid model contains the context
 * (all words except the last) of each of its n-grams. All logarithms here are to base 10, as in ARPA files.
 *
 * Threads: one changes it, or any number read it.
 */
#ifndef LIN_LEARN_NGRAM_DRAFT_H
#define LIN_LEARN_NGRAM_DRAFT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "base/symbols.h"
#include "lexicon/ngram.h"

/* The logarithm that ARPA files give to "never": that of <s>, which is a context and not an event. */
#define LIN_NGRAM_NEVER (-99.0)

typedef struct lin_ngram_draft_level {
    size_t n;
    uint32_t *words; /* [n, order] */
    double *logp;    /* [n], log10 P(last word | others) */
    double *backoff; /* [n], log10 of the weight of the shorter context; NULL at the highest order */
    size_t *child;   /* [n + 1]: n-grams child[i] .. child[i + 1] - 1 of the next order have this as context; NULL at the highest
                      * order; made by lin_ngram_draft_link */
} lin_ngram_draft_level;

typedef struct lin_ngram_draft {
    int order;
    int unknown, begin, end; /* numbers of <unk>, <s>, </s>; -1: none */
    lin_symbols words;       /* unigram i is word i: level[0].n == words.n */
    lin_ngram_draft_level level[LIN_NGRAM_MAX_ORDER];
    int code_bits; /* of the finished model: each order above 1 has at most 2^code_bits distinct probabilities, and as many
                    * distinct weights, 4 .. 16; 0: 16. Unigrams have 4 bits more */
} lin_ngram_draft;

/* Allocates arrays for n n-grams of an order (1: unigrams), not filled; with `context` also backoff. LIN_NO_MEMORY. */
lin_status lin_ngram_draft_level_create(lin_ngram_draft_level *level, int order, size_t n, int context, lin_error *err);

/* Makes the child arrays. LIN_FORMAT if an n-gram's context is not in the draft, or n-grams are not sorted or not distinct. */
lin_status lin_ngram_draft_link(lin_ngram_draft *draft, lin_error *err);

/* The place of the n-gram of n words among those of order n, or -1. Needs the links. */
ptrdiff_t lin_ngram_draft_find(const lin_ngram_draft *draft, const uint32_t *words, int n);

/* log10 P(words[n - 1] | words[0] .. words[n - 2]) by Katz's back-off; of longer contexts only the last order - 1 words are used.
 * Needs the links. */
double lin_ngram_draft_logp(const lin_ngram_draft *draft, const uint32_t *words, int n);

/* Writes ARPA text, seven digits after the point; exactly: the fewest digits that read back as the same finished model. Messages
 * call the file `name`. LIN_IO if writing fails; LIN_NO_MEMORY. */
lin_status lin_ngram_draft_write_arpa(const lin_ngram_draft *draft, int exactly, FILE *file, const char *name, lin_error *err);

/* The n-grams of a finished model, linked. LIN_FORMAT if a packed file is damaged; LIN_NO_MEMORY. On failure it is empty. */
lin_status lin_ngram_draft_of(const lin_ngram *lm, lin_ngram_draft *draft, lin_error *err);

/* Makes a finished model; the draft is empty afterwards, also on failure. Messages call it `name`. */
lin_status lin_ngram_draft_finish(lin_ngram_draft *draft, const char *name, lin_ngram **lm, lin_error *err);

void lin_ngram_draft_free(lin_ngram_draft *draft); /* the draft is empty again */

/* Of two n-grams of n words, which comes first: below 0, 0 or above 0. */
int lin_ngram_draft_compare(const uint32_t *a, const uint32_t *b, int n);

/*
 * Entropy pruning: a smaller model with nearly the same probabilities.
 * Stolcke 1998, Entropy-based pruning of backoff language models: an n-gram (h, w) is removed if the model without it, with its
 * probability from back-off, has a perplexity (on text like the model's own) that is relatively higher by less than `threshold`:
 *
 *   D = - P(h) ( P(w|h) (log P(w|h') + log a'(h) - log P(w|h)) + (log a'(h) - log a(h)) r(h) )
 *   remove if e^D - 1 < threshold
 *
 * with r(h) = 1 - the sum of P(v|h) over the n-grams (h, v), a the back-off weight of h before, a' after, and P(h) by the model
 * itself. An n-gram that is the context of a longer one that is kept is kept too. All are compared with the whole model; then the
 * weights are computed again so that the sum of every context does not change.
 *
 * P(h) by a Kneser-Ney model is poor, because its unigrams count contexts and not words (Chelba et al. 2010, Study on interaction
 * between entropy pruning and Kneser-Ney smoothing): for models made from text, small minimum counts in train/learn/ngram_count
 * lose less.
 *
 * threshold: limit of the relative rise of the perplexity by one n-gram; 1e-9 .. 1e-5 are usual, 0 removes only n-grams without
 * effect. Unigrams are kept; an order that loses all its n-grams is removed from the model. The draft is linked, before and
 * afterwards. LIN_INVALID for a negative threshold or NaN; LIN_NO_MEMORY, and the draft is unchanged.
 */
lin_status lin_ngram_prune(lin_ngram_draft *draft, double threshold, lin_error *err);

#endif
