/*
 * bench_gemm.c - speed of the matrix product: forward for 1 to 12,800 rows, and both backward forms, over the shapes of the
 * default network, as a share of the peak of this machine measured in the same run by multiply-adds between registers.
 *
 *   bench_gemm [--threads N] [--quick] [--precision fp32|bf16|int8] [--form NAME] [--rows N,N...] [--cpu-time]
 *       NAME: forward, backward_data, backward_weight
 *
 * Best of many short trials, with the median: other work on the machine only makes a trial slower, and the peak is a best too,
 * measured again before each figure. --precision bf16 measures all forms, alternating with fp32, as a share of the peak of bf16's
 * instruction; --precision int8 the form forward.
 * LINNET_ISA=avx2 or portable measures the other instruction sets against their own peaks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peak.h"
#include "base/memory.h"
#include "kernels/ops.h"

enum { SHAPES = 6, LEAST_TRIALS = 15, MOST_TRIALS = 201, MOST_ROWS = 12800, MOST_WIDTH = 768 };

static const int shapes[SHAPES][2] = {{192, 192}, {576, 192}, {768, 192}, {192, 768}, {40, 192}, {192, 640}};
static const int forward_rows[] = {1, 2, 4, 8, 9, 12, 16, 32, 64, 256, 512, 800, 4000, 12800};
static const int backward_rows[] = {800, 4000, 12800};

static float *x, *w, *y, *dw, *bias, *packed;
static const lin_ops *ops, *plain; // plain: fp32 for comparison with bf16 or int8, or NULL
static lin_exec *exec;
static int n_threads = 1;
static double peak; // of this many threads, the best so far
static float *plain_packed;

/* ---- the products ---------------------------------------------------------------------------------------------------------- */

typedef enum form { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHT, FORMS } form;
static const char *const form_names[FORMS] = {"forward", "backward_data", "backward_weight"};

static void once(form what, int rows, int n, int k)
{
    switch (what) {
    case FORWARD:
        ops->linear_forward(exec, y, x, packed, bias, rows, n, k, LIN_RELU);
        break;
    case BACKWARD_DATA:
        ops->linear_forward(exec, x, y, packed, NULL, rows, k, n, LIN_LINEAR);
        break;
    default:
        ops->linear_backward_weight(exec, dw, bias, y, x, rows, n, k);
        break;
    }
}

static void once_plain(form what, int rows, int n, int k)
{
    if (what == FORWARD) {
        plain->linear_forward(exec, y, x, plain_packed, bias, rows, n, k, LIN_RELU);
    } else if (what == BACKWARD_WEIGHT) {
        plain->linear_backward_weight(exec, dw, bias, y, x, rows, n, k);
    } else {
        plain->linear_forward(exec, x, y, plain_packed, NULL, rows, k, n, LIN_LINEAR);
    }
}

typedef struct rates { // GFLOP/s
    double best, median;
} rates;

static rates rates_of(double *time, int trials, double work)
{
    const double median = bench_quantile(time, trials, 0.5); // sorts
    return (rates){work / time[0] * 1e-9, work / median * 1e-9};
}

// Trials of about a millisecond; *plain_rates: of fp32, alternating with them.
static rates measure(form what, int rows, int n, int k, int quick, rates *plain_rates)
{
    double time[MOST_TRIALS], plain_time[MOST_TRIALS];
    const double work = 2.0 * rows * n * k, budget = quick ? 4e9 : 4e10;
    const long inner = (long)(1e8 / work) + 1;
    const double trials_wanted = budget / (work * (double)inner);
    const int trials = trials_wanted < LEAST_TRIALS ? LEAST_TRIALS : trials_wanted > MOST_TRIALS ? MOST_TRIALS
                       : (int)trials_wanted;
    for (size_t i = 0; i < (size_t)MOST_ROWS * MOST_WIDTH; i++) { // gradients and outputs of one form are inputs of another
        x[i] = (float)((i * 7919) % 1000) * 1e-3f - 0.5f;
        y[i] = (float)((i * 104729) % 1000) * 1e-3f - 0.5f;
    }
    memset(dw, 0, (size_t)MOST_WIDTH * MOST_WIDTH * sizeof *dw);
    memset(bias, 0, MOST_WIDTH * sizeof *bias);
    const lin_packing item = {.n = n, .k = k, .transposed = what == BACKWARD_DATA};
    ops->weights_pack(exec, packed, w, &item, 1);
    if (plain) plain->weights_pack(exec, plain_packed, w, &item, 1);
    once(what, rows, n, k);
    for (int r = 0; r < trials; r++) {
        double start = bench_now();
        for (long i = 0; i < inner; i++) once(what, rows, n, k);
        time[r] = (bench_now() - start) / (double)inner;
        start = bench_now();
        for (long i = 0; plain && i < inner; i++) once_plain(what, rows, n, k);
        plain_time[r] = (bench_now() - start) / (double)inner;
    }
    if (plain) *plain_rates = rates_of(plain_time, trials, work);
    return rates_of(time, trials, work);
}

