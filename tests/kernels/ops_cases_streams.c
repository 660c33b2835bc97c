// Cases of ops_cases.h for memory and ordering, and for the operations before and after the network: features from
// a cache, sound to features, the kept rows of streams, greedy decoding.
#include "tests/kernels/ops_cases_internal.h"

#include "base/memory.h"
#include "decoder/search.h"
#include "kernels/acoustics.h"

/* ---- memory and order ------------------------------------------------------------------------------------------------------ */

static void *ops_memory(ops_context *c, size_t bytes, int staging)
{
    lin_error err = {0};
    void *block = NULL;
    lin_status status = (staging ? c->ops->staging_create : c->ops->memory_create)(c->exec, bytes, &block, &err);
    ck_assert_msg(status == LIN_OK && block != NULL, "%s: %s", c->what, err.message);
    ck_assert_msg(staging || (uintptr_t)block % 64 == 0, "%s: a block at %p", c->what, block);
    return block;
}

static void ops_expect_bytes(ops_context *c, const char *name, const void *got, const void *want, size_t n)
{
    ops_digest_bytes(c, got, n);
    for (size_t i = 0; i < n; i++)
        test_require(((const unsigned char *)got)[i] == ((const unsigned char *)want)[i], "%s: %s, byte %zu of %zu", c->what,
                     name, i, n);
}

void ops_case_memory(ops_context *c)
{
    const size_t sizes[] = {1, 4, 63, 4096, 100001};
    const lin_ops *ops = c->ops;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s];
        ops_say(c, "memory of %zu bytes", n);
        // Ordinary memory, not a test_buffer, which may be memory that a GPU reads at a later time.
        unsigned char *random = lin_alloc(n, 1), *back = lin_alloc(n, 1), *zeros = lin_calloc(n, 1);
        ck_assert(random && back && zeros);
        for (size_t i = 0; i < n; i++) random[i] = (unsigned char)lin_random_bits(n, i);
        unsigned char *a = ops_memory(c, n, 0), *b = ops_memory(c, n, 0), *staged = ops_memory(c, n, 1),
                      *fetched = ops_memory(c, n, 1);
        ops->wait(c->exec, (int)s); // a fence never set
        ops->download(c->exec, back, a, n);
        ops_expect_bytes(c, "a new block", back, zeros, n);
        ops_expect_bytes(c, "a new staging block", staged, zeros, n);
        ops->upload(c->exec, a, random, n);
        memcpy(back, random, n);
        memset(random, 0xEE, n); // at once: upload has read it
        ops->download(c->exec, random, a, n);
        ops_expect_bytes(c, "up and down", random, back, n);
        ops->copy(c->exec, b, a, n);
        ops->zero(c->exec, a, n);
        ops->fetch(c->exec, fetched, b, n);
        ops->fence(c->exec, 0);
        memset(staged, 0x5A, n);
        ops->upload(c->exec, b, staged, n);
        ops->fence(c->exec, LIN_FENCES - 1);
        ops->wait(c->exec, 0);
        ops_expect_bytes(c, "fetched, before operations after the fence", fetched, back, n);
        ops->wait(c->exec, LIN_FENCES - 1);
        memset(staged, 0, n); // read by then
        ops->download(c->exec, random, b, n);
        memset(back, 0x5A, n);
        ops_expect_bytes(c, "from a staging block", random, back, n);
        ops->download(c->exec, random, a, n);
        ops_expect_bytes(c, "zeroed", random, zeros, n);
        memset(staged, 0x33, n);
        memset(back, 0x33, n);
        ops->upload_beside(c->exec, a, staged, n, LIN_FENCES - 1);
        ops->download(c->exec, random, a, n);
        ops_expect_bytes(c, "beside operations", random, back, n);
        ops->zero(c->exec, a, n);
        if (n > 10) { // within blocks
            ops->copy(c->exec, a + 3, b + 5, n - 7);
            ops->zero(c->exec, a + 4, 2);
            ops->upload(c->exec, a + n - 1, "x", 1);
            ops->download(c->exec, random + 1, a + 1, n - 1);
            memset(back, 0, n);
            memset(back + 3, 0x5A, n - 7);
            back[4] = back[5] = 0;
            back[n - 1] = 'x';
            ops_expect_bytes(c, "parts of blocks", random + 1, back + 1, n - 1);
        }
        ops->memory_destroy(c->exec, a);
        ops->memory_destroy(c->exec, b);
        ops->staging_destroy(c->exec, staged);
        ops->staging_destroy(c->exec, fetched);
        lin_free(random);
        lin_free(back);
        lin_free(zeros);
    }
    ops->memory_destroy(c->exec, NULL);
    ops->staging_destroy(c->exec, NULL);
