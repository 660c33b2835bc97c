// The limits of the device, and attention over lengths.
#include <stdio.h>
#include <string.h>

#include "bench/gpu/gpu.h"

/* ---- limits ---------------------------------------------------------------------------------------------------------------- */

typedef struct product {
    gpu_bench *b;
    float *y, *x, *packed;
    int n;
} product;

static void run_product(void *context)
{
    const product *p = context;
    p->b->ops->linear_forward(p->b->exec, p->y, p->x, p->packed, NULL, p->n, p->n, p->n, LIN_LINEAR);
}

static void run_copy(void *context)
{
    const product *p = context;
    p->b->ops->copy(p->b->exec, p->y, p->x, (size_t)p->n * sizeof(float));
}

static void say_peak(const char *who, const char *what, double value)
{
    gpu_line("peak", who);
    gpu_text("what", what);
    gpu_number("value", value);
    gpu_line_end();
}

void gpu_part_peak(gpu_bench *b)
{
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    gpu_open(b);
    product p = {.b = b, .n = b->quick ? 1 << 16 : 1 << 29};
    p.x = gpu_random(b, (size_t)p.n, 1, 1);
    p.y = gpu_block(b, (size_t)p.n * sizeof(float));
    double seconds = gpu_clock(b, run_copy, &p);
    if (seconds > 0) say_peak("linnet", "copy", 2 * 4e-9 * p.n / seconds);
    b->ops->memory_destroy(b->exec, p.x);
    b->ops->memory_destroy(b->exec, p.y);
    gpu_close(b);
    // Square products through the backend: fp32 in and out, so bf16 includes the rounding of its operands, about a tenth here.
    for (int i = 0; i < 3; i++) {
        b->precision = (lin_precision)i;
        gpu_open(b);
        const int n = b->quick ? 128 : 8192;
        const size_t count = (size_t)n * (size_t)n;
        p = (product){.b = b, .n = n, .x = gpu_random(b, count, 1, 1), .y = gpu_block(b, count * sizeof(float))};
        float *w = gpu_random(b, count, 1, 2);
        p.packed = gpu_block(b, b->ops->weight_size(n, n) * sizeof(float));
        b->ops->weights_pack(b->exec, p.packed, w, &(lin_packing){.n = n, .k = n}, 1);
        seconds = gpu_clock(b, run_product, &p);
        if (seconds > 0) say_peak("linnet", names[i], 2e-12 * n * (double)count / seconds);
        float *const blocks[] = {p.x, p.y, p.packed, w};
        for (int j = 0; j < 4; j++) b->ops->memory_destroy(b->exec, blocks[j]);
        gpu_close(b);
    }
}

/* ---- attention over lengths ------------------------------------------------------------------------------------------------ */

enum { LSH_CHUNK = 32, LSH_ROTATIONS = 32 }; /* at most 64 buckets */

typedef struct attention {
    gpu_bench *b;
    lin_segments segments;
    float *qkv, *y, *dy, *dqkv;
    float *lse, *p, *R; /* softmax and LSH, naive softmax, LSH */
    float *gates, *dgates; /* decays */
    int *order;
    lin_lsh lsh;
    int causal;
    void (*forward)(const struct attention *a), (*backward)(const struct attention *a);
} attention;

static void linear_forward(const attention *a)
{
    a->b->ops->attention_forward(a->b->exec, a->y, a->qkv, &a->segments, H, E, a->causal, NULL, 0);
}

static void linear_backward(const attention *a)
{
    a->b->ops->attention_backward(a->b->exec, a->dqkv, a->dy, a->qkv, a->y, &a->segments, H, E, a->causal);
}

static void decayed_forward(const attention *a)
{
    a->b->ops->decayed_attention_forward(a->b->exec, a->y, a->qkv, a->gates, 0, &a->segments, H, E, NULL, 0);
}

static void decayed_backward(const attention *a)
{
    a->b->ops->decayed_attention_backward(a->b->exec, a->dqkv, a->dgates, a->dy, a->qkv, a->gates, 0, a->y, &a->segments, H, E);
}

static void tiled_forward(const attention *a)
{
    a->b->ops->softmax_forward(a->b->exec, a->y, a->lse, a->qkv, &a->segments, H, E, a->causal, NULL, 0);
}

static void tiled_backward(const attention *a)
{
    a->b->ops->softmax_backward(a->b->exec, a->dqkv, a->dy, a->qkv, a->y, a->lse, &a->segments, H, E, a->causal);
}

static void naive_forward(const attention *a)
{
    a->b->ops->softmax_naive_forward(a->b->exec, a->y, a->p, a->qkv, &a->segments, H, E, a->causal);
}

static void naive_backward(const attention *a)
{
    a->b->ops->softmax_naive_backward(a->b->exec, a->dqkv, a->p, a->dy, a->qkv, a->y, &a->segments, H, E, a->causal);
}

static void lsh_forward(const attention *a)
{
    a->b->ops->lsh_forward(a->b->exec, a->y, a->lse, a->order, a->qkv, a->R, &a->segments, &a->lsh, H, E, a->causal);
}

static void lsh_backward(const attention *a)
{
    a->b->ops->lsh_backward(a->b->exec, a->dqkv, a->dy, a->qkv, a->y, a->lse, a->order, &a->segments, &a->lsh, H, E, a->causal);
}

/* What the paper's figure 1 compares, and linear attention with decays (causal only); the first is the part "attention", the
 * others are "rivals". */
