// [slow native] The microphone through the real PortAudio, in real time, from PulseAudio's virtual microphone
// (tests/app/virtual_mic.sh). If that server cannot start, the test is skipped, with a message.
#include <dlfcn.h>
#include <stdlib.h>

#include "tests/frontend/microphone_support.h"

// PulseAudio's client and ALSA's plugin for it leak a little at each opening, and pass memory between their threads in ways that
// ThreadSanitizer does not see. Allocations of linnet are counted (teardown), and test_microphone.c runs under it.
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

const char *__tsan_default_suppressions(void) { return "race:libpulse\nrace:libportaudio\nrace:libasound\nmutex:libpulse\n"; }
int __lsan_is_turned_off(void) { return 1; }

static char home[400];

static int shell(const char *command)
{
    char line[600];
    snprintf(line, sizeof line, ". tests/app/virtual_mic.sh; %s", command);
    return system(line);
}

// Nothing may be printed: standard error is a file, which must stay empty.
static int screen;

static void setup(void) { screen = to_file(test_path("stderr")); }

static void teardown(void)
{
    ck_assert_uint_eq(lin_memory_live(), 0);
}

static void assert_silent(void)
{
    const char *text = content(screen);
    ck_assert_msg(*text == 0, "on the screen: %s", text);
}

static const int rates[] = {16000, 44100, 48000};

// Plays half a second of noise and searches for it in the recording of a device, NULL: the default.
// 1 if every sample is there, contiguous, with the same bits.
static int heard_what_was_played(int rate, const char *device, uint64_t seed, char *why, size_t capacity)
{
    enum { MOST = 24000, ROOM = 6 * 48000 };
    static int16_t played[MOST];
    static float y[ROOM];
    lin_microphone_report report;
    char line[300];
    const int length = rate / 2;
    int total = 0, at = 0, n;
    for (int i = 0; i < length; i++) played[i] = (int16_t)(1 + (int)lin_random_below(seed, (uint64_t)i, 30000)); // never silent
    const char *path = test_file("played", played, (size_t)length * sizeof *played);
    lin_microphone_options options = named(device);
    if (!device) options.rate_hz = rate; // a source has its own
    lin_microphone *mic = open_with(options);
    ck_assert_int_eq(lin_microphone_format_of(mic)->rate_hz, rate);
    snprintf(line, sizeof line, "virtual_mic_play_raw \"$PLAYED\" %d &", rate);
    setenv("PLAYED", path, 1);
    ck_assert_int_eq(shell(line), 0);
    for (const double begin = lin_now(); lin_now() - begin < 6 && total + 4096 < ROOM;) {
        OK(lin_microphone_read(mic, y + total, 4096, 100, &n, &err));
        total += n;
        while (at < total && y[at] == 0) at++;
        if (at + length + 100 <= total) break;
    }
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    ck_assert_int_eq(report.captured, report.read + report.waiting + report.dropped);
    if (at + length > total || report.dropped > 0) {
        snprintf(why, capacity, "%d Hz: %d frames recorded, sound from %d on, of %d; %lld dropped", rate, total, at, length,
                 (long long)report.dropped);
        return 0;
    }
    for (int i = 0; i < length; i++) {
        if (y[at + i] == (float)played[i] / 32768) continue;
        snprintf(why, capacity, "%d Hz: frame %d is %.9g, was played as %.9g; %lld overflows", rate, i, (double)y[at + i],
                 (double)played[i] / 32768, (long long)report.overflows);
        return 0;
    }
    return 1;
}

// PulseAudio drops sound if the machine is busy, so one of many attempts must succeed completely.
static void hears(int rate, const char *device, int default_rate)
{
    char line[60], why[300] = "";
    int equal = 0;
    snprintf(line, sizeof line, "virtual_mic_use %d", default_rate);
    ck_assert_int_eq(shell(line), 0);
    for (uint64_t attempt = 0; attempt < 30 && !equal; attempt++)
        equal = heard_what_was_played(rate, device, attempt, why, sizeof why);
    ck_assert_msg(equal, "%s", why);
    assert_silent();
}

START_TEST(what_is_played_is_heard) { hears(rates[_i], NULL, rates[_i]); }
END_TEST

