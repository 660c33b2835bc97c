// Cases of ops_cases.h for the operations along an utterance: convolution, attention, CTC.
#include "tests/kernels/ops_cases_internal.h"

/* ---- shared by convolution and attention: a state per utterance, passed from call to call ---------------------------------- */

/* States of an utterance begin so many elements into their blocks. */
size_t ops_state_at(ops_context *c) { return (size_t)(ops_pick(c, 0, 2) * 12 + ops_pick(c, 0, 1)); }

void ops_check_splits(ops_context *c, ops_carrying call, const void *shape, const ops_layout *layout, size_t in,
                      size_t out, size_t width_carry, int longest, double tolerance)
{
    const lin_segments all = ops_segments(c, layout);
    int B = layout->B, done[OPS_MAX_B] = {0}, left = all.rows;
    const size_t at = ops_state_at(c);
    pair x = ops_in(c, (size_t)all.rows * in, -2, 2), whole = ops_out(c, (size_t)all.rows * out),
         no_carry = ops_out(c, (size_t)all.rows * out);
    float *carry[OPS_MAX_B], **whole_carry = ops_block(c, OPS_MAX_B, sizeof *whole_carry, NULL);
    for (int b = 0; b < B; b++) {
        whole_carry[b] = ops_inout(c, at + width_carry, 0, 0).f;
        carry[b] = ops_inout(c, at + width_carry, 0, 0).f;
    }
    call(c, shape, whole.f, x.f, &all, whole_carry, at);
    call(c, shape, no_carry.f, x.f, &all, NULL, 0);
    ops_check_same(c, "no state against a zero state", no_carry.f, whole.f, whole.n, tolerance);
    while (left > 0) {
        int lengths[OPS_MAX_B] = {0};
        float *some[OPS_MAX_B] = {0};
        for (int b = 0; b < B; b++) {
            int n = ops_pick(c, 0, longest);
            if (n > layout->lengths[b] - done[b]) n = layout->lengths[b] - done[b];
            lengths[b] = n;
            // An utterance that is complete in this call needs no state.
            some[b] = n == layout->lengths[b] && ops_pick(c, 0, 1) ? NULL : carry[b];
        }
        const int first_block = c->n_blocks;
        const lin_segments piece = ops_segments_of(c, lengths, B);
        float **table = ops_block(c, (size_t)B, sizeof *some, some);
        float *px = test_buffer_shifted((size_t)piece.rows * in, sizeof *px, ops_shift(c, 1));
        float *py = test_buffer_shifted((size_t)piece.rows * out, sizeof *py, ops_shift(c, 1));
        for (int b = 0; b < B && px; b++)
            if (lengths[b])
                memcpy(px + (size_t)piece.offsets[b] * in, x.f + (size_t)(all.offsets[b] + done[b]) * in,
                       (size_t)lengths[b] * in * sizeof *px);
        call(c, shape, py, px, &piece, table, at);
        ops_done(c);
        for (int b = 0; b < B; b++) {
            ops_check_same(c, "a piece", py + (size_t)piece.offsets[b] * out, whole.f + (size_t)(all.offsets[b] + done[b]) * out,
                           (size_t)lengths[b] * out, tolerance);
            if (!some[b]) memcpy(carry[b], whole_carry[b], (at + width_carry) * sizeof **carry);
            done[b] += lengths[b];
        }
        left -= piece.rows;
        test_guards(px, c->what);
        test_guards(py, c->what);
        TEST_FREE(px, py);
        ops_end_blocks(c, first_block);
    }
    for (int b = 0; b < B; b++) ops_check_same(c, "the state at the end", carry[b], whole_carry[b], at + width_carry, tolerance);
    ops_end(c);
}

ops_states ops_some_states(ops_context *c, int B, size_t count, double lo, double hi)
{
    ops_states s = {.at = ops_state_at(c)};
    float *f[OPS_MAX_B] = {0};
    double *d[OPS_MAX_B] = {0};
    for (int b = 0; b < B; b++) {
        s.of[b] = ops_inout(c, s.at + count, lo, hi);
        f[b] = b % 3 == 2 ? NULL : s.of[b].f;
        d[b] = b % 3 == 2 ? NULL : s.of[b].d;
    }
    s.f = ops_block(c, (size_t)B, sizeof *f, f);
    s.d = ops_block(c, (size_t)B, sizeof *d, d);
    return s;
}

/* ---- convolution ----------------------------------------------------------------------------------------------------------- */

static void ops_conv_shape(ops_context *c, const ops_layout *layout, int C, int K, int after)
{
    const lin_segments segments = ops_segments(c, layout);
    int B = layout->B;
    size_t n = (size_t)segments.rows * (size_t)C, nw = (size_t)(K * C), nc = (size_t)C;
    pair x = ops_in(c, n, -1, 1), w = ops_in(c, nw, -1, 1), bias = ops_in(c, nc, -1, 1), dy = ops_in(c, n, -1, 1);
    pair y = ops_out(c, n), carried = ops_out(c, n), dx = ops_out(c, n), dw = ops_inout(c, nw, -1, 1),
         db = ops_inout(c, nc, -1, 1);
    const ops_states tails = ops_some_states(c, B, (size_t)((K - 1) * C), -1, 1);
    c->ops->conv_forward(c->exec, y.f, x.f, w.f, bias.f, &segments, C, K, after, NULL, 0);
    c->ops->conv_forward(c->exec, carried.f, x.f, w.f, bias.f, &segments, C, K, 0, tails.f, tails.at);
    c->ops->conv_backward(c->exec, dx.f, dw.f, db.f, dy.f, x.f, w.f, &segments, C, K, after);
    if (!c->options->digest_only) {
        c->ref->conv_forward(c->ref_exec, y.d, x.d, w.d, bias.d, &segments, C, K, after, NULL, 0);
        c->ref->conv_forward(c->ref_exec, carried.d, x.d, w.d, bias.d, &segments, C, K, 0, tails.d, tails.at);
        c->ref->conv_backward(c->ref_exec, dx.d, dw.d, db.d, dy.d, x.d, w.d, &segments, C, K, after);
    }
    ops_check_scaled(c, "y", y, 1e-6, 1);
    ops_check_scaled(c, "y with tails", carried, 1e-6, 1);
    for (int b = 0; b < B; b++) ops_check(c, "tail", tails.of[b], 0); // a copy of inputs
    ops_check_scaled(c, "dx", dx, 1e-6, 1);
    ops_check_scaled(c, "dw", dw, 2e-6, 1);
    ops_check_scaled(c, "db", db, 2e-6, 1);
    ops_end(c);
}

