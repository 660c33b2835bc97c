#include "base/names.h"

#include <limits.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

// The slot of the name, or the empty one where it belongs.
static size_t find_slot(const lin_names *names, const char *text, size_t n)
{
    size_t slot = (size_t)lin_hash(text, n, 0) & (names->n_slots - 1);
    for (; names->slots[slot] >= 0; slot = (slot + 1) & (names->n_slots - 1)) {
        const char *name = lin_names_at(names, names->slots[slot]);
        if (strncmp(name, text, n) == 0 && name[n] == '\0') break;
    }
    return slot;
}

static int grow_slots(lin_names *names)
{
    const size_t n = names->n_slots ? names->n_slots * 2 : 64;
    int *slots = lin_alloc(n, sizeof *slots);
    if (!slots) return 0;
    for (size_t i = 0; i < n; i++) slots[i] = -1;
    lin_free(names->slots);
    names->slots = slots;
    names->n_slots = n;
    for (int i = 0; i < names->count; i++) {
        const char *name = lin_names_at(names, i);
        slots[find_slot(names, name, strlen(name))] = i;
    }
    return 1;
}

static int make_room(lin_names *names, size_t n)
{
    if ((size_t)names->count + 1 > names->n_slots / 2 && !grow_slots(names)) return 0;
    if (names->count == names->room_offsets) {
        const int room = names->room_offsets ? names->room_offsets * 2 : 64;
        size_t *offsets = lin_resize(names->offsets, (size_t)room, sizeof *offsets);
        if (!offsets) return 0;
        names->offsets = offsets;
        names->room_offsets = room;
    }
    if (n + 1 > names->room - names->used) {
        const size_t room = (names->used + n + 1) * 2;
        char *bytes = lin_resize(names->bytes, room, 1);
        if (!bytes) return 0;
        names->bytes = bytes;
        names->room = room;
    }
    return 1;
}

lin_status lin_names_add(lin_names *names, const char *text, size_t n, int *index, lin_error *err)
{
    *index = lin_names_find(names, text, n);
    if (*index >= 0) return LIN_OK;
    if (names->count >= INT_MAX / 4 || !make_room(names, n)) return lin_no_memory(err, "a list of names", names->used + n + 1);
    const size_t slot = find_slot(names, text, n);
    names->offsets[names->count] = names->used;
    memcpy(names->bytes + names->used, text, n);
    names->bytes[names->used + n] = '\0';
    names->used += n + 1;
    *index = names->slots[slot] = names->count++;
    return LIN_OK;
}

int lin_names_find(const lin_names *names, const char *text, size_t n)
{
    return names->n_slots ? names->slots[find_slot(names, text, n)] : -1;
}

void lin_names_free(lin_names *names)
{
    lin_free(names->bytes);
    lin_free(names->offsets);
    lin_free(names->slots);
    *names = (lin_names){0};
}
