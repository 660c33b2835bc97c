// Detecting formats from first bytes: nothing is taken for a file that is not one, and the header of a WAV file cut at any byte.
#include "frontend/sniff.h"

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
        {"\1\2\3\4\5\6\7\10WAVE", 12, LIN_SNIFF_UNKNOWN, ""}, // the word alone is no signature
        {"NIST_1A\n   1024\n", 16, LIN_SNIFF_SNDFILE, "a NIST SPHERE file"},
        {"ajkg\2", 5, LIN_SNIFF_MEDIA, "a shorten file"},
        {"fLaC", 4, LIN_SNIFF_SNDFILE, "a FLAC file"},
        {"\0\0\0\30ftypM4A ", 12, LIN_SNIFF_MEDIA, "an MPEG-4 file (m4a, mp4, mov)"},
        {"\x1a\x45\xdf\xa3", 4, LIN_SNIFF_MEDIA, "a Matroska file (webm, mkv)"},
        {"#EXTM3U\nhttp://", 15, LIN_SNIFF_NO_SOUND, "a playlist"},
        {"ffconcat version 1.0\n", 21, LIN_SNIFF_NO_SOUND, "a playlist"},
        {"%PDF-1.7\n\x80", 10, LIN_SNIFF_NO_SOUND, "a PDF document"},
        {"\xd4\xc3\xb2\xa1\2\0\4\0", 8, LIN_SNIFF_NO_SOUND, "a capture of a network"},
        {"\n\r\r\n\x1c\0\0\0", 8, LIN_SNIFF_NO_SOUND, "a capture of a network"},
        {"it was a dark night\n", 20, LIN_SNIFF_NO_SOUND, "text"},
        {"d\xc3\xa9j\xc3\xa0 v\xc3", 9, LIN_SNIFF_NO_SOUND, "text"}, // cut within a character
        {"d\xc3\xa9j\xc3(", 6, LIN_SNIFF_UNKNOWN, ""},               // no UTF-8
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

// The values in a header are known before libsndfile reads the file.
START_TEST(claims)
{
    unsigned char b[64] = {0};
    int64_t rate_hz, channels;
    lin_error err = {0};
    lin_audio *audio;
    size_t n = wav(b, 1, 60000, 2000000000, 16, 1000);
    lin_sniff_claims(b, n, &rate_hz, &channels);
    ck_assert(rate_hz == 2000000000 && channels == 60000);
    assert_fails(lin_audio_open(write_bytes("absurd.wav", b, n), NULL, &audio, &err), LIN_UNSUPPORTED, err, "2000000000 Hz");
    wav(b, 1, 60000, 16000, 16, 1000);
    assert_fails(lin_audio_open(write_bytes("absurd.wav", b, n), NULL, &audio, &err), LIN_UNSUPPORTED, err, "60000 channels");
    memcpy(b, ".snd\0\0\0\30\xff\xff\xff\xff\0\0\0\3\0\0\x3e\x80\xff\xff\xff\xff", 24);
    lin_sniff_claims(b, 24, &rate_hz, &channels);
    ck_assert(rate_hz == 16000 && channels == 0xffffffff);
    assert_fails(lin_audio_open(write_bytes("absurd.au", b, 40), NULL, &audio, &err), LIN_UNSUPPORTED, err, "channels; 1 to 64");
    memcpy(b, "fLaC\0\0\0\42\x10\0\x10\0\0\0\0\0\0\0\x9f\xff\xf2\xf0", 22); // 655,359 Hz
    lin_sniff_claims(b, 22, &rate_hz, &channels);
    ck_assert(rate_hz == 655359 && channels == 2);
    memcpy(b, "FORM\0\0\0\0AIFFCOMM\0\0\0\22\0\2\0\0\0\0\0\20\x40\x0e\xac\x44\0\0\0\0\0\0", 38);
    lin_sniff_claims(b, 38, &rate_hz, &channels);
    ck_assert(rate_hz == 44100 && channels == 2);
    for (size_t cut = 0; cut < 22; cut++) {
        lin_sniff_claims(b, cut, &rate_hz, &channels);
        ck_assert(rate_hz == 0 && channels == 0);
    }
}
END_TEST

static void remove_files(void) { remove_temp_folder(); }

TEST_MAIN_WITH(NULL, remove_files, "frontend/sniff", TEST(signatures), TEST(frames_without_a_file), TEST(samples_are_no_file),
               TEST(wav_headers), TEST(claims))
