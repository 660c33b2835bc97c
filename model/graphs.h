/*
 * graphs.h - work that repeats in a few shapes: recorded once per shape, then replayed as one launch.
 *
 *   lin_graphs graphs = {0};
 *   lin_graphs_run(&graphs, ops, exec, (const int[LIN_GRAPH_KEY]){rows, B}, compute, context);
 *   lin_graphs_free(&graphs, ops);
 *
 * compute must run the same operations, with the same addresses and numbers, whenever the key is the same; anything that varies
 * must be in the backend's memory.
 */
#ifndef LIN_MODEL_GRAPHS_H
#define LIN_MODEL_GRAPHS_H

#include "kernels/ops.h"

enum { LIN_GRAPH_KEY = 5, LIN_GRAPHS = 128 };

typedef struct lin_graphs {
    struct {
        int key[LIN_GRAPH_KEY];
        lin_graph *graph; /* NULL: seen once */
    } known[LIN_GRAPHS];
    int n;
} lin_graphs;

/* The first time a key is used, compute runs directly, which also finds the sizes of scratch; the second time it is recorded.
 * Backends without graphs, keys beyond the first LIN_GRAPHS and failed recordings always run directly. */
void lin_graphs_run(lin_graphs *graphs, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *context),
                    void *context);
void lin_graphs_free(lin_graphs *graphs, const lin_ops *ops);

#endif
