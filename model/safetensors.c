// safetensors.c - parsing and writing safetensors; see safetensors.h.

#include "model/safetensors.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/unicode.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied from and to little-endian files byte for byte");

// The header of linnet's own models is about 12 KB.
enum { MAX_HEADER = 16 << 20, ALIGN = 64, PREFIX = 8 };

// By lin_dtype: the largest elements first, in the order in which tensors are written.
static const char *const dtype_names[LIN_DTYPES] = {"F32", "F16", "I8"};
static const size_t dtype_sizes[LIN_DTYPES] = {4, 2, 1};

const char *lin_dtype_name(lin_dtype dtype) { return dtype_names[dtype]; }

size_t lin_tensor_count(const lin_tensor *t)
{
    size_t count = 1;
    for (int i = 0; i < t->n_dims; i++) count *= t->shape[i];
    return count;
}

static size_t tensor_bytes(const lin_tensor *t) { return lin_tensor_count(t) * dtype_sizes[t->dtype]; }

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static lin_status read_tensor(const cJSON *item, const unsigned char *data, size_t n_data, const char *file, lin_tensor *t,
                              lin_error *err)
{
    *t = (lin_tensor){.name = item->string};
    const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL;
    const char *wrong = cJSON_IsObject(item) ? NULL : "is not an object";
    for (const cJSON *field = wrong ? NULL : item->child; field && !wrong; field = field->next) {
        const cJSON **to = strcmp(field->string, "dtype") == 0          ? &dtype
                           : strcmp(field->string, "shape") == 0        ? &shape
                           : strcmp(field->string, "data_offsets") == 0 ? &offsets
                                                                        : NULL;
        if (!to) wrong = "has a field besides dtype, shape and data_offsets";
        else if (*to) wrong = "has a repeated field";
        else *to = field;
    }
    if (!wrong &&
        (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) || !cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2))
        wrong = "has no dtype, shape or data_offsets";
    if (wrong) return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s %s in the header", file, t->name, wrong);

    int d = 0;
    while (d < LIN_DTYPES && strcmp(dtype_names[d], dtype->valuestring) != 0) d++;
    if (d == LIN_DTYPES)
        return lin_fail(err, LIN_UNSUPPORTED, "%s: tensor %.64s is of type %.16s; this program reads F32, F16 and I8", file,
                        t->name, lin_utf8_line(dtype->valuestring));
    t->dtype = (lin_dtype)d;

    size_t bytes = dtype_sizes[d];
    for (const cJSON *dim = shape->child; dim; dim = dim->next) {
        if (t->n_dims == 4) return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s has more than 4 dimensions", file, t->name);
        size_t *extent = &t->shape[t->n_dims++];
        if (!lin_json_size(dim, extent))
            return lin_fail(err, LIN_FORMAT, "%s: the shape of tensor %.64s has values that are not whole numbers", file,
                            t->name);
        if (*extent && bytes > SIZE_MAX / *extent)
            return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s is too large", file, t->name);
        bytes *= *extent;
    }
    size_t begin, end;
    if (!lin_json_size(offsets->child, &begin) || !lin_json_size(offsets->child->next, &end) || begin > end)
        return lin_fail(err, LIN_FORMAT, "%s: the offsets of tensor %.64s are not two whole numbers in rising order", file,
                        t->name);
    if (end > n_data)
        return lin_fail(err, LIN_FORMAT,
                        "%s: tensor %.64s ends at byte %zu of the data, which has %zu; the file is truncated", file,
                        t->name, end, n_data);
    if (end - begin != bytes)
        return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s needs %zu bytes for its shape and type but has %zu", file, t->name,
                        bytes, end - begin);
    t->data = data + begin;
    return LIN_OK;
}

static int by_data(const void *a, const void *b)
{
    const lin_tensor *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q) return p < q ? -1 : 1;
    const size_t m = tensor_bytes(x), n = tensor_bytes(y); // empty ones first
    return (m > n) - (m < n);
}

static int by_name(const void *a, const void *b) { return strcmp(((const lin_tensor *)a)->name, ((const lin_tensor *)b)->name); }

