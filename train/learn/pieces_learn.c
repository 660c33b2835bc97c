// pieces_learn.c - see pieces_learn.h.

#include "train/learn/pieces_learn.h"

#include <string.h>

#include "base/memory.h"

typedef struct learner {
    const lin_symbols *words;
    const uint64_t *counts;
    lin_pieces *pieces;
    int *at;         // the pieces of all words, each with room for its bytes and the marker
    size_t *begin;   // [words]
    int *n;          // [words]
    uint64_t *pairs; // [count, count] how often the two are neighbours
    size_t count;
} learner;

static lin_status spell(learner *l, lin_error *err)
{
    const size_t n = (size_t)l->words->n;
    size_t all = 0;
    l->begin = lin_calloc(n + 1, sizeof *l->begin);
    l->n = lin_calloc(n + 1, sizeof *l->n);
    l->pairs = lin_calloc(l->count * l->count, sizeof *l->pairs);
    if (!l->begin || !l->n || !l->pairs) return lin_no_memory(err, "pairs of pieces", l->count * l->count * sizeof *l->pairs);
    for (size_t i = 0; i < n; i++) l->begin[i] = all, all += l->words->items[i].n + 1;
    l->at = lin_alloc(all + 1, sizeof *l->at);
    if (!l->at) return lin_no_memory(err, "pieces of words", all * sizeof *l->at);
    lin_status status = LIN_OK;
    for (size_t i = 0; i < n && status == LIN_OK; i++)
        status = lin_pieces_encode(l->pieces, lin_symbols_text(l->words, (int)i), l->words->items[i].n, l->at + l->begin[i],
                                   (int)l->words->items[i].n + 1, &l->n[i], err);
    return status;
}

// Adds the pairs of a word to the counts; take: subtracts them, before a merge changes the word.
static void count_pairs(learner *l, size_t word, int take)
{
    const int *at = l->at + l->begin[word];
    const lin_symbol *names = l->pieces->names.items;
    for (int i = 0; i + 1 < l->n[word]; i++) {
        if (names[at[i]].n + names[at[i + 1]].n > LIN_PIECE_BYTES) continue;
        uint64_t *pair = &l->pairs[(size_t)at[i] * l->count + (size_t)at[i + 1]];
        *pair = take ? *pair - l->counts[word] : *pair + l->counts[word];
    }
}

static int has_pair(const learner *l, size_t word, int left, int right)
{
    const int *at = l->at + l->begin[word];
    for (int i = 0; i + 1 < l->n[word]; i++)
        if (at[i] == left && at[i + 1] == right) return 1;
    return 0;
}

// Makes the most frequent pair a piece; *more = 0 if no pair occurs twice.
static lin_status learn_one(learner *l, int *more, lin_error *err)
{
    const size_t known = (size_t)l->pieces->names.n;
    size_t left = 0, right = 0;
    int index;
    for (size_t i = 1; i < known; i++)
        for (size_t j = 1; j < known; j++)
            if (l->pairs[i * l->count + j] > l->pairs[left * l->count + right]) left = i, right = j;
    *more = l->pairs[left * l->count + right] >= 2;
    if (!*more) return LIN_OK;
    lin_buffer name = {0};
    lin_buffer_text(&name, lin_symbols_text(&l->pieces->names, (int)left));
    lin_buffer_text(&name, lin_symbols_text(&l->pieces->names, (int)right));
    lin_status status = lin_buffer_status(&name, err);
    if (status == LIN_OK) status = lin_symbols_add(&l->pieces->names, name.data, name.n, &index, err);
    lin_buffer_free(&name);
    for (size_t i = 0; i < (size_t)l->words->n && status == LIN_OK; i++) {
        if (!has_pair(l, i, (int)left, (int)right)) continue;
        count_pairs(l, i, 1);
        l->n[i] = lin_pieces_merge(l->pieces, l->at + l->begin[i], l->n[i]);
        count_pairs(l, i, 0);
    }
    return status;
}

lin_status lin_pieces_learn(const lin_symbols *words, const uint64_t *counts, int count, lin_pieces **out, lin_error *err)
{
    *out = NULL;
    if (count < LIN_PIECES_FIRST || count > LIN_PIECES_MOST)
        return lin_fail(err, LIN_INVALID, "%d pieces; must be %d to %d", count, LIN_PIECES_FIRST, LIN_PIECES_MOST);
    learner l = {.words = words, .counts = counts, .count = (size_t)count};
    lin_status status = lin_pieces_create(lin_pieces_characters, &l.pieces, err);
    if (status == LIN_OK) status = spell(&l, err);
    for (size_t i = 0; i < (size_t)words->n && status == LIN_OK; i++) count_pairs(&l, i, 0);
    for (int more = 1; more && status == LIN_OK && l.pieces->names.n < count;) status = learn_one(&l, &more, err);
    lin_free(l.at);
    lin_free(l.begin);
    lin_free(l.n);
    lin_free(l.pairs);
    if (status == LIN_OK) *out = l.pieces;
    else lin_pieces_destroy(l.pieces);
    return status;
}

void lin_pieces_list(const lin_pieces *p, lin_buffer *text)
{
    for (int i = 0; i < p->names.n; i++) {
        if (i) lin_buffer_char(text, ' ');
        lin_buffer_text(text, lin_symbols_text(&p->names, i));
    }
}
