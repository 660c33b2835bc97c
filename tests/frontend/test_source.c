// Sound to features: every rate and channel layout, pushed and pulled, any split, speed, bad input, failing allocations.
#include "frontend/source.h"

#include <pthread.h>

#include "tests/frontend/support.h"

enum { D = 40 };

static const int rates[] = {4000, 8000, 11025, 16000, 22050, 44100, 48000, 96000, 192000};

enum { N_RATES = sizeof rates / sizeof rates[0] };

static const char *write_wav(const char *name, int rate, int channels, const float *x, int n)
{
    return write_sound(name, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, channels, x, n);
}

static lin_status open_source(const char *path, const lin_pcm_format *raw, const lin_feature_options *o, lin_source **s,
                              lin_error *why)
{
    lin_audio *audio;
    *s = NULL;
    LIN_TRY(lin_audio_open(path, raw, &audio, why));
    return lin_source_from_audio(audio, o, s, why);
}

// All frames of a file, [lanes, T, D] without gaps, read `most` at a time at most; the caller frees them.
static float *read_file(const char *path, const lin_pcm_format *raw, const lin_feature_options *o, int most, int *T, int *lanes,
                        char *warning)
{
    lin_error why = {0};
    lin_source *s;
    OK(open_source(path, raw, o, &s, &err));
    int L = lin_source_lanes(s), capacity = 4000, n, failed = 0;
    ck_assert_int_eq(lin_source_bins(s), D);
    float *all = lin_calloc((size_t)(L * capacity) * D, sizeof(float)),
          *block = lin_calloc((size_t)(L * most) * D, sizeof(float));
    *T = 0;
    for (uint64_t i = 0;; i++) {
        int ask = 1 + (int)lin_random_below(31, i, (uint32_t)most);
        failed = lin_source_read(s, block, ask, &n, &why) != LIN_OK;
        if (failed || n == 0 || *T + n > capacity) break;
        for (int l = 0; l < L; l++) memcpy(all + (l * capacity + *T) * D, block + l * ask * D, (size_t)n * D * sizeof(float));
        *T += n;
    }
    ck_assert_msg(!failed, "%s", why.message);
    ck_assert_int_eq(n, 0);
    ck_assert_int_eq(lin_source_read(s, block, most, &n, &why), LIN_OK);
    ck_assert_int_eq(n, 0);
    for (int l = 1; l < L; l++) memmove(all + l * *T * D, all + l * capacity * D, (size_t)*T * D * sizeof(float));
    if (lin_source_duration(s) >= 0) ck_assert_double_eq_tol(lin_source_seconds(s), lin_source_duration(s), 1e-9);
    if (warning) strcpy(warning, lin_source_info(s)->warning);
    if (lanes) *lanes = L;
    lin_source_close(s);
    lin_free(block);
    return all;
}

// The mean over the frames in the middle of one bin, and the bin that is largest there.
static double level_of(const float *frames, int T, int *loudest)
{
    double best = -1e9;
    for (int d = 0; d < D; d++) {
        double sum = 0;
        for (int t = T / 4; t < 3 * T / 4; t++) sum += (double)frames[t * D + d] / (3 * T / 4 - T / 4);
        if (sum > best) best = sum, *loudest = d;
    }
    return best;
}

// The same tone at any rate gives the same level in the same bin.
START_TEST(tone_at_every_rate)
{
    static float x[192000];
    int rate = rates[_i], T, bin;
    lin_feature_options o = lin_feature_options_default();
    const double tones[] = {300, 1000, 1600};
    const int bins[] = {4, 13, 18}; // of 40 from 20 to 8000 Hz: round(41 (mel(hz) - mel(20)) / (mel(8000) - mel(20))) - 1
    for (int k = 0; k < 3; k++) {
        double levels[2];
        const int both[] = {16000, rate};
        for (int b = 0; b < 2; b++) {
            fill_tone(x, both[b], both[b], tones[k], 0.25, 0);
            float *frames = read_file(write_wav("tone.wav", both[b], 1, x, both[b]), NULL, &o, 300, &T, NULL, NULL);
            ck_assert_int_eq(T, 98);
            levels[b] = level_of(frames, T, &bin);
            ck_assert_msg(bin == bins[k], "%d Hz: a tone of %g Hz is in bin %d", both[b], tones[k], bin);
            lin_free(frames);
        }
        // 0.1 dB is 0.023 in the natural logarithm of the power.
        ck_assert_msg(fabs(levels[1] - levels[0]) < 0.0023, "%d Hz: %g Hz is at %g instead of %g", rate, tones[k], levels[1],
                      levels[0]);
    }
}
END_TEST