#if !TEST_ASAN // which ends the program at such a wish
    lin_error err = {0};
    void *block = &err;
    ops_say(c, "more memory than exists");
    ck_assert_msg(ops->memory_create(c->exec, SIZE_MAX / 4, &block, &err) == LIN_NO_MEMORY, "%s was allocated", c->what);
    ck_assert_msg(err.message[0] != '\0', "%s: no message", c->what);
#endif
    ops_done(c); // and nothing else is affected
}

/* A captured graph runs again with the data, and the key of the dropout, that are there at its launch. */
void ops_case_graph(ops_context *c)
{
    enum { N = 1001 };
    const lin_ops *ops = c->ops;
    if (!ops->graph_begin) return;
    lin_error err = {0};
    lin_graph *graph = NULL;
    ops_say(c, "a graph of dropouts");
    float x[N], want[N], got[N];
    float *dx = ops_memory(c, sizeof x, 0), *dy = ops_memory(c, sizeof x, 0), *dz = ops_memory(c, sizeof x, 0);
    uint64_t *key = ops_memory(c, sizeof *key, 0);
    const lin_dropout d = {0.25, key, 7, 0};
    for (int round = 0; round < 4; round++) {
        const uint64_t now = ops_next_key(c);
        test_fill_f32(x, N, now, -1, 1);
        ops->upload(c->exec, dx, x, sizeof x);
        ops->upload(c->exec, key, &now, sizeof now);
        if (round == 1) ck_assert_msg(ops->graph_begin(c->exec, &err) == LIN_OK, "%s: %s", c->what, err.message);
        if (round < 2) {
            ops->zero(c->exec, dz, sizeof x);
            ops->dropout(c->exec, dy, dx, N, &d);
            ops->add_dropout(c->exec, dz, dz, dy, N, &d);
        }
        if (round == 1) ck_assert_msg(ops->graph_end(c->exec, &graph, &err) == LIN_OK, "%s: %s", c->what, err.message);
        if (round > 0) ops->graph_launch(c->exec, graph);
        ops->download(c->exec, got, dz, sizeof got);
        ops_done(c);
        const uint64_t site_key = lin_random_key(now, d.site);
        for (size_t i = 0; i < N; i++) {
            const uint64_t lane = lin_random_bits(site_key, i / 4) >> 16 * (i % 4) & 0xFFFF;
            want[i] = lane >= 16384 ? x[i] / 0.75f / 0.75f : 0;
            test_require(fabsf(got[i] - want[i]) <= 1e-6f, "%s, round %d: element %zu is %g, expected %g", c->what, round, i,
                         (double)got[i], (double)want[i]);
        }
    }
    ops->graph_destroy(graph);
    ops->memory_destroy(c->exec, dx);
    ops->memory_destroy(c->exec, dy);
    ops->memory_destroy(c->exec, dz);
    ops->memory_destroy(c->exec, key);
    ops_done(c);
}

/* ---- features from a cache ------------------------------------------------------------------------------------------------- */

/* Random acoustics with some parts missing, and a voice that is shorter than the utterance or longer. */
static const lin_acoustics *ops_acoustics(ops_context *c, int D, const float *steps)
{
    enum { VOICE = 11 };
    unsigned char codes[VOICE * 129];
    for (int i = 0; i < VOICE * D; i++) codes[i] = (unsigned char)lin_random_bits(ops_next_key(c), 0);
    float bins[LIN_ACOUSTICS_ROWS * 129];
    for (int i = 0; i < LIN_ACOUSTICS_ROWS * D; i++) bins[i] = (float)lin_random_uniform(ops_next_key(c), 0);
    for (int i = 3 * D; i < 4 * D; i++) bins[i] *= (float)(D - 1);
    const int kind = ops_pick(c, 0, 15);
    for (int d = 0; d < D; d++) {
        if (kind & 1 && d % 3 == 0) bins[d] = 0;
        if (kind & 2) bins[D + d] = 0;
        bins[2 * D + d] /= 3;
    }
    lin_acoustics a = {.speech = kind & 4 ? 0 : 0.5f,
                       .room = kind & 8 ? 0 : 0.7f,
                       .decay = 0.8f,
                       .noise = kind == 5 ? 0 : expf((float)ops_pick(c, -10, 20)),
                       .depth = 1,
                       .fall = 0.01f,
                       .hold = ops_pick(c, 1, 20),
                       .n_shapes = ops_pick(c, 1, LIN_ACOUSTICS_SHAPES),
                       .n_voices = ops_pick(c, 0, LIN_ACOUSTICS_VOICES),
                       .bins = ops_block(c, (size_t)(LIN_ACOUSTICS_ROWS * D), sizeof *bins, bins),
                       .key = ops_next_key(c)};
    const unsigned char *voice = ops_block(c, (size_t)(VOICE * D), 1, codes);
    for (int v = 0; v < a.n_voices; v++)
        a.voices[v] = (lin_acoustics_voice){voice, steps, VOICE - v, ops_pick(c, 0, VOICE - v - 1), 0.1f};
    return ops_block(c, 1, sizeof a, &a);
}

