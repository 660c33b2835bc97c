// ordered.c - processes numbered items on several threads; see ordered.h.

#include "base/ordered.h"

#include <assert.h>
#include <pthread.h>

#include "base/memory.h"
#include "base/system.h"

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

int lin_ordered_slots(int n_threads)
{
    return 4 * n_threads;
}

int lin_ordered_threads(int jobs, int n_items)
{
    int n = jobs ? jobs : lin_cores();
    if (n > n_items) n = n_items;
    return n < 1 ? 1 : n;
}

static void *worker(void *context)
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
            if (pthread_create(&threads[started].id, NULL, worker, &threads[started]) != 0) break;
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
