// config.c - limits of a configuration, and where each parameter lies; see config.h.

#include "model/config.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/rng.h"
#include "paper/random_features.h"

lin_config lin_config_default(int outputs)
{
    return (lin_config){.layers = 9,
                        .heads = 6,
                        .head_width = 32,
                        .feedforward = 768,
                        .mel_bins = 40,
                        .outputs = outputs,
                        .stack = 1,
                        .ahead = 0,
                        .positions = LIN_POSITIONS_NONE,
                        .conv_kernel = 0,
                        .conv_layers = 0,
                        .norm = LIN_NORM_POST,
                        .causal = 1,
                        .dropout = 0.1};
}

const char *const lin_network_names[] = {"transformer", "lstm", NULL};
const char *const lin_attention_names[] = {"linear", "softmax", "softmax-naive", "lsh", NULL};
const char *const lin_feature_map_names[] = {"elu", "poly2", "random", NULL};
const char *const lin_position_names[] = {"none", "sinusoid", "conv", "centred-conv", NULL};
const char *const lin_decay_names[] = {"none", "fixed", "gated", NULL};

enum { MOST_FEATURES = 1024, MOST_MAPPED_WIDTH = 64, LSH_ROTATIONS = 64 };

// A field of a variant is 0 in all others: `of` says whose it is.
typedef struct range {
    const char *name;
    int value, low, high;
    const char *of; // NULL: of this network
} range;

static lin_status check_range(const range *r, lin_error *err)
{
    if (r->of && r->value != 0)
        return lin_fail(err, LIN_INVALID, "network configuration: %s is %d, but only %s has it; leave it out", r->name, r->value,
                        r->of);
    if (!r->of && (r->value < r->low || r->value > r->high))
        return lin_fail(err, LIN_INVALID, "network configuration: %s is %d; must be %d to %d", r->name, r->value, r->low,
                        r->high);
    return LIN_OK;
}

lin_status lin_config_check(const lin_config *c, lin_error *err)
{
    const int conv = c->positions >= LIN_POSITIONS_CONV, lsh = c->attention == LIN_ATTENTION_LSH,
              linear = c->attention == LIN_ATTENTION_LINEAR;
    const char *transformer = c->network == LIN_NETWORK_LSTM ? "network = transformer" : NULL,
               *lstm = c->network == LIN_NETWORK_LSTM ? NULL : "network = lstm";
    const char *forgets = transformer || !linear || c->feature_map != LIN_MAP_ELU || !c->causal
                              ? "causal linear attention with feature_map = elu" : NULL;
    const range ranges[] = {
        {"network", (int)c->network, LIN_NETWORK_TRANSFORMER, LIN_NETWORK_LSTM, NULL},
        {"attention", (int)c->attention, LIN_ATTENTION_LINEAR, LIN_ATTENTION_LSH, transformer},
        {"feature_map", (int)c->feature_map, LIN_MAP_ELU, LIN_MAP_RANDOM,
         transformer ? transformer : linear ? NULL : "attention = linear"},
        {"features", c->features, 1, MOST_FEATURES, c->feature_map == LIN_MAP_RANDOM ? NULL : "feature_map = random"},
        {"lsh_rounds", c->lsh_rounds, 1, 16, lsh ? NULL : "attention = lsh"},
        {"lsh_chunk", c->lsh_chunk, 1, 1024, lsh ? NULL : "attention = lsh"},
        {"width", c->width, 1, 1024, lstm},
        {"decay", (int)c->decay, LIN_DECAY_NONE, LIN_DECAY_GATED, forgets},
        {"layers", c->layers, 1, 64, NULL},
        {"heads", c->heads, 1, 64, transformer},
        {"head_width", c->head_width, 1, 256, transformer},
        {"feedforward", c->feedforward, 1, 65536, transformer},
        {"mel_bins", c->mel_bins, 1, 512, NULL},
        {"outputs", c->outputs, 2, 65536, NULL},
        {"stack", c->stack, 1, 16, NULL},
        {"ahead", c->ahead, 0, 64, NULL},
        {"positions", (int)c->positions, LIN_POSITIONS_NONE, LIN_POSITIONS_CENTRED_CONV, transformer},
        {"conv_kernel", c->conv_kernel, conv ? 1 : 0, conv ? 63 : 0, transformer},
        {"conv_layers", c->conv_layers, conv ? 1 : 0, conv ? c->layers : 0, transformer},
        {"norm", (int)c->norm, LIN_NORM_POST, LIN_NORM_PRE, transformer},
        {"condition_every", c->condition_every, 0, c->layers - 1, transformer},
        {"causal", c->causal, 0, 1, NULL}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const lin_status status = check_range(&ranges[i], err);
        if (status != LIN_OK) return status;
    }
    const lin_map map = lin_config_map(c);
    if (c->feature_map != LIN_MAP_ELU && (c->head_width > MOST_MAPPED_WIDTH || map.D > MOST_FEATURES))
        return lin_fail(
            err, LIN_INVALID,
            "network configuration: head_width %d gives %d features with feature_map %s; at most %d, and a head_width of "
            "at most %d, are possible",
            c->head_width, map.D, lin_feature_map_names[c->feature_map], MOST_FEATURES, MOST_MAPPED_WIDTH);
    if (c->positions == LIN_POSITIONS_CENTRED_CONV && c->causal)
        return lin_fail(
            err, LIN_INVALID,
            "network configuration: the convolution of positions = centred-conv reads later frames, which a causal network "
            "does not; use conv, or direction = bidirectional");
    if (!(c->dropout >= 0 && c->dropout < 1))
        return lin_fail(err, LIN_INVALID, "network configuration: dropout is %g; must be at least 0 and below 1", c->dropout);
    return LIN_OK;
}

