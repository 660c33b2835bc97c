// Opus in Ogg as it arrives, against libsndfile's reading of the same bytes as a file: any pieces, rates, chains; damage and
// hostile pages.
#include "serve/ogg_opus.h"

#include <sndfile.h>

#include "base/memory.h"
#include "frontend/audio.h"
#include "tests/lexicon/support.h"
#include "tests/ogg.h"

enum { SECONDS = 2, MOST = 48000 * SECONDS + 48000 };

typedef struct bytes {
    unsigned char data[1 << 18];
    size_t n;
} bytes;

static bytes file, chain;
static float got[MOST];
static double want[MOST];
static lin_error failure;

// Tones that rise, n samples of each channel; then what libsndfile reads of it: the number of samples in `want`.
static int make(bytes *to, int rate, int channels, int n)
{
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = SF_FORMAT_OGG | SF_FORMAT_OPUS};
    const char *path = test_path("x.opus");
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    ck_assert_msg(f != NULL, "%s", sf_strerror(NULL));
    for (int i = 0; i < n; i++) {
        const double t = (double)i / rate;
        const float frame[2] = {(float)(0.4 * sin(6.283 * (200 + 300 * t) * t)), (float)(0.4 * sin(6.283 * (200 + 300 * t) * t))};
        ck_assert_int_eq(sf_writef_float(f, frame, 1), 1);
    }
    sf_close(f);
    to->n = test_read_file(path, to->data, sizeof to->data);
    info = (SF_INFO){0};
    f = sf_open(path, SFM_READ, &info);
    ck_assert(f != NULL && info.samplerate == rate);
    static float frames[2 * MOST];
    const int read = (int)sf_readf_float(f, frames, MOST);
    sf_close(f);
    for (int i = 0; i < read; i++)
        want[i] = channels == 1 ? (double)frames[i] : ((double)frames[2 * i] + (double)frames[2 * i + 1]) / 2;
    return read;
}

// All that comes of the bytes, pushed in pieces of 1 to `most`, into `got`: their number.
static int decode(const unsigned char *data, size_t n, int rate, size_t most, lin_status *status)
{
    lin_ogg_opus *opus;
    int total = 0, made;
    OK(lin_ogg_opus_create(rate, &opus, &failure));
    *status = LIN_OK;
    for (size_t from = 0, k = 0; from < n && *status == LIN_OK; k++) {
        size_t piece = 1 + lin_random_below(5, k, (uint32_t)most);
        if (piece > n - from) piece = n - from;
        OK(lin_ogg_opus_push(opus, data + from, piece, &failure));
        from += piece;
        for (;;) {
            float samples[LIN_OGG_OPUS_MOST];
            *status = lin_ogg_opus_take(opus, samples, &made, &failure);
            if (*status != LIN_OK || made == 0) break;
            test_require(total + made <= MOST, "too many samples");
            memcpy(got + total, samples, (size_t)made * sizeof *samples);
            total += made;
        }
    }
    lin_ogg_opus_destroy(opus);
    return total;
}

START_TEST(as_a_file)
{
    static const int rates[] = {48000, 16000, 24000, 8000, 12000, 16000};
    const int rate = rates[_i], channels = _i == 5 ? 2 : 1, n = make(&file, rate, channels, rate * SECONDS - 777);
    lin_status status;
    ck_assert_int_eq(n, rate * SECONDS - 777);
    for (size_t most = 1; most < 100000; most *= 37) {
        ck_assert_int_eq(decode(file.data, file.n, rate, most, &status), n);
        ck_assert_int_eq(status, LIN_OK);
        test_close_f32("samples", got, want, (size_t)n, channels == 1 ? 1e-6 : 2e-3);
    }
}
END_TEST

START_TEST(chains)
{
    lin_status status;
    const int n = make(&chain, 16000, 1, 16000), more = make(&file, 16000, 1, 9000);
    memcpy(chain.data + chain.n, file.data, file.n);
    // The second stream has another serial number.
    for (size_t i = 0, size; (size = test_ogg_page(file.data + i, file.n - i)) != 0; i += size) chain.data[chain.n + i + 14] ^= 1;
    test_ogg_checksums(chain.data, chain.n + file.n);
    ck_assert_int_eq(decode(chain.data, chain.n + file.n, 16000, 300, &status), n + more);
    ck_assert_int_eq(status, LIN_OK);
    test_close_f32("the second", got + n, want, (size_t)more, 1e-6);
}
END_TEST

static void refused(const char *what, const unsigned char *data, size_t n, lin_status wanted, const char *message)
{
    lin_status status;
    decode(data, n, 16000, 4000, &status);
    test_require(status == wanted, "%s: %s", what, lin_status_name(status));
    if (wanted != LIN_OK) test_require(strstr(failure.message, message) != NULL, "%s: %s", what, failure.message);
}