START_TEST(pushed_and_pulled_are_the_same_bits)
{
    int rate = rates[_i], n = rate / 2 + 77, channels = 1 + _i % 3, T, L;
    float *x = lin_alloc((size_t)(n * channels), sizeof(float)), *frames = lin_alloc(2000 * D, sizeof(float));
    fill_tone(x, n * channels, rate * channels, 500, 0.3, 0.3);
    lin_feature_options o = lin_feature_options_default();
    o.fbank.high_hz = 5500;
    const char *path = write_wav("x.wav", rate, channels, x, n);
    float *pulled = read_file(path, NULL, &o, 7, &T, &L, NULL);
    ck_assert_int_eq(L, 1);
    ck_assert_int_eq(T, 1 + ((int)round(n * 16000.0 / rate) - 400) / 160);
    lin_error why = {0};
    lin_extractor *f;
    OK(lin_extractor_create(rate, channels, &o, &f, &err));
    const int most[] = {1, 50, 1000, 100000};
    for (int m = 0; m < 4; m++) {
        int done = 0, got, failed = 0;
        OK(lin_extractor_reset(f, &err));
        unsigned long before = lin_memory_count();
        for (int at = 0, i = 0; at < n && !failed; i++) {
            int take = piece((uint64_t)m, (uint64_t)i, most[m], n - at), room = lin_extractor_most_out(f, take);
            failed = lin_extractor_push(f, x + at * channels, take, frames + done * D, room, &got, &why) != LIN_OK || got > room;
            done += got;
            at += take;
        }
        ck_assert_msg(!failed, "%s", why.message);
        OK(lin_extractor_finish(f, frames + done * D, lin_extractor_most_out(f, 0), &got, &err));
        ck_assert_uint_eq(lin_memory_count(), before);
        ck_assert_int_eq(done + got, T);
        ck_assert_msg(memcmp(frames, pulled, (size_t)T * D * sizeof(float)) == 0, "%d Hz in pieces of up to %d", rate, most[m]);
    }
    lin_extractor_destroy(f);
    lin_free(pulled);
    lin_free(frames);
    lin_free(x);
}
END_TEST

START_TEST(channels)
{
    // Eight channels, each with a different tone; channel 3 is silent.
    enum { N = 8000, C = 8 };
    static float x[N * C], one[N], mixed[N];
    for (int c = 0; c < C; c++) {
        fill_tone(one, N, 44100, 300 + 200 * c, c == 3 ? 0 : 0.1 * (c + 1), c == 3 ? 0 : 0.01);
        for (int i = 0; i < N; i++) x[i * C + c] = one[i];
    }
    for (int i = 0; i < N; i++) {
        for (int c = 0; c < C; c++) mixed[i] += x[i * C + c];
        mixed[i] /= C;
    }
    char path[192];
    strcpy(path, write_wav("eight.wav", 44100, C, x, N));
    lin_feature_options each = lin_feature_options_default(), chosen = each, mix = each;
    each.channel = LIN_CHANNEL_EACH;
    int T, T1, L;
    float *lanes = read_file(path, NULL, &each, 5, &T, &L, NULL);
    ck_assert_int_eq(L, C);
    for (int c = 0; c < C; c++) {
        chosen.channel = c;
        float *alone = read_file(path, NULL, &chosen, 100, &T1, &L, NULL);
        ck_assert_int_eq(L, 1);
        ck_assert_int_eq(T1, T);
        ck_assert_int_eq(memcmp(alone, lanes + c * T * D, (size_t)T * D * sizeof(float)), 0);
        lin_free(alone);
        // And each gives the result of a mono file.
        for (int i = 0; i < N; i++) one[i] = x[i * C + c];
        alone = read_file(write_wav("one.wav", 44100, 1, one, N), NULL, &mix, 100, &T1, &L, NULL);
        ck_assert_int_eq(T1, T);
        ck_assert_int_eq(memcmp(alone, lanes + c * T * D, (size_t)T * D * sizeof(float)), 0);
        if (c == 3)
            for (int i = 0; i < T * D; i += 11) ck_assert_float_eq(alone[i], logf(1.1920929e-07f));
        lin_free(alone);
    }
    float *all = read_file(path, NULL, &mix, 100, &T1, &L, NULL);
    float *want = read_file(write_wav("mixed.wav", 44100, 1, mixed, N), NULL, &mix, 100, &T1, &L, NULL);
    ck_assert_int_eq(memcmp(all, want, (size_t)T * D * sizeof(float)), 0);
    lin_free(all);
    lin_free(want);
    lin_free(lanes);
    chosen.channel = 8;
    lin_source *s;
    FAILS(open_source(path, NULL, &chosen, &s, &err), LIN_INVALID, "channel 9 (from 1) is requested, but the sound has 8");
    ck_assert_ptr_null(s);
    chosen.channel = -3;
    FAILS(open_source(path, NULL, &chosen, &s, &err), LIN_INVALID, "channel");
}
END_TEST

