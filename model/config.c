// config.c - limits of a configuration, and where each parameter lies; see config.h.

#include "model/config.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/rng.h"

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

lin_status lin_config_check(const lin_config *c, lin_error *err)
{
    const int conv = c->positions == LIN_POSITIONS_CONV;
    const struct {
        const char *name;
        int value, low, high;
    } ranges[] = {{"layers", c->layers, 1, 64},
                  {"heads", c->heads, 1, 64},
                  {"head_width", c->head_width, 1, 256},
                  {"feedforward", c->feedforward, 1, 65536},
                  {"mel_bins", c->mel_bins, 1, 512},
                  {"outputs", c->outputs, 2, 65536},
                  {"stack", c->stack, 1, 16},
                  {"ahead", c->ahead, 0, 64},
                  {"positions", (int)c->positions, LIN_POSITIONS_NONE, LIN_POSITIONS_CONV},
                  {"conv_kernel", c->conv_kernel, conv ? 1 : 0, conv ? 63 : 0},
                  {"conv_layers", c->conv_layers, conv ? 1 : 0, conv ? c->layers : 0},
                  {"norm", (int)c->norm, LIN_NORM_POST, LIN_NORM_PRE},
                  {"causal", c->causal, 0, 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high)
            return lin_fail(err, LIN_INVALID, "network configuration: %s is %d; must be %d to %d", ranges[i].name, ranges[i].value,
                            ranges[i].low, ranges[i].high);
    if (!(c->dropout >= 0 && c->dropout < 1))
        return lin_fail(err, LIN_INVALID, "network configuration: dropout is %g; must be at least 0 and below 1", c->dropout);
    return LIN_OK;
}

int lin_config_same_shape(const lin_config *a, const lin_config *b)
{
    return a->layers == b->layers && a->heads == b->heads && a->head_width == b->head_width && a->feedforward == b->feedforward &&
           a->mel_bins == b->mel_bins && a->outputs == b->outputs && a->stack == b->stack && a->ahead == b->ahead &&
           a->positions == b->positions && a->conv_kernel == b->conv_kernel && a->conv_layers == b->conv_layers &&
           a->norm == b->norm && a->causal == b->causal;
}

static int add(lin_params *p, int n, int k, int fan_in, const char *name)
{
    lin_param *t = &p->table[p->n_tensors];
    *t = (lin_param){.offset = p->n_elements, .n = n, .k = k, .fan_in = fan_in, .decay = k > 0};
    snprintf(t->name, sizeof t->name, "%s", name);
    p->n_elements += (size_t)n * (size_t)(k ? k : 1);
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

lin_status lin_params_create(const lin_config *c, lin_params *p, lin_error *err)
{
    *p = (lin_params){0};
    lin_status status = lin_config_check(c, err);
    if (status != LIN_OK) return status;
    const int C = lin_config_width(c);
    const size_t n = 6 + (size_t)c->layers * 14;
    p->table = lin_calloc(n, sizeof *p->table);
    p->layers = lin_calloc((size_t)c->layers, sizeof *p->layers);
    if (!p->table || !p->layers) {
        lin_params_free(p);
        return lin_no_memory(err, "the table of parameters", n * sizeof *p->table);
    }
    add_pair(p, p->input, C, lin_config_input_width(c), -1, "input");
    for (int l = 0; l < c->layers; l++) {
        lin_param_layer *layer = &p->layers[l];
        layer->conv[0] = layer->conv[1] = -1;
        if (l < c->conv_layers) {
            char name[48];
            snprintf(name, sizeof name, "layers.%d.conv.weight", l);
            layer->conv[0] = add(p, c->conv_kernel, C, c->conv_kernel, name);
            snprintf(name, sizeof name, "layers.%d.conv.bias", l);
            layer->conv[1] = add(p, C, 0, c->conv_kernel, name);
        }
        add_pair(p, layer->qkv, 3 * C, C, l, "qkv");
        add_pair(p, layer->out, C, C, l, "out");
        add_pair(p, layer->norm1, C, 0, l, "norm1");
        add_pair(p, layer->ff1, c->feedforward, C, l, "ff1");
        add_pair(p, layer->ff2, C, c->feedforward, l, "ff2");
        add_pair(p, layer->norm2, C, 0, l, "norm2");
    }
    add_pair(p, p->norm, C, 0, -1, "norm");
    add_pair(p, p->output, c->outputs, C, -1, "output");
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
        const size_t count = (size_t)t->n * (size_t)(t->k ? t->k : 1);
        const uint64_t key = lin_random_key(seed, (uint64_t)i);
        const double bound = t->fan_in ? 1 / sqrt(t->fan_in) : 0;
        for (size_t j = 0; j < count; j++)
            values[t->offset + j] = t->is_scale ? 1.0F : (float)(bound * (2 * lin_random_uniform(key, j) - 1));
    }
}