START_TEST(damage)
{
    static unsigned char copy[1 << 18];
    lin_ogg_opus *opus;
    make(&file, 16000, 1, 16000);
    const size_t first = test_ogg_page(file.data, file.n), second = test_ogg_page(file.data + first, file.n - first);
    ck_assert(first && second);
    refused("a WAV file", (const unsigned char *)"RIFF....WAVEfmt ............................", 44, LIN_FORMAT, "not Ogg");
    for (size_t cut = 0; cut < file.n; cut += 101) refused("a cut", file.data, cut, LIN_OK, "");
    for (size_t i = 0; i < file.n; i += 173) {
        memcpy(copy, file.data, file.n);
        copy[i] ^= 0x10;
        lin_status status;
        decode(copy, file.n, 16000, 4000, &status);
        test_require(status == LIN_FORMAT || (status == LIN_OK && i + 300 > file.n), "byte %zu: %s", i, lin_status_name(status));
    }
    refused("without its beginning", file.data + first, file.n - first, LIN_FORMAT, "no stream");
    memcpy(copy, file.data, file.n);
    memcpy(copy + first, file.data, first); // one more stream begins
    refused("two streams", copy, 2 * first, LIN_UNSUPPORTED, "several streams");
    memcpy(copy, file.data, file.n);
    copy[first + 27 + copy[first + 26]] = 'X';
    test_ogg_checksums(copy, file.n);
    refused("no tags", copy, file.n, LIN_FORMAT, "tags");
    memcpy(copy, file.data, file.n);
    copy[28 + 9] = 6; // channels
    test_ogg_checksums(copy, file.n);
    refused("six channels", copy, file.n, LIN_UNSUPPORTED, "6 channels");
    copy[28] = 'X';
    test_ogg_checksums(copy, file.n);
    refused("another codec", copy, file.n, LIN_FORMAT, "not Opus");
    ck_assert_int_eq(lin_ogg_opus_create(44100, &opus, &failure), LIN_INVALID);
    ck_assert_ptr_null(opus);
}
END_TEST

// Tags whose packet goes on from page to page: memory stays bounded.
START_TEST(a_packet_without_end)
{
    static unsigned char page[27 + 255 + 255 * 255];
    lin_ogg_opus *opus;
    float samples[LIN_OGG_OPUS_MOST];
    int n;
    make(&file, 16000, 1, 1600);
    const size_t first = test_ogg_page(file.data, file.n);
    memcpy(page, file.data, 27);
    page[26] = 255;
    memset(page + 27, 255, 255);
    memcpy(page + 27 + 255, "OpusTags", 8);
    OK(lin_ogg_opus_create(16000, &opus, &failure));
    OK(lin_ogg_opus_push(opus, file.data, first, &failure));
    lin_status status = LIN_OK;
    int pages = 0;
    for (; pages < 100 && status == LIN_OK; pages++) {
        page[5] = pages > 0; // continued
        page[18] = (unsigned char)(pages + 1);
        test_ogg_checksums(page, sizeof page);
        OK(lin_ogg_opus_push(opus, page, sizeof page, &failure));
        status = lin_ogg_opus_take(opus, samples, &n, &failure);
    }
    ck_assert_int_eq(status, LIN_FORMAT);
    ck_assert_int_le(pages, LIN_OGG_OPUS_PACKET / (255 * 255) + 2);
    lin_ogg_opus_destroy(opus);
}
END_TEST

// Random packets behind a head with the largest gain: up to 6e18, which no part of the program takes for sound.
START_TEST(loud_packets)
{
    static unsigned char data[1 << 18];
    int refusals = 0;
    make(&file, 16000, 1, 1600);
    const size_t first = test_ogg_page(file.data, file.n), second = test_ogg_page(file.data + first, file.n - first);
    for (uint32_t trial = 0; trial < 100; trial++) {
        size_t n = first + second;
        memcpy(data, file.data, n);
        data[28 + 16] = 0xff;
        data[28 + 17] = 0x7f;
        for (int k = 0; k < 100; k++, n += 28 + 250) {
            memcpy(data + n, file.data, 27);
            data[n + 5] = 0; // neither first nor last
            memset(data + n + 6, 0xff, 8); // no position
            data[n + 18] = (unsigned char)(k + 2);
            data[n + 26] = 1;
            data[n + 27] = 250;
            for (size_t i = 0; i < 250; i++)
                data[n + 28 + i] = (unsigned char)lin_random_below(trial, 1000 * (uint64_t)k + i, 256);
            data[n + 28] &= 0xfc; // one frame a packet
        }
        test_ogg_checksums(data, n);
        lin_status status;
        const int made = decode(data, n, 16000, 4000, &status);
        test_require(status == LIN_OK || strstr(failure.message, "damaged"), "%s", failure.message);
        test_require(lin_audio_find_bad(got, (size_t)made) == (size_t)made, "trial %u gives what is no sound", trial);
        refusals += status != LIN_OK;
    }
    ck_assert_int_gt(refusals, 0);
}
END_TEST

int main(void)
{
    const test_entry tests[] = {TESTS(as_a_file, 0, 6), TEST(chains), TEST(damage), TEST(a_packet_without_end),
                                TEST(loud_packets)};
    return test_all("serve/ogg_opus", NULL, NULL, NULL, NULL, tests, lin_ogg_opus_exists() ? sizeof tests / sizeof *tests : 0);
}
