/*
 * ops_cases.h - the cases that every backend of kernels/ops.h is put through, against lin_ops_ref().
 *
 *   ops_options options = {.n_threads = 2, .tolerance = 1, .bit_exact = 1};
 *   ops_digest digests[OPS_MAX_CASES];
 *   int n = ops_run_cases(lin_ops_cpu(), &options, digests);
 *
 * Inputs are random floats, the same for every backend and widened to double for ref/. Outputs are poisoned with NaN before each
 * call, everything that an operation may not write is watched (guards around every buffer, inputs compared afterwards), and each
 * output goes into a digest of its case, so that two runs, say with 1 and 3 threads, can be compared bit by bit.
 * Buffers other than packed weights start one element off the 64-byte line: only packed weights are promised to be aligned.
 * All that an operation reads or writes lies in such buffers, none on the stack, so that a GPU can be put through the same cases
 * where test_allocate of tests/support.h hands out memory that it reaches. Before a result is read, or an input changed, ops_done
 * must have been called; the checks do so themselves.
 * The cases themselves: ops_cases_layers.h, ops_cases_sequence.h, ops_cases_training.h and ops_cases_streams.h.
 */
#ifndef LIN_TESTS_KERNELS_OPS_CASES_H
#define LIN_TESTS_KERNELS_OPS_CASES_H

#include <stdarg.h>

#include "kernels/ops.h"
#include "tests/support.h"

typedef struct ops_options {
    int n_threads;
    double tolerance; /* multiplies every case's own tolerance; 1 for fp32 sums */
    int bit_exact;    /* splits, row counts and in-place calls must give the same bits; else within the tolerance */
    int aligned;      /* operands on the 64-byte line, not one element off it */
    int quick;        /* few and small shapes, for a backend a thousand times slower than the CPU's */
    int digest_only;  /* skip ref/: for further thread counts, whose digests are compared */
    const char *only; /* the one case to run, or NULL */
} ops_options;

typedef struct ops_digest {
    const char *name;
    uint64_t value;
} ops_digest;

enum { OPS_MAX_CASES = 64, OPS_MAX_BUFFERS = 64, OPS_MAX_BLOCKS = 256 };

/* One operand in both precisions. f is what the backend sees, d what ref/ sees. */
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
    void *blocks[OPS_MAX_BLOCKS], *copies[OPS_MAX_BLOCKS]; /* a copy of what may not change, or NULL */
    size_t block_bytes[OPS_MAX_BLOCKS];
    int n_blocks;
    unsigned thinned;
} ops_context;

typedef void (*ops_case)(ops_context *c);

/* ---- random shapes and operands --------------------------------------------------------------------------------------------- */

static inline uint64_t ops_next_key(ops_context *c) { return lin_random_key(c->key, c->counter++); }

/* Uniform in lo..hi, both included. */
static inline int ops_pick(ops_context *c, int lo, int hi)
{
    return lo + (int)lin_random_below(ops_next_key(c), 0, (uint32_t)(hi - lo + 1));
}

LIN_PRINTF(2, 3) static inline void ops_say(ops_context *c, const char *fmt, ...)
{
    va_list args;
    int n = snprintf(c->what, sizeof c->what, "%s with %d threads: ", c->ops->name, c->options->n_threads);
    va_start(args, fmt);
    vsnprintf(c->what + n, sizeof c->what - (size_t)n, fmt, args);
    va_end(args);
}

/* All that was asked of the backend is done, and it went well. */
static inline void ops_done(ops_context *c)
{
    lin_error err = {0};
    test_require(c->ops->finish(c->exec, &err) == LIN_OK, "%s: %s", c->what, err.message);
}

/* Whether this shape is left out: in quick runs all but every n-th, otherwise none. n is prime: all kinds have their turn. */
static inline int ops_thin(ops_context *c, unsigned n) { return c->options->quick && c->thinned++ % n != 0; }

/* How far an operand is off the 64-byte line, if it is not `usual`. */
static inline size_t ops_shift(const ops_context *c, size_t usual) { return c->options->aligned ? 0 : usual; }

static inline pair ops_register(ops_context *c, size_t n, size_t shift, int is_input)
{
    ck_assert_int_lt(c->n_buffers, OPS_MAX_BUFFERS);
    pair p = {test_buffer_shifted(n, sizeof(float), shift), test_buffer(n, sizeof(double)), n};
    c->buffers[c->n_buffers] = p;
    c->is_input[c->n_buffers++] = is_input;
    return p;
}

/* An operand that is only read. */
static inline pair ops_in(ops_context *c, size_t n, double lo, double hi)
{
    pair p = ops_register(c, n, ops_shift(c, 1), 1);
    test_fill_f32(p.f, n, ops_next_key(c), lo, hi);
    for (size_t i = 0; i < n; i++) p.d[i] = (double)p.f[i];
    return p;
}

/* An operand that is written: NaN before. */
static inline pair ops_out(ops_context *c, size_t n) { return ops_register(c, n, ops_shift(c, 1), 0); }

