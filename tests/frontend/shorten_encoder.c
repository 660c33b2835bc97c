// shorten_encoder.c - bits, Rice codes, predictors of shorten, and the header of SPHERE; see shorten_encoder.h.

#include "tests/frontend/shorten_encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bits and numbers ------------------------------------------------------------------------------------------------------ */

static void *must(void *p)
{
    if (!p) abort();
    return p;
}

static void put_byte(bits *out, unsigned byte)
{
    if (out->n == out->capacity) {
        out->capacity = out->capacity ? 2 * out->capacity : 4096;
        out->data = must(realloc(out->data, out->capacity));
    }
    out->data[out->n++] = (unsigned char)byte;
}

void bits_put(bits *out, uint32_t value, int n)
{
    while (n > 0) {
        if (out->free_bits == 0) {
            put_byte(out, 0);
            out->free_bits = 8;
        }
        const int now = n < out->free_bits ? n : out->free_bits;
        const uint32_t part = value >> (n - now) & ((1u << now) - 1);
        out->free_bits -= now;
        out->data[out->n - 1] = (unsigned char)(out->data[out->n - 1] | part << out->free_bits);
        n -= now;
    }
}

void bits_put_uvar(bits *out, uint32_t value, int n)
{
    uint32_t zeros = n < 32 ? value >> n : 0;
    for (; zeros >= 24; zeros -= 24) bits_put(out, 0, 24);
    bits_put(out, 1, (int)zeros + 1);
    bits_put(out, value, n);
}

void bits_put_var(bits *out, int32_t value, int n)
{
    bits_put_uvar(out, value < 0 ? ~((uint32_t)value << 1) : (uint32_t)value << 1, n + 1);
}

void bits_put_ulong(bits *out, uint32_t value)
{
    int n = 0;
    while (n < 31 && value >> n) n++;
    bits_put_uvar(out, (uint32_t)n, 2);
    bits_put_uvar(out, value, n);
}

void bits_put_bytes(bits *out, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) bits_put(out, ((const unsigned char *)bytes)[i], 8);
}

void bits_align(bits *out, size_t start)
{
    bits_put(out, 0, out->free_bits);
    while ((out->n - start) % 4) put_byte(out, 0);
}

/* ---- one block of one channel ---------------------------------------------------------------------------------------------- */

enum { MOST_LPC = 32, LPC_BITS = 5 };

typedef struct channel {
    int32_t *x;     // [wrap + block], x[wrap] is the first of the block; before it the last samples
    int64_t *means; // [mean_blocks], the newest last
} channel;

typedef struct coder {
    const shorten_options *o;
    int wrap;
    int32_t *residual, *best; // [block]
    channel *channels;
    int shift;
} coder;

// The offset that the decoder adds, from the means of the last blocks.
static int32_t mean_offset(const coder *c, const channel *k)
{
    const int n = c->o->mean_blocks, old = c->o->version < 2;
    int64_t sum = old ? 0 : n / 2;
    if (n == 0) return 0;
    for (int i = 0; i < n; i++) sum += k->means[i];
    sum /= n;
    return (int32_t)(old || c->shift == 0 ? sum : (sum >> (c->shift - 1)) >> 1);
}

static void keep_mean(const coder *c, const channel *k, int n)
{
    const int old = c->o->version < 2;
    int64_t sum = old ? 0 : n / 2;
    if (c->o->mean_blocks == 0) return;
    for (int i = 0; i < n; i++) sum += k->x[c->wrap + i];
    sum /= n;
    memmove(k->means, k->means + 1, (size_t)(c->o->mean_blocks - 1) * sizeof *k->means);
    k->means[c->o->mean_blocks - 1] = old ? sum : sum * (1 << c->shift);
}

static void differences(const int32_t *x, int n, int order, int32_t offset, int32_t *residual)
{
    for (int i = 0; i < n; i++) {
        const int32_t *p = x + i;
        residual[i] = order == 0   ? p[0] - offset
                      : order == 1 ? p[0] - p[-1]
                      : order == 2 ? p[0] - (2 * p[-1] - p[-2])
                                   : p[0] - (3 * (p[-1] - p[-2]) + p[-3]);
    }
}