int lin_config_is_plain(const lin_config *c)
{
    return !c->network && !c->attention && !c->feature_map && !c->features && !c->lsh_rounds && !c->lsh_chunk && !c->width &&
           !c->decay;
}

int lin_config_same_shape(const lin_config *a, const lin_config *b)
{
    return a->layers == b->layers && a->heads == b->heads && a->head_width == b->head_width && a->feedforward == b->feedforward &&
           a->mel_bins == b->mel_bins && a->outputs == b->outputs && a->stack == b->stack && a->ahead == b->ahead &&
           a->positions == b->positions && a->conv_kernel == b->conv_kernel && a->conv_layers == b->conv_layers &&
           a->norm == b->norm && a->causal == b->causal && a->network == b->network && a->attention == b->attention &&
           a->feature_map == b->feature_map && a->features == b->features && a->lsh_rounds == b->lsh_rounds &&
           a->lsh_chunk == b->lsh_chunk && a->width == b->width && a->decay == b->decay &&
           a->condition_every == b->condition_every;
}

void lin_config_variant(const lin_config *c, char *text, size_t size)
{
    const char *name = lin_attention_names[c->attention];
    if (c->network == LIN_NETWORK_LSTM) snprintf(text, size, "%s", lin_network_names[c->network]);
    else if (c->attention == LIN_ATTENTION_LSH) snprintf(text, size, "%s-%d", name, c->lsh_rounds);
    else if (c->feature_map == LIN_MAP_RANDOM) snprintf(text, size, "%s random-%d", name, c->features);
    else if (c->feature_map == LIN_MAP_POLY2) snprintf(text, size, "%s %s", name, lin_feature_map_names[c->feature_map]);
    else if (c->decay) snprintf(text, size, "%s, decay %s", name, lin_decay_names[c->decay]);
    else snprintf(text, size, "%s", name);
}

const char *lin_config_why_not_stream(const lin_config *c)
{
    if (!c->causal) return "is bidirectional: it needs whole utterances and cannot stream";
    if (c->attention == LIN_ATTENTION_LSH)
        return "has LSH attention, which sorts all frames of an utterance: it needs whole utterances and cannot stream";
    if (c->attention == LIN_ATTENTION_SOFTMAX_NAIVE)
        return "has softmax attention with all scores in memory (softmax-naive): it needs whole utterances and cannot stream; "
               "attention = softmax is the same function and can";
    if (c->positions == LIN_POSITIONS_SINUSOID)
        return "counts positions from the start (sinusoid): it needs whole utterances and cannot stream";
    return NULL;
}

