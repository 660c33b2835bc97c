// sphere.c - a tool for tests and stand-ins: writes NIST SPHERE files, as the LDC's corpora have them.
//
//   sphere IN OUT [KEY=VALUE]...
//
// IN: a WAV file of 16-bit samples, or headerless s16le. OUT has the samples of IN without loss (except coding=ulaw, drop_bits).
//   coding=shorten|pcm|ulaw|ulaw-shorten   default shorten
//   order=01|10                    bytes of a sample: 01 low byte first, 10 high byte first (default)
//   rate=HZ channels=N             of headerless samples; default 16000, 1
//   database= speaker= utterance=  database_id, speaker_id, utterance_id
//   header=BYTES                   default 1024
//   version=1|2|3                  of shorten; default 2
//   function=diff0|diff1|diff2|diff3|qlpc  in all blocks; default: the shortest. Silent blocks are ZERO
//   block=N other_block=N          frames; with other_block every third block is of that size; default 256
//   mean=N lpc=N                   blocks in the mean, default 4; largest order of QLPC, default 0, as NIST's
//                                own encoder has it, and 4 for function=qlpc
//   verbatim=TEXT                  a VERBATIM function before the sound
//   drop_bits=N                    clears the N low bits of each sample, so that BITSHIFT is used
//   checks=no                      no sample_count and sample_checksum
//   damage=checksum|count|cut:BYTES  a wrong checksum, a wrong count, or only the first BYTES bytes of the file

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/frontend/shorten_encoder.h"

typedef struct settings {
    sphere_options sphere;
    int drop_bits;
    size_t cut;
} settings;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "sphere: %s %s\n", what, name);
    exit(1);
}

