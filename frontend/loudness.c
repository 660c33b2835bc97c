// loudness.c - the loudness of the sound of a row; see loudness.h.

#include "frontend/loudness.h"

#include <math.h>

double lin_loudness_frame(double sum, const float *frame, int D)
{
    for (int d = 0; d < D; d++) sum += exp((double)frame[d]);
    return sum;
}

double lin_loudness_sound(double sum, const float *samples, int n)
{
    double squares = 0;
    for (int i = 0; i < n; i++) squares += (double)samples[i] * (double)samples[i];
    return sum + squares / n;
}

double lin_loudness_db(double sum) { return 10 * log10(sum > 1e-12 ? sum : 1e-12); }
