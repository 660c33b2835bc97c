/*
 * ops_cases_sequence.h - cases of ops_cases.h for the operations that look along an utterance: convolution, attention, CTC.
 * Included by ops_cases.h only.
 */
#ifndef LIN_TESTS_KERNELS_OPS_CASES_SEQUENCE_H
#define LIN_TESTS_KERNELS_OPS_CASES_SEQUENCE_H

/* ---- what convolution and attention share: a state per utterance carried from call to call ---------------------------------- */

/* One call of the operation on rows laid out by offsets; carry may be NULL. */
typedef void (*ops_carrying)(ops_context *c, const void *shape, float *y, const float *x, const int *offsets, int B,
                             float *const *carry);

/* Cuts the utterances into random pieces, any number of frames (0 too) of each per call, carrying the states; y and the states must
 * be those of one call. in and out are the widths of a row of x and y, width_carry the length of a state, which begins as zeros. */
static inline void ops_check_splits(ops_context *c, ops_carrying call, const void *shape, const ops_layout *layout, size_t in,
                                    size_t out, size_t width_carry, int longest, double tolerance)
{
    int offsets[OPS_MAX_B + 1], rows = ops_offsets(offsets, layout), B = layout->B, done[OPS_MAX_B] = {0}, left = rows;
    pair x = ops_in(c, (size_t)rows * in, -2, 2), whole = ops_out(c, (size_t)rows * out), no_carry = ops_out(c, (size_t)rows * out);
    float *whole_carry[OPS_MAX_B], *carry[OPS_MAX_B], *some[OPS_MAX_B];
    for (int b = 0; b < B; b++) {
        whole_carry[b] = ops_inout(c, width_carry, 0, 0).f;
        carry[b] = ops_inout(c, width_carry, 0, 0).f;
    }
    call(c, shape, whole.f, x.f, offsets, B, whole_carry);
    call(c, shape, no_carry.f, x.f, offsets, B, NULL);
    ops_check_same(c, "no state against a zero state", no_carry.f, whole.f, whole.n, tolerance);
    while (left > 0) {
        int piece[OPS_MAX_B + 1] = {0};
        for (int b = 0; b < B; b++) {
            int n = ops_pick(c, 0, longest);
            if (n > layout->lengths[b] - done[b]) n = layout->lengths[b] - done[b];
            piece[b + 1] = piece[b] + n;
            // An utterance that lies whole in this call needs no state.
            some[b] = n == layout->lengths[b] && ops_pick(c, 0, 1) ? NULL : carry[b];
        }
        float *px = test_buffer_shifted((size_t)piece[B] * in, sizeof *px, 1);
        float *py = test_buffer_shifted((size_t)piece[B] * out, sizeof *py, 1);
        for (int b = 0; b < B; b++)
            memcpy(px + (size_t)piece[b] * in, x.f + (size_t)(offsets[b] + done[b]) * in,
                   (size_t)(piece[b + 1] - piece[b]) * in * sizeof *px);
        call(c, shape, py, px, piece, B, some);
        for (int b = 0; b < B; b++) {
            int n = piece[b + 1] - piece[b];
            ops_check_same(c, "a piece", py + (size_t)piece[b] * out, whole.f + (size_t)(offsets[b] + done[b]) * out,
                           (size_t)n * out, tolerance);
            if (!some[b]) memcpy(carry[b], whole_carry[b], width_carry * sizeof **carry);
            done[b] += n;
        }
        left -= piece[B];
        test_guards(px, c->what);
        test_guards(py, c->what);
        test_buffer_free(px);
        test_buffer_free(py);
    }
    for (int b = 0; b < B; b++) ops_check_same(c, "the state at the end", carry[b], whole_carry[b], width_carry, tolerance);
    ops_end(c);
}

/* ---- convolution ------------------------------------------------------------------------------------------------------------ */

