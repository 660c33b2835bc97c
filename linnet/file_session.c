// file_session.c - sound files and pipes to results or rows; see file_session.h.

#include "linnet/file_session.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "frontend/fbank.h"

static const double RESET_AFTER_S = 60;

// Frames of the front end at a time: 5.8 seconds; where somebody reads what is settled, fewer at first.
enum { BLOCK = 576, FIRST_BLOCK = 72 };

// One channel, or the mix.
typedef struct file_lane {
    lin_file_session *session;
    int number;
    lin_session stream;         // opened when the lane is first needed, as the next; not for a model of whole utterances
    lin_utterances alone;       // likewise, for such a model
    lin_utterances *utterances; // of these; NULL: the lane was not needed yet
} file_lane;

struct lin_file_session {
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
    lin_state state;  // room for what marks are given
    // Of the run:
    const lin_sound *sound;
    const lin_file_sink *sink;
    int n_lanes;
    double end_s;     // of the part
};

lin_reset_options lin_reset_auto(const lin_recognizer *r, const lin_endpoint_options *rules)
{
    if (!r->streams) return (lin_reset_options){0};
    return (lin_reset_options){.endpoints = 1, .rules = *rules, .resets = !r->forgets, .from_s = RESET_AFTER_S};
}

lin_status lin_file_session_create(const lin_recognizer *recognizer, int n_threads, const lin_utterances_options *decode,
                                   lin_file_session **session, lin_error *err)
{
    *session = NULL;
    lin_file_session *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a file session", sizeof *s);
    s->r = recognizer;
    s->decodes = decode != NULL;
    if (decode) s->decode = *decode;
    lin_status status = decode && decode->ends.endpoints ? lin_endpoint_check(&decode->ends.rules, err) : LIN_OK;
    s->threads = n_threads;
    if (status == LIN_OK && !recognizer->streams) status = lin_worker_create(recognizer->encoder, n_threads, &s->worker, err);
    if (status != LIN_OK) {
        lin_file_session_destroy(s);
        return status;
    }
    *session = s;
    return LIN_OK;
}

void lin_file_session_search(lin_file_session *s) { s->search = 1; }

static void close_lane(file_lane *lane)
{
    lin_session_close(&lane->stream);
    lin_utterances_close(&lane->alone);
    *lane = (file_lane){.session = NULL};
}

void lin_file_session_destroy(lin_file_session *s)
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

static int is_stopped(const lin_file_session *s) { return s->r->stop && *s->r->stop; }

/* ---- lanes ----------------------------------------------------------------------------------------------------------------- */

static lin_status rows_out(void *context, const float *logp, int n, lin_error *err)
{
    const file_lane *lane = context;
    const lin_file_sink *sink = lane->session->sink;
    return sink->rows ? sink->rows(sink->context, lane->number, logp, n, err) : LIN_OK;
}

// The times of a part of the sound become those of the sound.
static void shift(const lin_file_session *s, lin_result *result)
{
    lin_result_shift(result, s->sound->part.start_s);
}

static lin_status settled_out(void *context, lin_result *result, lin_error *err)
{
    const file_lane *lane = context;
    const lin_file_sink *sink = lane->session->sink;
    shift(lane->session, result);
    return sink->settled(sink->context, lane->number, result, err);
}

static lin_status open_lane(lin_file_session *s, file_lane *lane, lin_error *err)
{
    const lin_reset_options *ends = &s->decode.ends;
    lane->session = s;
    lane->number = (int)(lane - s->lanes);
    const lin_session_options how = {.endpoints = ends->endpoints,
                                     .resets = ends->resets,
                                     .rules = ends->rules,
                                     .from_s = ends->from_s,
                                     .decoding = s->decode.decoding,
                                     .network = s->network,
                                     .slot = lane->number};
    if (s->r->streams) {
        LIN_TRY(lin_session_open(&lane->stream, s->r, &how, NULL, err));
    } else {
        LIN_TRY(lin_utterances_open(&lane->alone, s->r, &s->decode, NULL, err));
        const lin_status status = lin_decoder_combine(&lane->alone.decoder, s->r, lin_worker_threads(s->worker), err);
        if (status != LIN_OK) lin_utterances_close(&lane->alone);
        LIN_TRY(status);
    }
    lane->utterances = s->r->streams ? &lane->stream.utterances : &lane->alone;
    return LIN_OK;
}

