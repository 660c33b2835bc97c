// base/pool.c: every piece exactly once, thread numbers that never meet, runs inside runs, and pools inside pools.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "tests/support.h"

enum { MOST_PIECES = 1000, MOST_THREADS = 8 };

typedef struct record {
    atomic_int done[MOST_PIECES];
    atomic_int busy[MOST_THREADS]; // pieces that run now under this thread number
    atomic_int clashes;
    lin_pool *pool; // for runs inside pieces
    atomic_int inner;
    int plain[MOST_PIECES]; // written without a lock: the thread sanitizer checks that a run's end orders it
} record;

static void note(void *context, int piece, int thread)
{
    record *r = context;
    if (thread < 0 || thread >= MOST_THREADS || atomic_fetch_add(&r->busy[thread], 1) != 0) atomic_fetch_add(&r->clashes, 1);
    atomic_fetch_add(&r->done[piece], 1);
    r->plain[piece]++;
    atomic_fetch_sub(&r->busy[thread], 1);
}

START_TEST(every_piece_once)
{
    int threads = _i;
    lin_pool *pool;
    ck_assert_int_eq(lin_pool_create(threads, &pool, NULL), LIN_OK);
    ck_assert_int_eq(lin_pool_threads(pool), threads);
    for (int pieces = 0; pieces <= MOST_PIECES; pieces = pieces < 20 ? pieces + 1 : pieces * 3) {
        record r = {.pool = pool};
        lin_pool_run(pool, pieces, note, &r);
        ck_assert_int_eq(atomic_load(&r.clashes), 0);
        for (int i = 0; i < MOST_PIECES; i++) {
            if (atomic_load(&r.done[i]) != (i < pieces) || r.plain[i] != (i < pieces)) {
                ck_abort_msg("piece %d of %d was done %d times", i, pieces, r.plain[i]);
            }
        }
    }
    lin_pool_destroy(pool);
}
END_TEST

START_TEST(many_short_runs)
{
    int threads = _i;
    lin_pool *pool;
    static record r;
    memset(&r, 0, sizeof r);
    ck_assert_int_eq(lin_pool_create(threads, &pool, NULL), LIN_OK);
    int runs = 3000, expected[MOST_PIECES] = {0};
    for (int run = 0; run < runs; run++) {
        int pieces = run % 7;
        lin_pool_run(pool, pieces, note, &r);
        for (int i = 0; i < pieces; i++) { // all ended, and visible here
            if (r.plain[i] != ++expected[i]) ck_abort_msg("run %d: piece %d was done %d times", run, i, r.plain[i]);
        }
    }
    ck_assert_int_eq(atomic_load(&r.clashes), 0);
    lin_pool_destroy(pool);
}
END_TEST

static void inner_piece(void *context, int piece, int thread)
{
    record *r = context;
    (void)piece;
    // The outer piece holds this number: it must be the only one.
    if (atomic_load(&r->busy[thread]) != 1) atomic_fetch_add(&r->clashes, 1);
    atomic_fetch_add(&r->inner, 1);
}

static void outer_piece(void *context, int piece, int thread)
{
    record *r = context;
    if (atomic_fetch_add(&r->busy[thread], 1) != 0) atomic_fetch_add(&r->clashes, 1);
    lin_pool_run(r->pool, 5, inner_piece, r);
    atomic_fetch_add(&r->done[piece], 1);
    atomic_fetch_sub(&r->busy[thread], 1);
}

START_TEST(nested_runs_stay_on_their_thread)
{
    lin_pool *pool;
    ck_assert_int_eq(lin_pool_create(_i, &pool, NULL), LIN_OK);
    for (int run = 0; run < 200; run++) {
        record r = {.pool = pool};
        lin_pool_run(pool, 12, outer_piece, &r);
        ck_assert_int_eq(atomic_load(&r.clashes), 0);
        ck_assert_int_eq(atomic_load(&r.inner), 60);
        for (int i = 0; i < 12; i++) ck_assert_int_eq(atomic_load(&r.done[i]), 1);
    }
    lin_pool_destroy(pool);
}
END_TEST

// Nested pools, as for files processed in parallel: each piece of the outer pool has its own smaller pool, whose scratch has room
// for its threads only.
typedef struct farm {
    lin_pool *inner[4];
    atomic_int pieces, bad;
} farm;

