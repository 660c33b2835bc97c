// model_file.c - metadata, tensors and checksums of a model's file; see model_file.h.

#include "model/model_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/pool.h"
#include "base/system.h"
#include "base/textfile.h"
#include "base/utf8.h"
#include "kernels/ops.h"

// Version 3 is that of files with weights of eight bits.
static const char version[] = "2", first_version[] = "1", int8_version[] = "3", scale_suffix[] = ".scale",
                  mean_name[] = "features.mean", istd_name[] = "features.istd", extra_prefix[] = "train.";

/* ---- the JSON values of the metadata --------------------------------------------------------------------------------------- */

// The key "variant" is there only if it differs from the paper's network, whose files have had no such key.
static const char variant_key[] = "variant", decay_key[] = "decay", condition_key[] = "condition_every", tokens_key[] = "tokens",
                  mixture_key[] = "mixture", search_key[] = "search", level_key[] = "level_db",
                  delay_key[] = "emission_delay_ms"; // all: only where there is one
static const char *const norm_names[] = {"post", "pre", NULL};

// An enum is read and written as an int.
_Static_assert(sizeof(lin_positions) == sizeof(int) && sizeof(lin_norm) == sizeof(int) &&
                   sizeof(lin_network_kind) == sizeof(int) && sizeof(lin_attention_kind) == sizeof(int) &&
                   sizeof(lin_map_kind) == sizeof(int),
               "enums of int size");

#define AT(field) offsetof(lin_config, field)
static const lin_json_field config_fields[] = {{"layers", LIN_JSON_INT, AT(layers), NULL},
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
#undef AT
enum { N_CONFIG = sizeof config_fields / sizeof *config_fields };

enum { VARIANT_FIELDS = 7 };
static void list_variant(lin_json_field fields[VARIANT_FIELDS])
{
    const lin_json_field list[VARIANT_FIELDS] = {{"network", LIN_JSON_NAME, offsetof(lin_config, network), lin_network_names},
                                                 {"attention", LIN_JSON_NAME, offsetof(lin_config, attention),
                                                  lin_attention_names},
                                                 {"feature_map", LIN_JSON_NAME, offsetof(lin_config, feature_map),
                                                  lin_feature_map_names},
                                                 {"features", LIN_JSON_INT, offsetof(lin_config, features), NULL},
                                                 {"lsh_rounds", LIN_JSON_INT, offsetof(lin_config, lsh_rounds), NULL},
                                                 {"lsh_chunk", LIN_JSON_INT, offsetof(lin_config, lsh_chunk), NULL},
                                                 {"width", LIN_JSON_INT, offsetof(lin_config, width), NULL}};
    memcpy(fields, list, sizeof list);
}

// Feature parameters that are the same in every model are written too, so that other programs can compute the same features.
static const char *const fixed[][2] = {{"\"log-mel\"", NULL}, {"\"povey\"", NULL}, {"true", NULL}, {"0", NULL}};
#define AT(field) offsetof(lin_features, field)
static const lin_json_field feature_fields[] = {{"type", LIN_JSON_FIXED, 0, fixed[0]},
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
enum { N_FEATURES = sizeof feature_fields / sizeof *feature_fields };

static const char *const normalizations[] = {"global", "speaker"};
enum { N_TEXTS = 19 }; // texts of the metadata at most, without the trainer's

/* ---- loading --------------------------------------------------------------------------------------------------------------- */

static int is_extra(const char *name) { return strncmp(name, extra_prefix, sizeof extra_prefix - 1) == 0; }

static lin_status need_text(const lin_safetensors *st, const char *key, const char *file, const char **value, lin_error *err)
{
    *value = lin_safetensors_text(st, key);
    if (*value) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: the metadata have no %s; this is not a linnet model, or an incomplete one", file, key);
}

// Files of networks that forget nothing have no such text.
static lin_status read_decay(const lin_safetensors *st, const char *file, lin_decay_kind *decay, lin_error *err)
{
    const char *text = lin_safetensors_text(st, decay_key);
    if (!text) return LIN_OK;
    for (int i = 0; lin_decay_names[i]; i++)
        if (strcmp(text, lin_decay_names[i]) == 0) {
            *decay = (lin_decay_kind)i;
            return LIN_OK;
        }
    return lin_fail(err, LIN_UNSUPPORTED, "%s: decay is \"%.32s\"; this program supports none, fixed and gated", file,
                    lin_utf8_line(text));
}

// A number that only some files have: *value stays as it is if there is none.
static lin_status read_number(const lin_safetensors *st, const char *file, const char *key, int most, int *value, lin_error *err)
{
    const char *text = lin_safetensors_text(st, key);
    if (!text) return LIN_OK;
    const size_t digits = strspn(text, "0123456789");
    *value = atoi(text);
    if (digits > 0 && digits < 6 && !text[digits] && *value > 0 && *value <= most) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: %s is \"%.32s\"; must be a number from 1 to %d", file, key, lin_utf8_line(text), most);
}

// Not among the features: files of before have none, and readers of before would refuse it there.
static lin_status read_level(const lin_safetensors *st, const char *file, double *level_db, lin_error *err)
{
    const char *text = lin_safetensors_text(st, level_key);
    *level_db = 0;
    if (!text || (lin_text_number(text, strlen(text), level_db) && *level_db >= 1 && *level_db <= 150)) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: %s is \"%.32s\"; must be a number from 1 to 150", file, level_key, lin_utf8_line(text));
}

