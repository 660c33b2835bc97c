#include "model/encoder.h"

#include <string.h>

#include "kernels/memory.h"
#include "model/encoder_internal.h"

lin_status lin_encoder_create(const lin_model *model, const lin_ops *ops, lin_encoder **out, lin_error *err)
{
    *out = NULL;
    lin_encoder *e = lin_calloc(1, sizeof *e);
    if (!e) return lin_no_memory(err, "an encoder", sizeof *e);
    e->model = model;
    e->ops = ops;
    e->state_count = lin_config_state_count(&model->config);
    lin_status status = ops->exec_create(1, &e->exec, err);
    if (status == LIN_OK)
        status = lin_weights_create(ops, e->exec, &model->config, &model->params, model->values, 0, &e->weights, err);
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
    if (e->exec) e->ops->exec_destroy(e->exec);
    lin_free(e);
}

lin_status lin_worker_create(const lin_encoder *encoder, int n_threads, lin_worker **out, lin_error *err)
{
    *out = NULL;
    lin_worker *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "a worker", sizeof *w);
    w->encoder = encoder;
    lin_status status = encoder->ops->exec_create(n_threads, &w->exec, err);
    if (status == LIN_OK)
        status = lin_activations_create(&encoder->model->config, LIN_WORKER_ROWS, LIN_WORKER_UTTERANCES, 0, &w->activations, err);
    if (status == LIN_OK) {
        const lin_config *c = &encoder->model->config;
        const size_t window = (size_t)(LIN_WORKER_ROWS * c->stack + c->ahead) * (size_t)c->mel_bins;
        w->state = lin_calloc(encoder->state_count, sizeof *w->state);
        w->window = lin_calloc(window, sizeof *w->window);
        if (!w->state || !w->window) status = lin_no_memory(err, "a worker", (encoder->state_count + window) * sizeof *w->state);
    }
    if (status != LIN_OK) {
        lin_worker_destroy(w);
        return status;
    }
    *out = w;
    return LIN_OK;
}

void lin_worker_destroy(lin_worker *w)
{
    if (!w) return;
    lin_activations_destroy(w->activations);
    if (w->exec) w->encoder->ops->exec_destroy(w->exec);
    lin_free(w->state);
    lin_free(w->window);
    lin_free(w);
}

// Utterances first .. first+B-1 as one batch; logp is where their rows go.
static void run_batch(lin_worker *w, const float *features, const int *in_offsets, int B, float *logp)
{
    const lin_model *m = w->encoder->model;
    int in[LIN_WORKER_UTTERANCES + 1], out[LIN_WORKER_UTTERANCES + 1];
    in[0] = out[0] = 0;
    for (int b = 0; b < B; b++) {
        in[b + 1] = in_offsets[b + 1] - in_offsets[0];
        out[b + 1] = out[b] + lin_config_frames_out(&m->config, in_offsets[b + 1] - in_offsets[b]);
    }
    const lin_batch batch = {.B = B,
                             .features = features + (size_t)in_offsets[0] * (size_t)m->config.mel_bins,
                             .mean = m->mean,
                             .istd = m->istd,
                             .in_offsets = in,
                             .offsets = out};
    lin_network_forward(w->encoder->weights, w->activations, w->exec, &batch, logp);
}

// One causal utterance of any length, max_rows at a time, its state carried from piece to piece.
static void run_long(lin_worker *w, const float *features, int n_frames, float *logp)
{
    const lin_model *m = w->encoder->model;
    const lin_config *c = &m->config;
    const int n_rows = lin_config_frames_out(c, n_frames), step = lin_activations_rows(w->activations);
    memset(w->state, 0, w->encoder->state_count * sizeof *w->state);
    for (int row = 0; row < n_rows; row += step) {
        const int rows = row + step < n_rows ? step : n_rows - row, from = row * c->stack;
        // the last rows' window ends before the utterance does, or stack_frames repeats the utterance's true last frame
        const int want = rows * c->stack + c->ahead, have = n_frames - from < want ? n_frames - from : want;
        const lin_batch batch = {.B = 1,
                                 .features = features + (size_t)from * (size_t)c->mel_bins,
                                 .mean = m->mean,
                                 .istd = m->istd,
                                 .in_offsets = (const int[]){0, have},
                                 .offsets = (const int[]){0, rows},
                                 .states = &w->state};
        lin_network_forward(w->encoder->weights, w->activations, w->exec, &batch, logp + (size_t)row * (size_t)c->outputs);
    }
}

static lin_status make_room(lin_worker *w, int rows, lin_error *err)
{
    if (rows <= lin_activations_rows(w->activations)) return LIN_OK;
    lin_activations *larger;
    lin_status status = lin_activations_create(&w->encoder->model->config, rows, LIN_WORKER_UTTERANCES, 0, &larger, err);
    if (status != LIN_OK) return status;
    lin_activations_destroy(w->activations);
    w->activations = larger;
    return LIN_OK;
}

lin_status lin_encoder_run(lin_worker *w, const float *features, const int *in_offsets, int B, float *logp, lin_error *err)
{
    const lin_config *c = &w->encoder->model->config;
    // positions counted from the start need the whole utterance at once, as two directions do
    const int whole = !c->causal || c->positions == LIN_POSITIONS_SINUSOID;
    for (int b = 0; b < B;) {
        const int n_frames = in_offsets[b + 1] - in_offsets[b], rows = lin_config_frames_out(c, n_frames);
        if (n_frames < 0) return lin_fail(err, LIN_INVALID, "utterance %d has a negative length", b);
        if (rows > lin_activations_rows(w->activations) && !whole) {
            run_long(w, features + (size_t)in_offsets[b] * (size_t)c->mel_bins, n_frames, logp);
            logp += (size_t)rows * (size_t)c->outputs;
            b++;
            continue;
        }
        lin_status status = make_room(w, rows, err);
        if (status != LIN_OK) return status;
        int n = 0, total = 0;
        while (b + n < B && n < LIN_WORKER_UTTERANCES) {
            const int next = lin_config_frames_out(c, in_offsets[b + n + 1] - in_offsets[b + n]);
            if (total + next > lin_activations_rows(w->activations)) break;
            total += next;
            n++;
        }
        run_batch(w, features, in_offsets + b, n, logp);
        logp += (size_t)total * (size_t)c->outputs;
        b += n;
    }
    return LIN_OK;
}
