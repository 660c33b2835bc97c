// recognize.c - a sound file through the front end and the network; see recognize.h.

#include "linnet/recognize.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "frontend/normalize.h"
#include "linnet/find.h"
#include "model/model_file.h"
#include "model/stream.h"

enum { BLOCK = 576 }; // frames of the front end at a time: 5.8 seconds

struct lin_ear {
    const lin_recognizer *r;
    lin_worker *worker;
    lin_lane *of[LIN_AUDIO_MAX_CHANNELS]; // made when a lane is first needed
    float *frames;                               // [2, lanes, BLOCK, D]: a block, and the next one
    int lanes;                                   // that frames has room for
    lin_pool *beside;                            // with several threads: one reads the next block while others work on this one
    float *logp;                                 // [rows, V] of a whole utterance
    int rows;
    lin_state state; // room for what marks are given
};

// With the model that is loaded; the status is that of loading it.
static lin_status set_up(lin_recognizer *recognizer, lin_status status, const char *device, lin_precision precision,
                         const lin_warnings *warnings, lin_error *err)
{
    const lin_ops *ops;
    if (status == LIN_OK) status = lin_backend_open(device, precision, &ops, err);
    if (status == LIN_OK) status = lin_encoder_create(recognizer->model, ops, &recognizer->encoder, err);
    if (status == LIN_OK) status = lin_phones_create(recognizer->model->phones, &recognizer->phones, err);
    if (status != LIN_OK) {
        lin_recognizer_close(recognizer);
        return status;
    }
    const lin_model *m = recognizer->model;
    if (warnings) recognizer->warnings = *warnings;
    recognizer->fbank = lin_fbank_from_model(&m->features, m->config.mel_bins);
    recognizer->streams = m->config.causal && m->config.positions != LIN_POSITIONS_SINUSOID && !m->speaker_norm;
    recognizer->row_seconds = m->config.stack * m->features.hop_ms / 1000;
    recognizer->V = m->config.outputs;
    return LIN_OK;
}

lin_status lin_recognizer_open(lin_recognizer *recognizer, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err)
{
    char found[4096];
    const lin_ops *ops;
    memset(recognizer, 0, sizeof *recognizer);
    lin_status status = lin_find_model(path, found, sizeof found, err);
    if (status == LIN_OK) status = lin_backend_open(device, precision, &ops, err); // its errors first
    if (status == LIN_OK) status = lin_model_load(found, &recognizer->model, err);
    return set_up(recognizer, status, device, precision, warnings, err);
}

lin_status lin_recognizer_open_memory(lin_recognizer *recognizer, const void *bytes, size_t n, const char *device,
                                      lin_precision precision, const lin_warnings *warnings, lin_error *err)
{
    memset(recognizer, 0, sizeof *recognizer);
    const lin_status status = lin_model_load_memory(bytes, n, "model in memory", &recognizer->model, err);
    return set_up(recognizer, status, device, precision, warnings, err);
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
    if (status == LIN_OK && lin_worker_threads(e->worker) > 1) status = lin_pool_create(2, &e->beside, err);
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
    for (int i = 0; i < LIN_AUDIO_MAX_CHANNELS; i++) lin_lane_destroy(ear->of[i]);
    if (ear->worker) lin_worker_destroy(ear->worker);
    lin_pool_destroy(ear->beside);
    lin_state_free(&ear->state);
    lin_free(ear->frames);
    lin_free(ear->logp);
    lin_free(ear);
}

static int is_stopped(const lin_ear *e) { return e->r->stop && *e->r->stop; }

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
        lin_status status = e->of[i] ? LIN_OK : lin_lane_create(e->r, &e->of[i], err);
        if (status != LIN_OK) return status;
        lin_lane_begin(e->of[i]);
    }
    if (lanes <= e->lanes) return LIN_OK;
    size_t count = 2 * (size_t)lanes * BLOCK * (size_t)D;
    lin_free(e->frames);
    e->lanes = 0;
    e->frames = lin_alloc(count, sizeof *e->frames);
    if (!e->frames) return lin_no_memory(err, "features", count * sizeof *e->frames);
    e->lanes = lanes;
    return LIN_OK;
}

// What a lane gives goes to the sink with the lane's number.
typedef struct outlet {
    const lin_sink *sink;
    int lane;
} outlet;

