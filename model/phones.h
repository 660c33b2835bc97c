/*
 * phones.h - the names of a model's outputs: one text, separated by single spaces, the blank's name first.
 */
#ifndef LIN_MODEL_PHONES_H
#define LIN_MODEL_PHONES_H

#include "base/status.h"

enum { LIN_PHONE_BYTES = 63 }; /* the longest name */

/*
 * Splits the text into *count names: an array of pointers and the names themselves in one block, released with lin_free.
 * LIN_INVALID if there are fewer than 2 or more than 65,536 names, one is there twice, is too long, or holds control characters or
 * bytes that are not UTF-8; or if they are not separated by single spaces. LIN_NO_MEMORY. *names is then NULL.
 */
lin_status lin_phones_split(const char *phones, int *count, char ***names, lin_error *err);

#endif
