// dictionary.c - reading CMUdict, and a word's pronunciations; see dictionary.h.

#include "lexicon/dictionary.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

typedef struct pronunciation {
    size_t offset; // of its labels
    int n;
    int next; // another pronunciation of the same word, or -1
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
    int has_stress;
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

// Parses a line. LIN_OK with n_word = 0 for an empty line or a comment.
static lin_status parse_line(const lin_lines *line, const char *name, const lin_phones *phones, entry *out, lin_error *err)
{
    char shown[LIN_QUOTE];
    const char *at = line->text, *end = line->text + line->n, *field;
    size_t n, bad;
    out->n_word = 0;
    out->n_labels = 0;
    if (line->n > LIN_DICTIONARY_LINE_MAX) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: a line of %zu bytes; a dictionary has at most %d", name, line->number, line->n,
                        LIN_DICTIONARY_LINE_MAX);
    }
    if ((bad = lin_text_find_control(line->text, line->n)) < line->n) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: control character 0x%02x at byte %zu of the line", name, line->number,
                        (unsigned char)line->text[bad], bad + 1);
    }
    if (!lin_field_next(&at, end, &field, &n)) return LIN_OK;
    if ((n >= 3 && !memcmp(field, ";;;", 3)) || (n >= 2 && !memcmp(field, "##", 2))) return LIN_OK;
    n = without_variant(field, n);
    if (n > LIN_WORD_MAX) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: a word of %zu bytes; at most %d", name, line->number, n, LIN_WORD_MAX);
    }
    const char *word = field;
    size_t n_word = n;
    for (size_t i = 0; i < n; i++) out->word[i] = lin_lower(field[i]);
    int mark = 0, marked = 0;
    while (lin_field_next(&at, end, &field, &n) && field[0] != '#') {
        lin_phone_read read[LIN_PHONES_READ_MAX];
        const int found = lin_phones_read(phones, field, n, read, LIN_PHONES_READ_MAX, &mark);
        double probability;
        if (!found && !out->n_labels && lin_text_number(field, n, &probability)) continue; // as in the MFA's dictionaries
        if (!found) {
            return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' is not a phone of this set", name, line->number,
                            lin_quote(shown, field, n));
        }
        if (out->n_labels + found > LIN_PRONUNCIATION_MAX) {
            return lin_fail(err, LIN_FORMAT, "%s:%d: more than %d phones", name, line->number, LIN_PRONUNCIATION_MAX);
        }
        for (int i = 0; i < found; i++) {
            out->stress[out->n_labels] = (signed char)read[i].stress;
            out->labels[out->n_labels++] = read[i].label;
            marked |= read[i].stress > 0 && !lin_is_digit(field[n - 1]);
        }
    }
    // In the IPA a vowel without a mark is unstressed if another vowel has a mark.
    for (int i = 0; marked && i < out->n_labels; i++) {
        if (out->stress[i] < 0 && lin_phones_is_vowel(phones, out->labels[i])) out->stress[i] = 0;
    }
    if (!out->n_labels) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' has no phones", name, line->number, lin_quote(shown, word, n_word));
    }
    out->n_word = n_word;
    return LIN_OK;
}

