#include "decoder/bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/memory.h"

double lin_bootstrap_quotient(long long errors, long long tokens)
{
    if (tokens) return (double)errors / (double)tokens;
    return errors ? 1 : 0;
}

static lin_status check(int n, const lin_bootstrap_options *o, lin_error *err)
{
    if (n < 1) return lin_fail(err, LIN_INVALID, "there is nothing to draw from");
    if (o->resamples < 1 || o->resamples > LIN_BOOTSTRAP_MAX) {
        return lin_fail(err, LIN_INVALID, "resamples must be 1 to %d, not %d", LIN_BOOTSTRAP_MAX, o->resamples);
    }
    if (!(o->level > 0 && o->level < 1)) return lin_fail(err, LIN_INVALID, "the level must lie between 0 and 1, not %g", o->level);
    return LIN_OK;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

// Between the two nearest of the sorted values, as numpy.quantile does by default.
static double quantile(const double *sorted, int n, double p)
{
    double at = p * (n - 1);
    int below = (int)floor(at);
    if (below >= n - 1) return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static lin_interval interval_of(double *values, int n_units, const lin_bootstrap_options *o)
{
    qsort(values, (size_t)o->resamples, sizeof *values, by_value);
    return (lin_interval){.low = quantile(values, o->resamples, (1 - o->level) / 2),
                          .high = quantile(values, o->resamples, (1 + o->level) / 2),
                          .units = n_units};
}

lin_status lin_bootstrap_rate(const lin_bootstrap_unit *units, int n, const lin_bootstrap_options *o, lin_interval *interval,
                              lin_error *err)
{
    lin_status status = check(n, o, err);
    if (status) return status;
    double *rates = lin_alloc((size_t)o->resamples, sizeof *rates);
    if (!rates) return lin_no_memory(err, "a bootstrap", (size_t)o->resamples * sizeof *rates);
    uint64_t drawn = 0;
    for (int b = 0; b < o->resamples; b++) {
        long long errors = 0, tokens = 0;
        for (int i = 0; i < n; i++) {
            const lin_bootstrap_unit *u = &units[o->random(o->seed, drawn++, (uint32_t)n)];
            errors += u->errors;
            tokens += u->tokens;
        }
        rates[b] = lin_bootstrap_quotient(errors, tokens);
    }
    *interval = interval_of(rates, n, o);
    lin_free(rates);
    return LIN_OK;
}

lin_status lin_bootstrap_difference(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n, const lin_bootstrap_options *o,
                                    lin_difference *difference, lin_error *err)
{
    lin_status status = check(n, o, err);
    if (status) return status;
    double *differences = lin_alloc((size_t)o->resamples, sizeof *differences);
    if (!differences) return lin_no_memory(err, "a bootstrap", (size_t)o->resamples * sizeof *differences);
    uint64_t drawn = 0;
    int better = 0, equal = 0;
    for (int s = 0; s < o->resamples; s++) {
        lin_bootstrap_unit x = {0, 0}, y = {0, 0};
        for (int i = 0; i < n; i++) {
            uint32_t k = o->random(o->seed, drawn++, (uint32_t)n);
            x.errors += a[k].errors;
            x.tokens += a[k].tokens;
            y.errors += b[k].errors;
            y.tokens += b[k].tokens;
        }
        differences[s] = lin_bootstrap_quotient(x.errors, x.tokens) - lin_bootstrap_quotient(y.errors, y.tokens);
        better += differences[s] < 0;
        equal += differences[s] == 0;
    }
    *difference = (lin_difference){.interval = interval_of(differences, n, o),
                                   .improvement = (double)better / o->resamples,
                                   .equal = (double)equal / o->resamples};
    lin_free(differences);
    return LIN_OK;
}
