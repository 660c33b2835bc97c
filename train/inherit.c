// inherit.c - weights and provenance from one model to another; see inherit.h.

#include "train/inherit.h"

#include <math.h>
#include <string.h>

/* ---- weights --------------------------------------------------------------------------------------------------------------- */

// Heads of width `old` inside heads of width `now`: maps element i of all heads.
typedef struct heads {
    int old, now;
} heads;

static size_t place(heads h, int i) { return (size_t)(i / h.old * h.now + i % h.old); }

static const heads as_they_are = {1, 1};

// Copies a tensor into a larger one, from row `first` on. New columns become 0, and so do new rows, unless keeps_rows: these are
// the inputs of units whose outputs are 0, and keep their random values, which must differ.
static void copy_tensor(float *to, const lin_param *is, const float *from, const lin_param *was, int first, heads rows,
                        heads columns, int keeps_rows)
{
    const size_t width = (size_t)(is->k ? is->k : 1);
    const int old = was->k ? was->k : 1;
    if (!keeps_rows) memset(to, 0, (size_t)is->n * width * sizeof *to);
    for (int r = 0; r < was->n; r++, from += old) {
        float *row = to + place(rows, first + r) * width;
        memset(row, 0, width * sizeof *row);
        for (int c = 0; c < old; c++) row[place(columns, c)] = from[c];
    }
}

// With additional channels that are 0, a norm's deviation is smaller by the root of the old channels' share (their mean, near 0,
// is neglected): scales the norm's weights accordingly.
static void widen_norm(lin_model *to, const int norm[2], heads h)
{
    const int C = lin_config_width(&to->config), old = to->config.heads * h.old;
    float *weight = to->values + to->params.table[norm[0]].offset;
    for (int c = 0; c < C; c++) weight[c] = (float)((c < old ? (double)weight[c] : 1) * sqrt((double)old / C));
}

// New elements of keys begin near 0 (φ is e^-6), so that products of queries and keys stay nearly as they were.
static void quiet_keys(lin_model *to, const int qkv[2], heads h)
{
    const int C = lin_config_width(&to->config);
    float *weight = to->values + to->params.table[qkv[0]].offset, *bias = to->values + to->params.table[qkv[1]].offset;
    for (int r = C; r < 2 * C; r++) {
        if (r % h.now < h.old) continue;
        memset(weight + (size_t)r * (size_t)C, 0, (size_t)C * sizeof *weight);
        bias[r] = -6;
    }
}

static void widen(lin_model *to, heads h)
{
    for (int l = 0; l < to->config.layers; l++) {
        const lin_param_layer *p = &to->params.layers[l];
        widen_norm(to, p->norm1, h);
        widen_norm(to, p->norm2, h);
        quiet_keys(to, p->qkv, h);
    }
    widen_norm(to, to->params.norm, h);
}

// Whether heads can be widened without changing the function: only norms may read the channels.
static int can_widen(const lin_config *c)
{
    return c->network == LIN_NETWORK_TRANSFORMER && c->norm == LIN_NORM_PRE && c->attention == LIN_ATTENTION_LINEAR &&
           c->feature_map == LIN_MAP_ELU && c->positions != LIN_POSITIONS_SINUSOID;
}

lin_status lin_inherit_weights(lin_model *to, const lin_model *from, lin_error *err)
{
    lin_config alike = from->config;
    const int K = to->config.conv_kernel, old = alike.conv_kernel, after = lin_config_conv_after(&to->config),
              first = K - after - (old - lin_config_conv_after(&alike)); // the tap of `to` at the place of from's first
    alike.causal = to->config.causal;
    if (alike.decay < to->config.decay) alike.decay = to->config.decay;
    if (!alike.condition_every) alike.condition_every = to->config.condition_every;
    if (!alike.search) alike.search = to->config.search;
    if (alike.feedforward < to->config.feedforward) alike.feedforward = to->config.feedforward;
    const heads h = {alike.head_width, to->config.head_width};
    if (h.old > 0 && h.old < h.now && can_widen(&to->config)) alike.head_width = h.now;
    if (alike.conv_layers && to->config.conv_layers) {
        alike.positions = to->config.positions;
        alike.conv_kernel = K;
    }
    const int same_shape = lin_config_same_shape(&alike, &to->config);
    if (strcmp(from->phones, to->phones) != 0 && (same_shape || !to->config.tokens)) {
        char how[128];
        return lin_fail(err, LIN_MISMATCH, "it has other phones than this network: %s",
                        lin_phones_difference(from->phones, to->phones, how, sizeof how));
    }
    if (!same_shape) return lin_fail(err, LIN_MISMATCH, "it has another shape than this network");
    if (first < 0 || first + old > K)
        return lin_fail(err, LIN_MISMATCH, "its convolutions have %d taps, some of which this network's %d taps do not reach",
                        old, K);
    for (int i = 0, j = 0; i < to->params.n_tensors; i++) { // in the same order; j: the next tensor of `from`
        const lin_param *a = &from->params.table[j], *b = &to->params.table[i];
        if (j == from->params.n_tensors || strcmp(a->name, b->name) != 0) continue; // which `from` lacks
        j++;
        const int is_conv = a->n != b->n && strstr(b->name, ".conv.weight"), is_qkv = strstr(b->name, ".qkv.") != NULL;
        copy_tensor(to->values + b->offset, b, from->values + a->offset, a, is_conv ? first : 0, is_qkv ? h : as_they_are,
                    strstr(b->name, ".out.weight") ? h : as_they_are, is_qkv || strstr(b->name, ".ff1."));
    }
    if (to->config.search && !from->config.search)
        for (int i = 0; i < 2; i++)
            memcpy(to->values + to->params.table[to->params.search[i]].offset,
                   to->values + to->params.table[to->params.output[i]].offset,
                   lin_param_count(&to->params.table[to->params.output[i]]) * sizeof *to->values);
    if (h.old != h.now) widen(to, h);
    lin_model_seal(to);
    return LIN_OK;
}

/* ---- provenance ------------------------------------------------------------------------------------------------------------ */

static const char *const keys[] = {"trained_on", "also_trained_on"};
enum { KEYS = sizeof keys / sizeof *keys };

static int has(const cJSON *json, const char *name)
{
    for (int k = 0; k < KEYS; k++) {
        const cJSON *set;
        cJSON_ArrayForEach(set, cJSON_GetObjectItemCaseSensitive(json, keys[k]))
        {
            const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(set, "set"));
            if (other && strcmp(name, other) == 0) return 1;
        }
    }
    return 0;
}

static int add_set(cJSON *json, const cJSON *set)
{
    cJSON *also = cJSON_GetObjectItemCaseSensitive(json, "also_trained_on");
    if (!also) also = cJSON_AddArrayToObject(json, "also_trained_on");
    cJSON *copy = cJSON_Duplicate(set, 1);
    if (copy && cJSON_AddItemToArray(also, copy)) return 1;
    cJSON_Delete(copy);
    return 0;
}

int lin_inherit_provenance(cJSON *json, const char *other)
{
    cJSON *from = cJSON_Parse(other); // NULL: a model whose provenance is not known
    int good = 1;
    for (int k = 0; k < KEYS; k++) {
        const cJSON *set;
        cJSON_ArrayForEach(set, cJSON_GetObjectItemCaseSensitive(from, keys[k]))
        {
            const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(set, "set"));
            if (name && !has(json, name)) good = good && add_set(json, set);
        }
    }
    cJSON_Delete(from);
    return good;
}
