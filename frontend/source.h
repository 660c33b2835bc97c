/*
 * source.h - from sound to frames of log-mel features: combines channels, resampling and filterbanks.
 *
 * Pipeline: frontend/audio (or a microphone) -> [this] -> normalisation and the encoder.
 * Two forms of one implementation. Samples of any rate and number of channels are pushed into lin_extractor, which gives frames;
 * lin_source reads an audio file through it.
 *
 *   lin_feature_options options = lin_feature_options_default();
 *   lin_audio_open("x.flac", NULL, &audio, &err);
 *   lin_source_from_audio(audio, &options, &source, &err);
 *   frames = room for lin_source_lanes(source) * capacity * D floats;
 *   while ((status = lin_source_read(source, frames, capacity, &n, &err)) == LIN_OK && n > 0) ...;
 *   lin_source_close(source);
 *
 * A lane is a separate sequence of frames: one for a mix or a chosen channel, one per channel for LIN_CHANNEL_EACH. All lanes
 * have the same number of frames. Matrices are [lanes, capacity, D]: lane l begins at frames + l * capacity * D. Any split of the
 * samples into pushes, or of the frames into reads, gives the same bits. This code allocates nothing between creation and
 * destruction, and memory does not grow with the length of the sound. Threads: an object belongs to one thread at a time.
 */
#ifndef LIN_FRONTEND_SOURCE_H
#define LIN_FRONTEND_SOURCE_H

#include "frontend/audio.h"
#include "frontend/fbank.h"

enum {
    LIN_CHANNEL_MIX = -1, /* the mean of all channels */
    LIN_CHANNEL_EACH = -2 /* every channel separately, one lane each */
};

typedef struct lin_feature_options {
    lin_fbank_config fbank; /* its sample_hz is the rate after resampling */
    int channel;            /* LIN_CHANNEL_MIX, LIN_CHANNEL_EACH, or 0, 1, ...: one channel */
    int or_only;            /* 1: if the sound has a single channel, that one, whatever channel is chosen */
    double speed;           /* factor of tempo and pitch (0.5 to 2): speed perturbation (Ko et al. 2015), done by resampling; 1 */
    int sound;              /* 1: no filterbank: a "frame" is a resampled sample, D is 1; it cannot be saved */
    const lin_fbank *beside; /* of lin_fbank_create_beside; NULL: a filterbank of its own */
} lin_feature_options;

/* lin_fbank_default(), mix of all channels, speed 1. */
lin_feature_options lin_feature_options_default(void);

/* ---- pushing --------------------------------------------------------------------------------------------------------------- */

typedef struct lin_extractor lin_extractor;

/* rate_hz and channels as in audio.h. LIN_INVALID if the chosen channel does not exist. On failure *features is NULL. */
lin_status lin_extractor_create(int rate_hz, int channels, const lin_feature_options *options, lin_extractor **features,
                                lin_error *err);

/* The most frames per lane that pushing n more frames of sound, or finishing (n = 0), can give. */
int lin_extractor_most_out(const lin_extractor *features, int n);

/*
 * Processes sound [n, channels] and writes the feature frames that are complete: *n_out of every lane, frames [lanes, capacity,
 * D]. LIN_TOO_SMALL, with no state changed, if capacity < lin_extractor_most_out(features, n). LIN_NUMERIC, with no state
 * changed, if a sample is NaN, infinite or too large (audio.h). LIN_INVALID after finishing.
 */
lin_status lin_extractor_push(lin_extractor *features, const float *sound, int n, float *frames, int capacity, int *n_out,
                              lin_error *err);

/* The end of the sound: writes what the resampler still holds. Only reset and destroy may follow. */
lin_status lin_extractor_finish(lin_extractor *features, float *frames, int capacity, int *n_out, lin_error *err);

