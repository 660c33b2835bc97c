/*
 * ops_cases_layers.h - cases of ops_cases.h for the operations that treat each row or element alone, and for the optimiser.
 * Included by ops_cases.h only.
 */
#ifndef LIN_TESTS_KERNELS_OPS_CASES_LAYERS_H
#define LIN_TESTS_KERNELS_OPS_CASES_LAYERS_H

static const int ops_rows[] = {0, 1, 2, 7, 8, 9, 17, 49, 65};
enum { OPS_N_ROWS = sizeof ops_rows / sizeof *ops_rows };

/* ---- linear ----------------------------------------------------------------------------------------------------------------- */

static inline void ops_linear_shape(ops_context *c, int rows, int n, int k)
{
    size_t nx = (size_t)rows * (size_t)k, nw = (size_t)n * (size_t)k, ny = (size_t)rows * (size_t)n;
    pair x = ops_in(c, nx, -1, 1), w = ops_in(c, nw, -1, 1), bias = ops_in(c, (size_t)n, -1, 1), dy = ops_in(c, ny, -1, 1);
    pair packed = ops_packed(c, n, k), transposed = ops_packed(c, k, n);
    pair y = ops_out(c, ny), relu = ops_out(c, ny), bare = ops_out(c, ny), dx = ops_out(c, nx);
    pair dw = ops_inout(c, nw, -1, 1), db = ops_inout(c, (size_t)n, -1, 1), dw2 = ops_inout(c, nw, -1, 1);
    ops_say(c, "linear rows %d n %d k %d", rows, n, k);
    const lin_ops *ops = c->ops;
    ops->weight_pack(c->exec, packed.f, w.f, n, k);
    ops->weight_pack_transposed(c->exec, transposed.f, w.f, n, k);
    ops->linear_forward(c->exec, y.f, x.f, packed.f, bias.f, rows, n, k, LIN_LINEAR);
    ops->linear_forward(c->exec, relu.f, x.f, packed.f, bias.f, rows, n, k, LIN_RELU);
    ops->linear_forward(c->exec, bare.f, x.f, packed.f, NULL, rows, n, k, LIN_LINEAR);
    ops->linear_forward(c->exec, dx.f, dy.f, transposed.f, NULL, rows, k, n, LIN_LINEAR);
    ops->linear_backward_weight(c->exec, dw.f, db.f, dy.f, x.f, rows, n, k);
    ops->linear_backward_weight(c->exec, dw2.f, NULL, dy.f, x.f, rows, n, k);
    if (!c->options->digest_only) {
        const lin_ops_f64 *ref = c->ref;
        ref->weight_pack(c->ref_exec, packed.d, w.d, n, k);
        ref->weight_pack_transposed(c->ref_exec, transposed.d, w.d, n, k);
        ref->linear_forward(c->ref_exec, y.d, x.d, packed.d, bias.d, rows, n, k, LIN_LINEAR);
        ref->linear_forward(c->ref_exec, relu.d, x.d, packed.d, bias.d, rows, n, k, LIN_RELU);
        ref->linear_forward(c->ref_exec, bare.d, x.d, packed.d, NULL, rows, n, k, LIN_LINEAR);
        ref->linear_forward(c->ref_exec, dx.d, dy.d, transposed.d, NULL, rows, k, n, LIN_LINEAR);
        ref->linear_backward_weight(c->ref_exec, dw.d, db.d, dy.d, x.d, rows, n, k);
        ref->linear_backward_weight(c->ref_exec, dw2.d, NULL, dy.d, x.d, rows, n, k);
    }
    ops_check_scaled(c, "y", y, 2e-6, 1);
    ops_check_scaled(c, "y with relu", relu, 2e-6, 1);
    ops_check_scaled(c, "y without bias", bare, 2e-6, 1);
    ops_check_scaled(c, "dx", dx, 2e-6, 1);
    ops_check_scaled(c, "dw", dw, 2e-6, 1);
    ops_check_scaled(c, "db", db, 2e-6, 1);
    ops_check_scaled(c, "dw without db", dw2, 2e-6, 1);
    ops_end(c);
}

static inline void ops_case_linear(ops_context *c)
{
    const int widths[][2] = {{1, 1},    {1, 7},    {7, 1},    {48, 48}, {49, 33}, {33, 49},
                             {17, 193}, {193, 17}, {192, 40}, {96, 5},  {95, 64}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t r = 0; r < OPS_N_ROWS; r++) ops_linear_shape(c, ops_rows[r], widths[i][0], widths[i][1]);
    for (int i = 0; i < 40; i++) {
        int rows = ops_pick(c, 0, 70), n = ops_pick(c, 1, 110), k = ops_pick(c, 1, 110);
        ops_linear_shape(c, rows, n, k);
    }
}

