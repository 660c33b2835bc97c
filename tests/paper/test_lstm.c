// [variants] The LSTM, beside the cases of ops_cases.h: ref/ against finite differences, ref/ and the CPU against torch.nn.LSTM
// (golden/lstm.py), the activations over their whole range, layers as wide and batches as large as the scratch holds, NaNs,
// weights in bf16.
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};
enum { ISAS = 3 };

static size_t size_of(int a, int b) { return (size_t)a * (size_t)b; }

static size_t pitch_of(size_t size) { return (size + 15) / 16 * 16; }

// 0 if this machine lacks the instruction set.
static int select_isa(const char *isa)
{
    lin_error err = {0};
    lin_status status = lin_cpu_select(isa, &err);
    if (status == LIN_UNSUPPORTED && strcmp(isa, "portable") != 0) return 0;
    ck_assert_msg(status == LIN_OK, "%s", err.message);
    return 1;
}

// The items that pack R [D, 4U, U], for forward or transposed.
static void items_of(lin_packing *items, int U, int D, size_t weight_size, int transposed)
{
    for (int d = 0; d < D; d++) {
        items[d] = (lin_packing){.from = (size_t)d * size_of(4 * U, U), .to = (size_t)d * pitch_of(weight_size),
                                 .n = 4 * U, .k = U, .transposed = transposed};
    }
}

static lin_segments segments_of(int *offsets, const int *lengths, int B)
{
    lin_segments s = {.B = B, .offsets = offsets};
    offsets[0] = 0;
    for (int b = 0; b < B; b++) {
        offsets[b + 1] = offsets[b] + lengths[b];
        if (lengths[b] > s.longest) s.longest = lengths[b];
    }
    s.rows = offsets[B];
    return s;
}

/* ---- ref/ against finite differences --------------------------------------------------------------------------------------- */

enum { MOST_B = 4 };

typedef struct difference {
    const lin_ops_f64 *ops;
    lin_exec *exec;
    lin_segments s;
    int U, D;
    size_t n;                                            // elements of h
    double *R, *packed, *input, *gates, *h, *cells, *dh; // input: the gates before the operation
} difference;

static double loss_of(difference *c)
{
    lin_packing items[2];
    items_of(items, c->U, c->D, c->ops->weight_size(4 * c->U, c->U), 0);
    c->ops->weights_pack(c->exec, c->packed, c->R, items, c->D);
    memcpy(c->gates, c->input, 4 * c->n * sizeof *c->gates);
    c->ops->lstm_forward(c->exec, c->h, c->cells, c->gates, c->packed, &c->s, c->U, c->D, NULL, 0);
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) sum += c->dh[i] * c->h[i];
    return sum;
}

static void check_differences(difference *c, const char *what, double *x, const double *gradient, size_t n)
{
    const double step = 1e-3;
    for (size_t i = 0; i < n; i++) {
        const double keep = x[i], factors[4] = {1, -8, 8, -1}, places[4] = {-2, -1, 1, 2};
        double numeric = 0;
        for (int j = 0; j < 4; j++) {
            x[i] = keep + places[j] * step;
            numeric += factors[j] * loss_of(c) / (12 * step);
        }
        x[i] = keep;
        test_require(fabs(numeric - gradient[i]) < 1e-9, "%s, U %d, directions %d: element %zu is %.12g, by differences %.12g",
                     what, c->U, c->D, i, gradient[i], numeric);
    }
}

static double *filled(size_t n, uint64_t key, double most)
{
    double *x = test_buffer(n, sizeof *x);
    test_fill_f64(x, n, key, -most, most);
    return x;
}

