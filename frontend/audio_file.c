// audio_file.c - regular files: one or several that were joined, each read by libsndfile, ffmpeg or linnet; see audio_internal.h.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "frontend/audio_internal.h"

size_t lin_audio_read_at(const lin_audio *a, void *bytes, size_t n, int64_t offset)
{
    const lin_part_file file = {a->fd, a->base, a->size};
    return lin_part_read(&file, bytes, n, offset);
}

/* ---- files through ffmpeg -------------------------------------------------------------------------------------------------- */

static lin_status open_ffmpeg(lin_audio *a, lin_error *err)
{
    const int64_t end = a->base || a->part_end < a->size ? a->base + a->part_end : -1;
    lin_status status = lin_ffmpeg_open(a->fd, a->base + a->part, end, a->name, &a->ffmpeg, err);
    if (status != LIN_OK) return status;
    a->info.rate_hz = lin_ffmpeg_rate(a->ffmpeg);
    a->info.channels = lin_ffmpeg_channels(a->ffmpeg);
    const double seconds = lin_ffmpeg_seconds(a->ffmpeg);
    a->info.frames = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * a->info.rate_hz) : -1;
    if (a->part_begin == 0) snprintf(a->info.format, sizeof a->info.format, "decoded by ffmpeg");
    const char *tracks = lin_ffmpeg_tracks(a->ffmpeg);
    if (*tracks && !lin_audio_track())
        snprintf(a->info.notice, sizeof a->info.notice,
                 "%s has several sound tracks: %.100s; track %d is read (--track N|LANGUAGE: another)", a->name, tracks,
                 lin_ffmpeg_track(a->ffmpeg));
    a->is_cut = a->facts.promised > a->facts.present; // a file that libsndfile refuses because it is truncated
    return lin_audio_check_format(a->name, a->info.rate_hz, a->info.channels, err);
}

lin_status lin_audio_read_ffmpeg(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = lin_ffmpeg_read(a->ffmpeg, frames, capacity, n, err);
    if (status != LIN_OK || *n == capacity) return status;
    a->end = 1;
    const int64_t total = a->position + *n - a->part_begin;
    const char *trouble = lin_ffmpeg_trouble(a->ffmpeg);
    if (a->position + *n == 0)
        return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, *trouble ? trouble : "nothing");
    if (*trouble)
        lin_audio_warn(a, 1, "%s is damaged; %.3f s of it were read; ffmpeg says: %s", a->name, (double)total / a->info.rate_hz,
                     trouble);
    else if (a->is_cut)
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s; its header gives more", a->name,
                       (double)total / a->info.rate_hz);
    return LIN_OK;
}

/* ---- WAV whose header gives no length, or too little ----------------------------------------------------------------------- */

// Samples of 16 bits that are loud noise are something else: compressed, or of another encoding.
static int is_sound(const lin_audio *a, const lin_wav *wav, int64_t at)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const size_t n = lin_audio_read_at(a, b, sizeof b, at);
    return n > 0 && (wav->pcm.encoding != LIN_PCM_S16LE || !lin_sniff_is_noise(b, n));
}

