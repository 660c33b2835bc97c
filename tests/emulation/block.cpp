// The threads of a block. Each runs until it waits; then the next ready one runs, lanes of the same warp first, so that a warp
// proceeds as far as possible without the others. Orders are permutations of lanes, of warps, and of the grid's blocks:
// ascending, descending or shuffled. A thread gets a stack of its own only when it first waits: until then threads begin and end
// on the stack of the previous one.
#include "tests/emulation/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "base/rng.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum state { FRESH, READY, AT_BARRIER, AT_COLLECTIVE, ENDED };

struct waiting {
    const char *what, *file;
    int line;
    unsigned mask;
    void *argument;
    emulated_completion complete;
};

struct thread {
    emulated_fibre *fibre;
    state is;
    waiting at;
};

struct warp {
    uint32_t ready;            // by position in the order
    uint32_t live, collecting; // by lane
    unsigned char lane[EMULATED_WARP], position[EMULATED_WARP];
};

static struct {
    const emulated_grid *grid;
    int n, n_warps, live, at_barrier, predicates, result, running;
    uint32_t ready_warps; // by position in the order
    int warp_at;          // the position that is running
    unsigned char warp_of[EMULATED_WARP], position_of[EMULATED_WARP];
    unsigned char *shared;
    const waiting *barrier; // of the first thread that arrived
    int barrier_thread;
    uint3 index[EMULATED_MOST_THREADS];
    thread threads[EMULATED_MOST_THREADS];
    warp warps[EMULATED_WARP];
} now;

int emulated_thread_number(void) { return now.running; }
void *emulated_shared(void) { return now.shared; }

bool emulated_in_shared(const void *at, size_t bytes)
{
    const unsigned char *from = (const unsigned char *)at;
    return from >= now.shared && from + bytes <= now.shared + now.grid->shared_bytes;
}

// ---- reports ----------------------------------------------------------------------------------------------------------------

void emulated_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "emulation: ");
    if (now.grid) {
        fprintf(stderr, "%s, block (%u, %u, %u)", now.grid->name, blockIdx.x, blockIdx.y, blockIdx.z);
        if (now.running >= 0) fprintf(stderr, ", thread %d", now.running);
        fprintf(stderr, ": ");
    }
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    fflush(stderr);
    abort();
}

