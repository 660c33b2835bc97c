// The CPU's matrix product: kernels/cpu/linear*.c against naive sums in double, for every instruction set of this machine.
#include "base/memory.h"
#include "kernels/ops.h"
#include "tests/support.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};

typedef struct shape {
    int rows, n, k;
} shape;

// One, odd, one more and one less than each block: 4 or 8 rows, 16, 32, 48 and 64 columns, 256 rows summed at once.
static const shape shapes[] = {
    {1, 1, 1},     {1, 40, 192},  {2, 3, 5},     {3, 15, 7},     {4, 16, 9},    {5, 17, 1},    {6, 31, 33},   {7, 32, 2},
    {8, 33, 64},   {9, 47, 65},   {10, 48, 31},  {11, 49, 3},    {12, 63, 16},  {13, 64, 17},  {1, 65, 20},   {2, 79, 21},
    {17, 80, 4},   {3, 96, 97},   {1, 112, 6},   {2, 113, 6},    {1, 144, 5},   {1, 176, 19},  {1, 191, 8},   {1, 192, 10},
    {1, 193, 11},  {2, 192, 12},  {2, 193, 13},  {2, 209, 13},   {1, 400, 14},  {2, 400, 15},  {255, 9, 50},  {256, 8, 48},
    {257, 10, 49}, {513, 40, 97}, {70, 193, 192}, {600, 5, 1},   {131, 200, 390}, {33, 576, 192}, {64, 192, 640}, {0, 8, 8},
    {801, 97, 129},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const lin_ops *ops;

// Forces instruction set i; 0 if this machine lacks it.
static int choose(int i)
{
    lin_error err = {0};
    ops = lin_ops_cpu();
    lin_status status = lin_cpu_select(isas[i], &err);
    ck_assert_msg(status == LIN_OK || status == LIN_UNSUPPORTED, "%s", err.message);
    if (status == LIN_OK) ck_assert_str_eq(lin_cpu_isa(), isas[i]);
    return status == LIN_OK;
}

static lin_exec *exec_of(int threads)
{
    lin_exec *exec;
    lin_error err = {0};
    ck_assert_msg(ops->exec_create(ops, threads, &exec, &err) == LIN_OK, "%s", err.message);
    return exec;
}

static size_t size_of(int a, int b) { return (size_t)a * (size_t)b; }

// One element off the 64-byte line: only packed weights are required to be aligned.
static float *random_matrix(int a, int b, uint64_t key)
{
    float *x = test_buffer_shifted(size_of(a, b), sizeof *x, 1);
    test_fill_f32(x, size_of(a, b), key, -1, 1);
    return x;
}

// y [rows, n] = x [rows, k] wᵀ + bias, every sum in double. With transposed, w is [k, n].
static double *naive(const float *x, const float *w, const float *bias, shape s, int transposed, lin_activation act)
{
    double *y = test_buffer(size_of(s.rows, s.n), sizeof *y);
    for (int r = 0; r < s.rows; r++) {
        for (int i = 0; i < s.n; i++) {
            double sum = 0;
            for (int t = 0; t < s.k; t++) {
                sum += (double)x[size_of(r, s.k) + (size_t)t] *
                       (double)w[transposed ? size_of(t, s.n) + (size_t)i : size_of(i, s.k) + (size_t)t];
            }
            if (bias) sum += (double)bias[i];
            y[size_of(r, s.n) + (size_t)i] = act == LIN_RELU && sum < 0 ? 0 : sum;
        }
    }
    return y;
}

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
    if (!choose(_i)) return;
    lin_exec *exec = exec_of(2);
    for (int i = 0; i < N_SHAPES; i++) {
        for (int variant = 0; variant < 8; variant++) {
            const int transposed = variant & 1, biased = variant >> 1 & 1;
            const lin_activation act = variant & 4 ? LIN_RELU : LIN_LINEAR;
            const shape s = shapes[i];
            uint64_t key = lin_random_key(1, (uint64_t)(i * 8 + variant));
            float *x = random_matrix(s.rows, s.k, key), *w = random_matrix(s.n, s.k, key + 1);
            float *bias = random_matrix(1, s.n, key + 2);
            // w [k, n] packed transposed serves dx [rows, n] = dy [rows, k] w.
            float *packed = transposed ? pack(exec, w, s.k, s.n, 1) : pack(exec, w, s.n, s.k, 0);
            float *y = test_buffer_shifted(size_of(s.rows, s.n), sizeof *y, 1);
            ops->linear_forward(exec, y, x, packed, biased ? bias : NULL, s.rows, s.n, s.k, act);
            char what[100];
            snprintf(what, sizeof what, "%s forward %d x %d x %d variant %d", isas[_i], s.rows, s.n, s.k, variant);
            test_guards(y, what);
            double *want = naive(x, w, biased ? bias : NULL, s, transposed, act);
            test_close_f32(what, y, want, size_of(s.rows, s.n), 2e-6);
            float *all[] = {x, w, bias, packed, y};
            for (size_t j = 0; j < sizeof all / sizeof *all; j++) test_buffer_free(all[j]);
            test_buffer_free(want);
        }
    }
    ops->exec_destroy(exec);
}
END_TEST

