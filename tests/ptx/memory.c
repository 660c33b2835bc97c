// Memory: the allocations that kernels may access, loads and stores of all spaces with their checks, asynchronous copies, and the
// bytes that launches move.
#include "tests/ptx/internal.h"

#include <stdlib.h>
#include <string.h>

enum { POISON = 0xFF, SECTOR = 32, BANKS = 32 };

typedef struct allocation {
    uint64_t first, bytes;
    unsigned char *written; // a flag for each byte; NULL: all are
    uint32_t *touched;      // [sectors] the number of the launch that did, twice, + 1 if it wrote first
} allocation;

static allocation *all; // ascending
static int n_all, room_all, last_found;
static uint32_t launch_number;

enum { SEVERAL = -1 }; // lanes of one warp, or warps

/* ---- allocations ----------------------------------------------------------------------------------------------------------- */

static int position(uint64_t at)
{
    int low = 0, high = n_all;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (all[middle].first <= at) low = middle + 1;
        else high = middle;
    }
    return low - 1; // the last that begins at or before
}

int ptx_memory_add(const void *first, size_t bytes, int written)
{
    allocation a = {(uint64_t)(uintptr_t)first, bytes, NULL, NULL};
    if (n_all == room_all) {
        room_all = room_all ? 2 * room_all : 64;
        allocation *more = realloc(all, (size_t)room_all * sizeof *more);
        if (!more) return 0;
        all = more;
    }
    if (!written) a.written = calloc(bytes + 1, 1);
    a.touched = calloc(bytes / SECTOR + 2, sizeof *a.touched);
    if (!a.touched || (!written && !a.written)) {
        free(a.written);
        free(a.touched);
        return 0;
    }
    const int at = position(a.first) + 1;
    memmove(&all[at + 1], &all[at], (size_t)(n_all - at) * sizeof *all);
    all[at] = a;
    n_all++;
    last_found = 0;
    return 1;
}

void ptx_memory_remove(const void *first)
{
    const int at = position((uint64_t)(uintptr_t)first);
    if (at < 0 || all[at].first != (uint64_t)(uintptr_t)first) return;
    free(all[at].written);
    free(all[at].touched);
    n_all--;
    memmove(&all[at], &all[at + 1], (size_t)(n_all - at) * sizeof *all);
    last_found = 0;
}

static allocation *find(uint64_t at, uint64_t bytes)
{
    if (last_found < n_all && at - all[last_found].first < all[last_found].bytes) {
        allocation *a = &all[last_found];
        return at - a->first + bytes <= a->bytes ? a : NULL;
    }
    const int i = position(at);
    if (i < 0 || at - all[i].first + bytes > all[i].bytes) return NULL;
    last_found = i;
    return &all[i];
}

void ptx_memory_mark(const void *first, size_t bytes, int written)
{
    allocation *a = find((uint64_t)(uintptr_t)first, bytes);
    if (a && a->written) memset(a->written + ((uint64_t)(uintptr_t)first - a->first), written != 0, bytes);
}

void ptx_memory_launch(void) { launch_number += 2; }

/* ---- counting -------------------------------------------------------------------------------------------------------------- */

static void count_global(const uint64_t *addresses, unsigned bytes, bool write, uint32_t mask)
{
    uint64_t seen[4 * LANES];
    int n = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint64_t at = addresses[__builtin_ctz(left)], sector = at / SECTOR; // an aligned access lies in one
        int s = n - 1;
        while (s >= 0 && seen[s] != sector) s--;
        if (s >= 0) continue;
        seen[n++] = sector;
        ptx_machine.counts->sectors++;
        allocation *a = find(at, bytes);
        if (!a) continue;
        uint32_t *stamp = &a->touched[sector - a->first / SECTOR];
        if (*stamp < launch_number) {
            *(write ? &ptx_machine.counts->written : &ptx_machine.counts->read) += SECTOR;
            *stamp = launch_number + write;
        } else if (write && *stamp == launch_number) { // read before
            ptx_machine.counts->written += SECTOR;
            *stamp = launch_number + 1;
        }
    }
}

