// spoken.c - prepares a known text for alignment; see spoken.h.

#include "align/spoken.h"

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"

/* ---- a text ---------------------------------------------------------------------------------------------------------------- */

static lin_status begin(lin_spoken *s, const lin_phones *phones, lin_error *err)
{
    s->n = 0;
    s->marks = s->n_any = 0;
    lin_buffer_clear(&s->spellings);
    lin_buffer_clear(&s->guesses);
    return lin_align_graph_begin(&s->graph, lin_phones_count(phones), err);
}

static lin_status keep_spelling(lin_spoken *s, const lin_spelling *word, lin_error *err)
{
    const char *text = s->words.text + word->begin;
    const size_t n = word->end - word->begin;
    LIN_TRY(lin_grow_int(&s->places, &s->capacity, (int64_t)s->n + 1, sizeof *s->places, "the words of a text", err));
    s->places[s->n++] = (lin_spoken_place){.begin = word->begin, .end = word->end, .spelling = s->spellings.n};
    // Formats that separate words by blanks cannot hold "$5 million".
    for (size_t i = 0, blank; i < n; i += blank ? blank : 1) {
        blank = lin_written_blank(text + i, n - i);
        lin_buffer_char(&s->spellings, blank ? '_' : text[i]);
    }
    lin_buffer_char(&s->spellings, '\0');
    return lin_buffer_status(&s->spellings, err);
}

// The first noise of a set; 0: it has none.
static int noise_of(const lin_phones *phones)
{
    for (int i = 1; i < lin_phones_count(phones); i++)
        if (lin_phones_kind(phones, i) == LIN_PHONE_NOISE) return i;
    return 0;
}

static lin_status tell_guess(lin_spoken *s, const lin_phones *phones, const char *word, size_t n_word, const int *labels, int n,
                             const char *how, lin_error *err)
{
    lin_buffer_format(&s->guesses, "%.*s\t", (int)n_word, word);
    for (int i = 0; i < n; i++) lin_buffer_format(&s->guesses, "%s ", lin_phones_name(phones, labels[i]));
    lin_buffer_format(&s->guesses, "(%s)\n", how);
    return lin_buffer_status(&s->guesses, err);
}

// The pronunciation of a word that the lexicon lacks; *n 0: there is none.
static lin_status guess(lin_spoken *s, const lin_wording *lexicon, const char *word, size_t n_word,
                        int labels[LIN_PRONUNCIATION_MAX], int *n, lin_error *err)
{
    lin_g2p_how how = LIN_G2P_RULES;
    lin_error why = {0};
    *n = 0;
    const lin_status status = lin_wording_pronounce(lexicon, word, n_word, labels, LIN_PRONUNCIATION_MAX, n, &how, &why);
    const int noise = status == LIN_UNSUPPORTED ? noise_of(lexicon->phones) : 0;
    if (status == LIN_NO_MEMORY) return lin_fail_as(err, &why); // any other failure: it has no pronunciation
    if (noise) { // the text around it is aligned
        labels[0] = noise;
        *n = 1;
        return tell_guess(s, lexicon->phones, word, n_word, labels, 1, "no rules", err);
    }
    return tell_guess(s, lexicon->phones, word, n_word, labels, *n, *n ? lin_g2p_how_name(how) : "none", err);
}

static lin_status add_guess(lin_spoken *s, const lin_wording *lexicon, const lin_spelling *word, lin_error *err)
{
    int labels[LIN_PRONUNCIATION_MAX], n;
    LIN_TRY(guess(s, lexicon, word->word, word->n, labels, &n, err));
    s->n_any += !n;
    if (!n) return lin_align_graph_add_any(&s->graph, err);
    return lin_align_graph_add(&s->graph, &(lin_align_pronunciation){.labels = labels, .n = n}, 1, 1, err);
}