static void ops_gather_shape(ops_context *c, const ops_layout *layout, int D)
{
    const lin_segments segments = ops_segments(c, layout);
    lin_gather items[OPS_MAX_B] = {0};
    lin_mask masks[8 * OPS_MAX_B] = {0};
    int n_masks = 0;
    for (int b = 0; b < layout->B; b++) {
        const int T = layout->lengths[b], first = n_masks, rate = T > 0 && ops_pick(c, 0, 1); // another speaking rate
        const int F = rate ? ops_pick(c, 1, 2 * T) : T;
        unsigned char *codes = test_buffer((size_t)(F * D), 1);
        for (size_t i = 0; i < (size_t)(F * D); i++) codes[i] = (unsigned char)lin_random_bits(ops_next_key(c), 0);
        float *steps = ops_in(c, (size_t)(2 * D), 0.01, 0.2).f;
        for (int d = 0; d < D; d++) steps[d] = (float)(-10 + 5 * lin_random_uniform(ops_next_key(c), 0));
        ops_widen(c->buffers[c->n_buffers - 1]);
        for (int i = ops_pick(c, 0, 6); i > 0; i--) { // overlapping, empty, all of it
            lin_mask m = {ops_pick(c, 0, T), ops_pick(c, 0, T), ops_pick(c, 0, D), ops_pick(c, 0, D)};
            if (m.t1 < m.t0) m = (lin_mask){m.t1, m.t0, m.d0, m.d1};
            if (m.d1 < m.d0) m = (lin_mask){m.t0, m.t1, m.d1, m.d0};
            if (i % 3 == 1) m = (lin_mask){m.t0, m.t1, 0, D};
            if (i % 3 == 2) m = (lin_mask){0, T, m.d0, m.d1};
            masks[n_masks++] = m;
        }
        items[b] = (lin_gather){.codes = b % 4 == 2 ? NULL : ops_block(c, (size_t)(F * D), 1, codes),
                                .frames = rate ? F : 0,
                                .steps = steps,
                                .mean = ops_in(c, (size_t)D, -2, 8).f,
                                .istd = ops_in(c, (size_t)D, 0.1, 1).f,
                                .first_mask = first,
                                .n_masks = n_masks - first,
                                .acoustics = b % 3 == 1 ? ops_acoustics(c, D, steps) : NULL};
        test_buffer_free(codes);
    }
    const lin_gather *list = ops_block(c, (size_t)layout->B, sizeof *items, items);
    const lin_mask *mask_list = ops_block(c, (size_t)n_masks, sizeof *masks, masks);
    pair x = ops_out(c, (size_t)(segments.rows * D)), same = ops_out(c, x.n);
    ops_say(c, "gather B %d rows %d D %d, %d masks", layout->B, segments.rows, D, n_masks);
    c->ops->gather(c->exec, x.f, list, mask_list, &segments, D);
    c->ref->gather(c->ref_exec, x.d, list, mask_list, &segments, D);
    ops_done(c);
    for (int b = 0; b < layout->B; b++)
        for (int t = 0; t < layout->lengths[b]; t++)
            for (int d = 0; d < D; d++) {
                const lin_gather *item = &items[b];
                volatile float scaled = 0, feature = 0; // rounded after every step, as the data set and the trainer do it
                int hidden = !item->codes;
                for (int m = item->first_mask; m < item->first_mask + item->n_masks; m++)
                    hidden |= t >= masks[m].t0 && t < masks[m].t1 && d >= masks[m].d0 && d < masks[m].d1;
                if (!hidden && !item->frames) {
                    scaled = item->steps[D + d] * (float)item->codes[t * D + d];
                    feature = item->steps[d] + scaled;
                    feature = feature - item->mean[d];
                    feature = feature * item->istd[d];
                }
                const int at = (segments.offsets[b] + t) * D + d;
                same.f[at] = (item->acoustics || item->frames) && !hidden ? x.f[at] : feature;
            }
    ops_check_scaled(c, "x", x, 3e-6, 1); // the mean may cancel the value, and powers have the rounding errors of exponentials
    ops_check_same(c, "x, step by step", x.f, same.f, x.n, 1e-6);
    ops_end(c);
}

