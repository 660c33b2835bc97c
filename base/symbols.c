// symbols.c - a table of strings with open addressing; see symbols.h.

#include "base/symbols.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static uint32_t hash_of(const char *text, size_t n) { return (uint32_t)lin_mix64(lin_fnv(LIN_FNV_START, text, n)); }

// The search for a free slot ends because at least half of them are free.
static int holds(const lin_symbols *s)
{
    return s->n <= s->capacity && 2 * (size_t)s->capacity <= s->n_slots && s->text_used <= s->text_capacity;
}

static size_t find_slot(const lin_symbols *s, const char *text, size_t n, uint32_t hash)
{
    size_t mask = s->n_slots - 1, at = hash & mask;
    for (; s->slots[at] >= 0; at = (at + 1) & mask) {
        const lin_symbol *item = &s->items[s->slots[at]];
        if (item->hash == hash && item->n == n && !memcmp(s->text + item->offset, text, n)) break;
    }
    return at;
}

static lin_status grow_slots(lin_symbols *s, size_t n_slots, lin_error *err)
{
    int32_t *slots = lin_alloc(n_slots, sizeof *slots);
    if (!slots) return lin_no_memory(err, "a table of strings", n_slots * sizeof *slots);
    for (size_t i = 0; i < n_slots; i++) slots[i] = -1;
    for (int i = 0; i < s->n; i++) {
        size_t at = s->items[i].hash & (n_slots - 1);
        while (slots[at] >= 0) at = (at + 1) & (n_slots - 1);
        slots[at] = i;
    }
    lin_free(s->slots);
    s->slots = slots;
    s->n_slots = n_slots;
    return LIN_OK;
}

lin_status lin_symbols_reserve(lin_symbols *s, int n, size_t bytes, lin_error *err)
{
    if (n < 0 || n > INT_MAX / 4) return lin_fail(err, LIN_INVALID, "too many distinct strings: %d", n);
    bytes += (size_t)n; // the NUL of each
    size_t n_slots = s->n_slots ? s->n_slots : 64;
    while (n_slots < 2 * (size_t)n) n_slots *= 2;
    if (n_slots > s->n_slots) LIN_TRY(grow_slots(s, n_slots, err)); // first, so that items never exceed half the slots
    if (n > s->capacity) {
        lin_symbol *items = lin_resize(s->items, (size_t)n, sizeof *items);
        if (!items) return lin_no_memory(err, "a table of strings", (size_t)n * sizeof *items);
        s->items = items;
        s->capacity = n;
    }
    if (bytes > s->text_capacity) {
        char *text = lin_resize(s->text, bytes, 1);
        if (!text) return lin_no_memory(err, "a table of strings", bytes);
        s->text = text;
        s->text_capacity = bytes;
    }
    return LIN_OK;
}

lin_status lin_symbols_add(lin_symbols *s, const char *text, size_t n, int *index, lin_error *err)
{
    assert(holds(s));
    if (n > UINT32_MAX / 2) return lin_fail(err, LIN_INVALID, "a string of %zu bytes is too long", n);
    uint32_t hash = hash_of(text, n);
    if (s->n_slots) {
        size_t at = find_slot(s, text, n, hash);
        if (s->slots[at] >= 0) {
            *index = s->slots[at];
            return LIN_OK;
        }
    }
    if (s->n == s->capacity || s->text_capacity - s->text_used < n + 1) {
        int want = s->n == s->capacity ? (s->n < 16 ? 16 : s->n * 2) : s->capacity;
        size_t bytes = s->text_capacity - s->text_used < n + 1 ? s->text_capacity * 2 + n + 64 : 0;
        LIN_TRY(lin_symbols_reserve(s, want, bytes, err));
    }
    assert(holds(s) && s->n < s->capacity && n < s->text_capacity - s->text_used);
    size_t at = find_slot(s, text, n, hash);
    s->items[s->n] = (lin_symbol){.offset = s->text_used, .n = (uint32_t)n, .hash = hash};
    if (n) memcpy(s->text + s->text_used, text, n);
    s->text[s->text_used + n] = '\0';
    s->text_used += n + 1;
    s->slots[at] = s->n;
    *index = s->n++;
    return LIN_OK;
}

int lin_symbols_find(const lin_symbols *s, const char *text, size_t n)
{
    return s->n_slots ? s->slots[find_slot(s, text, n, hash_of(text, n))] : -1;
}

const char *lin_symbols_text(const lin_symbols *s, int index) { return s->text + s->items[index].offset; }

void lin_symbols_free(lin_symbols *s)
{
    lin_free(s->items);
    lin_free(s->slots);
    lin_free(s->text);
    *s = (lin_symbols){0};
}
