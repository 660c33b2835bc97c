// edit.c - alignments with the fewest errors; see edit.h.

#include "train/score/edit.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/search.h"

enum { SUB = 4, DEL = 3, INS = 3, MAX_LENGTH = 100000000, MAX_MOVES = 64 << 20 };
enum { FROM_DIAGONAL, FROM_ABOVE, FROM_LEFT }; // match or substitution, deletion, insertion

typedef struct cell {
    int cost, sub; // of the chosen path; deletions and insertions follow from the two and the position
} cell;

static void first_row(cell *row, int m)
{
    for (int j = 0; j <= m; j++) row[j] = (cell){.cost = INS * j, .sub = 0};
}

// Computes the row of costs after ref[n - 1] from the one before ref[0]. moves [n][m] may be NULL.
static void run(const int *ref, int n, const int *hyp, int m, cell *row, unsigned char *moves)
{
    for (int i = 0; i < n; i++) {
        cell diagonal = row[0];
        row[0].cost += DEL;
        for (int j = 1; j <= m; j++) {
            int differ = ref[i] != hyp[j - 1];
            cell match = {.cost = diagonal.cost + (differ ? SUB : 0), .sub = diagonal.sub + differ};
            int above = row[j].cost + DEL, left = row[j - 1].cost + INS, move;
            diagonal = row[j];
            if (match.cost <= above && match.cost <= left) {
                row[j] = match;
                move = FROM_DIAGONAL;
            } else if (above < left) {
                row[j].cost = above;
                move = FROM_ABOVE;
            } else {
                row[j] = (cell){.cost = left, .sub = row[j - 1].sub};
                move = FROM_LEFT;
            }
            if (moves) moves[(size_t)i * (size_t)m + (size_t)(j - 1)] = (unsigned char)move;
        }
    }
}

static lin_status check_lengths(int n, int m, lin_error *err)
{
    if (n >= 0 && m >= 0 && n <= MAX_LENGTH && m <= MAX_LENGTH) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "cannot align sequences of %d and %d labels", n, m);
}

lin_status lin_edit_distance(const int *ref, int n, const int *hyp, int m, lin_edit_counts *counts, lin_error *err)
{
    LIN_TRY(check_lengths(n, m, err));
    cell *row = lin_alloc((size_t)m + 1, sizeof *row);
    if (!row) return lin_no_memory(err, "an alignment", ((size_t)m + 1) * sizeof *row);
    first_row(row, m);
    run(ref, n, hyp, m, row, NULL);
    cell last = row[m];
    int gaps = (last.cost - SUB * last.sub) / DEL; // deletions and insertions have the same weight
    counts->sub = last.sub;
    counts->del = (gaps + n - m) / 2;
    counts->ins = gaps - counts->del;
    counts->correct = n - counts->sub - counts->del;
    // A label of the reference is correct, substituted or deleted; a label of the hypothesis correct, substituted or inserted.
    assert((gaps + n - m) % 2 == 0 && counts->del >= 0 && counts->ins >= 0 && counts->correct >= 0);
    assert(counts->correct + counts->sub + counts->ins == m);
    lin_free(row);
    return LIN_OK;
}

// Memory of an alignment: the moves of one block of rows, and the row of costs before each block, so that blocks can be processed
// backwards.
typedef struct blocks {
    int rows, n;          // rows of a block, number of blocks
    cell *before;         // [n][m + 1]
    cell *row;            // [m + 1]
    unsigned char *moves; // [rows][m]
} blocks;

static void free_blocks(blocks *b)
{
    lin_free(b->before);
    lin_free(b->row);
    lin_free(b->moves);
}

static lin_status make_blocks(blocks *b, int n, int m, size_t max_moves, lin_error *err)
{
    *b = (blocks){.rows = n, .n = 1};
    if ((size_t)n * (size_t)m > max_moves) b->rows = (size_t)m < max_moves ? (int)(max_moves / (size_t)m) : 1;
    if (b->rows) b->n = (n + b->rows - 1) / b->rows;
    size_t width = (size_t)m + 1;
    b->before = lin_alloc((size_t)b->n * width, sizeof *b->before);
    b->row = lin_alloc(width, sizeof *b->row);
    b->moves = lin_alloc((size_t)b->rows, (size_t)m);
    if (b->before && b->row && b->moves) return LIN_OK;
    free_blocks(b);
    return lin_no_memory(err, "an alignment", (size_t)b->rows * (size_t)m + ((size_t)b->n + 1) * width * sizeof *b->row);
}

