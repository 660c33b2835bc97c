// [variants] Softmax attention: ref/ by hand, against finite differences and PyTorch; the CPU backend under every instruction set
// against ref/, and to the bit: tiled in any split of a stream, with any number of threads.
#include "base/memory.h"
#include "train/lab/npy.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};

enum { THIN = TEST_ASAN ? 7 : 1, LONG = TEST_ASAN ? 8192 : 65536 };

static const lin_ops_f64 *ref;
static lin_exec *ref_exec, *execs[4]; // execs[n]: n threads
static const lin_ops *cpu;

static void setup(void)
{
    ref = lin_ops_ref();
    cpu = lin_ops_cpu();
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, NULL), LIN_OK);
    for (int n = 1; n < 4; n++) ck_assert_int_eq(cpu->exec_create(cpu, n, &execs[n], NULL), LIN_OK);
}

static void teardown(void)
{
    ref->exec_destroy(ref_exec);
    for (int n = 1; n < 4; n++) cpu->exec_destroy(execs[n]);
    lin_cpu_select(NULL, NULL);
}

static lin_segments segments_of(const int *offsets, int B)
{
    lin_segments s = {.B = B, .rows = offsets[B], .offsets = offsets};
    for (int b = 0; b < B; b++)
        if (offsets[b + 1] - offsets[b] > s.longest) s.longest = offsets[b + 1] - offsets[b];
    return s;
}

/* 0 if this machine lacks the instruction set. */
static int select_isa(int i)
{
    lin_error err = {0};
    lin_status status = lin_cpu_select(isas[i], &err);
    ck_assert_msg(status == LIN_OK || (status == LIN_UNSUPPORTED && i > 0), "%s", err.message);
    return status == LIN_OK;
}

static void check_and_free(const char *what, void *buffer)
{
    test_guards(buffer, what);
    test_buffer_free(buffer);
}

/* ---- the reference --------------------------------------------------------------------------------------------------------- */

START_TEST(by_hand)
{
    const double qkv[] = {2, 0, 3, 1, log(3), 7}; // q, k, v of two frames, H = E = 1: scores 0 and 2 ln 3; 0 and ln 3
    const int offsets[] = {0, 2};
    const lin_segments both = segments_of(offsets, 1);
    const double causal[] = {3, (3 + 3 * 7.0) / 4}, full[] = {(3 + 9 * 7.0) / 10, (3 + 3 * 7.0) / 4};
    const double causal_lse[] = {0, log(4)}, full_lse[] = {log(10), log(4)}, causal_p[] = {1, 0, 0.25, 0.75};
    double y[2], lse[2], p[4];
    ref->softmax_forward(ref_exec, y, lse, qkv, &both, 1, 1, 1, NULL, 0);
    test_close_f64("causal", y, causal, 2, 1e-15);
    test_close_f64("causal lse", lse, causal_lse, 2, 1e-15);
    ref->softmax_forward(ref_exec, y, lse, qkv, &both, 1, 1, 0, NULL, 0);
    test_close_f64("full", y, full, 2, 1e-15);
    test_close_f64("full lse", lse, full_lse, 2, 1e-15);
    ck_assert_uint_eq(ref->softmax_scores(offsets, 1, 3), 12);
    test_poison(p, sizeof p);
    ref->softmax_naive_forward(ref_exec, y, p, qkv, &both, 1, 1, 1);
    test_close_f64("naive", y, causal, 2, 1e-15);
    test_close_f64("probabilities", p, causal_p, 4, 1e-15);
}
END_TEST

enum { SMALL_B = 3, SMALL_ROWS = 8, SMALL_MOST = SMALL_ROWS * 3 * 6 };
static const int small_offsets[SMALL_B + 1] = {0, 5, 5, SMALL_ROWS};

static double weighted(const double *qkv, const double *dy, int H, int E, int causal)
{
    const lin_segments segments = segments_of(small_offsets, SMALL_B);
    double y[SMALL_MOST], sum = 0;
    ref->softmax_forward(ref_exec, y, NULL, qkv, &segments, H, E, causal, NULL, 0);
    for (int i = 0; i < SMALL_ROWS * H * E; i++) sum += y[i] * dy[i];
    return sum;
}

