/*
 * latency.h - delays counted in bins of a millisecond, in constant memory however many there are, and their quantiles.
 *
 *   lin_latency_add(&latency, 0.183);
 *   p99 = lin_latency_quantile(&latency, 0.99);        // seconds
 *
 * Threads: one at a time.
 */
#ifndef LIN_APP_LATENCY_H
#define LIN_APP_LATENCY_H

#include <stdint.h>

enum { LIN_LATENCY_BINS = 20000 }; /* 20 s; longer delays count as 20 s */

typedef struct lin_latency {
    int64_t n;
    double sum_s, largest_s, last_s;
    uint32_t bins[LIN_LATENCY_BINS + 1];
} lin_latency;

/* Negative ones count as 0. */
void lin_latency_add(lin_latency *latency, double seconds);

/* The smallest delay that a part q of all do not exceed, to a millisecond; 0 if there is none. */
double lin_latency_quantile(const lin_latency *latency, double q);

#endif
