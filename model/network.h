/*
 * network.h - the network, a transformer or an LSTM: forward and backward over a batch of utterances, on any backend.
 *
 * Only the mathematics; encoder.h wraps it for inference, stream.h for streams, train.h for training. The source is written
 * for lin_real: float in the program, double (against tests/kernels/ref) in the gradient tests, which compile it with
 * -DLIN_REAL_DOUBLE.
 *
 *   lin_weights *w;    lin_weights_create(ops, exec, &config, &params, values, NULL, for_training, &w, &err);
 *   lin_activations *a; lin_activations_create(ops, exec, &config, max_rows, for_training, &a, &err);
 *   lin_network_forward(w, a, exec, &batch, logp);
 *   lin_network_backward(w, a, exec, &batch, dlogits, gradients);       // after a forward with the same batch
 *
 * All numbers are in the backend's memory (kernels/ops.h): values, features, logits, gradients, states. Nothing here waits for
 * the backend or allocates after creation, so a pass can be captured into a graph.
 * Weights are immutable between packings and shared by threads; activations belong to one thread. The exec that either was
 * created with must outlive it.
 * Source: Katharopoulos et al. 2020, section 4.3 and eq. 4-20; blocks as in Vaswani et al. 2017.
 */
#ifndef LIN_MODEL_NETWORK_H
#define LIN_MODEL_NETWORK_H

#include "base/pool.h"
#include "kernels/ops.h"
#include "model/config.h"

typedef struct lin_weights lin_weights;
typedef struct lin_activations lin_activations;

/* The gradient of the loss of an inner layer. */
typedef struct lin_inner {
    int layer;               /* 1 .. L-1: the loss is of the output of the first `layer` layers */
    const lin_real *dlogits; /* [rows, V] */
} lin_inner;

/*
 * The input of one pass: utterances concatenated without padding.
 *   in, out      frames of the utterances, and rows of the network (one per `stack` frames)
 *   features     [in.rows, D]
 *   mean, istd   [D], the normalisation
 *   states       NULL, or B pointers (each may be NULL) to blocks of lin_config_state_count elements: a causal network reads from
 *                there the state before each utterance's first row, and stores the state after its last
 *   caches       NULL, or B caches (softmax attention) with the keys and values of earlier rows: those of the batch's rows are
 *                appended, and the caller advances n; lin_config_cache_count elements a row
 *   dropout_key  not NULL: training, with dropout masks drawn from this key
 *   is_part      1: dropout_key[1] is the number of rows before this batch in the whole one of which it is a part; the masks are
 *                those of the whole
 *   skipped      bit l: layer l is left out in this pass of a transformer in training: its output is its input (layer drop;
 *                Fan et al. 2020)
 *   inner        n_inner losses of inner layers, whose gradients the backward pass of a transformer adds; see lin_network_inner
 *   search       1: the log-probabilities are those of the second output, of a network that has one (lin_config.search)
 *   d_search     [rows, V], NULL: none; the gradient of the loss of the second output's logits, which the backward pass adds
 *   layer_done   may be NULL: called in the backward pass with the number of a layer, from the last to 0, once the gradients of
 *                this layer and of all above it are complete; those of the last norm, the output and the condition only after
 *                the lowest layer with an inner loss or a condition
 */
typedef struct lin_batch {
    lin_segments in, out;
    const lin_real *features, *mean, *istd;
    lin_real *const *states;
    const lin_cache *caches;
    const uint64_t *dropout_key;
    int is_part;
    uint64_t skipped;
    const lin_inner *inner;
    int n_inner;
    int search;
    const lin_real *d_search;
    void (*layer_done)(void *context, int layer);
    void *layer_context;
} lin_batch;

/* Elements of one utterance's state: per layer [H, E+1, E] sums (eq. 18-19; other feature maps: [H, D, E+1]), then [K-1, C] of
 * convolution tail if it has one; of an LSTM h and c, [2, U]. */
size_t lin_config_state_count(const lin_config *config);
/* Elements that each row adds to the cache of a network with softmax attention; 0 for all others. */
size_t lin_config_cache_count(const lin_config *config);

/* LIN_UNSUPPORTED if the backend lacks operations that the variant needs. The caller keeps values [params->n_elements], which
 * must outlive the weights (norms, biases and convolutions are read from it). stored: NULL, or where the elements of
 * each tensor are instead (lin_model_open), for a backend that packs them, not for training; they too must outlive the weights. A
 * backend of eight bits does not train: LIN_UNSUPPORTED. */
lin_status lin_weights_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, const lin_params *params,
                              const lin_real *values, const lin_stored *stored, int for_training, lin_weights **weights,
                              lin_error *err);
/* Packs again after values have changed. */
void lin_weights_pack(lin_weights *weights, lin_exec *exec);
void lin_weights_destroy(lin_weights *weights);

/* longest: rows of the longest utterance, which softmax-naive needs to know; 0: max_rows. */
lin_status lin_activations_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, int max_rows, int longest,
                                  int for_training, lin_activations **activations, lin_error *err);
void lin_activations_destroy(lin_activations *activations);
int lin_activations_rows(const lin_activations *activations);

/* logp [out.rows, V], natural logarithms. out.rows <= max_rows. */
void lin_network_forward(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                         lin_real *logp);

/*
 * The same for one utterance of a causal transformer with linear attention and its state, on all threads of a pool: the rows are
 * divided into chunks, and chunk c is in layer l while chunk c+1 is in layer l-1, since a layer's state passes from chunk to
 * chunk. execs: one single-threaded exec per thread of the pool, on the host. Chunks have `step` rows, the last one the rest;
 * there are at most LIN_WAVE_CHUNKS. The bits are those of lin_network_forward.
 */
enum { LIN_WAVE_CHUNKS = 64 };
void lin_network_forward_wave(const lin_weights *weights, lin_activations *activations, lin_pool *pool, lin_exec *const *execs,
                              const lin_batch *batch, int step, lin_real *logp);

/* After the forward pass of a transformer in training: the log-probabilities logp [out.rows, V] that its last norm and its output
 * give of the output of the first `layer` layers (1 .. L-1), for an intermediate CTC loss (Lee & Watanabe 2021). */
void lin_network_inner(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                       int layer, lin_real *logp);

/* After the forward pass: the log-probabilities logp [out.rows, V] of the second output of a network that has one. */
void lin_network_search(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                        lin_real *logp);

/* gradients [params->n_elements] += those of a loss whose derivative with respect to the logits (before log-softmax) is dlogits
 * [rows, V]. The batch has no states, and both weights and activations were created for training. */
void lin_network_backward(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients);

#endif
