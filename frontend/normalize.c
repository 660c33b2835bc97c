// normalize.c - sums over frames, and means and deviations applied to features; see normalize.h.

#include "frontend/normalize.h"

#include <math.h>

#include "base/memory.h"

struct lin_moments {
    int D;
    uint64_t n;
    double *centre, *sum, *squares; // [D] each: the first frame, and sums of x - centre and (x - centre)^2
};

lin_status lin_moments_create(int D, lin_moments **out, lin_error *err)
{
    *out = NULL;
    if (D < 1) return lin_fail(err, LIN_INVALID, "normalisation: %d bins; must be at least 1", D);
    lin_moments *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, "normalisation", sizeof *a);
    a->D = D;
    a->centre = lin_calloc(3 * (size_t)D, sizeof(double));
    if (!a->centre) {
        lin_free(a);
        return lin_no_memory(err, "normalisation", 3 * (size_t)D * sizeof(double));
    }
    a->sum = a->centre + D;
    a->squares = a->sum + D;
    *out = a;
    return LIN_OK;
}

void lin_moments_add(lin_moments *a, const float *frames, size_t T)
{
    size_t D = (size_t)a->D;
    for (size_t t = 0; t < T; t++) {
        const float *x = frames + t * D;
        if (a->n == 0)
            for (size_t d = 0; d < D; d++) a->centre[d] = (double)x[d];
        for (size_t d = 0; d < D; d++) {
            double v = (double)x[d] - a->centre[d];
            a->sum[d] += v;
            a->squares[d] += v * v;
        }
        a->n++;
    }
}

uint64_t lin_moments_count(const lin_moments *a) { return a->n; }

lin_status lin_moments_finish(const lin_moments *a, float *mean, float *istd, lin_error *err)
{
    if (a->n == 0) return lin_fail(err, LIN_INVALID, "normalisation: there are no frames");
    for (int d = 0; d < a->D; d++) {
        double offset = a->sum[d] / (double)a->n, variance = a->squares[d] / (double)a->n - offset * offset;
        if (!isfinite(offset) || !isfinite(variance))
            return lin_fail(err, LIN_NUMERIC, "normalisation: bin %d of a frame is not finite", d);
        double std = variance > 0 ? sqrt(variance) : 0;
        mean[d] = (float)(a->centre[d] + offset);
        istd[d] = (float)(1 / (std > LIN_MOMENTS_SMALLEST_STD ? std : LIN_MOMENTS_SMALLEST_STD));
    }
    return LIN_OK;
}

void lin_moments_destroy(lin_moments *a)
{
    if (!a) return;
    lin_free(a->centre);
    lin_free(a);
}

void lin_moments_apply(float *frames, size_t T, int D, const float *mean, const float *istd)
{
    for (size_t t = 0; t < T; t++) {
        float *x = frames + t * (size_t)D;
        for (int d = 0; d < D; d++) x[d] = (x[d] - mean[d]) * istd[d];
    }
}
