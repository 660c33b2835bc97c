// [cuda] Softmax attention on the CUDA backend against ref/: tiled, naive, with caches; every form of the kernels (head widths
// of 32, 64 and above, aligned or not, one block or several).
#include "tests/cuda/pairs.h"

enum { MOST_B = 70 };

typedef struct shape {
    int B, lengths[MOST_B], H, E, causal;
    double range; /* of q, k and v */
    size_t shift; /* elements off the 64-byte line */
} shape;

/* Inputs, and what ref/ makes of them; the backend's outputs are poisoned, and y and lse have room for nine more rows. */
typedef struct trial {
    lin_segments segments;
    size_t rows, C;
    pair qkv, dy, y, lse, dqkv, p;
} trial;

static pair pair_out(size_t n, const shape *s)
{
    const pair p = pair_in(n, 0, 0, (int)s->shift);
    test_poison(p.f, n * sizeof *p.f);
    return p;
}

static trial trial_of(const shape *s)
{
    trial t = {.segments = segments_of(s->lengths, s->B), .C = (size_t)(s->H * s->E)};
    const size_t H = (size_t)s->H, rows = t.rows = (size_t)t.segments.rows;
    t.qkv = pair_in(rows * 3 * t.C, -s->range, s->range, (int)s->shift);
    t.dy = pair_in(rows * t.C, -1, 1, (int)s->shift);
    t.y = pair_out((rows + 9) * t.C, s);
    t.lse = pair_out(rows * H + 9, s);
    t.dqkv = pair_out(rows * 3 * t.C, s);
    t.p = pair_out(ops->softmax_scores(t.segments.offsets, s->B, s->H), s);
    ref->softmax_naive_forward(ref_exec, t.y.d, t.p.d, t.qkv.d, &t.segments, s->H, s->E, s->causal);
    ref->softmax_forward(ref_exec, t.y.d, t.lse.d, t.qkv.d, &t.segments, s->H, s->E, s->causal, NULL, 0);
    ref->softmax_backward(ref_exec, t.dqkv.d, t.dy.d, t.qkv.d, t.y.d, t.lse.d, &t.segments, s->H, s->E, s->causal);
    return t;
}

