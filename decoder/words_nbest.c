// words_nbest.c - results: paths with confidences from trace-backs, exact sums, and the n best; see words_internal.h. Calls
// words_history.c.

#include <float.h>
#include <string.h>

#include "decoder/words_internal.h"

/* ---- confidence ------------------------------------------------------------------------------------------------------------ */

static const lin_words_trace *word_end(const lin_words_view *s, const lin_words_traceback *of, int word)
{
    return &s->traces[of->phones[of->ends[word]].trace];
}

static int64_t word_start(const lin_words_view *s, const lin_words_traceback *of, int word)
{
    const int first = word + 1 < of->n_words ? of->ends[word + 1] - 1 : of->n - 1;
    return s->traces[of->phones[first].trace].start;
}

static int same_word(const lin_words_view *s, const lin_words_traceback *a, int i, const lin_words_traceback *b, int k)
{
    const lin_words_trace *x = word_end(s, a, i), *y = word_end(s, b, k);
    return x->word == y->word && x->word >= 0 && word_start(s, a, i) <= y->start && word_start(s, b, k) <= x->start;
}

// A rival with this share of the probability differs from the trace-back in some words from number `from` on, counted from the
// last one: those that the rival does not have at an overlapping time. Trace-backs share a common beginning.
static void contest(const lin_words_view *s, const lin_words_traceback *of, int from, int at, double probability, double *shares)
{
    int to = of->n_words;
    while (at >= 0 && !lin_words_is_settled(s, &s->traces[at])) {
        const lin_words_trace *r = &s->traces[at];
        int64_t start = r->start;
        const int number = of->n_words - (int)(r->n_words - s->h->settled);
        if (r->word != LIN_WORD_INSIDE && number >= 0 && number < to && word_end(s, of, number)->history == r->history) {
            to = number;
            break;
        }
        for (at = r->before; at >= 0 && s->traces[at].word == LIN_WORD_INSIDE; at = s->traces[at].before)
            start = s->traces[at].start;
        if (r->word < 0) continue;
        while (from < to && word_start(s, of, from) > r->start) shares[from++] += probability;
        if (from < to && word_end(s, of, from)->word == r->word && word_end(s, of, from)->start >= start) from++;
    }
    while (from < to) shares[from++] += probability;
}

void lin_words_shares(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, const lin_words_traceback *of,
                      double *shares)
{
    for (int i = 0; i < of->n_words; i++) shares[i] = 1;
    for (int i = 0; i < s->h->n_hyps; i++) {
        const lin_words_hyp *other = &s->hyps[i];
        if (other != t) contest(s, of, 0, lin_words_better_ending(other)->trace, exp(fmin(other->score - t->score, 0)), shares);
    }
    int behind = 0; // words that end after phone number i
    for (int i = 0; i <= of->n; i++) {
        const lin_words_trace *r = i < of->n ? &s->traces[of->phones[i].trace] : NULL;
        const uint64_t key = r ? lin_words_trace_key(w, s, r) : s->h->settled_history;
        // Inside a word of the lexicon the loser has the same word; in a word outside the lexicon it has other phones.
        const int from = r && r->node == LIN_PLACE_UNKNOWN && behind > 0 ? behind - 1 : behind;
        for (int k = -1; (k = lin_words_next_alternative(w, s, key, k)) >= 0;) {
            const lin_words_alternative *a = &s->alternatives[k];
            contest(s, of, from, a->end.trace, exp(-a->lost), shares);
        }
        behind += r && r->word != LIN_WORD_INSIDE;
    }
    for (int i = 0; i < of->n_words; i++) shares[i] = 1 / shares[i];
}

/* ---- paths ----------------------------------------------------------------------------------------------------------------- */

// Confidence of a word: phones is the mean of the logarithms of its phones' confidences.
static float sure(const lin_words *w, const lin_words_view *s, double phones, double share)
{
    if (w->grammar && s->h->finished) return fmaxf((float)(s->h->sentence * share), FLT_MIN);
    const double *a = w->o.sure, mean = exp(phones);
    double p = mean * share;
    if (fabs(a[0]) + fabs(a[1]) + fabs(a[2]) > 0) {
        // Nearer to 0 or 1 a share says only how few hypotheses the beam has kept.
        const double logit = fmin(fmax(log(share / (1 - share)), -5), 5);
        p = 1 / (1 + exp(-a[0] - (a[1] + a[2] * mean) * logit));
    }
    return fmaxf((float)p, FLT_MIN);
}

