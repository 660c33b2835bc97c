/*
 * bench_fbank.c - microseconds of processor time per frame of the log-mel filterbanks, without and with dereverberation, best of
 * seven.
 *
 *   build/release/bench/bench_fbank [seconds of audio, default 60]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/fbank.h"

static int measure(const char *name, int dereverb, const float *samples, int seconds)
{
    enum { D = 40, MOST = 8 };
    lin_fbank_config config = lin_fbank_default();
    lin_error err = {0};
    lin_fbank *fbank;
    float frames[MOST * D];
    config.high_hz = 5500; // as the shipped models
    config.dereverb = dereverb;
    if (lin_fbank_create(&config, &fbank, &err) != LIN_OK) {
        fprintf(stderr, "bench_fbank: %s\n", err.message);
        return 1;
    }
    const int n = seconds * 16000;
    double best = 1e9, sum = 0;
    int done = 0;
    for (int repeat = 0; repeat < 7; repeat++) {
        done = 0;
        lin_fbank_reset(fbank);
        const double start = lin_now_cpu();
        for (int at = 0; at < n; at += 640) { // 40 ms pieces, as a live stream
            int got;
            lin_fbank_push(fbank, samples + at, n - at < 640 ? n - at : 640, frames, MOST, &got, NULL);
            done += got;
        }
        const double took = lin_now_cpu() - start;
        if (took < best) best = took;
        sum += (double)frames[0];
    }
    printf("%s\t%d frames\t%.3f us/frame\t%.0f x real time\t(checksum %.3f)\n", name, done, 1e6 * best / done, seconds / best,
           sum);
    lin_fbank_destroy(fbank);
    return 0;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    if (seconds < 1 || seconds > 3600) {
        fprintf(stderr, "bench_fbank: 1 to 3600 seconds\n");
        return 2;
    }
    const int n = seconds * 16000;
    float *samples = lin_alloc((size_t)n, sizeof(float));
    if (!samples) return 1;
    unsigned noise = 1;
    for (int i = 0; i < n; i++) {
        noise = noise * 1664525u + 1013904223u;
        samples[i] = 0.3f * sinf(0.05f * (float)i) + 1e-10f * (float)(int)noise;
    }
    const int failed = measure("fbank", 0, samples, seconds) || measure("dereverb", 1, samples, seconds);
    lin_free(samples);
    return failed;
}
