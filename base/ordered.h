/*
 * ordered.h - processes numbered items on several threads and takes their results in order.
 *
 *   lin_ordered_run(&(lin_ordered){.n_items = n, .n_threads = 2, .context = &job, .work = decode, .take = write}, &err);
 *
 * work runs on any of the threads; take runs on the caller's thread, item after item, so the results are those of one thread.
 * An item uses one slot, 0 .. lin_ordered_slots(n_threads)-1, from its work to its take: room for its result.
 */
#ifndef LIN_BASE_ORDERED_H
#define LIN_BASE_ORDERED_H

#include "base/status.h"

typedef struct lin_ordered {
    int n_items, n_threads;
    void *context;
    void (*work)(void *context, int item, int slot, int thread);
    /* With any status but LIN_OK no further item is started or taken, and lin_ordered_run returns that status. */
    lin_status (*take)(void *context, int item, int slot, lin_error *err);
} lin_ordered;

/* Items that may be under way or waiting to be taken at once. */
int lin_ordered_slots(int n_threads);

/* Threads to use for a --jobs value of 0 (one per core) or more, and never more than there are items. */
int lin_ordered_threads(int jobs, int n_items);

lin_status lin_ordered_run(const lin_ordered *ordered, lin_error *err);

#endif
