/*
 * symbols.h - strings to small integers: each distinct string gets the next index, 0, 1, 2, ...
 *
 * Used by the pronunciation dictionary (words), the transcriber (unknown words) and the scorer (tokens, utterance ids, speakers).
 *
 *   lin_symbols words = {0};                       // an empty table needs no creation
 *   lin_symbols_add(&words, "hello", 5, &index, &err);
 *   index = lin_symbols_find(&words, "hello", 5);  // -1 if it is not in the table
 *   lin_symbols_free(&words);
 *
 * Threads: any number may call find and text while no thread adds.
 */
#ifndef LIN_BASE_SYMBOLS_H
#define LIN_BASE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct lin_symbol {
    uint64_t offset; /* of its NUL-terminated text */
    uint32_t n;    /* bytes without the NUL */
    uint32_t hash;
} lin_symbol;

typedef struct lin_symbols {
    int n; /* strings in the table */
    int capacity;
    lin_symbol *items;
    int32_t *slots; /* open addressing, index or -1; a power of two of them, at most half full */
    size_t n_slots;
    char *text;
    size_t text_used, text_capacity;
} lin_symbols;

/* Reserves room for `n` strings of `bytes` bytes in total, so that adding them allocates nothing. */
lin_status lin_symbols_reserve(lin_symbols *symbols, int n, size_t bytes, lin_error *err);

/* Finds or adds n bytes, which may be any. On failure the table is unchanged. */
lin_status lin_symbols_add(lin_symbols *symbols, const char *text, size_t n, int *index, lin_error *err);

int lin_symbols_find(const lin_symbols *symbols, const char *text, size_t n);

/* With a NUL behind it, valid until the next add. */
const char *lin_symbols_text(const lin_symbols *symbols, int index);

/* Releases everything; the table is empty again. */
void lin_symbols_free(lin_symbols *symbols);

#endif
