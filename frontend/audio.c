// audio.c - opening a source; its samples where they are plain: headerless, or in a WAV file; see audio.h. Others: audio_file.c.

#include "frontend/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "frontend/audio_internal.h"

#define LOUDEST 2.5f // of floats; lossy decoders and resampling exceed 1 where sound was clipped

static const volatile sig_atomic_t *stop_flag;
static _Thread_local double stop_time;
static int longest_gap = 30 * 3600;
static const char *chosen_track;

void lin_audio_stop_on(const volatile sig_atomic_t *flag) { stop_flag = flag; }

void lin_audio_stop_at(double time) { stop_time = time; }

int lin_audio_is_stopped(void) { return (stop_flag && *stop_flag) || (stop_time > 0 && lin_now() >= stop_time); }

void lin_audio_bound_gaps(int seconds) { longest_gap = seconds; }

int lin_audio_longest_gap(void) { return longest_gap; }

void lin_audio_choose_track(const char *track) { chosen_track = track; }

const char *lin_audio_track(void) { return chosen_track; }

void lin_audio_warn(lin_audio *a, int is_missing, const char *fmt, ...)
{
    const int first = !a->info.warning[0] || (is_missing && !a->info.incomplete);
    a->info.incomplete |= is_missing;
    if (!first) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->info.warning, sizeof a->info.warning, fmt, args);
    va_end(args);
}

// The first sample whose magnitude is above a limit, or that is NaN; n: none.
static size_t find_above(const float *samples, size_t n, float largest)
{
    // Compared as integers, magnitudes of floats keep their order, and infinities and NaNs follow all numbers.
    uint32_t limit;
    memcpy(&limit, &largest, sizeof limit);
    enum { BLOCK = 256 };
    for (size_t start = 0; start < n; start += BLOCK) {
        size_t count = n - start < BLOCK ? n - start : BLOCK;
        uint32_t bits[BLOCK], worst = 0;
        memcpy(bits, samples + start, count * sizeof *bits);
        for (size_t i = 0; i < count; i++) {
            uint32_t magnitude = bits[i] & 0x7fffffffu;
            worst = magnitude > worst ? magnitude : worst;
        }
        if (worst <= limit) continue;
        for (size_t i = 0; i < count; i++)
            if ((bits[i] & 0x7fffffffu) > limit) return start + i;
    }
    return n;
}

size_t lin_audio_find_bad(const float *samples, size_t n) { return find_above(samples, n, LIN_AUDIO_LARGEST); }

lin_status lin_audio_check_samples(const float *samples, int n, int channels, lin_error *err)
{
    const size_t C = (size_t)channels, count = (size_t)n * C, bad = lin_audio_find_bad(samples, count);
    if (bad == count) return LIN_OK;
    return lin_fail(err, LIN_NUMERIC, "sample %zu of channel %zu is %g, which is not sound", bad / C, bad % C + 1,
                    (double)samples[bad]);
}

lin_status lin_audio_check_format(const char *name, int rate_hz, int channels, lin_error *err)
{
    if (rate_hz < LIN_AUDIO_MIN_HZ || rate_hz > LIN_AUDIO_MAX_HZ)
        return lin_fail(err, LIN_UNSUPPORTED, "%s has a sample rate of %d Hz; %d to %d Hz can be read", name, rate_hz,
                        (int)LIN_AUDIO_MIN_HZ, (int)LIN_AUDIO_MAX_HZ);
    if (channels < 1 || channels > LIN_AUDIO_MAX_CHANNELS)
        return lin_fail(err, LIN_UNSUPPORTED, "%s has %d channels; 1 to %d can be read", name, channels,
                        (int)LIN_AUDIO_MAX_CHANNELS);
    return LIN_OK;
}

