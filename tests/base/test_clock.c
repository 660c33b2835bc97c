// The clocks, and the cores that this process may use.
#include "base/clock.h"
#include "base/cores.h"
#include "base/pool.h"

#include <dirent.h>

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

TEST_MAIN("clock", TEST(time_passes), TEST(cores_are_counted), TEST(a_pinned_thread_has_one_core))
