// model.c - models in memory and on disk: feature parameters, names of outputs, metadata, tensors and checksums; see model.h.

#include "model/model.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/pool.h"
#include "base/system.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "kernels/ops.h"

static const char version[] = "3", scale_suffix[] = ".scale", mean_name[] = "features.mean", istd_name[] = "features.istd",
                  checkpoint_prefix[] = "train.";

/* ---- the names of the outputs ---------------------------------------------------------------------------------------------- */

static size_t name_length(const char *at) { return strcspn(at, " \t"); }

// Adds the name at `at`, which has n bytes, tab and all, up to the next space.
static lin_status add_name(const char *at, size_t n, lin_symbols *names, lin_error *err)
{
    const size_t name = name_length(at);
    const int number = names->n + 1, has_tab = name < n;
    int index;
    if (has_tab && memchr(at + name + 1, '\t', n - name - 1))
        return lin_fail(err, LIN_INVALID, "phones: name %d has two tabs", number);
    if (name > LIN_PHONE_BYTES || n > name + 1 + LIN_PHONE_BYTES)
        return lin_fail(err, LIN_INVALID, "phones: name %d is longer than %d bytes", number, (int)LIN_PHONE_BYTES);
    if (!name || (has_tab && n == name + 1))
        return lin_fail(err, LIN_INVALID, "phones: name %d is empty; single spaces separate names", number);
    LIN_TRY(lin_symbols_add(names, at, name, &index, err));
    return index + 1 == number ? LIN_OK : lin_fail(err, LIN_INVALID, "phones: %.*s is repeated", (int)name, at);
}

lin_status lin_phones_split(const char *phones, lin_symbols *names, lin_error *err)
{
    *names = (lin_symbols){0};
    const size_t length = strlen(phones), good = lin_utf8_prefix(phones, length, "\t");
    if (good < length) return lin_fail(err, LIN_INVALID, "phones: byte %zu is not UTF-8 text", good);
    lin_status status = LIN_OK;
    for (size_t at = 0, n; at <= length && status == LIN_OK; at += n + 1) {
        n = strcspn(phones + at, " ");
        status = add_name(phones + at, n, names, err);
    }
    if (status == LIN_OK && (names->n < 2 || names->n > 65536))
        status = lin_fail(err, LIN_INVALID, "phones: %d names; there must be 2 to 65536, the blank's first", names->n);
    if (status != LIN_OK) lin_symbols_free(names);
    return status;
}

// The first name of one text that the other lacks; NULL: none.
static const char *only_in(const char *one, const char *other)
{
    for (const char *at = one; *at; at += strcspn(at, " "), at += *at == ' ') {
        const size_t n = name_length(at);
        const char *found = other;
        while (*found && (name_length(found) != n || memcmp(found, at, n) != 0)) {
            found += strcspn(found, " ");
            found += *found == ' ';
        }
        if (!*found) return at;
    }
    return NULL;
}

const char *lin_phones_difference(const char *first, const char *second, char *out, size_t size)
{
    const char *name = only_in(first, second), *where = "first";
    if (!name) name = only_in(second, first), where = "second";
    if (name) snprintf(out, size, "'%.*s' is only in the %s", (int)name_length(name), name, where);
    else snprintf(out, size, "they have another order, another language or other IPA");
    return out;
}

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

// "<blank> 1 2 ... V-1", or with another first name
static char *numbered_phones(const char *first, int V)
{
    const size_t size = 8 + (size_t)V * 6;
    char *text = lin_alloc(size, 1);
    size_t at = text ? (size_t)snprintf(text, size, "%s", first) : 0;
    for (int i = 1; text && i < V; i++) at += (size_t)snprintf(text + at, size - at, " %d", i);
    return text;
}

// Creates a model with its table of parameters, so that a file can be checked before anything large is allocated. *model is made
// in any case but LIN_NO_MEMORY.
static lin_status begin(const lin_config *config, const lin_features *features, lin_model **model, lin_error *err)
{
    lin_model *m = *model = lin_calloc(1, sizeof *m);
    if (!m) return lin_no_memory(err, "a model", sizeof *m);
    m->config = *config;
    m->features = *features;
    LIN_TRY(lin_params_create(&m->config, &m->params, err));
    return lin_features_check(&m->features, err);
}

// Allocates the rest; the weights are not initialised. with_stored: most tensors will be in `stored`.
static lin_status fill(lin_model *m, const char *phones, int with_stored, lin_error *err)
{
    const size_t D = (size_t)m->config.mel_bins;
    const int symbols = lin_config_symbols(&m->config);
    m->values = (with_stored ? lin_alloc_sparse : lin_alloc)(m->params.n_elements, sizeof *m->values);
    m->stored = with_stored ? lin_calloc((size_t)m->params.n_tensors, sizeof *m->stored) : NULL;
    m->mean = lin_calloc(D, sizeof *m->mean);
    m->istd = lin_alloc(D, sizeof *m->istd);
    m->phones = phones ? lin_strdup(phones) : numbered_phones(m->config.tokens || m->config.voice ? "0" : "<blank>", symbols);
    m->name = lin_strdup("");
    m->license = lin_strdup("");
    m->provenance = lin_strdup("");
    if (!m->values || (with_stored && !m->stored) || !m->mean || !m->istd || !m->phones || !m->name || !m->license ||
        !m->provenance)
        return lin_no_memory(err, "a model", m->params.n_elements * sizeof *m->values);
    LIN_TRY(lin_phones_split(m->phones, &m->phone, err));
    if (m->phone.n != symbols)
        return lin_fail(err, LIN_INVALID, "phones: %d names, but the network has %d outputs", m->phone.n, symbols);
    for (size_t d = 0; d < D; d++) m->istd[d] = 1;
    return LIN_OK;
}

