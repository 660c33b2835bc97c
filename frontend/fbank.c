// fbank.c - windows and mel triangles as Kaldi has them, KissFFT, logarithm, statistics; see fbank.h.

#include "frontend/fbank.h"

#include <assert.h>
#include <kiss_fftr.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/dereverb.h"

#define PI 3.14159265358979323846

// The natural logarithm of this is the energy of digital silence (Kaldi: std::numeric_limits<float>::epsilon()).
#define FLOOR 1.1920928955078125e-07f

enum {
    MAX_WINDOW = 65536, // samples; bounds the transform
    MAX_BINS = 1024,
    LANES = 8 // partial sums of a reduction, so that it vectorises without reassociation
};

/* ---- windows and triangles ------------------------------------------------------------------------------------------------- */

lin_fbank_config lin_fbank_default(void)
{
    return (lin_fbank_config){
        .sample_hz = 16000, .mel_bins = 40, .window_ms = 25, .hop_ms = 10, .low_hz = 20, .high_hz = 0, .preemphasis = 0.97};
}

static double mel_of_hz(double hz) { return 1127.0 * log(1.0 + hz / 700.0); }

static double upper_edge(const lin_fbank_config *c) { return c->high_hz > 0 ? c->high_hz : c->sample_hz / 2.0 + c->high_hz; }

// 1e-3: a whole number that rounding has made smaller still counts as that number.
int lin_mel_samples(const lin_fbank_config *c, double ms) { return (int)(c->sample_hz * 0.001 * ms + 1e-3); }

// The size of the transform: a power of two that holds a window.
static int transform_of(const lin_fbank_config *c)
{
    int p = 2;
    while (p < lin_mel_samples(c, c->window_ms)) p *= 2;
    return p;
}

// The povey window at sample i of `window`, times 32768: samples are given in -1..1.
static double window_at(int window, int i) { return 32768 * pow(0.5 - 0.5 * cos(2 * PI * i / (window - 1)), 0.85); }

static double step_of(const lin_fbank_config *c) { return (mel_of_hz(upper_edge(c)) - mel_of_hz(c->low_hz)) / (c->mel_bins + 1); }

// The lines of the spectrum strictly inside triangle b: returns their number; *first of them, and their weights (may be NULL).
static int triangle_of(const lin_fbank_config *c, int fft, int b, int *first, float *weights)
{
    const double low = mel_of_hz(c->low_hz), step = step_of(c);
    const double left = low + b * step, centre = low + (b + 1) * step, right = low + (b + 2) * step;
    int count = 0;
    *first = 0;
    for (int i = 0; i < fft / 2; i++) {
        double mel = mel_of_hz((double)i * c->sample_hz / fft);
        if (mel <= left || mel >= right) continue;
        if (!count) *first = i;
        if (weights) weights[count] = (float)(mel <= centre ? (mel - left) / (centre - left) : (right - mel) / (right - centre));
        count++;
    }
    return count;
}

double lin_mel_centre_hz(const lin_fbank_config *c, int b)
{
    return 700.0 * (exp((mel_of_hz(c->low_hz) + (b + 1) * step_of(c)) / 1127.0) - 1.0);
}

double lin_mel_place(const lin_fbank_config *c, double hz) { return (mel_of_hz(hz) - mel_of_hz(c->low_hz)) / step_of(c) - 1; }

