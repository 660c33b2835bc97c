/*
 * hash.h - hashes of bytes, and random numbers that are hashes of a key and a counter.
 *
 * lin_random_*: the i-th number of a key is a function of (key, i) alone. Nothing depends on the order in which threads draw
 * numbers; to resume, only the key and the counter have to be saved. The mixer is SplitMix64's finaliser (Steele, Lea, Flood
 * 2014), applied twice over key and counter.
 *
 * lin_hash: 64 bits of large data and of files: fingerprints, checksums (no protection against forgery). Every step is a
 * bijection of its input word, so a change within one aligned 8-byte word always changes the result. Four independent lanes:
 * about 6 bytes per cycle.
 *
 * lin_fnv: for short keys, which may be given in parts: FNV-1a (Fowler, Noll, Vo). Its low bits are weak: mix them (lin_mix64)
 * before using them to choose a slot. Saved states contain its values.
 */
#ifndef LIN_BASE_HASH_H
#define LIN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- random numbers -------------------------------------------------------------------------------------------------------- */

/* CUDA kernels draw the same numbers. */
#ifdef __CUDACC__
#define LIN_RANDOM static __host__ __device__ inline
#else
#define LIN_RANDOM static inline
#endif

LIN_RANDOM uint64_t lin_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* 64 random bits for (key, counter). */
LIN_RANDOM uint64_t lin_random_bits(uint64_t key, uint64_t counter)
{
    return lin_mix64(lin_mix64(key + 0x9E3779B97F4A7C15u * (counter + 1)) ^ key);
}

/* A new key from a key and a label (step, layer, purpose), for independent sequences. */
LIN_RANDOM uint64_t lin_random_key(uint64_t key, uint64_t label)
{
    return lin_mix64(key ^ lin_mix64(label + 0xD1B54A32D192ED03u));
}

/* Uniform in [0, 1), 53 bits. */
LIN_RANDOM double lin_random_uniform(uint64_t key, uint64_t counter)
{
    return (double)(lin_random_bits(key, counter) >> 11) * 0x1p-53;
}

/* Uniform integer in [0, n), n >= 1 (bias below 2^-32 for n < 2^32: 64-bit multiply-shift). */
LIN_RANDOM uint32_t lin_random_below(uint64_t key, uint64_t counter, uint32_t n)
{
    return (uint32_t)(((lin_random_bits(key, counter) >> 32) * n) >> 32);
}

/* ---- hashes ---------------------------------------------------------------------------------------------------------------- */

static inline uint64_t lin_hash_word(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, bytes, n); // little-endian, like all files of the project
    return word;
}

/* Large data in parts: begin, add the parts in order, end. */
typedef struct lin_hasher {
    uint64_t seed, lanes[4];
    size_t n;               /* bytes so far */
    unsigned char rest[32]; /* the last n % 32 of them */
} lin_hasher;

static inline void lin_hash_begin(lin_hasher *h, uint64_t seed)
{
    h->seed = seed;
    h->n = 0;
    for (unsigned i = 0; i < 4; i++) h->lanes[i] = lin_random_key(seed, i);
}

static inline void lin_hash_blocks(uint64_t lanes[4], const unsigned char *p, size_t n)
{
    uint64_t lane[4];
    for (unsigned i = 0; i < 4; i++) lane[i] = lanes[i];
    for (size_t at = 0; at < n; at += 32)
        for (unsigned i = 0; i < 4; i++) {
            const uint64_t x = (lane[i] ^ lin_hash_word(p + at + 8 * i, 8)) * 0x9E3779B97F4A7C15u;
            lane[i] = x << 29 | x >> 35;
        }
    for (unsigned i = 0; i < 4; i++) lanes[i] = lane[i];
}

static inline void lin_hash_add(lin_hasher *h, const void *bytes, size_t n)
{
    if (n == 0) return; // bytes may be NULL
    const unsigned char *p = (const unsigned char *)bytes; // C++ includes this too
    const size_t before = h->n % 32, first = before && 32 - before < n ? 32 - before : before ? n : 0;
    memcpy(h->rest + before, p, first);
    if (before && before + first == 32) lin_hash_blocks(h->lanes, h->rest, 32);
    h->n += n;
    p += first;
    n -= first;
    lin_hash_blocks(h->lanes, p, n / 32 * 32);
    memcpy(h->rest, p + n / 32 * 32, n % 32);
}

static inline uint64_t lin_hash_end(const lin_hasher *h)
{
    const size_t n = h->n % 32;
    uint64_t hash = lin_mix64(h->seed ^ (uint64_t)h->n);
    for (size_t at = 0; at < n; at += 8) hash = lin_mix64(hash ^ lin_hash_word(h->rest + at, n - at < 8 ? n - at : 8)) + 1;
    for (unsigned i = 0; i < 4; i++) hash = lin_mix64(hash ^ h->lanes[i]) + 1;
    return hash;
}

/* seed: 0, or the hash of the preceding bytes. */
static inline uint64_t lin_hash(const void *bytes, size_t n, uint64_t seed)
{
    lin_hasher h;
    lin_hash_begin(&h, seed);
    lin_hash_add(&h, bytes, n);
    return lin_hash_end(&h);
}

#define LIN_FNV_START UINT64_C(0xCBF29CE484222325)

/* One step: h ^ a byte, or a whole word as one piece. */
static inline uint64_t lin_fnv_step(uint64_t h, uint32_t piece) { return (h ^ piece) * UINT64_C(0x100000001B3); }

/* h: LIN_FNV_START, or the hash of what came before. */
static inline uint64_t lin_fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++) h = lin_fnv_step(h, p[i]);
    return h;
}

/* Hash of two words, whose order counts, for keys that are extended word by word. Saved states contain its values. */
static inline uint64_t lin_hash_pair(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 29)) * 0x94D049BB133111EBu;
    return z ^ (z >> 32);
}

#endif
