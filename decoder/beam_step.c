// beam_step.c - one row of log-probabilities: every prefix extended, the best kept; and the trees of prefixes and alignments that
// hypotheses share; see beam_internal.h.

#include <assert.h>
#include <math.h>
#include <string.h>

#include "decoder/beam_internal.h"
#include "decoder/rows.h"

void lin_beam_trees_reset(lin_beam_view *v)
{
    const lin_beam *beam = v->beam;
    lin_beam_state *s = v->state;
    for (int i = 0; i < beam->n_nodes; i++) {
        const int next = i + 1 < beam->n_nodes ? i + 1 : LIN_BEAM_NONE;
        v->nodes[i] = (lin_beam_node){.parent = LIN_BEAM_FREE, .first = LIN_BEAM_NONE, .next = next, .hyp = LIN_BEAM_NONE};
    }
    for (int i = 0; i < beam->n_traces; i++) {
        v->traces[i] = (lin_beam_trace){.parent = LIN_BEAM_FREE, .refs = i + 1 < beam->n_traces ? i + 1 : LIN_BEAM_NONE};
    }
    s->node_root = s->trace_root = 0;
    s->node_free = s->trace_free = 1;
    v->nodes[0].parent = v->nodes[0].next = LIN_BEAM_NONE;
    v->nodes[0].gain = 1;
    v->traces[0].parent = LIN_BEAM_NONE;
    v->traces[0].refs = 0;
}

/* ---- prefixes -------------------------------------------------------------------------------------------------------------- */

// LIN_BEAM_NONE: there is none.
static int32_t child_of(const lin_beam_view *v, int32_t parent, int32_t label)
{
    int32_t child = v->nodes[parent].first;
    while (child >= 0 && v->nodes[child].label != label) child = v->nodes[child].next;
    return child;
}

// With the weights of `weighed`. The pool is large enough for width and `longest`.
static int32_t add_child(lin_beam_view *v, int32_t parent, int32_t label, const lin_beam_node *weighed)
{
    int32_t at = v->state->node_free;
    assert(at >= 0 && at < v->beam->n_nodes && v->nodes[at].parent == LIN_BEAM_FREE); // lay_out reckoned with the worst case
    lin_beam_node *node = &v->nodes[at], *above = &v->nodes[parent];
    v->state->node_free = node->next;
    *node = *weighed;
    node->parent = parent;
    node->first = node->hyp = LIN_BEAM_NONE;
    node->next = above->first;
    node->label = label;
    node->depth = above->depth + 1;
    above->first = at;
    return at;
}

static void free_node(lin_beam_view *v, int32_t at)
{
    v->nodes[at] =
        (lin_beam_node){.parent = LIN_BEAM_FREE, .first = LIN_BEAM_NONE, .next = v->state->node_free, .hyp = LIN_BEAM_NONE};
    v->state->node_free = at;
}

// Frees a node that is not in the beam and has no children, then its parent in the same way, and so on.
static void prune(lin_beam_view *v, int32_t at)
{
    // A node that is already free is an ancestor of one that was pruned before.
    while (v->nodes[at].parent >= 0 && v->nodes[at].hyp < 0 && v->nodes[at].first < 0) {
        int32_t parent = v->nodes[at].parent, *link = &v->nodes[parent].first;
        while (*link != at) link = &v->nodes[*link].next;
        *link = v->nodes[at].next;
        free_node(v, at);
        at = parent;
    }
}

// Moves the root down to the node where the prefixes branch.
static void lower_root(lin_beam_view *v)
{
    for (;;) {
        int32_t root = v->state->node_root, child = v->nodes[root].first;
        if (v->nodes[root].hyp >= 0 || child < 0 || v->nodes[child].next >= 0) return;
        v->nodes[child].parent = LIN_BEAM_NONE;
        v->state->node_root = child;
        free_node(v, root);
    }
}

/* ---- alignments ------------------------------------------------------------------------------------------------------------ */

void lin_beam_hold_trace(lin_beam_view *v, int32_t trace) { v->traces[trace].refs++; }

