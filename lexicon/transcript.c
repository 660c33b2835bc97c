// transcript.c - words of a text, looked up, folded and pronounced; see transcript.h.

#include "lexicon/transcript.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"

typedef struct unknown_item {
    size_t offset; // of its labels in `pool`
    int n_labels;
    long count;
    lin_g2p_how how;
} unknown_item;

struct lin_transcriber {
    const lin_dictionary *dictionary;
    lin_g2p *g2p;
    lin_word_reader words;
    int *labels; // of the current line
    size_t n_labels, labels_capacity;
    signed char *stress; // [n_labels]
    size_t stress_capacity;
    lin_symbols unknown;
    unknown_item *items;
    size_t items_capacity;
    int *pool;
    size_t n_pool, pool_capacity;
    long n_words, n_unknown, n_marks;
    int allows_missing, n_missing; // words without a pronunciation, in the current line
    char first_mark[LIN_QUOTE];
};

lin_status lin_transcriber_create(const lin_dictionary *dictionary, lin_g2p *g2p, lin_transcriber **transcriber, lin_error *err)
{
    lin_transcriber *t = lin_calloc(1, sizeof *t);
    *transcriber = t;
    if (!t) return lin_no_memory(err, "a transcriber", sizeof *t);
    t->dictionary = dictionary;
    t->g2p = g2p;
    return LIN_OK;
}

void lin_transcriber_destroy(lin_transcriber *t)
{
    if (!t) return;
    lin_word_reader_free(&t->words);
    lin_free(t->labels);
    lin_free(t->stress);
    lin_symbols_free(&t->unknown);
    lin_free(t->items);
    lin_free(t->pool);
    lin_free(t);
}

// stress: NULL where it is not known.
static lin_status append(lin_transcriber *t, const int *labels, const signed char *stress, int n, lin_error *err)
{
    if (t->n_labels + (size_t)n > INT_MAX / 2) return lin_fail(err, LIN_FORMAT, "the transcript has over %d phones", INT_MAX / 2);
    LIN_TRY(lin_grow(&t->labels, &t->labels_capacity, t->n_labels + (size_t)n, sizeof *t->labels, "a transcript", err));
    LIN_TRY(lin_grow(&t->stress, &t->stress_capacity, t->n_labels + (size_t)n, sizeof *t->stress, "a transcript", err));
    if (n) memcpy(t->labels + t->n_labels, labels, (size_t)n * sizeof *labels);
    for (int i = 0; i < n; i++) t->stress[t->n_labels + (size_t)i] = stress ? stress[i] : -1;
    t->n_labels += (size_t)n;
    return LIN_OK;
}

// A word outside the dictionary, with the pronunciation from its first occurrence.
static lin_status append_unknown(lin_transcriber *t, int index, lin_error *err)
{
    unknown_item *item = &t->items[index];
    item->count++;
    t->n_unknown++;
    t->n_missing += !item->n_labels;
    return append(t, t->pool + item->offset, NULL, item->n_labels, err);
}

static lin_status add_unknown(lin_transcriber *t, const lin_spelling *g, const int *labels, int n, lin_g2p_how how,
                              lin_error *err)
{
    int index;
    LIN_TRY(lin_grow(&t->items, &t->items_capacity, (size_t)t->unknown.n + 1, sizeof *t->items, "a transcript", err));
    LIN_TRY(lin_grow(&t->pool, &t->pool_capacity, t->n_pool + (size_t)n, sizeof *t->pool, "a transcript", err));
    LIN_TRY(lin_symbols_add(&t->unknown, g->word, g->n, &index, err));
    t->items[index] = (unknown_item){.offset = t->n_pool, .n_labels = n, .how = how};
    if (n) memcpy(t->pool + t->n_pool, labels, (size_t)n * sizeof *labels);
    t->n_pool += (size_t)n;
    return append_unknown(t, index, err);
}

