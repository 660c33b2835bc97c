/*
 * align.h - aligns a known text with rows: the best CTC path through the text, with the times of its phones and words.
 *
 * Pipeline: text -> lexicon -> align/spoken -> a graph; log-probabilities [T, V], blank at index 0, and the graph -> [this] ->
 * decoder/result, align/goodness.
 * Viterbi's algorithm over the states of Graves et al. 2006, section 4.1. Of several pronunciations of a word the best is chosen.
 *
 *   lin_align_options o = lin_align_options_default();
 *   lin_align_text(&graph, &o, logp, T, &path, &report, &err);
 *   ... path.phones, path.words ...
 *
 * The beam: the states of a row are numbers lo .. hi-1. States at both ends that are worse than the best of the row by `beam` are
 * dropped; so are the worse of both ends beyond `width` states. For each row and state that is kept, 2 bits store the predecessor
 * of its best path (4 or 8 if a word has 2 or more pronunciations), so memory is T * (V floats + states in the beam / 4 bytes).
 * If nothing was dropped, the path is the best of all. If something was dropped and even the best state has lost as much over a
 * stretch of `stretch_s` seconds as with a wrong text, then the right path is not in the beam, or the text is not what was said:
 * the pass resumes two stretches earlier with a beam four times as wide in score and states, and widens again if that has not
 * found the text a stretch later; afterwards the beam has its first width again. So text that was not said, and speech that is
 * not in the text, need extra time only where they are. If the end of the text is not reached, finish repeats this from farther
 * back with wider beams. The report gives the widenings.
 *
 * With `others`, a second pass allows speech that is not in the text, where the score of its path is better: such a row costs
 * as much as its best label and LIN_ALIGN_OTHER more, or as a blank, and each stretch LIN_ALIGN_OTHER_OUTSIDE or
 * LIN_ALIGN_OTHER_BETWEEN. A phone loop with one weight for all phones would score the same (the fillers of keyword spotting,
 * Rose & Paul 1990). If that gains nothing, the path of the first pass stays: a text that matches has the same path with and
 * without `others`.
 *
 * A word without a pronunciation (lin_align_graph_add_any) takes the rows that its neighbours leave: each costs as much as its
 * best label and LIN_ALIGN_ANY more. Its phones in the path are the best labels there.
 *
 * Threads: no shared state; a graph may be shared.
 */
#ifndef LIN_ALIGN_ALIGN_H
#define LIN_ALIGN_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/result.h"

/* ---- the text as a graph --------------------------------------------------------------------------------------------------- */

/*
 * A sequence of slots, each with one or several pronunciations (Graves et al. 2006, section 4.1): a blank may be between any two
 * phones, before the first and after the last, and must be between two equal ones. The pronunciations of a slot are parallel
 * paths between the blank before it and the blank after it, each with a probability. Before the first slot, before every word and
 * after the last slot a state stands for speech that is not in the text.
 *
 *   lin_align_graph graph = {0};
 *   lin_align_graph_begin(&graph, V, &err);
 *   lin_align_graph_add(&graph, pronunciations, n, 1, &err);    // a word: slot 0, 1, ...; 0: not one, as single phones
 *   ... lin_align_text(&graph, ...) ...
 *   lin_align_graph_free(&graph);
 *
 * Every predecessor of a state has a smaller number, so the states can be updated in place, from the last one down.
 * Constant once the last slot is added.
 */

/* Natural logarithm that is added where a path enters speech that is not in the text, before or after all words, and between
 * two. A blank in the place of a phone loses about 8. */
#define LIN_ALIGN_OTHER_OUTSIDE (-20.0)
#define LIN_ALIGN_OTHER_BETWEEN (-35.0)

/* Largest number of pronunciations of a slot: a state's choice among its predecessors must fit a byte. */
enum { LIN_ALIGN_PRONUNCIATIONS = 250 };

typedef struct lin_align_pronunciation {
    const int *labels;         /* [n], 1 .. V-1 */
    int n;
    const signed char *stress; /* [n], CMUdict's digit of each phone, -1 where it is not known; NULL: it is for none */
    double logp;               /* natural logarithm of its probability, at most 0 */
} lin_align_pronunciation;

typedef struct lin_align_state {
    int32_t label;   /* 0: blank; V: any (lin_align_graph_add_any); V + 1: speech that is not in the text */
    int32_t slot;    /* of a phone; -1 for the blanks and the other speech between slots */
    int32_t stress;  /* of a phone, as in lin_path_phone */
    int32_t before;  /* its first predecessor in `befores`, up to the next state's first; the state itself is one too */
    int32_t reach;   /* 1 + the largest successor of any state up to this one */
    float logp;      /* natural logarithm, added where a path enters a pronunciation or other speech; else 0 */
} lin_align_state;

typedef struct lin_align_slot {
    int32_t first;  /* state after the blank and the other speech before it */
    int32_t n;      /* pronunciations */
    int32_t is_word;
} lin_align_slot;

