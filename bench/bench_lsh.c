/*
 * bench_lsh.c - time of LSH attention beside linear attention against the length of the utterance, forward and backward.
 *
 *   bench_lsh [--threads N] [--cpu-time] [--causal] [--heads H] [--width E] [--rows N] [--rotations N]
 *
 * Microseconds per frame of one layer (default: 6 heads of 32, both directions of time, one thread), for batches of N rows
 * (default 16384) in utterances of 2^9 to 2^14 frames: the best of several runs, and in brackets the ratio to linear attention;
 * last, the share of the peak measured in the same run, of the products with R, S = Q Qt, S V, and the five of the backward pass.
 * LSH: chunks of 32; of R at most N columns (default 64, as in the network). --cpu-time: one thread, in processor time, for a
 * machine with other load.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bench/peak.h"
#include "paper/lsh.h"

enum { CHUNK = 32, RUNS = 5, KINDS = 3 };

static const lin_ops *ops;
static lin_exec *exec;
static int H = 6, E = 32, rows = 16384, rotations = 64, causal;
static float *qkv, *dqkv, *y, *dy, *lse, *R;
static int *order;
static lin_segments segments;
static lin_lsh lsh;
static double peak; // GFLOP/s

static void linear(int backward)
{
    if (backward)
        ops->attention_backward(exec, dqkv, dy, qkv, y, &segments, H, E, causal);
    else
        ops->attention_forward(exec, y, qkv, &segments, H, E, causal, NULL, 0);
}

static void reformer(int rounds, int backward)
{
    lsh.rounds = rounds;
    if (backward)
        ops->lsh_backward(exec, dqkv, dy, qkv, y, lse, order, &segments, &lsh, H, E, causal);
    else
        ops->lsh_forward(exec, y, lse, order, qkv, R, &segments, &lsh, H, E, causal);
}

static void lsh_1(int backward) { reformer(1, backward); }
static void lsh_4(int backward) { reformer(4, backward); }

static const struct {
    const char *name;
    void (*run)(int backward);
} kinds[KINDS] = {{"linear", linear}, {"lsh, 1 round", lsh_1}, {"lsh, 4 rounds", lsh_4}};

// Seconds of the best run, forward and backward.
static void measure(int kind, double best[2])
{
    best[0] = best[1] = 1e9;
    for (int run = 0; run < RUNS; run++)
        for (int backward = 0; backward < 2; backward++) {
            const double start = bench_now();
            kinds[kind].run(backward);
            const double seconds = bench_now() - start;
            if (seconds < best[backward]) best[backward] = seconds;
        }
}

// Operations of one round, forward and backward: the products with R, and seven products of queries and the keys they see.
static double flop_of(int T)
{
    const int half = (T + 2 * CHUNK - 1) / (2 * CHUNK), columns = half < rotations ? half : rotations;
    const double seen = 2.0 * CHUNK - (double)CHUNK * CHUNK / T;
    return 2.0 * H * E * (columns + 7 * seen) * T;
}

static void report(int T, int *offsets)
{
    double linear_best[2], best[2];
    const int B = rows / T;
    for (int b = 0; b <= B; b++) offsets[b] = b * T;
    segments = (lin_segments){B, B * T, T, offsets};
    lsh = (lin_lsh){1, CHUNK, rotations};
    for (int kind = 0; kind < KINDS; kind++) {
        measure(kind, best);
        if (kind == 0) memcpy(linear_best, best, sizeof best);
        printf("%6d  %-14s", T, kinds[kind].name);
        for (int i = 0; i < 2; i++) printf(" %9.3f (%5.1f)", 1e6 * best[i] / (B * T), best[i] / linear_best[i]);
        const double sum = best[0] + best[1];
        printf(" %9.3f (%5.1f)", 1e6 * sum / (B * T), sum / (linear_best[0] + linear_best[1]));
        if (kind > 0) printf(" %7.1f %%", 1e-7 * lsh.rounds * B * flop_of(T) / sum / peak);
        printf("\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int threads = 1;
    for (int i = 1; i < argc; i++) {
        int *option = !strcmp(argv[i], "--threads") ? &threads
                      : !strcmp(argv[i], "--heads") ? &H
                      : !strcmp(argv[i], "--width") ? &E
                      : !strcmp(argv[i], "--rows")  ? &rows
                      : !strcmp(argv[i], "--rotations") ? &rotations
                                                        : NULL;
        if (!strcmp(argv[i], "--causal"))
            causal = 1;
        else if (!strcmp(argv[i], "--cpu-time"))
            bench_clock = CLOCK_THREAD_CPUTIME_ID;
        else if (option && i + 1 < argc && (*option = atoi(argv[i + 1])) > 0)
            i++;
        else
            return fputs("usage: bench_lsh [--threads N] [--cpu-time] [--causal] [--heads H] [--width E] [--rows N] [--rotations "
                         "N]\n",
                         stderr), 2;
    }
    if (bench_clock != CLOCK_MONOTONIC) threads = 1;
    const size_t C = (size_t)(H * E), n = (size_t)rows * C, elements = 4 * C * (size_t)rotations;
    lin_error err = {0};
    ops = lin_ops_cpu();
    qkv = lin_calloc(3 * n, sizeof *qkv);
    dqkv = lin_calloc(3 * n, sizeof *dqkv);
    y = lin_calloc(n, sizeof *y);
    dy = lin_calloc(n, sizeof *dy);
    lse = lin_calloc((size_t)rows * (size_t)H, sizeof *lse);
    order = lin_calloc(4 * (size_t)rows * (size_t)H, sizeof *order);
    R = lin_calloc(elements, sizeof *R);
    int *offsets = lin_calloc((size_t)rows / 512 + 1, sizeof *offsets);
    if (!qkv || !dqkv || !y || !dy || !lse || !order || !R || !offsets) return fprintf(stderr, "bench_lsh: out of memory\n"), 1;
    if (ops->exec_create(ops, threads, &exec, &err) != LIN_OK) return fprintf(stderr, "bench_lsh: %s\n", err.message), 1;
    lin_lsh_rotations(qkv, 3, 1, rows, (int)C, 1); // Gaussian queries, keys and values
    lin_lsh_rotations(dy, 1, 1, rows, (int)C, 2);
    lin_lsh_rotations(R, 4, H, E, rotations, 3);
    peak = bench_peak(threads);
    printf("%s, %d thread%s, peak %.1f GFLOP/s, %d heads of %d, %s; microseconds per frame (ratio to linear)\n", lin_cpu_isa(),
           threads, threads > 1 ? "s" : "", peak, H, E, causal ? "causal" : "both directions");
    printf("%6s  %-14s %17s %17s %17s %9s\n", "frames", "", "forward", "backward", "both", "of peak");
    for (int T = 512; T <= 16384 && T <= rows; T *= 2) report(T, offsets);
    ops->exec_destroy(exec);
    return 0;
}
