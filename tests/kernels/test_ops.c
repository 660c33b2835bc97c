// The reference where neither the networks of PyTorch (tests/model/test_golden_f64.c) nor tests/kernels/test_ctc.c show that it
// is right: by hand, in the other form of a definition, against an enumeration or finite differences.
#include "base/memory.h"
#include "kernels/acoustics.h"
#include "tests/kernels/kernel_support.h"
#include "train/lab/npy.h"

/* ---- the optimiser --------------------------------------------------------------------------------------------------------- */

// Kingma & Ba 2015, algorithm 1, with its own bias corrections;
// L2 decay in the gradient, or decoupled (Loshchilov & Hutter 2019).
START_TEST(adam)
{
    enum { N = 5, STEPS = 6 };
    const double lr = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-6, decay_rate = 0.1;
    const size_t offsets[] = {0, 2, N};
    const double scale[] = {1, 0.5};
    const unsigned char decay[] = {1, 0};
    const lin_tensors tensors = {2, offsets, decay};
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        double p[N], m[N] = {0}, v[N] = {0}, want[N], first[N] = {0}, second[N] = {0}, grad[N];
        test_fill_f64(p, N, 4, -1, 1);
        memcpy(want, p, sizeof want);
        for (int t = 1; t <= STEPS; t++) {
            test_fill_f64(grad, N, 10 + (uint64_t)t, -1, 1);
            lin_adam_step step = {.beta1 = b1, .beta2 = b2, .eps = eps, .weight_decay = decay_rate, .lr = lr,
                                  .step_size = lr / (1 - pow(b1, t)), .v_scale = 1 / sqrt(1 - pow(b2, t)),
                                  .adaptive = 1, .decoupled = decoupled};
            ref->adam(ref_exec, p, grad, m, v, &tensors, scale, &step, NULL);
            for (int i = 0; i < N; i++) {
                double g = i < 2 ? grad[i] : 0.5 * grad[i], wd = i < 2 ? decay_rate : 0;
                if (decoupled)
                    want[i] *= 1 - lr * wd;
                else
                    g += wd * want[i];
                first[i] = b1 * first[i] + (1 - b1) * g;
                second[i] = b2 * second[i] + (1 - b2) * g * g;
                double m_hat = first[i] / (1 - pow(b1, t)), v_hat = second[i] / (1 - pow(b2, t));
                want[i] -= lr * m_hat / (sqrt(v_hat) + eps);
            }
        }
        test_close_f64("p", p, want, N, 1e-14);
    }
}
END_TEST

/* ---- features -------------------------------------------------------------------------------------------------------------- */

// Powers 1, 2, 4 of one bin, in a room, with a voice of powers 8, 16 from its second frame on;
// the third frame is below the floor.
START_TEST(gather_with_acoustics)
{
    const int offsets[] = {0, 3};
    const lin_segments segments = segments_at(offsets, 1);
    const unsigned char codes[] = {0, 1, 2}, voice[] = {3, 4};
    const float ln2 = (float)log(2), steps[] = {0, ln2}, mean[] = {1}, istd[] = {2};
    float bins[LIN_ACOUSTICS_ROWS] = {3}; // pass
    lin_acoustics a = {.speech = 2, .room = 0.5f, .decay = 0.25f, .hold = 1, .n_shapes = 1, .n_voices = 1, .bins = bins,
                       .voices = {{voice, steps, 2, 1, 0.125f}}};
    const lin_gather item = {codes, steps, mean, istd, 0, 0, &a, 0};
    const double late1 = 0.75 * 1, late2 = 0.25 * late1 + 0.75 * 2;
    const double want[] = {2 * (log(3 * (2 * 1 + 2)) - 1), 2 * (log(3 * (2 * (2 + 0.5 * late1) + 1)) - 1),
                           2 * (log(3 * (2 * (4 + 0.5 * late2) + 2)) - 1)};
    double x[3];
    ref->gather(ref_exec, x, &item, NULL, &segments, 1);
    test_close_f64("in a room", x, want, 3, 1e-7);
    // no speech, no voice, nothing: the floor; then noise alone, of which only its distribution is random
    a.speech = 0;
    a.n_voices = 0;
    ref->gather(ref_exec, x, &item, NULL, &segments, 1);
    for (int t = 0; t < 3; t++) ck_assert_double_eq_tol(x[t], 2 * (log((double)LIN_ACOUSTICS_FLOOR) - 1), 1e-7);
    bins[4] = 5; // a shape; without spread
    a.noise = 2;
    ref->gather(ref_exec, x, &item, NULL, &segments, 1);
    for (int t = 0; t < 3; t++) ck_assert_double_eq_tol(x[t], 2 * (log(30) - 1), 1e-7);
}
END_TEST