/* The shapes of the default network, where blocking over k and n begins; rows beyond one block of any backend. */
static inline void ops_case_linear_model_shapes(ops_context *c)
{
    ops_linear_shape(c, 33, 576, 192);
    ops_linear_shape(c, 9, 768, 192);
    ops_linear_shape(c, 9, 192, 768);
    ops_linear_shape(c, 300, 41, 192);
    ops_linear_shape(c, 1030, 24, 40);
    ops_linear_shape(c, 2, 70, 2100);
}

/* A row's bits depend neither on the rows beside it nor on its place; and they are the bits of one fused multiply-add after the
 * other from +0, the bias last (or of a product and a sum each, where the instruction set has no fused form). */
static inline void ops_case_linear_rows(ops_context *c)
{
    const int shapes[][3] = {{65, 50, 33}, {49, 192, 192}, {130, 1, 7}, {33, 97, 769}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int rows = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        size_t N = (size_t)n, K = (size_t)k;
        pair x = ops_in(c, (size_t)rows * K, -1, 1), w = ops_in(c, N * K, -1, 1), bias = ops_in(c, N, -1, 1);
        pair packed = ops_packed(c, n, k), whole = ops_out(c, (size_t)rows * N);
        c->ops->weight_pack(c->exec, packed.f, w.f, n, k);
        c->ops->linear_forward(c->exec, whole.f, x.f, packed.f, bias.f, rows, n, k, LIN_LINEAR);
        for (int i = 0; i < 40; i++) {
            int first = ops_pick(c, 0, rows - 1), count = i < 20 ? 1 + i % 10 : ops_pick(c, 1, rows);
            if (count > rows - first) count = rows - first;
            float *part = test_buffer_shifted((size_t)count * N, sizeof *part, 3);
            ops_say(c, "linear_forward n %d k %d, rows %d..%d of %d alone", n, k, first, first + count - 1, rows);
            c->ops->linear_forward(c->exec, part, x.f + (size_t)first * K, packed.f, bias.f, count, n, k, LIN_LINEAR);
            ops_check_same(c, "y", part, whole.f + (size_t)first * N, (size_t)count * N, 2e-6);
            test_guards(part, c->what);
            test_buffer_free(part);
        }
        long fused = 0, apart = 0, all = (rows + 3) / 4 * (long)n;
        for (size_t r = 0; r < (size_t)rows; r += 4)
            for (size_t i = 0; i < N; i++) {
                float with_fma = 0, without = 0;
                for (size_t j = 0; j < K; j++) {
                    with_fma = fmaf(x.f[r * K + j], w.f[i * K + j], with_fma);
                    volatile float product = x.f[r * K + j] * w.f[i * K + j];
                    without += product;
                }
                fused += whole.f[r * N + i] == with_fma + bias.f[i];
                apart += whole.f[r * N + i] == without + bias.f[i];
            }
        ops_say(c, "linear_forward rows %d n %d k %d", rows, n, k);
        ck_assert_msg(!c->options->bit_exact || fused == all || apart == all,
                      "%s: %ld of %ld elements are the sum over k in order by fused multiply-adds, %ld by products and sums",
                      c->what, fused, all, apart);
        ops_end(c);
    }
}

/* ---- layer norm ------------------------------------------------------------------------------------------------------------- */

