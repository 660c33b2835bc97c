// punctuation_learn.c - reads books as words with their marks, and learns a model from them; see punctuation_learn.h.

#include "train/learn/punctuation_learn.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"

/* ---- paragraphs ------------------------------------------------------------------------------------------------------------ */

void lin_paragraphs_begin(lin_paragraphs *p, const char *text, size_t n)
{
    *p = (lin_paragraphs){.next = text, .end = text + n};
}

static int is_blank(const char *from, const char *to)
{
    while (from < to && lin_is_space(*from)) from++;
    return from == to;
}

int lin_paragraphs_next(lin_paragraphs *p)
{
    p->text = NULL;
    while (p->next < p->end) {
        const char *line = p->next, *stop = memchr(line, '\n', (size_t)(p->end - line));
        if (!stop) stop = p->end;
        p->next = stop < p->end ? stop + 1 : stop;
        const int blank = is_blank(line, stop);
        if (blank && p->text) return 1;
        if (blank) continue;
        if (!p->text) p->text = line;
        p->n = (size_t)(stop - p->text);
    }
    return p->text != NULL;
}

static int has(const char *text, size_t n, const char *part)
{
    const size_t k = strlen(part);
    for (size_t i = 0; i + k <= n; i++) {
        size_t c = 0;
        while (c < k && lin_lower(text[i + c]) == part[c]) c++;
        if (c == k) return 1;
    }
    return 0;
}

int lin_prose_is_running(const char *text, size_t n)
{
    size_t small = 0, capital = 0, blanks = 0;
    int ends = 0;
    if (n == 0 || text[0] == '#') return 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        small += c >= 'a' && c <= 'z';
        capital += c >= 'A' && c <= 'Z';
        blanks += c == ' ' || c == '\n';
        ends |= c == '.' || c == '!' || c == '?';
    }
    const size_t letters = small + capital;
    if (!ends || blanks < 2 || letters * 5 < (n - blanks) * 3 || capital * 10 > letters * 3) return 0;
    return !has(text, n, "gutenberg") && !has(text, n, "http") && !(n > 7 && has(text, 8, "chapter "));
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

// The class of a character: a letter, an apostrophe, a mark, a quotation mark, ...
typedef enum kind { BLANK, LETTER, DIGIT, APOSTROPHE, QUOTE, DASH, HYPHEN, MARK, IGNORED } kind;

typedef struct sign {
    kind kind;
    char letter; // in lower case
    int capital, mark;
    size_t n; // bytes
} sign;

// Letters of Latin-1 without their accents, from U+00C0 on; '-': none.
static const char latin[] = "AAAAAAACEEEEIIIIDNOOOOO-OUUUUY-saaaaaaaceeeeiiiidnooooo-ouuuuy-y";

static sign letter_of(char c, size_t n)
{
    return (sign){.kind = LETTER, .letter = lin_lower(c), .capital = c >= 'A' && c <= 'Z', .n = n};
}

static sign sign_of_ascii(char c)
{
    if (lin_is_letter(c)) return letter_of(c, 1);
    if (lin_is_digit(c)) return (sign){.kind = DIGIT, .n = 1};
    switch (c) {
    case '\'': return (sign){.kind = APOSTROPHE, .n = 1};
    case '"': return (sign){.kind = QUOTE, .n = 1};
    case '-': return (sign){.kind = HYPHEN, .n = 1};
    case '.':
    case '!':
    case ';': return (sign){.kind = MARK, .mark = LIN_MARK_STOP, .n = 1};
    case '?': return (sign){.kind = MARK, .mark = LIN_MARK_QUESTION, .n = 1};
    case ',':
    case ':': return (sign){.kind = MARK, .mark = LIN_MARK_COMMA, .n = 1};
    case '_':
    case '*': return (sign){.kind = IGNORED, .n = 1};
    default: return (sign){.kind = BLANK, .n = 1};
    }
}

static sign sign_at(const char *text, size_t n)
{
    unsigned code;
    if ((unsigned char)*text < 128) return sign_of_ascii(*text);
    const size_t k = lin_utf8_decode(text, n, &code);
    if (!k) return (sign){.kind = BLANK, .n = 1};
    if (code >= 0xC0 && code <= 0xFF && latin[code - 0xC0] != '-') return letter_of(latin[code - 0xC0], k);
    if (code == 0x2018 || code == 0x2019) return (sign){.kind = APOSTROPHE, .n = k};
    if (code == 0x201C || code == 0x201D) return (sign){.kind = QUOTE, .n = k};
    if (code == 0x2013 || code == 0x2014) return (sign){.kind = DASH, .n = k};
    if (code == 0x2026) return (sign){.kind = BLANK, .n = k};
    return (sign){.kind = code < 0x300 || code > 0x36F ? BLANK : IGNORED, .n = k}; // combining accents are ignored
}

