// augment.c - random rooms, noises and bands over mel bins, and masks; see augment.h.

#include "train/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "frontend/fbank.h"
#include "kernels/acoustics.h"

#define PI 3.14159265358979323846

enum {
    LOBE_LINES = 4, // a sine spreads to so many lines of the spectrum on either side
    LOBE_STEPS = 16 // positions of its frequency between two lines
};

struct lin_acoustics_table {
    lin_augment_options options;
    lin_fbank_config config;
    lin_fbank_table mel;
    double line_hz, hop_s, upper_hz;
    float lobe[LOBE_LINES * LOBE_STEPS + 1]; // power in a line, by its distance from a sine
    float *emphasis;                         // [lines] power of the pre-emphasis
    float *hiss;                             // [D] mean power of the rounding noise of 16-bit samples
    float *spread;                           // [D] sqrt(2 / (9 k)), k: degrees of freedom
};

/* ---- options --------------------------------------------------------------------------------------------------------------- */

double lin_augment_rate(const lin_augment_options *o, uint64_t key)
{
    return 1 + o->tempo * (2 * lin_random_uniform(key, 0) - 1); // every rounding is monotonic, so the ends are never exceeded
}

int lin_acoustics_any(const lin_augment_options *o)
{
    return o->gain_db > 0 || o->tilt_db > 0 || o->warp > 0 || o->noise_part > 0 || o->babble_part > 0 || o->band_part > 0 ||
           o->room_part > 0 || o->silence_part > 0;
}

/* ---- the filterbank -------------------------------------------------------------------------------------------------------- */

// |sum of w(n)^power exp(i 2 pi n lines / n_fft)|^2, divided by its value at lines = 0: how far the window spreads a line.
static double window_at(const lin_fbank_table *mel, double lines, int power)
{
    double re = 0, im = 0, all = 0;
    for (int n = 0; n < mel->window_samples; n++) {
        const double w = power == 1 ? (double)mel->window[n] : (double)mel->window[n] * (double)mel->window[n];
        const double angle = 2 * PI * lines * n / mel->n_fft;
        re += w * cos(angle);
        im += w * sin(angle);
        all += w;
    }
    return (re * re + im * im) / (all * all);
}

// For white noise, bin d is a weighted sum of the powers of lines, which are exponentially distributed and correlated over the
// width of the window's transform. It is modelled as chi-square with k = 2 mean^2 / variance degrees of freedom; one more makes
// the deviation of the logarithm right, because the sum is less often very small than a chi-square variable.
static void find_statistics(lin_acoustics_table *table)
{
    const lin_fbank_table *mel = &table->mel;
    const size_t lines = (size_t)mel->n_fft / 2 + 1;
    double correlation[LOBE_LINES + 1], energy = 0;
    for (int i = 0; i <= LOBE_LINES; i++) correlation[i] = window_at(mel, i, 2);
    for (int n = 0; n < mel->window_samples; n++) energy += (double)mel->window[n] * (double)mel->window[n];
    for (int d = 0; d < mel->D; d++) {
        const float *w = mel->mel + (size_t)d * lines, *h = table->emphasis;
        double mean = 0, variance = 0;
        for (int i = mel->mel_from[d]; i < mel->mel_to[d]; i++) {
            mean += (double)(w[i] * h[i]);
            for (int j = mel->mel_from[d]; j < mel->mel_to[d]; j++)
                if (abs(i - j) <= LOBE_LINES) variance += (double)(w[i] * h[i]) * (double)(w[j] * h[j]) * correlation[abs(i - j)];
        }
        table->spread[d] = (float)sqrt(2 / (9 * (2 * mean * mean / variance + 1)));
        table->hiss[d] = (float)(mean * energy * 0x1p-30 / 12);
    }
}

