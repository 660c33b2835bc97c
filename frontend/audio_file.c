// audio_file.c - regular files: one or several that were joined, each read by libsndfile or ffmpeg; see audio_internal.h.

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "frontend/audio_internal.h"

static int64_t part_size(const lin_audio *a) { return a->part_end - a->part; }

/* ---- libsndfile ------------------------------------------------------------------------------------------------------------ */

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

// Reads up to the end of the part; bytes of its header may be replaced (patch_header).
static sf_count_t io_read(void *bytes, sf_count_t count, void *user)
{
    lin_audio *a = user;
    const int64_t begin = a->offset;
    if (count > part_size(a) - begin) count = part_size(a) > begin ? part_size(a) - begin : 0;
    errno = 0;
    const sf_count_t done = (sf_count_t)lin_sniff_read(&a->whole, bytes, (size_t)count, a->part + begin);
    if (done < count && errno) a->io_errno = errno;
    a->offset += done;
    for (int i = 0; i < a->n_patch; i++)
        if (a->patch_at + i >= begin && a->patch_at + i < begin + done)
            ((unsigned char *)bytes)[a->patch_at + i - begin] = a->patch[i];
    return done;
}

static sf_count_t io_write(const void *bytes, sf_count_t count, void *user)
{
    (void)bytes, (void)count, (void)user;
    return 0;
}

// Shows libsndfile headers of FLAC and AU without a length, so that it reads to the end even if the header gives too little. The
// length in the header is compared at the end. In Wave64 it takes all WAVE_FORMAT_EXTENSIBLE for integers: the encoding, the
// beginning of the format's GUID, is put in its place.
static void patch_header(lin_audio *a)
{
    unsigned char b[90] = {0};
    a->n_patch = 0;
    if (lin_sniff_read(&a->whole, b, sizeof b, a->part) < 26) return;
    if (memcmp(b, ".snd", 4) == 0 && a->rest > 0) {
        memset(a->patch, 0xff, 4);
        a->patch_at = 8;
        a->n_patch = 4;
        a->rest = 0;
    } else if (memcmp(b, "fLaC", 4) == 0 && (b[4] & 127) == 0) {
        const int64_t declared = (int64_t)(b[21] & 15) << 32 | (int64_t)b[22] << 24 | b[23] << 16 | b[24] << 8 | b[25];
        if (declared > 0) a->declared = declared;
        memset(a->patch, 0, 5);
        a->patch[0] = b[21] & 0xf0;
        a->patch_at = 21;
        a->n_patch = 5;
    } else if (memcmp(b, "riff", 4) == 0 && memcmp(b + 40, "fmt ", 4) == 0 && b[64] == 0xfe && b[65] == 0xff) {
        memcpy(a->patch, b + 88, 2);
        a->patch_at = 64;
        a->n_patch = 2;
    }
}

// libsndfile keeps the reason of a failed opening in a global variable.
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

