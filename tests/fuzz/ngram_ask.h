/*
 * ngram_ask.h - makes every kind of query to an untrusted language model and aborts if a result is out of range.
 */
#ifndef LIN_TESTS_FUZZ_NGRAM_ASK_H
#define LIN_TESTS_FUZZ_NGRAM_ASK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lexicon/ngram.h"

// honest: made from text, so that each of its words is found.
static inline void ngram_ask(const lin_ngram *lm, int honest)
{
    lin_ngram_state state = lin_ngram_begin(lm), next;
    uint32_t words = (uint32_t)lin_ngram_words(lm), states = lin_ngram_states(lm);
    if (!words || !states || state >= states || LIN_NGRAM_EMPTY >= states || lin_ngram_order(lm) < 1) abort();
    for (uint64_t i = 0; i < 100; i++) {
        int word = (int)lin_random_below(1, 2 * i, words + 2) - 1;
        float logp = lin_ngram_score(lm, state, word, &next), unigram = lin_ngram_unigram(lm, word);
        if (isnan(logp) || next >= states || isnan(unigram) || unigram > 0 || isnan(lin_ngram_end(lm, state))) abort();
        const char *text = lin_ngram_word(lm, word);
        if (!text != (word < 0 || (uint32_t)word >= words)) abort();
        if (text && lin_ngram_find(lm, text, strlen(text)) != word && honest) abort();
        state = i % 4 ? next : lin_random_below(1, 2 * i + 1, states);
    }
}

#endif
