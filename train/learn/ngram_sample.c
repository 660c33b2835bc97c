// ngram_sample.c - drawing words from a model; see ngram_sample.h.

#include "train/learn/ngram_sample.h"

#include <math.h>

#include "base/hash.h"
#include "base/memory.h"
#include "lexicon/ngram_file.h"

// Most rejected draws for one word, over all contexts; then one is accepted in any case, for models whose probabilities do not
// sum to 1.
enum { TRIES = 10000 };

struct lin_ngram_sampler {
    const lin_ngram *lm;
    double *sums[LIN_NGRAM_MAX_ORDER + 1]; // [count + 1] from order 1: sum of the probabilities of all n-grams before
    int begin;                             // <s>, -1: none
};

lin_status lin_ngram_sampler_create(const lin_ngram *lm, lin_ngram_sampler **sampler, lin_error *err)
{
    *sampler = NULL;
    if (lm->end_word < 0) return lin_fail(err, LIN_UNSUPPORTED, "the model has no </s>: its sentences would not end");
    lin_ngram_sampler *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a sampler", sizeof *s);
    s->lm = lm;
    s->begin = lin_ngram_find(lm, "<s>", 3);
    for (int k = 1; k <= lm->order; k++) {
        const uint32_t count = lm->levels[k].count;
        s->sums[k] = lin_alloc((size_t)count + 1, sizeof *s->sums[k]);
        if (!s->sums[k]) {
            lin_ngram_sampler_destroy(s);
            return lin_no_memory(err, "a sampler", ((size_t)count + 1) * sizeof *s->sums[k]);
        }
        s->sums[k][0] = 0;
        for (uint32_t i = 0; i < count; i++) s->sums[k][i + 1] = s->sums[k][i] + exp((double)lin_ngram_gram_logp(lm, k, i));
    }
    *sampler = s;
    return LIN_OK;
}

void lin_ngram_sampler_destroy(lin_ngram_sampler *s)
{
    if (!s) return;
    for (int k = 1; k <= LIN_NGRAM_MAX_ORDER; k++) lin_free(s->sums[k]);
    lin_free(s);
}

// The n-gram among first .. end-1 (at least one) whose part of the sum contains x.
static uint32_t at_sum(const double *sums, uint32_t first, uint32_t end, double x)
{
    uint32_t low = first, high = end - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (sums[middle + 1] > x) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static uint32_t draw_word(const lin_ngram_sampler *s, lin_ngram_draws *draws, lin_ngram_state state, int *tries)
{
    const lin_ngram *lm = s->lm;
    const double x = lin_random_uniform(draws->key, draws->counter++);
    if (!state) return at_sum(s->sums[1], 0, lm->levels[1].count, x * s->sums[1][lm->levels[1].count]);
    const int k = lin_ngram_state_level(lm, state);
    const double *sums = s->sums[k + 1];
    uint32_t first, end, word, place;
    lin_ngram_children(lm, k, state, &first, &end);
    if (first < end && x < sums[end] - sums[first]) {
        return lin_ngram_gram_word(lm, k + 1, at_sum(sums, first, end, sums[first] + x));
    }
    // From the shorter context, draw only words that this one lacks: reject others.
    const lin_ngram_state shorter = lin_ngram_link(lm, k, state);
    do {
        word = draw_word(s, draws, shorter, tries);
    } while (lin_ngram_child(lm, k, state, word, &place) && ++*tries < TRIES);
    return word;
}

int lin_ngram_sampler_draw(const lin_ngram_sampler *s, lin_ngram_draws *draws, lin_ngram_state *state, int *word)
{
    int tries = 0;
    if (*state >= s->lm->n_states) *state = 0;
    do {
        *word = (int)draw_word(s, draws, *state, &tries);
    } while ((*word == s->lm->unknown || *word == s->begin) && ++tries < TRIES);
    lin_ngram_score(s->lm, *state, *word, state);
    return *word == s->lm->end_word;
}

int lin_ngram_sampler_sentence(const lin_ngram_sampler *s, lin_ngram_draws *draws, int most, lin_buffer *text)
{
    lin_ngram_state state = lin_ngram_begin(s->lm);
    int word, n = 0;
    while (n < most && !lin_ngram_sampler_draw(s, draws, &state, &word)) {
        if (n++) lin_buffer_char(text, ' ');
        lin_buffer_text(text, lin_ngram_word(s->lm, word));
    }
    if (n) lin_buffer_char(text, '\n');
    return n;
}
