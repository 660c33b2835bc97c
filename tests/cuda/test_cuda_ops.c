// [cuda] Every operation of the CUDA backend against ref/, in each precision. LINNET_TEST_CASE names one case of ops_cases.h to
// run alone, LINNET_TEST_QUICK=1 selects small shapes on a GPU too.
#include "tests/cuda/device.h"
#include "tests/kernels/ops_cases.h"

static void run(lin_precision precision, double tolerance, const char *only)
{
    const char *asked = getenv("LINNET_TEST_CASE");
    if (asked && *asked && strcmp(asked, only) != 0) return;
    ops_options options = {.n_threads = 1, .tolerance = tolerance, .only = only};
#ifdef LIN_ON_GPU
    printf("# %s\n", only); // check-gpu.sh prints which test it was
    fflush(stdout);
    const char *quick = getenv("LINNET_TEST_QUICK");
    options.quick = quick && strcmp(quick, "1") == 0;
#else
    options.quick = 1;
#endif
    // Twice: kernels have a second, faster form for operands aligned to 16 bytes.
    for (options.aligned = 0; options.aligned < 2; options.aligned++) {
        test_device_memory();
        const int n = ops_run_cases(test_device(precision), &options, NULL);
        test_device_memory_end();
        ck_assert_int_gt(n, 0);
    }
}

START_TEST(test_fp32) { run(LIN_PRECISION_FP32, 1, ops_case_name(_i)); }
END_TEST

// The cases whose sums run over rounded operands. tf32 keeps 10 bits of mantissa, bf16 7.
static const char *const products[] = {"linear",         "linear_model_shapes", "linear_rows",      "weights_pack", "attention",
                                       "attention_long", "attention_wide",      "attention_extremes", "attention_splits", "lstm",
                                       "lstm_splits",    "softmax",             "softmax_long",       "softmax_splits",
                                       "feedforward", "attention_block", "lsh"};
enum { N_PRODUCTS = sizeof products / sizeof *products };

START_TEST(test_tf32) { run(LIN_PRECISION_TF32, 1000, products[_i]); }
END_TEST

START_TEST(test_bf16) { run(LIN_PRECISION_BF16, 8000, products[_i]); }
END_TEST

// Gradients of weights in slices of few rows, and rows that are left.
static const char *const sliced[] = {"linear", "feedforward", "attention_block", "lsh"};
enum { N_SLICED = sizeof sliced / sizeof *sliced };

START_TEST(test_slices)
{
    setenv("LINNET_CUDA_SLICE_ROWS", "3", 1);
    run(LIN_PRECISION_FP32, 1, sliced[_i]);
    run(LIN_PRECISION_BF16, 8000, sliced[_i]);
    unsetenv("LINNET_CUDA_SLICE_ROWS");
}
END_TEST

// A launch for each utterance.
static const char *const launched[] = {"denominator", "ctc"};

START_TEST(test_launches)
{
    setenv("LINNET_CUDA_SCRATCH", "1", 1);
    run(LIN_PRECISION_FP32, 1, launched[_i]);
    unsetenv("LINNET_CUDA_SCRATCH");
}
END_TEST

#ifndef LIN_ON_GPU
// KiB of shared memory that a block may request: compute capability 8.6 and 12.0, 8.0; less than any. With less, fewer groups of
// warps share a block, and heads have no tiles: wide ones with 99, all with 48 (without a causal mask only wide ones with 48).
// The other cases have the 227 of 9.0 and 10.0.
static const struct {
    long shared;
    const char *name;
} in_shared[] = {
    {99, "attention"},  {99, "attention_long"},  {99, "attention_wide"},  {99, "softmax"}, {99, "lsh"},
    {99, "mapped"},     {99, "lstm"},            {163, "attention_long"}, {48, "attention"}, {48, "attention_wide"},
    {163, "attention"}, {163, "attention_wide"},
};
enum { N_IN_SHARED = sizeof in_shared / sizeof *in_shared };

START_TEST(test_shared)
{
    emulation_set(EMULATION_SHARED, in_shared[_i].shared);
    run(LIN_PRECISION_FP32, 1, in_shared[_i].name);
}
END_TEST
#endif

int main(void)
{
    const test_entry tests[] = {
        TESTS(test_fp32, 0, ops_case_count()),
        TESTS(test_tf32, 0, TEST_ASAN ? 0 : N_PRODUCTS), // bf16 takes the same way
        TESTS(test_bf16, 0, N_PRODUCTS),
        TESTS(test_slices, 0, N_SLICED),
        TESTS(test_launches, 0, 2),
#ifndef LIN_ON_GPU
        TESTS(test_shared, 0, TEST_ASAN ? N_IN_SHARED - 2 : N_IN_SHARED),
#endif
    };
    return test_all("cuda_ops", NULL, NULL, NULL, NULL, tests, sizeof tests / sizeof *tests);
}