static lin_status read_metadata(const lin_safetensors *st, const char *file, lin_config *config, lin_features *features,
                                const char **phones, lin_error *err)
{
    const char *format = lin_safetensors_text(st, "format"), *text;
    if (!format || strcmp(format, "linnet") != 0)
        return lin_fail(err, LIN_FORMAT, "%s: a safetensors file, but not a linnet model (its format is %s%.32s%s)", file,
                        format ? "\"" : "", format ? lin_utf8_line(format) : "not given", format ? "\"" : "");
    lin_status status = need_text(st, "format_version", file, &text, err);
    if (status != LIN_OK) return status;
    if (strcmp(text, version) != 0 && strcmp(text, first_version) != 0 && strcmp(text, int8_version) != 0)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: model format version %.16s; this program reads versions %s to %s", file,
                        lin_utf8_line(text), first_version, int8_version);
    char name[512];
    status = need_text(st, "config", file, &text, err);
    snprintf(name, sizeof name, "%.*s: config", (int)sizeof name - 16, file);
    if (status == LIN_OK) status = lin_json_read(text, name, config_fields, N_CONFIG, config, err);
    text = status == LIN_OK ? lin_safetensors_text(st, variant_key) : NULL;
    if (text) {
        lin_json_field fields[VARIANT_FIELDS];
        list_variant(fields);
        snprintf(name, sizeof name, "%.*s: %s", (int)sizeof name - 16, file, variant_key);
        status = lin_json_read(text, name, fields, VARIANT_FIELDS, config, err);
    }
    if (status == LIN_OK) status = read_decay(st, file, &config->decay, err);
    if (status == LIN_OK) status = read_number(st, file, condition_key, 63, &config->condition_every, err);
    if (status == LIN_OK) status = read_number(st, file, tokens_key, 65536, &config->tokens, err);
    if (status == LIN_OK) status = read_number(st, file, mixture_key, 64, &config->mixture, err);
    if (status == LIN_OK) status = read_number(st, file, search_key, 1, &config->search, err);
    if (status == LIN_OK) status = need_text(st, "features", file, &text, err);
    snprintf(name, sizeof name, "%.*s: features", (int)sizeof name - 16, file);
    if (status == LIN_OK) status = lin_json_read(text, name, feature_fields, N_FEATURES, features, err);
    if (status == LIN_OK) status = read_level(st, file, &features->level_db, err);
    if (status == LIN_OK) status = need_text(st, "phones", file, phones, err);
    return status;
}

// "[192, 40]"
static const char *shape_text(char text[96], int n_dims, const size_t *shape)
{
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < n_dims && at < 90; i++) at += snprintf(text + at, 96 - (size_t)at, "%s%zu", i ? ", " : "", shape[i]);
    return text;
}

static lin_status check_tensor(const lin_safetensors *st, const char *name, int n, int k, int half_allowed, const char *file,
                               lin_error *err)
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
    if (t->dtype != LIN_F32 && !(half_allowed && t->dtype == LIN_F16))
        return lin_fail(err, LIN_FORMAT, "%s: tensor %s is of type %s; must be F32%s", file, name, lin_dtype_name(t->dtype),
                        half_allowed ? " or F16" : "");
    return LIN_OK;
}

/* "layers.0.qkv.weight.scale" */
typedef char scale_name[sizeof(((lin_param *)0)->name) + sizeof scale_suffix];
static const char *name_scale(scale_name name, const lin_param *p)
{
    snprintf(name, sizeof(scale_name), "%s%s", p->name, scale_suffix);
    return name;
}

