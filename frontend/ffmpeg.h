/*
 * ffmpeg.h - sound that libsndfile does not read (m4a, mp4, webm, mkv, aac, wma, video), decoded by the program ffmpeg.
 *
 * Pipeline: a file that is open -> [ffmpeg, a child process] -> frontend/audio. The program is $LINNET_FFMPEG, or "ffmpeg" on the
 * PATH; LINNET_FFMPEG="" is none. It is started without a shell and never sees the file's name: it gets the open file as its
 * standard input, may open nothing but files, and inherits no other descriptor. Samples come as 32-bit floats through a pipe, so
 * memory is constant. A gap in the container's times is filled with silence, so that times are those of the container.
 *
 *   lin_ffmpeg_open(fd, "talk.m4a", &ffmpeg, &err);
 *   while (lin_ffmpeg_read(ffmpeg, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   if (lin_ffmpeg_trouble(ffmpeg)[0]) ...;                     // it failed on the way, or complained
 *   lin_ffmpeg_close(ffmpeg);                                    // ends the child where it still runs, and waits for it
 *
 * Threads: an object belongs to one thread at a time; several may be open.
 */
#ifndef LIN_FRONTEND_FFMPEG_H
#define LIN_FRONTEND_FFMPEG_H

#include "base/status.h"

typedef struct lin_ffmpeg lin_ffmpeg;

/*
 * fd: a regular file, stays the caller's. name: for messages. LIN_UNSUPPORTED: there is no such program, or none is wanted;
 * LIN_FORMAT: what it said of the file; LIN_IO, LIN_NO_MEMORY; LIN_STOPPED (lin_audio_stop_on). On failure *ffmpeg is NULL.
 */
lin_status lin_ffmpeg_open(int fd, const char *name, lin_ffmpeg **ffmpeg, lin_error *err);

/* Of the first sound in the file. They may be outside of what audio.h takes. */
int lin_ffmpeg_rate(const lin_ffmpeg *ffmpeg);
int lin_ffmpeg_channels(const lin_ffmpeg *ffmpeg);

/* Seconds, as the container says; -1 if it does not. A video's may be longer than its sound. */
double lin_ffmpeg_seconds(const lin_ffmpeg *ffmpeg);

/* At most capacity frames, interleaved; *n = 0 only at the end. Fills the block. LIN_IO, LIN_STOPPED. Allocates nothing. */
lin_status lin_ffmpeg_read(lin_ffmpeg *ffmpeg, float *frames, int capacity, int *n, lin_error *err);

/* After the end: "" if all went well, else what it said last, one line. */
const char *lin_ffmpeg_trouble(const lin_ffmpeg *ffmpeg);

/* NULL is allowed. */
void lin_ffmpeg_close(lin_ffmpeg *ffmpeg);

#endif
