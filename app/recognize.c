// recognize.c - a sound file through the front end and the network; see recognize.h.

#include "app/recognize.h"

#include <limits.h>
#include <poll.h>
#include <string.h>

#include "app/common.h"
#include "frontend/normalize.h"
#include "kernels/memory.h"
#include "model/model_file.h"
#include "model/stream.h"

enum { BLOCK = 512 }; // frames of the front end at a time: 5 seconds

struct lin_ear {
    const lin_recognizer *r;
    lin_worker *worker;
    lin_stream *streams[LIN_AUDIO_MAX_CHANNELS]; // made when a lane first needs one, then reset
    float *frames;                               // [lanes, BLOCK, D]
    int lanes;                                   // that frames has room for
    float *logp;                                 // [rows, V]
    int rows;
};

lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               lin_error *err)
{
    char found[4096];
    const lin_ops *ops;
    memset(recognizer, 0, sizeof *recognizer);
    lin_status status = lin_find_model(path, found, sizeof found, err);
    if (status == LIN_OK) status = lin_backend_open(device, precision, &ops, err);
    if (status == LIN_OK) status = lin_model_load(found, &recognizer->model, err);
    if (status == LIN_OK) status = lin_encoder_create(recognizer->model, ops, &recognizer->encoder, err);
    if (status == LIN_OK) status = lin_phones_create(recognizer->model->phones, &recognizer->phones, err);
    if (status != LIN_OK) {
        lin_recognizer_close(recognizer);
        return status;
    }
    const lin_model *m = recognizer->model;
    recognizer->fbank = lin_fbank_from_model(&m->features, m->config.mel_bins);
    recognizer->streams = m->config.causal && m->config.positions != LIN_POSITIONS_SINUSOID && !m->speaker_norm;
    recognizer->row_seconds = m->config.stack * m->features.hop_ms / 1000;
    recognizer->V = m->config.outputs;
    return LIN_OK;
}

void lin_recognizer_close(lin_recognizer *recognizer)
{
    lin_phones_destroy(recognizer->phones);
    lin_encoder_destroy(recognizer->encoder);
    lin_model_destroy(recognizer->model);
    memset(recognizer, 0, sizeof *recognizer);
}

lin_status lin_ear_create(const lin_recognizer *recognizer, int n_threads, lin_ear **ear, lin_error *err)
{
    lin_ear *e = lin_calloc(1, sizeof *e);
    *ear = NULL;
    if (!e) return lin_no_memory(err, "a recogniser", sizeof *e);
    e->r = recognizer;
    lin_status status = lin_worker_create(recognizer->encoder, n_threads, &e->worker, err);
    if (status != LIN_OK) {
        lin_ear_destroy(e);
        return status;
    }
    *ear = e;
    return LIN_OK;
}

void lin_ear_destroy(lin_ear *ear)
{
    if (!ear) return;
    for (int i = 0; i < LIN_AUDIO_MAX_CHANNELS; i++) lin_stream_destroy(ear->streams[i]);
    if (ear->worker) lin_worker_destroy(ear->worker);
    lin_free(ear->frames);
    lin_free(ear->logp);
    lin_free(ear);
}

static lin_status reserve_rows(lin_ear *e, int rows, lin_error *err)
{
    if (rows <= e->rows) return LIN_OK;
    size_t count = (size_t)rows * (size_t)e->r->V;
    lin_free(e->logp);
    e->rows = 0;
    e->logp = lin_alloc(count, sizeof *e->logp);
    if (!e->logp) return lin_no_memory(err, "log-probabilities", count * sizeof *e->logp);
    e->rows = rows;
    return LIN_OK;
}

static lin_status ready(lin_ear *e, int lanes, int D, lin_error *err)
{
    for (int i = 0; i < lanes && e->r->streams; i++) {
        if (e->streams[i]) {
            lin_stream_reset(e->streams[i]);
            continue;
        }
        lin_status status = lin_stream_create(e->r->encoder, &e->streams[i], err);
        if (status != LIN_OK) return status;
    }
    if (lanes <= e->lanes) return LIN_OK;
    size_t count = (size_t)lanes * BLOCK * (size_t)D;
    lin_free(e->frames);
    e->lanes = 0;
    e->frames = lin_alloc(count, sizeof *e->frames);
    if (!e->frames) return lin_no_memory(err, "features", count * sizeof *e->frames);
    e->lanes = lanes;
    return LIN_OK;
}

static lin_status feed(lin_ear *e, int lane, const float *frames, int n, const lin_sink *sink, lin_error *err)
{
    int rows = lin_stream_frames_out(e->streams[lane], n), n_out = 0;
    lin_status status = reserve_rows(e, rows, err);
    if (status == LIN_OK) status = lin_stream_feed(e->streams[lane], e->worker, frames, n, e->logp, e->rows, &n_out, err);
    return status == LIN_OK && n_out ? sink->rows(sink->context, lane, e->logp, n_out, err) : status;
}

static lin_status finish(lin_ear *e, int lane, const lin_sink *sink, lin_error *err)
{
    int n_out = 0;
    lin_status status = reserve_rows(e, lin_stream_frames_left(e->streams[lane]), err);
    if (status == LIN_OK) status = lin_stream_finish(e->streams[lane], e->worker, e->logp, e->rows, &n_out, err);
    return status == LIN_OK && n_out ? sink->rows(sink->context, lane, e->logp, n_out, err) : status;
}

