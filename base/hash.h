/*
 * hash.h - 64 bits over bytes, for fingerprints and checksums (no defence against forgery).
 *
 * Every step is a bijection of the word it takes in, so a change within any one aligned 8-byte word always changes the result. Four
 * independent lanes: about 6 bytes per cycle.
 */
#ifndef LIN_BASE_HASH_H
#define LIN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"

static inline uint64_t lin_hash_word(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, bytes, n); // little-endian, as all our files
    return word;
}

/* seed: 0, or the hash of what came before. */
static inline uint64_t lin_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t lanes[4];
    for (unsigned i = 0; i < 4; i++) lanes[i] = lin_random_key(seed, i);
    size_t at = 0;
    for (; n - at >= 32; at += 32)
        for (unsigned i = 0; i < 4; i++) {
            const uint64_t x = (lanes[i] ^ lin_hash_word(p + at + 8 * i, 8)) * 0x9E3779B97F4A7C15u;
            lanes[i] = x << 29 | x >> 35;
        }
    uint64_t hash = lin_mix64(seed ^ (uint64_t)n);
    for (; at < n; at += 8) hash = lin_mix64(hash ^ lin_hash_word(p + at, n - at < 8 ? n - at : 8)) + 1;
    for (unsigned i = 0; i < 4; i++) hash = lin_mix64(hash ^ lanes[i]) + 1;
    return hash;
}

#endif
