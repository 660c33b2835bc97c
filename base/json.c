// json.c - checking and parsing JSON, and structs from and to it; see json.h.

#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/unicode.h"

// A header of linnet's own models has some 1,500 values in 4 levels; these limits keep a hostile one below 30 MB of memory.
enum { MAX_DEPTH = 16, MAX_VALUES = 200000 };

// Checks nesting and number of values by the brackets and commas outside strings.
static lin_status measure(const char *text, size_t n, const char *name, size_t offset, lin_error *err)
{
    int depth = 0;
    size_t values = 0;
    const size_t good = lin_utf8_prefix(text, n, "\t\n\r");
    if (good < n) return lin_fail(err, LIN_FORMAT, "%s is not text in UTF-8 at byte %zu", name, offset + good);
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (c == '"') {
            for (i++; i < n && text[i] != '"'; i++)
                if (text[i] == '\\') i++;
        } else if (c == '{' || c == '[') {
            values++;
            if (++depth > MAX_DEPTH)
                return lin_fail(err, LIN_FORMAT, "%s nests deeper than %d levels at byte %zu", name, MAX_DEPTH, offset + i);
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',' && ++values > MAX_VALUES) {
            return lin_fail(err, LIN_FORMAT, "%s has more than %d values", name, MAX_VALUES);
        }
    }
    return LIN_OK;
}

// Escapes such as \u001b become control characters only in the parsed tree.
static int is_clean(const cJSON *item)
{
    for (; item; item = item->next) {
        if (item->string && item->string[lin_utf8_prefix(item->string, strlen(item->string), "")]) return 0;
        const char *value = cJSON_IsString(item) ? item->valuestring : "";
        if (value[lin_utf8_prefix(value, strlen(value), "\t\n\r")]) return 0;
        if (!is_clean(item->child)) return 0;
    }
    return 1;
}

static pthread_mutex_t parse_lock = PTHREAD_MUTEX_INITIALIZER;

lin_status lin_json_parse_value(const char *text, size_t n, cJSON **json, size_t *end)
{
    const char *stop = text;
    pthread_mutex_lock(&parse_lock);
    errno = 0;
    *json = cJSON_ParseWithLengthOpts(text, n, &stop, 0);
    const int error = errno;
    pthread_mutex_unlock(&parse_lock);
    *end = (size_t)(stop - text);
    return *json ? LIN_OK : error == ENOMEM ? LIN_NO_MEMORY : LIN_FORMAT;
}

lin_status lin_json_parse(const char *text, size_t n, const char *name, size_t offset, cJSON **json, lin_error *err)
{
    *json = NULL;
    size_t end;
    cJSON *tree;
    LIN_TRY(measure(text, n, name, offset, err));
    lin_status status = lin_json_parse_value(text, n, &tree, &end);
    if (status == LIN_NO_MEMORY) return lin_no_memory(err, "parsing JSON", n);
    if (status != LIN_OK) return lin_fail(err, status, "%s is not JSON at byte %zu", name, offset + end);
    while (end < n && strchr(" \t\r\n", text[end])) end++;
    if (end < n) status = lin_fail(err, LIN_FORMAT, "%s has extra text after its end, at byte %zu", name, offset + end);
    else if (!is_clean(tree)) status = lin_fail(err, LIN_FORMAT, "%s contains control characters", name);
    if (status == LIN_OK) *json = tree;
    else cJSON_Delete(tree);
    return status;
}

