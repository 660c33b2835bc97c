/*
 * bench_model.c - speed of the paper's network (9 layers, 6 heads, width 192, feed-forward 768, every frame): many utterances, a
 * training step, and one live stream; as shares of the peak measured in the same run.
 *
 *   bench_model [--threads N] [--repeats N] [--plain] [--precision fp32|bf16|int8] [--cpu-time] [--training]
 *
 * --precision bf16 or int8 alternates with fp32; shares are of the peak of that precision's instruction; int8 has no training.
 * --training: the training steps only. --cpu-time: one thread, in processor time, for a machine with other load. --plain prints
 * a line `linnet NAME VALUE` for each run (with bf16 and int8 as int8_NAME, without fp32), for bench/peers.sh, which gives the
 * same work to PyTorch and ONNX Runtime. Weights and features are random.
 */
#include <stdint.h>
#include <stdio.h>

#include "bench/peak.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/hash.h"
#include "train/optimizer.h"
#include "model/streams.h"

enum { B = 16, T = 800, LABELS = 80, V = 40, D = 40, CHUNK_FRAMES = 4, MAX_REPEATS = 101 };

static int n_threads = 2, n_repeats = 5, plain = 0;
static double peak, peak_1;
static const lin_ops *ops, *rival; // rival: fp32 for comparison with bf16 or int8, or NULL
static lin_error err;

static void must(lin_status status)
{
    if (status == LIN_OK) return;
    fprintf(stderr, "bench_model: %s\n", err.message);
    exit(1);
}

static void *must_have(void *block)
{
    if (!block) must(lin_fail(&err, LIN_NO_MEMORY, "out of memory"));
    return block;
}

// Before the names of --plain, unless the precision is fp32: "int8_".
static char precision_prefix[16];

static void say(const char *name, double value, const char *unit, const char *note)
{
    if (plain) {
        printf("linnet %s%s %.6g\n", precision_prefix, name, value);
    } else {
        printf("%-36s %12.5g %-9s %s\n", name, value, unit, note);
    }
    fflush(stdout);
}

// Runs of `flop` each that took time[0 .. n-1], which are sorted here: frames per second, or, if frames is 0, milliseconds. The
// best relative to the best of the peak, because other load only makes a run slower; and the median. --plain: one line per run.
static void say_runs(const char *name, double frames, double flop, double *time, int n)
{
    const double median = bench_quantile(time, n, 0.5), again = bench_peak_in(ops->precision, n_threads, 5);
    if (again > peak) peak = again;
    if (plain) {
        printf("linnet %speak_gflops %.6g\n", precision_prefix, again);
        for (int r = 0; r < n; r++) {
            printf("linnet %s%s %.6g\n", precision_prefix, name, frames > 0 ? frames / time[r] : 1000 * time[r]);
            printf("linnet %s%s:gflops %.6g\n", precision_prefix, name, flop / time[r] * 1e-9);
        }
        fflush(stdout);
        return;
    }
    char note[128];
    snprintf(note, sizeof note, "best: %.0f GFLOP/s, %.1f %% of the peak; median %.5g, %.1f %%", flop / time[0] * 1e-9,
             100 * flop / time[0] * 1e-9 / peak, frames > 0 ? frames / median : 1000 * median, 100 * flop / median * 1e-9 / peak);
    say(name, frames > 0 ? frames / time[0] : 1000 * time[0], frames > 0 ? "frames/s" : "ms", note);
}

static lin_model *make_model(int causal, double dropout)
{
    lin_config config = lin_config_default(V);
    config.causal = causal;
    config.dropout = dropout;
    const lin_features features = lin_features_default();
    lin_model *model;
    must(lin_model_create(&config, &features, NULL, 1, &model, &err));
    return model;
}

static float *make_features(int frames)
{
    float *x = must_have(lin_calloc((size_t)frames * D, sizeof *x));
    for (size_t i = 0; i < (size_t)frames * D; i++) x[i] = (float)(6 * lin_random_uniform(2, i) - 3);
    return x;
}

