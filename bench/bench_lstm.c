/*
 * bench_lstm.c - speed of stacks of LSTM layers: 3 x 320, 16 utterances of 800 frames of 40 features, in both directions of time
 * and causal; forward and a training step; and one live stream. As shares of the peak measured in the same run.
 *
 *   bench_lstm [--threads N] [--repeats N] [--frames N] [--plain] [--quick] [--cpu-time]
 *
 * A training step packs the weights, runs forward, and backward to all weights and biases. The stream is one utterance on one
 * thread, 4 frames a call. --cpu-time: one thread, in processor time, for a machine with other load. --plain prints lines `linnet
 * NAME VALUE`, one for each run, for bench/lstm.sh, which gives the same work to PyTorch. Weights and features are random.
 */
#include <stdint.h>
#include <stdio.h>

#include "bench/peak.h"
#include "base/hash.h"

enum { B = 16, D = 40, U = 320, LAYERS = 3, CHUNK_FRAMES = 4, CHUNKS = 500, MAX_REPEATS = 101 };

static int n_threads = 2, n_repeats = 3, n_frames = 800, n_chunks = CHUNKS, plain = 0;
static double peak;
static const lin_ops *ops;
static lin_exec *exec;
static lin_error err;

static void must(lin_status status)
{
    if (status == LIN_OK) return;
    fprintf(stderr, "bench_lstm: %s\n", err.message);
    exit(1);
}

static float *values(size_t n, double most)
{
    void *block;
    must(ops->memory_create(exec, n * sizeof(float), &block, &err));
    float *x = block;
    for (size_t i = 0; i < n && most > 0; i++) x[i] = (float)(most * (2 * lin_random_uniform(7, i) - 1));
    return x;
}

/* ---- a stack of layers ----------------------------------------------------------------------------------------------------- */

typedef struct layer {
    int k;                                                                 // width of the input
    float *w, *bias, *R, *packed_w, *packed_w_dx, *packed_R, *packed_R_dx; // w [directions 4U, k], R [directions, 4U, U]
    float *gates, *h, *cells, *dgates, *dh, *dw, *dbias, *dR;
} layer;

typedef struct stack {
    int directions, rows;
    layer layers[LAYERS];
    float *x, *dh;
    int offsets[B + 1];
    lin_segments segments;
    float *states[LAYERS][1];
} stack;

static size_t pitch(int n, int k) { return (ops->weight_size(n, k) + 15) / 16 * 16; }

static void stack_pack(const stack *s, int for_training)
{
    const int n = s->directions * 4 * U;
    for (const layer *l = s->layers; l < s->layers + LAYERS; l++) {
        lin_packing items[2], items_dx[2];
        for (int d = 0; d < s->directions; d++) {
            const size_t from = (size_t)d * 4 * U * U;
            items[d] = (lin_packing){.from = from, .to = (size_t)d * pitch(4 * U, U), .n = 4 * U, .k = U};
            items_dx[d] = (lin_packing){.from = from, .to = (size_t)d * pitch(U, 4 * U), .n = 4 * U, .k = U, .transposed = 1};
        }
        ops->weights_pack(exec, l->packed_R, l->R, items, s->directions);
        ops->weights_pack(exec, l->packed_w, l->w, &(lin_packing){.n = n, .k = l->k}, 1);
        if (!for_training) continue;
        ops->weights_pack(exec, l->packed_R_dx, l->R, items_dx, s->directions);
        ops->weights_pack(exec, l->packed_w_dx, l->w, &(lin_packing){.n = n, .k = l->k, .transposed = 1}, 1);
    }
}