static lin_status append_word(lin_transcriber *t, const lin_spelling *g, lin_error *err)
{
    const int *known;
    int labels[LIN_PRONUNCIATION_MAX], n_labels;
    char shown[LIN_QUOTE];
    lin_g2p_how how = LIN_G2P_RULES;
    lin_error why;
    t->n_words++;
    if ((n_labels = lin_dictionary_find(t->dictionary, g->word, g->n, 0, &known)) > 0)
        return append(t, known, lin_dictionary_stress(t->dictionary, known), n_labels, err);
    const int index = lin_symbols_find(&t->unknown, g->word, g->n);
    if (index >= 0) return append_unknown(t, index, err);
    if (!t->g2p)
        return lin_fail(err, LIN_INVALID, "'%s' at byte %zu is not in the dictionary", lin_quote(shown, g->word, g->n),
                        g->begin + 1);
    const lin_status status = lin_g2p_pronounce(t->g2p, g->word, g->n, labels, LIN_PRONUNCIATION_MAX, &n_labels, &how, &why);
    if (status != LIN_OK && (status == LIN_NO_MEMORY || !t->allows_missing)) return lin_fail_as(err, &why);
    return add_unknown(t, g, labels, status == LIN_OK ? n_labels : 0, how, err);
}

// A character of n bytes, in lower case.
static lin_status add_letter(lin_spelling *g, const char *c, size_t n, size_t at, lin_error *err)
{
    char shown[LIN_QUOTE];
    if (g->n + n > LIN_WORD_MAX)
        return lin_fail(err, LIN_INVALID, "the word '%s' at byte %zu is longer than %d bytes", lin_quote(shown, g->word, g->n),
                        g->begin + 1, LIN_WORD_MAX);
    if (!g->n) g->begin = at;
    g->n += lin_unicode_lower_text(g->word + g->n, c, n);
    return LIN_OK;
}

// The class of a character outside ASCII: 'a' for letters, an apostrophe, a hyphen, a space for punctuation, or 0 if it is none.
static char fold(unsigned code)
{
    if (code == 0x2019 || code == 0x2018 || code == 0x2BC) return '\'';
    if (code == 0x2010 || code == 0x2011) return '-';
    if (lin_unicode_is_letter(code)) return 'a';
    if (code == 0xA0 || code == 0xA1 || code == 0xAB || code == 0xBB || code == 0xBF || code == 0xB7) return ' ';
    if (code == 0x2030 || code == 0x2031 || code == 0xFF03 || code == 0xFF05 || code == 0xFF06 || code == 0xFF20)
        return 0; // signs that are said: per mille; and the wide "#", "%", "&" and "@"
    if (code >= 0x2000 && code <= 0x206F) return ' '; // general punctuation: dashes, quotes, ellipsis, spaces
    return lin_unicode_is_punctuation(code) ? ' ' : 0;
}

// ASCII characters that separate words. Characters that are read as a word ("&", "%") are not in it.
static int is_separator(char c) { return c && strchr(" \t\r\n.,;:!?\"()[]{}<>/_*~|`", c) != NULL; }

// The class of the next character: a letter, apostrophe or hyphen, or ' ' for a separator. *step: its bytes.
static lin_status next_character(const char *text, size_t n, size_t at, char *counts_as, size_t *step, lin_error *err)
{
    char c = text[at];
    unsigned code = 0;
    *step = 1;
    if ((unsigned char)c >= 0x80) {
        *step = lin_utf8_decode(text + at, n - at, &code);
        if (!*step) return lin_fail(err, LIN_FORMAT, "byte %zu, 0x%02x, is not UTF-8", at + 1, (unsigned char)c);
        c = fold(code);
        if (!c)
            return lin_fail(err, LIN_FORMAT, "the character U+%04X at byte %zu: no rule reads it; write numbers and symbols as "
                                             "the words that were said", code, at + 1);
    }
    const int is_dash = c == '-' && ((at && text[at - 1] == '-') || (at + 1 < n && text[at + 1] == '-')); // "end--and"
    *counts_as = is_separator(c) || is_dash ? ' ' : c;
    if (lin_is_letter(c) || c == '\'' || c == '-' || *counts_as == ' ') return LIN_OK;
    if (c == '&' && at && at + 1 < n && lin_is_letter(text[at - 1]) && lin_is_letter(text[at + 1])) return LIN_OK; // AT&T
    if ((unsigned char)c < 32 || c == 127)
        return lin_fail(err, LIN_FORMAT, "the text has a control character, 0x%02x, at byte %zu", (unsigned char)c, at + 1);
    return lin_fail(err, LIN_FORMAT, "'%c' at byte %zu: no rule reads it; write numbers and symbols as the words that were said",
                    c, at + 1);
}