// libsndfile reads what the header gives; here the samples go on to the end of the file. *is = 0: the header is right.
static lin_status open_long_wav(lin_audio *a, int *is, lin_error *err)
{
    const lin_part_file file = {a->fd, a->base, a->size};
    lin_wav wav;
    *is = 0;
    lin_status status = lin_audio_make_room(a, err);
    if (status != LIN_OK) return status;
    const size_t n = lin_audio_read_at(a, a->bytes, LIN_AUDIO_RAW_BYTES, a->part);
    if (lin_wav_find(a->bytes, n, &wav) != 1) return LIN_OK;
    const int64_t at = a->part + (int64_t)wav.at;
    const int64_t tenth = (int64_t)(wav.pcm.rate_hz / 10) * wav.pcm.channels * lin_pcm_bytes(wav.pcm.encoding);
    if (wav.bytes < 0 ? lin_part_is_chunk(&file, at)
                      : a->facts.has_second || a->rest <= tenth || !is_sound(a, &wav, a->size - a->rest))
        return LIN_OK;
    char format[sizeof a->info.format];
    memcpy(format, a->info.format, sizeof format);
    status = lin_audio_open_raw(a, &wav.pcm, err);
    if (status != LIN_OK) return status;
    if (lseek(a->fd, (off_t)(a->base + at), SEEK_SET) < 0) return lin_fail(err, LIN_IO, "cannot read %s", a->name);
    if (a->part_begin == 0) snprintf(format, sizeof format, "WAV, %s", lin_pcm_name(wav.pcm.encoding));
    memcpy(a->info.format, format, sizeof format);
    a->info.frames = (a->size - at) / a->frame_bytes;
    a->declared = wav.bytes < 0 ? -1 : wav.bytes / a->frame_bytes;
    a->at = a->held = 0;
    a->rest = 0;
    a->part_end = a->size;
    *is = 1;
    return LIN_OK;
}

/* ---- one part -------------------------------------------------------------------------------------------------------------- */

static lin_status needs_ffmpeg(const lin_audio *a, const char *what, const lin_error *why, lin_error *err)
{
    return lin_fail(
        err, LIN_UNSUPPORTED,
        "%s is %s, which needs the program ffmpeg: install it (apt install ffmpeg), name it in LINNET_FFMPEG, or convert "
        "the sound to WAV or FLAC (%s)",
        a->name, what, why->message);
}

static lin_status open_part(lin_audio *a, lin_sniffed kind, const char *what, lin_error *err)
{
    lin_error why = {0}, reason = {0}; // reasons of the failures of ffmpeg and of libsndfile
    int is_wav = 0;
    if (kind == LIN_SNIFF_SNDFILE) {
        lin_status status = open_long_wav(a, &is_wav, err);
        if (status != LIN_OK || is_wav) return status;
    }
    if (kind != LIN_SNIFF_MEDIA) {
        lin_status status = lin_audio_open_sndfile(a, &reason);
        if (status == LIN_OK) return status;
        if (status != LIN_MISMATCH) return lin_fail_as(err, &reason);
    }
    if (kind == LIN_SNIFF_NO_SOUND) return lin_fail(err, LIN_FORMAT, "%s is not an audio file: it is %s", a->name, what);
    lin_status status = open_ffmpeg(a, &why);
    if (status == LIN_UNSUPPORTED && !a->ffmpeg && kind == LIN_SNIFF_MEDIA) return needs_ffmpeg(a, what, &why, err);
    if (status == LIN_UNSUPPORTED && !a->ffmpeg)
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s", a->name, reason.message);
    if (status == LIN_INVALID) return lin_fail(err, status, "%s: %s", a->name, why.message);
    if (status == LIN_FORMAT && kind == LIN_SNIFF_MEDIA)
        return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, why.message);
    if (status == LIN_FORMAT)
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s; ffmpeg says: %s", a->name, reason.message,
                        why.message);
    return status == LIN_OK ? LIN_OK : lin_fail_as(err, &why);
}

/* ---- all parts ------------------------------------------------------------------------------------------------------------- */

static int is_sound_file(const lin_audio *a, int64_t at)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    const lin_part_file file = {a->fd, a->base, a->size};
    const lin_sniffed kind = lin_sniff(b, lin_audio_read_at(a, b, sizeof b, at), &what);
    if (memcmp(b, "ID3", 3) == 0 && lin_part_next(&file, at) == a->size) return 0; // the tag of the sound before
    return kind == LIN_SNIFF_SNDFILE || kind == LIN_SNIFF_MEDIA;
}

// Where the file after a tag begins: with the tag before it libsndfile leaves out the end of a WAV file, and finds FLAC twice.
static int64_t after_tag(const lin_audio *a, int64_t at)
{
    const lin_part_file file = {a->fd, a->base, a->size};
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    if (lin_audio_read_at(a, b, 4, at) < 4 || memcmp(b, "ID3", 3) != 0) return at;
    const int64_t next = lin_part_next(&file, at);
    const size_t n = lin_audio_read_at(a, b, sizeof b, next);
    return n > 4 && lin_sniff(b, n, &what) == LIN_SNIFF_SNDFILE && !lin_sniff_mpeg_frame(b) ? next : at;
}