static lin_status add_word(lin_spoken *s, const lin_wording *lexicon, const lin_spelling *word, lin_error *err)
{
    lin_align_pronunciation list[LIN_ALIGN_PRONUNCIATIONS];
    const lin_dictionary *d = lexicon->dictionary;
    int n = 0;
    for (; n < LIN_ALIGN_PRONUNCIATIONS; n++) {
        lin_align_pronunciation *p = &list[n];
        *p = (lin_align_pronunciation){0};
        p->n = lin_dictionary_find(d, word->word, word->n, n, &p->labels);
        if (p->n == 0) break;
        p->stress = lin_dictionary_stress(d, p->labels);
        p->logp = lin_dictionary_logp(d, word->word, word->n, n);
    }
    return n ? lin_align_graph_add(&s->graph, list, n, 1, err) : add_guess(s, lexicon, word, err);
}

/* ---- what is written otherwise than it is said ----------------------------------------------------------------------------- */

// Sequences of phones that are being made of the words of a reading; each NULL where a word has no pronunciation.
typedef struct sequences {
    lin_align_pronunciation items[LIN_ALIGN_PRONUNCIATIONS]; // their labels are owned; the stress is in the same memory
    int n;
} sequences;

static const lin_align_pronunciation nothing = {.n = 0};

enum { EACH = 3, LONGEST = 4096 }; // pronunciations of a word that count in a number; phones of a number

static void free_sequences(sequences *q)
{
    for (int i = 0; i < q->n; i++) lin_free((void *)q->items[i].labels);
    q->n = 0;
}

// Adds a sequence, `a` and then `b`. Of equal phones the first stays.
static lin_status join(sequences *to, const lin_align_pronunciation *a, const lin_align_pronunciation *b, lin_error *err)
{
    const int n = a->n + b->n;
    if (to->n == LIN_ALIGN_PRONUNCIATIONS || n > LONGEST) return LIN_OK;
    int *all = lin_alloc((size_t)n + 1, sizeof *all + 1);
    if (!all) return lin_no_memory(err, "a number", (size_t)n * sizeof *all);
    signed char *stress = (signed char *)(all + n);
    for (int i = 0; i < n; i++) {
        const lin_align_pronunciation *of = i < a->n ? a : b;
        const int k = i < a->n ? i : i - a->n;
        all[i] = of->labels[k];
        stress[i] = of->stress ? of->stress[k] : -1;
    }
    for (int i = 0; i < to->n; i++) {
        if (to->items[i].n != n || memcmp(to->items[i].labels, all, (size_t)n * sizeof *all) != 0) continue;
        lin_free(all);
        return LIN_OK;
    }
    to->items[to->n++] = (lin_align_pronunciation){.labels = all, .n = n, .stress = stress};
    return LIN_OK;
}

// Extends each of q by each pronunciation of a word; none is left if the word has none.
static lin_status extend(lin_spoken *s, const lin_wording *lexicon, sequences *q, const char *word, size_t n_word,
                         lin_error *err)
{
    sequences all = {.n = 0};
    int own[LIN_PRONUNCIATION_MAX];
    lin_align_pronunciation said = {.n = 0};
    lin_status status = LIN_OK;
    for (int k = 0; k < EACH && status == LIN_OK; k++) {
        said.n = lin_dictionary_find(lexicon->dictionary, word, n_word, k, &said.labels);
        if (!said.n) break;
        said.stress = lin_dictionary_stress(lexicon->dictionary, said.labels);
        for (int i = 0; i < q->n && status == LIN_OK; i++) status = join(&all, &q->items[i], &said, err);
    }
    if (status == LIN_OK && !all.n) {
        said = (lin_align_pronunciation){.labels = own};
        status = guess(s, lexicon, word, n_word, own, &said.n, err);
        for (int i = 0; said.n && i < q->n && status == LIN_OK; i++) status = join(&all, &q->items[i], &said, err);
    }
    free_sequences(q);
    *q = all;
    return status;
}

// All pronunciations of a reading; one without a phone if it has no word.
static lin_status read_aloud(lin_spoken *s, const lin_wording *lexicon, const char *reading, sequences *out,
                             lin_error *err)
{
    lin_spelling word;
    size_t at = 0;
    lin_status status = join(out, &nothing, &nothing, err);
    while (status == LIN_OK && (status = lin_reading_next(reading, &at, lexicon->dictionary, &word, err)) == LIN_OK && word.n)
        status = extend(s, lexicon, out, word.word, word.n, err);
    return status;
}

