// [slow native] The microphone through the real PortAudio, in real time, from PulseAudio's virtual microphone
// (tests/app/virtual_mic.sh): every sample, by the name of a source. Lists, the default source, stalls, losses and overflows are
// in test_devices.sh and test_listen.sh. If that server cannot start, the test is skipped, with a message.
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

static const int rates[] = {16000, 44100, 48000};

// Plays half a second of noise and searches for it in the recording of a device.
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
    lin_microphone *mic = open_with(named(device));
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

// A source that is not the default, by its name; the environment is as before.
START_TEST(a_source_by_name)
{
    char source[40], line[60], why[300] = "";
    int equal = 0;
    snprintf(line, sizeof line, "virtual_mic_use %d", rates[(_i + 1) % 3]); // the default
    ck_assert_int_eq(shell(line), 0);
    snprintf(source, sizeof source, "spk%d.monitor", rates[_i]);
    if (_i) setenv("PULSE_SOURCE", "another", 1);
    for (uint64_t attempt = 0; attempt < 30 && !equal; attempt++) // PulseAudio drops sound if the machine is busy
        equal = heard_what_was_played(rates[_i], source, attempt, why, sizeof why);
    ck_assert_msg(equal, "%s", why);
    if (_i) ck_assert_str_eq(getenv("PULSE_SOURCE"), "another");
    else ck_assert_ptr_null(getenv("PULSE_SOURCE"));
    unsetenv("PULSE_SOURCE");
    ck_assert_ptr_null(getenv("PIPEWIRE_NODE"));
    // ALSA prints nothing after that, on any thread.
    int (*open_pcm)(void **, const char *, int, int);
    void *pcm, *alsa = dlopen("libasound.so.2", RTLD_NOW | RTLD_NOLOAD), *symbol = alsa ? dlsym(alsa, "snd_pcm_open") : NULL;
    ck_assert_ptr_nonnull(symbol);
    memcpy(&open_pcm, &symbol, sizeof symbol);
    ck_assert_int_lt(open_pcm(&pcm, "nothing of that name", 1, 0), 0);
    ck_assert_str_eq(content(screen), "");
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
    if (!start_virtual_mic()) {
        puts("100%: Checks: 0, Failures: 0, Errors: 0");
        return EXIT_SUCCESS;
    }
    const int status = test_all("frontend/microphone, live", NULL, NULL, setup, teardown,
                                &(test_entry){a_source_by_name, 0, 3}, 1);
    if (shell("virtual_mic_stop") != 0) puts("the virtual microphone did not stop");
    return status;
}
