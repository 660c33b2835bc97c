/*
 * sums.h - the sum over all alignments of a sequence of phones with rows of probabilities, row by row, in double precision.
 *
 * Pipeline: sequences of a search -> [this] -> decoder/words_nbest, linnet/combiner.
 * Graves et al. 2006, "Connectionist Temporal Classification", eq. 6-8, in place; each row is scaled by its largest sum.
 *
 *   lin_sums q = {.labels = labels, .sums = room, .n = n};
 *   lin_sums_begin(&q, 0, -INFINITY);
 *   for (t < T) {
 *       const double most = lin_sums_scaled(row[t], V, p);                 // finite, or the row is of no use
 *       lin_sums_row(&q, p, most, T - 1 - t);
 *   }
 *   lin_sums_ends(&q, ends);                                              // log P = log(exp(ends[0]) + exp(ends[1]))
 *
 * Sums that are smaller than a row's largest one by more than 1e-200 are left out: what a row costs does not grow with the length
 * of the sequence. Threads: one at a time per sequence.
 */
#ifndef LIN_DECODER_SUMS_H
#define LIN_DECODER_SUMS_H

#include <stdint.h>

/* State 0 is the label before the sequence, 1 the blank after it, 2 i phone i, 2 i + 1 the blank after that. */
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

/* A row of which p are the scaled probabilities and `most` is the logarithm, `left` rows before the last one. */
void lin_sums_row(lin_sums *sums, const double *p, double most, int64_t left);

/* After all rows: natural logarithms of the sums that end in blank after the last phone, and in it. */
void lin_sums_ends(const lin_sums *sums, double ends[2]);

#endif
