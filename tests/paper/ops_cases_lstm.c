// Cases of ops_cases.h for the LSTM. A backend that has none passes.
#include "tests/kernels/ops_cases_internal.h"

/* The operands of one layer: R of all directions, packed both ways, and what forward and backward read and write. */
typedef struct lstm_layer {
    int U, D;
    size_t n; // elements of h
    pair R, packed, packed_dx, gates, h, cells, dh, dgates, dR;
} lstm_layer;

static size_t lstm_pitch(size_t size) { return (size + 15) / 16 * 16; }

// R and both packed forms. A matrix with so many more rows has room for the rounded sizes of two directions.
static void lstm_weights(ops_context *c, lstm_layer *l, int U, int D)
{
    const size_t each = 4 * (size_t)U * (size_t)U;
    const double most = 1.5 / sqrt(U);
    l->U = U;
    l->D = D;
    l->R = ops_in(c, (size_t)D * each, -most, most);
    l->packed = ops_packed(c, D * 4 * U + 64, U);
    l->packed_dx = ops_packed(c, D * U + 64, 4 * U);
    lin_packing items[4];
    for (int precise = 0; precise < 2; precise++) {
        const size_t to = precise ? c->ref->weight_size(4 * U, U) : c->ops->weight_size(4 * U, U);
        const size_t to_dx = precise ? c->ref->weight_size(U, 4 * U) : c->ops->weight_size(U, 4 * U);
        for (int d = 0; d < D; d++) {
            items[d] = (lin_packing){.from = (size_t)d * each, .to = (size_t)d * lstm_pitch(to), .n = 4 * U, .k = U};
            items[D + d] = items[d];
            items[D + d].to = (size_t)d * lstm_pitch(to_dx);
            items[D + d].transposed = 1;
        }
        if (precise) {
            c->ref->weights_pack(c->ref_exec, l->packed.d, l->R.d, items, D);
            c->ref->weights_pack(c->ref_exec, l->packed_dx.d, l->R.d, items + D, D);
        } else {
            c->ops->weights_pack(c->exec, l->packed.f, l->R.f, items, D);
            c->ops->weights_pack(c->exec, l->packed_dx.f, l->R.f, items + D, D);
        }
    }
}

static void lstm_operands(ops_context *c, lstm_layer *l, int rows)
{
    l->n = (size_t)rows * (size_t)l->D * (size_t)l->U;
    l->gates = ops_inout(c, 4 * l->n, -3, 3);
    l->h = ops_out(c, l->n);
    l->cells = ops_out(c, l->n);
    l->dh = ops_in(c, l->n, -1, 1);
    l->dgates = ops_out(c, 4 * l->n);
    l->dR = ops_inout(c, l->R.n, -1, 1);
}

static void lstm_shape(ops_context *c, const int *lengths, int B, int U, int D, int with_states)
{
    const lin_segments s = ops_segments_of(c, lengths, B);
    lstm_layer l;
    lstm_weights(c, &l, U, D);
    lstm_operands(c, &l, s.rows);
    ops_states states = {0};
    if (with_states) states = ops_some_states(c, B, 2 * (size_t)U, -1, 1);
    c->ops->lstm_forward(c->exec, l.h.f, l.cells.f, l.gates.f, l.packed.f, &s, U, D, states.f, states.at);
    if (!c->options->digest_only)
        c->ref->lstm_forward(c->ref_exec, l.h.d, l.cells.d, l.gates.d, l.packed.d, &s, U, D, states.d, states.at);
    ops_check_scaled(c, "h", l.h, 3e-6, 1);
    ops_check_scaled(c, "cells", l.cells, 3e-6, 1);
    ops_check_scaled(c, "gates", l.gates, 3e-6, 1);
    for (int b = 0; with_states && b < B; b++) ops_check_scaled(c, "state", states.of[b], 3e-6, 1);
    if (!with_states) {
        c->ops->lstm_backward(c->exec, l.dgates.f, l.dR.f, l.dh.f, l.h.f, l.cells.f, l.gates.f, l.packed_dx.f, &s, U, D);
        if (!c->options->digest_only) {
            c->ref->lstm_backward(c->ref_exec, l.dgates.d, l.dR.d, l.dh.d, l.h.d, l.cells.d, l.gates.d, l.packed_dx.d, &s, U, D);
        }
        ops_check_scaled(c, "dgates", l.dgates, 5e-6, 1);
        ops_check_scaled(c, "dR", l.dR, 5e-6, 1);
    }
    ops_end(c);
}

