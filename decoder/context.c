// context.c - phrases as an automaton (Aho, Corasick 1975) with a bonus per state, of phones or words; see context.h.

#include "decoder/context.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

// Nodes are numbered level by level, so the children of a node are adjacent and sorted by token, and a failure link points back.
typedef struct node {
    int token;           // of the edge that leads here
    int first, n;        // children
    int fail;            // node of the longest proper suffix
    float pending;       // bonus given so far to the unfinished phrases at this place
    float complete;      // bonuses of all phrases that end here, those of suffixes included
} node;

struct lin_context {
    node *nodes;
    int n_nodes;
    uint64_t id;
};

typedef lin_context_phrase phrase;

// The phrases [lo, hi) of the sorted list begin with the node's tokens; best is their largest share along the suffixes.
typedef struct span {
    int lo, hi, depth;
    double best;
} span;

// Of what goes on otherwise than a phrase the share is taken back, which must leave it within a search's beam.
static const double MOST_PENDING = 6;

// Shares are multiples of this, so that differences of pending bonuses are exact in float and cancel.
static const double GRAIN = 1.0 / 1024.0;

static int by_tokens(const void *left, const void *right)
{
    const phrase *a = left, *b = right;
    for (int i = 0; i < a->n && i < b->n; i++)
        if (a->tokens[i] != b->tokens[i]) return a->tokens[i] < b->tokens[i] ? -1 : 1;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return (a->bonus < b->bonus) - (a->bonus > b->bonus); // of equal phrases the largest bonus comes first
}

static int same_tokens(const phrase *a, const phrase *b)
{
    return a->n == b->n && memcmp(a->tokens, b->tokens, (size_t)a->n * sizeof *a->tokens) == 0;
}

static lin_status check(const phrase *phrases, int n, int *total, lin_error *err)
{
    *total = 0;
    if (n < 0) return lin_fail(err, LIN_INVALID, "a context of %d phrases", n);
    for (int i = 0; i < n; i++) {
        const phrase *p = &phrases[i];
        if (p->n < 1) return lin_fail(err, LIN_INVALID, "phrase %d of the context is empty", i + 1);
        if (!(fabs(p->bonus) <= LIN_CONTEXT_BONUS_MAX)) {
            return lin_fail(err, LIN_INVALID, "phrase %d of the context: a bonus of %g; it must lie within %g and %g", i + 1,
                            p->bonus, -LIN_CONTEXT_BONUS_MAX, LIN_CONTEXT_BONUS_MAX);
        }
        for (int k = 0; k < p->n; k++)
            if (p->tokens[k] < 0) return lin_fail(err, LIN_INVALID, "phrase %d of the context: token %d", i + 1, p->tokens[k]);
        if (p->n > INT_MAX / 4 - *total) return lin_fail(err, LIN_INVALID, "a context of more than %d tokens", INT_MAX / 4);
        *total += p->n;
    }
    return LIN_OK;
}

static uint64_t identity(const phrase *sorted, int n)
{
    uint64_t h = LIN_FNV_START;
    for (int i = 0; i < n; i++) {
        h = lin_fnv(h, &sorted[i].n, sizeof sorted[i].n);
        h = lin_fnv(h, sorted[i].tokens, (size_t)sorted[i].n * sizeof *sorted[i].tokens);
        h = lin_fnv(h, &sorted[i].bonus, sizeof sorted[i].bonus);
    }
    return h ? h : 1;
}

static int child_of(const lin_context *c, int state, int token)
{
    int lo = c->nodes[state].first, hi = lo + c->nodes[state].n;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (c->nodes[middle].token == token) return middle;
        if (c->nodes[middle].token < token) lo = middle + 1;
        else hi = middle;
    }
    return -1;
}

static int step(const lin_context *c, int state, int token)
{
    for (;;) {
        int child = child_of(c, state, token);
        if (child >= 0) return child;
        if (!state) return 0;
        state = c->nodes[state].fail;
    }
}

// Shares and bonuses of the phrases that begin with this node's tokens, over those of its suffixes.
static void weigh(lin_context *c, span *spans, int at, const phrase *sorted)
{
    node *to = &c->nodes[at];
    span *s = &spans[at];
    double complete = 0;
    if (at) {
        s->best = spans[to->fail].best;
        complete = (double)c->nodes[to->fail].complete;
    }
    for (int i = s->lo; i < s->hi; i++) {
        const phrase *p = &sorted[i];
        if (p->n == s->depth) complete += p->bonus;
        else s->best = fmax(s->best, fmin(p->bonus * s->depth / p->n, MOST_PENDING));
    }
    to->pending = (float)(GRAIN * nearbyint(s->best / GRAIN));
    to->complete = (float)complete;
}

static void grow(lin_context *c, span *spans, const phrase *sorted, int n)
{
    c->nodes[0] = (node){.token = -1};
    spans[0] = (span){.hi = n};
    c->n_nodes = 1;
    for (int at = 0; at < c->n_nodes; at++) {
        const span s = spans[at];
        c->nodes[at].first = c->n_nodes;
        for (int i = s.lo; i < s.hi;) {
            if (sorted[i].n == s.depth) {
                i++;
                continue;
            }
            int token = sorted[i].tokens[s.depth], end = i, new = c->n_nodes++;
            while (end < s.hi && sorted[end].tokens[s.depth] == token) end++;
            c->nodes[new] = (node){.token = token, .fail = at ? step(c, c->nodes[at].fail, token) : 0};
            c->nodes[at].n++;
            spans[new] = (span){.lo = i, .hi = end, .depth = s.depth + 1};
            weigh(c, spans, new, sorted);
            i = end;
        }
    }
}