// After `parent`, to which it adds a reference; the new trace has no references yet.
static int32_t add_trace(lin_beam_view *v, int32_t parent, int32_t label, int64_t start, int64_t end, double sum)
{
    int32_t at = v->state->trace_free;
    assert(at >= 0 && at < v->beam->n_traces && v->traces[at].parent == LIN_BEAM_FREE);
    v->state->trace_free = v->traces[at].refs;
    v->traces[at] = (lin_beam_trace){.start = start, .end = end, .sum = sum, .parent = parent, .label = label};
    v->traces[at].depth = v->traces[parent].depth + 1;
    lin_beam_hold_trace(v, parent);
    return at;
}

static void free_trace(lin_beam_view *v, int32_t at)
{
    v->traces[at] = (lin_beam_trace){.parent = LIN_BEAM_FREE, .refs = v->state->trace_free};
    v->state->trace_free = at;
}

static void drop_trace(lin_beam_view *v, int32_t at)
{
    while (at >= 0 && --v->traces[at].refs == 0 && at != v->state->trace_root) {
        int32_t parent = v->traces[at].parent;
        free_trace(v, at);
        at = parent;
    }
}

int32_t lin_beam_best_end(const lin_beam_hyp *h, int *open)
{
    *open = h->before_blank < 0 || (h->before_label >= 0 && h->best_label > h->best_blank);
    return *open ? h->before_label : h->before_blank;
}

lin_path_phone lin_beam_phone(int label, double sum, int64_t start, int64_t end)
{
    double mean = sum / (double)(end - start);
    return (lin_path_phone){.label = label, .confidence = (float)exp(mean < 0 ? mean : 0), .start = start, .end = end};
}

void lin_beam_list(const lin_beam_view *v, int32_t trace, lin_path *path)
{
    const int32_t root = v->state->trace_root, above = v->traces[root].depth;
    assert(v->traces[trace].depth - above <= path->phones_capacity - path->n_phones); // the caller has made room
    lin_path_phone *phones = path->phones + path->n_phones;
    path->n_phones += v->traces[trace].depth - above;
    for (; trace != root; trace = v->traces[trace].parent) {
        const lin_beam_trace *c = &v->traces[trace];
        phones[c->depth - above - 1] = lin_beam_phone(c->label, c->sum, c->start, c->end);
    }
}

// Appends the phones that all alignments share to *settled, which has space. All of them pass through a trace if no trace above
// it has another reference. The lowest such trace becomes the root.
static void settle(lin_beam_view *v, lin_path *settled)
{
    const int32_t root = v->state->trace_root;
    if (v->traces[root].refs != 1) return;
    int open;
    int32_t lowest = lin_beam_best_end(&v->hyps[0], &open);
    for (int32_t at = lowest; at != root; at = v->traces[at].parent)
        if (v->traces[v->traces[at].parent].refs != 1) lowest = v->traces[at].parent;
    if (lowest == root) return;
    lin_beam_list(v, lowest, settled);
    v->state->trace_root = lowest;
    for (int32_t at = v->traces[lowest].parent; at >= 0;) {
        int32_t parent = v->traces[at].parent;
        free_trace(v, at);
        at = parent;
    }
    v->traces[lowest].parent = LIN_BEAM_NONE;
}

// The log-probability of blank if no hypothesis can continue: every alignment has reached a probability of 0.
static const double IMPOSSIBLE = 1e-40;

/* ---- the row --------------------------------------------------------------------------------------------------------------- */

// Rows that are not probabilities are shifted into the range of double; the scores include the shift.
static double shift_of(lin_beam_view *v, float largest)
{
    double shift = largest > 50 || largest < -50 ? (double)largest : 0;
    v->state->shift += shift;
    return shift;
}

static void read_row(lin_beam_view *v, const float *row)
{
    const int V = v->beam->V;
    const double shift = shift_of(v, lin_row_most(row, V));
    for (int k = 0; k < V; k++) v->probabilities[k] = exp((double)row[k] - shift);
}

