// [variants] LSH attention. ref/ against the count of each pair in a full matrix, against finite differences and against PyTorch;
// the CPU's against ref/ with the CPU's own order, which may differ from that of ref/ where two projections are nearly equal.
#include "base/memory.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/ref.h"
#include "paper/networks.h"
#include "tests/golden/lsh.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

typedef struct lsh_case {
    int B, H, E, causal;
    lin_lsh lsh;
    const int *offsets;
    lin_segments segments;
    size_t n_y, n_lse, n_order, n_R;
    float *qv, *R, *dy;     // inputs, the same in both precisions
    double *qv2, *R2, *dy2;
    float *y, *lse, *dqv;   // the CPU's outputs
    double *y2, *lse2, *dqv2;
    int *order, *order2;
} lsh_case;

static const lin_ops_f64 *ref;
static lin_exec *ref_exec;

static void setup(void)
{
    ref = lin_ops_ref();
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, NULL), LIN_OK);
}

static void teardown(void)
{
    ref->exec_destroy(ref_exec);
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
}

/* ---- cases ----------------------------------------------------------------------------------------------------------------- */

static double *widened(const float *from, size_t n)
{
    double *to = test_buffer(n, sizeof *to);
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    return to;
}

// The largest value of [q R; -q R] minus the second largest; q and R as doubles.
static double lead(const double *q, const double *R, int E, int rotations, int columns)
{
    double first = -INFINITY, second = -INFINITY;
    for (int c = 0; c < 2 * columns; c++) {
        double x = 0;
        for (int e = 0; e < E; e++) x += q[e] * R[e * rotations + c % columns];
        if (c >= columns) x = -x;
        second = x > first ? first : fmax(second, x);
        first = fmax(first, x);
    }
    return first - second;
}

static int columns_of(const lsh_case *c, int T)
{
    const int most = (T + 2 * c->lsh.chunk - 1) / (2 * c->lsh.chunk);
    return c->lsh.rotations < most ? c->lsh.rotations : most;
}

// Draws each query anew until its two best buckets are well apart in all rounds, so that both precisions find the same order.
static void separate(lsh_case *c, uint64_t key)
{
    const size_t E = (size_t)c->E, H = (size_t)c->H, matrix = E * (size_t)c->lsh.rotations;
    double *q2 = test_buffer(E, sizeof *q2);
    for (int b = 0; b < c->B; b++)
        for (size_t at = (size_t)c->offsets[b] * H; at < (size_t)c->offsets[b + 1] * H; at++) {
            const size_t h = at % H, row = at / H;
            float *q = c->qv + (row * 2 * H + h) * E;
            const int columns = columns_of(c, c->offsets[b + 1] - c->offsets[b]);
            double least = 0;
            for (uint64_t again = 0; least < 1e-4 && again < 1000; again++) {
                if (again) test_fill_f32(q, E, lin_random_key(key + again, at), -2, 2);
                for (size_t e = 0; e < E; e++) q2[e] = q[e];
                least = INFINITY;
                for (size_t r = 0; r < (size_t)c->lsh.rounds; r++)
                    least = fmin(least, lead(q2, c->R2 + (r * H + h) * matrix, c->E, c->lsh.rotations, columns));
            }
            ck_assert_msg(least >= 1e-4, "no query with separated buckets");
        }
    test_buffer_free(q2);
}