void ops_case_conv(ops_context *c)
{
    const int widths[] = {1, 7, 48, 192, 193}, kernels[] = {1, 2, 5, 15};
    for (int l = 0; l < OPS_N_LAYOUTS; l++)
        for (int w = 0; w < 5; w++)
            for (int k = 0; k < 4; k++) {
                if (ops_thin(c, 13) || ops_too_large(c, &ops_layouts[l])) continue;
                const int afters[] = {0, kernels[k] / 2, kernels[k] - 1};
                for (int a = 0; a < 3; a++) {
                    if (a && afters[a] == afters[a - 1]) continue;
                    ops_say(c, "conv layout %d C %d K %d, %d after", l, widths[w], kernels[k], afters[a]);
                    ops_conv_shape(c, &ops_layouts[l], widths[w], kernels[k], afters[a]);
                }
            }
}

typedef struct ops_conv_weights {
    int C, K;
    const float *w, *bias;
} ops_conv_weights;

static void ops_conv_call(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                          float *const *carry, size_t at)
{
    const ops_conv_weights *s = shape;
    c->ops->conv_forward(c->exec, y, x, s->w, s->bias, segments, s->C, s->K, 0, carry, at);
}

void ops_case_conv_splits(ops_context *c)
{
    const int shapes[][2] = {{7, 1}, {48, 2}, {33, 5}, {193, 15}};
    for (int s = 0; s < 4; s++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 60; longest = longest * 4 + 1) {
                int C = shapes[s][0], K = shapes[s][1];
                if (ops_thin(c, 7) || ops_too_large(c, &ops_layouts[l])) continue;
                pair w = ops_in(c, (size_t)(K * C), -1, 1), bias = ops_in(c, (size_t)C, -1, 1);
                ops_conv_weights shape = {C, K, w.f, bias.f};
                ops_say(c, "conv_forward in pieces up to %d, layout %d C %d K %d", longest, l, C, K);
                ops_check_splits(c, ops_conv_call, &shape, &ops_layouts[l], (size_t)C, (size_t)C, (size_t)((K - 1) * C), longest,
                                 1e-6);
            }
}

/* ---- attention ------------------------------------------------------------------------------------------------------------- */

static void ops_attention_shape(ops_context *c, const ops_layout *layout, int H, int E, int causal, double lo, double hi)
{
    const lin_segments segments = ops_segments(c, layout);
    size_t n = (size_t)segments.rows * (size_t)(H * E);
    pair qkv = ops_in(c, 3 * n, lo, hi), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), carried = ops_out(c, n),
         dqkv = ops_out(c, 3 * n);
    const ops_states states =
        ops_some_states(c, layout->B, (size_t)(H * (E + 1) * E), 0, 4); // z must be positive, as a sum of phi is
    ops_say(c, "attention B %d rows %d H %d E %d causal %d in %g..%g", layout->B, segments.rows, H, E, causal, lo, hi);
    c->ops->attention_forward(c->exec, y.f, qkv.f, &segments, H, E, causal, NULL, 0);
    c->ops->attention_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, &segments, H, E, causal);
    if (causal) c->ops->attention_forward(c->exec, carried.f, qkv.f, &segments, H, E, 1, states.f, states.at);
    if (!c->options->digest_only) {
        c->ref->attention_forward(c->ref_exec, y.d, qkv.d, &segments, H, E, causal, NULL, 0);
        c->ref->attention_backward(c->ref_exec, dqkv.d, dy.d, qkv.d, y.d, &segments, H, E, causal);
        if (causal) c->ref->attention_forward(c->ref_exec, carried.d, qkv.d, &segments, H, E, 1, states.d, states.at);
    }
    ops_check(c, "y", y, 4e-6);
    ops_check(c, "dqkv", dqkv, 2e-5);
    if (causal) ops_check(c, "y after a state", carried, 4e-6);
    for (int b = 0; b < layout->B; b++) ops_check(c, "state", states.of[b], 4e-6);
    ops_end(c);
}

void ops_case_attention(ops_context *c)
{
    const int widths[] = {1, 5, 8, 16, 32, 33, 64}, heads[] = {6, 1, 2, 3, 2, 1, 1};
    for (int causal = 0; causal < 2; causal++)
        for (int w = 0; w < 7; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                    ops_attention_shape(c, &ops_layouts[l], heads[w], widths[w], causal, -2, 2);
}

/* Many chunks of any chunked form, and the default network's heads. */
void ops_case_attention_long(ops_context *c)
{
    const ops_layout one = {1, {333}}, several = {3, {128, 129, 63}};
    const ops_layout stretches = {4, {1300, 0, 10, 700}}; // so long that a GPU gives an utterance to several blocks
    for (int causal = 0; causal < 2; causal++) {
        ops_attention_shape(c, &one, 1, 32, causal, -1, 1);
        ops_attention_shape(c, &stretches, 1, 32, causal, -1, 1);
        if (c->options->quick) continue;
        ops_attention_shape(c, &several, 1, 17, causal, -3, 3);
        ops_attention_shape(c, &ops_layouts[4], 6, 32, causal, -1, 1);
    }
}

/* phi at its ends: far below zero it is 0 (and y is 0 / eps), far above a large number. */
void ops_case_attention_extremes(ops_context *c)
{
    for (int causal = 0; causal < 2; causal++) {
        const ops_layout *layout = &ops_layouts[c->options->quick ? 4 : 7];
        ops_attention_shape(c, layout, 2, 32, causal, -20, 20);
        ops_attention_shape(c, layout, 2, 8, causal, 50, 100);
        const double ends[] = {-50, -90, -104, -200, -1e4, -1e30};
        for (int e = 0; e < 6; e++) {
            enum { ROWS = 65, H = 2, E = 32, N = ROWS * H * E };
            const int rows = ROWS;
            if (ops_thin(c, 5)) continue;
            const lin_segments segments = ops_segments_of(c, &rows, 1);
            pair qkv = ops_in(c, 3 * N, ends[e], 0.9 * ends[e]), y = ops_out(c, N), dqkv = ops_out(c, 3 * N),
                 dy = ops_in(c, N, -1, 1);
            for (int i = 0; i < ROWS; i++)
                test_fill_f32(qkv.f + (i * 3 + 2) * H * E, H * E, ops_next_key(c), -1, 1); // v is ordinary
            ops_widen(qkv);
            ops_say(c, "attention causal %d, q and k around %g", causal, ends[e]);
            c->ops->attention_forward(c->exec, y.f, qkv.f, &segments, H, E, causal, NULL, 0);
            c->ops->attention_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, &segments, H, E, causal);
            ops_digest_bytes(c, y.f, N * sizeof *y.f);
            for (int i = 0; i < N; i++)
                test_require(fabs((double)y.f[i]) < 1e-6, "%s: y %d is %g, not 0", c->what, i, (double)y.f[i]);
            for (int i = 0; i < 3 * N; i++)
                test_require(fabs((double)dqkv.f[i]) < 1e-6, "%s: dqkv %d is %g, not 0", c->what, i, (double)dqkv.f[i]);
            ops_end(c);
        }
    }
}