static const struct {
    const char *name;
    int bytes;
} encodings[] = {
    [LIN_PCM_S16LE] = {"s16le", 2}, [LIN_PCM_S24LE] = {"s24le", 3}, [LIN_PCM_S32LE] = {"s32le", 4},
    [LIN_PCM_F32LE] = {"f32le", 4}, [LIN_PCM_U8] = {"u8", 1},       [LIN_PCM_MULAW] = {"mulaw", 1},
    [LIN_PCM_ALAW] = {"alaw", 1},
};

/* ---- bytes in order -------------------------------------------------------------------------------------------------------- */

static lin_status make_room(lin_audio *a, lin_error *err)
{
    if (!a->bytes) a->bytes = lin_alloc(LIN_AUDIO_RAW_BYTES, 1);
    return a->bytes ? LIN_OK : lin_no_memory(err, a->name, LIN_AUDIO_RAW_BYTES);
}

// One read, which waits if it must; 0 at the end, and for input that may still arrive once stopping is requested; -1 on error.
static ssize_t read_some(const lin_audio *a, void *bytes, size_t n)
{
    for (;;) {
        struct pollfd ready = {.fd = a->fd, .events = POLLIN};
        if (a->live && lin_audio_is_stopped()) return 0;
        if (a->live && poll(&ready, 1, 200) <= 0) continue;
        ssize_t got = read(a->fd, bytes, n);
        if (got >= 0) return got;
        if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    }
}

// Reads more bytes after those that are held, at most `most`; waits if it must. *end: there are none.
static lin_status gather(lin_audio *a, int most, int *end, lin_error *err)
{
    memmove(a->bytes, a->bytes + a->at, (size_t)a->held);
    a->at = 0;
    if (most > LIN_AUDIO_RAW_BYTES - a->held) most = LIN_AUDIO_RAW_BYTES - a->held;
    const ssize_t got = read_some(a, a->bytes + a->held, (size_t)most);
    if (got < 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(errno));
    *end = got == 0;
    a->held += (int)got;
    return LIN_OK;
}

// Reads until `wanted` bytes are held.
static lin_status hold(lin_audio *a, int wanted, lin_error *err)
{
    int end = 0;
    while (!end && a->held < wanted) LIN_TRY(gather(a, LIN_AUDIO_RAW_BYTES, &end, err));
    return LIN_OK;
}

static void drop(lin_audio *a, int n)
{
    a->at += n;
    a->held -= n;
}

// Drops *n bytes; what is left of them at the end of the input stays in *n.
static lin_status skip(lin_audio *a, int64_t *n, lin_error *err)
{
    while (*n > 0) {
        LIN_TRY(hold(a, 1, err));
        if (a->held == 0) break;
        const int some = *n < a->held ? (int)*n : a->held;
        drop(a, some);
        *n -= some;
    }
    return LIN_OK;
}

/* ---- WAV ------------------------------------------------------------------------------------------------------------------- */

static lin_status open_raw(lin_audio *a, const lin_pcm_format *raw, lin_error *err)
{
    LIN_TRY(lin_audio_check_format(a->name, raw->rate_hz, raw->channels, err));
    a->encoding = raw->encoding;
    a->frame_bytes = encodings[raw->encoding].bytes * raw->channels;
    a->info.rate_hz = raw->rate_hz;
    a->info.channels = raw->channels;
    a->info.frames = a->live ? -1 : a->whole.size / a->frame_bytes;
    a->left = a->sample_bytes = a->declared = -1;
    return make_room(a, err);
}

// The offset of what comes next in a regular file.
static int64_t here(const lin_audio *a) { return lseek(a->fd, 0, SEEK_CUR) - a->held - a->whole.base; }

static void begin_wav(lin_audio *a, int64_t position, const lin_wav *wav)
{
    drop(a, (int)wav->at);
    a->first_byte = here(a);
    a->left = a->sample_bytes = wav->bytes;
    a->padding = wav->bytes > 0 ? (int)(wav->bytes & 1) : 0;
    a->is_wav = 1;
    a->part_begin = position;
    a->declared = -1;
}

