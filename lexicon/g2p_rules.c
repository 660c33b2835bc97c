// g2p_rules.c - applies letter-to-sound rules: a beam search over pairs of a letter and its phones; see g2p_rules.h.

#include "lexicon/g2p_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "lexicon/dictionary.h"

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

// The best path to a state of the n-gram model after a letter.
typedef struct hypothesis {
    lin_ngram_state state;
    float logp;
    int pair;
    int back; // the hypothesis of the letter before
} hypothesis;

int lin_g2p_label(const lin_phones *phones, const char *name, size_t n)
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
    p->labels[0] = lin_g2p_label(phones, text, n);
    if (p->labels[0] > 0) return p->n = 1;
    int plus = 0;
    for (const char *at = text; (at = strchr(at, '+')) != NULL; at++) {
        const size_t n_first = (size_t)(at - text);
        plus++;
        if (n_first == 0 || n_first + 1 == n) return 0;
        p->labels[0] = lin_g2p_label(phones, text, n_first);
        p->labels[1] = lin_g2p_label(phones, at + 1, n - n_first - 1);
        if (p->labels[0] > 0 && p->labels[1] > 0) {
            p->n = 2;
            return 1;
        }
    }
    return plus > 1 ? 0 : -1;
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
        if (parsed == 0) {
            return lin_fail(err, LIN_MISMATCH,
                            "%s is not a set of letter-to-sound rules: '%s' is not a pair of a letter and its phones; "
                            "linnet g2p makes one",
                            name, shown);
        }
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

int lin_g2p_rules_know(const lin_g2p_rules *rules, unsigned code)
{
    const pairs_of found = find_pairs(rules, code);
    return found.to > found.from;
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
    const lin_status status = lin_ngram_open(path, &lm, err);
    return status == LIN_OK ? lin_g2p_rules_create(lm, path, phones, rules, err) : status;
}

void lin_g2p_rules_destroy(lin_g2p_rules *rules)
{
    if (!rules) return;
    lin_ngram_destroy(rules->lm);
    lin_free(rules->pairs);
    lin_free(rules);
}

// Keeps the best hypothesis of each state, and the BEAM best of all states. Of equal ones the first is kept.
static void offer(hypothesis *beam, int *n, const hypothesis *h)
{
    int worst = 0;
    for (int i = 0; i < *n; i++) {
        if (beam[i].state == h->state) {
            if (h->logp > beam[i].logp) beam[i] = *h;
            return;
        }
        if (beam[i].logp < beam[worst].logp) worst = i;
    }
    if (*n < BEAM) {
        beam[(*n)++] = *h;
    } else if (h->logp > beam[worst].logp) {
        beam[worst] = *h;
    }
}

