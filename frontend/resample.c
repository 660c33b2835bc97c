// resample.c - soxr in blocks, with a state that can be saved; see resample.h.

#include "frontend/resample.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <soxr.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

// Input is passed to libsoxr 5 ms at a time (but at least MIN_BLOCK samples), however it arrives.
enum { MIN_BLOCK = 16 };

// Output samples on which a new state is checked. A power of two.
enum { RECENT = 256 };

struct lin_resampler {
    double in_hz, out_hz;
    soxr_t soxr; // NULL: equal rates
    int finished;
    int64_t taken, given; // samples
    int64_t made;         // by libsoxr: those before `given` are skipped
    int block, held;
    float *samples; // [block]
    int room;
    float *output; // [room]

    // if it keeps its past, or was loaded
    int64_t period; // 0: it does not keep its past
    int64_t origin; // the index of past[0] among all input samples
    int n_past, most_past;
    float *past, *recent; // [most_past]; [RECENT], output i at i % RECENT
    int replay;           // the past has not yet been fed to libsoxr
};

static lin_status make_soxr(double in_hz, double out_hz, soxr_t *soxr, lin_error *err)
{
    soxr_error_t error = NULL;
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    *soxr = soxr_create(in_hz, out_hz, 1, &error, NULL, &quality, &runtime);
    if (*soxr && !error) return LIN_OK;
    return lin_fail(err, LIN_NO_MEMORY, "cannot resample from %g to %g Hz: %s", in_hz, out_hz, soxr_strerror(error));
}

static int block_of(double in_hz) { return (int)(in_hz / 200) > MIN_BLOCK ? (int)(in_hz / 200) : MIN_BLOCK; }

lin_status lin_resampler_create(double in_hz, double out_hz, lin_resampler **out, lin_error *err)
{
    *out = NULL;
    if (!(in_hz >= 1000 && in_hz <= 1e6 && out_hz >= 1000 && out_hz <= 1e6))
        return lin_fail(err, LIN_INVALID, "cannot resample from %g to %g Hz: rates from 1 kHz to 1 MHz", in_hz, out_hz);
    lin_resampler *r = lin_calloc(1, sizeof *r);
    if (!r) return lin_no_memory(err, "a resampler", sizeof *r);
    r->in_hz = in_hz;
    r->out_hz = out_hz;
    lin_status status = LIN_OK;
    if (in_hz != out_hz) {
        r->block = block_of(in_hz);
        r->room = (int)(r->block * out_hz / in_hz) + 64;
        r->samples = lin_alloc((size_t)(r->block + r->room), sizeof(float));
        r->output = r->samples ? r->samples + r->block : NULL;
        status = r->samples ? make_soxr(in_hz, out_hz, &r->soxr, err)
                            : lin_no_memory(err, "a resampler", (size_t)(r->block + r->room) * sizeof(float));
    }
    if (status != LIN_OK) {
        lin_resampler_destroy(r);
        return status;
    }
    *out = r;
    return LIN_OK;
}

int lin_resampler_most_out(const lin_resampler *r, int n)
{
    if (!r->soxr) return n;
    // The input up to then, minus the output; libsoxr may round up.
    double total = ceil((double)(r->taken + n) * r->out_hz / r->in_hz) + 2;
    return (int)fmin(total - (double)r->given, INT_MAX);
}

// Returns libsoxr's output, n samples in r->output, except those that were returned before.
static lin_status give(lin_resampler *r, size_t n, float *out, int capacity, int *got, lin_error *err)
{
    assert(n <= (size_t)r->room && capacity >= *got);
    const int64_t before = r->given - r->made;
    const size_t skip = before <= 0 ? 0 : (uint64_t)before < n ? (size_t)before : n;
    if (n - skip > (size_t)(capacity - *got))
        return lin_fail(err, LIN_TOO_SMALL, "resampler: libsoxr gave more samples than expected");
    memcpy(out + *got, r->output + skip, (n - skip) * sizeof(float));
    for (size_t i = 0; r->recent && i < n; i++) r->recent[(r->made + (int64_t)i) & (RECENT - 1)] = r->output[i];
    r->made += (int64_t)n;
    *got += (int)(n - skip);
    r->given += (int64_t)(n - skip);
    return LIN_OK;
}

