/*
 * recording.h - live sound into a WAV file, as it arrives.
 *
 * Samples are 32-bit floats: what is read back from the file is, bit for bit, what was written. The file appears under its name
 * when it is closed (base/file.h). The header is brought up to date every second, so that a program that is killed leaves a file
 * that plays, under the temporary name (<path>.linnet-N.tmp), and the next recording does not remove it.
 *
 *   lin_recording_create("heard.wav", 48000, 1, &recording, &err);
 *   while (sound comes) lin_recording_write(recording, samples, n, &err);
 *   lin_recording_close(recording, &err);
 *
 * Threads: one at a time.
 */
#ifndef LIN_FRONTEND_RECORDING_H
#define LIN_FRONTEND_RECORDING_H

#include <stdint.h>

#include "base/status.h"

typedef struct lin_recording lin_recording;

/* Replaces a file that is there, when it is closed and anything was recorded. LIN_IO if it cannot be written. On failure *recording is NULL. */
lin_status lin_recording_create(const char *path, int rate_hz, int channels, lin_recording **recording, lin_error *err);

/* samples [n, channels]. LIN_IO: the disk is full, or the file, which cannot pass 4 GiB (6 hours at 48 kHz, one channel). What was
 * written before stays; close it then. */
lin_status lin_recording_write(lin_recording *recording, const float *samples, int n, lin_error *err);

/* Frames written so far. */
int64_t lin_recording_frames(const lin_recording *recording);

/* Completes the file, under its name. LIN_IO if that fails, or if a write failed before: the sound until then is kept beside it, and
 * the message says where. The recording is gone in any case. NULL is allowed. */
lin_status lin_recording_close(lin_recording *recording, lin_error *err);

#endif
