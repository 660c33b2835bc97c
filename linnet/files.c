// files.c - sound files and pipes to results or rows; see files.h.

#include "linnet/files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "frontend/fbank.h"
#include "linnet/diarizer.h"

static const double RESET_AFTER_S = 60;

// Frames of the front end at a time: 5.8 seconds; fewer at first where settled results are read as they come.
enum { BLOCK = 576, FIRST_BLOCK = 72 };

// One channel, or the mix.
typedef struct file_lane {
    lin_file_worker *owner;
    int number;
    lin_session stream; // opened when the lane is first needed
    lin_diarizer who;   // where speakers are told apart
    lin_matrix heard;   // its frames, for that
} file_lane;

struct lin_file_worker {
    const lin_recognizer *r;
    lin_utterances_options decode;
    int decodes, search;
    int threads;
    lin_worker *worker;   // for a model of whole utterances
    lin_streams *network; // for others: the streams of all lanes
    file_lane lanes[LIN_AUDIO_MAX_CHANNELS];
    float *frames;    // [2, lanes, BLOCK, D]: a block, and the next one
    int frames_lanes; // that frames has room for
    int room_lanes;   // that the network has room for
    lin_pool *beside; // with several threads: one reads the next block while others work on this one
    float *logp;      // [rows, V] of a whole utterance
    size_t room;
    lin_state state;  // what lin_file_sink.saved is given
    // Of the run:
    const lin_sound *sound;
    const lin_file_sink *sink;
    int n_lanes;
    double end_s;     // of the part
};

lin_reset_options lin_reset_auto(const lin_recognizer *r, const lin_endpoint_options *rules)
{
    return (lin_reset_options){.endpoints = 1, .rules = *rules, .resets = r->streams && !r->forgets,
                               .from_s = r->streams ? RESET_AFTER_S : INFINITY};
}

lin_status lin_file_worker_create(const lin_recognizer *recognizer, int n_threads, const lin_utterances_options *decode,
                                  lin_file_worker **worker, lin_error *err)
{
    *worker = NULL;
    lin_file_worker *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a file worker", sizeof *s);
    s->r = recognizer;
    s->decodes = decode != NULL;
    if (decode) s->decode = *decode;
    lin_status status = decode && decode->ends.endpoints ? lin_endpoint_check(&decode->ends.rules, err) : LIN_OK;
    s->threads = n_threads;
    if (status == LIN_OK && !recognizer->streams) status = lin_worker_create(recognizer->encoder, n_threads, &s->worker, err);
    if (status != LIN_OK) {
        lin_file_worker_destroy(s);
        return status;
    }
    *worker = s;
    return LIN_OK;
}

void lin_file_worker_search(lin_file_worker *s) { s->search = 1; }

static void close_lane(file_lane *lane)
{
    lin_session_close(&lane->stream);
    lin_diarizer_close(&lane->who);
    lin_matrix_free(&lane->heard);
    *lane = (file_lane){.owner = NULL};
}

void lin_file_worker_destroy(lin_file_worker *s)
{
    if (!s) return;
    for (int i = 0; i < LIN_AUDIO_MAX_CHANNELS; i++) close_lane(&s->lanes[i]);
    lin_streams_destroy(s->network);
    if (s->worker) lin_worker_destroy(s->worker);
    lin_pool_destroy(s->beside);
    lin_state_free(&s->state);
    lin_free(s->frames);
    lin_free(s->logp);
    lin_free(s);
}

static int is_stopped(const lin_recognizer *r) { return r->stop && *r->stop; }

/* ---- lanes ----------------------------------------------------------------------------------------------------------------- */

static lin_status rows_out(void *context, const float *logp, int n, lin_error *err)
{
    const file_lane *lane = context;
    const lin_file_sink *sink = lane->owner->sink;
    return sink->rows ? sink->rows(sink->context, lane->number, logp, n, err) : LIN_OK;
}

// The times of a part of the sound become those of the sound.
static void shift(const lin_file_worker *s, lin_result *result) { lin_result_shift(result, s->sound->part.start_s); }

static lin_status settled_out(void *context, lin_result *result, lin_error *err)
{
    const file_lane *lane = context;
    const lin_file_sink *sink = lane->owner->sink;
    shift(lane->owner, result);
    return sink->settled(sink->context, lane->number, result, err);
}

