// Cases of ops_cases.h for LSH attention. A backend without the operations passes.
#include "paper/networks.h"
#include "tests/kernels/ops_cases_internal.h"

typedef struct shape {
    lin_lsh lsh;
    int H, E;
    double range; // of the queries
} shape;

// A frame alone has an lse of -1e5: left out, so that it is not the scale of the others.
static void leave_out_alone(pair lse)
{
    for (size_t i = 0; i < lse.n; i++) {
        if (lse.f[i] < -5e4f && lse.f[i] > -1.1e5f) lse.f[i] = 0;
        if (lse.d[i] < -5e4) lse.d[i] = 0;
    }
}

// The largest value of [q R; -q R] minus the second largest.
static double lead(const float *q, const double *R, int E, int rotations, int columns)
{
    double first = -INFINITY, second = -INFINITY;
    for (int c = 0; c < 2 * columns; c++) {
        double x = 0;
        for (int e = 0; e < E; e++) x += (double)q[e] * R[e * rotations + c % columns];
        if (c >= columns) x = -x;
        second = x > first ? first : fmax(second, x);
        first = fmax(first, x);
    }
    return first - second;
}

// Draws each query anew until its two best buckets are well apart in all rounds, so that both precisions find the same order.
static void separate(ops_context *c, const lin_segments *s, const shape *form, pair qv, pair R)
{
    const size_t H = (size_t)form->H, E = (size_t)form->E, matrix = E * (size_t)form->lsh.rotations;
    for (int b = 0; b < s->B; b++) {
        const int T = s->offsets[b + 1] - s->offsets[b], most = (T + 2 * form->lsh.chunk - 1) / (2 * form->lsh.chunk);
        for (size_t at = (size_t)s->offsets[b] * H; at < (size_t)s->offsets[b + 1] * H; at++) {
            float *q = qv.f + (at / H * 2 * H + at % H) * E;
            double least = 0;
            for (int again = 0; least < 1e-4 * form->range && again < 1000; again++) {
                if (again) test_fill_f32(q, E, ops_next_key(c), -form->range, form->range);
                least = INFINITY;
                for (size_t r = 0; r < (size_t)form->lsh.rounds; r++)
                    least = fmin(least, lead(q, R.d + (r * H + at % H) * matrix, form->E, form->lsh.rotations,
                                             form->lsh.rotations < most ? form->lsh.rotations : most));
            }
            test_require(least >= 1e-4 * form->range, "%s: no query with separated buckets", c->what);
        }
    }
    ops_widen(qv);
}

/* tied: queries and columns of R that are equal, in exact arithmetic. */
static void check_shape(ops_context *c, const int *lengths, int B, const shape *form, int causal, int tied)
{
    if (!ops_rivals_have(c, form->E)) return;
    const lin_segments segments = ops_segments_of(c, lengths, B);
    const lin_lsh lsh = form->lsh;
    const int H = form->H, E = form->E;
    const size_t heads = (size_t)(segments.rows * H), n = heads * (size_t)E, orders = heads * (size_t)lsh.rounds;
    const double loose = form->range > 10 ? 50 : 1; // scores of thousands
    pair qv = ops_in(c, 2 * n, -form->range, form->range), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), lse = ops_out(c, heads),
         dqv = ops_out(c, 2 * n);
    pair R = ops_in(c, (size_t)lsh.rounds * (size_t)(H * E) * (size_t)lsh.rotations, -1.5, 1.5);
    int *order = ops_block(c, orders, sizeof *order, NULL), *want = ops_block(c, orders, sizeof *want, NULL);
    ops_say(c, "lsh attention B %d rows %d H %d E %d rounds %d chunk %d rotations %d causal %d range %g", B, segments.rows, H, E,
            lsh.rounds, lsh.chunk, lsh.rotations, causal, form->range);
    for (size_t i = 0; tied && i < R.n; i++) R.f[i] = i % 20 == 7 || i % 20 == 18 ? 2 : i % 20 == 19 ? -2 : 1;
    for (size_t i = 0; tied && i < qv.n; i++) qv.f[i] = (float)(i / (size_t)(2 * H * E) % 3) - 1;
    if (tied) ops_widen(R), ops_widen(qv);
    else separate(c, &segments, form, qv, R);
    c->ops->lsh_forward(c->exec, y.f, lse.f, order, qv.f, R.f, &segments, &lsh, H, E, causal);
    c->ops->lsh_backward(c->exec, dqv.f, dy.f, qv.f, y.f, lse.f, order, &segments, &lsh, H, E, causal);
    ops_digest_bytes(c, order, orders * sizeof *order);
    if (!c->options->digest_only) {
        c->ref->lsh_forward(c->ref_exec, y.d, lse.d, want, qv.d, R.d, &segments, &lsh, H, E, causal);
        c->ref->lsh_backward(c->ref_exec, dqv.d, dy.d, qv.d, y.d, lse.d, want, &segments, &lsh, H, E, causal);
        for (size_t i = 0; i < orders; i++)
            test_require(order[i] == want[i], "%s: order %zu is %d, expected %d", c->what, i, order[i], want[i]);
    }
    leave_out_alone(lse);
    ops_check(c, "y", y, 2e-5 * loose);
    ops_check(c, "lse", lse, 2e-5);
    ops_check(c, "dqv", dqv, 1e-4 * loose);
    ops_end(c);
}