// The network of as many streams as lanes were ever needed at once.
static lin_status reserve_network(lin_file_session *s, lin_error *err)
{
    const int language = s->decode.decoding ? s->decode.decoding->language : s->search;
    if (!s->r->streams) lin_worker_search(s->worker, language);
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

static lin_status begin_lane(lin_file_session *s, file_lane *lane, lin_error *err)
{
    if (!lane->utterances) LIN_TRY(open_lane(s, lane, err));
    lin_result *whole = s->decodes ? &s->sound->results[lane->number] : NULL;
    lane->utterances->sink = (lin_utterances_sink){
        .context = lane, .settled = s->sink->settled ? settled_out : NULL, .rows = s->decodes ? NULL : rows_out};
    if (s->r->streams) lin_session_begin(&lane->stream, whole);
    else lin_utterances_begin(lane->utterances, whole);
    return LIN_OK;
}

static lin_status begin_lanes(lin_file_session *s, int D, lin_error *err)
{
    LIN_TRY(reserve_network(s, err));
    lin_status status = s->sink->begin ? s->sink->begin(s->sink->context, s->n_lanes, err) : LIN_OK;
    for (int l = 0; l < s->n_lanes && status == LIN_OK; l++) status = begin_lane(s, &s->lanes[l], err);
    if (status != LIN_OK || s->n_lanes <= s->frames_lanes) return status;
    const size_t count = 2 * (size_t)s->n_lanes * BLOCK * (size_t)D;
    lin_free(s->frames);
    s->frames_lanes = 0;
    s->frames = lin_alloc(count, sizeof *s->frames);
    if (!s->frames) return lin_no_memory(err, "features", count * sizeof *s->frames);
    s->frames_lanes = s->n_lanes;
    return LIN_OK;
}

// last: nothing follows.
static lin_status feed(lin_file_session *s, int lane, const float *frames, int n, int last, lin_error *err)
{
    file_lane *l = &s->lanes[lane];
    lin_status status = s->sink->frames ? s->sink->frames(s->sink->context, lane, frames, n, err) : LIN_OK;
    if (status != LIN_OK) return status;
    return lin_session_feed(&l->stream, frames, n, last, err);
}

// What the decoders still hold.
static lin_status finish_results(lin_file_session *s, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int l = 0; l < s->n_lanes && s->decodes && status == LIN_OK; l++) {
        if (!s->sound->leave_open) status = lin_utterances_finish(s->lanes[l].utterances, err);
        shift(s, &s->sound->results[l]);
    }
    return status;
}

// A sound of its own begins behind the samples of the stream that it goes on with.
static double seconds_done(const lin_source *source, const lin_sound *sound)
{
    const double before = sound->from ? (double)sound->from->about.samples / lin_source_info(source)->rate_hz : 0;
    return before + lin_source_seconds(source);
}

static lin_status sound_out(void *context, const lin_source *source, lin_error *err)
{
    const lin_file_session *s = context;
    const lin_audio_format *format = lin_source_info(source);
    int n;
    const float *sound = lin_source_last(source, &n);
    return s->sink->sound(s->sink->context, format, seconds_done(source, s->sound) - (double)n / format->rate_hz, sound, n, err);
}

static lin_status tell_progress(const lin_file_session *s, const lin_source *source, lin_status status, lin_error *err)
{
    const int stops =
        s->sink->progress && s->sink->progress(s->sink->context, seconds_done(source, s->sound), lin_source_duration(source));
    return status == LIN_OK && stops ? lin_fail(err, LIN_STOPPED, "the progress callback asked to stop") : status;
}

/* ---- saved, and resumed ---------------------------------------------------------------------------------------------------- */

static lin_status save(lin_file_session *s, const lin_source *source, lin_error *err)
{
    const lin_audio_format *format = lin_source_info(source);
    const lin_sound *sound = s->sound;
    lin_session *first = &s->lanes[0].stream;
    const lin_search *search = &first->utterances.decoder.decoding->search;
    const lin_state_about about = {.model = s->r->model->fingerprint,
                                   .rate_hz = format->rate_hz,
                                   .channels = format->channels,
                                   .channel = sound->channel,
                                   .lanes = lin_source_lanes(source),
                                   .samples = lin_source_position(source) + (sound->from ? sound->from->about.samples : 0),
                                   .frames = lin_session_frames(first),
                                   .rows = first->row,
                                   .row_seconds = s->r->row_seconds,
                                   .kind = (int32_t)search->kind,
                                   .search = search->id,
                                   .resets = first->utterances.options.ends.endpoints,
                                   .resets_from_s = first->utterances.options.ends.from_s,
                                   .rules = first->utterances.options.ends.rules};
    const lin_state_sizes sizes = {.front = lin_source_state_bytes(source),
                                   .decoder = lin_search_bytes(search),
                                   .image = lin_streams_image_bytes(s->network, 0)};
    lin_status status = lin_state_begin(&s->state, &about, &sizes, err);
    if (status == LIN_OK) status = lin_source_save(source, lin_state_front(&s->state), err);
    for (int l = 0; l < about.lanes && status == LIN_OK; l++)
        status = lin_session_save_lane(&s->lanes[l].stream, &s->state, l, err);
    if (status == LIN_OK && s->sink->saved) s->sink->saved(s->sink->context, &s->state);
    return status;
}

