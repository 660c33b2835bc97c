// g2p.c - letter-to-sound rules by a beam search; and words: known parts, endings, abbreviations, rules for the rest; see g2p.h.

#include "lexicon/g2p.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/dictionary.h"

/* ---- letter-to-sound rules ------------------------------------------------------------------------------------------------- */

enum { BEAM = 48 };

typedef struct pair {
    unsigned letter;
    int word; // of the n-gram model
    int n;
    int labels[2];
} pair;

struct lin_g2p_rules {
    lin_ngram *lm;
    pair *pairs; // sorted by letter
    int n_pairs;
};

// The pairs of a letter: from .. to - 1.
typedef struct pairs_of {
    int from, to;
} pairs_of;

// The best path to a state of the n-gram model: the pronunciation of the first letters, or the spelling of the first phones.
typedef struct hypothesis {
    lin_ngram_state state;
    float logp;
    int at;       // its last pair; of a spelling, its last node
    int back;     // of a pronunciation: the hypothesis of the letter before
    int n_silent; // of a spelling: letters without a sound at its end
} hypothesis;

// The label of a phone by its CMUdict name: without stress, or "AH0" if the set has only phones with stress; -1: there is none.
static int label_of_name(const lin_phones *phones, const char *name, size_t n)
{
    lin_phone_read read;
    int mark = 0;
    return lin_phones_read(phones, name, n, &read, 1, &mark) ? read.label : -1;
}

// Up to two phones, "K+S"; a name may contain a plus sign itself. 0: there are more, or one is empty. -1: the set lacks one.
static int parse_phones(const char *text, const lin_phones *phones, pair *p)
{
    const size_t n = strlen(text);
    p->n = 0;
    if (!n) return 1;
    p->labels[0] = label_of_name(phones, text, n);
    if (p->labels[0] > 0) return p->n = 1;
    int signs = 0, ways = 0;
    for (const char *at = text; (at = strchr(at, '+')) != NULL; at++) {
        const size_t n_first = (size_t)(at - text);
        signs++;
        if (n_first == 0 || n_first + 1 == n) continue;
        ways++;
        p->labels[0] = label_of_name(phones, text, n_first);
        p->labels[1] = label_of_name(phones, at + 1, n - n_first - 1);
        if (p->labels[0] > 0 && p->labels[1] > 0) {
            p->n = 2;
            return 1;
        }
    }
    return signs == 0 || ways == 1 ? -1 : 0;
}

// Parses "x|K+S". Returns 0 if it is not a pair, -1 if the phone set lacks a phone.
static int parse_pair(const char *text, const lin_phones *phones, pair *p)
{
    const size_t step = lin_utf8_decode(text, strlen(text), &p->letter);
    const int is_ascii = p->letter < 0x80, is_plain = is_ascii && (lin_is_letter((char)p->letter) || p->letter == '\'');
    if (!step || text[step] != '|' || !(is_ascii ? is_plain : lin_unicode_is_letter(p->letter))) return 0;
    if (lin_unicode_lower(p->letter) != p->letter) return 0;
    return parse_phones(text + step + 1, phones, p);
}

static int by_letter(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->letter != y->letter) return x->letter < y->letter ? -1 : 1;
    return x->word < y->word ? -1 : x->word > y->word;
}

static lin_status gather(lin_g2p_rules *r, const char *name, const lin_phones *phones, lin_error *err)
{
    char shown[LIN_QUOTE];
    const int n = lin_ngram_words(r->lm);
    r->pairs = lin_alloc((size_t)n, sizeof *r->pairs);
    if (!r->pairs) return lin_no_memory(err, "letter-to-sound rules", (size_t)n * sizeof *r->pairs);
    for (int i = 0; i < n; i++) {
        const char *text = lin_ngram_word(r->lm, i);
        pair p = {.word = i};
        if (text[0] == '<') continue; // <s>, </s>, <unk>
        const int parsed = parse_pair(text, phones, &p);
        lin_quote(shown, text, strlen(text));
        if (parsed == 0)
            return lin_fail(err, LIN_MISMATCH,
                            "%s is not a set of letter-to-sound rules: '%s' is not a pair of a letter and its phones; "
                            "linnet g2p makes one",
                            name, shown);
        if (parsed < 0) return lin_fail(err, LIN_MISMATCH, "%s: the phone set lacks a phone of '%s'", name, shown);
        r->pairs[r->n_pairs++] = p;
    }
    qsort(r->pairs, (size_t)r->n_pairs, sizeof *r->pairs, by_letter);
    return LIN_OK;
}

