// Cases of LSH attention. ref/ takes the order of the backend, which may differ from its own where two projections are nearly
// equal; that the order is right is shown by tests/paper/test_lsh.c and tests/cuda/test_cuda_lsh.c.
#include "tests/kernels/ref/ref.h"
#include "paper/networks.h"
#include "tests/kernels/ops_cases_internal.h"

// A frame alone has an lse of -1e5: left out, so that it is not the scale of the others.
static void leave_out_alone(pair lse)
{
    for (size_t i = 0; i < lse.n; i++) {
        if (lse.f[i] < -5e4f && lse.f[i] > -1.1e5f) lse.f[i] = 0;
        if (lse.d[i] < -5e4) lse.d[i] = 0;
    }
}

// Every frame of each utterance is in each order once.
static void check_order(ops_context *c, const int *order, const ops_layout *layout, int matrices, int rows)
{
    unsigned char *seen = calloc((size_t)rows + 1, 1);
    for (int m = 0; m < matrices; m++)
        for (int b = 0, first = 0; b < layout->B; first += layout->lengths[b++])
            for (int i = 0; i < layout->lengths[b]; i++) {
                const int t = order[(size_t)m * (size_t)rows + (size_t)(first + i)];
                test_require(t >= 0 && t < layout->lengths[b] && seen[first + t] == m % 256, "%s: frame %d", c->what, t);
                seen[first + t]++;
            }
    free(seen);
}

static void check_shape(ops_context *c, const ops_layout *layout, lin_lsh lsh, int H, int E, int causal)
{
    const lin_segments segments = ops_segments(c, layout);
    const size_t rows = (size_t)segments.rows, heads = rows * (size_t)H, n = heads * (size_t)E,
                 orders = heads * (size_t)lsh.rounds;
    pair qv = ops_in(c, 2 * n, -2, 2), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), lse = ops_out(c, heads),
         dqv = ops_out(c, 2 * n);
    pair R = ops_in(c, (size_t)lsh.rounds * (size_t)(H * E) * (size_t)lsh.rotations, -1.5, 1.5);
    int *order = ops_block(c, orders, sizeof *order, NULL);
    ops_say(c, "lsh attention B %d rows %d H %d E %d rounds %d chunk %d rotations %d causal %d", layout->B, segments.rows, H, E,
            lsh.rounds, lsh.chunk, lsh.rotations, causal);
    c->ops->lsh_forward(c->exec, y.f, lse.f, order, qv.f, R.f, &segments, &lsh, H, E, causal);
    c->ops->lsh_backward(c->exec, dqv.f, dy.f, qv.f, y.f, lse.f, order, &segments, &lsh, H, E, causal);
    ops_done(c);
    ops_digest_bytes(c, order, orders * sizeof *order);
    check_order(c, order, layout, lsh.rounds * H, segments.rows);
    if (!c->options->digest_only) {
        lin_ref_lsh_attend(c->ref_exec, y.d, lse.d, order, qv.d, &segments, &lsh, H, E, causal);
        c->ref->lsh_backward(c->ref_exec, dqv.d, dy.d, qv.d, y.d, lse.d, order, &segments, &lsh, H, E, causal);
    }
    leave_out_alone(lse);
    ops_check(c, "y", y, 2e-5);
    ops_check(c, "lse", lse, 2e-5);
    ops_check(c, "dqv", dqv, 1e-4);
    ops_end(c);
}

void ops_case_lsh(ops_context *c)
{
    const lin_lsh shapes[] = {{1, 4, 3}, {2, 1, 5}, {3, 7, 2}, {1, 16, 40}, {2, 33, 4}, {4, 32, 64}, {1, 65, 3}, {2, 1000, 3}};
    const int widths[] = {1, 3, 8, 16, 33, 32, 64, 5}, heads[] = {2, 2, 3, 1, 2, 6, 1, 2};
    if (!c->ops->lsh_forward) return;
    for (int causal = 0; causal < 2; causal++)
        for (int s = 0; s < 8; s++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                    check_shape(c, &ops_layouts[l], shapes[s], heads[s], widths[s], causal);
}
