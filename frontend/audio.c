// audio.c - opening a source, and its samples through libsndfile, pipes or ffmpeg; see audio.h. SPHERE is in audio_sphere.c.

#include "frontend/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "frontend/audio_internal.h"
#include "frontend/pcm.h"

static const volatile sig_atomic_t *stop_flag;

void lin_audio_stop_on(const volatile sig_atomic_t *flag) { stop_flag = flag; }

int lin_audio_is_stopped(void) { return stop_flag && *stop_flag; }

static void warn(lin_audio *a, const char *fmt, ...) LIN_PRINTF(2, 3);

// Keeps only the first warning.
static void warn(lin_audio *a, const char *fmt, ...)
{
    if (a->info.warning[0]) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->info.warning, sizeof a->info.warning, fmt, args);
    va_end(args);
}

// The same, if sound is missing.
#define warn_missing(a, ...) (warn(a, __VA_ARGS__), (void)((a)->info.incomplete = 1))

size_t lin_audio_find_bad(const float *samples, size_t n)
{
    // Compared as integers, magnitudes of floats keep their order, and infinities and NaNs follow all numbers.
    const float largest = LIN_AUDIO_LARGEST;
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

// ---- checks beyond libsndfile's ----

static size_t read_at(const lin_audio *a, void *bytes, size_t n, int64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(a->fd, (char *)bytes + done, n - done, (off_t)(a->base + offset + (int64_t)done));
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

static uint64_t u64(const unsigned char *b, int big)
{
    return big ? (uint64_t)u32(b, 1) << 32 | u32(b + 4, 1) : (uint64_t)u32(b + 4, 0) << 32 | u32(b, 0);
}

// The positions of chunks in the files of a family, and the layout of a chunk's header.
typedef struct chunks {
    int64_t at;           // of the first
    int head, size_at;    // bytes of a chunk's header, and the offset of its length in it
    int wide, big, whole; // 64-bit length; big-endian; the length includes the header
    int align;            // the next begins at a multiple of this
    const char *wanted;   // the chunk with the samples
} chunks;

static int find_chunks(const unsigned char *b, chunks *c)
{
    static const struct {
        const char *magic;
        chunks chunks;
    } known[] = {{"RIFF", {12, 8, 4, 0, 0, 0, 2, "data"}}, {"RIFX", {12, 8, 4, 0, 1, 0, 2, "data"}},
                 {"RF64", {12, 8, 4, 0, 0, 0, 2, "data"}}, {"FORM", {12, 8, 4, 0, 1, 0, 2, "SSND"}},
                 {"caff", {8, 12, 4, 1, 1, 0, 1, "data"}}, {"riff", {40, 24, 16, 1, 0, 1, 8, "data"}}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        *c = known[i].chunks;
        if (memcmp(b, known[i].magic, 4) == 0) return 1;
    }
    return 0;
}

/*
 * If a header gives more data than the file contains, libsndfile shortens it without a warning. This walks the chunks to find the
 * number of bytes that the header gives and that are present. Returns 0 for other formats, for streams of undeclared length
 * (nearly 2^31, 2^32 or 2^64), and if no data chunk is found.
 */
static int promised_bytes(const lin_audio *a, int64_t *promised, int64_t *present)
{
    enum { MOST_CHUNKS = 10000 };
    unsigned char b[24];
    chunks c;
    uint64_t in_ds64 = 0;
    if (read_at(a, b, 12, 0) != 12) return 0;
    if (memcmp(b, ".snd", 4) == 0) {
        *present = a->size - (int64_t)u32(b + 4, 1);
        *promised = (int64_t)u32(b + 8, 1);
        return *promised < 0x7ffff000 && *present >= 0;
    }
    if (!find_chunks(b, &c)) return 0;
    for (int n = 0; n < MOST_CHUNKS; n++) {
        if (read_at(a, b, (size_t)c.head, c.at) != (size_t)c.head) return 0;
        uint64_t length = c.wide ? u64(b + c.size_at, c.big) : u32(b + c.size_at, c.big);
        if (c.whole) length = length > (uint64_t)c.head ? length - (uint64_t)c.head : 0;
        if (memcmp(b, c.wanted, 4) == 0) {
            if (length == 0xffffffff && in_ds64) length = in_ds64;
            *present = a->size - c.at - c.head;
            *promised = length < INT64_MAX ? (int64_t)length : INT64_MAX;
            return *promised < (c.wide || in_ds64 ? INT64_MAX / 2 : 0x7ffff000) && *present >= 0;
        }
        if (memcmp(b, "ds64", 4) == 0 && read_at(a, b, 8, c.at + 16) == 8) in_ds64 = u64(b, 0);
        if (length > (uint64_t)a->size) return 0;
        const int64_t next = c.at + c.head + (int64_t)length;
        c.at = (next + c.align - 1) / c.align * c.align;
    }
    return 0;
}

// The header of an Ogg page gives its length: in a truncated file the last page is almost never whole (RFC 3533, 6).
static lin_status ends_within_page(const lin_audio *a, int *within, lin_error *err)
{
    enum { LONGEST_PAGE = 27 + 255 + 255 * 255 };
    *within = 0;
    if (strncmp(a->info.format, "OGG", 3) != 0) return LIN_OK;
    const int64_t from = a->size > LONGEST_PAGE ? a->size - LONGEST_PAGE : 0;
    unsigned char *b = lin_alloc(LONGEST_PAGE, 1);
    if (!b) return lin_no_memory(err, a->name, LONGEST_PAGE);
    const size_t n = read_at(a, b, LONGEST_PAGE, from);
    for (size_t at = n >= 4 ? n - 4 : 0; at > 0; at--) {
        if (memcmp(b + at, "OggS", 4) != 0) continue;
        const size_t segments = at + 27 <= n ? b[at + 26] : 0;
        size_t end = at + 27 + segments;
        for (size_t i = 0; i < segments && at + 27 + segments <= n; i++) end += b[at + 27 + i];
        *within = end > n;
        break;
    }
    lin_free(b);
    return LIN_OK;
}

// Whether the length of an MP3 file is a guess from its size: exact is what the first frame says, where an encoder wrote it there.
static int is_length_guessed(const lin_audio *a)
{
    static const char *const tags[] = {"Xing", "Info", "VBRI"};
    unsigned char b[64]; // a frame's header and side information, 4 to 40 bytes, and the tag
    int64_t at = 0;
    if (!a->is_mpeg) return 0;
    if (read_at(a, b, 10, 0) == 10 && memcmp(b, "ID3", 3) == 0)
        at = 10 + ((b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127));
    const size_t n = read_at(a, b, sizeof b, at);
    for (size_t i = 4; i + 4 <= n; i++)
        for (int k = 0; k < 3; k++)
            if (memcmp(b + i, tags[k], 4) == 0) return 0;
    return 1;
}

// ---- files through libsndfile ----

// sf_open_fd closes the descriptor when it fails, whatever its argument says, and sf_open guesses headerless formats from the
// file's name. With these callbacks neither happens, and errors of the disk are reported.
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
        ssize_t got = pread(a->fd, (char *)bytes + done, (size_t)(count - done), (off_t)(a->base + a->offset));
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

// libsndfile keeps the reason of a failed opening in a global variable.
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

// Rejects headers with values outside the limits before libsndfile reads them, because its allocations cannot be checked.
static lin_status check_claims(const lin_audio *a, lin_error *err)
{
    unsigned char b[LIN_SNIFF_BYTES];
    int64_t rate_hz, channels;
    lin_sniff_claims(b, read_at(a, b, sizeof b, 0), &rate_hz, &channels);
    if (rate_hz <= LIN_AUDIO_MAX_HZ && channels <= LIN_AUDIO_MAX_CHANNELS) return LIN_OK;
    return lin_audio_check_format(a->name,
                                  rate_hz < LIN_AUDIO_MIN_HZ ? LIN_AUDIO_MIN_HZ
                                  : rate_hz > INT32_MAX      ? INT32_MAX
                                                             : (int)rate_hz,
                                  channels > INT32_MAX ? INT32_MAX
                                  : channels < 1       ? 1
                                                       : (int)channels,
                                  err);
}

// LIN_MISMATCH: libsndfile does not support it; the message is its reason.
static lin_status open_sndfile(lin_audio *a, lin_error *err)
{
    SF_INFO info = {0};
    char reason[256] = "";
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    lin_status status = check_claims(a, err);
    if (status != LIN_OK) return status;
    pthread_mutex_lock(&open_lock);
    a->file = sf_open_virtual(&io, SFM_READ, &info, a);
    if (!a->file) snprintf(reason, sizeof reason, "%s", sf_strerror(NULL));
    pthread_mutex_unlock(&open_lock);
    if (!a->file) {
        size_t n = strlen(reason);
        while (n && (reason[n - 1] == '.' || reason[n - 1] == '\n')) reason[--n] = 0;
        if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
        return lin_fail(err, LIN_MISMATCH, "%s", reason);
    }
    describe_format(a, info.format);
    a->is_mpeg = (info.format & SF_FORMAT_TYPEMASK) == 0x230000; // SF_FORMAT_MPEG, since 1.1
    a->info.rate_hz = info.samplerate;
    a->info.channels = info.channels;
    a->info.frames = info.frames < 0 || info.frames == SF_COUNT_MAX ? -1 : info.frames;
    status = lin_audio_check_format(a->name, info.samplerate, info.channels, err);
    if (status != LIN_OK) return status;
    int64_t promised = 0, present = 0;
    if (!promised_bytes(a, &promised, &present)) promised = present = 0;
    if (a->info.frames == 0 && promised == 0 && present > 0)
        return lin_fail(err, LIN_FORMAT,
                        "the header of %s gives no samples, but %lld bytes follow it: its recording may have been interrupted; "
                        "read it as raw PCM",
                        a->name, (long long)present);
    if (a->info.frames == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    if (promised > present && a->info.frames > 0) {
        const double seconds = (double)a->info.frames / a->info.rate_hz;
        warn_missing(a, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, seconds,
              seconds * (double)promised / (double)(present > 0 ? present : 1));
    }
    return ends_within_page(a, &a->is_cut, err);
}

static lin_status read_sndfile(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    sf_count_t got = sf_readf_float(a->file, frames, capacity);
    if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
    *n = got > 0 ? (int)got : 0;
    if (*n == capacity) return LIN_OK;
    a->end = 1;
    const int64_t total = a->position + *n;
    const double seconds = (double)total / a->info.rate_hz, promised = (double)a->info.frames / a->info.rate_hz;
    if (sf_error(a->file) != SF_ERR_NO_ERROR && a->info.frames > total)
        warn_missing(a, "%s is damaged: reading stopped after %.3f of %.3f s (%s)", a->name, seconds, promised,
                     sf_strerror(a->file));
    else if (sf_error(a->file) != SF_ERR_NO_ERROR)
        warn_missing(a, "%s is damaged: reading stopped after %.3f s (%s)", a->name, seconds, sf_strerror(a->file));
    else if (a->info.frames > total + a->info.rate_hz / 10 && !is_length_guessed(a)) // lengths of lossy formats are not exact
        warn_missing(a, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, seconds, promised);
    else if (a->is_cut) warn_missing(a, "%s is truncated: it ends after %.3f s, within an Ogg page", a->name, seconds);
    if (total == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples that can be read", a->name);
    return LIN_OK;
}

// ---- files through ffmpeg ----

static lin_status open_ffmpeg(lin_audio *a, lin_error *err)
{
    lin_status status = lin_ffmpeg_open(a->fd, a->name, &a->ffmpeg, err);
    if (status != LIN_OK) return status;
    a->info.rate_hz = lin_ffmpeg_rate(a->ffmpeg);
    a->info.channels = lin_ffmpeg_channels(a->ffmpeg);
    const double seconds = lin_ffmpeg_seconds(a->ffmpeg);
    a->info.frames = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * a->info.rate_hz) : -1;
    snprintf(a->info.format, sizeof a->info.format, "decoded by ffmpeg");
    int64_t promised, present; // for a file that libsndfile refuses because it is truncated
    a->is_cut = promised_bytes(a, &promised, &present) && promised > present;
    return lin_audio_check_format(a->name, a->info.rate_hz, a->info.channels, err);
}

static lin_status read_ffmpeg(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = lin_ffmpeg_read(a->ffmpeg, frames, capacity, n, err);
    if (status != LIN_OK || *n == capacity) return status;
    a->end = 1;
    const int64_t total = a->position + *n;
    const char *trouble = lin_ffmpeg_trouble(a->ffmpeg);
    if (total == 0) return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, *trouble ? trouble : "nothing");
    if (*trouble)
        warn_missing(a, "%s is damaged; %.3f s of it were read; ffmpeg says: %s", a->name, (double)total / a->info.rate_hz,
                     trouble);
    else if (a->is_cut)
        warn_missing(a, "%s is truncated: it ends after %.3f s; its header gives more", a->name, (double)total / a->info.rate_hz);
    return LIN_OK;
}

// ---- raw PCM ----

lin_status lin_audio_make_room(lin_audio *a, lin_error *err)
{
    if (!a->bytes) a->bytes = lin_alloc(LIN_AUDIO_RAW_BYTES, 1);
    return a->bytes ? LIN_OK : lin_no_memory(err, a->name, LIN_AUDIO_RAW_BYTES);
}

lin_status lin_audio_open_raw(lin_audio *a, const lin_pcm_format *raw, lin_error *err)
{
    lin_status status = lin_audio_check_format(a->name, raw->rate_hz, raw->channels, err);
    if (status != LIN_OK) return status;
    a->encoding = raw->encoding;
    a->frame_bytes = lin_pcm_bytes(raw->encoding) * raw->channels;
    a->info.rate_hz = raw->rate_hz;
    a->info.channels = raw->channels;
    a->info.frames = a->live ? -1 : a->size / a->frame_bytes;
    a->left = -1;
    snprintf(a->info.format, sizeof a->info.format, "raw PCM, %s", lin_pcm_name(raw->encoding));
    return lin_audio_make_room(a, err);
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

lin_status lin_audio_gather(lin_audio *a, int most, int *end, lin_error *err)
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

static void warn_if_not_raw(lin_audio *a)
{
    const char *what;
    const lin_sniffed kind = lin_sniff(a->bytes + a->at, (size_t)a->held, &what);
    if (kind == LIN_SNIFF_SNDFILE || kind == LIN_SNIFF_MEDIA)
        warn(a, "%s begins like %s, but is read as headerless samples", a->name, what);
}

static lin_status end_raw(lin_audio *a, int64_t total, lin_error *err)
{
    a->end = 1;
    if (total == 0 && !lin_audio_is_stopped()) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    if (a->sphere) return lin_audio_sphere_end(a, total, err);
    if (a->left > 0 && !lin_audio_is_stopped())
        warn_missing(a, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, (double)total / a->info.rate_hz,
              ((double)total + (double)a->left / a->frame_bytes) / a->info.rate_hz);
    else if (a->held && a->left < 0)
        warn(a, "%s ends with %d bytes that are not a whole frame of %d", a->name, a->held, a->frame_bytes);
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
        if (a->sphere) lin_audio_sphere_frames(a, a->position + done, a->bytes + a->at, whole);
        lin_pcm_decode(a->encoding, a->bytes + a->at, (size_t)whole * (size_t)a->info.channels,
                       frames + (size_t)done * (size_t)a->info.channels);
        a->at += whole * a->frame_bytes;
        a->held -= whole * a->frame_bytes;
        if (a->left >= 0) a->left -= (int64_t)whole * a->frame_bytes;
        done += whole;
        if (done == capacity || (a->live && done)) break;
        if (end || (a->left >= 0 && a->left < a->frame_bytes)) {
            if (a->sphere && done) break; // the next call checks the whole
            if (a->left >= 0 && a->left < a->frame_bytes) a->left = 0;
            status = end_raw(a, a->position + done, err);
            break;
        }
        const int64_t wanted = (int64_t)(capacity - done) * a->frame_bytes - a->held;
        status = lin_audio_gather(a, wanted < LIN_AUDIO_RAW_BYTES ? (int)wanted : LIN_AUDIO_RAW_BYTES, &end, err);
        if (status == LIN_OK && a->position == 0 && done == 0 && a->left < 0 && !a->sphere && !a->info.notice[0])
            warn_if_not_raw(a);
    }
    *n = done;
    return status;
}

// ---- opening, reading, closing ----

static lin_status needs_ffmpeg(const lin_audio *a, const char *what, const lin_error *why, lin_error *err)
{
    return lin_fail(
        err, LIN_UNSUPPORTED,
        "%s is %s, which needs the program ffmpeg: install it (apt install ffmpeg), name it in LINNET_FFMPEG, or convert "
        "the sound to WAV or FLAC (%s)",
        a->name, what, why->message);
}

// A file that allows seeking, read by libsndfile or ffmpeg.
static lin_status open_file(lin_audio *a, lin_sniffed kind, const char *what, lin_error *err)
{
    lin_error why = {0}, reason = {0}; // reasons of the failures of ffmpeg and of libsndfile
    if (kind != LIN_SNIFF_MEDIA) {
        lin_status status = open_sndfile(a, &reason);
        if (status == LIN_OK) return status;
        if (status != LIN_MISMATCH) return lin_fail_as(err, &reason);
    }
    if (kind == LIN_SNIFF_NO_SOUND) return lin_fail(err, LIN_FORMAT, "%s is not an audio file: it is %s", a->name, what);
    lin_status status = a->base ? lin_audio_spool(a, &why) : LIN_OK; // ffmpeg reads from the beginning
    if (status == LIN_OK) status = open_ffmpeg(a, &why);
    if (status == LIN_UNSUPPORTED && !a->ffmpeg && kind == LIN_SNIFF_MEDIA) return needs_ffmpeg(a, what, &why, err);
    if (status == LIN_UNSUPPORTED && !a->ffmpeg)
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s", a->name, reason.message);
    if (status == LIN_FORMAT && kind == LIN_SNIFF_MEDIA)
        return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, why.message);
    if (status == LIN_FORMAT)
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s; ffmpeg says: %s", a->name, reason.message,
                        why.message);
    return status == LIN_OK ? LIN_OK : lin_fail_as(err, &why);
}

