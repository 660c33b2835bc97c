// train/score/bootstrap.c: against every possible sample, against known distributions of large ones, and against itself.
#include "train/score/bootstrap.h"

#include "tests/lexicon/support.h"

static lin_bootstrap_options options(int resamples, uint64_t seed)
{
    return (lin_bootstrap_options){.resamples = resamples, .seed = seed, .random = lin_random_below};
}

// Draw number c is the digit c % n of sample c / n in base n: all n^n samples one after the other.
static uint32_t every_sample(uint64_t key, uint64_t counter, uint32_t n)
{
    (void)key;
    uint64_t sample = counter / n;
    for (uint64_t digit = counter % n; digit; digit--) sample /= n;
    return (uint32_t)(sample % n);
}

static unsigned long long n_counted;

static uint32_t counted(uint64_t key, uint64_t counter, uint32_t n)
{
    n_counted++;
    return lin_random_below(key, counter, n);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

// Three units have 27 samples: the interval is that of these samples, and the share in which one system is better is exact.
START_TEST(all_samples_of_three)
{
    static const lin_bootstrap_unit a[] = {{1, 10}, {4, 12}, {0, 5}}, b[] = {{2, 10}, {3, 12}, {0, 5}};
    double rates[27], differences[27];
    int better = 0, equal = 0, n = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++, n++) {
                double tokens = (double)(a[i].tokens + a[j].tokens + a[k].tokens);
                long long x = a[i].errors + a[j].errors + a[k].errors, y = b[i].errors + b[j].errors + b[k].errors;
                rates[n] = (double)x / tokens;
                differences[n] = rates[n] - (double)y / tokens;
                better += x < y;
                equal += x == y;
            }
        }
    }
    qsort(rates, 27, sizeof *rates, by_value);
    qsort(differences, 27, sizeof *differences, by_value);
    lin_bootstrap_options o = options(27, 0);
    lin_bootstrap_interval v;
    lin_difference d;
    o.random = every_sample;
    OK(lin_bootstrap_rate(a, 3, &o, &v, &err));
    ck_assert_int_eq(v.units, 3);
    // 2.5 % of 26 steps: 0.65 of the way from the first to the second
    ck_assert_double_eq_tol(v.low, rates[0] + 0.65 * (rates[1] - rates[0]), 1e-12);
    ck_assert_double_eq_tol(v.high, rates[25] + 0.35 * (rates[26] - rates[25]), 1e-12);
    ck_assert(v.low < v.high);
    OK(lin_bootstrap_difference(a, b, 3, &o, &d, &err));
    ck_assert_double_eq_tol(d.interval.low, differences[0] + 0.65 * (differences[1] - differences[0]), 1e-12);
    ck_assert_double_eq_tol(d.interval.high, differences[25] + 0.35 * (differences[26] - differences[25]), 1e-12);
    ck_assert_double_eq_tol(d.improvement, better / 27.0, 1e-12);
    ck_assert_double_eq_tol(d.equal, equal / 27.0, 1e-12);
    ck_assert(better > 0 && equal > 0 && better + equal < 27);
}
END_TEST

// Units of one token that are wrong with probability 0.3: the interval is that of the binomial distribution.
START_TEST(large_samples_are_normal)
{
    enum { N = 2000 };
    static lin_bootstrap_unit units[N];
    double errors = 0;
    for (int i = 0; i < N; i++) {
        units[i] = (lin_bootstrap_unit){lin_random_uniform(5, (uint64_t)i) < 0.3, 1};
        errors += (double)units[i].errors;
    }
    lin_bootstrap_options o = options(4000, 11);
    lin_bootstrap_interval v;
    OK(lin_bootstrap_rate(units, N, &o, &v, &err));
    double rate = errors / N, half = 1.96 * sqrt(rate * (1 - rate) / N);
    ck_assert_double_eq_tol(v.low, rate - half, 0.08 * half);
    ck_assert_double_eq_tol(v.high, rate + half, 0.08 * half);
}
END_TEST

