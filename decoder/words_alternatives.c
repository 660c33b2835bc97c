// Losers of recombinations, kept as alternatives to the history that won, in an open hash table by the winner: its alternatives lie
// behind each other.

#include <string.h>

#include "decoder/words_internal.h"

// Worse than this, below the best, they matter to no list of the best, nor to a confidence.
static const double LOST_MAX = 24;
// What lost so much changes a confidence by 0.0001.
static const double LOST_CONFIDENCE = 9;

static int slot_of(const lin_words *w, uint64_t winner) { return (int)(lin_hash_pair(winner, 1) & (uint64_t)(w->n_alternatives - 1)); }

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

// The last phone of a candidate. Its record may not exist yet, when the phone began in this row: it is made. -2: there is no room.
static step end_of(const lin_words *w, space *s, const candidate *c)
{
    const arm *a = better_arm(&c->t);
    if (a != &c->t.arms[LABEL_ARM] || !c->fresh) return (step){a->logp, a->record, a->frames};
    if (s->h->n_records + w->o.width >= w->n_records) return (step){0, -2, 0};
    return (step){a->logp, words_new_record(s, c), 1};
}

static double lost(const alternative *a) { return fmax(a->winner_level - a->loser_level, 0); }

// Of a winner and a loser, or the empty slot for them.
static alternative *find(const lin_words *w, const space *s, uint64_t winner, uint64_t loser)
{
    int at = slot_of(w, winner);
    while (s->alternatives[at].used && (s->alternatives[at].winner != winner || s->alternatives[at].loser != loser)) {
        at = (at + 1) & (w->n_alternatives - 1);
    }
    return &s->alternatives[at];
}

// Alternatives of one table differ, but for those whose losers were settled since.
static void put(const lin_words *w, space *s, const alternative *a)
{
    alternative *old = find(w, s, a->winner, a->loser);
    if (!old->used) {
        *old = *a;
        s->h->n_alternatives++;
    }
}

void words_remember(const lin_words *w, space *s, const candidate *winner, const candidate *loser)
{
    const double level = loser->t.total - s->best;
    if (!(level > -LOST_MAX) || s->h->n_alternatives >= w->n_alternatives - w->n_alternatives / 8) return;
    if (w->o.n_best == 1 && winner->t.total - loser->t.total > LOST_CONFIDENCE) return;
    const uint64_t to = words_key(w, s, winner->t.history, winner->t.node), from = words_key(w, s, loser->t.history, loser->t.node);
    alternative *a = find(w, s, to, from);
    const int better = !a->used || level > a->loser_best;
    const step end = better ? end_of(w, s, loser) : a->end;
    if (end.record == -2) return;
    if (!a->used) {
        *a = (alternative){.winner = to,
                           .loser = from,
                           .winner_level = -INFINITY,
                           .loser_level = -INFINITY,
                           .lost_outer = winner->t.outer - loser->t.outer,
                           .lost_language = winner->t.language - loser->t.language,
                           .used = 1};
        s->h->n_alternatives++;
    }
    a->winner_level = fmax(a->winner_level, winner->t.total - s->best);
    a->loser_level = log_add(a->loser_level, level);
    a->lost = lost(a);
    if (!better) return;
    a->end = end;
    a->loser_best = level;
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
        alternative *a = &s->alternatives[k];
        if (!a->used) continue;
        a->used = a->winner == s->h->settled_history ? 1 : 2;
        if (a->used == 1) words_mark(s, marks, a->end.record);
    }
    for (int again = 1; again;) {
        again = 0;
        for (int i = s->h->n_records; i-- > 0;) { // chains go back to older ones, most losers' too
            if (marks[i] != 1) continue;
            marks[i] = 2;
            for (int k = -1; (k = words_next_alternative(w, s, words_record_key(w, s, &s->records[i]), k)) >= 0;) {
                alternative *a = &s->alternatives[k];
                if (a->used == 2) words_mark(s, marks, a->end.record);
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
        if (a->winner == s->h->settled_history || a->end.record < 0 || words_first_of(s, a->end.record, NULL) != first ||
            words_begin_behind_first(s, a->end.record) < limit) {
            a->used = 2;
        } else if (a->loser == first) {
            a->end = (step){0, -1, 0};
        }
    }
    rebuild(w, s);
}
