// Shorten: files that ffmpeg decoded too, every function in every version, any feeding of the bytes, and streams that no encoder
// writes.
#include "frontend/shorten.h"

#include <zlib.h>

#include "tests/frontend/shorten_encoder.h"
#include "tests/frontend/support.h"

enum { N = 3000 };

// Bytes in memory, given in parts of 1 to `most` bytes; at their end the last `repeat` bytes again and again.
typedef struct feed {
    const unsigned char *bytes;
    size_t n, at, repeat;
    int most, calls;
} feed;

static lin_status give(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err)
{
    feed *f = context;
    if (f->at == f->n) f->at -= f->repeat;
    const int left = f->n - f->at < 1 << 20 ? (int)(f->n - f->at) : 1 << 20;
    *n = 1 + (int)lin_random_below(5, (uint64_t)f->calls++, (uint32_t)f->most);
    if (*n > left) *n = left;
    if (*n > capacity) *n = capacity;
    memcpy(bytes, f->bytes + f->at, (size_t)*n);
    f->at += (size_t)*n;
    (void)err;
    return LIN_OK;
}

// All frames, in reads of odd sizes; -1 with the error.
static int decode(feed *f, int16_t *samples, int capacity, int *channels, lin_error *err)
{
    lin_shorten *s;
    int done = 0, n;
    if (lin_shorten_open(give, f, &s, err) != LIN_OK) return -1;
    *channels = lin_shorten_channels(s);
    const unsigned long allocations = lin_memory_count();
    lin_status status;
    do {
        const int wanted = 1 + (int)lin_random_below(6, (uint64_t)done, 700);
        test_require(done < capacity, "too many frames");
        status = lin_shorten_read(s, samples + done * *channels, wanted < capacity - done ? wanted : capacity - done, &n, err);
        done += n;
    } while (status == LIN_OK && n > 0);
    ck_assert_uint_eq(lin_memory_count(), allocations);
    if (status == LIN_OK) { // stays at the end
        ck_assert_int_eq(lin_shorten_read(s, samples, 1, &n, err), LIN_OK);
        ck_assert_int_eq(n, 0);
    } else { // stays failed
        lin_error again = {0};
        ck_assert_int_eq(lin_shorten_read(s, samples, 1, &n, &again), status);
        ck_assert_str_eq(again.message, err->message);
    }
    lin_shorten_close(s);
    return status == LIN_OK ? done : -1;
}

/* ---- against ffmpeg -------------------------------------------------------------------------------------------------------- */

// tests/golden/shorten.sh says how these were made: the encoder of these tests, decoded by ffmpeg.
START_TEST(what_ffmpeg_decodes)
{
    static unsigned char b[1 << 16];
    static int16_t x[2 * N];
    char name[64], line[160];
    unsigned crc;
    int channels, frames, cases = 0;
    FILE *list = fopen("tests/golden/shorten/samples.txt", "r");
    ck_assert_ptr_nonnull(list);
    for (; fgets(line, sizeof line, list); cases++) {
        ck_assert_int_eq(sscanf(line, "%63s %d %d %x", name, &channels, &frames, &crc), 4);
        snprintf(line, sizeof line, "tests/golden/shorten/%s", name);
        FILE *file = fopen(line, "rb");
        ck_assert_ptr_nonnull(file);
        const size_t n = fread(b, 1, sizeof b, file);
        fclose(file);
        for (int most = 1; most < 1 << 16; most *= 50) {
            feed f = {.bytes = b + 1024, .n = n - 1024, .most = most};
            lin_error err = {0};
            int is;
            ck_assert_msg(decode(&f, x, N, &is, &err) == frames, "%s: %s", name, err.message);
            ck_assert_int_eq(is, channels);
            ck_assert_msg(crc32(0, (const unsigned char *)x, (unsigned)(frames * channels) * 2) == crc, "%s", name);
        }
    }
    fclose(list);
    ck_assert_int_eq(cases, 16);
}
END_TEST

/* ---- every function, version and size -------------------------------------------------------------------------------------- */

// Silence, a loud sine with noise, full scale, low bits that are zero, a constant.
static void fill(int16_t *x, int n, int channels, uint64_t seed)
{
    for (int i = 0; i < n * channels; i++) {
        const double noise = 2 * lin_random_uniform(seed, (uint64_t)i) - 1, sine = sin(0.05 * i) * 9000;
        const int part = i / channels * 8 / n;
        const double value = part == 0 || part == 5 ? 0
                             : part == 3            ? (i & 1 ? 32767 : -32768)
                             : part == 4            ? 64 * rint(noise * 300)
                             : part == 6            ? -77
                                                    : sine + 40 * (part + 1) * noise + 300 * part;
        x[i] = (int16_t)lrint(value);
    }
}

