// edit.c - the least number of errors, and an alignment that has it; see edit.h.

#include "score/edit.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/greedy.h"

enum { SUB = 4, DEL = 3, INS = 3, MAX_LENGTH = 100000000, ON_STACK = 1000, MAX_MOVES = 64 << 20 };
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
    cell small[ON_STACK + 1], *row = small;
    lin_status status = check_lengths(n, m, err);
    if (status != LIN_OK) return status;
    if (m > ON_STACK) {
        row = lin_alloc((size_t)m + 1, sizeof *row);
        if (!row) return lin_no_memory(err, "an alignment", ((size_t)m + 1) * sizeof *row);
    }
    first_row(row, m);
    run(ref, n, hyp, m, row, NULL);
    cell last = row[m];
    int gaps = (last.cost - SUB * last.sub) / DEL; // deletions and insertions have the same weight
    counts->sub = last.sub;
    counts->del = (gaps + n - m) / 2;
    counts->ins = gaps - counts->del;
    counts->correct = n - counts->sub - counts->del;
    // Every label of the reference is in one of three, and every label of the hypothesis.
    assert((gaps + n - m) % 2 == 0 && counts->del >= 0 && counts->ins >= 0 && counts->correct >= 0);
    assert(counts->correct + counts->sub + counts->ins == m);
    if (row != small) lin_free(row);
    return LIN_OK;
}

// Memory of an alignment: the moves of one block of rows at a time, and the row of costs before each block, so that the blocks
// can be processed backwards.
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
static int follow(const unsigned char *moves, int first, int m, int *i, int *j, lin_edit_step *steps)
{
    int k = 0;
    while (*i > first || (first == 0 && *j > 0)) {
        int move = *i == 0 ? FROM_LEFT : *j == 0 ? FROM_ABOVE : moves[(size_t)(*i - 1 - first) * (size_t)m + (size_t)(*j - 1)];
        if (move != FROM_LEFT) --*i;
        if (move != FROM_ABOVE) --*j;
        steps[k++] = (lin_edit_step){.ref = move == FROM_LEFT ? -1 : *i, .hyp = move == FROM_ABOVE ? -1 : *j};
    }
    return k;
}

lin_status lin_edit_align(const int *ref, int n, const int *hyp, int m, lin_edit_step *steps, int *n_steps, lin_error *err)
{
    return lin_edit_align_within(ref, n, hyp, m, MAX_MOVES, steps, n_steps, err);
}

lin_status lin_edit_align_within(const int *ref, int n, const int *hyp, int m, size_t max_moves, lin_edit_step *steps,
                                 int *n_steps, lin_error *err)
{
    blocks b;
    *n_steps = 0;
    lin_status status = check_lengths(n, m, err);
    if (status == LIN_OK && (long long)n * m > 1LL << 36)
        status = lin_fail(err, LIN_INVALID, "%d and %d tokens are too many to align", n, m);
    if (status == LIN_OK) status = make_blocks(&b, n, m, max_moves, err);
    if (status != LIN_OK) return status;
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
        k += follow(b.moves, first, j, &i, &j, steps + k);
    }
    for (int x = 0, y = k - 1; x < y; x++, y--) {
        lin_edit_step step = steps[x];
        steps[x] = steps[y];
        steps[y] = step;
    }
    assert(i == 0 && j == 0 && k <= n + m); // the path is whole
    free_blocks(&b);
    *n_steps = k;
    return LIN_OK;
}

int lin_edit_greedy(const float *logp, int T, int V, const int *labels, int U)
{
    enum { PIECE = 256, MOST = 4096 };
    int few[MOST], n = 0, got, *hyp = T <= MOST ? few : lin_alloc((size_t)T, sizeof *hyp);
    if (!hyp) return U;
    lin_greedy greedy;
    lin_greedy_phone phones[PIECE];
    lin_greedy_reset(&greedy, V, 0, 0);
    for (int t = 0; t < T; t += PIECE) {
        const int rows = T - t < PIECE ? T - t : PIECE;
        const lin_status status = lin_greedy_push(&greedy, logp + (size_t)t * (size_t)V, rows, phones, PIECE, &got, NULL);
        for (int i = 0; status == LIN_OK && i < got; i++) hyp[n++] = phones[i].label; // at most one for each row
    }
    lin_greedy_finish(&greedy, phones, &got);
    if (got && n < T) hyp[n++] = phones[0].label;
    lin_edit_counts counts;
    const lin_status status = lin_edit_distance(labels, U, hyp, n, &counts, NULL);
    if (hyp != few) lin_free(hyp);
    return status == LIN_OK ? counts.sub + counts.del + counts.ins : U;
}