static double measure_packing(int transposed)
{
    enum { RUNS = 31, MATRICES = 27, SIZE = MOST_WIDTH * 192 }; // 27 x 768 x 192 = 4 M weights, as in the default network
    double time[RUNS];
    lin_packing items[MATRICES];
    for (size_t i = 0; i < MATRICES; i++)
        items[i] = (lin_packing){.from = i * SIZE, .to = i * SIZE, .n = MOST_WIDTH, .k = 192, .transposed = transposed};
    for (int r = 0; r < RUNS; r++) {
        double start = bench_now();
        ops->weights_pack(exec, y, x, items, MATRICES);
        time[r] = bench_now() - start;
    }
    qsort(time, RUNS, sizeof *time, bench_by_value);
    return time[0] * 1e3;
}

static void print_form(form what, const int *rows, size_t n_rows, int quick)
{
    printf("\n%s, best GFLOP/s (share of the peak; the median's%s)\n%8s", form_names[what],
           plain ? "; times the speed of fp32" : "", "rows");
    for (int s = 0; s < SHAPES; s++) printf("        %4dx%-4d   %s", shapes[s][0], shapes[s][1], plain ? "       " : "");
    printf("\n");
    for (size_t i = 0; i < n_rows; i++) {
        printf("%8d", rows[i]);
        for (int s = 0; s < SHAPES; s++) {
            rates plain_rates = {0, 0};
            const double again = bench_peak_in(ops->precision, n_threads, 1); // the clock changes with other load on the machine
            if (again > peak) peak = again;
            const rates rate = measure(what, rows[i], shapes[s][0], shapes[s][1], quick, &plain_rates);
            printf("  %6.1f (%3.0f%%; %3.0f%%)", rate.best, 100 * rate.best / peak, 100 * rate.median / peak);
            if (plain) printf(" %4.2fx", rate.best / plain_rates.best);
            fflush(stdout);
        }
        printf("\n");
    }
}

// Parses "1,8,64" into rows; returns their number, or 0.
static size_t parse_rows(const char *text, int *rows, size_t most)
{
    size_t n = 0;
    for (char *end; n < most; text = end + 1) {
        const long value = strtol(text, &end, 10);
        if (end == text || value < 1 || value > MOST_ROWS || (*end && *end != ',')) return 0;
        rows[n++] = (int)value;
        if (!*end) return n;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int quick = 0;
    int asked[32];
    size_t n_asked = 0;
    const char *only = NULL, *precision = "fp32";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            quick = 1;
        } else if (strcmp(argv[i], "--cpu-time") == 0) {
            bench_clock = CLOCK_THREAD_CPUTIME_ID;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            n_threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc) {
            precision = argv[++i];
        } else if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc && (n_asked = parse_rows(argv[i + 1], asked, 32)) > 0) {
            i++;
        } else if (strcmp(argv[i], "--form") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench_gemm [--threads N] [--quick] [--precision fp32|bf16|int8] [--form NAME] "
                            "[--rows N,N...] [--cpu-time]\n");
            return 2;
        }
    }
    if (n_threads < 1 || n_threads > 64 || bench_clock != CLOCK_MONOTONIC) n_threads = 1;
    lin_error err = {0};
    ops = bench_cpu(precision, &err);
    if (!ops || ops->exec_create(ops, n_threads, &exec, &err) != LIN_OK) {
        fprintf(stderr, "bench_gemm: %s\n", err.message);
        return 1;
    }
    if (ops->precision != LIN_PRECISION_FP32) plain = lin_ops_cpu();
    if (ops->precision == LIN_PRECISION_INT8) only = form_names[FORWARD];
    const size_t most = (size_t)MOST_ROWS * MOST_WIDTH, square = (size_t)MOST_WIDTH * MOST_WIDTH;
    x = lin_calloc(most, sizeof *x);
    y = lin_calloc(most, sizeof *y);
    w = lin_calloc(square, sizeof *w);
    dw = lin_calloc(square, sizeof *dw);
    bias = lin_calloc(MOST_WIDTH, sizeof *bias);
    packed = lin_calloc(square, sizeof *packed);
    plain_packed = lin_calloc(square, sizeof *plain_packed);
    if (!x || !y || !w || !dw || !bias || !packed || !plain_packed) {
        fprintf(stderr, "bench_gemm: out of memory\n");
        return 1;
    }
    for (size_t i = 0; i < square; i++) w[i] = (float)((i * 7907) % 1000) * 1e-3f - 0.5f;
    double single = bench_peak_of(ops->precision, 1);
    peak = n_threads > 1 ? bench_peak_of(ops->precision, n_threads) : single;
    printf("%s %s, %d thread%s, peak %.1f GFLOP/s (one thread %.1f)\n", lin_cpu_isa(), precision, n_threads,
           n_threads > 1 ? "s" : "", peak, single);
    for (int what = 0; what < FORMS; what++) {
        if (only && strcmp(only, form_names[what]) != 0) continue;
        if (n_asked) {
            print_form((form)what, asked, n_asked, quick);
        } else if (what == FORWARD) {
            print_form((form)what, forward_rows, sizeof forward_rows / sizeof *forward_rows, quick);
        } else {
            print_form((form)what, backward_rows, sizeof backward_rows / sizeof *backward_rows, quick);
        }
    }
    double straight = measure_packing(0), transposed = ops->precision == LIN_PRECISION_INT8 ? 0 : measure_packing(1);
    printf("\npacking 4 M weights: %.2f ms, transposed %.2f ms\n", straight, transposed);
    ops->exec_destroy(exec);
    float *blocks[] = {x, y, w, dw, bias, packed, plain_packed};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) lin_free(blocks[i]);
    return 0;
}
