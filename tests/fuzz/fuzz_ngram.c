// Language models from any bytes.
#include "tests/fuzz/fuzz.h"

#include "base/hash.h"
#include "base/textfile.h"
#include "lexicon/ngram.h"
#include "lexicon/ngram_file.h"
#include "train/learn/kneser_ney.h"
#include "train/learn/ngram_mix.h"
#include "train/learn/ngram_perplexity.h"
#include "train/learn/ngram_draft.h"

// Every kind of query to an untrusted language model: results are in range.
// honest: made from text, so that each of its words is found.
static void ngram_ask(const lin_ngram *lm, int honest)
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

/* ---- arpa ------------------------------------------------------------------------------------------------------------------ */

// ARPA language models from any bytes, compressed if they begin like gzip: the resulting model answers queries, and written as
// text it reads back equal.
static void try_text(const char *text, size_t n)
{
    lin_error err = {0};
    lin_ngram *lm, *again;
    lin_status status = lin_ngram_parse(text, n, "fuzz.arpa", &lm, &err);
    check_status(status, &err);
    if (status != LIN_OK) return;
    ngram_ask(lm, 1);
    char *written = NULL;
    size_t n_written;
    FILE *file = open_memstream(&written, &n_written);
    lin_ngram_draft draft;
    if (!file || lin_ngram_draft_of(lm, &draft, &err)) abort();
    if (lin_ngram_draft_write_arpa(&draft, 1, file, "memory", &err) || fclose(file)) abort();
    lin_ngram_draft_free(&draft);
    if (lin_ngram_parse(written, n_written, "again", &again, &err)) abort();
    if (lin_ngram_fingerprint(again) != lin_ngram_fingerprint(lm)) abort();
    free(written);
    // Mixed with itself: every number is finite, and it is a model again.
    if (lin_ngram_mix(lm, lm, 0.5, &draft, &err)) abort();
    for (int k = 0; k < draft.order; k++) {
        for (size_t i = 0; i < draft.level[k].n; i++) {
            if (!isfinite(draft.level[k].logp[i]) || (draft.level[k].backoff && !isfinite(draft.level[k].backoff[i]))) abort();
        }
    }
    lin_ngram_destroy(again);
    if (lin_ngram_draft_finish(&draft, "mix", &again, &err)) abort();
    lin_ngram_destroy(again);
    lin_ngram_destroy(lm);
}

void fuzz_arpa(const uint8_t *data, size_t size)
{
    if (lin_gzip_is(data, size)) {
        lin_error err = {0};
        char *text;
        size_t n;
        lin_status status = lin_gzip_expand(data, size, 1 << 20, "fuzz.gz", &text, &n, &err);
        check_status(status, &err);
        if (status == LIN_OK) try_text(text, n);
        lin_free(text);
    } else {
        try_text((const char *)data, size);
    }
}

/* ---- ngram ----------------------------------------------------------------------------------------------------------------- */

// Packed language models from any bytes: unchanged, and once more with the length and checksums that fit the header, so that the
// code after these checks is reached.
static void try_block(const void *bytes, size_t n)
{
    lin_error err = {0};
    lin_ngram *lm;
    lin_status status = lin_ngram_unpack(bytes, n, "fuzz.lm", &lm, &err);
    if (status != LIN_OK) {
        if ((status != LIN_FORMAT && status != LIN_UNSUPPORTED) || err.status != status || !err.message[0] || lm) abort();
        return;
    }
    ngram_ask(lm, 0);
    FILE *null = fopen("/dev/null", "w");
    lin_ngram_draft draft;
    if (!null) abort();
    if (lin_ngram_draft_of(lm, &draft, &err) == LIN_OK && lin_ngram_draft_write_arpa(&draft, 1, null, "null", &err)) abort();
    lin_ngram_draft_free(&draft);
    fclose(null);
    lin_ngram_destroy(lm);
}

