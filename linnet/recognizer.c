// recognizer.c - an opened model, and frames for it; see recognizer.h.

#include "linnet/recognizer.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "linnet/find.h"
#include "model/model.h"

lin_status lin_recognizer_open_encoder(const char *path, const void *bytes, size_t n, const char *device,
                                       lin_precision precision, lin_model **model, lin_encoder **encoder, lin_error *err)
{
    const lin_ops *ops;
    const int eight_bits = precision == LIN_PRECISION_INT8 || precision == LIN_PRECISION_AUTO;
    *model = NULL;
    *encoder = NULL;
    LIN_TRY(lin_backend_open(device, precision, &ops, err));
    if (bytes) LIN_TRY(lin_model_load_memory(bytes, n, path, model, err));
    else if (ops->packs_halves) LIN_TRY(lin_model_open(path, eight_bits, model, err));
    else LIN_TRY(lin_model_load(path, model, err));
    if (precision == LIN_PRECISION_AUTO && ops == lin_ops_cpu() && (*model)->eight_bits) ops = lin_ops_cpu_int8();
    const lin_status status = lin_encoder_create(*model, ops, encoder, err);
    if (status == LIN_OK) return LIN_OK;
    lin_model_destroy(*model);
    *model = NULL;
    return status;
}

static lin_status open_recognizer(lin_recognizer *r, const char *name, const void *bytes, size_t n, const char *device,
                                  lin_precision precision, const lin_warnings *warnings, lin_error *err)
{
    memset(r, 0, sizeof *r);
    lin_status status = lin_recognizer_open_encoder(name, bytes, n, device, precision, &r->model, &r->encoder, err);
    if (status == LIN_OK) status = lin_model_check_sound(r->model, name, err);
    if (status == LIN_OK) status = lin_phones_create(r->model->phones, &r->phones, err);
    if (status != LIN_OK) {
        lin_recognizer_close(r);
        return status;
    }
    const lin_model *m = r->model;
    if (warnings) r->warnings = *warnings;
    r->fbank = lin_fbank_from_model(&m->features, m->config.mel_bins);
    r->fbank.dereverb = 1;
    r->forgets = m->config.decay != LIN_DECAY_NONE;
    r->streams = !lin_config_why_not_stream(&m->config) && !m->speaker_norm;
    r->row_seconds = m->config.stack * m->features.hop_ms / 1000;
    r->delay_s = m->delay_ms / 1000.0;
    r->V = m->config.outputs;
    return LIN_OK;
}

lin_status lin_recognizer_open(lin_recognizer *r, const char *path, const char *device, lin_precision precision,
                               const lin_warnings *warnings, lin_error *err)
{
    char found[4096];
    memset(r, 0, sizeof *r);
    LIN_TRY(lin_find_model(path, found, sizeof found, err));
    if (!strpbrk(found, "/.") && access(found, F_OK) != 0)
        return lin_fail(err, LIN_IO, "there is no model '%s': name a file, or a model in the folder of the language (English has "
                                     "default, offline and small)", found);
    return open_recognizer(r, found, NULL, 0, device, precision, warnings, err);
}

lin_status lin_recognizer_open_memory(lin_recognizer *r, const void *bytes, size_t n, const char *device, lin_precision precision,
                                      const lin_warnings *warnings, lin_error *err)
{
    return open_recognizer(r, "model in memory", bytes, n, device, precision, warnings, err);
}

void lin_recognizer_close(lin_recognizer *r)
{
    lin_phones_destroy(r->phones);
    lin_encoder_destroy(r->encoder);
    lin_model_destroy(r->model);
    memset(r, 0, sizeof *r);
}

/* ---- frames of whole files ------------------------------------------------------------------------------------------------- */

lin_fbank_config lin_fbank_from_model(const lin_features *features, int mel_bins)
{
    lin_fbank_config c = lin_fbank_default();
    c.sample_hz = features->sample_hz;
    c.mel_bins = mel_bins;
    c.window_ms = features->window_ms;
    c.hop_ms = features->hop_ms;
    c.low_hz = features->low_hz;
    c.high_hz = features->high_hz;
    c.preemphasis = features->preemphasis;
    c.level_db = features->level_db;
    return c;
}

lin_features lin_fbank_to_model(const lin_fbank_config *config)
{
    lin_features f = lin_features_default();
    f.sample_hz = config->sample_hz;
    f.window_ms = config->window_ms;
    f.hop_ms = lin_mel_samples(config, config->hop_ms) * 1000.0 / config->sample_hz; // whole samples: times do not drift
    f.low_hz = config->low_hz;
    f.high_hz = config->high_hz;
    f.preemphasis = config->preemphasis;
    f.level_db = config->level_db;
    return f;
}

