// The CPU backend with more data than its scratch holds: CTC whose alphas are recomputed from checkpoints, in a block of its own
// or, if there is no memory, in the scratch, and attention heads so wide that the state is processed in panels. On every
// instruction set of this machine.
#include "base/memory.h"
#include "kernels/ops.h"
#include "tests/kernels/ref/reference.h"
#include "tests/support.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};

static const lin_ops *ops;
static const lin_ops_f64 *ref;
static lin_exec *exec, *ref_exec;

// 0 if this machine lacks the instruction set.
static int open_backends(const char *isa)
{
    lin_error err = {0};
    lin_status status = lin_cpu_select(isa, &err);
    if (status == LIN_UNSUPPORTED && strcmp(isa, "portable") != 0) return 0;
    ck_assert_msg(status == LIN_OK, "%s", err.message);
    ops = lin_ops_cpu();
    ref = lin_ops_ref();
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, &err), LIN_OK);
    ck_assert_int_eq(ref->exec_create(ref, 1, &ref_exec, &err), LIN_OK);
    return 1;
}

static void close_backends(void)
{
    ops->exec_destroy(exec);
    ref->exec_destroy(ref_exec);
}

static double *widen(const float *x, size_t n)
{
    double *wide = test_buffer(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = (double)x[i];
    return wide;
}

/* One utterance of random log-probabilities. The whole gradient is compared with ref/, or, if that takes too long, the sum of
 * each row is checked: the shares of the paths add up to 1 only if alpha and beta of the frame match. */
static void ctc_case(int T, int U, int V, int with_ref)
{
    size_t n = (size_t)T * (size_t)V;
    float *logp = test_buffer(n, sizeof *logp), *gradient = test_buffer(n, sizeof *gradient);
    int *labels = test_buffer((size_t)U, sizeof *labels), offsets[2] = {0, T}, label_offsets[2] = {0, U};
    const lin_segments segments = {1, T, T, offsets};
    const double one = 1;
    double loss, alone;
    test_fill_f32(logp, n, 11, -3, 3);
    ops->log_softmax(exec, logp, logp, T, V);
    for (int u = 0; u < U; u++)
        labels[u] = u % 14 == 7 ? labels[u - 1] : 1 + (int)lin_random_below(12, (uint64_t)u, (uint32_t)V - 1);
    ops->ctc(exec, &loss, gradient, logp, &segments, labels, label_offsets, U, V, &one);
    ops->ctc(exec, &alone, NULL, logp, &segments, labels, label_offsets, U, V, &one);
    test_guards(gradient, "ctc");
    // without memory for a block of its own: slower, the same bits
    float *again = test_buffer(n, sizeof *again);
    double loss_again;
    lin_memory_fail_at(1);
    ops->ctc(exec, &loss_again, again, logp, &segments, labels, label_offsets, U, V, &one);
    lin_memory_fail_at(0);
    ck_assert(loss_again == loss);
    test_same_f32("without memory", again, gradient, n);
    test_buffer_free(again);
    ck_assert_msg(loss > 0 && loss == alone, "%d frames, %d labels: loss %.17g, alone %.17g", T, U, loss, alone);
    if (with_ref) {
        double want_loss, *wide = widen(logp, n), *want = test_buffer(n, sizeof *want);
        ref->ctc(ref_exec, &want_loss, want, wide, &segments, labels, label_offsets, U, V, &one);
        ck_assert_msg(fabs(loss - want_loss) < 1e-6 * want_loss, "%d frames, %d labels: loss %.9g, expected %.9g", T, U, loss,
                      want_loss);
        for (size_t i = 0; i < n; i++)
            test_require(fabs((double)gradient[i] - want[i]) < 2e-5, "%d frames, %d labels: gradient %zu is %g, expected %g", T,
                         U, i, (double)gradient[i], want[i]);
        test_buffer_free(wide);
        test_buffer_free(want);
    }
    for (int t = 0; t < T; t++) {
        double sum = 0;
        for (int v = 0; v < V; v++) sum += (double)gradient[(size_t)t * (size_t)V + (size_t)v];
        test_require(fabs(sum) < 5e-5, "%d frames, %d labels: the gradient of frame %d sums to %g", T, U, t, sum);
    }
    test_buffer_free(logp);
    test_buffer_free(gradient);
    test_buffer_free(labels);
}

START_TEST(ctc_from_checkpoints)
{
    if (!open_backends(isas[_i])) return;
    ctc_case(900, 120, 20, 1);   // one level of checkpoints
    ctc_case(1300, 40, 5, 1);
    ctc_case(2600, 2000, 9, 0);  // rows so long that the stretches between checkpoints are cut again
    ctc_case(3950, 3600, 40, 0); // down to stretches without a row to spare
    close_backends();
}
END_TEST

// More labels than the scratch has room for: ten minutes of speech in one utterance. Without memory they are reported like labels
// without a path.
START_TEST(many_labels)
{
    if (!open_backends(isas[_i])) return;
    enum { T = 9100, U = 9000, V = 3 };
    float *logp = test_buffer(T * V, sizeof *logp), *gradient = test_buffer(T * V, sizeof *gradient);
    int *labels = test_buffer(U, sizeof *labels), offsets[2] = {0, T}, label_offsets[2] = {0, U};
    const lin_segments segments = {1, T, T, offsets};
    const double one = 1;
    double loss;
    for (int i = 0; i < T * V; i++) logp[i] = -1.0986123f;
    for (int u = 0; u < U; u++) labels[u] = 1 + u % 2;
    ops->ctc(exec, &loss, gradient, logp, &segments, labels, label_offsets, U, V, &one);
    // every path has the same probability, and the paths choose 2 U of T + U places: Graves 2006, the collapsed form
    const double paths = lgamma(T + U + 1.0) - lgamma(2.0 * U + 1) - lgamma(T - U + 1.0);
    ck_assert_msg(fabs(loss - (1.0986123 * T - paths)) < 1e-3, "loss %.9g, wanted %.9g", loss, 1.0986123 * T - paths);
    for (int t = 0; t < T; t++) {
        const float *row = gradient + t * V;
        test_require(fabsf(row[0] + row[1] + row[2]) < 5e-5F, "the gradient of frame %d sums to %g", t,
                     (double)(row[0] + row[1] + row[2]));
    }
    lin_memory_fail_at(1);
    ops->ctc(exec, &loss, gradient, logp, &segments, labels, label_offsets, U, V, &one);
    lin_memory_fail_at(0);
    ck_assert(loss == -1);
    for (int i = 0; i < T * V; i++) test_require(gradient[i] == 0, "gradient %d is %g", i, (double)gradient[i]);
    test_buffer_free(logp);
    test_buffer_free(gradient);
    test_buffer_free(labels);
    close_backends();
}
END_TEST

static void attention_case(int T, int E, int causal)
{
    enum { H = 2 };
    const int offsets[3] = {0, T / 3, T};
    const lin_segments segments = {2, T, T, offsets};
    size_t n = (size_t)T * H * (size_t)E;
    float *qkv = test_buffer(3 * n, sizeof *qkv), *y = test_buffer(n, sizeof *y), *dy = test_buffer(n, sizeof *dy);
    float *dqkv = test_buffer(3 * n, sizeof *dqkv), *parts = test_buffer(n, sizeof *parts);
    test_fill_f32(qkv, 3 * n, 21, -2, 2);
    test_fill_f32(dy, n, 22, -1, 1);
    ops->attention_forward(exec, y, qkv, &segments, H, E, causal, NULL, 0);
    ops->attention_backward(exec, dqkv, dy, qkv, y, &segments, H, E, causal);
    double *qkv_d = widen(qkv, 3 * n), *dy_d = widen(dy, n);
    double *y_d = test_buffer(n, sizeof *y_d), *dqkv_d = test_buffer(3 * n, sizeof *dqkv_d);
    ref->attention_forward(ref_exec, y_d, qkv_d, &segments, H, E, causal, NULL, 0);
    ref->attention_backward(ref_exec, dqkv_d, dy_d, qkv_d, y_d, &segments, H, E, causal);
    test_guards(y, "attention_forward");
    test_guards(dqkv, "attention_backward");
    for (size_t i = 0; i < n; i++)
        test_require(fabs((double)y[i] - y_d[i]) < 5e-6, "E %d, causal %d: y %zu is %g, expected %g", E, causal, i, (double)y[i],
                     y_d[i]);
    for (size_t i = 0; i < 3 * n; i++)
        test_require(fabs((double)dqkv[i] - dqkv_d[i]) < 5e-6, "E %d, causal %d: dqkv %zu is %g, expected %g", E, causal, i,
                     (double)dqkv[i], dqkv_d[i]);
    if (causal) { // the second utterance once more, in parts that pass the state on
        float *state = test_buffer(H * (size_t)(E + 1) * (size_t)E, sizeof *state), *states[1] = {state};
        memset(state, 0, H * (size_t)(E + 1) * (size_t)E * sizeof *state);
        for (int at = offsets[1], rows = 1; at < T; at += rows, rows = rows % 4 + 1) {
            if (rows > T - at) rows = T - at;
            const int ends[2] = {0, rows};
            const lin_segments piece = {1, rows, rows, ends};
            size_t first = (size_t)at * H * (size_t)E;
            ops->attention_forward(exec, parts + first, qkv + 3 * first, &piece, H, E, 1, states, 0);
        }
        size_t first = (size_t)offsets[1] * H * (size_t)E;
        test_same_f32("attention in pieces", parts + first, y + first, n - first);
        test_guards(state, "attention_forward");
        test_buffer_free(state);
    }
    void *buffers[] = {qkv, y, dy, dqkv, parts, qkv_d, dy_d, y_d, dqkv_d};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) test_buffer_free(buffers[i]);
}

START_TEST(attention_in_panels)
{
    if (!open_backends(isas[_i])) return;
    for (int causal = 0; causal < 2; causal++) {
        attention_case(25, 192, causal);
        attention_case(21, 301, causal);
        attention_case(7, 1100, causal);
        attention_case(3, 2048, causal);
    }
    close_backends();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_large");
    TCase *tests = tcase_create("large");
    int n = (int)(sizeof isas / sizeof *isas);
    tcase_set_timeout(tests, 300); // sanitizers are slow
    tcase_add_loop_test(tests, ctc_from_checkpoints, 0, n);
    tcase_add_loop_test(tests, many_labels, 0, n);
    tcase_add_loop_test(tests, attention_in_panels, 0, n);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
