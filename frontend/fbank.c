#include "frontend/fbank.h"

#include <kiss_fftr.h>
#include <math.h>
#include <string.h>

#include "kernels/memory.h"

#define PI 3.14159265358979323846

enum {
    LANES = 8,          // partial sums of a reduction, so that it vectorises without reassociation
    MAX_WINDOW = 65536, // samples; bounds the transform
    MAX_BINS = 1024
};

// Digital silence is ln of this (Kaldi: std::numeric_limits<float>::epsilon()).
static const float floor_power = 1.1920928955078125e-07f;

// The part of the spectrum under one triangle: weights[offset ..][count] belong to the lines first, first + 1, ...
// count is rounded up to LANES, the weights beyond the triangle are 0.
typedef struct triangle {
    int first, count, offset;
} triangle;

struct lin_fbank {
    int bins, window, hop, fft;
    double preemphasis;
    int held;               // samples in `samples`
    int skip;               // samples to drop before the next window, where the hop is longer than the window
    float *samples;         // [window]
    double *shape;          // [window], the povey window times 32768
    float *wave;            // [fft], zero beyond the window
    float *power;           // [fft / 2 + 1 + LANES], zero beyond the spectrum
    kiss_fft_cpx *spectrum; // [fft / 2 + 1]
    triangle *triangles;    // [bins]
    float *weights;
    kiss_fftr_cfg plan;
    lin_arena arena;
};

lin_fbank_config lin_fbank_default(void)
{
    return (lin_fbank_config){
        .sample_hz = 16000, .mel_bins = 40, .window_ms = 25, .hop_ms = 10, .low_hz = 20, .high_hz = 0, .preemphasis = 0.97};
}

static double mel_of_hz(double hz) { return 1127.0 * log(1.0 + hz / 700.0); }

static double upper_edge(const lin_fbank_config *c) { return c->high_hz > 0 ? c->high_hz : c->sample_hz / 2 + c->high_hz; }

static int samples_of_ms(double sample_hz, double ms) { return (int)(sample_hz * 0.001 * ms); }

static int power_of_two(int n)
{
    int p = 2;
    while (p < n) p *= 2;
    return p;
}

// The lines of the spectrum strictly inside triangle b of `bins`, and their weights where `weights` is given. Returns their number.
static int triangle_weights(const lin_fbank_config *c, int fft, int b, int *first, float *weights)
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