// The tensor of a parameter in whole numbers of eight bits, or NULL: it is missing, or of another type.
static const lin_tensor *find_whole(const lin_safetensors *st, const lin_param *p)
{
    const lin_tensor *t = p->eight_bits ? lin_safetensors_find(st, p->name) : NULL;
    return t && t->dtype == LIN_I8 ? t : NULL;
}

static lin_status check_param(const lin_safetensors *st, const lin_param *p, const char *file, lin_error *err)
{
    scale_name scale;
    const lin_tensor *t = find_whole(st, p);
    if (!t) return check_tensor(st, p->name, p->n, p->k, 1, file, err);
    const lin_tensor as_floats = {t->name, LIN_F32, t->n_dims, {t->shape[0], t->shape[1]}, NULL};
    const lin_safetensors alone = {.n_tensors = 1, .tensors = (lin_tensor[]){as_floats}};
    lin_status status = check_tensor(&alone, p->name, p->n, p->k, 1, file, err); // the shape
    return status == LIN_OK ? check_tensor(st, name_scale(scale, p), p->n, 0, 0, file, err) : status;
}

static int is_part(const lin_safetensors *st, const lin_params *params, const char *name)
{
    scale_name scale;
    for (int j = 0; j < params->n_tensors; j++) {
        const lin_param *p = &params->table[j];
        if (strcmp(name, p->name) == 0) return 1;
        if (find_whole(st, p) && strcmp(name, name_scale(scale, p)) == 0) return 1;
    }
    return 0;
}

// Every tensor is present with the right shape and type, and there are no others except the trainer's. Checked before any
// allocation.
static lin_status check_tensors(const lin_safetensors *st, const lin_params *params, int D, const char *file, lin_error *err)
{
    lin_status status = check_tensor(st, mean_name, D, 0, 0, file, err);
    if (status == LIN_OK) status = check_tensor(st, istd_name, D, 0, 0, file, err);
    int scales = 0;
    for (int i = 0; i < params->n_tensors && status == LIN_OK; i++) {
        status = check_param(st, &params->table[i], file, err);
        scales += find_whole(st, &params->table[i]) != NULL;
    }
    if (status != LIN_OK) return status;
    int extras = 0;
    for (int i = 0; i < st->n_tensors; i++) extras += is_extra(st->tensors[i].name);
    if (st->n_tensors - extras == params->n_tensors + 2 + scales) return LIN_OK;
    for (int i = 0; i < st->n_tensors; i++) {
        const char *name = st->tensors[i].name;
        if (!is_extra(name) && strcmp(name, mean_name) != 0 && strcmp(name, istd_name) != 0 && !is_part(st, params, name))
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

// Tensors as floats; the weights of a large model on all cores, most of whose time is the system's, which clears the memory.
typedef struct copy_job {
    const lin_safetensors *st;
    const lin_model *model;
    int keep_whole;
    size_t *bad; // [n_tensors]: index of the first value that is not finite, or the number of values
    struct bad_row *rows; // [n_tensors], of those in eight bits: the first row that cannot be
} copy_job;

struct bad_row {
    int row;
    const char *wrong; // NULL: there is none
};

static size_t copy_values(const lin_tensor *t, float *to)
{
    const size_t count = lin_tensor_count(t);
    if (t->dtype == LIN_F16) lin_half_widen(t->data, count, to);
    else memcpy(to, t->data, count * sizeof *to);
    return find_not_finite(to, count);
}

// Whole numbers of eight bits, row by row; `to` is NULL if they stay where they are.
static struct bad_row copy_whole(const lin_tensor *t, const void *scales, float *to)
{
    const size_t n = t->shape[0], k = t->shape[1];
    for (size_t r = 0; r < n; r++) {
        const signed char *q = (const signed char *)t->data + r * k;
        float scale;
        memcpy(&scale, (const unsigned char *)scales + r * sizeof scale, sizeof scale);
        const char *wrong = lin_int8_check(q, k, scale);
        if (wrong) return (struct bad_row){(int)r, wrong};
        if (to) lin_int8_widen(q, k, scale, to + r * k);
    }
    return (struct bad_row){0, NULL};
}

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
        job->rows[piece] = copy_whole(t, scales, stays ? NULL : m->values + p->offset);
        job->bad[piece] = lin_param_count(p);
    } else if (m->stored && t->dtype == LIN_F16 && p->parts && p->k <= LIN_HALF_COLUMNS) {
        m->stored[piece].half = t->data;
        job->bad[piece] = lin_half_find_not_finite(t->data, lin_param_count(p));
    } else {
        job->bad[piece] = copy_values(t, m->values + p->offset);
    }
}

