// align_graph.c - a known text as a graph of CTC states; see align.h.

#include "align/align.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_STATES = 500000000, MOST_BEFORES = 1000000000 };

static void add_before(lin_align_graph *g, int before)
{
    assert(g->n_befores < g->befores_capacity && before >= 0 && before < g->n_states);
    g->befores[g->n_befores++] = before;
    if (g->states[before].reach < g->n_states) g->states[before].reach = g->n_states;
}

// A state without predecessors; add_before adds them. The memory is reserved.
static int add_state(lin_align_graph *g, int label, int slot)
{
    assert(g->n_states + 1 < g->states_capacity && label >= 0 && label <= g->V + 1);
    const int s = g->n_states++;
    const int last = g->n_befores - g->states[s - 1].before;
    if (last > g->most_befores) g->most_befores = last;
    g->states[s] = (lin_align_state){.label = label, .slot = slot, .before = g->n_befores, .reach = s + 1};
    return s;
}

// Speech that is not in the text, after the blank that was added last.
static void add_other(lin_align_graph *g)
{
    const int s = add_state(g, g->V + 1, -1);
    g->states[s].logp = (float)LIN_ALIGN_OTHER_OUTSIDE;
    add_before(g, s - 1);
    g->states[g->n_states].before = g->n_befores;
}

lin_status lin_align_graph_begin(lin_align_graph *g, int V, lin_error *err)
{
    assert(V >= 2);
    LIN_TRY(lin_grow_int(&g->states, &g->states_capacity, 3, sizeof *g->states, "a text to align", err));
    LIN_TRY(lin_grow_int(&g->befores, &g->befores_capacity, 1, sizeof *g->befores, "a text to align", err));
    g->V = V;
    g->states[0] = (lin_align_state){.slot = -1, .reach = 1};
    g->states[1] = (lin_align_state){0};
    g->n_states = 1;
    g->n_befores = g->n_slots = g->n_ends = g->n_starts = g->most_befores = 0;
    g->least_phones = 0;
    add_other(g);
    return LIN_OK;
}

void lin_align_graph_free(lin_align_graph *g)
{
    lin_free(g->states);
    lin_free(g->befores);
    lin_free(g->slots);
    *g = (lin_align_graph){0};
}

int64_t lin_align_graph_least_rows(const lin_align_graph *g)
{
    int64_t least = 0;
    for (int i = 0; i < g->n_ends; i++) {
        if (i == 0 || g->least[i] < least) least = g->least[i];
    }
    return least;
}

// The largest number of entries that a slot of this many phones adds to `befores`.
static int64_t more_befores(const lin_align_graph *g, int64_t phones, int n)
{
    return 3 * phones + (int64_t)n * (g->n_ends + 3) + 1;
}

static lin_status check_size(const lin_align_graph *g, int64_t phones, int n, lin_error *err)
{
    if (g->n_states + 2 * phones + 2 > MOST_STATES)
        return lin_fail(err, LIN_UNSUPPORTED, "the text has over %d states; align shorter pieces", MOST_STATES);
    if (g->n_befores + more_befores(g, phones, n) > MOST_BEFORES)
        return lin_fail(err, LIN_UNSUPPORTED, "over %d steps between pronunciations: give each word fewer of them",
                        MOST_BEFORES);
    return LIN_OK;
}

// One pronunciation, with the blanks between its phones. Returns its last state.
static int add_pronunciation(lin_align_graph *g, const lin_align_pronunciation *p, int entry, int slot, int64_t *least)
{
    const int *labels = p->labels;
    for (int k = 0; k < p->n; k++) {
        const int s = add_state(g, labels[k], slot);
        if (p->stress) g->states[s].stress = p->stress[k] + 1;
        if (k == 0) {
            g->states[s].logp = (float)p->logp;
            // From the blank, or directly from a different last phone of the slot before.
            add_before(g, entry);
            if (!slot || g->slots[slot].is_word) add_before(g, entry + 1);
            *least = slot ? INT64_MAX : 1;
            for (int i = 0; i < g->n_ends; i++) {
                const int equal = g->states[g->ends[i]].label == labels[0];
                if (!equal) add_before(g, g->ends[i]);
                if (g->least[i] + 1 + equal < *least) *least = g->least[i] + 1 + equal;
            }
        } else {
            const int equal = labels[k] == labels[k - 1];
            add_before(g, s - 1);
            if (!equal) add_before(g, s - 2);
            *least += 1 + equal;
        }
        if (k < p->n - 1) {
            add_state(g, 0, slot);
            add_before(g, s);
        }
    }
    return g->n_states - 1;
}

lin_status lin_align_graph_add(lin_align_graph *g, const lin_align_pronunciation *pronunciations, int n, int is_word,
                               lin_error *err)
{
    int64_t phones = 0;
    assert(n >= 1 && n <= LIN_ALIGN_PRONUNCIATIONS);
    for (int i = 0; i < n; i++) {
        assert(pronunciations[i].n >= 1 && pronunciations[i].logp <= 0);
        phones += pronunciations[i].n;
    }
    LIN_TRY(check_size(g, phones, n, err));
    // 2 L - 1 states for L phones, the blank and the other speech after them, and the one that ends the lists.
    LIN_TRY(
        lin_grow_int(&g->states, &g->states_capacity, g->n_states + 2 * phones + 3, sizeof *g->states, "a text to align", err));
    LIN_TRY(lin_grow_int(&g->befores, &g->befores_capacity, g->n_befores + more_befores(g, phones, n), sizeof *g->befores,
                         "a text to align", err));
    LIN_TRY(lin_grow_int(&g->slots, &g->slots_capacity, g->n_slots + 1, sizeof *g->slots, "a text to align", err));

    const int slot = g->n_slots, entry = g->n_states - 2;
    const int again = slot ? g->slots[slot - 1].first : 0; // states whose reach may grow
    int shortest = pronunciations[0].n;
    int32_t ends[LIN_ALIGN_PRONUNCIATIONS];
    int64_t least[LIN_ALIGN_PRONUNCIATIONS];
    if (slot) g->states[entry + 1].logp = (float)LIN_ALIGN_OTHER_BETWEEN;
    g->slots[g->n_slots++] = (lin_align_slot){.first = g->n_states, .n = n, .is_word = is_word};
    for (int i = 0; i < n; i++) {
        if (!slot) g->starts[i] = g->n_states;
        ends[i] = add_pronunciation(g, &pronunciations[i], entry, slot, &least[i]);
        if (pronunciations[i].n < shortest) shortest = pronunciations[i].n;
    }
    if (!slot) g->n_starts = n;
    add_state(g, 0, -1);
    for (int i = 0; i < n; i++) add_before(g, ends[i]);
    add_other(g);
    if (n > g->most_befores) g->most_befores = n;
    memcpy(g->ends, ends, (size_t)n * sizeof *ends);
    memcpy(g->least, least, (size_t)n * sizeof *least);
    g->n_ends = n;
    g->least_phones += shortest;
    for (int s = again > 0 ? again : 1; s < g->n_states; s++) {
        if (g->states[s].reach < g->states[s - 1].reach) g->states[s].reach = g->states[s - 1].reach;
    }
    return LIN_OK;
}

lin_status lin_align_graph_add_any(lin_align_graph *g, lin_error *err)
{
    return lin_align_graph_add(g, &(lin_align_pronunciation){.labels = &g->V, .n = 1}, 1, 1, err);
}