static lsh_case case_of(const int *offsets, int B, int H, int E, lin_lsh lsh, int causal)
{
    lsh_case c = {.B = B, .H = H, .E = E, .causal = causal, .lsh = lsh, .offsets = offsets};
    c.segments = (lin_segments){.B = B, .rows = offsets[B], .offsets = offsets};
    for (int b = 0; b < B; b++)
        if (offsets[b + 1] - offsets[b] > c.segments.longest) c.segments.longest = offsets[b + 1] - offsets[b];
    c.n_lse = (size_t)offsets[B] * (size_t)H;
    c.n_y = c.n_lse * (size_t)E;
    c.n_order = c.n_lse * (size_t)lsh.rounds;
    c.n_R = (size_t)lsh.rounds * (size_t)(H * E) * (size_t)lsh.rotations;
    c.qv = test_buffer_shifted(2 * c.n_y, sizeof *c.qv, 1);
    c.R = test_buffer_shifted(c.n_R, sizeof *c.R, 1);
    c.dy = test_buffer_shifted(c.n_y, sizeof *c.dy, 1);
    c.y = test_buffer_shifted(c.n_y, sizeof *c.y, 1);
    c.lse = test_buffer_shifted(c.n_lse, sizeof *c.lse, 1);
    c.dqv = test_buffer_shifted(2 * c.n_y, sizeof *c.dqv, 1);
    c.order = test_buffer(c.n_order, sizeof *c.order);
    c.order2 = test_buffer(c.n_order, sizeof *c.order2);
    c.y2 = test_buffer(c.n_y, sizeof *c.y2);
    c.lse2 = test_buffer(c.n_lse, sizeof *c.lse2);
    c.dqv2 = test_buffer(2 * c.n_y, sizeof *c.dqv2);
    return c;
}

static void widen(lsh_case *c)
{
    test_buffer_free(c->qv2);
    test_buffer_free(c->dy2);
    c->qv2 = widened(c->qv, 2 * c->n_y);
    c->dy2 = widened(c->dy, c->n_y);
}

static lsh_case random_case(const int *offsets, int B, int H, int E, lin_lsh lsh, int causal, uint64_t key, int separated)
{
    lsh_case c = case_of(offsets, B, H, E, lsh, causal);
    test_fill_f32(c.qv, 2 * c.n_y, lin_random_key(key, 1), -2, 2);
    test_fill_f32(c.dy, c.n_y, lin_random_key(key, 2), -1, 1);
    lin_lsh_rotations(c.R, lsh.rounds, H, E, lsh.rotations, key);
    c.R2 = widened(c.R, c.n_R);
    if (separated) separate(&c, key);
    widen(&c);
    return c;
}

static void case_free(lsh_case *c)
{
    void *all[] = {c->qv, c->R, c->dy, c->qv2, c->R2, c->dy2, c->y, c->lse, c->dqv, c->y2, c->lse2, c->dqv2, c->order, c->order2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]) test_guards(all[i], "lsh");
        test_buffer_free(all[i]);
    }
}

static void run_ref(lsh_case *c)
{
    test_poison(c->y2, c->n_y * sizeof *c->y2);
    test_poison(c->lse2, c->n_lse * sizeof *c->lse2);
    test_poison(c->order2, c->n_order * sizeof *c->order2);
    ref->lsh_forward(ref_exec, c->y2, c->lse2, c->order2, c->qv2, c->R2, &c->segments, &c->lsh, c->H, c->E, c->causal);
    test_poison(c->dqv2, 2 * c->n_y * sizeof *c->dqv2);
    ref->lsh_backward(ref_exec, c->dqv2, c->dy2, c->qv2, c->y2, c->lse2, c->order2, &c->segments, &c->lsh, c->H, c->E, c->causal);
}

static void run_cpu(lsh_case *c, int n_threads)
{
    const lin_ops *ops = lin_ops_cpu();
    lin_exec *exec;
    ck_assert_int_eq(ops->exec_create(ops, n_threads, &exec, NULL), LIN_OK);
    test_poison(c->y, c->n_y * sizeof *c->y);
    test_poison(c->lse, c->n_lse * sizeof *c->lse);
    test_poison(c->order, c->n_order * sizeof *c->order);
    ops->lsh_forward(exec, c->y, c->lse, c->order, c->qv, c->R, &c->segments, &c->lsh, c->H, c->E, c->causal);
    test_poison(c->dqv, 2 * c->n_y * sizeof *c->dqv);
    ops->lsh_backward(exec, c->dqv, c->dy, c->qv, c->y, c->lse, c->order, &c->segments, &c->lsh, c->H, c->E, c->causal);
    ops->exec_destroy(exec);
}

