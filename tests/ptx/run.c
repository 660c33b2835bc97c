// Warps, branches, collectives, barriers and blocks.
#include "tests/ptx/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct ptx_machine ptx_machine;
int ptx_removed_reached;

const char *const ptx_class_names[PTX_CLASSES] = {"integer", "float",  "double", "special", "move",    "tensor",
                                                  "global",  "shared", "warp",   "sync",    "control", "other"};

/* No launch of the tests comes near it; a loop without an end is an error. */
#define MOST_STEPS ((uint64_t)1 << 34)

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

void ptx_fail(const ptx_warp *w, int lane, const char *format, ...)
{
    char where[400] = "", message[400];
    va_list list;
    if (ptx_machine.failed) return;
    ptx_machine.failed = true;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const ptx_kernel *k = w->block->kernel;
    const ptx_instruction *i = ptx_machine.now;
    const unsigned *at = w->block->at;
    if (i) {
        const char *file = i->file < k->n_files && k->files[i->file] ? k->files[i->file] : "";
        snprintf(where, sizeof where, ", %s:%d, %.*s", file, i->line, i->length < 150 ? i->length : 150, i->text);
    }
    snprintf(ptx_machine.why, PTX_WHY, "%.*s%s, block (%u, %u, %u), warp %d, lane %d: %s", k->name_length, k->name, where, at[0],
             at[1], at[2], w->number, lane, message);
}

/* ---- collectives ----------------------------------------------------------------------------------------------------------- */

static int source_of(int mode, int lane, int operand, int limit)
{
    const int segment = limit >> 8 & 31, clamp = limit & 31;
    const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    switch (mode) {
    case 0: operand = lane ^ operand; break;
    case 1: operand = lane - operand; return operand < last ? -1 : operand; // last is the first lane here
    case 2: operand = lane + operand; break;
    default: operand = first | (operand & ~segment & 31); break;
    }
    return operand > last ? -1 : operand;
}

void ptx_shuffle(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const uint32_t *x = ptx_at(w, &i->o[1]), *operand = ptx_at(w, &i->o[2]), *limit = ptx_at(w, &i->o[3]);
    uint32_t r[LANES], inside = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        int from = source_of(i->mode, l, (int)(operand[l] & 31), (int)limit[l]);
        if (from >= 0) inside |= 1u << l;
        else from = l;
        if (!(mask >> from & 1)) {
            ptx_fail(w, l, "takes from lane %d, which does not take part (lanes %08x)", from, mask);
            return;
        }
        r[l] = x[from];
    }
    ptx_put(w, &i->o[0], r, mask);
    ptx_put_predicate(w, &i->o[5], inside, mask);
}

void ptx_vote(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const uint32_t p = ptx_predicate(w, &i->o[1]) & mask;
    const bool r = i->mode ? p == mask : p != 0;
    ptx_put_predicate(w, &i->o[0], r ? UINT32_MAX : 0, mask);
}

void ptx_ballot(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const uint32_t p = ptx_predicate(w, &i->o[1]) & mask;
    uint32_t r[LANES];
    EACH_LANE(l) r[l] = p;
    ptx_put(w, &i->o[0], r, mask);
}

void ptx_reduce_max(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const int32_t *x = ptx_at(w, &i->o[1]);
    int32_t most = INT32_MIN, r[LANES];
    for (uint32_t left = mask; left; left &= left - 1)
        if (x[__builtin_ctz(left)] > most) most = x[__builtin_ctz(left)];
    EACH_LANE(l) r[l] = most;
    ptx_put(w, &i->o[0], r, mask);
}

void ptx_sync_warp(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)i;
    (void)mask; // of a part of the warp it counts for all of it: races may be missed, none is made up
    w->epoch = ++ptx_machine.stamp;
}

