// words_history.c - what was recognised so far: traces, trace-backs and alternatives; see words_internal.h. It calls no other
// file of the search.

#include <string.h>

#include "decoder/words_internal.h"

/* ---- traces ---------------------------------------------------------------------------------------------------------------- */

int lin_words_best(const lin_words_view *s)
{
    int best = 0;
    for (int i = 1; i < s->h->n_hyps; i++) {
        if (s->hyps[i].score > s->hyps[best].score) best = i;
    }
    return best;
}

// Word numbers wrap around after 2^32 words.
int lin_words_is_settled(const lin_words_view *s, const lin_words_trace *r)
{
    return (int32_t)(r->n_words - s->h->settled) < (r->word == LIN_WORD_INSIDE ? 0 : 1);
}

int lin_words_new_trace(lin_words_view *s, const lin_words_candidate *c)
{
    const int before = c->t.endings[LIN_LABEL_ENDING].trace;
    const uint32_t words = before < 0 ? s->h->settled : s->traces[before].n_words;
    s->traces[s->h->n_traces] = (lin_words_trace){.history = c->t.history,
                                           .start = s->h->frame,
                                           .before_logp = c->before_logp,
                                           .before_frames = c->before_frames,
                                           .before = before,
                                           .label = c->t.last,
                                           .word = c->word,
                                           .n_words = words + (c->word != LIN_WORD_INSIDE),
                                           .node = c->t.node};
    return s->h->n_traces++;
}

uint64_t lin_words_first_of(const lin_words_view *s, int at, int *phones)
{
    uint64_t first = 0;
    int n = 0;
    for (; at >= 0 && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) {
        if (s->traces[at].word != LIN_WORD_INSIDE) {
            first = s->traces[at].history;
            n = 0;
        }
        n++;
    }
    if (phones) *phones = n;
    return first;
}

int lin_words_age(const lin_words_view *s, const lin_words_hyp *t)
{
    int64_t start = s->h->frame;
    int at = lin_words_better_ending(t)->trace;
    for (; at >= 0 && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before)
        if (s->traces[at].word != LIN_WORD_INSIDE) start = s->traces[at].start;
    return (int)(s->h->frame - start);
}

int64_t lin_words_begin_after_first(const lin_words_view *s, int at)
{
    int64_t start = s->h->frame;
    const uint32_t number = s->h->settled + 1;
    for (; at >= 0 && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) {
        const lin_words_trace *r = &s->traces[at];
        if (r->n_words == number && r->word != LIN_WORD_INSIDE) break;
        start = r->start;
    }
    return start;
}

// Both endings end with the same phone, in one trace each or in a common one.
void lin_words_break_off(lin_words_view *s, lin_words_hyp *t)
{
    for (int k = 0; k < 2; k++) {
        const int at = t->endings[k].trace;
        if (at < 0 || s->traces[at].word != LIN_WORD_INSIDE) continue;
        s->traces[at].word = LIN_WORD_UNKNOWN;
        s->traces[at].n_words++;
        s->traces[at].history = lin_hash_pair(t->history, UINT64_C(1) << 42);
        s->traces[at].node = LIN_TREE_ROOT;
    }
    t->history = lin_hash_pair(t->history, UINT64_C(1) << 42);
    if (!t->n_words++) t->first = t->history;
    t->node = LIN_TREE_ROOT;
    t->ahead = 0;
    lin_words_weigh(t);
}

/* ---- trace-backs ----------------------------------------------------------------------------------------------------------- */

void lin_words_follow_traces(const lin_words *w, const lin_words_view *s, lin_words_step end, lin_words_traceback *to)
{
    while (end.trace >= 0 && to->n < w->n_traceback && !lin_words_is_settled(s, &s->traces[end.trace])) {
        const lin_words_trace *r = &s->traces[end.trace];
        if (r->word != LIN_WORD_INSIDE) to->ends[to->n_words++] = to->n;
        to->phones[to->n++] = end;
        end = (lin_words_step){r->before_logp, r->before, r->before_frames};
    }
}

void lin_words_traceback_of(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, lin_words_traceback *to)
{
    const lin_words_ending *a = lin_words_better_ending(t);
    to->n = to->n_words = 0;
    lin_words_follow_traces(w, s, (lin_words_step){a->logp, a->trace, a->frames}, to);
}

