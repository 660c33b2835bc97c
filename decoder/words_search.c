// words_search.c - one row of log-probabilities: every hypothesis stays or moves, equal ones are summed, rivals recombined, and
// the best kept; see words_internal.h. It calls words_history.c, for the traces of what is kept and for the losers.

#include <string.h>

#include "decoder/rows.h"
#include "decoder/words_internal.h"

/* ---- candidates ------------------------------------------------------------------------------------------------------------ */

static uint32_t slot_of(const lin_words *w, const lin_words_hyp *t)
{
    const uint64_t place = (uint64_t)(uint32_t)t->node << 32 | (uint32_t)t->last;
    const uint64_t states = (uint64_t)t->lm_state << 32 | (uint32_t)t->context;
    return (uint32_t)(lin_hash_pair(lin_hash_pair(0, place), states) & (uint64_t)(w->n_slots - 1));
}

static int same_place(const lin_words_hyp *a, const lin_words_hyp *b)
{
    return a->node == b->node && a->lm_state == b->lm_state && a->context == b->context && a->last == b->last;
}

// The slot of the candidates at the place of a hypothesis: that of their head, or an empty one.
static uint32_t find_slot(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t)
{
    uint32_t at = slot_of(w, t);
    while (s->slots[at] >= 0 && !same_place(&s->candidates[s->slots[at]].t, t)) at = (at + 1) & (uint32_t)(w->n_slots - 1);
    return at;
}

static void put(lin_words_view *s, int i, uint32_t slot)
{
    lin_words_candidate *c = &s->candidates[i];
    c->head = s->slots[slot] < 0;
    if (c->head) {
        s->slots[slot] = i;
        c->next = -1;
    } else {
        lin_words_candidate *head = &s->candidates[s->slots[slot]];
        c->next = head->next;
        head->next = i;
    }
}

static lin_words_candidate *find(const lin_words_view *s, const lin_words_hyp *t, uint32_t slot)
{
    for (int i = s->slots[slot]; i >= 0; i = s->candidates[i].next) {
        if (s->candidates[i].t.history == t->history) return &s->candidates[i];
    }
    return NULL;
}

static void clear_slots(const lin_words *w, lin_words_view *s)
{
    memset(s->slots, 0xFF, (size_t)w->n_slots * sizeof *s->slots);
}

// Keeps at most `width` candidates alive: the best; of equal ones the earlier.
static void keep_width(const lin_words *w, lin_words_view *s)
{
    int n = 0, above = 0;
    for (int i = 0; i < s->n_candidates; i++) {
        if (s->candidates[i].alive) s->order[n++] = s->candidates[i].t.score;
    }
    if (n <= w->o.width) return;
    const double least = lin_select_largest(s->order, n, w->o.width);
    for (int i = 0; i < s->n_candidates; i++) above += s->candidates[i].alive && s->candidates[i].t.score > least;
    int ties = w->o.width - above;
    for (int i = 0; i < s->n_candidates; i++) {
        lin_words_candidate *c = &s->candidates[i];
        if (!c->alive || c->t.score > least) continue;
        if (c->t.score < least || ties-- <= 0) c->alive = 0;
    }
    if (least > s->floor) s->floor = least;
}

// Computes the scores that have changed since they were computed last, and the best.
static void weigh(lin_words_view *s)
{
    s->best = -INFINITY;
    for (int i = 0; i < s->n_candidates; i++) {
        lin_words_candidate *c = &s->candidates[i];
        if (c->changed) lin_words_weigh(&c->t);
        c->changed = 0;
        s->best = c->t.score > s->best ? c->t.score : s->best;
    }
}

// The table is full: the best are kept, and worse ones are not added in this row.
static void compact(const lin_words *w, lin_words_view *s)
{
    int n = 0;
    weigh(s);
    keep_width(w, s);
    for (int i = 0; i < s->n_candidates; i++) {
        if (s->candidates[i].alive) s->candidates[n++] = s->candidates[i];
    }
    s->n_candidates = n;
    clear_slots(w, s);
    for (int i = 0; i < n; i++) put(s, i, find_slot(w, s, &s->candidates[i].t));
}

