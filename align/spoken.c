// spoken.c - prepares a known text for alignment; see spoken.h.

#include "align/spoken.h"

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"
#include "linnet/lexicon_open.h"

/* ---- the lexicon ----------------------------------------------------------------------------------------------------------- */

lin_status lin_spoken_lexicon_open(lin_spoken_lexicon *lexicon, const char *path, const char *added, const char *g2p,
                                   const lin_phones *phones, const lin_warnings *warnings, lin_error *err)
{
    const lin_dictionary_options options = {.skip_bad = 1};
    *lexicon = (lin_spoken_lexicon){.phones = phones, .g2p = g2p};
    lin_status status = lin_find_lexicon_of(phones, path, lexicon->path, sizeof lexicon->path, err);
    if (status == LIN_OK && !*lexicon->path)
        return lin_fail(err, LIN_IO,
                        "words need a lexicon, and %s; name %s with --lexicon FILE or LINNET_LEXICON, or give --phones",
                        lin_phones_is_own(phones) ? "the phones of this model are not those of the installed one"
                                                  : "none is installed",
                        lin_phones_is_own(phones) ? "the one of its language" : "one");
    if (status == LIN_OK) status = lin_lexicon_open(lexicon->path, added, g2p, phones, &options, &lexicon->dictionary, err);
    if (status != LIN_OK) {
        lin_spoken_lexicon_close(lexicon);
        return status;
    }
    const char *first;
    const int skipped = lin_dictionary_skipped(lexicon->dictionary, &first);
    if (skipped) lin_warn(warnings, "%s; %d such line%s left out", first, skipped, skipped == 1 ? "" : "s");
    return LIN_OK;
}

void lin_spoken_lexicon_close(lin_spoken_lexicon *lexicon)
{
    lin_dictionary_destroy(lexicon->dictionary);
    *lexicon = (lin_spoken_lexicon){0};
}

/* ---- a text ---------------------------------------------------------------------------------------------------------------- */

static lin_status begin(lin_spoken *s, const lin_phones *phones, lin_error *err)
{
    lin_align_graph_destroy(s->graph);
    s->graph = NULL;
    s->n = 0;
    s->marks = 0;
    s->n_stresses = s->n_slots = 0;
    lin_buffer_clear(&s->spellings);
    lin_buffer_clear(&s->guesses);
    return lin_align_graph_create(lin_phones_count(phones), &s->graph, err);
}

static lin_status keep_spelling(lin_spoken *s, const char *text, size_t n, lin_error *err)
{
    lin_status status =
        lin_grow_int(&s->offsets, &s->capacity, (int64_t)s->n + 1, sizeof *s->offsets, "the words of a text", err);
    if (status != LIN_OK) return status;
    s->offsets[s->n++] = s->spellings.n;
    lin_buffer_bytes(&s->spellings, text, n);
    lin_buffer_char(&s->spellings, '\0');
    return lin_buffer_status(&s->spellings, err);
}

static void drop_g2p(lin_spoken *s)
{
    lin_g2p_destroy(s->g2p);
    lin_g2p_rules_destroy(s->rules);
    s->g2p = NULL;
    s->rules = NULL;
}

// Of the pronunciations of one more slot; stress [n] may be NULL: not known.
static lin_status keep_stress(lin_spoken *s, const signed char *const *stress, int n, lin_error *err)
{
    lin_status status =
        lin_grow_int(&s->first_stress, &s->slots_capacity, (int64_t)s->n_slots + 1, sizeof *s->first_stress, "a text", err);
    const int64_t need = (int64_t)s->n_stresses + n;
    if (status == LIN_OK)
        status = lin_grow_int((void *)&s->stresses, &s->stresses_capacity, need, sizeof *s->stresses, "a text", err);
    if (status != LIN_OK) return status;
    s->first_stress[s->n_slots++] = s->n_stresses;
    for (int i = 0; i < n; i++) s->stresses[s->n_stresses++] = stress ? stress[i] : NULL;
    return LIN_OK;
}

