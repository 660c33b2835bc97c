/*
 * bench_attention.c - linnet bench attention: time and memory of attention, forward and backward, against the length of the
 * sequence, for every variant (Katharopoulos et al. 2020, section 4.1.2 and figure 1).
 *
 * As in the paper the number of sequences is scaled inversely with their length, and time and memory are those of one sequence.
 * Only attention is measured: queries, keys and values are there, and their gradients are left.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/hash.h"
#include "train/lab/cmd_bench.h"
#include "paper/networks.h"

enum { MOST_RUNS = 25, LEAST_RUNS = 3, BUFFERS = 10 };

static const double budget_s = 0.6; // of the repetitions of one point

// One variant at one length.
typedef struct point {
    const lin_ops *ops;
    lin_exec *exec;
    lin_bench_variant variant;
    int H, E, causal, N, B;
    int *offsets;
    lin_segments segments;
    lin_lsh lsh;
    lin_map map;
    float *x, *y, *dy, *dx, *lse, *scores, *fixed; // fixed: rotations or omega
    int *order, *device_offsets;
    void *blocks[BUFFERS];
    int n_blocks;
} point;

typedef struct result {
    double median_s, best_s, forward_s; // of one sequence
    double bytes, grown;                // of one sequence
    char why[160];                      // "" or why it was left out
} result;

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

static int has_operation(const point *p)
{
    const lin_ops *ops = p->ops;
    switch (p->variant.kind) {
    case LIN_BENCH_LINEAR: return ops->attention_forward != NULL;
    case LIN_BENCH_SOFTMAX: return ops->softmax_forward && ops->softmax_backward;
    case LIN_BENCH_NAIVE: return ops->softmax_naive_forward && ops->softmax_naive_backward;
    case LIN_BENCH_LSH: return ops->lsh_forward && ops->lsh_backward;
    case LIN_BENCH_POLY2:
    case LIN_BENCH_RANDOM: return ops->mapped_attention_forward && ops->mapped_attention_backward;
    default: return 0;
    }
}

static void forward(point *p)
{
    const lin_ops *ops = p->ops;
    const lin_segments *s = &p->segments;
    switch (p->variant.kind) {
    case LIN_BENCH_LINEAR: ops->attention_forward(p->exec, p->y, p->x, s, p->H, p->E, p->causal, NULL, 0); break;
    case LIN_BENCH_SOFTMAX: ops->softmax_forward(p->exec, p->y, p->lse, p->x, s, p->H, p->E, p->causal, NULL, 0); break;
    case LIN_BENCH_NAIVE: ops->softmax_naive_forward(p->exec, p->y, p->scores, p->x, s, p->H, p->E, p->causal); break;
    case LIN_BENCH_LSH:
        ops->lsh_forward(p->exec, p->y, p->lse, p->order, p->x, p->fixed, s, &p->lsh, p->H, p->E, p->causal);
        break;
    default: ops->mapped_attention_forward(p->exec, p->y, p->x, p->fixed, s, &p->map, p->H, p->E, p->causal, NULL, 0); break;
    }
}

static void backward(point *p)
{
    const lin_ops *ops = p->ops;
    const lin_segments *s = &p->segments;
    switch (p->variant.kind) {
    case LIN_BENCH_LINEAR: ops->attention_backward(p->exec, p->dx, p->dy, p->x, p->y, s, p->H, p->E, p->causal); break;
    case LIN_BENCH_SOFTMAX: ops->softmax_backward(p->exec, p->dx, p->dy, p->x, p->y, p->lse, s, p->H, p->E, p->causal); break;
    case LIN_BENCH_NAIVE:
        ops->softmax_naive_backward(p->exec, p->dx, p->scores, p->dy, p->x, p->y, s, p->H, p->E, p->causal);
        break;
    case LIN_BENCH_LSH:
        ops->lsh_backward(p->exec, p->dx, p->dy, p->x, p->y, p->lse, p->order, s, &p->lsh, p->H, p->E, p->causal);
        break;
    default:
        ops->mapped_attention_backward(p->exec, p->dx, p->dy, p->x, p->fixed, p->y, s, &p->map, p->H, p->E, p->causal);
        break;
    }
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------- */

// What attention keeps or writes, in elements of 4 bytes, by buffer; and what it reads that does not grow with the sequence.
typedef struct sizes {
    size_t x, y, lse, scores, order, fixed;
} sizes;

static sizes sizes_of(point *p)
{
    const size_t rows = (size_t)p->B * (size_t)p->N, H = (size_t)p->H, E = (size_t)p->E, C = H * E;
    sizes s = {.x = 3 * rows * C, .y = rows * C};
    if (p->variant.kind == LIN_BENCH_SOFTMAX || p->variant.kind == LIN_BENCH_LSH) s.lse = rows * H;
    if (p->variant.kind == LIN_BENCH_NAIVE) s.scores = lin_softmax_scores(p->offsets, p->B, p->H);
    lin_config config = lin_config_default(2);
    config.heads = p->H;
    config.head_width = p->E;
    lin_bench_apply(&p->variant, &config);
    p->lsh = lin_config_lsh(&config);
    p->map = lin_config_map(&config);
    if (p->variant.kind == LIN_BENCH_LSH) {
        s.x = 2 * rows * C;
        s.order = (size_t)p->lsh.rounds * H * rows;
        s.fixed = (size_t)p->lsh.rounds * C * (size_t)p->lsh.rotations;
    }
    if (p->variant.kind == LIN_BENCH_RANDOM) s.fixed = C * (size_t)p->map.D;
    return s;
}