static lin_status add_form(lin_spoken *s, const lin_wording *lexicon, const lin_readings *readings, lin_error *err)
{
    const int n_of = readings->n;
    sequences *of = lin_calloc((size_t)n_of + 1, sizeof *of), *all = of + n_of; // of each reading, and of the number
    if (!of) return lin_no_memory(err, "a number", (size_t)(n_of + 1) * sizeof *of);
    lin_status status = LIN_OK;
    for (int i = 0; i < n_of && status == LIN_OK; i++) status = read_aloud(s, lexicon, readings->items[i], &of[i], err);
    // One of each in turn: a reading of many words, five hundred and fifty five, has more than there is room for.
    for (int k = 0; k < LIN_ALIGN_PRONUNCIATIONS; k++) {
        for (int i = 0; i < n_of && status == LIN_OK; i++)
            if (k < of[i].n && of[i].items[k].n) status = join(all, &of[i].items[k], &nothing, err);
    }
    s->n_any += !all->n;
    if (status == LIN_OK)
        status = all->n ? lin_align_graph_add(&s->graph, all->items, all->n, 1, err) : lin_align_graph_add_any(&s->graph, err);
    for (int i = 0; i <= n_of; i++) free_sequences(&of[i]);
    lin_free(of);
    return status;
}

/* ---- as it is written ------------------------------------------------------------------------------------------------------ */

static int has_blank(const char *text, size_t from, size_t to)
{
    size_t at = from;
    while (at < to && !lin_is_blank(text[at])) at++;
    return at < to;
}

// What stands between two words: punctuation, blanks, marks. Up to the first blank it belongs to the word before, from the last
// one on to the word behind; a dash between blanks to the word before. A mark is dropped; it divides words as a blank does, but
// not a word from its comma: "well</i>, no". A no-break space belongs to the sign beside it, as in French quotation marks, and
// divides the words only if there is no other blank.
static void split_gap(const char *text, size_t from, size_t to, lin_buffer *before, lin_buffer *behind, lin_spoken_place *next)
{
    const int has_other = has_blank(text, from, to);
    int blanks = 0, marks = 0, lines = 0;
    lin_buffer_clear(behind);
    for (size_t at = from, step; at < to; at += step) {
        const size_t mark = lin_mark_length(text + at, to - at), blank = lin_written_blank(text + at, to - at);
        step = mark ? mark : 1;
        if (mark) {
            marks = 1; // [laughs] is not spoken text
        } else if (lin_is_blank(text[at]) || (blank && !has_other)) {
            step = blank;
            if (behind->n && before) lin_buffer_char(before, ' '), lin_buffer_bytes(before, behind->data, behind->n);
            if (before) lin_buffer_clear(behind);
            else if (behind->n && behind->data[behind->n - 1] != ' ') lin_buffer_char(behind, ' '); // "- One"
            blanks = 1;
            lines += text[at] == '\n';
        } else if (!blanks && before) {
            lin_buffer_char(before, text[at]);
        } else {
            lin_buffer_char(behind, text[at]);
        }
    }
    if (!next) return;
    next->glued = !blanks && !marks && from > 0;
    next->line = lines > 1 ? 2 : lines;
}

// Each word with its punctuation, in s->written.
static lin_status keep_written(lin_spoken *s, const char *text, size_t n, lin_error *err)
{
    lin_buffer behind = {0};
    lin_buffer_clear(&s->written);
    split_gap(text, 0, s->places[0].begin, NULL, &behind, &s->places[0]);
    s->places[0].line = 2;
    for (int i = 0; i < s->n; i++) {
        lin_spoken_place *p = &s->places[i], *next = i + 1 < s->n ? p + 1 : NULL;
        p->written = s->written.n;
        if (behind.n) lin_buffer_bytes(&s->written, behind.data, behind.n);
        for (size_t at = p->begin; at < p->end; at++) lin_buffer_char(&s->written, lin_is_blank(text[at]) ? ' ' : text[at]);
        split_gap(text, p->end, next ? next->begin : n, &s->written, &behind, next);
        if (!next && behind.n) lin_buffer_char(&s->written, ' '), lin_buffer_bytes(&s->written, behind.data, behind.n);
        p->n = s->written.n - p->written;
    }
    lin_status status = lin_buffer_status(&behind, err);
    lin_buffer_free(&behind);
    return status == LIN_OK ? lin_buffer_status(&s->written, err) : status;
}

