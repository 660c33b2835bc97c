/*
 * Live streams: the largest number for which a tick takes no longer than its sound. Every stream gets a chunk in every tick;
 * sound goes in and phonemes come out if the backend has filterbanks, else features go in. Random weights of the paper's causal
 * network, or of that of the model --file, without its running level. --pass-streams: instead --rows streams, in passes of that
 * many.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "bench/gpu/gpu.h"
#include "bench/peak.h"
#include "frontend/fbank.h"
#include "linnet/recognizer.h"
#include "model/model.h"
#include "model/streams.h"

enum { MOST_TICKS = 400 };

typedef struct trial {
    double p50, p99; // seconds
    size_t bytes_each;
    int ticks;
} trial;

static int enough_memory(const gpu_bench *b, double bytes)
{
    lin_device device;
    return strcmp(b->ops->name, "cuda") != 0 || !lin_device_get(b->ops->device, &device) ||
           bytes < 0.8 * (double)device.free_bytes;
}

// n streams, chunk frames per tick, for about `seconds`. 0: not enough memory for them.
static int try_streams(const gpu_bench *b, const lin_encoder *encoder, const lin_fbank_table *table, int n, int chunk,
                       double seconds, trial *t)
{
    const int sound = b->ops->fbank != NULL, each = sound ? chunk * table->hop_samples : chunk;
    const size_t width = sound ? 1 : D;
    lin_error err = {0};
    lin_streams *streams;
    if (!enough_memory(b, n * ((b->file ? 430e3 : 230e3) + chunk * 40e3 / 4))) return 0;
    const lin_streams_options o = {.capacity = n, .longest = chunk, .batch = b->pass_streams, .fbank = sound ? table : NULL,
                                   .decodes = 1, .exact = 1};
    if (lin_streams_create(encoder, &o, &streams, &err) != LIN_OK) return 0;
    int *slots = lin_alloc((size_t)n, sizeof *slots), *counts = lin_alloc((size_t)n, sizeof *counts);
    double *time = lin_calloc(MOST_TICKS, sizeof *time);
    if (!slots || !counts || !time) gpu_must(lin_no_memory(&err, "streams", (size_t)n * sizeof *slots), &err);
    for (int i = 0; i < n; i++) {
        slots[i] = i;
        counts[i] = each;
    }
    float *input = lin_streams_input(streams);
    const size_t count = (size_t)n * (size_t)each * width;
    for (size_t i = 0; i < count; i++) input[i] = (float)(lin_random_bits(9, i / 8) >> (8 * (i % 8)) & 255) / 256 - 0.5f;
    const lin_tick tick = {.n = n, .slots = slots, .counts = counts, .input = input};
    lin_tick_results results;
    // the first ticks wait for whole windows and record their graphs
    for (int i = 0; i < 4; i++) gpu_must(lin_streams_tick(streams, &tick, &results, &err), &err);
    const double start = bench_now();
    int ticks = 0;
    while (ticks < MOST_TICKS && (ticks < 20 || bench_now() - start < seconds)) {
        const double begin = bench_now();
        gpu_must(lin_streams_tick(streams, &tick, &results, &err), &err);
        time[ticks++] = bench_now() - begin;
        if (b->quick && ticks == 3) break;
    }
    *t = (trial){.p50 = bench_quantile(time, ticks, 0.5), .p99 = bench_quantile(time, ticks, 0.99), .ticks = ticks,
                 .bytes_each = lin_streams_bytes_each(streams)};
    lin_free(slots);
    lin_free(counts);
    lin_free(time);
    lin_streams_destroy(streams);
    return 1;
}

static void say_trial(const gpu_bench *b, int n, int chunk, const trial *t)
{
    gpu_line(b->pass_streams ? "streams in passes" : b->file ? "streams of a model" : "streams", "linnet");
    gpu_text("precision", b->precision_name);
    gpu_text("what", b->ops->fbank ? "sound to phonemes" : "features to phonemes");
    gpu_number("chunk_frames", chunk);
    gpu_number("streams", n);
    if (b->pass_streams) gpu_number("pass_streams", b->pass_streams);
    gpu_number("p50_ms", 1e3 * t->p50);
    gpu_number("p99_ms", 1e3 * t->p99);
    gpu_number("ticks", t->ticks);
    gpu_number("in_time", t->p99 <= 0.01 * chunk);
    gpu_number("bytes_each", (double)t->bytes_each);
    gpu_line_end();
}

// Doubles the number while ticks are far below the limit, then narrows down to the largest number that meets it.
static void find_limit(const gpu_bench *b, const lin_encoder *encoder, const lin_fbank_table *table, int chunk, double until)
{
    const double period = 0.01 * chunk;
    int good = 0, bad = 0;
    for (int n = b->rows ? b->rows : b->quick ? 3 : 1024, tries = 0; tries < 14 && bench_now() < until; tries++) {
        trial t;
        if (!try_streams(b, encoder, table, n, chunk, 0.12 * (until - bench_now()), &t)) {
            bad = n;
        } else {
            say_trial(b, n, chunk, &t);
            if (t.p99 <= period) good = n;
            else bad = n;
        }
        if (b->quick || b->pass_streams || (bad && bad - good <= good / 16 + 1)) break;
        n = bad ? good + (bad - good) / 2 : 2 * good;
        if (n < 1) break;
    }
    if (!good || b->pass_streams) return;
    gpu_line("streams most", b->file ? "linnet, the network of --file" : "linnet");
    gpu_text("precision", b->precision_name);
    gpu_number("chunk_frames", chunk);
    gpu_number("streams", good);
    gpu_line_end();
}

void gpu_part_streams(gpu_bench *b)
{
    static const int chunks[] = {4, 1, 8, 16};
    lin_fbank_table table;
    lin_error err = {0};
    lin_model *model;
    lin_encoder *encoder;
    lin_config config = lin_config_default(V);
    const lin_features features = lin_features_default();
    const lin_fbank_config fbank = lin_fbank_from_model(&features, D);
    gpu_must(lin_fbank_table_create(&fbank, &table, &err), &err);
    if (b->file) {
        gpu_must(lin_model_load(b->file, &model, &err), &err);
        config = model->config;
        lin_model_destroy(model);
    }
    gpu_must(lin_backend_open(b->device, b->precision, &b->ops, &err), &err);
    gpu_must(lin_model_create(&config, &features, NULL, 1, &model, &err), &err);
    gpu_must(lin_encoder_create(model, b->ops, &encoder, &err), &err);
    // --quick --rows N: that many streams, of which bench/gpu_bytes.sh counts a tick
    const int n_chunks = b->pass_streams || (b->quick && b->rows) ? 1 : 4;
    for (int i = 0; i < n_chunks; i++) {
        const double now = bench_now(), left = b->deadline - now;
        if (left > 0) find_limit(b, encoder, &table, chunks[i], now + left / (n_chunks - i));
    }
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    lin_fbank_table_free(&table);
}
