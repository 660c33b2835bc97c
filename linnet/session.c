// session.c - one stream: sound in, results out; see session.h.

#include "linnet/session.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "linnet/lane.h"

enum { BLOCK = 1024 }; // samples that the front end takes at a time

struct lin_session {
    const lin_recognizer *r;
    lin_session_options options;
    lin_session_sink sink;
    lin_worker *worker, *own_worker; // own_worker: NULL where one was given
    lin_extractor *features;         // NULL: only frames are pushed
    float *frames;                   // [capacity, D]
    int capacity;
    lin_lane *lane;
    lin_utterances *utterances;
    lin_lane_sink rows;
    int64_t samples; // of every channel, taken in
    int64_t given;   // frames that the front end has given
    int finished;
};

lin_session_options lin_session_options_default(void)
{
    return (lin_session_options){.channel = LIN_CHANNEL_MIX, .resets = 1, .rules = lin_endpoint_default(), .threads = 1};
}

lin_session_delay lin_session_construction(const lin_recognizer *r)
{
    const double hop_s = r->model->features.hop_ms * 1e-3, window_s = r->model->features.window_ms * 1e-3;
    lin_session_delay d = {.step_s = r->model->config.stack * hop_s,
                           .ahead_s = r->model->config.ahead * hop_s,
                           .window_s = window_s > hop_s ? window_s - hop_s : 0};
    d.total_s = d.step_s + d.ahead_s + d.window_s;
    return d;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------- */

static lin_status open_features(lin_session *s, lin_error *err)
{
    lin_feature_options o = lin_feature_options_default();
    o.fbank = s->r->fbank;
    o.channel = s->options.channel;
    if (o.channel == LIN_CHANNEL_EACH) return lin_fail(err, LIN_INVALID, "a session has one channel: a mix or one of them");
    lin_status status = lin_extractor_create(s->options.rate_hz, s->options.channels, &o, &s->features, err);
    if (status == LIN_OK && s->options.saves) status = lin_extractor_keep_past(s->features, err);
    if (status != LIN_OK) return status;
    // And what the extractor will hold by then: a window, and of low rates a good part of a second in the resampler.
    s->capacity = lin_extractor_most_out(s->features, 2 * BLOCK + s->options.rate_hz);
    const size_t count = (size_t)s->capacity * (size_t)o.fbank.mel_bins + 1;
    s->frames = lin_alloc(count, sizeof *s->frames);
    return s->frames ? LIN_OK : lin_no_memory(err, "features", count * sizeof *s->frames);
}

lin_status lin_session_create(const lin_recognizer *recognizer, const lin_session_options *options, const lin_session_sink *sink,
                              lin_session **session, lin_error *err)
{
    *session = NULL;
    lin_session *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    s->r = recognizer;
    s->options = *options;
    s->worker = options->worker;
    if (sink) s->sink = *sink;
    const lin_utterances_options how = {.decoding = options->decoding,
                                        .ends = {.endpoints = 1,
                                                 .rules = options->rules,
                                                 .resets = options->resets,
                                                 .from_s = options->from_s}};
    const lin_utterances_sink to = {.context = s->sink.context, .show = s->sink.show};
    lin_status status = lin_utterances_create(recognizer, &how, &to, &s->utterances, err);
    if (status == LIN_OK) status = lin_lane_create(recognizer, &s->lane, err);
    if (status == LIN_OK && !s->worker) {
        status = lin_worker_create(recognizer->encoder, options->threads, &s->own_worker, err);
        s->worker = s->own_worker;
    }
    if (status == LIN_OK && options->rate_hz) status = open_features(s, err);
    if (status != LIN_OK) {
        lin_session_destroy(s);
        return status;
    }
    s->rows = lin_lane_to(s->utterances);
    lin_lane_begin(s->lane);
    *session = s;
    return LIN_OK;
}

void lin_session_destroy(lin_session *s)
{
    if (!s) return;
    lin_utterances_destroy(s->utterances);
    lin_lane_destroy(s->lane);
    if (s->own_worker) lin_worker_destroy(s->own_worker);
    lin_extractor_destroy(s->features);
    lin_free(s->frames);
    lin_free(s);
}

lin_status lin_session_reset(lin_session *s, lin_error *err)
{
    s->samples = s->given = 0;
    s->finished = 0;
    lin_utterances_begin(s->utterances, NULL);
    lin_lane_begin(s->lane);
    return s->features ? lin_extractor_reset(s->features, err) : LIN_OK;
}

double lin_session_seconds(const lin_session *s)
{
    const double hop_s = s->r->model->features.hop_ms * 1e-3;
    return s->features ? (double)s->samples / s->options.rate_hz : (double)lin_lane_frames(s->lane) * hop_s;
}

/* ---- sound ------------------------------------------------------------------------------------------------------------------ */

static lin_status feed(lin_session *s, const float *frames, int n, lin_error *err)
{
    s->given += n;
    return lin_lane_feed(s->lane, s->worker, frames, n, &s->rows, err);
}

static lin_status check_open(const lin_session *s, int takes, int n, lin_error *err)
{
    if (!takes) return lin_fail(err, LIN_INVALID, "this session takes %s", s->features ? "sound, not frames" : "frames, not sound");
    if (n < 0) return lin_fail(err, LIN_INVALID, "%d samples or frames cannot be pushed", n);
    return s->finished ? lin_fail(err, LIN_INVALID, "the session is finished; reset it first") : LIN_OK;
}

lin_status lin_session_push(lin_session *s, const float *samples, int n, lin_error *err)
{
    const size_t channels = (size_t)s->options.channels;
    lin_status status = check_open(s, s->features != NULL, n, err);
    if (status == LIN_OK && n > BLOCK) { // the front end looks at a block before it takes it
        const size_t count = (size_t)n * channels, bad = lin_audio_find_bad(samples, count);
        if (bad < count)
            status = lin_fail(err, LIN_NUMERIC, "sample %zu of channel %zu is %g, which is not finite", bad / channels,
                              bad % channels + 1, (double)samples[bad]);
    }
    for (int at = 0; at < n && status == LIN_OK; at += BLOCK) {
        const int block = n - at < BLOCK ? n - at : BLOCK;
        int n_frames;
        status = lin_extractor_push(s->features, samples + (size_t)at * channels, block, s->frames, s->capacity, &n_frames, err);
        if (status != LIN_OK) break;
        s->samples += block;
        status = feed(s, s->frames, n_frames, err);
    }
    return status == LIN_OK ? lin_utterances_show(s->utterances, err) : status;
}

lin_status lin_session_push_frames(lin_session *s, const float *frames, int n, lin_error *err)
{
    lin_status status = check_open(s, s->features == NULL, n, err);
    if (status == LIN_OK) status = feed(s, frames, n, err);
    return status == LIN_OK ? lin_utterances_show(s->utterances, err) : status;
}

lin_status lin_session_end_utterance(lin_session *s, lin_error *err)
{
    lin_status status = check_open(s, 1, 0, err);
    if (status == LIN_OK) status = lin_utterances_end(s->utterances, err);
    if (status != LIN_OK || !s->options.resets) return status;
    return lin_lane_reset_network(s->lane, s->worker, &s->rows, err);
}

lin_status lin_session_finish(lin_session *s, lin_error *err)
{
    int n_frames = 0;
    lin_status status = check_open(s, 1, 0, err);
    if (status != LIN_OK) return status;
    s->finished = 1;
    if (s->features) status = lin_extractor_finish(s->features, s->frames, s->capacity, &n_frames, err);
    if (status == LIN_OK && n_frames) status = feed(s, s->frames, n_frames, err);
    if (status == LIN_OK && n_frames) status = lin_utterances_show(s->utterances, err);
    if (status == LIN_OK) status = lin_lane_finish(s->lane, s->worker, &s->rows, err);
    return status == LIN_OK ? lin_utterances_finish(s->utterances, err) : status;
}

/* ---- saved, loaded, forked -------------------------------------------------------------------------------------------------- */

// The front end's part is that of a source (frontend/source.h) of which all frames were read: how many wait, and were given.
typedef struct front_counts {
    int64_t waiting, given;
} front_counts;

// Endpoints that do not reset the network are those that reset it never.
static double resets_from(const lin_session *s) { return s->options.resets ? s->options.from_s : INFINITY; }

static lin_status check_savable(const lin_session *s, lin_error *err)
{
    if (!s->features) return lin_fail(err, LIN_INVALID, "a session of frames cannot be saved");
    if (!s->options.saves) return lin_fail(err, LIN_INVALID, "this session was not created to be saved");
    if (s->finished) return lin_fail(err, LIN_INVALID, "a finished session cannot be saved");
    return LIN_OK;
}

lin_status lin_session_save(lin_session *s, lin_state *state, lin_error *err)
{
    lin_status status = check_savable(s, err);
    if (status != LIN_OK) return status;
    if (s->options.decoding && s->options.decoding->n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "alternatives cover a whole utterance: a session with them cannot be saved");
    const lin_search *search = lin_utterances_search(s->utterances);
    const lin_state_about about = {.model = s->r->model->fingerprint,
                                   .rate_hz = s->options.rate_hz,
                                   .channels = s->options.channels,
                                   .channel = s->options.channel,
                                   .lanes = 1,
                                   .samples = s->samples,
                                   .frames = lin_lane_frames(s->lane),
                                   .rows = lin_lane_rows(s->lane),
                                   .row_seconds = s->r->row_seconds,
                                   .past = 1,
                                   .last = lin_state_sound(NULL, 0),
                                   .kind = search->kind,
                                   .search = search->id,
                                   .resets = 1,
                                   .resets_from_s = resets_from(s)};
    const lin_state_sizes sizes = {.front = sizeof(front_counts) + lin_extractor_state_bytes(s->features, 1),
                                   .decoder = lin_search_bytes(search),
                                   .image = lin_stream_image_bytes(lin_lane_stream(s->lane))};
    status = lin_state_begin(state, &about, &sizes, err);
    if (status != LIN_OK) return status;
    const front_counts counts = {0, s->given};
    unsigned char *front = lin_state_front(state);
    memcpy(front, &counts, sizeof counts);
    status = lin_extractor_save(s->features, 1, front + sizeof counts, err);
    return status == LIN_OK ? lin_lane_save(s->lane, s->utterances, state, 0, err) : status;
}

static lin_status check_fit(const lin_session *s, const lin_state_about *about, lin_error *err)
{
    if (s->options.decoding && s->options.decoding->n_best > 1)
        return lin_fail(err, LIN_UNSUPPORTED, "alternatives cover a whole utterance: a session with them cannot be loaded");
    if (about->model != s->r->model->fingerprint)
        return lin_fail(err, LIN_MISMATCH, "the state belongs to another model (%016llx); this one is %016llx",
                        (unsigned long long)about->model, (unsigned long long)s->r->model->fingerprint);
    if (about->rate_hz != s->options.rate_hz || about->channel != s->options.channel || about->lanes != 1 ||
        (about->channel != LIN_CHANNEL_MIX && about->channels != s->options.channels))
        return lin_fail(err, LIN_MISMATCH, "the state is of other sound: %d Hz, %d channels; the session is of %d Hz, %d channels",
                        about->rate_hz, about->channels, s->options.rate_hz, s->options.channels);
    if (!about->past) return lin_fail(err, LIN_UNSUPPORTED, "a snapshot needs the sound before it; load a saved state");
    return LIN_OK;
}

// The front end; frames that it had given and that wait, as a source leaves them.
static lin_status load_front(lin_session *s, const lin_state *state, front_counts *counts, lin_error *err)
{
    const unsigned char *from = lin_state_front(state);
    const size_t n = state->sizes.front, frame = (size_t)s->r->fbank.mel_bins * sizeof(float);
    *counts = (front_counts){-1, -1};
    if (n >= sizeof *counts) memcpy(counts, from, sizeof *counts);
    if (counts->waiting < 0 || counts->given < 0 || counts->waiting > s->capacity ||
        n - sizeof *counts < (size_t)counts->waiting * frame)
        return lin_fail(err, LIN_FORMAT, "the state of the front end is truncated");
    const size_t used = sizeof *counts + (size_t)counts->waiting * frame;
    if (counts->waiting) memcpy(s->frames, from + sizeof *counts, (size_t)counts->waiting * frame);
    return lin_extractor_load(s->features, from + used, n - used, err);
}

static lin_status load(lin_session *s, const lin_state *state, lin_error *err)
{
    front_counts counts;
    const lin_state_about *about = &state->about;
    const lin_reset_options how = {.endpoints = 1, .rules = s->options.rules, .resets = 1, .from_s = resets_from(s)};
    const int has_endpoint = about->resets || s->options.resets;
    lin_status status = check_fit(s, about, err);
    if (status == LIN_OK) status = load_front(s, state, &counts, err);
    if (status == LIN_OK) status = lin_lane_load(s->lane, s->utterances, state, 0, has_endpoint ? &how : NULL, err);
    if (status != LIN_OK) return status;
    s->samples = about->samples;
    s->given = counts.given;
    return lin_lane_feed(s->lane, s->worker, s->frames, (int)counts.waiting, &s->rows, err);
}

lin_status lin_session_load(lin_session *s, const lin_state *state, lin_error *err)
{
    if (!s->features) return lin_fail(err, LIN_INVALID, "a session of frames cannot be loaded");
    lin_status status = lin_session_reset(s, err);
    if (status == LIN_OK) status = load(s, state, err);
    if (status != LIN_OK) lin_session_reset(s, NULL);
    return status;
}

static lin_status copy_features(lin_session *to, const lin_session *from, lin_error *err)
{
    const size_t n = lin_extractor_state_bytes(from->features, 1);
    void *bytes = lin_alloc(n, 1);
    if (!bytes) return lin_no_memory(err, "a session", n);
    lin_status status = lin_extractor_save(from->features, 1, bytes, err);
    if (status == LIN_OK) status = lin_extractor_load(to->features, bytes, n, err);
    lin_free(bytes);
    return status;
}

static lin_status copy_stream(lin_session *to, const lin_session *from, lin_error *err)
{
    const size_t n = lin_stream_image_bytes(lin_lane_stream(from->lane));
    void *image = lin_alloc(n, 1);
    if (!image) return lin_no_memory(err, "a session", n);
    lin_status status = lin_stream_save(lin_lane_stream(from->lane), image, n, err);
    if (status == LIN_OK) status = lin_stream_load(lin_lane_stream(to->lane), image, n, err);
    lin_free(image);
    return status == LIN_OK ? lin_lane_go_on(to->lane, lin_lane_frames(from->lane), lin_lane_rows(from->lane), 1, err) : status;
}

lin_status lin_session_fork(lin_session *s, const lin_session_sink *sink, lin_session **copy, lin_error *err)
{
    *copy = NULL;
    lin_status status = s->features ? check_savable(s, err) : check_open(s, 1, 0, err);
    if (status != LIN_OK) return status;
    status = lin_session_create(s->r, &s->options, sink, copy, err);
    if (status != LIN_OK) return status;
    if (s->features) status = copy_features(*copy, s, err);
    if (status == LIN_OK) status = copy_stream(*copy, s, err);
    if (status == LIN_OK) status = lin_utterances_copy((*copy)->utterances, s->utterances, err);
    if (status != LIN_OK) {
        lin_session_destroy(*copy);
        *copy = NULL;
        return status;
    }
    (*copy)->samples = s->samples;
    (*copy)->given = s->given;
    return LIN_OK;
}

void lin_session_decode_by(lin_session *s, const lin_decoding *decoding)
{
    s->options.decoding = decoding;
    lin_utterances_decode_by(s->utterances, decoding);
}
