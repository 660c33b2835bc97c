// Filterbanks: golden values in double precision, any split of the samples, edges of the configuration, failing allocations; the
// table for backends: with it ref/'s plain transform gives the same; mean and variance.
#include "frontend/fbank.h"
#include "tests/frontend/support.h"
#include "tests/kernels/ref/reference.h"
#include "train/lab/npy.h"

static float *whole(const lin_fbank_config *config, const float *x, int n, int *T)
{
    lin_fbank *fbank;
    OK(lin_fbank_create(config, &fbank, &err));
    *T = lin_fbank_frames_out(fbank, n);
    size_t count = (size_t)*T * (size_t)config->mel_bins;
    float *frames = lin_alloc(count, sizeof(float));
    for (size_t i = 0; i < count; i++) frames[i] = NAN;
    int got;
    OK(lin_fbank_push(fbank, x, n, frames, *T, &got, &err));
    ck_assert_int_eq(got, *T);
    lin_fbank_destroy(fbank);
    return frames;
}

// The golden signal, against double precision; `copies` 3: of a quiet speaker, a loud one and another, with echoes every 60 ms.
static void compare_golden(const char *path, lin_fbank_config config, size_t copies, double echo)
{
    const double scale[] = {copies == 1 ? 1 : 0.05, 1, 1.0 / 3};
    float *signal, *golden;
    size_t n, golden_T;
    int one, D, T;
    OK(lin_npy_read("tests/golden/fbank_signal.npy", &signal, &n, &one, &err));
    OK(lin_npy_read(path, &golden, &golden_T, &D, &err));
    float *x = lin_alloc(copies * n, sizeof *x);
    for (size_t i = 0; i < copies * n; i++) x[i] = (float)((double)signal[i % n] * scale[i / n]);
    for (size_t i = 960; i < copies * n; i++) x[i] += (float)(echo * (double)x[i - 960]);
    float *frames = whole(&config, x, (int)(copies * n), &T);
    ck_assert_int_eq(D, config.mel_bins);
    ck_assert_uint_eq((size_t)T, golden_T);
    for (int i = 0; i < T * D; i++)
        test_require(fabs((double)frames[i] - (double)golden[i]) < (copies == 1 ? 1e-3 : 5e-3), "%s, frame %d: %g, golden %g",
                     path, i / D, (double)frames[i], (double)golden[i]);
    lin_free(frames);
    lin_free(x);
    lin_free(signal);
    lin_free(golden);
}

START_TEST(golden_values)
{
    lin_fbank_config config = lin_fbank_default();
    compare_golden("tests/golden/fbank_default.npy", config, 1, 0);
    config.high_hz = 5500;
    compare_golden("tests/golden/fbank_5500.npy", config, 1, 0);
    lin_fbank_config wide = {
        .sample_hz = 16000, .mel_bins = 23, .window_ms = 40, .hop_ms = 12.5, .low_hz = 64, .high_hz = -400, .preemphasis = 0.9};
    compare_golden("tests/golden/fbank_wide.npy", wide, 1, 0);
}
END_TEST

START_TEST(golden_level)
{
    lin_fbank_config config = lin_fbank_default();
    config.level_db = 130; // more than the sound has, so that the level of speech falls at first
    compare_golden("tests/golden/fbank_level.npy", config, 3, 0);
}
END_TEST

START_TEST(golden_dereverb)
{
    lin_fbank_config config = lin_fbank_default();
    config.high_hz = 5500;
    config.dereverb = 1;
    compare_golden("tests/golden/fbank_dereverb.npy", config, 3, 0.7);
}
END_TEST

