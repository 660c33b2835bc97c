// Detecting formats from first bytes: nothing is taken for a file that is not one; headers of WAV files cut at any byte; where
// made-up containers end that are joined, cut off, or followed by tags and junk.
#include "frontend/sniff.h"

#include <fcntl.h>

#include "base/hash.h"
#include "tests/frontend/support.h"

static lin_sniffed kind_of(const void *bytes, size_t n, const char **what) { return lin_sniff(bytes, n, what); }

START_TEST(signatures)
{
    static const struct {
        const char *bytes;
        size_t n;
        lin_sniffed kind;
        const char *what;
    } cases[] = {
        {"RIFF\0\0\0\0WAVE", 12, LIN_SNIFF_SNDFILE, "a WAV file"},
        {"RF64\0\0\0\0WAVE", 12, LIN_SNIFF_SNDFILE, "a WAV file"},
        {"FORM\0\0\0\0AIFF", 12, LIN_SNIFF_SNDFILE, "an AIFF file"},
        {"RIFF\0\0\0\0AVI ", 12, LIN_SNIFF_MEDIA, "an AVI file"},
        {"FORM\0\0\0\0" "8SVX", 12, LIN_SNIFF_MEDIA, "an IFF file"}, // of two channels, libsndfile reads noise
        {"\1\2\3\4\5\6\7\10WAVE", 12, LIN_SNIFF_UNKNOWN, ""}, // the word alone is no signature
        {"NIST_1A\n   1024\n", 16, LIN_SNIFF_SNDFILE, "a NIST SPHERE file"},
        {"ajkg\2", 5, LIN_SNIFF_MEDIA, "a shorten file"},
        {"fLaC", 4, LIN_SNIFF_SNDFILE, "a FLAC file"},
        {"\0\0\0\30ftypM4A ", 12, LIN_SNIFF_MEDIA, "an MPEG-4 file (m4a, mp4, mov)"},
        {"\x1a\x45\xdf\xa3", 4, LIN_SNIFF_MEDIA, "a Matroska file (webm, mkv)"},
        {"NIST_1A\n   1024\nsample_coding -s26 pcm,embedded-shorten-v2.00", 60, LIN_SNIFF_MEDIA,
         "a NIST SPHERE file compressed with shorten"},
        {"#EXTM3U\nhttp://", 15, LIN_SNIFF_TEXT, "text"}, // a playlist could make another program open the files that it names
        {"it was a dark night\n", 20, LIN_SNIFF_TEXT, "text"},
        {"d\xc3\xa9j\xc3\xa0 v\xc3", 9, LIN_SNIFF_TEXT, "text"}, // cut within a character
        {"it\xc2\x92s late", 10, LIN_SNIFF_TEXT, "text"},         // an apostrophe of Windows, converted badly
        {"d\xc3\xa9j\xc3(", 6, LIN_SNIFF_UNKNOWN, ""},           // no UTF-8
        {"dark\xff", 5, LIN_SNIFF_UNKNOWN, ""},                   // nor the beginning of a character
        {"dark\0", 5, LIN_SNIFF_UNKNOWN, ""},
        {"\0\0\0\0\0\0\0\0", 8, LIN_SNIFF_UNKNOWN, ""},
        {"", 0, LIN_SNIFF_UNKNOWN, ""},
    };
    const char *what;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(kind_of(cases[i].bytes, cases[i].n, &what) == cases[i].kind, "case %zu: %s", i, what);
        ck_assert_str_eq(what, cases[i].what);
    }
}
END_TEST

START_TEST(frames_without_a_file)
{
    static unsigned char b[2048];
    const char *what;
    // MPEG-1 layer III, 128 kb/s, 44.1 kHz: frames of 417 bytes. One alone is chance.
    memcpy(b, "\xff\xfb\x90\x64", 4);
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_UNKNOWN);
    memcpy(b + 417, "\xff\xfb\x92\x64", 4);
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_SNDFILE);
    ck_assert_str_eq(what, "an MP3 file");
    memcpy(b + 417, "\xff\xfb\x96\x64", 4); // of another rate
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_UNKNOWN);
    // ADTS: frames of 300 bytes.
    memset(b, 0, sizeof b);
    memcpy(b, "\xff\xf1\x50\x80\x25\x80\xfc", 7);
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_UNKNOWN);
    memcpy(b + 300, "\xff\xf1\x50\x80\x25\x80\xfc", 7);
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_MEDIA);
    ck_assert_str_eq(what, "an AAC file");
    memset(b, 0, sizeof b);
    for (int i = 0; i < 4; i++) b[188 * i] = 0x47;
    ck_assert_int_eq(kind_of(b, sizeof b, &what), LIN_SNIFF_MEDIA);
}
END_TEST