// A candidate of the hypothesis, for its slot.
static lin_words_candidate *add(const lin_words *w, lin_words_view *s, const lin_words_hyp *t, uint32_t slot)
{
    if (s->n_candidates == w->n_candidates) {
        compact(w, s);
        slot = find_slot(w, s, t);
    }
    const int i = s->n_candidates++;
    lin_words_candidate *c = &s->candidates[i];
    c->t = *t;
    c->alive = 1;
    c->changed = 0;
    c->fresh = c->before_frames = 0;
    c->word = LIN_WORD_INSIDE;
    c->before_logp = 0;
    put(s, i, slot);
    return c;
}

/* ---- moves ----------------------------------------------------------------------------------------------------------------- */

// The part of a hypothesis that a phone can extend: all of it, or, if it is the last phone again, the alignments that end in
// blank. Graves et al. 2006, eq. 6.
typedef struct source {
    const lin_words_ending *from;  // the better alignment
    double sum, best; // including the phone
    float logp;       // of the phone
    int label;
} source;

// `to` is the new hypothesis if it is the first at its place; its endings are filled here.
static void arrive(const lin_words *w, lin_words_view *s, lin_words_hyp *to, const source *by, int word)
{
    if (by->sum + to->weight + to->ahead < s->floor) return;
    const uint32_t slot = find_slot(w, s, to);
    lin_words_candidate *c = find(s, to, slot);
    if (!c) {
        to->endings[LIN_BLANK_ENDING] = to->endings[LIN_LABEL_ENDING] = (lin_words_ending){-INFINITY, -INFINITY, 0, -1, 0};
        c = add(w, s, to, slot);
    }
    lin_words_ending *a = &c->t.endings[LIN_LABEL_ENDING];
    a->sum = lin_words_log_add(a->sum, by->sum);
    c->changed = 1;
    const double floor = a->sum + to->weight + to->ahead - w->o.score;
    if (w->o.score > 0 && floor > s->floor) s->floor = floor;
    if (by->best > a->best) {
        *a = (lin_words_ending){a->sum, by->best, (double)by->logp, by->from->trace, 1};
        c->fresh = 1;
        c->before_frames = by->from->frames;
        c->before_logp = by->from->logp;
        c->word = word;
    }
}

static void complete(const lin_words_view *s, lin_words_hyp *t, uint64_t pronunciation, int word)
{
    t->history = lin_hash_pair(t->history, pronunciation);
    if (!t->n_words) t->first = t->history;
    t->n_words++;
    t->node = LIN_TREE_ROOT;
    t->ahead = 0;
    t->n_inside = 0;
    if (!s->context) return;
    t->weight += (double)lin_context_next(s->context->phrases, &t->context, word < 0 ? LIN_CONTEXT_NONE : word);
    t->pending = (double)lin_context_pending(s->context->phrases, t->context);
}

// A hypothesis waits some rows before the end of a word, and in each of them the same word is scored after the same state: half
// of the scores are found in the table that the push holds.
static double score_after(const lin_words *w, lin_words_score *scores, uint32_t lm_state, int word, uint32_t *next)
{
    const uint64_t key = ((uint64_t)lm_state << 32 | (uint32_t)word) * UINT64_C(0x9E3779B97F4A7C15);
    if (!scores) return (double)lin_ngram_score(w->lm, lm_state, word, next);
    lin_words_score *it = &scores[key >> (64 - LIN_WORDS_SCORE_BITS)];
    if (it->lm_state != lm_state || it->word != word) {
        *it = (lin_words_score){.lm_state = lm_state, .word = word};
        it->logp = lin_ngram_score(w->lm, lm_state, word, &it->next);
    }
    *next = it->next;
    return (double)it->logp;
}

