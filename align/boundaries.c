// boundaries.c - finds the boundaries of phones in the sound; see boundaries.h.

#include "align/boundaries.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

enum {
    CEPSTRA = 12,
    STATIC = CEPSTRA + 1,    // and the energy
    DIMENSIONS = 2 * STATIC, // and the differences of both
    STATES = 3,
    PHONES = LIN_PHONES_DEFAULT_COUNT - 1, // phones of the table, in the default order
    KINDS = (PHONES + 1) * STATES + 2,     // states of all phones, of any other phone, silence, and other speech
    SILENCE = KINDS - 2,                   // the first of several models of it
    OTHER = KINDS - 1,
    SILENCES = 4,
    BINS = 40,
    SLOPE = 2,    // frames on either side of a difference
    BLOCK = 1000, // frames with the same normalisation
    LEVELS = 500  // of energies from LOWEST on, 0.1 each
};

#define LOWEST (-17.0)    // natural logarithm: below that of digital silence
#define TOP 0.95          // share of a stretch that is below its speech level
#define HEARD 5.756       // frames less than this below the speech level, 25 dB, count for the mean of speech
#define FAINT 6.908       // a stretch's level is at most this, 30 dB, below that of the whole sound
#define AUDIBLE 4.0       // and at least this
#define BOTTOM 0.05       // share that is silence, or as faint as the closures of stops
#define LOUD (-2.0)       // frames above this, relative to the level of speech, are not silence
#define NOISY 1.0         // nor frames this far above the mean of this sound's own silence, if that is more
#define LOUDEST (-0.5)    // but the limit is at most this
#define NOT_SILENT 200.0  // cost of such a frame in a silence, natural logarithm
#define SHORTENED 40.0    // cost of a phone with fewer frames than states
#define BEFORE 0.25       // seconds by which a phone's sound may precede the rows of the phone before it, at first,
#define BEHIND 0.06       // or end after those of the next
#define NEAR 0.04         // the same around the mean lag of this sound's rows, once that is known
#define LAGS 8            // number of phones from which it is known
#define FAR 0.5           // seconds from its own rows, at most: sound that is farther away is not of this phone
#define WORDS_PAUSE 0.2   // there may be silence between words whose rows are farther apart
#define WORD_PAUSE 0.6    // the same inside a word
#define PHONES_PAUSE 0.25 // and without words
#define QUIET_BEFORE 0.3  // seconds before a phone's rows,
#define QUIET_BEHIND 0.35 // and after those of the last phone: sound beyond these is part of no phone

// 1000 times the means of three states of each phoneme of CMUdict and of silences, relative to speech, and 1000 / the deviations.
static const int16_t table[PHONES * STATES + SILENCES][2][DIMENSIONS] = {
#include "align/boundaries.inc"
};

typedef struct gaussian {
    float mean[DIMENSIONS], scale[DIMENSIONS]; // scale: 1 / standard deviation
    double constant;
} gaussian;

// A state of the chain; it may have frames `from` to `to` - 1. Neither decreases along the chain.
typedef struct state {
    int32_t kind, phone; // phone: -1 in a silence
    int8_t place;        // in its phone or silence
    int8_t optional;     // the first state of a phone after an optional silence: number of states of the silence
    int64_t from, to;
} state;

typedef struct level {
    float energy, mean[CEPSTRA]; // of speech
    double loud;                 // louder frames, relative to the energy, are not silence
    gaussian rest;               // of this sound's own silence
    int has_rest;
} level;

struct lin_boundaries {
    int bins, V;
    double hop_s, window_s;
    int *phone_of;    // [V], of the table; PHONES: any other
    float *basis;     // [CEPSTRA, D]
    float *weight;    // [D], weight of a bin in the energy
    gaussian *models; // [SILENCE + SILENCES]
    float *frames;    // [n, STATIC], not normalised
    size_t n, frames_capacity;
    const float *part; // [T, STATIC] of them, those that the path is of
    size_t T;
    level *levels;
    size_t levels_capacity;
    int32_t *counts; // [blocks + 1, LEVELS], the last of all blocks
    size_t counts_capacity;
    uint8_t *apart; // [T], far from the rows of all phones
    size_t apart_capacity;
    float spread[DIMENSIONS]; // of a phone's state, 1 / standard deviation, in the mean of their variances
    state *states;
    size_t n_states, states_capacity;
    double *scores; // [states]
    size_t scores_capacity;
    uint8_t *came; // the state before, for each frame and each state allowed at it
    size_t came_capacity, used;
};