static unsigned char *load(const char *path, size_t *n)
{
    size_t capacity = 1 << 20;
    unsigned char *bytes = malloc(capacity);
    FILE *f = fopen(path, "rb");
    if (!f || !bytes) fail("cannot read", path);
    *n = 0;
    for (size_t got; (got = fread(bytes + *n, 1, capacity - *n, f)) > 0;) {
        *n += got;
        if (*n < capacity) continue;
        capacity *= 2;
        bytes = realloc(bytes, capacity);
        if (!bytes) fail("no memory for", path);
    }
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
static void find_wav(const char *path, const unsigned char *b, size_t size, sphere_options *o, size_t *begin, size_t *n)
{
    *begin = 0;
    *n = size;
    if (size < 12 || memcmp(b, "RIFF", 4) != 0 || memcmp(b + 8, "WAVE", 4) != 0) return;
    for (size_t at = 12; at + 8 <= size;) {
        const size_t length = little(b + at + 4, 4), rest = size - at - 8;
        if (memcmp(b + at, "fmt ", 4) == 0 && rest >= 16) {
            if (little(b + at + 22, 2) != 16) fail("not 16-bit samples:", path);
            o->channels = (int)little(b + at + 10, 2);
            o->rate_hz = (int)little(b + at + 12, 4);
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

static int is(const char *option, const char *name, const char **value)
{
    const size_t n = strlen(name);
    *value = option + n;
    return strncmp(option, name, n) == 0;
}

static int set_number(settings *s, const char *option)
{
    const struct {
        const char *name;
        int *to;
    } numbers[] = {{"rate=", &s->sphere.rate_hz},          {"channels=", &s->sphere.channels},
                   {"header=", &s->sphere.header},         {"version=", &s->sphere.pack.version},
                   {"block=", &s->sphere.pack.block},      {"other_block=", &s->sphere.pack.other_block},
                   {"mean=", &s->sphere.pack.mean_blocks}, {"lpc=", &s->sphere.pack.lpc_order},
                   {"drop_bits=", &s->drop_bits}};
    const char *v;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (is(option, numbers[i].name, &v)) return *numbers[i].to = atoi(v), 1;
    return 0;
}

static int set_damage(settings *s, const char *v)
{
    if (strcmp(v, "checksum") == 0) s->sphere.add_checksum = 1;
    else if (strcmp(v, "count") == 0) s->sphere.add_count = 1;
    else if (strncmp(v, "cut:", 4) == 0) s->cut = (size_t)atol(v + 4);
    else return 0;
    return 1;
}

static int set_function(shorten_options *o, const char *v)
{
    if (strcmp(v, "qlpc") == 0) o->function = SHORTEN_QLPC;
    else if (strncmp(v, "diff", 4) == 0 && v[4] >= '0' && v[4] <= '3' && !v[5]) o->function = v[4] - '0';
    else return 0;
    return 1;
}

static int set(settings *s, const char *option)
{
    sphere_options *o = &s->sphere;
    const char *v;
    if (set_number(s, option)) return 1;
    if (is(option, "database=", &v)) return o->database = v, 1;
    if (is(option, "speaker=", &v)) return o->speaker = v, 1;
    if (is(option, "utterance=", &v)) return o->utterance = v, 1;
    if (is(option, "order=", &v)) return o->big_endian = strcmp(v, "10") == 0, o->big_endian || strcmp(v, "01") == 0;
    if (is(option, "checks=", &v)) return o->no_checks = strcmp(v, "no") == 0, 1;
    if (is(option, "damage=", &v)) return set_damage(s, v);
    if (is(option, "function=", &v)) return set_function(&o->pack, v);
    if (is(option, "verbatim=", &v)) return o->pack.verbatim = v, o->pack.n_verbatim = strlen(v), 1;
    if (!is(option, "coding=", &v)) return 0;
    o->shorten = strstr(v, "shorten") != NULL;
    o->ulaw = strncmp(v, "ulaw", 4) == 0;
    return o->shorten || o->ulaw || strcmp(v, "pcm") == 0;
}

int main(int argc, char **argv)
{
    settings s = {.sphere = sphere_options_default()};
    s.sphere.big_endian = 1;
    s.sphere.pack.lpc_order = 0;
    if (argc < 3) fail("needs two names:", "sphere IN OUT [KEY=VALUE]...");
    for (int i = 3; i < argc; i++)
        if (!set(&s, argv[i])) fail("does not know the option", argv[i]);
    if (s.sphere.pack.function == SHORTEN_QLPC && s.sphere.pack.lpc_order == 0) s.sphere.pack.lpc_order = 4;
    size_t size, begin, n_bytes;
    unsigned char *b = load(argv[1], &size);
    find_wav(argv[1], b, size, &s.sphere, &begin, &n_bytes);
    const shorten_options *p = &s.sphere.pack;
    if (s.sphere.channels < 1 || p->block < 1 || p->other_block < 0 || p->other_block > p->block || p->mean_blocks < 0 ||
        p->lpc_order < 0 || p->lpc_order > 32 || p->version < 1 || p->version > 3 || s.drop_bits < 0 || s.drop_bits > 15)
        fail("an option is out of range for", argv[2]);
    const size_t n = n_bytes / 2;
    int16_t *samples = malloc(n * sizeof *samples + 1);
    if (!samples) fail("no memory for", argv[1]);
    for (size_t i = 0; i < n; i++) {
        const unsigned code = little(b + begin + 2 * i, 2) & ~((1u << s.drop_bits) - 1);
        samples[i] = (int16_t)(code < 32768 ? (int)code : (int)code - 65536);
        if (s.sphere.ulaw) samples[i] = (int16_t)ulaw_code(samples[i]);
    }
    bits out = {0};
    sphere_encode(&out, samples, (int64_t)n / s.sphere.channels, &s.sphere);
    if (s.cut && s.cut < out.n) out.n = s.cut;
    FILE *f = fopen(argv[2], "wb");
    if (!f || fwrite(out.data, 1, out.n, f) != out.n || fclose(f) != 0) fail("cannot write", argv[2]);
    free(out.data);
    free(samples);
    free(b);
    return 0;
}
