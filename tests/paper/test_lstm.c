// [variants] The CPU's activations of an LSTM over their whole range. The LSTM of ref/: tests/model/test_golden_f64.c;
// the backends: ops_cases_lstm.c.
#include "tests/kernels/kernel_support.h"

// Without recurrence: the gates of one unit over their whole range, tanh with a relative error near 0.
START_TEST(activations)
{
    enum { N = 40000 };
    if (!choose_isa(_i)) return;
    const lin_ops *ops = lin_ops_cpu();
    lin_exec *exec;
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    float *gates = test_buffer(4 * N, sizeof *gates), *h = test_buffer(N, sizeof *h), *cells = test_buffer(N, sizeof *cells);
    float *packed = test_buffer(ops->weight_size(4 * N, 1), sizeof *packed), zero[4] = {0};
    const float extremes[] = {0, 1e-30F, 1e30F, 88, 89, 104, 1e4F, INFINITY, 9.01F, 10, 20};
    enum { EXTREMES = sizeof extremes / sizeof *extremes };
    ops->weights_pack(exec, packed, zero, &(lin_packing){.n = 4, .k = 1}, 1);
    for (int i = 0; i < N; i++) {
        const float x = i < EXTREMES ? extremes[i] : i % 2 ? expf(-0.001F * (float)i) : 0.0025F * (float)i;
        for (int j = 0; j < 4; j++) gates[4 * i + j] = i / 2 % 2 ? x : -x;
    }
    const int offset[2] = {0, 1};
    for (int i = 0; i < N; i++) {
        const double x = (double)gates[4 * i], sigmoid = 1 / (1 + exp(-x)), y = tanh(x);
        float *a = gates + 4 * i;
        ops->lstm_forward(exec, h + i, cells + i, a, packed, &(lin_segments){1, 1, 1, offset}, 1, 1, NULL, 0);
        test_require(fabs((double)a[0] - sigmoid) <= 1e-7 && (double)a[0] <= 1, "sigmoid of %g is %.9g, not %.9g", x,
                     (double)a[0], sigmoid);
        test_require(a[0] == a[1] && a[0] == a[3], "gates of %g differ", x);
        test_require(fabs((double)a[2] - y) <= 4e-7 * fabs(y) + 1e-37, "tanh of %g is %.9g, not %.9g", x, (double)a[2], y);
        const double c = (double)a[0] * (double)a[2];
        test_require(fabs((double)cells[i] - c) <= 1e-7 * fabs(c) + 1e-37, "the cell of %g is %.9g, not %.9g", x,
                     (double)cells[i], c);
        test_require(fabs((double)h[i] - (double)a[3] * tanh((double)cells[i])) <= 6e-7 * fabs((double)h[i]) + 1e-37, "h of %g",
                     x);
    }
    TEST_FREE(gates, h, cells, packed);
    ops->exec_destroy(exec);
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "lstm", TESTS(activations, 0, N_ISAS))