static inline void ops_conv_shape(ops_context *c, const ops_layout *layout, int C, int K)
{
    int offsets[OPS_MAX_B + 1], rows = ops_offsets(offsets, layout), B = layout->B;
    size_t n = (size_t)rows * (size_t)C, nw = (size_t)(K * C), nc = (size_t)C;
    pair x = ops_in(c, n, -1, 1), w = ops_in(c, nw, -1, 1), bias = ops_in(c, nc, -1, 1), dy = ops_in(c, n, -1, 1);
    pair y = ops_out(c, n), carried = ops_out(c, n), dx = ops_out(c, n), dw = ops_inout(c, nw, -1, 1), db = ops_inout(c, nc, -1, 1);
    pair tails[OPS_MAX_B];
    float *tails_f[OPS_MAX_B];
    double *tails_d[OPS_MAX_B];
    for (int b = 0; b < B; b++) {
        tails[b] = ops_inout(c, (size_t)((K - 1) * C), -1, 1);
        tails_f[b] = b % 3 == 2 ? NULL : tails[b].f;
        tails_d[b] = b % 3 == 2 ? NULL : tails[b].d;
    }
    c->ops->conv_forward(c->exec, y.f, x.f, w.f, bias.f, offsets, B, C, K, NULL);
    c->ops->conv_forward(c->exec, carried.f, x.f, w.f, bias.f, offsets, B, C, K, tails_f);
    c->ops->conv_backward(c->exec, dx.f, dw.f, db.f, dy.f, x.f, w.f, offsets, B, C, K);
    if (!c->options->digest_only) {
        c->ref->conv_forward(c->ref_exec, y.d, x.d, w.d, bias.d, offsets, B, C, K, NULL);
        c->ref->conv_forward(c->ref_exec, carried.d, x.d, w.d, bias.d, offsets, B, C, K, tails_d);
        c->ref->conv_backward(c->ref_exec, dx.d, dw.d, db.d, dy.d, x.d, w.d, offsets, B, C, K);
    }
    ops_check_scaled(c, "y", y, 1e-6, 1);
    ops_check_scaled(c, "y with tails", carried, 1e-6, 1);
    for (int b = 0; b < B; b++) ops_check(c, "tail", tails[b], 0); // a copy of inputs
    ops_check_scaled(c, "dx", dx, 1e-6, 1);
    ops_check_scaled(c, "dw", dw, 2e-6, 1);
    ops_check_scaled(c, "db", db, 2e-6, 1);
    ops_end(c);
}

static inline void ops_case_conv(ops_context *c)
{
    const int widths[] = {1, 7, 48, 192, 193}, kernels[] = {1, 2, 5, 15};
    for (int l = 0; l < OPS_N_LAYOUTS; l++)
        for (int w = 0; w < 5; w++)
            for (int k = 0; k < 4; k++) {
                ops_say(c, "conv layout %d C %d K %d", l, widths[w], kernels[k]);
                ops_conv_shape(c, &ops_layouts[l], widths[w], kernels[k]);
            }
}

typedef struct ops_conv_weights {
    int C, K;
    const float *w, *bias;
} ops_conv_weights;

static inline void ops_conv_call(ops_context *c, const void *shape, float *y, const float *x, const int *offsets, int B,
                                 float *const *carry)
{
    const ops_conv_weights *s = shape;
    c->ops->conv_forward(c->exec, y, x, s->w, s->bias, offsets, B, s->C, s->K, carry);
}

static inline void ops_case_conv_splits(ops_context *c)
{
    const int shapes[][2] = {{7, 1}, {48, 2}, {33, 5}, {193, 15}};
    for (int s = 0; s < 4; s++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 60; longest = longest * 4 + 1) {
                int C = shapes[s][0], K = shapes[s][1];
                float w[15 * 193], bias[193];
                test_fill_f32(w, (size_t)(K * C), ops_next_key(c), -1, 1);
                test_fill_f32(bias, (size_t)C, ops_next_key(c), -1, 1);
                ops_conv_weights shape = {C, K, w, bias};
                ops_say(c, "conv_forward in pieces up to %d, layout %d C %d K %d", longest, l, C, K);
                ops_check_splits(c, ops_conv_call, &shape, &ops_layouts[l], (size_t)C, (size_t)C, (size_t)((K - 1) * C), longest,
                                 1e-6);
            }
}

/* ---- attention -------------------------------------------------------------------------------------------------------------- */