// Bursts of noise that gets echoes every 60 ms after 8 seconds: nine seconds later features are nearer to those without echoes.
// Where there are none, they stay.
START_TEST(dereverb_takes_echoes_away)
{
    enum { BEGINS = 8 * 16000, N = 20 * 16000, D = 40 };
    static float dry[N], wet[N];
    lin_fbank_config config = lin_fbank_default();
    int T;
    for (int i = 0; i < N; i++) {
        const double level = i % 6400 < 1920 ? 0.3 : 0.001;
        dry[i] = (float)(level * (lin_random_uniform(5, (uint64_t)i) - 0.5));
    }
    for (int i = 0; i < N; i++) wet[i] = dry[i] + (i < BEGINS ? 0 : 0.7F * wet[i - 960]);
    float *want = whole(&config, dry, N, &T), *heard = whole(&config, wet, N, &T);
    config.dereverb = 1;
    float *cleaned = whole(&config, wet, N, &T), *kept = whole(&config, dry, N, &T);
    double with_echoes = 0, without = 0;
    for (int i = 1700 * D; i < T * D; i++) {
        with_echoes += fabs((double)(heard[i] - want[i]));
        without += fabs((double)(cleaned[i] - want[i]));
    }
    ck_assert_msg(without < 0.8 * with_echoes, "%g with echoes, %g without", with_echoes, without);
    ck_assert_int_eq(memcmp(kept, want, (size_t)T * D * sizeof *want), 0);
    lin_free(want);
    lin_free(heard);
    lin_free(cleaned);
    lin_free(kept);
}
END_TEST

// Four seconds of a telephone's tone are predicted well without any room: the speech behind them stays as it is.
START_TEST(dereverb_forgets_tones)
{
    enum { BEGINS = 4 * 16000, N = 10 * 16000, D = 40 };
    static float x[N];
    lin_fbank_config config = lin_fbank_default();
    int T;
    for (int i = 0; i < N; i++) {
        const double level = i % 6400 < 1920 ? 0.3 : 0.001;
        x[i] = (float)(i < BEGINS ? 0.3 * sin(0.1669 * i) : level * (lin_random_uniform(5, (uint64_t)i) - 0.5));
    }
    float *want = whole(&config, x, N, &T);
    config.dereverb = 1;
    float *cleaned = whole(&config, x, N, &T);
    double differs = 0;
    for (int i = 400 * D; i < T * D; i++) differs += fabs((double)(cleaned[i] - want[i])) / ((T - 400) * D);
    ck_assert_msg(differs < 0.01, "%g", differs);
    lin_free(want);
    lin_free(cleaned);
}
END_TEST

// Sounds like words: bursts over a faint noise, 30 dB quieter to 10 dB louder: after 25 seconds the features are the same within
// the range in which a level is left alone.
START_TEST(a_level_makes_features_independent_of_gain)
{
    enum { N = 30 * 16000, D = 40 };
    static float x[N], y[N];
    const double gains_db[] = {-30, -12, 10};
    lin_fbank_config config = lin_fbank_default();
    int T;
    config.level_db = 100;
    fill_tone(x, N, 16000, 300, 0.2, 0.05);
    for (int i = 0; i < N; i++)
        if (i / 4000 % 3 == 2) x[i] *= 0.01F; // pauses
    float *want = whole(&config, x, N, &T);
    for (int g = 0; g < 3; g++) {
        for (int i = 0; i < N; i++) y[i] = (float)((double)x[i] * pow(10, gains_db[g] / 20));
        float *got = whole(&config, y, N, &T);
        double worst = 0;
        for (int t = 2500; t < T; t++)
            for (int d = 0; d < D; d++) worst = fmax(worst, fabs((double)(got[t * D + d] - want[t * D + d])));
        // within 4 dB on both sides
        ck_assert_msg(worst < 8.5 / 10 * log(10), "%g dB: features differ by %g", gains_db[g], worst);
        lin_free(got);
    }
    lin_free(want);
}
END_TEST

