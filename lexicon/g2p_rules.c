// g2p_rules.c - applies letter-to-sound rules: a beam search over pairs of a letter and its phones; see g2p_rules.h.

#include "lexicon/g2p_rules.h"

#include <string.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/dictionary.h"

enum { LETTERS = 26, BEAM = 48 };

typedef struct pair {
    int word; // of the n-gram model
    int n;
    int labels[2];
} pair;

struct lin_g2p_rules {
    lin_ngram *lm;
    pair *pairs;            // sorted by letter
    int first[LETTERS + 1]; // pairs of letter c: first[c] .. first[c + 1] - 1
};

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

// Parses "x|K+S". Returns 0 if it is not a pair, -1 if the phone set lacks a phone.
static int parse_pair(const char *text, const lin_phones *phones, int *letter, pair *p)
{
    if (text[0] < 'a' || text[0] > 'z' || text[1] != '|') return 0;
    *letter = text[0] - 'a';
    p->n = 0;
    for (const char *at = text + 2; *at;) {
        const size_t n = strcspn(at, "+");
        if (p->n == 2 || n == 0) return 0;
        const int label = lin_g2p_label(phones, at, n);
        if (label < 1) return -1;
        p->labels[p->n++] = label;
        at += n;
        if (*at == '+' && !*++at) return 0;
    }
    return 1;
}

// Two passes over the model's words: the number of pairs of each letter, then the pairs.
static lin_status gather(lin_g2p_rules *r, const char *name, const lin_phones *phones, lin_error *err)
{
    char shown[LIN_QUOTE];
    const int n = lin_ngram_words(r->lm);
    r->pairs = lin_alloc((size_t)n, sizeof *r->pairs);
    if (!r->pairs) return lin_no_memory(err, "letter-to-sound rules", (size_t)n * sizeof *r->pairs);
    for (int i = 0, letter; i < n; i++) {
        const char *text = lin_ngram_word(r->lm, i);
        pair p;
        if (text[0] == '<') continue; // <s>, </s>, <unk>
        const int parsed = parse_pair(text, phones, &letter, &p);
        lin_quote(shown, text, strlen(text));
        if (parsed == 0) {
            return lin_fail(err, LIN_MISMATCH,
                            "%s is not a set of letter-to-sound rules: '%s' is not a pair of a letter and its phones; "
                            "linnet g2p makes one",
                            name, shown);
        }
        if (parsed < 0) return lin_fail(err, LIN_MISMATCH, "%s: the phone set lacks a phone of '%s'", name, shown);
        r->first[letter + 1]++;
    }
    for (int c = 0; c < LETTERS; c++) r->first[c + 1] += r->first[c];
    int at[LETTERS];
    memcpy(at, r->first, sizeof at);
    for (int i = 0, letter; i < n; i++) {
        pair p = {.word = i};
        if (parse_pair(lin_ngram_word(r->lm, i), phones, &letter, &p) == 1) r->pairs[at[letter]++] = p;
    }
    return LIN_OK;
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

static int step(const lin_g2p_rules *r, int letter, const hypothesis *from, int n_from, hypothesis *to)
{
    int n = 0;
    for (int i = 0; i < n_from; i++) {
        for (int k = r->first[letter]; k < r->first[letter + 1]; k++) {
            hypothesis h = {.pair = k, .back = i};
            h.logp = from[i].logp + lin_ngram_score(r->lm, from[i].state, r->pairs[k].word, &h.state);
            offer(to, &n, &h);
        }
    }
    return n;
}

lin_status lin_g2p_rules_apply(const lin_g2p_rules *r, const char *word, size_t n, int *labels, int capacity, int *n_labels,
                               lin_error *err)
{
    *n_labels = 0;
    if (n < 1 || n > LIN_WORD_MAX) return lin_fail(err, LIN_INVALID, "a word of %zu letters", n);
    for (size_t i = 0; i < n; i++) {
        if (word[i] < 'a' || word[i] > 'z') return lin_fail(err, LIN_INVALID, "letter-to-sound rules accept only letters a to z");
        const int letter = word[i] - 'a';
        if (r->first[letter] == r->first[letter + 1])
            return lin_fail(err, LIN_UNSUPPORTED, "the letter-to-sound rules have no sound for '%c'", word[i]);
    }
    hypothesis *beams = lin_alloc((n + 1) * BEAM, sizeof *beams); // [letters + 1, BEAM]
    if (!beams) return lin_no_memory(err, "letter-to-sound rules", (n + 1) * BEAM * sizeof *beams);
    int count = 1, best = 0, phones = 0;
    beams[0] = (hypothesis){.state = lin_ngram_begin(r->lm), .pair = -1};
    for (size_t i = 0; i < n; i++) count = step(r, word[i] - 'a', beams + i * BEAM, count, beams + (i + 1) * BEAM);
    hypothesis *last = beams + n * BEAM;
    for (int i = 0; i < count; i++) {
        last[i].logp += lin_ngram_end(r->lm, last[i].state);
        if (last[i].logp > last[best].logp) best = i;
    }
    // Traced back from the end; the phones are written from the end of their space.
    for (size_t i = n, at = (size_t)best; i > 0; at = (size_t)beams[i * BEAM + at].back, i--)
        phones += r->pairs[beams[i * BEAM + at].pair].n;
    lin_status status = LIN_OK;
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
    for (int k = 0; k < r->first[LETTERS] && status == LIN_OK; k++) {
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
    for (int at = best; s->nodes[at].pair >= 0; at = s->nodes[at].back) length++;
    if (length >= capacity) return lin_fail(err, LIN_TOO_SMALL, "a spelling of %zu letters", length);
    word[length] = '\0';
    for (int at = best; s->nodes[at].pair >= 0; at = s->nodes[at].back)
        word[--length] = *lin_ngram_word(r->lm, r->pairs[s->nodes[at].pair].word);
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
