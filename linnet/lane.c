// lane.c - one lane of sound through the network; see lane.h.

#include "linnet/lane.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/fbank.h"
#include "linnet/recognizer.h"

// Frames given to the network at once, and rows where it may have to begin anew: those behind an endpoint are computed in vain.
// Several threads share them in chunks, two each.
enum { MOST_FRAMES = 576, RESET_ROWS = 64, RESET_ROWS_EACH = 48 };

struct lin_lane {
    const lin_recognizer *r;
    lin_stream *stream; // NULL: the network is elsewhere
    int apart, hop;     // hop: 0: units are frames
    int width, per_row; // floats of a unit; units of a row
    // Units of rows that were not taken yet; of these the network has `fed`. A reset gives them to it once more.
    float *units; // [capacity, width]
    int n, fed, capacity;
    float *logp; // [rows, V]; NULL: the network is elsewhere
    double *db;  // [rows] their loudness
    int rows;
    int64_t row; // the next, since the beginning
};

lin_status lin_lane_reserve(lin_lane *l, int units, lin_error *err)
{
    if (units <= l->capacity) return LIN_OK;
    const int rows = units / l->per_row + 1;
    float *kept = lin_resize(l->units, (size_t)units * (size_t)l->width, sizeof *l->units);
    if (kept) l->units = kept;
    double *db = kept ? lin_resize(l->db, (size_t)rows, sizeof *l->db) : NULL;
    if (!db) return lin_no_memory(err, "a lane", (size_t)units * (size_t)l->width * sizeof *l->units);
    l->db = db;
    l->rows = rows;
    l->capacity = units;
    return LIN_OK;
}

static lin_status create(const lin_recognizer *r, int units, int hop, lin_lane **lane, lin_error *err)
{
    lin_lane *l = *lane = lin_calloc(1, sizeof *l);
    if (!l) return lin_no_memory(err, "a lane", sizeof *l);
    const lin_config *c = &r->model->config;
    l->r = r;
    l->hop = hop;
    l->width = hop ? 1 : c->mel_bins;
    l->per_row = hop ? c->stack * hop : c->stack;
    return lin_lane_reserve(l, units, err);
}

static lin_status destroy_unless(lin_status status, lin_lane **lane)
{
    if (status == LIN_OK) return LIN_OK;
    lin_lane_destroy(*lane);
    *lane = NULL;
    return status;
}

lin_status lin_lane_create(const lin_recognizer *r, lin_lane **lane, lin_error *err)
{
    const lin_config *c = &r->model->config;
    lin_status status = create(r, c->stack + c->ahead + MOST_FRAMES, 0, lane, err);
    lin_lane *l = *lane;
    if (status == LIN_OK) l->logp = lin_alloc((size_t)l->rows * (size_t)r->V, sizeof *l->logp);
    if (status == LIN_OK && !l->logp) status = lin_no_memory(err, "a lane", (size_t)l->rows * (size_t)r->V * sizeof *l->logp);
    if (status == LIN_OK) status = lin_stream_create(r->encoder, &l->stream, err);
    return destroy_unless(status, lane);
}

lin_status lin_lane_create_apart(const lin_recognizer *r, int units, int hop, lin_lane **lane, lin_error *err)
{
    const lin_status status = create(r, units, hop, lane, err);
    if (*lane) (*lane)->apart = 1;
    return destroy_unless(status, lane);
}

void lin_lane_destroy(lin_lane *l)
{
    if (!l) return;
    if (!l->apart) lin_stream_destroy(l->stream);
    lin_free(l->units);
    lin_free(l->logp);
    lin_free(l->db);
    lin_free(l);
}

size_t lin_lane_bytes(const lin_lane *l)
{
    return sizeof *l + (size_t)l->capacity * (size_t)l->width * sizeof *l->units + (size_t)l->rows * sizeof *l->db;
}

void lin_lane_begin(lin_lane *l)
{
    if (l->stream) lin_stream_reset(l->stream);
    l->n = l->fed = 0;
    l->row = 0;
}

int64_t lin_lane_rows(const lin_lane *l) { return l->row; }

int64_t lin_lane_frames(const lin_lane *l) { return l->row * l->per_row + l->n; }

lin_stream *lin_lane_stream(const lin_lane *l) { return l->stream; }

void lin_lane_lend(lin_lane *l, lin_stream *stream) { l->stream = stream; }

/* ---- units ----------------------------------------------------------------------------------------------------------------- */

static float *unit(const lin_lane *l, int i) { return l->units + (size_t)i * (size_t)l->width; }

