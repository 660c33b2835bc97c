// Losers of recombinations, stored as alternatives to the history that won, in an open hash table by the winner: alternatives of
// one winner are in the same run of slots.

#include <string.h>

#include "decoder/words_internal.h"

// Alternatives that are further below the best change neither the list of the best nor a confidence.
static const double LOST_MAX = 24;
// An alternative that lost this much changes a confidence by 0.0001.
static const double LOST_CONFIDENCE = 9;

static int slot_of(const lin_words *w, uint64_t winner) { return (int)(lin_hash_pair(winner,
                   1) & (uint64_t)(w->n_alternatives - 1)); } 
// First alternative of a winner from a slot on (-1: from its first slot on), or -1.
int lin_words_next_alternative(const lin_words *w, const lin_words_view *s, uint64_t winner, int at)
{
    const int wrap = w->n_alternatives - 1;
    at = at < 0 ? slot_of(w, winner) : (at + 1) & wrap;
    for (int i = 0; i <= wrap && s->alternatives[at].used; i++, at = (at + 1) & wrap) {
        if (s->alternatives[at].winner == winner) return at;
    }
    return -1;
}

// The last phone of a candidate. If the phone began in this row its trace may not exist yet: it is made. -2: the pool is full.
static lin_words_step end_of(const lin_words *w, lin_words_view *s, const lin_words_candidate *c)
{
    const lin_words_ending *a = lin_words_better_ending(&c->t);
    if (a != &c->t.endings[LIN_LABEL_ENDING] || !c->fresh) return (lin_words_step){a->logp, a->trace, a->frames};
    if (s->h->n_traces + w->o.width >= w->n_traces) return (lin_words_step){0, -2, 0};
    return (lin_words_step){a->logp, lin_words_new_trace(s, c), 1};
}

static double lost(const lin_words_alternative *a) { return fmax(a->winner_level - a->loser_level, 0); }

// The alternative of a winner and a loser, or the empty slot for it.
static lin_words_alternative *find(const lin_words *w, const lin_words_view *s, uint64_t winner, uint64_t loser)
{
    int at = slot_of(w, winner);
    while (s->alternatives[at].used && (s->alternatives[at].winner != winner || s->alternatives[at].loser != loser)) {
        at = (at + 1) & (w->n_alternatives - 1);
    }
    return &s->alternatives[at];
}

// Alternatives of one table differ, except those whose losers were settled since.
static void put(const lin_words *w, lin_words_view *s, const lin_words_alternative *a)
{
    lin_words_alternative *old = find(w, s, a->winner, a->loser);
    if (!old->used) {
        *old = *a;
        s->h->n_alternatives++;
    }
}

void lin_words_remember(const lin_words *w, lin_words_view *s, const lin_words_candidate *winner,
                        const lin_words_candidate *loser)
{
    const double level = loser->t.score - s->best;
    if (!(level > -LOST_MAX) || s->h->n_alternatives >= w->n_alternatives - w->n_alternatives / 8) return;
    if (w->o.n_best == 1 && winner->t.score - loser->t.score > LOST_CONFIDENCE) return;
    const uint64_t to = lin_words_key(w, s, winner->t.history, winner->t.node);
    const uint64_t from = lin_words_key(w, s, loser->t.history, loser->t.node);
    lin_words_alternative *a = find(w, s, to, from);
    const int better = !a->used || level > a->loser_best;
    const lin_words_step end = better ? end_of(w, s, loser) : a->end;
    if (end.trace == -2) return;
    if (!a->used) {
        *a = (lin_words_alternative){.winner = to,
                           .loser = from,
                           .winner_level = -INFINITY,
                           .loser_level = -INFINITY,
                           .lost_weight = winner->t.weight - loser->t.weight,
                           .lost_language = winner->t.language - loser->t.language,
                           .used = 1};
        s->h->n_alternatives++;
    }
    a->winner_level = fmax(a->winner_level, winner->t.score - s->best);
    a->loser_level = lin_words_log_add(a->loser_level, level);
    a->lost = lost(a);
    if (!better) return;
    a->end = end;
    a->loser_best = level;
}

/* ---- removal of old ones --------------------------------------------------------------------------------------------------- */

// Copies those that are kept into an empty table. The memory of the candidates is free between two rows.
static void rebuild(const lin_words *w, lin_words_view *s)
{
    lin_words_alternative *old = (void *)s->candidates;
    int n = 0;
    for (int i = 0; i < w->n_alternatives; i++) {
        if (s->alternatives[i].used == 1) old[n++] = s->alternatives[i];
    }
    memset(s->alternatives, 0, (size_t)w->n_alternatives * sizeof *s->alternatives);
    s->h->n_alternatives = 0;
    for (int i = 0; i < n; i++) put(w, s, &old[i]);
}

void lin_words_drop_alternatives(const lin_words *w, lin_words_view *s)
{
    memset(s->alternatives, 0, (size_t)w->n_alternatives * sizeof *s->alternatives);
    s->h->n_alternatives = 0;
}

// Removes the worse half.
void lin_words_thin_alternatives(const lin_words *w, lin_words_view *s)
{
    double low = 0, high = 2 * LOST_MAX;
    const int most = s->h->n_alternatives / 2;
    for (int i = 0; i < 30; i++) {
        const double middle = (low + high) / 2;
        int n = 0;
        for (int k = 0; k < w->n_alternatives; k++) n += s->alternatives[k].used && s->alternatives[k].lost < middle;
        *(n > most ? &high : &low) = middle;
    }
    for (int k = 0; k < w->n_alternatives; k++) {
        if (s->alternatives[k].used && !(s->alternatives[k].lost < low)) s->alternatives[k].used = 2;
    }
    rebuild(w, s);
}

// Marks the traces of alternatives whose winner is marked, and the losers' trace-backs, until nothing changes. Alternatives that
// were not reached are removed.
void lin_words_mark_alternatives(const lin_words *w, lin_words_view *s, int32_t *marks)
{
    for (int k = 0; k < w->n_alternatives; k++) {
        lin_words_alternative *a = &s->alternatives[k];
        if (!a->used) continue;
        a->used = a->winner == s->h->settled_history ? 1 : 2;
        if (a->used == 1) lin_words_mark(s, marks, a->end.trace);
    }
    for (int again = 1; again;) {
        again = 0;
        for (int i = s->h->n_traces; i-- > 0;) { // traces refer to older ones, and so do most losers
            if (marks[i] != 1) continue;
            marks[i] = 2;
            for (int k = -1; (k = lin_words_next_alternative(w, s, lin_words_trace_key(w, s, &s->traces[i]), k)) >= 0;) {
                lin_words_alternative *a = &s->alternatives[k];
                if (a->used == 2) lin_words_mark(s, marks, a->end.trace);
                a->used = 1;
                again = 1;
            }
        }
    }
    rebuild(w, s);
}

// `first`, the first word of all histories, is settled and ends before `limit`: alternatives without it, or that continue
// earlier, are removed.
void lin_words_settle_alternatives(const lin_words *w, lin_words_view *s, uint64_t first, int64_t limit)
{
    for (int k = 0; k < w->n_alternatives; k++) {
        lin_words_alternative *a = &s->alternatives[k];
        if (!a->used) continue;
        if (a->winner == s->h->settled_history || a->end.trace < 0 || lin_words_first_of(s, a->end.trace, NULL) != first ||
            lin_words_begin_after_first(s, a->end.trace) < limit) {
            a->used = 2;
        } else if (a->loser == first) {
            a->end = (lin_words_step){0, -1, 0};
        }
    }
    rebuild(w, s);
}