lin_status lin_model_create(const lin_config *config, const lin_features *features, const char *phones, uint64_t seed,
                            lin_model **model, lin_error *err)
{
    lin_status status = begin(config, features, model, err);
    if (status == LIN_OK) status = fill(*model, phones, 0, err);
    if (status == LIN_OK) {
        lin_params_init(&(*model)->params, (*model)->values, seed);
        lin_model_seal(*model);
        return LIN_OK;
    }
    lin_model_destroy(*model);
    *model = NULL;
    return status;
}

void lin_model_destroy(lin_model *m)
{
    if (!m) return;
    lin_params_free(&m->params);
    lin_symbols_free(&m->phone);
    lin_file_map_close(&m->file);
    void *blocks[] = {m->values, m->stored, m->mean, m->istd, m->phones, m->name, m->license, m->provenance, m};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
}

lin_status lin_model_check_sound(const lin_model *m, const char *name, lin_error *err)
{
    if (m->config.voice)
        return lin_fail(err, LIN_UNSUPPORTED, "%s is a network of voices: it has no phones; use a model of speech", name);
    if (!m->config.tokens) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED,
                    "%s is a network of tokens: it takes no sound, and has no phones; use a model of speech", name);
}

lin_status lin_model_label(lin_model *m, const char *name, const char *license, const char *provenance, lin_error *err)
{
    if (provenance && *provenance) {
        cJSON *json;
        LIN_TRY(lin_json_parse(provenance, strlen(provenance), "provenance", 0, &json, err));
        cJSON_Delete(json);
    }
    const char *const lines[] = {name, license};
    for (int i = 0; i < 2; i++) {
        const size_t n = lines[i] ? strlen(lines[i]) : 0;
        if (n && lin_utf8_prefix(lines[i], n, "") < n)
            return lin_fail(err, LIN_INVALID, "the %s of a model must be one line of UTF-8 text", i ? "licence" : "name");
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

// The fingerprint of the model with these weights in place of its own.
static uint64_t fingerprint_with(const lin_model *m, const float *values)
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
    const int32_t voice[] = {c->voice, 3};
    if (c->voice) hash = lin_hash(voice, sizeof voice, hash);
    return lin_hash(values, m->params.n_elements * sizeof *values, hash);
}

void lin_model_seal(lin_model *m) { m->fingerprint = fingerprint_with(m, m->values); }

/* ---- the metadata of a file ------------------------------------------------------------------------------------------------ */

// The key "variant" is written only if it differs from the paper's network; those of `optional`, decay and level_db only if set.
static const char *const norm_names[] = {"post", "pre", NULL}, *const normalizations[] = {"global", "speaker"};

#define AT(field) offsetof(lin_config, field)
static const lin_json_field config_fields[] = {
    {"layers", LIN_JSON_INT, AT(layers), NULL},
    {"heads", LIN_JSON_INT, AT(heads), NULL},
    {"head_width", LIN_JSON_INT, AT(head_width), NULL},
    {"feedforward", LIN_JSON_INT, AT(feedforward), NULL},
    {"mel_bins", LIN_JSON_INT, AT(mel_bins), NULL},
    {"outputs", LIN_JSON_INT, AT(outputs), NULL},
    {"stack", LIN_JSON_INT, AT(stack), NULL},
    {"ahead", LIN_JSON_INT, AT(ahead), NULL},
    {"positions", LIN_JSON_NAME, AT(positions), lin_position_names},
    {"conv_kernel", LIN_JSON_INT, AT(conv_kernel), NULL},
    {"conv_layers", LIN_JSON_INT, AT(conv_layers), NULL},
    {"norm", LIN_JSON_NAME, AT(norm), norm_names},
    {"causal", LIN_JSON_BOOL, AT(causal), NULL},
    {"dropout", LIN_JSON_DOUBLE, AT(dropout), NULL}};
static const lin_json_field variant_fields[] = {
    {"network", LIN_JSON_NAME, AT(network), lin_network_names},
    {"attention", LIN_JSON_NAME, AT(attention), lin_attention_names},
    {"feature_map", LIN_JSON_NAME, AT(feature_map), lin_feature_map_names},
    {"features", LIN_JSON_INT, AT(features), NULL},
    {"lsh_rounds", LIN_JSON_INT, AT(lsh_rounds), NULL},
    {"lsh_chunk", LIN_JSON_INT, AT(lsh_chunk), NULL},
    {"width", LIN_JSON_INT, AT(width), NULL}};
static const struct {
    const char *key;
    size_t at; // of an int
    int most;
} optional[] = {{"condition_every", AT(condition_every), 63},
                {"tokens", AT(tokens), 65536},
                {"mixture", AT(mixture), 64},
                {"voice", AT(voice), 1024},
                {"search", AT(search), 1}};
#undef AT

// Feature parameters that are the same in every model are written too, so that other programs can compute the same features.
static const char *const fixed[][2] = {{"\"log-mel\"", NULL}, {"\"povey\"", NULL}, {"true", NULL}, {"0", NULL}};
#define AT(field) offsetof(lin_features, field)
static const lin_json_field feature_fields[] = {
    {"type", LIN_JSON_FIXED, 0, fixed[0]},
    {"sample_hz", LIN_JSON_INT, AT(sample_hz), NULL},
    {"window_ms", LIN_JSON_DOUBLE, AT(window_ms), NULL},
    {"hop_ms", LIN_JSON_DOUBLE, AT(hop_ms), NULL},
    {"low_hz", LIN_JSON_DOUBLE, AT(low_hz), NULL},
    {"high_hz", LIN_JSON_DOUBLE, AT(high_hz), NULL},
    {"preemphasis", LIN_JSON_DOUBLE, AT(preemphasis), NULL},
    {"window", LIN_JSON_FIXED, 0, fixed[1]},
    {"remove_dc", LIN_JSON_FIXED, 0, fixed[2]},
    {"snip_edges", LIN_JSON_FIXED, 0, fixed[2]},
    {"dither", LIN_JSON_FIXED, 0, fixed[3]}};
#undef AT
enum {
    N_CONFIG = sizeof config_fields / sizeof *config_fields,
    N_VARIANT = sizeof variant_fields / sizeof *variant_fields,
    N_FEATURES = sizeof feature_fields / sizeof *feature_fields,
    N_OPTIONAL = sizeof optional / sizeof *optional,
    N_TEXTS = 15 + N_OPTIONAL // at most, not counting those of a checkpoint
};

static lin_status need_text(const lin_safetensors *st, const char *key, const char *file, const char **value, lin_error *err)
{
    *value = lin_safetensors_text(st, key);
    if (*value) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: the metadata have no %s; this is not a linnet model, or an incomplete one", file, key);
}

// Reads fields of a struct from a JSON text; if the text is missing they keep their values, unless it is needed.
static lin_status read_fields(const lin_safetensors *st, const char *file, const char *key, int is_needed,
                              const lin_json_field *fields, int n, void *to, lin_error *err)
{
    char name[512];
    const char *text = lin_safetensors_text(st, key);
    if (!text && !is_needed) return LIN_OK;
    LIN_TRY(need_text(st, key, file, &text, err));
    snprintf(name, sizeof name, "%.*s: %s", (int)sizeof name - 16, file, key);
    return lin_json_read(text, name, fields, n, to, err);
}

// Reads a text that must be one of the names; if it is missing, *value stays.
static lin_status read_name(const lin_safetensors *st, const char *file, const char *key, const char *const *names, int n,
                            const char *supported, int *value, lin_error *err)
{
    const char *text = lin_safetensors_text(st, key);
    if (!text) return LIN_OK;
    for (int i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0) {
            *value = i;
            return LIN_OK;
        }
    return lin_fail(err, LIN_UNSUPPORTED, "%s: %s is \"%.32s\"; this program supports %s", file, key, lin_utf8_line(text),
                    supported);
}

// Reads a number that only some files have; if it is missing, *value stays.
static lin_status read_number(const lin_safetensors *st, const char *file, const char *key, int most, int *value, lin_error *err)
{
    const char *text = lin_safetensors_text(st, key);
    if (!text) return LIN_OK;
    const size_t digits = strspn(text, "0123456789");
    *value = digits < 6 ? atoi(text) : 0;
    if (digits > 0 && digits < 6 && !text[digits] && *value > 0 && *value <= most) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: %s is \"%.32s\"; must be a number from 1 to %d", file, key, lin_utf8_line(text), most);
}