static lin_status rows_out(void *context, const float *logp, int n, const double *db, int *taken, int *reset, lin_error *err)
{
    const outlet *o = context;
    (void)db;
    *taken = n;
    *reset = 0;
    return o->sink->rows(o->sink->context, o->lane, logp, n, err);
}

static lin_lane_sink sink_of(const lin_sink *sink, outlet *out)
{
    if (sink->utterances) return lin_lane_to(sink->utterances(sink->context, out->lane));
    return (lin_lane_sink){.context = out, .rows = rows_out};
}

// frames NULL: the sound is over.
static lin_status feed(lin_ear *e, int lane, const float *frames, int n, const lin_sink *sink, lin_error *err)
{
    outlet out = {sink, lane};
    const lin_lane_sink to = sink_of(sink, &out);
    if (!frames) return lin_lane_finish(e->of[lane], e->worker, &to, err);
    lin_status status = sink->frames ? sink->frames(sink->context, lane, frames, n, err) : LIN_OK;
    if (status != LIN_OK) return status;
    return lin_lane_feed(e->of[lane], e->worker, frames, n, &to, err);
}

/* ---- put away, and taken up ------------------------------------------------------------------------------------------------- */

// A sound of its own begins behind the samples of the stream that it goes on with.
static double seconds_heard(const lin_source *source, const lin_sound *sound)
{
    const double before = sound->from && !sound->within ? (double)sound->from->about.samples / lin_source_info(source)->rate_hz : 0;
    return before + lin_source_seconds(source);
}

static lin_status mark(lin_ear *e, const lin_source *source, const lin_sound *sound, const lin_sink *sink, int end, lin_error *err)
{
    const lin_audio_format *format = lin_source_info(source);
    const lin_utterances *first = sink->utterances(sink->context, 0);
    const lin_search *search = lin_utterances_search(first);
    const int past = end; // on the way the sound itself is there to be read again
    int n_last;
    const float *last = lin_source_last(source, &n_last);
    const lin_state_about about = {.model = e->r->model->fingerprint,
                                   .rate_hz = format->rate_hz,
                                   .channels = format->channels,
                                   .channel = sound->channel,
                                   .lanes = lin_source_lanes(source),
                                   .samples = lin_source_position(source) +
                                              (sound->from && !sound->within ? sound->from->about.samples : 0),
                                   .frames = lin_lane_frames(e->of[0]),
                                   .rows = lin_lane_rows(e->of[0]),
                                   .row_seconds = e->r->row_seconds,
                                   .past = past,
                                   .n_last = n_last,
                                   .last = lin_state_sound(last, (size_t)n_last * (size_t)format->channels),
                                   .kind = search->kind,
                                   .search = search->id,
                                   .resets = lin_utterances_ends(first)->endpoints,
                                   .resets_from_s = lin_utterances_ends(first)->from_s};
    const lin_state_sizes sizes = {.front = lin_source_state_bytes(source, past),
                                   .decoder = lin_search_bytes(search),
                                   .image = lin_stream_image_bytes(lin_lane_stream(e->of[0]))};
    lin_status status = lin_state_begin(&e->state, &about, &sizes, err);
    if (status == LIN_OK) status = lin_source_save(source, past, lin_state_front(&e->state), err);
    for (int l = 0; l < about.lanes && status == LIN_OK; l++) {
        status = lin_stream_save(lin_lane_stream(e->of[l]), lin_state_image(&e->state, l), sizes.image, err);
        lin_utterances *u = sink->utterances(sink->context, l);
        memcpy(lin_state_decoder(&e->state, l), lin_utterances_decoder(u), sizes.decoder);
        lin_state_put_endpoint(&e->state, l, lin_utterances_endpoint(u));
    }
    return status == LIN_OK ? sink->mark(sink->context, &e->state, end, err) : status;
}

static lin_status does_not_fit(const lin_sound *sound, const char *have, const char *need, lin_error *err)
{
    return lin_fail(err, LIN_MISMATCH, "%s continues with %s; %s has %s", sound->from_name, need, sound->path, have);
}

