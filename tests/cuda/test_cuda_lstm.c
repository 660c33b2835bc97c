// The LSTM of the CUDA backend against plain loops in double precision: directions, states, batches of several tiles, widths in
// every form of the kernels, and the three precisions.
#include "base/rng.h"
#include "tests/cuda/device.h"

enum { MOST_B = 64 };

static const lin_ops *ops;
static lin_exec *exec;
static uint64_t counter;

static void setup(lin_precision precision)
{
    test_device_memory();
    ops = test_device(precision);
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    counter = 0;
}

static void teardown(void)
{
    ops->exec_destroy(exec);
    test_device_memory_end();
}

static void done(void)
{
    lin_error err = {0};
    ck_assert_msg(ops->finish(exec, &err) == LIN_OK, "%s", err.message);
}

static double uniform(double lo, double hi) { return lo + (hi - lo) * lin_random_uniform(1997, counter++); }

// The same numbers for the backend and, wider, for the loops.
typedef struct pair {
    float *f;
    double *d;
    size_t n;
} pair;

static pair pair_of(size_t n, double range, int shift)
{
    pair p = {test_buffer_shifted(n, sizeof(float), (size_t)shift), test_buffer(n, sizeof(double)), n};
    for (size_t i = 0; i < n && range > 0; i++) {
        p.f[i] = (float)uniform(-range, range);
        p.d[i] = (double)p.f[i];
    }
    return p;
}

static void check(const char *what, pair p, double tolerance)
{
    test_guards(p.f, what);
    test_close_scaled_f32(what, p.f, p.d, p.n, tolerance, 1);
    test_buffer_free(p.f);
    test_buffer_free(p.d);
}

/* ---- the plain loops ----------------------------------------------------------------------------------------------------------- */

typedef struct layer {
    int U, directions;
    const double *R; // [directions, 4, U, U]
    lin_segments segments;
} layer;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// Row t of an utterance in the order of the direction, or -1 beyond its ends.
static int row_at(const layer *l, int b, int d, int t)
{
    const int first = l->segments.offsets[b], n = l->segments.offsets[b + 1] - first;
    return t < 0 || t >= n ? -1 : d ? first + n - 1 - t : first + t;
}

static void plain_forward(const layer *l, double *h, double *cells, double *gates, double *states)
{
    const int U = l->U, D = l->directions;
    for (int b = 0; b < l->segments.B; b++)
        for (int d = 0; d < D; d++) {
            double *state = states ? states + (size_t)b * 2 * (size_t)U : NULL;
            const double *hp = state, *cp = state ? state + U : NULL;
            for (int t = 0; row_at(l, b, d, t) >= 0; t++) {
                const size_t row = (size_t)(row_at(l, b, d, t) * D + d);
                double *z = gates + row * 4 * (size_t)U, *hn = h + row * (size_t)U, *cn = cells + row * (size_t)U;
                for (int i = 0; i < 4 * U; i++) {
                    for (int k = 0; hp && k < U; k++) z[i] += l->R[(size_t)(d * 4 * U + i) * (size_t)U + (size_t)k] * hp[k];
                    z[i] = i / U == 2 ? tanh(z[i]) : sigmoid(z[i]);
                }
                for (int u = 0; u < U; u++) {
                    cn[u] = z[U + u] * (cp ? cp[u] : 0) + z[u] * z[2 * U + u];
                    hn[u] = z[3 * U + u] * tanh(cn[u]);
                }
                hp = hn, cp = cn;
            }
            for (int u = 0; u < U && state && hp != state; u++) {
                state[u] = hp[u];
                state[U + u] = cp[u];
            }
        }
}

static void plain_backward(const layer *l, double *dgates, double *dR, const double *dh, const double *h, const double *cells,
                           const double *gates)
{
    const int U = l->U, D = l->directions;
    double *after = test_buffer(2 * (size_t)U, sizeof *after), *dc = after + U;
    for (int b = 0; b < l->segments.B; b++)
        for (int d = 0; d < D; d++) {
            const int T = l->segments.offsets[b + 1] - l->segments.offsets[b];
            for (int u = 0; u < 2 * U; u++) after[u] = 0;
            for (int t = T - 1; t >= 0; t--) {
                const size_t row = (size_t)(row_at(l, b, d, t) * D + d);
                const size_t prev = t > 0 ? (size_t)(row_at(l, b, d, t - 1) * D + d) : 0;
                const double *z = gates + row * 4 * (size_t)U;
                double *dz = dgates + row * 4 * (size_t)U;
                for (int u = 0; u < U; u++) {
                    const double i = z[u], f = z[U + u], g = z[2 * U + u], o = z[3 * U + u], y = tanh(cells[row * (size_t)U + (size_t)u]),
                                 total = dh[row * (size_t)U + (size_t)u] + after[u];
                    dc[u] += total * o * (1 - y * y);
                    dz[u] = dc[u] * g * i * (1 - i);
                    dz[U + u] = t > 0 ? dc[u] * cells[prev * (size_t)U + (size_t)u] * f * (1 - f) : 0;
                    dz[2 * U + u] = dc[u] * i * (1 - g * g);
                    dz[3 * U + u] = total * y * o * (1 - o);
                    dc[u] *= f;
                }
                for (int k = 0; k < U; k++) {
                    after[k] = 0;
                    for (int i = 0; i < 4 * U; i++) {
                        const size_t at = (size_t)(d * 4 * U + i) * (size_t)U + (size_t)k;
                        after[k] += dz[i] * l->R[at];
                        if (t > 0) dR[at] += dz[i] * h[prev * (size_t)U + (size_t)k];
                    }
                }
            }
        }
    test_buffer_free(after);
}

