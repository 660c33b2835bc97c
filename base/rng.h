/*
 * rng.h - seeded random numbers, counter-based: the i-th number of a key is a function of (key, i) alone.
 *
 * Nothing depends on the order in which threads draw numbers; to resume, only the key and the counter have to be saved.
 * The mixer is SplitMix64's finaliser (Steele, Lea, Flood 2014), applied twice over key and counter.
 */
#ifndef LIN_BASE_RNG_H
#define LIN_BASE_RNG_H

#include <stdint.h>

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

#endif
