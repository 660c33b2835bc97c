/*
 * second_network.h - another network over the frames of utterances that a recogniser has made for its own.
 *
 * Pipeline: the frames of an utterance -> [this: model/encoder] -> linnet/second_pass, linnet/combiner.
 *
 *   lin_second_network_create(&first, &second, 1, language, &network, &err);
 *   lin_second_network_run(network, frames, n, rows_out, context, &err);     // as often as utterances end
 *   lin_second_network_destroy(network);
 *
 * Both models have the same features, phones and frames of a step. Their hops may differ: frames between those of the first are
 * interpolated. Rows do not depend on what came before the utterance. Threads: one at a time per object.
 */
#ifndef LIN_LINNET_SECOND_NETWORK_H
#define LIN_LINNET_SECOND_NETWORK_H

#include "linnet/recognizer.h"

typedef struct lin_second_network lin_second_network;

/*
 * second must outlive the object. n_threads work together; 0: one per core. language: as in lin_worker_search. LIN_MISMATCH if
 * the models differ in features other than the hop, phones or frames of a step; LIN_UNSUPPORTED for a model that is
 * normalised by speaker. On failure *network is NULL.
 */
lin_status lin_second_network_create(const lin_recognizer *first, const lin_recognizer *second, int n_threads, int language,
                                     lin_second_network **network, lin_error *err);
/* NULL is allowed. */
void lin_second_network_destroy(lin_second_network *network);

/* Takes rows [n, V] of log-probabilities. If it does not return LIN_OK the run ends with its status. */
typedef lin_status (*lin_rows_taker)(void *context, const float *logp, int n, lin_error *err);

/* frames [n, D], unnormalised, at the first model's hop, of one utterance; one that is longer than models are trained on is cut
 * at pauses (lin_front_next_utterance). */
lin_status lin_second_network_run(lin_second_network *network, const float *frames, int n, lin_rows_taker take, void *context,
                                  lin_error *err);

#endif