lin_status lin_context_create(const phrase *phrases, int n, lin_context **context, lin_error *err)
{
    int total, kept = 0;
    *context = NULL;
    LIN_TRY(check(phrases, n, &total, err));
    lin_status status = LIN_OK;
    size_t most = (size_t)total + 1;
    lin_context *c = lin_calloc(1, sizeof *c);
    if (c) c->nodes = lin_alloc(most, sizeof *c->nodes);
    phrase *sorted = lin_alloc((size_t)n, sizeof *sorted);
    span *spans = lin_alloc(most, sizeof *spans);
    if (c && c->nodes && sorted && spans) {
        for (int i = 0; i < n; i++) sorted[i] = (phrase){phrases[i].tokens, phrases[i].n, phrases[i].bonus + 0.0}; // -0 is 0
        if (n) qsort(sorted, (size_t)n, sizeof *sorted, by_tokens);
        for (int i = 0; i < n; i++)
            if (!kept || !same_tokens(&sorted[kept - 1], &sorted[i])) sorted[kept++] = sorted[i];
        grow(c, spans, sorted, kept);
        assert((size_t)c->n_nodes <= most);
        c->id = identity(sorted, kept);
        *context = c;
    } else {
        status = lin_no_memory(err, "a context of phrases", most * (sizeof *c->nodes + sizeof *spans));
        lin_context_destroy(c);
    }
    lin_free(sorted);
    lin_free(spans);
    return status;
}

void lin_context_destroy(lin_context *c)
{
    if (!c) return;
    lin_free(c->nodes);
    lin_free(c);
}

static int in_range(const lin_context *c, int state) { return state >= 0 && state < c->n_nodes ? state : 0; }

float lin_context_next(const lin_context *c, int *state, int token)
{
    int from = in_range(c, *state), to = step(c, from, token);
    *state = to;
    return c->nodes[to].complete + (c->nodes[to].pending - c->nodes[from].pending);
}

float lin_context_finish(const lin_context *c, int *state)
{
    float pending = lin_context_pending(c, *state);
    *state = 0;
    return 0 - pending;
}

float lin_context_pending(const lin_context *c, int state) { return c->nodes[in_range(c, state)].pending; }

uint64_t lin_context_id(const lin_context *c) { return c->id; }

/* ---- phrases of words ------------------------------------------------------------------------------------------------------ */

// While a context is built: phrases as word numbers, and the words outside the lexicon with their pronunciations.
typedef struct builder {
    const lin_tree *tree;
    lin_g2p *g2p;
    lin_symbols lacking;
    int *tokens;
    phrase *phrases;
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
    LIN_TRY(lin_symbols_add(&b->lacking, lower, n, &index, err));
    *token = b->tree->words.n + index;
    return index == before ? pronounce(b, lower, n, err) : LIN_OK;
}

static lin_status add_phrase(builder *b, const lin_word_phrase *of, int index, lin_error *err)
{
    const char *at = of->text, *end = at + strlen(at), *field;
    size_t n;
    phrase *p = &b->phrases[index];
    *p = (phrase){.tokens = b->tokens + b->n_tokens, .bonus = of->bonus};
    while (lin_field_next(&at, end, &field, &n)) {
        LIN_TRY(number(b, field, n, &b->tokens[b->n_tokens], err));
        b->n_tokens++;
        p->n++;
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
    b->phrases = lin_alloc((size_t)n, sizeof *b->phrases);
    b->labels = lin_alloc(n_words * LIN_PRONUNCIATION_MAX, sizeof *b->labels);
    b->entries = lin_calloc(n_words, sizeof *b->entries);
    if (b->tokens && b->phrases && b->labels && b->entries) return LIN_OK;
    return lin_no_memory(err, "a context of phrases", n_words * LIN_PRONUNCIATION_MAX * sizeof *b->labels);
}

static void end(builder *b)
{
    lin_symbols_free(&b->lacking);
    lin_free(b->tokens);
    lin_free(b->phrases);
    lin_free(b->labels);
    lin_free(b->entries);
}

static lin_status fill(lin_word_context *c, builder *b, const lin_word_phrase *phrases, int n, lin_error *err)
{
    const size_t n_words = count_words(phrases, n);
    if (n_words > INT_MAX / 1024) return lin_fail(err, LIN_INVALID, "a context of %zu words", n_words);
    LIN_TRY(begin(b, n_words, n, err));
    for (int i = 0; i < n; i++) LIN_TRY(add_phrase(b, &phrases[i], i, err));
    LIN_TRY(lin_context_create(b->phrases, n, &c->phrases, err));
    for (int i = 0; i < b->lacking.n; i++) b->entries[i].word = lin_symbols_text(&b->lacking, i);
    LIN_TRY(lin_tree_create_list(b->entries, b->lacking.n, b->tree->n_outputs, NULL, 0, &c->extra, err));
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
