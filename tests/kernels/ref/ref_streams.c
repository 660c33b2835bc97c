// Operations before and after the network: features from a cache, sound to features, the kept rows of streams, greedy decoding.
#include <math.h>

#include "kernels/acoustics.h"
#include "tests/kernels/ref/ref.h"

#define PI 3.14159265358979323846

static double recorded(const unsigned char *codes, const float *steps, int t, int d, int D)
{
    return (double)steps[d] + (double)steps[D + d] * codes[(size_t)t * (size_t)D + (size_t)d];
}

// Frame t of T, at the speaking rate.
static double uttered(const lin_gather *item, int t, int T, int d, int D)
{
    float share;
    const int from = lin_gather_between(item, t, T, &share);
    const double x = recorded(item->codes, item->steps, from, d, D);
    return share > 0 ? x + (double)share * (recorded(item->codes, item->steps, from + 1, d, D) - x) : x;
}

static double power(const unsigned char *codes, const float *steps, int t, int d, int D)
{
    return exp(fmin(recorded(codes, steps, t, d, D), (double)LIN_ACOUSTICS_MOST));
}

// The power of bin d of the speech, which is heard at warp[d].
static double spoken(const lin_gather *item, int t, int T, int d, int D)
{
    int low, high;
    const double f = (double)lin_acoustics_between(item->acoustics, d, D, &low, &high);
    const double x = (1 - f) * uttered(item, t, T, low, D) + f * uttered(item, t, T, high, D);
    return exp(fmin(x, (double)LIN_ACOUSTICS_MOST));
}

// The feature of frame t of T and bin d as kernels/acoustics.h defines it, with the sum over all frames before.
static double heard(const lin_gather *item, int t, int T, int d, int D)
{
    const lin_acoustics *a = item->acoustics;
    if (!a) return uttered(item, t, T, d, D);
    const double pass = (double)a->bins[d], hiss = (double)a->bins[D + d], spread = (double)a->bins[2 * D + d];
    int shape;
    double late = 0, voices = 0;
    const double noise = (double)a->noise * exp((double)lin_acoustics_level(a, t, &shape)) * (double)a->bins[(4 + shape) * D + d];
    for (int s = 0; s < t; s++)
        late += (1 - (double)a->decay) * pow((double)a->decay, t - 1 - s) * spoken(item, s, T, d, D);
    for (int v = 0; v < a->n_voices; v++)
        voices += (double)a->voices[v].scale *
                  power(a->voices[v].codes, a->voices[v].steps, (a->voices[v].first + t) % a->voices[v].frames, d, D);
    const uint64_t index = (uint64_t)t * (uint64_t)D + (uint64_t)d;
    const double g = pow((double)lin_acoustics_root(a, (float)spread, index), 3);
    const double alpha = ((double)lin_acoustics_root(a, (float)spread, ~index) - 1 + spread * spread) * sqrt(4.5);
    const double s = (double)a->speech * spoken(item, t, T, d, D), n = (double)a->speech * (double)a->room * late + noise;
    const double y = fmax(s + n * g + voices + 2 * sqrt(s * (n + voices)) * alpha, 0.01 * (s + n + voices));
    return log(fmax(pass * y + hiss * g, (double)LIN_ACOUSTICS_FLOOR));
}

void lin_ref_gather(lin_exec *exec, double *x, const lin_gather *items, const lin_mask *masks, const lin_segments *segments,
                    int D)
{
    (void)exec;
    for (int b = 0; b < segments->B; b++) {
        const lin_gather *item = items + b;
        int T = segments->offsets[b + 1] - segments->offsets[b];
        double *frames = x + (size_t)segments->offsets[b] * (size_t)D;
        for (int t = 0; t < T; t++)
            for (int d = 0; d < D; d++) {
                size_t i = (size_t)t * (size_t)D + (size_t)d;
                frames[i] = item->codes ? (heard(item, t, T, d, D) - (double)item->mean[d]) * (double)item->istd[d] : 0;
                for (int m = item->first_mask; m < item->first_mask + item->n_masks; m++)
                    if (t >= masks[m].t0 && t < masks[m].t1 && d >= masks[m].d0 && d < masks[m].d1) frames[i] = 0;
            }
    }
}

