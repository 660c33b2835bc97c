// [slow release] The CPU backend through the cases of ops_cases.h: each instruction set of this machine against ref/, and the
// same bits for any number of threads.
#include "base/memory.h"
#include "tests/kernels/kernel_support.h"
#include "tests/kernels/ops_cases.h"

static const ops_options plain = {.n_threads = 1, .tolerance = 1, .bit_exact = 1};

START_TEST(against_ref)
{
    if (!choose_isa(_i)) return;
    ops_digest one[OPS_MAX_CASES], several[OPS_MAX_CASES];
    ops_options options = plain;
    options.n_threads = TEST_ASAN ? 3 : 1;
    options.quick = TEST_ASAN && _i == 0; // portable code is slow there
    int n = ops_run_cases(lin_ops_cpu(), &options, one);
    if (TEST_ASAN) return;
    options.n_threads = 3;
    options.digest_only = 1;
    ck_assert_int_eq(ops_run_cases(lin_ops_cpu(), &options, several), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(one[i].value == several[i].value, "%s, %s: three threads give other bits than one", lin_cpu_isa(),
                      one[i].name);
}
END_TEST

// The operations of a stream allocate nothing after the executor is created: as many allocations as without any case.
START_TEST(nothing_is_allocated)
{
    const char *const streaming[] = {"linear_rows", "layer_norm_rows", "block_end", "conv_splits", "attention_splits", "carry",
                                     "greedy", "stack_frames", "decayed_splits", "sinusoid_splits", "embed",
#ifndef LIN_NO_PAPER
                                     "lstm_alone", "lstm_splits", "mapped_splits"
#endif
    };
    ops_options options = plain;
    options.n_threads = 2;
    options.only = "none";
    unsigned long live = lin_memory_live(), before = lin_memory_count();
    ck_assert_int_eq(ops_run_cases(lin_ops_cpu(), &options, NULL), 0);
    unsigned long executors = lin_memory_count() - before;
    for (size_t i = 0; i < sizeof streaming / sizeof *streaming; i++) {
        options.only = streaming[i];
        before = lin_memory_count();
        ck_assert_int_eq(ops_run_cases(lin_ops_cpu(), &options, NULL), 1);
        ck_assert_msg(lin_memory_count() - before == executors, "%s allocates", streaming[i]);
    }
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

// The cases as a GPU runs them: aligned operands, loose comparisons, fewer shapes. As many cases as with all shapes.
START_TEST(other_options)
{
    ops_options options = {.n_threads = 2, .tolerance = 3, .aligned = 1};
    ops_digest digests[OPS_MAX_CASES];
    options.quick = 1;
    ck_assert_int_eq(ops_run_cases(lin_ops_cpu(), &options, digests), ops_case_count());
}
END_TEST

START_TEST(executor_without_memory)
{
    const lin_ops *ops = lin_ops_cpu();
    lin_exec *exec = NULL;
    for (int threads = 1; threads <= 3; threads++)
        FAIL_EVERY_ALLOCATION_OF(exec, ops->exec_create(ops, threads, &exec, NULL), ops->exec_destroy(exec));
    ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), -1, &exec, NULL), LIN_INVALID);
    lin_ops_cpu()->exec_destroy(NULL);
}
END_TEST

TEST_MAIN("ops_parity", TESTS(against_ref, 0, N_ISAS), TEST(nothing_is_allocated), TEST(other_options),
          TEST(executor_without_memory))
