// pronunciations.c - counts of pronunciations, and their probabilities; see pronunciations.h.

#include "train/learn/pronunciations.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/unicode.h"

// The key of a word with its phones: the phones as numbers, then the word.
static lin_status key_of(const char *word, size_t n, const int *labels, int n_labels, lin_buffer *key, lin_error *err)
{
    char lower[LIN_WORD_MAX];
    assert(n <= LIN_WORD_MAX);
    lin_buffer_clear(key);
    for (int i = 0; i < n_labels; i++) lin_buffer_format(key, "%d ", labels[i]);
    lin_buffer_bytes(key, lower, lin_unicode_lower_text(lower, word, n));
    return lin_buffer_status(key, err);
}

lin_status lin_pronunciations_count(lin_pronunciations *h, const char *word, size_t n, const int *labels, int n_labels,
                                    lin_error *err)
{
    lin_buffer key = {0};
    const int before = h->heard.n;
    int index;
    if (n > LIN_WORD_MAX) return LIN_OK; // no dictionary has it
    lin_status status = key_of(word, n, labels, n_labels, &key, err);
    if (status == LIN_OK)
        status = lin_grow_int(&h->counts, &h->capacity, (int64_t)before + 1, sizeof *h->counts, "counts of words", err);
    if (status == LIN_OK) status = lin_symbols_add(&h->heard, key.data, key.n, &index, err);
    if (status == LIN_OK && h->heard.n > before) h->counts[index] = 0;
    if (status == LIN_OK) h->counts[index]++;
    lin_buffer_free(&key);
    return status;
}

static void write_phones(const lin_dictionary *dictionary, const lin_phones *phones, const int *labels, int n, lin_buffer *out)
{
    static const char *const marks[] = {"", "ˈ", "ˌ"};
    const signed char *stress = lin_dictionary_stress(dictionary, labels);
    for (int i = 0; i < n; i++) {
        const char *name = lin_phones_name(phones, labels[i]);
        lin_buffer_char(out, i ? ' ' : '\t');
        if (stress[i] > 0 && lin_phones_is_own(phones)) lin_buffer_text(out, marks[stress[i]]);
        lin_buffer_text(out, name);
        if (stress[i] >= 0 && !lin_phones_is_own(phones) && !strpbrk(name, "012")) lin_buffer_integer(out, stress[i]);
    }
    lin_buffer_char(out, '\n');
}

static lin_status write_word(lin_pronunciations *h, const lin_dictionary *dictionary, const lin_phones *phones, const char *word,
                             lin_buffer *key, lin_buffer *out, lin_error *err)
{
    long counts[LIN_PRONUNCIATIONS_MAX], heard = 0;
    const size_t length = strlen(word);
    const int *labels;
    int n = 0, m;
    for (; n < LIN_PRONUNCIATIONS_MAX && (m = lin_dictionary_find(dictionary, word, length, n, &labels)) > 0; n++) {
        LIN_TRY(key_of(word, length, labels, m, key, err));
        const int index = lin_symbols_find(&h->heard, key->data, key->n);
        counts[n] = index < 0 ? 0 : h->counts[index];
        heard += counts[n];
    }
    if (n > 1) h->words += heard;
    double largest = 1;
    for (int left = n; left > 0; left--) {
        int best = -1;
        for (int k = 0; k < n; k++)
            if (counts[k] >= 0 && (best < 0 || counts[k] > counts[best])) best = k;
        const double smoothed = heard ? (double)counts[best] + 1 : exp(lin_dictionary_logp(dictionary, word, length, best));
        if (left == n && heard) largest = smoothed;
        lin_buffer_format(out, "%s\t", word);
        lin_buffer_fixed(out, fmax(smoothed / largest, 0.0001), 4);
        m = lin_dictionary_find(dictionary, word, length, best, &labels);
        write_phones(dictionary, phones, labels, m, out);
        counts[best] = -1; // written
    }
    return LIN_OK;
}

lin_status lin_pronunciations_write(lin_pronunciations *h, const lin_dictionary *dictionary, const lin_phones *phones,
                                    lin_buffer *out, lin_error *err)
{
    lin_buffer key = {0};
    lin_status status = LIN_OK;
    h->words = 0;
    for (int i = 0; i < lin_dictionary_count(dictionary) && status == LIN_OK; i++)
        status = write_word(h, dictionary, phones, lin_dictionary_word(dictionary, i), &key, out, err);
    lin_buffer_free(&key);
    return status == LIN_OK ? lin_buffer_status(out, err) : status;
}

void lin_pronunciations_free(lin_pronunciations *h)
{
    lin_symbols_free(&h->heard);
    lin_free(h->counts);
    *h = (lin_pronunciations){0};
}
