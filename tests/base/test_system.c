// base/system.c: clocks, cores, own paths, pipes that a started program does not inherit, waits that end at a time or an event,
// delays.
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "tests/support.h"

START_TEST(time_passes)
{
    const double begun = lin_now(), begun_cpu = lin_now_cpu();
    const int64_t begun_ns = lin_now_ns();
    double last = begun;
    for (int i = 0; i < 100000; i++) {
        const double now = lin_now();
        test_require(now >= last, "%.9f after %.9f", now, last);
        last = now;
    }
    usleep(20000);
    const int64_t passed_ns = lin_now_ns() - begun_ns;
    const double passed = lin_now() - begun, worked = lin_now_cpu() - begun_cpu;
    ck_assert_double_ge(passed, 0.02);
    ck_assert_double_ge(passed, 1e-9 * (double)passed_ns); // the outer interval
    ck_assert_int_ge(passed_ns, 20000000);
    ck_assert_double_gt(worked, 0);
    ck_assert_double_le(worked, passed - 0.019); // asleep, it does not work
}
END_TEST

static int threads_now(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *e; tasks && (e = readdir(tasks));) n += e->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return n;
}

START_TEST(cores_are_counted)
{
    lin_pool *pool;
    const int threads = threads_now(), n = lin_cores();
    ck_assert_int_ge(n, 1);
    ck_assert_int_eq(lin_cores_up_to(1), 1);
    ck_assert_int_eq(lin_cores_up_to(n + 1), n);
    ck_assert_int_eq(threads_now(), threads);
    ck_assert_int_eq(lin_pool_create(0, &pool, NULL), LIN_OK);
    ck_assert_int_eq(lin_pool_threads(pool), n);
    lin_pool_destroy(pool);
    for (int i = 1; i < n; i++) ck_assert_int_gt(lin_core_number(i), lin_core_number(i - 1));
    ck_assert_int_eq(lin_core_number(n), 0);
}
END_TEST

START_TEST(a_pinned_thread_has_one_core)
{
    const int last = lin_core_number(lin_cores() - 1);
    lin_core_pin(lin_cores() - 1);
    ck_assert_int_eq(lin_cores(), 1);
    ck_assert_int_eq(lin_core_number(0), last);
}
END_TEST

START_TEST(own_path)
{
    char path[PATH_MAX], two[2] = "x";
    ck_assert_int_eq(lin_system_program(path, sizeof path), 1);
    HAS(path, "/tests/base/test_system");
    ck_assert_int_eq(path[0], '/');
    ck_assert_int_eq(lin_system_program(two, sizeof two), 0);
    ck_assert_str_eq(two, "");
    char library[PATH_MAX];
    ck_assert_int_eq(lin_system_library(library, sizeof library), 1);
    ck_assert_str_eq(library, path); // linked into the program
    ck_assert_int_eq(lin_system_library(two, sizeof two), 0);
    ck_assert_str_eq(two, "");
}
END_TEST

START_TEST(a_pipe_is_not_inherited)
{
    int ends[2];
    char byte = 0;
    close(STDIN_FILENO); // its number is not one of the ends
    ck_assert_int_eq(lin_system_pipe(ends), 0);
    ck_assert_int_gt(ends[0], 2);
    ck_assert_int_eq(fcntl(ends[0], F_GETFD) & fcntl(ends[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq((int)write(ends[1], "x", 1), 1);
    ck_assert_int_eq((int)read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void *post_twice(void *event)
{
    lin_event_post(event);
    lin_event_post(event);
    return NULL;
}

START_TEST(an_event_ends_a_wait)
{
    lin_event event;
    pthread_t thread;
    lin_event_init(&event);
    int64_t begun = lin_now_ns();
    ck_assert_int_eq(lin_event_wait_until(&event, begun + 20000000), 1);
    ck_assert_int_ge(lin_now_ns() - begun, 20000000);
    ck_assert_int_eq(pthread_create(&thread, NULL, post_twice, &event), 0);
    pthread_join(thread, NULL);
    begun = lin_now_ns();
    ck_assert_int_eq(lin_event_wait_until(&event, begun + 60000000000), 1);
    ck_assert_int_lt(lin_now_ns() - begun, 30000000000);
    begun = lin_now_ns(); // both posts were cleared
    lin_event_wait_until(&event, begun + 20000000);
    ck_assert_int_ge(lin_now_ns() - begun, 20000000);
    lin_event_destroy(&event);
}
END_TEST

START_TEST(a_condition_waits_until)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    lin_condition_init(&condition);
    pthread_mutex_lock(&lock);
    const int64_t begun = lin_now_ns();
    int status;
    while ((status = lin_condition_wait_until(&condition, &lock, begun + 20000000)) == 0) continue;
    ck_assert_int_eq(status, ETIMEDOUT);
    ck_assert_int_ge(lin_now_ns() - begun, 20000000);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&condition);
}
END_TEST

START_TEST(delays_are_counted)
{
    static lin_lags l, others;
    ck_assert_double_eq(lin_lags_quantile(&l, 0.5), 0);
    for (int i = 100; i >= 1; i--) lin_lags_add(i % 2 ? &l : &others, i * 0.01);
    lin_lags_merge(&l, &others);
    static const double shares[] = {0.01, 0.5, 0.95, 0.99, 1};
    for (int i = 0; i < 5; i++) { // no less, and at most 2.2 % more
        const double q = lin_lags_quantile(&l, shares[i]);
        test_require(q >= shares[i] && q < 1.022 * shares[i], "%g of all are up to %g s", shares[i], q);
    }
    ck_assert_double_eq(lin_lags_quantile(&l, 1), 1);
    lin_lags_add(&l, -1);
    lin_lags_add(&l, 1e9);
    ck_assert_int_eq((int)l.n, 102);
    ck_assert_double_eq(lin_lags_quantile(&l, 1), 1e9);
    ck_assert_double_lt(lin_lags_quantile(&l, 0), 2e-6);
}
END_TEST

TEST_MAIN("system", TEST(time_passes), TEST(cores_are_counted), TEST(a_pinned_thread_has_one_core), TEST(own_path),
          TEST(a_pipe_is_not_inherited), TEST(an_event_ends_a_wait), TEST(a_condition_waits_until),
          TEST(delays_are_counted))