/* A NaN and an infinity affect only the frames that follow in their utterance. */
static void lstm_not_a_number(ops_context *c)
{
    enum { U = 37 };
    const lin_segments s = ops_segments_of(c, (const int[]){3, 7, 5, 6}, 4);
    lstm_layer l;
    lstm_weights(c, &l, U, 1);
    lstm_operands(c, &l, s.rows);
    l.gates.f[4 * U * (s.offsets[1] + 2) + 5] = NAN;           // the input gate of a unit
    l.gates.f[4 * U * s.offsets[3] + U] = -INFINITY; // a forget gate of 0 on a cell of 0
    ops_say(c, "lstm with a gate that is not a number");
    c->ops->lstm_forward(c->exec, l.h.f, l.cells.f, l.gates.f, l.packed.f, &s, U, 1, NULL, 0);
    ops_done(c);
    for (int i = 0; i < s.rows * U; i++) {
        const int row = i / U - s.offsets[1], hit = row == 2 ? i % U == 5 : row > 2 && row < 7;
        test_require(hit ? isnan(l.h.f[i]) : isfinite(l.h.f[i]), "%s: h of row %d is %g", c->what, i / U, (double)l.h.f[i]);
    }
    ops_end(c);
}

/* All steps of a layer recorded in a graph: each replay gives the bits of the call. */
static void lstm_graph(ops_context *c)
{
    enum { U = 17, D = 2 };
    lin_graph *recorded = NULL;
    const lin_segments s = ops_segments_of(c, (const int[]){4, 0, 7}, 3);
    lstm_layer l;
    lstm_weights(c, &l, U, D);
    lstm_operands(c, &l, s.rows);
    pair gates = ops_out(c, 4 * l.n), h = ops_out(c, l.n);
    ops_say(c, "lstm in a graph");
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 1) ck_assert_int_eq(c->ops->graph_begin(c->exec, NULL), LIN_OK);
        if (turn < 2) {
            c->ops->copy(c->exec, gates.f, l.gates.f, 4 * l.n * sizeof *gates.f);
            c->ops->lstm_forward(c->exec, turn ? h.f : l.h.f, l.cells.f, gates.f, l.packed.f, &s, U, D, NULL, 0);
        }
        if (turn == 1) ck_assert_int_eq(c->ops->graph_end(c->exec, &recorded, NULL), LIN_OK);
        if (turn == 0) continue;
        c->ops->graph_launch(c->exec, recorded);
        ops_done(c);
        test_same_f32(c->what, h.f, l.h.f, l.n);
        test_poison(h.f, l.n * sizeof *h.f);
    }
    c->ops->graph_destroy(recorded);
    ops_end(c);
}

void ops_case_lstm(ops_context *c)
{
    const int widths[] = {1, 3, 16, 17, 52, 65};
    if (!c->ops->lstm_forward) return;
    for (int i = 0; i < OPS_N_LAYOUTS; i++)
        for (int w = 0; w < 6; w++)
            for (int D = 1; D <= 2; D++)
                for (int with_states = 0; with_states <= (D == 1); with_states++) {
                    if (ops_thin(c, 13) || ops_too_large(c, &ops_layouts[i])) continue;
                    ops_say(c, "lstm layout %d U %d directions %d states %d", i, widths[w], D, with_states);
                    lstm_shape(c, ops_layouts[i].lengths, ops_layouts[i].B, widths[w], D, with_states);
                }
    const int many[] = {2, 1, 3, 0, 2, 2, 2, 1, 2, 2, 4, 2, 0, 1, 2, 2, 2, 3, 1}; // two tiles of utterances on a GPU
    for (int D = 1; D <= 2; D++) {
        ops_say(c, "lstm of 19 utterances, directions %d", D);
        lstm_shape(c, many, 19, 9, D, 0);
    }
    lstm_not_a_number(c);
    if (c->ops->graph_begin) lstm_graph(c);
}

// A long utterance, the width that matters, and more utterances than advance together.
void ops_case_lstm_large(ops_context *c)
{
    int lengths[150];
    if (!c->ops->lstm_forward) return;
    for (int i = 0; i < 4; i++) { // weights that fill each size of a GPU's register arrays, and too many for them
        const int widths[] = {130, 200, 321, 514};
        ops_say(c, "lstm U %d", widths[i]);
        lstm_shape(c, (const int[]){2, 3}, 2, widths[i], i < 2 ? 2 : 1, 0);
    }
    for (int b = 0; b < 19; b++) lengths[b] = b * 5 % 4;
    ops_say(c, "lstm of 19 utterances, U 100");
    lstm_shape(c, lengths, 19, 100, 2, 0);
    if (c->options->quick) return;
    ops_say(c, "lstm of 400 frames, U 96");
    lstm_shape(c, (const int[]){400, 3, 0, 120}, 4, 96, 2, 0);
    ops_say(c, "lstm of utterances that end with a block of rows of the weight gradient");
    lstm_shape(c, (const int[]){192, 191, 2, 0, 190}, 5, 9, 2, 0);
    ops_say(c, "lstm U 320");
    lstm_shape(c, (const int[]){5, 2, 7, 3, 6, 1, 4, 7}, 8, 320, 2, 0);
    ops_say(c, "lstm of widths around the scratch's");
    lstm_shape(c, (const int[]){2, 0, 3, 1, 4}, 5, 1023, 2, 0);
    ops_say(c, "lstm U 1024");
    for (int b = 0; b < 60; b++) lengths[b] = b % 3;
    lstm_shape(c, lengths, 60, 1024, 1, 0);
    ops_say(c, "lstm U 320 with states");
    lstm_shape(c, (const int[]){4}, 1, 320, 1, 1);
    for (int b = 0; b < 150; b++) lengths[b] = ops_pick(c, 0, 6);
    for (int D = 1; D <= 2; D++) {
        ops_say(c, "lstm of 150 utterances, directions %d", D);
        lstm_shape(c, lengths, 150, 33, D, 0);
    }
}

