// Half precision: all 65,536 values, and every place where rounding decides.
#include "base/half.h"

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
    enum { N = 2100 };
    unsigned char bytes[2 * N + 1] = {0}, *halves = bytes + 1;
    const size_t places[] = {0, 1, 7, 1023, 1024, 2047, 2048, N - 1};
    const uint16_t bad[] = {0x7C00, 0xFC00, 0x7C01, 0xFFFF}, good[] = {0x7BFF, 0xFBFF, 0x8000, 0x03FF};
    for (size_t i = 0; i < N; i++) memcpy(halves + 2 * i, &good[i % 4], 2);
    ck_assert_uint_eq(lin_half_find_not_finite(halves, N), N);
    ck_assert_uint_eq(lin_half_find_not_finite(halves, 0), 0);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        memcpy(halves + 2 * places[p], &bad[p % 4], 2);
        ck_assert_uint_eq(lin_half_find_not_finite(halves, N), places[p]);
        ck_assert_uint_eq(lin_half_find_not_finite(halves, places[p]), places[p]);
        memcpy(halves + 2 * places[p], &good[p % 4], 2);
    }
}
END_TEST

TEST_MAIN("base/half", TEST(widening_is_exact), TEST(narrowing_returns_every_half), TEST(narrowing_rounds_to_nearest_even),
          TEST(narrowing_at_the_ends), TEST(what_is_not_finite_is_found))
