/*
 * Every operation of a training step of the paper's network (post-norm, dropout 0.1) alone, at the shapes of a batch: time, calls
 * per step, and its minimum of bytes and floating-point operations. Four sets of buffers are used in turn, so that one call does
 * not find the output of the previous one in the cache; in a real step some of it would be there.
 */
#include <string.h>

#include "bench/gpu/gpu.h"
#include "base/memory.h"
#include "base/hash.h"
#include "model/config.h"

typedef enum op {
    GATHER, STACK, INPUT, QKV, ATTENTION, OUT, ADD_NORM, FF1, DROPOUT, FF2, NORM, OUTPUT, LOG_SOFTMAX, CTC,
    D_OUTPUT, W_OUTPUT, D_NORM, D_FF2, W_FF2, D_RELU, D_FF1, W_FF1, ADD, D_OUT, W_OUT, D_ATTENTION, D_QKV, W_QKV, W_INPUT,
    ZERO, SUM_SQUARES, CLIP, ADAM, PACK, OPS
} op;

/* per_row and fixed: the least number of floats moved; flop: per row. */
static const struct {
    const char *name;
    int calls; // per step
    double per_row, fixed, flop;
    int arithmetic; // 1: on the matrix units in the backend's precision
} table[OPS] = {
    [GATHER] = {"gather", 1, D + D / 4.0, 0, 0, 0},
    [STACK] = {"stack_frames", 1, 2 * D, 0, 0, 0},
    [INPUT] = {"linear input", 1, D + C, C * D, 2 * D * C, 1},
    [QKV] = {"linear qkv", L, C + 3 * C, 3 * C * C, 6 * C * C, 1},
    [ATTENTION] = {"attention", L, 4 * C, 0, 4 * E * C + 3 * C, 1},
    [OUT] = {"linear out", L, 2 * C, C * C, 2 * C * C, 1},
    [ADD_NORM] = {"add_dropout_norm", 2 * L, 4 * C + 2, 2 * C, 0, 0},
    [FF1] = {"linear ff1, relu", L, C + F, C * F, 2 * C * F, 1},
    [DROPOUT] = {"dropout ff", L, 2 * F, 0, 0, 0},
    [FF2] = {"linear ff2", L, C + F, C * F, 2 * C * F, 1},
    [NORM] = {"layer_norm", 1, 2 * C + 2, 2 * C, 0, 0},
    [OUTPUT] = {"linear output", 1, C + V, C * V, 2 * C * V, 1},
    [LOG_SOFTMAX] = {"log_softmax", 1, 2 * V, 0, 0, 0},
    [CTC] = {"ctc", 1, 2 * V, 0, 0, 0},
    [D_OUTPUT] = {"linear output, dx", 1, C + V, C * V, 2 * C * V, 1},
    [W_OUTPUT] = {"linear output, dw", 1, C + V, 2 * C * V, 2 * C * V, 1},
    [D_NORM] = {"layer_norm backward", 2 * L + 1, 5 * C + 2, 3 * C, 0, 0}, // two of them add nothing, and read C less
    [D_FF2] = {"linear ff2, dx", L, C + F, C * F, 2 * C * F, 1},
    [W_FF2] = {"linear ff2, dw", L, C + F, 2 * C * F, 2 * C * F, 1},
    [D_RELU] = {"relu backward", L, 3 * F, 0, 0, 0},
    [D_FF1] = {"linear ff1, dx", L, C + F, C * F, 2 * C * F, 1},
    [W_FF1] = {"linear ff1, dw", L, C + F, 2 * C * F, 2 * C * F, 1},
    [ADD] = {"add", 1, 3 * C, 0, 0, 0},
    [D_OUT] = {"linear out, dx", L, 2 * C, C * C, 2 * C * C, 1},
    [W_OUT] = {"linear out, dw", L, 2 * C, 2 * C * C, 2 * C * C, 1},
    [D_ATTENTION] = {"attention backward", L, 8 * C, 0, 10 * E * C, 1},
    [D_QKV] = {"linear qkv, dx", L, C + 3 * C, 3 * C * C, 6 * C * C, 1},
    [W_QKV] = {"linear qkv, dw", L, C + 3 * C, 6 * C * C, 6 * C * C, 1},
    [W_INPUT] = {"linear input, dw", 1, C + D, 2 * C * D, 2 * C * D, 1},
    // the following operations process all parameters, for any number of rows; fixed is then per parameter
    [ZERO] = {"zero gradients", 1, 0, 1, 0, 0},
    [SUM_SQUARES] = {"sum_squares", 1, 0, 1, 0, 0},
    [CLIP] = {"clip", 1, 0, 0, 0, 0},
    [ADAM] = {"adam", 1, 0, 7, 0, 0},
    [PACK] = {"weights_pack", 1, 0, 3, 0, 0},
};

