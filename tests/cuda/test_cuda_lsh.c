// [cuda] LSH attention of the CUDA backend against ref/: the order, one softmax over all rounds, its gradient; chunks of all
// lengths, frames that are alone, more buckets than are counted at once.
#include "tests/cuda/pairs.h"

static pair pair_of(size_t n, double range, int shift) { return pair_in(n, -range, range, shift); }

typedef struct shape {
    int B, lengths[6], H, E, causal;
    lin_lsh lsh;
    double range; // of the queries
    int shift;
} shape;

static void compare(const shape *s, double tolerance)
{
    char what[160];
    const lin_segments segments = segments_of(s->lengths, s->B);
    const size_t rows = (size_t)segments.rows, n = rows * (size_t)(s->H * s->E), n_order = (size_t)(s->lsh.rounds * s->H) * rows;
    pair qv = pair_of(2 * n, s->range, s->shift), dy = pair_of(n, 1, s->shift), y = pair_of(n, 0, s->shift),
         lse = pair_of(rows * (size_t)s->H, 0, s->shift), dqv = pair_of(2 * n, 0, s->shift),
         R = pair_of((size_t)(s->lsh.rounds * s->H * s->E * s->lsh.rotations), 1, s->shift);
    int *order = test_buffer(n_order, sizeof *order), *order_ref = test_buffer(n_order, sizeof *order_ref);
    snprintf(what, sizeof what, "B %d T %d.. H %d E %d causal %d rounds %d chunk %d rotations %d", s->B, s->lengths[0], s->H,
             s->E, s->causal, s->lsh.rounds, s->lsh.chunk, s->lsh.rotations);
    ops->lsh_forward(exec, y.f, lse.f, order, qv.f, R.f, &segments, &s->lsh, s->H, s->E, s->causal);
    ref->lsh_forward(ref_exec, y.d, lse.d, order_ref, qv.d, R.d, &segments, &s->lsh, s->H, s->E, s->causal);
    check(what, lse, tolerance);
    test_guards(order, what);
    for (size_t i = 0; i < n_order; i++)
        test_require(order[i] == order_ref[i], "%s: order %zu is %d, expected %d", what, i, order[i], order_ref[i]);
    check(what, y, tolerance);
    for (size_t i = 0; i < n; i++) y.d[i] = (double)y.f[i];
    for (size_t i = 0; i < lse.n; i++) lse.d[i] = (double)lse.f[i];
    ops->lsh_backward(exec, dqv.f, dy.f, qv.f, y.f, lse.f, order, &segments, &s->lsh, s->H, s->E, s->causal);
    ref->lsh_backward(ref_exec, dqv.d, dy.d, qv.d, y.d, lse.d, order_ref, &segments, &s->lsh, s->H, s->E, s->causal);
    check(what, dqv, 4 * tolerance);
    check("qv", qv, 0);
    check("dy", dy, 0);
    pair_free(qv);
    pair_free(dy);
    pair_free(y);
    pair_free(lse);
    pair_free(dqv);
    pair_free(R);
    test_buffer_free(order);
    test_buffer_free(order_ref);
    segments_free(segments);
}

static const shape shapes[] = {
    {5, {7, 0, 1, 17, 33}, 2, 8, 0, {2, 8, 4}, 1, 0},
    {5, {7, 0, 1, 17, 33}, 2, 8, 1, {2, 8, 4}, 1, 1},
    {2, {100, 70}, 1, 32, 0, {4, 32, 8}, 1, 0},
    {2, {100, 70}, 1, 32, 1, {4, 32, 8}, 1, 0},
    {3, {15, 16, 31}, 3, 5, 1, {1, 7, 16}, 1, 1},
    {2, {65, 130}, 1, 64, 0, {2, 64, 2}, 0.7, 0},
    {1, {90}, 1, 64, 1, {1, 16, 2}, 0.7, 0},
    {1, {90}, 1, 64, 1, {1, 16, 2}, 0.7, 1},
    {1, {75}, 2, 33, 0, {2, 100, 3}, 1, 0}, // one chunk, longer than the utterance
    {1, {40}, 1, 1, 0, {3, 5, 1}, 1, 0},
    {1, {40}, 1, 70, 1, {2, 12, 3}, 0.7, 0}, // wider than tiles
    {4, {21, 0, 1, 13}, 2, 66, 0, {2, 4, 3}, 0.7, 1},
    {1, {1}, 2, 8, 0, {4, 4, 4}, 1, 0},      // alone in every round
    {1, {30}, 1, 8, 1, {3, 1, 16}, 1, 0},    // chunks of one frame: many are alone in some rounds
    {1, {50}, 1, 16, 0, {2, 8, 4}, 1e-7, 0}, // norms that count as 1e-6
    {0, {0}, 2, 8, 0, {2, 8, 4}, 1, 0},
    {2, {0, 0}, 2, 8, 0, {2, 8, 4}, 1, 0},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(fp32)
{
    begin(LIN_PRECISION_FP32, 2020);
    compare(&shapes[_i], 4e-6);
    end();
}
END_TEST

START_TEST(tf32)
{
    begin(LIN_PRECISION_TF32, 2020);
    compare(&shapes[_i], 4e-3);
    end();
}
END_TEST

START_TEST(many_buckets)
{
    const shape many = {1, {2300}, 1, 2, 0, {1, 1, 1100}, 1, 0};
    begin(LIN_PRECISION_FP32, 2020);
    compare(&many, 4e-6);
    end();
}
END_TEST

TEST_MAIN("cuda_lsh", TESTS(fp32, 0, N_SHAPES), TESTS(tf32, 0, N_SHAPES), TEST(many_buckets))