// Levinson's recursion on the autocorrelation of the block; coefficients in units of 1/32, within 7 bits.
static void find_lpc(const int32_t *x, int n, int order, int32_t offset, int32_t *q)
{
    double r[MOST_LPC + 1] = {0}, a[MOST_LPC + 1] = {0}, old[MOST_LPC + 1];
    for (int lag = 0; lag <= order; lag++)
        for (int i = lag; i < n; i++) r[lag] += (double)(x[i] - offset) * (x[i - lag] - offset);
    double error = r[0] * (1 + 1e-9) + 1e-9;
    for (int m = 1; m <= order; m++) {
        double sum = r[m];
        for (int j = 1; j < m; j++) sum -= a[j] * r[m - j];
        const double reflection = sum / error;
        memcpy(old, a, sizeof a);
        a[m] = reflection;
        for (int j = 1; j < m; j++) a[j] = old[j] - reflection * old[m - j];
        error = fmax(error * (1 - reflection * reflection), 1e-9);
    }
    for (int j = 0; j < order; j++) q[j] = (int32_t)lrint(fmax(-127, fmin(127, a[j + 1] * (1 << LPC_BITS))));
}

static void lpc_residual(const int32_t *x, int n, int order, const int32_t *q, int32_t offset, int old, int32_t *residual)
{
    for (int i = 0; i < n; i++) {
        int32_t sum = old ? 0 : 1 << LPC_BITS;
        for (int j = 0; j < order; j++) sum += q[j] * (x[i - j - 1] - offset);
        residual[i] = x[i] - offset - (sum >> LPC_BITS);
    }
}

// The number of low bits that makes the residual shortest, and the bits it then takes.
static int find_energy(const int32_t *residual, int n, int64_t *cost)
{
    int best = 0;
    *cost = INT64_MAX;
    for (int k = 0; k < 22; k++) {
        int64_t sum = (int64_t)n * (k + 2);
        for (int i = 0; i < n; i++)
            sum += (residual[i] < 0 ? ~((uint32_t)residual[i] << 1) : (uint32_t)residual[i] << 1) >> (k + 1);
        if (sum < *cost) {
            *cost = sum;
            best = k;
        }
    }
    return best;
}

static void put_block(bits *out, coder *c, channel *k, int n)
{
    const shorten_options *o = c->o;
    const int32_t *x = k->x + c->wrap, offset = mean_offset(c, k);
    int32_t q[MOST_LPC] = {0};
    int64_t cost, least = INT64_MAX;
    int function = 0, energy = 0, all_zero = 1;
    for (int i = 0; i < n; i++) all_zero &= x[i] == 0;
    if (all_zero) {
        bits_put_uvar(out, SHORTEN_ZERO, 2);
        return;
    }
    for (int f = SHORTEN_DIFF0; f <= SHORTEN_QLPC; f = f == SHORTEN_DIFF3 ? SHORTEN_QLPC : f + 1) {
        if ((o->function >= 0 && o->function != f) || (f == SHORTEN_QLPC && o->lpc_order == 0)) continue;
        if (f == SHORTEN_QLPC) {
            find_lpc(x, n, o->lpc_order, offset, q);
            lpc_residual(x, n, o->lpc_order, q, offset, o->version < 2, c->residual);
        } else {
            differences(x, n, f, offset, c->residual);
        }
        const int with = find_energy(c->residual, n, &cost);
        if (cost >= least) continue;
        least = cost;
        function = f;
        energy = with;
        memcpy(c->best, c->residual, (size_t)n * sizeof *c->best);
    }
    bits_put_uvar(out, (uint32_t)function, 2);
    bits_put_uvar(out, (uint32_t)energy, 3);
    if (function == SHORTEN_QLPC) {
        bits_put_uvar(out, (uint32_t)o->lpc_order, 2);
        for (int j = 0; j < o->lpc_order; j++) bits_put_var(out, q[j], LPC_BITS);
        // A decoder leaves the offset subtracted from the samples before the block, which matters if a block is shorter than the
        // order.
        for (int j = 1; j <= o->lpc_order; j++) k->x[c->wrap - j] -= offset;
    }
    for (int i = 0; i < n; i++) bits_put_var(out, c->best[i], energy);
}