static lin_status check_finite(const lin_tensor *t, size_t bad, const char *file, lin_error *err)
{
    float x;
    if (bad == lin_tensor_count(t)) return LIN_OK;
    const unsigned char *at = (const unsigned char *)t->data + bad * lin_dtype_size(t->dtype);
    if (t->dtype == LIN_F16) lin_half_widen(at, 1, &x);
    else memcpy(&x, at, sizeof x);
    return lin_fail(err, LIN_NUMERIC, "%s: tensor %s holds %s at element %zu", file, t->name, isnan(x) ? "NaN" : "infinity", bad);
}

static lin_status copy_weights(const lin_safetensors *st, int keep_whole, lin_model *m, const char *file, lin_error *err)
{
    enum { ALONE = 1 << 20, MOST_THREADS = 4 }; // fewer weights are done before another thread has begun
    const int n = m->params.n_tensors, threads = lin_cores_up_to(MOST_THREADS);
    lin_pool *pool = NULL;
    copy_job job = {st, m, keep_whole, lin_alloc((size_t)n, sizeof *job.bad), lin_calloc((size_t)n, sizeof *job.rows)};
    lin_status status = LIN_OK;
    if (!job.bad || !job.rows) status = lin_no_memory(err, "a model", (size_t)n * (sizeof *job.bad + sizeof *job.rows));
    if (status == LIN_OK && m->params.n_elements >= ALONE && threads > 1) status = lin_pool_create(threads, &pool, err);
    if (status == LIN_OK) lin_pool_run(pool, n, copy_piece, &job);
    lin_pool_destroy(pool);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const struct bad_row *row = &job.rows[i];
        if (row->wrong)
            status = lin_fail(err, LIN_NUMERIC, "%s: tensor %s, row %d %s", file, m->params.table[i].name, row->row, row->wrong);
        else status = check_finite(lin_safetensors_find(st, m->params.table[i].name), job.bad[i], file, err);
    }
    lin_free(job.bad);
    lin_free(job.rows);
    return status;
}

static lin_status copy_tensors(const lin_safetensors *st, int keep_whole, lin_model *m, const char *file, lin_error *err)
{
    const lin_tensor *mean = lin_safetensors_find(st, mean_name), *istd = lin_safetensors_find(st, istd_name);
    lin_status status = check_finite(mean, copy_values(mean, m->mean), file, err);
    if (status == LIN_OK) status = check_finite(istd, copy_values(istd, m->istd), file, err);
    for (int d = 0; d < m->config.mel_bins && status == LIN_OK; d++)
        if (!(m->istd[d] > 0))
            status = lin_fail(err, LIN_FORMAT, "%s: tensor %s is not positive at element %d", file, istd_name, d);
    return status == LIN_OK ? copy_weights(st, keep_whole, m, file, err) : status;
}

static lin_status check_fingerprint(const lin_safetensors *st, const lin_model *m, const char *file, lin_error *err)
{
    char text[17];
    const char *claimed;
    lin_status status = need_text(st, "fingerprint", file, &claimed, err);
    if (status != LIN_OK) return status;
    snprintf(text, sizeof text, "%016" PRIx64, m->fingerprint);
    if (strcmp(text, claimed) == 0) return LIN_OK;
    return lin_fail(err, LIN_FORMAT, "%s: the fingerprint of the contents is %s, but the file gives %.32s; the file is damaged",
                    file, text, lin_utf8_line(claimed));
}

// Whether the file has a checksum, as all files since version 2; *fits: whether it matches the contents.
static int has_checksum(const lin_safetensors *st, int *fits)
{
    char text[17];
    const char *given = lin_safetensors_text(st, "format_version"), *claimed = lin_safetensors_text(st, LIN_CHECKSUM_KEY);
    const int has = given && strcmp(given, first_version) != 0;
    *fits = 0;
    if (!has || !claimed) return has;
    snprintf(text, sizeof text, "%016" PRIx64, lin_safetensors_checksum(st->tensors, st->n_tensors, st->texts, st->n_texts));
    *fits = strcmp(text, claimed) == 0;
    return has;
}

// If absent, normalization is global.
static lin_status read_normalization(const lin_safetensors *st, lin_model *model, const char *file, lin_error *err)
{
    const char *text = lin_safetensors_text(st, "normalization");
    for (int i = 0; i < 2; i++) {
        if (text ? strcmp(text, normalizations[i]) == 0 : i == 0) {
            model->speaker_norm = i;
            return LIN_OK;
        }
    }
    return lin_fail(err, LIN_UNSUPPORTED, "%s: normalization is \"%.32s\"; this program supports global and speaker", file,
                    lin_utf8_line(text));
}

