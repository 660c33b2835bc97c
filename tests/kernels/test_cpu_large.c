// The CPU backend with more data than its scratch holds: CTC whose alphas are recomputed from checkpoints, in a block of its own
// or, if there is no memory, in the scratch. On every instruction set of this machine.
#include "base/memory.h"
#include "tests/kernels/kernel_support.h"

static const lin_ops *ops;
static lin_exec *exec;

// 0 if this machine lacks the instruction set.
static int begin(int isa)
{
    if (!choose_isa(isa)) return 0;
    ops = lin_ops_cpu();
    ck_assert_int_eq(ops->exec_create(ops, 1, &exec, NULL), LIN_OK);
    ref_begin();
    return 1;
}

static void end(void)
{
    ops->exec_destroy(exec);
    ref_end();
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
        double want_loss, *wide = test_widened(logp, n), *want = test_buffer(n, sizeof *want);
        ref->ctc(ref_exec, &want_loss, want, wide, &segments, labels, label_offsets, U, V, &one);
        ck_assert_msg(fabs(loss - want_loss) < 1e-6 * want_loss, "%d frames, %d labels: loss %.9g, expected %.9g", T, U, loss,
                      want_loss);
        for (size_t i = 0; i < n; i++)
            test_require(fabs((double)gradient[i] - want[i]) < 2e-5, "%d frames, %d labels: gradient %zu is %g, expected %g", T,
                         U, i, (double)gradient[i], want[i]);
        TEST_FREE(wide, want);
    }
    for (int t = 0; t < T; t++) {
        double sum = 0;
        for (int v = 0; v < V; v++) sum += (double)gradient[(size_t)t * (size_t)V + (size_t)v];
        test_require(fabs(sum) < 5e-5, "%d frames, %d labels: the gradient of frame %d sums to %g", T, U, t, sum);
    }
    TEST_FREE(logp, gradient, labels);
}

START_TEST(ctc_from_checkpoints)
{
    if (!begin(_i)) return;
    ctc_case(900, 120, 20, 1);   // one level of checkpoints
    ctc_case(1300, 40, 5, 1);
    ctc_case(2600, 2000, 9, 0);  // rows so long that the stretches between checkpoints are cut again
    ctc_case(3950, 3600, 40, 0); // down to stretches without a row to spare
    end();
}
END_TEST

// More labels than the scratch has room for: ten minutes of speech in one utterance. Without memory they are reported like labels
// without a path.
START_TEST(many_labels)
{
    if (!begin(_i)) return;
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
    TEST_FREE(logp, gradient, labels);
    end();
}
END_TEST

TEST_MAIN("cpu_large", TESTS(ctc_from_checkpoints, 0, N_ISAS), TESTS(many_labels, 0, N_ISAS))
