// NIST SPHERE: headers of real corpora and broken ones, samples in every coding from files and pipes, and the check of their
// count and checksum.
#include "frontend/sphere.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sndfile.h>

#include "frontend/audio.h"
#include "frontend/sniff.h"
#include "tests/frontend/shorten_encoder.h"
#include "tests/frontend/support.h"

enum { N = 4000 };

static void remove_files(void) { remove_temp_folder(); }

/* ---- headers --------------------------------------------------------------------------------------------------------------- */

// A header of as many bytes as `length` says, at least 1024.
static size_t make_header(unsigned char *b, const char *length, const char *fields)
{
    const size_t n = atoi(length) < 1024 ? 1024 : (size_t)atoi(length);
    memset(b, ' ', n);
    const int used = snprintf((char *)b, n, "NIST_1A\n%s\n%s", length, fields);
    b[used] = ' ';
    return n;
}

static lin_status parse(const char *length, const char *fields, lin_sphere *sphere, lin_error *err)
{
    static unsigned char b[1 << 17];
    int more;
    const size_t n = make_header(b, length, fields);
    const lin_status status = lin_sphere_parse(b, n, sphere, &more, err);
    ck_assert(status != LIN_OK || !more);
    return status;
}

// The fields that matter; the first one is of a disc of wsj1.
START_TEST(headers_of_corpora)
{
    static const struct {
        const char *length, *fields;
        lin_sphere want;
    } cases[] = {
        {"   1024",
         "microphone -s21     Sennheiser HMD414\nrecording_site -s4  SRI\ndatabase_id -s8     wsj1\nutterance_id -s8 460a0101\n"
         "sample_count -i 16000\nsample_min -i -560\nchannel_count -i 1\nsample_rate -i 16000\nsample_n_bytes -i 2\n"
         "sample_byte_format -s2 10\nsample_coding -s26 pcm,embedded-shorten-v1.09\nrealvalue -r 99.900000\n"
         "sample_checksum -i 21647\nend_head\n\n\n",
         {1024, 16000, 1, LIN_SPHERE_PCM, 2, 0, 1, 16000, 21647}},
        {"   1024", "sample_rate -i 16000\nsample_count -i 5\nsample_n_bytes -i 2\nsample_byte_format -s2 01\nend_head\n",
         {1024, 16000, 1, LIN_SPHERE_PCM, 2, 0, 0, 5, -1}},
        {"   4096", "SAMPLE_RATE -I 8000\nSAMPLE_CODING -S3 PCM\nCHANNEL_COUNT -I 2\nSAMPLE_BYTE_FORMAT -S2 10\nEND_HEAD\n",
         {4096, 8000, 2, LIN_SPHERE_PCM, 2, 1, 0, -1, -1}},
        {"   1024",
         "sample_rate -r 8000.0000\r\nsample_coding -s4 ulaw\r\nchannel_count -i 2\r\nchannels_interleaved -s4 TRUE\r\n"
         "sample_n_bytes -i 1\r\nsample_byte_format -s1 1\r\nend_head\r\n",
         {1024, 8000, 2, LIN_SPHERE_MULAW, 1, 0, 0, -1, -1}},
        {"   1024", "; a comment\nsample_rate -i 20000\nsample_coding -s6 mu-law\nsample_count -i 7\nend_head\n",
         {1024, 20000, 1, LIN_SPHERE_MULAW, 1, 0, 0, 7, -1}},
        {"   1024", "sample_rate -i 8000\nsample_n_bytes -i 1\nsample_coding -s27 ulaw,embedded-shorten-v2.00\nend_head\n",
         {1024, 8000, 1, LIN_SPHERE_MULAW, 1, 0, 1, -1, -1}},
        {"   1024", "sample_rate -i 8000\nsample_coding -s4 alaw\nend_head\n",
         {1024, 8000, 1, LIN_SPHERE_ALAW, 1, 0, 0, -1, -1}},
        {"  65536", "sample_rate -i 8000\nsample_coding -s5 pcm-2\nsample_byte_format -s2 01\nend_head\n",
         {65536, 8000, 1, LIN_SPHERE_PCM, 2, 0, 0, -1, -1}},
        {"   1024", "sample_rate -i 8000\nsample_n_bytes -i 3\nsample_byte_format -s3 210\nend_head\n",
         {1024, 8000, 1, LIN_SPHERE_PCM, 3, 1, 0, -1, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lin_sphere is;
        lin_error err = {0};
        const lin_sphere *want = &cases[i].want;
        ck_assert_msg(parse(cases[i].length, cases[i].fields, &is, &err) == LIN_OK, "case %zu: %s", i, err.message);
        ck_assert_msg(is.header_bytes == want->header_bytes && is.rate_hz == want->rate_hz && is.channels == want->channels &&
                          is.coding == want->coding && is.sample_bytes == want->sample_bytes &&
                          is.big_endian == want->big_endian && is.shorten == want->shorten && is.frames == want->frames &&
                          is.checksum == want->checksum,
                      "case %zu", i);
    }
}
END_TEST

START_TEST(refused_headers)
{
    static const struct {
        const char *length, *fields;
        lin_status status;
        const char *says;
    } cases[] = {
        {"      8", "", LIN_FORMAT, "a length of 8 bytes"},
        {"  99999", "", LIN_FORMAT, "a length of 99999 bytes"},
        {"   1024", "sample_rate -i 8000\n", LIN_FORMAT, "no line end_head"},
        {"   1024", "end_head\n", LIN_FORMAT, "no sample_rate"},
        {"   1024", "sample_rate -i many\nend_head\n", LIN_FORMAT, "sample_rate is 'many', which is not a number"},
        {"   1024", "sample_rate -i -8000\nend_head\n", LIN_FORMAT, "not a number"},
        {"   1024", "sample_rate -i 8000\nsample_count -i 99999999999999999999\nend_head\n", LIN_FORMAT, "not a number"},
        {"   1024", "sample_rate -i 8000\nsample_checksum -i 65536\nend_head\n", LIN_FORMAT, "sample_checksum of 65536"},
        {"   1024", "sample_rate -i 8000\nsample_n_bytes -i 2\nend_head\n", LIN_FORMAT, "no sample_byte_format"},
        {"   1024", "sample_rate -i 8000\nsample_byte_format -s2 11\nend_head\n", LIN_FORMAT, "'11' for samples of 2 bytes"},
        {"   1024", "sample_rate -i 8000\nsample_coding -s12 shortpack-v0\nend_head\n", LIN_UNSUPPORTED, "'shortpack-v0'"},
        {"   1024", "sample_rate -i 8000\nsample_coding -s23 pcm,embedded-wavpack1.0\nend_head\n", LIN_UNSUPPORTED,
         "compressed as 'embedded-wavpack1.0'"},
        {"   1024", "sample_rate -i 8000\nsample_n_bytes -i 1\nsample_coding -s26 pcm,embedded-shorten-v2.00\nend_head\n",
         LIN_UNSUPPORTED, "pcm of 1 bytes, compressed with shorten"},
        {"   1024", "sample_rate -i 8000\nsample_coding -s27 alaw,embedded-shorten-v1.09\nend_head\n", LIN_UNSUPPORTED,
         "alaw of 1 bytes, compressed with shorten"},
        {"   1024", "sample_rate -i 8000\nsample_n_bytes -i 1073741824\nend_head\n", LIN_UNSUPPORTED, "pcm of 1073741824 bytes"},
        {"   1024",
         "sample_rate -i 8000\nchannel_count -i 2\nchannels_interleaved -s5 FALSE\nsample_byte_format -s2 01\nend_head\n",
         LIN_UNSUPPORTED, "not interleaved"},
    };
    lin_sphere is;
    lin_error err = {0};
    int more;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(parse(cases[i].length, cases[i].fields, &is, &err), cases[i].status, err, cases[i].says);
    assert_fails(lin_sphere_parse((const unsigned char *)"NIST_1A\n1024 \n  \n", 17, &is, &more, &err), LIN_FORMAT, err,
                 "does not begin with NIST_1A and its length");
}
END_TEST

// Fewer bytes than the header has: more are asked for.
START_TEST(headers_cut_anywhere)
{
    static unsigned char b[1024];
    lin_error err = {0};
    lin_sphere is;
    int more;
    make_header(b, "   1024", "sample_rate -i 8000\nsample_coding -s4 ulaw\nend_head\n");
    for (size_t n = 0; n < 1024; n++) {
        unsigned char *exact = malloc(n + 1);
        memcpy(exact, b, n);
        ck_assert_int_eq(lin_sphere_parse(exact, n, &is, &more, &err), LIN_OK);
        ck_assert_int_eq(more, 1);
        free(exact);
    }
}
END_TEST

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

static void fill(int16_t *x, int n, int channels, int is_ulaw)
{
    for (int i = 0; i < n * channels; i++) {
        x[i] =
            (int16_t)lrint(9000 * sin(0.03 * i) + 500 * (2 * lin_random_uniform(4, (uint64_t)i) - 1) + (i % 7 == 0 ? -3000 : 0));
        if (is_ulaw) x[i] = (int16_t)ulaw_code(x[i]);
    }
}

// G.711 by its definition: the code's magnitude is (33 + 2 * mantissa) * 2^exponent - 33, in units of 4.
static float ulaw_value(int code)
{
    const int u = 255 - code, magnitude = (((33 + 2 * (u & 15)) << (u >> 4 & 7)) - 33) * 4;
    return (float)(u & 128 ? -magnitude : magnitude) / 32768;
}

typedef struct sound {
    bits bytes;
    int16_t x[2 * N];
    float want[2 * N];
    int channels, n;
} sound;

static void make(sound *s, sphere_options o, int n)
{
    s->channels = o.channels;
    s->n = n;
    s->bytes = (bits){0};
    fill(s->x, n, o.channels, o.ulaw);
    for (int i = 0; i < n * o.channels; i++) s->want[i] = o.ulaw ? ulaw_value(s->x[i]) : (float)s->x[i] / 32768;
    sphere_encode(&s->bytes, s->x, n, &o);
}

static int given; // frames that the last read_all saw, also if it failed

// From frame `done` on; the number of frames then, or -1.
static int read_all(lin_audio *a, float *x, int capacity, int done, lin_error *err)
{
    const int channels = lin_audio_info(a)->channels;
    int n;
    lin_status status;
    while ((status = lin_audio_read(a, x + done * channels, capacity - done < 333 ? capacity - done : 333, &n, err)) == LIN_OK &&
           n > 0)
        ck_assert_int_lt(done += n, capacity);
    ck_assert_int_eq((int)lin_audio_position(a), done);
    lin_audio_close(a);
    given = done;
    return status == LIN_OK ? done : -1;
}

static int from_file(const bits *b, float *x, int capacity, lin_error *err)
{
    lin_audio *a;
    if (lin_audio_open(write_bytes("x.wv1", b->data, b->n), NULL, &a, err) != LIN_OK) return -1;
    return read_all(a, x, capacity, 0, err);
}

typedef struct writer {
    int fd;
    const bits *bytes;
} writer;

static void *write_slowly(void *context)
{
    writer *w = context;
    for (size_t at = 0, i = 0; at < w->bytes->n; i++) {
        size_t n = 1 + lin_random_below(9, i, 999);
        if (n > w->bytes->n - at) n = w->bytes->n - at;
        const ssize_t put = write(w->fd, w->bytes->data + at, n);
        if (put <= 0) break;
        at += (size_t)put;
    }
    close(w->fd);
    return NULL;
}

static int from_pipe(const bits *b, float *x, int capacity, lin_error *err)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    writer w = {fds[1], b};
    pthread_t thread;
    lin_audio *a;
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_slowly, &w), 0);
    const lin_status status = lin_audio_open_fd(fds[0], "a pipe", NULL, &a, err);
    if (status == LIN_OK) ck_assert_int_eq(lin_audio_is_live(a), 1); // it is not stored first
    const int n = status == LIN_OK ? read_all(a, x, capacity, 0, err) : -1;
    close(fds[0]);
    pthread_join(thread, NULL);
    return n;
}