// The contract of streaming: row r of a batch has the same bits as alone, for any number of threads.
START_TEST(bits_do_not_depend_on_rows_or_threads)
{
    if (!choose(_i)) return;
    static const shape wide[] = {{300, 192, 192}, {130, 40, 64}, {40, 193, 33}, {201, 400, 100}, {25, 17, 5}, {50, 64, 300}};
    lin_exec *execs[] = {exec_of(1), exec_of(2), exec_of(3)};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        const shape s = wide[i];
        float *x = random_matrix(s.rows, s.k, 10 + i), *w = random_matrix(s.n, s.k, 20 + i),
              *bias = random_matrix(1, s.n, 30 + i);
        float *packed = pack(execs[0], w, s.n, s.k, 0);
        float *whole = test_buffer(size_of(s.rows, s.n), sizeof *whole), *part = test_buffer(size_of(s.rows, s.n), sizeof *part);
        ops->linear_forward(execs[0], whole, x, packed, bias, s.rows, s.n, s.k, LIN_RELU);
        for (int t = 1; t < 3; t++) {
            test_poison(part, size_of(s.rows, s.n) * sizeof *part);
            ops->linear_forward(execs[t], part, x, packed, bias, s.rows, s.n, s.k, LIN_RELU);
            test_same_f32("other thread count", part, whole, size_of(s.rows, s.n));
        }
        float state[1000], *const states[] = {NULL, state, NULL, state + 500};
        for (size_t count = 0; count <= 500; count += 125) {
            test_poison(part, size_of(s.rows, s.n) * sizeof *part);
            ops->expect_states(execs[0], states, 4, 100 - count / 5, count);
            ops->linear_forward(execs[0], part, x, packed, bias, s.rows, s.n, s.k, LIN_RELU);
            test_same_f32("with expected states", part, whole, size_of(s.rows, s.n));
        }
        ops->expect_states(execs[0], NULL, 0, 0, 0);
        for (int step = 1; step <= 20 && step <= s.rows; step++) {
            test_poison(part, size_of(s.rows, s.n) * sizeof *part);
            for (int r = 0; r < s.rows; r += step) {
                int rows = s.rows - r < step ? s.rows - r : step;
                ops->linear_forward(execs[step % 3], part + size_of(r, s.n), x + size_of(r, s.k), packed, bias, rows, s.n, s.k,
                                    LIN_RELU);
            }
            test_same_f32("other number of rows", part, whole, size_of(s.rows, s.n));
        }
        float *all[] = {x, w, bias, packed, whole, part};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) test_buffer_free(all[j]);
    }
    for (int t = 0; t < 3; t++) ops->exec_destroy(execs[t]);
}
END_TEST

#if defined(__x86_64__)
// One fused multiply-add after the other, from +0, the bias last: the exact bits, if the instruction set has a fused form.
START_TEST(sum_runs_in_order)
{
    if (_i == 0 || !choose(_i)) return;
    const shape s = {21, 83, 257};
    lin_exec *exec = exec_of(2);
    float *x = random_matrix(s.rows, s.k, 40), *w = random_matrix(s.n, s.k, 41), *bias = random_matrix(1, s.n, 42);
    float *packed = pack(exec, w, s.n, s.k, 0), *y = test_buffer(size_of(s.rows, s.n), sizeof *y);
    float *want = test_buffer(size_of(s.rows, s.n), sizeof *want);
    ops->linear_forward(exec, y, x, packed, bias, s.rows, s.n, s.k, LIN_LINEAR);
    for (int r = 0; r < s.rows; r++) {
        for (int i = 0; i < s.n; i++) {
            float sum = 0;
            for (int t = 0; t < s.k; t++) sum = fmaf(x[size_of(r, s.k) + (size_t)t], w[size_of(i, s.k) + (size_t)t], sum);
            want[size_of(r, s.n) + (size_t)i] = sum + bias[i];
        }
    }
    test_same_f32("ordered sums", y, want, size_of(s.rows, s.n));
    float *all[] = {x, w, bias, packed, y, want};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) test_buffer_free(all[j]);
    ops->exec_destroy(exec);
}
END_TEST
#endif

