// The judge judged: operations of ref/ on numbers worked out by hand, or against the formula of the paper in its other form
// (attention as a recurrence, Adam as in Kingma & Ba's algorithm 1).
#include "kernels/ops.h"
#include "tests/support.h"

static const lin_ops_f64 *ops;
static lin_exec *exec;

static void setup(void)
{
    ops = lin_ops_ref();
    ck_assert_str_eq(ops->name, "ref");
    ck_assert_int_eq(ops->exec_create(1, &exec, NULL), LIN_OK);
}

static void teardown(void) { ops->exec_destroy(exec); }

START_TEST(linear)
{
    const double x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 0, -1, 2, 1, 0}, bias[] = {0.5, -10}; // 2 rows, n 2, k 3
    const double want[] = {-1.5, -6, -1.5, -12}, want_bare[] = {-2, 4, -2, -2}, want_relu[] = {0, 4, 0, 0}, zero[2] = {0};
    double packed[6], y[4];
    ck_assert_uint_eq(ops->weight_size(2, 3), 6);
    ops->weight_pack(exec, packed, w, 2, 3);
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
    const int in[] = {0, 3, 4}, out[] = {0, 2, 3};
    double y[9];
    ops->stack_frames(exec, y, x, mean, istd, in, out, 2, 1, 2, 1);
    test_close_f64("y", y, want, 9, 0);
}
END_TEST

START_TEST(sinusoid)
{
    const int offsets[] = {0, 2, 3};
    double x[15] = {0};
    const double a = pow(10000, -2.0 / 5); // C = 5: the second pair turns this far per frame, the fifth channel has no partner
    const double want[15] = {0, 1, 0, 1, 0, sin(1), cos(1), sin(a), cos(a), 0, 0, 1, 0, 1, 0};
    ops->add_sinusoid(exec, x, offsets, 2, 5);
    test_close_f64("x", x, want, 15, 1e-15);
}
END_TEST

START_TEST(conv)
{
    // One channel, K = 3: y[t] = x[t] + 100 + 1 x[t-2] + 2 x[t-1] + 3 x[t].
    const double x[] = {1, 2, 3, 4}, w[] = {1, 2, 3}, bias[] = {100}, want[] = {104, 110, 117, 124};
    const double want_tail[] = {104 + 7 + 2 * 9, 110 + 9, 117, 124};
    const int offsets[] = {0, 4}, first[] = {0, 1};
    double y[4], tail[] = {7, 9}, *tails[] = {tail}, grow[] = {7, 9}, *grown[] = {grow};
    ops->conv_forward(exec, y, x, w, bias, offsets, 1, 1, 3, NULL);
    test_close_f64("y", y, want, 4, 1e-15);
    ops->conv_forward(exec, y, x, w, bias, offsets, 1, 1, 3, tails);
    test_close_f64("y after a tail", y, want_tail, 4, 1e-15);
    ck_assert(tail[0] == 3 && tail[1] == 4);
    for (int t = 0; t < 4; t++) ops->conv_forward(exec, y + t, x + t, w, bias, first, 1, 1, 3, grown);
    test_close_f64("y frame by frame", y, want_tail, 4, 1e-15);
    ck_assert(grow[0] == 3 && grow[1] == 4);
}
END_TEST