// Passes of the banks, for 128 bytes of lanes at a time; words that several lanes have in common count once.
static void count_shared(const uint64_t *addresses, unsigned bytes, uint32_t mask)
{
    const int lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    for (int first = 0; first < LANES; first += lanes) {
        uint32_t words[BANKS][LANES];
        int n[BANKS] = {0}, most = 0;
        for (int l = first; l < first + lanes; l++) {
            if (!(mask >> l & 1)) continue;
            for (unsigned b = 0; b < bytes; b += 4) {
                const uint32_t word = (uint32_t)(addresses[l] + b) / 4, bank = word % BANKS;
                int s = n[bank] - 1;
                while (s >= 0 && words[bank][s] != word) s--;
                if (s < 0) words[bank][n[bank]++] = word;
                if (n[bank] > most) most = n[bank];
            }
        }
        if (!most) continue;
        ptx_machine.counts->wavefronts += (uint64_t)most;
        ptx_machine.counts->conflicts += (uint64_t)most - 1;
    }
}

/* ---- races ----------------------------------------------------------------------------------------------------------------- */

static void race(ptx_warp *w, int lane, const char *what, uint64_t at, int other)
{
    if (other == SEVERAL)
        ptx_fail(w, lane, "%s byte %llu of shared memory by several warps, no barrier between them", what,
                 (unsigned long long)at);
    else
        ptx_fail(w, lane, "%s byte %llu of shared memory by warp %d lane %d, no %s between them", what, (unsigned long long)at,
                 other / LANES, other % LANES, other / LANES != w->number ? "barrier" : "syncwarp");
}

// Whether an access of this lane and an earlier one are not in order.
static inline bool unordered(const ptx_warp *w, int who, uint32_t block_epoch, uint32_t warp_epoch, int other)
{
    if (block_epoch != w->block->epoch) return false;
    if (other == SEVERAL || other / LANES != w->number) return true;
    return other != who && warp_epoch == w->epoch;
}

// Whether a write of this lane and an earlier read are not in order.
static inline bool unordered_read(const ptx_warp *w, int who, const ptx_cell *c)
{
    if (c->read_block != w->block->epoch) return false;
    if (c->reader == SEVERAL || c->reader / LANES != w->number) return true;
    return c->read_warp == w->epoch && (c->read_by_lane == SEVERAL || c->reader != who);
}

static void note_write(ptx_warp *w, int lane, uint64_t at, unsigned bytes)
{
    const int who = w->number * LANES + lane;
    for (uint64_t word = at / 4; word <= (at + bytes - 1) / 4; word++) {
        ptx_cell *c = &w->block->cells[word];
        if (unordered(w, who, c->write_block, c->write_warp, c->writer))
            race(w, lane, "a write after a write of", word * 4, c->writer);
        if (unordered_read(w, who, c)) race(w, lane, "a write after a read of", word * 4, c->reader);
        c->write_block = w->block->epoch;
        c->write_warp = w->epoch;
        c->writer = (int16_t)who;
    }
}

static void note_read(ptx_warp *w, int lane, uint64_t at, unsigned bytes)
{
    const int who = w->number * LANES + lane;
    for (uint64_t word = at / 4; word <= (at + bytes - 1) / 4; word++) {
        ptx_cell *c = &w->block->cells[word];
        if (unordered(w, who, c->write_block, c->write_warp, c->writer))
            race(w, lane, "a read after a write of", word * 4, c->writer);
        if (c->read_block != w->block->epoch) {
            c->reader = (int16_t)who;
            c->read_by_lane = (int16_t)lane;
        } else if (c->reader == SEVERAL) {
            continue;
        } else if (c->reader / LANES != w->number) {
            c->reader = SEVERAL;
        } else if (c->read_warp == w->epoch && (c->reader != who || c->read_by_lane == SEVERAL)) {
            c->read_by_lane = SEVERAL;
        } else {
            c->reader = (int16_t)who;
            c->read_by_lane = (int16_t)lane;
        }
        c->read_block = w->block->epoch;
        c->read_warp = w->epoch;
    }
}

/* ---- accesses -------------------------------------------------------------------------------------------------------------- */

static void addresses_of(const ptx_warp *w, const ptx_operand *o, int64_t displacement, uint64_t *r)
{
    if (o->width == 4) {
        const uint32_t *x = ptx_at(w, o);
        EACH_LANE(l) r[l] = (uint32_t)(x[l] + (uint32_t)displacement);
    } else {
        const uint64_t *x = ptx_at(w, o);
        EACH_LANE(l) r[l] = x[l] + (uint64_t)displacement;
    }
}

