// [slow] The microphone with a fake PortAudio that simulates all faults. With the real one: test_microphone_live.c.

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "tests/frontend/count_mallocs.h"
#include "tests/frontend/fake_portaudio.h"
#include "tests/frontend/microphone_support.h"

static const fake_device desk[] = {
    {"HDA Intel: ALC (hw:0,0)", 2, 0, 44100},    {"HDMI 0", 0, 0, 44100},   {"USB Audio: - (hw:2,0)", 1, 0, 48000},
    {"USB Studio: Eight (hw:3,0)", 8, 0, 96000}, {"default", 32, 0, 44100}, {"system", 2, 1, 22050}};
enum { N_DESK = sizeof desk / sizeof *desk };

static lin_microphone *open_desk(void)
{
    fake_devices(desk, N_DESK, 2);
    return open_with(lin_microphone_options_default());
}

/* ---- listing --------------------------------------------------------------------------------------------------------------- */

START_TEST(list)
{
    lin_microphone_info *found;
    char why[300];
    int n;
    fake_devices(desk, N_DESK, 4);
    OK(lin_microphone_list(&found, &n, why, sizeof why, &err));
    ck_assert_int_eq(n, 5);
    ck_assert_str_eq(why, "");
    ck_assert_int_eq(found[1].index, 2);
    ck_assert_str_eq(found[1].name, "USB Audio: - (hw:2,0)");
    ck_assert_int_eq(found[1].channels, 1);
    ck_assert_int_eq(found[1].rate_hz, 48000);
    ck_assert_str_eq(found[1].system, "ALSA");
    ck_assert_str_eq(found[4].system, "JACK Audio Connection Kit");
    for (int i = 0; i < n; i++) ck_assert_int_eq(found[i].is_default, found[i].index == 4);
    lin_free(found);
    ck_assert_int_eq(fake.initialized, 0);
}
END_TEST

START_TEST(list_of_none)
{
    lin_microphone_info *found;
    lin_microphone *mic;
    char why[300];
    int n = 7;
    fake_devices(desk + 1, 1, -1); // it cannot record
    OK(lin_microphone_list(&found, &n, why, sizeof why, &err));
    ck_assert_int_eq(n, 0);
    ck_assert_msg(strncmp(why, "no microphone: ", 15) == 0, "%s", why);
    lin_free(found);
    OK(lin_microphone_list(&found, &n, NULL, 0, &err));
    lin_free(found);
    const lin_microphone_options options = lin_microphone_options_default();
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_IO, why);
    ck_assert_ptr_null(mic);
    fake.count = paInternalError;
    FAILS(lin_microphone_list(&found, &n, why, sizeof why, &err), LIN_IO, "Internal PortAudio error");
    ck_assert_ptr_null(found);
    fake.initialize = paInternalError;
    FAILS(lin_microphone_list(&found, &n, why, sizeof why, &err), LIN_IO,
          "no microphone: the sound system cannot be initialised: Internal PortAudio error");
    fake.initialize = paUnanticipatedHostError;
    fake.host = (PaHostErrorInfo){.errorText = "PulseAudio_Initialize: Can't connect to server"};
    FAILS(lin_microphone_list(&found, &n, why, sizeof why, &err), LIN_IO,
          "the sound system cannot be initialised: Unanticipated host error: PulseAudio_Initialize: Can't connect to server");
    ck_assert_int_eq(fake.initialized, 0);
}
END_TEST

START_TEST(sources_listed_twice)
{
    static const fake_device both[] = {{"pulse", 32, 0, 44100}, {"Default Source", 32, 2, 44100}, {"spk.monitor", 1, 2, 16000}};
    lin_microphone_info *found;
    int n;
    setenv("LINNET_PULSE", "", 1);
    for (int has_plugin = 0; has_plugin < 2; has_plugin++) { // PortAudio's are left out where ALSA's plugin records ours
        fake_devices(both + !has_plugin, 2 + has_plugin, 0);
        OK(lin_microphone_list(&found, &n, NULL, 0, &err));
        ck_assert_int_eq(n, has_plugin ? 1 : 2);
        ck_assert_str_eq(found[0].name, has_plugin ? "pulse" : "Default Source");
        lin_free(found);
    }
}
END_TEST

