/*
 * encoder.h - a model prepared to run: features in, log-probabilities out.
 *
 * Pipeline: frontend -> [this, or stream.h for live sound] -> decoder.
 *
 *   lin_encoder *encoder;  lin_encoder_create(model, ops, &encoder, &err);       // packs the weights; shared by all threads
 *   lin_worker *worker;    lin_worker_create(encoder, 1, &worker, &err);         // scratch of one thread
 *   lin_encoder_run(worker, features, in_offsets, B, logp, &err);
 *   lin_worker_destroy(worker); lin_encoder_destroy(encoder);
 *
 * An encoder is immutable. A worker belongs to one thread at a time; any number of streams may share it one after the other.
 */
#ifndef LIN_MODEL_ENCODER_H
#define LIN_MODEL_ENCODER_H

#include "model/model.h"
#include "model/network.h"

typedef struct lin_encoder lin_encoder;
typedef struct lin_worker lin_worker;

/* The model must outlive the encoder. */
lin_status lin_encoder_create(const lin_model *model, const lin_ops *ops, lin_encoder **encoder, lin_error *err);
void lin_encoder_destroy(lin_encoder *encoder);

/* n_threads work together on each call: use 1 if many workers run in parallel, 0 for one per core. */
lin_status lin_worker_create(const lin_encoder *encoder, int n_threads, lin_worker **worker, lin_error *err);
void lin_worker_destroy(lin_worker *worker);
/* 1: from now on the log-probabilities are those of the network's second output, if it has one (lin_config.search), for searches
 * with a language model; 0, as in the beginning: of the first. */
void lin_worker_search(lin_worker *worker, int on);
int lin_worker_threads(const lin_worker *worker);

/*
 * Whole utterances. features [in_offsets[B], D] log-mel energies, unnormalised (but already normalised by speaker if
 * model->speaker_norm); utterance b has frames in_offsets[b] .. in_offsets[b+1]-1; logp [sum of ceil(frames_b / stack), V]
 * receives the utterances' rows, concatenated; the caller owns it.
 * A causal model processes an utterance in parts and needs constant memory. A bidirectional one needs memory for the longest
 * utterance: LIN_NO_MEMORY if there is not enough.
 */
lin_status lin_encoder_run(lin_worker *worker, const float *features, const int *in_offsets, int B, float *logp, lin_error *err);

#endif