typedef struct ops_heads {
    int H, E;
} ops_heads;

static void ops_attention_call(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                               float *const *carry, size_t at)
{
    const ops_heads *s = shape;
    c->ops->attention_forward(c->exec, y, x, segments, s->H, s->E, 1, carry, at);
}

/* Head widths with other tiles than the default network's, or with none; lengths of one tile and more. */
void ops_case_attention_wide(ops_context *c)
{
    const int widths[] = {33, 40, 48, 64, 96, 128};
    const ops_layout layout = {3, {65, 0, 7}}, longer = {2, {200, 64}};
    for (int causal = 0; causal < 2; causal++)
        for (int w = 0; w < 6; w++) {
            ops_attention_shape(c, &layout, 2, widths[w], causal, -2, 2);
            if (!c->options->quick) ops_attention_shape(c, &longer, 3, widths[w], causal, -1, 1);
        }
    if (c->options->quick || !c->ops->on_host) return;
    const ops_heads wide[] = {{2, 192}, {2, 253}, {1, 256}};
    const ops_layout few = {2, {8, 17}};
    for (int i = 0; i < 3; i++) {
        const size_t E = (size_t)wide[i].E, width = (size_t)wide[i].H * E;
        for (int causal = 0; causal < 2; causal++) ops_attention_shape(c, &few, wide[i].H, wide[i].E, causal, -2, 2);
        ops_say(c, "attention_forward in pieces, E %zu", E);
        ops_check_splits(c, ops_attention_call, &wide[i], &few, 3 * width, width, width * (E + 1), 4, 4e-6);
    }
}

void ops_case_attention_splits(ops_context *c)
{
    const ops_heads shapes[] = {{6, 1}, {2, 8}, {2, 32}, {1, 33}, {3, 16}, {2, 40}};
    const ops_layout longer = {3, {150, 64, 257}};
    for (int s = 0; s < 6; s++)
        for (int l = 0; l <= OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1) {
                if (ops_thin(c, 11) || (c->options->quick && (l == OPS_N_LAYOUTS || ops_too_large(c, &ops_layouts[l])))) continue;
                size_t width = (size_t)(shapes[s].H * shapes[s].E);
                ops_say(c, "attention_forward in pieces up to %d, layout %d H %d E %d", longest, l, shapes[s].H, shapes[s].E);
                ops_check_splits(c, ops_attention_call, &shapes[s], l < OPS_N_LAYOUTS ? &ops_layouts[l] : &longer, 3 * width,
                                 width, width * (size_t)(shapes[s].E + 1), longest, 4e-6);
            }
}

/* ---- the attention block --------------------------------------------------------------------------------------------------- */

// The block's own operations against those that it consists of.
static void ops_attention_block_shape(ops_context *c, const ops_layout *layout, int H, int E, int causal)
{
    const lin_ops *ops = c->ops;
    const lin_ops_f64 *ref = c->ref;
    const lin_segments segments = ops_segments(c, layout);
    const int rows = segments.rows, C = H * E;
    const size_t n = (size_t)rows * (size_t)C, nc = (size_t)C, nw = nc * nc;
    const double range = 1 / sqrt(C);
    // dy is so large that the gradients of the weights are more than the values that they are added to.
    pair x = ops_in(c, n, -1, 1), dy = ops_in(c, n, -20, 20), out = ops_out(c, n), dx = ops_out(c, n);
    pair wqkv = ops_in(c, 3 * nw, -range, range), bqkv = ops_in(c, 3 * nc, -1, 1), wout = ops_in(c, nw, -range, range),
         bout = ops_in(c, nc, -1, 1);
    pair qkv = ops_out(c, 3 * n), y = ops_out(c, n), operands = ops_out(c, n), d_qkv = ops_out(c, 3 * n);
    pair dwqkv = ops_inout(c, 3 * nw, -1, 1), dbqkv = ops_inout(c, 3 * nc, -1, 1), dwout = ops_inout(c, nw, -1, 1);
    pair p1 = ops_packed(c, 3 * C, C), p2 = ops_packed(c, C, C), t1 = ops_packed(c, C, 3 * C), t2 = ops_packed(c, C, C);
    ops_say(c, "attention block, B %d rows %d H %d E %d causal %d", layout->B, rows, H, E, causal);
    ops_pack(c, p1, wqkv, 3 * C, C, 0);
    ops_pack(c, p2, wout, C, C, 0);
    ops_pack(c, t1, wqkv, 3 * C, C, 1);
    ops_pack(c, t2, wout, C, C, 1);
    ops->attention_block_forward(c->exec, out.f, qkv.f, y.f, operands.f, x.f, p1.f, bqkv.f, p2.f, bout.f, &segments, H,
                                 E, causal);
    ops->attention_block_backward(c->exec, dx.f, dwqkv.f, dbqkv.f, dwout.f, dy.f, x.f, qkv.f, y.f, operands.f, d_qkv.f, t1.f,
                                  t2.f, &segments, H, E, causal);
    ref->linear_forward(c->ref_exec, qkv.d, x.d, p1.d, bqkv.d, rows, 3 * C, C, LIN_LINEAR);
    ref->attention_forward(c->ref_exec, y.d, qkv.d, &segments, H, E, causal, NULL, 0);
    ref->linear_forward(c->ref_exec, out.d, y.d, p2.d, bout.d, rows, C, C, LIN_LINEAR);
    ref->linear_backward_weight(c->ref_exec, dwout.d, NULL, dy.d, y.d, rows, C, C);
    ref->linear_forward(c->ref_exec, dx.d, dy.d, t2.d, NULL, rows, C, C, LIN_LINEAR);
    ref->attention_backward(c->ref_exec, d_qkv.d, dx.d, qkv.d, y.d, &segments, H, E, causal);
    ref->linear_backward_weight(c->ref_exec, dwqkv.d, dbqkv.d, d_qkv.d, x.d, rows, 3 * C, C);
    ref->linear_forward(c->ref_exec, dx.d, d_qkv.d, t1.d, NULL, rows, C, 3 * C, LIN_LINEAR);
    ops_check_scaled(c, "out", out, 2e-6, 1);
    ops_check_scaled(c, "dx", dx, 2e-6, 1);
    ops_check_scaled(c, "dwqkv", dwqkv, 2e-6, 1);
    ops_check_scaled(c, "dbqkv", dbqkv, 2e-6, 1);
    ops_check_scaled(c, "dwout", dwout, 2e-6, 1);
    ops_end(c);
}

