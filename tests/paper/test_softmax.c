// [variants] Softmax attention of ref/ by hand. Against PyTorch: tests/model/test_golden_f64.c; the backends:
// ops_cases_softmax.c.
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

TEST_MAIN_WITH(ref_begin, ref_end, "softmax", TEST(by_hand))
