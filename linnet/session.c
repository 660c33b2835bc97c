// session.c - one stream: sound in, results out; see session.h.

#include "linnet/session.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/fbank.h"
#include "linnet/session_internal.h"

enum { BLOCK = 1024 }; // samples that the front end takes at a time

lin_session_options lin_session_options_default(void)
{
    return (lin_session_options){
        .channel = LIN_CHANNEL_MIX, .endpoints = 1, .resets = 1, .rules = lin_endpoint_default(), .threads = 1};
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

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

// Samples of the network's rate between two frames.
static int hop_of(const lin_session *s) { return lin_mel_samples(&s->r->fbank, s->r->fbank.hop_ms); }

lin_status lin_session_tune(lin_session *s, int rate_hz, int saves, lin_error *err)
{
    lin_feature_options o = lin_feature_options_default();
    const int apart = s->options.apart, unit = s->options.takes_sound ? hop_of(s) : 1;
    const int window = s->options.takes_sound ? lin_mel_samples(&s->r->fbank, s->r->fbank.window_ms) : 0;
    o.fbank = s->r->fbank;
    o.channel = s->options.channel;
    o.sound = s->options.takes_sound;
    o.beside = s->options.beside;
    lin_extractor_destroy(s->features);
    s->features = NULL;
    s->options.rate_hz = rate_hz;
    s->options.saves = saves;
    if (o.channel == LIN_CHANNEL_EACH) return lin_fail(err, LIN_INVALID, "a session has one channel: a mix or one of them");
    lin_status status = lin_extractor_create(rate_hz, s->options.channels, &o, &s->features, err);
    if (status == LIN_OK && saves) status = lin_extractor_keep_past(s->features, err);
    s->enough = apart ? apart * unit : 1;
    s->piece = apart ? (int)ceil((double)apart * hop_of(s) * rate_hz / o.fbank.sample_hz) : BLOCK;
    if (status != LIN_OK || !apart) return status;
    // Of rows that are not out yet, what is enough for a while, and what comes at once: of a resampler up to a second.
    const int burst = lin_extractor_most_out(s->features, s->piece + (rate_hz == o.fbank.sample_hz ? 0 : rate_hz));
    const lin_config *c = &s->r->model->config;
    return lin_lane_reserve(s->lane, (c->stack + c->ahead + 2 * apart + 2) * unit + window + burst, err);
}

lin_status lin_session_create(const lin_recognizer *recognizer, const lin_session_options *options,
                              const lin_utterances_sink *sink, lin_session **session, lin_error *err)
{
    *session = NULL;
    lin_session *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a session", sizeof *s);
    s->r = recognizer;
    s->options = *options;
    lin_utterances_options how = {.decoding = options->decoding,
                                  .ends = {.endpoints = options->endpoints, .rules = options->rules, .resets = options->resets}};
    lin_status status = LIN_OK;
    if (options->second && !options->pass)
        status = lin_second_pass_create(recognizer, options->second, options->decoding, options->threads, &s->second, err);
    how.second = options->pass ? options->pass : s->second;
    if (status == LIN_OK) status = lin_utterances_open(&s->utterances, recognizer, &how, sink, err);
    if (status == LIN_OK)
        status = options->apart ? lin_lane_create_apart(recognizer, 1, options->takes_sound ? hop_of(s) : 0, &s->lane, err)
                                : lin_lane_create(recognizer, &s->lane, err);
    if (status == LIN_OK && !options->apart)
        status = lin_worker_create(recognizer->encoder, options->threads, &s->worker, err);
    if (s->worker) lin_worker_search(s->worker, options->decoding && options->decoding->language);
    if (status == LIN_OK) status = lin_session_tune(s, options->rate_hz, options->saves, err);
    if (status != LIN_OK) {
        lin_session_destroy(s);
        return status;
    }
    lin_lane_begin(s->lane);
    *session = s;
    return LIN_OK;
}

void lin_session_destroy(lin_session *s)
{
    if (!s) return;
    lin_utterances_close(&s->utterances);
    lin_lane_destroy(s->lane);
    if (s->worker) lin_worker_destroy(s->worker);
    lin_second_pass_destroy(s->second);
    lin_extractor_destroy(s->features);
    lin_free(s);
}

lin_status lin_session_reset(lin_session *s, lin_error *err)
{
    s->samples = s->given = 0;
    s->finished = 0;
    lin_utterances_begin(&s->utterances, NULL);
    lin_lane_begin(s->lane);
    return lin_extractor_reset(s->features, err);
}

double lin_session_seconds(const lin_session *s) { return (double)s->samples / s->options.rate_hz; }

/* ---- sound ----------------------------------------------------------------------------------------------------------------- */

lin_status lin_session_hear(lin_session *s, const float *samples, int n, int *taken, lin_error *err)
{
    lin_status status = LIN_OK;
    for (*taken = 0; status == LIN_OK && *taken < n && lin_lane_unfed(s->lane) < s->enough;) {
        int piece = n - *taken < s->piece ? n - *taken : s->piece, room, given;
        float *to = lin_lane_room(s->lane, &room);
        while (piece && lin_extractor_most_out(s->features, piece) > room) piece /= 2;
        if (!piece) break; // until rows are out
        const float *next = samples + (size_t)*taken * (size_t)s->options.channels;
        status = lin_extractor_push(s->features, next, piece, to, room, &given, err);
        if (status != LIN_OK) break;
        lin_lane_add(s->lane, given);
        *taken += piece;
        s->samples += piece;
        s->given += given;
    }
    return status;
}

lin_status lin_session_hear_end(lin_session *s, lin_error *err)
{
    int room, given;
    float *to = lin_lane_room(s->lane, &room);
    if (lin_extractor_most_out(s->features, 0) > room) return LIN_OK;
    lin_status status = lin_extractor_finish(s->features, to, room, &given, err);
    if (status != LIN_OK) return status;
    s->finished = 1;
    lin_lane_add(s->lane, given);
    return LIN_OK;
}

// What the network has not been given.
static lin_status advance(lin_session *s, lin_error *err) { return lin_lane_advance(s->lane, s->worker, &s->utterances, err); }

static lin_status check_open(const lin_session *s, int n, lin_error *err)
{
    if (n < 0) return lin_fail(err, LIN_INVALID, "%d samples cannot be pushed", n);
    return s->finished ? lin_fail(err, LIN_INVALID, "the session is finished; reset it first") : LIN_OK;
}

lin_status lin_session_push(lin_session *s, const float *samples, int n, lin_error *err)
{
    const size_t channels = (size_t)s->options.channels;
    lin_status status = check_open(s, n, err);
    if (status == LIN_OK && n > BLOCK) { // the front end looks at a block before it takes it
        const size_t count = (size_t)n * channels, bad = lin_audio_find_bad(samples, count);
        if (bad < count)
            status = lin_fail(err, LIN_NUMERIC, "sample %zu of channel %zu is %g, which is not finite", bad / channels,
                              bad % channels + 1, (double)samples[bad]);
    }
    for (int done = 0, taken; done < n && status == LIN_OK; done += taken) {
        status = lin_session_hear(s, samples + (size_t)done * channels, n - done, &taken, err);
        if (status == LIN_OK) status = advance(s, err);
    }
    return status == LIN_OK ? lin_utterances_show(&s->utterances, err) : status;
}

lin_status lin_session_end_utterance(lin_session *s, lin_error *err)
{
    lin_status status = check_open(s, 0, err);
    if (status == LIN_OK) status = lin_utterances_end(&s->utterances, err);
    if (status != LIN_OK || !s->options.resets) return status;
    lin_lane_forget(s->lane);
    return advance(s, err);
}

lin_status lin_session_finish(lin_session *s, lin_error *err)
{
    lin_status status = check_open(s, 0, err);
    if (status == LIN_OK) status = lin_session_hear_end(s, err);
    if (status != LIN_OK) return status;
    if (lin_lane_unfed(s->lane)) {
        status = advance(s, err);
        if (status == LIN_OK) status = lin_utterances_show(&s->utterances, err);
    }
    if (status == LIN_OK) status = lin_lane_finish(s->lane, s->worker, &s->utterances, err);
    return status == LIN_OK ? lin_utterances_finish(&s->utterances, err) : status;
}

/* ---- saved, loaded, forked ------------------------------------------------------------------------------------------------- */

// The front end's part is that of a source (frontend/source.h) of which all frames were read: how many wait, and were given.
typedef struct front_counts {
    int64_t waiting, given;
} front_counts;

// Endpoints that do not reset the network are those that reset it never.
static double resets_from(const lin_session *s) { return s->options.resets ? 0 : INFINITY; }

static lin_status check_savable(const lin_session *s, lin_error *err)
{
    if (!s->options.saves) return lin_fail(err, LIN_INVALID, "this session was not created to be saved");
    if (s->finished) return lin_fail(err, LIN_INVALID, "a finished session cannot be saved");
    return LIN_OK;
}

static lin_status save(lin_session *s, lin_state *state, lin_error *err)
{
    lin_status status = check_savable(s, err);
    if (status != LIN_OK) return status;
    const lin_search *search = &s->utterances.decoder.decoding->search;
    const int waiting = lin_lane_unfed(s->lane); // apart: frames that the network is given later
    const size_t frames = (size_t)waiting * (size_t)s->r->fbank.mel_bins * sizeof(float);
    const lin_state_about about = {.model = s->r->model->fingerprint,
                                   .rate_hz = s->options.rate_hz,
                                   .channels = s->options.channels,
                                   .channel = s->options.channel,
                                   .lanes = 1,
                                   .samples = s->samples,
                                   .frames = lin_lane_frames(s->lane) - waiting,
                                   .rows = lin_lane_rows(s->lane),
                                   .row_seconds = s->r->row_seconds,
                                   .kind = (int32_t)search->kind,
                                   .search = search->id,
                                   .resets = 1,
                                   .resets_from_s = resets_from(s),
                                   .rules = s->options.rules};
    const lin_state_sizes sizes = {.front = sizeof(front_counts) + frames + lin_extractor_state_bytes(s->features),
                                   .decoder = lin_search_bytes(search),
                                   .image = lin_stream_image_bytes(lin_lane_stream(s->lane)),
                                   .frames = lin_lane_frames_bytes(s->lane, &s->utterances)};
    status = lin_state_begin(state, &about, &sizes, err);
    if (status != LIN_OK) return status;
    const front_counts counts = {waiting, s->given - waiting};
    unsigned char *front = lin_state_front(state);
    memcpy(front, &counts, sizeof counts);
    memcpy(front + sizeof counts, lin_lane_waiting(s->lane), frames);
    status = lin_extractor_save(s->features, front + sizeof counts + frames, err);
    return status == LIN_OK ? lin_lane_save(s->lane, &s->utterances, state, 0, err) : status;
}

// Alternatives are given when their whole utterance has ended: a state has not what they need of its beginning.
static lin_status check_alternatives(const lin_session *s, const char *what, lin_error *err)
{
    if (!s->options.decoding || s->options.decoding->n_best <= 1) return LIN_OK;
    return lin_fail(err, LIN_UNSUPPORTED, "alternatives cover a whole utterance: a session with them cannot be %s", what);
}

lin_status lin_session_save(lin_session *s, lin_state *state, lin_error *err)
{
    const lin_status status = check_alternatives(s, "saved", err);
    return status == LIN_OK ? save(s, state, err) : status;
}

static lin_status check_fit(const lin_session *s, const lin_state_about *about, lin_error *err)
{
    if (about->model != s->r->model->fingerprint)
        return lin_fail(err, LIN_MISMATCH, "the state belongs to another model (%016llx); this one is %016llx",
                        (unsigned long long)about->model, (unsigned long long)s->r->model->fingerprint);
    if (about->rate_hz != s->options.rate_hz || about->channel != s->options.channel || about->lanes != 1 ||
        (about->channel != LIN_CHANNEL_MIX && about->channels != s->options.channels))
        return lin_fail(err, LIN_MISMATCH,
                        "the state is of other sound: %d Hz, %d channels; the session is of %d Hz, %d channels",
                        about->rate_hz, about->channels, s->options.rate_hz, s->options.channels);
    return LIN_OK;
}

// The front end; frames that it had given and that wait, as a source leaves them.
static lin_status load_front(lin_session *s, const lin_state *state, front_counts *counts, const float **waiting, lin_error *err)
{
    const unsigned char *from = lin_state_front(state);
    const size_t n = (size_t)state->sizes.front, frame = (size_t)s->r->fbank.mel_bins * sizeof(float);
    *counts = (front_counts){-1, -1};
    if (n >= sizeof *counts) memcpy(counts, from, sizeof *counts);
    if (counts->waiting < 0 || counts->given < 0 || (uint64_t)counts->waiting > (n - sizeof *counts) / frame)
        return lin_fail(err, LIN_FORMAT, "the state of the front end is truncated");
    const size_t used = sizeof *counts + (size_t)counts->waiting * frame;
    *waiting = (const float *)(const void *)(from + sizeof *counts);
    return lin_extractor_load(s->features, from + used, n - used, err);
}

static lin_status load(lin_session *s, const lin_state *state, lin_error *err)
{
    front_counts counts;
    const float *waiting = NULL;
    const lin_state_about *about = &state->about;
    const lin_reset_options how = {.endpoints = 1, .rules = s->options.rules, .resets = 1, .from_s = resets_from(s)};
    const int has_endpoint = about->resets || s->options.resets;
    lin_status status = check_fit(s, about, err);
    if (status == LIN_OK) status = load_front(s, state, &counts, &waiting, err);
    if (status == LIN_OK) status = lin_lane_load(s->lane, &s->utterances, state, 0, has_endpoint ? &how : NULL, err);
    if (status != LIN_OK) return status;
    s->samples = about->samples;
    const int n = (int)counts.waiting;
    s->given = counts.given + n;
    if (!s->options.apart) return lin_lane_feed(s->lane, s->worker, waiting, n, &s->utterances, err);
    status = lin_lane_reserve(s->lane, lin_lane_kept(s->lane) + n + s->enough, err);
    if (status != LIN_OK || n == 0) return status;
    int room;
    memcpy(lin_lane_room(s->lane, &room), waiting, (size_t)n * (size_t)s->r->fbank.mel_bins * sizeof *waiting);
    lin_lane_add(s->lane, n);
    return LIN_OK;
}

lin_status lin_session_load(lin_session *s, const lin_state *state, lin_error *err)
{
    lin_status status = lin_session_reset(s, err);
    if (status == LIN_OK) status = check_alternatives(s, "loaded", err);
    if (status == LIN_OK) status = load(s, state, err);
    if (status != LIN_OK) lin_session_reset(s, NULL);
    return status;
}

lin_status lin_session_fork(lin_session *s, const lin_utterances_sink *sink, lin_session **copy, lin_error *err)
{
    lin_state state = {0};
    *copy = NULL;
    lin_status status = save(s, &state, err);
    if (status == LIN_OK) status = lin_session_create(s->r, &s->options, sink, copy, err);
    if (status == LIN_OK) status = load(*copy, &state, err);
    if (status == LIN_OK) status = lin_utterances_copy(&(*copy)->utterances, &s->utterances, err); // what was shown, too
    lin_state_free(&state);
    if (status == LIN_OK) return LIN_OK;
    lin_session_destroy(*copy);
    *copy = NULL;
    return status;
}

void lin_session_decode_by(lin_session *s, const lin_decoding *decoding)
{
    s->options.decoding = decoding;
    s->utterances.decoder.decoding = decoding;
}
