// transformer.c - a transformer: its parameters, its buffers, its layers forward and backward, and linear attention in them; see
// network.h. Other kinds of attention: paper/networks.c.

#include "model/network.h"

/* ---- attention ------------------------------------------------------------------------------------------------------------- */

// Eq. 18-19: the sums S [E, E] and z [E] of each head.
static size_t sums_count(const lin_config *c) { return (size_t)c->heads * (size_t)c->head_width * (size_t)(c->head_width + 1); }

static void linear_attention_forward(const lin_attend *t)
{
    t->ops->attention_forward(t->exec, t->v->y, t->v->qkv, &t->batch->out, t->H, t->E, t->causal, t->batch->states, t->at);
}

static void linear_attention_backward(const lin_attend *t)
{
    t->ops->attention_backward(t->exec, t->d_qkv, t->dy, t->v->qkv, t->v->y, &t->batch->out, t->H, t->E, t->causal);
}

// The gates of the decays: from the layer's input, or the same for all rows.
static const lin_real *gates_of(const lin_attend *t)
{
    return t->v->decay ? t->v->decay : lin_value(t->w, t->w->params->layers[t->layer].decay[1]);
}

static void add_decay(const lin_config *c, lin_params *p, int l)
{
    const int C = lin_config_width(c);
    int *role = p->layers[l].decay;
    if (c->decay == LIN_DECAY_GATED) role[0] = lin_params_add(p, c->heads, C, C, l, "decay.weight");
    role[1] = lin_params_add(p, c->heads, 0, C, l, "decay.bias");
    for (int i = 0; i < 2; i++)
        if (role[i] >= 0) p->table[role[i]].is_gate = 1;
    p->table[role[1]].is_fixed = c->decay == LIN_DECAY_FIXED;
}

static void decayed_forward(const lin_attend *t)
{
    if (t->v->decay)
        lin_layer_linear(t->w, t->exec, t->v->decay, t->x, t->w->params->layers[t->layer].decay, t->batch->out.rows, LIN_LINEAR);
    t->ops->decayed_attention_forward(t->exec, t->v->y, t->v->qkv, gates_of(t), !t->v->decay, &t->batch->out, t->H, t->E,
                                      t->batch->states, t->at);
}

// Also writes d_decay, if the gates are computed from the input.
static void decayed_backward(const lin_attend *t)
{
    t->ops->decayed_attention_backward(t->exec, t->d_qkv, t->d_decay, t->dy, t->v->qkv, gates_of(t), !t->v->decay, t->v->y,
                                       &t->batch->out, t->H, t->E);
}

const lin_attention *lin_attention_of(const lin_config *c)
{
    enum { MAPPED = LIN_ATTENTION_LSH + 1, DECAYED, KINDS };
    static const lin_attention linear = {
        .parts = 3, .state = sums_count, .forward = linear_attention_forward, .backward = linear_attention_backward};
    static const lin_attention decayed = {
        .parts = 3, .needs = offsetof(lin_real_ops, decayed_attention_forward), .state = sums_count,
        .parameters = add_decay, .forward = decayed_forward, .backward = decayed_backward};
    static const lin_attention *const kinds[KINDS] = {
        [LIN_ATTENTION_LINEAR] = &linear,
        [DECAYED] = &decayed,
#ifndef LIN_NO_PAPER
        [LIN_ATTENTION_SOFTMAX] = &lin_attention_softmax,
        [LIN_ATTENTION_SOFTMAX_NAIVE] = &lin_attention_softmax_naive,
        [LIN_ATTENTION_LSH] = &lin_attention_lsh,
        [MAPPED] = &lin_attention_mapped,
#endif
    };
    return kinds[c->feature_map ? MAPPED : c->decay ? DECAYED : (int)c->attention];
}

// Whether the backend has this network's attention blocks as one operation, in training.
static int has_block(const lin_real_ops *ops, const lin_config *c)
{
    return ops->attention_block_forward && lin_config_is_plain(c) && lin_config_width(c) % 8 == 0 && c->head_width % 2 == 0;
}

static int is_one_block(const lin_weights *w, const lin_activations *a, const lin_batch *batch)
{
    return a->for_training && !batch->states && has_block(w->ops, &w->config);
}

