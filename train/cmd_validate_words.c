// cmd_validate_words.c - linnet validate: texts, and words outside the lexicon; see cmd_validate.h.

#include <stdlib.h>
#include <string.h>

#include "train/cmd_validate.h"
#include "base/memory.h"
#include "base/unicode.h"
#include "train/batches.h"

#define MOST_UNKNOWN 0.2   // share of the words; more is hardly the lexicon of this language, as in linnet prepare

/* ---- texts ----------------------------------------------------------------------------------------------------------------- */

static lin_status add_labels(lin_validation *d, const int *labels, int n, lin_error *err)
{
    lin_status status = lin_grow(&d->labels, &d->labels_capacity, d->n_labels + (size_t)n, sizeof *d->labels, "labels", err);
    if (status != LIN_OK) return status;
    if (n) memcpy(d->labels + d->n_labels, labels, (size_t)n * sizeof *labels);
    d->n_labels += (size_t)n;
    return LIN_OK;
}

// A word outside the lexicon: its phones, found once, to pronunciation; *n = 0 if there is none.
static lin_status pronounce(lin_validation *d, const lin_spelling *spelling, int pronunciation[LIN_PRONUNCIATION_MAX], int *n,
                            lin_error *err)
{
    int index;
    const int before = d->unknown.n;
    lin_status status = lin_symbols_add(&d->unknown, spelling->word, spelling->n, &index, err);
    if (status == LIN_OK) status = lin_grow(&d->words, &d->words_capacity, (size_t)d->unknown.n, sizeof *d->words, "words", err);
    if (status != LIN_OK) return status;
    lin_validated_word *w = &d->words[index];
    if (d->unknown.n > before) {
        lin_error why;
        *w = (lin_validated_word){0};
        status = lin_g2p_pronounce(d->wording.g2p, spelling->word, spelling->n, pronunciation, LIN_PRONUNCIATION_MAX,
                                   &w->n_labels, &w->how, &why);
        if (status == LIN_NO_MEMORY) return lin_fail_as(err, &why);
        if (status != LIN_OK) w->n_labels = 0;
        w->at = d->n_labels;
        status = add_labels(d, pronunciation, w->n_labels, err);
    } else if (w->n_labels) {
        memcpy(pronunciation, d->labels + w->at, (size_t)w->n_labels * sizeof *pronunciation);
    }
    w->count += w->how != LIN_G2P_DICTIONARY || !w->n_labels;
    d->n_unknown += w->how != LIN_G2P_DICTIONARY || !w->n_labels;
    *n = w->n_labels;
    return status;
}

static lin_status read_words(lin_validation *d, lin_validated *u, const char *text, size_t n, lin_error *err)
{
    size_t at = 0;
    int *all = NULL, pronunciation[LIN_PRONUNCIATION_MAX];
    size_t n_all = 0, capacity = 0;
    lin_spelling spelling;
    lin_error why;
    int words = 0, is_whole = 1;
    lin_status status = LIN_OK, read = LIN_OK;
    if (n == 0) {
        lin_finding_note(d, LIN_FINDING_NO_TEXT, u->set, u->u->id, "%s", "");
        return LIN_OK;
    }
    while (status == LIN_OK && (read = lin_spelling_next(text, n, &at, &spelling, &why)) == LIN_OK && spelling.n) {
        const int *labels = pronunciation;
        lin_spelling_settle(&spelling, d->wording.dictionary);
        int m = lin_dictionary_find(d->wording.dictionary, spelling.word, spelling.n, 0, &labels);
        words++;
        if (m == 0) {
            labels = pronunciation;
            status = pronounce(d, &spelling, pronunciation, &m, err);
            is_whole &= m > 0;
        }
        if (status == LIN_OK) status = lin_grow(&all, &capacity, n_all + (size_t)m, sizeof *all, "labels", err);
        for (int i = 0; i < m && status == LIN_OK; i++) {
            all[n_all++] = labels[i];
            d->seen[labels[i]] = 1;
        }
    }
    d->n_words += words;
    if (status == LIN_OK && read != LIN_OK) lin_finding_note(d, LIN_FINDING_BAD_TEXT, u->set, u->u->id, "%s", why.message);
    else if (status == LIN_OK && words == 0) lin_finding_note(d, LIN_FINDING_NO_TEXT, u->set, u->u->id, "no word in it");
    u->is_used = status == LIN_OK && read == LIN_OK && words > 0 && is_whole;
    u->n_labels = (int)n_all;
    u->needed = n_all ? lin_ctc_frames_needed(all, (int)n_all) : 0;
    lin_free(all);
    return status;
}

