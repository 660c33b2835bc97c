/*
 * bench_fbank.c - microseconds of processor time per frame of the log-mel filterbanks, best of seven.
 *
 *   build/release/bench/bench_fbank [seconds of audio, default 60]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/system.h"
#include "frontend/fbank.h"

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    if (seconds < 1 || seconds > 3600) {
        fprintf(stderr, "bench_fbank: 1 to 3600 seconds\n");
        return 2;
    }
    lin_fbank_config config = lin_fbank_default();
    lin_error err = {0};
    lin_fbank *fbank;
    if (lin_fbank_create(&config, &fbank, &err) != LIN_OK) {
        fprintf(stderr, "bench_fbank: %s\n", err.message);
        return 1;
    }
    int n = seconds * 16000, n_frames = lin_fbank_frames_out(fbank, n);
    float *samples = lin_alloc((size_t)n, sizeof(float));
    float *frames = lin_alloc((size_t)n_frames * 40, sizeof(float));
    if (!samples || !frames) return 1;
    unsigned noise = 1;
    for (int i = 0; i < n; i++) {
        noise = noise * 1664525u + 1013904223u;
        samples[i] = 0.3f * sinf(0.05f * (float)i) + 1e-10f * (float)(int)noise;
    }
    double best = 1e9, sum = 0;
    for (int repeat = 0; repeat < 7; repeat++) {
        int done = 0;
        lin_fbank_reset(fbank);
        double start = lin_now_cpu();
        for (int at = 0; at < n; at += 640) { // 40 ms pieces, as a live stream
            int got;
            lin_fbank_push(fbank, samples + at, n - at < 640 ? n - at : 640, frames + (size_t)done * 40, n_frames - done, &got,
                           NULL);
            done += got;
        }
        double took = lin_now_cpu() - start;
        if (took < best) best = took;
        sum += (double)frames[done];
    }
    printf("fbank\t%d frames\t%.3f us/frame\t%.0f x real time\t(checksum %.3f)\n", n_frames, 1e6 * best / n_frames,
           seconds / best, sum);
    lin_free(samples);
    lin_free(frames);
    lin_fbank_destroy(fbank);
    return 0;
}