static void stack_make(stack *s, int directions, int utterances, int frames, int for_training)
{
    *s = (stack){.directions = directions, .rows = utterances * frames};
    for (int b = 0; b <= utterances; b++) s->offsets[b] = b * frames;
    s->segments = (lin_segments){utterances, s->rows, frames, s->offsets};
    const int n = directions * 4 * U;
    const size_t rows = (size_t)s->rows, wide = rows * (size_t)n, narrow = wide / 4;
    s->x = values(rows * D, 3);
    s->dh = values(narrow, 1);
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &s->layers[i];
        l->k = i == 0 ? D : directions * U;
        l->w = values((size_t)n * (size_t)l->k, 0.056);
        l->bias = values((size_t)n, 0.056);
        l->R = values((size_t)n * U, 0.056);
        l->packed_w = values(ops->weight_size(n, l->k), 0);
        l->packed_R = values((size_t)directions * pitch(4 * U, U), 0);
        l->gates = values(wide, 0);
        l->h = values(narrow, 0);
        l->cells = values(narrow, 0);
        s->states[i][0] = values(2 * U, 0);
        if (!for_training) continue;
        l->packed_w_dx = values(ops->weight_size(l->k, n), 0);
        l->packed_R_dx = values((size_t)directions * pitch(U, 4 * U), 0);
        l->dgates = values(wide, 0);
        l->dh = i + 1 < LAYERS ? values(narrow, 0) : s->dh;
        l->dw = values((size_t)n * (size_t)l->k, 0);
        l->dbias = values((size_t)n, 0);
        l->dR = values((size_t)n * U, 0);
    }
    stack_pack(s, for_training);
}

static void stack_free(stack *s)
{
    for (layer *l = s->layers; l < s->layers + LAYERS; l++) {
        float *all[] = {l->w,           l->bias,     l->R,           l->packed_w,
                        l->packed_w_dx, l->packed_R, l->packed_R_dx, l->gates,
                        l->h,           l->cells,    l->dgates,      l->dh,
                        l->dw,          l->dbias,    l->dR,          s->states[l - s->layers][0]};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i] != s->dh) ops->memory_destroy(exec, all[i]);
    }
    ops->memory_destroy(exec, s->x);
    ops->memory_destroy(exec, s->dh);
}

static void stack_forward(stack *s, int with_states)
{
    const float *x = s->x;
    for (int i = 0; i < LAYERS; i++) {
        const layer *l = &s->layers[i];
        ops->linear_forward(exec, l->gates, x, l->packed_w, l->bias, s->rows, s->directions * 4 * U, l->k, LIN_LINEAR);
        ops->lstm_forward(exec, l->h, l->cells, l->gates, l->packed_R, &s->segments, U, s->directions,
                          with_states ? s->states[i] : NULL, 0);
        x = l->h;
    }
}

static void stack_train(stack *s)
{
    const int n = s->directions * 4 * U;
    stack_pack(s, 1);
    stack_forward(s, 0);
    for (int i = LAYERS - 1; i >= 0; i--) {
        const layer *l = &s->layers[i];
        const size_t wide = (size_t)n * sizeof(float);
        ops->zero(exec, l->dR, wide * U);
        ops->zero(exec, l->dw, wide * (size_t)l->k);
        ops->zero(exec, l->dbias, wide);
        ops->lstm_backward(exec, l->dgates, l->dR, l->dh, l->h, l->cells, l->gates, l->packed_R_dx, &s->segments, U,
                           s->directions);
        ops->linear_backward_weight(exec, l->dw, l->dbias, l->dgates, i ? l[-1].h : s->x, s->rows, n, l->k);
        if (i) ops->linear_forward(exec, l[-1].dh, l->dgates, l->packed_w_dx, NULL, s->rows, l->k, n, LIN_LINEAR);
    }
}

/* ---- measurements ---------------------------------------------------------------------------------------------------------- */

static void say(const char *name, double value, const char *note)
{
    if (plain) printf("linnet %s %.6g\n", name, value);
    else printf("%-32s %10.5g ms %s\n", name, value, note);
    fflush(stdout);
}