// Faster by a factor: shorter and higher by it, at the same level.
START_TEST(speed)
{
    static float x[32000];
    lin_feature_options o = lin_feature_options_default();
    const double speeds[] = {0.9, 1.1, 0.5, 2};
    for (int k = 0; k < 4; k++) {
        int T, T1, bin, bin1;
        fill_tone(x, 32000, 16000, 1000, 0.25, 0);
        o.speed = speeds[k];
        float *fast = read_file(write_wav("s.wav", 16000, 1, x, 32000), NULL, &o, 300, &T, NULL, NULL);
        fill_tone(x, 32000, 16000, 1000 * speeds[k], 0.25, 0);
        o.speed = 1;
        float *want = read_file(write_wav("s.wav", 16000, 1, x, 32000), NULL, &o, 300, &T1, NULL, NULL);
        ck_assert_int_le(abs(T - (int)(2 * 100 / speeds[k])), 3);
        double level = level_of(fast, T, &bin), level1 = level_of(want, T1, &bin1);
        ck_assert_int_eq(bin, bin1);
        ck_assert_msg(fabs(level - level1) < 0.0023, "speed %g: %g instead of %g", speeds[k], level, level1);
        lin_free(fast);
        lin_free(want);
    }
    lin_extractor *f;
    o.speed = (double)NAN;
    FAILS(lin_extractor_create(16000, 1, &o, &f, &err), LIN_INVALID, "speed");
    ck_assert_ptr_null(f);
}
END_TEST

static void *trickle(void *context)
{
    // 1 s of 8 kHz mu-law, 40 ms at a time, with nothing lost.
    const int *fd = context;
    unsigned char bytes[320];
    for (int i = 0; i < 25; i++) {
        for (int k = 0; k < 320; k++) bytes[k] = (unsigned char)lin_random_bits(8, (uint64_t)(i * 320 + k));
        if (write(*fd, bytes, sizeof bytes) != sizeof bytes) return NULL;
        usleep(1000);
    }
    close(*fd);
    return NULL;
}

START_TEST(live_pipe)
{
    static unsigned char bytes[8000];
    for (int i = 0; i < 8000; i++) bytes[i] = (unsigned char)lin_random_bits(8, (uint64_t)i);
    lin_pcm_format raw = {.rate_hz = 8000, .channels = 1, .encoding = LIN_PCM_MULAW};
    lin_feature_options o = lin_feature_options_default();
    int T, L, fds[2], done = 0, reads = 0, n;
    float *want = read_file(test_file("x.raw", bytes, sizeof bytes), &raw, &o, 64, &T, &L, NULL);
    ck_assert_int_eq(pipe(fds), 0);
    lin_error why = {0};
    lin_audio *a;
    lin_source *s;
    pthread_t thread;
    static float frames[200 * D];
    ck_assert_int_eq(pthread_create(&thread, NULL, trickle, &fds[1]), 0);
    OK(lin_audio_open_fd(fds[0], 0, "a pipe", &raw, &a, &err));
    OK(lin_source_from_audio(a, &o, &s, &err));
    ck_assert_double_lt(lin_source_duration(s), 0);
    while (lin_source_read(s, frames + done * D, 200 - done, &n, &why) == LIN_OK && n > 0) done += n, reads++;
    ck_assert_double_eq(lin_source_seconds(s), 1);
    lin_source_close(s);
    pthread_join(thread, NULL);
    close(fds[0]);
    ck_assert_int_eq(done, T);
    ck_assert_int_gt(reads, 3); // frames are returned before the end
    ck_assert_int_eq(memcmp(frames, want, (size_t)T * D * sizeof(float)), 0);
    lin_free(want);
}
END_TEST

