// bf16 on a CPU: rounding, products and weight gradients against double sums of rounded operands, the bits of a row, streams,
// refusals.
//
// If this processor has no such products, only the refusals are tested.
#include "base/memory.h"
#include "kernels/cpu/cpu.h"
#include "tests/model/streams_cases.h"
#include "tests/kernels/linear_cases.h"
#include "tests/kernels/ops_cases.h"
#include "train/train.h"

// Opens the backend; 0 if the processor lacks the instruction.
static int open_bf16(void)
{
    lin_error err = {0};
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
    const lin_status status = lin_backend_open("cpu", LIN_PRECISION_BF16, &ops, &err);
    if (status == LIN_OK) return 1;
    ck_assert_int_eq(status, LIN_UNSUPPORTED);
    HAS(err.message, "this processor has no ", "; use --precision fp32");
    ck_assert_ptr_null(ops);
    return 0;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// To nearest even, in arithmetic rather than by shifting bits: a float with 8 bits of mantissa. x is normal or 0.
static float bf16(float x)
{
    int exponent;
    const double mantissa = frexp((double)x, &exponent); // 0.5 <= |mantissa| < 1; nearbyint rounds halves to even
    return (float)ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

static float rounded_operand(float x) { return bf16(x); }

static float *pack(lin_exec *exec, const float *w, int n, int k, int transposed)
{
    const size_t size = transposed ? ops->weight_size(k, n) : ops->weight_size(n, k);
    float *packed = test_buffer(size, sizeof *packed);
    ops->weights_pack(exec, packed, w, &(lin_packing){.n = n, .k = k, .transposed = transposed}, 1);
    test_guards(packed, "weights_pack");
    // No element of a weight in -1..1 has all its exponent bits set, in either half of a word.
    for (size_t i = 0; i < size; i++) {
        const uint32_t word = bits_of(packed[i]);
        if ((word & 0x7F80) == 0x7F80 || (word >> 16 & 0x7F80) == 0x7F80)
            ck_abort_msg("packing left word %zu of %d x %d", i, n, k);
    }
    return packed;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

START_TEST(the_table)
{
    if (!open_bf16()) return;
    const lin_ops *plain = lin_ops_cpu(), *again;
    ck_assert_str_eq(ops->name, "cpu");
    ck_assert_int_eq((int)ops->precision, LIN_PRECISION_BF16);
    ck_assert_int_eq((int)plain->precision, LIN_PRECISION_FP32);
    ck_assert_int_eq(ops->on_host, 1);
    OK(lin_backend_open("cpu", LIN_PRECISION_BF16, &again, &err));
    ck_assert_ptr_eq(again, ops);
    ck_assert_int_eq(lin_ops_cpu_bf16(&again, NULL), LIN_OK);
    ck_assert_ptr_eq(again, ops);
    OK(lin_backend_open("cpu", LIN_PRECISION_FP32, &again, &err));
    ck_assert_ptr_eq(again, plain);
    OK(lin_backend_open("cpu", LIN_PRECISION_TF32, &again, &err));
    ck_assert_ptr_eq(again, plain);
    // Everything but the products of rounded operands is the same code as for fp32, which other tests check.
    lin_ops copy = *ops;
    copy.precision = plain->precision;
    copy.weight_size = plain->weight_size;
    copy.weights_pack = plain->weights_pack;
    copy.linear_forward = plain->linear_forward;
    copy.linear_backward_weight = plain->linear_backward_weight;
    copy.lstm_forward = plain->lstm_forward;
    copy.lstm_backward = plain->lstm_backward;
    ck_assert(memcmp(&copy, plain, sizeof copy) == 0);
    ck_assert(ops->linear_forward != plain->linear_forward);
    ck_assert_uint_eq(2 * ops->weight_size(768, 192), plain->weight_size(768, 192));
    ck_assert_uint_eq(ops->weight_size(1, 1), 16);
    ck_assert_uint_eq(ops->weight_size(17, 3), 64);
}
END_TEST

START_TEST(other_instruction_sets_refuse)
{
    static const char *const lower[] = {"avx2", "portable"};
    const int has = open_bf16();
    const lin_ops *opened = ops, *other;
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
        lin_error err = {0};
        if (lin_cpu_select(lower[i], NULL) != LIN_OK) continue;
        if (has && lin_cpu_level() == lin_cpu_best_level()) continue; // arm64: portable is all there is
        ck_assert_int_eq(lin_backend_open("cpu", LIN_PRECISION_BF16, &other, &err), LIN_UNSUPPORTED);
        ck_assert_ptr_null(other);
        HAS(err.message, "use --precision fp32");
        ck_assert_msg(!has || strstr(err.message, lower[i]) != NULL, "%s", err.message);
        if (!has) continue;
        lin_exec *exec;
        err = (lin_error){0};
        ck_assert_int_eq(opened->exec_create(opened, 1, &exec, &err), LIN_UNSUPPORTED); // chosen after the backend was opened
        ck_assert_ptr_null(exec);
        HAS(err.message, lower[i]);
        ck_assert_int_eq(lin_backend_open("cpu", LIN_PRECISION_FP32, &other, &err), LIN_OK);
    }
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
}
END_TEST

// Training without the instruction set is refused with the same sentence, before anything else is looked at.
START_TEST(training_refuses)
{
    const lin_config config = lin_config_default(5);
    lin_model *model = model_of(&config, NULL, 1);
    lin_train_options options = lin_train_default();
    options.device = "cpu";
    options.precision = LIN_PRECISION_BF16;
    const int has = open_bf16();
    if (has && lin_cpu_best_level() == LIN_ISA_PORTABLE) { // arm64: portable is all there is
        lin_model_destroy(model);
        return;
    }
    ck_assert_int_eq(lin_cpu_select("portable", NULL), LIN_OK);
    FAILS(lin_train(&options, model, NULL, 0, NULL, 0, NULL, &err), LIN_UNSUPPORTED,
          has ? "LINNET_ISA is portable" : "this processor has no ");
    ck_assert_int_eq(lin_cpu_select(NULL, NULL), LIN_OK);
    lin_model_destroy(model);
}
END_TEST

/* ---- rounding -------------------------------------------------------------------------------------------------------------- */

// Bits on both sides of every place where rounding decides: below a half, a half under an even and an odd neighbour, above a
// half, a carry into the exponent; then throughout the normal numbers whose rounded value is finite.
static int rounding_inputs(float *x, int most)
{
    static const uint32_t low[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF},
                          high[] = {0x3F80, 0x3F81, 0x3FFF, 0x0080, 0x7F7E, 0x4242};
    int n = 0;
    for (size_t h = 0; h < sizeof high / sizeof *high; h++)
        for (size_t l = 0; l < sizeof low / sizeof *low; l++)
            for (uint32_t sign = 0; sign < 2; sign++) x[n++] = float_of(sign << 31 | high[h] << 16 | low[l]);
    x[n++] = 0;
    for (uint64_t i = 0; n < most; i++) {
        const uint32_t bits = (uint32_t)lin_random_bits(123, i), exponent = bits >> 23 & 255;
        if (exponent > 0 && exponent < 254) x[n++] = float_of(bits);
    }
    return n;
}

START_TEST(operands_are_rounded_to_nearest_even)
{
    if (!open_bf16()) return;
    enum { N = 4001 };
    lin_exec *exec = exec_of(1);
    float *x = test_buffer(N, sizeof *x), *one = test_buffer(1, sizeof *one), *y = test_buffer(N, sizeof *y);
    one[0] = 1;
    ck_assert_int_eq(rounding_inputs(x, N), N);
    float *packed = pack(exec, one, 1, 1, 0);
    ops->linear_forward(exec, y, x, packed, NULL, N, 1, 1, LIN_LINEAR); // y = x 1: the activations
    test_guards(y, "linear_forward");
    for (int i = 0; i < N; i++) {
        const float want = bf16(x[i]);
        test_require(y[i] == want, "activation %08x became %08x, not %08x", bits_of(x[i]), bits_of(y[i]), bits_of(want));
    }
    test_buffer_free(packed);
    packed = test_buffer(ops->weight_size(N, 1), sizeof *packed);
    ops->weights_pack(exec, packed, x, &(lin_packing){.n = N, .k = 1}, 1);
    test_poison(y, N * sizeof *y);
    ops->linear_forward(exec, y, one, packed, NULL, 1, N, 1, LIN_LINEAR); // y = 1 w: the weights
    for (int i = 0; i < N; i++) {
        const float want = bf16(x[i]);
        test_require(y[i] == want, "weight %08x became %08x, not %08x", bits_of(x[i]), bits_of(y[i]), bits_of(want));
    }
    TEST_FREE(x, one, y, packed);
    ops->exec_destroy(exec);
}
END_TEST

START_TEST(not_numbers_are_not_hidden)
{
    const float odd[] = {NAN, float_of(0x7F800001), float_of(0xFFFFFFFF), float_of(0x7F80FFFF), INFINITY, 3.4e38F};
    if (open_bf16()) check_not_numbers("bf16", odd, 6, 4);
}
END_TEST

/* ---- products -------------------------------------------------------------------------------------------------------------- */

// Rounded operands, but sums of fp32: the tolerance is that of the sums, a thousandth of the error of rounding the operands.
START_TEST(forward_equals_double_sums_of_rounded_operands)
{
    if (open_bf16()) check_forward("bf16");
}
END_TEST

/* ---- the gradient of weights ----------------------------------------------------------------------------------------------- */

// Odd and even numbers of rows around the 384 that are summed at once; n around 8, 16 and 192, k around 16, 48 and 384.
static const shape gradients[] = {
    {0, 8, 8},     {1, 1, 1},      {1, 40, 192},  {2, 3, 5},      {3, 15, 7},     {4, 16, 9},     {5, 17, 1},    {6, 31, 33},
    {7, 7, 15},    {8, 8, 16},     {9, 9, 17},    {10, 24, 47},   {11, 25, 48},   {12, 23, 49},   {13, 33, 95},  {383, 12, 50},
    {384, 8, 48},  {385, 10, 49},  {386, 9, 31},  {769, 40, 97},  {70, 193, 192}, {131, 200, 390}, {33, 576, 192}, {64, 192, 640},
    {1300, 20, 3}, {401, 97, 129},
};
enum { N_GRADIENTS = sizeof gradients / sizeof *gradients };

START_TEST(weight_gradient_equals_double_sums_of_rounded_operands)
{
    if (open_bf16()) check_weight_gradient("bf16", gradients, N_GRADIENTS);
}
END_TEST

// A NaN or an infinity affects its row of dw, or its column, and nothing else.
START_TEST(weight_gradient_does_not_hide_what_is_not_a_number)
{
    enum { ROWS = 401, N = 21, K = 53 };
    if (!open_bf16()) return;
    lin_exec *exec = exec_of(1);
    for (int in_x = 0; in_x < 2; in_x++)
        for (int row = 0; row < ROWS; row += 40) {
            float *x = random_matrix(ROWS, K, 7), *dy = random_matrix(ROWS, N, 8), *dw = test_buffer(N * K, sizeof *dw);
            memset(dw, 0, N * K * sizeof *dw);
            if (in_x) x[row * K + 50] = row % 80 ? NAN : INFINITY;
            else dy[row * N + 20] = row % 80 ? NAN : -INFINITY;
            ops->linear_backward_weight(exec, dw, NULL, dy, x, ROWS, N, K);
            for (int i = 0; i < N * K; i++)
                test_require(isfinite(dw[i]) == (in_x ? i % K != 50 : i / K != 20), "row %d of %s: element %d, %d is %g", row,
                             in_x ? "x" : "dy", i / K, i % K, (double)dw[i]);
            TEST_FREE(x, dy, dw);
        }
    ops->exec_destroy(exec);
}
END_TEST

START_TEST(bits_do_not_depend_on_rows_or_threads)
{
    if (open_bf16()) check_bits();
}
END_TEST

// The test cases of every backend, with the tolerance for rounded operands.
START_TEST(cases_of_all_backends)
{
    static const char *const products[] = {"linear", "linear_model_shapes", "linear_rows", "weights_pack", "weights_pack_half",
#ifndef LIN_NO_PAPER
                                           "lstm", "lstm_alone", "lstm_splits", "lstm_large"
#endif
    };
    if (!open_bf16()) return;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        ops_options options = {.n_threads = 1, .tolerance = 8000, .only = products[i]};
        ops_digest one[OPS_MAX_CASES], several[OPS_MAX_CASES];
        ck_assert_int_eq(ops_run_cases(ops, &options, one), 1);
        options.digest_only = 1;
        options.n_threads = 3;
        ck_assert_int_eq(ops_run_cases(ops, &options, several), 1);
        ck_assert_msg(one[0].value == several[0].value, "%s: 3 threads give other bits than one", products[i]);
    }
}
END_TEST

/* ---- a network ------------------------------------------------------------------------------------------------------------- */

// Streams give the bits of whole utterances, in any pieces and beside any others.
START_TEST(streams_give_the_bits_of_the_batch)
{
    if (!open_bf16()) return;
    streams_case_company(ops, 3, 2, 2, STREAMS_LINEAR, STREAMS_N);
    streams_case_moved(ops, STREAMS_DECAY);
}
END_TEST

TEST_MAIN("bf16", TEST(the_table), TEST(other_instruction_sets_refuse), TEST(training_refuses),
          TEST(operands_are_rounded_to_nearest_even), TEST(not_numbers_are_not_hidden),
          TEST(forward_equals_double_sums_of_rounded_operands), TEST(weight_gradient_equals_double_sums_of_rounded_operands),
          TEST(weight_gradient_does_not_hide_what_is_not_a_number), TEST(bits_do_not_depend_on_rows_or_threads),
          TEST(cases_of_all_backends), TEST(streams_give_the_bits_of_the_batch))
