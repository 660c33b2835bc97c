/*
 * ngram_mix.h - linear interpolation of two back-off n-gram models, and the weights that fit a text best.
 *
 * Pipeline: two finished models, a text -> [this] -> train/learn/ngram_draft -> ARPA text, or a packed model.
 * P(w | h) = weight Pa(w | h) + (1 - weight) Pb(w | h) for every n-gram (h, w) that either model has, each model backing off as
 * it does; the weights of the contexts are computed so that each sums to 1 (Stolcke 2002, SRILM's static interpolation). A word
 * that a model lacks has probability 0 there; in a context it is that model's <unk>.
 *
 *   lin_ngram_fit fit = {.a = general, .b = domain};
 *   while (lines) lin_ngram_fit_line(&fit, line, n, &err);
 *   weight = lin_ngram_fit_weight(&fit);                       // 0 .. 1, of a: expectation maximisation
 *   lin_ngram_mix(general, domain, weight, &draft, &err);
 *   lin_ngram_fit_free(&fit);
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_NGRAM_MIX_H
#define LIN_LEARN_NGRAM_MIX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "train/learn/ngram_draft.h"
#include "lexicon/ngram.h"

/*
 * weight: that of a, 0 .. 1. The order is the longer of the two, the words are those of both. The draft is linked, its words are
 * in the order of their bytes. LIN_INVALID for another weight; LIN_MISMATCH if one model calls unknown words <unk> and the other
 * <UNK>; LIN_NO_MEMORY. On failure the draft is empty.
 */
lin_status lin_ngram_mix(const lin_ngram *a, const lin_ngram *b, double weight, lin_ngram_draft *draft, lin_error *err);

/* Probabilities of a text by both models. Read only for callers; lin_ngram_fit_line writes it. */
typedef struct lin_ngram_fit {
    const lin_ngram *a, *b;
    uint64_t sentences, words; /* words: without unknown */
    uint64_t unknown;          /* words that neither model has: they do not affect the weights */
    uint64_t only_a, only_b;   /* words that the other model lacks: probability 0 there */
    double *p;                 /* [n, 2] probabilities of each known word and, if both models have it, </s> */
    size_t n, capacity;        /* of p, in numbers */
} lin_ngram_fit;

/* Adds a sentence, n bytes without an end of line. LIN_FORMAT, and nothing is added, for control characters, <s> or </s> in it;
 * LIN_NO_MEMORY. */
lin_status lin_ngram_fit_line(lin_ngram_fit *fit, const char *line, size_t n, lin_error *err);

/* The weight of a for which the mixture predicts the text best, by expectation maximisation from 0.5. 0.5 without events. */
double lin_ngram_fit_weight(const lin_ngram_fit *fit);

/* The perplexity of the mixture, over words that both have and </s>; weight 1 or 0: of one model alone. NaN without events. */
double lin_ngram_fit_perplexity(const lin_ngram_fit *fit, double weight);

void lin_ngram_fit_free(lin_ngram_fit *fit); /* the models stay */

#endif