// A WAV file of plain samples is read as it arrives. *is: it is one.
static lin_status open_wav(lin_audio *a, int *is, lin_error *err)
{
    lin_wav wav;
    int found, end = 0;
    while ((found = lin_wav_find(a->bytes, (size_t)a->held, &wav)) == 0 && !end && a->held < LIN_AUDIO_RAW_BYTES)
        LIN_TRY(gather(a, LIN_AUDIO_RAW_BYTES, &end, err));
    *is = found == 1;
    if (!*is) return LIN_OK;
    if (!a->live && wav.bytes < 0 && lin_sniff_is_chunk(&a->whole, (int64_t)wav.at))
        return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    LIN_TRY(open_raw(a, &wav.pcm, err));
    begin_wav(a, 0, &wav);
    if (a->live) {
        a->info.frames = wav.bytes < 0 ? -1 : wav.bytes / a->frame_bytes;
    } else {
        // If bytes other than chunks follow, the length is known only when they have been read.
        const int64_t present = a->whole.size - (int64_t)wav.at,
                      bytes = wav.bytes < 0 || wav.bytes > present ? present : wav.bytes;
        a->info.frames = lin_sniff_is_chunk(&a->whole, (int64_t)wav.at + bytes + (bytes & 1)) ? bytes / a->frame_bytes : -1;
    }
    return LIN_OK;
}

static int is_wav(const unsigned char *b)
{
    return (memcmp(b, "RIFF", 4) == 0 || memcmp(b, "RF64", 4) == 0 || memcmp(b, "BW64", 4) == 0) && memcmp(b + 8, "WAVE", 4) == 0;
}

// Another WAV file: its samples go on.
static lin_status join(lin_audio *a, int64_t position, lin_error *err)
{
    lin_wav wav;
    int found = 0;
    for (int wanted = 256; found == 0 && wanted <= LIN_AUDIO_RAW_BYTES; wanted *= 2) {
        LIN_TRY(hold(a, wanted, err));
        found = lin_wav_find(a->bytes + a->at, (size_t)a->held, &wav);
    }
    if (found != 1 || wav.pcm.rate_hz != a->info.rate_hz || wav.pcm.channels != a->info.channels) {
        lin_audio_warn(a, 1,
                       "%s consists of several WAV files; the one that begins after %.3f s is not read: its format differs",
                       a->name, (double)position / a->info.rate_hz);
        return LIN_OK;
    }
    a->encoding = wav.pcm.encoding;
    a->frame_bytes = encodings[a->encoding].bytes * a->info.channels;
    begin_wav(a, position, &wav);
    return LIN_OK;
}

static int is_chunk(const lin_audio *a)
{
    const unsigned char *b = a->bytes + a->at;
    for (int i = 0; i < 4; i++)
        if (b[i] < ' ' || b[i] > '~') return 0;
    return a->live ? b[7] == 0 : lin_sniff_is_chunk(&a->whole, here(a)); // in a pipe of at most 16 MB
}

// The bytes of a tag or of zeros, to be skipped unless samples follow at once; 0: none.
static int64_t padding(const unsigned char *b, int n)
{
    const int64_t tag = lin_sniff_tag(b, (size_t)n);
    return b[0] || tag >= n || (tag + 12 <= n && (is_wav(b + tag) || lin_sniff_tag(b + tag, (size_t)(n - tag)))) ? tag : 0;
}

// 1: a file of another format begins here; only in a regular file can it be read too.
static int other_begins(lin_audio *a)
{
    const char *what;
    const lin_sniffed kind = lin_sniff(a->bytes + a->at, (size_t)a->held, &what);
    if (a->live || (kind != LIN_SNIFF_SNDFILE && kind != LIN_SNIFF_MEDIA)) return 0;
    a->next = here(a);
    return 1;
}

