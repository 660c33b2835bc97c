// clock.c - seconds of a clock that never jumps; see clock.h.

#include "base/clock.h"

#include <time.h>

double lin_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
