/*
 * glm.h - words that count as the same: NIST's global map (GLM) of contractions, spellings and compounds, for word error rates.
 *
 *   ;; a comment, also at the end of a line; lines that begin with "*" are not read
 *   colour => color / [ ] __ [ ]         the context is optional, and can only be these blanks
 *   any one => anyone
 *   it's => { it's / it is / it has }    alternatives, as in a TRN: the one with the fewest errors counts
 *   uh => (uh)                           an optional word
 *   %breath =>                           nothing
 *
 * The rules are applied to the words of reference and hypothesis alike, from left to right. At each word the first rule of the
 * file that matches is applied, and its result is not matched again, as NIST's rfilter1 does under csrfilt.sh, which puts a blank
 * before each line. Optional words and words within alternatives of the transcript stay as they are.
 *
 *   lin_glm_parse(text, n, "english.glm", &options, &tokens, &glm, &err);    // tokens: those of the transcripts
 *   lin_glm_apply(&glm, &ref, &err);
 *   lin_glm_free(&glm);
 *
 * Threads: immutable once made.
 */
#ifndef LIN_SCORE_GLM_H
#define LIN_SCORE_GLM_H

#include "train/score/trn.h"

typedef struct lin_glm {
    lin_trn from, to;  /* utterance i is the words of rule i */
    int *first, *next; /* [n] the first rule that begins with each token, [from.n] the next one that does so; -1: none */
    int n;             /* tokens that the rules have */
} lin_glm;

/*
 * Reads n bytes of a file; messages call it name. Words are numbered in `tokens`. options: case_sensitive
 * and normalize count, those of the transcripts. LIN_FORMAT with name:line: no "=>", nothing
 * before it, braces that do not match; LIN_UNSUPPORTED: a context that is not "[ ] __ [ ]"; LIN_NO_MEMORY. On failure glm is
 * empty.
 */
lin_status lin_glm_parse(const char *text, size_t n, const char *name, const lin_trn_options *options, lin_symbols *tokens,
                         lin_glm *glm, lin_error *err);

/* Applies the rules to every utterance. trn->middles must not be used after it. LIN_NO_MEMORY; trn is then empty. */
lin_status lin_glm_apply(const lin_glm *glm, lin_trn *trn, lin_error *err);

void lin_glm_free(lin_glm *glm);

#endif
