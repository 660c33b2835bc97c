/*
 * ops_cases_internal.h - shared by the cases of ops_cases.h: the state of a run, operands in both precisions, their comparison.
 *
 * A case draws shapes, makes operands with ops_in, ops_out, ops_inout and ops_block, calls the operation of c->ops on the floats
 * and that of c->ref on the doubles, compares with ops_check, and ends each shape with ops_end.
 */
#ifndef LIN_TESTS_KERNELS_OPS_CASES_INTERNAL_H
#define LIN_TESTS_KERNELS_OPS_CASES_INTERNAL_H

#include "tests/kernels/ops_cases.h"

enum { OPS_MAX_BUFFERS = 64, OPS_MAX_BLOCKS = 256 };

/* One operand in both precisions: f for the backend, d for ref/. */
typedef struct pair {
    float *f;
    double *d;
    size_t n;
} pair;

typedef struct ops_context {
    const lin_ops *ops;
    lin_exec *exec;
    const lin_ops_f64 *ref;
    lin_exec *ref_exec;
    const ops_options *options;
    uint64_t key, counter; /* of the random inputs */
    uint64_t digest;
    char what[160]; /* the operation and shape under test, for messages */
    pair buffers[OPS_MAX_BUFFERS];
    int is_input[OPS_MAX_BUFFERS];
    int n_buffers;
    void *blocks[OPS_MAX_BLOCKS], *copies[OPS_MAX_BLOCKS]; /* a copy of constant data, or NULL */
    size_t block_bytes[OPS_MAX_BLOCKS];
    int n_blocks;
    unsigned thinned;
} ops_context;

/* The cases in the order in which they run, each a function ops_case_NAME. */
#define OPS_CORE_CASES(X)                                                                                                       \
    X(memory) X(graph) X(linear) X(linear_model_shapes) X(linear_rows) X(weights_pack) X(weights_pack_half) X(layer_norm)       \
    X(layer_norm_rows) X(block_end) X(block_end_backward) X(block_norm) X(feedforward) X(elementwise) X(dropout_rule)           \
    X(stack_frames) X(sinusoid) X(sinusoid_splits) X(sinusoid_far) X(embed) X(conv) X(conv_splits) X(attention)                 \
    X(attention_long) X(attention_wide) X(attention_extremes) X(attention_splits) X(attention_block) X(log_softmax)             \
    X(softmax_rows) X(denominator) X(ctc) X(ctc_extremes) X(ctc_crowded) X(ctc_room) X(cross_entropy)                           \
    X(tally_losses) X(optimiser) X(clip) X(gather) X(carry) X(rows_of_nobody) X(greedy) X(fbank) X(not_a_number) X(decayed)     \
    X(decayed_long) X(decayed_extremes) X(decayed_splits)
#ifdef LIN_NO_PAPER
#define OPS_CASES(X) OPS_CORE_CASES(X)
#else
#define OPS_CASES(X)                                                                                                            \
    OPS_CORE_CASES(X) X(lstm) X(lstm_large) X(lstm_alone) X(lstm_splits) X(softmax) X(softmax_long) X(softmax_splits) X(lsh)    \
    X(mapped) X(mapped_long) X(mapped_splits) X(mixture) X(mixture_extremes)
#endif

typedef void (*ops_case)(ops_context *c);
#define OPS_DECLARED(name) void ops_case_##name(ops_context *c);
OPS_CASES(OPS_DECLARED)

/* ---- random shapes and operands -------------------------------------------------------------------------------------------- */

uint64_t ops_next_key(ops_context *c);

/* Uniform in lo..hi, both included. */
int ops_pick(ops_context *c, int lo, int hi);

LIN_PRINTF(2, 3) void ops_say(ops_context *c, const char *fmt, ...);

/* Finishes all operations of the backend and checks that none failed. */
void ops_done(ops_context *c);

/* Whether this shape is skipped: in quick runs all but every n-th, otherwise none. n is prime, so that every kind is run at
 * times. */
int ops_thin(ops_context *c, unsigned n);

