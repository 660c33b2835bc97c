// sniff.c - signatures, headers and ends of sound files; see sniff.h.

#include "frontend/sniff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unicode.h"

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

/* ---- signatures ------------------------------------------------------------------------------------------------------------ */

#define MAGIC(text) text, sizeof text - 1
#define IFF LIN_SNIFF_UNKNOWN, ""

// same: if above 0, readers of this kind stop at the end of the first of several joined files; all begin with the same bytes up
// to `same`, except for the four at `length`. has_lengths: the sound has a length in the file, so that tags and padding after it
// are not taken for sound.
typedef struct kind {
    int at; // of the magic. 8: the third word of an IFF file
    const char *magic;
    size_t n;
    lin_sniffed sniffed;
    const char *what;
    int same, length, has_lengths;
} kind;

static const kind kinds[] = {
    {0, MAGIC("RIFX"), IFF, 12, 4, 1},
    {0, MAGIC("RIFF"), IFF, 12, 4, 1},
    {0, MAGIC("RF64"), IFF, 12, 4, 1},
    {0, MAGIC("BW64"), IFF, 12, 4, 1},
    {0, MAGIC("FORM"), IFF, 12, 4, 1},
    {0, MAGIC("riff\x2e\x91\xcf\x11"), LIN_SNIFF_SNDFILE, "a Wave64 file", 16, -1, 1},
    {8, MAGIC("WAVE"), LIN_SNIFF_SNDFILE, "a WAV file", 0, -1, 0},
    {8, MAGIC("AIFF"), LIN_SNIFF_SNDFILE, "an AIFF file", 0, -1, 0},
    {8, MAGIC("AIFC"), LIN_SNIFF_SNDFILE, "an AIFF file", 0, -1, 0},
    {8, MAGIC("8SVX"), LIN_SNIFF_MEDIA, "an IFF file", 0, -1, 0},
    {8, MAGIC("AVI "), LIN_SNIFF_MEDIA, "an AVI file", 0, -1, 0},
    {0, MAGIC("caff\0\1"), LIN_SNIFF_SNDFILE, "a CAF file", 12, -1, 1},
    {0, MAGIC(".snd"), LIN_SNIFF_SNDFILE, "an AU file", 24, 8, 1},
    {0, MAGIC("dns."), LIN_SNIFF_SNDFILE, "an AU file", 0, -1, 0},
    {0, MAGIC("NIST_1A\n"), LIN_SNIFF_SNDFILE, "a NIST SPHERE file", 16, -1, 1},
    {0, MAGIC("Creative Voice File\x1a"), LIN_SNIFF_MEDIA, "a VOC file", 20, -1, 1},
    {0, MAGIC("fLaC"), LIN_SNIFF_SNDFILE, "a FLAC file", 8, -1, 0},
    {0, MAGIC("OggS"), LIN_SNIFF_SNDFILE, "an Ogg file", 0, -1, 0},
    {0, MAGIC("ID3"), LIN_SNIFF_SNDFILE, "an MP3 file", 0, -1, 0},
    {0, MAGIC("PVF1\n"), LIN_SNIFF_SNDFILE, "a PVF file", 0, -1, 0},
    {4, MAGIC("ftyp"), LIN_SNIFF_MEDIA, "an MPEG-4 file (m4a, mp4, mov)", 8, 0, 0},
    {4, MAGIC("moov"), LIN_SNIFF_MEDIA, "a QuickTime file", 0, -1, 0},
    {0, MAGIC("\x1a\x45\xdf\xa3"), LIN_SNIFF_MEDIA, "a Matroska file (webm, mkv)", 4, -1, 0},
    {0, MAGIC("\x30\x26\xb2\x75\x8e\x66\xcf\x11"), LIN_SNIFF_MEDIA, "a Windows Media file (wma, wmv)", 16, -1, 0},
    {0, MAGIC("FLV\1"), LIN_SNIFF_MEDIA, "a Flash video", 9, -1, 0},
    {0, MAGIC("\0\0\1\xba"), LIN_SNIFF_MEDIA, "an MPEG video", 0, -1, 0},
    {0, MAGIC("#!AMR"), LIN_SNIFF_MEDIA, "an AMR file", 6, -1, 0},
    {0, MAGIC(".RMF\0\0\0"), LIN_SNIFF_MEDIA, "a RealMedia file", 0, -1, 0},
    {0, MAGIC("MAC "), LIN_SNIFF_MEDIA, "a Monkey's Audio file", 0, -1, 0},
    {0, MAGIC("wvpk"), LIN_SNIFF_MEDIA, "a WavPack file", 0, -1, 0},
    {0, MAGIC("TTA1"), LIN_SNIFF_MEDIA, "a True Audio file", 12, -1, 0},
    {0, MAGIC("ajkg"), LIN_SNIFF_MEDIA, "a shorten file", 0, -1, 0}, // without a SPHERE header
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int has(const unsigned char *b, size_t n, const kind *k)
{
    return n >= (size_t)k->at + k->n && memcmp(b + k->at, k->magic, k->n) == 0;
}

static const kind *find_kind(const unsigned char *b, size_t n)
{
    for (const kind *k = kinds; k < kinds + KINDS; k++)
        if (k->same && n >= (size_t)k->same && has(b, n, k)) return k;
    return NULL;
}

/* ---- frames without a container -------------------------------------------------------------------------------------------- */

// The length in bytes of the MPEG audio frame that begins here, 0 if none does. ISO 11172-3, 2.4.1.3; 13818-3 for the half rates.
size_t lin_sniff_mpeg_frame(const unsigned char *b)
{
    static const short kbps[5][16] = {{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0}, // 1, layer I
                                      {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0},    // 1, II
                                      {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},     // 1, III
                                      {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0},    // 2, I
                                      {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}};        // 2, II and III
    static const int rates[3] = {44100, 48000, 32000};
    if (b[0] != 0xff || (b[1] & 0xe0) != 0xe0) return 0;
    const int version = b[1] >> 3 & 3, layer = 4 - (b[1] >> 1 & 3), rate = b[2] >> 2 & 3; // version 3: 1, 2: 2, 0: 2.5
    if (version == 1 || layer == 4 || rate == 3) return 0;
    const int table = version == 3 ? layer - 1 : layer == 1 ? 3 : 4, kb = kbps[table][b[2] >> 4];
    const int hz = rates[rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2), padding = b[2] >> 1 & 1;
    if (kb == 0) return 0;
    if (layer == 1) return (size_t)(12000 * kb / hz + padding) * 4;
    return (size_t)((layer == 3 && version != 3 ? 72000 : 144000) * kb / hz + padding);
}

// ISO 13818-7, 6.2.1.
static size_t adts_frame(const unsigned char *b)
{
    if (b[0] != 0xff || (b[1] & 0xf6) != 0xf0 || (b[2] >> 2 & 15) > 12) return 0;
    const size_t length = (size_t)(b[3] & 3) << 11 | (size_t)b[4] << 3 | b[5] >> 5;
    return length > 7 ? length : 0;
}

// Two headers with the same version, layer and rate.
static int two_frames(const unsigned char *b, size_t n, size_t (*frame)(const unsigned char *))
{
    const size_t length = n >= 7 ? frame(b) : 0;
    if (!length || length + 7 > n || !frame(b + length)) return 0;
    const unsigned char *next = b + length;
    return b[1] == next[1] && (b[2] & 0x0c) == (next[2] & 0x0c);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

// The last character may be cut off. U+0080 to U+009F occur in Windows texts that were badly converted.
static int is_text(const unsigned char *b, size_t n)
{
    size_t at = 0;
    for (size_t k; at < n; at += k) {
        k = lin_utf8_decode((const char *)b + at, n - at, NULL);
        if (!k || b[at] == 0x7f || (b[at] < ' ' && !memchr("\n\r\t\f", b[at], 4))) break;
    }
    if (at < n && n - at < 4 && b[at] >= 0xc2 && b[at] < 0xf5)
        for (at++; at < n && (b[at] & 0xc0) == 0x80;) at++;
    return n > 0 && at == n;
}

static lin_sniffed found(const char **what, const char *name, lin_sniffed sniffed)
{
    *what = name;
    return sniffed;
}

lin_sniffed lin_sniff(const unsigned char *b, size_t n, const char **what)
{
    *what = "";
    if (n > LIN_SNIFF_BYTES) n = LIN_SNIFF_BYTES;
    const kind *first = find_kind(b, n);
    const int is_iff = first && !*first->what;
    for (const kind *k = kinds; k < kinds + KINDS; k++) {
        if (!*k->what || (k->at == 8 && !is_iff) || !has(b, n, k)) continue;
        if (k->magic[0] != 'N' || !find(b, n, "embedded-shorten", 16)) return found(what, k->what, k->sniffed);
        return found(what, "a NIST SPHERE file compressed with shorten", LIN_SNIFF_MEDIA); // which libsndfile refuses
    }
    if (two_frames(b, n, lin_sniff_mpeg_frame)) return found(what, "an MP3 file", LIN_SNIFF_SNDFILE);
    if (two_frames(b, n, adts_frame)) return found(what, "an AAC file", LIN_SNIFF_MEDIA);
    if (n > 3 * 188 && b[0] == 0x47 && b[188] == 0x47 && b[2 * 188] == 0x47 && b[3 * 188] == 0x47)
        return found(what, "an MPEG transport stream", LIN_SNIFF_MEDIA);
    return is_text(b, n) ? found(what, "text", LIN_SNIFF_TEXT) : LIN_SNIFF_UNKNOWN;
}

int lin_sniff_is_noise(const unsigned char *b, size_t n)
{
    const size_t count = n / 2;
    double power = 0, product = 0, last = 0;
    if (count < 256) return 0;
    for (size_t i = 0; i < count; i++) {
        const int code = b[2 * i] | b[2 * i + 1] << 8;
        const double x = (code < 32768 ? code : code - 65536) / 32768.0;
        power += x * x;
        product += x * last;
        last = x;
    }
    return power / (double)count > 0.35 * 0.35 && fabs(product) < 0.25 * power;
}

/* ---- WAV ------------------------------------------------------------------------------------------------------------------- */

// Whether the length of samples in a header means: until the end of the file. 0 is not among these.
static int is_unknown(uint32_t length)
{
    // ffmpeg writes 2^32 - 1, sox 0x7ffff000 and 0x7f000008, arecord 2^31.
    return length >= 0xffffff00 || (length >= 0x7f000000 && length <= 0x80000100);
}

static uint64_t number(const unsigned char *b, int n, int big)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++) x = x << 8 | b[big ? i : n - 1 - i];
    return x;
}