// Marks a trace-back.
static void mark(const lin_words_view *s, int32_t *marks, int at)
{
    for (; at >= 0 && !marks[at] && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) marks[at] = 1;
}

/* ---- alternatives ---------------------------------------------------------------------------------------------------------- */

// Alternatives that are further below the best change neither the list of the best nor a confidence.
static const double LOST_MAX = 24;
// An alternative that lost this much changes a confidence by 0.0001.
static const double LOST_CONFIDENCE = 9;

static int slot_of(const lin_words *w, uint64_t winner)
{
    return (int)(lin_hash_pair(winner, 1) & (uint64_t)(w->n_alternatives - 1));
}

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
    a->lost = fmax(a->winner_level - a->loser_level, 0);
    if (!better) return;
    a->end = end;
    a->loser_best = level;
}

void lin_words_drop_alternatives(const lin_words *w, lin_words_view *s)
{
    memset(s->alternatives, 0, (size_t)w->n_alternatives * sizeof *s->alternatives);
    s->h->n_alternatives = 0;
}

// Copies those that are kept into an empty table. The memory of the candidates is free between two rows.
static void rebuild(const lin_words *w, lin_words_view *s)
{
    lin_words_alternative *old = (void *)s->candidates;
    int n = 0;
    for (int i = 0; i < w->n_alternatives; i++) {
        if (s->alternatives[i].used == 1) old[n++] = s->alternatives[i];
    }
    lin_words_drop_alternatives(w, s);
    for (int i = 0; i < n; i++) put(w, s, &old[i]);
}

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
static void mark_alternatives(const lin_words *w, lin_words_view *s, int32_t *marks)
{
    for (int k = 0; k < w->n_alternatives; k++) {
        lin_words_alternative *a = &s->alternatives[k];
        if (!a->used) continue;
        a->used = a->winner == s->h->settled_history ? 1 : 2;
        if (a->used == 1) mark(s, marks, a->end.trace);
    }
    for (int again = 1; again;) {
        again = 0;
        for (int i = s->h->n_traces; i-- > 0;) { // traces refer to older ones, and so do most losers
            if (marks[i] != 1) continue;
            marks[i] = 2;
            for (int k = -1; (k = lin_words_next_alternative(w, s, lin_words_trace_key(w, s, &s->traces[i]), k)) >= 0;) {
                lin_words_alternative *a = &s->alternatives[k];
                if (a->used == 2) mark(s, marks, a->end.trace);
                a->used = 1;
                again = 1;
            }
        }
    }
    rebuild(w, s);
}

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

/* ---- removal of what nothing refers to ------------------------------------------------------------------------------------- */

static int moved(const int32_t *marks, int at) { return at < 0 ? -1 : marks[at]; }

// Keeps the traces that hypotheses and alternatives refer to, in their order.
void lin_words_sweep(const lin_words *w, lin_words_view *s)
{
    lin_words_header *h = s->h;
    int32_t *marks = s->slots;
    int n = 0;
    memset(marks, 0, (size_t)h->n_traces * sizeof *marks);
    for (int i = 0; i < h->n_hyps; i++) {
        for (int k = 0; k < 2; k++) mark(s, marks, s->hyps[i].endings[k].trace);
    }
    mark_alternatives(w, s, marks);
    for (int i = 0; i < h->n_traces; i++) {
        if (!marks[i]) {
            marks[i] = -1;
            continue;
        }
        s->traces[i].before = moved(marks, s->traces[i].before); // older: its new index is known
        marks[i] = n;
        s->traces[n++] = s->traces[i];
    }
    h->n_traces = n;
    for (int i = 0; i < h->n_hyps; i++) {
        for (int k = 0; k < 2; k++) s->hyps[i].endings[k].trace = moved(marks, s->hyps[i].endings[k].trace);
    }
    for (int i = 0; i < w->n_alternatives; i++) {
        if (s->alternatives[i].used) s->alternatives[i].end.trace = moved(marks, s->alternatives[i].end.trace);
    }
}

/* ---- states from files ----------------------------------------------------------------------------------------------------- */

enum { FRAMES_MAX = 1 << 30 }; // of one run: as many more fit before an int32_t overflows

