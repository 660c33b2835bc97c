/*
 * bootstrap.h - how far an error rate, or the difference of two, could be another one had other utterances been recorded.
 *
 * Bisani and Ney 2004, "Bootstrap estimates for confidence intervals in ASR performance evaluation": n units (utterances, or
 * speakers with all they said) are drawn n times with replacement, the rate of what was drawn is noted, and this B times. The
 * interval lies between the (1 - level) / 2 and (1 + level) / 2 quantiles of the B rates. Of two systems the same units are drawn.
 * Of 1,000 units and more, if there are at most an eighth as many kinds of them, units of one kind (the same counts) are drawn
 * together: how often each kind comes is multinomial, drawn exactly by one binomial draw a kind (Hormann 1993). The distribution
 * is the same, the numbers drawn are others.
 *
 *   lin_bootstrap_options how = {.resamples = 1000, .seed = 1, .level = 0.95, .random = lin_random_below};
 *   lin_bootstrap_rate(units, n, &how, &interval, &err);
 *   lin_bootstrap_difference(a, b, n, &how, &difference, &err);
 *
 * Threads: no shared state. The same options and units give the same numbers everywhere.
 */
#ifndef LIN_DECODER_BOOTSTRAP_H
#define LIN_DECODER_BOOTSTRAP_H

#include <stdint.h>

#include "base/status.h"

enum { LIN_BOOTSTRAP_MAX = 1000000 };

typedef struct lin_bootstrap_options {
    int resamples; /* B, 1 .. LIN_BOOTSTRAP_MAX */
    uint64_t seed;
    double level; /* of the interval, above 0 and below 1 */
    /* Number `counter` of the sequence `key`, in 0..n-1: lin_random_below of base/rng.h, or a test's own. */
    uint32_t (*random)(uint64_t key, uint64_t counter, uint32_t n);
} lin_bootstrap_options;

typedef struct lin_bootstrap_unit {
    long long errors, tokens;
} lin_bootstrap_unit;

typedef struct lin_interval {
    double low, high;
    int units; /* drawn from; of a single one the interval is the rate itself and says nothing */
} lin_interval;

/* (errors / tokens) of all, 0 or 1 where there are no tokens, as in score.h. */
double lin_bootstrap_quotient(long long errors, long long tokens);

/* n >= 1 units. LIN_INVALID for options out of range, LIN_NO_MEMORY. */
lin_status lin_bootstrap_rate(const lin_bootstrap_unit *units, int n, const lin_bootstrap_options *options, lin_interval *interval,
                              lin_error *err);

/* Of the rate of a less the rate of b: below 0 where a is better. */
typedef struct lin_difference {
    lin_interval interval;
    double improvement; /* share of the resamples in which a is better than b: the probability of improvement */
    double equal;       /* share in which they are equal */
} lin_difference;

/* Unit i of a and of b is the same utterance or speaker. */
lin_status lin_bootstrap_difference(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n,
                                    const lin_bootstrap_options *options, lin_difference *difference, lin_error *err);

#endif