// Headerless sound of any loudness is never taken for a file, and is taken for noise only if it is noise.
START_TEST(samples_are_no_file)
{
    static int16_t x[1024];
    const char *what;
    for (uint64_t k = 0; k < 20000; k++) {
        const double level = pow(10, 4.4 * lin_random_uniform(k, 0)), hz = 60 + 3000 * lin_random_uniform(k, 1);
        const int noisy = k % 2; // half of them hiss, a tenth as loud as speech may be
        for (int i = 0; i < 1024; i++)
            x[i] = (int16_t)(noisy ? 0.1 * level * (2 * lin_random_uniform(k, (uint64_t)i + 2) - 1)
                                   : level * sin(TWO_PI * hz * i / 16000));
        test_require(kind_of(x, sizeof x, &what) == LIN_SNIFF_UNKNOWN, "%llu is %s", (unsigned long long)k, what);
        test_require(!lin_sniff_is_noise((const unsigned char *)x, sizeof x), "%llu is noise", (unsigned long long)k);
    }
    for (int i = 0; i < 1024; i++) x[i] = (int16_t)lin_random_bits(5, (uint64_t)i);
    ck_assert_int_eq(lin_sniff_is_noise((const unsigned char *)x, sizeof x), 1);
}
END_TEST

static size_t wav(unsigned char *b, int tag, int channels, int rate, int bits, uint32_t bytes)
{
    static const unsigned char head[48] = "RIFF\xff\xff\xff\xffWAVELIST\4\0\0\0INFOfmt \x10\0\0\0";
    const uint32_t fields[] = {(uint32_t)tag | (uint32_t)channels << 16, (uint32_t)rate, 0,
                               (uint32_t)(channels * bits / 8) | (uint32_t)bits << 16};
    memcpy(b, head, 32);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) b[32 + 4 * i + k] = (unsigned char)(fields[i] >> (8 * k));
    memcpy(b + 48, "data", 4);
    for (int k = 0; k < 4; k++) b[52 + k] = (unsigned char)(bytes >> (8 * k));
    return 56;
}

START_TEST(wav_headers)
{
    unsigned char b[64];
    lin_wav w;
    const size_t n = wav(b, 1, 2, 44100, 16, 1000);
    for (size_t cut = 0; cut < n; cut++) ck_assert_int_eq(lin_wav_find(b, cut, &w), 0);
    ck_assert_int_eq(lin_wav_find(b, n, &w), 1);
    ck_assert(w.at == n && w.bytes == 1000 && w.pcm.rate_hz == 44100 && w.pcm.channels == 2 && w.pcm.encoding == LIN_PCM_S16LE);
    wav(b, 3, 1, 8000, 32, 0xffffffff);
    ck_assert_int_eq(lin_wav_find(b, n, &w), 1);
    ck_assert(w.bytes == -1 && w.pcm.encoding == LIN_PCM_F32LE);
    for (uint32_t length = 0x7f000000; length >= 0x7f000000; length += 0x10000000) {
        wav(b, 1, 1, 8000, 16, length);
        ck_assert_int_eq(lin_wav_find(b, n, &w), 1);
        ck_assert(w.bytes == (length == 0x7f000000 ? -1 : (int64_t)length));
    }
    // RF64: the length is in another chunk; 0: a pipe, whose writer did not know it.
    unsigned char big[120] = "RF64\xff\xff\xff\xffWAVEds64\x1c";
    for (int k = 0; k < 2; k++) {
        wav(b, 1, 1, 8000, 16, 0xffffffff);
        memcpy(big + 48, b + 12, n - 12);
        big[32] = k ? 6 : 0; // 6 GiB
        for (size_t cut = 0; cut < n + 36; cut++) ck_assert_int_eq(lin_wav_find(big, cut, &w), 0);
        ck_assert_int_eq(lin_wav_find(big, n + 36, &w), 1);
        ck_assert(w.at == n + 36 && w.bytes == (k ? INT64_C(6) << 32 : -1));
    }
    wav(b, 2, 1, 8000, 4, 1000); // ADPCM
    ck_assert_int_eq(lin_wav_find(b, n, &w), -1);
    wav(b, 1, 1, 8000, 64, 1000);
    ck_assert_int_eq(lin_wav_find(b, n, &w), -1);
    b[16] = 0xff, b[17] = 0xff, b[18] = 0xff, b[19] = 0xff; // a chunk of 4 GiB before the samples
    ck_assert_int_eq(lin_wav_find(b, n, &w), -1);
    ck_assert_int_eq(lin_wav_find((const unsigned char *)"fLaC and so on", 14, &w), -1);
}
END_TEST