static lin_status add_entry(lin_dictionary *d, const entry *e, const char *name, int line, lin_error *err)
{
    char shown[LIN_QUOTE];
    int word, before = d->words.n, n = 0;
    lin_status status;
    assert(e->n_word > 0 && e->n_word <= LIN_WORD_MAX && e->n_labels > 0 && e->n_labels <= LIN_PRONUNCIATION_MAX);
    if ((status = lin_grow(&d->items, &d->items_capacity, d->n_items + 1, sizeof *d->items, "a dictionary", err))) return status;
    if ((status = lin_grow(&d->first, &d->first_capacity, (size_t)before + 1, sizeof *d->first, "a dictionary", err)))
        return status;
    if ((status = lin_grow(&d->labels, &d->labels_capacity, d->n_labels + (size_t)e->n_labels, sizeof *d->labels, "a dictionary",
                           err)))
        return status;
    if ((status = lin_grow(&d->stress, &d->stress_capacity, d->n_labels + (size_t)e->n_labels, sizeof *d->stress, "a dictionary",
                           err)))
        return status;
    if (d->n_items == INT_MAX) return lin_fail(err, LIN_FORMAT, "too many pronunciations");
    if ((status = lin_symbols_add(&d->words, e->word, e->n_word, &word, err))) return status;
    if (d->words.n > before) d->first[word] = -1;
    int *link = &d->first[word];
    for (; *link >= 0; link = &d->items[*link].next, n++) {
        const pronunciation *p = &d->items[*link];
        if (p->n == e->n_labels && !memcmp(d->labels + p->offset, e->labels, (size_t)p->n * sizeof(int))) return LIN_OK;
    }
    if (n == LIN_PRONUNCIATIONS_MAX) {
        return lin_fail(err, LIN_FORMAT, "%s:%d: '%s' has more than %d pronunciations", name, line,
                        lin_quote(shown, e->word, e->n_word), LIN_PRONUNCIATIONS_MAX);
    }
    *link = (int)d->n_items;
    d->items[d->n_items++] = (pronunciation){.offset = d->n_labels, .n = e->n_labels, .next = -1};
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
    lin_status status;
    if (lines > INT_MAX / 8) lines = INT_MAX / 8;
    if ((status = lin_symbols_reserve(&d->words, (int)lines, n / 2, err))) return status;
    if ((status = lin_grow(&d->items, &d->items_capacity, lines, sizeof *d->items, "a dictionary", err))) return status;
    if ((status = lin_grow(&d->first, &d->first_capacity, lines, sizeof *d->first, "a dictionary", err))) return status;
    if ((status = lin_grow(&d->stress, &d->stress_capacity, n / 3, sizeof *d->stress, "a dictionary", err))) return status;
    return lin_grow(&d->labels, &d->labels_capacity, n / 3, sizeof *d->labels, "a dictionary", err);
}

lin_status lin_dictionary_parse(const char *text, size_t n, const char *name, const lin_phones *phones,
                                const lin_dictionary_options *options, lin_dictionary **dictionary, lin_error *err)
{
    *dictionary = NULL;
    lin_dictionary *d = lin_calloc(1, sizeof *d);
    if (!d) return lin_no_memory(err, "a dictionary", sizeof *d);
    lin_lines lines;
    entry e;
    char *own;
    lin_status status = lin_unicode_clean(text, n, name, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) status = reserve(d, n, err);
    lin_lines_begin(&lines, text, status ? 0 : n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        lin_error bad;
        status = parse_line(&lines, name, phones, &e, &bad);
        if (status == LIN_OK && e.n_word) status = add_entry(d, &e, name, lines.number, &bad);
        if (status == LIN_FORMAT && options && options->skip_bad) {
            if (!d->n_skipped++) d->first_skipped = bad;
            status = LIN_OK;
        }
        if (status != LIN_OK) lin_fail(err, status, "%s", bad.message);
    }
    if (status == LIN_OK && !d->words.n) {
        status = lin_fail(err, LIN_FORMAT, "%s: the file has no word%s%s", name, d->n_skipped ? ", for example " : "",
                          d->first_skipped.message);
    }
    lin_free(own);
    if (status != LIN_OK) {
        lin_dictionary_destroy(d);
        return status;
    }
    *dictionary = d;
    return LIN_OK;
}

lin_status lin_dictionary_load(const char *path, const lin_phones *phones, const lin_dictionary_options *options,
                               lin_dictionary **dictionary, lin_error *err)
{
    char *text;
    size_t n;
    *dictionary = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    status = lin_dictionary_parse(text, n, path, phones, options, dictionary, err);
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

int lin_dictionary_find(const lin_dictionary *d, const char *word, size_t n, int which, const int **labels)
{
    char lower[LIN_WORD_MAX];
    if (n > LIN_WORD_MAX || which < 0) return 0;
    for (size_t i = 0; i < n; i++) lower[i] = lin_lower(word[i]);
    int index = lin_symbols_find(&d->words, lower, n);
    if (index < 0) return 0;
    int at = d->first[index];
    while (at >= 0 && which-- > 0) at = d->items[at].next;
    if (at < 0) return 0;
    if (labels) *labels = d->labels + d->items[at].offset;
    return d->items[at].n;
}

const signed char *lin_dictionary_stress(const lin_dictionary *d, const int *labels) { return d->stress + (labels - d->labels); }

int lin_dictionary_has_stress(const lin_dictionary *d) { return d->has_stress; }

int lin_dictionary_count(const lin_dictionary *d) { return d->words.n; }

const char *lin_dictionary_word(const lin_dictionary *d, int index)
{
    return index >= 0 && index < d->words.n ? lin_symbols_text(&d->words, index) : NULL;
}

int lin_dictionary_skipped(const lin_dictionary *d, const char **first)
{
    if (first) *first = d->first_skipped.message;
    return d->n_skipped;
}
