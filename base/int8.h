/*
 * int8.h - rows of weights as whole numbers of eight bits and a scale: w = q scale, q in -127..127.
 *
 * The scale is the largest magnitude of the row divided by 127, rounded up to 17 bits of mantissa. So q scale is exact in a
 * float, and rounding a row again gives the same q and the same scale: weights may pass through floats without a change.
 */
#ifndef LIN_BASE_INT8_H
#define LIN_BASE_INT8_H

#include <stddef.h>

/*
 * The nearest q [count] of w, ties to even, and the scale, which is returned. Rows whose scale would be subnormal become 0, with
 * scale 0. A NaN, or a magnitude of 2^127 or more: q is 0 and the scale NaN.
 */
float lin_int8_narrow(const float *w, size_t count, signed char *q);

/* w = q scale. */
void lin_int8_widen(const signed char *q, size_t count, float scale, float *w);

/* Whether lin_int8_narrow can have made the row: NULL, or what is wrong, the rest of a sentence that begins with "row 3". */
const char *lin_int8_check(const signed char *q, size_t count, float scale);

#endif
