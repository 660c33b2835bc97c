// recording.c - writes live sound to a WAV file; see recording.h.

#include "frontend/recording.h"

#include <errno.h>
#include <sndfile.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "frontend/audio.h"

static const int64_t MOST_BYTES = (INT64_C(1) << 32) - 4096; // a WAV file's sizes have 32 bits

struct lin_recording {
    SNDFILE *file;
    lin_file_writer *out;
    char *path;
    int rate_hz, channels;
    int64_t frames, header_frames; // header_frames: the number in the file header
    int failed;           // a write failed
};

static void release(lin_recording *r)
{
    lin_file_abort(r->out);
    lin_free(r->path);
    lin_free(r);
}

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
    // Sound cannot be recorded again: do not remove the file of a killed program.
    status = r->path ? lin_file_open(path, LIN_FILE_STREAM | LIN_FILE_KEEP_STALE, &r->out, err)
                     : lin_no_memory(err, "a recording", 1);
    if (status != LIN_OK) {
        release(r);
        return status;
    }
    SF_INFO info = {.samplerate = rate_hz, .channels = channels, .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    errno = 0;
    r->file = sf_open_fd(lin_file_descriptor(r->out), SFM_WRITE, &info, SF_FALSE);
    if (!r->file) {
        status = lin_fail(err, LIN_IO, "cannot write %s: %s", path, errno ? strerror(errno) : sf_strerror(NULL));
        release(r);
        return status;
    }
    // The PEAK chunk would contain a date: equal sound must give equal files.
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
        r->failed = 1;
        return lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : sf_strerror(r->file));
    }
    if (r->frames - r->header_frames >= r->rate_hz) {
        sf_command(r->file, SFC_UPDATE_HEADER_NOW, NULL, 0);
        r->header_frames = r->frames;
    }
    return LIN_OK;
}

lin_status lin_recording_close(lin_recording *r, lin_error *err)
{
    if (!r) return LIN_OK;
    errno = 0;
    const int failed = sf_close(r->file);
    char name[4096];
    lin_status status = LIN_OK;
    const int is_empty = r->frames == 0;
    if (is_empty) lin_file_abort(r->out);
    if (!failed && !r->failed) {
        if (!is_empty) status = lin_file_commit(r->out, err);
    } else if (is_empty || lin_file_keep(r->out, name, sizeof name, NULL) != LIN_OK) {
        status = lin_fail(err, LIN_IO, "cannot write %s: %s", r->path, errno ? strerror(errno) : "nothing was written");
    } else {
        status =
            lin_fail(err, LIN_IO, "%s is incomplete; the sound recorded so far is in %.700s", r->path, *name ? name : r->path);
    }
    r->out = NULL;
    release(r);
    return status;
}