static size_t bytes_of(const sizes *s)
{
    return sizeof(float) * (2 * s->x + 2 * s->y + s->lse + s->scores + s->fixed) + sizeof(int) * s->order;
}

static lin_status block(point *p, size_t elements, void *at, lin_error *err)
{
    void *made = NULL;
    if (elements == 0) return LIN_OK;
    LIN_TRY(p->ops->memory_create(p->exec, 4 * elements, &made, err));
    p->blocks[p->n_blocks++] = made;
    memcpy(at, &made, sizeof made);
    return LIN_OK;
}

// Standard normal numbers, a piece at a time.
static void fill(point *p, float *to, size_t n, uint64_t key)
{
    enum { PIECE = 8192 };
    static float piece[PIECE];
    for (size_t from = 0; from < n; from += PIECE) {
        const size_t m = n - from < PIECE ? n - from : PIECE;
        for (size_t i = 0; i < m; i += 2) {
            const double r = sqrt(-2 * log(1 - lin_random_uniform(key, from + i))),
                         a = 6.283185307179586 * lin_random_uniform(key, from + i + 1);
            piece[i] = (float)(r * cos(a));
            if (i + 1 < m) piece[i + 1] = (float)(r * sin(a));
        }
        p->ops->upload(p->exec, to + from, piece, m * sizeof(float));
    }
}

static lin_status make_buffers(point *p, const sizes *s, lin_error *err)
{
    LIN_TRY(block(p, s->x, &p->x, err));
    LIN_TRY(block(p, s->x, &p->dx, err));
    LIN_TRY(block(p, s->y, &p->y, err));
    LIN_TRY(block(p, s->y, &p->dy, err));
    LIN_TRY(block(p, s->lse, &p->lse, err));
    LIN_TRY(block(p, s->scores, &p->scores, err));
    LIN_TRY(block(p, s->order, &p->order, err));
    LIN_TRY(block(p, s->fixed, &p->fixed, err));
    LIN_TRY(block(p, (size_t)p->B + 1, &p->device_offsets, err));
    fill(p, p->x, s->x, 1);
    fill(p, p->dy, s->y, 2);
    if (s->fixed) fill(p, p->fixed, s->fixed, 3);
    p->ops->upload(p->exec, p->device_offsets, p->offsets, ((size_t)p->B + 1) * sizeof(int));
    p->segments = (lin_segments){.B = p->B, .rows = p->B * p->N, .longest = p->N, .offsets = p->device_offsets};
    return p->ops->finish(p->exec, err);
}

/* ---- a point --------------------------------------------------------------------------------------------------------------- */

static lin_status timed(point *p, double *forward_s, double *all_s, lin_error *err)
{
    const double begun = lin_now();
    forward(p);
    lin_status status = p->ops->finish(p->exec, err);
    *forward_s = lin_now() - begun;
    backward(p);
    if (status == LIN_OK) status = p->ops->finish(p->exec, err);
    *all_s = lin_now() - begun;
    return status;
}

// Once to warm up, then until the budget is used.
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
    const sizes s = sizes_of(p);
    r->bytes = (double)bytes_of(&s) / p->B;
    if ((double)bytes_of(&s) > 1e9 * v->limit_gb) {
        snprintf(r->why, sizeof r->why, "needs %.3g GB", 1e-9 * (double)bytes_of(&s));
        return LIN_OK;
    }
    if (p->ops->on_host) lin_bench_peak_reset();
    const double before = p->ops->on_host ? lin_bench_resident() : lin_bench_free_bytes(p->ops);
    lin_status status = make_buffers(p, &s, err);
    if (status == LIN_OK) status = repeat(p, v->limit_s, r, err);
    r->grown = (p->ops->on_host ? lin_bench_peak() - before : before - lin_bench_free_bytes(p->ops)) / p->B;
    r->median_s /= p->B;
    r->best_s /= p->B;
    r->forward_s /= p->B;
    while (p->n_blocks > 0) p->ops->memory_destroy(p->exec, p->blocks[--p->n_blocks]);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static void write_row(lin_buffer *out, const point *p, const result *r)
{
    lin_buffer_format(out, "%s\t%d\t%d\t", p->variant.name, p->N, p->B);
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
} sweep;

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
    point p = {.ops = w->ops, .exec = w->exec, .variant = *variant, .H = v->heads ? v->heads : 8, .E = v->head_width,
               .causal = v->causal, .N = N, .B = w->rows > N ? w->rows / N : 1};
    lin_status status = LIN_OK;
    p.offsets = lin_alloc((size_t)p.B + 1, sizeof *p.offsets);
    if (!p.offsets) return lin_no_memory(err, "offsets", (size_t)p.B * sizeof(int));
    for (int b = 0; b <= p.B; b++) p.offsets[b] = b * N;
    const double expected = p.B * expected_s(variant, N, previous_N, previous_s);
    if (!has_operation(&p)) snprintf(r->why, sizeof r->why, "no operation of the %s backend", w->ops->name);
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
    for (int i = 0; i < n_variants && status == LIN_OK; i++) {
        double previous_s = 0;
        int previous_N = 0;
        for (int j = 0; j < n && status == LIN_OK; j++) {
            result r = {0};
            status = one(w, &variants[i], (int)lengths[j], previous_N, previous_s, &r, err);
            if (lin_interrupted && status == LIN_OK) status = lin_fail(err, LIN_STOPPED, "interrupted");
            if (r.best_s > 0) previous_s = r.best_s, previous_N = (int)lengths[j];
        }
    }
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
        lin_config c = lin_config_default(2);
        c.head_width = v.head_width;
        lin_bench_apply(&variants[i], &c);
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
