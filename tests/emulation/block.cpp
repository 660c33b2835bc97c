// The threads of a block. Each runs until it waits; then the next ready one runs, lanes of the same warp first, so that a warp
// proceeds as far as possible without the others. Orders are permutations of lanes, of warps, and of the grid's blocks:
// ascending, descending or shuffled. A thread gets a stack of its own only when it first waits: until then threads begin and end
// on the stack of the previous one.
#include "tests/emulation/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "base/hash.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum state { FRESH, READY, AT_BARRIER, AT_COLLECTIVE, AT_VALUE, ENDED };

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

struct block {
    const emulated_grid *grid;
    uint3 at;
    int n, n_warps, live, at_barrier, predicates, result, running;
    uint32_t ready_warps; // by position in the order
    int warp_at;          // the position that is running
    unsigned char warp_of[EMULATED_WARP], position_of[EMULATED_WARP];
    unsigned char *shared;
    const waiting *barrier; // of the first thread that arrived
    int barrier_thread;
    thread threads[EMULATED_MOST_THREADS];
    warp warps[EMULATED_WARP];
    block *next; // of those that are resident together, in a ring
};

static block only, *here = &only; // the block that is running; only: if blocks run one after another
static uint3 index_of[EMULATED_MOST_THREADS];

int emulated_thread_number(void) { return here->running; }
void *emulated_shared(void) { return here->shared; }
bool emulated_together(void) { return here->grid->together; }

bool emulated_in_shared(const void *at, size_t bytes)
{
    const unsigned char *from = (const unsigned char *)at;
    return from >= here->shared && from + bytes <= here->shared + here->grid->shared_bytes;
}

// ---- reports ----------------------------------------------------------------------------------------------------------------

void emulated_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "emulation: ");
    if (here->grid) {
        fprintf(stderr, "%s, block (%u, %u, %u)", here->grid->name, blockIdx.x, blockIdx.y, blockIdx.z);
        if (here->running >= 0) fprintf(stderr, ", thread %d", here->running);
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
    if (a->is == FRESH || a->is == READY || a->is == ENDED) return true;
    return a->at.line == b->at.line && a->at.mask == b->at.mask && same_file(a->at.file, b->at.file) &&
           strcmp(a->at.what, b->at.what) == 0;
}

[[noreturn]] static void deadlock(void)
{
    for (int i = 0; i < here->n;) {
        int end = i + 1;
        const thread *t = &here->threads[i];
        while (end < here->n && same_place(t, &here->threads[end])) end++;
        fprintf(stderr, "emulation: threads %d-%d ", i, end - 1);
        if (t->is == ENDED) fprintf(stderr, "have ended\n");
        else if (t->is == AT_COLLECTIVE)
            fprintf(stderr, "wait at %s:%d, %s, mask %08x\n", t->at.file, t->at.line, t->at.what, t->at.mask);
        else fprintf(stderr, "wait at %s:%d, %s\n", t->at.file, t->at.line, t->at.what);
        i = end;
    }
    here->running = -1;
    emulated_fail("deadlock: a barrier that some threads never reach");
}

// ---- scheduling -------------------------------------------------------------------------------------------------------------

static void make_ready(int i)
{
    warp *w = &here->warps[i / EMULATED_WARP];
    w->ready |= 1u << w->position[i % EMULATED_WARP];
    here->ready_warps |= 1u << here->position_of[i / EMULATED_WARP];
}

static int next_thread(void)
{
    if (!here->ready_warps) return -1;
    if (!(here->ready_warps >> here->warp_at & 1)) here->warp_at = __builtin_ctz(here->ready_warps);
    const int number = here->warp_of[here->warp_at];
    warp *w = &here->warps[number];
    const int lane = w->lane[__builtin_ctz(w->ready)];
    w->ready &= w->ready - 1;
    if (!w->ready) here->ready_warps &= ~(1u << here->warp_at);
    return number * EMULATED_WARP + lane;
}

static void run_as(int i)
{
    here->running = i;
    threadIdx = index_of[i];
    blockIdx = here->at;
}

// Makes the threads of the running block ready whose value has been reached.
static void poll_values(void)
{
    for (int i = 0; i < here->n; i++) {
        thread *t = &here->threads[i];
        if (t->is != AT_VALUE || *(const volatile unsigned *)t->at.argument < t->at.mask) continue;
        t->is = READY;
        make_ready(i);
    }
}