static int plain_samples(const unsigned char *format, size_t n, lin_pcm_format *pcm)
{
    static const struct {
        uint32_t tag, bits;
        lin_pcm_encoding encoding;
    } known[] = {{1, 8, LIN_PCM_U8},     {1, 16, LIN_PCM_S16LE}, {1, 24, LIN_PCM_S24LE}, {1, 32, LIN_PCM_S32LE},
                 {3, 32, LIN_PCM_F32LE}, {6, 8, LIN_PCM_ALAW},   {7, 8, LIN_PCM_MULAW}};
    uint64_t tag = number(format, 2, 0);
    const uint64_t channels = number(format + 2, 2, 0), rate = number(format + 4, 4, 0), bits = number(format + 14, 2, 0);
    if (tag == 0xfffe && n >= 26) tag = number(format + 24, 2, 0); // WAVE_FORMAT_EXTENSIBLE: the first word of a GUID
    if (number(format + 12, 2, 0) != channels * bits / 8 || rate > INT32_MAX) return 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].tag != tag || known[i].bits != bits) continue;
        *pcm = (lin_pcm_format){.rate_hz = (int)rate, .channels = (int)channels, .encoding = known[i].encoding};
        return 1;
    }
    return 0;
}

int lin_wav_find(const unsigned char *b, size_t n, lin_wav *wav)
{
    int found = 0;
    if (n < 12) return 0;
    if ((memcmp(b, "RIFF", 4) != 0 && memcmp(b, "RF64", 4) != 0 && memcmp(b, "BW64", 4) != 0) || memcmp(b + 8, "WAVE", 4) != 0)
        return -1;
    uint64_t in_ds64 = 0;
    for (size_t at = 12;;) {
        if (n < at + 8) return 0;
        const uint32_t length = (uint32_t)number(b + at + 4, 4, 0);
        if (memcmp(b + at, "data", 4) == 0) {
            wav->at = at + 8;
            wav->bytes = length > 0 && !is_unknown(length) ? (int64_t)length : -1;
            if (length == 0xffffffff && in_ds64 > 0 && in_ds64 < INT64_MAX) wav->bytes = (int64_t)in_ds64;
            return found ? 1 : -1;
        }
        if (memcmp(b + at, "ds64", 4) == 0) { // EBU Tech 3306: the sizes of RIFF and of data
            if (length < 16) return -1;
            if (n < at + 24) return 0;
            in_ds64 = number(b + at + 16, 8, 0);
        }
        if (memcmp(b + at, "fmt ", 4) == 0) {
            if (length < 16) return -1;
            if (n < at + 8 + (length < 40 ? length : 40)) return 0;
            if (!plain_samples(b + at + 8, length, &wav->pcm)) return -1;
            found = 1;
        }
        if (length > 1u << 24) return -1;
        at += 8 + (size_t)length + (length & 1);
    }
}