// A pipe or standard input of unknown format: headerless samples, if it may contain these.
static lin_status open_unknown(lin_audio *a, const unsigned char *head, size_t n, const lin_pcm_format *raw, lin_error *err)
{
    if (raw->fallback == 1 && raw->encoding == LIN_PCM_S16LE && lin_sniff_is_noise(head, n))
        return lin_fail(err, LIN_FORMAT,
                        "the format of %s is not recognised, and as headerless s16le it would be noise; use --raw to "
                        "read it anyway",
                        a->name);
    lin_status status = lin_audio_open_raw(a, raw, err);
    if (status == LIN_OK && raw->fallback == 1)
        snprintf(a->info.notice, sizeof a->info.notice,
                 "the format of %s is not recognised: it is read as headerless %s at %d Hz, %d channel%s (--raw: without "
                 "this message)",
                 a->name, lin_pcm_name(raw->encoding), raw->rate_hz, raw->channels, raw->channels == 1 ? "" : "s");
    return status;
}

// Opens by content. may_be_raw: the format to use if the content is not recognised; not NULL only for a pipe or standard input.
static lin_status open_by_bytes(lin_audio *a, const lin_pcm_format *may_be_raw, lin_error *err)
{
    unsigned char head[LIN_SNIFF_BYTES];
    lin_sniffed kind;
    const char *what;
    int is = 0;
    if (!a->live) {
        const size_t n = read_at(a, head, sizeof head, 0);
        kind = lin_sniff(head, n, &what);
        if (lin_sniff_is_sphere(head, n)) {
            const lin_status status = lin_audio_open_sphere(a, &is, err);
            if (status != LIN_OK || is) return status;
        }
        if (may_be_raw && (kind == LIN_SNIFF_UNKNOWN || (kind == LIN_SNIFF_NO_SOUND && may_be_raw->fallback == 2)))
            return open_unknown(a, head, n, may_be_raw, err);
        return open_file(a, kind, what, err);
    }
    lin_status status = lin_audio_look(a, &kind, &what, err);
    if (status != LIN_OK) return status;
    if (may_be_raw && (kind == LIN_SNIFF_UNKNOWN || (kind == LIN_SNIFF_NO_SOUND && may_be_raw->fallback == 2)))
        return open_unknown(a, a->bytes, (size_t)a->held, may_be_raw, err);
    if (kind == LIN_SNIFF_NO_SOUND) return lin_fail(err, LIN_FORMAT, "%s is not sound: it is %s", a->name, what);
    status = lin_sniff_is_sphere(a->bytes, (size_t)a->held) ? lin_audio_open_sphere(a, &is, err) : lin_audio_open_wav(a, &is, err);
    if (status != LIN_OK || is) return status;
    status = lin_audio_spool(a, err);
    return status == LIN_OK ? open_file(a, kind, what, err) : status;
}