lin_status lin_spoken_write(const lin_spoken *s, lin_result *result, int first, const lin_path *path, lin_error *err)
{
    for (int i = 0; i < path->n_words; i++) {
        const lin_spoken_place *p = &s->places[path->words[i].word];
        LIN_TRY(lin_result_write_word(result, first + i, s->written.data + p->written, p->n, p->glued, p->line, err));
    }
    return LIN_OK;
}

lin_status lin_spoken_words(lin_spoken *s, const lin_wording *lexicon, const char *text, size_t n, lin_error *err)
{
    lin_spelling word;
    lin_word_reader *w = &s->words;
    LIN_TRY(begin(s, lexicon->phones, err));
    lin_readings_clear(&w->readings);
    *w = (lin_word_reader){.written = lexicon->written, .text = text, .n = n, .readings = w->readings};
    for (;;) {
        LIN_TRY(lin_word_reader_next(w, &word, err));
        if (word.marks && s->marks == 0) lin_quote(s->first_mark, text + word.mark, word.n_mark);
        s->marks += word.marks;
        if (!word.n && !w->readings.n) break;
        if (word.n) lin_spelling_settle(&word, lexicon->dictionary);
        LIN_TRY(word.n ? add_word(s, lexicon, &word, err) : add_form(s, lexicon, &w->readings, err));
        LIN_TRY(keep_spelling(s, &word, err));
    }
    if (s->n == 0) return lin_fail(err, LIN_INVALID, "the text is empty: it has no words to align");
    if (s->n_any == s->n) {
        char more[32] = "", shown[LIN_QUOTE];
        if (s->n > 1) snprintf(more, sizeof more, " and %d more", s->n - 1);
        return lin_fail(err, LIN_INVALID, "no pronunciation for %s%s: add to the lexicon; no word of the text has one",
                        lin_quote(shown, s->spellings.data, strlen(s->spellings.data)), more);
    }
    return keep_written(s, text, n, err);
}

lin_status lin_spoken_phones(lin_spoken *s, const lin_phones *phones, const char *text, size_t n, lin_error *err)
{
    lin_lines lines = {0};
    char shown[LIN_QUOTE];
    int mark = 0;
    LIN_TRY(begin(s, phones, err));
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *field;
        size_t n_field;
        while (lin_field_next(&at, lines.text + lines.n, &field, &n_field)) {
            lin_phone_read read[LIN_PHONES_READ_MAX];
            const int found = lin_phones_read(phones, field, n_field, read, LIN_PHONES_READ_MAX, &mark);
            if (!found)
                return lin_fail(err, LIN_INVALID, "'%s' is not a phoneme of the model; linnet info lists them",
                                lin_quote(shown, field, n_field));
            for (int i = 0; i < found; i++) {
                if (lin_phones_kind(phones, read[i].label) == LIN_PHONE_SILENCE) continue;
                const signed char stress = (signed char)read[i].stress;
                LIN_TRY(lin_align_graph_add(
                    &s->graph, &(lin_align_pronunciation){.labels = &read[i].label, .n = 1, .stress = &stress}, 1, 0, err));
            }
        }
    }
    return s->graph.n_slots ? LIN_OK : lin_fail(err, LIN_INVALID, "the text is empty: there are no phonemes");
}

const char *lin_spoken_spell(const void *spoken, int word)
{
    const lin_spoken *s = spoken;
    return word >= 0 && word < s->n ? s->spellings.data + s->places[word].spelling : NULL;
}

void lin_spoken_free(lin_spoken *s)
{
    lin_align_graph_free(&s->graph);
    lin_word_reader_free(&s->words);
    lin_buffer_free(&s->spellings);
    lin_buffer_free(&s->guesses);
    lin_free(s->places);
    lin_buffer_free(&s->written);
    *s = (lin_spoken){0};
}
