// dictionary.c - reading CMUdict, and a word's pronunciations; see dictionary.h.

#include "lexicon/dictionary.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

typedef struct pronunciation {
    size_t offset; // of its labels
    int n;
    int next; // another pronunciation of the same word, or -1
    int added; // 1: by lin_dictionary_add
    float logp; // natural logarithm of its probability
} pronunciation;

struct lin_dictionary {
    lin_symbols words; // lower case
    int *first;        // of each word, its first pronunciation
    size_t first_capacity;
    pronunciation *items;
    size_t n_items, items_capacity;
    int *labels;
    size_t n_labels, labels_capacity;
    signed char *stress; // [n_labels]
    size_t stress_capacity;
    int has_stress, has_probabilities, is_own;
    int adds; // 1: lin_dictionary_add is at work
    int n_skipped;
    lin_error first_skipped;
};

// The parts of one line, before they are added to the tables.
typedef struct entry {
    char word[LIN_WORD_MAX];
    size_t n_word;
    int labels[LIN_PRONUNCIATION_MAX];
    signed char stress[LIN_PRONUNCIATION_MAX];
    int n_labels;
    double probability;
} entry;

// "word(2)" is a further pronunciation of "word".
static size_t without_variant(const char *word, size_t n)
{
    size_t i = n;
    if (n < 4 || word[n - 1] != ')') return n;
    for (i = n - 1; i > 1 && lin_is_digit(word[i - 1]); i--) {
    }
    return i < n - 1 && word[i - 1] == '(' && i > 1 ? i - 1 : n;
}

static int is_comment(const char *field, size_t n)
{
    return (n >= 3 && !memcmp(field, ";;;", 3)) || (n >= 2 && !memcmp(field, "##", 2));
}

// The mark of stress at the beginning of a symbol, 1 or 2, and its bytes; 0: none.
static int stress_mark(const char *field, size_t n, size_t *bytes)
{
    const int mark = n < 2 || field[0] != '\xCB' ? 0 : field[1] == '\x88' ? 1 : field[1] == '\x8C' ? 2 : 0; // U+02C8, U+02CC
    *bytes = mark ? 2 : 0;
    return mark;
}

// Parses a line. LIN_OK with n_word = 0 for an empty line, a comment, or a word that is a silence.
static lin_status parse_line(const lin_lines *line, const char *name, const lin_phones *phones, entry *out, lin_error *err)
{
    char shown[LIN_QUOTE];
    const char *at = line->text, *end = line->text + line->n, *field;
    size_t n;
    out->n_word = 0;
    out->n_labels = 0;
    out->probability = 1;
    if (line->n > LIN_DICTIONARY_LINE_MAX)
        return lin_fail(err, LIN_FORMAT, "%s:%d: the line has %zu bytes; at most %d are possible", name, line->number, line->n,
                        LIN_DICTIONARY_LINE_MAX);
    LIN_TRY(lin_lines_check(line, name, err));
    if (!lin_field_next(&at, end, &field, &n)) return LIN_OK;
    if (is_comment(field, n)) return LIN_OK;
    n = without_variant(field, n);
    if (n > LIN_WORD_MAX)
        return lin_fail(err, LIN_FORMAT, "%s:%d: the word has %zu bytes; at most %d are possible",
                        name, line->number, n, LIN_WORD_MAX);
    const char *word = field;
    const size_t n_word = n, n_lower = lin_unicode_lower_text(out->word, word, n);
    int mark = 0, marked = 0, silences = 0, numbers = 0;
    while (lin_field_next(&at, end, &field, &n) && (field[0] != '#' || lin_phones_find(phones, field, n) > 0)) {
        lin_phone_read read[LIN_PHONES_READ_MAX];
        double number;
        size_t n_mark;
        const int alone = stress_mark(field, n, &n_mark);
        if (alone && n_mark == n && lin_phones_is_own(phones)) {
            mark = alone;
            continue;
        }
        const int found = lin_phones_read(phones, field, n, read, LIN_PHONES_READ_MAX, &mark);
        if (!found && !out->n_labels && lin_text_number(field, n, &number)) {
            if (numbers++) continue; // probabilities of silence
            out->probability = number;
            if (number > 0 && number <= 1) continue;
            return lin_fail(err, LIN_FORMAT, "%s:%d: the probability of a pronunciation must be above 0 and at most 1, not %s",
                            name, line->number, lin_quote(shown, field, n));
        }
        if (!found)
            return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' is not a phone of this set; a line is one word and its phones",
                            name, line->number, lin_quote(shown, field, n));
        if (out->n_labels + found > LIN_PRONUNCIATION_MAX)
            return lin_fail(err, LIN_FORMAT, "%s:%d: the word has more than %d phones",
                            name, line->number, LIN_PRONUNCIATION_MAX);
        for (int i = 0; i < found; i++) {
            if (lin_phones_kind(phones, read[i].label) == LIN_PHONE_SILENCE) {
                silences++;
                continue;
            }
            out->stress[out->n_labels] = (signed char)read[i].stress;
            out->labels[out->n_labels++] = read[i].label;
            marked |= read[i].stress > 0 && !lin_is_digit(field[n - 1]);
        }
    }
    // In the IPA a vowel without a mark is unstressed if another vowel has a mark.
    for (int i = 0; marked && i < out->n_labels; i++) {
        if (out->stress[i] < 0 && lin_phones_is_vowel(phones, out->labels[i])) out->stress[i] = 0;
    }
    if (!out->n_labels && silences) return LIN_OK;
    if (!out->n_labels)
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' has no phones", name, line->number, lin_quote(shown, word, n_word));
    out->n_word = n_lower;
    return LIN_OK;
}