/* What is not finite in one head leaves the other finite, and every order one of frames. */
static void check_not_finite(ops_context *c, float value)
{
    enum { T = 100, H = 2, E = 6 };
    const lin_segments segments = ops_segments_of(c, (const int[]){T}, 1);
    const lin_lsh lsh = {2, 9, 8};
    pair qv = ops_in(c, T * 2 * H * E, -2, 2), R = ops_in(c, 2 * H * E * 8, -1, 1), y = ops_out(c, T * H * E),
         lse = ops_out(c, T * H);
    int *order = ops_block(c, 2 * T * H, sizeof *order, NULL);
    for (int e = 0; e < E; e++) qv.f[50 * 2 * H * E + e] = value;
    ops_widen(qv);
    ops_say(c, "lsh attention with a query of %g", (double)value);
    c->ops->lsh_forward(c->exec, y.f, lse.f, order, qv.f, R.f, &segments, &lsh, H, E, 0);
    ops_done(c);
    for (int i = 0; i < 2 * T * H; i++) test_require(order[i] >= 0 && order[i] < T, "%s: order %d is %d", c->what, i, order[i]);
    for (int i = 0; i < T * H * E; i++)
        test_require(i / E % 2 == 0 || isfinite(y.f[i]), "%s: y %d of the other head", c->what, i);
    test_require(!isnan(value) || (isnan(y.f[50 * H * E]) && isnan(lse.f[50 * H])), "%s: no NaN", c->what);
    ops_end(c);
}

void ops_case_lsh(ops_context *c)
{
    static const shape shapes[] = {
        {{1, 4, 3}, 2, 1, 2},   {{2, 1, 5}, 2, 3, 2},    {{3, 7, 2}, 3, 8, 2},     {{1, 16, 40}, 1, 16, 2},
        {{2, 33, 4}, 2, 33, 2}, {{4, 32, 64}, 6, 32, 2}, {{1, 65, 3}, 1, 64, 2},   {{2, 1000, 3}, 2, 5, 2},
        {{3, 2, 33}, 1, 31, 2}, {{2, 12, 3}, 1, 70, 2},  {{2, 64, 2}, 1, 256, 2},  {{3, 1, 16}, 1, 8, 2},
        {{2, 8, 4}, 1, 16, 1e-7}, {{2, 8, 3}, 1, 4, 300}};
    static const struct {
        int T;
        shape form;
    } longer[] = {{2300, {{1, 1, 1100}, 1, 2, 1}}, // more buckets than a GPU counts at once
                  {100, {{4, 32, 8}, 1, 32, 1}},
                  {130, {{2, 64, 2}, 1, 64, 1}},
                  {2400, {{4, 32, 64}, 1, 16, 2}}, // the rest not in quick runs
                  {1150, {{2, 700, 4}, 1, 8, 2}},
                  {500, {{1, 300, 4}, 1, 128, 2}}};
    const shape ties = {{1, 1, 20}, 1, 3, 1};
    if (!c->ops->lsh_forward) return;
    for (int causal = 0; causal < 2; causal++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                if (!(shapes[s].range > 10 && c->options->tolerance > 10) && !ops_thin(c, 7) &&
                    !ops_too_large(c, &ops_layouts[l]))
                    check_shape(c, ops_layouts[l].lengths, ops_layouts[l].B, &shapes[s], causal, 0);
        for (int i = 0; i < (c->options->quick ? 3 : 6); i++) check_shape(c, &longer[i].T, 1, &longer[i].form, causal, 0);
        check_shape(c, (const int[]){64}, 1, &ties, causal, 1);
    }
    const float values[] = {NAN, INFINITY, -INFINITY, 3e38f};
    for (int i = 0; i < 4; i++) check_not_finite(c, values[i]);
}
