// int8.c - weights of eight bits; see int8.h.

#include "base/int8.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MOST = 127, LOW_BITS = 0x7F }; // LOW_BITS: of a float's 24 bits of mantissa those that a scale does not use

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float lin_int8_narrow(const float *w, size_t count, signed char *q)
{
    uint32_t most = 0; // magnitudes are in the order of their bits, and a NaN is the largest
    for (size_t i = 0; i < count; i++) {
        const uint32_t magnitude = bits_of(w[i]) & 0x7FFFFFFFu;
        most = magnitude > most ? magnitude : most;
    }
    memset(q, 0, count);
    if (most >= bits_of(0x1p127F)) return NAN;
    float largest, scale;
    memcpy(&largest, &most, sizeof largest);
    scale = (float)((double)largest / MOST);
    const uint32_t up = (bits_of(scale) + LOW_BITS) & ~(uint32_t)LOW_BITS;
    memcpy(&scale, &up, sizeof scale);
    if (scale < FLT_MIN) return 0;
    for (size_t i = 0; i < count; i++) {
        const float sum = w[i] / scale + 0x1.8p23F; // rounds to nearest even: the low bits of the sum are the whole number
        q[i] = (signed char)(int32_t)(bits_of(sum) - bits_of(0x1.8p23F));
    }
    return scale;
}

void lin_int8_widen(const signed char *q, size_t count, float scale, float *w)
{
    for (size_t i = 0; i < count; i++) w[i] = (float)q[i] * scale;
}

const char *lin_int8_check(const signed char *q, size_t count, float scale)
{
    int lowest = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        lowest = q[i] < lowest ? q[i] : lowest;
        highest = q[i] > highest ? q[i] : highest;
    }
    if (!isfinite(scale) || scale < 0) return "has a scale that is negative or not finite";
    if (scale == 0) return lowest || highest ? "has weights other than 0, and the scale 0" : NULL;
    if (scale < FLT_MIN || scale >= 0x1p121F) return "has a scale out of range";
    if (bits_of(scale) & LOW_BITS) return "has a scale of more than 17 bits of mantissa";
    if (lowest < -MOST) return "holds -128; the lowest is -127";
    if (lowest > -MOST && highest < MOST) return "has no weight of the magnitude 127";
    return NULL;
}
