/*
 * helper.h - sound from another process, which decodes an open file: its standard output is an AU file of 32-bit floats, its
 * standard error lines of text.
 *
 * Pipeline: an open file -> [a child process] -> frontend/ffmpeg or frontend/isolate -> frontend/audio. The file is the child's
 * standard input, never a name; base/child.h says what the child may do. Memory is constant.
 *
 *   lin_helper_open(&child, fd, "talk.m4a", take_line, context, &helper, &err);
 *   while (lin_helper_read(helper, frames, capacity, &n, &err) == LIN_OK && n > 0) ...;
 *   lin_helper_close(helper);                                     // ends the child if it still runs, and waits for it
 *
 * Threads: an object belongs to one thread at a time; several may be open.
 */
#ifndef LIN_FRONTEND_HELPER_H
#define LIN_FRONTEND_HELPER_H

#include <stdint.h>

#include "base/child.h"
#include "base/status.h"

typedef struct lin_helper lin_helper;

/* A line of standard error, without its end; longer ones are cut, control characters are blanks. */
typedef void (*lin_helper_line)(void *context, const char *line);
enum { LIN_HELPER_LINE = 512 };

/*
 * Starts child->program (its descriptors are set here) and reads the header. fd: a regular file, which the caller still owns.
 * name: for messages. LIN_UNSUPPORTED: it cannot be started; LIN_IO, LIN_NO_MEMORY; LIN_STOPPED (lin_audio_stop_on). LIN_FORMAT
 * without a message, and a helper that is at its end: it gave no header; its lines say why.
 */
lin_status lin_helper_open(const lin_child *child, int fd, const char *name, lin_helper_line take, void *context,
                           lin_helper **helper, lin_error *err);

/* They may be outside the limits of audio.h. */
int lin_helper_rate(const lin_helper *helper);
int lin_helper_channels(const lin_helper *helper);

/* At most capacity frames, interleaved; *n = 0 only at the end. Fills the block. At the end all lines have been taken and the
 * child has ended. LIN_IO, LIN_STOPPED. Allocates nothing. */
lin_status lin_helper_read(lin_helper *helper, float *frames, int capacity, int *n, lin_error *err);

/* After the end: the status of waitpid. */
int lin_helper_status(const lin_helper *helper);

/* Accepts NULL. */
void lin_helper_close(lin_helper *helper);

/* The other side: the header of a sound of unknown length, and frames in its byte order. bytes: [LIN_HELPER_HEADER], [4 n]. */
enum { LIN_HELPER_HEADER = 24 };
void lin_helper_put_header(unsigned char *bytes, int rate_hz, int channels);
void lin_helper_put(unsigned char *bytes, const float *samples, int n);

#endif