/* ---- ref/ ------------------------------------------------------------------------------------------------------------------ */

// The definition by counting: n[i, j], how often query i sees key j, then one softmax with weights n.
static void by_counting(const lsh_case *c, const int *order, int b, int h, double *y, double *lse)
{
    const int first = c->offsets[b], T = c->offsets[b + 1] - first, E = c->E;
    const size_t H = (size_t)c->H, stride = 2 * H * (size_t)E;
    const double *q = c->qv2 + (size_t)first * stride + (size_t)h * (size_t)E, *v = q + H * (size_t)E;
    int *n = calloc((size_t)(T * T + 1), sizeof *n), *place = calloc((size_t)T + 1, sizeof *place);
    for (int r = 0; r < c->lsh.rounds; r++) {
        const int *sorted = order + ((size_t)r * H + (size_t)h) * (size_t)c->segments.rows + first;
        for (int i = 0; i < T; i++) place[sorted[i]] = i / c->lsh.chunk;
        for (int i = 0; i < T * T; i++) {
            const int behind = place[i / T] - place[i % T];
            n[i] += (behind == 0 || behind == 1) && (!c->causal || i % T <= i / T);
        }
    }
    for (int i = 0; i < T; i++) {
        double sum = 0, top = -1e5, *scores = calloc((size_t)T, sizeof *scores);
        double *out = y + ((size_t)(first + i) * H + (size_t)h) * (size_t)E;
        for (int j = 0; j < T; j++) {
            double norm = 0;
            for (int e = 0; e < E; e++) norm += q[(size_t)j * stride + (size_t)e] * q[(size_t)j * stride + (size_t)e];
            norm = norm < 1e-12 ? 1e-6 : sqrt(norm);
            for (int e = 0; e < E; e++)
                scores[j] += q[(size_t)i * stride + (size_t)e] * q[(size_t)j * stride + (size_t)e] / (norm * sqrt(E));
            if (i == j) scores[j] = -1e5;
            if (n[i * T + j]) top = fmax(top, scores[j]);
        }
        for (int j = 0; j < T; j++) sum += n[i * T + j] ? n[i * T + j] * exp(scores[j] - top) : 0;
        for (int e = 0; e < E; e++) {
            out[e] = 0;
            for (int j = 0; j < T; j++)
                if (n[i * T + j]) out[e] += n[i * T + j] * exp(scores[j] - top) / sum * v[(size_t)j * stride + (size_t)e];
        }
        lse[(size_t)(first + i) * H + (size_t)h] = top + log(sum);
        free(scores);
    }
    free(n);
    free(place);
}

static const int several[] = {0, 1, 1, 8, 25, 29};

START_TEST(ref_counts)
{
    const lin_lsh shapes[] = {{1, 100, 4}, {2, 4, 3}, {4, 3, 1}, {3, 1, 8}};
    for (size_t s = 0; s < 8; s++) {
        lsh_case c = random_case(several, 5, 2, 3, shapes[s / 2], (int)(s % 2), 40 + s, 0);
        double *y = test_buffer(c.n_y, sizeof *y), *lse = test_buffer(c.n_lse, sizeof *lse);
        run_ref(&c);
        for (int b = 0; b < c.B; b++)
            for (int h = 0; h < c.H; h++) by_counting(&c, c.order2, b, h, y, lse);
        test_close_f64("y", c.y2, y, c.n_y, 1e-12);
        test_close_f64("lse", c.lse2, lse, c.n_lse, 1e-12);
        test_buffer_free(y);
        test_buffer_free(lse);
        case_free(&c);
    }
}
END_TEST

static double loss_of(lsh_case *c)
{
    double sum = 0;
    lin_ref_lsh_attend(ref_exec, c->y2, c->lse2, c->order2, c->qv2, &c->segments, &c->lsh, c->H, c->E, c->causal);
    for (size_t i = 0; i < c->n_y; i++) sum += c->y2[i] * c->dy2[i];
    return sum;
}

