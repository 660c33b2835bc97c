/*
 * bench_fbank.c - microseconds of processor time per frame of the log-mel filterbanks, without and with dereverberation, best of
 * seven.
 *
 *   build/release/bench/bench_fbank
 */
#include <math.h>
#include <stdio.h>

#include "base/system.h"
#include "frontend/fbank.h"

enum { SECONDS = 60, SAMPLES = SECONDS * 16000 };

static int measure(const char *name, int dereverb, const float *samples)
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
    double best = 1e9, sum = 0;
    int done = 0;
    for (int repeat = 0; repeat < 7; repeat++) {
        done = 0;
        lin_fbank_reset(fbank);
        const double start = lin_now_cpu();
        for (int at = 0; at < SAMPLES; at += 640) { // 40 ms pieces, as a live stream
            int got;
            lin_fbank_push(fbank, samples + at, 640, frames, MOST, &got, NULL);
            done += got;
        }
        const double took = lin_now_cpu() - start;
        if (took < best) best = took;
        sum += (double)frames[0];
    }
    printf("%s\t%d frames\t%.3f us/frame\t%.0f x real time\t(checksum %.3f)\n", name, done, 1e6 * best / done, SECONDS / best,
           sum);
    lin_fbank_destroy(fbank);
    return 0;
}

int main(void)
{
    static float samples[SAMPLES];
    unsigned noise = 1;
    for (int i = 0; i < SAMPLES; i++) {
        noise = noise * 1664525u + 1013904223u;
        samples[i] = 0.3f * sinf(0.05f * (float)i) + 1e-10f * (float)(int)noise;
    }
    return measure("fbank", 0, samples) || measure("dereverb", 1, samples);
}
