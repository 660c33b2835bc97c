/*
 * processes.h - sound from another process: what libsndfile does not support (m4a, mp4, webm, mkv, aac, wma, video), decoded by
 * the program ffmpeg, and files that this program reads in another process of its own.
 *
 * Pipeline: an open file -> [a child process] -> frontend/audio. The file is the standard input of the child, never a name;
 * base/child.h says what the child may do. Its standard output is an AU file of 32-bit floats, its standard error lines of text.
 * Memory is constant.
 *
 * The program is $LINNET_FFMPEG, or "ffmpeg" on the PATH; LINNET_FFMPEG="" disables it. It is started without a shell. It may use
 * containers of sound and video only, none that name other files. Gaps in the container's timestamps are filled with silence, the
 * one before the sound too, so that times are those of the container; where they go back, the sound continues without a gap. Of
 * several sound tracks lin_audio_choose_track names one; otherwise the default one is read, or else the first.
 *
 *   lin_ffmpeg_open(fd, 0, -1, "talk.m4a", &ffmpeg, &err);
 *   while (lin_ffmpeg_read(ffmpeg, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   if (ffmpeg->trouble[0]) ...;                                 // it failed, or reported errors
 *   lin_ffmpeg_close(ffmpeg);                                    // ends the child if it still runs, and waits for it
 *
 * Threads: an object belongs to one thread at a time; several may be open.
 */
#ifndef LIN_FRONTEND_PROCESSES_H
#define LIN_FRONTEND_PROCESSES_H

#include <stdint.h>

#include "base/child.h"
#include "frontend/audio.h"

/* ---- another process ------------------------------------------------------------------------------------------------------- */

enum { LIN_HELPER_LINE = 512, LIN_HELPER_BYTES = 1 << 16 };

/* A line of standard error, without its end; longer ones are cut, control characters are blanks. */
typedef void (*lin_helper_line)(void *context, const char *line);

typedef struct lin_helper {
    int rate_hz, channels; /* they may be outside the limits of audio.h */
    int status;            /* of waitpid, after the end */

    /* private */
    pid_t pid; /* 0: already waited for */
    int out, err, n_line, at, held;
    const char *name;
    lin_helper_line take;
    void *context;
    char line[LIN_HELPER_LINE]; /* of standard error, not yet complete */
    unsigned char bytes[LIN_HELPER_BYTES];
} lin_helper;

/* The other side: the header of a sound of unknown length, and frames in its byte order. bytes: [LIN_HELPER_HEADER], [4 n]. */
enum { LIN_HELPER_HEADER = 24 };
void lin_helper_put_header(unsigned char *bytes, int rate_hz, int channels);
void lin_helper_put(unsigned char *bytes, const float *samples, int n);

/* ---- ffmpeg ---------------------------------------------------------------------------------------------------------------- */

enum { LIN_FFMPEG_LINE = 256 };

typedef struct lin_ffmpeg {
    lin_helper helper;                 /* its rate_hz and channels are those at the beginning of the track */
    int track, n_tracks;               /* the track that is read, from 1 */
    char tracks[LIN_FFMPEG_LINE];      /* all of them, "1 deu, 2 eng (default)" */
    double seconds;                    /* according to the container; -1 if it gives none */
    int is_guess, has_video;           /* either means that the container's length may differ from that of the sound */
    char trouble[2 * LIN_FFMPEG_LINE]; /* after the end: "" if there was no error, else the last error message, one line */

    /* private */
    int is_untimed, is_g722, is_avi;   /* is_untimed: the times that the demuxer makes up are not used */
    int chosen;                        /* the track to decode, 0: none found */
    int has_begin, has_aac, is_listed; /* is_listed: all tracks have been seen */
    int counts_start;                  /* `seconds` was less the time before the start */
    double begin_s;                    /* the time at which the sound begins after it */
    int64_t lead;                      /* frames of silence before it; below 0: frames of it to drop */
    int64_t frames;                    /* read */
    char errors[2][LIN_FFMPEG_LINE];   /* the last lines with errors */
    char last[LIN_FFMPEG_LINE];        /* the last line of all */
} lin_ffmpeg;

/*
 * fd: a regular file, which the caller still owns; its bytes from `from` to `end`, -1: to its end. name: for messages; it stays
 * valid. LIN_UNSUPPORTED: there is no such program, or it is disabled; LIN_FORMAT: ffmpeg's message about the file;
 * LIN_INVALID: it has no such track; LIN_IO, LIN_NO_MEMORY; LIN_STOPPED (lin_audio_stop_on). On failure *ffmpeg is NULL.
 */
lin_status lin_ffmpeg_open(int fd, int64_t from, int64_t end, const char *name, lin_ffmpeg **ffmpeg, lin_error *err);

/* At most capacity frames, interleaved; *n = 0 only at the end. Fills the block. LIN_IO, LIN_STOPPED. Allocates nothing. */
lin_status lin_ffmpeg_read(lin_ffmpeg *ffmpeg, float *frames, int capacity, int *n, lin_error *err);

/* Accepts NULL. */
void lin_ffmpeg_close(lin_ffmpeg *ffmpeg);

/* ---- files read by a process of this program ------------------------------------------------------------------------------- */

/*
 * If a damaged file makes a decoder leak memory or crash, only the process that reads it is affected; base/child.h says what it
 * may do. The child is this program, started as `linnet read-sound NAME` with the file as its standard input (app/main.c). It
 * sends samples as ffmpeg does, and lines, the length first:
 *
 *   frames 32000                               the length according to the header, -1: it gives none
 *   notice ...   warning ...   missing ...     as in lin_audio_format; missing: a warning, and it is incomplete
 *   fail 5 talk.m4a cannot be read             a lin_status and the message
 *   too long                                   it used up its processor time
 */
#define LIN_ISOLATE_COMMAND "read-sound"
#define LIN_ISOLATE_TOO_LONG "too long"

typedef struct lin_isolated lin_isolated;

/* For the whole process, before any audio is opened: all regular files that are not declared to be raw are read by `program`,
 * this one's path, which must stay valid. NULL: no longer. */
void lin_isolate_files(const char *program);
int lin_isolate_is_on(void);

/* Fills info. Errors of lin_audio_open_fd. */
lin_status lin_isolated_open(int fd, const char *name, lin_audio_format *info, lin_isolated **isolated, lin_error *err);

/* As lin_audio_read; sets info's warning at the end. */
lin_status lin_isolated_read(lin_isolated *isolated, lin_audio_format *info, float *frames, int capacity, int *n, lin_error *err);

/* Accepts NULL. */
void lin_isolated_close(lin_isolated *isolated);

#endif
