// second_network.c - another network over the frames of utterances; see second_network.h.

#include "linnet/second_network.h"

#include <string.h>

#include "base/memory.h"

struct lin_second_network {
    const lin_recognizer *r;
    lin_worker *worker;
    double row_s;      // from one row of the first model to the next
    lin_matrix frames; // an utterance's at the hop of this model, where the first has another one
    float *logp;       // [rows, V], of a piece
    size_t room;
};

static lin_status check(const lin_recognizer *first, const lin_recognizer *second, lin_error *err)
{
    const lin_model *a = first->model, *b = second->model;
    const char *differs = NULL;
    lin_features features = b->features;
    features.hop_ms = a->features.hop_ms;
    if (a->speaker_norm || b->speaker_norm)
        return lin_fail(err, LIN_UNSUPPORTED, "the %s model is normalised by speaker, whose frames fit no other one; use another "
                                              "model", b->speaker_norm ? "second" : "first");
    if (a->config.mel_bins != b->config.mel_bins || !lin_features_equal(&a->features, &features)) differs = "features";
    else if (a->features.level_db != b->features.level_db) differs = "levels of speech";
    else if (a->config.stack != b->config.stack) differs = "steps";
    else if (strcmp(a->phones, b->phones) != 0) differs = "phones";
    if (!differs) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "the model and the second one have different %s; features but the hop, level, step and "
                                       "phones must be the same (linnet info MODEL)", differs);
}

lin_status lin_second_network_create(const lin_recognizer *first, const lin_recognizer *second, int n_threads, int language,
                                     lin_second_network **network, lin_error *err)
{
    *network = NULL;
    lin_status status = check(first, second, err);
    if (status != LIN_OK) return status;
    lin_second_network *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a second network", sizeof *s);
    s->r = second;
    s->row_s = first->row_seconds;
    status = lin_worker_create(second->encoder, n_threads, &s->worker, err);
    if (status == LIN_OK) {
        lin_worker_search(s->worker, language);
        *network = s;
    } else lin_second_network_destroy(s);
    return status;
}

void lin_second_network_destroy(lin_second_network *s)
{
    if (!s) return;
    if (s->worker) lin_worker_destroy(s->worker);
    lin_matrix_free(&s->frames);
    lin_free(s->logp);
    lin_free(s);
}

// frames [n, D] at the hop of this model: each on the straight line between the two that are nearest in time, whose windows
// overlap by more than half. *n becomes their number.
static lin_status change_hop(lin_second_network *s, const float **frames, int *n, lin_error *err)
{
    const int D = s->r->model->config.mel_bins;
    const double step = s->r->row_seconds / s->row_s; // a row has as many frames in both
    if (step == 1 || *n < 2) return LIN_OK;
    const int made = 1 + (int)((*n - 1) / step);
    s->frames.rows = 0;
    const lin_status status = lin_matrix_reserve(&s->frames, made, D, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < made; i++) {
        const double at = i * step;
        const int from = at < *n - 2 ? (int)at : *n - 2;
        const float part = (float)(at - from), *a = *frames + (size_t)from * (size_t)D, *b = a + D;
        float *to = s->frames.data + (size_t)i * (size_t)D;
        for (int d = 0; d < D; d++) to[d] = a[d] + part * (b[d] - a[d]);
    }
    *frames = s->frames.data;
    *n = s->frames.rows = made;
    return LIN_OK;
}

lin_status lin_second_network_run(lin_second_network *s, const float *frames, int n, lin_rows_taker take, void *context,
                                  lin_error *err)
{
    const lin_model *m = s->r->model;
    const int D = m->config.mel_bins;
    lin_status status = change_hop(s, &frames, &n, err);
    for (int at = 0, some; at < n && status == LIN_OK; at += some) {
        const float *piece = frames + (size_t)at * (size_t)D;
        some = lin_front_next_utterance(piece, n - at, D, m->features.hop_ms, m->config.stack);
        const int offsets[2] = {0, some}, rows = lin_config_frames_out(&m->config, some);
        status = lin_grow(&s->logp, &s->room, (size_t)rows * (size_t)s->r->V, sizeof *s->logp, "log-probabilities", err);
        if (status == LIN_OK) status = lin_encoder_run(s->worker, piece, offsets, 1, s->logp, err);
        if (status == LIN_OK) status = take(context, s->logp, rows, err);
    }
    return status;
}