// LIN_MISMATCH: libsndfile does not support it; the message is its reason.
static lin_status open_sndfile(lin_audio *a, lin_error *err)
{
    SF_INFO info = {0};
    char reason[256] = "";
    SF_VIRTUAL_IO io = {io_length, io_seek, io_read, io_write, io_tell};
    a->offset = 0;
    patch_header(a);
    pthread_mutex_lock(&open_lock);
    a->sndfile = sf_open_virtual(&io, SFM_READ, &info, a);
    if (!a->sndfile) snprintf(reason, sizeof reason, "%s", sf_strerror(NULL));
    pthread_mutex_unlock(&open_lock);
    if (!a->sndfile) {
        size_t n = strlen(reason);
        while (n && (reason[n - 1] == '.' || reason[n - 1] == '\n')) reason[--n] = 0;
        if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
        return lin_fail(err, LIN_MISMATCH, "%s", reason);
    }
    const int major = info.format & SF_FORMAT_TYPEMASK;
    a->is_mpeg = major == 0x230000; // SF_FORMAT_MPEG, since 1.1
    a->info.rate_hz = info.samplerate;
    a->info.channels = info.channels;
    if (a->samples.bytes > 0 && a->n_patch == 4) // the AU header's length, by what was found behind it
        a->declared = (int64_t)((double)info.frames * (double)a->samples.bytes / (double)(a->part_end - a->samples.at));
    else if (a->declared < 0 && info.frames >= 0 && info.frames < INT64_MAX / LIN_AUDIO_MAX_HZ) a->declared = info.frames;
    a->info.frames = a->n_patch == 4 ? info.frames : a->declared;
    LIN_TRY(lin_audio_check_format(a->name, info.samplerate, info.channels, err));
    if (info.frames == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    return LIN_OK;
}

static lin_status read_sndfile(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    const sf_count_t got = sf_readf_float(a->sndfile, frames, capacity);
    if (a->io_errno) return lin_fail(err, LIN_IO, "cannot read %s: %s", a->name, strerror(a->io_errno));
    *n = got > 0 ? (int)got : 0;
    if (*n == capacity) return LIN_OK;
    a->end = 1;
    const int64_t total = a->position + *n - a->part_begin;
    const double seconds = (double)total / a->info.rate_hz;
    // After all samples of the header, an error is about what follows: tags, padding.
    const int has_all = a->declared > 0 && total >= a->declared && !a->is_mpeg;
    if (!has_all && sf_error(a->sndfile) != SF_ERR_NO_ERROR) {
        const char *why = sf_strerror(a->sndfile);
        if (a->declared > total)
            lin_audio_warn(a, 1, "%s is damaged: reading stopped after %.3f of %.3f s (%s)", a->name, seconds,
                           (double)a->declared / a->info.rate_hz, why);
        else lin_audio_warn(a, 1, "%s is damaged: reading stopped after %.3f s (%s)", a->name, seconds, why);
    }
    if (a->position + *n == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples that can be read", a->name);
    return LIN_OK;
}

/* ---- ffmpeg ---------------------------------------------------------------------------------------------------------------- */

static lin_status open_ffmpeg(lin_audio *a, lin_error *err)
{
    const int64_t base = a->whole.base, end = base || a->part_end < a->whole.size ? base + a->part_end : -1;
    LIN_TRY(lin_ffmpeg_open(a->fd, base + a->part, end, a->name, &a->ffmpeg, err));
    const lin_ffmpeg *f = a->ffmpeg;
    a->info.rate_hz = f->helper.rate_hz;
    a->info.channels = f->helper.channels;
    a->info.frames = f->seconds > 0 && f->seconds < 1e9 && !f->is_guess ? (int64_t)(f->seconds * a->info.rate_hz) : -1;
    if (f->n_tracks > 1 && !lin_audio_track())
        snprintf(a->info.notice, sizeof a->info.notice,
                 "%s has several sound tracks: %.100s; track %d is read (--track N|LANGUAGE: another)", a->name, f->tracks,
                 f->track);
    return lin_audio_check_format(a->name, a->info.rate_hz, a->info.channels, err);
}

static lin_status read_ffmpeg(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    lin_status status = lin_ffmpeg_read(a->ffmpeg, frames, capacity, n, err);
    if (status != LIN_OK || *n == capacity) return status;
    a->end = 1;
    const char *trouble = a->ffmpeg->trouble;
    if (a->position + *n == 0)
        return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, *trouble ? trouble : "nothing");
    if (*trouble)
        lin_audio_warn(a, 1, "%s is damaged; %.3f s of it were read; ffmpeg says: %s", a->name,
                       (double)(a->position + *n - a->part_begin) / a->info.rate_hz, trouble);
    return LIN_OK;
}

/* ---- one part -------------------------------------------------------------------------------------------------------------- */

// libsndfile first, then ffmpeg.
static lin_status open_part(lin_audio *a, lin_sniffed kind, const char *what, lin_error *err)
{
    lin_error why = {0}, reason = {0}; // why ffmpeg failed, and why libsndfile did
    if (kind != LIN_SNIFF_MEDIA) {
        lin_status status = open_sndfile(a, &reason);
        if (status == LIN_OK) return status;
        if (status != LIN_MISMATCH) return lin_fail_as(err, &reason);
    }
    lin_status status = open_ffmpeg(a, &why);
    const int is_missing = status == LIN_UNSUPPORTED && !a->ffmpeg;
    if (is_missing && kind == LIN_SNIFF_MEDIA)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "%s is %s, which needs the program ffmpeg: install it (apt install ffmpeg), name it in LINNET_FFMPEG, or "
                        "convert the sound to WAV or FLAC (%s)",
                        a->name, what, why.message);
    if (is_missing) return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s", a->name, reason.message);
    if (status == LIN_INVALID) return lin_fail(err, status, "%s: %s", a->name, why.message);
    if (status == LIN_FORMAT && kind == LIN_SNIFF_MEDIA)
        return lin_fail(err, LIN_FORMAT, "%s cannot be read; ffmpeg says: %s", a->name, why.message);
    if (status == LIN_FORMAT)
        return lin_fail(err, LIN_FORMAT, "%s is not an audio file that can be read: %s; ffmpeg says: %s", a->name, reason.message,
                        why.message);
    return status == LIN_OK ? LIN_OK : lin_fail_as(err, &why);
}