// The score of a word after a hypothesis; the state after it.
typedef struct lm_step {
    double logp, weighted; // logp: only of words that the language model has
    uint32_t state;
} lm_step;

static lm_step score_word(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, int lm_word)
{
    lm_step step = {.state = t->lm_state};
    if (!w->lm) return step;
    if (lm_word < 0 && !w->lm_unknown) return (lm_step){.weighted = w->unknown, .state = LIN_NGRAM_EMPTY};
    step.logp = score_after(w, s->scores, t->lm_state, lm_word, &step.state);
    step.weighted = w->o.lm_weight * step.logp;
    return step;
}

static lm_step score_unseen(const lin_words *w, const lin_ngram_context *after, int lm_word)
{
    lm_step step;
    step.logp = (double)lin_ngram_unseen(w->lm, after, lm_word, &step.state);
    step.weighted = w->o.lm_weight * step.logp;
    return step;
}

static void take_step(lin_words_hyp *t, const lm_step *step)
{
    t->language += step->logp;
    t->weight += step->weighted;
    t->lm_state = step->state;
}

// The acoustic sum of a hypothesis that goes on with a label: the same label again needs a blank between.
static double sum_with(const lin_words_hyp *t, int label, float logp)
{
    return (label == t->last ? t->endings[LIN_BLANK_ENDING].sum : t->acoustic) + (double)logp;
}

static source take(const lin_words_hyp *t, int label, float logp)
{
    const lin_words_ending *from = label == t->last ? &t->endings[LIN_BLANK_ENDING] : lin_words_better_ending(t);
    return (source){from, sum_with(t, label, logp), from->best + (double)logp, logp, label};
}

static lin_words_hyp behind(const lin_words_hyp *t, int label)
{
    lin_words_hyp to = *t;
    to.last = label;
    to.n_phones++;
    return to;
}

// A hypothesis that leaves a node of a tree, the lexicon's or the context's.
typedef struct departure {
    const lin_words_hyp *t;
    const lin_tree *tree;
    int is_extra;            // the context's
    double weight;           // of the hypothesis inside the next node
    lin_ngram_context after; // of its language model's state, if `asked`
    int asked;
} departure;

// The least log-probability of a label that brings a hypothesis of this weight to the floor, less than the errors of all sums.
static float least_of(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t, double weight)
{
    const double least = s->floor - weight - t->acoustic;
    return w->thorough ? -INFINITY : (float)(least - 1e-3 - 1e-6 * fabs(least));
}

// Those of the children from *c on, CHILDREN of them at most, that may reach the floor, inside a word or at the end of one.
// Without branches: which labels are probable enough is hard to predict.
enum { CHILDREN = 64 };
static int find_children(const lin_words *w, const lin_words_view *s, const departure *d, const float *logp, uint32_t *c,
                         uint32_t to, uint32_t found[CHILDREN])
{
    const float to_floor = least_of(w, s, d->t, d->weight), least = fmaxf(s->least, to_floor), lm_weight = (float)w->o.lm_weight;
    int n = 0;
    if (to - *c > CHILDREN) to = *c + CHILDREN;
    for (; *c < to; (*c)++) {
        const lin_tree_node *node = &d->tree->nodes[*c];
        const float x = logp[node->label];
        found[n] = *c;
        n += (x >= least) & ((node[1].end > node->end) | (x + lm_weight * node->ahead >= to_floor));
    }
    return n;
}

