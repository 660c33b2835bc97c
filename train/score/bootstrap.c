// bootstrap.c - drawing utterances, equal ones together, and quantiles of the rates; see bootstrap.h.

#include "train/score/bootstrap.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

double lin_bootstrap_quotient(long long errors, long long tokens)
{
    return tokens ? (double)errors / (double)tokens : (double)NAN;
}

static lin_status check(int n, const lin_bootstrap_options *o, lin_error *err)
{
    if (n < 1) return lin_fail(err, LIN_INVALID, "there is nothing to draw from");
    if (o->resamples < 1 || o->resamples > LIN_BOOTSTRAP_MAX)
        return lin_fail(err, LIN_INVALID, "resamples must be 1 to %d, not %d", LIN_BOOTSTRAP_MAX, o->resamples);
    return LIN_OK;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

// Interpolates between the two nearest sorted values, as numpy.quantile does by default.
static double quantile(const double *sorted, int n, double p)
{
    assert(n >= 1 && p >= 0 && p <= 1);
    double at = p * (n - 1);
    int below = (int)floor(at);
    if (below >= n - 1) return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static lin_bootstrap_interval interval_of(double *values, int n, int n_units)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (lin_bootstrap_interval){.low = quantile(values, n, 0.025), .high = quantile(values, n, 0.975), .units = n_units};
}

/* ---- plain: n draws -------------------------------------------------------------------------------------------------------- */

// Sums of one resample, for one system or two.
typedef struct sums {
    lin_bootstrap_unit a, b;
} sums;

static sums draw_plainly(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n, const lin_bootstrap_options *o,
                         uint64_t *drawn)
{
    sums s = {{0, 0}, {0, 0}};
    for (int i = 0; i < n; i++) {
        const uint32_t k = o->random(o->seed, (*drawn)++, (uint32_t)n);
        s.a.errors += a[k].errors;
        s.a.tokens += a[k].tokens;
        s.b.errors += b ? b[k].errors : 0;
        s.b.tokens += b ? b[k].tokens : 0;
    }
    return s;
}

/* ---- grouped: units with the same counts are drawn together ---------------------------------------------------------------- */
// The numbers of G kinds of units among n draws are multinomial: G binomial draws, each from the draws that are left.

typedef struct group {
    lin_bootstrap_unit a, b;
    int n;
} group;

enum { GROUPED_LEAST = 1000, GROUPED_COST = 8 }; // units; time of a binomial draw, in plain draws

static int by_counts(const void *x, const void *y)
{
    const group *p = x, *q = y;
    if (p->a.errors != q->a.errors) return p->a.errors < q->a.errors ? -1 : 1;
    if (p->a.tokens != q->a.tokens) return p->a.tokens < q->a.tokens ? -1 : 1;
    if (p->b.errors != q->b.errors) return p->b.errors < q->b.errors ? -1 : 1;
    return p->b.tokens < q->b.tokens ? -1 : p->b.tokens > q->b.tokens;
}

static int by_number(const void *x, const void *y)
{
    const group *p = x, *q = y;
    return p->n != q->n ? (p->n > q->n ? -1 : 1) : by_counts(x, y);
}

// Groups the units, the largest group first, so that few draws are left for the others. NULL: too many groups, or too few units.
static lin_status make_groups(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n, group **groups, int *n_groups,
                              lin_error *err)
{
    const lin_bootstrap_unit none = {0, 0};
    *groups = NULL;
    *n_groups = 0;
    if (n < GROUPED_LEAST) return LIN_OK;
    group *g = lin_alloc((size_t)n, sizeof *g);
    if (!g) return lin_no_memory(err, "a bootstrap", (size_t)n * sizeof *g);
    for (int i = 0; i < n; i++) g[i] = (group){a[i], b ? b[i] : none, 1};
    qsort(g, (size_t)n, sizeof *g, by_counts);
    int used = 0;
    for (int i = 1; i < n; i++) {
        if (by_counts(&g[used], &g[i])) g[++used] = g[i];
        else g[used].n++;
    }
    used++;
    if (used > n / GROUPED_COST) {
        lin_free(g);
        return LIN_OK;
    }
    qsort(g, (size_t)used, sizeof *g, by_number);
    *groups = g;
    *n_groups = used;
    return LIN_OK;
}

// In [0, 1), 53 bits.
static double uniform(const lin_bootstrap_options *o, uint64_t *drawn)
{
    const double high = o->random(o->seed, (*drawn)++, UINT32_C(1) << 26),
                 low = o->random(o->seed, (*drawn)++, UINT32_C(1) << 27);
    return (high * (1 << 27) + low) * 0x1p-53;
}

// log(k!) minus Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
static double stirling_rest(double k)
{
    static const double small[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707,  0.0118967099458917,  0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    if (k < 10) return small[(int)k];
    const double r = 1 / (k + 1);
    return (1.0 / 12 - (1.0 / 360 - r * r / 1260) * r * r) * r;
}

// Hormann 1993, "The generation of binomial random variates", algorithm BTRS: exact rejection, for n p of 10 or more, p <= 1/2.
static int large_binomial(int n, double p, const lin_bootstrap_options *o, uint64_t *drawn)
{
    const double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double centre = n * p + 0.5, accepted = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
    const double mode = floor((n + 1) * p);
    for (;;) {
        const double u = uniform(o, drawn) - 0.5, v = uniform(o, drawn), us = 0.5 - fabs(u);
        if (us <= 0) continue;
        const double k = floor((2 * a / us + b) * u + centre);
        if (us >= 0.07 && v <= accepted) return (int)k;
        if (k < 0 || k > n) continue;
        const double bound = (mode + 0.5) * log((mode + 1) / (r * (n - mode + 1))) + (n + 1) * log((n - mode + 1) / (n - k + 1)) +
                             (k + 0.5) * log(r * (n - k + 1) / (k + 1)) + stirling_rest(mode) + stirling_rest(n - mode) -
                             stirling_rest(k) - stirling_rest(n - k);
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return (int)k;
    }
}

// By inversion: k grows until the distribution function passes the drawn number. n p < 10.
static int small_binomial(int n, double p, const lin_bootstrap_options *o, uint64_t *drawn)
{
    const double r = p / (1 - p);
    double u = uniform(o, drawn), q = exp(n * log1p(-p));
    int k = 0;
    for (; k < n && u >= q; k++) {
        u -= q;
        q *= r * (n - k) / (k + 1);
    }
    return k;
}

static int binomial(int n, double p, const lin_bootstrap_options *o, uint64_t *drawn)
{
    if (p > 0.5) return n - binomial(n, 1 - p, o, drawn);
    return n * p < 10 ? small_binomial(n, p, o, drawn) : large_binomial(n, p, o, drawn);
}

static sums draw_groups(const group *groups, int n_groups, int n, const lin_bootstrap_options *o, uint64_t *drawn)
{
    sums s = {{0, 0}, {0, 0}};
    int left = n, units = n; // draws, and units of the groups to come
    for (int g = 0; g < n_groups && left; g++) {
        const group *is = &groups[g];
        const int k = is->n == units ? left : binomial(left, (double)is->n / units, o, drawn);
        s.a.errors += k * is->a.errors;
        s.a.tokens += k * is->a.tokens;
        s.b.errors += k * is->b.errors;
        s.b.tokens += k * is->b.tokens;
        left -= k;
        units -= is->n;
    }
    return s;
}

/* ---- rates and differences ------------------------------------------------------------------------------------------------- */

static int have_tokens(const lin_bootstrap_unit *units, int n)
{
    for (int i = 0; i < n; i++)
        if (units[i].tokens) return 1;
    return 0;
}

// b may be NULL.
static lin_status resample(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n, const lin_bootstrap_options *o,
                           lin_bootstrap_interval *interval, int *better, int *equal, lin_error *err)
{
    group *groups = NULL;
    int n_groups;
    double *values;
    uint64_t drawn = 0;
    *interval = (lin_bootstrap_interval){0};
    LIN_TRY(check(n, o, err));
    if (!have_tokens(a, n) || (b && !have_tokens(b, n))) return LIN_OK;
    lin_status status = make_groups(a, b, n, &groups, &n_groups, err);
    if (status != LIN_OK) return status;
    values = lin_alloc((size_t)o->resamples, sizeof *values);
    for (int i = 0; values && i < o->resamples; i++) {
        sums s;
        do s = groups ? draw_groups(groups, n_groups, n, o, &drawn) : draw_plainly(a, b, n, o, &drawn);
        while (!s.a.tokens || (b && !s.b.tokens)); // it has no rate; more than a third of all resamples have one
        values[i] = lin_bootstrap_quotient(s.a.errors, s.a.tokens) - (b ? lin_bootstrap_quotient(s.b.errors, s.b.tokens) : 0);
        *better += values[i] < 0;
        *equal += values[i] == 0;
    }
    if (values) *interval = interval_of(values, o->resamples, n);
    else status = lin_no_memory(err, "a bootstrap", (size_t)o->resamples * sizeof *values);
    lin_free(values);
    lin_free(groups);
    return status;
}

lin_status lin_bootstrap_rate(const lin_bootstrap_unit *units, int n, const lin_bootstrap_options *o,
                              lin_bootstrap_interval *interval, lin_error *err)
{
    int better = 0, equal = 0;
    return resample(units, NULL, n, o, interval, &better, &equal, err);
}

lin_status lin_bootstrap_difference(const lin_bootstrap_unit *a, const lin_bootstrap_unit *b, int n,
                                    const lin_bootstrap_options *o, lin_difference *difference, lin_error *err)
{
    int better = 0, equal = 0;
    lin_bootstrap_interval interval;
    LIN_TRY(resample(a, b, n, o, &interval, &better, &equal, err));
    *difference = (lin_difference){.interval = interval,
                                   .improvement = lin_bootstrap_quotient(better, interval.units ? o->resamples : 0),
                                   .equal = lin_bootstrap_quotient(equal, interval.units ? o->resamples : 0)};
    return LIN_OK;
}
