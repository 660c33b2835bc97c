// The filterbank's table for backends: ref/'s plain transform with it gives what lin_fbank gives.
#include "base/memory.h"
#include "frontend/mel.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

START_TEST(the_table_describes_the_filterbank)
{
    enum { N = 3000, MOST = 40 };
    lin_fbank_config config = lin_fbank_default();
    lin_error err = {0};
    config.high_hz = _i ? 5500 : 0;
    config.mel_bins = _i ? 23 : 40;
    static float sound[N], frames[MOST * 40];
    static double wide[N], want[MOST * 40];
    for (int i = 0; i < N; i++) {
        sound[i] = (float)(0.4 * sin(0.05 * i) + 0.1 * (lin_random_uniform(1, (uint64_t)i) - 0.5));
        wide[i] = (double)sound[i];
    }
    lin_fbank *fbank;
    lin_fbank_table table;
    int n;
    ck_assert(lin_fbank_create(&config, &fbank, &err) == LIN_OK);
    ck_assert(lin_fbank_table_create(&config, &table, &err) == LIN_OK);
    ck_assert_int_eq(table.window_samples, 400);
    ck_assert_int_eq(table.hop_samples, 160);
    ck_assert_int_eq(table.n_fft, 512);
    ck_assert(lin_fbank_push(fbank, sound, N, frames, MOST, &n, &err) == LIN_OK);
    ck_assert_int_eq(n, 1 + (N - 400) / 160);
    const lin_ops_f64 *ref = lin_ops_ref();
    lin_exec *exec;
    ck_assert(ref->exec_create(ref, 1, &exec, &err) == LIN_OK);
    const lin_segments out = {1, n, n, (const int[]){0, n}}, in = {1, N, N, (const int[]){0, N}};
    ref->fbank(exec, want, &out, wide, &in, &table);
    for (int i = 0; i < n * config.mel_bins; i++)
        ck_assert_msg(fabs((double)frames[i] - want[i]) < 2e-4, "value %d is %g, with the table %g", i, (double)frames[i],
                      want[i]);
    ref->exec_destroy(exec);
    lin_fbank_table_free(&table);
    lin_fbank_destroy(fbank);
}
END_TEST

START_TEST(no_memory_and_bad_options)
{
    lin_fbank_config config = lin_fbank_default();
    lin_fbank_table table;
    FAIL_EVERY_ALLOCATION_OF(table.window, lin_fbank_table_create(&config, &table, NULL), lin_fbank_table_free(&table));
    config.mel_bins = 0;
    ck_assert_int_eq(lin_fbank_table_create(&config, &table, NULL), LIN_INVALID);
}
END_TEST

TEST_MAIN("frontend/mel", TESTS(the_table_describes_the_filterbank, 0, 2), TEST(no_memory_and_bad_options))
