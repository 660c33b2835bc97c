/*
 * rows.h - checks that rows are log-probabilities before a search uses them.
 *
 * Pipeline: a matrix from a file or rows of a stream -> [this] -> decoder/{beam,words,align}.
 *
 * Threads: no shared state.
 */
#ifndef LIN_DECODER_ROWS_H
#define LIN_DECODER_ROWS_H

#include <stdint.h>

#include "base/status.h"

/* Largest difference of a row's sum of probabilities from 1: half-precision numbers pass, logits do not. */
#define LIN_ROWS_TOLERANCE 0.01

/*
 * logp [n_rows, V], natural logarithms. LIN_NUMERIC, naming the row (the first one is number first_frame) and the error: a NaN,
 * with its column; a sum that is not 1, and what the numbers may be instead. -INFINITY is a probability of 0.
 */
lin_status lin_rows_check(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err);

/*
 * The conditions of a search; rows need not be normalised: LIN_NUMERIC, naming the frame (the first row is frame first_frame),
 * for a NaN or a row whose largest value is infinite.
 */
lin_status lin_rows_check_numbers(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err);

#endif
