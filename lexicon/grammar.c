// grammar.c - the deterministic automaton of a grammar, by words and by pronunciations of a tree; see grammar.h.

#include "lexicon/grammar_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"

// Limits the search for states that are reached without a word to about a second.
enum { MOST_STEPS = 1 << 28, STEPS_TO_SORT = 2 };

// Of the deterministic automaton. Once it is bound, label is the rank of a pronunciation of the tree.
typedef struct edge {
    uint32_t label, to;
} edge;

struct lin_grammar {
    lin_symbols words;
    uint32_t n_states, n_edges;
    uint32_t *first; // [n_states + 1] edges of a state, by label
    edge *edges;
    uint32_t *unknown; // [n_states] the state after [unk], or LIN_GRAMMAR_NONE
    unsigned char *ends; // [n_states]
    int has_unknown;
    // Of the tree: its pronunciations in the order of a depth-first walk have ranks, and those below a node are a range of them.
    uint32_t *ranks;     // [n_ends]
    uint32_t *from, *to; // [n_nodes]
    uint64_t fingerprint;
};

/* ---- to a deterministic automaton ------------------------------------------------------------------------------------------ */

typedef struct sets {
    const lin_nfa *nfa;
    lin_symbols known; // a state of the second automaton: the states of the first that it stands for, as bytes
    int32_t *set;      // [nfa->n_states] one of them: the n_set states that have words, or are the end
    int n_set;
    uint32_t *seen; // [nfa->n_states] the search that has seen it
    uint32_t search;
    int64_t steps;
    int32_t *stack; // [nfa->n_states]
    lin_nfa_arc *moves; // of one set
    int n_moves, moves_capacity;
} sets;

static int compare_states(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int compare_moves(const void *a, const void *b)
{
    const lin_nfa_arc *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label) : (x->to > y->to) - (x->to < y->to);
}

static int matters(const sets *x, int state)
{
    if (state == x->nfa->out) return 1;
    for (int i = x->nfa->states[state]; i >= 0; i = x->nfa->arcs[i].next)
        if (x->nfa->arcs[i].label != LIN_NFA_EMPTY) return 1;
    return 0;
}

// x->set: what is reached from n states without a word.
static lin_status reach(sets *x, const lin_nfa_arc *from, int n, lin_error *err)
{
    x->n_set = 0;
    x->search++;
    for (int k = 0; k < n; k++) {
        int top = 0;
        if (x->seen[from[k].to] == x->search) continue;
        x->stack[top++] = from[k].to;
        x->seen[from[k].to] = x->search;
        while (top > 0) {
            const int state = x->stack[--top];
            if (matters(x, state)) {
                x->set[x->n_set++] = state;
                x->steps += STEPS_TO_SORT;
            }
            for (int i = x->nfa->states[state]; i >= 0; i = x->nfa->arcs[i].next, x->steps++) {
                const lin_nfa_arc *a = &x->nfa->arcs[i];
                if (a->label != LIN_NFA_EMPTY || x->seen[a->to] == x->search) continue;
                x->seen[a->to] = x->search;
                x->stack[top++] = a->to;
            }
        }
    }
    if (x->steps > MOST_STEPS) return lin_nfa_too_large(err);
    qsort(x->set, (size_t)x->n_set, sizeof *x->set, compare_states);
    return LIN_OK;
}

// The number of x->set.
static lin_status number_of(sets *x, uint32_t *number, lin_error *err)
{
    int index;
    LIN_TRY(lin_symbols_add(&x->known, (const char *)x->set, (size_t)x->n_set * sizeof *x->set, &index, err));
    *number = (uint32_t)index;
    const int fits = x->known.n <= LIN_GRAMMAR_STATES_MAX && x->known.text_used <= 64 * (size_t)LIN_GRAMMAR_STATES_MAX;
    return fits ? LIN_OK : lin_nfa_too_large(err);
}

