// Cases of ops_cases.h for softmax attention, in tiles, naive and of streams. A backend without the operations passes.
#include "tests/kernels/ops_cases_internal.h"

/* Tiled and naive, forward and backward. */
static void check_shape(ops_context *c, const ops_layout *layout, int H, int E, int causal, double range)
{
    const lin_segments segments = ops_segments(c, layout);
    const size_t n = (size_t)segments.rows * (size_t)(H * E), heads = (size_t)(segments.rows * H);
    const size_t scores = c->ops->softmax_scores(segments.offsets, layout->B, H);
    pair qkv = ops_in(c, 3 * n, -range, range), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), lse = ops_out(c, heads),
         dqkv = ops_out(c, 3 * n), naive = ops_out(c, n), p = ops_out(c, scores), again = ops_out(c, 3 * n);
    ops_say(c, "softmax B %d rows %d H %d E %d causal %d in +-%g", layout->B, segments.rows, H, E, causal, range);
    c->ops->softmax_forward(c->exec, y.f, lse.f, qkv.f, &segments, H, E, causal, NULL, 0);
    c->ops->softmax_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, lse.f, &segments, H, E, causal);
    c->ops->softmax_naive_forward(c->exec, naive.f, p.f, qkv.f, &segments, H, E, causal);
    if (!c->options->digest_only) {
        c->ref->softmax_forward(c->ref_exec, y.d, lse.d, qkv.d, &segments, H, E, causal, NULL, 0);
        c->ref->softmax_backward(c->ref_exec, dqkv.d, dy.d, qkv.d, y.d, lse.d, &segments, H, E, causal);
        c->ref->softmax_naive_forward(c->ref_exec, naive.d, p.d, qkv.d, &segments, H, E, causal);
    }
    ops_check(c, "y", y, 5e-6);
    ops_check_scaled(c, "lse", lse, 5e-6, 1); // a logarithm: its error is relative to the sum, also where it is near 0
    ops_check(c, "dqkv", dqkv, 2e-5);
    ops_check(c, "naive y", naive, 5e-6);
    ops_check(c, "p", p, 5e-6);
    c->ops->softmax_naive_backward(c->exec, again.f, p.f, dy.f, qkv.f, naive.f, &segments, H, E, causal);
    if (!c->options->digest_only)
        c->ref->softmax_naive_backward(c->ref_exec, again.d, p.d, dy.d, qkv.d, naive.d, &segments, H, E, causal);
    ops_check(c, "naive dqkv", again, 2e-5);
    ops_end(c);
}

void ops_case_softmax(ops_context *c)
{
    const int widths[] = {1, 5, 8, 32, 33, 64, 70}, heads[] = {6, 1, 2, 2, 1, 1, 1};
    if (!c->ops->softmax_forward) return;
    for (int causal = 0; causal < 2; causal++)
        for (int w = 0; w < 7; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                    check_shape(c, &ops_layouts[l], heads[w], widths[w], causal, 2);
}

/* Many tiles; scores of hundreds, where nearly all probabilities are 0. */
void ops_case_softmax_long(ops_context *c)
{
    const ops_layout one = {1, {333}}, several = {3, {128, 129, 63}}, narrow = {1, {65}};
    if (!c->ops->softmax_forward) return;
    for (int causal = 0; causal < 2; causal++) {
        check_shape(c, &one, 1, 32, causal, 1);
        if (c->options->tolerance <= 10) check_shape(c, &narrow, 1, 8, causal, 6);
        if (!c->options->quick) check_shape(c, &several, 2, 64, causal, 1);
    }
}

/* Streams in pieces, any number of frames (0 too) of each per call; y must be that of one call without caches. */
static void check_caches(ops_context *c, const ops_layout *layout, int H, int E, int longest)
{
    enum { LAYERS = 2, LAYER = 1 };
    const lin_segments all = ops_segments(c, layout);
    const int B = layout->B;
    const size_t width = (size_t)(H * E);
    int done[OPS_MAX_B] = {0}, left = all.rows;
    pair x = ops_in(c, (size_t)all.rows * 3 * width, -2, 2), whole = ops_out(c, (size_t)all.rows * width);
    lin_cache *caches = ops_block(c, (size_t)B, sizeof *caches, NULL);
    for (int b = 0; b < B; b++) {
        const int capacity = layout->lengths[b] + b;
        caches[b] = (lin_cache){ops_out(c, (size_t)(LAYERS * capacity) * 2 * width).f, 0, capacity};
    }
    ops_say(c, "softmax_forward in pieces up to %d, B %d rows %d H %d E %d", longest, B, all.rows, H, E);
    c->ops->softmax_forward(c->exec, whole.f, NULL, x.f, &all, H, E, 1, NULL, 0);
    while (left > 0) {
        int lengths[OPS_MAX_B] = {0};
        for (int b = 0; b < B; b++) {
            lengths[b] = ops_pick(c, 0, longest);
            if (lengths[b] > layout->lengths[b] - done[b]) lengths[b] = layout->lengths[b] - done[b];
        }
        const int first_block = c->n_blocks;
        const lin_segments piece = ops_segments_of(c, lengths, B);
        float *px = test_buffer_shifted((size_t)piece.rows * 3 * width, sizeof *px, ops_shift(c, 1));
        float *py = test_buffer_shifted((size_t)piece.rows * width, sizeof *py, ops_shift(c, 1));
        for (int b = 0; b < B; b++)
            if (lengths[b])
                memcpy(px + (size_t)piece.offsets[b] * 3 * width, x.f + (size_t)(all.offsets[b] + done[b]) * 3 * width,
                       (size_t)lengths[b] * 3 * width * sizeof *px);
        c->ops->softmax_forward(c->exec, py, NULL, px, &piece, H, E, 1, caches, LAYER);
        ops_done(c);
        for (int b = 0; b < B; b++) {
            ops_check_same(c, "a piece", py + (size_t)piece.offsets[b] * width,
                           whole.f + (size_t)(all.offsets[b] + done[b]) * width, (size_t)lengths[b] * width, 5e-6);
            done[b] += lengths[b];
            caches[b].n = done[b];
        }
        left -= piece.rows;
        test_guards(px, c->what);
        test_guards(py, c->what);
        test_buffer_free(px);
        test_buffer_free(py);
        ops_end_blocks(c, first_block);
    }
    ops_end(c);
}

void ops_case_softmax_splits(ops_context *c)
{
    const int shapes[][2] = {{6, 1}, {2, 8}, {2, 32}, {1, 33}, {1, 64}, {1, 70}};
    if (!c->ops->softmax_forward) return;
    for (int s = 0; s < 6; s++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1)
                if (!ops_thin(c, 11) && !ops_too_large(c, &ops_layouts[l]))
                    check_caches(c, &ops_layouts[l], shapes[s][0], shapes[s][1], longest);
}
