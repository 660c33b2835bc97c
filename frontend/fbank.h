/*
 * fbank.h - log-mel filterbanks, as Kaldi defines them, and their mean and variance.
 *
 * Pipeline: frontend/{audio,resample} -> [this] -> normalisation -> the encoder.
 * Every hop, a window of samples (scaled to the range of 16-bit integers) is processed: its mean is removed; it is
 * pre-emphasised, multiplied by the povey window ((0.5 - 0.5 cos)^0.85), padded with zeros to a power of two and transformed
 * (KissFFT); the power spectrum is summed under triangles equally spaced on the mel scale 1127 ln(1 + f / 700), floored at the
 * float epsilon, and its natural logarithm taken. No dither. Only whole windows give frames (snip_edges): n samples give 1 + (n -
 * window) / hop frames, none if n < window.
 *
 *   lin_fbank_config config = lin_fbank_default();
 *   lin_fbank_create(&config, &fbank, &err);
 *   while (have_samples) lin_fbank_push(fbank, samples, n, frames, capacity, &n_out, &err);
 *   lin_fbank_destroy(fbank);
 *
 * Pushing the same samples in any parts gives the same bits. Frame i covers the samples i hop .. i hop + window - 1.
 * Threads: a filterbank belongs to one thread at a time.
 */
#ifndef LIN_FRONTEND_FBANK_H
#define LIN_FRONTEND_FBANK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/ops.h"

typedef struct lin_fbank_config {
    int sample_hz;      /* 16000 */
    int mel_bins;       /* D, 40 */
    double window_ms;   /* 25 */
    double hop_ms;      /* 10 */
    double low_hz;      /* 20: lower edge of the first triangle */
    double high_hz;     /* upper edge of the last triangle; 0 or less is counted from half the sample rate */
    double preemphasis; /* 0.97 */
    double level_db;    /* the level to which speech is brought (below), 1 to 150; 0: sound stays as loud as it is */
    int dereverb;       /* 1: reverberation is removed from the spectrum (dereverb.h) */
} lin_fbank_config;

typedef struct lin_fbank lin_fbank;

/* The defaults above, high_hz = 0. */
lin_fbank_config lin_fbank_default(void);

/* LIN_INVALID, with the name of the field and its limits, if a value is out of range or a triangle would contain no line of the
 * spectrum. */
lin_status lin_fbank_check(const lin_fbank_config *config, lin_error *err);

/* The caller destroys *fbank. On failure *fbank is NULL. */
lin_status lin_fbank_create(const lin_fbank_config *config, lin_fbank **fbank, lin_error *err);

/* Another filterbank of the same configuration, for many streams: it shares the first one's working memory, which is ten times
 * its own. The first one must outlive it, and both belong to the same thread. */
lin_status lin_fbank_create_beside(const lin_fbank *first, lin_fbank **fbank, lin_error *err);

/*
 * Processes n samples (finite, full scale +-1) and writes the frames that are now complete.
 *   frames [capacity, D]; n_out frames are written. LIN_TOO_SMALL, with no state changed, if
 *   capacity < lin_fbank_frames_out(fbank, n)
 * Allocates nothing.
 */
lin_status lin_fbank_push(lin_fbank *fbank, const float *samples, int n, float *frames, int capacity, int *n_out, lin_error *err);

/* Frames that a push of n more samples would write. */
int lin_fbank_frames_out(const lin_fbank *fbank, int n);

/* Returns to the initial state. */
void lin_fbank_reset(lin_fbank *fbank);

/* The state (the held samples, the level, the room), little-endian, to continue in another filterbank of the same configuration.
 * Loading bytes that are not such a state gives LIN_FORMAT, of another size LIN_MISMATCH, and changes nothing. */
size_t lin_fbank_state_bytes(const lin_fbank *fbank);
void lin_fbank_save(const lin_fbank *fbank, void *bytes);
lin_status lin_fbank_load(lin_fbank *fbank, const void *bytes, size_t n_bytes, lin_error *err);

/* Accepts NULL. */
void lin_fbank_destroy(lin_fbank *fbank);

/* ---- level ----------------------------------------------------------------------------------------------------------------- */

/*
 * What a network hears does not depend on how loud speech was recorded: with level_db the energies of each frame, before their
 * floor, are multiplied by a gain that brings the running level of speech to level_db, in dB of the sum of a frame's energies.
 * Causal: a frame's gain depends on this frame and those before it, so any split gives the same bits.
 *
 * With L the level of a frame, at least 75 dB below level_db, S that of speech, at first 10 dB below level_db, and F the recent
 * lowest level, at first L:
 *
 *   F = min(L, F + 0.02 dB)
 *   if L > F + 15 dB, the frame is one of speech:  S += (L - S) / 20               where L > S
 *                                                  S = max(L, S - 0.01 dB - q)     else
 *                                                  and after either q = q / 2; q is 5 dB at first
 *   gain: level_db - S, made smaller by 4 dB (0 within 4 dB), from -40 to 40 dB
 *
 * So a stream may begin at any level: S falls by 10 dB in the first frames of speech and by 1 dB with each second of speech from
 * there. Faster would amplify short recordings whose first sounds are quiet. Noise where nobody has spoken yet becomes at most
 * 6 dB louder.
 */

/* ---- what defines a filterbank --------------------------------------------------------------------------------------------- */

/* Number of samples in `ms` milliseconds. */
int lin_mel_samples(const lin_fbank_config *config, double ms);

/* The frequency of the centre of bin b, and the inverse: the bin, with a fraction, whose centre is at a frequency. */
double lin_mel_centre_hz(const lin_fbank_config *config, int b);
double lin_mel_place(const lin_fbank_config *config, double hz);

/* Window and triangles for a backend that computes the filterbank itself, on the host. Errors of lin_fbank_check, or
 * LIN_NO_MEMORY. */
lin_status lin_fbank_table_create(const lin_fbank_config *config, lin_fbank_table *table, lin_error *err);
void lin_fbank_table_free(lin_fbank_table *table);

/* ---- mean and variance ----------------------------------------------------------------------------------------------------- */

/*
 * Statistics of the training set are stored in the model; for those of speakers the caller has an accumulator for each.
 *
 *   lin_moments_create(D, &acc, &err);
 *   while (...) lin_moments_add(acc, frames, T);
 *   lin_moments_finish(acc, mean, istd, &err);
 *   lin_free(acc);
 *   lin_moments_apply(frames, T, D, mean, istd);
 *
 * Sums are kept in double relative to the first frame, so that a large mean does not reduce the precision of the variance.
 */

/* The smallest standard deviation of a bin (natural-log units): digital silence would otherwise give infinities. */
#define LIN_MOMENTS_SMALLEST_STD 1e-2

typedef struct lin_moments lin_moments;

/* D >= 1 bins. Released with lin_free. On failure *moments is NULL. */
lin_status lin_moments_create(int D, lin_moments **moments, lin_error *err);

/* Adds frames [T, D]. */
void lin_moments_add(lin_moments *moments, const float *frames, size_t T);

/* Frames added so far. */
uint64_t lin_moments_count(const lin_moments *moments);

/* mean [D] and istd [D] = 1 / standard deviation (biased). LIN_INVALID without frames, LIN_NUMERIC if a frame was not finite. */
lin_status lin_moments_finish(const lin_moments *moments, float *mean, float *istd, lin_error *err);

/* frames [T, D] = (frames - mean) istd, in place. */
void lin_moments_apply(float *frames, size_t T, int D, const float *mean, const float *istd);

#endif
