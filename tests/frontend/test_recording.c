// Live sound into a WAV file: bits, a header that is valid before the end, write errors.
#include "frontend/microphone.h"

#include <sys/stat.h>

#include "frontend/audio.h"
#include "tests/frontend/support.h"

static int read_back(const char *path, float *x, int capacity, int *rate_hz, int *channels)
{
    lin_audio *audio;
    int n = 0, got;
    OK(lin_audio_open(path, NULL, &audio, &err));
    *rate_hz = lin_audio_info(audio)->rate_hz;
    *channels = lin_audio_info(audio)->channels;
    ck_assert_str_eq(lin_audio_info(audio)->warning, "");
    do {
        OK(lin_audio_read(audio, x + n * *channels, capacity - n, &got, &err));
        n += got;
    } while (got > 0 && n < capacity);
    lin_audio_close(audio);
    return n;
}

START_TEST(what_was_written_is_read)
{
    enum { N = 30000, MOST = 192000 };
    lin_recording *r;
    static float x[N * 3], y[N * 3];
    const int rate = (const int[]){4000, 16000, 44100, 192000}[_i], channels = (const int[]){1, 2, 3, 1}[_i];
    const char *path = test_path("heard.wav");
    test_fill_f32(x, N * 3, 7, -1.5, 1.5); // beyond full scale too: nothing is clipped
    x[5] = 1e-30f;
    OK(lin_recording_create(path, rate, channels, &r, &err));
    for (int at = 0, n, i = 0; at < N; at += n, i++) {
        n = piece(3, (uint64_t)i, 4000, N - at);
        OK(lin_recording_write(r, x + at * channels, n, &err));
    }
    OK(lin_recording_close(r, &err));
    int got_rate, got_channels;
    ck_assert_int_eq(read_back(path, y, N, &got_rate, &got_channels), N);
    ck_assert_int_eq(got_rate, rate);
    ck_assert_int_eq(got_channels, channels);
    ck_assert_mem_eq(x, y, (size_t)(N * channels) * sizeof *x);
}
END_TEST

// As after a crash: the file on the disk while it is still being written.
START_TEST(the_header_keeps_up)
{
    lin_recording *r;
    static float x[8000], y[80000];
    const char *path = test_path("growing.wav");
    char unfinished[400];
    snprintf(unfinished, sizeof unfinished, "%s.linnet-0.tmp", path);
    int rate, channels;
    test_fill_f32(x, 8000, 9, -1, 1);
    OK(lin_recording_create(path, 16000, 1, &r, &err));
    for (int i = 1; i <= 9; i++) {
        OK(lin_recording_write(r, x, 8000, &err));
        if (i < 2) continue;
        const int n = read_back(unfinished, y, 80000, &rate, &channels);
        ck_assert_int_le(n, i * 8000);
        ck_assert_int_ge(n, i * 8000 - 16000); // no more than the last second is missing
        ck_assert_mem_eq(x, y, sizeof x);
    }
    OK(lin_recording_close(r, &err));
}
END_TEST

START_TEST(equal_sound_equal_files)
{
    lin_recording *r;
    struct stat st;
    static unsigned char bytes[2][2000];
    size_t n[2];
    const float x[100] = {0.5f};
    for (int i = 0; i < 2; i++) {
        const char *path = test_path("same.wav");
        OK(lin_recording_create(path, 16000, 1, &r, &err));
        OK(lin_recording_write(r, x, 100, &err));
        OK(lin_recording_close(r, &err));
        ck_assert_int_eq(stat(path, &st), 0);
        n[i] = test_read_file(path, bytes[i], sizeof bytes[i]);
        ck_assert_uint_eq(n[i], (size_t)st.st_size);
        if (i == 0) usleep(1100000); // a date in the file would differ
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n[0]);
}
END_TEST

START_TEST(what_cannot_be_written)
{
    lin_error why = {0};
    lin_recording *r;
    static float x[100000];
    ck_assert_int_eq(lin_recording_create("/", 16000, 1, &r, &why), LIN_IO);
    ck_assert_ptr_null(r);
    ck_assert_str_eq(why.message, "cannot write /: it is a directory");
    FAILS(lin_recording_create(test_path("no/folder.wav"), 16000, 1, &r, &err), LIN_IO, "No such file or directory");
    ck_assert_int_eq(lin_recording_create(test_path("x.wav"), 3999, 1, &r, &why), LIN_UNSUPPORTED);
    ck_assert_int_eq(lin_recording_create(test_path("x.wav"), 16000, 0, &r, &why), LIN_UNSUPPORTED);
    lin_recording_close(NULL, NULL);
    if (access("/dev/full", W_OK) != 0) return;
    lin_status status = lin_recording_create("/dev/full", 16000, 1, &r, &why);
    for (int i = 0; i < 10 && status == LIN_OK; i++) status = lin_recording_write(r, x, 100000, &why);
    ck_assert_int_eq(status, LIN_IO);
    HAS(why.message, "cannot write /dev/full");
    lin_recording_close(r, NULL);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    lin_error why = {0};
    lin_recording *r;
    const char *path = test_path("memory.wav");
    FAIL_EVERY_ALLOCATION(lin_recording_create(path, 16000, 1, &r, &why), OK(lin_recording_close(r, &err)));
}
END_TEST

TEST_MAIN("frontend/recording", TESTS(what_was_written_is_read, 0, 4), TEST(the_header_keeps_up),
          TEST(equal_sound_equal_files), TEST(what_cannot_be_written), TEST(every_allocation_may_fail))
