// network.c - weights, activations and the parts that all networks share; see network.h. The layers: transformer.c, lstm.c.

#include "model/network_layers.h"
#include "paper/lsh.h"

size_t lin_state_attention_count(const lin_config *c)
{
    const size_t H = (size_t)c->heads, E = (size_t)c->head_width;
    if (c->network == LIN_NETWORK_LSTM) return 2 * (size_t)c->width;
    if (c->attention != LIN_ATTENTION_LINEAR) return 0; // softmax: see lin_cache
    return H * (size_t)lin_config_map(c).D * (E + 1);
}

static size_t tail_count(const lin_config *c) { return (size_t)(c->conv_kernel - 1) * (size_t)lin_config_width(c); }

size_t lin_config_state_count(const lin_config *c)
{
    size_t n = (size_t)c->layers * lin_state_attention_count(c);
    if (c->conv_layers) n += (size_t)c->conv_layers * tail_count(c);
    return n;
}

size_t lin_config_cache_count(const lin_config *c)
{
    const int grows = c->network == LIN_NETWORK_TRANSFORMER && c->attention == LIN_ATTENTION_SOFTMAX;
    return grows ? (size_t)c->layers * 2 * (size_t)lin_config_width(c) : 0;
}

size_t lin_state_offset(const lin_config *c, int layer)
{
    const size_t tail = c->conv_layers ? tail_count(c) : 0;
    return (size_t)layer * lin_state_attention_count(c) + (size_t)(layer < c->conv_layers ? layer : c->conv_layers) * tail;
}

/* ---- weights --------------------------------------------------------------------------------------------------------------- */

// Computes the place of each matrix, and lists the matrices to pack.
static size_t plan_packing(lin_weights *w, const void *const *halves)
{
    const lin_params *params = w->params;
    size_t total = 0;
    for (int i = 0; i < params->n_tensors; i++) {
        const lin_param *t = &params->table[i];
        if (!t->parts) continue;
        const int n = t->n / t->parts;
        for (int transposed = 0; transposed <= w->for_training; transposed++) {
            const size_t size = transposed ? w->ops->weight_size(t->k, n) : w->ops->weight_size(n, t->k);
            (transposed ? w->backward_offset : w->forward_offset)[i] = total;
            for (int part = 0; part < t->parts; part++) {
                const size_t from = t->offset + (size_t)part * (size_t)n * (size_t)t->k;
                const unsigned char *half = halves ? halves[i] : NULL;
                w->packing[w->n_packing++] = (lin_packing){.from = from,
                                                           .to = total,
                                                           .n = n,
                                                           .k = t->k,
                                                           .transposed = transposed,
                                                           .half = half ? half + 2 * (from - t->offset) : NULL};
                total += (size + 15) / 16 * 16;
            }
        }
    }
    return total;
}

// LIN_UNSUPPORTED if the backend lacks what the variant needs.
static lin_status check_operations(const lin_real_ops *ops, const lin_config *c, lin_error *err)
{
    const int has = c->network == LIN_NETWORK_LSTM                ? ops->lstm_forward != NULL
                    : c->attention == LIN_ATTENTION_SOFTMAX       ? ops->softmax_forward != NULL
                    : c->attention == LIN_ATTENTION_SOFTMAX_NAIVE ? ops->softmax_naive_forward != NULL
                    : c->attention == LIN_ATTENTION_LSH           ? ops->lsh_forward != NULL
                    : c->feature_map != LIN_MAP_ELU               ? ops->mapped_attention_forward != NULL
                    : c->decay                                    ? ops->decayed_attention_forward != NULL
                                                                  : 1;
    char variant[64];
    if (has) return LIN_OK;
    lin_config_variant(c, variant, sizeof variant);
    return lin_fail(err, LIN_UNSUPPORTED, "the backend %s has no operations for this kind of network (%s); use another device",
                    ops->name, variant);
}

// The rotations of LSH attention: the same in every model, drawn from the number of the layer.
static lin_status make_rotations(lin_weights *w, lin_error *err)
{
    const lin_config *c = &w->config;
    const lin_lsh lsh = lin_config_lsh(c);
    const size_t each = (size_t)lsh.rounds * (size_t)c->heads * (size_t)c->head_width * (size_t)lsh.rotations,
                 count = each * (size_t)c->layers;
    if (c->attention != LIN_ATTENTION_LSH) return LIN_OK;
    lin_real *host = lin_alloc(count, sizeof *host);
    if (!host) return lin_no_memory(err, "rotations", count * sizeof *host);
    for (int l = 0; l < c->layers; l++)
        lin_lsh_rotations(host + (size_t)l * each, lsh.rounds, c->heads, c->head_width, lsh.rotations,
                          lin_random_key(0, (uint64_t)l));
    const lin_status status = w->ops->memory_create(w->exec, count * sizeof *host, (void **)&w->rotations, err);
    if (status == LIN_OK) w->ops->upload(w->exec, w->rotations, host, count * sizeof *host);
    lin_free(host);
    return status;
}