/* ---- reading a file -------------------------------------------------------------------------------------------------------- */

typedef const lin_sniff_file file;

enum { BLOCK = 1 << 15, MOST_CHUNKS = 1 << 20, LOOK = 64 };

size_t lin_sniff_read(file *f, void *bytes, size_t n, int64_t offset)
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

// `at` plus a length from a header, which may be anything; at most the size.
static int64_t beyond(file *f, int64_t at, uint64_t length)
{
    return length < (uint64_t)(f->size - at) ? at + (int64_t)length : f->size;
}

/* ---- searching ------------------------------------------------------------------------------------------------------------- */

// Whether a file that begins with these n bytes, LOOK or those up to the end, is of the kind of another that begins like `a`.
static int is_same(const kind *k, const unsigned char *a, const unsigned char *b, size_t n)
{
    if (n < (size_t)k->same) return 0;
    if (k->at == 4 && number(b, 4, 1) > 4096) return 0; // the length of an MPEG-4 file's first box
    if (k->magic[0] == '\x1a' && !find(b, n, "webm", 4) && !find(b, n, "matroska", 8)) return 0;
    for (int i = 0; i < k->same; i++)
        if (a[i] != b[i] && (k->length < 0 || i < k->length || i >= k->length + 4)) return 0;
    return 1;
}

