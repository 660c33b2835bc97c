/*
 * readers.h - code shared by the fuzz targets of result files: reads one file in one format and checks the result.
 *
 * The first byte chooses: bit 0 case, bit 1 words instead of phones, bit 2 phones in the IPA. The bytes before a byte 0x1E are a
 * phone map.
 */
#ifndef LIN_TESTS_FUZZ_READERS_H
#define LIN_TESTS_FUZZ_READERS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "train/score/edit.h"
#include "train/score/trn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check_status(lin_status status, const lin_error *err)
{
    if (status != LIN_OK && (status != err->status || !err->message[0])) abort();
}

/* Every index is within its table; the texts have no control characters and no token has blanks. */
static inline void look_at(const lin_trn *trn, const lin_symbols *tokens)
{
    for (int u = 0; u < trn->n; u++) {
        const lin_trn_utterance *v = &trn->utterances[u];
        if (v->n < 0 || v->line < 1 || v->first + (size_t)v->n > trn->n_tokens) abort();
        for (int i = 0; i < v->n; i++) {
            int token = trn->tokens[v->first + (size_t)i];
            if (token < LIN_EDIT_OPTIONAL || token == -1 || token >= tokens->n) abort();
        }
    }
    if (trn->ids.n != trn->n) abort();
    for (int i = 0; i < tokens->n; i++) {
        const char *text = lin_symbols_text(tokens, i);
        size_t n = tokens->items[i].n;
        if (!n || lin_text_find_control(text, n) < n || memchr(text, ' ', n) || memchr(text, '\t', n)) abort();
    }
}

static inline void read_any(const uint8_t *data, size_t size, lin_trn_format format)
{
    if (!size) return;
    unsigned long live = lin_memory_live();
    lin_trn_options o = {.format = format, .case_sensitive = data[0] & 1, .unit = data[0] & 2 ? LIN_TRN_WORDS : LIN_TRN_PHONES};
    const char *text = (const char *)data + 1, *cut = memchr(text, 0x1E, size - 1);
    size_t n = size - 1;
    lin_error err = {0};
    lin_phone_map *map = NULL;
    lin_symbols tokens = {0};
    lin_trn trn;
    if (cut) {
        check_status(lin_phone_map_parse(text, (size_t)(cut - text), "map", o.case_sensitive, &map, &err), &err);
        n -= (size_t)(cut + 1 - text);
        text = cut + 1;
    }
    lin_phones *phones = NULL;
    if (data[0] & 4) check_status(lin_phones_create(NULL, &phones, &err), &err);
    o.phones = phones;
    o.map = map;
    lin_status status = lin_trn_parse(text, n, "x", &o, &tokens, &trn, &err);
    check_status(status, &err);
    if (status == LIN_OK) look_at(&trn, &tokens);
    lin_trn_free(&trn);
    lin_symbols_free(&tokens);
    lin_phone_map_destroy(map);
    lin_phones_destroy(phones);
    if (lin_memory_live() != live) abort();
}

#endif
