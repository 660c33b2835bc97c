// live.c - the growing result of sound without an end; see live.h.

#include "app/live.h"

#include <math.h>
#include <string.h>

#include "kernels/memory.h"
#include "model/stream.h"

enum { PIECE = 96 }; // frames given to the network at a time

struct lin_live {
    const lin_recognizer *r;
    lin_live_options options;
    lin_live_sink sink;
    lin_worker *worker;
    lin_stream *stream;
    lin_greedy greedy;
    lin_endpoint endpoint;
    lin_result result;
    // Frames that no row has judged yet; of these the network has `fed`. A reset gives them to it once more.
    float *frames; // [capacity, D]
    int n, fed, capacity;
    float *logp; // [rows, V]
    int rows;
    int64_t row; // the next, since the beginning
    int utterance, revision;
    int changed;        // since the last view
    int32_t shown_open; // label of the open phone in the last view
};

const char *lin_live_end_name(lin_live_end end)
{
    static const char *const names[] = {"", "before", "after", "longest", "asked", "stopped"};
    return names[end];
}

lin_live_options lin_live_options_default(void) { return (lin_live_options){.resets = 1, .rules = lin_endpoint_default()}; }

lin_live_delay lin_live_construction(const lin_recognizer *r)
{
    const double hop_s = r->model->features.hop_ms * 1e-3, window_s = r->model->features.window_ms * 1e-3;
    lin_live_delay d = {.step_s = r->model->config.stack * hop_s,
                        .ahead_s = r->model->config.ahead * hop_s,
                        .window_s = window_s > hop_s ? window_s - hop_s : 0};
    d.total_s = d.step_s + d.ahead_s + d.window_s;
    return d;
}

static void begin_utterance(lin_live *l)
{
    l->revision = 0;
    l->changed = 0;
    l->shown_open = 0;
    l->result.n_phones = 0;
}

lin_status lin_live_create(const lin_recognizer *recognizer, const lin_live_options *options, const lin_live_sink *sink,
                           lin_live **live, lin_error *err)
{
    *live = NULL;
    lin_status status = lin_endpoint_check(&options->rules, err);
    if (status != LIN_OK) return status;
    lin_live *l = lin_calloc(1, sizeof *l);
    if (!l) return lin_no_memory(err, "a live result", sizeof *l);
    const lin_config *c = &recognizer->model->config;
    l->r = recognizer;
    l->options = *options;
    l->sink = *sink;
    l->capacity = c->stack + c->ahead + PIECE;
    l->rows = l->capacity / c->stack + 1;
    l->frames = lin_alloc((size_t)l->capacity * (size_t)c->mel_bins, sizeof *l->frames);
    l->logp = lin_alloc((size_t)l->rows * (size_t)recognizer->V, sizeof *l->logp);
    if (!l->frames || !l->logp) status = lin_no_memory(err, "a live result", (size_t)l->capacity * sizeof *l->frames);
    if (status == LIN_OK) status = lin_stream_create(recognizer->encoder, &l->stream, err);
    if (status == LIN_OK) status = lin_worker_create(recognizer->encoder, 1, &l->worker, err);
    if (status == LIN_OK) status = lin_result_begin(&l->result, "live", NULL, 1, err);
    if (status != LIN_OK) {
        lin_live_destroy(l);
        return status;
    }
    lin_greedy_reset(&l->greedy, recognizer->V, 0, 0);
    lin_endpoint_reset(&l->endpoint, &options->rules, recognizer->row_seconds);
    *live = l;
    return LIN_OK;
}

void lin_live_destroy(lin_live *l)
{
    if (!l) return;
    lin_stream_destroy(l->stream);
    if (l->worker) lin_worker_destroy(l->worker);
    lin_result_free(&l->result);
    lin_free(l->frames);
    lin_free(l->logp);
    lin_free(l);
}

// Tells the sink how the utterance stands, if there is anything in it.
static lin_status show(lin_live *l, lin_live_end end, lin_error *err)
{
    lin_greedy_phone open;
    lin_live_view v = {.utterance = l->utterance + 1, .result = &l->result, .end = end};
    const double row_s = l->r->row_seconds;
    v.has_open = end == LIN_LIVE_GROWS && lin_greedy_pending(&l->greedy, &open);
    const int32_t label = v.has_open ? open.label : 0;
    if (end == LIN_LIVE_GROWS && !l->changed && label == l->shown_open) return LIN_OK;
    if (!v.has_open && l->result.n_phones == 0 && l->revision == 0) return LIN_OK;
    l->changed = 0;
    l->shown_open = label;
    v.revision = ++l->revision;
    v.heard_s = (double)l->row * row_s;
    if (v.has_open) {
        v.open = (lin_result_phone){.label = open.label, .confidence = open.confidence, .start_s = (double)open.start * row_s,
                                    .end_s = (double)open.end * row_s, .goodness = NAN};
        v.start_s = v.open.start_s;
        v.end_s = v.open.end_s;
    }
    if (l->result.n_phones) {
        v.start_s = l->result.phones[0].start_s;
        if (!v.has_open) v.end_s = l->result.phones[l->result.n_phones - 1].end_s;
    }
    l->result.seconds = v.heard_s;
    return l->sink.show(l->sink.context, &v, err);
}

