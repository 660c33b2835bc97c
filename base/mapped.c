#include "base/mapped.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

// begin: 0 free, CLAIMED while it is filled in, else where the file lies.
typedef struct slot {
    _Atomic uintptr_t begin;
    _Atomic size_t n;
    char path[LIN_MAPPED_PATH];
} slot;

enum { CLAIMED = 1 };

static slot slots[LIN_MAPPED_FILES];

void lin_mapped_add(const void *bytes, size_t n, const char *path)
{
    for (int i = 0; i < LIN_MAPPED_FILES; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&slots[i].begin, &none, CLAIMED)) continue;
        const size_t length = strlen(path), over = length >= LIN_MAPPED_PATH ? length - (LIN_MAPPED_PATH - 1) : 0;
        memcpy(slots[i].path, path + over, length - over + 1);
        atomic_store(&slots[i].n, n);
        atomic_store(&slots[i].begin, (uintptr_t)bytes);
        return;
    }
}

void lin_mapped_remove(const void *bytes)
{
    for (int i = 0; i < LIN_MAPPED_FILES; i++) {
        uintptr_t begin = (uintptr_t)bytes;
        if (begin > CLAIMED && atomic_compare_exchange_strong(&slots[i].begin, &begin, 0)) return;
    }
}

const char *lin_mapped_find(const void *address)
{
    for (int i = 0; i < LIN_MAPPED_FILES; i++) {
        const uintptr_t begin = atomic_load(&slots[i].begin), at = (uintptr_t)address;
        // a fault lies within a page of the file, whose last one may reach beyond its end
        if (begin > CLAIMED && at >= begin && at - begin < (atomic_load(&slots[i].n) + 4095) / 4096 * 4096) return slots[i].path;
    }
    return NULL;
}
