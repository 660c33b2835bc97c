/*
 * bench_latency.c - linnet bench latency: what one more chunk of a live stream costs after a second, a minute, ten hours, for
 * every variant that can stream (the counterpart of supplement tables 4 and 5 of Katharopoulos et al. 2020).
 *
 * The networks are those of the paper's section 4.3 with random weights, causal: 9 layers, 6 heads of 32 (linear, softmax), or
 * 3 layers of 320 units (lstm). Only the network is measured, not features and decoding. A linear or LSTM stream costs the same
 * at any time. A softmax stream keeps the keys and values of all earlier rows; here they are random numbers instead of the
 * result of hours of sound, which changes no operation. On a CPU, if the caches do not fit and have more than 100 MB per layer,
 * all layers share the memory of one: each layer still reads all of it from memory, since processor caches are smaller, and ten
 * hours take a ninth of the memory.
 */
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/hash.h"
#include "train/lab/cmd_bench.h"
#include "model/model.h"
#include "model/network.h"

enum { MOST_RUNS = 400, LEAST_RUNS = 5, MOST_STREAMS = 1024, PIECE = 1 << 18, ALIGN_ROWS = 512, SLOW_S = 2 };

static const double budget_s = 0.4, share_bytes = 100e6;

// A variant with room for a chunk of every stream.
typedef struct runner {
    const lin_bench_values *v;
    const lin_ops *ops;
    lin_exec *exec;
    lin_model *model;
    lin_weights *weights;
    lin_activations *activations;
    int B, rows; // number of streams; rows of a chunk of each
    float *values, *features, *states, *logp;
    int *offsets, *in_offsets;
    float **state;          // [B], in the backend's memory
    lin_cache *device_caches; // [B]
    lin_cache caches[MOST_STREAMS];
    void *mapped; // the caches, if they are one layer mapped several times
    size_t mapped_bytes;
} runner;

typedef struct cost {
    double median_s, best_s, cpu_s; // of a chunk of one stream; cpu_s: processor time, the median
    double bytes;            // of one stream
    int shared;
    char why[160];
} cost;

/* ---- the network ----------------------------------------------------------------------------------------------------------- */

static lin_config network_of(const lin_bench_values *v, const lin_bench_variant *variant)
{
    lin_config c = lin_config_default(40);
    c.stack = v->stack;
    c.dropout = 0;
    lin_bench_apply(variant, &c);
    return c;
}

static lin_status upload_new(runner *r, const void *from, size_t bytes, void *at, lin_error *err)
{
    void *block;
    LIN_TRY(r->ops->memory_create(r->exec, bytes, &block, err));
    if (from) r->ops->upload(r->exec, block, from, bytes);
    memcpy(at, &block, sizeof block);
    return LIN_OK;
}