/* ---- the model ------------------------------------------------------------------------------------------------------------- */

// A cosine transform of the table's bins, each interpolated between the bins of the frames that are nearest on the mel scale.
static void make_basis(lin_boundaries *b, const lin_fbank_config *fbank)
{
    const lin_fbank_config own = {.sample_hz = 11025, .mel_bins = BINS, .low_hz = 20, .high_hz = 5500};
    for (int j = 0; j < BINS; j++) {
        double at = lin_mel_place(fbank, lin_mel_centre_hz(&own, j));
        if (fabs(at - round(at)) < 1e-9) at = round(at);
        at = fmin(fmax(at, 0), b->bins - 1);
        const int lower = (int)at, upper = lower + 1 < b->bins ? lower + 1 : lower;
        const double share = at - lower;
        b->weight[lower] += (float)((1 - share) / BINS);
        b->weight[upper] += (float)(share / BINS);
        for (int k = 0; k < CEPSTRA; k++) {
            const double cosine = sqrt(2.0 / BINS) * cos(M_PI * (k + 1) * (j + 0.5) / BINS);
            b->basis[k * b->bins + lower] += (float)((1 - share) * cosine);
            b->basis[k * b->bins + upper] += (float)(share * cosine);
        }
    }
}

static void finish_model(gaussian *g)
{
    g->constant = 0;
    for (int d = 0; d < DIMENSIONS; d++) g->constant += log((double)g->scale[d]);
}

static void make_models(lin_boundaries *b)
{
    for (int m = 0; m < PHONES * STATES + SILENCES; m++) {
        gaussian *g = &b->models[m < PHONES * STATES ? m : m + STATES];
        for (int d = 0; d < DIMENSIONS; d++) {
            g->mean[d] = (float)table[m][0][d] / 1000;
            g->scale[d] = (float)table[m][1][d] / 1000;
        }
        finish_model(g);
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        double sum = 0;
        for (int m = 0; m < PHONES * STATES; m++) sum += 1 / pow((double)b->models[m].scale[d], 2);
        b->spread[d] = (float)(1 / sqrt(sum / (PHONES * STATES)));
    }
    // Any other phone: the mean and variance of all phones together, for each place.
    for (int place = 0; place < STATES; place++) {
        gaussian *g = &b->models[PHONES * STATES + place];
        for (int d = 0; d < DIMENSIONS; d++) {
            double sum = 0, squares = 0;
            for (int p = 0; p < PHONES; p++) {
                const gaussian *of = &b->models[p * STATES + place];
                const double mean = (double)of->mean[d], deviation = 1 / (double)of->scale[d];
                sum += mean;
                squares += mean * mean + deviation * deviation;
            }
            g->mean[d] = (float)(sum / PHONES);
            g->scale[d] = (float)(1 / sqrt(squares / PHONES - sum / PHONES * (sum / PHONES)));
        }
        finish_model(g);
    }
}

static lin_status make(lin_boundaries *b, const lin_phones *phones, const lin_fbank_config *fbank, lin_error *err)
{
    lin_phones *own;
    b->V = lin_phones_count(phones);
    b->phone_of = lin_calloc((size_t)b->V, sizeof *b->phone_of);
    b->basis = lin_calloc((size_t)b->bins * CEPSTRA, sizeof *b->basis);
    b->weight = lin_calloc((size_t)b->bins, sizeof *b->weight);
    b->models = lin_calloc(SILENCE + SILENCES, sizeof *b->models);
    if (!b->phone_of || !b->basis || !b->weight || !b->models)
        return lin_no_memory(err, "boundaries", KINDS * sizeof(gaussian));
    LIN_TRY(lin_phones_create(NULL, &own, err));
    for (int v = 1; v < b->V; v++) {
        const char *name = lin_phones_similar(phones, v);
        const int found = name ? lin_phones_find(own, name, strlen(name)) : 0;
        b->phone_of[v] = found > 0 ? found - 1 : PHONES;
    }
    lin_phones_destroy(own);
    make_basis(b, fbank);
    make_models(b);
    return LIN_OK;
}

