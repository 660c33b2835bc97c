// comm_threads.c - a transport between threads: every message is copied into a queue; see comm_threads.h.

#include "tests/comm_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

typedef struct letter {
    int from, to, tag;
    size_t bytes;
    struct letter *next;
    unsigned char data[];
} letter;

typedef struct waiting {
    struct waiting *next; // of all that were started and have not ended
    int tag, n, done[256];
    lin_comm_message messages[256];
} waiting;

struct test_world {
    int size, fail_rank, fail_at, failed, starts[64];
    pthread_mutex_t lock;
    letter *first, **last;
    waiting *started;
    void (*work)(lin_comm *comm, void *context);
    void *context;
};

typedef struct member {
    test_world *world;
    int rank;
} member;

// With the lock held.
static void post(test_world *w, int from, int tag, const lin_comm_message *m)
{
    letter *l = malloc(sizeof *l + m->bytes);
    ck_assert(l != NULL);
    *l = (letter){.from = from, .to = m->peer, .tag = tag, .bytes = m->bytes};
    if (m->bytes) memcpy(l->data, m->data, m->bytes);
    *w->last = l;
    w->last = &l->next;
}

static int take(test_world *w, int to, int tag, const lin_comm_message *m)
{
    for (letter **at = &w->first; *at; at = &(*at)->next) {
        letter *l = *at;
        if (l->to != to || l->from != m->peer || l->tag != tag) continue;
        ck_assert_msg(l->bytes == m->bytes, "rank %d waits for %zu bytes from rank %d with tag %d, which sent %zu", to, m->bytes,
                      m->peer, tag, l->bytes);
        if (l->bytes) memcpy(m->data, l->data, l->bytes);
        *at = l->next;
        if (w->last == &l->next) w->last = at;
        free(l);
        return 1;
    }
    return 0;
}

static lin_status start(lin_comm *comm, int tag, const lin_comm_message *messages, int n, void **transfer, lin_error *err)
{
    test_world *w = comm->context;
    waiting *t = malloc(sizeof *t);
    ck_assert(t != NULL && n <= 256);
    *t = (waiting){.tag = tag, .n = n};
    pthread_mutex_lock(&w->lock);
    if (comm->rank == w->fail_rank && ++w->starts[comm->rank] == w->fail_at) w->failed = 1;
    else if (comm->rank != w->fail_rank) w->starts[comm->rank]++;
    const int failed = w->failed;
    for (int i = 0; i < n && !failed; i++) {
        t->messages[i] = messages[i];
        if (!messages[i].receives) post(w, comm->rank, tag, &messages[i]), t->done[i] = 1;
    }
    if (!failed) {
        t->next = w->started;
        w->started = t;
    }
    pthread_mutex_unlock(&w->lock);
    *transfer = t;
    if (!failed) return LIN_OK;
    free(t);
    return lin_fail(err, LIN_IO, "a test ended rank %d", w->fail_rank);
}

static lin_status test(lin_comm *comm, void *transfer, int *done, lin_error *err)
{
    test_world *w = comm->context;
    waiting *t = transfer;
    pthread_mutex_lock(&w->lock);
    *done = 1;
    for (int i = 0; i < t->n; i++) {
        if (!t->done[i]) t->done[i] = take(w, comm->rank, t->tag, &t->messages[i]);
        *done &= t->done[i];
    }
    const int failed = w->failed && !*done;
    waiting **at = &w->started;
    while (*at != t) at = &(*at)->next;
    if (*done || failed) *at = t->next;
    pthread_mutex_unlock(&w->lock);
    if (*done || failed) free(t);
    return failed ? lin_fail(err, LIN_IO, "a test ended rank %d", w->fail_rank) : LIN_OK;
}

static void close_threads(lin_comm *comm, int failed)
{
    (void)failed;
    lin_free(comm);
}

test_world *test_world_create(int size)
{
    test_world *w = calloc(1, sizeof *w);
    ck_assert(w != NULL && size <= 64);
    w->size = size;
    w->fail_rank = -1;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void test_world_free(test_world *w)
{
    while (w->first) {
        letter *l = w->first;
        w->first = l->next;
        free(l);
    }
    while (w->started) {
        waiting *t = w->started;
        w->started = t->next;
        free(t);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void test_world_fail(test_world *w, int rank, int n)
{
    w->fail_rank = rank;
    w->fail_at = n;
}

int test_world_starts(const test_world *w, int rank) { return w->starts[rank]; }

static void *live(void *context)
{
    static const lin_transport transport = {.name = "threads", .start = start, .test = test, .close = close_threads};
    const member *m = context;
    lin_error err = {0};
    lin_comm *comm = lin_calloc(1, sizeof *comm);
    ck_assert(comm != NULL);
    *comm = (lin_comm){.rank = m->rank, .size = m->world->size, .transport = &transport, .context = m->world};
    ck_assert_msg(lin_comm_meet(comm, "1", &err) == LIN_OK, "%s", err.message);
    m->world->work(comm, m->world->context);
    comm->lost = 0; // nobody here is another process that could be waited for
    lin_comm_close(comm, 0);
    return NULL;
}

void test_world_run(test_world *w, void (*work)(lin_comm *comm, void *context), void *context)
{
    pthread_t threads[64];
    member members[64];
    w->work = work;
    w->context = context;
    for (int r = 0; r < w->size; r++) {
        members[r] = (member){w, r};
        ck_assert(pthread_create(&threads[r], NULL, live, &members[r]) == 0);
    }
    for (int r = 0; r < w->size; r++) pthread_join(threads[r], NULL);
}
