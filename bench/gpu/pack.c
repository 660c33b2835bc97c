// Compressed caches: about 5 MB per hour instead of 14.4, for machines rented by the minute. Features are rounded to half
// a unit of the natural logarithm, far less than they differ from frame to frame; each is predicted from the one before in time
// and from those one bin lower, and the differences are range-coded (Martin 1979; without carries, as Subbotin's), bin after
// bin, with the counts of each bin. For the program that packed, on a machine of the same kind: numbers are in its byte order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/gpu.h"
#include "base/memory.h"
#include "train/dataset.h"

#define STEP 0.5

enum { TOP = 24, LOW = 16, TOTAL_BITS = 14, TOTAL = 1 << TOTAL_BITS, SYMBOLS = 256, FAR = 0, TEXT = 8192 };
// Symbol s is the difference s - 128; FAR: the value follows in two bytes.

typedef struct coder {
    FILE *f;
    uint32_t low, range, code;
} coder;

typedef struct counts {
    uint16_t each[SYMBOLS];
    uint32_t below[SYMBOLS + 1];
} counts;

static void stop(const char *what)
{
    fprintf(stderr, "bench_gpu: %s\n", what);
    exit(1);
}

static void put(FILE *f, const void *bytes, size_t n)
{
    if (fwrite(bytes, 1, n, f) != n) stop("cannot write");
}

static void get(FILE *f, void *bytes, size_t n)
{
    if (fread(bytes, 1, n, f) != n) stop("the packed cache is cut");
}

static void put_text(FILE *f, const char *text) { put(f, text, strlen(text) + 1); }

static void get_text(FILE *f, char text[TEXT])
{
    for (int i = 0; i < TEXT; i++) {
        get(f, text + i, 1);
        if (!text[i]) return;
    }
    stop("the packed cache is damaged");
}

/* ---- coding ---------------------------------------------------------------------------------------------------------------- */

static void shift(coder *c, int decoding)
{
    while ((c->low ^ (c->low + c->range)) < 1u << TOP || c->range < 1u << LOW) {
        if ((c->low ^ (c->low + c->range)) >= 1u << TOP) c->range = -c->low & ((1u << LOW) - 1);
        if (decoding) c->code = c->code << 8 | (uint32_t)(getc(c->f) & 255);
        else putc((int)(c->low >> TOP), c->f);
        c->low <<= 8;
        c->range <<= 8;
    }
}

static void take(coder *c, uint32_t below, uint32_t count, int decoding)
{
    c->range >>= TOTAL_BITS;
    c->low += below * c->range;
    c->range *= count;
    shift(c, decoding);
}

static uint32_t at(const coder *c)
{
    const uint32_t x = (c->code - c->low) / (c->range >> TOTAL_BITS);
    return x < TOTAL ? x : TOTAL - 1;
}

static void put_byte(coder *c, unsigned byte) { take(c, byte * (TOTAL / 256), TOTAL / 256, 0); }

static unsigned get_byte(coder *c)
{
    const uint32_t byte = at(c) / (TOTAL / 256);
    take(c, byte * (TOTAL / 256), TOTAL / 256, 1);
    return byte;
}

static void add_up(counts *n)
{
    n->below[0] = 0;
    for (int s = 0; s < SYMBOLS; s++) n->below[s + 1] = n->below[s] + n->each[s];
}

// x [frames, D]: what is expected at frame t, bin d.
static int expected(const int16_t *x, size_t t, int d)
{
    const int16_t *here = x + t * D + d;
    const int before = t ? here[-D] : 0, lower = d ? here[-1] : 0, both = t && d ? here[-D - 1] : 0;
    return (167 * before + 154 * lower - 77 * both + 128) / 256;
}

static int symbol_of(const int16_t *x, size_t t, int d)
{
    const int difference = x[t * D + (size_t)d] - expected(x, t, d);
    return difference > -128 && difference < 128 ? difference + 128 : FAR;
}

static void pack_bin(FILE *f, const int16_t *x, size_t frames, int d)
{
    size_t seen[SYMBOLS] = {0};
    counts n;
    int most = 0, sum = 0;
    for (size_t t = 0; t < frames; t++) seen[symbol_of(x, t, d)]++;
    for (int s = 0; s < SYMBOLS; s++) {
        n.each[s] = (uint16_t)(1 + seen[s] * (TOTAL - SYMBOLS) / frames);
        sum += n.each[s];
        if (n.each[s] > n.each[most]) most = s;
    }
    n.each[most] = (uint16_t)(n.each[most] + TOTAL - sum);
    add_up(&n);
    put(f, n.each, sizeof n.each);
    coder c = {.f = f, .range = UINT32_MAX};
    for (size_t t = 0; t < frames; t++) {
        const int s = symbol_of(x, t, d);
        take(&c, n.below[s], n.each[s], 0);
        if (s != FAR) continue;
        put_byte(&c, (unsigned)x[t * D + (size_t)d] & 255);
        put_byte(&c, (unsigned)x[t * D + (size_t)d] >> 8 & 255);
    }
    for (int i = 0; i < 4; i++, c.low <<= 8) putc((int)(c.low >> TOP), f);
}

