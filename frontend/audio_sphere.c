// audio_sphere.c - NIST SPHERE files and pipes: their samples, plain or compressed with shorten, and the check of their count and
// checksum; see audio_internal.h.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "frontend/audio_internal.h"
#include "frontend/pcm.h"
#include "frontend/shorten.h"
#include "frontend/sphere.h"

struct lin_audio_sphere {
    lin_sphere header;
    lin_shorten *shorten; // NULL: plain samples
    int64_t summed;       // frames in the sum, all from the beginning on
    uint32_t sum;
};

/* ---- the bytes of the compressed samples ----------------------------------------------------------------------------------- */

static lin_status read_bytes(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err)
{
    lin_audio *a = context;
    int end = 0;
    lin_status status = a->held ? LIN_OK : lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
    *n = status != LIN_OK ? 0 : a->held < capacity ? a->held : capacity;
    memcpy(bytes, a->bytes + a->at, (size_t)*n);
    a->at += *n;
    a->held -= *n;
    return status;
}

static lin_status open_shorten(lin_audio *a, lin_error *err)
{
    lin_audio_sphere *s = a->sphere;
    lin_error why = {0};
    lin_status status = lin_shorten_open(read_bytes, a, &s->shorten, &why);
    if (status != LIN_OK && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
    if (status != LIN_OK) return lin_fail(err, status, "%s cannot be read: %s", a->name, why.message);
    const int channels = lin_shorten_channels(s->shorten), is_mulaw = lin_shorten_is_mulaw(s->shorten);
    if (channels != s->header.channels)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its compressed samples have %d channels, its header gives %d", a->name,
                        channels, s->header.channels);
    if (is_mulaw != (s->header.coding == LIN_SPHERE_MULAW))
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its compressed samples are %s, which its header does not give", a->name,
                        is_mulaw ? "mu-law" : "16-bit");
    return LIN_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

// Reads the header; the bytes after it stay held.
static lin_status get_header(lin_audio *a, lin_sphere *header, lin_error *err)
{
    lin_error why = {0};
    int more, end = 0;
    lin_status status = lin_audio_make_room(a, err);
    while (status == LIN_OK) {
        status = lin_sphere_parse(a->bytes + a->at, (size_t)a->held, header, &more, &why);
        if (status != LIN_OK) return lin_fail(err, status, "%s cannot be read: %s", a->name, why.message);
        if (!more) break;
        status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
        if (status == LIN_OK && end && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
        if (status == LIN_OK && end)
            return lin_fail(err, LIN_FORMAT, "%s is truncated: it ends within its SPHERE header", a->name);
    }
    if (status != LIN_OK) return status;
    a->at += header->header_bytes;
    a->held -= header->header_bytes;
    return LIN_OK;
}

// How many frames the header gives, or else the file, if its samples are plain.
static void count_frames(lin_audio *a, lin_sphere *h)
{
    const int64_t bytes = a->live || h->shorten ? -1 : a->size - h->header_bytes;
    // The first Switchboard releases count the samples of both channels.
    if (bytes > 0 && h->channels > 1 && h->frames > 0 && h->frames <= bytes && h->frames * h->sample_bytes == bytes)
        h->frames /= h->channels;
    a->left = h->frames >= 0 && h->frames < INT64_MAX / a->frame_bytes ? h->frames * a->frame_bytes : -1;
    a->info.frames = a->left >= 0 ? h->frames : bytes >= 0 ? bytes / a->frame_bytes : -1;
}

lin_status lin_audio_open_sphere(lin_audio *a, int *is, lin_error *err)
{
    static const lin_pcm_encoding linear[] = {0, 0, LIN_PCM_S16LE, LIN_PCM_S24LE, LIN_PCM_S32LE};
    static const char *const names[] = {"", "mu-law", "A-law"}, *const widths[] = {"", "", "16 bit", "24 bit", "32 bit"};
    lin_sphere h;
    *is = 1;
    lin_status status = get_header(a, &h, err);
    if (status == LIN_OK) status = lin_audio_check_format(a->name, h.rate_hz, h.channels, err);
    if (status != LIN_OK) return status;
    if (h.sample_bytes == 1 && h.coding == LIN_SPHERE_PCM) {
        *is = 0;
        a->at -= h.header_bytes;
        a->held += h.header_bytes;
        return LIN_OK;
    }
    if (h.frames == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    a->sphere = lin_calloc(1, sizeof *a->sphere);
    if (!a->sphere) return lin_no_memory(err, a->name, sizeof *a->sphere);
    const lin_pcm_format format = {.rate_hz = h.rate_hz,
                                   .channels = h.channels,
                                   .encoding = h.coding == LIN_SPHERE_MULAW  ? LIN_PCM_MULAW
                                               : h.coding == LIN_SPHERE_ALAW ? LIN_PCM_ALAW
                                                                             : linear[h.sample_bytes]};
    status = lin_audio_open_raw(a, &format, err);
    if (status != LIN_OK) return status;
    count_frames(a, &h);
    a->sphere->header = h;
    snprintf(a->info.format, sizeof a->info.format, "SPHERE (NIST), %s%s",
             h.coding == LIN_SPHERE_PCM ? widths[h.sample_bytes] : names[h.coding], h.shorten ? ", shorten" : "");
    return h.shorten ? open_shorten(a, err) : LIN_OK;
}

/* ---- checks ---------------------------------------------------------------------------------------------------------------- */

// Fails if the frames of the whole file do not have the count and the sum of the header.
static lin_status check_whole(const lin_audio *a, int64_t total, lin_error *err)
{
    const lin_audio_sphere *s = a->sphere;
    const long long wanted = (long long)s->header.frames, is = (long long)total;
    // The first Switchboard releases count the samples of both channels.
    const int is_doubled = total <= wanted / a->info.channels && total * a->info.channels == wanted;
    if (wanted >= 0 && is < wanted && !is_doubled)
        return lin_fail(err, LIN_FORMAT, "%s is truncated: it has %lld samples, its header gives %lld", a->name, is, wanted);
    if (wanted >= 0 && is > wanted)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: it has %lld samples or more, its header gives %lld", a->name, is,
                        wanted);
    if (s->header.checksum >= 0 && s->summed == total && (s->sum & 0xffff) != (uint32_t)s->header.checksum)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: the checksum of its samples is %u, its header gives %d", a->name,
                        (unsigned)(s->sum & 0xffff), (int)s->header.checksum);
    return LIN_OK;
}