lin_status lin_boundaries_create(const lin_phones *phones, const lin_fbank_config *fbank, lin_boundaries **boundaries,
                                 lin_error *err)
{
    *boundaries = NULL;
    lin_boundaries *b = lin_calloc(1, sizeof *b);
    if (!b) return lin_no_memory(err, "boundaries", sizeof *b);
    b->bins = fbank->mel_bins;
    b->hop_s = fbank->hop_ms / 1000;
    b->window_s = fbank->window_ms / 1000;
    const lin_status status = make(b, phones, fbank, err);
    if (status == LIN_OK) *boundaries = b;
    else lin_boundaries_destroy(b);
    return status;
}

void lin_boundaries_destroy(lin_boundaries *b)
{
    if (!b) return;
    lin_free(b->phone_of);
    lin_free(b->basis);
    lin_free(b->weight);
    lin_free(b->models);
    lin_free(b->frames);
    lin_free(b->levels);
    lin_free(b->counts);
    lin_free(b->apart);
    lin_free(b->states);
    lin_free(b->scores);
    lin_free(b->came);
    lin_free(b);
}

void lin_boundaries_reset(lin_boundaries *b) { b->n = 0; }

lin_status lin_boundaries_push(lin_boundaries *b, const float *fbank, int n, lin_error *err)
{
    const int D = b->bins;
    for (int t = 0; t < n; t++) {
        for (int d = 0; d < D; d++) {
            if (!isfinite(fbank[(size_t)t * (size_t)D + (size_t)d]))
                return lin_fail(err, LIN_NUMERIC, "frame %lld: bin %d is not a number", (long long)b->n + t, d);
        }
    }
    LIN_TRY(lin_grow(&b->frames, &b->frames_capacity, (b->n + (size_t)(n > 0 ? n : 0)) * STATIC, sizeof *b->frames,
                     "frames of sound", err));
    for (int t = 0; t < n; t++) {
        const float *in = fbank + (size_t)t * (size_t)D;
        float *out = b->frames + b->n++ * STATIC;
        double energy = 0;
        for (int k = 0; k < CEPSTRA; k++) {
            float sum = 0;
            for (int d = 0; d < D; d++) sum += b->basis[k * D + d] * in[d];
            out[k] = sum;
        }
        for (int d = 0; d < D; d++) energy += b->weight[d] > 0 ? (double)b->weight[d] * exp(fmin((double)in[d], 100)) : 0;
        out[CEPSTRA] = (float)log(energy + 1e-7);
    }
    return LIN_OK;
}

/* ---- level and mean of speech, for each block of frames -------------------------------------------------------------------- */

static int level_of(const lin_boundaries *b, size_t t)
{
    const double at = ((double)b->part[t * STATIC + CEPSTRA] - LOWEST) * 10;
    return at < 0 ? 0 : at > LEVELS - 1 ? LEVELS - 1 : (int)at;
}

// The quantile of the energy for a share of the frames; LOWEST if there are no frames.
static double level_below(const int32_t *const *counts, int n, double share)
{
    int64_t all = 0, below = 0;
    int at = 0;
    for (int i = 0; i < n; i++) {
        for (int l = 0; l < LEVELS; l++) all += counts[i][l];
    }
    for (; at < LEVELS; at++) {
        for (int i = 0; i < n; i++) below += counts[i][at];
        if ((double)below >= share * (double)all) break;
    }
    return LOWEST + (at + 0.5) / 10;
}

static float relative(float energy, float speech)
{
    const float x = energy - speech;
    return x < -9 ? -9 : x > 1 ? 1 : x;
}

static double center(const lin_path *path, int i, double row_s)
{
    return (double)(path->phones[i].start + path->phones[i].end) / 2 * row_s;
}

// Marks the frames that are far from the rows of all phones, those of other speech too.
static void set_apart(lin_boundaries *b, const lin_path *path, double row_s)
{
    int next = 0, other = 0;
    for (size_t t = 0; t < b->T; t++) {
        const double at = (double)t * b->hop_s + b->window_s / 2;
        while (next < path->n_phones && center(path, next, row_s) <= at) next++;
        b->apart[t] = (next == path->n_phones || center(path, next, row_s) - at > QUIET_BEFORE) &&
                      (next == 0 || at - center(path, next - 1, row_s) > QUIET_BEHIND);
        while (other < path->n_others && at - (double)path->others[other].end * row_s > QUIET_BEHIND) other++;
        if (other < path->n_others && (double)path->others[other].start * row_s - at <= QUIET_BEFORE) b->apart[t] = 0;
    }
}