static inline void ops_norm_shape(ops_context *c, int rows, int C, double lo, double hi, double tolerance)
{
    size_t n = (size_t)rows * (size_t)C, R = (size_t)rows, nc = (size_t)C;
    pair x = ops_in(c, n, lo, hi), gamma = ops_in(c, nc, 0.5, 1.5), beta = ops_in(c, nc, -1, 1), dy = ops_in(c, n, -1, 1);
    pair y = ops_out(c, n), stats = ops_out(c, 2 * R), dx = ops_out(c, n), plain = ops_out(c, n);
    pair dgamma = ops_inout(c, nc, -1, 1), dbeta = ops_inout(c, nc, -1, 1);
    ops_say(c, "layer_norm rows %d C %d in %g..%g", rows, C, lo, hi);
    c->ops->layer_norm_forward(c->exec, y.f, stats.f, x.f, gamma.f, beta.f, rows, C);
    c->ops->layer_norm_forward(c->exec, plain.f, NULL, x.f, gamma.f, beta.f, rows, C);
    c->ops->layer_norm_backward(c->exec, dx.f, dgamma.f, dbeta.f, dy.f, x.f, stats.f, gamma.f, rows, C);
    if (!c->options->digest_only) {
        c->ref->layer_norm_forward(c->ref_exec, y.d, stats.d, x.d, gamma.d, beta.d, rows, C);
        c->ref->layer_norm_backward(c->ref_exec, dx.d, dgamma.d, dbeta.d, dy.d, x.d, stats.d, gamma.d, rows, C);
    }
    ops_check_same(c, "y without stats", plain.f, y.f, n, tolerance);
    ops_check(c, "y", y, tolerance);
    ops_check(c, "stats", stats, tolerance);
    double steepest = 1; // the terms of dx are as large as rstd; with one or two channels they cancel almost wholly
    for (size_t r = 0; r < R && !c->options->digest_only; r++) steepest = fmax(steepest, stats.d[2 * r + 1]);
    ops_check_scaled(c, "dx", dx, tolerance, steepest);
    ops_check_scaled(c, "dgamma", dgamma, tolerance, 1);
    ops_check_scaled(c, "dbeta", dbeta, tolerance, 1);
    // dx may alias dy; the gradients of gamma and beta are added once more.
    pair alias = ops_inout(c, n, 0, 0), dgamma2 = ops_inout(c, nc, 0, 0), dbeta2 = ops_inout(c, nc, 0, 0);
    for (size_t i = 0; i < n; i++) alias.f[i] = dy.f[i];
    c->ops->layer_norm_backward(c->exec, alias.f, dgamma2.f, dbeta2.f, alias.f, x.f, stats.f, gamma.f, rows, C);
    ops_check_same(c, "dx in place of dy", alias.f, dx.f, n, tolerance);
    ops_end(c);
}

static inline void ops_case_layer_norm(ops_context *c)
{
    const int widths[] = {1, 2, 7, 16, 48, 192, 193};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t r = 0; r < OPS_N_ROWS; r++) // two channels are often nearly equal, and what is left of them has few digits
            ops_norm_shape(c, ops_rows[r], widths[i], -2, 3, widths[i] == 2 ? 1e-4 : 2e-6);
    ops_norm_shape(c, 700, 192, -2, 3, 2e-6);
    ops_norm_shape(c, 17, 192, 99, 101, 1e-4); // E[x^2] - E[x]^2 would lose three digits more
    ops_norm_shape(c, 17, 48, 5, 5, 2e-6);     // no variance at all
}

static inline void ops_case_layer_norm_rows(ops_context *c)
{
    enum { ROWS = 65, C = 193 };
    pair x = ops_in(c, ROWS * C, -2, 3), gamma = ops_in(c, C, 0.5, 1.5), beta = ops_in(c, C, -1, 1), whole = ops_out(c, ROWS * C);
    c->ops->layer_norm_forward(c->exec, whole.f, NULL, x.f, gamma.f, beta.f, ROWS, C);
    for (int i = 0; i < 20; i++) {
        int first = ops_pick(c, 0, ROWS - 1), count = ops_pick(c, 1, ROWS - first);
        float *part = test_buffer_shifted((size_t)count * C, sizeof *part, 3);
        ops_say(c, "layer_norm_forward rows %d..%d of %d alone", first, first + count - 1, ROWS);
        c->ops->layer_norm_forward(c->exec, part, NULL, x.f + first * C, gamma.f, beta.f, count, C);
        ops_check_same(c, "y", part, whole.f + first * C, (size_t)count * C, 2e-6);
        test_guards(part, c->what);
        test_buffer_free(part);
    }
    ops_end(c);
}

/* ---- element by element ----------------------------------------------------------------------------------------------------- */

