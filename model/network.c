// network.c - the variants' forward and backward passes; see network.h.

#include "model/network.h"

#include "base/memory.h"
#include "base/rng.h"

struct lin_weights {
    lin_config config;
    const lin_params *params;
    const lin_real_ops *ops;
    lin_exec *exec; // owns the memory
    const lin_real *values;
    int for_training;
    lin_real *packed;                         // all matrices, packed for the forward pass and, for training, transposed
    size_t *forward_offset, *backward_offset; // of tensor i in packed; vectors have none
    lin_packing *packing;
    int n_packing;
};

/* One layer's intermediate values, all [rows, ...]. Training keeps them per layer, inference reuses one set. */
typedef struct layer_values {
    lin_real *x0;             // input of the layer [C]
    lin_real *x1;             // after the convolution [C]; x0 if there is none
    lin_real *n1, *stats1;    // pre-norm: LN1(x1); post-norm: the input of LN1 [C]
    lin_real *qkv;            // [3C]
    lin_real *y;              // attention's output [C]
    lin_real *x2;             // between attention and feed-forward [C]
    lin_real *n2, *stats2;    // pre-norm: LN2(x2); post-norm: the input of LN2 [C]
    lin_real *hidden;         // relu, then dropout [F]
} layer_values;

struct lin_activations {
    lin_config config;
    const lin_real_ops *ops;
    lin_exec *exec; // owns the memory
    int max_rows, for_training;
    layer_values *layers; // L of them (training) or 1
    lin_real *stacked;    // [rows, (s+R) D]
    lin_real *last, *last_stats, *normed; // input and output of the final norm [C]
    lin_real *branch;     // forward: a block's output before it is added; backward: a gradient within a block [C]
    lin_real *d_x, *d_y;  // the gradient of the sum, and the same after dropout, for the previous block [C]
    lin_real *d_qkv, *d_hidden;
    lin_arena arena;
};

enum { SITE_ATTENTION, SITE_HIDDEN, SITE_FEEDFORWARD, SITES };

static size_t attention_state_count(const lin_config *c)
{
    return (size_t)c->heads * (size_t)(c->head_width + 1) * (size_t)c->head_width;
}

static size_t tail_count(const lin_config *c) { return (size_t)(c->conv_kernel - 1) * (size_t)lin_config_width(c); }

size_t lin_config_state_count(const lin_config *c)
{
    size_t n = (size_t)c->layers * attention_state_count(c);
    if (c->conv_layers) n += (size_t)c->conv_layers * tail_count(c);
    return n;
}

/* ---- weights ---------------------------------------------------------------------------------------------------------------- */

static int is_convolution(const lin_params *p, const lin_config *c, int tensor)
{
    for (int l = 0; l < c->conv_layers; l++)
        if (p->layers[l].conv[0] == tensor) return 1;
    return 0;
}

// Computes the place of each matrix, and lists the matrices to pack.
static size_t plan_packing(lin_weights *w)
{
    const lin_params *params = w->params;
    size_t total = 0;
    for (int i = 0; i < params->n_tensors; i++) {
        const lin_param *t = &params->table[i];
        if (t->k == 0 || is_convolution(params, &w->config, i)) continue;
        for (int transposed = 0; transposed <= w->for_training; transposed++) {
            (transposed ? w->backward_offset : w->forward_offset)[i] = total;
            w->packing[w->n_packing++] =
                (lin_packing){.from = t->offset, .to = total, .n = t->n, .k = t->k, .transposed = transposed};
            const size_t size = transposed ? w->ops->weight_size(t->k, t->n) : w->ops->weight_size(t->n, t->k);
            total += (size + 15) / 16 * 16;
        }
    }
    return total;
}