// The first place from `at` where `magic` stands, if `head` is not NULL as in a file of this kind that begins like it;
// else the size.
static int64_t search(file *f, int64_t at, const char *magic, const kind *k, const unsigned char *head)
{
    unsigned char b[BLOCK];
    const size_t length = strlen(magic), before = k ? (size_t)k->at : 0;
    while (at < f->size) {
        const size_t n = lin_sniff_read(f, b, sizeof b, at);
        const unsigned char *from = b + before, *found = NULL;
        while (n >= before + length && (found = find(from, n - (size_t)(from - b), magic, length)) != NULL) {
            const size_t begin = (size_t)(found - b) - before, left = n - begin;
            if (k && left < LOOK && n == sizeof b) break; // again, from there
            if (!k || is_same(k, head, b + begin, left < LOOK ? left : LOOK)) return at + (int64_t)begin;
            from = found + 1;
        }
        if (n < sizeof b) break;
        at += found ? found - before - b : (int64_t)(n - before - length + 1);
    }
    return f->size;
}

/* ---- Ogg ------------------------------------------------------------------------------------------------------------------- */

// A link begins with pages that are marked as the first of their streams (RFC 3533, 4). libsndfile reads only the first link, and
// ffmpeg decodes other samples.
static int64_t end_of_link(file *f, int64_t at, int *faults)
{
    unsigned char b[27 + 255];
    uint64_t serial = 0, sequence = 0, time = 0;
    int streams = 0, is_within = 0, was_cut = 0;
    for (int64_t last = at;;) {
        const size_t n = lin_sniff_read(f, b, sizeof b, at);
        const int is_page = n >= 4 && memcmp(b, "OggS", 4) == 0;
        if (n < 27 || !is_page) {
            // The page before may be cut off, and the next begin where it should have gone on.
            const int64_t found = search(f, last + 4, "OggS", NULL, NULL);
            if (found < f->size || (n >= 27 && lin_sniff_skip_tags(f, at) < f->size)) *faults |= LIN_SNIFF_GAP;
            if (is_page) *faults |= LIN_SNIFF_CUT;
            if (found == f->size) return f->size;
            at = last = found;
            was_cut = 1;
            continue;
        }
        last = at;
        const int is_first = (b[5] & 2) != 0;
        const uint64_t id = number(b + 14, 4, 0), page = number(b + 18, 4, 0);
        if (is_first && is_within && was_cut) *faults |= LIN_SNIFF_CUT;
        if (is_first && is_within) return at;
        was_cut = 0;
        if (is_first) {
            streams++;
            serial = id;
        } else {
            is_within = 1;
            // A recording of a radio stream begins with the headers, whose time is 0, and goes on with later pages.
            if (streams == 1 && id == serial && page != sequence + 1 && time) *faults |= LIN_SNIFF_GAP;
        }
        if (id == serial) sequence = page, time = number(b + 6, 8, 0);
        uint64_t length = 27 + (uint64_t)b[26];
        for (size_t i = 0; i < b[26] && 27 + i < n; i++) length += b[27 + i];
        if (length > (uint64_t)(f->size - at)) *faults |= LIN_SNIFF_CUT; // almost always so at the end of a truncated file
        at = beyond(f, at, length);
    }
}