// The labels to add, ascending: those that can reach the floor, and of them the n_labels most probable; of equal ones the lower.
static int choose_labels(lin_beam_view *v, const float *row, double floor, double most)
{
    int n = 0, K = v->beam->n_labels;
    for (int k = 1; k < v->beam->V; k++) {
        v->marks[k] = 0;
        if (v->probabilities[k] * most >= floor && v->probabilities[k] > 0) v->labels[n++] = k;
    }
    if (n <= K) return n;
    for (int i = 0; i < n; i++) v->values[i] = (double)row[v->labels[i]];
    const float least = (float)lin_select_largest(v->values, n, K);
    int above = 0, kept = 0;
    for (int i = 0; i < n; i++) above += row[v->labels[i]] > least;
    for (int i = 0, equal = K - above; i < n; i++) {
        float x = row[v->labels[i]];
        if (x > least || (x == least && equal-- > 0)) v->labels[kept++] = v->labels[i];
    }
    return kept;
}

/* ---- endings --------------------------------------------------------------------------------------------------------------- */

static int label_of(const lin_beam_view *v, int i) { return v->nodes[v->hyps[i].node].label; }

// The trace-back of a hypothesis's best alignment with its open run closed, and its score. All that need it share one trace.
static int32_t complete(lin_beam_view *v, int i, double *best)
{
    const lin_beam_hyp *h = &v->hyps[i];
    int open;
    int32_t trace = lin_beam_best_end(h, &open);
    *best = open ? h->best_label : h->best_blank;
    if (!open) return trace;
    if (v->closing[i] < 0) v->closing[i] = add_trace(v, trace, label_of(v, i), h->start, v->state->frame, h->sum);
    return v->closing[i];
}

// The sum that a label extends when it is added to a hypothesis: after the same label only alignments that end in blank.
static double before_label(const lin_beam_view *v, int i, int label)
{
    const lin_beam_hyp *h = &v->hyps[i];
    return label == label_of(v, i) ? h->blank : lin_beam_acoustic(h);
}

static void end_in_blank(lin_beam_view *v, int i, double probability, lin_beam_hyp *next)
{
    next->blank = lin_beam_acoustic(&v->hyps[i]) * probability;
    next->before_blank = complete(v, i, &next->best_blank);
    next->best_blank *= probability;
    lin_beam_hold_trace(v, next->before_blank);
}

// The same for the best alignment only.
static double best_before_label(const lin_beam_view *v, int i, int label)
{
    const lin_beam_hyp *h = &v->hyps[i];
    return label == label_of(v, i) ? h->best_blank : fmax(h->best_blank, h->best_label);
}

// A new run begins in this frame.
static void begin_run(lin_beam_view *v, int i, int label, double gain, const float *row, lin_beam_hyp *next)
{
    double best;
    next->before_label = label == label_of(v, i) ? v->hyps[i].before_blank : complete(v, i, &best);
    next->best_label = best_before_label(v, i, label) * v->probabilities[label] * gain;
    next->start = v->state->frame;
    next->sum = (double)row[label];
    lin_beam_hold_trace(v, next->before_label);
}

// The hypothesis among whose children hypothesis i is, or -1.
static int above(const lin_beam_view *v, int i)
{
    int32_t parent = v->nodes[v->hyps[i].node].parent;
    return parent < 0 ? -1 : v->nodes[parent].hyp;
}

static double staying_label(const lin_beam_view *v, int i)
{
    int label = label_of(v, i);
    return v->hyps[i].label * v->probabilities[label] + v->merged[i];
}

// With a width of 1 only the better ending is kept, which is best-path decoding; of equal ones the lower label, which is blank.
static int keeps_blank(const lin_beam_view *v, double blank, double label)
{
    return v->beam->options.width > 1 || blank >= label;
}
static int keeps_label(const lin_beam_view *v, double blank, double label) { return v->beam->options.width > 1 || blank < label; }

