// sound.c - a tool for the shell tests: writes synthetic sounds, so that no corpus is needed.
//
//   sound OUT [rate=16000] [channels=1] [seconds=1] [seed=1] [format=s16|f32|raw|au] [bad=nan|inf]
//
// The sound is a sequence of vowel-like tones (a buzz through two moving resonances) with noise between them; each channel has its
// own.
// format=raw: s16le without a header. format=au: an AU file of 32-bit floats, as ffmpeg writes it to a pipe. bad: the middle
// sample of an f32 file is NaN or infinite.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sound {
    unsigned rate, channels, seed;
    double seconds;
    const char *format, *bad;
} sound;

static void put(FILE *f, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) fputc((int)(value >> (8 * i) & 255u), f);
}

static void put_big(FILE *f, uint32_t value)
{
    for (int i = 3; i >= 0; i--) fputc((int)(value >> (8 * i) & 255u), f);
}

static void header(FILE *f, const sound *s, uint32_t frames)
{
    uint32_t width = strcmp(s->format, "f32") == 0 ? 4 : 2, bytes = frames * s->channels * width;
    fwrite("RIFF", 1, 4, f);
    put(f, 36 + bytes, 4);
    fwrite("WAVEfmt ", 1, 8, f);
    put(f, 16, 4);
    put(f, width == 4 ? 3 : 1, 2); // IEEE float, or PCM
    put(f, s->channels, 2);
    put(f, s->rate, 4);
    put(f, s->rate * s->channels * width, 4);
    put(f, s->channels * width, 2);
    put(f, 8 * width, 2);
    fwrite("data", 1, 4, f);
    put(f, bytes, 4);
}

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / 8388608.0 - 1;
}

int main(int argc, char **argv)
{
    sound s = {16000, 1, 1, 1, "s16", ""};
    for (int i = 2; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (!value++) return 2;
        if (strncmp(argv[i], "rate=", 5) == 0) s.rate = (unsigned)atoi(value);
        if (strncmp(argv[i], "channels=", 9) == 0) s.channels = (unsigned)atoi(value);
        if (strncmp(argv[i], "seed=", 5) == 0) s.seed = (unsigned)atoi(value);
        if (strncmp(argv[i], "seconds=", 8) == 0) s.seconds = atof(value);
        if (strncmp(argv[i], "format=", 7) == 0) s.format = value;
        if (strncmp(argv[i], "bad=", 4) == 0) s.bad = value;
    }
    FILE *f = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!f) return 1;
    uint32_t frames = (uint32_t)(s.seconds * s.rate);
    const int is_au = strcmp(s.format, "au") == 0;
    if (is_au) {
        const uint32_t words[7] = {0x2e736e64, 28, 0xffffffff, 6, s.rate, s.channels, 0};
        for (int i = 0; i < 7; i++) put_big(f, words[i]);
    } else if (strcmp(s.format, "raw") != 0) {
        header(f, &s, frames);
    }
    uint64_t state = s.seed;
    for (uint32_t t = 0; t < frames; t++) {
        for (unsigned c = 0; c < s.channels; c++) {
            double at = (double)t / s.rate, buzz = 0;
            int part = (int)(at * 8) * 7 + (int)c * 3 + (int)s.seed; // a new vowel every 125 ms
            double f1 = 300 + 90 * (part % 6), f2 = 900 + 230 * (part % 7), pitch = 110 + 10 * (double)(part % 5);
            for (int h = 1; h * pitch < 3500 && h * pitch < s.rate / 2.0; h++) {
                double hz = h * pitch, a = exp(-pow((hz - f1) / 120, 2)) + 0.6 * exp(-pow((hz - f2) / 160, 2)) + 0.01;
                buzz += a * sin(6.283185307179586 * hz * at);
            }
            double x = 0.12 * buzz * (part % 4 != 0) + 0.01 * noise(&state);
            x = x > 0.99 ? 0.99 : x < -0.99 ? -0.99 : x;
            if (strcmp(s.format, "f32") == 0) {
                float v = (float)x;
                if (*s.bad && t == frames / 2 && c == 0) v = strcmp(s.bad, "nan") == 0 ? NAN : INFINITY;
                uint32_t bits;
                memcpy(&bits, &v, 4);
                put(f, bits, 4);
            } else if (is_au) {
                float v = (float)lrint(x * 32767) / 32768; // the samples of format=s16
                uint32_t bits;
                memcpy(&bits, &v, 4);
                put_big(f, bits);
            } else {
                put(f, (uint32_t)(int32_t)lrint(x * 32767), 2);
            }
        }
    }
    return fclose(f) != 0;
}
