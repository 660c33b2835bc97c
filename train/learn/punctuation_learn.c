// punctuation_learn.c - a punctuation model from books: counts, choice of features, weights; see punctuation_learn.h.

#include "train/learn/punctuation_learn.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "train/learn/prose.h"

enum { MARK_BITS = 3, CAPITAL = 4, UNSURE = 8, CLASSES = LIN_MARKS, LEAST = 4 };

// The text as numbers: of each word its id, mark, capital, and whether that says nothing.
typedef struct books {
    uint64_t *ids;
    unsigned char *flags;
    size_t n, ids_capacity, flags_capacity;
    size_t *starts; // [n_paragraphs + 1]
    size_t n_paragraphs, starts_capacity;
} books;

// One decision: n keys, and what is right. Marks have CLASSES outcomes, capitals two.
typedef struct sample {
    const uint32_t *keys;
    int n, classes, label;
} sample;

typedef struct table {
    uint32_t slots;
    int classes;
    uint32_t *counts; // [2^bits, classes]
    int64_t total[CLASSES];
    unsigned char *check; // [slots]
    float *gain;          // [slots]
    float *w, *squares;   // [slots, classes - 1]
    float bias[CLASSES - 1], bias_squares[CLASSES - 1];
} table;

typedef struct learner {
    lin_punctuation_learn_options how;
    books text;
    table marks, capitals;
} learner;

lin_punctuation_learn_options lin_punctuation_learn_options_default(void)
{
    return (lin_punctuation_learn_options){.mark_slots = 300000, .capital_slots = 131072, .bits = 25, .passes = 2, .rate = 0.1};
}

/* ---- the text -------------------------------------------------------------------------------------------------------------- */

static lin_status add_paragraph(books *b, const lin_prose *prose, lin_error *err)
{
    const size_t n = (size_t)prose->n;
    lin_status status = lin_grow(&b->ids, &b->ids_capacity, b->n + n, sizeof *b->ids, "books", err);
    if (status == LIN_OK) status = lin_grow(&b->flags, &b->flags_capacity, b->n + n, 1, "books", err);
    if (status == LIN_OK)
        status = lin_grow(&b->starts, &b->starts_capacity, b->n_paragraphs + 2, sizeof *b->starts, "books", err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < prose->n; i++) {
        const lin_prose_word *w = &prose->words[i];
        b->ids[b->n + (size_t)i] = lin_punctuation_word(prose->text.data + w->text);
        b->flags[b->n + (size_t)i] = (unsigned char)(w->mark | (w->capital ? CAPITAL : 0) | (w->quoted ? UNSURE : 0));
    }
    b->starts[b->n_paragraphs++] = b->n;
    b->n += n;
    b->starts[b->n_paragraphs] = b->n;
    return LIN_OK;
}

static lin_status read_books(books *b, const char *text, size_t n, lin_error *err)
{
    lin_prose prose = {0};
    lin_paragraphs p;
    lin_status status = LIN_OK;
    lin_paragraphs_begin(&p, text, n);
    while (status == LIN_OK && lin_paragraphs_next(&p)) {
        if (!lin_prose_is_running(p.text, p.n)) continue;
        status = lin_prose_read(&prose, p.text, p.n, err);
        if (status == LIN_OK && prose.n > 1) status = add_paragraph(b, &prose, err);
    }
    lin_prose_free(&prose);
    if (status == LIN_OK && b->n_paragraphs == 0) status = lin_fail(err, LIN_INVALID, "the text has no paragraph of sentences");
    return status;
}

typedef void (*visit)(learner *l, table *t, const sample *s);

// All decisions of a paragraph.
static void visit_paragraph(learner *l, size_t paragraph, visit see)
{
    const books *b = &l->text;
    const size_t from = b->starts[paragraph], to = b->starts[paragraph + 1];
    const unsigned bits = (unsigned)l->how.bits;
    uint32_t marks[LIN_PUNCTUATION_MARK_FEATURES], capitals[LIN_PUNCTUATION_CAPITAL_FEATURES];
    lin_gap gap = {0};
    int mark = LIN_MARK_STOP, capital = 0;
    for (size_t i = from; i < to; i++) {
        const int inside = mark != LIN_MARK_STOP && mark != LIN_MARK_QUESTION;
        lin_gap_move(&gap, mark, b->ids[i]);
        for (size_t k = 0; k < 3; k++) gap.after[k] = i + 1 + k < to ? b->ids[i + 1 + k] : 0;
        mark = b->flags[i] & MARK_BITS;
        if (inside && !(b->flags[i] & UNSURE)) {
            lin_punctuation_capital_keys(gap.before[1], capital, gap.before[0], gap.after[0], bits, capitals);
            see(l, &l->capitals, &(sample){capitals, LIN_PUNCTUATION_CAPITAL_FEATURES, 2, (b->flags[i] & CAPITAL) != 0});
        }
        capital = inside && (b->flags[i] & CAPITAL);
        if (i + 1 == to && mark <= LIN_MARK_COMMA) break; // the paragraph ends in the middle of a sentence
        lin_punctuation_mark_keys(&gap, bits, marks);
        see(l, &l->marks, &(sample){marks, LIN_PUNCTUATION_MARK_FEATURES, LIN_MARKS, mark});
    }
}

