// network.c - weights, activations and the parts that all networks share; see network.h. The layers: transformer.c, paper/.

#include <assert.h>
#include <string.h>

#include "model/network.h"

const lin_network *lin_network_of(const lin_config *c)
{
    static const lin_network *const networks[] = {
        [LIN_NETWORK_TRANSFORMER] = &lin_network_transformer,
#ifndef LIN_NO_PAPER
        [LIN_NETWORK_LSTM] = &lin_network_lstm,
#else
        [LIN_NETWORK_LSTM] = NULL,
#endif
    };
    return networks[c->network];
}

static size_t tail_count(const lin_config *c) { return (size_t)(c->conv_kernel - 1) * (size_t)lin_config_width(c); }

// A causal network with sinusoids has its number of rows after the layers' states.
size_t lin_config_state_count(const lin_config *c)
{
    return lin_state_offset(c, c->layers) + (c->causal && c->positions == LIN_POSITIONS_SINUSOID);
}

size_t lin_config_cache_count(const lin_config *c)
{
    return lin_attention_of(c)->grows ? (size_t)c->layers * 2 * (size_t)lin_config_width(c) : 0;
}

size_t lin_state_offset(const lin_config *c, int layer)
{
    const size_t tail = c->conv_layers ? tail_count(c) : 0;
    return (size_t)layer * lin_network_of(c)->state(c) + (size_t)(layer < c->conv_layers ? layer : c->conv_layers) * tail;
}

/* ---- weights --------------------------------------------------------------------------------------------------------------- */

// The item that packs rows of a tensor, from where its elements are stored.
static lin_packing packing_of(const lin_param *t, int row, int n, int transposed, const lin_stored *stored, size_t to)
{
    const size_t at = (size_t)row * (size_t)t->k;
    lin_packing item = {.from = t->offset + at, .to = to, .n = n, .k = t->k, .transposed = transposed};
    if (stored && stored->half) item.half = (const unsigned char *)stored->half + 2 * at;
    if (stored && stored->whole) {
        item.whole = (const signed char *)stored->whole + at;
        item.scales = (const unsigned char *)stored->scales + (size_t)row * sizeof(float);
    }
    return item;
}

// Lists the matrices that a table packs and assigns them places from `total` on; returns their end.
static size_t plan_packing(lin_weights *w, const lin_real_ops *ops, const lin_stored *stored, size_t total, int *count)
{
    const lin_params *params = w->params;
    const int first = w->n_packing + w->n_exact;
    for (int i = 0; i < params->n_tensors; i++) {
        const lin_param *t = &params->table[i];
        if (!t->parts || lin_product_ops(w->ops, t) != ops) continue;
        const int n = t->n / t->parts;
        for (int transposed = 0; transposed <= w->for_training; transposed++) {
            const size_t size = transposed ? ops->weight_size(t->k, n) : ops->weight_size(n, t->k);
            (transposed ? w->backward_offset : w->forward_offset)[i] = total;
            for (int part = 0; part < t->parts; part++) {
                w->packing[first + (*count)++] = packing_of(t, part * n, n, transposed, stored ? &stored[i] : NULL, total);
                total += (size + 15) / 16 * 16;
            }
        }
    }
    return total;
}

// LIN_UNSUPPORTED if the backend lacks what the variant needs.
static lin_status check_operations(const lin_real_ops *ops, const lin_config *c, lin_error *err)
{
    const size_t network = lin_network_of(c)->needs, needs = network ? network : lin_attention_of(c)->needs;
    const int widest = ops->on_host ? 0 : lin_attention_of(c)->widest;
    void (*operation)(void) = NULL;
    char variant[64];
    lin_config_variant(c, variant, sizeof variant);
    if (widest && c->head_width > widest)
        return lin_fail(err, LIN_UNSUPPORTED, "the backend %s has this attention (%s) for a head_width up to %d, not %d; use "
                        "another device", ops->name, variant, widest, c->head_width);
    memcpy(&operation, (const char *)ops + needs, sizeof operation);
    if (!needs || operation) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "the backend %s has no operations for this kind of network (%s); use another device",
                    ops->name, variant);
}

