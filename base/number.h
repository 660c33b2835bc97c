/*
 * number.h - small numbers for weights and features: half precision, and whole numbers of eight bits with a scale.
 *
 * Half precision (IEEE 754 binary16) is plain C that compilers vectorise. Widening is exact. Narrowing rounds to nearest, ties to
 * even; magnitudes from 65,520 become infinity, a NaN stays a NaN.
 *
 * Eight bits: a row of weights is w = q scale, q in -127..127. The scale is the largest magnitude of the row divided by 127,
 * rounded up to 17 bits of mantissa. So q scale is exact in a float, and rounding a row again gives the same q and the same
 * scale: weights may pass through floats without a change.
 */
#ifndef LIN_BASE_NUMBER_H
#define LIN_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- half precision -------------------------------------------------------------------------------------------------------- */

static inline float lin_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
    // normal numbers: rebias the exponent from 15 to 127; infinity and NaN: up to 255
    const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7C00u ? 0x70000000u : 0x38000000u);
    // subnormal numbers are magnitude * 2^-24, exactly
    const float small = (float)(int32_t)magnitude * 0x1p-24F;
    uint32_t bits;
    memcpy(&bits, &small, sizeof bits);
    bits = (magnitude < 0x0400u ? bits : normal) | sign;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t lin_float_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00u | ((magnitude >> 13) & 0x1FFu)); // a quiet NaN
    if (magnitude >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u);                              // 65,520 and more
    if (magnitude < 0x38800000u) {
        // below 2^-14: adding 0.5 leaves round(|value| 2^24) in the low bits of the sum, rounded to nearest even by the addition
        float sum;
        memcpy(&sum, &magnitude, sizeof sum);
        sum += 0.5F;
        memcpy(&bits, &sum, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0x0FFFu + odd) >> 13));
}

/* Arrays; `from` and `to` may have any alignment and do not overlap. */
void lin_half_widen(const void *from, size_t count, float *to);
/* Index of the first that is NaN or infinite, or count. */
size_t lin_half_find_not_finite(const void *from, size_t count);
void lin_half_narrow(const float *from, size_t count, void *to);

/* ---- eight bits ------------------------------------------------------------------------------------------------------------ */

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
