// Eight-bit products: every kernel of this processor against the reference, to the bit; rows, threads, streams; the error.
#include "base/number.h"
#include "kernels/cpu/linear_int8.h"
#include "tests/kernels/ref/ref_int8.h"
#include "tests/kernels/linear_cases.h"

static const char *const levels[] = {"avx512", "avx2", "portable"};

// Calls test for each kernel of each instruction set, the forced one included.
static void for_each_kernel(void (*test)(const char *name))
{
    ops = lin_ops_cpu_int8();
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (lin_cpu_select(levels[l], NULL) != LIN_OK) continue;
        const lin_int8_kernel *kernel;
        for (int i = 0; (kernel = lin_int8_kernel_at(i)); i++) {
            char name[64];
            snprintf(name, sizeof name, "%s at %s", kernel->name, levels[l]);
            lin_int8_force(kernel);
            test(name);
        }
    }
    lin_int8_force(NULL);
    OK(lin_cpu_select(NULL, NULL));
}

static float rounded_operand(float x) { return x; }

static float *pack_item(lin_exec *exec, const float *values, lin_packing item)
{
    float *packed = test_buffer(ops->weight_size(item.n, item.k), sizeof *packed);
    ops->weights_pack(exec, packed, values, &item, 1);
    test_guards(packed, "weights_pack");
    return packed;
}

static float *pack(lin_exec *exec, const float *w, int n, int k, int transposed)
{
    ck_assert_int_eq(transposed, 0);
    return pack_item(exec, w, (lin_packing){.n = n, .k = k});
}

START_TEST(the_table)
{
    const lin_ops *plain = lin_ops_cpu(), *got;
    OK(lin_backend_open("cpu", LIN_PRECISION_INT8, &got, &err));
    ck_assert_ptr_eq(got, lin_ops_cpu_int8());
    ck_assert_int_eq((int)got->precision, LIN_PRECISION_INT8);
    ck_assert_ptr_eq(got->exact, plain);
    ck_assert_ptr_null(plain->exact);
    OK(lin_backend_open("auto", LIN_PRECISION_INT8, &got, &err));
    ck_assert_ptr_eq(got, lin_ops_cpu_int8());
    lin_ops copy = *got;
    copy.precision = plain->precision;
    copy.exact = NULL;
    copy.weight_size = plain->weight_size;
    copy.weights_pack = plain->weights_pack;
    copy.linear_forward = plain->linear_forward;
    ck_assert(memcmp(&copy, plain, sizeof copy) == 0);
}
END_TEST

/* ---- the bits -------------------------------------------------------------------------------------------------------------- */

// Rows of all kinds: of both signs, of one, far off 0, of one large value, of zeros, on both sides of the smallest range, huge.
static float *random_rows(shape s, uint64_t key)
{
    float *x = random_matrix(s.rows, s.k, key);
    for (int r = 0; r < s.rows; r++) {
        float *row = x + size_of(r, s.k);
        for (int t = 0; t < s.k; t++) {
            switch (((uint64_t)r + key) % 11) {
            case 1: row[t] = row[t] < 0 ? 0 : row[t]; break;
            case 2: row[t] = row[t] > 0 ? -0.0F : row[t]; break;
            case 3: row[t] += 9; break;
            case 4: row[t] *= t % 50 == 7 ? 100 : 1; break;
            case 5: row[t] = 0; break;
            case 6: row[t] *= 0x1p-100F; break;
            case 7: row[t] *= 0x1p-102F; break;
            case 8: row[t] *= 3e38F; break;
            default: break;
            }
        }
    }
    return x;
}