static pairs_of find_pairs(const lin_g2p_rules *r, unsigned letter)
{
    int low = 0, high = r->n_pairs;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (r->pairs[middle].letter < letter) low = middle + 1;
        else high = middle;
    }
    pairs_of found = {low, low};
    while (found.to < r->n_pairs && r->pairs[found.to].letter == letter) found.to++;
    return found;
}

lin_status lin_g2p_rules_create(lin_ngram *lm, const char *name, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err)
{
    lin_g2p_rules *r = *rules = lin_calloc(1, sizeof *r);
    if (!r) {
        lin_ngram_destroy(lm);
        return lin_no_memory(err, "letter-to-sound rules", sizeof *r);
    }
    r->lm = lm;
    const lin_status status = gather(r, name, phones, err);
    if (status == LIN_OK) return LIN_OK;
    lin_g2p_rules_destroy(r);
    *rules = NULL;
    return status;
}

lin_status lin_g2p_rules_open(const char *path, const lin_phones *phones, lin_g2p_rules **rules, lin_error *err)
{
    lin_ngram *lm;
    *rules = NULL;
    LIN_TRY(lin_ngram_open(path, &lm, err));
    return lin_g2p_rules_create(lm, path, phones, rules, err);
}

void lin_g2p_rules_destroy(lin_g2p_rules *rules)
{
    if (!rules) return;
    lin_ngram_destroy(rules->lm);
    lin_free(rules->pairs);
    lin_free(rules);
}

// Where a hypothesis goes: one for each state and number of silent letters, the BEAM best of all; of equal ones the first is
// kept. -1: nowhere.
static int place_of(const hypothesis *beam, int *n, const hypothesis *h)
{
    int worst = 0;
    for (int i = 0; i < *n; i++) {
        if (beam[i].state == h->state && beam[i].n_silent == h->n_silent) return h->logp > beam[i].logp ? i : -1;
        if (beam[i].logp < beam[worst].logp) worst = i;
    }
    if (*n < BEAM) return (*n)++;
    return h->logp > beam[worst].logp ? worst : -1;
}

static int step(const lin_g2p_rules *r, pairs_of letter, const hypothesis *from, int n_from, hypothesis *to)
{
    int n = 0;
    for (int i = 0; i < n_from; i++) {
        for (int k = letter.from; k < letter.to; k++) {
            hypothesis h = {.at = k, .back = i};
            h.logp = from[i].logp + lin_ngram_score(r->lm, from[i].state, r->pairs[k].word, &h.state);
            const int place = place_of(to, &n, &h);
            if (place >= 0) to[place] = h;
        }
    }
    return n;
}

// The pairs of each letter of a word: letters [LIN_WORD_MAX]. *n_letters: how many there are.
static lin_status find_letters(const lin_g2p_rules *r, const char *word, size_t n, pairs_of *letters, size_t *n_letters,
                               lin_error *err)
{
    char shown[LIN_QUOTE];
    *n_letters = 0;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        unsigned code, mark;
        bytes = lin_utf8_decode(word + at, n - at, &code);
        if (!bytes || (code < 0x80 && code != '\'' && (code < 'a' || code > 'z')))
            return lin_fail(err, LIN_INVALID, "letter-to-sound rules accept only letters a to z and those of other scripts, not "
                                              "'%s'", lin_quote(shown, word, n));
        pairs_of found = find_pairs(r, code);
        for (unsigned letter = code; found.from == found.to && (letter = lin_unicode_split(letter, &mark)) != 0;)
            found = find_pairs(r, letter);
        if (found.from == found.to)
            return lin_fail(err, LIN_UNSUPPORTED, "the letter-to-sound rules have no sound for '%s'",
                            lin_quote(shown, word + at, bytes));
        letters[(*n_letters)++] = found;
    }
    return LIN_OK;
}

