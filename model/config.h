/*
 * config.h - the shape of a network, the layout of its parameters, and the parameters of its features.
 *
 * The defaults are the paper's speech model (Katharopoulos et al. 2020, section 4.3): 9 layers, 6 heads of width 32, feed-forward
 * 768, every frame, post-norm. Streaming needs causal = 1.
 *
 *   input   stack s + ahead frames -> linear -> C, plus positions
 *   layer   [x += depthwise conv(x)]  x += drop(W_o attention(W_qkv x))  x += drop(W_2 drop(relu(W_1 x)))
 *           post-norm: x = LN(x + ...) after each of the two; pre-norm: x + f(LN(x))
 *           self-conditioned (Nozaki & Komatsu 2021): after every condition_every layers but the last,
 *           x += W_c softmax(output(x))
 *   output  LN, linear -> V, log-softmax; and a second linear -> V, log-softmax, of the same LN, for searches with a language
 *           model, where a network has one (search)
 *
 * Or the input is a sequence of tokens, and a causal network predicts the next one (an autoregressive network; section 4.2):
 *
 *   input   row of an embedding table -> C, plus positions
 *   output  as above; or the parameters of a mixture of discretised logistics (Salimans et al. 2017) over LIN_LEVELS values
 *
 * Or a network of voices (voice.h) puts out one vector for an utterance, and is trained to classify voices by it:
 *
 *   output  LN, mean and deviation of each channel over time, linear -> vector of `voice` elements, length 1;
 *           in training its cosines with V rows, one for each voice
 *
 * The variants that the paper compares, and which of them can stream:
 *   linear         attention of eq. 4-12, elu + 1 or another feature map; a stream of constant size if causal. If causal with
 *                  elu + 1, its sums may decay: at each step they are multiplied by a factor, constant per head (fixed) or
 *                  computed from the input (gated)
 *   softmax        Vaswani et al. 2017, in tiles; if causal, a stream that keeps all keys and values (supplement C.1)
 *   softmax-naive  the same function and parameters, with the T x T scores in memory, as the paper timed it; does not stream
 *   lsh            Reformer (Kitaev et al. 2020): shared queries and keys; does not stream
 *   lstm           layers of `width` units in one (causal) or both directions on the stacked frames, dropout between layers, then
 *                  linear -> V, log-softmax; no norms, no positions; a stream of constant size if causal
 */
#ifndef LIN_MODEL_CONFIG_H
#define LIN_MODEL_CONFIG_H

#include <stddef.h>

#include "kernels/ops.h"

typedef enum lin_positions { LIN_POSITIONS_NONE, LIN_POSITIONS_SINUSOID, LIN_POSITIONS_CONV,
                             LIN_POSITIONS_CENTRED_CONV } lin_positions;
typedef enum lin_norm { LIN_NORM_POST, LIN_NORM_PRE } lin_norm;
typedef enum lin_network_kind { LIN_NETWORK_TRANSFORMER, LIN_NETWORK_LSTM } lin_network_kind;
typedef enum lin_attention_kind {
    LIN_ATTENTION_LINEAR,
    LIN_ATTENTION_SOFTMAX,
    LIN_ATTENTION_SOFTMAX_NAIVE,
    LIN_ATTENTION_LSH
} lin_attention_kind;

typedef enum lin_decay_kind { LIN_DECAY_NONE, LIN_DECAY_FIXED, LIN_DECAY_GATED } lin_decay_kind;

/* The message of a program built with PAPER=0 for what it lacks. */
#define LIN_WITHOUT_PAPER "this program was built without the paper's comparison (PAPER=0)"

enum { LIN_MOST_FEATURES = 1024, LIN_LEVELS = 256 };

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
    int conv_kernel; /* K, 1..63 taps, of a convolution; of a centred one K/2 (rounded down) read later frames */
    int conv_layers; /* layers 0..conv_layers-1 begin with a convolution; 1..L for LIN_POSITIONS_CONV, else 0 */
    lin_norm norm;
    int condition_every; /* 0..L-1: the network's own prediction is added to its sum after every so many layers; 0: never */
    int causal;      /* 1: streams; 0: bidirectional, whole utterances only */
    int search;      /* 1: a second output, which searches with a language model read (docs/training.md, maximum mutual
                        information); 0: they read the only one */
    int voice;       /* 0; of a network of voices: the elements of its vector, 1..1024 */
    int tokens;      /* 0: features; else the rows of the embedding table, 1..65536: a token's number is the sum of the D values
                        of its frame, stack is 1 and ahead 0 */
    int mixture;     /* M, of a network of tokens: outputs = 3 M, the logits, means and log scales of M logistics; 0:
                        log-softmax */
    /* The variant; all 0: linear attention with elu + 1. Fields of other variants are 0, for an LSTM also heads, head_width and
     * feedforward. */
    lin_network_kind network;
    lin_attention_kind attention;
    lin_map_kind feature_map; /* of linear attention */
    int features;             /* of LIN_MAP_RANDOM: 1..LIN_MOST_FEATURES */
    int lsh_rounds;           /* of lsh: 1..16 */
    int lsh_chunk;            /* of lsh: 1..1024; 32 in the paper */
    lin_decay_kind decay;     /* of causal linear attention with elu + 1 */
    int width;                /* of an LSTM: units in each direction, 1..1024; 320 in the paper */
    double dropout;           /* [0, 1), in training; not part of the shape */
} lin_config;

