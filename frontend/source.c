// source.c - channels, resampling and filterbanks in one place; see source.h.

#include "frontend/source.h"

#include <assert.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/resample.h"

enum { BLOCK = LIN_SOURCE_BLOCK }; // frames of sound handled at a time

typedef struct lane {
    lin_resampler *resampler;
    lin_fbank *fbank; // NULL: samples are given
} lane;

struct lin_extractor {
    int channels, channel, n_lanes, bins, finished;
    double in_hz, out_hz; // of the resamplers
    int room;             // samples
    float *mono;          // [BLOCK], one channel or the mix of a block; not used where there is one
    float *samples;       // [room], the same resampled; NULL: it has the right rate
    lane lanes[];         // [n_lanes], and in the same memory mono and samples
};

lin_feature_options lin_feature_options_default(void)
{
    return (lin_feature_options){.fbank = lin_fbank_default(), .channel = LIN_CHANNEL_MIX, .speed = 1};
}

static lin_status create_lanes(lin_extractor *f, const lin_feature_options *o, lin_error *err)
{
    for (int l = 0; l < f->n_lanes; l++) {
        if (o->beside) LIN_TRY(lin_fbank_create_beside(o->beside, &f->lanes[l].fbank, err));
        else if (!o->sound) LIN_TRY(lin_fbank_create(&o->fbank, &f->lanes[l].fbank, err));
        LIN_TRY(lin_resampler_create(f->in_hz, f->out_hz, &f->lanes[l].resampler, err));
    }
    return LIN_OK;
}

lin_status lin_extractor_create(int rate_hz, int channels, const lin_feature_options *o, lin_extractor **out, lin_error *err)
{
    *out = NULL;
    LIN_TRY(lin_audio_check_format("the sound", rate_hz, channels, err));
    if (o->channel < LIN_CHANNEL_EACH || o->channel >= channels)
        return lin_fail(err, LIN_INVALID, "channel %d (from 1) is requested, but the sound has %d", o->channel + 1, channels);
    if (!(o->speed >= 0.5 && o->speed <= 2)) return lin_fail(err, LIN_INVALID, "speed is %g; must be 0.5 to 2", o->speed);
    // Played faster, the sound has the sample rate rate_hz * speed. There is room for the samples of a block and all that the
    // filter holds: libsoxr's longest look-ahead is below a second of input.
    const double in_hz = rate_hz * o->speed, ratio = o->fbank.sample_hz / in_hz;
    const int room = ratio == 1 ? BLOCK : (int)((BLOCK + rate_hz) * ratio) + BLOCK;
    const size_t lanes = o->channel == LIN_CHANNEL_EACH ? (size_t)channels : 1, mono = channels > 1 ? BLOCK : 0;
    const size_t bytes = sizeof **out + lanes * sizeof(lane) + (mono + (ratio == 1 ? 0 : (size_t)room)) * sizeof(float);
    lin_extractor *f = lin_calloc(1, bytes);
    if (!f) return lin_no_memory(err, "features", bytes);
    f->channels = channels;
    f->channel = o->channel;
    f->n_lanes = (int)lanes;
    f->bins = o->sound ? 1 : o->fbank.mel_bins;
    f->in_hz = in_hz;
    f->out_hz = o->fbank.sample_hz;
    f->room = room;
    f->mono = (float *)(void *)(f->lanes + lanes);
    f->samples = ratio == 1 ? NULL : f->mono + mono;
    const lin_status status = create_lanes(f, o, err);
    if (status == LIN_OK) *out = f;
    else lin_extractor_destroy(f);
    return status;
}

int lin_extractor_most_out(const lin_extractor *f, int n)
{
    const int samples = lin_resampler_most_out(f->lanes[0].resampler, n);
    return f->lanes[0].fbank ? lin_fbank_frames_out(f->lanes[0].fbank, samples) : samples;
}

// Lane l's channel, or the mix, of sound [n, channels].
static const float *take_channel(const lin_extractor *f, int l, const float *sound, int n)
{
    const int C = f->channels, c = f->channel == LIN_CHANNEL_EACH ? l : f->channel;
    if (C == 1) return sound;
    if (f->channel == LIN_CHANNEL_MIX) lin_mix_down(f->mono, sound, n, C);
    for (int i = 0; i < n && f->channel != LIN_CHANNEL_MIX; i++) f->mono[i] = sound[i * C + c];
    return f->mono;
}

