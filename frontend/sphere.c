// sphere.c - the fields of a SPHERE header; see sphere.h.

#include "frontend/sphere.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "frontend/audio_internal.h"
#include "frontend/shorten.h"

enum { FIRST_LINES = 16 }; // "NIST_1A\n" and the length, right-aligned, with a newline

// What the header says, before its fields are checked against each other.
typedef struct fields {
    int64_t rate_hz, channels, frames, sample_bytes, checksum; // -1: not given
    char coding[128], order[32], interleaved[32];              // "": not given
} fields;

// A number without a sign, up to a blank or the end. Returns 0 if it is none.
static int parse_number(const char *text, int64_t *value)
{
    int digits = 0;
    *value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (++digits > 15) return 0;
        *value = 10 * *value + (*text - '0');
    }
    if (*text == '.') // -r: a real number; only a whole one makes sense here
        for (text++; *text == '0';) text++;
    return digits > 0 && (*text == 0 || *text == ' ');
}

static lin_status set_field(fields *f, const char *name, const char *value, lin_error *err)
{
    const struct {
        const char *name;
        int64_t *number;
        char *text;
        size_t capacity;
    } known[] = {{"sample_rate", &f->rate_hz, NULL, 0},
                 {"channel_count", &f->channels, NULL, 0},
                 {"sample_count", &f->frames, NULL, 0},
                 {"sample_n_bytes", &f->sample_bytes, NULL, 0},
                 {"sample_checksum", &f->checksum, NULL, 0},
                 {"sample_coding", NULL, f->coding, sizeof f->coding},
                 {"sample_byte_format", NULL, f->order, sizeof f->order},
                 {"channels_interleaved", NULL, f->interleaved, sizeof f->interleaved}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(name, known[i].name) != 0) continue;
        if (known[i].text) snprintf(known[i].text, known[i].capacity, "%s", value);
        else if (!parse_number(value, known[i].number))
            return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: %s is '%.40s', which is not a number", name, value);
    }
    return LIN_OK;
}

// One line: name, type, value. Comments begin with a semicolon.
static lin_status parse_line(fields *f, const unsigned char *begin, size_t n, int *is_end, lin_error *err)
{
    char line[256], name[64], type[16];
    int at = 0;
    while (n > 0 && (begin[n - 1] == '\r' || begin[n - 1] == ' ')) n--;
    if (n >= sizeof line) n = sizeof line - 1;
    memcpy(line, begin, n);
    line[n] = 0;
    *is_end = strcasecmp(line, "end_head") == 0;
    if (*is_end || line[0] == ';' || sscanf(line, "%63s %15s %n", name, type, &at) < 2 || type[0] != '-' || at == 0)
        return LIN_OK;
    return set_field(f, name, line + at, err);
}

static lin_status parse_fields(fields *f, const unsigned char *bytes, size_t n, lin_error *err)
{
    *f = (fields){-1, -1, -1, -1, -1, "", "", ""};
    for (size_t at = FIRST_LINES; at < n;) {
        const unsigned char *newline = memchr(bytes + at, '\n', n - at);
        if (!newline) break;
        int is_end;
        const size_t length = (size_t)(newline - bytes) - at;
        const lin_status status = parse_line(f, bytes + at, length, &is_end, err);
        if (status != LIN_OK || is_end) return status;
        at += length + 1;
    }
    return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: it has no line end_head in its %zu bytes", n);
}