START_TEST(without_portaudio)
{
    lin_microphone_info *found;
    int n;
    setenv("LINNET_PORTAUDIO", "libnothing-of-that-name.so.2", 1);
    FAILS(lin_microphone_list(&found, &n, NULL, 0, &err), LIN_UNSUPPORTED, "libnothing-of-that-name");
    FAILS(lin_microphone_list(&found, &n, NULL, 0, &err), LIN_UNSUPPORTED, "libportaudio2");
    setenv("LINNET_PORTAUDIO", "libm.so.6", 1);
    FAILS(lin_microphone_list(&found, &n, NULL, 0, &err), LIN_UNSUPPORTED, "has no Pa_Initialize");
}
END_TEST

START_TEST(choosing)
{
    static const struct {
        const char *name;
        int index; // or -1:
        const char *message;
    } cases[] = {{NULL, 4, NULL},
                 {"3", 3, NULL},
                 {"usb audio", 2, NULL},
                 {"SYSTEM", 5, NULL},
                 {"hw:0", 0, NULL},
                 {"1", -1, "no microphone has the number 1; devices: 0: HDA"}, // it cannot record
                 {"99999999999999999999", -1, "no microphone has the number"},
                 {"usb", -1,
                  "several microphones have \"usb\" in their name; choose by number: 2: USB Audio: - (hw:2,0), 3: USB St"},
                 {"Zoom", -1, "no microphone has \"Zoom\" in its name; devices: 0: HDA Intel: ALC (hw:0,0), 2: USB"},
                 {"HDMI", -1, "no microphone has \"HDMI\""},
                 {"", -1, "the name of a device is empty"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_microphone *mic;
        const lin_microphone_options options = named(cases[i].name);
        fake_devices(desk, N_DESK, 4);
        if (cases[i].index < 0) {
            FAILS(lin_microphone_open(&options, &mic, &err), LIN_INVALID, cases[i].message);
            ck_assert_ptr_null(mic);
        } else {
            OK(lin_microphone_open(&options, &mic, &err));
            ck_assert_int_eq(lin_microphone_format_of(mic)->device.index, cases[i].index);
            ck_assert_int_eq(fake.device, cases[i].index);
            lin_microphone_close(mic);
        }
        ck_assert_int_eq(fake.initialized, 0);
    }
    // A complete name takes precedence over a part of another.
    static const fake_device twins[] = {{"default: front", 2, 0, 44100}, {"default", 2, 0, 44100}};
    fake_devices(twins, 2, 0);
    lin_microphone *mic = open_with(named("Default"));
    ck_assert_int_eq(fake.device, 1);
    lin_microphone_close(mic);
    // Too many for the message.
    static fake_device many[200];
    for (int i = 0; i < 200; i++) many[i] = desk[0];
    const lin_microphone_options options = named("Zoom");
    fake_devices(many, 200, 0);
    lin_error why = {0};
    ck_assert_int_eq(lin_microphone_open(&options, &mic, &why), LIN_INVALID);
    HAS(why.message, ", ...");
}
END_TEST

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

START_TEST(own_rate_and_channels)
{
    static const struct {
        const char *name;
        int rate, opened;
    } cases[] = {{"0", 44100, 2}, {"2", 48000, 1}, {"3", 96000, 2}, {"5", 22050, 2}};
    for (int i = 0; i < 4; i++) {
        fake_devices(desk, N_DESK, 4);
        lin_microphone *mic = open_with(named(cases[i].name));
        const lin_microphone_format *format = lin_microphone_format_of(mic);
        ck_assert_int_eq(format->rate_hz, cases[i].rate);
        ck_assert(fake.rate_hz == cases[i].rate);
        ck_assert_int_eq(format->opened, cases[i].opened);
        ck_assert_int_eq(fake.channels, cases[i].opened);
        ck_assert_int_eq(format->channels, 1);
        ck_assert(fake.suggested_s == 0.02);
        ck_assert_int_eq(fake.started, 1);
        lin_microphone_close(mic);
        ck_assert_int_eq(fake.closed, 1);
    }
    lin_microphone_options options = named("3");
    options.rate_hz = 16000;
    options.channels = 5;
    options.interleaved = 1;
    lin_microphone *mic = open_with(options);
    ck_assert(fake.rate_hz == 16000 && fake.channels == 5);
    ck_assert_int_eq(lin_microphone_format_of(mic)->channels, 5);
    lin_microphone_close(mic);
}
END_TEST

START_TEST(a_rate_that_is_none)
{
    lin_microphone *mic;
    lin_microphone_options options = named("0");
    // The driver's default rate fails, and two channels too: the next usual rate, and one channel.
    fake_devices(desk, N_DESK, 4);
    fake.open[0] = paInvalidChannelCount;
    fake.open[1] = paInvalidSampleRate;
    mic = open_with(options);
    ck_assert_int_eq(fake.opened, 3);
    ck_assert(fake.rate_hz == 48000 && fake.channels == 1);
    ck_assert_int_eq(lin_microphone_format_of(mic)->rate_hz, 48000);
    lin_microphone_close(mic);
    // A rate given in the options is not replaced.
    options.rate_hz = 12345;
    fake_devices(desk, N_DESK, 4);
    fake.open[0] = paInvalidSampleRate;
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_UNSUPPORTED, "cannot record at 12345 Hz; its own rate is 44100");
    options.rate_hz = 0;
    options.channels = 3;
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_UNSUPPORTED, "cannot record 3 channels; it has 2");
    fake_devices(desk, N_DESK, 4);
    options.channels = 2;
    fake.open[0] = paInvalidChannelCount;
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_UNSUPPORTED, "2 channels");
    for (int i = 0; i < 8; i++) fake.open[i] = paInvalidSampleRate;
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_UNSUPPORTED, "at 44100 Hz");
    ck_assert_int_eq(fake.initialized, 0);
}
END_TEST