static lin_status begin(runner *r, const lin_config *c, lin_error *err)
{
    const lin_features features = lin_features_default();
    const size_t in = (size_t)r->B * (size_t)(r->rows * c->stack) * (size_t)c->mel_bins, states = lin_config_state_count(c);
    int offsets[MOST_STREAMS + 1], in_offsets[MOST_STREAMS + 1];
    for (int b = 0; b <= r->B; b++) offsets[b] = b * r->rows, in_offsets[b] = offsets[b] * c->stack;
    lin_status status = lin_model_create(c, &features, NULL, 1, &r->model, err);
    if (status == LIN_OK) status = r->ops->exec_create(r->ops, r->v->threads ? r->v->threads : 1, &r->exec, err);
    float *x = lin_alloc(in, sizeof *x);
    if (status == LIN_OK && !x) status = lin_no_memory(err, "features", in * sizeof *x);
    for (size_t i = 0; status == LIN_OK && i < in; i++) x[i] = (float)(2 * lin_random_uniform(5, i) - 1);
    if (status == LIN_OK) status = upload_new(r, r->model->values, r->model->params.n_elements * sizeof(float), &r->values, err);
    if (status == LIN_OK) status = upload_new(r, x, in * sizeof(float), &r->features, err);
    if (status == LIN_OK) status = upload_new(r, NULL, (size_t)r->B * states * sizeof(float) + 64, &r->states, err);
    if (status == LIN_OK) status = upload_new(r, NULL, (size_t)(r->B * r->rows * c->outputs) * sizeof(float), &r->logp, err);
    if (status == LIN_OK) status = upload_new(r, offsets, ((size_t)r->B + 1) * sizeof(int), &r->offsets, err);
    if (status == LIN_OK) status = upload_new(r, in_offsets, ((size_t)r->B + 1) * sizeof(int), &r->in_offsets, err);
    lin_free(x);
    if (status == LIN_OK)
        status = lin_weights_create(r->ops, r->exec, c, &r->model->params, r->values, NULL, 0, &r->weights, err);
    if (status == LIN_OK) status = lin_activations_create(r->ops, r->exec, c, r->B * r->rows, r->rows, 0, &r->activations, err);
    float *state[MOST_STREAMS];
    for (int b = 0; b < r->B; b++) state[b] = r->states + (size_t)b * states;
    if (status == LIN_OK) status = upload_new(r, state, (size_t)r->B * sizeof *state, &r->state, err);
    if (status == LIN_OK) status = upload_new(r, NULL, (size_t)r->B * sizeof(lin_cache), &r->device_caches, err);
    return status;
}

static void end(runner *r)
{
    lin_activations_destroy(r->activations);
    lin_weights_destroy(r->weights);
    void *const blocks[] = {r->values, r->features, r->states, r->logp, r->offsets, r->in_offsets, r->state, r->device_caches};
    for (size_t i = 0; r->exec && i < sizeof blocks / sizeof *blocks; i++) r->ops->memory_destroy(r->exec, blocks[i]);
    if (r->exec) r->ops->exec_destroy(r->exec);
    lin_model_destroy(r->model);
}

/* ---- caches of softmax attention ------------------------------------------------------------------------------------------- */

// Fills with random numbers in [-1, 1), repeating a piece.
static void fill(runner *r, float *to, size_t n)
{
    static float piece[PIECE];
    if (piece[0] == 0)
        for (size_t i = 0; i < PIECE; i++) piece[i] = (float)(2 * lin_random_uniform(7, i) - 1);
    for (size_t from = 0; from < n; from += PIECE)
        r->ops->upload(r->exec, to + from, piece, (n - from < PIECE ? n - from : PIECE) * sizeof(float));
}

