// encoder.c - batches of utterances, in passes that fit the memory; see encoder.h.

#include "model/encoder.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/system.h"

enum { PACKING_THREADS = 4 };

// Rows that pass through all layers at once. CPU: enough rows that loading the weights, once per pass from the third-level cache
// or memory, costs little beside the arithmetic; fewer in bf16 and int8, whose weights are smaller, so that the values between
// two layers stay in the second-level cache. GPU: enough rows to keep it busy.
enum { HOST_ROWS_NARROW = 128, DEVICE_ROWS = 16384 };

enum { WAVE_CHUNKS_EACH = 3 }; // of a wave, at most, per thread

// The weights and the normalisation in the backend's memory.
static lin_status place_model(lin_encoder *e, lin_error *err)
{
    const lin_model *m = e->model;
    const size_t n = m->params.n_elements, D = (size_t)m->config.mel_bins, line = (n + 63) / 64 * 64;
    e->mean = m->mean;
    e->istd = m->istd;
    if (e->ops->on_host) return LIN_OK;
    LIN_TRY(e->ops->memory_create(e->exec, (line + 2 * D) * sizeof(float), (void **)&e->copies, err));
    float *mean = e->copies + line, *istd = mean + D;
    e->ops->upload(e->exec, e->copies, m->values, n * sizeof(float));
    e->ops->upload(e->exec, mean, m->mean, D * sizeof(float));
    e->ops->upload(e->exec, istd, m->istd, D * sizeof(float));
    e->mean = mean;
    e->istd = istd;
    return LIN_OK;
}

lin_status lin_encoder_create(const lin_model *model, const lin_ops *ops, lin_encoder **out, lin_error *err)
{
    *out = NULL;
    lin_encoder *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an encoder", sizeof *e);
    e->model = model;
    e->ops = ops;
    e->state_count = lin_config_state_count(&model->config);
    e->pass_rows = !ops->on_host ? DEVICE_ROWS : ops->precision >= LIN_PRECISION_BF16 ? HOST_ROWS_NARROW : LIN_HOST_ROWS;
    // Packing needs fresh memory of the weights' size; several threads share the time to clear it, and sleep afterwards.
    lin_status status = ops->exec_create(ops, ops->on_host ? lin_cores_up_to(PACKING_THREADS) : 1, &e->exec, err);
    if (status == LIN_OK) status = place_model(e, err);
    if (status == LIN_OK)
        status = lin_weights_create(ops, e->exec, &model->config, &model->params, e->copies ? e->copies : model->values,
                                    model->stored, 0, &e->weights, err);
    if (status == LIN_OK) status = ops->finish(e->exec, err); // workers have streams of their own
    if (status != LIN_OK) {
        lin_encoder_destroy(e);
        return status;
    }
    *out = e;
    return LIN_OK;
}

void lin_encoder_destroy(lin_encoder *e)
{
    if (!e) return;
    lin_weights_destroy(e->weights);
    if (e->exec) {
        e->ops->memory_destroy(e->exec, e->copies);
        e->ops->exec_destroy(e->exec);
    }
    lin_free(e);
}

static void release_room(lin_worker *w)
{
    const lin_ops *ops = w->encoder->ops;
    lin_activations_destroy(w->activations);
    ops->memory_destroy(w->exec, w->features);
    ops->memory_destroy(w->exec, w->logp);
    w->activations = NULL;
    w->features = w->logp = NULL;
}

// Buffers for the features and results of passes of `rows` rows, or pass_rows if that is more, where these are not on the host,
// and activations for them. On failure there is no room, until the next call makes it again.
static lin_status reserve_room(lin_worker *w, int rows, lin_error *err)
{
    const lin_ops *ops = w->encoder->ops;
    const lin_config *c = &w->encoder->model->config;
    if (rows < w->encoder->pass_rows) rows = w->encoder->pass_rows;
    const size_t frames = (size_t)rows * (size_t)c->stack + (size_t)c->ahead, D = (size_t)c->mel_bins, V = (size_t)c->outputs;
    if (w->activations && rows <= w->activations->max_rows) return LIN_OK;
    release_room(w);
    if (!ops->on_host) LIN_TRY(ops->memory_create(w->exec, frames * D * sizeof(float), (void **)&w->features, err));
    if (!ops->on_host) LIN_TRY(ops->memory_create(w->exec, (size_t)rows * V * sizeof(float), (void **)&w->logp, err));
    return lin_activations_create(ops, w->exec, c, rows, 0, 0, &w->activations, err); // last: without them there is no room
}

lin_status lin_wave_create(const lin_encoder *e, int n_threads, lin_wave *wave, lin_error *err)
{
    const lin_ops *ops = e->ops;
    const lin_config *c = &e->model->config;
    const int passes_state = c->causal && c->network == LIN_NETWORK_TRANSFORMER && c->attention == LIN_ATTENTION_LINEAR;
    if (n_threads == 1 || !ops->on_host || !passes_state) return LIN_OK;
    LIN_TRY(lin_pool_create(n_threads, &wave->pool, err));
    const int n = lin_pool_threads(wave->pool);
    wave->execs = lin_calloc((size_t)n, sizeof *wave->execs);
    if (!wave->execs) return lin_no_memory(err, "a wave", (size_t)n * sizeof *wave->execs);
    for (int i = 0; i < n; i++) LIN_TRY(ops->exec_create(ops, 1, &wave->execs[i], err));
    return LIN_OK;
}