static lin_status read_level(const lin_safetensors *st, const char *file, double *level_db, lin_error *err)
{
    const char *text = lin_safetensors_text(st, "level_db");
    if (!text || (lin_text_number(text, strlen(text), level_db) && *level_db >= 1 && *level_db <= 150)) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: level_db is \"%.32s\"; must be a number from 1 to 150", file, lin_utf8_line(text));
}

static lin_status read_metadata(const lin_safetensors *st, const char *file, lin_config *config, lin_features *features,
                                const char **phones, lin_error *err)
{
    const char *format = lin_safetensors_text(st, "format"), *text;
    int decay = 0;
    if (!format || strcmp(format, "linnet") != 0)
        return lin_fail(err, LIN_FORMAT, "%s: a safetensors file, but not a linnet model (its format is %s%.32s%s)", file,
                        format ? "\"" : "", format ? lin_utf8_line(format) : "not given", format ? "\"" : "");
    LIN_TRY(need_text(st, "format_version", file, &text, err));
    if (strcmp(text, version) != 0)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: model format version %.16s; this program reads version %s", file,
                        lin_utf8_line(text), version);
    LIN_TRY(read_fields(st, file, "config", 1, config_fields, N_CONFIG, config, err));
    LIN_TRY(read_fields(st, file, "variant", 0, variant_fields, N_VARIANT, config, err));
    LIN_TRY(read_name(st, file, "decay", lin_decay_names, 3, "none, fixed and gated", &decay, err));
    config->decay = (lin_decay_kind)decay;
    for (size_t i = 0; i < N_OPTIONAL; i++) {
        int *to = (int *)(void *)((char *)config + optional[i].at);
        LIN_TRY(read_number(st, file, optional[i].key, optional[i].most, to, err));
    }
    LIN_TRY(read_fields(st, file, "features", 1, feature_fields, N_FEATURES, features, err));
    LIN_TRY(read_level(st, file, &features->level_db, err));
    return need_text(st, "phones", file, phones, err);
}

/* ---- loading --------------------------------------------------------------------------------------------------------------- */

static int is_of_checkpoint(const char *name) { return strncmp(name, checkpoint_prefix, sizeof checkpoint_prefix - 1) == 0; }

