// ngram_mix.c - see ngram_mix.h.

#include "train/learn/ngram_mix.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/ngram_file.h"
#include "train/learn/ngram_count.h"

// A model of another tool, or a packed one, sums to 1 only up to rounding: a smaller rest is not a probability.
static const double nothing = 1e-6;

/* ---- the draft of both ----------------------------------------------------------------------------------------------------- */

enum { ABSENT = -1 };

// One of the two models. `number` and `own` translate word numbers, which have the same order in both, because both are sorted.
typedef struct side {
    lin_ngram_draft draft;
    double weight;
    uint32_t *number; // [words of the draft] -> word of the mix
    int32_t *own;     // [words of the mix] -> word of the draft, or ABSENT
} side;

typedef struct mixing {
    side sides[2];
    lin_ngram_draft *out;
} mixing;

// Merges the words, which are in the order of their bytes in each model.
static lin_status merge_words(mixing *m, lin_error *err)
{
    const lin_symbols *a = &m->sides[0].draft.words, *b = &m->sides[1].draft.words;
    const size_t most = (size_t)a->n + (size_t)b->n;
    for (int s = 0; s < 2; s++) {
        side *it = &m->sides[s];
        it->number = lin_alloc((size_t)it->draft.words.n, sizeof *it->number);
        it->own = lin_alloc(most, sizeof *it->own);
        if (!it->number || !it->own) return lin_no_memory(err, "n-grams", most * sizeof *it->own);
        for (size_t i = 0; i < most; i++) it->own[i] = ABSENT;
    }
    lin_status status = lin_symbols_reserve(&m->out->words, (int)most, a->text_used + b->text_used, err);
    for (int i = 0, j = 0; status == LIN_OK && (i < a->n || j < b->n);) {
        const char *x = i < a->n ? lin_symbols_text(a, i) : NULL, *y = j < b->n ? lin_symbols_text(b, j) : NULL;
        const int order = !x ? 1 : !y ? -1 : strcmp(x, y); // as unsigned bytes
        const char *word = order <= 0 ? x : y;
        int number;
        status = lin_symbols_add(&m->out->words, word, strlen(word), &number, err);
        if (status != LIN_OK) break;
        if (order <= 0) m->sides[0].number[i] = (uint32_t)number, m->sides[0].own[number] = i++;
        if (order >= 0) m->sides[1].number[j] = (uint32_t)number, m->sides[1].own[number] = j++;
    }
    return status;
}

static int find_word(const lin_ngram_draft *draft, const char *word)
{
    return lin_symbols_find(&draft->words, word, strlen(word));
}

// N-gram i of this order of a side, as words of the mix.
static void translate(const side *it, int order, size_t i, uint32_t *words)
{
    const uint32_t *from = it->draft.level[order - 1].words + i * (size_t)order;
    for (int k = 0; k < order; k++) words[k] = it->number[from[k]];
}

// Merges the n-grams of an order, without probabilities; fill NULL: only counts them.
static size_t merge_level(const mixing *m, int order, uint32_t *fill)
{
    const size_t width = (size_t)order;
    size_t at[2] = {0, 0}, end[2], n = 0;
    for (int s = 0; s < 2; s++) end[s] = m->sides[s].draft.order >= order ? m->sides[s].draft.level[order - 1].n : 0;
    while (at[0] < end[0] || at[1] < end[1]) {
        uint32_t words[2][LIN_NGRAM_MAX_ORDER];
        for (int s = 0; s < 2; s++)
            if (at[s] < end[s]) translate(&m->sides[s], order, at[s], words[s]);
        const int which = at[0] == end[0] ? 1 : at[1] == end[1] ? -1 : lin_ngram_draft_compare(words[0], words[1], order);
        if (fill) memcpy(fill + n * width, words[which > 0], width * sizeof *fill);
        at[0] += which <= 0;
        at[1] += which >= 0;
        n++;
    }
    return n;
}

// P(the last of the words | the others) by one model.
static double probability_of(const side *it, const uint32_t *words, int n)
{
    uint32_t own[LIN_NGRAM_MAX_ORDER];
    assert(n > 0 && n <= LIN_NGRAM_MAX_ORDER);
    for (int k = 0; k < n; k++) {
        const int32_t word = it->own[words[k]];
        own[k] = word != ABSENT ? (uint32_t)word : it->draft.unknown >= 0 ? (uint32_t)it->draft.unknown : UINT32_MAX;
    }
    if (it->own[words[n - 1]] == ABSENT) return 0;
    const double logp = lin_ngram_draft_logp(&it->draft, own, n);
    return logp > LIN_NGRAM_NEVER ? pow(10, logp) : 0;
}

