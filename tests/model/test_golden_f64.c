// The network in double on the reference against PyTorch in double: any difference is one of mathematics, not of rounding.
#define LIN_REAL_DOUBLE
#include "model/network.c"
#include "model/pooling.c"
#include "model/transformer.c"
#ifndef LIN_NO_PAPER
#include "paper/networks.c"
#endif
#include "tests/kernels/ref/reference.h"
#include "tests/model/golden.h"

START_TEST(small_case) { golden_check_case(golden_names[_i], lin_ops_ref(), 1e-9); }
END_TEST

START_TEST(drawn_tokens) { golden_check_drawn(golden_names[_i], lin_ops_ref(), 1e-9); }
END_TEST

START_TEST(default_network) { golden_check_default(lin_ops_ref(), 1e-9); }
END_TEST

TEST_MAIN("model/golden_f64", TESTS(small_case, 0, GOLDEN_CASES), TESTS(drawn_tokens, GOLDEN_TOKENS, GOLDEN_CASES),
          TEST(default_network))
