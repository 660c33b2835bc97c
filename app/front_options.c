// front_options.c - options of the front end; see front_options.h.

#include "app/front_options.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>


lin_status lin_input_channel(const lin_input_values *values, int *channel, lin_error *err)
{
    const char *text = values->channel;
    if (strcmp(text, "mix") == 0) {
        *channel = LIN_CHANNEL_MIX;
        return LIN_OK;
    }
    if (strcmp(text, "each") == 0) {
        *channel = LIN_CHANNEL_EACH;
        return LIN_OK;
    }
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || end == text || n < 1 || n > LIN_AUDIO_MAX_CHANNELS) {
        return lin_fail(err, LIN_INVALID, "--channel must be mix, each or a number from 1 to %d, not '%.40s'",
                        LIN_AUDIO_MAX_CHANNELS, text);
    }
    *channel = (int)n - 1;
    return LIN_OK;
}

lin_status lin_input_part(const lin_input_values *values, lin_part *part, lin_error *err)
{
    *part = (lin_part){0, INFINITY};
    if (values->track && !*values->track) return lin_fail(err, LIN_INVALID, "--track must be a number or a language");
    lin_audio_choose_track(values->track);
    lin_status status = values->start ? lin_span_parse("start", values->start, &part->start_s, err) : LIN_OK;
    if (status == LIN_OK && values->end) status = lin_span_parse("end", values->end, &part->end_s, err);
    if (status == LIN_OK && part->end_s <= part->start_s) status = lin_fail(err, LIN_INVALID, "--end must be after --start");
    return status;
}

const lin_pcm_format *lin_input_format(const lin_input_values *values, lin_pcm_format *storage)
{
    const int is_described = values->rate_hz || values->channels || values->encoding != LIN_PCM_S16LE;
    *storage = (lin_pcm_format){.rate_hz = values->rate_hz ? values->rate_hz : 16000,
                                .channels = values->channels ? values->channels : 1,
                                .encoding = (lin_pcm_encoding)values->encoding,
                                .fallback = values->raw ? 0 : is_described ? 2 : 1};
    return storage;
}

lin_fbank_config lin_fbank_from_values(const lin_fbank_values *values)
{
    lin_fbank_config c = lin_fbank_default();
    c.sample_hz = values->sample_hz;
    c.mel_bins = values->mel_bins;
    c.window_ms = values->window_ms;
    c.hop_ms = values->hop_ms;
    c.low_hz = values->low_hz;
    c.high_hz = values->high_hz;
    c.preemphasis = values->preemphasis;
    return c;
}

/* ---- durations and times --------------------------------------------------------------------------------------------------- */

// Digits, optionally with a point; *digits: their number. Not strtod: it accepts hexadecimals and infinities and uses the locale.
static const char *number(const char *c, double *value, int *digits)
{
    double scale = 1;
    *value = 0;
    *digits = 0;
    for (; *c >= '0' && *c <= '9'; c++, ++*digits) *value = 10 * *value + (*c - '0');
    if (*c != '.') return c;
    for (c++; *c >= '0' && *c <= '9'; c++, ++*digits) *value += (*c - '0') * (scale /= 10);
    return c;
}

lin_status lin_span_parse(const char *name, const char *text, double *seconds, lin_error *err)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double value, all = 0;
    int digits, colons = 0;
    const char *c = text;
    for (;; c++) {
        c = number(c, &value, &digits);
        if (digits == 0 || digits > 15 || (colons && value >= 60)) break;
        all = 60 * all + value;
        if (*c != ':' || colons == 2) {
            for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
                if (strcmp(c, units[i].name) != 0 || (colons && i > 0)) continue;
                *seconds = all * units[i].seconds;
                return LIN_OK;
            }
            break;
        }
        colons++;
    }
    return lin_fail(err, LIN_INVALID, "--%s needs a time such as 90, 90s, 1.5m, 2h, 250ms, 1:30 or 1:23:40.5, not '%s'", name,
                    text);
}
