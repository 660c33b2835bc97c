// config.c - limits of a configuration, and where each parameter lies; see config.h.

#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "model/network.h"

#ifdef LIN_NO_PAPER
enum { HAS_PAPER = 0 };
#else
enum { HAS_PAPER = 1 };
#endif

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

// A field of a variant is 0 in all others; `of` names the variant.
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
    const char *convolved = transformer || conv ? transformer : "positions = conv";
    const char *forgets = transformer || !linear || c->feature_map != LIN_MAP_ELU || !c->causal
                              ? "causal linear attention with feature_map = elu" : NULL;
    const range ranges[] = {
        {"network", (int)c->network, LIN_NETWORK_TRANSFORMER, LIN_NETWORK_LSTM, NULL},
        {"attention", (int)c->attention, LIN_ATTENTION_LINEAR, LIN_ATTENTION_LSH, transformer},
        {"feature_map", (int)c->feature_map, LIN_MAP_ELU, LIN_MAP_RANDOM,
         transformer ? transformer : linear ? NULL : "attention = linear"},
        {"features", c->features, 1, LIN_MOST_FEATURES, c->feature_map == LIN_MAP_RANDOM ? NULL : "feature_map = random"},
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
        {"conv_kernel", c->conv_kernel, 1, 63, convolved},
        {"conv_layers", c->conv_layers, 1, c->layers, convolved},
        {"norm", (int)c->norm, LIN_NORM_POST, LIN_NORM_PRE, transformer},
        {"condition_every", c->condition_every, 0, c->layers - 1,
         transformer ? transformer : c->mixture ? "a network without a mixture" : NULL},
        {"search", c->search, 0, 1, transformer ? transformer : c->tokens ? "a network of sound" : NULL},
        {"voice", c->voice, 0, 1024, c->tokens || c->search || c->condition_every ? "a network of sound with one output" : NULL},
        {"causal", c->causal, 0, 1, NULL},
        {"tokens", c->tokens, 0, 65536, NULL},
        {"mixture", c->mixture, 0, 64, c->tokens ? NULL : "a network of tokens"}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        LIN_TRY(check_range(&ranges[i], err));
    }
    const lin_attention *attention = lin_attention_of(c);
    if (!lin_network_of(c) || !attention || (c->mixture && !HAS_PAPER)) {
        char variant[64];
        lin_config_variant(c, variant, sizeof variant);
        return lin_fail(err, LIN_UNSUPPORTED, LIN_WITHOUT_PAPER ", which has networks of this kind (%s)", variant);
    }
    LIN_TRY(attention->check ? attention->check(c, err) : LIN_OK);
    if (c->positions == LIN_POSITIONS_CENTRED_CONV && c->causal)
        return lin_fail(
            err, LIN_INVALID,
            "network configuration: the convolution of positions = centred-conv reads later frames, which a causal network "
            "does not; use conv, or direction = bidirectional");
    if (c->tokens && (c->stack != 1 || c->ahead))
        return lin_fail(err, LIN_INVALID, "network configuration: tokens come one by one: stack is 1 and ahead 0");
    if (c->mixture && c->outputs != 3 * c->mixture)
        return lin_fail(err, LIN_INVALID, "network configuration: a mixture of %d has %d outputs, not %d", c->mixture,
                        3 * c->mixture, c->outputs);
    if (!(c->dropout >= 0 && c->dropout < 1))
        return lin_fail(err, LIN_INVALID, "network configuration: dropout is %g; must be at least 0 and below 1", c->dropout);
    return LIN_OK;
}

int lin_config_is_plain(const lin_config *c)
{
    return !c->network && !c->attention && !c->feature_map && !c->features && !c->lsh_rounds && !c->lsh_chunk && !c->width &&
           !c->decay;
}

double lin_config_flop(const lin_config *c)
{
    const double C = lin_config_width(c), F = c->feedforward, E = c->head_width;
    if (c->network == LIN_NETWORK_LSTM)
        return 2 * (4 * C * (lin_config_input_width(c) + (c->layers - 1) * C + c->layers * c->width) + C * c->outputs);
    // the matrices, then per head phi(k) v', phi(q)' S, z and the denominator
    return 2 * (lin_config_input_width(c) * C + c->layers * (4 * C * C + 2 * C * F) + C * c->outputs) +
           c->layers * c->heads * (4 * E * E + 3 * E) + c->conv_layers * 2.0 * c->conv_kernel * C;
}

int lin_config_same_shape(const lin_config *a, const lin_config *b) { return memcmp(a, b, LIN_CONFIG_SHAPE) == 0; }

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
    return lin_attention_of(c)->whole;
}

int lin_params_add(lin_params *p, int n, int k, int fan_in, int layer, const char *name)
{
    lin_param *t = &p->table[p->n_tensors];
    *t = (lin_param){.offset = p->n_elements, .n = n, .k = k, .fan_in = fan_in, .decay = k > 0, .parts = k > 0};
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s", name);
    else snprintf(t->name, sizeof t->name, "layers.%d.%s", layer, name);
    p->n_elements += lin_param_count(t);
    return p->n_tensors++;
}

