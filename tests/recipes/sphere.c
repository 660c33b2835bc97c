// sphere.c - a tool for tests and stand-ins: writes NIST SPHERE files, as the LDC's corpora have them.
//
//   sphere IN OUT [KEY=VALUE]...
//
// IN: a WAV file of 16-bit samples, or headerless s16le. OUT has the same samples.
//   coding=shorten|pcm             default shorten
//   order=01|10                    bytes of a sample: 01 low byte first, 10 high byte first (default)
//   rate=HZ channels=N             of headerless samples; default 16000, 1
//   database= speaker= utterance=  database_id, speaker_id, utterance_id
//   damage=count|cut:BYTES         a wrong count, or only the first BYTES bytes of the file
//
// Of shorten (T. Robinson, SHORTEN: simple lossless and near-lossless waveform compression, CUED/F-INFENG/TR.156, 1994) it uses
// version 2 with the differences of order 0 to 3. Numbers are Rice codes: `high` zeros, a one, and n low bits.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, HEADER = 1024, WRAP = 3 }; // WRAP: samples before a block that its differences need
enum { QUIT = 4, BLOCKSIZE = 5, ZERO = 8 };    // functions; 0 to 3: the difference of this order

static struct {
    int rate_hz, channels, shorten, big_endian, add_count;
    size_t cut;
    const char *database, *speaker, *utterance;
} o = {.rate_hz = 16000, .channels = 1, .shorten = 1, .big_endian = 1};

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "sphere: %s %s\n", what, name);
    exit(1);
}

static void *must(void *p)
{
    if (!p) fail("no memory", "");
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
    int32_t(*x)[WRAP + BLOCK] = must(calloc((size_t)o.channels, sizeof *x));
    put_text("ajkg\2");
    const size_t start = out.n;                                                             // from here on, bits come in words
    const uint32_t header[] = {o.big_endian ? 3 : 5, (uint32_t)o.channels, BLOCK, 0, 0, 0}; // type; no LPC, no means, no bytes
    for (int i = 0; i < 6; i++) put_ulong(header[i]);
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int now = n - at < BLOCK ? (int)(n - at) : BLOCK;
        if (now < BLOCK) {
            put_uvar(BLOCKSIZE, 2);
            put_ulong((uint32_t)now);
        }
        for (int k = 0; k < o.channels; k++) {
            for (int i = 0; i < now; i++) x[k][WRAP + i] = samples[(at + i) * o.channels + k];
            put_block(x[k] + WRAP, now);
            memmove(x[k], x[k] + now, WRAP * sizeof **x);
        }
    }
    put_uvar(QUIT, 2);
    put_bits(0, out.free_bits);
    while ((out.n - start) % 4) put_bits(0, 8);
    free(x);
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
    for (int64_t i = 0; i < n * o.channels; i++) checksum += (unsigned)samples[i];
    snprintf(line, sizeof line, "NIST_1A\n%7d\n", HEADER);
    put_text(line);
    put_string("database_id", o.database);
    put_string("utterance_id", o.utterance);
    put_string("speaker_id", o.speaker);
    put_number("channel_count", o.channels);
    put_number("sample_rate", o.rate_hz);
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

static unsigned char *load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) fail("cannot read", path);
    *n = (size_t)ftell(f);
    unsigned char *bytes = must(malloc(*n + 1));
    rewind(f);
    if (fread(bytes, 1, *n, f) != *n) fail("cannot read", path);
    fclose(f);
    return bytes;
}

static unsigned little(const unsigned char *b, int n)
{
    unsigned value = 0;
    while (n-- > 0) value = value << 8 | b[n];
    return value;
}

// The samples of a WAV file: their offset and number of bytes. Leaves headerless samples as they are.
static void find_wav(const char *path, const unsigned char *b, size_t size, size_t *begin, size_t *n)
{
    *begin = 0;
    *n = size;
    if (size < 12 || memcmp(b, "RIFF", 4) != 0 || memcmp(b + 8, "WAVE", 4) != 0) return;
    for (size_t at = 12; at + 8 <= size;) {
        const size_t length = little(b + at + 4, 4), rest = size - at - 8;
        if (memcmp(b + at, "fmt ", 4) == 0 && rest >= 16) {
            if (little(b + at + 22, 2) != 16) fail("not 16-bit samples:", path);
            o.channels = (int)little(b + at + 10, 2);
            o.rate_hz = (int)little(b + at + 12, 4);
        } else if (memcmp(b + at, "data", 4) == 0) {
            *begin = at + 8;
            *n = length < rest ? length : rest;
            return;
        }
        if (length > rest) break;
        at += 8 + length + (length & 1);
    }
    fail("no samples in", path);
}

static int set(const char *option)
{
    const char *v = strchr(option, '=');
    const size_t n = v ? (size_t)(++v - option) : 0;
    const struct {
        const char *name, **text;
        int *number;
    } known[] = {{"database=", &o.database, NULL},
                 {"speaker=", &o.speaker, NULL},
                 {"utterance=", &o.utterance, NULL},
                 {"rate=", NULL, &o.rate_hz},
                 {"channels=", NULL, &o.channels}};
    for (size_t i = 0; v && i < sizeof known / sizeof *known; i++) {
        if (strncmp(option, known[i].name, n) != 0) continue;
        if (known[i].text) *known[i].text = v;
        else *known[i].number = atoi(v);
        return 1;
    }
    if (strcmp(option, "order=01") == 0) return o.big_endian = 0, 1;
    if (strcmp(option, "coding=pcm") == 0) return o.shorten = 0, 1;
    if (strcmp(option, "damage=count") == 0) return o.add_count = 1;
    if (strncmp(option, "damage=cut:", 11) == 0) return o.cut = (size_t)atol(option + 11), 1;
    return strcmp(option, "order=10") == 0 || strcmp(option, "coding=shorten") == 0;
}

int main(int argc, char **argv)
{
    size_t size, begin, n_bytes;
    if (argc < 3) fail("needs two names:", "sphere IN OUT [KEY=VALUE]...");
    for (int i = 3; i < argc; i++)
        if (!set(argv[i])) fail("does not know the option", argv[i]);
    unsigned char *b = load(argv[1], &size);
    find_wav(argv[1], b, size, &begin, &n_bytes);
    if (o.channels < 1) fail("no channels for", argv[2]);
    const size_t n = n_bytes / 2;
    int16_t *samples = must(malloc(n * sizeof *samples + 1));
    for (size_t i = 0; i < n; i++) {
        const int code = (int)little(b + begin + 2 * i, 2);
        samples[i] = (int16_t)(code < 32768 ? code : code - 65536);
    }
    const int64_t frames = (int64_t)n / o.channels;
    put_header(samples, frames);
    if (o.shorten) put_shorten(samples, frames);
    for (int64_t i = 0; !o.shorten && i < frames * o.channels; i++) {
        const uint32_t value = (uint16_t)samples[i];
        put_bits(o.big_endian ? value : (value & 255) << 8 | value >> 8, 16);
    }
    if (o.cut && o.cut < out.n) out.n = o.cut;
    FILE *f = fopen(argv[2], "wb");
    if (!f || fwrite(out.data, 1, out.n, f) != out.n || fclose(f) != 0) fail("cannot write", argv[2]);
    free(out.data);
    free(samples);
    free(b);
    return 0;
}