// Traces back the moves of the rows from `first` on, from (*i, *j) until it leaves them; the steps are appended last first.
static int follow(const unsigned char *moves, int first, int m, const int *ref, const int *hyp, int *i, int *j,
                  lin_edit_pair *steps)
{
    int k = 0;
    while (*i > first || (first == 0 && *j > 0)) {
        int move = *i == 0 ? FROM_LEFT : *j == 0 ? FROM_ABOVE : moves[(size_t)(*i - 1 - first) * (size_t)m + (size_t)(*j - 1)];
        if (move != FROM_LEFT) --*i;
        if (move != FROM_ABOVE) --*j;
        const int a = move == FROM_LEFT ? -1 : ref[*i], b = move == FROM_ABOVE ? -1 : hyp[*j];
        steps[k++] = (lin_edit_pair){a, b, a == b};
    }
    return k;
}

static void reverse(lin_edit_pair *steps, int n)
{
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        const lin_edit_pair step = steps[i];
        steps[i] = steps[j];
        steps[j] = step;
    }
}

lin_status lin_edit_align(const int *ref, int n, const int *hyp, int m, size_t max_moves, lin_edit_pair *steps, int *n_steps,
                          lin_error *err)
{
    blocks b;
    *n_steps = 0;
    LIN_TRY(check_lengths(n, m, err));
    if ((long long)n * m > 1LL << 36) return lin_fail(err, LIN_INVALID, "%d and %d tokens are too many to align", n, m);
    LIN_TRY(make_blocks(&b, n, m, max_moves ? max_moves : MAX_MOVES, err));
    const size_t width = (size_t)m + 1;
    first_row(b.row, m);
    for (int k = 0; k < b.n; k++) {
        memcpy(b.before + (size_t)k * width, b.row, width * sizeof *b.row);
        if (k + 1 < b.n) run(ref + (size_t)k * (size_t)b.rows, b.rows, hyp, m, b.row, NULL);
    }
    int i = n, j = m, k = 0;
    for (int block = b.n - 1; block >= 0; block--) {
        int first = block * b.rows;
        cell *row = b.before + (size_t)block * width;
        if (n) run(ref + first, i - first, hyp, j, row, b.moves); // columns to the right of the path are not needed
        k += follow(b.moves, first, j, ref, hyp, &i, &j, steps + k);
    }
    reverse(steps, k);
    assert(i == 0 && j == 0 && k <= n + m); // the path is whole
    free_blocks(&b);
    *n_steps = k;
    return LIN_OK;
}

int lin_edit_greedy(const float *logp, int T, int V, const int *labels, int U)
{
    lin_greedy greedy;
    lin_path said = {0};
    lin_edit_counts counts;
    int *hyp = lin_alloc((size_t)T + 1, sizeof *hyp); // at most one for each row
    lin_greedy_reset(&greedy, V, 0, 0);
    lin_status status = hyp ? lin_greedy_push(&greedy, logp, T, &said, NULL) : LIN_NO_MEMORY;
    if (status == LIN_OK) status = lin_greedy_finish(&greedy, &said, NULL);
    for (int i = 0; i < said.n_phones && hyp; i++) hyp[i] = said.phones[i].label;
    if (status == LIN_OK) status = lin_edit_distance(labels, U, hyp, said.n_phones, &counts, NULL);
    lin_path_free(&said);
    lin_free(hyp);
    return status == LIN_OK ? counts.sub + counts.del + counts.ins : U;
}

/* ---- sequences with alternatives and optional words ------------------------------------------------------------------------ */

enum { MAX_PAIRS = 1 << 24, MAX_CELLS = 1 << 26, NOTHING = -1 };

// A list of words: [first, first + n) of the pool.
typedef struct range {
    size_t first;
    int n;
} range;

// Word 0 is the start: it precedes everything and is compared with nothing.
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

typedef struct meeting {
    float weight;
    int ref, hyp; // the pair before
} meeting;

// Rows of words of the reference.
typedef struct grid {
    meeting *cells; // [rows, width]
    int from, width; // from: the word of the first row
} grid;

static meeting *cell_at(const grid *g, int ref, int hyp)
{
    return g->cells + (size_t)(ref - g->from) * (size_t)g->width + (size_t)hyp;
}