static sphere_options options_of(int i)
{
    sphere_options o = sphere_options_default();
    o.channels = 1 + (i & 1);
    o.big_endian = i >> 1 & 1;
    o.ulaw = i >> 2 & 1;
    o.shorten = i >> 3 & 1;
    o.header = i % 3 == 0 ? 4096 : 1024;
    o.no_checks = i % 5 == 4;
    return o;
}

START_TEST(every_coding_from_files_and_pipes)
{
    static sound s;
    static float x[2 * N + 2];
    lin_error err = {0};
    make(&s, options_of(_i), N - _i);
    ck_assert_msg(from_file(&s.bytes, x, N + 1, &err) == s.n, "%s", err.message);
    ck_assert_int_eq(memcmp(x, s.want, (size_t)(s.n * s.channels) * sizeof *x), 0);
    memset(x, 0, sizeof x);
    ck_assert_msg(from_pipe(&s.bytes, x, N + 1, &err) == s.n, "%s", err.message);
    ck_assert_int_eq(memcmp(x, s.want, (size_t)(s.n * s.channels) * sizeof *x), 0);
    free(s.bytes.data);
}
END_TEST

// Files that libsndfile writes: the samples that it reads back.
START_TEST(what_libsndfile_writes)
{
    static const int formats[] = {SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_ULAW, SF_FORMAT_ALAW};
    static float x[2 * N], want[2 * N], got[2 * N + 2];
    const int endian = _i & 1 ? SF_ENDIAN_BIG : SF_ENDIAN_LITTLE, minor = formats[_i / 2];
    SF_INFO info = {.samplerate = 12000, .channels = 2, .format = SF_FORMAT_NIST | minor | (minor < SF_FORMAT_ULAW ? endian : 0)};
    const char *path = temp_path("x.sph");
    lin_error err = {0};
    lin_audio *a;
    for (int i = 0; i < 2 * N; i++) x[i] = (float)(0.9 * (2 * lin_random_uniform(8, (uint64_t)i) - 1));
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    ck_assert_msg(f != NULL, "%s", sf_strerror(NULL));
    ck_assert_int_eq((int)sf_writef_float(f, x, N), N);
    sf_close(f);
    f = sf_open(path, SFM_READ, &info);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq((int)sf_readf_float(f, want, N), N);
    sf_close(f);
    assert_ok(lin_audio_open(path, NULL, &a, &err), err);
    ck_assert_msg(strncmp(lin_audio_info(a)->format, "SPHERE (NIST)", 13) == 0, "%s", lin_audio_info(a)->format);
    ck_assert_int_eq((int)lin_audio_info(a)->frames, N);
    ck_assert_int_eq(read_all(a, got, N + 1, 0, &err), N);
    ck_assert_int_eq(memcmp(got, want, sizeof want), 0);
}
END_TEST

