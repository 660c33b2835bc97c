// half.c - half precision over arrays; see half.h.

#include "base/half.h"

void lin_half_widen(const void *from, size_t count, float *to)
{
    const unsigned char *bytes = from;
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        to[i] = lin_half_to_float(half);
    }
}

void lin_half_narrow(const float *from, size_t count, void *to)
{
    unsigned char *bytes = to;
    for (size_t i = 0; i < count; i++) {
        const uint16_t half = lin_float_to_half(from[i]);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}
