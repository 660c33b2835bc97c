#include "frontend/resample.h"

#include <limits.h>
#include <math.h>
#include <soxr.h>
#include <stdint.h>
#include <string.h>

#include "kernels/memory.h"

// Input is handed to libsoxr 5 ms at a time (but no fewer than MIN_BLOCK samples), however it arrives.
enum { MIN_BLOCK = 16 };

struct lin_resampler {
    double in_hz, out_hz;
    soxr_t soxr; // NULL: equal rates
    int finished;
    int64_t taken, given; // samples
    int block, held;
    float *samples; // [block]
    int room;
    float *output; // [room]
};

static lin_status make_soxr(lin_resampler *r, lin_error *err)
{
    soxr_error_t error = NULL;
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    r->soxr = soxr_create(r->in_hz, r->out_hz, 1, &error, NULL, &quality, &runtime);
    if (r->soxr && !error) return LIN_OK;
    return lin_fail(err, LIN_NO_MEMORY, "cannot resample from %g to %g Hz: %s", r->in_hz, r->out_hz, soxr_strerror(error));
}

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
        r->block = (int)(in_hz / 200) > MIN_BLOCK ? (int)(in_hz / 200) : MIN_BLOCK;
        r->room = (int)(r->block * out_hz / in_hz) + 64;
        r->samples = lin_alloc((size_t)(r->block + r->room), sizeof(float));
        r->output = r->samples ? r->samples + r->block : NULL;
        status = r->samples ? make_soxr(r, err) : lin_no_memory(err, "a resampler", (size_t)(r->block + r->room) * sizeof(float));
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
    // What has come in by then, less what has gone out; libsoxr may round up.
    double total = ceil((double)(r->taken + n) * r->out_hz / r->in_hz) + 2;
    return (int)fmin(total - (double)r->given, INT_MAX);
}

// Feeds n samples (0: the end) to libsoxr and collects all that it gives for them. How it is called depends on nothing but n:
// neither on the pieces that the samples came in, nor on the caller's room.
static lin_status feed(lin_resampler *r, const float *in, int n, float *out, int capacity, int *n_out, lin_error *err)
{
    size_t fed = 0, got = 0, used = 0, given;
    do {
        soxr_error_t error = soxr_process(r->soxr, n ? in + fed : NULL, (size_t)n - fed, &used, r->output, (size_t)r->room, &given);
        if (error) return lin_fail(err, LIN_NO_MEMORY, "cannot resample from %g to %g Hz: %s", r->in_hz, r->out_hz, error);
        if (n) fed += used;
        if (given > (size_t)capacity - got) return lin_fail(err, LIN_TOO_SMALL, "resampler: more samples than it promised");
        memcpy(out + got, r->output, given * sizeof(float));
        got += given;
    } while (given || (n && used));
    *n_out = (int)got;
    r->given += (int64_t)got;
    return LIN_OK;
}

static lin_status check_room(const lin_resampler *r, int n, int capacity, lin_error *err)
{
    if (r->finished || n < 0) return lin_fail(err, LIN_INVALID, "resampler: %d samples, or samples after the end", n);
    int most = lin_resampler_most_out(r, n);
    if (capacity < most)
        return lin_fail(err, LIN_TOO_SMALL, "resampler: %d samples may give %d, but there is room for %d", n, most, capacity);
    return LIN_OK;
}

lin_status lin_resampler_push(lin_resampler *r, const float *in, int n, float *out, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    lin_status status = check_room(r, n, capacity, err);
    if (status != LIN_OK) return status;
    if (!r->soxr) {
        memcpy(out, in, (size_t)n * sizeof(float));
        *n_out = n;
        return LIN_OK;
    }
    r->taken += n;
    int done = 0;
    for (int at = 0; at < n;) {
        int take = r->block - r->held < n - at ? r->block - r->held : n - at, got;
        memcpy(r->samples + r->held, in + at, (size_t)take * sizeof(float));
        r->held += take;
        at += take;
        if (r->held < r->block) break;
        r->held = 0;
        status = feed(r, r->samples, r->block, out + done, capacity - done, &got, err);
        if (status != LIN_OK) return status;
        done += got;
    }
    *n_out = done;
    return LIN_OK;
}

lin_status lin_resampler_finish(lin_resampler *r, float *out, int capacity, int *n_out, lin_error *err)
{
    *n_out = 0;
    lin_status status = check_room(r, 0, capacity, err);
    if (status != LIN_OK) return status;
    r->finished = 1;
    if (!r->soxr) return LIN_OK;
    int first = 0, last = 0;
    if (r->held) status = feed(r, r->samples, r->held, out, capacity, &first, err);
    if (status == LIN_OK) status = feed(r, NULL, 0, out + first, capacity - first, &last, err);
    if (status == LIN_OK) *n_out = first + last;
    return status;
}

lin_status lin_resampler_reset(lin_resampler *r, lin_error *err)
{
    r->taken = r->given = 0;
    r->held = r->finished = 0;
    if (!r->block) return LIN_OK;
    soxr_delete(r->soxr);
    r->soxr = NULL;
    lin_status status = make_soxr(r, err);
    r->finished = status != LIN_OK;
    return status;
}

void lin_resampler_destroy(lin_resampler *r)
{
    if (!r) return;
    if (r->soxr) soxr_delete(r->soxr);
    lin_free(r->samples);
    lin_free(r);
}