lin_status lin_g2p_rules_apply(const lin_g2p_rules *r, const char *word, size_t n_bytes, int *labels, int capacity, int *n_labels,
                               lin_error *err)
{
    pairs_of letters[LIN_WORD_MAX];
    size_t n;
    *n_labels = 0;
    if (n_bytes < 1 || n_bytes > LIN_WORD_MAX) return lin_fail(err, LIN_INVALID, "a word of %zu letters", n_bytes);
    LIN_TRY(find_letters(r, word, n_bytes, letters, &n, err));
    lin_status status = LIN_OK;
    hypothesis *beams = lin_alloc((n + 1) * BEAM, sizeof *beams); // [letters + 1, BEAM]
    if (!beams) return lin_no_memory(err, "letter-to-sound rules", (n + 1) * BEAM * sizeof *beams);
    int count = 1, best = 0, phones = 0;
    beams[0] = (hypothesis){.state = lin_ngram_begin(r->lm), .at = -1};
    for (size_t i = 0; i < n; i++) count = step(r, letters[i], beams + i * BEAM, count, beams + (i + 1) * BEAM);
    hypothesis *last = beams + n * BEAM;
    for (int i = 0; i < count; i++) {
        last[i].logp += lin_ngram_end(r->lm, last[i].state);
        if (last[i].logp > last[best].logp) best = i;
    }
    // Traced back from the end; the phones are written from the end of their space.
    for (size_t i = n, at = (size_t)best; i > 0; at = (size_t)beams[i * BEAM + at].back, i--)
        phones += r->pairs[beams[i * BEAM + at].at].n;
    if (phones > capacity) {
        status = lin_fail(err, LIN_TOO_SMALL, "the word has a pronunciation of more than %d phones", capacity);
    } else {
        *n_labels = phones;
        for (size_t i = n, at = (size_t)best; i > 0; at = (size_t)beams[i * BEAM + at].back, i--) {
            const pair *p = &r->pairs[beams[i * BEAM + at].at];
            for (int k = p->n; k > 0; k--) labels[--phones] = p->labels[k - 1];
        }
    }
    lin_free(beams);
    return status;
}

/* ---- the rules backwards --------------------------------------------------------------------------------------------------- */

// A letter of a spelling; nodes are only appended, so that hypotheses can share their beginnings.
typedef struct node {
    int pair, back; // of the rules; the letter before, -1: none
} node;

typedef struct speller {
    const lin_g2p_rules *rules;
    hypothesis *beams; // [phones + 1, BEAM], by the phones that are spelled
    int *counts;       // [phones + 1]
    node *nodes;
    int n_nodes, capacity;
} speller;

static lin_status offer_spelling(speller *s, int spelled, hypothesis h, int letter, int back, lin_error *err)
{
    LIN_TRY(lin_grow_int(&s->nodes, &s->capacity, (int64_t)s->n_nodes + 1, sizeof *s->nodes, "a spelling", err));
    hypothesis *beam = s->beams + (size_t)spelled * BEAM;
    const int place = place_of(beam, &s->counts[spelled], &h);
    if (place < 0) return LIN_OK;
    s->nodes[s->n_nodes] = (node){letter, back};
    h.at = s->n_nodes++;
    beam[place] = h;
    return LIN_OK;
}

// By every letter that has the next phones, or, silent, by every letter without a sound.
static lin_status extend_spelling(speller *s, int spelled, const hypothesis *h, const int *labels, int n, int silent,
                                  lin_error *err)
{
    const lin_g2p_rules *r = s->rules;
    for (int k = 0; k < r->n_pairs; k++) {
        const pair *p = &r->pairs[k];
        if ((p->n == 0) != silent || p->n > n - spelled) continue;
        if (p->n > 0 && p->labels[0] != labels[spelled]) continue;
        if (p->n > 1 && p->labels[1] != labels[spelled + 1]) continue;
        hypothesis next = {.n_silent = silent ? h->n_silent + 1 : 0};
        next.logp = h->logp + lin_ngram_score(r->lm, h->state, p->word, &next.state);
        LIN_TRY(offer_spelling(s, spelled + p->n, next, k, h->at, err));
    }
    return LIN_OK;
}

