// sphere.c - the fields of a SPHERE header; see sphere.h.

#include "frontend/sphere.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
