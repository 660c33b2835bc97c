/*
 * bench_ops.c - time of every operation but the matrix product, at the shape of a training step and of one live stream, with the
 * default network's sizes, as a share of the time that the matrix products of the same step take at the peak measured in this
 * run.
 *
 *   bench_ops [--threads N] [--quick] [--json]
 *
 * Without --threads: one thread, then one per core. Medians of several runs. LINNET_ISA=avx2 or portable measures the other
 * instruction sets against their own peaks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/peak.h"
#include "base/memory.h"
#include "kernels/ops.h"

enum { B = 12, T = 800, D = 40, LAYERS = 9, H = 6, E = 32, C = H * E, F = 768, V = 40, U = 80, K = 15, ROWS = B * T,
      STREAM_ROWS = 4 };
enum { PARAMETERS = 4000000, TENSORS = 150, RUNS = 9, BUFFERS = 5 };

// Multiply-adds, times two, of one row's linear layers, forward.
static const double row_flop = 2.0 * (D * C + LAYERS * (4.0 * C * C + 2.0 * C * F) + C * V);

static const lin_ops *ops;
static lin_exec *exec;
static float *buffer[BUFFERS]; // [ROWS, 3 C] or [PARAMETERS], used as each operation needs
static float *states[1], *tails[1], *no_tails[B], vectors[8][F], stats[2 * ROWS];
static int offsets[B + 1], labels[B * U], label_offsets[B + 1], rows;
static lin_segments segments;
static size_t tensor_offsets[TENSORS + 1];
static const unsigned char decay[TENSORS];
static const lin_tensors tensors = {TENSORS, tensor_offsets, decay};
static const uint64_t key = 77;
static const lin_dropout tenth = {0.1, &key, 1}, none = {0, NULL, 0};

/* ---- the operations, called as by the network ------------------------------------------------------------------------------ */

static void norm_forward(void) { ops->layer_norm_forward(exec, buffer[1], stats, buffer[0], vectors[0], vectors[1], rows, C); }
static void norm_backward(void)
{
    ops->layer_norm_backward(exec, buffer[1], NULL, vectors[2], vectors[3], NULL, buffer[2], NULL, NULL, buffer[0], stats,
                             vectors[0], rows, C, NULL);
}
static void block_end(const lin_dropout *dropout)
{
    ops->add_dropout_norm_forward(exec, buffer[3], buffer[1], stats, buffer[0], buffer[2], vectors[0], vectors[1], rows, C,
                                  dropout);
}
static void block_end_dropped(void) { block_end(&tenth); }
static void block_end_whole(void) { block_end(&none); }
static void block_end_backward(void)
{
    ops->layer_norm_backward(exec, buffer[1], buffer[3], vectors[2], vectors[3], NULL, buffer[2], NULL, buffer[1], buffer[0],
                             stats, vectors[0], rows, C, &tenth);
}
static void dropout_hidden(void) { ops->dropout(exec, buffer[1], buffer[1], (size_t)rows * F, &tenth); }
static void dropout_width(void) { ops->dropout(exec, buffer[1], buffer[0], (size_t)rows * C, &tenth); }
static void add_dropout(void) { ops->add_dropout(exec, buffer[1], buffer[0], buffer[2], (size_t)rows * C, &tenth); }
static void residual(void) { ops->add_dropout(exec, buffer[1], buffer[0], buffer[2], (size_t)rows * C, &none); }
static void relu_backward(void) { ops->relu_backward(exec, buffer[1], buffer[1], buffer[0], (size_t)rows * F, 1 / 0.9); }
static void stack_frames(void)
{
    ops->stack_frames(exec, buffer[1], buffer[0], vectors[0], vectors[1], &segments, &segments, D, 1, 0);
}
static void sinusoid(void) { ops->add_sinusoid(exec, buffer[1], &segments, C, NULL, 0); }
static void conv_forward(void)
{
    ops->conv_forward(exec, buffer[1], buffer[0], buffer[4], vectors[1], &segments, C, K, 0,
                      rows == ROWS ? no_tails : tails, 0);
}
static void conv_backward(void)
{
    ops->conv_backward(exec, buffer[1], buffer[3], vectors[2], buffer[2], buffer[0], buffer[4], &segments, C, K, 0);
}
static void attention(int causal)
{
    ops->attention_forward(exec, buffer[1], buffer[0], &segments, H, E, causal, rows == ROWS ? NULL : states, 0);
}
static void attention_causal(void) { attention(1); }
static void attention_full(void) { attention(0); }
static void attention_gradient(int causal)
{
    ops->attention_backward(exec, buffer[3], buffer[2], buffer[0], buffer[1], &segments, H, E, causal);
}
static void attention_causal_backward(void) { attention_gradient(1); }
static void attention_full_backward(void) { attention_gradient(0); }
static void log_softmax(void) { ops->log_softmax(exec, buffer[1], buffer[0], rows, V); }
static void ctc(void)
{
    static const double one = 1;
    double loss[B];
    ops->ctc(exec, loss, buffer[2], buffer[1], &segments, labels, label_offsets, U, V, &one);
}
static void sum_squares(void)
{
    double norms[TENSORS];
    ops->sum_squares(exec, norms, buffer[0], &tensors);
}
static void adam(void)
{
    static const lin_adam_step step = {0.9, 0.999, 1e-8, 0.01, 1e-4, 1e-4, 1.0, 1, 0};
    static double scale[TENSORS];
    ops->adam(exec, buffer[1], buffer[0], buffer[2], buffer[3], &tensors, scale, &step, NULL);
}