float *lin_lane_room(lin_lane *l, int *units)
{
    *units = l->capacity - l->n;
    return unit(l, l->n);
}

void lin_lane_add(lin_lane *l, int n) { l->n += n; }

int lin_lane_unfed(const lin_lane *l) { return l->n - l->fed; }

const float *lin_lane_waiting(const lin_lane *l) { return unit(l, l->fed); }

int lin_lane_kept(const lin_lane *l) { return l->n; }

const float *lin_lane_next(lin_lane *l, int most, int *n)
{
    const float *next = unit(l, l->fed);
    *n = l->n - l->fed < most ? l->n - l->fed : most;
    l->fed += *n;
    return next;
}

// Loudness of the rows to come; not of a last row that lacks frames.
static void measure(lin_lane *l, int rows)
{
    const int stack = l->r->model->config.stack, step = l->hop ? l->hop : 1;
    const int tail = l->hop ? lin_mel_samples(&l->r->fbank, l->r->fbank.window_ms) - l->hop : 0; // of a window, beyond its hop
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int f = i * stack; f < (i + 1) * stack && (f + 1) * step <= l->n; f++)
            sum = l->hop ? lin_loudness_sound(sum, unit(l, f * step), step) : lin_loudness_frame(sum, unit(l, f), l->width);
        l->db[i] = (i + 1) * l->per_row + tail <= l->n ? lin_loudness_db(sum) : NAN;
    }
}

// The units of rows that were taken go; after a reset the rest is new to the network.
static void drop(lin_lane *l, int rows, int reset)
{
    const int all = rows * l->per_row, taken = all < l->n ? all : l->n;
    memmove(l->units, unit(l, taken), (size_t)(l->n - taken) * (size_t)l->width * sizeof *l->units);
    l->n -= taken;
    l->fed = reset ? 0 : l->fed - taken;
    if (reset && l->stream) lin_stream_reset(l->stream);
}

void lin_lane_forget(lin_lane *l) { drop(l, 0, 1); }

void lin_lane_pass(lin_lane *l, int rows)
{
    l->row += rows;
    drop(l, rows, 0);
}

lin_status lin_lane_take(lin_lane *l, lin_utterances *u, const float *logp, int rows, int *taken, int *reset, lin_error *err)
{
    const int loudness = u->options.ends.endpoints;
    *taken = *reset = 0;
    if (rows == 0) return LIN_OK;
    if (loudness) measure(l, rows);
    if (!l->hop) lin_utterances_give_frames(u, l->units, l->n);
    lin_status status = lin_utterances_push(u, logp, rows, loudness ? l->db : NULL, taken, reset, err);
    l->row += *taken;
    drop(l, *taken, *reset);
    return status;
}

/* ---- a network of its own -------------------------------------------------------------------------------------------------- */

// Those behind a row that resets the network were computed with the old past: they come once more.
static lin_status give(lin_lane *l, int rows, lin_utterances *u, lin_error *err)
{
    int taken, reset;
    return lin_lane_take(l, u, l->logp, rows, &taken, &reset, err);
}

// Frames to give to the network next.
static int piece(const lin_lane *l, const lin_worker *worker, const lin_utterances *u)
{
    const int threads = lin_worker_threads(worker), rows = threads > 1 ? threads * RESET_ROWS_EACH : RESET_ROWS;
    const int n = l->n - l->fed, most = rows * l->per_row;
    return n > most && lin_utterances_may_reset(u, l->rows) ? most : n;
}

// As often as it is reset on the way.
lin_status lin_lane_advance(lin_lane *l, lin_worker *worker, lin_utterances *u, lin_error *err)
{
    lin_status status = LIN_OK;
    while (status == LIN_OK && l->fed < l->n) {
        int rows = 0, n;
        const float *next = lin_lane_next(l, piece(l, worker, u), &n);
        status = lin_stream_feed(l->stream, worker, next, n, l->logp, l->rows, &rows, err);
        if (status == LIN_OK) status = give(l, rows, u, err);
    }
    return status;
}

// As many as there is room for.
static int add(lin_lane *l, const float *frames, int n)
{
    int room;
    float *to = lin_lane_room(l, &room);
    if (n > room) n = room;
    memcpy(to, frames, (size_t)n * (size_t)l->width * sizeof *frames);
    l->n += n;
    return n;
}

lin_status lin_lane_feed(lin_lane *l, lin_worker *worker, const float *frames, int n, lin_utterances *u, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int done = 0; done < n && status == LIN_OK;) {
        done += add(l, frames + (size_t)done * (size_t)l->width, n - done);
        status = lin_lane_advance(l, worker, u, err);
    }
    return status;
}

