/*
 * score_compare.h - confidence intervals of an error rate, and the comparison of two systems.
 *
 * Pipeline: train/score/score, one or two -> [this] -> train/score/score_report.
 *
 *   lin_score_bootstrap(score, &how, 0, &intervals, &err);             // how: train/score/bootstrap.h
 *   lin_score_compare(score, other, &how, &comparison, &err);
 *   lin_score_intervals_free(&intervals);
 *
 * Threads: no shared state.
 */
#ifndef LIN_SCORE_SCORE_COMPARE_H
#define LIN_SCORE_SCORE_COMPARE_H

#include "base/status.h"
#include "train/score/bootstrap.h"
#include "train/score/score.h"

/* Intervals of the total, by drawing utterances and by drawing speakers; on request also of each speaker, by drawing its
 * utterances. */
typedef struct lin_score_intervals {
    int resamples;
    uint64_t seed;
    lin_bootstrap_interval utterances, speakers;
    lin_bootstrap_interval *by_speaker; /* [speakers.n of the score]; NULL: not asked for */
} lin_score_intervals;

lin_status lin_score_bootstrap(const lin_score *score, const lin_bootstrap_options *options, int by_speaker,
                               lin_score_intervals *intervals, lin_error *err);
void lin_score_intervals_free(lin_score_intervals *intervals); /* {0} is fine */

/*
 * The matched-pairs test over segments (Gillick and Cox 1989; MAPSSWE in NIST's sc_stats). An utterance is cut wherever both
 * systems have two consecutive reference tokens right, with no insertion between; pieces with an error of either system are the
 * segments, whose differences in errors are assumed to be independent. z is the mean difference over its standard error.
 */
typedef struct lin_matched_pairs {
    int segments;
    double mean, deviation; /* of errors of the first minus errors of the second; deviation over segments - 1 */
    double z, p;            /* z: infinite if all differences are equal, and not 0; p: two-sided, from the normal distribution */
} lin_matched_pairs;

typedef struct lin_score_comparison {
    lin_score_counts other; /* the total of the second system */
    double difference;      /* rate of the first minus rate of the second: below 0 if the first is better */
    lin_difference utterances, speakers;
    lin_matched_pairs segments;
    long long better, worse; /* utterances in which the first has fewer, more errors than the second */
} lin_score_comparison;

/* Two systems on the same reference. LIN_MISMATCH, naming an utterance, if the references differ. */
lin_status lin_score_compare(const lin_score *score, const lin_score *other, const lin_bootstrap_options *options,
                             lin_score_comparison *comparison, lin_error *err);

#endif