lin_status lin_weights_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, const lin_params *params,
                              const lin_real *values, int for_training, lin_weights **out, lin_error *err)
{
    *out = NULL;
    const size_t n = (size_t)params->n_tensors;
    lin_weights *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "weights", sizeof *w);
    *w = (lin_weights){
        .config = *config, .params = params, .ops = ops, .exec = exec, .values = values, .for_training = for_training};
    w->forward_offset = lin_calloc(n, sizeof *w->forward_offset);
    w->backward_offset = lin_calloc(n, sizeof *w->backward_offset);
    w->packing = lin_calloc(2 * n, sizeof *w->packing);
    lin_status status = LIN_OK;
    if (!w->forward_offset || !w->backward_offset || !w->packing)
        status = lin_no_memory(err, "weights", n * (2 * sizeof(size_t) + 2 * sizeof(lin_packing)));
    else
        status = ops->memory_create(exec, plan_packing(w) * sizeof *w->packed, (void **)&w->packed, err);
    if (status != LIN_OK) {
        lin_weights_destroy(w);
        return status;
    }
    lin_weights_pack(w, exec);
    *out = w;
    return LIN_OK;
}

void lin_weights_pack(lin_weights *w, lin_exec *exec)
{
    w->ops->weights_pack(exec, w->packed, w->values, w->packing, w->n_packing);
}

void lin_weights_destroy(lin_weights *w)
{
    if (!w) return;
    w->ops->memory_destroy(w->exec, w->packed);
    lin_free(w->forward_offset);
    lin_free(w->backward_offset);
    lin_free(w->packing);
    lin_free(w);
}

static const lin_real *value(const lin_weights *w, int tensor) { return w->values + w->params->table[tensor].offset; }

static lin_real *gradient(const lin_weights *w, lin_real *gradients, int tensor)
{
    return gradients + w->params->table[tensor].offset;
}

/* ---- activations ------------------------------------------------------------------------------------------------------------ */

// Lays out every buffer; called once with an arena without memory to learn the size, and once to set the pointers.
static void lay_out(lin_activations *a)
{
    const lin_config *c = &a->config;
    const size_t rows = (size_t)a->max_rows, C = (size_t)lin_config_width(c), F = (size_t)c->feedforward;
    lin_arena *arena = &a->arena;
#define TAKE(width) lin_arena_take(arena, rows * (width), sizeof(lin_real))
    const int n_sets = a->for_training ? c->layers : 1;
    for (int l = 0; l < n_sets; l++) {
        layer_values *v = &a->layers[l];
        v->x0 = TAKE(C);
        v->x1 = c->conv_layers > l ? TAKE(C) : v->x0;
        v->n1 = TAKE(C);
        v->stats1 = TAKE(2);
        v->qkv = TAKE(3 * C);
        v->y = TAKE(C);
        v->x2 = TAKE(C);
        v->n2 = TAKE(C);
        v->stats2 = TAKE(2);
        v->hidden = TAKE(F);
    }
    a->stacked = TAKE((size_t)lin_config_input_width(c));
    a->last = TAKE(C);
    a->last_stats = TAKE(2);
    a->normed = TAKE(C);
    a->branch = TAKE(C);
    if (a->for_training) {
        a->d_x = TAKE(C);
        a->d_y = TAKE(C);
        a->d_qkv = TAKE(3 * C);
        a->d_hidden = TAKE(F);
    }
#undef TAKE
}