lin_status lin_lane_feed_last(lin_lane *l, lin_worker *worker, const float *frames, int n, lin_utterances *u, lin_error *err)
{
    if (n > l->capacity - l->n) return lin_lane_feed(l, worker, frames, n, u, err);
    add(l, frames, n);
    return LIN_OK;
}

lin_status lin_lane_finish(lin_lane *l, lin_worker *worker, lin_utterances *u, lin_error *err)
{
    lin_status status = LIN_OK;
    // An endpoint on the way resets the network, which then finishes once more.
    while (status == LIN_OK && l->n > 0) {
        int rows = 0, n;
        if (piece(l, worker, u) < l->n - l->fed) status = lin_lane_advance(l, worker, u, err);
        if (status != LIN_OK || l->n == 0) break;
        const float *next = lin_lane_next(l, l->n, &n);
        status = lin_stream_feed_last(l->stream, worker, next, n, l->logp, l->rows, &rows, err);
        if (status == LIN_OK) status = give(l, rows, u, err);
    }
    return status;
}

/* ---- saved streams --------------------------------------------------------------------------------------------------------- */

lin_status lin_lane_save(const lin_lane *l, lin_utterances *u, lin_state *state, int i, lin_error *err)
{
    lin_status status = lin_stream_save(l->stream, lin_state_image(state, i), (size_t)state->sizes.image, err);
    lin_state_lane *lane = lin_state_lane_of(state, i);
    const size_t frames = lin_lane_frames_bytes(l, u);
    lane->first_row = lin_utterances_has_frames(u) ? u->first_row : -1;
    if (frames) memcpy(lin_state_frames(state, i), u->frames.data, frames);
    memcpy(lin_state_decoder(state, i), u->decoder.state, (size_t)state->sizes.decoder);
    lin_state_put_endpoint(state, i, &u->at.endpoint);
    lane->early = u->decoder.early;
    return status;
}

size_t lin_lane_frames_bytes(const lin_lane *l, const lin_utterances *u)
{
    return lin_utterances_has_frames(u) ? (size_t)u->frames.rows * (size_t)l->width * sizeof *u->frames.data : 0;
}

// Those of the utterance, for a second pass.
static lin_status load_frames(const lin_lane *l, lin_utterances *u, const lin_state *state, int i, lin_error *err)
{
    const size_t frame = (size_t)l->width * sizeof(float), bytes = (size_t)state->sizes.frames;
    const int64_t first = lin_state_lane_of(state, i)->first_row;
    if (first == -1) return LIN_OK;
    if (bytes % frame) return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    return lin_utterances_set_frames(u, lin_state_frames(state, i), (int64_t)(bytes / frame), first, err);
}

// With the network's stream, which was loaded, behind so many frames and rows; was_reset: the network may have been reset since
// the stream began.
static lin_status go_on(lin_lane *l, int64_t frames, int64_t rows, int was_reset, lin_error *err)
{
    const lin_config *c = &l->r->model->config;
    const float *waiting = lin_stream_waiting(l->stream, &l->n);
    const int64_t before = frames - lin_stream_frames_in(l->stream); // the last reset, a whole number of rows
    if (before < 0 || before % c->stack || rows * c->stack + l->n != frames || (before && !was_reset))
        return lin_fail(err, LIN_FORMAT, "its parts contradict each other");
    memcpy(l->units, waiting, (size_t)l->n * (size_t)c->mel_bins * sizeof *waiting);
    l->fed = l->n;
    l->row = rows;
    return LIN_OK;
}

lin_status lin_lane_load(lin_lane *l, lin_utterances *u, const lin_state *state, int i, const lin_reset_options *ends,
                         lin_error *err)
{
    const lin_state_about *about = &state->about;
    lin_endpoint endpoint = u->at.endpoint;
    lin_status status = lin_stream_load(l->stream, lin_state_image(state, i), (size_t)state->sizes.image, err);
    if (status == LIN_OK) status = lin_state_get_decoder(state, i, &u->decoder.decoding->search, u->decoder.state, err);
    if (status == LIN_OK && ends) status = lin_state_get_endpoint(state, i, ends, &endpoint, err);
    if (status == LIN_OK) status = go_on(l, about->frames, about->rows, about->resets, err);
    if (status != LIN_OK) return status;
    lin_utterances_go_on(u, about->rows, lin_state_lane_of(state, i)->early != 0, &endpoint);
    return load_frames(l, u, state, i, err);
}