static lin_status take_phones(lin_live *l, const lin_greedy_phone *phones, int n, lin_error *err)
{
    if (n) l->changed = 1;
    return lin_result_add(&l->result, phones, n, l->r->row_seconds, err);
}

// The utterance ends behind the last row that was judged.
static lin_status end_utterance(lin_live *l, lin_live_end end, lin_error *err)
{
    lin_greedy_phone last;
    int n_last;
    lin_greedy_finish(&l->greedy, &last, &n_last);
    lin_status status = take_phones(l, &last, n_last, err);
    if (status == LIN_OK) status = show(l, end, err);
    if (status != LIN_OK) return status;
    if (l->revision) l->utterance++;
    // Reset, a first phone equal to the last one is a new one. Carried on, a phone that the end has cut in two is still one.
    lin_greedy_reset(&l->greedy, l->r->V, l->row, !l->options.resets);
    if (l->options.resets) {
        lin_stream_reset(l->stream);
        l->fed = 0;
    }
    begin_utterance(l);
    return LIN_OK;
}

// Of the frames of one row, in decibels on a scale of its own.
static double loudness(const lin_live *l, const float *frames)
{
    const int n = l->r->model->config.stack * l->r->model->config.mel_bins;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)frames[i]);
    return 10 * log10(sum);
}

// Judges rows that came out, until an endpoint that resets the network: those behind it were computed with what it must forget.
static lin_status judge(lin_live *l, int rows, lin_error *err)
{
    const lin_config *c = &l->r->model->config;
    const size_t D = (size_t)c->mel_bins;
    lin_status status = LIN_OK;
    int done = 0, reset = 0, taken;
    while (done < rows && !reset && status == LIN_OK) {
        const float *row = l->logp + (size_t)done * (size_t)l->r->V;
        const int whole = (done + 1) * c->stack <= l->n; // the last row of the sound may lack frames
        const double db = whole ? loudness(l, l->frames + (size_t)(done * c->stack) * D) : NAN;
        lin_greedy_phone phone;
        int n_phones;
        status = lin_greedy_push(&l->greedy, row, 1, &phone, 1, &n_phones, err);
        if (status == LIN_OK) status = take_phones(l, &phone, n_phones, err);
        if (status != LIN_OK) break;
        l->row++;
        done++;
        const lin_endpoint_rule rule = lin_endpoint_push(&l->endpoint, row, db);
        if (rule == LIN_ENDPOINT_NONE) continue;
        // What was judged goes before the network does.
        reset = l->options.resets;
        status = end_utterance(l, LIN_LIVE_BEFORE + (rule - LIN_ENDPOINT_BEFORE), err);
    }
    taken = done * c->stack < l->n ? done * c->stack : l->n;
    memmove(l->frames, l->frames + (size_t)taken * D, (size_t)(l->n - taken) * D * sizeof *l->frames);
    l->n -= taken;
    l->fed = reset ? 0 : l->fed - taken;
    return status;
}

// Gives the network what it has not been given, as often as it is reset on the way.
static lin_status advance(lin_live *l, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && l->fed < l->n) {
        int rows = 0;
        const float *next = l->frames + (size_t)l->fed * (size_t)l->r->model->config.mel_bins;
        status = lin_stream_feed(l->stream, l->worker, next, l->n - l->fed, l->logp, l->rows, &rows, err);
        l->fed = l->n;
        if (status == LIN_OK) status = judge(l, rows, err);
    }
    return status;
}

lin_status lin_live_feed(lin_live *l, const float *frames, int n, lin_error *err)
{
    const size_t D = (size_t)l->r->model->config.mel_bins;
    lin_status status = LIN_OK;
    while (n > 0 && status == LIN_OK) {
        int take = l->capacity - l->n;
        if (take > n) take = n;
        memcpy(l->frames + (size_t)l->n * D, frames, (size_t)take * D * sizeof *frames);
        l->n += take;
        frames += (size_t)take * D;
        n -= take;
        status = advance(l, err);
    }
    return status == LIN_OK ? show(l, LIN_LIVE_GROWS, err) : status;
}

lin_status lin_live_end_utterance(lin_live *l, lin_error *err)
{
    lin_status status = end_utterance(l, LIN_LIVE_ASKED, err);
    l->endpoint.silent_s = l->endpoint.spoken_s = l->endpoint.length_s = 0;
    return status == LIN_OK ? advance(l, err) : status;
}

lin_status lin_live_finish(lin_live *l, lin_error *err)
{
    lin_status status = advance(l, err);
    // An endpoint on the way resets the network, which then finishes once more.
    while (status == LIN_OK && l->n > 0) {
        int rows = 0;
        status = lin_stream_finish(l->stream, l->worker, l->logp, l->rows, &rows, err);
        if (status == LIN_OK) status = judge(l, rows, err);
        if (status == LIN_OK) status = advance(l, err);
    }
    return status == LIN_OK ? end_utterance(l, LIN_LIVE_STOPPED, err) : status;
}
