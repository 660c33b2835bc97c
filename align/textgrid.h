/*
 * textgrid.h - reads Praat's TextGrids: labelled intervals of time on one or several tiers.
 *
 * Pipeline: a file that a person or another aligner made -> [this] -> the utterances of align/aligner.
 * One parser reads the long and the short text form: by Praat's manual (TextGrid file formats) a reader looks for free-standing
 * numbers, texts between quotes and flags, and skips everything else. UTF-8, or UTF-16 with a byte order mark (base/unicode.h).
 * The chronological and the binary form are not supported.
 *
 *   lin_textgrid grid;
 *   lin_textgrid_parse(bytes, n, "x.TextGrid", &grid, &err);
 *   lin_textgrid_choose(&grid);                                          // marks the tiers of utterances
 *   ... grid.tiers[t].chosen, grid.intervals[grid.tiers[t].first + i] ...
 *   lin_textgrid_free(&grid);
 *
 * Threads: no shared state.
 */
#ifndef LIN_ALIGN_TEXTGRID_H
#define LIN_ALIGN_TEXTGRID_H

#include <stddef.h>

#include "base/status.h"

enum { LIN_TEXTGRID_TIERS = 1000 };

typedef struct lin_textgrid_interval {
    double start_s, end_s; /* start <= end; in order within a tier, without overlap */
    size_t text;           /* for lin_textgrid_text; UTF-8 if the file is */
} lin_textgrid_interval;

typedef struct lin_tier {
    size_t name;
    int is_points; /* a tier of points, which are read and left out: n is 0 */
    int first, n;  /* of the grid's intervals */
    int chosen;
} lin_tier;

typedef struct lin_textgrid {
    lin_tier *tiers;
    int n_tiers;
    size_t tiers_capacity;
    lin_textgrid_interval *intervals;
    size_t n_intervals, intervals_capacity;
    char *text; /* names and labels, each with its NUL; control characters in them are blanks */
    size_t text_used, text_capacity;
} lin_textgrid;

/* On failure *grid is empty. LIN_FORMAT with name:line for another kind of file, a truncated file, times that are not
 * numbers, decrease or overlap, or more than LIN_TEXTGRID_TIERS tiers; LIN_NO_MEMORY. */
lin_status lin_textgrid_parse(const char *bytes, size_t n, const char *name, lin_textgrid *grid, lin_error *err);

/*
 * Chooses the tiers of utterances: the first that has a label, and every further one whose labels are outside those of the tiers
 * chosen before it for more than half of their time, as for another speaker; a tier of words or phones of the same speech
 * overlaps them. Never a tier called "notes". Returns their number.
 */
int lin_textgrid_choose(lin_textgrid *grid);

/* "" for an interval without a label. */
const char *lin_textgrid_text(const lin_textgrid *grid, size_t at);

void lin_textgrid_free(lin_textgrid *grid);

#endif
