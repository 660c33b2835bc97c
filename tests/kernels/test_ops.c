// Tests of the reference: operations of ref/ on numbers computed by hand, or against the formula of the paper in its other form
// (attention as a recurrence, Adam as in Kingma & Ba's algorithm 1).
#include "base/memory.h"
#include "train/lab/npy.h"
#include "kernels/acoustics.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const lin_ops_f64 *ops;
static lin_exec *exec;

static void setup(void)
{
    ops = lin_ops_ref();
    ck_assert_str_eq(ops->name, "ref");
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
}

static lin_segments segments_of(const int *offsets, int B)
{
    lin_segments s = {.B = B, .rows = offsets[B], .offsets = offsets};
    for (int b = 0; b < B; b++)
        if (offsets[b + 1] - offsets[b] > s.longest) s.longest = offsets[b + 1] - offsets[b];
    return s;
}

static void teardown(void) { ops->exec_destroy(exec); }

START_TEST(linear)
{
    const double x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 0, -1, 2, 1, 0}, bias[] = {0.5, -10}; // 2 rows, n 2, k 3
    const double want[] = {-1.5, -6, -1.5, -12}, want_bare[] = {-2, 4, -2, -2}, want_relu[] = {0, 4, 0, 0}, zero[2] = {0};
    double packed[6], y[4];
    ck_assert_uint_eq(ops->weight_size(2, 3), 6);
    ops->weights_pack(exec, packed, w, &(lin_packing){.n = 2, .k = 3}, 1);
    ops->linear_forward(exec, y, x, packed, bias, 2, 2, 3, LIN_LINEAR);
    test_close_f64("y", y, want, 4, 1e-15);
    ops->linear_forward(exec, y, x, packed, NULL, 2, 2, 3, LIN_LINEAR);
    test_close_f64("y without bias", y, want_bare, 4, 1e-15);
    ops->linear_forward(exec, y, x, packed, zero, 2, 2, 3, LIN_RELU);
    test_close_f64("y with relu", y, want_relu, 4, 1e-15);
}
END_TEST

START_TEST(layer_norm)
{
    const double x[] = {1, 3, 5, 5}, gamma[] = {2, 3}, beta[] = {10, 20}, r = 1 / sqrt(1 + 1e-5);
    const double want[] = {10 - 2 * r, 20 + 3 * r, 10, 20}, want_stats[] = {2, r, 5, 1 / sqrt(1e-5)};
    double y[4], stats[4];
    ops->layer_norm_forward(exec, y, stats, x, gamma, beta, 2, 2);
    test_close_f64("y", y, want, 4, 1e-15);
    test_close_f64("stats", stats, want_stats, 4, 1e-15);
}
END_TEST

START_TEST(stack_frames)
{
    // Two utterances of 3 and 1 frames, D = 1, two frames every two frames and one ahead: the last frame fills up.
    const double x[] = {10, 11, 12, 20}, mean[] = {10}, istd[] = {2}, want[] = {0, 2, 4, 4, 4, 4, 20, 20, 20};
    const int in_offsets[] = {0, 3, 4}, out_offsets[] = {0, 2, 3};
    const lin_segments in = segments_of(in_offsets, 2), out = segments_of(out_offsets, 2);
    double y[9];
    ops->stack_frames(exec, y, x, mean, istd, &in, &out, 1, 2, 1);
    test_close_f64("y", y, want, 9, 0);
}
END_TEST

START_TEST(sinusoid)
{
    const int offsets[] = {0, 2, 3};
    const lin_segments segments = segments_of(offsets, 2);
    double x[15] = {0};
    const double a = pow(10000, -2.0 / 5); // C = 5: angle of the second pair per frame; the fifth channel has no partner
    const double want[15] = {0, 1, 0, 1, 0, sin(1), cos(1), sin(a), cos(a), 0, 0, 1, 0, 1, 0};
    ops->add_sinusoid(exec, x, &segments, 5, NULL, 0);
    test_close_f64("x", x, want, 15, 1e-15);
}
END_TEST