// Feeds n samples (0: the end) to libsoxr and collects its whole output for them. The calls depend only on n: not on the parts in
// which samples arrive, nor on the caller's room.
static lin_status feed(lin_resampler *r, const float *in, int n, float *out, int capacity, int *got, lin_error *err)
{
    size_t fed = 0, used = 0, made;
    do {
        soxr_error_t error =
            soxr_process(r->soxr, n ? in + fed : NULL, (size_t)n - fed, &used, r->output, (size_t)r->room, &made);
        if (error) return lin_fail(err, LIN_NO_MEMORY, "cannot resample from %g to %g Hz: %s", r->in_hz, r->out_hz, error);
        if (n) fed += used;
        LIN_TRY(give(r, made, out, capacity, got, err));
    } while (made || (n && used));
    return LIN_OK;
}

static lin_status check_room(const lin_resampler *r, int n, int capacity, lin_error *err)
{
    if (r->finished || n < 0) return lin_fail(err, LIN_INVALID, "resampler: a push of %d samples, or after the end", n);
    int most = lin_resampler_most_out(r, n);
    if (capacity < most)
        return lin_fail(err, LIN_TOO_SMALL, "resampler: %d samples may give %d, but there is room for %d", n, most, capacity);
    return LIN_OK;
}

// Input samples after which libsoxr's output no longer depends on earlier input, for any position of its blocks.
static int64_t settling(double in_hz, double out_hz) { return (int64_t)ceil(4096 * in_hz / fmin(in_hz, out_hz)); }

// Where a state saved now must begin: at the last period that has settled before the most recent outputs, on which it is checked.
static int64_t begin_of_past(const lin_resampler *r)
{
    const double at = floor((double)(r->given - RECENT) * r->in_hz / r->out_hz) - (double)settling(r->in_hz, r->out_hz);
    return at < 0 ? 0 : (int64_t)at / r->period * r->period;
}

static lin_status keep(lin_resampler *r, const float *in, int n, lin_error *err)
{
    if (!r->period) return LIN_OK;
    if (r->n_past + n > r->most_past) {
        const int64_t begin = begin_of_past(r), drop = begin - r->origin;
        if (drop > 0) {
            r->n_past -= (int)drop;
            memmove(r->past, r->past + drop, (size_t)r->n_past * sizeof *r->past);
            r->origin = begin;
        }
        if (r->n_past + n > r->most_past)
            return lin_fail(err, LIN_UNSUPPORTED, "resampler: libsoxr holds more samples than expected");
    }
    memcpy(r->past + r->n_past, in, (size_t)n * sizeof *in);
    r->n_past += n;
    return LIN_OK;
}

