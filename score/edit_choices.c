// edit_choices.c - the best pair of paths through two networks of words; see edit_choices.h.

#include "score/edit_choices.h"

#include <string.h>

#include "base/memory.h"

enum { MAX_PAIRS = 1 << 26, NOTHING = -1 };

// A list of words: [first, first + n) of the pool.
typedef struct range {
    size_t first;
    int n;
} range;

// Word 0 is the start: before everything, and nothing is compared with it.
typedef struct word {
    int token, is_optional; // token: LIN_EDIT_NULL for a null word
    range before;           // the words that it may follow, in the order of the text
} word;

typedef struct network {
    word *words;
    size_t words_capacity;
    int n;
    int *pool;
    size_t n_pool, pool_capacity;
    range ends;
    long long n_before; // of all words
} network;

typedef struct cell {
    float weight;
    int ref, hyp; // the pair before
} cell;

static void free_network(network *w)
{
    lin_free(w->words);
    lin_free(w->pool);
}

static lin_status extend_pool(network *w, const int *items, int n, lin_error *err)
{
    lin_status status = lin_grow(&w->pool, &w->pool_capacity, w->n_pool + (size_t)n, sizeof *w->pool, "an alignment", err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < n; i++) w->pool[w->n_pool++] = items[i];
    return LIN_OK;
}

// The new word is then the only one that the next may follow.
static lin_status add_word(network *w, int token, int is_optional, range *last, lin_error *err)
{
    lin_status status = lin_grow(&w->words, &w->words_capacity, (size_t)w->n + 1, sizeof *w->words, "an alignment", err);
    if (status == LIN_OK) status = extend_pool(w, &w->n, 1, err);
    if (status != LIN_OK) return status;
    w->words[w->n++] = (word){token, is_optional, *last};
    w->n_before += last->n;
    *last = (range){w->n_pool - 1, 1};
    return LIN_OK;
}

// Marks become lists of predecessors: at CLOSE the next word may follow the last word of each alternative.
static lin_status make_network(network *w, const int *sequence, int n, lin_error *err)
{
    struct {
        range entry;       // what each alternative follows
        size_t first_exit; // of exits
    } open[LIN_EDIT_DEPTH];
    int depth = 0, *exits = NULL;
    size_t n_exits = 0, capacity = 0;
    range last = {0};
    *w = (network){0};
    lin_status status = add_word(w, NOTHING, 0, &last, err);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const int mark = sequence[i];
        if (mark == LIN_EDIT_OPTIONAL) {
            i++;
            status = add_word(w, sequence[i], 1, &last, err);
        } else if (mark >= 0 || mark == LIN_EDIT_NULL) {
            status = add_word(w, mark, 0, &last, err);
        } else if (mark == LIN_EDIT_OPEN) {
            open[depth].entry = last;
            open[depth++].first_exit = n_exits;
        } else {
            status = lin_grow(&exits, &capacity, n_exits + (size_t)last.n, sizeof *exits, "an alignment", err);
            if (status != LIN_OK) break;
            memcpy(exits + n_exits, w->pool + last.first, (size_t)last.n * sizeof *exits);
            n_exits += (size_t)last.n;
            if (mark == LIN_EDIT_OR) {
                last = open[depth - 1].entry;
                continue;
            }
            const size_t first = open[--depth].first_exit;
            last = (range){w->n_pool, (int)(n_exits - first)};
            status = extend_pool(w, exits + first, last.n, err);
            n_exits = first;
        }
    }
    w->ends = last;
    lin_free(exits);
    return status;
}

static float weight_alone(const word *a) { return a->token == LIN_EDIT_NULL ? 0.001f : a->is_optional ? 2.0f : 3.0f; }

static float weight_together(const word *a, const word *b)
{
    if (a->token == LIN_EDIT_NULL && b->token == LIN_EDIT_NULL) return 1.0f;
    return a->token == b->token ? 0.0f : 4.0f;
}