static void unpack_bin(FILE *f, int16_t *x, size_t frames, int d)
{
    static unsigned char symbols[TOTAL];
    counts n;
    get(f, n.each, sizeof n.each);
    add_up(&n);
    if (n.below[SYMBOLS] != TOTAL) stop("the packed cache is damaged");
    for (int s = 0; s < SYMBOLS; s++) memset(symbols + n.below[s], s, n.each[s]);
    coder c = {.f = f, .range = UINT32_MAX};
    for (int i = 0; i < 4; i++) c.code = c.code << 8 | (uint32_t)(getc(f) & 255);
    for (size_t t = 0; t < frames; t++) {
        const int s = symbols[at(&c)];
        take(&c, n.below[s], n.each[s], 1);
        int value = s - 128 + expected(x, t, d);
        if (s == FAR) {
            value = (int)get_byte(&c);
            value |= (int)get_byte(&c) << 8;
        }
        x[t * D + (size_t)d] = (int16_t)value;
    }
}

/* ---- the parts ------------------------------------------------------------------------------------------------------------- */

void gpu_part_pack(gpu_bench *b)
{
    lin_error err = {0};
    lin_dataset *set;
    if (!b->source || !b->file) stop("pack needs --source CACHE and --file FILE");
    gpu_must(lin_dataset_open(b->source, &set, &err), &err);
    if (set->D != D) stop("pack takes caches of 40 bins");
    const int n = set->count;
    const size_t frames = (size_t)set->total_frames;
    int16_t *x = lin_alloc(frames * D, sizeof *x);
    float *row = lin_alloc(frames * D, sizeof *row);
    FILE *f = fopen(b->file, "wb");
    if (!x || !row) gpu_must(lin_no_memory(&err, "features", frames * D * sizeof *row), &err);
    if (!f) stop("cannot make the file");
    put(f, &n, sizeof n);
    put(f, &frames, sizeof frames);
    put(f, &set->features, sizeof(lin_features));
    put_text(f, set->phones);
    put_text(f, set->source);
    size_t done = 0;
    for (int i = 0; i < n; i++) {
        const int T = set->utterances[i].frames, U = set->utterances[i].n_labels, *labels = set->utterances[i].labels;
        put_text(f, set->utterances[i].id);
        put_text(f, lin_dataset_speaker_name(set, set->utterances[i].speaker));
        put(f, &T, sizeof T);
        put(f, &U, sizeof U);
        put(f, labels, (size_t)U * sizeof *labels);
        lin_dataset_features(set, i, row);
        for (int j = 0; j < T * D; j++) x[done++] = (int16_t)lrint(row[j] / STEP);
    }
    for (int d = 0; d < D; d++) pack_bin(f, x, frames, d);
    if (fclose(f) != 0) stop("cannot write");
    lin_free(x);
    lin_free(row);
    lin_dataset_close(set);
}

typedef struct utterance {
    char *id, *speaker;
    int T, U, *labels;
} utterance;

void gpu_part_unpack(gpu_bench *b)
{
    lin_error err = {0};
    lin_features features;
    lin_dataset_writer *writer;
    char phones[TEXT], source[TEXT], id[TEXT], speaker[TEXT];
    int n;
    size_t frames;
    FILE *f = b->source && b->file ? fopen(b->source, "rb") : NULL;
    if (!f) stop("unpack needs --source FILE, as part pack writes it, and --file CACHE");
    get(f, &n, sizeof n);
    get(f, &frames, sizeof frames);
    get(f, &features, sizeof features);
    get_text(f, phones);
    get_text(f, source);
    utterance *u = n > 0 ? lin_calloc((size_t)n, sizeof *u) : NULL;
    int16_t *x = lin_alloc(frames * D, sizeof *x);
    float *row = lin_alloc(frames * D, sizeof *row);
    if (!u || !x || !row) gpu_must(lin_no_memory(&err, "features", frames * D * sizeof *row), &err);
    for (int i = 0; i < n; i++) {
        get_text(f, id);
        get_text(f, speaker);
        get(f, &u[i].T, sizeof u[i].T);
        get(f, &u[i].U, sizeof u[i].U);
        u[i].id = strdup(id);
        u[i].speaker = strdup(speaker);
        u[i].labels = lin_alloc((size_t)u[i].U + 1, sizeof *u[i].labels);
        if (!u[i].id || !u[i].speaker || !u[i].labels) gpu_must(lin_no_memory(&err, "labels", (size_t)u[i].U), &err);
        get(f, u[i].labels, (size_t)u[i].U * sizeof *u[i].labels);
    }
    for (int d = 0; d < D; d++) unpack_bin(f, x, frames, d);
    fclose(f);
    gpu_must(lin_dataset_create(b->file, D, &features, phones, source, &writer, &err), &err);
    size_t first = 0;
    for (int i = 0; i < n; i++) {
        const int count = u[i].T * D;
        for (int j = 0; j < count; j++) row[j] = (float)(x[first + (size_t)j] * STEP);
        gpu_must(lin_dataset_add(writer, u[i].id, u[i].speaker, row, u[i].T, u[i].labels, u[i].U, &err), &err);
        first += (size_t)count;
        free(u[i].id);
        free(u[i].speaker);
        lin_free(u[i].labels);
    }
    gpu_must(lin_dataset_finish(writer, &err), &err);
    lin_free(u);
    lin_free(x);
    lin_free(row);
}