static lin_status check_room(const lin_extractor *f, int n, int capacity, lin_error *err)
{
    if (f->finished || n < 0) return lin_fail(err, LIN_INVALID, "features: a push of %d samples, or after the end", n);
    int most = lin_extractor_most_out(f, n);
    if (capacity < most)
        return lin_fail(err, LIN_TOO_SMALL, "features: %d samples may give %d frames, but there is room for %d", n, most,
                        capacity);
    return LIN_OK;
}

static lin_status give(const lane *l, const float *samples, int n, float *frames, int capacity, int *n_out, lin_error *err)
{
    if (l->fbank) return lin_fbank_push(l->fbank, samples, n, frames, capacity, n_out, err);
    if (n) memcpy(frames, samples, (size_t)n * sizeof *samples); // there is room: check_room
    *n_out = n;
    return LIN_OK;
}

lin_status lin_extractor_push(lin_extractor *f, const float *sound, int n, float *frames, int capacity, int *n_out,
                              lin_error *err)
{
    *n_out = 0;
    LIN_TRY(check_room(f, n, capacity, err));
    LIN_TRY(lin_audio_check_samples(sound, n, f->channels, err));
    int done = 0;
    for (int at = 0; at < n; at += BLOCK) {
        int block = n - at < BLOCK ? n - at : BLOCK, given = 0;
        for (int l = 0; l < f->n_lanes; l++) {
            int resampled = block;
            float *to = frames + ((size_t)l * (size_t)capacity + (size_t)done) * (size_t)f->bins;
            const float *in = take_channel(f, l, sound + (size_t)at * (size_t)f->channels, block);
            if (f->samples) LIN_TRY(lin_resampler_push(f->lanes[l].resampler, in, block, f->samples, f->room, &resampled, err));
            if (f->samples) in = f->samples;
            LIN_TRY(give(&f->lanes[l], in, resampled, to, capacity - done, &given, err));
        }
        done += given;
    }
    *n_out = done;
    return LIN_OK;
}

lin_status lin_extractor_finish(lin_extractor *f, float *frames, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    LIN_TRY(check_room(f, 0, capacity, err));
    f->finished = 1;
    for (int l = 0; l < f->n_lanes; l++) {
        int resampled = 0;
        float *to = frames + (size_t)l * (size_t)capacity * (size_t)f->bins;
        if (f->samples) LIN_TRY(lin_resampler_finish(f->lanes[l].resampler, f->samples, f->room, &resampled, err));
        LIN_TRY(give(&f->lanes[l], f->samples, resampled, to, capacity, n_out, err));
    }
    return LIN_OK;
}

lin_status lin_extractor_reset(lin_extractor *f, lin_error *err)
{
    f->finished = 1;
    for (int l = 0; l < f->n_lanes; l++) {
        if (f->lanes[l].fbank) lin_fbank_reset(f->lanes[l].fbank);
        LIN_TRY(lin_resampler_reset(f->lanes[l].resampler, err));
    }
    f->finished = 0;
    return LIN_OK;
}

/* ---- saving and loading ---------------------------------------------------------------------------------------------------- */

typedef struct state_header {
    int32_t lanes, channels, channel, bins;
} state_header;

typedef struct lane_header {
    int64_t resampler, fbank; // bytes
} lane_header;

lin_status lin_extractor_keep_past(lin_extractor *f, lin_error *err)
{
    int64_t period;
    LIN_TRY(lin_resampler_find_period(f->in_hz, f->out_hz, &period, err));
    for (int l = 0; l < f->n_lanes; l++) LIN_TRY(lin_resampler_keep_past(f->lanes[l].resampler, period, err));
    return LIN_OK;
}

size_t lin_extractor_state_bytes(const lin_extractor *f)
{
    size_t bytes = sizeof(state_header);
    for (int l = 0; l < f->n_lanes; l++)
        bytes +=
            sizeof(lane_header) + lin_resampler_state_bytes(f->lanes[l].resampler) + lin_fbank_state_bytes(f->lanes[l].fbank);
    return bytes;
}

