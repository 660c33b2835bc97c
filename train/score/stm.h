/*
 * stm.h - the reference of NIST's evaluations of long recordings: what was said by whom and when.
 *
 * Pipeline: train/score/trn (an STM, a CTM) -> [this] -> train/score/score.
 *
 *   file channel speaker start end [<labels>] P P P          ";;" begins a comment, also those that define labels and categories
 *
 * Each line is an utterance of its speaker, named as sclite names it, "speaker-000", "speaker-001", ...; a line whose text holds
 * IGNORE_TIME_SEGMENT_IN_SCORING is none: its time is not scored. The words of a CTM belong to the lines of the same file and
 * channel by their middles, as in sclite: a line gets all words up to its end that no line before it got, the last line also all
 * after it. Channel A is channel 1, B is 2.
 *
 *   lin_trn_parse(text, n, "ref.stm", NULL, &tokens, &stm, &err);
 *   lin_trn_options o = {.by_channel = 1};
 *   lin_trn_parse(result, m, "hyp.ctm", &o, &tokens, &ctm, &err);
 *   lin_stm_cut(&stm, "ref.stm", &ctm, "hyp.ctm", &err);            // ctm has the utterances of stm now
 *
 * Threads: no shared state.
 */
#ifndef LIN_SCORE_STM_H
#define LIN_SCORE_STM_H

#include "train/score/trn.h"

/* Replaces the utterances of a CTM, read by_channel, by those of an STM. Utterances of a file and channel that the CTM does not
 * have are not added. LIN_MISMATCH for a file and channel that the STM does not have. */
lin_status lin_stm_cut(const lin_trn *stm, const char *stm_name, lin_trn *ctm, const char *ctm_name, lin_error *err);

/*
 * Renames the utterances of an STM so that a hypothesis without times can be scored: to the name of the file, or "file-channel"
 * or "file_channel", if the hypothesis has only such names and no two lines have the same.
 * If nothing fits they keep sclite's names.
 */
lin_status lin_stm_rename(lin_trn *stm, const lin_trn *hyp, lin_error *err);

#endif