// By central differences of fourth order, with the order constant.
START_TEST(ref_gradient)
{
    const lin_lsh shapes[] = {{1, 100, 4}, {2, 4, 3}, {3, 2, 2}};
    for (size_t s = 0; s < 6; s++) {
        lsh_case c = random_case(several, 5, 2, 3, shapes[s / 2], (int)(s % 2), 70 + s, 0);
        run_ref(&c);
        const double h = 1e-3, steps[] = {-2 * h, -h, h, 2 * h};
        for (size_t i = 0; i < 2 * c.n_y; i++) {
            double keep = c.qv2[i], at[4];
            for (int k = 0; k < 4; k++) {
                c.qv2[i] = keep + steps[k];
                at[k] = loss_of(&c);
            }
            c.qv2[i] = keep;
            const double numeric = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h);
            test_require(fabs(c.dqv2[i] - numeric) <= 1e-8, "case %zu: element %zu is %.12g, by differences %.12g", s, i,
                         c.dqv2[i], numeric);
        }
        case_free(&c);
    }
}
END_TEST

/* ---- the CPU against ref/ -------------------------------------------------------------------------------------------------- */

static const char *const isas[] = {"portable", "avx2", "avx512"};

// Selects instruction set i; 0 if this machine lacks it.
static int select_isa(int i) { return lin_cpu_select(isas[i], NULL) == LIN_OK; }

static void compare(lsh_case *c, const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "%s: y", what);
    test_close_f32(text, c->y, c->y2, c->n_y, 1e-5);
    for (size_t i = 0; i < c->n_lse; i++)
        test_require(fabs(c->lse[i] - c->lse2[i]) <= (c->lse2[i] < -5e4 ? 0.01 : 2e-6 * (1 + fabs(c->lse2[i]))),
                     "%s: lse %zu is %.9g, not %.9g", what, i, (double)c->lse[i], c->lse2[i]);
    snprintf(text, sizeof text, "%s: dqv", what);
    test_close_f32(text, c->dqv, c->dqv2, 2 * c->n_y, 5e-5);
}

static const struct {
    int H, E;
    lin_lsh lsh;
} shapes[] = {{1, 1, {1, 4, 3}},    {2, 3, {2, 1, 5}},    {3, 8, {4, 7, 2}},    {1, 16, {1, 16, 40}},  {2, 33, {2, 33, 4}},
              {6, 32, {4, 32, 64}}, {1, 64, {1, 64, 17}}, {1, 7, {2, 65, 3}},   {2, 5, {1, 1000, 3}},  {1, 256, {2, 64, 2}},
              {1, 31, {3, 2, 33}},  {1, 40, {2, 150, 9}}};

START_TEST(cpu_against_ref)
{
    const int i = _i / 2, causal = _i % 2, chunk = shapes[i].lsh.chunk < 200 ? shapes[i].lsh.chunk : 200;
    // Lengths 1, chunk - 1, chunk, chunk + 1, 2 chunk + 1, 0 and 100.
    int offsets[8] = {0, 1, chunk, 2 * chunk, 3 * chunk + 1, 5 * chunk + 2, 5 * chunk + 2, 5 * chunk + 102};
    lsh_case c = random_case(offsets, 7, shapes[i].H, shapes[i].E, shapes[i].lsh, causal, (uint64_t)(100 + i), 1);
    char text[64];
    run_ref(&c);
    for (int isa = 0; isa < 3; isa++) {
        if (!select_isa(isa)) continue;
        snprintf(text, sizeof text, "shape %d, causal %d, %s", i, causal, isas[isa]);
        run_cpu(&c, 1);
        for (size_t k = 0; k < c.n_order; k++)
            test_require(c.order[k] == c.order2[k], "%s: order %zu is %d, not %d", text, k, c.order[k], c.order2[k]);
        compare(&c, text);
    }
    case_free(&c);
}
END_TEST