// PortAudio gets no rate outside the limits.
START_TEST(rates_beyond_reason)
{
    static const fake_device odd[] = {{"hi-res", 2, 0, 384000}, {"liar", 2, 0, 1e9}, {"many", 2000, 0, 48000}};
    lin_microphone *mic;
    for (int i = 0; i < 2; i++) {
        fake_devices(odd, 3, i);
        mic = open_with(lin_microphone_options_default());
        ck_assert_int_eq(fake.opened, 1);
        ck_assert(fake.rate_hz == 48000);
        lin_microphone_close(mic);
    }
    lin_microphone_options options = lin_microphone_options_default();
    options.channels = 65;
    fake_devices(odd, 3, 2);
    FAILS(lin_microphone_open(&options, &mic, &err), LIN_UNSUPPORTED, "channels");
    ck_assert_int_eq(fake.opened, 0);
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        PaError open, start;
        const char *host, *noise, *message;
    } cases[] = {
        {paDeviceUnavailable, 0, "", NULL, "\"USB Audio: - (hw:2,0)\" is busy: another program has it open"},
        {paUnanticipatedHostError, 0, "Device or resource busy", NULL, "is busy"},
        {paBadIODeviceCombination, 0, "",
         "jack: hello\nopen '/dev/snd/pcmC2D0c' failed: Permission denied\nExpression 'x' failed\n",
         "permission denied for the microphone \"USB Audio: - (hw:2,0)\"; add yourself to the group audio"},
        {paUnanticipatedHostError, 0, "Permission denied", NULL, "permission denied"},
        {paUnanticipatedHostError, 0, "No such device", NULL,
         "cannot open the microphone \"USB Audio: - (hw:2,0)\": Unanticipated host error: No such device"},
        {paInternalError, 0, "", "\nUnable to create\a stream: Refused\nExpression 'y' failed in 'z'\n",
         "cannot open the microphone \"USB Audio: - (hw:2,0)\": Internal PortAudio error: Unable to create  stream: Refused"},
        {paInternalError, 0, "", NULL, "cannot open the microphone \"USB Audio: - (hw:2,0)\": Internal PortAudio error"},
        {0, paUnanticipatedHostError, "No such device", NULL, "Unanticipated host error: No such device"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lin_microphone *mic;
        const lin_microphone_options options = lin_microphone_options_default();
        const unsigned long live = lin_memory_live();
        fake_devices(desk, N_DESK, 2);
        fake.open[0] = cases[i].open;
        fake.start = cases[i].start;
        fake.host.errorText = cases[i].host;
        fake.noise = cases[i].noise;
        FAILS(lin_microphone_open(&options, &mic, &err), LIN_IO, cases[i].message);
        ck_assert_ptr_null(mic);
        ck_assert_int_eq(fake.initialized, 0);
        ck_assert_int_eq(fake.closed, cases[i].start != 0);
        ck_assert_uint_eq(lin_memory_live(), live);
    }
}
END_TEST