static lin_status does_not_fit(const lin_sound *sound, const char *have, const char *need, lin_error *err)
{
    return lin_fail(err, LIN_MISMATCH, "%s continues with %s; %s has %s", sound->from_name, need, sound->path, have);
}

// Of another model, rate or channel nothing can go on.
static lin_status check_fit(const lin_file_session *s, const lin_source *source, lin_error *err)
{
    const lin_sound *sound = s->sound;
    const lin_state_about *about = &sound->from->about;
    const lin_audio_format *format = lin_source_info(source);
    char have[64], need[64];
    if (about->model != s->r->model->fingerprint)
        return lin_fail(err, LIN_MISMATCH, "%s belongs to another model (%016llx); this one is %016llx", sound->from_name,
                        (unsigned long long)about->model, (unsigned long long)s->r->model->fingerprint);
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
    if (about->lanes != lin_source_lanes(source)) {
        snprintf(have, sizeof have, "%d", format->channels);
        snprintf(need, sizeof need, "%d channels", about->channels);
        return does_not_fit(sound, have, need, err);
    }
    return LIN_OK;
}

// Streams, decoders and endpoints; the source has been loaded before.
static lin_status resume(lin_file_session *s, lin_error *err)
{
    const lin_state *from = s->sound->from;
    lin_status status = LIN_OK;
    for (int l = 0; l < from->about.lanes && status == LIN_OK; l++) {
        lin_session *stream = &s->lanes[l].stream;
        status = lin_session_load_lane(stream, from, l, &stream->utterances.options.ends, err);
    }
    if (status == LIN_OK) return status;
    return lin_fail_at(err, status, "%s", s->sound->from_name);
}

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

// Frames of the block after one of `last`; 0: of the first one, which gives whole groups of 8 rows, as those after it do.
static int block_after(const lin_file_session *s, int last)
{
    const lin_config *c = &s->r->model->config;
    const int next = last ? 2 * last : FIRST_BLOCK, step = 8 * c->stack;
    if (s->sink->settled && next < BLOCK) return next;
    return last || c->ahead + step > BLOCK ? BLOCK : (BLOCK - c->ahead) / step * step + c->ahead;
}

// A block of a file that the network works on, and the next one, which is read meanwhile.
typedef struct two_blocks {
    lin_file_session *session;
    lin_source *source;
    float *now, *next;  // [lanes, room, D], [lanes, room_next, D]
    int n, n_next, room, room_next, last;
    lin_status fed, read;
    lin_error feed_error, read_error;
} two_blocks;

static void either_block(void *context, int piece, int thread)
{
    two_blocks *b = context;
    (void)thread;
    if (piece == 1) {
        b->read = lin_source_read(b->source, b->next, b->room_next, &b->n_next, &b->read_error);
        return;
    }
    const size_t lane = (size_t)b->room * (size_t)lin_source_bins(b->source);
    b->fed = LIN_OK;
    for (int l = 0; l < lin_source_lanes(b->source) && b->fed == LIN_OK; l++)
        b->fed = feed(b->session, l, b->now + (size_t)l * lane, b->n, b->last, &b->feed_error);
}

// All of a file, by several threads.
static lin_status run_file(lin_file_session *s, lin_source *source, lin_error *err)
{
    const size_t block = (size_t)lin_source_lanes(source) * BLOCK * (size_t)lin_source_bins(source);
    two_blocks b = {.session = s, .source = source, .now = s->frames, .next = s->frames + block,
                    .room = block_after(s, 0)};
    lin_status status = lin_source_read(source, b.now, b.room, &b.n, err);
    while (status == LIN_OK && b.n > 0) {
        if (is_stopped(s)) return lin_fail(err, LIN_STOPPED, "interrupted");
        b.room_next = block_after(s, b.room);
        b.last = lin_source_ended(source);
        lin_pool_run(s->beside, 2, either_block, &b);
        if (err && (b.fed != LIN_OK || b.read != LIN_OK)) *err = b.fed != LIN_OK ? b.feed_error : b.read_error;
        status = b.fed != LIN_OK ? b.fed : b.read;
        status = tell_progress(s, source, status, err);
        float *swap = b.now;
        b.now = b.next;
        b.next = swap;
        b.n = b.n_next;
        b.room = b.room_next;
    }
    return status;
}

