// word_context.c - phrases to states of the word search, with the words that the lexicon lacks; see word_context.h.

#include "decoder/word_context.h"

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

// While a context is built: phrases as word numbers, and the words outside the lexicon with their pronunciations.
typedef struct builder {
    const lin_tree *tree;
    lin_g2p *g2p;
    lin_symbols lacking;
    int *tokens, *lengths;
    const int **phrases;
    double *bonuses;
    int *labels; // LIN_PRONUNCIATION_MAX for each lacking word
    lin_tree_entry *entries;
    int n_tokens;
} builder;

static lin_status pronounce(builder *b, const char *word, size_t n, lin_error *err)
{
    char shown[LIN_QUOTE];
    lin_g2p_how how;
    const int index = b->lacking.n - 1;
    int *labels = b->labels + (size_t)index * LIN_PRONUNCIATION_MAX;
    if (!b->g2p) {
        return lin_fail(err, LIN_INVALID, "the phrase's word '%s' is not in the lexicon and has no pronunciation",
                        lin_quote(shown, word, n));
    }
    lin_status status = lin_g2p_pronounce(b->g2p, word, n, labels, LIN_PRONUNCIATION_MAX, &b->entries[index].n_labels, &how, err);
    b->entries[index].labels = labels;
    return status != LIN_OK ? lin_fail_at(err, status, "the phrase's word '%s'", lin_quote(shown, word, n)) : LIN_OK;
}

// The number of a word: the lexicon's, or a number after them.
static lin_status number(builder *b, const char *word, size_t n, int *token, lin_error *err)
{
    char lower[LIN_WORD_MAX], shown[LIN_QUOTE];
    *token = lin_tree_find(b->tree, word, n);
    if (*token >= 0) return LIN_OK;
    if (n > LIN_WORD_MAX) {
        return lin_fail(err, LIN_INVALID, "the phrase's word '%s' has %zu bytes; at most %d", lin_quote(shown, word, n), n,
                        LIN_WORD_MAX);
    }
    n = lin_unicode_lower_text(lower, word, n);
    const int before = b->lacking.n;
    int index;
    lin_status status = lin_symbols_add(&b->lacking, lower, n, &index, err);
    if (status == LIN_OK && index == before) status = pronounce(b, lower, n, err);
    *token = b->tree->words.n + index;
    return status;
}

static lin_status add_phrase(builder *b, const lin_word_phrase *phrase, int index, lin_error *err)
{
    const char *at = phrase->text, *end = at + strlen(at), *field;
    size_t n;
    b->phrases[index] = b->tokens + b->n_tokens;
    b->bonuses[index] = phrase->bonus;
    while (lin_field_next(&at, end, &field, &n)) {
        lin_status status = number(b, field, n, &b->tokens[b->n_tokens], err);
        if (status != LIN_OK) return status;
        b->n_tokens++;
        b->lengths[index]++;
    }
    return LIN_OK;
}

static size_t count_words(const lin_word_phrase *phrases, int n)
{
    size_t words = 0, bytes;
    for (int i = 0; i < n; i++) {
        const char *at = phrases[i].text, *end = at + strlen(at), *field;
        while (lin_field_next(&at, end, &field, &bytes)) words++;
    }
    return words;
}

static lin_status begin(builder *b, size_t n_words, int n, lin_error *err)
{
    b->tokens = lin_alloc(n_words, sizeof *b->tokens);
    b->lengths = lin_calloc((size_t)n, sizeof *b->lengths);
    b->phrases = lin_alloc((size_t)n, sizeof *b->phrases);
    b->bonuses = lin_alloc((size_t)n, sizeof *b->bonuses);
    b->labels = lin_alloc(n_words * LIN_PRONUNCIATION_MAX, sizeof *b->labels);
    b->entries = lin_alloc(n_words, sizeof *b->entries);
    if (b->tokens && b->lengths && b->phrases && b->bonuses && b->labels && b->entries) return LIN_OK;
    return lin_no_memory(err, "a context of phrases", n_words * LIN_PRONUNCIATION_MAX * sizeof *b->labels);
}

static void end(builder *b)
{
    lin_symbols_free(&b->lacking);
    lin_free(b->tokens);
    lin_free(b->lengths);
    lin_free((void *)b->phrases);
    lin_free(b->bonuses);
    lin_free(b->labels);
    lin_free(b->entries);
}

static lin_status fill(lin_word_context *c, builder *b, const lin_word_phrase *phrases, int n, lin_error *err)
{
    const size_t n_words = count_words(phrases, n);
    if (n_words > INT_MAX / 1024) return lin_fail(err, LIN_INVALID, "a context of %zu words", n_words);
    lin_status status = begin(b, n_words, n, err);
    for (int i = 0; status == LIN_OK && i < n; i++) status = add_phrase(b, &phrases[i], i, err);
    if (status == LIN_OK) status = lin_context_create(b->phrases, b->lengths, b->bonuses, n, &c->phrases, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < b->lacking.n; i++) b->entries[i].word = lin_symbols_text(&b->lacking, i);
    if ((status = lin_tree_create_list(b->entries, b->lacking.n, b->tree->n_outputs, NULL, NULL, &c->extra, err)))
        return status;
    c->id = lin_context_id(c->phrases) ^ c->extra->fingerprint * 0x9E3779B97F4A7C15u;
    if (!c->id) c->id = 1;
    return LIN_OK;
}

lin_status lin_word_context_create(const lin_tree *tree, const lin_word_phrase *phrases, int n, lin_g2p *g2p,
                                   lin_word_context **context, lin_error *err)
{
    *context = NULL;
    if (n < 0) return lin_fail(err, LIN_INVALID, "a context of %d phrases", n);
    lin_word_context *c = lin_calloc(1, sizeof *c);
    if (!c) return lin_no_memory(err, "a context of phrases", sizeof *c);
    builder b = {.tree = tree, .g2p = g2p};
    c->first = tree->words.n;
    lin_status status = fill(c, &b, phrases, n, err);
    end(&b);
    if (status != LIN_OK) lin_word_context_destroy(c);
    else *context = c;
    return status;
}

void lin_word_context_destroy(lin_word_context *c)
{
    if (!c) return;
    lin_context_destroy(c->phrases);
    lin_tree_destroy(c->extra);
    lin_free(c);
}