START_TEST(backward_weight_adds_double_sums)
{
    if (!choose(_i)) return;
    lin_exec *execs[] = {exec_of(1), exec_of(2), exec_of(3)};
    for (int i = 0; i < N_SHAPES; i++) {
        const shape s = shapes[i];
        float *x = random_matrix(s.rows, s.k, 100 + (uint64_t)i), *dy = random_matrix(s.rows, s.n, 200 + (uint64_t)i);
        float *start = random_matrix(s.n, s.k, 300 + (uint64_t)i), *db_start = random_matrix(1, s.n, 400 + (uint64_t)i);
        float *first = test_buffer(size_of(s.n, s.k), sizeof *first), *db_first = test_buffer((size_t)s.n, sizeof *db_first);
        double *want = test_buffer(size_of(s.n, s.k), sizeof *want), *db_want = test_buffer((size_t)s.n, sizeof *db_want);
        for (int a = 0; a < s.n; a++) {
            db_want[a] = (double)db_start[a];
            for (int r = 0; r < s.rows; r++) db_want[a] += (double)dy[size_of(r, s.n) + (size_t)a];
            for (int b = 0; b < s.k; b++) {
                double sum = (double)start[size_of(a, s.k) + (size_t)b];
                for (int r = 0; r < s.rows; r++) {
                    sum += (double)dy[size_of(r, s.n) + (size_t)a] * (double)x[size_of(r, s.k) + (size_t)b];
                }
                want[size_of(a, s.k) + (size_t)b] = sum;
            }
        }
        for (int t = 0; t < 3; t++) {
            float *dw = test_buffer_shifted(size_of(s.n, s.k), sizeof *dw, 1);
            float *db = test_buffer_shifted((size_t)s.n, sizeof *db, 1);
            memcpy(dw, start, size_of(s.n, s.k) * sizeof *dw);
            memcpy(db, db_start, (size_t)s.n * sizeof *db);
            ops->linear_backward_weight(execs[t], dw, t == 2 ? NULL : db, dy, x, s.rows, s.n, s.k);
            char what[100];
            snprintf(what, sizeof what, "%s backward %d x %d x %d, %d threads", isas[_i], s.rows, s.n, s.k, t + 1);
            test_guards(dw, what);
            test_guards(db, what);
            test_close_f32(what, dw, want, size_of(s.n, s.k), 4e-6);
            if (t == 2) {
                test_same_f32("db = NULL", db, db_start, (size_t)s.n);
            } else {
                test_close_f32(what, db, db_want, (size_t)s.n, 4e-6);
            }
            if (t == 0) {
                memcpy(first, dw, size_of(s.n, s.k) * sizeof *dw);
                memcpy(db_first, db, (size_t)s.n * sizeof *db);
            } else {
                test_same_f32(what, dw, first, size_of(s.n, s.k));
                if (t == 1) test_same_f32(what, db, db_first, (size_t)s.n);
            }
            test_buffer_free(dw);
            test_buffer_free(db);
        }
        void *all[] = {x, dy, start, db_start, first, db_first, want, db_want};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) test_buffer_free(all[j]);
    }
    for (int t = 0; t < 3; t++) ops->exec_destroy(execs[t]);
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
            test_buffer_free(w);
            test_buffer_free(a);
            test_buffer_free(b);
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
                test_close_f32(isas[_i], y, want, size_of(rows, n), 2e-6);
                test_buffer_free(want);
            }
            test_buffer_free(packed);
        }
    }
    test_buffer_free(x);
    test_buffer_free(w);
    test_buffer_free(y);
    ops->exec_destroy(exec);
}
END_TEST

