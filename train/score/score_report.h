/*
 * score_report.h - writes a score as a table, alignments, JSON or HTML.
 *
 * Pipeline: train/score/score, train/score/score_compare -> [this] -> a file.
 *
 *   lin_score_report report = {.score = score, .measure = "PER", .intervals = &intervals, .confusions = 10};
 *   lin_score_text(&report, &buffer, &err);
 *   lin_score_html(&report, &buffer, &err);
 *
 * All append to `out` and fail only with LIN_NO_MEMORY. Threads: no shared state.
 */
#ifndef LIN_SCORE_SCORE_REPORT_H
#define LIN_SCORE_SCORE_REPORT_H

#include <math.h>

#include "base/buffer.h"
#include "train/score/score.h"
#include "train/score/score_compare.h"

typedef struct lin_score_report {
    const lin_score *score;
    const char *measure;                    /* what the rate is called: PER, WER, ER */
    const char *ref_name, *hyp_name;        /* of the files, for html; NULL: not named */
    const lin_score_intervals *intervals;   /* NULL: none */
    const lin_score_comparison *comparison; /* NULL: none */
    const char *other_name;                 /* of the second system */
    int keep_case;                          /* alignments: tokens as they are, else errors in capitals as sclite prints them */
    int utterances;                         /* text, json: one row for each */
    int alignments;                         /* text: each of them */
    int confusions;                         /* how many of a kind to list; text: 0 for no lists */
} lin_score_report;

/* The lists and alignments asked for, a table of the speakers, and as the last line "PER 12.34 %: 5 substitutions, ...". */
lin_status lin_score_text(const lin_score_report *report, lin_buffer *out, lin_error *err);

/* One JSON object; docs/scoring.md names its fields. */
lin_status lin_score_json(const lin_score_report *report, lin_buffer *out, lin_error *err);

/* One self-contained page of HTML: totals, speakers, a confusion matrix, the worst utterances. No scripts. */
lin_status lin_score_html(const lin_score_report *report, lin_buffer *out, lin_error *err);

/* One utterance as sclite's "-o pralign" prints it: id, counts, and the lines REF, HYP and Eval. */
void lin_score_align(const lin_score_report *report, int utterance, lin_buffer *out);

/*
 * The name of the rate, by the reference's tokens as they were counted: "PER" if nine of ten are phones (CMUdict's names, the
 * IPA, TIMIT's; at least one with more than one letter), "WER" if more than half are other tokens of three or more letters, else
 * "ER" (error rate).
 */
const char *lin_score_measure(const lin_score *score, const lin_phones *phones);

/* ---- what the reports share ------------------------------------------------------------------------------------------------ */

static inline double lin_score_percent(long long part, long long whole)
{
    return whole ? 100.0 * (double)part / (double)whole : (double)NAN;
}

/* %s text as it is, %h escaped for HTML, %d a long long, %0 .. %4 a double with so many digits, NaN as "-"; '%' before anything
 * else stands for itself. */
void lin_score_put(lin_buffer *out, const char *form, ...);

/* "95 % interval " and the intervals, each by a form of its bounds in per cent, the number of its units, and what these are. */
void lin_score_put_intervals(lin_buffer *out, const char *form, const lin_bootstrap_interval *utterances,
                             const lin_bootstrap_interval *speakers);

/* Two tokens that were confused, sorted by falling count of both directions together. Released with lin_free. */
typedef struct lin_confused_pair {
    int a, b; /* a was recognised as b more often than b as a, or as often */
    long long a_as_b, b_as_a;
} lin_confused_pair;

lin_status lin_score_confused_pairs(const lin_score *score, lin_confused_pair **pairs, int *n, lin_error *err);

/* How often each token was recognised as each: at most `max` tokens, those with the most errors, phones in the order of the
 * textbooks and all others in that of the alphabet. */
typedef struct lin_score_matrix {
    int n, left_out;   /* tokens shown, and not */
    int *tokens;       /* [n] */
    long long *counts; /* [n + 1][n + 1]: row reference, column hypothesis; last row insertions, last column deletions */
} lin_score_matrix;

lin_status lin_score_matrix_make(const lin_score *score, int max, lin_score_matrix *matrix, lin_error *err);
void lin_score_matrix_free(lin_score_matrix *matrix);

/* Fills utterances [most] with those that have the most errors, worst first; returns how many have any. */
int lin_score_worst(const lin_score *score, int *utterances, int most);

#endif
