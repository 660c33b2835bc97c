/*
 * normalize.h - mean and variance normalisation of features.
 *
 * Pipeline: frontend/source -> [this] -> the encoder. Global statistics of the training set are stored in the model; for
 * per-speaker statistics the caller uses one accumulator per speaker.
 *
 *   lin_moments_create(D, &acc, &err);
 *   while (...) lin_moments_add(acc, frames, T);
 *   lin_moments_finish(acc, mean, istd, &err);
 *   lin_moments_destroy(acc);
 *   lin_moments_apply(frames, T, D, mean, istd);
 *
 * Sums are kept in double relative to the first frame, so that a large mean does not reduce the precision of the variance.
 */
#ifndef LIN_FRONTEND_NORMALIZE_H
#define LIN_FRONTEND_NORMALIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The smallest standard deviation of a bin (natural-log units): digital silence would otherwise give infinities. */
#define LIN_MOMENTS_SMALLEST_STD 1e-2

typedef struct lin_moments lin_moments;

/* D >= 1 bins. On failure *norm is NULL. */
lin_status lin_moments_create(int D, lin_moments **norm, lin_error *err);

/* Adds frames [T, D]. */
void lin_moments_add(lin_moments *norm, const float *frames, size_t T);

/* Frames added so far. */
uint64_t lin_moments_count(const lin_moments *norm);

/* mean [D] and istd [D] = 1 / standard deviation (biased). LIN_INVALID without frames, LIN_NUMERIC if a frame was not finite. */
lin_status lin_moments_finish(const lin_moments *norm, float *mean, float *istd, lin_error *err);

/* Accepts NULL. */
void lin_moments_destroy(lin_moments *norm);

/* frames [T, D] = (frames - mean) istd, in place. */
void lin_moments_apply(float *frames, size_t T, int D, const float *mean, const float *istd);

#endif