// Of another model, rate or channel nothing can go on.
static lin_status check_fit(const lin_ear *e, const lin_source *source, const lin_sound *sound, lin_error *err)
{
    const lin_state_about *about = &sound->from->about;
    const lin_audio_format *format = lin_source_info(source);
    char have[64], need[64];
    if (about->model != e->r->model->fingerprint)
        return lin_fail(err, LIN_MISMATCH, "%s belongs to another model (%016llx); this one is %016llx", sound->from_name,
                        (unsigned long long)about->model, (unsigned long long)e->r->model->fingerprint);
    if (about->rate_hz != format->rate_hz) {
        snprintf(have, sizeof have, "%d Hz", format->rate_hz);
        snprintf(need, sizeof need, "sound at %d Hz", about->rate_hz);
        return does_not_fit(sound, have, need, err);
    }
    if (about->channel != sound->channel) {
        const char *const names[] = {"each", "mix"};
        snprintf(have, sizeof have, "channel %d", about->channel + 1);
        return lin_fail(err, LIN_MISMATCH, "%s is of --channel %s", sound->from_name,
                        about->channel < 0 ? names[about->channel + 2] : have + strlen("channel "));
    }
    if (about->lanes != lin_source_lanes(source) || (sound->within && about->channels != format->channels)) {
        snprintf(have, sizeof have, "%d", format->channels);
        snprintf(need, sizeof need, "%d channels", about->channels);
        return does_not_fit(sound, have, need, err);
    }
    return LIN_OK;
}

// Streams, decoders and endpoints; the source has been loaded before.
static lin_status take_up(lin_ear *e, const lin_sound *sound, const lin_sink *sink, lin_error *err)
{
    const lin_state *s = sound->from;
    lin_status status = LIN_OK;
    for (int l = 0; l < s->about.lanes && status == LIN_OK; l++) {
        lin_utterances *u = sink->utterances(sink->context, l);
        lin_endpoint endpoint = *lin_utterances_endpoint(u);
        status = lin_stream_load(lin_lane_stream(e->of[l]), lin_state_image(s, l), s->sizes.image, err);
        if (status == LIN_OK) status = lin_state_get_decoder(s, l, lin_utterances_search(u), lin_utterances_decoder(u), err);
        if (status == LIN_OK) status = lin_state_get_endpoint(s, l, lin_utterances_ends(u), &endpoint, err);
        if (status == LIN_OK)
            status = lin_lane_go_on(e->of[l], s->about.frames, s->about.rows, s->about.resets, err);
        if (status == LIN_OK) lin_utterances_go_on(u, s->about.rows, &endpoint);
    }
    if (status == LIN_OK) return status;
    return lin_fail_at(err, status, "%s", sound->from_name);
}

/* ---- streams ---------------------------------------------------------------------------------------------------------------- */

// A block of a file that the network works on, and the next one, which is read meanwhile.
typedef struct two_blocks {
    lin_ear *e;
    lin_source *source;
    const lin_sink *sink;
    float *now, *next; // [lanes, BLOCK, D]
    int n, n_next;
    lin_status fed, read;
    lin_error feed_error, read_error;
} two_blocks;

static void either_block(void *context, int piece, int thread)
{
    two_blocks *b = context;
    (void)thread;
    if (piece == 1) {
        b->read = lin_source_read(b->source, b->next, BLOCK, &b->n_next, &b->read_error);
        return;
    }
    const size_t lane = (size_t)BLOCK * (size_t)lin_source_bins(b->source);
    b->fed = LIN_OK;
    for (int l = 0; l < lin_source_lanes(b->source) && b->fed == LIN_OK; l++)
        b->fed = feed(b->e, l, b->now + (size_t)l * lane, b->n, b->sink, &b->feed_error);
}

// All of a file, by several threads.
static lin_status hear_file(lin_ear *e, lin_source *source, const lin_sound *sound, const lin_sink *sink, lin_error *err)
{
    const size_t block = (size_t)lin_source_lanes(source) * BLOCK * (size_t)lin_source_bins(source);
    two_blocks b = {.e = e, .source = source, .sink = sink, .now = e->frames, .next = e->frames + block};
    lin_status status = lin_source_read(source, b.now, BLOCK, &b.n, err);
    while (status == LIN_OK && b.n > 0) {
        if (is_stopped(e)) return lin_fail(err, LIN_STOPPED, "interrupted");
        lin_pool_run(e->beside, 2, either_block, &b);
        if (err && (b.fed != LIN_OK || b.read != LIN_OK)) *err = b.fed != LIN_OK ? b.feed_error : b.read_error;
        status = b.fed != LIN_OK ? b.fed : b.read;
        if (sink->progress) sink->progress(sink->context, seconds_heard(source, sound), lin_source_duration(source));
        float *swap = b.now;
        b.now = b.next;
        b.next = swap;
        b.n = b.n_next;
    }
    return status;
}