// Maps all layers to the same memory. NULL if the system cannot.
static float *map_layers(runner *r, size_t layer_bytes, int layers)
{
#ifdef __linux__
    const int file = memfd_create("linnet", 0);
    r->mapped_bytes = (size_t)layers * layer_bytes;
    if (file < 0 || ftruncate(file, (off_t)layer_bytes) != 0) {
        if (file >= 0) close(file);
        return NULL;
    }
    unsigned char *at = mmap(NULL, r->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) at = NULL;
    for (int l = 0; at && l < layers; l++)
        if (mmap(at + (size_t)l * layer_bytes, layer_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
            MAP_FAILED) {
            munmap(at, r->mapped_bytes);
            at = NULL;
        }
    close(file);
    r->mapped = at;
    return (float *)(void *)at;
#else
    (void)r, (void)layer_bytes, (void)layers;
    return NULL;
#endif
}

static void free_caches(runner *r)
{
    for (int b = 0; b < r->B; b++) {
        if (!r->mapped) r->ops->memory_destroy(r->exec, r->caches[b].kv);
        r->caches[b] = (lin_cache){0};
    }
#ifdef __linux__
    if (r->mapped) munmap(r->mapped, r->mapped_bytes);
#endif
    r->mapped = NULL;
}

// Makes caches with n rows of earlier sound.
static lin_status make_caches(runner *r, int n, double limit, cost *c, lin_error *err)
{
    const int layers = r->model->config.layers, capacity = (n + r->rows + ALIGN_ROWS - 1) / ALIGN_ROWS * ALIGN_ROWS;
    const size_t row = lin_config_cache_count(&r->model->config) / (size_t)layers, layer = row * (size_t)capacity;
    const double layer_bytes = (double)layer * sizeof(float);
    c->shared = r->ops->on_host && r->B == 1 && layer_bytes > share_bytes && layer_bytes * layers > limit;
    const double bytes = layer_bytes * r->B * (c->shared ? 1 : layers);
    if (bytes > limit) {
        snprintf(c->why, sizeof c->why, "needs %.3g GB", 1e-9 * bytes);
        return LIN_OK;
    }
    lin_status status = LIN_OK;
    for (int b = 0; b < r->B && status == LIN_OK; b++) {
        void *kv = c->shared ? map_layers(r, layer * sizeof(float), layers) : NULL;
        c->shared = kv != NULL;
        if (!kv) status = r->ops->memory_create(r->exec, (size_t)layers * layer * sizeof(float), &kv, err);
        if (status == LIN_OK) fill(r, kv, c->shared ? layer : (size_t)layers * layer);
        r->caches[b] = (lin_cache){.kv = kv, .n = n, .capacity = capacity};
    }
    if (status != LIN_OK) return status;
    r->ops->upload(r->exec, r->device_caches, r->caches, (size_t)r->B * sizeof *r->caches);
    return r->ops->finish(r->exec, err);
}

/* ---- a point --------------------------------------------------------------------------------------------------------------- */

static lin_status chunk(runner *r, double *seconds, double *cpu, lin_error *err)
{
    const lin_config *c = &r->model->config;
    const int all = r->B * r->rows;
    const lin_batch batch = {.in = {.B = r->B, .rows = all * c->stack, .longest = r->rows * c->stack, .offsets = r->in_offsets},
                             .out = {.B = r->B, .rows = all, .longest = r->rows, .offsets = r->offsets},
                             .features = r->features, .mean = r->values, .istd = r->values, // any numbers
                             .states = r->state,
                             .caches = lin_config_cache_count(c) ? r->device_caches : NULL};
    const double begun = lin_now(), begun_cpu = lin_now_cpu();
    lin_network_forward(r->weights, r->activations, r->exec, &batch, r->logp);
    const lin_status status = r->ops->finish(r->exec, err);
    *seconds = lin_now() - begun;
    *cpu = lin_now_cpu() - begun_cpu;
    return status;
}

static lin_status measure(runner *r, double elapsed_s, double limit, cost *c, lin_error *err)
{
    static double seconds[MOST_RUNS], cpu[MOST_RUNS];
    const lin_config *config = &r->model->config;
    const size_t per_row = lin_config_cache_count(config);
    const double rows = ceil(elapsed_s * 100 / config->stack);
    c->bytes = sizeof(float) * ((double)lin_config_state_count(config) + (double)per_row * rows);
    if (rows > 1e9) {
        snprintf(c->why, sizeof c->why, "more than 1e9 rows");
        return LIN_OK;
    }
    lin_status status = per_row ? make_caches(r, (int)rows, limit, c, err) : LIN_OK;
    double spent = 0, warm = 0, unused;
    int n = 0;
    if (status == LIN_OK && !c->why[0]) status = chunk(r, &warm, &unused, err);
    const int least = warm > SLOW_S ? 1 : LEAST_RUNS;
    while (status == LIN_OK && !c->why[0] && n < MOST_RUNS && (n < least || spent < budget_s) && !lin_interrupted) {
        status = chunk(r, &seconds[n], &cpu[n], err);
        spent += seconds[n++];
    }
    if (n > 0) {
        c->median_s = lin_bench_median(seconds, n) / r->B;
        c->best_s = seconds[0] / r->B; // sorted
        c->cpu_s = lin_bench_median(cpu, n) / r->B;
    }
    free_caches(r);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static void write_row(lin_buffer *out, const runner *r, const lin_bench_variant *variant, double elapsed_s, const cost *c)
{
    const double chunk_s = 0.01 * r->rows * r->v->stack;
    // On one thread, take processor time, which excludes other load.
    const double computing_s = r->ops->on_host && r->v->threads <= 1 ? c->cpu_s : c->median_s;
    lin_buffer_format(out, "%s\t%g\t%d\t%g\t", variant->name, elapsed_s, r->B, 1e3 * chunk_s);
    if (c->median_s > 0)
        lin_buffer_format(out, "%.6g\t%.6g\t%.6g\t%.6g\t", 1e3 * c->median_s, 1e3 * c->best_s, 1e3 * c->cpu_s,
                          1e3 * computing_s / chunk_s);
    else lin_buffer_text(out, "-\t-\t-\t-\t");
    lin_buffer_format(out, "%.0f\t%d\t%s\n", c->bytes, c->shared, c->why[0] ? c->why : "-");
}

static lin_status all_times(const lin_bench_values *v, const lin_ops *ops, const lin_bench_variant *variant, lin_buffer *out,
                            lin_error *err)
{
    static const double usual[] = {1, 10, 60, 600, 3600, 36000}, quick[] = {1, 10};
    static runner r;
    const int given = v->times.count, n = given ? given : v->quick ? 2 : 6;
    const double *times = given ? v->times.items : v->quick ? quick : usual;
    const double limit = v->limit_gb > 0 ? 1e9 * v->limit_gb : (ops->on_host ? 0.5 : 0.9) * lin_bench_free_bytes(ops);
    const lin_config config = network_of(v, variant);
    lin_progress progress;
    r = (runner){.v = v, .ops = ops, .B = v->batch ? v->batch : 1, .rows = v->chunk};
    lin_status status = begin(&r, &config, err);
    lin_progress_begin(&progress, 0);
    for (int i = 0; status == LIN_OK && i < n; i++) {
        cost c = {0};
        lin_progress_of(&progress, -1, "%s after %g s", variant->name, times[i]);
        status = measure(&r, times[i], limit, &c, err);
        if (status == LIN_OK && lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
        if (status != LIN_OK) break;
        write_row(out, &r, variant, times[i], &c);
        if (c.why[0]) lin_complain("%s after %g s is left out: %s", variant->name, times[i], c.why);
    }
    lin_progress_end(&progress);
    end(&r);
    return status;
}

int lin_bench_latency(const lin_parsed *parsed)
{
    const lin_bench_values *v = parsed->values;
    lin_bench_variant variants[LIN_BENCH_VARIANTS];
    lin_buffer out = {0};
    const lin_ops *ops;
    int n;
    lin_error err = {0};
    lin_status status = lin_bench_variants(v->variants ? v->variants : "linear,softmax,lstm", variants, &n, &err);
    if (status != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (v->batch > MOST_STREAMS) return lin_misuse(parsed, "--set batch is at most %d", MOST_STREAMS);
    for (int i = 0; i < n; i++) {
        const lin_config c = network_of(v, &variants[i]);
        const char *why = lin_config_why_not_stream(&c);
        if (why) return lin_misuse(parsed, "%s %s", variants[i].name, why);
    }
    status = lin_backend_open(v->model.device, lin_model_precision(&v->model), &ops, &err);
    if (status == LIN_OK) {
        lin_bench_head(&out, "latency", ops, v->threads ? v->threads : 1);
        lin_buffer_format(&out, "# networks of section 4.3, causal, a row every %d ms, chunks of %d row%s, streams at once: %d\n",
                          10 * v->stack, v->chunk, v->chunk == 1 ? "" : "s", v->batch ? v->batch : 1);
        lin_buffer_text(&out,
                        "variant\telapsed_s\tstreams\tchunk_ms\tms\tbest_ms\tcpu_ms\tms_per_s\tbytes\tone_layer\tleft_out\n");
    }
    for (int i = 0; i < n && status == LIN_OK; i++) {
        status = all_times(v, ops, &variants[i], &out, &err);
        if (status != LIN_UNSUPPORTED) continue;
        lin_complain("%s is left out: %s", variants[i].name, err.message);
        status = LIN_OK;
    }
    return lin_bench_end(&out, v->output, status, &err);
}
