// audio_sndfile.c - a file, or a part of one, through libsndfile; see audio_internal.h.

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "frontend/audio_internal.h"

/* ---- checks beyond libsndfile's -------------------------------------------------------------------------------------------- */

static int64_t part_size(const lin_audio *a) { return a->part_end - a->part; }

static size_t read_at(const lin_audio *a, void *bytes, size_t n, int64_t offset)
{
    return lin_audio_read_at(a, bytes, n, a->part + offset);
}

static uint32_t u32(const unsigned char *b, int big)
{
    return big ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
               : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

// The header of an Ogg page gives its length: in a truncated file the last page is almost never whole (RFC 3533, 6).
static lin_status ends_within_page(const lin_audio *a, int *within, lin_error *err)
{
    enum { LONGEST_PAGE = 27 + 255 + 255 * 255 };
    *within = 0;
    const int64_t from = part_size(a) > LONGEST_PAGE ? part_size(a) - LONGEST_PAGE : 0;
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

// Whether the length of an MP3 file is a guess from its size: exact is what the first frame says,
// where an encoder wrote it there.
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

/* ---- files through libsndfile ---------------------------------------------------------------------------------------------- */

// sf_open_fd closes the descriptor when it fails, whatever its argument says, and sf_open guesses headerless formats from the
// file's name. With these callbacks neither happens, and errors of the disk are reported.
static sf_count_t io_length(void *user) { return part_size(user); }

static sf_count_t io_tell(void *user) { return ((lin_audio *)user)->offset; }

static sf_count_t io_seek(sf_count_t offset, int whence, void *user)
{
    lin_audio *a = user;
    sf_count_t base = whence == SEEK_CUR ? a->offset : whence == SEEK_END ? part_size(a) : 0;
    if (offset < -base || offset > INT64_MAX - base) return -1;
    a->offset = base + offset;
    return a->offset;
}

// The part ends where it does, and bytes of its header may be replaced.
static sf_count_t io_read(void *bytes, sf_count_t count, void *user)
{
    lin_audio *a = user;
    sf_count_t done = 0;
    const int64_t begin = a->offset;
    if (count > part_size(a) - a->offset) count = part_size(a) > a->offset ? part_size(a) - a->offset : 0;
    while (done < count) {
        ssize_t got = pread(a->fd, (char *)bytes + done, (size_t)(count - done), (off_t)(a->base + a->part + a->offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) a->io_errno = errno;
        if (got <= 0) break;
        done += got;
        a->offset += got;
    }
    for (int i = 0; i < a->n_patch; i++)
        if (a->patch_at + i >= begin && a->patch_at + i < begin + done)
            ((unsigned char *)bytes)[a->patch_at + i - begin] = a->patch[i];
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

// Bytes of a sample if all have the same number, else 0.
static int sample_bytes(int format)
{
    switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_ULAW:
    case SF_FORMAT_ALAW: return 1;
    case SF_FORMAT_PCM_16: return 2;
    case SF_FORMAT_PCM_24: return 3;
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT: return 4;
    case SF_FORMAT_DOUBLE: return 8;
    default: return 0;
    }
}

/*
 * Headers that give less than the file has. libsndfile reads FLAC and AU to the end if their headers give no length, so that is
 * what it gets to see; the header's own length is compared in the end. Of CAF it refuses an unknown length in some versions, and
 * gets to see the real one.
 */
static void patch_header(lin_audio *a)
{
    unsigned char b[26];
    a->n_patch = 0;
    if (read_at(a, b, sizeof b, 0) != sizeof b) return;
    if (memcmp(b, ".snd", 4) == 0 && (a->rest > 0 || u32(b + 8, 1) == 0)) {
        memset(a->patch, 0xff, 4);
        a->patch_at = 8;
        a->n_patch = 4;
        if (a->rest > 0) a->declared = u32(b + 8, 1); // in bytes
        a->rest = 0;
    } else if (a->facts.unknown_at > 0) {
        const uint64_t length = (uint64_t)(a->part_end - a->facts.unknown_at - 8);
        for (int i = 0; i < 8; i++) a->patch[i] = (unsigned char)(length >> (56 - 8 * i));
        a->patch_at = a->facts.unknown_at - a->part;
        a->n_patch = 8;
    } else if (memcmp(b, "fLaC", 4) == 0 && (b[4] & 127) == 0) {
        const lin_part_file file = {a->fd, a->base, a->size};
        const int64_t declared = (int64_t)(b[21] & 15) << 32 | u32(b + 22, 1);
        if (declared == 0 || lin_part_flac_samples(&file, a->part, a->part_end) <= declared) return;
        a->declared = declared;
        memset(a->patch, 0, 5);
        a->patch[0] = b[21] & 0xf0;
        a->patch_at = 21;
        a->n_patch = 5;
    }
}

// Of a format whose structure parts.c does not know: bytes that no sample needs.
static void find_rest(lin_audio *a, const SF_INFO *info)
{
    enum { HEADER = 4096 };
    const int major = info->format & SF_FORMAT_TYPEMASK;
    if (info->frames <= 0 || info->frames > part_size(a)) return; // not known
    const int64_t used = info->frames * info->channels * sample_bytes(info->format);
    if (used == 0) return;
    if (a->rest > 0 && used > a->size - a->part - a->rest) a->rest = 0; // read all the same
    if (major == SF_FORMAT_PVF || major == SF_FORMAT_PAF || major == SF_FORMAT_IRCAM || major == SF_FORMAT_NIST ||
        major == SF_FORMAT_AVR || major == SF_FORMAT_MAT4 || major == SF_FORMAT_MAT5 || major == SF_FORMAT_HTK)
        a->rest = part_size(a) - used > HEADER ? part_size(a) - used - HEADER : 0;
}

lin_status lin_audio_open_sndfile(lin_audio *a, lin_error *err)
{
    SF_INFO info = {0};
    char reason[256] = "";
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    lin_status status = check_claims(a, err);
    if (status != LIN_OK) return status;
    a->offset = 0;
    a->declared = -1;
    patch_header(a);
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
    if (a->part_begin == 0) describe_format(a, info.format);
    find_rest(a, &info);
    if (a->n_patch == 4 && a->declared > 0)
        a->declared = sample_bytes(info.format) ? a->declared / (info.channels * sample_bytes(info.format)) : -1;
    a->is_mpeg = (info.format & SF_FORMAT_TYPEMASK) == 0x230000; // SF_FORMAT_MPEG, since 1.1
    a->is_flac = (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;
    a->info.rate_hz = info.samplerate;
    a->info.channels = info.channels;
    a->info.frames = a->part_frames = info.frames < 0 || info.frames == SF_COUNT_MAX ? -1 : info.frames;
    status = lin_audio_check_format(a->name, info.samplerate, info.channels, err);
    if (status != LIN_OK) return status;
    const int64_t promised = a->n_patch ? -1 : a->facts.promised, present = a->facts.present;
    if (a->info.frames == 0 && promised == 0 && present > 0)
        return lin_fail(err, LIN_FORMAT,
                        "the header of %s gives no samples, but %lld bytes follow it: its recording may have been interrupted; "
                        "read it as raw PCM",
                        a->name, (long long)present);
    if (a->info.frames == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    if (promised > present && a->info.frames > 0) {
        const double seconds = (double)a->info.frames / a->info.rate_hz;
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, seconds,
              seconds * (double)promised / (double)(present > 0 ? present : 1));
    }
    return (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG ? ends_within_page(a, &a->is_cut, err) : LIN_OK;
}

lin_status lin_audio_read_sndfile(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    sf_count_t got = sf_readf_float(a->file, frames, capacity);
    if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
    *n = got > 0 ? (int)got : 0;
    if (*n == capacity) return LIN_OK;
    a->end = 1;
    const int64_t total = a->position + *n - a->part_begin; // of this part
    const double seconds = (double)total / a->info.rate_hz, promised = (double)a->part_frames / a->info.rate_hz;
    // After all samples of the header, an error is about what follows: tags, padding.
    const int has_all = a->part_frames > 0 && total >= a->part_frames && !a->is_mpeg;
    const int error = has_all ? SF_ERR_NO_ERROR : sf_error(a->file);
    if (error != SF_ERR_NO_ERROR && a->part_frames > total)
        lin_audio_warn(a, 1, "%s is damaged: reading stopped after %.3f of %.3f s (%s)", a->name, seconds, promised,
                     sf_strerror(a->file));
    else if (error != SF_ERR_NO_ERROR)
        lin_audio_warn(a, 1, "%s is damaged: reading stopped after %.3f s (%s)", a->name, seconds, sf_strerror(a->file));
    else if (a->part_frames > total + a->info.rate_hz / 10 && !is_length_guessed(a)) // lengths of lossy formats are not exact
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, seconds, promised);
    else if (a->is_cut) lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s, within an Ogg page", a->name, seconds);
    else if (a->declared >= 0 && total > a->declared + a->info.rate_hz / 10)
        lin_audio_warn(a, 0, "the header of %s gives %.3f s; all %.3f s of it are read", a->name,
                       (double)a->declared / a->info.rate_hz, seconds);
    if (a->position + *n == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples that can be read", a->name);
    return LIN_OK;
}