// The back-off weight of a context of n words, as a factor; 1 if the model lacks the context.
static double weight_of(const side *it, const uint32_t *words, int n)
{
    uint32_t own[LIN_NGRAM_MAX_ORDER];
    if (n >= it->draft.order) return 1;
    for (int k = 0; k < n; k++) {
        if (it->own[words[k]] == ABSENT) return 1;
        own[k] = (uint32_t)it->own[words[k]];
    }
    const ptrdiff_t at = lin_ngram_draft_find(&it->draft, own, n);
    return at < 0 ? 1 : pow(10, it->draft.level[n - 1].backoff[at]);
}

static void set_probabilities(mixing *m, int order)
{
    lin_ngram_draft_level *level = &m->out->level[order - 1];
    for (size_t i = 0; i < level->n; i++) {
        double p = 0;
        for (int s = 0; s < 2; s++) {
            const side *it = &m->sides[s];
            if (it->weight > 0) p += it->weight * probability_of(it, level->words + i * (size_t)order, order);
        }
        level->logp[i] = p > 0 ? fmin(log10(p), 0) : LIN_NGRAM_NEVER;
    }
}

// Computes the back-off weights of this order from the probability that its n-grams leave; shorter contexts are done.
static void set_weights(mixing *m, int order)
{
    const lin_ngram_draft *out = m->out;
    const lin_ngram_draft_level *level = &out->level[order - 1], *next = &out->level[order];
    for (size_t h = 0; h < level->n; h++) {
        const uint32_t *context = level->words + h * (size_t)order;
        double left = 1, other = 1;
        for (size_t i = level->child[h]; i < level->child[h + 1]; i++) {
            left -= pow(10, next->logp[i]);
            other -= pow(10, lin_ngram_draft_logp(out, next->words + i * (size_t)(order + 1) + 1, order));
        }
        if (level->child[h] == level->child[h + 1] || other < nothing) {
            level->backoff[h] = 0; // nothing is removed from the shorter context, or nothing is left there
        } else if (left < nothing) {
            double weight = 0;
            for (int s = 0; s < 2; s++) weight += m->sides[s].weight * weight_of(&m->sides[s], context, order);
            level->backoff[h] = log10(fmax(weight, nothing));
        } else {
            level->backoff[h] = log10(left / other);
        }
    }
}

static lin_status mix(mixing *m, lin_error *err)
{
    lin_ngram_draft *out = m->out;
    const char *unknown[2]; // what each model calls unknown words; NULL: it has no name for them
    for (int s = 0; s < 2; s++) {
        const lin_ngram_draft *draft = &m->sides[s].draft;
        unknown[s] = draft->unknown >= 0 ? lin_symbols_text(&draft->words, draft->unknown) : NULL;
        if (draft->order > out->order) out->order = draft->order;
    }
    if (unknown[0] && unknown[1] && strcmp(unknown[0], unknown[1]) != 0)
        return lin_fail(err, LIN_MISMATCH, "one model calls unknown words <unk> and the other <UNK>; rename it in its ARPA text");
    lin_status status = merge_words(m, err);
    for (int k = 1; status == LIN_OK && k <= out->order; k++) {
        lin_ngram_draft_level *level = &out->level[k - 1];
        const size_t n = merge_level(m, k, NULL);
        if (n > UINT32_MAX / 2) return lin_fail(err, LIN_INVALID, "the models have too many %d-grams together: %zu", k, n);
        status = lin_ngram_draft_level_create(level, k, n, k < out->order, err);
        if (status == LIN_OK) merge_level(m, k, level->words);
    }
    if (status == LIN_OK) status = lin_ngram_draft_link(out, err);
    if (status != LIN_OK) return status;
    if (unknown[0] || unknown[1]) out->unknown = find_word(out, unknown[0] ? unknown[0] : unknown[1]);
    out->begin = find_word(out, "<s>");
    out->end = find_word(out, "</s>");
    for (int k = 1; k <= out->order; k++) set_probabilities(m, k);
    for (int k = 1; k < out->order; k++) set_weights(m, k);
    return LIN_OK;
}

