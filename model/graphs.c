// graphs.c - recording shapes and replaying them; see graphs.h.

#include "model/graphs.h"

#include <string.h>

// The graph of a key, recorded now if this is its second use; NULL: run directly.
static const lin_graph *find(lin_graphs *g, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *),
                             void *context)
{
    int i = 0;
    while (i < g->n && memcmp(g->known[i].key, key, sizeof g->known[i].key) != 0) i++;
    if (i == LIN_GRAPHS) return NULL;
    if (i == g->n) {
        memcpy(g->known[g->n++].key, key, sizeof g->known[i].key);
        return NULL;
    }
    if (!g->known[i].graph && ops->graph_begin(exec, NULL) == LIN_OK) {
        compute(context);
        if (ops->graph_end(exec, &g->known[i].graph, NULL) != LIN_OK) g->known[i].graph = NULL;
    }
    return g->known[i].graph;
}

void lin_graphs_run(lin_graphs *g, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *), void *context)
{
    const lin_graph *graph = ops->graph_begin ? find(g, ops, exec, key, compute, context) : NULL;
    if (graph) {
        ops->graph_launch(exec, graph);
    } else {
        compute(context);
    }
}

void lin_graphs_free(lin_graphs *g, const lin_ops *ops)
{
    for (int i = 0; i < g->n; i++)
        if (g->known[i].graph) ops->graph_destroy(g->known[i].graph);
    g->n = 0;
}