static lin_status open_lane(lin_file_worker *s, file_lane *lane, lin_error *err)
{
    lane->owner = s;
    lane->number = (int)(lane - s->lanes);
    const lin_session_options how = {
        .ends = s->decode.ends, .decoding = s->decode.decoding, .network = s->network, .slot = lane->number};
    lin_row_decoder *d = &lane->stream.utterances.decoder;
    LIN_TRY(lin_session_open(&lane->stream, s->r, &how, NULL, err));
    const lin_status status = s->worker ? lin_row_decoder_combine(d, s->r, lin_pool_threads(s->worker->wave.pool), err) : LIN_OK;
    if (status != LIN_OK) lin_session_close(&lane->stream);
    return status;
}

// Makes the network, of as many streams as lanes were ever needed at once.
static lin_status reserve_network(lin_file_worker *s, lin_error *err)
{
    const int language = s->decode.decoding ? s->decode.decoding->language : s->search;
    if (!s->r->streams) s->worker->search = language;
    if (!s->r->streams || s->n_lanes <= s->room_lanes) return LIN_OK;
    for (int i = 0; i < s->room_lanes; i++) close_lane(&s->lanes[i]);
    lin_streams_destroy(s->network);
    s->network = NULL;
    s->room_lanes = 0;
    const lin_streams_options o = {
        .capacity = s->n_lanes, .batch = 1, .search = language, .exact = 1, .threads = s->threads};
    LIN_TRY(lin_streams_create(s->r->encoder, &o, &s->network, err));
    s->room_lanes = s->n_lanes;
    if (!s->beside && lin_streams_threads(s->network) > 1) LIN_TRY(lin_pool_create(2, &s->beside, err));
    return LIN_OK;
}

static lin_status begin_lane(lin_file_worker *s, file_lane *lane, lin_error *err)
{
    if (!lane->stream.r) LIN_TRY(open_lane(s, lane, err));
    lin_result *whole = s->decodes ? &s->sound->results[lane->number] : NULL;
    lane->stream.utterances.sink = (lin_utterances_sink){
        .context = lane, .settled = s->sink->settled ? settled_out : NULL, .rows = s->decodes ? NULL : rows_out};
    lin_session_begin(&lane->stream, whole);
    lin_diarizer_forget(&lane->who);
    lane->heard.rows = 0;
    return LIN_OK;
}

static lin_status begin_lanes(lin_file_worker *s, int D, lin_error *err)
{
    LIN_TRY(reserve_network(s, err));
    if (s->sink->begin) LIN_TRY(s->sink->begin(s->sink->context, s->n_lanes, err));
    for (int l = 0; l < s->n_lanes; l++) LIN_TRY(begin_lane(s, &s->lanes[l], err));
    if (s->n_lanes <= s->frames_lanes) return LIN_OK;
    const size_t count = 2 * (size_t)s->n_lanes * BLOCK * (size_t)D;
    lin_free(s->frames);
    s->frames_lanes = 0;
    s->frames = lin_alloc(count, sizeof *s->frames);
    if (!s->frames) return lin_no_memory(err, "features", count * sizeof *s->frames);
    s->frames_lanes = s->n_lanes;
    return LIN_OK;
}

// Who speaks, in frames of a lane and in its result.
static lin_status hear_speakers(file_lane *lane, const float *frames, int n, lin_error *err)
{
    const lin_decoding *d = lane->owner->decode.decoding;
    const lin_recognizer *r = lane->owner->r;
    if (!d || !d->voice) return LIN_OK;
    lane->who.voice = d->voice;
    lane->who.wanted = d->speakers;
    lane->who.hop_s = r->fbank.hop_ms / 1000;
    return lin_matrix_append(&lane->heard, frames, n, r->model->config.mel_bins, err);
}