/*
 * Saving and loading: the held samples (the beginning of a window; of resampled sound its past, see resample.h) as bytes,
 * little-endian, from which features with the same options continue with the same bits. Saving requires
 * lin_extractor_keep_past before the first sound, which may take a second; its errors are those of lin_resampler_find_period.
 * LIN_FORMAT, or LIN_MISMATCH as lin_fbank_load, if the bytes are not the state of such features: then they begin anew.
 */
lin_status lin_extractor_keep_past(lin_extractor *features, lin_error *err);
size_t lin_extractor_state_bytes(const lin_extractor *features);
lin_status lin_extractor_save(const lin_extractor *features, void *bytes, lin_error *err);
lin_status lin_extractor_load(lin_extractor *features, const void *bytes, size_t n_bytes, lin_error *err);

/* Returns to the initial state. LIN_NO_MEMORY if the resampling library cannot; then only destroy may follow. */
lin_status lin_extractor_reset(lin_extractor *features, lin_error *err);

/* Accepts NULL. */
void lin_extractor_destroy(lin_extractor *features);

/* ---- reading a file -------------------------------------------------------------------------------------------------------- */

typedef struct lin_source lin_source;

/* The source owns the audio and closes it, even if this fails: LIN_INVALID if the sound lacks the chosen channel. On failure
 * *source is NULL. */
lin_status lin_source_from_audio(lin_audio *audio, const lin_feature_options *options, lin_source **source, lin_error *err);

int lin_source_lanes(const lin_source *source);
int lin_source_bins(const lin_source *source);

/*
 * Writes the next *n <= capacity frames of every lane, frames [lanes, capacity, D]; *n = 0 only at the end. From a pipe it
 * returns as soon as there are frames, from a file it fills the block.
 * Sound shorter than one window gives no frame, and a warning.
 */
lin_status lin_source_read(lin_source *source, float *frames, int capacity, int *n, lin_error *err);
/* 1 if it is known that nothing follows: after lin_source_read has given fewer frames of a file than there was room for. */
int lin_source_ended(const lin_source *source);

/* The audio ends, but the sound continues elsewhere: at the end only complete frames are written, and the source can be
 * saved. */
void lin_source_leave_open(lin_source *source);

/* As lin_extractor_keep_past ... lin_extractor_load. Call keep_past and load before the first read. Frames not yet read are part
 * of the state; the file and the position in it are not. */
lin_status lin_source_keep_past(lin_source *source, lin_error *err);
size_t lin_source_state_bytes(const lin_source *source);
lin_status lin_source_save(const lin_source *source, void *bytes, lin_error *err);
lin_status lin_source_load(lin_source *source, const void *bytes, size_t n_bytes, lin_error *err);

/*
 * Only the sound from start_s to end_s (INFINITY: to its end) seconds; before the first read. Reads from a second earlier on,
 * in which decoders of lossy formats settle, or from the beginning if seeking is not possible. Faults of the file after end_s
 * give no warning.
 * LIN_INVALID: the sound ends before start_s; LIN_FORMAT and others as lin_audio_read.
 */
lin_status lin_source_part(lin_source *source, double start_s, double end_s, lin_error *err);

/* Calls watch for each piece of sound that gives frames, which lin_source_last then returns. A status other than LIN_OK ends the
 * read. */
void lin_source_watch(lin_source *source, lin_status (*watch)(void *context, const lin_source *source, lin_error *err),
                      void *context);

enum { LIN_SOURCE_BLOCK = 1024 }; /* frames of sound handled at a time */

/* The last sound read, [*n, channels], up to lin_source_position; valid until the next read. */
const float *lin_source_last(const lin_source *source, int *n);
int64_t lin_source_position(const lin_source *source);

/* Seconds of sound read so far, in the file's own time. */
double lin_source_seconds(const lin_source *source);

/* Total seconds according to the header, -1 if it gives none. */
double lin_source_duration(const lin_source *source);

/* Rate, channels, format, warning. Valid until closing; the warning may be set as late as the last read. */
const lin_audio_format *lin_source_info(const lin_source *source);

/* Accepts NULL. */
void lin_source_close(lin_source *source);

#endif
