/*
 * bench_attention.c - linnet bench attention: time and memory of attention, forward and backward, against the length of the
 * sequence, for every variant (Katharopoulos et al. 2020, section 4.1.2 and figure 1).
 *
 * As in the paper, the number of sequences is scaled inversely with their length, and time and memory are those of one sequence.
 * Only attention is measured: from queries, keys and values to the output, and back to their gradients.
 */
#include <math.h>
#include <stdio.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/hash.h"
#include "train/lab/cmd_bench.h"
#include "model/encoder.h"
#include "paper/networks.h"

enum { MOST_RUNS = 25, LEAST_RUNS = 3 };

static const double budget_s = 0.6; // time for the repetitions of one point

// One variant at one length. The buffers are those of a layer in training, in one block.
typedef struct point {
    const lin_ops *ops;
    lin_exec *exec;
    const lin_bench_variant *variant;
    lin_config config;
    int N, B;
    int *offsets, *device_offsets;
    lin_activations buffers;
    lin_layer_values values;
    float *dy, *d_qkv;
    size_t bytes; // of what attention reads or writes and grows with the sequences
    lin_batch batch;
    lin_attend attend;
} point;

typedef struct result {
    double median_s, best_s, forward_s; // of one sequence
    double bytes, grown;                // of one sequence
    char why[160];                      // why it was left out, or ""
} result;

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

static size_t qkv_width(const lin_config *c) { return (size_t)lin_attention_of(c)->parts * (size_t)lin_config_width(c); }

// Called twice, as in model/network.c: once to learn the size.
static void lay_out(point *p)
{
    lin_activations *a = &p->buffers;
    const size_t C = (size_t)lin_config_width(&p->config), wide = qkv_width(&p->config);
    p->values.qkv = lin_rows_take(a, wide);
    p->d_qkv = lin_rows_take(a, wide);
    p->values.y = lin_rows_take(a, C);
    p->dy = lin_rows_take(a, C);
    if (lin_attention_of(&p->config)->lay_out) lin_attention_of(&p->config)->lay_out(a, &p->values);
    p->bytes = a->arena.used;
    p->device_offsets = lin_arena_take(&a->arena, (size_t)p->B + 1, sizeof *p->device_offsets);
}

static void measure_buffers(point *p)
{
    p->buffers = (lin_activations){
        .config = p->config, .ops = p->ops, .exec = p->exec, .max_rows = p->B * p->N, .longest = p->N, .for_training = 1};
    p->buffers.arena = (lin_arena){.base = (unsigned char *)p, .size = SIZE_MAX / 2};
    lay_out(p);
}

// Standard normal numbers, a piece at a time.
static void fill(point *p, float *to, size_t n, uint64_t key)
{
    enum { PIECE = 8192 };
    static float piece[PIECE];
    for (size_t from = 0; from < n; from += PIECE) {
        const size_t m = n - from < PIECE ? n - from : PIECE;
        lin_lsh_rotations(piece, 1, 1, 1, (int)m, lin_random_key(key, from));
        p->ops->upload(p->exec, to + from, piece, m * sizeof(float));
    }
}

static lin_status make_buffers(point *p, lin_error *err)
{
    const lin_config *c = &p->config;
    const size_t rows = (size_t)p->B * (size_t)p->N;
    p->buffers.arena = (lin_arena){.size = p->buffers.arena.used};
    LIN_TRY(p->ops->memory_create(p->exec, p->buffers.arena.size, (void **)&p->buffers.arena.base, err));
    lay_out(p);
    fill(p, p->values.qkv, rows * qkv_width(c), 1);
    fill(p, p->dy, rows * (size_t)lin_config_width(c), 2);
    p->ops->upload(p->exec, p->device_offsets, p->offsets, ((size_t)p->B + 1) * sizeof(int));
    p->batch.out = (lin_segments){.B = p->B, .rows = p->B * p->N, .longest = p->N, .offsets = p->device_offsets};
    p->attend.dy = p->dy;
    p->attend.d_qkv = p->d_qkv;
    return p->ops->finish(p->exec, err);
}

/* ---- a point --------------------------------------------------------------------------------------------------------------- */

static lin_status timed(point *p, double *forward_s, double *all_s, lin_error *err)
{
    const double begun = lin_now();
    lin_attention_of(&p->config)->forward(&p->attend);
    lin_status status = p->ops->finish(p->exec, err);
    *forward_s = lin_now() - begun;
    lin_attention_of(&p->config)->backward(&p->attend);
    if (status == LIN_OK) status = p->ops->finish(p->exec, err);
    *all_s = lin_now() - begun;
    return status;
}

