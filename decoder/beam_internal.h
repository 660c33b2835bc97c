/*
 * beam_internal.h - the state of a prefix beam search and the parts of the search: decoder/beam*.c only.
 *
 * One block: beam_state, then arrays of fixed size. Two trees live in pools inside of it, their free elements strung on lists:
 *
 *   nodes   prefixes: a path from the root spells the phones. What depends on the prefix alone is kept here: the states of the
 *           language model and the context, the weights. The prefixes in the beam and their ancestors are alive.
 *   cells   alignments: a path from the root lists phones with their frames. A phone becomes a cell when its run is over; the
 *           best alignments of all prefixes share what they have in common, so what they all share is the path below the root
 *           that does not branch, and is settled.
 *
 * A prefix in the beam (hypothesis) has two ends: alignments that end in blank, and those that end in its last phone. Each has the
 * sum over its alignments and the best one of them. Probabilities are doubles in the linear domain, divided by a power of two after
 * every frame: that is exact, so nothing is lost however long the stream is.
 */
#ifndef LIN_DECODER_BEAM_INTERNAL_H
#define LIN_DECODER_BEAM_INTERNAL_H

#include "decoder/beam.h"

enum { BEAM_ROOT_LABEL = 0, BEAM_NONE = -1, BEAM_FREE = -2 };

/* exp of what one phone may be weighed with at most, either way: products stay far from the ends of double. */
#define BEAM_WEIGHT_MAX 300.0

typedef struct beam_node {
    int32_t parent; /* BEAM_NONE of the root, BEAM_FREE where the node is not in use */
    int32_t first;  /* of its children */
    int32_t next;   /* sibling, or free node */
    int32_t label;
    int32_t hyp; /* its place in the beam, or BEAM_NONE */
    int32_t depth;
    lin_ngram_state lm;
    int32_t context;
    double gain;     /* exp of its weight less its parent's */
    double weight;   /* natural logarithm of all but the sound, since the reset */
    double language; /* natural logarithm by the language model, not weighted, since the reset */
    double promise;  /* of unfinished phrases, part of weight */
} beam_node;

typedef struct beam_cell {
    int64_t start, end; /* frames of the run */
    double sum;         /* of its log-probabilities */
    int32_t parent;     /* the phone before; BEAM_FREE where the cell is not in use */
    int32_t refs;       /* from cells and hypotheses; the next free cell where it is not in use */
    int32_t label;
    int32_t depth;
} beam_cell;

typedef struct beam_hyp {
    double blank, label;             /* sums over the alignments that end in blank, in the last phone */
    double best_blank, best_label;   /* of the best alignment alone, in a scale of their own */
    double sum;                      /* log-probabilities of the open run of the best alignment that ends in the last phone */
    int64_t start;                   /* its first frame; it reaches to the present one */
    int32_t before_blank, before_label; /* phones complete in each: cells; BEAM_NONE where the end is dead */
    int32_t node;
    int32_t slot; /* row of `gains` */
} beam_hyp;

typedef struct beam_state {
    uint64_t identity; /* of the beam */
    uint64_t context;  /* id of the context last used; 0: none */
    int64_t frame;     /* number of the next frame */
    int64_t scale;     /* sums are relative to 2^scale * exp(shift) */
    double shift;
    int32_t n_hyps;
    int32_t finished;
    int32_t node_root, node_free;
    int32_t cell_root, cell_free;
    int32_t slots_free, reserved;
} beam_state;

typedef struct beam_candidate {
    double score;
    int32_t hyp;
    int32_t label; /* to be added; 0: none, the prefix stays; below 0: it stays, and ties count as of label -label */
} beam_candidate;

struct lin_beam {
    lin_beam_options options;
    int V, n_labels; /* n_labels: followed in each frame */
    const lin_ngram *lm;
    int *words; /* [V] of the language model */
    uint64_t identity;
    double cut;        /* ends below best * cut are dropped */
    double blank_logp; /* frames whose blank reaches it are skipped */
    int n_nodes, n_cells;
    size_t bytes, at_hyps, at_next, at_nodes, at_cells, at_gains, at_candidates, at_probabilities, at_merged, at_values, at_labels,
        at_marks, at_closing, at_slots;
};

/* A state taken apart. */
typedef struct beam_view {
    const lin_beam *beam;
    const lin_context *context;
    beam_state *state;
    beam_hyp *hyps, *next;       /* [width], the best first; of the frame before, of this one */
    beam_node *nodes;            /* [n_nodes] */
    beam_cell *cells;            /* [n_cells] */
    double *gains;               /* [width, V] exp of what adding a label to the prefix weighs; below 0: not asked yet */
    beam_candidate *candidates;  /* [width] a heap, the worst on top */
    double *probabilities;       /* [V] of this frame */
    double *merged;              /* [width] what prefixes get from those one phone shorter */
    double *values;              /* [V] scratch */
    int32_t *labels;             /* [V] followed in this frame, ascending */
    int32_t *marks;              /* [V] labels that lead from hypothesis marks[k] - 1 into the beam */
    int32_t *closing;            /* [width] cell of the run that ended before this frame, or BEAM_NONE */
    int32_t *slots;              /* [width] rows of `gains` not in use: the first slots_free */
} beam_view;

beam_view lin_beam_view(const lin_beam *beam, const lin_context *context, void *state);

static inline double beam_total(const beam_hyp *h) { return h->blank + h->label; }

/* ---- beam_trees.c ------------------------------------------------------------------------------------------------------------ */

void lin_beam_trees_reset(beam_view *v);

/* The child of a node by label, or BEAM_NONE. */
int32_t lin_beam_child(const beam_view *v, int32_t parent, int32_t label);

/* A new child; its weights are the caller's. The pool holds what width and `longest` allow. */
int32_t lin_beam_add_child(beam_view *v, int32_t parent, int32_t label);

/* Frees a node that is not in the beam and has no children, then its parent likewise, ...; then the root moves down to where the
 * prefixes part. */
void lin_beam_prune(beam_view *v, int32_t node);
void lin_beam_lower_root(beam_view *v);

/* A cell behind `parent`, which it refers to; nobody refers to it yet. */
int32_t lin_beam_add_cell(beam_view *v, int32_t parent, int32_t label, int64_t start, int64_t end, double sum);
void lin_beam_hold_cell(beam_view *v, int32_t cell);
void lin_beam_drop_cell(beam_view *v, int32_t cell); /* BEAM_NONE is fine */

/* Appends what all alignments share to *settled, which has room. Returns the number of phones. */
int lin_beam_settle(beam_view *v, lin_path *settled);

/* Appends the phones from the root's to `cell`; the path has room. */
void lin_beam_list(const beam_view *v, int32_t cell, lin_path *path);

/* The better one of a hypothesis's ends by its best alignment: the cell; *open is set where its last phone's run is open. */
int32_t lin_beam_best_end(const beam_hyp *h, int *open);

lin_path_phone lin_beam_phone(int label, double sum, int64_t start, int64_t end);

/* ---- beam_step.c ------------------------------------------------------------------------------------------------------------- */

/* One frame; the row was checked, the path has room. */
void lin_beam_step(beam_view *v, const float *row, lin_path *settled);

/* Takes back what the old context promised. */
void lin_beam_change_context(beam_view *v);

/* Puts the hypotheses in order, the best first, where something but lin_beam_step changed their scores. */
void lin_beam_sort(beam_view *v);

#endif