// "[192, 40]"
static const char *shape_text(char text[96], int n_dims, const size_t *shape)
{
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < n_dims && at < 90; i++) at += snprintf(text + at, 96 - (size_t)at, "%s%zu", i ? ", " : "", shape[i]);
    return text;
}

// types: those that the tensor may have, LIN_F32 first.
static lin_status check_tensor(const lin_safetensors *st, const char *name, int n, int k, const lin_dtype types[3],
                               const char *file, lin_error *err)
{
    const lin_tensor *t = lin_safetensors_find(st, name);
    const size_t shape[2] = {(size_t)n, (size_t)k};
    const int n_dims = k ? 2 : 1;
    if (!t) return lin_fail(err, LIN_FORMAT, "%s: tensor %s is missing", file, name);
    if (t->n_dims != n_dims || memcmp(t->shape, shape, (size_t)n_dims * sizeof *shape) != 0) {
        char have[96], want[96];
        return lin_fail(err, LIN_FORMAT, "%s: tensor %s has the shape [%s]; the configuration requires [%s]", file, name,
                        shape_text(have, t->n_dims, t->shape), shape_text(want, n_dims, shape));
    }
    if (t->dtype == types[0] || t->dtype == types[1] || t->dtype == types[2]) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: tensor %s is of type %s; must be F32%s", file, name, lin_dtype_name(t->dtype),
                    types[1] == LIN_F16 ? " or F16" : "");
}

/* "layers.0.qkv.weight.scale" */
typedef char scale_name[sizeof(((lin_param *)0)->name) + sizeof scale_suffix];
static const char *name_scale(scale_name name, const lin_param *p)
{
    snprintf(name, sizeof(scale_name), "%s%s", p->name, scale_suffix);
    return name;
}

// The tensor of a parameter in whole numbers of eight bits; NULL if it is missing or of another type.
static const lin_tensor *find_whole(const lin_safetensors *st, const lin_param *p)
{
    const lin_tensor *t = p->eight_bits ? lin_safetensors_find(st, p->name) : NULL;
    return t && t->dtype == LIN_I8 ? t : NULL;
}

static int is_part(const lin_safetensors *st, const lin_params *params, const char *name)
{
    scale_name scale;
    if (strcmp(name, mean_name) == 0 || strcmp(name, istd_name) == 0) return 1;
    for (int j = 0; j < params->n_tensors; j++) {
        const lin_param *p = &params->table[j];
        if (strcmp(name, p->name) == 0) return 1;
        if (find_whole(st, p) && strcmp(name, name_scale(scale, p)) == 0) return 1;
    }
    return 0;
}

// Checks that every tensor is present with the right shape and type, and that there are no others except the trainer's.
static lin_status check_tensors(const lin_safetensors *st, const lin_params *params, int D, const char *file, lin_error *err)
{
    static const lin_dtype floats[] = {LIN_F32, LIN_F32, LIN_F32}, rounded[] = {LIN_F32, LIN_F16, LIN_F16},
                           any[] = {LIN_F32, LIN_F16, LIN_I8};
    scale_name scale;
    LIN_TRY(check_tensor(st, mean_name, D, 0, floats, file, err));
    LIN_TRY(check_tensor(st, istd_name, D, 0, floats, file, err));
    int expected = params->n_tensors + 2;
    for (int i = 0; i < params->n_tensors; i++) {
        const lin_param *p = &params->table[i];
        LIN_TRY(check_tensor(st, p->name, p->n, p->k, p->eight_bits ? any : rounded, file, err));
        if (!find_whole(st, p)) continue;
        LIN_TRY(check_tensor(st, name_scale(scale, p), p->n, 0, floats, file, err));
        expected++;
    }
    for (int i = 0; i < st->n_tensors; i++) expected += is_of_checkpoint(st->tensors[i].name);
    for (int i = 0; st->n_tensors != expected && i < st->n_tensors; i++) {
        const char *name = st->tensors[i].name;
        if (!is_of_checkpoint(name) && !is_part(st, params, name))
            return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s is not part of this configuration", file, name);
    }
    return LIN_OK;
}

// Index of the first value that is not finite, or count.
static size_t find_not_finite(const float *x, size_t count)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    size_t i = bad ? 0 : count;
    while (i < count && isfinite(x[i])) i++;
    return i;
}

// The first value of a tensor, or row in eight bits, that cannot be used; `wrong` NULL: none.
typedef struct fault {
    const char *wrong;
    size_t at;
    int is_row;
} fault;

static fault not_finite(float x, size_t at) { return (fault){.wrong = isnan(x) ? "NaN" : "infinity", .at = at}; }

static fault copy_values(const lin_tensor *t, float *to)
{
    const size_t count = lin_tensor_count(t);
    if (t->dtype == LIN_F16) lin_half_widen(t->data, count, to);
    else memcpy(to, t->data, count * sizeof *to);
    const size_t bad = find_not_finite(to, count);
    return bad < count ? not_finite(to[bad], bad) : (fault){0};
}

static fault check_halves(const lin_tensor *t)
{
    const size_t count = lin_tensor_count(t), bad = lin_half_find_not_finite(t->data, count);
    float x;
    if (bad == count) return (fault){0};
    lin_half_widen((const unsigned char *)t->data + 2 * bad, 1, &x);
    return not_finite(x, bad);
}