// The size that the header's counts require; 0 if the counts or the size are out of range.
static size_t size_of(const uint8_t *data)
{
    lin_ngram lm = {.order = (int)(lin_ngram_u32(data + LIN_NGRAM_AT_ORDER) % 16)};
    lm.text_bytes = lin_ngram_u32(data + LIN_NGRAM_AT_TEXT);
    if (lm.order < 1 || lm.order > LIN_NGRAM_MAX_ORDER || lm.text_bytes > 1 << 20) return 0;
    for (int k = 1; k <= lm.order; k++) {
        const uint8_t *at = data + LIN_NGRAM_AT_LEVELS + 16 * (k - 1);
        lm.levels[k] = (lin_ngram_level){.count = lin_ngram_u32(at),
                                         .inner = lin_ngram_u32(at + 4),
                                         .logp_bits = lin_ngram_u32(at + 8),
                                         .backoff_bits = lin_ngram_u32(at + 12)};
        const lin_ngram_level *level = &lm.levels[k];
        if (level->count > 1 << 16 || level->inner > 1 << 16 || level->logp_bits > 12 || level->backoff_bits > 12) return 0;
    }
    if (!lm.levels[1].count) return 0;
    lin_ngram_lay_out(&lm);
    return lm.size <= 1 << 20 ? lm.size : 0;
}

void fuzz_ngram(const uint8_t *data, size_t size)
{
    try_block(data, size);
    if (size < LIN_NGRAM_HEADER) return;
    size_t n = size_of(data);
    if (n) {
        unsigned char *block = lin_calloc(n, 1);
        if (!block) return;
        memcpy(block, data, size < n ? size : n);
        memcpy(block + LIN_NGRAM_AT_SIZE, &n, sizeof n);
        lin_ngram_put_checksums(block, n);
        try_block(block, n);
        lin_free(block);
    }
}

/* ---- ngram_count ----------------------------------------------------------------------------------------------------------- */

// Language models of any text: counting, smoothing, pruning, packing. The first byte chooses the order and whether there is
// <unk>, the second the least counts, the third the threshold; a first line that begins with '%' is a vocabulary.
static void count(lin_ngram_counter *counter, const char *text, size_t n)
{
    lin_lines lines = {0};
    for (lin_lines_begin(&lines, text, n); lin_lines_next(&lines);) {
        lin_error err = {0};
        const char *at = lines.text + 1, *word;
        size_t n_word;
        if (lines.number == 1 && lines.n && lines.text[0] == '%') {
            while (lin_field_next(&at, lines.text + lines.n, &word, &n_word))
                check_status(lin_ngram_counter_word(counter, word, n_word, &err), &err);
        } else {
            check_status(lin_ngram_counter_line(counter, lines.text, lines.n, &err), &err);
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
    if (lin_kneser_ney(counts, &draft, NULL, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-9);
    if (lin_ngram_prune(&draft, threshold, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-6);
    if (lin_ngram_draft_finish(&draft, "x", &lm, &err) != LIN_OK || lin_ngram_draft_of(lm, &draft, &err) != LIN_OK) abort();
    check_draft(&draft, 1e-3);
    lin_lines lines = {0};
    for (lin_lines_begin(&lines, text, n); lin_lines_next(&lines);) {
        check_status(lin_ngram_perplexity_line(lm, lines.text, lines.n, &sum, &err), &err);
    }
    if (isnan(sum.logp) || sum.unknown + sum.impossible > sum.words + sum.ends) abort();
    lin_ngram_draft_free(&draft);
    lin_ngram_destroy(lm);
}

void fuzz_ngram_count(const uint8_t *data, size_t size)
{
    if (size < 3) return;
    lin_error err = {0};
    lin_ngram_counter *counter;
    lin_ngram_counts counts;
    lin_ngram_count_options how = {.order = 1 + data[0] % 9, .unknown = data[0] & 16, .occurrences = data[0] >> 6 & 1};
    for (int k = 0; k < how.order; k++) how.minimum[k] = k ? data[1] & 3 : data[1] >> 4 & 3;
    const char *text = (const char *)data + 3;
    lin_status status = lin_ngram_counter_create(&how, &counter, &err);
    check_status(status, &err);
    if (status == LIN_OK) {
        count(counter, text, size - 3);
        status = lin_ngram_counter_finish(counter, &counts, &err);
        check_status(status, &err);
        if (status == LIN_OK) {
            try_model(&counts, pow(10, -(data[2] % 16)), text, size - 3);
            lin_ngram_counts_free(&counts);
        }
    }
    lin_ngram_counter_destroy(counter);
}