// Whether norms write the operands of adjacent feed-forward blocks (`operand` of kernels/ops.h).
static int norms_write_operands(const lin_activations *a)
{
    const int C = lin_config_width(&a->config), F = a->config.feedforward;
    return a->for_training && a->ops->writes_operands && C % 8 == 0 && F % 8 == 0 && C <= F;
}

// The same for the blocks of attention.
static int norms_write_for_attention(const lin_weights *w, const lin_activations *a, const lin_batch *batch)
{
    return norms_write_operands(a) && is_one_block(w, a, batch);
}

// Tells the backend that layer l is the next to use its part of the states.
static void expect(const lin_weights *w, lin_exec *exec, const lin_batch *batch, int l)
{
    const lin_config *c = &w->config;
    const int some = l < c->layers && batch->states;
    const size_t at = lin_state_offset(c, l);
    if (w->ops->expect_states)
        w->ops->expect_states(exec, batch->states, some ? batch->out.B : 0, at, lin_state_offset(c, l + 1) - at);
}

static lin_attend attend_of(const lin_weights *w, lin_exec *exec, const lin_batch *batch, int l, const lin_layer_values *v)
{
    const lin_config *c = &w->config;
    return (lin_attend){.w = w, .ops = w->ops, .exec = exec, .batch = batch, .v = v, .layer = l,
                        .H = c->heads, .E = c->head_width, .causal = c->causal};
}

// branch = wout attention(wqkv x + bqkv) + bout; at: where the layer's part of a state begins.
static void attention_block(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                            const lin_layer_values *v, const lin_real *x, size_t at)
{
    const lin_config *c = &w->config;
    const lin_param_layer *p = &w->params->layers[l];
    const int rows = batch->out.rows;
    if (is_one_block(w, a, batch)) {
        w->ops->attention_block_forward(exec, a->branch, v->qkv, v->y, v->operands, x, w->packed + w->forward_offset[p->qkv[0]],
                                        lin_value(w, p->qkv[1]), w->packed + w->forward_offset[p->out[0]],
                                        lin_value(w, p->out[1]), &batch->out, c->heads, c->head_width, c->causal);
        return;
    }
    lin_attend attend = attend_of(w, exec, batch, l, v);
    attend.x = x;
    attend.at = at;
    lin_layer_linear(w, exec, v->qkv, x, p->qkv, rows, LIN_LINEAR);
    lin_attention_of(c)->forward(&attend);
    expect(w, exec, batch, l + 1);
    lin_layer_linear(w, exec, a->branch, v->y, p->out, rows, LIN_LINEAR);
}

// a->branch = the gradient of the block's input x, from dy. bias_done: a norm's gradient has added that of the output's bias.
static void attention_block_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                                     lin_real *gradients, const lin_real *dy, const lin_real *x, int bias_done)
{
    const lin_config *c = &w->config;
    const lin_param_layer *p = &w->params->layers[l];
    const lin_layer_values *v = &a->layers[l];
    const int rows = batch->out.rows;
    if (is_one_block(w, a, batch)) {
        w->ops->attention_block_backward(exec, a->branch, lin_gradient(w, gradients, p->qkv[0]),
                                         lin_gradient(w, gradients, p->qkv[1]), lin_gradient(w, gradients, p->out[0]), dy, x,
                                         v->qkv, v->y, v->operands, a->d_qkv, w->packed + w->backward_offset[p->qkv[0]],
                                         w->packed + w->backward_offset[p->out[0]], &batch->out, c->heads, c->head_width,
                                         c->causal);
        return;
    }
    lin_attend attend = attend_of(w, exec, batch, l, v);
    attend.dy = a->branch;
    attend.d_qkv = a->d_qkv;
    attend.d_decay = a->d_decay;
    const int out[2] = {p->out[0], bias_done ? -1 : p->out[1]};
    lin_layer_linear_backward(w, exec, a->branch, gradients, dy, v->y, out, rows);
    lin_attention_of(c)->backward(&attend);
    lin_layer_linear_backward(w, exec, a->branch, gradients, a->d_qkv, x, p->qkv, rows);
}

/* ---- parameters and buffers ------------------------------------------------------------------------------------------------ */

// Elements of a layer's state before the tail of its convolution.
static size_t state_count(const lin_config *c) { return lin_attention_of(c)->state ? lin_attention_of(c)->state(c) : 0; }

