#include "frontend/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sndfile.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/pcm.h"
#include "kernels/memory.h"

enum { RAW_BYTES = 1 << 15 };

struct lin_audio {
    lin_audio_format info;
    char *name; // for messages
    int64_t position;
    int fd;
    int close_fd;  // the descriptor is ours
    int live, end; // live: not a regular file

    SNDFILE *file; // NULL: raw
    sf_count_t size, offset;
    int io_errno; // of a read that failed below libsndfile

    lin_pcm_encoding encoding;
    int frame_bytes, held; // held: bytes in `bytes` not yet decoded
    unsigned char *bytes;  // [RAW_BYTES]
};

static void warn(lin_audio *a, const char *fmt, ...) LIN_PRINTF(2, 3);

// The first warning stays.
static void warn(lin_audio *a, const char *fmt, ...)
{
    if (a->info.warning[0]) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->info.warning, sizeof a->info.warning, fmt, args);
    va_end(args);
}

size_t lin_audio_find_bad(const float *samples, size_t n)
{
    // Compared as integers, magnitudes of floats keep their order, and infinities and NaNs come after all numbers.
    const uint32_t limit = (127u + 30u) << 23;
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

// ---- what libsndfile does not tell ----

static size_t read_at(int fd, void *bytes, size_t n, int64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)bytes + done, n - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

static uint32_t u32(const unsigned char *b, int big)
{
    return big ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
               : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

/*
 * libsndfile quietly shortens WAV, AIFF and AU data that its header makes longer than the file. Here the chunks are walked to find
 * the bytes that are promised and those that are there. Returns 0 for other formats, for streams whose length is declared unknown
 * (nearly 2^31 or 2^32), and where no data chunk is found.
 */
static int promised_bytes(int fd, int64_t file_bytes, int64_t *promised, int64_t *present)
{
    unsigned char b[12];
    if (read_at(fd, b, 12, 0) != 12) return 0;
    int big = 0;
    const char *wanted = "data";
    if (memcmp(b, ".snd", 4) == 0) {
        *present = file_bytes - (int64_t)u32(b + 4, 1);
        *promised = (int64_t)u32(b + 8, 1);
    } else {
        if (memcmp(b, "FORM", 4) == 0) {
            big = 1;
            wanted = "SSND";
        } else if (memcmp(b, "RIFX", 4) == 0) {
            big = 1;
        } else if (memcmp(b, "RIFF", 4) != 0) {
            return 0;
        }
        int64_t at = 12;
        for (;; at += 8 + (int64_t)u32(b + 4, big) + (int64_t)(u32(b + 4, big) & 1)) {
            if (read_at(fd, b, 8, at) != 8) return 0;
            if (memcmp(b, wanted, 4) == 0) break;
        }
        *present = file_bytes - at - 8;
        *promised = (int64_t)u32(b + 4, big);
    }
    return *promised < 0x7ffff000 && *present >= 0;
}

static int is_text(int fd)
{
    unsigned char b[512];
    size_t n = read_at(fd, b, sizeof b, 0);
    for (size_t i = 0; i < n; i++)
        if (b[i] == 0x7f || (b[i] < ' ' && b[i] != '\n' && b[i] != '\r' && b[i] != '\t' && b[i] != '\f')) return 0;
    return n > 0;
}

// ---- files through libsndfile ----

// sf_open_fd closes the descriptor when it fails, whatever it is told, and sf_open guesses headerless formats from the file's name;
// with our own reading neither happens, and an error of the disk is seen.
static sf_count_t io_length(void *user) { return ((lin_audio *)user)->size; }

static sf_count_t io_tell(void *user) { return ((lin_audio *)user)->offset; }

static sf_count_t io_seek(sf_count_t offset, int whence, void *user)
{
    lin_audio *a = user;
    sf_count_t base = whence == SEEK_CUR ? a->offset : whence == SEEK_END ? a->size : 0;
    if (offset < -base || offset > INT64_MAX - base) return -1;
    a->offset = base + offset;
    return a->offset;
}

static sf_count_t io_read(void *bytes, sf_count_t count, void *user)
{
    lin_audio *a = user;
    sf_count_t done = 0;
    while (done < count) {
        ssize_t got = pread(a->fd, (char *)bytes + done, (size_t)(count - done), (off_t)a->offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) a->io_errno = errno;
        if (got <= 0) break;
        done += got;
        a->offset += got;
    }
    return done;
}

static sf_count_t io_write(const void *bytes, sf_count_t count, void *user)
{
    (void)bytes;
    (void)count;
    (void)user;
    return 0;
}

static void describe_format(lin_audio *a, int format)
{
    SF_FORMAT_INFO major = {.format = format & SF_FORMAT_TYPEMASK}, minor = {.format = format & SF_FORMAT_SUBMASK};
    sf_command(NULL, SFC_GET_FORMAT_INFO, &major, sizeof major);
    sf_command(NULL, SFC_GET_FORMAT_INFO, &minor, sizeof minor);
    snprintf(a->info.format, sizeof a->info.format, "%s, %s", major.name ? major.name : "unknown",
             minor.name ? minor.name : "unknown");
}

// libsndfile keeps the reason of a failed opening in a global.
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static lin_status open_sndfile(lin_audio *a, lin_error *err)
{
    SF_INFO info = {0};
    char reason[256] = "";
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    if (a->live) {
        // A pipe: libsndfile knows how to read some formats without seeking. Opened again it could have lost its writer, so
        // libsndfile gets a copy of the descriptor, which it closes itself, when it fails too.
        int copy = dup(a->fd);
        if (copy < 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(errno));
        a->file = sf_open_fd(copy, SFM_READ, &info, SF_TRUE);
        if (!a->file) snprintf(reason, sizeof reason, "%s", sf_strerror(NULL));
    } else {
        pthread_mutex_lock(&open_lock);
        a->file = sf_open_virtual(&io, SFM_READ, &info, a);
        if (!a->file) snprintf(reason, sizeof reason, "%s", sf_strerror(NULL));
        pthread_mutex_unlock(&open_lock);
    }
    if (!a->file) {
        size_t n = strlen(reason);
        while (n && (reason[n - 1] == '.' || reason[n - 1] == '\n')) reason[--n] = 0;
        if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
        if (!a->live && is_text(a->fd)) return lin_fail(err, LIN_FORMAT, "%s is not an audio file: it is text", a->name);
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s", a->name, reason);
    }
    describe_format(a, info.format);
    a->info.rate_hz = info.samplerate;
    a->info.channels = info.channels;
    a->info.frames = a->live || info.frames < 0 || info.frames == SF_COUNT_MAX ? -1 : info.frames;
    lin_status status = lin_audio_check_format(a->name, info.samplerate, info.channels, err);
    int64_t promised = 0, present = 0;
    if (status != LIN_OK) return status;
    if (!a->live && !promised_bytes(a->fd, a->size, &promised, &present)) promised = present = 0;
    if (a->info.frames == 0 && promised == 0 && present > 0)
        return lin_fail(
            err, LIN_FORMAT,
            "%s holds no samples by its header, but %lld bytes follow it: was its recording cut off? Read them as raw PCM", a->name,
            (long long)present);
    if (a->info.frames == 0) return lin_fail(err, LIN_FORMAT, "%s holds no samples", a->name);
    if (promised > present)
        warn(a, "%s breaks off: its header promises %lld bytes of sound, it holds %lld", a->name, (long long)promised,
             (long long)present);
    return LIN_OK;
}

static lin_status read_sndfile(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    // libsndfile waits until a request is filled: little is asked of a pipe at a time, so that what was said is heard soon.
    if (a->live && capacity > a->info.rate_hz / 50) capacity = a->info.rate_hz / 50;
    sf_count_t got = sf_readf_float(a->file, frames, capacity);
    if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
    *n = got > 0 ? (int)got : 0;
    if (*n == capacity) return LIN_OK;
    a->end = 1;
    int64_t total = a->position + *n;
    double seconds = (double)total / a->info.rate_hz;
    if (sf_error(a->file) != SF_ERR_NO_ERROR)
        warn(a, "%s is damaged: reading stopped after %.2f s (%s)", a->name, seconds, sf_strerror(a->file));
    else if (a->info.frames > total + a->info.rate_hz / 10) // lengths of lossy formats are not exact
        warn(a, "%s breaks off: its header promises %.2f s, it holds %.2f s", a->name, (double)a->info.frames / a->info.rate_hz,
             seconds);
    if (total == 0) return lin_fail(err, LIN_FORMAT, "%s holds no samples that can be read", a->name);
    return LIN_OK;
}

// ---- raw PCM ----

static lin_status open_raw(lin_audio *a, const lin_pcm_format *raw, lin_error *err)
{
    lin_status status = lin_audio_check_format(a->name, raw->rate_hz, raw->channels, err);
    if (status != LIN_OK) return status;
    a->encoding = raw->encoding;
    a->frame_bytes = lin_pcm_bytes(raw->encoding) * raw->channels;
    a->info.rate_hz = raw->rate_hz;
    a->info.channels = raw->channels;
    a->info.frames = a->live ? -1 : a->size / a->frame_bytes;
    snprintf(a->info.format, sizeof a->info.format, "raw PCM, %s", lin_pcm_name(raw->encoding));
    a->bytes = lin_alloc(RAW_BYTES, 1);
    return a->bytes ? LIN_OK : lin_no_memory(err, a->name, RAW_BYTES);
}

// One read, waiting if it must; 0 at the end, -1 on error.
static ssize_t read_some(int fd, void *bytes, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, bytes, n);
        if (got >= 0) return got;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        poll(&ready, 1, -1);
    }
}

