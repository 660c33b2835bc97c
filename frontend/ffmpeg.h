/*
 * ffmpeg.h - sound that libsndfile does not support (m4a, mp4, webm, mkv, aac, wma, video), decoded by the program ffmpeg.
 *
 * Pipeline: an open file -> [ffmpeg, a child process] -> frontend/audio. The program is $LINNET_FFMPEG, or "ffmpeg" on the PATH;
 * LINNET_FFMPEG="" disables it. It is started without a shell, in the sandbox of base/child.h, and never gets the file's name:
 * the open file is its standard input. It may use containers of sound and video only, none that name other files. Samples arrive
 * as 32-bit floats through a pipe (frontend/helper.h), so memory is constant. Gaps in the container's timestamps are filled with
 * silence, the one before the sound too, so that times are those of the container; where they go back, the sound goes on.
 * Of several sound tracks lin_audio_choose_track names one; otherwise the default one is read, or else the first.
 *
 *   lin_ffmpeg_open(fd, "talk.m4a", &ffmpeg, &err);
 *   while (lin_ffmpeg_read(ffmpeg, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   if (lin_ffmpeg_trouble(ffmpeg)[0]) ...;                     // it failed, or reported errors
 *   lin_ffmpeg_close(ffmpeg);                                    // ends the child if it still runs, and waits for it
 *
 * Threads: an object belongs to one thread at a time; several may be open.
 */
#ifndef LIN_FRONTEND_FFMPEG_H
#define LIN_FRONTEND_FFMPEG_H

#include <stdint.h>

#include "base/status.h"

typedef struct lin_ffmpeg lin_ffmpeg;

/* A path, a name that is looked for on the PATH, or "": none. */
const char *lin_ffmpeg_program(void);

/*
 * fd: a regular file, which the caller still owns; its bytes from `from` to `end`, -1: to its end. name: for messages.
 * LIN_UNSUPPORTED: there is no such program, or it is disabled; LIN_FORMAT: ffmpeg's message about the file;
 * LIN_INVALID: it has no such track; LIN_IO, LIN_NO_MEMORY; LIN_STOPPED (lin_audio_stop_on). On failure *ffmpeg is NULL.
 */
lin_status lin_ffmpeg_open(int fd, int64_t from, int64_t end, const char *name, lin_ffmpeg **ffmpeg, lin_error *err);

/* Of the track that is read, at its begin. They may be outside the limits of audio.h. */
int lin_ffmpeg_rate(const lin_ffmpeg *ffmpeg);
int lin_ffmpeg_channels(const lin_ffmpeg *ffmpeg);

/* The track that is read, from 1. If there are several, all of them, "1 deu, 2 eng (default)"; else "". */
int lin_ffmpeg_track(const lin_ffmpeg *ffmpeg);
const char *lin_ffmpeg_tracks(const lin_ffmpeg *ffmpeg);

/* Seconds according to the container; -1 if it gives none. A video's length may exceed that of its sound. */
double lin_ffmpeg_seconds(const lin_ffmpeg *ffmpeg);

/* At most capacity frames, interleaved; *n = 0 only at the end. Fills the block. LIN_IO, LIN_STOPPED. Allocates nothing. */
lin_status lin_ffmpeg_read(lin_ffmpeg *ffmpeg, float *frames, int capacity, int *n, lin_error *err);

/* After the end: "" if there was no error, else the last error message, one line. */
const char *lin_ffmpeg_trouble(const lin_ffmpeg *ffmpeg);

/* Accepts NULL. */
void lin_ffmpeg_close(lin_ffmpeg *ffmpeg);

#endif
