// align/goodness.c: against the sum over all sequences of labels, planted mispronunciations, hostile paths and rows.
#include "align/goodness.h"

#include "align/align.h"
#include "tests/lexicon/support.h"

enum { V = 6, T_MAX = 4000 };

static float logp[T_MAX * V];

// The sum over all alignments of the rest of `want` with the rows from t on, after a row of `last`; `ends`: the last is no blank.
static double walk(int64_t t, int64_t to, const int *want, int n, int last, int ends)
{
    if (t == to) return n == 0 && !(ends && last == 0);
    const float *y = logp + t * V;
    double sum = exp((double)y[0]) * walk(t + 1, to, want, n, 0, ends);
    if (last) sum += exp((double)y[last]) * walk(t + 1, to, want, n, last, ends);
    if (n && want[0] != last) sum += exp((double)y[want[0]]) * walk(t + 1, to, want + 1, n - 1, want[0], ends);
    return sum;
}

// P(rows from .. to-1 | before, q, after); a neighbour that is not 0 has the first or the last row.
static double probability(int64_t from, int64_t to, int before, int q, int after)
{
    int want[2], n = 0;
    if (q) want[n++] = q;
    if (after) want[n++] = after;
    if (!before) return walk(from, to, want, n, 0, after);
    return exp((double)logp[from * V + before]) * walk(from + 1, to, want, n, before, after);
}

START_TEST(against_all_alignments_with_the_neighbours)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        // Three phones, runs and gaps of random lengths, also none.
        lin_path_phone phones[3];
        lin_goodness goodness[3];
        int64_t t = lin_random_below(seed, 900, 4);
        for (int i = 0; i < 3; i++) {
            phones[i].label = 1 + (int)lin_random_below(seed, 901 + (uint64_t)i, V - 1);
            phones[i].start = t;
            t += 1 + lin_random_below(seed, 910 + (uint64_t)i, 3);
            phones[i].end = t;
            t += lin_random_below(seed, 920 + (uint64_t)i, 5);
            // Equal neighbours have a blank between them.
            if (i && phones[i].label == phones[i - 1].label && phones[i].start == phones[i - 1].end)
                phones[i].label = phones[i].label % (V - 1) + 1;
        }
        const int T = (int)t, margin = (int)lin_random_below(seed, 930, 5);
        random_rows(logp, T, V, seed, 5);
        const lin_path path = {.phones = phones, .n_phones = 3};
        OK(lin_goodness_measure(logp, V, T, &path, margin, goodness, &err));
        for (int i = 0; i < 3; i++) {
            const lin_path_phone *p = &phones[i];
            const int64_t begin = i ? p[-1].end : 0, end = i < 2 ? p[1].start : T;
            const int before = i && p->start - begin <= margin ? p[-1].label : 0;
            const int after = i < 2 && end - p->end <= margin ? p[1].label : 0;
            const int64_t from = before ? p[-1].start : p->start - margin > begin ? p->start - margin : begin;
            const int64_t to = after ? p[1].end : p->end + margin < end ? p->end + margin : end;
            double all = 0, own = 0, most = 0;
            int heard = 0;
            for (int q = 0; q < V; q++) {
                const double one = probability(from, to, before, q, after);
                all += one;
                if (q == p->label) own = one;
                if (one > most) most = one, heard = q;
            }
            test_require(fabs((double)goodness[i].score - log(own / all)) < 1e-5, "phone %d has %g, not %g", i,
                         (double)goodness[i].score, log(own / all));
            ck_assert_int_eq(goodness[i].heard, heard);
        }
    }
}
END_TEST

// Rows that contain the phones of `said`, each in two rows with blanks between, aligned to `text`.
static void judge(const char *said, const char *text, lin_goodness *goodness, lin_path *path)
{
    const int n = (int)strlen(said), T = 4 * n;
    for (int t = 0; t < T; t++) {
        const int label = t % 4 == 1 || t % 4 == 2 ? said[t / 4] - '0' : 0;
        for (int v = 0; v < V; v++) logp[t * V + v] = (float)log(v == label ? 0.9 : 0.1 / (V - 1));
    }
    static lin_align_graph one;
    lin_align_graph *graph = &one;
    lin_align_report report;
    const lin_align_options o = lin_align_options_default();
    OK(lin_align_graph_begin(graph, V, &err));
    for (const char *c = text; *c; c++) {
        const int label = *c - '0';
        OK(lin_align_graph_add(graph, &(lin_align_pronunciation){.labels = &label, .n = 1}, 1, 0, &err));
    }
    OK(lin_align_text(graph, &o, logp, T, path, &report, &err));
    const unsigned long allocations = lin_memory_count();
    OK(lin_goodness_measure(logp, V, T, path, 8, goodness, &err));
    ck_assert_uint_eq(lin_memory_count(), allocations);
    lin_align_graph_free(graph);
}