// Checks and converts whole numbers of eight bits, row by row; to NULL: only checks.
static fault copy_whole(const lin_tensor *t, const void *scales, float *to)
{
    const size_t n = t->shape[0], k = t->shape[1];
    for (size_t r = 0; r < n; r++) {
        const signed char *q = (const signed char *)t->data + r * k;
        float scale;
        memcpy(&scale, (const unsigned char *)scales + r * sizeof scale, sizeof scale);
        const char *wrong = lin_int8_check(q, k, scale);
        if (wrong) return (fault){wrong, r, 1};
        if (to) lin_int8_widen(q, k, scale, to + r * k);
    }
    return (fault){0};
}

static lin_status check_fault(const fault *f, const char *tensor, const char *file, lin_error *err)
{
    if (!f->wrong) return LIN_OK;
    if (f->is_row) return lin_fail(err, LIN_NUMERIC, "%s: tensor %s, row %zu %s", file, tensor, f->at, f->wrong);
    return lin_fail(err, LIN_NUMERIC, "%s: tensor %s holds %s at element %zu", file, tensor, f->wrong, f->at);
}

// Converts tensors to floats, those of a large model on several cores: most of the time the system clears fresh memory.
typedef struct copy_job {
    const lin_safetensors *st;
    const lin_model *model;
    int keep_whole;
    fault *faults; // [n_tensors]
} copy_job;

static void copy_piece(void *context, int piece, int thread)
{
    (void)thread;
    const copy_job *job = context;
    const lin_model *m = job->model;
    const lin_param *p = &m->params.table[piece];
    const lin_tensor *t = lin_safetensors_find(job->st, p->name);
    scale_name scale;
    if (find_whole(job->st, p)) {
        const void *scales = lin_safetensors_find(job->st, name_scale(scale, p))->data;
        const int stays = m->stored && job->keep_whole;
        if (stays) m->stored[piece] = (lin_stored){.whole = t->data, .scales = scales};
        job->faults[piece] = copy_whole(t, scales, stays ? NULL : m->values + p->offset);
    } else if (m->stored && t->dtype == LIN_F16 && p->parts && p->k <= LIN_HALF_COLUMNS) {
        m->stored[piece].half = t->data;
        job->faults[piece] = check_halves(t);
    } else {
        job->faults[piece] = copy_values(t, m->values + p->offset);
    }
}

static lin_status copy_weights(const lin_safetensors *st, int keep_whole, lin_model *m, const char *file, lin_error *err)
{
    enum { ALONE = 1 << 20, MOST_THREADS = 4 }; // below ALONE weights, one thread is done before another has started
    const int n = m->params.n_tensors, threads = lin_cores_up_to(MOST_THREADS);
    lin_pool *pool = NULL;
    copy_job job = {st, m, keep_whole, lin_calloc((size_t)n, sizeof *job.faults)};
    lin_status status = job.faults ? LIN_OK : lin_no_memory(err, "a model", (size_t)n * sizeof *job.faults);
    if (status == LIN_OK && m->params.n_elements >= ALONE && threads > 1) status = lin_pool_create(threads, &pool, err);
    if (status == LIN_OK) lin_pool_run(pool, n, copy_piece, &job);
    lin_pool_destroy(pool);
    for (int i = 0; i < n && status == LIN_OK; i++) status = check_fault(&job.faults[i], m->params.table[i].name, file, err);
    lin_free(job.faults);
    return status;
}

static lin_status copy_normalisation(const lin_safetensors *st, lin_model *m, const char *file, lin_error *err)
{
    const fault in_mean = copy_values(lin_safetensors_find(st, mean_name), m->mean),
                in_istd = copy_values(lin_safetensors_find(st, istd_name), m->istd);
    LIN_TRY(check_fault(&in_mean, mean_name, file, err));
    LIN_TRY(check_fault(&in_istd, istd_name, file, err));
    for (int d = 0; d < m->config.mel_bins; d++)
        if (!(m->istd[d] > 0))
            return lin_fail(err, LIN_FORMAT, "%s: tensor %s is not positive at element %d", file, istd_name, d);
    return LIN_OK;
}

// Reads the fingerprint instead of computing it: the checksum protects it.
static lin_status read_fingerprint(const lin_safetensors *st, lin_model *m, const char *file, lin_error *err)
{
    const char *text;
    LIN_TRY(need_text(st, "fingerprint", file, &text, err));
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return lin_fail(err, LIN_FORMAT, "%s: the fingerprint \"%.32s\" is not 16 hexadecimal digits", file,
                        lin_utf8_line(text));
    m->fingerprint = strtoull(text, NULL, 16);
    return LIN_OK;
}

// What stays in the file, which the model keeps: nothing, matrices in half precision, or those in eight bits as well.
typedef enum stays { STAYS_NOTHING, STAYS_HALF, STAYS_WHOLE } stays;

// *model may be set even on failure.
static lin_status load_parts(const lin_safetensors *st, const char *file, stays what, lin_model **model, lin_error *err)
{
    lin_config config = {0};
    lin_features features = {0};
    const char *phones;
    LIN_TRY(read_metadata(st, file, &config, &features, &phones, err));
    lin_status status = begin(&config, &features, model, err);
    if (status == LIN_OK) {
        LIN_TRY(check_tensors(st, &(*model)->params, config.mel_bins, file, err));
        status = fill(*model, phones, what != STAYS_NOTHING, err);
    }
    // an invalid configuration in a file means a bad file
    if (status != LIN_OK) return lin_fail_at(err, status == LIN_INVALID ? LIN_FORMAT : status, "%s", file);
    lin_model *m = *model;
    LIN_TRY(copy_normalisation(st, m, file, err));
    LIN_TRY(copy_weights(st, what == STAYS_WHOLE, m, file, err));
    LIN_TRY(read_name(st, file, "normalization", normalizations, 2, "global and speaker", &m->speaker_norm, err));
    LIN_TRY(read_number(st, file, "emission_delay_ms", 1000, &m->delay_ms, err));
    LIN_TRY(read_fingerprint(st, m, file, err));
    for (int i = 0; i < m->params.n_tensors; i++) m->eight_bits |= find_whole(st, &m->params.table[i]) != NULL;
    status = lin_model_label(m, lin_safetensors_text(st, "name"), lin_safetensors_text(st, "license"),
                             lin_safetensors_text(st, "provenance"), err);
    return status == LIN_OK ? LIN_OK : lin_fail_at(err, status, "%s", file);
}