// Abbreviations and their expansions; NULL: no expansion, but its period ends no sentence.
static const struct {
    const char *shorter, *full;
} titles[] = {{"mr", "mister"}, {"mrs", "missus"}, {"dr", "doctor"},  {"st", "saint"}, {"ms", NULL},   {"messrs", NULL},
              {"esq", NULL},    {"hon", NULL},     {"rev", NULL},     {"capt", NULL},  {"col", NULL},  {"gen", NULL},
              {"mme", NULL},    {"mlle", NULL},    {"prof", NULL},    {"etc", NULL},   {"viz", NULL},  {"vol", NULL}};

typedef struct reader {
    lin_prose *prose;
    size_t word;  // where the current word begins in the text
    int in_word, capital, digits, quoted;
    int failed;
} reader;

static const char *last_word(const reader *r) { return r->prose->text.data + r->prose->words[r->prose->n - 1].text; }

static void begin_word(reader *r, int capital)
{
    if (r->in_word) return;
    r->in_word = 1;
    r->word = r->prose->text.n;
    r->capital = capital;
    r->digits = 0;
}

static void end_word(reader *r)
{
    lin_prose *p = r->prose;
    if (!r->in_word || p->text.failed) return;
    r->in_word = 0;
    while (p->text.n > r->word && p->text.data[p->text.n - 1] == '\'') p->text.n--; // the quotation ends
    if (p->text.n == r->word) return;
    p->text.data[p->text.n] = '\0';
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (!titles[i].full || strcmp(p->text.data + r->word, titles[i].shorter) != 0) continue;
        p->text.n = r->word;
        lin_buffer_text(&p->text, titles[i].full);
        break;
    }
    if (r->digits) {
        p->text.n = r->word;
        lin_buffer_char(&p->text, '#');
    }
    lin_buffer_char(&p->text, '\0');
    if (p->text.failed || lin_grow_int(&p->words, &p->capacity, (int64_t)p->n + 1, sizeof *p->words, "text", NULL) != LIN_OK) {
        r->failed = 1;
        return;
    }
    p->words[p->n++] = (lin_prose_word){.text = r->word, .capital = r->capital, .quoted = r->quoted};
    r->quoted = 0;
}

static int is_short_form(const char *word)
{
    if (word[0] && !word[1] && word[0] != 'i') return 1; // an initial
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        if (strcmp(word, titles[i].full ? titles[i].full : titles[i].shorter) == 0) return 1;
    }
    return 0;
}

// Of several marks after a word, the strongest counts.
static void put_mark(reader *r, int mark)
{
    end_word(r);
    if (!r->prose->n || r->failed) return;
    lin_prose_word *w = &r->prose->words[r->prose->n - 1];
    if (mark > w->mark) w->mark = mark;
    r->quoted = 0;
}

// Reads a mark, which does not count within numbers, after abbreviations or in an ellipsis. Returns its bytes.
static size_t read_mark(reader *r, const char *text, size_t at, size_t n)
{
    const sign s = sign_at(text + at, n - at);
    const int before = at > 0 && lin_is_digit(text[at - 1]), after = at + 1 < n && lin_is_digit(text[at + 1]);
    if (before && after) return s.n;
    if (text[at] == '.') {
        size_t k = 1, more;
        while (at + k < n && text[at + k] == '.') k++;
        for (more = k; at + more < n && text[at + more] == ' '; more++) continue;
        end_word(r);
        const int behind = at > 1 && text[at - 1] == ' ' && text[at - 2] == '.';
        if (k > 1 || behind || (more > 1 && at + more < n && text[at + more] == '.')) return k;
        if (r->prose->n && !r->failed && r->prose->words[r->prose->n - 1].capital && is_short_form(last_word(r))) return 1;
        if (r->prose->n && !r->failed && strcmp(last_word(r), "etc") == 0) return 1;
    }
    put_mark(r, s.mark);
    return s.n;
}

