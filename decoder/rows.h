/*
 * rows.h - whether numbers that others made are log-probabilities, before a search believes them.
 *
 * Pipeline: a matrix from a file -> [this] -> decoder/{search,align}.
 *
 * Threads: no shared state.
 */
#ifndef LIN_DECODER_ROWS_H
#define LIN_DECODER_ROWS_H

#include <stdint.h>

#include "kernels/status.h"

/* A row's probabilities may sum to so much more or less than 1: half-precision numbers pass, logits do not. */
#define LIN_ROWS_TOLERANCE 0.01

/*
 * logp [n_rows, V], natural logarithms. LIN_NUMERIC, naming the row (the first of them has the number first_row) and what is wrong:
 * a NaN, with its column; a sum that is not 1, and what the numbers may be instead. -INFINITY is a probability of 0.
 */
lin_status lin_rows_check(const float *logp, int64_t n_rows, int V, int64_t first_row, lin_error *err);

#endif
