// latency.c - delays in bins; see latency.h.

#include "app/latency.h"

void lin_latency_add(lin_latency *l, double seconds)
{
    if (!(seconds > 0)) seconds = 0;
    const double ms = seconds * 1e3;
    const int bin = ms < LIN_LATENCY_BINS ? (int)ms : LIN_LATENCY_BINS;
    l->bins[bin]++;
    l->n++;
    l->sum_s += seconds;
    l->last_s = seconds;
    if (seconds > l->largest_s) l->largest_s = seconds;
}

double lin_latency_quantile(const lin_latency *l, double q)
{
    if (l->n == 0) return 0;
    const double want = q * (double)l->n;
    double seen = 0;
    for (int i = 0; i < LIN_LATENCY_BINS; i++) {
        seen += l->bins[i];
        // The upper edge of the bin, which no delay in it exceeds; the largest delay is exact.
        if (seen >= want && seen > 0) return (i + 1) * 1e-3 < l->largest_s ? (i + 1) * 1e-3 : l->largest_s;
    }
    return l->largest_s;
}
