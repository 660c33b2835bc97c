/* turns_side.c - one side of turns.c: live streams of the paper's network or a model, of the library that this is linked with. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"
#include "model/model_file.h"
#include "model/streams.h"

/* Of earlier versions, whose slots had to be opened. */
extern lin_status lin_streams_open(lin_streams *streams, int *slot, lin_error *err) __attribute__((weak));

static lin_streams *all;
static int n_streams, n_tick, n_rows, *slots, *used, *counts, first, outputs;

static void must(lin_status status, const lin_error *err)
{
    if (status == LIN_OK) return;
    fprintf(stderr, "turns: %s\n", err->message);
    exit(1);
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// model: a file, or "" for the paper's network.
void side_open(int streams, int tick, int rows, const char *model_file);
void side_open(int streams, int tick, int rows, const char *model_file)
{
    lin_config config = lin_config_default(40);
    const lin_features features = lin_features_default();
    const lin_streams_options options = {.capacity = streams, .batch = tick, .longest = rows, .threads = 1};
    lin_error err;
    lin_model *model;
    lin_encoder *encoder;
    n_streams = streams;
    n_tick = tick < streams ? tick : streams;
    n_rows = rows;
    if (*model_file) must(lin_model_load(model_file, &model, &err), &err);
    else must(lin_model_create(&config, &features, NULL, 1, &model, &err), &err);
    config = model->config;
    outputs = config.outputs;
    must(lin_encoder_create(model, lin_ops_cpu(), &encoder, &err), &err);
    must(lin_streams_create(encoder, &options, &all, &err), &err);
    slots = lin_calloc((size_t)streams, sizeof *slots);
    used = lin_calloc((size_t)streams, sizeof *used);
    counts = lin_calloc((size_t)streams, sizeof *counts);
    if (!slots || !used || !counts) exit(1);
    for (int i = 0; i < streams; i++) {
        slots[i] = i;
        if (lin_streams_open) must(lin_streams_open(all, &slots[i], &err), &err);
    }
    float *input = lin_streams_input(all);
    for (int i = 0; i < n_tick * rows * config.mel_bins; i++) input[i] = (float)(6 * lin_random_uniform(2, (uint64_t)i) - 3);
}

// A tick of the streams whose turn it is: its seconds. The checksum is FNV-1a of its log-probabilities.
double side_tick(uint64_t *checksum);
double side_tick(uint64_t *checksum)
{
    for (int i = 0; i < n_tick; i++, first = (first + 1) % n_streams) {
        used[i] = slots[first];
        counts[i] = n_rows;
    }
    const lin_tick tick = {.n = n_tick, .slots = used, .counts = counts, .input = lin_streams_input(all)};
    lin_tick_results results;
    lin_error err;
    const double start = thread_seconds();
    must(lin_streams_tick(all, &tick, &results, &err), &err);
    const double seconds = thread_seconds() - start;
    const unsigned char *bytes = (const unsigned char *)results.logp;
    for (size_t i = 0; i < (size_t)results.offsets[n_tick] * (size_t)outputs * sizeof(float); i++)
        *checksum = (*checksum ^ bytes[i]) * 1099511628211u;
    return seconds;
}