static void warn_if_not_raw(lin_audio *a)
{
    static const struct {
        const char *magic, *what;
    } known[] = {
        {"RIFF", "a WAV file"}, {"fLaC", "a FLAC file"}, {"OggS", "an Ogg file"}, {"ID3", "an MP3 file"}, {"FORM", "an AIFF file"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((size_t)a->held >= strlen(known[i].magic) && memcmp(a->bytes, known[i].magic, strlen(known[i].magic)) == 0)
            warn(a, "%s begins like %s, but is taken for headerless samples", a->name, known[i].what);
}

static lin_status read_raw(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    int done = 0;
    while (done < capacity && !a->end && !(a->live && done)) {
        int64_t wanted = (int64_t)(capacity - done) * a->frame_bytes;
        int room = RAW_BYTES - a->held;
        if (room > wanted - a->held) room = (int)(wanted - a->held);
        ssize_t got = read_some(a->fd, a->bytes + a->held, (size_t)room);
        if (got < 0) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(errno));
        a->end = got == 0;
        a->held += (int)got;
        if (a->position == 0 && done == 0) warn_if_not_raw(a);
        int whole = a->held / a->frame_bytes, used = whole * a->frame_bytes;
        lin_pcm_decode(a->encoding, a->bytes, (size_t)whole * (size_t)a->info.channels,
                       frames + (size_t)done * (size_t)a->info.channels);
        a->held -= used;
        memmove(a->bytes, a->bytes + used, (size_t)a->held);
        done += whole;
    }
    *n = done;
    if (a->end && a->held) warn(a, "%s ends with %d bytes that are not a whole frame of %d", a->name, a->held, a->frame_bytes);
    if (a->end && a->position + done == 0) return lin_fail(err, LIN_FORMAT, "%s holds no samples", a->name);
    return LIN_OK;
}

// ---- opening, reading, closing ----

// Completes `a`, whose descriptor is open, and hands it out; on failure closes it.
static lin_status open_descriptor(lin_audio *a, const char *name, const lin_pcm_format *raw, lin_audio **out, lin_error *err)
{
    struct stat st;
    lin_status status = LIN_OK;
    a->name = lin_strdup(name);
    if (!a->name) status = lin_no_memory(err, name, strlen(name) + 1);
    else if (fstat(a->fd, &st) != 0) status = lin_fail(err, LIN_IO, "cannot read %s: %s", name, strerror(errno));
    else if (S_ISDIR(st.st_mode)) status = lin_fail(err, LIN_IO, "cannot read %s: it is a directory", name);
    if (status == LIN_OK) {
        a->live = !S_ISREG(st.st_mode);
        a->size = a->live ? 0 : st.st_size;
        if (!a->live && st.st_size == 0) status = lin_fail(err, LIN_FORMAT, "%s is empty", name);
        else status = raw ? open_raw(a, raw, err) : open_sndfile(a, err);
    }
    if (status != LIN_OK) {
        lin_audio_close(a);
        return status;
    }
    *out = a;
    return LIN_OK;
}

lin_status lin_audio_open_fd(int fd, const char *name, const lin_pcm_format *raw, lin_audio **out, lin_error *err)
{
    *out = NULL;
    lin_audio *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, name, sizeof *a);
    a->fd = fd;
    return open_descriptor(a, name, raw, out, err);
}

