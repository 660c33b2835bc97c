// provenance.c - what a model was trained on.

#include <string.h>

#include "train/provenance.h"

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

static int add(cJSON *json, const cJSON *set)
{
    cJSON *also = cJSON_GetObjectItemCaseSensitive(json, "also_trained_on");
    if (!also) also = cJSON_AddArrayToObject(json, "also_trained_on");
    cJSON *copy = cJSON_Duplicate(set, 1);
    if (copy && cJSON_AddItemToArray(also, copy)) return 1;
    cJSON_Delete(copy);
    return 0;
}

int lin_provenance_add(cJSON *json, const char *other)
{
    cJSON *from = cJSON_Parse(other); // NULL: a model whose provenance is not known
    int good = 1;
    for (int k = 0; k < KEYS; k++) {
        const cJSON *set;
        cJSON_ArrayForEach(set, cJSON_GetObjectItemCaseSensitive(from, keys[k]))
        {
            const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(set, "set"));
            if (name && !has(json, name)) good = good && add(json, set);
        }
    }
    cJSON_Delete(from);
    return good;
}