static void free_network(network *w)
{
    lin_free(w->words);
    lin_free(w->pool);
}

static lin_status extend_pool(network *w, const int *items, int n, lin_error *err)
{
    LIN_TRY(lin_grow(&w->pool, &w->pool_capacity, w->n_pool + (size_t)n, sizeof *w->pool, "an alignment", err));
    for (int i = 0; i < n; i++) w->pool[w->n_pool++] = items[i];
    return LIN_OK;
}

// Adds a word; the next word may then follow only this one.
static lin_status add_word(network *w, int token, int is_optional, range *last, lin_error *err)
{
    LIN_TRY(lin_grow(&w->words, &w->words_capacity, (size_t)w->n + 1, sizeof *w->words, "an alignment", err));
    LIN_TRY(extend_pool(w, &w->n, 1, err));
    w->words[w->n++] = (word){token, is_optional, *last};
    w->n_before += last->n;
    *last = (range){w->n_pool - 1, 1};
    return LIN_OK;
}

// Turns marks into lists of predecessors: after CLOSE the next word may follow the last word of each alternative.
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
static meeting best_before(const grid *g, const network *r, const range *of_ref, int ref, const network *h, const range *of_hyp,
                           int hyp)
{
    meeting best = {.weight = 999999999.9f, .ref = -1, .hyp = -1};
    for (int i = 0; i < (of_ref ? of_ref->n : 1); i++) {
        const int x = of_ref ? r->pool[of_ref->first + (size_t)i] : ref;
        for (int j = 0; j < (of_hyp ? of_hyp->n : 1); j++) {
            const int y = of_hyp ? h->pool[of_hyp->first + (size_t)j] : hyp;
            const float weight = cell_at(g, x, y)->weight;
            if (weight < best.weight) best = (meeting){weight, x, y};
        }
    }
    return best;
}

// Fills rows first..end - 1. Ties: first a match or substitution, then an insertion, then a deletion.
static void fill(const network *r, const network *h, int first, int end, grid *g)
{
    if (first == 0) *cell_at(g, 0, 0) = (meeting){0, -1, -1};
    for (int a = first; a < end; a++) {
        const word *x = &r->words[a];
        for (int b = a == 0; b < h->n; b++) {
            const word *y = &h->words[b];
            meeting *to = cell_at(g, a, b), ins = {0}, del = {0};
            if (b) {
                ins = best_before(g, r, NULL, a, h, &y->before, 0);
                ins.weight += weight_alone(y);
            }
            if (a) {
                del = best_before(g, r, &x->before, 0, h, NULL, b);
                del.weight += weight_alone(x);
            }
            if (!a || !b) {
                *to = a ? del : ins;
                continue;
            }
            meeting both = best_before(g, r, &x->before, 0, h, &y->before, 0);
            both.weight += weight_together(x, y);
            *to = both.weight <= del.weight && both.weight <= ins.weight ? both : del.weight < ins.weight ? del : ins;
        }
    }
}

// Follows the pairs from *from to the first row; the steps are appended last first. Returns their number.
static int trace_back(const network *r, const network *h, const grid *g, meeting *from, lin_edit_pair *steps)
{
    int n = 0;
    meeting at = *from;
    while (at.ref > g->from || (g->from == 0 && at.hyp > 0)) {
        const word *x = &r->words[at.ref], *y = &h->words[at.hyp];
        const meeting *next = cell_at(g, at.ref, at.hyp);
        const int is_ins = at.ref == next->ref, is_del = !is_ins && at.hyp == next->hyp;
        lin_edit_pair step = {is_ins ? NOTHING : x->token, is_del ? NOTHING : y->token, 0};
        if (is_ins) step.is_right = y->is_optional;
        else if (is_del) step.is_right = x->is_optional;
        else step.is_right = x->token == y->token;
        if (step.ref != LIN_EDIT_NULL && step.hyp != LIN_EDIT_NULL) steps[n++] = step;
        at = *next;
    }
    *from = at;
    return n;
}

