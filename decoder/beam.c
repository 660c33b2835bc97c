// beam.c - options, creation and the public functions of the prefix beam search; see beam.h.

#include "decoder/beam.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "decoder/beam_internal.h"
#include "decoder/rows.h"

lin_beam_options lin_beam_options_default(void)
{
    return (lin_beam_options){.width = 16, .score = 12, .labels = 20, .blank = 0.999, .lm_weight = 0.7, .longest = 12};
}

/* ---- the beam -------------------------------------------------------------------------------------------------------------- */

static lin_status check_options(const lin_beam_options *o, int V, lin_error *err)
{
    const lin_range ranges[] = {
        {"outputs", V, 1, 1 << 20},
        {"width", o->width, 1, LIN_BEAM_MAX},
        {"score", o->score, 0, 1e6},
        {"labels", o->labels, 0, 1 << 20},
        {"blank", o->blank, 0, 1},
        {"lm_weight", o->lm_weight, 0, 100},
        {"bonus", o->bonus, -100, 100},
        {"longest", o->longest, 1, 100000},
    };
    return lin_check_ranges(ranges, sizeof ranges / sizeof *ranges, "beam search: ", err);
}

static uint64_t identity(const lin_beam *beam)
{
    const lin_beam_options *o = &beam->options;
    const double numbers[] = {beam->V, o->width, o->score, o->labels, o->blank, o->lm_weight, o->bonus, o->longest};
    const uint64_t lm = beam->lm ? lin_ngram_fingerprint(beam->lm) : 0;
    uint64_t h = lin_fnv(LIN_FNV_START, "linnet beam 2", 13);
    h = lin_fnv(h, numbers, sizeof numbers);
    h = lin_fnv(h, &lm, sizeof lm);
    return beam->lm ? lin_fnv(h, beam->words, (size_t)beam->V * sizeof *beam->words) : h;
}

// Where an array of n elements begins; each begins at a multiple of 8 bytes.
static void *place(unsigned char **at, size_t n, size_t size)
{
    void *here = *at;
    *at += (n * size + 7) / 8 * 8;
    return here;
}

// The parts of a state; returns where it ends.
static unsigned char *lay_out(const lin_beam *beam, void *state, lin_beam_view *v)
{
    const size_t width = (size_t)beam->options.width, V = (size_t)beam->V;
    unsigned char *at = state;
    v->state = place(&at, 1, sizeof *v->state);
    v->hyps = place(&at, width, sizeof *v->hyps);
    v->next = place(&at, width, sizeof *v->next);
    v->nodes = place(&at, (size_t)beam->n_nodes, sizeof *v->nodes);
    v->traces = place(&at, (size_t)beam->n_traces, sizeof *v->traces);
    v->gains = place(&at, width * V, sizeof *v->gains);
    v->candidates = place(&at, width, sizeof *v->candidates);
    v->probabilities = place(&at, V, sizeof *v->probabilities);
    v->merged = place(&at, width, sizeof *v->merged);
    v->values = place(&at, V, sizeof *v->values);
    v->labels = place(&at, V, sizeof *v->labels);
    v->marks = place(&at, V, sizeof *v->marks);
    v->closing = place(&at, width, sizeof *v->closing);
    v->slots = place(&at, width, sizeof *v->slots);
    return at;
}

// In the worst case the best alignments of all endings share nothing: 2 * width paths, and those that a frame adds before old
// ones are dropped.
static void measure(lin_beam *beam)
{
    const int width = beam->options.width, longest = beam->options.longest;
    lin_beam_view unused; // laid out without memory, to learn its size
    beam->n_nodes = width * (longest + 2) + 1;
    beam->n_traces = 2 * width * (longest + 1) + width + 1;
    beam->bytes = (size_t)(lay_out(beam, beam, &unused) - (unsigned char *)beam);
}

