// ring.c - a single-producer, single-consumer ring; see ring.h.

#include "frontend/ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"

// Some processors fetch lines in pairs, so the data of the two sides are two lines apart.
enum { APART = 128 };

/*
 * Indices increase without limit (2^64 frames are 12 million years at 48 kHz); an index modulo the capacity is a place. A side
 * publishes its own index with release after it has accessed the frames, and reads the other's with acquire before it does. The
 * last value seen of the other index is usually sufficient, so the cache line that both sides share is rarely read.
 */
struct lin_ring {
    float *frames; // [capacity, width]
    size_t capacity, width;
    char apart_from_shape[APART];
    _Atomic uint64_t written; // the producer's
    uint64_t seen_taken;
    _Atomic uint64_t dropped;
    char apart[APART];
    _Atomic uint64_t taken; // the consumer's
    uint64_t seen_written;
    char apart_from_others[APART];
};

lin_status lin_ring_create(size_t frames, int width, lin_ring **out, lin_error *err)
{
    const size_t most = (size_t)1 << 30;
    *out = NULL;
    if (frames < 1 || width < 1 || frames > most || (size_t)width > most / frames)
        return lin_fail(err, LIN_INVALID, "a ring of %zu frames of %d channels; must be 1 to 2^30 samples", frames, width);
    size_t capacity = 1;
    while (capacity < frames) capacity *= 2;
    lin_ring *ring = lin_calloc(1, sizeof *ring);
    if (!ring) return lin_no_memory(err, "a ring", sizeof *ring);
    // Written once, by zeroing: the producer must not cause page faults.
    ring->frames = lin_calloc(capacity * (size_t)width, sizeof *ring->frames);
    if (!ring->frames) {
        lin_free(ring);
        return lin_no_memory(err, "a ring", capacity * (size_t)width * sizeof *ring->frames);
    }
    ring->capacity = capacity;
    ring->width = (size_t)width;
    *out = ring;
    return LIN_OK;
}

size_t lin_ring_write(lin_ring *ring, const float *samples, size_t n)
{
    if (n == 0) return 0;
    const uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    size_t room = ring->capacity - (size_t)(written - ring->seen_taken);
    if (room < n) {
        ring->seen_taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
        room = ring->capacity - (size_t)(written - ring->seen_taken);
    }
    assert(room <= ring->capacity); // the consumer is never ahead of the producer
    const size_t fits = n < room ? n : room, width = ring->width;
    const size_t place = (size_t)written & (ring->capacity - 1), to_end = ring->capacity - place;
    const size_t first = fits < to_end ? fits : to_end;
    memcpy(ring->frames + place * width, samples, first * width * sizeof *samples);
    memcpy(ring->frames, samples + first * width, (fits - first) * width * sizeof *samples);
    atomic_store_explicit(&ring->written, written + fits, memory_order_release);
    if (fits < n) atomic_fetch_add_explicit(&ring->dropped, n - fits, memory_order_relaxed);
    return fits;
}

// How many of n frames the consumer may read.
static size_t available(lin_ring *ring, uint64_t taken, size_t n)
{
    size_t there = (size_t)(ring->seen_written - taken);
    if (there < n) {
        ring->seen_written = atomic_load_explicit(&ring->written, memory_order_acquire);
        there = (size_t)(ring->seen_written - taken);
    }
    return n < there ? n : there;
}

size_t lin_ring_read(lin_ring *ring, float *samples, size_t n)
{
    if (n == 0) return 0;
    const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    const size_t take = available(ring, taken, n), width = ring->width;
    assert(take <= ring->capacity);
    const size_t place = (size_t)taken & (ring->capacity - 1), to_end = ring->capacity - place;
    const size_t first = take < to_end ? take : to_end;
    memcpy(samples, ring->frames + place * width, first * width * sizeof *samples);
    memcpy(samples + first * width, ring->frames, (take - first) * width * sizeof *samples);
    atomic_store_explicit(&ring->taken, taken + take, memory_order_release);
    return take;
}

size_t lin_ring_readable(const lin_ring *ring)
{
    // In this order the difference is never negative; while both sides run, it may exceed the capacity.
    const uint64_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    const size_t there = (size_t)(atomic_load_explicit(&ring->written, memory_order_acquire) - taken);
    return there < ring->capacity ? there : ring->capacity;
}

uint64_t lin_ring_written(const lin_ring *ring) { return atomic_load_explicit(&ring->written, memory_order_acquire); }

uint64_t lin_ring_taken(const lin_ring *ring) { return atomic_load_explicit(&ring->taken, memory_order_acquire); }

uint64_t lin_ring_dropped(const lin_ring *ring) { return atomic_load_explicit(&ring->dropped, memory_order_relaxed); }

void lin_ring_destroy(lin_ring *ring)
{
    if (!ring) return;
    lin_free(ring->frames);
    lin_free(ring);
}