static bool same_file(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

static bool same_place(const thread *a, const thread *b)
{
    if (a->is != b->is) return false;
    if (a->is != AT_BARRIER && a->is != AT_COLLECTIVE) return true;
    return a->at.line == b->at.line && a->at.mask == b->at.mask && same_file(a->at.file, b->at.file) &&
           strcmp(a->at.what, b->at.what) == 0;
}

[[noreturn]] static void deadlock(void)
{
    for (int i = 0; i < now.n;) {
        int end = i + 1;
        const thread *t = &now.threads[i];
        while (end < now.n && same_place(t, &now.threads[end])) end++;
        fprintf(stderr, "emulation: threads %d-%d ", i, end - 1);
        if (t->is == ENDED) fprintf(stderr, "have ended\n");
        else if (t->is == AT_COLLECTIVE)
            fprintf(stderr, "wait at %s:%d, %s, mask %08x\n", t->at.file, t->at.line, t->at.what, t->at.mask);
        else fprintf(stderr, "wait at %s:%d, %s\n", t->at.file, t->at.line, t->at.what);
        i = end;
    }
    now.running = -1;
    emulated_fail("deadlock: a barrier that some threads never reach");
}

// ---- scheduling -------------------------------------------------------------------------------------------------------------

static void make_ready(int i)
{
    warp *w = &now.warps[i / EMULATED_WARP];
    w->ready |= 1u << w->position[i % EMULATED_WARP];
    now.ready_warps |= 1u << now.position_of[i / EMULATED_WARP];
}

static int next_thread(void)
{
    if (!now.ready_warps) return -1;
    if (!(now.ready_warps >> now.warp_at & 1)) now.warp_at = __builtin_ctz(now.ready_warps);
    const int number = now.warp_of[now.warp_at];
    warp *w = &now.warps[number];
    const int lane = w->lane[__builtin_ctz(w->ready)];
    w->ready &= w->ready - 1;
    if (!w->ready) now.ready_warps &= ~(1u << now.warp_at);
    return number * EMULATED_WARP + lane;
}

static void run_as(int i)
{
    now.running = i;
    threadIdx = now.index[i];
}

// The running thread waits until another makes it ready.
static void wait_for_others(void)
{
    const int me = now.running, i = next_thread();
    thread *mine = &now.threads[me];
    mine->fibre = emulated_fibre_current();
    if (i < 0) deadlock();
    if (i != me) {
        thread *t = &now.threads[i];
        now.running = i; // for the fibre that starts with it
        emulated_fibre_switch(t->is == FRESH ? emulated_fibre_take() : t->fibre);
    }
    run_as(me);
}

static void release_barrier(void)
{
    now.result = now.predicates;
    now.predicates = now.at_barrier = 0;
    now.barrier = NULL;
    for (int i = 0; i < now.n; i++) {
        if (now.threads[i].is != AT_BARRIER) continue;
        now.threads[i].is = READY;
        make_ready(i);
    }
    now.warp_at = __builtin_ctz(now.ready_warps);
}

// Completes the collective that `lane` of warp w waits in, if all participants have arrived.
static bool release_collective(int number, int lane)
{
    warp *w = &now.warps[number];
    thread *first = &now.threads[number * EMULATED_WARP];
    const waiting *at = &first[lane].at;
    const uint32_t lanes = at->mask & w->live;
    if ((w->collecting & lanes) != lanes) return false;
    void *arguments[EMULATED_WARP] = {};
    for (uint32_t left = lanes; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        const waiting *other = &first[l].at;
        if (other->line != at->line || other->mask != at->mask || other->complete != at->complete ||
            !same_file(other->file, at->file)) {
            emulated_fail("lane %d waits in %s at %s:%d with mask %08x, lane %d in %s at %s:%d with mask %08x", lane, at->what,
                          at->file, at->line, at->mask, l, other->what, other->file, other->line, other->mask);
        }
        arguments[l] = other->argument;
    }
    if (at->complete) at->complete(arguments, lanes);
    w->collecting &= ~lanes;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        first[l].is = READY;
        w->ready |= 1u << w->position[l];
    }
    now.ready_warps |= 1u << now.position_of[number];
    return true;
}

int emulated_barrier(int predicate, const char *what, const char *file, int line)
{
    thread *t = &now.threads[now.running];
    t->at = {what, file, line, 0, NULL, NULL};
    if (!now.barrier) {
        now.barrier = &t->at;
        now.barrier_thread = now.running;
    } else if (now.barrier->line != line || !same_file(now.barrier->file, file)) {
        emulated_fail("divergent barrier: this thread waits at %s:%d, thread %d at %s:%d", file, line, now.barrier_thread,
                      now.barrier->file, now.barrier->line);
    }
    t->is = AT_BARRIER;
    now.predicates += predicate != 0;
    if (++now.at_barrier == now.live) release_barrier();
    wait_for_others();
    return now.result;
}

void emulated_collective(unsigned mask, void *argument, emulated_completion complete, const char *what, const char *file, int line)
{
    const int number = now.running / EMULATED_WARP, lane = now.running % EMULATED_WARP;
    thread *t = &now.threads[now.running];
    if (!(mask >> lane & 1)) emulated_fail("%s at %s:%d: lane %d is not in its own mask %08x", what, file, line, lane, mask);
    t->at = {what, file, line, mask, argument, complete};
    t->is = AT_COLLECTIVE;
    now.warps[number].collecting |= 1u << lane;
    release_collective(number, lane);
    wait_for_others();
}

static void end_thread(void)
{
    const int me = now.running, number = me / EMULATED_WARP;
    now.threads[me].is = ENDED;
    now.live--;
    now.warps[number].live &= ~(1u << (me % EMULATED_WARP));
    // Threads that waited for this one need not wait now.
    for (uint32_t left = now.warps[number].collecting; left; left &= left - 1) {
        if (release_collective(number, __builtin_ctz(left))) break;
    }
    if (now.live && now.at_barrier == now.live) release_barrier();
}

void emulated_fibre_body(void)
{
    for (;;) {
        run_as(now.running);
        now.threads[now.running].is = READY;
        now.grid->thread();
        end_thread();
        const int i = next_thread();
        if (i < 0 && now.live) deadlock();
        if (i >= 0) now.running = i;
        if (i >= 0 && now.threads[i].is == FRESH) continue;
        emulated_fibre_give(emulated_fibre_current());
        emulated_fibre_switch(i < 0 ? NULL : now.threads[i].fibre);
    }
}