START_TEST(short_and_bad_sound)
{
    static float x[2000];
    lin_feature_options o = lin_feature_options_default();
    char warning[256];
    int T;
    fill_tone(x, 2000, 16000, 500, 0.5, 0);
    lin_free(read_file(write_wav("short.wav", 16000, 1, x, 399), NULL, &o, 10, &T, NULL, warning));
    ck_assert_int_eq(T, 0);
    HAS(warning, "less than a window of 25 ms");
    lin_free(read_file(write_wav("short.wav", 16000, 1, x, 400), NULL, &o, 10, &T, NULL, warning));
    ck_assert_int_eq(T, 1);
    ck_assert_str_eq(warning, "");
    lin_source *s;
    int n;
    float *frames = lin_alloc(200 * D, sizeof(float));
    x[1500] = NAN;
    OK(open_source(write_wav("nan.wav", 16000, 1, x, 2000), NULL, &o, &s, &err));
    FAILS(lin_source_read(s, frames, 0, &n, &err), LIN_INVALID, "room for 0");
    FAILS(lin_source_read(s, frames, 200, &n, &err), LIN_NUMERIC, "sample 1500");
    ck_assert_int_eq(n, 0);
    lin_source_close(s);
    lin_source_close(NULL);
    lin_extractor *f;
    OK(lin_extractor_create(16000, 2, &o, &f, &err));
    FAILS(lin_extractor_push(f, x, 1000, frames, 200, &n, &err), LIN_NUMERIC, "sample 750 of channel 1 is nan");
    FAILS(lin_extractor_push(f, x, 700, frames, 1, &n, &err), LIN_TOO_SMALL, "room for 1");
    FAILS(lin_extractor_push(f, x, -1, frames, 1, &n, &err), LIN_INVALID, "-1");
    OK(lin_extractor_push(f, x, 700, frames, 2, &n, &err));
    OK(lin_extractor_finish(f, frames, 0, &n, &err));
    FAILS(lin_extractor_push(f, x, 10, frames, 200, &n, &err), LIN_INVALID, "after the end");
    lin_extractor_destroy(f);
    lin_extractor_destroy(NULL);
    FAILS(lin_extractor_create(1000, 1, &o, &f, &err), LIN_UNSUPPORTED, "1000 Hz");
    FAILS(lin_extractor_create(16000, 0, &o, &f, &err), LIN_UNSUPPORTED, "0 channels");
    o.fbank.mel_bins = 0;
    FAILS(lin_extractor_create(16000, 1, &o, &f, &err), LIN_INVALID, "mel_bins");
    lin_free(frames);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    static float x[2 * 2000], frames[2 * 100 * D];
    fill_tone(x, 4000, 22050, 500, 0.5, 0);
    const char *path = write_wav("k.wav", 22050, 2, x, 2000);
    lin_feature_options o = lin_feature_options_default();
    o.channel = LIN_CHANNEL_EACH;
    lin_source *s;
    FAIL_EVERY_ALLOCATION_OF(s, open_source(path, NULL, &o, &s, NULL), lin_source_close(s));
    OK(open_source(path, NULL, &o, &s, &err));
    const unsigned long before = lin_memory_count();
    for (int n = 1; n > 0;) OK(lin_source_read(s, frames, 100, &n, &err));
    ck_assert_uint_eq(lin_memory_count(), before);
    lin_source_close(s);
}
END_TEST

TEST_MAIN("frontend/source", TESTS(tone_at_every_rate, 0, N_RATES),
          TESTS(pushed_and_pulled_are_the_same_bits, 0, N_RATES), TEST(channels), TEST(speed), TEST(live_pipe),
          TEST(short_and_bad_sound), TEST(every_allocation_may_fail))