lin_status lin_weights_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, const lin_params *params,
                              const lin_real *values, const lin_stored *stored, int for_training, lin_weights **out,
                              lin_error *err)
{
    *out = NULL;
    const size_t n = (size_t)params->n_tensors;
    lin_status status = check_operations(ops, config, err);
    if (status == LIN_OK && for_training && ops->precision == LIN_PRECISION_INT8)
        status = lin_fail(err, LIN_UNSUPPORTED, "products of eight bits are for recognition only; train in another precision");
    if (status != LIN_OK) return status;
    lin_weights *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "weights", sizeof *w);
    *w = (lin_weights){
        .config = *config, .params = params, .ops = ops, .exec = exec, .values = values, .for_training = for_training};
    w->forward_offset = lin_calloc(n, sizeof *w->forward_offset);
    w->backward_offset = lin_calloc(n, sizeof *w->backward_offset);
    w->packing = lin_calloc(4 * n, sizeof *w->packing);
    if (!w->forward_offset || !w->backward_offset || !w->packing) {
        status = lin_no_memory(err, "weights", n * (2 * sizeof(size_t) + 4 * sizeof(lin_packing)));
    } else {
        size_t total = plan_packing(w, ops, stored, 0, &w->n_packing);
        if (ops->exact) total = plan_packing(w, ops->exact, stored, total, &w->n_exact);
        status = ops->memory_create(exec, total * sizeof *w->packed, (void **)&w->packed, err);
    }
    if (status == LIN_OK && lin_attention_of(config)->prepare) status = lin_attention_of(config)->prepare(w, err);
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
    if (w->ops->exact) w->ops->exact->weights_pack(exec, w->packed, w->values, w->packing + w->n_packing, w->n_exact);
}

void lin_weights_destroy(lin_weights *w)
{
    if (!w) return;
    w->ops->memory_destroy(w->exec, w->packed);
    w->ops->memory_destroy(w->exec, w->constants);
    lin_free(w->forward_offset);
    lin_free(w->backward_offset);
    lin_free(w->packing);
    lin_free(w);
}

/* ---- activations ----------------------------------------------------------------------------------------------------------- */

// Lays out every buffer; called once with an arena without memory to learn the size, and once to set the pointers.
static void lay_out(lin_activations *a)
{
    a->stacked = lin_rows_take(a, (size_t)lin_config_input_width(&a->config));
    lin_network_of(&a->config)->lay_out(a);
    const size_t D = (size_t)a->config.voice, C = (size_t)lin_config_width(&a->config);
    if (!D) return;
    a->pooled = lin_rows_take(a, 2 * C);
    if (!a->for_training) return;
    a->vectors = lin_rows_take(a, D);
    a->lengths = lin_rows_take(a, 1);
    a->d_pooled = lin_rows_take(a, 2 * C);
    a->d_vectors = lin_rows_take(a, D);
    a->d_cosines = lin_rows_take(a, (size_t)a->config.outputs);
}

lin_status lin_activations_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, int max_rows, int longest,
                                  int for_training, lin_activations **out, lin_error *err)
{
    *out = NULL;
    if (max_rows < 1) return lin_fail(err, LIN_INVALID, "room for %d rows requested; must be at least 1", max_rows);
    lin_activations *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, "activations", sizeof *a);
    *a = (lin_activations){.config = *config, .ops = ops, .exec = exec, .max_rows = max_rows, .for_training = for_training};
    a->longest = longest > 0 && longest < max_rows ? longest : max_rows;
    const size_t n_layers = (size_t)(for_training ? config->layers : 2);
    a->layers = lin_calloc(n_layers, sizeof *a->layers);
    if (!a->layers) {
        lin_free(a);
        return lin_no_memory(err, "activations", n_layers * sizeof *a->layers);
    }
    a->arena = (lin_arena){.base = (unsigned char *)a, .size = SIZE_MAX / 2};
    lay_out(a);
    a->arena = (lin_arena){.size = a->arena.used};
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

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

void lin_layer_linear(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_real *x, const int pair[2], int rows,
                      lin_activation act)
{
    const lin_param *t = &w->params->table[pair[0]];
    lin_product_ops(w->ops, t)
        ->linear_forward(exec, y, x, w->packed + w->forward_offset[pair[0]], lin_value(w, pair[1]), rows, t->n, t->k, act);
}

void lin_layer_embed(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_batch *batch)
{
    const lin_config *c = &w->config;
    w->ops->embed_forward(exec, y, batch->features, lin_value(w, w->params->embedding), batch->in.rows, c->mel_bins, c->tokens,
                          lin_config_width(c));
}

void lin_layer_embed_backward(const lin_weights *w, lin_exec *exec, lin_real *gradients, const lin_real *dy,
                              const lin_batch *batch)
{
    const lin_config *c = &w->config;
    w->ops->embed_backward(exec, lin_gradient(w, gradients, w->params->embedding), dy, batch->features, batch->in.rows,
                           c->mel_bins, c->tokens, lin_config_width(c));
}

