// context.c - phrases as an automaton (Aho, Corasick 1975) with a bonus per state; see context.h.

#include "decoder/context.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

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

typedef struct phrase {
    const int *tokens;
    int n;
    double bonus;
} phrase;

// The phrases [lo, hi) of the sorted list begin with the node's tokens; best and worst are their shares along the suffixes.
typedef struct span {
    int lo, hi, depth;
    double best, worst;
} span;

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

static lin_status check(const int *const *phrases, const int *lengths, const double *bonuses, int n, int *total, lin_error *err)
{
    *total = 0;
    if (n < 0) return lin_fail(err, LIN_INVALID, "a context of %d phrases", n);
    for (int i = 0; i < n; i++) {
        if (lengths[i] < 1) return lin_fail(err, LIN_INVALID, "phrase %d of the context is empty", i + 1);
        if (!(fabs(bonuses[i]) <= LIN_CONTEXT_BONUS_MAX)) {
            return lin_fail(err, LIN_INVALID, "phrase %d of the context: a bonus of %g; it must lie within %g and %g", i + 1,
                            bonuses[i], -LIN_CONTEXT_BONUS_MAX, LIN_CONTEXT_BONUS_MAX);
        }
        for (int k = 0; k < lengths[i]; k++) {
            if (phrases[i][k] < 0) return lin_fail(err, LIN_INVALID, "phrase %d of the context: token %d", i + 1, phrases[i][k]);
        }
        if (lengths[i] > INT_MAX / 4 - *total) return lin_fail(err, LIN_INVALID, "a context of more than %d tokens", INT_MAX / 4);
        *total += lengths[i];
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
        s->worst = spans[to->fail].worst;
        complete = (double)c->nodes[to->fail].complete;
    }
    for (int i = s->lo; i < s->hi; i++) {
        const phrase *p = &sorted[i];
        double share = p->bonus * s->depth / p->n;
        if (p->n == s->depth) {
            complete += p->bonus;
            continue;
        }
        if (share > s->best) s->best = share;
        if (share < s->worst) s->worst = share;
    }
    to->pending = (float)(GRAIN * nearbyint((s->best + s->worst) / GRAIN));
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

lin_status lin_context_create(const int *const *phrases, const int *lengths, const double *bonuses, int n, lin_context **context,
                              lin_error *err)
{
    int total, kept = 0;
    *context = NULL;
    lin_status status = check(phrases, lengths, bonuses, n, &total, err);
    if (status != LIN_OK) return status;
    size_t most = (size_t)total + 1;
    lin_context *c = lin_calloc(1, sizeof *c);
    if (c) c->nodes = lin_alloc(most, sizeof *c->nodes);
    phrase *sorted = lin_alloc((size_t)n, sizeof *sorted);
    span *spans = lin_alloc(most, sizeof *spans);
    if (c && c->nodes && sorted && spans) {
        for (int i = 0; i < n; i++) sorted[i] = (phrase){.tokens = phrases[i], .n = lengths[i], .bonus = bonuses[i] + 0.0};
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