// Finds the end of the part that begins here, and what is after it: another part (a->next), or bytes that are none (a->rest).
static void begin_part(lin_audio *a, int64_t from)
{
    const lin_part_file file = {a->fd, a->base, a->size};
    a->part = from = after_tag(a, from);
    a->part_begin = a->position;
    a->is_flac = a->is_mpeg = a->is_cut = 0;
    a->part_end = lin_part_end(&file, from, &a->facts);
    a->has_gap |= a->facts.has_gap;
    a->rest = 0;
    a->next = a->part_end;
    if (a->next < a->size && is_sound_file(a, a->next)) return;
    a->next = lin_part_next(&file, a->part_end);
    if (a->next < a->size && is_sound_file(a, a->next)) return;
    if (a->next < a->size) {
        a->rest = a->size - a->part_end;
        if (!a->facts.has_second) a->part_end = a->size; // libsndfile would read the second one
    }
    a->next = a->size;
}

lin_status lin_audio_open_file(lin_audio *a, lin_sniffed kind, const char *what, lin_error *err)
{
    begin_part(a, 0);
    lin_status status = open_part(a, kind, what, err);
    if (a->next < a->size) a->info.frames = -1;
    return status;
}

// Bytes after the sound: how long would they be? Tags and padding are not counted here, a tenth of a second is none.
static void tell_rest(lin_audio *a)
{
    const double seconds = (double)(a->position - a->part_begin) / a->info.rate_hz;
    const double rest_s = seconds * (double)a->rest / (double)(a->size - a->part - a->rest);
    if (a->rest > 0 && !a->ffmpeg && rest_s > 0.1)
        lin_audio_warn(a, 1, "%s goes on after its sound of %.3f s: %lld bytes more than its header gives are not read", a->name,
                       (double)a->position / a->info.rate_hz, (long long)a->rest);
    if (a->has_gap) lin_audio_warn(a, 1, "%s is damaged: pages of Ogg are missing or damaged in it", a->name);
}

int lin_audio_next_part(lin_audio *a)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    lin_error err = {0};
    const lin_audio_format before = a->info;
    if (a->part_end == 0) return 0; // no file, or headerless samples
    tell_rest(a);
    if (a->next >= a->size && a->is_flac) {
        enum { READ_AHEAD = 1 << 18 };
        const lin_part_file file = {a->fd, a->base, a->size};
        a->next = lin_part_after_flac(&file, a->part + (a->offset > READ_AHEAD ? a->offset - READ_AHEAD : 8));
    }
    if (a->next >= a->size) return 0;
    if (a->file) sf_close(a->file);
    lin_ffmpeg_close(a->ffmpeg);
    a->file = NULL;
    a->ffmpeg = NULL;
    begin_part(a, a->next);
    const lin_sniffed kind = lin_sniff(b, lin_audio_read_at(a, b, sizeof b, a->part), &what);
    lin_status status = open_part(a, kind, what, &err);
    if (status == LIN_OK && (a->info.rate_hz != before.rate_hz || a->info.channels != before.channels))
        status = lin_fail(&err, LIN_UNSUPPORTED, "it has %d Hz and %d channel%s, the sound before %d Hz and %d", a->info.rate_hz,
                          a->info.channels, a->info.channels == 1 ? "" : "s", before.rate_hz, before.channels);
    a->info.rate_hz = before.rate_hz;
    a->info.channels = before.channels;
    a->info.frames = -1;
    a->end = status != LIN_OK;
    if (status == LIN_OK) return 1;
    a->next = a->size;
    lin_audio_warn(a, 1, "%s consists of several files; the one that begins after %.3f s is not read: %.160s", a->name,
                   (double)a->position / a->info.rate_hz, err.message);
    return 0;
}
