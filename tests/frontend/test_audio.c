// Audio files and raw PCM: every format against the samples written, and hostile files, each refused or reported with its
// message.
#include "frontend/audio.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/frontend/support.h"

enum { N = 5000 };

#if TEST_ASAN
// Visible, for the sanitizer to find. libsndfile 1.2.0 leaks a vorbis_info if an Ogg header is damaged.
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:vorbis_info_init\n"; }
#endif

// Reads all of an open audio in blocks of an odd size and closes it; the number of frames, or -1 with the error.
static int read_all(lin_audio *a, float *x, int capacity, lin_audio_format *info, lin_error *err)
{
    int done = 0, n, channels = lin_audio_info(a)->channels;
    lin_status status;
    while ((status = lin_audio_read(a, x + done * channels, capacity - done < 777 ? capacity - done : 777, &n, err)) == LIN_OK &&
           n > 0)
        if ((done += n) == capacity) break;
    if (status == LIN_OK) status = lin_audio_read(a, x, 1, &n, err); // stays at the end
    if (info) *info = *lin_audio_info(a);
    ck_assert(status != LIN_OK || lin_audio_position(a) == done);
    lin_audio_close(a);
    return status == LIN_OK ? done : -1;
}

// The start of a WAV file with arbitrary sizes.
static size_t wav_header(unsigned char *b, int format, int rate, int channels, int bits, uint32_t data_bytes)
{
    uint32_t fields[] = {36 + data_bytes,
                         16,
                         (uint32_t)format | (uint32_t)channels << 16,
                         (uint32_t)rate,
                         (uint32_t)(rate * channels * bits / 8),
                         (uint32_t)(channels * bits / 8) | (uint32_t)bits << 16,
                         data_bytes};
    memcpy(b, "RIFF....WAVEfmt ....................data....", 44);
    const int at[] = {4, 16, 20, 24, 28, 32, 40};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 4; k++) b[at[i] + k] = (unsigned char)(fields[i] >> (8 * k));
    return 44;
}

static void noise(float *x, int n, double level)
{
    for (int i = 0; i < n; i++) x[i] = (float)(level * (2 * lin_random_uniform(3, (uint64_t)i) - 1));
}

enum { MP3 = 0x230082 }; // SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, since 1.1