// The pair with the least weight, the first of equal ones: of the words of_ref, or only `ref` if that is NULL, with those of
// of_hyp, or only `hyp`.
static cell best_before(const cell *cells, int width, const network *r, const range *of_ref, int ref, const network *h,
                        const range *of_hyp, int hyp)
{
    cell best = {.weight = 999999999.9f, .ref = -1, .hyp = -1};
    for (int i = 0; i < (of_ref ? of_ref->n : 1); i++) {
        const int x = of_ref ? r->pool[of_ref->first + (size_t)i] : ref;
        for (int j = 0; j < (of_hyp ? of_hyp->n : 1); j++) {
            const int y = of_hyp ? h->pool[of_hyp->first + (size_t)j] : hyp;
            const float weight = cells[(size_t)x * (size_t)width + (size_t)y].weight;
            if (weight < best.weight) best = (cell){weight, x, y};
        }
    }
    return best;
}

// Of equal weights: first a match or substitution, then an insertion, then a deletion.
static void fill(const network *r, const network *h, cell *cells)
{
    const int width = h->n;
    cells[0] = (cell){0, -1, -1};
    for (int a = 0; a < r->n; a++) {
        const word *x = &r->words[a];
        for (int b = a == 0; b < h->n; b++) {
            const word *y = &h->words[b];
            cell *to = &cells[(size_t)a * (size_t)width + (size_t)b], ins = {0}, del = {0};
            if (b) {
                ins = best_before(cells, width, r, NULL, a, h, &y->before, 0);
                ins.weight += weight_alone(y);
            }
            if (a) {
                del = best_before(cells, width, r, &x->before, 0, h, NULL, b);
                del.weight += weight_alone(x);
            }
            if (!a || !b) {
                *to = a ? del : ins;
                continue;
            }
            cell both = best_before(cells, width, r, &x->before, 0, h, &y->before, 0);
            both.weight += weight_together(x, y);
            *to = both.weight <= del.weight && both.weight <= ins.weight ? both : del.weight < ins.weight ? del : ins;
        }
    }
}

static int trace_back(const network *r, const network *h, const cell *cells, lin_edit_choice *steps)
{
    int n = 0;
    cell at = best_before(cells, h->n, r, &r->ends, 0, h, &h->ends, 0);
    while (at.ref > 0 || at.hyp > 0) {
        const word *x = &r->words[at.ref], *y = &h->words[at.hyp];
        const cell *to = &cells[(size_t)at.ref * (size_t)h->n + (size_t)at.hyp];
        const int is_ins = at.ref == to->ref, is_del = !is_ins && at.hyp == to->hyp;
        lin_edit_choice step = {is_ins ? NOTHING : x->token, is_del ? NOTHING : y->token, 0};
        if (is_ins) step.is_right = y->is_optional;
        else if (is_del) step.is_right = x->is_optional;
        else step.is_right = x->token == y->token;
        if (step.ref != LIN_EDIT_NULL && step.hyp != LIN_EDIT_NULL) steps[n++] = step;
        at = *to;
    }
    for (int i = 0, k = n - 1; i < k; i++, k--) {
        const lin_edit_choice step = steps[i];
        steps[i] = steps[k];
        steps[k] = step;
    }
    return n;
}

lin_status lin_edit_choices(const int *ref, int n, const int *hyp, int m, lin_edit_choice *steps, int *n_steps, lin_error *err)
{
    network r = {0}, h = {0};
    *n_steps = 0;
    lin_status status = make_network(&r, ref, n, err);
    if (status == LIN_OK) status = make_network(&h, hyp, m, err);
    if (status == LIN_OK &&
        ((long long)r.n * h.n > MAX_PAIRS || (double)(r.n_before + 1) * (double)(h.n_before + 1) > 8589934592.0))
        status = lin_fail(err, LIN_INVALID, "%d and %d words with alternatives are too many to align", r.n - 1, h.n - 1);
    cell *cells = status != LIN_OK ? NULL : lin_alloc((size_t)r.n * (size_t)h.n, sizeof *cells);
    if (status == LIN_OK && !cells) status = lin_no_memory(err, "an alignment", (size_t)r.n * (size_t)h.n * sizeof *cells);
    if (status == LIN_OK) {
        fill(&r, &h, cells);
        *n_steps = trace_back(&r, &h, cells, steps);
    }
    lin_free(cells);
    free_network(&r);
    free_network(&h);
    return status;
}
