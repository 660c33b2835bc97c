// Memory of the device and pinned memory of the host: poisoned when allocated, guarded at both ends. The host may access device
// memory only through copies: outside of the device's own work its pages are inaccessible (under AddressSanitizer: poisoned), and
// a host access ends the process with a message, as on a GPU.
#include "tests/emulation/internal.h"

#include <map>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef EMULATED_ASAN
#include <sanitizer/asan_interface.h>
enum { GUARD = 0 }; // AddressSanitizer checks the ends of the block, and reads too
#else
enum { GUARD = 256 };
#endif

enum { ALIGNMENT = 256 };

struct block {
    size_t bytes;
    emulated_place place;
    void *base;
    size_t taken; // size in the device's pages, ends included
};

static std::map<uintptr_t, block> blocks;
static unsigned long n_made;
static size_t used;

// ---- the device's pages -----------------------------------------------------------------------------------------------------

static int open_count;

#ifdef EMULATED_ASAN

static void close_block(uintptr_t at, const block *b)
{
    if (b->place == EMULATED_DEVICE) __asan_poison_memory_region((void *)at, b->bytes);
}

static void set_open(bool open)
{
    for (const auto &b : blocks) {
        if (!open) close_block(b.first, &b.second);
        else if (b.second.place == EMULATED_DEVICE) __asan_unpoison_memory_region((void *)b.first, b.second.bytes);
    }
}

static void *take_pages(size_t *bytes)
{
    void *base = NULL;
    return posix_memalign(&base, ALIGNMENT, *bytes) == 0 ? base : NULL;
}

static void give_pages(void *base, size_t) { free(base); }

unsigned char *emulated_arena(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}

#else

static const size_t ARENA_BYTES = EMULATED_ARENA;
static unsigned char *arena;
static size_t arena_used;                   // from its beginning, a multiple of the page
static std::map<size_t, size_t> holes;      // offset and size
static const size_t STEP = (size_t)2 << 20; // large pages make opening and closing cheap

unsigned char *emulated_arena(size_t *bytes)
{
    *bytes = arena_used;
    return arena;
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    if (emulated_traffic_fault(info->si_addr, context)) return;
    const unsigned char *at = (const unsigned char *)info->si_addr;
    if (at >= arena && at < arena + ARENA_BYTES) {
        static const char text[] = "emulation: the host touched memory of the device: upload and download are the way\n";
        if (write(2, text, sizeof text - 1) < 0) _exit(1);
    }
    signal(signal_number, SIG_DFL); // the next signal kills the process
}

static bool make_arena(void)
{
    static char signal_stack[64 << 10];
    struct sigaction action = {};
    stack_t stack = {};
    void *made = mmap(NULL, ARENA_BYTES + STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return false;
    arena = (unsigned char *)(((uintptr_t)made + STEP - 1) / STEP * STEP);
    madvise(arena, ARENA_BYTES, MADV_HUGEPAGE);
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, NULL);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    return true;
}

static void set_open(bool open)
{
    if (arena_used) mprotect(arena, arena_used, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void *take_pages(size_t *bytes)
{
    *bytes = (*bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (auto hole = holes.begin(); hole != holes.end(); ++hole) {
        if (hole->second < *bytes) continue;
        const size_t at = hole->first, left = hole->second - *bytes;
        holes.erase(hole);
        if (left) holes[at + *bytes] = left;
        return arena + at;
    }
    if (!arena && !make_arena()) return NULL;
    const size_t more = (*bytes + STEP - 1) / STEP * STEP;
    if (more > ARENA_BYTES - arena_used) return NULL;
    const size_t at = arena_used;
    arena_used += more;
    mprotect(arena + at, more, PROT_READ | PROT_WRITE); // the rest is already accessible
    if (more > *bytes) holes[at + *bytes] = more - *bytes;
    return arena + at;
}

static void give_pages(void *base, size_t bytes)
{
    size_t at = (size_t)((unsigned char *)base - arena);
    memset(base, EMULATED_POISON, bytes);
    auto next = holes.lower_bound(at);
    if (next != holes.end() && at + bytes == next->first) {
        bytes += next->second;
        next = holes.erase(next);
    }
    if (next != holes.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == at) {
            before->second += bytes;
            return;
        }
    }
    holes[at] = bytes;
}

#endif

emulated_window::emulated_window()
{
    if (open_count++ == 0) set_open(true);
}

emulated_window::~emulated_window()
{
    if (--open_count == 0) set_open(false);
}

// ---- blocks -----------------------------------------------------------------------------------------------------------------

static void *make(size_t bytes, emulated_place place)
{
    emulated_window window;
    block b = {bytes, place, NULL, GUARD + bytes + GUARD};
    if (place == EMULATED_DEVICE) b.base = take_pages(&b.taken);
    else if (posix_memalign(&b.base, ALIGNMENT, b.taken) != 0) b.base = NULL;
    if (!b.base) return NULL;
    unsigned char *user = (unsigned char *)b.base + GUARD;
    memset(b.base, EMULATED_GUARD, GUARD);
    memset(user, EMULATED_POISON, bytes);
    memset(user + bytes, EMULATED_GUARD, GUARD);
    blocks[(uintptr_t)user] = b;
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
            emulated_fail("%s: a block of %zu bytes was written %zu bytes past its end", after, b->bytes, i);
        }
    }
}

void emulated_check_guards(const char *after)
{
    if (GUARD == 0) return;
    emulated_window window;
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
    emulated_drain(); // as the device does: pending work may still use it
    const auto found = blocks.find((uintptr_t)user);
    if (found == blocks.end() || found->second.place != place) return emulated_error(cudaErrorInvalidValue);
    emulated_window window;
    const block b = found->second;
    check_block(found->first, &b, "a free");
    blocks.erase(found);
    n_made++;
    if (place == EMULATED_DEVICE) {
        used -= b.bytes;
        give_pages(b.base, b.taken);
    } else {
        free(b.base);
    }
    return emulated_error(emulated_alive());
}

cudaError_t emulated_malloc(void **user, size_t bytes)
{
    emulated_guard lock(emulated_lock);
    *user = NULL;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
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