lin_status lin_fbank_check(const lin_fbank_config *c, lin_error *err)
{
    // Written so that a NaN fails.
    if (!(c->sample_hz >= 1000 && c->sample_hz <= 384000))
        return lin_fail(err, LIN_INVALID, "filterbank: sample_hz is %g, must be 1000 to 384000", c->sample_hz);
    if (c->mel_bins < 1 || c->mel_bins > MAX_BINS)
        return lin_fail(err, LIN_INVALID, "filterbank: mel_bins is %d, must be 1 to %d", c->mel_bins, MAX_BINS);
    if (!(c->window_ms > 0 && c->window_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: window_ms is %g, must be above 0 and at most 1000", c->window_ms);
    if (!(c->hop_ms > 0 && c->hop_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: hop_ms is %g, must be above 0 and at most 1000", c->hop_ms);
    int window = samples_of_ms(c->sample_hz, c->window_ms);
    if (window < 2 || window > MAX_WINDOW)
        return lin_fail(err, LIN_INVALID, "filterbank: a window of %g ms is %d samples at %g Hz, must be 2 to %d", c->window_ms,
                        window, c->sample_hz, MAX_WINDOW);
    if (samples_of_ms(c->sample_hz, c->hop_ms) < 1)
        return lin_fail(err, LIN_INVALID, "filterbank: a hop of %g ms is less than a sample at %g Hz", c->hop_ms, c->sample_hz);
    double high = upper_edge(c);
    if (!(c->low_hz >= 0 && c->low_hz < high && high <= c->sample_hz / 2))
        return lin_fail(err, LIN_INVALID, "filterbank: low_hz %g and high_hz %g must be 0 <= low < high <= %g", c->low_hz,
                        c->high_hz, c->sample_hz / 2);
    if (!(c->preemphasis >= 0 && c->preemphasis <= 1))
        return lin_fail(err, LIN_INVALID, "filterbank: preemphasis is %g, must be 0 to 1", c->preemphasis);
    int fft = power_of_two(window), first;
    for (int b = 0; b < c->mel_bins; b++)
        if (!triangle_weights(c, fft, b, &first, NULL))
            return lin_fail(err, LIN_INVALID, "filterbank: %d mel_bins are too many for a spectrum of %d lines: bin %d is empty",
                            c->mel_bins, fft / 2, b);
    return LIN_OK;
}

static void build_tables(lin_fbank *f, const lin_fbank_config *c)
{
    for (int i = 0; i < f->window; i++) f->shape[i] = 32768 * pow(0.5 - 0.5 * cos(2 * PI * i / (f->window - 1)), 0.85);
    int offset = 0;
    for (int b = 0; b < f->bins; b++) {
        triangle *t = &f->triangles[b];
        int count = triangle_weights(c, f->fft, b, &t->first, f->weights + offset);
        t->offset = offset;
        t->count = (count + LANES - 1) / LANES * LANES;
        offset += t->count;
    }
}

lin_status lin_fbank_create(const lin_fbank_config *c, lin_fbank **out, lin_error *err)
{
    *out = NULL;
    lin_status status = lin_fbank_check(c, err);
    if (status != LIN_OK) return status;
    lin_fbank *f = lin_calloc(1, sizeof *f);
    if (!f) return lin_no_memory(err, "a filterbank", sizeof *f);
    f->bins = c->mel_bins;
    f->window = samples_of_ms(c->sample_hz, c->window_ms);
    f->hop = samples_of_ms(c->sample_hz, c->hop_ms);
    f->fft = power_of_two(f->window);
    f->preemphasis = c->preemphasis;

    // A line lies under at most two triangles, and each triangle's weights are rounded up to LANES.
    size_t n_weights = (size_t)f->fft + (size_t)f->bins * LANES;
    size_t lines = (size_t)f->fft / 2 + 1, plan_bytes = 0;
    kiss_fftr_alloc(f->fft, 0, NULL, &plan_bytes);
    size_t floats = (size_t)f->window + (size_t)f->fft + lines + LANES + n_weights;
    size_t bytes = sizeof(float) * floats + sizeof(double) * (size_t)f->window + sizeof(kiss_fft_cpx) * lines +
                   sizeof(triangle) * (size_t)f->bins + plan_bytes + 8 * 64;
    status = lin_arena_init(&f->arena, bytes, err);
    if (status != LIN_OK) {
        lin_free(f);
        return status;
    }
    memset(f->arena.base, 0, bytes);
    f->samples = lin_arena_take(&f->arena, (size_t)f->window, sizeof(float));
    f->shape = lin_arena_take(&f->arena, (size_t)f->window, sizeof(double));
    f->wave = lin_arena_take(&f->arena, (size_t)f->fft, sizeof(float));
    f->power = lin_arena_take(&f->arena, lines + LANES, sizeof(float));
    f->spectrum = lin_arena_take(&f->arena, lines, sizeof(kiss_fft_cpx));
    f->triangles = lin_arena_take(&f->arena, (size_t)f->bins, sizeof(triangle));
    f->weights = lin_arena_take(&f->arena, n_weights, sizeof(float));
    f->plan = kiss_fftr_alloc(f->fft, 0, lin_arena_take(&f->arena, plan_bytes, 1), &plan_bytes);
    build_tables(f, c);
    *out = f;
    return LIN_OK;
}

static float sum_lanes(const float *s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); }

// Scaled, without its mean, pre-emphasised and shaped: wave[0 .. window-1] from x[0 .. window-1]. In double: pre-emphasis takes a
// strong low tone away by a subtraction whose float rounding would cover what is faint above it (3e-3 in the logarithm at 87 dB
// below).
static void shape_window(lin_fbank *f, const float *restrict x)
{
    int n = f->window, i = 0;
    double part[LANES] = {0};
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) part[l] += (double)x[i + l];
    for (int l = 0; i < n; i++, l++) part[l] += (double)x[i];
    double sum = ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
    double a = f->preemphasis, offset = (1 - a) * sum / n;

    // (x[k] - mean) - a (x[k-1] - mean), the first sample being its own predecessor; shape includes the scale 32768.
    float *restrict y = f->wave;
    const double *restrict w = f->shape;
    y[0] = (float)(((1 - a) * (double)x[0] - offset) * w[0]);
    for (int k = 1; k < n; k++) y[k] = (float)(((double)x[k] - a * (double)x[k - 1] - offset) * w[k]);
}

static void compute_frame(lin_fbank *f, const float *x, float *frame)
{
    shape_window(f, x);
    kiss_fftr(f->plan, f->wave, f->spectrum);
    int lines = f->fft / 2;
    float *restrict power = f->power;
    const kiss_fft_cpx *restrict s = f->spectrum;
    for (int i = 0; i < lines; i++) power[i] = s[i].r * s[i].r + s[i].i * s[i].i;
    for (int b = 0; b < f->bins; b++) {
        const triangle *t = &f->triangles[b];
        const float *restrict w = f->weights + t->offset, *restrict p = power + t->first;
        float part[LANES] = {0};
        for (int i = 0; i < t->count; i += LANES)
            for (int l = 0; l < LANES; l++) part[l] += w[i + l] * p[i + l];
        float energy = sum_lanes(part);
        frame[b] = logf(energy > floor_power ? energy : floor_power);
    }
}

int lin_fbank_frames_out(const lin_fbank *f, int n)
{
    long long total = (long long)f->held + n - f->skip;
    return total < f->window ? 0 : (int)(1 + (total - f->window) / f->hop);
}

lin_status lin_fbank_push(lin_fbank *f, const float *samples, int n, float *frames, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    int expected = lin_fbank_frames_out(f, n);
    if (n < 0) return lin_fail(err, LIN_INVALID, "filterbank: a push of %d samples", n);
    if (capacity < expected)
        return lin_fail(err, LIN_TOO_SMALL, "filterbank: %d samples give %d frames, but there is room for %d", n, expected,
                        capacity);
    int done = 0;
    for (int at = 0; at < n;) {
        if (f->skip) {
            int drop = f->skip < n - at ? f->skip : n - at;
            f->skip -= drop;
            at += drop;
            continue;
        }
        int take = f->window - f->held < n - at ? f->window - f->held : n - at;
        memcpy(f->samples + f->held, samples + at, (size_t)take * sizeof(float));
        f->held += take;
        at += take;
        if (f->held < f->window) continue;
        compute_frame(f, f->samples, frames + (size_t)done * (size_t)f->bins);
        done++;
        int keep = f->hop < f->window ? f->window - f->hop : 0;
        memmove(f->samples, f->samples + (f->window - keep), (size_t)keep * sizeof(float));
        f->held = keep;
        f->skip = f->hop > f->window ? f->hop - f->window : 0;
    }
    *n_out = done;
    return LIN_OK;
}

void lin_fbank_reset(lin_fbank *f)
{
    f->held = 0;
    f->skip = 0;
}

void lin_fbank_destroy(lin_fbank *f)
{
    if (!f) return;
    lin_arena_free(&f->arena);
    lin_free(f);
}
