// rows.c - checking rows of log-probabilities, and sums over alignments; see rows.h.

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

lin_status lin_rows_check(const float *logp, int64_t n_rows, int V, lin_error *err)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const float *row = logp + t * V;
        double sum = 0;
        for (int c = 0; c < V; c++) {
            if (isnan(row[c])) {
                return lin_fail(err, LIN_NUMERIC, "row %lld: column %d is not a number (NaN)", (long long)t, c);
            }
            sum += exp((double)row[c]);
        }
        if (!(fabs(sum - 1) <= LIN_ROWS_TOLERANCE)) {
            return lin_fail(err, LIN_NUMERIC, "row %lld: exp of its numbers sums to %.6g, not 1; %s", (long long)t, sum,
                            guess(row, V));
        }
    }
    return LIN_OK;
}

lin_status lin_rows_check_numbers(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const float *row = logp + t * V;
        int has_nan = 0;
        for (int k = 0; k < V; k++) has_nan |= isnan(row[k]);
        if (!has_nan && isfinite(lin_row_most(row, V))) continue;
        return lin_fail(err, LIN_NUMERIC, "frame %lld: the log-probabilities are not numbers", (long long)(first_frame + t));
    }
    return LIN_OK;
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------ */

// Sums smaller than the row's largest one by this factor are left out.
static const double NEGLIGIBLE = 1e-200;

void lin_sums_begin(lin_sums *q, double blank, double label)
{
    q->scale = fmax(blank, label);
    q->low = 0;
    q->high = 1;
    q->sums[0] = exp(label - q->scale);
    q->sums[1] = exp(blank - q->scale);
}

double lin_sums_scaled(const float *row, int V, double *p)
{
    const double most = (double)lin_row_most(row, V);
    for (int v = 0; v < V; v++) p[v] = exp((double)row[v] - most);
    return most;
}

static double of_label(const lin_sums *q, int i, const double *p)
{
    const int32_t label = q->labels[i / 2];
    double sum = q->sums[i] + q->sums[i - 1];
    if (label != q->labels[i / 2 - 1]) sum += q->sums[i - 2];
    return sum * p[label];
}

// From the last state down, in place: a state needs its own sum and the two before, which are 0 below `low`.
void lin_sums_row(lin_sums *q, const double *p, double most, int64_t left)
{
    double *sums = q->sums, largest = 0;
    const int last = 2 * q->n + 1;
    const int64_t least = 2 * (q->n - left); // from earlier states the rest does not reach the last phone
    int low = q->low, high = q->high, i;
    if (high < 0) return;
    for (int more = 0; more < 2 && high < last; more++) sums[++high] = 0;
    const int first = least > high ? high + 1 : least > low ? (int)least : low;
    i = high;
    if (i % 2 == 0 && i >= first && i > 0) {
        largest = sums[i] = of_label(q, i, p);
        i--;
    }
    for (; i > first && i > 1; i -= 2) {
        const double blank = (sums[i] + sums[i - 1]) * p[0], label = of_label(q, i - 1, p);
        const double larger = blank > label ? blank : label;
        sums[i] = blank;
        sums[i - 1] = label;
        largest = larger > largest ? larger : largest;
    }
    for (; i >= first; i--) { // the blank at `low`, or the label before the sequence
        sums[i] = (sums[i] + (i > low ? sums[i - 1] : 0)) * (i ? p[0] : q->labels[0] ? p[q->labels[0]] : 0);
        largest = sums[i] > largest ? sums[i] : largest;
    }
    q->high = -1;
    if (!(largest > 0)) return;
    for (i = low; i < first; i++) sums[i] = 0;
    for (; i <= high; i++) sums[i] /= largest;
    q->scale = q->scale + most + log(largest);
    while (sums[low] < NEGLIGIBLE) sums[low++] = 0;
    while (sums[high] < NEGLIGIBLE) high--;
    q->low = low;
    q->high = high;
}

void lin_sums_ends(const lin_sums *q, double ends[2])
{
    const int last = 2 * q->n + 1;
    ends[LIN_LABEL_ENDING] = q->low <= last - 1 && last - 1 <= q->high ? q->scale + log(q->sums[last - 1]) : -INFINITY;
    ends[LIN_BLANK_ENDING] = q->high == last ? q->scale + log(q->sums[last]) : -INFINITY;
}