lin_status lin_acoustics_create(const lin_augment_options *options, const lin_fbank_config *config, lin_acoustics_table **made,
                                lin_error *err)
{
    *made = NULL;
    lin_acoustics_table *table = lin_calloc(1, sizeof *table);
    if (!table) return lin_no_memory(err, "the acoustics of training", sizeof *table);
    table->options = *options;
    table->config = *config;
    lin_status status = lin_fbank_table_create(config, &table->mel, err);
    if (status != LIN_OK) {
        lin_free(table);
        return status;
    }
    const lin_fbank_table *mel = &table->mel;
    const size_t lines = (size_t)mel->n_fft / 2 + 1;
    table->line_hz = (double)config->sample_hz / mel->n_fft;
    table->hop_s = config->hop_ms / 1000;
    table->upper_hz = config->high_hz > 0 ? config->high_hz : config->sample_hz / 2.0 + config->high_hz;
    table->emphasis = lin_alloc(lines, sizeof *table->emphasis);
    table->hiss = lin_alloc((size_t)mel->D, sizeof *table->hiss);
    table->spread = lin_alloc((size_t)mel->D, sizeof *table->spread);
    if (!table->emphasis || !table->hiss || !table->spread) {
        lin_acoustics_destroy(table);
        return lin_no_memory(err, "the acoustics of training", lines * sizeof *table->emphasis);
    }
    const double p = config->preemphasis;
    for (size_t i = 0; i < lines; i++)
        table->emphasis[i] = (float)(1 + p * p - 2 * p * cos(2 * PI * (double)i / mel->n_fft));
    for (int i = 0; i <= LOBE_LINES * LOBE_STEPS; i++) table->lobe[i] = (float)window_at(mel, (double)i / LOBE_STEPS, 1);
    find_statistics(table);
    *made = table;
    return LIN_OK;
}

void lin_acoustics_destroy(lin_acoustics_table *table)
{
    if (!table) return;
    lin_fbank_table_free(&table->mel);
    lin_free(table->emphasis);
    lin_free(table->hiss);
    lin_free(table->spread);
    lin_free(table);
}

/* ---- random numbers -------------------------------------------------------------------------------------------------------- */

// Streams of random numbers of an utterance, one per purpose, so that an option does not change what another one draws.
enum { OF_SILENCE, OF_GAIN, OF_ROOM, OF_NOISE, OF_BABBLE, OF_BAND, OF_LEVEL, OF_FRAMES, OF_TILT, OF_WARP };

typedef struct draws {
    uint64_t key, n;
} draws;

static draws begin(uint64_t key, uint64_t purpose) { return (draws){lin_random_key(key, purpose), 0}; }
static double between(draws *r, double low, double high) { return low + (high - low) * lin_random_uniform(r->key, r->n++); }
static int below(draws *r, int n) { return (int)lin_random_below(r->key, r->n++, (uint32_t)n); }
static int happens(draws *r, double part) { return lin_random_uniform(r->key, r->n++) < part; }

static double power_of_db(double db) { return pow(10, db / 10); }
static double nepers_of_db(double db) { return db * 0.23025850929940457; } // of power: ln 10 / 10

/* ---- noise ----------------------------------------------------------------------------------------------------------------- */

static void scale_to_one(float *shape, int D)
{
    double sum = 0;
    for (int d = 0; d < D; d++) sum += (double)shape[d];
    for (int d = 0; d < D && sum > 0; d++) shape[d] = (float)((double)shape[d] / sum);
}

// Power by frequency: f^-slope, or for `speech` its long-term spectrum, flat from 100 to 500 Hz and falling above (after Byrne et
// al. 1994).
static double spectrum(double hz, double slope, int speech)
{
    if (!speech) return pow(hz, -slope);
    const double low = hz / 100, high = hz / 500;
    return low * low / (1 + low * low) / (1 + pow(high, slope));
}

static void colour(const lin_acoustics_table *table, float *shape, double slope, int speech)
{
    const lin_fbank_table *mel = &table->mel;
    const size_t lines = (size_t)mel->n_fft / 2 + 1;
    for (int d = 0; d < mel->D; d++) {
        double sum = 0;
        for (int i = mel->mel_from[d]; i < mel->mel_to[d]; i++)
            sum += (double)mel->mel[(size_t)d * lines + (size_t)i] * (double)table->emphasis[i] *
                   spectrum(fmax(i, 0.5) * table->line_hz, slope, speech);
        shape[d] = (float)sum;
    }
    scale_to_one(shape, mel->D);
}

