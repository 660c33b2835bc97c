/*
 * bench_attention.c - attention of one layer of the paper's network (6 heads of width 32): linear, softmax in tiles, softmax with
 * all scores in memory, linear with other feature maps, and chunks of a live stream; forward and backward, causal and full.
 *
 *   bench_attention [--threads N] [--repeats N] [--plain] [--cpu-time] [T ...]
 *
 * The best of the runs, then the median, in milliseconds; shares are of the peak measured in the same run, where a causal score
 * counts once, not twice. T: frames of the utterance, 800 and 2400 unless given. --cpu-time: one thread, in processor time, for a
 * machine with other load. --plain prints lines `linnet NAME VALUE`, one for each run, for bench/attention.sh.
 */
#include <stdio.h>

#include "bench/peak.h"
#include "base/memory.h"
#include "base/rng.h"

enum { H = 6, E = 32, C = H * E, MOST_T = 32768, CHUNK = 4, MOST_REPEATS = 101, NAIVE_T = 4096 };

static const lin_ops *ops;
static lin_exec *exec;
static int n_threads = 1, n_repeats = 9, plain = 0, T, causal;
static double peak;
static float *qkv, *dqkv, *y, *dy, *lse, *p, *kv;
static lin_segments segments;
static int offsets[2];

/* ---- the operations -------------------------------------------------------------------------------------------------------- */

static void linear_forward(void) { ops->attention_forward(exec, y, qkv, &segments, H, E, causal, NULL, 0); }
static void linear_backward(void) { ops->attention_backward(exec, dqkv, dy, qkv, y, &segments, H, E, causal); }
static void tiled_forward(void) { ops->softmax_forward(exec, y, lse, qkv, &segments, H, E, causal, NULL, 0); }
static void tiled_backward(void) { ops->softmax_backward(exec, dqkv, dy, qkv, y, lse, &segments, H, E, causal); }
static void naive_forward(void) { ops->softmax_naive_forward(exec, y, p, qkv, &segments, H, E, causal); }
static void naive_backward(void) { ops->softmax_naive_backward(exec, dqkv, p, dy, qkv, y, &segments, H, E, causal); }

// The last frames of a stream of T frames.
static void stream_chunk(void)
{
    const int chunk[] = {0, CHUNK};
    const lin_segments rows = {1, CHUNK, CHUNK, chunk};
    const lin_cache cache = {kv, T - CHUNK, T};
    ops->softmax_forward(exec, y, NULL, qkv, &rows, H, E, 1, &cache, 0);
}

// Feature maps, with their operations per feature and element of a head; the gradients of features included.
static const struct {
    const char *name;
    lin_map map;
    int forward, backward;
} maps[] = {{"poly2", {LIN_MAP_POLY2, E * (E + 3) / 2 + 1}, 4, 12}, {"random_128", {LIN_MAP_RANDOM, 128}, 8, 28}};
enum { N_MAPS = 2, MOST_D = 561 };
static const lin_map *map;
static float *omega, *state;

static void mapped_forward(void) { ops->mapped_attention_forward(exec, y, qkv, omega, &segments, map, H, E, causal, NULL, 0); }
static void mapped_backward(void) { ops->mapped_attention_backward(exec, dqkv, dy, qkv, omega, y, &segments, map, H, E, causal); }

static void mapped_chunk(void)
{
    const int chunk[] = {0, CHUNK};
    const lin_segments rows = {1, CHUNK, CHUNK, chunk};
    ops->mapped_attention_forward(exec, y, qkv, omega, &rows, map, H, E, 1, &state, 0);
}

static const struct {
    const char *name;
    void (*forward)(void), (*backward)(void);
} kinds[] = {{"linear", linear_forward, linear_backward}, {"softmax", tiled_forward, tiled_backward},
             {"naive", naive_forward, naive_backward}};

/* ---- measurement ----------------------------------------------------------------------------------------------------------- */

static void measure(const char *name, void (*run)(void), void (*before)(void), double flop)
{
    double time[MOST_REPEATS], once;
    if (before) before();
    run();
    once = bench_now();
    if (!before) run();
    once = bench_now() - once;
    const int inner = before ? 1 : 1 + (int)(0.002 / (once + 1e-7));
    for (int r = 0; r < n_repeats; r++) {
        if (before) before(); // the naive backward pass overwrites the probabilities
        const double start = bench_now();
        for (int i = 0; i < inner; i++) run();
        time[r] = (bench_now() - start) / inner;
        if (plain) printf("linnet %s_ms %.6g\n", name, 1e3 * time[r]);
    }
    const double best = bench_quantile(time, n_repeats, 0), median = bench_quantile(time, n_repeats, 0.5);
    if (!plain) printf("%-36s %10.4f %10.4f ms", name, 1e3 * best, 1e3 * median);
    if (!plain && flop > 0) printf(" %8.1f %%", 1e-7 * flop / best / peak);
    if (!plain) printf("\n");
    fflush(stdout);
}

