/*
 * bench_generate.c - linnet bench generate: images a second at the sizes of Katharopoulos et al. 2020, tables 1 and 2 and
 * supplement C, which needs no training.
 *
 * The networks are the paper's with random weights: 8 layers for 784 values (MNIST), 16 for 3,072 (CIFAR-10), 8 heads of 32, a
 * feed-forward width of 4 C, sinusoids, a mixture of 10 logistics. Each network generates with its state (`state`: linear, lstm;
 * softmax keeps keys and values, supplement C.1) and recomputing everything for each value (`again`: softmax and lsh as in tables
 * 1 and 2). Once for a single image, and once for --set batch images together, or as many as fit.
 * A value costs more the more values precede it, so a few values are timed in the middle of each of PIECES equal parts of the
 * image, and the sum over the parts is the time of the image. The ratio is to softmax with `again` for as many images.
 */
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "train/lab/cmd_bench.h"
#include "train/generate.h"
#include "model/model.h"

enum { PIECES = 8, TIMED = 8, LARGE = 3072, HEADS = 8, MIXTURE = 10, MOST_LENGTHS = 16, HOST_BATCH = 64, DEVICE_BATCH = 10000 };

typedef struct image_task {
    const lin_bench_values *v;
    const lin_ops *ops;
    int length, pieces;
} image_task;

static lin_config network_of(const image_task *t, const lin_bench_variant *variant)
{
    const lin_bench_values *v = t->v;
    lin_config c = lin_config_default(3 * MIXTURE);
    c.mel_bins = 1;
    c.tokens = LIN_LEVELS;
    c.mixture = MIXTURE;
    c.layers = v->layers ? v->layers : t->length < LARGE ? 8 : 16;
    c.heads = v->heads ? v->heads : HEADS;
    c.head_width = v->head_width;
    c.feedforward = 4 * c.heads * c.head_width;
    c.positions = LIN_POSITIONS_SINUSOID;
    c.dropout = 0;
    lin_bench_apply(variant, &c);
    return c;
}