/* ---- a layer against them ------------------------------------------------------------------------------------------------------ */

static size_t rounded(size_t n) { return (n + 15) / 16 * 16; }

// R of both directions, packed for the forward or the backward pass.
static float *pack(const float *R, int U, int directions, int transposed)
{
    const size_t apart = rounded(transposed ? ops->weight_size(U, 4 * U) : ops->weight_size(4 * U, U));
    float *packed = test_buffer(apart * (size_t)directions, sizeof *packed);
    lin_packing items[2];
    for (int d = 0; d < directions; d++)
        items[d] = (lin_packing){(size_t)d * 4 * (size_t)U * (size_t)U, (size_t)d * apart, 4 * U, U, transposed};
    ops->weights_pack(exec, packed, R, items, directions);
    done();
    return packed;
}

static lin_segments segments_of(const int *counts, int B, int **offsets)
{
    lin_segments s = {.B = B};
    *offsets = test_buffer((size_t)B + 1, sizeof **offsets);
    (*offsets)[0] = 0;
    for (int b = 0; b < B; b++) {
        (*offsets)[b + 1] = (*offsets)[b] + counts[b];
        if (counts[b] > s.longest) s.longest = counts[b];
    }
    s.rows = (*offsets)[B];
    s.offsets = *offsets;
    return s;
}

static void compare(const int *counts, int B, int U, int directions, int shift, double tolerance)
{
    int *offsets;
    layer l = {U, directions, NULL, segments_of(counts, B, &offsets)};
    const size_t units = (size_t)(l.segments.rows * directions * U), weights = (size_t)(directions * 4 * U * U);
    pair R = pair_of(weights, 2 / sqrt(U), shift), gates = pair_of(4 * units, 2, shift), h = pair_of(units, 0, shift),
         cells = pair_of(units, 0, shift), dh = pair_of(units, 1, shift), dgates = pair_of(4 * units, 0, shift),
         dR = pair_of(weights, 1, shift);
    float *packed = pack(R.f, U, directions, 0), *transposed = pack(R.f, U, directions, 1);
    l.R = R.d;
    plain_forward(&l, h.d, cells.d, gates.d, NULL);
    ops->lstm_forward(exec, h.f, cells.f, gates.f, packed, &l.segments, U, directions, NULL, 0);
    done();
    for (size_t i = 0; i < 4 * units; i++) gates.d[i] = (double)gates.f[i]; // each pass by itself
    test_close_scaled_f32("cells", cells.f, cells.d, units, tolerance, 1);
    test_close_scaled_f32("h", h.f, h.d, units, tolerance, 1);
    for (size_t i = 0; i < units; i++) {
        cells.d[i] = (double)cells.f[i];
        h.d[i] = (double)h.f[i];
    }
    plain_backward(&l, dgates.d, dR.d, dh.d, h.d, cells.d, gates.d);
    ops->lstm_backward(exec, dgates.f, dR.f, dh.f, h.f, cells.f, gates.f, transposed, &l.segments, U, directions);
    done();
    check("dgates", dgates, tolerance * 4);
    check("dR", dR, tolerance * 8);
    check("h", h, 0);
    check("cells", cells, 0);
    check("gates", gates, 0);
    check("R", R, 0);
    check("dh", dh, 0);
    test_buffer_free(packed);
    test_buffer_free(transposed);
    test_buffer_free(offsets);
}

static void compare_all(double tolerance)
{
    const int counts[] = {7, 0, 1, 12, 3}, many[] = {2, 1, 3, 0, 2, 2, 2, 1, 2, 2, 4, 2, 0, 1, 2, 2, 2, 3, 1}, empty[] = {0, 0};
    const int widths[] = {1, 5, 8, 20, 33, 64};
    for (int directions = 1; directions < 3; directions++) {
        for (int w = 0; w < 6; w++) compare(counts, 5, widths[w], directions, w % 2, tolerance);
        compare(many, 19, 9, directions, 0, tolerance); // two tiles of utterances
        compare(many, 2, 130, directions, 0, tolerance);
        compare(empty, 2, 8, directions, 0, tolerance);
        compare(empty, 0, 8, directions, 0, tolerance);
    }
}