/* ---- the end of a file ----------------------------------------------------------------------------------------------------- */

static unsigned char bytes[1 << 16];
static size_t n_bytes;

static void clear(void) { n_bytes = 0; }

static void add(const void *b, size_t n)
{
    memcpy(bytes + n_bytes, b, n);
    n_bytes += n;
}

static void add_text(const char *text) { add(text, strlen(text)); }

static void add_number(uint64_t x, int n, int big)
{
    for (int i = 0; i < n; i++) {
        const unsigned char b = (unsigned char)(x >> 8 * (big ? n - 1 - i : i));
        add(&b, 1);
    }
}

// Never zero, never a name of a chunk.
static void add_sound(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char b = (unsigned char)(0x80 + (i * 7 + n) % 90);
        add(&b, 1);
    }
}

static lin_sniff_file file;

static void store(void)
{
    file.size = (int64_t)n_bytes;
    close(file.fd);
    file.fd = open(test_file("x", bytes, n_bytes), O_RDONLY | O_CLOEXEC);
}

static int64_t end_of(int64_t from, int *faults)
{
    store();
    return lin_sniff_end(&file, from, faults);
}

// Another file that begins in the same way, whatever its length.
START_TEST(joined)
{
    static const struct {
        const char *bytes;
        size_t n;
    } begins[] = {{"RIFX\1\2\3\4WAVEfmt ", 16},
                  {"FORM\1\2\3\4AIFFCOMM", 16},
                  {"caff\0\1\0\0desc\0\0\0\0", 16},
                  {".snd\0\0\0\30\1\2\3\4\0\0\0\3\0\0\x3e\x80\0\0\0\1", 24},
                  {"fLaC\0\0\0\42\20\0\20\0", 12},
                  {"\0\0\0\30ftypM4A \0\0\0\0", 16},
                  {"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", 12}};
    int faults;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        clear();
        add(begins[i].bytes, begins[i].n);
        add_sound(40000);
        add(begins[i].bytes, 4); // by chance
        add_sound(100);
        const size_t next = n_bytes;
        ck_assert_int_eq(end_of(0, &faults), (int64_t)next);
        add(begins[i].bytes, begins[i].n);
        add_sound(40);
        ck_assert_msg(end_of(0, &faults) == (int64_t)next, "case %zu", i);
        ck_assert_int_eq(end_of((int64_t)next, &faults), (int64_t)n_bytes);
    }
    clear();
    add_sound(1000); // not known
    ck_assert_int_eq(end_of(0, &faults), 1000);
}
END_TEST

static void check_samples(int64_t at, int64_t n, int64_t frames)
{
    store();
    const lin_sniff_samples s = lin_sniff_find_samples(&file, 0);
    ck_assert_msg((n < 0 || s.at == at) && s.bytes == n && s.frames == frames, "%lld %lld %lld", (long long)s.at,
                  (long long)s.bytes, (long long)s.frames);
}

START_TEST(samples_of_headers)
{
    const uint32_t lengths[] = {100, 0xffffffff, 0x7ffff000, 0x7fffffff, 0x7f000008, 0x80000000, 0, 3000000000u};
    for (int i = 0; i < 8; i++) {
        const int64_t n = i == 0 || i == 7 ? (int64_t)lengths[i] : -1; // the others: not known
        clear();
        add_text("FORM");
        add_number(54, 4, 1);
        add_text("AIFFNAME");
        add_number(3, 4, 1);
        add("abc", 4);
        add_text("SSND");
        add_number(lengths[i], 4, 1);
        add_sound(100);
        check_samples(32, n, -1);
        clear();
        add(".snd\0\0\0\30", 8);
        add_number(lengths[i], 4, 1);
        add_sound(112);
        check_samples(24, n, -1);
    }
    clear();
    add_text("NIST_1A\n   1024\nsample_count -i 50\nsample_n_bytes -i 2\nchannel_count -i 2\nend_head\n");
    add_sound(1024 - n_bytes);
    add_sound(200);
    check_samples(1024, 200, 50);
    n_bytes = 1024 + 100; // the first Switchboard releases count the samples of both channels
    check_samples(1024, 100, 25);
    clear();
    add("Creative Voice File\x1a\x1a\0\x14\1\x1f\x11\1\x0e\0\0\xa6\0", 32); // 14 bytes: 2 of format, 12 samples
    add_sound(12);
    add("\2\100\0\0", 4); // 64 samples more
    add_sound(64);
    add("\0", 1);
    check_samples(26, 18 + 68, -1);
    clear();
    add_text("LIST");
    add_number(4, 4, 0);
    add_text("INFO");
    store();
    ck_assert_int_eq(lin_sniff_is_chunk(&file, 0), 1);
    ck_assert_int_eq(lin_sniff_is_chunk(&file, 4), 0);
    ck_assert_int_eq(lin_sniff_is_chunk(&file, 12), 1); // the end
}
END_TEST