// Bytes after the samples of the header's count: another file has been appended, or the count is wrong.
START_TEST(count_and_checksum)
{
    static sound s;
    static float x[2 * N + 2];
    char text[128];
    for (int i = 0; i < 16; i++) {
        sphere_options o = options_of(i);
        lin_error err = {0};
        o.no_checks = 0;
        o.add_checksum = 1;
        make(&s, o, N);
        unsigned sum = 0;
        for (int k = 0; k < N * o.channels; k++) sum += (unsigned)s.x[k];
        snprintf(text, sizeof text, "the checksum of its samples is %u, its header gives %u", sum & 0xffff, (sum + 1) & 0xffff);
        ck_assert_int_eq(from_file(&s.bytes, x, N + 1, &err), -1);
        ck_assert_msg(err.status == LIN_FORMAT && strstr(err.message, text), "%s", err.message);
        ck_assert_int_eq(given, N); // all samples come before the verdict
        ck_assert_int_eq(from_pipe(&s.bytes, x, N + 1, &err), -1);
        ck_assert_int_eq(given, N);
        ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
        free(s.bytes.data);

        o.add_checksum = 0;
        for (o.add_count = -7; o.add_count <= 7; o.add_count += 14) {
            make(&s, o, N);
            ck_assert_int_eq(from_file(&s.bytes, x, N + 1, &err), -1);
            snprintf(text, sizeof text, "its header gives %d", N + (int)o.add_count);
            ck_assert_msg(err.status == LIN_FORMAT && strstr(err.message, text), "%s", err.message);
            // Reading compressed samples stops at the first one too many.
            if (o.add_count > 0) snprintf(text, sizeof text, "is truncated: it has %d samples", N);
            else if (o.shorten) snprintf(text, sizeof text, "is damaged: it has ");
            else snprintf(text, sizeof text, "is damaged: it has %d samples", N);
            ck_assert_msg(strstr(err.message, text) != NULL, "%s", err.message);
            free(s.bytes.data);
        }
    }
}
END_TEST