lin_status lin_weights_create(const lin_real_ops *ops, lin_exec *exec, const lin_config *config, const lin_params *params,
                              const lin_real *values, const void *const *halves, int for_training, lin_weights **out,
                              lin_error *err)
{
    *out = NULL;
    const size_t n = (size_t)params->n_tensors;
    lin_status status = check_operations(ops, config, err);
    if (status != LIN_OK) return status;
    lin_weights *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "weights", sizeof *w);
    *w = (lin_weights){
        .config = *config, .params = params, .ops = ops, .exec = exec, .values = values, .for_training = for_training};
    w->forward_offset = lin_calloc(n, sizeof *w->forward_offset);
    w->backward_offset = lin_calloc(n, sizeof *w->backward_offset);
    w->packing = lin_calloc(4 * n, sizeof *w->packing);
    if (!w->forward_offset || !w->backward_offset || !w->packing)
        status = lin_no_memory(err, "weights", n * (2 * sizeof(size_t) + 4 * sizeof(lin_packing)));
    else
        status = ops->memory_create(exec, plan_packing(w, halves) * sizeof *w->packed, (void **)&w->packed, err);
    if (status == LIN_OK) status = make_rotations(w, err);
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
    w->ops->memory_destroy(w->exec, w->rotations);
    lin_free(w->forward_offset);
    lin_free(w->backward_offset);
    lin_free(w->packing);
    lin_free(w);
}

/* ---- activations ----------------------------------------------------------------------------------------------------------- */

static lin_real *take(lin_activations *a, size_t width)
{
    return lin_arena_take(&a->arena, (size_t)a->max_rows * width, sizeof(lin_real));
}

static void lay_out_attention(lin_activations *a, lin_layer_values *v)
{
    const lin_config *c = &a->config;
    const size_t H = (size_t)c->heads, entries = (size_t)a->max_rows * H * (size_t)c->lsh_rounds;
    const int lsh = c->attention == LIN_ATTENTION_LSH;
    v->lse = lsh || (c->attention == LIN_ATTENTION_SOFTMAX && a->for_training) ? take(a, H) : NULL;
    v->scores = c->attention == LIN_ATTENTION_SOFTMAX_NAIVE ? take(a, H * (size_t)a->longest) : NULL;
    v->order = lsh ? lin_arena_take(&a->arena, entries, sizeof *v->order) : NULL;
}

static void lay_out_transformer(lin_activations *a)
{
    const lin_config *c = &a->config;
    const size_t C = (size_t)lin_config_width(c), F = (size_t)c->feedforward, V = (size_t)c->outputs,
                 parts = c->attention == LIN_ATTENTION_LSH ? 2 : 3;
    const int sums = a->for_training || c->norm == LIN_NORM_PRE; // of blocks, before their norm
    const int narrow = a->ops->precision == LIN_PRECISION_BF16 && lin_has_attention_block(a->ops, c);
    for (int l = 0; l < (a->for_training ? c->layers : 1); l++) {
        lin_layer_values *v = &a->layers[l];
        v->x0 = take(a, C);
        v->u = a->for_training && lin_config_conditions(c, l) ? take(a, C) : v->x0;
        v->posterior = a->for_training ? (lin_config_conditions(c, l) ? take(a, V) : NULL) : c->condition_every ? take(a, V)
            : NULL;
        v->x1 = c->conv_layers > l ? take(a, C) : v->x0;
        v->n1 = sums ? take(a, C) : NULL;
        v->stats1 = take(a, 2);
        v->qkv = take(a, parts * C);
        v->decay = c->decay == LIN_DECAY_GATED ? take(a, (size_t)c->heads) : NULL;
        v->y = take(a, C);
        v->operands = a->for_training && narrow ? take(a, C) : NULL;
        lay_out_attention(a, v);
        v->x2 = take(a, C);
        v->n2 = sums ? take(a, C) : NULL;
        v->stats2 = take(a, 2);
        v->hidden = take(a, F);
    }
    a->last = take(a, C);
    a->last_stats = take(a, 2);
    a->normed = take(a, C);
    a->branch = take(a, C);
    if (!a->for_training) return;
    a->d_x = take(a, C);
    a->d_y = take(a, C);
    a->d_qkv = take(a, parts * C);
    a->d_decay = c->decay == LIN_DECAY_GATED ? take(a, (size_t)c->heads) : NULL;
    a->d_hidden = take(a, F);
    a->d_posterior = c->condition_every ? take(a, V) : NULL;
}