// Phones of a trace-back from number first (the word's first one) down to last.
static void add_word(const lin_words *w, const lin_words_view *s, const lin_words_traceback *of, int first, int last,
                     double share, int64_t limit, lin_path *path)
{
    const int n = first - last + 1, word = s->traces[of->phones[last].trace].word;
    lin_path_phone *phones = &path->phones[path->n_phones];
    double sum = 0;
    for (int k = n; k-- > 0; limit = phones[k].start) {
        const lin_words_step *p = &of->phones[first - k];
        const lin_words_trace *r = &s->traces[p->trace];
        const float confidence = fminf(fmaxf((float)exp(p->logp / p->frames), FLT_MIN), 1);
        phones[k] = (lin_path_phone){.label = r->label, .confidence = confidence, .start = r->start, .end = r->start + p->frames};
        if (phones[k].end > limit) phones[k].end = limit;
        if (phones[k].start >= phones[k].end) phones[k].start = phones[k].end - 1;
        sum += log((double)confidence);
    }
    path->words[path->n_words++] = (lin_path_word){.word = word == LIN_WORD_INSIDE ? LIN_WORD_UNKNOWN : word,
                                                   .first_phone = path->n_phones,
                                                   .n_phones = n,
                                                   .confidence = sure(w, s, sum / n, share),
                                                   .start = phones[0].start,
                                                   .end = phones[n - 1].end};
    path->n_phones += n;
}

lin_status lin_words_append_traceback(const lin_words *w, const lin_words_view *s, const lin_words_traceback *of,
                                      const double *shares, int only_first, int64_t limit, lin_path *path, lin_error *err)
{
    const int inside = of->n > 0 && (!of->n_words || of->ends[0] > 0);
    const int n_phones = only_first ? of->n - of->ends[of->n_words - 1] : of->n, n_words = only_first ? 1 : of->n_words + inside;
    LIN_TRY(lin_path_reserve(path, n_phones, n_words, err));
    int first = of->n - 1;
    for (int i = of->n_words; i-- > 0; first = of->ends[i] - 1) {
        add_word(w, s, of, first, of->ends[i], shares[i], limit, path);
        if (only_first) return LIN_OK;
    }
    if (inside) {
        add_word(w, s, of, first, 0, 1, limit, path);
        path->incomplete = !s->h->finished;
    }
    return LIN_OK;
}

/* ---- exact sums ------------------------------------------------------------------------------------------------------------ */

// decoder/rows.h with the rows of the unsettled part.

// Sequences whose sums are computed together: those of one utterance have the same rows, of which the exponentials cost most.
enum { TOGETHER = 16 };
typedef struct batch {
    lin_sums list[TOGETHER];
    double ends[TOGETHER][2]; // after all rows: logarithms of the sums that end in blank after the last phone, and in it
    int n;
    size_t used; // labels, of n_traceback + 1
} batch;

static float *row_at(const lin_words *w, const lin_words_view *s, int64_t frame)
{
    return s->rows + (size_t)(frame - s->h->rows_from) * (size_t)w->V;
}

// The ends of all sequences after the rows up to `to`, from the settled part on; NAN if a row has infinities.
static void align_all(const lin_words *w, const lin_words_view *s, batch *b, int64_t to)
{
    const double *settled = s->h->settled_sums;
    double *p = s->sums + 2 * w->n_traceback + 2;
    for (int k = 0; k < b->n; k++) lin_sums_begin(&b->list[k], settled[LIN_BLANK_ENDING], settled[LIN_LABEL_ENDING]);
    for (int64_t frame = s->h->rows_from; frame < to; frame++) {
        const float *row = row_at(w, s, frame);
        if (isnan(row[0])) continue;
        const double most = lin_sums_scaled(row, w->V, p);
        if (!isfinite(most)) {
            for (int k = 0; k < b->n; k++) b->ends[k][0] = b->ends[k][1] = NAN;
            return;
        }
        for (int k = 0; k < b->n; k++) lin_sums_row(&b->list[k], p, most, to - 1 - frame);
    }
    for (int k = 0; k < b->n; k++) lin_sums_ends(&b->list[k], b->ends[k]);
}