// The moves by a word from x->set, by word.
static lin_status find_moves(sets *x, lin_error *err)
{
    x->n_moves = 0;
    for (int k = 0; k < x->n_set; k++) {
        for (int i = x->nfa->states[x->set[k]]; i >= 0; i = x->nfa->arcs[i].next) {
            if (x->nfa->arcs[i].label == LIN_NFA_EMPTY) continue;
            LIN_TRY(lin_grow_int(&x->moves, &x->moves_capacity, (int64_t)x->n_moves + 1, sizeof *x->moves, "a grammar", err));
            x->moves[x->n_moves++] = x->nfa->arcs[i];
        }
    }
    if (x->n_moves) qsort(x->moves, (size_t)x->n_moves, sizeof *x->moves, compare_moves);
    return LIN_OK;
}

// The arrays of the grammar, for one more state and the edges behind it.
typedef struct room {
    size_t states, unknown, ends, edges;
} room;

static lin_status add_edges(sets *x, lin_grammar *g, room *r, lin_error *err)
{
    const uint32_t state = g->n_states;
    LIN_TRY(lin_grow(&g->first, &r->states, (size_t)state + 2, sizeof *g->first, "a grammar", err));
    LIN_TRY(lin_grow(&g->unknown, &r->unknown, (size_t)state + 1, sizeof *g->unknown, "a grammar", err));
    LIN_TRY(lin_grow(&g->ends, &r->ends, (size_t)state + 1, 1, "a grammar", err));
    const lin_symbol *set = &x->known.items[state];
    x->n_set = (int)(set->n / sizeof *x->set);
    memcpy(x->set, x->known.text + set->offset, set->n);
    g->first[state] = g->n_edges;
    g->unknown[state] = LIN_GRAMMAR_NONE;
    g->ends[state] = 0;
    for (int k = 0; k < x->n_set; k++) g->ends[state] |= x->set[k] == x->nfa->out;
    LIN_TRY(find_moves(x, err));
    for (int i = 0, k; i < x->n_moves; i = k) {
        uint32_t number;
        const int label = x->moves[i].label;
        for (k = i; k < x->n_moves && x->moves[k].label == label;) k++;
        LIN_TRY(reach(x, x->moves + i, k - i, err));
        LIN_TRY(number_of(x, &number, err));
        if (label == LIN_NFA_UNKNOWN) {
            g->unknown[state] = number;
            g->has_unknown = 1;
            continue;
        }
        LIN_TRY(lin_grow(&g->edges, &r->edges, (size_t)g->n_edges + 1, sizeof *g->edges, "a grammar", err));
        g->edges[g->n_edges++] = (edge){(uint32_t)label, number};
    }
    g->first[++g->n_states] = g->n_edges;
    return LIN_OK;
}