// At the end of a part: compares its length with that of its header. Lengths of lossy formats are not exact.
static void compare_lengths(lin_audio *a, int64_t total)
{
    const double rate_hz = a->info.rate_hz, seconds = (double)total / rate_hz;
    const int64_t present = a->part_end - a->samples.at, slack = a->samples.frames >= 0 ? 0 : a->info.rate_hz / 10;
    int64_t first, bytes;
    const int is_guess = a->is_mpeg && !lin_sniff_mpeg_length(&a->whole, a->part, &first, &bytes); // from the file's size
    double promised = (double)a->declared / rate_hz;
    if (a->samples.bytes > present) promised = seconds * (double)a->samples.bytes / (double)(present > 0 ? present : 1);
    if (a->samples.bytes > present || (a->declared > total + slack && !is_guess))
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s; its header gives %.3f s", a->name, seconds, promised);
    else if (a->sndfile && a->is_cut)
        lin_audio_warn(a, 1, "%s is truncated: it ends after %.3f s, within an Ogg page", a->name, seconds);
    else if (a->declared >= 0 && total > a->declared + a->info.rate_hz / 10)
        lin_audio_warn(a, 0, "the header of %s gives %.3f s; all %.3f s of it are read", a->name, promised, seconds);
    // Bytes after the sound count if they would last over a tenth of a second.
    if (a->sndfile && a->offset >= part_size(a)) a->rest = 0; // read all the same
    if (a->rest > 0 && seconds * (double)a->rest / (double)(a->samples.bytes + 1) > 0.1)
        lin_audio_warn(a, 1, "%s continues after its sound of %.3f s: %lld bytes beyond its header's length are not read",
                       a->name, (double)(a->part_begin + total) / rate_hz, (long long)a->rest);
    if (a->has_gap) lin_audio_warn(a, 1, "%s is damaged: pages of Ogg are missing or damaged in it", a->name);
}

lin_status lin_audio_read_file(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    const lin_status status = a->sndfile ? read_sndfile(a, frames, capacity, n, err) : read_ffmpeg(a, frames, capacity, n, err);
    if (status == LIN_OK && a->end) compare_lengths(a, a->position + *n - a->part_begin);
    return status;
}

/* ---- all parts ------------------------------------------------------------------------------------------------------------- */

static int is_sound_file(const lin_audio *a, int64_t at)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    const size_t n = lin_sniff_read(&a->whole, b, sizeof b, at);
    const lin_sniffed kind = lin_sniff(b, n, &what);
    if (n > 3 && memcmp(b, "ID3", 3) == 0 && lin_sniff_skip_tags(&a->whole, at) == a->whole.size) return 0; // of the sound before
    return kind == LIN_SNIFF_SNDFILE || kind == LIN_SNIFF_MEDIA;
}