/* An operand that is read and written. */
static inline pair ops_inout(ops_context *c, size_t n, double lo, double hi)
{
    pair p = ops_in(c, n, lo, hi);
    c->is_input[c->n_buffers - 1] = 0;
    return p;
}

/* An array that is no operand in two precisions (offsets, labels, keys, tables of pointers), where the backend reaches it. With
 * `from`, a copy of that, which may not change; else poisoned, to be written. Lives until ops_end. */
static inline void *ops_block(ops_context *c, size_t count, size_t size, const void *from)
{
    ck_assert_int_lt(c->n_blocks, OPS_MAX_BLOCKS);
    void *block = test_buffer(count, size);
    if (from && count) memcpy(block, from, count * size);
    c->blocks[c->n_blocks] = block;
    c->copies[c->n_blocks] = from ? test_buffer(count, size) : NULL;
    if (from && count) memcpy(c->copies[c->n_blocks], from, count * size);
    c->block_bytes[c->n_blocks++] = count * size;
    return block;
}

/* A dropout with its key where the backend reaches it. */
static inline lin_dropout ops_dropout(ops_context *c, double p)
{
    const uint64_t key = ops_next_key(c);
    return (lin_dropout){p, ops_block(c, 1, sizeof key, &key), ops_next_key(c)};
}

/* Packed weights, aligned as promised. The double side has room for any order. */
static inline pair ops_packed(ops_context *c, int n, int k)
{
    size_t count = c->ops->weight_size(n, k), count_ref = c->ref->weight_size(n, k);
    return ops_register(c, count > count_ref ? count : count_ref, 0, 0);
}

/* After changing an input by hand. */
static inline void ops_widen(pair p)
{
    for (size_t i = 0; i < p.n; i++) p.d[i] = (double)p.f[i];
}

/* ---- judgement -------------------------------------------------------------------------------------------------------------- */

static inline void ops_digest_bytes(ops_context *c, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    ops_done(c);
    for (size_t i = 0; i < n; i++) c->digest = (c->digest ^ b[i]) * 0x100000001B3u; // FNV-1a
}

/* The backend's output against ref/'s, within `tolerance` of the largest element or of `floor`, whichever is more. */
static inline void ops_check_scaled(ops_context *c, const char *name, pair p, double tolerance, double floor)
{
    char what[200];
    snprintf(what, sizeof what, "%s, %s", c->what, name);
    ops_digest_bytes(c, p.f, p.n * sizeof *p.f);
    if (!c->options->digest_only) test_close_scaled_f32(what, p.f, p.d, p.n, tolerance * c->options->tolerance, floor);
}

static inline void ops_check(ops_context *c, const char *name, pair p, double tolerance)
{
    ops_check_scaled(c, name, p, tolerance, 0);
}

