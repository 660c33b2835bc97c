// [cuda] Forms of the CUDA backend's sequence operations that the shapes of ops_cases.h do not cover: label sequences of a
// thousand, more tensors than a launch lists, every kind of carry, transforms of all sizes, and rows in no utterance.
#include "tests/cuda/pairs.h"

enum { MOST_B = 64 };

static void setup(void) { begin(LIN_PRECISION_FP32, 1707); }

static int pick(int lo, int hi) { return lo + (int)lin_random_below(key, counter++, (uint32_t)(hi - lo + 1)); }

static pair pair_of(size_t n, double lo, double hi) { return pair_in(n, lo, hi, 1); }

static int *counts_to_offsets(const int *counts, int B)
{
    int *offsets = test_buffer((size_t)B + 1, sizeof *offsets);
    offsets[0] = 0;
    for (int b = 0; b < B; b++) offsets[b + 1] = offsets[b] + counts[b];
    return offsets;
}

/* ---- CTC ------------------------------------------------------------------------------------------------------------------- */

// room: the bound that the caller gives for the labels and, if it exceeds their number, for the frames.
static void ctc_of(const int *frames, const int *counts, int B, int V, int room, int gradient)
{
    lin_segments s = segments_of(frames, B);
    int *label_offsets = counts_to_offsets(counts, B), U = label_offsets[B];
    int *labels = test_buffer((size_t)U, sizeof *labels);
    for (int i = 0; i < U; i++) labels[i] = pick(1, V - 1);
    pair x = pair_of((size_t)s.rows * (size_t)V, -3, 3), dlogits = pair_of(x.n, 9, 9);
    ref->log_softmax(ref_exec, x.d, x.d, s.rows, V);
    for (size_t i = 0; i < x.n; i++) {
        x.f[i] = (float)x.d[i];
        x.d[i] = (double)x.f[i];
    }
    double *loss = test_buffer((size_t)B, sizeof *loss), *want = test_buffer((size_t)B, sizeof *want),
           *scale = test_buffer(1, sizeof *scale);
    *scale = 0.5;
    ref->ctc(ref_exec, want, gradient ? dlogits.d : NULL, x.d, &s, labels, label_offsets, room, V, scale);
    if (room > s.longest) s.longest = room;
    ops->ctc(exec, loss, gradient ? dlogits.f : NULL, x.f, &s, labels, label_offsets, room, V, scale);
    done();
    for (int b = 0; b < B; b++)
        ck_assert_msg(fabs(loss[b] - want[b]) <= 2e-6 * (1 + fabs(want[b])), "room %d: loss %d is %.12g, expected %.12g", room, b,
                      loss[b], want[b]);
    check("dlogits", dlogits, 1e-5); // without a gradient: untouched
    test_buffer_free(labels);
    test_buffer_free(label_offsets);
    test_buffer_free(loss);
    test_buffer_free(want);
    test_buffer_free(scale);
    pair_free(x);
    pair_free(dlogits);
    segments_free(s);
}

START_TEST(ctc_many_labels)
{
    const int frames[] = {1150, 0, 700, 30}, counts[] = {530, 0, 349, 31}; // the last one has no path
    for (int gradient = 0; gradient < 2; gradient++) {
        ctc_of(frames, counts, 4, 9, 600, gradient);  // four positions to a thread
        ctc_of(frames, counts, 4, 9, 1150, gradient); // states in memory, with more positions than threads
    }
}
END_TEST

START_TEST(ctc_room)
{
    const int frames[] = {1, 70, 0, 12, 33, 2000}, counts[] = {1, 33, 0, 13, 16, 3}, rooms[] = {33, 63, 64, 511, 512, 1023, 1024};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) ctc_of(frames, counts, 6, 5, rooms[i], 1);
    ctc_of(frames + 5, counts + 5, 1, 3, 3, 1); // long and with few labels: a warp alone
}
END_TEST

/* ---- optimiser ------------------------------------------------------------------------------------------------------------- */