lin_status lin_beam_create(int V, const lin_ngram *lm, const int *labels, const lin_beam_options *options, lin_beam **beam,
                           lin_error *err)
{
    *beam = NULL;
    LIN_TRY(check_options(options, V, err));
    if (lm && !labels) return lin_fail(err, LIN_INVALID, "beam search: a language model needs a word for each label");
    lin_beam *b = lin_calloc(1, sizeof *b);
    if (!b) return lin_no_memory(err, "a beam search", sizeof *b);
    *b = (lin_beam){.options = *options, .V = V, .lm = lm};
    b->n_labels = options->labels && options->labels < V ? options->labels : V;
    // Above 600 a sum could leave the range of double relative to the best one.
    b->cut = exp(-(options->score > 0 && options->score < 600 ? options->score : 600));
    b->blank_logp = options->blank > 0 ? log(options->blank) : INFINITY;
    if (lm) {
        b->words = lin_alloc((size_t)V, sizeof *b->words);
        if (!b->words) {
            lin_free(b);
            return lin_no_memory(err, "a beam search", (size_t)V * sizeof *b->words);
        }
        memcpy(b->words, labels, (size_t)V * sizeof *labels);
        b->words[0] = LIN_NGRAM_UNKNOWN;
        for (int k = 1; k < V; k++) {
            if (labels[k] >= -1 && labels[k] < lin_ngram_words(lm)) continue;
            lin_beam_destroy(b);
            return lin_fail(err, LIN_INVALID, "beam search: label %d is word %d of a language model of %d words", k, labels[k],
                            lin_ngram_words(lm));
        }
    }
    measure(b);
    b->fingerprint = identity(b);
    *beam = b;
    return LIN_OK;
}

void lin_beam_destroy(lin_beam *beam)
{
    if (!beam) return;
    lin_free(beam->words);
    lin_free(beam);
}

size_t lin_beam_bytes(const lin_beam *beam) { return beam->bytes; }

uint64_t lin_beam_fingerprint(const lin_beam *beam) { return beam->fingerprint; }

/* ---- a state --------------------------------------------------------------------------------------------------------------- */

lin_beam_view lin_beam_view_of(const lin_beam *beam, const lin_context *context, void *state)
{
    lin_beam_view v = {.beam = beam, .context = context};
    lay_out(beam, state, &v);
    return v;
}

// Functions that only read use a view too; they do not change what it points to.
static lin_beam_view look(const lin_beam *beam, const void *state)
{
    return lin_beam_view_of(beam, NULL, (void *)(uintptr_t)state);
}

void lin_beam_reset(const lin_beam *beam, void *state, int64_t first_frame)
{
    memset(state, 0, beam->bytes);
    lin_beam_view v = lin_beam_view_of(beam, NULL, state);
    *v.state = (lin_beam_state){.fingerprint = beam->fingerprint, .frame = first_frame, .n_hyps = 1};
    lin_beam_trees_reset(&v);
    v.hyps[0] = (lin_beam_hyp){.blank = 1, .best_blank = 1, .before_label = LIN_BEAM_NONE};
    v.nodes[0].hyp = 0;
    if (beam->lm) v.nodes[0].lm = lin_ngram_begin(beam->lm);
    lin_beam_hold_trace(&v, 0);
    v.state->slots_free = beam->options.width - 1;
    for (int i = 0; i < v.state->slots_free; i++) v.slots[i] = beam->options.width - 1 - i;
    for (size_t i = 0; i < (size_t)beam->options.width * (size_t)beam->V; i++) v.gains[i] = -1;
}

// Of a state that lin_beam_reset began, or lin_beam_check found good.
static int holds(const lin_beam_view *v)
{
    const lin_beam_state *s = v->state;
    return s->fingerprint == v->beam->fingerprint && s->n_hyps >= 1 && s->n_hyps <= v->beam->options.width && s->node_root >= 0 &&
           s->node_root < v->beam->n_nodes && s->trace_root >= 0 && s->trace_root < v->beam->n_traces;
}

static lin_status not_finished(const lin_beam_state *s, lin_error *err)
{
    return s->finished ? lin_fail(err, LIN_INVALID, "beam search: the segment was ended; reset the state first") : LIN_OK;
}