/* Bytes of the shape: all fields before dropout, which are ints without gaps. */
enum { LIN_CONFIG_SHAPE = offsetof(lin_config, width) + sizeof(int) };
_Static_assert(LIN_CONFIG_SHAPE == 26 * sizeof(int) && sizeof(lin_positions) == sizeof(int) &&
                   sizeof(lin_attention_kind) == sizeof(int),
               "26 whole numbers");

/* The names of the values of network, attention, feature_map, positions and decay, as files and options have them; NULL at the
 * end. */
extern const char *const lin_network_names[],
    *const lin_attention_names[], *const lin_feature_map_names[], *const lin_position_names[], *const lin_decay_names[];

/* The variant in a word or a few: "linear", "linear poly2", "linear, decay gated", "lsh-4", "lstm". */
void lin_config_variant(const lin_config *config, char *text, size_t size);

/* The paper's network with V outputs, causal. */
lin_config lin_config_default(int outputs);

/* LIN_INVALID, with the name and range of the wrong field, or a field of another variant. LIN_UNSUPPORTED if this program was
 * built without the variant (network.h). */
lin_status lin_config_check(const lin_config *config, lin_error *err);

/* 1 if both describe the same function of the same parameters: all fields equal except dropout. */
int lin_config_same_shape(const lin_config *a, const lin_config *b);

/* 1 if all fields of the variant are 0: the network of the paper. */
int lin_config_is_plain(const lin_config *config);

/* NULL if the network can stream, else why not: the rest of a sentence that begins with "this model". */
const char *lin_config_why_not_stream(const lin_config *config);

/* Number of directions of time in which the network reads. */
static inline int lin_config_directions(const lin_config *c) { return c->causal ? 1 : 2; }

/* Whether the network's prediction from the layers before is added to the input of this layer, 0..L. */
static inline int lin_config_conditions(const lin_config *c, int layer)
{
    return c->condition_every > 0 && layer > 0 && layer < c->layers && layer % c->condition_every == 0;
}

/* The number of taps of the convolutions that read later frames. */
static inline int lin_config_conv_after(const lin_config *c)
{
    return c->positions == LIN_POSITIONS_CENTRED_CONV ? c->conv_kernel / 2 : 0;
}

/* C: the width of the transformer's layers; of an LSTM's outputs, both directions. */
static inline int lin_config_width(const lin_config *c)
{
    return c->network == LIN_NETWORK_LSTM ? lin_config_directions(c) * c->width : c->heads * c->head_width;
}

/* Width of the rows that the first layer, or the linear layer before it, reads. */
static inline int lin_config_input_width(const lin_config *c)
{
    return c->tokens ? lin_config_width(c) : (c->stack + c->ahead) * c->mel_bins;
}

/* Multiplications and additions of one row forward. */
double lin_config_flop(const lin_config *c);

/* The number of values that a row can predict: outputs, or those of a mixture. */
static inline int lin_config_symbols(const lin_config *c) { return c->mixture ? LIN_LEVELS : c->outputs; }

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
    int is_fixed;       /* set once and never trained: its gradient is 0 and no weight decay applies */
    int heads;          /* of what `draw` makes */
    void (*draw)(float *values, int heads, int D, int E, uint64_t seed); /* NULL, or makes its values [heads, D, E] */
    int is_gate;        /* gates of decays: see lin_params_init_decay */
    int is_zero;        /* initialised to 0 */
    int parts;          /* number of matrices of linear layers stacked in it, which the backend packs; 0 for all other tensors */
    int eight_bits;     /* 1: a matrix that eight-bit precision applies to: those of the blocks of a transformer, nearly all of
                           its work. The others stay in fp32 */
} lin_param;

/* Where the elements of a tensor are in the model's file, of any alignment. All NULL: they are among the model's floats. */
typedef struct lin_stored {
    const void *half;           /* in half precision */
    const void *whole, *scales; /* as whole numbers of eight bits, with the scale of each row (base/number.h) */
} lin_stored;

static inline size_t lin_param_count(const lin_param *t) { return (size_t)t->n * (size_t)(t->k ? t->k : 1); }

/* Indices by role, to find tensors without their names: lin_params.input[0] is the weight's index in table, [1] the bias's. */
typedef struct lin_param_layer {
    int conv[2], qkv[2], out[2], norm1[2], ff1[2], ff2[2], norm2[2]; /* of a transformer; conv is -1 if the layer has none */
    int omega;               /* of random features, else -1 */
    int decay[2];            /* of gated decays; fixed: [0] is -1; else -1 */
    int gates[2], recurrent; /* of an LSTM */
} lin_param_layer;

