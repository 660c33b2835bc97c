// sniff.c - signatures of containers and codecs; see sniff.h.

#include "frontend/sniff.h"

#include <math.h>
#include <string.h>

#include "frontend/parts.h"

/* ---- signatures ------------------------------------------------------------------------------------------------------------ */

#define MAGIC(text) text, sizeof text - 1

static const struct {
    int at;
    const char *magic;
    size_t n;
    lin_sniffed kind;
    const char *what;
} signatures[] = {
    {8, MAGIC("WAVE"), LIN_SNIFF_SNDFILE, "a WAV file"}, // with RIFF, RIFX, RF64 or BW64 before it: see below
    {0, MAGIC("riff\x2e\x91\xcf\x11"), LIN_SNIFF_SNDFILE, "a Wave64 file"},
    {8, MAGIC("AIFF"), LIN_SNIFF_SNDFILE, "an AIFF file"},
    {8, MAGIC("AIFC"), LIN_SNIFF_SNDFILE, "an AIFF file"},
    {8, MAGIC("8SVX"), LIN_SNIFF_SNDFILE, "an IFF file"},
    {0, MAGIC("fLaC"), LIN_SNIFF_SNDFILE, "a FLAC file"},
    {0, MAGIC("OggS"), LIN_SNIFF_SNDFILE, "an Ogg file"},
    {0, MAGIC("ID3"), LIN_SNIFF_SNDFILE, "an MP3 file"},
    {0, MAGIC(".snd"), LIN_SNIFF_SNDFILE, "an AU file"},
    {0, MAGIC("dns."), LIN_SNIFF_SNDFILE, "an AU file"},
    {0, MAGIC("caff\0\1"), LIN_SNIFF_SNDFILE, "a CAF file"},
    {0, MAGIC("NIST_1A\n"), LIN_SNIFF_SNDFILE, "a NIST SPHERE file"},
    {0, MAGIC("Creative Voice File\x1a"), LIN_SNIFF_SNDFILE, "a VOC file"},
    {0, MAGIC("PVF1\n"), LIN_SNIFF_SNDFILE, "a PVF file"},
    {4, MAGIC("ftyp"), LIN_SNIFF_MEDIA, "an MPEG-4 file (m4a, mp4, mov)"},
    {4, MAGIC("moov"), LIN_SNIFF_MEDIA, "a QuickTime file"},
    {0, MAGIC("\x1a\x45\xdf\xa3"), LIN_SNIFF_MEDIA, "a Matroska file (webm, mkv)"},
    {0, MAGIC("\x30\x26\xb2\x75\x8e\x66\xcf\x11"), LIN_SNIFF_MEDIA, "a Windows Media file (wma, wmv)"},
    {0, MAGIC("FLV\1"), LIN_SNIFF_MEDIA, "a Flash video"},
    {8, MAGIC("AVI "), LIN_SNIFF_MEDIA, "an AVI file"},
    {0, MAGIC("\0\0\1\xba"), LIN_SNIFF_MEDIA, "an MPEG video"},
    {0, MAGIC("#!AMR"), LIN_SNIFF_MEDIA, "an AMR file"},
    {0, MAGIC(".RMF\0\0\0"), LIN_SNIFF_MEDIA, "a RealMedia file"},
    {0, MAGIC("MAC "), LIN_SNIFF_MEDIA, "a Monkey's Audio file"},
    {0, MAGIC("wvpk"), LIN_SNIFF_MEDIA, "a WavPack file"},
    {0, MAGIC("TTA1"), LIN_SNIFF_MEDIA, "a True Audio file"},
    {0, MAGIC("ajkg"), LIN_SNIFF_MEDIA, "a shorten file"}, // without a SPHERE header
    {0,
     MAGIC("\x7f"
           "ELF"),
     LIN_SNIFF_NO_SOUND, "a program"},
    {0, MAGIC("\x1f\x8b\x08"), LIN_SNIFF_NO_SOUND, "gzip'd data"},
    {0, MAGIC("BZh91AY"), LIN_SNIFF_NO_SOUND, "bzip2'd data"},
    {0,
     MAGIC("\xfd"
           "7zXZ\0"),
     LIN_SNIFF_NO_SOUND, "xz-compressed data"},
    {0, MAGIC("\x28\xb5\x2f\xfd"), LIN_SNIFF_NO_SOUND, "zstd-compressed data"},
    {0, MAGIC("7z\xbc\xaf\x27\x1c"), LIN_SNIFF_NO_SOUND, "a 7z archive"},
    {0, MAGIC("PK\3\4"), LIN_SNIFF_NO_SOUND, "a zip archive"},
    {0, MAGIC("Rar!\x1a\7"), LIN_SNIFF_NO_SOUND, "a rar archive"},
    {257, MAGIC("ustar"), LIN_SNIFF_NO_SOUND, "a tar archive"},
    {0, MAGIC("%PDF-"), LIN_SNIFF_NO_SOUND, "a PDF document"},
    {0, MAGIC("\x89PNG\r\n\x1a\n"), LIN_SNIFF_NO_SOUND, "a picture"},
    {0, MAGIC("\xff\xd8\xff\xe0"), LIN_SNIFF_NO_SOUND, "a picture"},
    {0, MAGIC("\xff\xd8\xff\xe1"), LIN_SNIFF_NO_SOUND, "a picture"},
    {0, MAGIC("\xd4\xc3\xb2\xa1"), LIN_SNIFF_NO_SOUND, "a capture of a network"}, // pcap, in microseconds
    {0, MAGIC("\xa1\xb2\xc3\xd4"), LIN_SNIFF_NO_SOUND, "a capture of a network"},
    {0, MAGIC("\x4d\x3c\xb2\xa1"), LIN_SNIFF_NO_SOUND, "a capture of a network"}, // in nanoseconds
    {0, MAGIC("\xa1\xb2\x3c\x4d"), LIN_SNIFF_NO_SOUND, "a capture of a network"},
    {0, MAGIC("\x0a\x0d\x0d\x0a"), LIN_SNIFF_NO_SOUND, "a capture of a network"}, // pcapng
    {0, MAGIC("GIF8"), LIN_SNIFF_NO_SOUND, "a picture"},
    {0, MAGIC("SQLite format 3"), LIN_SNIFF_NO_SOUND, "a database"},
    {0, MAGIC("\x93NUMPY"), LIN_SNIFF_NO_SOUND, "a NumPy matrix"},
    {0, MAGIC("LINNETDS"), LIN_SNIFF_NO_SOUND, "a feature cache"},
    {0, MAGIC("linngram"), LIN_SNIFF_NO_SOUND, "a language model"},
    // A playlist could make another program open the files that it names.
    {0, MAGIC("#EXTM3U"), LIN_SNIFF_NO_SOUND, "a playlist"},
    {0, MAGIC("ffconcat"), LIN_SNIFF_NO_SOUND, "a playlist"},
};