START_TEST(fp32)
{
    setup(LIN_PRECISION_FP32);
    compare_all(2e-6);
    teardown();
}
END_TEST

START_TEST(tf32)
{
    setup(LIN_PRECISION_TF32);
    compare_all(2e-3);
    teardown();
}
END_TEST

START_TEST(bf16)
{
    setup(LIN_PRECISION_BF16);
    compare_all(2e-2);
    teardown();
}
END_TEST

// Widths whose weights fill each size of the register arrays, and one with weights read from memory in every step. The emulated
// device has no room for all blocks of the first.
START_TEST(wide)
{
    const int counts[] = {2, 3}, widths[] = {200, 321, 514};
    setup(LIN_PRECISION_FP32);
    for (int w = 0; w < 3; w++) compare(counts, 2, widths[w], w == 0 ? 2 : 1, 0, 4e-6);
    teardown();
}
END_TEST

// Utterances cut into pieces, any number of frames of each per call, some without a state.
START_TEST(states)
{
    enum { B = 5, U = 12, AT = 3 };
    const int counts[B] = {9, 1, 0, 14, 5};
    setup(LIN_PRECISION_FP32);
    int *offsets;
    layer l = {U, 1, NULL, segments_of(counts, B, &offsets)};
    const size_t units = (size_t)l.segments.rows * U;
    pair R = pair_of(4 * U * U, 0.6, 0), gates = pair_of(4 * units, 2, 0), state = pair_of((size_t)B * 2 * U, 1, 0);
    float *packed = pack(R.f, U, 1, 0), *state_f[B], **table = test_buffer(B, sizeof *table);
    double *h = test_buffer(units, sizeof *h), *cells = test_buffer(units, sizeof *cells);
    for (int b = 0; b < B; b++) {
        state_f[b] = test_buffer(AT + 2 * U, sizeof *state_f[b]);
        for (int i = 0; i < 2 * U; i++) state_f[b][AT + i] = state.f[b * 2 * U + i];
    }
    float *z = test_buffer(4 * units, sizeof *z), *hf = test_buffer(units, sizeof *hf), *cf = test_buffer(units, sizeof *cf);
    memcpy(z, gates.f, 4 * units * sizeof *z);
    l.R = R.d;
    plain_forward(&l, h, cells, gates.d, state.d);
    for (int begun[B] = {0}, left = l.segments.rows; left > 0;) {
        int some[B], *piece_offsets;
        for (int b = 0; b < B; b++) {
            some[b] = (int)uniform(0, 4);
            if (some[b] > counts[b] - begun[b]) some[b] = counts[b] - begun[b];
            table[b] = some[b] || b % 2 ? state_f[b] : NULL;
        }
        const lin_segments piece = segments_of(some, B, &piece_offsets);
        const size_t n = (size_t)piece.rows * U;
        float *pz = test_buffer(4 * n, sizeof *pz), *ph = test_buffer(n, sizeof *ph), *pc = test_buffer(n, sizeof *pc);
        for (int b = 0; b < B; b++)
            for (int i = 0; i < some[b] * 4 * U; i++)
                pz[piece.offsets[b] * 4 * U + i] = z[(l.segments.offsets[b] + begun[b]) * 4 * U + i];
        ops->lstm_forward(exec, ph, pc, pz, packed, &piece, U, 1, table, AT);
        done();
        for (int b = 0; b < B; b++) {
            memcpy(hf + (l.segments.offsets[b] + begun[b]) * U, ph + piece.offsets[b] * U, (size_t)(some[b] * U) * sizeof *hf);
            memcpy(cf + (l.segments.offsets[b] + begun[b]) * U, pc + piece.offsets[b] * U, (size_t)(some[b] * U) * sizeof *cf);
            begun[b] += some[b];
        }
        left -= piece.rows;
        test_buffer_free(pz);
        test_buffer_free(ph);
        test_buffer_free(pc);
        test_buffer_free(piece_offsets);
    }
    test_close_scaled_f32("h", hf, h, units, 2e-6, 1);
    test_close_scaled_f32("cells", cf, cells, units, 2e-6, 1);
    for (int b = 0; b < B; b++) {
        test_close_scaled_f32("state", state_f[b] + AT, state.d + b * 2 * U, 2 * U, 2e-6, 1);
        test_buffer_free(state_f[b]);
    }
    test_buffer_free(h);
    test_buffer_free(cells);
    test_buffer_free(z);
    test_buffer_free(hf);
    test_buffer_free(cf);
    test_buffer_free(table);
    test_buffer_free(packed);
    test_buffer_free(offsets);
    check("R", R, 0);
    test_buffer_free(gates.f);
    test_buffer_free(gates.d);
    test_buffer_free(state.f);
    test_buffer_free(state.d);
    teardown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_lstm");
    TCase *cases = tcase_create("lstm");
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, fp32);
    tcase_add_test(cases, tf32);
    tcase_add_test(cases, bf16);
    tcase_add_test(cases, wide);
    tcase_add_test(cases, states);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
