// shorten.c - bits, Rice codes, the functions and predictors of shorten; see shorten.h. Values from the file are hostile: all
// arithmetic on them is unsigned and wraps.

#include "frontend/shorten.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    BYTES = 1 << 14,
    MOST_ZEROS = 1 << 20,  // of one code; a longer run is damage
    MOST_SKIPPED = 1 << 16 // bytes in the header that are to be skipped
};

// The numbers of low bits of the codes.
enum {
    LONG_BITS = 2,
    FUNCTION_BITS = 2,
    ENERGY_BITS = 3,
    SHIFT_BITS = 2,
    ORDER_BITS = 2,
    COEFFICIENT_BITS = 5,
    SKIPPED_BITS = 7,
    LENGTH_BITS = 5,
    BYTE_BITS = 8
};

enum { DIFF0, DIFF1, DIFF2, DIFF3, QUIT, BLOCKSIZE, BITSHIFT, QLPC, ZERO, VERBATIM };

enum { AU1 = 0, S16HL = 3, S16LH = 5, AU2 = 8 };

// A legitimate stream of zeros gives a few hundred frames per byte; more than this is an attempt to never end.
enum { FREE_FRAMES = 1 << 24, FRAMES_PER_BYTE = 4096 };

typedef struct channel {
    uint32_t *x;    // [wrap + block]: the last samples before the block, then the block
    int32_t *means; // [n_means] of the last blocks, the newest last
} channel;

struct lin_shorten {
    lin_shorten_reader reader;
    void *context;
    unsigned char bytes[BYTES];
    int at, held;
    uint64_t cache; // the next bits, the first one highest; zeros after them
    int cached;
    int64_t taken; // bytes

    int version, type, n_channels, most_block, n_means, wrap;
    int block, shift;
    channel channels[LIN_SHORTEN_CHANNELS];
    unsigned char codes[256]; // mu-law: by sample + 128
    int next;                 // the channel of the next block
    int given, ready;         // frames of the block that were read, and that it has
    int64_t frames;           // before this block
    int over;

    lin_error error; // status LIN_OK: none
};

/* ---- bits ------------------------------------------------------------------------------------------------------------------ */

static void fault(lin_shorten *s, lin_status status, const char *fmt, ...) LIN_PRINTF(3, 4);

// Keeps the first error only. After it all codes are 0.
static void fault(lin_shorten *s, lin_status status, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (s->error.status != LIN_OK) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    lin_fail(&s->error, status, "%s", text);
    s->cache = 0;
    s->cached = 0;
    s->at = s->held = 0;
}

// Fills the cache, which has fewer than 57 bits, from the next eight bytes at once.
static inline void fill_eight(lin_shorten *s)
{
    const unsigned char *b = s->bytes + s->at;
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word = word << 8 | b[i]; // compilers make this one load
    const int n = (64 - s->cached) / 8;
    s->cache |= word >> (64 - 8 * n) << (64 - 8 * n) >> s->cached;
    s->cached += 8 * n;
    s->at += n;
    s->taken += n;
}

// Makes at least n of 0 .. 57 bits available. Asks the reader only if it must, because the bytes of a pipe may not exist yet.
static int refill(lin_shorten *s, int n)
{
    while (s->cached < n) {
        if (s->at == s->held) {
            lin_error err = {0};
            if (s->error.status != LIN_OK) return 0;
            s->at = 0;
            s->held = 0;
            if (s->reader(s->context, s->bytes, BYTES, &s->held, &err) != LIN_OK) fault(s, err.status, "%s", err.message);
            else if (s->held == 0) fault(s, LIN_FORMAT, "it is truncated: its compressed samples end too early");
            if (s->error.status != LIN_OK) return 0;
        }
        if (s->held - s->at >= 8) fill_eight(s);
        while (s->cached <= 56 && s->at < s->held) {
            s->cache |= (uint64_t)s->bytes[s->at++] << (56 - s->cached);
            s->cached += 8;
            s->taken++;
        }
    }
    return 1;
}

static inline int need(lin_shorten *s, int n) { return s->cached >= n || refill(s, n); }

static inline uint32_t take(lin_shorten *s, int n)
{
    if (n == 0 || !need(s, n)) return 0;
    const uint32_t value = (uint32_t)(s->cache >> (64 - n));
    s->cache <<= n;
    s->cached -= n;
    return value;
}