// The hypotheses at `spelled` phones that end in `n_silent` silent letters (-1: any number), each by one letter more.
static lin_status extend_all(speller *s, int spelled, int n_silent, const int *labels, int n, lin_error *err)
{
    hypothesis now[BEAM]; // the beam itself changes
    const int count = s->counts[spelled];
    memcpy(now, s->beams + (size_t)spelled * BEAM, (size_t)count * sizeof *now);
    for (int k = 0; k < count; k++)
        if (n_silent < 0 || now[k].n_silent == n_silent)
            LIN_TRY(extend_spelling(s, spelled, &now[k], labels, n, n_silent >= 0, err));
    return LIN_OK;
}

// The last node of the most probable spelling; -1: there is none.
static int best_spelling(const speller *s, int n)
{
    const hypothesis *last = s->beams + (size_t)n * BEAM;
    int best = -1;
    float most = 0;
    for (int k = 0; k < s->counts[n]; k++) {
        const float logp = last[k].logp + lin_ngram_end(s->rules->lm, last[k].state);
        if (best < 0 || logp > most) best = last[k].at, most = logp;
    }
    return best;
}

static lin_status spell(speller *s, const int *labels, int n, char *word, size_t capacity, lin_error *err)
{
    enum { SILENT = 2 };
    const lin_g2p_rules *r = s->rules;
    size_t length = 0;
    LIN_TRY(offer_spelling(s, 0, (hypothesis){.state = lin_ngram_begin(r->lm)}, -1, -1, err));
    for (int i = 0; i <= n; i++) {
        for (int k = 0; k < SILENT; k++) LIN_TRY(extend_all(s, i, k, labels, n, err));
        if (i < n) LIN_TRY(extend_all(s, i, -1, labels, n, err));
    }
    const int best = best_spelling(s, n);
    if (best < 0) return lin_fail(err, LIN_UNSUPPORTED, "no letters have these sounds in the letter-to-sound rules");
    char bytes[4];
    for (int at = best; s->nodes[at].pair >= 0; at = s->nodes[at].back)
        length += lin_utf8_encode(r->pairs[s->nodes[at].pair].letter, bytes);
    if (length >= capacity) return lin_fail(err, LIN_TOO_SMALL, "a spelling of %zu bytes", length);
    word[length] = '\0';
    for (int at = best; s->nodes[at].pair >= 0; at = s->nodes[at].back) {
        const size_t n_bytes = lin_utf8_encode(r->pairs[s->nodes[at].pair].letter, bytes);
        memcpy(word + (length -= n_bytes), bytes, n_bytes);
    }
    return LIN_OK;
}

lin_status lin_g2p_rules_spell(const lin_g2p_rules *r, const int *labels, int n, char *word, size_t capacity, lin_error *err)
{
    if (n < 1 || n > LIN_PRONUNCIATION_MAX) return lin_fail(err, LIN_INVALID, "a word of %d phones", n);
    const size_t room = ((size_t)n + 1) * BEAM;
    speller s = {.rules = r, .beams = lin_alloc(room, sizeof *s.beams), .counts = lin_calloc((size_t)n + 1, sizeof *s.counts)};
    lin_status status = LIN_OK;
    if (!s.beams || !s.counts) status = lin_no_memory(err, "a spelling", room * sizeof *s.beams);
    else status = spell(&s, labels, n, word, capacity, err);
    lin_free(s.beams);
    lin_free(s.counts);
    lin_free(s.nodes);
    return status;
}

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

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

