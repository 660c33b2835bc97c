// leakage.c - speech of one channel that is heard in another; see leakage.h.

#include "linnet/leakage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { BANDS = 16, STEPS = LIN_LEAKAGE_STEPS };

static const double HOP_S = 0.01, SHORTEST_S = 0.2, SPREAD_DB = 4, WEAKER_DB = -3, EQUAL_DB = 1, MORE_DB = 2.5, NOISE = 2.5;

static lin_status open_fbanks(lin_leakage *l, const lin_audio_format *format, double at_s, lin_error *err)
{
    lin_fbank_config config = lin_fbank_default();
    config.sample_hz = format->rate_hz;
    config.mel_bins = BANDS;
    l->begin_s = at_s;
    for (int i = 0; i < STEPS; i++) l->energies[i] = pow(10, i / 20.0);
    for (int c = 0; c < format->channels; c++) {
        LIN_TRY(lin_fbank_create(&config, &l->fbanks[c], err));
        l->channels = c + 1;
    }
    return LIN_OK;
}

static lin_status make_room(lin_leakage *l, int n, lin_error *err)
{
    const int frames = lin_fbank_frames_out(l->fbanks[0], n);
    const size_t row = (size_t)l->channels * BANDS;
    if (n > l->room) {
        lin_free(l->mono);
        lin_free(l->frames);
        l->room = 0;
        l->mono = lin_alloc((size_t)n, sizeof *l->mono);
        l->frames = lin_alloc(((size_t)n + 1) * BANDS, sizeof *l->frames);
        if (!l->mono || !l->frames) return lin_no_memory(err, "the levels of channels", (size_t)n * BANDS * sizeof(float));
        l->room = n;
    }
    return lin_grow_int(&l->levels, &l->capacity, (int64_t)l->n + frames, row, "the levels of channels", err);
}

// Of natural-log energies.
static unsigned char half_db(float energy)
{
    const double half = 20 / log(10) * energy;
    return (unsigned char)(half < 0 ? 0 : half > STEPS - 1 ? STEPS - 1 : half);
}

lin_status lin_leakage_push(lin_leakage *l, const lin_audio_format *format, double at_s, const float *sound, int n,
                            lin_error *err)
{
    lin_status status = l->channels ? LIN_OK : open_fbanks(l, format, at_s, err);
    if (status == LIN_OK) status = make_room(l, n, err);
    int given = 0;
    for (int c = 0; c < l->channels && status == LIN_OK; c++) {
        for (int i = 0; i < n; i++) l->mono[i] = sound[i * l->channels + c];
        status = lin_fbank_push(l->fbanks[c], l->mono, n, l->frames, n + 1, &given, err);
        for (int i = 0; i < given * BANDS; i++)
            l->levels[((size_t)(l->n + i / BANDS) * (size_t)l->channels + (size_t)c) * BANDS + (size_t)(i % BANDS)] =
                half_db(l->frames[i]);
    }
    l->n += status == LIN_OK ? given : 0;
    return status;
}

static const unsigned char *levels_at(const lin_leakage *l, int frame, int channel)
{
    return l->levels + ((size_t)frame * (size_t)l->channels + (size_t)channel) * BANDS;
}

// The tenth part of the moments has at most this level; noise has somewhat more energy.
static void find_noise(const lin_leakage *l, int channel, double noise[BANDS])
{
    for (int b = 0; b < BANDS; b++) {
        int counts[STEPS] = {0}, level = 0;
        for (int i = 0; i < l->n; i++) counts[levels_at(l, i, channel)[b]]++;
        for (int n = counts[0]; n < l->n / 10; n += counts[++level]) continue;
        noise[b] = NOISE * l->energies[level];
    }
}

typedef struct interval {
    int first, end; // frames
} interval;

static interval interval_of(const lin_leakage *l, double start_s, double end_s)
{
    const double more = fmax(0, SHORTEST_S - (end_s - start_s)) / 2;
    const double first = floor((start_s - more - l->begin_s) / HOP_S), end = ceil((end_s + more - l->begin_s) / HOP_S);
    return (interval){(int)fmax(first, 0), (int)fmin(end, l->n)};
}