lin_map lin_config_map(const lin_config *c)
{
    const int E = c->head_width;
    return (lin_map){.kind = c->feature_map,
                     .D = c->feature_map == LIN_MAP_RANDOM  ? c->features
                          : c->feature_map == LIN_MAP_POLY2 ? E * (E + 1) / 2 + E + 1
                                                            : E};
}

lin_lsh lin_config_lsh(const lin_config *c)
{
    return (lin_lsh){.rounds = c->lsh_rounds, .chunk = c->lsh_chunk, .rotations = LSH_ROTATIONS};
}

static int add(lin_params *p, int n, int k, int fan_in, const char *name)
{
    lin_param *t = &p->table[p->n_tensors];
    *t = (lin_param){.offset = p->n_elements, .n = n, .k = k, .fan_in = fan_in, .decay = k > 0, .parts = k > 0};
    snprintf(t->name, sizeof t->name, "%s", name);
    p->n_elements += lin_param_count(t);
    return p->n_tensors++;
}

// weight and bias of a linear layer (k > 0) or a norm (k = 0)
static void add_pair(lin_params *p, int role[2], int n, int k, int layer, const char *name)
{
    char full[48];
    for (int i = 0; i < 2; i++) {
        const char *part = i ? "bias" : "weight";
        if (layer < 0) snprintf(full, sizeof full, "%s.%s", name, part);
        else snprintf(full, sizeof full, "layers.%d.%s.%s", layer, name, part);
        role[i] = add(p, n, i ? 0 : k, k, full);
        p->table[role[i]].is_scale = k == 0 && i == 0;
    }
}

static int add_to_layer(lin_params *p, int n, int k, int fan_in, int layer, const char *name)
{
    char full[48];
    snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    return add(p, n, k, fan_in, full);
}

static void add_decay(const lin_config *c, lin_params *p, int l)
{
    int *role = p->layers[l].decay;
    if (c->decay == LIN_DECAY_GATED)
        role[0] = add_to_layer(p, c->heads, lin_config_width(c), lin_config_width(c), l, "decay.weight");
    role[1] = add_to_layer(p, c->heads, 0, lin_config_width(c), l, "decay.bias");
    for (int i = 0; i < 2; i++)
        if (role[i] >= 0) p->table[role[i]].is_gate = 1;
    p->table[role[1]].is_fixed = c->decay == LIN_DECAY_FIXED;
}

static void add_transformer(const lin_config *c, lin_params *p)
{
    const int C = lin_config_width(c), lsh = c->attention == LIN_ATTENTION_LSH;
    add_pair(p, p->input, C, lin_config_input_width(c), -1, "input");
    for (int l = 0; l < c->layers; l++) {
        lin_param_layer *layer = &p->layers[l];
        if (l < c->conv_layers) {
            layer->conv[0] = add_to_layer(p, c->conv_kernel, C, c->conv_kernel, l, "conv.weight");
            layer->conv[1] = add_to_layer(p, C, 0, c->conv_kernel, l, "conv.bias");
            p->table[layer->conv[0]].parts = 0;
        }
        add_pair(p, layer->qkv, (lsh ? 2 : 3) * C, C, l, lsh ? "qv" : "qkv");
        if (c->feature_map == LIN_MAP_RANDOM) {
            layer->omega = add_to_layer(p, c->heads * c->features, c->head_width, 0, l, "omega");
            p->table[layer->omega].parts = p->table[layer->omega].decay = 0;
            p->table[layer->omega].is_fixed = 1;
            p->table[layer->omega].heads = c->heads;
        }
        if (c->decay) add_decay(c, p, l);
        add_pair(p, layer->out, C, C, l, "out");
        add_pair(p, layer->norm1, C, 0, l, "norm1");
        add_pair(p, layer->ff1, c->feedforward, C, l, "ff1");
        add_pair(p, layer->ff2, C, c->feedforward, l, "ff2");
        add_pair(p, layer->norm2, C, 0, l, "norm2");
    }
    add_pair(p, p->norm, C, 0, -1, "norm");
    if (!c->condition_every) return;
    add_pair(p, p->condition, C, c->outputs, -1, "condition");
    for (int i = 0; i < 2; i++) p->table[p->condition[i]].is_zero = 1;
}