// A Rice code: zeros, a one, n of 0 .. 31 low bits.
static inline uint32_t get_uvar(lin_shorten *s, int n)
{
    uint32_t zeros = 0;
    while (s->cache == 0) {
        zeros += (uint32_t)s->cached;
        s->cached = 0;
        if (zeros > MOST_ZEROS) {
            fault(s, LIN_FORMAT, "it is damaged: a number of over %d zero bits", (int)MOST_ZEROS);
            return 0;
        }
        if (!need(s, 1)) return 0;
    }
    const int run = __builtin_clzll(s->cache); // below `cached`, which is at most 64
    zeros += (uint32_t)run;
    s->cache = s->cache << run << 1;
    s->cached -= run + 1;
    if (zeros > UINT32_MAX >> n) {
        fault(s, LIN_FORMAT, "it is damaged: a number of over 32 bits");
        return 0;
    }
    return n == 0 ? zeros : zeros << n | take(s, n);
}

// The sign is the lowest bit.
static inline uint32_t get_var(lin_shorten *s, int n)
{
    const uint32_t code = get_uvar(s, n + 1);
    return code >> 1 ^ (0 - (code & 1));
}

static uint32_t get_ulong(lin_shorten *s)
{
    const uint32_t n = get_uvar(s, LONG_BITS);
    if (n > 31) {
        fault(s, LIN_FORMAT, "it is damaged: a number of %u bits", n);
        return 0;
    }
    return get_uvar(s, (int)n);
}

/* ---- mu-law ---------------------------------------------------------------------------------------------------------------- */

// ITU-T G.711, of a 16-bit sample.
static int mulaw_code(int sample)
{
    int magnitude = (sample < 0 ? -sample : sample) + 132, exponent = 7;
    if (magnitude > 32767) magnitude = 32767;
    while (exponent > 0 && magnitude < 128 << exponent) exponent--;
    return 255 - ((sample < 0) << 7 | exponent << 4 | (magnitude >> (exponent + 3) & 15));
}

/*
 * Samples of mu-law files are the ranks of the codes: positive codes from 255 down are 0, 1, ...; negative ones are -1, -2, ...
 * BITSHIFT does not shift them: it ranks the codes that stand for a multiple of 2^(shift + 3) before the others. AU1 ranks the
 * negative zero, 127, between the two groups; AU2 always gives it -1.
 */