static void lay_out_lstm(lin_activations *a)
{
    const lin_config *c = &a->config;
    const size_t C = (size_t)lin_config_width(c);
    for (int l = 0; l < (a->for_training ? c->layers : 2); l++) {
        lin_layer_values *v = &a->layers[l];
        v->gates = take(a, 4 * C);
        v->cells = take(a, C);
        v->y = take(a, C);
        if (a->for_training) v->x2 = take(a, C);
    }
    if (!a->for_training) return;
    a->branch = take(a, C);
    a->d_hidden = take(a, 4 * C);
}

// Lays out every buffer; called once with an arena without memory to learn the size, and once to set the pointers.
static void lay_out(lin_activations *a)
{
    a->stacked = take(a, (size_t)lin_config_input_width(&a->config));
    if (a->config.network == LIN_NETWORK_LSTM) lay_out_lstm(a);
    else lay_out_transformer(a);
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

int lin_activations_rows(const lin_activations *a) { return a->max_rows; }

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

void lin_layer_linear(const lin_weights *w, lin_exec *exec, lin_real *y, const lin_real *x, const int pair[2], int rows,
                      lin_activation act)
{
    const lin_param *t = &w->params->table[pair[0]];
    w->ops->linear_forward(exec, y, x, w->packed + w->forward_offset[pair[0]], lin_value(w, pair[1]), rows, t->n, t->k, act);
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
    const lin_real *x = c->network == LIN_NETWORK_LSTM ? lin_lstm_forward(w, a, exec, batch)
                                                       : lin_transformer_forward(w, a, exec, batch, before, mine);
    lin_layer_linear(w, exec, logp, x, w->params->output, rows, LIN_LINEAR);
    ops->log_softmax(exec, logp, logp, rows, c->outputs);
}

void lin_network_forward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch, lin_real *logp)
{
    forward(w, a, exec, batch, logp, NULL, NULL);
}

// The norm goes through a->branch, which is free between the passes: the backward pass computes it again.
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

typedef struct wave {
    const lin_weights *w;
    const lin_activations *a;
    lin_exec *const *execs;
    const lin_batch *batch;
    lin_real *logp;
    int step;
    atomic_int done[LIN_WAVE_CHUNKS]; // layers that each chunk has completed
} wave;

// The buffers of a transformer's inference from this row on; other rows are those of other chunks.
static void rows_from(const lin_activations *a, size_t row, lin_activations *part, lin_layer_values *v)
{
    const lin_config *c = &a->config;
    const size_t C = (size_t)lin_config_width(c), F = (size_t)c->feedforward;
    *part = *a;
    *v = a->layers[0];
    part->layers = v;
    v->u = v->x0 += row * C;
    if (v->posterior) v->posterior += row * (size_t)c->outputs;
    v->x1 += row * C;
    if (v->n1) v->n1 += row * C;
    v->stats1 += row * 2;
    v->qkv += row * 3 * C;
    if (v->decay) v->decay += row * (size_t)c->heads;
    v->y += row * C;
    v->x2 += row * C;
    if (v->n2) v->n2 += row * C;
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
    lin_layer_values values;
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

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

static void linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *dw, lin_real *db, const lin_real *dy,
                            const lin_real *x, int tensor, int rows)
{
    const lin_param *t = &w->params->table[tensor];
    w->ops->linear_backward_weight(exec, dw, db, dy, x, rows, t->n, t->k);
    if (dx) w->ops->linear_forward(exec, dx, dy, w->packed + w->backward_offset[tensor], NULL, rows, t->k, t->n, LIN_LINEAR);
}

void lin_layer_linear_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows)
{
    linear_backward(w, exec, dx, lin_gradient(w, gradients, pair[0]), lin_gradient(w, gradients, pair[1]), dy, x, pair[0], rows);
}

void lin_layer_weight_backward(const lin_weights *w, lin_exec *exec, lin_real *dx, lin_real *gradients, const lin_real *dy,
                               const lin_real *x, const int pair[2], int rows)
{
    linear_backward(w, exec, dx, lin_gradient(w, gradients, pair[0]), NULL, dy, x, pair[0], rows);
}

void lin_network_backward(const lin_weights *w, lin_activations *a, lin_exec *exec, const lin_batch *batch,
                          const lin_real *dlogits, lin_real *gradients)
{
    const int rows = batch->out.rows, lstm = w->config.network == LIN_NETWORK_LSTM;
    if (rows == 0) return;
    lin_layer_linear_backward(w, exec, a->branch, gradients, dlogits, lstm ? a->layers[w->config.layers - 1].y : a->normed,
                              w->params->output, rows);
    if (lstm) lin_lstm_backward(w, a, exec, batch, a->branch, gradients);
    else lin_transformer_backward(w, a, exec, batch, a->branch, gradients);
}