/* The utterances of a batch one by one: the same bits. */
void ops_case_lstm_alone(ops_context *c)
{
    const int widths[] = {5, 48, 70};
    if (!c->ops->lstm_forward) return;
    for (int i = 0; i < OPS_N_LAYOUTS; i++)
        for (int w = 0; w < 3; w++)
            for (int D = 1; D <= 2; D++) {
                if (ops_thin(c, 11) || ops_too_large(c, &ops_layouts[i])) continue;
                const int U = widths[w];
                const size_t row = (size_t)(D * U);
                const lin_segments s = ops_segments(c, &ops_layouts[i]);
                ops_say(c, "lstm one by one, layout %d U %d directions %d", i, U, D);
                lstm_layer l;
                lstm_weights(c, &l, U, D);
                lstm_operands(c, &l, s.rows);
                pair gates = ops_out(c, 4 * l.n), h = ops_out(c, l.n), cells = ops_out(c, l.n), dgates = ops_out(c, 4 * l.n);
                if (l.n) memcpy(gates.f, l.gates.f, 4 * l.n * sizeof(float));
                c->ops->lstm_forward(c->exec, l.h.f, l.cells.f, l.gates.f, l.packed.f, &s, U, D, NULL, 0);
                c->ops->lstm_backward(c->exec, l.dgates.f, l.dR.f, l.dh.f, l.h.f, l.cells.f, l.gates.f, l.packed_dx.f, &s, U, D);
                for (int b = 0; b < s.B; b++) {
                    const lin_segments one = ops_segments_of(c, &ops_layouts[i].lengths[b], 1);
                    const size_t at = (size_t)s.offsets[b] * row;
                    c->ops->lstm_forward(c->exec, h.f + at, cells.f + at, gates.f + 4 * at, l.packed.f, &one, U, D, NULL, 0);
                    c->ops->lstm_backward(c->exec, dgates.f + 4 * at, l.dR.f, l.dh.f + at, h.f + at, cells.f + at,
                                          gates.f + 4 * at, l.packed_dx.f, &one, U, D);
                }
                ops_check_same(c, "h", h.f, l.h.f, l.n, 3e-6);
                ops_check_same(c, "cells", cells.f, l.cells.f, l.n, 3e-6);
                ops_check_same(c, "gates", gates.f, l.gates.f, 4 * l.n, 3e-6);
                ops_check_same(c, "dgates", dgates.f, l.dgates.f, 4 * l.n, 5e-6);
                ops_end(c);
            }
}

/* x are gates, which the operation changes. */
static void lstm_call(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                      float *const *carry, size_t at)
{
    const lstm_layer *l = shape;
    c->ops->copy(c->exec, l->gates.f, x, (size_t)segments->rows * 4 * (size_t)l->U * sizeof *x);
    c->ops->lstm_forward(c->exec, y, l->cells.f, l->gates.f, l->packed.f, segments, l->U, 1, carry, at);
}

void ops_case_lstm_splits(ops_context *c)
{
    const int widths[] = {1, 24, 53};
    const ops_layout longer = {3, {150, 64, 257}};
    if (!c->ops->lstm_forward) return;
    for (int w = 0; w < 3; w++)
        for (int i = 0; i <= OPS_N_LAYOUTS; i++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1) {
                if (ops_thin(c, 13) || (c->options->quick && (i == OPS_N_LAYOUTS || ops_too_large(c, &ops_layouts[i])))) continue;
                const ops_layout *layout = i < OPS_N_LAYOUTS ? &ops_layouts[i] : &longer;
                const size_t U = (size_t)widths[w];
                lstm_layer l;
                lstm_weights(c, &l, widths[w], 1);
                lstm_operands(c, &l, ops_segments(c, layout).rows);
                ops_say(c, "lstm in pieces up to %d, layout %d U %d", longest, i, widths[w]);
                ops_check_splits(c, lstm_call, &l, layout, 4 * U, U, 2 * U, longest, 3e-6);
            }
}