lin_status lin_extractor_save(const lin_extractor *f, void *bytes, lin_error *err)
{
    unsigned char *to = bytes;
    const state_header h = {f->n_lanes, f->channels, f->channel, f->bins};
    if (f->finished) return lin_fail(err, LIN_INVALID, "features: cannot save after the end");
    memcpy(to, &h, sizeof h);
    to += sizeof h;
    for (int l = 0; l < f->n_lanes; l++) {
        const lane *one = &f->lanes[l];
        const size_t resampler = lin_resampler_state_bytes(one->resampler), fbank = lin_fbank_state_bytes(one->fbank);
        const lane_header lh = {(int64_t)resampler, (int64_t)fbank};
        memcpy(to, &lh, sizeof lh);
        to += sizeof lh;
        LIN_TRY(lin_resampler_save(one->resampler, to, err));
        lin_fbank_save(one->fbank, to + resampler);
        to += resampler + fbank;
    }
    return LIN_OK;
}

lin_status lin_extractor_load(lin_extractor *f, const void *bytes, size_t n_bytes, lin_error *err)
{
    const unsigned char *from = bytes, *end = from + n_bytes;
    state_header h = {0};
    if (n_bytes >= sizeof h) memcpy(&h, from, sizeof h);
    if (h.lanes != f->n_lanes || h.channel != f->channel || h.bins != f->bins ||
        (h.channel != LIN_CHANNEL_MIX && h.channels != f->channels))
        return lin_fail(err, LIN_FORMAT, "the state of features has other channels or bins");
    from += sizeof h;
    lin_status status = lin_extractor_reset(f, err);
    for (int l = 0; l < f->n_lanes && status == LIN_OK; l++) {
        lane_header lh = {-1, -1};
        if ((size_t)(end - from) >= sizeof lh) memcpy(&lh, from, sizeof lh);
        from += sizeof lh;
        if (lh.resampler < 0 || lh.fbank < 0 || lh.resampler > end - from || lh.fbank > end - from - lh.resampler) {
            status = lin_fail(err, LIN_FORMAT, "the state of features is truncated");
        } else {
            status = lin_resampler_load(f->lanes[l].resampler, from, (size_t)lh.resampler, err);
            if (status == LIN_OK) status = lin_fbank_load(f->lanes[l].fbank, from + lh.resampler, (size_t)lh.fbank, err);
            from += lh.resampler + lh.fbank;
        }
        // All lanes must have the same counters.
        if (status == LIN_OK &&
            (lin_resampler_most_out(f->lanes[l].resampler, 0) != lin_resampler_most_out(f->lanes[0].resampler, 0) ||
             lin_fbank_frames_out(f->lanes[l].fbank, 0x10000) != lin_fbank_frames_out(f->lanes[0].fbank, 0x10000)))
            status = lin_fail(err, LIN_FORMAT, "the state of features has channels of different lengths");
    }
    if (status == LIN_OK && from != end) status = lin_fail(err, LIN_FORMAT, "the state of features is too long");
    if (status != LIN_OK) lin_extractor_reset(f, NULL);
    return status;
}

void lin_extractor_destroy(lin_extractor *f)
{
    if (!f) return;
    for (int l = 0; l < f->n_lanes; l++) {
        lin_resampler_destroy(f->lanes[l].resampler);
        lin_fbank_destroy(f->lanes[l].fbank);
    }
    lin_free(f);
}

/* ---- reading a file -------------------------------------------------------------------------------------------------------- */

struct lin_source {
    lin_audio *audio;
    lin_extractor *features;
    lin_audio_format info;
    float *sound;        // [BLOCK, channels]
    int room;            // frames
    float *frames;       // [lanes, room, D]; computed and not yet read are at .. held-1
    int at, held, ended; // ended: the features are finished
    int open, last;      // open: they never end; last: frames of sound in `sound`
    int64_t given;       // frames
    int64_t start, stop; // frames of the sound at which the requested part begins and ends; stop -1: the end of the sound
    double window_ms;
    lin_status (*watch)(void *context, const lin_source *source, lin_error *err); // NULL: nobody watches
    void *watcher;
};

