// lags.c - delays on a logarithmic scale; see lags.h.

#include "linnet/lags.h"

#include <math.h>

void lin_lags_add(lin_lags *l, double seconds)
{
    const int bucket = seconds > 1e-6 ? (int)(32 * log2(1e6 * seconds)) : 0;
    l->counts[bucket < LIN_LAGS ? bucket : LIN_LAGS - 1]++;
    l->n++;
    if (seconds > l->most_s) l->most_s = seconds;
}

void lin_lags_merge(lin_lags *l, const lin_lags *others)
{
    for (int i = 0; i < LIN_LAGS; i++) l->counts[i] += others->counts[i];
    l->n += others->n;
    if (others->most_s > l->most_s) l->most_s = others->most_s;
}

double lin_lags_quantile(const lin_lags *l, double q)
{
    long long below = 0;
    for (int i = 0; i < LIN_LAGS - 1; i++) { // the last has no upper end
        below += l->counts[i];
        if (below == 0 || (double)below < q * (double)l->n) continue;
        const double upper = 1e-6 * exp2((i + 1) / 32.0); // no delay of the bucket exceeds it
        return upper < l->most_s ? upper : l->most_s;
    }
    return l->most_s;
}
