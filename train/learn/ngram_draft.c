// ngram_draft.c - a back-off model as sorted arrays, and its entropy pruning; see ngram_draft.h.

#include "train/learn/ngram_draft.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/ngram_file.h"

static const double LN10 = 2.302585092994045684;

// The level is empty again.
static void free_level(lin_ngram_draft_level *level)
{
    lin_free(level->words);
    lin_free(level->logp);
    lin_free(level->backoff);
    lin_free(level->child);
    *level = (lin_ngram_draft_level){0};
}

lin_status lin_ngram_draft_level_create(lin_ngram_draft_level *level, int order, size_t n, int context, lin_error *err)
{
    *level = (lin_ngram_draft_level){.n = n};
    level->words = lin_alloc(n * (size_t)order, sizeof *level->words);
    level->logp = lin_alloc(n, sizeof *level->logp);
    if (context) level->backoff = lin_alloc(n, sizeof *level->backoff);
    if (level->words && level->logp && (level->backoff || !context)) return LIN_OK;
    free_level(level);
    return lin_no_memory(err, "n-grams", n * ((size_t)order * sizeof *level->words + 2 * sizeof *level->logp));
}

int lin_ngram_draft_compare(const uint32_t *a, const uint32_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

// Both orders are sorted in the same way, so the contexts have the order of the lower level's n-grams.
static lin_status link_level(lin_ngram_draft_level *lower, const lin_ngram_draft_level *upper, int order, lin_error *err)
{
    size_t at = 0;
    if (!lower->child) lower->child = lin_alloc(lower->n + 1, sizeof *lower->child);
    if (!lower->child) return lin_no_memory(err, "n-grams", (lower->n + 1) * sizeof *lower->child);
    for (size_t i = 0; i < lower->n; i++) {
        const uint32_t *context = lower->words + i * (size_t)order;
        lower->child[i] = at;
        for (; at < upper->n; at++) {
            const uint32_t *words = upper->words + at * (size_t)(order + 1);
            if (lin_ngram_draft_compare(words, context, order)) break;
            if (at > lower->child[i] && words[order] <= words[-1])
                return lin_fail(err, LIN_FORMAT, "the %d-grams are not sorted, or one appears twice", order + 1);
        }
    }
    lower->child[lower->n] = at;
    if (at < upper->n) return lin_fail(err, LIN_FORMAT, "a %d-gram has no context, or they are not sorted", order + 1);
    return LIN_OK;
}

lin_status lin_ngram_draft_link(lin_ngram_draft *draft, lin_error *err)
{
    for (int k = 1; k < draft->order; k++)
        LIN_TRY(link_level(&draft->level[k - 1], &draft->level[k], k, err));
    return LIN_OK;
}

ptrdiff_t lin_ngram_draft_find(const lin_ngram_draft *draft, const uint32_t *words, int n)
{
    if (n < 1 || n > draft->order || words[0] >= draft->level[0].n) return -1;
    size_t at = words[0];
    for (int k = 1; k < n; k++) {
        const lin_ngram_draft_level *next = &draft->level[k];
        size_t low = draft->level[k - 1].child[at], high = draft->level[k - 1].child[at + 1], end = high;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (next->words[middle * (size_t)(k + 1) + (size_t)k] < words[k]) low = middle + 1;
            else high = middle;
        }
        if (low == end || next->words[low * (size_t)(k + 1) + (size_t)k] != words[k]) return -1;
        at = low;
    }
    return (ptrdiff_t)at;
}

double lin_ngram_draft_logp(const lin_ngram_draft *draft, const uint32_t *words, int n)
{
    double weight = 0;
    if (n > draft->order) words += n - draft->order, n = draft->order;
    for (; n > 0; words++, n--) {
        ptrdiff_t at = lin_ngram_draft_find(draft, words, n);
        if (at >= 0) return weight + draft->level[n - 1].logp[at];
        at = lin_ngram_draft_find(draft, words, n - 1);
        if (at >= 0) weight += draft->level[n - 2].backoff[at];
    }
    return LIN_NGRAM_NEVER; // a word that is not a unigram
}

/* ---- ARPA ------------------------------------------------------------------------------------------------------------------ */

// Seven digits after the point, without trailing zeros; several times as fast as printf.
static void put_number(lin_buffer *out, double value)
{
    char text[40];
    int at = sizeof text, digits = 0;
    long long scaled = llround(fabs(value) * 1e7), left = scaled;
    for (int i = 0; i < 7; i++, left /= 10) {
        if (left % 10 || digits) text[--at] = (char)('0' + left % 10), digits = 1;
    }
    if (digits) text[--at] = '.';
    do text[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0 && scaled) text[--at] = '-';
    lin_buffer_bytes(out, text + at, sizeof text - (size_t)at);
}

