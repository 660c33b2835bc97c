// Normalisation: known statistics, large means, merging, constant bins, bad numbers, failing allocations.
#include "frontend/normalize.h"
#include "tests/frontend/support.h"

enum { T = 3000, D = 5 };

static float x[T * D];

static void fill(void)
{
    for (int t = 0; t < T; t++)
        for (int d = 0; d < D; d++)
            x[t * D + d] = (float)(1000.0 * d + (d + 1) * (lin_random_uniform(5, (uint64_t)(t * D + d)) - 0.5));
}

// Two passes, by the definition.
static void expected(float *mean, float *istd)
{
    for (int d = 0; d < D; d++) {
        double m = 0, v = 0;
        for (int t = 0; t < T; t++) m += (double)x[t * D + d] / T;
        for (int t = 0; t < T; t++) v += ((double)x[t * D + d] - m) * ((double)x[t * D + d] - m) / T;
        mean[d] = (float)m;
        istd[d] = (float)(1 / sqrt(v));
    }
}

START_TEST(statistics)
{
    lin_error err = {0};
    float mean[D], istd[D], want_mean[D], want_istd[D];
    lin_moments *whole, *parts;
    fill();
    expected(want_mean, want_istd);
    assert_ok(lin_moments_create(D, &whole, &err), err);
    lin_moments_add(whole, x, T);
    assert_ok(lin_moments_finish(whole, mean, istd, &err), err);
    ck_assert_uint_eq(lin_moments_count(whole), T);
    // In parts, with the same bits.
    float parts_mean[D], parts_istd[D];
    assert_ok(lin_moments_create(D, &parts, &err), err);
    lin_moments_add(parts, x, 1000);
    lin_moments_add(parts, x + 1000 * D, 1);
    lin_moments_add(parts, x + 1001 * D, T - 1001);
    assert_ok(lin_moments_finish(parts, parts_mean, parts_istd, &err), err);
    test_same_f32("mean", parts_mean, mean, D);
    test_same_f32("istd", parts_istd, istd, D);
    for (int d = 0; d < D; d++) {
        ck_assert_float_eq_tol(mean[d], want_mean[d], 1e-7f * (1 + fabsf(want_mean[d])));
        ck_assert_float_eq_tol(istd[d], want_istd[d], 1e-5f * want_istd[d]);
    }
    // Applied, every bin has mean 0 and variance 1.
    lin_moments_apply(x, T, D, mean, istd);
    for (int d = 0; d < D; d++) {
        double m = 0, v = 0;
        for (int t = 0; t < T; t++) m += (double)x[t * D + d] / T, v += (double)x[t * D + d] * (double)x[t * D + d] / T;
        ck_assert_double_eq_tol(m, 0, 1e-3);
        ck_assert_double_eq_tol(v, 1, 1e-3);
    }
    lin_moments_destroy(parts);
    lin_moments_destroy(whole);
    lin_moments_destroy(NULL);
}
END_TEST

START_TEST(bad_input)
{
    lin_error err = {0};
    float mean[2], istd[2], silence[6] = {-15.9f, 3, -15.9f, 3, -15.9f, 3}, nan[2] = {1, NAN};
    lin_moments *a;
    assert_fails(lin_moments_create(0, &a, &err), LIN_INVALID, err, "0 bins");
    assert_ok(lin_moments_create(2, &a, &err), err);
    assert_fails(lin_moments_finish(a, mean, istd, &err), LIN_INVALID, err, "there are no frames");
    lin_moments_add(a, silence, 3);
    assert_ok(lin_moments_finish(a, mean, istd, &err), err);
    ck_assert_float_eq(mean[0], -15.9f);
    ck_assert_float_eq(istd[0], (float)(1 / LIN_MOMENTS_SMALLEST_STD));
    lin_moments_add(a, nan, 1);
    assert_fails(lin_moments_finish(a, mean, istd, &err), LIN_NUMERIC, err, "bin 1");
    lin_moments_destroy(a);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    lin_moments *a;
    FAIL_EVERY_ALLOCATION_OF(a, lin_moments_create(40, &a, NULL), lin_moments_destroy(a));
}
END_TEST

TEST_MAIN("frontend/normalize", TEST(statistics), TEST(bad_input), TEST(every_allocation_may_fail))