// Features 0, 2, 6 of three bins, heard a quarter of a bin higher, at the last bin, and half a bin lower than it.
START_TEST(gather_at_other_frequencies)
{
    const int offsets[] = {0, 1};
    const lin_segments segments = segments_at(offsets, 1);
    const unsigned char codes[] = {0, 1, 3};
    const float steps[] = {0, 0, 0, 2, 2, 2}, mean[] = {0, 0, 0}, istd[] = {1, 1, 1};
    float bins[LIN_ACOUSTICS_ROWS * 3] = {1, 1, 1, [9] = 0.25f, 2, 1.5f};
    const lin_acoustics a = {.speech = 1, .hold = 1, .n_shapes = 1, .bins = bins};
    const lin_gather item = {codes, steps, mean, istd, 0, 0, &a, 0};
    const double want[] = {0.5, 6, 4};
    double x[3];
    ref->gather(ref_exec, x, &item, NULL, &segments, 3);
    test_close_f64("x", x, want, 3, 1e-6);
}
END_TEST

// F recorded frames of two bins, heard in T: each on the straight line between the two nearest, by the position in double; with
// acoustics that change nothing too.
START_TEST(gather_at_another_rate)
{
    enum { MOST = 40 };
    const int lengths[][2] = {{7, 7}, {7, 9}, {9, 7}, {40, 31}, {31, 40}, {3, 2}, {2, 3}, {1, 4}, {5, 1}};
    const float steps[] = {-3, 0.5f, 0.25f, 0.125f}, mean[] = {1, 2}, istd[] = {2, 0.5f};
    float bins[LIN_ACOUSTICS_ROWS * 2] = {1, 1, [7] = 1}; // pass; warp
    const lin_acoustics a = {.speech = 1, .hold = 1, .n_shapes = 1, .bins = bins};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int F = lengths[i][0], T = lengths[i][1], offsets[] = {0, T};
        const lin_segments segments = segments_at(offsets, 1);
        unsigned char codes[MOST * 2];
        double want[MOST * 2], x[MOST * 2];
        for (int n = 0; n < 2 * F; n++) codes[n] = (unsigned char)(n * n * 37 % 101);
        for (int t = 0; t < T; t++) {
            const double at = T > 1 ? (double)t * (F - 1) / (T - 1) : 0;
            const int from = (int)floor(at + 1e-9), to = from + 1 < F ? from + 1 : from;
            for (int d = 0; d < 2; d++) {
                const double y = (double)steps[d] + (double)steps[2 + d] * codes[2 * from + d],
                             z = (double)steps[d] + (double)steps[2 + d] * codes[2 * to + d];
                want[2 * t + d] = (y + (at - from) * (z - y) - (double)mean[d]) * (double)istd[d];
            }
        }
        lin_gather item = {codes, steps, mean, istd, 0, 0, NULL, F};
        ref->gather(ref_exec, x, &item, NULL, &segments, 2);
        test_close_f64("x", x, want, (size_t)(2 * T), 1e-5); // the share is a float
        item.acoustics = &a;
        ref->gather(ref_exec, x, &item, NULL, &segments, 2);
        test_close_f64("x with acoustics", x, want, (size_t)(2 * T), 1e-5);
    }
}
END_TEST

// The golden values of the front end, from the same sound, by the definition in frontend/fbank.h.
START_TEST(fbank)
{
    enum { WINDOW = 400, HOP = 160, FFT = 512, D = 40, LINES = FFT / 2 + 1 };
    lin_error err = {0};
    float *sound, *golden, window[WINDOW], *mel = test_buffer(D * LINES, sizeof *mel);
    size_t n, T;
    int one, bins, from[D], to[D];
    ck_assert_msg(lin_npy_read("tests/golden/fbank_signal.npy", &sound, &n, &one, &err) == LIN_OK, "%s", err.message);
    ck_assert_msg(lin_npy_read("tests/golden/fbank_default.npy", &golden, &T, &bins, &err) == LIN_OK, "%s", err.message);
    ck_assert_int_eq(bins, D);
    for (int i = 0; i < WINDOW; i++) window[i] = (float)(32768 * pow(0.5 - 0.5 * cos(2 * acos(-1) * i / (WINDOW - 1)), 0.85));
    const double low = 1127 * log(1 + 20 / 700.0), step = (1127 * log(1 + 8000 / 700.0) - low) / (D + 1);
    for (int d = 0; d < D; d++) {
        from[d] = to[d] = 0;
        for (int i = 0; i < LINES; i++) {
            const double place = (1127 * log(1 + i * 16000.0 / FFT / 700) - low) / step - d;
            const double weight = fmax(0, 1 - fabs(place - 1));
            mel[d * LINES + i] = (float)weight;
            if (weight > 0 && !to[d]) from[d] = i;
            if (weight > 0) to[d] = i + 1;
        }
    }
    const lin_fbank_table table = {WINDOW, HOP, FFT, D, 0.97f, 1.1920929e-7f, window, mel, from, to};
    if (T > 60) T = 60; // a plain transform is slow
    const int in_offsets[] = {0, (int)n}, out_offsets[] = {0, (int)T};
    const lin_segments in = segments_at(in_offsets, 1), out = segments_at(out_offsets, 1);
    double *x = test_widened(sound, n), *y = test_buffer(T * D, sizeof *y);
    ref->fbank(ref_exec, y, &out, x, &in, &table);
    for (size_t i = 0; i < T * D; i++)
        test_require(fabs(y[i] - (double)golden[i]) < 1e-3, "frame %zu, bin %zu is %g, expected %g", i / D, i % D, y[i],
                     (double)golden[i]);
    lin_free(sound);
    lin_free(golden);
    TEST_FREE(mel, x, y);
}
END_TEST

