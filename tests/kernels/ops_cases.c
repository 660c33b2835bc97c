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

#define OPS_ENTRY(name) {#name, ops_case_##name},
static const struct {
    const char *name;
    ops_case run;
} ops_cases[] = {OPS_CASES(OPS_ENTRY)};
enum { OPS_COUNT = sizeof ops_cases / sizeof *ops_cases };

int ops_case_count(void) { return OPS_COUNT; }

const char *ops_case_name(int number) { return number >= 0 && number < OPS_COUNT ? ops_cases[number].name : NULL; }

int ops_run_cases(const lin_ops *ops, const ops_options *options, ops_digest *digests)
{
    lin_error err = {0};
    ops_context context = {.ops = ops, .ref = lin_ops_ref(), .options = options}, *c = &context;
    ck_assert_msg(ops->exec_create(ops, options->n_threads, &c->exec, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(c->ref->exec_create(c->ref, 1, &c->ref_exec, &err) == LIN_OK, "%s", err.message);
    int n = 0;
    for (size_t i = 0; i < OPS_COUNT; i++) {
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
