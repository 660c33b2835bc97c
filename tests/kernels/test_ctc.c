// CTC of ref/ against the explicit sum over all paths: every one of the V^T label sequences is collapsed and compared.
#include "tests/kernels/kernel_support.h"

enum { MAX_T = 5, MAX_V = 3, MAX_U = 6 };

// The whole batch of B utterances.
static void ctc_of(double *loss, double *dlogits, const double *logp, const int *offsets, const int *labels,
                   const int *label_offsets, int B, int V, double scale)
{
    const lin_segments segments = {.B = B, .rows = offsets[B], .longest = offsets[B], .offsets = offsets};
    ref->ctc(ref_exec, loss, dlogits, logp, &segments, labels, label_offsets, label_offsets[B], V, &scale);
}

// Removes repeats, then blanks (Graves 2006, the map B). Returns the number of labels.
static int collapse(int *out, const int *path, int T)
{
    int n = 0;
    for (int t = 0; t < T; t++)
        if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) out[n++] = path[t];
    return n;
}

// p(labels) and, for every frame and symbol, the probability of the matching paths that pass there.
static double brute_force(double *through, const double *logp, int T, int V, const int *labels, int U)
{
    double total = 0;
    long n_paths = 1;
    for (int t = 0; t < T; t++) n_paths *= V;
    for (int i = 0; i < T * V; i++) through[i] = 0;
    for (long number = 0; number < n_paths; number++) {
        int path[MAX_T], said[MAX_T];
        long rest = number;
        double p = 1;
        for (int t = 0; t < T; t++) {
            path[t] = (int)(rest % V);
            rest /= V;
            p *= exp(logp[t * V + path[t]]);
        }
        if (collapse(said, path, T) != U) continue;
        int same = 1;
        for (int u = 0; u < U; u++) same &= said[u] == labels[u];
        if (!same) continue;
        total += p;
        for (int t = 0; t < T; t++) through[t * V + path[t]] += p;
    }
    return total;
}

static int needs_frames(const int *labels, int U)
{
    int n = U;
    for (int u = 1; u < U; u++) n += labels[u] == labels[u - 1];
    return n;
}

static void check_one(int T, int V, const int *labels, int U, uint64_t key, double spread)
{
    double logits[MAX_T * MAX_V], logp[MAX_T * MAX_V], through[MAX_T * MAX_V], dlogits[MAX_T * MAX_V], loss = NAN;
    const int offsets[] = {0, T}, label_offsets[] = {0, U};
    test_fill_f64(logits, (size_t)(T * V), key, -spread, spread);
    test_poison(dlogits, sizeof dlogits);
    ref->log_softmax(ref_exec, logp, logits, T, V);
    for (int t = 0; t < T; t++) {
        double sum = 0;
        for (int v = 0; v < V; v++) sum += exp(logp[t * V + v]);
        ck_assert(fabs(sum - 1) < 1e-14);
    }
    ctc_of(&loss, dlogits, logp, offsets, labels, label_offsets, 1, V, 2.5);
    double total = brute_force(through, logp, T, V, labels, U);
    int feasible = T >= needs_frames(labels, U);
    ck_assert_int_eq(feasible, total > 0);
    if (!feasible) {
        ck_assert(loss == -1);
        for (int i = 0; i < T * V; i++) ck_assert(dlogits[i] == 0);
    } else {
        test_require(fabs(loss + log(total)) <= 1e-12 * (1 + fabs(loss)), "T %d V %d U %d: loss %.15g, expected %.15g", T, V, U,
                     loss, -log(total));
        for (int i = 0; i < T * V; i++) {
            double want = 2.5 * (exp(logp[i]) - through[i] / total);
            test_require(fabs(dlogits[i] - want) < 1e-12, "T %d V %d U %d: gradient %d is %.15g, expected %.15g", T, V, U, i,
                         dlogits[i], want);
        }
    }
    double alone = NAN;
    ctc_of(&alone, NULL, logp, offsets, labels, label_offsets, 1, V, 2.5);
    ck_assert(alone == loss);
}

// Every label sequence up to length T + 1, so also those without a path, for all small T and V.
START_TEST(every_short_sequence)
{
    for (int V = 2; V <= 3; V++)
        for (int T = 1; T <= 5; T++)
            for (int U = 0; U <= T + 1; U++) {
                int n = 1;
                for (int u = 0; u < U; u++) n *= V - 1;
                for (int number = 0; number < n; number++) {
                    int labels[MAX_U], rest = number;
                    for (int u = 0; u < U; u++) {
                        labels[u] = 1 + rest % (V - 1);
                        rest /= V - 1;
                    }
                    check_one(T, V, labels, U, (uint64_t)(T * 1000 + number), 2);
                }
            }
}
END_TEST

// Probabilities of 0 and of e^-10000: no result may be infinite or NaN.
START_TEST(extremes)
{
    const int offsets[] = {0, 4}, labels[] = {1, 2}, label_offsets[] = {0, 2};
    double logp[12], dlogits[12], loss;
    for (int i = 0; i < 12; i++) logp[i] = i % 3 == 0 ? 0 : -1e4;
    ctc_of(&loss, dlogits, logp, offsets, labels, label_offsets, 1, 3, 1);
    ck_assert(fabs(loss - 2e4) < 10);
    for (int i = 0; i < 12; i++) ck_assert(isfinite(dlogits[i]));
    for (int i = 0; i < 12; i++) logp[i] = i % 3 == 0 ? 0 : -INFINITY; // the labels are impossible: like no path
    ctc_of(&loss, dlogits, logp, offsets, labels, label_offsets, 1, 3, 1);
    ck_assert(loss == -1);
    for (int i = 0; i < 12; i++) ck_assert(dlogits[i] == 0);
    for (int i = 0; i < 12; i++) logp[i] = -INFINITY; // one path only, with probability 1
    logp[0 * 3 + 1] = logp[1 * 3 + 0] = logp[2 * 3 + 2] = logp[3 * 3 + 2] = 0;
    ctc_of(&loss, dlogits, logp, offsets, labels, label_offsets, 1, 3, 1);
    ck_assert(loss == 0);
    for (int i = 0; i < 12; i++) ck_assert(dlogits[i] == 0);
    logp[4] = NAN; // a NaN is passed on, so that training stops
    ctc_of(&loss, dlogits, logp, offsets, labels, label_offsets, 1, 3, 1);
    ck_assert(isnan(loss));
}
END_TEST

TEST_MAIN_WITH(ref_begin, ref_end, "ctc", TEST(every_short_sequence), TEST(extremes))
