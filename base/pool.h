/*
 * pool.h - a small thread pool. Work is cut into numbered pieces; which thread does a piece never changes its result.
 *
 *   lin_pool *pool;
 *   lin_pool_create(2, &pool, &err);                    // this thread and one more
 *   lin_pool_run(pool, n_pieces, do_piece, context);    // returns when all are done
 *   lin_pool_destroy(pool);
 *
 * One run at a time per pool; a run from inside a piece executes its pieces in place. A NULL pool runs everything on the caller.
 */
#ifndef LIN_BASE_POOL_H
#define LIN_BASE_POOL_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct lin_pool lin_pool;

/* thread is 0..n_threads-1, for per-thread scratch: two pieces with the same thread number never run at once. */
typedef void (*lin_pool_work)(void *context, int piece, int thread);

/* n_threads includes the caller; 0 asks for one per available core. */
lin_status lin_pool_create(int n_threads, lin_pool **pool, lin_error *err);
int lin_pool_threads(const lin_pool *pool);
void lin_pool_run(lin_pool *pool, int n_pieces, lin_pool_work work, void *context);
void lin_pool_destroy(lin_pool *pool);

/* Inside a piece: waits until *counter, which a piece with a lower number raises, is at least n. Pieces are begun in order, so that
 * one has begun. What was written before the counter was raised (atomic_store) can be read afterwards. */
void lin_pool_wait(const atomic_int *counter, int n);

#endif