static void transformer_parameters(const lin_config *c, lin_params *p)
{
    const int C = lin_config_width(c);
    const lin_attention *attention = lin_attention_of(c);
    if (!c->tokens) lin_params_add_pair(p, p->input, C, lin_config_input_width(c), -1, "input");
    for (int l = 0; l < c->layers; l++) {
        lin_param_layer *layer = &p->layers[l];
        if (l < c->conv_layers) {
            layer->conv[0] = lin_params_add(p, c->conv_kernel, C, c->conv_kernel, l, "conv.weight");
            layer->conv[1] = lin_params_add(p, C, 0, c->conv_kernel, l, "conv.bias");
            p->table[layer->conv[0]].parts = 0;
        }
        lin_params_add_pair(p, layer->qkv, attention->parts * C, C, l, attention->parts == 2 ? "qv" : "qkv");
        if (attention->parameters) attention->parameters(c, p, l);
        lin_params_add_pair(p, layer->out, C, C, l, "out");
        lin_params_add_pair(p, layer->norm1, C, 0, l, "norm1");
        lin_params_add_pair(p, layer->ff1, c->feedforward, C, l, "ff1");
        lin_params_add_pair(p, layer->ff2, C, c->feedforward, l, "ff2");
        lin_params_add_pair(p, layer->norm2, C, 0, l, "norm2");
        const int wide[] = {layer->qkv[0], layer->out[0], layer->ff1[0], layer->ff2[0]};
        for (int i = 0; i < 4; i++) p->table[wide[i]].eight_bits = 1;
    }
    lin_params_add_pair(p, p->norm, C, 0, -1, "norm");
    if (!c->condition_every) return;
    lin_params_add_pair(p, p->condition, C, c->outputs, -1, "condition");
    for (int i = 0; i < 2; i++) p->table[p->condition[i]].is_zero = 1;
}

static void transformer_lay_out(lin_activations *a)
{
    const lin_config *c = &a->config;
    const lin_attention *attention = lin_attention_of(c);
    const size_t C = (size_t)lin_config_width(c), F = (size_t)c->feedforward, V = (size_t)c->outputs,
                 parts = (size_t)attention->parts;
    const int sums = a->for_training || c->norm == LIN_NORM_PRE; // of blocks, before their norm
    for (int l = 0; l < (a->for_training ? c->layers : 1); l++) {
        lin_layer_values *v = &a->layers[l];
        v->x0 = lin_rows_take(a, C);
        v->u = a->for_training && lin_config_conditions(c, l) ? lin_rows_take(a, C) : v->x0;
        v->posterior = (a->for_training ? lin_config_conditions(c, l) : c->condition_every) ? lin_rows_take(a, V) : NULL;
        v->x1 = c->conv_layers > l ? lin_rows_take(a, C) : v->x0;
        v->n1 = sums ? lin_rows_take(a, C) : NULL;
        v->stats1 = lin_rows_take(a, 2);
        v->qkv = lin_rows_take(a, parts * C);
        v->decay = c->decay == LIN_DECAY_GATED ? lin_rows_take(a, (size_t)c->heads) : NULL;
        v->y = lin_rows_take(a, C);
        v->operands = a->for_training && has_block(a->ops, c) ? lin_rows_take(a, C) : NULL;
        if (attention->lay_out) attention->lay_out(a, v);
        v->x2 = lin_rows_take(a, C);
        v->n2 = sums ? lin_rows_take(a, C) : NULL;
        v->stats2 = lin_rows_take(a, 2);
        v->hidden = lin_rows_take(a, F);
    }
    a->last = lin_rows_take(a, C);
    a->last_stats = lin_rows_take(a, 2);
    a->normed = lin_rows_take(a, C);
    a->branch = lin_rows_take(a, C);
    if (!a->for_training) return;
    a->d_x = lin_rows_take(a, C);
    a->d_y = lin_rows_take(a, C);
    a->d_qkv = lin_rows_take(a, parts * C);
    a->d_decay = c->decay == LIN_DECAY_GATED ? lin_rows_take(a, (size_t)c->heads) : NULL;
    a->d_hidden = lin_rows_take(a, F);
    a->d_posterior = c->condition_every ? lin_rows_take(a, V) : NULL;
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

static void norm(const lin_weights *w, lin_exec *exec, lin_real *y, lin_real *stats, const lin_real *x, const int pair[2],
                 int rows)
{
    w->ops->layer_norm_forward(exec, y, stats, x, lin_value(w, pair[0]), lin_value(w, pair[1]), rows,
                               lin_config_width(&w->config));
}

// The end of a block: sum = x + dropout(branch), normed = LN(sum). A post-norm network needs the sum only for the backward pass.
// operand: NULL, or where the next block's goes.
static void add_norm(const lin_weights *w, lin_activations *a, lin_exec *exec, lin_real *sum, lin_real *normed, lin_real *stats,
                     const lin_real *x, const int pair[2], int rows, lin_dropout dropout, lin_real *operand)
{
    const lin_real *gamma = lin_value(w, pair[0]), *beta = lin_value(w, pair[1]);
    if (w->config.norm == LIN_NORM_POST && !a->for_training) sum = normed;
    w->ops->add_dropout_norm_forward(exec, operand, sum, normed, stats, x, a->branch, gamma, beta, rows,
                                     lin_config_width(&w->config), &dropout);
}

// branch = w2 dropout(relu(w1 x + b1)) + b2; v->hidden is kept for the backward pass.
static void feedforward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_layer_values *v, const lin_real *x,
                        const lin_param_layer *p, int rows, lin_dropout dropout)
{
    const lin_real_ops *ops = w->ops;
    const int C = lin_config_width(&w->config), F = w->config.feedforward;
    if (a->for_training && ops->feedforward_forward) {
        ops->feedforward_forward(exec, a->branch, v->hidden, x, w->packed + w->forward_offset[p->ff1[0]], lin_value(w, p->ff1[1]),
                                 w->packed + w->forward_offset[p->ff2[0]], lin_value(w, p->ff2[1]), rows, C, F, &dropout);
        return;
    }
    lin_layer_linear(w, exec, v->hidden, x, p->ff1, rows, LIN_RELU);
    if (dropout.p > 0) ops->dropout(exec, v->hidden, v->hidden, (size_t)rows * (size_t)F, &dropout);
    lin_layer_linear(w, exec, a->branch, v->hidden, p->ff2, rows, LIN_LINEAR);
}

