// The n best sequences of words: best first over tokens, and over lines in which an alternative replaces the words up to a history.

#include "decoder/words_internal.h"

static void offer(ranking *g, const ranked *new)
{
    if (g->n < WORDS_RANKED_MAX) {
        g->items[g->n++] = *new;
        return;
    }
    int worst = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->items[i].done && (worst < 0 || g->items[i].total <= g->items[worst].total)) worst = i;
    }
    if (worst >= 0 && g->items[worst].total < new->total) g->items[worst] = *new;
}

static int next(const ranking *g)
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

// From the token's line on, base by base.
static void line_of(const space *s, ranking *g, int number, line *to)
{
    int n = 0;
    for (; g->items[number].base >= 0; number = g->items[number].base) g->chain[n++] = number;
    words_token_line(s, &s->tokens[g->items[number].from], to);
    while (n > 0) {
        const ranked *i = &g->items[g->chain[--n]];
        const tip *loser = &s->alternatives[i->from].loser;
        const int64_t most = begin_behind(s, to, i->kept) - (loser->record < 0 ? 0 : s->records[loser->record].start);
        to->n = i->kept;
        words_follow_line(s, loser->record, loser->frames < most ? loser->frames : (int)most, loser->logp, to);
    }
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

static int is_new(ranking *g, uint64_t words)
{
    for (int i = 0; i < g->n_seen; i++) {
        if (g->seen[i] == words) return 0;
    }
    g->seen[g->n_seen++] = words;
    return 1;
}

static void offer_alternatives(const lin_words *w, const space *s, ranking *g, int number, const line *of)
{
    const ranked from = g->items[number];
    for (int i = from.kept; i <= of->n; i++) {
        const uint64_t history = i < of->n ? of->words[i].history : 0;
        const int64_t behind = begin_behind(s, of, i);
        for (int k = -1; (k = words_next_alternative(w, s, history, k)) >= 0;) {
            const alternative *a = &s->alternatives[k];
            if (a->loser.record >= 0 && s->records[a->loser.record].start >= behind) continue; // it would not fit
            const double acoustic = from.acoustic - (a->lost - a->lost_outer);
            const ranked new = {from.total - a->lost, acoustic, from.language - a->lost_language, number, i, k, 0};
            offer(g, &new);
        }
    }
}

// Finds the `which`-th sequence (from 0): its item, and its line in `of`. -1: there are not so many, and n_seen says how many.
static int search(const lin_words *w, const space *s, int which)
{
    ranking *g = s->ranking;
    line *to = &g->of;
    g->n = g->n_seen = 0;
    for (int i = 0; i < s->h->n_tokens; i++) {
        const token *t = &s->tokens[i];
        const ranked new = {t->total, t->mass, t->language, -1, 0, i, 0};
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
static void shares_of(const line *of, const ranked *i, const line *best, const double *best_shares, double best_total,
                      double *shares)
{
    const double own = 1 / (1 + exp(best_total - i->total));
    for (int k = 0; k < of->n; k++) {
        shares[k] = own;
        for (int b = 0; b < best->n; b++) {
            if (best->words[b].record == of->words[k].record) shares[k] = best_shares[b];
        }
    }
}

// The hypothesis whose line is in `of`.
static lin_status append(const lin_words *w, const space *s, const ranked *i, lin_path *path, lin_error *err)
{
    ranking *g = s->ranking;
    const token *first = &s->tokens[words_best(s)];
    words_token_line(s, first, &g->best);
    words_shares(w, s, first, &g->best, g->best_shares);
    shares_of(&g->of, i, &g->best, g->best_shares, first->total, g->shares);
    lin_status status = words_append_line(s, &g->of, g->shares, g->of.n - 1, -1, s->h->frame, path, err);
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
    const ranked i = {t->total, t->mass, t->language, -1, 0, best, 0};
    words_token_line(s, t, &s->ranking->of);
    return append(w, s, &i, path, err);
}

int lin_words_hypotheses(const lin_words *w, void *state)
{
    const space s = words_space(w, state);
    if (w->o.n_best == 1) return 1;
    (void)search(w, &s, w->o.n_best);
    return s.ranking->n_seen;
}

lin_status lin_words_nbest(const lin_words *w, void *state, int which, lin_path *tail, lin_error *err)
{
    const space s = words_space(w, state);
    lin_path_clear(tail);
    if (which == 0) return words_append_best(w, &s, tail, err);
    const int found = which > 0 && which < w->o.n_best ? search(w, &s, which) : -1;
    if (found < 0) return lin_fail(err, LIN_INVALID, "there is no hypothesis %d of words", which + 1);
    return append(w, &s, &s.ranking->items[found], tail, err);
}