// What the decoders still hold.
static lin_status finish_results(lin_file_worker *s, lin_error *err)
{
    for (int l = 0; l < s->n_lanes && s->decodes; l++) {
        lin_status status = s->sound->leave_open ? LIN_OK : lin_utterances_finish(&s->lanes[l].stream.utterances, err);
        if (status == LIN_OK && s->lanes[l].who.voice)
            status = lin_diarizer_mark(&s->lanes[l].who, &s->lanes[l].heard, &s->sound->results[l], 0, err);
        shift(s, &s->sound->results[l]);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

// The sound of a resumed stream begins behind the samples that the stream has had.
static double seconds_done(const lin_source *source, const lin_sound *sound)
{
    const double before = sound->from ? (double)sound->from->about.samples / lin_source_info(source)->rate_hz : 0;
    return before + lin_source_seconds(source);
}

static lin_status sound_out(void *context, const lin_source *source, lin_error *err)
{
    const lin_file_worker *s = context;
    const lin_audio_format *format = lin_source_info(source);
    int n;
    const float *sound = lin_source_last(source, &n);
    return s->sink->sound(s->sink->context, format, seconds_done(source, s->sound) - (double)n / format->rate_hz, sound, n, err);
}

static lin_status tell_progress(const lin_file_worker *s, const lin_source *source, lin_error *err)
{
    const lin_file_sink *sink = s->sink;
    if (!sink->progress || !sink->progress(sink->context, seconds_done(source, s->sound), lin_source_duration(source)))
        return LIN_OK;
    return lin_fail(err, LIN_STOPPED, "the progress callback asked to stop");
}

/* ---- saved, and resumed ---------------------------------------------------------------------------------------------------- */

static lin_status save(lin_file_worker *s, const lin_source *source, lin_error *err)
{
    const lin_audio_format *format = lin_source_info(source);
    const lin_sound *sound = s->sound;
    lin_state_about about = lin_session_about(&s->lanes[0].stream);
    lin_state_sizes sizes = lin_session_sizes(&s->lanes[0].stream);
    about.rate_hz = format->rate_hz;
    about.channels = format->channels;
    about.channel = sound->channel;
    about.lanes = lin_source_lanes(source);
    about.samples = lin_source_position(source) + (sound->from ? sound->from->about.samples : 0);
    about.resets = s->decode.ends.endpoints;
    about.resets_from_s = s->decode.ends.from_s;
    sizes.front = lin_source_state_bytes(source);
    LIN_TRY(lin_state_begin(&s->state, &about, &sizes, err));
    LIN_TRY(lin_source_save(source, lin_state_front(&s->state), err));
    for (int l = 0; l < about.lanes; l++)
        LIN_TRY(lin_session_save_lane(&s->lanes[l].stream, &s->state, l, err));
    if (s->sink->saved) s->sink->saved(s->sink->context, &s->state);
    return LIN_OK;
}

static lin_status does_not_fit(const lin_sound *sound, const char *have, const char *need, lin_error *err)
{
    return lin_fail(err, LIN_MISMATCH, "%s continues with %s; %s has %s", sound->from_name, need, sound->path, have);
}

// A stream cannot go on with another model, rate or channel.
static lin_status check_fit(const lin_file_worker *s, const lin_source *source, lin_error *err)
{
    const lin_sound *sound = s->sound;
    const lin_state_about *about = &sound->from->about;
    const lin_audio_format *format = lin_source_info(source);
    char have[64], need[64];
    LIN_TRY(lin_state_check_model(about, s->r, sound->from_name, err));
    if (about->rate_hz != format->rate_hz) {
        snprintf(have, sizeof have, "%d Hz", format->rate_hz);
        snprintf(need, sizeof need, "sound at %d Hz", about->rate_hz);
        return does_not_fit(sound, have, need, err);
    }
    if (about->channel != sound->channel) {
        snprintf(have, sizeof have, "%d", about->channel + 1);
        return lin_fail(err, LIN_MISMATCH, "%s was saved with --channel %s; use the same option", sound->from_name,
                        about->channel >= 0 ? have : about->channel == LIN_CHANNEL_MIX ? "mix" : "each");
    }
    if (about->lanes != lin_source_lanes(source)) {
        snprintf(have, sizeof have, "%d", format->channels);
        snprintf(need, sizeof need, "%d channels", about->channels);
        return does_not_fit(sound, have, need, err);
    }
    return LIN_OK;
}

// Streams, decoders and endpoints; the source has been loaded before.
static lin_status resume(lin_file_worker *s, lin_error *err)
{
    const lin_state *from = s->sound->from;
    for (int l = 0; l < from->about.lanes; l++) {
        const lin_status status = lin_session_load_lane(&s->lanes[l].stream, from, l, &s->decode.ends, err);
        if (status != LIN_OK) return lin_fail_at(err, status, "%s", s->sound->from_name);
    }
    return LIN_OK;
}

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

// Frames of the block after one of `last`; 0: of the first one, which gives whole groups of 8 rows, as those after it do.
static int block_after(const lin_file_worker *s, int last)
{
    const lin_config *c = &s->r->model->config;
    const int next = last ? 2 * last : FIRST_BLOCK, step = 8 * c->stack;
    if (s->sink->settled && next < BLOCK) return next;
    return last || c->ahead + step > BLOCK ? BLOCK : (BLOCK - c->ahead) / step * step + c->ahead;
}

// Of the front end.
typedef struct block {
    float *frames;   // [lanes, room, D]
    int n, room;
    int last;        // nothing follows
} block;

static lin_status read_block(const lin_file_worker *s, lin_source *source, block *b, int room, lin_error *err)
{
    b->room = room;
    LIN_TRY(lin_source_read(source, b->frames, room, &b->n, err));
    b->last = !s->sound->leave_open && lin_source_ended(source);
    return LIN_OK;
}

static const float *frames_of(const lin_file_worker *s, const block *b, int lane)
{
    return b->frames + (size_t)lane * (size_t)b->room * (size_t)s->r->model->config.mel_bins;
}

static lin_status feed_block(lin_file_worker *s, const block *b, lin_error *err)
{
    for (int l = 0; l < s->n_lanes && b->n > 0; l++) {
        const float *frames = frames_of(s, b, l);
        if (s->sink->frames) LIN_TRY(s->sink->frames(s->sink->context, l, frames, b->n, err));
        LIN_TRY(hear_speakers(&s->lanes[l], frames, b->n, err));
        LIN_TRY(lin_session_feed(&s->lanes[l].stream, frames, b->n, b->last, err));
    }
    return LIN_OK;
}

// The block that the network works on, and the next one, which is read meanwhile.
typedef struct two_blocks {
    lin_file_worker *worker;
    lin_source *source;
    block now, next;
    lin_status fed, read;
    lin_error feed_error, read_error;
} two_blocks;

static void either_block(void *context, int piece, int thread)
{
    two_blocks *b = context;
    (void)thread;
    if (piece == 0) b->fed = feed_block(b->worker, &b->now, &b->feed_error);
    else b->read = read_block(b->worker, b->source, &b->next, block_after(b->worker, b->now.room), &b->read_error);
}

// As it arrives, in constant memory.
static lin_status run_stream(lin_file_worker *s, lin_source *source, int live, lin_error *err)
{
    const int lanes = lin_source_lanes(source), open = s->sound->leave_open;
    // With several threads a file is read ahead; what live sound gives is decoded before more is waited for.
    const int ahead = s->beside && !live && !open && lin_source_duration(source) > 0;
    two_blocks b = {.worker = s, .source = source, .now = {.frames = s->frames},
                    .next = {.frames = s->frames + (size_t)lanes * BLOCK * (size_t)lin_source_bins(source)}};
    lin_status status = LIN_OK;
    do {
        if (is_stopped(s->r) && live) break;
        if (is_stopped(s->r)) return lin_fail(err, LIN_STOPPED, "interrupted");
        if (ahead) {
            lin_pool_run(s->beside, 2, either_block, &b);
            status = b.fed != LIN_OK ? b.fed : b.read;
            if (status != LIN_OK) lin_fail_as(err, b.fed != LIN_OK ? &b.feed_error : &b.read_error);
        } else {
            status = read_block(s, source, &b.next, block_after(s, b.now.room), err);
            if (status == LIN_OK) status = feed_block(s, &b.next, err);
        }
        if (status == LIN_OK) status = tell_progress(s, source, err);
        const block swap = b.now;
        b.now = b.next;
        b.next = swap;
    } while (status == LIN_OK && b.now.n > 0);
    if (status == LIN_OK && open) return save(s, source, err);
    for (int l = 0; l < lanes && status == LIN_OK; l++)
        status = lin_session_feed_end(&s->lanes[l].stream, err);
    return status;
}

// For a model that is normalised by speaker.
static lin_status normalize(lin_matrix *frames, const lin_sound *sound, lin_error *err)
{
    const int D = frames->columns;
    float own[2 * 512];
    if (!sound->mean) { // that of this sound
        lin_moments *norm;
        LIN_TRY(lin_moments_create(D, &norm, err));
        lin_moments_add(norm, frames->data, (size_t)frames->rows);
        const lin_status status = lin_moments_finish(norm, own, own + D, err);
        lin_free(norm);
        if (status != LIN_OK) return status;
    }
    const float *mean = sound->mean ? sound->mean : own, *istd = sound->mean ? sound->istd : own + D;
    lin_moments_apply(frames->data, (size_t)frames->rows, D, mean, istd);
    return LIN_OK;
}

// All frames of a lane through a model that needs whole utterances, one utterance after the other.
static lin_status run_utterances(lin_file_worker *s, int lane, const lin_matrix *all, lin_error *err)
{
    const lin_model *m = s->r->model;
    lin_utterances *u = &s->lanes[lane].stream.utterances;
    const int ends = lin_row_decoder_judges(&u->decoder); // hypotheses reach back no further than an utterance
    for (int at = 0, n; at < all->rows; at += n) {
        const float *frames = all->data + (size_t)at * (size_t)all->columns;
        n = lin_next_utterance(frames, all->rows - at, all->columns, m->features.hop_ms, m->config.stack);
        const int offsets[2] = {0, n}, rows = lin_config_frames_out(&m->config, n);
        int taken, reset;
        if (is_stopped(s->r)) return lin_fail(err, LIN_STOPPED, "interrupted");
        LIN_TRY(lin_grow(&s->logp, &s->room, (size_t)rows * (size_t)s->r->V, sizeof *s->logp, "log-probabilities", err));
        LIN_TRY(lin_encoder_run(s->worker, frames, offsets, 1, s->logp, err));
        LIN_TRY(lin_utterances_push(u, s->logp, rows, NULL, &taken, &reset, err));
        LIN_TRY(lin_combiner_push(u->decoder.combiner, frames, n, err));
        if (ends && at + n < all->rows) LIN_TRY(lin_utterances_end(u, err));
    }
    return LIN_OK;
}

static lin_status read_whole(lin_file_worker *s, lin_source *source, lin_matrix *all, lin_error *err)
{
    const int D = lin_source_bins(source);
    block b = {.frames = s->frames};
    do {
        if (is_stopped(s->r)) return lin_fail(err, LIN_STOPPED, "interrupted");
        LIN_TRY(read_block(s, source, &b, BLOCK, err));
        for (int l = 0; l < s->n_lanes && b.n > 0; l++) {
            const float *frames = frames_of(s, &b, l);
            LIN_TRY(lin_matrix_append(&all[l], frames, b.n, D, err));
            LIN_TRY(hear_speakers(&s->lanes[l], frames, b.n, err));
            if (s->sink->frames) LIN_TRY(s->sink->frames(s->sink->context, l, frames, b.n, err));
        }
        LIN_TRY(tell_progress(s, source, err));
    } while (b.n > 0);
    return LIN_OK;
}

// A model that looks at the whole utterance: all frames first.
static lin_status run_whole(lin_file_worker *s, lin_source *source, lin_error *err)
{
    lin_matrix all[LIN_AUDIO_MAX_CHANNELS];
    memset(all, 0, sizeof all);
    lin_status status = read_whole(s, source, all, err);
    for (int l = 0; l < s->n_lanes && status == LIN_OK && all[l].rows; l++) {
        if (s->r->model->speaker_norm) status = normalize(&all[l], s->sound, err);
        if (status == LIN_OK) status = run_utterances(s, l, &all[l], err);
    }
    for (int l = 0; l < s->n_lanes; l++) lin_matrix_free(&all[l]);
    return status;
}

static lin_status open_audio(const lin_sound *sound, lin_audio **audio, lin_error *err)
{
    if (sound->path && sound->is_command) return lin_audio_open_command(sound->path, sound->raw, audio, err);
    if (sound->path) return lin_audio_open(sound->path, sound->raw, audio, err);
    if (sound->samples)
        return lin_audio_open_memory("sound in memory", sound->samples, sound->n_samples, sound->rate_hz, sound->channels, audio,
                                     err);
    const lin_state_about *about = &sound->from->about;
    return lin_audio_open_memory(sound->from_name, NULL, 0, about->rate_hz, about->channels, audio, err);
}

// The sound as a source, at the place where processing begins.
static lin_status open_source(lin_file_worker *s, lin_source **source, int *live, lin_error *err)
{
    const lin_sound *sound = s->sound;
    const lin_state *from = sound->from;
    const char *name = sound->path ? sound->path : "sound in memory";
    lin_feature_options options = lin_feature_options_default();
    options.fbank = s->r->fbank;
    options.channel = sound->channel;
    options.or_only = sound->or_only;
    lin_audio *audio;
    *source = NULL;
    LIN_TRY(open_audio(sound, &audio, err));
    if (lin_audio_info(audio)->notice[0]) lin_warn(&s->r->warnings, "%s", lin_audio_info(audio)->notice);
    *live = lin_audio_is_live(audio);
    LIN_TRY(lin_source_from_audio(audio, &options, source, err));
    if (sound->leave_open) {
        lin_source_leave_open(*source);
        const lin_status status = lin_source_keep_past(*source, err);
        if (status == LIN_UNSUPPORTED)
            return lin_fail(err, status, "%s: %s; bring it to %d Hz first", name, err ? err->message : "",
                            options.fbank.sample_hz);
        if (status != LIN_OK) return status;
    }
    if (sound->part.start_s > 0 || s->end_s < INFINITY) {
        const lin_status status = lin_source_part(*source, sound->part.start_s, s->end_s, err);
        if (status == LIN_INVALID) return lin_fail_at(err, status, "%s", name);
        if (status != LIN_OK) return status;
    }
    if (!from) return LIN_OK;
    LIN_TRY(check_fit(s, *source, err));
    return lin_source_load(*source, lin_state_front(from), from->sizes.front, err);
}

static void report_on(lin_file_worker *s, const lin_source *source, lin_file_report *report)
{
    const char *warning = lin_source_info(source)->warning;
    const size_t n = strlen(warning) < sizeof report->warning ? strlen(warning) : sizeof report->warning - 1;
    memcpy(report->warning, warning, n);
    report->incomplete = lin_source_info(source)->incomplete;
    report->seconds = seconds_done(source, s->sound);
    for (int l = 0; l < s->n_lanes && s->decodes; l++)
        s->sound->results[l].seconds = report->seconds < s->end_s ? report->seconds : s->end_s;
}

lin_status lin_file_worker_run(lin_file_worker *s, const lin_sound *sound, const lin_file_sink *sink, lin_file_report *report,
                               lin_error *err)
{
    lin_source *source;
    int live = 0;
    *report = (lin_file_report){.lanes = 0};
    s->sound = sound;
    s->sink = sink;
    s->end_s = sound->part.end_s > 0 ? sound->part.end_s : INFINITY;
    if (lin_decoding_has_grammar(s->decode.decoding)) s->decode.ends.from_s = 0; // each utterance is a sentence
    if ((sound->from || sound->leave_open) && !s->r->streams)
        return lin_fail(err, LIN_UNSUPPORTED, "this model needs whole utterances: it has no stream to save");
    if ((sound->from || sound->leave_open) && !s->decodes)
        return lin_fail(err, LIN_INVALID, "streams can be saved and resumed only where rows are decoded");
    if (s->decode.ends.resets && !s->r->streams)
        return lin_fail(err, LIN_UNSUPPORTED, "this model needs whole utterances: it cannot be reset at endpoints");
    lin_status status = open_source(s, &source, &live, err);
    if (status != LIN_OK) {
        lin_source_close(source);
        return status;
    }
    s->n_lanes = report->lanes = lin_source_lanes(source);
    if (sink->sound) lin_source_watch(source, sound_out, s);
    report->channels = lin_source_info(source)->channels;
    status = begin_lanes(s, lin_source_bins(source), err);
    if (status == LIN_OK && sound->from) status = resume(s, err);
    if (status == LIN_OK) status = s->r->streams ? run_stream(s, source, live, err) : run_whole(s, source, err);
    // What was processed before an interrupt is a result too.
    const int stopped = status == LIN_STOPPED;
    if (status == LIN_OK) status = finish_results(s, err);
    report->has_results = status == LIN_OK || (stopped && !sound->leave_open && finish_results(s, NULL) == LIN_OK);
    report_on(s, source, report);
    lin_source_close(source);
    return status;
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

typedef struct measurement {
    lin_speakers *speakers;
    const lin_recognizer *recognizer;
    const lin_cut *cuts;
    const char *const *names;
    int n, n_slots;
    lin_moments **norms; // one a speaker
    lin_matrix *frames;  // one a slot
} measurement;

const lin_speaker *lin_speakers_find(const lin_speakers *speakers, const char *name)
{
    for (int i = 0; i < speakers->n && name[0]; i++) {
        if (strcmp(speakers->items[i].name, name) == 0) return &speakers->items[i];
    }
    return NULL;
}

static void read_cut(void *context, int item, int slot, int thread)
{
    (void)thread;
    measurement *m = context;
    lin_matrix *frames = &m->frames[slot];
    lin_feature_options options = lin_feature_options_default();
    options.fbank = m->recognizer->fbank;
    frames->rows = 0;
    if (!m->names[item][0] || is_stopped(m->recognizer)) return;
    if (lin_cut_read(&m->cuts[item], &options, frames, NULL, NULL) != LIN_OK) frames->rows = 0;
}

static lin_status add_frames(void *context, int item, int slot, lin_error *err)
{
    measurement *m = context;
    const lin_speaker *speaker = lin_speakers_find(m->speakers, m->names[item]);
    if (is_stopped(m->recognizer)) return lin_fail(err, LIN_STOPPED, "interrupted");
    if (speaker) lin_moments_add(m->norms[speaker - m->speakers->items], m->frames[slot].data, (size_t)m->frames[slot].rows);
    return LIN_OK;
}

static lin_status list_speakers(measurement *m, int D, lin_error *err)
{
    lin_speakers *s = m->speakers;
    s->items = lin_calloc((size_t)m->n, sizeof *s->items);
    m->norms = lin_calloc((size_t)m->n, sizeof *m->norms);
    if (!s->items || !m->norms) return lin_no_memory(err, "speakers", (size_t)m->n * sizeof *s->items);
    for (int i = 0; i < m->n; i++) {
        const char *name = m->names[i];
        if (!name[0] || lin_speakers_find(s, name)) continue;
        s->items[s->n].name = name;
        LIN_TRY(lin_moments_create(D, &m->norms[s->n++], err));
    }
    return LIN_OK;
}

static lin_status finish_speakers(measurement *m, int D, lin_error *err)
{
    for (int i = 0; i < m->speakers->n; i++) {
        lin_speaker *s = &m->speakers->items[i];
        if (lin_moments_count(m->norms[i]) == 0) continue;
        s->mean = lin_calloc(2 * (size_t)D, sizeof *s->mean);
        if (!s->mean) return lin_no_memory(err, "speakers", 2 * (size_t)D * sizeof *s->mean);
        s->istd = s->mean + D;
        LIN_TRY(lin_moments_finish(m->norms[i], s->mean, s->istd, err));
    }
    return LIN_OK;
}

lin_status lin_speakers_measure(lin_speakers *speakers, const lin_recognizer *recognizer, const lin_cut *cuts,
                                const char *const *names, int n, int jobs, lin_error *err)
{
    const int threads = lin_ordered_threads(jobs, n), D = recognizer->model->config.mel_bins;
    measurement m = {.speakers = speakers, .recognizer = recognizer, .cuts = cuts, .names = names, .n = n,
                     .n_slots = lin_ordered_slots(threads)};
    m.frames = lin_calloc((size_t)m.n_slots, sizeof *m.frames);
    lin_status status =
        m.frames ? list_speakers(&m, D, err) : lin_no_memory(err, "speakers", (size_t)m.n_slots * sizeof *m.frames);
    if (status == LIN_OK && speakers->n > 0) status = lin_ordered_run(&(lin_ordered){n, threads, &m, read_cut, add_frames}, err);
    if (status == LIN_OK) status = finish_speakers(&m, D, err);
    for (int i = 0; i < m.n_slots && m.frames; i++) lin_matrix_free(&m.frames[i]);
    for (int i = 0; i < speakers->n; i++) lin_free(m.norms[i]);
    lin_free(m.frames);
    lin_free(m.norms);
    return status;
}

void lin_speakers_free(lin_speakers *speakers)
{
    for (int i = 0; i < speakers->n; i++) lin_free(speakers->items[i].mean);
    lin_free(speakers->items);
    *speakers = (lin_speakers){0};
}