// Longer utterances, in the last two cases with chunks of more tiles than fit into the slots. The order of the CPU, which float
// arithmetic decides, is given to ref/.
START_TEST(cpu_with_its_order)
{
    static const struct {
        int T, E;
        lin_lsh lsh;
    } cases[] = {{TEST_ASAN ? 500 : 2400, 16, {4, 32, 64}}, {1150, 8, {2, 700, 4}}, {500, 128, {1, 300, 4}}};
    const int i = _i / 2, offsets[] = {0, cases[i].T};
    for (int isa = TEST_ASAN; isa < 3; isa++) {
        if (!select_isa(isa)) continue;
        lsh_case c = random_case(offsets, 1, 1, cases[i].E, cases[i].lsh, _i % 2, 7, 0);
        run_cpu(&c, 1);
        memcpy(c.order2, c.order, c.n_order * sizeof *c.order);
        lin_ref_lsh_attend(ref_exec, c.y2, c.lse2, c.order2, c.qv2, &c.segments, &c.lsh, c.H, c.E, c.causal);
        ref->lsh_backward(ref_exec, c.dqv2, c.dy2, c.qv2, c.y2, c.lse2, c.order2, &c.segments, &c.lsh, c.H, c.E, c.causal);
        compare(&c, isas[isa]);
        case_free(&c);
    }
}
END_TEST

// A long utterance: every frame is in every order once, in rising buckets, and the results of some are right.
START_TEST(cpu_long)
{
    enum { T = TEST_ASAN ? 8192 : 65536 };
    const int offsets[] = {0, T};
    lsh_case c = random_case(offsets, 1, 1, 8, (lin_lsh){2, 32, T / 512}, 0, 8, 0);
    unsigned char *seen = calloc(T, 1);
    run_cpu(&c, 2);
    for (int r = 0; r < c.lsh.rounds; r++)
        for (int i = 0; i < T; i++) {
            const int t = c.order[r * T + i];
            test_require(t >= 0 && t < T && seen[t] == r, "round %d: frame %d at %d", r, t, i);
            seen[t]++;
        }
    lin_ref_lsh_attend(ref_exec, c.y2, c.lse2, c.order, c.qv2, &c.segments, &c.lsh, c.H, c.E, c.causal);
    ref->lsh_backward(ref_exec, c.dqv2, c.dy2, c.qv2, c.y2, c.lse2, c.order, &c.segments, &c.lsh, c.H, c.E, c.causal);
    compare(&c, "a long utterance");
    free(seen);
    case_free(&c);
}
END_TEST

/* ---- golden values --------------------------------------------------------------------------------------------------------- */

static void narrow(float *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)from[i];
}

START_TEST(golden)
{
    const size_t g = (size_t)_i;
    const lin_lsh lsh = {lsh_golden[g].rounds, lsh_golden[g].chunk, lsh_golden[g].rotations};
    lsh_case c = case_of(lsh_golden[g].offsets, lsh_golden[g].B, lsh_golden[g].H, lsh_golden[g].E, lsh, lsh_golden[g].causal);
    narrow(c.qv, lsh_golden[g].qv, 2 * c.n_y);
    narrow(c.dy, lsh_golden[g].dy, c.n_y);
    narrow(c.R, lsh_golden[g].R, c.n_R);
    c.R2 = widened(c.R, c.n_R);
    widen(&c);
    run_ref(&c);
    ck_assert_mem_eq(c.order2, lsh_golden[g].order, c.n_order * sizeof *c.order2);
    test_close_f64("y", c.y2, lsh_golden[g].y, c.n_y, 1e-12);
    test_close_f64("lse", c.lse2, lsh_golden[g].lse, c.n_lse, 1e-12);
    test_close_f64("dqv", c.dqv2, lsh_golden[g].dqv, 2 * c.n_y, 1e-12);
    for (int isa = 0; isa < 3; isa++) {
        if (!select_isa(isa)) continue;
        run_cpu(&c, 2);
        ck_assert_mem_eq(c.order, lsh_golden[g].order, c.n_order * sizeof *c.order);
        compare(&c, isas[isa]);
    }
    case_free(&c);
}
END_TEST