// "pcm", "ulaw,embedded-shorten-v2.00", ... in any case.
static lin_status set_coding(lin_sphere *s, const fields *f, lin_error *err)
{
    static const struct {
        const char *name;
        lin_sphere_coding coding;
        int bytes; // 0: any
    } known[] = {{"pcm", LIN_SPHERE_PCM, 0},      {"pcm-2", LIN_SPHERE_PCM, 2},   {"ulaw", LIN_SPHERE_MULAW, 1},
                 {"mu-law", LIN_SPHERE_MULAW, 1}, {"mulaw", LIN_SPHERE_MULAW, 1}, {"u-law", LIN_SPHERE_MULAW, 1},
                 {"alaw", LIN_SPHERE_ALAW, 1},    {"a-law", LIN_SPHERE_ALAW, 1}};
    static const char packed[] = "embedded-shorten-v";
    char name[sizeof f->coding];
    snprintf(name, sizeof name, "%s", f->coding[0] ? f->coding : f->sample_bytes == 1 ? "ulaw" : "pcm");
    char *packing = strchr(name, ',');
    if (packing) *packing++ = 0;
    if (packing && strncasecmp(packing, packed, sizeof packed - 1) != 0)
        return lin_fail(err, LIN_UNSUPPORTED, "its samples are compressed as '%s'; only shorten can be read", packing);
    s->shorten = packing != NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(name, known[i].name) != 0) continue;
        const int64_t bytes = f->sample_bytes > 0 ? f->sample_bytes : known[i].bytes ? known[i].bytes : 2;
        s->coding = known[i].coding;
        s->sample_bytes = (int)(bytes > 4 ? 5 : bytes);
        const int64_t packed_bytes = s->coding == LIN_SPHERE_PCM ? 2 : s->coding == LIN_SPHERE_MULAW ? 1 : -1;
        const int64_t wanted = s->shorten ? packed_bytes : known[i].bytes ? known[i].bytes : bytes;
        if (bytes == wanted && bytes <= 4) return LIN_OK;
        return lin_fail(err, LIN_UNSUPPORTED, "its samples are %s of %lld bytes%s, which cannot be read", name, (long long)bytes,
                        s->shorten ? ", compressed with shorten" : "");
    }
    return lin_fail(err, LIN_UNSUPPORTED, "the coding of its samples is '%s'; pcm, ulaw and alaw can be read", name);
}

// "01", "012", "0123": the low byte first; "10", "210", "3210": the high byte first. libsndfile writes two digits for all widths.
static lin_status set_order(lin_sphere *s, const fields *f, lin_error *err)
{
    static const char *const little[] = {"", "", "01", "012", "0123"}, *const big[] = {"", "", "10", "210", "3210"};
    s->big_endian = 0;
    if (s->sample_bytes == 1 || s->shorten) return LIN_OK;
    if (strcmp(f->order, "01") == 0 || strcmp(f->order, little[s->sample_bytes]) == 0) return LIN_OK;
    s->big_endian = 1;
    if (strcmp(f->order, "10") == 0 || strcmp(f->order, big[s->sample_bytes]) == 0) return LIN_OK;
    if (!f->order[0])
        return lin_fail(err, LIN_FORMAT, "its SPHERE header gives no sample_byte_format, the order of the bytes of a sample");
    return lin_fail(err, LIN_FORMAT, "its SPHERE header has the sample_byte_format '%s' for samples of %d bytes", f->order,
                    s->sample_bytes);
}

static lin_status check_fields(lin_sphere *s, const fields *f, lin_error *err)
{
    if (f->rate_hz < 0) return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: it gives no sample_rate");
    if (f->channels > 1 && f->interleaved[0] && strcasecmp(f->interleaved, "TRUE") != 0)
        return lin_fail(err, LIN_UNSUPPORTED, "its channels are not interleaved (channels_interleaved %s), which cannot be read",
                        f->interleaved);
    if (f->checksum > 65535)
        return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: a sample_checksum of %lld", (long long)f->checksum);
    s->rate_hz = f->rate_hz > INT32_MAX ? INT32_MAX : (int)f->rate_hz;
    s->channels = f->channels < 0 ? 1 : f->channels > INT32_MAX ? INT32_MAX : (int)f->channels;
    s->frames = f->frames;
    s->checksum = (int32_t)f->checksum;
    const lin_status status = set_coding(s, f, err);
    return status == LIN_OK ? set_order(s, f, err) : status;
}

