// [cuda] The LSTM of the CUDA backend against ref/, where the shapes of ops_cases.h do not reach: batches of several tiles,
// widths in every form of the kernels, one launch for all steps and one for each, the three precisions, a graph.
#include "tests/cuda/pairs.h"

static pair pair_of(size_t n, double range, int shift) { return pair_in(n, -range, range, shift); }

static void widen(pair p)
{
    for (size_t i = 0; i < p.n; i++) p.d[i] = (double)p.f[i];
}

/* ---- a layer against ref/ -------------------------------------------------------------------------------------------------- */

static size_t rounded(size_t n) { return (n + 15) / 16 * 16; }

// R of both directions, packed for the forward or the backward pass.
static pair pack(pair R, int U, int directions, int transposed)
{
    const int n = transposed ? U : 4 * U, k = transposed ? 4 * U : U;
    lin_packing items[2];
    size_t apart = rounded(ops->weight_size(n, k)), apart_ref = rounded(ref->weight_size(n, k));
    pair packed = {test_buffer(apart * (size_t)directions, sizeof(float)),
                   test_buffer(apart_ref * (size_t)directions, sizeof(double)), 0};
    for (int d = 0; d < directions; d++)
        items[d] = (lin_packing){.from = (size_t)d * 4 * (size_t)U * (size_t)U, .to = (size_t)d * apart,
                                 .n = 4 * U, .k = U, .transposed = transposed};
    ops->weights_pack(exec, packed.f, R.f, items, directions);
    for (int d = 0; d < directions; d++) items[d].to = (size_t)d * apart_ref;
    ref->weights_pack(ref_exec, packed.d, R.d, items, directions);
    done();
    return packed;
}

static void compare(const int *counts, int B, int U, int directions, int shift, double tolerance)
{
    const lin_segments segments = segments_of(counts, B);
    const size_t units = (size_t)(segments.rows * directions * U), weights = (size_t)(directions * 4 * U * U);
    pair R = pair_of(weights, 2 / sqrt(U), shift), gates = pair_of(4 * units, 2, shift), h = pair_of(units, 0, shift),
         cells = pair_of(units, 0, shift), dh = pair_of(units, 1, shift), dgates = pair_of(4 * units, 0, shift),
         dR = pair_of(weights, 1, shift), packed = pack(R, U, directions, 0), transposed = pack(R, U, directions, 1);
    ops->lstm_forward(exec, h.f, cells.f, gates.f, packed.f, &segments, U, directions, NULL, 0);
    ref->lstm_forward(ref_exec, h.d, cells.d, gates.d, packed.d, &segments, U, directions, NULL, 0);
    done();
    test_close_scaled_f32("gates", gates.f, gates.d, 4 * units, tolerance, 1);
    test_close_scaled_f32("cells", cells.f, cells.d, units, tolerance, 1);
    test_close_scaled_f32("h", h.f, h.d, units, tolerance, 1);
    widen(gates); // each pass by itself
    widen(cells);
    widen(h);
    ops->lstm_backward(exec, dgates.f, dR.f, dh.f, h.f, cells.f, gates.f, transposed.f, &segments, U, directions);
    ref->lstm_backward(ref_exec, dgates.d, dR.d, dh.d, h.d, cells.d, gates.d, transposed.d, &segments, U, directions);
    done();
    check("dgates", dgates, tolerance * 4);
    check("dR", dR, tolerance * 8);
    check("h", h, 0);
    check("cells", cells, 0);
    check("gates", gates, 0);
    check("R", R, 0);
    check("dh", dh, 0);
    pair *const all[] = {&dgates, &dR, &h, &cells, &gates, &R, &dh, &packed, &transposed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pair_free(*all[i]);
    segments_free(segments);
}

static const int many[] = {2, 1, 3, 0, 2, 2, 2, 1, 2, 2, 4, 2, 0, 1, 2, 2, 2, 3, 1}; // two tiles of utterances

static void compare_all(double tolerance)
{
    const int counts[] = {7, 0, 1, 12, 3}, empty[] = {0, 0};
    const int widths[] = {1, 5, 8, 20, 33, 64};
    for (int directions = 1; directions < 3; directions++) {
        for (int w = 0; w < 6; w++) compare(counts, 5, widths[w], directions, w % 2, tolerance);
        compare(many, 19, 9, directions, 0, tolerance);
        compare(many, 2, 130, directions, 0, tolerance);
        compare(empty, 2, 8, directions, 0, tolerance);
        compare(empty, 0, 8, directions, 0, tolerance);
    }
}

START_TEST(fp32)
{
    begin(LIN_PRECISION_FP32, 1997);
    compare_all(2e-6);
    end();
}
END_TEST

START_TEST(tf32)
{
    begin(LIN_PRECISION_TF32, 1997);
    compare_all(2e-3);
    end();
}
END_TEST

START_TEST(bf16)
{
    begin(LIN_PRECISION_BF16, 1997);
    compare_all(2e-2);
    end();
}
END_TEST

// Widths whose weights fill each size of the register arrays, and one with weights read from memory in every step. The emulated
// device has no room for all blocks of the first, and for one group of the last alone, whose blocks process two tiles.
START_TEST(wide)
{
    const int counts[] = {2, 3}, widths[] = {200, 321, 514};
    begin(LIN_PRECISION_FP32, 1997);
    for (int w = 0; w < 3; w++) compare(counts, 2, widths[w], w == 0 ? 2 : 1, 0, 4e-6);
    compare(many, 19, 100, 2, 0, 4e-6);
    end();
}
END_TEST

// All steps of a layer recorded in a graph: each replay gives the bits of the call.
START_TEST(graph)
{
    const int counts[] = {4, 0, 7}, B = 3, U = 17, D = 2;
    begin(LIN_PRECISION_FP32, 1997);
    lin_graph *recorded = NULL;
    const lin_segments segments = segments_of(counts, B);
    const size_t units = (size_t)(segments.rows * D * U), bytes = 4 * units * sizeof(float);
    pair R = pair_of((size_t)(D * 4 * U * U), 0.5, 0), input = pair_of(4 * units, 2, 0), gates = pair_of(4 * units, 0, 0),
         h = pair_of(units, 0, 0), cells = pair_of(units, 0, 0), packed = pack(R, U, D, 0);
    for (int turn = 0; turn < 4; turn++) {
        memset(h.f, 0xFF, units * sizeof *h.f);
        if (turn == 1) ck_assert_int_eq(ops->graph_begin(exec, NULL), LIN_OK);
        if (turn < 2) {
            ops->copy(exec, gates.f, input.f, bytes);
            ops->lstm_forward(exec, h.f, cells.f, gates.f, packed.f, &segments, U, D, NULL, 0);
        }
        if (turn == 1) ck_assert_int_eq(ops->graph_end(exec, &recorded, NULL), LIN_OK);
        if (turn > 0) ops->graph_launch(exec, recorded);
        done();
        if (turn == 0) widen(h);
        else test_close_f32("h", h.f, h.d, units, 0);
    }
    ops->graph_destroy(recorded);
    pair_free(R);
    pair_free(input);
    pair_free(gates);
    pair_free(h);
    pair_free(cells);
    pair_free(packed);
    segments_free(segments);
    end();
}
END_TEST

TEST_MAIN("cuda_lstm", TEST(fp32), TEST(tf32), TEST(bf16), TEST(wide), TEST(graph))