int lin_json_size(const cJSON *item, size_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53)) return 0;
    *value = (size_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static int same_json(const cJSON *item, const char *text)
{
    if (cJSON_IsString(item))
        return strncmp(item->valuestring, text + 1, strlen(text) - 2) == 0 && strlen(item->valuestring) + 2 == strlen(text);
    if (cJSON_IsBool(item)) return strcmp(text, cJSON_IsTrue(item) ? "true" : "false") == 0;
    char number[32];
    snprintf(number, sizeof number, "%g", cJSON_IsNumber(item) ? item->valuedouble : 0.0);
    return cJSON_IsNumber(item) && strcmp(text, number) == 0;
}

static lin_status read_field(const cJSON *item, const char *name, const lin_json_field *field, void *to, lin_error *err)
{
    int *whole = (int *)(void *)((char *)to + field->offset);
    double *real = (double *)(void *)((char *)to + field->offset);
    const double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
    switch (field->kind) {
    case LIN_JSON_INT:
        if (!cJSON_IsNumber(item) || !(value >= INT_MIN && value <= INT_MAX) || (double)(int)value != value)
            return lin_fail(err, LIN_FORMAT, "%s: %s is not a whole number", name, field->key);
        *whole = (int)value;
        return LIN_OK;
    case LIN_JSON_BOOL:
        if (!cJSON_IsBool(item)) return lin_fail(err, LIN_FORMAT, "%s: %s is not true or false", name, field->key);
        *whole = cJSON_IsTrue(item) ? 1 : 0;
        return LIN_OK;
    case LIN_JSON_DOUBLE:
        if (!cJSON_IsNumber(item)) return lin_fail(err, LIN_FORMAT, "%s: %s is not a number", name, field->key);
        *real = value;
        return LIN_OK;
    case LIN_JSON_NAME:
        for (int i = 0; cJSON_IsString(item) && field->names[i]; i++)
            if (strcmp(item->valuestring, field->names[i]) == 0) {
                *whole = i;
                return LIN_OK;
            }
        return lin_fail(err, LIN_FORMAT, "%s: %s is not one of its names (\"%s\", ...)", name, field->key, field->names[0]);
    default:
        if (same_json(item, field->names[0])) return LIN_OK;
        return lin_fail(err, LIN_UNSUPPORTED, "%s: %s is not %s, the only value this program supports", name, field->key,
                        field->names[0]);
    }
}

lin_status lin_json_read(const char *text, const char *name, const lin_json_field *fields, int n_fields, void *to, lin_error *err)
{
    cJSON *json;
    LIN_TRY(lin_json_parse(text, strlen(text), name, 0, &json, err));
    lin_status status = LIN_OK;
    unsigned long long seen = 0; // one bit per field
    if (!cJSON_IsObject(json)) status = lin_fail(err, LIN_FORMAT, "%s is not a JSON object", name);
    for (const cJSON *item = json->child; item && status == LIN_OK; item = item->next) {
        int f = 0;
        while (f < n_fields && strcmp(item->string, fields[f].key) != 0) f++;
        if (f == n_fields) status = lin_fail(err, LIN_FORMAT, "%s: %.64s is unknown", name, item->string);
        else if (seen >> f & 1) status = lin_fail(err, LIN_FORMAT, "%s: %s is repeated", name, fields[f].key);
        else status = read_field(item, name, &fields[f], to, err);
        seen |= f < n_fields ? 1ULL << f : 0;
    }
    for (int f = 0; f < n_fields && status == LIN_OK; f++)
        if (!(seen >> f & 1)) status = lin_fail(err, LIN_FORMAT, "%s: %s is missing", name, fields[f].key);
    cJSON_Delete(json);
    return status;
}

// cJSON prints 15 digits if they are nearly enough; here a number must be restored exactly, in any locale.
static cJSON *make_double(double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    for (char *c = text; *c; c++)
        if (!strchr("0123456789+-e", *c)) *c = '.';
    return cJSON_CreateRaw(text);
}

static cJSON *make_field(const lin_json_field *field, const void *from)
{
    const int *whole = (const int *)(const void *)((const char *)from + field->offset);
    const double *real = (const double *)(const void *)((const char *)from + field->offset);
    switch (field->kind) {
    case LIN_JSON_INT: return cJSON_CreateNumber(*whole);
    case LIN_JSON_BOOL: return cJSON_CreateBool(*whole);
    case LIN_JSON_DOUBLE: return make_double(*real);
    case LIN_JSON_NAME: return cJSON_CreateString(field->names[*whole]);
    default: return cJSON_CreateRaw(field->names[0]);
    }
}

char *lin_json_write(const lin_json_field *fields, int n_fields, const void *from)
{
    cJSON *json = cJSON_CreateObject();
    int good = json != NULL;
    for (int f = 0; f < n_fields && good; f++) {
        cJSON *item = make_field(&fields[f], from);
        good = item && cJSON_AddItemToObject(json, fields[f].key, item);
        if (!good) cJSON_Delete(item);
    }
    char *text = good ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return text;
}