// Completes `a`, whose descriptor is open, and returns it; on failure closes it.
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
        a->base = a->live || a->close_fd ? 0 : lseek(a->fd, 0, SEEK_CUR);
        if (a->base < 0) a->base = 0;
        a->size = a->live ? 0 : st.st_size - a->base;
        if (!a->live && a->size <= 0) status = lin_fail(err, LIN_FORMAT, "%s is empty", name);
        else if (raw && !raw->fallback) status = lin_audio_open_raw(a, raw, err);
        else if (!a->live && lin_isolate_is_on()) status = lin_isolated_open(a->fd, name, &a->info, &a->isolated, err);
        else status = open_by_bytes(a, a->live || !a->close_fd ? raw : NULL, err);
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
        lin_pcm_format format = lin_pcm_default();
        format.fallback = 1;
        return lin_audio_open_fd(STDIN_FILENO, "standard input", raw ? raw : &format, out, err);
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

lin_status lin_audio_open_memory(const char *name, const float *samples, int64_t n, int rate_hz, int channels, lin_audio **out,
                                 lin_error *err)
{
    *out = NULL;
    lin_status status = lin_audio_check_format(name, rate_hz, channels, err);
    if (status != LIN_OK) return status;
    lin_audio *a = lin_calloc(1, sizeof *a);
    if (!a) return lin_no_memory(err, name, sizeof *a);
    a->fd = -1;
    a->end = n == 0;
    a->memory = samples;
    a->info.rate_hz = rate_hz;
    a->info.channels = channels;
    a->info.frames = n;
    snprintf(a->info.format, sizeof a->info.format, n ? "samples in memory" : "no sound");
    a->name = lin_strdup(name);
    if (!a->name) {
        lin_audio_close(a);
        return lin_no_memory(err, name, strlen(name) + 1);
    }
    *out = a;
    return LIN_OK;
}