// mma.m16n8k8, tf32: the layout is in kernels/cuda/ptx.h. Operands: D [4], A [4], B [2], C [4].
void ptx_product(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    double A[16][8], B[8][8], C[16][8];
    float r[4][LANES];
    if (mask != UINT32_MAX) {
        ptx_fail(w, -1, "a product of fragments takes all 32 lanes, here %08x", mask);
        return;
    }
    for (int p = 4; p < 10; p++) {
        const uint32_t *bits = ptx_at(w, &i->o[p]);
        EACH_LANE(l)
        if ((bits[l] & 0x1FFFu) && (bits[l] & 0x7FFFFFFFu) <= 0x7F800000u)
            ptx_fail(w, l, "operand %d of a tf32 product was not rounded: %08x", p, bits[l]);
    }
    EACH_LANE(l)
    {
        const int g = l / 4, t = l % 4;
        for (int p = 0; p < 4; p++) {
            A[g + 8 * (p & 1)][t + 4 * (p >> 1)] = (double)((const float *)ptx_at(w, &i->o[4 + p]))[l];
            C[g + 8 * (p >> 1)][2 * t + (p & 1)] = (double)((const float *)ptx_at(w, &i->o[10 + p]))[l];
        }
        for (int p = 0; p < 2; p++) B[t + 4 * p][g] = (double)((const float *)ptx_at(w, &i->o[8 + p]))[l];
    }
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 8; k++)
            for (int n = 0; n < 8; n++) C[m][n] += A[m][k] * B[k][n];
    EACH_LANE(l)
    {
        const int g = l / 4, t = l % 4;
        for (int p = 0; p < 4; p++) r[p][l] = (float)C[g + 8 * (p >> 1)][2 * t + (p & 1)];
    }
    for (int p = 0; p < 4; p++) ptx_put(w, &i->o[p], r[p], mask);
}

// The lanes that a collective at this place is for, seen from the lanes that have come; 0: others are still on their way.
static uint32_t members(ptx_warp *w, const ptx_instruction *i, uint32_t here)
{
    if (i->run == ptx_product) return here == w->live ? here : 0;
    const ptx_operand *o = &i->o[i->run == ptx_sync_warp ? 0 : i->run == ptx_shuffle ? 4 : 2];
    const uint32_t *masks = ptx_at(w, o);
    const int first = __builtin_ctz(here);
    const uint32_t need = masks[first] & w->live;
    if (!(masks[first] >> first & 1)) {
        ptx_machine.now = i;
        ptx_fail(w, first, "the lane is not in its own mask %08x", masks[first]);
        return 0;
    }
    if ((here & need) != need) return 0;
    for (uint32_t left = need; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (masks[l] == masks[first]) continue;
        ptx_machine.now = i;
        ptx_fail(w, l, "the lane has mask %08x, lane %d has %08x", masks[l], first, masks[first]);
        return 0;
    }
    return need;
}

/* ---- a warp ---------------------------------------------------------------------------------------------------------------- */

static void spread(ptx_warp *w)
{
    if (!w->together) return;
    w->together = false;
    EACH_LANE(l) w->pc[l] = w->at;
}

// Lanes of mask go on at `to`.
static void move(ptx_warp *w, uint32_t mask, int to)
{
    const uint32_t going = w->live & ~w->waiting;
    if (w->together && (mask & going) == going) {
        w->at = to;
        return;
    }
    spread(w);
    for (uint32_t left = mask; left; left &= left - 1) w->pc[__builtin_ctz(left)] = to;
}

static void gather(ptx_warp *w)
{
    const uint32_t going = w->live & ~w->waiting;
    if (w->together || !going) return;
    const int at = w->pc[__builtin_ctz(going)];
    for (uint32_t left = going; left; left &= left - 1)
        if (w->pc[__builtin_ctz(left)] != at) return;
    w->together = true;
    w->at = at;
}

// The next lanes that can go on, those with the lowest program counter first; 0: none.
static uint32_t choose(ptx_warp *w, const ptx_instruction **instruction, int *at)
{
    const ptx_kernel *k = w->block->kernel;
    const uint32_t going = w->live & ~w->waiting;
    int above = -1;
    if (!going) return 0;
    for (;;) {
        uint32_t here = 0;
        int lowest = INT32_MAX;
        if (w->together) {
            lowest = w->at;
            here = going;
        } else {
            for (uint32_t left = going; left; left &= left - 1) {
                const int l = __builtin_ctz(left), pc = w->pc[l];
                if (pc <= above || pc > lowest) continue;
                if (pc < lowest) here = 0;
                lowest = pc;
                here |= 1u << l;
            }
            if (!here) return 0;
        }
        const ptx_instruction *i = &k->code[lowest];
        *instruction = i;
        *at = lowest;
        if (i->kind != KIND_COLLECTIVE) return here;
        if (i->guard.width) {
            const uint32_t skipping = here & ~ptx_predicate(w, &i->guard);
            if (skipping) return skipping; // one by one: they go on without the others
        }
        const uint32_t need = members(w, i, here);
        if (need || ptx_machine.failed) return need;
        if (w->together) return 0;
        above = lowest;
    }
}

