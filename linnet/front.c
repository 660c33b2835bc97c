// front.c - the bridge between frontend/ and model/; see front.h.

#include "linnet/front.h"

#include <limits.h>
#include <math.h>

#include "base/memory.h"

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
    f.sample_hz = (int)lround(config->sample_hz);
    f.window_ms = config->window_ms;
    f.hop_ms = config->hop_ms;
    f.low_hz = config->low_hz;
    f.high_hz = config->high_hz;
    f.preemphasis = config->preemphasis;
    f.level_db = config->level_db;
    return f;
}

lin_status lin_matrix_reserve(lin_matrix *matrix, int rows, int columns, lin_error *err)
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

int lin_front_next_utterance(const float *frames, int n, int D, double hop_ms, int stack)
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

static lin_status open_cut(const lin_cut *cut, const lin_pcm_format *raw, const lin_feature_options *options,
                            lin_source **source, lin_error *err)
{
    lin_feature_options own = *options;
    lin_audio *audio;
    *source = NULL;
    if (cut->channel) own.channel = cut->channel - 1, own.or_only = 1;
    lin_status status = cut->is_command ? lin_audio_open_command(cut->path, raw, &audio, err)
                                         : lin_audio_open(cut->path, raw, &audio, err);
    if (status == LIN_OK) status = lin_source_from_audio(audio, &own, source, err);
    if (status == LIN_OK && lin_cut_is_part(cut)) {
        const double end_s = cut->part.end_s > 0 ? cut->part.end_s : INFINITY;
        status = lin_source_part(*source, cut->part.start_s, end_s, err);
    }
    if (status == LIN_OK) return LIN_OK;
    lin_source_close(*source);
    return status == LIN_INVALID ? lin_fail_at(err, status, "%.300s", cut->path) : status;
}

lin_status lin_front_read_all(const lin_cut *cut, const lin_pcm_format *raw, const lin_feature_options *options,
                              lin_matrix *frames, lin_audio_format *format, lin_error *err)
{
    enum { BLOCK = 1024 };
    const char *path = cut->path;
    lin_source *source;
    frames->rows = 0;
    lin_status status = open_cut(cut, raw, options, &source, err);
    if (status != LIN_OK) return status;
    int D = lin_source_bins(source), n = 1;
    if (lin_source_lanes(source) != 1) status = lin_fail(err, LIN_INVALID, "%s: one channel at a time here, not each", path);
    while (status == LIN_OK && n > 0) {
        if (frames->rows > INT_MAX - BLOCK) {
            status = lin_fail(err, LIN_UNSUPPORTED, "%s is too long to be held in memory", path);
            break;
        }
        status = lin_matrix_reserve(frames, frames->rows + BLOCK, D, err);
        if (status == LIN_OK) {
            status = lin_source_read(source, frames->data + (size_t)frames->rows * (size_t)D, BLOCK, &n, err);
        }
        if (status == LIN_OK) frames->rows += n;
    }
    if (format) *format = *lin_source_info(source);
    lin_source_close(source);
    return status;
}