// A pre-norm layer's first norm is computed at the end of the previous layer, which has the sum, unless a convolution or a
// condition comes first.
static int norm_is_done_before(const lin_config *c, int layer)
{
    return c->norm == LIN_NORM_PRE && layer > 0 && layer >= c->conv_layers && !lin_config_conditions(c, layer);
}

// The same for the operand of a layer's attention, in both orders of norm.
static int operand_is_done_before(const lin_weights *w, const lin_activations *a, const lin_batch *batch, int layer)
{
    const lin_config *c = &w->config;
    return norms_write_for_attention(w, a, batch) && layer > 0 && layer >= c->conv_layers && !lin_config_conditions(c, layer);
}

// One layer, from v->x0 to x_out [rows, C]. Sources of the two orders of norm: Vaswani et al. 2017 (post), Xiong et al. 2020
// (pre).
static void layer_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                          const lin_layer_values *v, const lin_layer_values *next, lin_real *x_out)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const int C = lin_config_width(c), rows = batch->out.rows, pre = c->norm == LIN_NORM_PRE;
    const lin_dropout after_attention = lin_dropout_of(w, batch, l, LIN_SITE_ATTENTION),
                      in_hidden = lin_dropout_of(w, batch, l, LIN_SITE_HIDDEN),
                      after_feedforward = lin_dropout_of(w, batch, l, LIN_SITE_FEEDFORWARD);
    const size_t at = lin_state_offset(c, l);
    lin_real *wide = norms_write_operands(a) ? v->hidden : NULL,
             *later = next && operand_is_done_before(w, a, batch, l + 1) ? next->operands : NULL;

    if (l < c->conv_layers)
        ops->conv_forward(exec, v->x1, v->x0, lin_value(w, p->conv[0]), lin_value(w, p->conv[1]), &batch->out, C, c->conv_kernel,
                          lin_config_conv_after(c), batch->states, at + state_count(c));
    const lin_real *x1 = l < c->conv_layers ? v->x1 : v->x0;
    if (pre && !norm_is_done_before(c, l)) norm(w, exec, v->n1, v->stats1, x1, p->norm1, rows);
    attention_block(w, a, exec, batch, l, v, operand_is_done_before(w, a, batch, l) ? NULL : pre ? v->n1 : x1, at);
    if (pre)
        add_norm(w, a, exec, v->x2, v->n2, v->stats2, x1, p->norm2, rows, after_attention, wide);
    else
        add_norm(w, a, exec, v->n1, v->x2, v->stats1, x1, p->norm1, rows, after_attention, wide);

    feedforward(w, a, exec, v, wide ? NULL : pre ? v->n2 : v->x2, p, rows, in_hidden);
    if (!pre)
        add_norm(w, a, exec, v->n2, x_out, v->stats2, v->x2, p->norm2, rows, after_feedforward, later);
    else if (!next)
        add_norm(w, a, exec, x_out, a->normed, a->last_stats, v->x2, w->params->norm, rows, after_feedforward, NULL);
    else if (norm_is_done_before(c, l + 1))
        add_norm(w, a, exec, x_out, next->n1, next->stats1, v->x2, w->params->layers[l + 1].norm1, rows, after_feedforward,
                 later);
    else
        ops->add_dropout(exec, x_out, v->x2, a->branch, (size_t)rows * (size_t)C, &after_feedforward);
}