static int in(int64_t value, int64_t from, int64_t to) { return value >= from && value <= to; }

// No sum of logarithms is near this limit; larger ones could overflow.
static int logarithm(double value) { return fabs(value) < 1e15; }

// A trace refers to an older one and counts its words.
static int good_trace(const lin_words *w, const lin_words_view *s, int i)
{
    const lin_words_trace *r = &s->traces[i];
    if (!in(r->before, -1, i - 1) || !in(r->label, 1, w->V - 1) || !in(r->word, LIN_WORD_INSIDE, INT32_MAX)) return 0;
    if (!in(r->before_frames, r->before < 0 ? 0 : 1, FRAMES_MAX) || !logarithm(r->before_logp)) return 0;
    if (!in(r->start, r->before < 0 ? s->h->first_frame : s->traces[r->before].start + 1, s->h->frame - 1)) return 0;
    const uint32_t words = r->n_words - (r->word != LIN_WORD_INSIDE);
    return r->before < 0 ? (int32_t)(words - s->h->settled) <= 0 : words == s->traces[r->before].n_words;
}

// Both endings have the words and phones of the hypothesis, in alignments of their own.
static int good_ending(const lin_words_view *s, const lin_words_hyp *t, const lin_words_ending *a)
{
    if (!in(a->trace, -1, s->h->n_traces - 1) || !logarithm(a->logp)) return 0;
    const int64_t rows = s->h->frame - s->h->first_frame;
    if (!in(a->frames, a->trace < 0 ? 0 : 1, rows < FRAMES_MAX ? rows : FRAMES_MAX)) return 0;
    if (a->best == -INFINITY && a->sum == -INFINITY) return 1;
    if (!logarithm(a->sum) || !logarithm(a->best)) return 0;
    int n_words = 0, n_phones = 0;
    for (int at = a->trace; at >= 0 && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) {
        n_words += s->traces[at].word != LIN_WORD_INSIDE;
        n_phones++;
    }
    return lin_words_first_of(s, a->trace, NULL) == t->first && n_words == t->n_words && n_phones == t->n_phones;
}

static int good_hyp(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t)
{
    if (!in(t->node, LIN_PLACE_UNKNOWN, s->h->context_id ? INT32_MAX : w->tree->n_nodes - 1)) return 0;
    if (!in(t->last, 0, w->V - 1)) return 0;
    if (t->lm_state >= (w->lm ? lin_ngram_states(w->lm) : w->grammar ? lin_grammar_states(w->grammar) : 1)) return 0;
    if (!in(t->n_words, 0, w->o.longest) || !in(t->n_inside, 0, LIN_PRONUNCIATION_MAX)) return 0;
    if (!logarithm(t->language) || !logarithm(t->weight) || !logarithm(t->ahead) || !logarithm(t->pending)) return 0;
    if (!logarithm(t->acoustic) || !logarithm(t->score)) return 0;
    if (lin_words_better_ending(t)->best == -INFINITY) return 0;
    return good_ending(s, t, &t->endings[LIN_BLANK_ENDING]) && good_ending(s, t, &t->endings[LIN_LABEL_ENDING]);
}

static int good_alternative(const lin_words_view *s, const lin_words_alternative *a)
{
    if (a->used != 1 || !in(a->end.trace, -1, s->h->n_traces - 1) || !(a->lost >= 0) || !logarithm(a->lost)) return 0;
    if (!logarithm(a->winner_level) || !logarithm(a->loser_level) || !logarithm(a->loser_best)) return 0;
    return in(a->end.frames, a->end.trace < 0 ? 0 : 1, FRAMES_MAX) && logarithm(a->end.logp) && logarithm(a->lost_weight) &&
           logarithm(a->lost_language);
}

int lin_words_good_history(const lin_words *w, const lin_words_view *s)
{
    int used = 0;
    for (int i = 0; i < s->h->n_traces; i++) {
        if (!good_trace(w, s, i)) return 0;
    }
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (!good_hyp(w, s, &s->hyps[i])) return 0;
    }
    for (int i = 0; i < w->n_alternatives; i++) {
        if (s->alternatives[i].used && !good_alternative(s, &s->alternatives[i])) return 0;
        used += s->alternatives[i].used != 0;
    }
    return used == s->h->n_alternatives;
}
