/*
 * ring.h - a queue of sound between two threads: one writes, the other reads, and neither waits.
 *
 * Pipeline: the sound system's own thread -> [this] -> the thread that recognises. Used by frontend/microphone.
 * Single producer, single consumer (Lamport 1983): each side owns one index and only reads the other's, so nothing is locked and
 * a callback that must not block can write. An element is a frame: `width` floats, one of each channel.
 *
 *   lin_ring_create(48000, 1, &ring, &err);
 *   lin_ring_write(ring, samples, n);              // producer: as many as fit; the others are dropped and counted
 *   n = lin_ring_read(ring, samples, capacity);    // consumer: as many as there are
 *   lin_ring_destroy(ring);                        // when both have stopped
 *
 * Only creation allocates.
 */
#ifndef LIN_FRONTEND_RING_H
#define LIN_FRONTEND_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct lin_ring lin_ring;

/* Room for at least `frames` frames, rounded up to a power of two, of `width` floats. LIN_INVALID unless both are positive, and
 * for more than 2^30 floats. On failure *ring is NULL. */
lin_status lin_ring_create(size_t frames, int width, lin_ring **ring, lin_error *err);

/* Producer: copies the first of n frames, samples [n, width], that fit; returns their number. The others count as dropped. */
size_t lin_ring_write(lin_ring *ring, const float *samples, size_t n);

/* Consumer: copies the oldest frames, samples [n, width], at most n of them; returns their number. */
size_t lin_ring_read(lin_ring *ring, float *samples, size_t n);

/* Frames that can be read. Any thread; a lower bound for the consumer, because the producer only increases it, and an upper bound
 * for the producer. */
size_t lin_ring_readable(const lin_ring *ring);

/* Frames since creation: written (without the dropped), read, dropped because the ring was full. Any thread. */
uint64_t lin_ring_written(const lin_ring *ring);
uint64_t lin_ring_taken(const lin_ring *ring);
uint64_t lin_ring_dropped(const lin_ring *ring);

/* Accepts NULL. */
void lin_ring_destroy(lin_ring *ring);

#endif
