// The program's network and optimisers, float on the CPU's kernels, against PyTorch in double (golden.h, golden_training.h).
#include "tests/train/golden_training.h"

START_TEST(small_case) { golden_check_case(golden_names[_i], lin_ops_cpu(), 1e-4); }
END_TEST

START_TEST(drawn_tokens) { golden_check_drawn(golden_names[_i], lin_ops_cpu(), 1e-4); }
END_TEST

START_TEST(default_network) { golden_check_default(lin_ops_cpu(), 1e-4); }
END_TEST

START_TEST(training_trace) { golden_check_traces(golden_models[_i], lin_ops_cpu(), 1e-4); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("model/golden");
    TCase *tests = tcase_create("golden");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, small_case, 0, GOLDEN_CASES);
    tcase_add_loop_test(tests, drawn_tokens, GOLDEN_TOKENS, GOLDEN_CASES);
    tcase_add_test(tests, default_network);
    tcase_add_loop_test(tests, training_trace, 0, sizeof golden_models / sizeof *golden_models);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