enum { SETS = 4, MOST_UTTERANCES = 1024 };

typedef struct set {
    float *x[5]; // [rows, C]
    float *qkv, *dqkv, *f[3], *v[2], *d[2], *stats;
} set;

typedef struct job {
    gpu_bench *b;
    op op;
    unsigned turn;
    set sets[SETS];
    lin_segments segments;
    int *labels, *label_offsets, most_labels;
    double *loss, *one, *norms, *scale;
    lin_tally *tally;
    lin_gather *items;
    uint64_t *key;
    lin_dropout dropout;
    // all parameters
    lin_params params;
    float *values, *gradients, *m, *v, *packed, *ones;
    lin_packing *packing;
    int n_packing;
    lin_tensors tensors;
    lin_adam_step *step;
    void *blocks[128];
    int n_blocks;
} job;

// With a packed weight of that shape.
static void linear(job *j, float *y, const float *x, int n, int k, lin_activation act)
{
    const lin_packing *p = j->packing;
    while (p->transposed ? p->n != k || p->k != n : p->n != n || p->k != k) p++;
    const float *bias = p->transposed ? NULL : j->values;
    j->b->ops->linear_forward(j->b->exec, y, x, j->packed + p->to, bias, j->segments.rows, n, k, act);
}

static void weight(job *j, const float *dy, const float *x, int n, int k)
{
    j->b->ops->linear_backward_weight(j->b->exec, j->gradients, j->gradients + n * k, dy, x, j->segments.rows, n, k);
}

static void run(void *context)
{
    job *j = context;
    const set *s = &j->sets[j->turn++ % SETS];
    const lin_ops *ops = j->b->ops;
    lin_exec *exec = j->b->exec;
    const int rows = j->segments.rows, causal = j->b->causal;
    const size_t count = (size_t)rows;
    float *dgamma = j->gradients, *dbeta = j->gradients + C;
    const lin_dropout none = {0};
    switch (j->op) {
    case GATHER: ops->gather(exec, s->d[0], j->items, NULL, &j->segments, D); break;
    case STACK: ops->stack_frames(exec, s->d[1], s->d[0], j->values, j->ones, &j->segments, &j->segments, D, 1, 0); break;
    case INPUT: linear(j, s->x[0], s->d[0], C, D, LIN_LINEAR); break;
    case QKV: linear(j, s->qkv, s->x[0], 3 * C, C, LIN_LINEAR); break;
    case ATTENTION: ops->attention_forward(exec, s->x[1], s->qkv, &j->segments, H, E, causal, NULL, 0); break;
    case OUT: linear(j, s->x[1], s->x[0], C, C, LIN_LINEAR); break;
    case ADD_NORM:
        ops->add_dropout_norm_forward(exec, NULL, s->x[2], s->x[3], s->stats, s->x[0], s->x[1], j->ones, j->values, rows, C,
                                      &j->dropout);
        break;
    case FF1: linear(j, s->f[0], s->x[0], F, C, LIN_RELU); break;
    case DROPOUT: ops->dropout(exec, s->f[1], s->f[0], count * F, &j->dropout); break;
    case FF2: linear(j, s->x[1], s->f[0], C, F, LIN_LINEAR); break;
    case NORM: ops->layer_norm_forward(exec, s->x[1], s->stats, s->x[0], j->ones, j->values, rows, C); break;
    case OUTPUT: linear(j, s->v[0], s->x[0], V, C, LIN_LINEAR); break;
    case LOG_SOFTMAX: ops->log_softmax(exec, s->v[0], s->v[0], rows, V); break;
    case CTC:
        ops->ctc(exec, j->loss, s->v[1], s->v[0], &j->segments, j->labels, j->label_offsets, j->most_labels, V, j->one);
        break;
    case D_OUTPUT: linear(j, s->x[0], s->v[0], C, V, LIN_LINEAR); break;
    case W_OUTPUT: weight(j, s->v[0], s->x[0], V, C); break;
    case D_NORM:
        ops->layer_norm_backward(exec, NULL, s->x[2], s->x[3], dgamma, dbeta, NULL, s->x[0], s->x[4], NULL, s->x[1], s->stats,
                                 j->ones, rows, C, &j->dropout);
        break;
    case D_FF2: linear(j, s->f[0], s->x[0], F, C, LIN_LINEAR); break;
    case W_FF2: weight(j, s->x[0], s->f[0], C, F); break;
    case D_RELU: ops->relu_backward(exec, s->f[1], s->f[0], s->f[2], count * F, 1 / 0.9); break;
    case D_FF1: linear(j, s->x[0], s->f[0], C, F, LIN_LINEAR); break;
    case W_FF1: weight(j, s->f[0], s->x[0], F, C); break;
    case ADD: ops->add_dropout(exec, s->x[0], s->x[1], s->x[2], count * C, &none); break;
    case D_OUT: linear(j, s->x[0], s->x[1], C, C, LIN_LINEAR); break;
    case W_OUT: weight(j, s->x[0], s->x[1], C, C); break;
    case D_ATTENTION: ops->attention_backward(exec, s->dqkv, s->x[0], s->qkv, s->x[1], &j->segments, H, E, causal); break;
    case D_QKV: linear(j, s->x[0], s->dqkv, C, 3 * C, LIN_LINEAR); break;
    case W_QKV: weight(j, s->dqkv, s->x[0], 3 * C, C); break;
    case W_INPUT: weight(j, s->x[0], s->d[0], C, D); break;
    case ZERO: ops->zero(exec, j->gradients, j->params.n_elements * sizeof(float)); break;
    case SUM_SQUARES: ops->sum_squares(exec, j->norms, j->gradients, &j->tensors); break;
    case CLIP: ops->clip(exec, j->scale, j->tally, j->norms, j->tensors.n, 1, 1); break;
    case ADAM: ops->adam(exec, j->values, j->gradients, j->m, j->v, &j->tensors, j->scale, j->step, j->tally); break;
    case PACK: ops->weights_pack(exec, j->packed, j->values, j->packing, j->n_packing); break;
    case OPS: break;
    }
}

