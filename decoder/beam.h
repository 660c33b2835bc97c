/*
 * beam.h - CTC prefix beam search over phones, with a phone n-gram, as the frames come.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/path -> decoder/result.
 * Graves 2012, chapter 7.5; Hannun et al. 2014 (arXiv 1408.2873), algorithm 1: a prefix is a sequence of phones; its score is the
 * sum over all alignments that were followed, kept apart for those that end in blank and those that do not; a language model
 * weighs every phone that is added. Beside the sums the best alignment of each prefix is kept: it says when each phone was said.
 *
 *   lin_beam_options o = lin_beam_options_default();
 *   lin_beam_create(V, lm, labels, &o, &beam, &err);                       // shared by all streams
 *   void *state = lin_alloc(lin_beam_bytes(beam), 1);
 *   lin_beam_reset(beam, state, 0);
 *   while (rows come) lin_beam_push(beam, state, context, logp, n, &settled, &err);
 *   lin_beam_nbest(beam, state, k, &tail, &err);                           // the k-th best from what is settled on
 *   lin_beam_finish(beam, state, context, &settled, &err);
 *
 * A phone is settled, and given out, once its run is over and the best alignments of all prefixes in the beam have it with the same
 * frames; it never changes after that. Any split of the same rows into pushes gives the same phones, frames and scores to the bit.
 * With a width of 1 only the better end (blank or not) of the one prefix is kept, which is best-path decoding: without a language
 * model it gives greedy's phones, frames and confidences. Of prefixes that score the same, the one whose beginning was ahead before
 * wins, then the one that stays as it is, then the lower label.
 *
 * Sums are linear, in double, and divided by a power of two after every frame, which rounds nothing: they stay as exact after days
 * as after a second. The state is one flat block without pointers: copy it to fork a stream, write it to save one. Its size depends
 * on the options only. push, nbest and finish allocate nothing but the room of the caller's path. Threads: a beam is immutable and
 * shared; one at a time per state.
 */
#ifndef LIN_DECODER_BEAM_H
#define LIN_DECODER_BEAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/context.h"
#include "decoder/path.h"
#include "lexicon/ngram.h"

typedef struct lin_beam_options {
    int width;        /* prefixes kept, 1 to LIN_BEAM_MAX */
    double score;     /* prefixes, and ends of them, so much worse than the best (natural logarithm) are dropped; 0: none is (up to
                       * 600, where the range of double ends) */
    int labels;       /* only the most probable so many labels of a frame are added to a prefix, unless that leads to another prefix
                       * of the beam; 0: all */
    double blank;     /* frames whose blank is at least so probable are skipped: every alignment goes on with blank, nothing else
                       * is followed, so that at most a share of 1 - blank is left out. 0: no frame is skipped */
    double lm_weight; /* on the language model's natural logarithm */
    double bonus;     /* for every phone, natural logarithm: against the language model's liking for short results */
    int longest;      /* phones that may be unsettled at most; beyond it the best prefix decides on the oldest. A phone that sounds
                       * like two stays open as long as there is room for both, and no later row can tell more about it than an
                       * n-gram remembers: a small value loses nothing, gives phones out soon and leaves room for what is new. For
                       * n-best lists of whole segments it must be as large as these have phones, since alternatives share what
                       * is settled */
} lin_beam_options;

enum { LIN_BEAM_MAX = 1024 };

/* A bonus that suits a phone 3-gram to 6-gram at the default lm_weight, for where there is one. */
#define LIN_BEAM_LM_BONUS 2.0

/* width 16, score 12, labels 20, blank 0.999, lm_weight 0.6, bonus 0, longest 12. */
lin_beam_options lin_beam_options_default(void);

typedef struct lin_beam lin_beam;

/*
 * lm: over phones, may be NULL; must outlive the beam. labels [V]: the language model's word for each label, -1: none (label 0
 * is not looked at), copied; NULL without a language model. A label that the model gives a probability of 0 is never added. What
 * one phone weighs (language model, bonus, context) is held within 300 either way. LIN_INVALID with the name of the field for
 * options out of range, or for a word that the model has not; LIN_NO_MEMORY. On failure *beam is NULL.
 */
lin_status lin_beam_create(int V, const lin_ngram *lm, const int *labels, const lin_beam_options *options, lin_beam **beam,
                           lin_error *err);
void lin_beam_destroy(lin_beam *beam); /* NULL is fine */

/* Bytes of a state, which begins at a multiple of 8 (lin_alloc's memory does). */
size_t lin_beam_bytes(const lin_beam *beam);

/* 64 bits over all that its states depend on: outputs, options, language model. */
uint64_t lin_beam_fingerprint(const lin_beam *beam);

/* Begins a segment whose first row is frame `first_frame`. */
void lin_beam_reset(const lin_beam *beam, void *state, int64_t first_frame);

/*
 * Takes in logp [n_frames, V], natural logarithms (need not be normalised, but then the confidences mean nothing), and appends what
 * is settled to *settled, whose scores are left alone. It makes room there for longest + n_frames phones. context: over labels, may
 * be NULL, may be another one at every call: then what was matched in the old one is forgotten, and what its unfinished phrases had
 * earned is taken back. A frame that no prefix can go on with is taken as blank. LIN_NUMERIC, naming the frame, for a NaN or a row
 * whose largest value is infinite; LIN_NO_MEMORY; LIN_INVALID after finish. On failure nothing changes.
 */
lin_status lin_beam_push(const lin_beam *beam, void *state, const lin_context *context, const float *logp, int n_frames,
                         lin_path *settled, lin_error *err);

/* The prefix number `which` (0: the best) as it stands, from what is settled on, replaces *tail, with its scores of the whole
 * segment. LIN_INVALID if there are no more; lin_beam_prefixes says how many. Prefixes are distinct sequences of phones. */
int lin_beam_hypotheses(const lin_beam *beam, const void *state);
lin_status lin_beam_nbest(const lin_beam *beam, const void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment: the language model's end of sentence and unfinished phrases are weighed, the prefixes put in their final order
 * (nbest gives them until the next reset), and the rest of the best, with its scores of the whole segment, is appended to *settled
 * unless that is NULL. Push and finish again only after a reset: LIN_INVALID. */
lin_status lin_beam_finish(const lin_beam *beam, void *state, const lin_context *context, lin_path *settled, lin_error *err);

/* Whether bytes from a file can be a state of this beam: LIN_MISMATCH (of another beam: size, options, language model), LIN_FORMAT
 * (damaged: what passes is safe to go on with, whatever it holds), LIN_NO_MEMORY. state begins at a multiple of 8. */
lin_status lin_beam_check(const lin_beam *beam, const void *state, size_t n, lin_error *err);

#endif
