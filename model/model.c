// model.c - creating a model, its feature parameters and its fingerprint; see model.h.

#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "model/phone_names.h"

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

int lin_features_equal(const lin_features *a, const lin_features *b)
{
    return a->sample_hz == b->sample_hz && a->window_ms == b->window_ms && a->hop_ms == b->hop_ms && a->low_hz == b->low_hz &&
           a->high_hz == b->high_hz && a->preemphasis == b->preemphasis;
}

const char *lin_features_difference(const lin_features *a, const lin_features *b, char *text, size_t size)
{
    const struct {
        const char *name;
        double a, b;
    } rows[] = {{"sample-hz", a->sample_hz, b->sample_hz}, {"window-ms", a->window_ms, b->window_ms},
                {"hop-ms", a->hop_ms, b->hop_ms},          {"low-hz", a->low_hz, b->low_hz},
                {"high-hz", a->high_hz, b->high_hz},       {"preemphasis", a->preemphasis, b->preemphasis}};
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && n < size; i++)
        if (rows[i].a != rows[i].b)
            n += (size_t)snprintf(text + n, size - n, "%s%s %g, not %g", n ? "; " : "", rows[i].name, rows[i].a, rows[i].b);
    return text;
}

// "<blank> 1 2 ... V-1", or another first one
static char *numbered_phones(const char *first, int V)
{
    const size_t size = 8 + (size_t)V * 6;
    char *text = lin_alloc(size, 1);
    size_t at = text ? (size_t)snprintf(text, size, "%s", first) : 0;
    for (int i = 1; text && i < V; i++) at += (size_t)snprintf(text + at, size - at, " %d", i);
    return text;
}

static lin_status fill(lin_model *m, const char *phones, int with_stored, lin_error *err)
{
    lin_status status = lin_params_create(&m->config, &m->params, err);
    if (status == LIN_OK) status = lin_features_check(&m->features, err);
    if (status != LIN_OK) return status;
    const size_t D = (size_t)m->config.mel_bins;
    m->values = (with_stored ? lin_alloc_sparse : lin_alloc)(m->params.n_elements, sizeof *m->values);
    m->stored = with_stored ? lin_calloc((size_t)m->params.n_tensors, sizeof *m->stored) : NULL;
    m->mean = lin_calloc(D, sizeof *m->mean);
    m->istd = lin_alloc(D, sizeof *m->istd);
    m->phones = phones ? lin_strdup(phones) : numbered_phones(m->config.tokens ? "0" : "<blank>", lin_config_symbols(&m->config));
    m->name = lin_strdup("");
    m->license = lin_strdup("");
    m->provenance = lin_strdup("");
    if (!m->values || (with_stored && !m->stored) || !m->mean || !m->istd || !m->phones || !m->name || !m->license ||
        !m->provenance)
        return lin_no_memory(err, "a model", m->params.n_elements * sizeof *m->values);
    int count;
    status = lin_phones_split(m->phones, &count, &m->phone, err);
    if (status != LIN_OK) return status;
    if (count != lin_config_symbols(&m->config))
        return lin_fail(err, LIN_INVALID, "phones: %d names, but the network has %d outputs", count,
                        lin_config_symbols(&m->config));
    for (size_t d = 0; d < D; d++) m->istd[d] = 1;
    return LIN_OK;
}

lin_status lin_model_create_raw(const lin_config *config, const lin_features *features, const char *phones, int with_stored,
                                lin_model **model, lin_error *err)
{
    *model = NULL;
    lin_model *m = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a model", sizeof *m);
    m->config = *config;
    m->features = *features;
    lin_status status = fill(m, phones, with_stored, err);
    if (status != LIN_OK) {
        lin_model_destroy(m);
        return status;
    }
    *model = m;
    return LIN_OK;
}

lin_status lin_model_create(const lin_config *config, const lin_features *features, const char *phones, uint64_t seed,
                            lin_model **model, lin_error *err)
{
    lin_status status = lin_model_create_raw(config, features, phones, 0, model, err);
    if (status != LIN_OK) return status;
    lin_params_init(&(*model)->params, (*model)->values, seed);
    lin_model_seal(*model);
    return LIN_OK;
}

lin_status lin_model_check_sound(const lin_model *m, const char *name, lin_error *err)
{
    if (!m->config.tokens) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED,
                    "%s is a network of tokens: it takes no sound, and has no phones; use a model of speech", name);
}