// Seconds for one image, with n generated together; *s is an estimate from PIECES places.
static lin_status measure(const image_task *t, const lin_encoder *encoder, int n, int again, double *s, lin_error *err)
{
    const lin_generate_options o = {.seed = 1, .again = again, .threads = t->v->threads};
    const size_t count = (size_t)n * (size_t)t->length;
    lin_generator *g = NULL;
    int *tokens = lin_calloc(count, sizeof *tokens);
    if (!tokens) return lin_no_memory(err, "images", count * sizeof *tokens);
    lin_status status = lin_generator_create(encoder, &o, n, t->length, &g, err);
    *s = 0;
    for (int p = 0; p < t->pieces && status == LIN_OK; p++) {
        const int timed = again ? 1 : TIMED, at = (2 * p + 1) * t->length / (2 * t->pieces) - timed / 2 - 1;
        status = lin_generator_run(g, tokens, at, at + 1, err); // reads the tokens before
        const double begun = lin_now();
        if (status == LIN_OK) status = lin_generator_run(g, tokens, at + 1, at + 1 + timed, err);
        *s += (lin_now() - begun) / timed / n * t->length / t->pieces;
        if (status == LIN_OK && lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
    }
    lin_generator_destroy(g);
    lin_free(tokens);
    return status;
}

// Number of images that fit the memory, within reason.
static int batch_of(const image_task *t, const lin_config *c, int again)
{
    const lin_bench_values *v = t->v;
    const double free = lin_bench_free_bytes(t->ops), gb = v->limit_gb > 0 ? 1e9 * v->limit_gb
                                                          : free > 0       ? free * (t->ops->on_host ? 0.5 : 0.9)
                                                                           : 1e9;
    const double rows = again ? t->length : 1, width = 12.0 * lin_config_width(c) + c->feedforward + c->outputs,
                 each = 4 * ((double)lin_config_state_count(c) + (double)lin_config_cache_count(c) * t->length + rows * width);
    const int most = v->batch ? v->batch : t->ops->on_host ? HOST_BATCH : DEVICE_BATCH;
    return gb / each < 1 ? 1 : gb / each < most ? (int)(gb / each) : most;
}

// The rows of one network. softmax: seconds of softmax with `again`, for one image and for many.
static lin_status measure_network(const image_task *t, const lin_bench_variant *variant, double softmax[2], lin_buffer *out,
                                  lin_error *err)
{
    const lin_config config = network_of(t, variant);
    const lin_features features = lin_features_default();
    const int streams = !lin_config_why_not_stream(&config);
    const int ways[2] = {streams ? 0 : -1, !streams || config.attention ? 1 : -1};
    lin_model *model = NULL;
    lin_encoder *encoder = NULL;
    lin_status status = lin_model_create(&config, &features, NULL, 1, &model, err);
    if (status == LIN_OK) status = lin_encoder_create(model, t->ops, &encoder, err);
    for (int w = 1; w >= 0 && status == LIN_OK; w--)
        for (int many = 0; many < 2 && status == LIN_OK && ways[w] >= 0; many++) {
            const int n = many ? batch_of(t, &config, ways[w]) : 1;
            double s = 0;
            if (many && n == 1) continue;
            status = measure(t, encoder, n, ways[w], &s, err);
            if (status != LIN_OK) break;
            if (ways[w] && variant->kind == LIN_BENCH_SOFTMAX) softmax[many] = s;
            lin_buffer_format(out, "%s\t%s\t%d\t%d\t%.6g\t%.4g\t", variant->name, ways[w] ? "again" : "state", t->length, n, s,
                              1 / s);
            if (softmax[many] > 0) lin_buffer_format(out, "%.3g\n", softmax[many] / s); // never 0
            else lin_buffer_text(out, "-\n");
        }
    lin_encoder_destroy(encoder);
    lin_model_destroy(model);
    return status;
}

int lin_bench_generate(const lin_parsed *parsed)
{
    const lin_bench_values *v = parsed->values;
    const double usual[] = {784, LARGE}, quick[] = {64};
    const double *lengths = v->lengths.count ? v->lengths.items : v->quick ? quick : usual;
    const int n_lengths = v->lengths.count ? v->lengths.count : v->quick ? 1 : 2;
    lin_bench_variant variants[LIN_BENCH_VARIANTS];
    image_task t = {.v = v};
    lin_buffer out = {0};
    int n;
    lin_error err = {0};
    lin_status status = lin_bench_variants(v->variants ? v->variants : "softmax,lsh-1,lsh-4,linear", variants, &n, &err);
    if (status != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    for (int i = 1; i < n; i++) // softmax first: the others' ratios are to it
        if (variants[i].kind == LIN_BENCH_SOFTMAX) {
            const lin_bench_variant first = variants[0];
            variants[0] = variants[i];
            variants[i] = first;
        }
    for (int i = 0; i < n_lengths; i++)
        if (lengths[i] < 64) return lin_misuse(parsed, "--set lengths: an image has 64 values or more");
    status = lin_backend_open(v->model.device, lin_model_precision(&v->model), &t.ops, &err);
    if (status == LIN_OK) {
        lin_bench_head(&out, "generate", t.ops, v->threads);
        lin_buffer_text(&out, "variant\tway\tvalues\timages\tseconds_per_image\timages_per_s\tratio_to_softmax\n");
    }
    for (int i = 0; i < n_lengths; i++) {
        double softmax[2] = {0};
        t.length = (int)lengths[i];
        t.pieces = v->quick ? 2 : PIECES;
        for (int k = 0; k < n && status == LIN_OK; k++) {
            status = measure_network(&t, &variants[k], softmax, &out, &err);
            if (status != LIN_UNSUPPORTED) continue;
            lin_complain("%s is left out: %s", variants[k].name, err.message);
            status = LIN_OK;
        }
    }
    return lin_bench_end(&out, v->output, status, &err);
}