// Fourth-order central differences: with h = 1e-3 the error of the formula is about 1e-12 and rounding about 1e-13 / h.
static double difference(double *x, const double *qkv, const double *dy, int H, int E, int causal)
{
    const double keep = *x, h = 1e-3, steps[4] = {-2 * h, -h, h, 2 * h};
    double at[4];
    for (int s = 0; s < 4; s++) {
        *x = keep + steps[s];
        at[s] = weighted(qkv, dy, H, E, causal);
    }
    *x = keep;
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
}

START_TEST(gradient_of_ref)
{
    const int shapes[][2] = {{1, 1}, {2, 3}, {1, 5}};
    const lin_segments segments = segments_of(small_offsets, SMALL_B);
    for (int s = 0; s < 3; s++)
        for (int causal = 0; causal < 2; causal++) {
            const int H = shapes[s][0], E = shapes[s][1], n = SMALL_ROWS * H * E;
            double qkv[SMALL_MOST], dy[SMALL_MOST], y[SMALL_MOST], lse[SMALL_ROWS * 2], dqkv[SMALL_MOST], naive[SMALL_MOST],
                p[256];
            test_fill_f64(qkv, (size_t)(3 * n), 1 + (uint64_t)s, -2, 2);
            test_fill_f64(dy, (size_t)n, 9, -1, 1);
            test_poison(dqkv, sizeof dqkv);
            test_poison(naive, sizeof naive);
            ref->softmax_forward(ref_exec, y, lse, qkv, &segments, H, E, causal, NULL, 0);
            ref->softmax_backward(ref_exec, dqkv, dy, qkv, y, lse, &segments, H, E, causal);
            ref->softmax_naive_forward(ref_exec, y, p, qkv, &segments, H, E, causal);
            ref->softmax_naive_backward(ref_exec, naive, p, dy, qkv, y, &segments, H, E, causal);
            for (int i = 0; i < 3 * n; i++) {
                const double want = difference(&qkv[i], qkv, dy, H, E, causal);
                test_require(fabs(dqkv[i] - want) < 1e-8, "causal %d: element %d is %.12g, by differences %.12g", causal, i,
                             dqkv[i], want);
                test_require(fabs(naive[i] - dqkv[i]) < 1e-12, "naive: element %d is %.12g, not %.12g", i, naive[i], dqkv[i]);
            }
        }
}
END_TEST

// A stream of the reference, frame by frame, in the second of two layers.
START_TEST(cache_of_ref)
{
    enum { T = 9, H = 2, E = 3, C = H * E, CAPACITY = 10 };
    double qkv[T * 3 * C], want[T * C], y[C], kv[2 * CAPACITY * 2 * C];
    const int offsets[] = {0, T}, one[] = {0, 1};
    const lin_segments all = segments_of(offsets, 1), frame = segments_of(one, 1);
    test_fill_f64(qkv, T * 3 * C, 5, -2, 2);
    test_poison(kv, sizeof kv);
    ref->softmax_forward(ref_exec, want, NULL, qkv, &all, H, E, 1, NULL, 0);
    for (int t = 0; t < T; t++) {
        const lin_cache cache = {kv, t, CAPACITY};
        ref->softmax_forward(ref_exec, y, NULL, qkv + t * 3 * C, &frame, H, E, 1, &cache, 1);
        test_close_f64("a frame", y, want + t * C, C, 1e-13);
        ck_assert(memcmp(kv + (CAPACITY + t) * 2 * C, qkv + (t * 3 + 1) * C, 2 * C * sizeof *kv) == 0);
    }
    ck_assert(isnan(kv[CAPACITY * 2 * C - 1]) && isnan(kv[(CAPACITY + T) * 2 * C]));
}
END_TEST

/* ---- the CPU against the reference ----------------------------------------------------------------------------------------- */

enum { MOST_B = 6 };

typedef struct shape {
    int B, lengths[MOST_B], H, E, causal;
    double range, dy_range; // of q, k and v; of dy
} shape;

/* All operands of a shape, in both precisions. */
typedef struct operands {
    int offsets[MOST_B + 1];
    lin_segments segments;
    size_t n, n_lse, n_p;
    float *qkv, *dy, *y, *lse, *dqkv, *p;
    double *qkv64, *dy64, *y64, *lse64, *dqkv64, *p64;
} operands;

