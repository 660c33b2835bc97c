// container.c - a tool for the shell tests: sound in another container, whose header may be wrong.
//
//   container IN OUT FORMAT [half | unknown]
//
// FORMAT: wav, rifx, rf64, w64, aiff, au, caf, flac, ogg, opus, mp3. half: the header gives half of the samples that are
// there; unknown: it gives no length, as a program writes it to a pipe. Exit status 3: this libsndfile cannot write the format;
// 4: the format has no such header.

#include <sndfile.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_MPEG 0x230000
#define FORMAT_LAYER_3 0x0082
#define FORMAT_OPUS 0x0064

typedef struct container {
    const char *name;
    int format;
    const char *chunk; // with the length of the samples
    int at, bytes, big, extra; // of the length, after the chunk; a length in it that does not count samples
    int64_t unknown;
} container;

static const container containers[] = {
    {"wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, "data", 4, 4, 0, 0, 0xffffffff},
    {"rifx", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, "data", 4, 4, 1, 0, 0xffffffff},
    {"rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, "ds64", 16, 8, 0, 0, 0},
    {"w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, "data", 16, 8, 0, 24, -1},
    {"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, "SSND", 4, 4, 1, 8, 0},
    {"au", SF_FORMAT_AU | SF_FORMAT_PCM_16, ".snd", 8, 4, 1, 0, 0xffffffff},
    {"caf", SF_FORMAT_CAF | SF_FORMAT_PCM_16, "data", 4, 8, 1, 4, -1},
    {"flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, "fLaC", 22, 4, 1, 0, 0},
    {"ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, NULL, 0, 0, 0, 0, 0},
    {"opus", SF_FORMAT_OGG | FORMAT_OPUS, NULL, 0, 0, 0, 0, 0},
    {"mp3", FORMAT_MPEG | FORMAT_LAYER_3, NULL, 0, 0, 0, 0, 0},
};

static _Noreturn void fail(int status, const char *what)
{
    fprintf(stderr, "container: %s\n", what);
    exit(status);
}

static void convert(const char *in, const char *out, int format)
{
    SF_INFO info = {0};
    SNDFILE *from = sf_open(in, SFM_READ, &info);
    if (!from) fail(1, "cannot read the sound");
    SF_INFO made = {.samplerate = info.samplerate, .channels = info.channels, .format = format};
    if (!sf_format_check(&made)) fail(3, "this libsndfile cannot write it");
    SNDFILE *to = sf_open(out, SFM_WRITE, &made);
    if (!to) fail(3, sf_strerror(NULL));
    float block[4096];
    sf_count_t n;
    while ((n = sf_readf_float(from, block, 4096 / info.channels)) > 0)
        if (sf_writef_float(to, block, n) != n) fail(1, "cannot write the sound");
    sf_close(from);
    sf_close(to);
}

static int64_t get(const unsigned char *b, const container *c)
{
    uint64_t x = 0;
    for (int i = 0; i < c->bytes; i++) x = x << 8 | b[c->big ? i : c->bytes - 1 - i];
    return (int64_t)x;
}

static void put(unsigned char *b, const container *c, int64_t x)
{
    for (int i = 0; i < c->bytes; i++) b[c->big ? c->bytes - 1 - i : i] = (unsigned char)((uint64_t)x >> (8 * i));
}

static void change(const char *path, const container *c, const char *how)
{
    unsigned char head[8192];
    FILE *f = fopen(path, "r+b");
    if (!f) fail(1, path);
    const size_t n = fread(head, 1, sizeof head, f);
    for (size_t i = 0; i + 64 < n; i++) {
        if (memcmp(head + i, c->chunk, 4) != 0) continue;
        unsigned char *at = head + i + c->at;
        const int64_t length = get(at, c) - c->extra;
        put(at, c, strcmp(how, "half") == 0 ? c->extra + length / 4 * 2 : c->unknown);
        rewind(f);
        fwrite(head, 1, n, f);
        fclose(f);
        return;
    }
    fail(1, "no such chunk");
}

int main(int argc, char **argv)
{
    if (argc < 4) fail(2, "IN OUT FORMAT [half | unknown]");
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        if (strcmp(argv[3], containers[i].name) != 0) continue;
        if (argc > 4 && !containers[i].chunk) fail(4, "it has no such header");
        convert(argv[1], argv[2], containers[i].format);
        if (argc > 4) change(argv[2], &containers[i], argv[4]);
        return 0;
    }
    fail(2, "an unknown format");
}