/* ---- properties ------------------------------------------------------------------------------------------------------------ */

// The outputs of the CPU, to be compared with those of another run.
static lsh_case outputs_of(lsh_case *c, int n_threads)
{
    lsh_case copy = case_of(c->offsets, c->B, c->H, c->E, c->lsh, c->causal);
    run_cpu(c, n_threads);
    memcpy(copy.y, c->y, c->n_y * sizeof *c->y);
    memcpy(copy.lse, c->lse, c->n_lse * sizeof *c->lse);
    memcpy(copy.dqv, c->dqv, 2 * c->n_y * sizeof *c->dqv);
    memcpy(copy.order, c->order, c->n_order * sizeof *c->order);
    return copy;
}

START_TEST(cpu_threads)
{
    const int offsets[] = {0, 70, 71, 71, 200, 333};
    if (!select_isa(_i / 2)) return;
    lsh_case c = random_case(offsets, 5, 3, 12, (lin_lsh){2, 16, 8}, _i % 2, 9, 0);
    lsh_case one = outputs_of(&c, 1);
    for (int n = 2; n < 5; n++) {
        run_cpu(&c, n);
        test_same_f32("y", c.y, one.y, c.n_y);
        test_same_f32("lse", c.lse, one.lse, c.n_lse);
        test_same_f32("dqv", c.dqv, one.dqv, 2 * c.n_y);
        ck_assert_mem_eq(c.order, one.order, c.n_order * sizeof *c.order);
    }
    case_free(&one);
    case_free(&c);
}
END_TEST

// An utterance gives the same bits alone as behind another one in a batch.
START_TEST(cpu_batch)
{
    const int apart[] = {0, 57}, together[] = {0, 90, 147, 160};
    if (!select_isa(_i / 2)) return;
    lsh_case a = random_case(apart, 1, 2, 12, (lin_lsh){2, 16, 8}, _i % 2, 10, 0);
    lsh_case b = random_case(together, 3, 2, 12, (lin_lsh){2, 16, 8}, _i % 2, 10, 0); // the same R
    const size_t row = 2 * 12, from = 90 * row, n = 57 * row;
    memcpy(b.qv + 2 * from, a.qv, 2 * n * sizeof *a.qv);
    memcpy(b.dy + from, a.dy, n * sizeof *a.dy);
    run_cpu(&a, 1);
    run_cpu(&b, 2);
    test_same_f32("y", b.y + from, a.y, n);
    test_same_f32("lse", b.lse + 90 * 2, a.lse, 57 * 2);
    test_same_f32("dqv", b.dqv + 2 * from, a.dqv, 2 * n);
    for (size_t matrix = 0; matrix < 4; matrix++)
        ck_assert_mem_eq(b.order + matrix * 160 + 90, a.order + matrix * 57, 57 * sizeof *a.order);
    case_free(&a);
    case_free(&b);
}
END_TEST

// A frame sees itself only if it sees no other in any round; then nothing flows to its query.
START_TEST(cpu_alone)
{
    enum { E = 5 };
    const int offsets[] = {0, 1, 2, 40};
    if (!select_isa(_i)) return;
    lsh_case c = random_case(offsets, 3, 1, E, (lin_lsh){4, 1, 8}, 1, 12, 1);
    run_ref(&c);
    run_cpu(&c, 1);
    compare(&c, "alone");
    for (int t = 0, alone = 0; t < 40; t++) {
        if (c.lse[t] > -5e4f) continue;
        alone++;
        test_same_f32("y", c.y + t * E, c.qv + (2 * t + 1) * E, E);
        test_require(fabsf(c.lse[t] - (-1e5f + logf(4))) < 0.01f, "lse %d is %.9g", t, (double)c.lse[t]);
        if (t < 2)
            for (int e = 0; e < E; e++) ck_assert(c.dqv[2 * t * E + e] == 0 && c.dqv[(2 * t + 1) * E + e] == c.dy[t * E + e]);
        ck_assert_int_ge(alone, t < 3 ? t + 1 : 3); // both short utterances and the first frame of the long one
    }
    case_free(&c);
}
END_TEST

