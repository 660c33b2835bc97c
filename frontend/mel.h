/*
 * mel.h - the numbers that define the filterbank: window, transform, triangles. Used by fbank.h, which computes it with KissFFT,
 * and by backends that compute it themselves (lin_fbank_table in kernels/ops.h). Needs no FFT and no library.
 */
#ifndef LIN_FRONTEND_MEL_H
#define LIN_FRONTEND_MEL_H

#include "frontend/fbank.h"
#include "kernels/ops.h"

/* The natural logarithm of this is the energy of digital silence (Kaldi: std::numeric_limits<float>::epsilon()). */
#define LIN_MEL_FLOOR 1.1920928955078125e-07f

/* Number of samples in `ms` milliseconds; and the size of the transform: a power of two that holds a window. */
int lin_mel_samples(const lin_fbank_config *config, double ms);
int lin_mel_transform(const lin_fbank_config *config);

/* The povey window at sample i of `window`, times 32768: samples are given in -1..1. */
double lin_mel_window(int window, int i);

/* The lines of the spectrum strictly inside triangle b: returns their number; *first of them, and their weights (may be NULL). */
int lin_mel_triangle(const lin_fbank_config *config, int fft, int b, int *first, float *weights);

/* The frequency of the centre of bin b, and the place among the bins, b + a part, whose centre is at a frequency. */
double lin_mel_centre_hz(const lin_fbank_config *config, int b);
double lin_mel_place(const lin_fbank_config *config, double hz);

/* The whole table for a backend, on the host. Errors of lin_fbank_check, or LIN_NO_MEMORY. */
lin_status lin_fbank_table_create(const lin_fbank_config *config, lin_fbank_table *table, lin_error *err);
void lin_fbank_table_free(lin_fbank_table *table);

#endif