// This sound's own silence in frames from .. to - 1: frames far from all phones, or not louder than `faint`.
static void measure_rest(const lin_boundaries *b, size_t from, size_t to, double faint, level *l)
{
    double sums[STATIC] = {0}, squares[STATIC] = {0}, count = 0;
    for (size_t t = from; t < to; t++) {
        const float *x = b->part + t * STATIC;
        const double energy = (double)relative(x[CEPSTRA], l->energy);
        if (!(b->apart[t] || (double)x[CEPSTRA] <= faint) || energy > LOUDEST) continue;
        count++;
        for (int c = 0; c < STATIC; c++) {
            const double value = c < CEPSTRA ? (double)(x[c] - l->mean[c]) : energy;
            sums[c] += value;
            squares[c] += value * value;
        }
    }
    l->has_rest = count > 0;
    l->loud = LOUD;
    if (!l->has_rest) return;
    memcpy(l->rest.scale, b->spread, sizeof l->rest.scale);
    memset(l->rest.mean, 0, sizeof l->rest.mean);
    for (int c = 0; c < STATIC; c++) {
        const double mean = sums[c] / count, variance = squares[c] / count - mean * mean;
        l->rest.mean[c] = (float)mean;
        if (variance * pow((double)b->spread[c], 2) > 1) l->rest.scale[c] = (float)(1 / sqrt(variance));
    }
    finish_model(&l->rest);
    l->loud = fmin(fmax(LOUD, (double)l->rest.mean[CEPSTRA] + NOISY), LOUDEST);
}

static lin_status measure_levels(lin_boundaries *b, const lin_path *path, double row_s, lin_error *err)
{
    const size_t blocks = (b->T + BLOCK - 1) / BLOCK;
    LIN_TRY(lin_grow(&b->levels, &b->levels_capacity, blocks, sizeof *b->levels, "levels of sound", err));
    LIN_TRY(lin_grow(&b->counts, &b->counts_capacity, (blocks + 1) * LEVELS, sizeof *b->counts, "levels of sound", err));
    LIN_TRY(lin_grow(&b->apart, &b->apart_capacity, b->T, 1, "levels of sound", err));
    set_apart(b, path, row_s);
    int32_t *all = b->counts + blocks * LEVELS;
    memset(b->counts, 0, (blocks + 1) * LEVELS * sizeof *b->counts);
    for (size_t t = 0; t < b->T; t++) {
        if (b->apart[t]) continue;
        const int l = level_of(b, t);
        b->counts[t / BLOCK * LEVELS + (size_t)l]++;
        all[l]++;
    }
    const double whole = level_below(&(const int32_t *){all}, 1, TOP);
    for (size_t k = 0; k < blocks; k++) {
        // The block, the one before and the one after; at the ends and in short sound the nearest three.
        size_t first = k ? k - 1 : 0;
        if (first + 3 > blocks) first = blocks > 3 ? blocks - 3 : 0;
        const size_t n = blocks - first < 3 ? blocks - first : 3;
        const int32_t *near[3];
        for (size_t i = 0; i < n; i++) near[i] = b->counts + (first + i) * LEVELS;
        const double energy = fmax(fmax(level_below(near, (int)n, TOP), whole - FAINT), AUDIBLE);
        double sums[CEPSTRA] = {0}, count = 0;
        const size_t from = first * BLOCK, to = (first + n) * BLOCK < b->T ? (first + n) * BLOCK : b->T;
        for (size_t t = from; t < to; t++) {
            const float *x = b->part + t * STATIC;
            if ((double)x[CEPSTRA] < energy - HEARD) continue;
            count++;
            for (int c = 0; c < CEPSTRA; c++) sums[c] += (double)x[c];
        }
        b->levels[k].energy = (float)energy;
        for (int c = 0; c < CEPSTRA; c++) b->levels[k].mean[c] = count > 0 ? (float)(sums[c] / count) : 0;
        measure_rest(b, from, to, level_below(near, (int)n, BOTTOM) + 0.05, &b->levels[k]);
    }
    return LIN_OK;
}