void lin_model_destroy(lin_model *m)
{
    if (!m) return;
    lin_params_free(&m->params);
    lin_file_map_close(&m->file);
    void *blocks[] = {m->values, m->stored, m->mean, m->istd, m->phones, m->phone, m->name, m->license, m->provenance, m};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

// Heads of `old` elements in heads of `now`: where element i of all of them comes to lie.
typedef struct heads {
    int old, now;
} heads;

static size_t place(heads h, int i) { return (size_t)(i / h.old * h.now + i % h.old); }

static const heads as_they_are = {1, 1};

// A tensor into a larger one, from row `first` on. What only `to` has becomes 0, but whole rows that keep their values: units
// that begin with outputs of 0 change nothing, and their inputs differ.
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

// The network in front of a norm of more channels, of which the new ones are 0: the deviation is smaller by the root of the share
// of the old ones (their mean, which is near 0, is neglected), and the weights make up for it.
static void widen_norm(lin_model *to, const int norm[2], heads h)
{
    const int C = lin_config_width(&to->config), old = to->config.heads * h.old;
    float *weight = to->values + to->params.table[norm[0]].offset;
    for (int c = 0; c < C; c++) weight[c] = (float)((c < old ? (double)weight[c] : 1) * sqrt((double)old / C));
}

// New elements of keys begin near 0 (φ is e^-6), so that old queries and keys meet as before.
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

// Whether the heads may be wider than those of a network with the same function: what reads its channels are norms.
static int can_widen(const lin_config *c)
{
    return c->network == LIN_NETWORK_TRANSFORMER && c->norm == LIN_NORM_PRE && c->attention == LIN_ATTENTION_LINEAR &&
           c->feature_map == LIN_MAP_ELU && c->positions != LIN_POSITIONS_SINUSOID;
}

lin_status lin_model_copy_weights(lin_model *to, const lin_model *from, lin_error *err)
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

lin_status lin_model_label(lin_model *m, const char *name, const char *license, const char *provenance, lin_error *err)
{
    if (provenance && *provenance) {
        cJSON *json;
        lin_status status = lin_json_parse(provenance, strlen(provenance), "provenance", 0, &json, err);
        if (status != LIN_OK) return status;
        cJSON_Delete(json);
    }
    const char *from[] = {name, license, provenance};
    char *copies[3] = {NULL}, **to[] = {&m->name, &m->license, &m->provenance};
    int good = 1;
    for (int i = 0; i < 3; i++)
        if (from[i]) good &= (copies[i] = lin_strdup(from[i])) != NULL;
    for (int i = 0; i < 3; i++) {
        if (good && from[i]) {
            lin_free(*to[i]);
            *to[i] = copies[i];
        } else {
            lin_free(copies[i]);
        }
    }
    return good ? LIN_OK : lin_no_memory(err, "the labels of a model", strlen(provenance ? provenance : ""));
}

// Of all that is not a weight.
static uint64_t hash_kind(const lin_model *m)
{
    const lin_config *c = &m->config;
    const lin_features *f = &m->features;
    const int32_t whole[] = {c->layers, c->heads, c->head_width,     c->feedforward, c->mel_bins,    c->outputs, c->stack,
                             c->ahead,  (int)c->positions, c->conv_kernel, c->conv_layers, (int)c->norm, c->causal,
                             f->sample_hz};
    const double real[] = {f->window_ms, f->hop_ms, f->low_hz, f->high_hz, f->preemphasis};
    const size_t D = (size_t)c->mel_bins;
    uint64_t hash = lin_hash(whole, sizeof whole, 0);
    hash = lin_hash(real, sizeof real, hash);
    hash = lin_hash(m->phones, strlen(m->phones), hash);
    hash = lin_hash(m->mean, D * sizeof *m->mean, hash);
    hash = lin_hash(m->istd, D * sizeof *m->istd, hash);
    if (f->level_db > 0) hash = lin_hash(&f->level_db, sizeof f->level_db, hash);
    if (m->speaker_norm) hash = lin_hash(&m->speaker_norm, sizeof m->speaker_norm, hash);
    const int32_t variant[] = {(int)c->network, (int)c->attention, (int)c->feature_map, c->features, c->lsh_rounds,
                               c->lsh_chunk,    c->width};
    const int32_t decay = (int)c->decay;
    if (!lin_config_is_plain(c)) hash = lin_hash(variant, sizeof variant, hash);
    if (decay) hash = lin_hash(&decay, sizeof decay, hash);
    const int32_t condition[] = {c->condition_every, 1}; // not as long as a decay
    if (c->condition_every) hash = lin_hash(condition, sizeof condition, hash);
    const int32_t tokens[] = {c->tokens, c->mixture, 1};
    if (c->tokens) hash = lin_hash(tokens, sizeof tokens, hash);
    const int32_t search[] = {c->search, 2};
    if (c->search) hash = lin_hash(search, sizeof search, hash);
    return hash;
}

uint64_t lin_model_fingerprint(const lin_model *m, const float *values)
{
    return lin_hash(values, m->params.n_elements * sizeof *values, hash_kind(m));
}

static void add_halves(lin_hasher *h, const unsigned char *half, size_t count)
{
    enum { PIECE = 2048 };
    float piece[PIECE];
    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;
        lin_half_widen(half + 2 * i, n, piece);
        lin_hash_add(h, piece, n * sizeof *piece);
    }
}

static void add_whole(lin_hasher *h, const lin_stored *from, size_t n, size_t k)
{
    enum { PIECE = 2048 };
    float piece[PIECE], scale;
    for (size_t r = 0; r < n; r++) {
        memcpy(&scale, (const unsigned char *)from->scales + r * sizeof scale, sizeof scale);
        for (size_t i = 0; i < k; i += PIECE) {
            const size_t count = k - i < PIECE ? k - i : PIECE;
            lin_int8_widen((const signed char *)from->whole + r * k + i, count, scale, piece);
            lin_hash_add(h, piece, count * sizeof *piece);
        }
    }
}

void lin_model_seal(lin_model *m)
{
    lin_hasher h;
    lin_hash_begin(&h, hash_kind(m));
    for (int i = 0; i < m->params.n_tensors; i++) { // one after the other in values
        const lin_param *t = &m->params.table[i];
        const size_t count = lin_param_count(t);
        const lin_stored stored = m->stored ? m->stored[i] : (lin_stored){NULL, NULL, NULL};
        if (stored.half) add_halves(&h, stored.half, count);
        else if (stored.whole) add_whole(&h, &stored, (size_t)t->n, (size_t)t->k);
        else lin_hash_add(&h, m->values + t->offset, count * sizeof *m->values);
    }
    m->fingerprint = lin_hash_end(&h);
}