// The prefix does not change: blank, its last phone continues, or its last phone begins here from the prefix without it.
static lin_beam_hyp stayed(lin_beam_view *v, int i, const float *row)
{
    const lin_beam_hyp *h = &v->hyps[i];
    const int label = label_of(v, i), from = above(v, i);
    const double *p = v->probabilities, blank = lin_beam_acoustic(h) * p[0], going_on = staying_label(v, i);
    lin_beam_hyp next = {.node = h->node, .slot = h->slot, .before_blank = LIN_BEAM_NONE, .before_label = LIN_BEAM_NONE};
    if (blank > 0 && keeps_blank(v, blank, going_on)) end_in_blank(v, i, p[0], &next);
    if (!(going_on > 0) || !keeps_label(v, blank, going_on)) return next;
    const double gain = v->nodes[h->node].gain, best = h->best_label * p[label];
    next.label = going_on;
    if (v->merged[i] > 0 && (h->before_label < 0 || best_before_label(v, from, label) * p[label] * gain > best)) {
        begin_run(v, from, label, gain, row, &next);
        return next;
    }
    next.best_label = best;
    next.before_label = h->before_label;
    next.start = h->start;
    next.sum = h->sum + (double)row[label];
    lin_beam_hold_trace(v, next.before_label);
    return next;
}

/* ---- weights --------------------------------------------------------------------------------------------------------------- */

// The weights of a node's prefix with one more label: all of the child except its place in the tree.
static void weigh(const lin_beam_view *v, const lin_beam_node *parent, int label, lin_beam_node *child)
{
    const lin_beam *beam = v->beam;
    double logp = 0, weight = beam->options.bonus;
    *child = *parent;
    if (beam->lm) {
        logp = (double)lin_ngram_score(beam->lm, parent->lm, beam->words[label], &child->lm);
        weight += beam->options.lm_weight * logp;
    }
    if (v->context) {
        weight += (double)lin_context_next(v->context, &child->context, label);
        child->pending = (double)lin_context_pending(v->context, child->context);
    }
    weight = fmin(fmax(weight, -LIN_BEAM_WEIGHT_MAX), LIN_BEAM_WEIGHT_MAX);
    child->gain = isfinite(logp) ? exp(weight) : 0; // a label of probability 0 in the language model is never added
    child->weight = parent->weight + weight;
    child->language = parent->language + logp;
}

static double ask_gain(lin_beam_view *v, int i, int label)
{
    int32_t node = v->hyps[i].node, child = child_of(v, node, label);
    lin_beam_node weighed;
    if (child >= 0) return v->nodes[child].gain;
    weigh(v, &v->nodes[node], label, &weighed);
    return weighed.gain;
}

static lin_beam_hyp added(lin_beam_view *v, int i, int label, double score, const float *row)
{
    int32_t parent = v->hyps[i].node, at = child_of(v, parent, label);
    if (at < 0) {
        lin_beam_node weighed;
        weigh(v, &v->nodes[parent], label, &weighed);
        at = add_child(v, parent, label, &weighed);
    }
    lin_beam_hyp next = {.node = at, .slot = LIN_BEAM_NONE, .before_blank = LIN_BEAM_NONE, .label = score};
    begin_run(v, i, label, v->nodes[at].gain, row, &next);
    return next;
}

/* ---- candidates: a heap of at most `width`, the worst on top --------------------------------------------------------------- */

typedef struct heap {
    lin_beam_candidate *items;
    int n, capacity;
    double best, floor, cut;
} heap;

static int worse(const lin_beam_candidate *a, const lin_beam_candidate *b)
{
    if (a->score != b->score) return a->score < b->score;
    if (a->hyp != b->hyp) return a->hyp > b->hyp;
    int32_t left = a->label < 0 ? -a->label : a->label, right = b->label < 0 ? -b->label : b->label;
    return left > right;
}

static void sift_down(lin_beam_candidate *items, int n, int at)
{
    const lin_beam_candidate item = items[at];
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && worse(&items[child + 1], &items[child])) child++;
        if (!worse(&items[child], &item)) break;
        items[at] = items[child];
    }
    items[at] = item;
}

