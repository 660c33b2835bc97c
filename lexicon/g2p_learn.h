/*
 * g2p_learn.h - letter-to-sound rules learnt from a pronunciation dictionary.
 *
 * Pipeline: lexicon/dictionary -> [this] -> lexicon/ngram -> lexicon/g2p_rules.
 * Each letter of a word is aligned with zero, one or two phones by expectation maximisation (Dempster et al. 1977; the alignment of
 * Bisani & Ney 2008 with pairs of one letter): P(phones | letter) starts even and is counted anew from all alignments of all words,
 * weighted by their probability. The likeliest alignment of each pronunciation is then a sentence of pairs, and a modified
 * Kneser-Ney n-gram model of these sentences is the rules.
 *
 *   lin_g2p_learn_options o = lin_g2p_learn_options_default();
 *   lin_g2p_learn(dictionary, phones, &o, &lm, &report, &err);
 *   lin_ngram_write(lm, "english.g2p", &err);
 *
 * The same dictionary and options give the same bytes. Threads: no shared state.
 */
#ifndef LIN_LEXICON_G2P_LEARN_H
#define LIN_LEXICON_G2P_LEARN_H

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"

typedef struct lin_g2p_learn_options {
    int order;      /* pairs in the longest n-grams, 1 .. LIN_NGRAM_MAX_ORDER */
    int iterations; /* of the alignment, at least 1 */
    int minimum;    /* n-grams of three pairs and more that come less often are left out; at least 1 */
    int hold_out;   /* words with an index that is 0 modulo this are not learnt, to be tested on; 0: all are learnt */
} lin_g2p_learn_options;

/* Order 5, 10 iterations, n-grams that come twice, nothing held out: of CMUdict 2 MB. */
lin_g2p_learn_options lin_g2p_learn_options_default(void);

typedef struct lin_g2p_learn_report {
    int words, pronunciations; /* learnt from */
    int left_out;              /* pronunciations that cannot be aligned: other characters than letters, more than two phones a letter */
    int pairs;
    double bits;               /* a pronunciation's alignment costs on average, -log2 P(phones | letters), in the last iteration */
} lin_g2p_learn_report;

/* report may be NULL. LIN_INVALID for bad options, and for a dictionary from which nothing can be learnt; LIN_NO_MEMORY. On failure
 * *lm is NULL. */
lin_status lin_g2p_learn(const lin_dictionary *dictionary, const lin_phones *phones, const lin_g2p_learn_options *options,
                         lin_ngram **lm, lin_g2p_learn_report *report, lin_error *err);

#endif
