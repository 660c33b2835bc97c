// rows.c - checking rows of log-probabilities; see rows.h.

#include "decoder/rows.h"

#include <math.h>

// Guesses what the numbers of a row are instead of log-probabilities.
static const char *guess(const float *row, int V)
{
    double sum = 0, log10_sum = 0;
    int negative = 0;
    for (int c = 0; c < V; c++) {
        sum += (double)row[c];
        log10_sum += pow(10, (double)row[c]);
        negative |= row[c] < 0;
    }
    if (!negative && fabs(sum - 1) <= LIN_ROWS_TOLERANCE) return "they look like probabilities: take their natural logarithm";
    if (fabs(log10_sum - 1) <= LIN_ROWS_TOLERANCE) return "they look like logarithms to base 10: natural ones are needed";
    return "they are not log-probabilities: logits need a log-softmax first";
}

lin_status lin_rows_check(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const float *row = logp + t * V;
        double sum = 0;
        for (int c = 0; c < V; c++) {
            if (isnan(row[c])) {
                return lin_fail(err, LIN_NUMERIC, "row %lld: column %d is not a number (NaN)", (long long)(first_frame + t), c);
            }
            sum += exp((double)row[c]);
        }
        if (!(fabs(sum - 1) <= LIN_ROWS_TOLERANCE)) {
            return lin_fail(err, LIN_NUMERIC, "row %lld: exp of its numbers sums to %.6g, not 1; %s",
                            (long long)(first_frame + t), sum, guess(row, V));
        }
    }
    return LIN_OK;
}

lin_status lin_rows_check_numbers(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const float *row = logp + t * V;
        float largest = row[0];
        int ordered = row[0] == row[0];
        for (int k = 1; k < V; k++) {
            ordered &= row[k] == row[k];
            largest = row[k] > largest ? row[k] : largest;
        }
        if (ordered && isfinite(largest)) continue;
        return lin_fail(err, LIN_NUMERIC, "frame %lld: the log-probabilities are not numbers", (long long)(first_frame + t));
    }
    return LIN_OK;
}