lin_status lin_audio_open(const char *path, const lin_pcm_format *raw, lin_audio **out, lin_error *err)
{
    *out = NULL;
    if (strcmp(path, "-") == 0) {
        lin_pcm_format format = raw ? *raw : lin_pcm_default();
        return lin_audio_open_fd(STDIN_FILENO, "standard input", &format, out, err);
    }
    lin_audio *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, path, sizeof *a);
    a->close_fd = 1;
    a->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (a->fd < 0) {
        lin_status status = lin_fail(err, LIN_IO, "cannot open %s: %s", path, strerror(errno));
        lin_audio_close(a);
        return status;
    }
    return open_descriptor(a, path, raw, out, err);
}

lin_status lin_audio_open_none(const char *name, int rate_hz, int channels, lin_audio **out, lin_error *err)
{
    *out = NULL;
    lin_status status = lin_audio_check_format(name, rate_hz, channels, err);
    if (status != LIN_OK) return status;
    lin_audio *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, name, sizeof *a);
    a->fd = -1;
    a->end = 1;
    a->info.rate_hz = rate_hz;
    a->info.channels = channels;
    snprintf(a->info.format, sizeof a->info.format, "no sound");
    a->name = lin_strdup(name);
    if (!a->name) {
        lin_audio_close(a);
        return lin_no_memory(err, name, strlen(name) + 1);
    }
    *out = a;
    return LIN_OK;
}