/* ---- the data of the operations -------------------------------------------------------------------------------------------- */

static void *kept(job *j, void *block)
{
    j->blocks[j->n_blocks++] = block;
    return block;
}

static float *random_block(job *j, size_t count, double deviation) { return kept(j, gpu_random(j->b, count, deviation, 1)); }

static void make_sets(job *j, size_t rows)
{
    for (int i = 0; i < SETS; i++) {
        set *s = &j->sets[i];
        for (int k = 0; k < 5; k++) s->x[k] = random_block(j, rows * C, 1);
        for (int k = 0; k < 3; k++) s->f[k] = random_block(j, rows * F, 1);
        for (int k = 0; k < 2; k++) {
            s->v[k] = random_block(j, rows * V, 1);
            s->d[k] = random_block(j, rows * D, 1);
        }
        s->qkv = random_block(j, rows * 3 * C, 1);
        s->dqkv = random_block(j, rows * 3 * C, 1);
        s->stats = random_block(j, rows * 2, 1);
        // logits must be log-probabilities for CTC, and stats a mean and a deviation
        j->b->ops->log_softmax(j->b->exec, s->v[0], s->v[0], (int)rows, V);
        j->b->ops->layer_norm_forward(j->b->exec, s->x[4], s->stats, s->x[1], j->ones, j->values, (int)rows, C);
    }
}

// Utterances of WSJ's lengths until the rows are full.
static void make_segments(job *j, int rows)
{
    static int offsets[MOST_UTTERANCES + 1], label_offsets[MOST_UTTERANCES + 1];
    static lin_gather items[MOST_UTTERANCES];
    gpu_bench *b = j->b;
    int B = 0, longest = 0;
    while (B < MOST_UTTERANCES && offsets[B] < rows) {
        int frames = gpu_utterance_frames(1, B);
        if (B == MOST_UTTERANCES - 1 || frames > rows - offsets[B]) frames = rows - offsets[B];
        if (frames > longest) longest = frames;
        offsets[B + 1] = offsets[B] + frames;
        label_offsets[B + 1] = label_offsets[B] + frames / 8;
        B++;
    }
    const size_t n_labels = (size_t)label_offsets[B] + 1;
    int *labels = lin_calloc(n_labels, sizeof *labels);
    lin_error err = {0};
    if (!labels) gpu_must(lin_no_memory(&err, "labels", n_labels * sizeof *labels), &err);
    for (size_t i = 0; i < n_labels; i++) labels[i] = 1 + (int)lin_random_below(7, i, V - 1);
    j->segments = (lin_segments){.B = B, .rows = rows, .longest = longest};
    j->segments.offsets = kept(j, gpu_integers(b, offsets, (size_t)B + 1));
    j->label_offsets = kept(j, gpu_integers(b, label_offsets, (size_t)B + 1));
    j->labels = kept(j, gpu_integers(b, labels, n_labels));
    j->most_labels = longest / 8;
    lin_free(labels);
    j->loss = kept(j, gpu_block(b, (size_t)B * sizeof *j->loss));
    // bytes of a feature cache: any values will do
    unsigned char *codes = kept(j, gpu_random(b, (size_t)rows * D / 4 + 1, 1, 5));
    float *steps = kept(j, gpu_random(b, (size_t)B * 2 * D, 0.01, 6));
    for (int i = 0; i < B; i++)
        items[i] = (lin_gather){.codes = codes + (size_t)offsets[i] * D, .steps = steps + (size_t)i * 2 * D, .mean = j->values,
                                .istd = j->ones};
    j->items = kept(j, gpu_block(b, (size_t)B * sizeof *items));
    b->ops->upload(b->exec, j->items, items, (size_t)B * sizeof *items);
}