// The first noise of a set; 0: it has none.
static int noise_of(const lin_phones *phones)
{
    for (int i = 1; i < lin_phones_count(phones); i++)
        if (lin_phones_kind(phones, i) == LIN_PHONE_NOISE) return i;
    return 0;
}

static lin_status add_guess(lin_spoken *s, const lin_spoken_lexicon *lexicon, const lin_spelling *word, lin_error *err)
{
    int labels[LIN_PRONUNCIATION_MAX], n;
    const int *one = labels;
    lin_g2p_how how;
    if (!s->g2p || s->g2p_of != lexicon) {
        drop_g2p(s);
        s->g2p_of = lexicon;
        lin_status status = lin_find_open_rules(lexicon->g2p, lexicon->phones, &s->rules, err);
        if (status == LIN_OK) status = lin_g2p_create(lexicon->phones, lexicon->dictionary, s->rules, &s->g2p, err);
        if (status != LIN_OK) return status;
    }
    lin_status status = lin_g2p_pronounce(s->g2p, word->word, word->n, labels, LIN_PRONUNCIATION_MAX, &n, &how, err);
    const int noise = status == LIN_UNSUPPORTED ? noise_of(lexicon->phones) : 0;
    if (noise) labels[0] = noise, n = 1, how = LIN_G2P_RULES, status = LIN_OK; // the text around it is aligned
    if (status == LIN_OK) status = lin_align_graph_add(s->graph, &one, &n, 1, 1, err);
    if (status == LIN_OK) status = keep_stress(s, NULL, 1, err);
    if (status != LIN_OK || how == LIN_G2P_DICTIONARY) return status;
    lin_buffer_bytes(&s->guesses, word->word, word->n);
    for (int i = 0; i < n; i++) {
        lin_buffer_char(&s->guesses, i ? ' ' : '\t');
        lin_buffer_text(&s->guesses, lin_phones_name(lexicon->phones, labels[i]));
    }
    lin_buffer_text(&s->guesses, " (");
    lin_buffer_text(&s->guesses, noise ? "no rules" : lin_g2p_how_name(how));
    lin_buffer_text(&s->guesses, ")\n");
    return lin_buffer_status(&s->guesses, err);
}

static lin_status add_word(lin_spoken *s, const lin_spoken_lexicon *lexicon, const lin_spelling *word, lin_error *err)
{
    const int *pronunciations[LIN_ALIGN_PRONUNCIATIONS];
    const signed char *stress[LIN_ALIGN_PRONUNCIATIONS];
    int lengths[LIN_ALIGN_PRONUNCIATIONS], n = 0;
    while (n < LIN_ALIGN_PRONUNCIATIONS) {
        lengths[n] = lin_dictionary_find(lexicon->dictionary, word->word, word->n, n, &pronunciations[n]);
        if (lengths[n] == 0) break;
        stress[n] = lin_dictionary_stress(lexicon->dictionary, pronunciations[n]);
        n++;
    }
    if (n == 0) return add_guess(s, lexicon, word, err);
    lin_status status = lin_align_graph_add(s->graph, pronunciations, lengths, n, 1, err);
    return status == LIN_OK ? keep_stress(s, stress, n, err) : status;
}