START_TEST(nothing_asked_for)
{
    int n;
    fake_devices(desk, N_DESK, 2);
    lin_microphone *mic = open_desk();
    OK(lin_microphone_read(mic, NULL, 0, -1, &n, &err));
    ck_assert_int_eq(n, 0);
    lin_microphone_close(mic);
    lin_microphone_close(NULL);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const lin_microphone_options options = named("USB Audio");
    const unsigned long live = lin_memory_live();
    lin_error why = {0};
    lin_microphone_info *found;
    lin_microphone *mic;
    int n;
    fake_devices(desk, N_DESK, 2);
    FAIL_EVERY_ALLOCATION_OF(mic || fake.initialized || (fake.started && fake.closed != 1),
                             lin_microphone_open(&options, &mic, &why), lin_microphone_close(mic));
    for (unsigned long k = 1; k < 3; k++) {
        lin_memory_fail_at(k);
        ck_assert_int_eq(lin_microphone_list(&found, &n, NULL, 0, &why), LIN_NO_MEMORY);
        lin_memory_fail_at(0);
        ck_assert(found == NULL && n == 0);
    }
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

START_TEST(what_comes_is_read)
{
    static float x[6 * 1000], y[6 * 1000];
    test_fill_f32(x, 6000, 3, -1, 1);
    for (int C = 1; C <= 6; C++) {
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            lin_microphone_options options = named("3");
            int at = 0, n = 0;
            options.channels = C;
            options.interleaved = interleaved;
            fake_devices(desk, N_DESK, 4);
            lin_microphone *mic = open_with(options);
            const int width = interleaved ? C : 1;
            ck_assert_int_eq(lin_microphone_format_of(mic)->channels, width);
            for (uint64_t i = 0; at < 1000; i++, at += n) {
                n = piece(9, i, 700, 1000 - at);
                ck_assert_int_eq(fake_give(x + at * C, n, 0), paContinue);
            }
            for (at = 0; at < 1000; at += n) {
                OK(lin_microphone_read(mic, y + at * width, 300, 0, &n, &err));
                ck_assert_int_gt(n, 0);
            }
            OK(lin_microphone_read(mic, y, 300, 0, &n, &err));
            ck_assert_int_eq(n, 0);
            for (int i = 0; i < 1000 && !interleaved; i++) {
                float sum = 0; // as frontend/source.c mixes
                for (int c = 0; c < C; c++) sum += x[i * C + c];
                x[i * C] = C > 1 ? sum / (float)C : sum;
                test_require(memcmp(&y[i], &x[i * C], sizeof *y) == 0, "%d channels, frame %d: %g is not the mean %g", C, i,
                             (double)y[i], (double)x[i * C]);
            }
            if (interleaved) test_same_f32("interleaved", y, x, (size_t)(1000 * C));
            test_fill_f32(x, 6000, 3, -1, 1);
            lin_microphone_close(mic);
        }
    }
}
END_TEST