START_TEST(every_function_in_every_version)
{
    static int16_t x[3 * N], y[3 * N + 3];
    const int version = 1 + _i / 6, function = _i % 6 == 5 ? -1 : _i % 6 == 4 ? SHORTEN_QLPC : _i % 6;
    for (int trial = 0; trial < 12; trial++) {
        shorten_options o = shorten_options_default();
        o.version = version;
        o.function = function;
        o.channels = 1 + trial % 3;
        o.type = trial & 1 ? SHORTEN_S16LH : SHORTEN_S16HL;
        o.block = trial == 7 ? 1 : trial == 8 ? 2 : 1 + (int)lin_random_below(1, (uint64_t)trial, 600);
        o.other_block = trial % 4 == 3 ? (o.block + 1) / 2 : 0;
        o.mean_blocks = (int)lin_random_below(2, (uint64_t)trial, 6);
        o.lpc_order = function == SHORTEN_QLPC ? 1 + (int)lin_random_below(3, (uint64_t)trial, 32) : 3 * (trial & 1);
        o.verbatim = "1234567";
        o.n_verbatim = trial % 5 == 4 ? 7 : 0;
        const int n = N - 17 * trial;
        fill(x, n, o.channels, (uint64_t)trial);
        bits out = {0};
        shorten_encode(&out, x, n, &o);
        feed f = {.bytes = out.data, .n = out.n, .most = trial & 1 ? 3 : 5000};
        lin_error err = {0};
        int channels;
        const int got = decode(&f, y, N + 1, &channels, &err);
        test_require(got == n, "version %d, function %d, trial %d: %d frames, %s", version, function, trial, got, err.message);
        test_require(memcmp(x, y, (size_t)(n * channels) * sizeof *x) == 0, "version %d, function %d, trial %d", version,
                     function, trial);
        free(out.data);
    }
}
END_TEST

// Frames that were decoded, and bytes that were read, are known to be there.
START_TEST(bytes_held)
{
    const int16_t x[3] = {1, 2, 3};
    shorten_options o = shorten_options_default();
    bits out = {0};
    shorten_encode(&out, x, 3, &o);
    feed f = {.bytes = out.data, .n = out.n, .most = 1};
    lin_error err = {0};
    lin_shorten *s;
    int16_t y[3];
    int got;
    assert_ok(lin_shorten_open(give, &f, &s, &err), err);
    ck_assert_int_eq(lin_shorten_has_more(s), 0);
    assert_ok(lin_shorten_read(s, y, 2, &got, &err), err);
    ck_assert_int_eq(got, 2);
    ck_assert_int_eq(lin_shorten_has_more(s), 1);
    assert_ok(lin_shorten_read(s, y, 2, &got, &err), err);
    ck_assert_int_eq(got, 1);
    ck_assert_int_eq(y[0], 3);
    ck_assert_int_eq(lin_shorten_has_more(s), 0);
    lin_shorten_close(s);
    free(out.data);
}
END_TEST

/* ---- streams written by hand ----------------------------------------------------------------------------------------------- */

// The header of version 2 with blocks of 4, one channel and no means.
static void begin(bits *out, int type, int block)
{
    bits_put_bytes(out, "ajkg\2", 5);
    bits_put_ulong(out, (uint32_t)type);
    bits_put_ulong(out, 1);
    bits_put_ulong(out, (uint32_t)block);
    bits_put_ulong(out, 0);
    bits_put_ulong(out, 0);
    bits_put_ulong(out, 0);
}

static void put_diff0(bits *out, const int *values, int n)
{
    bits_put_uvar(out, SHORTEN_DIFF0, 2);
    bits_put_uvar(out, 6, 3);
    for (int i = 0; i < n; i++) bits_put_var(out, values[i], 6);
}

static void put_shift(bits *out, int shift)
{
    bits_put_uvar(out, SHORTEN_BITSHIFT, 2);
    bits_put_uvar(out, (uint32_t)shift, 2);
}