lin_status lin_sphere_parse(const unsigned char *bytes, size_t n, lin_sphere *sphere, int *more, lin_error *err)
{
    char digits[9] = "";
    int64_t length = 0;
    const char *first = digits;
    *more = n < FIRST_LINES;
    *sphere = (lin_sphere){0};
    if (*more) return LIN_OK;
    memcpy(digits, bytes + 8, 7);
    while (*first == ' ') first++;
    if (memcmp(bytes, "NIST_1A\n", 8) != 0 || !parse_number(first, &length) || bytes[15] != '\n')
        return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: it does not begin with NIST_1A and its length");
    if (length < FIRST_LINES || length > LIN_SPHERE_HEADER_BYTES)
        return lin_fail(err, LIN_FORMAT, "its SPHERE header is damaged: a length of %lld bytes; %d to %d can be read",
                        (long long)length, (int)FIRST_LINES, (int)LIN_SPHERE_HEADER_BYTES);
    *more = n < (size_t)length;
    if (*more) return LIN_OK;
    sphere->header_bytes = (int)length;
    fields f;
    const lin_status status = parse_fields(&f, bytes, (size_t)length, err);
    return status == LIN_OK ? check_fields(sphere, &f, err) : status;
}

/* ---- a source of sound ----------------------------------------------------------------------------------------------------- */

// Files and pipes, see audio_internal.h: their samples, plain or compressed with shorten; their count and checksum are checked.

struct lin_audio_sphere {
    lin_sphere header;
    lin_shorten *shorten; // NULL: plain samples
    int64_t summed;       // frames in the sum, all from the beginning on
    uint32_t sum;
};

/* ---- the bytes of the compressed samples ----------------------------------------------------------------------------------- */

static lin_status read_bytes(void *context, unsigned char *bytes, int capacity, int *n, lin_error *err)
{
    lin_audio *a = context;
    int end = 0;
    lin_status status = a->held ? LIN_OK : lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
    *n = status != LIN_OK ? 0 : a->held < capacity ? a->held : capacity;
    memcpy(bytes, a->bytes + a->at, (size_t)*n);
    a->at += *n;
    a->held -= *n;
    return status;
}