static lin_status add_entry(lin_dictionary *d, const entry *e, const char *name, int line, lin_error *err)
{
    char shown[LIN_QUOTE];
    int word, before = d->words.n, n = 0;
    assert(e->n_word > 0 && e->n_word <= LIN_WORD_MAX && e->n_labels > 0 && e->n_labels <= LIN_PRONUNCIATION_MAX);
    LIN_TRY(lin_grow(&d->items, &d->items_capacity, d->n_items + 1, sizeof *d->items, "a dictionary", err));
    LIN_TRY(lin_grow(&d->first, &d->first_capacity, (size_t)before + 1, sizeof *d->first, "a dictionary", err));
    LIN_TRY(lin_grow(&d->labels, &d->labels_capacity, d->n_labels + (size_t)e->n_labels, sizeof *d->labels, "a dictionary", err));
    LIN_TRY(lin_grow(&d->stress, &d->stress_capacity, d->n_labels + (size_t)e->n_labels, sizeof *d->stress, "a dictionary", err));
    if (d->n_items == INT_MAX) return lin_fail(err, LIN_FORMAT, "too many pronunciations");
    LIN_TRY(lin_symbols_add(&d->words, e->word, e->n_word, &word, err));
    if (d->words.n > before) d->first[word] = -1;
    int *link = &d->first[word];
    for (; *link >= 0; link = &d->items[*link].next, n++) {
        pronunciation *p = &d->items[*link];
        if (p->n != e->n_labels || memcmp(d->labels + p->offset, e->labels, (size_t)p->n * sizeof(int)) != 0) continue;
        p->added |= d->adds;
        p->logp = (float)fmin(log(exp((double)p->logp) + e->probability), 0);
        return LIN_OK;
    }
    if (n == LIN_PRONUNCIATIONS_MAX)
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' has more than %d pronunciations", name, line,
                        lin_quote(shown, e->word, e->n_word), LIN_PRONUNCIATIONS_MAX);
    *link = (int)d->n_items;
    d->has_probabilities |= e->probability < 1;
    d->items[d->n_items++] = (pronunciation){.offset = d->n_labels, .n = e->n_labels, .next = -1, .added = d->adds,
                                             .logp = e->probability < 1 ? (float)log(e->probability) : 0};
    memcpy(d->labels + d->n_labels, e->labels, (size_t)e->n_labels * sizeof(int));
    memcpy(d->stress + d->n_labels, e->stress, (size_t)e->n_labels);
    for (int i = 0; i < e->n_labels; i++) d->has_stress |= e->stress[i] >= 0;
    d->n_labels += (size_t)e->n_labels;
    return LIN_OK;
}

// Reserves memory for a file of this size (CMUdict: 24 bytes per line), so that the tables do not grow by doubling.
static lin_status reserve(lin_dictionary *d, size_t n, lin_error *err)
{
    size_t lines = n / 20 + 16;
    if (lines > INT_MAX / 8) lines = INT_MAX / 8;
    LIN_TRY(lin_symbols_reserve(&d->words, (int)lines, n / 2, err));
    LIN_TRY(lin_grow(&d->items, &d->items_capacity, lines, sizeof *d->items, "a dictionary", err));
    LIN_TRY(lin_grow(&d->first, &d->first_capacity, lines, sizeof *d->first, "a dictionary", err));
    LIN_TRY(lin_grow(&d->stress, &d->stress_capacity, n / 3, sizeof *d->stress, "a dictionary", err));
    return lin_grow(&d->labels, &d->labels_capacity, n / 3, sizeof *d->labels, "a dictionary", err);
}

