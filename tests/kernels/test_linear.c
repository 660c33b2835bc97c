// The CPU's matrix product: kernels/cpu/linear*.c against naive sums in double, for every instruction set of this machine.
#include "tests/kernels/linear_cases.h"

// Forces instruction set i; 0 if this machine lacks it.
static int choose(int i)
{
    ops = lin_ops_cpu();
    return choose_isa(i);
}

static float rounded_operand(float x) { return x; }

static float *pack(lin_exec *exec, const float *w, int n, int k, int transposed)
{
    int outputs = transposed ? k : n, inputs = transposed ? n : k;
    float *packed = test_buffer(ops->weight_size(outputs, inputs), sizeof *packed);
    ops->weights_pack(exec, packed, w, &(lin_packing){.n = n, .k = k, .transposed = transposed}, 1);
    test_guards(packed, "weights_pack");
    for (size_t i = 0; i < ops->weight_size(outputs, inputs); i++) {
        if (isnan(packed[i])) ck_abort_msg("packing left element %zu of %d x %d", i, n, k);
    }
    return packed;
}

START_TEST(forward_equals_double_sums)
{
    if (choose(_i)) check_forward(lin_cpu_isa());
}
END_TEST

START_TEST(bits_do_not_depend_on_rows_or_threads)
{
    if (choose(_i)) check_bits();
}
END_TEST

START_TEST(backward_weight_adds_double_sums)
{
    if (choose(_i)) check_weight_gradient(lin_cpu_isa(), shapes, N_SHAPES);
}
END_TEST

START_TEST(packing_is_the_same_with_threads)
{
    if (!choose(_i)) return;
    lin_exec *one = exec_of(1), *three = exec_of(3);
    for (int n = 1; n < 900; n = n * 2 + 13) {
        for (int transposed = 0; transposed < 2; transposed++) {
            float *w = random_matrix(n, 333, (uint64_t)n);
            float *a = pack(one, w, n, 333, transposed), *b = pack(three, w, n, 333, transposed);
            test_same_f32("packed", a, b, transposed ? ops->weight_size(333, n) : ops->weight_size(n, 333));
            TEST_FREE(w, a, b);
        }
    }
    ops->exec_destroy(one);
    ops->exec_destroy(three);
}
END_TEST

// Every way in which output columns can be cut into panels, with every kind of block; in both directions of packing.
START_TEST(every_width)
{
    if (!choose(_i)) return;
    enum { WIDEST = 150, K = 5, ROWS = 11 };
    lin_exec *exec = exec_of(1);
    float *x = random_matrix(ROWS, K, 50), *w = random_matrix(WIDEST, WIDEST, 51), *y = test_buffer(ROWS * WIDEST, sizeof *y);
    for (int n = 1; n <= WIDEST; n++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            float *packed = transposed ? pack(exec, w, K, n, 1) : pack(exec, w, n, K, 0);
            for (int rows = 1; rows <= ROWS; rows++) {
                const shape s = {rows, n, K};
                double *want = naive(x, w, NULL, s, transposed, LIN_LINEAR);
                ops->linear_forward(exec, y, x, packed, NULL, rows, n, K, LIN_LINEAR);
                test_close_f32(lin_cpu_isa(), y, want, size_of(rows, n), 2e-6);
                test_buffer_free(want);
            }
            test_buffer_free(packed);
        }
    }
    TEST_FREE(x, w, y);
    ops->exec_destroy(exec);
}
END_TEST

START_TEST(nan_is_not_hidden)
{
    const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    if (choose(_i)) check_not_numbers(lin_cpu_isa(), odd, 4, 2);
}
END_TEST

START_TEST(instruction_sets_by_name)
{
    OK(lin_cpu_select("portable", &err));
    ck_assert_str_eq(lin_cpu_isa(), "portable");
    FAILS(lin_cpu_select("sse9", &err), LIN_INVALID, "unknown instruction set \"sse9\"; use avx512, avx2 or portable");
    ck_assert_str_eq(lin_cpu_isa(), "portable"); // unchanged
    OK(lin_cpu_select(NULL, &err));
    setenv("LINNET_ISA", "sse9", 1);
    lin_exec *exec;
    FAILS(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, &err), LIN_INVALID,
          "environment variable LINNET_ISA: unknown instruction set \"sse9\"; use avx512, avx2 or portable");
    unsetenv("LINNET_ISA");
}
END_TEST

START_TEST(devices_by_name)
{
    const lin_ops *found;
    static const char *const good[] = {"cpu", "auto"}, *const gpu[] = {"cuda", "cuda:0", "cuda:99999999999999999999"},
                             *const bad[] = {"", "CPU", "cuda:", "cuda:x", "cuda1", "cuda:1x", "cuda:-1", "gpu"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        OK(lin_backend_open(good[i], LIN_PRECISION_FP32, &found, &err));
        ck_assert_ptr_eq(found, lin_ops_cpu());
    }
    for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
        FAILS(lin_backend_open(gpu[i], LIN_PRECISION_FP32, &found, &err), LIN_UNSUPPORTED, lin_device_why_none(NULL, NULL));
        ck_assert_ptr_null(found);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(lin_backend_open(bad[i], LIN_PRECISION_FP32, &found, &err), LIN_INVALID, "auto, cpu, cuda or cuda:n");
    }
}
END_TEST

TEST_MAIN("linear", TESTS(forward_equals_double_sums, 0, 3), TESTS(bits_do_not_depend_on_rows_or_threads, 0, 3),
          TESTS(backward_weight_adds_double_sums, 0, 3), TESTS(packing_is_the_same_with_threads, 0, 3), TESTS(every_width, 0, 3),
          TESTS(nan_is_not_hidden, 0, 3), TEST(instruction_sets_by_name), TEST(devices_by_name))