static bool all_set(const unsigned char *flags, unsigned bytes, unsigned used)
{
    bool set = true;
    for (unsigned b = 0; b < bytes; b++) set &= flags[b] || !(used >> b & 1);
    return set;
}

// The bytes of one lane's access, checked; NULL after an error. *space becomes the one that a generic address has.
static unsigned char *resolve(ptx_warp *w, int lane, uint64_t at, unsigned bytes, int *space, bool write, unsigned used)
{
    static const char *const names[] = {"", "global", "shared", "local", "parameter"};
    unsigned char *data, *written;
    uint64_t offset = at, size;
    if (*space == SPACE_GENERIC)
        *space = at & PTX_SHARED_WINDOW ? SPACE_SHARED : at & PTX_LOCAL_WINDOW ? SPACE_LOCAL : SPACE_GLOBAL;
    if (at % bytes) {
        ptx_fail(w, lane, "%s address %#llx is not aligned to %u bytes", names[*space], (unsigned long long)at, bytes);
        return NULL;
    }
    if (*space == SPACE_GLOBAL) {
        allocation *a = find(at, bytes);
        if (!a) {
            const int i = position(at);
            ptx_fail(w, lane, "%u bytes at %#llx are in no allocation; the one before ends %llu bytes before", bytes,
                     (unsigned long long)at, i < 0 ? 0ull : (unsigned long long)(at - all[i].first - all[i].bytes));
            return NULL;
        }
        data = (unsigned char *)(uintptr_t)at;
        written = a->written ? a->written + (at - a->first) : NULL;
    } else {
        unsigned char *base, *flags;
        if (*space == SPACE_SHARED) {
            offset = at & ~PTX_SHARED_WINDOW;
            size = w->block->shared_bytes;
            base = w->block->shared;
            flags = w->block->shared_written;
        } else if (*space == SPACE_PARAM) {
            size = w->block->kernel->parameter_bytes;
            base = w->block->parameters;
            flags = NULL;
        } else {
            offset = at & ~PTX_LOCAL_WINDOW;
            size = w->block->kernel->local_bytes;
            base = w->local + (size_t)lane * size;
            flags = w->local_written + (size_t)lane * size;
        }
        if (offset > size || bytes > size - offset) {
            ptx_fail(w, lane, "%u bytes at %llu of %llu bytes of %s memory", bytes, (unsigned long long)offset,
                     (unsigned long long)size, names[*space]);
            return NULL;
        }
        data = base + offset;
        written = flags ? flags + offset : NULL; // parameters are all written
    }
    if (write) {
        if (written) memset(written, 1, bytes);
        if (*space == SPACE_SHARED) note_write(w, lane, offset, bytes);
    } else {
        if (written && !all_set(written, bytes, used))
            ptx_fail(w, lane, "reads %s memory that nothing has written, at %s%llu", names[*space],
                     *space == SPACE_GLOBAL ? "byte " : "",
                     (unsigned long long)(*space == SPACE_GLOBAL ? at - find(at, 1)->first : offset));
        if (*space == SPACE_SHARED) note_read(w, lane, offset, bytes);
    }
    return data;
}

static void count(const uint64_t *addresses, unsigned bytes, int space, bool write, uint32_t mask)
{
    if (!ptx_machine.counts || !mask) return;
    if (space == SPACE_SHARED) count_shared(addresses, bytes, mask);
    else if (space == SPACE_GLOBAL) count_global(addresses, bytes, write, mask);
}

void ptx_load(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const unsigned bytes = (unsigned)i->bytes * i->vector;
    uint64_t addresses[LANES];
    unsigned char data[LANES][16];
    int space = i->space;
    addresses_of(w, &i->o[0], i->displacement, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        const unsigned char *from = resolve(w, l, addresses[l], bytes, &space, false, i->used);
        if (!from) return;
        memcpy(data[l], from, bytes);
    }
    count(addresses, bytes, space, false, mask);
    for (int v = 0; v < i->vector; v++) {
        const ptx_operand *o = &i->o[1 + v];
        unsigned char r[LANES * 8];
        if (o->width == 0) continue;
        EACH_LANE(l)
        {
            if (!(mask >> l & 1)) continue;
            uint64_t x = 0;
            memcpy(&x, data[l] + v * i->bytes, i->bytes);
            if (i->is_signed && i->bytes < 8 && x >> (8 * i->bytes - 1)) x |= UINT64_MAX << (8 * i->bytes);
            memcpy(r + l * o->width, &x, o->width);
        }
        ptx_put(w, o, r, mask);
    }
}