static int by_key(const void *a, const void *b) { return strcmp(((const lin_text *)a)->key, ((const lin_text *)b)->key); }

// No gap, no overlap, nothing left over, and no repeated name. Leaves the tensors sorted by name.
static lin_status check_layout(lin_safetensors *st, const unsigned char *data, size_t n_data, const char *file, lin_error *err)
{
    const unsigned char *at = data;
    if (st->n_tensors) qsort(st->tensors, (size_t)st->n_tensors, sizeof *st->tensors, by_data);
    for (int i = 0; i < st->n_tensors; i++) {
        const lin_tensor *t = &st->tensors[i];
        const unsigned char *begin = t->data;
        if (begin != at)
            return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s %s at byte %zu of the data", file, t->name,
                            begin < at ? "overlaps another one" : "leaves a gap before it", (size_t)(begin - data));
        at += tensor_bytes(t);
    }
    if (at != data + n_data)
        return lin_fail(err, LIN_FORMAT, "%s: %zu bytes after the last tensor", file, (size_t)(data + n_data - at));
    if (st->n_tensors) qsort(st->tensors, (size_t)st->n_tensors, sizeof *st->tensors, by_name);
    for (int i = 1; i < st->n_tensors; i++)
        if (strcmp(st->tensors[i - 1].name, st->tensors[i].name) == 0)
            return lin_fail(err, LIN_FORMAT, "%s: tensor %.64s is repeated", file, st->tensors[i].name);
    return LIN_OK;
}

static lin_status read_texts(const cJSON *meta, lin_safetensors *st, const char *file, lin_error *err)
{
    if (!cJSON_IsObject(meta)) return lin_fail(err, LIN_FORMAT, "%s: __metadata__ is not an object", file);
    const size_t n = (size_t)cJSON_GetArraySize(meta);
    st->texts = lin_calloc(n, sizeof *st->texts);
    if (!st->texts) return lin_no_memory(err, "the metadata of a model", n * sizeof *st->texts);
    for (const cJSON *item = meta->child; item; item = item->next) {
        if (!cJSON_IsString(item))
            return lin_fail(err, LIN_FORMAT, "%s: the metadata value %.64s is not a string", file, item->string);
        st->texts[st->n_texts++] = (lin_text){item->string, item->valuestring};
    }
    if (n) qsort(st->texts, n, sizeof *st->texts, by_key);
    for (int i = 1; i < st->n_texts; i++)
        if (strcmp(st->texts[i - 1].key, st->texts[i].key) == 0)
            return lin_fail(err, LIN_FORMAT, "%s: the metadata value %.64s is repeated", file, st->texts[i].key);
    return LIN_OK;
}

static lin_status read_header(const cJSON *json, lin_safetensors *st, const unsigned char *data, size_t n_data, const char *file,
                              lin_error *err)
{
    if (!cJSON_IsObject(json))
        return lin_fail(err, LIN_FORMAT, "%s: the header is not a JSON object; not a safetensors file", file);
    const size_t n = (size_t)cJSON_GetArraySize(json);
    st->tensors = lin_calloc(n, sizeof *st->tensors);
    if (!st->tensors) return lin_no_memory(err, "the tensors of a model", n * sizeof *st->tensors);
    for (const cJSON *item = json->child; item; item = item->next) {
        lin_status status;
        if (strcmp(item->string, "__metadata__") != 0) {
            status = read_tensor(item, data, n_data, file, &st->tensors[st->n_tensors++], err);
        } else if (st->texts) {
            status = lin_fail(err, LIN_FORMAT, "%s: __metadata__ is repeated", file);
        } else {
            status = read_texts(item, st, file, err);
        }
        if (status != LIN_OK) return status;
    }
    return check_layout(st, data, n_data, file, err);
}

