// g2p.c - known parts of a word, endings, abbreviations, and rules for the rest; see g2p.h.

#include "lexicon/g2p.h"

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "base/utf8.h"

struct lin_g2p {
    const lin_phones *phones;
    const lin_dictionary *dictionary;
    const lin_g2p_rules *rules; // NULL: none
};

typedef struct pronouncing {
    lin_g2p *g2p;
    int *labels;
    int capacity, n;
    lin_g2p_how how;
    lin_error *err;
} pronouncing;

typedef struct text_span {
    const char *text;
    size_t n;
} text_span;

const char *lin_g2p_how_name(lin_g2p_how how)
{
    static const char *const names[] = {"dictionary", "derived", "spelled", "rules"};
    return (unsigned)how < sizeof names / sizeof *names ? names[how] : "unknown";
}

/* ---- English spelling ------------------------------------------------------------------------------------------------------ */

// Of share/linnet/en/spelling.txt, which says what the fields are; in the library by the Makefile, because a program may bring no
// more than a model and a lexicon.
typedef struct line {
    const char *kind, *text, *by, *phones;
} line;

static const line lines[] = {
#include "lexicon/english_spelling.inc"
};

// The next line of a kind; before: NULL for the first. NULL: no more.
static const line *next_line(const char *kind, const line *before)
{
    for (const line *l = before ? before + 1 : lines; l < lines + sizeof lines / sizeof *lines; l++) {
        if (strcmp(l->kind, kind) == 0) return l;
    }
    return NULL;
}

// What a letter, or a sign, is called.
static const char *name_of(const char *kind, char c)
{
    for (const line *l = NULL; (l = next_line(kind, l)) != NULL;) {
        if (*l->text == c) return l->by;
    }
    return NULL;
}

lin_status lin_g2p_create(const lin_phones *phones, const lin_dictionary *dictionary, const lin_g2p_rules *rules, lin_g2p **g2p,
                          lin_error *err)
{
    const char *at = lin_phones_default, *end = at + strlen(at), *name;
    size_t n;
    *g2p = NULL;
    if (lin_phones_is_own(phones)) end = at;
    for (lin_field_next(&at, end, &name, &n); lin_field_next(&at, end, &name, &n);) {
        if (lin_g2p_label(phones, name, n) < 1) {
            return lin_fail(err, LIN_MISMATCH, "the phone set has no %.*s: unknown words cannot be pronounced with it", (int)n,
                            name);
        }
    }
    lin_g2p *g = lin_calloc(1, sizeof *g);
    if (!g) return lin_no_memory(err, "grapheme to phoneme", sizeof *g);
    *g = (lin_g2p){.phones = phones, .dictionary = dictionary, .rules = rules};
    *g2p = g;
    return LIN_OK;
}

void lin_g2p_destroy(lin_g2p *g) { lin_free(g); }

static lin_status push(pronouncing *p, int label)
{
    if (p->n == p->capacity) return lin_fail(p->err, LIN_TOO_SMALL, "a pronunciation of more than %d phones", p->capacity);
    p->labels[p->n++] = label;
    return LIN_OK;
}

// Appends phones written as CMUdict writes them: "IH Z".
static lin_status push_names(pronouncing *p, const char *names)
{
    const char *at = names, *end = names + strlen(names), *name;
    size_t n;
    lin_status status = LIN_OK;
    while (status == LIN_OK && lin_field_next(&at, end, &name, &n)) status = push(p, lin_g2p_label(p->g2p->phones, name, n));
    return status;
}

static void at_least(pronouncing *p, lin_g2p_how how)
{
    if (how > p->how) p->how = how;
}

// 1 if the dictionary has the word; its pronunciation is appended, and *status says whether it fits.
static int push_known(pronouncing *p, const char *word, size_t n, lin_status *status)
{
    const int *labels;
    int n_labels = p->g2p->dictionary ? lin_dictionary_find(p->g2p->dictionary, word, n, 0, &labels) : 0;
    *status = LIN_OK;
    for (int i = 0; i < n_labels && !*status; i++) *status = push(p, labels[i]);
    return n_labels > 0;
}