// Past the words that end at a node.
static void end_words(const lin_words *w, lin_words_view *s, departure *d, const source *by, const lin_tree_node *node)
{
    const lin_tree_end *ends = d->tree->ends;
    for (uint32_t e = node->end; e < node[1].end; e++) {
        const int word = ends[e].word + (d->is_extra ? s->context->first : 0);
        if (w->pairs.n && !d->asked++) d->after = lin_ngram_context_of(w->lm, d->t->lm_state);
        uint32_t next = LIN_GRAMMAR_NONE;
        if (w->grammar && (next = lin_grammar_step(w->grammar, d->t->lm_state, e)) == LIN_GRAMMAR_NONE) continue;
        const int unseen = lin_ngram_pairs_lack(&w->pairs, &d->after, ends[e].lm_word);
        // No unigram of the node's words is better than its look-ahead.
        const double most = w->o.lm_weight * (double)(d->after.backoffs + node->ahead);
        if (unseen && !s->context && by->sum + (d->weight + most) < s->floor) continue;
        const lm_step step = unseen ? score_unseen(w, &d->after, ends[e].lm_word) : score_word(w, s, d->t, ends[e].lm_word);
        if (!s->context && by->sum + (d->weight + step.weighted) < s->floor) continue;
        lin_words_hyp end = behind(d->t, by->label);
        end.weight = d->weight;
        take_step(&end, &step);
        if (w->grammar) end.lm_state = next;
        if (d->tree->logps) end.weight += w->o.lm_weight * (double)d->tree->logps[e];
        complete(s, &end, d->is_extra ? lin_hash_pair(s->context->id, e) : e, word);
        arrive(w, s, &end, by, word);
    }
}

// To a child, and past the words that end there. Most moves are below the floor: that is found before a hypothesis is made.
static void enter(const lin_words *w, lin_words_view *s, departure *d, const float *logp, uint32_t c)
{
    const lin_words_hyp *t = d->t;
    const lin_tree_node *node = &d->tree->nodes[c];
    const source by = take(t, node->label, logp[node->label]);
    if ((by.sum + d->weight < s->floor && !w->thorough) || by.sum == -INFINITY) return;
    if (w->grammar && !lin_grammar_allows(w->grammar, t->lm_state, c)) return;
    const double ahead = d->is_extra ? w->ahead_lacking : w->o.lm_weight * (double)node->ahead;
    if (node->child < node[1].child && !(by.sum + d->weight + ahead < s->floor)) {
        lin_words_hyp inside = behind(t, by.label);
        inside.weight = d->weight;
        inside.node = (int)c + (d->is_extra ? w->tree->n_nodes : 0);
        inside.ahead = ahead;
        arrive(w, s, &inside, &by, LIN_WORD_INSIDE);
    }
    end_words(w, s, d, &by, node);
}

static void follow(const lin_words *w, lin_words_view *s, const lin_words_hyp *t, const float *logp, const lin_tree *tree,
                   int node)
{
    uint32_t found[CHILDREN];
    departure d = {.t = t, .tree = tree, .is_extra = tree != w->tree};
    d.weight = node == LIN_TREE_ROOT ? t->weight + w->o.bonus : t->weight;
    if (t->acoustic + s->top + d.weight < s->floor) return;
    for (uint32_t c = tree->nodes[node].child, to = tree->nodes[node + 1].child; c < to;) {
        const int n = find_children(w, s, &d, logp, &c, to, found);
        for (int i = 0; i < n; i++) enter(w, s, &d, logp, found[i]);
    }
}

// A phone of a word outside the lexicon, and past such a word if it ends with the phone. The costs of the word are charged at its
// first phone.
static void follow_unknown(const lin_words *w, lin_words_view *s, const lin_words_hyp *t, const float *logp)
{
    const int begins = t->node == LIN_TREE_ROOT;
    lm_step step = {.state = t->lm_state};
    double weight = t->weight + w->o.unknown_phone;
    if (t->n_inside == LIN_PRONUNCIATION_MAX) return;
    if (begins) {
        if (w->lm_unknown) step = score_word(w, s, t, LIN_NGRAM_UNKNOWN);
        else if (w->lm) step.state = LIN_NGRAM_EMPTY;
        if (w->grammar && (step.state = lin_grammar_unknown(w->grammar, t->lm_state)) == LIN_GRAMMAR_NONE) return;
        weight += w->o.bonus + w->o.unknown;
        weight += step.weighted;
    }
    if (t->acoustic + s->top + weight < s->floor) return;
    lin_words_hyp to = *t;
    to.language += step.logp;
    to.weight = weight;
    to.lm_state = step.state;
    to.node = LIN_PLACE_UNKNOWN;
    to.n_inside++;
    to.ahead = 0;
    for (int label = 1; label < w->V; label++) {
        if (logp[label] < s->least) continue;
        const double sum = sum_with(t, label, logp[label]);
        if (sum + to.weight < s->floor || sum == -INFINITY) continue;
        const source by = take(t, label, logp[label]);
        lin_words_hyp inside = behind(&to, label);
        inside.history = lin_hash_pair(inside.history, (uint64_t)label | UINT64_C(1) << 40);
        lin_words_hyp end = inside;
        arrive(w, s, &inside, &by, LIN_WORD_INSIDE);
        complete(s, &end, UINT64_C(1) << 41, LIN_WORD_UNKNOWN);
        arrive(w, s, &end, &by, LIN_WORD_UNKNOWN);
    }
}