START_TEST(conv)
{
    // One channel, K = 3: y[t] = x[t] + 100 + 1 x[t-2] + 2 x[t-1] + 3 x[t].
    const double x[] = {1, 2, 3, 4}, w[] = {1, 2, 3}, bias[] = {100}, want[] = {104, 110, 117, 124};
    const double want_tail[] = {104 + 7 + 2 * 9, 110 + 9, 117, 124};
    const int offsets[] = {0, 4}, first[] = {0, 1};
    const lin_segments all = segments_of(offsets, 1), one = segments_of(first, 1);
    double y[4], tail[] = {7, 9}, *tails[] = {tail}, grow[] = {-5, -6, 7, 9}, *grown[] = {grow};
    ops->conv_forward(exec, y, x, w, bias, &all, 1, 3, 0, NULL, 0);
    test_close_f64("y", y, want, 4, 1e-15);
    ops->conv_forward(exec, y, x, w, bias, &all, 1, 3, 0, tails, 0);
    test_close_f64("y after a tail", y, want_tail, 4, 1e-15);
    ck_assert(tail[0] == 3 && tail[1] == 4);
    for (int t = 0; t < 4; t++) ops->conv_forward(exec, y + t, x + t, w, bias, &one, 1, 3, 0, grown, 2);
    test_close_f64("y frame by frame", y, want_tail, 4, 1e-15);
    ck_assert(grow[0] == -5 && grow[1] == -6 && grow[2] == 3 && grow[3] == 4);
}
END_TEST

// Eq. 16-20: the explicit sums against the recurrence over S and z, and the state it leaves.
START_TEST(attention_is_a_recurrence)
{
    enum { T = 9, H = 2, E = 3, W = H * E, STATE = H * (E + 1) * E };
    double qkv[T * 3 * W], y[T * W], want[T * W], state[STATE], begin[STATE];
    const int offsets[] = {0, T};
    const lin_segments all = segments_of(offsets, 1);
    test_fill_f64(qkv, T * 3 * W, 1, -2, 2);
    test_fill_f64(begin, STATE, 2, 0, 1);
    memcpy(state, begin, sizeof state);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < H; h++) {
            double *S = state + h * (E + 1) * E, *z = S + E * E, fq[E], fk[E], denominator = 1e-6;
            const double *q = qkv + t * 3 * W + h * E, *k = q + W, *v = k + W;
            for (int e = 0; e < E; e++) {
                fq[e] = q[e] > 0 ? q[e] + 1 : exp(q[e]);
                fk[e] = k[e] > 0 ? k[e] + 1 : exp(k[e]);
                z[e] += fk[e];
                for (int m = 0; m < E; m++) S[e * E + m] += fk[e] * v[m];
                denominator += fq[e] * z[e];
            }
            for (int m = 0; m < E; m++) {
                double sum = 0;
                for (int e = 0; e < E; e++) sum += fq[e] * S[e * E + m];
                want[t * W + h * E + m] = sum / denominator;
            }
        }
    double *whole[] = {begin};
    double pieces[STATE], *carry[] = {pieces};
    memcpy(pieces, begin, sizeof pieces);
    ops->attention_forward(exec, y, qkv, &all, H, E, 1, whole, 0);
    test_close_f64("y", y, want, T * W, 1e-13);
    test_close_f64("the state", begin, state, STATE, 1e-13);
    const int cuts[] = {0, 1, 1, 4, T};
    for (int i = 0; i < 4; i++) {
        const int piece_offsets[] = {0, cuts[i + 1] - cuts[i]};
        const lin_segments piece = segments_of(piece_offsets, 1);
        ops->attention_forward(exec, y + cuts[i] * W, qkv + cuts[i] * 3 * W, &piece, H, E, 1, carry, 0);
    }
    test_close_f64("y in pieces", y, want, T * W, 1e-13);
    test_close_f64("the state after pieces", pieces, state, STATE, 1e-13);
}
END_TEST

// The last frame sees the same keys in both forms.
START_TEST(last_frame_of_both_forms_agrees)
{
    enum { T = 6, W = 4 };
    const int offsets[] = {0, T};
    const lin_segments all = segments_of(offsets, 1);
    double qkv[T * 3 * W], causal[T * W], both[T * W];
    test_fill_f64(qkv, T * 3 * W, 3, -2, 2);
    ops->attention_forward(exec, causal, qkv, &all, 1, W, 1, NULL, 0);
    ops->attention_forward(exec, both, qkv, &all, 1, W, 0, NULL, 0);
    test_close_f64("last frame", causal + (T - 1) * W, both + (T - 1) * W, W, 1e-15);
    double apart = 0;
    for (int i = 0; i < W; i++) apart += fabs(causal[i] - both[i]);
    ck_assert(apart > 0.01);
}
END_TEST

