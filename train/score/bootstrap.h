/*
 * bootstrap.h - confidence intervals of an error rate, or of the difference of two, by resampling the utterances.
 *
 * Bisani and Ney 2004, "Bootstrap estimates for confidence intervals in ASR performance evaluation": of n units (utterances, or
 * speakers with all their utterances) n are drawn with replacement and their rate is computed; this is done B times. The interval
 * is between the quantiles 0.025 and 0.975 of the B rates: 95 % of them are in it. For two systems the same units are drawn. With
 * 1,000 or more units and at most an eighth as many kinds (units with the same counts), units of a kind are drawn together: their
 * numbers are multinomial, and are drawn exactly by one binomial draw per kind (Hormann 1993). The distribution is the same; the
 * random numbers differ.
 *
 *   lin_bootstrap_options how = {.resamples = 1000, .seed = 1, .random = lin_random_below};
 *   lin_bootstrap_rate(units, n, &how, &interval, &err);
 *   lin_bootstrap_difference(a, b, n, &how, &difference, &err);
 *
 * Threads: no shared state. The same options and units give the same numbers everywhere.
 */
#ifndef LIN_SCORE_BOOTSTRAP_H
#define LIN_SCORE_BOOTSTRAP_H

#include <stdint.h>

#include "base/status.h"

enum { LIN_BOOTSTRAP_MAX = 1000000 };

typedef struct lin_bootstrap_options {
    int resamples; /* B, 1 .. LIN_BOOTSTRAP_MAX */
    uint64_t seed;
    /* Number `counter` of the sequence `key`, in 0..n-1: lin_random_below of base/hash.h, or a test's own. */
    uint32_t (*random)(uint64_t key, uint64_t counter, uint32_t n);
} lin_bootstrap_options;

typedef struct lin_bootstrap_unit {
    long long errors, tokens;
} lin_bootstrap_unit;

typedef struct lin_bootstrap_interval {
    double low, high;
    int units; /* number of units; for a single unit the interval is the rate itself and has no meaning; 0: there is no rate */
} lin_bootstrap_interval;

/* errors / tokens of all units; NaN if there are no tokens, as in score.h. Resamples without tokens are drawn again. */
double lin_bootstrap_quotient(long long errors, long long tokens);

/* n >= 1 units. LIN_INVALID for options out of range, LIN_NO_MEMORY. */
lin_status lin_bootstrap_rate(const lin_bootstrap_unit *units, int n, const lin_bootstrap_options *options,
                              lin_bootstrap_interval *interval, lin_error *err);

/* Rate of a minus rate of b: below 0 if a is better. */
typedef struct lin_difference {
    lin_bootstrap_interval interval;
    double improvement; /* share of the resamples in which a is better than b: the probability of improvement */
    double equal;       /* share in which they are equal */
} lin_difference;

/* Unit i of a and of b is the same utterance or speaker. */
lin_status lin_bootstrap_difference(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n,
                                    const lin_bootstrap_options *options, lin_difference *difference, lin_error *err);

#endif
