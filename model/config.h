/*
 * config.h - the shape of a network, and the layout of its parameters.
 *
 * The defaults are the paper's speech model (Katharopoulos et al. 2020, section 4.3): 9 layers, 6 heads of width 32, feed-forward 768,
 * every frame, post-norm. Streaming needs causal = 1.
 *
 *   input   stack s + ahead frames -> linear -> C, plus positions
 *   layer   [x += depthwise conv(x)]  x += drop(W_o attention(W_qkv x))  x += drop(W_2 drop(relu(W_1 x)))
 *           post-norm: x = LN(x + ...) after each of the two; pre-norm: x + f(LN(x))
 *   output  LN, linear -> V, log-softmax
 */
#ifndef LIN_MODEL_CONFIG_H
#define LIN_MODEL_CONFIG_H

#include <stddef.h>

#include "base/status.h"

typedef enum lin_positions { LIN_POSITIONS_NONE, LIN_POSITIONS_SINUSOID, LIN_POSITIONS_CONV } lin_positions;
typedef enum lin_norm { LIN_NORM_POST, LIN_NORM_PRE } lin_norm;

typedef struct lin_config {
    int layers;      /* L, 1..64 */
    int heads;       /* H, 1..64 */
    int head_width;  /* E, 1..256; C = H E */
    int feedforward; /* F, 1..65536 */
    int mel_bins;    /* D, 1..512 */
    int outputs;     /* V, 2..65536, blank included */
    int stack;       /* s, 1..16: frames per step; the network runs once every s frames */
    int ahead;       /* R, 0..64: future frames stacked after the s, latency R hops */
    lin_positions positions;
    int conv_kernel; /* K, 1..63 taps, for LIN_POSITIONS_CONV */
    int conv_layers; /* layers 0..conv_layers-1 begin with a convolution; 1..L for LIN_POSITIONS_CONV, else 0 */
    lin_norm norm;
    int causal;      /* 1: streams; 0: bidirectional, whole utterances only */
    double dropout;  /* [0, 1), in training */
} lin_config;

/* The paper's network with V outputs, causal. */
lin_config lin_config_default(int outputs);

/* LIN_INVALID, with the name and range of the wrong field. */
lin_status lin_config_check(const lin_config *config, lin_error *err);

/* 1 if both describe the same function of the same parameters: all fields equal except dropout. */
int lin_config_same_shape(const lin_config *a, const lin_config *b);

static inline int lin_config_width(const lin_config *c) { return c->heads * c->head_width; }
static inline int lin_config_input_width(const lin_config *c) { return (c->stack + c->ahead) * c->mel_bins; }

/* Output frames of an utterance of n_frames: ceil(n_frames / stack). */
static inline int lin_config_frames_out(const lin_config *c, int n_frames) { return (n_frames + c->stack - 1) / c->stack; }

/*
 * A parameter tensor. All parameters of a model are in one block of floats in the order of this table, which is also the
 * order of gradients and optimiser moments. Matrices are [n, k] as in y = x wᵀ.
 */
typedef struct lin_param {
    char name[48];      /* "layers.3.qkv.weight" */
    size_t offset;      /* in elements from the start of the block */
    int n, k;           /* shape [n, k]; k = 0: a vector [n] */
    int fan_in;         /* fan-in of its layer, for initialisation; 0 for norms */
    int decay;          /* weight decay applies: matrices only */
    int is_scale;       /* the weight of a layer norm: initialised to 1 */
} lin_param;

/* Indices by role, to find tensors without their names: lin_params.input[0] is the weight's index in table, [1] the bias's. */
typedef struct lin_param_layer {
    int conv[2], qkv[2], out[2], norm1[2], ff1[2], ff2[2], norm2[2]; /* conv is -1 if the layer has none */
} lin_param_layer;

typedef struct lin_params {
    int n_tensors;
    size_t n_elements;
    lin_param *table;
    lin_param_layer *layers;
    int input[2], norm[2], output[2];
} lin_params;

/*
 * Names and shapes, in order:
 *   input.weight [C, (s+R) D]  input.bias [C]
 *   layers.i.conv.weight [K, C]  .conv.bias [C]   (i < conv_layers)
 *   layers.i.qkv.weight [3C, C]  .qkv.bias [3C]   rows: q of all heads, then k, then v
 *   layers.i.out.weight [C, C]   .out.bias [C]
 *   layers.i.norm1.weight [C]    .norm1.bias [C]
 *   layers.i.ff1.weight [F, C]   .ff1.bias [F]
 *   layers.i.ff2.weight [C, F]   .ff2.bias [C]
 *   layers.i.norm2.weight [C]    .norm2.bias [C]
 *   norm.weight [C]  norm.bias [C]
 *   output.weight [V, C]  output.bias [V]
 */
lin_status lin_params_create(const lin_config *config, lin_params *params, lin_error *err);
void lin_params_free(lin_params *params);

/* Uniform in +-1/sqrt(fan_in) for weights and biases, 1 and 0 for norms, as in the paper's published library. Same seed, same
 * values. */
void lin_params_init(const lin_params *params, float *values, unsigned long long seed);

#endif