static void offer(heap *h, lin_beam_candidate new)
{
    if (!(new.score >= h->floor) || !(new.score > 0)) return;
    if (new.score > h->best) h->best = new.score;
    if (h->n < h->capacity) {
        int at = h->n++;
        for (; at && worse(&new, &h->items[(at - 1) / 2]); at = (at - 1) / 2) h->items[at] = h->items[(at - 1) / 2];
        h->items[at] = new;
    } else {
        if (!worse(&h->items[0], &new)) return;
        h->items[0] = new;
        sift_down(h->items, h->n, 0);
    }
    h->floor = fmax(h->best * h->cut, h->n == h->capacity ? h->items[0].score : 0);
}

// Sorts, the best first; candidates below the floor, which rose while they were added, are left out.
static int in_order(heap *h)
{
    for (int n = h->n - 1; n > 0; n--) {
        lin_beam_candidate worst = h->items[0];
        h->items[0] = h->items[n];
        h->items[n] = worst;
        sift_down(h->items, n, 0);
    }
    while (h->n && h->items[h->n - 1].score < h->best * h->cut) h->n--;
    return h->n;
}

/* ---- a frame --------------------------------------------------------------------------------------------------------------- */

// The sums that prefixes receive from the prefixes one label shorter that are in the beam too.
static void merge(lin_beam_view *v)
{
    for (int i = 0; i < v->state->n_hyps; i++) {
        int from = above(v, i);
        const lin_beam_node *node = &v->nodes[v->hyps[i].node];
        v->merged[i] = from < 0 ? 0 : before_label(v, from, node->label) * v->probabilities[node->label] * node->gain;
        v->closing[i] = LIN_BEAM_NONE;
    }
}

static void offer_staying(lin_beam_view *v, heap *h)
{
    for (int i = 0; i < v->state->n_hyps; i++) {
        double blank = lin_beam_acoustic(&v->hyps[i]) * v->probabilities[0], label = staying_label(v, i);
        int both = keeps_blank(v, blank, label) && keeps_label(v, blank, label);
        double score = both ? blank + label : fmax(blank, label);
        offer(h, (lin_beam_candidate){.score = score, .hyp = i, .label = both || blank >= label ? 0 : -label_of(v, i)});
    }
}

static void offer_adding(lin_beam_view *v, const float *row, heap *h)
{
    const double *p = v->probabilities;
    const double bonus = fmin(fmax(v->beam->options.bonus, -LIN_BEAM_WEIGHT_MAX), LIN_BEAM_WEIGHT_MAX);
    double largest = 0, most = v->context ? INFINITY : exp(bonus);
    for (int i = 0; i < v->state->n_hyps; i++) largest = fmax(largest, lin_beam_acoustic(&v->hyps[i]));
    const int n = choose_labels(v, row, h->floor, largest * most);
    for (int i = 0; n && i < v->state->n_hyps; i++) {
        double *gains = v->gains + (size_t)v->hyps[i].slot * (size_t)v->beam->V;
        const double all = lin_beam_acoustic(&v->hyps[i]);
        const int last = label_of(v, i);
        for (int32_t child = v->nodes[v->hyps[i].node].first; child >= 0; child = v->nodes[child].next)
            if (v->nodes[child].hyp >= 0) v->marks[v->nodes[child].label] = i + 1;
        for (int l = 0; l < n; l++) {
            const int k = v->labels[l];
            const double before = (k == last ? v->hyps[i].blank : all) * p[k];
            if (v->marks[k] == i + 1 || before * most < h->floor || before <= 0) continue;
            if (gains[k] < 0) gains[k] = ask_gain(v, i, k);
            offer(h, (lin_beam_candidate){.score = before * gains[k], .hyp = i, .label = k});
        }
    }
}

