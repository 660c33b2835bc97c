// read_sound.c - sends the samples of standard input to the process that started this one; see read_sound.h.

#include "serve/read_sound.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "frontend/ffmpeg.h"
#include "frontend/isolate.h"
#include "frontend/source.h"

// As many frames at once as frontend/source.c reads: behind damage, libsndfile goes on with FLAC in short reads only.
enum { SAMPLES = 1 << 14, FRAMES = LIN_SOURCE_BLOCK };

// Without the checks at exit: a sanitizer's search for lost memory needs calls that the sandbox refuses.
static _Noreturn void end(int status) { _exit(status); }

static void put(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        const ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) end(1); // nobody reads
        at += done;
        n -= (size_t)done;
    }
}

static void tell(const char *fmt, ...) LIN_PRINTF(1, 2);

static void tell(const char *fmt, ...)
{
    char line[LIN_HELPER_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    strcat(line, "\n");
    put(STDERR_FILENO, line, strlen(line));
}

static void tell_warning(const lin_audio_format *info)
{
    if (info->warning[0]) tell("%s %s", info->incomplete ? "missing" : "warning", info->warning);
}

// The first process of a namespace gets only the signals that it handles.
static void take_too_long(int number)
{
    static const char line[] = LIN_ISOLATE_TOO_LONG "\n";
    (void)number;
    put(STDERR_FILENO, line, sizeof line - 1);
    end(1);
}

void lin_read_sound(const char *name)
{
    static float samples[SAMPLES];
    static unsigned char bytes[4 * SAMPLES];
    lin_audio *audio;
    lin_error err = {0};
    int n = 1;
    signal(SIGXCPU, take_too_long);
    lin_child_share_group();
    lin_audio_bound_gaps(LIN_AUDIO_STRANGERS_GAP_S);
    lin_status status = lin_audio_open_fd(STDIN_FILENO, name, NULL, &audio, &err);
    if (status == LIN_OK) {
        const lin_audio_format *info = lin_audio_info(audio);
        tell("frames %lld", (long long)info->frames);
        if (info->notice[0]) tell("notice %s", info->notice);
        tell_warning(info);
        const int most = SAMPLES / info->channels < FRAMES ? SAMPLES / info->channels : FRAMES;
        lin_helper_put_header(bytes, info->rate_hz, info->channels);
        put(STDOUT_FILENO, bytes, LIN_HELPER_HEADER);
        while (status == LIN_OK && n > 0) {
            status = lin_audio_read(audio, samples, most, &n, &err);
            lin_helper_put(bytes, samples, n * info->channels);
            put(STDOUT_FILENO, bytes, 4 * (size_t)n * (size_t)info->channels);
        }
        if (status == LIN_OK) tell_warning(info);
    }
    if (status != LIN_OK) tell("fail %d %s", (int)status, err.message);
    if (status == LIN_OK) lin_audio_close(audio);
    end(0);
}
