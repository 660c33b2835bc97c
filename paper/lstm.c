// lstm.c - a stack of LSTM layers, forward and backward; see config.h, network.h.

#include "model/network_layers.h"

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

const lin_real *lin_lstm_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows, U = c->width, directions = lin_config_directions(c);
    const lin_real *x = a->stacked;
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

void lin_lstm_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *d,
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
        lin_layer_linear_backward(w, exec, below ? d : NULL, gradients, a->d_hidden, x, p->gates, rows);
        if (batch->layer_done) batch->layer_done(batch->layer_context, l);
    }
}
