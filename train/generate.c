// generate.c - drawing sequences from a network of tokens; see generate.h.

#include "train/generate.h"

#include <math.h>

#include "base/hash.h"
#include "base/memory.h"
#include "model/encoder.h"

/* Rows of a pass over given tokens, all sequences together. */
enum { PROMPT_ROWS = 4096 };

struct lin_generator {
    const lin_encoder *encoder;
    lin_generate_options options;
    lin_exec *exec;
    lin_activations *activations;
    int n, length, keeps; // keeps: a state for each sequence
    int rows_each;        // the most rows of a sequence in a pass
    int at;               // tokens that the states have read
    void *block; // in the backend's memory, with all of these:
    float *features, *logp, *states, *cache;
    float **state;
    lin_cache *caches;
    int *offsets;
    // on the host
    float *host_features, *host_logp;
    int *host_offsets;
    lin_cache *host_caches;
};

// Sets the pointers into a block of the backend's memory; returns its size in bytes.
static size_t lay_out(lin_generator *g, void *block)
{
    const lin_config *c = &g->encoder->model->config;
    const size_t n = (size_t)g->n, kept = g->keeps ? n : 0, rows = n * (size_t)g->rows_each, cache = lin_config_cache_count(c);
    lin_arena arena = {.base = block, .size = SIZE_MAX / 2};
    g->features = lin_arena_take(&arena, rows * (size_t)c->mel_bins, sizeof *g->features);
    g->logp = lin_arena_take(&arena, rows * (size_t)c->outputs, sizeof *g->logp);
    g->offsets = lin_arena_take(&arena, n + 1, sizeof *g->offsets);
    g->states = lin_arena_take(&arena, kept * g->encoder->state_count, sizeof *g->states);
    g->state = lin_arena_take(&arena, kept, sizeof *g->state);
    g->cache = lin_arena_take(&arena, kept * (size_t)g->length * cache, sizeof *g->cache);
    g->caches = cache ? lin_arena_take(&arena, kept, sizeof *g->caches) : NULL;
    return arena.used;
}

// Sets the pointers to the states and to the keys and values.
static lin_status point(lin_generator *g, lin_error *err)
{
    const lin_encoder *e = g->encoder;
    const size_t n = (size_t)g->n, cache = lin_config_cache_count(&e->model->config) * (size_t)g->length;
    float **state = lin_calloc(n, sizeof *state);
    if (!state) return lin_no_memory(err, "sequences", n * sizeof *state);
    for (size_t i = 0; i < n; i++) {
        state[i] = g->states + i * e->state_count;
        g->host_caches[i] = (lin_cache){.kv = g->cache + i * cache, .capacity = g->length};
    }
    e->ops->upload(g->exec, g->state, state, n * sizeof *state);
    const lin_status status = e->ops->finish(g->exec, err);
    lin_free(state);
    return status;
}

static lin_status make_room(lin_generator *g, lin_error *err)
{
    const lin_encoder *e = g->encoder;
    const lin_config *c = &e->model->config;
    const size_t n = (size_t)g->n, rows = n * (size_t)g->rows_each;
    if (rows > INT32_MAX / 4) return lin_no_memory(err, "sequences", rows * (size_t)c->outputs * sizeof(float));
    LIN_TRY(lin_activations_create(e->ops, g->exec, c, (int)rows, g->rows_each, 0, &g->activations, err));
    LIN_TRY(e->ops->memory_create(g->exec, lay_out(g, g), &g->block, err)); // laid out without memory, to learn its size
    lay_out(g, g->block);
    g->host_offsets = lin_calloc(n + 1, sizeof *g->host_offsets);
    g->host_caches = lin_calloc(n, sizeof *g->host_caches);
    g->host_features = lin_calloc(rows, (size_t)c->mel_bins * sizeof(float));
    g->host_logp = e->ops->on_host ? g->logp : lin_alloc(rows, (size_t)c->outputs * sizeof(float));
    if (!g->host_offsets || !g->host_caches || !g->host_features || !g->host_logp)
        return lin_no_memory(err, "sequences", rows * (size_t)c->outputs * sizeof(float));
    return g->keeps ? point(g, err) : LIN_OK;
}

