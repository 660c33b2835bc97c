// ngram_perplexity.c - see ngram_perplexity.h.

#include "train/learn/ngram_perplexity.h"

#include <math.h>
#include <string.h>

#include "base/textfile.h"
#include "lexicon/ngram_file.h"
#include "train/learn/ngram_count.h"

// ARPA files write the logarithm of 0 as -99 to base 10.
static const double impossible = -98.5 * 2.302585092994045684;

lin_status lin_ngram_perplexity_line(const lin_ngram *lm, const char *line, size_t n, lin_ngram_perplexity *sum, lin_error *err)
{
    lin_ngram_perplexity one = {.sentences = 1};
    const char *at = line, *word;
    size_t n_word;
    LIN_TRY(lin_ngram_check_line(line, n, err));
    lin_ngram_state state = lin_ngram_begin(lm);
    while (lin_field_next(&at, line + n, &word, &n_word)) {
        int index = lin_ngram_find(lm, word, n_word);
        double logp = (double)lin_ngram_score(lm, state, index, &state);
        one.words++;
        if (index == LIN_NGRAM_UNKNOWN || index == lm->unknown) {
            one.unknown++;
            one.logp_unknown += logp;
        } else if (logp < impossible) {
            one.impossible++;
        } else {
            one.logp += logp;
        }
    }
    if (lin_ngram_find(lm, "</s>", 4) >= 0) {
        const double logp = (double)lin_ngram_end(lm, state);
        one.ends = 1;
        if (logp < impossible) one.impossible++;
        else one.logp += logp;
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
    // as SRILM does, impossible ends are subtracted from the words of ppl1
    int64_t events = (int64_t)(sum->words - sum->impossible - (with_unknown ? 0 : sum->unknown) + (with_end ? sum->ends : 0));
    double logp = sum->logp + (with_unknown ? sum->logp_unknown : 0);
    return events > 0 ? exp(-logp / (double)events) : (double)NAN;
}

/* ---- reports --------------------------------------------------------------------------------------------------------------- */

static double base_10(double logp) { return logp / log(10); }

// `none` is written for a value that is too large or not a number.
static void put_number(lin_buffer *out, const char *name, double value, int digits, const char *none)
{
    lin_buffer_text(out, name);
    if (isfinite(value) && fabs(value) < 1e15) lin_buffer_fixed(out, value, digits);
    else lin_buffer_text(out, none);
}

void lin_ngram_perplexity_json(const lin_ngram_perplexity *sum, lin_buffer *out)
{
    lin_buffer_json_format(out, "'sentences': %lld, 'words': %lld, 'unknown': %lld, 'impossible': %lld",
                           (long long)sum->sentences, (long long)sum->words, (long long)sum->unknown, (long long)sum->impossible);
    put_number(out, ", \"log10\": ", base_10(sum->logp), 6, "null");
    put_number(out, ", \"perplexity\": ", lin_ngram_perplexity_value(sum, 1, 0), 6, "null");
    put_number(out, ", \"perplexity_of_words\": ", lin_ngram_perplexity_value(sum, 0, 0), 6, "null");
    put_number(out, ", \"log10_with_unknown\": ", base_10(sum->logp + sum->logp_unknown), 6, "null");
    put_number(out, ", \"perplexity_with_unknown\": ", lin_ngram_perplexity_value(sum, 1, 1), 6, "null");
    put_number(out, ", \"perplexity_of_words_with_unknown\": ", lin_ngram_perplexity_value(sum, 0, 1), 6, "null");
}

// As SRILM's ngram -ppl writes it, for scripts that read that.
void lin_ngram_perplexity_text(const lin_ngram_perplexity *sum, const char *name, lin_buffer *out)
{
    lin_buffer_format(out, "%s: %lld sentences, %lld words, %lld OOVs\n%lld", name, (long long)sum->sentences,
                      (long long)sum->words, (long long)sum->unknown, (long long)sum->impossible);
    put_number(out, " zeroprobs, logprob= ", base_10(sum->logp), 4, "undefined");
    put_number(out, " ppl= ", lin_ngram_perplexity_value(sum, 1, 0), 4, "undefined");
    put_number(out, " ppl1= ", lin_ngram_perplexity_value(sum, 0, 0), 4, "undefined");
    lin_buffer_char(out, '\n');
    if (!sum->unknown || !isfinite(sum->logp_unknown)) return;
    put_number(out, "OOVs as <unk>: logprob= ", base_10(sum->logp + sum->logp_unknown), 4, "undefined");
    put_number(out, " ppl= ", lin_ngram_perplexity_value(sum, 1, 1), 4, "undefined");
    put_number(out, " ppl1= ", lin_ngram_perplexity_value(sum, 0, 1), 4, "undefined");
    lin_buffer_char(out, '\n');
}

void lin_ngram_perplexity_columns(const lin_ngram_perplexity *sum, lin_buffer *out)
{
    lin_buffer_format(out, "\t%lld\t%lld", (long long)sum->words, (long long)sum->unknown);
    put_number(out, "\t", base_10(sum->logp), 4, "undefined");
    put_number(out, "\t", lin_ngram_perplexity_value(sum, 1, 0), 4, "undefined");
    lin_buffer_char(out, '\n');
}