// Norms of 0, below and above 1e-6, and large scores.
START_TEST(cpu_norms)
{
    enum { E = 4, T = 50 };
    const int offsets[] = {0, T};
    if (!select_isa(_i / 2)) return;
    lsh_case c = random_case(offsets, 1, 1, E, (lin_lsh){2, 8, 3}, _i % 2, 13, 1);
    const float factors[] = {0, 1e-7f, 1e-30f, 1e-5f, 100, 3000};
    for (int t = 0; t < T; t++)
        for (int e = 0; e < E && t % 8 < 6; e++) c.qv[2 * t * E + e] *= factors[t % 8]; // the order stays
    widen(&c);
    run_ref(&c);
    run_cpu(&c, 1);
    ck_assert_mem_eq(c.order, c.order2, c.n_order * sizeof *c.order);
    test_close_f32("y", c.y, c.y2, c.n_y, 1e-3); // scores of 3000 have errors of 1e-4
    test_close_f32("lse", c.lse, c.lse2, c.n_lse, 1e-6);
    for (int t = 0; t < T; t++) { // gradients of small norms are large: row by row
        double scale = 1;
        for (int e = 0; e < E; e++) scale = fmax(scale, fabs(c.dqv2[2 * t * E + e]));
        for (int e = 0; e < 2 * E; e++)
            test_require(fabs(c.dqv[2 * t * E + e] - c.dqv2[2 * t * E + e]) <= 2e-3 * scale, "dqv %d, %d is %g, not %g", t, e,
                         (double)c.dqv[2 * t * E + e], c.dqv2[2 * t * E + e]);
    }
    case_free(&c);
}
END_TEST

// Equal projections: the first column counts, and frames of one bucket stay in the order of time.
START_TEST(ties)
{
    enum { E = 3, T = 64, ROTATIONS = 20 };
    const int offsets[] = {0, T};
    for (int isa = 0; isa < 4; isa++) { // 3: ref/
        if (isa < 3 && !select_isa(isa)) continue;
        lsh_case c = random_case(offsets, 1, 1, E, (lin_lsh){1, 1, ROTATIONS}, 0, 14, 0);
        for (int i = 0; i < ROTATIONS * E; i++) {
            const int column = i % ROTATIONS;
            c.R[i] = column == 7 || column == 18 ? 2 : column == 19 ? -2 : 1;
        }
        for (int t = 0; t < T; t++)
            for (int e = 0; e < E; e++) c.qv[2 * t * E + e] = t % 3 == 0 ? 0 : t % 3 == 1 ? 1 : -1;
        test_buffer_free(c.R2);
        c.R2 = widened(c.R, c.n_R);
        widen(&c);
        if (isa == 3) {
            run_ref(&c);
            memcpy(c.order, c.order2, sizeof *c.order * T);
        } else {
            run_cpu(&c, 1);
        }
        // Zeros: bucket 0. Ones: 7 (as 18, and as -19). Minus ones: 19 (as -7 and -18).
        for (int i = 0, n = 0; i < 3; i++)
            for (int t = i; t < T; t += 3) ck_assert_int_eq(c.order[n++], t);
        case_free(&c);
    }
}
END_TEST

