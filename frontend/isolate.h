/*
 * isolate.h - files that a process of their own reads: what a damaged one does to the decoders (memory that is lost, a crash)
 * ends with that process, and base/child.h says what it may do.
 *
 * Pipeline: an open file -> [a child: frontend/audio] -> frontend/audio here. The child is this program, started as
 * `linnet read-sound NAME` with the file as its standard input (app/main.c). It sends samples as frontend/ffmpeg.h says,
 * and lines, first of all that about the length:
 *
 *   frames 32000                               the length according to the header, -1: it gives none
 *   notice ...   warning ...   missing ...     as in lin_audio_format; missing: a warning, and it is incomplete
 *   fail 5 talk.m4a cannot be read             a lin_status and the message
 *   too long                                   it used its processor time
 *
 * Threads: as for lin_audio.
 */
#ifndef LIN_FRONTEND_ISOLATE_H
#define LIN_FRONTEND_ISOLATE_H

#include "frontend/audio.h"

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