// Where the file after a tag begins: given the tag too, libsndfile drops the end of a WAV file, and finds FLAC twice.
static int64_t after_tag(const lin_audio *a, int64_t at)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    if (lin_sniff_read(&a->whole, b, 4, at) < 4 || memcmp(b, "ID3", 3) != 0) return at;
    const int64_t next = lin_sniff_skip_tags(&a->whole, at);
    const size_t n = lin_sniff_read(&a->whole, b, sizeof b, next);
    return n > 4 && lin_sniff(b, n, &what) == LIN_SNIFF_SNDFILE && !lin_sniff_mpeg_frame(b) ? next : at;
}

// Finds the end of the part that begins here, and what is after it: another part (a->next), or bytes that are not sound
// (a->rest).
static void begin_part(lin_audio *a, int64_t from)
{
    int faults;
    a->part = from = after_tag(a, from);
    a->part_begin = a->position;
    a->is_mpeg = 0;
    a->part_end = lin_sniff_end(&a->whole, from, &faults);
    a->is_cut = (faults & LIN_SNIFF_CUT) != 0;
    a->has_gap |= (faults & LIN_SNIFF_GAP) != 0;
    a->samples = lin_sniff_find_samples(&a->whole, from);
    a->declared = a->samples.frames;
    a->next = a->part_end;
    if (a->next < a->whole.size && !is_sound_file(a, a->next)) a->next = lin_sniff_skip_tags(&a->whole, a->part_end);
    if (a->next < a->whole.size && !is_sound_file(a, a->next)) a->next = a->whole.size;
    a->rest = 0;
    const int64_t end = a->samples.at + a->samples.bytes;
    if (a->samples.bytes < 0 || end >= a->part_end || lin_sniff_is_chunk(&a->whole, end)) return;
    const int64_t after = lin_sniff_skip_tags(&a->whole, end);
    if (after >= a->part_end) a->part_end = end; // libsndfile takes the tags behind Wave64 and VOC for sound
    else if (!lin_sniff_is_chunk(&a->whole, after)) a->rest = a->part_end - end;
}

lin_status lin_audio_open_file(lin_audio *a, int64_t from, lin_sniffed kind, const char *what, lin_error *err)
{
    begin_part(a, from);
    const lin_status status = open_part(a, kind, what, err);
    if (a->next < a->whole.size) a->info.frames = -1;
    return status;
}

int lin_audio_next_part(lin_audio *a)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    lin_error err = {0};
    const lin_audio_format before = a->info;
    if (a->live || a->next >= a->whole.size) return 0;
    if (a->sndfile) sf_close(a->sndfile);
    lin_ffmpeg_close(a->ffmpeg);
    a->sndfile = NULL;
    a->ffmpeg = NULL;
    const lin_sniffed kind = lin_sniff(b, lin_sniff_read(&a->whole, b, sizeof b, after_tag(a, a->next)), &what);
    lin_status status = lin_audio_open_file(a, a->next, kind, what, &err);
    if (status == LIN_OK && (a->info.rate_hz != before.rate_hz || a->info.channels != before.channels))
        status = lin_fail(&err, LIN_UNSUPPORTED, "it has %d Hz and %d channel%s, the sound before %d Hz and %d", a->info.rate_hz,
                          a->info.channels, a->info.channels == 1 ? "" : "s", before.rate_hz, before.channels);
    a->info.rate_hz = before.rate_hz;
    a->info.channels = before.channels;
    a->info.frames = -1;
    a->end = status != LIN_OK;
    if (status == LIN_OK) return 1;
    a->next = a->whole.size;
    lin_audio_warn(a, 1, "%s consists of several files; the one that begins after %.3f s is not read: %.160s", a->name,
                   (double)a->position / a->info.rate_hz, err.message);
    return 0;
}
