/*
 * encoder.h - a model prepared to run: features in, log-probabilities out.
 *
 * Pipeline: frontend -> [this, or streams.h for live sound] -> decoder.
 *
 *   lin_encoder *encoder;  lin_encoder_create(model, ops, &encoder, &err);       // packs the weights; shared by all threads
 *   lin_worker *worker;    lin_worker_create(encoder, 1, &worker, &err);         // scratch of one thread
 *   lin_encoder_run(worker, features, in_offsets, B, logp, &err);
 *   lin_worker_destroy(worker); lin_encoder_destroy(encoder);
 *
 * An encoder is immutable. A worker belongs to one thread at a time.
 */
#ifndef LIN_MODEL_ENCODER_H
#define LIN_MODEL_ENCODER_H

#include "base/pool.h"
#include "model/model.h"
#include "model/network.h"

enum { LIN_HOST_ROWS = 512 };          /* most rows of a pass on a CPU */
enum { LIN_WORKER_UTTERANCES = 128 };  /* most utterances of a pass */

typedef struct lin_encoder {
    const lin_model *model;
    const lin_ops *ops;
    lin_exec *exec; /* the exec that packed the weights, which are in its memory */
    lin_weights *weights;
    const float *mean, *istd; /* in the backend's memory: the model's own arrays, or copies */
    float *copies;            /* of the weights, then of these two; NULL on the host */
    size_t state_count;
    int pass_rows;
} lin_encoder;

/* Several threads that process one utterance of a causal network as a wave through the layers (lin_network_forward_wave), each
 * with its own exec. */
typedef struct lin_wave {
    lin_pool *pool;   /* NULL: one thread, or a network that has no wave */
    lin_exec **execs; /* [lin_pool_threads(pool)] */
} lin_wave;

typedef struct lin_worker {
    const lin_encoder *encoder;
    lin_exec *exec;
    lin_activations *activations;
    /* in the backend's memory; on a CPU only the state of one long utterance */
    float *state, *features, *logp;
    float **states; /* [1]: the address of state */
    int *offsets;   /* [2, LIN_WORKER_UTTERANCES + 1] */
    lin_wave wave;
    /* 1: the log-probabilities are those of the network's second output, if it has one (lin_config.search), for searches with a
     * language model; 0, the default: of the first. Set by the owner. */
    int search;
} lin_worker;

/* The model must outlive the encoder. */
lin_status lin_encoder_create(const lin_model *model, const lin_ops *ops, lin_encoder **encoder, lin_error *err);
void lin_encoder_destroy(lin_encoder *encoder);

/* n_threads work together on each call: use 1 if many workers run in parallel, 0 for one per core. */
lin_status lin_worker_create(const lin_encoder *encoder, int n_threads, lin_worker **worker, lin_error *err);
void lin_worker_destroy(lin_worker *worker);

/*
 * Whole utterances. features [in_offsets[B], D] log-mel energies, unnormalised (but already normalised by speaker if
 * model->speaker_norm); utterance b has frames in_offsets[b] .. in_offsets[b+1]-1; logp [sum of ceil(frames_b / stack), V]
 * receives the utterances' rows, concatenated; the caller owns it.
 * A causal model processes an utterance in parts and needs constant memory. A bidirectional one needs memory for the longest
 * utterance: LIN_NO_MEMORY if there is not enough.
 */
lin_status lin_encoder_run(lin_worker *worker, const float *features, const int *in_offsets, int B, float *logp, lin_error *err);

/*
 * Runs utterances b of features [in[B], D] through the network; logp [out[B], V]. All in host memory except states, which is NULL
 * or [B] pointers as in lin_batch. out[B] is at most the rows that the activations have room for.
 */
lin_status lin_worker_pass(lin_worker *worker, const float *features, const int *in, const int *out, int B, float *const *states,
                           float *logp, lin_error *err);

/* The fewest rows of a chunk of a wave: with fewer, loading the weights costs too much beside the arithmetic. */
enum { LIN_WAVE_ROWS = 24 };

/* wave must be zeroed before; it stays empty if the network has no wave. On failure lin_wave_destroy is allowed. */
lin_status lin_wave_create(const lin_encoder *encoder, int n_threads, lin_wave *wave, lin_error *err);
void lin_wave_destroy(lin_wave *wave, const lin_encoder *encoder);
/* lin_network_forward, as a wave if the batch is one utterance with a state and of at least 2 * LIN_WAVE_ROWS rows. */
void lin_wave_forward(const lin_wave *wave, const lin_weights *weights, lin_activations *activations, lin_exec *exec,
                      const lin_batch *batch, float *logp);

/* ---- graphs: work that repeats in a few shapes, recorded once per shape, then replayed as one launch ----------------------- */

/*
 *   lin_graphs graphs = {0};
 *   lin_graphs_run(&graphs, ops, exec, (const int[LIN_GRAPH_KEY]){rows, B}, compute, context);
 *   lin_graphs_free(&graphs, ops);
 *
 * compute must run the same operations, with the same addresses and numbers, whenever the key is the same; anything that varies
 * must be in the backend's memory.
 */
enum { LIN_GRAPH_KEY = 5, LIN_GRAPHS = 128 };

typedef struct lin_graphs {
    struct {
        int key[LIN_GRAPH_KEY];
        lin_graph *graph; /* NULL: seen once */
    } known[LIN_GRAPHS];
    int n;
} lin_graphs;

/* The first time a key is used, compute runs directly, which also finds the sizes of scratch; the second time it is recorded.
 * Backends without graphs, keys beyond the first LIN_GRAPHS and failed recordings always run directly. */
void lin_graphs_run(lin_graphs *graphs, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *context),
                    void *context);
void lin_graphs_free(lin_graphs *graphs, const lin_ops *ops);

#endif
