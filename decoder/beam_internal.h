/*
 * beam_internal.h - the state of a prefix beam search and the parts of the search: decoder/beam*.c only.
 *
 * One block: lin_beam_state, then arrays of fixed size. Two trees are stored in pools in it; free elements are in linked lists:
 *
 *   nodes   prefixes: a path from the root spells the phones. A node holds what depends only on the prefix: the states of the
 *           language model and the context, the weights. The prefixes in the beam and their ancestors are in use.
 *   traces  the trace-back of alignments: a path from the root lists phones with their frames. A phone becomes a trace when its
 *           run is over. The best alignments of all prefixes share their common beginning, so the path below the root that does
 *           not branch is shared by all of them and is settled.
 *
 * A hypothesis is a prefix in the beam. It has two endings: alignments that end in blank, and those that end in its last phone.
 * Each has the sum over its alignments and the best one of them. Probabilities are doubles in the linear domain, divided by a
 * power of two after every frame: this is exact, so the precision does not depend on the length of the stream.
 */
#ifndef LIN_DECODER_BEAM_INTERNAL_H
#define LIN_DECODER_BEAM_INTERNAL_H

#include "decoder/beam.h"

enum { LIN_BEAM_ROOT_LABEL = 0, LIN_BEAM_NONE = -1, LIN_BEAM_FREE = -2 };

/* Largest weight of one phone, natural logarithm, either way: products stay far from the limits of double. */
#define LIN_BEAM_WEIGHT_MAX 300.0

typedef struct lin_beam_node {
    int32_t parent; /* LIN_BEAM_NONE for the root, LIN_BEAM_FREE if the node is not in use */
    int32_t first;  /* first child */
    int32_t next;   /* next sibling, or next free node */
    int32_t label;
    int32_t hyp; /* its hypothesis in the beam, or LIN_BEAM_NONE */
    int32_t depth;
    lin_ngram_state lm;
    int32_t context;
    double gain;     /* exp of its weight minus its parent's */
    double weight;   /* natural logarithm of all but the acoustic score, since the reset */
    double language; /* natural logarithm by the language model, not weighted, since the reset */
    double pending;  /* of unfinished phrases, part of weight */
} lin_beam_node;

typedef struct lin_beam_trace {
    int64_t start, end; /* frames of the run */
    double sum;         /* of its log-probabilities */
    int32_t parent;     /* the phone before; LIN_BEAM_FREE if the trace is not in use */
    int32_t refs;       /* references from traces and hypotheses; the next free trace if not in use */
    int32_t label;
    int32_t depth;
} lin_beam_trace;

typedef struct lin_beam_hyp {
    double blank, label;             /* sums over the alignments that end in blank, in the last phone */
    double best_blank, best_label;   /* of the best alignment only, in a scale of their own */
    double sum;                      /* log-probabilities of the open run of the best alignment that ends in the last phone */
    int64_t start;                   /* its first frame; the run reaches to the current one */
    int32_t before_blank, before_label; /* traces of the complete phones of each; LIN_BEAM_NONE if there is no such ending */
    int32_t node;
    int32_t slot; /* row of `gains` */
} lin_beam_hyp;

typedef struct lin_beam_state {
    uint64_t fingerprint; /* of the beam */
    uint64_t context;  /* id of the context last used; 0: none */
    int64_t frame;     /* number of the next frame */
    int64_t scale;     /* sums are relative to 2^scale * exp(shift) */
    double shift;
    int32_t n_hyps;
    int32_t finished;
    int32_t node_root, node_free;
    int32_t trace_root, trace_free;
    int32_t slots_free, reserved;
} lin_beam_state;

typedef struct lin_beam_candidate {
    double score;
    int32_t hyp;
    int32_t label; /* to be added; 0: none, the prefix stays; below 0: it stays, and ties are decided as for label -label */
} lin_beam_candidate;

struct lin_beam {
    lin_beam_options options;
    int V, n_labels; /* n_labels: followed in each frame */
    const lin_ngram *lm;
    int *words; /* [V] words of the language model */
    uint64_t fingerprint;
    double cut;        /* endings below best * cut are dropped */
    double blank_logp; /* frames whose blank is at least this are skipped */
    int n_nodes, n_traces;
    size_t bytes;
};

/* The parts of a state. */
typedef struct lin_beam_view {
    const lin_beam *beam;
    const lin_context *context;
    lin_beam_state *state;
    lin_beam_hyp *hyps, *next;       /* [width], the best first; of the last frame, of this one */
    lin_beam_node *nodes;            /* [n_nodes] */
    lin_beam_trace *traces;            /* [n_traces] */
    double *gains;               /* [width, V] exp of the weight of adding a label to the prefix; below 0: not computed yet */
    lin_beam_candidate *candidates;  /* [width] a heap, the worst on top */
    double *probabilities;       /* [V] of this frame */
    double *merged;              /* [width] sums that prefixes receive from those one phone shorter */
    double *values;              /* [V] scratch */
    int32_t *labels;             /* [V] followed in this frame, ascending */
    int32_t *marks;              /* [V] labels that lead from hypothesis marks[k] - 1 into the beam */
    int32_t *closing;            /* [width] trace of the run that ended before this frame, or LIN_BEAM_NONE */
    int32_t *slots;              /* [width] unused rows of `gains`: the first slots_free */
} lin_beam_view;

lin_beam_view lin_beam_view_of(const lin_beam *beam, const lin_context *context, void *state);

static inline double lin_beam_acoustic(const lin_beam_hyp *h) { return h->blank + h->label; }

/* ---- beam_step.c ----------------------------------------------------------------------------------------------------------- */

void lin_beam_trees_reset(lin_beam_view *v);
void lin_beam_hold_trace(lin_beam_view *v, int32_t trace);

/* The better ending of a hypothesis by its best alignment: its trace; *open is set if the run of the last phone is open. */
int32_t lin_beam_best_end(const lin_beam_hyp *h, int *open);

/* Appends the phones after the root up to `trace`; the path has space. */
void lin_beam_list(const lin_beam_view *v, int32_t trace, lin_path *path);

lin_path_phone lin_beam_phone(int label, double sum, int64_t start, int64_t end);

/* One frame; the row was checked, the path has space. */
void lin_beam_step(lin_beam_view *v, const float *row, lin_path *settled);

/* Takes back the pending bonuses of the old context. */
void lin_beam_change_context(lin_beam_view *v);

/* Sorts the hypotheses, the best first, after a change of their scores outside lin_beam_step. */
void lin_beam_sort(lin_beam_view *v);

#endif
