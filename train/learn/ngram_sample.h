/*
 * ngram_sample.h - sentences drawn from an n-gram model, to read or to make other models from.
 *
 * Pipeline: lexicon/ngram -> [this] -> text, as of "linnet ngram generate".
 *
 *   lin_ngram_sampler_create(lm, &sampler, &err);
 *   state = lin_ngram_begin(lm);
 *   while (!lin_ngram_sampler_draw(sampler, &draws, &state, &word)) ... lin_ngram_word(lm, word) ...
 *   lin_ngram_sampler_destroy(sampler);
 *
 * A word is drawn with its probability P(w | state), without a pass over the vocabulary: one of the n-grams that continue the
 * context, or else, from the shorter context, a word that does not. <unk> and <s> are never drawn; the other words share their
 * probability.
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_LEARN_NGRAM_SAMPLE_H
#define LIN_LEARN_NGRAM_SAMPLE_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/ngram.h"

typedef struct lin_ngram_sampler lin_ngram_sampler;

/* lm must outlive it. Takes 8 bytes for each n-gram. LIN_UNSUPPORTED for a model without </s>, whose sentences would not end. */
lin_status lin_ngram_sampler_create(const lin_ngram *lm, lin_ngram_sampler **sampler, lin_error *err);
void lin_ngram_sampler_destroy(lin_ngram_sampler *sampler); /* NULL is fine */

/* The next number to draw: of lin_random_uniform of base/hash.h. */
typedef struct lin_ngram_draws {
    uint64_t key, counter;
} lin_ngram_draws;

/* Draws the word after *state and advances *state. Returns 1 at the end of the sentence: *word is </s>. */
int lin_ngram_sampler_draw(const lin_ngram_sampler *sampler, lin_ngram_draws *draws, lin_ngram_state *state, int *word);

/* Draws a sentence of at most `most` words and appends it, words separated by blanks, with a line end; nothing where it has no
 * word. Returns the number of its words. */
int lin_ngram_sampler_sentence(const lin_ngram_sampler *sampler, lin_ngram_draws *draws, int most, lin_buffer *text);

#endif
