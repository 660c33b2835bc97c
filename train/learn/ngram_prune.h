/*
 * ngram_prune.h - entropy pruning: a smaller n-gram model with nearly the same probabilities.
 *
 * Pipeline: train/learn/ngram_draft -> [this] -> train/learn/ngram_draft.
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
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_NGRAM_PRUNE_H
#define LIN_LEARN_NGRAM_PRUNE_H

#include "base/status.h"
#include "train/learn/ngram_draft.h"

/*
 * threshold: limit of the relative rise of the perplexity by one n-gram; 1e-9 .. 1e-5 are usual, 0 removes only n-grams without
 * effect. Unigrams are kept; an order that loses all its n-grams is removed from the model. The draft is linked, before and
 * afterwards. LIN_INVALID for a negative threshold or NaN; LIN_NO_MEMORY, and the draft is unchanged.
 */
lin_status lin_ngram_prune(lin_ngram_draft *draft, double threshold, lin_error *err);

#endif