static void make_parameters(job *j)
{
    gpu_bench *b = j->b;
    lin_error err = {0};
    const lin_config config = lin_config_default(V);
    gpu_must(lin_params_create(&config, &j->params, &err), &err);
    const size_t n = j->params.n_elements, n_tensors = (size_t)j->params.n_tensors;
    size_t *offsets = lin_calloc(n_tensors + 1, sizeof *offsets);
    unsigned char *decay = lin_calloc(n_tensors, 1);
    j->packing = lin_calloc(2 * n_tensors, sizeof *j->packing);
    if (!offsets || !decay || !j->packing) gpu_must(lin_no_memory(&err, "parameters", n), &err);
    size_t to = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const lin_param *t = &j->params.table[i];
        offsets[i] = t->offset;
        decay[i] = (unsigned char)t->decay;
        for (int transposed = 0; t->k && transposed < 2; transposed++) {
            j->packing[j->n_packing++] =
                (lin_packing){.from = t->offset, .to = to, .n = t->n, .k = t->k, .transposed = transposed};
            const size_t size = transposed ? b->ops->weight_size(t->k, t->n) : b->ops->weight_size(t->n, t->k);
            to += (size + 15) / 16 * 16;
        }
    }
    offsets[n_tensors] = n;
    j->tensors = (lin_tensors){.n = (int)n_tensors, .offsets = offsets, .decay = decay};
    const lin_adam_step step = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .lr = 1e-6, .step_size = 1e-6, .v_scale = 1, .adaptive = 1};
    j->step = kept(j, gpu_block(b, sizeof step));
    b->ops->upload(b->exec, j->step, &step, sizeof step);
    j->values = random_block(j, n, 0.05);
    j->gradients = random_block(j, n, 0.05);
    j->m = random_block(j, n, 0.05);
    j->v = kept(j, gpu_block(b, n * sizeof(float)));
    j->packed = kept(j, gpu_block(b, to * sizeof(float)));
    j->norms = kept(j, gpu_block(b, n_tensors * sizeof(double)));
    j->scale = kept(j, gpu_block(b, n_tensors * sizeof(double)));
    j->tally = kept(j, gpu_block(b, sizeof *j->tally));
    b->ops->weights_pack(b->exec, j->packed, j->values, j->packing, j->n_packing);
    float ones[F];
    for (int i = 0; i < F; i++) ones[i] = 1;
    j->ones = kept(j, gpu_block(b, sizeof ones));
    b->ops->upload(b->exec, j->ones, ones, sizeof ones);
    const double one = 1;
    j->one = kept(j, gpu_block(b, sizeof one));
    b->ops->upload(b->exec, j->one, &one, sizeof one);
    const uint64_t key = 12345;
    j->key = kept(j, gpu_block(b, sizeof key));
    b->ops->upload(b->exec, j->key, &key, sizeof key);
    j->dropout = (lin_dropout){.p = 0.1, .key = j->key, .site = 1};
}

void gpu_part_ops(gpu_bench *b)
{
    static job j;
    gpu_open(b);
    const int rows = b->rows ? b->rows : b->quick ? 300 : 64000;
    j = (job){.b = b};
    make_parameters(&j);
    make_segments(&j, rows);
    make_sets(&j, (size_t)rows);
    for (op o = 0; o < OPS && !gpu_late(b); o++) {
        j.op = o;
        const double seconds = gpu_clock(b, run, &j);
        if (seconds < 0) continue;
        const int of_parameters = o >= ZERO;
        gpu_line("ops", "linnet");
        gpu_text("what", table[o].name);
        gpu_text("precision", b->precision_name);
        gpu_number("causal", b->causal);
        gpu_number("rows", rows);
        gpu_number("calls", table[o].calls);
        gpu_number("us", 1e6 * seconds);
        gpu_number("bytes", 4 * (table[o].per_row * rows + table[o].fixed * (of_parameters ? (double)j.params.n_elements : 1)));
        gpu_number("flop", table[o].flop * rows);
        gpu_number("arithmetic", table[o].arithmetic);
        gpu_line_end();
    }
    for (int i = 0; i < j.n_blocks; i++) b->ops->memory_destroy(b->exec, j.blocks[i]);
    lin_free(j.packing);
    lin_free((void *)(uintptr_t)j.tensors.offsets);
    lin_free((void *)(uintptr_t)j.tensors.decay);
    lin_params_free(&j.params);
    gpu_close(b);
}