// As it arrives, in constant memory.
static lin_status run_stream(lin_file_session *s, lin_source *source, int live, lin_error *err)
{
    const lin_sound *sound = s->sound;
    int lanes = lin_source_lanes(source), D = lin_source_bins(source), n = 1, room = 0;
    lin_status status = LIN_OK;
    const int closes = !sound->leave_open;
    if (s->beside && !live && closes && lin_source_duration(source) > 0) {
        status = run_file(s, source, err);
        n = 0;
    }
    while (status == LIN_OK && n > 0) {
        if (is_stopped(s)) {
            if (live) break;
            return lin_fail(err, LIN_STOPPED, "interrupted");
        }
        room = block_after(s, room);
        status = lin_source_read(source, s->frames, room, &n, err);
        for (int l = 0; l < lanes && status == LIN_OK && n > 0; l++) {
            status = feed(s, l, s->frames + (size_t)l * (size_t)room * (size_t)D, n, closes && lin_source_ended(source), err);
        }
        status = tell_progress(s, source, status, err);
    }
    if (status == LIN_OK && sound->leave_open) return save(s, source, err);
    for (int l = 0; l < lanes && status == LIN_OK; l++)
        status = lin_session_feed_end(&s->lanes[l].stream, err);
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
        lin_free(norm);
        if (status != LIN_OK) return status;
        mean = own;
        istd = own + D;
    }
    lin_moments_apply(frames->data, (size_t)frames->rows, D, mean, istd);
    return LIN_OK;
}

// All frames of a lane through a model that needs whole utterances, one utterance after the other.
static lin_status run_utterances(lin_file_session *s, int lane, const lin_matrix *all, lin_error *err)
{
    const lin_model *m = s->r->model;
    file_lane *l = &s->lanes[lane];
    const int ends = lin_decoder_judges(&l->utterances->decoder); // hypotheses reach back no further than an utterance
    lin_status status = LIN_OK;
    for (int at = 0, n; at < all->rows && status == LIN_OK; at += n) {
        const float *frames = all->data + (size_t)at * (size_t)all->columns;
        n = lin_next_utterance(frames, all->rows - at, all->columns, m->features.hop_ms, m->config.stack);
        const int offsets[2] = {0, n}, rows = lin_config_frames_out(&m->config, n);
        int taken, reset;
        if (is_stopped(s)) return lin_fail(err, LIN_STOPPED, "interrupted");
        status = lin_grow(&s->logp, &s->room, (size_t)rows * (size_t)s->r->V, sizeof *s->logp, "log-probabilities", err);
        if (status == LIN_OK) status = lin_encoder_run(s->worker, frames, offsets, 1, s->logp, err);
        if (status == LIN_OK) status = lin_utterances_push(l->utterances, s->logp, rows, NULL, &taken, &reset, err);
        if (status == LIN_OK) status = lin_decoder_hear(&l->utterances->decoder, frames, n, err);
        if (status == LIN_OK && ends && at + n < all->rows) status = lin_utterances_end(l->utterances, err);
    }
    return status;
}

// A model that looks at the whole utterance: all frames first.
static lin_status run_whole(lin_file_session *s, lin_source *source, lin_error *err)
{
    const lin_file_sink *sink = s->sink;
    int lanes = lin_source_lanes(source), D = lin_source_bins(source), n = 1;
    lin_matrix all[LIN_AUDIO_MAX_CHANNELS];
    memset(all, 0, sizeof all);
    lin_status status = LIN_OK;
    while (status == LIN_OK && n > 0) {
        if (is_stopped(s)) status = lin_fail(err, LIN_STOPPED, "interrupted");
        if (status == LIN_OK) status = lin_source_read(source, s->frames, BLOCK, &n, err);
        for (int l = 0; l < lanes && status == LIN_OK && n > 0; l++) {
            if (all[l].rows > INT_MAX - BLOCK) {
                status = lin_fail(err, LIN_UNSUPPORTED, "too long for a model that needs the whole utterance");
            } else {
                status = lin_matrix_reserve(&all[l], all[l].rows + n, D, err);
            }
            if (status != LIN_OK) break;
            memcpy(all[l].data + (size_t)all[l].rows * (size_t)D, s->frames + (size_t)l * BLOCK * (size_t)D,
                   (size_t)n * (size_t)D * sizeof(float));
            all[l].rows += n;
            if (sink->frames) status = sink->frames(sink->context, l, s->frames + (size_t)l * BLOCK * (size_t)D, n, err);
        }
        status = tell_progress(s, source, status, err);
    }
    for (int l = 0; l < lanes && status == LIN_OK && all[l].rows; l++) {
        if (s->r->model->speaker_norm) status = normalize(&all[l], s->sound, err);
        if (status == LIN_OK) status = run_utterances(s, l, &all[l], err);
    }
    for (int l = 0; l < lanes; l++) lin_matrix_free(&all[l]);
    return status;
}

