// api_sound.c - linnet.h: whole sounds, as results, features and log-probabilities.

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/rows.h"
#include "linnet/api.h"
#include "linnet/utterances.h"

static const linnet_sound defaults = {.rate_hz = 16000, .channels = 1, .channel = LINNET_MIX, .end_s = INFINITY, .threads = 1};

void linnet_sound_init(linnet_sound *sound, size_t size) { lin_api_init(sound, size, &defaults, sizeof defaults); }

lin_status lin_api_sound(const linnet_sound *given, linnet_sound *taken, lin_sound *sound, lin_error *err)
{
    *taken = defaults;
    if (!given) return lin_fail(err, LIN_INVALID, "there is no sound");
    lin_status status = lin_api_take(taken, sizeof *taken, given, "sound", err);
    if (status != LIN_OK) return status;
    const linnet_sound *o = taken;
    if (!o->path && !o->samples) return lin_fail(err, LIN_INVALID, "the sound has neither a path nor samples");
    if (!o->path && o->n_samples > PTRDIFF_MAX / sizeof *o->samples)
        return lin_fail(err, LIN_INVALID, "n_samples is %zu, more than memory can hold: a number below 0?", o->n_samples);
    if (o->channel < LINNET_MIX) return lin_fail(err, LIN_INVALID, "channel is %d: LINNET_MIX, or 0 and more", o->channel);
    if (o->threads < 0 || o->threads > 1024) return lin_fail(err, LIN_INVALID, "threads is %d: 0 to 1024", o->threads);
    if (!(o->start_s >= 0 && o->end_s > o->start_s))
        return lin_fail(err, LIN_INVALID, "a part from %g to %g s is empty", o->start_s, o->end_s);
    *sound = (lin_sound){.path = o->path,
                         .samples = o->samples,
                         .n_samples = (int64_t)o->n_samples,
                         .rate_hz = o->rate_hz,
                         .channels = o->channels,
                         .channel = o->channel == LINNET_MIX ? LIN_CHANNEL_MIX : o->channel,
                         .part = {o->start_s, o->end_s}};
    return LIN_OK;
}

/* ---- results --------------------------------------------------------------------------------------------------------------- */

static int show_progress(void *context, double seconds, double duration)
{
    const linnet_sound *sound = context;
    return sound->progress && sound->progress(sound->context, seconds, duration);
}

// All of a sound into one result.
static lin_status run_decoder(const linnet_model *model, const lin_sound *sound, linnet_sound *o, const lin_decoding *decoding,
                              lin_file_report *report, lin_error *err)
{
    lin_file_session *session;
    const lin_file_sink sink = {.context = o, .progress = show_progress};
    const lin_endpoint_options rules = lin_endpoint_default();
    const lin_utterances_options how = {.decoding = decoding, .ends = lin_reset_auto(&model->r, &rules)};
    lin_status status = lin_file_session_create(&model->r, o->threads, &how, &session, err);
    if (status == LIN_OK) status = lin_file_session_run(session, sound, &sink, report, err);
    lin_file_session_destroy(session);
    return status;
}

static lin_status decode(linnet_model *model, const linnet_sound *given, const linnet_decoder *decoder, linnet_result **result,
                         lin_error *err)
{
    linnet_sound o;
    lin_sound sound;
    lin_file_report report;
    lin_decoding decoding;
    linnet_result *r = NULL;
    *result = NULL;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    lin_status status = lin_api_sound(given, &o, &sound, err);
    if (status == LIN_OK) status = lin_api_decoding(model, decoder, &decoding, err);
    if (status == LIN_OK) status = lin_api_result_create(model, &r, err);
    if (status != LIN_OK) return status;
    sound.results = &r->result;
    status = run_decoder(model, &sound, &o, &decoding, &report, err);
    if (status == LIN_OK) {
        r->info.channels = report.channels;
        r->info.incomplete = report.incomplete;
        memcpy(r->warning, report.warning, sizeof r->warning);
        status = lin_api_result_update(r, 1, err);
    }
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

linnet_status linnet_decode(linnet_model *model, const linnet_sound *sound, linnet_decoder *decoder, linnet_result **result,
                            linnet_error *err)
{
    return decode(model, sound, decoder, result, err);
}

linnet_status linnet_decode_file(linnet_model *model, const char *path, linnet_decoder *decoder, linnet_result **result,
                                 linnet_error *err)
{
    linnet_sound sound;
    linnet_sound_init(&sound, sizeof sound);
    sound.path = path;
    return linnet_decode(model, &sound, decoder, result, err);
}

/* ---- arrays ---------------------------------------------------------------------------------------------------------------- */

typedef struct array_job {
    const linnet_sound *sound;
    float *rows; // [n, columns]
    size_t n, capacity, columns; // capacity: floats
    int stopped;
} array_job;

static lin_status append(array_job *job, const float *rows, int n, lin_error *err)
{
    const size_t more = (size_t)n * job->columns, used = job->n * job->columns;
    lin_status status = lin_grow(&job->rows, &job->capacity, used + more, sizeof *job->rows, "rows", err);
    if (status != LIN_OK) return status;
    if (more) memcpy(job->rows + used, rows, more * sizeof *rows);
    job->n += (size_t)n;
    return LIN_OK;
}

static lin_status keep_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    return append(context, logp, n, err);
}

