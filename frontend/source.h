/*
 * source.h - sound in, frames of log-mel features out: channels, resampling and filterbanks put together.
 *
 * Pipeline: frontend/audio (or a microphone) -> [this] -> normalisation and the encoder.
 * Two forms of one implementation. lin_extractor is pushed samples, at any rate, with any number of channels, and gives frames;
 * lin_source pulls an audio file through it.
 *
 *   lin_feature_options options = lin_feature_options_default();
 *   lin_source_open("x.flac", NULL, &options, &source, &err);
 *   frames = room for lin_source_lanes(source) * capacity * D floats;
 *   while ((status = lin_source_read(source, frames, capacity, &n, &err)) == LIN_OK && n > 0) ...;
 *   lin_source_close(source);
 *
 * A lane is a sequence of frames of its own: one for a mix or a chosen channel, one per channel for LIN_CHANNEL_EACH. All lanes
 * have the same number of frames. Matrices are [lanes, capacity, D]: lane l begins at frames + l * capacity * D. Any split of the
 * samples into pushes, or of the frames into reads, gives the same bits. Nothing of ours is allocated between creation and
 * destruction, and memory does not grow with the length of the sound. Threads: an object belongs to one thread at a time.
 */
#ifndef LIN_FRONTEND_SOURCE_H
#define LIN_FRONTEND_SOURCE_H

#include "frontend/audio.h"
#include "frontend/fbank.h"

enum {
    LIN_CHANNEL_MIX = -1, /* the mean of all channels */
    LIN_CHANNEL_EACH = -2 /* every channel on its own, a lane each */
};

typedef struct lin_feature_options {
    lin_fbank_config fbank; /* its sample_hz is what sound is resampled to */
    int channel;            /* LIN_CHANNEL_MIX, LIN_CHANNEL_EACH, or 0, 1, ...: one channel */
    double speed;           /* 1. Tempo and pitch times this (0.5 to 2): speed perturbation (Ko et al. 2015), done by resampling */
} lin_feature_options;

/* lin_fbank_default(), mixed down, speed 1. */
lin_feature_options lin_feature_options_default(void);

/* ---- pushed ---- */

typedef struct lin_extractor lin_extractor;

/* rate_hz and channels as in audio.h. LIN_INVALID if the chosen channel is not among them. On failure *features is NULL. */
lin_status lin_extractor_create(int rate_hz, int channels, const lin_feature_options *options, lin_extractor **features,
                                lin_error *err);

int lin_extractor_lanes(const lin_extractor *features);

/* The most frames that pushing n more frames of sound, or finishing (n = 0), can give to each lane. */
int lin_extractor_most_out(const lin_extractor *features, int n);

/*
 * Takes in sound [n, channels] and writes the feature frames that are now certain: *n_out of every lane, frames [lanes, capacity,
 * D]. LIN_TOO_SMALL, and no state changed, if capacity < lin_extractor_most_out(features, n). LIN_NUMERIC, and no state changed, if
 * a sample is no sound (audio.h). LIN_INVALID after finishing.
 */
lin_status lin_extractor_push(lin_extractor *features, const float *sound, int n, float *frames, int capacity, int *n_out,
                              lin_error *err);

/* The sound has ended: writes what the resampler held back. Only reset and destroy may follow. */
lin_status lin_extractor_finish(lin_extractor *features, float *frames, int capacity, int *n_out, lin_error *err);

/*
 * Putting features away: what is held (the beginning of a window; of sound that is resampled, its past, see resample.h) as bytes,
 * little-endian, from which features of the same options go on to the bit. past = 0: without the past, which lin_extractor_remind
 * must then bring again, lin_extractor_lacking frames of sound [n, channels], in any pieces, before the next push. Saving needs
 * lin_extractor_remember before the first sound, which may take a second; its errors are those of lin_resampler_find_period.
 * LIN_FORMAT, and the features are as they were, for what is no state of such ones.
 */