/* ---- counts and the choice of keys ----------------------------------------------------------------------------------------- */

static void count(learner *l, table *t, const sample *s)
{
    (void)l;
    t->total[s->label]++;
    for (int i = 0; i < s->n; i++) {
        uint32_t *c = &t->counts[(size_t)s->keys[i] * (size_t)t->classes + (size_t)s->label];
        *c += *c < UINT32_MAX;
    }
}

static float gain_of(const table *t, const uint32_t *counts)
{
    double n = 0, all = 0, gain = 0;
    for (int c = 0; c < t->classes; c++) n += counts[c], all += (double)t->total[c];
    if (n < LEAST) return 0;
    for (int c = 0; c < t->classes; c++)
        if (counts[c]) gain += counts[c] * log(counts[c] * all / (n * (double)t->total[c]));
    return (float)gain;
}

static void choose(table *t, unsigned bits)
{
    for (uint32_t key = 0; key < (uint32_t)1 << bits; key++) {
        const float gain = gain_of(t, t->counts + (size_t)key * (size_t)t->classes);
        const uint32_t slot = key % t->slots;
        if (gain <= t->gain[slot]) continue;
        t->gain[slot] = gain;
        t->check[slot] = (unsigned char)(key / t->slots);
    }
}

/* ---- weights --------------------------------------------------------------------------------------------------------------- */

static void step(float *w, float *squares, float gradient, float rate)
{
    *squares += gradient * gradient;
    *w -= rate * gradient / (sqrtf(*squares) + 1e-6F);
}

static void learn(learner *l, table *t, const sample *s)
{
    uint32_t slots[LIN_PUNCTUATION_MARK_FEATURES];
    float score[CLASSES] = {0}, sum = 0, most = 0;
    int n = 0;
    const int others = t->classes - 1;
    for (int i = 0; i < s->n; i++) {
        const uint32_t slot = s->keys[i] % t->slots;
        if (t->check[slot] == s->keys[i] / t->slots && t->gain[slot] > 0) slots[n++] = slot;
    }
    for (int c = 0; c < others; c++) {
        score[c + 1] = t->bias[c];
        for (int i = 0; i < n; i++) score[c + 1] += t->w[slots[i] * (size_t)others + (size_t)c];
        if (score[c + 1] > most) most = score[c + 1];
    }
    for (int c = 0; c <= others; c++) sum += score[c] = expf(score[c] - most);
    for (int c = 0; c < others; c++) {
        const float gradient = score[c + 1] / sum - (s->label == c + 1), rate = (float)l->how.rate;
        step(&t->bias[c], &t->bias_squares[c], gradient, rate);
        for (int i = 0; i < n; i++) {
            const size_t at = slots[i] * (size_t)others + (size_t)c;
            step(&t->w[at], &t->squares[at], gradient, rate);
        }
    }
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Every paragraph once, the next one far from the last.
static void pass(learner *l, visit see)
{
    const size_t n = l->text.n_paragraphs;
    size_t stride = (size_t)((double)n * 0.6180339887) + 1;
    while (common_divisor(n, stride) > 1) stride++;
    for (size_t i = 0, at = 0; i < n; i++, at = (at + stride) % n) visit_paragraph(l, at, see);
}

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

static float quantise(const table *t, unsigned char *out)
{
    const size_t others = (size_t)t->classes - 1, n = t->slots * others;
    float most = 1e-3F;
    for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(t->w[i]));
    const float scale = fminf(most, 6) / 127; // a few larger weights are cut
    for (size_t slot = 0; slot < t->slots; slot++) {
        unsigned char *to = out + slot * (others + 1);
        to[0] = t->check[slot];
        for (size_t c = 0; c < others; c++) {
            const float q = roundf(t->w[slot * others + c] / scale);
            to[c + 1] = (unsigned char)(signed char)fminf(fmaxf(q, -127), 127);
        }
    }
    return scale;
}