static void read_sign(reader *r, const char *text, size_t *at, size_t n, kind before)
{
    const sign s = sign_at(text + *at, n - *at);
    const size_t next = *at + s.n;
    const sign after = next < n ? sign_at(text + next, n - next) : (sign){.kind = BLANK, .n = 1};
    *at = next;
    switch (s.kind) {
    case LETTER:
        begin_word(r, s.capital);
        lin_buffer_char(&r->prose->text, s.letter);
        return;
    case DIGIT:
        begin_word(r, 0);
        r->digits = 1;
        lin_buffer_char(&r->prose->text, '0');
        return;
    case APOSTROPHE:
        if (r->in_word && after.kind == LETTER) {
            lin_buffer_char(&r->prose->text, '\'');
        } else {
            end_word(r);
            if (after.kind == LETTER && after.capital) r->quoted = 1;
        }
        return;
    case QUOTE:
        end_word(r);
        if (before != LETTER && before != MARK && (after.kind == LETTER || after.kind == APOSTROPHE)) r->quoted = 1;
        return;
    case DASH: put_mark(r, LIN_MARK_COMMA); return;
    case HYPHEN:
        if (after.kind == HYPHEN || (before == BLANK && after.kind == BLANK)) {
            put_mark(r, LIN_MARK_COMMA);
        } else {
            end_word(r);
        }
        return;
    case MARK: *at = next - s.n + read_mark(r, text, next - s.n, n); return;
    case IGNORED: return;
    default: end_word(r);
    }
}

lin_status lin_prose_read(lin_prose *p, const char *text, size_t n, lin_error *err)
{
    reader r = {.prose = p};
    kind before = BLANK;
    p->n = 0;
    lin_buffer_clear(&p->text);
    for (size_t at = 0; at < n && !r.failed && !p->text.failed;) {
        const kind now = sign_at(text + at, n - at).kind;
        read_sign(&r, text, &at, n, before);
        before = now;
    }
    end_word(&r);
    if (!r.failed && !p->text.failed) return LIN_OK;
    p->n = 0;
    return lin_no_memory(err, "text", p->text.capacity);
}

void lin_prose_free(lin_prose *p)
{
    lin_buffer_free(&p->text);
    lin_free(p->words);
    *p = (lin_prose){0};
}

enum { MARK_BITS = 3, CAPITAL = 4, UNSURE = 8, CLASSES = LIN_MARKS, LEAST = 4, PASSES = 4 };

static const float rate = 0.1F; // learning rate

// The text as numbers: of each word its id, mark and capital, and whether the capital is without meaning.
typedef struct books {
    uint64_t *ids;
    unsigned char *flags;
    size_t n, ids_capacity, flags_capacity;
    size_t *starts; // [n_paragraphs + 1]
    size_t n_paragraphs, starts_capacity;
} books;

// One decision: n keys, and the right class.
typedef struct sample {
    const uint32_t *keys;
    int n, label;
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

/* ---- the text -------------------------------------------------------------------------------------------------------------- */

static lin_status add_paragraph(books *b, const lin_prose *prose, lin_error *err)
{
    const size_t n = (size_t)prose->n;
    LIN_TRY(lin_grow(&b->ids, &b->ids_capacity, b->n + n, sizeof *b->ids, "books", err));
    LIN_TRY(lin_grow(&b->flags, &b->flags_capacity, b->n + n, 1, "books", err));
    LIN_TRY(lin_grow(&b->starts, &b->starts_capacity, b->n_paragraphs + 2, sizeof *b->starts, "books", err));
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

typedef void (*visit)(table *t, const sample *s);

// Calls `see` for all decisions of a paragraph.
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
            see(&l->capitals, &(sample){capitals, LIN_PUNCTUATION_CAPITAL_FEATURES, (b->flags[i] & CAPITAL) != 0});
        }
        capital = inside && (b->flags[i] & CAPITAL);
        if (i + 1 == to && mark <= LIN_MARK_COMMA) break; // the paragraph ends in the middle of a sentence
        lin_punctuation_mark_keys(&gap, bits, marks);
        see(&l->marks, &(sample){marks, LIN_PUNCTUATION_MARK_FEATURES, mark});
    }
}

/* ---- counts and the choice of keys ----------------------------------------------------------------------------------------- */

static void count(table *t, const sample *s)
{
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

static void step(float *w, float *squares, float gradient)
{
    *squares += gradient * gradient;
    *w -= rate * gradient / (sqrtf(*squares) + 1e-6F);
}

static void learn(table *t, const sample *s)
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
        const float gradient = score[c + 1] / sum - (s->label == c + 1);
        step(&t->bias[c], &t->bias_squares[c], gradient);
        for (int i = 0; i < n; i++) {
            const size_t at = slots[i] * (size_t)others + (size_t)c;
            step(&t->w[at], &t->squares[at], gradient);
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

// Visits every paragraph once, each far from the one before.
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
    const float scale = fminf(most, 6) / 127; // clips the few weights above 6
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
    const int good = o->bits >= 8 && o->bits <= LIN_PUNCTUATION_MAX_BITS && o->mark_slots > 0 && o->capital_slots > 0;
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
        for (int k = 0; k < PASSES; k++) pass(&l, learn);
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
