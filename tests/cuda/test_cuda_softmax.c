// [cuda] Softmax attention on the CUDA backend against plain loops in double: tiled, naive, with caches; every form of the
// kernels (head widths of 32, 64 and above, aligned or not, one block or several).
#include "base/hash.h"
#include "tests/cuda/device.h"

enum { MOST_B = 70 };

static const lin_ops *ops;
static lin_exec *exec;
static uint64_t counter;

static void begin(lin_precision precision)
{
    test_device_memory();
    ops = test_device(precision);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    counter = 0;
}

static void end(void)
{
    ops->exec_destroy(exec);
    test_device_memory_end();
}

static void done(void)
{
    lin_error err = {0};
    ck_assert_msg(ops->finish(exec, &err) == LIN_OK, "%s", err.message);
}

typedef struct shape {
    int B, lengths[MOST_B], H, E, causal;
    double range; /* of q, k and v */
    size_t shift; /* elements off the 64-byte line */
} shape;

static double uniform(double range) { return range * (2 * lin_random_uniform(42, counter++) - 1); }

static float *filled(const shape *s, size_t n, double range)
{
    float *x = test_buffer_shifted(n, sizeof *x, s->shift);
    for (size_t i = 0; i < n; i++) x[i] = (float)uniform(range);
    return x;
}

/* ---- the reference --------------------------------------------------------------------------------------------------------- */

typedef struct answer {
    double *y, *lse, *dqkv, *p;
} answer;

static void answer_free(answer a)
{
    free(a.y);
    free(a.lse);
    free(a.dqkv);
    free(a.p);
}

static double dot(const float *a, const float *b, int E)
{
    double sum = 0;
    for (int e = 0; e < E; e++) sum += (double)a[e] * (double)b[e];
    return sum;
}

// One head of one utterance: q, k, v at qkv, qkv + C, qkv + 2 C, rows 3 C apart; y, dy: rows C apart; p [T, T].
static void head_answer(answer a, double *p, size_t first, int T, int h, const shape *s, const float *qkv, const float *dy)
{
    const size_t C = (size_t)(s->H * s->E), at = (size_t)(h * s->E);
    const double scale = 1 / sqrt(s->E);
    for (int i = 0; i < T; i++) {
        const size_t row = first + (size_t)i;
        const float *q = qkv + row * 3 * C + at;
        const int n = s->causal ? i + 1 : T;
        double top = -INFINITY, sum = 0, *pi = p + (size_t)i * (size_t)T, *y = a.y + row * C + at;
        for (int j = 0; j < n; j++) {
            pi[j] = scale * dot(q, qkv + (first + (size_t)j) * 3 * C + C + at, s->E);
            if (pi[j] > top) top = pi[j];
        }
        for (int j = 0; j < n; j++) sum += exp(pi[j] - top);
        a.lse[row * (size_t)s->H + (size_t)h] = top + log(sum);
        for (int j = 0; j < T; j++) pi[j] = j < n ? exp(pi[j] - top) / sum : 0;
        for (int e = 0; e < s->E; e++) y[e] = 0;
        for (int j = 0; j < n; j++)
            for (int e = 0; e < s->E; e++) y[e] += pi[j] * (double)qkv[(first + (size_t)j) * 3 * C + 2 * C + at + (size_t)e];
        double D = 0;
        for (int e = 0; e < s->E; e++) D += y[e] * (double)dy[row * C + at + (size_t)e];
        for (int j = 0; j < n; j++) {
            const size_t key = (first + (size_t)j) * 3 * C + at;
            const double u = scale * pi[j] * (dot(dy + row * C + at, qkv + key + 2 * C, s->E) - D);
            for (int e = 0; e < s->E; e++) {
                a.dqkv[row * 3 * C + at + (size_t)e] += u * (double)qkv[key + C + (size_t)e];
                a.dqkv[key + C + (size_t)e] += u * (double)q[e];
                a.dqkv[key + 2 * C + (size_t)e] += pi[j] * (double)dy[row * C + at + (size_t)e];
            }
        }
    }
}