// Whether the last phone is one of a list; of an empty one any is.
static int ends_in(const pronouncing *p, const char *set)
{
    if (!*set) return 1;
    if (!p->n) return 0;
    const char *name = lin_phones_name(p->g2p->phones, p->labels[p->n - 1]), *at = set, *end = set + strlen(set), *item;
    size_t n, n_name = strlen(name);
    while (lin_field_next(&at, end, &item, &n)) {
        if (n == n_name && !memcmp(item, name, n)) return 1;
    }
    return 0;
}

// Phones, or the kind of lines that choose them by the phone before: "-s".
static lin_status push_ending(pronouncing *p, const char *phones)
{
    if (*phones != '-') return push_names(p, phones);
    const line *l = NULL;
    while ((l = next_line(phones, l)) != NULL && !ends_in(p, l->text)) {
    }
    return l ? push_names(p, l->by) : LIN_OK;
}

static int ends_with(const char *word, size_t n, const char *suffix)
{
    size_t k = strlen(suffix);
    return n > k && !memcmp(word + n - k, suffix, k);
}

static int push_from_ending(pronouncing *p, const char *word, size_t n, lin_status *status)
{
    char base[LIN_WORD_MAX + 2];
    for (const line *l = NULL; (l = next_line("ending", l)) != NULL;) {
        size_t keep = n - strlen(l->text), extra = strlen(l->by);
        if (!ends_with(word, n, l->text) || keep + extra < 3) continue;
        if (!strcmp(l->phones, "-s") && ends_with(word, n, "ss")) continue;
        memcpy(base, word, keep);
        memcpy(base + keep, l->by, extra);
        if (push_known(p, base, keep + extra, status)) {
            at_least(p, LIN_G2P_DERIVED);
            if (!*status) *status = push_ending(p, l->phones);
            return 1;
        }
    }
    return 0;
}

static int push_from_spelling(pronouncing *p, const char *word, size_t n, lin_status *status)
{
    char other[LIN_WORD_MAX + 2];
    for (const line *l = NULL; (l = next_line("spelling", l)) != NULL;) {
        size_t from = strlen(l->text), to = strlen(l->by);
        for (size_t at = 1; at + from <= n; at++) {
            if (memcmp(word + at, l->text, from)) continue;
            memcpy(other, word, at);
            memcpy(other + at, l->by, to);
            memcpy(other + at + to, word + at + from, n - at - from);
            size_t n_other = n - from + to;
            if (push_known(p, other, n_other, status) || push_from_ending(p, other, n_other, status)) {
                at_least(p, LIN_G2P_DERIVED);
                return 1;
            }
        }
    }
    return 0;
}

// An abbreviation that can only be spelt: two to five different letters in a row, none of them a vowel.
static int is_abbreviation(const char *word, size_t n)
{
    const char *vowels = next_line("vowels", NULL)->text;
    for (size_t i = 0; i < n; i++) {
        if (strchr(vowels, word[i]) || (i && word[i] == word[i - 1])) return 0;
    }
    return n >= 1 && n <= 5;
}

static lin_status push_letters(pronouncing *p, const char *word, size_t n)
{
    lin_status status = LIN_OK;
    at_least(p, LIN_G2P_SPELLED);
    for (size_t i = 0; i < n && status == LIN_OK; i++) status = push_names(p, name_of("letter", word[i]));
    return status;
}

static lin_status push_rules(pronouncing *p, const char *word, size_t n)
{
    int n_labels;
    if (!p->g2p->rules) {
        return lin_fail(p->err, LIN_UNSUPPORTED,
                        "'%.*s' is not in the dictionary, and %s; add the word to the dictionary, or name rules with --g2p or "
                        "LINNET_G2P (linnet g2p makes them)",
                        (int)n, word,
                        lin_phones_is_own(p->g2p->phones) ? "there are no letter-to-sound rules for these phones"
                                                          : "no letter-to-sound rules are installed (words.g2p)");
    }
    at_least(p, LIN_G2P_RULES);
    const lin_status status =
        lin_g2p_rules_apply(p->g2p->rules, word, n, p->labels + p->n, p->capacity - p->n, &n_labels, p->err);
    if (status != LIN_OK) return status;
    p->n += n_labels;
    return n_labels ? LIN_OK : push_letters(p, word, n); // all letters are silent
}

