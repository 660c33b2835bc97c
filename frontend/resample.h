/*
 * resample.h - mixes channels down to one, and resamples it, as it arrives, from any sample rate to any other.
 *
 * Pipeline: frontend/audio, one channel -> [this] -> frontend/fbank.
 * libsoxr at its high quality (20 bits, linear phase, flat to 91 % of the lower Nyquist frequency); with equal rates samples pass
 * through unchanged. The output lags because the filter looks ahead (some 40 ms from 44.1 or 48 kHz, 120 ms from 8 kHz), but it
 * is aligned in time with the input.
 *
 *   lin_resampler_create(44100, 16000, &r, &err);
 *   while (have_samples) lin_resampler_push(r, in, n, out, capacity, &n_out, &err);
 *   lin_resampler_finish(r, out, capacity, &n_out, &err);
 *   lin_resampler_destroy(r);
 *
 * This code allocates nothing after creation; libsoxr's queues reach their size (below 1 MB) in the first seconds.
 * Pushing the same samples in any parts gives the same bits: libsoxr is fed in blocks of a fixed size. The whole output has about
 * input samples * out_hz / in_hz samples.
 * Threads: a resampler belongs to one thread at a time.
 */
#ifndef LIN_FRONTEND_RESAMPLE_H
#define LIN_FRONTEND_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct lin_resampler lin_resampler;

/* Rates from 1 kHz to 1 MHz, whole or not. The caller destroys *resampler. On failure it is NULL. */
lin_status lin_resampler_create(double in_hz, double out_hz, lin_resampler **resampler, lin_error *err);

/* The most samples that pushing n more, or finishing (n = 0), can give. */
int lin_resampler_most_out(const lin_resampler *resampler, int n);

/*
 * Processes n samples and writes the output that is complete.
 * LIN_TOO_SMALL, with no state changed, if capacity < lin_resampler_most_out(resampler, n). LIN_INVALID after finishing.
 */
lin_status lin_resampler_push(lin_resampler *resampler, const float *in, int n, float *out, int capacity, int *n_out,
                              lin_error *err);

/* The end of the input: writes the rest. LIN_TOO_SMALL as above with n = 0. Only reset and destroy may follow. */
lin_status lin_resampler_finish(lin_resampler *resampler, float *out, int capacity, int *n_out, lin_error *err);

/* Returns to the initial state. LIN_NO_MEMORY if libsoxr cannot; then only destroy may follow. */
lin_status lin_resampler_reset(lin_resampler *resampler, lin_error *err);

/*
 * ---- saving a resampler ----
 *
 * libsoxr's internal state cannot be read. But its blocks repeat after a period of input, which depends on the two rates (0.1 s
 * from 8 or 48 kHz to 16 kHz, 5 s from 44.1, 33 s from 11.025): another resampler that gets the samples since a multiple of the
 * period soon gives the same bits. So a saved state consists of those samples. libsoxr does not report its period: it is found by
 * trial.
 *
 * *period: input samples; 0 for equal rates. Takes up to a second. LIN_UNSUPPORTED for rates that are not whole numbers and those
 * without a period of at most LIN_RESAMPLER_LONGEST_S.
 */
enum { LIN_RESAMPLER_LONGEST_S = 40 };
lin_status lin_resampler_find_period(double in_hz, double out_hz, int64_t *period, lin_error *err);

/* From now on keeps the samples that a state needs, a little more than two periods. Call it before the first sample. */
lin_status lin_resampler_keep_past(lin_resampler *resampler, int64_t period, lin_error *err);

/*
 * The state of a resampler that keeps its past, little-endian. Saving checks that the state gives the bits that this resampler
 * gave last: LIN_UNSUPPORTED if not. LIN_INVALID if it is finished or does not keep its past (with equal rates it need not).
 */
size_t lin_resampler_state_bytes(const lin_resampler *resampler);
lin_status lin_resampler_save(const lin_resampler *resampler, void *bytes, lin_error *err);

/* Loads into a resampler between the same rates, new or reset. LIN_FORMAT, with nothing changed, if the bytes are not such a
 * state. */
lin_status lin_resampler_load(lin_resampler *resampler, const void *bytes, size_t n_bytes, lin_error *err);

/* Accepts NULL. */
void lin_resampler_destroy(lin_resampler *resampler);

/* ---- one channel ----------------------------------------------------------------------------------------------------------- */

/* The mean of all channels. Everything that mixes does it here, with the same bits. Threads: any. */

/* samples [n, channels] -> mono [n], which may be the same memory. */
void lin_mix_down(float *mono, const float *samples, int n, int channels);

#endif