lin_status lin_activations_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, int max_rows,
                                  int for_training, lin_activations **out, lin_error *err)
{
    *out = NULL;
    if (max_rows < 1) return lin_fail(err, LIN_INVALID, "room for %d rows requested; must be at least 1", max_rows);
    lin_activations *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, "activations", sizeof *a);
    *a = (lin_activations){.config = *config, .ops = ops, .exec = exec, .max_rows = max_rows, .for_training = for_training};
    const size_t n_layers = (size_t)(for_training ? config->layers : 1);
    a->layers = lin_calloc(n_layers, sizeof *a->layers);
    if (!a->layers) {
        lin_free(a);
        return lin_no_memory(err, "activations", n_layers * sizeof *a->layers);
    }
    // per row: the sum of all widths above; at most one line of padding for each buffer
    const size_t C = (size_t)lin_config_width(config), F = (size_t)config->feedforward, line = 64 / sizeof(lin_real);
    const size_t per_row =
        n_layers * (9 * C + F + 4) + (size_t)lin_config_input_width(config) + 3 * C + 2 + (for_training ? 5 * C + F : 0);
    a->arena.size = ((size_t)max_rows * per_row + (n_layers + 1) * 12 * line) * sizeof(lin_real);
    lin_status status = ops->memory_create(exec, a->arena.size, (void **)&a->arena.base, err);
    if (status != LIN_OK) {
        lin_activations_destroy(a);
        return status;
    }
    lay_out(a);
    *out = a;
    return LIN_OK;
}

void lin_activations_destroy(lin_activations *a)
{
    if (!a) return;
    a->ops->memory_destroy(a->exec, a->arena.base);
    lin_free(a->layers);
    lin_free(a);
}

int lin_activations_rows(const lin_activations *a) { return a->max_rows; }

/* ---- forward ---------------------------------------------------------------------------------------------------------------- */

static void linear(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_real *x, const int pair[2], int rows,
                   lin_activation act)
{
    const lin_param *t = &w->params->table[pair[0]];
    w->ops->linear_forward(exec, y, x, w->packed + w->forward_offset[pair[0]], value(w, pair[1]), rows, t->n, t->k, act);
}

static void norm(const lin_weights *w, lin_exec *exec, lin_real *y, lin_real *stats, const lin_real *x, const int pair[2], int rows)
{
    w->ops->layer_norm_forward(exec, y, stats, x, value(w, pair[0]), value(w, pair[1]), rows, lin_config_width(&w->config));
}

static lin_dropout dropout_of(const lin_weights *w, const lin_batch *batch, int layer, int site)
{
    return (lin_dropout){.p = batch->dropout_key ? w->config.dropout : 0,
                         .key = batch->dropout_key,
                         .site = (uint64_t)(layer * SITES + site)};
}

// The end of a block: sum = x + dropout(branch), normed = LN(sum).
static void add_norm(const lin_weights *w, lin_activations *a, lin_exec *exec, lin_real *sum, lin_real *normed, lin_real *stats,
                     const lin_real *x, const int pair[2], int rows, lin_dropout dropout)
{
    w->ops->add_dropout_norm_forward(exec, sum, normed, stats, x, a->branch, value(w, pair[0]), value(w, pair[1]), rows,
                                     lin_config_width(&w->config), &dropout);
}

// Elements of a state before this layer's part.
static size_t state_offset(const lin_config *c, int layer)
{
    const size_t tail = c->conv_layers ? tail_count(c) : 0;
    return (size_t)layer * attention_state_count(c) + (size_t)(layer < c->conv_layers ? layer : c->conv_layers) * tail;
}

// A pre-norm layer's first norm is computed at the end of the previous layer, which has the sum, unless a convolution comes
// first.
static int norm_is_done_before(const lin_config *c, int layer)
{
    return c->norm == LIN_NORM_PRE && layer > 0 && layer >= c->conv_layers;
}

