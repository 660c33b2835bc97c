// Cases of ops_cases.h for softmax attention, in tiles, naive and of streams. A backend without the operations passes.
#include "tests/kernels/ops_cases_internal.h"

/* Tiled, where the backend has heads so wide, and naive, forward and backward. */
static void check_shape(ops_context *c, const int *lengths, int B, int H, int E, int causal, double range)
{
    const lin_segments segments = ops_segments_of(c, lengths, B);
    const size_t n = (size_t)segments.rows * (size_t)(H * E), heads = (size_t)(segments.rows * H);
    const size_t scores = lin_softmax_scores(segments.offsets, B, H);
    const int tiled = ops_rivals_have(c, E);
    const int large = range > 10; // rounding a score of thousands changes its exponential by a share of 1e-3
    pair qkv = ops_in(c, 3 * n, -range, range), dy = ops_in(c, n, -1, 1), y = ops_out(c, n), lse = ops_out(c, heads),
         dqkv = ops_out(c, 3 * n), naive = ops_out(c, n), p = ops_out(c, scores), again = ops_out(c, 3 * n);
    ops_say(c, "softmax B %d rows %d H %d E %d causal %d in +-%g", B, segments.rows, H, E, causal, range);
    if (tiled) {
        c->ops->softmax_forward(c->exec, naive.f, NULL, qkv.f, &segments, H, E, causal, NULL, 0);
        c->ops->softmax_forward(c->exec, y.f, lse.f, qkv.f, &segments, H, E, causal, NULL, 0);
        ops_check_same(c, "y without lse", naive.f, y.f, n, 5e-6);
        c->ops->softmax_backward(c->exec, dqkv.f, dy.f, qkv.f, y.f, lse.f, &segments, H, E, causal);
    }
    c->ops->softmax_naive_forward(c->exec, naive.f, p.f, qkv.f, &segments, H, E, causal);
    if (!c->options->digest_only) {
        c->ref->softmax_forward(c->ref_exec, y.d, lse.d, qkv.d, &segments, H, E, causal, NULL, 0);
        c->ref->softmax_backward(c->ref_exec, dqkv.d, dy.d, qkv.d, y.d, lse.d, &segments, H, E, causal);
        c->ref->softmax_naive_forward(c->ref_exec, naive.d, p.d, qkv.d, &segments, H, E, causal);
    }
    if (tiled) ops_check(c, "y", y, large ? 2e-3 : 5e-6);
    if (tiled) ops_check_scaled(c, "lse", lse, 5e-6, 1); // a logarithm: its error is relative to the sum, also where it is near 0
    ops_check(c, "naive y", naive, large ? 2e-3 : 5e-6);
    if (tiled && !large) ops_check(c, "dqkv", dqkv, 2e-5);
    if (!large) ops_check(c, "p", p, 5e-6);
    c->ops->softmax_naive_backward(c->exec, again.f, p.f, dy.f, qkv.f, naive.f, &segments, H, E, causal);
    if (!c->options->digest_only)
        c->ref->softmax_naive_backward(c->ref_exec, again.d, p.d, dy.d, qkv.d, naive.d, &segments, H, E, causal);
    if (!large) ops_check(c, "naive dqkv", again, 2e-5);
    ops_done(c);
    for (size_t i = 0; i < 3 * n; i++)
        test_require((!tiled || isfinite(dqkv.f[i])) && isfinite(again.f[i]), "%s: element %zu of dqkv is %g", c->what, i,
                     (double)dqkv.f[i]);
    ops_end(c);
}

void ops_case_softmax(ops_context *c)
{
    const int widths[] = {1, 5, 8, 16, 17, 32, 33, 64, 65, 70, 100}, heads[] = {6, 1, 2, 2, 1, 2, 1, 1, 2, 1, 1};
    if (!c->ops->softmax_forward) return;
    for (int causal = 0; causal < 2; causal++)
        for (int w = 0; w < 11; w++)
            for (int l = 0; l < OPS_N_LAYOUTS; l++)
                if (!ops_thin(c, 7) && !ops_too_large(c, &ops_layouts[l]))
                    check_shape(c, ops_layouts[l].lengths, ops_layouts[l].B, heads[w], widths[w], causal, 2);
    int many[70]; // utterances: more than lanes of a warp
    for (int b = 0; b < 70; b++) many[b] = b % 4;
    check_shape(c, many, 70, 2, 8, 1, 1);
}

/* Many tiles, wide heads, few heads for the threads; scores of hundreds and thousands, where one key has nearly all weight. */
void ops_case_softmax_long(ops_context *c)
{
    static const struct {
        int lengths[3], H, E;
        double range;
        int quick; // 1: also in quick runs; 2: with fp32 only
    } shapes[] = {{{333}, 1, 32, 1, 1},  {{65}, 1, 8, 6, 2},      {{65, 1, 130}, 2, 32, 100, 2}, {{66}, 1, 130, 1, 1},
                  {{20}, 1, 256, 1, 1},  {{128, 129, 63}, 2, 64, 1, 0}, {{128, 17, 129}, 6, 32, 2, 0},
                  {{47, 49, 193}, 1, 3, 2, 0}, {{1201}, 1, 32, 1, 0}, {{401, 200}, 1, 7, 2, 0},
                  {{399}, 1, 255, 1, 0}};
    if (!c->ops->softmax_forward) return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int causal = 0; causal < 2; causal++)
            if (!(c->options->quick && !shapes[i].quick) && !(shapes[i].quick == 2 && c->options->tolerance > 10))
                check_shape(c, shapes[i].lengths, 3, shapes[i].H, shapes[i].E, causal, shapes[i].range);
}