// Self-conditioning (Nozaki & Komatsu 2021): v->x0 = v->u + W_c softmax(output(v->u)).
static void condition(const lin_weights *w, lin_activations *a, lin_exec *exec, int rows, const lin_layer_values *v)
{
    const lin_config *c = &w->config;
    const lin_dropout none = {.p = 0};
    norm(w, exec, a->normed, a->last_stats, v->u, w->params->norm, rows);
    lin_layer_linear(w, exec, v->posterior, a->normed, w->params->output, rows, LIN_LINEAR);
    w->ops->softmax_rows(exec, v->posterior, v->posterior, rows, c->outputs);
    lin_layer_linear(w, exec, a->branch, v->posterior, w->params->condition, rows, LIN_LINEAR);
    w->ops->add_dropout(exec, v->x0, v->u, a->branch, (size_t)rows * (size_t)lin_config_width(c), &none);
}

static const lin_real *transformer_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                                           const atomic_int *before, atomic_int *mine)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows;
    expect(w, exec, batch, 0);
    if (c->tokens) lin_layer_embed(w, exec, a->layers[0].x0, batch);
    else lin_layer_linear(w, exec, a->layers[0].x0, a->stacked, w->params->input, rows, LIN_LINEAR);
    if (before && c->positions == LIN_POSITIONS_SINUSOID) lin_pool_wait(before, 1); // the previous chunk has counted its rows
    if (c->positions == LIN_POSITIONS_SINUSOID)
        w->ops->add_sinusoid(exec, a->layers[0].x0, &batch->out, lin_config_width(c), c->causal ? batch->states : NULL,
                             lin_state_offset(c, c->layers));
    for (int l = 0; l < c->layers; l++) {
        const lin_layer_values *v = &a->layers[a->for_training ? l : 0];
        const lin_layer_values *next = l + 1 == c->layers ? NULL : &a->layers[a->for_training ? l + 1 : 0];
        if (before) lin_pool_wait(before, l + 1);
        layer_forward(w, a, exec, batch, l, v, next, next ? next->u : a->last);
        if (lin_config_conditions(c, l + 1)) condition(w, a, exec, rows, next);
        if (mine) atomic_store(mine, l + 1);
    }
    if (c->norm == LIN_NORM_POST) norm(w, exec, a->normed, a->last_stats, a->last, w->params->norm, rows);
    return a->normed;
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

// a->d_x = residual + the norm's gradient of dy + a->d_more; with dropout, a->d_y = dropout(a->d_x), for the previous block. db:
// the gradient of that block's last bias, or NULL. operand: NULL, or where the block's operand goes in place of a->d_y.
static void norm_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, lin_real *gradients, const lin_real *dy,
                          const lin_real *residual, const lin_real *x, const lin_real *stats, const int pair[2], int rows,
                          lin_dropout dropout, lin_real *db, lin_real *operand)
{
    const lin_real *gamma = lin_value(w, pair[0]);
    lin_real *dropped = dropout.p > 0 ? a->d_y : NULL, *dgamma = lin_gradient(w, gradients, pair[0]),
             *dbeta = lin_gradient(w, gradients, pair[1]);
    w->ops->layer_norm_backward(exec, operand, a->d_x, dropped, dgamma, dbeta, db, dy, a->d_more, residual, x, stats, gamma, rows,
                                lin_config_width(&w->config), &dropout);
    a->d_more = NULL;
}

