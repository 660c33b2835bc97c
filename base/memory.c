// memory.c - blocks, growing arrays, arenas, and the counters that tests read; see memory.h.

#include "base/memory.h"

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Each block is preceded by one 64-byte line with its size, which lin_resize needs to move it, and whether it was mapped.
enum { LINE = 64 };
typedef struct line {
    size_t bytes, mapped; // mapped: the size of the mapping; 0: from the C library
} line;

static atomic_ulong n_allocations, n_freed, fail_at;

static int must_fail(void)
{
    unsigned long now = atomic_fetch_add(&n_allocations, 1) + 1;
    return atomic_load(&fail_at) == now;
}

// Large blocks are weights and the states of many streams, all of which are read repeatedly: with pages of 4 KB a large part of
// that time is address translation. Sparse blocks are excluded from huge pages, because each touch would take 2 MB.
static void choose_pages(unsigned char *block, size_t bytes, int sparse)
{
#ifdef MADV_HUGEPAGE
    const size_t page = (size_t)1 << 21, skip = (page - (uintptr_t)block % page) % page;
    if (sparse) madvise(block, bytes, MADV_NOHUGEPAGE); // may fail
    else if (bytes >= 2 * page) madvise(block + skip, (bytes - skip) / page * page, MADV_HUGEPAGE);
#else
    (void)block, (void)bytes, (void)sparse;
#endif
}

// A mapping is zeroed by the system, page by page as they are touched: no second pass over it, and none over the part of a large
// scratch that is never used. The address sanitizer watches only blocks of the C library.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MAPPED_FROM SIZE_MAX
#else
#define MAPPED_FROM ((size_t)4 << 20)
#endif

static unsigned char *take(size_t bytes, int sparse, int *zeroed)
{
    const size_t whole = LINE + bytes;
    line head = {.bytes = bytes};
    void *block;
    *zeroed = bytes >= MAPPED_FROM;
    if (*zeroed) {
        head.mapped = whole;
        block = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) return NULL;
        choose_pages(block, sparse ? whole : bytes, sparse);
    } else if (posix_memalign(&block, LINE, whole) != 0) { // not rounded up: a sanitizer sees the first byte behind the block
        return NULL;
    }
    memcpy(block, &head, sizeof head);
    return (unsigned char *)block + LINE;
}

static void *allocate(size_t count, size_t size, int sparse, int *zeroed)
{
    if (size && count > (SIZE_MAX - 4 * LINE) / size) return NULL;
    unsigned char *block = must_fail() ? NULL : take(count * size, sparse, zeroed);
    if (!block) atomic_fetch_add(&n_freed, 1);
    return block;
}

void *lin_alloc(size_t count, size_t size)
{
    int zeroed;
    return allocate(count, size, 0, &zeroed);
}

void *lin_alloc_sparse(size_t count, size_t size)
{
    int zeroed;
    return allocate(count, size, 1, &zeroed);
}

void *lin_calloc(size_t count, size_t size)
{
    int zeroed;
    void *block = allocate(count, size, 0, &zeroed);
    if (block && !zeroed) memset(block, 0, count * size);
    return block;
}

void *lin_resize(void *block, size_t count, size_t size)
{
    if (!block) return lin_alloc(count, size);
    size_t old;
    memcpy(&old, (unsigned char *)block - LINE, sizeof old);
    void *moved = lin_alloc(count, size);
    if (!moved) return NULL;
    memcpy(moved, block, old < count * size ? old : count * size);
    lin_free(block);
    return moved;
}

lin_status lin_grow(void *array, size_t *capacity, size_t need, size_t size, const char *what, lin_error *err)
{
    void *block;
    if (need <= *capacity) return LIN_OK;
    const size_t want = need < SIZE_MAX / 2 - 64 ? need * 2 + 64 : need;
    memcpy(&block, array, sizeof block); // whatever the type of its elements
    assert(size > 0 && (block || *capacity == 0)); // the capacity is that of this array
    block = lin_resize(block, want, size);
    if (!block) return lin_no_memory(err, what, want * size);
    memcpy(array, &block, sizeof block);
    *capacity = want;
    return LIN_OK;
}

lin_status lin_grow_int(void *array, int *capacity, int64_t need, size_t size, const char *what, lin_error *err)
{
    size_t room = (size_t)*capacity;
    if (need > INT_MAX / 4) return lin_fail(err, LIN_INVALID, "too many elements for %s: %lld", what, (long long)need);
    lin_status status = lin_grow(array, &room, need > 0 ? (size_t)need : 0, size, what, err);
    *capacity = (int)room;
    return status;
}

char *lin_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = lin_alloc(n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

void lin_free(void *block)
{
    if (!block) return;
    atomic_fetch_add(&n_freed, 1);
    line head;
    unsigned char *begin = (unsigned char *)block - LINE;
    memcpy(&head, begin, sizeof head);
    if (head.mapped) munmap(begin, head.mapped);
    else free(begin);
}

lin_status lin_no_memory(lin_error *err, const char *what, size_t bytes)
{
    return lin_fail(err, LIN_NO_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}

unsigned long lin_memory_count(void) { return atomic_load(&n_allocations); }

unsigned long lin_memory_live(void) { return atomic_load(&n_allocations) - atomic_load(&n_freed); }

void lin_memory_fail_at(unsigned long k) { atomic_store(&fail_at, k ? atomic_load(&n_allocations) + k : 0); }

void *lin_arena_take(lin_arena *arena, size_t count, size_t size)
{
    assert(arena->used <= arena->size);
    if (size && count > SIZE_MAX / 2 / size) return NULL;
    size_t bytes = (count * size + LINE - 1) / LINE * LINE;
    if (bytes > arena->size - arena->used) return NULL;
    void *piece = arena->base + arena->used;
    arena->used += bytes;
    return piece;
}