static float *floats(size_t n) { return test_buffer_shifted(n, sizeof(float), 1); }

static double *widened(const float *x, size_t n)
{
    double *wide = test_buffer(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = (double)x[i];
    return wide;
}

static void make_operands(operands *o, const shape *s)
{
    *o = (operands){0};
    for (int b = 0; b < s->B; b++) o->offsets[b + 1] = o->offsets[b] + s->lengths[b];
    o->segments = segments_of(o->offsets, s->B);
    o->n = (size_t)o->segments.rows * (size_t)(s->H * s->E);
    o->n_lse = (size_t)(o->segments.rows * s->H);
    o->n_p = cpu->softmax_scores(o->offsets, s->B, s->H);
    o->qkv = floats(3 * o->n);
    o->dy = floats(o->n);
    test_fill_f32(o->qkv, 3 * o->n, (uint64_t)(s->E * 100 + s->B), -s->range, s->range);
    test_fill_f32(o->dy, o->n, 77, -s->dy_range, s->dy_range);
    o->qkv64 = widened(o->qkv, 3 * o->n);
    o->dy64 = widened(o->dy, o->n);
}

/* New poisoned outputs. */
static void poison(operands *o)
{
    o->y = floats(o->n);
    o->lse = floats(o->n_lse);
    o->dqkv = floats(3 * o->n);
    o->p = floats(o->n_p);
}

static void free_outputs(operands *o)
{
    check_and_free("y", o->y);
    check_and_free("lse", o->lse);
    check_and_free("dqkv", o->dqkv);
    check_and_free("p", o->p);
}

static void free_operands(operands *o)
{
    check_and_free("qkv", o->qkv);
    check_and_free("dy", o->dy);
    double *wide[] = {o->qkv64, o->dy64, o->y64, o->lse64, o->dqkv64, o->p64};
    for (int i = 0; i < 6; i++)
        if (wide[i]) test_buffer_free(wide[i]);
}

static void run_cpu(operands *o, const shape *s, int naive, int threads)
{
    lin_exec *exec = execs[threads];
    poison(o);
    const unsigned long before = lin_memory_count();
    if (naive) {
        cpu->softmax_naive_forward(exec, o->y, o->p, o->qkv, &o->segments, s->H, s->E, s->causal);
        cpu->softmax_naive_backward(exec, o->dqkv, o->p, o->dy, o->qkv, o->y, &o->segments, s->H, s->E, s->causal);
    } else {
        cpu->softmax_forward(exec, o->y, o->lse, o->qkv, &o->segments, s->H, s->E, s->causal, NULL, 0);
        cpu->softmax_backward(exec, o->dqkv, o->dy, o->qkv, o->y, o->lse, &o->segments, s->H, s->E, s->causal);
    }
    ck_assert_uint_eq(lin_memory_count(), before);
}

static void run_ref(operands *o, const shape *s)
{
    o->y64 = test_buffer(o->n, sizeof *o->y64);
    o->lse64 = test_buffer(o->n_lse, sizeof *o->lse64);
    o->dqkv64 = test_buffer(3 * o->n, sizeof *o->dqkv64);
    o->p64 = test_buffer(o->n_p, sizeof *o->p64);
    ref->softmax_forward(ref_exec, o->y64, o->lse64, o->qkv64, &o->segments, s->H, s->E, s->causal, NULL, 0);
    ref->softmax_backward(ref_exec, o->dqkv64, o->dy64, o->qkv64, o->y64, o->lse64, &o->segments, s->H, s->E, s->causal);
    ref->softmax_naive_forward(ref_exec, o->y64, o->p64, o->qkv64, &o->segments, s->H, s->E, s->causal);
}

/* One way of one instruction set against ref; 2 and 3 threads give the bits of one. */
static void check_way(operands *o, const shape *s, int naive, double tolerance)
{
    char what[160];
    snprintf(what, sizeof what, "%s %s, B %d rows %d longest %d H %d E %d causal %d range %g", lin_cpu_isa(),
             naive ? "naive" : "tiled", s->B, o->segments.rows, o->segments.longest, s->H, s->E, s->causal, s->range);
    run_cpu(o, s, naive, 1);
    test_close_f32(what, o->y, o->y64, o->n, tolerance);
    if (!naive) test_close_f32(what, o->lse, o->lse64, o->n_lse, tolerance);
    test_close_f32(what, o->dqkv, o->dqkv64, 3 * o->n, 4 * tolerance);
    operands threaded = *o;
    for (int threads = 2; threads < 4; threads++) {
        run_cpu(&threaded, s, naive, threads);
        test_same_f32(what, threaded.y, o->y, o->n);
        test_same_f32(what, threaded.dqkv, o->dqkv, 3 * o->n);
        if (!naive) test_same_f32(what, threaded.lse, o->lse, o->n_lse);
        free_outputs(&threaded);
    }
    if (naive) { // the probabilities themselves, before the backward pass overwrites them
        cpu->softmax_naive_forward(execs[2], o->y, o->p, o->qkv, &o->segments, s->H, s->E, s->causal);
        test_close_f32(what, o->p, o->p64, o->n_p, tolerance);
    }
    free_outputs(o);
}

/* Tiled and naive under every instruction set. */
static void check_shape(const shape *s, double tolerance)
{
    operands o;
    make_operands(&o, s);
    run_ref(&o, s);
    for (int isa = 0; isa < 3; isa++)
        for (int naive = 0; naive < 2 && select_isa(isa); naive++) check_way(&o, s, naive, tolerance);
    free_operands(&o);
}

// Lengths around the tile (64), blocks of queries (8, 16, 24, 48) and work items (192).
START_TEST(against_ref)
{
    const shape layouts[] = {{.B = 1, .lengths = {1}}, {.B = 5, .lengths = {0, 1, 2, 0, 3}}, {.B = 3, .lengths = {63, 64, 65}},
                             {.B = 2, .lengths = {47, 49}}, {.B = 4, .lengths = {128, 0, 17, 129}}, {.B = 1, .lengths = {193}},
                             {.B = 1, .lengths = {400}}, {.B = 1, .lengths = {0}}};
    const int widths[] = {1, 3, 8, 16, 17, 32, 33, 64, 100, 256}, heads[] = {3, 2, 1, 2, 1, 6, 1, 2, 1, 1};
    int n = 0;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
            shape s = layouts[l];
            s.H = heads[w];
            s.E = widths[w];
            s.causal = _i;
            s.range = 2;
            s.dy_range = 1;
            if (++n % THIN == 0 && s.lengths[0] * s.H * s.E < 20000) check_shape(&s, 4e-6);
        }
}
END_TEST