/* ---- many utterances: one worker per thread, one utterance at a time, as files are transcribed ----------------------------- */

typedef struct many {
    lin_encoder *encoder;
    lin_worker *workers[PEAK_THREADS];
    float *features, *logp;
    lin_status status[B];
} many;

static void one_utterance(void *context, int piece, int thread)
{
    many *m = context;
    m->status[piece] = lin_encoder_run(m->workers[thread], m->features + (size_t)piece * T * D, (const int[]){0, T}, 1,
                                       m->logp + (size_t)piece * T * V, NULL);
}

static void many_create(many *m, const lin_model *model, const lin_ops *table)
{
    must(lin_encoder_create(model, table, &m->encoder, &err));
    for (int i = 0; i < n_threads; i++) must(lin_worker_create(m->encoder, 1, &m->workers[i], &err));
}

static double many_run(many *m, lin_pool *pool)
{
    const double start = bench_now();
    lin_pool_run(pool, B, one_utterance, m);
    const double seconds = bench_now() - start;
    for (int b = 0; b < B; b++) must(m->status[b]);
    return seconds;
}

static void many_destroy(many *m)
{
    for (int i = 0; i < n_threads; i++) lin_worker_destroy(m->workers[i]);
    lin_encoder_destroy(m->encoder);
}

static void bench_forward(int causal, const char *name)
{
    lin_model *model = make_model(causal, 0);
    lin_pool *pool;
    many m = {.features = make_features(B * T), .logp = must_have(lin_calloc((size_t)B * T * V, sizeof(float)))}, other = m;
    must(lin_pool_create(n_threads, &pool, &err));
    many_create(&m, model, ops);
    if (rival) many_create(&other, model, rival);
    double time[MAX_REPEATS], rival_time[MAX_REPEATS], ratio[MAX_REPEATS];
    for (int r = -1; r < n_repeats; r++) {
        const double seconds = many_run(&m, pool), rival_seconds = rival ? many_run(&other, pool) : 0;
        if (r < 0) continue;
        time[r] = seconds;
        rival_time[r] = rival_seconds;
        ratio[r] = rival_seconds / seconds;
    }
    say_runs(name, B * T, lin_config_flop(&model->config) * B * T, time, n_repeats);
    if (rival) {
        char other_name[64];
        snprintf(other_name, sizeof other_name, "fp32_%s", name);
        say(other_name, B * T / bench_quantile(rival_time, n_repeats, 0), "frames/s", "best, alternating");
        say("speedup", bench_quantile(ratio, n_repeats, 0.5), "x", "median of the pairs");
        many_destroy(&other);
    }
    many_destroy(&m);
    lin_pool_destroy(pool);
    lin_model_destroy(model);
    lin_free(m.features);
    lin_free(m.logp);
}

/* ---- a training step: forward, CTC, backward, optimiser, packing ----------------------------------------------------------- */

typedef struct training {
    const lin_ops *ops;
    lin_exec *exec;
    lin_model *model;
    lin_weights *weights;
    lin_activations *activations;
    lin_optimizer optimizer;
    float *logp, *dlogits, *gradients;
} training;

static lin_optimizer_options adam(void)
{
    lin_optimizer_options options = lin_optimizer_default();
    options.kind = LIN_ADAM;
    return options;
}

static void training_create(training *t, const lin_ops *table, int causal, double dropout)
{
    const lin_optimizer_options options = adam();
    t->ops = table;
    t->model = make_model(causal, dropout);
    const lin_config *c = &t->model->config;
    const size_t n = t->model->params.n_elements, count = (size_t)B * T * V;
    must(table->exec_create(table, n_threads, &t->exec, &err));
    must(lin_weights_create(table, t->exec, c, &t->model->params, t->model->values, NULL, 1, &t->weights, &err));
    must(lin_activations_create(table, t->exec, c, B * T, T, 1, &t->activations, &err));
    must(lin_optimizer_init(&t->optimizer, table, t->exec, &t->model->params, &options, &err));
    t->logp = must_have(lin_calloc(count, sizeof *t->logp));
    t->dlogits = must_have(lin_calloc(count, sizeof *t->dlogits));
    t->gradients = must_have(lin_calloc(n, sizeof *t->gradients));
}

