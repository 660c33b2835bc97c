/*
 * kneser_ney.h - makes a back-off model from counts of n-grams: modified Kneser-Ney smoothing, interpolated, or absolute
 * discounting.
 *
 * Pipeline: train/learn/ngram_count -> [this] -> train/learn/ngram_draft -> ARPA text.
 * Chen & Goodman 1998, An empirical study of smoothing techniques for language modeling, section 3: a is the count of an n-gram
 * at the highest order and for n-grams that begin with <s>, otherwise the number of distinct words before it:
 *
 *   P(w | h) = (a(h w) - D(a(h w))) / a(h .) + g(h) P(w | h'),   g(h) = sum over w of D(a(h w)) / a(h .)
 *   D(1) = 1 - 2 Y n2 / n1,  D(2) = 2 - 3 Y n3 / n2,  D(3 and more) = 3 - 4 Y n4 / n3,  Y = n1 / (n1 + 2 n2)         (eq. 26)
 *
 * where h' is h without its first word and n1 .. n4 count the n-grams of that order with a = 1 .. 4. Below the unigrams is the
 * uniform distribution over all words, </s> and <unk>, without <s>; <unk> has only this probability if the text has no <unk>. An
 * n-gram that is too rare is not an entry of the model; its whole count goes into g(h), so every context still sums to 1.
 *
 * If the counts are occurrences in every order (lin_ngram_count_options), the same equations are interpolated absolute
 * discounting (section 2.6 there). Such a model loses less by entropy pruning: its shorter n-grams have the frequencies of the
 * text, on which the pruning relies, and which replace a longer n-gram that is removed (Chelba et al. 2010).
 *
 *   lin_kneser_ney_note notes[LIN_NGRAM_MAX_ORDER];
 *   lin_kneser_ney(&counts, &draft, notes, &err);
 *   for (k = 1; k <= draft.order; k++) if (notes[k - 1].fallback) ... report it ...
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_KNESER_NEY_H
#define LIN_LEARN_KNESER_NEY_H

#include "base/status.h"
#include "train/learn/ngram_count.h"
#include "train/learn/ngram_draft.h"

typedef struct lin_kneser_ney_note {
    uint64_t counts[4];  /* n1 .. n4 */
    double discounts[3]; /* as used */
    int fallback;        /* 1: 0.5, 1 and 1.5, as KenLM's lmplz --discount_fallback, because n1, n2 or n3 is 0 or a discount is
                            not in 0 .. its count */
} lin_kneser_ney_note;

/*
 * The order is lower than that of the counts if everything above is too rare. The draft takes the words from `counts` and keeps
 * their numbers; the rest of `counts` is unchanged. The draft is linked (lin_ngram_draft_link).
 *   notes  [LIN_NGRAM_MAX_ORDER], from unigrams on; may be NULL
 * LIN_NO_MEMORY. On failure the draft is empty.
 */
lin_status lin_kneser_ney(lin_ngram_counts *counts, lin_ngram_draft *draft, lin_kneser_ney_note *notes, lin_error *err);

#endif
