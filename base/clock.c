// clock.c - monotonic time and processor time; see clock.h.

#include "base/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double lin_now(void) { return seconds(CLOCK_MONOTONIC); }

int64_t lin_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double lin_now_cpu(void) { return seconds(CLOCK_THREAD_CPUTIME_ID); }