/* ---- plain samples --------------------------------------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *b, size_t n_samples, int width)
{
    for (size_t i = 0; i < n_samples; i++, b += width) {
        for (int k = 0; k < width / 2; k++) {
            const unsigned char first = b[k];
            b[k] = b[width - 1 - k];
            b[width - 1 - k] = first;
        }
    }
}

void lin_audio_sphere_frames(lin_audio *a, int64_t position, unsigned char *bytes, int n_frames)
{
    lin_audio_sphere *s = a->sphere;
    const size_t n = (size_t)n_frames * (size_t)a->info.channels;
    if (s->header.big_endian) swap_bytes(bytes, n, s->header.sample_bytes);
    if (s->summed != position) return; // after a seek
    if (s->header.sample_bytes == 1)
        for (size_t i = 0; i < n; i++) s->sum += bytes[i];
    else
        for (size_t i = 0; i < n; i++) {
            const unsigned char *b = bytes + i * (size_t)s->header.sample_bytes;
            s->sum += (uint32_t)b[1] << 8 | b[0];
        }
    s->summed += n_frames;
}

lin_status lin_audio_sphere_end(const lin_audio *a, int64_t total, lin_error *err)
{
    const lin_sphere *h = &a->sphere->header;
    if (lin_audio_is_stopped()) return LIN_OK;
    const int64_t present = a->live ? -1 : (a->size - h->header_bytes) / a->frame_bytes; // a pipe is read no further
    if (h->frames >= 0 && present > h->frames) return check_whole(a, present, err);
    return total <= h->frames || h->frames < 0 ? check_whole(a, total, err) : LIN_OK; // beyond the end after a seek
}

void lin_audio_sphere_seek(lin_audio *a, int64_t frame)
{
    if (a->left >= 0) a->left = frame <= a->sphere->header.frames ? (a->sphere->header.frames - frame) * a->frame_bytes : 0;
}

/* ---- compressed samples ---------------------------------------------------------------------------------------------------- */

int lin_audio_is_packed(const lin_audio *a) { return a->sphere && a->sphere->shorten; }

static lin_status failed(lin_audio *a, int64_t total, const lin_error *why, lin_error *err)
{
    a->end = 1;
    if (a->live && lin_audio_is_stopped()) return LIN_OK;
    if (why->status == LIN_IO) return lin_fail_as(err, why);
    return lin_fail(err, why->status, "%s cannot be read beyond %.3f s: %s", a->name, (double)total / a->info.rate_hz,
                    why->message);
}

lin_status lin_audio_read_packed(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    enum { BLOCK = 2048 };
    lin_audio_sphere *s = a->sphere;
    const int channels = a->info.channels, most = BLOCK / channels;
    lin_error why = {0};
    int done = 0;
    while (done < capacity && !a->end) {
        int16_t block[BLOCK];
        int got;
        const int wanted = capacity - done < most ? capacity - done : most;
        if (lin_shorten_read(s->shorten, block, wanted, &got, &why) != LIN_OK) {
            if (done == 0) return failed(a, a->position, &why, err);
            break; // frames before the fault are given first; the next call then fails
        }
        if (got == 0 && done) break; // the next call checks the whole
        const int is_mulaw = lin_shorten_is_mulaw(s->shorten);
        for (int i = 0; i < got * channels; i++) {
            s->sum += (uint16_t)block[i];
            if (is_mulaw) {
                const unsigned char code = (unsigned char)block[i];
                lin_pcm_decode(LIN_PCM_MULAW, &code, 1, frames + done * channels + i);
            } else {
                frames[done * channels + i] = (float)block[i] * 0x1p-15f;
            }
        }
        done += got;
        s->summed += got;
        const int64_t total = a->position + done;
        if (got == 0) a->end = 1;
        if (got == 0 || (s->header.frames >= 0 && total > s->header.frames)) {
            const lin_status status = check_whole(a, total, err);
            if (status != LIN_OK) return status;
        }
        if (a->live && done) break;
    }
    *n = done;
    if (a->end && done == 0 && a->position == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    return LIN_OK;
}

int lin_audio_has_packed(const lin_audio *a) { return lin_audio_is_packed(a) && lin_shorten_has_more(a->sphere->shorten); }

void lin_audio_close_sphere(lin_audio *a)
{
    if (a->sphere) lin_shorten_close(a->sphere->shorten);
    lin_free(a->sphere);
}
