/*
 * bench_beam.c - microseconds of processor time per row in decoder/beam with the default options at several widths, and the
 * share of real time, best of five.
 *
 *   build/release/bench/bench_beam [ROWS.npy|- [LM.arpa|- [rows per second, default 100]]]
 *
 * ROWS: the output of linnet posteriors; "-" or none: 3,000 synthetic rows of 40 outputs, blanks and peaks. LM: over phones,
 * whose words correspond to the outputs in order; "-" or none: a synthetic 3-gram. The first lines are without a model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "base/memory.h"
#include "train/lab/npy.h"
#include "base/hash.h"
#include "decoder/beam.h"

enum { MADE_V = 40, MADE_T = 3000, REPEATS = 5 };

static void give_up(const lin_error *err)
{
    fprintf(stderr, "bench_beam: %s\n", err->message);
    exit(1);
}

// Runs of blanks and of labels, each row uncertain between two outputs to a random degree, the rest from e^-6 down to e^-14.
static float *make_rows(void)
{
    float *rows = lin_alloc((size_t)MADE_T * MADE_V, sizeof *rows);
    int label = 0, left = 0;
    for (int t = 0; rows && t < MADE_T; t++) {
        uint64_t at = (uint64_t)t * 64;
        double x[MADE_V], sum = 0;
        if (!left--) {
            label = label ? 0 : 1 + (int)lin_random_below(1, at, MADE_V - 1);
            left = (int)lin_random_below(1, at + 1, label ? 3 : 6);
        }
        int rival = (int)lin_random_below(1, at + 2, MADE_V);
        for (int k = 0; k < MADE_V; k++) {
            x[k] = k == label ? 0 : -6 - 8 * lin_random_uniform(1, at + 8 + (uint64_t)k);
            if (k == rival && k != label) x[k] = -8 * lin_random_uniform(1, at + 3);
            sum += exp(x[k]);
        }
        for (int k = 0; k < MADE_V; k++) rows[t * MADE_V + k] = (float)(x[k] - log(sum));
    }
    return rows;
}

// All unigrams, and for each label a third of the bigrams and a tenth of the trigrams that begin with it.
static lin_ngram *make_model(int V)
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

// The model's words without <s>, </s> and <unk>.
static int *map_labels(const lin_ngram *lm, int V)
{
    int *labels = lin_alloc((size_t)V, sizeof *labels), k = 1;
    if (!labels) exit(1);
    for (int word = 0; word < lin_ngram_words(lm) && k < V; word++)
        if (lin_ngram_word(lm, word)[0] != '<') labels[k++] = word;
    while (k < V) labels[k++] = LIN_NGRAM_UNKNOWN;
    return labels;
}

static void measure(const float *rows, int T, int V, const lin_ngram *lm, const int *labels, int width, double rate)
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
            if (lin_beam_push(beam, state, NULL, rows + (size_t)t * (size_t)V, n, &settled, &err)) give_up(&err);
        }
        if (lin_beam_finish(beam, state, &settled, &err)) give_up(&err);
        best = fmin(best, lin_now_cpu() - start);
    }
    printf("beam\twidth %d\t%s\t%.2f us/row\t%.3f %% of real time\t%zu bytes\t(%d phones, score %.3f)\n", width,
           lm ? "with a model" : "no model", 1e6 * best / T, 100 * best / T * rate, lin_beam_bytes(beam), settled.n_phones,
           settled.score);
    lin_path_free(&settled);
    lin_free(state);
    lin_beam_destroy(beam);
}

int main(int argc, char **argv)
{
    static const int widths[] = {1, 4, 16, 64};
    lin_error err = {0};
    float *rows = NULL;
    size_t T = MADE_T;
    int V = MADE_V;
    lin_ngram *lm = NULL;
    double rate = argc > 3 ? atof(argv[3]) : 100;
    if (argc > 4 || !(rate > 0)) {
        fprintf(stderr, "usage: bench_beam [ROWS.npy|- [LM.arpa|- [rows per second]]]\n");
        return 2;
    }
    if (argc > 1 && strcmp(argv[1], "-") != 0) {
        if (lin_npy_read(argv[1], &rows, &T, &V, &err)) give_up(&err);
    } else {
        rows = make_rows();
    }
    if (!rows || T < 1 || T > 10000000) return 1;
    if (argc > 2 && strcmp(argv[2], "-") != 0) {
        if (lin_ngram_open(argv[2], &lm, &err)) give_up(&err);
    } else {
        lm = make_model(V < 64 ? V : 64);
    }
    int *labels = map_labels(lm, V);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) measure(rows, (int)T, V, NULL, NULL, widths[i], rate);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) measure(rows, (int)T, V, lm, labels, widths[i], rate);
    lin_free(labels);
    lin_free(rows);
    lin_ngram_destroy(lm);
    return 0;
}
