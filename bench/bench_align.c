/*
 * bench_align.c - aligns an hour of speech with its text: seconds, and the peak in megabytes.
 *
 *   build/release/bench/bench_align
 *
 * The rows are synthetic: 10 phones per second, each a row of 0.6 with blanks of 0.95 between, in noise; words of 1 to 6 phones,
 * every third with two pronunciations. Once with the spoken text; once with a text that has an extra minute in the middle that
 * was not spoken, so that the beam must widen; each with rows of 30 and of 10 ms.
 */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "align/align.h"
#include "align/goodness.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"

enum { V = 40, PHONES_A_SECOND = 10, SECONDS = 3600 };

static double peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static int label_of(long phone) { return 1 + (int)lin_random_below(1, (uint64_t)phone, V - 1); }

// Words of 1 to 6 of these phones.
static lin_align_graph *make_text(long n_phones, int *n_words, lin_error *err)
{
    static lin_align_graph one;
    lin_align_graph *graph = &one;
    if (lin_align_graph_begin(graph, V, err) != LIN_OK) return NULL;
    *n_words = 0;
    for (long phone = 0; phone < n_phones; (*n_words)++) {
        int labels[2][6], n = 1 + (int)lin_random_below(2, (uint64_t)*n_words, 6);
        if (n > n_phones - phone) n = (int)(n_phones - phone);
        for (int i = 0; i < n; i++) labels[0][i] = labels[1][i] = label_of(phone + i);
        labels[1][n - 1] = 1 + labels[0][n - 1] % (V - 1);
        // The last one is spoken.
        const lin_align_pronunciation list[] = {{.labels = labels[1], .n = n}, {.labels = labels[0], .n = n}};
        const int both = *n_words % 3 == 0;
        if (lin_align_graph_add(graph, list + !both, 1 + both, 1, err) != LIN_OK) return NULL;
        phone += n;
    }
    return graph;
}

static void make_row(float *row, long t, int rows_a_phone, long phone)
{
    const int spoken = t % rows_a_phone == rows_a_phone / 2;
    double sum = 0, p[V];
    for (int v = 0; v < V; v++) {
        p[v] = (spoken ? 0.4 : 0.05) * lin_random_uniform(3, (uint64_t)(t * V + v)) / (0.5 * V);
        if (v == (spoken ? label_of(phone) : 0)) p[v] += spoken ? 0.6 : 0.95;
        sum += p[v];
    }
    for (int v = 0; v < V; v++) row[v] = (float)log(p[v] / sum);
}

static int fail(const lin_error *err)
{
    fprintf(stderr, "bench_align: %s\n", err->message);
    return 1;
}

// One alignment in a separate process, so that its memory peak is measured alone.
static int one(int row_ms, int missing_s)
{
    const int rows_a_phone = 1000 / PHONES_A_SECOND / row_ms > 1 ? 1000 / PHONES_A_SECOND / row_ms : 1;
    const long n_phones = SECONDS * PHONES_A_SECOND, missing = missing_s * PHONES_A_SECOND;
    lin_error err = {0};
    lin_align_options o = lin_align_options_default();
    o.row_s = row_ms / 1000.0;
    int n_words;
    lin_align_graph *graph = make_text(n_phones, &n_words, &err);
    if (!graph) return fail(&err);
    const long most = n_phones * rows_a_phone;
    float *rows = lin_alloc((size_t)(most * V), sizeof *rows);
    if (!rows) return fail(&err);
    long T = 0;
    for (long phone = 0; phone < n_phones; T++) {
        make_row(rows + T * V, T, rows_a_phone, phone);
        if (T % rows_a_phone == rows_a_phone - 1) phone += phone == n_phones / 2 ? 1 + missing : 1;
    }
    lin_path path = {0};
    lin_align_report report;
    const double begun = lin_now();
    if (lin_align_text(graph, &o, rows, T, &path, &report, &err) != LIN_OK) return fail(&err);
    const double finished = lin_now();
    lin_goodness *goodness = lin_alloc((size_t)path.n_phones, sizeof *goodness);
    const int margin = (int)ceil(0.25 / o.row_s);
    if (!goodness || lin_goodness_measure(rows, V, T, &path, margin, goodness, &err) != LIN_OK) return fail(&err);
    const double judged = lin_now();
    printf("align\t%d ms\t%ld rows\t%d words\t%d phones\t%s\talign %.2f s\tgoodness %.2f s\twidened %d\t"
           "paths %.1f MB\tpeak %.0f MB\n",
           row_ms, T, n_words, path.n_phones, missing ? "a minute not said" : "all said", finished - begun,
           judged - finished, report.widened, (double)report.bytes / 1e6, peak_mb());
    fflush(stdout);
    lin_free(goodness);
    lin_path_free(&path);
    lin_free(rows);
    lin_align_graph_free(graph);
    return 0;
}

int main(void)
{
    int failed = 0;
    for (int i = 0; i < 4; i++) {
        const pid_t child = fork();
        int status = 1;
        if (child == 0) _exit(one(i % 2 ? 10 : 30, i / 2 ? 60 : 0));
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) failed = 1;
    }
    return failed;
}