// At the end of its samples, after the frame `position`: a->left says how many bytes follow.
static lin_status after_wav(lin_audio *a, int64_t position, lin_error *err)
{
    int is_padded = 0, is_second = 0;
    LIN_TRY(skip(a, &a->left, err));
    if (a->left > 0) return LIN_OK; // it is truncated
    // A tenth of a second of what follows is examined.
    const int tenth = a->info.rate_hz / 10 * a->frame_bytes, most = tenth < LIN_AUDIO_RAW_BYTES ? tenth : LIN_AUDIO_RAW_BYTES;
    for (int64_t some = a->padding;;) {
        LIN_TRY(skip(a, &some, err));
        LIN_TRY(hold(a, 12, err));
        const unsigned char *b = a->bytes + a->at;
        if (a->held < 12) return LIN_OK; // its end
        if (is_wav(b)) return join(a, position, err);
        is_second = memcmp(b, "data", 4) == 0;
        if (is_chunk(a) && !is_second) {
            some = (int64_t)b[7] << 24 | b[6] << 16 | b[5] << 8 | b[4];
            some += 8 + (some & 1);
            continue;
        }
        LIN_TRY(hold(a, most, err));
        b = a->bytes + a->at;
        some = padding(b, a->held);
        if (some == 0) break;
        is_padded = 1;
    }
    // Samples beyond those of the header, unless they are few or look like noise: then they are something else.
    if (other_begins(a) || a->held < most) return LIN_OK;
    const size_t look_at = a->held < LIN_SNIFF_BYTES ? (size_t)a->held : LIN_SNIFF_BYTES;
    if (is_padded || is_second || (a->encoding == LIN_PCM_S16LE && lin_sniff_is_noise(a->bytes + a->at, look_at))) {
        lin_audio_warn(a, 1, "%s continues after its sound of %.3f s: bytes beyond its header's length are not read", a->name,
                       (double)position / a->info.rate_hz);
        return LIN_OK;
    }
    a->declared = position - a->part_begin;
    a->left = -1;
    return LIN_OK;
}

/* ---- raw samples ----------------------------------------------------------------------------------------------------------- */

static void warn_if_not_raw(lin_audio *a)
{
    const char *what;
    const lin_sniffed kind = lin_sniff(a->bytes + a->at, (size_t)a->held, &what);
    if (kind == LIN_SNIFF_SNDFILE || kind == LIN_SNIFF_MEDIA)
        lin_audio_warn(a, 0, "%s begins like %s, but is read as headerless samples", a->name, what);
}

static lin_status end_raw(lin_audio *a, int64_t total, lin_error *err)
{
    a->end = 1;
    if (total == 0 && !lin_audio_is_stopped()) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    if (a->left > 0 && !lin_audio_is_stopped())
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name,
                       (double)total / a->info.rate_hz, ((double)total + (double)a->left / a->frame_bytes) / a->info.rate_hz);
    else if (a->declared >= 0 && total - a->part_begin > a->declared)
        lin_audio_warn(a, 0, "the header of %s gives %.3f s; all %.3f s of it are read", a->name,
                       (double)a->declared / a->info.rate_hz, (double)(total - a->part_begin) / a->info.rate_hz);
    else if (a->held && a->left < 0)
        lin_audio_warn(a, 0, "%s ends with %d of the %d bytes of a frame", a->name, a->held, a->frame_bytes);
    return LIN_OK;
}

static lin_status read_raw(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    int done = 0, end = 0;
    lin_status status = LIN_OK;
    while (status == LIN_OK) {
        int whole = a->held / a->frame_bytes;
        if (whole > capacity - done) whole = capacity - done;
        if (a->left >= 0 && whole > a->left / a->frame_bytes) whole = (int)(a->left / a->frame_bytes);
        lin_pcm_decode(a->encoding, a->bytes + a->at, (size_t)whole * (size_t)a->info.channels,
                       frames + (size_t)done * (size_t)a->info.channels);
        drop(a, whole * a->frame_bytes);
        if (a->left >= 0) a->left -= (int64_t)whole * a->frame_bytes;
        done += whole;
        if (done == capacity || (a->live && done)) break;
        if (a->is_wav && !end && !a->end && a->left >= 0 && a->left < a->frame_bytes) {
            status = after_wav(a, a->position + done, err);
            if (status == LIN_OK && (a->left < 0 || a->left >= a->frame_bytes)) continue;
            if (status != LIN_OK) break;
        }
        if (end || (a->left >= 0 && a->left < a->frame_bytes)) {
            status = end_raw(a, a->position + done, err);
            break;
        }
        const int64_t wanted = (int64_t)(capacity - done) * a->frame_bytes - a->held;
        status = gather(a, wanted < LIN_AUDIO_RAW_BYTES ? (int)wanted : LIN_AUDIO_RAW_BYTES, &end, err);
        if (status == LIN_OK && a->position == 0 && done == 0 && a->left < 0 && !a->is_wav && !a->info.notice[0])
            warn_if_not_raw(a);
    }
    *n = done;
    return status;
}

