// goodness.c - goodness of pronunciation of each phone of a known text; see goodness.h.

#include "align/goodness.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

// The rows of a phone and its neighbours.
typedef struct region {
    const float *logp; // [to, V]
    int V;
    int64_t from, to;
    int before, after; // the neighbours, which begin at `from` and end at `to`; 0: none is near enough
} region;

// log P(rows | before, q, after), q = 0: nothing between the neighbours.
static double log_of_phone(const region *r, int q)
{
    // Probabilities of the rows so far by the last state: the neighbour before, a blank, the phone, a blank, the neighbour after.
    double left = 0, blank = 0, within = 0, blank_behind = 0, right = 0, offset = 0;
    for (int64_t t = r->from; t < r->to; t++) {
        const float *row = r->logp + (size_t)t * (size_t)r->V;
        const double l_blank = (double)row[0], l_phone = (double)row[q];
        const double l_left = (double)row[r->before], l_right = (double)row[r->after];
        const double most = fmax(fmax(l_blank, l_phone), fmax(l_left, l_right));
        if (most == -INFINITY) return -INFINITY;
        // The largest is scaled to 1.
        const double y_blank = exp(l_blank - most), y_phone = q ? exp(l_phone - most) : 0;
        const double y_left = r->before ? exp(l_left - most) : 0, y_right = r->after ? exp(l_right - most) : 0;
        if (t == r->from) {
            left = y_left;
            blank = r->before ? 0 : y_blank;
            within = r->before ? 0 : y_phone;
            right = r->before || q ? 0 : y_right;
        } else {
            // Equal phones need a blank between them.
            const double to_right = q ? (q == r->after ? 0 : within) : (r->before == r->after ? 0 : left) + blank;
            right = (right + blank_behind + to_right) * y_right;
            blank_behind = (blank_behind + within) * y_blank;
            within = (within + blank + (q == r->before ? 0 : left)) * y_phone;
            blank = (blank + left) * y_blank;
            left *= y_left;
        }
        offset += most;
        for (double sum; (sum = left + blank + within + blank_behind + right) > 0 && sum < 1e-100;) {
            left *= 1e100;
            blank *= 1e100;
            within *= 1e100;
            blank_behind *= 1e100;
            right *= 1e100;
            offset -= 100 * log(10);
        }
    }
    const double all = r->after ? right : q ? within + blank_behind : blank + left;
    return log(all) + offset;
}

// Logarithm of a running sum, scaled by its largest term so far.
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

static lin_goodness judge(const region *r, int label)
{
    const int V = r->V;
    assert(r->from >= 0 && r->from < r->to && label > 0 && label < V && r->before < V && r->after < V);
    double most = -INFINITY, own = -INFINITY;
    log_sum all = {.most = -INFINITY};
    lin_goodness g = {.heard = label};
    for (int q = 0; q < V; q++) {
        const double logp = log_of_phone(r, q);
        add(&all, logp);
        if (q == label) own = logp;
        if (logp > most) {
            most = logp;
            g.heard = q;
        }
    }
    // If all have probability 0 there is nothing to compare; a NaN is kept.
    const double score = all.most > -INFINITY || isnan(all.sum) ? own - all.most - log(all.sum) : 0;
    g.score = (float)(score > 0 ? 0 : score);
    return g;
}

lin_status lin_goodness_measure(const float *logp, int V, int64_t T, const lin_path *path, int margin, lin_goodness *goodness,
                                lin_error *err)
{
    assert(margin >= 0);
    for (int i = 0; i < path->n_phones; i++) {
        const lin_path_phone *p = &path->phones[i], *last = i ? p - 1 : NULL, *next = i + 1 < path->n_phones ? p + 1 : NULL;
        const int64_t begin = last ? last->end : 0, end = next ? next->start : T;
        assert(p->start >= begin && p->end > p->start && p->end <= end);
        // A near neighbour may lose some of its rows; one that is not near has no influence.
        const int left = last && p->start - begin <= margin, right = next && end - p->end <= margin;
        const region r = {.logp = logp,
                          .V = V,
                          .from = left ? last->start : p->start - begin > margin ? p->start - margin : begin,
                          .to = right ? next->end : end - p->end > margin ? p->end + margin : end,
                          .before = left ? last->label : 0,
                          .after = right ? next->label : 0};
        goodness[i] = judge(&r, p->label);
        if (isnan(goodness[i].score))
            return lin_fail(err, LIN_NUMERIC, "the rows %lld to %lld have a NaN", (long long)r.from, (long long)r.to - 1);
    }
    return LIN_OK;
}
