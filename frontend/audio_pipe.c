// audio_pipe.c - sound from a pipe; see audio_internal.h.

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "frontend/audio_internal.h"

lin_status lin_audio_look(lin_audio *a, lin_sniffed *kind, const char **what, lin_error *err)
{
    int end = 0;
    lin_status status = lin_audio_make_room(a, err);
    *kind = LIN_SNIFF_UNKNOWN;
    *what = "";
    // Bytes that look like text may turn out to be something else.
    while (status == LIN_OK && !end && a->held < LIN_SNIFF_BYTES && (*kind == LIN_SNIFF_UNKNOWN || strcmp(*what, "text") == 0)) {
        status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
        if (status == LIN_OK && a->held) *kind = lin_sniff(a->bytes, (size_t)a->held, what);
    }
    if (status == LIN_OK && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
    if (status == LIN_OK && a->held == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    return status;
}

static void begin_wav(lin_audio *a, const lin_wav *wav)
{
    a->at += (int)wav->at;
    a->held -= (int)wav->at;
    a->left = wav->bytes;
    a->padding = wav->bytes > 0 ? (int)(wav->bytes & 1) : 0;
    a->is_wav = 1;
    a->part_begin = a->position;
    a->declared = 0;
}

lin_status lin_audio_open_wav(lin_audio *a, int *is, lin_error *err)
{
    lin_wav wav;
    int found, end = 0;
    lin_status status = LIN_OK;
    *is = 0;
    while ((found = lin_wav_find(a->bytes, (size_t)a->held, &wav)) == 0 && !end && a->held < LIN_AUDIO_RAW_BYTES &&
           status == LIN_OK)
        status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
    if (found != 1 || status != LIN_OK) return status;
    *is = 1;
    status = lin_audio_open_raw(a, &wav.pcm, err);
    if (status != LIN_OK) return status;
    begin_wav(a, &wav);
    if (wav.bytes >= 0) a->info.frames = wav.bytes / a->frame_bytes;
    snprintf(a->info.format, sizeof a->info.format, "WAV, %s", lin_pcm_name(wav.pcm.encoding));
    return LIN_OK;
}

/* ---- after the samples of a WAV file in a pipe ----------------------------------------------------------------------------- */

// Reads until `wanted` bytes are held.
static lin_status hold(lin_audio *a, int wanted, lin_error *err)
{
    int end = 0;
    lin_status status = LIN_OK;
    while (status == LIN_OK && !end && a->held < wanted) status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
    return status;
}

static lin_status skip(lin_audio *a, int64_t n, lin_error *err)
{
    lin_status status = LIN_OK;
    while (n > 0 && status == LIN_OK) {
        status = hold(a, 1, err);
        const int some = n < a->held ? (int)n : a->held;
        if (some == 0) break;
        a->at += some;
        a->held -= some;
        n -= some;
    }
    return status;
}

static int is_chunk(const unsigned char *b)
{
    for (int i = 0; i < 4; i++)
        if (b[i] < ' ' || b[i] > '~') return 0;
    return b[7] == 0; // at most 16 MB
}

// Another WAV file: its samples go on.
static lin_status join(lin_audio *a, lin_error *err)
{
    lin_wav wav;
    int found = 0;
    lin_status status = LIN_OK;
    for (int wanted = 256; found == 0 && status == LIN_OK && wanted <= LIN_AUDIO_RAW_BYTES; wanted *= 2) {
        status = hold(a, wanted, err);
        found = lin_wav_find(a->bytes + a->at, (size_t)a->held, &wav);
    }
    if (status != LIN_OK) return status;
    if (found != 1 || wav.pcm.rate_hz != a->info.rate_hz || wav.pcm.channels != a->info.channels) {
        lin_audio_warn(a, 1,
                       "%s consists of several WAV files; the one that begins after %.3f s is not read: its format is another",
                       a->name, (double)a->position / a->info.rate_hz);
        return LIN_OK;
    }
    a->encoding = wav.pcm.encoding;
    a->frame_bytes = lin_pcm_bytes(a->encoding) * a->info.channels;
    begin_wav(a, &wav);
    return LIN_OK;
}

static int is_wav(const unsigned char *b)
{
    return (memcmp(b, "RIFF", 4) == 0 || memcmp(b, "RF64", 4) == 0 || memcmp(b, "BW64", 4) == 0) && memcmp(b + 8, "WAVE", 4) == 0;
}

// A tag or zeros, which are no samples unless samples follow them at once: the bytes to skip, 0: none.
static int64_t padding(const unsigned char *b, int n)
{
    const int64_t tag = lin_part_tag(b, (size_t)n);
    return b[0] || tag >= n || (tag + 12 <= n && (is_wav(b + tag) || lin_part_tag(b + tag, (size_t)(n - tag)))) ? tag : 0;
}

lin_status lin_audio_after_wav(lin_audio *a, lin_error *err)
{
    int is_padded = 0, is_second = 0;
    lin_status status = skip(a, a->left + a->padding, err);
    a->left = a->padding = 0;
    while (status == LIN_OK) {
        status = hold(a, 12, err);
        const unsigned char *b = a->bytes + a->at;
        if (status != LIN_OK || a->held < 12) break; // its end
        if (is_wav(b)) return join(a, err);
        is_second = memcmp(b, "data", 4) == 0;
        if (is_chunk(b) && !is_second) {
            const int64_t length = (int64_t)b[6] << 16 | b[5] << 8 | b[4];
            status = skip(a, 8 + length + (length & 1), err);
            continue;
        }
        // More samples than the header gives, unless it is little or noise: then they are something else.
        const int tenth = a->info.rate_hz / 10 * a->frame_bytes, most = tenth < LIN_AUDIO_RAW_BYTES ? tenth : LIN_AUDIO_RAW_BYTES;
        status = hold(a, most, err);
        b = a->bytes + a->at;
        const int64_t tag = status == LIN_OK ? padding(b, a->held) : 0;
        if (tag) {
            is_padded = 1;
            status = skip(a, tag, err);
            continue;
        }
        if (status != LIN_OK || a->held < most) break;
        if (is_padded || is_second ||
            (a->encoding == LIN_PCM_S16LE &&
             lin_sniff_is_noise(b, a->held < LIN_SNIFF_BYTES ? (size_t)a->held : LIN_SNIFF_BYTES))) {
            lin_audio_warn(a, 1, "%s goes on after its sound of %.3f s: bytes more than its header gives are not read", a->name,
                           (double)a->position / a->info.rate_hz);
            break;
        }
        a->declared = a->position - a->part_begin;
        a->left = -1;
        return LIN_OK;
    }
    return status;
}

lin_status lin_audio_spool(lin_audio *a, lin_error *err)
{
    const char *folder;
    const int to = lin_file_open_unnamed(&folder);
    int end = 0;
    lin_status status = to < 0 ? lin_fail(err, LIN_IO, "cannot store %s in %s: %s", a->name, folder, strerror(errno))
                               : lin_audio_make_room(a, err);
    int64_t size = 0;
    while (status == LIN_OK && (a->held || !end)) {
        const ssize_t put = a->held ? write(to, a->bytes + a->at, (size_t)a->held) : 0;
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            status = lin_fail(err, LIN_IO, "cannot store %s in %s: %s; set TMPDIR to another folder", a->name, folder,
                              strerror(errno));
            break;
        }
        a->at += (int)put;
        a->held -= (int)put;
        size += put;
        if (size > LIN_AUDIO_SPOOL_BYTES)
            status = lin_fail(err, LIN_UNSUPPORTED, "%s has over %lld GiB in a format that cannot be streamed; use WAV",
                              a->name, (long long)(LIN_AUDIO_SPOOL_BYTES >> 30));
        else if (a->held == 0 && !end) status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
    }
    if (status == LIN_OK && lin_audio_is_stopped()) status = lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
    if (status != LIN_OK) {
        if (to >= 0) close(to);
        return status;
    }
    if (a->close_fd) close(a->fd);
    a->fd = to;
    a->close_fd = 1;
    a->live = 0;
    a->base = 0;
    a->size = a->next = size;
    return LIN_OK;
}