void ops_case_gather(ops_context *c)
{
    const int widths[] = {1, 7, 40, 80, 129};
    for (int l = 0; l < OPS_N_LAYOUTS; l++)
        for (int w = 0; w < 5; w++)
            if (!ops_thin(c, 3) && !ops_too_large(c, &ops_layouts[l])) ops_gather_shape(c, &ops_layouts[l], widths[w]);
    const ops_layout longer = {3, {300, 0, 411}};
    if (!c->options->quick) ops_gather_shape(c, &longer, 40);
}

/* ---- the kept rows of streams ---------------------------------------------------------------------------------------------- */

/* Streams of numbered rows, cut into random pieces, each call keeping a random number of them for the next. */
static void ops_carry_shape(ops_context *c, int B, int width, int most_kept, int most_new)
{
    enum { CALLS = 9 };
    const size_t at = ops_state_at(c), W = (size_t)width, room = at + (size_t)most_kept * W;
    pair all[OPS_MAX_B], tails[OPS_MAX_B];
    float *f[OPS_MAX_B] = {0};
    double *d[OPS_MAX_B] = {0};
    int seen[OPS_MAX_B] = {0}, kept[OPS_MAX_B] = {0};
    for (int b = 0; b < B; b++) {
        all[b] = ops_in(c, (size_t)(CALLS * most_new) * W, -1, 1);
        tails[b] = ops_out(c, room);
        f[b] = b % 4 == 3 ? NULL : tails[b].f;
        d[b] = b % 4 == 3 ? NULL : tails[b].d;
    }
    float *const *tails_f = ops_block(c, (size_t)B, sizeof *f, f);
    double *const *tails_d = ops_block(c, (size_t)B, sizeof *d, d);
    for (int call = 0; call < CALLS; call++) {
        int fresh[OPS_MAX_B] = {0}, rows[OPS_MAX_B] = {0}, keep[OPS_MAX_B] = {0};
        for (int b = 0; b < B; b++) {
            fresh[b] = ops_pick(c, 0, most_new);
            rows[b] = kept[b] + fresh[b];
            keep[b] = f[b] ? ops_pick(c, 0, rows[b] < most_kept ? rows[b] : most_kept) : 0;
        }
        const int first_block = c->n_blocks;
        lin_segments in = ops_segments_of(c, fresh, B), out = ops_segments_of(c, rows, B);
        in.rows += 3 * (call & 1); // rows in no utterance
        out.rows += 5 * (call & 2);
        const int *have_list = ops_block(c, (size_t)B, sizeof *kept, kept),
                  *keep_list = ops_block(c, (size_t)B, sizeof *keep, keep);
        float *x = ops_block(c, (size_t)in.rows * W, sizeof *x, NULL), *y = ops_block(c, (size_t)out.rows * W, sizeof *y, NULL);
        double *wide = ops_block(c, (size_t)in.rows * W, sizeof *wide, NULL),
               *y_d = ops_block(c, (size_t)out.rows * W, sizeof *y_d, NULL);
        for (int b = 0; b < B; b++)
            for (size_t i = 0; i < (size_t)fresh[b] * W; i++) {
                x[(size_t)in.offsets[b] * W + i] = all[b].f[(size_t)seen[b] * W + i];
                wide[(size_t)in.offsets[b] * W + i] = all[b].d[(size_t)seen[b] * W + i];
            }
        ops_say(c, "carry B %d width %d, call %d", B, width, call);
        c->ops->carry(c->exec, y, &out, x, &in, tails_f, at, have_list, keep_list, width);
        c->ref->carry(c->ref_exec, y_d, &out, wide, &in, tails_d, at, have_list, keep_list, width);
        ops_digest_bytes(c, y, (size_t)out.offsets[B] * W * sizeof *y);
        for (int b = 0; b < B; b++) {
            for (size_t i = 0; i < (size_t)rows[b] * W; i++) {
                const float want = all[b].f[(size_t)(seen[b] - kept[b]) * W + i];
                test_require(y[(size_t)out.offsets[b] * W + i] == want, "%s: element %zu of utterance %d is %g, expected %g",
                             c->what, i, b, (double)y[(size_t)out.offsets[b] * W + i], (double)want);
                test_require(y_d[(size_t)out.offsets[b] * W + i] == (double)want, "%s: ref/ is wrong at %zu of %d", c->what, i,
                             b);
            }
            seen[b] += fresh[b];
            kept[b] = keep[b];
            for (size_t i = 0; i < at; i++)
                test_require(isnan(tails[b].f[i]), "%s: element %zu before a tail was written", c->what, i);
            for (size_t i = 0; i < (size_t)keep[b] * W; i++)
                test_require(tails[b].f[at + i] == all[b].f[(size_t)(seen[b] - keep[b]) * W + i],
                             "%s: element %zu of tail %d is %g", c->what, i, b, (double)tails[b].f[at + i]);
        }
        ops_end_blocks(c, first_block);
    }
    ops_end(c);
}

