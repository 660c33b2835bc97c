/*
 * support.h - shared by the tests of frontend/: signals, statuses with their messages.
 */
#ifndef LIN_TESTS_FRONTEND_SUPPORT_H
#define LIN_TESTS_FRONTEND_SUPPORT_H

#include "base/memory.h"
#include "base/status.h"
#include "tests/support.h"

#define SUPPORT __attribute__((unused)) static
#define TWO_PI 6.283185307179586

// A tone of amplitude `level` at hz with a little noise (level noise) under it.
SUPPORT void fill_tone(float *x, int n, double rate_hz, double hz, double level, double noise)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(level * sin(TWO_PI * hz * i / rate_hz) + noise * (2 * lin_random_uniform(77, (uint64_t)i) - 1));
}

// Random parts: the length of part number i when n elements are left.
SUPPORT int piece(uint64_t seed, uint64_t i, int most, int left)
{
    int n = (int)lin_random_below(seed, i, (uint32_t)most + 1);
    return n < left ? n : left;
}

#endif
