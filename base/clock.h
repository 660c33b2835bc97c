/*
 * clock.h - elapsed time, on clocks that do not depend on the date.
 *
 * Threads: any.
 */
#ifndef LIN_BASE_CLOCK_H
#define LIN_BASE_CLOCK_H

#include <stdint.h>

/* Seconds, or nanoseconds, since an arbitrary moment; never decreases. */
double lin_now(void);
int64_t lin_now_ns(void);

/* Seconds of processor time of the calling thread: other work on the machine does not count. */
double lin_now_cpu(void);

#endif
