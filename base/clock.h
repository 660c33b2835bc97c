/*
 * clock.h - seconds of a clock that never jumps.
 */
#ifndef LIN_BASE_CLOCK_H
#define LIN_BASE_CLOCK_H

/* Seconds since an arbitrary moment; never decreases, unaffected by changes of the date. Any thread. */
double lin_now(void);

#endif