/* ---- a stream -------------------------------------------------------------------------------------------------------------- */

shorten_options shorten_options_default(void)
{
    return (shorten_options){
        .version = 2, .type = SHORTEN_S16HL, .channels = 1, .block = 256, .mean_blocks = 4, .lpc_order = 4, .function = -1};
}

// Low bits that are zero in all samples of the block.
static int common_shift(const int32_t *x, int n)
{
    uint32_t any = 0;
    int shift = 0;
    for (int i = 0; i < n; i++) any |= (uint32_t)x[i];
    while (any && !(any >> shift & 1)) shift++;
    return shift;
}

static void put_header(bits *out, const shorten_options *o)
{
    bits_put_bytes(out, "ajkg", 4);
    bits_put(out, (uint32_t)o->version, 8);
    bits_put_ulong(out, (uint32_t)o->type);
    bits_put_ulong(out, (uint32_t)o->channels);
    bits_put_ulong(out, (uint32_t)o->block);
    bits_put_ulong(out, (uint32_t)o->lpc_order);
    bits_put_ulong(out, (uint32_t)o->mean_blocks);
    bits_put_ulong(out, 0); // bytes to skip
    if (!o->n_verbatim) return;
    bits_put_uvar(out, SHORTEN_VERBATIM, 2);
    bits_put_uvar(out, (uint32_t)o->n_verbatim, 5);
    for (size_t i = 0; i < o->n_verbatim; i++) bits_put_uvar(out, (unsigned char)o->verbatim[i], 8);
}

static int32_t mapped(int type, int sample)
{
    if (type != SHORTEN_AU2) return sample;
    return sample >= 128 ? 255 - sample : sample - 128; // in the order of the values that the codes stand for
}

void shorten_encode(bits *out, const int16_t *samples, int64_t n, const shorten_options *o)
{
    const int channels = o->channels;
    coder c = {.o = o, .wrap = o->lpc_order > 3 ? o->lpc_order : 3};
    c.residual = must(calloc(2 * (size_t)o->block, sizeof *c.residual));
    c.best = c.residual + o->block;
    c.channels = must(calloc((size_t)channels, sizeof *c.channels));
    for (int k = 0; k < channels; k++) {
        c.channels[k].x = must(calloc((size_t)(c.wrap + o->block), sizeof *c.channels[k].x));
        c.channels[k].means = must(calloc((size_t)o->mean_blocks + 1, sizeof *c.channels[k].means));
    }
    const size_t start = out->n + 5; // the bits after the signature and the version come in words
    put_header(out, o);
    int block = o->block, number = 0;
    for (int64_t at = 0; at < n; number++) {
        int now = o->other_block && number % 3 == 2 ? o->other_block : o->block;
        if (now > n - at) now = (int)(n - at);
        if (now != block) {
            bits_put_uvar(out, SHORTEN_BLOCKSIZE, 2);
            bits_put_ulong(out, (uint32_t)now);
            block = now;
        }
        for (int k = 0; k < channels; k++) {
            int32_t *x = c.channels[k].x + c.wrap;
            for (int i = 0; i < now; i++) x[i] = mapped(o->type, samples[(at + i) * channels + k]);
            const int shift = o->type == SHORTEN_AU2 ? 0 : common_shift(x, now);
            if (shift != c.shift) {
                bits_put_uvar(out, SHORTEN_BITSHIFT, 2);
                bits_put_uvar(out, (uint32_t)shift, 2);
                c.shift = shift;
            }
            for (int i = 0; i < now; i++) x[i] >>= shift;
            put_block(out, &c, &c.channels[k], now);
            keep_mean(&c, &c.channels[k], now);
            memmove(c.channels[k].x, c.channels[k].x + now, (size_t)c.wrap * sizeof *x);
        }
        at += now;
    }
    bits_put_uvar(out, SHORTEN_QUIT, 2);
    bits_align(out, start);
    for (int k = 0; k < channels; k++) {
        free(c.channels[k].x);
        free(c.channels[k].means);
    }
    free(c.channels);
    free(c.residual);
}

