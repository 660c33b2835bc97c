/* network_layers.h - shared by network.c and the kinds of kinds.h: weights, activations, and linear layers on them. */
#ifndef LIN_MODEL_NETWORK_LAYERS_H
#define LIN_MODEL_NETWORK_LAYERS_H

#include "base/memory.h"
#include "model/kinds.h"

struct lin_weights {
    lin_config config;
    const lin_params *params;
    const lin_real_ops *ops;
    lin_exec *exec; // owns the memory
    const lin_real *values;
    int for_training;
    lin_real *packed;                         // all matrices, packed for the forward pass and, for training, transposed
    size_t *forward_offset, *backward_offset; // of tensor i in packed; vectors have none
    lin_packing *packing;
    int n_packing, n_exact; // to pack, and behind them those that ops->exact packs
    lin_real *constants; // of the kind of attention: see its `prepare`
};

/* One layer's intermediate values, all [rows, ...]. Training keeps them per layer, inference reuses one set. */
struct lin_layer_values {
    lin_real *u;              // output of the layers before [C]
    lin_real *posterior;      // softmax(output(u)), where this layer's input is conditioned on it [V]
    lin_real *x0;             // input of the layer [C]: u, or u + W_c posterior
    lin_real *x1;             // after the convolution [C]; x0 if there is none
    lin_real *n1, *stats1;    // pre-norm: LN1(x1); post-norm: the input of LN1 [C], in training
    lin_real *qkv;            // [3C]; lsh: [2C]
    lin_real *decay;          // gates of gated decays [H]
    lin_real *y;              // attention's output [C]; an LSTM's: h
    lin_real *lse;            // softmax, lsh: [H]
    lin_real *scores;         // softmax-naive: the probabilities of all pairs of frames
    int *order;               // lsh: [rounds, H]
    lin_real *operands;       // of the products around attention, where the backend keeps them in another format [C]
    lin_real *x2;             // between attention and feed-forward [C]
    lin_real *n2, *stats2;    // pre-norm: LN2(x2); post-norm: the input of LN2 [C], in training
    lin_real *hidden;         // relu, then dropout [F]
    lin_real *gates, *cells;  // an LSTM's, directions 4U and directions U
};

struct lin_activations {
    lin_config config;
    const lin_real_ops *ops;
    lin_exec *exec; // owns the memory
    int max_rows, longest, for_training;
    lin_layer_values *layers; // L of them (training) or 2
    lin_real *stacked;        // [rows, (s+R) D]
    lin_real *last, *last_stats, *normed; // input and output of the final norm [C]
    lin_real *branch;         // forward: a block's output before it is added; backward: a gradient within a block [C]
    lin_real *d_x, *d_y;      // the gradient of the sum, and the same after dropout, for the previous block [C]
    const lin_real *d_more;   // NULL, or a->branch: to be added to d_x by what reads it next
    lin_real *d_qkv, *d_decay, *d_hidden, *d_posterior;
    lin_arena arena;
};

/* For `lay_out`: [max_rows, width]. */
static inline lin_real *lin_rows_take(lin_activations *a, size_t width)
{
    return lin_arena_take(&a->arena, (size_t)a->max_rows * width, sizeof(lin_real));
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
/* Gradients of the pair, and of its input if dx is not NULL. */
void lin_layer_linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows);
/* The same without the gradient of the bias, where a norm's gradient has added it. */
void lin_layer_weight_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows);

/* Of a network of tokens: y [rows, C] = the rows of the embedding table, and its gradient from dy. */
void lin_layer_embed(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_batch *batch);
void lin_layer_embed_backward(const lin_weights *w, lin_exec *exec, lin_real *gradients, const lin_real *dy,
                              const lin_batch *batch);

/* Whether the backend has this network's attention blocks as one operation, in training. */
static inline int lin_has_attention_block(const lin_real_ops *ops, const lin_config *c)
{
    return ops->attention_block_forward && lin_config_is_plain(c);
}

/* Elements of a state before this layer's part. */
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