lin_status lin_audio_read(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    *n = 0;
    if (capacity < 1) return lin_fail(err, LIN_INVALID, "reading %s into room for %d frames", a->name, capacity);
    if (a->end) return LIN_OK;
    lin_status status = a->file ? read_sndfile(a, frames, capacity, n, err) : read_raw(a, frames, capacity, n, err);
    if (status != LIN_OK) return status;
    size_t channels = (size_t)a->info.channels, count = (size_t)*n * channels, bad = lin_audio_find_bad(frames, count);
    if (bad < count) {
        int64_t sample = a->position + (int64_t)(bad / channels);
        *n = 0;
        return lin_fail(err, LIN_NUMERIC, "%s: sample %lld (%.3f s) of channel %zu is %g, which is no sound", a->name,
                        (long long)sample, (double)sample / a->info.rate_hz, bad % channels + 1, (double)frames[bad]);
    }
    a->position += *n;
    return LIN_OK;
}

const lin_audio_format *lin_audio_info(const lin_audio *a) { return &a->info; }

int64_t lin_audio_position(const lin_audio *a) { return a->position; }

lin_status lin_audio_seek(lin_audio *a, int64_t frame, lin_error *err)
{
    if (a->live || frame < 0)
        return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be wound to frame %lld: it is no regular file", a->name, (long long)frame);
    if (a->file) {
        if (sf_seek(a->file, (sf_count_t)frame, SEEK_SET) != (sf_count_t)frame)
            return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be wound to frame %lld: %s", a->name, (long long)frame,
                            sf_strerror(a->file));
    } else {
        // Relative: standard input need not begin where its file does.
        const int64_t bytes = (frame - a->position) * a->frame_bytes - a->held;
        if (lseek(a->fd, (off_t)bytes, SEEK_CUR) < 0)
            return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be wound to frame %lld: %s", a->name, (long long)frame,
                            strerror(errno));
        a->held = 0;
    }
    a->position = frame;
    a->end = 0;
    return LIN_OK;
}

int lin_audio_is_live(const lin_audio *a) { return a->live; }

void lin_audio_close(lin_audio *a)
{
    if (!a) return;
    if (a->file) sf_close(a->file);
    if (a->close_fd && a->fd >= 0) close(a->fd);
    lin_free(a->bytes);
    lin_free(a->name);
    lin_free(a);
}