// Eq. 16-20: the explicit sums against the recurrence over S and z, and the state it leaves.
START_TEST(attention_is_a_recurrence)
{
    enum { T = 9, H = 2, E = 3, W = H * E, STATE = H * (E + 1) * E };
    double qkv[T * 3 * W], y[T * W], want[T * W], state[STATE], begin[STATE];
    const int offsets[] = {0, T};
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
    ops->attention_forward(exec, y, qkv, offsets, 1, H, E, 1, whole);
    test_close_f64("y", y, want, T * W, 1e-13);
    test_close_f64("the state", begin, state, STATE, 1e-13);
    const int cuts[] = {0, 1, 1, 4, T};
    for (int i = 0; i < 4; i++) {
        const int piece[] = {0, cuts[i + 1] - cuts[i]};
        ops->attention_forward(exec, y + cuts[i] * W, qkv + cuts[i] * 3 * W, piece, 1, H, E, 1, carry);
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
    double qkv[T * 3 * W], causal[T * W], both[T * W];
    test_fill_f64(qkv, T * 3 * W, 3, -2, 2);
    ops->attention_forward(exec, causal, qkv, offsets, 1, 1, W, 1, NULL);
    ops->attention_forward(exec, both, qkv, offsets, 1, 1, W, 0, NULL);
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

// Kingma & Ba 2015, algorithm 1, with its own bias corrections; L2 decay in the gradient, or decoupled (Loshchilov & Hutter 2019).
START_TEST(adam)
{
    enum { N = 5, STEPS = 6 };
    const double lr = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-6, decay_rate = 0.1;
    const size_t offsets[] = {0, 2, N};
    const double scale[] = {1, 0.5};
    const unsigned char decay[] = {1, 0};
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        double p[N], m[N] = {0}, v[N] = {0}, want[N], first[N] = {0}, second[N] = {0}, grad[N];
        test_fill_f64(p, N, 4, -1, 1);
        memcpy(want, p, sizeof want);
        for (int t = 1; t <= STEPS; t++) {
            test_fill_f64(grad, N, 10 + (uint64_t)t, -1, 1);
            lin_adam_step step = {.beta1 = b1, .beta2 = b2, .eps = eps, .weight_decay = decay_rate, .lr = lr,
                                  .step_size = lr / (1 - pow(b1, t)), .v_scale = 1 / sqrt(1 - pow(b2, t)),
                                  .adaptive = 1, .decoupled = decoupled};
            ops->adam(exec, p, grad, m, v, offsets, scale, decay, 2, &step);
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
    double p[] = {1, 1}, m[] = {1, 0}, v[] = {0, 0};
    lin_adam_step step = {.beta1 = 0.5, .beta2 = 0.75, .eps = 1, .weight_decay = 9, .lr = 9, .step_size = 0.1};
    ops->adam(exec, p, grad, m, v, offsets, scale, decay, 1, &step);
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
    double norms[3];
    test_poison(norms, sizeof norms);
    ops->sum_squares(exec, norms, x, offsets, 3);
    ck_assert(norms[0] == 25 && norms[1] == 0 && norms[2] == 9);
}
END_TEST

START_TEST(zero_rows)
{
    const int offsets[] = {0, 0};
    double nothing[1] = {7}, w[] = {1}, loss[1] = {3};
    ops->linear_forward(exec, nothing, w, w, w, 0, 1, 1, LIN_RELU);
    ops->layer_norm_forward(exec, nothing, nothing, w, w, w, 0, 1);
    ops->add(exec, nothing, w, 0);
    ops->dropout(exec, nothing, w, 0, 0.5, 1);
    ops->conv_forward(exec, nothing, w, w, w, offsets, 1, 1, 1, NULL);
    ops->attention_forward(exec, nothing, w, offsets, 1, 1, 1, 0, NULL);
    ops->attention_backward(exec, nothing, w, w, w, offsets, 1, 1, 1, 1);
    ops->log_softmax(exec, nothing, w, 0, 1);
    ck_assert(nothing[0] == 7);
    ops->ctc(exec, loss, nothing, w, offsets, NULL, offsets, 0, 1, 1);
    ck_assert(loss[0] == 3);
    ops->ctc(exec, loss, nothing, w, offsets, NULL, offsets, 1, 1, 1);
    ck_assert(loss[0] == 0 && nothing[0] == 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ops");
    TCase *tests = tcase_create("ref");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, linear);
    tcase_add_test(tests, layer_norm);
    tcase_add_test(tests, stack_frames);
    tcase_add_test(tests, sinusoid);
    tcase_add_test(tests, conv);
    tcase_add_test(tests, attention_is_a_recurrence);
    tcase_add_test(tests, last_frame_of_both_forms_agrees);
    tcase_add_test(tests, log_softmax);
    tcase_add_test(tests, adam);
    tcase_add_test(tests, adam_without_adaptation);
    tcase_add_test(tests, sum_squares);
    tcase_add_test(tests, zero_rows);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