// One layer, from v->x0 to x_out [rows, C]. Sources of the two orders of norm: Vaswani et al. 2017 (post), Xiong et al. 2020
// (pre).
static void layer_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                          const layer_values *v, const layer_values *next, lin_real *x_out)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const int C = lin_config_width(c), rows = batch->out.rows, pre = c->norm == LIN_NORM_PRE;
    const lin_dropout after_attention = dropout_of(w, batch, l, SITE_ATTENTION), in_hidden = dropout_of(w, batch, l, SITE_HIDDEN),
                      after_feedforward = dropout_of(w, batch, l, SITE_FEEDFORWARD);
    const size_t at = state_offset(c, l);

    if (l < c->conv_layers)
        ops->conv_forward(exec, v->x1, v->x0, value(w, p->conv[0]), value(w, p->conv[1]), &batch->out, C, c->conv_kernel,
                          batch->states, at + attention_state_count(c));
    const lin_real *x1 = l < c->conv_layers ? v->x1 : v->x0;
    if (pre && !norm_is_done_before(c, l)) norm(w, exec, v->n1, v->stats1, x1, p->norm1, rows);
    linear(w, exec, v->qkv, pre ? v->n1 : x1, p->qkv, rows, LIN_LINEAR);
    ops->attention_forward(exec, v->y, v->qkv, &batch->out, c->heads, c->head_width, c->causal, batch->states, at);
    linear(w, exec, a->branch, v->y, p->out, rows, LIN_LINEAR);
    if (pre)
        add_norm(w, a, exec, v->x2, v->n2, v->stats2, x1, p->norm2, rows, after_attention);
    else
        add_norm(w, a, exec, v->n1, v->x2, v->stats1, x1, p->norm1, rows, after_attention);

    linear(w, exec, v->hidden, pre ? v->n2 : v->x2, p->ff1, rows, LIN_RELU);
    if (in_hidden.p > 0) ops->dropout(exec, v->hidden, v->hidden, (size_t)rows * (size_t)c->feedforward, &in_hidden);
    linear(w, exec, a->branch, v->hidden, p->ff2, rows, LIN_LINEAR);
    if (!pre)
        add_norm(w, a, exec, v->n2, x_out, v->stats2, v->x2, p->norm2, rows, after_feedforward);
    else if (!next)
        add_norm(w, a, exec, x_out, a->normed, a->last_stats, v->x2, w->params->norm, rows, after_feedforward);
    else if (norm_is_done_before(c, l + 1))
        add_norm(w, a, exec, x_out, next->n1, next->stats1, v->x2, w->params->layers[l + 1].norm1, rows, after_feedforward);
    else
        ops->add_dropout(exec, x_out, v->x2, a->branch, (size_t)rows * (size_t)C, &after_feedforward);
}

// before, mine: number of layers that the previous rows have completed, and that these have; NULL: there is no other chunk.
static void forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp,
                    const atomic_int *before, atomic_int *mine)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const int rows = batch->out.rows;
    if (rows == 0) return;
    ops->stack_frames(exec, a->stacked, batch->features, batch->mean, batch->istd, &batch->in, &batch->out, c->mel_bins, c->stack,
                      c->ahead);
    linear(w, exec, a->layers[0].x0, a->stacked, w->params->input, rows, LIN_LINEAR);
    if (c->positions == LIN_POSITIONS_SINUSOID) ops->add_sinusoid(exec, a->layers[0].x0, &batch->out, lin_config_width(c));
    for (int l = 0; l < c->layers; l++) {
        const layer_values *v = &a->layers[a->for_training ? l : 0];
        const layer_values *next = l + 1 == c->layers ? NULL : &a->layers[a->for_training ? l + 1 : 0];
        if (before) lin_pool_wait(before, l + 1);
        layer_forward(w, a, exec, batch, l, v, next, next ? next->x0 : a->last);
        if (mine) atomic_store(mine, l + 1);
    }
    if (c->norm == LIN_NORM_POST) norm(w, exec, a->normed, a->last_stats, a->last, w->params->norm, rows);
    linear(w, exec, logp, a->normed, w->params->output, rows, LIN_LINEAR);
    ops->log_softmax(exec, logp, logp, rows, c->outputs);
}

void lin_network_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp)
{
    forward(w, a, exec, batch, logp, NULL, NULL);
}

typedef struct wave {
    const lin_weights *w;
    const lin_activations *a;
    lin_exec *const *execs;
    const lin_batch *batch;
    lin_real *logp;
    int step;
    atomic_int done[LIN_WAVE_CHUNKS]; // layers that each chunk has completed
} wave;