/* ---- SPHERE ---------------------------------------------------------------------------------------------------------------- */

int ulaw_code(int sample)
{
    const int negative = sample < 0;
    int magnitude = (negative ? -sample : sample) + 132, exponent = 7;
    if (magnitude > 32767) magnitude = 32767;
    while (exponent > 0 && magnitude < 128 << exponent) exponent--;
    return 255 - (negative << 7 | exponent << 4 | (magnitude >> (exponent + 3) & 15));
}

sphere_options sphere_options_default(void)
{
    return (sphere_options){.rate_hz = 16000, .channels = 1, .shorten = 1, .header = 1024, .pack = shorten_options_default()};
}

static void add_text(bits *out, const char *name, const char *value)
{
    char line[256];
    if (!value) return;
    const int n = snprintf(line, sizeof line, "%s -s%zu %s\n", name, strlen(value), value);
    bits_put_bytes(out, line, (size_t)n);
}

static void add_number(bits *out, const char *name, int64_t value)
{
    char line[256];
    const int n = snprintf(line, sizeof line, "%s -i %lld\n", name, (long long)value);
    bits_put_bytes(out, line, (size_t)n);
}

static void put_sphere_header(bits *out, const sphere_options *o, int64_t n, unsigned checksum, int lowest, int highest)
{
    const size_t start = out->n;
    char line[64];
    snprintf(line, sizeof line, "NIST_1A\n%7d\n", o->header);
    bits_put_bytes(out, line, strlen(line));
    add_text(out, "database_id", o->database);
    add_text(out, "utterance_id", o->utterance);
    add_text(out, "speaker_id", o->speaker);
    add_number(out, "channel_count", o->channels);
    add_number(out, "sample_rate", o->rate_hz);
    if (!o->no_checks) {
        add_number(out, "sample_count", n + o->add_count);
        add_number(out, "sample_checksum", (checksum + (unsigned)o->add_checksum) & 0xffff);
        add_number(out, "sample_min", lowest);
        add_number(out, "sample_max", highest);
    }
    add_number(out, "sample_n_bytes", o->ulaw ? 1 : 2);
    add_number(out, "sample_sig_bits", o->ulaw ? 8 : 16);
    if (!o->ulaw) add_text(out, "sample_byte_format", o->big_endian ? "10" : "01");
    else add_text(out, "sample_byte_format", "1");
    static const char *const packed[2][4] = {{"", "pcm,embedded-shorten-v1.09", "pcm,embedded-shorten-v2.00",
                                              "pcm,embedded-shorten-v3.00"},
                                             {"", "ulaw,embedded-shorten-v1.09", "ulaw,embedded-shorten-v2.00",
                                              "ulaw,embedded-shorten-v3.00"}};
    add_text(out, "sample_coding", o->shorten ? packed[o->ulaw != 0][o->pack.version & 3] : o->ulaw ? "ulaw" : "pcm");
    bits_put_bytes(out, "end_head\n", 9);
    while (out->n - start < (size_t)o->header) bits_put_bytes(out, " ", 1);
}

void sphere_encode(bits *out, const int16_t *samples, int64_t n, const sphere_options *o)
{
    unsigned checksum = 0;
    int lowest = n ? samples[0] : 0, highest = lowest;
    for (int64_t i = 0; i < n * o->channels; i++) {
        checksum += (unsigned)samples[i];
        lowest = samples[i] < lowest ? samples[i] : lowest;
        highest = samples[i] > highest ? samples[i] : highest;
    }
    put_sphere_header(out, o, n, checksum, lowest, highest);
    if (o->shorten) {
        shorten_options pack = o->pack;
        pack.channels = o->channels;
        pack.type = o->ulaw ? SHORTEN_AU2 : o->big_endian ? SHORTEN_S16HL : SHORTEN_S16LH;
        shorten_encode(out, samples, n, &pack);
        return;
    }
    for (int64_t i = 0; i < n * o->channels; i++) {
        const uint32_t value = (uint16_t)samples[i];
        bits_put(out, o->ulaw ? value : o->big_endian ? value : (value & 255) << 8 | value >> 8, o->ulaw ? 8 : 16);
    }
}
