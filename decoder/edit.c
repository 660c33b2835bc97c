#include "decoder/edit.h"

#include "kernels/memory.h"

enum { SUB = 4, DEL = 3, INS = 3, MAX_LENGTH = 100000000, ON_STACK = 1000 };
enum { FROM_DIAGONAL, FROM_ABOVE, FROM_LEFT }; // match or substitution, deletion, insertion

typedef struct cell {
    int cost, sub; // of the chosen path; deletions and insertions follow from the two and the position
} cell;

// Fills one row after another in place. moves [n][m] may be NULL.
static cell run(const int *ref, int n, const int *hyp, int m, cell *row, unsigned char *moves)
{
    for (int j = 0; j <= m; j++) row[j] = (cell){.cost = INS * j, .sub = 0};
    for (int i = 1; i <= n; i++) {
        cell diagonal = row[0];
        row[0].cost += DEL;
        for (int j = 1; j <= m; j++) {
            int differ = ref[i - 1] != hyp[j - 1];
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
            if (moves) moves[(size_t)(i - 1) * (size_t)m + (size_t)(j - 1)] = (unsigned char)move;
        }
    }
    return row[m];
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
    if (status) return status;
    if (m > ON_STACK) {
        row = lin_alloc((size_t)m + 1, sizeof *row);
        if (!row) return lin_no_memory(err, "an alignment", ((size_t)m + 1) * sizeof *row);
    }
    cell last = run(ref, n, hyp, m, row, NULL);
    int gaps = (last.cost - SUB * last.sub) / DEL; // deletions and insertions together weigh alike
    counts->sub = last.sub;
    counts->del = (gaps + n - m) / 2;
    counts->ins = gaps - counts->del;
    counts->correct = n - counts->sub - counts->del;
    if (row != small) lin_free(row);
    return LIN_OK;
}

lin_status lin_edit_align(const int *ref, int n, const int *hyp, int m, lin_edit_step *steps, int *n_steps, lin_error *err)
{
    *n_steps = 0;
    lin_status status = check_lengths(n, m, err);
    if (status) return status;
    if ((long long)n * m > 1LL << 32) return lin_fail(err, LIN_INVALID, "%d and %d tokens are too many to align", n, m);
    cell *row = lin_alloc((size_t)m + 1, sizeof *row);
    unsigned char *moves = lin_alloc((size_t)n, (size_t)m);
    if (!row || !moves) {
        lin_free(row);
        lin_free(moves);
        return lin_no_memory(err, "an alignment", (size_t)n * (size_t)m + ((size_t)m + 1) * sizeof *row);
    }
    run(ref, n, hyp, m, row, moves);
    int i = n, j = m, k = 0;
    while (i > 0 || j > 0) { // backwards, turned round below
        int move = i == 0 ? FROM_LEFT : j == 0 ? FROM_ABOVE : moves[(size_t)(i - 1) * (size_t)m + (size_t)(j - 1)];
        if (move != FROM_LEFT) i--;
        if (move != FROM_ABOVE) j--;
        steps[k++] = (lin_edit_step){.ref = move == FROM_LEFT ? -1 : i, .hyp = move == FROM_ABOVE ? -1 : j};
    }
    for (int a = 0, b = k - 1; a < b; a++, b--) {
        lin_edit_step step = steps[a];
        steps[a] = steps[b];
        steps[b] = step;
    }
    lin_free(row);
    lin_free(moves);
    *n_steps = k;
    return LIN_OK;
}
