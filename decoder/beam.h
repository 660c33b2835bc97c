/*
 * beam.h - CTC prefix beam search over phones, with a phone n-gram, as the frames come.
 *
 * Pipeline: log-probabilities [T, V], blank at index 0 -> [this] -> decoder/path -> decoder/result.
 * Graves 2012, chapter 7.5; Hannun et al. 2014 (arXiv 1408.2873), algorithm 1: a prefix is a sequence of phones; its score is the sum
 * over all alignments that were followed, kept apart for those that end in blank and those that do not; a language model weighs
 * every phone that is added.
 *
 *   lin_beam_options o = lin_beam_options_default();
 *   lin_beam_create(V, lm, labels, &o, &beam, &err);                       // shared by all streams
 *   void *state = lin_alloc(lin_beam_bytes(beam), 1);
 *   lin_beam_reset(beam, state, 0);
 *   while (rows come) lin_beam_push(beam, state, context, logp, n, &settled, &err);
 *   lin_beam_nbest(beam, state, k, &tail, &err);                           // the k-th best from what is settled on
 *   lin_beam_finish(beam, state, context, &settled, &err);
 *
 * A phone is settled, and given out, once every prefix in the beam has it; it never changes after that. Any split of the same rows
 * into pushes gives the same phones, frames and scores to the bit. With a width of 1 and no language model it gives greedy's phones.
 *
 * The state is one flat block without pointers: copy it to fork a stream, write it to save one. push, nbest and finish allocate
 * nothing but the room of the caller's path. Threads: a beam is immutable and shared; one at a time per state.
 */
#ifndef LIN_DECODER_BEAM_H
#define LIN_DECODER_BEAM_H

#include <stddef.h>
#include <stdint.h>

#include "decoder/context.h"
#include "decoder/path.h"
#include "kernels/status.h"
#include "lexicon/ngram.h"

typedef struct lin_beam_options {
    int width;          /* prefixes kept, 1 to LIN_BEAM_MAX */
    double score;       /* prefixes so much worse than the best (natural logarithm) are dropped; 0: none is */
    int labels;         /* only the most probable so many labels of a frame are added; 0: all */
    double blank;       /* frames whose blank is at least so probable only lengthen what is there; 0: no frame is skipped */
    double lm_weight;   /* on the language model's natural logarithm */
    double bonus;       /* for every phone, natural logarithm: against the language model's liking for short results */
    int longest;        /* phones that may be unsettled at most; beyond it the best prefix decides */
} lin_beam_options;

enum { LIN_BEAM_MAX = 1024 };

lin_beam_options lin_beam_options_default(void);

typedef struct lin_beam lin_beam;

/*
 * lm: over phones, may be NULL; it must outlive the beam. labels [V]: the language model's word for each label, -1: none (label 0 is
 * not looked at); NULL without a language model. LIN_INVALID with the name of the field for options out of range.
 */
lin_status lin_beam_create(int V, const lin_ngram *lm, const int *labels, const lin_beam_options *options, lin_beam **beam,
                           lin_error *err);
void lin_beam_destroy(lin_beam *beam); /* NULL is fine */

size_t lin_beam_bytes(const lin_beam *beam);

/* Begins a segment whose first row is frame `first_frame`. */
void lin_beam_reset(const lin_beam *beam, void *state, int64_t first_frame);

/*
 * Takes in logp [n_frames, V], natural logarithms, and appends what is settled to *settled. context: over labels, may be NULL, may
 * be another one at every call: then what was matched in the old one is forgotten. LIN_NUMERIC, naming the frame, for a NaN or a
 * row without a finite value; LIN_NO_MEMORY. On failure nothing changes.
 */
lin_status lin_beam_push(const lin_beam *beam, void *state, const lin_context *context, const float *logp, int n_frames,
                         lin_path *settled, lin_error *err);

/* The prefix number `which` (0: the best) as it stands, from what is settled on, replaces *tail, with its scores of the whole segment.
 * LIN_INVALID if there are no more; lin_beam_prefixes says how many. */
int lin_beam_prefixes(const lin_beam *beam, const void *state);
lin_status lin_beam_nbest(const lin_beam *beam, const void *state, int which, lin_path *tail, lin_error *err);

/* Ends the segment: the language model's end of sentence and unfinished phrases are weighed, the prefixes put in their final order
 * (nbest gives them until the next reset), and the rest of the best is appended to *settled unless that is NULL. Push again only after
 * a reset. */
lin_status lin_beam_finish(const lin_beam *beam, void *state, const lin_context *context, lin_path *settled, lin_error *err);

/* Whether bytes from a file can be a state of this beam: LIN_MISMATCH (of another beam: size, V, width, model), LIN_FORMAT (damaged). */
lin_status lin_beam_check(const lin_beam *beam, const void *state, size_t n, lin_error *err);

#endif