static lin_status read_memory(lin_audio *a, float *frames, int capacity, int *n)
{
    const int64_t left = a->info.frames - a->position;
    const size_t channels = (size_t)a->info.channels;
    *n = left < capacity ? (int)left : capacity;
    if (*n > 0) memcpy(frames, a->memory + (size_t)a->position * channels, (size_t)*n * channels * sizeof *frames);
    return LIN_OK;
}

static lin_status read_isolated(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = lin_isolated_read(a->isolated, &a->info, frames, capacity, n, err);
    a->end = status == LIN_OK && *n == 0;
    return status;
}

lin_status lin_audio_read(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    *n = 0;
    if (capacity < 1) return lin_fail(err, LIN_INVALID, "reading %s: room for %d frames; must be at least 1", a->name, capacity);
    if (a->end) return LIN_OK;
    lin_status status = a->memory                ? read_memory(a, frames, capacity, n)
                        : a->file                ? read_sndfile(a, frames, capacity, n, err)
                        : a->isolated            ? read_isolated(a, frames, capacity, n, err)
                        : a->ffmpeg              ? read_ffmpeg(a, frames, capacity, n, err)
                        : lin_audio_is_packed(a) ? lin_audio_read_packed(a, frames, capacity, n, err)
                                                 : read_raw(a, frames, capacity, n, err);
    if (status != LIN_OK) return status;
    size_t channels = (size_t)a->info.channels, count = (size_t)*n * channels, bad = lin_audio_find_bad(frames, count);
    if (bad < count) {
        int64_t sample = a->position + (int64_t)(bad / channels);
        *n = 0;
        return lin_fail(err, LIN_NUMERIC, "%s: sample %lld (%.3f s) of channel %zu is %g, which is not sound", a->name,
                        (long long)sample, (double)sample / a->info.rate_hz, bad % channels + 1, (double)frames[bad]);
    }
    a->position += *n;
    return LIN_OK;
}

