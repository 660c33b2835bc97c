// The random numbers against an independent computation, and their evenness.
#include "tests/golden/rng.h"
#include "tests/support.h"

START_TEST(known_answers)
{
    for (size_t i = 0; i < sizeof rng_golden / sizeof *rng_golden; i++) {
        uint64_t key = rng_golden[i].key, counter = rng_golden[i].counter;
        ck_assert_uint_eq(lin_random_bits(key, counter), rng_golden[i].bits);
        ck_assert_uint_eq(lin_random_key(key, counter), rng_golden[i].derived);
        ck_assert(lin_random_uniform(key, counter) == ldexp((double)rng_golden[i].uniform, -53));
        ck_assert_uint_eq(lin_random_below(key, counter, 1000), rng_golden[i].below);
    }
}
END_TEST

START_TEST(known_chain)
{
    uint64_t chain = 0;
    for (uint64_t i = 0; i < 100000; i++) chain = lin_mix64(chain ^ lin_random_bits(12345, i));
    ck_assert_uint_eq(chain, rng_golden_chain);
}
END_TEST

// Each of the 64 bits is set half of the time, for counters and for keys in a row: within 5 standard deviations.
START_TEST(every_bit_is_even)
{
    enum { N = 20000 };
    for (int by_key = 0; by_key < 2; by_key++) {
        int set[64] = {0};
        for (uint64_t i = 0; i < N; i++) {
            uint64_t bits = by_key ? lin_random_bits(i, 3) : lin_random_bits(3, i);
            for (int b = 0; b < 64; b++) set[b] += (int)(bits >> b & 1);
        }
        for (int b = 0; b < 64; b++)
            ck_assert_msg(abs(set[b] - N / 2) < 5 * sqrt(N / 4.0), "bit %d is set %d times of %d", b, set[b], N);
    }
}
END_TEST

START_TEST(uniform_is_uniform)
{
    enum { N = 100000, BINS = 100 };
    int bins[BINS] = {0};
    double mean = 0, lag = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = lin_random_uniform(99, i);
        ck_assert(u >= 0 && u < 1);
        bins[(int)(u * BINS)]++;
        mean += u / N;
        lag += (u - 0.5) * (lin_random_uniform(99, i + 1) - 0.5) / N;
    }
    double chi2 = 0;
    for (int b = 0; b < BINS; b++) chi2 += (bins[b] - N / BINS) * (double)(bins[b] - N / BINS) / (N / BINS);
    ck_assert(chi2 > 50 && chi2 < 160); // 99 degrees of freedom: 99 +- 14
    ck_assert(fabs(mean - 0.5) < 5 * sqrt(1 / 12.0 / N));
    ck_assert(fabs(lag) < 5 * (1 / 12.0) / sqrt(N));
}
END_TEST

START_TEST(below_reaches_every_value)
{
    for (uint32_t n = 1; n < 40; n++) {
        uint64_t seen = 0;
        for (uint64_t i = 0; i < 2000; i++) {
            uint32_t value = lin_random_below(5, i, n);
            ck_assert_uint_lt(value, n);
            seen |= (uint64_t)1 << value;
        }
        ck_assert_uint_eq(seen, ((uint64_t)1 << n) - 1);
    }
    for (uint64_t i = 0; i < 1000; i++) ck_assert_uint_lt(lin_random_below(6, i, UINT32_MAX), UINT32_MAX);
}
END_TEST

// Sequences under derived keys have nothing in common: about half of the bits differ.
START_TEST(derived_keys_are_independent)
{
    enum { N = 2000 };
    long differing = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t a = lin_random_key(1, i), b = lin_random_key(1, i + 1);
        ck_assert(a != b);
        differing += __builtin_popcountll(lin_random_bits(a, 0) ^ lin_random_bits(b, 0));
    }
    ck_assert(labs(differing - 32L * N) < (long)(5 * sqrt(16.0 * N)));
}
END_TEST

TEST_MAIN("rng", TEST(known_answers), TEST(known_chain), TEST(every_bit_is_even), TEST(uniform_is_uniform),
          TEST(below_reaches_every_value), TEST(derived_keys_are_independent))
