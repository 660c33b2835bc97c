// second_pass.c - an utterance of a stream once more, when it has ended; see second_pass.h.

#include "linnet/second_pass.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

struct lin_second_pass {
    const lin_recognizer *r;
    lin_worker *worker;
    lin_decoding decoding; // of the stream, with this model's time between two rows and emission delay
    lin_decoder decoder;
    lin_matrix frames; // an utterance's at the hop of this model, where the stream has another one
    float *logp;       // [rows, V]
    int rows;
};

static lin_status check(const lin_recognizer *first, const lin_recognizer *second, lin_error *err)
{
    const lin_model *a = first->model, *b = second->model;
    const char *differs = NULL;
    lin_features features = b->features;
    features.hop_ms = a->features.hop_ms;
    if (b->speaker_norm)
        return lin_fail(err, LIN_UNSUPPORTED, "the model of the second pass is normalised by speaker, which a stream cannot be; "
                                              "use another one");
    if (a->config.mel_bins != b->config.mel_bins || !lin_features_equal(&a->features, &features)) differs = "features";
    else if (a->features.level_db != b->features.level_db) differs = "levels of speech";
    else if (a->config.stack != b->config.stack) differs = "steps";
    else if (strcmp(a->phones, b->phones) != 0) differs = "phones";
    if (!differs) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "the models of the stream and of its second pass have different %s; features but the "
                                       "hop, level, step and phones must be the same (linnet info MODEL)", differs);
}

// The streams' decoding, whose phrases may have changed, from the first row of this model that is not before the stream's `row`;
// times are earlier by what lies between. Returns that row.
static int64_t decode_by(lin_second_pass *p, const lin_decoding *decoding, int64_t row)
{
    const double row_s = p->r->row_seconds, from_s = (double)row * decoding->row_seconds;
    p->decoding = *decoding;
    p->decoding.search = decoding->whole;
    p->decoding.delay_s = p->r->delay_s;
    if (row_s == decoding->row_seconds) return row;
    const int64_t first = (int64_t)ceil(from_s / row_s);
    p->decoding.row_seconds = row_s;
    p->decoding.delay_s += (double)first * row_s - from_s;
    return first;
}

lin_status lin_second_pass_create(const lin_recognizer *first, const lin_recognizer *second, const lin_decoding *decoding,
                                  int n_threads, lin_second_pass **pass, lin_error *err)
{
    const lin_decoding greedy = lin_decoding_greedy(second->V, first->row_seconds, 0);
    *pass = NULL;
    lin_status status = check(first, second, err);
    if (status != LIN_OK) return status;
    lin_second_pass *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a second pass", sizeof *p);
    p->r = second;
    decode_by(p, decoding ? decoding : &greedy, 0);
    status = lin_decoder_create(&p->decoder, &p->decoding, err);
    if (status == LIN_OK) status = lin_worker_create(second->encoder, n_threads, &p->worker, err);
    if (status == LIN_OK) lin_worker_search(p->worker, p->decoding.language);
    if (status == LIN_OK) *pass = p;
    else lin_second_pass_destroy(p);
    return status;
}

void lin_second_pass_destroy(lin_second_pass *p)
{
    if (!p) return;
    if (p->worker) lin_worker_destroy(p->worker);
    lin_decoder_free(&p->decoder);
    lin_matrix_free(&p->frames);
    lin_free(p->logp);
    lin_free(p);
}

static lin_status reserve(lin_second_pass *p, int rows, lin_error *err)
{
    if (rows <= p->rows) return LIN_OK;
    const size_t count = (size_t)rows * (size_t)p->r->V;
    lin_free(p->logp);
    p->rows = 0;
    p->logp = lin_alloc(count, sizeof *p->logp);
    if (!p->logp) return lin_no_memory(err, "log-probabilities", count * sizeof *p->logp);
    p->rows = rows;
    return LIN_OK;
}

// frames [n, D] of a stream whose rows are row_s apart, at the hop of this model: each on the straight line between the two that
// are nearest in time, whose windows overlap by more than half. *n becomes their number.
static lin_status change_hop(lin_second_pass *p, double row_s, const float **frames, int *n, lin_error *err)
{
    const int D = p->r->model->config.mel_bins;
    const double step = p->r->row_seconds / row_s; // a row has as many frames in both
    if (step == 1 || *n < 2) return LIN_OK;
    const int made = 1 + (int)((*n - 1) / step);
    p->frames.rows = 0;
    const lin_status status = lin_matrix_reserve(&p->frames, made, D, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < made; i++) {
        const double at = i * step;
        const int from = at < *n - 2 ? (int)at : *n - 2;
        const float part = (float)(at - from), *a = *frames + (size_t)from * (size_t)D, *b = a + D;
        float *to = p->frames.data + (size_t)i * (size_t)D;
        for (int d = 0; d < D; d++) to[d] = a[d] + part * (b[d] - a[d]);
    }
    *frames = p->frames.data;
    *n = p->frames.rows = made;
    return LIN_OK;
}

lin_status lin_second_pass_run(lin_second_pass *p, const lin_decoding *decoding, const float *frames, int n, int64_t row,
                               lin_result *result, lin_error *err)
{
    const lin_model *m = p->r->model;
    const int D = m->config.mel_bins;
    lin_decoder_reset(&p->decoder, decode_by(p, decoding, row));
    lin_status status = change_hop(p, decoding->row_seconds, &frames, &n, err);
    for (int at = 0, some; at < n && status == LIN_OK; at += some) {
        const float *piece = frames + (size_t)at * (size_t)D;
        some = lin_front_next_utterance(piece, n - at, D, m->features.hop_ms, m->config.stack);
        const int offsets[2] = {0, some}, rows = lin_config_frames_out(&m->config, some);
        status = reserve(p, rows, err);
        if (status == LIN_OK) status = lin_encoder_run(p->worker, piece, offsets, 1, p->logp, err);
        if (status == LIN_OK) status = lin_decoder_push(&p->decoder, p->logp, rows, err);
    }
    return status == LIN_OK ? lin_decoder_finish(&p->decoder, result, err) : status;
}