/* Streams in pieces, any number of frames (0 too) of each per call; y and lse must be those of one call without caches, and
 * the caches hold keys and values in their layer and nothing elsewhere. */
static void check_caches(ops_context *c, const ops_layout *layout, int H, int E, int longest)
{
    enum { LAYERS = 2, LAYER = 1 };
    const lin_segments all = ops_segments(c, layout);
    const int B = layout->B;
    const size_t width = (size_t)(H * E);
    int done[OPS_MAX_B] = {0}, left = all.rows;
    pair x = ops_in(c, (size_t)all.rows * 3 * width, -2, 2), whole = ops_out(c, (size_t)all.rows * width),
         lse = ops_out(c, (size_t)(all.rows * H));
    lin_cache *caches = ops_block(c, (size_t)B, sizeof *caches, NULL);
    for (int b = 0; b < B; b++) {
        const int capacity = layout->lengths[b] + b;
        caches[b] = (lin_cache){ops_out(c, (size_t)(LAYERS * capacity) * 2 * width).f, 0, capacity};
    }
    ops_say(c, "softmax_forward in pieces up to %d, B %d rows %d H %d E %d", longest, B, all.rows, H, E);
    c->ops->softmax_forward(c->exec, whole.f, lse.f, x.f, &all, H, E, 1, NULL, 0);
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
        float *plse = test_buffer_shifted((size_t)(piece.rows * H), sizeof *plse, ops_shift(c, 1));
        for (int b = 0; b < B; b++)
            if (lengths[b])
                memcpy(px + (size_t)piece.offsets[b] * 3 * width, x.f + (size_t)(all.offsets[b] + done[b]) * 3 * width,
                       (size_t)lengths[b] * 3 * width * sizeof *px);
        c->ops->softmax_forward(c->exec, py, plse, px, &piece, H, E, 1, caches, LAYER);
        ops_done(c);
        for (int b = 0; b < B; b++) {
            ops_check_same(c, "a piece", py + (size_t)piece.offsets[b] * width,
                           whole.f + (size_t)(all.offsets[b] + done[b]) * width, (size_t)lengths[b] * width, 5e-6);
            ops_check_same(c, "lse of a piece", plse + piece.offsets[b] * H, lse.f + (all.offsets[b] + done[b]) * H,
                           (size_t)(lengths[b] * H), 5e-6);
            done[b] += lengths[b];
            caches[b].n = done[b];
        }
        left -= piece.rows;
        TEST_FREE(px, py, plse);
        ops_end_blocks(c, first_block);
    }
    for (int b = 0; b < B; b++) {
        const float *kv = caches[b].kv, *rows = x.f + (size_t)all.offsets[b] * 3 * width;
        const int first = LAYER * caches[b].capacity;
        for (int t = 0; t < LAYERS * caches[b].capacity; t++)
            for (size_t i = 0; i < 2 * width; i++) {
                const float got = kv[(size_t)t * 2 * width + i];
                const int used = t >= first && t < first + layout->lengths[b];
                test_require(used ? got == rows[(size_t)(t - first) * 3 * width + width + i] : isnan(got),
                             "%s: element %zu of row %d of cache %d is %g", c->what, i, t, b, (double)got);
            }
    }
    ops_end(c);
}

/* A graph that is captured once and replayed while the cache grows: n is read by the device. */
static void check_graph(ops_context *c)
{
    enum { T = 40, STEP = 8, H = 2, E = 32, C = H * E };
    lin_graph *graph;
    const lin_segments all = ops_segments_of(c, (const int[]){T}, 1), piece = ops_segments_of(c, (const int[]){STEP}, 1);
    pair x = ops_in(c, T * 3 * C, -1, 1), whole = ops_out(c, T * C), px = ops_out(c, STEP * 3 * C), py = ops_out(c, STEP * C);
    lin_cache *cache = ops_block(c, 1, sizeof *cache, NULL);
    *cache = (lin_cache){ops_out(c, T * 2 * C).f, 0, T};
    ops_say(c, "softmax_forward in a graph");
    c->ops->softmax_forward(c->exec, whole.f, NULL, x.f, &all, H, E, 1, NULL, 0);
    ck_assert_int_eq(c->ops->graph_begin(c->exec, NULL), LIN_OK);
    c->ops->softmax_forward(c->exec, py.f, NULL, px.f, &piece, H, E, 1, cache, 0);
    ck_assert_int_eq(c->ops->graph_end(c->exec, &graph, NULL), LIN_OK);
    for (; cache->n < T; cache->n += STEP) {
        memcpy(px.f, x.f + cache->n * 3 * C, px.n * sizeof *px.f);
        c->ops->graph_launch(c->exec, graph);
        ops_check_same(c, "y of a replay", py.f, whole.f + cache->n * C, py.n, 5e-6);
    }
    c->ops->graph_destroy(graph);
    ops_end(c);
}

void ops_case_softmax_splits(ops_context *c)
{
    const int shapes[][2] = {{6, 1}, {2, 8}, {2, 32}, {1, 33}, {1, 64}, {1, 70}};
    if (!c->ops->softmax_forward) return;
    for (int s = 0; s < 6; s++)
        for (int l = 0; l < OPS_N_LAYOUTS; l++)
            for (int longest = 1; longest < 300; longest = longest * 5 + 1)
                if (ops_rivals_have(c, shapes[s][1]) && !ops_thin(c, 11) && !ops_too_large(c, &ops_layouts[l]))
                    check_caches(c, &ops_layouts[l], shapes[s][0], shapes[s][1], longest);
    const ops_layout longer = {3, {150, 64, 257}};
    for (int longest = 4; longest < 300 && !c->options->quick; longest *= 8) check_caches(c, &longer, 2, 32, longest);
    if (c->ops->graph_begin) check_graph(c);
}