// A source that is not the default, by its name; the environment is as before.
START_TEST(a_source_by_name)
{
    char source[40];
    snprintf(source, sizeof source, "spk%d.monitor", rates[_i]);
    if (_i) setenv("PULSE_SOURCE", "another", 1);
    hears(rates[_i], source, rates[(_i + 1) % 3]);
    if (_i) ck_assert_str_eq(getenv("PULSE_SOURCE"), "another");
    else ck_assert_ptr_null(getenv("PULSE_SOURCE"));
    unsetenv("PULSE_SOURCE");
    ck_assert_ptr_null(getenv("PIPEWIRE_NODE"));
}
END_TEST

START_TEST(a_list)
{
    lin_error failure = {0};
    lin_microphone_info *found;
    lin_microphone *mic;
    char why[300];
    int n, defaults = 0;
    OK(lin_microphone_list(&found, &n, why, sizeof why, &err));
    ck_assert_int_ge(n, 1);
    ck_assert_str_eq(why, "");
    int sources = 0;
    for (int i = 0; i < n; i++) {
        char name[60];
        defaults += found[i].is_default;
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "(spk%d.monitor)", rates[k]);
            if (!strstr(found[i].name, name)) continue;
            ck_assert(found[i].rate_hz == rates[k] && found[i].channels == 1 && strcmp(found[i].system, "PulseAudio") == 0);
            sources++;
        }
        for (int k = 0; k < i; k++) ck_assert_int_ne(found[k].index, found[i].index);
    }
    ck_assert_int_eq(defaults, 1);
    ck_assert_int_eq(sources, 3);
    lin_free(found);
    setenv("LINNET_PULSE", "", 1); // none
    int without;
    OK(lin_microphone_list(&found, &without, why, sizeof why, &err));
    ck_assert_int_eq(without, n - 3);
    lin_free(found);
    unsetenv("LINNET_PULSE");
    const lin_microphone_options options = named("no such device");
    ck_assert_int_eq(lin_microphone_open(&options, &mic, &failure), LIN_INVALID);
    ck_assert_ptr_nonnull(strstr(failure.message, "no microphone has \"no such device\" in its name; devices: "));
    ck_assert_msg(strstr(failure.message, "default") != NULL, "%s", failure.message);
    // ALSA prints nothing after that, on any thread.
    int (*open_pcm)(void **, const char *, int, int);
    void *pcm, *alsa = dlopen("libasound.so.2", RTLD_NOW | RTLD_NOLOAD), *symbol = alsa ? dlsym(alsa, "snd_pcm_open") : NULL;
    ck_assert_ptr_nonnull(symbol);
    memcpy(&open_pcm, &symbol, sizeof symbol);
    ck_assert_int_lt(open_pcm(&pcm, "nothing of that name", 1, 0), 0);
    assert_silent();
}
END_TEST

START_TEST(the_ring_overflows)
{
    lin_microphone_report report;
    lin_microphone_options options = lin_microphone_options_default();
    static float y[2048];
    int n;
    options.ring_s = 0.01;
    lin_microphone *mic = open_with(options);
    OK(lin_microphone_read(mic, y, 1, 1000 * LIMIT_S, &n, &err));
    ck_assert_int_eq(n, 1);
    for (int i = 0; i < 100 * LIMIT_S; i++) {
        lin_microphone_report_now(mic, &report);
        if (report.dropped > 4000) break;
        rest(0.01);
    }
    ck_assert_int_eq(report.waiting, 512);
    ck_assert_msg(report.dropped > 4000, "only %lld frames were dropped", (long long)report.dropped);
    // It continues when there is room again.
    OK(lin_microphone_read(mic, y, 2048, 0, &n, &err));
    ck_assert_int_eq(n, 512);
    OK(lin_microphone_read(mic, y, 2048, 1000 * LIMIT_S, &n, &err));
    ck_assert_int_gt(n, 0);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    // The callback's counters are read one after the other, but no thread writes them now.
    ck_assert_int_ge(report.captured, report.read + report.dropped);
    assert_silent();
}
END_TEST

START_TEST(the_source_stalls)
{
    lin_microphone_report report;
    lin_microphone_options options = lin_microphone_options_default();
    static float y[2048];
    int n;
    ck_assert_int_eq(shell("virtual_mic_stalled"), 0);
    options.stall_ms = 500;
    lin_microphone *mic = open_with(options);
    const double begin = lin_now();
    FAILS(lin_microphone_read(mic, y, 2048, 2000 * LIMIT_S, &n, &err), LIN_IO, "no sound from the microphone");
    ck_assert_msg(lin_now() - begin < LIMIT_S, "after %g s", lin_now() - begin);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    ck_assert_int_eq(report.captured, 0);
    ck_assert_msg(lin_now() - begin < 2 * LIMIT_S, "closing took until %g s", lin_now() - begin);
    assert_silent();
}
END_TEST