START_TEST(gradient)
{
    const int lengths[MOST_B] = {4, 0, 1, 3}, widths[] = {1, 3};
    for (int w = 0; w < 2; w++)
        for (int D = 1; D <= 2; D++) {
            int offsets[MOST_B + 1];
            difference c = {.ops = lin_ops_ref(), .U = widths[w], .D = D, .s = segments_of(offsets, lengths, MOST_B)};
            const size_t nR = (size_t)D * size_of(4 * c.U, c.U), room = (size_t)D * (nR + 16);
            c.n = size_of(c.s.rows, D * c.U);
            ck_assert_int_eq(c.ops->exec_create(c.ops, 1, &c.exec, NULL), LIN_OK);
            c.R = filled(nR, 1, 1);
            c.input = filled(4 * c.n, 2, 2);
            c.dh = filled(c.n, 3, 1);
            c.packed = test_buffer(room, sizeof(double));
            c.gates = test_buffer(4 * c.n, sizeof(double));
            c.h = test_buffer(c.n, sizeof(double));
            c.cells = test_buffer(c.n, sizeof(double));
            double *packed = test_buffer(room, sizeof *packed), *dgates = test_buffer(4 * c.n, sizeof *dgates);
            double *dR = filled(nR, 4, 1), *before = filled(nR, 4, 1);
            lin_packing items[2];
            items_of(items, c.U, D, c.ops->weight_size(c.U, 4 * c.U), 1);
            c.ops->weights_pack(c.exec, packed, c.R, items, D);
            loss_of(&c);
            c.ops->lstm_backward(c.exec, dgates, dR, c.dh, c.h, c.cells, c.gates, packed, &c.s, c.U, D);
            for (size_t i = 0; i < nR; i++) dR[i] -= before[i]; // "+=" must keep the old values
            check_differences(&c, "dgates", c.input, dgates, 4 * c.n);
            check_differences(&c, "dR", c.R, dR, nR);
            double *all[] = {c.R, c.input, c.dh, c.packed, c.gates, c.h, c.cells, packed, dgates, dR, before};
            for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                test_guards(all[i], "lstm");
                test_buffer_free(all[i]);
            }
            c.ops->exec_destroy(c.exec);
        }
}
END_TEST

/* ---- torch.nn.LSTM --------------------------------------------------------------------------------------------------------- */

#define REAL double
#define OPS lin_ops_f64
#define NAME(x) x##_f64
#include "tests/paper/lstm_golden.h"
#undef REAL
#undef OPS
#undef NAME
#define REAL float
#define OPS lin_ops
#define NAME(x) x##_f32
#include "tests/paper/lstm_golden.h"

static const char *const golden[] = {"one", "both"};

START_TEST(golden_ref) { golden_case_f64(golden[_i], lin_ops_ref(), 1e-12); }
END_TEST

START_TEST(golden_cpu)
{
    if (select_isa(isas[_i % ISAS])) golden_case_f32(golden[_i / ISAS], lin_ops_cpu(), 2e-6);
}
END_TEST

/* ---- activations ----------------------------------------------------------------------------------------------------------- */

// Without recurrence: the gates of one unit over their whole range, tanh with a relative error near 0.
START_TEST(activations)
{
    enum { N = 40000 };
    if (!select_isa(isas[_i])) return;
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
    float *all[] = {gates, h, cells, packed};
    for (size_t i = 0; i < 4; i++) test_guards(all[i], "lstm"), test_buffer_free(all[i]);
    ops->exec_destroy(exec);
}
END_TEST

/* ---- wide layers and many utterances --------------------------------------------------------------------------------------- */

typedef struct batch {
    const lin_ops *ops;
    lin_exec *exec;
    int U, D;
    size_t n;
    lin_segments s;
    float *R, *packed, *packed_dx, *input, *gates, *h, *cells, *dh, *dgates, *dR;
} batch;

static float *noise(size_t n, uint64_t key, double most)
{
    float *x = test_buffer(n, sizeof *x);
    test_fill_f32(x, n, key, -most, most);
    return x;
}