lin_status lin_generator_create(const lin_encoder *e, const lin_generate_options *options, int n, int length, lin_generator **out,
                                lin_error *err)
{
    const lin_config *c = &e->model->config;
    *out = NULL;
    if (!c->tokens || !c->causal || lin_config_symbols(c) > c->tokens)
        return lin_fail(err, LIN_UNSUPPORTED, "this model does not predict tokens from earlier tokens: it cannot generate");
    if (n < 1 || length < 2)
        return lin_fail(err, LIN_INVALID, "%d sequences of %d tokens; must be at least 1 of 2", n, length);
    lin_generator *g = lin_calloc(1, sizeof *g);
    if (!g) return lin_no_memory(err, "sequences", sizeof *g);
    *g = (lin_generator){.encoder = e, .options = *options, .n = n, .length = length};
    g->keeps = !options->again && !lin_config_why_not_stream(c);
    g->rows_each = !g->keeps ? length - 1 : n < PROMPT_ROWS ? PROMPT_ROWS / n : 1;
    if (g->rows_each > length - 1) g->rows_each = length - 1;
    lin_status status = e->ops->exec_create(e->ops, options->threads, &g->exec, err);
    if (status == LIN_OK) status = make_room(g, err);
    if (status == LIN_OK) *out = g;
    else lin_generator_destroy(g);
    return status;
}

void lin_generator_destroy(lin_generator *g)
{
    if (!g) return;
    const lin_ops *ops = g->encoder->ops;
    lin_activations_destroy(g->activations);
    if (g->exec) {
        ops->memory_destroy(g->exec, g->block);
        ops->exec_destroy(g->exec);
    }
    if (!ops->on_host) lin_free(g->host_logp);
    lin_free(g->host_features);
    lin_free(g->host_offsets);
    lin_free(g->host_caches);
    lin_free(g);
}

/* ---- a pass ---------------------------------------------------------------------------------------------------------------- */

// Runs the network on rows from .. from+rows-1 of each sequence.
static lin_status pass(lin_generator *g, const int *tokens, int from, int rows, lin_error *err)
{
    const lin_encoder *e = g->encoder;
    const lin_ops *ops = e->ops;
    const lin_config *c = &e->model->config;
    const size_t D = (size_t)c->mel_bins, n = (size_t)g->n, all = n * (size_t)rows;
    const int grows = g->keeps && g->caches;
    for (int i = 0; i < g->n; i++) {
        g->host_offsets[i + 1] = (i + 1) * rows;
        for (int t = 0; t < rows; t++) // the number of a token is the sum of its row
            g->host_features[((size_t)i * (size_t)rows + (size_t)t) * D] =
                (float)tokens[(size_t)i * (size_t)g->length + (size_t)(from + t)];
    }
    ops->upload(g->exec, g->features, g->host_features, all * D * sizeof(float));
    ops->upload(g->exec, g->offsets, g->host_offsets, (n + 1) * sizeof *g->offsets);
    if (grows) ops->upload(g->exec, g->caches, g->host_caches, n * sizeof *g->caches);
    const lin_segments segments = {.B = g->n, .rows = g->n * rows, .longest = rows, .offsets = g->offsets};
    const lin_batch batch = {.in = segments,
                             .out = segments,
                             .features = g->features,
                             .mean = e->mean,
                             .istd = e->istd,
                             .states = g->keeps ? g->state : NULL,
                             .caches = grows ? g->caches : NULL};
    lin_network_forward(e->weights, g->activations, g->exec, &batch, g->logp);
    if (!ops->on_host) ops->download(g->exec, g->host_logp, g->logp, all * (size_t)c->outputs * sizeof(float));
    for (int i = 0; i < g->n && grows; i++) g->host_caches[i].n += rows;
    return ops->finish(g->exec, err);
}