static const char damaged_model[] = "the model is damaged; get a new copy of it";

static const char *remedy(const lin_safetensors *st)
{
    for (int i = 0; i < st->n_texts; i++)
        if (is_of_checkpoint(st->texts[i].key))
            return "the checkpoint is damaged; use an older copy, or start a new run from best.safetensors (--init) in another "
                   "folder";
    return damaged_model;
}

// NULL, or advice on a wrong checksum. Files of other formats and versions have none.
static const char *damage(const lin_safetensors *st)
{
    char text[17];
    const char *given = lin_safetensors_text(st, "format_version"), *claimed = lin_safetensors_text(st, LIN_CHECKSUM_KEY);
    if (!given || strcmp(given, version) != 0) return NULL;
    snprintf(text, sizeof text, "%016" PRIx64, lin_safetensors_checksum(st->tensors, st->n_tensors, st->texts, st->n_texts));
    return claimed && strcmp(text, claimed) == 0 ? NULL : remedy(st);
}

// The checksum is checked last, so that an error is reported as precisely as possible, and then the damage that caused it.
static lin_status load(const lin_safetensors *st, const char *file, stays what, lin_model **model, lin_error *err)
{
    lin_error why = {0};
    lin_status status = load_parts(st, file, what, model, &why);
    const char *damaged = status == LIN_NO_MEMORY ? NULL : damage(st);
    if (status == LIN_OK && damaged)
        status = lin_fail(&why, LIN_FORMAT, "%s: the checksum of the file is wrong: %s", file, damaged);
    else if (damaged) lin_fail(&why, status, "%s; its checksum is wrong as well: %s", why.message, damaged);
    if (status == LIN_OK) return LIN_OK;
    lin_model_destroy(*model);
    *model = NULL;
    return lin_fail_as(err, &why);
}

// Whether the bytes once were a model of linnet: a header that cannot be parsed then means damage, not a foreign file.
static int was_ours(const char *bytes, size_t n)
{
    static const char sign[] = "\"format\":\"linnet\"";
    for (size_t at = 0; at + sizeof sign <= n && at < 1 << 16; at++)
        if (memcmp(bytes + at, sign, sizeof sign - 1) == 0) return 1;
    return 0;
}

static lin_status parse(const void *bytes, size_t n_bytes, const char *name, lin_safetensors *st, lin_error *err)
{
    lin_error inner = {0};
    const lin_status status = lin_safetensors_parse(bytes, n_bytes, name, st, &inner);
    if (status == LIN_OK) return LIN_OK;
    const int is_ours = status == LIN_FORMAT && was_ours(bytes, n_bytes);
    return lin_fail(err, status, "%s%s%s", inner.message, is_ours ? ": " : "", is_ours ? damaged_model : "");
}

static lin_status load_bytes(const void *bytes, size_t n_bytes, const char *name, stays what, lin_model **model,
                             lin_error *err)
{
    lin_safetensors st;
    *model = NULL;
    LIN_TRY(parse(bytes, n_bytes, name, &st, err));
    lin_status status = load(&st, name, what, model, err);
    lin_safetensors_free(&st);
    return status;
}

lin_status lin_model_load_memory(const void *bytes, size_t n_bytes, const char *name, lin_model **model, lin_error *err)
{
    return load_bytes(bytes, n_bytes, name, STAYS_NOTHING, model, err);
}

static lin_status load_file(const char *path, stays what, lin_model **model, lin_error *err)
{
    lin_file_map map;
    *model = NULL;
    LIN_TRY(lin_file_map_open(path, &map, err));
    const lin_status status = load_bytes(map.bytes, map.size, path, what, model, err);
    if (status == LIN_OK && what != STAYS_NOTHING) (*model)->file = map;
    else lin_file_map_close(&map);
    return status;
}

lin_status lin_model_load(const char *path, lin_model **model, lin_error *err)
{
    return load_file(path, STAYS_NOTHING, model, err);
}

