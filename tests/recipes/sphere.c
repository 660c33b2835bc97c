// sphere.c - a tool for tests and stand-ins: writes NIST SPHERE files, as the LDC's corpora have them.
//
//   sphere IN OUT [KEY=VALUE]...
//
// IN: any sound that linnet reads. OUT has its first channel at 16 kHz: 16-bit samples at this rate as they are, louder ones
// clipped.
//   coding=shorten|pcm             default shorten
//   order=01|10                    bytes of a sample: 01 low byte first, 10 high byte first (default)
//   database= speaker= utterance=  database_id, speaker_id, utterance_id
//   damage=count|cut:BYTES         a wrong count, or only the first BYTES bytes of the file
// Exit status: 1 if IN cannot be read, 2 for wrong arguments, 3 if OUT cannot be written.
//
// Of shorten (T. Robinson, SHORTEN: simple lossless and near-lossless waveform compression, CUED/F-INFENG/TR.156, 1994) it uses
// version 2 with the differences of order 0 to 3. Numbers are Rice codes: `high` zeros, a one, and n low bits.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/audio.h"
#include "frontend/resample.h"

enum { UNREADABLE = 1, USAGE, UNWRITTEN }; // exit statuses
enum { RATE_HZ = 16000, BLOCK = 256, HEADER = 1024, WRAP = 3 }; // WRAP: samples before a block that its differences need
enum { QUIT = 4, BLOCKSIZE = 5, ZERO = 8 };    // functions; 0 to 3: the difference of this order

static struct {
    int shorten, big_endian, add_count;
    size_t cut;
    const char *database, *speaker, *utterance;
} o = {.shorten = 1, .big_endian = 1};

static void fail(int status, const char *what, const char *name)
{
    fprintf(stderr, "sphere: %s%s\n", what, name);
    exit(status);
}

static void *must(void *p)
{
    if (!p) fail(UNWRITTEN, "no memory", "");
    return p;
}

/* ---- bits ------------------------------------------------------------------------------------------------------------------ */

// Bytes with the first bit in the highest position; free_bits: of the last byte.
static struct {
    unsigned char *data;
    size_t n, capacity;
    int free_bits;
} out;

static void put_bits(uint32_t value, int n)
{
    while (n > 0) {
        if (out.free_bits == 0) {
            if (out.n == out.capacity) out.data = must(realloc(out.data, out.capacity = 2 * out.capacity + 4096));
            out.data[out.n++] = 0;
            out.free_bits = 8;
        }
        const int now = n < out.free_bits ? n : out.free_bits;
        const uint32_t part = value >> (n - now) & ((1u << now) - 1);
        out.free_bits -= now;
        out.data[out.n - 1] = (unsigned char)(out.data[out.n - 1] | part << out.free_bits);
        n -= now;
    }
}

static void put_text(const char *text)
{
    for (; *text; text++) put_bits((unsigned char)*text, 8);
}

static void put_uvar(uint32_t value, int n)
{
    uint32_t zeros = value >> n;
    for (; zeros >= 24; zeros -= 24) put_bits(0, 24);
    put_bits(1, (int)zeros + 1);
    put_bits(value, n);
}

static uint32_t folded(int32_t x) { return x < 0 ? ~((uint32_t)x << 1) : (uint32_t)x << 1; }

// A number that states its own n.
static void put_ulong(uint32_t value)
{
    int n = 0;
    while (n < 31 && value >> n) n++;
    put_uvar((uint32_t)n, 2);
    put_uvar(value, n);
}

/* ---- shorten --------------------------------------------------------------------------------------------------------------- */

// x[-WRAP .. n).
static void put_block(const int32_t *x, int n)
{
    int32_t residual[BLOCK], best[BLOCK];
    int64_t least = INT64_MAX;
    int function = 0, low_bits = 0, any = 0;
    for (int i = 0; i < n; i++) any |= x[i];
    if (!any) {
        put_uvar(ZERO, 2);
        return;
    }
    for (int f = 0; f <= 3; f++) {
        for (int i = 0; i < n; i++) {
            const int32_t *p = x + i;
            residual[i] = f == 0   ? p[0]
                          : f == 1 ? p[0] - p[-1]
                          : f == 2 ? p[0] - (2 * p[-1] - p[-2])
                                   : p[0] - (3 * (p[-1] - p[-2]) + p[-3]);
        }
        for (int k = 0; k < 22; k++) {
            int64_t cost = (int64_t)n * (k + 2);
            for (int i = 0; i < n; i++) cost += folded(residual[i]) >> (k + 1);
            if (cost >= least) continue;
            least = cost;
            function = f;
            low_bits = k;
            memcpy(best, residual, sizeof best);
        }
    }
    put_uvar((uint32_t)function, 2);
    put_uvar((uint32_t)low_bits, 3);
    for (int i = 0; i < n; i++) put_uvar(folded(best[i]), low_bits + 1);
}

static void put_shorten(const int16_t *samples, int64_t n)
{
    int32_t x[WRAP + BLOCK] = {0};
    put_text("ajkg\2");
    const size_t start = out.n;                                             // from here on, bits come in words
    const uint32_t header[] = {o.big_endian ? 3 : 5, 1, BLOCK, 0, 0, 0}; // type; one channel, no LPC, no means, no bytes
    for (int i = 0; i < 6; i++) put_ulong(header[i]);
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int now = n - at < BLOCK ? (int)(n - at) : BLOCK;
        if (now < BLOCK) {
            put_uvar(BLOCKSIZE, 2);
            put_ulong((uint32_t)now);
        }
        for (int i = 0; i < now; i++) x[WRAP + i] = samples[at + i];
        put_block(x + WRAP, now);
        memmove(x, x + now, WRAP * sizeof *x);
    }
    put_uvar(QUIT, 2);
    put_bits(0, out.free_bits);
    while ((out.n - start) % 4) put_bits(0, 8);
}