static int decode_bits(bits *out, int16_t *x, int capacity, lin_error *err)
{
    feed f = {.bytes = out->data, .n = out->n, .most = 9};
    int channels;
    const int n = decode(&f, x, capacity, &channels, err);
    free(out->data);
    *out = (bits){0};
    return n;
}

// Lossy compression rounds the highest values up to one step above 16 bits.
START_TEST(shifts_and_clips)
{
    bits out = {0};
    lin_error err = {0};
    int16_t x[16];
    begin(&out, SHORTEN_S16HL, 4);
    put_shift(&out, 3);
    put_diff0(&out, (const int[]){1, -1, 4096, -4096}, 4);
    put_shift(&out, 0);
    put_diff0(&out, (const int[]){32767, -32768, 5, 0}, 4);
    bits_put_uvar(&out, SHORTEN_QUIT, 2);
    ck_assert_msg(decode_bits(&out, x, 16, &err) == 8, "%s", err.message);
    const int16_t want[] = {8, -8, 32767, -32768, 32767, -32768, 5, 0};
    ck_assert_int_eq(memcmp(x, want, sizeof want), 0);
}
END_TEST

// A mean of version 1 is rounded towards zero, one of version 2 to the nearest; the expected values are worked out by hand.
START_TEST(rounded_means)
{
    for (int version = 1; version <= 2; version++) {
        bits out = {0};
        lin_error err = {0};
        int16_t x[16];
        const unsigned char head[5] = {'a', 'j', 'k', 'g', (unsigned char)version};
        bits_put_bytes(&out, head, 5);
        const uint32_t fields[] = {SHORTEN_S16HL, 1, 4, 0, 2, 0};
        for (int i = 0; i < 6; i++) bits_put_ulong(&out, fields[i]);
        put_diff0(&out, (const int[]){10, 11, 11, 11}, 4); // sum 43: mean 10 in version 1, 11 in version 2
        put_diff0(&out, (const int[]){0, 0, 0, 0}, 4);     // mean of 0 and 10: 5; of 0 and 11, plus 1: 6
        bits_put_uvar(&out, SHORTEN_QUIT, 2);
        ck_assert_msg(decode_bits(&out, x, 16, &err) == 8, "%s", err.message);
        ck_assert_int_eq(x[3], 11);
        ck_assert_int_eq(x[4], version == 1 ? 5 : 6);
    }
}
END_TEST

// The ranks of mu-law codes, without a shift and with the largest: only 0 and -32768 are multiples of 2^15.
START_TEST(mulaw_ranks)
{
    bits out = {0};
    lin_error err = {0};
    int16_t x[32];
    begin(&out, SHORTEN_AU2, 4);
    put_diff0(&out, (const int[]){0, 127, -1, -128}, 4);
    put_shift(&out, 12);
    put_diff0(&out, (const int[]){0, 1, -1, -2}, 4);
    bits_put_uvar(&out, SHORTEN_QUIT, 2);
    ck_assert_msg(decode_bits(&out, x, 32, &err) == 8, "%s", err.message);
    const int16_t want[] = {255, 128, 127, 0, 255, 254, 127, 0};
    for (int i = 0; i < 8; i++) ck_assert_int_eq(x[i], want[i]);
    // The older type has the negative zero between the multiples and the others; without a shift there are no others.
    begin(&out, 0, 4);
    put_diff0(&out, (const int[]){0, -1, -127, -128}, 4);
    put_shift(&out, 12);
    put_diff0(&out, (const int[]){0, -1, -2, -3}, 4);
    bits_put_uvar(&out, SHORTEN_QUIT, 2);
    ck_assert_msg(decode_bits(&out, x, 32, &err) == 8, "%s", err.message);
    const int16_t old[] = {255, 126, 0, 127, 255, 0, 127, 126};
    for (int i = 0; i < 8; i++) ck_assert_msg(x[i] == old[i], "%d: %d", i, x[i]);
}
END_TEST

// All mu-law codes through the encoder.
START_TEST(mulaw_codes)
{
    int16_t x[256], y[257];
    bits out = {0};
    lin_error err = {0};
    shorten_options o = shorten_options_default();
    o.type = SHORTEN_AU2;
    o.block = 100;
    for (int i = 0; i < 256; i++) x[i] = (int16_t)(i * 37 & 255);
    shorten_encode(&out, x, 256, &o);
    ck_assert_msg(decode_bits(&out, y, 257, &err) == 256, "%s", err.message);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
}
END_TEST