// a->branch = the gradient of the block's input x, from dy; NULL: a norm has written it, and added up the last bias's gradient.
static void feedforward_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, lin_real *gradients,
                                 const lin_real *dy, const lin_layer_values *v, const lin_real *x, const lin_param_layer *p,
                                 int rows, lin_dropout dropout)
{
    const lin_real_ops *ops = w->ops;
    const int C = lin_config_width(&w->config), F = w->config.feedforward;
    if (ops->feedforward_backward) {
        ops->feedforward_backward(exec, a->branch, lin_gradient(w, gradients, p->ff1[0]), lin_gradient(w, gradients, p->ff1[1]),
                                  lin_gradient(w, gradients, p->ff2[0]), dy ? lin_gradient(w, gradients, p->ff2[1]) : NULL, dy, x,
                                  v->hidden, a->d_hidden, w->packed + w->backward_offset[p->ff1[0]],
                                  w->packed + w->backward_offset[p->ff2[0]], rows, C, F, &dropout);
        return;
    }
    lin_layer_linear_backward(w, exec, a->d_hidden, gradients, dy, v->hidden, p->ff2, rows);
    ops->relu_backward(exec, a->d_hidden, a->d_hidden, v->hidden, (size_t)rows * (size_t)F,
                       dropout.p > 0 ? 1 / (1 - dropout.p) : 1);
    lin_layer_linear_backward(w, exec, a->branch, gradients, a->d_hidden, x, p->ff1, rows);
}

// Adds a->d_more to a->d_x if the next reader is not a norm, which would add it itself.
static void add_more(const lin_weights *w, lin_activations *a, lin_exec *exec, int rows)
{
    const lin_dropout none = {.p = 0};
    if (a->d_more)
        w->ops->add_dropout(exec, a->d_x, a->d_x, a->d_more, (size_t)rows * (size_t)lin_config_width(&w->config), &none);
    a->d_more = NULL;
}

// The dropout of the last block of the layer below, which a pre-norm network applies to a->d_x at the end of this layer.
static lin_dropout dropout_below(const lin_weights *w, const lin_batch *batch, int l)
{
    const lin_dropout none = {.p = 0};
    return w->config.norm == LIN_NORM_PRE && l > 0 ? lin_dropout_of(w, batch, l - 1, LIN_SITE_FEEDFORWARD) : none;
}

// On entry a->d_x, with a->d_more, holds the gradient of the layer's output (and a->d_y, in a pre-norm network with dropout, the
// same after dropout, for the feed-forward block), on return that of its input. Only post-norm networks leave a->d_more.
static void layer_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int l,
                           lin_real *gradients)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const lin_param_layer *p = &w->params->layers[l];
    const lin_layer_values *v = &a->layers[l];
    const int C = lin_config_width(c), rows = batch->out.rows, pre = c->norm == LIN_NORM_PRE;
    const lin_dropout none = {.p = 0}, after_attention = lin_dropout_of(w, batch, l, LIN_SITE_ATTENTION),
                      in_hidden = lin_dropout_of(w, batch, l, LIN_SITE_HIDDEN),
                      after_feedforward = lin_dropout_of(w, batch, l, LIN_SITE_FEEDFORWARD);
    const int drops = after_feedforward.p > 0, convolves = l < c->conv_layers;
    const lin_real *x1 = convolves ? v->x1 : v->x0;
    lin_real *db = ops->sums_in_norm ? lin_gradient(w, gradients, p->out[1]) : NULL;
    lin_real *wide = !pre && norms_write_operands(a) ? a->d_hidden : NULL,
             *operand = norms_write_for_attention(w, a, batch) ? a->d_qkv : NULL;

    if (!pre)
        norm_backward(w, a, exec, gradients, a->d_x, NULL, v->n2, v->stats2, p->norm2, rows, after_feedforward,
                      wide ? lin_gradient(w, gradients, p->ff2[1]) : NULL, wide);
    feedforward_backward(w, a, exec, gradients, wide ? NULL : drops ? a->d_y : a->d_x, v, pre ? v->n2 : v->x2, p, rows,
                         in_hidden);
    if (pre) {
        norm_backward(w, a, exec, gradients, a->branch, a->d_x, v->x2, v->stats2, p->norm2, rows, after_attention, db, operand);
    } else {
        a->d_more = a->branch;
        norm_backward(w, a, exec, gradients, a->d_x, NULL, v->n1, v->stats1, p->norm1, rows, after_attention, db, operand);
    }

    attention_block_backward(w, a, exec, batch, l, gradients, operand ? NULL : drops ? a->d_y : a->d_x, pre ? v->n1 : x1,
                             db != NULL);
    if (a->d_decay) { // d_qkv is free again
        lin_layer_linear_backward(w, exec, a->d_qkv, gradients, a->d_decay, pre ? v->n1 : x1, p->decay, rows);
        ops->add_dropout(exec, a->branch, a->branch, a->d_qkv, (size_t)rows * (size_t)C, &none);
    }
    const lin_dropout below = dropout_below(w, batch, l);
    if (pre)
        norm_backward(w, a, exec, gradients, a->branch, a->d_x, x1, v->stats1, p->norm1, rows, convolves ? none : below, NULL,
                      NULL);
    else
        a->d_more = a->branch;
    if (!convolves) return;

    add_more(w, a, exec, rows);
    ops->conv_backward(exec, a->branch, lin_gradient(w, gradients, p->conv[0]), lin_gradient(w, gradients, p->conv[1]), a->d_x,
                       v->x0, lin_value(w, p->conv[0]), &batch->out, C, c->conv_kernel, lin_config_conv_after(c));
    lin_real *swap = a->d_x;
    a->d_x = a->branch;
    a->branch = swap;
    if (below.p > 0) ops->dropout(exec, a->d_y, a->d_x, (size_t)rows * (size_t)C, &below);
}