// 1 if what channel c has in this time is what channel o has there.
static int explains(const lin_leakage *l, int c, int o, interval when, const double noise[BANDS])
{
    int counts[2 * STEPS] = {0}, n = 0, heard = 0, peak = 0, middle = 0;
    double own = 0, other = 0, spread = 0;
    for (int i = when.first; i < when.end; i++)
        for (int b = 0; b < BANDS; b++) peak = levels_at(l, i, o)[b] > peak ? levels_at(l, i, o)[b] : peak;
    for (int i = when.first; i < when.end; i++) {
        const unsigned char *here = levels_at(l, i, c), *there = levels_at(l, i, o);
        for (int b = 0; b < BANDS; b++) {
            own += fmax(0, l->energies[here[b]] - noise[b]);
            other += l->energies[there[b]];
            if (there[b] < peak - 30) continue;
            counts[STEPS + here[b] - there[b]]++;
            heard += l->energies[here[b]] > 2 * noise[b];
            n++;
        }
    }
    for (int before = counts[0]; before < n / 2; before += counts[++middle]) continue;
    for (int k = 0; k < 2 * STEPS; k++) spread += counts[k] * abs(k - middle);
    const double median_db = (middle - STEPS) / 2.0;
    return 2 * heard > n && spread < 2 * SPREAD_DB * n && median_db < (o < c ? EQUAL_DB : WEAKER_DB) &&
           10 * log10(own / other + 1e-30) < median_db + MORE_DB;
}

// The channel that item i of the result is leakage of; -1: none.
static int leaks_from(const lin_leakage *l, const lin_result *r, int i, int channel, const double noise[BANDS])
{
    const lin_item item = lin_result_item(r, i);
    const interval when = interval_of(l, item.start_s, item.end_s);
    for (int o = 0; o < l->channels; o++)
        if (o != channel && explains(l, channel, o, when, noise)) return o;
    return -1;
}

// The result without item 0 .. n-1 for which leaves is set.
static lin_status leave_out(lin_result *r, const unsigned char *leaves, int n, lin_error *err)
{
    lin_result rest = {0};
    lin_status status = lin_result_begin(&rest, r->id, r->speaker, r->channel, err);
    for (int i = 0, run; i < n && status == LIN_OK; i += run) {
        for (run = 1; i + run < n && leaves[i + run] == leaves[i]; run++) continue;
        if (!leaves[i]) status = lin_result_append_part(&rest, r, i, run, err);
    }
    if (status != LIN_OK) {
        lin_result_free(&rest);
        return status;
    }
    rest.has_words = r->has_words;
    rest.seconds = r->seconds;
    rest.score = r->score;
    rest.acoustic = r->acoustic;
    rest.language = r->language;
    lin_result_free(r);
    *r = rest;
    return LIN_OK;
}

static lin_status find_in_one(const lin_leakage *l, lin_result *r, int channel, int drops, lin_leakage_found *found,
                              lin_error *err)
{
    const int n = lin_result_items(r);
    int most[LIN_AUDIO_MAX_CHANNELS] = {0};
    double noise[BANDS];
    *found = (lin_leakage_found){.of = n};
    if (n == 0) return LIN_OK;
    unsigned char *leaves = lin_calloc((size_t)n, 1);
    if (!leaves) return lin_no_memory(err, "the levels of channels", (size_t)n);
    find_noise(l, channel, noise);
    for (int i = 0; i < n; i++) {
        const int from = leaks_from(l, r, i, channel, noise);
        if (from < 0) continue;
        leaves[i] = 1;
        found->n++;
        if (++most[from] > most[found->from]) found->from = from;
    }
    const lin_status status = found->n && drops ? leave_out(r, leaves, n, err) : LIN_OK;
    lin_free(leaves);
    return status;
}

lin_status lin_leakage_find(const lin_leakage *l, lin_result *results, int n, int drops, lin_leakage_found *found, lin_error *err)
{
    lin_status status = LIN_OK;
    for (int c = 0; c < n && status == LIN_OK; c++) status = find_in_one(l, &results[c], c, drops, &found[c], err);
    return status;
}

void lin_leakage_free(lin_leakage *l)
{
    for (int c = 0; c < l->channels; c++) lin_fbank_destroy(l->fbanks[c]);
    lin_free(l->mono);
    lin_free(l->frames);
    lin_free(l->levels);
    *l = (lin_leakage){0};
}
