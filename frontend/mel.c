// mel.c - windows and mel triangles as Kaldi has them; see mel.h.

#include "frontend/mel.h"

#include <math.h>

#include "base/memory.h"

#define PI 3.14159265358979323846

enum {
    MAX_WINDOW = 65536, // samples; bounds the transform
    MAX_BINS = 1024
};

lin_fbank_config lin_fbank_default(void)
{
    return (lin_fbank_config){
        .sample_hz = 16000, .mel_bins = 40, .window_ms = 25, .hop_ms = 10, .low_hz = 20, .high_hz = 0, .preemphasis = 0.97};
}

static double mel_of_hz(double hz) { return 1127.0 * log(1.0 + hz / 700.0); }

static double upper_edge(const lin_fbank_config *c) { return c->high_hz > 0 ? c->high_hz : c->sample_hz / 2 + c->high_hz; }

int lin_mel_samples(const lin_fbank_config *c, double ms) { return (int)(c->sample_hz * 0.001 * ms); }

int lin_mel_transform(const lin_fbank_config *c)
{
    int p = 2;
    while (p < lin_mel_samples(c, c->window_ms)) p *= 2;
    return p;
}

double lin_mel_window(int window, int i) { return 32768 * pow(0.5 - 0.5 * cos(2 * PI * i / (window - 1)), 0.85); }

int lin_mel_triangle(const lin_fbank_config *c, int fft, int b, int *first, float *weights)
{
    double low = mel_of_hz(c->low_hz);
    double step = (mel_of_hz(upper_edge(c)) - low) / (c->mel_bins + 1);
    double left = low + b * step, centre = low + (b + 1) * step, right = low + (b + 2) * step;
    int count = 0;
    *first = 0;
    for (int i = 0; i < fft / 2; i++) {
        double mel = mel_of_hz(i * c->sample_hz / fft);
        if (mel <= left || mel >= right) continue;
        if (!count) *first = i;
        if (weights) weights[count] = (float)(mel <= centre ? (mel - left) / (centre - left) : (right - mel) / (right - centre));
        count++;
    }
    return count;
}

static double step_of(const lin_fbank_config *c) { return (mel_of_hz(upper_edge(c)) - mel_of_hz(c->low_hz)) / (c->mel_bins + 1); }

double lin_mel_centre_hz(const lin_fbank_config *c, int b)
{
    return 700.0 * (exp((mel_of_hz(c->low_hz) + (b + 1) * step_of(c)) / 1127.0) - 1.0);
}

double lin_mel_place(const lin_fbank_config *c, double hz) { return (mel_of_hz(hz) - mel_of_hz(c->low_hz)) / step_of(c) - 1; }

lin_status lin_fbank_check(const lin_fbank_config *c, lin_error *err)
{
    // Written so that a NaN fails the check.
    if (!(c->sample_hz >= 1000 && c->sample_hz <= 384000))
        return lin_fail(err, LIN_INVALID, "filterbank: sample_hz is %g; must be 1000 to 384000", c->sample_hz);
    if (c->mel_bins < 1 || c->mel_bins > MAX_BINS)
        return lin_fail(err, LIN_INVALID, "filterbank: mel_bins is %d; must be 1 to %d", c->mel_bins, MAX_BINS);
    if (!(c->window_ms > 0 && c->window_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: window_ms is %g; must be above 0 and at most 1000", c->window_ms);
    if (!(c->hop_ms > 0 && c->hop_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: hop_ms is %g; must be above 0 and at most 1000", c->hop_ms);
    int window = lin_mel_samples(c, c->window_ms);
    if (window < 2 || window > MAX_WINDOW)
        return lin_fail(err, LIN_INVALID, "filterbank: a window of %g ms is %d samples at %g Hz; must be 2 to %d", c->window_ms,
                        window, c->sample_hz, MAX_WINDOW);
    if (lin_mel_samples(c, c->hop_ms) < 1)
        return lin_fail(err, LIN_INVALID, "filterbank: a hop of %g ms is less than a sample at %g Hz", c->hop_ms, c->sample_hz);
    double high = upper_edge(c);
    if (!(c->low_hz >= 0 && c->low_hz < high && high <= c->sample_hz / 2))
        return lin_fail(err, LIN_INVALID, "filterbank: low_hz %g and high_hz %g must be 0 <= low < high <= %g", c->low_hz,
                        c->high_hz, c->sample_hz / 2);
    if (!(c->preemphasis >= 0 && c->preemphasis <= 1))
        return lin_fail(err, LIN_INVALID, "filterbank: preemphasis is %g; must be 0 to 1", c->preemphasis);
    if (!(c->level_db >= 0 && c->level_db <= 150) || (c->level_db > 0 && c->level_db < 1))
        return lin_fail(err, LIN_INVALID, "filterbank: level_db is %g; must be 1 to 150, or 0", c->level_db);
    int fft = lin_mel_transform(c), first;
    for (int b = 0; b < c->mel_bins; b++)
        if (!lin_mel_triangle(c, fft, b, &first, NULL))
            return lin_fail(err, LIN_INVALID, "filterbank: %d mel_bins are too many for a spectrum of %d lines: bin %d is empty",
                            c->mel_bins, fft / 2, b);
    return LIN_OK;
}

lin_status lin_fbank_table_create(const lin_fbank_config *c, lin_fbank_table *table, lin_error *err)
{
    *table = (lin_fbank_table){0};
    lin_status status = lin_fbank_check(c, err);
    if (status != LIN_OK) return status;
    const int window = lin_mel_samples(c, c->window_ms), fft = lin_mel_transform(c), D = c->mel_bins;
    const size_t bins = (size_t)fft / 2 + 1;
    float *shape = lin_calloc((size_t)window, sizeof *shape), *mel = lin_calloc((size_t)D * bins, sizeof *mel);
    int *from = lin_calloc((size_t)D, sizeof *from), *to = lin_calloc((size_t)D, sizeof *to);
    *table = (lin_fbank_table){.window_samples = window,
                               .hop_samples = lin_mel_samples(c, c->hop_ms),
                               .n_fft = fft,
                               .D = D,
                               .preemphasis = (float)c->preemphasis,
                               .floor = LIN_MEL_FLOOR,
                               .window = shape,
                               .mel = mel,
                               .mel_from = from,
                               .mel_to = to};
    if (!shape || !mel || !from || !to) {
        lin_fbank_table_free(table);
        return lin_no_memory(err, "a filterbank", (size_t)D * bins * sizeof *mel);
    }
    for (int i = 0; i < window; i++) shape[i] = (float)lin_mel_window(window, i);
    for (int b = 0; b < D; b++) {
        lin_mel_triangle(c, fft, b, &from[b], NULL);
        to[b] = from[b] + lin_mel_triangle(c, fft, b, &from[b], mel + (size_t)b * bins + from[b]);
    }
    return LIN_OK;
}

void lin_fbank_table_free(lin_fbank_table *table)
{
    lin_free((void *)(uintptr_t)table->window);
    lin_free((void *)(uintptr_t)table->mel);
    lin_free((void *)(uintptr_t)table->mel_from);
    lin_free((void *)(uintptr_t)table->mel_to);
    *table = (lin_fbank_table){0};
}