START_TEST(log_softmax)
{
    const double x[] = {0, log(3), 1000, 1000 + log(3), -1e6, 0}, want[] = {log(0.25), log(0.75), log(0.25), log(0.75), -1e6, 0};
    double y[6];
    ops->log_softmax(exec, y, x, 3, 2);
    for (int i = 0; i < 6; i++) ck_assert(fabs(y[i] - want[i]) < 1e-12);
}
END_TEST

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
            ops->adam(exec, p, grad, m, v, &tensors, scale, &step, NULL);
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

// RAdam's first steps: momentum without the second moment.
START_TEST(adam_without_adaptation)
{
    const size_t offsets[] = {0, 2};
    const double scale[] = {1}, grad[] = {2, -4};
    const unsigned char decay[] = {0};
    const lin_tensors tensors = {1, offsets, decay};
    double p[] = {1, 1}, m[] = {1, 0}, v[] = {0, 0};
    lin_adam_step step = {.beta1 = 0.5, .beta2 = 0.75, .eps = 1, .weight_decay = 9, .lr = 9, .step_size = 0.1};
    ops->adam(exec, p, grad, m, v, &tensors, scale, &step, NULL);
    const double want_p[] = {1 - 0.15, 1 + 0.2}, want_m[] = {1.5, -2}, want_v[] = {1, 4};
    test_close_f64("p", p, want_p, 2, 1e-15);
    test_close_f64("m", m, want_m, 2, 1e-15);
    test_close_f64("v", v, want_v, 2, 1e-15);
}
END_TEST

START_TEST(sum_squares)
{
    const double x[] = {3, 4, 1, 2, 2};
    const size_t offsets[] = {0, 2, 2, 5};
    const lin_tensors tensors = {3, offsets, NULL};
    double norms[3];
    test_poison(norms, sizeof norms);
    ops->sum_squares(exec, norms, x, &tensors);
    ck_assert(norms[0] == 25 && norms[1] == 0 && norms[2] == 9);
}
END_TEST

START_TEST(clip)
{
    const double norms[] = {9, 0.25, 16}; // sums of squares: norms of 3, 0.5 and 4; of all together of sqrt(25.25)
    double scale[3];
    lin_tally tally = {.loss = 7, .steps = 3};
    ops->clip(exec, scale, &tally, norms, 3, 2, 1);
    ck_assert(scale[0] == 2.0 / 3 && scale[1] == 1 && scale[2] == 0.5);
    ck_assert(tally.norm == sqrt(25.25) && tally.steps == 4 && tally.loss == 7 && !tally.bad);
    ops->clip(exec, scale, &tally, norms, 3, 2, 0);
    for (int i = 0; i < 3; i++) ck_assert(scale[i] == 2 / sqrt(25.25));
    ops->clip(exec, scale, &tally, norms, 3, 0, 0);
    for (int i = 0; i < 3; i++) ck_assert(scale[i] == 1);
    ck_assert(tally.steps == 6);
    const double bad[] = {1, NAN, INFINITY};
    ops->clip(exec, scale, &tally, bad, 3, 2, 0);
    ck_assert(tally.bad == LIN_BAD_GRADIENT && tally.bad_index == 1 && tally.steps == 6);
}
END_TEST

START_TEST(tally_losses)
{
    const int offsets[] = {0, 5, 6, 9}, label_offsets[] = {0, 2, 4, 4}; // the second has two labels for one frame
    const lin_segments segments = segments_of(offsets, 3);
    const double loss[] = {1.5, -1, 2}, no_path[] = {-1, -1, 2};
    lin_tally tally = {.loss = 0.25, .steps = 3};
    ops->tally_losses(exec, &tally, loss, &segments, label_offsets);
    ck_assert(tally.loss == 3.75 && tally.steps == 3 && !tally.bad);
    ops->tally_losses(exec, &tally, no_path, &segments, label_offsets);
    ck_assert(tally.bad == LIN_BAD_LOSS && tally.bad_index == 0);
}
END_TEST