static int array_progress(void *context, double seconds, double duration)
{
    array_job *job = context;
    if (job->sound->progress && job->sound->progress(job->sound->context, seconds, duration)) job->stopped = 1;
    return job->stopped;
}

static lin_status run_network(const linnet_model *model, const lin_sound *sound, array_job *job, lin_error *err)
{
    lin_file_session *session;
    lin_file_report report;
    const lin_file_sink sink = {.context = job, .rows = keep_rows, .progress = array_progress};
    job->columns = (size_t)model->r.V;
    lin_status status = lin_file_session_create(&model->r, job->sound->threads, NULL, &session, err);
    if (status == LIN_OK && job->sound->search) lin_file_session_search(session);
    if (status == LIN_OK) status = lin_file_session_run(session, sound, &sink, &report, err);
    lin_file_session_destroy(session);
    return status;
}

static lin_status run_front_end(const linnet_model *model, const lin_sound *sound, array_job *job, lin_error *err)
{
    enum { BLOCK = 1024 };
    lin_feature_options options = lin_feature_options_default();
    lin_audio *audio;
    lin_source *source;
    options.fbank = model->r.fbank;
    options.channel = sound->channel;
    lin_status status = sound->path ? lin_audio_open(sound->path, NULL, &audio, err)
                                    : lin_audio_open_memory("sound in memory", sound->samples, sound->n_samples, sound->rate_hz,
                                                            sound->channels, &audio, err);
    if (status == LIN_OK) status = lin_source_from_audio(audio, &options, &source, err);
    if (status != LIN_OK) return status;
    job->columns = (size_t)lin_source_bins(source);
    if (sound->part.start_s > 0 || sound->part.end_s < INFINITY)
        status = lin_source_part(source, sound->part.start_s, sound->part.end_s, err);
    for (int n = 1; status == LIN_OK && n > 0 && !job->stopped;) {
        status = lin_grow(&job->rows, &job->capacity, (job->n + BLOCK) * job->columns, sizeof *job->rows, "features", err);
        if (status == LIN_OK) status = lin_source_read(source, job->rows + job->n * job->columns, BLOCK, &n, err);
        if (status == LIN_OK) job->n += (size_t)n;
        array_progress(job, lin_source_seconds(source), lin_source_duration(source));
    }
    lin_source_close(source);
    return status;
}

static lin_status make_array(linnet_model *model, const linnet_sound *given, int frames_only, float **rows, size_t *n,
                             lin_error *err)
{
    linnet_sound o;
    lin_sound sound;
    *rows = NULL;
    *n = 0;
    if (!model) return lin_fail(err, LIN_INVALID, "there is no model");
    lin_status status = lin_api_sound(given, &o, &sound, err);
    if (status != LIN_OK) return status;
    array_job job = {.sound = &o};
    status = frames_only ? run_front_end(model, &sound, &job, err) : run_network(model, &sound, &job, err);
    if (status == LIN_OK && job.stopped) status = lin_fail(err, LIN_STOPPED, "the progress callback asked to stop");
    if (status != LIN_OK) {
        lin_free(job.rows);
        return status;
    }
    *rows = job.rows;
    *n = job.n;
    return LIN_OK;
}

linnet_status linnet_features(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n, linnet_error *err)
{
    return make_array(model, sound, 1, rows, n, err);
}

linnet_status linnet_posteriors(linnet_model *model, const linnet_sound *sound, float **rows, size_t *n, linnet_error *err)
{
    return make_array(model, sound, 0, rows, n, err);
}

static lin_status decode_rows(linnet_model *model, const float *rows, size_t n, const linnet_decoder *decoder,
                              linnet_result **result, lin_error *err)
{
    lin_decoding decoding;
    lin_utterances *u = NULL;
    linnet_result *r = NULL;
    int taken, reset;
    *result = NULL;
    if (!model || (n && !rows)) return lin_fail(err, LIN_INVALID, "there %s", model ? "are no rows" : "is no model");
    if (n > INT_MAX) return lin_fail(err, LIN_UNSUPPORTED, "%zu rows are more than can be decoded at once", n);
    lin_status status = lin_rows_check(rows, (int64_t)n, model->r.V, 0, err);
    if (status == LIN_OK) status = lin_api_decoding(model, decoder, &decoding, err);
    if (status == LIN_OK) status = lin_api_result_create(model, &r, err);
    if (status != LIN_OK) return status;
    status = lin_utterances_create(&model->r, &(lin_utterances_options){.decoding = &decoding}, NULL, &u, err);
    if (status == LIN_OK) {
        lin_utterances_begin(u, &r->result);
        status = lin_utterances_push(u, rows, (int)n, NULL, &taken, &reset, err);
    }
    if (status == LIN_OK) status = lin_utterances_finish(u, err);
    r->result.seconds = (double)n * model->r.row_seconds;
    if (status == LIN_OK) status = lin_api_result_update(r, 1, err);
    lin_utterances_destroy(u);
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

linnet_status linnet_decode_rows(linnet_model *model, const float *rows, size_t n, linnet_decoder *decoder,
                                 linnet_result **result, linnet_error *err)
{
    return decode_rows(model, rows, n, decoder, result, err);
}
