/*
 * audio.h - sound files, pipes and raw PCM as blocks of float samples.
 *
 * Pipeline: [this] -> frontend/source (channels, resampling, filterbanks). Files go through libsndfile (WAV, FLAC, Ogg Vorbis,
 * Opus, MP3, AIFF, SPHERE and more), what it does not read through the program ffmpeg (frontend/ffmpeg.h). In pipes the first bytes
 * decide (frontend/sniff.h): WAV and headerless PCM are read as they come, other formats, which need to be wound, are first stored
 * in an unlinked file in $TMPDIR (or /tmp) of at most LIN_AUDIO_SPOOL_BYTES. Memory is constant however long the sound is.
 *
 *   lin_audio_open("x.flac", NULL, &audio, &err);
 *   while (lin_audio_read(audio, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   if (lin_audio_info(audio)->warning[0]) ...;                  // what was wrong but did not prevent reading
 *   lin_audio_close(audio);
 *
 * A frame is one sample of every channel. Integer samples are scaled so that full scale is +-1; floating-point files are taken as
 * they are and may exceed it. Threads: an open audio belongs to one thread at a time; several may be open.
 */
#ifndef LIN_FRONTEND_AUDIO_H
#define LIN_FRONTEND_AUDIO_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LIN_AUDIO_MIN_HZ = 4000, LIN_AUDIO_MAX_HZ = 192000, LIN_AUDIO_MAX_CHANNELS = 64 };
#define LIN_AUDIO_SPOOL_BYTES (INT64_C(4) << 30)

typedef enum lin_pcm_encoding {
    LIN_PCM_S16LE,
    LIN_PCM_S24LE, /* three bytes a sample */
    LIN_PCM_S32LE,
    LIN_PCM_F32LE,
    LIN_PCM_U8,
    LIN_PCM_MULAW, /* G.711 */
    LIN_PCM_ALAW
} lin_pcm_encoding;

/* What headerless samples are. */
typedef struct lin_pcm_format {
    int rate_hz, channels;
    lin_pcm_encoding encoding;
    int fallback; /* 0: always; 1: only what comes through a pipe or standard input and is not recognised; 2: the same, silently */
} lin_pcm_format;

/* 16 kHz, mono, s16le. */
lin_pcm_format lin_pcm_default(void);

/* "s16le", "s24le", "s32le", "f32le", "u8", "mulaw", "alaw". LIN_INVALID with the list for other names. */
lin_status lin_pcm_parse(const char *name, lin_pcm_encoding *encoding, lin_error *err);
const char *lin_pcm_name(lin_pcm_encoding encoding);

typedef struct lin_audio_format {
    int rate_hz, channels;
    int64_t frames;    /* the length as far as the header tells, -1 if it does not; only reading shows the truth */
    char format[96];   /* "WAV (Microsoft), Signed 16 bit PCM" */
    char warning[256]; /* "" or a sentence with the file's name; may appear as late as at the last read */
    int incomplete;    /* the warning is that sound is missing: the file breaks off or is damaged */
    char notice[256];  /* "" or a sentence about how the bytes were taken; there when it is opened */
} lin_audio_format;

typedef struct lin_audio lin_audio;

/*
 * Opens a file, a pipe, or for the path "-" standard input. raw = NULL: the bytes say what they are; "-" is lin_pcm_default() where
 * they do not. raw given: headerless PCM of that format, or with raw->fallback only where a pipe or standard input is nothing that
 * is recognised; with fallback = 1 then with a notice, and not where the bytes are clearly no sound. LIN_IO: missing, not
 * permitted, a directory, no room to store a pipe. LIN_FORMAT: empty, not audio, damaged header, no samples. LIN_UNSUPPORTED: a
 * rate outside 4 to 192 kHz or more than 64 channels; a format for which ffmpeg is missing. LIN_STOPPED. On failure *audio is NULL.
 */
lin_status lin_audio_open(const char *path, const lin_pcm_format *raw, lin_audio **audio, lin_error *err);

/* Samples [n, channels] in memory, which must outlive the audio; n = 0: a sound that has ended already. `name` is for messages. */
lin_status lin_audio_open_memory(const char *name, const float *samples, int64_t n, int rate_hz, int channels, lin_audio **audio,
                                 lin_error *err);

/* The same from a descriptor, which stays the caller's. `name` is for messages. */
lin_status lin_audio_open_fd(int fd, const char *name, const lin_pcm_format *raw, lin_audio **audio, lin_error *err);

/*
 * Reads at most `capacity` frames [capacity, channels], interleaved; *n = 0 only at the end. From a pipe or a terminal it returns
 * as soon as there is a frame, from a file it fills the block. A file that breaks off or is damaged on the way ends there, with a
 * warning, and is incomplete; LIN_FORMAT if it gave no frame at all. LIN_NUMERIC, naming the sample, where a floating-point file
 * holds a NaN, an infinity or a sample beyond LIN_AUDIO_LARGEST. Allocates nothing here (libsndfile may).
 */
lin_status lin_audio_read(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);

/* Valid until closing. */
const lin_audio_format *lin_audio_info(const lin_audio *audio);

/* Frames read so far. */
int64_t lin_audio_position(const lin_audio *audio);

/* Goes on with another frame of a regular file, 0 .. its length. Lossy formats may give other samples there than reading through
 * does, until their decoder has settled. LIN_UNSUPPORTED where the sound only passes by, or libsndfile cannot. */
lin_status lin_audio_seek(lin_audio *audio, int64_t frame, lin_error *err);

/* 1 if the sound may still be in the making (a pipe or a terminal). */
int lin_audio_is_live(const lin_audio *audio);

/* Of live sound: the descriptor to wait for; -1 if there is something to be read at once. */
int lin_audio_wait_for(const lin_audio *audio);

/* For the whole process, before any audio is opened: waiting for bytes ends when *flag becomes other than 0, as at a signal.
 * Opening then fails with LIN_STOPPED, live sound is at its end. */
void lin_audio_stop_on(const volatile sig_atomic_t *flag);
int lin_audio_is_stopped(void);

/* NULL is allowed. */
void lin_audio_close(lin_audio *audio);

/* The largest magnitude taken for sound, 2^30 times full scale: its square still fits a float after a transform. */
#define LIN_AUDIO_LARGEST 0x1p30f

/* The index of the first of n samples that is NaN, infinite or beyond LIN_AUDIO_LARGEST; n if there is none. */
size_t lin_audio_find_bad(const float *samples, size_t n);

/* The rate and channels of a format, LIN_UNSUPPORTED with a sentence if outside the limits above. */
lin_status lin_audio_check_format(const char *name, int rate_hz, int channels, lin_error *err);

#endif
