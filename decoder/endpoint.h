/*
 * endpoint.h - detects the end of an utterance, row by row.
 *
 * Pipeline: log-probabilities [T, V] and the loudness of the sound -> [this] -> the caller ends a result and begins the next.
 * Three rules, in this order (after Kaldi's online endpointing):
 *   1  no speech so far and silence has lasted `before_s`
 *   2  there was speech and silence has lasted `after_s`
 *   3  the utterance has lasted `longest_s`
 * A row is silent if its blank is at least `blank` probable. While the sound is loud (`loud_db` or more above its recent
 * quietest) a run of blanks counts half: hesitation, not silence; so hum and music delay an endpoint but cannot prevent it.
 *
 *   lin_endpoint_options o = lin_endpoint_default();
 *   lin_endpoint_reset(&endpoint, &o, 0.03);
 *   if (lin_endpoint_push(&endpoint, logp, V, loudness_db)) ... the utterance ends after this row ...
 *
 * The state is a small flat struct without pointers: copy it to fork a stream, write it to save one. Nothing is allocated.
 * Threads: one at a time per state.
 */
#ifndef LIN_DECODER_ENDPOINT_H
#define LIN_DECODER_ENDPOINT_H

#include "base/status.h"

typedef struct lin_endpoint_options {
    double before_s;  /* rule 1; 0 switches a rule off */
    double after_s;   /* rule 2 */
    double longest_s; /* rule 3 */
    double blank;     /* probability, 0..1 */
    double loud_db;   /* above the quietest; 0: loudness does not count */
} lin_endpoint_options;

/* 5 s, 0.8 s, 30 s, 0.8, 20 dB. */
lin_endpoint_options lin_endpoint_default(void);

/* LIN_INVALID with the name of the field. */
lin_status lin_endpoint_check(const lin_endpoint_options *options, lin_error *err);

typedef enum lin_endpoint_rule {
    LIN_ENDPOINT_NONE,
    LIN_ENDPOINT_BEFORE,
    LIN_ENDPOINT_AFTER,
    LIN_ENDPOINT_LONGEST
} lin_endpoint_rule;

typedef struct lin_endpoint {
    lin_endpoint_options options;
    double row_s;
    double silent_s, spoken_s, length_s; /* of this utterance: the run of silence at its end, rows that were not silent, all
                                            rows */
    double quietest_db;                  /* recent quietest level: rises by 1 dB per second; INFINITY: none yet */
} lin_endpoint;

/* A new utterance begins, though no rule ended the last one; the quietest level stays. */
void lin_endpoint_begin_utterance(lin_endpoint *endpoint);

/* row_s: seconds from one row to the next. Clears everything, also the quietest level. */
void lin_endpoint_reset(lin_endpoint *endpoint, const lin_endpoint_options *options, double row_s);

/*
 * One row: logp [V], blank at index 0; loudness_db of the row's sound on any decibel scale, NAN if unknown. Returns the rule by
 * which the utterance ends after this row; a new one then begins.
 */
lin_endpoint_rule lin_endpoint_push(lin_endpoint *endpoint, const float *logp, double loudness_db);

#endif