static batch batch_of(const lin_ops *ops, int threads, const lin_segments *s, int U, int D)
{
    batch c = {.ops = ops, .U = U, .D = D, .s = *s, .n = size_of(s->rows, D * U)};
    const size_t size = ops->weight_size(4 * U, U), size_dx = ops->weight_size(U, 4 * U);
    lin_packing items[2];
    ck_assert_int_eq(ops->exec_create(ops, threads, &c.exec, NULL), LIN_OK);
    c.R = noise((size_t)D * size_of(4 * U, U), 1, 1.5 / sqrt(U));
    c.packed = test_buffer((size_t)D * pitch_of(size), sizeof *c.packed);
    c.packed_dx = test_buffer((size_t)D * pitch_of(size_dx), sizeof *c.packed_dx);
    items_of(items, U, D, size, 0);
    ops->weights_pack(c.exec, c.packed, c.R, items, D);
    items_of(items, U, D, size_dx, 1);
    ops->weights_pack(c.exec, c.packed_dx, c.R, items, D);
    c.input = noise(4 * c.n, 2, 3);
    c.gates = noise(4 * c.n, 2, 3);
    c.h = test_buffer(c.n, sizeof *c.h);
    c.cells = test_buffer(c.n, sizeof *c.cells);
    c.dh = noise(c.n, 3, 1);
    c.dgates = test_buffer(4 * c.n, sizeof *c.dgates);
    c.dR = noise((size_t)D * size_of(4 * U, U), 4, 0);
    return c;
}

static void batch_run(batch *c)
{
    c->ops->lstm_forward(c->exec, c->h, c->cells, c->gates, c->packed, &c->s, c->U, c->D, NULL, 0);
    c->ops->lstm_backward(c->exec, c->dgates, c->dR, c->dh, c->h, c->cells, c->gates, c->packed_dx, &c->s, c->U, c->D);
}

static void batch_free(batch *c)
{
    float *all[] = {c->R, c->packed, c->packed_dx, c->input, c->gates, c->h, c->cells, c->dh, c->dgates, c->dR};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        test_guards(all[i], "lstm");
        test_buffer_free(all[i]);
    }
    c->ops->exec_destroy(c->exec);
}

// Utterance b of the batch alone has the bits it has in the batch.
static void check_alone(const batch *c, int b)
{
    const int frames = c->s.offsets[b + 1] - c->s.offsets[b], offsets[2] = {0, frames};
    const size_t at = size_of(c->s.offsets[b], c->D * c->U);
    batch one = batch_of(c->ops, 1, &(lin_segments){1, frames, frames, offsets}, c->U, c->D);
    memcpy(one.gates, c->input + 4 * at, 4 * one.n * sizeof *one.gates);
    memcpy(one.dh, c->dh + at, one.n * sizeof *one.dh);
    batch_run(&one);
    test_same_f32("h", c->h + at, one.h, one.n);
    test_same_f32("cells", c->cells + at, one.cells, one.n);
    test_same_f32("gates", c->gates + 4 * at, one.gates, 4 * one.n);
    test_same_f32("dgates", c->dgates + 4 * at, one.dgates, 4 * one.n);
    batch_free(&one);
}

static void large_case(const lin_ops *ops, int U, int B, int D)
{
    int lengths[200], offsets[201];
    for (int b = 0; b < B; b++) lengths[b] = (b * 7 + 3) % 5;
    const lin_segments s = segments_of(offsets, lengths, B);
    batch one = batch_of(ops, 1, &s, U, D), three = batch_of(ops, 3, &s, U, D);
    batch_run(&one);
    batch_run(&three);
    test_same_f32("h, threads", three.h, one.h, one.n);
    test_same_f32("dgates, threads", three.dgates, one.dgates, 4 * one.n);
    test_same_f32("dR, threads", three.dR, one.dR, (size_t)D * size_of(4 * U, U));
    for (int b = 0; b < B; b += B / 3) check_alone(&one, b);
    batch_free(&one);
    batch_free(&three);
}