START_TEST(many_tensors)
{
    enum { N = 450 };
    size_t offsets[N + 1] = {5};
    unsigned char decay[N];
    double *scale = test_buffer(N, sizeof *scale), *norms = test_buffer(N, sizeof *norms), want[N];
    lin_adam_step *step = test_buffer(1, sizeof *step);
    *step = (lin_adam_step){.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1, .lr = 0.1, .step_size = 0.2,
                            .v_scale = 2, .adaptive = 1, .decoupled = 1};
    for (int i = 0; i < N; i++) {
        offsets[i + 1] = offsets[i] + (i % 9 == 4 ? 0 : i % 150 == 7 ? 9000 : (size_t)pick(1, 60));
        decay[i] = i % 3 == 0;
        scale[i] = uniform(0, 1);
    }
    const lin_tensors tensors = {N, offsets, decay};
    pair p = pair_of(offsets[N], -1, 1), g = pair_of(p.n, -1, 1), m = pair_of(p.n, -1, 1), v = pair_of(p.n, 0, 1);
    ops->sum_squares(exec, norms, g.f, &tensors);
    ref->sum_squares(ref_exec, want, g.d, &tensors);
    done();
    for (int i = 0; i < N; i++)
        ck_assert_msg(fabs(norms[i] - want[i]) <= 1e-12 * want[i], "sum of squares %d is %.17g, expected %.17g", i, norms[i],
                      want[i]);
    ops->adam(exec, p.f, g.f, m.f, v.f, &tensors, scale, step, NULL);
    ref->adam(ref_exec, p.d, g.d, m.d, v.d, &tensors, scale, step, NULL);
    check("p", p, 1e-6);
    check("m", m, 1e-6);
    check("v", v, 1e-6);
    pair_free(p);
    pair_free(g);
    pair_free(m);
    pair_free(v);
    test_buffer_free(scale);
    test_buffer_free(norms);
    test_buffer_free(step);
}
END_TEST

/* ---- carry ----------------------------------------------------------------------------------------------------------------- */

START_TEST(carry_sizes)
{
    enum { B = 5, TAIL = 7 };
    const int longest[] = {20, 300, 2500}, width = 30; // by a warp, by a block, by several
    for (int form = 0; form < 3; form++) {
        int fresh[B], all[B], *have = test_buffer(B, sizeof *have), *keep = test_buffer(B, sizeof *keep);
        pair tail = pair_of((size_t)(B * TAIL * width), -1, 1);
        float **tails = test_buffer(B, sizeof *tails);
        double *tails_d[B];
        for (int b = 0; b < B; b++) {
            fresh[b] = b == 1 ? longest[form] : b == 3 ? 0 : pick(0, 9);
            have[b] = b == 2 ? 0 : pick(0, TAIL);
            all[b] = fresh[b] + have[b];
            keep[b] = b == 2 ? 0 : all[b] < TAIL ? all[b] : pick(0, TAIL);
            tails[b] = b == 2 ? NULL : tail.f + b * TAIL * width;
            tails_d[b] = b == 2 ? NULL : tail.d + b * TAIL * width;
        }
        const lin_segments in = segments_of(fresh, B), out = segments_of(all, B);
        pair x = pair_of((size_t)(in.rows * width), -1, 1), y = pair_of((size_t)(out.rows * width), 0, 0);
        ops->carry(exec, y.f, &out, x.f, &in, tails, 0, have, keep, width);
        ref->carry(ref_exec, y.d, &out, x.d, &in, tails_d, 0, have, keep, width);
        check("y", y, 0);
        check("tails", tail, 0);
        pair_free(x);
        pair_free(y);
        pair_free(tail);
        segments_free(in);
        segments_free(out);
        test_buffer_free(tails);
        test_buffer_free(have);
        test_buffer_free(keep);
    }
}
END_TEST

/* ---- filterbanks ----------------------------------------------------------------------------------------------------------- */

// A table of D triangles over all of the spectrum, a plain window.
static lin_fbank_table table_of(int n_fft, int window, int hop, int D)
{
    const int lines = n_fft / 2 + 1;
    float *shape = test_buffer((size_t)window, sizeof *shape), *mel = test_buffer((size_t)(D * lines), sizeof *mel);
    int *from = test_buffer((size_t)D, sizeof *from), *to = test_buffer((size_t)D, sizeof *to);
    for (int i = 0; i < window; i++) shape[i] = (float)(1000 + 500 * (i % 7));
    for (int d = 0; d < D; d++) {
        from[d] = d * (lines - 1) / D;
        to[d] = (d + 1) * (lines - 1) / D + 1;
        for (int i = 0; i < lines; i++) mel[d * lines + i] = i >= from[d] && i < to[d] ? 1 + 0.1f * (float)(i % 5) : 0;
    }
    return (lin_fbank_table){window, hop, n_fft, D, 0.97f, 1e-7f, shape, mel, from, to};
}

