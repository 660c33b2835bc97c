/*
 * phone_names.h - the names of a model's outputs: one text, separated by single spaces, blank first. A tab and more about it may
 * follow a name (lexicon/phones.h), which models keep and do not read.
 */
#ifndef LIN_MODEL_PHONE_NAMES_H
#define LIN_MODEL_PHONE_NAMES_H

#include <stddef.h>

#include "base/status.h"

enum { LIN_PHONE_BYTES = 63 }; /* the longest name */

/*
 * Splits the text into *count names: an array of pointers and the names themselves in one block, released with lin_free.
 * LIN_INVALID if there are fewer than 2 or more than 65,536 names; if a name is repeated, too long, or contains control
 * characters or bytes that are not UTF-8; or if the separators are not single spaces. LIN_NO_MEMORY. On failure *names is NULL.
 */
lin_status lin_phones_split(const char *phones, int *count, char ***names, lin_error *err);

/* How two such texts differ, for a message: "'ø' is only in the first". Writes to out and returns it. */
const char *lin_phones_difference(const char *first, const char *second, char *out, size_t size);

#endif