// Heads with tiles, one and two wide, and some that have none.
void ops_case_attention_block(ops_context *c)
{
    static const ops_heads heads[] = {{2, 32}, {1, 64}, {2, 12}, {1, 72}};
    const int layouts[] = {0, 4, 6, 8};
    const ops_layout stretches = {2, {1300, 10}}; // several blocks for an utterance
    if (!c->ops->attention_block_forward || !c->options->aligned) return; // the network calls the operations it consists of
    for (int causal = 0; causal < 2; causal++) {
        for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
            for (int l = 0; l < 4; l++)
                if (!ops_thin(c, 3)) ops_attention_block_shape(c, &ops_layouts[layouts[l]], heads[h].H, heads[h].E, causal);
        if (!c->options->quick) ops_attention_block_shape(c, &ops_layouts[7], 6, 32, causal);
        if (!c->options->quick) ops_attention_block_shape(c, &stretches, 1, 32, causal);
    }
}

/* ---- log-softmax and CTC --------------------------------------------------------------------------------------------------- */

/* Matrices x of logits in -range..range. */
static void ops_each_matrix(ops_context *c, void (*check)(ops_context *c, pair x, int rows, int V, int range))
{
    const int widths[] = {1, 2, 7, 16, 40, 41, 64, 100}, ranges[] = {1, 20, 1000};
    for (int w = 0; w < 8; w++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            for (int s = 0; s < 3; s++) {
                if (ops_thin(c, 7)) continue;
                check(c, ops_in(c, (size_t)(ops_rows[r] * widths[w]), -ranges[s], ranges[s]), ops_rows[r], widths[w], ranges[s]);
                ops_end(c);
            }
}

static void ops_log_softmax_matrix(ops_context *c, pair x, int rows, int V, int range)
{
    pair y = ops_out(c, x.n), alias = ops_inout(c, x.n, 0, 0);
    ops_say(c, "log_softmax rows %d V %d in -%d..%d", rows, V, range, range);
    c->ops->log_softmax(c->exec, y.f, x.f, rows, V);
    c->ref->log_softmax(c->ref_exec, y.d, x.d, rows, V);
    ops_check(c, "logp", y, 1e-6);
    if (V == 1) // the only possible value is 0
        for (size_t i = 0; i < x.n; i++) ck_assert_msg(y.f[i] == 0, "%s: row %zu is %g", c->what, i, (double)y.f[i]);
    memcpy(alias.f, x.f, x.n * sizeof *x.f);
    c->ops->log_softmax(c->exec, alias.f, alias.f, rows, V);
    ops_check_same(c, "in place", alias.f, y.f, x.n, 1e-6);
    float *one = ops_block(c, (size_t)V, sizeof *one, NULL);
    for (int i = 0; i < rows; i += 5) {
        c->ops->log_softmax(c->exec, one, x.f + i * V, 1, V);
        ops_check_same(c, "a row alone", one, y.f + i * V, (size_t)V, 1e-6);
    }
}

void ops_case_log_softmax(ops_context *c) { ops_each_matrix(c, ops_log_softmax_matrix); }

static void ops_softmax_rows_matrix(ops_context *c, pair x, int rows, int V, int range)
{
    pair dp = ops_in(c, x.n, -1, 1), p = ops_out(c, x.n), dx = ops_out(c, x.n), alias = ops_inout(c, x.n, 0, 0);
    ops_say(c, "softmax_rows rows %d V %d in -%d..%d", rows, V, range, range);
    c->ops->softmax_rows(c->exec, p.f, x.f, rows, V);
    c->ref->softmax_rows(c->ref_exec, p.d, x.d, rows, V);
    ops_check_scaled(c, "p", p, 1e-6, 1);
    c->ops->softmax_rows_backward(c->exec, dx.f, dp.f, p.f, rows, V);
    c->ref->softmax_rows_backward(c->ref_exec, dx.d, dp.d, p.d, rows, V);
    ops_check_scaled(c, "dlogits", dx, 2e-6, 1);
    memcpy(alias.f, dp.f, x.n * sizeof *dp.f);
    c->ops->softmax_rows_backward(c->exec, alias.f, alias.f, p.f, rows, V);
    ops_check_same(c, "in place", alias.f, dx.f, x.n, 1e-6);
    float *one = ops_block(c, (size_t)V, sizeof *one, NULL);
    for (int i = 0; i < rows; i += 5) {
        c->ops->softmax_rows(c->exec, one, x.f + i * V, 1, V);
        ops_check_same(c, "a row alone", one, p.f + i * V, (size_t)V, 1e-6);
    }
}

void ops_case_softmax_rows(ops_context *c) { ops_each_matrix(c, ops_softmax_rows_matrix); }

enum { OPS_MAX_LABELS = 1024 };

/* Labels of a batch and their losses, where the backend reaches them. */
typedef struct ops_labels {
    int *labels, *offsets, most;
    double *loss, *alone, *want, *scale;
} ops_labels;

static ops_labels ops_labelled(ops_context *c, const int *labels, const int *offsets, const lin_segments *segments,
                               double scale)
{
    ops_labels y = {.labels = ops_block(c, (size_t)offsets[segments->B], sizeof *labels, labels)};
    const size_t B = (size_t)segments->B;
    y.offsets = ops_block(c, B + 1, sizeof *offsets, offsets);
    y.scale = ops_block(c, 1, sizeof scale, &scale);
    y.loss = ops_block(c, B, sizeof *y.loss, NULL);
    y.alone = ops_block(c, B, sizeof *y.loss, NULL);
    y.want = ops_block(c, B, sizeof *y.loss, NULL);
    for (int b = 0; b < segments->B; b++) {
        const int U = offsets[b + 1] - offsets[b];
        if (U <= segments->offsets[b + 1] - segments->offsets[b] && U > y.most) y.most = U;
    }
    return y;
}

/* loss against ref/: relative, and exactly -1 where there is no path. */
void ops_check_loss(ops_context *c, const double *got, const double *want, int B, double tolerance)
{
    ops_digest_bytes(c, got, (size_t)B * sizeof *got);
    for (int b = 0; b < B; b++)
        ck_assert_msg(want[b] == -1 || isnan(want[b])
                          ? got[b] == want[b] || (isnan(got[b]) && isnan(want[b]))
                          : fabs(got[b] - want[b]) <= tolerance * c->options->tolerance * (1 + fabs(want[b])),
                      "%s: loss of utterance %d is %.12g, expected %.12g", c->what, b, got[b], want[b]);
}

/* Loss, loss alone and gradient against ref/. */
static void ops_check_ctc(ops_context *c, const lin_segments *segments, const ops_labels *y, pair logp, pair dlogits, int V)
{
    c->ops->ctc(c->exec, y->loss, dlogits.f, logp.f, segments, y->labels, y->offsets, y->most, V, y->scale);
    c->ops->ctc(c->exec, y->alone, NULL, logp.f, segments, y->labels, y->offsets, y->most, V, y->scale);
    c->ref->ctc(c->ref_exec, y->want, dlogits.d, logp.d, segments, y->labels, y->offsets, y->most, V, y->scale);
    ops_check_loss(c, y->loss, y->want, segments->B, 2e-6);
    ops_check_loss(c, y->alone, y->want, segments->B, 2e-6);
    for (int b = 0; b < segments->B; b++) {
        size_t first = (size_t)segments->offsets[b] * (size_t)V, end = (size_t)segments->offsets[b + 1] * (size_t)V;
        pair rows = {dlogits.f + first, dlogits.d + first, end - first};
        ops_check_scaled(c, "dlogits", rows, 2e-5, *y->scale); // a difference of probabilities
    }
}

/* Random log-probabilities: those of logits in -spread..spread. */
static pair ops_log_probabilities(ops_context *c, int rows, int V, double spread)
{
    pair logp = ops_in(c, (size_t)rows * (size_t)V, -spread, spread);
    c->ref->log_softmax(c->ref_exec, logp.d, logp.d, rows, V);
    for (size_t i = 0; i < logp.n; i++) logp.f[i] = (float)logp.d[i];
    ops_widen(logp);
    return logp;
}

static void ops_ctc_shape(ops_context *c, const ops_layout *layout, int V, double spread, int crowded)
{
    const lin_segments segments = ops_segments(c, layout);
    int labels[OPS_MAX_LABELS], label_offsets[OPS_MAX_B + 1] = {0};
    for (int b = 0; b < layout->B; b++) { // up to a third of the frames, or so many that often no path exists
        int U = ops_pick(c, 0, crowded ? layout->lengths[b] + 1 : layout->lengths[b] / 3);
        for (int u = 0; u < U; u++) {
            int u0 = label_offsets[b] + u;
            labels[u0] = u && ops_pick(c, 0, 4) == 0 ? labels[u0 - 1] : ops_pick(c, 1, V - 1);
        }
        label_offsets[b + 1] = label_offsets[b] + U;
    }
    const ops_labels y = ops_labelled(c, labels, label_offsets, &segments, 0.5);
    pair logp = ops_log_probabilities(c, segments.rows, V, spread), dlogits = ops_out(c, logp.n);
    ops_say(c, "ctc B %d rows %d V %d labels %d spread %g", layout->B, segments.rows, V, label_offsets[layout->B], spread);
    ops_check_ctc(c, &segments, &y, logp, dlogits, V);
    ops_end(c);
}

void ops_case_ctc(ops_context *c)
{
    const int widths[] = {2, 3, 7, 40, 41};
    const ops_layout longer = {3, {200, 0, 333}}, longest = {2, {1500, 701}};
    for (int crowded = 0; crowded < 2; crowded++)
        for (int w = 0; w < 5; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                for (int spread = 1; spread < 30; spread *= 5)
                    if (!ops_thin(c, 11) && !ops_too_large(c, &ops_layouts[l]))
                        ops_ctc_shape(c, &ops_layouts[l], widths[w], spread, crowded);
    ops_ctc_shape(c, &longer, 40, 5, 0);
    if (c->options->quick) return;
    ops_ctc_shape(c, &longer, 40, 0.1, 0);
    ops_ctc_shape(c, &longest, 41, 3, 0);
}

/* Label sequences of hundreds, and bounds for their number and that of the frames that are not reached. */
static void ops_ctc_room(ops_context *c, const int *frames, const int *counts, int B, int V, int room)
{
    lin_segments segments = ops_segments_of(c, frames, B);
    int labels[OPS_MAX_LABELS], label_offsets[OPS_MAX_B + 1] = {0};
    for (int b = 0; b < B; b++) label_offsets[b + 1] = label_offsets[b] + counts[b];
    for (int i = 0; i < label_offsets[B]; i++) labels[i] = ops_pick(c, 1, V - 1);
    ops_labels y = ops_labelled(c, labels, label_offsets, &segments, 0.5);
    pair logp = ops_log_probabilities(c, segments.rows, V, 3), dlogits = ops_out(c, logp.n);
    ops_say(c, "ctc of %d utterances with room for %d labels", B, room);
    y.most = room;
    if (room > segments.longest) segments.longest = room;
    ops_check_ctc(c, &segments, &y, logp, dlogits, V);
    ops_end(c);
}

void ops_case_ctc_room(ops_context *c)
{
    const int long_frames[] = {1150, 0, 700, 30}, long_counts[] = {530, 0, 349, 31}; // the last one has no path
    const int frames[] = {1, 70, 0, 12, 33, 2000}, counts[] = {1, 33, 0, 13, 16, 3}, rooms[] = {33, 63, 64, 511, 512, 1023, 1024};
    ops_ctc_room(c, long_frames, long_counts, 4, 9, 600);  // on a GPU four positions to a thread
    ops_ctc_room(c, long_frames, long_counts, 4, 9, 1150); // states in memory, with more positions than threads
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) ops_ctc_room(c, frames, counts, 6, 5, rooms[i]);
    ops_ctc_room(c, frames + 5, counts + 5, 1, 3, 3); // long and with few labels: a warp alone
}

/* Random trigrams. */
static lin_trigrams ops_trigrams(ops_context *c, int V)
{
    const size_t n = (size_t)V, S = n * n;
    float *block = ops_block(c, lin_trigrams_count(V), sizeof *block, NULL);
    memset(block, 0, lin_trigrams_count(V) * sizeof *block);
    for (size_t b = 0; b < n; b++)
        for (size_t a = 0; a < n; a++) {
            for (size_t k = 1; k < n; k++) {
                const float p = (float)ops_pick(c, 1, 1000) / 1000 / (float)V;
                if (k == b) block[2 * S * n + b * n + a] = p;
                else block[(b * n + a) * n + k] = block[S * n + (b * n + k) * n + a] = p;
            }
            block[2 * S * n + S + b * n + a] = (float)ops_pick(c, 1, 1000) / 1000;
        }
    return lin_trigrams_at(block, V);
}

static void ops_denominator_shape(ops_context *c, const ops_layout *layout, int V, double spread)
{
    const lin_segments segments = ops_segments(c, layout);
    const lin_trigrams q = ops_trigrams(c, V);
    int offsets[OPS_MAX_B + 1] = {0};
    // one without labels, one with too many
    for (int b = 0; b < layout->B; b++) offsets[b + 1] = offsets[b] + (b % 4 == 2 ? 0 : b % 4 == 3 ? layout->lengths[b] + 1 : 1);
    const int *label_offsets = ops_block(c, (size_t)layout->B + 1, sizeof *offsets, offsets);
    const double scale = 0.5, *at = ops_block(c, 1, sizeof scale, &scale);
    const size_t B = (size_t)layout->B;
    double want[OPS_MAX_B], *sums = ops_block(c, B, sizeof *sums, NULL), *alone = ops_block(c, B, sizeof *sums, NULL);
    pair logp = ops_log_probabilities(c, segments.rows, V, spread), dlogits = ops_inout(c, logp.n, -1, 1);
    ops_say(c, "denominator B %d rows %d V %d spread %g", layout->B, segments.rows, V, spread);
    c->ops->denominator(c->exec, sums, NULL, dlogits.f, logp.f, &segments, label_offsets, &q, V, 0.75, at);
    c->ops->denominator(c->exec, alone, NULL, NULL, logp.f, &segments, label_offsets, &q, V, 0.75, at);
    c->ref->denominator(c->ref_exec, want, NULL, dlogits.d, logp.d, &segments, label_offsets, &q, V, 0.75, at);
    ops_check_loss(c, sums, want, layout->B, 2e-6);
    ops_check_loss(c, alone, want, layout->B, 2e-6);
    ops_check_scaled(c, "dlogits", dlogits, 1e-5, 1);
    ops_end(c);
}

/* An utterance with a frame in which nothing is possible, between two others: NaN in its loss and gradient, and in no other. */
static void ops_denominator_without_sum(ops_context *c)
{
    enum { B = 3, T = 5, V = 7 };
    const int lengths[B] = {T, T, T}, offsets[] = {0, 1, 2, 3};
    const lin_segments segments = ops_segments_of(c, lengths, B);
    const lin_trigrams q = ops_trigrams(c, V);
    const int *label_offsets = ops_block(c, B + 1, sizeof *offsets, offsets);
    const double scale = 0.5, *at = ops_block(c, 1, sizeof scale, &scale);
    double want[B], *sums = ops_block(c, B, sizeof *sums, NULL), *loss = ops_block(c, B, sizeof *loss, NULL);
    pair logp = ops_log_probabilities(c, B * T, V, 3), dlogits = ops_inout(c, logp.n, -1, 1);
    for (int v = 0; v < V; v++) logp.f[(T + 2) * V + v] = -INFINITY;
    for (int b = 0; b < B; b++) loss[b] = b;
    ops_widen(logp);
    ops_say(c, "denominator with a frame without a sum");
    c->ops->denominator(c->exec, sums, loss, dlogits.f, logp.f, &segments, label_offsets, &q, V, 0.75, at);
    c->ref->denominator(c->ref_exec, want, NULL, dlogits.d, logp.d, &segments, label_offsets, &q, V, 0.75, at);
    ops_done(c);
    test_require(isnan(want[1]) && isnan(loss[1]) && loss[0] == 0 && loss[2] == 2, "%s: losses %g %g %g", c->what, loss[0],
                 loss[1], loss[2]);
    ops_check_loss(c, sums, want, B, 2e-6);
    for (size_t i = T * V; i < 2 * T * V; i++) {
        test_require(isnan(dlogits.f[i]) && isnan(dlogits.d[i]), "%s: dlogits[%zu] is %g", c->what, i, (double)dlogits.f[i]);
        dlogits.f[i] = 0, dlogits.d[i] = 0;
    }
    ops_check_scaled(c, "dlogits", dlogits, 1e-5, 1);
    ops_end(c);
}

/* Trigrams of zero probability: only a sequence of the label 2 may end, of which the sound makes every frame e^-20 times less
 * probable than 1. From some length on float has no share of it: NaN, never another gradient than ref/'s. */
static void ops_denominator_zeros(ops_context *c, int T)
{
    enum { V = 3, S = V * V };
    const lin_segments segments = ops_segments_of(c, &T, 1);
    const int *label_offsets = ops_block(c, 2, sizeof(int), (const int[]){0, 1});
    const double scale = 1, *at = ops_block(c, 1, sizeof scale, &scale);
    float *block = ops_block(c, lin_trigrams_count(V), sizeof *block, NULL);
    memset(block, 0, lin_trigrams_count(V) * sizeof *block);
    for (int k = 1; k < V; k++) {
        block[k] = block[S * V + k * V] = 0.5f;                                  // k first
        for (int a = 0; a < V; a++) block[2 * S * V + k * V + a] = 0.5f;         // k after k
        for (int a = 0; a < V && k == 2; a++) block[2 * S * V + S + k * V + a] = 0.5f;
    }
    const lin_trigrams q = lin_trigrams_at(block, V);
    double want, *sum = ops_block(c, 1, sizeof *sum, NULL), *loss = ops_block(c, 1, sizeof *loss, NULL);
    pair logp = ops_in(c, (size_t)T * V, 0, 0), dlogits = ops_inout(c, logp.n, 0, 0);
    for (int i = 0; i < T * V; i++) logp.f[i] = i % V == 1 ? 0 : -20;
    ops_widen(logp);
    *loss = 1;
    ops_say(c, "denominator with trigrams of zero probability, %d frames", T);
    c->ops->denominator(c->exec, sum, loss, dlogits.f, logp.f, &segments, label_offsets, &q, V, 1, at);
    c->ref->denominator(c->ref_exec, &want, NULL, dlogits.d, logp.d, &segments, label_offsets, &q, V, 1, at);
    ops_done(c);
    test_require(isnan(*loss) == (T > 4) && isnan(*sum) == isnan(*loss), "%s: the sum is %g, the loss %g", c->what, *sum, *loss);
    for (int i = 0; i < T * V; i++) {
        test_require(isnan(dlogits.f[i]) ? T > 4 : T < 5, "%s: dlogits[%d] is %g", c->what, i, (double)dlogits.f[i]);
        if (T > 4) dlogits.f[i] = 0, dlogits.d[i] = 0;
    }
    ops_check_scaled(c, "dlogits", dlogits, 1e-5, 1);
    ops_end(c);
}

void ops_case_denominator(ops_context *c)
{
    const int widths[] = {2, 3, 7, 17};
    const ops_layout few = {4, {3, 1, 2, 1}};
    ops_denominator_shape(c, &few, 40, 3); // every loop over labels and pairs of them runs more than once
    ops_denominator_without_sum(c);
    for (int T = 1; T < 9; T++) ops_denominator_zeros(c, T);
    for (int w = 0; w < 4; w++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int spread = 1; spread < 10; spread *= 5) {
                int rows = 0; // ref/ takes the square of the rows, and the fourth power of the width
                for (int b = 0; b < ops_layouts[l].B; b++) rows += ops_layouts[l].lengths[b];
                if (rows * widths[w] <= 300 && !ops_thin(c, 5)) ops_denominator_shape(c, &ops_layouts[l], widths[w], spread);
            }
}

/* Very certain and very wrong: log-probabilities down to -1e4 and minus infinity. No result may be infinite or NaN. */
void ops_case_ctc_extremes(ops_context *c)
{
    for (int form = 0; form < 24; form++) {
        enum { T = 40, V = 7, U = 9 };
        if (ops_thin(c, 3)) continue;
        const int rows = T, label_offsets[] = {0, U};
        const double low[] = {-100, -1e4, -INFINITY};
        const lin_segments segments = ops_segments_of(c, &rows, 1);
        int labels[U];
        pair logp = ops_in(c, T * V, 0, 0), dlogits = ops_out(c, T * V);
        for (int u = 0; u < U; u++) labels[u] = ops_pick(c, 1, V - 1);
        for (int t = 0; t < T; t++) {
            // Every other form follows a path of the labels (each label for two frames, then a blank), the others a random one.
            int sure = form % 2 ? ops_pick(c, 0, V - 1) : t / 4 < U && t % 4 < 2 ? labels[t / 4] : 0;
            for (int v = 0; v < V; v++) logp.f[t * V + v] = v == sure ? 0 : (float)low[form / 2 % 3];
        }
        ops_widen(logp);
        const ops_labels y = ops_labelled(c, labels, label_offsets, &segments, 1);
        ops_say(c, "ctc with peaks over %g, %s path", low[form / 2 % 3], form % 2 ? "a wrong" : "the right");
        c->ops->ctc(c->exec, y.loss, dlogits.f, logp.f, &segments, y.labels, y.offsets, U, V, y.scale);
        c->ref->ctc(c->ref_exec, y.want, dlogits.d, logp.d, &segments, y.labels, y.offsets, U, V, y.scale);
        ops_check_loss(c, y.loss, y.want, 1, 2e-6);
        ck_assert_msg(isfinite(*y.loss), "%s: the loss is %g", c->what, *y.loss);
        for (int i = 0; i < T * V; i++) {
            test_require(isfinite(dlogits.f[i]), "%s: gradient %d is %g", c->what, i, (double)dlogits.f[i]);
            test_require(fabs((double)dlogits.f[i] - dlogits.d[i]) < 1e-3, "%s: gradient %d is %g, expected %g", c->what, i,
                         (double)dlogits.f[i], dlogits.d[i]);
        }
        ops_end(c);
    }
}

/* Utterances of more labels than frames: their labels are invalid, and those of the last one do not even exist. */
void ops_case_ctc_crowded(ops_context *c)
{
    enum { B = 6, V = 9 };
    const int lengths[B] = {10, 3, 0, 20, 1, 7}, counts[B] = {4, 4, 1, 6, 2000, 3000};
    for (int last = 4; last <= B; last++) { // the first so many
        int labels[64], label_offsets[B + 1] = {0};
        lin_segments segments = ops_segments_of(c, lengths, last);
        for (int b = 0; b < last; b++) label_offsets[b + 1] = label_offsets[b] + counts[b];
        for (int i = 0; i < 64; i++) labels[i] = ops_pick(c, 1, V - 1);
        for (int i = label_offsets[1]; i < label_offsets[3]; i++) labels[i] = i % 2 ? 1 << 30 : -(1 << 30);
        const int exist = label_offsets[4];
        int *own = ops_block(c, (size_t)exist, sizeof *own, labels);
        ops_labels y = ops_labelled(c, labels, (const int[B + 1]){0}, &segments, 0.25);
        y.labels = own;
        y.offsets = ops_block(c, (size_t)last + 1, sizeof *label_offsets, label_offsets);
        y.most = 6;
        pair logp = ops_log_probabilities(c, segments.rows, V, 2), dlogits = ops_out(c, logp.n);
        ops_say(c, "ctc with more labels than frames, %d utterances", last);
        ops_check_ctc(c, &segments, &y, logp, dlogits, V);
        for (int b = 0; b < last; b++)
            ck_assert_msg((y.loss[b] == -1) == (counts[b] > lengths[b]), "%s: loss %d is %g", c->what, b, y.loss[b]);
        ops_end(c);
    }
}

/* ---- cross entropy --------------------------------------------------------------------------------------------------------- */

static void ops_cross_entropy_shape(ops_context *c, const ops_layout *layout, int V, double spread)
{
    const lin_segments segments = ops_segments(c, layout);
    int *targets = ops_block(c, (size_t)segments.rows, sizeof *targets, NULL);
    for (int t = 0; t < segments.rows; t++) targets[t] = ops_pick(c, -1, V - 1);
    const size_t B = (size_t)layout->B;
    double scale = 0.5, *on_device = ops_block(c, 1, sizeof scale, &scale), *loss = ops_block(c, B, sizeof *loss, NULL),
           *alone = ops_block(c, B, sizeof *loss, NULL), *want = ops_block(c, B, sizeof *loss, NULL);
    pair logp = ops_log_probabilities(c, segments.rows, V, spread), dlogits = ops_out(c, logp.n),
         alias = ops_inout(c, logp.n, 0, 0);
    ops_say(c, "cross_entropy B %d rows %d V %d spread %g", layout->B, segments.rows, V, spread);
    if (logp.n) memcpy(alias.f, logp.f, logp.n * sizeof *logp.f);
    c->ops->cross_entropy(c->exec, loss, dlogits.f, logp.f, &segments, targets, V, on_device);
    c->ops->cross_entropy(c->exec, alone, NULL, logp.f, &segments, targets, V, NULL);
    c->ref->cross_entropy(c->ref_exec, want, dlogits.d, logp.d, &segments, targets, V, &scale);
    ops_check_scaled(c, "dlogits", dlogits, 1e-6, scale);
    ops_check_loss(c, loss, want, layout->B, 1e-12);
    ops_check_loss(c, alone, want, layout->B, 1e-12);
    c->ops->cross_entropy(c->exec, loss, alias.f, alias.f, &segments, targets, V, on_device);
    ops_check_same(c, "in place", alias.f, dlogits.f, dlogits.n, 1e-6);
    ops_end(c);
}

void ops_case_cross_entropy(ops_context *c)
{
    const int widths[] = {1, 2, 7, 16, 33}, spreads[] = {1, 30};
    if (!c->ops->cross_entropy) return;
    for (int w = 0; w < 5; w++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int s = 0; s < 2; s++)
                if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                    ops_cross_entropy_shape(c, &ops_layouts[l], widths[w], spreads[s]);
}

/* ---- a NaN propagates only within its utterance: training finds it in the loss and can name the utterance ------------------ */

static void ops_check_nan(ops_context *c, const char *name, const float *y, int rows, int width, const int *expected)
{
    ops_done(c);
    for (int r = 0; r < rows; r++) {
        int n_nan = 0;
        for (int i = 0; i < width; i++) n_nan += isnan(y[r * width + i]) != 0;
        ck_assert_msg(expected[r] ? n_nan > 0 : n_nan == 0, "%s: row %d has %d NaNs of %d, expected %s", name, r, n_nan, width,
                      expected[r] ? "some" : "none");
    }
}

/* Attention of a kind: linear, softmax, poly2, random features, decayed. 0 if the backend has none, or none in this direction. */
static int ops_attention_of(ops_context *c, int kind, float *y, const float *qkv, const float *ones, const lin_segments *s, int H,
                            int E, int causal)
{
    const lin_map map = kind == 2 ? (lin_map){LIN_MAP_POLY2, E * (E + 3) / 2 + 1} : (lin_map){LIN_MAP_RANDOM, 2};
    switch (kind) {
    case 0: c->ops->attention_forward(c->exec, y, qkv, s, H, E, causal, NULL, 0); return 1;
    case 1:
        if (c->ops->softmax_forward) c->ops->softmax_forward(c->exec, y, NULL, qkv, s, H, E, causal, NULL, 0);
        return c->ops->softmax_forward != NULL;
    case 4:
        if (!causal || !c->ops->decayed_attention_forward) return 0;
        c->ops->decayed_attention_forward(c->exec, y, qkv, ones, 1, s, H, E, NULL, 0);
        return 1;
    default:
        if (!c->ops->mapped_attention_forward) return 0;
        c->ops->mapped_attention_forward(c->exec, y, qkv, ones, s, &map, H, E, causal, NULL, 0);
        return 1;
    }
}

void ops_case_not_a_number(ops_context *c)
{
    enum { ROWS = 12, H = 2, E = 32, W = H * E };
    const int lengths[] = {5, ROWS - 5}; // the NaN is in row 2 of the first utterance
    const lin_segments segments = ops_segments_of(c, lengths, 2);
    const int own[ROWS] = {0, 0, 1}, later[ROWS] = {0, 0, 1, 1, 1}, near[ROWS] = {0, 0, 1, 1}, all[ROWS] = {1, 1, 1, 1, 1};
    ops_say(c, "a NaN in row 2");
    pair x = ops_in(c, ROWS * W, -1, 1), qkv = ops_in(c, ROWS * 3 * W, -1, 1), y = ops_out(c, ROWS * W),
         ones = ops_in(c, 2 * W, 1, 1); // for random features [H, 2, E] too
    pair packed = ops_packed(c, W, W), w = ops_in(c, W * W, 0.5, 1);
    x.f[2 * W + 7] = NAN;
    ops_widen(x);
    ops_pack(c, packed, w, W, W, 0);
    c->ops->linear_forward(c->exec, y.f, x.f, packed.f, ones.f, ROWS, W, W, LIN_LINEAR);
    ops_check_nan(c, "linear_forward", y.f, ROWS, W, own);
    c->ops->linear_forward(c->exec, y.f, x.f, packed.f, ones.f, ROWS, W, W, LIN_RELU);
    ops_done(c);
    for (int i = 0; i < ROWS * W; i++) {
        const int zero_or_nan = i / W == 2, good = zero_or_nan ? !(y.f[i] > 0) && !(y.f[i] < 0) : isfinite(y.f[i]);
        ck_assert_msg(good, "linear_forward with relu: row %d has %g", i / W, (double)y.f[i]);
    }
    c->ops->layer_norm_forward(c->exec, y.f, NULL, x.f, ones.f, ones.f, ROWS, W);
    ops_check_nan(c, "layer_norm_forward", y.f, ROWS, W, own);
    c->ops->log_softmax(c->exec, y.f, x.f, ROWS, W);
    ops_check_nan(c, "log_softmax", y.f, ROWS, W, own);
    c->ops->conv_forward(c->exec, y.f, x.f, ones.f, ones.f, &segments, W, 2, 0, NULL, 0);
    ops_check_nan(c, "conv_forward", y.f, ROWS, W, near);
    for (int part = 0; part < 3; part++) {
        float *victim = &qkv.f[(2 * 3 + part) * W + 7], keep = *victim;
        *victim = NAN;
        for (int kind = 0; kind < 5; kind++)
            for (int causal = 0; causal < 2; causal++) {
                char what[60];
                const int hidden = kind == 1 && part == 2 && c->ops->on_host; // the CPU's softmax adds 0 v of frames behind a row
                snprintf(what, sizeof what, "attention of kind %d, causal %d, %c", kind, causal, "qkv"[part]);
                if (ops_attention_of(c, kind, y.f, qkv.f, ones.f, &segments, H, E, causal))
                    ops_check_nan(c, what, y.f, ROWS, W, part == 0 ? own : causal && !hidden ? later : all);
            }
        *victim = keep;
    }
    const int labels[] = {1, 2, 3}, label_offsets[] = {0, 2, 3};
    const ops_labels told = ops_labelled(c, labels, label_offsets, &segments, 1);
    const double *loss = told.loss;
    c->ops->log_softmax(c->exec, y.f, x.f, ROWS, W);
    ops_done(c);
    for (int v = 0; v < W; v++) y.f[2 * W + v] = NAN;
    c->ops->ctc(c->exec, told.loss, NULL, y.f, &segments, told.labels, told.offsets, 2, W, told.scale);
    ops_done(c);
    ck_assert_msg(isnan(loss[0]), "%s: the loss is %g", c->what, loss[0]);
    ck_assert_msg(isfinite(loss[1]) && loss[1] >= 0, "%s: the loss of the other utterance is %g", c->what, loss[1]);
    c->ops->ctc(c->exec, told.loss, x.f, y.f, &segments, told.labels, told.offsets, 2, W, told.scale);
    ops_done(c);
    ck_assert_msg(isnan(loss[0]) && isfinite(loss[1]), "%s: the losses with gradients are %g and %g", c->what, loss[0], loss[1]);
    ops_widen(x);
    ops_end(c);
}