// A piece that has only letters.
static lin_status push_piece(pronouncing *p, text_span s)
{
    lin_status status;
    if (push_known(p, s.text, s.n, &status)) return status;
    if (push_from_ending(p, s.text, s.n, &status)) return status;
    if (push_from_spelling(p, s.text, s.n, &status)) return status;
    if (is_abbreviation(s.text, s.n)) return push_letters(p, s.text, s.n);
    return push_rules(p, s.text, s.n);
}

static text_span without_quotes(text_span s)
{
    while (s.n && (s.text[0] == '\'' || s.text[0] == '-')) s = (text_span){s.text + 1, s.n - 1};
    while (s.n && (s.text[s.n - 1] == '\'' || s.text[s.n - 1] == '-')) s.n--;
    return s;
}

// A word between hyphens: letters and apostrophes.
static lin_status push_word(pronouncing *p, text_span s)
{
    lin_status status;
    if (push_known(p, s.text, s.n, &status)) return status;
    s = without_quotes(s);
    if (!s.n || push_known(p, s.text, s.n, &status)) return status;
    const char *apostrophe = memchr(s.text, '\'', s.n);
    if (!apostrophe) return push_piece(p, s);
    at_least(p, LIN_G2P_DERIVED);
    for (const line *l = NULL; (l = next_line("apostrophe", l)) != NULL;) {
        if (!ends_with(s.text, s.n, l->text)) continue;
        if ((status = push_word(p, (text_span){s.text, s.n - strlen(l->text)}))) return status;
        return push_ending(p, l->by);
    }
    size_t n_head = (size_t)(apostrophe - s.text);
    const char *sound = n_head == 1 ? name_of("elided", s.text[0]) : NULL;
    status = sound ? push_names(p, sound) : push_piece(p, (text_span){s.text, n_head});
    if (status != LIN_OK) return status;
    return push_word(p, (text_span){apostrophe + 1, s.n - n_head - 1});
}

/* ---- other languages ------------------------------------------------------------------------------------------------------- */

// A word between hyphens, by the dictionary or the rules. An apostrophe that they do not know is left out.
static lin_status push_own_piece(pronouncing *p, text_span s)
{
    char letters[LIN_WORD_MAX];
    lin_status status;
    if (push_known(p, s.text, s.n, &status)) return status;
    s = without_quotes(s);
    if (!s.n || push_known(p, s.text, s.n, &status)) return status;
    const lin_g2p_rules *rules = p->g2p->rules;
    const int keeps = !rules || lin_g2p_rules_know(rules, '\'');
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (keeps || s.text[i] != '\'') letters[n++] = s.text[i];
    if (!rules) return push_rules(p, letters, n);
    int n_labels;
    at_least(p, LIN_G2P_RULES);
    status = lin_g2p_rules_apply(rules, letters, n, p->labels + p->n, p->capacity - p->n, &n_labels, p->err);
    if (status == LIN_OK) p->n += n_labels;
    return status;
}

static lin_status pronounce_own(pronouncing *p, const char *word, size_t n)
{
    lin_status status;
    char shown[LIN_QUOTE];
    int n_letters = 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code;
        step = lin_utf8_decode(word + at, n - at, &code);
        const int is_letter = step && (code < 0x80 ? lin_is_letter((char)code) : lin_unicode_is_letter(code));
        n_letters += is_letter;
        if (!is_letter && (!step || !strchr("'-&", word[at])))
            return lin_fail(p->err, LIN_INVALID, "'%s' is not a word of letters, apostrophes and hyphens",
                            lin_quote(shown, word, n));
    }
    if (!n_letters) return lin_fail(p->err, LIN_INVALID, "'%s' has no letters", lin_quote(shown, word, n));
    if (push_known(p, word, n, &status)) return status;
    const text_span all = without_quotes((text_span){word, n});
    if (memchr(all.text, '-', all.n) || memchr(all.text, '&', all.n)) at_least(p, LIN_G2P_DERIVED);
    for (size_t at = 0; at < all.n && status == LIN_OK; at++) {
        const size_t begin = at;
        while (at < all.n && all.text[at] != '-' && all.text[at] != '&') at++;
        if (at > begin) status = push_own_piece(p, (text_span){all.text + begin, at - begin});
    }
    if (status == LIN_OK && p->n == 0)
        return lin_fail(p->err, LIN_UNSUPPORTED, "all letters of '%s' are silent by the letter-to-sound rules; add it to the "
                                                 "dictionary", lin_quote(shown, word, n));
    return status;
}

