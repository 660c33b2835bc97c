// phone_names.c - splitting the text of a model's phones; see phone_names.h.

#include "model/phone_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static lin_status refuse_duplicate(char **names, size_t n, lin_error *err)
{
    char **sorted = lin_alloc(n, sizeof *sorted);
    if (!sorted) return lin_no_memory(err, "the phones", n * sizeof *sorted);
    memcpy(sorted, names, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_text);
    lin_status status = LIN_OK;
    for (size_t i = 1; i < n && status == LIN_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) status = lin_fail(err, LIN_INVALID, "phones: %s is repeated", sorted[i]);
    lin_free(sorted);
    return status;
}

lin_status lin_phones_split(const char *phones, int *count, char ***names, lin_error *err)
{
    *names = NULL;
    const size_t length = strlen(phones), good = lin_utf8_prefix(phones, length, "\t");
    if (good < length) return lin_fail(err, LIN_INVALID, "phones: byte %zu is not UTF-8 text", good);
    size_t n = 1, part = 0; // bytes of the name, or of what follows it
    int behind = 0;         // after the tab
    for (size_t i = 0; i <= length; i++) {
        const int end = phones[i] == ' ' || phones[i] == '\0', tab = phones[i] == '\t';
        if (tab && behind) return lin_fail(err, LIN_INVALID, "phones: name %zu has two tabs", n);
        if (!end && !tab && ++part > LIN_PHONE_BYTES)
            return lin_fail(err, LIN_INVALID, "phones: name %zu is longer than %d bytes", n, (int)LIN_PHONE_BYTES);
        if ((end || tab) && part == 0)
            return lin_fail(err, LIN_INVALID, "phones: name %zu is empty; single spaces separate names", n);
        if (end || tab) part = 0;
        behind = tab || (behind && !end);
        n += phones[i] == ' ';
    }
    if (n < 2 || n > 65536)
        return lin_fail(err, LIN_INVALID, "phones: %zu names; there must be 2 to 65536, the blank's first", n);
    char **block = lin_alloc(1, n * sizeof *block + length + 1);
    if (!block) return lin_no_memory(err, "the phones", length);
    char *text = (char *)(block + n);
    memcpy(text, phones, length + 1);
    for (size_t i = 0; i < n; i++) {
        block[i] = text;
        char *next = text + strcspn(text, " ") + 1;
        text[strcspn(text, " \t")] = '\0';
        text = next;
    }
    lin_status status = refuse_duplicate(block, n, err);
    if (status != LIN_OK) {
        lin_free(block);
        return status;
    }
    *count = (int)n;
    *names = block;
    return LIN_OK;
}

static size_t name_length(const char *at) { return strcspn(at, " \t"); }

// The first name of one text that the other lacks; NULL: none.
static const char *only_in(const char *one, const char *other)
{
    for (const char *at = one; *at; at += strcspn(at, " "), at += *at == ' ') {
        const size_t n = name_length(at);
        const char *found = other;
        while (*found && (name_length(found) != n || memcmp(found, at, n) != 0)) {
            found += strcspn(found, " ");
            found += *found == ' ';
        }
        if (!*found) return at;
    }
    return NULL;
}

const char *lin_phones_difference(const char *first, const char *second, char *out, size_t size)
{
    const char *name = only_in(first, second), *where = "first";
    if (!name) name = only_in(second, first), where = "second";
    if (name) snprintf(out, size, "'%.*s' is only in the %s", (int)name_length(name), name, where);
    else snprintf(out, size, "they have another order, another language or other IPA");
    return out;
}
