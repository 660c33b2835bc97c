/*
 * bench_beam.c - microseconds of processor time per row in decoder/beam with the default options at several widths, and the
 * share of real time, best of five.
 *
 *   build/release/bench/bench_beam
 *
 * 3,000 synthetic rows of 40 outputs, blanks and peaks, 100 a second; without a model, and with a synthetic 3-gram.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "base/memory.h"
#include "base/hash.h"
#include "decoder/beam.h"

enum { V = 40, T = 3000, ROWS_A_SECOND = 100, REPEATS = 5 };

static void give_up(const lin_error *err)
{
    fprintf(stderr, "bench_beam: %s\n", err->message);
    exit(1);
}

// Runs of blanks and of labels, each row uncertain between two outputs to a random degree, the rest from e^-6 down to e^-14.
static float *make_rows(void)
{
    float *rows = lin_alloc((size_t)T * V, sizeof *rows);
    int label = 0, left = 0;
    for (int t = 0; rows && t < T; t++) {
        uint64_t at = (uint64_t)t * 64;
        double x[V], sum = 0;
        if (!left--) {
            label = label ? 0 : 1 + (int)lin_random_below(1, at, V - 1);
            left = (int)lin_random_below(1, at + 1, label ? 3 : 6);
        }
        int rival = (int)lin_random_below(1, at + 2, V);
        for (int k = 0; k < V; k++) {
            x[k] = k == label ? 0 : -6 - 8 * lin_random_uniform(1, at + 8 + (uint64_t)k);
            if (k == rival && k != label) x[k] = -8 * lin_random_uniform(1, at + 3);
            sum += exp(x[k]);
        }
        for (int k = 0; k < V; k++) rows[t * V + k] = (float)(x[k] - log(sum));
    }
    return rows;
}

// All unigrams, and for each label a third of the bigrams and a tenth of the trigrams that begin with it.
static lin_ngram *make_model(void)
{
    static char text[8 << 20];
    lin_ngram *lm;
    lin_error err = {0};
    int counts[3] = {0};
    for (int pass = 0; pass < 2; pass++) {
        char *at = text;
        at += sprintf(at, "\\data\\\nngram 1=%d\nngram 2=%d\nngram 3=%d\n", counts[0], counts[1], counts[2]);
        memset(counts, 0, sizeof counts);
        for (int order = 1; order <= 3; order++) {
            at += sprintf(at, "\n\\%d-grams:\n", order);
            for (int i = 0, n = order == 1 ? V - 1 : order == 2 ? (V - 1) * (V - 1) : (V - 1) * (V - 1) * (V - 1); i < n; i++) {
                int c = i % (V - 1) + 1, b = i / (V - 1) % (V - 1) + 1, a = i / (V - 1) / (V - 1) + 1;
                int pair = lin_random_below(2, (uint64_t)(b * V + c), 3) == 0;
                int first = lin_random_below(2, (uint64_t)(a * V + b), 3) == 0;
                if (order == 2 && !pair) continue;
                if (order == 3 && !(pair && first && lin_random_below(3, (uint64_t)i, 10) == 0)) continue;
                double p = -0.5 - 1.5 * lin_random_uniform(4, (uint64_t)(i * 3 + order));
                counts[order - 1]++;
                at += sprintf(at, "%.4f", p);
                if (order > 2) at += sprintf(at, " p%d", a);
                if (order > 1) at += sprintf(at, " p%d", b);
                at += sprintf(at, order < 3 ? " p%d -0.3\n" : " p%d\n", c);
            }
        }
        sprintf(at, "\n\\end\\\n");
    }
    if (lin_ngram_parse(text, strlen(text), "made-up 3-gram", &lm, &err)) give_up(&err);
    return lm;
}

static void map_labels(const lin_ngram *lm, int labels[V])
{
    char word[16];
    for (int k = 1; k < V; k++) {
        const int n = snprintf(word, sizeof word, "p%d", k);
        labels[k] = lin_ngram_find(lm, word, (size_t)n);
    }
}

static void measure(const float *rows, const lin_ngram *lm, const int *labels, int width)
{
    lin_beam_options options = lin_beam_options_default();
    lin_error err = {0};
    lin_beam *beam;
    lin_path settled = {0};
    double best = INFINITY;
    options.width = width;
    if (lm) options.bonus = LIN_BEAM_LM_BONUS;
    if (lin_beam_create(V, lm, labels, &options, &beam, &err)) give_up(&err);
    void *state = lin_alloc(lin_beam_bytes(beam), 1);
    if (!state) exit(1);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        lin_path_clear(&settled);
        lin_beam_reset(beam, state, 0);
        double start = lin_now_cpu();
        for (int t = 0; t < T; t += 4) { // as a live stream
            const int n = T - t < 4 ? T - t : 4;
            if (lin_beam_push(beam, state, NULL, rows + (size_t)t * V, n, &settled, &err)) give_up(&err);
        }
        if (lin_beam_finish(beam, state, &settled, &err)) give_up(&err);
        best = fmin(best, lin_now_cpu() - start);
    }
    printf("beam\twidth %d\t%s\t%.2f us/row\t%.3f %% of real time\t%zu bytes\t(%d phones, score %.3f)\n", width,
           lm ? "with a model" : "no model", 1e6 * best / T, 100 * best / T * ROWS_A_SECOND, lin_beam_bytes(beam),
           settled.n_phones, settled.score);
    lin_path_free(&settled);
    lin_free(state);
    lin_beam_destroy(beam);
}

int main(void)
{
    static const int widths[] = {1, 4, 16, 64};
    float *rows = make_rows();
    if (!rows) return 1;
    lin_ngram *lm = make_model();
    int labels[V];
    map_labels(lm, labels);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) measure(rows, NULL, NULL, widths[i]);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) measure(rows, lm, labels, widths[i]);
    lin_free(rows);
    lin_ngram_destroy(lm);
    return 0;
}