/* ---- opening, reading, closing --------------------------------------------------------------------------------------------- */

// A pipe or standard input of unknown format: headerless samples, if it may contain these.
static lin_status open_unknown(lin_audio *a, const unsigned char *head, size_t n, const lin_pcm_format *raw, lin_error *err)
{
    if (raw->fallback == 1 && raw->encoding == LIN_PCM_S16LE && lin_sniff_is_noise(head, n))
        return lin_fail(err, LIN_FORMAT,
                        "the format of %s is not recognised, and as headerless s16le it would be noise; use --raw to "
                        "read it anyway",
                        a->name);
    lin_status status = open_raw(a, raw, err);
    if (status == LIN_OK && raw->fallback == 1)
        snprintf(a->info.notice, sizeof a->info.notice,
                 "the format of %s is not recognised: it is read as headerless %s at %d Hz, %d channel%s (--raw: without "
                 "this message)",
                 a->name, lin_pcm_name(raw->encoding), raw->rate_hz, raw->channels, raw->channels == 1 ? "" : "s");
    return status;
}

// Reads the first bytes, as many as lin_sniff needs; all that were read stay held.
static lin_status look(lin_audio *a, lin_sniffed *kind, const char **what, lin_error *err)
{
    int end = 0;
    *kind = LIN_SNIFF_UNKNOWN;
    *what = "";
    LIN_TRY(make_room(a, err));
    // Bytes that look like text may turn out to be something else.
    while (!end && a->held < LIN_SNIFF_BYTES && (*kind == LIN_SNIFF_UNKNOWN || *kind == LIN_SNIFF_TEXT)) {
        LIN_TRY(gather(a, LIN_AUDIO_RAW_BYTES, &end, err));
        if (a->held) *kind = lin_sniff(a->bytes, (size_t)a->held, what);
    }
    if (a->live && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
    return a->held ? LIN_OK : lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
}

// Stores the whole pipe in an unlinked file, which is then read instead.
static lin_status spool(lin_audio *a, lin_error *err)
{
    const char *folder;
    const int to = lin_file_open_unnamed(&folder);
    int end = 0;
    lin_status status =
        to < 0 ? lin_fail(err, LIN_IO, "cannot store %s in %s: %s", a->name, folder, strerror(errno)) : make_room(a, err);
    int64_t size = 0;
    while (status == LIN_OK && (a->held || !end)) {
        const ssize_t put = a->held ? write(to, a->bytes + a->at, (size_t)a->held) : 0;
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            status = lin_fail(err, LIN_IO, "cannot store %s in %s: %s; set TMPDIR to another folder", a->name, folder,
                              strerror(errno));
            break;
        }
        drop(a, (int)put);
        size += put;
        if (size > LIN_AUDIO_SPOOL_BYTES)
            status = lin_fail(err, LIN_UNSUPPORTED, "%s has over %lld GiB in a format that cannot be streamed; use WAV", a->name,
                              (long long)(LIN_AUDIO_SPOOL_BYTES >> 30));
        else if (a->held == 0 && !end) status = gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
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
    a->whole = (lin_sniff_file){to, 0, size};
    a->next = size;
    return LIN_OK;
}

// Opens by content. may_be_raw: the format to use if the content is not recognised; not NULL only for a pipe or standard input.
static lin_status open_by_bytes(lin_audio *a, const lin_pcm_format *may_be_raw, lin_error *err)
{
    lin_sniffed kind;
    const char *what;
    int is = 0;
    LIN_TRY(look(a, &kind, &what, err));
    if (may_be_raw && (kind == LIN_SNIFF_UNKNOWN || (kind == LIN_SNIFF_TEXT && may_be_raw->fallback == 2)))
        return open_unknown(a, a->bytes, (size_t)a->held, may_be_raw, err);
    if (kind == LIN_SNIFF_TEXT) return lin_fail(err, LIN_FORMAT, "%s is not an audio file: it is %s", a->name, what);
    LIN_TRY(open_wav(a, &is, err));
    if (is) return LIN_OK;
    if (a->live) LIN_TRY(spool(a, err));
    a->held = 0;
    return lin_audio_open_file(a, 0, kind, what, err);
}

static lin_status create(const char *name, int fd, int close_fd, lin_audio **out, lin_error *err)
{
    lin_audio *a = lin_calloc(1, sizeof *a);
    *out = NULL;
    if (!a) {
        if (close_fd) close(fd);
        return lin_no_memory(err, name, sizeof *a);
    }
    a->fd = fd;
    a->close_fd = close_fd;
    a->name = lin_strdup(name);
    if (a->name) *out = a;
    else lin_audio_close(a);
    return *out ? LIN_OK : lin_no_memory(err, name, strlen(name) + 1);
}

static lin_status open_reader(lin_audio *a, const lin_pcm_format *raw, lin_error *err)
{
    struct stat st;
    if (fstat(a->fd, &st) != 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(errno));
    if (S_ISDIR(st.st_mode)) return lin_fail(err, LIN_IO, "cannot read %s: it is a directory; name the files in it", a->name);
    a->live = !S_ISREG(st.st_mode);
    const off_t at = a->live || a->close_fd ? 0 : lseek(a->fd, 0, SEEK_CUR), base = at > 0 ? at : 0;
    a->whole = (lin_sniff_file){a->fd, base, a->live ? 0 : st.st_size - base};
    a->next = a->whole.size;
    if (!a->live && a->whole.size <= 0) return lin_fail(err, LIN_FORMAT, "%s is empty", a->name);
    if (raw && !raw->fallback) LIN_TRY(open_raw(a, raw, err));
    else if (!a->live && lin_isolate_is_on()) LIN_TRY(lin_isolated_open(a->fd, a->name, &a->info, &a->isolated, err));
    else LIN_TRY(open_by_bytes(a, a->live || !a->close_fd ? raw : NULL, err));
    if (!chosen_track || a->ffmpeg || strcmp(chosen_track, "1") == 0) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s has no sound track '%s' (--track), only one without a language", a->name, chosen_track);
}

lin_status lin_audio_open_fd(int fd, int close_fd, const char *name, const lin_pcm_format *raw, lin_audio **out, lin_error *err)
{
    LIN_TRY(create(name, fd, close_fd, out, err));
    const lin_status status = open_reader(*out, raw, err);
    if (status == LIN_OK) return LIN_OK;
    lin_audio_close(*out);
    *out = NULL;
    return status;
}

lin_status lin_audio_open(const char *path, const lin_pcm_format *raw, lin_audio **out, lin_error *err)
{
    *out = NULL;
    if (strcmp(path, "-") == 0) {
        lin_pcm_format format = lin_pcm_default();
        format.fallback = 1;
        return lin_audio_open_fd(STDIN_FILENO, 0, "standard input", raw ? raw : &format, out, err);
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && strstr(path, "://"))
        return lin_fail(err, LIN_IO, "cannot open %s: it is an address, not a file; download it first", path);
    if (fd < 0) return lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
    return lin_audio_open_fd(fd, 1, path, raw, out, err);
}

lin_status lin_audio_open_memory(const char *name, const float *samples, int64_t n, int rate_hz, int channels, lin_audio **out,
                                 lin_error *err)
{
    *out = NULL;
    LIN_TRY(lin_audio_check_format(name, rate_hz, channels, err));
    LIN_TRY(create(name, -1, 0, out, err));
    lin_audio *a = *out;
    a->end = n == 0;
    a->memory = samples;
    a->info.rate_hz = rate_hz;
    a->info.channels = channels;
    a->info.frames = n;
    return LIN_OK;
}

static void read_memory(const lin_audio *a, float *frames, int capacity, int *n)
{
    const int64_t left = a->info.frames - a->position;
    const size_t channels = (size_t)a->info.channels;
    *n = left < capacity ? (int)left : capacity;
    if (*n > 0) memcpy(frames, a->memory + (size_t)a->position * channels, (size_t)*n * channels * sizeof *frames);
}

static lin_status read_block(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    if (a->memory) read_memory(a, frames, capacity, n);
    else if (a->isolated) LIN_TRY(lin_isolated_read(a->isolated, &a->info, frames, capacity, n, err));
    else if (a->sndfile || a->ffmpeg) LIN_TRY(lin_audio_read_file(a, frames, capacity, n, err));
    else LIN_TRY(read_raw(a, frames, capacity, n, err));
    if (a->isolated && *n == 0) a->end = 1;
    size_t channels = (size_t)a->info.channels, count = (size_t)*n * channels, bad = lin_audio_find_bad(frames, count);
    if (bad < count) {
        int64_t sample = a->position + (int64_t)(bad / channels);
        *n = 0;
        return lin_fail(err, LIN_NUMERIC, "%s: sample %lld (%.3f s) of channel %zu is %g, which is not sound", a->name,
                        (long long)sample, (double)sample / a->info.rate_hz, bad % channels + 1, (double)frames[bad]);
    }
    // Most often these are 16-bit integers that were converted without scaling.
    const size_t loud = a->is_loud || a->memory ? count : find_above(frames, count, LOUDEST);
    if (loud < count) {
        a->is_loud = 1;
        lin_audio_warn(a, 0, "%s reaches %g at %.3f s, but floats have a full scale of -1 to 1: divide 16-bit values by 32768",
                       a->name, (double)frames[loud], (double)(a->position + (int64_t)(loud / channels)) / a->info.rate_hz);
    }
    a->position += *n;
    return LIN_OK;
}

lin_status lin_audio_read(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = LIN_OK;
    *n = 0;
    if (capacity < 1) return lin_fail(err, LIN_INVALID, "reading %s: room for %d frames; must be at least 1", a->name, capacity);
    if (a->end) return LIN_OK;
    do status = read_block(a, frames, capacity, n, err);
    while (status == LIN_OK && a->end && lin_audio_next_part(a) && *n == 0);
    return status;
}

const lin_audio_format *lin_audio_info(const lin_audio *a) { return &a->info; }

int64_t lin_audio_position(const lin_audio *a) { return a->position; }

lin_status lin_audio_seek(lin_audio *a, int64_t frame, lin_error *err)
{
    if (a->live || a->ffmpeg || a->isolated || frame < 0)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: it is not a regular file", a->name,
                        (long long)frame);
    if (a->part_begin > 0 || a->next < a->whole.size)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s: it is several files", a->name);
    // A frame of MP3 needs bits of earlier frames; after a seek, the MP3 library prints errors to standard error.
    if (a->is_mpeg) return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s: it is MP3", a->name);
    const int64_t bytes = frame * a->frame_bytes;
    if (a->memory || a->sndfile ? a->info.frames >= 0 && frame > a->info.frames : a->sample_bytes >= 0 && bytes > a->sample_bytes)
        return lin_fail(err, LIN_UNSUPPORTED, "%s ends before frame %lld", a->name, (long long)frame);
    if (a->sndfile) {
        if (sf_seek(a->sndfile, (sf_count_t)frame, SEEK_SET) != (sf_count_t)frame)
            return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: %s", a->name, (long long)frame,
                            sf_strerror(a->sndfile));
    } else if (!a->memory) {
        if (lseek(a->fd, (off_t)(a->whole.base + a->first_byte + bytes), SEEK_SET) < 0)
            return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: %s", a->name, (long long)frame,
                            strerror(errno));
        a->at = a->held = 0;
        a->left = a->sample_bytes < 0 ? -1 : a->sample_bytes - bytes;
        a->declared = -1; // the samples beyond it are found again
    }
    a->position = frame;
    a->end = 0;
    return LIN_OK;
}