// The feature vector of frame t.
static void observe(const lin_boundaries *b, size_t t, float *x)
{
    const level *l = &b->levels[t / BLOCK];
    const float *here = b->part + t * STATIC;
    for (int c = 0; c < CEPSTRA; c++) x[c] = here[c] - l->mean[c];
    x[CEPSTRA] = relative(here[CEPSTRA], l->energy);
    for (int c = 0; c < STATIC; c++) x[STATIC + c] = 0;
    float squares = 0;
    for (size_t k = 1; k <= SLOPE; k++) {
        const float *after = b->part + (t + k < b->T ? t + k : b->T - 1) * STATIC;
        const float *before = b->part + (t > k ? t - k : 0) * STATIC;
        for (int c = 0; c < CEPSTRA; c++) x[STATIC + c] += (float)k * (after[c] - before[c]);
        x[STATIC + CEPSTRA] += (float)k * (relative(after[CEPSTRA], l->energy) - relative(before[CEPSTRA], l->energy));
        squares += (float)(2 * k * k);
    }
    for (int c = 0; c < STATIC; c++) x[STATIC + c] /= squares;
}

static double likelihood(const gaussian *g, const float *x)
{
    float sum = 0;
    for (int d = 0; d < DIMENSIONS; d++) {
        const float z = (x[d] - g->mean[d]) * g->scale[d];
        sum += z * z;
    }
    return g->constant - 0.5 * (double)sum;
}

// The score of a frame between phones: the best of this sound's own silence, the table's silences, and, in other speech, the
// middle of any phone.
static double between(const lin_boundaries *b, int kind, const level *l, const float *x)
{
    double best = l->has_rest ? likelihood(&l->rest, x) : -INFINITY;
    for (int i = 0; i < SILENCES; i++) best = fmax(best, likelihood(&b->models[SILENCE + i], x));
    if (kind == OTHER) return fmax(best, likelihood(&b->models[PHONES * STATES + 1], x));
    return (double)x[CEPSTRA] > l->loud ? best - NOT_SILENT : best;
}

/* ---- the chain of states --------------------------------------------------------------------------------------------------- */

static int64_t frame_at(const lin_boundaries *b, double seconds)
{
    const double at = (seconds - b->window_s / 2) / b->hop_s;
    return at < 0 ? 0 : at > (double)b->T ? (int64_t)b->T : (int64_t)lround(at);
}

static void add_states(lin_boundaries *b, int kind, int phone, int n, int64_t from, int64_t to)
{
    const int64_t T = (int64_t)b->T;
    if (from > T - 1) from = T - 1;
    if (to <= from) to = from + 1;
    for (int i = 0; i < n; i++) {
        b->states[b->n_states++] =
            (state){.kind = phone < 0 ? kind : kind + i, .phone = phone, .place = (int8_t)i, .from = from, .to = to};
    }
}

// The range of a phone's sound: from `before` seconds before the rows of the phone before it to `behind` seconds after the
// next's.
typedef struct window {
    double before, behind;
} window;

// Of the phone after number i, or of the other speech before that; INFINITY behind the last.
static double next_center(const lin_path *path, int i, int other, double row_s)
{
    const int is_last = i + 1 == path->n_phones;
    if (other < path->n_others && (is_last || path->others[other].end <= path->phones[i + 1].start))
        return ((double)path->others[other].start + 0.5) * row_s;
    return is_last ? INFINITY : center(path, i + 1, row_s);
}