void ops_case_carry(ops_context *c)
{
    const int widths[] = {1, 3, 40, 192};
    for (int w = 0; w < 4; w++) {
        if (ops_thin(c, 2)) continue;
        ops_carry_shape(c, 1, widths[w], 4, 1);
        ops_carry_shape(c, 8, widths[w], 7, 5);
        ops_carry_shape(c, 5, widths[w], 30, 9);
        ops_carry_shape(c, 2, widths[w], 1, 40);
    }
    if (!c->options->quick) ops_carry_shape(c, 7, 4001, 3, 6);
    ops_carry_shape(c, 0, 4, 1, 1);
    ops_carry_shape(c, 5, 30, 7, 300); // on a GPU by a block each, and by several
    ops_carry_shape(c, 2, 30, 7, 2500);
}

/* ---- sound into features --------------------------------------------------------------------------------------------------- */

/* Frames of noise, of a tone in noise, of silence; triangles of any shape. */
static void ops_fbank_shape(ops_context *c, int window, int hop, int n_fft, int D, const ops_layout *layout)
{
    int samples[OPS_MAX_B] = {0}, from[128], to[128];
    for (int b = 0; b < layout->B; b++) {
        const int T = layout->lengths[b];
        samples[b] = T ? (T - 1) * hop + window + ops_pick(c, 0, hop - 1) : ops_pick(c, 0, window - 1);
    }
    const lin_segments in = ops_segments_of(c, samples, layout->B), out = ops_segments(c, layout);
    pair x = ops_in(c, (size_t)in.rows, -0.05, 0.05), shape = ops_in(c, (size_t)window, 0, 32768);
    pair mel = ops_in(c, (size_t)(D * (n_fft / 2 + 1)), 0.1, 1), y = ops_out(c, (size_t)(out.rows * D));
    for (int b = 0; b < layout->B; b++)
        for (int i = in.offsets[b]; i < in.offsets[b + 1]; i++) {
            if (b % 3 == 1) x.f[i] += (float)(0.7 * sin(0.3 * i));
            if (b % 3 == 2) x.f[i] = 0;
        }
    for (int i = 0; i < window; i++)
        shape.f[i] = (float)(32768 * pow(0.5 - 0.5 * cos(6.283185307179586 * i / (window - 1)), 0.85));
    for (int d = 0; d < D; d++) {
        from[d] = d * (n_fft / 2) / (D + 1);
        to[d] = (d + 2) * (n_fft / 2) / (D + 1) + 1;
        for (int i = 0; i <= n_fft / 2; i++)
            if (i < from[d] || i >= to[d]) mel.f[d * (n_fft / 2 + 1) + i] = 0;
    }
    ops_widen(x);
    ops_widen(shape);
    ops_widen(mel);
    const lin_fbank_table table = {.window_samples = window,
                                   .hop_samples = hop,
                                   .n_fft = n_fft,
                                   .D = D,
                                   .preemphasis = 0.97f,
                                   .floor = 1.1920929e-7f,
                                   .window = shape.f,
                                   .mel = mel.f,
                                   .mel_from = ops_block(c, (size_t)D, sizeof *from, from),
                                   .mel_to = ops_block(c, (size_t)D, sizeof *to, to)};
    ops_say(c, "fbank window %d hop %d fft %d D %d rows %d", window, hop, n_fft, D, out.rows);
    c->ops->fbank(c->exec, y.f, &out, x.f, &in, &table);
    c->ref->fbank(c->ref_exec, y.d, &out, x.d, &in, &table);
    ops_check_scaled(c, "y", y, 5e-5, 20); // of energies that an fp32 transform leaves 60 dB below the largest
    ops_end(c);
}