lin_status lin_beam_push(const lin_beam *beam, void *state, const lin_context *context, const float *logp, int n_frames,
                         lin_path *settled, lin_error *err)
{
    lin_beam_view v = lin_beam_view_of(beam, context, state);
    assert(holds(&v));
    LIN_TRY(not_finished(v.state, err));
    if (n_frames < 0) return lin_fail(err, LIN_INVALID, "beam search of %d frames", n_frames);
    LIN_TRY(lin_rows_check_numbers(logp, n_frames, beam->V, v.state->frame, err));
    LIN_TRY(lin_path_reserve(settled, n_frames < INT32_MAX / 4 ? beam->options.longest + n_frames : -1, 0, err));
    if (!n_frames) return LIN_OK;
    if (v.state->context != (context ? lin_context_id(context) : 0)) lin_beam_change_context(&v);
    for (int t = 0; t < n_frames; t++) lin_beam_step(&v, logp + (size_t)t * (size_t)beam->V, settled);
    return LIN_OK;
}

int lin_beam_hypotheses(const lin_beam *beam, const void *state) { return look(beam, state).state->n_hyps; }

// Appends the unsettled phones of a hypothesis to the path, which has space, and sets its scores.
static void list_tail(const lin_beam_view *v, const lin_beam_hyp *h, lin_path *path)
{
    const lin_beam_node *node = &v->nodes[h->node];
    int open;
    lin_beam_list(v, lin_beam_best_end(h, &open), path);
    if (open) path->phones[path->n_phones++] = lin_beam_phone(node->label, h->sum, h->start, v->state->frame);
    path->score = log(lin_beam_acoustic(h)) + (double)v->state->scale * 0.69314718055994530942 + v->state->shift;
    path->acoustic = path->score - node->weight;
    path->language = node->language;
}

lin_status lin_beam_nbest(const lin_beam *beam, const void *state, int which, lin_path *tail, lin_error *err)
{
    const lin_beam_view v = look(beam, state);
    assert(holds(&v));
    if (which < 0 || which >= v.state->n_hyps) {
        return lin_fail(err, LIN_INVALID, "hypothesis %d does not exist: there are %d", which, v.state->n_hyps);
    }
    lin_path_clear(tail);
    LIN_TRY(lin_path_reserve(tail, beam->options.longest, 0, err));
    list_tail(&v, &v.hyps[which], tail);
    return LIN_OK;
}

lin_status lin_beam_finish(const lin_beam *beam, void *state, lin_path *settled, lin_error *err)
{
    lin_beam_view v = lin_beam_view_of(beam, NULL, state);
    assert(holds(&v));
    LIN_TRY(not_finished(v.state, err));
    if (settled) LIN_TRY(lin_path_reserve(settled, beam->options.longest, 0, err));
    lin_beam_change_context(&v);
    for (int i = 0; beam->lm && i < v.state->n_hyps; i++) {
        lin_beam_hyp *h = &v.hyps[i];
        lin_beam_node *node = &v.nodes[h->node];
        if (node->depth == 0) continue; // the empty prefix is not scored as a sentence, or silence would become phones
        const double logp = fmax((double)lin_ngram_end(beam->lm, node->lm), -LIN_BEAM_WEIGHT_MAX);
        const double weight = fmax(beam->options.lm_weight * logp, -LIN_BEAM_WEIGHT_MAX), gain = exp(weight);
        h->blank *= gain;
        h->label *= gain;
        node->weight += weight;
        node->language += logp;
    }
    lin_beam_sort(&v);
    v.state->finished = 1;
    if (settled) list_tail(&v, &v.hyps[0], settled);
    return LIN_OK;
}