START_TEST(what_was_said_otherwise_is_found)
{
    static const char text[] = "1232145";
    lin_path path = {0};
    lin_goodness goodness[8];
    judge(text, text, goodness, &path);
    for (int i = 0; i < 7; i++) {
        ck_assert_msg((double)goodness[i].score > -0.2 && goodness[i].heard == text[i] - '0', "phone %d: %g, heard %d", i,
                      (double)goodness[i].score, goodness[i].heard);
    }
    // Another phone in its place, at every place.
    for (int i = 0; i < 7; i++) {
        char said[8];
        memcpy(said, text, sizeof said);
        said[i] = (char)('1' + (said[i] - '0') % 5);
        judge(said, text, goodness, &path);
        for (int k = 0; k < 7; k++) {
            const double score = (double)goodness[k].score;
            ck_assert_msg(k == i ? score < -6 : score > -0.2, "'%s' for '%s': phone %d has %g", said, text, k, score);
            ck_assert_int_eq(goodness[k].heard, said[k] - '0');
        }
    }
    // Nothing in its place.
    judge("123145", "1232145", goodness, &path);
    ck_assert_msg((double)goodness[3].score < -2 && goodness[3].heard == 0, "%g, heard %d", (double)goodness[3].score,
                  goodness[3].heard);
    lin_path_free(&path);
}
END_TEST

START_TEST(long_runs_and_impossible_labels)
{
    // A run of thousands of rows in which nothing is probable: sums would underflow without scaling.
    lin_goodness goodness[1];
    lin_path_phone phone = {.label = 2, .start = 10, .end = T_MAX - 10};
    const lin_path path = {.phones = &phone, .n_phones = 1};
    for (int i = 0; i < T_MAX * V; i++) logp[i] = (i / V) % 2 ? -30 : -20;
    OK(lin_goodness_measure(logp, V, T_MAX, &path, 3, goodness, &err));
    ck_assert_msg(fabs((double)goodness[0].score - log(1.0 / (V - 1))) < 1e-3, "%g", (double)goodness[0].score);
    for (int t = 0; t < T_MAX; t++) logp[t * V + (t % 2 ? 0 : 2)] = -1; // blank and the phone alternate
    OK(lin_goodness_measure(logp, V, T_MAX, &path, 3, goodness, &err));
    ck_assert(isfinite(goodness[0].score) && goodness[0].score <= 0);
    // Labels with a probability of 0.
    for (int t = 0; t < T_MAX; t++) {
        for (int v = 0; v < V; v++) logp[t * V + v] = v == 2 ? 0 : -INFINITY;
    }
    OK(lin_goodness_measure(logp, V, T_MAX, &path, 3, goodness, &err));
    ck_assert(goodness[0].score == 0 && goodness[0].heard == 2);
    for (int t = 0; t < T_MAX; t++) logp[t * V + 2] = -INFINITY, logp[t * V + 4] = 0;
    OK(lin_goodness_measure(logp, V, T_MAX, &path, 3, goodness, &err));
    ck_assert(goodness[0].score == -INFINITY && goodness[0].heard == 4);
    // Rows that clearly are the next neighbour: the others could be there, with almost no probability.
    lin_path_phone three[3];
    for (int i = 0; i < 3; i++) three[i] = (lin_path_phone){.label = i + 1, .start = i, .end = i + 1};
    const lin_path narrow = {.phones = three, .n_phones = 3};
    lin_goodness each[3];
    for (int i = 0; i < 3 * V; i++) logp[i] = i % V == 3 ? 0 : -700;
    OK(lin_goodness_measure(logp, V, 3, &narrow, 8, each, &err));
    ck_assert_msg(fabs((double)each[1].score + 700) < 1e-3 && each[1].heard == 0, "%g", (double)each[1].score);
    random_rows(logp, T_MAX, V, 1, 3);
    logp[100 * V + 3] = NAN;
    FAILS(lin_goodness_measure(logp, V, T_MAX, &path, 3, goodness, &err), LIN_NUMERIC, "rows 7 to 3992");
}
END_TEST

TEST_MAIN("goodness", TEST(against_all_alignments_with_the_neighbours), TEST(what_was_said_otherwise_is_found),
          TEST(long_runs_and_impossible_labels))
