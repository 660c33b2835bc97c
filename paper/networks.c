// networks.c - the networks that the paper compares with linear attention, as entries of the tables of model/network.h: other
// kinds of attention, and a stack of LSTM layers.

#include "paper/networks.h"

#include <stddef.h>

#include "model/network.h"

/* ---- orthogonal random features, by Gram-Schmidt --------------------------------------------------------------------------- */

// Gaussian i of a key (Box & Muller 1958).
static double gaussian(uint64_t key, uint64_t i)
{
    return sqrt(-2 * log(1 - lin_random_uniform(key, 2 * i))) * cos(6.283185307179586 * lin_random_uniform(key, 2 * i + 1));
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

// Removes from a row its components along the n rows before it, which are orthonormal.
static void project_out(float *row, int n, int E)
{
    for (int i = 1; i <= n; i++) {
        const float *other = row - (ptrdiff_t)i * E;
        const double along = dot(row, other, E);
        for (int e = 0; e < E; e++) row[e] = (float)((double)row[e] - along * (double)other[e]);
    }
}

static double normalise(float *row, int E)
{
    const double length = sqrt(dot(row, row, E));
    for (int e = 0; e < E && length > 0; e++) row[e] = (float)((double)row[e] / length);
    return length;
}

// Draws a uniform direction orthogonal to the n rows before it. Gaussians (almost) in the span of these are drawn again.
static void draw_direction(float *row, int n, int E, uint64_t key)
{
    for (uint64_t attempt = 0;; attempt++) {
        for (int e = 0; e < E; e++) row[e] = (float)gaussian(key, attempt * (uint64_t)E + (uint64_t)e);
        if (normalise(row, E) == 0) continue;
        project_out(row, n, E);
        if (normalise(row, E) < 1e-4) continue;
        project_out(row, n, E); // again: division by a small length amplified the rounding errors of the first time
        normalise(row, E);
        return;
    }
}

void lin_random_features(float *omega, int H, int D, int E, uint64_t seed)
{
    for (int h = 0; h < H; h++) {
        float *head = omega + (size_t)h * (size_t)D * (size_t)E;
        const uint64_t key = lin_random_key(seed, (uint64_t)h);
        for (int d = 0; d < D; d++)
            draw_direction(head + (size_t)d * (size_t)E, d % E, E, lin_random_key(key, 2 * (uint64_t)d));
        for (int d = 0; d < D; d++) { // lengths last: the projections need unit vectors
            double squares = 0;
            for (int e = 0; e < E; e++) squares += pow(gaussian(lin_random_key(key, 2 * (uint64_t)d + 1), (uint64_t)e), 2);
            float *row = head + (size_t)d * (size_t)E;
            for (int e = 0; e < E; e++) row[e] = (float)(sqrt(squares) * (double)row[e]);
        }
    }
}

/* ---- linear attention with other feature maps ------------------------------------------------------------------------------ */

lin_map lin_config_map(const lin_config *c)
{
    const int E = c->head_width, features[] = {E, E * (E + 1) / 2 + E + 1, c->features};
    return (lin_map){.kind = c->feature_map, .D = features[c->feature_map]};
}

static lin_status mapped_check(const lin_config *c, lin_error *err)
{
    enum { MOST_WIDTH = 64 };
    const int D = lin_config_map(c).D;
    if (c->head_width <= MOST_WIDTH && D <= LIN_MOST_FEATURES) return LIN_OK;
    return lin_fail(err, LIN_INVALID,
                    "network configuration: head_width %d gives %d features with feature_map %s; at most %d, and a head_width of "
                    "at most %d, are possible",
                    c->head_width, D, lin_feature_map_names[c->feature_map], LIN_MOST_FEATURES, MOST_WIDTH);
}

static size_t mapped_state(const lin_config *c)
{
    return (size_t)c->heads * (size_t)lin_config_map(c).D * (size_t)(c->head_width + 1);
}

static void mapped_parameters(const lin_config *c, lin_params *p, int l)
{
    if (c->feature_map != LIN_MAP_RANDOM) return;
    const int i = p->layers[l].omega = lin_params_add(p, c->heads * c->features, c->head_width, 0, l, "omega");
    p->table[i].parts = p->table[i].decay = 0;
    p->table[i].is_fixed = 1;
    p->table[i].heads = c->heads;
    p->table[i].draw = lin_random_features;
}

static const lin_real *omega_of(const lin_attend *t)
{
    const int omega = t->w->params->layers[t->layer].omega;
    return omega < 0 ? NULL : lin_value(t->w, omega);
}

static void mapped_forward(const lin_attend *t)
{
    const lin_map map = lin_config_map(&t->w->config);
    t->ops->mapped_attention_forward(t->exec, t->v->y, t->v->qkv, omega_of(t), &t->batch->out, &map, t->H, t->E, t->causal,
                                     t->batch->states, t->at);
}

static void mapped_backward(const lin_attend *t)
{
    const lin_map map = lin_config_map(&t->w->config);
    t->ops->mapped_attention_backward(t->exec, t->d_qkv, t->dy, t->v->qkv, omega_of(t), t->v->y, &t->batch->out, &map, t->H, t->E,
                                      t->causal);
}

const lin_attention lin_attention_mapped = {
    .parts = 3, .needs = offsetof(lin_real_ops, mapped_attention_forward), .check = mapped_check, .state = mapped_state,
    .parameters = mapped_parameters, .forward = mapped_forward, .backward = mapped_backward};

/* ---- softmax, in tiles and with all scores in memory ----------------------------------------------------------------------- */

static void softmax_lay_out(lin_activations *a, lin_layer_values *v)
{
    if (a->for_training) v->lse = lin_rows_take(a, (size_t)a->config.heads);
}

static void softmax_forward(const lin_attend *t)
{
    t->ops->softmax_forward(t->exec, t->v->y, t->v->lse, t->v->qkv, &t->batch->out, t->H, t->E, t->causal, t->batch->caches,
                            t->layer);
}

static void softmax_backward(const lin_attend *t)
{
    t->ops->softmax_backward(t->exec, t->d_qkv, t->dy, t->v->qkv, t->v->y, t->v->lse, &t->batch->out, t->H, t->E, t->causal);
}

const lin_attention lin_attention_softmax = {
    .parts = 3, .needs = offsetof(lin_real_ops, softmax_forward), .widest = 64, .grows = 1,
    .lay_out = softmax_lay_out, .forward = softmax_forward, .backward = softmax_backward};

static void naive_lay_out(lin_activations *a, lin_layer_values *v)
{
    v->scores = lin_rows_take(a, (size_t)a->config.heads * (size_t)a->longest);
}

static void naive_forward(const lin_attend *t)
{
    t->ops->softmax_naive_forward(t->exec, t->v->y, t->v->scores, t->v->qkv, &t->batch->out, t->H, t->E, t->causal);
}

static void naive_backward(const lin_attend *t)
{
    t->ops->softmax_naive_backward(t->exec, t->d_qkv, t->v->scores, t->dy, t->v->qkv, t->v->y, &t->batch->out, t->H, t->E,
                                   t->causal);
}

const lin_attention lin_attention_softmax_naive = {
    .parts = 3, .needs = offsetof(lin_real_ops, softmax_naive_forward),
    .whole = "has softmax attention with all scores in memory (softmax-naive): it needs whole utterances and cannot stream; "
             "attention = softmax is the same function and can",
    .lay_out = naive_lay_out, .forward = naive_forward, .backward = naive_backward};

/* ---- LSH ------------------------------------------------------------------------------------------------------------------- */

lin_lsh lin_config_lsh(const lin_config *c)
{
    enum { ROTATIONS = 64 };
    return (lin_lsh){.rounds = c->lsh_rounds, .chunk = c->lsh_chunk, .rotations = ROTATIONS};
}

// Rotations of a layer: [rounds, H, E, rotations].
static size_t rotations_count(const lin_config *c)
{
    const lin_lsh lsh = lin_config_lsh(c);
    return (size_t)lsh.rounds * (size_t)c->heads * (size_t)c->head_width * (size_t)lsh.rotations;
}

// The same in every model, drawn from the number of the layer.
static lin_status lsh_prepare(lin_weights *w, lin_error *err)
{
    const lin_config *c = &w->config;
    const lin_lsh lsh = lin_config_lsh(c);
    const size_t each = rotations_count(c), count = each * (size_t)c->layers;
    lin_real *host = lin_alloc(count, sizeof *host);
    if (!host) return lin_no_memory(err, "rotations", count * sizeof *host);
    for (int l = 0; l < c->layers; l++)
        lin_lsh_rotations(host + (size_t)l * each, lsh.rounds, c->heads, c->head_width, lsh.rotations,
                          lin_random_key(0, (uint64_t)l));
    const lin_status status = w->ops->memory_create(w->exec, count * sizeof *host, (void **)&w->constants, err);
    if (status == LIN_OK) w->ops->upload(w->exec, w->constants, host, count * sizeof *host);
    lin_free(host);
    return status;
}

static void lsh_lay_out(lin_activations *a, lin_layer_values *v)
{
    const size_t H = (size_t)a->config.heads;
    v->lse = lin_rows_take(a, H);
    v->order = lin_arena_take(&a->arena, (size_t)a->max_rows * H * (size_t)a->config.lsh_rounds, sizeof *v->order);
}

static void lsh_forward(const lin_attend *t)
{
    const lin_lsh lsh = lin_config_lsh(&t->w->config);
    const lin_real *R = t->w->constants + (size_t)t->layer * rotations_count(&t->w->config);
    t->ops->lsh_forward(t->exec, t->v->y, t->v->lse, t->v->order, t->v->qkv, R, &t->batch->out, &lsh, t->H, t->E, t->causal);
}

static void lsh_backward(const lin_attend *t)
{
    const lin_lsh lsh = lin_config_lsh(&t->w->config);
    t->ops->lsh_backward(t->exec, t->d_qkv, t->dy, t->v->qkv, t->v->y, t->v->lse, t->v->order, &t->batch->out, &lsh, t->H, t->E,
                         t->causal);
}

const lin_attention lin_attention_lsh = {
    .parts = 2, .needs = offsetof(lin_real_ops, lsh_forward), .widest = 64, // queries and keys are shared
    .whole = "has LSH attention, which sorts all frames of an utterance: it needs whole utterances and cannot stream",
    .prepare = lsh_prepare, .lay_out = lsh_lay_out, .forward = lsh_forward, .backward = lsh_backward};

/* ---- LSTM ------------------------------------------------------------------------------------------------------------------ */

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

// Whether dropout follows this layer: not after the last.
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