void lin_ref_carry(lin_exec *exec, double *y, const lin_segments *out, const double *x, const lin_segments *in,
                   double *const *tails, size_t at, const int *have, const int *keep, int width)
{
    (void)exec;
    for (int b = 0; b < out->B; b++) {
        int rows = out->offsets[b + 1] - out->offsets[b];
        double *to = y + (size_t)out->offsets[b] * (size_t)width;
        const double *from = x + (size_t)in->offsets[b] * (size_t)width;
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < width; i++) to[r * width + i] = r < have[b] ? tails[b][at + (size_t)(r * width + i)]
                                                                             : from[(r - have[b]) * width + i];
        for (int r = 0; r < keep[b]; r++)
            for (int i = 0; i < width; i++) tails[b][at + (size_t)(r * width + i)] = to[(rows - keep[b] + r) * width + i];
    }
}

// Sample k of the frame at x: the frame's mean subtracted, pre-emphasised (the first is its own predecessor), windowed.
static double windowed(const double *x, int k, double mean, const lin_fbank_table *table)
{
    double before = x[k > 0 ? k - 1 : 0] - mean;
    return (x[k] - mean - (double)table->preemphasis * before) * (double)table->window[k];
}

static void fbank_frame(double *y, const double *x, double *shaped, double *power, const lin_fbank_table *table)
{
    double mean = 0;
    for (int k = 0; k < table->window_samples; k++) mean += x[k] / table->window_samples;
    for (int k = 0; k < table->window_samples; k++) shaped[k] = windowed(x, k, mean, table);
    for (int i = 0; i <= table->n_fft / 2; i++) { // the discrete Fourier transform, line by line
        double real = 0, imaginary = 0;
        for (int k = 0; k < table->window_samples; k++) {
            double angle = 2 * PI * (double)((long long)i * k % table->n_fft) / table->n_fft;
            real += shaped[k] * cos(angle);
            imaginary -= shaped[k] * sin(angle);
        }
        power[i] = real * real + imaginary * imaginary;
    }
    for (int d = 0; d < table->D; d++) {
        double energy = 0;
        for (int i = 0; i <= table->n_fft / 2; i++) energy += (double)table->mel[d * (table->n_fft / 2 + 1) + i] * power[i];
        y[d] = log(fmax(energy, (double)table->floor));
    }
}

void lin_ref_fbank(lin_exec *exec, double *y, const lin_segments *out, const double *x, const lin_segments *in,
                   const lin_fbank_table *table)
{
    double *shaped = lin_ref_scratch(exec, (size_t)table->window_samples + (size_t)table->n_fft / 2 + 1);
    for (int b = 0; b < out->B; b++)
        for (int t = 0; t < out->offsets[b + 1] - out->offsets[b]; t++) {
            double *frame = y + (size_t)(out->offsets[b] + t) * (size_t)table->D;
            const double *sound = x + in->offsets[b] + (ptrdiff_t)t * table->hop_samples;
            fbank_frame(frame, sound, shaped, shaped + table->window_samples, table);
        }
}

// The run as a phone; returns 0 if the run is blank or was already returned.
static int phone_of(const lin_run *run, lin_phone *phone)
{
    if (run->label <= 0 || run->emitted) return 0;
    double mean = run->sum_logp / (double)(run->frame - run->start);
    *phone = (lin_phone){.label = run->label, .confidence = (float)exp(fmin(mean, 0)), .start = run->start, .end = run->frame};
    return 1;
}

// Index of the largest value of a row, the first of equals; -1 if one is NaN or the largest is infinite.
static int best_of(const double *row, int V)
{
    int best = 0;
    for (int v = 0; v < V; v++) {
        if (isnan(row[v])) return -1;
        if (row[v] > row[best]) best = v;
    }
    return isinf(row[best]) ? -1 : best;
}

void lin_ref_greedy(lin_exec *exec, lin_phone *phones, int *n_phones, const double *logp, const lin_segments *segments, int V,
                    lin_run *runs, const int *slots)
{
    (void)exec;
    for (int b = 0; b < segments->B; b++) {
        n_phones[b] = 0;
        if (slots[b] < 0) continue;
        lin_run run = runs[slots[b]];
        int n = 0;
        for (int r = segments->offsets[b]; r < segments->offsets[b + 1] && n >= 0; r++) {
            const double *row = logp + (size_t)r * (size_t)V;
            int label = best_of(row, V);
            if (label < 0) {
                n = -1;
                break;
            }
            if (label != run.label) {
                n += phone_of(&run, phones + segments->offsets[b] + n);
                run = (lin_run){.label = label, .start = run.frame, .frame = run.frame};
            }
            run.sum_logp += row[label];
            run.frame++;
        }
        n_phones[b] = n;
        if (n >= 0) runs[slots[b]] = run;
    }
}