START_TEST(a_file_without_a_limit_of_time)
{
    const int16_t sound[320] = {1, 2, 3};
    lin_pcm_format raw = lin_pcm_default();
    lin_microphone_options options = lin_microphone_options_default();
    lin_microphone *mic;
    float x[320];
    int n;
    options.path = test_file("x.raw", sound, sizeof sound);
    options.raw = &raw;
    OK(lin_microphone_open(&options, &mic, &err));
    OK(lin_microphone_read(mic, x, 320, -1, &n, &err));
    ck_assert_int_eq(n, 160); // 10 ms, when they have passed
    lin_microphone_close(mic);
}
END_TEST

START_TEST(everything_is_counted)
{
    static float x[100], y[100];
    lin_microphone_options options = lin_microphone_options_default();
    lin_microphone_report report;
    int n;
    fake_devices(desk, N_DESK, 2);
    options.ring_s = 64. / 48000;
    lin_microphone *mic = open_with(options);
    test_fill_f32(x, 100, 1, -1, 1);
    fake_give(x, 40, paInputOverflow);
    fake_give(NULL, 40, paInputOverflow); // some drivers give no sound with it
    OK(lin_microphone_read(mic, y, 10, 0, &n, &err));
    ck_assert_int_eq(n, 10);
    fake_give(x + 40, 60, 0); // 34 fit
    rest(0.02);
    lin_microphone_report_now(mic, &report);
    ck_assert_int_eq(report.captured, 100);
    ck_assert_int_eq(report.dropped, 26);
    ck_assert_int_eq(report.read, 10);
    ck_assert_int_eq(report.waiting, 64);
    ck_assert_int_eq(report.overflows, 2);
    OK(lin_microphone_read(mic, y + 10, 90, 0, &n, &err));
    ck_assert_int_eq(n, 64);
    test_same_f32("what fitted", y, x, 74);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    ck_assert_int_eq(report.read, 74);
    ck_assert_int_eq(report.waiting, 0);
    ck_assert_int_eq(report.dropped, 26);
}
END_TEST

START_TEST(age_of_what_was_read)
{
    static float x[4800], y[4800];
    int n;
    lin_microphone *mic = open_desk();
    ck_assert(lin_microphone_age(mic) == 0);
    fake.delay_s = 0.05;
    double before = lin_now();
    fake_give(x, 4800, 0); // 100 ms, whose last frame is 50 ms old
    OK(lin_microphone_read(mic, y, 2400, 0, &n, &err));
    double age = lin_microphone_age(mic), late = lin_now() - before;
    ck_assert_msg(age >= 0.0999 && age <= 0.101 + late, "the middle is %g s old", age);
    OK(lin_microphone_read(mic, y, 2400, 0, &n, &err));
    age = lin_microphone_age(mic), late = lin_now() - before;
    ck_assert_msg(age >= 0.0499 && age <= 0.051 + late, "the end is %g s old", age);
    rest(0.03);
    ck_assert(lin_microphone_age(mic) >= age + 0.03);
    // A driver without a clock: the age counts from its callback.
    fake.delay_s = 0;
    before = lin_now();
    fake_give(x, 480, 0);
    OK(lin_microphone_read(mic, y, 480, 0, &n, &err));
    age = lin_microphone_age(mic), late = lin_now() - before;
    ck_assert_msg(age >= 0 && age <= late, "%g s old", age);
    lin_microphone_close(mic);
}
END_TEST

static void *give_later(void *seconds)
{
    static const float x[10] = {1, 2, 3};
    rest(*(double *)seconds);
    fake_give(x, 10, 0);
    return NULL;
}

static void on_alarm(int number) { (void)number; }