// The first releases of Switchboard count the samples of both channels.
START_TEST(counts_of_both_channels)
{
    static sound s;
    static float x[2 * N + 2];
    for (int i = 0; i < 16; i++) {
        lin_error err = {0};
        sphere_options o = options_of(i);
        o.channels = 2;
        o.no_checks = 0;
        o.add_count = N;
        make(&s, o, N);
        ck_assert_msg(from_file(&s.bytes, x, N + 1, &err) == N, "%s", err.message);
        ck_assert_int_eq(memcmp(x, s.want, sizeof s.want), 0);
        lin_audio *a;
        assert_ok(lin_audio_open(temp_path("x.wv1"), NULL, &a, &err), err);
        ck_assert_int_eq((int)lin_audio_info(a)->frames, o.shorten ? 2 * N : N); // the size of a compressed file does not tell
        lin_audio_close(a);
        free(s.bytes.data);
    }
}
END_TEST

// Cut anywhere, a file fails; the frames before the cut are given first.
START_TEST(truncated_files)
{
    static sound s;
    static float x[2 * N + 2];
    for (int i = 0; i < 16; i++) {
        sphere_options o = options_of(i);
        o.no_checks = 0;
        make(&s, o, 600);
        for (int cut = 0; cut < 40; cut++) {
            lin_error err = {0};
            bits part = {.data = s.bytes.data, .n = 1 + (size_t)lin_random_below(3, (uint64_t)cut, (uint32_t)(s.bytes.n - 8))};
            const int is_pipe = cut & 1;
            test_require((is_pipe ? from_pipe : from_file)(&part, x, N, &err) == -1, "coding %d cut at %zu", i, part.n);
            test_require(part.n < 8 || strstr(err.message, "truncated") || strstr(err.message, "contains no samples"), "%s",
                         err.message);
        }
        free(s.bytes.data);
    }
    lin_error err = {0};
    make(&s, options_of(8), N);
    s.bytes.n = 3000;
    lin_audio *a;
    int n;
    assert_ok(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), err);
    ck_assert_int_eq((int)lin_audio_info(a)->frames, N);
    assert_ok(lin_audio_read(a, x, N, &n, &err), err);
    ck_assert_int_gt(n, 500);
    ck_assert_int_eq(memcmp(x, s.want, (size_t)n * sizeof *x), 0);
    assert_fails(lin_audio_read(a, x, N, &n, &err), LIN_FORMAT, err, "it is truncated");
    ck_assert_int_eq(n, 0);
    lin_audio_close(a);
    free(s.bytes.data);
}
END_TEST

