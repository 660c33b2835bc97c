/*
 * tasks.h - generates sequences of synthetic tasks: the paper's copy task, and ListOps and Pathfinder of the Long Range Arena
 * (Tay et al. 2021). Each sequence is a function of its key alone.
 *
 * Tokens and targets are those of train/dataset.h: the target of a row is the symbol to predict there, -1 for none. A
 * classification has one target, that of its last row: a causal network has seen the whole sequence there, and a bidirectional
 * one sees it everywhere.
 */
#ifndef LIN_PAPER_TASKS_H
#define LIN_PAPER_TASKS_H

#include <stdint.h>

#include "base/status.h"

/* ---- copy ------------------------------------------------------------------------------------------------------------------ */

/*
 * Katharopoulos et al. 2020, section 4.1.1: 0 w 0 w, a separator, symbols w, the separator, and the same symbols again. The
 * number of symbols of w is uniform from 1 to (length - 2) / 2, each is uniform in 1..symbols. The targets are the next tokens,
 * those of the second w only: those of the first are random.
 *   length  4 or more; symbols 1 or more
 *   tokens, targets [length]
 * Returns the rows: one less than the sequence has symbols, since nothing follows the last.
 */
int lin_copy_make(int length, int symbols, uint64_t key, int *tokens, int *targets);

/* ---- ListOps --------------------------------------------------------------------------------------------------------------- */

/*
 * Nangia & Bowman 2018: nested lists in prefix notation, [MAX 4 3 [MIN 2 3 ] 1 0 ], with the value 4. MIN, MAX, MED (the median,
 * of an even number the mean of the two in the middle, rounded down) and SM (the sum modulo 10) of digits and lists. A list is
 * drawn with probability 1/4, else a digit; the outermost is always a list. This is the original's distribution; expressions
 * outside the bounds are drawn again.
 */
enum { LIN_LISTOPS_MIN = 10, LIN_LISTOPS_MAX, LIN_LISTOPS_MED, LIN_LISTOPS_SM, LIN_LISTOPS_END, LIN_LISTOPS_ASK,
       LIN_LISTOPS_TOKENS }; /* 0..9: the digits; ASK: the last token, whose target is the value */

typedef struct lin_listops {
    int least, most; /* tokens of the expression, without ASK; the arena: 500 and 2,000 */
    int depth;       /* levels of the tree, with that of the digits, 2 or more: 10 */
    int arguments;   /* most arguments of a list, 2 or more: 10 */
} lin_listops;

/* tokens [most + 1]. *T: their number, with ASK; *value: 0..9. LIN_INVALID: expressions within the bounds are too rare. */
lin_status lin_listops_make(const lin_listops *how, uint64_t key, int *tokens, int *T, int *value, lin_error *err);

/* ---- Pathfinder ------------------------------------------------------------------------------------------------------------ */

/*
 * Linsley et al. 2018, at the arena's 32 x 32 pixels: dashed paths and two dots; the class tells whether one path connects them.
 * Two long paths and up to `distractors` short ones are apart from each other. The dots are at both ends of one long path (class
 * 1), or at one end of each (class 0).
 *
 * The original draws 14 paddles per path into 300 x 300 pixels, with contrasts and paddle shapes of its own, and the arena scales
 * these down; here paths are drawn at the final size, in dashes of three pixels. Paths bend at random by at most 20 degrees per
 * pixel and never come near each other or themselves, so that pixels at most two apart belong to one path. So accuracies can be
 * compared with each other, but not with the arena's.
 */
enum { LIN_PATHFINDER_SIDE = 32, LIN_PATHFINDER_PIXELS = LIN_PATHFINDER_SIDE * LIN_PATHFINDER_SIDE };

/* pixels [LIN_PATHFINDER_PIXELS]: 0 background, 255 dots, paths between. length: steps of a long path, 8 to 28. Returns the
 * class. */
int lin_pathfinder_make(int length, int distractors, uint64_t key, int *pixels);

#endif
