/*
 * score.h - error rates of a set of utterances: substitutions, deletions, insertions per utterance, per speaker, per token and
 * overall, and how each utterance was aligned.
 *
 * Pipeline: train/score/trn (reference, hypothesis) -> train/score/edit -> [this]
 * -> train/score/score_compare (intervals, two systems) -> train/score/score_report (a table, JSON, HTML, alignments).
 * The counts are sclite's.
 *
 *   lin_score_files("ref.trn", "hyp.trn", NULL, &score, &err);
 *   lin_score_report report = {.score = score, .measure = "PER"};
 *   lin_score_text(&report, &buffer, &err);
 *   lin_buffer_write(&buffer, stdout, "standard output", &err);
 *   lin_score_destroy(score);
 *
 * Speakers come from a table of them, or from the utterance ids as in "sclite -i spu_id" (see lin_trn_speaker). A rate is
 * (S + D + I) / N, where N is the number of tokens of the reference, of alternatives those that were chosen, with optional words;
 * for N = 0 there is none (NaN), whatever the errors. Times, if a format has them, are only used to sort its tokens, and to find
 * the words of each line of an STM.
 * Threads: immutable once made, shared by all.
 */
#ifndef LIN_SCORE_SCORE_H
#define LIN_SCORE_SCORE_H

#include <stddef.h>

#include "base/status.h"
#include "train/score/edit.h"
#include "train/score/trn.h"

typedef struct lin_score_options {
    lin_trn_options read;     /* of the reference, and of the hypothesis but for its format; normalize: without phones and map */
    lin_trn_format hyp_format;
    const char *glm_path;     /* words that count as the same, train/score/glm.h; NULL: none */
    const char *utt2spk_path; /* Kaldi's utt2spk, one speaker for every utterance of the reference; NULL: from the ids */
} lin_score_options;

typedef struct lin_score_counts {
    long long utterances, wrong; /* wrong: with at least one error */
    long long n_ref, correct, sub, del, ins;
} lin_score_counts;

/* The counts of a token. */
typedef struct lin_score_token_counts {
    long long n_ref, correct, sub, del; /* n_ref = correct + sub + del */
    long long ins, put;                 /* times it was inserted, and substituted for another */
} lin_score_token_counts;

/* A kind of error. ref -1 for an insertion, hyp -1 for a deletion. */
typedef struct lin_score_confusion {
    int ref, hyp;
    long long count;
} lin_score_confusion;

/* Read only. Speakers are in the order of their first utterance in the reference, utterances in that of the reference, tokens in
 * that of their first appearance. Names are in lower case unless case_sensitive. */
typedef struct lin_score {
    lin_symbols tokens;
    lin_trn ref, hyp;
    lin_symbols speakers;
    lin_symbols unmapped;                               /* distinct tokens of both sides that the phone map does not have */
    long long n_deleted;                                /* tokens of both sides that it deleted */
    lin_score_counts total;
    lin_score_counts *by_speaker;                       /* [speakers.n] */
    lin_score_counts *by_utterance;                     /* [ref.n] */
    int *speaker_of;                                    /* [ref.n] */
    lin_edit_pair *pairs;                               /* the alignments of all utterances */
    size_t n_pairs, *first_pair;                        /* [ref.n + 1] */
    lin_score_token_counts *by_token;                   /* [tokens.n] */
    lin_score_confusion *confusions;                    /* kinds of errors, sorted by falling count */
    size_t n_confusions, n_folded, confusions_capacity; /* n_folded: the first so many are distinct */
    int n_without_line;                                 /* utterances that a CTM hypothesis does not mention */
} lin_score;

/*
 * Reads two files (of the same or different formats) and scores them. `options` may be NULL. Every utterance must be in both:
 * otherwise LIN_MISMATCH with the number of those missing on each side and the first ids. (sclite silently drops references
 * without a hypothesis, which lowers the error rate.) In CTM an empty result and a missing one are the same: utterances without a
 * line count as all deleted, and the report gives their number. With an STM as the reference see trn.h for names and
 * times.
 */
lin_status lin_score_files(const char *ref_path, const char *hyp_path, const lin_score_options *options, lin_score **score,
                           lin_error *err);

/* Scores texts in memory; messages use the names. */
lin_status lin_score_texts(const char *ref, size_t n_ref, const char *ref_name, const char *hyp, size_t n_hyp,
                           const char *hyp_name, const lin_score_options *options, lin_score **score, lin_error *err);
void lin_score_destroy(lin_score *score); /* NULL is fine */

double lin_score_rate(const lin_score_counts *counts); /* 0.25 for 25 %; NaN: the reference has no tokens */

/* Names, owned by the score; NULL for token -1. */
static inline const char *lin_score_speaker(const lin_score *s, int index) { return lin_symbols_text(&s->speakers, index); }
static inline const char *lin_score_utterance(const lin_score *s, int index) { return lin_symbols_text(&s->ref.ids, index); }
const char *lin_score_token(const lin_score *score, int token);

/* 1 if the utterance has alternatives or optional words, so that the words of the reference depend on the hypothesis. */
int lin_score_has_choices(const lin_score *score, int utterance);

/* The alignment of an utterance, from first to last. */
const lin_edit_pair *lin_score_alignment(const lin_score *score, int utterance, int *n);

#endif