static const struct {
    const char *who;
    void (*forward)(const attention *a), (*backward)(const attention *a);
    int rounds, naive, decays;
} forms[] = {{"linnet", linear_forward, linear_backward, 0, 0, 0},
             {"linnet with decays", decayed_forward, decayed_backward, 0, 0, 1},
             {"linnet softmax tiled", tiled_forward, tiled_backward, 0, 0, 0},
             {"linnet softmax naive", naive_forward, naive_backward, 0, 1, 0},
             {"linnet lsh-1", lsh_forward, lsh_backward, 1, 0, 0},
             {"linnet lsh-4", lsh_forward, lsh_backward, 4, 0, 0}};
enum { FORMS = sizeof forms / sizeof *forms };

static void run_forward(void *context)
{
    const attention *a = context;
    a->forward(a);
}

static void run_both(void *context)
{
    const attention *a = context;
    a->forward(a);
    a->backward(a);
}

// Allocates what a form needs for B utterances of n frames; returns the number of blocks.
static int make_attention(attention *a, int form, int B, int n, int both, const int *offsets, void **blocks)
{
    gpu_bench *b = a->b;
    const size_t rows = (size_t)B * (size_t)n, rounds = (size_t)forms[form].rounds;
    int count = 0;
    *a = (attention){.b = b, .causal = a->causal, .forward = forms[form].forward, .backward = forms[form].backward};
    a->lsh = (lin_lsh){forms[form].rounds, LSH_CHUNK, LSH_ROTATIONS};
    blocks[count++] = a->qkv = gpu_random(b, rows * (rounds ? 2 : 3) * C, 1, 1);
    blocks[count++] = a->y = gpu_block(b, rows * C * sizeof(float));
    if (both) blocks[count++] = a->dy = gpu_random(b, rows * C, 1, 1);
    if (both) blocks[count++] = a->dqkv = gpu_block(b, rows * 3 * C * sizeof(float));
    if (forms[form].decays) blocks[count++] = a->gates = gpu_random(b, rows * H, 1, 1);
    if (forms[form].decays) blocks[count++] = a->dgates = gpu_block(b, rows * H * sizeof(float));
    if (form > 0 && !forms[form].naive && !forms[form].decays) blocks[count++] = a->lse = gpu_block(b, rows * H * sizeof(float));
    if (forms[form].naive) blocks[count++] = a->p = gpu_block(b, lin_softmax_scores(offsets, B, H) * sizeof(float));
    if (rounds) blocks[count++] = a->R = gpu_random(b, rounds * C * LSH_ROTATIONS, 1, 3);
    if (rounds) blocks[count++] = a->order = gpu_block(b, rounds * H * rows * sizeof(int));
    int *on_device = gpu_integers(b, offsets, (size_t)B + 1);
    blocks[count++] = on_device;
    a->segments = (lin_segments){.B = B, .rows = (int)rows, .longest = n, .offsets = on_device};
    return count;
}

// B utterances of n frames; each case has its own context, so that its scratch memory is included. Returns 0 if this form cannot
// do more.
static int sweep_length(gpu_bench *b, int form, int B, int n, int causal)
{
    static int offsets[65536 + 1];
    if (forms[form].decays && !causal) return 0;
    const size_t rows = (size_t)B * (size_t)n;
    for (int i = 0; i <= B; i++) offsets[i] = i * n;
    for (int both = 0; both < 2; both++) {
        gpu_open(b);
        const double scores = forms[form].naive ? 4.0 * H * (double)rows * n : 0;
        if ((b->free_before && scores > 0.8 * (double)b->free_before) || (forms[form].rounds && !b->ops->lsh_forward)) {
            gpu_close(b);
            return 0;
        }
        attention a = {.b = b, .causal = causal};
        void *blocks[10];
        const int n_blocks = make_attention(&a, form, B, n, both, offsets, blocks);
        const double seconds = gpu_clock(b, both ? run_both : run_forward, &a);
        if (seconds > 0) {
            gpu_line("attention", forms[form].who);
            gpu_text("precision", b->precision_name);
            gpu_number("causal", causal);
            gpu_number("B", B);
            gpu_number("N", n);
            gpu_text("pass", both ? "both" : "forward");
            gpu_number("us", 1e6 * seconds);
            const double mib = gpu_memory_mib(b);
            if (mib >= 0) gpu_number("mib", mib);
            // each input read once, each output written once: q k v y, then also q k v y dy dq dk dv
            if (form == 0) gpu_number("gb_s", 4e-9 * C * (double)rows * (both ? 12 : 4) / seconds);
            gpu_line_end();
        }
        for (int i = 0; i < n_blocks; i++) b->ops->memory_destroy(b->exec, blocks[i]);
        gpu_close(b);
        if (seconds < 0) return 0;
    }
    return 1;
}

static int sweep_rows(const gpu_bench *b) { return b->quick ? 2048 : b->rows ? b->rows : 65536; }

void gpu_part_attention(gpu_bench *b)
{
    const int rows = sweep_rows(b);
    for (int alone = 0; alone < 2; alone++)
        for (int causal = 0; causal < 2; causal++)
            for (int n = 512; n <= rows && !gpu_late(b); n *= 2)
                if (!alone || n < rows) sweep_length(b, 0, alone ? 1 : rows / n, n, causal);
}

void gpu_part_rivals(gpu_bench *b)
{
    const int rows = sweep_rows(b);
    for (int causal = 1; causal >= 0; causal--)
        for (int form = 1; form < FORMS; form++)
            for (int n = 512; n <= rows && !gpu_late(b); n *= 2)
                if (!sweep_length(b, form, rows / n, n, causal)) break;
}