lin_status lin_ngram_mix(const lin_ngram *a, const lin_ngram *b, double weight, lin_ngram_draft *draft, lin_error *err)
{
    mixing m = {.sides = {{.weight = weight}, {.weight = 1 - weight}}, .out = draft};
    *draft = (lin_ngram_draft){.unknown = ABSENT, .begin = ABSENT, .end = ABSENT};
    if (!(weight >= 0 && weight <= 1)) return lin_fail(err, LIN_INVALID, "a weight of %g is not from 0 to 1", weight);
    lin_status status = lin_ngram_draft_of(a, &m.sides[0].draft, err);
    if (status == LIN_OK) status = lin_ngram_draft_of(b, &m.sides[1].draft, err);
    if (status == LIN_OK) status = mix(&m, err);
    for (int s = 0; s < 2; s++) {
        lin_ngram_draft_free(&m.sides[s].draft);
        lin_free(m.sides[s].number);
        lin_free(m.sides[s].own);
    }
    if (status != LIN_OK) lin_ngram_draft_free(draft);
    return status;
}

/* ---- the weights ----------------------------------------------------------------------------------------------------------- */

static int has_word(const lin_ngram *lm, const char *word, size_t n)
{
    const int index = lin_ngram_find(lm, word, n);
    return index >= 0 && index != lm->unknown;
}

static double score(const lin_ngram *lm, lin_ngram_state *state, const char *word, size_t n, int known)
{
    const int index = known ? lin_ngram_find(lm, word, n) : LIN_NGRAM_UNKNOWN;
    const double logp = (double)lin_ngram_score(lm, *state, index, state);
    return known ? exp(logp) : 0;
}

static lin_status add(lin_ngram_fit *fit, double a, double b, lin_error *err)
{
    if (!(a > 0) && !(b > 0)) return LIN_OK; // impossible in both
    LIN_TRY(lin_grow(&fit->p, &fit->capacity, fit->n + 2, sizeof *fit->p, "the probabilities of a text", err));
    fit->p[fit->n++] = a;
    fit->p[fit->n++] = b;
    return LIN_OK;
}

lin_status lin_ngram_fit_line(lin_ngram_fit *fit, const char *line, size_t n, lin_error *err)
{
    lin_ngram_state a = lin_ngram_begin(fit->a), b = lin_ngram_begin(fit->b);
    const char *at = line, *word;
    size_t n_word;
    lin_status status = lin_ngram_check_line(line, n, err);
    if (status != LIN_OK) return status;
    fit->sentences++;
    while (status == LIN_OK && lin_field_next(&at, line + n, &word, &n_word)) {
        const int in_a = has_word(fit->a, word, n_word), in_b = has_word(fit->b, word, n_word);
        const double p_a = score(fit->a, &a, word, n_word, in_a), p_b = score(fit->b, &b, word, n_word, in_b);
        fit->words += in_a || in_b;
        fit->unknown += !in_a && !in_b;
        fit->only_a += in_a && !in_b;
        fit->only_b += in_b && !in_a;
        status = add(fit, p_a, p_b, err);
    }
    if (status == LIN_OK && has_word(fit->a, "</s>", 4) && has_word(fit->b, "</s>", 4))
        status = add(fit, exp((double)lin_ngram_end(fit->a, a)), exp((double)lin_ngram_end(fit->b, b)), err);
    return status;
}

double lin_ngram_fit_weight(const lin_ngram_fit *fit)
{
    enum { STEPS = 1000 };
    double weight = 0.5;
    for (int step = 0; step < STEPS && fit->n; step++) {
        double sum = 0;
        for (size_t i = 0; i < fit->n; i += 2) {
            const double a = weight * fit->p[i], both = a + (1 - weight) * fit->p[i + 1];
            if (both > 0) sum += a / both;
        }
        const double next = sum / (double)(fit->n / 2);
        const int settled = fabs(next - weight) < 1e-9;
        weight = next;
        if (settled) break;
    }
    return weight;
}

double lin_ngram_fit_perplexity(const lin_ngram_fit *fit, double weight)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < fit->n; i += 2) {
        if (!(fit->p[i] > 0) || !(fit->p[i + 1] > 0)) continue;
        sum += log(weight * fit->p[i] + (1 - weight) * fit->p[i + 1]);
        n++;
    }
    return n ? exp(-sum / (double)n) : (double)NAN;
}

void lin_ngram_fit_free(lin_ngram_fit *fit)
{
    lin_free(fit->p);
    *fit = (lin_ngram_fit){.a = fit->a, .b = fit->b};
}