// Room for that many rows; existing rows are kept.
static lin_status reserve(lin_matrix *matrix, int rows, int columns, lin_error *err)
{
    if (matrix->columns != columns) {
        lin_matrix_free(matrix);
        matrix->columns = columns;
    }
    if (rows <= matrix->capacity) return LIN_OK;
    int capacity = matrix->capacity > INT_MAX / 2 ? INT_MAX : 2 * matrix->capacity;
    if (capacity < rows) capacity = rows;
    float *data = lin_resize(matrix->data, (size_t)capacity * (size_t)columns, sizeof *data);
    if (!data) return lin_no_memory(err, "features", (size_t)capacity * (size_t)columns * sizeof *data);
    matrix->data = data;
    matrix->capacity = capacity;
    return LIN_OK;
}

lin_status lin_matrix_append(lin_matrix *matrix, const float *rows, int n, int columns, lin_error *err)
{
    if (n > INT_MAX - matrix->rows) return lin_fail(err, LIN_UNSUPPORTED, "the sound is too long to be held in memory");
    LIN_TRY(reserve(matrix, matrix->rows + n, columns, err));
    if (n) memcpy(matrix->data + (size_t)matrix->rows * (size_t)columns, rows, (size_t)n * (size_t)columns * sizeof *rows);
    matrix->rows += n;
    return LIN_OK;
}

void lin_matrix_free(lin_matrix *matrix)
{
    lin_free(matrix->data);
    *matrix = (lin_matrix){NULL, 0, 0, 0};
}

// The sum over a window that now ends with frame t; frames before `from` were never in it.
static double slide(double sum, const float *frames, int D, int t, int from, int window)
{
    const float *in = frames + (size_t)t * (size_t)D, *out = in - (size_t)window * (size_t)D;
    for (int d = 0; d < D; d++) sum += (double)in[d] - (t - window >= from ? (double)out[d] : 0);
    return sum;
}

int lin_next_utterance(const float *frames, int n, int D, double hop_ms, int stack)
{
    const int longest = (int)(36000 / hop_ms), shortest = longest / 9, window = (int)(500 / hop_ms) + 1;
    if (n <= longest || shortest < window) return n;
    const int last = longest < n - window ? longest : n - window; // what is left is at least a window
    double sum = 0, low = INFINITY, high = -INFINITY, least = INFINITY;
    for (int t = 0; t < last; t++) {
        sum = slide(sum, frames, D, t, 0, window);
        if (t < window - 1) continue;
        low = fmin(low, sum);
        high = fmax(high, sum);
    }
    const double quiet = low + (high - low) / 5;
    int at = last, in_pause = 0;
    sum = 0;
    for (int t = shortest - window; t < last && !(in_pause && sum > quiet); t++) {
        sum = slide(sum, frames, D, t, shortest - window, window);
        if (t < shortest - 1 || sum >= least) continue;
        in_pause |= sum <= quiet;
        least = sum;
        at = t + 1 - window / 2;
    }
    return at / stack * stack;
}

static lin_status open_cut(const lin_cut *cut, const lin_feature_options *options, lin_source **source, lin_error *err)
{
    lin_feature_options own = *options;
    lin_audio *audio;
    *source = NULL;
    if (cut->channel) own.channel = cut->channel - 1, own.or_only = 1;
    lin_status status = cut->is_command ? lin_audio_open_command(cut->path, NULL, &audio, err)
                                         : lin_audio_open(cut->path, NULL, &audio, err);
    if (status == LIN_OK) status = lin_source_from_audio(audio, &own, source, err);
    if (status == LIN_OK && lin_cut_is_part(cut)) {
        const double end_s = cut->part.end_s > 0 ? cut->part.end_s : INFINITY;
        status = lin_source_part(*source, cut->part.start_s, end_s, err);
    }
    if (status == LIN_OK) return LIN_OK;
    lin_source_close(*source);
    return status == LIN_INVALID ? lin_fail_at(err, status, "%.300s", cut->path) : status;
}

static lin_status read_all(lin_source *source, const char *path, lin_matrix *frames, lin_error *err)
{
    enum { BLOCK = 1024 };
    const int D = lin_source_bins(source);
    if (lin_source_lanes(source) != 1) return lin_fail(err, LIN_INVALID, "%s: one channel at a time here, not each", path);
    for (int n = 1; n > 0; frames->rows += n) {
        if (frames->rows > INT_MAX - BLOCK) return lin_fail(err, LIN_UNSUPPORTED, "%s is too long to be held in memory", path);
        LIN_TRY(reserve(frames, frames->rows + BLOCK, D, err));
        LIN_TRY(lin_source_read(source, frames->data + (size_t)frames->rows * (size_t)D, BLOCK, &n, err));
    }
    return LIN_OK;
}