static lin_status make_states(lin_boundaries *b, const lin_path *path, double row_s, window w, lin_error *err)
{
    const int n = path->n_phones;
    const size_t most = 1 + (size_t)n * (STATES + LIN_BOUNDARIES_SILENCE) + LIN_BOUNDARIES_SILENCE;
    LIN_TRY(lin_grow(&b->states, &b->states_capacity, most, sizeof *b->states, "states of phones", err));
    b->n_states = 0;
    add_states(b, SILENCE, -1, 1, 0, 0); // the silence at the beginning
    b->states[0].to = 0;
    int word = 0, other = 0;
    for (int i = 0; i < n; i++) {
        const double at = center(path, i, row_s), last = i ? center(path, i - 1, row_s) : 0;
        const int64_t after_last = i ? frame_at(b, last - w.before) : 0, before_this = frame_at(b, at + w.behind);
        // Other speech limits the phones beside it as their neighbours would.
        const int is_other = other < path->n_others && path->others[other].end <= path->phones[i].start;
        const int64_t begin = is_other ? frame_at(b, ((double)path->others[other++].end - 0.5) * row_s - w.before) : after_last;
        while (word < path->n_words && path->words[word].first_phone < i) word++;
        const int begins = word < path->n_words && path->words[word].first_phone == i;
        const int pause = is_other || i == 0 || at - last > (begins ? WORDS_PAUSE : path->n_words ? WORD_PAUSE : PHONES_PAUSE);
        if (pause) add_states(b, is_other ? OTHER : SILENCE, -1, LIN_BOUNDARIES_SILENCE, after_last, before_this);
        const double next = next_center(path, i, other, row_s);
        const int64_t far = frame_at(b, at - FAR - w.before), end = frame_at(b, next + w.behind);
        const int64_t too_far = frame_at(b, at + FAR);
        const size_t first = b->n_states;
        add_states(b, b->phone_of[path->phones[i].label] * STATES, i, STATES, far > begin ? far : begin,
                   too_far < end ? too_far : end);
        if (pause) b->states[first].optional = LIN_BOUNDARIES_SILENCE;
    }
    const double last = center(path, n - 1, row_s);
    add_states(b, other < path->n_others ? OTHER : SILENCE, -1, LIN_BOUNDARIES_SILENCE, frame_at(b, last - w.before),
               (int64_t)b->T);
    return lin_grow(&b->scores, &b->scores_capacity, b->n_states, sizeof *b->scores, "states of phones", err);
}

// Where a state's best path comes from.
enum { ITSELF, THE_LAST, PAST_SILENCE, SHORT, SHORT_PAST_SILENCE };

static const size_t steps_back[] = {[ITSELF] = 0, [THE_LAST] = 1, [PAST_SILENCE] = 1 + LIN_BOUNDARIES_SILENCE, [SHORT] = STATES,
                                    [SHORT_PAST_SILENCE] = STATES + LIN_BOUNDARIES_SILENCE};

// The best of the states from which s can be reached, with their scores of the last frame.
static double enter(const lin_boundaries *b, size_t s, uint8_t *from)
{
    const state *at = &b->states[s];
    const double *v = b->scores;
    double best = v[s];
    *from = ITSELF;
    if (v[s - 1] > best) best = v[s - 1], *from = THE_LAST;
    if (at->optional && v[s - 1 - LIN_BOUNDARIES_SILENCE] > best) best = v[s - 1 - LIN_BOUNDARIES_SILENCE], *from = PAST_SILENCE;
    if (at->phone >= 0 && at->place == STATES - 1) {
        if (v[s - STATES] - SHORTENED > best) best = v[s - STATES] - SHORTENED, *from = SHORT;
        const size_t past = s - STATES - LIN_BOUNDARIES_SILENCE;
        if (b->states[s - STATES + 1].optional && v[past] - SHORTENED > best)
            best = v[past] - SHORTENED, *from = SHORT_PAST_SILENCE;
    }
    return best;
}