static answer answer_of(const shape *s, const lin_segments *segments, const float *qkv, const float *dy)
{
    const size_t rows = (size_t)segments->rows, C = (size_t)(s->H * s->E);
    size_t scores = 0;
    for (int b = 0; b < s->B; b++) scores += (size_t)s->H * (size_t)s->lengths[b] * (size_t)s->lengths[b];
    answer a = {calloc(rows * C + 1, sizeof(double)), calloc(rows * (size_t)s->H + 1, sizeof(double)),
                calloc(rows * 3 * C + 1, sizeof(double)), calloc(scores + 1, sizeof(double))};
    double *p = a.p;
    for (int b = 0; b < s->B; b++)
        for (int h = 0; h < s->H; h++, p += (size_t)s->lengths[b] * (size_t)s->lengths[b])
            head_answer(a, p, (size_t)segments->offsets[b], s->lengths[b], h, s, qkv, dy);
    return a;
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------- */

static void check(const char *what, const shape *s, const float *got, const double *want, size_t n, double tolerance)
{
    char text[160];
    snprintf(text, sizeof text, "%s, B %d T %d H %d E %d causal %d shift %zu", what, s->B, s->lengths[0], s->H, s->E, s->causal,
             s->shift);
    test_guards(got, text);
    test_close_scaled_f32(text, got, want, n, tolerance, 0.1);
}

static void run(const shape *s, double tolerance)
{
    lin_segments segments = segments_of(s->lengths, s->B), more = segments;
    const size_t rows = (size_t)segments.rows, C = (size_t)(s->H * s->E), lses = rows * (size_t)s->H;
    const size_t scores = ops->softmax_scores(segments.offsets, s->B, s->H);
    more.rows += 9; // rows of no utterance, and a bound that is not reached
    more.longest += 70;
    float *qkv = filled(s, rows * 3 * C, s->range), *dy = filled(s, rows * C, 1);
    float *y = test_buffer_shifted(rows * C + 9 * C, sizeof *y, s->shift),
          *lse = test_buffer_shifted(lses + 9, sizeof *lse, s->shift);
    float *dqkv = test_buffer_shifted(rows * 3 * C, sizeof *dqkv, s->shift),
          *p = test_buffer_shifted(scores, sizeof *p, s->shift);
    answer a = answer_of(s, &segments, qkv, dy);
    ops->softmax_forward(exec, y, lse, qkv, &more, s->H, s->E, s->causal, NULL, 0);
    ops->softmax_backward(exec, dqkv, dy, qkv, y, lse, &segments, s->H, s->E, s->causal);
    done();
    check("y", s, y, a.y, rows * C, tolerance);
    check("lse", s, lse, a.lse, lses, tolerance);
    check("dqkv", s, dqkv, a.dqkv, rows * 3 * C, tolerance);
    test_poison(y, rows * C * sizeof *y);
    ops->softmax_forward(exec, y, NULL, qkv, &segments, s->H, s->E, s->causal, NULL, 0);
    done();
    check("y without lse", s, y, a.y, rows * C, tolerance);
    test_poison(y, rows * C * sizeof *y);
    test_poison(dqkv, rows * 3 * C * sizeof *dqkv);
    ops->softmax_naive_forward(exec, y, p, qkv, &more, s->H, s->E, s->causal);
    done();
    check("naive y", s, y, a.y, rows * C, tolerance);
    check("naive p", s, p, a.p, scores, tolerance);
    ops->softmax_naive_backward(exec, dqkv, p, dy, qkv, y, &segments, s->H, s->E, s->causal);
    done();
    check("naive dqkv", s, dqkv, a.dqkv, rows * 3 * C, tolerance);
    answer_free(a);
    float *const buffers[] = {qkv, dy, y, lse, dqkv, p};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) test_buffer_free(buffers[i]);
    segments_free(segments);
}