// ---- a grid -----------------------------------------------------------------------------------------------------------------

static uint64_t shuffle_key, shuffle_count;

template <typename T> static void order(T *list, int n, long how)
{
    for (int i = 0; i < n; i++) list[i] = (T)(how == 2 ? n - 1 - i : i);
    if (how != 3) return;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)lin_random_below(shuffle_key, shuffle_count++, (uint32_t)i + 1);
        const T swap = list[i];
        list[i] = list[j];
        list[j] = swap;
    }
}

static void run_block(long how)
{
    now.live = now.n;
    now.at_barrier = now.predicates = 0;
    now.barrier = NULL;
    order(now.warp_of, now.n_warps, how);
    now.ready_warps = 0;
    for (int p = 0; p < now.n_warps; p++) {
        const int number = now.warp_of[p], first = number * EMULATED_WARP;
        const int lanes = now.n - first < EMULATED_WARP ? now.n - first : EMULATED_WARP;
        warp *w = &now.warps[number];
        now.position_of[number] = (unsigned char)p;
        order(w->lane, lanes, how);
        for (int i = 0; i < lanes; i++) w->position[w->lane[i]] = (unsigned char)i;
        w->live = w->ready = (uint32_t)((1ull << lanes) - 1);
        w->collecting = 0;
        now.ready_warps |= 1u << p;
    }
    for (int i = 0; i < now.n; i++) {
        now.threads[i].is = FRESH;
        emulated_copy_reset(i);
    }
    memset(now.shared, EMULATED_POISON, now.grid->shared_bytes);
    now.warp_at = 0;
    now.running = next_thread();
    emulated_fibre_switch(emulated_fibre_take());
    now.running = -1;
}

#ifdef EMULATED_ASAN
enum { SHARED_GUARD = 0 }; // the block has exactly the requested size, and AddressSanitizer checks its ends
#else
enum { SHARED_GUARD = 256 };
#endif

static void check_shared(const unsigned char *base, size_t bytes)
{
    for (size_t i = 0; i < SHARED_GUARD; i++) {
        if (base[i] != EMULATED_GUARD)
            emulated_fail("shared memory was written %zu bytes before its beginning", (size_t)SHARED_GUARD - i);
        if (base[SHARED_GUARD + bytes + i] != EMULATED_GUARD)
            emulated_fail("shared memory was written %zu bytes past its %zu", i, bytes);
    }
}

void emulated_run_grid(const emulated_grid &g)
{
    static uint64_t launches;
    long how = emulated_setting(EMULATION_ORDER);
    if (how < 1 || how > 3) how = 1 + (long)(launches % 3);
    shuffle_key = lin_random_key((uint64_t)emulated_setting(EMULATION_SEED), launches++);
    shuffle_count = 0;

    const size_t bytes = g.shared_bytes;
    void *block = NULL;
    if (posix_memalign(&block, 256, SHARED_GUARD + (bytes ? bytes : 1) + SHARED_GUARD) != 0) emulated_fail("no memory");
    unsigned char *base = (unsigned char *)block;
    memset(base, EMULATED_GUARD, SHARED_GUARD);
    memset(base + SHARED_GUARD + bytes, EMULATED_GUARD, SHARED_GUARD);
    now.grid = &g;
    now.shared = base + SHARED_GUARD;
    now.n = (int)(g.block.x * g.block.y * g.block.z);
    now.n_warps = (now.n + EMULATED_WARP - 1) / EMULATED_WARP;
    now.running = -1;
    gridDim = g.grid;
    blockDim = g.block;
    for (unsigned i = 0, x = g.block.x, y = g.block.y; i < (unsigned)now.n; i++) now.index[i] = {i % x, i / x % y, i / (x * y)};

    const size_t n_blocks = (size_t)g.grid.x * g.grid.y * g.grid.z;
    std::vector<unsigned> blocks(n_blocks);
    order(blocks.data(), (int)n_blocks, how);
    for (size_t i = 0; i < n_blocks; i++) {
        const unsigned b = blocks[i];
        blockIdx = {b % g.grid.x, b / g.grid.x % g.grid.y, b / (g.grid.x * g.grid.y)};
        run_block(how);
        check_shared(base, bytes);
    }
    emulated_check_guards(g.name);
    now.grid = NULL;
    free(block);
}