lin_status lin_model_open(const char *path, int keep_whole, lin_model **model, lin_error *err)
{
    return load_file(path, keep_whole ? STAYS_WHOLE : STAYS_HALF, model, err);
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------------------- */

lin_status lin_model_load_checkpoint(const char *path, lin_model **model, lin_checkpoint *c, lin_error *err)
{
    *model = NULL;
    *c = (lin_checkpoint){0};
    lin_status status = lin_file_map_open(path, &c->map, err);
    if (status == LIN_OK) status = parse(c->map.bytes, c->map.size, path, &c->file, err);
    if (status == LIN_OK) status = load(&c->file, path, STAYS_NOTHING, model, err);
    if (status != LIN_OK) lin_checkpoint_close(c);
    return status;
}

lin_status lin_checkpoint_read(const lin_checkpoint *c, const char *name, size_t count, float *to, lin_error *err)
{
    const lin_tensor *t = lin_safetensors_find(&c->file, name);
    if (!t) return lin_fail(err, LIN_FORMAT, "tensor %s is missing in the checkpoint", name);
    if (t->dtype != LIN_F32 || lin_tensor_count(t) != count)
        return lin_fail(err, LIN_FORMAT, "tensor %s of the checkpoint has %zu elements of type %s; expected %zu of type F32",
                        name, lin_tensor_count(t), lin_dtype_name(t->dtype), count);
    if (count) memcpy(to, t->data, count * sizeof *to);
    return LIN_OK;
}

void lin_checkpoint_close(lin_checkpoint *c)
{
    lin_safetensors_free(&c->file);
    lin_file_map_close(&c->map);
    *c = (lin_checkpoint){0};
}

/* ---- saving ---------------------------------------------------------------------------------------------------------------- */

static lin_status check_values(const lin_model *m, const char *path, lin_dtype dtype, lin_error *err)
{
    const size_t D = (size_t)m->config.mel_bins;
    if (find_not_finite(m->mean, D) < D) return lin_fail(err, LIN_NUMERIC, "cannot save %s: %s is not finite", path, mean_name);
    for (size_t d = 0; d < D; d++)
        if (!isfinite(m->istd[d]) || !(m->istd[d] > 0))
            return lin_fail(err, LIN_NUMERIC, "cannot save %s: %s is not positive and finite", path, istd_name);
    for (int i = 0; i < m->params.n_tensors; i++) {
        const lin_param *p = &m->params.table[i];
        const float *x = m->values + p->offset;
        const size_t count = lin_param_count(p);
        size_t bad = find_not_finite(x, count);
        if (bad < count)
            return lin_fail(err, LIN_NUMERIC, "cannot save %s: tensor %s holds %s at element %zu", path, p->name,
                            isnan(x[bad]) ? "NaN" : "infinity", bad);
        for (bad = 0; dtype == LIN_F16 && bad < count; bad++)
            if (fabsf(x[bad]) >= 65520)
                return lin_fail(err, LIN_NUMERIC,
                                "cannot save %s in half precision: tensor %s holds %g at element %zu; save it as F32", path,
                                p->name, (double)x[bad], bad);
    }
    return LIN_OK;
}

// What is written: tensors and texts, arrays for some of them, and the weights as they will be loaded, for the fingerprint.
typedef struct written {
    lin_tensor *tensors;
    lin_text *texts;
    int n_tensors, n_texts;
    scale_name *names;     // [params.n_tensors], of the scales
    unsigned char *bytes;  // [n_elements] of what is rounded, each of two bytes at most
    float *scales;         // [the rows of all matrices]
    float *rounded;        // [n_elements]; NULL: the weights are written as they are
    char *config, *variant, *features; // released with cJSON_free
    char fingerprint[17], checksum[17], level[32], delay[16], numbers[N_OPTIONAL][16];
} written;

static lin_status make_room(const lin_model *m, lin_dtype dtype, int n_tensors, int n_texts, written *w, lin_error *err)
{
    const size_t n = (size_t)m->params.n_tensors, count = m->params.n_elements;
    const int rounds = dtype != LIN_F32, plain = lin_config_is_plain(&m->config);
    size_t rows = 1;
    for (size_t i = 0; i < n; i++) rows += (size_t)(dtype == LIN_I8 ? m->params.table[i].n : 0);
    w->tensors = lin_calloc(2 + 2 * n + (size_t)n_tensors, sizeof *w->tensors);
    w->texts = lin_calloc((size_t)(N_TEXTS + n_texts), sizeof *w->texts);
    w->names = lin_alloc(n, sizeof *w->names);
    w->bytes = rounds ? lin_alloc(count, 2) : NULL;
    w->scales = lin_alloc(rows, sizeof *w->scales);
    w->rounded = rounds ? lin_alloc(count, sizeof *w->rounded) : NULL;
    w->config = lin_json_write(config_fields, N_CONFIG, &m->config);
    w->variant = plain ? NULL : lin_json_write(variant_fields, N_VARIANT, &m->config);
    w->features = lin_json_write(feature_fields, N_FEATURES, &m->features);
    if (w->tensors && w->texts && w->names && w->scales && (!rounds || (w->bytes && w->rounded)) && w->config && w->features &&
        (plain || w->variant))
        return LIN_OK;
    return lin_no_memory(err, "saving a model", count * sizeof *w->rounded);
}

static void release(written *w)
{
    void *blocks[] = {w->tensors, w->texts, w->names, w->bytes, w->scales, w->rounded};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
    cJSON_free(w->config);
    cJSON_free(w->variant);
    cJSON_free(w->features);
}

static void add(written *w, const lin_param *p, lin_dtype dtype, const void *data)
{
    w->tensors[w->n_tensors++] = (lin_tensor){p->name, dtype, p->k ? 2 : 1, {(size_t)p->n, (size_t)p->k}, data};
}

// In half precision, or, with exact 1, as floats if one of them would be rounded.
static void add_half(const lin_model *m, const lin_param *p, int exact, written *w)
{
    const float *values = m->values + p->offset;
    const size_t count = lin_param_count(p);
    unsigned char *half = w->bytes + 2 * p->offset;
    lin_half_narrow(values, count, half);
    lin_half_widen(half, count, w->rounded + p->offset);
    const int same = memcmp(values, w->rounded + p->offset, count * sizeof *values) == 0;
    if (exact && !same) memcpy(w->rounded + p->offset, values, count * sizeof *values);
    if (exact && !same) add(w, p, LIN_F32, values);
    else add(w, p, LIN_F16, half);
}

static lin_status add_whole(const lin_model *m, const lin_param *p, float *scales, written *w, const char *path, lin_error *err)
{
    const size_t k = (size_t)p->k;
    signed char *q = (signed char *)(w->bytes + 2 * p->offset);
    for (size_t r = 0; r < (size_t)p->n; r++) {
        scales[r] = lin_int8_narrow(m->values + p->offset + r * k, k, q + r * k);
        if (isnan(scales[r]))
            return lin_fail(err, LIN_NUMERIC, "cannot save %s in eight bits: tensor %s has too large weights in row %zu", path,
                            p->name, r);
        lin_int8_widen(q + r * k, k, scales[r], w->rounded + p->offset + r * k);
    }
    char *name = w->names[p - m->params.table];
    add(w, p, LIN_I8, q);
    w->tensors[w->n_tensors++] = (lin_tensor){name_scale(name, p), LIN_F32, 1, {(size_t)p->n}, scales};
    return LIN_OK;
}

static lin_status add_tensors(const lin_model *m, const char *path, lin_dtype dtype, written *w, lin_error *err)
{
    const size_t D = (size_t)m->config.mel_bins;
    float *scales = w->scales;
    w->tensors[w->n_tensors++] = (lin_tensor){mean_name, LIN_F32, 1, {D}, m->mean};
    w->tensors[w->n_tensors++] = (lin_tensor){istd_name, LIN_F32, 1, {D}, m->istd};
    for (int i = 0; i < m->params.n_tensors; i++) {
        const lin_param *p = &m->params.table[i];
        if (dtype == LIN_F32) {
            add(w, p, LIN_F32, m->values + p->offset);
        } else if (dtype == LIN_I8 && p->eight_bits) {
            LIN_TRY(add_whole(m, p, scales, w, path, err));
            scales += p->n;
        } else {
            add_half(m, p, dtype == LIN_I8, w);
        }
    }
    if (dtype != LIN_I8 || scales != w->scales) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "cannot save %s in eight bits: no layer of this kind of network has products of "
                    "eight bits; only those of a transformer do", path);
}

