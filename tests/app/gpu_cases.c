// gpu_cases.c - a tool for test_check_gpu.sh: a test program whose cases open the GPU, pass, fail, crash and hang.
#include <signal.h>
#include <unistd.h>

#include "kernels/ops.h"
#include "tests/support.h"

// Each iteration must run in its own process: a CUDA context that an earlier one leaves does not survive a fork.
START_TEST(opens)
{
    lin_error err = {0};
    const lin_ops *ops = NULL;
    lin_exec *exec = NULL;
    ck_assert_msg(lin_backend_open("cuda", LIN_PRECISION_FP32, &ops, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(ops->exec_create(ops, 0, &exec, &err) == LIN_OK, "%s", err.message);
    ops->exec_destroy(exec);
}
END_TEST

START_TEST(fails) { ck_assert_msg(_i != 1, "number %d differs", _i); }
END_TEST

START_TEST(crashes) { raise(SIGSEGV); }
END_TEST

START_TEST(hangs)
{
    printf("# endless kernel\n");
    fflush(stdout);
    for (;;) pause();
}
END_TEST

START_TEST(passes) { ck_assert_int_eq(1, 1); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("pretended");
    TCase *cases = tcase_create("cases"), *endless = tcase_create("endless"), *after = tcase_create("after");
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, opens, 0, 2);
    tcase_add_loop_test(cases, fails, 0, 3);
    tcase_add_test(cases, crashes);
    suite_add_tcase(suite, cases);
    tcase_set_timeout(endless, 10);
    tcase_add_test(endless, hangs);
    suite_add_tcase(suite, endless);
    tcase_set_timeout(after, 240);
    tcase_add_test(after, passes);
    suite_add_tcase(suite, after);
    return test_run(suite);
}