static void check_sources(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    for (int o = i->reads_from; o < i->reads_to; o++) {
        const uint32_t missing = mask & ~w->written[i->o[o].slot];
        if (missing && i->o[o].width) ptx_fail(w, __builtin_ctz(missing), "operand %d is a register that nothing has written", o);
    }
}

static void arrive(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    if (w->waiting && w->barrier != i) ptx_fail(w, -1, "lanes of the warp wait at another barrier, line %d", w->barrier->line);
    w->barrier = i;
    w->waiting |= mask;
    if (i->kind == KIND_BARRIER_OR) w->predicates = (w->predicates & ~mask) | (ptx_predicate(w, &i->o[2]) & mask);
}

// One instruction; false if no lane can go on.
static bool step(ptx_warp *w)
{
    const ptx_instruction *i;
    int at;
    uint32_t mask = choose(w, &i, &at);
    if (!mask) return false;
    ptx_machine.now = i;
    if (ptx_machine.counts) ptx_machine.counts->instructions[i->class]++;
    const uint32_t here = mask;
    if (i->guard.width) {
        const uint32_t missing = mask & ~w->written[i->guard.slot];
        if (missing) ptx_fail(w, __builtin_ctz(missing), "the guard is a register that nothing has written");
        mask &= ptx_predicate(w, &i->guard);
    }
    const uint32_t skipping = here & ~mask;
    if (mask) check_sources(w, i, mask);
    if (ptx_machine.failed) return false;
    switch ((enum ptx_kind)i->kind) {
    case KIND_PLAIN:
    case KIND_COLLECTIVE:
        if (mask) i->run(w, i, mask);
        move(w, here, at + 1);
        break;
    case KIND_BRANCH:
        if (!skipping) move(w, mask, i->target);
        else if (!mask) move(w, skipping, at + 1);
        else {
            spread(w);
            move(w, mask, i->target);
            move(w, skipping, at + 1);
        }
        break;
    case KIND_RETURN:
        ptx_check_copies(w, mask);
        spread(w);
        w->live &= ~mask;
        move(w, skipping, at + 1);
        break;
    case KIND_BARRIER:
    case KIND_BARRIER_OR:
        spread(w);
        move(w, here, at + 1);
        if (mask) arrive(w, i, mask);
        break;
    case KIND_NOTHING:
        ptx_removed_reached |= i->removed;
        move(w, here, at + 1);
        break;
    }
    if (!w->together) gather(w);
    return true;
}

/* ---- a block --------------------------------------------------------------------------------------------------------------- */

static void *need(void *p)
{
    if (!p) abort(); // a test
    return p;
}

static void fill4(ptx_warp *w, uint32_t slot, uint32_t value)
{
    uint32_t *to = (uint32_t *)(void *)(w->file + w->block->kernel->slots[slot].at);
    EACH_LANE(l) to[l] = value;
}

static void open_warp(ptx_block *b, int number)
{
    ptx_warp *w = &b->warps[number];
    const ptx_kernel *k = b->kernel;
    const unsigned *block = b->launch->block, *grid = b->launch->grid;
    w->block = b;
    w->number = number;
    w->file = need(calloc(1, k->file_bytes + 64u));
    w->written = need(calloc(k->n_slots + 1u, sizeof *w->written));
    w->local = need(calloc(LANES, k->local_bytes + 1));
    w->local_written = need(calloc(LANES, k->local_bytes + 1));
    for (int c = 0; c < k->n_constants; c++) {
        const ptx_slot *s = &k->slots[k->constants[c].slot];
        const uint64_t value = k->constants[c].value;
        if (s->width == 1) memcpy(w->file + s->at, &value, 4);
        else EACH_LANE(l) memcpy(w->file + s->at + l * s->width, &value, s->width);
    }
    for (int d = 0; d < 3; d++) {
        fill4(w, (uint32_t)(NTID_X + d), block[d]);
        fill4(w, (uint32_t)(NCTAID_X + d), grid[d]);
    }
    EACH_LANE(l)
    {
        const unsigned t = (unsigned)number * LANES + (unsigned)l;
        const unsigned values[3] = {t % block[0], t / block[0] % block[1], t / (block[0] * block[1])};
        for (int d = 0; d < 3; d++) ((uint32_t *)(void *)(w->file + k->slots[TID_X + d].at))[l] = values[d];
        ((uint32_t *)(void *)(w->file + k->slots[LANEID].at))[l] = (uint32_t)l;
    }
}

