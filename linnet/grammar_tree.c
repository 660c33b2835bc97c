// grammar_tree.c - a grammar and the tree of its words; see grammar_tree.h.

#include "linnet/grammar_tree.h"

#include <string.h>

#include "base/memory.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"
#include "linnet/pronounce.h"

typedef struct entries {
    lin_tree_entry *items;
    int n, capacity;
    int *labels; // of all entries, one after the other
    size_t n_labels, labels_capacity;
} entries;

static lin_status add_word(lin_pronouncer *p, const char *text, entries *e, lin_error *err)
{
    lin_spelling word = {.n = strlen(text)};
    const int *labels;
    int n;
    memcpy(word.word, text, word.n);
    lin_spelling_settle(&word, p->dictionary);
    for (int which = 0;; which++) {
        const lin_status status = lin_pronouncer_find(p, word.word, word.n, which, &labels, &n, err);
        if (status != LIN_OK) return lin_fail_at(err, status, "the grammar's word '%.100s'", text);
        if (n == 0) return LIN_OK;
        LIN_TRY(lin_grow_int(&e->items, &e->capacity, (int64_t)e->n + 1, sizeof *e->items, "a grammar", err));
        LIN_TRY(lin_grow(&e->labels, &e->labels_capacity, e->n_labels + (size_t)n, sizeof *e->labels, "a grammar", err));
        memcpy(e->labels + e->n_labels, labels, (size_t)n * sizeof *labels);
        e->n_labels += (size_t)n;
        e->items[e->n++] = (lin_tree_entry){.word = text, .n_labels = n};
    }
}

static lin_status make_tree(const lin_grammar *g, lin_pronouncer *p, lin_tree **tree, lin_error *err)
{
    entries e = {0};
    lin_status status = LIN_OK;
    for (int i = 0; i < lin_grammar_words(g) && status == LIN_OK; i++) status = add_word(p, lin_grammar_word(g, i), &e, err);
    const int *labels = e.labels;
    for (int i = 0; i < e.n; labels += e.items[i++].n_labels) e.items[i].labels = labels;
    if (status == LIN_OK) status = lin_tree_create_list(e.items, e.n, lin_phones_count(p->phones), NULL, NULL, tree, err);
    lin_free(e.items);
    lin_free(e.labels);
    return status;
}

static lin_status read_grammar(const char *given, int repeats, const lin_pronouncer *p, lin_grammar **grammar, lin_error *err)
{
    lin_written *numbers;
    LIN_TRY(lin_find_open_numbers(p->phones, NULL, p->dictionary, &numbers, err));
    const lin_status status = strchr(given, '\n')
                                  ? lin_grammar_parse(given, strlen(given), "the grammar", numbers, repeats, grammar, err)
                                  : lin_grammar_open(given, numbers, grammar, err);
    lin_written_destroy(numbers);
    return status;
}

lin_status lin_grammar_tree_open(const char *given, int repeats, const lin_decoding_values *values, const lin_phones *phones,
                                 const lin_warnings *warnings, lin_grammar **grammar, lin_tree **tree, lin_error *err)
{
    lin_pronouncer p = {0};
    *grammar = NULL;
    *tree = NULL;
    lin_status status = lin_pronouncer_open(&p, values, phones, "grammars", warnings, err);
    if (status == LIN_OK) status = read_grammar(given, repeats, &p, grammar, err);
    if (status == LIN_OK) status = make_tree(*grammar, &p, tree, err);
    if (status == LIN_OK) status = lin_grammar_bind(*grammar, *tree, err);
    lin_pronouncer_close(&p);
    if (status == LIN_OK) return LIN_OK;
    lin_grammar_destroy(*grammar);
    lin_tree_destroy(*tree);
    *grammar = NULL;
    *tree = NULL;
    return status;
}