lin_status lin_extractor_remember(lin_extractor *features, lin_error *err);
size_t lin_extractor_state_bytes(const lin_extractor *features, int past);
lin_status lin_extractor_save(const lin_extractor *features, int past, void *bytes, lin_error *err);
lin_status lin_extractor_load(lin_extractor *features, const void *bytes, size_t n_bytes, lin_error *err);
int64_t lin_extractor_lacking(const lin_extractor *features);
lin_status lin_extractor_remind(lin_extractor *features, const float *sound, int n, lin_error *err);

/* As newly created. LIN_NO_MEMORY if the resampling library cannot; then only destroy may follow. */
lin_status lin_extractor_reset(lin_extractor *features, lin_error *err);

/* NULL is allowed. */
void lin_extractor_destroy(lin_extractor *features);

/* ---- pulled from a file ---- */

typedef struct lin_source lin_source;

/* path and raw as for lin_audio_open, and its errors; LIN_INVALID if the file lacks the chosen channel. On failure *source is NULL.
 */
lin_status lin_source_open(const char *path, const lin_pcm_format *raw, const lin_feature_options *options, lin_source **source,
                           lin_error *err);

/* The same from an open audio, which the source owns from now on and closes, also if this fails. */
lin_status lin_source_from_audio(lin_audio *audio, const lin_feature_options *options, lin_source **source, lin_error *err);

int lin_source_lanes(const lin_source *source);
int lin_source_bins(const lin_source *source);

/*
 * Writes the next *n <= capacity frames of every lane, frames [lanes, capacity, D]; *n = 0 only at the end. From a pipe it returns
 * as soon as there are frames, from a file it fills the block. Sound shorter than one window gives none, and a warning.
 */
lin_status lin_source_read(lin_source *source, float *frames, int capacity, int *n, lin_error *err);

/* What ends is not the sound, only this part of it: at its end nothing is written but what is certain, and the source can be
 * saved. */
void lin_source_leave_open(lin_source *source);

/* As lin_extractor_remember ... lin_extractor_load. Remembering and loading come before the first read. Frames that were not yet
 * read are part of the state, the file and the place in it are not. */
lin_status lin_source_remember(lin_source *source, lin_error *err);
size_t lin_source_state_bytes(const lin_source *source, int past);
lin_status lin_source_save(const lin_source *source, int past, void *bytes, lin_error *err);
lin_status lin_source_load(lin_source *source, const void *bytes, size_t n_bytes, lin_error *err);

/*
 * Goes on with frame `position` of the file, having read the n_last <= LIN_SOURCE_BLOCK frames before it: lin_source_last shows
 * them. A past that a loaded state lacks is read there too. through = 0: winds there, or, before the first read, reads everything
 * before it where that is not possible; 1: always reads it, for sound that gives other samples when it is wound. LIN_MISMATCH if
 * the file ends before; LIN_UNSUPPORTED as lin_audio_seek.
 */
enum { LIN_SOURCE_BLOCK = 1024 };
lin_status lin_source_go_to(lin_source *source, int64_t position, int n_last, int through, lin_error *err);

/*
 * Only the sound from start_s to end_s (INFINITY: to its end) seconds; before the first read. Winds there, a second early for lossy
 * formats, or reads everything before it where that is not possible. What is missing behind end_s is no warning. LIN_INVALID: the
 * sound ends before start_s; LIN_FORMAT and others as lin_audio_read.
 */
lin_status lin_source_part(lin_source *source, double start_s, double end_s, lin_error *err);

/* The sound read last [*n, channels], up to lin_source_position; valid until the next read. */
const float *lin_source_last(const lin_source *source, int *n);
int64_t lin_source_position(const lin_source *source);

/* Seconds of sound read so far, by the file's own clock. */
double lin_source_seconds(const lin_source *source);

/* Seconds in all as far as the header tells, -1 if it does not. */
double lin_source_duration(const lin_source *source);

/* Rate, channels, format, warning. Valid until closing; the warning may appear as late as at the last read. */
const lin_audio_format *lin_source_info(const lin_source *source);

/* NULL is allowed. */
void lin_source_close(lin_source *source);

#endif