// Rows of gains pass from prefixes that left the beam to those that entered.
static void hand_over(lin_beam_view *v, int n)
{
    lin_beam_state *s = v->state;
    const int V = v->beam->V;
    for (int i = 0; i < s->n_hyps; i++) v->nodes[v->hyps[i].node].hyp = LIN_BEAM_NONE;
    for (int i = 0; i < n; i++) v->nodes[v->next[i].node].hyp = i;
    for (int i = 0; i < s->n_hyps; i++) {
        const lin_beam_hyp *h = &v->hyps[i];
        drop_trace(v, h->before_blank);
        drop_trace(v, h->before_label);
        if (v->nodes[h->node].hyp < 0) v->slots[s->slots_free++] = h->slot;
    }
    for (int i = 0; i < n; i++) {
        if (v->next[i].slot >= 0) continue;
        v->next[i].slot = v->slots[--s->slots_free];
        double *gains = v->gains + (size_t)v->next[i].slot * (size_t)V;
        for (int k = 0; k < V; k++) gains[k] = -1;
    }
    for (int i = 0; i < s->n_hyps; i++) prune(v, v->hyps[i].node);
    memcpy(v->hyps, v->next, (size_t)n * sizeof *v->hyps);
    s->n_hyps = n;
    lower_root(v);
}

// Only blank for every prefix: the order does not change.
static void wait_through(lin_beam_view *v, double probability)
{
    for (int i = 0; i < v->state->n_hyps; i++) {
        const lin_beam_hyp old = v->hyps[i];
        lin_beam_hyp next = {.node = old.node, .slot = old.slot, .before_label = LIN_BEAM_NONE};
        v->closing[i] = LIN_BEAM_NONE;
        end_in_blank(v, i, probability, &next);
        drop_trace(v, old.before_blank);
        drop_trace(v, old.before_label);
        v->hyps[i] = next;
    }
}

static void search(lin_beam_view *v, const float *row)
{
    heap h = {.items = v->candidates, .capacity = v->beam->options.width, .cut = v->beam->cut};
    read_row(v, row);
    merge(v);
    offer_staying(v, &h);
    offer_adding(v, row, &h);
    const int n = in_order(&h);
    if (!n) {
        wait_through(v, IMPOSSIBLE);
        return;
    }
    for (int i = 0; i < n; i++) {
        const lin_beam_candidate *c = &v->candidates[i];
        v->next[i] = c->label > 0 ? added(v, c->hyp, c->label, c->score, row) : stayed(v, c->hyp, row);
    }
    hand_over(v, n);
}

// Divides by powers of two, which is exact, and drops endings that are negligible compared with the best.
static void rescale(lin_beam_view *v)
{
    double largest = 0, best = 0, floor;
    int n = v->state->n_hyps, exponent, best_exponent, dropped = 0;
    for (int i = 0; i < n; i++) {
        const lin_beam_hyp *h = &v->hyps[i];
        largest = fmax(largest, lin_beam_acoustic(h));
        best = fmax(best, fmax(h->best_blank, h->best_label));
    }
    frexp(largest, &exponent);
    frexp(best, &best_exponent);
    const double by = ldexp(1, -exponent), best_by = ldexp(1, -best_exponent);
    v->state->scale += exponent;
    floor = largest * by * v->beam->cut;
    for (int i = 0; i < n; i++) {
        lin_beam_hyp *h = &v->hyps[i];
        h->blank *= by;
        h->label *= by;
        h->best_blank *= best_by;
        h->best_label *= best_by;
        int32_t *weak = h->blank < h->label ? &h->before_blank : &h->before_label;
        double *sum = h->blank < h->label ? &h->blank : &h->label;
        if (*weak < 0 || *sum >= floor) continue;
        drop_trace(v, *weak);
        *weak = LIN_BEAM_NONE;
        *(h->blank < h->label ? &h->best_blank : &h->best_label) = 0;
        *sum = 0;
        dropped = 1;
    }
    if (dropped) lin_beam_sort(v);
}

/* ---- more unsettled phones than `longest` ---------------------------------------------------------------------------------- */

static int unsettled(const lin_beam_view *v, int32_t trace, int open)
{
    return trace < 0 ? 0 : v->traces[trace].depth - v->traces[v->state->trace_root].depth + open;
}

// The first phone after the root on the path to a trace, or LIN_BEAM_NONE.
static int32_t oldest(const lin_beam_view *v, int32_t trace)
{
    int32_t found = LIN_BEAM_NONE;
    for (; trace >= 0 && trace != v->state->trace_root; trace = v->traces[trace].parent) found = trace;
    return found;
}

