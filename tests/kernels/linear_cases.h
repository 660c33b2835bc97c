/*
 * linear_cases.h - what the tests of the CPU's matrix product share, in fp32 and in bf16: shapes, sums, and that of the bits.
 *
 * The includer defines, before its tests, `rounded_operand` and `pack`.
 */
#ifndef LIN_TESTS_KERNELS_LINEAR_CASES_H
#define LIN_TESTS_KERNELS_LINEAR_CASES_H

#include "base/memory.h"
#include "tests/kernels/kernel_support.h"

static const lin_ops *ops;

static float rounded_operand(float x);                                                 /* as the product takes it */
static float *pack(lin_exec *exec, const float *w, int n, int k, int transposed); /* checked */

typedef struct shape {
    int rows, n, k;
} shape;

// One, odd, one more and one less than each block: 4 or 8 rows, 16, 32, 48 and 64 columns, 64 and 256 rows; k odd and even.
static const shape shapes[] = {
    {1, 1, 1},     {1, 40, 192},  {2, 3, 5},     {3, 15, 7},     {4, 16, 9},    {5, 17, 1},    {6, 31, 33},   {7, 32, 2},
    {8, 33, 64},   {9, 47, 65},   {10, 48, 31},  {11, 49, 3},    {12, 63, 16},  {13, 64, 17},  {1, 65, 20},   {2, 79, 21},
    {17, 80, 4},   {3, 96, 97},   {1, 112, 6},   {2, 113, 6},    {1, 144, 5},   {1, 176, 19},  {1, 191, 8},   {1, 192, 10},
    {1, 193, 11},  {2, 192, 12},  {2, 193, 13},  {2, 209, 13},   {1, 400, 14},  {2, 400, 15},  {255, 9, 50},  {256, 8, 48},
    {257, 10, 49}, {513, 40, 97}, {70, 193, 192}, {600, 5, 1},   {131, 200, 390}, {33, 576, 192}, {64, 192, 640}, {0, 8, 8},
    {801, 97, 129}, {4, 209, 13}, {65, 10, 49},  {9, 192, 768},  {30, 3, 40001},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static lin_exec *exec_of(int threads)
{
    lin_exec *exec;
    OK(ops->exec_create(ops, threads, &exec, &err));
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

// y [rows, n] = act(x [rows, k] wᵀ + bias) in double, of rounded operands. With transposed, w is [k, n].
static double *naive(const float *x, const float *w, const float *bias, shape s, int transposed, lin_activation act)
{
    double *y = test_buffer(size_of(s.rows, s.n), sizeof *y);
    double *xr = test_buffer(size_of(s.rows, s.k), sizeof *xr), *wr = test_buffer(size_of(s.n, s.k), sizeof *wr);
    for (size_t i = 0; i < size_of(s.rows, s.k); i++) xr[i] = (double)rounded_operand(x[i]);
    for (size_t i = 0; i < size_of(s.n, s.k); i++) wr[i] = (double)rounded_operand(w[i]);
    for (int r = 0; r < s.rows; r++) {
        for (int i = 0; i < s.n; i++) {
            const double *a = xr + size_of(r, s.k);
            double sum = 0;
            for (int t = 0; t < s.k; t++)
                sum += a[t] * wr[transposed ? size_of(t, s.n) + (size_t)i : size_of(i, s.k) + (size_t)t];
            if (bias) sum += (double)bias[i];
            y[size_of(r, s.n) + (size_t)i] = act == LIN_RELU && sum < 0 ? 0 : sum;
        }
    }
    TEST_FREE(xr, wr);
    return y;
}

static void check_forward(const char *name)
{
    lin_exec *exec = exec_of(2);
    for (int i = 0; i < N_SHAPES; i++) {
        for (int variant = 0; variant < 8; variant += shapes[i].k > 1000 ? 3 : 1) {
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
            snprintf(what, sizeof what, "%s forward %d x %d x %d variant %d", name, s.rows, s.n, s.k, variant);
            test_guards(y, what);
            double *want = naive(x, w, biased ? bias : NULL, s, transposed, act);
            test_close_f32(what, y, want, size_of(s.rows, s.n), s.k > 1000 ? 2e-5 : 2e-6);
            TEST_FREE(want, x, w, bias, packed, y);
        }
    }
    ops->exec_destroy(exec);
}

// dw [n, k] += dyᵀ x of rounded operands, db [n] += sums of dy as it is: against double, on any number of threads with the same
// bits.
static void check_weight_gradient(const char *name, const shape *list, int count)
{
    lin_exec *execs[] = {exec_of(1), exec_of(2), exec_of(3)};
    for (int i = 0; i < count; i++) {
        const shape s = list[i];
        const size_t nk = size_of(s.n, s.k), n = (size_t)s.n;
        float *x = random_matrix(s.rows, s.k, 100 + (uint64_t)i), *dy = random_matrix(s.rows, s.n, 200 + (uint64_t)i);
        float *start = random_matrix(s.n, s.k, 300 + (uint64_t)i), *db_start = random_matrix(1, s.n, 400 + (uint64_t)i);
        const size_t rk = size_of(s.rows, s.k);
        double *want = test_buffer(nk, sizeof *want), *db_want = test_buffer(n, sizeof *db_want);
        double *xr = test_buffer(rk, sizeof *xr);
        for (size_t j = 0; j < rk; j++) xr[j] = (double)rounded_operand(x[j]);
        for (size_t j = 0; j < nk; j++) want[j] = (double)start[j];
        for (size_t j = 0; j < n; j++) db_want[j] = (double)db_start[j];
        for (int r = 0; r < s.rows; r++)
            for (int a = 0; a < s.n; a++) {
                const float g = dy[size_of(r, s.n) + (size_t)a];
                const double rounded = (double)rounded_operand(g);
                db_want[a] += (double)g;
                for (int b = 0; b < s.k; b++) want[size_of(a, s.k) + (size_t)b] += rounded * xr[size_of(r, s.k) + (size_t)b];
            }
        float *results[3], *biases[3];
        for (int t = 0; t < 3; t++) {
            char what[100];
            snprintf(what, sizeof what, "%s gradient %d x %d x %d, %d threads", name, s.rows, s.n, s.k, t + 1);
            results[t] = test_buffer_shifted(nk, sizeof *x, 1);
            biases[t] = test_buffer_shifted(n, sizeof *x, 1);
            memcpy(results[t], start, nk * sizeof *start);
            memcpy(biases[t], db_start, n * sizeof *db_start);
            ops->linear_backward_weight(execs[t], results[t], t == 2 ? NULL : biases[t], dy, x, s.rows, s.n, s.k);
            test_guards(results[t], what);
            test_guards(biases[t], what);
            test_close_f32(what, results[t], want, nk, 4e-6);
            if (t < 2) test_close_f32(what, biases[t], db_want, n, 4e-6);
            test_same_f32(what, results[t], results[0], nk);
            test_same_f32(what, biases[t], t < 2 ? biases[0] : db_start, n);
        }
        TEST_FREE(want, db_want, xr, x, dy, start, db_start, results[0], results[1], results[2], biases[0], biases[1], biases[2]);
    }
    for (int t = 0; t < 3; t++) ops->exec_destroy(execs[t]);
}

// What is not finite in a row of x or in a row of the weights makes its own row or column of y not finite, and nothing else: of
// the first `nans` of `odd` NaN, after relu too.
static void check_not_numbers(const char *name, const float *odd, int count, int nans)
{
    enum { ROWS = 13, N = 50, K = 37 };
    lin_exec *exec = exec_of(1);
    float *y = test_buffer(ROWS * N, sizeof *y);
    for (int i = 0; i < count; i++)
        for (int form = 0; form < (i < nans ? 4 : 2); form++) {
            const int in_weights = form % 2;
            float *x = random_matrix(ROWS, K, 1), *w = random_matrix(N, K, 2);
            (in_weights ? w : x)[7 * K + (i % 2 ? K - 1 : 4)] = odd[i];
            float *packed = test_buffer(ops->weight_size(N, K), sizeof *packed);
            ops->weights_pack(exec, packed, w, &(lin_packing){.n = N, .k = K}, 1);
            ops->linear_forward(exec, y, x, packed, NULL, ROWS, N, K, form / 2 ? LIN_RELU : LIN_LINEAR);
            for (int e = 0; e < ROWS * N; e++) {
                const int struck = (in_weights ? e % N : e / N) == 7;
                test_require(isfinite(y[e]) == !struck && (!struck || isnan(y[e]) == (i < nans)), "%s: %g in %s: %d, %d is %g",
                             name, (double)odd[i], in_weights ? "a weight" : "x", e / N, e % N, (double)y[e]);
            }
            TEST_FREE(x, w, packed);
        }
    test_buffer_free(y);
    ops->exec_destroy(exec);
}

// The contract of streaming: row r of a batch has the same bits as alone, for any number of threads.
static void check_bits(void)
{
    static const shape wide[] = {{300, 192, 192}, {130, 40, 64}, {40, 193, 33}, {201, 400, 100}, {25, 17, 5}, {50, 64, 300}};
    lin_exec *execs[] = {exec_of(1), exec_of(2), exec_of(3)};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        const shape s = wide[i];
        float *x = random_matrix(s.rows, s.k, 10 + i), *w = random_matrix(s.n, s.k, 20 + i),
              *bias = random_matrix(1, s.n, 30 + i);
        float *packed = pack(execs[0], w, s.n, s.k, 0), *other = pack(execs[2], w, s.n, s.k, 0);
        test_same_f32("packed with other threads", other, packed, ops->weight_size(s.n, s.k));
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
        TEST_FREE(x, w, bias, packed, other, whole, part);
    }
    for (int t = 0; t < 3; t++) ops->exec_destroy(execs[t]);
}

#endif