// Large sets with few kinds of units, drawn by kinds, against n plain draws for each resample. Both give the ends of the interval
// within a few per cent of its half width; the error of a wrong distribution is larger.
START_TEST(grouped_draws_are_plain_ones)
{
    enum { N = 3000, RESAMPLES = 3000 };
    static lin_bootstrap_unit a[N], b[N];
    static double plain[2][RESAMPLES];
    for (int kind = 0; kind < 3; kind++) {
        int better = 0;
        for (int i = 0; i < N; i++) { // few kinds; nearly all of one kind; many kinds, some with one unit
            const uint64_t c = (uint64_t)(i * 4);
            const int most = kind == 0 ? 3 : kind == 1 ? 40 : 15, rare = kind != 1 || lin_random_below(8, c + 3, 500) == 0;
            a[i].tokens = b[i].tokens = 1 + (rare ? lin_random_below(7, c, (uint32_t)most) : 5);
            a[i].errors = rare ? lin_random_below(7, c + 1, (uint32_t)a[i].tokens + 1) : 1;
            b[i].errors = kind == 0 ? lin_random_below(7, c + 2, 3) : a[i].errors + (lin_random_below(7, c + 2, 10) == 0);
        }
        uint64_t drawn = 0;
        for (int r = 0; r < RESAMPLES; r++) {
            lin_bootstrap_unit x = {0, 0}, y = {0, 0};
            for (int i = 0; i < N; i++) {
                const uint32_t k = lin_random_below(99, drawn++, N);
                x.errors += a[k].errors, x.tokens += a[k].tokens;
                y.errors += b[k].errors, y.tokens += b[k].tokens;
            }
            plain[0][r] = lin_bootstrap_quotient(x.errors, x.tokens);
            plain[1][r] = plain[0][r] - lin_bootstrap_quotient(y.errors, y.tokens);
            better += plain[1][r] < 0;
        }
        const lin_bootstrap_options o = options(RESAMPLES, 3);
        lin_bootstrap_interval v, again;
        lin_difference d;
        OK(lin_bootstrap_rate(a, N, &o, &v, &err));
        OK(lin_bootstrap_rate(a, N, &o, &again, &err));
        ck_assert(v.low == again.low && v.high == again.high);
        OK(lin_bootstrap_difference(a, b, N, &o, &d, &err));
        const lin_bootstrap_interval drawn_together[2] = {v, d.interval};
        for (int i = 0; i < 2; i++) {
            qsort(plain[i], RESAMPLES, sizeof(double), by_value);
            const double low = plain[i][RESAMPLES / 40], high = plain[i][RESAMPLES - 1 - RESAMPLES / 40],
                         off = 0.06 * (high - low);
            ck_assert_double_eq_tol(drawn_together[i].low, low, off);
            ck_assert_double_eq_tol(drawn_together[i].high, high, off);
        }
        ck_assert_double_eq_tol(d.improvement, (double)better / RESAMPLES, 0.04);
    }
}
END_TEST

// A million utterances: n draws for each resample would take half a minute.
START_TEST(a_million_units)
{
    enum { N = 1000000 };
    lin_bootstrap_unit *units = malloc(N * sizeof *units);
    ck_assert_ptr_nonnull(units);
    double errors = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        units[i] = (lin_bootstrap_unit){lin_random_below(1, (uint64_t)i, 4), 10};
        errors += (double)units[i].errors;
        squares += (double)(units[i].errors * units[i].errors);
    }
    lin_bootstrap_options o = options(1000, 1);
    o.random = counted;
    n_counted = 0;
    lin_bootstrap_interval v;
    OK(lin_bootstrap_rate(units, N, &o, &v, &err));
    ck_assert_uint_lt(n_counted, 100000); // of 1,000,000,000
    const double mean = errors / N, half = 1.96 * sqrt((squares / N - mean * mean) / N) / 10;
    ck_assert_double_eq_tol(v.low, mean / 10 - half, 0.1 * half);
    ck_assert_double_eq_tol(v.high, mean / 10 + half, 0.1 * half);
    free(units);
}
END_TEST

START_TEST(seeds_and_edges)
{
    static const lin_bootstrap_unit units[] = {{1, 9}, {5, 11}, {2, 7}, {0, 0}, {3, 8}}, silent[] = {{2, 0}, {0, 0}},
                                    half[] = {{2, 0}, {1, 4}};
    lin_bootstrap_options o = options(200, 1), other = options(200, 2), one = options(1, 1);
    lin_bootstrap_interval a, b, c;
    lin_difference d;
    OK(lin_bootstrap_rate(units, 5, &o, &a, &err));
    OK(lin_bootstrap_rate(units, 5, &o, &b, &err));
    OK(lin_bootstrap_rate(units, 5, &other, &c, &err));
    ck_assert(a.low == b.low && a.high == b.high);
    ck_assert(a.low != c.low || a.high != c.high);
    OK(lin_bootstrap_rate(units, 5, &one, &a, &err));
    ck_assert(a.low == a.high);
    OK(lin_bootstrap_rate(units + 1, 1, &o, &a, &err)); // one unit: always the same
    ck_assert(a.low == 5.0 / 11 && a.high == a.low && a.units == 1);
    OK(lin_bootstrap_rate(silent, 2, &o, &a, &err)); // no tokens: no rate
    ck_assert_int_eq(a.units, 0);
    OK(lin_bootstrap_difference(silent, silent, 2, &o, &d, &err));
    ck_assert(d.interval.units == 0 && isnan(d.improvement) && isnan(d.equal));
    OK(lin_bootstrap_rate(half, 2, &o, &a, &err)); // resamples without tokens are drawn again: 1 / 4 and 3 / 4 are left
    ck_assert(a.low == 0.25 && a.high == 0.75 && a.units == 2);
    OK(lin_bootstrap_difference(units, units, 5, &o, &d, &err));
    ck_assert(d.interval.low == 0 && d.interval.high == 0 && d.improvement == 0 && d.equal == 1);
    FAILS(lin_bootstrap_rate(units, 0, &o, &a, &err), LIN_INVALID, "nothing to draw from");
    o.resamples = 0;
    FAILS(lin_bootstrap_rate(units, 5, &o, &a, &err), LIN_INVALID, "resamples must be 1 to 1000000, not 0");
    o = options(10, 1);
    FAIL_EVERY_ALLOCATION(lin_bootstrap_rate(units, 5, &o, &a, NULL), (void)0);
    FAIL_EVERY_ALLOCATION(lin_bootstrap_difference(units, units, 5, &o, &d, NULL), (void)0);
}
END_TEST

TEST_MAIN("bootstrap", TEST(all_samples_of_three), TEST(large_samples_are_normal), TEST(grouped_draws_are_plain_ones),
          TEST(a_million_units), TEST(seeds_and_edges))
