// attentions.c - the kinds of attention that the paper compares with linear attention, as entries of the table of network.h.

#include "paper/attentions.h"

#include "model/network.h"

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
    .parts = 3, .needs = offsetof(lin_real_ops, softmax_forward), .grows = 1,
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
    .parts = 2, .needs = offsetof(lin_real_ops, lsh_forward), // queries and keys are shared
    .whole = "has LSH attention, which sorts all frames of an utterance: it needs whole utterances and cannot stream",
    .prepare = lsh_prepare, .lay_out = lsh_lay_out, .forward = lsh_forward, .backward = lsh_backward};