static int has(const unsigned char *b, size_t n, size_t at, const char *magic, size_t length)
{
    return n >= at + length && memcmp(b + at, magic, length) == 0;
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

// Bytes of the UTF-8 character that begins here: 0 if none does, n + 1 or more if it is cut off.
static size_t utf8_length(const unsigned char *b, size_t n)
{
    const size_t length = b[0] < 0x80                   ? 1
                          : b[0] >= 0xc2 && b[0] < 0xe0 ? 2
                          : b[0] >= 0xe0 && b[0] < 0xf0 ? 3
                          : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
                                                        : 0;
    for (size_t i = 1; i < length && i < n; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    return length;
}

static int is_text(const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t length = utf8_length(b + i, n - i);
        const int control = b[i] == 0x7f || (b[i] < ' ' && b[i] != '\n' && b[i] != '\r' && b[i] != '\t' && b[i] != '\f');
        if (!length || control) return 0;
        i += length;
    }
    return n > 0;
}

lin_sniffed lin_sniff(const unsigned char *b, size_t n, const char **what)
{
    *what = "";
    if (n > LIN_SNIFF_BYTES) n = LIN_SNIFF_BYTES;
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        if (!has(b, n, (size_t)signatures[i].at, signatures[i].magic, signatures[i].n)) continue;
        // The third word of an IFF file is a signature only after one of these first words.
        if (signatures[i].at == 8 && !has(b, n, 0, "RIFF", 4) && !has(b, n, 0, "RIFX", 4) && !has(b, n, 0, "RF64", 4) &&
            !has(b, n, 0, "BW64", 4) && !has(b, n, 0, "FORM", 4))
            continue;
        *what = signatures[i].what;
        return signatures[i].kind;
    }
    if (two_frames(b, n, lin_sniff_mpeg_frame)) {
        *what = "an MP3 file";
        return LIN_SNIFF_SNDFILE;
    }
    if (two_frames(b, n, adts_frame)) {
        *what = "an AAC file";
        return LIN_SNIFF_MEDIA;
    }
    if (n > 3 * 188 && b[0] == 0x47 && b[188] == 0x47 && b[2 * 188] == 0x47 && b[3 * 188] == 0x47) {
        *what = "an MPEG transport stream";
        return LIN_SNIFF_MEDIA;
    }
    if (!is_text(b, n)) return LIN_SNIFF_UNKNOWN;
    *what = "text";
    return LIN_SNIFF_NO_SOUND;
}