// The buffers of inference from this row on; other rows are those of other chunks.
static void rows_from(const lin_activations *a, size_t row, lin_activations *part, layer_values *v)
{
    const lin_config *c = &a->config;
    const size_t C = (size_t)lin_config_width(c), F = (size_t)c->feedforward;
    *part = *a;
    *v = a->layers[0];
    part->layers = v;
    v->x0 += row * C;
    v->x1 += row * C;
    v->n1 += row * C;
    v->stats1 += row * 2;
    v->qkv += row * 3 * C;
    v->y += row * C;
    v->x2 += row * C;
    v->n2 += row * C;
    v->stats2 += row * 2;
    v->hidden += row * F;
    part->stacked += row * (size_t)lin_config_input_width(c);
    part->last += row * C;
    part->last_stats += row * 2;
    part->normed += row * C;
    part->branch += row * C;
}

static void wave_piece(void *context, int chunk, int thread)
{
    wave *v = context;
    const lin_config *c = &v->w->config;
    const int first = chunk * v->step, left = v->batch->out.rows - first, rows = left < v->step ? left : v->step;
    // The last rows' window ends at the end of the utterance, so that stack_frames repeats its true last frame.
    const int from = first * c->stack, want = rows * c->stack + c->ahead, have = v->batch->in.rows - from;
    const int in[] = {0, have < want ? have : want}, out[] = {0, rows};
    lin_activations part;
    layer_values values;
    lin_batch batch = *v->batch;
    batch.in = (lin_segments){.B = 1, .rows = in[1], .longest = in[1], .offsets = in};
    batch.out = (lin_segments){.B = 1, .rows = rows, .longest = rows, .offsets = out};
    batch.features += (size_t)from * (size_t)c->mel_bins;
    rows_from(v->a, (size_t)first, &part, &values);
    forward(v->w, &part, v->execs[thread], &batch, v->logp + (size_t)first * (size_t)c->outputs,
            chunk ? &v->done[chunk - 1] : NULL, &v->done[chunk]);
}

void lin_network_forward_wave(const lin_weights *w, lin_activations *a, lin_pool *pool, lin_exec *const *execs,
                              const lin_batch *batch, int step, lin_real *logp)
{
    wave v = {.w = w, .a = a, .execs = execs, .batch = batch, .logp = logp, .step = step};
    const int chunks = (batch->out.rows + step - 1) / step;
    for (int i = 0; i < chunks; i++) atomic_init(&v.done[i], 0);
    lin_pool_run(pool, chunks, wave_piece, &v);
}

/* ---- backward --------------------------------------------------------------------------------------------------------------- */

// Gradients of the layer's parameters, and of its input if dx is not NULL.
static void linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                            const lin_real *x, const int pair[2], int rows)
{
    const lin_param *t = &w->params->table[pair[0]];
    w->ops->linear_backward_weight(exec, gradient(w, gradients, pair[0]), gradient(w, gradients, pair[1]), dy, x, rows, t->n, t->k);
    if (dx) w->ops->linear_forward(exec, dx, dy, w->packed + w->backward_offset[pair[0]], NULL, rows, t->k, t->n, LIN_LINEAR);
}

// a->d_x = residual + the norm's gradient of dy; with dropout, a->d_y = dropout(a->d_x), for the previous block.
static void norm_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, lin_real *gradients, const lin_real *dy,
                          const lin_real *residual, const lin_real *x, const lin_real *stats, const int pair[2], int rows,
                          lin_dropout dropout)
{
    w->ops->layer_norm_backward(exec, a->d_x, dropout.p > 0 ? a->d_y : NULL, gradient(w, gradients, pair[0]),
                                gradient(w, gradients, pair[1]), dy, residual, x, stats, value(w, pair[0]), rows,
                                lin_config_width(&w->config), &dropout);
}