static void put(written *w, const char *key, const char *value) { w->texts[w->n_texts++] = (lin_text){key, value}; }

static void add_texts(const lin_model *m, written *w)
{
    const lin_config *c = &m->config;
    snprintf(w->fingerprint, sizeof w->fingerprint, "%016" PRIx64, fingerprint_with(m, w->rounded ? w->rounded : m->values));
    snprintf(w->level, sizeof w->level, "%.17g", m->features.level_db);
    snprintf(w->delay, sizeof w->delay, "%d", m->delay_ms);
    const lin_text always[] = {{"format", "linnet"},    {"format_version", version},
                               {"config", w->config},   {"features", w->features},
                               {"phones", m->phones},   {"name", m->name},
                               {"license", m->license}, {"provenance", m->provenance},
                               {"fingerprint", w->fingerprint}, {"normalization", normalizations[m->speaker_norm != 0]},
                               {LIN_CHECKSUM_KEY, w->checksum}};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) put(w, always[i].key, always[i].value);
    if (w->variant) put(w, "variant", w->variant);
    if (c->decay) put(w, "decay", lin_decay_names[c->decay]);
    for (size_t i = 0; i < N_OPTIONAL; i++) {
        int value;
        memcpy(&value, (const char *)c + optional[i].at, sizeof value);
        snprintf(w->numbers[i], sizeof w->numbers[i], "%d", value);
        // the order of the installed files, which linnet quantise makes again to the byte
        if (i == N_OPTIONAL - 1 && m->features.level_db > 0) put(w, "level_db", w->level);
        if (value) put(w, optional[i].key, w->numbers[i]);
    }
    if (m->delay_ms) put(w, "emission_delay_ms", w->delay);
}

static lin_status save(const lin_model *m, const char *path, lin_dtype dtype, const lin_tensor *tensors, int n_tensors,
                       const lin_text *texts, int n_texts, lin_error *err)
{
    written w = {0};
    LIN_TRY(check_values(m, path, dtype, err));
    lin_status status = make_room(m, dtype, n_tensors, n_texts, &w, err);
    if (status == LIN_OK) status = add_tensors(m, path, dtype, &w, err);
    if (status == LIN_OK) {
        add_texts(m, &w);
        for (int i = 0; i < n_tensors; i++) w.tensors[w.n_tensors++] = tensors[i];
        for (int i = 0; i < n_texts; i++) w.texts[w.n_texts++] = texts[i];
        snprintf(w.checksum, sizeof w.checksum, "%016" PRIx64,
                 lin_safetensors_checksum(w.tensors, w.n_tensors, w.texts, w.n_texts));
        status = lin_safetensors_write(path, w.tensors, w.n_tensors, w.texts, w.n_texts, err);
    }
    release(&w);
    return status;
}

lin_status lin_model_save(const lin_model *m, const char *path, lin_dtype dtype, lin_error *err)
{
    return save(m, path, dtype, NULL, 0, NULL, 0, err);
}

lin_status lin_model_save_checkpoint(const lin_model *m, const char *path, const lin_tensor *tensors, int n_tensors,
                                     const lin_text *texts, int n_texts, lin_error *err)
{
    for (int i = 0; i < n_tensors; i++) assert(is_of_checkpoint(tensors[i].name));
    for (int i = 0; i < n_texts; i++) assert(is_of_checkpoint(texts[i].key));
    return save(m, path, LIN_F32, tensors, n_tensors, texts, n_texts, err);
}