// Divides into blocks of `rows` rows or more. first: the rows that begin them, and r->n; no word after such a row has a
// predecessor before it. Returns the number of blocks.
static int divide(const network *r, int rows, int *first)
{
    int n = 1, least = r->n;
    for (int i = 0; i < r->ends.n; i++)
        if (r->pool[r->ends.first + (size_t)i] < least) least = r->pool[r->ends.first + (size_t)i];
    for (int a = r->n - 1; a > 0; a--) {
        const word *w = &r->words[a];
        first[a] = least >= a; // whether a block may begin here
        for (int i = 0; i < w->before.n; i++)
            if (r->pool[w->before.first + (size_t)i] < least) least = r->pool[w->before.first + (size_t)i];
    }
    first[0] = 0;
    for (int a = 1; a < r->n; a++)
        if (first[a] && a - first[n - 1] >= rows) first[n++] = a; // n <= a
    first[n] = r->n;
    return n;
}

// Memory of an alignment in blocks. If there are several, all are computed twice, and the weights of each first row are kept. A
// row that begins a block is also the last of the one before.
typedef struct choice_blocks {
    int n, *first;  // [n + 1]
    float *weights; // [n, width]
    grid grid;
} choice_blocks;

static void free_choice_blocks(choice_blocks *b)
{
    lin_free(b->first);
    lin_free(b->weights);
    lin_free(b->grid.cells);
}

static lin_status make_choice_blocks(choice_blocks *b, const network *r, const network *h, size_t max_pairs, lin_error *err)
{
    const size_t width = (size_t)h->n;
    size_t most = 0;
    *b = (choice_blocks){.grid.width = h->n};
    b->first = lin_alloc((size_t)r->n + 1, sizeof *b->first);
    if (!b->first) return lin_no_memory(err, "an alignment", ((size_t)r->n + 1) * sizeof *b->first);
    const size_t rows = (size_t)r->n * width <= max_pairs ? (size_t)r->n : max_pairs / width;
    b->n = divide(r, (int)rows, b->first);
    for (int k = 0; k < b->n; k++) {
        const size_t of_block = (size_t)(b->first[k + 1] - b->first[k]) + 1;
        if (of_block > most) most = of_block;
    }
    if (most * width > MAX_CELLS || (double)(r->n_before + 1) * (double)(h->n_before + 1) > 8589934592.0)
        return lin_fail(err, LIN_INVALID, "%d and %d words with alternatives are too many to align", r->n - 1, h->n - 1);
    b->grid.cells = lin_alloc(most * width, sizeof *b->grid.cells);
    b->weights = lin_alloc((size_t)b->n * width, sizeof *b->weights);
    if (b->grid.cells && b->weights) return LIN_OK;
    return lin_no_memory(err, "an alignment", most * width * sizeof *b->grid.cells);
}

static void fill_block(choice_blocks *b, int k, const network *r, const network *h)
{
    const int from = b->grid.from = b->first[k], end = b->first[k + 1] + (k + 1 < b->n);
    for (int j = 0; j < h->n && k; j++)
        *cell_at(&b->grid, from, j) = (meeting){b->weights[(size_t)k * (size_t)h->n + (size_t)j], -1, -1};
    fill(r, h, k ? from + 1 : 0, end, &b->grid);
    for (int j = 0; j < h->n && k + 1 < b->n; j++)
        b->weights[(size_t)(k + 1) * (size_t)h->n + (size_t)j] = cell_at(&b->grid, end - 1, j)->weight;
}

lin_status lin_edit_choices(const int *ref, int n, const int *hyp, int m, size_t max_pairs, lin_edit_pair *steps, int *n_steps,
                            lin_error *err)
{
    network r = {0}, h = {0};
    choice_blocks b = {0};
    int k = 0;
    *n_steps = 0;
    lin_status status = make_network(&r, ref, n, err);
    if (status == LIN_OK) status = make_network(&h, hyp, m, err);
    if (status == LIN_OK) status = make_choice_blocks(&b, &r, &h, max_pairs ? max_pairs : MAX_PAIRS, err);
    for (int i = 0; i < b.n && status == LIN_OK; i++) fill_block(&b, i, &r, &h);
    meeting at = {0};
    if (status == LIN_OK) at = best_before(&b.grid, &r, &r.ends, 0, &h, &h.ends, 0);
    for (int i = b.n - 1; i >= 0 && status == LIN_OK; i--) {
        if (i + 1 < b.n) fill_block(&b, i, &r, &h);
        k += trace_back(&r, &h, &b.grid, &at, steps + k);
    }
    reverse(steps, k);
    *n_steps = k;
    free_choice_blocks(&b);
    free_network(&r);
    free_network(&h);
    return status;
}