static const struct {
    const char *name;
    int format, rate;
    double tolerance; // < 0: lossy, only the length is compared
} formats[] = {
    {"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 2.0 / 32768},
    {"a24.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 192000, 2.0 / 8388608},
    {"f.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 0},
    {"u8.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 8000, 2.0 / 128},
    {"u.wav", SF_FORMAT_WAV | SF_FORMAT_ULAW, 8000, 0.02},
    {"a.rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 48000, 2.0 / 32768},
    {"a.w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 48000, 2.0 / 32768},
    {"a.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 22050, 2.0 / 32768},
    {"a.au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 11025, 2.0 / 32768},
    {"a.caf", SF_FORMAT_CAF | SF_FORMAT_PCM_16, 96000, 2.0 / 32768},
    {"a.sph", SF_FORMAT_NIST | SF_FORMAT_PCM_16, 16000, 2.0 / 32768},
    {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 2.0 / 32768},
    {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, -1},
    {"a.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 16000, -1},
    {"a.mp3", MP3, 16000, -1},
};

// A floating-point file is not clipped. What is far beyond full scale is told.
START_TEST(loud_floats_stay)
{
    float x[3] = {-2.5f, 3, 100}, y[8];
    const lin_pcm_format raw = {8000, 1, LIN_PCM_F32LE, 0};
    lin_audio_format info;
    lin_error why = {0};
    lin_audio *a;
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        const char *path = is_raw ? test_file("loud.raw", x, sizeof x)
                                  : write_sound("loud.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 1, x, 3);
        OK(lin_audio_open(path, is_raw ? &raw : NULL, &a, &err));
        ck_assert_int_eq(read_all(a, y, 8, &info, &why), 3);
        ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
        HAS(info.warning, " reaches 3 at 0.000 s, but floats have a full scale of -1 to 1");
        ck_assert_int_eq(info.incomplete, 0);
    }
    x[1] = x[2] = 2.5f;
    OK(lin_audio_open(test_file("loud.raw", x, sizeof x), &raw, &a, &err));
    read_all(a, y, 8, &info, &why);
    ck_assert_str_eq(info.warning, "");
}
END_TEST

// Floats in Wave64 whose encoding is given by a GUID, as ffmpeg writes them; libsndfile takes them for integers.
START_TEST(extensible_wave64)
{
    static const unsigned char head[128] =
        "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0\x8c\0\0\0\0\0\0\0wave\xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a"
        "fmt \xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a\x40\0\0\0\0\0\0\0"
        "\xfe\xff\1\0\x40\x1f\0\0\0\x7d\0\0\4\0\x20\0\x16\0\x20\0\4\0\0\0\3\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
        "data\xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a\x24\0\0\0\0\0\0";
    const float x[3] = {-0.5f, 0.25f, 1e-3f};
    unsigned char b[sizeof head + sizeof x];
    float y[8];
    lin_error why = {0};
    lin_audio *a;
    memcpy(b, head, sizeof head);
    memcpy(b + sizeof head, x, sizeof x);
    OK(lin_audio_open(test_file("float.w64", b, sizeof b), NULL, &a, &err));
    ck_assert_int_eq(read_all(a, y, 8, NULL, &why), 3);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
}
END_TEST

START_TEST(raw_encodings)
{
    static const struct {
        lin_pcm_encoding encoding;
        int sf_format;
    } kinds[] = {{LIN_PCM_S16LE, SF_FORMAT_PCM_16}, {LIN_PCM_S24LE, SF_FORMAT_PCM_24}, {LIN_PCM_S32LE, SF_FORMAT_PCM_32},
                 {LIN_PCM_F32LE, SF_FORMAT_FLOAT},  {LIN_PCM_U8, SF_FORMAT_PCM_U8},    {LIN_PCM_MULAW, SF_FORMAT_ULAW},
                 {LIN_PCM_ALAW, SF_FORMAT_ALAW}};
    static float x[2 * N], want[2 * N], got[2 * N];
    lin_error why = {0};
    noise(x, 2 * N, 0.99);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        // libsndfile writes the bytes and defines their meaning.
        const char *path = write_sound("x.raw", SF_FORMAT_RAW | SF_ENDIAN_LITTLE | kinds[k].sf_format, 12000, 2, x, N);
        SF_INFO info = {.samplerate = 12000, .channels = 2, .format = SF_FORMAT_RAW | SF_ENDIAN_LITTLE | kinds[k].sf_format};
        SNDFILE *f = sf_open(path, SFM_READ, &info);
        ck_assert_int_eq((int)sf_readf_float(f, want, N), N);
        sf_close(f);
        lin_pcm_format raw = {12000, 2, kinds[k].encoding, 0};
        lin_audio *a;
        OK(lin_audio_open(path, &raw, &a, &err));
        ck_assert_int_eq((int)lin_audio_info(a)->frames, N);
        ck_assert_int_eq(read_all(a, got, N, NULL, &why), N);
        ck_assert_msg(memcmp(got, want, sizeof got) == 0, "%s", lin_pcm_name(kinds[k].encoding));
    }
}
END_TEST

/* ---- pipes ----------------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    int fd;
    const unsigned char *bytes;
    size_t n;
} writer;

static void *write_slowly(void *context)
{
    writer *w = context;
    for (size_t at = 0, i = 0; at < w->n; i++) {
        size_t n = 1 + lin_random_below(9, i, 999);
        if (n > w->n - at) n = w->n - at;
        ssize_t put = write(w->fd, w->bytes + at, n);
        if (put <= 0) break;
        at += (size_t)put;
    }
    close(w->fd);
    return NULL;
}

START_TEST(pipe_of_raw_samples)
{
    static unsigned char bytes[3 * 2 * N + 4];
    static float from_pipe[2 * N], from_file[2 * N];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)lin_random_bits(4, i);
    lin_pcm_format raw = {48000, 2, LIN_PCM_S24LE, 0};
    lin_error why = {0};
    lin_audio *a;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    // "Would block" from a non-blocking descriptor is not the end.
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    writer w = {fds[1], bytes, sizeof bytes};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_slowly, &w), 0);
    OK(lin_audio_open_fd(fds[0], 0, "a pipe", &raw, &a, &err));
    ck_assert_int_eq(lin_audio_is_live(a), 1);
    ck_assert_int_eq((int)lin_audio_info(a)->frames, -1);
    lin_audio_format info;
    int n = 0, got;
    while (lin_audio_read(a, from_pipe + 2 * n, N + 1 - n, &got, &why) == LIN_OK && got > 0) n += got;
    info = *lin_audio_info(a);
    lin_audio_close(a);
    pthread_join(thread, NULL);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD) >= 0, 1); // the caller still owns it
    close(fds[0]);
    ck_assert_int_eq(n, N);
    HAS(info.warning, "ends with 4 of the 6 bytes of a frame");
    OK(lin_audio_open(test_file("x.raw", bytes, sizeof bytes), &raw, &a, &err));
    ck_assert_int_eq(read_all(a, from_file, N, NULL, &why), N);
    ck_assert_int_eq(memcmp(from_pipe, from_file, sizeof from_pipe), 0);
}
END_TEST

// Bytes through a pipe, from a thread of their own; opened with lin_audio_open_fd and read to the end.
static int through_pipe(const void *bytes, size_t n, int fallback, float *x, int capacity, lin_audio_format *info, lin_error *err)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    writer w = {fds[1], bytes, n};
    pthread_t thread;
    lin_audio *a;
    lin_pcm_format raw = lin_pcm_default();
    raw.fallback = fallback;
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_slowly, &w), 0);
    const lin_status status = lin_audio_open_fd(fds[0], 0, "a pipe", &raw, &a, err);
    int got = status == LIN_OK ? read_all(a, x, capacity, info, err) : -1;
    close(fds[0]);
    pthread_join(thread, NULL);
    return got;
}

// Of a file, and the same of a pipe, sample by sample.
START_TEST(formats_are_read)
{
    static float x[2 * N], y[2 * (N + 5000)], from_pipe[2 * (N + 5000)];
    static unsigned char b[512 + 8 * N];
    SF_INFO info = {.samplerate = formats[_i].rate, .channels = 2, .format = formats[_i].format};
    if (!sf_format_check(&info)) return; // an older libsndfile writes no MP3
    lin_error why = {0};
    lin_audio *a;
    noise(x, 2 * N, 0.7);
    const char *path = write_sound(formats[_i].name, formats[_i].format, formats[_i].rate, 2, x, N);
    OK(lin_audio_open(path, NULL, &a, &err));
    const lin_audio_format *is = lin_audio_info(a);
    ck_assert_int_eq(is->rate_hz, formats[_i].rate);
    ck_assert_int_eq(is->channels, 2);
    ck_assert_int_eq(lin_audio_is_live(a), 0);
    ck_assert_int_ge((int)is->frames, N);
    lin_audio_format after;
    int n = read_all(a, y, N + 5000, &after, &why);
    ck_assert_msg(n >= N, "%s: %d frames, %s", path, n, why.message);
    ck_assert_str_eq(after.warning, "");
    const size_t size = test_read_file(path, b, sizeof b);
    ck_assert_msg(through_pipe(b, size, 1, from_pipe, N + 5000, &after, &why) == n, "%s: %s", path, why.message);
    ck_assert_int_eq(after.rate_hz, formats[_i].rate);
    ck_assert_str_eq(after.notice, "");
    ck_assert_str_eq(after.warning, "");
    ck_assert_int_eq(memcmp(from_pipe, y, (size_t)n * 2 * sizeof *x), 0);
    if (formats[_i].tolerance < 0) return;
    ck_assert_int_eq(n, N);
    double worst = 0;
    for (int i = 0; i < 2 * N; i++) worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
    ck_assert_msg(worst <= formats[_i].tolerance, "%s differs by %g", path, worst);
}
END_TEST

// A WAV file that is still being written: its first part can be read before the rest exists.
START_TEST(wav_in_a_pipe_is_live)
{
    unsigned char b[44 + 2000] = {0};
    float x[2000];
    lin_error why = {0};
    lin_audio *a;
    int fds[2], n;
    wav_header(b, 1, 16000, 1, 16, 0xffffffff);
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(write(fds[1], b, 44 + 300), 344);
    OK(lin_audio_open_fd(fds[0], 0, "a pipe", NULL, &a, &err));
    ck_assert_int_eq(lin_audio_is_live(a), 1);
    ck_assert_int_eq(lin_audio_wait_for(a), -1);
    OK(lin_audio_read(a, x, 1000, &n, &err));
    ck_assert_int_eq(n, 150);
    ck_assert_int_eq(lin_audio_wait_for(a), fds[0]);
    ck_assert_int_eq(write(fds[1], b + 44, 100), 100);
    OK(lin_audio_read(a, x, 1000, &n, &err));
    ck_assert_int_eq(n, 50);
    close(fds[1]);
    OK(lin_audio_read(a, x, 1000, &n, &err));
    ck_assert_int_eq(n, 0);
    ck_assert_str_eq(lin_audio_info(a)->warning, "");
    lin_audio_close(a);
    close(fds[0]);
    // A file with a declared length ends there, or is reported as truncated.
    lin_audio_format is;
    wav_header(b, 1, 16000, 1, 16, 200);
    ck_assert_int_eq(through_pipe(b, sizeof b, 1, x, 2000, &is, &why), 100);
    ck_assert_str_eq(is.warning, "");
    ck_assert_int_eq(is.incomplete, 0);
    wav_header(b, 1, 16000, 1, 16, 32000);
    ck_assert_int_eq(through_pipe(b, sizeof b, 1, x, 2000, &is, &why), 1000);
    HAS(is.warning, "a pipe is truncated: it ends after 0.062 s; its header gives 1.000 s");
    ck_assert_int_eq(is.incomplete, 1);
}
END_TEST

START_TEST(pipes_of_other_things)
{
    static unsigned char b[6000];
    static float x[6000];
    lin_error why = {0};
    lin_audio_format is;
    for (size_t i = 0; i < sizeof b / 2; i++) { // a tone
        const int16_t v = (int16_t)lrint(8000 * sin(0.05 * (double)i));
        memcpy(b + 2 * i, &v, 2);
    }
    ck_assert_int_eq(through_pipe(b, sizeof b, 1, x, 6000, &is, &why), 3000);
    HAS(is.notice, "headerless s16le at 16000 Hz, 1 channel");
    ck_assert_int_eq(through_pipe(b, sizeof b, 2, x, 6000, &is, &why), 3000);
    ck_assert_str_eq(is.notice, "");
    const struct {
        const char *bytes, *says;
        size_t n;
    } others[] = {{"<html><body>404</body></html>\n", "it is text", 30}, {"Gr\303\274\303\237e\n", "it is text", 8}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_int_eq(through_pipe(others[i].bytes, others[i].n, 1, x, 6000, &is, &why), -1);
        ck_assert_msg(why.status == LIN_FORMAT && strstr(why.message, others[i].says), "%s", why.message);
        // declared to be headerless samples
        ck_assert_int_ge(through_pipe(others[i].bytes, others[i].n, 2, x, 6000, &is, &why), 3);
    }
    for (size_t i = 0; i < sizeof b; i++) b[i] = (unsigned char)lin_random_bits(9, i);
    ck_assert_int_eq(through_pipe(b, sizeof b, 1, x, 6000, &is, &why), -1);
    HAS(why.message, "it would be noise");
    ck_assert_int_eq(through_pipe(b, sizeof b, 2, x, 6000, &is, &why), 3000);
    // Sound of another kind that needs a program that is not installed.
    ck_assert_int_eq(through_pipe("\0\0\0\30ftypM4A \0\0\0\0", 16, 1, x, 6000, &is, &why), -1);
    ck_assert_msg(why.status == LIN_UNSUPPORTED && strstr(why.message, "apt install ffmpeg"), "%s", why.message);
}
END_TEST

/* ---- hostile files --------------------------------------------------------------------------------------------------------- */

static void refused(const char *path, const lin_pcm_format *raw, lin_status wanted, const char *text)
{
    static float x[70 * 1000];
    lin_error why = {0};
    lin_audio *a;
    unsigned long live = lin_memory_live();
    int fd = dup(0), n;
    close(fd);
    lin_status status = lin_audio_open(path, raw, &a, &why);
    if (status == LIN_OK) {
        while ((status = lin_audio_read(a, x, 1000, &n, &why)) == LIN_OK && n > 0) continue;
        lin_audio_close(a);
    } else {
        ck_assert_ptr_null(a);
    }
    ck_assert_msg(status == wanted, "%s: %s, '%s'", path, lin_status_name(status), why.message);
    ck_assert_msg(strstr(why.message, text) != NULL, "'%s' does not contain '%s'", why.message, text);
    ck_assert_msg(strstr(why.message, strcmp(path, "-") == 0 ? "standard input" : path) != NULL, "'%s' names no file",
                  why.message);
    ck_assert_uint_eq(lin_memory_live(), live);
    int again = dup(0);
    close(again);
    ck_assert_msg(fd == again, "%s: a descriptor was left open, or one too many closed", path);
}

// Files through a named pipe, which cannot seek, and whose writer may have exited before the first byte is read.
static void *write_to_pipe(void *context)
{
    writer *w = context;
    w->fd = open(test_path("fifo"), O_WRONLY);
    ssize_t put = write(w->fd, w->bytes, w->n);
    close(w->fd);
    return put == (ssize_t)w->n ? context : NULL;
}

START_TEST(pipe_of_a_file)
{
    static float x[N], y[N + 10];
    static unsigned char bytes[44 + 2 * N];
    noise(x, N, 0.5);
    ck_assert_uint_eq(test_read_file(write_sound("p.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, x, N), bytes, sizeof bytes),
                      sizeof bytes);
    const char *path = test_path("fifo");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    lin_error why = {0};
    lin_audio *a;
    writer w = {-1, bytes, sizeof bytes};
    pthread_t thread;
    void *all_written;
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_to_pipe, &w), 0);
    OK(lin_audio_open(path, NULL, &a, &err));
    ck_assert_int_eq(lin_audio_is_live(a), 1);
    int n = read_all(a, y, N + 10, NULL, &why);
    pthread_join(thread, &all_written);
    ck_assert_ptr_nonnull(all_written);
    ck_assert_int_eq(n, N);
    for (int i = 0; i < N; i += 97) ck_assert_float_eq_tol(x[i], y[i], 1.0f / 32768);
    // No descriptor is leaked, or closed twice, if the pipe contains something else.
    memset(bytes, 7, sizeof bytes);
    int before = dup(0);
    close(before);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_to_pipe, &w), 0);
    FAILS(lin_audio_open(path, NULL, &a, &err), LIN_FORMAT, "is not an audio file");
    pthread_join(thread, NULL);
    int after = dup(0);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

START_TEST(refused_files)
{
    unsigned char b[256];
    lin_pcm_format raw = lin_pcm_default();
    refused(test_path("missing.wav"), NULL, LIN_IO, "No such file");
    refused(test_path("missing.raw"), &raw, LIN_IO, "No such file");
    refused(test_path(""), NULL, LIN_IO, "is a directory");
    refused(test_path(""), &raw, LIN_IO, "is a directory");
    refused(test_file("empty.wav", b, 0), NULL, LIN_FORMAT, "is empty");
    refused(test_file("empty.raw", b, 0), &raw, LIN_FORMAT, "is empty");
    refused(test_file("text.wav", "It was a dark and stormy night.\n", 32), NULL, LIN_FORMAT, "it is text");
    refused(test_file("text.gsm", "It was a dark and stormy night.\n", 32), NULL, LIN_FORMAT, "it is text");
    refused(test_file("zeros.flac", memset(b, 0, 256), 256), NULL, LIN_FORMAT, "is not an audio file");
    refused(test_file("one.raw", b, 1), &raw, LIN_FORMAT, "contains no samples");
    size_t n = wav_header(b, 1, 16000, 1, 16, 1000);
    for (size_t k = 1; k < n; k++) refused(test_file("short.wav", b, k), NULL, LIN_FORMAT, "short.wav");
    refused(test_file("header.wav", b, n), NULL, LIN_FORMAT, "no samples");
    wav_header(b, 1, 16000, 1, 16, 0);
    refused(test_file("none.wav", b, n), NULL, LIN_FORMAT, "no samples");
    memset(b, 0, sizeof b);
    wav_header(b, 1, 3999, 1, 16, 100);
    refused(test_file("slow.wav", b, 144), NULL, LIN_UNSUPPORTED, "sample rate of 3999 Hz");
    wav_header(b, 1, 192001, 1, 16, 100);
    refused(test_file("fast.wav", b, 144), NULL, LIN_UNSUPPORTED, "sample rate of 192001 Hz");
    wav_header(b, 1, 16000, 65, 8, 130);
    refused(test_file("many.wav", b, 174), NULL, LIN_UNSUPPORTED, "65 channels");
    wav_header(b, 1, 16000, 0, 16, 100);
    refused(test_file("nobody.wav", b, 144), NULL, LIN_UNSUPPORTED, "0 channels");
    wav_header(b, 1, 2000000000, 1, 16, 100);
    refused(test_file("absurd.wav", b, 144), NULL, LIN_UNSUPPORTED, "2000000000 Hz");
    memcpy(b, ".snd\0\0\0\30\xff\xff\xff\xff\0\0\0\3\0\0\x3e\x80\xff\xff\xff\xff", 24);
    refused(test_file("absurd.au", b, 144), NULL, LIN_FORMAT, "absurd.au");
    raw.channels = 65;
    refused(test_file("x.raw", b, 200), &raw, LIN_UNSUPPORTED, "65 channels");
    raw.channels = 1;
    raw.rate_hz = 300000;
    refused(test_file("x.raw", b, 200), &raw, LIN_UNSUPPORTED, "300000 Hz");
    if (geteuid() != 0) {
        const char *path = test_file("secret.wav", b, 144);
        chmod(path, 0);
        refused(path, NULL, LIN_IO, "Permission denied");
    }
}
END_TEST

START_TEST(samples_that_are_no_sound)
{
    static float x[2 * N];
    const float bad[] = {NAN, INFINITY, -INFINITY, 2e9f};
    const char *says[] = {"nan", "inf", "-inf", "2e+09"};
    lin_pcm_format raw = {16000, 2, LIN_PCM_F32LE, 0};
    for (int k = 0; k < 4; k++) {
        noise(x, 2 * N, 0.5);
        x[2 * 4000 + 1] = bad[k];
        refused(write_sound("nan.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 2, x, N), NULL, LIN_NUMERIC,
                "sample 4000 (0.250 s) of channel 2 is");
        refused(test_path("nan.wav"), NULL, LIN_NUMERIC, says[k]);
        refused(test_file("nan.raw", x, sizeof x), &raw, LIN_NUMERIC, "sample 4000 (0.250 s) of channel 2 is");
    }
    for (size_t n = 1; n < 600; n += 37) {
        noise(x, (int)n, 1e6);
        ck_assert_uint_eq(lin_audio_find_bad(x, n), n);
        x[n - 1] = -0x1.000002p30f;
        ck_assert_uint_eq(lin_audio_find_bad(x, n), n - 1);
    }
}
END_TEST

// Existing sound is read, and missing sound is reported.
static void reported(const char *path, int at_least, int at_most, const char *text)
{
    static float x[2 * N];
    lin_error why = {0};
    lin_audio *a;
    lin_audio_format info;
    OK(lin_audio_open(path, NULL, &a, &err));
    int n = read_all(a, x, 2 * N, &info, &why);
    ck_assert_msg(n >= at_least && n <= at_most, "%s: %d frames, %s", path, n, why.message);
    if (text)
        ck_assert_msg(strstr(info.warning, text) && strstr(info.warning, path), "'%s' does not contain '%s'", info.warning, text);
    else ck_assert_str_eq(info.warning, "");
    ck_assert_int_eq(info.incomplete, text != NULL);
}

START_TEST(lying_and_broken_files)
{
    static float x[N];
    static unsigned char b[44 + 4 * N];
    noise(x, N, 0.5);
    memset(b, 1, sizeof b);
    wav_header(b, 1, 16000, 1, 16, 100000);
    reported(test_file("liar.wav", b, 44 + 600), 300, 300, "is truncated: it ends after 0.019 s; its header gives 3.125 s");
    wav_header(b, 1, 16000, 1, 16, 601);
    reported(test_file("odd.wav", b, 44 + 600), 300, 300, "is truncated");
    // A length that a program writing to a pipe cannot know is not an error.
    const uint32_t unknown[] = {0x7fffffff, 0x7ffff000, 0xffffffff};
    for (int k = 0; k < 3; k++) {
        wav_header(b, 1, 16000, 1, 16, unknown[k]);
        reported(test_file("piped.wav", b, 44 + 600), 300, 300, NULL);
    }
    wav_header(b, 1, 16000, 1, 16, 0); // its recording was interrupted
    reported(test_file("cut off.wav", b, 200), 78, 78, NULL);
    wav_header(b, 1, 16000, 1, 16, 400);
    reported(test_file("more.wav", b, 44 + 600), 200, 200, NULL); // bytes after the sound may be anything
    size_t n = test_read_file(write_sound("a.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 16000, 1, x, N), b, sizeof b);
    reported(test_file("cut.aiff", b, n / 2), N / 3, N / 2, "is truncated");
    n = test_read_file(write_sound("a.au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 16000, 1, x, N), b, sizeof b);
    reported(test_file("cut.au", b, n / 2), N / 3, N / 2, "is truncated");
    // Half of a file, in every format that declares its length or consists of pages that do.
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        SF_INFO info = {.samplerate = formats[i].rate, .channels = 1, .format = formats[i].format};
        if (!sf_format_check(&info) || strstr(formats[i].name, ".mp3")) continue;
        n = test_read_file(write_sound(formats[i].name, formats[i].format, formats[i].rate, 1, x, N), b, sizeof b);
        lin_audio *a;
        lin_audio_format is;
        static float y[4 * N];
        lin_error why = {0};
        // For some of them libsndfile itself reports it.
        if (lin_audio_open(test_file("half", b, n / 2), NULL, &a, &why) != LIN_OK) {
            ck_assert_msg(why.status == LIN_FORMAT, "%s: %s", formats[i].name, why.message);
            continue;
        }
        const int got = read_all(a, y, 4 * N, &is, &why);
        ck_assert_msg(is.incomplete && is.warning[0] && (got > 0 || why.status == LIN_FORMAT), "%s: %d frames, %s%s",
                      formats[i].name, got, is.warning, why.message);
    }
    n = test_read_file(write_sound("a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, x, N), b, sizeof b);
    reported(test_file("cut.flac", b, n - n / 8), 4096, N - 1, "cut.flac");
}
END_TEST

// The first frame of an MP3 file may give its length. Where it does not, libsndfile guesses it from the file's size,
// tags included.
START_TEST(lengths_of_mp3)
{
    enum { TAG = 4096, ROOM = 10 + TAG + 4 * N };
    static float x[N];
    static unsigned char b[ROOM] = {'I', 'D', '3', 3, 0, 0, 0, 0, TAG >> 7, 0};
    SF_INFO info = {.samplerate = 16000, .channels = 1, .format = MP3};
    if (!sf_format_check(&info)) return;
    noise(x, N, 0.5);
    unsigned char *sound = b + 10 + TAG, *first = NULL;
    const size_t n = test_read_file(write_sound("a.mp3", info.format, 16000, 1, x, N), sound, ROOM - 10 - TAG);
    for (size_t i = 0; i < 64; i++)
        if (memcmp(sound + i, "Xing", 4) == 0 || memcmp(sound + i, "Info", 4) == 0) first = sound + i;
    ck_assert_msg(first != NULL, "libsndfile writes no length");
    reported(test_file("tagged.mp3", b, 10 + TAG + n), N, N + 2304, NULL);
    reported(test_file("cut.mp3", b, 10 + TAG + n / 2), 1, N - 1, "is truncated");
    memset(first, 0, 4);
    reported(test_file("guessed.mp3", b, 10 + TAG + n), N, N + 2304, NULL);
}
END_TEST

START_TEST(standard_input)
{
    int16_t samples[100];
    for (int i = 0; i < 100; i++) samples[i] = (int16_t)(i * 300);
    float x[200];
    lin_error why = {0};
    lin_audio *a;
    lin_audio_format info;
    int keep = dup(0), fd = open(test_file("in.raw", samples, sizeof samples), O_RDONLY);
    dup2(fd, 0);
    OK(lin_audio_open("-", NULL, &a, &err));
    int n = read_all(a, x, 200, &info, &why);
    ck_assert_int_eq(n, 100);
    ck_assert_float_eq(x[7], 2100.0f / 32768);
    ck_assert_int_eq(info.rate_hz, 16000);
    HAS(info.notice, "the format of standard input is not recognised");
    // The format of a file is found from its bytes.
    unsigned char b[200] = {0};
    wav_header(b, 1, 16000, 1, 16, 156);
    int wav = open(test_file("in.wav", b, 200), O_RDONLY);
    dup2(wav, 0);
    OK(lin_audio_open("-", NULL, &a, &err));
    ck_assert_int_eq(read_all(a, x, 200, &info, &why), 78);
    ck_assert_str_eq(info.notice, "");
    // Unless it is declared to have no header.
    lin_pcm_format raw = lin_pcm_default();
    lseek(wav, 0, SEEK_SET);
    OK(lin_audio_open("-", &raw, &a, &err));
    ck_assert_int_eq(read_all(a, x, 200, &info, &why), 100);
    HAS(info.warning, "standard input begins like a WAV file");
    // Reading begins at the descriptor's offset.
    char junk[300] = "junk";
    memcpy(junk + 100, b, 200);
    int later = open(test_file("later.wav", junk, 300), O_RDONLY);
    lseek(later, 100, SEEK_SET);
    dup2(later, 0);
    close(later);
    OK(lin_audio_open("-", NULL, &a, &err));
    ck_assert_int_eq(read_all(a, x, 200, &info, &why), 78);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    refused("-", NULL, LIN_FORMAT, "contains no samples"); // live: it is not a regular file
    dup2(keep, 0);
    close(keep);
    close(fd);
    close(wav);
    close(null);
}
END_TEST

// Behind the samples of a WAV file chunks may follow, which are passed at its end.
START_TEST(seeking_back_from_the_end)
{
    enum { SAMPLES = 3000 };
    static const unsigned char chunk[] = {'L', 'I', 'S', 'T', 6, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f'};
    float x[SAMPLES], y[SAMPLES];
    lin_audio *a;
    lin_error why = {0};
    int n;
    noise(x, SAMPLES, 0.5);
    const char *path = write_sound("s.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 1, x, SAMPLES);
    for (int with_chunk = 0; with_chunk < 2; with_chunk++) {
        ck_assert_int_eq(lin_audio_open(path, NULL, &a, &why), LIN_OK);
        do ck_assert_int_eq(lin_audio_read(a, y, SAMPLES, &n, &why), LIN_OK);
        while (n > 0);
        ck_assert_int_eq(lin_audio_seek(a, SAMPLES + 1, &why), LIN_UNSUPPORTED);
        ck_assert_int_eq(lin_audio_seek(a, 0, &why), LIN_OK);
        ck_assert_int_eq(read_all(a, y, SAMPLES, NULL, &why), SAMPLES);
        ck_assert_mem_eq(y, x, sizeof x);
        FILE *f = fopen(path, "ab");
        fwrite(chunk, 1, sizeof chunk, f);
        fclose(f);
    }
}
END_TEST

START_TEST(samples_in_memory)
{
    lin_audio *a;
    lin_error why = {0};
    float x[2 * 1000], y[2 * 1200];
    int n;
    for (int i = 0; i < 2000; i++) x[i] = (float)(i % 200) / 200 - 0.5f;
    const unsigned long before = lin_memory_live();
    ck_assert_int_eq(lin_audio_open_memory("x", x, 1000, 8000, 2, &a, &why), LIN_OK);
    ck_assert_int_eq((int)lin_audio_info(a)->frames, 1000);
    ck_assert_int_eq(lin_audio_read(a, y, 10, &n, &why), LIN_OK);
    ck_assert_int_eq(lin_audio_seek(a, 500, &why), LIN_OK);
    ck_assert_int_eq(lin_audio_read(a, y, 1200, &n, &why), LIN_OK);
    ck_assert_int_eq(n, 500);
    ck_assert_mem_eq(y, x + 1000, sizeof(float) * 1000);
    ck_assert_int_eq(lin_audio_seek(a, 1001, &why), LIN_UNSUPPORTED);
    ck_assert_int_eq(lin_audio_seek(a, 0, &why), LIN_OK);
    ck_assert_int_eq(read_all(a, y, 1200, NULL, &why), 1000);
    ck_assert_mem_eq(y, x, sizeof x);
    x[77] = NAN;
    ck_assert_int_eq(lin_audio_open_memory("x", x, 1000, 8000, 2, &a, &why), LIN_OK);
    ck_assert_int_eq(read_all(a, y, 1200, NULL, &why), -1);
    ck_assert_int_eq(why.status, LIN_NUMERIC);
    ck_assert_int_eq(lin_audio_open_memory("x", x, 0, 8000, 2, &a, &why), LIN_OK);
    ck_assert_int_eq(read_all(a, y, 1200, NULL, &why), 0);
    ck_assert_int_eq(lin_audio_open_memory("x", x, 1000, 100, 2, &a, &why), LIN_UNSUPPORTED);
    ck_assert_uint_eq(lin_memory_live(), before);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    int16_t samples[100] = {0};
    float x[100];
    noise(x, 100, 0.5);
    const char *wav = write_sound("k.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, x, 100),
               *raw_path = test_file("k.raw", samples, sizeof samples);
    lin_pcm_format raw = lin_pcm_default();
    for (int kind = 0; kind < 2; kind++) {
        lin_audio *a;
        int n;
        FAIL_EVERY_ALLOCATION_OF(a, lin_audio_open(kind ? raw_path : wav, kind ? &raw : NULL, &a, NULL), lin_audio_close(a));
        OK(lin_audio_open(kind ? raw_path : wav, kind ? &raw : NULL, &a, &err));
        const unsigned long before = lin_memory_count();
        OK(lin_audio_read(a, x, 100, &n, &err));
        ck_assert_int_eq(n, 100);
        ck_assert_uint_eq(lin_memory_count(), before);
        lin_audio_close(a);
    }
    lin_audio_close(NULL);
}
END_TEST

// Nothing here depends on installed programs.
static void no_programs(void) { setenv("LINNET_FFMPEG", "", 1); }

TEST_MAIN_WITH(no_programs, NULL, "frontend/audio", TESTS(formats_are_read, 0, (int)(sizeof formats / sizeof formats[0])),
               TEST(loud_floats_stay), TEST(extensible_wave64), TEST(raw_encodings), TEST(pipe_of_raw_samples),
               TEST(pipe_of_a_file), TEST(wav_in_a_pipe_is_live),
               TEST(pipes_of_other_things), TEST(refused_files), TEST(samples_that_are_no_sound), TEST(lying_and_broken_files),
               TEST(lengths_of_mp3), TEST(standard_input), TEST(seeking_back_from_the_end),
               TEST(samples_in_memory), TEST(every_allocation_may_fail))
