/*
 * network.h - the network, a transformer or an LSTM: forward and backward over a batch of utterances, on any backend.
 *
 * Only the mathematics; encoder.h wraps it for inference, streams.h for streams, train/train.h for training. The source is
 * written for lin_real: float in the program, double (against tests/kernels/ref) in the gradient tests, which compile it with
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

#include <stdatomic.h>

#include "base/memory.h"
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
 *   is_part      1: this is a part of a larger batch, with dropout_key[1] rows before it there; the masks are those of the larger
 *                batch
 *   inner        n_inner losses of inner layers, whose gradients the backward pass of a transformer adds; see lin_network_inner
 *   search       1: the log-probabilities are those of the second output, of a network that has one (lin_config.search)
 *   d_search     [rows, V], NULL: none; the gradient of the loss of the second output's logits, which the backward pass adds
 *   layer_done   may be NULL: called in the backward pass with the number of each layer, from the last to 0, once the gradients
 *                of this layer and of all above it are complete; those of the last norm, the output and the condition are
 *                complete only after the lowest layer with an inner loss or a condition
 */
typedef struct lin_batch {
    lin_segments in, out;
    const lin_real *features, *mean, *istd;
    lin_real *const *states;
    const lin_cache *caches;
    const uint64_t *dropout_key;
    int is_part;
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

/* LIN_UNSUPPORTED if the backend lacks operations that the variant needs, and for training with a backend of eight bits. The
 * caller keeps values [params->n_elements], which must outlive the weights (norms, biases and convolutions are read from it).
 * stored: NULL, or where the elements of each tensor are instead (lin_model_open), for a backend that packs them, not for
 * training; they too must outlive the weights. */
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

/* logp [out.rows, V], natural logarithms; of a network of voices the vectors [out.B, voice] instead. out.rows <= max_rows, and
 * each utterance of a network of voices has rows. */
void lin_network_forward(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                         lin_real *logp);

/*
 * The forward pass of one utterance of a causal transformer with linear attention and its state, on all threads of a pool.
 * Chunk c of the rows is in layer l while chunk c+1 is in layer l-1, since a layer's state passes from chunk to chunk.
 * execs: one single-threaded exec per thread of the pool, on the host. Chunks have `step` rows, the last one the rest;
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

/* After the forward pass of a network of voices in training, on the host: the cosines [out.B, V] of the vectors with those of the
 * voices; the losses [B] of cosines with the numbers of the true voices [B], in nats (additive margin softmax; Wang et al. 2018),
 * and their gradients times `scale`. */
void lin_network_voices(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                        lin_real *cosines);
void lin_voice_loss(double *losses, lin_real *d_cosines, const lin_real *cosines, const int *voices, int B, int V, double scale);

/* gradients [params->n_elements] += those of a loss whose derivative with respect to the logits (before log-softmax) is dlogits
 * [rows, V]; of a network of voices with respect to the cosines, dlogits [B, V]. The batch has no states, and both weights and
 * activations were created for training. */
void lin_network_backward(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients);

/* ---- the kinds of network and of attention: what each adds to parameters, streams and the two passes ----------------------- */

/*
 *   lin_network_of(config)->forward(...)     all layers: of a transformer (transformer.c), or of an LSTM
 *   lin_attention_of(config)->forward(...)   in a layer of a transformer: from its projection qkv to its output y
 *
 * The recogniser has linear attention, with or without decays (transformer.c). Its rivals in the paper's comparison are in
 * paper/networks.c. A program built with PAPER=0 has no entries for them, and lin_config_check refuses their configurations; so
 * every configuration that was checked has its entries.
 */
typedef struct lin_layer_values lin_layer_values;

/* The attention of a layer in a pass, of H heads of width E. */
typedef struct lin_attend {
    const lin_weights *w;
    const lin_real_ops *ops;
    lin_exec *exec;
    const lin_batch *batch;
    const lin_layer_values *v;
    int layer, H, E, causal;
    const lin_real *x;  /* forward: what v->qkv was made of */
    size_t at;          /* forward: where the layer's part of a state begins */
    const lin_real *dy; /* backward: the gradient of v->y */
    lin_real *d_qkv, *d_decay;
} lin_attend;

typedef struct lin_attention {
    int parts;         /* the projection is [parts C, C]: 3 for q, k and v */
    size_t needs;      /* offset in lin_real_ops of an operation that not every backend has; 0: all have what it needs */
    int widest;        /* the widest heads that GPUs have it for; 0: any */
    const char *whole; /* NULL, or why it needs whole utterances: the rest of a sentence that begins with "this model" */
    int grows;         /* a stream keeps all keys and values (lin_cache) */
    /* All but the last two may be NULL. */
    lin_status (*check)(const lin_config *config, lin_error *err);                /* beyond the ranges of the fields */
    size_t (*state)(const lin_config *config);                                    /* elements of a stream's state in a layer */
    void (*parameters)(const lin_config *config, lin_params *params, int layer);  /* beside the projection */
    lin_status (*prepare)(lin_weights *weights, lin_error *err);                  /* weights->constants */
    void (*lay_out)(lin_activations *activations, lin_layer_values *values);      /* beside qkv and y */
    void (*forward)(const lin_attend *attend);  /* v->y from v->qkv */
    void (*backward)(const lin_attend *attend); /* d_qkv from dy */
} lin_attention;

typedef struct lin_network {
    size_t needs;                              /* as above */
    size_t (*state)(const lin_config *config); /* elements of a stream's state in a layer, without the tail of a convolution */
    void (*parameters)(const lin_config *config, lin_params *params); /* all but the output's */
    void (*lay_out)(lin_activations *activations);                    /* all but the stacked frames */
    /* From the stacked frames to the input of the last linear layer [rows, C], which is returned; a backward pass finds it in
     * activations->normed. before: layers that the previous chunk has finished; mine: ours,
     * for the next chunk; NULL: first or last chunk. */
    const lin_real *(*forward)(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                               const atomic_int *before, atomic_int *mine);
    /* d: the gradient of that input. The gradients of all tensors below are added. */
    void (*backward)(const lin_weights *weights, lin_activations *activations, lin_exec *exec, const lin_batch *batch,
                     lin_real *d, lin_real *gradients);
} lin_network;

/* NULL if this program was built without it. */
const lin_network *lin_network_of(const lin_config *config);
const lin_attention *lin_attention_of(const lin_config *config);

extern const lin_network lin_network_transformer, lin_network_lstm;
extern const lin_attention lin_attention_mapped, lin_attention_softmax, lin_attention_softmax_naive, lin_attention_lsh;

/* For `parameters`: the next tensor, "layers.LAYER.NAME" or, with layer -1, NAME; its index. A pair is weight and bias of a
 * linear layer, or of a norm if k = 0. */
int lin_params_add(lin_params *params, int n, int k, int fan_in, int layer, const char *name);
void lin_params_add_pair(lin_params *params, int pair[2], int n, int k, int layer, const char *name);

/* ---- for the kinds: weights, activations, and linear layers on them -------------------------------------------------------- */

struct lin_weights {
    lin_config config;
    const lin_params *params;
    const lin_real_ops *ops;
    lin_exec *exec; /* owns the memory */
    const lin_real *values;
    int for_training;
    lin_real *packed;                         /* all matrices, packed for the forward pass and, for training, transposed */
    size_t *forward_offset, *backward_offset; /* of tensor i in packed; vectors have none */
    lin_packing *packing;
    int n_packing, n_exact; /* matrices to pack, and after them those that ops->exact packs */
    lin_real *constants; /* made by the attention's `prepare` */
};

/* One layer's intermediate values, all [rows, ...]. Training keeps them per layer, inference reuses one set. */
struct lin_layer_values {
    lin_real *u;              /* output of the layers before [C] */
    lin_real *posterior;      /* softmax(output(u)), where this layer's input is conditioned on it [V] */
    lin_real *x0;             /* input of the layer [C]: u, or u + W_c posterior */
    lin_real *x1;             /* after the convolution [C]; x0 if there is none */
    lin_real *n1, *stats1;    /* pre-norm: LN1(x1); post-norm: the input of LN1 [C], in training */
    lin_real *qkv;            /* [3C]; lsh: [2C] */
    lin_real *decay;          /* gates of gated decays [H] */
    lin_real *y;              /* attention's output [C]; an LSTM's: h */
    lin_real *lse;            /* softmax, lsh: [H] */
    lin_real *scores;         /* softmax-naive: the probabilities of all pairs of frames */
    int *order;               /* lsh: [rounds, H] */
    lin_real *operands;       /* of the products around attention, where the backend keeps them in another format [C] */
    lin_real *x2;             /* between attention and feed-forward [C] */
    lin_real *n2, *stats2;    /* pre-norm: LN2(x2); post-norm: the input of LN2 [C], in training */
    lin_real *hidden;         /* relu, then dropout [F] */
    lin_real *gates, *cells;  /* an LSTM's, directions 4U and directions U */
};

struct lin_activations {
    lin_config config;
    const lin_real_ops *ops;
    lin_exec *exec; /* owns the memory */
    int max_rows, longest, for_training;
    int first_row;            /* of a wave's chunk: its buffers begin with this row of those of all rows; else 0 */
    lin_layer_values *layers; /* L of them (training) or 2 */
    lin_real *stacked;        /* [rows, (s+R) D] */
    lin_real *last, *last_stats, *normed; /* input and output of the final norm [C] */
    lin_real *branch;         /* forward: a block's output before it is added; backward: a gradient within a block [C] */
    lin_real *d_x, *d_y;      /* the gradient of the sum, and the same after dropout, for the previous block [C] */
    const lin_real *d_more;   /* NULL, or a->branch: the next reader of d_x must add it */
    lin_real *d_qkv, *d_decay, *d_hidden, *d_posterior;
    /* Of a network of voices, a row per utterance: mean and deviation [2C]; in training also the vectors [voice], their lengths
     * before normalisation, and gradients: of pooled values, of vectors, and of the cosines [V] divided by the lengths of their
     * rows of weights. */
    lin_real *pooled, *vectors, *lengths, *d_pooled, *d_vectors, *d_cosines;
    lin_arena arena;
};

/* For `lay_out`: [max_rows, width], from the first row on. */
static inline lin_real *lin_rows_take(lin_activations *a, size_t width)
{
    lin_real *rows = lin_arena_take(&a->arena, (size_t)a->max_rows * width, sizeof *rows);
    return rows + (size_t)a->first_row * width;
}

static inline const lin_real *lin_value(const lin_weights *w, int tensor) { return w->values + w->params->table[tensor].offset; }

static inline lin_real *lin_gradient(const lin_weights *w, lin_real *gradients, int tensor)
{
    return gradients + w->params->table[tensor].offset;
}

/* The backend's table for the products of a tensor, which packs it too. */
static inline const lin_real_ops *lin_product_ops(const lin_real_ops *ops, const lin_param *t)
{
    return ops->exact && !t->eight_bits ? ops->exact : ops;
}

/* y = act(x wᵀ + b) with the pair of tensors. */
void lin_layer_linear(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_real *x, const int pair[2], int rows,
                      lin_activation act);
/* Gradients of the pair, and of its input if dx is not NULL. pair[1] < 0: not of the bias, which a norm's gradient has added. */
void lin_layer_linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows);