static void trial_free(trial t)
{
    const pair all[] = {t.qkv, t.dy, t.y, t.lse, t.dqkv, t.p};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pair_free(all[i]);
    segments_free(t.segments);
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------- */

static void compare(const char *what, const shape *s, const float *got, const double *want, size_t n, double tolerance)
{
    char text[160];
    snprintf(text, sizeof text, "%s, B %d T %d H %d E %d causal %d shift %zu", what, s->B, s->lengths[0], s->H, s->E, s->causal,
             s->shift);
    done();
    test_guards(got, text);
    test_close_scaled_f32(text, got, want, n, tolerance, 0.1);
}

static void run(const shape *s, double tolerance)
{
    const trial t = trial_of(s);
    const size_t n = t.rows * t.C;
    lin_segments more = t.segments;
    more.rows += 9; // rows of no utterance, and a bound that is not reached
    more.longest += 70;
    ops->softmax_forward(exec, t.y.f, t.lse.f, t.qkv.f, &more, s->H, s->E, s->causal, NULL, 0);
    ops->softmax_backward(exec, t.dqkv.f, t.dy.f, t.qkv.f, t.y.f, t.lse.f, &t.segments, s->H, s->E, s->causal);
    compare("y", s, t.y.f, t.y.d, n, tolerance);
    compare("lse", s, t.lse.f, t.lse.d, t.rows * (size_t)s->H, tolerance);
    compare("dqkv", s, t.dqkv.f, t.dqkv.d, 3 * n, tolerance);
    test_poison(t.y.f, n * sizeof *t.y.f);
    ops->softmax_forward(exec, t.y.f, NULL, t.qkv.f, &t.segments, s->H, s->E, s->causal, NULL, 0);
    compare("y without lse", s, t.y.f, t.y.d, n, tolerance);
    test_poison(t.y.f, n * sizeof *t.y.f);
    test_poison(t.dqkv.f, 3 * n * sizeof *t.dqkv.f);
    ops->softmax_naive_forward(exec, t.y.f, t.p.f, t.qkv.f, &more, s->H, s->E, s->causal);
    compare("naive y", s, t.y.f, t.y.d, n, tolerance);
    compare("naive p", s, t.p.f, t.p.d, t.p.n, tolerance);
    ops->softmax_naive_backward(exec, t.dqkv.f, t.p.f, t.dy.f, t.qkv.f, t.y.f, &t.segments, s->H, s->E, s->causal);
    compare("naive dqkv", s, t.dqkv.f, t.dqkv.d, 3 * n, tolerance);
    trial_free(t);
}

static const shape shapes[] = {{4, {33, 0, 1, 17}, 2, 32, 0, 1, 0}, {1, {150}, 1, 32, 0, 2, 0}, {2, {65, 129}, 2, 7, 0, 2, 1},
                               {2, {64, 16}, 1, 64, 0, 1, 0},       {1, {70}, 2, 33, 0, 1, 3},  {1, {1}, 3, 1, 0, 1, 0},
                               {2, {5, 21}, 2, 65, 0, 1, 0},        {1, {20}, 1, 256, 0, 1, 1}, {1, {40}, 1, 32, 0, 12, 0},
                               {1, {66}, 1, 130, 0, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void run_all(lin_precision precision, double tolerance, int which)
{
    begin(precision, 42);
    shape s = shapes[which];
    for (s.causal = 0; s.causal < 2; s.causal++) run(&s, tolerance);
    end();
}

// The range of the last but one makes scores of hundreds.
START_TEST(fp32) { run_all(LIN_PRECISION_FP32, shapes[_i].range < 10 ? 5e-6 : 5e-5, _i); }
END_TEST

// Of such scores 10 bits of mantissa say nothing.
START_TEST(tf32)
{
    if (shapes[_i].range < 10) run_all(LIN_PRECISION_TF32, 8e-3, _i);
}
END_TEST

// More utterances than lanes of a warp.
START_TEST(many)
{
    shape s = {.B = MOST_B, .H = 2, .E = 8, .range = 1};
    for (int b = 0; b < MOST_B; b++) s.lengths[b] = b % 4;
    begin(LIN_PRECISION_FP32, 42);
    run(&s, 5e-6);
    end();
}
END_TEST

// A stream in pieces, its keys and values in a cache of two layers; beside it an utterance without one.
static void caches_of(int H, int E, size_t shift)
{
    enum { T = 190, ALONE = 16, CAPACITY = 200, LAYER = 1 };
    const shape s = {2, {T, ALONE}, H, E, 1, 1, shift};
    const int pieces[] = {1, 3, 40, 0, 66, 16, 14, 40, 5, 5};
    const trial t = trial_of(&s);
    const size_t C = t.C;
    const float *qkv = t.qkv.f;
    float *x = test_buffer_shifted((T + ALONE) * 3 * C, sizeof *x, shift), *y = t.y.f;
    float *kv = test_buffer_shifted(2 * CAPACITY * 2 * C, sizeof *kv, shift);
    lin_cache *caches = test_buffer(2, sizeof *caches);
    memset(caches, 0, 2 * sizeof *caches);
    caches[0] = (lin_cache){.kv = kv, .capacity = CAPACITY};
    for (size_t i = 0, at = 0; i < sizeof pieces / sizeof *pieces; at += (size_t)pieces[i++]) {
        const int now[] = {pieces[i], ALONE};
        const size_t n = (size_t)pieces[i];
        lin_segments segments = segments_of(now, 2);
        memcpy(x, qkv + at * 3 * C, n * 3 * C * sizeof *x);
        memcpy(x + n * 3 * C, qkv + T * 3 * C, ALONE * 3 * C * sizeof *x);
        test_poison(y, (T + ALONE) * C * sizeof *y);
        ops->softmax_forward(exec, y, NULL, x, &segments, H, E, 1, caches, LAYER);
        compare("y of a piece", &s, y, t.y.d + at * C, n * C, 5e-6);
        test_close_scaled_f32("y without a cache", y + n * C, t.y.d + T * C, ALONE * C, 5e-6, 0.1);
        caches[0].n += pieces[i];
        segments_free(segments);
    }
    test_guards(kv, "cache");
    for (size_t f = 0; f < T; f++)
        for (size_t i = 0; i < 2 * C; i++)
            ck_assert_msg(kv[LAYER * CAPACITY * 2 * C + f * 2 * C + i] == qkv[f * 3 * C + C + i], "cache: frame %zu, element %zu",
                          f, i);
    for (size_t i = 0; i < CAPACITY * 2 * C; i++) ck_assert_msg(kv[i] != kv[i], "the other layer was written at %zu", i);
    trial_free(t);
    test_buffer_free(x);
    test_buffer_free(kv);
    test_buffer_free(caches);
}

START_TEST(caches)
{
    begin(LIN_PRECISION_FP32, 42);
    caches_of(2, 32, 0);
    caches_of(1, 40, 1);
    caches_of(1, 70, 0);
    end();
}
END_TEST

// Causal: a value that is not finite affects only the rows that see it.
static void spoiled(int T, int victim, int E, double value)
{
    const lin_segments segments = segments_of(&T, 1);
    const pair x = pair_in((size_t)(T * 3 * E), -1, 1, 0);
    float *qkv = x.f, *y = test_buffer((size_t)(T * E), sizeof *y);
    for (int part = 1; part < 3; part++) {
        float *at = qkv + (victim * 3 + part) * E + E / 2, kept = *at;
        *at = (float)value;
        ops->softmax_forward(exec, y, NULL, qkv, &segments, 1, E, 1, NULL, 0);
        done();
        for (int i = 0; i < T; i++) {
            int n = 0;
            for (int e = 0; e < E; e++) n += isfinite(y[i * E + e]) == 0;
            ck_assert_msg(i < victim ? n == 0 : n > 0 || part == 1, "T %d E %d part %d, spoiled row %d: row %d has %d NaNs", T, E,
                          part, victim, i, n);
        }
        *at = kept;
    }
    pair_free(x);
    test_buffer_free(y);
    segments_free(segments);
}

START_TEST(not_a_number)
{
    begin(_i ? LIN_PRECISION_TF32 : LIN_PRECISION_FP32, 42);
    spoiled(12, 5, 32, NAN);
    spoiled(16, 15, 64, INFINITY);
    spoiled(150, 77, 32, NAN);
    spoiled(150, 140, 32, -INFINITY);
    spoiled(100, 0, 33, NAN);
    spoiled(90, 63, 64, INFINITY);
    spoiled(30, 11, 70, NAN);
    end();
}
END_TEST

// A graph that is captured once and replayed while the cache grows: n is read by the device.
START_TEST(graph)
{
    enum { T = 40, STEP = 8, H = 2, E = 32, C = H * E };
    const shape s = {1, {T}, H, E, 1, 1, 0};
    const int step = STEP;
    lin_error err = {0};
    lin_graph *recorded = NULL;
    begin(LIN_PRECISION_FP32, 42);
    const trial t = trial_of(&s);
    const lin_segments piece = segments_of(&step, 1);
    float *x = test_buffer(STEP * 3 * C, sizeof *x), *y = t.y.f, *kv = test_buffer(T * 2 * C, sizeof *kv);
    lin_cache *cache = test_buffer(1, sizeof *cache);
    *cache = (lin_cache){kv, 0, T};
    ck_assert_int_eq(ops->graph_begin(exec, &err), LIN_OK);
    ops->softmax_forward(exec, y, NULL, x, &piece, H, E, 1, cache, 0);
    ck_assert_msg(ops->graph_end(exec, &recorded, &err) == LIN_OK, "%s", err.message);
    for (; cache->n < T; cache->n += STEP) {
        memcpy(x, t.qkv.f + cache->n * 3 * C, STEP * 3 * C * sizeof *x);
        test_poison(y, STEP * C * sizeof *y);
        ops->graph_launch(exec, recorded);
        compare("y of a replay", &s, y, t.y.d + cache->n * C, STEP * C, 5e-6);
    }
    ops->graph_destroy(recorded);
    trial_free(t);
    test_buffer_free(x);
    test_buffer_free(kv);
    test_buffer_free(cache);
    segments_free(piece);
    end();
}
END_TEST

TEST_MAIN("cuda_softmax", TESTS(fp32, 0, N_SHAPES), TESTS(tf32, 0, N_SHAPES), TEST(many), TEST(caches), TEST(graph),
          TESTS(not_a_number, 0, 2))