/* ---- the sum over all label sequences -------------------------------------------------------------------------------------- */

static const int offsets[] = {0, 5, 5, 6, 13}; // four utterances, one of them empty
enum { B = 4, ROWS = 13, V = 4 };
static const lin_segments segments = {B, ROWS, 7, offsets};

typedef struct operands {
    double *logits, *weights;
    const int *label_offsets;
} operands;

// Trigrams [V, V, V] of any positive numbers.
static const float *trigram_block(void)
{
    enum { S = V * V };
    static float block[2 * S * V + 2 * S];
    for (int b = 0; b < V; b++)
        for (int a = 0; a < V; a++) {
            for (int k = 1; k < V; k++) {
                const float p = (float)(1 + (7 * a + 3 * b + 5 * k) % 11) / 16;
                if (k == b) block[2 * S * V + b * V + a] = p;
                else block[(b * V + a) * V + k] = block[S * V + (b * V + k) * V + a] = p;
            }
            block[2 * S * V + S + b * V + a] = (float)(1 + (2 * a + 3 * b) % 5) / 8;
        }
    return block;
}

static double denominator_loss(void *context)
{
    operands *c = context;
    double logp[ROWS * V], sums[B], sum = 0;
    const lin_trigrams q = lin_trigrams_at(trigram_block(), V);
    ref->log_softmax(ref_exec, logp, c->logits, ROWS, V);
    ref->denominator(ref_exec, sums, NULL, NULL, logp, &segments, c->label_offsets, &q, V, 0.75, NULL);
    for (int b = 0; b < B; b++) sum += 0.75 * 0.25 * sums[b];
    return sum;
}

// The sum of e^-CTC(l) q(l) over the sequences that begin with the n labels so far.
static double enumerate(const double *logp, int T, int *labels, int n, double q, const lin_trigrams *t)
{
    const int a = n > 1 ? labels[n - 2] : 0, b = n ? labels[n - 1] : 0, rows[] = {0, T}, of_one[] = {0, n};
    double loss, sum = 0;
    ref->ctc(ref_exec, &loss, NULL, logp, &(lin_segments){1, T, T, rows}, labels, of_one, n, V, NULL);
    if (loss != -1) sum = exp(-loss) * q * (double)t->end[b * V + a];
    for (int k = 1; k < V && n < T; k++) {
        labels[n] = k;
        sum += enumerate(logp, T, labels, n + 1, q * (double)(k == b ? t->again[b * V + a] : t->next[(b * V + a) * V + k]), t);
    }
    return sum;
}

START_TEST(denominator)
{
    const int label_offsets[] = {0, 3, 3, 4, 8};
    operands c = {.logits = test_random_f64(ROWS * V, 9, -3, 3), .label_offsets = label_offsets};
    double logp[ROWS * V], sums[B], dlogits[ROWS * V] = {0};
    const double quarter = 0.25;
    const lin_trigrams q = lin_trigrams_at(trigram_block(), V);
    ref->log_softmax(ref_exec, logp, c.logits, ROWS, V);
    ref->denominator(ref_exec, sums, NULL, dlogits, logp, &segments, label_offsets, &q, V, 0.75, &quarter);
    test_gradient("denominator", denominator_loss, &c, c.logits, dlogits, ROWS * V);
    for (int b = 0; b < B; b++) {
        int any[ROWS];
        const int T = segments.offsets[b + 1] - segments.offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        const double want = U && U <= T ? log(enumerate(logp + segments.offsets[b] * V, T, any, 0, 1, &q)) : 0;
        ck_assert_msg(fabs(sums[b] - want) < 1e-12, "the sum of utterance %d is %.15g, enumerated %.15g", b, sums[b], want);
    }
    test_buffer_free(c.logits);
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "ops", TEST(adam), TEST(gather_with_acoustics), TEST(gather_at_other_frequencies),
               TEST(gather_at_another_rate), TEST(fbank), TEST(denominator))
