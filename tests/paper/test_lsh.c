// [variants] LSH attention of ref/ with ties, the CPU's with extreme norms, and the rotations. Against PyTorch:
// tests/model/test_golden_f64.c; the backends: ops_cases_lsh.c.
#include "paper/networks.h"
#include "tests/kernels/kernel_support.h"

typedef struct lsh_case {
    int H, E, causal;
    lin_lsh lsh;
    lin_segments segments;
    size_t n_y, n_lse, n_order, n_R;
    double *qv, *R, *dy, *y, *lse, *dqv;
    int *order;
} lsh_case;

static lsh_case case_of(const int *offsets, int B, int H, int E, lin_lsh lsh, int causal, uint64_t key)
{
    lsh_case c = {.H = H, .E = E, .causal = causal, .lsh = lsh, .segments = segments_at(offsets, B)};
    c.n_lse = (size_t)offsets[B] * (size_t)H;
    c.n_y = c.n_lse * (size_t)E;
    c.n_order = c.n_lse * (size_t)lsh.rounds;
    c.n_R = (size_t)lsh.rounds * (size_t)(H * E) * (size_t)lsh.rotations;
    c.qv = test_random_f64(2 * c.n_y, lin_random_key(key, 1), -2, 2);
    c.dy = test_random_f64(c.n_y, lin_random_key(key, 2), -1, 1);
    c.R = test_random_f64(c.n_R, lin_random_key(key, 3), -1.5, 1.5);
    c.y = test_buffer(c.n_y, sizeof *c.y);
    c.lse = test_buffer(c.n_lse, sizeof *c.lse);
    c.dqv = test_buffer(2 * c.n_y, sizeof *c.dqv);
    c.order = test_buffer(c.n_order, sizeof *c.order);
    return c;
}

static void run(lsh_case *c)
{
    ref->lsh_forward(ref_exec, c->y, c->lse, c->order, c->qv, c->R, &c->segments, &c->lsh, c->H, c->E, c->causal);
    ref->lsh_backward(ref_exec, c->dqv, c->dy, c->qv, c->y, c->lse, c->order, &c->segments, &c->lsh, c->H, c->E, c->causal);
}

static void case_free(lsh_case *c) { TEST_FREE(c->qv, c->R, c->dy, c->y, c->lse, c->dqv, c->order); }

// Equal projections: the first column counts, and frames of one bucket stay in the order of time.
START_TEST(ties)
{
    enum { E = 3, T = 64, ROTATIONS = 20 };
    const int offsets[] = {0, T};
    lsh_case c = case_of(offsets, 1, 1, E, (lin_lsh){1, 1, ROTATIONS}, 0, 14);
    for (int i = 0; i < ROTATIONS * E; i++) {
        const int column = i % ROTATIONS;
        c.R[i] = column == 7 || column == 18 ? 2 : column == 19 ? -2 : 1;
    }
    for (int t = 0; t < T; t++)
        for (int e = 0; e < E; e++) c.qv[2 * t * E + e] = t % 3 == 0 ? 0 : t % 3 == 1 ? 1 : -1;
    run(&c);
    // Zeros: bucket 0. Ones: 7 (as 18, and as -19). Minus ones: 19 (as -7 and -18).
    for (int i = 0, n = 0; i < 3; i++)
        for (int t = i; t < T; t += 3) ck_assert_int_eq(c.order[n++], t);
    case_free(&c);
}
END_TEST

// The CPU's operations by queries whose norms are 0, below and above the least norm, and so large that scores are thousands.
START_TEST(norms)
{
    enum { E = 4, T = 50 };
    const int offsets[] = {0, T};
    if (!choose_isa(_i / 2)) return;
    const lin_ops *ops = lin_ops_cpu();
    lin_exec *exec;
    lsh_case c = case_of(offsets, 1, 1, E, (lin_lsh){2, 8, 3}, _i % 2, 13);
    float *qv = test_buffer(2 * c.n_y, sizeof *qv), *R = test_buffer(c.n_R, sizeof *R), *y = test_buffer(c.n_y, sizeof *y),
          *lse = test_buffer(c.n_lse, sizeof *lse), *dqv = test_buffer(2 * c.n_y, sizeof *dqv),
          *dy = test_buffer(c.n_y, sizeof *dy);
    int *order = test_buffer(c.n_order, sizeof *order);
    const float factors[8] = {0, 1e-7f, 1e-30f, 1e-5f, 100, 3000, 1, 1};
    for (size_t i = 0; i < 2 * c.n_y; i++) qv[i] = (float)c.qv[i] * (i % (2 * E) < E ? factors[i / (2 * E) % 8] : 1);
    for (size_t i = 0; i < 2 * c.n_y; i++) c.qv[i] = (double)qv[i];
    for (size_t i = 0; i < c.n_y; i++) c.dy[i] = (double)(dy[i] = (float)c.dy[i]);
    for (size_t i = 0; i < c.n_R; i++) c.R[i] = (double)(R[i] = (float)c.R[i]);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    run(&c);
    ops->lsh_forward(exec, y, lse, order, qv, R, &c.segments, &c.lsh, c.H, E, c.causal);
    ops->lsh_backward(exec, dqv, dy, qv, y, lse, order, &c.segments, &c.lsh, c.H, E, c.causal);
    ck_assert_mem_eq(c.order, order, c.n_order * sizeof *order);
    test_close_f32("y", y, c.y, c.n_y, 1e-3); // scores of 3000 have errors of 1e-4
    test_close_f32("lse", lse, c.lse, c.n_lse, 1e-6);
    for (int t = 0; t < T; t++) { // gradients of small norms are large: row by row
        double scale = 1;
        for (int e = 0; e < E; e++) scale = fmax(scale, fabs(c.dqv[2 * t * E + e]));
        for (int e = 2 * t * E; e < 2 * (t + 1) * E; e++)
            ck_assert_msg(fabs((double)dqv[e] - c.dqv[e]) <= 1e-2 * scale, "dqv %d of frame %d is %g, not %g", e % (2 * E), t,
                          (double)dqv[e], c.dqv[e]);
    }
    ops->exec_destroy(exec);
    TEST_FREE(qv, R, y, lse, dqv, dy, order);
    case_free(&c);
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
    for (int i = 0; i < N; i++) {
        sum += R[i];
        square += R[i] * R[i];
        fourth += pow(R[i], 4);
        if (i > 0) next += R[i] * R[i - 1];
    }
    ck_assert(fabs(sum / N) < 0.03 && fabs(square / N - 1) < 0.04 && fabs(fourth / N - 3) < 0.3 && fabs(next / N) < 0.03);
    lin_lsh_rotations(fewer, N - 7, 1, 1, 1, 6);
    ck_assert(memcmp(fewer, R, 8) != 0);
    TEST_FREE(R, fewer);
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "lsh", TEST(ties), TESTS(norms, 0, 2 * N_ISAS), TEST(rotations))
