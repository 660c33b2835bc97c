/*
 * beam.h - streaming CTC prefix beam search over phones, with a phone n-gram.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/result.
 * Graves 2012, chapter 7.5; Hannun et al. 2014 (arXiv 1408.2873), algorithm 1: a hypothesis is a prefix, a sequence of phones;
 * its acoustic score is the sum over all alignments that were followed, separately for those that end in blank and those that end
 * in the last phone; a language model adds a weight for every phone. The best alignment of each hypothesis gives the times.
 *
 *   lin_beam_options o = lin_beam_options_default();
 *   lin_beam_create(V, lm, labels, &o, &beam, &err);                       // shared by all streams
 *   void *state = lin_alloc(lin_beam_bytes(beam), 1);
 *   lin_beam_reset(beam, state, 0);
 *   while (rows arrive) lin_beam_push(beam, state, context, logp, n, &settled, &err);
 *   lin_beam_nbest(beam, state, k, &tail, &err);                           // the k-th best, after the settled part
 *   lin_beam_finish(beam, state, &settled, &err);
 *
 * A phone is settled, and given out, once its run is over and the best alignments of all hypotheses have it with the same frames;
 * it does not change afterwards. Any split of the same rows into pushes gives the same phones, frames and scores bit for bit.
 * With a width of 1 only the better ending (blank or label) of the one hypothesis is kept, which is best-path decoding: without a
 * language model it gives greedy's phones, frames and confidences. Of hypotheses with the same score, the one whose parent was
 * ranked higher wins, then the one without a new phone, then the lower label.
 *
 * Sums are linear, in double, and divided by a power of two after every frame, which is exact: their precision does not depend on
 * the length of the stream. The state is one flat block without pointers: copy it to fork a stream, write it to save one. Its
 * size depends only on the options. push, nbest and finish allocate only memory of the caller's path. Threads: a beam is
 * immutable and shared; one thread at a time per state.
 */
#ifndef LIN_DECODER_BEAM_H
#define LIN_DECODER_BEAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "decoder/context.h"
#include "decoder/result.h"
#include "lexicon/ngram.h"

typedef struct lin_beam_options {
    int width;        /* hypotheses kept, 1 to LIN_BEAM_MAX */
    double score;     /* hypotheses, and their endings, that are worse than the best by more than this (natural logarithm) are
                       * dropped; 0: none (up to 600, the limit of the range of double) */
    int labels;       /* only this many most probable labels of a frame are added to a prefix, unless that leads to another prefix
                       * of the beam; 0: all */
    double blank;     /* frames whose blank probability is at least this are skipped: every alignment continues with blank and
                       * nothing else is followed, so at most a share of 1 - blank is left out. 0: no frame is skipped */
    double lm_weight; /* on the language model's natural logarithm */
    double bonus;     /* for every phone, natural logarithm: balances the language model's preference for short results */
    int longest;      /* largest number of unsettled phones; beyond it the best hypothesis decides on the oldest. An ambiguous
                       * phone is unsettled while both readings are in the beam, and later rows affect it no further than the
                       * n-gram's context reaches: a small value loses nothing, gives phones out soon and leaves places in the
                       * beam for new ones. For n-best lists of whole segments it must be at least their number of phones,
                       * because alternatives share the settled part */
} lin_beam_options;

enum { LIN_BEAM_MAX = 1024 };

/* A good bonus for a phone 3-gram to 6-gram at the default lm_weight, if there is a language model. */
#define LIN_BEAM_LM_BONUS 2.0

/* width 16, score 12, labels 20, blank 0.999, lm_weight 0.7, bonus 0, longest 12. */
lin_beam_options lin_beam_options_default(void);

typedef struct lin_beam lin_beam;

/*
 * lm: over phones, may be NULL; must outlive the beam. labels [V]: the language model's word for each label, -1: none (label 0
 * is ignored), copied; NULL without a language model. A label with probability 0 in the model is never added. The weight of one
 * phone (language model, bonus, context) is limited to 300 either way. LIN_INVALID with the name of the field for options out of
 * range, or for a word that is not in the model; LIN_NO_MEMORY. On failure *beam is NULL.
 */
lin_status lin_beam_create(int V, const lin_ngram *lm, const int *labels, const lin_beam_options *options, lin_beam **beam,
                           lin_error *err);
void lin_beam_destroy(lin_beam *beam); /* NULL is fine */

/* Size of a state in bytes; it must begin at a multiple of 8 (memory of lin_alloc does). */
size_t lin_beam_bytes(const lin_beam *beam);

/* A 64-bit hash of all that its states depend on: outputs, options, language model. */
uint64_t lin_beam_fingerprint(const lin_beam *beam);

/* Begins a segment whose first row is frame `first_frame`. */
void lin_beam_reset(const lin_beam *beam, void *state, int64_t first_frame);

/*
 * Processes logp [n_frames, V], natural logarithms (if they are not normalised, the confidences have no meaning), and appends the
 * phones that are now settled to *settled, whose scores do not change. It reserves longest + n_frames phones there. context: over
 * labels, may be NULL, and may change at every call: then matches of the old one are dropped, and the pending bonuses of its
 * unfinished phrases are taken back. A frame in which no hypothesis can continue counts as blank. LIN_NUMERIC, naming the frame,
 * for a NaN or a row whose largest value is infinite; LIN_NO_MEMORY; LIN_INVALID after finish. On failure nothing changes.
 */
lin_status lin_beam_push(const lin_beam *beam, void *state, const lin_context *context, const float *logp, int n_frames,
                         lin_path *settled, lin_error *err);

/* Replaces *tail by the provisional phones, after the settled ones, of hypothesis `which` (0: the best), with its scores of the
 * whole segment. LIN_INVALID if there are fewer; lin_beam_hypotheses returns their number. Hypotheses are distinct sequences of
 * phones. */
int lin_beam_hypotheses(const lin_beam *beam, const void *state);
lin_status lin_beam_nbest(const lin_beam *beam, const void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment: adds the language model's end of sentence, takes back pending bonuses, sorts the hypotheses finally (nbest
 * gives them until the next reset), and appends the rest of the best, with its scores of the whole segment, to *settled unless
 * that is NULL. Until the next reset, push and finish return LIN_INVALID. */
lin_status lin_beam_finish(const lin_beam *beam, void *state, lin_path *settled, lin_error *err);

/* Checks that bytes from a file are a state of this beam: LIN_MISMATCH (another beam: size, options, language model), LIN_FORMAT
 * (damaged), LIN_NO_MEMORY. A state that passes is safe to continue with. state begins at a multiple of 8. */
lin_status lin_beam_check(const lin_beam *beam, const void *state, size_t n, lin_error *err);

#endif
