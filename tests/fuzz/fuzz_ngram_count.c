// Language models of any text: counting, smoothing, pruning, packing. The first byte chooses the order and whether there is
// <unk>, the second the least counts, the third the threshold; a first line that begins with '%' is a vocabulary.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "train/learn/kneser_ney.h"
#include "train/learn/ngram_perplexity.h"
#include "train/learn/ngram_prune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    if (status != err->status || !err->message[0]) abort();
}

static void count(lin_ngram_counter *counter, const char *text, size_t n)
{
    lin_lines lines = {0};
    for (lin_lines_begin(&lines, text, n); lin_lines_next(&lines);) {
        lin_error err = {0};
        const char *at = lines.text + 1, *word;
        size_t n_word;
        if (lines.number == 1 && lines.n && lines.text[0] == '%') {
            while (lin_field_next(&at, lines.text + lines.n, &word, &n_word))
                check(lin_ngram_counter_word(counter, word, n_word, &err), &err);
        } else {
            check(lin_ngram_counter_line(counter, lines.text, lines.n, &err), &err);
        }
    }
}

// Probabilities are finite; after the empty context and after each word they sum to 1.
static void check_draft(const lin_ngram_draft *draft, double tolerance)
{
    size_t n = draft->level[0].n;
    for (int k = 0; k < draft->order; k++) {
        const lin_ngram_draft_level *level = &draft->level[k];
        for (size_t i = 0; i < level->n; i++) {
            if (!isfinite(level->logp[i]) || level->logp[i] > 1e-6 || (level->backoff && !isfinite(level->backoff[i]))) abort();
        }
    }
    for (uint32_t first = 0; first <= n && n < 60; first++) {
        double sum = 0;
        if ((int)first == draft->end) continue;
        for (uint32_t w = 0; w < n; w++) {
            uint32_t words[2] = {first, w};
            if ((int)w != draft->begin)
                sum += pow(10, lin_ngram_draft_logp(draft, first < n ? words : words + 1, first < n ? 2 : 1));
        }
        if (!(fabs(sum - 1) < tolerance)) abort();
    }
}

static void try_model(lin_ngram_counts *counts, double threshold, const char *text, size_t n)
{
    lin_error err = {0};
    lin_ngram_draft draft;
    lin_ngram *lm;
    lin_ngram_perplexity sum = {0};
    if (lin_kneser_ney(counts, NULL, &draft, NULL, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-9);
    if (lin_ngram_prune(&draft, threshold, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-6);
    if (lin_ngram_draft_finish(&draft, "x", &lm, &err) != LIN_OK || lin_ngram_draft_of(lm, &draft, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-3);
    lin_lines lines = {0};
    for (lin_lines_begin(&lines, text, n); lin_lines_next(&lines);) {
        check(lin_ngram_perplexity_line(lm, lines.text, lines.n, &sum, &err), &err);
    }
    if (isnan(sum.logp) || sum.unknown + sum.impossible > sum.words) abort();
    lin_ngram_draft_free(&draft);
    lin_ngram_destroy(lm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    unsigned long live = lin_memory_live();
    lin_error err = {0};
    lin_ngram_counter *counter;
    lin_ngram_counts counts;
    lin_ngram_count_options how = {.order = 1 + data[0] % 9, .unknown = data[0] & 16, .occurrences = data[0] >> 6 & 1};
    for (int k = 0; k < how.order; k++) how.minimum[k] = k ? data[1] & 3 : data[1] >> 4 & 3;
    const char *text = (const char *)data + 3;
    lin_status status = lin_ngram_counter_create(&how, &counter, &err);
    check(status, &err);
    if (status == LIN_OK) {
        count(counter, text, size - 3);
        status = lin_ngram_counter_finish(counter, &counts, &err);
        check(status, &err);
        if (status == LIN_OK) {
            try_model(&counts, pow(10, -(data[2] % 16)), text, size - 3);
            lin_ngram_counts_free(&counts);
        }
    }
    lin_ngram_counter_destroy(counter);
    if (lin_memory_live() != live) abort();
    return 0;
}