/* Whether the backend has softmax (in tiles) and LSH attention for heads of E elements: a GPU up to 64. */
static inline int ops_rivals_have(const ops_context *c, int E) { return c->ops->on_host || E <= 64; }

/* How far an operand is off the 64-byte line, if it is not `usual`. */
size_t ops_shift(const ops_context *c, size_t usual);

/* An operand that is only read. */
pair ops_in(ops_context *c, size_t n, double lo, double hi);

/* An operand that is written: NaN before. */
pair ops_out(ops_context *c, size_t n);

/* An operand that is read and written. */
pair ops_inout(ops_context *c, size_t n, double lo, double hi);

/* An array that is not an operand in two precisions (offsets, labels, keys, tables of pointers), in memory that the backend can
 * access. With `from`, a copy of it, which may not change; else poisoned, to be written. Valid until ops_end. */
void *ops_block(ops_context *c, size_t count, size_t size, const void *from);

/* A dropout with its key in memory that the backend can access. */
lin_dropout ops_dropout(ops_context *c, double p);

/* Packed weights, aligned as required. The double side has room for any order. */
pair ops_packed(ops_context *c, int n, int k);

/* To be called after changing an input by hand. */
void ops_widen(pair p);

/* ---- checks ---------------------------------------------------------------------------------------------------------------- */

void ops_digest_bytes(ops_context *c, const void *bytes, size_t n);

/* The backend's output against ref/'s, within `tolerance` of the largest element or of `floor`, whichever is more. */
void ops_check_scaled(ops_context *c, const char *name, pair p, double tolerance, double floor);

void ops_check(ops_context *c, const char *name, pair p, double tolerance);

/* Two outputs of the backend that must be the same bits (or, without bit_exact, within the tolerance of each other). */
void ops_check_same(ops_context *c, const char *name, const float *got, const float *want, size_t n, double tolerance);

/* Checks the blocks from `first` on and frees them. */
void ops_end_blocks(ops_context *c, int first);

/* The same for operands: checks guards and inputs. */
void ops_end_buffers(ops_context *c, int first);

/* Ends one shape. */
void ops_end(ops_context *c);

/* ---- utterances of unequal lengths ----------------------------------------------------------------------------------------- */

enum { OPS_MAX_B = 8 };

typedef struct ops_layout {
    int B, lengths[OPS_MAX_B];
} ops_layout;

enum { OPS_N_LAYOUTS = 10 };
extern const ops_layout ops_layouts[OPS_N_LAYOUTS];

lin_segments ops_segments_of(ops_context *c, const int *lengths, int B);

lin_segments ops_segments(ops_context *c, const ops_layout *layout);

/* Too large for a quick run. */
int ops_too_large(const ops_context *c, const ops_layout *layout);

/* ---- ops_cases_layers.c ---------------------------------------------------------------------------------------------------- */

enum { OPS_N_ROWS = 9 };
extern const int ops_rows[OPS_N_ROWS];
void ops_pack(ops_context *c, pair packed, pair w, int n, int k, int transposed);

/* ---- ops_cases_sequence.c -------------------------------------------------------------------------------------------------- */

size_t ops_state_at(ops_context *c);

/* One call of an operation that passes a state per utterance on; carry may be NULL. */
typedef void (*ops_carrying)(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                             float *const *carry, size_t at);
/* Cuts the utterances into random pieces, up to `longest` frames (0 too) of each per call, carrying the states; y and the states
 * must be those of one call. in and out are the widths of a row of x and y, width_carry the length of a state, which begins as
 * zeros. */
void ops_check_splits(ops_context *c, ops_carrying call, const void *shape, const ops_layout *layout, size_t in, size_t out,
                      size_t width_carry, int longest, double tolerance);

/* States of some of the utterances, each b % 3 == 2 being without; tables for the backend and for ref/. */
typedef struct ops_states {
    pair of[OPS_MAX_B];
    float **f;
    double **d;
    size_t at;
} ops_states;
ops_states ops_some_states(ops_context *c, int B, size_t count, double lo, double hi);

/* Losses of B utterances against ref/'s: -1 or NaN where that is. */
void ops_check_loss(ops_context *c, const double *got, const double *want, int B, double tolerance);

#endif