// Saved anywhere, and loaded: the same bits. States without a level and a room are refused, and forged ones.
START_TEST(level_and_room_are_saved_and_loaded)
{
    enum { N = 20000, D = 40 };
    static float x[N], frames[130 * D];
    static unsigned char state[200000], forged[200000];
    lin_fbank_config config = lin_fbank_default();
    lin_fbank *a, *b, *plain;
    int T, got, more;
    fill_tone(x, N, 16000, 440, 0.3, 0.1);
    for (int i = 4000; i < 9000; i++) x[i] *= 0.02F;
    OK(lin_fbank_create(&config, &plain, &err));
    config.level_db = 95;
    config.dereverb = 1;
    float *want = whole(&config, x, N, &T);
    OK(lin_fbank_create(&config, &a, &err));
    OK(lin_fbank_create(&config, &b, &err));
    const size_t added = lin_fbank_state_bytes(a) - lin_fbank_state_bytes(plain); // level and room
    const int cuts[] = {0, 100, 399, 400, 5000, 12345};
    for (int c = 0; c < 6; c++) {
        lin_fbank_reset(a);
        OK(lin_fbank_push(a, x, cuts[c], frames, 130, &got, &err));
        const size_t n = lin_fbank_state_bytes(a);
        ck_assert(n <= sizeof state);
        lin_fbank_save(a, state);
        OK(lin_fbank_load(b, state, n, &err));
        OK(lin_fbank_push(b, x + cuts[c], N - cuts[c], frames + got * D, 130 - got, &more, &err));
        ck_assert_int_eq(got + more, T);
        ck_assert_int_eq(memcmp(frames, want, (size_t)T * D * sizeof *want), 0);
        FAILS(lin_fbank_load(plain, state, n, &err), LIN_MISMATCH, "");
        const float wrong[] = {NAN, 1e9F, -1};
        const size_t level = n - added;
        for (int f = 0; f < 4 && cuts[c] >= 400; f++)
            for (int w = 0; w < 3; w++) {
                memcpy(forged, state, n);
                memcpy(forged + level + (size_t)f * sizeof(float), &wrong[w], sizeof(float));
                if (f < 2 && w == 2) continue; // a level of -1 dB is one
                FAILS(lin_fbank_load(b, forged, n, &err), LIN_FORMAT, "");
            }
        const int32_t counts[] = {-1, 18};
        for (int w = 0; w < 8; w++) { // lines, the newest frame; frames and blocks until a solution
            memcpy(forged, state, n);
            memcpy(forged + level + (size_t)(4 + w / 2) * sizeof(float), &counts[w % 2], sizeof *counts);
            FAILS(lin_fbank_load(b, forged, n, &err), LIN_FORMAT, "");
        }
        for (int f = 0; f < 9; f++) { // the loudest frame, the number of them, the room; which frames are loud
            memcpy(forged, state, n);
            memcpy(forged + level + (size_t)(4 + 4 + f) * sizeof(float), &wrong[f % 3 == 1 ? 2 : 0], sizeof(float));
            FAILS(lin_fbank_load(b, forged, n, &err), LIN_FORMAT, "");
        }
        memcpy(forged, state, n);
        memcpy(forged + n - sizeof(float), wrong, sizeof(float));
        FAILS(lin_fbank_load(b, forged, n, &err), LIN_FORMAT, "impossible reverberation");
    }
    lin_fbank_destroy(a);
    lin_fbank_destroy(b);
    lin_fbank_destroy(plain);
    lin_free(want);
}
END_TEST

START_TEST(any_split_gives_the_same_bits)
{
    enum { N = 20011 };
    static float x[N];
    fill_tone(x, N, 16000, 440, 0.4, 0.1);
    lin_error why = {0};
    // Overlapping windows, windows end to end, and gaps between windows.
    const double hops_ms[] = {10, 25, 31, 10, 10};
    for (int c = 0; c < 5; c++) {
        lin_fbank_config config = lin_fbank_default();
        config.hop_ms = hops_ms[c];
        config.level_db = c == 3 ? 100 : 0;
        config.dereverb = c == 4;
        int T, D = config.mel_bins;
        float *expected = whole(&config, x, N, &T);
        ck_assert_int_eq(T, 1 + (N - 400) / (int)(hops_ms[c] * 16));
        lin_fbank *fbank;
        OK(lin_fbank_create(&config, &fbank, &err));
        float *frames = lin_alloc((size_t)T * (size_t)D, sizeof(float));
        const int most[] = {1, 3, 160, 399, 401, 5000};
        for (int m = 0; m < 6; m++) {
            lin_fbank_reset(fbank);
            memset(frames, 0xff, (size_t)T * (size_t)D * sizeof(float));
            int done = 0, got, failed = 0;
            unsigned long before = lin_memory_count();
            for (int at = 0, i = 0; at < N; i++) {
                int n = piece((uint64_t)m, (uint64_t)i, most[m], N - at), wanted = lin_fbank_frames_out(fbank, n);
                failed |= lin_fbank_push(fbank, x + at, n, frames + done * D, wanted, &got, &why) != LIN_OK || got != wanted;
                done += got;
                at += n;
            }
            ck_assert_int_eq(failed, 0);
            ck_assert_uint_eq(lin_memory_count(), before);
            ck_assert_int_eq(done, T);
            ck_assert_int_eq(memcmp(frames, expected, (size_t)T * (size_t)D * sizeof(float)), 0);
        }
        lin_fbank_destroy(fbank);
        lin_free(frames);
        lin_free(expected);
    }
}
END_TEST