// Adds the gradient through the prediction of the first `layer` layers, given that of its logits, to a->d_x, the gradient of
// their output. The last norm's own values are not needed any more.
static void inner_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int layer,
                           const lin_real *dlogits, lin_real *gradients)
{
    const int rows = batch->out.rows;
    const lin_real *u = a->layers[layer].u;
    add_more(w, a, exec, rows);
    norm(w, exec, a->normed, a->last_stats, u, w->params->norm, rows);
    lin_layer_linear_backward(w, exec, a->branch, gradients, dlogits, a->normed, w->params->output, rows);
    norm_backward(w, a, exec, gradients, a->branch, a->d_x, u, a->last_stats, w->params->norm, rows,
                  dropout_below(w, batch, layer), NULL, NULL);
}

// a->d_x: on entry, with a->d_more, the gradient of the layer's input, on return that of the output of the layers before.
static void condition_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int layer,
                               lin_real *gradients)
{
    const lin_real *p = a->layers[layer].posterior;
    add_more(w, a, exec, batch->out.rows);
    lin_layer_linear_backward(w, exec, a->d_posterior, gradients, a->d_x, p, w->params->condition, batch->out.rows);
    w->ops->softmax_rows_backward(exec, a->d_posterior, a->d_posterior, p, batch->out.rows, w->config.outputs);
    inner_backward(w, a, exec, batch, layer, a->d_posterior, gradients);
}

static void transformer_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *d,
                                 lin_real *gradients)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows;
    const lin_dropout none = {.p = 0};
    a->d_more = NULL;
    norm_backward(w, a, exec, gradients, d, NULL, a->last, a->last_stats, w->params->norm, rows,
                  c->norm == LIN_NORM_PRE ? lin_dropout_of(w, batch, c->layers - 1, LIN_SITE_FEEDFORWARD) : none, NULL, NULL);
    for (int l = c->layers - 1; l >= 0; l--) {
        layer_backward(w, a, exec, batch, l, gradients);
        if (lin_config_conditions(c, l)) condition_backward(w, a, exec, batch, l, gradients);
        for (int i = 0; i < batch->n_inner; i++)
            if (batch->inner[i].layer == l) inner_backward(w, a, exec, batch, l, batch->inner[i].dlogits, gradients);
        if (batch->layer_done) batch->layer_done(batch->layer_context, l);
    }
    add_more(w, a, exec, rows);
    if (c->tokens) lin_layer_embed_backward(w, exec, gradients, a->d_x, batch);
    else lin_layer_linear_backward(w, exec, NULL, gradients, a->d_x, a->stacked, w->params->input, rows);
}

const lin_network lin_network_transformer = {.state = state_count, .parameters = transformer_parameters,
                                             .lay_out = transformer_lay_out, .forward = transformer_forward,
                                             .backward = transformer_backward};
