// ngram_perplexity.c - see ngram_perplexity.h.

#include "lexicon/ngram_perplexity.h"

#include <math.h>
#include <string.h>

#include "base/textfile.h"
#include "lexicon/ngram_count.h"

// ARPA files write the logarithm of 0 as -99 to base 10.
static const double impossible = -98.5 * 2.302585092994045684;

lin_status lin_ngram_perplexity_line(const lin_ngram *lm, const char *line, size_t n, lin_ngram_perplexity *sum, lin_error *err)
{
    lin_ngram_perplexity one = {.sentences = 1};
    const char *at = line, *word;
    size_t n_word;
    lin_status status = lin_ngram_check_line(line, n, err);
    if (status != LIN_OK) return status;
    lin_ngram_state state = lin_ngram_begin(lm);
    int unknown = lin_ngram_find(lm, "<unk>", 5);
    if (unknown < 0) unknown = lin_ngram_find(lm, "<UNK>", 5);
    while (lin_field_next(&at, line + n, &word, &n_word)) {
        int index = lin_ngram_find(lm, word, n_word);
        double logp = (double)lin_ngram_score(lm, state, index, &state);
        one.words++;
        if (index == LIN_NGRAM_UNKNOWN || index == unknown) {
            one.unknown++;
            one.logp_unknown += logp;
        } else if (logp < impossible) {
            one.impossible++;
        } else {
            one.logp += logp;
        }
    }
    if (lin_ngram_find(lm, "</s>", 4) >= 0) {
        one.logp += (double)lin_ngram_end(lm, state);
        one.ends = 1;
    }
    lin_ngram_perplexity_add(sum, &one);
    return LIN_OK;
}

void lin_ngram_perplexity_add(lin_ngram_perplexity *sum, const lin_ngram_perplexity *other)
{
    sum->sentences += other->sentences;
    sum->words += other->words;
    sum->unknown += other->unknown;
    sum->impossible += other->impossible;
    sum->ends += other->ends;
    sum->logp += other->logp;
    sum->logp_unknown += other->logp_unknown;
}

double lin_ngram_perplexity_value(const lin_ngram_perplexity *sum, int with_end, int with_unknown)
{
    uint64_t events = sum->words - sum->impossible - (with_unknown ? 0 : sum->unknown) + (with_end ? sum->ends : 0);
    double logp = sum->logp + (with_unknown ? sum->logp_unknown : 0);
    return events ? exp(-logp / (double)events) : (double)NAN;
}
