// ngram_prune.c - entropy pruning; see ngram_prune.h.

#include "train/learn/ngram_prune.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

static const double LN10 = 2.302585092994045684;

// A value below this is the rounding error of 1 - 1, not a probability.
static const double nothing = 1e-9;

// Additional values for each n-gram of an order.
typedef struct judged {
    uint8_t *kept;
    double *logp_whole; // log10 P of all its words, used as a context
    double *left;       // as a context: the probability that its n-grams leave to back-off
} judged;

typedef struct pruning {
    lin_ngram_draft *draft;
    double threshold;
    judged level[LIN_NGRAM_MAX_ORDER];
} pruning;

static const uint32_t *words_at(const lin_ngram_draft *draft, int order, size_t i)
{
    return draft->level[order - 1].words + i * (size_t)order;
}

// P(w | h') of an n-gram of this order.
static double backed_off(const lin_ngram_draft *draft, int order, size_t i)
{
    return pow(10, lin_ngram_draft_logp(draft, words_at(draft, order, i) + 1, order - 1));
}

/* ---- divergence ------------------------------------------------------------------------------------------------------------ */

static lin_status create_judged(pruning *p, lin_error *err)
{
    for (int k = 0; k < p->draft->order; k++) {
        size_t n = p->draft->level[k].n;
        judged *j = &p->level[k];
        j->kept = lin_alloc(n, sizeof *j->kept);
        j->logp_whole = lin_alloc(n, sizeof *j->logp_whole);
        j->left = lin_calloc(n, sizeof *j->left);
        if (!j->kept || !j->logp_whole || !j->left) return lin_no_memory(err, "pruning", n * 17);
        memset(j->kept, 1, n);
    }
    return LIN_OK;
}

// <s> is not an event; its probability is taken to be that of </s>.
static void find_contexts(pruning *p)
{
    const lin_ngram_draft *d = p->draft;
    for (size_t i = 0; i < d->level[0].n; i++) {
        size_t event = (int)i == d->begin && d->end >= 0 ? (size_t)d->end : i;
        p->level[0].logp_whole[i] = d->level[0].logp[event];
    }
    for (int k = 1; k < d->order; k++) {
        const lin_ngram_draft_level *lower = &d->level[k - 1];
        for (size_t h = 0; h < lower->n; h++) {
            for (size_t i = lower->child[h]; i < lower->child[h + 1]; i++) {
                p->level[k].logp_whole[i] = p->level[k - 1].logp_whole[h] + d->level[k].logp[i];
            }
        }
    }
}

static int has_children(const pruning *p, int order, size_t i)
{
    if (order == p->draft->order) return 0;
    const size_t *child = p->draft->level[order - 1].child;
    return memchr(p->level[order].kept + child[i], 1, child[i + 1] - child[i]) != NULL;
}

// Stolcke 1998, section 3. q = P(w | h'). left and other: the probability that the n-grams of the context leave of P(. | h) and
// of P(. | h').
static double rise(double whole, double logp, double q, double left, double other)
{
    double prob = pow(10, logp), weight = log((left + prob) / (other + q));
    double sum = prob * (log(q) + weight - logp * LN10);
    if (left > nothing && other > nothing) sum += left * (weight - log(left / other));
    return expm1(-pow(10, whole) * sum);
}

// All n-grams of one context, first .. end - 1 of this order. q has space for them.
static void judge_context(pruning *p, int order, size_t context, size_t first, size_t end, double *q)
{
    const lin_ngram_draft *d = p->draft;
    judged *level = &p->level[order - 1], *contexts = &p->level[order - 2];
    double other = 1;
    for (size_t i = first; i < end; i++) other -= q[i - first] = backed_off(d, order, i);
    if (other < 0) other = 0;
    double left = pow(10, d->level[order - 2].backoff[context]) * other, freed = 0;
    for (size_t i = first; i < end; i++) {
        double logp = d->level[order - 1].logp[i];
        if (has_children(p, order, i) || !(q[i - first] > 0)) continue;
        if (rise(contexts->logp_whole[context], logp, q[i - first], left, other) >= p->threshold) continue;
        level->kept[i] = 0;
        freed += pow(10, logp);
    }
    contexts->left[context] = left + freed;
}