static void go_on(const lin_words *w, lin_words_view *s, const lin_words_hyp *t, const float *logp)
{
    if (t->node == LIN_PLACE_UNKNOWN) {
        follow_unknown(w, s, t, logp);
    } else if (t->node == LIN_TREE_ROOT) {
        follow(w, s, t, logp, w->tree, LIN_TREE_ROOT);
        if (s->context) follow(w, s, t, logp, s->context->extra, LIN_TREE_ROOT);
        if (w->o.unknown > -INFINITY) follow_unknown(w, s, t, logp);
    } else if (t->node < w->tree->n_nodes) {
        follow(w, s, t, logp, w->tree, t->node);
    } else {
        follow(w, s, t, logp, s->context->extra, t->node - w->tree->n_nodes);
    }
}

// Blank, or the last phone once more. The penalty is for the choice of words: the best alignment, which times and confidences
// come from, is that of the network.
static void stay(const lin_words *w, lin_words_hyp *t, const float *logp)
{
    const double again = t->last ? (double)logp[t->last] : -INFINITY;
    const lin_words_ending *better = lin_words_better_ending(t);
    lin_words_ending blank = *better;
    blank.sum = t->acoustic + (double)lin_words_blank(w, logp);
    blank.best += (double)logp[0];
    lin_words_ending *label = &t->endings[LIN_LABEL_ENDING];
    t->endings[LIN_BLANK_ENDING] = blank;
    label->sum += again;
    label->best += again;
    if (label->best > -INFINITY) {
        label->logp += again;
        label->frames++;
    }
    lin_words_weigh(t);
}

/* ---- the next row ---------------------------------------------------------------------------------------------------------- */

// Of candidates with the same place and states the best is kept; of equal ones the earlier.
static void recombine_at(const lin_words *w, lin_words_view *s, int head)
{
    int best = head;
    for (int i = head; i >= 0; i = s->candidates[i].next) {
        const double score = s->candidates[i].t.score, most = s->candidates[best].t.score;
        if (score > most || (i < best && !(score < most))) best = i;
    }
    for (int i = head; i >= 0; i = s->candidates[i].next) {
        if (i == best) continue;
        s->candidates[i].alive = 0;
        lin_words_remember(w, s, &s->candidates[best], &s->candidates[i]);
    }
}

static void recombine(const lin_words *w, lin_words_view *s)
{
    for (int i = 0; i < s->n_candidates; i++) {
        if (s->candidates[i].head && s->candidates[i].next >= 0) recombine_at(w, s, i);
    }
}

// The lowest score of a candidate that is kept beside the best.
static double floor_below(const lin_words *w, double best) { return w->o.score > 0 ? best - w->o.score : -INFINITY; }

// Candidates that are impossible, or too far below the best, are dropped; returns how many are left.
static int drop_worst(const lin_words *w, lin_words_view *s)
{
    const double least = floor_below(w, s->best);
    int n = 0;
    for (int i = 0; i < s->n_candidates; i++) {
        lin_words_candidate *c = &s->candidates[i];
        if (c->t.score < least || c->t.score == -INFINITY) c->alive = 0;
        n += c->alive;
    }
    return n;
}

