// g2p_learn.c - aligns letters with phones and makes an n-gram model of the pairs; see g2p_learn.h.

#include "train/learn/g2p_learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "train/learn/kneser_ney.h"
#include "train/learn/ngram_count.h"
#include "train/learn/ngram_draft.h"

enum { LONGEST = LIN_WORD_MAX, MOST_LETTERS = 4096 };

#define MOST_CELLS ((size_t)1 << 25) // of a table

// P(phones | letter): [n_letters, kinds]; kind 0 is no phone, kinds 1 .. V one phone, the next V * V two phones.
typedef struct learner {
    const lin_dictionary *dictionary;
    const lin_phones *phones;
    const lin_g2p_learn_options *options;
    size_t V, kinds;
    unsigned *letters; // different ones, sorted
    size_t n_letters, letters_capacity;
    double *p, *counts;
    double *forward, *backward; // [LONGEST + 1, LONGEST + 1]: probability of i letters with j phones, and of the rest after them
    unsigned char *back;        // of the best alignment: phones of letter i if j are aligned up to it
    double bits;
    int n_words, n_pronunciations, n_left_out;
} learner;

// One pronunciation of one word.
typedef struct example {
    unsigned codes[LONGEST]; // of its characters
    int letters[LONGEST];    // their indices among the letters, from the second pass over the dictionary on
    const int *labels;
    int n, m;
} example;

typedef lin_status example_taker(learner *l, const example *e, void *context, lin_error *err);

lin_g2p_learn_options lin_g2p_learn_options_default(void)
{
    return (lin_g2p_learn_options){.order = 5, .iterations = 10, .minimum = 2};
}

static size_t cell(int i, int j) { return (size_t)i * (LONGEST + 1) + (size_t)j; }

static size_t kind(const learner *l, const int *labels, int n)
{
    if (n == 0) return 0;
    if (n == 1) return (size_t)labels[0];
    return l->V + (size_t)labels[0] * l->V + (size_t)labels[1];
}

static double *entry(const learner *l, double *table, const example *e, int i, int j, int n)
{
    return table + (size_t)e->letters[i] * l->kinds + kind(l, e->labels + j, n);
}

static int is_letter(const learner *l, unsigned code)
{
    if (code >= 'a' && code <= 'z') return 1;
    return lin_phones_is_own(l->phones) && (code < 0x80 ? code == '\'' : lin_unicode_is_letter(code));
}