static lin_status determine(const lin_nfa *nfa, lin_grammar *g, lin_error *err)
{
    sets x = {.nfa = nfa};
    const lin_nfa_arc start = {.to = nfa->in};
    room r = {0};
    uint32_t number;
    x.set = lin_alloc((size_t)nfa->n_states, sizeof *x.set);
    x.seen = lin_calloc((size_t)nfa->n_states, sizeof *x.seen);
    x.stack = lin_alloc((size_t)nfa->n_states, sizeof *x.stack);
    lin_status status = LIN_OK;
    if (!x.set || !x.seen || !x.stack) status = lin_no_memory(err, "a grammar", (size_t)nfa->n_states * sizeof *x.set);
    if (status == LIN_OK) status = reach(&x, &start, 1, err);
    if (status == LIN_OK) status = number_of(&x, &number, err);
    while (status == LIN_OK && g->n_states < (uint32_t)x.known.n) status = add_edges(&x, g, &r, err);
    lin_symbols_free(&x.known);
    lin_free(x.set);
    lin_free(x.seen);
    lin_free(x.stack);
    lin_free(x.moves);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

// Takes ownership of the text. path: NULL if other files are not read.
static lin_status make_from(const char *name, const char *path, char *text, size_t n, const lin_written *numbers,
                            lin_grammar_list *list, lin_buffer *files, lin_grammar **grammar, lin_error *err)
{
    lin_nfa nfa = {0};
    lin_grammar *g = NULL;
    lin_status status = lin_nfa_read(&nfa, name, path, text, n, numbers, list, files, err);
    if (status == LIN_OK && !(g = lin_calloc(1, sizeof *g))) status = lin_no_memory(err, "a grammar", sizeof *g);
    if (status == LIN_OK) status = determine(&nfa, g, err);
    lin_free(nfa.states);
    lin_free(nfa.arcs);
    if (status == LIN_OK) {
        g->words = nfa.words;
        *grammar = g;
        return LIN_OK;
    }
    lin_symbols_free(&nfa.words);
    lin_grammar_destroy(g);
    return status;
}

lin_status lin_grammar_open(const char *path, const lin_written *numbers, lin_buffer *files, lin_grammar **grammar,
                            lin_error *err)
{
    char *text;
    size_t n;
    *grammar = NULL;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    return make_from(path, path, text, n, numbers, NULL, files, grammar, err);
}

lin_status lin_grammar_parse(const char *text, size_t n, const char *name, const lin_written *numbers, lin_grammar_list *list,
                             lin_grammar **grammar, lin_error *err)
{
    char *own = lin_text_copy(text, n);
    *grammar = NULL;
    if (!own) return lin_no_memory(err, "a grammar", n);
    return make_from(name, NULL, own, n, numbers, list, NULL, grammar, err);
}

void lin_grammar_destroy(lin_grammar *g)
{
    if (!g) return;
    lin_symbols_free(&g->words);
    lin_free(g->first);
    lin_free(g->edges);
    lin_free(g->unknown);
    lin_free(g->ends);
    lin_free(g->ranks);
    lin_free(g->from);
    lin_free(g->to);
    lin_free(g);
}

int lin_grammar_words(const lin_grammar *g) { return g->words.n; }
const char *lin_grammar_word(const lin_grammar *g, int word) { return lin_symbols_text(&g->words, word); }

/* ---- with the pronunciations of a tree ------------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->label > y->label) - (x->label < y->label);
}

// Nodes are numbered breadth first: children behind their parents.
static void rank_pronunciations(lin_grammar *g, const lin_tree *tree)
{
    const lin_tree_node *nodes = tree->nodes;
    for (int i = tree->n_nodes; i-- > 0;) { // how many end at or below it
        g->to[i] = nodes[i + 1].end - nodes[i].end;
        for (uint32_t c = nodes[i].child; c < nodes[i + 1].child; c++) g->to[i] += g->to[c];
    }
    g->from[LIN_TREE_ROOT] = 0;
    for (int i = 0; i < tree->n_nodes; i++) {
        uint32_t at = g->from[i];
        for (uint32_t e = nodes[i].end; e < nodes[i + 1].end; e++) g->ranks[e] = at++;
        for (uint32_t c = nodes[i].child; c < nodes[i + 1].child; c++) {
            g->from[c] = at;
            at += g->to[c];
        }
        g->to[i] = at;
    }
}

// Pronunciations by word: those of word i are at[i] .. at[i + 1] - 1 of `ends`.
static lin_status bind_edges(lin_grammar *g, const lin_tree *tree, const int *numbers, uint32_t *at, uint32_t *ends,
                             lin_error *err)
{
    for (int e = 0; e < tree->n_ends; e++) at[tree->ends[e].word + 2]++;
    for (int i = 2; i <= tree->words.n + 1; i++) at[i] += at[i - 1];
    for (int e = 0; e < tree->n_ends; e++) ends[at[tree->ends[e].word + 1]++] = (uint32_t)e;
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_edges; i++) n += at[numbers[g->edges[i].label] + 1] - at[numbers[g->edges[i].label]];
    edge *bound = n < UINT32_MAX ? lin_alloc((size_t)n, sizeof *bound) : NULL;
    if (!bound) return lin_no_memory(err, "a grammar", (size_t)n * sizeof *bound);
    uint32_t used = 0;
    for (uint32_t state = 0, i = 0; state < g->n_states; state++) {
        const uint32_t begin = used, to = g->first[state + 1];
        for (; i < to; i++) {
            const int word = numbers[g->edges[i].label];
            for (uint32_t k = at[word]; k < at[word + 1]; k++) bound[used++] = (edge){g->ranks[ends[k]], g->edges[i].to};
        }
        g->first[state] = begin;
        if (used > begin) qsort(bound + begin, used - begin, sizeof *bound, compare_edges);
    }
    g->first[g->n_states] = used;
    lin_free(g->edges);
    g->edges = bound;
    g->n_edges = used;
    return LIN_OK;
}

lin_status lin_grammar_bind(lin_grammar *g, const lin_tree *tree, lin_error *err)
{
    const size_t n_ends = (size_t)tree->n_ends, n_nodes = (size_t)tree->n_nodes, n_words = (size_t)tree->words.n;
    int *numbers = lin_alloc((size_t)g->words.n, sizeof *numbers);
    uint32_t *at = lin_calloc(n_words + 2, sizeof *at), *ends = lin_alloc(n_ends, sizeof *ends);
    g->ranks = lin_alloc(n_ends, sizeof *g->ranks);
    g->from = lin_alloc(n_nodes, sizeof *g->from);
    g->to = lin_alloc(n_nodes, sizeof *g->to);
    lin_status status = numbers && at && ends && g->ranks && g->from && g->to
                            ? LIN_OK : lin_no_memory(err, "a grammar", (n_ends + n_nodes) * sizeof *at);
    for (int i = 0; i < g->words.n && status == LIN_OK; i++) {
        const char *word = lin_grammar_word(g, i);
        numbers[i] = lin_tree_find(tree, word, strlen(word));
        if (numbers[i] < 0) status = lin_fail(err, LIN_MISMATCH, "the word '%.100s' has no pronunciation", word);
    }
    if (status == LIN_OK) {
        rank_pronunciations(g, tree);
        status = bind_edges(g, tree, numbers, at, ends, err);
    }
    lin_free(numbers);
    lin_free(at);
    lin_free(ends);
    if (status != LIN_OK) return status;
    g->fingerprint = lin_hash(g->edges, g->n_edges * sizeof *g->edges, tree->fingerprint);
    g->fingerprint = lin_hash(g->first, ((size_t)g->n_states + 1) * sizeof *g->first, g->fingerprint);
    g->fingerprint = lin_hash(g->unknown, g->n_states * sizeof *g->unknown, g->fingerprint);
    g->fingerprint = lin_hash(g->ends, g->n_states, g->fingerprint);
    return LIN_OK;
}

uint32_t lin_grammar_states(const lin_grammar *g) { return g->n_states; }
uint64_t lin_grammar_fingerprint(const lin_grammar *g) { return g->fingerprint; }

// The first edge of a state from a rank on.
static uint32_t edge_from(const lin_grammar *g, uint32_t state, uint32_t rank)
{
    uint32_t low = g->first[state], high = g->first[state + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (g->edges[middle].label < rank) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t lin_grammar_step(const lin_grammar *g, uint32_t state, uint32_t end)
{
    const uint32_t at = edge_from(g, state, g->ranks[end]);
    return at < g->first[state + 1] && g->edges[at].label == g->ranks[end] ? g->edges[at].to : LIN_GRAMMAR_NONE;
}

uint32_t lin_grammar_unknown(const lin_grammar *g, uint32_t state) { return g->unknown[state]; }
int lin_grammar_has_unknown(const lin_grammar *g) { return g->has_unknown; }

int lin_grammar_allows(const lin_grammar *g, uint32_t state, uint32_t node)
{
    const uint32_t at = edge_from(g, state, g->from[node]);
    return at < g->first[state + 1] && g->edges[at].label < g->to[node];
}

int lin_grammar_is_end(const lin_grammar *g, uint32_t state) { return g->ends[state]; }
