// kneser_ney.c - modified Kneser-Ney smoothing, interpolated; see kneser_ney.h.

#include "train/learn/kneser_ney.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

// Chen & Goodman 1998, eq. 26, from the counts of all n-grams, including those too rare for the model.
static void find_discounts(const lin_ngram_counted *level, lin_kneser_ney_note *note)
{
    static const double usual[] = {0.5, 1, 1.5};
    *note = (lin_kneser_ney_note){0};
    for (size_t i = 0; i < level->n; i++) {
        if (level->count[i] >= 1 && level->count[i] <= 4) note->counts[level->count[i] - 1]++;
    }
    const uint64_t *n = note->counts;
    double y = n[0] ? (double)n[0] / ((double)n[0] + 2 * (double)n[1]) : 0;
    for (int i = 0; i < 3; i++) {
        double d = n[i] ? i + 1 - (i + 2) * y * (double)n[i + 1] / (double)n[i] : 0;
        if (!(d > 0 && d <= i + 1)) note->fallback = 1;
        note->discounts[i] = d;
    }
    if (note->fallback) memcpy(note->discounts, usual, sizeof note->discounts);
}

static double discount(const lin_kneser_ney_note *note, uint32_t count)
{
    return count ? note->discounts[count < 3 ? count - 1 : 2] : 0;
}

// The interpolation weight g(h): the probability that discounting takes from n-grams first .. end - 1, all those of one context.
// *total: a(h .).
static double given_up(const lin_ngram_counted *level, const lin_kneser_ney_note *note, size_t first, size_t end, double *total)
{
    double sum = 0;
    uint64_t all = 0;
    for (size_t i = first; i < end; i++) {
        all += level->count[i];
        sum += level->kept[i] ? discount(note, level->count[i]) : level->count[i];
    }
    *total = (double)all;
    return sum / *total;
}

static double discounted(const lin_ngram_counted *level, const lin_kneser_ney_note *note, size_t i, double total)
{
    return level->kept[i] ? (level->count[i] - discount(note, level->count[i])) / total : 0;
}

// Probabilities of all words, including vocabulary words that are not in the text. <s> is not an event: its probability is 0.
static void unigrams(const lin_ngram_counts *counts, const lin_kneser_ney_note *note, double *p)
{
    const lin_ngram_counted *level = &counts->level[0];
    double total, weight = given_up(level, note, 0, level->n, &total), uniform = 1 / (double)(level->n - 1);
    for (size_t i = 0; i < level->n; i++) {
        p[i] = (int)i == counts->begin ? 0 : discounted(level, note, i, total) + weight * uniform;
    }
}

// Computes probabilities p of an order above 1 from those of the order below, and fills the weights g(h) of the order below. The
// contexts of the n-grams are n-grams of the order below, in the same order.
static void higher(const lin_ngram_counts *counts, int order, const lin_kneser_ney_note *note, const double *p_lower, double *p,
                   double *weight)
{
    const lin_ngram_counted *lower = &counts->level[order - 2], *level = &counts->level[order - 1];
    size_t at = 0, n_context = (size_t)(order - 1);
    for (size_t h = 0; h < lower->n; h++) {
        const uint32_t *context = lower->words + h * n_context;
        size_t first = at;
        double total;
        while (at < level->n && !memcmp(level->words + at * (n_context + 1), context, n_context * sizeof *context)) at++;
        weight[h] = 1;
        if (at == first) continue;
        weight[h] = given_up(level, note, first, at, &total);
        for (size_t i = first; i < at; i++) p[i] = discounted(level, note, i, total) + weight[h] * p_lower[level->suffix[i]];
    }
}

// Makes the entries of the model from the n-grams that are kept. p and weight (NULL at the highest order) are linear.
static lin_status fill_level(const lin_ngram_counted *counted, int order, const double *p, const double *weight,
                             lin_ngram_draft_level *level, lin_error *err)
{
    size_t n = 0, width = (size_t)order;
    for (size_t i = 0; i < counted->n; i++) n += counted->kept[i];
    LIN_TRY(lin_ngram_draft_level_create(level, order, n, weight != NULL, err));
    n = 0;
    for (size_t i = 0; i < counted->n; i++) {
        if (!counted->kept[i]) continue;
        memcpy(level->words + n * width, counted->words + i * width, width * sizeof *level->words);
        level->logp[n] = p[i] > 0 ? log10(p[i]) : LIN_NGRAM_NEVER;
        if (weight) level->backoff[n] = log10(weight[i]);
        n++;
    }
    return LIN_OK;
}

// The highest order with an entry.
static int order_kept(const lin_ngram_counts *counts)
{
    int order = counts->order;
    while (order > 1 && !memchr(counts->level[order - 1].kept, 1, counts->level[order - 1].n)) order--;
    return order;
}

// p of order k, and the weights of the order below; released by the caller, also on failure.
static lin_status one_order(const lin_ngram_counts *counts, int k, const lin_kneser_ney_note *note, const double *p_lower,
                            double **p, double **weight, lin_error *err)
{
    size_t n = counts->level[k - 1].n, n_lower = k > 1 ? counts->level[k - 2].n : 0;
    *p = lin_alloc(n, sizeof **p);
    *weight = lin_alloc(n_lower, sizeof **weight);
    if (!*p || !*weight) return lin_no_memory(err, "probabilities", (n + n_lower) * sizeof **p);
    if (k == 1) {
        unigrams(counts, note, *p);
    } else {
        higher(counts, k, note, p_lower, *p, *weight);
    }
    return LIN_OK;
}

static lin_status all_orders(const lin_ngram_counts *counts, lin_ngram_draft *draft, lin_kneser_ney_note *notes, lin_error *err)
{
    double *p_lower = NULL, *p = NULL, *weight = NULL;
    lin_status status = LIN_OK;
    for (int k = 1; status == LIN_OK && k <= draft->order; k++) {
        find_discounts(&counts->level[k - 1], &notes[k - 1]);
        status = one_order(counts, k, &notes[k - 1], p_lower, &p, &weight, err);
        if (status == LIN_OK && k > 1) {
            status = fill_level(&counts->level[k - 2], k - 1, p_lower, weight, &draft->level[k - 2], err);
        }
        lin_free(weight);
        lin_free(p_lower);
        p_lower = p;
        p = weight = NULL;
    }
    int last = draft->order;
    if (status == LIN_OK) status = fill_level(&counts->level[last - 1], last, p_lower, NULL, &draft->level[last - 1], err);
    lin_free(p_lower);
    return status;
}

lin_status lin_kneser_ney(lin_ngram_counts *counts, lin_ngram_draft *draft, lin_kneser_ney_note *notes, lin_error *err)
{
    lin_kneser_ney_note unread[LIN_NGRAM_MAX_ORDER];
    if (!notes) notes = unread;
    *draft = (lin_ngram_draft){.unknown = counts->unknown, .begin = counts->begin, .end = counts->end};
    draft->order = order_kept(counts);
    lin_status status = all_orders(counts, draft, notes, err);
    if (status == LIN_OK) status = lin_ngram_draft_link(draft, err);
    if (status != LIN_OK) {
        lin_ngram_draft_free(draft);
        return status;
    }
    draft->words = counts->words;
    counts->words = (lin_symbols){0};
    return LIN_OK;
}