// What stays in the file, which the model keeps: nothing, matrices in half precision, or those in eight bits as well.
typedef enum stays { STAYS_NOTHING, STAYS_HALF, STAYS_WHOLE } stays;

static lin_status load_parts(const lin_safetensors *st, const char *file, stays what, lin_model **model, lin_error *err)
{
    lin_config config = {0};
    lin_features features = {0};
    lin_params params;
    const char *phones;
    *model = NULL;
    lin_status status = read_metadata(st, file, &config, &features, &phones, err);
    if (status != LIN_OK) return status;
    status = lin_params_create(&config, &params, err);
    if (status == LIN_OK) {
        status = check_tensors(st, &params, config.mel_bins, file, err);
        lin_params_free(&params);
        if (status != LIN_OK) return status;
        status = lin_model_create_raw(&config, &features, phones, what != STAYS_NOTHING, model, err);
    }
    // an invalid configuration in a file means a bad file
    if (status != LIN_OK) return lin_fail_at(err, status == LIN_INVALID ? LIN_FORMAT : status, "%s", file);

    status = copy_tensors(st, what == STAYS_WHOLE, *model, file, err);
    if (status == LIN_OK) status = read_normalization(st, *model, file, err);
    if (status == LIN_OK) status = read_number(st, file, delay_key, 1000, &(*model)->delay_ms, err);
    if (status == LIN_OK) {
        lin_model_seal(*model);
        status = check_fingerprint(st, *model, file, err);
    }
    if (status == LIN_OK) {
        status = lin_model_label(*model, lin_safetensors_text(st, "name"), lin_safetensors_text(st, "license"),
                                 lin_safetensors_text(st, "provenance"), err);
        if (status != LIN_OK) lin_fail_at(err, status, "%s", file);
    }
    if (status != LIN_OK) {
        lin_model_destroy(*model);
        *model = NULL;
    }
    return status;
}

static const char *remedy(const lin_safetensors *st)
{
    for (int i = 0; i < st->n_texts; i++)
        if (is_extra(st->texts[i].key))
            return "the checkpoint is damaged; use an older copy, or start a new run from best.safetensors (--init) in another "
                   "folder";
    return "the model is damaged; get a new copy of it";
}

// The checksum is checked last, so that an error is named as precisely as possible, followed by the damage that caused it.
static lin_status load(const lin_safetensors *st, const char *file, stays what, lin_model **model, lin_error *err)
{
    lin_error inner = {0};
    int fits;
    lin_status status = load_parts(st, file, what, model, &inner);
    const int has = status != LIN_NO_MEMORY && has_checksum(st, &fits);
    if (status == LIN_OK) (*model)->checksummed = has;
    for (int i = 0; status == LIN_OK && i < (*model)->params.n_tensors; i++)
        (*model)->eight_bits |= find_whole(st, &(*model)->params.table[i]) != NULL;
    if (!has || fits) return status == LIN_OK ? LIN_OK : lin_fail_as(err, &inner);
    if (status != LIN_OK) return lin_fail(err, status, "%s; its checksum is wrong as well: %s", inner.message, remedy(st));
    lin_model_destroy(*model);
    *model = NULL;
    return lin_fail(err, LIN_FORMAT, "%s: the checksum of the file is wrong: %s", file, remedy(st));
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
    return lin_fail(err, status, "%s%s", inner.message,
                    status == LIN_FORMAT && was_ours(bytes, n_bytes) ? ": the model is damaged; get a new copy of it"
                                                                     : "");
}

static lin_status load_bytes(const void *bytes, size_t n_bytes, const char *name, stays what, lin_model **model,
                             lin_error *err)
{
    lin_safetensors st;
    *model = NULL;
    lin_status status = parse(bytes, n_bytes, name, &st, err);
    if (status != LIN_OK) return status;
    status = load(&st, name, what, model, err);
    lin_safetensors_free(&st);
    return status;
}

lin_status lin_model_load_memory(const void *bytes, size_t n_bytes, const char *name, lin_model **model, lin_error *err)
{
    return load_bytes(bytes, n_bytes, name, STAYS_NOTHING, model, err);
}

lin_status lin_model_load(const char *path, lin_model **model, lin_error *err)
{
    lin_file_map map;
    *model = NULL;
    lin_status status = lin_file_map_open(path, &map, err);
    if (status != LIN_OK) return status;
    status = lin_model_load_memory(map.bytes, map.size, path, model, err);
    lin_file_map_close(&map);
    return status;
}