static void table_free(lin_fbank_table t)
{
    union {
        const void *from;
        void *to;
    } parts[] = {{t.window}, {t.mel}, {t.mel_from}, {t.mel_to}};
    for (int i = 0; i < 4; i++) test_buffer_free(parts[i].to);
}

START_TEST(fbank_sizes)
{
    const int sizes[][3] = {{2, 2, 1}, {4, 3, 2}, {8, 8, 3}, {64, 50, 20}, {256, 200, 80}, {1024, 600, 160}, {4096, 4000, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        enum { B = 4 };
        const int n_fft = sizes[i][0], window = sizes[i][1], hop = sizes[i][2], D = n_fft < 8 ? 1 : n_fft < 64 ? 3 : 40;
        const int frames[B] = {3, 0, 1, 6};
        int samples[B];
        for (int b = 0; b < B; b++) samples[b] = frames[b] ? window + (frames[b] - 1) * hop + pick(0, hop - 1) : window - 1;
        const lin_segments in = segments_of(samples, B), out = segments_of(frames, B);
        const lin_fbank_table table = table_of(n_fft, window, hop, D);
        pair x = pair_of((size_t)in.rows, -0.5, 0.5), y = pair_of((size_t)(out.rows * D), 0, 0);
        ops->fbank(exec, y.f, &out, x.f, &in, &table);
        ref->fbank(ref_exec, y.d, &out, x.d, &in, &table);
        done();
        for (size_t k = 0; k < y.n; k++)
            ck_assert_msg(fabs((double)y.f[k] - y.d[k]) < 2e-4, "n_fft %d: energy %zu is %.9g, expected %.9g", n_fft, k,
                          (double)y.f[k], y.d[k]);
        pair_free(x);
        pair_free(y);
        segments_free(in);
        segments_free(out);
        table_free(table);
    }
}
END_TEST

/* ---- rows in no utterance -------------------------------------------------------------------------------------------------- */

START_TEST(more_rows)
{
    enum { D = 12, MORE = 50 };
    const int layouts[][MOST_B] = {{0}, {0, 3, 0}, {40, 1, 0, 2}}, sizes[] = {0, 3, 4};
    for (int l = 0; l < 3; l++) {
        const lin_segments s = segments_of(layouts[l], sizes[l]);
        lin_segments more = s;
        more.rows += MORE;
        more.longest += 1;
        const size_t n = (size_t)s.rows * D, all = (size_t)more.rows * D;
        pair x = pair_of(n, -1, 1), y = pair_of(2 * all, 0, 0), z = pair_of(all, -1, 1), mean = pair_of(D, -1, 1),
             istd = pair_of(D, 1, 2);
        ops->stack_frames(exec, y.f, x.f, mean.f, istd.f, &s, &more, D, 1, 1);
        ref->stack_frames(ref_exec, y.d, x.d, mean.d, istd.d, &s, &s, D, 1, 1);
        ops->add_sinusoid(exec, z.f, &more, D, NULL, 0);
        ref->add_sinusoid(ref_exec, z.d, &s, D, NULL, 0);
        y.n = 2 * n;
        z.n = n;
        check("stacked", y, 1e-6);
        check("with positions", z, 1e-6);

        lin_gather *items = test_buffer(MOST_B, sizeof *items);
        memset(items, 0, MOST_B * sizeof *items);
        ops->gather(exec, z.f, items, NULL, &more, D);
        for (size_t i = 0; i < n; i++) z.d[i] = 0;
        check("gathered", z, 0);
        test_buffer_free(items);

        const lin_fbank_table table = table_of(8, 1, 1, 3); // a frame to each sample
        pair sound = pair_of((size_t)s.rows, -1, 1), energies = pair_of((size_t)more.rows * 3, 0, 0);
        ops->fbank(exec, energies.f, &more, sound.f, &s, &table);
        ref->fbank(ref_exec, energies.d, &s, sound.d, &s, &table);
        energies.n = (size_t)s.rows * 3;
        check("energies", energies, 2e-4);
        table_free(table);
        pair_free(sound);
        pair_free(energies);
        pair_free(x);
        pair_free(y);
        pair_free(z);
        pair_free(mean);
        pair_free(istd);
        segments_free(s);
    }
}
END_TEST

TEST_MAIN_WITH(setup, end, "cuda_sequence", TEST(ctc_many_labels), TEST(ctc_room), TEST(many_tensors), TEST(carry_sizes),
               TEST(fbank_sizes), TEST(more_rows))