// Runs once to warm up, then until the budget is used.
static lin_status repeat(point *p, double limit_s, result *r, lin_error *err)
{
    double all[MOST_RUNS], part, spent = 0;
    lin_status status = timed(p, &part, &all[0], err);
    r->median_s = r->best_s = all[0];
    r->forward_s = part;
    if (status != LIN_OK || all[0] > limit_s / LEAST_RUNS) return status; // too slow to be repeated
    int n = 0;
    while (status == LIN_OK && n < MOST_RUNS && (n < LEAST_RUNS || spent < budget_s) && !lin_interrupted) {
        status = timed(p, &part, &all[n], err);
        r->forward_s = fmin(r->forward_s, part);
        spent += all[n++];
    }
    r->median_s = lin_bench_median(all, n);
    r->best_s = fmin(r->best_s, all[0]); // sorted
    return status;
}

static lin_status measure(point *p, const lin_bench_values *v, result *r, lin_error *err)
{
    measure_buffers(p);
    r->bytes = (double)p->bytes / p->B;
    if ((double)p->bytes > 1e9 * v->limit_gb) {
        snprintf(r->why, sizeof r->why, "needs %.3g GB", 1e-9 * (double)p->bytes);
        return LIN_OK;
    }
    if (p->ops->on_host) lin_bench_peak_reset();
    const double before = p->ops->on_host ? lin_bench_resident() : lin_bench_free_bytes(p->ops);
    lin_status status = make_buffers(p, err);
    if (status == LIN_OK) status = repeat(p, v->limit_s, r, err);
    r->grown = (p->ops->on_host ? lin_bench_peak() - before : before - lin_bench_free_bytes(p->ops)) / p->B;
    r->median_s /= p->B;
    r->best_s /= p->B;
    r->forward_s /= p->B;
    p->ops->memory_destroy(p->exec, p->buffers.arena.base);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static void write_row(lin_buffer *out, const point *p, const result *r)
{
    lin_buffer_format(out, "%s\t%d\t%d\t", p->variant->name, p->N, p->B);
    if (r->median_s > 0)
        lin_buffer_format(out, "%.6g\t%.6g\t%.6g\t", 1e3 * r->median_s, 1e3 * r->best_s, 1e3 * r->forward_s);
    else lin_buffer_text(out, "-\t-\t-\t");
    if (r->bytes > 0) lin_buffer_format(out, "%.0f\t", r->bytes);
    else lin_buffer_text(out, "-\t");
    if (r->median_s > 0) lin_buffer_format(out, "%.0f\t", r->grown);
    else lin_buffer_text(out, "-\t");
    lin_buffer_format(out, "%s\n", r->why[0] ? r->why : "-");
}

typedef struct sweep {
    const lin_bench_values *v;
    const lin_ops *ops;
    lin_exec *exec;
    lin_buffer out;
    lin_progress progress;
    int rows;
    lin_encoder *encoder; // of the variant: its constants; NULL: the backend lacks its operations
} sweep;

// A network of one layer.
static lin_config network_of(const lin_bench_values *v, const lin_bench_variant *variant)
{
    lin_config c = lin_config_default(2);
    c.layers = 1;
    c.heads = v->heads ? v->heads : 8;
    c.head_width = v->head_width;
    c.causal = v->causal;
    lin_bench_apply(variant, &c);
    return c;
}

// Softmax does four times the work at twice the length, all others twice.
static double expected_s(const lin_bench_variant *variant, int N, int previous_N, double previous_s)
{
    const double growth = previous_N ? (double)N / previous_N : 0;
    const int quadratic = variant->kind == LIN_BENCH_SOFTMAX || variant->kind == LIN_BENCH_NAIVE;
    return previous_s * (quadratic ? growth * growth : growth);
}

static lin_status one(sweep *w, const lin_bench_variant *variant, int N, int previous_N, double previous_s, result *r,
                      lin_error *err)
{
    const lin_bench_values *v = w->v;
    point p = {.ops = w->ops, .exec = w->exec, .variant = variant, .config = network_of(v, variant), .N = N,
               .B = w->rows > N ? w->rows / N : 1};
    p.attend = (lin_attend){.ops = w->ops, .exec = w->exec, .batch = &p.batch, .v = &p.values, .H = p.config.heads,
                            .E = p.config.head_width, .causal = v->causal};
    lin_status status = LIN_OK;
    p.offsets = lin_alloc((size_t)p.B + 1, sizeof *p.offsets);
    if (!p.offsets) return lin_no_memory(err, "offsets", (size_t)p.B * sizeof(int));
    for (int b = 0; b <= p.B; b++) p.offsets[b] = b * N;
    const double expected = p.B * expected_s(variant, N, previous_N, previous_s);
    if (w->encoder) p.attend.w = w->encoder->weights;
    if (!w->encoder) snprintf(r->why, sizeof r->why, "no operation of the %s backend", w->ops->name);
    else if (expected > v->limit_s)
        snprintf(r->why, sizeof r->why, "about %.2g s, more than the limit of %g s", expected, v->limit_s);
    else {
        lin_progress_of(&w->progress, -1, "%s, %d frames", variant->name, N);
        status = measure(&p, v, r, err);
    }
    if (status == LIN_OK) write_row(&w->out, &p, r);
    if (status == LIN_OK && r->why[0]) lin_complain("%s at %d frames is left out: %s", variant->name, N, r->why);
    lin_free(p.offsets);
    return status;
}

// All lengths of a variant.
static lin_status one_variant(sweep *w, const lin_bench_variant *variant, const double *lengths, int n, lin_error *err)
{
    const lin_config config = network_of(w->v, variant);
    const lin_features features = lin_features_default();
    lin_model *model = NULL;
    double previous_s = 0;
    int previous_N = 0;
    lin_status status = lin_model_create(&config, &features, NULL, 1, &model, err);
    if (status == LIN_OK) status = lin_encoder_create(model, w->ops, &w->encoder, err);
    if (status == LIN_UNSUPPORTED) status = LIN_OK;
    for (int j = 0; j < n && status == LIN_OK; j++) {
        result r = {0};
        status = one(w, variant, (int)lengths[j], previous_N, previous_s, &r, err);
        if (lin_interrupted && status == LIN_OK) status = lin_fail(err, LIN_STOPPED, "interrupted");
        if (r.best_s > 0) previous_s = r.best_s, previous_N = (int)lengths[j];
    }
    lin_encoder_destroy(w->encoder);
    lin_model_destroy(model);
    w->encoder = NULL;
    return status;
}

static lin_status all(sweep *w, const lin_bench_variant *variants, int n_variants, lin_error *err)
{
    static const double usual[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}, quick[] = {256, 512, 1024};
    const lin_bench_values *v = w->v;
    const int given = v->lengths.count, n = given ? given : v->quick ? 3 : 8;
    const double *lengths = given ? v->lengths.items : v->quick ? quick : usual;
    lin_status status = LIN_OK;
    w->rows = v->rows ? v->rows : v->quick ? 1024 : w->ops->on_host ? 16384 : 65536;
    lin_buffer_format(&w->out, "# attention, %s, %d heads of %d, %d frames in all\n",
                      v->causal ? "causal" : "bidirectional", v->heads ? v->heads : 8, v->head_width, w->rows);
    lin_buffer_text(&w->out, "variant\tframes\tsequences\tms\tbest_ms\tforward_ms\tbytes\tresident_bytes\tleft_out\n");
    for (int i = 0; i < n_variants && status == LIN_OK; i++) status = one_variant(w, &variants[i], lengths, n, err);
    return status;
}

int lin_bench_attention(const lin_parsed *parsed)
{
    lin_bench_values v = *(const lin_bench_values *)parsed->values;
    lin_bench_variant variants[LIN_BENCH_VARIANTS];
    sweep w = {.v = &v};
    int n;
    lin_error err = {0};
    lin_status status =
        lin_bench_variants(v.variants ? v.variants : "linear,softmax,softmax-naive,lsh-1,lsh-4,poly2,random", variants, &n, &err);
    if (status != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    for (int i = 0; i < n; i++) {
        if (variants[i].kind == LIN_BENCH_LSTM) return lin_misuse(parsed, "lstm has no attention");
        const lin_config c = network_of(&v, &variants[i]);
        if (lin_config_check(&c, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    }
    status = lin_backend_open(v.model.device, lin_model_precision(&v.model), &w.ops, &err);
    if (status == LIN_OK) status = w.ops->exec_create(w.ops, v.threads, &w.exec, &err);
    if (status == LIN_OK) {
        if (v.limit_gb == 0) v.limit_gb = (w.ops->on_host ? 0.5 : 0.9) * 1e-9 * lin_bench_free_bytes(w.ops);
        lin_progress_begin(&w.progress, 0);
        lin_bench_head(&w.out, "attention", w.ops, v.threads);
        status = all(&w, variants, n, &err);
        lin_progress_end(&w.progress);
        w.ops->exec_destroy(w.exec);
    }
    return lin_bench_end(&w.out, v.output, status, &err);
}