lin_status lin_model_open(const char *path, int keep_whole, lin_model **model, lin_error *err)
{
    lin_file_map map;
    *model = NULL;
    lin_status status = lin_file_map_open(path, &map, err);
    if (status != LIN_OK) return status;
    status = load_bytes(map.bytes, map.size, path, keep_whole ? STAYS_WHOLE : STAYS_HALF, model, err);
    if (status == LIN_OK) (*model)->file = map;
    else lin_file_map_close(&map);
    return status;
}

/* ---- extras ---------------------------------------------------------------------------------------------------------------- */

// Extras point into the mapped file.
struct owned {
    lin_file_map map;
    lin_safetensors st;
};

// Tensors and texts are sorted by name, so those of the trainer are adjacent.
static void find_extras(const lin_safetensors *st, lin_extras *extras)
{
    for (int i = st->n_tensors; i-- > 0;)
        if (is_extra(st->tensors[i].name)) {
            extras->tensors = &st->tensors[i];
            extras->n_tensors++;
        }
    for (int i = st->n_texts; i-- > 0;)
        if (is_extra(st->texts[i].key)) {
            extras->texts = &st->texts[i];
            extras->n_texts++;
        }
}

lin_status lin_model_load_extras(const char *path, lin_model **model, lin_extras *extras, lin_error *err)
{
    *model = NULL;
    *extras = (lin_extras){0};
    struct owned *owned = lin_calloc(1, sizeof *owned);
    if (!owned) return lin_no_memory(err, "a checkpoint", sizeof *owned);
    extras->owned = owned;
    lin_status status = lin_file_map_open(path, &owned->map, err);
    if (status == LIN_OK) status = parse(owned->map.bytes, owned->map.size, path, &owned->st, err);
    if (status == LIN_OK) status = load(&owned->st, path, STAYS_NOTHING, model, err);
    if (status == LIN_OK) find_extras(&owned->st, extras);
    else lin_extras_free(extras);
    return status;
}

static const lin_tensor *find_tensor(const lin_extras *extras, const char *name)
{
    for (int i = 0; i < extras->n_tensors; i++)
        if (strcmp(extras->tensors[i].name, name) == 0) return &extras->tensors[i];
    return NULL;
}

const char *lin_extras_text(const lin_extras *extras, const char *key)
{
    for (int i = 0; i < extras->n_texts; i++)
        if (strcmp(extras->texts[i].key, key) == 0) return extras->texts[i].value;
    return NULL;
}

int lin_extras_has(const lin_extras *extras, const char *name) { return find_tensor(extras, name) != NULL; }

lin_status lin_extras_read(const lin_extras *extras, const char *name, lin_dtype dtype, size_t count, void *to, lin_error *err)
{
    const lin_tensor *t = find_tensor(extras, name);
    if (!t) return lin_fail(err, LIN_FORMAT, "tensor %s is missing in the checkpoint", name);
    if (t->dtype != dtype || lin_tensor_count(t) != count)
        return lin_fail(err, LIN_FORMAT, "tensor %s of the checkpoint has %zu elements of type %s; expected %zu of type %s", name,
                        lin_tensor_count(t), lin_dtype_name(t->dtype), count, lin_dtype_name(dtype));
    if (count) memcpy(to, t->data, count * lin_dtype_size(dtype));
    return LIN_OK;
}

