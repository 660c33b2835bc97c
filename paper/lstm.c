// lstm.c - a stack of LSTM layers: its parameters, buffers, forward and backward pass; see model/config.h, model/network.h.

#include "model/network.h"

static size_t lstm_state(const lin_config *c) { return 2 * (size_t)c->width; } // h and c

static void lstm_parameters(const lin_config *c, lin_params *p)
{
    const int directions = lin_config_directions(c), U = c->width, n = directions * 4 * U;
    for (int l = 0; l < c->layers; l++) {
        lin_param_layer *layer = &p->layers[l];
        lin_params_add_pair(p, layer->gates, n, l ? directions * U : lin_config_input_width(c), l, "gates");
        layer->recurrent = lin_params_add(p, n, U, U, l, "recurrent.weight");
        p->table[layer->gates[0]].fan_in = p->table[layer->gates[1]].fan_in = U; // as PyTorch initialises all of an LSTM
        p->table[layer->recurrent].parts = directions;
    }
}

static void lstm_lay_out(lin_activations *a)
{
    const lin_config *c = &a->config;
    const size_t C = (size_t)lin_config_width(c);
    for (int l = 0; l < (a->for_training ? c->layers : 2); l++) {
        lin_layer_values *v = &a->layers[l];
        v->gates = lin_rows_take(a, 4 * C);
        v->cells = lin_rows_take(a, C);
        v->y = lin_rows_take(a, C);
        if (a->for_training) v->x2 = lin_rows_take(a, C);
    }
    if (!a->for_training) return;
    a->normed = a->layers[c->layers - 1].y;
    a->branch = lin_rows_take(a, C);
    a->d_hidden = lin_rows_take(a, 4 * C);
}

// Dropout is between layers: not after the last.
static int drops(const lin_weights *w, const lin_batch *batch, int layer)
{
    return layer + 1 < w->config.layers && lin_dropout_of(w, batch, layer, LIN_SITE_HIDDEN).p > 0;
}

// R of a layer, packed for the forward pass or transposed.
static const lin_real *recurrent_of(const lin_weights *w, int layer, int transposed)
{
    return w->packed + (transposed ? w->backward_offset : w->forward_offset)[w->params->layers[layer].recurrent];
}

static const lin_real *lstm_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                                    const atomic_int *before, atomic_int *mine)
{
    (void)before, (void)mine; // only a transformer works in chunks
    const lin_config *c = &w->config;
    const int rows = batch->out.rows, U = c->width, directions = lin_config_directions(c);
    const lin_real *x = a->stacked;
    if (c->tokens) lin_layer_embed(w, exec, a->stacked, batch);
    for (int l = 0; l < c->layers; l++) {
        const lin_layer_values *v = &a->layers[a->for_training ? l : l % 2];
        const lin_dropout dropout = lin_dropout_of(w, batch, l, LIN_SITE_HIDDEN);
        lin_layer_linear(w, exec, v->gates, x, w->params->layers[l].gates, rows, LIN_LINEAR);
        w->ops->lstm_forward(exec, v->y, v->cells, v->gates, recurrent_of(w, l, 0), &batch->out, U, directions, batch->states,
                             lin_state_offset(c, l));
        x = v->y;
        if (!drops(w, batch, l)) continue;
        w->ops->dropout(exec, v->x2, v->y, (size_t)rows * (size_t)lin_config_width(c), &dropout);
        x = v->x2;
    }
    return x;
}

static void lstm_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *d,
                          lin_real *gradients)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows, U = c->width, directions = lin_config_directions(c);
    for (int l = c->layers - 1; l >= 0; l--) {
        const lin_layer_values *v = &a->layers[l], *below = l ? &a->layers[l - 1] : NULL;
        const lin_param_layer *p = &w->params->layers[l];
        const lin_dropout dropout = lin_dropout_of(w, batch, l, LIN_SITE_HIDDEN);
        const lin_real *x = !below ? a->stacked : drops(w, batch, l - 1) ? below->x2 : below->y;
        if (drops(w, batch, l)) w->ops->dropout(exec, d, d, (size_t)rows * (size_t)lin_config_width(c), &dropout);
        w->ops->lstm_backward(exec, a->d_hidden, lin_gradient(w, gradients, p->recurrent), d, v->y, v->cells, v->gates,
                              recurrent_of(w, l, 1), &batch->out, U, directions);
        lin_layer_linear_backward(w, exec, below || c->tokens ? d : NULL, gradients, a->d_hidden, x, p->gates, rows);
        if (batch->layer_done) batch->layer_done(batch->layer_context, l);
    }
    if (c->tokens) lin_layer_embed_backward(w, exec, gradients, d, batch);
}

const lin_network lin_network_lstm = {
    .needs = offsetof(lin_real_ops, lstm_forward), .state = lstm_state, .parameters = lstm_parameters, .lay_out = lstm_lay_out,
    .forward = lstm_forward, .backward = lstm_backward};
