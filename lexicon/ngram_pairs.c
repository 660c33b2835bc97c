// ngram_pairs.c - filling the filter of pairs, and scores of words that it lacks; see ngram_pairs.h.

#include "lexicon/ngram_pairs.h"

#include "lexicon/ngram_block.h"

size_t lin_ngram_pairs_size(const lin_ngram *lm)
{
    if (lm->order < 2) return 0;
    size_t n = LIN_NGRAM_PAIRS_LINE;
    while (64 * n < 4 * (size_t)lm->levels[2].count) n *= 2;
    return n;
}

void lin_ngram_pairs_fill(const lin_ngram *lm, uint64_t *bits)
{
    const size_t n = lin_ngram_pairs_size(lm);
    for (int k = 1; k < lm->order; k++) {
        for (uint32_t place = 0; place < lm->levels[k].count; place++) {
            lin_ngram_state state, last;
            uint32_t at, end;
            if (!lin_ngram_is_inner(lm, k, place, &state)) continue;
            if (!lin_ngram_is_inner(lm, 1, lin_ngram_gram_word(lm, k, place), &last)) continue;
            for (lin_ngram_children(lm, k, state, &at, &end); at < end; at++) {
                const uint32_t word = lin_ngram_gram_word(lm, k + 1, at);
                bits[lin_ngram_pairs_at(n, last, word)] |= UINT64_C(1) << (word & 63);
            }
        }
    }
}

// The weights are added in the order of lin_ngram_score.
lin_ngram_context lin_ngram_context_of(const lin_ngram *lm, lin_ngram_state state)
{
    lin_ngram_context c = {0};
    if (state >= lm->n_states) state = 0;
    while (state) {
        const int k = lin_ngram_state_level(lm, state);
        c.backoffs += lin_ngram_backoff(lm, k, state);
        if (k == 1) c.last = state;
        state = lin_ngram_link(lm, k, state);
    }
    return c;
}

float lin_ngram_unseen(const lin_ngram *lm, const lin_ngram_context *context, int word, lin_ngram_state *next)
{
    if ((uint32_t)word >= lm->n_words) return lin_ngram_score(lm, 0, word, next);
    *next = 0;
    lin_ngram_is_inner(lm, 1, (uint32_t)word, next);
    return context->backoffs + lin_ngram_gram_logp(lm, 1, (uint32_t)word);
}