void lin_extras_free(lin_extras *extras)
{
    struct owned *owned = extras->owned;
    if (owned) {
        lin_safetensors_free(&owned->st);
        lin_file_map_close(&owned->map);
        lin_free(owned);
    }
    *extras = (lin_extras){0};
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

static lin_status check_extras(const lin_extras *extras, const char *path, lin_error *err)
{
    for (int i = 0; extras && i < extras->n_tensors; i++)
        if (!is_extra(extras->tensors[i].name))
            return lin_fail(err, LIN_INVALID, "cannot save %s: the name of tensor %s does not begin with %s", path,
                            extras->tensors[i].name, extra_prefix);
    for (int i = 0; extras && i < extras->n_texts; i++)
        if (!is_extra(extras->texts[i].key))
            return lin_fail(err, LIN_INVALID, "cannot save %s: the key %s does not begin with %s", path, extras->texts[i].key,
                            extra_prefix);
    return LIN_OK;
}

// weights: the tensors of all parameters, and of scales.
static lin_status write_model(const lin_model *m, const char *path, const lin_tensor *weights, int n_weights,
                              const char *format_version, uint64_t fingerprint, const lin_extras *extras, lin_error *err)
{
    const int n_extra = extras ? extras->n_tensors : 0, n_extra_texts = extras ? extras->n_texts : 0;
    const int plain = lin_config_is_plain(&m->config);
    int n_own = N_TEXTS - 8; // and those that only some networks have
    const size_t n_tensors = (size_t)(n_weights + 2 + n_extra);
    lin_json_field fields[VARIANT_FIELDS];
    list_variant(fields);
    char *variant = plain ? NULL : lin_json_write(fields, VARIANT_FIELDS, &m->config);
    char *config = lin_json_write(config_fields, N_CONFIG, &m->config);
    char *features = lin_json_write(feature_fields, N_FEATURES, &m->features), hex[17], sum[17], every[16], delay[16], tokens[16],
         mixture[16], level[32];
    lin_tensor *tensors = lin_calloc(n_tensors, sizeof *tensors), *t = tensors;
    lin_text *texts = lin_calloc((size_t)(N_TEXTS + n_extra_texts), sizeof *texts);
    lin_status status;
    if (!config || !features || !tensors || !texts || (!plain && !variant)) {
        status = lin_no_memory(err, "saving a model", n_tensors * sizeof *tensors);
    } else {
        snprintf(hex, sizeof hex, "%016" PRIx64, fingerprint);
        const lin_text own[N_TEXTS] = {{"format", "linnet"},    {"format_version", format_version},
                                       {"config", config},      {"features", features},
                                       {"phones", m->phones},   {"name", m->name},
                                       {"license", m->license}, {"provenance", m->provenance},
                                       {"fingerprint", hex},    {"normalization", normalizations[m->speaker_norm != 0]},
                                       {LIN_CHECKSUM_KEY, sum}};
        memcpy(texts, own, (size_t)n_own * sizeof *own);
        snprintf(every, sizeof every, "%d", m->config.condition_every);
        snprintf(delay, sizeof delay, "%d", m->delay_ms);
        snprintf(tokens, sizeof tokens, "%d", m->config.tokens);
        snprintf(mixture, sizeof mixture, "%d", m->config.mixture);
        if (!plain) texts[n_own++] = (lin_text){variant_key, variant};
        if (m->config.decay) texts[n_own++] = (lin_text){decay_key, lin_decay_names[m->config.decay]};
        if (m->config.condition_every) texts[n_own++] = (lin_text){condition_key, every};
        snprintf(level, sizeof level, "%.17g", m->features.level_db);
        if (m->features.level_db > 0) texts[n_own++] = (lin_text){level_key, level};
        if (m->config.tokens) texts[n_own++] = (lin_text){tokens_key, tokens};
        if (m->config.mixture) texts[n_own++] = (lin_text){mixture_key, mixture};
        if (m->config.search) texts[n_own++] = (lin_text){search_key, "1"};
        if (m->delay_ms) texts[n_own++] = (lin_text){delay_key, delay};
        if (n_extra_texts) memcpy(texts + n_own, extras->texts, (size_t)n_extra_texts * sizeof *texts);
        const size_t D = (size_t)m->config.mel_bins, n_texts = (size_t)(n_own + n_extra_texts);
        *t++ = (lin_tensor){mean_name, LIN_F32, 1, {D}, m->mean};
        *t++ = (lin_tensor){istd_name, LIN_F32, 1, {D}, m->istd};
        memcpy(t, weights, (size_t)n_weights * sizeof *t);
        t += n_weights;
        if (n_extra) memcpy(t, extras->tensors, (size_t)n_extra * sizeof *t);
        snprintf(sum, sizeof sum, "%016" PRIx64, lin_safetensors_checksum(tensors, (int)n_tensors, texts, (int)n_texts));
        status = lin_safetensors_write(path, tensors, (int)n_tensors, texts, (int)n_texts, err);
    }
    cJSON_free(config);
    cJSON_free(variant);
    cJSON_free(features);
    lin_free(tensors);
    lin_free(texts);
    return status;
}

// The tensors of a model as they are written, and the weights as they will be loaded, of which the fingerprint is.
typedef struct written {
    lin_tensor *tensors;  // [2 n_tensors]
    int n;
    scale_name *names;    // [n_tensors], of the scales
    unsigned char *bytes; // [n_elements] of what is rounded, each of two bytes at most
    float *scales;        // [the rows of all matrices]
    float *rounded;       // [n_elements]
} written;

static lin_tensor tensor_of(const lin_param *p, lin_dtype dtype, const void *data)
{
    return (lin_tensor){p->name, dtype, p->k ? 2 : 1, {(size_t)p->n, (size_t)p->k}, data};
}

// In half precision, or, with exact 1, as floats if one of them would be rounded.
static void write_half(const lin_model *m, const lin_param *p, int exact, written *w)
{
    const float *values = m->values + p->offset;
    const size_t count = lin_param_count(p);
    unsigned char *half = w->bytes + 2 * p->offset;
    lin_half_narrow(values, count, half);
    lin_half_widen(half, count, w->rounded + p->offset);
    const int same = memcmp(values, w->rounded + p->offset, count * sizeof *values) == 0;
    if (exact && !same) memcpy(w->rounded + p->offset, values, count * sizeof *values);
    w->tensors[w->n++] = exact && !same ? tensor_of(p, LIN_F32, values) : tensor_of(p, LIN_F16, half);
}

static lin_status write_whole(const lin_model *m, const lin_param *p, float *scales, written *w, const char *path, lin_error *err)
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
    w->tensors[w->n++] = tensor_of(p, LIN_I8, q);
    w->tensors[w->n++] = (lin_tensor){name_scale(name, p), LIN_F32, 1, {(size_t)p->n}, scales};
    return LIN_OK;
}