// Reads until the error; at least a tenth of a second of sound must come before it.
static void read_until_lost(lin_microphone *mic, const char *command)
{
    lin_error failure = {0};
    lin_microphone_report report;
    lin_status status = LIN_OK;
    static float y[4096];
    int n, total = 0, gone = 0;
    for (const double begin = lin_now(); status == LIN_OK && lin_now() - begin < 4 * LIMIT_S;) {
        status = lin_microphone_read(mic, y, 4096, 100, &n, &failure);
        total += n;
        if (total < 4410 || gone) continue;
        gone = 1;
        ck_assert_int_eq(shell(command), 0);
    }
    ck_assert_int_eq(status, LIN_IO);
    ck_assert_msg(strstr(failure.message, "is lost") != NULL, "%s", failure.message);
    ck_assert_int_ge(total, 4410);
    lin_microphone_report_now(mic, &report);
    lin_microphone_close(mic);
    ck_assert_int_eq(report.read, total);
}

START_TEST(the_device_disappears)
{
    // All others first: PulseAudio would move the stream there.
    ck_assert_int_eq(shell("virtual_mic_use 48000; virtual_mic_unplug 16000; virtual_mic_unplug 44100; "
                           "pactl unload-module module-pipe-source; true"),
                     0);
    lin_microphone *mic = open_with(lin_microphone_options_default());
    read_until_lost(mic, "virtual_mic_unplug 48000");
    if (own_descriptors_allowed()) assert_silent();
}
END_TEST

START_TEST(the_server_dies)
{
    lin_microphone_info *found;
    lin_microphone *mic;
    char why[300];
    int n;
    ck_assert_int_eq(shell("pactl load-module module-null-sink sink_name=spk8000 rate=8000 channels=1 norewinds=1 > /dev/null && "
                           "virtual_mic_use 8000"),
                     0);
    mic = open_with(lin_microphone_options_default());
    read_until_lost(mic, "virtual_mic_kill");
    // There is no device left to record from.
    OK(lin_microphone_list(&found, &n, why, sizeof why, &err));
    ck_assert_int_eq(n, 0);
    ck_assert_msg(strncmp(why, "no microphone: the system has no", 31) == 0 || strstr(why, "/dev/snd") ||
                      strstr(why, "can record"),
                  "%s", why);
    lin_free(found);
    if (own_descriptors_allowed()) assert_silent();
}
END_TEST

// 1 if PulseAudio runs, with HOME as its folder.
static int start_virtual_mic(void)
{
    char command[200], line[400] = "";
    snprintf(command, sizeof command,
             ". tests/app/virtual_mic.sh; VIRTUAL_MIC_OWNER=%ld; virtual_mic_start 16000 44100 48000 && echo \"=$HOME\" || "
             "echo \"$virtual_mic_why\"",
             (long)getpid());
    FILE *pipe = popen(command, "r");
    if (!pipe) return 0;
    const int got = fgets(line, sizeof line, pipe) != NULL;
    pclose(pipe);
    line[strcspn(line, "\n")] = 0;
    if (!got || *line != '=') {
        printf("skipped: no virtual microphone: %s\n", line);
        return 0;
    }
    snprintf(home, sizeof home, "%s", line + 1);
    setenv("HOME", home, 1);
    setenv("XDG_RUNTIME_DIR", home, 1);
    setenv("virtual_mic_home", home, 1);
    setenv("virtual_mic_old_home", home, 1);
    return 1;
}

int main(void)
{
    Suite *suite = suite_create("frontend/microphone, live");
    TCase *cases = tcase_create("live");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_list);
    tcase_add_loop_test(cases, what_is_played_is_heard, 0, 3);
    tcase_add_loop_test(cases, a_source_by_name, 0, 3);
    tcase_add_test(cases, the_ring_overflows);
    tcase_add_test(cases, the_source_stalls);
    tcase_add_test(cases, the_device_disappears);
    tcase_add_test(cases, the_server_dies);
    if (!start_virtual_mic()) {
        puts("100%: Checks: 0, Failures: 0, Errors: 0");
        return EXIT_SUCCESS;
    }
    suite_add_tcase(suite, cases);
    const int status = test_run(suite);
    if (shell("virtual_mic_stop") != 0) puts("the virtual microphone did not stop");
    return status;
}