lin_status lin_spelling_next(const char *text, size_t n, size_t *at, lin_spelling *spelling, lin_error *err)
{
    int has_letter = 0;
    *spelling = (lin_spelling){.n = 0};
    while (*at < n) {
        char c = ' ';
        size_t step = lin_mark_length(text + *at, n - *at);
        if (step && has_letter) return LIN_OK;
        if (step) {
            if (spelling->marks++ == 0) spelling->mark = *at, spelling->n_mark = step;
            spelling->n = 0;
            *at += step;
            continue;
        }
        lin_status status = next_character(text, n, *at, &c, &step, err);
        if (status == LIN_OK && c != ' ') {
            const int is_other = (unsigned char)text[*at] >= 0x80 && lin_is_letter(c);
            status = is_other ? add_letter(spelling, text + *at, step, *at, err) : add_letter(spelling, &c, 1, *at, err);
        }
        if (status != LIN_OK) return status;
        *at += step;
        if (c != ' ') {
            has_letter |= lin_is_letter(c);
            spelling->end = *at;
        } else if (has_letter) {
            return LIN_OK;
        } else {
            spelling->n = 0; // a dash or a quotation mark between spaces
        }
    }
    if (!has_letter) spelling->n = 0;
    return LIN_OK;
}

size_t lin_spelling_plain(const lin_spelling *spelling, char out[LIN_WORD_MAX])
{
    size_t used = 0;
    int accents = 0;
    for (size_t at = 0, step; at < spelling->n; at += step) {
        unsigned code, mark, letter;
        step = lin_utf8_decode(spelling->word + at, spelling->n - at, &code);
        if (!step) return 0;
        while (code >= 0x80 && (letter = lin_unicode_split(code, &mark)) != 0) code = letter, accents = 1;
        used += lin_utf8_encode(code, out + used); // never longer: the table has Latin, Greek and Cyrillic letters
    }
    return accents ? used : 0;
}

void lin_spelling_settle(lin_spelling *spelling, const lin_dictionary *dictionary)
{
    char plain[LIN_WORD_MAX];
    const char *word = spelling->word;
    if (lin_dictionary_find(dictionary, word, spelling->n, 0, NULL)) return;
    const size_t n = lin_dictionary_is_own(dictionary) ? 0 : lin_spelling_plain(spelling, plain);
    if (n) memcpy(spelling->word, plain, spelling->n = n);
    const size_t bare = lin_word_trim(&word, spelling->n);
    if (lin_dictionary_find(dictionary, word, bare, 0, NULL)) memmove(spelling->word, word, spelling->n = bare);
}

// The next form from words->at on. Forms inside marks such as [laughs] do not count.
static lin_status find_form(lin_word_reader *w, lin_error *err)
{
    lin_status status = LIN_OK;
    w->end = 0;
    for (w->next = w->at; w->next < w->n && status == LIN_OK && !w->end;) {
        const size_t mark = lin_mark_length(w->text + w->next, w->n - w->next);
        if (!mark) status = lin_written_match(w->written, w->text, w->n, w->next, &w->end, &w->readings, err);
        if (!w->end) w->next += mark ? mark : 1;
    }
    if (!w->end) w->end = SIZE_MAX;
    return status;
}

lin_status lin_reading_next(const char *reading, size_t *at, const lin_dictionary *dictionary, lin_spelling *word,
                            lin_error *err)
{
    const int is_part = *at && reading[*at] == '+';
    *word = (lin_spelling){0};
    *at += strspn(reading + *at, " +");
    const char *from = reading + *at;
    size_t n = strcspn(from, " ");
    if (n > LIN_WORD_MAX) return lin_fail(err, LIN_INVALID, "one word of a number has over %d letters", LIN_WORD_MAX);
    for (size_t i = 0; i < n && !is_part; i++)
        if (from[i] != '+') word->word[word->n++] = from[i];
    if (is_part || (dictionary && word->n < n && !lin_dictionary_find(dictionary, word->word, word->n, 0, NULL))) {
        n = word->n = strcspn(from, " +");
        memcpy(word->word, from, n);
    }
    *at += n;
    return LIN_OK;
}