static int step(const lin_g2p_rules *r, pairs_of letter, const hypothesis *from, int n_from, hypothesis *to)
{
    int n = 0;
    for (int i = 0; i < n_from; i++) {
        for (int k = letter.from; k < letter.to; k++) {
            hypothesis h = {.pair = k, .back = i};
            h.logp = from[i].logp + lin_ngram_score(r->lm, from[i].state, r->pairs[k].word, &h.state);
            offer(to, &n, &h);
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
    lin_status status = find_letters(r, word, n_bytes, letters, &n, err);
    if (status != LIN_OK) return status;
    hypothesis *beams = lin_alloc((n + 1) * BEAM, sizeof *beams); // [letters + 1, BEAM]
    if (!beams) return lin_no_memory(err, "letter-to-sound rules", (n + 1) * BEAM * sizeof *beams);
    int count = 1, best = 0, phones = 0;
    beams[0] = (hypothesis){.state = lin_ngram_begin(r->lm), .pair = -1};
    for (size_t i = 0; i < n; i++) count = step(r, letters[i], beams + i * BEAM, count, beams + (i + 1) * BEAM);
    hypothesis *last = beams + n * BEAM;
    for (int i = 0; i < count; i++) {
        last[i].logp += lin_ngram_end(r->lm, last[i].state);
        if (last[i].logp > last[best].logp) best = i;
    }
    // Traced back from the end; the phones are written from the end of their space.
    for (size_t i = n, at = (size_t)best; i > 0; at = (size_t)beams[i * BEAM + at].back, i--)
        phones += r->pairs[beams[i * BEAM + at].pair].n;
    if (phones > capacity) {
        status = lin_fail(err, LIN_TOO_SMALL, "a pronunciation of more than %d phones", capacity);
    } else {
        *n_labels = phones;
        for (size_t i = n, at = (size_t)best; i > 0; at = (size_t)beams[i * BEAM + at].back, i--) {
            const pair *p = &r->pairs[beams[i * BEAM + at].pair];
            for (int k = p->n; k > 0; k--) labels[--phones] = p->labels[k - 1];
        }
    }
    lin_free(beams);
    return status;
}

/* ---- backwards ------------------------------------------------------------------------------------------------------------- */

// A letter of a spelling; nodes are only appended, so that hypotheses can share their beginnings.
typedef struct node {
    int pair, back; // of the rules; the letter before, -1: none
} node;

typedef struct candidate {
    lin_ngram_state state;
    float logp;
    int node, n_silent; // letters without a sound at its end
} candidate;

typedef struct speller {
    const lin_g2p_rules *rules;
    candidate *beams; // [phones + 1, BEAM], by the phones that are spelled
    int *counts;      // [phones + 1]
    node *nodes;
    int n_nodes, capacity;
} speller;

// Where a candidate goes: one for each state and number of silent letters, the BEAM best of all. -1: nowhere.
static int place_of(const candidate *beam, int *n, const candidate *c)
{
    int worst = 0;
    for (int i = 0; i < *n; i++) {
        if (beam[i].state == c->state && beam[i].n_silent == c->n_silent) return c->logp > beam[i].logp ? i : -1;
        if (beam[i].logp < beam[worst].logp) worst = i;
    }
    if (*n < BEAM) return (*n)++;
    return c->logp > beam[worst].logp ? worst : -1;
}

static lin_status offer_spelling(speller *s, int spelled, candidate c, int letter, int back, lin_error *err)
{
    lin_status status = lin_grow_int(&s->nodes, &s->capacity, (int64_t)s->n_nodes + 1, sizeof *s->nodes, "a spelling", err);
    if (status != LIN_OK) return status;
    candidate *beam = s->beams + (size_t)spelled * BEAM;
    const int at = place_of(beam, &s->counts[spelled], &c);
    if (at < 0) return LIN_OK;
    s->nodes[s->n_nodes] = (node){letter, back};
    c.node = s->n_nodes++;
    beam[at] = c;
    return LIN_OK;
}

// By every letter that has the next phones, or, silent, by every letter without a sound.
static lin_status extend_spelling(speller *s, int spelled, const candidate *c, const int *labels, int n, int silent,
                                  lin_error *err)
{
    const lin_g2p_rules *r = s->rules;
    lin_status status = LIN_OK;
    for (int k = 0; k < r->n_pairs && status == LIN_OK; k++) {
        const pair *p = &r->pairs[k];
        if ((p->n == 0) != silent || p->n > n - spelled) continue;
        if (p->n > 0 && p->labels[0] != labels[spelled]) continue;
        if (p->n > 1 && p->labels[1] != labels[spelled + 1]) continue;
        candidate next = {.n_silent = silent ? c->n_silent + 1 : 0};
        next.logp = c->logp + lin_ngram_score(r->lm, c->state, p->word, &next.state);
        status = offer_spelling(s, spelled + p->n, next, k, c->node, err);
    }
    return status;
}

// The candidates at `spelled` phones that end in `n_silent` silent letters (-1: any number), each by one letter more.
static lin_status extend_all(speller *s, int spelled, int n_silent, const int *labels, int n, lin_error *err)
{
    candidate now[BEAM]; // the beam itself changes
    const int count = s->counts[spelled];
    lin_status status = LIN_OK;
    memcpy(now, s->beams + (size_t)spelled * BEAM, (size_t)count * sizeof *now);
    for (int k = 0; k < count && status == LIN_OK; k++) {
        if (n_silent < 0) status = extend_spelling(s, spelled, &now[k], labels, n, 0, err);
        else if (now[k].n_silent == n_silent) status = extend_spelling(s, spelled, &now[k], labels, n, 1, err);
    }
    return status;
}

// The last node of the most probable spelling; -1: there is none.
static int best_spelling(const speller *s, int n)
{
    const candidate *last = s->beams + (size_t)n * BEAM;
    int best = -1;
    float most = 0;
    for (int k = 0; k < s->counts[n]; k++) {
        const float logp = last[k].logp + lin_ngram_end(s->rules->lm, last[k].state);
        if (best < 0 || logp > most) best = last[k].node, most = logp;
    }
    return best;
}

static lin_status spell(speller *s, const int *labels, int n, char *word, size_t capacity, lin_error *err)
{
    enum { SILENT = 2 };
    const lin_g2p_rules *r = s->rules;
    size_t length = 0;
    lin_status status = offer_spelling(s, 0, (candidate){.state = lin_ngram_begin(r->lm)}, -1, -1, err);
    for (int i = 0; i <= n && status == LIN_OK; i++) {
        for (int k = 0; k < SILENT && status == LIN_OK; k++) status = extend_all(s, i, k, labels, n, err);
        if (i < n && status == LIN_OK) status = extend_all(s, i, -1, labels, n, err);
    }
    if (status != LIN_OK) return status;
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