// The next ready thread, of this block if there is one, else of the next of the blocks that are resident together, which is
// then the running one; -1: all wait or have ended.
static int next_of_all(void)
{
    const block *first = here;
    do {
        int i = next_thread();
        if (i < 0) {
            poll_values();
            i = next_thread();
        }
        if (i >= 0) return i;
        here = here->next;
    } while (here != first);
    return -1;
}

static bool any_live(void)
{
    const block *b = here;
    do {
        if (b->live) return true;
        b = b->next;
    } while (b != here);
    return false;
}

// The running thread waits until another makes it ready.
static void wait_for_others(void)
{
    const int me = here->running;
    thread *mine = &here->threads[me];
    mine->fibre = emulated_fibre_current();
    const int i = next_of_all();
    if (i < 0) deadlock();
    if (&here->threads[i] != mine) {
        thread *t = &here->threads[i];
        here->running = i; // for the fibre that starts with it
        emulated_fibre_switch(t->is == FRESH ? emulated_fibre_take() : t->fibre);
    }
    run_as(me);
}

static void release_barrier(void)
{
    here->result = here->predicates;
    here->predicates = here->at_barrier = 0;
    here->barrier = NULL;
    for (int i = 0; i < here->n; i++) {
        if (here->threads[i].is != AT_BARRIER) continue;
        here->threads[i].is = READY;
        make_ready(i);
    }
    here->warp_at = __builtin_ctz(here->ready_warps);
}

// Completes the collective that `lane` of warp w waits in, if all participants have arrived.
static bool release_collective(int number, int lane)
{
    warp *w = &here->warps[number];
    thread *first = &here->threads[number * EMULATED_WARP];
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
    here->ready_warps |= 1u << here->position_of[number];
    return true;
}

int emulated_barrier(int predicate, const char *what, const char *file, int line)
{
    thread *t = &here->threads[here->running];
    t->at = {what, file, line, 0, NULL, NULL};
    if (!here->barrier) {
        here->barrier = &t->at;
        here->barrier_thread = here->running;
    } else if (here->barrier->line != line || !same_file(here->barrier->file, file)) {
        emulated_fail("divergent barrier: this thread waits at %s:%d, thread %d at %s:%d", file, line, here->barrier_thread,
                      here->barrier->file, here->barrier->line);
    }
    t->is = AT_BARRIER;
    here->predicates += predicate != 0;
    if (++here->at_barrier == here->live) release_barrier();
    wait_for_others();
    return here->result;
}

void emulated_collective(unsigned mask, void *argument, emulated_completion complete, const char *what, const char *file, int line)
{
    const int number = here->running / EMULATED_WARP, lane = here->running % EMULATED_WARP;
    thread *t = &here->threads[here->running];
    if (!(mask >> lane & 1)) emulated_fail("%s at %s:%d: lane %d is not in its own mask %08x", what, file, line, lane, mask);
    t->at = {what, file, line, mask, argument, complete};
    t->is = AT_COLLECTIVE;
    here->warps[number].collecting |= 1u << lane;
    release_collective(number, lane);
    wait_for_others();
}

void emulated_await(const unsigned *at, unsigned value, const char *file, int line)
{
    thread *t = &here->threads[here->running];
    union {
        const unsigned *from;
        void *to;
    } address = {at};
    if (!here->grid->together) emulated_fail("lin_await at %s:%d in a launch whose blocks need not be resident together", file, line);
    t->at = {"lin_await", file, line, value, address.to, NULL};
    t->is = AT_VALUE;
    wait_for_others();
}

static void end_thread(void)
{
    const int me = here->running, number = me / EMULATED_WARP;
    here->threads[me].is = ENDED;
    here->live--;
    here->warps[number].live &= ~(1u << (me % EMULATED_WARP));
    // Threads that waited for this one need not wait here->
    for (uint32_t left = here->warps[number].collecting; left; left &= left - 1) {
        if (release_collective(number, __builtin_ctz(left))) break;
    }
    if (here->live && here->at_barrier == here->live) release_barrier();
}