static void measure_all(void)
{
    char name[64];
    offsets[1] = T;
    segments = (lin_segments){1, T, T, offsets};
    for (causal = 1; causal >= 0; causal--)
        for (int k = 0; k < 3; k++) {
            const double pairs = (double)T * (causal ? T + 1 : 2 * T) / 2, product = k ? 2.0 * pairs * C : 0;
            if (k == 2 && T > NAIVE_T) continue;
            snprintf(name, sizeof name, "%s_forward_%s_%d", kinds[k].name, causal ? "causal" : "full", T);
            measure(name, kinds[k].forward, NULL, 2 * product);
            snprintf(name, sizeof name, "%s_backward_%s_%d", kinds[k].name, causal ? "causal" : "full", T);
            measure(name, kinds[k].backward, k == 2 ? naive_forward : NULL, (k == 2 ? 4 : 5) * product);
        }
    for (int m = 0; m < N_MAPS; m++) {
        map = &maps[m].map;
        const double flop = (double)C * map->D;
        for (causal = 1; causal >= 0; causal--) {
            snprintf(name, sizeof name, "%s_forward_%s_%d", maps[m].name, causal ? "causal" : "full", T);
            measure(name, mapped_forward, NULL, maps[m].forward * flop * T);
            snprintf(name, sizeof name, "%s_backward_%s_%d", maps[m].name, causal ? "causal" : "full", T);
            measure(name, mapped_backward, NULL, maps[m].backward * flop * T);
        }
        snprintf(name, sizeof name, "%s_chunk", maps[m].name);
        measure(name, mapped_chunk, NULL, maps[m].forward * flop * CHUNK);
    }
    snprintf(name, sizeof name, "softmax_chunk_%d", T);
    measure(name, stream_chunk, NULL, 4.0 * CHUNK * T * C);
}

static float *filled(size_t n)
{
    float *x = lin_calloc(n, sizeof *x);
    if (!x) {
        fprintf(stderr, "bench_attention: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++) x[i] = (float)(2 * lin_random_uniform(1, i) - 1);
    return x;
}

int main(int argc, char **argv)
{
    int lengths[16] = {800, 2400}, n_lengths = 0, longest = 0;
    lin_error err = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plain") == 0) {
            plain = 1;
        } else if (strcmp(argv[i], "--cpu-time") == 0) {
            bench_clock = CLOCK_THREAD_CPUTIME_ID;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            n_threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc) {
            n_repeats = atoi(argv[++i]);
        } else if (n_lengths < 16 && atoi(argv[i]) >= CHUNK && atoi(argv[i]) <= MOST_T) {
            lengths[n_lengths++] = atoi(argv[i]);
        } else {
            fprintf(stderr, "usage: bench_attention [--threads N] [--repeats N] [--plain] [--cpu-time] [T ...]\n");
            return 2;
        }
    }
    if (n_threads < 1 || n_threads > PEAK_THREADS || bench_clock != CLOCK_MONOTONIC) n_threads = 1;
    if (n_repeats < 1 || n_repeats > MOST_REPEATS) n_repeats = 9;
    if (!n_lengths) n_lengths = 2;
    for (int i = 0; i < n_lengths; i++) longest = lengths[i] > longest ? lengths[i] : longest;
    const size_t frames = (size_t)longest, scored = frames < NAIVE_T ? frames : NAIVE_T;
    ops = lin_ops_cpu();
    if (ops->exec_create(ops, n_threads, &exec, &err) != LIN_OK) {
        fprintf(stderr, "bench_attention: %s\n", err.message);
        return 1;
    }
    float **blocks[] = {&qkv, &dqkv, &y, &dy, &lse, &p, &kv, &omega, &state};
    const size_t sizes[] = {frames * 3 * C,      frames * 3 * C, frames * C, frames * C,      frames * H,
                            H * scored * scored, frames * 2 * C, C * MOST_D, (C + H) * MOST_D};
    for (int i = 0; i < 9; i++) *blocks[i] = filled(sizes[i]);
    peak = bench_peak(n_threads);
    if (!plain)
        printf("%s, %d thread%s, peak %.1f GFLOP/s\n%-36s %10s %10s %13s\n", lin_cpu_isa(), n_threads, n_threads > 1 ? "s" : "",
               peak, "", "best", "median", "of peak");
    for (int i = 0; i < n_lengths; i++) {
        T = lengths[i];
        measure_all();
    }
    for (int i = 0; i < 9; i++) lin_free(*blocks[i]);
    ops->exec_destroy(exec);
    return 0;
}