typedef struct lin_params {
    int n_tensors;
    size_t n_elements;
    lin_param *table;
    lin_param_layer *layers;
    int embedding, input[2], norm[2], condition[2], voice[2], output[2], search[2]; /* -1 for what the network lacks */
} lin_params;

/*
 * Names and shapes, in order:
 *   embedding.weight [tokens, C]                  (tokens > 0, an LSTM too)
 *   input.weight [C, (s+R) D]  input.bias [C]     (tokens = 0)
 *   layers.i.conv.weight [K, C]  .conv.bias [C]   (i < conv_layers)
 *   layers.i.qkv.weight [3C, C]  .qkv.bias [3C]   rows: q of all heads, then k, then v; lsh: qv [2C, C], q, then v
 *   layers.i.omega [H D, E]                       (random features: drawn once, not trained)
 *   layers.i.decay.weight [H, C]                  (gated decays)
 *   layers.i.decay.bias [H]                       (gated; fixed: not trained)  a = sigmoid(gate)^(1/16), gate = weight x + bias
 *   layers.i.out.weight [C, C]   .out.bias [C]
 *   layers.i.norm1.weight [C]    .norm1.bias [C]
 *   layers.i.ff1.weight [F, C]   .ff1.bias [F]
 *   layers.i.ff2.weight [C, F]   .ff2.bias [C]
 *   layers.i.norm2.weight [C]    .norm2.bias [C]
 *   norm.weight [C]  norm.bias [C]
 *   condition.weight [C, V]  condition.bias [C]   (condition_every > 0)
 *   voice.weight [voice, 2C]  voice.bias [voice]  output.weight [V, voice]   (voice > 0: in place of the next two lines)
 *   output.weight [V, C]  output.bias [V]
 *   search.weight [V, C]  search.bias [V]         (search)
 * and of an LSTM, whose first layer reads (s+R) D values, others C = directions U:
 *   layers.i.gates.weight [directions 4U, in]  .gates.bias [directions 4U]   rows: of each direction the gates i, f, g, o
 *   layers.i.recurrent.weight [directions 4U, U]
 *   output.weight [V, C]  output.bias [V]
 */
lin_status lin_params_create(const lin_config *config, lin_params *params, lin_error *err);
void lin_params_free(lin_params *params);

/* Uniform in +-1/sqrt(fan_in) for weights and biases, 1 and 0 for norms, as in the paper's published library; an LSTM's in
 * +-1/sqrt(U), as PyTorch has it. omega: its `draw`; condition: 0. Decays: lin_params_init_decay from 50 to 6,000 steps,
 * half a second to a minute at 10 ms. Same seed, same values. */
void lin_params_init(const lin_params *params, float *values, unsigned long long seed);

/* Initialises the gates of decays: weights 0, and biases with which the sums of the heads of each layer halve in `low` to `high`
 * steps, in equal ratios from head to head; a single head: in their geometric mean. */
void lin_params_init_decay(const lin_params *params, float *values, double low, double high);

/* ---- feature parameters ---------------------------------------------------------------------------------------------------- */

/*
 * The parameters for computing the D numbers per frame that this model was trained on: Kaldi's log-mel filterbank (povey window,
 * DC removal, no dither, snip_edges, natural logarithm with the float epsilon as floor). Plain numbers, because model/ does not
 * include frontend/.
 */
typedef struct lin_features {
    int sample_hz;      /* 4000..192000 */
    double window_ms;   /* above 0, at most 1000 */
    double hop_ms;      /* above 0, at most window_ms */
    double low_hz;      /* lower edge of the lowest mel filter, 0..sample_hz/2 */
    double high_hz;     /* upper edge of the highest: above low_hz up to sample_hz/2; 0 or below: sample_hz/2 + high_hz (Kaldi) */
    double preemphasis; /* 0..1 */
    double level_db;    /* running level of speech (frontend/fbank.h), 1 to 150; 0: none. Caches of features have none */
} lin_features;

/* Kaldi's defaults: 16 kHz, 25 ms, 10 ms, 20 Hz, 0 (the Nyquist frequency), 0.97. */
lin_features lin_features_default(void);

/* LIN_INVALID, with the name and range of the wrong parameter. */
lin_status lin_features_check(const lin_features *features, lin_error *err);

/* Name, as in options, and value of parameter i = 0, 1, ..., without level_db; NULL: no more. */
const char *lin_features_value(const lin_features *features, int i, double *value);

/* 1 if all parameters but level_db are equal: a cache can be used. */
int lin_features_equal(const lin_features *a, const lin_features *b);
/* The parameters of a that differ in b, as "hop-ms 9, not 10; ...", written to text; "" if none do. */
const char *lin_features_difference(const lin_features *a, const lin_features *b, char *text, size_t size);

#endif
