// The resampler: bits of any split, level, frequency and alignment of a tone at every rate, pass-through, failing allocations.
#include "frontend/resample.h"
#include "tests/frontend/count_mallocs.h"
#include "tests/frontend/support.h"

static const double rates[] = {4000, 8000, 11025, 12345, 17600, 22050, 32000, 44100, 48000, 96000, 192000};

enum { N_RATES = sizeof rates / sizeof rates[0] };

static int all_at_once(double in_hz, double out_hz, const float *x, int n, float *y, int capacity)
{
    lin_resampler *r;
    int first, last;
    OK(lin_resampler_create(in_hz, out_hz, &r, &err));
    OK(lin_resampler_push(r, x, n, y, capacity, &first, &err));
    OK(lin_resampler_finish(r, y + first, capacity - first, &last, &err));
    lin_resampler_destroy(r);
    return first + last;
}

START_TEST(any_split_gives_the_same_bits)
{
    double rate = rates[_i];
    int n = (int)rate / 2 + 13, capacity = 9000;
    float *x = test_buffer((size_t)n, sizeof *x), *y = test_buffer((size_t)capacity, sizeof *y),
          *z = test_buffer((size_t)capacity, sizeof *z);
    fill_tone(x, n, rate, 700, 0.4, 0.2);
    int total = all_at_once(rate, 16000, x, n, y, capacity);
    ck_assert_msg(fabs(total - n * 16000 / rate) <= 1, "%g Hz: %d samples gave %d", rate, n, total);
    const int most[] = {1, 10, 333, 4000, 40000};
    lin_error why = {0};
    lin_resampler *r;
    OK(lin_resampler_create(rate, 16000, &r, &err));
    for (int m = 0; m < 5; m++) {
        int done = 0, got, failed = 0;
        OK(lin_resampler_reset(r, &err));
        memset(z, 0xff, (size_t)capacity * sizeof *z);
        for (int at = 0, i = 0; at < n; i++) {
            int take = piece((uint64_t)m, (uint64_t)i, most[m], n - at), room = lin_resampler_most_out(r, take);
            failed |= done + room > capacity || lin_resampler_push(r, x + at, take, z + done, room, &got, &why) != LIN_OK;
            if (failed) break;
            done += got;
            at += take;
        }
        ck_assert_msg(!failed, "%s", why.message);
        OK(lin_resampler_finish(r, z + done, lin_resampler_most_out(r, 0), &got, &err));
        done += got;
        ck_assert_int_eq(done, total);
        ck_assert_msg(memcmp(z, y, (size_t)total * sizeof *y) == 0, "%g Hz: other bits in pieces of up to %d", rate, most[m]);
    }
    lin_resampler_destroy(r);
    TEST_FREE(x, y, z);
}
END_TEST

// A tone keeps its level, frequency and place in time, up to nine tenths of the band; the amplitude and phase are read off 0.2 s
// away from the edges.
static void keep_tone(double rate, double hz)
{
    int n = (int)rate, capacity = 17000;
    float *x = test_buffer((size_t)n, sizeof *x), *y = test_buffer((size_t)capacity, sizeof *y);
    fill_tone(x, n, rate, hz, 0.5, 0);
    int total = all_at_once(rate, 16000, x, n, y, capacity);
    double in_phase = 0, quadrature = 0, energy = 0;
    int from = 3200, to = 12800;
    ck_assert_int_gt(total, to);
    for (int i = from; i < to; i++) {
        double angle = TWO_PI * hz * i / 16000;
        in_phase += (double)y[i] * sin(angle);
        quadrature += (double)y[i] * cos(angle);
        energy += (double)y[i] * (double)y[i];
    }
    double scale = 2.0 / (to - from), level = hypot(in_phase, quadrature) * scale;
    ck_assert_msg(fabs(20 * log10(level / 0.5)) < 0.02, "%g Hz: the tone of %g Hz came out at %g", rate, hz, level);
    ck_assert_msg(fabs(atan2(quadrature, in_phase)) < 1e-3, "%g Hz: the tone of %g Hz moved by %g rad", rate, hz,
                  atan2(quadrature, in_phase));
    // Nothing but the tone: distortion and images at least 90 dB below.
    double rest = energy * scale - level * level;
    ck_assert_msg(rest < 1e-9 * level * level, "%g Hz: noise %g beside %g Hz", rate, rest, hz);
    TEST_FREE(x, y);
}