static void open_block(ptx_block *b, const ptx_launch *launch, unsigned char *parameters)
{
    *b = (ptx_block){.launch = launch, .kernel = launch->kernel, .shared_bytes = launch->shared_bytes, .parameters = parameters};
    const unsigned threads = launch->block[0] * launch->block[1] * launch->block[2];
    b->n_warps = (int)((threads + LANES - 1) / LANES);
    b->warps = need(calloc((size_t)b->n_warps, sizeof *b->warps));
    b->shared = need(aligned_alloc(256, (b->shared_bytes / 256 + 1) * 256));
    b->shared_written = need(calloc(1, b->shared_bytes + 1));
    b->cells = need(calloc(b->shared_bytes / 4 + 1, sizeof *b->cells));
    for (int i = 0; i < b->n_warps; i++) open_warp(b, i);
}

static void close_block(ptx_block *b)
{
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        free(w->file);
        free(w->written);
        free(w->local);
        free(w->local_written);
        free(w->copies);
    }
    free(b->warps);
    free(b->shared);
    free(b->shared_written);
    free(b->cells);
}

static void begin_block(ptx_block *b, unsigned number)
{
    const ptx_launch *launch = b->launch;
    const ptx_kernel *k = b->kernel;
    const unsigned threads = launch->block[0] * launch->block[1] * launch->block[2];
    b->at[0] = number % launch->grid[0];
    b->at[1] = number / launch->grid[0] % launch->grid[1];
    b->at[2] = number / (launch->grid[0] * launch->grid[1]);
    b->epoch = ++ptx_machine.stamp;
    b->n_live = b->n_warps;
    memset(b->shared, 0xFF, b->shared_bytes);
    memset(b->shared_written, 0, b->shared_bytes);
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        const unsigned lanes = threads - (unsigned)i * LANES;
        w->live = lanes >= LANES ? UINT32_MAX : (1u << lanes) - 1;
        w->waiting = w->predicates = 0;
        w->together = true;
        w->at = 0;
        w->n_copies = 0;
        w->epoch = ++ptx_machine.stamp;
        memset(w->groups, 0, sizeof w->groups);
        memset(w->written, 0, k->n_slots * sizeof *w->written);
        memset(w->local_written, 0, LANES * k->local_bytes);
        for (uint32_t s = 0; s < SPECIALS; s++) w->written[s] = UINT32_MAX;
        for (int c = 0; c < k->n_constants; c++) w->written[k->constants[c].slot] = UINT32_MAX;
        for (int d = 0; d < 3; d++) fill4(w, (uint32_t)(CTAID_X + d), b->at[d]);
    }
}

// All live lanes wait: the barrier is complete. False if it is not.
static bool release(ptx_block *b)
{
    const ptx_warp *first = NULL;
    uint32_t any = 0;
    for (int i = 0; i < b->n_warps; i++) {
        const ptx_warp *w = &b->warps[i];
        if (!w->live) continue;
        if ((w->waiting & w->live) != w->live) return false;
        any |= w->predicates & w->live;
        if (!first) first = w;
        else if (w->barrier != first->barrier) {
            ptx_machine.now = w->barrier;
            ptx_fail(w, -1, "a divergent barrier: warp %d waits at line %d", first->number, first->barrier->line);
            return false;
        }
    }
    if (!first) return false;
    b->epoch = ++ptx_machine.stamp;
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        if (!w->live) continue;
        if (w->barrier->kind == KIND_BARRIER_OR) ptx_put_predicate(w, &w->barrier->o[0], any ? UINT32_MAX : 0, w->live);
        w->waiting = w->predicates = 0;
        w->epoch = ++ptx_machine.stamp;
        gather(w);
    }
    return true;
}

static void deadlock(const ptx_block *b)
{
    for (int i = 0; i < b->n_warps; i++) {
        const ptx_warp *w = &b->warps[i];
        const uint32_t going = w->live & ~w->waiting;
        if (!going) continue;
        const int lane = __builtin_ctz(going);
        ptx_machine.now = &b->kernel->code[w->together ? w->at : w->pc[lane]];
        ptx_fail(w, lane, "deadlock: some of the lanes that this waits for never come (live %08x, at a barrier %08x)", w->live,
                 w->waiting);
        return;
    }
    for (int i = 0; i < b->n_warps; i++)
        if (b->warps[i].live) ptx_fail(&b->warps[i], -1, "deadlock: a barrier that some threads never reach");
}