START_TEST(gather)
{
    // Two utterances of 2 and 1 frames, D = 2; the second is not there; a mask over frame 1, bin 0.
    const int offsets[] = {0, 2, 3};
    const lin_segments segments = segments_of(offsets, 2);
    const unsigned char codes[] = {0, 1, 2, 255};
    const float steps[] = {-1, 10, 0.5f, 2}, mean[] = {1, 20}, istd[] = {2, 0.5f};
    const lin_gather items[] = {{codes, steps, mean, istd, 1, 1, NULL, 0}, {NULL, NULL, NULL, NULL, 0, 0, NULL, 0}};
    const lin_mask masks[] = {{0, 2, 0, 2}, {1, 2, 0, 1}};
    const double want[] = {-4, -4, 0, 250, 0, 0};
    double x[6];
    ops->gather(exec, x, items, masks, &segments, 2);
    test_close_f64("x", x, want, 6, 1e-15);
}
END_TEST

// Powers 1, 2, 4 of one bin, in a room, with a voice of powers 8, 16 from its second frame on;
// the third frame is below the floor.
START_TEST(gather_with_acoustics)
{
    const int offsets[] = {0, 3};
    const lin_segments segments = segments_of(offsets, 1);
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
    ops->gather(exec, x, &item, NULL, &segments, 1);
    test_close_f64("in a room", x, want, 3, 1e-7);
    // no speech, no voice, nothing: the floor; then noise alone, of which only its distribution is random
    a.speech = 0;
    a.n_voices = 0;
    ops->gather(exec, x, &item, NULL, &segments, 1);
    for (int t = 0; t < 3; t++) ck_assert_double_eq_tol(x[t], 2 * (log((double)LIN_ACOUSTICS_FLOOR) - 1), 1e-7);
    bins[4] = 5; // a shape; without spread
    a.noise = 2;
    ops->gather(exec, x, &item, NULL, &segments, 1);
    for (int t = 0; t < 3; t++) ck_assert_double_eq_tol(x[t], 2 * (log(30) - 1), 1e-7);
}
END_TEST

// Features 0, 2, 6 of three bins, heard a quarter of a bin higher, at the last bin, and half a bin lower than it.
START_TEST(gather_at_other_frequencies)
{
    const int offsets[] = {0, 1};
    const lin_segments segments = segments_of(offsets, 1);
    const unsigned char codes[] = {0, 1, 3};
    const float steps[] = {0, 0, 0, 2, 2, 2}, mean[] = {0, 0, 0}, istd[] = {1, 1, 1};
    float bins[LIN_ACOUSTICS_ROWS * 3] = {1, 1, 1, [9] = 0.25f, 2, 1.5f};
    const lin_acoustics a = {.speech = 1, .hold = 1, .n_shapes = 1, .bins = bins};
    const lin_gather item = {codes, steps, mean, istd, 0, 0, &a, 0};
    const double want[] = {0.5, 6, 4};
    double x[3];
    ops->gather(exec, x, &item, NULL, &segments, 3);
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
        const lin_segments segments = segments_of(offsets, 1);
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
        ops->gather(exec, x, &item, NULL, &segments, 2);
        test_close_f64("x", x, want, (size_t)(2 * T), 1e-5); // the share is a float
        item.acoustics = &a;
        ops->gather(exec, x, &item, NULL, &segments, 2);
        test_close_f64("x with acoustics", x, want, (size_t)(2 * T), 1e-5);
    }
}
END_TEST

START_TEST(carry)
{
    // Two streams, the first with one row kept; it keeps two, the other, which has none, keeps its last.
    const int out_offsets[] = {0, 3, 5}, in_offsets[] = {0, 2, 4}, have[] = {1, 0}, keep[] = {2, 1};
    const lin_segments out = segments_of(out_offsets, 2), in = segments_of(in_offsets, 2);
    double a[] = {-1, 5, 0}, b[] = {-2, 0}, *tails[] = {a, b}, y[5];
    const double x[] = {6, 7, 8, 9}, want[] = {5, 6, 7, 8, 9};
    ops->carry(exec, y, &out, x, &in, tails, 1, have, keep, 1);
    test_close_f64("y", y, want, 5, 0);
    ck_assert(a[0] == -1 && a[1] == 6 && a[2] == 7 && b[0] == -2 && b[1] == 9);
}
END_TEST

