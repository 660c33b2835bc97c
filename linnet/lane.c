// lane.c - one lane of sound through the network, with endpoints; see lane.h.

#include "linnet/lane.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/recognize.h"

// Frames given to the network at once, and rows where it may have to begin anew: those behind an endpoint are computed in vain.
// Several threads share them in chunks, two each.
enum { MOST_FRAMES = 576, RESET_ROWS = 64, RESET_ROWS_EACH = 48 };

struct lin_lane {
    const lin_recognizer *r;
    lin_stream *stream;
    lin_lane_options options;
    lin_endpoint endpoint;
    // Frames that no row has judged yet; of these the network has `fed`. A reset gives them to it once more.
    float *frames; // [capacity, D]
    int n, fed, capacity;
    float *logp; // [rows, V]
    int rows;
    int64_t row; // the next, since the beginning
};

lin_status lin_lane_create(const lin_recognizer *recognizer, lin_lane **lane, lin_error *err)
{
    *lane = NULL;
    lin_lane *l = lin_calloc(1, sizeof *l);
    if (!l) return lin_no_memory(err, "a lane", sizeof *l);
    const lin_config *c = &recognizer->model->config;
    l->r = recognizer;
    l->capacity = c->stack + c->ahead + MOST_FRAMES;
    l->rows = l->capacity / c->stack + 1;
    l->frames = lin_alloc((size_t)l->capacity * (size_t)c->mel_bins, sizeof *l->frames);
    l->logp = lin_alloc((size_t)l->rows * (size_t)recognizer->V, sizeof *l->logp);
    lin_status status = LIN_OK;
    if (!l->frames || !l->logp) status = lin_no_memory(err, "a lane", (size_t)l->capacity * sizeof *l->frames);
    if (status == LIN_OK) status = lin_stream_create(recognizer->encoder, &l->stream, err);
    if (status != LIN_OK) {
        lin_lane_destroy(l);
        return status;
    }
    *lane = l;
    return LIN_OK;
}

void lin_lane_destroy(lin_lane *l)
{
    if (!l) return;
    lin_stream_destroy(l->stream);
    lin_free(l->frames);
    lin_free(l->logp);
    lin_free(l);
}

lin_status lin_lane_begin(lin_lane *l, const lin_lane_options *options, lin_error *err)
{
    lin_status status = options->endpoints ? lin_endpoint_check(&options->rules, err) : LIN_OK;
    if (status != LIN_OK) return status;
    l->options = *options;
    lin_endpoint_reset(&l->endpoint, &options->rules, l->r->row_seconds);
    lin_stream_reset(l->stream);
    l->n = l->fed = 0;
    l->row = 0;
    return LIN_OK;
}

int64_t lin_lane_rows(const lin_lane *l) { return l->row; }

int64_t lin_lane_frames(const lin_lane *l) { return l->row * l->r->model->config.stack + l->n; }

lin_stream *lin_lane_stream(const lin_lane *l) { return l->stream; }

const lin_endpoint *lin_lane_endpoint(const lin_lane *l) { return &l->endpoint; }

lin_status lin_lane_go_on(lin_lane *l, int64_t frames, int64_t rows, const lin_endpoint *endpoint, lin_error *err)
{
    const lin_config *c = &l->r->model->config;
    const float *waiting = lin_stream_waiting(l->stream, &l->n);
    const int64_t forgotten = frames - lin_stream_frames_in(l->stream); // by resets, a whole number of rows
    if (forgotten < 0 || forgotten % c->stack || rows * c->stack + l->n != frames || (forgotten && !endpoint))
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    memcpy(l->frames, waiting, (size_t)l->n * (size_t)c->mel_bins * sizeof *waiting);
    l->fed = l->n;
    l->row = rows;
    if (endpoint) l->endpoint = *endpoint;
    return LIN_OK;
}

// Of the frames of one row, in decibels on a scale of its own.
static double loudness(const lin_lane *l, const float *frames)
{
    const int n = l->r->model->config.stack * l->r->model->config.mel_bins;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)frames[i]);
    return 10 * log10(sum);
}