static const shape shapes[] = {{4, {33, 0, 1, 17}, 2, 32, 0, 1, 0}, {1, {150}, 1, 32, 0, 2, 0}, {2, {65, 129}, 2, 7, 0, 2, 1},
                               {2, {64, 16}, 1, 64, 0, 1, 0},       {1, {70}, 2, 33, 0, 1, 3},  {1, {1}, 3, 1, 0, 1, 0},
                               {2, {5, 21}, 2, 65, 0, 1, 0},        {1, {20}, 1, 256, 0, 1, 1}, {1, {40}, 1, 32, 0, 12, 0},
                               {1, {66}, 1, 130, 0, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void run_all(lin_precision precision, double tolerance, int which)
{
    begin(precision);
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
    begin(LIN_PRECISION_FP32);
    run(&s, 5e-6);
    end();
}
END_TEST

// A stream in pieces, its keys and values in a cache of two layers; beside it an utterance without one.
static void caches_of(int H, int E, size_t shift)
{
    enum { T = 190, ALONE = 16, CAPACITY = 200, LAYER = 1 };
    const shape s = {1, {T}, H, E, 1, 1, shift};
    const size_t C = (size_t)(H * E);
    const int pieces[] = {1, 3, 40, 0, 66, 16, 14, 40, 5, 5}, lengths[] = {T, ALONE};
    lin_segments whole = segments_of(lengths, 2);
    float *qkv = filled(&s, (T + ALONE) * 3 * C, 1), *x = test_buffer_shifted((T + ALONE) * 3 * C, sizeof *x, shift);
    float *dy = filled(&s, (T + ALONE) * C, 1), *kv = test_buffer_shifted(2 * CAPACITY * 2 * C, sizeof *kv, shift);
    float *y = test_buffer_shifted((T + ALONE) * C, sizeof *y, shift);
    lin_cache *caches = test_buffer(2, sizeof *caches);
    memset(caches, 0, 2 * sizeof *caches);
    caches[0] = (lin_cache){.kv = kv, .capacity = CAPACITY};
    shape both = s;
    both.B = 2;
    both.lengths[1] = ALONE;
    answer a = answer_of(&both, &whole, qkv, dy);
    for (size_t i = 0, at = 0; i < sizeof pieces / sizeof *pieces; at += (size_t)pieces[i++]) {
        const int now[] = {pieces[i], ALONE};
        const size_t n = (size_t)pieces[i];
        lin_segments segments = segments_of(now, 2);
        memcpy(x, qkv + at * 3 * C, n * 3 * C * sizeof *x);
        memcpy(x + n * 3 * C, qkv + T * 3 * C, ALONE * 3 * C * sizeof *x);
        test_poison(y, (T + ALONE) * C * sizeof *y);
        ops->softmax_forward(exec, y, NULL, x, &segments, H, E, 1, caches, LAYER);
        done();
        check("y of a piece", &s, y, a.y + at * C, n * C, 5e-6);
        test_close_scaled_f32("y without a cache", y + n * C, a.y + T * C, ALONE * C, 5e-6, 0.1);
        caches[0].n += pieces[i];
        segments_free(segments);
    }
    test_guards(kv, "cache");
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < 2 * C; i++)
            ck_assert_msg(kv[LAYER * CAPACITY * 2 * C + t * 2 * C + i] == qkv[t * 3 * C + C + i], "cache: frame %zu, element %zu",
                          t, i);
    for (size_t i = 0; i < CAPACITY * 2 * C; i++) ck_assert_msg(kv[i] != kv[i], "the other layer was written at %zu", i);
    answer_free(a);
    float *const buffers[] = {qkv, x, dy, kv, y};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) test_buffer_free(buffers[i]);
    test_buffer_free(caches);
    segments_free(whole);
}

START_TEST(caches)
{
    begin(LIN_PRECISION_FP32);
    caches_of(2, 32, 0);
    caches_of(1, 40, 1);
    caches_of(1, 70, 0);
    end();
}
END_TEST

// Causal: a value that is not finite affects only the rows that see it.
static void spoiled(int T, int victim, int E, double value)
{
    const shape s = {1, {T}, 1, E, 1, 1, 0};
    lin_segments segments = segments_of(s.lengths, 1);
    float *qkv = filled(&s, (size_t)(T * 3 * E), 1), *y = test_buffer((size_t)(T * E), sizeof *y);
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
    test_buffer_free(qkv);
    test_buffer_free(y);
    segments_free(segments);
}

START_TEST(not_a_number)
{
    begin(_i ? LIN_PRECISION_TF32 : LIN_PRECISION_FP32);
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
    begin(LIN_PRECISION_FP32);
    lin_segments whole = segments_of(s.lengths, 1), piece = segments_of(&step, 1);
    float *qkv = filled(&s, T * 3 * C, 1), *x = test_buffer(STEP * 3 * C, sizeof *x), *y = test_buffer(STEP * C, sizeof *y);
    float *dy = filled(&s, T * C, 1), *kv = test_buffer(T * 2 * C, sizeof *kv);
    lin_cache *cache = test_buffer(1, sizeof *cache);
    *cache = (lin_cache){kv, 0, T};
    answer a = answer_of(&s, &whole, qkv, dy);
    ck_assert_int_eq(ops->graph_begin(exec, &err), LIN_OK);
    ops->softmax_forward(exec, y, NULL, x, &piece, H, E, 1, cache, 0);
    ck_assert_msg(ops->graph_end(exec, &recorded, &err) == LIN_OK, "%s", err.message);
    for (; cache->n < T; cache->n += STEP) {
        memcpy(x, qkv + cache->n * 3 * C, STEP * 3 * C * sizeof *x);
        test_poison(y, STEP * C * sizeof *y);
        ops->graph_launch(exec, recorded);
        done();
        check("y of a replay", &s, y, a.y + cache->n * C, STEP * C, 5e-6);
    }
    ops->graph_destroy(recorded);
    answer_free(a);
    float *const buffers[] = {qkv, x, y, dy, kv};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) test_buffer_free(buffers[i]);
    test_buffer_free(cache);
    segments_free(whole);
    segments_free(piece);
    end();
}
END_TEST

TEST_MAIN("cuda_softmax", TESTS(fp32, 0, N_SHAPES), TESTS(tf32, 0, N_SHAPES), TEST(many), TEST(caches), TEST(graph),
          TESTS(not_a_number, 0, 2))