// before: layers that the previous chunk has finished; we wait for it. mine: ours, for the next chunk. NULL: first or last chunk.
static void forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp,
                    const atomic_int *before, atomic_int *mine)
{
    const lin_config *c = &w->config;
    const lin_real_ops *ops = w->ops;
    const int rows = batch->out.rows;
    if (rows == 0) return;
    assert(rows <= a->max_rows - a->first_row);
    if (!c->tokens)
        ops->stack_frames(exec, a->stacked, batch->features, batch->mean, batch->istd, &batch->in, &batch->out, c->mel_bins,
                          c->stack, c->ahead);
    const lin_real *x = lin_network_of(c)->forward(w, a, exec, batch, before, mine);
    if (c->voice) {
        lin_voice_forward(w, a, exec, batch, x, logp);
        return;
    }
    lin_layer_linear(w, exec, logp, x, batch->search && c->search ? w->params->search : w->params->output, rows, LIN_LINEAR);
    if (!c->mixture) ops->log_softmax(exec, logp, logp, rows, c->outputs);
}

void lin_network_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp)
{
    forward(w, a, exec, batch, logp, NULL, NULL);
}

// The norm's output is in a->branch, which is free between the passes: the backward pass computes it again.
void lin_network_inner(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, int layer,
                       lin_real *logp)
{
    const lin_config *c = &w->config;
    const int rows = batch->out.rows, *pair = w->params->norm;
    if (rows == 0) return;
    w->ops->layer_norm_forward(exec, a->branch, NULL, a->layers[layer].u, lin_value(w, pair[0]), lin_value(w, pair[1]), rows,
                               lin_config_width(c));
    lin_layer_linear(w, exec, logp, a->branch, w->params->output, rows, LIN_LINEAR);
    w->ops->log_softmax(exec, logp, logp, rows, c->outputs);
}

void lin_network_search(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp)
{
    const int rows = batch->out.rows;
    if (rows == 0) return;
    lin_layer_linear(w, exec, logp, a->normed, w->params->search, rows, LIN_LINEAR);
    w->ops->log_softmax(exec, logp, logp, rows, w->config.outputs);
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

static void wave_piece(void *context, int chunk, int thread)
{
    wave *v = context;
    const lin_config *c = &v->w->config;
    const int first = chunk * v->step, left = v->batch->out.rows - first, rows = left < v->step ? left : v->step;
    // The last rows' window ends at the end of the utterance, so that stack_frames repeats its true last frame.
    const int from = first * c->stack, want = rows * c->stack + c->ahead, have = v->batch->in.rows - from;
    const int in[] = {0, have < want ? have : want}, out[] = {0, rows};
    lin_layer_values values = v->a->layers[0];
    lin_activations part = *v->a;
    lin_batch batch = *v->batch;
    batch.in = (lin_segments){.B = 1, .rows = in[1], .longest = in[1], .offsets = in};
    batch.out = (lin_segments){.B = 1, .rows = rows, .longest = rows, .offsets = out};
    batch.features += (size_t)from * (size_t)c->mel_bins;
    part.layers = &values;
    part.first_row = first;
    part.arena.used = 0;
    lay_out(&part);
    forward(v->w, &part, v->execs[thread], &batch, v->logp + (size_t)first * (size_t)c->outputs,
            chunk ? &v->done[chunk - 1] : NULL, &v->done[chunk]);
}

void lin_network_forward_wave(const lin_weights *w, lin_activations *a, lin_pool *pool, lin_exec *const *execs,
                              const lin_batch *batch, int step, lin_real *logp)
{
    wave v = {.w = w, .a = a, .execs = execs, .batch = batch, .logp = logp, .step = step};
    const int chunks = (batch->out.rows + step - 1) / step;
    assert(chunks <= LIN_WAVE_CHUNKS);
    for (int i = 0; i < chunks; i++) atomic_init(&v.done[i], 0);
    lin_pool_run(pool, chunks, wave_piece, &v);
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

void lin_layer_linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows)
{
    const lin_param *t = &w->params->table[pair[0]];
    lin_real *db = pair[1] < 0 ? NULL : lin_gradient(w, gradients, pair[1]);
    w->ops->linear_backward_weight(exec, lin_gradient(w, gradients, pair[0]), db, dy, x, rows, t->n, t->k);
    if (dx) w->ops->linear_forward(exec, dx, dy, w->packed + w->backward_offset[pair[0]], NULL, rows, t->k, t->n, LIN_LINEAR);
}

void lin_network_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients)
{
    const int rows = batch->out.rows;
    const lin_dropout none = {.p = 0};
    if (rows == 0) return;
    if (w->config.voice) lin_voice_backward(w, a, exec, batch, dlogits, a->normed, a->branch, gradients);
    else lin_layer_linear_backward(w, exec, a->branch, gradients, dlogits, a->normed, w->params->output, rows);
    if (batch->d_search) { // a->d_x is free until the last norm's gradient
        lin_layer_linear_backward(w, exec, a->d_x, gradients, batch->d_search, a->normed, w->params->search, rows);
        w->ops->add_dropout(exec, a->branch, a->branch, a->d_x, (size_t)rows * (size_t)lin_config_width(&w->config), &none);
    }
    lin_network_of(&w->config)->backward(w, a, exec, batch, a->branch, gradients);
}