// Few heads for the threads: the backward pass divides queries and keys. The largest widths that the scratch has room for.
START_TEST(long_utterances)
{
    check_shape(&(shape){1, {THIN > 1 ? 385 : _i ? 2400 : 1201}, 1, 32, _i, 1, 1}, 1e-5);
    check_shape(&(shape){2, {401, 200}, 1, 7, _i, 2, 1}, 1e-5);
    check_shape(&(shape){1, {113}, 1, 1024, _i, 1, 1}, 1e-5);
    check_shape(&(shape){1, {52}, 1, 1023, _i, 1, 1}, 1e-5);
}
END_TEST

// Scores up to some thousands: one key has the weight 1. Each output is finite, and where the winner is clear, it is that key's
// value.
START_TEST(large_scores)
{
    if (!select_isa(_i)) return;
    for (int causal = 0; causal < 2; causal++) {
        const shape s = {3, {65, 1, 130}, 2, 32, causal, 100, 1};
        operands o;
        make_operands(&o, &s);
        run_ref(&o, &s);
        for (int naive = 0; naive < 2; naive++) {
            run_cpu(&o, &s, naive, 2);
            test_close_f32("y of large scores", o.y, o.y64, o.n, 2e-3);
            for (size_t i = 0; i < 3 * o.n; i++) test_require(isfinite(o.dqkv[i]), "dqkv %zu is %g", i, (double)o.dqkv[i]);
            free_outputs(&o);
        }
        free_operands(&o);
    }
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

enum { LAYER = 1, LAYERS = 3 };

/* Cuts the utterances into random pieces of at most `longest` frames (0 too), with caches; y and lse are those of one call. */
static void check_splits(const shape *s, int longest, uint64_t key)
{
    operands o;
    make_operands(&o, s);
    lin_cache caches[MOST_B];
    const size_t C = (size_t)(s->H * s->E), H = (size_t)s->H;
    int done[MOST_B] = {0}, left = o.segments.rows, threads = 1;
    poison(&o);
    cpu->softmax_forward(execs[1], o.y, o.lse, o.qkv, &o.segments, s->H, s->E, 1, NULL, 0);
    for (int b = 0; b < s->B; b++) {
        int capacity = s->lengths[b] + b;
        caches[b] = (lin_cache){test_buffer_shifted((size_t)(LAYERS * capacity) * 2 * C, sizeof(float), 1), 0, capacity};
    }
    for (uint64_t round = 0; left > 0; round++, threads = threads % 3 + 1) {
        int offsets[MOST_B + 1] = {0};
        for (int b = 0; b < s->B; b++) {
            int n = (int)lin_random_below(key, round * MOST_B + (uint64_t)b, (uint32_t)longest + 1);
            if (n > s->lengths[b] - done[b]) n = s->lengths[b] - done[b];
            offsets[b + 1] = offsets[b] + n;
            caches[b].n = done[b];
        }
        const lin_segments piece = segments_of(offsets, s->B);
        float *qkv = floats((size_t)piece.rows * 3 * C), *y = floats((size_t)piece.rows * C),
              *lse = floats((size_t)piece.rows * H);
        for (int b = 0; b < s->B; b++)
            memcpy(qkv + (size_t)offsets[b] * 3 * C, o.qkv + (size_t)(o.offsets[b] + done[b]) * 3 * C,
                   (size_t)(offsets[b + 1] - offsets[b]) * 3 * C * sizeof *qkv);
        const unsigned long before = lin_memory_count();
        cpu->softmax_forward(execs[threads], y, lse, qkv, &piece, s->H, s->E, 1, caches, LAYER);
        test_require(lin_memory_count() == before, "a piece allocates");
        for (int b = 0; b < s->B; b++) {
            const size_t from = (size_t)(o.offsets[b] + done[b]), at = (size_t)offsets[b],
                         n = (size_t)(offsets[b + 1] - offsets[b]);
            test_same_f32("y of a piece", y + at * C, o.y + from * C, n * C);
            test_same_f32("lse of a piece", lse + at * H, o.lse + from * H, n * H);
            done[b] += (int)n;
        }
        left -= piece.rows;
        check_and_free("a piece", qkv);
        check_and_free("y of a piece", y);
        check_and_free("lse of a piece", lse);
    }
    for (int b = 0; b < s->B; b++) { // the cache holds keys and values in its layer, and nothing elsewhere
        const float *kv = caches[b].kv;
        for (size_t t = 0; t < (size_t)(LAYERS * caches[b].capacity); t++) {
            const size_t row = t - (size_t)(LAYER * caches[b].capacity);
            if (t >= (size_t)(LAYER * caches[b].capacity) && row < (size_t)s->lengths[b])
                test_same_f32("the cache", kv + t * 2 * C, o.qkv + ((size_t)o.offsets[b] + row) * 3 * C + C, 2 * C);
            else
                for (size_t c = 0; c < 2 * C; c++) test_require(isnan(kv[t * 2 * C + c]), "row %zu of the cache was written", t);
        }
        check_and_free("cache", caches[b].kv);
    }
    free_outputs(&o);
    free_operands(&o);
}

START_TEST(splits)
{
    const shape shapes[] = {{3, {150, 64, 257}, 2, 32, 1, 2, 1}, {5, {1, 0, 65, 63, 130}, 1, 33, 1, 3, 1},
                            {2, {97, 193}, 3, 5, 1, 2, 1}, {1, {140}, 1, 1, 1, 5, 1}, {1, {300}, 6, 32, 1, 1, 1},
                            {2, {70, 133}, 1, 64, 1, 1, 1}};
    if (!select_isa(_i)) return;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int longest = 1; longest < 300; longest = longest * (THIN > 1 ? 18 : 3) + 1)
            check_splits(&shapes[s], longest, 1000 * s + (uint64_t)longest);
}
END_TEST