// Words without a pronunciation are collected, so that one message lists all.
lin_status lin_spoken_words(lin_spoken *s, const lin_spoken_lexicon *lexicon, const char *text, size_t n, lin_error *err)
{
    enum { NAMED = 8 };
    lin_buffer missing = {0};
    lin_error why = {0};
    lin_spelling word;
    size_t at = 0;
    int n_missing = 0;
    lin_status status = begin(s, lexicon->phones, err);
    while (status == LIN_OK) {
        status = lin_spelling_next(text, n, &at, &word, err);
        if (status == LIN_OK && word.marks && s->marks == 0) lin_quote(s->first_mark, text + word.mark, word.n_mark);
        if (status == LIN_OK) s->marks += word.marks;
        if (status != LIN_OK || word.n == 0) break;
        lin_error reason = {0};
        lin_spelling_settle(&word, lexicon->dictionary);
        const lin_status added = add_word(s, lexicon, &word, &reason);
        if (added == LIN_OK) {
            status = keep_spelling(s, text + word.begin, word.end - word.begin, err);
        } else if (added == LIN_UNSUPPORTED || added == LIN_MISMATCH || added == LIN_INVALID || added == LIN_TOO_SMALL) {
            if (n_missing++ == 0) why = reason;
            if (n_missing <= NAMED) {
                lin_buffer_text(&missing, n_missing > 1 ? ", " : "");
                lin_buffer_bytes(&missing, text + word.begin, word.end - word.begin);
            }
        } else {
            status = lin_fail_as(err, &reason);
        }
    }
    if (status == LIN_OK) status = lin_buffer_status(&missing, err);
    if (status == LIN_OK && n_missing) {
        char more[32] = "";
        if (n_missing > NAMED) snprintf(more, sizeof more, " and %d more", n_missing - NAMED);
        status =
            lin_fail(err, LIN_INVALID, "no pronunciation for %.500s%s: add to the lexicon (%s)", missing.data, more, why.message);
    }
    if (status == LIN_OK && s->n == 0) status = lin_fail(err, LIN_INVALID, "the text is empty: it has no words to align");
    lin_buffer_free(&missing);
    return status;
}

lin_status lin_spoken_phones(lin_spoken *s, const lin_phones *phones, const char *text, size_t n, lin_error *err)
{
    lin_lines lines = {0};
    char shown[LIN_QUOTE];
    int mark = 0;
    lin_status status = begin(s, phones, err);
    lin_lines_begin(&lines, text, n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const char *at = lines.text, *field;
        size_t n_field;
        while (status == LIN_OK && lin_field_next(&at, lines.text + lines.n, &field, &n_field)) {
            lin_phone_read read[LIN_PHONES_READ_MAX];
            const int found = lin_phones_read(phones, field, n_field, read, LIN_PHONES_READ_MAX, &mark);
            for (int i = 0; i < found && status == LIN_OK; i++) {
                if (lin_phones_kind(phones, read[i].label) == LIN_PHONE_SILENCE) continue;
                static const signed char digits[] = {-1, 0, 1, 2};
                status = lin_align_graph_phones(s->graph, &read[i].label, 1, err);
                if (status == LIN_OK) status = keep_stress(s, &(const signed char *){&digits[read[i].stress + 1]}, 1, err);
            }
            if (!found) {
                status = lin_fail(err, LIN_INVALID, "'%s' is not a phoneme of the model; linnet info lists them",
                                  lin_quote(shown, field, n_field));
            }
        }
    }
    if (status == LIN_OK && s->graph->n_slots == 0)
        status = lin_fail(err, LIN_INVALID, "the text is empty: there are no phonemes");
    return status;
}

const char *lin_spoken_spell(const void *spoken, int word)
{
    const lin_spoken *s = spoken;
    return word >= 0 && word < s->n ? s->spellings.data + s->offsets[word] : NULL;
}

const signed char *lin_spoken_stress(const lin_spoken *s, int slot, int pronunciation)
{
    if (slot < 0 || slot >= s->n_slots || pronunciation < 0) return NULL;
    const int at = s->first_stress[slot] + pronunciation;
    return at < s->n_stresses ? s->stresses[at] : NULL;
}

void lin_spoken_free(lin_spoken *s)
{
    lin_align_graph_destroy(s->graph);
    lin_buffer_free(&s->spellings);
    lin_buffer_free(&s->guesses);
    lin_free(s->offsets);
    lin_free((void *)s->stresses);
    lin_free(s->first_stress);
    drop_g2p(s);
    *s = (lin_spoken){0};
}
