// voice.c - loads a network of voices and computes vectors; see voice.h. Its last layers are in model/pooling.c.

#include "model/voice.h"

#include "base/memory.h"
#include "model/encoder.h"

struct lin_voice {
    lin_model *model;
    lin_encoder *encoder;
};

lin_status lin_voice_open(const char *path, lin_voice **out, lin_error *err)
{
    const lin_ops *ops;
    lin_voice *v = *out = lin_calloc(1, sizeof *v);
    if (!v) return lin_no_memory(err, "a network of voices", sizeof *v);
    lin_status status = lin_model_load(path, &v->model, err);
    if (status == LIN_OK && !v->model->config.voice)
        status = lin_fail(err, LIN_UNSUPPORTED, "%s is not a network of voices: it has no vectors", path);
    if (status == LIN_OK) status = lin_backend_open("cpu", LIN_PRECISION_FP32, &ops, err);
    if (status == LIN_OK) status = lin_encoder_create(v->model, ops, &v->encoder, err);
    if (status == LIN_OK) return LIN_OK;
    lin_voice_destroy(v);
    *out = NULL;
    return status;
}

void lin_voice_destroy(lin_voice *v)
{
    if (!v) return;
    lin_encoder_destroy(v->encoder);
    lin_model_destroy(v->model);
    lin_free(v);
}

int lin_voice_size(const lin_voice *v) { return v->model->config.voice; }

const lin_features *lin_voice_features(const lin_voice *v) { return &v->model->features; }

int lin_voice_bins(const lin_voice *v) { return v->model->config.mel_bins; }

lin_status lin_voice_vector(const lin_voice *v, const float *frames, int n_frames, float *vector, lin_error *err)
{
    const lin_encoder *e = v->encoder;
    if (n_frames < 1 || n_frames > LIN_VOICE_MOST)
        return lin_fail(err, LIN_INVALID, "a piece of %d frames; a vector is of 1 to %d", n_frames, (int)LIN_VOICE_MOST);
    const int in[] = {0, n_frames}, out[] = {0, lin_config_frames_out(&v->model->config, n_frames)};
    const lin_batch batch = {.in = {.B = 1, .rows = in[1], .longest = in[1], .offsets = in},
                             .out = {.B = 1, .rows = out[1], .longest = out[1], .offsets = out},
                             .features = frames,
                             .mean = e->mean,
                             .istd = e->istd};
    lin_exec *exec = NULL;
    lin_activations *activations = NULL;
    lin_status status = e->ops->exec_create(e->ops, 1, &exec, err);
    if (status == LIN_OK)
        status = lin_activations_create(e->ops, exec, &v->model->config, out[1], 0, 0, &activations, err);
    if (status == LIN_OK) {
        lin_network_forward(e->weights, activations, exec, &batch, vector);
        status = e->ops->finish(exec, err);
    }
    lin_activations_destroy(activations);
    if (exec) e->ops->exec_destroy(exec);
    return status;
}