// With the fewest digits that read back as the same float; the decimal comma of some locales becomes a point.
static void put_exactly(lin_buffer *out, double value)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        double again;
        const int n = snprintf(text, sizeof text, "%.*g", digits, value);
        char *comma = strchr(text, ',');
        if (comma) *comma = '.';
        if (lin_text_number(text, (size_t)n, &again) && (float)(again * LN10) == (float)(value * LN10)) break;
    }
    lin_buffer_text(out, text);
}

static lin_status put_level(lin_buffer *out, const lin_ngram_draft *draft, int exactly, int order, FILE *file, const char *name,
                            lin_error *err)
{
    const lin_ngram_draft_level *level = &draft->level[order - 1];
    void (*const put)(lin_buffer *, double) = exactly ? put_exactly : put_number;
    lin_buffer_format(out, "\n\\%d-grams:\n", order);
    for (size_t i = 0; i < level->n; i++) {
        put(out, level->logp[i]);
        for (int k = 0; k < order; k++) {
            const lin_symbol *word = &draft->words.items[level->words[i * (size_t)order + (size_t)k]];
            lin_buffer_char(out, k ? ' ' : '\t');
            lin_buffer_bytes(out, draft->words.text + word->offset, word->n);
        }
        // A weight of one may be left out, except for an n-gram that is a context.
        if (level->backoff && (level->backoff[i] != 0 || level->child[i + 1] > level->child[i])) {
            lin_buffer_char(out, '\t');
            put(out, level->backoff[i]);
        }
        lin_buffer_char(out, '\n');
        if (out->n < 1 << 16) continue;
        LIN_TRY(lin_buffer_write(out, file, name, err));
        lin_buffer_clear(out);
    }
    return LIN_OK;
}

lin_status lin_ngram_draft_write_arpa(const lin_ngram_draft *draft, int exactly, FILE *file, const char *name, lin_error *err)
{
    lin_buffer out = {0};
    lin_status status = LIN_OK;
    lin_buffer_text(&out, "\\data\\\n");
    for (int k = 1; k <= draft->order; k++) lin_buffer_format(&out, "ngram %d=%zu\n", k, draft->level[k - 1].n);
    for (int k = 1; k <= draft->order && status == LIN_OK; k++) status = put_level(&out, draft, exactly, k, file, name, err);
    lin_buffer_text(&out, "\n\\end\\\n");
    if (status == LIN_OK) status = lin_buffer_write(&out, file, name, err);
    lin_buffer_free(&out);
    return status;
}

void lin_ngram_draft_free(lin_ngram_draft *draft)
{
    for (int k = 0; k < LIN_NGRAM_MAX_ORDER; k++) free_level(&draft->level[k]);
    lin_symbols_free(&draft->words);
    *draft = (lin_ngram_draft){0};
}

/* ---- from finished models, and back ---------------------------------------------------------------------------------------- */

static lin_status copy_words(const lin_ngram *lm, lin_symbols *words, lin_error *err)
{
    lin_status status = lin_symbols_reserve(words, lin_ngram_words(lm), lm->text_bytes, err);
    for (int i = 0; status == LIN_OK && i < lin_ngram_words(lm); i++) {
        const char *text = lin_ngram_word(lm, i);
        int index;
        status = lin_symbols_add(words, text, strlen(text), &index, err);
        if (status == LIN_OK && index != i) status = lin_fail(err, LIN_FORMAT, "the model is damaged: a word appears twice");
    }
    return status;
}

// Reads the n-grams of the order above `lower`, which has order k: the words of a context are known, only the last word is read.
static lin_status copy_children(const lin_ngram *lm, int k, const lin_ngram_draft_level *lower, lin_ngram_draft_level *level,
                                lin_error *err)
{
    size_t width = (size_t)k, at = 0;
    for (uint32_t j = 0; j < lower->n; j++) {
        lin_ngram_state state;
        uint32_t first, end;
        if (!lin_ngram_is_inner(lm, k, j, &state)) continue;
        lin_ngram_children(lm, k, state, &first, &end);
        if (first != at) break;
        for (; at < end; at++) {
            memcpy(level->words + at * (width + 1), lower->words + j * width, width * sizeof *level->words);
            level->words[at * (width + 1) + width] = lin_ngram_gram_word(lm, k + 1, (uint32_t)at);
        }
    }
    return at == level->n ? LIN_OK : lin_fail(err, LIN_FORMAT, "the model is damaged: %d-grams are in the wrong place", k + 1);
}

static lin_status copy_level(const lin_ngram *lm, int k, lin_ngram_draft *draft, lin_error *err)
{
    lin_ngram_draft_level *level = &draft->level[k - 1];
    LIN_TRY(lin_ngram_draft_level_create(level, k, lm->levels[k].count, k < lm->order, err));
    for (uint32_t i = 0; i < level->n; i++) {
        lin_ngram_state state;
        const double logp = (double)lin_ngram_gram_logp(lm, k, i) / LN10;
        level->logp[i] = fabs(logp - LIN_NGRAM_NEVER) < 1e-4 ? LIN_NGRAM_NEVER : logp; // the model has floats
        if (level->backoff)
            level->backoff[i] = lin_ngram_is_inner(lm, k, i, &state) ? (double)lin_ngram_backoff(lm, k, state) / LN10 : 0;
        if (isfinite(level->logp[i]) && (!level->backoff || isfinite(level->backoff[i]))) continue;
        return lin_fail(err, LIN_FORMAT, "the model is damaged: a probability or weight is not a number");
    }
    if (k > 1) return copy_children(lm, k - 1, &draft->level[k - 2], level, err);
    for (uint32_t i = 0; i < level->n; i++) level->words[i] = i;
    return LIN_OK;
}

