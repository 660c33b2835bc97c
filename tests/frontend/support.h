/*
 * support.h - shared by the tests of frontend/: signals, paths in a temporary folder, statuses with their messages.
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

// A path in this program's temporary folder, made at the first call; valid until the fourth call from now.
SUPPORT char temp_folder[64];

SUPPORT const char *temp_path(const char *name)
{
    static char paths[4][192];
    static int next;
    if (!temp_folder[0]) test_folder(temp_folder, sizeof temp_folder);
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder, name);
    return path;
}

SUPPORT void remove_temp_folder(void)
{
    if (temp_folder[0]) test_folder_remove(temp_folder);
    temp_folder[0] = 0;
}

SUPPORT const char *write_bytes(const char *name, const void *bytes, size_t n)
{
    const char *path = temp_path(name);
    test_write_file(path, bytes, n);
    return path;
}

// For tests that look at the error afterwards; else OK and FAILS of tests/support.h.
#define assert_ok(call, err) ck_assert_msg((call) == LIN_OK, "%s", (err).message)
#define assert_fails(call, wanted, err, text)                                                                                    \
    do {                                                                                                                         \
        (err).message[0] = 0;                                                                                                    \
        ck_assert_int_eq((call), (wanted));                                                                                      \
        ck_assert_msg(strstr((err).message, (text)) != NULL, "'%s' does not contain '%s'", (err).message, (text));               \
    } while (0)

#endif
