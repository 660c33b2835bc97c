// The n best sequences of words: best first over tokens, and over lines in which an alternative replaces the words up to a history.

#include "decoder/words_internal.h"

enum { ITEMS_MAX = 1024 };

// A hypothesis: a token's line (base -1), or the line of another one whose last `kept` words stay and whose words before are an
// alternative's.
typedef struct item {
    double total, acoustic, language;
    int base, kept, from; // from: token, or alternative
    int done;
} item;

typedef struct agenda {
    int n, n_seen;
    item items[ITEMS_MAX];
    uint64_t seen[LIN_WORDS_NBEST_MAX + 1];
} agenda;

static void offer(agenda *g, const item *new)
{
    if (g->n < ITEMS_MAX) {
        g->items[g->n++] = *new;
        return;
    }
    int worst = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->items[i].done && (worst < 0 || g->items[i].total <= g->items[worst].total)) worst = i;
    }
    if (worst >= 0 && g->items[worst].total < new->total) g->items[worst] = *new;
}

static int next(const agenda *g)
{
    int best = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->items[i].done && (best < 0 || g->items[i].total > g->items[best].total)) best = i;
    }
    return best;
}

// Where the first phone behind the words from number `n` of a line on begins; the next row where there is none.
static int64_t begin_behind(const space *s, const line *of, int n)
{
    int at = n ? of->words[n - 1].record : of->inside.record;
    int64_t start = s->h->frame;
    for (int first = 1; at >= 0 && !words_is_settled(s, &s->records[at]); first = 0, at = s->records[at].before) {
        if (!first && s->records[at].word != WORD_INSIDE) break;
        start = s->records[at].start;
    }
    return start;
}

static void line_of(const space *s, const agenda *g, int number, line *to)
{
    const item *i = &g->items[number];
    if (i->base < 0) {
        words_token_line(s, &s->tokens[i->from], to);
        return;
    }
    line_of(s, g, i->base, to);
    const tip *loser = &s->alternatives[i->from].loser;
    const int64_t most = begin_behind(s, to, i->kept) - (loser->record < 0 ? 0 : s->records[loser->record].start);
    to->n = i->kept;
    words_follow_line(s, loser->record, loser->frames < most ? loser->frames : (int)most, loser->logp, to);
}

// Tells sequences of words apart; those outside the lexicon by their phones, which are not known by the word alone.
static uint64_t words_of(const space *s, const line *of)
{
    uint64_t h = of->inside.record < 0 ? 1 : 2;
    int at = of->inside.record >= 0 ? of->inside.record : -1;
    for (int i = -1; i < of->n; i++) {
        if (i >= 0) at = of->words[i].record;
        if (at < 0) continue;
        const int word = s->records[at].word;
        h = mix(h, (uint64_t)(int64_t)word);
        if (word >= 0) continue;
        for (int k = at; k >= 0 && !words_is_settled(s, &s->records[k]); k = s->records[k].before) {
            if (k != at && s->records[k].word != WORD_INSIDE) break;
            h = mix(h, (uint64_t)s->records[k].label | UINT64_C(1) << 40);
        }
    }
    return h;
}

static int is_new(agenda *g, uint64_t words)
{
    for (int i = 0; i < g->n_seen; i++) {
        if (g->seen[i] == words) return 0;
    }
    g->seen[g->n_seen++] = words;
    return 1;
}

static void offer_alternatives(const lin_words *w, const space *s, agenda *g, int number, const line *of)
{
    const item from = g->items[number];
    for (int i = from.kept; i <= of->n; i++) {
        const uint64_t history = i < of->n ? of->words[i].history : 0;
        const int64_t behind = begin_behind(s, of, i);
        for (int k = -1; (k = words_next_alternative(w, s, history, k)) >= 0;) {
            const alternative *a = &s->alternatives[k];
            if (a->loser.record >= 0 && s->records[a->loser.record].start >= behind) continue; // it would not fit
            const double acoustic = from.acoustic - (a->lost - a->lost_outer);
            const item new = {from.total - a->lost, acoustic, from.language - a->lost_language, number, i, k, 0};
            offer(g, &new);
        }
    }
}

// Finds the `which`-th sequence (from 0): its item, and its line in *to. -1: there are not so many, and g->n_seen says how many.
static int search(const lin_words *w, const space *s, int which, agenda *g, line *to)
{
    g->n = g->n_seen = 0;
    for (int i = 0; i < s->h->n_tokens; i++) {
        const token *t = &s->tokens[i];
        const item new = {t->total, t->mass, t->language, -1, 0, i, 0};
        offer(g, &new);
    }
    for (int tries = 0; tries < 64 + 16 * w->o.n_best; tries++) {
        const int best = next(g);
        if (best < 0) return -1;
        g->items[best].done = 1;
        line_of(s, g, best, to);
        if (to->n == WORDS_LINE_MAX || !is_new(g, words_of(s, to))) continue;
        if (g->n_seen == which + 1) return best;
        if (g->n_seen == w->o.n_best) return -1;
        offer_alternatives(w, s, g, best, to);
    }
    return -1;
}

// Words that another hypothesis shares with the best one are as sure as there, the others at most as sure as itself.
static void shares_of(const line *of, const item *i, const line *best, const double *best_shares, double best_total, double *shares)
{
    const double own = 1 / (1 + exp(best_total - i->total));
    for (int k = 0; k < of->n; k++) {
        shares[k] = own;
        for (int b = 0; b < best->n; b++) {
            if (best->words[b].record == of->words[k].record) shares[k] = best_shares[b];
        }
    }
}

static lin_status append(const lin_words *w, const space *s, const item *i, const line *of, lin_path *path, lin_error *err)
{
    double shares[WORDS_LINE_MAX], best_shares[WORDS_LINE_MAX];
    const token *first = &s->tokens[words_best(s)];
    line best;
    words_token_line(s, first, &best);
    words_shares(w, s, first, &best, best_shares);
    shares_of(of, i, &best, best_shares, first->total, shares);
    lin_status status = words_append_line(s, of, shares, of->n - 1, -1, s->h->frame, path, err);
    if (status) return status;
    path->score = i->total;
    path->acoustic = i->acoustic;
    path->language = i->language;
    return LIN_OK;
}

lin_status words_append_best(const lin_words *w, const space *s, lin_path *path, lin_error *err)
{
    const int best = words_best(s);
    const token *t = &s->tokens[best];
    const item i = {t->total, t->mass, t->language, -1, 0, best, 0};
    line of;
    words_token_line(s, t, &of);
    return append(w, s, &i, &of, path, err);
}

int lin_words_hypotheses(const lin_words *w, const void *state)
{
    const space s = words_space(w, (void *)(uintptr_t)state);
    agenda g;
    line of;
    if (w->o.n_best == 1) return 1;
    (void)search(w, &s, w->o.n_best, &g, &of);
    return g.n_seen;
}

lin_status lin_words_nbest(const lin_words *w, const void *state, int which, lin_path *tail, lin_error *err)
{
    const space s = words_space(w, (void *)(uintptr_t)state);
    agenda g;
    line of;
    lin_path_clear(tail);
    if (which == 0) return words_append_best(w, &s, tail, err);
    const int found = which > 0 && which < w->o.n_best ? search(w, &s, which, &g, &of) : -1;
    if (found < 0) return lin_fail(err, LIN_INVALID, "there is no hypothesis %d of words", which + 1);
    return append(w, &s, &g.items[found], &of, tail, err);
}
