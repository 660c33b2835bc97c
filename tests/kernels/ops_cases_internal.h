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

typedef void (*ops_case)(ops_context *c);

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
void ops_case_linear(ops_context *c);
void ops_case_linear_model_shapes(ops_context *c);
void ops_case_linear_rows(ops_context *c);
void ops_case_weights_pack(ops_context *c);
void ops_case_weights_pack_half(ops_context *c);
void ops_case_layer_norm(ops_context *c);
void ops_case_layer_norm_rows(ops_context *c);
void ops_case_block_end(ops_context *c);
void ops_case_block_end_backward(ops_context *c);
void ops_case_block_norm(ops_context *c);
void ops_case_feedforward(ops_context *c);
void ops_case_attention_block(ops_context *c);
void ops_case_elementwise(ops_context *c);
void ops_case_dropout_rule(ops_context *c);
void ops_case_stack_frames(ops_context *c);
void ops_case_sinusoid(ops_context *c);
void ops_case_sinusoid_splits(ops_context *c);
void ops_case_sinusoid_far(ops_context *c);
void ops_case_embed(ops_context *c);

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

void ops_case_conv(ops_context *c);
void ops_case_conv_splits(ops_context *c);
void ops_case_attention(ops_context *c);
void ops_case_attention_long(ops_context *c);
void ops_case_attention_wide(ops_context *c);
void ops_case_attention_extremes(ops_context *c);
void ops_case_attention_splits(ops_context *c);
void ops_case_log_softmax(ops_context *c);
void ops_case_softmax_rows(ops_context *c);
void ops_case_label_smoothing(ops_context *c);
void ops_case_denominator(ops_context *c);
void ops_case_ctc(ops_context *c);
void ops_case_ctc_extremes(ops_context *c);
void ops_case_ctc_crowded(ops_context *c);
void ops_case_ctc_room(ops_context *c);
void ops_case_cross_entropy(ops_context *c);
void ops_case_not_a_number(ops_context *c);

/* ---- ops_cases_lstm.c ------------------------------------------------------------------------------------------------------ */

void ops_case_lstm(ops_context *c);
void ops_case_lstm_large(ops_context *c);
void ops_case_lstm_alone(ops_context *c);
void ops_case_lstm_splits(ops_context *c);

/* ---- ops_cases_softmax.c --------------------------------------------------------------------------------------------------- */

void ops_case_softmax(ops_context *c);
void ops_case_softmax_long(ops_context *c);
void ops_case_softmax_splits(ops_context *c);

/* ---- ops_cases_lsh.c ------------------------------------------------------------------------------------------------------- */

void ops_case_lsh(ops_context *c);

/* ---- ops_cases_mixture.c --------------------------------------------------------------------------------------------------- */

void ops_case_mixture(ops_context *c);
void ops_case_mixture_extremes(ops_context *c);

/* ---- ops_cases_mapped.c ---------------------------------------------------------------------------------------------------- */

void ops_case_mapped(ops_context *c);
void ops_case_mapped_long(ops_context *c);
void ops_case_mapped_splits(ops_context *c);

/* ---- ops_cases_decay.c ----------------------------------------------------------------------------------------------------- */

void ops_case_decayed(ops_context *c);
void ops_case_decayed_long(ops_context *c);
void ops_case_decayed_extremes(ops_context *c);
void ops_case_decayed_splits(ops_context *c);

/* ---- ops_cases_streams.c --------------------------------------------------------------------------------------------------- */

void ops_case_memory(ops_context *c);
void ops_case_graph(ops_context *c);
void ops_case_gather(ops_context *c);
void ops_case_carry(ops_context *c);
void ops_case_fbank(ops_context *c);
void ops_case_rows_of_nobody(ops_context *c);
void ops_case_greedy(ops_context *c);

/* ---- ops_cases_training.c -------------------------------------------------------------------------------------------------- */

void ops_case_tally_losses(ops_context *c);
void ops_case_clip(ops_context *c);
void ops_case_optimiser(ops_context *c);

#endif
