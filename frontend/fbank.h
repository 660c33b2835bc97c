/*
 * fbank.h - log-mel filterbanks, as Kaldi defines them.
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

#include "base/status.h"

typedef struct lin_fbank_config {
    double sample_hz;   /* 16000 */
    int mel_bins;       /* D, 40 */
    double window_ms;   /* 25 */
    double hop_ms;      /* 10 */
    double low_hz;      /* 20: lower edge of the first triangle */
    double high_hz;     /* upper edge of the last triangle; 0 or less is counted from half the sample rate */
    double preemphasis; /* 0.97 */
} lin_fbank_config;

typedef struct lin_fbank lin_fbank;

/* The defaults above, high_hz = 0. */
lin_fbank_config lin_fbank_default(void);

/* LIN_INVALID, with the name of the field and its limits, if a value is out of range or a triangle would contain no line of the
 * spectrum. */
lin_status lin_fbank_check(const lin_fbank_config *config, lin_error *err);

/* The caller destroys *fbank. On failure *fbank is NULL. */
lin_status lin_fbank_create(const lin_fbank_config *config, lin_fbank **fbank, lin_error *err);

/* Another of the same configuration that computes in the first one's memory, which is ten times its own: one for each of many
 * streams. The first one must outlive it, and both belong to the same thread. */
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

/* The state (the held samples), little-endian, to continue in another filterbank of the same configuration. Loading bytes that
 * are not such a state gives LIN_FORMAT and changes nothing. */
size_t lin_fbank_state_bytes(const lin_fbank *fbank);
void lin_fbank_save(const lin_fbank *fbank, void *bytes);
lin_status lin_fbank_load(lin_fbank *fbank, const void *bytes, size_t n_bytes, lin_error *err);

/* Accepts NULL. */
void lin_fbank_destroy(lin_fbank *fbank);

#endif