static inline void ops_attention_shape(ops_context *c, const ops_layout *layout, int H, int E, int causal, double lo, double hi)
{
    int offsets[OPS_MAX_B + 1], rows = ops_offsets(offsets, layout), B = layout->B;
    size_t n = (size_t)rows * (size_t)(H * E), n_state = (size_t)(H * (E + 1) * E);
    pair qkv = ops_in(c, 3 * n, lo, hi), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), carried = ops_out(c, n),
         dqkv = ops_out(c, 3 * n);
    pair states[OPS_MAX_B];
    float *states_f[OPS_MAX_B];
    double *states_d[OPS_MAX_B];
    for (int b = 0; b < B; b++) {
        states[b] = ops_inout(c, n_state, 0, 4); // z must be positive, as a sum of phi is
        states_f[b] = b % 3 == 2 ? NULL : states[b].f;
        states_d[b] = b % 3 == 2 ? NULL : states[b].d;
    }
    ops_say(c, "attention B %d rows %d H %d E %d causal %d in %g..%g", B, rows, H, E, causal, lo, hi);
    c->ops->attention_forward(c->exec, y.f, qkv.f, offsets, B, H, E, causal, NULL);
    c->ops->attention_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, offsets, B, H, E, causal);
    if (causal) c->ops->attention_forward(c->exec, carried.f, qkv.f, offsets, B, H, E, 1, states_f);
    if (!c->options->digest_only) {
        c->ref->attention_forward(c->ref_exec, y.d, qkv.d, offsets, B, H, E, causal, NULL);
        c->ref->attention_backward(c->ref_exec, dqkv.d, dy.d, qkv.d, y.d, offsets, B, H, E, causal);
        if (causal) c->ref->attention_forward(c->ref_exec, carried.d, qkv.d, offsets, B, H, E, 1, states_d);
    }
    ops_check(c, "y", y, 4e-6);
    ops_check(c, "dqkv", dqkv, 2e-5);
    if (causal) ops_check(c, "y after a state", carried, 4e-6);
    for (int b = 0; b < B; b++) ops_check(c, "state", states[b], 4e-6);
    ops_end(c);
}

static inline void ops_case_attention(ops_context *c)
{
    const int widths[] = {1, 5, 8, 16, 32, 33, 64}, heads[] = {6, 1, 2, 3, 2, 1, 1};
    for (int causal = 0; causal < 2; causal++)
        for (int w = 0; w < 7; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++) ops_attention_shape(c, &ops_layouts[l], heads[w], widths[w], causal, -2, 2);
}

/* Many chunks of any chunked form, and the default network's heads. */
static inline void ops_case_attention_long(ops_context *c)
{
    const ops_layout one = {1, {333}}, several = {3, {128, 129, 63}};
    for (int causal = 0; causal < 2; causal++) {
        ops_attention_shape(c, &one, 1, 32, causal, -1, 1);
        ops_attention_shape(c, &several, 1, 17, causal, -3, 3);
        ops_attention_shape(c, &ops_layouts[4], 6, 32, causal, -1, 1);
    }
}

