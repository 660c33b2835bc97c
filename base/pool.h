/*
 * pool.h - a small thread pool. Work is divided into numbered pieces; the result never depends on which thread does a piece.
 *
 *   lin_pool *pool;
 *   lin_pool_create(2, &pool, &err);                    // this thread and one more
 *   lin_pool_run(pool, n_pieces, do_piece, context);    // returns when all are done
 *   lin_pool_destroy(pool);
 *
 * One run at a time per pool; a run from within a piece executes its pieces on the same thread. With a NULL pool the caller runs
 * all.
 */
#ifndef LIN_BASE_POOL_H
#define LIN_BASE_POOL_H

#include <stdatomic.h>

#include "base/status.h"

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

#endif
