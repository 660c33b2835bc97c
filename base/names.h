/*
 * names.h - a growing set of names, found by hash and numbered in the order they came.
 */
#ifndef LIN_BASE_NAMES_H
#define LIN_BASE_NAMES_H

#include <stddef.h>

#include "base/status.h"

typedef struct lin_names {
    char *bytes; /* the names, each with its NUL, end to end */
    size_t used, room;
    int count, room_offsets;
    size_t *offsets; /* [count] */
    int *slots;      /* open addressing, -1 empty; n_slots a power of two, at most half full */
    size_t n_slots;
} lin_names;

/* Start from {0}. *index: of the name, which is new if it equals the count before the call. LIN_NO_MEMORY: nothing was added. */
lin_status lin_names_add(lin_names *names, const char *text, size_t n, int *index, lin_error *err);
/* -1 if it is not there. */
int lin_names_find(const lin_names *names, const char *text, size_t n);
/* Valid until the next name is added. */
static inline const char *lin_names_at(const lin_names *names, int i) { return names->bytes + names->offsets[i]; }
void lin_names_free(lin_names *names);

#endif