/* Read-only for other modules. */
typedef struct lin_align_graph {
    int V;
    lin_align_state *states; /* the first is a blank; [n_states].before ends the list of the last */
    int n_states, states_capacity;
    int32_t *befores;
    int n_befores, befores_capacity;
    lin_align_slot *slots;
    int n_slots, slots_capacity;
    int most_befores; /* of any state */
    int32_t ends[LIN_ALIGN_PRONUNCIATIONS];   /* last phones of the last slot's pronunciations */
    int32_t starts[LIN_ALIGN_PRONUNCIATIONS]; /* first phones of the first slot's */
    int n_ends, n_starts;
    int64_t least[LIN_ALIGN_PRONUNCIATIONS];  /* rows needed to reach each end: phones, and blanks between equal ones */
    int64_t least_phones; /* of the shortest path through the text */
} lin_align_graph;

/* A graph without slots, for V outputs, blank at index 0. Zero it before its first use; its memory is kept for the next text. */
lin_status lin_align_graph_begin(lin_align_graph *graph, int V, lin_error *err);
void lin_align_graph_free(lin_align_graph *graph);

/*
 * One more slot: n pronunciations, any two different, at most LIN_ALIGN_PRONUNCIATIONS. is_word: it is one of the path's words.
 * Numbers of slots count all. LIN_UNSUPPORTED for a text of over 500 million states or of over a billion steps between them (many
 * pronunciations of many words); LIN_NO_MEMORY. On failure the graph is as before.
 */
lin_status lin_align_graph_add(lin_align_graph *graph, const lin_align_pronunciation *pronunciations, int n, int is_word,
                               lin_error *err);

/* A word whose pronunciation is not known: a slot that any sound of at least a row fits, at a cost for each row. On failure the
 * graph is as before. */
lin_status lin_align_graph_add_any(lin_align_graph *graph, lin_error *err);

/* The fewest rows that fit the text: phones, and a blank between equal ones, of its shortest path. */
int64_t lin_align_graph_least_rows(const lin_align_graph *graph);

/* ---- the alignment --------------------------------------------------------------------------------------------------------- */

typedef struct lin_align_options {
    double beam;        /* natural logarithm, above 0; INFINITY: no state is dropped for its score */
    int width;          /* largest number of states kept at a row; at least 2 */
    int widenings;      /* how many times the beam may be widened at one place; 0: never */
    double row_s;       /* from one row to the next, for messages and stretches */
    double stretch_s;   /* long enough to distinguish a wrong text from a few wrong words */
    double mismatch;    /* below this worst_fit (lin_align_report) text and sound do not match there; below 0 */
    size_t most_bytes;  /* limit for the paths of the states of all rows */
    int others;         /* 1: speech that is not in the text may be before, between and after the words */
} lin_align_options;

/* 600, 4000 states, widened 4 times; rows of 30 ms, stretches of 20 s that lose 20 per second, 1 GB. Reasons: docs/alignment.md.
 * */
lin_align_options lin_align_options_default(void);

/* A text with a lower fit (below) was probably not said: on development data this holds for 3 of 497 right texts, and for all but
 * 3 of 497 texts of other utterances (docs/alignment.md). */
#define LIN_ALIGN_FIT (-4.0)

/* The cost of a row of a word without a pronunciation: less than a wrong text loses, more than a right one. */
#define LIN_ALIGN_ANY (-0.5)

/* The cost of a row with a phone that is not in the text: less than a blank loses there, more than a phone of the text. */
#define LIN_ALIGN_OTHER (-2.0)

typedef struct lin_align_report {
    double score;       /* natural logarithm of the path, with blanks and the probabilities of its pronunciations */
    double fit;         /* (score - that of the best label of every row) / phones, without other speech: 0 where greedy search
                           would find the text */
    double worst_fit;   /* the same difference per second, of the worst stretch */
    int64_t worst_row;  /* first row of that stretch */
    int widened;        /* number of widenings */
    double beam;        /* the widest */
    int width;
    int exact;          /* nothing was dropped: no other path is better */
    size_t bytes;       /* largest memory of the paths of the states */
} lin_align_report;

/*
 * Aligns the text with logp [T, V], natural logarithms, and replaces *path: by the phones in order, with the stress of the
 * pronunciation that was chosen, the frames of their runs and the geometric mean of their probabilities as confidence; and by the
 * words, whose number is that of their slot, with the geometric mean over the frames of their phones' runs. LIN_INVALID for a
 * graph without slots (an empty text). LIN_NUMERIC, naming the frame, for a NaN, or a row whose largest value is infinite.
 * LIN_MISMATCH if text and sound cannot match: fewer rows than the text needs, or no state that ends the text is reached, even
 * with the widest beam. LIN_NO_MEMORY, also if most_bytes is reached.
 */
lin_status lin_align_text(const lin_align_graph *graph, const lin_align_options *options, const float *logp, int64_t T,
                          lin_path *path, lin_align_report *report, lin_error *err);

#endif