static void training_destroy(training *t)
{
    lin_optimizer_free(&t->optimizer);
    lin_activations_destroy(t->activations);
    lin_weights_destroy(t->weights);
    t->ops->exec_destroy(t->exec);
    lin_model_destroy(t->model);
    lin_free(t->logp);
    lin_free(t->dlogits);
    lin_free(t->gradients);
}

// The seconds of step `number` (from 1 on).
static double training_step(training *t, int number, const float *features, const lin_segments *segments)
{
    static int labels[B * LABELS], label_offsets[B + 1];
    const uint64_t key = (uint64_t)number;
    const lin_optimizer_options options = adam();
    const lin_adam_step scalars = lin_optimizer_scalars(&options, number, 1e-4);
    const lin_batch batch = {.in = *segments, .out = *segments, .features = features, .mean = t->model->mean,
                             .istd = t->model->istd, .dropout_key = t->model->config.dropout > 0 ? &key : NULL};
    const size_t n = t->model->params.n_elements;
    const double share = 1.0 / B;
    lin_tally tally = {0};
    double losses[B];
    for (int i = 0; i < B * LABELS; i++) labels[i] = 1 + (int)lin_random_below(3, (uint64_t)i, V - 1);
    for (int b = 0; b <= B; b++) label_offsets[b] = b * LABELS;
    const double start = bench_now();
    lin_network_forward(t->weights, t->activations, t->exec, &batch, t->logp);
    t->ops->ctc(t->exec, losses, t->dlogits, t->logp, segments, labels, label_offsets, LABELS, V, &share);
    t->ops->tally_losses(t->exec, &tally, losses, segments, label_offsets);
    t->ops->zero(t->exec, t->gradients, n * sizeof *t->gradients);
    lin_network_backward(t->weights, t->activations, t->exec, &batch, t->dlogits, t->gradients);
    lin_optimizer_step(&t->optimizer, t->exec, t->model->values, t->gradients, &scalars, &tally);
    lin_weights_pack(t->weights, t->exec);
    return bench_now() - start;
}

static void bench_training(int causal, double dropout, const char *name)
{
    training t, other;
    training_create(&t, ops, causal, dropout);
    if (rival) training_create(&other, rival, causal, dropout);
    const lin_config *c = &t.model->config;
    float *features = make_features(B * T);
    int offsets[B + 1];
    for (int b = 0; b <= B; b++) offsets[b] = b * T;
    const lin_segments segments = {.B = B, .rows = B * T, .longest = T, .offsets = offsets};
    double time[MAX_REPEATS], rival_time[MAX_REPEATS], ratio[MAX_REPEATS];
    for (int r = -1; r < n_repeats; r++) {
        const double seconds = training_step(&t, r + 2, features, &segments),
                     rival_seconds = rival ? training_step(&other, r + 2, features, &segments) : 0;
        if (r < 0) continue;
        time[r] = seconds;
        rival_time[r] = rival_seconds;
        ratio[r] = rival_seconds / seconds;
    }
    say_runs(name, 0, 3 * lin_config_flop(c) * B * T, time, n_repeats);
    if (rival) {
        const double best = bench_quantile(rival_time, n_repeats, 0);
        char text[64];
        snprintf(text, sizeof text, "fp32_%s", name);
        say(text, 1000 * best, "ms", "best, alternating");
        snprintf(text, sizeof text, "median of the pairs; best with best %.3f", best / bench_quantile(time, n_repeats, 0));
        say("speedup", bench_quantile(ratio, n_repeats, 0.5), "x", text);
        training_destroy(&other);
    }
    training_destroy(&t);
    lin_free(features);
}

/* ---- one live stream, one thread, 40 ms at a time -------------------------------------------------------------------------- */