START_TEST(too_small_changes_nothing)
{
    static float x[1200], out[4 * 40], again[4 * 40];
    fill_tone(x, 1200, 16000, 1000, 0.5, 0.1);
    lin_fbank_config config = lin_fbank_default();
    lin_fbank *fbank;
    int got = 99;
    OK(lin_fbank_create(&config, &fbank, &err));
    FAILS(lin_fbank_push(fbank, x, 560, out, 1, &got, &err), LIN_TOO_SMALL, "room for 1");
    ck_assert_int_eq(got, 0);
    OK(lin_fbank_push(fbank, x, 560, out, 2, &got, &err));
    ck_assert_int_eq(got, 2);
    lin_fbank_reset(fbank);
    OK(lin_fbank_push(fbank, x, 560, again, 2, &got, &err));
    ck_assert_int_eq(memcmp(out, again, 2 * 40 * sizeof(float)), 0);
    FAILS(lin_fbank_push(fbank, x, -1, out, 2, &got, &err), LIN_INVALID, "-1 samples");
    lin_fbank_destroy(fbank);
    lin_fbank_destroy(NULL);
}
END_TEST

// A reset in the middle of a gap between windows.
START_TEST(reset_forgets_a_gap)
{
    static float x[3000], first[2 * 40], again[2 * 40];
    fill_tone(x, 3000, 16000, 1000, 0.5, 0.1);
    lin_fbank_config config = lin_fbank_default();
    config.hop_ms = 60;
    lin_fbank *fbank;
    int got;
    OK(lin_fbank_create(&config, &fbank, &err));
    OK(lin_fbank_push(fbank, x, 1500, first, 2, &got, &err));
    ck_assert_int_eq(got, 2);
    lin_fbank_reset(fbank);
    ck_assert_int_eq(lin_fbank_frames_out(fbank, 1360), 2);
    OK(lin_fbank_push(fbank, x, 1360, again, 2, &got, &err));
    ck_assert_int_eq(got, 2);
    ck_assert_int_eq(memcmp(first, again, sizeof first), 0);
    lin_fbank_destroy(fbank);
}
END_TEST

START_TEST(edges)
{
    lin_fbank_config config = lin_fbank_default();
    static float x[16000];
    int T;
    // Digital silence is the logarithm of the float epsilon; the loudest square wave is finite.
    float *frames = whole(&config, x, 400, &T);
    ck_assert_int_eq(T, 1);
    for (int b = 0; b < 40; b++) ck_assert_float_eq(frames[b], logf(1.1920929e-07f));
    lin_free(frames);
    lin_free(whole(&config, x, 399, &T));
    ck_assert_int_eq(T, 0);
    lin_free(whole(&config, x, 0, &T));
    ck_assert_int_eq(T, 0);
    for (int i = 0; i < 16000; i++) x[i] = i / 50 % 2 ? 1e9f : -1e9f;
    frames = whole(&config, x, 16000, &T);
    int infinite = 0;
    for (int i = 0; i < T * 40; i++) infinite += !isfinite(frames[i]);
    ck_assert_int_eq(infinite, 0);
    lin_free(frames);
}
END_TEST

// The loudest samples that are accepted (LIN_AUDIO_LARGEST): the same features but for their level, and a state that is loaded.
START_TEST(dereverb_of_the_loudest_sound)
{
    enum { N = 32000 };
    static float x[N], loud[N], frames[200 * 40];
    static unsigned char state[200000];
    lin_fbank_config config = lin_fbank_default();
    lin_fbank *fbank;
    int T, got;
    config.dereverb = 1;
    for (int i = 0; i < N; i++) x[i] = i / 18 % 2 ? 1 : -1;
    for (int i = 0; i < N; i++) loud[i] = 0x1p30F * x[i];
    float *want = whole(&config, x, N, &T);
    OK(lin_fbank_create(&config, &fbank, &err));
    OK(lin_fbank_push(fbank, loud, N, frames, 200, &got, &err));
    ck_assert_int_eq(got, T);
    for (int i = 0; i < T * 40; i++) ck_assert_float_eq_tol(frames[i], want[i] + 60 * logf(2), 1e-3F);
    ck_assert(lin_fbank_state_bytes(fbank) <= sizeof state);
    lin_fbank_save(fbank, state);
    OK(lin_fbank_load(fbank, state, lin_fbank_state_bytes(fbank), &err));
    lin_fbank_destroy(fbank);
    lin_free(want);
}
END_TEST