// dtype LIN_F16 or LIN_I8.
static lin_status write_rounded(const lin_model *m, const char *path, lin_dtype dtype, written *w, const lin_extras *extras,
                                lin_error *err)
{
    lin_status status = LIN_OK;
    float *scales = w->scales;
    int n_whole = 0;
    for (int i = 0; i < m->params.n_tensors && status == LIN_OK; i++) {
        const lin_param *p = &m->params.table[i];
        if (dtype == LIN_I8 && p->eight_bits) {
            status = write_whole(m, p, scales, w, path, err);
            scales += p->n;
            n_whole++;
        } else {
            write_half(m, p, dtype == LIN_I8, w);
        }
    }
    if (status == LIN_OK && dtype == LIN_I8 && !n_whole)
        status = lin_fail(err, LIN_UNSUPPORTED, "cannot save %s in eight bits: no layer of this kind of network has products of "
                          "eight bits; only those of a transformer do", path);
    if (status != LIN_OK) return status;
    return write_model(m, path, w->tensors, w->n, dtype == LIN_I8 ? int8_version : version, lin_model_fingerprint(m, w->rounded),
                       extras, err);
}

lin_status lin_model_save_extras(const lin_model *m, const char *path, lin_dtype dtype, const lin_extras *extras, lin_error *err)
{
    if (dtype != LIN_F32 && dtype != LIN_F16 && dtype != LIN_I8)
        return lin_fail(err, LIN_INVALID, "cannot save %s: weights of type %s; must be F32, F16 or I8", path,
                        lin_dtype_name(dtype));
    lin_status status = check_values(m, path, dtype, err);
    if (status == LIN_OK) status = check_extras(extras, path, err);
    if (status != LIN_OK) return status;
    const size_t n = (size_t)m->params.n_tensors, count = m->params.n_elements;
    const int rounds = dtype != LIN_F32;
    size_t rows = 1;
    for (size_t i = 0; i < n; i++) rows += (size_t)(dtype == LIN_I8 ? m->params.table[i].n : 0);
    written w = {.tensors = lin_alloc(2 * n, sizeof *w.tensors),
                 .names = lin_alloc(n, sizeof *w.names),
                 .bytes = rounds ? lin_alloc(count, 2) : NULL,
                 .scales = lin_alloc(rows, sizeof *w.scales),
                 .rounded = rounds ? lin_alloc(count, sizeof *w.rounded) : NULL};
    if (!w.tensors || !w.names || !w.scales || (rounds && (!w.bytes || !w.rounded))) {
        status = lin_no_memory(err, "saving a model", count * sizeof *w.rounded);
    } else if (rounds) {
        status = write_rounded(m, path, dtype, &w, extras, err);
    } else {
        for (size_t i = 0; i < n; i++)
            w.tensors[w.n++] = tensor_of(&m->params.table[i], LIN_F32, m->values + m->params.table[i].offset);
        status = write_model(m, path, w.tensors, w.n, version, lin_model_fingerprint(m, m->values), extras, err);
    }
    lin_free(w.tensors);
    lin_free(w.names);
    lin_free(w.bytes);
    lin_free(w.scales);
    lin_free(w.rounded);
    return status;
}

lin_status lin_model_save(const lin_model *m, const char *path, lin_dtype dtype, lin_error *err)
{
    return lin_model_save_extras(m, path, dtype, NULL, err);
}
