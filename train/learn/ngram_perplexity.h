/*
 * ngram_perplexity.h - the perplexity of a text under an n-gram model.
 *
 * Each sentence is scored from <s> to </s>. As in SRILM, words that the model lacks (and <unk> itself) are counted separately,
 * and so are words of probability 0: neither is in `logp`. logp_unknown is the score of the unknown words as <unk>.
 *
 *   lin_ngram_perplexity sum = {0};
 *   while (lines) lin_ngram_perplexity_line(lm, line, n, &sum, &err);    // or each alone, and lin_ngram_perplexity_add
 *   lin_ngram_perplexity_value(&sum, 1, 0);                   // with </s>, unknown words left out
 *
 * Threads: no shared state.
 */
#ifndef LIN_LEARN_NGRAM_PERPLEXITY_H
#define LIN_LEARN_NGRAM_PERPLEXITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/status.h"
#include "lexicon/ngram.h"

typedef struct lin_ngram_perplexity {
    uint64_t sentences, words, unknown, impossible; /* unknown and impossible: words; impossible also counts </s> */
    uint64_t ends;       /* sentences with </s>: all, or none if the model has no </s> */
    double logp;         /* natural, of the other words and </s> */
    double logp_unknown; /* natural, of the unknown words; -INFINITY if there are some and the model has no <unk> */
} lin_ngram_perplexity;

/* Adds a sentence, n bytes without an end of line. LIN_FORMAT, and nothing is added, for control characters,
 * <s> or </s> in it. */
lin_status lin_ngram_perplexity_line(const lin_ngram *lm, const char *line, size_t n, lin_ngram_perplexity *sum, lin_error *err);

void lin_ngram_perplexity_add(lin_ngram_perplexity *sum, const lin_ngram_perplexity *other);

/* exp(-logp / events). Events: words, with_end: and </s>, with_unknown: and unknown words. NaN without any. */
double lin_ngram_perplexity_value(const lin_ngram_perplexity *sum, int with_end, int with_unknown);

/* Appends the sums as members of a JSON object, with no comma before them; logarithms to base 10, null where undefined. */
void lin_ngram_perplexity_json(const lin_ngram_perplexity *sum, lin_buffer *out);

/* Appends the lines that SRILM's ngram -ppl writes for the text `name`, for scripts that read them. */
void lin_ngram_perplexity_text(const lin_ngram_perplexity *sum, const char *name, lin_buffer *out);

/* Appends words, unknown words, logarithm to base 10 and perplexity, each after a tab, and a line end. */
void lin_ngram_perplexity_columns(const lin_ngram_perplexity *sum, lin_buffer *out);

#endif
