// mix.c - the channels of a sound mixed down to one; see mix.h.

#include "frontend/mix.h"

#include <stddef.h>

void lin_mix_down(float *mono, const float *samples, int n, int channels)
{
    for (int i = 0; i < n; i++) {
        const float *frame = samples + (size_t)i * (size_t)channels;
        float sum = 0;
        for (int c = 0; c < channels; c++) sum += frame[c];
        mono[i] = sum / (float)channels;
    }
}
