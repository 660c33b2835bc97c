// parts.c - the structure of sound files, as far as it says where they end; see parts.h.

#include "frontend/parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "frontend/sniff.h"

typedef const lin_part_file file;

enum { BLOCK = 1 << 15, MOST_CHUNKS = 1 << 20 };

size_t lin_part_read(file *f, void *bytes, size_t n, int64_t offset)
{
    size_t done = 0;
    if (offset < 0 || offset >= f->size) return 0;
    if ((int64_t)n > f->size - offset) n = (size_t)(f->size - offset);
    while (done < n) {
        const ssize_t got = pread(f->fd, (char *)bytes + done, n - done, (off_t)(f->base + offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

static uint64_t number(const unsigned char *b, int n, int big)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++) x = x << 8 | b[big ? i : n - 1 - i];
    return x;
}

// `at` plus a length from a header, which may be anything; at most the size.
static int64_t beyond(file *f, int64_t at, uint64_t length)
{
    return length < (uint64_t)(f->size - at) ? at + (int64_t)length : f->size;
}

int lin_part_is_unknown(uint32_t length)
{
    // ffmpeg writes 2^32 - 1, sox 0x7ffff000 and 0x7f000008, arecord 2^31.
    return length >= 0xffffff00 || (length >= 0x7f000000 && length <= 0x80000100);
}

/* ---- searching ------------------------------------------------------------------------------------------------------------- */

static const unsigned char *find(const unsigned char *b, size_t n, const char *magic, size_t length)
{
    for (const unsigned char *at = b; n >= length; at++) {
        const unsigned char *first = memchr(at, magic[0], n - length + 1);
        if (!first) return NULL;
        n -= (size_t)(first - at);
        at = first;
        if (memcmp(at, magic, length) == 0) return at;
        n--;
    }
    return NULL;
}

// The first place from `at` where `magic` stands, and `is` (NULL: always) agrees with the bytes there, 64 or fewer;
// else the size.
static int64_t search(file *f, int64_t at, const char *magic, size_t length, int (*is)(const unsigned char *, size_t))
{
    unsigned char b[BLOCK];
    while (at < f->size) {
        const size_t n = lin_part_read(f, b, sizeof b, at);
        const unsigned char *from = b, *found;
        while ((found = find(from, n - (size_t)(from - b), magic, length)) != NULL) {
            const size_t left = n - (size_t)(found - b);
            if (left < 64 && n == sizeof b) break; // again, from there
            if (!is || is(found, left < 64 ? left : 64)) return at + (found - b);
            from = found + 1;
        }
        if (n < sizeof b) break;
        at += found ? found - b : (int64_t)(n - length + 1);
    }
    return f->size;
}

/* ---- chunks: WAV, AIFF, CAF, Wave64, AVI ----------------------------------------------------------------------------------- */

typedef struct family {
    const char *magic;
    int first, head, size_at, bytes; // the first chunk; its header, and where in it the length is, in bytes
    int big, whole, align;           // big-endian; the length includes the header; chunks begin at multiples
} family;

static const family *find_family(const unsigned char *b)
{
    static const family known[] = {{"RIFF", 12, 8, 4, 4, 0, 0, 2}, {"RIFX", 12, 8, 4, 4, 1, 0, 2}, {"RF64", 12, 8, 4, 4, 0, 0, 2},
                                   {"BW64", 12, 8, 4, 4, 0, 0, 2}, {"FORM", 12, 8, 4, 4, 1, 0, 2}, {"caff", 8, 12, 4, 8, 1, 0, 1},
                                   {"riff", 40, 24, 16, 8, 0, 1, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memcmp(b, known[i].magic, 4) == 0) return &known[i];
    return NULL;
}

static int is_name(const unsigned char *b)
{
    for (int i = 0; i < 4; i++)
        if (b[i] < ' ' || b[i] > '~') return 0;
    return 1;
}

int lin_part_is_chunk(file *f, int64_t at)
{
    unsigned char b[8];
    if (at >= f->size) return 1;
    return lin_part_read(f, b, 8, at) == 8 && is_name(b) && !find_family(b) &&
           (number(b + 4, 4, 0) <= (uint64_t)(f->size - at - 8) || number(b + 4, 4, 1) <= (uint64_t)(f->size - at - 8));
}

// Bytes that are no chunk end the file if they follow the samples, or begin another one. After other chunks a writer erred.
static int64_t no_chunk(file *f, int64_t at, int is_after_sound)
{
    unsigned char b[LIN_SNIFF_BYTES];
    const char *what;
    const lin_sniffed kind = lin_sniff(b, lin_part_read(f, b, sizeof b, at), &what);
    return is_after_sound || kind == LIN_SNIFF_SNDFILE || kind == LIN_SNIFF_MEDIA ? at : f->size;
}

static int64_t end_of_chunks(file *f, int64_t from, const family *c, lin_part_facts *facts)
{
    unsigned char b[24], wide[16];
    int is_sound = 0; // the chunk before
    uint64_t in_ds64 = 0;
    int64_t at = from + c->first;
    for (int n = 0; n < MOST_CHUNKS; n++) {
        if (lin_part_read(f, b, (size_t)c->head, at) != (size_t)c->head) return f->size;
        if (find_family(b)) return n ? at : f->size;
        if (!is_name(b)) return n ? no_chunk(f, at, is_sound) : f->size;
        const int was_sound = is_sound;
        uint64_t length = number(b + c->size_at, c->bytes, c->big);
        if (memcmp(b, "ds64", 4) == 0 && lin_part_read(f, wide, 16, at + 8) == 16) in_ds64 = number(wide + 8, 8, 0);
        is_sound = memcmp(b, "data", 4) == 0 || memcmp(b, "SSND", 4) == 0;
        facts->has_second = is_sound && facts->promised > 0;
        if (facts->has_second) return at;
        if (length == 0xffffffff && in_ds64 && is_sound) length = in_ds64;
        else if (is_sound && c->bytes == 4 && lin_part_is_unknown((uint32_t)length)) return f->size;
        if (is_sound && c->bytes == 8 && length == UINT64_MAX) facts->unknown_at = at + c->size_at;
        if (c->whole) length = length > (uint64_t)c->head ? length - (uint64_t)c->head : 0;
        if (is_sound && length < INT64_MAX / 2) {
            facts->promised = (int64_t)length;
            facts->present = f->size - at - c->head;
            // No length: it was not known, unless another chunk or nothing follows.
            if (length == 0 && !lin_part_is_chunk(f, at + c->head)) return f->size;
        }
        const int64_t next = beyond(f, at + c->head, length);
        if (!is_sound && n && length > (uint64_t)(f->size - at - c->head)) return no_chunk(f, at, was_sound); // or cut off
        if (next >= f->size) return f->size;
        at = from + (next - from + c->align - 1) / c->align * c->align;
        // A writer that left out the byte of padding.
        if (at > next && lin_part_read(f, b, 4, next) == 4 && find_family(b)) return next;
    }
    return f->size;
}

// An AVI file of more than a gigabyte has several chunks RIFF, all but the first of the kind AVIX.
static int64_t end_of_avi(file *f, int64_t at)
{
    unsigned char b[12];
    for (int n = 0; lin_part_read(f, b, 12, at) == 12; n++) {
        if (memcmp(b, "RIFF", 4) != 0 || (n && memcmp(b + 8, "AVIX", 4) != 0)) return n ? at : f->size;
        const uint64_t length = number(b + 4, 4, 0);
        if (length == 0) break;
        at = beyond(f, at + 8, length + (length & 1));
    }
    return f->size;
}

// Blocks with a kind and 24 bits of length; one of kind 0 is the last, and has none.
static int64_t end_of_voc(file *f, int64_t from, lin_part_facts *facts)
{
    unsigned char b[22];
    if (lin_part_read(f, b, 22, from) != 22) return f->size;
    int64_t at = beyond(f, from, number(b + 20, 2, 0));
    for (int n = 0; n < MOST_CHUNKS && lin_part_read(f, b, 4, at) > 0; n++) {
        if (b[0] == 0) return at + 1;
        if (b[0] > 9) return n ? at : f->size;
        if (n == 0 && (b[0] == 1 || b[0] == 9)) { // 2 or 12 bytes of format before the samples
            facts->promised = (int64_t)number(b + 1, 3, 0) - (b[0] == 1 ? 2 : 12);
            facts->present = f->size - at - (b[0] == 1 ? 6 : 16);
        }
        at = beyond(f, at, 4 + number(b + 1, 3, 0));
    }
    return f->size;
}

/* ---- boxes and objects: MPEG-4, Windows Media ------------------------------------------------------------------------------ */

static int64_t end_of_boxes(file *f, int64_t at)
{
    unsigned char b[16];
    for (int n = 0; lin_part_read(f, b, 8, at) == 8; n++) {
        uint64_t length = number(b, 4, 1);
        if (!is_name(b + 4)) return n ? at : f->size;
        if (n && memcmp(b + 4, "ftyp", 4) == 0) return at;
        if (length == 1 && lin_part_read(f, b, 16, at) == 16) length = number(b + 8, 8, 1);
        if (length < 8) break; // 0: until the end
        at = beyond(f, at, length);
    }
    return f->size;
}

#define ASF_HEADER "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"

static int64_t end_of_asf(file *f, int64_t at)
{
    unsigned char b[24];
    for (int n = 0; lin_part_read(f, b, 24, at) == 24; n++) {
        if (n && memcmp(b, ASF_HEADER, 16) == 0) return at;
        const uint64_t length = number(b + 16, 8, 0);
        if (length < 24) break; // live: not known
        at = beyond(f, at, length);
    }
    return f->size;
}

/* ---- formats without lengths ----------------------------------------------------------------------------------------------- */

static int is_matroska(const unsigned char *b, size_t n)
{
    return find(b, n, "webm", 4) != NULL || find(b, n, "matroska", 8) != NULL;
}

static int is_flv(const unsigned char *b, size_t n) { return n >= 9 && (b[4] & 0xfa) == 0 && number(b + 5, 4, 1) == 9; }

static int is_tta(const unsigned char *b, size_t n) { return n >= 22 && b[4] >= 1 && b[4] <= 3 && b[5] == 0 && b[7] == 0; }

static const struct {
    const char *magic;
    size_t n;
    int (*is)(const unsigned char *, size_t);
} searched[] = {
    {"fLaC\0\0\0\x22", 8, NULL}, {"\x1a\x45\xdf\xa3", 4, is_matroska}, {"FLV\1", 4, is_flv}, {"TTA1", 4, is_tta},
    {"#!AMR\n", 6, NULL},        {"#!AMR-WB\n", 9, NULL},
};

/* ---- Ogg ------------------------------------------------------------------------------------------------------------------- */

// A link begins with pages that are marked as the first of their streams (RFC 3533, 4).
static int64_t end_of_link(file *f, int64_t at, int *has_gap)
{
    unsigned char b[27 + 255];
    uint64_t serial = 0, sequence = 0, time = 0;
    int streams = 0, is_within = 0;
    for (int64_t last = at;;) {
        const size_t n = lin_part_read(f, b, sizeof b, at);
        if (n < 27 || memcmp(b, "OggS", 4) != 0) {
            // The page before may be cut off, and the next begin where it should have gone on.
            const int64_t found = search(f, last + 4, "OggS", 4, NULL);
            *has_gap |= found < f->size || (n >= 27 && lin_part_next(f, at) < f->size);
            if (found == f->size) return f->size;
            at = last = found;
            continue;
        }
        last = at;
        const int is_first = (b[5] & 2) != 0;
        const uint64_t id = number(b + 14, 4, 0), page = number(b + 18, 4, 0);
        if (is_first && is_within) return at;
        if (is_first) {
            streams++;
            serial = id;
        } else {
            is_within = 1;
            // What is kept of a radio station begins with its headers, whose time is 0, and goes on with later pages.
            if (streams == 1 && id == serial && page != sequence + 1 && time) *has_gap = 1;
        }
        if (id == serial) sequence = page, time = number(b + 6, 8, 0);
        size_t body = 0;
        for (size_t i = 0; i < b[26] && 27 + i < n; i++) body += b[27 + i];
        at = beyond(f, at, 27 + (uint64_t)b[26] + body);
    }
}

/* ---- MPEG audio ------------------------------------------------------------------------------------------------------------ */

static int begins_frame(file *f, int64_t at, size_t *length)
{
    unsigned char b[4];
    *length = lin_part_read(f, b, 4, at) == 4 ? lin_sniff_mpeg_frame(b) : 0;
    return *length != 0;
}

static int64_t id3_length(const unsigned char *b)
{
    return 10 + ((b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127)) + (b[5] & 16 ? 10 : 0);
}

// The first frame may have the number of frames and of bytes that follow it (Xing, LAME, Fraunhofer).
static int64_t end_of_mpeg(file *f, int64_t from)
{
    unsigned char b[64];
    int64_t at = from;
    size_t n = lin_part_read(f, b, 10, at), length;
    if (n == 10 && memcmp(b, "ID3", 3) == 0)
        at = beyond(f, at, (uint64_t)id3_length(b));
    if (!begins_frame(f, at, &length)) return f->size;
    n = lin_part_read(f, b, sizeof b, at);
    uint64_t frames = 0, bytes = 0;
    for (size_t i = 4; i + 16 <= n; i++) {
        if (memcmp(b + i, "Xing", 4) == 0 || memcmp(b + i, "Info", 4) == 0) {
            const int has_frames = b[i + 7] & 1;
            if (has_frames) frames = number(b + i + 8, 4, 1);
            if (b[i + 7] & 2) bytes = number(b + i + (has_frames ? 12 : 8), 4, 1);
            break;
        }
        if (memcmp(b + i, "VBRI", 4) == 0 && i + 18 <= n) {
            bytes = number(b + i + 10, 4, 1);
            frames = number(b + i + 14, 4, 1);
            break;
        }
    }
    const int64_t end = bytes ? beyond(f, at, bytes) : f->size;
    if (bytes && (end == f->size || lin_part_next(f, end) != end || begins_frame(f, end, &length) ||
                  (lin_part_read(f, b, 3, end) == 3 && memcmp(b, "ID3", 3) == 0)))
        return end;
    if (!frames) return f->size;
    for (uint64_t i = 0; i <= frames; i++, at = beyond(f, at, length))
        if (!begins_frame(f, at, &length)) return f->size; // damaged: its readers find the next frame
    return at;
}

/* ---- all ------------------------------------------------------------------------------------------------------------------- */

int64_t lin_part_tag(const unsigned char *b, size_t n)
{
    size_t zeros = 0;
    while (zeros < n && b[zeros] == 0) zeros++;
    if (zeros) return (int64_t)zeros;
    if (n >= 128 && memcmp(b, "TAG", 3) == 0) return 128;
    if (n >= 10 && memcmp(b, "ID3", 3) == 0) return id3_length(b);
    if (n >= 32 && memcmp(b, "APETAGEX", 8) == 0)
        return (int64_t)number(b + 12, 4, 0) + ((b[23] & 0x20) || number(b + 12, 4, 0) == 0 ? 32 : 0);
    return 0;
}

int64_t lin_part_next(file *f, int64_t at)
{
    unsigned char b[BLOCK];
    for (;;) {
        const size_t n = lin_part_read(f, b, sizeof b, at);
        const int64_t tag = lin_part_tag(b, n);
        if (n == 0) return f->size;
        if (tag) at = beyond(f, at, (uint64_t)tag);
        else if (n >= 11 && memcmp(b, "LYRICSBEGIN", 11) == 0) at = beyond(f, search(f, at, "LYRICS200", 9, NULL), 9);
        else return at;
    }
}

// The end of a file without structure, before tags and padding. A frame of MPEG audio may have many zeros, but fewer than LONG.
static int64_t before_tags(file *f, int64_t from)
{
    enum { LONG = 2048 };
    unsigned char b[BLOCK];
    int64_t end = f->size;
    for (int64_t last = 0; end != last && end - from > 256;) {
        last = end;
        const int64_t at = end - BLOCK > from ? end - BLOCK : from;
        const size_t n = lin_part_read(f, b, (size_t)(end - at), at);
        size_t zeros = 0;
        while (zeros < n && b[n - 1 - zeros] == 0) zeros++;
        if (n < 160) return end;
        if (zeros >= LONG) end -= (int64_t)zeros;
        else if (memcmp(b + n - 128, "TAG", 3) == 0) end -= 128;
        else if (memcmp(b + n - 32, "APETAGEX", 8) == 0) {
            const int64_t length = (int64_t)number(b + n - 20, 4, 0) + (b[n - 9] & 0x80 ? 32 : 0);
            if (length < end - from) end -= length;
        }
    }
    return end;
}

// A file with a count of samples is searched for another one only if its frames have more, or (lin_part_after_flac) at its end.
static int has_flac_count(file *f, int64_t from, const unsigned char *b)
{
    const int64_t declared = (int64_t)(b[21] & 15) << 32 | (int64_t)number(b + 22, 4, 1);
    return memcmp(b, "fLaC", 4) == 0 && declared > 0 && lin_part_flac_samples(f, from, f->size) <= declared;
}

int64_t lin_part_after_flac(file *f, int64_t from) { return search(f, from, searched[0].magic, searched[0].n, NULL); }

static int64_t end_of_others(file *f, int64_t from, const unsigned char *b)
{
    int64_t end = f->size;
    if (has_flac_count(f, from, b)) return before_tags(f, from);
    for (size_t i = 0; i < sizeof searched / sizeof *searched; i++)
        if (memcmp(b, searched[i].magic, searched[i].n) == 0 || (i == 0 && memcmp(b, "fLaC", 4) == 0))
            end = search(f, from + 8, searched[i].magic, searched[i].n, searched[i].is);
    if (end == f->size) end = end_of_mpeg(f, from);
    return end < f->size ? end : before_tags(f, from);
}

static int64_t end_of_au(file *f, int64_t from, const unsigned char *b, lin_part_facts *facts)
{
    const int64_t at = beyond(f, from, number(b + 4, 4, 1));
    const uint32_t length = (uint32_t)number(b + 8, 4, 1);
    if (lin_part_is_unknown(length)) return f->size;
    facts->promised = length;
    facts->present = f->size - at;
    return length ? beyond(f, at, length) : f->size;
}

int64_t lin_part_end(file *f, int64_t from, lin_part_facts *facts)
{
    unsigned char b[64] = {0};
    const size_t n = lin_part_read(f, b, sizeof b, from);
    *facts = (lin_part_facts){.promised = -1};
    if (n < 24) return f->size;
    const family *c = find_family(b);
    if (c && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "AVI ", 4) == 0) return end_of_avi(f, from);
    if (c) return end_of_chunks(f, from, c, facts);
    if (memcmp(b, ".snd", 4) == 0) return end_of_au(f, from, b, facts);
    if (memcmp(b, "Creative Voice File\x1a", 20) == 0) return end_of_voc(f, from, facts);
    if (memcmp(b, "OggS", 4) == 0) return end_of_link(f, from, &facts->has_gap);
    if (memcmp(b + 4, "ftyp", 4) == 0 || memcmp(b + 4, "moov", 4) == 0) return end_of_boxes(f, from);
    if (memcmp(b, ASF_HEADER, 16) == 0) return end_of_asf(f, from);
    return end_of_others(f, from, b);
}

/* ---- FLAC ------------------------------------------------------------------------------------------------------------------ */

static unsigned crc8(const unsigned char *b, size_t n)
{
    unsigned crc = 0;
    for (size_t i = 0; i < n; i++) {
        crc ^= b[i];
        for (int k = 0; k < 8; k++) crc = (crc << 1 ^ (crc & 0x80 ? 0x07 : 0)) & 0xff;
    }
    return crc;
}

// The number of the first sample after the frame whose header this is, -1 if it is none (RFC 9639, 9.1). block: of a fixed size.
static int64_t flac_frame_end(const unsigned char *b, int64_t block)
{
    if (b[0] != 0xff || (b[1] & 0xfe) != 0xf8 || (b[2] >> 4) == 0 || (b[2] & 15) == 15 || (b[3] & 1) || b[3] >> 4 > 10) return -1;
    const int is_variable = b[1] & 1, code = b[2] >> 4, rate = b[2] & 15;
    int more = 0;
    while (more < 7 && b[4] & 0x80 >> more) more++; // as UTF-8, up to 7 bytes
    if (more == 1) return -1;
    int64_t n = more ? b[4] & (0x7f >> more) : b[4];
    size_t at = 5;
    for (int i = 1; i < more; i++, at++) {
        if ((b[at] & 0xc0) != 0x80) return -1;
        n = n << 6 | (b[at] & 0x3f);
    }
    int64_t size = code == 1 ? 192 : code < 6 ? 576 << (code - 2) : code < 8 ? 0 : 256 << (code - 8);
    if (code == 6) size = b[at++] + 1;
    else if (code == 7) size = (b[at] << 8 | b[at + 1]) + 1, at += 2;
    at += rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0;
    if (crc8(b, at) != b[at]) return -1;
    return is_variable ? n + size : n * block + size;
}

int64_t lin_part_flac_samples(file *f, int64_t from, int64_t end)
{
    unsigned char b[BLOCK + 24] = {0}, head[12];
    if (lin_part_read(f, head, 12, from) != 12) return -1;
    const int64_t block = (int64_t)number(head + 10, 2, 1);
    for (int64_t until = end; until > from; until -= BLOCK) {
        const int64_t at = until - BLOCK > from ? until - BLOCK : from;
        memset(b, 0, sizeof b);
        lin_part_read(f, b, (size_t)(end - at < (int64_t)sizeof b ? end - at : (int64_t)sizeof b), at);
        for (int64_t i = until - at - 1; i >= 0; i--) {
            const int64_t samples = flac_frame_end(b + i, block);
            if (samples > 0) return samples;
        }
        if (end - at >= 32 * (int64_t)BLOCK) break; // longer than any frame is in practice
    }
    return -1;
}