/* Two outputs of the backend that must be the same bits (or, without bit_exact, within the tolerance of each other). */
static inline void ops_check_same(ops_context *c, const char *name, const float *got, const float *want, size_t n, double tolerance)
{
    char what[200];
    snprintf(what, sizeof what, "%s, %s", c->what, name);
    ops_digest_bytes(c, got, n * sizeof *got);
    if (c->options->bit_exact) {
        test_same_f32(what, got, want, n);
        return;
    }
    double *wide = test_buffer(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = (double)want[i];
    test_close_f32(what, got, wide, n, tolerance * c->options->tolerance);
    test_buffer_free(wide);
}

/* Looks at the blocks from `first` on and frees them. */
static inline void ops_end_blocks(ops_context *c, int first)
{
    for (int i = first; i < c->n_blocks; i++) {
        test_guards(c->blocks[i], c->what);
        test_require(!c->copies[i] || !c->block_bytes[i] || memcmp(c->blocks[i], c->copies[i], c->block_bytes[i]) == 0,
                     "%s: array %d was changed", c->what, i);
        test_buffer_free(c->blocks[i]);
        test_buffer_free(c->copies[i]);
    }
    c->n_blocks = first;
}

/* The same with operands: guards, and what is only read. */
static inline void ops_end_buffers(ops_context *c, int first)
{
    for (int i = first; i < c->n_buffers; i++) {
        pair p = c->buffers[i];
        test_guards(p.f, c->what);
        test_guards(p.d, c->what);
        for (size_t j = 0; c->is_input[i] && j < p.n; j++)
            test_require((double)p.f[j] == p.d[j] || (isnan(p.f[j]) && isnan(p.d[j])), "%s: element %zu of input %d was changed",
                         c->what, j, i);
        test_buffer_free(p.f);
        test_buffer_free(p.d);
    }
    c->n_buffers = first;
}

/* Ends one shape. */
static inline void ops_end(ops_context *c)
{
    ops_done(c);
    ops_end_blocks(c, 0);
    ops_end_buffers(c, 0);
}

/* ---- utterances of unequal lengths ------------------------------------------------------------------------------------------ */

enum { OPS_MAX_B = 8 };

typedef struct ops_layout {
    int B, lengths[OPS_MAX_B];
} ops_layout;

static const ops_layout ops_layouts[] = {
    {0, {0}},
    {1, {0}},
    {1, {1}},
    {2, {2, 0}},
    {5, {0, 3, 0, 17, 1}},
    {1, {49}},
    {2, {65, 2}},
    {4, {64, 1, 0, 33}},
    {3, {16, 15, 31}},
    {8, {1, 1, 1, 2, 5, 0, 4, 1}},
};
enum { OPS_N_LAYOUTS = sizeof ops_layouts / sizeof *ops_layouts };

static inline lin_segments ops_segments_of(ops_context *c, const int *lengths, int B)
{
    int *offsets = test_buffer((size_t)B + 1, sizeof *offsets);
    lin_segments s = {.B = B};
    offsets[0] = 0;
    for (int b = 0; b < B; b++) {
        offsets[b + 1] = offsets[b] + lengths[b];
        if (lengths[b] > s.longest) s.longest = lengths[b];
    }
    s.rows = offsets[B];
    s.offsets = ops_block(c, (size_t)B + 1, sizeof *offsets, offsets);
    test_buffer_free(offsets);
    return s;
}

static inline lin_segments ops_segments(ops_context *c, const ops_layout *layout)
{
    return ops_segments_of(c, layout->lengths, layout->B);
}

/* Too large for a quick run. */
static inline int ops_too_large(const ops_context *c, const ops_layout *layout)
{
    int rows = 0;
    for (int b = 0; b < layout->B; b++) rows += layout->lengths[b];
    return c->options->quick && rows > 70;
}

/* ---- the list --------------------------------------------------------------------------------------------------------------- */

#include "tests/kernels/ops_cases_layers.h"
#include "tests/kernels/ops_cases_sequence.h"
#include "tests/kernels/ops_cases_streams.h"
#include "tests/kernels/ops_cases_training.h"

static const struct {
    const char *name;
    ops_case run;
} ops_cases[] = {
    {"memory", ops_case_memory},
    {"graph", ops_case_graph},
    {"linear", ops_case_linear},
    {"linear_model_shapes", ops_case_linear_model_shapes},
    {"linear_rows", ops_case_linear_rows},
    {"weights_pack", ops_case_weights_pack},
    {"layer_norm", ops_case_layer_norm},
    {"layer_norm_rows", ops_case_layer_norm_rows},
    {"block_end", ops_case_block_end},
    {"block_end_backward", ops_case_block_end_backward},
    {"elementwise", ops_case_elementwise},
    {"dropout_rule", ops_case_dropout_rule},
    {"stack_frames", ops_case_stack_frames},
    {"sinusoid", ops_case_sinusoid},
    {"conv", ops_case_conv},
    {"conv_splits", ops_case_conv_splits},
    {"attention", ops_case_attention},
    {"attention_long", ops_case_attention_long},
    {"attention_extremes", ops_case_attention_extremes},
    {"attention_splits", ops_case_attention_splits},
    {"log_softmax", ops_case_log_softmax},
    {"ctc", ops_case_ctc},
    {"ctc_extremes", ops_case_ctc_extremes},
    {"ctc_crowded", ops_case_ctc_crowded},
    {"tally_losses", ops_case_tally_losses},
    {"optimiser", ops_case_optimiser},
    {"clip", ops_case_clip},
    {"gather", ops_case_gather},
    {"carry", ops_case_carry},
    {"rows_of_nobody", ops_case_rows_of_nobody},
    {"greedy", ops_case_greedy},
    {"fbank", ops_case_fbank},
    {"not_a_number", ops_case_not_a_number},
};
enum { OPS_CASES = sizeof ops_cases / sizeof *ops_cases };

/* Runs all cases (or options->only) and writes a digest for each; returns how many ran. A failure ends the test with a message. */
static inline int ops_run_cases(const lin_ops *ops, const ops_options *options, ops_digest *digests)
{
    lin_error err = {0};
    ops_context context = {.ops = ops, .ref = lin_ops_ref(), .options = options}, *c = &context;
    ck_assert_msg(ops->exec_create(ops, options->n_threads, &c->exec, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(c->ref->exec_create(c->ref, 1, &c->ref_exec, &err) == LIN_OK, "%s", err.message);
    int n = 0;
    for (size_t i = 0; i < OPS_CASES; i++) {
        if (options->only && strcmp(options->only, ops_cases[i].name) != 0) continue;
        c->key = lin_random_key(20200629, i);
        c->counter = c->thinned = 0;
        c->digest = 0xCBF29CE484222325u;
        ops_cases[i].run(c);
        if (digests) digests[n] = (ops_digest){ops_cases[i].name, c->digest};
        n++;
    }
    c->ref->exec_destroy(c->ref_exec);
    ops->exec_destroy(c->exec);
    return n;
}

#endif
