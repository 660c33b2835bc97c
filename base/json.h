/*
 * json.h - parses JSON from files that may be hostile, with cJSON.
 *
 * Text is measured before cJSON parses it, so that nesting and memory are bounded. Every string is UTF-8 without control
 * characters, so it can be printed. Thread-safe (cJSON's parser alone is not: it stores errors in a global variable).
 * Trees are released with cJSON_Delete.
 */
#ifndef LIN_BASE_JSON_H
#define LIN_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/status.h"

/*
 * Parses n bytes that hold one JSON value and white space. Messages begin with name ("x.safetensors: the header"), and offset is
 * added to the byte numbers in them. LIN_FORMAT, LIN_NO_MEMORY; *json is then NULL.
 */
lin_status lin_json_parse(const char *text, size_t n, const char *name, size_t offset, cJSON **json, lin_error *err);

/*
 * Parses the first JSON value in n bytes without these limits, for callers with limits of their own. *end: number of bytes to its
 * end, or to the first byte that is not JSON. LIN_FORMAT, LIN_NO_MEMORY, without a message; *json is then NULL.
 */
lin_status lin_json_parse_value(const char *text, size_t n, cJSON **json, size_t *end);

/* 1 and the value, if item is a whole number from 0 to 2^53. */
int lin_json_size(const cJSON *item, size_t *value);

/* The mapping of a JSON object to the fields of a struct. */
typedef enum lin_json_kind { LIN_JSON_INT, LIN_JSON_BOOL, LIN_JSON_DOUBLE, LIN_JSON_NAME, LIN_JSON_FIXED } lin_json_kind;
typedef struct lin_json_field {
    const char *key;
    lin_json_kind kind;
    size_t offset;            /* of an int (INT, BOOL, NAME) or a double; unused by FIXED */
    const char *const *names; /* NAME: the values 0, 1, ... up to a NULL; FIXED: JSON texts, names[0] the only one allowed */
} lin_json_field;

/* Fills the fields of *to from a text. Each key must occur exactly once, and no others. LIN_FORMAT, LIN_UNSUPPORTED (a FIXED
 * field that differs), LIN_NO_MEMORY. */
lin_status lin_json_read(const char *text, const char *name, const lin_json_field *fields, int n_fields, void *to,
                         lin_error *err);

/* The inverse: text to be released with cJSON_free, NULL if out of memory. Numbers keep every bit. */
char *lin_json_write(const lin_json_field *fields, int n_fields, const void *from);

#endif
