// Losers of recombinations, kept as alternatives to the history that won, in an open hash table by the winner: its alternatives lie
// behind each other.

#include <string.h>

#include "decoder/words_internal.h"

// Worse than this, below the best, they matter to no list of the best, nor to a confidence.
static const double LOST_MAX = 24;

static int slot_of(const lin_words *w, uint64_t winner) { return (int)(mix(winner, 1) & (uint64_t)(w->n_alternatives - 1)); }

// First alternative of a winner from a slot on (-1: from its first slot on), or -1.
int words_next_alternative(const lin_words *w, const space *s, uint64_t winner, int at)
{
    const int wrap = w->n_alternatives - 1;
    at = at < 0 ? slot_of(w, winner) : (at + 1) & wrap;
    for (int i = 0; i <= wrap && s->alternatives[at].used; i++, at = (at + 1) & wrap) {
        if (s->alternatives[at].winner == winner) return at;
    }
    return -1;
}

// The end of the last complete word of a chain. history 0: it has none that is not settled.
static tip last_word(const space *s, int at, int frames, double logp)
{
    while (at >= 0 && !words_is_settled(s, &s->records[at])) {
        const record *r = &s->records[at];
        if (r->word != WORD_INSIDE) return (tip){r->history, logp, at, frames};
        frames = r->before_frames;
        logp = r->before_logp;
        at = r->before;
    }
    return (tip){0, 0, -1, 0};
}

// A candidate's record of this row does not exist yet: where a loser needs it, because it ends a word, it is made.
static tip tip_of(const lin_words *w, space *s, const candidate *c, int make)
{
    const arm *a = better_arm(&c->t);
    if (a != &c->t.arms[LABEL_ARM] || !c->fresh) return last_word(s, a->record, a->frames, a->logp);
    if (c->word == WORD_INSIDE) return last_word(s, a->record, c->before_frames, c->before_logp);
    if (!make) return (tip){c->t.history, a->logp, -1, 1};
    if (s->h->n_records + w->o.width >= w->n_records) return (tip){0, 0, -2, 0};
    return (tip){c->t.history, a->logp, words_new_record(s, c), 1};
}

static double lost(const alternative *a) { return fmax(a->winner_level - a->loser_level, 0); }

static void put(const lin_words *w, space *s, const alternative *a)
{
    int at = slot_of(w, a->winner);
    for (; s->alternatives[at].used; at = (at + 1) & (w->n_alternatives - 1)) {
        alternative *old = &s->alternatives[at];
        if (old->winner != a->winner || old->loser.history != a->loser.history) continue;
        old->winner_level = fmax(old->winner_level, a->winner_level);
        old->loser_level = log_add(old->loser_level, a->loser_level);
        old->lost = lost(old);
        if (a->loser_best <= old->loser_best) return;
        old->loser = a->loser;
        old->loser_best = a->loser_best;
        return;
    }
    s->alternatives[at] = *a;
    s->alternatives[at].lost = lost(a);
    s->h->n_alternatives++;
}

void words_remember(const lin_words *w, space *s, const candidate *winner, const candidate *loser)
{
    const double level = loser->t.total - s->best;
    if (!(level > -LOST_MAX) || s->h->n_alternatives >= w->n_alternatives - w->n_alternatives / 8) return;
    const tip to = tip_of(w, s, winner, 0);
    const tip from = tip_of(w, s, loser, 1);
    if (to.history == from.history || from.record == -2) return; // words outside the lexicon with other phones so far
    const alternative a = {.winner = to.history,
                           .loser = from,
                           .winner_level = winner->t.total - s->best,
                           .loser_level = level,
                           .loser_best = level,
                           .lost_outer = winner->t.outer - loser->t.outer,
                           .lost_language = winner->t.language - loser->t.language,
                           .used = 1};
    put(w, s, &a);
}

// ---- away with old ones -----------------------------------------------------------------------------------------------------

// Puts those that are kept into an empty table. The candidates' room is free between two rows.
static void rebuild(const lin_words *w, space *s)
{
    alternative *old = (void *)s->candidates;
    int n = 0;
    for (int i = 0; i < w->n_alternatives; i++) {
        if (s->alternatives[i].used == 1) old[n++] = s->alternatives[i];
    }
    memset(s->alternatives, 0, (size_t)w->n_alternatives * sizeof *s->alternatives);
    s->h->n_alternatives = 0;
    for (int i = 0; i < n; i++) put(w, s, &old[i]);
}

void words_drop_alternatives(const lin_words *w, space *s)
{
    memset(s->alternatives, 0, (size_t)w->n_alternatives * sizeof *s->alternatives);
    s->h->n_alternatives = 0;
}

// The worse half goes.
void words_thin_alternatives(const lin_words *w, space *s)
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

// Marks the records of alternatives whose winner is marked, and these losers' chains, until there are no more of them. Alternatives
// that were not reached go.
void words_mark_alternatives(const lin_words *w, space *s, int32_t *marks)
{
    for (int k = 0; k < w->n_alternatives; k++) {
        if (s->alternatives[k].used) s->alternatives[k].used = s->alternatives[k].winner ? 2 : 1;
    }
    for (int k = 0; k < w->n_alternatives; k++) {
        if (s->alternatives[k].used == 1) words_mark(s, marks, s->alternatives[k].loser.record);
    }
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < s->h->n_records; i++) {
            if (marks[i] != 1) continue;
            marks[i] = 2;
            if (s->records[i].word == WORD_INSIDE) continue;
            for (int k = -1; (k = words_next_alternative(w, s, s->records[i].history, k)) >= 0;) {
                alternative *a = &s->alternatives[k];
                if (a->used == 2) words_mark(s, marks, a->loser.record);
                a->used = 1;
                again = 1;
            }
        }
    }
    rebuild(w, s);
}

// The first word of all histories, `first`, is settled and ends before `limit`: those that have it not, or go on earlier, go.
void words_settle_alternatives(const lin_words *w, space *s, uint64_t first, int64_t limit)
{
    for (int k = 0; k < w->n_alternatives; k++) {
        alternative *a = &s->alternatives[k];
        if (!a->used) continue;
        if (a->winner == 0 || a->loser.history == 0 || words_first_of(s, a->loser.record, NULL) != first ||
            words_begin_behind_first(s, a->loser.record) < limit) {
            a->used = 2;
            continue;
        }
        if (a->winner == first) a->winner = 0;
        if (a->loser.history == first) a->loser = (tip){0, 0, -1, 0};
    }
    rebuild(w, s);
}