// The header and the compressed samples disagree.
START_TEST(contradictions)
{
    static sound s;
    static float x[2 * N + 2];
    lin_error err = {0};
    lin_audio *a;
    make(&s, options_of(8), N);
    char *at = strstr((char *)s.bytes.data, "channel_count -i 1");
    at[17] = '2';
    assert_fails(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), LIN_FORMAT, err,
                 "its compressed samples have 1 channels, its header gives 2");
    at[17] = '0';
    assert_fails(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), LIN_UNSUPPORTED, err,
                 "0 channels");
    at[17] = '1';
    s.bytes.data[1024] = 'A';
    assert_fails(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), LIN_FORMAT, err,
                 "x.wv1 cannot be read: it is damaged: its samples do not begin with the signature of shorten");
    s.bytes.data[1024] = 'a';
    s.bytes.data[1028] = 9;
    assert_fails(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), LIN_UNSUPPORTED, err,
                 "version 9 of shorten");
    free(s.bytes.data);
    make(&s, options_of(12), N); // mu-law
    memcpy(strstr((char *)s.bytes.data, "sample_n_bytes -i 1"), "sample_n_bytes -i 2", 19);
    memcpy(strstr((char *)s.bytes.data, "-s27 ulaw,"), "-s26 pcm, ", 10);
    memmove(strstr((char *)s.bytes.data, ", embedded") + 1, strstr((char *)s.bytes.data, ", embedded") + 2, 40);
    ck_assert_int_eq(from_file(&s.bytes, x, N, &err), -1);
    ck_assert_msg(strstr(err.message, "its compressed samples are mu-law, which its header does not give") != NULL, "%s",
                  err.message);
    free(s.bytes.data);
}
END_TEST