/* ---- any word -------------------------------------------------------------------------------------------------------------- */

// In lower case, and English letters without accents. *n_lower: its bytes, at most LIN_WORD_MAX.
static lin_status plain_word(const lin_g2p *g, const char *word, size_t n, char *lower, size_t *n_lower, lin_error *err)
{
    char shown[LIN_QUOTE];
    *n_lower = lin_unicode_lower_text(lower, word, n);
    if (lin_phones_is_own(g->phones)) return LIN_OK;
    size_t used = 0;
    for (size_t at = 0, step; at < *n_lower; at += step) {
        unsigned code, mark, letter;
        step = lin_utf8_decode(lower + at, *n_lower - at, &code);
        while (step && code >= 0x80 && (letter = lin_unicode_split(code, &mark)) != 0) code = letter;
        if (!step) return lin_fail(err, LIN_INVALID, "'%s' is not a word of letters, apostrophes and hyphens",
                                   lin_quote(shown, word, n));
        if (code >= 0x80)
            return lin_fail(err, LIN_INVALID, "the letter U+%04X of '%s' is none of English spelling", code,
                            lin_quote(shown, word, n));
        lower[used++] = (char)code;
    }
    *n_lower = used;
    return LIN_OK;
}

lin_status lin_g2p_pronounce(lin_g2p *g2p, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                             lin_g2p_how *how, lin_error *err)
{
    char lower[LIN_WORD_MAX], shown[LIN_QUOTE];
    int n_letters = 0;
    pronouncing p = {.g2p = g2p, .labels = labels, .capacity = capacity, .how = LIN_G2P_DICTIONARY, .err = err};
    lin_status status = LIN_OK;
    *n_labels = 0;
    if (n > LIN_WORD_MAX) return lin_fail(err, LIN_INVALID, "a word of %zu letters: '%s'", n, lin_quote(shown, word, n));
    status = plain_word(g2p, word, n, lower, &n, err);
    if (status == LIN_OK && lin_phones_is_own(g2p->phones)) status = pronounce_own(&p, lower, n);
    if (status != LIN_OK || lin_phones_is_own(g2p->phones)) {
        *n_labels = status == LIN_OK ? p.n : 0;
        if (how) *how = p.how;
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        n_letters += lin_is_letter(lower[i]);
        if (!lin_is_letter(lower[i]) && lower[i] != '\'' && lower[i] != '-' && lower[i] != '&') {
            return lin_fail(err, LIN_INVALID, "'%s' is not a word of letters, apostrophes and hyphens",
                            lin_quote(shown, word, n));
        }
    }
    if (!n_letters) return lin_fail(err, LIN_INVALID, "'%s' has no letters", lin_quote(shown, word, n));
    if (!push_known(&p, lower, n, &status)) {
        text_span word_span = without_quotes((text_span){lower, n});
        if (memchr(word_span.text, '-', word_span.n) || memchr(lower, '&', n)) at_least(&p, LIN_G2P_DERIVED);
        for (size_t at = 0; at < n && status == LIN_OK; at++) {
            size_t begin = at;
            while (at < n && lower[at] != '-' && lower[at] != '&') at++;
            const int is_joined = (begin && lower[begin - 1] == '&') || (at < n && lower[at] == '&');
            const int is_spelled = is_joined && at - begin <= 2 && !memchr(lower + begin, '\'', at - begin); // "AT&T"
            if (is_spelled) status = push_letters(&p, lower + begin, at - begin);
            else if (at > begin) status = push_word(&p, (text_span){lower + begin, at - begin});
            if (at < n && lower[at] == '&' && status == LIN_OK) status = push_names(&p, name_of("and", '&'));
        }
    }
    if (status != LIN_OK) return status;
    *n_labels = p.n;
    if (how) *how = p.how;
    return LIN_OK;
}