/* phi at its ends: far below zero it is 0 (and y is 0 / eps), far above a large number. */
static inline void ops_case_attention_extremes(ops_context *c)
{
    for (int causal = 0; causal < 2; causal++) {
        ops_attention_shape(c, &ops_layouts[7], 2, 32, causal, -20, 20);
        ops_attention_shape(c, &ops_layouts[7], 2, 8, causal, 50, 100);
        const double ends[] = {-50, -90, -104, -200, -1e4, -1e30};
        for (int e = 0; e < 6; e++) {
            enum { ROWS = 65, H = 2, E = 32, N = ROWS * H * E };
            const int offsets[] = {0, ROWS};
            pair qkv = ops_in(c, 3 * N, ends[e], 0.9 * ends[e]), y = ops_out(c, N), dqkv = ops_out(c, 3 * N),
                 dy = ops_in(c, N, -1, 1);
            for (int i = 0; i < ROWS; i++)
                test_fill_f32(qkv.f + (i * 3 + 2) * H * E, H * E, ops_next_key(c), -1, 1); // v is ordinary
            ops_widen(qkv);
            ops_say(c, "attention causal %d, q and k around %g", causal, ends[e]);
            c->ops->attention_forward(c->exec, y.f, qkv.f, offsets, 1, H, E, causal, NULL);
            c->ops->attention_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, offsets, 1, H, E, causal);
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

static inline void ops_attention_call(ops_context *c, const void *shape, float *y, const float *x, const int *offsets, int B,
                                      float *const *carry)
{
    const ops_heads *s = shape;
    c->ops->attention_forward(c->exec, y, x, offsets, B, s->H, s->E, 1, carry);
}

static inline void ops_case_attention_splits(ops_context *c)
{
    const ops_heads shapes[] = {{6, 1}, {2, 8}, {2, 32}, {1, 33}, {3, 16}};
    const ops_layout longer = {3, {150, 64, 257}};
    for (int s = 0; s < 5; s++)
        for (int l = 0; l <= OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1) {
                size_t width = (size_t)(shapes[s].H * shapes[s].E);
                ops_say(c, "attention_forward in pieces up to %d, layout %d H %d E %d", longest, l, shapes[s].H, shapes[s].E);
                ops_check_splits(c, ops_attention_call, &shapes[s], l < OPS_N_LAYOUTS ? &ops_layouts[l] : &longer, 3 * width, width,
                                 width * (size_t)(shapes[s].E + 1), longest, 4e-6);
            }
}

/* ---- log-softmax and CTC ---------------------------------------------------------------------------------------------------- */

static inline void ops_case_log_softmax(ops_context *c)
{
    const int widths[] = {1, 2, 7, 16, 40, 41, 64, 100}, ranges[] = {1, 20, 1000};
    for (int w = 0; w < 8; w++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            for (int s = 0; s < 3; s++) {
                int rows = ops_rows[r], V = widths[w];
                size_t n = (size_t)(rows * V);
                pair x = ops_in(c, n, -ranges[s], ranges[s]), y = ops_out(c, n), alias = ops_inout(c, n, 0, 0);
                ops_say(c, "log_softmax rows %d V %d in -%d..%d", rows, V, ranges[s], ranges[s]);
                c->ops->log_softmax(c->exec, y.f, x.f, rows, V);
                c->ref->log_softmax(c->ref_exec, y.d, x.d, rows, V);
                if (V == 1) // nothing but 0 can come out
                    for (size_t i = 0; i < n; i++) ck_assert_msg(y.f[i] == 0, "%s: row %zu is %g", c->what, i, (double)y.f[i]);
                ops_check(c, "logp", y, 1e-6);
                memcpy(alias.f, x.f, n * sizeof *x.f);
                c->ops->log_softmax(c->exec, alias.f, alias.f, rows, V);
                ops_check_same(c, "in place", alias.f, y.f, n, 1e-6);
                for (int i = 0; i < rows; i += 5) {
                    float one[100];
                    c->ops->log_softmax(c->exec, one, x.f + i * V, 1, V);
                    ops_check_same(c, "a row alone", one, y.f + i * V, (size_t)V, 1e-6);
                }
                ops_end(c);
            }
}

enum { OPS_MAX_LABELS = 1024 };

/* loss against ref/: relative, and exactly -1 where there is no path. */
static inline void ops_check_loss(ops_context *c, const double *got, const double *want, int B, double tolerance)
{
    ops_digest_bytes(c, got, (size_t)B * sizeof *got);
    for (int b = 0; b < B; b++)
        ck_assert_msg(want[b] == -1 || isnan(want[b])
                          ? got[b] == want[b] || (isnan(got[b]) && isnan(want[b]))
                          : fabs(got[b] - want[b]) <= tolerance * c->options->tolerance * (1 + fabs(want[b])),
                      "%s: loss of utterance %d is %.12g, expected %.12g", c->what, b, got[b], want[b]);
}

static inline void ops_ctc_shape(ops_context *c, const ops_layout *layout, int V, double spread, int crowded)
{
    int offsets[OPS_MAX_B + 1], rows = ops_offsets(offsets, layout), B = layout->B;
    int labels[OPS_MAX_LABELS], label_offsets[OPS_MAX_B + 1] = {0};
    for (int b = 0; b < B; b++) { // up to a third of the frames, or so many that often no path exists
        int U = ops_pick(c, 0, crowded ? layout->lengths[b] + 1 : layout->lengths[b] / 3);
        for (int u = 0; u < U; u++) {
            int u0 = label_offsets[b] + u;
            labels[u0] = u && ops_pick(c, 0, 4) == 0 ? labels[u0 - 1] : ops_pick(c, 1, V - 1);
        }
        label_offsets[b + 1] = label_offsets[b] + U;
    }
    size_t n = (size_t)rows * (size_t)V;
    pair logp = ops_in(c, n, -spread, spread), dlogits = ops_out(c, n);
    double loss[OPS_MAX_B], alone[OPS_MAX_B], want[OPS_MAX_B];
    test_poison(loss, sizeof loss);
    ops_say(c, "ctc B %d rows %d V %d labels %d spread %g", B, rows, V, label_offsets[B], spread);
    c->ref->log_softmax(c->ref_exec, logp.d, logp.d, rows, V);
    for (size_t i = 0; i < n; i++) logp.f[i] = (float)logp.d[i];
    ops_widen(logp);
    c->ops->ctc(c->exec, loss, dlogits.f, logp.f, offsets, labels, label_offsets, B, V, 0.5);
    c->ops->ctc(c->exec, alone, NULL, logp.f, offsets, labels, label_offsets, B, V, 0.5);
    c->ref->ctc(c->ref_exec, want, dlogits.d, logp.d, offsets, labels, label_offsets, B, V, 0.5);
    ops_check_loss(c, loss, want, B, 2e-6);
    ops_check_loss(c, alone, want, B, 2e-6);
    for (int b = 0; b < B; b++) {
        pair rows_b = {dlogits.f + (size_t)offsets[b] * (size_t)V, dlogits.d + (size_t)offsets[b] * (size_t)V,
                       (size_t)layout->lengths[b] * (size_t)V};
        ops_check_scaled(c, "dlogits", rows_b, 2e-5, 0.5); // a difference of probabilities
    }
    ops_end(c);
}

static inline void ops_case_ctc(ops_context *c)
{
    const int widths[] = {2, 3, 7, 40, 41};
    const ops_layout longer = {3, {200, 0, 333}}, longest = {2, {1500, 701}};
    for (int crowded = 0; crowded < 2; crowded++)
        for (int w = 0; w < 5; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                for (int spread = 1; spread < 30; spread *= 5) ops_ctc_shape(c, &ops_layouts[l], widths[w], spread, crowded);
    ops_ctc_shape(c, &longer, 40, 5, 0);
    ops_ctc_shape(c, &longer, 40, 0.1, 0);
    ops_ctc_shape(c, &longest, 41, 3, 0);
}

/* Very sure and very wrong: log-probabilities down to -1e4 and minus infinity. Nothing infinite or NaN may come out. */
static inline void ops_case_ctc_extremes(ops_context *c)
{
    for (int form = 0; form < 24; form++) {
        enum { T = 40, V = 7, U = 9 };
        const int offsets[] = {0, T}, label_offsets[] = {0, U};
        const double low[] = {-100, -1e4, -INFINITY};
        int labels[U];
        pair logp = ops_in(c, T * V, 0, 0), dlogits = ops_out(c, T * V);
        for (int u = 0; u < U; u++) labels[u] = ops_pick(c, 1, V - 1);
        for (int t = 0; t < T; t++) {
            // Every other form follows a path of the labels (each label for two frames, then a blank), the others a random one.
            int sure = form % 2 ? ops_pick(c, 0, V - 1) : t / 4 < U && t % 4 < 2 ? labels[t / 4] : 0;
            for (int v = 0; v < V; v++) logp.f[t * V + v] = v == sure ? 0 : (float)low[form / 2 % 3];
        }
        ops_widen(logp);
        double loss, want;
        ops_say(c, "ctc with peaks over %g, %s path", low[form / 2 % 3], form % 2 ? "a wrong" : "the right");
        c->ops->ctc(c->exec, &loss, dlogits.f, logp.f, offsets, labels, label_offsets, 1, V, 1);
        c->ref->ctc(c->ref_exec, &want, dlogits.d, logp.d, offsets, labels, label_offsets, 1, V, 1);
        ops_check_loss(c, &loss, &want, 1, 2e-6);
        ck_assert_msg(isfinite(loss), "%s: the loss is %g", c->what, loss);
        for (int i = 0; i < T * V; i++) {
            test_require(isfinite(dlogits.f[i]), "%s: gradient %d is %g", c->what, i, (double)dlogits.f[i]);
            test_require(fabs((double)dlogits.f[i] - dlogits.d[i]) < 1e-3, "%s: gradient %d is %g, expected %g", c->what, i,
                         (double)dlogits.f[i], dlogits.d[i]);
        }
        ops_end(c);
    }
}

/* ---- a NaN is handed on, and to nobody else: training finds it in the loss and can name the utterance ----------------------- */

static inline void ops_check_nan(const char *name, const float *y, int rows, int width, const int *expected)
{
    for (int r = 0; r < rows; r++) {
        int n_nan = 0;
        for (int i = 0; i < width; i++) n_nan += isnan(y[r * width + i]) != 0;
        ck_assert_msg(expected[r] ? n_nan > 0 : n_nan == 0, "%s: row %d has %d NaNs of %d, expected %s", name, r, n_nan, width,
                      expected[r] ? "some" : "none");
    }
}

static inline void ops_case_not_a_number(ops_context *c)
{
    enum { ROWS = 12, H = 2, E = 32, W = H * E };
    const int offsets[] = {0, 5, ROWS}; // the NaN is in row 2 of the first utterance
    const int own[ROWS] = {0, 0, 1}, later[ROWS] = {0, 0, 1, 1, 1}, near[ROWS] = {0, 0, 1, 1}, all[ROWS] = {1, 1, 1, 1, 1};
    ops_say(c, "a NaN in row 2");
    pair x = ops_in(c, ROWS * W, -1, 1), qkv = ops_in(c, ROWS * 3 * W, -1, 1), y = ops_out(c, ROWS * W),
         ones = ops_in(c, 2 * W, 1, 1);
    pair packed = ops_packed(c, W, W), w = ops_in(c, W * W, 0.5, 1);
    x.f[2 * W + 7] = NAN;
    ops_widen(x);
    c->ops->weight_pack(c->exec, packed.f, w.f, W, W);
    c->ops->linear_forward(c->exec, y.f, x.f, packed.f, ones.f, ROWS, W, W, LIN_LINEAR);
    ops_check_nan("linear_forward", y.f, ROWS, W, own);
    c->ops->linear_forward(c->exec, y.f, x.f, packed.f, ones.f, ROWS, W, W, LIN_RELU);
    ops_check_nan("linear_forward with relu", y.f, ROWS, W, own);
    c->ops->layer_norm_forward(c->exec, y.f, NULL, x.f, ones.f, ones.f, ROWS, W);
    ops_check_nan("layer_norm_forward", y.f, ROWS, W, own);
    c->ops->log_softmax(c->exec, y.f, x.f, ROWS, W);
    ops_check_nan("log_softmax", y.f, ROWS, W, own);
    c->ops->conv_forward(c->exec, y.f, x.f, ones.f, ones.f, offsets, 2, W, 2, NULL);
    ops_check_nan("conv_forward", y.f, ROWS, W, near);
    for (int part = 0; part < 3; part++) {
        float *victim = &qkv.f[(2 * 3 + part) * W + 7], keep = *victim;
        *victim = NAN;
        c->ops->attention_forward(c->exec, y.f, qkv.f, offsets, 2, H, E, 1, NULL);
        ops_check_nan(part == 0   ? "causal attention, q"
                      : part == 1 ? "causal attention, k"
                                  : "causal attention, v",
                      y.f, ROWS, W, part == 0 ? own : later);
        c->ops->attention_forward(c->exec, y.f, qkv.f, offsets, 2, H, E, 0, NULL);
        ops_check_nan(part == 0   ? "attention, q"
                      : part == 1 ? "attention, k"
                                  : "attention, v",
                      y.f, ROWS, W, part == 0 ? own : all);
        *victim = keep;
    }
    const int labels[] = {1, 2, 3}, label_offsets[] = {0, 2, 3};
    double loss[2];
    c->ops->log_softmax(c->exec, y.f, x.f, ROWS, W);
    for (int v = 0; v < W; v++) y.f[2 * W + v] = NAN;
    c->ops->ctc(c->exec, loss, NULL, y.f, offsets, labels, label_offsets, 2, W, 1);
    ck_assert_msg(isnan(loss[0]), "%s: the loss is %g", c->what, loss[0]);
    ck_assert_msg(isfinite(loss[1]) && loss[1] >= 0, "%s: the loss of the other utterance is %g", c->what, loss[1]);
    c->ops->ctc(c->exec, loss, x.f, y.f, offsets, labels, label_offsets, 2, W, 1);
    ck_assert_msg(isnan(loss[0]) && isfinite(loss[1]), "%s: the losses with gradients are %g and %g", c->what, loss[0], loss[1]);
    ops_widen(x);
    ops_end(c);
}

#endif