static void add_lstm(const lin_config *c, lin_params *p)
{
    const int directions = lin_config_directions(c), U = c->width, n = directions * 4 * U;
    for (int l = 0; l < c->layers; l++) {
        lin_param_layer *layer = &p->layers[l];
        add_pair(p, layer->gates, n, l ? directions * U : lin_config_input_width(c), l, "gates");
        layer->recurrent = add_to_layer(p, n, U, U, l, "recurrent.weight");
        p->table[layer->gates[0]].fan_in = p->table[layer->gates[1]].fan_in = U; // as PyTorch initialises all of an LSTM
        p->table[layer->recurrent].parts = directions;
    }
}

lin_status lin_params_create(const lin_config *c, lin_params *p, lin_error *err)
{
    static const lin_param_layer none = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1},
                                         {-1, -1}, -1,       {-1, -1}, {-1, -1}, -1};
    *p = (lin_params){.input = {-1, -1}, .norm = {-1, -1}, .condition = {-1, -1}};
    lin_status status = lin_config_check(c, err);
    if (status != LIN_OK) return status;
    const size_t n = 8 + (size_t)c->layers * 17;
    p->table = lin_calloc(n, sizeof *p->table);
    p->layers = lin_calloc((size_t)c->layers, sizeof *p->layers);
    if (!p->table || !p->layers) {
        lin_params_free(p);
        return lin_no_memory(err, "the table of parameters", n * sizeof *p->table);
    }
    for (int l = 0; l < c->layers; l++) p->layers[l] = none;
    if (c->network == LIN_NETWORK_LSTM) add_lstm(c, p);
    else add_transformer(c, p);
    add_pair(p, p->output, c->outputs, lin_config_width(c), -1, "output");
    return LIN_OK;
}

void lin_params_free(lin_params *p)
{
    lin_free(p->table);
    lin_free(p->layers);
    *p = (lin_params){0};
}

void lin_params_init(const lin_params *p, float *values, unsigned long long seed)
{
    for (int i = 0; i < p->n_tensors; i++) {
        const lin_param *t = &p->table[i];
        if (t->is_gate) continue;
        if (t->is_fixed) {
            lin_random_features(values + t->offset, t->heads, t->n / t->heads, t->k, lin_random_key(seed, (uint64_t)i));
            continue;
        }
        const size_t count = lin_param_count(t);
        const uint64_t key = lin_random_key(seed, (uint64_t)i);
        const double bound = t->fan_in && !t->is_zero ? 1 / sqrt(t->fan_in) : 0;
        for (size_t j = 0; j < count; j++)
            values[t->offset + j] = t->is_scale ? 1.0F : (float)(bound * (2 * lin_random_uniform(key, j) - 1));
    }
    lin_params_init_decay(p, values, 50, 6000);
}

// After n steps half is left if log a = -ln 2 / n, and log a = log sigmoid(gate) / 16.
void lin_params_init_decay(const lin_params *p, float *values, double low, double high)
{
    for (int i = 0; i < p->n_tensors; i++) {
        const lin_param *t = &p->table[i];
        float *at = values + t->offset;
        if (!t->is_gate) continue;
        for (int j = 0; t->k && j < t->n * t->k; j++) at[j] = 0;
        for (int h = 0; !t->k && h < t->n; h++) {
            const double steps = low * pow(high / low, t->n > 1 ? (double)h / (t->n - 1) : 0.5);
            at[h] = (float)-log(expm1(16 * log(2) / steps));
        }
    }
}