static void add_page(int kind, uint32_t serial, uint32_t number, unsigned char size)
{
    add("OggS\0", 5);
    add_number((uint64_t)kind, 1, 0);
    add_number(number * 960, 8, 0);
    add_number(serial, 4, 0);
    add_number(number, 4, 0);
    add_number(0, 4, 0);
    add_number(1, 1, 0);
    add(&size, 1);
    add_sound(size);
}

// Pages "kind serial number size" behind those before. Returns where the first of them begins.
static int64_t add_pages(const char *pages)
{
    const int64_t at = (int64_t)n_bytes;
    unsigned kind, serial, number, size;
    for (int n; sscanf(pages, "%u %u %u %u,%n", &kind, &serial, &number, &size, &n) == 4; pages += n)
        add_page((int)kind, serial, number, (unsigned char)size);
    return at;
}

static void check_end(int64_t want, int want_faults)
{
    int faults;
    ck_assert_int_eq(end_of(0, &faults), want);
    ck_assert_int_eq(faults, want_faults);
}

START_TEST(ogg)
{
    int faults;
    clear();
    add_pages("2 7 0 100, 0 7 1 100, 0 7 2 100, 0 7 3 100, 0 7 4 100,");
    check_end(5 * 128, 0);
    add_pages("2 9 0 50, 0 9 1 50,");
    check_end(5 * 128, 0);
    ck_assert_int_eq(end_of(5 * 128, &faults), (int64_t)n_bytes);
    clear(); // two streams at once
    add_pages("2 1 0 10, 2 2 0 10, 0 1 1 10, 0 2 1 10,");
    check_end(add_pages("2 3 0 10,"), 0);
    clear(); // a page is missing
    add_pages("2 7 0 10, 0 7 1 10, 0 7 3 10,");
    check_end((int64_t)n_bytes, LIN_SNIFF_GAP);
    clear(); // after the headers that is no loss
    add_pages("2 7 0 10, 0 7 3 10,");
    check_end((int64_t)n_bytes, 0);
    clear(); // the first is cut off within a page, and another follows
    add_pages("2 7 0 10, 0 7 1 200,");
    n_bytes -= 100;
    check_end(add_pages("2 8 0 10, 0 8 1 10,"), LIN_SNIFF_GAP | LIN_SNIFF_CUT);
    clear(); // nothing follows
    add_pages("2 7 0 10, 0 7 1 200,");
    n_bytes -= 100;
    check_end((int64_t)n_bytes, LIN_SNIFF_CUT);
    clear(); // junk
    add_pages("2 7 0 10, 0 7 1 10,");
    add_sound(1000);
    check_end((int64_t)n_bytes, LIN_SNIFF_GAP);
}
END_TEST

// What is no sound at the end of a file without lengths.
START_TEST(tags_and_padding)
{
    int faults;
    clear();
    add_sound(1000);
    add_text("TAG");
    add_sound(125);
    memset(bytes + n_bytes, 0, 5000);
    n_bytes += 5000;
    ck_assert_int_eq(end_of(0, &faults), 1000);
    ck_assert_int_eq(lin_sniff_skip_tags(&file, 1000), (int64_t)n_bytes);
    add_sound(1);
    store();
    ck_assert_int_eq(lin_sniff_skip_tags(&file, 1000), 6128);
    clear();
    add_sound(1000);
    for (int i = 0; i < 2; i++) { // a header and a footer
        if (i) add_sound(40);
        add_text("APETAGEX");
        add_number(2000, 4, 0);
        add_number(40 + 32, 4, 0);
        add_number(1, 4, 0);
        add_number(i ? 0x80000000 : 0xa0000000, 4, 0);
        add_number(0, 8, 0);
    }
    ck_assert_int_eq(end_of(0, &faults), 1000);
    ck_assert_int_eq(lin_sniff_skip_tags(&file, 1000), (int64_t)n_bytes);
}
END_TEST

static void no_file(void) { file.fd = -1; }

TEST_MAIN_WITH(no_file, NULL, "frontend/sniff", TEST(signatures), TEST(frames_without_a_file), TEST(samples_are_no_file),
               TEST(wav_headers), TEST(joined), TEST(samples_of_headers), TEST(ogg), TEST(tags_and_padding))