START_TEST(configurations_out_of_range)
{
    lin_fbank *fbank;
#define REFUSED(field, value, text)                                                                                              \
    do {                                                                                                                         \
        lin_fbank_config config = lin_fbank_default();                                                                           \
        config.field = (value);                                                                                                  \
        FAILS(lin_fbank_create(&config, &fbank, &err), LIN_INVALID, text);                                           \
        ck_assert_ptr_null(fbank);                                                                                               \
    } while (0)
    REFUSED(sample_hz, 0, "sample_hz");
    REFUSED(sample_hz, 1000000000, "sample_hz");
    REFUSED(mel_bins, 0, "mel_bins");
    REFUSED(mel_bins, -3, "mel_bins");
    REFUSED(mel_bins, 400, "too many");
    REFUSED(window_ms, 0, "window_ms");
    REFUSED(window_ms, 1e9, "window_ms");
    REFUSED(window_ms, 0.06, "must be 2 to");
    REFUSED(hop_ms, 0.01, "less than a sample");
    REFUSED(hop_ms, (double)NAN, "hop_ms");
    REFUSED(low_hz, -1, "low_hz");
    REFUSED(low_hz, 8000, "low_hz");
    REFUSED(high_hz, 9000, "high_hz");
    REFUSED(high_hz, -8000, "high_hz");
    REFUSED(preemphasis, 1.5, "preemphasis");
#undef REFUSED
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    lin_fbank_config config = lin_fbank_default();
    lin_error why = {0};
    lin_fbank *fbank;
    FAIL_EVERY_ALLOCATION_OF(fbank, lin_fbank_create(&config, &fbank, &why), lin_fbank_destroy(fbank));
}
END_TEST

/* ---- the table of a backend ------------------------------------------------------------------------------------------------ */

