/*
 * g2p_learn.h - letter-to-sound rules learnt from a pronunciation dictionary.
 *
 * Pipeline: lexicon/dictionary -> [this] -> lexicon/ngram -> lexicon/g2p.
 * Each letter of a word is aligned with zero, one or two phones by expectation maximisation (Dempster et al. 1977; the alignment
 * of Bisani & Ney 2008 with pairs of one letter): P(phones | letter) starts uniform; each iteration counts it from all alignments
 * of all words, weighted by their probability. The most probable alignment of each pronunciation is then a sentence of pairs; the
 * rules are a modified Kneser-Ney n-gram model of these sentences.
 *
 *   lin_g2p_learn_options o = lin_g2p_learn_options_default();
 *   lin_g2p_learn(dictionary, phones, &o, &lm, &report, &err);
 *   lin_ngram_write(lm, "words.g2p", &err);
 *
 * Equal dictionaries and options give equal bytes. Threads: no shared state.
 */
#ifndef LIN_LEARN_G2P_LEARN_H
#define LIN_LEARN_G2P_LEARN_H

#include "base/status.h"
#include "lexicon/dictionary.h"
#include "lexicon/ngram.h"
#include "lexicon/phones.h"

typedef struct lin_g2p_learn_options {
    int order;      /* pairs in the longest n-grams, 1 .. LIN_NGRAM_MAX_ORDER */
    int iterations; /* of the alignment, at least 1 */
    int minimum;    /* n-grams of three or more pairs with a smaller count are left out; at least 1 */
    int hold_out;   /* words whose index is a multiple of this are held out, for tests; 0: all words are used */
} lin_g2p_learn_options;

/* Order 5, 10 iterations, minimum 2, nothing held out: 2 MB for CMUdict. */
lin_g2p_learn_options lin_g2p_learn_options_default(void);

typedef struct lin_g2p_learn_report {
    int words, pronunciations; /* learnt from */
    int left_out;              /* pronunciations that cannot be aligned: characters that are not letters, more than two phones per
                                  letter, noises */
    int letters;               /* different letters */
    int pairs;
    double bits;               /* mean of -log2 P(phones | letters) of a pronunciation in the last iteration */
} lin_g2p_learn_report;

/* Letters are a to z, or, for a set of phones of its own, those of any script and the apostrophe. report may be NULL. LIN_INVALID
 * for bad options, and for a dictionary from which nothing can be learnt; LIN_UNSUPPORTED for one with too many letters and
 * phones; LIN_NO_MEMORY. On failure *lm is NULL. */
lin_status lin_g2p_learn(const lin_dictionary *dictionary, const lin_phones *phones, const lin_g2p_learn_options *options,
                         lin_ngram **lm, lin_g2p_learn_report *report, lin_error *err);

#endif