static int has_room(const lin_words *w, const batch *b, int n)
{
    return b->n < TOGETHER && b->used + (size_t)n + 1 <= (size_t)w->n_traceback + 1;
}

// The phones first .. last of a trace-back, none if last is larger.
static lin_sums *take_labels(const lin_words_view *s, const lin_words_traceback *of, int first, int last, batch *b)
{
    lin_sums *q = &b->list[b->n++];
    *q = (lin_sums){.labels = s->labels + b->used, .sums = s->sums + 2 * b->used};
    q->labels[0] = s->h->settled_label;
    for (int i = first; i >= last; i--) q->labels[++q->n] = s->traces[of->phones[i].trace].label;
    b->used += (size_t)q->n + 1;
    return q;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

int lin_words_rows_full(const lin_words *w, const lin_words_view *s)
{
    return w->n_rows && !s->h->rows_lost && s->h->frame - s->h->rows_from >= w->n_rows;
}

void lin_words_keep_row(const lin_words *w, lin_words_view *s, const float *logp, int over)
{
    if (!w->n_rows || s->h->rows_lost) return;
    float *row = row_at(w, s, s->h->frame);
    memcpy(row, logp, (size_t)w->V * sizeof *row);
    row[0] = over ? NAN : lin_words_blank(w, logp);
}

// The sums after the phones first .. last of a trace-back (none if last is larger), whose rows are before `limit`.
static void settle_part(const lin_words *w, lin_words_view *s, const lin_words_traceback *of, int first, int last, int64_t limit)
{
    lin_words_header *h = s->h;
    batch b = {.n = 0};
    if (!w->n_rows || h->rows_lost || limit <= h->rows_from) return;
    const lin_sums *q = take_labels(s, of, first, last, &b);
    align_all(w, s, &b, limit);
    if (!(fmax(b.ends[0][0], b.ends[0][1]) > -INFINITY)) h->rows_lost = 1;
    if (h->rows_lost) return;
    memmove(s->rows, row_at(w, s, limit), (size_t)(h->frame - limit) * (size_t)w->V * sizeof *s->rows);
    memcpy(h->settled_sums, b.ends[0], sizeof b.ends[0]);
    h->settled_label = q->labels[q->n];
    h->rows_from = limit;
}

void lin_words_settle_rows(const lin_words *w, lin_words_view *s, const lin_words_traceback *of, int64_t limit)
{
    settle_part(w, s, of, of->n - 1, of->ends[of->n_words - 1], limit);
}

void lin_words_settle_silence(const lin_words *w, lin_words_view *s) { settle_part(w, s, NULL, -1, 0, s->h->frame); }

static int good_rows(const lin_words *w, const lin_words_view *s)
{
    const lin_words_header *h = s->h;
    if (!w->n_rows) return 1;
    if (h->rows_lost != 0) return h->rows_lost == 1;
    if (h->rows_from < h->first_frame || h->rows_from > h->frame || h->frame - h->rows_from > w->n_rows) return 0;
    if (h->settled_label < 0 || h->settled_label >= w->V) return 0;
    for (int i = 0; i < 2; i++) {
        if (h->settled_sums[i] != -INFINITY && !(fabs(h->settled_sums[i]) < 1e15)) return 0;
    }
    if (h->settled_sums[0] == -INFINITY && h->settled_sums[1] == -INFINITY) return 0;
    for (int64_t frame = h->rows_from; frame < h->frame; frame++) {
        const float *row = row_at(w, s, frame);
        for (int v = 1; v < w->V && !isnan(row[0]); v++) {
            if (isnan(row[v])) return 0;
        }
    }
    return 1;
}

/* ---- the n best ------------------------------------------------------------------------------------------------------------ */

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

// The exact sums of the items that were found last, those of the batch, which is empty then.
static void sum_exactly(const lin_words *w, const lin_words_view *s, lin_words_ranking *g, batch *b)
{
    const int lost = s->h->rows_lost != 0;
    if (!lost) align_all(w, s, b, s->h->frame);
    for (int k = 0; k < b->n; k++) {
        lin_words_ranked *i = &g->items[g->found[g->n_found - b->n + k]];
        const double *ends = b->ends[k];
        i->exact = lost || isnan(ends[0]) ? NAN : lin_words_log_add(ends[0], ends[1]);
        // The sum that was followed is a part of the exact sum. For alternatives there are only estimates, which may be above it.
        if (i->base < 0) i->exact = fmax(i->exact, i->acoustic);
    }
    b->n = 0;
    b->used = 0;
}

// Finds the n best: items in `found`, in their order. The first `most` are any ways to say any words, so that of the same words
// the best is found. Words with many pronunciations can fill these alone: then only other words count, until there are n.
static void rank(const lin_words *w, const lin_words_view *s)
{
    lin_words_ranking *g = s->ranking;
    lin_words_traceback to = s->of;
    const int most = 2 * w->o.n_best + 16;
    batch b = {.n = 0};
    int n = 0, texts = 0;
    memset(g, 0, sizeof *g);
    for (int i = 0; i < s->h->n_hyps; i++) {
        const lin_words_hyp *t = &s->hyps[i];
        offer(g, &(lin_words_ranked){.score = t->score, .acoustic = t->acoustic, .language = t->language, .base = -1, .from = i});
    }
    for (int tries = 0; g->n_seen < LIN_WORDS_RESCORED_MAX; tries++) {
        const int best = next(g), is_full = g->n_seen >= most;
        if (best < 0 || (is_full ? texts >= w->o.n_best : tries >= 64 + 16 * w->o.n_best)) break;
        lin_words_ranked *i = &g->items[best];
        i->done = 1;
        traceback_of(w, s, g, best, &to);
        i->words = words_of(s, &to, 0);
        int is_text = 1;
        for (int k = 0; k < g->n_found; k++) is_text &= g->items[g->found[k]].words != i->words;
        if (to.n == w->n_traceback || (is_full && !is_text) || !is_new(g, words_of(s, &to, 1))) continue;
        texts += is_text;
        if (!has_room(w, &b, to.n)) sum_exactly(w, s, g, &b);
        take_labels(s, &to, to.n - 1, 0, &b);
        g->found[g->n_found++] = best;
        if (!s->h->rows_lost) offer_alternatives(w, s, g, best, &to);
    }
    sum_exactly(w, s, g, &b);
    for (int i = 0; i < g->n_found; i++) {
        if (g->items[g->found[i]].exact > -INFINITY) g->found[n++] = g->found[i];
    }
    g->n_found = n;
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
            if (same_word(s, of, k, best, b)) shares[k] = best_shares[b];
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
    LIN_TRY(lin_words_append_traceback(w, s, of, s->shares, 0, s->h->frame, path, err));
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
    lin_words_renew(w, state);
    const lin_words_view s = lin_words_view_of(w, state);
    if (w->o.n_best == 1) return 1;
    if (!s.h->ranked) rank(w, &s);
    return s.ranking->n_found;
}

lin_status lin_words_nbest(const lin_words *w, void *state, int which, lin_path *tail, lin_error *err)
{
    lin_words_renew(w, state);
    const lin_words_view s = lin_words_view_of(w, state);
    lin_path_clear(tail);
    if (which == 0) return lin_words_append_best(w, &s, tail, err);
    const int n = which > 0 && which < w->o.n_best ? lin_words_hypotheses(w, state) : 0;
    if (which >= n || n == 0) return lin_fail(err, LIN_INVALID, "word hypothesis %d does not exist", which + 1);
    return append_found(w, &s, which, tail, err);
}

static int good_ranking(const lin_words *w, const lin_words_view *s)
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

int lin_words_good_results(const lin_words *w, const lin_words_view *s) { return good_rows(w, s) && good_ranking(w, s); }
