/*
 * clock.h - the time that has passed, on clocks that changes of the date do not affect.
 *
 * Threads: any.
 */
#ifndef LIN_BASE_CLOCK_H
#define LIN_BASE_CLOCK_H

#include <stdint.h>

/* Seconds, or nanoseconds, since an arbitrary moment; never decreases. */
double lin_now(void);
int64_t lin_now_ns(void);

/* Seconds that the calling thread has run on a processor: other work on the machine does not count. */
double lin_now_cpu(void);

#endif