lin_status lin_word_reader_next(lin_word_reader *w, lin_spelling *word, lin_error *err)
{
    lin_status status = LIN_OK;
    if (!w->written) w->next = w->n, w->end = SIZE_MAX;
    else if (!w->end || w->next < w->at) status = find_form(w, err);
    if (status == LIN_OK) status = lin_spelling_next(w->text, w->next, &w->at, word, err);
    if (status != LIN_OK || word->n) return status;
    if (w->next == w->n) {
        lin_readings_clear(&w->readings);
        return LIN_OK;
    }
    word->begin = w->next;
    word->end = w->at = w->end;
    w->end = 0;
    return LIN_OK;
}

void lin_word_reader_free(lin_word_reader *w)
{
    lin_readings_free(&w->readings);
    *w = (lin_word_reader){0};
}

// A spelled letter, whose period is part of the word in CMUdict: "A." is EY, "a" is not; "B.'s". *at, after the period, moves to
// its end. Other words are left as they are.
static void take_spelled(const lin_transcriber *t, const char *text, size_t n, lin_spelling *word, size_t *at)
{
    if (word->n != 1 || word->end != word->begin + 1 || word->end >= n || text[word->end] != '.') return;
    size_t end = word->end + 1;
    word->word[word->n++] = '.';
    if (end + 1 < n && text[end] == '\'' && lin_lower(text[end + 1]) == 's' && (end + 2 == n || !lin_is_letter(text[end + 2]))) {
        memcpy(word->word + 2, "'s", 2);
        word->n = 4;
        end += 2;
    }
    if (lin_dictionary_find(t->dictionary, word->word, word->n, 0, NULL)) word->end = *at = end;
    else word->n = 1;
}

static void count_marks(lin_transcriber *t, const char *text, const lin_spelling *word)
{
    if (t->n_marks == 0) lin_quote(t->first_mark, text + word->mark, word->n_mark);
    t->n_marks += word->marks;
}

static lin_status append_reading(lin_transcriber *t, const char *reading, lin_error *err)
{
    lin_spelling word;
    size_t at = 0;
    do {
        LIN_TRY(lin_reading_next(reading, &at, t->dictionary, &word, err));
        if (word.n) LIN_TRY(append_word(t, &word, err));
    } while (word.n);
    return LIN_OK;
}

void lin_transcriber_allow_missing(lin_transcriber *t) { t->allows_missing = 1; }

int lin_transcriber_missing(const lin_transcriber *t) { return t->n_missing; }

void lin_transcriber_read_written(lin_transcriber *t, const lin_written *written) { t->words.written = written; }

static lin_status read_line(lin_transcriber *t, const char *text, size_t n, lin_error *err)
{
    lin_spelling word;
    lin_word_reader *w = &t->words;
    w->text = text;
    w->n = n;
    w->at = w->next = w->end = 0;
    for (;;) {
        lin_status status = lin_word_reader_next(w, &word, err);
        if (status == LIN_OK && word.marks) count_marks(t, text, &word);
        if (status == LIN_OK && word.n) lin_spelling_settle(&word, t->dictionary);
        if (status == LIN_OK && word.n) take_spelled(t, text, n, &word, &w->at);
        if (status == LIN_OK && word.n) status = append_word(t, &word, err);
        else if (status == LIN_OK && w->readings.n) status = append_reading(t, w->readings.items[0], err);
        else return status;
        if (status != LIN_OK) return status;
    }
}

lin_status lin_transcriber_line(lin_transcriber *t, const char *text, size_t n, const int **labels, int *n_labels, lin_error *err)
{
    char *own;
    t->n_labels = 0;
    t->n_missing = 0;
    *labels = NULL;
    *n_labels = 0;
    // lin_unicode_clean could read it, but a file that was split at its line ends is split within characters.
    if (n >= 2 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2)))
        return lin_fail(err, LIN_FORMAT, "the text is UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8");
    lin_status status = lin_unicode_clean(text, n, NULL, LIN_UNICODE_ANY, &own, &text, &n, err);
    if (status == LIN_OK) status = read_line(t, text, n, err);
    lin_free(own);
    if (status != LIN_OK) return status;
    *labels = t->labels;
    *n_labels = (int)t->n_labels;
    return LIN_OK;
}

const signed char *lin_transcriber_stress(const lin_transcriber *t) { return t->stress; }

long lin_transcriber_words(const lin_transcriber *t) { return t->n_words; }

long lin_transcriber_unknown_words(const lin_transcriber *t) { return t->n_unknown; }

long lin_transcriber_marks(const lin_transcriber *t, const char **first)
{
    if (first) *first = t->first_mark;
    return t->n_marks;
}