/* ---- MPEG audio and tags --------------------------------------------------------------------------------------------------- */

static int64_t id3_length(const unsigned char *b)
{
    return 10 + ((b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127)) + (b[5] & 16 ? 10 : 0);
}

// The first frame may have the number of frames and of bytes (Xing, LAME, Fraunhofer).
int lin_sniff_mpeg_length(file *f, int64_t from, int64_t *at, int64_t *bytes)
{
    unsigned char b[64];
    *at = from;
    *bytes = 0;
    if (lin_sniff_read(f, b, 10, from) == 10 && memcmp(b, "ID3", 3) == 0) *at = beyond(f, from, (uint64_t)id3_length(b));
    const size_t n = lin_sniff_read(f, b, sizeof b, *at);
    if (n < sizeof b || !lin_sniff_mpeg_frame(b)) return 0;
    for (size_t i = 4; i + 18 <= n; i++) {
        if (memcmp(b + i, "VBRI", 4) == 0) *bytes = (int64_t)number(b + i + 10, 4, 1);
        else if (memcmp(b + i, "Xing", 4) != 0 && memcmp(b + i, "Info", 4) != 0) continue;
        else if (b[i + 7] & 2) *bytes = (int64_t)number(b + i + (b[i + 7] & 1 ? 12 : 8), 4, 1);
        return 1;
    }
    return 0;
}

static int begins_frame(file *f, int64_t at)
{
    unsigned char b[4];
    return lin_sniff_read(f, b, 4, at) == 4 && lin_sniff_mpeg_frame(b) > 0;
}

static int64_t end_of_mpeg(file *f, int64_t from)
{
    int64_t at, bytes;
    unsigned char b[3];
    if (!lin_sniff_mpeg_length(f, from, &at, &bytes) || !bytes) return f->size;
    const int64_t end = beyond(f, at, (uint64_t)bytes);
    const int is_end = end == f->size || lin_sniff_skip_tags(f, end) != end || begins_frame(f, end) ||
                       (lin_sniff_read(f, b, 3, end) == 3 && memcmp(b, "ID3", 3) == 0);
    return is_end ? end : f->size; // the length is wrong
}

int64_t lin_sniff_tag(const unsigned char *b, size_t n)
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

