// The n best sequences of words: a best-first search over hypotheses, and over trace-backs in which an alternative replaces all
// phones up to a place, by estimates of their scores; then exact scores, and sorting by these.

#include <string.h>

#include "decoder/words_internal.h"

static void offer(lin_words_ranking *g, const lin_words_ranked *new)
{
    if (g->n < LIN_WORDS_RANKED_MAX) {
        g->items[g->n++] = *new;
        return;
    }
    int worst = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->items[i].done && (worst < 0 || g->items[i].score <= g->items[worst].score)) worst = i;
    }
    if (worst >= 0 && g->items[worst].score < new->score) g->items[worst] = *new;
}

static int next(const lin_words_ranking *g)
{
    int best = -1;
    for (int i = 0; i < g->n; i++) {
        if (!g->items[i].done && (best < 0 || g->items[i].score > g->items[best].score)) best = i;
    }
    return best;
}

// The first frame of the phone after number n of a trace-back; the next row if there is none.
static int64_t begin_behind(const lin_words_view *s, const lin_words_traceback *of, int n)
{
    return n ? s->traces[of->phones[n - 1].trace].start : s->h->frame;
}

// Built from the hypothesis's trace-back, item by item. Ends of words that are replaced are dropped with their phones.
static void traceback_of(const lin_words *w, const lin_words_view *s, lin_words_ranking *g, int number, lin_words_traceback *to)
{
    int n = 0;
    for (; g->items[number].base >= 0; number = g->items[number].base) g->chain[n++] = number;
    lin_words_traceback_of(w, s, &s->hyps[g->items[number].from], to);
    while (n > 0) {
        const lin_words_ranked *i = &g->items[g->chain[--n]];
        lin_words_step end = s->alternatives[i->from].end;
        const int kept = i->kept < to->n ? i->kept : to->n;
        const int64_t most = begin_behind(s, to, kept) - (end.trace < 0 ? 0 : s->traces[end.trace].start);
        if (end.frames > most) end.frames = (int)most;
        to->n = kept;
        while (to->n_words && to->ends[to->n_words - 1] >= kept) to->n_words--;
        lin_words_follow_traces(w, s, end, to);
    }
}

// A key for a sequence of words; words outside the lexicon count by their phones. With `pronunciations` all words count by their
// phones.
static uint64_t words_of(const lin_words_view *s, const lin_words_traceback *of, int pronunciations)
{
    uint64_t h = 1;
    int word = LIN_WORD_INSIDE;
    for (int i = 0; i < of->n; i++) {
        const lin_words_trace *r = &s->traces[of->phones[i].trace];
        if (r->word != LIN_WORD_INSIDE) h = lin_hash_pair(h, (uint64_t)(int64_t)(word = r->word));
        if (word < 0 || pronunciations) h = lin_hash_pair(h, (uint64_t)r->label | UINT64_C(1) << 40);
    }
    return h;
}

static int is_new(lin_words_ranking *g, uint64_t words)
{
    for (int i = 0; i < g->n_seen; i++) {
        if (g->seen[i] == words) return 0;
    }
    g->seen[g->n_seen++] = words;
    return 1;
}

static void offer_alternatives(const lin_words *w, const lin_words_view *s, lin_words_ranking *g, int number,
                               const lin_words_traceback *of)
{
    const lin_words_ranked from = g->items[number];
    for (int i = from.kept; i <= of->n; i++) {
        const uint64_t key = i < of->n ? lin_words_trace_key(w, s, &s->traces[of->phones[i].trace]) : s->h->settled_history;
        const int64_t behind = begin_behind(s, of, i);
        for (int k = -1; (k = lin_words_next_alternative(w, s, key, k)) >= 0;) {
            const lin_words_alternative *a = &s->alternatives[k];
            if (a->end.trace >= 0 && s->traces[a->end.trace].start >= behind) continue; // it overlaps the next phone
            offer(g, &(lin_words_ranked){.score = from.score - a->lost,
                               .acoustic = from.acoustic - (a->lost - a->lost_weight),
                               .language = from.language - a->lost_language,
                               .base = number,
                               .kept = i,
                               .from = k});
        }
    }
}

static double score_of(const lin_words_ranked *i) { return i->score - i->acoustic + i->exact; }

// Best first, equal ones in their order; but before finish the best hypothesis stays the first.
static void put_in_order(const lin_words_view *s, lin_words_ranking *g, int n_best)
{
    int n = 0;
    for (int i = 1; i < g->n_found; i++) {
        const int32_t item = g->found[i];
        int k = i;
        for (; k > !s->h->finished && score_of(&g->items[g->found[k - 1]]) < score_of(&g->items[item]); k--) {
            g->found[k] = g->found[k - 1];
        }
        g->found[k] = item;
    }
    for (int i = 0; i < g->n_found && n < n_best; i++) { // of pronunciations of the same words only the best
        int again = 0;
        for (int k = 0; k < n; k++) again |= g->items[g->found[k]].words == g->items[g->found[i]].words;
        if (!again) g->found[n++] = g->found[i];
    }
    g->n_found = n;
}