static void rank_codes(lin_shorten *s)
{
    unsigned char is_multiple[256] = {0}, plain[256];
    int n = 0;
    for (int sample = -32768; sample < 32768; sample += 8 << s->shift) is_multiple[mulaw_code(sample)] = 1;
    for (int wanted = 1; wanted >= 0; wanted--)
        for (int code = 255; code >= 128; code--)
            if (is_multiple[code] == wanted) plain[128 + n++] = (unsigned char)code;
    n = 0;
    for (int wanted = 1; wanted >= 0; wanted--) {
        for (int code = 126; code >= 0; code--)
            if (is_multiple[code] == wanted) plain[127 - n++] = (unsigned char)code;
        if (wanted) plain[127 - n++] = 127;
    }
    memcpy(s->codes, plain, sizeof plain);
    if (s->type != AU2) return;
    s->codes[127] = 127;
    for (int i = 0; i < 127; i++) s->codes[i] = plain[i + 1];
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

// C's division, which rounds towards zero. Sums of 65535 + 256 values of 32 bits fit.
static int32_t divide(int64_t sum, int n) { return (int32_t)(uint32_t)(uint64_t)(sum / n); }

// Added to DIFF0 and QLPC: the mean of the means of the last blocks. From version 2 on it is rounded and shifted.
static uint32_t mean_offset(const lin_shorten *s, const channel *c)
{
    int64_t sum = s->version < 2 ? 0 : s->n_means / 2;
    if (s->n_means == 0) return 0;
    for (int i = 0; i < s->n_means; i++) sum += c->means[i];
    const int32_t mean = divide(sum, s->n_means);
    if (s->version < 2 || s->shift == 0) return (uint32_t)mean;
    return (uint32_t)((mean >> (s->shift - 1)) >> 1);
}

static void keep_mean(const lin_shorten *s, channel *c)
{
    int64_t sum = s->version < 2 ? 0 : s->block / 2;
    if (s->n_means == 0) return;
    for (int i = 0; i < s->block; i++) sum += (int32_t)c->x[s->wrap + i];
    const uint32_t mean = (uint32_t)divide(sum, s->block);
    memmove(c->means, c->means + 1, (size_t)(s->n_means - 1) * sizeof *c->means);
    const int shift = s->version < 2 ? 0 : s->shift;
    c->means[s->n_means - 1] = (int32_t)(shift < 32 ? mean << shift : 0);
}

static int get_energy(lin_shorten *s)
{
    const uint32_t energy = get_uvar(s, ENERGY_BITS);
    if (energy <= 30) return (int)energy;
    fault(s, LIN_FORMAT, "it is damaged: residuals of %u bits", energy);
    return 0;
}

static void differences(lin_shorten *s, uint32_t *x, int order, uint32_t offset)
{
    const int energy = get_energy(s), n = s->block;
    switch (order) {
    case 0:
        for (int i = 0; i < n; i++) x[i] = get_var(s, energy) + offset;
        break;
    case 1:
        for (int i = 0; i < n; i++) x[i] = get_var(s, energy) + x[i - 1];
        break;
    case 2:
        for (int i = 0; i < n; i++) x[i] = get_var(s, energy) + 2 * x[i - 1] - x[i - 2];
        break;
    default:
        for (int i = 0; i < n; i++) x[i] = get_var(s, energy) + 3 * (x[i - 1] - x[i - 2]) + x[i - 3];
    }
}

// Coefficients are in units of 1/32; the sum is rounded from version 2 on.
static void predicted(lin_shorten *s, uint32_t *x, uint32_t offset)
{
    uint32_t q[LIN_SHORTEN_LPC];
    const int energy = get_energy(s);
    const uint32_t order = get_uvar(s, ORDER_BITS), half = s->version < 2 ? 0 : 1u << COEFFICIENT_BITS;
    if (order > (uint32_t)s->wrap || order > LIN_SHORTEN_LPC) {
        fault(s, LIN_FORMAT, "it is damaged: a predictor of %u coefficients; its header allows %d", order, s->wrap);
        return;
    }
    const int n = (int)order;
    for (int j = 0; j < n; j++) q[j] = get_var(s, COEFFICIENT_BITS);
    for (int j = 1; j <= n; j++) x[-j] -= offset;
    for (int i = 0; i < s->block; i++) {
        uint32_t sum = half;
        for (int j = 0; j < n; j++) sum += q[j] * x[i - j - 1];
        x[i] = get_var(s, energy) + (uint32_t)((int32_t)sum >> COEFFICIENT_BITS);
    }
    for (int i = 0; i < s->block; i++) x[i] += offset;
}

// Undoes BITSHIFT. Lossy compression rounds to a multiple of 2^shift, which may be one step above 16 bits.
static void restore(lin_shorten *s, uint32_t *x)
{
    const int is_mulaw = lin_shorten_is_mulaw(s);
    const int64_t low = is_mulaw ? -128 : -32768, high = is_mulaw ? 127 : 32767, step = is_mulaw ? 1 : (int64_t)1 << s->shift;
    for (int i = 0; i < s->block; i++) {
        int64_t value = (int32_t)x[i] * step;
        if (value < low || value > high + (s->shift < 16 ? step - 1 : 0)) {
            fault(s, LIN_FORMAT, "it is damaged: sample %lld is %lld, beyond %d bits", (long long)(s->frames + i),
                  (long long)value, is_mulaw ? 8 : 16);
            return;
        }
        if (value > high) value = high;
        x[i] = is_mulaw ? s->codes[value + 128] : (uint32_t)value;
    }
}

static void get_block(lin_shorten *s, int function)
{
    channel *c = &s->channels[s->next];
    uint32_t *x = c->x + s->wrap;
    if (s->next == 0 && s->frames > FREE_FRAMES && s->frames / FRAMES_PER_BYTE > s->taken) {
        fault(s, LIN_FORMAT, "it is damaged: %lld bytes give over %lld samples", (long long)s->taken, (long long)s->frames);
        return;
    }
    if (function == ZERO) memset(x, 0, (size_t)s->block * sizeof *x);
    else if (function == QLPC) predicted(s, x, mean_offset(s, c));
    else differences(s, x, function, function == DIFF0 ? mean_offset(s, c) : 0);
    if (s->error.status != LIN_OK) return;
    keep_mean(s, c);
    memmove(c->x, c->x + s->block, (size_t)s->wrap * sizeof *x);
    restore(s, x);
    if (++s->next < s->n_channels) return;
    s->next = 0;
    s->ready = s->block;
    s->given = 0;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------- */

static void set_block(lin_shorten *s)
{
    const uint32_t block = get_ulong(s);
    if (s->error.status != LIN_OK) return;
    if (block < 1 || block > (uint32_t)s->most_block)
        fault(s, LIN_FORMAT, "it is damaged: a block of %u samples; its header allows %d", block, s->most_block);
    else if (s->next != 0 && (int)block != s->block)
        fault(s, LIN_FORMAT, "it is damaged: the channels of a block have %d and %u samples", s->block, block);
    else s->block = (int)block;
}

static void set_shift(lin_shorten *s)
{
    const uint32_t shift = get_uvar(s, SHIFT_BITS), most = lin_shorten_is_mulaw(s) ? 12 : 32;
    if (shift > most) {
        fault(s, LIN_FORMAT, "it is damaged: samples shifted by %u bits", shift);
        return;
    }
    const int is_new = s->shift != (int)shift;
    s->shift = (int)shift;
    if (is_new && lin_shorten_is_mulaw(s)) rank_codes(s);
}

static void skip_verbatim(lin_shorten *s)
{
    const uint32_t n = get_uvar(s, LENGTH_BITS);
    for (uint32_t i = 0; i < n && s->error.status == LIN_OK; i++) get_uvar(s, BYTE_BITS);
}

// Runs functions until a block of all channels is ready, or the stream is over.
static void get_frames(lin_shorten *s)
{
    s->frames += s->ready;
    s->ready = s->given = 0;
    while (!s->ready && !s->over && s->error.status == LIN_OK) {
        const uint32_t function = get_uvar(s, FUNCTION_BITS);
        if (s->error.status != LIN_OK) return;
        if (function <= DIFF3 || function == QLPC || function == ZERO) get_block(s, (int)function);
        else if (function == BLOCKSIZE) set_block(s);
        else if (function == BITSHIFT) set_shift(s);
        else if (function == VERBATIM) skip_verbatim(s);
        else if (function != QUIT) fault(s, LIN_FORMAT, "it is damaged: shorten has no function %u", function);
        else if (s->next) fault(s, LIN_FORMAT, "it is damaged: its compressed samples end after channel %d", s->next);
        else s->over = 1;
    }
}

lin_status lin_shorten_read(lin_shorten *s, int16_t *frames, int capacity, int *n, lin_error *err)
{
    *n = 0;
    while (*n == 0 && !s->over && s->error.status == LIN_OK) {
        if (s->given == s->ready) get_frames(s);
        if (s->error.status != LIN_OK || s->over) break;
        const int some = s->ready - s->given < capacity ? s->ready - s->given : capacity;
        for (int k = 0; k < s->n_channels; k++) {
            const uint32_t *x = s->channels[k].x + s->wrap + s->given;
            for (int i = 0; i < some; i++) frames[i * s->n_channels + k] = (int16_t)(int32_t)x[i];
        }
        s->given += some;
        *n = some;
    }
    return s->error.status == LIN_OK ? LIN_OK : lin_fail_as(err, &s->error);
}

/* ---- the header ------------------------------------------------------------------------------------------------------------ */

static const char *type_name(uint32_t type)
{
    static const char *const names[] = {"lossy mu-law",
                                        "signed 8-bit",
                                        "unsigned 8-bit",
                                        "16-bit",
                                        "unsigned 16-bit",
                                        "16-bit",
                                        "unsigned 16-bit",
                                        "mu-law of linear predictions",
                                        "mu-law",
                                        "A-law",
                                        "A-law of linear predictions"};
    return type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

static void check_header(lin_shorten *s, uint32_t type, uint32_t channels, uint32_t block, uint32_t lpc, uint32_t means,
                         uint32_t skipped)
{
    if (s->error.status != LIN_OK) return;
    if (type != AU1 && type != S16HL && type != S16LH && type != AU2)
        fault(s, LIN_UNSUPPORTED, "its compressed samples are of type %u (%s); only 16-bit and mu-law can be read", type,
              type_name(type));
    else if (channels < 1 || channels > LIN_SHORTEN_CHANNELS)
        fault(s, LIN_UNSUPPORTED, "its compressed samples have %u channels; 1 to %d can be read", channels,
              (int)LIN_SHORTEN_CHANNELS);
    else if (block < 1 || block > LIN_SHORTEN_BLOCK)
        fault(s, LIN_FORMAT, "it is damaged: blocks of %u samples; at most %d are possible", block, (int)LIN_SHORTEN_BLOCK);
    else if (lpc > LIN_SHORTEN_LPC)
        fault(s, LIN_FORMAT, "it is damaged: predictors of %u coefficients; at most %d are possible", lpc, (int)LIN_SHORTEN_LPC);
    else if (means > LIN_SHORTEN_MEANS)
        fault(s, LIN_FORMAT, "it is damaged: the mean of %u blocks; at most %d are possible", means, (int)LIN_SHORTEN_MEANS);
    else if (skipped > MOST_SKIPPED) fault(s, LIN_FORMAT, "it is damaged: %u bytes to skip", skipped);
}

static void get_header(lin_shorten *s)
{
    if (take(s, 32) != 0x616a6b67) { // "ajkg"
        fault(s, LIN_FORMAT, "it is damaged: its samples do not begin with the signature of shorten");
        return;
    }
    s->version = (int)take(s, 8);
    if (s->error.status == LIN_OK && (s->version < 1 || s->version > 3))
        fault(s, LIN_UNSUPPORTED, "it is compressed with version %d of shorten; versions 1 to 3 can be read", s->version);
    const uint32_t type = get_ulong(s), channels = get_ulong(s), block = get_ulong(s), lpc = get_ulong(s), means = get_ulong(s),
                   skipped = get_ulong(s);
    check_header(s, type, channels, block, lpc, means, skipped);
    for (uint32_t i = 0; i < skipped && s->error.status == LIN_OK; i++) get_uvar(s, SKIPPED_BITS);
    if (s->error.status != LIN_OK) return;
    s->type = (int)type;
    s->n_channels = (int)channels;
    s->most_block = s->block = (int)block;
    s->n_means = (int)means;
    s->wrap = lpc > 3 ? (int)lpc : 3;
}

lin_status lin_shorten_open(lin_shorten_reader reader, void *context, lin_shorten **out, lin_error *err)
{
    *out = NULL;
    lin_shorten *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "shorten", sizeof *s);
    s->reader = reader;
    s->context = context;
    get_header(s);
    lin_status status = s->error.status == LIN_OK ? LIN_OK : lin_fail_as(err, &s->error);
    const size_t n = (size_t)(s->wrap + s->most_block), m = (size_t)s->n_means + 1;
    for (int k = 0; k < s->n_channels && status == LIN_OK; k++) {
        s->channels[k].x = lin_calloc(n, sizeof *s->channels[k].x);
        s->channels[k].means = lin_calloc(m, sizeof *s->channels[k].means);
        if (!s->channels[k].x || !s->channels[k].means) status = lin_no_memory(err, "shorten", n * sizeof *s->channels[k].x);
    }
    if (status != LIN_OK) {
        lin_shorten_close(s);
        return status;
    }
    if (lin_shorten_is_mulaw(s)) rank_codes(s);
    *out = s;
    return LIN_OK;
}

int lin_shorten_channels(const lin_shorten *s) { return s->n_channels; }

int lin_shorten_is_mulaw(const lin_shorten *s) { return s->type == AU1 || s->type == AU2; }

int lin_shorten_has_more(const lin_shorten *s) { return s->given < s->ready || s->at < s->held; }

void lin_shorten_close(lin_shorten *s)
{
    if (!s) return;
    for (int k = 0; k < LIN_SHORTEN_CHANNELS; k++) {
        lin_free(s->channels[k].x);
        lin_free(s->channels[k].means);
    }
    lin_free(s);
}
