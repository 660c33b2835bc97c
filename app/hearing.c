// hearing.c - where live sound comes from; see hearing.h.

#include "app/hearing.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "app/common.h"
#include "base/memory.h"

struct lin_hearing {
    lin_microphone *mic;
    lin_audio *audio;
    int is_pipe; // sound in the making
    int unpaced, ended;
    double opened, begun; // begun: when frame 0 was heard
    int64_t frames;       // read
};

lin_status lin_hearing_open(const lin_hearing_options *options, lin_hearing **hearing, lin_error *err)
{
    *hearing = NULL;
    lin_hearing *h = lin_calloc(1, sizeof *h);
    if (!h) return lin_no_memory(err, "an ear", sizeof *h);
    lin_status status = options->path ? lin_audio_open(options->path, options->raw, &h->audio, err)
                                      : lin_microphone_open(options->microphone, &h->mic, err);
    if (status != LIN_OK) {
        lin_hearing_close(h, NULL);
        return status;
    }
    h->is_pipe = h->audio && lin_audio_is_live(h->audio);
    h->unpaced = options->unpaced;
    h->opened = h->begun = lin_now();
    *hearing = h;
    return LIN_OK;
}

const char *lin_hearing_name(const lin_hearing *h)
{
    return h->mic ? lin_microphone_format_of(h->mic)->device.name : lin_audio_info(h->audio)->format;
}

int lin_hearing_rate(const lin_hearing *h)
{
    return h->mic ? lin_microphone_format_of(h->mic)->rate_hz : lin_audio_info(h->audio)->rate_hz;
}

int lin_hearing_channels(const lin_hearing *h)
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
static lin_status read_file(lin_hearing *h, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    const int rate_hz = lin_hearing_rate(h);
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
    // What comes as it likes was heard when it came.
    if (h->unpaced || h->is_pipe) h->begun = lin_now() - (double)h->frames / rate_hz;
    return LIN_OK;
}

lin_status lin_hearing_read(lin_hearing *h, float *samples, int n, int timeout_ms, int *n_got, lin_error *err)
{
    *n_got = 0;
    if (!h->mic) return h->ended ? LIN_OK : read_file(h, samples, n, timeout_ms, n_got, err);
    lin_status status = lin_microphone_read(h->mic, samples, n, timeout_ms, n_got, err);
    h->frames += *n_got;
    return status;
}

int lin_hearing_ended(const lin_hearing *h) { return h->ended; }

double lin_hearing_age(const lin_hearing *h)
{
    if (h->mic) return lin_microphone_age(h->mic);
    const double age = lin_now() - (h->begun + (double)h->frames / lin_hearing_rate(h));
    return age > 0 ? age : 0;
}

void lin_hearing_report(const lin_hearing *h, lin_microphone_report *report)
{
    if (h->mic) {
        lin_microphone_report_now(h->mic, report);
        return;
    }
    memset(report, 0, sizeof *report);
    report->captured = report->read = h->frames;
    report->open_s = lin_now() - h->opened;
}

const char *lin_hearing_warning(const lin_hearing *h) { return h->mic ? "" : lin_audio_info(h->audio)->warning; }

const char *lin_hearing_notice(const lin_hearing *h) { return h->mic ? "" : lin_audio_info(h->audio)->notice; }

int lin_hearing_incomplete(const lin_hearing *h) { return h->audio && lin_audio_info(h->audio)->incomplete; }

void lin_hearing_close(lin_hearing *h, lin_microphone_report *report)
{
    if (report) memset(report, 0, sizeof *report);
    if (!h) return;
    if (h->mic) {
        lin_microphone_close(h->mic, report);
    } else {
        if (report && h->audio) lin_hearing_report(h, report);
        lin_audio_close(h->audio);
    }
    lin_free(h);
}