static lin_status build(const learner *l, lin_punctuation **out, lin_error *err)
{
    lin_punctuation *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a punctuation model", sizeof *p);
    lin_punctuation_header *h = &p->header;
    *h = (lin_punctuation_header){.version = LIN_PUNCTUATION_VERSION,
                                  .bits = (uint32_t)l->how.bits,
                                  .n_marks = l->marks.slots,
                                  .n_capitals = l->capitals.slots,
                                  .capital_bias = l->capitals.bias[0]};
    memcpy(h->magic, LIN_PUNCTUATION_MAGIC, sizeof h->magic);
    memcpy(h->mark_bias, l->marks.bias, sizeof h->mark_bias);
    const size_t bytes = lin_punctuation_bytes(h);
    p->n = bytes;
    p->slots = lin_alloc(bytes, 1);
    if (!p->slots) {
        lin_free(p);
        return lin_no_memory(err, "a punctuation model", bytes);
    }
    h->mark_scale = quantise(&l->marks, p->slots);
    h->capital_scale = quantise(&l->capitals, p->slots + (size_t)h->n_marks * LIN_PUNCTUATION_MARK_SLOT);
    *out = p;
    return LIN_OK;
}

static lin_status open_table(table *t, int slots, int classes, int bits, lin_error *err)
{
    const size_t keys = (size_t)1 << bits, n = (size_t)slots, weights = n * (size_t)(classes - 1);
    t->slots = (uint32_t)slots;
    t->classes = classes;
    t->counts = lin_calloc(keys * (size_t)classes, sizeof *t->counts);
    t->check = lin_calloc(n, 1);
    t->gain = lin_calloc(n, sizeof *t->gain);
    t->w = lin_calloc(weights, sizeof *t->w);
    t->squares = lin_calloc(weights, sizeof *t->squares);
    if (t->counts && t->check && t->gain && t->w && t->squares) return LIN_OK;
    return lin_no_memory(err, "a punctuation model", keys * (size_t)classes * sizeof *t->counts);
}

static void close_table(table *t)
{
    lin_free(t->counts);
    lin_free(t->check);
    lin_free(t->gain);
    lin_free(t->w);
    lin_free(t->squares);
}

static lin_status check(const lin_punctuation_learn_options *o, lin_error *err)
{
    const int good =
        o->bits >= 8 && o->bits <= LIN_PUNCTUATION_MAX_BITS && o->mark_slots > 0 && o->capital_slots > 0 && o->passes > 0;
    const int64_t keys = good ? (int64_t)1 << o->bits : 0;
    if (good && keys <= (int64_t)o->mark_slots * 256 && keys <= (int64_t)o->capital_slots * 256) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%d and %d slots do not fit keys of %d bits", o->mark_slots, o->capital_slots, o->bits);
}

lin_status lin_punctuation_learn(const char *text, size_t n, const lin_punctuation_learn_options *o, lin_punctuation **p,
                                 lin_punctuation_learn_report *report, lin_error *err)
{
    learner l = {.how = *o};
    *p = NULL;
    lin_status status = check(o, err);
    if (status == LIN_OK) status = read_books(&l.text, text, n, err);
    if (status == LIN_OK) status = open_table(&l.marks, o->mark_slots, LIN_MARKS, o->bits, err);
    if (status == LIN_OK) status = open_table(&l.capitals, o->capital_slots, 2, o->bits, err);
    if (status == LIN_OK) {
        for (size_t i = 0; i < l.text.n_paragraphs; i++) visit_paragraph(&l, i, count);
        choose(&l.marks, (unsigned)o->bits);
        choose(&l.capitals, (unsigned)o->bits);
        for (int k = 0; k < o->passes; k++) pass(&l, learn);
        status = build(&l, p, err);
    }
    if (status == LIN_OK && report) {
        *report = (lin_punctuation_learn_report){.paragraphs = (int64_t)l.text.n_paragraphs, .words = (int64_t)l.text.n};
        memcpy(report->marks, l.marks.total, sizeof report->marks);
        report->capitals = l.capitals.total[1];
    }
    close_table(&l.marks);
    close_table(&l.capitals);
    lin_free(l.text.ids);
    lin_free(l.text.flags);
    lin_free(l.text.starts);
    return status;
}