// A NaN or an infinity in one row appears in that row only, also after ReLU.
START_TEST(nan_is_not_hidden)
{
    if (!choose(_i)) return;
    const shape s = {20, 50, 30};
    lin_exec *exec = exec_of(1);
    float *x = random_matrix(s.rows, s.k, 60), *w = random_matrix(s.n, s.k, 61), *packed = pack(exec, w, s.n, s.k, 0);
    float *y = test_buffer(size_of(s.rows, s.n), sizeof *y);
    x[size_of(7, s.k) + 3] = NAN;
    ops->linear_forward(exec, y, x, packed, NULL, s.rows, s.n, s.k, LIN_RELU);
    for (int r = 0; r < s.rows; r++) {
        for (int i = 0; i < s.n; i++) ck_assert_int_eq(isnan(y[size_of(r, s.n) + (size_t)i]) != 0, r == 7);
    }
    float *all[] = {x, w, packed, y};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) test_buffer_free(all[j]);
    ops->exec_destroy(exec);
}
END_TEST

START_TEST(instruction_sets_by_name)
{
    lin_error err = {0};
    ck_assert_int_eq(lin_cpu_select("portable", &err), LIN_OK);
    ck_assert_str_eq(lin_cpu_isa(), "portable");
    ck_assert_int_eq(lin_cpu_select("sse9", &err), LIN_INVALID);
    ck_assert_str_eq(err.message, "unknown instruction set \"sse9\"; use avx512, avx2 or portable");
    ck_assert_str_eq(lin_cpu_isa(), "portable"); // unchanged
    ck_assert_int_eq(lin_cpu_select(NULL, &err), LIN_OK);
    setenv("LINNET_ISA", "sse9", 1);
    lin_exec *exec;
    ck_assert_int_eq(lin_ops_cpu()->exec_create(lin_ops_cpu(), 1, &exec, &err), LIN_INVALID);
    ck_assert_str_eq(err.message,
                     "environment variable LINNET_ISA: unknown instruction set \"sse9\"; use avx512, avx2 or portable");
    unsetenv("LINNET_ISA");
}
END_TEST

START_TEST(devices_by_name)
{
    const lin_ops *found;
    lin_error err = {0};
    static const char *const good[] = {"cpu", "auto"}, *const gpu[] = {"cuda", "cuda:0", "cuda:12"},
                             *const bad[] = {"", "CPU", "cuda:", "cuda:x", "cuda1", "cuda:1x", "gpu"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_int_eq(lin_backend_open(good[i], LIN_PRECISION_FP32, &found, &err), LIN_OK);
        ck_assert_ptr_eq(found, lin_ops_cpu());
    }
    for (size_t i = 0; i < sizeof gpu / sizeof *gpu; i++) {
        ck_assert_int_eq(lin_backend_open(gpu[i], LIN_PRECISION_FP32, &found, &err), LIN_UNSUPPORTED);
        ck_assert_str_eq(err.message, lin_device_why_none(NULL, NULL));
        ck_assert_ptr_null(found);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(lin_backend_open(bad[i], LIN_PRECISION_FP32, &found, &err), LIN_INVALID);
        ck_assert(strstr(err.message, "auto, cpu, cuda or cuda:n") != NULL);
    }
}
END_TEST

START_TEST(failed_allocations_leak_nothing)
{
    ops = lin_ops_cpu();
    unsigned long live = lin_memory_live();
    for (int threads = 1; threads <= 3; threads++) {
        for (unsigned long k = 1;; k++) {
            lin_exec *exec;
            lin_error err = {0};
            lin_memory_fail_at(k);
            lin_status status = ops->exec_create(ops, threads, &exec, &err);
            lin_memory_fail_at(0);
            if (status == LIN_OK) {
                ops->exec_destroy(exec);
                break;
            }
            ck_assert_int_eq(status, LIN_NO_MEMORY);
            ck_assert_ptr_null(exec);
            ck_assert_uint_eq(lin_memory_live(), live);
        }
        ck_assert_uint_eq(lin_memory_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linear");
    TCase *tests = tcase_create("linear");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, forward_equals_double_sums, 0, 3);
    tcase_add_loop_test(tests, bits_do_not_depend_on_rows_or_threads, 0, 3);
#if defined(__x86_64__)
    tcase_add_loop_test(tests, sum_runs_in_order, 0, 3);
#endif
    tcase_add_loop_test(tests, backward_weight_adds_double_sums, 0, 3);
    tcase_add_loop_test(tests, packing_is_the_same_with_threads, 0, 3);
    tcase_add_loop_test(tests, every_width, 0, 3);
    tcase_add_loop_test(tests, nan_is_not_hidden, 0, 3);
    tcase_add_test(tests, instruction_sets_by_name);
    tcase_add_test(tests, devices_by_name);
    tcase_add_test(tests, failed_allocations_leak_nothing);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
