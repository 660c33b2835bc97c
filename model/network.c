#include "model/network.h"

#include "kernels/memory.h"
#include "kernels/rng.h"

struct lin_weights {
    lin_config config;
    const lin_params *params;
    const lin_real_ops *ops;
    const lin_real *values;
    int for_training;
    lin_real *packed;                       // all matrices, packed for the forward pass and, for training, transposed
    size_t *forward_offset, *backward_offset; // of tensor i in packed; vectors have none
};

/* One layer's intermediate values, all [rows, ...]. Training keeps them per layer, inference reuses one set. */
typedef struct layer_values {
    lin_real *x0;             // input of the layer [C]
    lin_real *x1;             // after the convolution [C]; x0 where there is none
    lin_real *n1, *stats1;    // pre-norm: LN1(x1); post-norm: the sum that LN1 takes in [C]
    lin_real *qkv;            // [3C]
    lin_real *y;              // attention's output [C]
    lin_real *x2;             // between attention and feed-forward [C]
    lin_real *n2, *stats2;    // pre-norm: LN2(x2); post-norm: the sum that LN2 takes in [C]
    lin_real *hidden;         // relu, then dropout [F]
} layer_values;

struct lin_activations {
    lin_config config;
    int max_rows, max_utterances, for_training;
    layer_values *layers;  // L of them (training) or 1
    lin_real *stacked;     // [rows, (s+R) D]
    lin_real *last, *last_stats, *normed; // into and out of the final norm [C]
    lin_real *branch;      // a block's output before it is added [C]
    lin_real *d_x, *d_y, *d_qkv, *d_hidden;
    lin_real **states, **tails; // per utterance, of the layer at work
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

lin_status lin_weights_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, const lin_params *params,
                              const lin_real *values, int for_training, lin_weights **out, lin_error *err)
{
    *out = NULL;
    const size_t n = (size_t)params->n_tensors;
    lin_weights *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "weights", sizeof *w);
    *w = (lin_weights){.config = *config, .params = params, .ops = ops, .values = values, .for_training = for_training};
    w->forward_offset = lin_calloc(n, sizeof *w->forward_offset);
    w->backward_offset = lin_calloc(n, sizeof *w->backward_offset);
    size_t total = 0;
    if (w->forward_offset && w->backward_offset) {
        for (size_t i = 0; i < n; i++) {
            const lin_param *t = &params->table[i];
            if (t->k == 0) continue;
            w->forward_offset[i] = total;
            total += (ops->weight_size(t->n, t->k) + 15) / 16 * 16;
            w->backward_offset[i] = total;
            if (for_training) total += (ops->weight_size(t->k, t->n) + 15) / 16 * 16;
        }
        w->packed = lin_calloc(total, sizeof *w->packed);
    }
    if (!w->packed) {
        lin_weights_destroy(w);
        return lin_no_memory(err, "packed weights", total * sizeof *w->packed);
    }
    lin_weights_pack(w, exec);
    *out = w;
    return LIN_OK;
}

static int is_convolution(const lin_params *p, const lin_config *c, int tensor)
{
    for (int l = 0; l < c->conv_layers; l++)
        if (p->layers[l].conv[0] == tensor) return 1;
    return 0;
}

void lin_weights_pack(lin_weights *w, lin_exec *exec)
{
    for (int i = 0; i < w->params->n_tensors; i++) {
        const lin_param *t = &w->params->table[i];
        if (t->k == 0 || is_convolution(w->params, &w->config, i)) continue;
        w->ops->weight_pack(exec, w->packed + w->forward_offset[i], w->values + t->offset, t->n, t->k);
        if (w->for_training)
            w->ops->weight_pack_transposed(exec, w->packed + w->backward_offset[i], w->values + t->offset, t->n, t->k);
    }
}

void lin_weights_destroy(lin_weights *w)
{
    if (!w) return;
    lin_free(w->packed);
    lin_free(w->forward_offset);
    lin_free(w->backward_offset);
    lin_free(w);
}

static const lin_real *value(const lin_weights *w, int tensor) { return w->values + w->params->table[tensor].offset; }

static lin_real *gradient(const lin_weights *w, lin_real *gradients, int tensor)
{
    return gradients + w->params->table[tensor].offset;
}

/* ---- activations ------------------------------------------------------------------------------------------------------------ */

// Lays out every buffer; called once with an arena without memory to learn the size, once to fill the pointers.
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
    a->states = lin_arena_take(arena, (size_t)a->max_utterances, sizeof *a->states);
    a->tails = lin_arena_take(arena, (size_t)a->max_utterances, sizeof *a->tails);
}