START_TEST(waiting)
{
    pthread_t thread;
    float y[20];
    int n;
    double delay = 0.05;
    lin_microphone *mic = open_desk();
    double begin = lin_now();
    OK(lin_microphone_read(mic, y, 20, 0, &n, &err));
    ck_assert(n == 0 && lin_now() - begin < LIMIT_S);
    begin = lin_now();
    OK(lin_microphone_read(mic, y, 20, 60, &n, &err));
    ck_assert_msg(n == 0 && lin_now() - begin >= 0.06, "%d frames after %g s", n, lin_now() - begin);
    // New sound ends any wait.
    for (int timeout = -1; timeout <= 60000; timeout += 60001) {
        begin = lin_now();
        pthread_create(&thread, NULL, give_later, &delay);
        OK(lin_microphone_read(mic, y, 20, timeout, &n, &err));
        const double took = lin_now() - begin;
        ck_assert_msg(n == 10 && took >= 0.05 && took < LIMIT_S, "%d frames after %g s", n, took);
        pthread_join(thread, NULL);
    }
    // So does a signal.
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    sigaction(SIGALRM, &action, NULL);
    begin = lin_now();
    setitimer(ITIMER_REAL, &soon, NULL);
    OK(lin_microphone_read(mic, y, 20, 60000, &n, &err));
    ck_assert_msg(n == 0 && lin_now() - begin < LIMIT_S, "%d frames after %g s", n, lin_now() - begin);
    lin_microphone_close(mic);
}
END_TEST

START_TEST(stalled_and_back)
{
    lin_microphone_options options = lin_microphone_options_default();
    lin_microphone_report report;
    float y[20] = {0};
    int n;
    fake_devices(desk, N_DESK, 2);
    options.stall_ms = 1500;
    const double begin = lin_now();
    lin_microphone *mic = open_with(options);
    FAILS(lin_microphone_read(mic, y, 20, 60000, &n, &err), LIN_IO, "no sound from the microphone");
    ck_assert_msg(lin_now() - begin >= 1.5 && lin_now() - begin < LIMIT_S, "after %g s", lin_now() - begin);
    lin_microphone_report_now(mic, &report);
    // Reported again after the same time, not at once.
    OK(lin_microphone_read(mic, y, 20, 20, &n, &err));
    FAILS(lin_microphone_read(mic, y, 20, -1, &n, &err), LIN_IO, "no sound from the microphone");
    fake_give(y, 7, 0);
    OK(lin_microphone_read(mic, y, 20, 0, &n, &err));
    ck_assert_int_eq(n, 7);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    // Reports of a stall can be disabled.
    options.stall_ms = 0;
    mic = open_with(options);
    OK(lin_microphone_read(mic, y, 20, 300, &n, &err));
    lin_microphone_close(mic);
}
END_TEST

START_TEST(lost)
{
    lin_microphone_report report;
    float x[10] = {1, 2, 3}, y[10];
    int n;
    lin_microphone *mic = open_desk();
    fake_give(x, 10, 0);
    fake_end();
    // Sound recorded before is read first.
    OK(lin_microphone_read(mic, y, 6, 1000, &n, &err));
    ck_assert_int_eq(n, 6);
    OK(lin_microphone_read(mic, y, 6, 1000, &n, &err));
    ck_assert_int_eq(n, 4);
    for (int i = 0; i < 2; i++) {
        FAILS(lin_microphone_read(mic, y, 6, -1, &n, &err), LIN_IO, "\"USB Audio: - (hw:2,0)\" is lost");
        ck_assert_int_eq(n, 0);
    }
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    // An end that PortAudio does not report.
    mic = open_desk();
    fake.inactive = 1;
    const double begin = lin_now();
    FAILS(lin_microphone_read(mic, y, 6, -1, &n, &err), LIN_IO, "is lost");
    ck_assert(lin_now() - begin < LIMIT_S);
    lin_microphone_close(mic);
}
END_TEST

