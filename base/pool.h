/*
 * pool.h - work on several threads: numbered pieces on a small pool, and numbered items whose results are taken in order.
 *
 * Pieces: the result never depends on which thread does a piece.
 *
 *   lin_pool *pool;
 *   lin_pool_create(2, &pool, &err);                    // this thread and one more
 *   lin_pool_run(pool, n_pieces, do_piece, context);    // returns when all are done
 *   lin_pool_destroy(pool);
 *
 * One run at a time per pool; a run from within a piece executes its pieces on the same thread. With a NULL pool the caller runs
 * all.
 *
 * Items: work runs on any of the threads; take runs on the caller's thread, item after item, so the results are those of one
 * thread. An item uses one slot, 0 .. lin_ordered_slots(n_threads)-1, from its work to its take: room for its result.
 *
 *   lin_ordered_run(&(lin_ordered){.n_items = n, .n_threads = 2, .context = &job, .work = decode, .take = write}, &err);
 */
#ifndef LIN_BASE_POOL_H
#define LIN_BASE_POOL_H

#include <stdatomic.h>

#include "base/status.h"

/* ---- pieces ---------------------------------------------------------------------------------------------------------------- */

typedef struct lin_pool lin_pool;

/* thread is 0..n_threads-1, for per-thread scratch: two pieces with the same thread number never run at the same time. */
typedef void (*lin_pool_work)(void *context, int piece, int thread);

/* n_threads includes the caller; 0: one per available core. */
lin_status lin_pool_create(int n_threads, lin_pool **pool, lin_error *err);
int lin_pool_threads(const lin_pool *pool);
void lin_pool_run(lin_pool *pool, int n_pieces, lin_pool_work work, void *context);
void lin_pool_destroy(lin_pool *pool);

/* Within a piece: waits until *counter, which a piece with a lower number increases, is at least n. Pieces start in order, so
 * that piece has started. Data written before the counter was increased (atomic_store) can be read afterwards. */
void lin_pool_wait(const atomic_int *counter, int n);

/* ---- items in order -------------------------------------------------------------------------------------------------------- */

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
