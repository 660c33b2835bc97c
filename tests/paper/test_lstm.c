// [variants] The LSTM of ref/ against torch.nn.LSTM (golden/lstm.py), and the CPU's activations over their whole range. The
// backends: ops_cases_lstm.c.
#include "tests/kernels/kernel_support.h"

enum { MOST_B = 4 };

static double *block(const char *name, const char *what, int rows, int width)
{
    const size_t n = (size_t)rows * (size_t)width;
    char path[256];
    snprintf(path, sizeof path, "tests/golden/lstm/%s/%s.f64", name, what);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s; tests run from the root of the source tree", path);
    double *values = test_buffer(n, sizeof *values);
    ck_assert_uint_eq(fread(values, sizeof *values, n, file), n);
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
    return values;
}

static void compare(const char *name, const char *what, double *got, int rows, int width)
{
    double *want = block(name, what, rows, width);
    for (int i = 0; i < rows * width; i++)
        test_require(fabs(got[i] - want[i]) <= 1e-12 * fmax(1, fabs(want[i])), "%s: %s %d is %.12g, not %.12g", name, what, i,
                     got[i], want[i]);
    TEST_FREE(want, got);
}

static double *packed(const double *w, int n, int k, int copies, int transposed)
{
    const size_t size = transposed ? ref->weight_size(k, n) : ref->weight_size(n, k), pitch = (size + 15) / 16 * 16;
    double *to = test_buffer((size_t)copies * pitch, sizeof *to);
    for (int d = 0; d < copies; d++) {
        const lin_packing item = {.from = (size_t)(d * n * k), .to = (size_t)d * pitch, .n = n, .k = k, .transposed = transposed};
        ref->weights_pack(ref_exec, to, w, &item, 1);
    }
    return to;
}

static double *zeros(int rows, int width)
{
    const size_t n = (size_t)rows * (size_t)width;
    double *x = test_buffer(n, sizeof *x);
    memset(x, 0, n * sizeof *x);
    return x;
}

// The whole layer: gates = x wᵀ + bias, the operation, and their gradients; without states, then with them.
START_TEST(golden)
{
    const char *const name = _i ? "both" : "one";
    char path[256];
    int D, k, U, offsets[MOST_B + 1] = {0}, B = 0;
    snprintf(path, sizeof path, "tests/golden/lstm/%s/sizes.txt", name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    ck_assert_int_eq(fscanf(file, "directions %d inputs %d units %d frames", &D, &k, &U), 3);
    for (; B < MOST_B && fscanf(file, "%d", &offsets[B + 1]) == 1; B++) offsets[B + 1] += offsets[B];
    fclose(file);
    const lin_segments s = segments_at(offsets, B);
    const int n = 4 * D * U, rows = s.rows, DU = D * U;
    double *x = block(name, "x", rows, k), *w = block(name, "w", n, k), *bias = block(name, "bias", n, 1),
           *R = block(name, "R", n, U), *dh = block(name, "dh", rows, DU), *states = block(name, "start", B, 2 * U);
    double *R_packed = packed(R, 4 * U, U, D, 0), *R_dx = packed(R, 4 * U, U, D, 1), *w_packed = packed(w, n, k, 1, 0),
           *w_dx = packed(w, n, k, 1, 1);
    double *gates = zeros(rows, n), *h = zeros(rows, DU), *cells = zeros(rows, DU), *dgates = zeros(rows, n),
           *dx = zeros(rows, k), *dw = zeros(n, k), *dbias = zeros(n, 1), *dR = zeros(n, U), *table[MOST_B];
    for (int b = 0; b < B; b++) table[b] = states + b * 2 * U;
    ref->linear_forward(ref_exec, gates, x, w_packed, bias, rows, n, k, LIN_LINEAR);
    ref->lstm_forward(ref_exec, h, cells, gates, R_packed, &s, U, D, NULL, 0);
    ref->lstm_backward(ref_exec, dgates, dR, dh, h, cells, gates, R_dx, &s, U, D);
    ref->linear_backward_weight(ref_exec, dw, dbias, dgates, x, rows, n, k);
    ref->linear_forward(ref_exec, dx, dgates, w_dx, NULL, rows, k, n, LIN_LINEAR);
    test_poison(h, (size_t)(rows * DU) * sizeof *h);
    ref->linear_forward(ref_exec, gates, x, w_packed, bias, rows, n, k, LIN_LINEAR);
    ref->lstm_forward(ref_exec, h, cells, gates, R_packed, &s, U, D, table, 0);
    compare(name, "h", h, rows, DU);
    compare(name, "dx", dx, rows, k);
    compare(name, "dw", dw, n, k);
    compare(name, "dbias", dbias, n, 1);
    compare(name, "dR", dR, n, U);
    compare(name, D == 1 ? "end" : "start", states, B, 2 * U);
    TEST_FREE(x, w, bias, R, dh, R_packed, R_dx, w_packed, w_dx, gates, cells, dgates);
}
END_TEST

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

TEST_MAIN_WITH(ref_begin, ref_end, "lstm", TESTS(golden, 0, 2), TESTS(activations, 0, N_ISAS))
