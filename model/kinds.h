/*
 * kinds.h - the kinds of network and of attention, as tables: what each adds to parameters, streams and the two passes.
 *
 *   lin_network_of(config)->forward(...)     all layers: of a transformer (transformer.c), or of an LSTM (paper/lstm.c)
 *   lin_attention_of(config)->forward(...)   in a layer of a transformer: from its projection qkv to its output y
 *
 * The recogniser has linear attention, with or without decays (transformer.c). Its rivals are there for the paper's comparison:
 * paper/attentions.c, paper/lstm.c. A program that was built with PAPER=0 has no entries for them, and lin_config_check refuses
 * their configurations; so every configuration that was checked has its entries.
 * The functions are those of lin_real: this header is private to config.c, network.c and the files of the kinds.
 */
#ifndef LIN_MODEL_KINDS_H
#define LIN_MODEL_KINDS_H

#include <stdatomic.h>

#include "model/network.h"

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
     * activations->normed. before, mine: number of layers that the previous rows have completed, and that these have; NULL: there
     * is no other chunk. */
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

#endif
