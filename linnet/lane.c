// lane.c - one lane of sound through the network; see lane.h.

#include "linnet/lane.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/loudness.h"
#include "linnet/recognizer.h"

// Frames given to the network at once, and rows where it may have to begin anew: those behind an endpoint are computed in vain.
// Several threads share them in chunks, two each.
enum { MOST_FRAMES = 576, RESET_ROWS = 64, RESET_ROWS_EACH = 48 };

struct lin_lane {
    const lin_recognizer *r;
    lin_stream *stream;
    // Frames of rows that were not taken yet; of these the network has `fed`. A reset gives them to it once more.
    float *frames; // [capacity, D]
    int n, fed, capacity;
    float *logp; // [rows, V]
    double *db;  // [rows] their loudness
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
    l->db = lin_alloc((size_t)l->rows, sizeof *l->db);
    lin_status status = LIN_OK;
    if (!l->frames || !l->logp || !l->db) status = lin_no_memory(err, "a lane", (size_t)l->capacity * sizeof *l->frames);
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
    lin_free(l->db);
    lin_free(l);
}

void lin_lane_begin(lin_lane *l)
{
    lin_stream_reset(l->stream);
    l->n = l->fed = 0;
    l->row = 0;
}

int64_t lin_lane_rows(const lin_lane *l) { return l->row; }

int64_t lin_lane_frames(const lin_lane *l) { return l->row * l->r->model->config.stack + l->n; }

lin_stream *lin_lane_stream(const lin_lane *l) { return l->stream; }

lin_status lin_lane_go_on(lin_lane *l, int64_t frames, int64_t rows, int was_reset, lin_error *err)
{
    const lin_config *c = &l->r->model->config;
    const float *waiting = lin_stream_waiting(l->stream, &l->n);
    const int64_t before = frames - lin_stream_frames_in(l->stream); // the last reset, a whole number of rows
    if (before < 0 || before % c->stack || rows * c->stack + l->n != frames || (before && !was_reset))
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    memcpy(l->frames, waiting, (size_t)l->n * (size_t)c->mel_bins * sizeof *waiting);
    l->fed = l->n;
    l->row = rows;
    return LIN_OK;
}

static lin_status rows_to_utterances(void *context, const float *logp, int n, const double *db, int *taken, int *reset,
                                     lin_error *err)
{
    return lin_utterances_push(context, logp, n, db, taken, reset, err);
}

static int utterances_may_reset(const void *context, int rows) { return lin_utterances_may_reset(context, rows); }

lin_lane_sink lin_lane_to(lin_utterances *u)
{
    return (lin_lane_sink){u, rows_to_utterances, utterances_may_reset, lin_utterances_ends(u)->endpoints};
}

// Loudness of the rows to come; not of a last row that lacks frames.
static void measure(lin_lane *l, int rows)
{
    const int stack = l->r->model->config.stack, D = l->r->model->config.mel_bins;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int f = i * stack; f < (i + 1) * stack && f < l->n; f++)
            sum = lin_loudness_frame(sum, l->frames + (size_t)f * (size_t)D, D);
        l->db[i] = (i + 1) * stack <= l->n ? lin_loudness_db(sum) : NAN;
    }
}

// The frames of rows that were taken go; after a reset the rest is new to the network.
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

// Gives rows that came out to the sink, until it says that the network is reset: those behind it were computed with the old past.
static lin_status give(lin_lane *l, int rows, const lin_lane_sink *sink, lin_error *err)
{
    int taken = 0, reset = 0;
    if (rows == 0) return LIN_OK;
    if (sink->loudness) measure(l, rows);
    lin_status status = sink->rows(sink->context, l->logp, rows, sink->loudness ? l->db : NULL, &taken, &reset, err);
    l->row += taken;
    drop(l, taken, reset);
    return status;
}

// Frames to give to the network next.
static int piece(const lin_lane *l, const lin_worker *worker, const lin_lane_sink *sink)
{
    const int threads = lin_worker_threads(worker), rows = threads > 1 ? threads * RESET_ROWS_EACH : RESET_ROWS;
    const int n = l->n - l->fed, most = rows * l->r->model->config.stack;
    return n > most && sink->may_reset && sink->may_reset(sink->context, l->rows) ? most : n;
}

// Gives the network what it has not been given, as often as it is reset on the way.
static lin_status advance(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && l->fed < l->n) {
        int rows = 0;
        const int n = piece(l, worker, sink);
        const float *next = l->frames + (size_t)l->fed * (size_t)l->r->model->config.mel_bins;
        status = lin_stream_feed(l->stream, worker, next, n, l->logp, l->rows, &rows, err);
        l->fed += n;
        if (status == LIN_OK) status = give(l, rows, sink, err);
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

lin_status lin_lane_feed_last(lin_lane *l, lin_worker *worker, const float *frames, int n, const lin_lane_sink *sink,
                              lin_error *err)
{
    const size_t D = (size_t)l->r->model->config.mel_bins;
    if (n > l->capacity - l->n) return lin_lane_feed(l, worker, frames, n, sink, err);
    memcpy(l->frames + (size_t)l->n * D, frames, (size_t)n * D * sizeof *frames);
    l->n += n;
    return LIN_OK;
}

lin_status lin_lane_finish(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    const size_t D = (size_t)l->r->model->config.mel_bins;
    lin_status status = LIN_OK;
    // An endpoint on the way resets the network, which then finishes once more.
    while (status == LIN_OK && l->n > 0) {
        int rows = 0;
        if (piece(l, worker, sink) < l->n - l->fed) status = advance(l, worker, sink, err);
        if (status != LIN_OK || l->n == 0) break;
        const float *next = l->frames + (size_t)l->fed * D;
        status = lin_stream_feed_last(l->stream, worker, next, l->n - l->fed, l->logp, l->rows, &rows, err);
        l->fed = l->n;
        if (status == LIN_OK) status = give(l, rows, sink, err);
    }
    return status;
}

lin_status lin_lane_reset_network(lin_lane *l, lin_worker *worker, const lin_lane_sink *sink, lin_error *err)
{
    drop(l, 0, 1);
    return advance(l, worker, sink, err);
}

lin_status lin_lane_save(const lin_lane *l, lin_utterances *u, lin_state *state, int i, lin_error *err)
{
    lin_status status = lin_stream_save(l->stream, lin_state_image(state, i), state->sizes.image, err);
    memcpy(lin_state_decoder(state, i), lin_utterances_decoder(u), state->sizes.decoder);
    lin_state_put_endpoint(state, i, lin_utterances_endpoint(u));
    return status;
}

lin_status lin_lane_load(lin_lane *l, lin_utterances *u, const lin_state *state, int i, const lin_reset_options *ends,
                         lin_error *err)
{
    const lin_state_about *about = &state->about;
    lin_endpoint endpoint = *lin_utterances_endpoint(u);
    lin_status status = lin_stream_load(l->stream, lin_state_image(state, i), state->sizes.image, err);
    if (status == LIN_OK) status = lin_state_get_decoder(state, i, lin_utterances_search(u), lin_utterances_decoder(u), err);
    if (status == LIN_OK && ends) status = lin_state_get_endpoint(state, i, ends, &endpoint, err);
    if (status == LIN_OK) status = lin_lane_go_on(l, about->frames, about->rows, about->resets, err);
    if (status == LIN_OK) lin_utterances_go_on(u, about->rows, &endpoint);
    return status;
}