int lin_audio_is_live(const lin_audio *a) { return a->live; }

int lin_audio_wait_for(const lin_audio *a) { return a->live && a->held < a->frame_bytes && !a->end ? a->fd : -1; }

void lin_audio_close(lin_audio *a)
{
    if (!a) return;
    if (a->sndfile) sf_close(a->sndfile);
    lin_ffmpeg_close(a->ffmpeg);
    lin_isolated_close(a->isolated);
    if (a->close_fd && a->fd >= 0) close(a->fd);
    lin_free(a->bytes);
    lin_free(a->name);
    lin_free(a);
}

/* ---- headerless samples ---------------------------------------------------------------------------------------------------- */

lin_pcm_format lin_pcm_default(void) { return (lin_pcm_format){.rate_hz = 16000, .channels = 1, .encoding = LIN_PCM_S16LE}; }

const char *lin_pcm_name(lin_pcm_encoding encoding) { return encodings[encoding].name; }

// G.711: sign, three bits of exponent, four of mantissa; bits inverted on the line. In 16-bit units.
static int mulaw(unsigned char code)
{
    unsigned u = ~(unsigned)code & 0xff;
    int magnitude = (int)(((u & 15) << 3) + 0x84) << ((u >> 4) & 7);
    return u & 0x80 ? 0x84 - magnitude : magnitude - 0x84;
}

