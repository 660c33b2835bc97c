// Traces: removing those that no hypothesis refers to, and settling words.

#include <string.h>

#include "decoder/words_internal.h"

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

/* ---- removal --------------------------------------------------------------------------------------------------------------- */

void lin_words_mark(const lin_words_view *s, int32_t *marks, int at)
{
    for (; at >= 0 && !marks[at] && !lin_words_is_settled(s, &s->traces[at]); at = s->traces[at].before) marks[at] = 1;
}

static int moved(const int32_t *marks, int at) { return at < 0 ? -1 : marks[at]; }

// Keeps the traces that hypotheses and alternatives refer to, in their order.
void lin_words_sweep(const lin_words *w, lin_words_view *s)
{
    lin_words_header *h = s->h;
    int32_t *marks = s->slots;
    int n = 0;
    memset(marks, 0, (size_t)h->n_traces * sizeof *marks);
    for (int i = 0; i < h->n_hyps; i++) {
        for (int k = 0; k < 2; k++) lin_words_mark(s, marks, s->hyps[i].endings[k].trace);
    }
    lin_words_mark_alternatives(w, s, marks);
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

// Keeps only the n best hypotheses, if even the trace-backs of all do not fit.
static void keep_hyps(lin_words_view *s, int n)
{
    while (s->h->n_hyps > n) {
        int worst = 0;
        for (int i = 1; i < s->h->n_hyps; i++) {
            if (s->hyps[i].score <= s->hyps[worst].score) worst = i;
        }
        s->hyps[worst] = s->hyps[--s->h->n_hyps];
    }
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

// Gives out the first word of the best hypothesis, which all hypotheses have.
static void settle_first(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    const lin_words_hyp *t = &s->hyps[lin_words_best(s)];
    const uint64_t first = t->first;
    lin_words_traceback *all = &s->of;
    int phones;
    int64_t limit = s->h->frame;
    for (int i = 0; i < s->h->n_hyps; i++) {
        for (int k = 0; k < 2; k++) {
            const lin_words_ending *a = &s->hyps[i].endings[k];
            if (a->best == -INFINITY) continue;
            const int64_t behind = lin_words_begin_after_first(s, a->trace);
            if (behind < limit) limit = behind;
        }
    }
    lin_words_traceback_of(w, s, t, all);
    lin_words_shares(w, s, t, all, s->shares);
    const lin_status status = lin_words_append_traceback(s, all, s->shares, 1, limit, settled, NULL);
    if (status != LIN_OK) s->failed = status;
    settled->score = t->score;
    settled->acoustic = t->acoustic;
    settled->language = t->language;
    (void)lin_words_first_of(s, lin_words_better_ending(t)->trace, &phones);
    lin_words_settle_rows(w, s, all, limit);
    lin_words_settle_alternatives(w, s, first, limit);
    s->h->settled++;
    s->h->settled_history = first;
    for (int i = 0; i < s->h->n_hyps; i++) {
        lin_words_hyp *other = &s->hyps[i];
        other->n_words--;
        other->n_phones -= phones;
        other->first = lin_words_first_of(s, lin_words_better_ending(other)->trace, NULL);
    }
}

// Settles the first word of the best hypothesis; hypotheses without it are dropped.
static void force(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    const uint64_t first = s->hyps[lin_words_best(s)].first;
    int n = 0;
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].first == first) s->hyps[n++] = s->hyps[i];
    }
    s->h->n_hyps = n;
    settle_first(w, s, settled);
}

// Too many rows are stored: the best hypothesis decides on its first word or silence; if it is inside a word that does not end,
// the best one of complete words decides.
static void make_rows(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    while (lin_words_rows_full(w, s)) {
        const lin_words_hyp *best = &s->hyps[lin_words_best(s)];
        int n = 0;
        if (best->n_words) {
            force(w, s, settled);
            continue;
        }
        const int silence = best->n_phones == 0;
        for (int i = 0; i < s->h->n_hyps; i++) {
            const lin_words_hyp *t = &s->hyps[i];
            if (silence ? t->n_phones == 0 : t->node == LIN_TREE_ROOT) s->hyps[n++] = *t;
        }
        if (n) s->h->n_hyps = n;
        else s->h->rows_lost = 1;
        if (silence) lin_words_settle_silence(w, s);
    }
}

void lin_words_make_room(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    lin_words_header *h = s->h;
    const int need = 2 * w->o.width; // traces of hypotheses, and of losers
    if (lin_words_rows_full(w, s)) make_rows(w, s, settled);
    if (h->n_traces + need <= w->n_traces && h->n_alternatives <= w->n_alternatives / 4 * 3) return;
    lin_words_sweep(w, s);
    while (h->n_alternatives > w->n_alternatives / 2) lin_words_thin_alternatives(w, s);
    while (h->n_traces + need > w->n_traces - w->n_traces / 8) {
        if (h->n_alternatives) lin_words_drop_alternatives(w, s);
        else if (s->hyps[lin_words_best(s)].n_words) force(w, s, settled);
        else if (h->n_hyps > 1) keep_hyps(s, h->n_hyps / 2);
        else return;
        lin_words_sweep(w, s);
    }
}

/* ---- settling -------------------------------------------------------------------------------------------------------------- */

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

static int shared_by_all(const lin_words_view *s)
{
    const uint64_t first = s->hyps[0].first;
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (!s->hyps[i].first || s->hyps[i].first != first) return 0;
    }
    return 1;
}

static int too_long(const lin_words *w, const lin_words_view *s)
{
    for (int i = 0; i < s->h->n_hyps; i++) {
        if (s->hyps[i].n_words > w->o.longest) return 1;
    }
    return 0;
}

void lin_words_settle(const lin_words *w, lin_words_view *s, lin_path *settled)
{
    while (!s->failed && w->o.n_best == 1 && shared_by_all(s)) settle_first(w, s, settled);
    while (!s->failed && too_long(w, s)) {
        if (s->hyps[lin_words_best(s)].n_words) {
            force(w, s, settled);
            continue;
        }
        int n = 0;
        for (int i = 0; i < s->h->n_hyps; i++) {
            if (s->hyps[i].n_words <= w->o.longest) s->hyps[n++] = s->hyps[i];
        }
        s->h->n_hyps = n;
    }
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