/* Of a network of tokens: y [rows, C] = the rows of the embedding table, and its gradient from dy. */
void lin_layer_embed(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_batch *batch);
void lin_layer_embed_backward(const lin_weights *w, lin_exec *exec, lin_real *gradients, const lin_real *dy,
                              const lin_batch *batch);

/* The last layers of a network of voices (pooling.c): vectors [B, voice] from x [rows, C], the output of the last norm; and dx
 * from the gradient of the cosines [B, V]. */
void lin_voice_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, const lin_real *x,
                       lin_real *vectors);
void lin_voice_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                        const lin_real *d_cosines, const lin_real *x, lin_real *dx, lin_real *gradients);

/* Offset of this layer's part in a state, in elements. */
size_t lin_state_offset(const lin_config *config, int layer);

/* A mask for one of the places in a layer where values are dropped. */
enum { LIN_SITE_ATTENTION, LIN_SITE_HIDDEN, LIN_SITE_FEEDFORWARD, LIN_SITES };
static inline int lin_dropout_width(const lin_config *c, int site)
{
    return site == LIN_SITE_HIDDEN && c->network == LIN_NETWORK_TRANSFORMER ? c->feedforward : lin_config_width(c);
}
static inline lin_dropout lin_dropout_of(const lin_weights *w, const lin_batch *batch, int layer, int site)
{
    return (lin_dropout){.p = batch->dropout_key ? w->config.dropout : 0,
                         .key = batch->dropout_key,
                         .site = (uint64_t)(layer * LIN_SITES + site),
                         .width = (uint64_t)(batch->is_part ? lin_dropout_width(&w->config, site) : 0)};
}

#endif