// What rows have judged goes; after a reset the rest is new to the network.
static void drop(lin_lane *l, int rows, int reset)
{
    const lin_config *c = &l->r->model->config;
    const size_t D = (size_t)c->mel_bins;
    const int taken = rows * c->stack < l->n ? rows * c->stack : l->n;
    memmove(l->frames, l->frames + (size_t)taken * D, (size_t)(l->n - taken) * D * sizeof *l->frames);
    l->n -= taken;
    l->fed = reset ? 0 : l->fed - taken;
    if (reset) lin_stream_reset(l->stream);
}

// Rows `from` .. `rows`-1 until an endpoint, which *rule tells: how many.
static int up_to_endpoint(lin_lane *l, int from, int rows, lin_endpoint_rule *rule)
{
    const lin_config *c = &l->r->model->config;
    for (int i = from; i < rows; i++) {
        const int whole = (i + 1) * c->stack <= l->n; // the last row of the sound may lack frames
        const double db = whole ? loudness(l, l->frames + (size_t)(i * c->stack) * (size_t)c->mel_bins) : NAN;
        *rule = lin_endpoint_push(&l->endpoint, l->logp + (size_t)i * (size_t)l->r->V, db);
        const double at_s = (double)(l->row + i - from + 1) * l->r->row_seconds;
        if (*rule != LIN_ENDPOINT_NONE && at_s >= l->options.from_s) return i + 1 - from;
    }
    *rule = LIN_ENDPOINT_NONE;
    return rows - from;
}

// Gives rows that came out to the sink, until an endpoint that resets the network: those behind it were computed with what it must
// forget.
static lin_status judge(lin_lane *l, int rows, const lin_lane_sink *sink, lin_error *err)
{
    lin_endpoint_rule rule = LIN_ENDPOINT_NONE;
    lin_status status = LIN_OK;
    int done = 0, reset = 0;
    while (done < rows && !reset && status == LIN_OK) {
        const int n = l->options.endpoints ? up_to_endpoint(l, done, rows, &rule) : rows;
        status = sink->rows(sink->context, l->logp + (size_t)done * (size_t)l->r->V, n, err);
        done += n;
        l->row += n;
        if (status != LIN_OK || rule == LIN_ENDPOINT_NONE) continue;
        reset = l->options.resets;
        status = sink->endpoint(sink->context, rule, l->row, err);
    }
    drop(l, done, reset);
    return status;
}

// Frames to give to the network next.
static int piece(const lin_lane *l, const lin_worker *worker)
{
    const int threads = lin_worker_threads(worker), rows = threads > 1 ? threads * RESET_ROWS_EACH : RESET_ROWS;
    const int n = l->n - l->fed, most = rows * l->r->model->config.stack;
    const int may_reset = l->options.endpoints && l->options.resets &&
                          (double)(l->row + l->rows) * l->r->row_seconds >= l->options.from_s;
    return may_reset && n > most ? most : n;
}

// Gives the network what it has not been given, as often as it is reset on the way.
static lin_status advance(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && l->fed < l->n) {
        int rows = 0;
        const int n = piece(l, worker);
        const float *next = l->frames + (size_t)l->fed * (size_t)l->r->model->config.mel_bins;
        status = lin_stream_feed(l->stream, worker, next, n, l->logp, l->rows, &rows, err);
        l->fed += n;
        if (status == LIN_OK) status = judge(l, rows, sink, err);
    }
    return status;
}

lin_status lin_lane_feed(lin_lane *l, lin_worker *worker, const float *frames, int n, const lin_lane_sink *sink, lin_error *err)
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
        status = advance(l, worker, sink, err);
    }
    return status;
}

lin_status lin_lane_finish(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    lin_status status = advance(l, worker, sink, err);
    // An endpoint on the way resets the network, which then finishes once more.
    while (status == LIN_OK && l->n > 0) {
        int rows = 0;
        status = lin_stream_finish(l->stream, worker, l->logp, l->rows, &rows, err);
        if (status == LIN_OK) status = judge(l, rows, sink, err);
        if (status == LIN_OK) status = advance(l, worker, sink, err);
    }
    return status;
}

lin_status lin_lane_end_utterance(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    l->endpoint.silent_s = l->endpoint.spoken_s = l->endpoint.length_s = 0;
    if (l->options.resets) drop(l, 0, 1);
    return advance(l, worker, sink, err);
}
