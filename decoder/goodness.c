// goodness.c - how well each phone of a known text was pronounced; see goodness.h.

#include "decoder/goodness.h"

#include <math.h>
#include <stddef.h>

// The rows that a phone is looked for in.
typedef struct region {
    lin_goodness_row row;
    const void *context;
    int64_t from, to;
    int before, after; // labels right before `from` and at `to`, 0: blank or nothing
} region;

// log P(rows | q), q a phone; *nothing: log P(rows | blanks only). One of two probabilities of a row is always scaled to 1.
static double log_of_phone(const region *r, int q, double *nothing)
{
    double before = 0, within = 0, behind = 0, offset = 0; // probabilities of the rows so far, by where they end
    *nothing = 0;
    for (int64_t t = r->from; t < r->to; t++) {
        const float *row = r->row(r->context, t);
        const double blank = (double)row[0], phone = (double)row[q], most = phone > blank ? phone : blank;
        *nothing += blank;
        if (most == -INFINITY) return -INFINITY;
        const double y_blank = exp(blank - most), y_phone = exp(phone - most);
        if (t == r->from) {
            before = y_blank;
            within = r->before == q ? 0 : y_phone; // it would be one with its neighbour
        } else {
            behind = (behind + within) * y_blank;
            within = (before + within) * y_phone;
            before *= y_blank;
        }
        offset += most;
        const double all = before + within + behind;
        if (all < 1e-100) {
            before *= 1e100;
            within *= 1e100;
            behind *= 1e100;
            offset -= 100 * log(10);
        }
    }
    return log(behind + (r->after == q ? 0 : within)) + offset;
}

// Logarithm of a sum whose terms come one by one: scaled by the largest so far.
typedef struct log_sum {
    double most, sum;
} log_sum;

static void add(log_sum *all, double logp)
{
    if (logp > all->most) {
        all->sum = all->sum * exp(all->most - logp) + 1;
        all->most = logp;
    } else if (logp > -INFINITY) {
        all->sum += exp(logp - all->most);
    } else if (isnan(logp)) {
        all->sum = logp;
    }
}

static lin_goodness judge(const region *r, int V, int label)
{
    double nothing = 0, most = -INFINITY, own = -INFINITY;
    log_sum all = {.most = -INFINITY};
    lin_goodness g = {.heard = label};
    for (int q = 1; q < V; q++) {
        const double logp = log_of_phone(r, q, &nothing);
        add(&all, logp);
        if (q == label) own = logp;
        if (logp > most || (q == label && logp == most)) {
            most = logp;
            g.heard = q;
        }
    }
    add(&all, nothing);
    if (nothing > most) g.heard = 0;
    // Where all have a probability of 0 there is nothing to compare; a NaN goes through.
    const double score = all.most > -INFINITY || isnan(all.sum) ? own - all.most - log(all.sum) : 0;
    g.score = (float)(score > 0 ? 0 : score);
    return g;
}

lin_status lin_goodness_measure(lin_goodness_row row, const void *context, int V, int64_t T, const lin_path *path, int margin,
                                lin_goodness *goodness, lin_error *err)
{
    for (int i = 0; i < path->n_phones; i++) {
        const lin_path_phone *p = &path->phones[i], *last = i ? p - 1 : NULL, *next = i + 1 < path->n_phones ? p + 1 : NULL;
        const int64_t begin = last ? last->end : 0, end = next ? next->start : T;
        if (p->label < 1 || p->label >= V || p->start < begin || p->end <= p->start || p->end > end || end > T) {
            return lin_fail(err, LIN_INVALID,
                            "phone %d of the path (label %d, rows %lld to %lld) does not lie within %d outputs and "
                            "%lld rows, behind the one before it",
                            i, p->label, (long long)p->start, (long long)p->end, V, (long long)T);
        }
        region r = {.row = row, .context = context};
        r.from = p->start - begin > margin ? p->start - margin : begin;
        r.to = end - p->end > margin ? p->end + margin : end;
        if (last && r.from == last->end) r.before = last->label;
        if (next && r.to == next->start) r.after = next->label;
        goodness[i] = judge(&r, V, p->label);
        if (isnan(goodness[i].score)) {
            return lin_fail(err, LIN_NUMERIC, "a NaN in the rows %lld to %lld", (long long)r.from, (long long)r.to - 1);
        }
    }
    return LIN_OK;
}
