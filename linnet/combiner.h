/*
 * combiner.h - the hypotheses of an utterance by the sound of two networks: a second one, with errors of its own, judges too.
 *
 * Pipeline: the frames of an utterance -> [this: linnet/second_network, decoder/rows] -> linnet/decoding, at the utterance's end.
 * The acoustic score of each hypothesis becomes a mean of both networks', weights times natural logarithms of the sum over all
 * alignments of its phones:
 *
 *   acoustic = (1 - weight) acoustic + weight second
 *
 * Rows of the two need not be at the same times: whole utterances are compared.
 *
 *   lin_combiner_create(&first, &decoding, 1, &combiner, &err);
 *   lin_combiner_begin(combiner);                               // an utterance
 *   lin_combiner_push(combiner, frames, n, &err);               // all its frames
 *   lin_combiner_score(combiner, &settled, &tail, &err);        // each hypothesis
 *   lin_combiner_destroy(combiner);
 *
 * Memory grows with the longest utterance: 11 KB for each second of it with 41 outputs. Threads: one at a time per object.
 */
#ifndef LIN_LINNET_COMBINER_H
#define LIN_LINNET_COMBINER_H

#include "decoder/result.h"
#include "linnet/recognizer.h"

typedef struct lin_combiner lin_combiner;

/* With decoding->combined, as lin_second_network_create; its rows get the blank penalty of the decoding. Without, or with a
 * weight of 0: *combiner is NULL. */
lin_status lin_combiner_create(const lin_recognizer *first, const lin_decoding *decoding, int n_threads, lin_combiner **combiner,
                               lin_error *err);
void lin_combiner_destroy(lin_combiner *combiner); /* NULL is fine */

/* Both do nothing with NULL. */
void lin_combiner_begin(lin_combiner *combiner);
/* Frames [n, D] as in lin_second_network_run; where an utterance comes in pieces the network hears each alone. */
lin_status lin_combiner_push(lin_combiner *combiner, const float *frames, int n, lin_error *err);

/* Changes acoustic and score of the rest of a hypothesis, the phones behind `settled`. One that the second network
 * excludes, such as more phones than rows, falls behind all others; no rows, or rows that are no numbers, change nothing.
 * LIN_NO_MEMORY. */
lin_status lin_combiner_score(lin_combiner *combiner, const lin_path *settled, lin_path *tail, lin_error *err);

#endif
