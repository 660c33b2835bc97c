// pcm.c - a tool for stand-ins: the sound of any file, as the discs of the corpora have it.
//
//   pcm IN OUT
//
// OUT: headerless s16le, 16 kHz, the first channel of IN. 16-bit samples at 16 kHz pass through unchanged; louder ones are
// clipped. Exit status: 1 if IN cannot be read, 3 if OUT cannot be written.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/audio.h"
#include "frontend/resample.h"

enum { BLOCK = 4096, RATE_HZ = 16000 };

static int fail(const lin_error *err)
{
    fprintf(stderr, "pcm: %s\n", err->message);
    return 1;
}

static int unwritten(const char *path)
{
    fprintf(stderr, "pcm: cannot write %s\n", path);
    return 3;
}

static void put(FILE *f, const float *samples, int n)
{
    for (int i = 0; i < n; i++) {
        const double scaled = fmin(fmax(rint((double)samples[i] * 32768), -32768), 32767);
        const unsigned code = (unsigned)(int)scaled & 0xFFFFu;
        fputc((int)(code & 255u), f);
        fputc((int)(code >> 8), f);
    }
}

int main(int argc, char **argv)
{
    lin_error err;
    lin_audio *audio;
    lin_resampler *resampler;
    if (argc != 3) return fputs("usage: pcm IN OUT\n", stderr), 2;
    if (lin_audio_open(argv[1], NULL, &audio, &err)) return fail(&err);
    const int channels = lin_audio_info(audio)->channels;
    if (lin_resampler_create(lin_audio_info(audio)->rate_hz, RATE_HZ, &resampler, &err)) return fail(&err);
    const int capacity = lin_resampler_most_out(resampler, BLOCK) + lin_resampler_most_out(resampler, 0);
    float *in = malloc(sizeof *in * BLOCK * (size_t)channels), *out = malloc(sizeof *out * (size_t)capacity);
    FILE *f = fopen(argv[2], "wb");
    if (!in || !out || !f) return unwritten(argv[2]);
    for (int n, n_out;;) {
        if (lin_audio_read(audio, in, BLOCK, &n, &err)) return fail(&err);
        for (int i = 0; i < n; i++) in[i] = in[i * channels];
        if (n == 0 ? lin_resampler_finish(resampler, out, capacity, &n_out, &err)
                   : lin_resampler_push(resampler, in, n, out, capacity, &n_out, &err))
            return fail(&err);
        put(f, out, n_out);
        if (n == 0) break;
    }
    if (ferror(f) | fclose(f)) return unwritten(argv[2]);
    free(in);
    free(out);
    lin_resampler_destroy(resampler);
    lin_audio_close(audio);
    return 0;
}