lin_status lin_fbank_check(const lin_fbank_config *c, lin_error *err)
{
    // Written so that a NaN fails the check.
    if (c->sample_hz < 1000 || c->sample_hz > 384000)
        return lin_fail(err, LIN_INVALID, "filterbank: sample_hz is %d; must be 1000 to 384000", c->sample_hz);
    if (c->mel_bins < 1 || c->mel_bins > MAX_BINS)
        return lin_fail(err, LIN_INVALID, "filterbank: mel_bins is %d; must be 1 to %d", c->mel_bins, MAX_BINS);
    if (!(c->window_ms > 0 && c->window_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: window_ms is %g; must be above 0 and at most 1000", c->window_ms);
    if (!(c->hop_ms > 0 && c->hop_ms <= 1000))
        return lin_fail(err, LIN_INVALID, "filterbank: hop_ms is %g; must be above 0 and at most 1000", c->hop_ms);
    int window = lin_mel_samples(c, c->window_ms);
    if (window < 2 || window > MAX_WINDOW)
        return lin_fail(err, LIN_INVALID, "filterbank: a window of %g ms is %d samples at %d Hz; must be 2 to %d", c->window_ms,
                        window, c->sample_hz, MAX_WINDOW);
    if (lin_mel_samples(c, c->hop_ms) < 1)
        return lin_fail(err, LIN_INVALID, "filterbank: a hop of %g ms is less than a sample at %d Hz", c->hop_ms, c->sample_hz);
    double high = upper_edge(c);
    if (!(c->low_hz >= 0 && c->low_hz < high && high <= c->sample_hz / 2.0))
        return lin_fail(err, LIN_INVALID, "filterbank: low_hz %g and high_hz %g must be 0 <= low < high <= %g", c->low_hz,
                        c->high_hz, c->sample_hz / 2.0);
    if (!(c->preemphasis >= 0 && c->preemphasis <= 1))
        return lin_fail(err, LIN_INVALID, "filterbank: preemphasis is %g; must be 0 to 1", c->preemphasis);
    if (!(c->level_db >= 0 && c->level_db <= 150) || (c->level_db > 0 && c->level_db < 1))
        return lin_fail(err, LIN_INVALID, "filterbank: level_db is %g; must be 1 to 150, or 0", c->level_db);
    int fft = transform_of(c), first;
    for (int b = 0; b < c->mel_bins; b++)
        if (!triangle_of(c, fft, b, &first, NULL))
            return lin_fail(err, LIN_INVALID, "filterbank: %d mel_bins are too many for a spectrum of %d lines: bin %d is empty",
                            c->mel_bins, fft / 2, b);
    return LIN_OK;
}

/* ---- computing ------------------------------------------------------------------------------------------------------------- */

// The part of the spectrum under one triangle: weights[offset ..][count] are those of lines first, first + 1, ...
// count is rounded up to LANES; the weights beyond the triangle are 0.
typedef struct triangle {
    int first, count, offset;
} triangle;

// The state of the running level, in dB; see fbank.h.
typedef struct running_level {
    float speech, lowest, drop; // S, F, q
    int begun;                  // 0: before the first frame
} running_level;

struct lin_fbank {
    int bins, window, hop, fft;
    double preemphasis;
    int held;               // samples in `samples`
    int skip;               // samples to drop before the next window, if the hop is longer than the window
    float *samples;         // [window]
    double *shape;          // [window], the povey window times 32768
    float *wave;            // [fft], zero beyond the window
    float *power;           // [fft / 2 + 1 + LANES], zero beyond the spectrum
    kiss_fft_cpx *spectrum; // [fft / 2 + 1]
    triangle *triangles;    // [bins]
    float *weights;
    kiss_fftr_cfg plan;
    double level_db;
    running_level level;
    int first, lines;   // of the spectrum, under triangles
    lin_dereverb *room; // of those lines; NULL: none
};

static void build_tables(lin_fbank *f, const lin_fbank_config *c)
{
    for (int i = 0; i < f->window; i++) f->shape[i] = window_at(f->window, i);
    int offset = 0;
    for (int b = 0; b < f->bins; b++) {
        triangle *t = &f->triangles[b];
        int count = triangle_of(c, f->fft, b, &t->first, f->weights + offset);
        t->offset = offset;
        t->count = (count + LANES - 1) / LANES * LANES;
        offset += t->count;
        f->lines = t->first + count - f->triangles[0].first;
    }
    f->first = f->triangles[0].first;
}

lin_status lin_fbank_create(const lin_fbank_config *c, lin_fbank **out, lin_error *err)
{
    *out = NULL;
    LIN_TRY(lin_fbank_check(c, err));
    const int fft = transform_of(c);
    const size_t W = (size_t)lin_mel_samples(c, c->window_ms), F = (size_t)fft, D = (size_t)c->mel_bins, lines = F / 2 + 1;
    // A line is under at most two triangles, and the number of each triangle's weights is rounded up to LANES.
    const size_t n_weights = F + D * LANES;
    size_t plan_bytes = 0;
    kiss_fftr_alloc(fft, 0, NULL, &plan_bytes);
    const size_t most_room = c->dereverb ? lin_dereverb_bytes(fft / 2) : 0;
    const size_t bytes = sizeof(lin_fbank) + sizeof(float) * (W + F + lines + LANES + n_weights) + sizeof(double) * W +
                         sizeof(kiss_fft_cpx) * lines + sizeof(triangle) * D + plan_bytes + most_room + 10 * 64;
    lin_arena arena = {.base = lin_calloc(bytes, 1), .size = bytes};
    if (!arena.base) return lin_no_memory(err, "a filterbank", bytes);
    lin_fbank *f = lin_arena_take(&arena, 1, sizeof *f);
    f->bins = c->mel_bins;
    f->window = (int)W;
    f->hop = lin_mel_samples(c, c->hop_ms);
    f->fft = fft;
    f->preemphasis = c->preemphasis;
    f->level_db = c->level_db;
    f->samples = lin_arena_take(&arena, W, sizeof(float));
    f->shape = lin_arena_take(&arena, W, sizeof(double));
    f->wave = lin_arena_take(&arena, F, sizeof(float));
    f->power = lin_arena_take(&arena, lines + LANES, sizeof(float));
    f->spectrum = lin_arena_take(&arena, lines, sizeof(kiss_fft_cpx));
    f->triangles = lin_arena_take(&arena, D, sizeof(triangle));
    f->weights = lin_arena_take(&arena, n_weights, sizeof(float));
    f->plan = kiss_fftr_alloc(fft, 0, lin_arena_take(&arena, plan_bytes, 1), &plan_bytes);
    build_tables(f, c);
    if (c->dereverb) f->room = lin_arena_take(&arena, most_room, 1);
    lin_fbank_reset(f);
    *out = f;
    return LIN_OK;
}

static size_t room_bytes(const lin_fbank *f) { return f->room ? lin_dereverb_bytes(f->lines) : 0; }

lin_status lin_fbank_create_beside(const lin_fbank *first, lin_fbank **out, lin_error *err)
{
    const size_t held = sizeof **out + (size_t)first->window * sizeof(float), bytes = held + room_bytes(first);
    lin_fbank *f = *out = lin_calloc(1, bytes);
    if (!f) return lin_no_memory(err, "a filterbank", bytes);
    *f = *first;
    f->samples = (float *)(void *)(f + 1);
    if (first->room) f->room = (void *)((char *)f + held);
    lin_fbank_reset(f);
    return LIN_OK;
}

static float sum_lanes(const float *s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); }

// Scaled, mean removed, pre-emphasised and windowed: wave[0 .. window-1] from x[0 .. window-1]. In double: pre-emphasis removes a
// strong low tone by a subtraction whose float rounding would hide faint sound above it (3e-3 in the logarithm at 87 dB
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

// The factor for the energies of a frame whose sum is `energy`.
static float gain_of(running_level *l, double level_db, double energy)
{
    const double first = 10, silence = 75, over = 15, rise = 0.05, fall = 0.01, loose = 4, most = 40;
    const float db = (float)fmax(10 * log10(energy + 1e-30), level_db - silence);
    if (!l->begun) *l = (running_level){.speech = (float)(level_db - first), .lowest = db, .drop = 5, .begun = 1};
    l->lowest = fminf(db, l->lowest + 0.02F);
    if (db > l->lowest + (float)over) {
        if (db > l->speech) {
            l->speech += (float)rise * (db - l->speech);
        } else {
            l->speech = fmaxf(db, l->speech - (float)fall - l->drop);
        }
        l->drop *= 0.5F;
    }
    const double away = level_db - (double)l->speech, by = fmin(fmax(fabs(away) - loose, 0), most);
    return (float)pow(10, (away < 0 ? -by : by) / 10);
}

static void compute_frame(lin_fbank *f, const float *x, float *frame)
{
    shape_window(f, x);
    kiss_fftr(f->plan, f->wave, f->spectrum);
    float *restrict power = f->power;
    const kiss_fft_cpx *restrict s = f->spectrum;
    const int end = f->first + f->lines;
    if (f->room) lin_dereverb_frame(f->room, s + f->first, power + f->first);
    else
        for (int i = f->first; i < end; i++) power[i] = s[i].r * s[i].r + s[i].i * s[i].i;
    double sum = 0;
    for (int b = 0; b < f->bins; b++) {
        const triangle *t = &f->triangles[b];
        const float *restrict w = f->weights + t->offset, *restrict p = power + t->first;
        float part[LANES] = {0};
        for (int i = 0; i < t->count; i += LANES)
            for (int l = 0; l < LANES; l++) part[l] += w[i + l] * p[i + l];
        frame[b] = sum_lanes(part);
        sum += (double)frame[b];
    }
    const float gain = f->level_db > 0 ? gain_of(&f->level, f->level_db, sum) : 1;
    for (int b = 0; b < f->bins; b++) {
        const float energy = gain * frame[b];
        frame[b] = logf(energy > FLOOR ? energy : FLOOR);
    }
}

// Samples are either held or skipped, and a full window is computed at once.
static int holds(const lin_fbank *f) { return f->held >= 0 && f->held < f->window && f->skip >= 0 && f->skip <= f->hop; }

int lin_fbank_frames_out(const lin_fbank *f, int n)
{
    long long total = (long long)f->held + n - f->skip;
    return total < f->window ? 0 : (int)(1 + (total - f->window) / f->hop);
}

lin_status lin_fbank_push(lin_fbank *f, const float *samples, int n, float *frames, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    int expected = lin_fbank_frames_out(f, n);
    if (n < 0) return lin_fail(err, LIN_INVALID, "filterbank: cannot push %d samples", n);
    if (capacity < expected)
        return lin_fail(err, LIN_TOO_SMALL, "filterbank: %d samples give %d frames, but there is room for %d", n, expected,
                        capacity);
    assert(holds(f));
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
    assert(holds(f) && done == expected);
    *n_out = done;
    return LIN_OK;
}

void lin_fbank_reset(lin_fbank *f)
{
    f->held = 0;
    f->skip = 0;
    f->level = (running_level){0};
    if (f->room) lin_dereverb_reset(f->room, f->lines);
}

// The level is in the state only where there is one.
static size_t level_bytes(const lin_fbank *f) { return f->level_db > 0 ? 4 * sizeof(float) : 0; }

size_t lin_fbank_state_bytes(const lin_fbank *f)
{
    return 2 * sizeof(int32_t) + (size_t)f->held * sizeof(float) + level_bytes(f) + room_bytes(f);
}

void lin_fbank_save(const lin_fbank *f, void *bytes)
{
    const int32_t counts[2] = {f->held, f->skip};
    memcpy(bytes, counts, sizeof counts);
    memcpy((unsigned char *)bytes + sizeof counts, f->samples, (size_t)f->held * sizeof(float));
    const float level[4] = {f->level.speech, f->level.lowest, f->level.drop, (float)f->level.begun};
    unsigned char *to = (unsigned char *)bytes + sizeof counts + (size_t)f->held * sizeof(float);
    memcpy(to, level, level_bytes(f));
    if (f->room) memcpy(to + level_bytes(f), f->room, room_bytes(f));
}

// Whether these numbers can be a running level.
static int is_level(const float level[4], double level_db)
{
    for (int i = 0; i < 4; i++)
        if (!(fabsf(level[i]) <= 400)) return 0;
    return (level[3] == 0 || level[3] == 1) && level[2] >= 0 && level[2] <= 5 && (double)level[1] >= level_db - 76;
}

lin_status lin_fbank_load(lin_fbank *f, const void *bytes, size_t n_bytes, lin_error *err)
{
    int32_t counts[2] = {-1, -1};
    if (n_bytes >= sizeof counts) memcpy(counts, bytes, sizeof counts);
    if (counts[0] < 0 || counts[0] >= f->window || counts[1] < 0 || counts[1] > f->hop ||
        n_bytes != sizeof counts + (size_t)counts[0] * sizeof(float) + level_bytes(f) + room_bytes(f))
        return lin_fail(err, LIN_MISMATCH, "the state of a filterbank was saved with other windows, or one with and one without "
                                           "dereverberation");
    float level[4] = {0};
    const unsigned char *room = (const unsigned char *)bytes + n_bytes - room_bytes(f);
    memcpy(level, room - level_bytes(f), level_bytes(f));
    if (level[3] != 0 && !is_level(level, f->level_db))
        return lin_fail(err, LIN_FORMAT, "the state of a filterbank has an impossible level");
    if (f->room && !lin_dereverb_is_state(room, f->lines))
        return lin_fail(err, LIN_FORMAT, "the state of a filterbank has impossible reverberation");
    f->held = counts[0];
    f->skip = counts[1];
    f->level = level[3] != 0 ? (running_level){level[0], level[1], level[2], 1} : (running_level){0};
    memcpy(f->samples, (const unsigned char *)bytes + sizeof counts, (size_t)f->held * sizeof(float));
    if (f->room) memcpy(f->room, room, room_bytes(f));
    return LIN_OK;
}

void lin_fbank_destroy(lin_fbank *f) { lin_free(f); }

/* ---- the table of a backend ------------------------------------------------------------------------------------------------ */

lin_status lin_fbank_table_create(const lin_fbank_config *c, lin_fbank_table *table, lin_error *err)
{
    *table = (lin_fbank_table){0};
    LIN_TRY(lin_fbank_check(c, err));
    const int window = lin_mel_samples(c, c->window_ms), fft = transform_of(c), D = c->mel_bins;
    const size_t bins = (size_t)fft / 2 + 1;
    float *shape = lin_calloc((size_t)window, sizeof *shape), *mel = lin_calloc((size_t)D * bins, sizeof *mel);
    int *from = lin_calloc((size_t)D, sizeof *from), *to = lin_calloc((size_t)D, sizeof *to);
    *table = (lin_fbank_table){.window_samples = window,
                               .hop_samples = lin_mel_samples(c, c->hop_ms),
                               .n_fft = fft,
                               .D = D,
                               .preemphasis = (float)c->preemphasis,
                               .floor = FLOOR,
                               .window = shape,
                               .mel = mel,
                               .mel_from = from,
                               .mel_to = to};
    if (!shape || !mel || !from || !to) {
        lin_fbank_table_free(table);
        return lin_no_memory(err, "a filterbank", (size_t)D * bins * sizeof *mel);
    }
    for (int i = 0; i < window; i++) shape[i] = (float)window_at(window, i);
    for (int b = 0; b < D; b++) {
        triangle_of(c, fft, b, &from[b], NULL);
        to[b] = from[b] + triangle_of(c, fft, b, &from[b], mel + (size_t)b * bins + from[b]);
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

/* ---- mean and variance ----------------------------------------------------------------------------------------------------- */

struct lin_moments {
    int D;
    uint64_t n;
    double *centre, *sum, *squares; // [D] each: the first frame, and sums of x - centre and (x - centre)^2
    double room[];
};

lin_status lin_moments_create(int D, lin_moments **out, lin_error *err)
{
    const size_t bytes = sizeof **out + 3 * sizeof(double) * (size_t)(D > 0 ? D : 0);
    *out = NULL;
    if (D < 1) return lin_fail(err, LIN_INVALID, "normalisation: %d bins; must be at least 1", D);
    lin_moments *a = *out = lin_calloc(1, bytes);
    if (!a) return lin_no_memory(err, "normalisation", bytes);
    a->D = D;
    a->centre = a->room;
    a->sum = a->centre + D;
    a->squares = a->sum + D;
    return LIN_OK;
}

void lin_moments_add(lin_moments *a, const float *frames, size_t T)
{
    size_t D = (size_t)a->D;
    for (size_t t = 0; t < T; t++) {
        const float *x = frames + t * D;
        if (a->n == 0)
            for (size_t d = 0; d < D; d++) a->centre[d] = (double)x[d];
        for (size_t d = 0; d < D; d++) {
            double v = (double)x[d] - a->centre[d];
            a->sum[d] += v;
            a->squares[d] += v * v;
        }
        a->n++;
    }
}

uint64_t lin_moments_count(const lin_moments *a) { return a->n; }

lin_status lin_moments_finish(const lin_moments *a, float *mean, float *istd, lin_error *err)
{
    if (a->n == 0) return lin_fail(err, LIN_INVALID, "normalisation: there are no frames");
    for (int d = 0; d < a->D; d++) {
        double offset = a->sum[d] / (double)a->n, variance = a->squares[d] / (double)a->n - offset * offset;
        if (!isfinite(offset) || !isfinite(variance))
            return lin_fail(err, LIN_NUMERIC, "normalisation: bin %d of a frame is not finite", d);
        double std = variance > 0 ? sqrt(variance) : 0;
        mean[d] = (float)(a->centre[d] + offset);
        istd[d] = (float)(1 / (std > LIN_MOMENTS_SMALLEST_STD ? std : LIN_MOMENTS_SMALLEST_STD));
    }
    return LIN_OK;
}

void lin_moments_apply(float *frames, size_t T, int D, const float *mean, const float *istd)
{
    for (size_t t = 0; t < T; t++) {
        float *x = frames + t * (size_t)D;
        for (int d = 0; d < D; d++) x[d] = (x[d] - mean[d]) * istd[d];
    }
}