// A line of share/linnet/en/spelling.txt, which describes the fields. The Makefile compiles them in, because a program may have
// only a model and a lexicon.
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
        if (label_of_name(phones, name, n) < 1)
            return lin_fail(err, LIN_MISMATCH, "the phone set has no %.*s: unknown words cannot be pronounced with it", (int)n,
                            name);
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
    if (p->n == p->capacity)
        return lin_fail(p->err, LIN_TOO_SMALL, "the word has a pronunciation of more than %d phones", p->capacity);
    p->labels[p->n++] = label;
    return LIN_OK;
}

// Appends phones written as CMUdict writes them: "IH Z".
static lin_status push_names(pronouncing *p, const char *names)
{
    const char *at = names, *end = names + strlen(names), *name;
    size_t n;
    while (lin_field_next(&at, end, &name, &n)) LIN_TRY(push(p, label_of_name(p->g2p->phones, name, n)));
    return LIN_OK;
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
    at_least(p, LIN_G2P_SPELLED);
    for (size_t i = 0; i < n; i++) LIN_TRY(push_names(p, name_of("letter", word[i])));
    return LIN_OK;
}

static lin_status push_rules(pronouncing *p, const char *word, size_t n)
{
    int n_labels;
    if (!p->g2p->rules)
        return lin_fail(p->err, LIN_UNSUPPORTED,
                        "'%.*s' is not in the dictionary, and %s; add the word to the dictionary, or name rules with --g2p or "
                        "LINNET_G2P (linnet g2p makes them)",
                        (int)n, word,
                        lin_phones_is_own(p->g2p->phones) ? "there are no letter-to-sound rules for these phones"
                                                          : "no letter-to-sound rules are installed (words.g2p)");
    at_least(p, LIN_G2P_RULES);
    LIN_TRY(lin_g2p_rules_apply(p->g2p->rules, word, n, p->labels + p->n, p->capacity - p->n, &n_labels, p->err));
    p->n += n_labels;
    // An English word whose letters are all silent is spelled.
    return n_labels || lin_phones_is_own(p->g2p->phones) ? LIN_OK : push_letters(p, word, n);
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

size_t lin_word_trim(const char **word, size_t n)
{
    while (n && (**word == '\'' || **word == '-')) ++*word, n--;
    while (n && ((*word)[n - 1] == '\'' || (*word)[n - 1] == '-')) n--;
    return n;
}

// A word between hyphens: letters and apostrophes.
static lin_status push_word(pronouncing *p, text_span s)
{
    lin_status status;
    if (push_known(p, s.text, s.n, &status)) return status;
    s.n = lin_word_trim(&s.text, s.n);
    if (!s.n || push_known(p, s.text, s.n, &status)) return status;
    const char *apostrophe = memchr(s.text, '\'', s.n);
    if (!apostrophe) return push_piece(p, s);
    at_least(p, LIN_G2P_DERIVED);
    for (const line *l = NULL; (l = next_line("apostrophe", l)) != NULL;) {
        if (!ends_with(s.text, s.n, l->text)) continue;
        LIN_TRY(push_word(p, (text_span){s.text, s.n - strlen(l->text)}));
        return push_ending(p, l->by);
    }
    size_t n_head = (size_t)(apostrophe - s.text);
    const char *sound = n_head == 1 ? name_of("elided", s.text[0]) : NULL;
    LIN_TRY(sound ? push_names(p, sound) : push_piece(p, (text_span){s.text, n_head}));
    return push_word(p, (text_span){apostrophe + 1, s.n - n_head - 1});
}

/* ---- other languages ------------------------------------------------------------------------------------------------------- */

// A word between hyphens, by the dictionary or the rules. An apostrophe that they do not know is left out.
static lin_status push_own_piece(pronouncing *p, text_span s)
{
    char letters[LIN_WORD_MAX];
    lin_status status;
    if (push_known(p, s.text, s.n, &status)) return status;
    s.n = lin_word_trim(&s.text, s.n);
    if (!s.n || push_known(p, s.text, s.n, &status)) return status;
    const pairs_of of_apostrophe = p->g2p->rules ? find_pairs(p->g2p->rules, '\'') : (pairs_of){0, 1};
    const int keeps = of_apostrophe.to > of_apostrophe.from;
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (keeps || s.text[i] != '\'') letters[n++] = s.text[i];
    return push_rules(p, letters, n);
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
            return lin_fail(err, LIN_INVALID, "the letter U+%04X of '%s' is not used in English spelling", code,
                            lin_quote(shown, word, n));
        lower[used++] = (char)code;
    }
    *n_lower = used;
    return LIN_OK;
}

