/*
 * audio.h - sound files, pipes and raw PCM as blocks of float samples.
 *
 * Pipeline: [this] -> frontend/source (channels, resampling, filterbanks). WAV files of plain samples and headerless PCM are read
 * here, as they arrive. libsndfile reads other files (FLAC, Ogg Vorbis, Opus, MP3, AIFF, SPHERE and more), and the program ffmpeg
 * those that it does not support (frontend/processes.h). The first bytes decide (frontend/sniff.h). Pipes whose reader must seek
 * are first stored in an unlinked file in $TMPDIR (or /tmp) of at most LIN_AUDIO_SPOOL_BYTES. Memory does not grow with the
 * sound. The length that is read is checked against the container; several files that were joined are read one after the other.
 * After lin_isolate_files another process reads the files.
 *
 *   lin_audio_open("x.flac", NULL, &audio, &err);
 *   while (lin_audio_read(audio, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   if (lin_audio_info(audio)->warning[0]) ...;                  // a fault that did not prevent reading
 *   lin_audio_close(audio);
 *
 * A frame is one sample of every channel. Integer samples are scaled so that full scale is +-1; floating-point samples are not
 * scaled and may exceed it. Threads: an open audio belongs to one thread at a time; several may be open.
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
    LIN_PCM_S24LE, /* three bytes per sample */
    LIN_PCM_S32LE,
    LIN_PCM_F32LE,
    LIN_PCM_U8,
    LIN_PCM_MULAW, /* G.711 */
    LIN_PCM_ALAW
} lin_pcm_encoding;

/* The format of headerless samples. */
typedef struct lin_pcm_format {
    int rate_hz, channels;
    lin_pcm_encoding encoding;
    int fallback; /* 0: always; 1: only if the format of a pipe or standard input is not recognised; 2: like 1, with no notice */
} lin_pcm_format;

/* 16 kHz, mono, s16le. */
lin_pcm_format lin_pcm_default(void);

/* "s16le", "s24le", "s32le", "f32le", "u8", "mulaw", "alaw". */
const char *lin_pcm_name(lin_pcm_encoding encoding);

/* n samples, full scale +-1, from their bytes: linear ones little-endian, u8 offset by 128, mu-law and
 * A-law those of ITU-T G.711. Floats are copied unchanged, NaNs too. */
void lin_pcm_decode(lin_pcm_encoding encoding, const unsigned char *bytes, size_t n, float *samples);

typedef struct lin_audio_format {
    int rate_hz, channels;
    int64_t frames;    /* the length according to the header, -1 if it gives none; the true length is known only after reading */
    char warning[256]; /* "" or a sentence with the file's name; may be set as late as the last read */
    int incomplete;    /* the warning says that sound is missing: the file is truncated or damaged */
    char notice[256];  /* "" or a sentence about how the bytes were interpreted; set when it is opened */
} lin_audio_format;

typedef struct lin_audio lin_audio;

/*
 * Opens a file, a pipe, or for the path "-" standard input. raw = NULL: the format is detected from the bytes; if that fails for
 * "-", it is lin_pcm_default(). raw given: headerless PCM of that format; with raw->fallback only for a pipe or standard input
 * whose format is not recognised (with fallback = 1, a notice says so, and bytes that are clearly not sound are refused). LIN_IO:
 * missing, not permitted, a directory, no room to store a pipe. LIN_FORMAT: empty, not audio, damaged header, no samples.
 * LIN_UNSUPPORTED: a rate outside 4 to 192 kHz or more than 64 channels; a format for which ffmpeg is missing. LIN_STOPPED. On
 * failure *audio is NULL.
 */
lin_status lin_audio_open(const char *path, const lin_pcm_format *raw, lin_audio **audio, lin_error *err);

/* Samples [n, channels] in memory, which must outlive the audio; n = 0: a sound that is already at its end. `name` is for
 * messages. */
lin_status lin_audio_open_memory(const char *name, const float *samples, int64_t n, int rate_hz, int channels, lin_audio **audio,
                                 lin_error *err);