START_TEST(nothing_is_allocated_while_streaming)
{
    lin_error why = {0};
    static float x[2000], y[2000];
    int n, failed = 0, total = 0;
    fake_devices(desk, N_DESK, 4);
    lin_microphone *mic = open_with(named("0"));
    const unsigned long ours = lin_memory_count(), all = n_mallocs;
    for (int i = 0; i < 2000; i++) {
        fake_give(x, 441, 0);
        failed |= lin_microphone_read(mic, y, 441, 10, &n, &why) != LIN_OK;
        failed |= lin_microphone_age(mic) < 0;
        total += n;
    }
    const unsigned long ours_now = lin_memory_count(), all_now = n_mallocs;
    ck_assert_int_eq(failed, 0);
    ck_assert_int_eq(total, 2000 * 441);
    ck_assert_uint_eq(ours, ours_now);
    ck_assert_uint_eq(all, all_now);
    lin_microphone_close(mic);
}
END_TEST

typedef struct giver {
    atomic_int stop, read;
    int given; // at most half of the ring ahead of `read`
} giver;

static void *give_on(void *context)
{
    giver *g = context;
    static float x[512];
    while (!atomic_load(&g->stop)) {
        if (g->given - atomic_load(&g->read) < 100000) {
            fake_give(x, 512, 0);
            g->given += 512;
        }
        rest(0.0002);
    }
    return NULL;
}

// For ThreadSanitizer: the callback, the reader and the requests for a report each run on a thread of their own.
static void *ask_on(void *mic)
{
    lin_microphone_report report;
    for (int i = 0; i < 300; i++) {
        lin_microphone_report_now(mic, &report);
        rest(0.0005);
    }
    return NULL;
}

START_TEST(three_threads)
{
    static float y[1000];
    giver g = {0};
    pthread_t gives, asks;
    lin_microphone_report report;
    int n, total = 0;
    lin_microphone *mic = open_desk();
    pthread_create(&gives, NULL, give_on, &g);
    pthread_create(&asks, NULL, ask_on, mic);
    for (const double begin = lin_now(); lin_now() - begin < 0.2;) {
        OK(lin_microphone_read(mic, y, 1000, 100, &n, &err));
        total += n;
        atomic_store(&g.read, total);
    }
    atomic_store(&g.stop, 1);
    pthread_join(gives, NULL);
    pthread_join(asks, NULL);
    do {
        OK(lin_microphone_read(mic, y, 1000, 0, &n, &err));
        total += n;
    } while (n > 0);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    ck_assert_int_eq(total, g.given);
    ck_assert_int_eq(report.captured, g.given);
    ck_assert_int_eq(report.dropped, 0);
}
END_TEST

/* ---- effects of the sound system on the program ---------------------------------------------------------------------------- */

static lin_status say_something(const lin_portaudio *pa, void *context, lin_error *err)
{
    char line[100];
    (void)pa;
    if (write(STDERR_FILENO, "noise within\n", 13) < 0) return lin_fail(err, LIN_IO, "write");
    sem_post(((sem_t **)context)[0]);
    sem_wait(((sem_t **)context)[1]);
    lin_portaudio_noise(line, sizeof line);
    return lin_fail(err, LIN_IO, "caught: %s", line);
}

static void *on_other_thread(void *context)
{
    sem_wait(((sem_t **)context)[0]);
    if (write(STDERR_FILENO, "a message\n", 10) < 0) return context;
    sem_post(((sem_t **)context)[1]);
    return NULL;
}

START_TEST(noise_is_kept_off_the_screen)
{
    lin_error why = {0};
    sem_t said, go;
    sem_t *both[] = {&said, &go};
    pthread_t thread;
    int hangs;
    const int before = dup(STDERR_FILENO), file = to_file(test_path("stderr"));
    sem_init(&said, 0, 0);
    sem_init(&go, 0, 0);
    fake_devices(desk, N_DESK, 2);
    pthread_create(&thread, NULL, on_other_thread, both);
    lin_portaudio_run(say_something, NULL, both, 10000, &hangs, &why);
    pthread_join(thread, NULL);
    ck_assert(write(STDERR_FILENO, "after\n", 6) == 6);
    const char *text = content(file);
    dup2(before, STDERR_FILENO);
    ck_assert_msg(strstr(text, "noise") == NULL, "on the screen: %s", text);
    if (own_descriptors_allowed()) {
        ck_assert_str_eq(why.message, "caught: noise within");
        ck_assert_str_eq(text, "a message\nafter\n");
    } else {
        ck_assert_str_eq(text, "after\n"); // the other thread's message was caught too
    }
}
END_TEST