START_TEST(tone_is_kept)
{
    keep_tone(rates[_i], 1000);
    keep_tone(rates[_i], 50 * floor(0.9 * fmin(rates[_i], 16000) / 100)); // whole periods in the measured part
}
END_TEST

START_TEST(above_nyquist_is_removed)
{
    static float x[48000], y[17000];
    fill_tone(x, 48000, 48000, 9500, 0.5, 0);
    int total = all_at_once(48000, 16000, x, 48000, y, 17000);
    float largest = 0;
    for (int i = 2000; i < total - 2000; i++) largest = fmaxf(largest, fabsf(y[i]));
    ck_assert_msg(largest < 1e-4f, "what should be gone is %g", (double)largest);
}
END_TEST

START_TEST(equal_rates_pass_through)
{
    static float x[5000], y[5000];
    fill_tone(x, 5000, 16000, 50, 2.5, 0.1);
    ck_assert_int_eq(all_at_once(16000, 16000, x, 5000, y, 5000), 5000);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
}
END_TEST

START_TEST(misuse)
{
    lin_resampler *r;
    float x[100] = {0}, y[200];
    int got;
    FAILS(lin_resampler_create(0, 16000, &r, &err), LIN_INVALID, "0 to 16000");
    FAILS(lin_resampler_create(16000, (double)NAN, &r, &err), LIN_INVALID, "1 kHz to 1 MHz");
    ck_assert_ptr_null(r);
    OK(lin_resampler_create(8000, 16000, &r, &err));
    FAILS(lin_resampler_push(r, x, 100, y, 199, &got, &err), LIN_TOO_SMALL, "room for 199");
    FAILS(lin_resampler_push(r, x, -1, y, 199, &got, &err), LIN_INVALID, "-1");
    OK(lin_resampler_finish(r, y, 200, &got, &err));
    ck_assert_int_eq(got, 0);
    FAILS(lin_resampler_push(r, x, 10, y, 200, &got, &err), LIN_INVALID, "after the end");
    lin_resampler_destroy(r);
    lin_resampler_destroy(NULL);
}
END_TEST

START_TEST(nothing_is_allocated_while_streaming)
{
    lin_error why = {0};
    static float x[192000], y[200000];
    for (int k = 0; k < N_RATES; k++) {
        double rate = rates[k];
        lin_resampler *r;
        int got, step = (int)(rate / 100);
        fill_tone(x, 192000, rate, 300, 0.3, 0.3);
        OK(lin_resampler_create(rate, 16000, &r, &err));
        // libsoxr's queues reach their size in the first seconds.
        int failed = 0; // Check allocates itself
        for (int i = 0; i < 2000; i++) failed |= lin_resampler_push(r, x, step, y, 200000, &got, &why) != LIN_OK;
        unsigned long ours = lin_memory_count(), all = n_mallocs;
        for (int i = 0; i < 200; i++) failed |= lin_resampler_push(r, x, step, y, 200000, &got, &why) != LIN_OK;
        ours = lin_memory_count() - ours;
        all = n_mallocs - all;
        ck_assert_int_eq(failed, 0);
        ck_assert_uint_eq(ours, 0);
        ck_assert_msg(all == 0, "%g Hz: %lu allocations while streaming", rate, all);
        lin_resampler_destroy(r);
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    lin_error why = {0};
    lin_resampler *r;
    FAIL_EVERY_ALLOCATION_OF(r, lin_resampler_create(8000, 16000, &r, &why), lin_resampler_destroy(r));
}
END_TEST

TEST_MAIN("frontend/resample", TESTS(any_split_gives_the_same_bits, 0, N_RATES), TESTS(tone_is_kept, 0, N_RATES),
          TEST(above_nyquist_is_removed), TEST(equal_rates_pass_through), TEST(misuse),
          TEST(nothing_is_allocated_while_streaming), TEST(every_allocation_may_fail))