static void say_runs(const char *name, double flop, double *time, int n)
{
    const double again = bench_peak_in(LIN_PRECISION_FP32, n_threads, 5);
    if (again > peak) peak = again;
    if (plain) printf("linnet peak_gflops %.6g\n", again);
    for (int r = 0; plain && r < n; r++) {
        printf("linnet %s:gflops %.6g\n", name, flop / time[r] * 1e-9);
        say(name, 1000 * time[r], "");
    }
    if (plain) return;
    char note[128];
    const double median = bench_quantile(time, n, 0.5);
    snprintf(note, sizeof note, "best: %.1f %% of the peak; median %.5g ms", 100 * flop / time[0] * 1e-9 / peak, 1000 * median);
    say(name, 1000 * time[0], note);
}

// Multiplications and additions of the products of one frame, forward.
static double flop_per_frame(int directions)
{
    return 2.0 * directions * 4 * U * ((D + U) + (LAYERS - 1) * (directions * U + U));
}

static void measure_batch(int directions)
{
    static stack s;
    double time[MAX_REPEATS];
    const char *kind = directions == 2 ? "bidirectional" : "causal";
    const double flop = flop_per_frame(directions) * B * n_frames, inputs = 2.0 * directions * 4 * U * D * B * n_frames;
    char name[64];
    stack_make(&s, directions, B, n_frames, 1);
    for (int r = -1; r < n_repeats; r++) {
        const double start = bench_now();
        stack_forward(&s, 0);
        if (r >= 0) time[r] = bench_now() - start;
    }
    snprintf(name, sizeof name, "forward_%s_ms", kind);
    say_runs(name, flop, time, n_repeats);
    for (int r = -1; r < n_repeats; r++) {
        const double start = bench_now();
        stack_train(&s);
        if (r >= 0) time[r] = bench_now() - start;
    }
    snprintf(name, sizeof name, "train_%s_ms", kind);
    say_runs(name, 3 * flop - inputs, time, n_repeats);
    stack_free(&s);
}

static void measure_stream(void)
{
    static stack s;
    static double time[CHUNKS];
    stack_make(&s, 1, 1, CHUNK_FRAMES, 0);
    for (int i = -10; i < n_chunks; i++) {
        const double start = bench_now();
        stack_forward(&s, 1);
        if (i >= 0) time[i] = bench_now() - start;
    }
    const double p50 = bench_quantile(time, n_chunks, 0.5);
    say("chunk_p50_ms", 1000 * p50, "one stream, one thread, 4 frames a call");
    say("chunk_p99_ms", 1000 * bench_quantile(time, n_chunks, 0.99), "");
    stack_free(&s);
}

static int number(const char *text, int most)
{
    const int n = atoi(text);
    if (n < 1 || n > most) must(lin_fail(&err, LIN_INVALID, "%s is not a number from 1 to %d", text, most));
    return n;
}

static void open_exec(int threads)
{
    if (exec) ops->exec_destroy(exec);
    must(ops->exec_create(ops, threads, &exec, &err));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--threads") == 0) n_threads = number(value, PEAK_THREADS), i++;
        else if (strcmp(argv[i], "--repeats") == 0) n_repeats = number(value, MAX_REPEATS), i++;
        else if (strcmp(argv[i], "--frames") == 0) n_frames = number(value, 100000), i++;
        else if (strcmp(argv[i], "--plain") == 0) plain = 1;
        else if (strcmp(argv[i], "--quick") == 0) n_repeats = 1, n_frames = 40, n_chunks = 20;
        else if (strcmp(argv[i], "--cpu-time") == 0) bench_clock = CLOCK_THREAD_CPUTIME_ID, n_threads = 1;
        else must(lin_fail(&err, LIN_INVALID, "unknown option %s", argv[i]));
    }
    ops = lin_ops_cpu();
    open_exec(n_threads);
    measure_batch(2);
    measure_batch(1);
    open_exec(1);
    measure_stream();
    ops->exec_destroy(exec);
    return 0;
}
