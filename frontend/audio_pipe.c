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
    a->at = (int)wav.at;
    a->held -= (int)wav.at;
    a->left = wav.bytes;
    if (wav.bytes >= 0) a->info.frames = wav.bytes / a->frame_bytes;
    snprintf(a->info.format, sizeof a->info.format, "WAV, %s", lin_pcm_name(wav.pcm.encoding));
    return LIN_OK;
}

lin_status lin_audio_spool(lin_audio *a, lin_error *err)
{
    const char *folder;
    const int to = lin_file_open_unnamed(&folder);
    int end = 0;
    lin_status status =
        to < 0 ? lin_fail(err, LIN_IO, "cannot store %s in %s: %s", a->name, folder, strerror(errno)) : lin_audio_make_room(a, err);
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
    a->size = size;
    return LIN_OK;
}