/* ---- states from files ----------------------------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 1 << 30 };

// The values that sums relative to the best, and gains, may have in a state. NaN is not one of them.
static int in_range(double x, double least, double most) { return x >= least && x <= most; }
static int is_depth(int32_t x) { return x >= 0 && x <= DEPTH_MAX; }
static int is_gain(double x) { return in_range(x, 0, 1e200); }
static int is_sum(double x) { return in_range(x, 0, 16); }
static int is_log(double x) { return in_range(x, -1e300, 1e300); }
static int is_frame(int64_t x) { return x > -(INT64_C(1) << 60) && x < INT64_C(1) << 60; }

// A list of free elements must contain each free element once: it must not end early and must not be a ring.
static int nodes_are_sound(const lin_beam_view *v)
{
    const lin_beam_state *s = v->state;
    const int n = v->beam->n_nodes;
    int live = 0, linked = 0, unused = 0;
    for (int i = 0; i < n; i++) {
        const lin_beam_node *node = &v->nodes[i];
        if (node->parent == LIN_BEAM_FREE) continue;
        live++;
        if (node->label < 0 || node->label >= v->beam->V || !is_depth(node->depth)) return 0;
        if (!is_gain(node->gain) || !is_log(node->weight) || !is_log(node->pending) || isnan(node->language)) return 0;
        if (fabs(node->pending) > 2 * LIN_CONTEXT_BONUS_MAX) return 0;
        if (v->beam->lm && node->lm >= lin_ngram_states(v->beam->lm)) return 0;
        if (node->hyp < LIN_BEAM_NONE || node->hyp >= s->n_hyps || (node->hyp >= 0 && v->hyps[node->hyp].node != i)) return 0;
        if (node->first < LIN_BEAM_NONE || node->first >= n || node->next < LIN_BEAM_NONE || node->next >= n) return 0;
        if (i == s->node_root) {
            if (node->parent != LIN_BEAM_NONE || node->next != LIN_BEAM_NONE) return 0;
        } else {
            if (node->parent < 0 || node->parent >= n || v->nodes[node->parent].parent == LIN_BEAM_FREE) return 0;
            if (node->depth - 1 != v->nodes[node->parent].depth || node->label == LIN_BEAM_ROOT_LABEL) return 0;
            if (node->depth - v->nodes[s->node_root].depth > v->beam->options.longest) return 0;
            if (node->hyp < 0 && node->first < 0) return 0; // it would never be freed
        }
    }
    for (int i = 0; i < n; i++) {
        if (v->nodes[i].parent == LIN_BEAM_FREE) continue;
        for (int32_t child = v->nodes[i].first; child >= 0; child = v->nodes[child].next)
            if (v->nodes[child].parent != i || ++linked >= live) return 0;
    }
    for (int32_t at = s->node_free; at != LIN_BEAM_NONE; at = v->nodes[at].next)
        if (at < 0 || at >= n || v->nodes[at].parent != LIN_BEAM_FREE || ++unused > n - live) return 0;
    return linked == live - 1 && unused == n - live;
}

// refs [n_cells] is scratch.
static int traces_are_sound(const lin_beam_view *v, int32_t *refs)
{
    const lin_beam_state *s = v->state;
    const int n = v->beam->n_traces;
    int live = 0, unused = 0;
    memset(refs, 0, (size_t)n * sizeof *refs);
    for (int i = 0; i < n; i++) {
        const lin_beam_trace *trace = &v->traces[i];
        if (trace->parent == LIN_BEAM_FREE) continue;
        live++;
        if (!is_depth(trace->depth) || trace->label < 0 || trace->label >= v->beam->V) return 0;
        if (i == s->trace_root) {
            if (trace->parent != LIN_BEAM_NONE) return 0;
            continue;
        }
        if (trace->parent < 0 || trace->parent >= n || v->traces[trace->parent].parent == LIN_BEAM_FREE) return 0;
        if (trace->depth - 1 != v->traces[trace->parent].depth) return 0;
        if (trace->depth - v->traces[s->trace_root].depth > v->beam->options.longest) return 0;
        if (!is_frame(trace->start) || !is_frame(trace->end) || trace->start >= trace->end || isnan(trace->sum)) return 0;
        refs[trace->parent]++;
    }
    for (int i = 0; i < s->n_hyps; i++) {
        const int32_t before[] = {v->hyps[i].before_blank, v->hyps[i].before_label};
        for (int k = 0; k < 2; k++) {
            if (before[k] < LIN_BEAM_NONE || before[k] >= n) return 0;
            if (before[k] < 0) continue;
            if (v->traces[before[k]].parent == LIN_BEAM_FREE) return 0;
            if (v->traces[before[k]].depth - v->traces[s->trace_root].depth + k > v->beam->options.longest) return 0;
            refs[before[k]]++;
        }
    }
    for (int i = 0; i < n; i++) {
        const lin_beam_trace *trace = &v->traces[i];
        if (trace->parent != LIN_BEAM_FREE && (trace->refs != refs[i] || !refs[i])) return 0;
    }
    for (int32_t at = s->trace_free; at != LIN_BEAM_NONE; at = v->traces[at].refs)
        if (at < 0 || at >= n || v->traces[at].parent != LIN_BEAM_FREE || ++unused > n - live) return 0;
    return unused == n - live;
}

// used [width] is scratch.
static int hyps_are_sound(const lin_beam_view *v, int32_t *used)
{
    const lin_beam_state *s = v->state;
    const int width = v->beam->options.width, root = v->traces[s->trace_root].depth;
    memset(used, 0, (size_t)width * sizeof *used);
    for (int i = 0; i < s->n_hyps; i++) {
        const lin_beam_hyp *h = &v->hyps[i];
        if (h->node < 0 || h->node >= v->beam->n_nodes || v->nodes[h->node].parent == LIN_BEAM_FREE) return 0;
        if (v->nodes[h->node].hyp != i || h->slot < 0 || h->slot >= width || used[h->slot]++) return 0;
        if (!is_sum(h->blank) || !is_sum(h->label) || !is_sum(h->best_blank) || !is_sum(h->best_label)) return 0;
        if (h->before_blank < 0 && (h->before_label < 0 || h->blank > 0)) return 0;
        if (h->before_label < 0 && h->label > 0) return 0;
        if (h->before_label >= 0 && (!is_frame(h->start) || h->start >= s->frame || isnan(h->sum))) return 0;
        // The traces and the open run spell as many phones as the nodes.
        const int depth = v->nodes[h->node].depth;
        if (h->before_blank >= 0 && v->traces[h->before_blank].depth != depth) return 0;
        if (h->before_label >= 0 && (v->traces[h->before_label].depth != depth - 1 || depth <= root)) return 0;
    }
    for (int i = 0; i < s->slots_free; i++)
        if (v->slots[i] < 0 || v->slots[i] >= width || used[v->slots[i]]++) return 0;
    return s->slots_free + s->n_hyps == width;
}

static int is_sound(const lin_beam_view *v, int32_t *scratch)
{
    const lin_beam *beam = v->beam;
    const lin_beam_state *s = v->state;
    if (s->n_hyps < 1 || s->n_hyps > beam->options.width || s->slots_free < 0 || s->slots_free > beam->options.width) return 0;
    if (s->node_root < 0 || s->node_root >= beam->n_nodes || s->trace_root < 0 || s->trace_root >= beam->n_traces) return 0;
    if (v->nodes[s->node_root].parent != LIN_BEAM_NONE || v->traces[s->trace_root].parent != LIN_BEAM_NONE) return 0;
    if (!is_depth(v->nodes[s->node_root].depth) || !is_depth(v->traces[s->trace_root].depth)) return 0;
    if (!is_frame(s->frame) || !is_frame(s->scale) || !is_log(s->shift)) return 0;
    if (!nodes_are_sound(v) || !traces_are_sound(v, scratch) || !hyps_are_sound(v, scratch)) return 0;
    for (size_t i = 0; i < (size_t)beam->options.width * (size_t)beam->V; i++)
        if (v->gains[i] != -1 && !is_gain(v->gains[i])) return 0;
    return 1;
}

lin_status lin_beam_check(const lin_beam *beam, const void *state, size_t n, lin_error *err)
{
    const lin_beam_view v = lin_beam_view_of(beam, NULL, (void *)(uintptr_t)state);
    if (n != lin_beam_bytes(beam)) {
        return lin_fail(err, LIN_MISMATCH, "a beam search state of %zu bytes, not %zu: it was made with other options", n,
                        lin_beam_bytes(beam));
    }
    if (v.state->fingerprint != beam->fingerprint) {
        return lin_fail(err, LIN_MISMATCH, "the beam search state was made with other options or another language model");
    }
    int32_t *scratch = lin_alloc((size_t)(beam->n_traces + beam->options.width), sizeof *scratch);
    if (!scratch) return lin_no_memory(err, "the check of a beam search state", (size_t)beam->n_traces * sizeof *scratch);
    int sound = is_sound(&v, scratch);
    lin_free(scratch);
    return sound ? LIN_OK : lin_fail(err, LIN_FORMAT, "the beam search state is damaged; begin the stream again");
}