static void check_reference(const char *name)
{
    lin_exec *exec = exec_of(2);
    for (int i = 0; i < N_SHAPES; i++) {
        const shape s = shapes[i];
        if (TEST_ASAN && size_of(s.rows, s.n) * (size_t)s.k > 1000000) continue;
        const uint64_t key = lin_random_key(2, (uint64_t)i);
        float *x = random_rows(s, key), *w = random_matrix(s.n, s.k, key + 1), *bias = random_matrix(1, s.n, key + 2);
        for (int t = 0; t < s.k; t++) w[t] *= s.n > 1 ? 0 : 1; // a channel of zeros
        float *packed = pack(exec, w, s.n, s.k, 0), *y = test_buffer_shifted(size_of(s.rows, s.n), sizeof *y, 1);
        float *want = test_buffer(size_of(s.rows, s.n), sizeof *want);
        for (int variant = 0; variant < 4; variant += s.k > 1000 ? 3 : 1) {
            const lin_activation act = variant & 1 ? LIN_RELU : LIN_LINEAR;
            char what[100];
            snprintf(what, sizeof what, "%s %d x %d x %d variant %d", name, s.rows, s.n, s.k, variant);
            test_poison(y, size_of(s.rows, s.n) * sizeof *y);
            ops->linear_forward(exec, y, x, packed, variant & 2 ? bias : NULL, s.rows, s.n, s.k, act);
            test_guards(y, what);
            lin_ref_int8_linear(want, x, w, variant & 2 ? bias : NULL, s.rows, s.n, s.k, act);
            test_same_f32(what, y, want, size_of(s.rows, s.n));
        }
        TEST_FREE(x, w, bias, packed, y, want);
    }
    ops->exec_destroy(exec);
}

START_TEST(kernels_equal_the_reference) { for_each_kernel(check_reference); }
END_TEST

static void check_rows(const char *name)
{
    (void)name;
    check_bits();
}

START_TEST(bits_do_not_depend_on_rows_or_threads)
{
    (void)check_forward; // for products of rounded floats
    (void)check_weight_gradient;
    for_each_kernel(check_rows);
}
END_TEST

// The longest sum of the largest products still fits.
static void check_longest(const char *name)
{
    enum { K = LIN_INT8_COLUMNS, N = 17 };
    lin_exec *exec = exec_of(1);
    float *x = test_buffer(3 * K, sizeof *x), *w = test_buffer(N * (size_t)K, sizeof *w), *y = test_buffer(3 * N, sizeof *y);
    for (int t = 0; t < K; t++) {
        x[t] = 1;
        x[K + t] = -1;
        x[2 * K + t] = t % 2 ? 1 : -1;
    }
    for (int i = 0; i < N; i++)
        for (int t = 0; t < K; t++) w[i * K + t] = i % 3 == 0 ? 127 : i % 3 == 1 ? -127 : t % 2 ? 127 : -127;
    float *packed = pack(exec, w, N, K, 0);
    ops->linear_forward(exec, y, x, packed, NULL, 3, N, K, LIN_LINEAR);
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < N; i++) {
            const double own = r < 2 ? i % 3 == 2 ? 0 : 1 : i % 3 == 2, sign = (r == 1) != (i % 3 == 1) ? -1 : 1;
            const double want = 127.0 * K * own * (own == 0 || r == 2 ? 1 : sign);
            const double got = (double)y[r * N + i];
            test_require(fabs(got - want) <= 127.0 * K * (r == 2 ? 4e-3 : 1e-6), "%s: %d, %d: %g, not %g", name, r, i, got, want);
        }
    TEST_FREE(x, w, y, packed);
    ops->exec_destroy(exec);
}

START_TEST(the_longest_sum_fits) { for_each_kernel(check_longest); }
END_TEST