static void kill_end(lin_beam_view *v, int32_t *trace, double *sum, double *best)
{
    drop_trace(v, *trace);
    *trace = LIN_BEAM_NONE;
    *sum = *best = 0;
}

static void remove_dead(lin_beam_view *v)
{
    int n = 0;
    for (int i = 0; i < v->state->n_hyps; i++) {
        const lin_beam_hyp h = v->hyps[i];
        if (h.before_blank >= 0 || h.before_label >= 0) {
            v->hyps[n++] = h;
            continue;
        }
        v->nodes[h.node].hyp = LIN_BEAM_NONE;
        v->slots[v->state->slots_free++] = h.slot;
        prune(v, h.node);
    }
    v->state->n_hyps = n;
    lin_beam_sort(v);
    lower_root(v);
}

// The best hypothesis decides on its oldest phone; hypotheses with another one are dropped. If it has none, those with too many
// phones are dropped.
static void decide(lin_beam_view *v, lin_path *settled)
{
    const int longest = v->beam->options.longest;
    for (;;) {
        int too_long = 0, open;
        for (int i = 0; i < v->state->n_hyps; i++) {
            const lin_beam_hyp *h = &v->hyps[i];
            too_long |= unsettled(v, h->before_blank, 0) > longest || unsettled(v, h->before_label, 1) > longest;
        }
        if (!too_long) return;
        const int32_t phone = oldest(v, lin_beam_best_end(&v->hyps[0], &open));
        for (int i = 0; i < v->state->n_hyps; i++) {
            lin_beam_hyp *h = &v->hyps[i];
            if (phone >= 0 ? oldest(v, h->before_blank) != phone : unsettled(v, h->before_blank, 0) > longest)
                kill_end(v, &h->before_blank, &h->blank, &h->best_blank);
            if (phone >= 0 ? oldest(v, h->before_label) != phone : unsettled(v, h->before_label, 1) > longest)
                kill_end(v, &h->before_label, &h->label, &h->best_label);
        }
        remove_dead(v);
        settle(v, settled);
    }
}

void lin_beam_step(lin_beam_view *v, const float *row, lin_path *settled)
{
    if ((double)row[0] >= v->beam->blank_logp) wait_through(v, exp((double)row[0] - shift_of(v, row[0])));
    else search(v, row);
    rescale(v);
    v->state->frame++;
    settle(v, settled);
    decide(v, settled);
}

void lin_beam_sort(lin_beam_view *v)
{
    for (int i = 0; i < v->state->n_hyps; i++) {
        const lin_beam_hyp h = v->hyps[i];
        int at = i;
        for (; at && lin_beam_acoustic(&v->hyps[at - 1]) < lin_beam_acoustic(&h); at--) v->hyps[at] = v->hyps[at - 1];
        v->hyps[at] = h;
    }
    for (int i = 0; i < v->state->n_hyps; i++) v->nodes[v->hyps[i].node].hyp = i;
}

void lin_beam_change_context(lin_beam_view *v)
{
    const int n = v->beam->n_nodes;
    const size_t n_gains = (size_t)v->beam->options.width * (size_t)v->beam->V;
    v->state->context = v->context ? lin_context_id(v->context) : 0;
    for (int i = 0; i < v->state->n_hyps; i++) {
        lin_beam_hyp *h = &v->hyps[i];
        double back = exp(-v->nodes[h->node].pending);
        h->blank *= back;
        h->label *= back;
        h->best_blank *= back;
        h->best_label *= back;
    }
    for (int i = 0; i < n; i++) {
        lin_beam_node *node = &v->nodes[i];
        if (node->parent >= 0) node->gain *= exp(v->nodes[node->parent].pending - node->pending);
    }
    for (int i = 0; i < n; i++) {
        v->nodes[i].weight -= v->nodes[i].pending;
        v->nodes[i].pending = 0;
        v->nodes[i].context = 0;
    }
    for (size_t i = 0; i < n_gains; i++) v->gains[i] = -1;
    lin_beam_sort(v);
}
