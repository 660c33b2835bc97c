/*
 * recording.h - writes live sound to a WAV file as it arrives.
 *
 * Samples are 32-bit floats: reading the file gives the same bits that were written. The file appears under its name when it is
 * closed (base/file.h). The header is updated every second, so that a killed program leaves a playable file under the temporary
 * name (<path>.linnet-N.tmp), which the next recording does not remove.
 *
 *   lin_recording_create("session.wav", 48000, 1, &recording, &err);
 *   while (sound arrives) lin_recording_write(recording, samples, n, &err);
 *   lin_recording_close(recording, &err);
 *
 * Threads: one at a time.
 */
#ifndef LIN_FRONTEND_RECORDING_H
#define LIN_FRONTEND_RECORDING_H

#include <stdint.h>

#include "base/status.h"

typedef struct lin_recording lin_recording;

/* An existing file is replaced on closing, if anything was recorded. LIN_IO if it cannot be written. On failure *recording is
 * NULL. */
lin_status lin_recording_create(const char *path, int rate_hz, int channels, lin_recording **recording, lin_error *err);

/* samples [n, channels]. LIN_IO: the disk is full, or the file has reached its limit of 4 GiB (6 hours at 48 kHz, one channel).
 * Samples written before are kept; close the recording then. */
lin_status lin_recording_write(lin_recording *recording, const float *samples, int n, lin_error *err);

/* Completes the file under its name. LIN_IO if that fails, or if a write failed before: the sound until then is kept beside it,
 * and the message gives its name. Frees the recording in any case. Accepts NULL. */
lin_status lin_recording_close(lin_recording *recording, lin_error *err);

#endif