static void add_sine(const lin_acoustics_table *table, float *shape, double hz, double power)
{
    const lin_fbank_table *mel = &table->mel;
    const size_t lines = (size_t)mel->n_fft / 2 + 1;
    const double at = hz / table->line_hz;
    for (int i = (int)fmax(ceil(at - LOBE_LINES), 0); i <= at + LOBE_LINES && i < mel->n_fft / 2; i++) {
        const double line = power * (double)table->emphasis[i] * (double)table->lobe[(int)(fabs(i - at) * LOBE_STEPS)];
        for (int d = 0; d < mel->D && mel->mel_from[d] <= i; d++)
            if (i < mel->mel_to[d]) shape[d] += (float)(line * (double)mel->mel[(size_t)d * lines + (size_t)i]);
    }
}

static void add_note(const lin_acoustics_table *table, float *shape, double hz, int harmonics, double slope, draws *r)
{
    for (int h = 1; h <= harmonics && h * hz < table->upper_hz; h++)
        add_sine(table, shape, h * hz, pow(h, -slope) * between(r, 0.2, 1));
}

// Adds coloured noise under a sound with lines, `db` below it.
static void add_bed(const lin_acoustics_table *table, float *shape, float *scratch, double slope, double db)
{
    const int D = table->mel.D;
    scale_to_one(shape, D);
    colour(table, scratch, slope, 0);
    for (int d = 0; d < D; d++) shape[d] += (float)(power_of_db(-db) * (double)scratch[d]);
    scale_to_one(shape, D);
}

static void make_steady(const lin_acoustics_table *table, int speech, draws *r, lin_acoustics *a, float *shapes)
{
    const double slope = speech ? between(r, 2.5, 3.5) : between(r, 0, 2);
    a->n_shapes = 1 + below(r, 3);
    a->hold = 20 + below(r, 200);
    a->depth = (float)nepers_of_db(between(r, 0, 6));
    for (int s = 0; s < a->n_shapes; s++)
        colour(table, shapes + s * table->mel.D, fmax(slope + (s ? between(r, -0.3, 0.3) : 0), 0), speech);
}

static void make_bursts(const lin_acoustics_table *table, draws *r, lin_acoustics *a, float *shapes)
{
    make_steady(table, 0, r, a, shapes);
    a->hold = 10 + below(r, 90);
    a->depth = (float)nepers_of_db(between(r, 0, 10));
    a->fall = (float)between(r, 0.05, 0.5);
}

static void make_hum(const lin_acoustics_table *table, draws *r, lin_acoustics *a, float *shapes)
{
    const double slope = between(r, 0, 2.5), hz = (happens(r, 0.5) ? 50 : 60) * (1 + below(r, 2));
    a->hold = 50 + below(r, 200);
    a->depth = (float)nepers_of_db(between(r, 0, 1));
    memset(shapes, 0, (size_t)table->mel.D * sizeof *shapes);
    add_note(table, shapes, hz, 40, slope, r);
    add_bed(table, shapes, shapes + table->mel.D, between(r, 0, 2), between(r, 10, 40));
}

// Chords of one to four notes, of some scale of semitones, that change and fade.
static void make_chords(const lin_acoustics_table *table, draws *r, lin_acoustics *a, float *shapes)
{
    const int D = table->mel.D, harmonics = 1 + below(r, 16);
    const double slope = between(r, 0.5, 2), lowest = between(r, 55, 220), bed = between(r, 20, 50);
    a->n_shapes = LIN_ACOUSTICS_SHAPES - 1; // the last one is scratch
    a->hold = 8 + below(r, 60);
    a->depth = (float)nepers_of_db(between(r, 0, 6));
    a->fall = (float)between(r, 0, 0.1);
    for (int s = 0; s < a->n_shapes; s++) {
        float *shape = shapes + s * D;
        memset(shape, 0, (size_t)D * sizeof *shape);
        for (int n = 1 + below(r, 4); n > 0; n--)
            add_note(table, shape, lowest * pow(2, below(r, 36) / 12.0), harmonics, slope, r);
        add_bed(table, shape, shapes + a->n_shapes * D, 1, bed);
    }
}