// As it is said: numbers in words.
lin_status lin_validation_read_text(lin_validation *d, lin_validated *u, lin_error *err)
{
    const char *text = u->u->text ? u->u->text : "";
    size_t n = strlen(text);
    char *own;
    lin_buffer said = {0};
    lin_status status = lin_unicode_clean(text, n, NULL, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK && d->wording.written) status = lin_written_expand(d->wording.written, text, n, &said, err);
    else if (status == LIN_OK) lin_buffer_bytes(&said, text, n);
    if (status == LIN_OK) status = lin_buffer_status(&said, err);
    if (status == LIN_OK) status = read_words(d, u, said.data ? said.data : "", said.n, err);
    lin_buffer_free(&said);
    lin_free(own);
    return status;
}

/* ---- words outside the lexicon --------------------------------------------------------------------------------------------- */

typedef struct rank {
    long count;
    int index;
} rank;

static int by_count(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

lin_status lin_validation_note_words(lin_validation *d, lin_error *err)
{
    const lin_phones *phones = d->wording.phones;
    lin_buffer line = {0}, oov = {0};
    const int n = d->unknown.n;
    rank *ranks = lin_alloc((size_t)n + 1, sizeof *ranks);
    if (!ranks) return lin_no_memory(err, "words", (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++) ranks[i] = (rank){d->words[i].count, i};
    qsort(ranks, (size_t)n, sizeof *ranks, by_count);
    for (int r = 0; r < n; r++) {
        const lin_validated_word *w = &d->words[ranks[r].index];
        const char *spelled = lin_symbols_text(&d->unknown, ranks[r].index);
        if (w->count == 0) continue; // in quotes, and in the lexicon
        lin_buffer_clear(&line);
        for (int i = 0; i < w->n_labels; i++)
            lin_buffer_format(&line, "%s%s", i ? " " : "", lin_phones_name(phones, d->labels[w->at + (size_t)i]));
        lin_buffer_char(&line, '\0');
        const char *how = w->n_labels ? lin_g2p_how_name(w->how) : "none";
        if (line.data) lin_buffer_format(&oov, "%s\t%ld\t%s\t%s\n", spelled, w->count, how, line.data);
        if (!w->n_labels) lin_finding_note(d, LIN_FINDING_NO_PHONES, -1, spelled, "%ld", w->count);
        else lin_finding_note(d, LIN_FINDING_WORDS, -1, spelled, "%ld %s (%s)", w->count, line.data ? line.data : "", how);
    }
    if ((double)d->n_unknown > MOST_UNKNOWN * (double)d->n_words) {
        char share[64];
        snprintf(share, sizeof share, "%.1f %% of the words", 100.0 * (double)d->n_unknown / (double)d->n_words);
        lin_finding_note(d, LIN_FINDING_FOREIGN, -1, share, "is %.900s a lexicon of this language?", d->wording.path);
    }
    for (int i = 1; i < lin_phones_count(phones); i++)
        if (!d->seen[i] && lin_phones_kind(phones, i) == LIN_PHONE_SOUND)
            lin_finding_note(d, LIN_FINDING_UNSEEN, -1, lin_phones_name(phones, i), "%s", "");
    lin_status status = lin_buffer_status(&line, err);
    if (status == LIN_OK) status = lin_buffer_status(&oov, err);
    if (status == LIN_OK && d->v->oov) status = lin_output_write(d->v->oov, 0, &oov, err);
    lin_buffer_free(&line);
    lin_buffer_free(&oov);
    lin_free(ranks);
    return status;
}