lin_status lin_safetensors_parse(const void *bytes, size_t n_bytes, const char *file, lin_safetensors *st, lin_error *err)
{
    *st = (lin_safetensors){0};
    uint64_t length;
    if (n_bytes == 0) return lin_fail(err, LIN_FORMAT, "%s: the file is empty", file);
    if (n_bytes < PREFIX + 2) return lin_fail(err, LIN_FORMAT, "%s: %zu bytes are too few for a model", file, n_bytes);
    memcpy(&length, bytes, sizeof length);
    const char *text = (const char *)bytes + PREFIX;
    // checked before the length, because foreign files fail here and get the clearer message
    if (*text != '{') return lin_fail(err, LIN_FORMAT, "%s: not a safetensors file: no header at byte %d", file, PREFIX);
    if (length > MAX_HEADER)
        return lin_fail(err, LIN_FORMAT,
                        "%s: the header gives its size as %" PRIu64 " bytes, over the limit of %d; damaged, or not a model", file,
                        length, MAX_HEADER);
    if (length > n_bytes - PREFIX)
        return lin_fail(err, LIN_FORMAT,
                        "%s: the header gives its size as %" PRIu64 " bytes but the file has %zu; it is truncated", file, length,
                        n_bytes);
    const size_t n = (size_t)length;
    char name[512];
    snprintf(name, sizeof name, "%.*s: the header", (int)sizeof name - 16, file);
    cJSON *json;
    LIN_TRY(lin_json_parse(text, n, name, PREFIX, &json, err));
    st->json = json;
    lin_status status = read_header(json, st, (const unsigned char *)text + n, n_bytes - PREFIX - n, file, err);
    if (status != LIN_OK) lin_safetensors_free(st);
    return status;
}

const lin_tensor *lin_safetensors_find(const lin_safetensors *st, const char *name)
{
    const lin_tensor key = {.name = name};
    return st->n_tensors ? bsearch(&key, st->tensors, (size_t)st->n_tensors, sizeof key, by_name) : NULL;
}

const char *lin_safetensors_text(const lin_safetensors *st, const char *name)
{
    const lin_text key = {.key = name};
    const lin_text *found = st->n_texts ? bsearch(&key, st->texts, (size_t)st->n_texts, sizeof key, by_key) : NULL;
    return found ? found->value : NULL;
}

void lin_safetensors_free(lin_safetensors *st)
{
    cJSON_Delete(st->json);
    lin_free(st->tensors);
    lin_free(st->texts);
    *st = (lin_safetensors){0};
}

/* ---- checksum -------------------------------------------------------------------------------------------------------------- */

static uint64_t hash_text(const char *text, uint64_t seed) { return lin_hash(text, strlen(text), seed); }

uint64_t lin_safetensors_checksum(const lin_tensor *tensors, int n_tensors, const lin_text *texts, int n_texts)
{
    uint64_t sum = 0; // of one hash for each: independent of their order
    for (int i = 0; i < n_tensors; i++) {
        const lin_tensor *t = &tensors[i];
        uint64_t shape[4];
        for (int d = 0; d < t->n_dims; d++) shape[d] = t->shape[d];
        uint64_t h = hash_text(lin_dtype_name(t->dtype), hash_text(t->name, 1));
        h = lin_hash(shape, (size_t)t->n_dims * sizeof *shape, h);
        sum += lin_mix64(lin_hash(t->data, tensor_bytes(t), h));
    }
    for (int i = 0; i < n_texts; i++)
        if (strcmp(texts[i].key, LIN_CHECKSUM_KEY) != 0)
            sum += lin_mix64(hash_text(texts[i].value, hash_text(texts[i].key, 2)));
    return lin_mix64(sum);
}

/* ---- writing --------------------------------------------------------------------------------------------------------------- */