// Runs n prepared blocks to their ends, warps of all in random turns.
static void run_blocks(ptx_block *blocks, int n, uint64_t key)
{
    static const int quanta[] = {1, 7, 50, 400};
    uint64_t turn = 0, steps = 0;
    int live = n;
    while (live && !ptx_machine.failed) {
        ptx_block *b = &blocks[n > 1 ? lin_random_below(key, 2 * turn, (uint32_t)n) : 0];
        turn++;
        if (!b->n_live) continue;
        const uint64_t bits = lin_random_bits(key, 2 * turn + 1);
        const int quantum = quanta[bits & 3];
        bool moved = false;
        // From a random warp on, the first that can go on.
        for (int t = 0, i = (int)((bits >> 8) % (uint64_t)b->n_warps); t < b->n_warps && !moved; t++, i = (i + 1) % b->n_warps) {
            ptx_warp *w = &b->warps[i];
            for (int s = 0; s < quantum && !ptx_machine.failed && step(w); s++, steps++) moved = true;
            if (moved && !w->live) b->n_live--;
        }
        if (!moved && b->n_live && !ptx_machine.failed && !release(b) && !ptx_machine.failed) deadlock(b);
        if (!b->n_live) live--;
        if (steps > MOST_STEPS) {
            ptx_fail(&b->warps[0], -1, "the launch does not end");
            return;
        }
    }
}

/* ---- a launch -------------------------------------------------------------------------------------------------------------- */

static int refuse(const ptx_launch *l, char *why, const char *what, size_t number, size_t most)
{
    snprintf(why, PTX_WHY, "%.*s: %s: %zu, not %zu", l->kernel->name_length, l->kernel->name, what, number, most);
    return 0;
}

static int lay_out(const ptx_launch *l, unsigned char *to, char *why)
{
    const ptx_kernel *k = l->kernel;
    if (l->n != k->n_parameters) return refuse(l, why, "arguments of the launch", (size_t)l->n, (size_t)k->n_parameters);
    for (int i = 0; i < l->n; i++) {
        if (l->sizes[i] != k->parameters[i].bytes)
            return refuse(l, why, "bytes of an argument", l->sizes[i], k->parameters[i].bytes);
        memcpy(to + k->parameters[i].at, l->values[i], l->sizes[i]);
    }
    return 1;
}

int ptx_run(const ptx_launch *l, ptx_counts *counts, char *why)
{
    const ptx_kernel *k = l->kernel;
    const size_t threads = (size_t)l->block[0] * l->block[1] * l->block[2], n = (size_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (threads < 1 || threads > 1024) return refuse(l, why, "threads of a block", threads, 1024);
    // ptxas fits the registers of a kernel to .maxntid; without it a thread may have 255, and a multiprocessor has 65,536.
    const unsigned most = k->most_threads ? k->most_threads : 256;
    if (threads > most) return refuse(l, why, "threads of a block, of a kernel compiled for fewer", threads, most);
    if (l->grid[1] > 65535 || l->grid[2] > 65535 || n == 0 || n > INT32_MAX) return refuse(l, why, "blocks of a grid", n, 65535);
    unsigned char *parameters = need(calloc(1, k->parameter_bytes + 16));
    unsigned *order = need(malloc(n * sizeof *order));
    const int resident = l->together ? (int)n : 1;
    ptx_block *blocks = need(calloc((size_t)resident, sizeof *blocks));
    ptx_machine.counts = counts;
    ptx_machine.why = why;
    ptx_machine.failed = false;
    ptx_machine.now = NULL;
    ptx_memory_launch();
    bool opened = false;
    if (lay_out(l, parameters, why)) {
        for (size_t i = 0; i < n; i++) order[i] = (unsigned)i;
        for (size_t i = n; i-- > 1;) {
            const size_t j = lin_random_below(l->seed, i, (uint32_t)i + 1);
            const unsigned swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        for (int i = 0; i < resident; i++) open_block(&blocks[i], l, parameters);
        opened = true;
        if (l->together) {
            for (size_t i = 0; i < n; i++) begin_block(&blocks[i], order[i]);
            run_blocks(blocks, (int)n, lin_random_key(l->seed, 1));
        } else {
            for (size_t i = 0; i < n && !ptx_machine.failed; i++) {
                begin_block(blocks, order[i]);
                run_blocks(blocks, 1, lin_random_key(l->seed, i + 1));
            }
        }
        if (counts) {
            counts->blocks += n;
            counts->warps += n * (uint64_t)blocks[0].n_warps;
        }
    } else ptx_machine.failed = true;
    for (int i = 0; opened && i < resident; i++) close_block(&blocks[i]);
    free(blocks);
    free(order);
    free(parameters);
    return !ptx_machine.failed;
}