void emulated_fibre_body(void)
{
    for (;;) {
        run_as(here->running);
        here->threads[here->running].is = READY;
        here->grid->thread();
        end_thread();
        const int i = next_of_all();
        if (i < 0 && any_live()) deadlock();
        if (i >= 0) here->running = i;
        if (i >= 0 && here->threads[i].is == FRESH) continue;
        emulated_fibre_give(emulated_fibre_current());
        emulated_fibre_switch(i < 0 ? NULL : here->threads[i].fibre);
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

static void prepare_block(long how)
{
    here->live = here->n;
    here->at_barrier = here->predicates = 0;
    here->barrier = NULL;
    order(here->warp_of, here->n_warps, how);
    here->ready_warps = 0;
    for (int p = 0; p < here->n_warps; p++) {
        const int number = here->warp_of[p], first = number * EMULATED_WARP;
        const int lanes = here->n - first < EMULATED_WARP ? here->n - first : EMULATED_WARP;
        warp *w = &here->warps[number];
        here->position_of[number] = (unsigned char)p;
        order(w->lane, lanes, how);
        for (int i = 0; i < lanes; i++) w->position[w->lane[i]] = (unsigned char)i;
        w->live = w->ready = (uint32_t)((1ull << lanes) - 1);
        w->collecting = 0;
        here->ready_warps |= 1u << p;
    }
    for (int i = 0; i < here->n; i++) {
        here->threads[i].is = FRESH;
        emulated_copy_reset(i);
    }
    memset(here->shared, EMULATED_POISON, here->grid->shared_bytes);
    here->warp_at = 0;
}

// Runs the prepared blocks to their ends.
static void run_blocks(void)
{
    here->running = next_thread();
    emulated_fibre_switch(emulated_fibre_take());
    here->running = -1;
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

static void open_block(block *b, const emulated_grid &g)
{
    const size_t bytes = g.shared_bytes;
    void *base = NULL;
    if (posix_memalign(&base, 256, SHARED_GUARD + (bytes ? bytes : 1) + SHARED_GUARD) != 0) emulated_fail("no memory");
    b->shared = (unsigned char *)base + SHARED_GUARD;
    memset(base, EMULATED_GUARD, SHARED_GUARD);
    memset(b->shared + bytes, EMULATED_GUARD, SHARED_GUARD);
    b->grid = &g;
    b->n = (int)(g.block.x * g.block.y * g.block.z);
    b->n_warps = (b->n + EMULATED_WARP - 1) / EMULATED_WARP;
    b->running = -1;
    b->next = b;
}

static void close_block(block *b)
{
    b->grid = NULL;
    free(b->shared - SHARED_GUARD);
}

// One block after another.
static void run_apart(const emulated_grid &g, const std::vector<unsigned> &numbers, long how)
{
    open_block(here, g);
    for (unsigned i : numbers) {
        here->at = {i % g.grid.x, i / g.grid.x % g.grid.y, i / (g.grid.x * g.grid.y)};
        blockIdx = here->at;
        prepare_block(how);
        run_blocks();
        check_shared(here->shared - SHARED_GUARD, g.shared_bytes);
    }
    close_block(here);
}

// A cooperative launch: all blocks have begun before one waits for another, each runs until all of its threads wait.
static void run_together(const emulated_grid &g, const std::vector<unsigned> &numbers, long how)
{
    std::vector<block> blocks(numbers.size());
    for (size_t i = 0; i < blocks.size(); i++) {
        const unsigned number = numbers[i];
        here = &blocks[i];
        open_block(here, g);
        here->next = &blocks[(i + 1) % blocks.size()];
        here->at = {number % g.grid.x, number / g.grid.x % g.grid.y, number / (g.grid.x * g.grid.y)};
        prepare_block(how);
    }
    run_blocks();
    for (block &b : blocks) {
        check_shared(b.shared - SHARED_GUARD, g.shared_bytes);
        close_block(&b);
    }
    here = &only;
}

void emulated_run_grid(const emulated_grid &g)
{
    static uint64_t launches;
    long how = emulated_setting(EMULATION_ORDER);
    if (how < 1 || how > 3) how = 1 + (long)(launches % 3);
    shuffle_key = lin_random_key(1, launches++);
    shuffle_count = 0;

    gridDim = g.grid;
    blockDim = g.block;
    const int n = (int)(g.block.x * g.block.y * g.block.z);
    for (unsigned i = 0, x = g.block.x, y = g.block.y; i < (unsigned)n; i++) index_of[i] = {i % x, i / x % y, i / (x * y)};
    const size_t n_blocks = (size_t)g.grid.x * g.grid.y * g.grid.z;
    std::vector<unsigned> numbers(n_blocks);
    order(numbers.data(), (int)n_blocks, how);
    const bool counts = emulated_traffic_begin();
    if (g.together) run_together(g, numbers, how);
    else run_apart(g, numbers, how);
    if (counts) emulated_traffic_end(g.name);
    emulated_check_guards(g.name);
}