lin_status lin_activations_create(const lin_config *config, int max_rows, int max_utterances, int for_training,
                                  lin_activations **out, lin_error *err)
{
    *out = NULL;
    if (max_rows < 1 || max_utterances < 1)
        return lin_fail(err, LIN_INVALID, "room for %d rows and %d utterances asked for; at least 1 of each", max_rows,
                        max_utterances);
    lin_activations *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, "activations", sizeof *a);
    *a = (lin_activations){.config = *config, .max_rows = max_rows, .max_utterances = max_utterances, .for_training = for_training};
    const size_t n_layers = (size_t)(for_training ? config->layers : 1);
    a->layers = lin_calloc(n_layers, sizeof *a->layers);
    if (!a->layers) {
        lin_free(a);
        return lin_no_memory(err, "activations", n_layers * sizeof *a->layers);
    }
    // per row: the sum of all widths above; 32 buffers of at most one line of padding per layer
    const size_t C = (size_t)lin_config_width(config), F = (size_t)config->feedforward, line = 64 / sizeof(lin_real);
    const size_t per_row =
        n_layers * (9 * C + F + 4) + (size_t)lin_config_input_width(config) + 3 * C + 2 + (for_training ? 5 * C + F : 0);
    const size_t bytes = ((size_t)max_rows * per_row + (n_layers + 1) * 12 * line) * sizeof(lin_real) +
                         2 * ((size_t)max_utterances * sizeof(void *) + 64);
    lin_status status = lin_arena_init(&a->arena, bytes, err);
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
    lin_arena_free(&a->arena);
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

static uint64_t dropout_site(const lin_batch *batch, int layer, int site)
{
    return lin_random_key(batch->dropout_key, (uint64_t)(layer * SITES + site));
}

// Points the backend's per-utterance arrays at this layer's part of each utterance's state. NULL where the batch has no states.
static int select_states(const lin_weights *w, lin_activations *a, const lin_batch *batch, int layer)
{
    if (!batch->states) return 0;
    const lin_config *c = &w->config;
    const size_t attention = attention_state_count(c), tail = c->conv_layers ? tail_count(c) : 0;
    const size_t before = (size_t)layer * attention + (size_t)(layer < c->conv_layers ? layer : c->conv_layers) * tail;
    for (int b = 0; b < batch->B; b++) {
        lin_real *state = batch->states[b];
        a->states[b] = state ? state + before : NULL;
        a->tails[b] = state ? state + before + attention : NULL;
    }
    return 1;
}

// One block: x_out [rows, C] from v->x0. Source of the two orders of norm: Vaswani et al. 2017 (post), Xiong et al. 2020 (pre).
static void layer_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l, layer_values *v,
                          lin_real *x_out)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const int C = lin_config_width(c), rows = batch->offsets[batch->B], pre = c->norm == LIN_NORM_PRE;
    const size_t count = (size_t)rows * (size_t)C;
    const double rate = batch->dropout_key ? c->dropout : 0;
    const int stateful = select_states(w, a, batch, l);

    lin_real *x1 = v->x0;
    if (l < c->conv_layers) {
        x1 = v->x1;
        ops->conv_forward(exec, x1, v->x0, value(w, p->conv[0]), value(w, p->conv[1]), batch->offsets, batch->B, C, c->conv_kernel,
                          stateful ? a->tails : NULL);
    }
    if (pre) norm(w, exec, v->n1, v->stats1, x1, p->norm1, rows);
    linear(w, exec, v->qkv, pre ? v->n1 : x1, p->qkv, rows, LIN_LINEAR);
    ops->attention_forward(exec, v->y, v->qkv, batch->offsets, batch->B, c->heads, c->head_width, c->causal,
                           stateful ? a->states : NULL);
    linear(w, exec, a->branch, v->y, p->out, rows, LIN_LINEAR);
    ops->add_dropout(exec, pre ? v->x2 : v->n1, x1, a->branch, count, rate, dropout_site(batch, l, SITE_ATTENTION));
    if (!pre) norm(w, exec, v->x2, v->stats1, v->n1, p->norm1, rows);

    if (pre) norm(w, exec, v->n2, v->stats2, v->x2, p->norm2, rows);
    linear(w, exec, v->hidden, pre ? v->n2 : v->x2, p->ff1, rows, LIN_RELU);
    if (rate > 0)
        ops->dropout(exec, v->hidden, v->hidden, (size_t)rows * (size_t)c->feedforward, rate, dropout_site(batch, l, SITE_HIDDEN));
    linear(w, exec, a->branch, v->hidden, p->ff2, rows, LIN_LINEAR);
    ops->add_dropout(exec, pre ? x_out : v->n2, v->x2, a->branch, count, rate, dropout_site(batch, l, SITE_FEEDFORWARD));
    if (!pre) norm(w, exec, x_out, v->stats2, v->n2, p->norm2, rows);
}