void ops_case_fbank(ops_context *c)
{
    if (!c->ops->fbank) return;
    const ops_layout few = {3, {3, 1, 2}}, many = {6, {1, 0, 4, 17, 2, 5}}, longer = {2, {60, 101}};
    static const int forms[][4] = {{400, 160, 512, 40}, {25, 10, 32, 3}, {64, 64, 64, 7},     {2, 1, 2, 1},         {3, 2, 4, 1},
                                   {8, 3, 8, 3}, {200, 80, 256, 40}, {600, 160, 1024, 40}, {4000, 100, 4096, 40}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        ops_fbank_shape(c, forms[i][0], forms[i][1], forms[i][2], forms[i][3], &few);
    if (c->options->quick) return;
    ops_fbank_shape(c, 200, 80, 256, 23, &many);
    ops_fbank_shape(c, 20, 33, 32, 4, &many); // samples between the windows
    ops_fbank_shape(c, 1102, 441, 2048, 80, &few);
    ops_fbank_shape(c, 400, 160, 512, 80, &longer);
}

/* ---- rows in no utterance -------------------------------------------------------------------------------------------------- */

/* If one graph serves batches of different sizes, there are rows beyond those of all utterances, with arbitrary contents: the
 * results of the other rows must not change. */
static void ops_nobody_shape(ops_context *c, const ops_layout *layout, int more)
{
    enum { H = 2, E = 16, C = H * E, K = 5, STATE = H * (E + 1) * E, TAIL = (K - 1) * C };
    const lin_ops *ops = c->ops;
    const lin_segments own = ops_segments(c, layout);
    lin_segments all = own;
    all.rows += more;
    const size_t rows = (size_t)own.rows, room = (size_t)all.rows;
    pair x = ops_in(c, room * C, -2, 2), qkv = ops_in(c, room * 3 * C, -2, 2), w = ops_in(c, K * C, -1, 1);
    pair bias = ops_in(c, C, -1, 1), istd = ops_in(c, C, 0.5, 1);
    for (size_t i = rows * C; i < x.n; i++) x.f[i] = NAN;
    for (size_t i = rows * 3 * C; i < qkv.n; i++) qkv.f[i] = NAN;
    ops_widen(x);
    ops_widen(qkv);
    static const float triangles[3 * 5] = {1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1}, taper = 1;
    const lin_fbank_table table = {.window_samples = 1,
                                   .hop_samples = 1,
                                   .n_fft = 8,
                                   .D = 3,
                                   .floor = 1e-7f,
                                   .window = ops_block(c, 1, sizeof taper, &taper),
                                   .mel = ops_block(c, 3 * 5, sizeof taper, triangles),
                                   .mel_from = ops_block(c, 3, sizeof(int), (const int[]){0, 1, 3}),
                                   .mel_to = ops_block(c, 3, sizeof(int), (const int[]){2, 4, 5})};
    lin_gather *items = ops_block(c, OPS_MAX_B, sizeof *items, NULL);
    memset(items, 0, OPS_MAX_B * sizeof *items); // utterances without features
    pair y[2][8];
    float *states[2][OPS_MAX_B] = {{0}}, *tails[2][OPS_MAX_B] = {{0}};
    for (int side = 0; side < 2; side++) {
        const lin_segments *s = side ? &all : &own;
        for (int i = 0; i < 8; i++) y[side][i] = ops_inout(c, (side ? room : rows) * (i == 1 ? 2 * C : C), 0, 0);
        for (int b = 0; b < layout->B; b++) {
            states[side][b] = ops_inout(c, STATE, 0, 0).f;
            tails[side][b] = ops_inout(c, TAIL, 0, 0).f;
        }
        float *const *state_list = ops_block(c, (size_t)layout->B, sizeof **states, states[side]);
        float *const *tail_list = ops_block(c, (size_t)layout->B, sizeof **tails, tails[side]);
        for (size_t i = 0; i < y[side][0].n && i < rows * C; i++) y[side][0].f[i] = x.f[i];
        ops_say(c, "%d rows and %d in no utterance", own.rows, more * side);
        ops->add_sinusoid(c->exec, y[side][0].f, s, C, NULL, 0);
        ops->stack_frames(c->exec, y[side][1].f, x.f, bias.f, istd.f, s, s, C, 1, 1);
        ops->conv_forward(c->exec, y[side][2].f, x.f, w.f, bias.f, s, C, K, 0, tail_list, 0);
        ops->attention_forward(c->exec, y[side][3].f, qkv.f, s, H, E, 1, state_list, 0);
        ops->attention_forward(c->exec, y[side][4].f, qkv.f, s, H, E, 0, NULL, 0);
        ops->gather(c->exec, y[side][5].f, items, NULL, s, C);
        if (ops->softmax_forward) ops->softmax_forward(c->exec, y[side][6].f, NULL, qkv.f, s, H, E, 1, NULL, 0);
        if (ops->fbank) ops->fbank(c->exec, y[side][7].f, s, x.f, &own, &table); // a frame to each sample
    }
    ops_done(c);
    for (int i = 0; i < 8; i++) ops_check_same(c, "owned rows", y[1][i].f, y[0][i].f, y[0][i].n, 4e-6);
    for (int b = 0; b < layout->B; b++) {
        ops_check_same(c, "state", states[1][b], states[0][b], STATE, 4e-6);
        ops_check_same(c, "tail", tails[1][b], tails[0][b], TAIL, 0);
    }
    ops_end(c);
}

void ops_case_rows_of_nobody(ops_context *c)
{
    for (int l = 0; l < OPS_N_LAYOUTS; l++) {
        if (ops_too_large(c, &ops_layouts[l])) continue;
        ops_nobody_shape(c, &ops_layouts[l], 1);
        ops_nobody_shape(c, &ops_layouts[l], 40);
    }
}

/* ---- greedy decoding ------------------------------------------------------------------------------------------------------- */

static void ops_check_phone(ops_context *c, int b, const lin_phone *got, const lin_path_phone *want)
{
    test_require(got->label == want->label && got->start == want->start && got->end == want->end,
                 "%s: a phone of stream %d is %d in %lld..%lld, expected %d in %lld..%lld", c->what, b, got->label,
                 (long long)got->start, (long long)got->end, want->label, (long long)want->start, (long long)want->end);
    const double apart = fabs((double)got->confidence - (double)want->confidence);
    test_require(c->options->bit_exact ? apart == 0 : apart <= 1e-6, "%s: a confidence is %.9g, expected %.9g", c->what,
                 (double)got->confidence, (double)want->confidence);
}

/* B streams in any of the slots, started in all possible states, fed in parts; against decoder/search. */
static void ops_greedy_shape(ops_context *c, int B, int V, int longest, int broken)
{
    enum { CALLS = 6, SPARE = 3, SLOTS = OPS_MAX_B + SPARE };
    lin_greedy streams[OPS_MAX_B];
    lin_run begin[SLOTS];
    int slots[OPS_MAX_B];
    test_poison(begin, sizeof begin);
    for (int b = 0; b < B; b++) {
        slots[b] = (b * 3 + 1) % (B + SPARE);
        for (int other = 0; other < b; other++)
            if (slots[other] == slots[b]) { // 3 divides B + SPARE
                slots[b] = (slots[b] + 1) % (B + SPARE);
                other = -1;
            }
        lin_greedy_reset(&streams[b], V, b % 2 ? 100000000000 : 0, 0);
        if (b % 3 == 2) { // in the middle of speech, its phone already returned
            streams[b].label = V > 1 ? 1 + b % (V - 1) : 0;
            lin_greedy_reset(&streams[b], V, 50, 1);
        }
        begin[slots[b]] = (lin_run){streams[b].label, streams[b].emitted, streams[b].start, streams[b].frame, 0};
    }
    lin_run *runs = ops_block(c, SLOTS, sizeof *runs, NULL), *runs_ref = ops_block(c, SLOTS, sizeof *runs, NULL);
    memcpy(runs, begin, sizeof begin);
    memcpy(runs_ref, begin, sizeof begin);
    for (int call = 0; call < CALLS; call++) {
        const int first_block = c->n_blocks, first_buffer = c->n_buffers;
        int lengths[OPS_MAX_B] = {0}, now[OPS_MAX_B] = {0}, fails[OPS_MAX_B] = {0};
        for (int b = 0; b < B; b++) {
            lengths[b] = ops_pick(c, 0, longest);
            now[b] = ops_pick(c, 0, 4) ? slots[b] : -1;
            fails[b] = broken && lengths[b] && ops_pick(c, 0, 2) == 0;
        }
        lin_segments segments = ops_segments_of(c, lengths, B);
        segments.rows += 4 * (call & 1); // rows in no utterance
        pair logp = ops_in(c, (size_t)(segments.rows * V), -4, 0);
        for (size_t i = 0; i < logp.n; i++) logp.f[i] = roundf(logp.f[i]); // equal ones, and runs
        for (int b = 0; b < B; b++) {
            if (!fails[b]) continue;
            float *row = logp.f + (segments.offsets[b] + ops_pick(c, 0, lengths[b] - 1)) * V;
            const int form = ops_pick(c, 0, 2);
            if (form == 0) row[ops_pick(c, 0, V - 1)] = NAN;
            if (form == 1) row[ops_pick(c, 0, V - 1)] = INFINITY;
            for (int v = 0; form == 2 && v < V; v++) row[v] = -INFINITY;
        }
        for (int b = 0; b < B; b++) // some -infinity is harmless
            if (lengths[b] && V > 2 && !fails[b]) logp.f[segments.offsets[b] * V + 1] = -INFINITY;
        ops_widen(logp);
        const int *slot_list = ops_block(c, (size_t)B, sizeof *now, now);
        const size_t rows = (size_t)segments.rows;
        lin_phone *phones = ops_block(c, rows, sizeof *phones, NULL), *phones_ref = ops_block(c, rows, sizeof *phones, NULL);
        int *counts = ops_block(c, (size_t)B, sizeof *counts, NULL), *counts_ref = ops_block(c, (size_t)B, sizeof *counts, NULL);
        lin_run before[SLOTS];
        memcpy(before, runs, sizeof before);
        ops_say(c, "greedy B %d V %d, call %d", B, V, call);
        c->ops->greedy(c->exec, phones, counts, logp.f, &segments, V, runs, slot_list);
        c->ref->greedy(c->ref_exec, phones_ref, counts_ref, logp.d, &segments, V, runs_ref, slot_list);
        ops_digest_bytes(c, counts, (size_t)B * sizeof *counts);
        ops_digest_bytes(c, runs, sizeof before);
        for (int b = 0; b < B; b++) {
            lin_path_phone room[64]; // a case may allocate nothing
            lin_path want = {.phones = room, .phones_capacity = 64};
            const float *own = logp.f + segments.offsets[b] * V;
            lin_status status = now[b] < 0 ? LIN_OK : lin_greedy_push(&streams[b], own, lengths[b], &want, NULL);
            ck_assert_msg((status != LIN_OK) == (now[b] >= 0 && fails[b]), "%s: a status of stream %d is wrong", c->what, b);
            const int n = status == LIN_OK ? want.n_phones : -1;
            test_require(counts[b] == n, "%s: %d phones of stream %d, expected %d", c->what, counts[b], b, n);
            test_require(counts_ref[b] == n, "%s: ref/ says %d phones of stream %d, expected %d", c->what, counts_ref[b], b, n);
            for (int i = 0; i < n; i++) {
                ops_check_phone(c, b, &phones[segments.offsets[b] + i], &want.phones[i]);
                ops_check_phone(c, b, &phones_ref[segments.offsets[b] + i], &want.phones[i]);
            }
            const lin_run *got = &runs[slots[b]];
            test_require(got->label == streams[b].label && got->emitted == streams[b].emitted && got->start == streams[b].start &&
                             got->frame == streams[b].frame && fabs(got->sum_logp - streams[b].sum_logp) <= 1e-9,
                         "%s: the run of stream %d is %d from %lld to %lld, expected %d from %lld to %lld", c->what, b,
                         got->label, (long long)got->start, (long long)got->frame, streams[b].label, (long long)streams[b].start,
                         (long long)streams[b].frame);
            test_require(memcmp(got, &runs_ref[slots[b]], sizeof *got) == 0 || !c->options->bit_exact, "%s: ref/ has another run",
                         c->what);
            if (n < 0 || now[b] < 0)
                test_require(memcmp(got, &before[slots[b]], sizeof *got) == 0, "%s: the state of stream %d changed", c->what, b);
        }
        for (int slot = 0; slot < SLOTS; slot++) { // unused slots
            int used = 0;
            for (int b = 0; b < B; b++) used |= slots[b] == slot;
            test_require(used || memcmp(&runs[slot], &begin[slot], sizeof *runs) == 0, "%s: slot %d changed", c->what, slot);
        }
        ops_end_blocks(c, first_block);
        ops_end_buffers(c, first_buffer);
    }
    ops_end(c);
}

void ops_case_greedy(ops_context *c)
{
    const int widths[] = {1, 2, 3, 7, 32, 33, 41, 100};
    for (int w = 0; w < 8; w++)
        for (int broken = 0; broken < 2; broken++) {
            if (ops_thin(c, 3)) continue;
            ops_greedy_shape(c, 8, widths[w], 5, broken);
            ops_greedy_shape(c, 1, widths[w], 1, broken);
            ops_greedy_shape(c, 5, widths[w], 40, broken);
        }
    ops_greedy_shape(c, 0, 5, 1, 0);
}