// The sound as a source, at the place where processing begins.
static lin_status open_source(lin_file_session *s, lin_source **source, int *live, lin_error *err)
{
    const lin_sound *sound = s->sound;
    lin_feature_options options = lin_feature_options_default();
    options.fbank = s->r->fbank;
    options.channel = sound->channel;
    options.or_only = sound->or_only;
    lin_audio *audio;
    *source = NULL;
    lin_status status;
    if (sound->path && sound->is_command) {
        status = lin_audio_open_command(sound->path, sound->raw, &audio, err);
    } else if (sound->path) {
        status = lin_audio_open(sound->path, sound->raw, &audio, err);
    } else if (sound->samples) {
        status = lin_audio_open_memory("sound in memory", sound->samples, sound->n_samples, sound->rate_hz, sound->channels,
                                       &audio, err);
    } else {
        status = lin_audio_open_memory(sound->from_name, NULL, 0, sound->from->about.rate_hz, sound->from->about.channels, &audio,
                                       err);
    }
    if (status != LIN_OK) return status;
    if (lin_audio_info(audio)->notice[0]) lin_warn(&s->r->warnings, "%s", lin_audio_info(audio)->notice);
    *live = lin_audio_is_live(audio);
    status = lin_source_from_audio(audio, &options, source, err);
    if (status != LIN_OK) return status;
    if (sound->leave_open) lin_source_leave_open(*source);
    if (sound->leave_open) status = lin_source_keep_past(*source, err);
    if (status == LIN_UNSUPPORTED)
        return lin_fail(err, status, "%s: %s; bring it to %g Hz first", sound->path, err ? err->message : "",
                        options.fbank.sample_hz);
    const lin_state *from = sound->from;
    if (status == LIN_OK && (sound->part.start_s > 0 || s->end_s < INFINITY)) {
        status = lin_source_part(*source, sound->part.start_s, s->end_s, err);
        if (status == LIN_INVALID) return lin_fail_at(err, status, "%s", sound->path ? sound->path : "sound in memory");
    }
    if (status != LIN_OK || !from) return status;
    status = check_fit(s, *source, err);
    return status == LIN_OK ? lin_source_load(*source, lin_state_front(from), (size_t)from->sizes.front, err) : status;
}

static void report_on(lin_file_session *s, const lin_source *source, lin_file_report *report)
{
    const char *warning = lin_source_info(source)->warning;
    const size_t n = strlen(warning) < sizeof report->warning ? strlen(warning) : sizeof report->warning - 1;
    memcpy(report->warning, warning, n);
    report->incomplete = lin_source_info(source)->incomplete;
    report->seconds = seconds_done(source, s->sound);
    for (int l = 0; l < s->n_lanes && s->decodes; l++)
        s->sound->results[l].seconds = report->seconds < s->end_s ? report->seconds : s->end_s;
}

lin_status lin_file_session_run(lin_file_session *s, const lin_sound *sound, const lin_file_sink *sink, lin_file_report *report,
                                lin_error *err)
{
    lin_source *source;
    int live = 0;
    *report = (lin_file_report){.lanes = 0};
    s->sound = sound;
    s->sink = sink;
    s->end_s = sound->part.end_s > 0 ? sound->part.end_s : INFINITY;
    if ((sound->from || sound->leave_open) && !s->r->streams)
        return lin_fail(err, LIN_UNSUPPORTED, "this model needs whole utterances: it has no stream to save");
    if ((sound->from || sound->leave_open) && !s->decodes)
        return lin_fail(err, LIN_INVALID, "only a session that decodes can save and resume streams");
    if (s->decode.ends.endpoints && !s->r->streams)
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
    if (status == LIN_OK) status = finish_results(s, err);
    report->has_results = status == LIN_OK || (status == LIN_STOPPED && !sound->leave_open && finish_results(s, NULL) == LIN_OK);
    report_on(s, source, report);
    lin_source_close(source);
    return status;
}