/* Calls per training step and per streaming step; those marked `other` are alternatives and not in the sums. */
static const struct {
    const char *name;
    void (*run)(void);
    int training, streaming, other;
} table[] = {
    {"stack_frames", stack_frames, 1, 1, 0},
    {"add_sinusoid", sinusoid, 1, 0, 1},
    {"layer_norm_forward", norm_forward, 1, 1, 0},
    {"layer_norm_backward", norm_backward, 1, 0, 0},
    {"add, dropout, norm, p 0.1", block_end_dropped, 2 * LAYERS, 0, 0},
    {"add, dropout, norm, p 0", block_end_whole, 0, 2 * LAYERS, 0},
    {"norm backward, add, dropout", block_end_backward, 2 * LAYERS, 0, 0},
    {"add_dropout, p 0.1", add_dropout, 2 * LAYERS, 0, 1},
    {"add_dropout, p 0", residual, 2 * LAYERS, 2 * LAYERS, 1},
    {"dropout [rows, F]", dropout_hidden, LAYERS, 0, 0},
    {"dropout [rows, C]", dropout_width, 2 * LAYERS, 0, 1},
    {"relu_backward [rows, F]", relu_backward, LAYERS, 0, 0},
    {"conv_forward, K 15", conv_forward, 1, 1, 0},
    {"conv_backward, K 15", conv_backward, 1, 0, 0},
    {"attention_forward, causal", attention_causal, LAYERS, LAYERS, 0},
    {"attention_backward, causal", attention_causal_backward, LAYERS, 0, 0},
    {"attention_forward, full", attention_full, LAYERS, 0, 1},
    {"attention_backward, full", attention_full_backward, LAYERS, 0, 1},
    {"log_softmax", log_softmax, 1, 1, 0},
    {"ctc, 80 labels", ctc, 1, 0, 0},
    {"sum_squares, 4 M", sum_squares, 1, 0, 0},
    {"adam, 4 M", adam, 1, 0, 0},
};
enum { OPERATIONS = (int)(sizeof table / sizeof *table) };

/* ---- measurement ----------------------------------------------------------------------------------------------------------- */

static void shape(int streaming)
{
    rows = streaming ? STREAM_ROWS : ROWS;
    segments = (lin_segments){streaming ? 1 : B, rows, streaming ? STREAM_ROWS : T, offsets};
    for (int b = 0; b <= B; b++) {
        offsets[b] = b * (streaming ? STREAM_ROWS : T);
        label_offsets[b] = b * U;
    }
    for (int i = 0; i < B * U; i++) labels[i] = 1 + i * 7 % (V - 1);
    for (int i = 0; i <= TENSORS; i++) tensor_offsets[i] = (size_t)i * (PARAMETERS / TENSORS);
    for (int i = 0; i < BUFFERS; i++) {
        for (size_t j = 0; j < (size_t)ROWS * F; j++) buffer[i][j] = (float)((j * 7919 + (size_t)i) % 1000) * 2e-3f - 1.0f;
    }
    for (int i = 0; i < 8; i++) {
        for (int c = 0; c < F; c++) vectors[i][c] = 0.5f + (float)c * 1e-3f;
    }
    for (int i = 0; i < ROWS; i++) {
        stats[2 * i] = 0;
        stats[2 * i + 1] = 1;
    }
    memset(states[0], 0, (size_t)H * (E + 1) * E * sizeof(float));
    memset(tails[0], 0, (size_t)(K - 1) * C * sizeof(float));
}