static void leaf(void *context, int piece, int thread)
{
    farm *f = context;
    (void)piece;
    if (thread < 0 || thread >= 2) atomic_fetch_add(&f->bad, 1);
    atomic_fetch_add(&f->pieces, 1);
}

static void leaf_alone(void *context, int piece, int thread)
{
    farm *f = context;
    (void)piece;
    if (thread != 0) atomic_fetch_add(&f->bad, 1);
    atomic_fetch_add(&f->pieces, 1);
}

static void branch(void *context, int piece, int thread)
{
    farm *f = context;
    (void)thread;
    lin_pool_run(f->inner[piece], 10, leaf, f);
    lin_pool_run(NULL, 10, leaf_alone, f);
}

// Each piece goes through stages, none before the piece before it has been there: what that wrote can be read.
enum { STAGES = 9, CHUNKS = 40 };

typedef struct stages {
    atomic_int done[CHUNKS];
    int carried[STAGES]; // written without a lock: the thread sanitizer checks that waiting orders it
} stages;

static void go_through(void *context, int piece, int thread)
{
    stages *s = context;
    (void)thread;
    for (int i = 0; i < STAGES; i++) {
        if (piece) lin_pool_wait(&s->done[piece - 1], i + 1);
        if (s->carried[i] == piece) s->carried[i]++;
        atomic_store(&s->done[piece], i + 1);
    }
}

START_TEST(pieces_wait_for_those_before)
{
    lin_pool *pool;
    ck_assert_int_eq(lin_pool_create(_i, &pool, NULL), LIN_OK);
    for (int run = 0; run < 50; run++) {
        stages s = {.carried = {0}};
        lin_pool_run(pool, CHUNKS, go_through, &s);
        for (int i = 0; i < STAGES; i++) ck_assert_int_eq(s.carried[i], CHUNKS);
    }
    lin_pool_destroy(pool);
}
END_TEST

START_TEST(pools_inside_pools)
{
    farm f = {0};
    lin_pool *outer;
    ck_assert_int_eq(lin_pool_create(4, &outer, NULL), LIN_OK);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(lin_pool_create(1 + i % 2, &f.inner[i], NULL), LIN_OK);
    for (int run = 0; run < 100; run++) lin_pool_run(outer, 4, branch, &f);
    ck_assert_int_eq(atomic_load(&f.pieces), 100 * 4 * 20);
    ck_assert_int_eq(atomic_load(&f.bad), 0);
    lin_pool_destroy(outer);
    for (int i = 0; i < 4; i++) lin_pool_destroy(f.inner[i]);
}
END_TEST

START_TEST(null_pool_runs_in_order)
{
    record r = {0};
    lin_pool_run(NULL, 10, note, &r);
    for (int i = 0; i < 10; i++) ck_assert_int_eq(r.plain[i], 1);
    ck_assert_int_eq(lin_pool_threads(NULL), 1);
    lin_pool_destroy(NULL);
}
END_TEST

START_TEST(bad_counts_are_refused)
{
    lin_pool *pool = (lin_pool *)&pool;
    lin_error why = {0};
    ck_assert_int_eq(lin_pool_create(-1, &pool, &why), LIN_INVALID);
    ck_assert_ptr_null(pool);
    ck_assert_str_eq(why.message, "-1 threads requested; use 1 to 1024, or 0 for one per core");
    ck_assert_int_eq(lin_pool_create(1025, &pool, &why), LIN_INVALID);
    OK(lin_pool_create(0, &pool, &err));
    ck_assert_int_ge(lin_pool_threads(pool), 1);
    lin_pool_destroy(pool);
}
END_TEST

START_TEST(failed_allocations_leak_nothing)
{
    lin_pool *pool;
    FAIL_EVERY_ALLOCATION_OF(pool, lin_pool_create(3, &pool, NULL), lin_pool_destroy(pool));
}
END_TEST

TEST_MAIN("base/pool", TESTS(every_piece_once, 1, MOST_THREADS + 1), TESTS(many_short_runs, 1, MOST_THREADS + 1),
          TESTS(nested_runs_stay_on_their_thread, 1, MOST_THREADS + 1), TESTS(pieces_wait_for_those_before, 1, MOST_THREADS + 1),
          TEST(pools_inside_pools), TEST(null_pool_runs_in_order), TEST(bad_counts_are_refused),
          TEST(failed_allocations_leak_nothing))