const lin_audio_format *lin_audio_info(const lin_audio *a) { return &a->info; }

int64_t lin_audio_position(const lin_audio *a) { return a->position; }

lin_status lin_audio_seek(lin_audio *a, int64_t frame, lin_error *err)
{
    if (a->live || a->ffmpeg || a->isolated || frame < 0)
        return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: it is not a regular file", a->name,
                        (long long)frame);
    if (lin_audio_is_packed(a)) return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s: it is compressed with shorten", a->name);
    // A frame of MP3 needs bits of earlier frames; after a seek, the MP3 library prints errors to standard error.
    if (a->is_mpeg) return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s: it is MP3", a->name);
    if (a->memory) {
        if (frame > a->info.frames)
            return lin_fail(err, LIN_UNSUPPORTED, "%s ends before frame %lld", a->name, (long long)frame);
    } else if (a->file) {
        if (sf_seek(a->file, (sf_count_t)frame, SEEK_SET) != (sf_count_t)frame)
            return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: %s", a->name, (long long)frame,
                            sf_strerror(a->file));
    } else {
        // A relative seek: the sound on standard input need not begin at the beginning of its file.
        const int64_t bytes = (frame - a->position) * a->frame_bytes - a->held;
        if (lseek(a->fd, (off_t)bytes, SEEK_CUR) < 0)
            return lin_fail(err, LIN_UNSUPPORTED, "cannot seek in %s to frame %lld: %s", a->name, (long long)frame,
                            strerror(errno));
        a->at = a->held = 0;
        if (a->sphere) lin_audio_sphere_seek(a, frame);
    }
    a->position = frame;
    a->end = 0;
    return LIN_OK;
}

int lin_audio_is_live(const lin_audio *a) { return a->live; }

int lin_audio_wait_for(const lin_audio *a)
{
    return a->live && a->held < a->frame_bytes && !a->end && !lin_audio_has_packed(a) ? a->fd : -1;
}

void lin_audio_close(lin_audio *a)
{
    if (!a) return;
    if (a->file) sf_close(a->file);
    lin_ffmpeg_close(a->ffmpeg);
    lin_isolated_close(a->isolated);
    lin_audio_close_sphere(a);
    if (a->close_fd && a->fd >= 0) close(a->fd);
    lin_free(a->bytes);
    lin_free(a->name);
    lin_free(a);
}