// Finds the n best: items in `found`, in their order.
static void rank(const lin_words *w, const lin_words_view *s)
{
    lin_words_ranking *g = s->ranking;
    lin_words_traceback to = s->of;
    const int most = 2 * w->o.n_best + 16;
    memset(g, 0, sizeof *g);
    for (int i = 0; i < s->h->n_hyps; i++) {
        const lin_words_hyp *t = &s->hyps[i];
        offer(g, &(lin_words_ranked){.score = t->score, .acoustic = t->acoustic, .language = t->language, .base = -1, .from = i});
    }
    for (int tries = 0; tries < 64 + 16 * w->o.n_best && g->n_seen < most; tries++) {
        const int best = next(g);
        if (best < 0) break;
        lin_words_ranked *i = &g->items[best];
        i->done = 1;
        traceback_of(w, s, g, best, &to);
        if (to.n == w->n_traceback || !is_new(g, words_of(s, &to, 1))) continue;
        i->words = words_of(s, &to, 0);
        i->exact = lin_words_exact(w, s, &to);
        // The sum that was followed is a part of the exact sum. For alternatives there are only estimates, which may be above it.
        if (i->base < 0) i->exact = fmax(i->exact, i->acoustic);
        if (i->exact > -INFINITY) g->found[g->n_found++] = best;
        if (!s->h->rows_lost) offer_alternatives(w, s, g, best, &to);
    }
    g->best = g->found[0];
    put_in_order(s, g, w->o.n_best);
    s->h->ranked = 1;
}

// Words shared with the best hypothesis have their probability there; the others at most that of this hypothesis.
static void shares_of(const lin_words_view *s, const lin_words_traceback *of, double behind, const lin_words_traceback *best,
                      const double *best_shares, double *shares)
{
    const double own = 1 / (1 + exp(behind));
    for (int k = 0; k < of->n_words; k++) {
        shares[k] = own;
        for (int b = 0; b < best->n_words; b++) {
            if (lin_words_same(s, of, k, best, b)) shares[k] = best_shares[b];
        }
    }
}

static lin_status append(const lin_words *w, const lin_words_view *s, const lin_words_traceback *of, const lin_words_ranked *i,
                         double behind, lin_path *path, lin_error *err)
{
    const lin_words_hyp *first = &s->hyps[lin_words_best(s)];
    lin_words_traceback best = s->best_traceback;
    lin_words_traceback_of(w, s, first, &best);
    lin_words_shares(w, s, first, &best, s->best_shares);
    shares_of(s, of, behind, &best, s->best_shares, s->shares);
    lin_status status = lin_words_append_traceback(s, of, s->shares, 0, s->h->frame, path, err);
    if (status != LIN_OK) return status;
    path->score = score_of(i);
    path->acoustic = i->exact;
    path->language = i->language;
    return LIN_OK;
}

static lin_status append_found(const lin_words *w, const lin_words_view *s, int which, lin_path *path, lin_error *err)
{
    lin_words_ranking *g = s->ranking;
    const lin_words_ranked *i = &g->items[g->found[which]];
    lin_words_traceback of = s->of;
    traceback_of(w, s, g, g->found[which], &of);
    return append(w, s, &of, i, score_of(&g->items[g->best]) - score_of(i), path, err);
}

lin_status lin_words_append_best(const lin_words *w, const lin_words_view *s, lin_path *path, lin_error *err)
{
    const int best = lin_words_best(s);
    const lin_words_hyp *t = &s->hyps[best];
    if (w->o.n_best > 1 && s->h->finished) {
        if (!s->h->ranked) rank(w, s);
        return append_found(w, s, 0, path, err);
    }
    const lin_words_ranked i = {.score = t->score, .acoustic = t->acoustic, .language = t->language, .exact = t->acoustic};
    lin_words_traceback of = s->of;
    lin_words_traceback_of(w, s, t, &of);
    return append(w, s, &of, &i, 0, path, err);
}

int lin_words_hypotheses(const lin_words *w, void *state)
{
    const lin_words_view s = lin_words_view_of(w, state);
    if (w->o.n_best == 1) return 1;
    if (!s.h->ranked) rank(w, &s);
    return s.ranking->n_found;
}

lin_status lin_words_nbest(const lin_words *w, void *state, int which, lin_path *tail, lin_error *err)
{
    const lin_words_view s = lin_words_view_of(w, state);
    lin_path_clear(tail);
    if (which == 0) return lin_words_append_best(w, &s, tail, err);
    const int n = which > 0 && which < w->o.n_best ? lin_words_hypotheses(w, state) : 0;
    if (which >= n || n == 0) return lin_fail(err, LIN_INVALID, "word hypothesis %d does not exist", which + 1);
    return append_found(w, &s, which, tail, err);
}

int lin_words_good_ranking(const lin_words *w, const lin_words_view *s)
{
    const lin_words_ranking *g = s->ranking;
    if (!s->h->ranked) return 1;
    if (s->h->ranked != 1 || w->o.n_best == 1 || g->n < 1 || g->n > LIN_WORDS_RANKED_MAX) return 0;
    if (g->n_found < 1 || g->n_found > w->o.n_best || g->best < 0 || g->best >= g->n) return 0;
    for (int i = -1; i < g->n_found; i++) {
        int at = i < 0 ? g->best : g->found[i];
        for (int steps = 0; at != -1; steps++) { // item by item to a hypothesis
            if (at < 0 || at >= g->n || steps == g->n) return 0;
            const lin_words_ranked *r = &g->items[at];
            if (r->base < 0 ? r->from < 0 || r->from >= s->h->n_hyps : r->from < 0 || r->from >= w->n_alternatives) return 0;
            if (r->kept < 0 || (r->base >= 0 && !s->alternatives[r->from].used)) return 0;
            at = r->base;
        }
    }
    return 1;
}
