/*
 * edit.h - counts the errors between a reference and a hypothesis as NIST's sclite does.
 *
 * Levenshtein alignment with weights 4 for a substitution, 3 for a deletion and 3 for an insertion. Ties decide the number of
 * substitutions, because three of them weigh as much as two deletions and two insertions. They are broken at every cell from the
 * start: a match or substitution if nothing weighs less, else a deletion if it weighs less than an insertion, else an insertion.
 * tests/golden/score.py compares this with sclite.
 *
 *   lin_edit_distance(ref, n, hyp, m, &counts, &err);
 *   error_rate = (counts.sub + counts.del + counts.ins) / n;
 *
 * Threads: no shared state.
 */
#ifndef LIN_SCORE_EDIT_H
#define LIN_SCORE_EDIT_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_edit_counts {
    int correct, sub, del, ins; /* correct + sub + del = n, correct + sub + ins = m */
} lin_edit_counts;

/*
 * ref [n], hyp [m]: any integers, equal or not. n * m operations; memory for m numbers.
 * LIN_NO_MEMORY, or LIN_INVALID for a length below 0 or over 100 million.
 */
lin_status lin_edit_distance(const int *ref, int n, const int *hyp, int m, lin_edit_counts *counts, lin_error *err);

/* A step of an alignment: tokens of both sides, -1 for nothing. is_right: they are equal, or an optional word has no partner. */
typedef struct lin_edit_pair {
    int ref, hyp, is_right;
} lin_edit_pair;

/*
 * The alignment itself, from first to last.
 *   max_moves  bytes of a block, 0: 64 MiB; tests give fewer, so that short sequences take several blocks
 *   steps      [n + m], the caller's; *n_steps of them are filled
 * Takes n * m operations and n * m bytes during the call; beyond 64 MiB, twice the operations and far less memory (100,000 tokens
 * on either side: 180 MiB, half a minute). LIN_INVALID if n * m is over 2^36.
 */
lin_status lin_edit_align(const int *ref, int n, const int *hyp, int m, size_t max_moves, lin_edit_pair *steps, int *n_steps,
                          lin_error *err);

/* The number of errors of the greedy phones of logp [T, V] against labels [U], for the error rate in training. Rows that are not
 * finite give no phones. Returns U if memory is short. */
int lin_edit_greedy(const float *logp, int T, int V, const int *labels, int U);

/* ---- sequences with alternatives and optional words ------------------------------------------------------------------------ */

/*
 * "{ a / b c / @ }", "(uh)", <ALT_BEGIN> in a CTM. Either side is a network of words. Dynamic programming over pairs of words
 * finds the path through both with the least weight: 4 for a substitution, 3 for a deletion or an insertion as above, 2 where the
 * word is optional, 0.001 for a null word (@). Ties decide the counts, so sums are floats added in sclite's order, and of equal
 * ones the first in the order of the text is chosen.
 * tests/golden/score_choices.py compares this with sclite -D. A sequence without choices is aligned by lin_edit_align, which is
 * faster and gives the same steps.
 *
 *   // OPEN a OR b c CLOSE d        { a / b c } d
 *   lin_edit_choices(ref, n, hyp, m, 0, steps, &n_steps, &err);
 */

/* Elements of a sequence that are not tokens (0 and more). OPEN, OR and CLOSE are nested at most this deep. */
enum {
    LIN_EDIT_OPEN = -2,
    LIN_EDIT_OR = -3,
    LIN_EDIT_CLOSE = -4,
    LIN_EDIT_NULL = -5,
    LIN_EDIT_OPTIONAL = -6 /* the next token */
};
enum { LIN_EDIT_DEPTH = 16 };

/*
 * ref [n], hyp [m]: tokens and the marks above, well nested. steps [n + m] is the caller's; *n_steps of them are filled, without
 * null words. Takes 12 bytes per pair of words during the call; beyond 2^24 pairs it works in blocks that end outside of
 * alternatives, with twice the operations. LIN_NO_MEMORY, LIN_INVALID for more than 2^26 pairs in a block or 2^33 operations.
 * max_pairs: approximate pairs of a block, for tests; 0: 2^24.
 */
lin_status lin_edit_choices(const int *ref, int n, const int *hyp, int m, size_t max_pairs, lin_edit_pair *steps, int *n_steps,
                            lin_error *err);

#endif
