// beam_check.c - whether the state of a prefix beam search that came from a file is sound; see beam_internal.h.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/beam_internal.h"

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
            if (node->hyp < 0 && node->first < 0) return 0; // would never be freed
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
