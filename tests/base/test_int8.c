// Weights of eight bits: near the weights, exact in floats, the same after a second time, and what a file may not hold.
#include "base/half.h"
#include "base/int8.h"
#include "tests/support.h"

enum { N = 300 };

// Of any size; every third one in half precision, where some are 0.
static void random_row(float *w, uint64_t key)
{
    const float size = ldexpf(1, (int)lin_random_below(key, 7, key % 3 ? 60 : 45) - 30);
    test_fill_f32(w, N, key, -size, size);
    for (int i = 0; i < N && key % 3 == 0; i++) w[i] = lin_half_to_float(lin_float_to_half(w[i]));
}

START_TEST(near_and_exact)
{
    float w[N], again[N];
    signed char q[N];
    for (uint64_t key = 0; key < 400; key++) {
        random_row(w, key);
        const float scale = lin_int8_narrow(w, N, q);
        double most = 0;
        int largest = 0;
        for (int i = 0; i < N; i++) most = fmax(most, fabs((double)w[i]));
        if (key % 3 && !(scale > 0)) ck_abort_msg("a scale of %g", (double)scale);
        lin_int8_widen(q, N, scale, again);
        for (int i = 0; i < N && scale > 0; i++) {
            test_require(fabs((double)w[i] - (double)again[i]) <= most / 127 * 0.50002, "%g became %g", (double)w[i],
                         (double)again[i]);
            test_require((double)again[i] == (double)q[i] * (double)scale, "%d times %.9g is rounded", q[i], (double)scale);
            if (abs(q[i]) > largest) largest = abs(q[i]);
        }
        ck_assert_int_eq(largest, scale > 0 ? 127 : 0);
        ck_assert(fabs((double)scale * 127 - most) <= most * 0x1p-16);
    }
}
END_TEST

START_TEST(a_second_time_changes_nothing)
{
    float w[N], again[N];
    signed char q[N], p[N];
    for (uint64_t key = 0; key < 400; key++) {
        random_row(w, key);
        const float scale = lin_int8_narrow(w, N, q);
        ck_assert_ptr_null(lin_int8_check(q, N, scale));
        lin_int8_widen(q, N, scale, again);
        const float second = lin_int8_narrow(again, N, p);
        ck_assert(memcmp(&scale, &second, sizeof scale) == 0);
        ck_assert(memcmp(q, p, N) == 0);
    }
}
END_TEST

START_TEST(ties_go_to_even)
{
    const float w[] = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F, -126.5F, 0, -0.0F};
    const signed char want[] = {127, 0, 2, 2, 0, -2, -2, 126, -126, 0, 0};
    signed char q[sizeof want];
    ck_assert(lin_int8_narrow(w, sizeof want, q) == 1);
    ck_assert(memcmp(q, want, sizeof want) == 0);
}
END_TEST

START_TEST(what_has_no_scale)
{
    const float zero[] = {0, -0.0F, 0}, tiny[] = {1e-38F, -1e-37F, 0}, bad[][3] = {{1, NAN, 0}, {-INFINITY, 0, 0}, {0, 2e38F, 1}};
    signed char q[3] = {1, 1, 1};
    ck_assert(lin_int8_narrow(zero, 3, q) == 0 && !q[0] && !q[1] && !q[2]);
    ck_assert(lin_int8_narrow(tiny, 3, q) == 0 && !q[0] && !q[1] && !q[2]);
    for (int i = 0; i < 3; i++) {
        memset(q, 1, sizeof q);
        ck_assert(isnan(lin_int8_narrow(bad[i], 3, q)) && !q[0] && !q[1] && !q[2]);
    }
    ck_assert(isfinite(lin_int8_narrow((const float[]){1.7e38F, 1, 0}, 3, q)) && q[0] == 127);
    ck_assert(lin_int8_narrow(zero, 0, q) == 0);
}
END_TEST

START_TEST(rows_that_cannot_be)
{
    static const struct {
        signed char q[3];
        float scale;
        const char *wrong;
    } rows[] = {
        {{127, 0, 0}, 1, NULL},          {{-127, 5, 0}, 0.5F, NULL},        {{0, 0, 0}, 0, NULL},
        {{0, 0, 1}, 0, "the scale 0"},   {{-128, 0, 127}, 1, "-128"},       {{126, 0, -126}, 1, "magnitude 127"},
        {{0, 0, 0}, 1, "magnitude 127"}, {{127, 0, 0}, NAN, "not finite"},  {{127, 0, 0}, INFINITY, "not finite"},
        {{127, 0, 0}, -1, "negative"},   {{127, 0, 0}, 0.1F, "17 bits"},    {{127, 0, 0}, 1e-39F, "range"},
        {{127, 0, 0}, 3e38F, "range"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *wrong = lin_int8_check(rows[i].q, 3, rows[i].scale);
        ck_assert_msg(rows[i].wrong ? wrong && strstr(wrong, rows[i].wrong) : !wrong, "row %zu: %s", i, wrong ? wrong : "good");
    }
}
END_TEST

TEST_MAIN("int8", TEST(near_and_exact), TEST(a_second_time_changes_nothing), TEST(ties_go_to_even), TEST(what_has_no_scale),
          TEST(rows_that_cannot_be))