// Resets the states of all sequences.
static void begin(lin_generator *g)
{
    g->at = 0;
    if (!g->keeps) return;
    g->encoder->ops->zero(g->exec, g->states, (size_t)g->n * g->encoder->state_count * sizeof(float));
    for (int i = 0; i < g->n; i++) g->host_caches[i].n = 0;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------------- */

// Draws from the distribution proportional to e^x, with u uniform in 0..1.
static int draw(const float *x, int count, double u)
{
    int best = 0;
    double all = 0, sum = 0;
    for (int v = 1; v < count; v++)
        if (x[v] > x[best]) best = v;
    for (int v = 0; v < count; v++) all += exp((double)x[v] - (double)x[best]);
    for (int v = 0; v < count; v++)
        if ((sum += exp((double)x[v] - (double)x[best])) > u * all) return v;
    return best; // rounding: u is above the sum
}

// Draws one of a mixture's logistics, and a value from it.
static int draw_value(const float *x, int M, double u, double w)
{
    const int m = draw(x, M, u);
    const double lowest = -7, scale = exp(fmax((double)x[2 * M + m], lowest)),
                 at = (double)x[M + m] + scale * (log(w) - log1p(-w));
    return (int)fmin(fmax(floor((at + 1) * 127.5 + 0.5), 0), LIN_LEVELS - 1);
}

static int choose(const lin_generator *g, int sequence, int place, const float *x)
{
    const lin_config *c = &g->encoder->model->config;
    const uint64_t key = lin_random_key(lin_random_key(g->options.seed, g->options.first + (uint64_t)sequence), (uint64_t)place);
    const double u = lin_random_uniform(key, 0), w = fmin(fmax(lin_random_uniform(key, 1), 1e-5), 1 - 1e-5);
    return c->mixture ? draw_value(x, c->mixture, u, w) : draw(x, c->outputs, u);
}

static lin_status check(const lin_generator *g, const int *tokens, int given, int until, lin_error *err)
{
    const int most = g->encoder->model->config.tokens;
    if (given < 1 || until > g->length || given > until)
        return lin_fail(err, LIN_INVALID, "tokens %d to %d of %d: at least 1 is given", given, until, g->length);
    for (int i = 0; i < g->n; i++)
        for (int t = 0; t < given; t++) {
            const int token = tokens[(size_t)i * (size_t)g->length + (size_t)t];
            if (token < 0 || token >= most)
                return lin_fail(err, LIN_INVALID, "token %d of sequence %d is %d; must be 0 to %d", t, i, token, most - 1);
        }
    return LIN_OK;
}

lin_status lin_generator_run(lin_generator *g, int *tokens, int given, int until, lin_error *err)
{
    const size_t V = (size_t)g->encoder->model->config.outputs;
    lin_status status = check(g, tokens, given, until, err);
    if (status == LIN_OK && (!g->keeps || g->at + 1 != given)) begin(g);
    for (int next = given; next < until && status == LIN_OK; next++) {
        int rows = 0;
        for (int from = g->keeps ? g->at : 0; from < next && status == LIN_OK; from += rows) {
            rows = next - from < g->rows_each ? next - from : g->rows_each;
            status = pass(g, tokens, from, rows, err);
        }
        if (status != LIN_OK) return status;
        g->at = next;
        for (int i = 0; i < g->n; i++) {
            const float *x = g->host_logp + ((size_t)(i + 1) * (size_t)rows - 1) * V;
            tokens[(size_t)i * (size_t)g->length + (size_t)next] = choose(g, i, next, x);
        }
        if (g->options.stop && g->options.stop(g->options.context, next + 1))
            status = lin_fail(err, LIN_STOPPED, "stopped after token %d of %d", next + 1, until);
    }
    return status;
}