static lin_status read_lines(lin_dictionary *d, const char *text, size_t n, const char *name, const lin_phones *phones,
                             lin_error *err)
{
    lin_lines lines;
    entry e;
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        lin_error bad;
        lin_status status = parse_line(&lines, name, phones, &e, &bad);
        if (status == LIN_OK && e.n_word) status = add_entry(d, &e, name, lines.number, &bad);
        if (status == LIN_FORMAT && !d->n_skipped++) d->first_skipped = bad;
        if (status != LIN_OK && status != LIN_FORMAT) return lin_fail_as(err, &bad);
    }
    return LIN_OK;
}

lin_status lin_dictionary_add(lin_dictionary *d, const char *text, size_t n, const char *name, const lin_phones *phones,
                              lin_error *err)
{
    char *own;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    d->adds = 1;
    if (status == LIN_OK) status = read_lines(d, text, n, name, phones, err);
    d->adds = 0;
    lin_free(own);
    return status;
}

lin_status lin_dictionary_parse(const char *text, size_t n, const char *name, const lin_phones *phones,
                                lin_dictionary **dictionary, lin_error *err)
{
    *dictionary = NULL;
    lin_dictionary *d = lin_calloc(1, sizeof *d);
    if (!d) return lin_no_memory(err, "a dictionary", sizeof *d);
    d->is_own = lin_phones_is_own(phones);
    char *own;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) status = reserve(d, n, err);
    if (status == LIN_OK) status = read_lines(d, text, n, name, phones, err);
    if (status == LIN_OK && !d->words.n)
        status = lin_fail(err, LIN_FORMAT, "%s: the file has no word%s%s", name, d->n_skipped ? ", for example " : "",
                          d->first_skipped.message);
    lin_free(own);
    if (status != LIN_OK) {
        lin_dictionary_destroy(d);
        return status;
    }
    *dictionary = d;
    return LIN_OK;
}

/* ---- the phone set of a dictionary ----------------------------------------------------------------------------------------- */

// A name of CMUdict, in either case, with or without stress.
static int is_cmu_name(const lin_phones *cmu, const char *field, size_t n)
{
    char capitals[LIN_PHONE_NAME_MAX];
    for (size_t i = 0; i < n && i < sizeof capitals; i++) capitals[i] = lin_upper(field[i]);
    return n <= sizeof capitals && lin_phones_find_unstressed(cmu, capitals, n) > 0;
}

typedef struct survey {
    lin_symbols symbols;
    const lin_phones *cmu;
    long words, english;
} survey;

static lin_status survey_line(survey *s, const lin_lines *line, const char *name, lin_error *err)
{
    const char *at = line->text, *end = at + line->n, *field;
    char shown[LIN_QUOTE];
    size_t n, n_mark;
    int phones = 0, english = 1, index;
    double probability;
    if (line->n > LIN_DICTIONARY_LINE_MAX || lin_text_find_control(at, line->n) < line->n) return LIN_OK;
    if (!lin_field_next(&at, end, &field, &n) || is_comment(field, n)) return LIN_OK;
    while (lin_field_next(&at, end, &field, &n) && field[0] != '#') {
        while (stress_mark(field, n, &n_mark)) field += n_mark, n -= n_mark;
        if (!n || (!phones && lin_text_number(field, n, &probability))) continue;
        for (size_t i = 1; i < n; i++) {
            if (!stress_mark(field + i, n - i, &n_mark)) continue;
            return lin_fail(err, LIN_INVALID,
                            "%s:%d: '%s' is not one phone, but has a mark of stress inside: the phones of a word must have "
                            "blanks between them, or be named with --phones",
                            name, line->number, lin_quote(shown, field, n));
        }
        if (n > LIN_PHONE_NAME_MAX || lin_utf8_prefix(field, n, "") < n) return LIN_OK;
        phones++;
        english &= is_cmu_name(s->cmu, field, n);
        if (s->symbols.n > LIN_PHONES_OWN_MAX) continue; // in the end it may be a dictionary of English
        LIN_TRY(lin_symbols_add(&s->symbols, field, n, &index, err));
    }
    s->words += phones > 0;
    s->english += phones > 0 && english;
    return LIN_OK;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static lin_status make_set(const lin_symbols *symbols, lin_phones **phones, lin_error *err)
{
    static const char *const kinds[] = {"", "\t(silence)", "\t(noise)"};
    const char *sorted[LIN_PHONES_OWN_MAX];
    lin_buffer list = {0};
    for (int i = 0; i < symbols->n; i++) sorted[i] = lin_symbols_text(symbols, i);
    qsort(sorted, (size_t)symbols->n, sizeof *sorted, by_bytes);
    lin_buffer_text(&list, LIN_PHONES_BLANK "\town");
    for (int i = 0; i < symbols->n; i++)
        lin_buffer_format(&list, " %s%s", sorted[i], kinds[lin_phones_usual_kind(sorted[i], strlen(sorted[i]))]);
    lin_buffer_char(&list, '\0');
    lin_status status = lin_buffer_status(&list, err);
    if (status == LIN_OK) status = lin_phones_create(list.data, phones, err);
    lin_buffer_free(&list);
    return status;
}

lin_status lin_dictionary_phones(const char *text, size_t n, const char *name, lin_phones **phones, lin_error *err)
{
    survey s = {0};
    lin_phones *cmu = NULL;
    lin_lines lines;
    char *own;
    *phones = NULL;
    LIN_TRY(lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err));
    lin_status status = lin_phones_create(NULL, &cmu, err);
    s.cmu = cmu;
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) status = survey_line(&s, &lines, name, err);
    if (status == LIN_OK && !s.words) {
        status = lin_fail(err, LIN_FORMAT, "%s: the file has no word with phones", name);
    } else if (status == LIN_OK && 2 * s.english >= s.words) {
        *phones = cmu;
        cmu = NULL;
    } else if (status == LIN_OK && s.symbols.n > LIN_PHONES_OWN_MAX) {
        status = lin_fail(err, LIN_INVALID,
                          "%s: more than %d different phones, such as '%s': do the phones of a word have blanks between them? "
                          "--phones names a set",
                          name, (int)LIN_PHONES_OWN_MAX, lin_symbols_text(&s.symbols, LIN_PHONES_OWN_MAX));
    } else if (status == LIN_OK) {
        status = make_set(&s.symbols, phones, err);
    }
    lin_symbols_free(&s.symbols);
    lin_phones_destroy(cmu);
    lin_free(own);
    return status;
}