START_TEST(large)
{
    if (!select_isa(isas[_i])) return;
    if (!TEST_ASAN) large_case(lin_ops_cpu(), 1024, 60, 1);
    large_case(lin_ops_cpu(), 1023, 5, 2);
    large_case(lin_ops_cpu(), 20, 190, 2);
}
END_TEST

// A NaN and an infinity affect only the frames that follow in their utterance.
START_TEST(not_a_number)
{
    enum { U = 37, B = 9 };
    if (!select_isa(isas[_i])) return;
    const int lengths[B] = {3, 7, 1, 0, 7, 5, 2, 6, 7};
    int offsets[B + 1];
    const lin_segments s = segments_of(offsets, lengths, B);
    batch clean = batch_of(lin_ops_cpu(), 2, &s, U, 1), dirty = batch_of(lin_ops_cpu(), 2, &s, U, 1);
    const size_t first = size_of(offsets[4] + 2, U), end = size_of(offsets[5], U);
    dirty.gates[4 * first + 5] = NAN;
    dirty.gates[4 * size_of(offsets[7], U) + U] = -INFINITY; // a forget gate of 0 on a cell of 0
    batch_run(&clean);
    batch_run(&dirty);
    test_same_f32("h before the NaN", dirty.h, clean.h, first);
    test_same_f32("h of the utterances after it", dirty.h + end, clean.h + end, size_of(offsets[7], U) - end);
    ck_assert(isnan(dirty.h[first + 5]) && !isnan(dirty.h[first + 4]) && isnan(dirty.h[first + U]) && isnan(dirty.h[end - 1]));
    test_same_f32("dgates of the utterances before it", dirty.dgates, clean.dgates, 4 * size_of(offsets[4], U));
    for (size_t i = size_of(offsets[7], U); i < dirty.n; i++) ck_assert(isfinite(dirty.h[i]));
    batch_free(&clean);
    batch_free(&dirty);
}
END_TEST

// Weights in bf16 give what fp32 gives, up to their rounding, and the same bits alone, in a batch and with any number of threads.
START_TEST(bf16)
{
    const lin_ops *ops;
    const int lengths[] = {30, 1, 0, 12};
    int offsets[5];
    lin_error err = {0};
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
    if (lin_ops_cpu_bf16(&ops, &err) == LIN_UNSUPPORTED) return;
    const lin_segments s = segments_of(offsets, lengths, 4);
    for (int D = 1; D <= 2; D++)
        for (int U = 5; U < 400; U = U * 8 + 1) {
            batch fp32 = batch_of(lin_ops_cpu(), 1, &s, U, D), c = batch_of(ops, 1, &s, U, D);
            const size_t nR = (size_t)D * size_of(4 * U, U);
            double *h = test_buffer(c.n, sizeof *h), *dgates = test_buffer(4 * c.n, sizeof *dgates),
                   *dR = test_buffer(nR, sizeof *dR);
            batch_run(&fp32);
            batch_run(&c);
            for (size_t i = 0; i < c.n; i++) h[i] = (double)fp32.h[i];
            for (size_t i = 0; i < 4 * c.n; i++) dgates[i] = (double)fp32.dgates[i];
            for (size_t i = 0; i < nR; i++) dR[i] = (double)fp32.dR[i];
            test_close_f32("h", c.h, h, c.n, 0.02);
            test_close_f32("dgates", c.dgates, dgates, 4 * c.n, 0.03);
            test_close_f32("dR", c.dR, dR, nR, 0.03);
            check_alone(&c, 0);
            double *all[] = {h, dgates, dR};
            for (size_t i = 0; i < 3; i++) test_buffer_free(all[i]);
            batch_free(&fp32);
            batch_free(&c);
        }
    large_case(ops, 600, 60, 2);
}
END_TEST

TEST_MAIN("lstm", TEST(gradient), TESTS(golden_ref, 0, 2), TESTS(golden_cpu, 0, 2 * ISAS), TESTS(activations, 0, ISAS),
          TESTS(large, 0, ISAS), TESTS(not_a_number, 0, ISAS), TEST(bf16))