START_TEST(the_table_describes_the_filterbank)
{
    enum { N = 3000, MOST = 40 };
    lin_fbank_config config = lin_fbank_default();
    lin_error why = {0};
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
    ck_assert(lin_fbank_create(&config, &fbank, &why) == LIN_OK);
    ck_assert(lin_fbank_table_create(&config, &table, &why) == LIN_OK);
    ck_assert_int_eq(table.window_samples, 400);
    ck_assert_int_eq(table.hop_samples, 160);
    ck_assert_int_eq(table.n_fft, 512);
    ck_assert(lin_fbank_push(fbank, sound, N, frames, MOST, &n, &why) == LIN_OK);
    ck_assert_int_eq(n, 1 + (N - 400) / 160);
    const lin_ops_f64 *ref = lin_ops_ref();
    lin_exec *exec;
    ck_assert(ref->exec_create(ref, 1, &exec, &why) == LIN_OK);
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

START_TEST(a_table_without_memory)
{
    lin_fbank_config config = lin_fbank_default();
    lin_fbank_table table;
    FAIL_EVERY_ALLOCATION_OF(table.window, lin_fbank_table_create(&config, &table, NULL), lin_fbank_table_free(&table));
    config.mel_bins = 0;
    ck_assert_int_eq(lin_fbank_table_create(&config, &table, NULL), LIN_INVALID);
}
END_TEST

/* ---- mean and variance ----------------------------------------------------------------------------------------------------- */

enum { T = 3000, D = 5 };

static float bins[T * D];

static void fill(void)
{
    for (int t = 0; t < T; t++)
        for (int d = 0; d < D; d++)
            bins[t * D + d] = (float)(1000.0 * d + (d + 1) * (lin_random_uniform(5, (uint64_t)(t * D + d)) - 0.5));
}

// Two passes, by the definition.
static void expected(float *mean, float *istd)
{
    for (int d = 0; d < D; d++) {
        double m = 0, v = 0;
        for (int t = 0; t < T; t++) m += (double)bins[t * D + d] / T;
        for (int t = 0; t < T; t++) v += ((double)bins[t * D + d] - m) * ((double)bins[t * D + d] - m) / T;
        mean[d] = (float)m;
        istd[d] = (float)(1 / sqrt(v));
    }
}

START_TEST(moments)
{
    float mean[D], istd[D], want_mean[D], want_istd[D];
    lin_moments *whole, *parts;
    fill();
    expected(want_mean, want_istd);
    OK(lin_moments_create(D, &whole, &err));
    lin_moments_add(whole, bins, T);
    OK(lin_moments_finish(whole, mean, istd, &err));
    ck_assert_uint_eq(lin_moments_count(whole), T);
    // In parts, with the same bits.
    float parts_mean[D], parts_istd[D];
    OK(lin_moments_create(D, &parts, &err));
    lin_moments_add(parts, bins, 1000);
    lin_moments_add(parts, bins + 1000 * D, 1);
    lin_moments_add(parts, bins + 1001 * D, T - 1001);
    OK(lin_moments_finish(parts, parts_mean, parts_istd, &err));
    test_same_f32("mean", parts_mean, mean, D);
    test_same_f32("istd", parts_istd, istd, D);
    for (int d = 0; d < D; d++) {
        ck_assert_float_eq_tol(mean[d], want_mean[d], 1e-7f * (1 + fabsf(want_mean[d])));
        ck_assert_float_eq_tol(istd[d], want_istd[d], 1e-5f * want_istd[d]);
    }
    // Applied, every bin has mean 0 and variance 1.
    lin_moments_apply(bins, T, D, mean, istd);
    for (int d = 0; d < D; d++) {
        double m = 0, v = 0;
        for (int t = 0; t < T; t++) m += (double)bins[t * D + d] / T, v += (double)bins[t * D + d] * (double)bins[t * D + d] / T;
        ck_assert_double_eq_tol(m, 0, 1e-3);
        ck_assert_double_eq_tol(v, 1, 1e-3);
    }
    lin_free(parts);
    lin_free(whole);
}
END_TEST

START_TEST(moments_of_bad_frames)
{
    float mean[2], istd[2], silence[6] = {-15.9f, 3, -15.9f, 3, -15.9f, 3}, nan[2] = {1, NAN};
    lin_moments *a;
    FAILS(lin_moments_create(0, &a, &err), LIN_INVALID, "0 bins");
    OK(lin_moments_create(2, &a, &err));
    FAILS(lin_moments_finish(a, mean, istd, &err), LIN_INVALID, "there are no frames");
    lin_moments_add(a, silence, 3);
    OK(lin_moments_finish(a, mean, istd, &err));
    ck_assert_float_eq(mean[0], -15.9f);
    ck_assert_float_eq(istd[0], (float)(1 / LIN_MOMENTS_SMALLEST_STD));
    lin_moments_add(a, nan, 1);
    FAILS(lin_moments_finish(a, mean, istd, &err), LIN_NUMERIC, "bin 1");
    lin_free(a);
}
END_TEST

START_TEST(moments_without_memory)
{
    lin_moments *a;
    FAIL_EVERY_ALLOCATION_OF(a, lin_moments_create(40, &a, NULL), lin_free(a));
}
END_TEST

TEST_MAIN("frontend/fbank", TEST(golden_values), TEST(golden_level), TEST(golden_dereverb), TEST(dereverb_takes_echoes_away),
          TEST(dereverb_forgets_tones), TEST(a_level_makes_features_independent_of_gain),
          TEST(level_and_room_are_saved_and_loaded), TEST(any_split_gives_the_same_bits), TEST(too_small_changes_nothing),
          TEST(reset_forgets_a_gap), TEST(edges), TEST(dereverb_of_the_loudest_sound), TEST(configurations_out_of_range),
          TEST(every_allocation_may_fail), TESTS(the_table_describes_the_filterbank, 0, 2), TEST(a_table_without_memory),
          TEST(moments), TEST(moments_of_bad_frames), TEST(moments_without_memory))
