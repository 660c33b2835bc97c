/*
 * align.h - when each phone and word of a known text was said: the best CTC path through it, as the frames come.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0, and a decoder/align_graph -> [this] -> decoder/path, decoder/goodness.
 * Viterbi's algorithm over the states of Graves et al. 2006, section 4.1. Of several pronunciations of a word the sound chooses.
 *
 *   lin_align_options o = lin_align_options_default();
 *   lin_align_create(graph, &o, &align, &err);
 *   while (rows come) lin_align_push(align, logp, n, &err);
 *   lin_align_finish(align, &path, &report, &err);
 *   ... path.phones, path.words, lin_align_chosen(align, slot), lin_align_row(align, t) ...
 *   lin_align_destroy(align);
 *
 * The beam: the states of a row are numbers lo .. hi-1, and those at both ends that are `beam` behind the best of the row are
 * dropped; so are the worse of both ends beyond `width` states. For each row and state that is kept 2 bits say where its best path
 * came from (4 or 8, where a word has 3 or more pronunciations), so memory is T * (V floats + states in the beam / 4 bytes).
 * Where nothing was dropped the path is the best of all. Where something was, and even the best state has lost so much over a
 * stretch of `stretch_s` seconds as a wrong text does, the beam has lost the path, or the text is not what was said: the pass
 * goes back two stretches and on with a beam four times as wide in both ways, and once more as wide if that has not found the
 * text again a stretch later; then the beam is as it was. So text that was not said, and speech that is not in the text, cost
 * time where they are and not elsewhere. If the end of the text is not reached, finish goes back ever farther with an ever wider
 * beam. The report says so.
 *
 * Any split of the same rows into pushes gives the same path and scores to the bit. Memory grows by blocks of many rows.
 * Threads: a graph is shared, an aligner belongs to one thread at a time.
 */
#ifndef LIN_DECODER_ALIGN_H
#define LIN_DECODER_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/align_graph.h"
#include "decoder/path.h"

typedef struct lin_align_options {
    double beam;        /* natural logarithm, above 0; INFINITY: none is dropped for its score */
    int width;          /* states kept at a row, at most; at least 2 */
    int widenings;      /* times that the beam may be widened at one place; 0: never */
    double row_s;       /* from one row to the next, for messages and stretches */
    double stretch_s;   /* long enough to tell a text that was not said from a few wrong words */
    double mismatch;    /* worst_fit of lin_align_report below which text and sound do not belong together there; below 0 */
    size_t most_bytes;  /* for the paths of a row's states, over all rows */
} lin_align_options;

/* 600, 4000 states, widened 4 times; rows of 30 ms, stretches of 20 s that lose 20 a second, 1 GB. docs/alignment.md says why. */
lin_align_options lin_align_options_default(void);

/* A text whose fit (below) is less was probably not said: so bad are 3 of 497 texts of dev data's utterances, and all but 3 of
 * 497 that belong to others (docs/alignment.md). */
#define LIN_ALIGN_FIT (-4.0)

typedef struct lin_align_report {
    double score;       /* natural logarithm of the path, blanks and all */
    double fit;         /* (score - that of the best label of every row) / phones: 0 where greedy search would find the text */
    double worst_fit;   /* the same difference, but per second, of the worst stretch */
    int64_t worst_row;  /* where that begins */
    int widened;        /* how often the beam was */
    double beam;        /* the widest */
    int width;
    int exact;          /* nothing was dropped: no other path is better */
    size_t bytes;       /* that the paths of the states took, at most */
} lin_align_report;

typedef struct lin_align lin_align;

/* Keeps a pointer to the graph, which must outlive it. LIN_INVALID for a graph without slots (an empty text) or bad options. */
lin_status lin_align_create(const lin_align_graph *graph, const lin_align_options *options, lin_align **align, lin_error *err);
void lin_align_destroy(lin_align *align); /* NULL is fine */

/* Forgets all rows and keeps the memory: the next sound of the same text. */
void lin_align_reset(lin_align *align);

/*
 * Takes in logp [n_frames, V], natural logarithms, which are copied. LIN_NUMERIC, naming the frame, for a NaN, infinity or a row
 * without a finite value; LIN_NO_MEMORY, also when most_bytes are used up. On failure nothing more than some of the rows is taken
 * in, and only reset or destroy make sense.
 */
lin_status lin_align_push(lin_align *align, const float *logp, int n_frames, lin_error *err);

/*
 * Ends it: *path is replaced by the phones in order, with the frames of their runs and the geometric mean of their probabilities as
 * confidence; and by the words, whose number is that of their slot, with the geometric mean over the frames of their phones' runs.
 * report may be NULL. LIN_MISMATCH where text and sound cannot match: fewer rows than the text needs, or none of the states that
 * end the text is reached, the widest beam included. Push again only after a reset.
 */
lin_status lin_align_finish(lin_align *align, lin_path *path, lin_align_report *report, lin_error *err);

/* After finish: the pronunciation of a slot that was chosen. */
int lin_align_chosen(const lin_align *align, int slot);

/* Rows taken in, and one of them [V]. */
int64_t lin_align_rows(const lin_align *align);
const float *lin_align_row(const lin_align *align, int64_t row);

#endif