/* ---- SPHERE ---------------------------------------------------------------------------------------------------------------- */

static void put_string(const char *name, const char *value)
{
    char line[256];
    if (!value) return;
    snprintf(line, sizeof line, "%s -s%zu %s\n", name, strlen(value), value);
    put_text(line);
}

static void put_number(const char *name, int64_t value)
{
    char line[256];
    snprintf(line, sizeof line, "%s -i %lld\n", name, (long long)value);
    put_text(line);
}

static void put_header(const int16_t *samples, int64_t n)
{
    char line[64];
    unsigned checksum = 0;
    for (int64_t i = 0; i < n; i++) checksum += (unsigned)samples[i];
    snprintf(line, sizeof line, "NIST_1A\n%7d\n", HEADER);
    put_text(line);
    put_string("database_id", o.database);
    put_string("utterance_id", o.utterance);
    put_string("speaker_id", o.speaker);
    put_number("channel_count", 1);
    put_number("sample_rate", RATE_HZ);
    put_number("sample_count", n + o.add_count);
    put_number("sample_checksum", checksum & 0xffff);
    put_number("sample_n_bytes", 2);
    put_number("sample_sig_bits", 16);
    put_string("sample_byte_format", o.big_endian ? "10" : "01");
    put_string("sample_coding", o.shorten ? "pcm,embedded-shorten-v2.00" : "pcm");
    put_text("end_head\n");
    while (out.n < HEADER) put_text(" ");
}

/* ---- the program ----------------------------------------------------------------------------------------------------------- */

static int16_t *read_sound(const char *path, int64_t *n)
{
    lin_error err;
    lin_audio *audio;
    lin_resampler *resampler;
    if (lin_audio_open(path, NULL, &audio, &err)) fail(UNREADABLE, err.message, "");
    const int channels = lin_audio_info(audio)->channels;
    if (lin_resampler_create(lin_audio_info(audio)->rate_hz, RATE_HZ, &resampler, &err)) fail(UNREADABLE, err.message, "");
    float *in = must(malloc(sizeof *in * BLOCK * (size_t)channels)), *at_rate = NULL;
    int16_t *samples = NULL;
    *n = 0;
    for (int got = 1, made; got;) {
        if (lin_audio_read(audio, in, BLOCK, &got, &err)) fail(UNREADABLE, err.message, "");
        for (int i = 0; i < got; i++) in[i] = in[i * channels];
        const int room = lin_resampler_most_out(resampler, got);
        at_rate = must(realloc(at_rate, sizeof *at_rate * (size_t)(room + 1)));
        if (got ? lin_resampler_push(resampler, in, got, at_rate, room, &made, &err)
                : lin_resampler_finish(resampler, at_rate, room, &made, &err))
            fail(UNREADABLE, err.message, "");
        samples = must(realloc(samples, (size_t)(*n + made + 1) * sizeof *samples));
        for (int i = 0; i < made; i++)
            samples[(*n)++] = (int16_t)fmin(fmax(rint((double)at_rate[i] * 32768), -32768), 32767);
    }
    free(in);
    free(at_rate);
    lin_resampler_destroy(resampler);
    lin_audio_close(audio);
    return samples;
}

static int set(const char *option)
{
    const char *v = strchr(option, '=');
    const size_t n = v ? (size_t)(++v - option) : 0;
    const struct {
        const char *name, **text;
    } known[] = {{"database=", &o.database}, {"speaker=", &o.speaker}, {"utterance=", &o.utterance}};
    for (size_t i = 0; v && i < sizeof known / sizeof *known; i++)
        if (strncmp(option, known[i].name, n) == 0) return *known[i].text = v, 1;
    if (strcmp(option, "order=01") == 0) return o.big_endian = 0, 1;
    if (strcmp(option, "coding=pcm") == 0) return o.shorten = 0, 1;
    if (strcmp(option, "damage=count") == 0) return o.add_count = 1;
    if (strncmp(option, "damage=cut:", 11) == 0) return o.cut = (size_t)atol(option + 11), 1;
    return strcmp(option, "order=10") == 0 || strcmp(option, "coding=shorten") == 0;
}

int main(int argc, char **argv)
{
    int64_t n;
    if (argc < 3) fail(USAGE, "needs two names: sphere IN OUT [KEY=VALUE]...", "");
    for (int i = 3; i < argc; i++)
        if (!set(argv[i])) fail(USAGE, "does not know the option ", argv[i]);
    int16_t *samples = read_sound(argv[1], &n);
    put_header(samples, n);
    if (o.shorten) put_shorten(samples, n);
    for (int64_t i = 0; !o.shorten && i < n; i++) {
        const uint32_t value = (uint16_t)samples[i];
        put_bits(o.big_endian ? value : (value & 255) << 8 | value >> 8, 16);
    }
    if (o.cut && o.cut < out.n) out.n = o.cut;
    FILE *f = fopen(argv[2], "wb");
    if (!f || fwrite(out.data, 1, out.n, f) != out.n || fclose(f) != 0) fail(UNWRITTEN, "cannot write ", argv[2]);
    free(out.data);
    free(samples);
    return 0;
}