// Weights in half precision and as whole numbers give the bits of the same weights as floats.
static void check_forms(const char *name)
{
    static const shape forms[] = {{5, 1, 1}, {3, 50, 37}, {9, 97, 240}, {2, 16, 4096}};
    lin_exec *exec = exec_of(2);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const shape s = forms[i];
        const size_t count = size_of(s.n, s.k), rows = size_of(s.rows, s.n), n = (size_t)s.n;
        float *x = random_matrix(s.rows, s.k, 5), *w = random_matrix(s.n, s.k, 6), *one = test_buffer(rows, sizeof *one);
        float *other = test_buffer(rows, sizeof *other), scale;
        unsigned char *half = test_buffer_shifted(count, 2, 1), *q = test_buffer(count, 1);
        unsigned char *scales = (unsigned char *)test_buffer(n * sizeof scale + 1, 1) + 1;
        lin_half_narrow(w, count, half);
        lin_half_widen(half, count, w);
        for (size_t r = 0; r < n; r++) {
            scale = lin_int8_narrow(w + r * (size_t)s.k, (size_t)s.k, (signed char *)q + r * (size_t)s.k);
            memcpy(scales + r * sizeof scale, &scale, sizeof scale);
        }
        float *floats = pack(exec, w, s.n, s.k, 0),
              *halves = pack_item(exec, NULL, (lin_packing){.n = s.n, .k = s.k, .half = half}),
              *whole = pack_item(exec, NULL, (lin_packing){.n = s.n, .k = s.k, .whole = q, .scales = scales});
        test_same_f32(name, halves, floats, ops->weight_size(s.n, s.k));
        test_same_f32(name, whole, floats, ops->weight_size(s.n, s.k));
        ops->linear_forward(exec, one, x, floats, NULL, s.rows, s.n, s.k, LIN_LINEAR);
        ops->linear_forward(exec, other, x, whole, NULL, s.rows, s.n, s.k, LIN_LINEAR);
        test_same_f32(name, other, one, rows);
        TEST_FREE(half, q, scales - 1, x, w, one, other, floats, halves, whole);
    }
    ops->exec_destroy(exec);
}

START_TEST(forms_of_weights) { for_each_kernel(check_forms); }
END_TEST

static void check_odd(const char *name)
{
    const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    check_not_numbers(name, odd, 4, 4);
}

START_TEST(not_numbers_are_not_hidden) { for_each_kernel(check_odd); }
END_TEST

/* ---- the error ------------------------------------------------------------------------------------------------------------- */

// Each operand is at most half a step off, so the product is that near the one in double.
START_TEST(near_the_exact_product)
{
    const shape s = {40, 60, 240};
    ops = lin_ops_cpu_int8();
    lin_exec *exec = exec_of(1);
    float *x = random_matrix(s.rows, s.k, 1), *w = random_matrix(s.n, s.k, 2), *y = test_buffer(size_of(s.rows, s.n), sizeof *y);
    float *packed = pack(exec, w, s.n, s.k, 0);
    ops->linear_forward(exec, y, x, packed, NULL, s.rows, s.n, s.k, LIN_LINEAR);
    for (int r = 0; r < s.rows; r++)
        for (int i = 0; i < s.n; i++) {
            const float *a = x + size_of(r, s.k), *b = w + size_of(i, s.k);
            double want = 0, lo = 0, hi = 0, most = 0, sum_a = 0, sum_b = 0;
            for (int t = 0; t < s.k; t++) {
                const double p = (double)a[t], q = (double)b[t];
                want += p * q;
                lo = fmin(lo, p);
                hi = fmax(hi, p);
                most = fmax(most, fabs(q));
                sum_a += fabs(p);
                sum_b += fabs(q);
            }
            const double half = (hi - lo) / 255 * 0.501, half_w = most / 127 * 0.501;
            const double bound = half * sum_b + half_w * sum_a + s.k * half * half_w;
            const double got = (double)y[size_of(r, s.n) + (size_t)i];
            test_require(fabs(got - want) <= bound, "%d, %d: %g, not %g within %g", r, i, got, want, bound);
            test_require(fabs(got - want) <= bound / 5, "%d, %d: %g, not %g: the errors do not average", r, i, got, want);
        }
    TEST_FREE(x, w, y, packed);
    ops->exec_destroy(exec);
}
END_TEST

TEST_MAIN("linear_int8", TEST(the_table), TEST(kernels_equal_the_reference), TEST(bits_do_not_depend_on_rows_or_threads),
          TEST(the_longest_sum_fits), TEST(forms_of_weights), TEST(not_numbers_are_not_hidden), TEST(near_the_exact_product))
