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

TEST_MAIN("model/golden", TESTS(small_case, 0, GOLDEN_CASES), TESTS(drawn_tokens, GOLDEN_TOKENS, GOLDEN_CASES),
          TEST(default_network), TESTS(training_trace, 0, sizeof golden_models / sizeof *golden_models))