static int alaw(unsigned char code)
{
    unsigned u = (unsigned)code ^ 0x55, exponent = (u >> 4) & 7;
    int magnitude = (int)((u & 15) << 4) + 8;
    if (exponent) magnitude = (magnitude + 0x100) << (exponent - 1);
    return u & 0x80 ? magnitude : -magnitude;
}

static uint32_t u32(const unsigned char *b) { return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0]; }

// The high bits of a 32-bit sample.
static float linear32(uint32_t bits)
{
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return (float)value * 0x1p-31f;
}

void lin_pcm_decode(lin_pcm_encoding encoding, const unsigned char *b, size_t n, float *samples)
{
    switch (encoding) {
    case LIN_PCM_S16LE:
        for (size_t i = 0; i < n; i++) samples[i] = linear32((uint32_t)b[2 * i + 1] << 24 | (uint32_t)b[2 * i] << 16);
        break;
    case LIN_PCM_S24LE:
        for (size_t i = 0; i < n; i++)
            samples[i] = linear32((uint32_t)b[3 * i + 2] << 24 | (uint32_t)b[3 * i + 1] << 16 | (uint32_t)b[3 * i] << 8);
        break;
    case LIN_PCM_S32LE:
        for (size_t i = 0; i < n; i++) samples[i] = linear32(u32(b + 4 * i));
        break;
    case LIN_PCM_F32LE:
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = u32(b + 4 * i);
            memcpy(&samples[i], &bits, sizeof bits);
        }
        break;
    case LIN_PCM_U8:
        for (size_t i = 0; i < n; i++) samples[i] = (float)(b[i] - 128) * 0x1p-7f;
        break;
    case LIN_PCM_MULAW:
        for (size_t i = 0; i < n; i++) samples[i] = (float)mulaw(b[i]) * 0x1p-15f;
        break;
    case LIN_PCM_ALAW:
        for (size_t i = 0; i < n; i++) samples[i] = (float)alaw(b[i]) * 0x1p-15f;
        break;
    }
}