/* Opens sound from a descriptor. close_fd 1: the audio closes it, also on failure. `name` is for messages. */
lin_status lin_audio_open_fd(int fd, int close_fd, const char *name, const lin_pcm_format *raw, lin_audio **audio,
                             lin_error *err);

/* The sound that `sh -c command` writes to its standard output, all of which is stored first, in an unlinked file in $TMPDIR (or
 * /tmp). Only for commands that the user wrote and allowed. LIN_IO: it cannot be run, or its status is not 0; LIN_FORMAT: it
 * wrote nothing; LIN_STOPPED. */
lin_status lin_audio_open_command(const char *command, const lin_pcm_format *raw, lin_audio **audio, lin_error *err);

/*
 * Reads at most `capacity` frames [capacity, channels], interleaved; *n = 0 only at the end. From a pipe or a terminal it returns
 * as soon as there is a frame, from a file it fills the block. A truncated or damaged file ends there, with a warning, and is
 * incomplete; LIN_FORMAT if it gave no frame at all. LIN_NUMERIC, naming the sample, if a floating-point file contains a NaN, an
 * infinity or a sample beyond LIN_AUDIO_LARGEST. Allocates nothing itself (libsndfile may).
 */
lin_status lin_audio_read(lin_audio *audio, float *frames, int capacity, int *n, lin_error *err);

/* Valid until the audio is closed. */
const lin_audio_format *lin_audio_info(const lin_audio *audio);

/* Frames read so far. */
int64_t lin_audio_position(const lin_audio *audio);

/* Continues at another frame of a regular file, 0 .. its length. In lossy formats the samples after a seek may differ from those
 * of continuous reading until the decoder has settled. LIN_UNSUPPORTED if the sound is a pipe, or libsndfile cannot seek. */
lin_status lin_audio_seek(lin_audio *audio, int64_t frame, lin_error *err);

/* 1 if the sound may still be produced (a pipe or a terminal). */
int lin_audio_is_live(const lin_audio *audio);

/* Of live sound: the descriptor to wait for; -1 if data can be read at once. */
int lin_audio_wait_for(const lin_audio *audio);

/* For the whole process, before any audio is opened: waiting for bytes ends when *flag becomes nonzero, for example in a signal
 * handler. Opening then fails with LIN_STOPPED, and live sound ends. */
void lin_audio_stop_on(const volatile sig_atomic_t *flag);
/* Ends this thread's waiting for bytes at that time of lin_now_ns; 0: never. */
void lin_audio_stop_at(double time);
int lin_audio_is_stopped(void);

/* For the whole process, before any audio is opened: gaps in the timestamps of a container that are longer than this are left
 * out. By default all gaps up to 30 hours are filled with silence, which a file of a few bytes can demand. */
void lin_audio_bound_gaps(int seconds);
int lin_audio_longest_gap(void);
enum { LIN_AUDIO_STRANGERS_GAP_S = 30 }; /* for untrusted files */

/* For the whole process, before any audio is opened: chooses the sound track to read, by its number, from 1, or by its language
 * as the container names it; the string stays the caller's. NULL: the default one (frontend/processes.h). Opening a file that has
 * no such track fails with LIN_INVALID. */
void lin_audio_choose_track(const char *track);
const char *lin_audio_track(void);

/* Accepts NULL. */
void lin_audio_close(lin_audio *audio);

/* The largest magnitude accepted as sound, 2^30 times full scale: its square still fits a float after a transform. */
#define LIN_AUDIO_LARGEST 0x1p30f

/* The index of the first of n samples that is NaN, infinite or beyond LIN_AUDIO_LARGEST; n if there is none. */
size_t lin_audio_find_bad(const float *samples, size_t n);

/* LIN_NUMERIC, naming the first, if samples [n, channels] contain such a value. */
lin_status lin_audio_check_samples(const float *samples, int n, int channels, lin_error *err);

/* Checks the rate and channels of a format: LIN_UNSUPPORTED, with one sentence, if outside the limits above. */
lin_status lin_audio_check_format(const char *name, int rate_hz, int channels, lin_error *err);

#endif
