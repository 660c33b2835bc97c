// [variants] Softmax attention of ref/: by hand, and against finite differences. Against PyTorch:
// tests/model/test_golden_f64.c; the backends: ops_cases_softmax.c.
#include "tests/kernels/kernel_support.h"

START_TEST(by_hand)
{
    const double qkv[] = {2, 0, 3, 1, log(3), 7}; // q, k, v of two frames, H = E = 1: scores 0 and 2 ln 3; 0 and ln 3
    const int offsets[] = {0, 2};
    const lin_segments both = segments_at(offsets, 1);
    const double causal[] = {3, (3 + 3 * 7.0) / 4}, full[] = {(3 + 9 * 7.0) / 10, (3 + 3 * 7.0) / 4};
    const double causal_lse[] = {0, log(4)}, full_lse[] = {log(10), log(4)}, causal_p[] = {1, 0, 0.25, 0.75};
    double y[2], lse[2], p[4];
    ref->softmax_forward(ref_exec, y, lse, qkv, &both, 1, 1, 1, NULL, 0);
    test_close_f64("causal", y, causal, 2, 1e-15);
    test_close_f64("causal lse", lse, causal_lse, 2, 1e-15);
    ref->softmax_forward(ref_exec, y, lse, qkv, &both, 1, 1, 0, NULL, 0);
    test_close_f64("full", y, full, 2, 1e-15);
    test_close_f64("full lse", lse, full_lse, 2, 1e-15);
    ck_assert_uint_eq(lin_softmax_scores(offsets, 1, 3), 12);
    test_poison(p, sizeof p);
    ref->softmax_naive_forward(ref_exec, y, p, qkv, &both, 1, 1, 1);
    test_close_f64("naive", y, causal, 2, 1e-15);
    test_close_f64("probabilities", p, causal_p, 4, 1e-15);
}
END_TEST

enum { B = 3, ROWS = 8, MOST = ROWS * 3 * 6 };
static const int offsets[B + 1] = {0, 5, 5, ROWS};

typedef struct softmax_case {
    int H, E, causal;
    double qkv[MOST], dy[MOST];
} softmax_case;

static double loss(void *context)
{
    const softmax_case *c = context;
    const lin_segments segments = segments_at(offsets, B);
    double y[MOST], sum = 0;
    ref->softmax_forward(ref_exec, y, NULL, c->qkv, &segments, c->H, c->E, c->causal, NULL, 0);
    for (int i = 0; i < ROWS * c->H * c->E; i++) sum += y[i] * c->dy[i];
    return sum;
}

START_TEST(gradient)
{
    const int shapes[][2] = {{1, 1}, {2, 3}, {1, 5}};
    const lin_segments segments = segments_at(offsets, B);
    for (int s = 0; s < 6; s++) {
        softmax_case c = {shapes[s / 2][0], shapes[s / 2][1], s % 2, {0}, {0}};
        const size_t n = (size_t)(ROWS * c.H * c.E);
        double y[MOST], lse[ROWS * 2], dqkv[MOST], naive[MOST], p[256];
        test_fill_f64(c.qkv, 3 * n, 1 + (uint64_t)s, -2, 2);
        test_fill_f64(c.dy, n, 9, -1, 1);
        test_poison(dqkv, sizeof dqkv);
        test_poison(naive, sizeof naive);
        ref->softmax_forward(ref_exec, y, lse, c.qkv, &segments, c.H, c.E, c.causal, NULL, 0);
        ref->softmax_backward(ref_exec, dqkv, c.dy, c.qkv, y, lse, &segments, c.H, c.E, c.causal);
        ref->softmax_naive_forward(ref_exec, y, p, c.qkv, &segments, c.H, c.E, c.causal);
        ref->softmax_naive_backward(ref_exec, naive, p, c.dy, c.qkv, y, &segments, c.H, c.E, c.causal);
        test_gradient("softmax attention", loss, &c, c.qkv, dqkv, 3 * n);
        test_close_f64("naive", naive, dqkv, 3 * n, 1e-12);
    }
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "softmax", TEST(by_hand), TEST(gradient))