void lin_network_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const int rows = batch->offsets[batch->B];
    if (rows == 0) return;
    ops->stack_frames(exec, a->stacked, batch->features, batch->mean, batch->istd, batch->in_offsets, batch->offsets, batch->B,
                      c->mel_bins, c->stack, c->ahead);
    linear(w, exec, a->layers[0].x0, a->stacked, w->params->input, rows, LIN_LINEAR);
    if (c->positions == LIN_POSITIONS_SINUSOID)
        ops->add_sinusoid(exec, a->layers[0].x0, batch->offsets, batch->B, lin_config_width(c));
    for (int l = 0; l < c->layers; l++) {
        layer_values v = a->layers[a->for_training ? l : 0];
        lin_real *x_out = l + 1 == c->layers ? a->last : a->for_training ? a->layers[l + 1].x0 : v.x0;
        layer_forward(w, a, exec, batch, l, &v, x_out);
    }
    norm(w, exec, a->normed, a->last_stats, a->last, w->params->norm, rows);
    linear(w, exec, logp, a->normed, w->params->output, rows, LIN_LINEAR);
    ops->log_softmax(exec, logp, logp, rows, c->outputs);
}

/* ---- backward --------------------------------------------------------------------------------------------------------------- */

// Gradients of the layer's parameters, and of its input where dx is not NULL.
static void linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                            const lin_real *x, const int pair[2], int rows)
{
    const lin_param *t = &w->params->table[pair[0]];
    w->ops->linear_backward_weight(exec, gradient(w, gradients, pair[0]), gradient(w, gradients, pair[1]), dy, x, rows, t->n, t->k);
    if (dx) w->ops->linear_forward(exec, dx, dy, w->packed + w->backward_offset[pair[0]], NULL, rows, t->k, t->n, LIN_LINEAR);
}

static void norm_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                          const lin_real *x, const lin_real *stats, const int pair[2], int rows)
{
    w->ops->layer_norm_backward(exec, dx, gradient(w, gradients, pair[0]), gradient(w, gradients, pair[1]), dy, x, stats,
                                value(w, pair[0]), rows, lin_config_width(&w->config));
}

// On entry a->d_x holds the gradient of the layer's output, on return that of its input.
static void layer_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                           lin_real *gradients)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const layer_values *v = &a->layers[l];
    const int C = lin_config_width(c), rows = batch->offsets[batch->B], pre = c->norm == LIN_NORM_PRE;
    const size_t count = (size_t)rows * (size_t)C;
    const double rate = batch->dropout_key ? c->dropout : 0;
    const lin_real *x1 = l < c->conv_layers ? v->x1 : v->x0;

    // feed-forward: d_x becomes the gradient of the sum, d_y that of the branch
    if (!pre) norm_backward(w, exec, a->d_x, gradients, a->d_x, v->n2, v->stats2, p->norm2, rows);
    ops->dropout(exec, a->d_y, a->d_x, count, rate, dropout_site(batch, l, SITE_FEEDFORWARD));
    linear_backward(w, exec, a->d_hidden, gradients, a->d_y, v->hidden, p->ff2, rows);
    ops->relu_backward(exec, a->d_hidden, a->d_hidden, v->hidden, (size_t)rows * (size_t)c->feedforward, 1 / (1 - rate));
    linear_backward(w, exec, a->d_y, gradients, a->d_hidden, pre ? v->n2 : v->x2, p->ff1, rows);
    if (pre) norm_backward(w, exec, a->d_y, gradients, a->d_y, v->x2, v->stats2, p->norm2, rows);
    ops->add(exec, a->d_x, a->d_y, count);

    // attention
    if (!pre) norm_backward(w, exec, a->d_x, gradients, a->d_x, v->n1, v->stats1, p->norm1, rows);
    ops->dropout(exec, a->branch, a->d_x, count, rate, dropout_site(batch, l, SITE_ATTENTION));
    linear_backward(w, exec, a->d_y, gradients, a->branch, v->y, p->out, rows);
    ops->attention_backward(exec, a->d_qkv, a->d_y, v->qkv, v->y, batch->offsets, batch->B, c->heads, c->head_width, c->causal);
    linear_backward(w, exec, a->d_y, gradients, a->d_qkv, pre ? v->n1 : x1, p->qkv, rows);
    if (pre) norm_backward(w, exec, a->d_y, gradients, a->d_y, x1, v->stats1, p->norm1, rows);
    ops->add(exec, a->d_x, a->d_y, count);

    if (l < c->conv_layers) {
        lin_real *swap = a->d_x;
        ops->conv_backward(exec, a->d_y, gradient(w, gradients, p->conv[0]), gradient(w, gradients, p->conv[1]), a->d_x, v->x0,
                           value(w, p->conv[0]), batch->offsets, batch->B, C, c->conv_kernel);
        a->d_x = a->d_y;
        a->d_y = swap;
    }
}

void lin_network_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients)
{
    const lin_config *c = &w->config;
    const int rows = batch->offsets[batch->B];
    if (rows == 0) return;
    linear_backward(w, exec, a->d_y, gradients, dlogits, a->normed, w->params->output, rows);
    norm_backward(w, exec, a->d_x, gradients, a->d_y, a->last, a->last_stats, w->params->norm, rows);
    for (int l = c->layers - 1; l >= 0; l--) layer_backward(w, a, exec, batch, l, gradients);
    linear_backward(w, exec, NULL, gradients, a->d_x, a->stacked, w->params->input, rows);
}
