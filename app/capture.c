// capture.c - where live sound comes from; see capture.h.

#include "app/capture.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "app/common.h"
#include "base/memory.h"

struct lin_capture {
    lin_microphone *mic;
    lin_audio *audio;
    int is_pipe; // sound in the making
    int unpaced, ended;
    double opened, begun; // begun: when frame 0 was captured
    int64_t frames;       // read
};

lin_status lin_capture_open(const lin_capture_options *options, lin_capture **capture, lin_error *err)
{
    *capture = NULL;
    lin_capture *h = lin_calloc(1, sizeof *h);
    if (!h) return lin_no_memory(err, "live sound", sizeof *h);
    lin_status status = options->path ? lin_audio_open(options->path, options->raw, &h->audio, err)
                                      : lin_microphone_open(options->microphone, &h->mic, err);
    if (status != LIN_OK) {
        lin_capture_close(h, NULL);
        return status;
    }
    h->is_pipe = h->audio && lin_audio_is_live(h->audio);
    h->unpaced = options->unpaced;
    h->opened = h->begun = lin_now();
    *capture = h;
    return LIN_OK;
}

const char *lin_capture_name(const lin_capture *h)
{
    return h->mic ? lin_microphone_format_of(h->mic)->device.name : "";
}

int lin_capture_rate(const lin_capture *h)
{
    return h->mic ? lin_microphone_format_of(h->mic)->rate_hz : lin_audio_info(h->audio)->rate_hz;
}

int lin_capture_channels(const lin_capture *h)
{
    return h->mic ? lin_microphone_format_of(h->mic)->channels : lin_audio_info(h->audio)->channels;
}

// Until then, or until a signal. 0 if a signal came.
static int sleep_until(double when)
{
    const double left = when - lin_now();
    if (left <= 0) return 1;
    const struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    return nanosleep(&t, NULL) == 0;
}

// A block of a file becomes audible when its last sample would have been spoken.
static lin_status read_file(lin_capture *h, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    const int rate_hz = lin_capture_rate(h);
    const double until = lin_now() + timeout_ms * 1e-3;
    if (!h->unpaced && !h->is_pipe) {
        const int block = rate_hz / 100 > 0 ? rate_hz / 100 : 1; // 10 ms, as a sound card would give
        if (n > block) n = block;
        const double due = h->begun + (double)(h->frames + n) / rate_hz;
        if (!sleep_until(due < until ? due : until) || due > until) return LIN_OK;
    }
    if (h->is_pipe && lin_audio_wait_for(h->audio) >= 0) {
        struct pollfd in = {.fd = lin_audio_wait_for(h->audio), .events = POLLIN};
        const double left_ms = (until - lin_now()) * 1e3;
        if (poll(&in, 1, left_ms > 0 ? (int)left_ms + 1 : 0) <= 0) return LIN_OK;
    }
    lin_status status = lin_audio_read(h->audio, samples, n, n_got, err);
    if (status != LIN_OK) return status;
    h->ended = *n_got == 0;
    h->frames += *n_got;
    // A pipe has no pace of its own: its sound was captured when it was read.
    if (h->unpaced || h->is_pipe) h->begun = lin_now() - (double)h->frames / rate_hz;
    return LIN_OK;
}

lin_status lin_capture_read(lin_capture *h, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    *n_got = 0;
    if (!h->mic) return h->ended ? LIN_OK : read_file(h, samples, n, timeout_ms, n_got, err);
    lin_status status = lin_microphone_read(h->mic, samples, n, timeout_ms, n_got, err);
    h->frames += *n_got;
    return status;
}

int lin_capture_ended(const lin_capture *h) { return h->ended; }

double lin_capture_age(const lin_capture *h)
{
    if (h->mic) return lin_microphone_age(h->mic);
    const double age = lin_now() - (h->begun + (double)h->frames / lin_capture_rate(h));
    return age > 0 ? age : 0;
}

void lin_capture_report(const lin_capture *h, lin_microphone_report *report)
{
    if (h->mic) {
        lin_microphone_report_now(h->mic, report);
        return;
    }
    memset(report, 0, sizeof *report);
    report->captured = report->read = h->frames;
    report->open_s = lin_now() - h->opened;
}

const char *lin_capture_warning(const lin_capture *h) { return h->mic ? "" : lin_audio_info(h->audio)->warning; }

const char *lin_capture_notice(const lin_capture *h) { return h->mic ? "" : lin_audio_info(h->audio)->notice; }

int lin_capture_incomplete(const lin_capture *h) { return h->audio && lin_audio_info(h->audio)->incomplete; }

void lin_capture_close(lin_capture *h, lin_microphone_report *report)
{
    if (report) memset(report, 0, sizeof *report);
    if (!h) return;
    if (h->mic) {
        lin_microphone_close(h->mic, report);
    } else {
        if (report && h->audio) lin_capture_report(h, report);
        lin_audio_close(h->audio);
    }
    lin_free(h);
}