// cJSON does not report failed additions later, so each step returns whether it succeeded.
static int add_tensor(cJSON *json, const lin_tensor *t, size_t begin)
{
    cJSON *item = cJSON_AddObjectToObject(json, t->name);
    if (!item || !cJSON_AddStringToObject(item, "dtype", lin_dtype_name(t->dtype))) return 0;
    cJSON *shape = cJSON_AddArrayToObject(item, "shape");
    for (int i = 0; shape && i < t->n_dims; i++) {
        cJSON *extent = cJSON_CreateNumber((double)t->shape[i]);
        if (!extent || !cJSON_AddItemToArray(shape, extent)) return 0;
    }
    cJSON *offsets = shape ? cJSON_AddArrayToObject(item, "data_offsets") : NULL;
    if (!offsets) return 0;
    const size_t ends[] = {begin, begin + tensor_bytes(t)};
    for (int i = 0; i < 2; i++) {
        cJSON *end = cJSON_CreateNumber((double)ends[i]);
        if (!end || !cJSON_AddItemToArray(offsets, end)) return 0;
    }
    return 1;
}

// The header as text, to be released with cJSON_free; NULL if out of memory. order: indices of the tensors in the order of the
// file.
static char *make_header(const lin_tensor *tensors, const int *order, int n_tensors, const lin_text *texts, int n_texts)
{
    cJSON *json = cJSON_CreateObject(), *meta = json ? cJSON_AddObjectToObject(json, "__metadata__") : NULL;
    int good = meta != NULL;
    for (int i = 0; good && i < n_texts; i++) good = cJSON_AddStringToObject(meta, texts[i].key, texts[i].value) != NULL;
    size_t at = 0;
    for (int i = 0; good && i < n_tensors; i++) {
        good = add_tensor(json, &tensors[order[i]], at);
        at += tensor_bytes(&tensors[order[i]]);
    }
    char *text = good ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static lin_status write_file(const char *path, const char *header, const lin_tensor *tensors, const int *order, int n_tensors,
                             lin_error *err)
{
    static const char spaces[] = "                                                                ";
    _Static_assert(sizeof spaces > ALIGN, "padding");
    const size_t n = strlen(header), padded = (n + PREFIX + ALIGN - 1) / ALIGN * ALIGN - PREFIX;
    if (padded > MAX_HEADER)
        return lin_fail(err, LIN_INVALID, "cannot write %s: the metadata take %zu bytes, over the limit of %d", path, padded,
                        MAX_HEADER);
    const uint64_t length = padded;
    lin_file_writer *writer;
    LIN_TRY(lin_file_open(path, 0, &writer, err));
    lin_status status = lin_file_write(writer, &length, sizeof length, err);
    if (status == LIN_OK) status = lin_file_write(writer, header, n, err);
    if (status == LIN_OK) status = lin_file_write(writer, spaces, padded - n, err);
    for (int i = 0; status == LIN_OK && i < n_tensors; i++)
        status = lin_file_write(writer, tensors[order[i]].data, tensor_bytes(&tensors[order[i]]), err);
    if (status == LIN_OK) return lin_file_commit(writer, err);
    lin_file_abort(writer);
    return status;
}

lin_status lin_safetensors_write(const char *path, const lin_tensor *tensors, int n_tensors, const lin_text *texts, int n_texts,
                                 lin_error *err)
{
    for (int i = 0; i < n_texts; i++) {
        const size_t n = strlen(texts[i].value);
        if (lin_utf8_prefix(texts[i].value, n, "\t\n\r") < n)
            return lin_fail(err, LIN_INVALID, "cannot write %s: the metadata value %s is not UTF-8 text", path, texts[i].key);
    }
    for (int i = 0; i < n_tensors; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(tensors[i].name, tensors[j].name) == 0)
                return lin_fail(err, LIN_INVALID, "cannot write %s: tensor %s is repeated", path, tensors[i].name);
    int *order = lin_alloc((size_t)n_tensors + 1, sizeof *order), n = 0;
    if (!order) return lin_no_memory(err, "writing a model", (size_t)n_tensors * sizeof *order);
    for (int d = 0; d < LIN_DTYPES; d++)
        for (int i = 0; i < n_tensors; i++)
            if ((int)tensors[i].dtype == d) order[n++] = i;
    lin_status status;
    char *header = make_header(tensors, order, n, texts, n_texts);
    if (header) status = write_file(path, header, tensors, order, n, err);
    else status = lin_no_memory(err, "the header of a model", (size_t)n_tensors * 128);
    cJSON_free(header);
    lin_free(order);
    return status;
}
