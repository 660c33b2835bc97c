// Half precision: all 65,536 values, and every place where rounding decides. Weights of eight bits: near the weights, exact in
// floats, the same after a second time, and what a file may not hold.
#include "base/number.h"
#include "tests/support.h"

// IEEE 754-2008, 3.4, with ldexp instead of bit tricks.
static double value_of(unsigned half)
{
    const int exponent = half >> 10 & 31;
    const double fraction = half & 1023, sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction > 0 ? (double)NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

START_TEST(widening_is_exact)
{
    uint16_t halves[65536];
    float *floats = test_buffer(65536, sizeof *floats);
    for (unsigned h = 0; h < 65536; h++) halves[h] = (uint16_t)h;
    lin_half_widen(halves, 65536, floats);
    test_guards(floats, "lin_half_widen");
    for (unsigned h = 0; h < 65536; h++) {
        const double want = value_of(h), got = (double)floats[h];
        test_require(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want), "0x%04X is %g, not %g", h, got,
                     want);
    }
    test_buffer_free(floats);
}
END_TEST

START_TEST(narrowing_returns_every_half)
{
    for (unsigned h = 0; h < 65536; h++) {
        const unsigned back = lin_float_to_half(lin_half_to_float((uint16_t)h));
        const int nan = (h & 0x7FFF) > 0x7C00;
        test_require(nan ? (back & 0x7FFF) > 0x7C00 && (back & 0x8000) == (h & 0x8000) : back == h, "0x%04X became 0x%04X", h,
                     back);
    }
}
END_TEST

// Between two neighbours: the middle goes to the even one, a hair beside it to the nearer. Halves of a sign are ordered as
// integers.
START_TEST(narrowing_rounds_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7C00; h++) {
        const double low = value_of(h), high = h == 0x7BFF ? 65536 : value_of(h + 1);
        const float middle = (float)((low + high) / 2); // exact: one bit more than a half
        const unsigned even = h & 1 ? h + 1 : h;
        for (int negative = 0; negative < 2; negative++) {
            const float sign = negative ? -1.0F : 1.0F;
            const unsigned bit = negative ? 0x8000 : 0;
            test_require(lin_float_to_half(sign * middle) == (bit | even), "the middle above 0x%04X", h);
            test_require(lin_float_to_half(sign * nextafterf(middle, 0)) == (bit | h), "below the middle above 0x%04X", h);
            test_require(lin_float_to_half(sign * nextafterf(middle, INFINITY)) == (bit | (h + 1)),
                         "above the middle above 0x%04X", h);
        }
    }
}
END_TEST

START_TEST(narrowing_at_the_ends)
{
    ck_assert_uint_eq(lin_float_to_half(65504.0F), 0x7BFF);
    ck_assert_uint_eq(lin_float_to_half(65519.996F), 0x7BFF);
    ck_assert_uint_eq(lin_float_to_half(65520.0F), 0x7C00);
    ck_assert_uint_eq(lin_float_to_half(-3e38F), 0xFC00);
    ck_assert_uint_eq(lin_float_to_half(-INFINITY), 0xFC00);
    ck_assert_uint_eq(lin_float_to_half(0x1p-25F), 0);
    ck_assert_uint_eq(lin_float_to_half(1e-45F), 0);
    ck_assert_uint_eq(lin_float_to_half(-0.0F), 0x8000);
    float numbers[] = {1.0F, -2.5F, NAN, 65520.0F};
    unsigned char bytes[9] = {0}; // at an odd address
    lin_half_narrow(numbers, 4, bytes + 1);
    float back[4];
    lin_half_widen(bytes + 1, 4, back);
    ck_assert(back[0] == 1.0F && back[1] == -2.5F && isnan(back[2]) && isinf(back[3]));
}
END_TEST

START_TEST(what_is_not_finite_is_found)
{
    enum { COUNT = 2100 };
    unsigned char bytes[2 * COUNT + 1] = {0}, *halves = bytes + 1;
    const size_t places[] = {0, 1, 7, 1023, 1024, 2047, 2048, COUNT - 1};
    const uint16_t bad[] = {0x7C00, 0xFC00, 0x7C01, 0xFFFF}, good[] = {0x7BFF, 0xFBFF, 0x8000, 0x03FF};
    for (size_t i = 0; i < COUNT; i++) memcpy(halves + 2 * i, &good[i % 4], 2);
    ck_assert_uint_eq(lin_half_find_not_finite(halves, COUNT), COUNT);
    ck_assert_uint_eq(lin_half_find_not_finite(halves, 0), 0);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        memcpy(halves + 2 * places[p], &bad[p % 4], 2);
        ck_assert_uint_eq(lin_half_find_not_finite(halves, COUNT), places[p]);
        ck_assert_uint_eq(lin_half_find_not_finite(halves, places[p]), places[p]);
        memcpy(halves + 2 * places[p], &good[p % 4], 2);
    }
}
END_TEST

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

TEST_MAIN("base/number", TEST(widening_is_exact), TEST(narrowing_returns_every_half), TEST(narrowing_rounds_to_nearest_even),
          TEST(narrowing_at_the_ends), TEST(what_is_not_finite_is_found), TEST(near_and_exact),
          TEST(a_second_time_changes_nothing), TEST(ties_go_to_even), TEST(what_has_no_scale), TEST(rows_that_cannot_be))