lin_status lin_source_from_audio(lin_audio *audio, const lin_feature_options *o, lin_source **out, lin_error *err)
{
    *out = NULL;
    lin_source *s = lin_calloc(1, sizeof *s);
    if (!s) {
        lin_audio_close(audio);
        return lin_no_memory(err, "an audio source", sizeof *s);
    }
    s->audio = audio;
    s->info = *lin_audio_info(audio);
    s->window_ms = o->fbank.window_ms;
    s->stop = -1;
    lin_feature_options own = *o;
    if (o->or_only && o->channel > 0 && s->info.channels == 1) own.channel = 0;
    lin_status status = lin_extractor_create(s->info.rate_hz, s->info.channels, &own, &s->features, err);
    if (status == LIN_OK) {
        // Frames of a block, and of what the resampler holds: less than a second.
        s->room = lin_fbank_frames_out(s->features->lanes[0].fbank, s->features->room + (int)o->fbank.sample_hz);
        size_t lanes = (size_t)s->features->n_lanes, floats = lanes * (size_t)(s->room + 1) * (size_t)s->features->bins;
        s->sound = lin_alloc((size_t)BLOCK * (size_t)s->info.channels, sizeof(float));
        s->frames = lin_alloc(floats, sizeof(float));
        if (!s->sound || !s->frames) status = lin_no_memory(err, "an audio source", floats * sizeof(float));
    }
    if (status != LIN_OK) {
        lin_source_close(s);
        return status;
    }
    *out = s;
    return LIN_OK;
}

int lin_source_lanes(const lin_source *s) { return s->features->n_lanes; }

int lin_source_bins(const lin_source *s) { return s->features->bins; }

// Refills the empty buffer of frames from the next block of sound, or the last.
static lin_status refill(lin_source *s, lin_error *err)
{
    assert(s->at == s->held && !s->ended); // nothing that was computed is dropped
    int n = 0;
    lin_status status = LIN_OK;
    const int64_t left = s->stop < 0 ? BLOCK : s->stop - lin_audio_position(s->audio);
    if (left > 0) status = lin_audio_read(s->audio, s->sound, left < BLOCK ? (int)left : BLOCK, &n, err);
    s->info = *lin_audio_info(s->audio);
    // No warning about sound that is missing after the requested part.
    if (left <= 0 && s->info.incomplete) s->info.warning[0] = 0, s->info.incomplete = 0;
    if (status != LIN_OK) return status;
    s->at = s->held = 0;
    if (n > 0) s->last = n;
    if (n > 0 && s->watch) LIN_TRY(s->watch(s->watcher, s, err));
    if (n > 0) return lin_extractor_push(s->features, s->sound, n, s->frames, s->room, &s->held, err);
    s->ended = 1;
    if (s->open) return LIN_OK;
    LIN_TRY(lin_extractor_finish(s->features, s->frames, s->room, &s->held, err));
    if (s->given + s->held == 0 && !s->info.warning[0])
        snprintf(s->info.warning, sizeof s->info.warning, "%.3f s of sound are less than a window of %g ms: no features",
                 lin_source_seconds(s) - (double)s->start / s->info.rate_hz, s->window_ms);
    return LIN_OK;
}

lin_status lin_source_read(lin_source *s, float *frames, int capacity, int *n, lin_error *err)
{
    *n = 0;
    if (capacity < 1) return lin_fail(err, LIN_INVALID, "reading features: room for %d frames; must be at least 1", capacity);
    int done = 0, live = lin_audio_is_live(s->audio);
    size_t D = (size_t)s->features->bins;
    while (done < capacity && !(live && done)) {
        if (s->at == s->held) {
            if (s->ended) break;
            LIN_TRY(refill(s, err));
            continue;
        }
        int take = s->held - s->at < capacity - done ? s->held - s->at : capacity - done;
        for (size_t l = 0; l < (size_t)s->features->n_lanes; l++)
            memcpy(frames + (l * (size_t)capacity + (size_t)done) * D, s->frames + (l * (size_t)s->room + (size_t)s->at) * D,
                   (size_t)take * D * sizeof(float));
        s->at += take;
        done += take;
        s->given += take;
    }
    *n = done;
    return LIN_OK;
}

int lin_source_ended(const lin_source *s) { return s->ended && s->at == s->held; }

void lin_source_leave_open(lin_source *s) { s->open = 1; }

lin_status lin_source_keep_past(lin_source *s, lin_error *err) { return lin_extractor_keep_past(s->features, err); }

size_t lin_source_state_bytes(const lin_source *s)
{
    const size_t waiting = (size_t)(s->held - s->at) * (size_t)s->features->n_lanes * (size_t)s->features->bins;
    return 2 * sizeof(int64_t) + waiting * sizeof(float) + lin_extractor_state_bytes(s->features);
}