lin_status lin_cut_read(const lin_cut *cut, const lin_feature_options *options, lin_matrix *frames, lin_audio_format *format,
                        lin_error *err)
{
    lin_source *source;
    frames->rows = 0;
    LIN_TRY(open_cut(cut, options, &source, err));
    const lin_status status = read_all(source, cut->path, frames, err);
    if (format) *format = *lin_source_info(source);
    lin_source_close(source);
    return status;
}

/* ---- a second network ------------------------------------------------------------------------------------------------------ */

struct lin_second_network {
    const lin_recognizer *r;
    lin_worker *worker;
    double row_s;      // from one row of the first model to the next
    lin_matrix frames; // an utterance's at the hop of this model, where the first has another one
    float *logp;       // [rows, V], of a piece
    size_t room;
};

static lin_status check_same_frames(const lin_recognizer *first, const lin_recognizer *second, lin_error *err)
{
    const lin_model *a = first->model, *b = second->model;
    const char *differs = NULL;
    lin_features features = b->features;
    features.hop_ms = a->features.hop_ms;
    if (a->speaker_norm || b->speaker_norm)
        return lin_fail(err, LIN_UNSUPPORTED, "the %s model is normalised by speaker, so its frames fit no other model; use "
                                              "another model", b->speaker_norm ? "second" : "first");
    if (a->config.mel_bins != b->config.mel_bins || !lin_features_equal(&a->features, &features)) differs = "features";
    else if (a->features.level_db != b->features.level_db) differs = "levels of speech";
    else if (a->config.stack != b->config.stack) differs = "steps";
    else if (strcmp(a->phones, b->phones) != 0) differs = "phones";
    if (!differs) return LIN_OK;
    return lin_fail(err, LIN_MISMATCH, "the model and the second one have different %s; features except the hop, level, step and "
                                       "phones must be the same (linnet info MODEL)", differs);
}

lin_status lin_second_network_create(const lin_recognizer *first, const lin_recognizer *second, int n_threads, int language,
                                     lin_second_network **network, lin_error *err)
{
    *network = NULL;
    LIN_TRY(check_same_frames(first, second, err));
    lin_second_network *s = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a second network", sizeof *s);
    s->r = second;
    s->row_s = first->row_seconds;
    const lin_status status = lin_worker_create(second->encoder, n_threads, &s->worker, err);
    if (status == LIN_OK) {
        s->worker->search = language;
        *network = s;
    } else lin_second_network_destroy(s);
    return status;
}

void lin_second_network_destroy(lin_second_network *s)
{
    if (!s) return;
    if (s->worker) lin_worker_destroy(s->worker);
    lin_matrix_free(&s->frames);
    lin_free(s->logp);
    lin_free(s);
}

// frames [n, D] at the hop of this model: each on the straight line between the two that are nearest in time, whose windows
// overlap by more than half. *n becomes their number.
static lin_status change_hop(lin_second_network *s, const float **frames, int *n, lin_error *err)
{
    const int D = s->r->model->config.mel_bins;
    const double step = s->r->row_seconds / s->row_s; // a row has as many frames in both
    if (step == 1 || *n < 2) return LIN_OK;
    const int made = 1 + (int)((*n - 1) / step);
    s->frames.rows = 0;
    LIN_TRY(reserve(&s->frames, made, D, err));
    for (int i = 0; i < made; i++) {
        const double at = i * step;
        const int from = at < *n - 2 ? (int)at : *n - 2;
        const float part = (float)(at - from), *a = *frames + (size_t)from * (size_t)D, *b = a + D;
        float *to = s->frames.data + (size_t)i * (size_t)D;
        for (int d = 0; d < D; d++) to[d] = a[d] + part * (b[d] - a[d]);
    }
    *frames = s->frames.data;
    *n = s->frames.rows = made;
    return LIN_OK;
}

lin_status lin_second_network_run(lin_second_network *s, const float *frames, int n, lin_rows_taker take, void *context,
                                  lin_error *err)
{
    const lin_model *m = s->r->model;
    const int D = m->config.mel_bins;
    LIN_TRY(change_hop(s, &frames, &n, err));
    for (int at = 0, some; at < n; at += some) {
        const float *piece = frames + (size_t)at * (size_t)D;
        some = lin_next_utterance(piece, n - at, D, m->features.hop_ms, m->config.stack);
        const int offsets[2] = {0, some}, rows = lin_config_frames_out(&m->config, some);
        LIN_TRY(lin_grow(&s->logp, &s->room, (size_t)rows * (size_t)s->r->V, sizeof *s->logp, "log-probabilities", err));
        LIN_TRY(lin_encoder_run(s->worker, piece, offsets, 1, s->logp, err));
        LIN_TRY(take(context, s->logp, rows, err));
    }
    return LIN_OK;
}