int lin_sniff_is_sphere(const unsigned char *b, size_t n) { return has(b, n, 0, "NIST_1A\n", 8); }

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

/* ---- headers --------------------------------------------------------------------------------------------------------------- */

static uint32_t u16(const unsigned char *b) { return (uint32_t)b[1] << 8 | b[0]; }

static uint32_t u32(const unsigned char *b) { return u16(b + 2) << 16 | u16(b); }

static uint32_t big32(const unsigned char *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }

// An 80-bit float of AIFF: exponent, then a mantissa, whose first 32 bits are enough here.
static int64_t extended(const unsigned char *b)
{
    const int exponent = ((b[0] & 0x7f) << 8 | b[1]) - 16383;
    return exponent < 0 ? 0 : exponent > 31 ? INT32_MAX : (int64_t)(big32(b + 2) >> (31 - exponent));
}

void lin_sniff_claims(const unsigned char *b, size_t n, int64_t *rate_hz, int64_t *channels)
{
    *rate_hz = *channels = 0;
    if (has(b, n, 0, "fLaC", 4) && n >= 22) {
        *rate_hz = (int64_t)(big32(b + 18) >> 12);
        *channels = (b[20] >> 1 & 7) + 1;
    } else if (has(b, n, 0, ".snd", 4) && n >= 24) {
        *rate_hz = big32(b + 16);
        *channels = big32(b + 20);
    } else if (has(b, n, 8, "WAVE", 4) || has(b, n, 8, "AIF", 3)) {
        const int is_big = b[0] == 'F' || has(b, n, 0, "RIFX", 4), is_wav = b[8] == 'W';
        for (size_t at = 12; at + 26 <= n;) {
            const uint32_t length = is_big ? big32(b + at + 4) : u32(b + at + 4);
            if (!is_wav && memcmp(b + at, "COMM", 4) == 0) {
                *channels = b[at + 8] << 8 | b[at + 9];
                *rate_hz = extended(b + at + 16);
                return;
            }
            if (is_wav && memcmp(b + at, "fmt ", 4) == 0) {
                *channels = is_big ? b[at + 10] << 8 | b[at + 11] : (int64_t)u16(b + at + 10);
                *rate_hz = is_big ? big32(b + at + 12) : u32(b + at + 12);
                return;
            }
            at += 8 + (size_t)length + (length & 1);
        }
    }
}

/* ---- WAV in a pipe --------------------------------------------------------------------------------------------------------- */

static int plain_samples(const unsigned char *format, size_t n, lin_pcm_format *pcm)
{
    static const struct {
        uint32_t tag, bits;
        lin_pcm_encoding encoding;
    } known[] = {{1, 8, LIN_PCM_U8},     {1, 16, LIN_PCM_S16LE}, {1, 24, LIN_PCM_S24LE}, {1, 32, LIN_PCM_S32LE},
                 {3, 32, LIN_PCM_F32LE}, {6, 8, LIN_PCM_ALAW},   {7, 8, LIN_PCM_MULAW}};
    uint32_t tag = u16(format), bits = u16(format + 14);
    const uint32_t channels = u16(format + 2), rate = u32(format + 4), block = u16(format + 12);
    if (tag == 0xfffe && n >= 26) tag = u16(format + 24); // WAVE_FORMAT_EXTENSIBLE: the first word of a GUID
    if (block != channels * bits / 8 || rate > INT32_MAX) return 0;
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
        const uint32_t length = u32(b + at + 4);
        if (memcmp(b + at, "data", 4) == 0) {
            wav->at = at + 8;
            wav->bytes = length > 0 && !lin_part_is_unknown(length) ? (int64_t)length : -1;
            if (length == 0xffffffff && in_ds64 > 0 && in_ds64 < INT64_MAX) wav->bytes = (int64_t)in_ds64;
            return found ? 1 : -1;
        }
        if (memcmp(b + at, "ds64", 4) == 0) { // EBU Tech 3306: the sizes of RIFF and of data
            if (length < 16) return -1;
            if (n < at + 24) return 0;
            in_ds64 = (uint64_t)u32(b + at + 20) << 32 | u32(b + at + 16);
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
