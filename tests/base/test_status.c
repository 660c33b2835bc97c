// Errors are values: lin_fail fills them, keeps within their size, and works without one.
#include "base/status.h"
#include "tests/support.h"

START_TEST(fail_fills_and_returns)
{
    lin_error err = {0};
    ck_assert_int_eq(lin_fail(&err, LIN_IO, "cannot open %s: %s", "x.wav", "No such file or directory"), LIN_IO);
    ck_assert_int_eq(err.status, LIN_IO);
    ck_assert_str_eq(err.message, "cannot open x.wav: No such file or directory");
}
END_TEST

START_TEST(fail_without_an_error)
{
    ck_assert_int_eq(lin_fail(NULL, LIN_FORMAT, "line %d", 3), LIN_FORMAT);
}
END_TEST

START_TEST(fail_cuts_a_long_message)
{
    struct {
        lin_error err;
        char behind[8];
    } box = {0};
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lin_fail(&box.err, LIN_INVALID, "%s", text);
    ck_assert_uint_eq(strlen(box.err.message), sizeof box.err.message - 1);
    for (size_t i = 0; i < sizeof box.behind; i++) ck_assert_int_eq(box.behind[i], 0);
}
END_TEST

// Names of files may have line ends and what terminals obey.
START_TEST(messages_are_one_line)
{
    lin_error err = {0};
    lin_fail(&err, LIN_IO, "cannot open %s", "a\nb\033[31m\x7f\xC2\x9B\t\xC3\xA9\xC2");
    ck_assert_str_eq(err.message, "cannot open a?b?[31m???\t\xC3\xA9\xC2");
    lin_fail_at(&err, LIN_IO, "x\ry");
    ck_assert_str_eq(err.message, "x?y: cannot open a?b?[31m???\t\xC3\xA9\xC2");
}
END_TEST

START_TEST(fail_may_quote_the_old_message)
{
    lin_error err = {0};
    lin_fail(&err, LIN_FORMAT, "line 7: no value");
    ck_assert_int_eq(lin_fail(&err, err.status, "%s: %s", "train.conf", err.message), LIN_FORMAT);
    ck_assert_str_eq(err.message, "train.conf: line 7: no value");
}
END_TEST

START_TEST(places_go_before_the_message)
{
    lin_error err = {0}, copy = {0};
    lin_fail(&err, LIN_INVALID, "no value");
    ck_assert_int_eq(lin_fail_at(&err, LIN_FORMAT, "%s:%d", "train.conf", 7), LIN_FORMAT);
    ck_assert_str_eq(err.message, "train.conf:7: no value");
    ck_assert_int_eq(err.status, LIN_FORMAT);
    ck_assert_int_eq(lin_fail_as(&copy, &err), LIN_FORMAT);
    ck_assert_str_eq(copy.message, err.message);
    ck_assert_int_eq(copy.status, LIN_FORMAT);
    ck_assert_int_eq(lin_fail_at(NULL, LIN_IO, "x"), LIN_IO);
    ck_assert_int_eq(lin_fail_as(NULL, &err), LIN_FORMAT);
    for (int i = 0; i < 200; i++) lin_fail_at(&err, LIN_FORMAT, "%s", "a long place");
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
}
END_TEST

START_TEST(names_are_distinct)
{
    for (int a = LIN_OK; a <= LIN_STOPPED; a++) {
        ck_assert(lin_status_name((lin_status)a)[0] != '\0');
        for (int b = LIN_OK; b < a; b++) ck_assert_str_ne(lin_status_name((lin_status)a), lin_status_name((lin_status)b));
    }
    ck_assert_str_eq(lin_status_name(LIN_OK), "ok");
    ck_assert_str_eq(lin_status_name(LIN_STOPPED), "stopped");
    ck_assert_str_eq(lin_status_name((lin_status)99), "unknown");
}
END_TEST

TEST_MAIN("status", TEST(fail_fills_and_returns), TEST(fail_without_an_error), TEST(fail_cuts_a_long_message),
          TEST(messages_are_one_line), TEST(fail_may_quote_the_old_message), TEST(places_go_before_the_message),
          TEST(names_are_distinct))