lin_status lin_ngram_draft_of(const lin_ngram *lm, lin_ngram_draft *draft, lin_error *err)
{
    *draft = (lin_ngram_draft){
        .order = lm->order, .unknown = lm->unknown, .begin = lin_ngram_find(lm, "<s>", 3), .end = lm->end_word};
    lin_status status = copy_words(lm, &draft->words, err);
    for (int k = 1; status == LIN_OK && k <= lm->order; k++) status = copy_level(lm, k, draft, err);
    if (status == LIN_OK) status = lin_ngram_draft_link(draft, err);
    if (status != LIN_OK) lin_ngram_draft_free(draft);
    return status;
}

static float *natural(const double *log10s, size_t n)
{
    float *values = lin_alloc(n, sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = (float)(log10s[i] * LN10);
    return values;
}

// Copies the n-grams level by level.
static lin_status move_level(lin_ngram_draft_level *level, int k, lin_ngram_table *table, lin_error *err)
{
    if (level->n > LIN_NGRAM_MAX_COUNT) return lin_fail(err, LIN_INVALID, "there are too many %d-grams: %zu", k, level->n);
    table->count = (uint32_t)level->n;
    table->logp = natural(level->logp, level->n);
    if (level->backoff) table->backoff = natural(level->backoff, level->n);
    if (!table->logp || (level->backoff && !table->backoff)) return lin_no_memory(err, "n-grams", level->n * sizeof(float));
    if (k > 1) { // unigram i is word i in both
        table->words = level->words;
        level->words = NULL;
    }
    free_level(level);
    return LIN_OK;
}

lin_status lin_ngram_draft_finish(lin_ngram_draft *draft, const char *name, lin_ngram **lm, lin_error *err)
{
    lin_ngram_tables tables = {.order = draft->order, .words = draft->words, .code_bits = draft->code_bits};
    lin_ngram_fault fault;
    lin_status status = LIN_OK;
    *lm = NULL;
    draft->words = (lin_symbols){0};
    for (int k = 1; status == LIN_OK && k <= draft->order; k++)
        status = move_level(&draft->level[k - 1], k, &tables.tables[k], err);
    lin_ngram_draft_free(draft);
    if (status == LIN_OK) status = lin_ngram_build(&tables, name, lm, &fault, err);
    lin_ngram_tables_free(&tables);
    return status;
}

/* ---- entropy pruning ------------------------------------------------------------------------------------------------------- */

// A value below this is the rounding error of 1 - 1, not a probability.
static const double nothing = 1e-9;

// Values for pruning, of each n-gram of an order.
typedef struct judged {
    uint8_t *kept;
    double *logp_whole; // log10 P of all its words, used as a context
    double *left;       // as a context: the probability left for back-off
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
            for (size_t i = lower->child[h]; i < lower->child[h + 1]; i++)
                p->level[k].logp_whole[i] = p->level[k - 1].logp_whole[h] + d->level[k].logp[i];
        }
    }
}

static int has_children(const pruning *p, int order, size_t i)
{
    if (order == p->draft->order) return 0;
    const size_t *child = p->draft->level[order - 1].child;
    return memchr(p->level[order].kept + child[i], 1, child[i + 1] - child[i]) != NULL;
}

// The rise of the perplexity (Stolcke 1998, section 3). q = P(w | h'). left and other: 1 minus the sums of P(. | h) and of
// P(. | h') over the n-grams of the context.
static double rise(double whole, double logp, double q, double left, double other)
{
    double prob = pow(10, logp), weight = log((left + prob) / (other + q));
    double sum = prob * (log(q) + weight - logp * LN10);
    if (left > nothing && other > nothing) sum += left * (weight - log(left / other));
    return expm1(-pow(10, whole) * sum);
}

// Decides on all n-grams of one context, first .. end - 1 of this order. q: room for a number for each.
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
    // Longest order first: whether an n-gram is the context of one that is kept is then known.
    for (int k = p->draft->order; k >= 2; k--) {
        const lin_ngram_draft_level *lower = &p->draft->level[k - 2];
        for (size_t h = 0; h < lower->n; h++) {
            if (lower->child[h] < lower->child[h + 1]) judge_context(p, k, h, lower->child[h], lower->child[h + 1], q);
        }
    }
    lin_free(q);
    return LIN_OK;
}

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

// Computes the back-off weights of this order; shorter contexts are done.
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
        free_level(&d->level[--d->order]);
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
