/*
 * normalize.h - mean and variance normalisation of features.
 *
 * Pipeline: frontend/source -> [this] -> the encoder. Global statistics of the training set are kept in the model; per-speaker ones
 * are made by the caller with one accumulator a speaker.
 *
 *   lin_norm_create(D, &acc, &err);
 *   while (...) lin_norm_add(acc, frames, T);
 *   lin_norm_finish(acc, mean, istd, &err);
 *   lin_norm_destroy(acc);
 *   lin_norm_apply(frames, T, D, mean, istd);
 *
 * Sums are kept in double about the first frame, so that a large mean costs no digits of the variance.
 */
#ifndef LIN_FRONTEND_NORMALIZE_H
#define LIN_FRONTEND_NORMALIZE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

/* No bin is taken to vary less than this (standard deviation, in natural-log units): digital silence would give infinities. */
#define LIN_NORM_SMALLEST_STD 1e-2

typedef struct lin_norm lin_norm;

/* D >= 1 bins. On failure *norm is NULL. */
lin_status lin_norm_create(int D, lin_norm **norm, lin_error *err);

/* Adds frames [T, D]. */
void lin_norm_add(lin_norm *norm, const float *frames, size_t T);

/* Adds what another accumulator of the same D has seen; LIN_MISMATCH if D differs. */
lin_status lin_norm_merge(lin_norm *norm, const lin_norm *other, lin_error *err);

/* Frames added so far. */
uint64_t lin_norm_count(const lin_norm *norm);

/* mean [D] and istd [D] = 1 / standard deviation (biased). LIN_INVALID without frames, LIN_NUMERIC if a frame was not finite. */
lin_status lin_norm_finish(const lin_norm *norm, float *mean, float *istd, lin_error *err);

void lin_norm_reset(lin_norm *norm);

/* NULL is allowed. */
void lin_norm_destroy(lin_norm *norm);

/* frames [T, D] = (frames - mean) istd, in place. */
void lin_norm_apply(float *frames, size_t T, int D, const float *mean, const float *istd);

#endif
