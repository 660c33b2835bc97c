// recording.c - live sound into a WAV file; see recording.h.

#include "frontend/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <string.h>
#include <unistd.h>

#include "frontend/audio.h"
#include "kernels/memory.h"

static const int64_t MOST_BYTES = (INT64_C(1) << 32) - 4096; // a WAV file's sizes have 32 bits

struct lin_recording {
    SNDFILE *file;
    char *path;
    int rate_hz, channels;
    int64_t frames, said; // said: that the header tells
};

lin_status lin_recording_create(const char *path, int rate_hz, int channels, lin_recording **recording, lin_error *err)
{
    *recording = NULL;
    lin_status status = lin_audio_check_format(path, rate_hz, channels, err);
    if (status != LIN_OK) return status;
    lin_recording *r = lin_calloc(1, sizeof *r);
    if (!r) return lin_no_memory(err, "a recording", sizeof *r);
    r->rate_hz = rate_hz;
    r->channels = channels;
    r->path = lin_strdup(path);
    // libsndfile's own message for a folder or a missing permission is "System error."
    const int fd = r->path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (fd < 0) {
        status =
            r->path ? lin_fail(err, LIN_IO, "cannot write %s: %s", path, strerror(errno)) : lin_no_memory(err, "a recording", 1);
        lin_free(r->path);
        lin_free(r);
        return status;
    }
    SF_INFO info = {.samplerate = rate_hz, .channels = channels, .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    errno = 0;
    r->file = sf_open_fd(fd, SFM_WRITE, &info, SF_TRUE);
    if (!r->file) {
        status = lin_fail(err, LIN_IO, "cannot write %s: %s", path, errno ? strerror(errno) : sf_strerror(NULL));
        lin_free(r->path);
        lin_free(r);
        return status;
    }
    // The chunk of peaks would hold a date: equal sound, equal files.
    sf_command(r->file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    sf_command(r->file, SFC_UPDATE_HEADER_NOW, NULL, 0);
    *recording = r;
    return LIN_OK;
}

lin_status lin_recording_write(lin_recording *r, const float *samples, int n, lin_error *err)
{
    const int64_t width = (int64_t)r->channels * (int64_t)sizeof *samples;
    if ((r->frames + n) * width > MOST_BYTES) return lin_fail(err, LIN_IO, "%s is full: a WAV file holds at most 4 GiB", r->path);
    errno = 0;
    const sf_count_t written = sf_writef_float(r->file, samples, n);
    if (written > 0) r->frames += written;
    if (written != n) {
        return lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : sf_strerror(r->file));
    }
    if (r->frames - r->said >= r->rate_hz) {
        sf_command(r->file, SFC_UPDATE_HEADER_NOW, NULL, 0);
        r->said = r->frames;
    }
    return LIN_OK;
}

int64_t lin_recording_frames(const lin_recording *r) { return r->frames; }

lin_status lin_recording_close(lin_recording *r, lin_error *err)
{
    if (!r) return LIN_OK;
    errno = 0;
    const int failed = sf_close(r->file);
    lin_status status = LIN_OK;
    if (failed) status = lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : sf_error_number(failed));
    lin_free(r->path);
    lin_free(r);
    return status;
}
