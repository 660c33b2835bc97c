/*
 * rows.h - what searches do with rows of log-probabilities: check them, select the largest numbers, sum over alignments.
 *
 * Pipeline: a matrix from a file or rows of a stream -> [checks] -> decoder/{beam,words}, align/align; sequences of a search ->
 * [sums] -> decoder/words_nbest, linnet/judges.
 * Threads: no shared state; one at a time per lin_sums.
 */
#ifndef LIN_DECODER_ROWS_H
#define LIN_DECODER_ROWS_H

#include <stdint.h>

#include "base/status.h"

/* Largest difference of a row's sum of probabilities from 1: half-precision numbers pass, logits do not. */
#define LIN_ROWS_TOLERANCE 0.01

/*
 * logp [n_rows, V], natural logarithms. LIN_NUMERIC, naming the row, from 0 on, and the error: a NaN, with its column; a sum that
 * is not 1, and what the numbers may be instead. -INFINITY is a probability of 0.
 */
lin_status lin_rows_check(const float *logp, int64_t n_rows, int V, lin_error *err);

/*
 * The conditions of a search; rows need not be normalised: LIN_NUMERIC, naming the frame (the first row is frame first_frame),
 * for a NaN or a row whose largest value is infinite.
 */
lin_status lin_rows_check_numbers(const float *logp, int64_t n_rows, int V, int64_t first_frame, lin_error *err);

/* The largest number of a row. */
static inline float lin_row_most(const float *row, int V)
{
    float most = row[0];
    for (int v = 1; v < V; v++) most = row[v] > most ? row[v] : most;
    return most;
}

/* The label of the largest number of a row, of those from `first` on; of equal ones the lowest. */
static inline int lin_row_best(const float *row, int first, int V)
{
    int best = first;
    for (int v = first + 1; v < V; v++)
        if (row[v] > row[best]) best = v;
    return best;
}

/* The k-th largest, 1 <= k <= n, of x [n], whose order changes: the threshold of a beam. None of them may be NaN. Hoare's
 * selection, linear time on average. */
static inline double lin_select_largest(double *x, int n, int k)
{
    int from = 0, to = n - 1;
    while (from < to) {
        const double pivot = x[from + (to - from) / 2];
        int i = from, j = to;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (x[j] < pivot) j--;
            if (i > j) break;
            const double swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (k - 1 <= j) to = j;
        else if (k - 1 >= i) from = i;
        else break;
    }
    return x[k - 1];
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------ */

/*
 * The sum over all alignments of a sequence of phones with rows of probabilities, row by row, in double precision. Graves et al.
 * 2006, "Connectionist Temporal Classification", eq. 6-8, in place; each row is scaled by its largest sum.
 *
 *   lin_sums q = {.labels = labels, .sums = room, .n = n};
 *   lin_sums_begin(&q, 0, -INFINITY);
 *   for (t < T) {
 *       const double most = lin_sums_scaled(row[t], V, p);                 // finite, or the row is of no use
 *       lin_sums_row(&q, p, most, T - 1 - t);
 *   }
 *   lin_sums_ends(&q, ends);                                              // log P = log(exp(ends[0]) + exp(ends[1]))
 *
 * Sums below 1e-200 of the row's largest are dropped: what a row costs does not grow with the length of the sequence.
 *
 * State 0 is the label before the sequence, 1 the blank after it, 2 i phone i, 2 i + 1 the blank after that.
 */
typedef struct lin_sums {
    int32_t *labels; /* [n + 1], the one before the sequence first, 0: none */
    double *sums;    /* [2 n + 2], divided by exp(scale) */
    int n;
    int low, high;   /* the sums of other states are 0; high -1: all are */
    double scale;
} lin_sums;

enum { LIN_BLANK_ENDING, LIN_LABEL_ENDING };

/* blank, label: natural logarithms of the sums that end before the sequence, in blank and in the label before it. */
void lin_sums_begin(lin_sums *sums, double blank, double label);

/* p [V]: the row's probabilities divided by the largest one. Returns the natural logarithm of that. */
double lin_sums_scaled(const float *row, int V, double *p);

/* Adds a row: its scaled probabilities p and their logarithm `most` (lin_sums_scaled); `left` rows follow it. */
void lin_sums_row(lin_sums *sums, const double *p, double most, int64_t left);

/* After all rows: natural logarithms of the sums that end in blank after the last phone, and in it. */
void lin_sums_ends(const lin_sums *sums, double ends[2]);

#endif
