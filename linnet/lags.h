/*
 * lags.h - delays counted on a logarithmic scale, 32 counts for each doubling, and their quantiles: from a microsecond to
 * minutes, to 2 %, in 7 KB.
 *
 *   lin_lags_add(&lags, 0.0021);
 *   p99 = lin_lags_quantile(&lags, 0.99);              // seconds
 *
 * Threads: one at a time.
 */
#ifndef LIN_LINNET_LAGS_H
#define LIN_LINNET_LAGS_H

enum { LIN_LAGS = 32 * 28 };

typedef struct lin_lags {
    long long n, counts[LIN_LAGS];
    double most_s;
} lin_lags;

/* Negative ones count as none. */
void lin_lags_add(lin_lags *lags, double seconds);

/* Adds others to these. */
void lin_lags_merge(lin_lags *lags, const lin_lags *others);

/* The delay that the share q of all do not exceed, at most 2 % too large; 0 where there is none. */
double lin_lags_quantile(const lin_lags *lags, double q);

#endif