lin_status lin_source_save(const lin_source *s, void *bytes, lin_error *err)
{
    unsigned char *to = bytes;
    const int64_t counts[2] = {s->held - s->at, s->given};
    const size_t row = (size_t)s->features->bins, lane_bytes = (size_t)counts[0] * row * sizeof(float);
    memcpy(to, counts, sizeof counts);
    to += sizeof counts;
    for (size_t l = 0; l < (size_t)s->features->n_lanes; l++) {
        memcpy(to, s->frames + (l * (size_t)s->room + (size_t)s->at) * row, lane_bytes);
        to += lane_bytes;
    }
    return lin_extractor_save(s->features, to, err);
}

lin_status lin_source_load(lin_source *s, const void *bytes, size_t n_bytes, lin_error *err)
{
    const unsigned char *from = bytes;
    const size_t row = (size_t)s->features->bins, lanes = (size_t)s->features->n_lanes;
    int64_t counts[2] = {-1, -1};
    if (n_bytes >= sizeof counts) memcpy(counts, from, sizeof counts);
    if (counts[0] < 0 || counts[0] > s->room || counts[1] < 0 ||
        n_bytes - sizeof counts < (size_t)counts[0] * lanes * row * sizeof(float))
        return lin_fail(err, LIN_FORMAT, "the state of a source of features is truncated");
    const size_t lane_bytes = (size_t)counts[0] * row * sizeof(float), used = sizeof counts + lanes * lane_bytes;
    LIN_TRY(lin_extractor_load(s->features, from + used, n_bytes - used, err));
    for (size_t l = 0; l < lanes; l++)
        memcpy(s->frames + l * (size_t)s->room * row, from + sizeof counts + l * lane_bytes, lane_bytes);
    s->at = 0;
    s->held = (int)counts[0];
    s->given = counts[1];
    return LIN_OK;
}

static lin_status ends_before(double start_s, double seconds, lin_error *err)
{
    return lin_fail(err, LIN_INVALID, "the sound ends after %.3f s, before the part from %.3f s", seconds, start_s);
}

lin_status lin_source_part(lin_source *s, double start_s, double end_s, lin_error *err)
{
    const double rate_hz = s->info.rate_hz, most = 0x1p53;
    if (!(start_s >= 0 && end_s > start_s && start_s * rate_hz < most))
        return lin_fail(err, LIN_INVALID, "a part from %g to %g s; must be 0 <= start < end", start_s, end_s);
    const int64_t start = s->start = llround(start_s * rate_hz), begin = start - s->info.rate_hz;
    if (end_s * rate_hz < most) s->stop = llround(end_s * rate_hz);
    if (s->info.frames >= 0 && begin > s->info.frames) return ends_before(start_s, lin_source_duration(s), err);
    if (begin > 0) {
        lin_status status = lin_audio_seek(s->audio, begin, err);
        if (status != LIN_OK && status != LIN_UNSUPPORTED) return status;
    }
    while (lin_audio_position(s->audio) < start) {
        const int64_t left = start - lin_audio_position(s->audio);
        int n;
        LIN_TRY(lin_audio_read(s->audio, s->sound, left < BLOCK ? (int)left : BLOCK, &n, err));
        if (n == 0) return ends_before(start_s, lin_source_seconds(s), err);
    }
    return LIN_OK;
}

void lin_source_watch(lin_source *s, lin_status (*watch)(void *context, const lin_source *source, lin_error *err), void *context)
{
    s->watch = watch;
    s->watcher = context;
}

const float *lin_source_last(const lin_source *s, int *n)
{
    *n = s->last;
    return s->sound;
}

int64_t lin_source_position(const lin_source *s) { return lin_audio_position(s->audio); }

double lin_source_seconds(const lin_source *s) { return (double)lin_audio_position(s->audio) / s->info.rate_hz; }

double lin_source_duration(const lin_source *s) { return s->info.frames < 0 ? -1 : (double)s->info.frames / s->info.rate_hz; }

const lin_audio_format *lin_source_info(const lin_source *s) { return &s->info; }

void lin_source_close(lin_source *s)
{
    if (!s) return;
    lin_audio_close(s->audio);
    lin_extractor_destroy(s->features);
    lin_free(s->sound);
    lin_free(s->frames);
    lin_free(s);
}
