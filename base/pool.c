// pool.c - worker threads that take numbered pieces; see pool.h.

#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/system.h"

// Between two runs of a training step only microseconds pass, so a worker checks for new work this many times before it sleeps.
enum { SPINS = 2000 };

typedef struct worker {
    lin_pool *pool;
    int thread;
    pthread_t handle;
} worker;

struct lin_pool {
    int n_threads;
    worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    atomic_uint generation; // increases with each run and when the pool ends
    atomic_int next;        // the next piece that no thread has taken
    atomic_int joined;      // workers in the current run; increases only under the lock
    int open, stop, sleeping;
    int n_pieces;
    lin_pool_work work;
    void *context;
};

// The pieces that this thread is executing, innermost first: a piece of one pool may use another pool.
typedef struct place {
    const lin_pool *pool;
    int thread;
    const struct place *outer;
} place;

static _Thread_local const place *inside;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void lin_pool_wait(const atomic_int *counter, int n)
{
    // The thread that increases it may be waiting for a core.
    for (int i = 0; atomic_load(counter) < n; i++) {
        if (i < SPINS) relax();
        else sched_yield();
    }
}

static void work_off(lin_pool *pool, int thread)
{
    int piece;
    const place here = {pool, thread, inside};
    inside = &here;
    while ((piece = atomic_fetch_add(&pool->next, 1)) < pool->n_pieces) pool->work(pool->context, piece, thread);
    inside = here.outer;
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    lin_pool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&pool->generation) == seen; i++) relax();
        pthread_mutex_lock(&pool->lock);
        pool->sleeping++;
        while (atomic_load(&pool->generation) == seen) pthread_cond_wait(&pool->wake, &pool->lock);
        pool->sleeping--;
        seen = atomic_load(&pool->generation);
        const int stop = pool->stop, join = pool->open;
        if (join) atomic_fetch_add(&pool->joined, 1);
        pthread_mutex_unlock(&pool->lock);
        if (stop) return NULL;
        if (!join) continue; // the caller finished all pieces before this thread woke up
        work_off(pool, self->thread);
        if (atomic_fetch_sub(&pool->joined, 1) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

lin_status lin_pool_create(int n_threads, lin_pool **out, lin_error *err)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > 1024) {
        return lin_fail(err, LIN_INVALID, "%d threads requested; use 1 to 1024, or 0 for one per core", n_threads);
    }
    if (n_threads == 0) n_threads = lin_cores();
    lin_pool *pool = lin_calloc(1, sizeof *pool);
    if (!pool) return lin_no_memory(err, "a thread pool", sizeof *pool);
    pool->workers = lin_calloc((size_t)n_threads, sizeof *pool->workers);
    if (!pool->workers) {
        lin_free(pool);
        return lin_no_memory(err, "a thread pool", (size_t)n_threads * sizeof *pool->workers);
    }
    pool->n_threads = n_threads;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (int i = 1; i < n_threads; i++) {
        pool->workers[i] = (worker){.pool = pool, .thread = i};
        if (pthread_create(&pool->workers[i].handle, NULL, worker_main, &pool->workers[i]) != 0) {
            pool->n_threads = i;
            lin_pool_destroy(pool);
            return lin_fail(err, LIN_NO_MEMORY, "cannot start thread %d of %d; use fewer with --threads", i + 1, n_threads);
        }
    }
    *out = pool;
    return LIN_OK;
}

int lin_pool_threads(const lin_pool *pool) { return pool ? pool->n_threads : 1; }

void lin_pool_run(lin_pool *pool, int n_pieces, lin_pool_work work, void *context)
{
    assert(n_pieces >= 0 && work);
    const place *here = inside;
    while (pool && here && here->pool != pool) here = here->outer;
    if (!pool || pool->n_threads == 1 || n_pieces <= 1 || here) {
        for (int piece = 0; piece < n_pieces; piece++) work(context, piece, pool && here ? here->thread : 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->work = work;
    pool->context = context;
    pool->n_pieces = n_pieces;
    pool->open = 1;
    atomic_store(&pool->next, 0);
    atomic_fetch_add(&pool->generation, 1);
    if (pool->sleeping) pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    work_off(pool, 0);
    pthread_mutex_lock(&pool->lock);
    pool->open = 0; // no worker may join now: waits only for those that have a piece
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < SPINS && atomic_load(&pool->joined); i++) relax();
    if (!atomic_load(&pool->joined)) return;
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->joined)) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void lin_pool_destroy(lin_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = 1;
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->n_threads; i++) pthread_join(pool->workers[i].handle, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    lin_free(pool->workers);
    lin_free(pool);
}
