// Cases of ops_cases.h for the operations that treat each row or element alone.
#include "base/number.h"
#include "tests/kernels/ops_cases_internal.h"

const int ops_rows[OPS_N_ROWS] = {0, 1, 2, 7, 8, 9, 17, 49, 65};

/* ---- linear ---------------------------------------------------------------------------------------------------------------- */

void ops_pack(ops_context *c, pair packed, pair w, int n, int k, int transposed)
{
    const lin_packing item = {.n = n, .k = k, .transposed = transposed};
    c->ops->weights_pack(c->exec, packed.f, w.f, &item, 1);
    c->ref->weights_pack(c->ref_exec, packed.d, w.d, &item, 1);
}

static void ops_linear_shape(ops_context *c, int rows, int n, int k)
{
    size_t nx = (size_t)rows * (size_t)k, nw = (size_t)n * (size_t)k, ny = (size_t)rows * (size_t)n;
    pair x = ops_in(c, nx, -1, 1), w = ops_in(c, nw, -1, 1), bias = ops_in(c, (size_t)n, -1, 1), dy = ops_in(c, ny, -1, 1);
    pair packed = ops_packed(c, n, k), transposed = ops_packed(c, k, n);
    pair y = ops_out(c, ny), relu = ops_out(c, ny), bare = ops_out(c, ny), dx = ops_out(c, nx);
    pair dw = ops_inout(c, nw, -1, 1), db = ops_inout(c, (size_t)n, -1, 1), dw2 = ops_inout(c, nw, -1, 1);
    ops_say(c, "linear rows %d n %d k %d", rows, n, k);
    const lin_ops *ops = c->ops;
    ops_pack(c, packed, w, n, k, 0);
    ops_pack(c, transposed, w, n, k, 1);
    ops->linear_forward(c->exec, y.f, x.f, packed.f, bias.f, rows, n, k, LIN_LINEAR);
    ops->linear_forward(c->exec, relu.f, x.f, packed.f, bias.f, rows, n, k, LIN_RELU);
    ops->linear_forward(c->exec, bare.f, x.f, packed.f, NULL, rows, n, k, LIN_LINEAR);
    ops->linear_forward(c->exec, dx.f, dy.f, transposed.f, NULL, rows, k, n, LIN_LINEAR);
    ops->linear_backward_weight(c->exec, dw.f, db.f, dy.f, x.f, rows, n, k);
    ops->linear_backward_weight(c->exec, dw2.f, NULL, dy.f, x.f, rows, n, k);
    if (!c->options->digest_only) {
        const lin_ops_f64 *ref = c->ref;
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

void ops_case_linear(ops_context *c)
{
    const int widths[][2] = {{1, 1},    {1, 7},    {7, 1},    {48, 48}, {49, 33}, {33, 49},
                             {17, 193}, {193, 17}, {192, 40}, {96, 5},  {95, 64}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            if (!ops_thin(c, 7)) ops_linear_shape(c, ops_rows[r], widths[i][0], widths[i][1]);
    for (int i = 0; i < 40; i++) {
        if (ops_thin(c, 7)) continue;
        int rows = ops_pick(c, 0, 70), n = ops_pick(c, 1, 110), k = ops_pick(c, 1, 110);
        ops_linear_shape(c, rows, n, k);
    }
}

/* The shapes of the default network, where blocking over k and n begins; rows beyond one block of any backend. */
void ops_case_linear_model_shapes(ops_context *c)
{
    if (c->options->quick) return;
    ops_linear_shape(c, 33, 576, 192);
    ops_linear_shape(c, 9, 768, 192);
    ops_linear_shape(c, 9, 192, 768);
    ops_linear_shape(c, 300, 41, 192);
    ops_linear_shape(c, 1030, 24, 40);
    ops_linear_shape(c, 2, 70, 2100);
}

/* A row's bits depend neither on the rows beside it nor on its place; and they are the bits of one fused multiply-add after the
 * other from +0, the bias last (or of a product and a sum each, where the instruction set has no fused form). */
void ops_case_linear_rows(ops_context *c)
{
    const int shapes[][3] = {{65, 50, 33}, {49, 192, 192}, {130, 1, 7}, {33, 97, 769}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int rows = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        if (c->options->quick && s > 0) break;
        size_t N = (size_t)n, K = (size_t)k;
        pair x = ops_in(c, (size_t)rows * K, -1, 1), w = ops_in(c, N * K, -1, 1), bias = ops_in(c, N, -1, 1);
        pair packed = ops_packed(c, n, k), whole = ops_out(c, (size_t)rows * N);
        ops_pack(c, packed, w, n, k, 0);
        c->ops->linear_forward(c->exec, whole.f, x.f, packed.f, bias.f, rows, n, k, LIN_LINEAR);
        for (int i = 0; i < (c->options->quick ? 4 : 40); i++) {
            int first = ops_pick(c, 0, rows - 1), count = i < 20 ? 1 + i % 10 : ops_pick(c, 1, rows);
            if (count > rows - first) count = rows - first;
            float *part = test_buffer_shifted((size_t)count * N, sizeof *part, ops_shift(c, 3));
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

/* Packing many matrices in one call gives the same as packing each alone, and does not write between them. */
void ops_case_weights_pack(ops_context *c)
{
    enum { N = 6 };
    const int shapes[N][2] = {{1, 1}, {17, 33}, {33, 17}, {192, 40}, {49, 193}, {7, 5}};
    lin_packing items[2 * N];
    size_t from = 0, to = 0;
    for (int i = 0; i < 2 * N; i++) {
        int n = shapes[i / 2][0], k = shapes[i / 2][1];
        items[i] = (lin_packing){.from = from, .to = to, .n = n, .k = k, .transposed = i % 2};
        to += (c->ops->weight_size(i % 2 ? k : n, i % 2 ? n : k) + 31) / 16 * 16; // with a gap
        if (i % 2) from += (size_t)(n * k) + 3;
    }
    pair w = ops_in(c, from, -1, 1);
    float *packed = test_buffer(to, sizeof *packed), *alone = test_buffer(to, sizeof *alone);
    ops_say(c, "weights_pack of %d matrices", 2 * N);
    c->ops->weights_pack(c->exec, packed, w.f, items, 2 * N);
    for (int i = 2 * N - 1; i >= 0; i--) c->ops->weights_pack(c->exec, alone, w.f, &items[i], 1);
    ops_digest_bytes(c, packed, to * sizeof *packed);
    for (size_t i = 0; i < to; i++) {
        unsigned got, want;
        memcpy(&got, &packed[i], sizeof got);
        memcpy(&want, &alone[i], sizeof want);
        test_require(got == want, "%s: element %zu is %g, alone %g", c->what, i, (double)packed[i], (double)alone[i]);
    }
    for (int i = 0; i < 2 * N; i++) { // every part of an item was packed: the products are right
        int n = items[i].transposed ? items[i].k : items[i].n, k = items[i].transposed ? items[i].n : items[i].k;
        size_t end = items[i].to + c->ops->weight_size(n, k);
        pair x = ops_in(c, (size_t)(3 * k), -1, 1), y = ops_out(c, (size_t)(3 * n)), own = ops_packed(c, n, k);
        const lin_packing item = {.from = items[i].from, .n = items[i].n, .k = items[i].k, .transposed = items[i].transposed};
        ops_say(c, "weights_pack, matrix %d", i);
        c->ref->weights_pack(c->ref_exec, own.d, w.d, &item, 1);
        c->ops->linear_forward(c->exec, y.f, x.f, packed + items[i].to, NULL, 3, n, k, LIN_LINEAR);
        c->ref->linear_forward(c->ref_exec, y.d, x.d, own.d, NULL, 3, n, k, LIN_LINEAR);
        ops_check_scaled(c, "y", y, 2e-6, 1);
        size_t next = i + 1 < 2 * N ? items[i + 1].to : to;
        for (; end < next; end++) test_require(isnan(packed[end]), "%s: the gap after it was written", c->what);
    }
    test_guards(packed, c->what);
    TEST_FREE(packed, alone);
    ops_end(c);
}

/* Weights in half precision, at an odd address, are packed as the same numbers in floats are. */
void ops_case_weights_pack_half(ops_context *c)
{
    enum { N = 6 };
    const int shapes[N][2] = {{1, 1}, {17, 33}, {64, 17}, {192, 40}, {49, 193}, {30, LIN_HALF_COLUMNS}};
    if (!c->ops->packs_halves) return;
    ops_say(c, "weights_pack of halves");
    for (int i = 0; i < N; i++) {
        const int n = shapes[i][0], k = shapes[i][1];
        const size_t count = (size_t)n * (size_t)k, size = c->ops->weight_size(n, k);
        pair w = ops_in(c, count, -1, 1);
        unsigned char *halves = test_buffer_shifted(2 * count + 1, 1, 1);
        float *rounded = test_buffer(count, sizeof *rounded);
        float *want = test_buffer(size, sizeof *want), *got = test_buffer(size, sizeof *got);
        lin_half_narrow(w.f, count, halves + 1);
        lin_half_widen(halves + 1, count, rounded);
        c->ops->weights_pack(c->exec, want, rounded, &(lin_packing){.n = n, .k = k}, 1);
        c->ops->weights_pack(c->exec, got, NULL, &(lin_packing){.n = n, .k = k, .half = halves + 1}, 1);
        test_require(memcmp(got, want, size * sizeof *got) == 0, "%s: %d x %d differs from floats", c->what, n, k);
        test_guards(got, c->what);
        TEST_FREE(halves, rounded, want, got);
    }
    ops_end(c);
}

/* ---- layer norm ------------------------------------------------------------------------------------------------------------ */

static void ops_norm_shape(ops_context *c, int rows, int C, double lo, double hi, double tolerance)
{
    size_t n = (size_t)rows * (size_t)C, R = (size_t)rows, nc = (size_t)C;
    pair x = ops_in(c, n, lo, hi), gamma = ops_in(c, nc, 0.5, 1.5), beta = ops_in(c, nc, -1, 1), dy = ops_in(c, n, -1, 1);
    pair y = ops_out(c, n), stats = ops_out(c, 2 * R), dx = ops_out(c, n), plain = ops_out(c, n);
    pair dgamma = ops_inout(c, nc, -1, 1), dbeta = ops_inout(c, nc, -1, 1), db = ops_inout(c, nc, -1, 1);
    ops_say(c, "layer_norm rows %d C %d in %g..%g", rows, C, lo, hi);
    c->ops->layer_norm_forward(c->exec, y.f, stats.f, x.f, gamma.f, beta.f, rows, C);
    c->ops->layer_norm_forward(c->exec, plain.f, NULL, x.f, gamma.f, beta.f, rows, C);
    c->ops->layer_norm_backward(c->exec, NULL, dx.f, NULL, dgamma.f, dbeta.f, db.f, dy.f, NULL, NULL, x.f, stats.f, gamma.f, rows,
                                C, NULL);
    if (!c->options->digest_only) {
        c->ref->layer_norm_forward(c->ref_exec, y.d, stats.d, x.d, gamma.d, beta.d, rows, C);
        c->ref->layer_norm_backward(c->ref_exec, NULL, dx.d, NULL, dgamma.d, dbeta.d, db.d, dy.d, NULL, NULL, x.d, stats.d,
                                    gamma.d, rows, C, NULL);
    }
    ops_check_same(c, "y without stats", plain.f, y.f, n, tolerance);
    ops_check(c, "y", y, tolerance);
    ops_check(c, "stats", stats, tolerance);
    double steepest = 1; // the terms of dx are as large as rstd; with one or two channels they cancel almost wholly
    for (size_t r = 0; r < R && !c->options->digest_only; r++) steepest = fmax(steepest, stats.d[2 * r + 1]);
    ops_check_scaled(c, "dx", dx, tolerance, steepest);
    ops_check_scaled(c, "dgamma", dgamma, tolerance, 1);
    ops_check_scaled(c, "dbeta", dbeta, tolerance, 1);
    ops_check_scaled(c, "db", db, tolerance, steepest);
    // dx may alias dy; the gradients of gamma and beta are added once more.
    pair alias = ops_inout(c, n, 0, 0), dgamma2 = ops_inout(c, nc, 0, 0), dbeta2 = ops_inout(c, nc, 0, 0);
    for (size_t i = 0; i < n; i++) alias.f[i] = dy.f[i];
    c->ops->layer_norm_backward(c->exec, NULL, alias.f, NULL, dgamma2.f, dbeta2.f, NULL, alias.f, NULL, NULL, x.f, stats.f,
                                gamma.f, rows, C, NULL);
    ops_check_same(c, "dx in place of dy", alias.f, dx.f, n, tolerance);
    ops_end(c);
}

void ops_case_layer_norm(ops_context *c)
{
    const int widths[] = {1, 2, 7, 16, 48, 100, 192, 193, 256, 300, 1020};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (size_t r = 0; r < OPS_N_ROWS; r++) // two channels are often nearly equal, and their difference has few digits
            if (!ops_thin(c, 5)) ops_norm_shape(c, ops_rows[r], widths[i], -2, 3, widths[i] == 2 ? 1e-4 : 2e-6);
    if (!c->options->quick) ops_norm_shape(c, 700, 192, -2, 3, 2e-6);
    ops_norm_shape(c, 17, 192, 99, 101, 1e-4); // E[x^2] - E[x]^2 would lose three digits more
    ops_norm_shape(c, 17, 48, 5, 5, 2e-6);     // no variance at all
}

void ops_case_layer_norm_rows(ops_context *c)
{
    enum { ROWS = 65, C = 193 };
    pair x = ops_in(c, ROWS * C, -2, 3), gamma = ops_in(c, C, 0.5, 1.5), beta = ops_in(c, C, -1, 1), whole = ops_out(c, ROWS * C);
    c->ops->layer_norm_forward(c->exec, whole.f, NULL, x.f, gamma.f, beta.f, ROWS, C);
    for (int i = 0; i < (c->options->quick ? 4 : 20); i++) {
        int first = ops_pick(c, 0, ROWS - 1), count = ops_pick(c, 1, ROWS - first);
        float *part = test_buffer_shifted((size_t)count * C, sizeof *part, ops_shift(c, 3));
        ops_say(c, "layer_norm_forward rows %d..%d of %d alone", first, first + count - 1, ROWS);
        c->ops->layer_norm_forward(c->exec, part, NULL, x.f + first * C, gamma.f, beta.f, count, C);
        ops_check_same(c, "y", part, whole.f + first * C, (size_t)count * C, 2e-6);
        test_guards(part, c->what);
        test_buffer_free(part);
    }
    ops_end(c);
}

static const double ops_rates[] = {0, 0.1, 0.5};

/* The end of a block and the next norm, against ref/ and against the two operations that it combines. */
static void ops_block_end_shape(ops_context *c, int rows, int C, double rate)
{
    size_t n = (size_t)rows * (size_t)C, R = (size_t)rows, nc = (size_t)C;
    pair x = ops_in(c, n, -2, 3), r = ops_in(c, n, -1, 1), gamma = ops_in(c, nc, 0.5, 1.5), beta = ops_in(c, nc, -1, 1);
    pair sum = ops_out(c, n), y = ops_out(c, n), stats = ops_out(c, 2 * R), in_place = ops_inout(c, n, 0, 0),
         again = ops_out(c, n);
    pair chain = ops_out(c, n), chain_y = ops_out(c, n), chain_stats = ops_out(c, 2 * R), alone = ops_out(c, n);
    const lin_dropout d = ops_dropout(c, rate);
    const double tolerance = C == 2 ? 1e-4 : 2e-6;
    ops_say(c, "add_dropout_norm_forward rows %d C %d p %g", rows, C, rate);
    for (size_t i = 0; i < n; i++) in_place.f[i] = x.f[i];
    c->ops->add_dropout_norm_forward(c->exec, NULL, sum.f, y.f, stats.f, x.f, r.f, gamma.f, beta.f, rows, C, &d);
    c->ops->add_dropout_norm_forward(c->exec, NULL, in_place.f, again.f, NULL, in_place.f, r.f, gamma.f, beta.f, rows, C, &d);
    c->ops->add_dropout_norm_forward(c->exec, NULL, alone.f, alone.f, NULL, x.f, r.f, gamma.f, beta.f, rows, C, &d);
    c->ops->add_dropout(c->exec, chain.f, x.f, r.f, n, &d);
    c->ops->layer_norm_forward(c->exec, chain_y.f, chain_stats.f, chain.f, gamma.f, beta.f, rows, C);
    c->ref->add_dropout_norm_forward(c->ref_exec, NULL, sum.d, y.d, stats.d, x.d, r.d, gamma.d, beta.d, rows, C, &d);
    ops_check(c, "sum", sum, 1e-6);
    ops_check(c, "y", y, tolerance);
    ops_check(c, "stats", stats, tolerance);
    ops_check_same(c, "sum in place of x", in_place.f, sum.f, n, 1e-6);
    ops_check_same(c, "y without stats", again.f, y.f, n, tolerance);
    ops_check_same(c, "y without its sum", alone.f, y.f, n, tolerance);
    ops_check_same(c, "sum, by add_dropout", chain.f, sum.f, n, 1e-6);
    ops_check_same(c, "y, by layer_norm_forward", chain_y.f, y.f, n, tolerance);
    ops_check_same(c, "stats, by layer_norm_forward", chain_stats.f, stats.f, 2 * R, tolerance);
    ops_end(c);
}

void ops_case_block_end(ops_context *c)
{
    const int widths[] = {1, 2, 7, 16, 48, 100, 192, 193, 256, 300, 1020};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            for (int p = 0; p < 3; p++)
                if (!ops_thin(c, 11)) ops_block_end_shape(c, ops_rows[r], widths[w], ops_rates[p]);
    if (!c->options->quick) ops_block_end_shape(c, 700, 192, 0.1);
}

/* Its gradient: that of the residual is added or, with is_more, the norm's output has a second one, as in post-norm networks;
 * that of the block's output passes through the same dropout. */
static void ops_block_end_backward_shape(ops_context *c, int rows, int C, double rate, int is_more)
{
    size_t n = (size_t)rows * (size_t)C, R = (size_t)rows, nc = (size_t)C;
    pair x = ops_in(c, n, -2, 3), dy = ops_in(c, n, -1, 1), beside = ops_in(c, n, -1, 1), gamma = ops_in(c, nc, 0.5, 1.5);
    pair beta = ops_in(c, nc, 0, 0), y = ops_out(c, n), stats = ops_inout(c, 2 * R, 0, 0), both = ops_inout(c, n, 0, 0);
    pair dx = ops_out(c, n), dropped = ops_out(c, n), dgamma = ops_inout(c, nc, -1, 1), dbeta = ops_inout(c, nc, -1, 1);
    pair over_dy = ops_inout(c, n, 0, 0), over_beside = ops_inout(c, n, 0, 0), want = ops_out(c, n), dropped2 = ops_out(c, n);
    pair dgamma2 = ops_inout(c, nc, 0, 0), dbeta2 = ops_inout(c, nc, 0, 0), db = ops_inout(c, nc, -1, 1);
    pair dgamma3 = ops_inout(c, nc, 0, 0), dbeta3 = ops_inout(c, nc, 0, 0);
    const float *more = is_more ? beside.f : NULL, *residual = is_more ? NULL : beside.f;
    const lin_dropout d = ops_dropout(c, rate);
    const lin_ops *ops = c->ops;
    ops_say(c, "layer_norm_backward with %s, rows %d C %d p %g", is_more ? "more" : "residual", rows, C, rate);
    ops->layer_norm_forward(c->exec, y.f, stats.f, x.f, gamma.f, beta.f, rows, C);
    ops_done(c);
    ops_widen(stats);
    for (size_t i = 0; i < n; i++) {
        over_dy.f[i] = dy.f[i];
        over_beside.f[i] = beside.f[i];
        both.f[i] = is_more ? dy.f[i] + beside.f[i] : dy.f[i];
    }
    ops->layer_norm_backward(c->exec, NULL, dx.f, dropped.f, dgamma.f, dbeta.f, db.f, dy.f, more, residual, x.f, stats.f, gamma.f,
                             rows, C, &d);
    c->ref->layer_norm_backward(c->ref_exec, NULL, dx.d, dropped.d, dgamma.d, dbeta.d, db.d, dy.d, is_more ? beside.d : NULL,
                                is_more ? NULL : beside.d, x.d, stats.d, gamma.d, rows, C, &d);
    const double tolerance = is_more ? 4e-6 : 2e-6;
    double steepest = 1; // as in ops_norm_shape
    for (size_t r = 0; r < R; r++) steepest = fmax(steepest, stats.d[2 * r + 1]);
    ops_check_scaled(c, "dx", dx, tolerance, steepest);
    ops_check_scaled(c, "dropped", dropped, tolerance, steepest);
    ops_check_scaled(c, "dgamma", dgamma, tolerance, steepest);
    ops_check_scaled(c, "dbeta", dbeta, tolerance, 1);
    ops_check_scaled(c, "db", db, tolerance, steepest);
    // The operations that these are: the norm's gradient, a sum behind or before it, a dropout.
    ops->layer_norm_backward(c->exec, NULL, want.f, NULL, dgamma3.f, dbeta3.f, NULL, both.f, NULL, NULL, x.f, stats.f, gamma.f,
                             rows, C, is_more ? &d : NULL);
    ops_done(c);
    for (size_t i = 0; i < n && !is_more; i++) want.f[i] += beside.f[i];
    ops_check_same(c, "dx, by its parts", dx.f, want.f, n, 2e-6 * steepest);
    ops->dropout(c->exec, want.f, dx.f, n, &d);
    ops_check_same(c, "dropped, by dropout", dropped.f, want.f, n, 2e-6);
    ops->layer_norm_backward(c->exec, NULL, over_dy.f, dropped2.f, dgamma2.f, dbeta2.f, NULL, over_dy.f, more, residual, x.f,
                             stats.f, gamma.f, rows, C, &d);
    ops_check_same(c, "dx in place of dy", over_dy.f, dx.f, n, 2e-6);
    ops_check_same(c, "dropped, dx in place of dy", dropped2.f, dropped.f, n, 2e-6);
    ops_check_same(c, "dgamma, by its parts", dgamma2.f, dgamma3.f, nc, 2e-6 * steepest);
    ops_check_same(c, "dbeta, by its parts", dbeta2.f, dbeta3.f, nc, 2e-6);
    ops->layer_norm_backward(c->exec, NULL, over_beside.f, NULL, dgamma2.f, dbeta2.f, NULL, dy.f, is_more ? over_beside.f : NULL,
                             is_more ? NULL : over_beside.f, x.f, stats.f, gamma.f, rows, C, &d);
    ops_check_same(c, "dx in place of what is beside", over_beside.f, dx.f, n, 2e-6);
    ops_end(c);
}

void ops_case_block_end_backward(ops_context *c)
{
    const int widths[] = {1, 3, 7, 16, 48, 100, 192, 193, 256, 300, 1020};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            for (int p = 0; p < 3; p++)
                if (!ops_thin(c, 13))
                    for (int is_more = 0; is_more < 2; is_more++)
                        ops_block_end_backward_shape(c, ops_rows[r], widths[w], ops_rates[p], is_more);
    if (c->options->quick) return;
    ops_block_end_backward_shape(c, 700, 192, 0.1, 0);
    ops_block_end_backward_shape(c, 700, 192, 0.1, 1);
    ops_block_end_backward_shape(c, 701, 35, 0.1, 0); // blocks of rows that begin anywhere in a vector
}

// An operand that a norm writes is the rounded matrix; all else are the bits of the operations that it stands for.
static void ops_check_operand(ops_context *c, const char *what, const uint16_t *operand, const float *x, size_t n)
{
    ops_done(c);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        const uint16_t want = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
        ck_assert_msg(operand[i] == want, "%s: %s, element %zu is %04x, expected %04x", c->what, what, i, operand[i], want);
    }
}

static void ops_block_norm_shape(ops_context *c, int rows, int C, double rate)
{
    const size_t n = (size_t)rows * (size_t)C, R = (size_t)rows, nc = (size_t)C;
    pair x = ops_in(c, n, -2, 3), r = ops_in(c, n, -1, 1), dy = ops_in(c, n, -1, 1), beside = ops_in(c, n, -1, 1),
         gamma = ops_in(c, nc, 0.5, 1.5), beta = ops_in(c, nc, -1, 1);
    pair sum[2], y[2], stats[2], dx[2], dropped[2], sums[2][3];
    uint16_t *forward = ops_block(c, n, sizeof *forward, NULL), *backward = ops_block(c, n, sizeof *backward, NULL);
    const lin_dropout d = ops_dropout(c, rate);
    const lin_ops *ops = c->ops;
    const int is_more = ops_pick(c, 0, 1);
    ops_say(c, "norms that write operands, rows %d C %d p %g", rows, C, rate);
    for (int i = 0; i < 2; i++) {
        sum[i] = ops_out(c, n), y[i] = ops_out(c, n), stats[i] = ops_out(c, 2 * R), dx[i] = ops_out(c, n);
        dropped[i] = ops_inout(c, n, 0, 0);
        for (int k = 0; k < 3; k++) sums[i][k] = ops_inout(c, nc, 1, 1);
    }
    const float *more = is_more ? beside.f : NULL, *residual = is_more ? NULL : beside.f;
    ops->add_dropout_norm_forward(c->exec, NULL, sum[0].f, y[0].f, stats[0].f, x.f, r.f, gamma.f, beta.f, rows, C, &d);
    ops->layer_norm_backward(c->exec, NULL, dx[0].f, rate > 0 ? dropped[0].f : NULL, sums[0][0].f, sums[0][1].f, sums[0][2].f,
                             dy.f, more, residual, sum[0].f, stats[0].f, gamma.f, rows, C, &d);
    ops->add_dropout_norm_forward(c->exec, forward, sum[1].f, y[1].f, stats[1].f, x.f, r.f, gamma.f, beta.f, rows, C, &d);
    ops->layer_norm_backward(c->exec, backward, dx[1].f, rate > 0 ? dropped[1].f : NULL, sums[1][0].f, sums[1][1].f,
                             sums[1][2].f, dy.f, more, residual, sum[0].f, stats[0].f, gamma.f, rows, C, &d);
    ops_check_same(c, "sum", sum[1].f, sum[0].f, n, 0);
    ops_check_same(c, "y", y[1].f, y[0].f, n, 0);
    ops_check_same(c, "stats", stats[1].f, stats[0].f, 2 * R, 0);
    ops_check_same(c, "dx", dx[1].f, dx[0].f, n, 0);
    for (int k = 0; k < 3; k++) ops_check_same(c, "a sum over the rows", sums[1][k].f, sums[0][k].f, nc, 0);
    ops_check_operand(c, "operand of the block after it", forward, y[0].f, n);
    ops_check_operand(c, "operand of the gradient of the block before it", backward, rate > 0 ? dropped[0].f : dx[0].f, n);
    ops_end(c);
}

void ops_case_block_norm(ops_context *c)
{
    static const int widths[] = {8, 72, 192, 200, 384, 1024, 1032};
    if (!c->ops->writes_operands) return;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t r = 0; r < OPS_N_ROWS; r++)
            for (int p = 0; p < 2; p++)
                if (!ops_thin(c, 7)) ops_block_norm_shape(c, ops_rows[r], widths[w], ops_rates[p]);
}

/* ---- the feed-forward block ------------------------------------------------------------------------------------------------ */

// The block's own operations against those that it consists of. Biases keep the inner sums away from 0, so that rounded operands
// pass the same elements as ref/.
static void ops_feedforward_shape(ops_context *c, int rows, int C, int F, double rate)
{
    const lin_ops *ops = c->ops;
    const lin_ops_f64 *ref = c->ref;
    const size_t n = (size_t)rows * (size_t)C, wide = (size_t)rows * (size_t)F, nw = (size_t)C * (size_t)F;
    const lin_dropout d = ops_dropout(c, rate);
    pair x = ops_in(c, n, -1, 1), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), dx = ops_out(c, n);
    pair w1 = ops_in(c, nw, -1.0 / C, 1.0 / C), b1 = ops_in(c, (size_t)F, 1.5, 2.5), w2 = ops_in(c, nw, -1, 1),
         b2 = ops_in(c, (size_t)C, -1, 1);
    pair hidden = ops_out(c, wide), d_hidden = ops_out(c, wide);
    pair dw1 = ops_inout(c, nw, -1, 1), db1 = ops_inout(c, (size_t)F, -1, 1), dw2 = ops_inout(c, nw, -1, 1),
         db2 = ops_inout(c, (size_t)C, -1, 1);
    pair p1 = ops_packed(c, F, C), p2 = ops_packed(c, C, F), t1 = ops_packed(c, C, F), t2 = ops_packed(c, F, C);
    for (int f = 0; f < F; f += 3) b1.f[f] = -b1.f[f];
    ops_widen(b1);
    ops_say(c, "feed-forward, rows %d C %d F %d p %g", rows, C, F, rate);
    ops_pack(c, p1, w1, F, C, 0);
    ops_pack(c, p2, w2, C, F, 0);
    ops_pack(c, t1, w1, F, C, 1);
    ops_pack(c, t2, w2, C, F, 1);
    ops->feedforward_forward(c->exec, y.f, hidden.f, x.f, p1.f, b1.f, p2.f, b2.f, rows, C, F, &d);
    ops->feedforward_backward(c->exec, dx.f, dw1.f, db1.f, dw2.f, db2.f, dy.f, x.f, hidden.f, d_hidden.f, t1.f, t2.f, rows, C, F,
                              &d);
    ref->linear_forward(c->ref_exec, hidden.d, x.d, p1.d, b1.d, rows, F, C, LIN_RELU);
    ref->dropout(c->ref_exec, hidden.d, hidden.d, wide, &d);
    ref->linear_forward(c->ref_exec, y.d, hidden.d, p2.d, b2.d, rows, C, F, LIN_LINEAR);
    ref->linear_backward_weight(c->ref_exec, dw2.d, db2.d, dy.d, hidden.d, rows, C, F);
    ref->linear_forward(c->ref_exec, d_hidden.d, dy.d, t2.d, NULL, rows, F, C, LIN_LINEAR);
    ref->relu_backward(c->ref_exec, d_hidden.d, d_hidden.d, hidden.d, wide, 1 / (1 - rate));
    ref->linear_backward_weight(c->ref_exec, dw1.d, db1.d, d_hidden.d, x.d, rows, F, C);
    ref->linear_forward(c->ref_exec, dx.d, d_hidden.d, t1.d, NULL, rows, C, F, LIN_LINEAR);
    ops_check_scaled(c, "y", y, 2e-6, 1);
    ops_check_scaled(c, "dx", dx, 2e-6, 1);
    ops_check_scaled(c, "dw1", dw1, 2e-6, 1);
    ops_check_scaled(c, "db1", db1, 2e-6, 1);
    ops_check_scaled(c, "dw2", dw2, 2e-6, 1);
    ops_check_scaled(c, "db2", db2, 2e-6, 1);
    ops_end(c);
}

void ops_case_feedforward(ops_context *c)
{
    static const int shapes[][3] = {{0, 8, 16},     {1, 8, 8},  {9, 16, 48},  {65, 24, 264},
                                    {130, 48, 192}, {17, 5, 7}, {33, 12, 20}, {7, 16, 8}};
    if (!c->ops->feedforward_forward) return; // the network calls the operations it consists of
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int p = 0; p < 2; p++) ops_feedforward_shape(c, shapes[i][0], shapes[i][1], shapes[i][2], ops_rates[p]);
    if (!c->options->quick) ops_feedforward_shape(c, 1000, 192, 768, 0.1);
}

/* ---- element by element ---------------------------------------------------------------------------------------------------- */

void ops_case_elementwise(ops_context *c)
{
    const size_t counts[] = {0, 1, 3, 4, 5, 7, 8, 15, 16, 17, 33, 63, 64, 65, 1000, 4099, 70001};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int p = 0; p < 3; p++) {
            size_t n = counts[i];
            double rate = ops_rates[p], scale = 1 / (1 - rate);
            if (ops_thin(c, 2) || (c->options->quick && n > 5000)) continue;
            const lin_dropout d = ops_dropout(c, rate);
            pair x = ops_in(c, n, -1, 1), r = ops_in(c, n, -1, 1);
            pair dropped = ops_out(c, n), added = ops_out(c, n), dx = ops_out(c, n), copy = ops_out(c, n);
            ops_say(c, "%zu elements, p %g", n, rate);
            c->ops->dropout(c->exec, dropped.f, x.f, n, &d);
            c->ops->add_dropout(c->exec, added.f, x.f, r.f, n, &d);
            c->ops->relu_backward(c->exec, dx.f, r.f, dropped.f, n, scale);
            c->ref->dropout(c->ref_exec, dropped.d, x.d, n, &d);
            c->ref->add_dropout(c->ref_exec, added.d, x.d, r.d, n, &d);
            c->ref->relu_backward(c->ref_exec, dx.d, r.d, dropped.d, n, scale);
            ops_check(c, "dropout", dropped, 1e-6);
            ops_check(c, "add_dropout", added, 1e-6);
            ops_check(c, "relu_backward", dx, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = x.f[j];
            c->ops->dropout(c->exec, copy.f, copy.f, n, &d);
            ops_check_same(c, "dropout in place", copy.f, dropped.f, n, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = x.f[j];
            c->ops->add_dropout(c->exec, copy.f, copy.f, r.f, n, &d);
            ops_check_same(c, "add_dropout in place", copy.f, added.f, n, 1e-6);
            for (size_t j = 0; j < n; j++) copy.f[j] = r.f[j];
            c->ops->relu_backward(c->exec, copy.f, copy.f, dropped.f, n, scale);
            ops_check_same(c, "relu_backward in place", copy.f, dx.f, n, 1e-6);
            ops_end(c);
        }
}

/* The rule of ops.h computed here from the random bits, and the share of kept elements. */
void ops_case_dropout_rule(ops_context *c)
{
    const size_t N = c->options->quick ? 10003 : 100003;
    const double rates[] = {0.1, 0.3, 0.5, 1e-6, 0.99999};
    for (int p = 0; p < 5; p++) {
        const lin_dropout d = ops_dropout(c, rates[p]);
        const uint64_t key = lin_random_key(*d.key, d.site);
        pair ones = ops_in(c, N, 1, 1), zeros = ops_in(c, N, 0, 0), y = ops_out(c, N), backward = ops_out(c, N),
             added = ops_out(c, N);
        ops_say(c, "dropout p %g", rates[p]);
        c->ops->dropout(c->exec, y.f, ones.f, N, &d);
        c->ops->dropout(c->exec, backward.f, ones.f, N, &d);
        c->ops->add_dropout(c->exec, added.f, zeros.f, ones.f, N, &d);
        ops_done(c);
        unsigned threshold = (unsigned)(rates[p] * 65536 + 0.5);
        double kept = 0, expected = (65536 - threshold) / 65536.0;
        for (size_t i = 0; i < N; i++) {
            const size_t at = i + (size_t)(d.width * d.key[1]);
            uint64_t bits = lin_random_bits(key, at >> 2);
            const unsigned lanes[4] = {(unsigned)(bits & 0xFFFF), (unsigned)(bits >> 16 & 0xFFFF),
                                       (unsigned)(bits >> 32 & 0xFFFF), (unsigned)(bits >> 48)};
            double want = lanes[at & 3] >= threshold ? 1 / (1 - rates[p]) : 0;
            kept += want > 0;
            test_require(fabs((double)y.f[i] - want) <= 1e-6 * want, "%s: element %zu is %g, the rule says %g", c->what, i,
                         (double)y.f[i], want);
        }
        ck_assert_msg(fabs(kept / (double)N - expected) <= 5 * sqrt(expected * (1 - expected) / (double)N), "%s: %g kept",
                      c->what, kept / (double)N);
        ops_check_same(c, "again, as its backward", backward.f, y.f, N, 1e-6);
        ops_check_same(c, "add_dropout to zeros", added.f, y.f, N, 1e-6);
        ops_end(c);
    }
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

void ops_case_stack_frames(ops_context *c)
{
    const int widths[] = {1, 7, 40}, forms[][2] = {{1, 0}, {3, 0}, {4, 2}, {1, 5}, {2, 1}, {3, 20}};
    for (int l = 0; l < OPS_N_LAYOUTS; l++)
        for (int d = 0; d < 3; d++)
            for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
                if (ops_thin(c, 11) || ops_too_large(c, &ops_layouts[l])) continue;
                const ops_layout *layout = &ops_layouts[l];
                int D = widths[d], stack = forms[f][0], ahead = forms[f][1], lengths[OPS_MAX_B] = {0};
                for (int b = 0; b < layout->B; b++) lengths[b] = (layout->lengths[b] + stack - 1) / stack;
                const lin_segments in = ops_segments(c, layout), out = ops_segments_of(c, lengths, layout->B);
                size_t ny = (size_t)out.rows * (size_t)((stack + ahead) * D);
                pair x = ops_in(c, (size_t)(in.rows * D), -5, 15), mean = ops_in(c, (size_t)D, 4, 6),
                     istd = ops_in(c, (size_t)D, 0.1, 1);
                pair y = ops_out(c, ny);
                ops_say(c, "stack_frames layout %d D %d stack %d ahead %d", l, D, stack, ahead);
                c->ops->stack_frames(c->exec, y.f, x.f, mean.f, istd.f, &in, &out, D, stack, ahead);
                c->ref->stack_frames(c->ref_exec, y.d, x.d, mean.d, istd.d, &in, &out, D, stack, ahead);
                ops_check(c, "y", y, 1e-6);
                ops_end(c);
            }
}

void ops_case_sinusoid(ops_context *c)
{
    const int widths[] = {1, 2, 7, 48, 192, 193};
    const ops_layout hour = {2, {2400, 5}};
    for (int l = 0; l <= OPS_N_LAYOUTS; l++)
        for (int w = 0; w < 6; w++) {
            const ops_layout *layout = l < OPS_N_LAYOUTS ? &ops_layouts[l] : &hour;
            if ((layout == &hour && w != 3) || ops_thin(c, 5) || ops_too_large(c, layout)) continue;
            int C = widths[w];
            const lin_segments segments = ops_segments(c, layout);
            pair x = ops_inout(c, (size_t)(segments.rows * C), -1, 1);
            ops_say(c, "add_sinusoid layout %d C %d", l, C);
            c->ops->add_sinusoid(c->exec, x.f, &segments, C, NULL, 0);
            c->ref->add_sinusoid(c->ref_exec, x.d, &segments, C, NULL, 0);
            ops_check(c, "x", x, 1e-6);
            ops_end(c);
        }
}

static void ops_sinusoid_call(ops_context *c, const void *shape, float *y, const float *x, const lin_segments *segments,
                              float *const *carry, size_t at)
{
    const int C = *(const int *)shape;
    ops_done(c);
    if (segments->rows) memcpy(y, x, (size_t)segments->rows * (size_t)C * sizeof *y);
    c->ops->add_sinusoid(c->exec, y, segments, C, carry, at);
}

void ops_case_sinusoid_splits(ops_context *c)
{
    const int widths[] = {2, 7, 48, 193};
    const ops_layout turns = {3, {200, 64, 1}}; // sines are computed anew every 64 rows
    for (int w = 0; w < 4; w++)
        for (int l = 0; l <= OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1) {
                const ops_layout *layout = l < OPS_N_LAYOUTS ? &ops_layouts[l] : &turns;
                if (ops_thin(c, 7) || ops_too_large(c, layout)) continue;
                ops_say(c, "add_sinusoid in pieces up to %d, layout %d C %d", longest, l, widths[w]);
                ops_check_splits(c, ops_sinusoid_call, &widths[w], layout, (size_t)widths[w], (size_t)widths[w], 1, longest,
                                 1e-6);
            }
}

/* Streams that have had up to 2^24 - 3 rows, where an angle is 2^24; one without a state among them. The count ends at 2^24. */
void ops_case_sinusoid_far(ops_context *c)
{
    enum { B = 6, C = 34, MOST = 1 << 24 };
    const int before[B] = {0, 63, 0, 1000003, MOST - 70, MOST - 5}, lengths[B] = {3, 2, 4, 66, 67, 2};
    const lin_segments segments = ops_segments_of(c, lengths, B);
    pair x = ops_inout(c, (size_t)segments.rows * C, -1, 1), again = ops_inout(c, x.n, 0, 0);
    ops_states states = ops_some_states(c, B, 1, 0, 0), second = ops_some_states(c, B, 1, 0, 0);
    for (int b = 0; b < B; b++) {
        states.of[b].f[states.at] = second.of[b].f[second.at] = (float)before[b];
        ops_widen(states.of[b]);
    }
    memcpy(again.f, x.f, x.n * sizeof *x.f);
    ops_say(c, "add_sinusoid far from the start");
    c->ops->add_sinusoid(c->exec, x.f, &segments, C, states.f, states.at);
    c->ref->add_sinusoid(c->ref_exec, x.d, &segments, C, states.d, states.at);
    ops_check(c, "x", x, 1e-6);
    for (int b = 0; b < B; b++) {
        const int has = b % 3 != 2;
        test_require(!has || states.of[b].f[states.at] == (float)(before[b] + lengths[b]), "%s: stream %d has had %.0f rows",
                     c->what, b, (double)states.of[b].f[states.at]);
        ops_check(c, "a state", states.of[b], 0);
    }
    // all of the first call's rows but one, then the last
    for (int from = 0; from < 2; from++) {
        int piece[B];
        for (int b = 0; b < B; b++) piece[b] = b % 3 == 2 ? from ? 0 : lengths[b] : from ? 1 : lengths[b] - 1;
        const lin_segments some = ops_segments_of(c, piece, B);
        pair y = ops_inout(c, (size_t)some.rows * C, 0, 0);
        for (int b = 0; b < B; b++)
            memcpy(y.f + some.offsets[b] * C,
                   again.f + (segments.offsets[b + 1] - (from || b % 3 == 2 ? piece[b] : lengths[b])) * C,
                   (size_t)(piece[b] * C) * sizeof *y.f);
        c->ops->add_sinusoid(c->exec, y.f, &some, C, second.f, second.at);
        ops_done(c);
        for (int b = 0; b < B; b++)
            ops_check_same(c, "a piece", y.f + some.offsets[b] * C,
                           x.f + (segments.offsets[b + 1] - (from || b % 3 == 2 ? piece[b] : lengths[b])) * C,
                           (size_t)(piece[b] * C), 1e-6);
    }
    for (int call = 0; call < 2; call++) { // 2^24 - 3 and 2^24 - 3 + 2 rows, then as many as can be counted
        c->ops->add_sinusoid(c->exec, x.f, &segments, C, states.f, states.at);
        ops_done(c);
    }
    test_require(states.of[4].f[states.at] == MOST, "%s: the count is %.9g", c->what, (double)states.of[4].f[states.at]);
    ops_end(c);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------------- */

static void ops_embed_shape(ops_context *c, int rows, int D, int n, int C)
{
    pair x = ops_in(c, (size_t)(rows * D), 0, 0), table = ops_in(c, (size_t)(n * C), -1, 1), y = ops_out(c, (size_t)(rows * C)),
         dy = ops_in(c, y.n, -1, 1), dtable = ops_inout(c, table.n, -1, 1);
    for (int r = 0; r < rows; r++) {
        // few different ones, so that many rows have the same; some are outside of 0..n-1, or between two numbers
        float left = (float)(ops_pick(c, 0, 4) ? ops_pick(c, 0, n < 5 ? n - 1 : 4) : ops_pick(c, -3, n + 3));
        if (ops_pick(c, 0, 3) == 0) left += 0.25F;
        for (int d = 0; d < D; d++) {
            x.f[r * D + d] = d + 1 < D ? (float)ops_pick(c, 0, 9) : left;
            left -= x.f[r * D + d];
        }
    }
    ops_widen(x);
    ops_say(c, "embed rows %d D %d n %d C %d", rows, D, n, C);
    c->ops->embed_forward(c->exec, y.f, x.f, table.f, rows, D, n, C);
    c->ops->embed_backward(c->exec, dtable.f, dy.f, x.f, rows, D, n, C);
    if (!c->options->digest_only) {
        c->ref->embed_forward(c->ref_exec, y.d, x.d, table.d, rows, D, n, C);
        c->ref->embed_backward(c->ref_exec, dtable.d, dy.d, x.d, rows, D, n, C);
    }
    ops_check(c, "y", y, 0); // copies
    ops_check_scaled(c, "dtable", dtable, 2e-6, 1);
    ops_end(c);
}

void ops_case_embed(ops_context *c)
{
    const int widths[] = {1, 7, 48, 193}, tables[] = {1, 2, 9, 300};
    for (int i = 0; i < OPS_N_ROWS; i++)
        for (int w = 0; w < 4; w++)
            for (int t = 0; t < 4; t++)
                for (int D = 1; D <= 3; D++)
                    if (!ops_thin(c, 13)) ops_embed_shape(c, ops_rows[i], D, tables[t], widths[w]);
    ops_embed_shape(c, c->options->quick ? 70 : 300, 2, 256, 130); // columns in several pieces
}
