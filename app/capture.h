/*
 * capture.h - where live sound comes from: a microphone, or a file or pipe that is taken for one.
 *
 * Pipeline: frontend/microphone or frontend/audio -> [this] -> linnet/session, frontend/recording.
 * A file is read at the pace of speech, so that latencies mean what they mean with a microphone; a pipe as it comes.
 *
 *   lin_capture_open(&(lin_capture_options){.microphone = &options}, &capture, &err);
 *   while (!lin_interrupted) {
 *       status = lin_capture_read(capture, samples, capacity, 50, &n, &err);     // n = 0: nothing came in 50 ms
 *       if (status != LIN_OK || lin_capture_ended(capture)) break;
 *   }
 *   lin_capture_close(capture, &report);
 *
 * Threads: one at a time.
 */
#ifndef LIN_APP_CAPTURE_H
#define LIN_APP_CAPTURE_H

#include "frontend/audio.h"
#include "frontend/microphone.h"

typedef struct lin_capture_options {
    const lin_microphone_options *microphone; /* used where path is NULL */
    const char *path;                         /* a sound file, or "-": standard input */
    const lin_pcm_format *raw;                /* of headerless sound, as for lin_audio_open */
    int unpaced;                              /* a file too: as fast as it can be read */
} lin_capture_options;

typedef struct lin_capture lin_capture;

/* Errors of lin_microphone_open or lin_audio_open. On failure *capture is NULL. */
lin_status lin_capture_open(const lin_capture_options *options, lin_capture **capture, lin_error *err);

const char *lin_capture_name(const lin_capture *capture); /* of the device or file */
int lin_capture_rate(const lin_capture *capture);
int lin_capture_channels(const lin_capture *capture);

/* The next sound, samples [n, channels], *n_got <= n frames; waits for at most timeout_ms, or until a signal arrives. LIN_IO: the
 * microphone is lost or stalled; errors of lin_audio_read. */
lin_status lin_capture_read(lin_capture *capture, float *samples, int n, int timeout_ms, int *n_got, lin_error *err);

/* A file or pipe is at its end. */
int lin_capture_ended(const lin_capture *capture);

/* Seconds from the moment when the last frame that was read was captured until now. */
double lin_capture_age(const lin_capture *capture);

/* What was lost so far. For a file: frames read, and nothing else. */
void lin_capture_report(const lin_capture *capture, lin_microphone_report *report);

/* What was wrong with a file but did not prevent reading; "" if nothing. */
const char *lin_capture_warning(const lin_capture *capture);
/* How its bytes were taken, "" if they say so themselves; and whether some of the sound is missing (audio.h). */
const char *lin_capture_notice(const lin_capture *capture);
int lin_capture_incomplete(const lin_capture *capture);

/* NULL is allowed. report (may be NULL): the last state. */
void lin_capture_close(lin_capture *capture, lin_microphone_report *report);

#endif