// Noise of mean power 1 over T frames.
static void make_noise(const lin_acoustics_table *table, int T, draws *r, lin_acoustics *a, float *bins)
{
    const int D = table->mel.D;
    float *spread = bins + 2 * D, *shapes = bins + 4 * D;
    const double kind = between(r, 0, 1);
    if (kind < 0.35) make_steady(table, 0, r, a, shapes);
    else if (kind < 0.5) make_steady(table, 1, r, a, shapes);
    else if (kind < 0.65) make_bursts(table, r, a, shapes);
    else if (kind < 0.8) make_hum(table, r, a, shapes);
    else make_chords(table, r, a, shapes);
    for (int d = 0; kind >= 0.65 && d < D; d++) spread[d] *= 0.3F; // lines vary less than noise
    double sum = 0;
    int shape;
    for (int t = 0; t < T; t++) sum += exp((double)lin_acoustics_level(a, t, &shape));
    a->noise = (float)(T / sum);
}

/* ---- an utterance ---------------------------------------------------------------------------------------------------------- */

// Draws a room: its late energy is a random ratio below the direct sound's; both together have the power of the utterance.
static void make_room(const lin_acoustics_table *table, draws *r, lin_acoustics *a)
{
    const double seconds = between(r, 0.1, 1);
    a->room = (float)power_of_db(-between(r, -6, 15));
    a->decay = (float)power_of_db(-60 * table->hop_s / seconds);
    a->speech /= 1 + a->room;
}

// The share of each bin that passes a channel, to which it adds the rounding noise of its samples.
static void limit_band(const lin_acoustics_table *table, draws *r, float *bins)
{
    static const double edges_hz[] = {3400, 4000, 5500, 7000};
    const lin_fbank_table *mel = &table->mel;
    const size_t lines = (size_t)mel->n_fft / 2 + 1;
    int n = 0;
    while (n < 4 && edges_hz[n] < 0.95 * table->upper_hz) n++;
    const double high_hz = n ? edges_hz[below(r, n)] : table->upper_hz, low_hz = happens(r, 0.5) ? 300 : 0;
    const double rest = power_of_db(-between(r, 30, 80)), hiss = power_of_db(between(r, 0, 30));
    for (int d = 0; d < mel->D; d++) {
        double all = 0, passed = 0;
        for (int i = mel->mel_from[d]; i < mel->mel_to[d]; i++) {
            const double w = (double)mel->mel[(size_t)d * lines + (size_t)i], hz = i * table->line_hz;
            all += w;
            passed += hz >= low_hz && hz <= high_hz ? w : rest * w;
        }
        bins[d] = (float)((double)bins[d] * passed / all);
        bins[mel->D + d] = (float)(hiss * (double)table->hiss[d]);
    }
}

static void tilt(double db, float *pass, int D)
{
    for (int d = 0; d < D && D > 1; d++) pass[d] *= (float)power_of_db(db * (d / (D - 1.0) - 0.5));
}

// Where each bin is read from if the frequencies of the speech are scaled by a factor; 1: in place.
static void scale_frequencies(const lin_acoustics_table *table, double factor, float *warp)
{
    const int D = table->mel.D;
    const double high = table->upper_hz, knee = 0.8 * high / fmax(factor, 1);
    for (int d = 0; d < D; d++) {
        const double hz = lin_mel_centre_hz(&table->config, d), at = hz / factor;
        // inverse of the map: f * factor below the knee, linear from there to the highest frequency
        const double from = at <= knee ? at : knee + (hz - knee * factor) * (high - knee) / (high - knee * factor);
        warp[d] = (float)fmin(fmax(lin_mel_place(&table->config, from), 0), D - 1);
    }
}