// As it arrives, in constant memory.
static lin_status hear_stream(lin_ear *e, lin_source *source, const lin_sound *sound, int live, const lin_sink *sink,
                              lin_error *err)
{
    int lanes = lin_source_lanes(source), D = lin_source_bins(source), n = 1;
    lin_status status = LIN_OK;
    const int64_t every = (int64_t)(sound->mark_s * 1000 / e->r->model->features.hop_ms + 0.5); // frames
    // Where nobody asks how far the source has come it may be ahead.
    if (e->beside && !live && !every && !sound->leave_open && !sink->enough && lin_source_duration(source) > 0) {
        status = hear_file(e, source, sound, sink, err);
        n = 0;
    }
    while (status == LIN_OK && n > 0) {
        if (is_stopped(e)) {
            if (live) break;
            return lin_fail(err, LIN_STOPPED, "interrupted");
        }
        const int64_t to_mark = every ? every - lin_lane_frames(e->of[0]) % every : BLOCK;
        const int most = to_mark < BLOCK ? (int)to_mark : BLOCK;
        status = lin_source_read(source, e->frames, most, &n, err);
        for (int l = 0; l < lanes && status == LIN_OK && n > 0; l++) {
            status = feed(e, l, e->frames + (size_t)l * (size_t)most * (size_t)D, n, sink, err);
        }
        if (status == LIN_OK && n == to_mark && every) status = mark(e, source, sound, sink, 0, err);
        if (sink->progress) sink->progress(sink->context, seconds_heard(source, sound), lin_source_duration(source));
        if (status == LIN_OK && sink->enough && sink->enough(sink->context)) return LIN_OK;
    }
    if (status == LIN_OK && sound->leave_open) return mark(e, source, sound, sink, 1, err);
    for (int l = 0; l < lanes && status == LIN_OK; l++) status = feed(e, l, NULL, 0, sink, err);
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
        if (is_stopped(e)) status = lin_fail(err, LIN_STOPPED, "interrupted");
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
            if (sink->frames) status = sink->frames(sink->context, l, e->frames + (size_t)l * BLOCK * (size_t)D, n, err);
        }
        if (sink->progress) sink->progress(sink->context, lin_source_seconds(source), lin_source_duration(source));
    }
    for (int l = 0; l < lanes && status == LIN_OK && all[l].rows; l++) {
        int offsets[2] = {0, all[l].rows}, rows = lin_config_frames_out(&e->r->model->config, all[l].rows);
        status = reserve_rows(e, rows, err);
        if (status == LIN_OK && e->r->model->speaker_norm) status = normalize(&all[l], sound, err);
        if (status == LIN_OK) status = lin_encoder_run(e->worker, all[l].data, offsets, 1, e->logp, err);
        outlet out = {sink, l};
        const lin_lane_sink to = sink_of(sink, &out);
        int taken, reset;
        if (status == LIN_OK) status = to.rows(to.context, e->logp, rows, NULL, &taken, &reset, err);
    }
    for (int l = 0; l < lanes; l++) lin_matrix_free(&all[l]);
    return status;
}