// Reading goes on after a signal; so a silent standard input is waited for here, where an interrupt ends the waiting.
static void wait_for_input(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (!lin_interrupted && poll(&in, 1, 200) == 0) {}
}

// As it arrives, in constant memory.
static lin_status hear_stream(lin_ear *e, lin_source *source, int live, const lin_sink *sink, lin_error *err)
{
    int lanes = lin_source_lanes(source), D = lin_source_bins(source), n = 1;
    lin_status status = LIN_OK;
    while (status == LIN_OK && n > 0) {
        if (live) wait_for_input();
        if (lin_interrupted) {
            if (live) break;
            return lin_fail(err, LIN_STOPPED, "interrupted");
        }
        status = lin_source_read(source, e->frames, BLOCK, &n, err);
        for (int l = 0; l < lanes && status == LIN_OK && n > 0; l++) {
            status = feed(e, l, e->frames + (size_t)l * BLOCK * (size_t)D, n, sink, err);
        }
        if (sink->progress) sink->progress(sink->context, lin_source_seconds(source), lin_source_duration(source));
    }
    for (int l = 0; l < lanes && status == LIN_OK; l++) status = finish(e, l, sink, err);
    return status;
}

// For a model that is normalised by speaker.
static lin_status normalize(lin_matrix *frames, const lin_sound *sound, lin_error *err)
{
    const int D = frames->columns;
    const float *mean = sound->mean, *istd = sound->istd;
    float own[2 * 512];
    if (!mean) {
        lin_moments *norm;
        lin_status status = lin_moments_create(D, &norm, err);
        if (status != LIN_OK) return status;
        lin_moments_add(norm, frames->data, (size_t)frames->rows);
        status = lin_moments_finish(norm, own, own + D, err);
        lin_moments_destroy(norm);
        if (status != LIN_OK) return status;
        mean = own;
        istd = own + D;
    }
    lin_moments_apply(frames->data, (size_t)frames->rows, D, mean, istd);
    return LIN_OK;
}

// A model that looks at the whole utterance: all frames first.
static lin_status hear_whole(lin_ear *e, lin_source *source, const lin_sound *sound, const lin_sink *sink, lin_error *err)
{
    int lanes = lin_source_lanes(source), D = lin_source_bins(source), n = 1;
    lin_matrix all[LIN_AUDIO_MAX_CHANNELS];
    memset(all, 0, sizeof all);
    lin_status status = LIN_OK;
    while (status == LIN_OK && n > 0) {
        if (lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted");
        if (status == LIN_OK) status = lin_source_read(source, e->frames, BLOCK, &n, err);
        for (int l = 0; l < lanes && status == LIN_OK && n > 0; l++) {
            if (all[l].rows > INT_MAX - BLOCK) {
                status = lin_fail(err, LIN_UNSUPPORTED, "too long for a model that needs the whole utterance");
            } else {
                status = lin_matrix_reserve(&all[l], all[l].rows + n, D, err);
            }
            if (status != LIN_OK) break;
            memcpy(all[l].data + (size_t)all[l].rows * (size_t)D, e->frames + (size_t)l * BLOCK * (size_t)D,
                   (size_t)n * (size_t)D * sizeof(float));
            all[l].rows += n;
        }
        if (sink->progress) sink->progress(sink->context, lin_source_seconds(source), lin_source_duration(source));
    }
    for (int l = 0; l < lanes && status == LIN_OK && all[l].rows; l++) {
        int offsets[2] = {0, all[l].rows}, rows = lin_config_frames_out(&e->r->model->config, all[l].rows);
        status = reserve_rows(e, rows, err);
        if (status == LIN_OK && e->r->model->speaker_norm) status = normalize(&all[l], sound, err);
        if (status == LIN_OK) status = lin_encoder_run(e->worker, all[l].data, offsets, 1, e->logp, err);
        if (status == LIN_OK) status = sink->rows(sink->context, l, e->logp, rows, err);
    }
    for (int l = 0; l < lanes; l++) lin_matrix_free(&all[l]);
    return status;
}

lin_status lin_ear_hear(lin_ear *ear, const lin_sound *sound, const lin_sink *sink, lin_heard *heard, lin_error *err)
{
    lin_feature_options options = lin_feature_options_default();
    options.fbank = ear->r->fbank;
    options.channel = sound->channel;
    memset(heard, 0, sizeof *heard);
    lin_audio *audio;
    lin_source *source;
    lin_status status = lin_audio_open(sound->path, sound->raw, &audio, err);
    if (status != LIN_OK) return status;
    int live = strcmp(sound->path, "-") == 0 && lin_audio_is_live(audio);
    status = lin_source_from_audio(audio, &options, &source, err);
    if (status != LIN_OK) return status;
    heard->lanes = lin_source_lanes(source);
    status = ready(ear, heard->lanes, lin_source_bins(source), err);
    if (status == LIN_OK && sink->begin) status = sink->begin(sink->context, heard->lanes, err);
    if (status == LIN_OK) {
        status = ear->r->streams ? hear_stream(ear, source, live, sink, err) : hear_whole(ear, source, sound, sink, err);
    }
    heard->seconds = lin_source_seconds(source);
    const char *warning = lin_source_info(source)->warning;
    size_t n = strlen(warning) < sizeof heard->warning ? strlen(warning) : sizeof heard->warning - 1;
    memcpy(heard->warning, warning, n);
    lin_source_close(source);
    return status;
}
