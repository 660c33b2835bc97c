// Memory of the device and pinned memory of the host: poisoned when it is had, guarded at both ends.
#include "tests/emulation/internal.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>

#ifdef EMULATED_ASAN
enum { GUARD = 0 }; // AddressSanitizer watches the ends of the block, and sees reads as well
#else
enum { GUARD = 256 };
#endif

struct block {
    size_t bytes;
    emulated_place place;
};

static std::map<uintptr_t, block> blocks;
static unsigned long n_made;
static size_t used;

size_t emulated_memory_used(void) { return used; }

static void *make(size_t bytes, emulated_place place)
{
    void *base = NULL;
    if (posix_memalign(&base, 256, GUARD + bytes + GUARD) != 0) return NULL;
    unsigned char *user = (unsigned char *)base + GUARD;
    memset(base, EMULATED_GUARD, GUARD);
    memset(user, EMULATED_POISON, bytes);
    memset(user + bytes, EMULATED_GUARD, GUARD);
    blocks[(uintptr_t)user] = {bytes, place};
    n_made++;
    return user;
}

static void check_block(uintptr_t at, const block *b, const char *after)
{
    const unsigned char *user = (const unsigned char *)at;
    for (size_t i = 0; i < GUARD; i++) {
        if (user[i - GUARD] != EMULATED_GUARD) {
            emulated_fail("%s: a block of %zu bytes was written %zu bytes before its beginning", after, b->bytes, GUARD - i);
        }
        if (user[b->bytes + i] != EMULATED_GUARD) {
            emulated_fail("%s: a block of %zu bytes was written %zu bytes behind its end", after, b->bytes, i);
        }
    }
}

void emulated_check_guards(const char *after)
{
    if (GUARD == 0) return;
    for (const auto &b : blocks) check_block(b.first, &b.second, after);
}

emulated_place emulated_where(const void *at, size_t *left)
{
    static uintptr_t last_at; // asynchronous copies ask for the same block again and again
    static size_t last_bytes;
    static unsigned long last_made;
    static emulated_place last_place;
    const uintptr_t address = (uintptr_t)at;
    if (last_made != n_made || address < last_at || address > last_at + last_bytes) {
        auto next = blocks.upper_bound(address);
        if (next == blocks.begin()) return EMULATED_PAGEABLE;
        --next;
        if (address > next->first + next->second.bytes) return EMULATED_PAGEABLE;
        last_at = next->first;
        last_bytes = next->second.bytes;
        last_place = next->second.place;
        last_made = n_made;
    }
    *left = last_at + last_bytes - address;
    return last_place;
}

static cudaError_t remove(void *user, emulated_place place)
{
    if (!user) return cudaSuccess;
    emulated_drain(); // as the device does: nothing may still be using it
    const auto found = blocks.find((uintptr_t)user);
    if (found == blocks.end() || found->second.place != place) return emulated_error(cudaErrorInvalidValue);
    check_block(found->first, &found->second, "a free");
    if (place == EMULATED_DEVICE) used -= found->second.bytes;
    blocks.erase(found);
    n_made++;
    free((unsigned char *)user - GUARD);
    return emulated_error(emulated_alive());
}

cudaError_t emulated_malloc(void **user, size_t bytes)
{
    emulated_guard lock(emulated_lock);
    *user = NULL;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (!emulated_may_allocate()) {
        emulated_capture_invalidate();
        return emulated_error(cudaErrorStreamCaptureUnsupported);
    }
    if (bytes == 0) return cudaSuccess;
    const size_t most = (size_t)emulated_setting(EMULATION_MEMORY);
    if (emulated_allocation_fails() || bytes > most || used > most - bytes) return emulated_error(cudaErrorMemoryAllocation);
    *user = make(bytes, EMULATED_DEVICE);
    if (!*user) return emulated_error(cudaErrorMemoryAllocation);
    used += bytes;
    return cudaSuccess;
}

cudaError_t emulated_host_alloc(void **user, size_t bytes)
{
    emulated_guard lock(emulated_lock);
    *user = NULL;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (bytes == 0) return cudaSuccess;
    if (emulated_allocation_fails()) return emulated_error(cudaErrorMemoryAllocation);
    *user = make(bytes, EMULATED_PINNED);
    return *user ? cudaSuccess : emulated_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *user)
{
    emulated_guard lock(emulated_lock);
    return remove(user, EMULATED_DEVICE);
}

cudaError_t cudaFreeHost(void *user)
{
    emulated_guard lock(emulated_lock);
    return remove(user, EMULATED_PINNED);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    emulated_guard lock(emulated_lock);
    *total = (size_t)emulated_setting(EMULATION_MEMORY);
    *free_bytes = used < *total ? *total - used : 0;
    return emulated_error(emulated_alive());
}

unsigned long emulated_memory_live(void) { return blocks.size(); }
