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
 * The cases themselves: ops_cases_layers.h and ops_cases_sequence.h.
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
    int digest_only;  /* skip ref/: for further thread counts, whose digests are compared */
    const char *only; /* the one case to run, or NULL */
} ops_options;

typedef struct ops_digest {
    const char *name;
    uint64_t value;
} ops_digest;

enum { OPS_MAX_CASES = 64, OPS_MAX_BUFFERS = 64 };

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
    pair p = ops_register(c, n, 1, 1);
    test_fill_f32(p.f, n, ops_next_key(c), lo, hi);
    for (size_t i = 0; i < n; i++) p.d[i] = (double)p.f[i];
    return p;
}

/* An operand that is written: NaN before. */
static inline pair ops_out(ops_context *c, size_t n) { return ops_register(c, n, 1, 0); }

/* An operand that is read and written. */
static inline pair ops_inout(ops_context *c, size_t n, double lo, double hi)
{
    pair p = ops_in(c, n, lo, hi);
    c->is_input[c->n_buffers - 1] = 0;
    return p;
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

/* Ends one shape: guards and inputs of all its buffers are looked at and the buffers freed. */
static inline void ops_end(ops_context *c)
{
    for (int i = 0; i < c->n_buffers; i++) {
        pair p = c->buffers[i];
        test_guards(p.f, c->what);
        test_guards(p.d, c->what);
        for (size_t j = 0; c->is_input[i] && j < p.n; j++)
            test_require((double)p.f[j] == p.d[j] || (isnan(p.f[j]) && isnan(p.d[j])), "%s: element %zu of input %d was changed",
                         c->what, j, i);
        test_buffer_free(p.f);
        test_buffer_free(p.d);
    }
    c->n_buffers = 0;
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

static inline int ops_offsets(int *offsets, const ops_layout *layout)
{
    offsets[0] = 0;
    for (int b = 0; b < layout->B; b++) offsets[b + 1] = offsets[b] + layout->lengths[b];
    return offsets[layout->B];
}

/* ---- the list --------------------------------------------------------------------------------------------------------------- */

#include "tests/kernels/ops_cases_layers.h"
#include "tests/kernels/ops_cases_sequence.h"

/* Runs all cases (or options->only) and writes a digest for each; returns how many ran. A failure ends the test with a message. */
static inline int ops_run_cases(const lin_ops *ops, const ops_options *options, ops_digest *digests)
{
    static const struct {
        const char *name;
        ops_case run;
    } cases[] = {
        {"linear", ops_case_linear},
        {"linear_model_shapes", ops_case_linear_model_shapes},
        {"linear_rows", ops_case_linear_rows},
        {"layer_norm", ops_case_layer_norm},
        {"layer_norm_rows", ops_case_layer_norm_rows},
        {"elementwise", ops_case_elementwise},
        {"dropout_rule", ops_case_dropout_rule},
        {"stack_frames", ops_case_stack_frames},
        {"sinusoid", ops_case_sinusoid},
        {"optimiser", ops_case_optimiser},
        {"conv", ops_case_conv},
        {"conv_splits", ops_case_conv_splits},
        {"attention", ops_case_attention},
        {"attention_long", ops_case_attention_long},
        {"attention_extremes", ops_case_attention_extremes},
        {"attention_splits", ops_case_attention_splits},
        {"log_softmax", ops_case_log_softmax},
        {"ctc", ops_case_ctc},
        {"ctc_extremes", ops_case_ctc_extremes},
        {"not_a_number", ops_case_not_a_number},
    };
    lin_error err = {0};
    ops_context context = {.ops = ops, .ref = lin_ops_ref(), .options = options}, *c = &context;
    ck_assert_msg(ops->exec_create(options->n_threads, &c->exec, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(c->ref->exec_create(1, &c->ref_exec, &err) == LIN_OK, "%s", err.message);
    int n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (options->only && strcmp(options->only, cases[i].name) != 0) continue;
        c->key = lin_random_key(20200629, i);
        c->counter = 0;
        c->digest = 0xCBF29CE484222325u;
        cases[i].run(c);
        if (digests) digests[n] = (ops_digest){cases[i].name, c->digest};
        n++;
    }
    c->ref->exec_destroy(c->ref_exec);
    ops->exec_destroy(c->exec);
    return n;
}

#endif
