/*
 * hearing.h - where live sound comes from: a microphone, or a file or pipe that is taken for one.
 *
 * Pipeline: frontend/microphone or frontend/audio -> [this] -> frontend/source (lin_extractor), frontend/recording.
 * A file is read at the pace of speech, so that latencies mean what they mean with a microphone; a pipe as it comes.
 *
 *   lin_hearing_open(&(lin_hearing_options){.microphone = &options}, &hearing, &err);
 *   while (!lin_interrupted) {
 *       status = lin_hearing_read(hearing, samples, capacity, 50, &n, &err);     // n = 0: nothing came in 50 ms
 *       if (status != LIN_OK || lin_hearing_ended(hearing)) break;
 *   }
 *   lin_hearing_close(hearing, &report);
 *
 * Threads: one at a time.
 */
#ifndef LIN_APP_HEARING_H
#define LIN_APP_HEARING_H

#include "frontend/audio.h"
#include "frontend/microphone.h"

typedef struct lin_hearing_options {
    const lin_microphone_options *microphone; /* used where path is NULL */
    const char *path;                         /* a sound file, or "-": standard input */
    const lin_pcm_format *raw;                /* of headerless sound, as for lin_audio_open */
    int unpaced;                              /* a file too: as fast as it can be read */
} lin_hearing_options;

typedef struct lin_hearing lin_hearing;

/* Errors of lin_microphone_open or lin_audio_open. On failure *hearing is NULL. */
lin_status lin_hearing_open(const lin_hearing_options *options, lin_hearing **hearing, lin_error *err);

const char *lin_hearing_name(const lin_hearing *hearing); /* of the device or file */
int lin_hearing_rate(const lin_hearing *hearing);
int lin_hearing_channels(const lin_hearing *hearing);

/* The next sound, samples [n, channels], *n_got <= n frames; waits for at most timeout_ms, or until a signal arrives. LIN_IO: the
 * microphone is lost or stalled; errors of lin_audio_read. */
lin_status lin_hearing_read(lin_hearing *hearing, float *samples, int n, int timeout_ms, int *n_got, lin_error *err);

/* A file or pipe is at its end. */
int lin_hearing_ended(const lin_hearing *hearing);

/* Seconds from the moment when the last frame that was read was heard until now. */
double lin_hearing_age(const lin_hearing *hearing);

/* What was lost so far. For a file: frames read, and nothing else. */
void lin_hearing_report(const lin_hearing *hearing, lin_microphone_report *report);

/* What was wrong with a file but did not prevent reading; "" if nothing. */
const char *lin_hearing_warning(const lin_hearing *hearing);
/* How its bytes were taken, "" if they say so themselves; and whether some of the sound is missing (audio.h). */
const char *lin_hearing_notice(const lin_hearing *hearing);
int lin_hearing_incomplete(const lin_hearing *hearing);

/* NULL is allowed. report (may be NULL): the last state. */
void lin_hearing_close(lin_hearing *hearing, lin_microphone_report *report);

#endif
