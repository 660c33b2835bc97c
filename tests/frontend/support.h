/*
 * support.h - shared by the tests of frontend/: signals, statuses with their messages.
 */
#ifndef LIN_TESTS_FRONTEND_SUPPORT_H
#define LIN_TESTS_FRONTEND_SUPPORT_H

#include <sndfile.h>

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

// Frames of a sound in this format of libsndfile; the path.
SUPPORT const char *write_sound(const char *name, int format, int rate, int channels, const float *x, int n)
{
    const char *path = test_path(name);
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    ck_assert_msg(f != NULL, "%s: %s", name, sf_strerror(NULL));
    ck_assert_int_eq((int)sf_writef_float(f, x, n), n);
    sf_close(f);
    return path;
}

// Random parts: the length of part number i when n elements are left.
SUPPORT int piece(uint64_t seed, uint64_t i, int most, int left)
{
    int n = (int)lin_random_below(seed, i, (uint32_t)most + 1);
    return n < left ? n : left;
}

#endif