/* ---- long, without memory -------------------------------------------------------------------------------------------------- */

START_TEST(long_stays_in_memory)
{
    enum { E = 8 };
    if (!select_isa(_i)) return;
    const int T = _i > 0 ? LONG : 8192; // portable vectors are slow
    const int offsets[] = {0, T};
    const lin_segments all = segments_of(offsets, 1);
    float *qkv = floats((size_t)T * 3 * E), *y = floats((size_t)T * E), *lse = floats((size_t)T);
    test_fill_f32(qkv, (size_t)T * 3 * E, 3, -2, 2);
    unsigned long before = lin_memory_count();
    cpu->softmax_forward(execs[2], y, lse, qkv, &all, 1, E, 1, NULL, 0);
    ck_assert_uint_eq(lin_memory_count(), before);
    const int rows[] = {0, 1, 63, 64, 1000, T / 2 + 1, T - 1};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const float *q = qkv + (size_t)rows[r] * 3 * E;
        double sum = 0, want[E] = {0};
        for (int j = 0; j <= rows[r]; j++) {
            const float *k = qkv + (size_t)j * 3 * E + E;
            double score = 0;
            for (int e = 0; e < E; e++) score += (double)q[e] * (double)k[e] / sqrt(E);
            sum += exp(score);
            for (int e = 0; e < E; e++) want[e] += exp(score) * (double)k[E + e];
        }
        for (int e = 0; e < E; e++) want[e] /= sum;
        test_close_scaled_f32("y of a long utterance", y + (size_t)rows[r] * E, want, E, 2e-5, 0.1);
        test_require(fabs((double)lse[rows[r]] - log(sum)) < 2e-5, "lse of row %d is %g, not %g", rows[r], (double)lse[rows[r]],
                     log(sum));
    }
    check_and_free("qkv", qkv);
    check_and_free("y", y);
    check_and_free("lse", lse);
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------------------------------------- */