/* ---- hostile streams ------------------------------------------------------------------------------------------------------- */

static void put_fields(bits *out, uint32_t type, uint32_t channels, uint32_t block, uint32_t lpc, uint32_t means,
                       uint32_t skipped)
{
    const uint32_t fields[] = {type, channels, block, lpc, means, skipped};
    bits_put_bytes(out, "ajkg\2", 5);
    for (int i = 0; i < 6; i++) bits_put_ulong(out, fields[i]);
}

static void refused_header(bits out, lin_status wanted, const char *text)
{
    feed f = {.bytes = out.data, .n = out.n, .most = 100};
    lin_error err = {0};
    lin_shorten *s = NULL;
    const unsigned long live = lin_memory_live();
    ck_assert_int_eq(lin_shorten_open(give, &f, &s, &err), wanted);
    ck_assert_msg(strstr(err.message, text) != NULL, "'%s' does not contain '%s'", err.message, text);
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(lin_memory_live(), live);
    free(out.data);
}

START_TEST(refused_headers)
{
    const struct {
        uint32_t fields[6];
        lin_status status;
        const char *says;
    } cases[] = {{{2, 1, 256, 0, 0, 0}, LIN_UNSUPPORTED, "type 2 (unsigned 8-bit)"},
                 {{10, 1, 256, 0, 0, 0}, LIN_UNSUPPORTED, "type 10 (A-law of linear predictions)"},
                 {{99, 1, 256, 0, 0, 0}, LIN_UNSUPPORTED, "type 99 (unknown)"},
                 {{3, 0, 256, 0, 0, 0}, LIN_UNSUPPORTED, "0 channels"},
                 {{3, 9, 256, 0, 0, 0}, LIN_UNSUPPORTED, "9 channels"},
                 {{3, 0xffffffff, 256, 0, 0, 0}, LIN_FORMAT, "a number of"},
                 {{3, 1, 0, 0, 0, 0}, LIN_FORMAT, "blocks of 0 samples"},
                 {{3, 1, 1u << 30, 0, 0, 0}, LIN_FORMAT, "blocks of 1073741824 samples; at most 65535 are possible"},
                 {{3, 1, 256, 65, 0, 0}, LIN_FORMAT, "predictors of 65 coefficients"},
                 {{3, 1, 256, 0, 257, 0}, LIN_FORMAT, "the mean of 257 blocks"},
                 {{3, 1, 256, 0, 0, 1u << 30}, LIN_FORMAT, "1073741824 bytes to skip"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t *c = cases[i].fields;
        bits out = {0};
        put_fields(&out, c[0], c[1] == 0xffffffff ? 1 : c[1], c[2], c[3], c[4], c[5]);
        if (c[1] == 0xffffffff) { // a number of 32 bits or more
            out.n = 5;
            out.free_bits = 0;
            bits_put_uvar(&out, 33, 2);
            bits_put(&out, 0xffffffff, 32);
        }
        refused_header(out, cases[i].status, cases[i].says);
    }
    bits out = {0};
    bits_put_bytes(&out, "ajkh\2zzzzzzzzzzzz", 17);
    refused_header(out, LIN_FORMAT, "signature of shorten");
    for (int version = 0; version < 256; version++) {
        if (version >= 1 && version <= 3) continue;
        const unsigned char head[5] = {'a', 'j', 'k', 'g', (unsigned char)version};
        out = (bits){0};
        bits_put_bytes(&out, head, 5);
        refused_header(out, LIN_UNSUPPORTED, "versions 1 to 3 can be read");
    }
}
END_TEST

// Each stream begins well; `bad` adds what is wrong.
static void refused_stream(void (*bad)(bits *out), const char *text)
{
    static int16_t x[1 << 17];
    bits out = {0};
    lin_error err = {0};
    put_fields(&out, SHORTEN_S16HL, 1, 256, 4, 4, 0);
    bad(&out);
    const int n = decode_bits(&out, x, 1 << 17, &err);
    ck_assert_msg(n == -1 && err.status == LIN_FORMAT && strstr(err.message, text), "%d frames, '%s', not '%s'", n, err.message,
                  text);
}

static void unknown_function(bits *out) { bits_put_uvar(out, 10, 2); }
static void huge_function(bits *out) { bits_put_uvar(out, 1u << 20, 2); }
static void huge_block(bits *out)
{
    bits_put_uvar(out, SHORTEN_BLOCKSIZE, 2);
    bits_put_ulong(out, 1u << 30);
}
static void empty_block(bits *out)
{
    bits_put_uvar(out, SHORTEN_BLOCKSIZE, 2);
    bits_put_ulong(out, 0);
}
static void huge_shift(bits *out) { put_shift(out, 33); }
static void shifted_out(bits *out)
{
    put_shift(out, 32);
    put_diff0(out, (const int[]){1, 1}, 2);
    for (int i = 0; i < 254; i++) bits_put_var(out, 0, 6);
}
static void huge_energy(bits *out)
{
    bits_put_uvar(out, SHORTEN_DIFF1, 2);
    bits_put_uvar(out, 31, 3);
}
static void huge_order(bits *out)
{
    bits_put_uvar(out, SHORTEN_QLPC, 2);
    bits_put_uvar(out, 5, 3);
    bits_put_uvar(out, 5, 2); // the header allows 4
}
static void huge_value(bits *out)
{
    bits_put_uvar(out, SHORTEN_DIFF3, 2);
    bits_put_uvar(out, 30, 3);
    for (int i = 0; i < 256; i++) bits_put_var(out, INT32_MIN + i, 30);
}
static void huge_coefficients(bits *out)
{
    bits_put_uvar(out, SHORTEN_QLPC, 2);
    bits_put_uvar(out, 29, 3);
    bits_put_uvar(out, 4, 2);
    for (int i = 0; i < 4; i++) bits_put_var(out, i & 1 ? -20000 : 20000, 5);
    for (int i = 0; i < 256; i++) bits_put_var(out, 0x7fffffff, 29);
}
static void endless_number(bits *out)
{
    for (int i = 0; i < 1 << 18; i++) bits_put(out, 0, 32);
}
static void huge_verbatim(bits *out)
{
    bits_put_uvar(out, SHORTEN_VERBATIM, 2);
    bits_put_uvar(out, 1u << 23, 5);
}
static void nothing(bits *out) { (void)out; }

START_TEST(refused_streams)
{
    refused_stream(unknown_function, "shorten has no function 10");
    refused_stream(huge_function, "shorten has no function 1048576");
    refused_stream(huge_block, "a block of 1073741824 samples; its header allows 256");
    refused_stream(empty_block, "a block of 0 samples");
    refused_stream(huge_shift, "samples shifted by 33 bits");
    refused_stream(shifted_out, "sample 0 is 4294967296, beyond 16 bits");
    refused_stream(huge_energy, "residuals of 31 bits");
    refused_stream(huge_order, "a predictor of 5 coefficients; its header allows 4");
    refused_stream(huge_value, "beyond 16 bits");
    refused_stream(huge_coefficients, "beyond 16 bits");
    refused_stream(endless_number, "a number of over 1048576 zero bits");
    refused_stream(huge_verbatim, "its compressed samples end too early");
    refused_stream(nothing, "its compressed samples end too early");
}
END_TEST

START_TEST(channels_that_do_not_match)
{
    int16_t x[64];
    bits out = {0};
    lin_error err = {0};
    put_fields(&out, SHORTEN_S16LH, 2, 16, 0, 0, 0);
    for (int i = 0; i < 3; i++) bits_put_uvar(&out, SHORTEN_ZERO, 2);
    bits_put_uvar(&out, SHORTEN_QUIT, 2);
    ck_assert_int_eq(decode_bits(&out, x, 32, &err), -1);
    ck_assert_msg(strstr(err.message, "its compressed samples end after channel 1") != NULL, "%s", err.message);
    put_fields(&out, SHORTEN_S16LH, 2, 16, 0, 0, 0);
    bits_put_uvar(&out, SHORTEN_ZERO, 2);
    bits_put_uvar(&out, SHORTEN_BLOCKSIZE, 2);
    bits_put_ulong(&out, 8);
    err = (lin_error){0};
    ck_assert_int_eq(decode_bits(&out, x, 32, &err), -1);
    ck_assert_msg(strstr(err.message, "the channels of a block have 16 and 8 samples") != NULL, "%s", err.message);
}
END_TEST

// A few bytes of ZERO blocks again and again: the sound would never end.
START_TEST(endless_zeros)
{
    static int16_t x[1 << 16];
    bits out = {0};
    lin_error err = {0};
    put_fields(&out, SHORTEN_S16HL, 1, 65535, 0, 0, 0);
    for (int i = 0; i < 64; i++) bits_put_uvar(&out, SHORTEN_ZERO, 2); // 40 bytes
    out.n--; // the last byte may not be full
    feed f = {.bytes = out.data, .n = out.n, .most = 100, .repeat = 20};
    lin_shorten *s;
    int n;
    int64_t total = 0;
    assert_ok(lin_shorten_open(give, &f, &s, &err), err);
    lin_status status;
    while ((status = lin_shorten_read(s, x, 1 << 16, &n, &err)) == LIN_OK && n > 0) total += n;
    ck_assert_int_eq(status, LIN_FORMAT);
    ck_assert_msg(total < 100 << 20, "%lld", (long long)total);
    lin_shorten_close(s);
    free(out.data);
}
END_TEST

// A stream cut at any byte is an error, except within the zeros at its end; the frames before are those of the whole.
START_TEST(cut_at_any_byte)
{
    static int16_t x[2 * N], y[2 * N];
    shorten_options o = shorten_options_default();
    o.channels = 2;
    o.block = 50;
    bits out = {0};
    fill(x, 300, 2, 1);
    shorten_encode(&out, x, 300, &o);
    for (size_t cut = 0; cut + 4 < out.n; cut++) {
        unsigned char *exact = malloc(cut + 1); // for the sanitizer
        memcpy(exact, out.data, cut);
        feed f = {.bytes = exact, .n = cut, .most = 1000};
        lin_error err = {0};
        int channels;
        test_require(decode(&f, y, N, &channels, &err) == -1, "cut at %zu of %zu", cut, out.n);
        free(exact);
    }
    free(out.data);
}
END_TEST

// Any single changed bit: an end, an error, but bounded work and nothing undefined.
START_TEST(flipped_bits)
{
    static int16_t x[2 * N], y[1 << 17];
    shorten_options o = shorten_options_default();
    o.lpc_order = 8;
    bits out = {0};
    fill(x, 700, 1, 2);
    shorten_encode(&out, x, 700, &o);
    for (size_t bit = 0; bit < 8 * out.n; bit++) {
        out.data[bit / 8] ^= (unsigned char)(128 >> bit % 8);
        feed f = {.bytes = out.data, .n = out.n, .most = 1000};
        lin_error err = {0};
        lin_shorten *s;
        if (lin_shorten_open(give, &f, &s, &err) == LIN_OK) {
            int n;
            int64_t total = 0;
            while (lin_shorten_read(s, y, 1000, &n, &err) == LIN_OK && n > 0) total += n;
            test_require(total < 1 << 24, "%lld frames", (long long)total);
            lin_shorten_close(s);
        }
        out.data[bit / 8] ^= (unsigned char)(128 >> bit % 8);
    }
    free(out.data);
}
END_TEST

static lin_status broken_disk(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err)
{
    feed *f = context;
    if (f->at > 100) return lin_fail(err, LIN_IO, "the disk is broken");
    return give(context, bytes, capacity, n, err);
}

START_TEST(errors_of_the_reader)
{
    static int16_t x[N];
    bits out = {0};
    shorten_options o = shorten_options_default();
    fill(x, N, 1, 1);
    shorten_encode(&out, x, N, &o);
    feed f = {.bytes = out.data, .n = out.n, .most = 50};
    lin_error err = {0};
    lin_shorten *s;
    int n;
    lin_status status;
    assert_ok(lin_shorten_open(broken_disk, &f, &s, &err), err);
    while ((status = lin_shorten_read(s, x, N, &n, &err)) == LIN_OK && n > 0) continue;
    ck_assert_int_eq(status, LIN_IO);
    ck_assert_str_eq(err.message, "the disk is broken");
    lin_shorten_close(s);
    lin_shorten_close(NULL);
    FAIL_EVERY_ALLOCATION((f.at = 0, lin_shorten_open(give, &f, &s, &err)), lin_shorten_close(s));
    free(out.data);
}
END_TEST

TEST_MAIN("frontend/shorten", TEST(what_ffmpeg_decodes), TESTS(every_function_in_every_version, 0, 18), TEST(bytes_held),
          TEST(shifts_and_clips), TEST(rounded_means), TEST(mulaw_ranks), TEST(mulaw_codes), TEST(refused_headers),
          TEST(refused_streams), TEST(channels_that_do_not_match), TEST(endless_zeros), TEST(cut_at_any_byte), TEST(flipped_bits),
          TEST(errors_of_the_reader))
