/*
 * ngram_prune.h - a smaller n-gram model that says nearly the same: entropy pruning.
 *
 * Pipeline: lexicon/ngram_draft -> [this] -> lexicon/ngram_draft.
 * Stolcke 1998, Entropy-based pruning of backoff language models: an n-gram (h, w) is given up if the model without it, its
 * probability left to back-off, would have a perplexity (on text like the model's own) greater by less than `threshold` of it:
 *
 *   D = - P(h) ( P(w|h) (log P(w|h') + log a'(h) - log P(w|h)) + (log a'(h) - log a(h)) r(h) )
 *   give up if e^D - 1 < threshold
 *
 * with r(h) = 1 - the sum of P(v|h) over the n-grams (h, v), a the back-off weight of h before, a' after, and P(h) by the model
 * itself. N-grams that are contexts of longer ones which stay stay too. All are judged against the whole model, then the weights
 * are made anew so that every context sums to what it did.
 *
 * P(h) by a Kneser-Ney model is poor, because its unigrams count contexts and not words (Chelba et al. 2010, Study on interaction
 * between entropy pruning and Kneser-Ney smoothing): from text, small minimum counts in lexicon/ngram_count lose less.
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEXICON_NGRAM_PRUNE_H
#define LIN_LEXICON_NGRAM_PRUNE_H

#include "base/status.h"
#include "lexicon/ngram_draft.h"

/*
 * threshold: of the relative rise of the perplexity by one n-gram; 1e-9 .. 1e-5 are usual, 0 gives up nothing that costs anything.
 * Unigrams stay; an order that loses all its n-grams is no order of the model any more. The draft is linked, before and afterwards.
 * LIN_INVALID for a negative threshold or NaN; LIN_NO_MEMORY, and the draft is as before.
 */
lin_status lin_ngram_prune(lin_ngram_draft *draft, double threshold, lin_error *err);

#endif