// Adds a->branch to a->d_x.
static void add_branch(const lin_weights *w, lin_activations *a, lin_exec *exec, int rows)
{
    const lin_dropout none = {.p = 0};
    w->ops->add_dropout(exec, a->d_x, a->d_x, a->branch, (size_t)rows * (size_t)lin_config_width(&w->config), &none);
}

// On entry a->d_x holds the gradient of the layer's output (and a->d_y, in a pre-norm network with dropout, the same after
// dropout, for the feed-forward block), on return that of its input.
static void layer_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                           lin_real *gradients)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const layer_values *v = &a->layers[l];
    const int C = lin_config_width(c), rows = batch->out.rows, pre = c->norm == LIN_NORM_PRE;
    const lin_dropout none = {.p = 0}, after_attention = dropout_of(w, batch, l, SITE_ATTENTION),
                      after_feedforward = dropout_of(w, batch, l, SITE_FEEDFORWARD);
    const int drops = after_feedforward.p > 0, convolves = l < c->conv_layers;
    const lin_real *x1 = convolves ? v->x1 : v->x0;

    if (!pre) norm_backward(w, a, exec, gradients, a->d_x, NULL, v->n2, v->stats2, p->norm2, rows, after_feedforward);
    linear_backward(w, exec, a->d_hidden, gradients, drops ? a->d_y : a->d_x, v->hidden, p->ff2, rows);
    ops->relu_backward(exec, a->d_hidden, a->d_hidden, v->hidden, (size_t)rows * (size_t)c->feedforward,
                       drops ? 1 / (1 - after_feedforward.p) : 1);
    linear_backward(w, exec, a->branch, gradients, a->d_hidden, pre ? v->n2 : v->x2, p->ff1, rows);
    if (pre) {
        norm_backward(w, a, exec, gradients, a->branch, a->d_x, v->x2, v->stats2, p->norm2, rows, after_attention);
    } else {
        add_branch(w, a, exec, rows);
        norm_backward(w, a, exec, gradients, a->d_x, NULL, v->n1, v->stats1, p->norm1, rows, after_attention);
    }

    linear_backward(w, exec, a->branch, gradients, drops ? a->d_y : a->d_x, v->y, p->out, rows);
    ops->attention_backward(exec, a->d_qkv, a->branch, v->qkv, v->y, &batch->out, c->heads, c->head_width, c->causal);
    linear_backward(w, exec, a->branch, gradients, a->d_qkv, pre ? v->n1 : x1, p->qkv, rows);
    const lin_dropout below = pre && l > 0 ? dropout_of(w, batch, l - 1, SITE_FEEDFORWARD) : none;
    if (pre)
        norm_backward(w, a, exec, gradients, a->branch, a->d_x, x1, v->stats1, p->norm1, rows, convolves ? none : below);
    else
        add_branch(w, a, exec, rows);
    if (!convolves) return;

    ops->conv_backward(exec, a->branch, gradient(w, gradients, p->conv[0]), gradient(w, gradients, p->conv[1]), a->d_x, v->x0,
                       value(w, p->conv[0]), &batch->out, C, c->conv_kernel);
    lin_real *swap = a->d_x;
    a->d_x = a->branch;
    a->branch = swap;
    if (below.p > 0) ops->dropout(exec, a->d_y, a->d_x, (size_t)rows * (size_t)C, &below);
}

void lin_network_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows;
    if (rows == 0) return;
    const lin_dropout none = {.p = 0};
    linear_backward(w, exec, a->branch, gradients, dlogits, a->normed, w->params->output, rows);
    norm_backward(w, a, exec, gradients, a->branch, NULL, a->last, a->last_stats, w->params->norm, rows,
                  c->norm == LIN_NORM_PRE ? dropout_of(w, batch, c->layers - 1, SITE_FEEDFORWARD) : none);
    for (int l = c->layers - 1; l >= 0; l--) layer_backward(w, a, exec, batch, l, gradients);
    linear_backward(w, exec, NULL, gradients, a->d_x, a->stacked, w->params->input, rows);
}