// Only letters, of which there is one at least, apostrophes, hyphens and "&".
static lin_status check_letters(const char *lower, size_t n, const char *word, lin_error *err)
{
    char shown[LIN_QUOTE];
    int n_letters = 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code;
        step = lin_utf8_decode(lower + at, n - at, &code);
        const int is_letter = step && (code < 0x80 ? lin_is_letter((char)code) : lin_unicode_is_letter(code));
        n_letters += is_letter;
        if (!is_letter && (!step || !strchr("'-&", lower[at])))
            return lin_fail(err, LIN_INVALID, "'%s' is not a word of letters, apostrophes and hyphens",
                            lin_quote(shown, word, n));
    }
    return n_letters ? LIN_OK : lin_fail(err, LIN_INVALID, "'%s' has no letters", lin_quote(shown, word, n));
}

// A part of an English word between hyphens and "&": one or two letters beside "&" are spelled, as in "AT&T".
static lin_status push_part(pronouncing *p, const char *word, size_t n, size_t begin, size_t end)
{
    const int is_joined = (begin && word[begin - 1] == '&') || (end < n && word[end] == '&');
    if (is_joined && end - begin <= 2 && !memchr(word + begin, '\'', end - begin)) {
        LIN_TRY(push_letters(p, word + begin, end - begin));
    } else if (end > begin) {
        LIN_TRY(push_word(p, (text_span){word + begin, end - begin}));
    }
    return end < n && word[end] == '&' ? push_names(p, name_of("and", '&')) : LIN_OK;
}

static lin_status pronounce(pronouncing *p, const char *lower, size_t n)
{
    lin_status status;
    char shown[LIN_QUOTE];
    const int is_own = lin_phones_is_own(p->g2p->phones);
    if (push_known(p, lower, n, &status)) return status;
    text_span bare = {lower, n};
    bare.n = lin_word_trim(&bare.text, n);
    const text_span all = is_own ? bare : (text_span){lower, n};
    if (memchr(bare.text, '-', bare.n) || memchr(lower, '&', n)) at_least(p, LIN_G2P_DERIVED);
    for (size_t at = 0; at < all.n; at++) {
        const size_t begin = at;
        while (at < all.n && all.text[at] != '-' && all.text[at] != '&') at++;
        if (!is_own) LIN_TRY(push_part(p, all.text, all.n, begin, at));
        else if (at > begin) LIN_TRY(push_own_piece(p, (text_span){all.text + begin, at - begin}));
    }
    if (p->n || !is_own) return LIN_OK;
    return lin_fail(p->err, LIN_UNSUPPORTED, "all letters of '%s' are silent by the letter-to-sound rules; add it to the "
                                             "dictionary", lin_quote(shown, lower, n));
}

lin_status lin_g2p_pronounce(lin_g2p *g2p, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                             lin_g2p_how *how, lin_error *err)
{
    char lower[LIN_WORD_MAX], shown[LIN_QUOTE];
    pronouncing p = {.g2p = g2p, .labels = labels, .capacity = capacity, .how = LIN_G2P_DICTIONARY, .err = err};
    *n_labels = 0;
    if (n > LIN_WORD_MAX) return lin_fail(err, LIN_INVALID, "a word of %zu letters: '%s'", n, lin_quote(shown, word, n));
    LIN_TRY(plain_word(g2p, word, n, lower, &n, err));
    LIN_TRY(check_letters(lower, n, lin_phones_is_own(g2p->phones) ? lower : word, err));
    LIN_TRY(pronounce(&p, lower, n));
    *n_labels = p.n;
    if (how) *how = p.how;
    return LIN_OK;
}
