// ngram_draft_model.c - converts finished models to drafts and back; see ngram_draft.h.

#include <math.h>

#include "base/memory.h"
#include "learn/ngram_draft.h"
#include "lexicon/ngram_block.h"

static const double LN10 = 2.302585092994045684;

static lin_status copy_words(const lin_ngram *lm, lin_symbols *words, lin_error *err)
{
    lin_status status = lin_symbols_reserve(words, lin_ngram_words(lm), lm->text_bytes, err);
    for (int i = 0; status == LIN_OK && i < lin_ngram_words(lm); i++) {
        const char *text = lin_ngram_word(lm, i);
        int index;
        status = lin_symbols_add(words, text, strlen(text), &index, err);
        if (status == LIN_OK && index != i) status = lin_fail(err, LIN_FORMAT, "the model is damaged: a word appears twice");
    }
    return status;
}

// The n-grams of the order above order k of `lower`; the words of the context are known, the children's own words are read.
static lin_status copy_children(const lin_ngram *lm, int k, const lin_ngram_draft_level *lower, lin_ngram_draft_level *level,
                                lin_error *err)
{
    size_t width = (size_t)k, at = 0;
    for (uint32_t j = 0; j < lower->n; j++) {
        lin_ngram_state state;
        uint32_t first, end;
        if (!lin_ngram_is_inner(lm, k, j, &state)) continue;
        lin_ngram_children(lm, k, state, &first, &end);
        if (first != at) break;
        for (; at < end; at++) {
            memcpy(level->words + at * (width + 1), lower->words + j * width, width * sizeof *level->words);
            level->words[at * (width + 1) + width] = lin_ngram_gram_word(lm, k + 1, (uint32_t)at);
        }
    }
    return at == level->n ? LIN_OK : lin_fail(err, LIN_FORMAT, "the model is damaged: %d-grams are in the wrong place", k + 1);
}

static lin_status copy_level(const lin_ngram *lm, int k, lin_ngram_draft *draft, lin_error *err)
{
    lin_ngram_draft_level *level = &draft->level[k - 1];
    lin_status status = lin_ngram_draft_level_create(level, k, lm->levels[k].count, k < lm->order, err);
    if (status != LIN_OK) return status;
    for (uint32_t i = 0; i < level->n; i++) {
        lin_ngram_state state;
        level->logp[i] = (double)lin_ngram_gram_logp(lm, k, i) / LN10;
        if (level->backoff)
            level->backoff[i] = lin_ngram_is_inner(lm, k, i, &state) ? (double)lin_ngram_backoff(lm, k, state) / LN10 : 0;
        if (isfinite(level->logp[i]) && (!level->backoff || isfinite(level->backoff[i]))) continue;
        return lin_fail(err, LIN_FORMAT, "the model is damaged: a probability or weight is not a number");
    }
    if (k > 1) return copy_children(lm, k - 1, &draft->level[k - 2], level, err);
    for (uint32_t i = 0; i < level->n; i++) level->words[i] = i;
    return LIN_OK;
}

lin_status lin_ngram_draft_of(const lin_ngram *lm, lin_ngram_draft *draft, lin_error *err)
{
    *draft = (lin_ngram_draft){
        .order = lm->order, .unknown = lm->unknown, .begin = lin_ngram_find(lm, "<s>", 3), .end = lm->end_word};
    lin_status status = copy_words(lm, &draft->words, err);
    for (int k = 1; status == LIN_OK && k <= lm->order; k++) status = copy_level(lm, k, draft, err);
    if (status == LIN_OK) status = lin_ngram_draft_link(draft, err);
    if (status != LIN_OK) lin_ngram_draft_free(draft);
    return status;
}

static float *natural(const double *log10s, size_t n)
{
    float *values = lin_alloc(n, sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = (float)(log10s[i] * LN10);
    return values;
}

// Copies the n-grams level by level.
static lin_status move_level(lin_ngram_draft_level *level, int k, lin_ngram_table *table, lin_error *err)
{
    if (level->n > LIN_NGRAM_MAX_COUNT) return lin_fail(err, LIN_INVALID, "there are too many %d-grams: %zu", k, level->n);
    table->count = (uint32_t)level->n;
    table->logp = natural(level->logp, level->n);
    if (level->backoff) table->backoff = natural(level->backoff, level->n);
    if (!table->logp || (level->backoff && !table->backoff)) return lin_no_memory(err, "n-grams", level->n * sizeof(float));
    if (k > 1) { // unigram i is word i in both
        table->words = level->words;
        level->words = NULL;
    }
    lin_ngram_draft_level_free(level);
    return LIN_OK;
}

lin_status lin_ngram_draft_finish(lin_ngram_draft *draft, const char *name, lin_ngram **lm, lin_error *err)
{
    lin_ngram_tables tables = {.order = draft->order, .words = draft->words, .code_bits = draft->code_bits};
    lin_ngram_fault fault;
    lin_status status = LIN_OK;
    *lm = NULL;
    draft->words = (lin_symbols){0};
    for (int k = 1; status == LIN_OK && k <= draft->order; k++) {
        status = move_level(&draft->level[k - 1], k, &tables.tables[k], err);
    }
    lin_ngram_draft_free(draft);
    if (status == LIN_OK) status = lin_ngram_build(&tables, name, lm, &fault, err);
    lin_ngram_tables_free(&tables);
    return status;
}