void lin_wave_destroy(lin_wave *wave, const lin_encoder *e)
{
    for (int i = 0; i < lin_pool_threads(wave->pool) && wave->execs; i++) e->ops->exec_destroy(wave->execs[i]);
    lin_free(wave->execs);
    lin_pool_destroy(wave->pool);
}

void lin_wave_forward(const lin_wave *wave, const lin_weights *weights, lin_activations *activations, lin_exec *exec,
                      const lin_batch *batch, float *logp)
{
    const int rows = batch->out.rows;
    if (!wave->pool || batch->out.B != 1 || !batch->states || !batch->states[0] || rows < 2 * LIN_WAVE_ROWS) {
        lin_network_forward(weights, activations, exec, batch, logp);
        return;
    }
    // Several chunks per thread, so that threads are idle only briefly at the start and the end, but none too small.
    int n = WAVE_CHUNKS_EACH * lin_pool_threads(wave->pool);
    if (n > rows / LIN_WAVE_ROWS) n = rows / LIN_WAVE_ROWS;
    if (n > LIN_WAVE_CHUNKS) n = LIN_WAVE_CHUNKS;
    const int step = (rows + 8 * n - 1) / (8 * n) * 8; // whole blocks of the matrix product
    lin_network_forward_wave(weights, activations, wave->pool, wave->execs, batch, step, logp);
}

static lin_status make_worker(lin_worker *w, int n_threads, lin_error *err)
{
    const lin_encoder *e = w->encoder;
    const lin_ops *ops = e->ops;
    const size_t offsets = 2 * (LIN_WORKER_UTTERANCES + 1);
    LIN_TRY(ops->exec_create(ops, n_threads, &w->exec, err));
    LIN_TRY(reserve_room(w, e->pass_rows, err));
    LIN_TRY(lin_wave_create(e, n_threads, &w->wave, err));
    LIN_TRY(ops->memory_create(w->exec, e->state_count * sizeof *w->state, (void **)&w->state, err));
    LIN_TRY(ops->memory_create(w->exec, sizeof *w->states, (void **)&w->states, err));
    LIN_TRY(ops->memory_create(w->exec, offsets * sizeof *w->offsets, (void **)&w->offsets, err));
    ops->upload(w->exec, w->states, &w->state, sizeof w->state);
    return LIN_OK;
}

lin_status lin_worker_create(const lin_encoder *encoder, int n_threads, lin_worker **out, lin_error *err)
{
    *out = NULL;
    lin_worker *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "a worker", sizeof *w);
    w->encoder = encoder;
    const lin_status status = make_worker(w, n_threads, err);
    if (status == LIN_OK) *out = w;
    else lin_worker_destroy(w);
    return status;
}

void lin_worker_destroy(lin_worker *w)
{
    if (!w) return;
    const lin_ops *ops = w->encoder->ops;
    if (w->exec) {
        release_room(w);
        ops->memory_destroy(w->exec, w->state);
        ops->memory_destroy(w->exec, w->states);
        ops->memory_destroy(w->exec, w->offsets);
        ops->exec_destroy(w->exec);
    }
    lin_wave_destroy(&w->wave, w->encoder);
    lin_free(w);
}

static lin_segments segments_of(const int *offsets, int B, const int *where)
{
    int longest = 0;
    for (int b = 0; b < B; b++) {
        assert(offsets[b] <= offsets[b + 1]);
        if (offsets[b + 1] - offsets[b] > longest) longest = offsets[b + 1] - offsets[b];
    }
    return (lin_segments){.B = B, .rows = offsets[B], .longest = longest, .offsets = where};
}

lin_status lin_worker_pass(lin_worker *w, const float *features, const int *in, const int *out, int B, float *const *states,
                           float *logp, lin_error *err)
{
    const lin_encoder *e = w->encoder;
    const lin_ops *ops = e->ops;
    const lin_config *c = &e->model->config;
    int *in_there = w->offsets, *out_there = w->offsets + LIN_WORKER_UTTERANCES + 1;
    lin_batch batch = {.in = segments_of(in, B, ops->on_host ? in : in_there),
                       .out = segments_of(out, B, ops->on_host ? out : out_there),
                       .features = ops->on_host ? features : w->features,
                       .mean = e->mean,
                       .istd = e->istd,
                       .states = states,
                       .search = w->search};
    if (ops->on_host) {
        lin_wave_forward(&w->wave, e->weights, w->activations, w->exec, &batch, logp);
        return LIN_OK;
    }
    const size_t n_offsets = (size_t)(B + 1) * sizeof *in;
    ops->upload(w->exec, in_there, in, n_offsets);
    ops->upload(w->exec, out_there, out, n_offsets);
    ops->upload(w->exec, w->features, features, (size_t)in[B] * (size_t)c->mel_bins * sizeof *features);
    lin_network_forward(e->weights, w->activations, w->exec, &batch, w->logp);
    ops->download(w->exec, logp, w->logp, (size_t)out[B] * (size_t)c->outputs * sizeof *logp);
    return ops->finish(w->exec, err);
}

