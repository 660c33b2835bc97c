/*
 * align_graph.h - a known text as a graph of CTC states: a sequence of slots, each with one or several pronunciations.
 *
 * Pipeline: text -> lexicon/dictionary, lexicon/g2p -> [this] -> align/align.
 * Graves et al. 2006, section 4.1: a blank may be between any two phones, before the first and after the last, and must be
 * between two equal ones. The pronunciations of a slot are parallel paths between the blank before it and the blank after it,
 * each with a probability (1, if lin_align_graph_weigh does not say otherwise). Before the first slot, before every word and
 * after the last slot a state stands for speech that is not in the text; align/align says what it costs.
 *
 *   lin_align_graph_create(V, &graph, &err);
 *   lin_align_graph_add(graph, pronunciations, lengths, n, 1, &err);     // a word: slot 0, 1, ...
 *   lin_align_graph_phones(graph, labels, n, &err);                      // or phones without a word, a slot for each
 *   ... lin_align_create(graph, ...) ...
 *   lin_align_graph_destroy(graph);
 *
 * Every predecessor of a state has a smaller number, so an aligner can update the states in place, from the last one down.
 * Threads: constant once the last slot is added, shared by all.
 */
#ifndef LIN_ALIGN_ALIGN_GRAPH_H
#define LIN_ALIGN_ALIGN_GRAPH_H

#include <stdint.h>

#include "base/status.h"

/* Natural logarithm that is added where a path enters speech that is not in the text, before or after all words, and between
 * two. A blank in the place of a phone loses about 8. */
#define LIN_ALIGN_OTHER_OUTSIDE (-20.0)
#define LIN_ALIGN_OTHER_BETWEEN (-35.0)

/* Largest number of pronunciations of a slot: a state's choice among its predecessors must fit a byte. */
enum { LIN_ALIGN_PRONUNCIATIONS = 250 };

typedef struct lin_align_state {
    int32_t label;   /* 0: blank; V: any (lin_align_graph_add_any); V + 1: speech that is not in the text */
    int32_t slot;    /* of a phone; -1 for the blanks and the other speech between slots */
    int32_t which;   /* of the slot's pronunciations */
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
    int32_t *ends;    /* last phones of the last slot's pronunciations */
    int32_t *starts;  /* first phones of the first slot's */
    int n_ends, n_starts;
    int64_t *least;   /* rows needed to reach each of the ends: phones, and blanks between equal ones */
    int64_t least_phones; /* of the shortest path through the text */
} lin_align_graph;

/* V outputs, blank at index 0. */
lin_status lin_align_graph_create(int V, lin_align_graph **graph, lin_error *err);
void lin_align_graph_destroy(lin_align_graph *graph); /* NULL is fine */

/*
 * One more slot: pronunciations[i] [lengths[i]], labels 1 .. V-1, any two different. is_word: it is one of the path's words.
 * Numbers of slots count all. LIN_INVALID for none, an empty one, a label out of range; LIN_UNSUPPORTED for over
 * LIN_ALIGN_PRONUNCIATIONS, a text of over 500 million states or of over a billion steps between them (many pronunciations of
 * many words); LIN_NO_MEMORY. On failure the graph is as before.
 */
lin_status lin_align_graph_add(lin_align_graph *graph, const int *const *pronunciations, const int *lengths, int n, int is_word,
                               lin_error *err);
/* Sets the natural logarithm of the probability, at most 0, of pronunciation `which` of the last slot, which has so many. */
void lin_align_graph_weigh(lin_align_graph *graph, int which, double logp);

/* Adds n slots of one phone each, without words. On failure the slots added so far stay. */
lin_status lin_align_graph_phones(lin_align_graph *graph, const int *labels, int n, lin_error *err);

/* A word whose pronunciation is not known: a slot that any sound of at least a row fits, at a cost for each row. On failure the
 * graph is as before. */
lin_status lin_align_graph_add_any(lin_align_graph *graph, lin_error *err);

/* The fewest rows that fit the text: phones, and a blank between equal ones, of its shortest path. */
int64_t lin_align_graph_least_rows(const lin_align_graph *graph);

#endif
