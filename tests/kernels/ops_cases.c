// What all cases share, their list, and the loop that runs them.
#include "tests/kernels/ops_cases_internal.h"

#include <stdarg.h>

#include "base/hash.h"
#include "tests/kernels/ref/reference.h"

uint64_t ops_next_key(ops_context *c) { return lin_random_key(c->key, c->counter++); }

int ops_pick(ops_context *c, int lo, int hi)
{
    return lo + (int)lin_random_below(ops_next_key(c), 0, (uint32_t)(hi - lo + 1));
}

void ops_say(ops_context *c, const char *fmt, ...)
{
    va_list args;
    int n = snprintf(c->what, sizeof c->what, "%s with %d threads: ", c->ops->name, c->options->n_threads);
    va_start(args, fmt);
    vsnprintf(c->what + n, sizeof c->what - (size_t)n, fmt, args);
    va_end(args);
}

void ops_done(ops_context *c)
{
    lin_error err = {0};
    test_require(c->ops->finish(c->exec, &err) == LIN_OK, "%s: %s", c->what, err.message);
}

// A sanitizer takes half of the shapes: it looks for errors of memory, the release build for wrong numbers.
int ops_thin(ops_context *c, unsigned n)
{
    return c->options->quick && c->thinned++ % (TEST_ASAN ? 2 * n + 1 : n) != 0;
}

size_t ops_shift(const ops_context *c, size_t usual) { return c->options->aligned ? 0 : usual; }

static pair ops_register(ops_context *c, size_t n, size_t shift, int is_input)
{
    ck_assert_int_lt(c->n_buffers, OPS_MAX_BUFFERS);
    pair p = {test_buffer_shifted(n, sizeof(float), shift), test_buffer(n, sizeof(double)), n};
    c->buffers[c->n_buffers] = p;
    c->is_input[c->n_buffers++] = is_input;
    return p;
}

pair ops_in(ops_context *c, size_t n, double lo, double hi)
{
    pair p = ops_register(c, n, ops_shift(c, 1), 1);
    test_fill_f32(p.f, n, ops_next_key(c), lo, hi);
    for (size_t i = 0; i < n; i++) p.d[i] = (double)p.f[i];
    return p;
}

pair ops_out(ops_context *c, size_t n) { return ops_register(c, n, ops_shift(c, 1), 0); }

pair ops_inout(ops_context *c, size_t n, double lo, double hi)
{
    pair p = ops_in(c, n, lo, hi);
    c->is_input[c->n_buffers - 1] = 0;
    return p;
}

void *ops_block(ops_context *c, size_t count, size_t size, const void *from)
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

lin_dropout ops_dropout(ops_context *c, double p)
{
    // every other one for a part of a larger matrix, which begins at any element
    const uint64_t key[2] = {ops_next_key(c), (uint64_t)ops_pick(c, 0, 70)};
    const uint64_t site = ops_next_key(c);
    return (lin_dropout){p, ops_block(c, 2, sizeof *key, key), site, ops_pick(c, 0, 1) ? (uint64_t)ops_pick(c, 1, 100) : 0};
}

pair ops_packed(ops_context *c, int n, int k)
{
    size_t count = c->ops->weight_size(n, k), count_ref = c->ref->weight_size(n, k);
    return ops_register(c, count > count_ref ? count : count_ref, 0, 0);
}

void ops_widen(pair p)
{
    for (size_t i = 0; i < p.n; i++) p.d[i] = (double)p.f[i];
}

void ops_digest_bytes(ops_context *c, const void *bytes, size_t n)
{
    ops_done(c);
    c->digest = lin_fnv(c->digest, bytes, n);
}

void ops_check_scaled(ops_context *c, const char *name, pair p, double tolerance, double floor)
{
    char what[200];
    snprintf(what, sizeof what, "%s, %s", c->what, name);
    ops_digest_bytes(c, p.f, p.n * sizeof *p.f);
    if (!c->options->digest_only) test_close_scaled_f32(what, p.f, p.d, p.n, tolerance * c->options->tolerance, floor);
}

void ops_check(ops_context *c, const char *name, pair p, double tolerance)
{
    ops_check_scaled(c, name, p, tolerance, 0);
}

void ops_check_same(ops_context *c, const char *name, const float *got, const float *want, size_t n, double tolerance)
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

void ops_end_blocks(ops_context *c, int first)
{
    for (int i = first; i < c->n_blocks; i++) {
        test_guards(c->blocks[i], c->what);
        test_require(!c->copies[i] || !c->block_bytes[i] || memcmp(c->blocks[i], c->copies[i], c->block_bytes[i]) == 0,
                     "%s: array %d was changed", c->what, i);
        TEST_FREE(c->blocks[i], c->copies[i]);
    }
    c->n_blocks = first;
}