void ptx_store(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const unsigned bytes = (unsigned)i->bytes * i->vector;
    uint64_t addresses[LANES];
    int space = i->space;
    addresses_of(w, &i->o[0], i->displacement, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        unsigned char *to = resolve(w, l, addresses[l], bytes, &space, true, 0);
        if (!to) return;
        for (int v = 0; v < i->vector; v++) {
            const ptx_operand *o = &i->o[1 + v];
            memcpy(to + v * i->bytes, (unsigned char *)ptx_at(w, o) + l * o->width, i->bytes);
        }
    }
    count(addresses, bytes, space, true, mask);
}

void ptx_add_global(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t addresses[LANES];
    const uint32_t *add = ptx_at(w, &i->o[1]);
    int space = SPACE_GLOBAL;
    addresses_of(w, &i->o[0], i->displacement, addresses);
    for (uint32_t left = mask; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        unsigned char *at = resolve(w, l, addresses[l], 4, &space, false, 0xF);
        uint32_t x;
        if (!at) return;
        memcpy(&x, at, sizeof x);
        x += add[l];
        memcpy(at, &x, sizeof x);
    }
    count(addresses, 4, space, true, mask);
}

/* ---- asynchronous copies --------------------------------------------------------------------------------------------------- */

// Until a wait the bytes are unwritten, and belong to the copying lane.
void ptx_copy_async(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t to[LANES], from[LANES];
    int shared = SPACE_SHARED, global = SPACE_GLOBAL;
    addresses_of(w, &i->o[0], 0, to);
    addresses_of(w, &i->o[1], 0, from);
    for (uint32_t left = mask; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        unsigned char *data = resolve(w, l, to[l], i->bytes, &shared, true, 0);
        const unsigned char *source = resolve(w, l, from[l], i->bytes, &global, false, 0xFFFF);
        if (!data || !source) return;
        memset(data, POISON, i->bytes);
        memset(w->block->shared_written + (data - w->block->shared), 0, i->bytes);
        if (w->n_copies == w->room_copies) {
            w->room_copies = w->room_copies ? 2 * w->room_copies : 256;
            w->copies = realloc(w->copies, (size_t)w->room_copies * sizeof *w->copies);
            if (!w->copies) abort();
        }
        w->copies[w->n_copies++] =
            (ptx_copy){(uint32_t)(data - w->block->shared), i->bytes, (unsigned char)l, w->groups[l], source};
    }
    count(from, i->bytes, SPACE_GLOBAL, false, mask);
    count(to, i->bytes, SPACE_SHARED, true, mask);
}

void ptx_copy_commit(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)i;
    for (uint32_t left = mask; left; left &= left - 1) w->groups[__builtin_ctz(left)]++;
}

void ptx_copy_wait(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    int kept = 0;
    const uint32_t pending = i->n ? *(const uint32_t *)ptx_at(w, &i->o[0]) : 0;
    for (int c = 0; c < w->n_copies; c++) {
        const ptx_copy copy = w->copies[c];
        const bool done = i->n == 0 || copy.group + pending < w->groups[copy.lane];
        if (!(mask >> copy.lane & 1) || !done) {
            w->copies[kept++] = copy;
            continue;
        }
        memcpy(w->block->shared + copy.to, copy.from, copy.bytes);
        memset(w->block->shared_written + copy.to, 1, copy.bytes);
        note_write(w, copy.lane, copy.to, copy.bytes);
    }
    w->n_copies = kept;
}

void ptx_check_copies(ptx_warp *w, uint32_t ending)
{
    for (int c = 0; c < w->n_copies; c++) {
        if (!(ending >> w->copies[c].lane & 1)) continue;
        ptx_fail(w, w->copies[c].lane, "ends before its asynchronous copy to byte %u of shared memory is waited for",
                 w->copies[c].to);
        return;
    }
}