// Utterances first .. first+B-1 as one batch; logp receives their rows.
static lin_status run_batch(lin_worker *w, const float *features, const int *in_offsets, int B, float *logp, lin_error *err)
{
    const lin_config *c = &w->encoder->model->config;
    int in[LIN_WORKER_UTTERANCES + 1], out[LIN_WORKER_UTTERANCES + 1];
    in[0] = out[0] = 0;
    for (int b = 0; b < B; b++) {
        in[b + 1] = in_offsets[b + 1] - in_offsets[0];
        out[b + 1] = out[b] + lin_config_frames_out(c, in_offsets[b + 1] - in_offsets[b]);
    }
    return lin_worker_pass(w, features + (size_t)in_offsets[0] * (size_t)c->mel_bins, in, out, B, NULL, logp, err);
}

// One causal utterance of any length, pass_rows at a time; its state is passed from part to part.
static lin_status run_long(lin_worker *w, const float *features, int n_frames, float *logp, lin_error *err)
{
    const lin_encoder *e = w->encoder;
    const lin_config *c = &e->model->config;
    const int n_rows = lin_config_frames_out(c, n_frames), step = e->pass_rows;
    lin_status status = LIN_OK;
    e->ops->zero(w->exec, w->state, e->state_count * sizeof *w->state);
    for (int row = 0; row < n_rows && status == LIN_OK; row += step) {
        const int rows = row + step < n_rows ? step : n_rows - row, from = row * c->stack;
        // give each pass its whole window, with the look-ahead: stack_frames repeats the last frame it gets, which must be the
        // utterance's last
        const int want = rows * c->stack + c->ahead, have = n_frames - from < want ? n_frames - from : want;
        status = lin_worker_pass(w, features + (size_t)from * (size_t)c->mel_bins, (const int[]){0, have}, (const int[]){0, rows},
                                 1, w->states, logp + (size_t)row * (size_t)c->outputs, err);
    }
    return status;
}

lin_status lin_encoder_run(lin_worker *w, const float *features, const int *in_offsets, int B, float *logp, lin_error *err)
{
    const lin_config *c = &w->encoder->model->config;
    // without a state of constant size the whole utterance is processed at once
    const int whole = lin_config_why_not_stream(c) != NULL || lin_config_cache_count(c) > 0;
    for (int b = 0; b < B;) {
        const int n_frames = in_offsets[b + 1] - in_offsets[b], rows = lin_config_frames_out(c, n_frames);
        if (!whole && rows > w->encoder->pass_rows) {
            LIN_TRY(run_long(w, features + (size_t)in_offsets[b] * (size_t)c->mel_bins, n_frames, logp, err));
            logp += (size_t)rows * (size_t)c->outputs;
            b++;
            continue;
        }
        LIN_TRY(reserve_room(w, rows, err));
        int n = 0, total = 0;
        while (b + n < B && n < LIN_WORKER_UTTERANCES) {
            const int next = lin_config_frames_out(c, in_offsets[b + n + 1] - in_offsets[b + n]);
            if (total + next > w->activations->max_rows) break;
            total += next;
            n++;
        }
        LIN_TRY(run_batch(w, features, in_offsets + b, n, logp, err));
        logp += (size_t)total * (size_t)c->outputs;
        b += n;
    }
    return LIN_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------- */

// The graph of a key, recorded now if this is its second use; NULL: run directly.
static const lin_graph *find(lin_graphs *g, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *),
                             void *context)
{
    int i = 0;
    while (i < g->n && memcmp(g->known[i].key, key, sizeof g->known[i].key) != 0) i++;
    if (i == LIN_GRAPHS) return NULL;
    if (i == g->n) {
        memcpy(g->known[g->n++].key, key, sizeof g->known[i].key);
        return NULL;
    }
    if (!g->known[i].graph && ops->graph_begin(exec, NULL) == LIN_OK) {
        compute(context);
        if (ops->graph_end(exec, &g->known[i].graph, NULL) != LIN_OK) g->known[i].graph = NULL;
    }
    return g->known[i].graph;
}

void lin_graphs_run(lin_graphs *g, const lin_ops *ops, lin_exec *exec, const int *key, void (*compute)(void *), void *context)
{
    const lin_graph *graph = ops->graph_begin ? find(g, ops, exec, key, compute, context) : NULL;
    if (graph) {
        ops->graph_launch(exec, graph);
    } else {
        compute(context);
    }
}

void lin_graphs_free(lin_graphs *g, const lin_ops *ops)
{
    for (int i = 0; i < g->n; i++)
        if (g->known[i].graph) ops->graph_destroy(g->known[i].graph);
    g->n = 0;
}