static int by_code(const void *a, const void *b)
{
    const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

// 0 if it has other characters than letters.
static int read_word(const learner *l, const char *word, example *e)
{
    const size_t n = strlen(word);
    e->n = 0;
    for (size_t at = 0, step; at < n; at += step) {
        step = lin_utf8_decode(word + at, n - at, &e->codes[e->n]);
        if (!step || !is_letter(l, e->codes[e->n])) return 0;
        if (l->p) { // the letters are known
            const unsigned *found = bsearch(&e->codes[e->n], l->letters, l->n_letters, sizeof *l->letters, by_code);
            if (!found) return 0; // a word that was left out before
            e->letters[e->n] = (int)(found - l->letters);
        }
        e->n++;
    }
    return e->n > 0;
}

static int can_align(const learner *l, const example *e)
{
    for (int i = 0; i < e->m; i++) {
        if (lin_phones_kind(l->phones, e->labels[i]) != LIN_PHONE_SOUND) return 0;
    }
    return e->m <= LONGEST && e->m <= 2 * e->n;
}

// Calls `take` for every pronunciation of every word to learn from.
static lin_status each_example(learner *l, example_taker *take, void *context, lin_error *err)
{
    lin_status status = LIN_OK;
    l->n_words = l->n_pronunciations = l->n_left_out = 0;
    for (int w = 0; w < lin_dictionary_count(l->dictionary) && status == LIN_OK; w++) {
        if (l->options->hold_out && w % l->options->hold_out == 0) continue;
        const char *word = lin_dictionary_word(l->dictionary, w);
        example e;
        int used = 0;
        const int is_read = read_word(l, word, &e);
        for (int k = 0; status == LIN_OK; k++) {
            e.m = lin_dictionary_find(l->dictionary, word, strlen(word), k, &e.labels);
            if (e.m == 0) break;
            if (is_read && can_align(l, &e)) {
                status = take(l, &e, context, err);
                used++;
            } else {
                l->n_left_out++;
            }
        }
        l->n_words += used > 0;
        l->n_pronunciations += used;
    }
    return status;
}

// Adds the letters of an example that are new.
static lin_status note_letters(learner *l, const example *e, void *context, lin_error *err)
{
    (void)context;
    for (int i = 0; i < e->n; i++) {
        if (l->n_letters && bsearch(&e->codes[i], l->letters, l->n_letters, sizeof *l->letters, by_code)) continue;
        if (l->n_letters == MOST_LETTERS)
            return lin_fail(err, LIN_UNSUPPORTED, "the dictionary has more than %d different letters", MOST_LETTERS);
        LIN_TRY(lin_grow(&l->letters, &l->letters_capacity, l->n_letters + 1, sizeof *l->letters, "letters", err));
        l->letters[l->n_letters++] = e->codes[i];
        qsort(l->letters, l->n_letters, sizeof *l->letters, by_code);
    }
    return LIN_OK;
}

// The range of j for which letters 0 .. i - 1 can have j phones, and the other letters the rest.
static void bounds(const example *e, int i, int *low, int *high)
{
    const int behind = e->m - 2 * (e->n - i);
    *low = behind > 0 ? behind : 0;
    *high = 2 * i < e->m ? 2 * i : e->m;
}

// Expected counts of one example (Baum's forward and backward sums), scaled letter by letter.
static lin_status count(learner *l, const example *e, void *context, lin_error *err)
{
    (void)context;
    (void)err;
    double *f = l->forward, *b = l->backward, scale[LONGEST + 1], bits = 0;
    int low, high, low2, high2;
    f[cell(0, 0)] = 1;
    for (int i = 1; i <= e->n; i++) {
        double sum = 0;
        bounds(e, i, &low, &high);
        bounds(e, i - 1, &low2, &high2);
        for (int j = low; j <= high; j++) {
            double p = 0;
            for (int k = 0; k <= 2; k++) {
                if (j - k < low2 || j - k > high2) continue;
                p += f[cell(i - 1, j - k)] * *entry(l, l->p, e, i - 1, j - k, k);
            }
            f[cell(i, j)] = p;
            sum += p;
        }
        if (!(sum > 0)) return LIN_OK; // so improbable that it underflows: it adds no counts
        scale[i] = 1 / sum;
        bits -= log2(scale[i]);
        for (int j = low; j <= high; j++) f[cell(i, j)] *= scale[i];
    }
    const double whole = f[cell(e->n, e->m)];
    if (!(whole > 0)) return LIN_OK;
    l->bits -= bits + log2(whole);
    b[cell(e->n, e->m)] = 1 / whole;
    for (int i = e->n - 1; i >= 0; i--) {
        bounds(e, i, &low, &high);
        bounds(e, i + 1, &low2, &high2);
        for (int j = low; j <= high; j++) {
            double p = 0;
            for (int k = 0; k <= 2; k++) {
                if (j + k < low2 || j + k > high2) continue;
                const double through = *entry(l, l->p, e, i, j, k) * b[cell(i + 1, j + k)] * scale[i + 1];
                p += through;
                *entry(l, l->counts, e, i, j, k) += f[cell(i, j)] * through;
            }
            b[cell(i, j)] = p;
        }
    }
    return LIN_OK;
}

// P(phones | letter) from the counts.
static void normalise(learner *l)
{
    for (size_t c = 0; c < l->n_letters; c++) {
        double *counts = l->counts + c * l->kinds, *p = l->p + c * l->kinds, sum = 0;
        for (size_t k = 0; k < l->kinds; k++) sum += counts[k];
        for (size_t k = 0; k < l->kinds && sum > 0; k++) p[k] = counts[k] / sum;
    }
    memset(l->counts, 0, l->n_letters * l->kinds * sizeof *l->counts);
}

// Uniform at the start, except that two phones for a letter are rare.
static void begin(learner *l)
{
    for (size_t c = 0; c < l->n_letters; c++) {
        double *p = l->p + c * l->kinds;
        for (size_t k = 0; k < l->kinds; k++) p[k] = k <= l->V ? 0.9 / (double)(l->V + 1) : 0.1 / (double)(l->V * l->V);
    }
}

// The most probable alignment as a sentence of pairs.
static lin_status add_sentence(learner *l, const example *e, void *context, lin_error *err)
{
    char line[LONGEST * (4 + 2 + 2 * (LIN_PHONE_NAME_MAX + 1))];
    double *f = l->forward;
    int low, high, low2, high2, taken[LONGEST];
    f[cell(0, 0)] = 0;
    for (int i = 1; i <= e->n; i++) {
        bounds(e, i, &low, &high);
        bounds(e, i - 1, &low2, &high2);
        for (int j = low; j <= high; j++) {
            f[cell(i, j)] = -INFINITY;
            l->back[cell(i, j)] = 0;
            for (int k = 0; k <= 2; k++) {
                if (j - k < low2 || j - k > high2) continue;
                const double logp = f[cell(i - 1, j - k)] + log(*entry(l, l->p, e, i - 1, j - k, k));
                if (!(logp > f[cell(i, j)])) continue;
                f[cell(i, j)] = logp;
                l->back[cell(i, j)] = (unsigned char)k;
            }
        }
    }
    if (!isfinite(f[cell(e->n, e->m)])) return LIN_OK;
    for (int i = e->n, j = e->m; i > 0; i--) j -= taken[i - 1] = l->back[cell(i, j)];
    size_t n = 0;
    for (int i = 0, j = 0; i < e->n; i++) {
        if (i) line[n++] = ' ';
        n += lin_utf8_encode(e->codes[i], line + n);
        line[n++] = '|';
        for (int k = 0; k < taken[i]; k++, j++) {
            const char *name = lin_phones_name(l->phones, e->labels[j]);
            if (k) line[n++] = '+';
            memcpy(line + n, name, strlen(name));
            n += strlen(name);
        }
    }
    return lin_ngram_counter_line(context, line, n, err);
}

static lin_status model(learner *l, lin_ngram **lm, lin_error *err)
{
    lin_ngram_count_options how = {.order = l->options->order};
    lin_ngram_counter *counter;
    lin_ngram_counts counts = {0};
    lin_ngram_draft draft = {0};
    for (int k = 0; k < LIN_NGRAM_MAX_ORDER; k++) how.minimum[k] = k < 2 ? 1 : (uint32_t)l->options->minimum;
    LIN_TRY(lin_ngram_counter_create(&how, &counter, err));
    lin_status status = each_example(l, add_sentence, counter, err);
    if (status == LIN_OK) status = lin_ngram_counter_finish(counter, &counts, err);
    lin_ngram_counter_destroy(counter);
    if (status == LIN_OK) status = lin_kneser_ney(&counts, &draft, NULL, err);
    if (status == LIN_OK) status = lin_ngram_draft_finish(&draft, "letter-to-sound rules", lm, err);
    lin_ngram_draft_free(&draft);
    lin_ngram_counts_free(&counts);
    return status;
}

static lin_status learn(learner *l, lin_ngram **lm, lin_g2p_learn_report *report, lin_error *err)
{
    const size_t cells = (size_t)(LONGEST + 1) * (LONGEST + 1);
    LIN_TRY(each_example(l, note_letters, NULL, err));
    if (l->n_pronunciations == 0)
        return lin_fail(err, LIN_INVALID, "the dictionary has no word of %s that rules could be learnt from",
                        lin_phones_is_own(l->phones) ? "letters" : "the letters a to z");
    if (l->n_letters > MOST_CELLS / l->kinds)
        return lin_fail(err, LIN_UNSUPPORTED, "%zu different letters and %zu phones are too many for letter-to-sound rules",
                        l->n_letters, l->V - 1);
    l->p = lin_calloc(l->n_letters * l->kinds, sizeof *l->p);
    l->counts = lin_calloc(l->n_letters * l->kinds, sizeof *l->counts);
    l->forward = lin_calloc(cells, sizeof *l->forward);
    l->backward = lin_calloc(cells, sizeof *l->backward);
    l->back = lin_calloc(cells, sizeof *l->back);
    if (!l->p || !l->counts || !l->forward || !l->backward || !l->back)
        return lin_no_memory(err, "letter-to-sound rules", 2 * (l->n_letters * l->kinds + cells) * sizeof *l->p);
    begin(l);
    for (int i = 0; i < l->options->iterations; i++) {
        l->bits = 0;
        LIN_TRY(each_example(l, count, NULL, err));
        normalise(l);
    }
    lin_status status = model(l, lm, err);
    if (status == LIN_OK && report) {
        *report = (lin_g2p_learn_report){.words = l->n_words,
                                         .pronunciations = l->n_pronunciations,
                                         .left_out = l->n_left_out,
                                         .letters = (int)l->n_letters,
                                         .pairs = lin_ngram_words(*lm) - 2, // <s>, </s>
                                         .bits = l->bits / l->n_pronunciations};
    }
    return status;
}

lin_status lin_g2p_learn(const lin_dictionary *dictionary, const lin_phones *phones, const lin_g2p_learn_options *options,
                         lin_ngram **lm, lin_g2p_learn_report *report, lin_error *err)
{
    const size_t V = (size_t)lin_phones_count(phones);
    *lm = NULL;
    if (options->order < 1 || options->order > LIN_NGRAM_MAX_ORDER || options->iterations < 1 || options->minimum < 1 ||
        options->hold_out < 0 || options->hold_out == 1)
        return lin_fail(err, LIN_INVALID,
                        "letter-to-sound rules of order 1 to %d, by at least one iteration, with counts of at least 1",
                        LIN_NGRAM_MAX_ORDER);
    if (V > 512) return lin_fail(err, LIN_UNSUPPORTED, "letter-to-sound rules are learnt for at most 512 phones, not %zu", V);
    learner l = {.dictionary = dictionary, .phones = phones, .options = options, .V = V, .kinds = V + V * V};
    const lin_status status = learn(&l, lm, report, err);
    lin_free(l.letters);
    lin_free(l.p);
    lin_free(l.counts);
    lin_free(l.forward);
    lin_free(l.backward);
    lin_free(l.back);
    return status;
}