// The sound as a source, at the place where it is to be heard from. through: see lin_source_go_to.
static lin_status open_source(lin_ear *e, const lin_sound *sound, int through, lin_source **source, int *live, lin_error *err)
{
    lin_feature_options options = lin_feature_options_default();
    options.fbank = e->r->fbank;
    options.channel = sound->channel;
    lin_audio *audio;
    *source = NULL;
    lin_status status;
    if (sound->path) {
        status = lin_audio_open(sound->path, sound->raw, &audio, err);
    } else if (sound->samples) {
        status = lin_audio_open_memory("sound in memory", sound->samples, sound->n_samples, sound->rate_hz, sound->channels, &audio, err);
    } else {
        status = lin_audio_open_memory(sound->from_name, NULL, 0, sound->from->about.rate_hz, sound->from->about.channels, &audio, err);
    }
    if (status != LIN_OK) return status;
    if (lin_audio_info(audio)->notice[0]) lin_warn(&e->r->warnings, "%s", lin_audio_info(audio)->notice);
    *live = lin_audio_is_live(audio);
    status = lin_source_from_audio(audio, &options, source, err);
    if (status != LIN_OK) return status;
    if (sound->leave_open) lin_source_leave_open(*source);
    if (sound->leave_open || sound->mark_s > 0) status = lin_source_remember(*source, err);
    if (status == LIN_UNSUPPORTED)
        return lin_fail(err, status, "%s: %s; bring it to %g Hz first", sound->path, err->message, options.fbank.sample_hz);
    const lin_state *from = sound->from;
    if (status == LIN_OK && sound->part.end_s > 0 && (sound->part.start_s > 0 || sound->part.end_s < INFINITY)) {
        status = lin_source_part(*source, sound->part.start_s, sound->part.end_s, err);
        if (status == LIN_INVALID) return lin_fail_at(err, status, "%s", sound->path ? sound->path : "sound in memory");
    }
    if (status != LIN_OK || !from) return status;
    status = check_fit(e, *source, sound, err);
    if (status == LIN_OK) status = lin_source_load(*source, lin_state_front(from), from->sizes.front, err);
    if (status != LIN_OK || !sound->within) return status;
    status = lin_source_go_to(*source, from->about.samples, from->about.n_last, through, err);
    if (status != LIN_OK) return status;
    int n_last;
    const float *last = lin_source_last(*source, &n_last);
    if (n_last == from->about.n_last && lin_state_sound(last, (size_t)n_last * (size_t)from->about.channels) == from->about.last)
        return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "%s is not the sound that %s was made from: it differs at %.3f s", sound->path,
                    sound->from_name, (double)from->about.samples / from->about.rate_hz);
}

lin_status lin_ear_hear(lin_ear *ear, const lin_sound *sound, const lin_sink *sink, lin_heard *heard, lin_error *err)
{
    memset(heard, 0, sizeof *heard);
    lin_source *source;
    int live = 0;
    if ((sound->from || sound->leave_open || sound->mark_s > 0) && !ear->r->streams)
        return lin_fail(err, LIN_UNSUPPORTED, "this model needs whole utterances: it has no stream to save");
    // Where winding is not possible or does not give the same samples, everything before is read. Standard input is opened once
    // only: what had been looked at would be lost.
    const int once = sound->path && strcmp(sound->path, "-") == 0;
    lin_status status = open_source(ear, sound, once, &source, &live, err);
    if (sound->within && !once && (status == LIN_UNSUPPORTED || status == LIN_MISMATCH)) {
        lin_source_close(source);
        status = open_source(ear, sound, 1, &source, &live, err);
    }
    if (status != LIN_OK) {
        lin_source_close(source);
        return status;
    }
    heard->lanes = lin_source_lanes(source);
    heard->channels = lin_source_info(source)->channels;
    status = ready(ear, heard->lanes, lin_source_bins(source), err);
    if (status == LIN_OK && sink->begin) status = sink->begin(sink->context, heard->lanes, err);
    if (status == LIN_OK && sink->utterances && !ear->r->streams && lin_utterances_ends(sink->utterances(sink->context, 0))->resets)
        status = lin_fail(err, LIN_UNSUPPORTED, "this model needs whole utterances: it cannot be reset at endpoints");
    if (status == LIN_OK && sound->from) status = take_up(ear, sound, sink, err);
    if (status == LIN_OK) {
        status = ear->r->streams ? hear_stream(ear, source, sound, live, sink, err) : hear_whole(ear, source, sound, sink, err);
    }
    heard->seconds = seconds_heard(source, sound);
    const char *warning = lin_source_info(source)->warning;
    size_t n = strlen(warning) < sizeof heard->warning ? strlen(warning) : sizeof heard->warning - 1;
    memcpy(heard->warning, warning, n);
    heard->incomplete = lin_source_info(source)->incomplete;
    lin_source_close(source);
    return status;
}