static void say_chunks(const char *prefix, double *time, int n)
{
    char name[64], note[64];
    const double middle = 1000 * bench_quantile(time, n, 0.5);
    snprintf(name, sizeof name, "%schunk_p50_ms", prefix);
    snprintf(note, sizeof note, "%.2f %% of a core", 100 * middle / 40);
    say(name, middle, "ms", note);
    snprintf(name, sizeof name, "%schunk_p99_ms", prefix);
    say(name, 1000 * bench_quantile(time, n, 0.99), "ms", "");
}

static lin_status feed(lin_streams *stream, const float *frames, int n, lin_tick_results *rows)
{
    return lin_streams_tick(stream, &(lin_tick){.n = 1, .slots = (const int[]){0}, .counts = &n, .input = frames}, rows, &err);
}

// From features to log-probabilities, like the peers.
static void bench_stream(const lin_ops *table, const char *prefix)
{
    enum { CHUNKS = 500 };
    lin_model *model = make_model(1, 0);
    lin_encoder *encoder;
    lin_streams *stream;
    must(lin_encoder_create(model, table, &encoder, &err));
    const lin_streams_options one = {.capacity = 1, .exact = 1, .threads = 1};
    must(lin_streams_create(encoder, &one, &stream, &err));
    float *features = make_features(CHUNKS * CHUNK_FRAMES);
    double time[CHUNKS];
    lin_tick_results rows;
    for (int i = 0; i < CHUNKS; i++) {
        const double start = bench_now();
        must(feed(stream, features + (size_t)i * CHUNK_FRAMES * D, CHUNK_FRAMES, &rows));
        time[i] = bench_now() - start;
    }
    say_chunks(prefix, time, CHUNKS);
    lin_streams_destroy(stream);
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    lin_free(features);
}

int main(int argc, char **argv)
{
    const char *precision = "fp32";
    int training_only = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plain") == 0) {
            plain = 1;
        } else if (strcmp(argv[i], "--cpu-time") == 0) {
            bench_cpu_time = 1;
        } else if (strcmp(argv[i], "--training") == 0) {
            training_only = 1;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            n_threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc) {
            n_repeats = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc) {
            precision = argv[++i];
        } else {
            fprintf(stderr, "usage: bench_model [--threads N] [--repeats N] [--plain] [--precision fp32|bf16|int8] "
                            "[--cpu-time] [--training]\n");
            return 2;
        }
    }
    if (bench_cpu_time) n_threads = 1;
    if (n_threads < 1 || n_threads > PEAK_THREADS) n_threads = 2;
    if (n_repeats < 1 || n_repeats > MAX_REPEATS) n_repeats = 5;
    ops = bench_cpu(precision, &err);
    if (!ops) must(err.status);
    if (ops->precision != LIN_PRECISION_FP32 && !plain) rival = lin_ops_cpu();
    if (ops->precision != LIN_PRECISION_FP32) snprintf(precision_prefix, sizeof precision_prefix, "%s_", precision);
    peak_1 = bench_peak_in(ops->precision, 1, 20);
    peak = n_threads > 1 ? bench_peak_in(ops->precision, n_threads, 20) : peak_1;
    if (!plain)
        printf("%s %s, threads: %d; %d utterances of %d frames, %d labels\n", lin_cpu_isa(), precision, n_threads, B, T,
               LABELS);
    say("peak_gflops", peak, "GFLOP/s", "multiply-adds between registers, all threads");
    say("peak_1_gflops", peak_1, "GFLOP/s", "one thread");
    if (!training_only) {
        bench_forward(1, "forward_causal_frames_per_s");
        bench_forward(0, "forward_bidirectional_frames_per_s");
    }
    if (ops->precision != LIN_PRECISION_INT8) {
        bench_training(1, 0.1, "train_causal_ms");
        bench_training(0, 0.1, "train_bidirectional_ms");
    }
    if (training_only) return 0;
    bench_stream(ops, "");
    if (rival) bench_stream(rival, "fp32_");
    return 0;
}