int lin_acoustics_silent(const lin_acoustics_table *table, uint64_t key)
{
    draws r = begin(key, OF_SILENCE);
    return happens(&r, table->options.silence_part);
}

int lin_acoustics_draw(const lin_acoustics_table *table, int T, float power, uint64_t key, lin_acoustics *a, float *bins)
{
    const lin_augment_options *o = &table->options;
    const int D = table->mel.D, silent = lin_acoustics_silent(table, key);
    draws gain = begin(key, OF_GAIN), room = begin(key, OF_ROOM), noise = begin(key, OF_NOISE), babble = begin(key, OF_BABBLE),
          band = begin(key, OF_BAND), level = begin(key, OF_LEVEL), slope = begin(key, OF_TILT), size = begin(key, OF_WARP);
    const int with_room = happens(&room, o->room_part) && !silent, with_noise = happens(&noise, o->noise_part) || silent,
              with_babble = happens(&babble, o->babble_part) && !silent, with_band = happens(&band, o->band_part);
    if (!with_room && !with_noise && !with_babble && !with_band && o->gain_db <= 0 && o->tilt_db <= 0 && o->warp <= 0) return 0;
    *a = (lin_acoustics){.speech = silent ? 0 : 1, .hold = 1, .n_shapes = 1, .key = lin_random_key(key, OF_FRAMES)};
    const float pass = (float)power_of_db(between(&gain, -o->gain_db, o->gain_db));
    memset(bins, 0, LIN_ACOUSTICS_ROWS * (size_t)D * sizeof *bins);
    for (int d = 0; d < D; d++) bins[d] = pass;
    memcpy(bins + 2 * D, table->spread, (size_t)D * sizeof *bins);
    for (int d = 0; d < D; d++) bins[3 * D + d] = (float)d;
    if (o->tilt_db > 0) tilt(between(&slope, -o->tilt_db, o->tilt_db), bins, D);
    if (o->warp > 0) scale_frequencies(table, between(&size, 1 - o->warp, 1 + o->warp), bins + 3 * D);
    if (with_room) make_room(table, &room, a);
    if (with_noise) {
        make_noise(table, T, &noise, a, bins);
        const double below_db = silent ? between(&level, 0, 60) : between(&noise, o->snr_low_db, o->snr_high_db);
        a->noise *= (float)((double)power * power_of_db(-below_db));
    }
    if (with_babble) {
        a->n_voices = 3 + below(&babble, LIN_ACOUSTICS_VOICES - 2);
        const double each = (double)power * power_of_db(-between(&babble, o->snr_low_db, o->snr_high_db)) / a->n_voices;
        for (int v = 0; v < a->n_voices; v++) a->voices[v].scale = (float)each;
    }
    if (with_band) limit_band(table, &band, bins);
    return 1;
}

/* ---- masks ----------------------------------------------------------------------------------------------------------------- */

// A stretch of 0..widest of `size` places; *first receives its start.
static int draw(uint64_t key, uint64_t counter, int widest, int size, int *first)
{
    int width = (int)lin_random_below(key, counter, (uint32_t)(widest < size ? widest : size) + 1);
    *first = (int)lin_random_below(key, counter + 1, (uint32_t)(size - width) + 1);
    return width;
}

int lin_augment_masks(int T, int D, const lin_augment_options *o, uint64_t key, lin_mask *masks)
{
    int first, width, n = 0, longest = (int)(o->time_part * T);
    if (longest > o->time_width) longest = o->time_width;
    for (int m = 0; m < o->freq_masks; m++) {
        width = draw(lin_random_key(key, 1), 2 * (uint64_t)m, o->freq_width, D, &first);
        masks[n++] = (lin_mask){.t1 = T, .d0 = first, .d1 = first + width};
    }
    for (int m = 0; m < o->time_masks; m++) {
        width = draw(lin_random_key(key, 2), 2 * (uint64_t)m, longest, T, &first);
        masks[n++] = (lin_mask){.t0 = first, .t1 = first + width, .d1 = D};
    }
    return n;
}
