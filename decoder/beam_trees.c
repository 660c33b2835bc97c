// beam_trees.c - the tree of prefixes, and the trace-backs that hypotheses share; see beam_internal.h.

#include <assert.h>
#include <math.h>

#include "decoder/beam_internal.h"

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

int32_t lin_beam_child(const lin_beam_view *v, int32_t parent, int32_t label)
{
    int32_t child = v->nodes[parent].first;
    while (child >= 0 && v->nodes[child].label != label) child = v->nodes[child].next;
    return child;
}

int32_t lin_beam_add_child(lin_beam_view *v, int32_t parent, int32_t label)
{
    int32_t at = v->state->node_free;
    assert(at >= 0 && at < v->beam->n_nodes && v->nodes[at].parent == LIN_BEAM_FREE); // lay_out reckoned with the worst case
    lin_beam_node *node = &v->nodes[at], *above = &v->nodes[parent];
    v->state->node_free = node->next;
    *node = (lin_beam_node){.parent = parent, .first = LIN_BEAM_NONE, .next = above->first, .label = label, .hyp = LIN_BEAM_NONE};
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

void lin_beam_prune(lin_beam_view *v, int32_t at)
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

void lin_beam_lower_root(lin_beam_view *v)
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

int32_t lin_beam_add_trace(lin_beam_view *v, int32_t parent, int32_t label, int64_t start, int64_t end, double sum)
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

void lin_beam_drop_trace(lin_beam_view *v, int32_t at)
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

// All alignments pass through a trace if no trace above it has another reference. The lowest such trace becomes the root.
int lin_beam_settle(lin_beam_view *v, lin_path *settled)
{
    const int32_t root = v->state->trace_root;
    if (v->traces[root].refs != 1) return 0;
    int open;
    int32_t lowest = lin_beam_best_end(&v->hyps[0], &open);
    for (int32_t at = lowest; at != root; at = v->traces[at].parent)
        if (v->traces[v->traces[at].parent].refs != 1) lowest = v->traces[at].parent;
    if (lowest == root) return 0;
    int n = v->traces[lowest].depth - v->traces[root].depth;
    lin_beam_list(v, lowest, settled);
    v->state->trace_root = lowest;
    for (int32_t at = v->traces[lowest].parent; at >= 0;) {
        int32_t parent = v->traces[at].parent;
        free_trace(v, at);
        at = parent;
    }
    v->traces[lowest].parent = LIN_BEAM_NONE;
    return n;
}