// Median microseconds of one call, in runs of at least about 10 ms.
static double measure(void (*run)(void), int streaming, int quick)
{
    double time[RUNS], once;
    shape(streaming);
    if (run == ctc || run == log_softmax) log_softmax();
    run();
    once = bench_now();
    run();
    once = bench_now() - once;
    long inner = (long)((quick ? 0.002 : 0.02) / (once + 1e-7)) + 1;
    for (int r = 0; r < RUNS; r++) {
        if (streaming) memset(states[0], 0, (size_t)H * (E + 1) * E * sizeof(float));
        double start = bench_now();
        for (long i = 0; i < inner; i++) run();
        time[r] = (bench_now() - start) / (double)inner;
    }
    return 1e6 * bench_quantile(time, RUNS, 0.5);
}

static void report(int threads, int streaming, double peak, int quick, int json)
{
    int n_rows = streaming ? STREAM_ROWS : ROWS;
    double products = row_flop * (streaming ? 1 : 3) / peak * 1e-3, total = 0; // microseconds a row
    if (!json) {
        printf("\n%s, %d thread%s: %d rows; matrix products at the peak %.3f us a row\n",
               streaming ? "streaming step" : "training step",
               threads, threads > 1 ? "s" : "", n_rows, products);
        printf("%-28s %12s %6s %12s %10s\n", "", "ns/row, once", "calls", "us/row, step", "share");
    }
    for (int i = 0; i < OPERATIONS; i++) {
        int calls = streaming ? table[i].streaming : table[i].training;
        if (!calls) continue;
        double row = measure(table[i].run, streaming, quick) / n_rows, step = row * calls;
        if (!table[i].other) total += step;
        if (json) {
            printf("{\"operation\":\"%s\",\"threads\":%d,\"rows\":%d,\"ns_per_row\":%.1f,\"calls\":%d,\"share\":%.4f}\n",
                   table[i].name, threads, n_rows, 1e3 * row, calls, step / products);
        } else {
            printf("%-28s %12.1f %6d %12.3f %9.1f%%%s\n", table[i].name, 1e3 * row, calls, step, 100 * step / products,
                   table[i].other ? "  not in the sum" : "");
        }
        fflush(stdout);
    }
    if (json) {
        printf("{\"operation\":\"all\",\"threads\":%d,\"rows\":%d,\"us_per_row\":%.3f,\"share\":%.4f}\n", threads, n_rows, total,
               total / products);
    } else {
        printf("%-28s %12s %6s %12.3f %9.1f%%\n", "all", "", "", total, 100 * total / products);
    }
}

static int run_with(int threads, int quick, int json)
{
    lin_error err = {0};
    if (ops->exec_create(ops, threads, &exec, &err) != LIN_OK) {
        fprintf(stderr, "bench_ops: %s\n", err.message);
        return 1;
    }
    double peak = bench_peak(threads);
    if (json) {
        printf("{\"isa\":\"%s\",\"threads\":%d,\"peak_gflops\":%.1f}\n", lin_cpu_isa(), threads, peak);
    } else {
        printf("%s, %d thread%s, peak %.1f GFLOP/s\n", lin_cpu_isa(), threads, threads > 1 ? "s" : "", peak);
    }
    report(threads, 0, peak, quick, json);
    report(threads, 1, peak, quick, json);
    ops->exec_destroy(exec);
    return 0;
}

int main(int argc, char **argv)
{
    int threads = 0, quick = 0, json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            quick = 1;
        } else if (strcmp(argv[i], "--json") == 0) {
            json = 1;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            threads = atoi(argv[++i]);
        } else {
            fprintf(stderr, "usage: bench_ops [--threads N] [--quick] [--json]\n");
            return 2;
        }
    }
    if (threads < 0 || threads > PEAK_THREADS) threads = 0;
    ops = lin_ops_cpu();
    for (int i = 0; i < BUFFERS; i++) buffer[i] = lin_calloc((size_t)ROWS * F, sizeof(float));
    states[0] = lin_calloc((size_t)H * (E + 1) * E, sizeof(float));
    tails[0] = lin_calloc((size_t)(K - 1) * C, sizeof(float));
    int failed = !states[0] || !tails[0];
    for (int i = 0; i < BUFFERS; i++) failed |= !buffer[i];
    if (failed) {
        fprintf(stderr, "bench_ops: out of memory\n");
        return 1;
    }
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    failed = run_with(threads ? threads : 1, quick, json);
    if (!failed && !threads && cores > 1) failed = run_with(cores < PEAK_THREADS ? cores : PEAK_THREADS, quick, json);
    for (int i = 0; i < BUFFERS; i++) lin_free(buffer[i]);
    lin_free(states[0]);
    lin_free(tails[0]);
    return failed;
}