lin_status lin_dictionary_load(const char *path, const lin_phones *phones, lin_dictionary **dictionary, lin_error *err)
{
    char *text;
    size_t n;
    *dictionary = NULL;
    LIN_TRY(lin_text_read(path, &text, &n, err));
    lin_status status = lin_dictionary_parse(text, n, path, phones, dictionary, err);
    lin_free(text);
    return status;
}

void lin_dictionary_destroy(lin_dictionary *d)
{
    if (!d) return;
    lin_symbols_free(&d->words);
    lin_free(d->first);
    lin_free(d->items);
    lin_free(d->labels);
    lin_free(d->stress);
    lin_free(d);
}

static const pronunciation *find(const lin_dictionary *d, const char *word, size_t n, int which)
{
    char lower[LIN_WORD_MAX];
    if (n > LIN_WORD_MAX || which < 0) return NULL;
    n = lin_unicode_lower_text(lower, word, n);
    int index = lin_symbols_find(&d->words, lower, n);
    if (index < 0 && n == 2 && lower[1] == '.') { // a spelled letter: of "a" the first pronunciation is the article
        const pronunciation *second = find(d, lower, 1, which + 1);
        return second || which ? second : find(d, lower, 1, 0);
    }
    if (index < 0) return NULL;
    int at = d->first[index];
    while (at >= 0 && which-- > 0) at = d->items[at].next;
    return at < 0 ? NULL : &d->items[at];
}

int lin_dictionary_find(const lin_dictionary *d, const char *word, size_t n, int which, const int **labels)
{
    const pronunciation *p = find(d, word, n, which);
    if (p && labels) *labels = d->labels + p->offset;
    return p ? p->n : 0;
}

double lin_dictionary_logp(const lin_dictionary *d, const char *word, size_t n, int which)
{
    const pronunciation *p = d->has_probabilities ? find(d, word, n, which) : NULL;
    return p ? (double)p->logp : 0;
}

const signed char *lin_dictionary_stress(const lin_dictionary *d, const int *labels) { return d->stress + (labels - d->labels); }

int lin_dictionary_is_own(const lin_dictionary *d) { return d->is_own; }

int lin_dictionary_has_stress(const lin_dictionary *d) { return d->has_stress; }

int lin_dictionary_count(const lin_dictionary *d) { return d->words.n; }

const char *lin_dictionary_word(const lin_dictionary *d, int index)
{
    return index >= 0 && index < d->words.n ? lin_symbols_text(&d->words, index) : NULL;
}

int lin_dictionary_is_added(const lin_dictionary *d, int index)
{
    int added = 0;
    for (int at = index >= 0 && index < d->words.n ? d->first[index] : -1; at >= 0; at = d->items[at].next)
        added |= d->items[at].added;
    return added;
}

int lin_dictionary_skipped(const lin_dictionary *d, const char **first)
{
    if (first) *first = d->first_skipped.message;
    return d->n_skipped;
}