/* Rows of a golden file: qkv [3, C], dy, y [C], dqkv [3, C]; tests/golden/softmax.py. */
START_TEST(golden)
{
    enum { H = 2, E = 3, C = H * E, ROWS = 71 };
    const int offsets[] = {0, 5, ROWS};
    const lin_segments segments = segments_of(offsets, 2);
    const char *const paths[] = {"tests/golden/softmax_full.npy", "tests/golden/softmax_causal.npy"};
    for (int causal = 0; causal < 2; causal++) {
        lin_error err = {0};
        float *file;
        size_t n;
        int width;
        ck_assert_msg(lin_npy_read(paths[causal], &file, &n, &width, &err) == LIN_OK, "%s", err.message);
        ck_assert(n == ROWS && width == 8 * C);
        double qkv[ROWS * 3 * C], dy[ROWS * C], y[ROWS * C], dqkv[ROWS * 3 * C], want_y[ROWS * C], want_dqkv[ROWS * 3 * C],
            lse[ROWS * H];
        for (int t = 0; t < ROWS; t++)
            for (int c = 0; c < 8 * C; c++) {
                double value = (double)file[t * 8 * C + c];
                if (c < 3 * C) qkv[t * 3 * C + c] = value;
                if (c >= 3 * C && c < 4 * C) dy[t * C + c - 3 * C] = value;
                if (c >= 4 * C && c < 5 * C) want_y[t * C + c - 4 * C] = value;
                if (c >= 5 * C) want_dqkv[t * 3 * C + c - 5 * C] = value;
            }
        ref->softmax_forward(ref_exec, y, lse, qkv, &segments, H, E, causal, NULL, 0);
        ref->softmax_backward(ref_exec, dqkv, dy, qkv, y, lse, &segments, H, E, causal);
        test_close_f64("y", y, want_y, ROWS * C, 2e-7);
        test_close_f64("dqkv", dqkv, want_dqkv, ROWS * 3 * C, 2e-7);
        lin_free(file);
    }
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "softmax", TEST(by_hand), TEST(gradient_of_ref), TEST(cache_of_ref), TEST(golden),
               TESTS(against_ref, 0, 2), TESTS(long_utterances, 0, 2), TESTS(large_scores, 0, 3), TESTS(splits, 0, 3),
               TESTS(long_stays_in_memory, 0, 3))