int64_t lin_sniff_skip_tags(file *f, int64_t at)
{
    unsigned char b[BLOCK];
    for (;;) {
        const size_t n = lin_sniff_read(f, b, sizeof b, at);
        const int64_t tag = lin_sniff_tag(b, n);
        if (n == 0) return f->size;
        if (tag) at = beyond(f, at, (uint64_t)tag);
        else if (n >= 11 && memcmp(b, "LYRICSBEGIN", 11) == 0) at = beyond(f, search(f, at, "LYRICS200", NULL, NULL), 9);
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
        const size_t n = lin_sniff_read(f, b, (size_t)(end - at), at);
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

int64_t lin_sniff_end(file *f, int64_t from, int *faults)
{
    unsigned char b[24] = {0};
    const size_t n = lin_sniff_read(f, b, sizeof b, from);
    *faults = 0;
    if (n < sizeof b) return f->size;
    if (memcmp(b, "OggS", 4) == 0) return end_of_link(f, from, faults);
    const kind *k = find_kind(b, n);
    const int64_t end = k ? search(f, from + 1, k->magic, k, b) : end_of_mpeg(f, from);
    return end < f->size || (k && k->has_lengths) ? end : before_tags(f, from);
}

/* ---- the samples that a header gives --------------------------------------------------------------------------------------- */

static int is_name(const unsigned char *b)
{
    for (int i = 0; i < 4; i++)
        if (b[i] < ' ' || b[i] > '~') return 0;
    return 1;
}

int lin_sniff_is_chunk(file *f, int64_t at)
{
    unsigned char b[24];
    const size_t n = lin_sniff_read(f, b, sizeof b, at);
    if (at >= f->size) return 1;
    const uint64_t left = (uint64_t)(f->size - at - 8);
    return n >= 8 && is_name(b) && !(n == sizeof b && find_kind(b, n)) &&
           (number(b + 4, 4, 0) <= left || number(b + 4, 4, 1) <= left);
}

// AIFF, RIFX, CAF, Wave64 and others: chunks with a name and a length.
static lin_sniff_samples in_chunks(file *f, int64_t from, const unsigned char *b)
{
    static const struct {
        int first, head, size_at, bytes, is_whole, align; // is_whole: the length includes the head
    } families[] = {{40, 24, 16, 8, 1, 8}, {8, 12, 4, 8, 0, 1}, {12, 8, 4, 4, 0, 2}};
    const int family = memcmp(b, "riff", 4) == 0 ? 0 : memcmp(b, "caff", 4) == 0 ? 1 : 2;
    const int head = families[family].head, bytes = families[family].bytes, align = families[family].align;
    const int big = family == 1 || b[0] == 'F' || memcmp(b, "RIFX", 4) == 0;
    unsigned char c[24];
    int64_t at = from + families[family].first;
    for (int n = 0; n < MOST_CHUNKS && lin_sniff_read(f, c, (size_t)head, at) == (size_t)head && is_name(c); n++) {
        uint64_t length = number(c + families[family].size_at, bytes, big);
        const int is_sound = memcmp(c, "data", 4) == 0 || memcmp(c, "SSND", 4) == 0 || memcmp(c, "BODY", 4) == 0;
        if (is_sound && (length == 0 || length >= INT64_MAX / 2 || (bytes == 4 && is_unknown((uint32_t)length)))) break;
        if (families[family].is_whole) length = length > (uint64_t)head ? length - (uint64_t)head : 0;
        if (is_sound) return (lin_sniff_samples){at + head, (int64_t)length, -1};
        const int64_t next = beyond(f, at + head, length);
        at = from + (next - from + align - 1) / align * align;
    }
    return (lin_sniff_samples){0, -1, -1};
}

// A number of the text that is a SPHERE header; -1: it has none.
static int64_t sphere_number(const char *header, const char *name)
{
    const char *at = strstr(header, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

static lin_sniff_samples in_sphere(file *f, int64_t from)
{
    char text[4096 + 1];
    text[lin_sniff_read(f, text, sizeof text - 1, from)] = 0;
    int64_t frames = sphere_number(text, "\nsample_count -i ");
    const int64_t width = sphere_number(text, "\nsample_n_bytes -i ");
    const int64_t channels = sphere_number(text, "\nchannel_count -i ");
    const long head = strtol(text + 8, NULL, 10);
    if (head < 0 || head > f->size) return (lin_sniff_samples){0, -1, -1};
    const int64_t at = from + head;
    const int is_plain = !strstr(text, "shorten") && width > 0 && width <= 4 && channels <= 64;
    if (frames < 0 || frames > INT64_C(1) << 48 || at > f->size) return (lin_sniff_samples){0, -1, -1};
    // The first Switchboard releases count the samples of both channels.
    if (is_plain && channels > 1 && at + frames * width == f->size) frames /= channels;
    return (lin_sniff_samples){at, is_plain ? frames * width * (channels > 0 ? channels : 1) : -1, frames};
}

// Blocks of kinds 1 to 9 with a length, up to one of kind 0; sox gives its block 8 bytes too few.
static lin_sniff_samples in_voc(file *f, int64_t from)
{
    unsigned char b[22], c[4];
    if (lin_sniff_read(f, b, 22, from) != 22) return (lin_sniff_samples){0, -1, -1};
    const int64_t first = beyond(f, from, number(b + 20, 2, 0));
    uint64_t length = 0;
    for (int n = 0; n < MOST_CHUNKS && lin_sniff_read(f, c, 4, first + (int64_t)length) == 4 && c[0] > 0 && c[0] < 10; n++)
        length += 4 + number(c + 1, 3, 0);
    return (lin_sniff_samples){first, length > 0 ? (int64_t)length : -1, -1};
}

lin_sniff_samples lin_sniff_find_samples(file *f, int64_t from)
{
    unsigned char b[24] = {0};
    const size_t n = lin_sniff_read(f, b, sizeof b, from);
    const kind *k = n == sizeof b ? find_kind(b, n) : NULL;
    const uint32_t au = (uint32_t)number(b + 8, 4, 1);
    if (!k || !k->has_lengths) return (lin_sniff_samples){0, -1, -1};
    if (b[0] == 'N') return in_sphere(f, from);
    if (b[0] == 'C') return in_voc(f, from);
    if (b[0] != '.') return in_chunks(f, from, b);
    return (lin_sniff_samples){beyond(f, from, number(b + 4, 4, 1)), au && !is_unknown(au) ? (int64_t)au : -1, -1};
}