int lin_transcriber_unknown_count(const lin_transcriber *t) { return t->unknown.n; }

lin_unknown_word lin_transcriber_unknown(const lin_transcriber *t, int index)
{
    const unknown_item *item = &t->items[index];
    return (lin_unknown_word){.word = lin_symbols_text(&t->unknown, index),
                              .count = item->count,
                              .labels = t->pool + item->offset,
                              .n_labels = item->n_labels,
                              .how = item->how};
}

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

lin_status lin_transcriber_order(const lin_transcriber *t, int **order, lin_error *err)
{
    const int n = t->unknown.n;
    rank *ranks = lin_alloc((size_t)n, sizeof *ranks);
    *order = ranks ? lin_alloc((size_t)n, sizeof **order) : NULL;
    for (int i = 0; i < n && *order; i++) ranks[i] = (rank){t->items[i].count, i};
    if (n && *order) qsort(ranks, (size_t)n, sizeof *ranks, by_count);
    for (int i = 0; i < n && *order; i++) (*order)[i] = ranks[i].index;
    lin_free(ranks);
    return *order ? LIN_OK : lin_no_memory(err, "the list of unknown words", (size_t)n * sizeof *ranks);
}

/* ---- marks that are not words ---------------------------------------------------------------------------------------------- */

// Without -s, -es, -ed, -ing; a final e falls before -ing and -ed.
static const char *const sounds[] = {
    "applause", "background", "beep",   "bleep",   "breath",  "breathe", "buzz",   "chuckle", "clap",     "clears",
    "click",    "cough",      "clearing", "crosstalk", "cry",    "exhale",  "gasp",    "giggle", "groan",   "grunt",    "gulp",
    "hiccup",   "hum",        "inaudible", "indistinct", "inhale", "laugh", "laughter", "lip",  "moan",    "mumble",   "music",
    "noise",    "pause",      "ringing","sigh",     "silence", "sing",    "smack",   "sneeze", "sniff",   "sniffle",  "snore",
    "snort",    "sob",        "static", "throat",   "unclear", "unintelligible", "whistle", "yawn", "cries", "humming", "sobbing",
    "clapping", "sil",        "spn",    "nsn",      "unk"};

static int is_form_of(const char *stem, const char *word, size_t n)
{
    static const char *const ends[] = {"", "s", "es", "ed", "ing"};
    size_t k = strlen(stem);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t kept = k - (i > 2 && stem[k - 1] == 'e'), end = strlen(ends[i]);
        if (kept + end == n && !memcmp(word, stem, kept) && !memcmp(word + kept, ends[i], end)) return 1;
    }
    return 0;
}

// At most three words, of which the first names a sound.
static int is_of_sounds(const char *text, size_t n)
{
    char word[24];
    size_t n_word = 0, at = 0;
    int words = 0, found = 0;
    while (at < n && lin_is_letter(text[at])) at++;
    if (at == 0 || at >= sizeof word || (at < n && text[at] != ' ' && text[at] != ',' && text[at] != '-')) return 0;
    for (; n_word < at; n_word++) word[n_word] = lin_lower(text[n_word]);
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds && !found; i++) found = is_form_of(sounds[i], word, n_word);
    for (size_t i = 0; i < n; i++) words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    return found && words <= 3;
}

size_t lin_mark_length(const char *text, size_t n)
{
    static const char opening[] = "[<({*", closing[] = "]>)}*";
    const char *kind = n ? memchr(opening, text[0], sizeof opening - 1) : NULL;
    if (!kind && n > 3 && !memcmp(text, "&=", 2) && lin_is_letter(text[2])) {
        size_t at = 2;
        while (at < n && (lin_is_letter(text[at]) || text[at] == ':' || text[at] == '_')) at++;
        return at <= LIN_MARK_MAX ? at : 0;
    }
    if (!kind) return 0;
    const char close = closing[kind - opening];
    if (n > LIN_MARK_MAX) n = LIN_MARK_MAX;
    size_t at = 1;
    for (; at < n && text[at] != close; at++) {
        if ((unsigned char)text[at] < ' ' || text[at] == 127 || text[at] == *kind) return 0;
    }
    if (at >= n || at == 1) return 0;
    return kind - opening < 2 || is_of_sounds(text + 1, at - 1) ? at + 1 : 0;
}
