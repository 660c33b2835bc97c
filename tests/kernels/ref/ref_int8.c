// The product of eight-bit operands; see ref_int8.h.
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "tests/kernels/ref/ref_int8.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF // gcc does not fuse with -std=c11
#endif

float lin_ref_int8_weights(const float *w, int k, int *q)
{
    float most = 0;
    for (int t = 0; t < k; t++) most = fmaxf(most, fabsf(w[t]));
    // most / 127, rounded up to 17 bits of mantissa: m 2^e with 2^16 <= m <= 2^17 a whole number
    int exponent;
    const float ratio = (float)((double)most / 127);
    const double mantissa = frexp((double)ratio, &exponent);
    const float scale = (float)ldexp(ceil(ldexp(mantissa, 17)), exponent - 17);
    for (int t = 0; t < k; t++) q[t] = scale < FLT_MIN ? 0 : (int)nearbyintf(w[t] / scale);
    return scale < FLT_MIN ? 0 : scale;
}

// The steps u of a row of x.
static void place_row(const float *x, int k, int *u, float *step, int *zero)
{
    float lo = 0, hi = 0;
    int finite = 1;
    for (int t = 0; t < k; t++) {
        finite = finite && isfinite(x[t]);
        lo = fminf(lo, x[t]);
        hi = fmaxf(hi, x[t]);
    }
    const double range = (double)hi - (double)lo;
    const int some = finite && range >= ldexp(1, -100);
    const float inverse = some ? (float)(255 / range) : 0;
    *step = some ? (float)(range / 255) : finite ? 0 : NAN;
    *zero = some ? -(int)nearbyintf(lo * inverse) : 0;
    for (int t = 0; t < k; t++) {
        u[t] = some ? (int)nearbyintf(x[t] * inverse) + *zero : 0;
        if (u[t] > 255) u[t] = 255;
    }
}

void lin_ref_int8_linear(float *y, const float *x, const float *w, const float *bias, int rows, int n, int k, lin_activation act)
{
    int u[65536], q[65536];
    for (int r = 0; r < rows; r++) {
        float step;
        int zero;
        place_row(x + (size_t)r * (size_t)k, k, u, &step, &zero);
        for (int i = 0; i < n; i++) {
            const float scale = lin_ref_int8_weights(w + (size_t)i * (size_t)k, k, q);
            int64_t sum = 0;
            for (int t = 0; t < k; t++) sum += q[t] * (u[t] - zero);
            const float scaled = (float)sum * scale, value = scaled * step;
            const float biased = bias ? value + bias[i] : value;
            y[(size_t)r * (size_t)n + (size_t)i] = act == LIN_RELU && biased < 0 ? 0 : biased;
        }
    }
}