static lin_status open_shorten(lin_audio *a, lin_error *err)
{
    lin_audio_sphere *s = a->sphere;
    lin_error why = {0};
    lin_status status = lin_shorten_open(read_bytes, a, &s->shorten, &why);
    if (status != LIN_OK && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
    if (status != LIN_OK) return lin_fail(err, status, "%s cannot be read: %s", a->name, why.message);
    const int channels = lin_shorten_channels(s->shorten), is_mulaw = lin_shorten_is_mulaw(s->shorten);
    if (channels != s->header.channels)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its compressed samples have %d channels, its header gives %d", a->name,
                        channels, s->header.channels);
    if (is_mulaw != (s->header.coding == LIN_SPHERE_MULAW))
        return lin_fail(err, LIN_FORMAT, "%s is damaged: its compressed samples are %s, which its header does not give", a->name,
                        is_mulaw ? "mu-law" : "16-bit");
    return LIN_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

// Reads the header; the bytes after it stay held.
static lin_status get_header(lin_audio *a, lin_sphere *header, lin_error *err)
{
    lin_error why = {0};
    int more, end = 0;
    lin_status status = lin_audio_make_room(a, err);
    while (status == LIN_OK) {
        status = lin_sphere_parse(a->bytes + a->at, (size_t)a->held, header, &more, &why);
        if (status != LIN_OK) return lin_fail(err, status, "%s cannot be read: %s", a->name, why.message);
        if (!more) break;
        status = lin_audio_gather(a, LIN_AUDIO_RAW_BYTES, &end, err);
        if (status == LIN_OK && end && lin_audio_is_stopped()) return lin_fail(err, LIN_STOPPED, "%s: interrupted", a->name);
        if (status == LIN_OK && end)
            return lin_fail(err, LIN_FORMAT, "%s is truncated: it ends within its SPHERE header", a->name);
    }
    if (status != LIN_OK) return status;
    a->at += header->header_bytes;
    a->held -= header->header_bytes;
    return LIN_OK;
}

// How many frames the header gives, or else the file, if its samples are plain.
static void count_frames(lin_audio *a, lin_sphere *h)
{
    const int64_t bytes = a->live || h->shorten ? -1 : a->size - h->header_bytes;
    // The first Switchboard releases count the samples of both channels.
    if (bytes > 0 && h->channels > 1 && h->frames > 0 && h->frames <= bytes && h->frames * h->sample_bytes == bytes)
        h->frames /= h->channels;
    a->left = h->frames >= 0 && h->frames < INT64_MAX / a->frame_bytes ? h->frames * a->frame_bytes : -1;
    a->info.frames = a->left >= 0 ? h->frames : bytes >= 0 ? bytes / a->frame_bytes : -1;
}

lin_status lin_audio_open_sphere(lin_audio *a, int *is, lin_error *err)
{
    static const lin_pcm_encoding linear[] = {0, 0, LIN_PCM_S16LE, LIN_PCM_S24LE, LIN_PCM_S32LE};
    static const char *const names[] = {"", "mu-law", "A-law"}, *const widths[] = {"", "", "16 bit", "24 bit", "32 bit"};
    lin_sphere h;
    *is = 1;
    lin_status status = get_header(a, &h, err);
    if (status == LIN_OK) status = lin_audio_check_format(a->name, h.rate_hz, h.channels, err);
    if (status != LIN_OK) return status;
    if (h.sample_bytes == 1 && h.coding == LIN_SPHERE_PCM) {
        *is = 0;
        a->at -= h.header_bytes;
        a->held += h.header_bytes;
        return LIN_OK;
    }
    if (h.frames == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    a->sphere = lin_calloc(1, sizeof *a->sphere);
    if (!a->sphere) return lin_no_memory(err, a->name, sizeof *a->sphere);
    const lin_pcm_format format = {.rate_hz = h.rate_hz,
                                   .channels = h.channels,
                                   .encoding = h.coding == LIN_SPHERE_MULAW  ? LIN_PCM_MULAW
                                               : h.coding == LIN_SPHERE_ALAW ? LIN_PCM_ALAW
                                                                             : linear[h.sample_bytes]};
    status = lin_audio_open_raw(a, &format, err);
    if (status != LIN_OK) return status;
    count_frames(a, &h);
    a->sphere->header = h;
    snprintf(a->info.format, sizeof a->info.format, "SPHERE (NIST), %s%s",
             h.coding == LIN_SPHERE_PCM ? widths[h.sample_bytes] : names[h.coding], h.shorten ? ", shorten" : "");
    return h.shorten ? open_shorten(a, err) : LIN_OK;
}

/* ---- checks ---------------------------------------------------------------------------------------------------------------- */

// Fails if the frames of the whole file do not have the count and the sum of the header.
static lin_status check_whole(const lin_audio *a, int64_t total, lin_error *err)
{
    const lin_audio_sphere *s = a->sphere;
    const long long wanted = (long long)s->header.frames, is = (long long)total;
    // The first Switchboard releases count the samples of both channels.
    const int is_doubled = total <= wanted / a->info.channels && total * a->info.channels == wanted;
    if (wanted >= 0 && is < wanted && !is_doubled)
        return lin_fail(err, LIN_FORMAT, "%s is truncated: it has %lld samples, its header gives %lld", a->name, is, wanted);
    if (wanted >= 0 && is > wanted)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: it has %lld samples or more, its header gives %lld", a->name, is,
                        wanted);
    if (s->header.checksum >= 0 && s->summed == total && (s->sum & 0xffff) != (uint32_t)s->header.checksum)
        return lin_fail(err, LIN_FORMAT, "%s is damaged: the checksum of its samples is %u, its header gives %d", a->name,
                        (unsigned)(s->sum & 0xffff), (int)s->header.checksum);
    return LIN_OK;
}

/* ---- plain samples --------------------------------------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *b, size_t n_samples, int width)
{
    for (size_t i = 0; i < n_samples; i++, b += width) {
        for (int k = 0; k < width / 2; k++) {
            const unsigned char first = b[k];
            b[k] = b[width - 1 - k];
            b[width - 1 - k] = first;
        }
    }
}

void lin_audio_sphere_frames(lin_audio *a, int64_t position, unsigned char *bytes, int n_frames)
{
    lin_audio_sphere *s = a->sphere;
    const size_t n = (size_t)n_frames * (size_t)a->info.channels;
    if (s->header.big_endian) swap_bytes(bytes, n, s->header.sample_bytes);
    if (s->summed != position) return; // after a seek
    if (s->header.sample_bytes == 1)
        for (size_t i = 0; i < n; i++) s->sum += bytes[i];
    else
        for (size_t i = 0; i < n; i++) {
            const unsigned char *b = bytes + i * (size_t)s->header.sample_bytes;
            s->sum += (uint32_t)b[1] << 8 | b[0];
        }
    s->summed += n_frames;
}

lin_status lin_audio_sphere_end(const lin_audio *a, int64_t total, lin_error *err)
{
    const lin_sphere *h = &a->sphere->header;
    if (lin_audio_is_stopped()) return LIN_OK;
    const int64_t present = a->live ? -1 : (a->size - h->header_bytes) / a->frame_bytes; // a pipe is read no further
    if (h->frames >= 0 && present > h->frames) return check_whole(a, present, err);
    return total <= h->frames || h->frames < 0 ? check_whole(a, total, err) : LIN_OK; // beyond the end after a seek
}

void lin_audio_sphere_seek(lin_audio *a, int64_t frame)
{
    if (a->left >= 0) a->left = frame <= a->sphere->header.frames ? (a->sphere->header.frames - frame) * a->frame_bytes : 0;
}

/* ---- compressed samples ---------------------------------------------------------------------------------------------------- */

int lin_audio_is_packed(const lin_audio *a) { return a->sphere && a->sphere->shorten; }

static lin_status failed(lin_audio *a, int64_t total, const lin_error *why, lin_error *err)
{
    a->end = 1;
    if (a->live && lin_audio_is_stopped()) return LIN_OK;
    if (why->status == LIN_IO) return lin_fail_as(err, why);
    return lin_fail(err, why->status, "%s cannot be read beyond %.3f s: %s", a->name, (double)total / a->info.rate_hz,
                    why->message);
}

lin_status lin_audio_read_packed(lin_audio *a, float *frames, int capacity, int *n, lin_error *err)
{
    enum { BLOCK = 2048 };
    lin_audio_sphere *s = a->sphere;
    const int channels = a->info.channels, most = BLOCK / channels;
    lin_error why = {0};
    int done = 0;
    while (done < capacity && !a->end) {
        int16_t block[BLOCK];
        int got;
        const int wanted = capacity - done < most ? capacity - done : most;
        if (lin_shorten_read(s->shorten, block, wanted, &got, &why) != LIN_OK) {
            if (done == 0) return failed(a, a->position, &why, err);
            break; // frames before the fault are given first; the next call then fails
        }
        if (got == 0 && done) break; // the next call checks the whole
        const int is_mulaw = lin_shorten_is_mulaw(s->shorten);
        for (int i = 0; i < got * channels; i++) {
            s->sum += (uint16_t)block[i];
            if (is_mulaw) {
                const unsigned char code = (unsigned char)block[i];
                lin_pcm_decode(LIN_PCM_MULAW, &code, 1, frames + done * channels + i);
            } else {
                frames[done * channels + i] = (float)block[i] * 0x1p-15f;
            }
        }
        done += got;
        s->summed += got;
        const int64_t total = a->position + done;
        if (got == 0) a->end = 1;
        if (got == 0 || (s->header.frames >= 0 && total > s->header.frames)) {
            const lin_status status = check_whole(a, total, err);
            if (status != LIN_OK) return status;
        }
        if (a->live && done) break;
    }
    *n = done;
    if (a->end && done == 0 && a->position == 0) return lin_fail(err, LIN_FORMAT, "%s contains no samples", a->name);
    return LIN_OK;
}

int lin_audio_has_packed(const lin_audio *a) { return lin_audio_is_packed(a) && lin_shorten_has_more(a->sphere->shorten); }

void lin_audio_close_sphere(lin_audio *a)
{
    if (a->sphere) lin_shorten_close(a->sphere->shorten);
    lin_free(a->sphere);
}