static inline void ops_case_elementwise(ops_context *c)
{
    const size_t counts[] = {0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 33, 63, 64, 65, 1000, 4099, 70001};
    const double rates[] = {0, 0.1, 0.5};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int p = 0; p < 3; p++) {
            size_t n = counts[i];
            double rate = rates[p], scale = 1 / (1 - rate);
            uint64_t key = ops_next_key(c);
            pair x = ops_in(c, n, -1, 1), r = ops_in(c, n, -1, 1), sum = ops_inout(c, n, -1, 1);
            pair dropped = ops_out(c, n), added = ops_out(c, n), dx = ops_out(c, n), copy = ops_out(c, n);
            ops_say(c, "%zu elements, p %g", n, rate);
            c->ops->add(c->exec, sum.f, x.f, n);
            c->ops->dropout(c->exec, dropped.f, x.f, n, rate, key);
            c->ops->add_dropout(c->exec, added.f, x.f, r.f, n, rate, key);
            c->ops->relu_backward(c->exec, dx.f, r.f, dropped.f, n, scale);
            c->ref->add(c->ref_exec, sum.d, x.d, n);
            c->ref->dropout(c->ref_exec, dropped.d, x.d, n, rate, key);
            c->ref->add_dropout(c->ref_exec, added.d, x.d, r.d, n, rate, key);
            c->ref->relu_backward(c->ref_exec, dx.d, r.d, dropped.d, n, scale);
            ops_check(c, "add", sum, 1e-6);
            ops_check(c, "dropout", dropped, 1e-6);
            ops_check(c, "add_dropout", added, 1e-6);
            ops_check(c, "relu_backward", dx, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = x.f[j];
            c->ops->dropout(c->exec, copy.f, copy.f, n, rate, key);
            ops_check_same(c, "dropout in place", copy.f, dropped.f, n, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = x.f[j];
            c->ops->add_dropout(c->exec, copy.f, copy.f, r.f, n, rate, key);
            ops_check_same(c, "add_dropout in place", copy.f, added.f, n, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = r.f[j];
            c->ops->relu_backward(c->exec, copy.f, copy.f, dropped.f, n, scale);
            ops_check_same(c, "relu_backward in place", copy.f, dx.f, n, 1e-6);
            ops_end(c);
        }
}

/* The rule of ops_table.h worked out here from the random bits alone, and the share of what is kept. */
static inline void ops_case_dropout_rule(ops_context *c)
{
    enum { N = 100003 };
    const double rates[] = {0.1, 0.3, 0.5, 1e-6, 0.99999};
    for (int p = 0; p < 5; p++) {
        uint64_t key = ops_next_key(c);
        pair ones = ops_in(c, N, 1, 1), zeros = ops_in(c, N, 0, 0), y = ops_out(c, N), backward = ops_out(c, N),
             added = ops_out(c, N);
        ops_say(c, "dropout p %g", rates[p]);
        c->ops->dropout(c->exec, y.f, ones.f, N, rates[p], key);
        c->ops->dropout(c->exec, backward.f, ones.f, N, rates[p], key);
        c->ops->add_dropout(c->exec, added.f, zeros.f, ones.f, N, rates[p], key);
        unsigned threshold = (unsigned)(rates[p] * 65536 + 0.5);
        double kept = 0, expected = (65536 - threshold) / 65536.0;
        for (size_t i = 0; i < N; i++) {
            uint64_t bits = lin_random_bits(key, i >> 2);
            const unsigned lanes[4] = {(unsigned)(bits & 0xFFFF), (unsigned)(bits >> 16 & 0xFFFF), (unsigned)(bits >> 32 & 0xFFFF),
                                       (unsigned)(bits >> 48)};
            double want = lanes[i & 3] >= threshold ? 1 / (1 - rates[p]) : 0;
            kept += want > 0;
            test_require(fabs((double)y.f[i] - want) <= 1e-6 * want, "%s: element %zu is %g, the rule says %g", c->what, i,
                         (double)y.f[i], want);
        }
        ck_assert_msg(fabs(kept / N - expected) <= 5 * sqrt(expected * (1 - expected) / N), "%s: %g kept", c->what, kept / N);
        ops_check_same(c, "again, as its backward", backward.f, y.f, N, 1e-6);
        ops_check_same(c, "add_dropout to zeros", added.f, y.f, N, 1e-6);
        ops_end(c);
    }
}

/* ---- frames ----------------------------------------------------------------------------------------------------------------- */

static inline void ops_case_stack_frames(ops_context *c)
{
    const int widths[] = {1, 7, 40}, forms[][2] = {{1, 0}, {3, 0}, {4, 2}, {1, 5}, {2, 1}, {3, 20}};
    for (int l = 0; l < OPS_N_LAYOUTS; l++)
        for (int d = 0; d < 3; d++)
            for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
                const ops_layout *layout = &ops_layouts[l];
                int D = widths[d], stack = forms[f][0], ahead = forms[f][1], in[OPS_MAX_B + 1], out[OPS_MAX_B + 1] = {0};
                int rows = ops_offsets(in, layout);
                for (int b = 0; b < layout->B; b++) out[b + 1] = out[b] + (layout->lengths[b] + stack - 1) / stack;
                size_t ny = (size_t)out[layout->B] * (size_t)((stack + ahead) * D);
                pair x = ops_in(c, (size_t)(rows * D), -5, 15), mean = ops_in(c, (size_t)D, 4, 6),
                     istd = ops_in(c, (size_t)D, 0.1, 1);
                pair y = ops_out(c, ny);
                ops_say(c, "stack_frames layout %d D %d stack %d ahead %d", l, D, stack, ahead);
                c->ops->stack_frames(c->exec, y.f, x.f, mean.f, istd.f, in, out, layout->B, D, stack, ahead);
                c->ref->stack_frames(c->ref_exec, y.d, x.d, mean.d, istd.d, in, out, layout->B, D, stack, ahead);
                ops_check(c, "y", y, 1e-6);
                ops_end(c);
            }
}

static inline void ops_case_sinusoid(ops_context *c)
{
    const int widths[] = {1, 2, 7, 48, 192, 193};
    const ops_layout hour = {2, {2400, 5}};
    for (int l = 0; l <= OPS_N_LAYOUTS; l++)
        for (int w = 0; w < 6; w++) {
            const ops_layout *layout = l < OPS_N_LAYOUTS ? &ops_layouts[l] : &hour;
            if (layout == &hour && w != 3) continue;
            int offsets[OPS_MAX_B + 1], C = widths[w], rows = ops_offsets(offsets, layout);
            pair x = ops_inout(c, (size_t)(rows * C), -1, 1);
            ops_say(c, "add_sinusoid layout %d C %d", l, C);
            c->ops->add_sinusoid(c->exec, x.f, offsets, layout->B, C);
            c->ref->add_sinusoid(c->ref_exec, x.d, offsets, layout->B, C);
            ops_check(c, "x", x, 1e-6);
            ops_end(c);
        }
}

/* ---- optimiser -------------------------------------------------------------------------------------------------------------- */

static inline void ops_case_optimiser(ops_context *c)
{
    enum { N_TENSORS = 7 };
    const size_t lengths[N_TENSORS] = {1, 0, 7, 17, 4097, 48, 20000};
    size_t offsets[N_TENSORS + 1] = {0};
    for (int i = 0; i < N_TENSORS; i++) offsets[i + 1] = offsets[i] + lengths[i];
    size_t n = offsets[N_TENSORS];
    const double scale[N_TENSORS] = {1, 1, 0.25, 0, 0.5, 1, 0.125};
    const unsigned char decay[N_TENSORS] = {1, 1, 0, 1, 1, 0, 1};
    for (int form = 0; form < 4; form++) {
        pair p = ops_inout(c, n, -1, 1), m = ops_inout(c, n, 0, 0), v = ops_inout(c, n, 0, 0);
        ops_say(c, "adam, adaptive %d, decoupled %d", form & 1, form >> 1);
        for (int t = 1; t <= 4; t++) {
            pair grad = ops_in(c, n, -3, 2);
            lin_adam_step step = {.beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .eps = 1e-8,
                                  .weight_decay = 0.01,
                                  .lr = 0.02,
                                  .step_size = 0.02 / (1 - pow(0.9, t)),
                                  .v_scale = 1 / sqrt(1 - pow(0.999, t)),
                                  .adaptive = form & 1,
                                  .decoupled = form >> 1};
            c->ops->adam(c->exec, p.f, grad.f, m.f, v.f, offsets, scale, decay, N_TENSORS, &step);
            c->ref->adam(c->ref_exec, p.d, grad.d, m.d, v.d, offsets, scale, decay, N_TENSORS, &step);
        }
        ops_check(c, "p", p, 4e-6);
        ops_check(c, "m", m, 2e-6);
        ops_check(c, "v", v, 2e-6);
        double norms[N_TENSORS], want[N_TENSORS];
        ops_widen(p);
        test_poison(norms, sizeof norms);
        c->ops->sum_squares(c->exec, norms, p.f, offsets, N_TENSORS);
        c->ref->sum_squares(c->ref_exec, want, p.d, offsets, N_TENSORS);
        ops_digest_bytes(c, norms, sizeof norms);
        for (int i = 0; i < N_TENSORS; i++)
            ck_assert_msg(fabs(norms[i] - want[i]) <= 1e-12 * want[i], "%s: sum of squares %d is %.17g, expected %.17g", c->what, i,
                          norms[i], want[i]);
        ops_end(c);
    }
}

#endif