// Viterbi's algorithm; the states allowed at frame t are numbers first .. last-1, both of which never decrease with t.
static lin_status search(lin_boundaries *b, lin_error *err)
{
    size_t first = 1, last = 1;
    float x[DIMENSIONS];
    double seen[KINDS];
    size_t seen_at[KINDS] = {0}; // 1 + the frame
    for (size_t s = 0; s < b->n_states; s++) b->scores[s] = -INFINITY;
    b->scores[0] = 0;
    b->used = 0;
    for (size_t t = 0; t < b->T; t++) {
        while (last < b->n_states && b->states[last].from <= (int64_t)t) last++;
        LIN_TRY(lin_grow(&b->came, &b->came_capacity, b->used + last - first, 1, "paths of boundaries", err));
        observe(b, t, x);
        for (size_t s = last; s-- > first;) { // downwards: smaller states still have the scores of the last frame
            const state *at = &b->states[s];
            b->scores[s] = enter(b, s, &b->came[b->used + s - first]);
            if (!(b->scores[s] > -INFINITY)) continue;
            if (seen_at[at->kind] != t + 1) {
                seen_at[at->kind] = t + 1;
                seen[at->kind] = at->kind >= SILENCE ? between(b, at->kind, &b->levels[t / BLOCK], x)
                                                     : likelihood(&b->models[at->kind], x);
            }
            b->scores[s] += seen[at->kind];
        }
        b->used += last - first;
        b->scores[0] = -INFINITY;
        if (t + 1 == b->T) break;
        while (first < last && b->states[first].to <= (int64_t)t + 1) b->scores[first++] = -INFINITY;
    }
    return LIN_OK;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------ */

static double time_of(const lin_boundaries *b, int64_t frame, double seconds)
{
    if (frame <= 0) return 0;
    // Whole milliseconds, as in files: so start plus duration equals the start of the next segment.
    const double at = floor((b->window_s / 2 + ((double)frame - 0.5) * b->hop_s) * 1000 + 1e-6) / 1000;
    return frame >= (int64_t)b->T || at > seconds ? seconds : at;
}

// Phones and words are in order, as those of every search.
static int is_in_order(const lin_path *path)
{
    for (int i = 1; i < path->n_phones; i++)
        if (path->phones[i].start < path->phones[i - 1].start) return 0;
    for (int i = 1; i < path->n_words; i++)
        if (path->words[i].first_phone < path->words[i - 1].first_phone) return 0;
    return 1;
}

// LIN_MISMATCH if there is no path; the segments are unchanged then.
static lin_status find(lin_boundaries *b, const lin_path *path, double row_s, double seconds, window w, lin_segment *segments,
                       lin_error *err)
{
    LIN_TRY(make_states(b, path, row_s, w, err));
    LIN_TRY(search(b, err));
    // The text ends in its last phone or in the silence after it.
    int next = -1;
    size_t s = b->n_states - 1, phone_end = s - LIN_BOUNDARIES_SILENCE;
    if (b->scores[phone_end] > b->scores[s]) s = phone_end;
    if (!(b->scores[s] > -INFINITY)) return lin_fail(err, LIN_MISMATCH, "%d phones in %zu frames of sound", path->n_phones, b->T);
    // The trace-back finds the frames of a phone from its last to its first.
    size_t first = b->n_states, last = b->n_states;
    for (size_t t = b->T, used = b->used; t-- > 0;) {
        const int phone = b->states[s].phone;
        if (phone >= 0) {
            if (t + 1 == b->T || next != phone) segments[phone].end_s = time_of(b, (int64_t)t + 1, seconds);
            segments[phone].start_s = time_of(b, (int64_t)t, seconds);
        }
        next = phone;
        while (first > 1 && b->states[first - 1].to > (int64_t)t) first--;
        while (b->states[last - 1].from > (int64_t)t) last--;
        used -= last - first;
        s -= steps_back[b->came[used + s - first]];
    }
    return LIN_OK;
}

lin_status lin_boundaries_find(lin_boundaries *b, size_t from, size_t to, const lin_path *path, double row_s, double seconds,
                               lin_segment *segments, lin_error *err)
{
    assert(from <= to && row_s > 0 && seconds >= 0 && is_in_order(path));
    const size_t first = from < b->n ? from : b->n;
    b->part = b->frames + first * STATIC;
    b->T = (to < b->n ? to : b->n) - first;
    if ((size_t)path->n_phones > b->T)
        return lin_fail(err, LIN_MISMATCH, "%d phones in %zu frames of sound", path->n_phones, b->T);
    if (path->n_phones == 0) return LIN_OK;
    LIN_TRY(measure_levels(b, path, row_s, err));
    LIN_TRY(find(b, path, row_s, seconds, (window){BEFORE, BEHIND}, segments, err));
    if (path->n_phones < LAGS) return LIN_OK;
    // A network's rows lag the middles of phones by nearly the same time; in noise this is more reliable than the sound.
    double lag = 0;
    for (int i = 0; i < path->n_phones; i++) lag += center(path, i, row_s) - (segments[i].start_s + segments[i].end_s) / 2;
    lag /= path->n_phones;
    lin_error none;
    const lin_status status = find(b, path, row_s, seconds, (window){lag + NEAR, NEAR - lag}, segments, &none);
    return status == LIN_OK || status == LIN_MISMATCH ? LIN_OK : lin_fail_as(err, &none);
}