void lin_params_add_pair(lin_params *p, int pair[2], int n, int k, int layer, const char *name)
{
    char full[24];
    for (int i = 0; i < 2; i++) {
        snprintf(full, sizeof full, "%s.%s", name, i ? "bias" : "weight");
        pair[i] = lin_params_add(p, n, i ? 0 : k, k, layer, full);
        p->table[pair[i]].is_scale = k == 0 && i == 0;
    }
}

lin_status lin_params_create(const lin_config *c, lin_params *p, lin_error *err)
{
    *p = (lin_params){.embedding = -1, .input = {-1, -1}, .norm = {-1, -1}, .condition = {-1, -1}, .voice = {-1, -1},
                        .output = {-1, -1}, .search = {-1, -1}};
    LIN_TRY(lin_config_check(c, err));
    const size_t n = 10 + (size_t)c->layers * 17;
    p->table = lin_calloc(n, sizeof *p->table);
    p->layers = lin_calloc((size_t)c->layers, sizeof *p->layers);
    if (!p->table || !p->layers) {
        lin_params_free(p);
        return lin_no_memory(err, "the table of parameters", n * sizeof *p->table);
    }
    memset(p->layers, 0xFF, (size_t)c->layers * sizeof *p->layers); // every index -1
    if (c->tokens) {
        p->embedding = lin_params_add(p, c->tokens, lin_config_width(c), 1, -1, "embedding.weight");
        p->table[p->embedding].parts = 0; // read row by row, not packed for products
    }
    lin_network_of(c)->parameters(c, p);
    if (c->voice) {
        lin_params_add_pair(p, p->voice, c->voice, 2 * lin_config_width(c), -1, "voice");
        p->output[0] = lin_params_add(p, c->outputs, c->voice, c->voice, -1, "output.weight");
        return LIN_OK;
    }
    lin_params_add_pair(p, p->output, c->outputs, lin_config_width(c), -1, "output");
    if (c->search) lin_params_add_pair(p, p->search, c->outputs, lin_config_width(c), -1, "search");
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
        const size_t count = lin_param_count(t);
        const uint64_t key = lin_random_key(seed, (uint64_t)i);
        if (t->draw) t->draw(values + t->offset, t->heads, t->n / t->heads, t->k, key);
        if (t->is_fixed) continue;
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

/* ---- feature parameters ---------------------------------------------------------------------------------------------------- */

lin_features lin_features_default(void)
{
    return (lin_features){
        .sample_hz = 16000, .window_ms = 25, .hop_ms = 10, .low_hz = 20, .high_hz = 0, .preemphasis = 0.97};
}

lin_status lin_features_check(const lin_features *f, lin_error *err)
{
    if (f->sample_hz < 4000 || f->sample_hz > 192000)
        return lin_fail(err, LIN_INVALID, "features: sample_hz is %d; must be 4000 to 192000", f->sample_hz);
    const double nyquist = f->sample_hz / 2.0;
    if (!(f->window_ms > 0 && f->window_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "features: window_ms is %g; must be above 0 and at most 1000", f->window_ms);
    if (!(f->hop_ms > 0 && f->hop_ms <= f->window_ms))
        return lin_fail(err, LIN_INVALID, "features: hop_ms is %g; must be above 0 and at most window_ms, %g", f->hop_ms,
                        f->window_ms);
    if (!(f->low_hz >= 0 && f->low_hz < nyquist))
        return lin_fail(err, LIN_INVALID, "features: low_hz is %g; must be at least 0 and below %g", f->low_hz, nyquist);
    const double high = f->high_hz > 0 ? f->high_hz : nyquist + f->high_hz;
    if (!(high > f->low_hz && high <= nyquist))
        return lin_fail(err, LIN_INVALID, "features: high_hz is %g; must be above low_hz, %g, and at most %g", f->high_hz,
                        f->low_hz, nyquist);
    if (!(f->level_db >= 0 && f->level_db <= 150) || (f->level_db > 0 && f->level_db < 1))
        return lin_fail(err, LIN_INVALID, "features: level_db is %g; must be 1 to 150, or 0", f->level_db);
    if (!(f->preemphasis >= 0 && f->preemphasis <= 1))
        return lin_fail(err, LIN_INVALID, "features: preemphasis is %g; must be 0 to 1", f->preemphasis);
    return LIN_OK;
}

const char *lin_features_value(const lin_features *f, int i, double *value)
{
    const struct {
        const char *name;
        double value;
    } rows[] = {{"sample-hz", f->sample_hz}, {"window-ms", f->window_ms}, {"hop-ms", f->hop_ms},
                {"low-hz", f->low_hz},       {"high-hz", f->high_hz},     {"preemphasis", f->preemphasis}};
    if (i >= (int)(sizeof rows / sizeof *rows)) return NULL;
    *value = rows[i].value;
    return rows[i].name;
}

int lin_features_equal(const lin_features *a, const lin_features *b)
{
    char text[256];
    return !*lin_features_difference(a, b, text, sizeof text);
}

const char *lin_features_difference(const lin_features *a, const lin_features *b, char *text, size_t size)
{
    const char *name;
    double of_a, of_b;
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; (name = lin_features_value(a, i, &of_a)) && lin_features_value(b, i, &of_b) && n < size; i++)
        if (of_a != of_b) n += (size_t)snprintf(text + n, size - n, "%s%s %g, not %g", n ? "; " : "", name, of_a, of_b);
    return text;
}