void ops_end_buffers(ops_context *c, int first)
{
    for (int i = first; i < c->n_buffers; i++) {
        pair p = c->buffers[i];
        test_guards(p.f, c->what);
        test_guards(p.d, c->what);
        for (size_t j = 0; c->is_input[i] && j < p.n; j++)
            test_require((double)p.f[j] == p.d[j] || (isnan(p.f[j]) && isnan(p.d[j])), "%s: element %zu of input %d was changed",
                         c->what, j, i);
        TEST_FREE(p.f, p.d);
    }
    c->n_buffers = first;
}

void ops_end(ops_context *c)
{
    ops_done(c);
    ops_end_blocks(c, 0);
    ops_end_buffers(c, 0);
}

const ops_layout ops_layouts[OPS_N_LAYOUTS] = {
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

lin_segments ops_segments_of(ops_context *c, const int *lengths, int B)
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

lin_segments ops_segments(ops_context *c, const ops_layout *layout)
{
    return ops_segments_of(c, layout->lengths, layout->B);
}

int ops_too_large(const ops_context *c, const ops_layout *layout)
{
    int rows = 0;
    for (int b = 0; b < layout->B; b++) rows += layout->lengths[b];
    return c->options->quick && rows > 70;
}

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
    {"weights_pack_half", ops_case_weights_pack_half},
    {"layer_norm", ops_case_layer_norm},
    {"layer_norm_rows", ops_case_layer_norm_rows},
    {"block_end", ops_case_block_end},
    {"block_end_backward", ops_case_block_end_backward},
    {"block_norm", ops_case_block_norm},
    {"feedforward", ops_case_feedforward},
    {"elementwise", ops_case_elementwise},
    {"dropout_rule", ops_case_dropout_rule},
    {"stack_frames", ops_case_stack_frames},
    {"sinusoid", ops_case_sinusoid},
    {"sinusoid_splits", ops_case_sinusoid_splits},
    {"sinusoid_far", ops_case_sinusoid_far},
    {"embed", ops_case_embed},
    {"conv", ops_case_conv},
    {"conv_splits", ops_case_conv_splits},
    {"attention", ops_case_attention},
    {"attention_long", ops_case_attention_long},
    {"attention_wide", ops_case_attention_wide},
    {"attention_extremes", ops_case_attention_extremes},
    {"attention_splits", ops_case_attention_splits},
    {"attention_block", ops_case_attention_block},
    {"log_softmax", ops_case_log_softmax},
    {"softmax_rows", ops_case_softmax_rows},
    {"label_smoothing", ops_case_label_smoothing},
    {"denominator", ops_case_denominator},
    {"ctc", ops_case_ctc},
    {"ctc_extremes", ops_case_ctc_extremes},
    {"ctc_crowded", ops_case_ctc_crowded},
    {"ctc_room", ops_case_ctc_room},
    {"cross_entropy", ops_case_cross_entropy},
    {"tally_losses", ops_case_tally_losses},
    {"optimiser", ops_case_optimiser},
    {"clip", ops_case_clip},
    {"gather", ops_case_gather},
    {"carry", ops_case_carry},
    {"rows_of_nobody", ops_case_rows_of_nobody},
    {"greedy", ops_case_greedy},
    {"fbank", ops_case_fbank},
    {"not_a_number", ops_case_not_a_number},
    {"decayed", ops_case_decayed},
    {"decayed_long", ops_case_decayed_long},
    {"decayed_extremes", ops_case_decayed_extremes},
    {"decayed_splits", ops_case_decayed_splits},
#ifndef LIN_NO_PAPER
    {"lstm", ops_case_lstm},
    {"lstm_large", ops_case_lstm_large},
    {"lstm_alone", ops_case_lstm_alone},
    {"lstm_splits", ops_case_lstm_splits},
    {"softmax", ops_case_softmax},
    {"softmax_long", ops_case_softmax_long},
    {"softmax_splits", ops_case_softmax_splits},
    {"lsh", ops_case_lsh},
    {"mapped", ops_case_mapped},
    {"mapped_long", ops_case_mapped_long},
    {"mapped_splits", ops_case_mapped_splits},
    {"mixture", ops_case_mixture},
    {"mixture_extremes", ops_case_mixture_extremes},
#endif
};
enum { OPS_CASES = sizeof ops_cases / sizeof *ops_cases };

int ops_case_count(void) { return OPS_CASES; }

const char *ops_case_name(int number) { return number >= 0 && number < OPS_CASES ? ops_cases[number].name : NULL; }

int ops_run_cases(const lin_ops *ops, const ops_options *options, ops_digest *digests)
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