static void survive(lin_words_view *s)
{
    lin_words_header *h = s->h;
    h->n_hyps = 0;
    for (int i = 0; i < s->n_candidates; i++) {
        lin_words_candidate *c = &s->candidates[i];
        if (!c->alive) continue;
        if (c->fresh) c->t.endings[LIN_LABEL_ENDING].trace = lin_words_new_trace(s, c);
        s->hyps[h->n_hyps++] = c->t;
    }
}

// Labels below this value, the `labels`-th largest of the row, are not followed.
static float least_label(const lin_words *w, lin_words_view *s, const float *logp)
{
    if (!w->o.labels || w->o.labels >= w->V - 1) return -INFINITY;
    for (int v = 1; v < w->V; v++) s->order[v - 1] = (double)logp[v];
    return (float)lin_select_largest(s->order, w->V - 1, w->o.labels);
}

// Whether a hypothesis is inside a word whose last phone, in its best alignment, is further away than the gap.
static int has_gap(const lin_words *w, const lin_words_view *s, const lin_words_hyp *t)
{
    const lin_words_ending *end = lin_words_better_ending(t);
    if (!w->o.gap || t->node == LIN_TREE_ROOT || end == &t->endings[LIN_LABEL_ENDING] || end->trace < 0) return 0;
    return s->h->frame + 1 - (s->traces[end->trace].start + end->frames) > w->o.gap;
}

// Drops hypotheses with a gap, unless there are no others: in silence a fragment would wait for ever for the rest of its word.
static void drop_gaps(const lin_words *w, lin_words_view *s)
{
    int n = 0;
    for (int i = 0; i < s->n_candidates; i++) n += !has_gap(w, s, &s->candidates[i].t);
    for (int i = 0; i < s->n_candidates && n > 0; i++) {
        lin_words_hyp *t = &s->candidates[i].t;
        if (!has_gap(w, s, t)) continue;
        t->endings[LIN_BLANK_ENDING].sum = t->endings[LIN_BLANK_ENDING].best = -INFINITY;
        t->endings[LIN_LABEL_ENDING].sum = t->endings[LIN_LABEL_ENDING].best = -INFINITY;
        lin_words_weigh(t);
    }
}

// 0: the row was skipped.
static int expand(const lin_words *w, lin_words_view *s, const float *logp)
{
    s->n_candidates = 0;
    clear_slots(w, s);
    s->least = least_label(w, s, logp);
    s->top = w->thorough ? INFINITY : (double)lin_row_most(logp + 1, w->V - 1);
    s->best = -INFINITY;
    for (int i = 0; i < s->h->n_hyps; i++) {
        lin_words_candidate *c = add(w, s, &s->hyps[i], find_slot(w, s, &s->hyps[i]));
        stay(w, &c->t, logp);
    }
    drop_gaps(w, s);
    for (int i = 0; i < s->n_candidates; i++) s->best = fmax(s->best, s->candidates[i].t.score);
    s->floor = floor_below(w, s->best);
    for (int i = 0; i < s->h->n_hyps; i++) go_on(w, s, &s->hyps[i], logp);
    weigh(s);
    if (!w->all_histories) recombine(w, s);
    const int n = drop_worst(w, s);
    if (!n) return 0; // everything is impossible for every hypothesis
    if (n > w->o.width) keep_width(w, s);
    survive(s);
    return 1;
}

lin_words_moved lin_words_row(const lin_words *w, lin_words_view *s, const float *logp)
{
    const int blank = w->o.blank > 0 && exp((double)logp[0]) >= w->o.blank;
    if (!blank) return expand(w, s, logp) ? LIN_WORDS_MOVED : LIN_WORDS_IMPOSSIBLE;
    for (int i = 0; i < s->h->n_hyps; i++) stay(w, &s->hyps[i], logp);
    return LIN_WORDS_STAYED;
}