static lin_status take_in(lin_resampler *r, const float *in, int n, int is_new, float *out, int capacity, int *got,
                          lin_error *err)
{
    for (int at = 0; at < n;) {
        int take = r->block - r->held < n - at ? r->block - r->held : n - at;
        lin_status status = is_new ? keep(r, in + at, take, err) : LIN_OK;
        memcpy(r->samples + r->held, in + at, (size_t)take * sizeof(float));
        r->held += take;
        at += take;
        if (status == LIN_OK && r->held == r->block) {
            r->held = 0;
            status = feed(r, r->samples, r->block, out, capacity, got, err);
        }
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static lin_status take_past(lin_resampler *r, float *out, int capacity, int *got, lin_error *err)
{
    if (!r->replay) return LIN_OK;
    r->replay = 0;
    return take_in(r, r->past, r->n_past, 0, out, capacity, got, err);
}

lin_status lin_resampler_push(lin_resampler *r, const float *in, int n, float *out, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    LIN_TRY(check_room(r, n, capacity, err));
    if (!r->soxr) {
        memcpy(out, in, (size_t)n * sizeof(float));
        *n_out = n;
        return LIN_OK;
    }
    r->taken += n;
    int got = 0;
    LIN_TRY(take_past(r, out, capacity, &got, err));
    LIN_TRY(take_in(r, in, n, 1, out, capacity, &got, err));
    *n_out = got;
    return LIN_OK;
}

lin_status lin_resampler_finish(lin_resampler *r, float *out, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    LIN_TRY(check_room(r, 0, capacity, err));
    r->finished = 1;
    if (!r->soxr) return LIN_OK;
    int got = 0;
    LIN_TRY(take_past(r, out, capacity, &got, err));
    if (r->held) LIN_TRY(feed(r, r->samples, r->held, out, capacity, &got, err));
    LIN_TRY(feed(r, NULL, 0, out, capacity, &got, err));
    *n_out = got;
    return LIN_OK;
}

lin_status lin_resampler_reset(lin_resampler *r, lin_error *err)
{
    r->taken = r->given = r->made = r->origin = 0;
    r->held = r->finished = r->n_past = r->replay = 0;
    if (!r->block) return LIN_OK;
    soxr_delete(r->soxr);
    r->soxr = NULL;
    lin_status status = make_soxr(r->in_hz, r->out_hz, &r->soxr, err);
    r->finished = status != LIN_OK;
    return status;
}

void lin_resampler_destroy(lin_resampler *r)
{
    if (!r) return;
    if (r->soxr) soxr_delete(r->soxr);
    lin_free(r->samples);
    lin_free(r->past);
    lin_free(r->recent);
    lin_free(r);
}

/* ---- the period ------------------------------------------------------------------------------------------------------------ */

typedef struct trial {
    double in_hz, out_hz;
    int block;
    float *in, *out; // in [block], out [room]
    size_t room;
} trial;

// Output [n] of a resampler that gets noise from sample `from` on; the noise depends only on the sample index.
static lin_status resample_noise(const trial *t, int64_t from, float *out, int64_t n, lin_error *err)
{
    soxr_t soxr;
    lin_status status = make_soxr(t->in_hz, t->out_hz, &soxr, err);
    int64_t done = 0;
    size_t used, made;
    while (status == LIN_OK && done < n) {
        for (int i = 0; i < t->block; i++) t->in[i] = (float)((double)(lin_mix64((uint64_t)(from + i)) >> 40) * 0x1p-24 - 0.5);
        from += t->block;
        for (size_t fed = 0; done < n;) {
            soxr_error_t error = soxr_process(soxr, t->in + fed, (size_t)t->block - fed, &used, t->out, t->room, &made);
            if (error) status = lin_fail(err, LIN_NO_MEMORY, "cannot resample from %g to %g Hz: %s", t->in_hz, t->out_hz, error);
            if (error || (!made && !used)) break;
            fed += used;
            if ((int64_t)made > n - done) made = (size_t)(n - done);
            memcpy(out + done, t->out, made * sizeof *out);
            done += (int64_t)made;
        }
    }
    if (soxr) soxr_delete(soxr);
    return status;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

lin_status lin_resampler_find_period(double in_hz, double out_hz, int64_t *period, lin_error *err)
{
    enum { FIRST = 64, ALL = 4096 }; // samples compared: few, and if those are equal, more
    *period = 0;
    if (in_hz == out_hz) return LIN_OK;
    const int64_t in = (int64_t)in_hz, out = (int64_t)out_hz;
    if ((double)in != in_hz || (double)out != out_hz || in < 1000 || out < 1000 || in > 1000000 || out > 1000000)
        return lin_fail(err, LIN_UNSUPPORTED, "resampling from %g to %g Hz has no state that can be saved", in_hz, out_hz);
    const int64_t divisor = common_divisor(in, out), unit_in = in / divisor, unit_out = out / divisor;
    const int64_t most = LIN_RESAMPLER_LONGEST_S * divisor; // units
    const int64_t settle = settling(in_hz, out_hz) * out / in + 1, n_all = most * unit_out + settle + ALL;
    trial t = {.in_hz = in_hz, .out_hz = out_hz, .block = block_of(in_hz)};
    t.room = (size_t)((double)t.block * out_hz / in_hz) + 64;
    t.in = lin_alloc((size_t)t.block, sizeof *t.in);
    t.out = lin_alloc(t.room, sizeof *t.out);
    float *all = lin_alloc((size_t)n_all, sizeof *all), *again = lin_alloc((size_t)settle + ALL, sizeof *again);
    lin_status status = LIN_OK;
    if (!t.in || !t.out || !all || !again) status = lin_no_memory(err, "a resampler", (size_t)n_all * sizeof *all);
    if (status == LIN_OK) status = resample_noise(&t, 0, all, n_all, err);
    for (int64_t k = 1; status == LIN_OK && k <= most && !*period; k++) {
        const float *there = all + k * unit_out + settle;
        status = resample_noise(&t, k * unit_in, again, settle + FIRST, err);
        if (status != LIN_OK || memcmp(again + settle, there, FIRST * sizeof *there) != 0) continue;
        status = resample_noise(&t, k * unit_in, again, settle + ALL, err);
        if (status == LIN_OK && memcmp(again + settle, there, ALL * sizeof *there) == 0) *period = k * unit_in;
    }
    lin_free(t.in);
    lin_free(t.out);
    lin_free(all);
    lin_free(again);
    if (status != LIN_OK || *period) return status;
    return lin_fail(err, LIN_UNSUPPORTED,
                    "resampling from %g to %g Hz has no state that can be saved: it does not repeat within %d s", in_hz, out_hz,
                    (int)LIN_RESAMPLER_LONGEST_S);
}

/* ---- states ---------------------------------------------------------------------------------------------------------------- */

typedef struct state_header {
    int64_t in_hz, out_hz, taken, given, origin, n_past; // n_past: number of samples that follow, 0 or all since the origin
} state_header;

lin_status lin_resampler_keep_past(lin_resampler *r, int64_t period, lin_error *err)
{
    if (!r->soxr) return LIN_OK;
    if (r->taken || period < 1 || period > LIN_RESAMPLER_LONGEST_S * (int64_t)r->in_hz)
        return lin_fail(err, LIN_INVALID, "resampler: cannot keep a past with a period of %lld", (long long)period);
    // Needed are a period, the settling time, and what libsoxr holds; a second period makes moving the samples rare.
    const int64_t most = 2 * period + settling(r->in_hz, r->out_hz) + 2 * (int64_t)r->in_hz + MIN_BLOCK;
    lin_free(r->past);
    lin_free(r->recent);
    r->past = lin_alloc((size_t)most, sizeof *r->past);
    r->recent = lin_calloc(RECENT, sizeof *r->recent);
    r->most_past = r->past ? (int)most : 0;
    if (!r->past || !r->recent) return lin_no_memory(err, "a resampler", (size_t)most * sizeof *r->past);
    r->period = period;
    return LIN_OK;
}

size_t lin_resampler_state_bytes(const lin_resampler *r)
{
    return sizeof(state_header) + (r->period ? (size_t)(r->taken - begin_of_past(r)) * sizeof(float) : 0);
}

// Checks that a resampler that begins with the saved past gives the last outputs of this one.
static lin_status try_past(const lin_resampler *r, int64_t origin, lin_error *err)
{
    const int64_t recent = r->given < RECENT ? r->given : RECENT;
    if (origin == 0 || recent == 0 || r->replay) return LIN_OK;
    lin_resampler *other;
    int n = 0;
    LIN_TRY(lin_resampler_create(r->in_hz, r->out_hz, &other, err));
    other->taken = r->taken;
    other->given = r->given - recent;
    other->made = (int64_t)((double)origin * r->out_hz / r->in_hz + 0.5);
    int room = lin_resampler_most_out(other, 0), same = 1;
    float *out = lin_alloc((size_t)room, sizeof *out);
    lin_status status = out ? LIN_OK : lin_no_memory(err, "a resampler", (size_t)room * sizeof *out);
    if (status == LIN_OK)
        status = take_in(other, r->past + (origin - r->origin), (int)(r->taken - origin), 0, out, room, &n, err);
    // libsoxr gives output in bursts: the last one may depend on samples that are still held.
    if (status == LIN_OK) status = feed(other, other->samples, other->held, out, room, &n, err);
    for (int i = 0; i < n && i < recent; i++)
        same &= memcmp(out + i, r->recent + ((r->given - recent + i) & (RECENT - 1)), sizeof *out) == 0;
    lin_free(out);
    lin_resampler_destroy(other);
    if (status != LIN_OK || (same && n >= recent)) return status;
    return lin_fail(err, LIN_UNSUPPORTED, "resampling from %g to %g Hz cannot be resumed with the same bits", r->in_hz,
                    r->out_hz);
}

lin_status lin_resampler_save(const lin_resampler *r, void *bytes, lin_error *err)
{
    state_header h = {.in_hz = (int64_t)r->in_hz, .out_hz = (int64_t)r->out_hz};
    if (r->finished || (r->soxr && !r->period))
        return lin_fail(err, LIN_INVALID, "resampler: cannot save, because it is finished or does not keep its past");
    if (r->soxr) {
        h.taken = r->taken;
        h.given = r->given;
        h.origin = begin_of_past(r);
        h.n_past = r->taken - h.origin;
        if (h.origin < r->origin)
            return lin_fail(err, LIN_UNSUPPORTED, "a resampler loaded from the state of another libsoxr cannot be saved yet");
        LIN_TRY(try_past(r, h.origin, err));
        memcpy((unsigned char *)bytes + sizeof h, r->past + (h.origin - r->origin), (size_t)h.n_past * sizeof(float));
    }
    memcpy(bytes, &h, sizeof h);
    return LIN_OK;
}

lin_status lin_resampler_load(lin_resampler *r, const void *bytes, size_t n_bytes, lin_error *err)
{
    state_header h;
    if (n_bytes < sizeof h) return lin_fail(err, LIN_FORMAT, "the state of a resampler is truncated");
    memcpy(&h, bytes, sizeof h);
    if ((double)h.in_hz != r->in_hz || (double)h.out_hz != r->out_hz)
        return lin_fail(err, LIN_FORMAT, "the state of a resampler is from %lld to %lld Hz, not from %g to %g",
                        (long long)h.in_hz, (long long)h.out_hz, r->in_hz, r->out_hz);
    const int64_t longest = 2 * (LIN_RESAMPLER_LONGEST_S + 2) * h.in_hz + settling(r->in_hz, r->out_hz);
    const int64_t past = h.taken >= 0 && h.origin >= 0 ? h.taken - h.origin : -1;
    if (h.taken < 0 || h.taken > INT64_MAX / 1000000 || h.given < 0 || h.origin < 0 || past < 0 || past > longest ||
        h.n_past != (r->soxr ? past : 0) || n_bytes != sizeof h + (size_t)h.n_past * sizeof(float) || (!r->soxr && h.taken) ||
        (double)h.given > (double)h.taken * r->out_hz / r->in_hz + 2 || h.origin * h.out_hz % h.in_hz != 0 ||
        h.given < h.origin / h.in_hz * h.out_hz)
        return lin_fail(err, LIN_FORMAT, "the state of a resampler is inconsistent");
    if (!r->soxr) return LIN_OK;
    if (r->taken) return lin_fail(err, LIN_INVALID, "resampler: cannot load after the first input");
    if (past > r->most_past) {
        float *larger = lin_resize(r->past, (size_t)past, sizeof *larger);
        if (!larger) return lin_no_memory(err, "a resampler", (size_t)past * sizeof *larger);
        r->past = larger;
        r->most_past = (int)past;
    }
    memcpy(r->past, (const unsigned char *)bytes + sizeof h, (size_t)h.n_past * sizeof(float));
    r->n_past = (int)h.n_past;
    r->taken = h.taken;
    r->given = h.given;
    r->origin = h.origin;
    r->made = h.origin / h.in_hz * h.out_hz + h.origin % h.in_hz * h.out_hz / h.in_hz;
    r->replay = 1;
    return LIN_OK;
}

/* ---- one channel ----------------------------------------------------------------------------------------------------------- */

void lin_mix_down(float *mono, const float *samples, int n, int channels)
{
    for (int i = 0; i < n; i++) {
        const float *frame = samples + (size_t)i * (size_t)channels;
        float sum = 0;
        for (int c = 0; c < channels; c++) sum += frame[c];
        mono[i] = sum / (float)channels;
    }
}
