// pool.c - worker threads that take numbered pieces, and threads whose results are taken in order; see pool.h.

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

/* ---- items in order -------------------------------------------------------------------------------------------------------- */

typedef struct ring {
    const lin_ordered *todo;
    pthread_mutex_t lock;
    pthread_cond_t taken, done;
    int next_item, next_take, stop, n_slots;
    unsigned char *ready; // by slot
} ring;

typedef struct ring_thread {
    ring *r;
    int number;
    pthread_t id;
} ring_thread;

int lin_ordered_slots(int n_threads) { return 4 * n_threads; }

int lin_ordered_threads(int jobs, int n_items)
{
    int n = jobs ? jobs : lin_cores();
    if (n > n_items) n = n_items;
    return n < 1 ? 1 : n;
}

static void *ring_main(void *context)
{
    ring_thread *t = context;
    ring *r = t->r;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->stop && r->next_item < r->todo->n_items && r->next_item >= r->next_take + r->n_slots) {
            pthread_cond_wait(&r->taken, &r->lock);
        }
        if (r->stop || r->next_item >= r->todo->n_items) break;
        int item = r->next_item++;
        pthread_mutex_unlock(&r->lock);
        r->todo->work(r->todo->context, item, item % r->n_slots, t->number);
        pthread_mutex_lock(&r->lock);
        r->ready[item % r->n_slots] = 1;
        pthread_cond_signal(&r->done);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static lin_status take_all(ring *r, lin_error *err)
{
    lin_status status = LIN_OK;
    pthread_mutex_lock(&r->lock);
    for (int item = 0; item < r->todo->n_items && status == LIN_OK; item++) {
        while (!r->ready[item % r->n_slots]) pthread_cond_wait(&r->done, &r->lock);
        pthread_mutex_unlock(&r->lock);
        status = r->todo->take(r->todo->context, item, item % r->n_slots, err);
        pthread_mutex_lock(&r->lock);
        r->ready[item % r->n_slots] = 0;
        r->next_take = item + 1;
        pthread_cond_broadcast(&r->taken);
    }
    r->stop = 1;
    pthread_cond_broadcast(&r->taken);
    pthread_mutex_unlock(&r->lock);
    return status;
}

// With one thread, the caller's thread does the work: a signal then interrupts its reading.
static lin_status run_here(const lin_ordered *ordered, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int item = 0; item < ordered->n_items && status == LIN_OK; item++) {
        ordered->work(ordered->context, item, 0, 0);
        status = ordered->take(ordered->context, item, 0, err);
    }
    return status;
}

lin_status lin_ordered_run(const lin_ordered *ordered, lin_error *err)
{
    assert(ordered->n_threads >= 1 && ordered->work && ordered->take);
    if (ordered->n_threads == 1) return run_here(ordered, err);
    ring r = {.todo = ordered, .n_slots = lin_ordered_slots(ordered->n_threads)};
    ring_thread *threads = lin_calloc((size_t)ordered->n_threads, sizeof *threads);
    r.ready = lin_calloc((size_t)r.n_slots, 1);
    lin_status status = LIN_OK;
    int started = 0;
    if (!threads || !r.ready) {
        status = lin_no_memory(err, "threads", (size_t)ordered->n_threads * sizeof *threads);
    } else {
        pthread_mutex_init(&r.lock, NULL);
        pthread_cond_init(&r.taken, NULL);
        pthread_cond_init(&r.done, NULL);
        for (; started < ordered->n_threads; started++) {
            threads[started].r = &r;
            threads[started].number = started;
            if (pthread_create(&threads[started].id, NULL, ring_main, &threads[started]) != 0) break;
        }
        // If some threads cannot be started, the others do all the work.
        status = started ? take_all(&r, err) : lin_fail(err, LIN_IO, "cannot start a thread");
        for (int i = 0; i < started; i++) pthread_join(threads[i].id, NULL);
        pthread_cond_destroy(&r.done);
        pthread_cond_destroy(&r.taken);
        pthread_mutex_destroy(&r.lock);
    }
    lin_free(r.ready);
    lin_free(threads);
    return status;
}