// Nothing is read from the scratch that the call has not written: a larger one before it leaves NaNs there.
START_TEST(cpu_scratch)
{
    const lin_ops *ops = lin_ops_cpu();
    const int offsets[] = {0, 61, 94}, large[] = {0, 600};
    lin_exec *exec;
    if (!select_isa(_i / 2)) return;
    lsh_case c = random_case(offsets, 2, 1, 12, (lin_lsh){2, 11, 8}, _i % 2, 15, 0), want = outputs_of(&c, 1);
    lsh_case bad = random_case(large, 1, 1, 256, (lin_lsh){1, 300, 8}, 0, 15, 0);
    test_poison(bad.qv, 2 * bad.n_y * sizeof *bad.qv);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    for (int backward = 0; backward < 2; backward++) {
        ops->lsh_forward(exec, bad.y, bad.lse, bad.order, bad.qv, bad.R, &bad.segments, &bad.lsh, 1, 256, 0);
        ops->lsh_backward(exec, bad.dqv, bad.dy, bad.qv, bad.y, bad.lse, bad.order, &bad.segments, &bad.lsh, 1, 256, 0);
        if (backward)
            ops->lsh_backward(exec, c.dqv, c.dy, c.qv, c.y, c.lse, c.order, &c.segments, &c.lsh, c.H, c.E, c.causal);
        else
            ops->lsh_forward(exec, c.y, c.lse, c.order, c.qv, c.R, &c.segments, &c.lsh, c.H, c.E, c.causal);
    }
    test_same_f32("y", c.y, want.y, c.n_y);
    test_same_f32("dqv", c.dqv, want.dqv, 2 * c.n_y);
    ops->exec_destroy(exec);
    case_free(&bad);
    case_free(&want);
    case_free(&c);
}
END_TEST

// NaNs reach what sees them, and nothing is read or written out of bounds.
START_TEST(cpu_not_finite)
{
    const int offsets[] = {0, 100};
    const float values[] = {NAN, INFINITY, -INFINITY, 3e38f};
    if (!select_isa(_i)) return;
    for (int v = 0; v < 4; v++) {
        lsh_case c = random_case(offsets, 1, 2, 6, (lin_lsh){2, 9, 8}, v % 2, 16, 0);
        for (int e = 0; e < 6; e++) c.qv[50 * 24 + e] = values[v]; // head 0 of frame 50
        run_cpu(&c, 1);
        for (size_t i = 0; i < c.n_order; i++) ck_assert(c.order[i] >= 0 && c.order[i] < 100);
        for (int t = 0; t < 100; t++)
            for (int e = 6; e < 12; e++) test_require(isfinite(c.y[t * 12 + e]), "NaN in the other head");
        if (v == 0) ck_assert(isnan(c.y[50 * 12]) && isnan(c.lse[50 * 2]));
        case_free(&c);
    }
}
END_TEST

START_TEST(rotations)
{
    enum { N = 20000 };
    float *R = test_buffer(N, sizeof *R), *fewer = test_buffer(N - 7, sizeof *fewer);
    double sum = 0, square = 0, fourth = 0, next = 0;
    lin_lsh_rotations(R, 1, 2, 100, 100, 5);
    lin_lsh_rotations(fewer, N - 7, 1, 1, 1, 5);
    test_same_f32("R", fewer, R, N - 7);
    test_guards(R, "R");
    test_guards(fewer, "R");
    for (int i = 0; i < N; i++) {
        sum += R[i];
        square += R[i] * R[i];
        fourth += pow(R[i], 4);
        if (i > 0) next += R[i] * R[i - 1];
    }
    ck_assert(fabs(sum / N) < 0.03 && fabs(square / N - 1) < 0.04 && fabs(fourth / N - 3) < 0.3 && fabs(next / N) < 0.03);
    lin_lsh_rotations(fewer, N - 7, 1, 1, 1, 6);
    ck_assert(memcmp(fewer, R, 8) != 0);
    test_buffer_free(R);
    test_buffer_free(fewer);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "lsh", TEST(ref_counts), TEST(ref_gradient),
               TESTS(cpu_against_ref, 0, 2 * (int)(sizeof shapes / sizeof *shapes)), TESTS(cpu_with_its_order, 0, 6),
               TEST(cpu_long), TESTS(golden, 0, (int)(sizeof lsh_golden / sizeof *lsh_golden)), TESTS(cpu_threads, 0, 6),
               TESTS(cpu_batch, 0, 6), TESTS(cpu_alone, 0, 3), TESTS(cpu_norms, 0, 6), TEST(ties), TESTS(cpu_scratch, 0, 6),
               TESTS(cpu_not_finite, 0, 3), TEST(rotations))
