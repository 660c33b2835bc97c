// [variants] Mixtures of discretised logistics of ref/, by hand. Their gradient: tests/model/test_golden_f64.c; the backends:
// ops_cases_mixture.c.
#include "tests/kernels/kernel_support.h"

// The probabilities of all values add up to 1 whatever the parameters, and those between the ends are differences of the
// distribution function, where these have digits left.
START_TEST(mixture_by_hand)
{
    const double means[] = {-1.2, 0, 0.31, 1}, scales[] = {-7.5, -7, -4, -1, 2};
    const int one_row[] = {0, 1};
    const lin_segments one = {1, 1, 1, one_row};
    for (int i = 0; i < 20; i++) {
        const double m = means[i % 4], s = exp(fmax(-7, scales[i / 4])), x[] = {0.3, m, scales[i / 4]};
        double sum = 0, before = 0;
        for (int v = 0; v < 256; v++) {
            double loss, upper = v == 255 ? 1 : 1 / (1 + exp(-((v + 0.5) / 127.5 - 1 - m) / s));
            ref->mixture(ref_exec, &loss, NULL, x, &one, &v, 1, NULL);
            ck_assert_double_eq_tol(exp(-loss), upper - before, 1e-13);
            sum += exp(-loss);
            before = upper;
        }
        ck_assert_double_eq_tol(sum, 1, 1e-12);
    }
    // a NaN anywhere is one in the loss
    for (int i = 0; i < 6; i++) {
        double x[] = {0, 0, 0, 0, 0, 0}, loss;
        const int v = 100;
        x[i] = NAN;
        ref->mixture(ref_exec, &loss, NULL, x, &one, &v, 2, NULL);
        ck_assert_msg(isnan(loss), "with element %d not a number the loss is %g", i, loss);
    }
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "mixture", TEST(mixture_by_hand))