static lin_status judge(pruning *p, lin_error *err)
{
    size_t most = 0;
    for (int k = 1; k < p->draft->order; k++) {
        const lin_ngram_draft_level *lower = &p->draft->level[k - 1];
        for (size_t h = 0; h < lower->n; h++) {
            if (lower->child[h + 1] - lower->child[h] > most) most = lower->child[h + 1] - lower->child[h];
        }
    }
    double *q = lin_alloc(most, sizeof *q);
    if (!q) return lin_no_memory(err, "pruning", most * sizeof *q);
    // The longest order first: it is then known whether an n-gram is a context.
    for (int k = p->draft->order; k >= 2; k--) {
        const lin_ngram_draft_level *lower = &p->draft->level[k - 2];
        for (size_t h = 0; h < lower->n; h++) {
            if (lower->child[h] < lower->child[h + 1]) judge_context(p, k, h, lower->child[h], lower->child[h + 1], q);
        }
    }
    lin_free(q);
    return LIN_OK;
}

/* ---- removal --------------------------------------------------------------------------------------------------------------- */

// Moves the n-grams that are kept to the front.
static void compact(pruning *p, int order)
{
    lin_ngram_draft_level *level = &p->draft->level[order - 1];
    judged *j = &p->level[order - 1];
    size_t n = 0, width = (size_t)order;
    for (size_t i = 0; i < level->n; i++) {
        if (!j->kept[i]) continue;
        memmove(level->words + n * width, level->words + i * width, width * sizeof *level->words);
        level->logp[n] = level->logp[i];
        if (level->backoff) level->backoff[n] = level->backoff[i];
        j->left[n++] = j->left[i];
    }
    level->n = n;
}

// Weights of the contexts of this order; those of shorter ones are done.
static void weigh(pruning *p, int order)
{
    lin_ngram_draft_level *level = &p->draft->level[order - 1];
    for (size_t h = 0; h < level->n; h++) {
        double other = 1, left = p->level[order - 1].left[h];
        if (level->child[h] == level->child[h + 1]) {
            if (left > 0) level->backoff[h] = 0; // it had n-grams
            continue;
        }
        for (size_t i = level->child[h]; i < level->child[h + 1]; i++) other -= backed_off(p->draft, order + 1, i);
        if (left > nothing && other > nothing) level->backoff[h] = log10(left / other);
    }
}

static void rebuild(pruning *p)
{
    lin_ngram_draft *d = p->draft;
    for (int k = 2; k <= d->order; k++) compact(p, k);
    while (d->order > 1 && !d->level[d->order - 1].n) {
        lin_ngram_draft_level_free(&d->level[--d->order]);
        lin_ngram_draft_level *highest = &d->level[d->order - 1];
        lin_free(highest->backoff);
        lin_free(highest->child);
        highest->backoff = NULL;
        highest->child = NULL;
    }
    lin_ngram_draft_link(d, NULL); // cannot fail: every kept n-gram has its context, and the arrays exist
    for (int k = 1; k < d->order; k++) weigh(p, k);
}

lin_status lin_ngram_prune(lin_ngram_draft *draft, double threshold, lin_error *err)
{
    if (!(threshold >= 0)) return lin_fail(err, LIN_INVALID, "a threshold of %g is not 0 or more", threshold);
    pruning p = {.draft = draft, .threshold = threshold};
    int order = draft->order;
    lin_status status = create_judged(&p, err);
    if (status == LIN_OK) {
        find_contexts(&p);
        status = judge(&p, err);
    }
    if (status == LIN_OK) rebuild(&p);
    for (int k = 0; k < order; k++) {
        lin_free(p.level[k].kept);
        lin_free(p.level[k].logp_whole);
        lin_free(p.level[k].left);
    }
    return status;
}