// 1 1 0 2 | 2 0: the phones 1 and 2, each returned when its run has ended.
START_TEST(greedy)
{
    const double h = log(0.5), q = log(0.25), logp[] = {q, h, q, q, h, q, h, q, q, q, q, h, q, q, h, h, q, q};
    const int offsets[] = {0, 4}, rest[] = {0, 2}, slot[] = {1};
    const lin_segments first = segments_of(offsets, 1), second = segments_of(rest, 1);
    lin_run runs[2] = {{.label = 7}, {.label = -1}};
    lin_phone phones[4];
    int n;
    ops->greedy(exec, phones, &n, logp, &first, 3, runs, slot);
    ck_assert(n == 1 && phones[0].label == 1 && phones[0].start == 0 && phones[0].end == 2);
    ck_assert(fabs((double)phones[0].confidence - 0.5) < 1e-7);
    ops->greedy(exec, phones, &n, logp + 12, &second, 3, runs, slot);
    ck_assert(n == 1 && phones[0].label == 2 && phones[0].start == 3 && phones[0].end == 5);
    ck_assert(runs[1].label == 0 && runs[1].frame == 6 && runs[1].start == 5 && runs[0].label == 7 && runs[0].frame == 0);
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
    const lin_segments in = segments_of(in_offsets, 1), out = segments_of(out_offsets, 1);
    double *x = test_buffer(n, sizeof *x), *y = test_buffer(T * D, sizeof *y);
    for (size_t i = 0; i < n; i++) x[i] = (double)sound[i];
    ops->fbank(exec, y, &out, x, &in, &table);
    test_guards(y, "fbank");
    for (size_t i = 0; i < T * D; i++)
        test_require(fabs(y[i] - (double)golden[i]) < 1e-3, "frame %zu, bin %zu is %g, expected %g", i / D, i % D, y[i],
                     (double)golden[i]);
    lin_free(sound);
    lin_free(golden);
    test_buffer_free(mel);
    test_buffer_free(x);
    test_buffer_free(y);
}
END_TEST

START_TEST(zero_rows)
{
    const int offsets[] = {0, 0};
    const lin_segments none = segments_of(offsets, 1), nobody = {.offsets = offsets};
    const double w[] = {1}, scale = 1;
    const uint64_t key = 1;
    const lin_dropout d = {0.5, &key, 1, 0};
    double nothing[1] = {7}, loss[1] = {3};
    ops->linear_forward(exec, nothing, w, w, w, 0, 1, 1, LIN_RELU);
    ops->layer_norm_forward(exec, nothing, nothing, w, w, w, 0, 1);
    ops->add_dropout_norm_forward(exec, nothing, nothing, nothing, w, w, w, w, 0, 1, &d);
    ops->layer_norm_backward(exec, nothing, nothing, nothing, nothing, NULL, w, NULL, w, w, w, w, 0, 1, &d);
    ops->dropout(exec, nothing, w, 0, &d);
    ops->conv_forward(exec, nothing, w, w, w, &none, 1, 1, 0, NULL, 0);
    ops->attention_forward(exec, nothing, w, &none, 1, 1, 0, NULL, 0);
    ops->attention_backward(exec, nothing, w, w, w, &none, 1, 1, 1);
    ops->log_softmax(exec, nothing, w, 0, 1);
    ck_assert(nothing[0] == 7);
    ops->ctc(exec, loss, nothing, w, &nobody, NULL, offsets, 0, 1, &scale);
    ck_assert(loss[0] == 3);
    ops->ctc(exec, loss, nothing, w, &none, NULL, offsets, 0, 1, &scale);
    ck_assert(loss[0] == 0 && nothing[0] == 7);
}
END_TEST

TEST_MAIN_WITH(setup, teardown, "ops", TEST(linear), TEST(layer_norm), TEST(stack_frames), TEST(sinusoid), TEST(conv),
               TEST(attention_is_a_recurrence), TEST(last_frame_of_both_forms_agrees), TEST(log_softmax), TEST(adam),
               TEST(adam_without_adaptation), TEST(sum_squares), TEST(clip), TEST(tally_losses), TEST(gather),
               TEST(gather_with_acoustics), TEST(gather_at_other_frequencies),
               TEST(gather_at_another_rate), TEST(carry), TEST(greedy), TEST(fbank),
               TEST(zero_rows))