// Reading a part: the checksum cannot be verified, but the count is.
START_TEST(seeking)
{
    static sound s;
    static float x[2 * N + 2];
    lin_error err = {0};
    lin_audio *a;
    int n;
    make(&s, options_of(3), N);
    assert_ok(lin_audio_open(write_bytes("x.wav", s.bytes.data, s.bytes.n), NULL, &a, &err), err);
    assert_ok(lin_audio_read(a, x, 10, &n, &err), err);
    assert_ok(lin_audio_seek(a, 3000, &err), err);
    assert_ok(lin_audio_read(a, x, 100, &n, &err), err);
    ck_assert_int_eq(memcmp(x, s.want + 2 * 3000, 200 * sizeof *x), 0);
    assert_ok(lin_audio_seek(a, 2, &err), err);
    assert_ok(lin_audio_read(a, x, N, &n, &err), err);
    ck_assert_int_eq(n, N - 2);
    ck_assert_int_eq(memcmp(x, s.want + 4, (size_t)(2 * N - 4) * sizeof *x), 0);
    assert_ok(lin_audio_read(a, x, N, &n, &err), err);
    ck_assert_int_eq(n, 0);
    lin_audio_close(a);
    // As many frames as the file has, but not the same ones: they have another sum.
    assert_ok(lin_audio_open(temp_path("x.wav"), NULL, &a, &err), err);
    for (int i = 0; i < 2; i++) {
        assert_ok(lin_audio_read(a, x, 10, &n, &err), err);
        assert_ok(lin_audio_seek(a, 20, &err), err);
    }
    ck_assert_msg(read_all(a, x, N + 1, 20, &err) == N, "%s", err.message);
    free(s.bytes.data);
    make(&s, options_of(8), N);
    assert_ok(lin_audio_open(write_bytes("x.wv1", s.bytes.data, s.bytes.n), NULL, &a, &err), err);
    assert_fails(lin_audio_seek(a, 3000, &err), LIN_UNSUPPORTED, err, "it is compressed with shorten");
    ck_assert_int_eq(read_all(a, x, N + 1, 0, &err), N);
    free(s.bytes.data);
}
END_TEST

// Sound that is still being recorded: its first blocks can be read before the others exist.
START_TEST(a_pipe_is_live)
{
    static sound s;
    float x[N];
    lin_error err = {0};
    lin_audio *a;
    int fds[2], n, total = 0;
    make(&s, options_of(8), N);
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(write(fds[1], s.bytes.data, 4000), 4000);
    assert_ok(lin_audio_open_fd(fds[0], "a pipe", NULL, &a, &err), err);
    while (total < 512) {
        assert_ok(lin_audio_read(a, x, N, &n, &err), err);
        ck_assert_int_gt(n, 0);
        total += n;
    }
    ck_assert_int_eq(write(fds[1], s.bytes.data + 4000, s.bytes.n - 4000), (ssize_t)s.bytes.n - 4000);
    close(fds[1]);
    while (lin_audio_read(a, x, N, &n, &err) == LIN_OK && n > 0) total += n;
    ck_assert_int_eq(total, N);
    lin_audio_close(a);
    close(fds[0]);
    free(s.bytes.data);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    static sound s;
    make(&s, options_of(9), N);
    const char *path = write_bytes("x.wv1", s.bytes.data, s.bytes.n);
    lin_audio *a;
    FAIL_EVERY_ALLOCATION_OF(a, lin_audio_open(path, NULL, &a, NULL), lin_audio_close(a));
    free(s.bytes.data);
}
END_TEST

// Nothing here depends on installed programs.
static void no_programs(void) { setenv("LINNET_FFMPEG", "", 1); }

TEST_MAIN_WITH(no_programs, remove_files, "frontend/sphere", TEST(headers_of_corpora), TEST(refused_headers),
               TEST(headers_cut_anywhere), TESTS(every_coding_from_files_and_pipes, 0, 16), TESTS(what_libsndfile_writes, 0, 10),
               TEST(count_and_checksum), TEST(counts_of_both_channels), TEST(truncated_files), TEST(contradictions),
               TEST(seeking), TEST(a_pipe_is_live), TEST(every_allocation_may_fail))
