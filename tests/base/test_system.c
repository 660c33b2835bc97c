// base/system.c: the program's own path, pipes that a started program does not inherit, waits that end at a time or by an event.
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support.h"

START_TEST(own_path)
{
    char path[PATH_MAX], two[2] = "x";
    ck_assert_int_eq(lin_system_program(path, sizeof path), 1);
    ck_assert_ptr_nonnull(strstr(path, "/tests/base/test_system"));
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
    ck_assert_int_eq(lin_system_pipe(ends), 0);
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

TEST_MAIN("system", TEST(own_path), TEST(a_pipe_is_not_inherited), TEST(an_event_ends_a_wait), TEST(a_condition_waits_until))
