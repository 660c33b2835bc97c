/*
 * edit_choices.h - counts the errors between sequences with alternatives and optional words as NIST's sclite does.
 *
 * Pipeline: score/trn ("{ a / b c / @ }", "(uh)", <ALT_BEGIN> in a CTM) -> [this] -> score/score. A sequence without choices is
 * aligned by score/edit, which is faster and gives the same steps.
 * Either side is a network of words. Dynamic programming over pairs of words finds the path through both with the least weight: 4
 * for a substitution, 3 for a deletion or an insertion as in edit.h, 2 where the word is optional, 0.001 for a null word (@).
 * Which of several paths with the same weight is chosen decides the counts, so sums are floats that are added in sclite's order,
 * and of equal ones the first counts, in the order of the text. tests/golden/score_choices.py compares this with sclite -D.
 *
 *   // OPEN a OR b c CLOSE d        { a / b c } d
 *   lin_edit_choices(ref, n, hyp, m, steps, &n_steps, &err);
 *
 * Threads: no shared state.
 */
#ifndef LIN_SCORE_EDIT_CHOICES_H
#define LIN_SCORE_EDIT_CHOICES_H

#include "base/status.h"

/* What else than a token (0 and more) an element of a sequence can be. OPEN, OR and CLOSE are nested at most this deep. */
enum {
    LIN_EDIT_OPEN = -2,
    LIN_EDIT_OR = -3,
    LIN_EDIT_CLOSE = -4,
    LIN_EDIT_NULL = -5,
    LIN_EDIT_OPTIONAL = -6 /* the next token */
};
enum { LIN_EDIT_DEPTH = 16 };

/* Tokens of both sides, -1 for nothing. is_right: they are equal, or an optional word has no partner. */
typedef struct lin_edit_choice {
    int ref, hyp, is_right;
} lin_edit_choice;

/*
 * ref [n], hyp [m]: tokens and the marks above, well nested. steps [n + m] is the caller's; *n_steps of them are filled, without
 * null words. 12 bytes for each pair of words for the time of the call. LIN_NO_MEMORY, LIN_INVALID for more than 2^26 pairs or
 * 2^33 operations.
 */
lin_status lin_edit_choices(const int *ref, int n, const int *hyp, int m, lin_edit_choice *steps, int *n_steps, lin_error *err);

#endif
