/*
 * ngram_support.h - helpers for the tests of n-gram estimation: models of a text in memory, ARPA text in memory, the golden text.
 */
#ifndef LIN_TESTS_LEXICON_NGRAM_SUPPORT_H
#define LIN_TESTS_LEXICON_NGRAM_SUPPORT_H

#include "base/textfile.h"
#include "train/learn/kneser_ney.h"
#include "train/learn/ngram_count.h"
#include "train/learn/ngram_draft.h"
#include "tests/lexicon/support.h"

#define GOLDEN "tests/golden/"

// Counts of a text's first `most` lines. vocabulary: words separated by commas, or NULL.
SUPPORT lin_status try_count(const lin_ngram_count_options *how, const char *vocabulary, const char *text, int most,
                             lin_ngram_counts *counts, lin_error *err)
{
    lin_ngram_counter *counter;
    lin_status status = lin_ngram_counter_create(how, &counter, err);
    for (const char *word = vocabulary; status == LIN_OK && word && *word;) {
        size_t n = strcspn(word, ",");
        status = lin_ngram_counter_word(counter, word, n, err);
        word += n + (word[n] == ',');
    }
    lin_lines lines = {0};
    lin_lines_begin(&lines, text, strlen(text));
    while (status == LIN_OK && lines.number < most && lin_lines_next(&lines)) {
        status = lin_ngram_counter_line(counter, lines.text, lines.n, err);
    }
    if (status == LIN_OK) status = lin_ngram_counter_finish(counter, counts, err);
    lin_ngram_counter_destroy(counter);
    return status;
}

SUPPORT lin_status try_model(const lin_ngram_count_options *how, const char *vocabulary, const char *text, int most,
                             lin_ngram_draft *draft, lin_kneser_ney_note *notes, lin_error *err)
{
    lin_ngram_counts counts = {0};
    lin_status status = try_count(how, vocabulary, text, most, &counts, err);
    if (status == LIN_OK) status = lin_kneser_ney(&counts, draft, notes, err);
    lin_ngram_counts_free(&counts);
    return status;
}

// ARPA text, released with free. exactly: as lin_ngram_draft_write_arpa.
SUPPORT char *arpa_of(const lin_ngram_draft *draft, int exactly)
{
    char *text = NULL;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    OK(lin_ngram_draft_write_arpa(draft, exactly, file, "x.arpa", &err));
    fclose(file);
    return text;
}

SUPPORT char *arpa_of_model(const lin_ngram *lm)
{
    lin_ngram_draft draft;
    OK(lin_ngram_draft_of(lm, &draft, &err));
    char *text = arpa_of(&draft, 1);
    lin_ngram_draft_free(&draft);
    return text;
}

SUPPORT char *golden_file(const char *name)
{
    char *text;
    size_t n;
    OK(lin_text_read(name, &text, &n, &err));
    return text;
}

// Converts words to word numbers; an unknown word becomes <unk>. Returns how many words there are.
SUPPORT int numbers_of(const lin_ngram_draft *draft, const char *text, size_t n, uint32_t *numbers)
{
    const char *at = text, *word;
    size_t n_word;
    int count = 0;
    while (lin_field_next(&at, text + n, &word, &n_word)) {
        int index = lin_symbols_find(&draft->words, word, n_word);
        if (index < 0) index = draft->unknown;
        ck_assert_int_ge(index, 0);
        numbers[count++] = (uint32_t)index;
    }
    return count;
}

// For every context of the model, and for contexts of two random words, the probabilities of all words sum to 1.
SUPPORT void check_sums(const lin_ngram_draft *draft, double tolerance)
{
    uint32_t words[LIN_NGRAM_MAX_ORDER + 2] = {0};
    for (int k = 0; k < draft->order; k++) {
        size_t n = k ? draft->level[k - 1].n : 1;
        for (size_t i = 0; i < n + 20; i++) {
            int length = i < n ? k : 2;
            for (int j = 0; j < length; j++) {
                words[j] = i < n ? draft->level[k - 1].words[i * (size_t)k + (size_t)j]
                                 : (uint32_t)((i * 7919 + (size_t)j * 104729) % draft->level[0].n);
            }
            if (length && (int)words[length - 1] == draft->end) continue; // nothing follows
            double sum = 0;
            for (uint32_t w = 0; w < draft->level[0].n; w++) {
                words[length] = w;
                if ((int)w != draft->begin) sum += pow(10, lin_ngram_draft_logp(draft, words, length + 1));
            }
            test_require(fabs(sum - 1) < tolerance, "order %d, context %zu: the sum is 1 + %g", k, i, sum - 1);
        }
    }
}

#endif