static sem_t undone;
static lin_status undone_with;

static lin_status wait_long(const lin_portaudio *pa, void *context, lin_error *err)
{
    (void)pa, (void)err;
    sem_wait(context);
    return LIN_OK;
}

static void note_undo(const lin_portaudio *pa, void *context, lin_status status)
{
    (void)context;
    undone_with = pa ? status : LIN_INVALID;
    sem_post(&undone);
}

START_TEST(a_sound_system_that_hangs)
{
    lin_error why = {0};
    sem_t forever;
    int hangs;
    sem_init(&forever, 0, 0);
    sem_init(&undone, 0, 0);
    fake_devices(desk, N_DESK, 2);
    undone_with = LIN_STOPPED;
    FAILS(lin_portaudio_run(wait_long, note_undo, &forever, 50, &hangs, &err), LIN_IO, "has not responded for 0.05 s");
    ck_assert_int_eq(hangs, 1);
    FAILS(lin_portaudio_run(wait_long, note_undo, &forever, 50, &hangs, &err), LIN_IO, "still does not respond");
    ck_assert_int_eq(hangs, 0);
    ck_assert_int_eq(undone_with, LIN_STOPPED);
    // It responds again: the unfinished work is undone, and new requests are served.
    sem_post(&forever);
    sem_wait(&undone);
    ck_assert_int_eq(undone_with, LIN_OK);
    lin_status status;
    for (int i = 0; i < 200; i++) {
        sem_post(&forever);
        status = lin_portaudio_run(wait_long, note_undo, &forever, 1000, &hangs, &why);
        if (status == LIN_OK) break;
        rest(0.01);
    }
    ck_assert_msg(status == LIN_OK, "%s", why.message);
}
END_TEST

START_TEST(closing_does_not_hang)
{
    sem_t forever;
    const unsigned long live = lin_memory_live();
    sem_init(&forever, 0, 0);
    lin_microphone *mic = open_desk();
    fake.closing_waits = &forever;
    const double begin = lin_now();
    lin_microphone_close(mic);
    ck_assert_msg(lin_now() - begin < LIMIT_S, "closing took %g s", lin_now() - begin);
    // The memory of a late callback is still valid; it is freed when the sound system has closed the stream.
    float x[10] = {0};
    fake_give(x, 10, 0);
    ck_assert_uint_gt(lin_memory_live(), live);
    sem_post(&forever);
    for (int i = 0; i < 100 * LIMIT_S && lin_memory_live() > live; i++) rest(0.01);
    ck_assert_uint_eq(lin_memory_live(), live);
    ck_assert_int_eq(fake.closed, 1);
}
END_TEST

TEST_MAIN("frontend/microphone", TEST(list), TEST(list_of_none), TEST(sources_listed_twice), TEST(without_portaudio),
          TEST(choosing),
          TEST(own_rate_and_channels), TEST(a_rate_that_is_none), TEST(rates_beyond_reason), TEST(refusals),
          TEST(nothing_asked_for), TEST(every_allocation_may_fail), TEST(what_comes_is_read),
          TEST(a_file_without_a_limit_of_time), TEST(everything_is_counted), TEST(age_of_what_was_read), TEST(waiting),
          TEST(stalled_and_back), TEST(lost), TEST(nothing_is_allocated_while_streaming), TEST(three_threads),
          TEST(noise_is_kept_off_the_screen), TEST(a_sound_system_that_hangs), TEST(closing_does_not_hang))
