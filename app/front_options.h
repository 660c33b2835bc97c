/*
 * front_options.h - the options of the front end that several commands share.
 *
 *   typedef struct values { lin_input_values input; lin_fbank_values fbank; ... } values;
 *   static const lin_option options[] = {LIN_INPUT_ROWS(values, input), LIN_FBANK_ROWS(values, fbank), ...};
 */
#ifndef LIN_APP_FRONT_OPTIONS_H
#define LIN_APP_FRONT_OPTIONS_H

#include "app/options.h"
#include "base/status.h"
#include "linnet/front.h"

/* ---- what the sound is ----------------------------------------------------------------------------------------------------- */

typedef struct lin_input_values {
    int raw, rate_hz, channels, encoding;
    const char *channel, *track, *start, *end;
} lin_input_values;

#define LIN_INPUT_ROWS(owner, field)                                                                                             \
    {.type = LIN_OPTION_HEADING, .help = "Sound"},                                                                               \
    {.name = "channel", .letter = 'c', .type = LIN_OPTION_STRING, .at = offsetof(owner, field.channel), .text = "mix",           \
     .value = "mix|each|N", .help = "Channel: the mean of all, each separately, or the N-th, counted from 1"},                   \
    {.name = "track", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.track), .value = "N|LANGUAGE",                      \
     .help = "Sound track of a video or other file with several: the N-th, or the first of a language, such as deu; if not "     \
             "given, the default one"},                                                                                          \
    {.name = "raw", .type = LIN_OPTION_FLAG, .at = offsetof(owner, field.raw),                                                   \
     .help = "The input is headerless PCM; without it, only a pipe or standard input (-) whose bytes match no known format "     \
             "is read as such, with a message"},                                                                                 \
    {.name = "rate", .type = LIN_OPTION_INT, .at = offsetof(owner, field.rate_hz), .min = LIN_AUDIO_MIN_HZ,                      \
     .max = LIN_AUDIO_MAX_HZ, .value = "HZ", .help = "Sample rate of headerless PCM; if not given, 16000"},                      \
    {.name = "channels", .type = LIN_OPTION_INT, .at = offsetof(owner, field.channels), .min = 1,                                \
     .max = LIN_AUDIO_MAX_CHANNELS, .help = "Channels of headerless PCM, interleaved; if not given, 1"},                         \
    {.name = "encoding", .type = LIN_OPTION_CHOICE, .at = offsetof(owner, field.encoding), .text = "s16le",                      \
     .choices = "s16le|s24le|s32le|f32le|u8|mulaw|alaw", .help = "Samples of headerless PCM"},                                   \
    {.name = "start", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.start), .value = "TIME",                            \
     .help = "Start of the part to process (90, 1:30, 1:23:40.5, 250ms); times in results remain those of the file"},            \
    {.name = "end", .type = LIN_OPTION_STRING, .at = offsetof(owner, field.end), .value = "TIME",                                \
     .help = "End of the part; if not given, the end of the sound"}

/* The channel: LIN_CHANNEL_MIX, LIN_CHANNEL_EACH or 0, 1, ... LIN_INVALID for other words. */
lin_status lin_input_channel(const lin_input_values *values, int *channel, lin_error *err);

/* What of each file is read: the part, and for the whole process the track. LIN_INVALID for values that are none. */
lin_status lin_input_part(const lin_input_values *values, lin_part *part, lin_error *err);

/* The description of headerless samples for lin_audio_open, stored in `storage`. */
const lin_pcm_format *lin_input_format(const lin_input_values *values, lin_pcm_format *storage);

/* ---- the filterbank -------------------------------------------------------------------------------------------------------- */

typedef struct lin_fbank_values {
    int sample_hz, mel_bins;
    double window_ms, hop_ms, low_hz, high_hz, preemphasis;
} lin_fbank_values;

#define LIN_FBANK_ROWS(owner, field)                                                                                             \
    {.type = LIN_OPTION_HEADING, .help = "Filterbank"},                                                                          \
    {.name = "fbank", .type = LIN_OPTION_SETTINGS, .help = "Values of the filterbank"},                                          \
        {.name = "sample-hz", .under = "fbank", .type = LIN_OPTION_INT, .at = offsetof(owner, field.sample_hz),                  \
         .text = "16000", .min = 4000, .max = 192000, .value = "HZ", .help = "Sample rate that the sound is resampled to"},      \
    {.name = "mel-bins", .under = "fbank", .type = LIN_OPTION_INT, .at = offsetof(owner, field.mel_bins), .text = "40",          \
     .min = 1, .max = 512, .help = "Triangles on the mel scale"},                                                                \
    {.name = "window-ms", .under = "fbank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.window_ms), .text = "25",     \
     .min = 1, .max = 1000, .value = "MS", .help = "Length of a window"},                                                        \
    {.name = "hop-ms", .under = "fbank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.hop_ms), .text = "10",           \
     .min = 1, .max = 1000, .value = "MS", .help = "Distance between two windows"},                                              \
    {.name = "low-hz", .under = "fbank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.low_hz), .text = "20",           \
     .min = 0, .max = 96000, .value = "HZ", .help = "Lower edge of the lowest triangle"},                                        \
    {.name = "high-hz", .under = "fbank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.high_hz), .text = "0",          \
     .min = -96000, .max = 96000, .value = "HZ",                                                                                 \
     .help = "Upper edge of the highest triangle; 0 or less is added to half the sample rate"},                                  \
    {.name = "preemphasis", .under = "fbank", .type = LIN_OPTION_DOUBLE, .at = offsetof(owner, field.preemphasis),               \
     .text = "0.97", .min = 0, .max = 1, .help = "Coefficient of the pre-emphasis"}

lin_fbank_config lin_fbank_from_values(const lin_fbank_values *values);

/* ---- durations and times --------------------------------------------------------------------------------------------------- */

/* As people write them: 90, 90s, 1.5m, 2h, 250ms, 1:30, 1:23:40.5. */

/* LIN_INVALID, with the accepted forms. `name` is the option's. */
lin_status lin_span_parse(const char *name, const char *text, double *seconds, lin_error *err);

#endif
