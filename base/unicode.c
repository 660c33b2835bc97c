// unicode.c - UTF-8, NFC of Latin, Greek and Cyrillic, invisible characters, UTF-16; see unicode.h.

#include "base/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"

enum { FIRST_MARK = 0x300, END_MARK = 0x370, MOST_MARKS = 30, PARTS = 4 };
static const utf8proc_option_t nfc = (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

/* ---- UTF-8 ----------------------------------------------------------------------------------------------------------------- */

size_t lin_utf8_decode(const char *text, size_t n, unsigned *code)
{
    utf8proc_int32_t c;
    const utf8proc_ssize_t step = n ? utf8proc_iterate((const utf8proc_uint8_t *)text, n < 4 ? (utf8proc_ssize_t)n : 4, &c) : 0;
    if (step <= 0) return 0;
    if (code) *code = (unsigned)c;
    return (size_t)step;
}

size_t lin_utf8_encode(unsigned code, char out[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)out);
}

size_t lin_utf8_count(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

size_t lin_utf8_prefix(const char *text, size_t n, const char *allowed)
{
    size_t i = 0;
    while (i < n) {
        unsigned code = (unsigned char)text[i];
        const size_t k = code < 0x80 ? 1 : lin_utf8_decode(text + i, n - i, &code);
        if (!k || (code >= 0x7F && code < 0xA0)) return i; // terminals obey U+0080-009F too
        if (code < 0x20 && (!code || !strchr(allowed, (int)code))) return i;
        i += k;
    }
    return n;
}

const char *lin_utf8_line(const char *text)
{
    const size_t n = strlen(text);
    return lin_utf8_prefix(text, n, "") == n ? text : "(text of several lines)";
}

/* ---- letters of any script ------------------------------------------------------------------------------------------------- */

int lin_unicode_is_letter(unsigned code)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return code >= 0x80 && category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
}

int lin_unicode_is_punctuation(unsigned code)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return code >= 0x80 && ((category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) ||
                            (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP));
}

unsigned lin_unicode_lower(unsigned code)
{
    const unsigned small = (unsigned)utf8proc_tolower((utf8proc_int32_t)code);
    return code == 0x130 || (code < 0x800 && small >= 0x800) ? code : small;
}

unsigned lin_unicode_title(unsigned code) { return (unsigned)utf8proc_totitle((utf8proc_int32_t)code); }

size_t lin_unicode_lower_text(char *out, const char *text, size_t n)
{
    size_t used = 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code;
        step = 1;
        if ((unsigned char)text[at] < 0x80) {
            out[used++] = lin_lower(text[at]);
            continue;
        }
        step = lin_utf8_decode(text + at, n - at, &code);
        if (step) used += lin_utf8_encode(lin_unicode_lower(code), out + used);
        else out[used++] = text[at], step = 1;
    }
    return used;
}

static int is_mark(unsigned code) { return code >= FIRST_MARK && code < END_MARK; }

// The blocks of Latin, Greek and Cyrillic letters, and of the signs for ohm, kelvin and angstrom.
static int is_composable(unsigned code)
{
    return code < 0x530 || (code >= 0x1E00 && code < 0x2000) || (code >= 0x2120 && code < 0x2130);
}

static int decompose(unsigned code, utf8proc_int32_t parts[PARTS])
{
    int before = UTF8PROC_BOUNDCLASS_START;
    return (int)utf8proc_decompose_char((utf8proc_int32_t)code, parts, PARTS, nfc, &before);
}

static unsigned compose(utf8proc_int32_t *parts, int n)
{
    return utf8proc_normalize_utf32(parts, n, nfc) == 1 ? (unsigned)parts[0] : 0;
}

// Not one of the few that NFC replaces, such as the sign for ohm.
static int is_composed(unsigned code)
{
    utf8proc_int32_t parts[PARTS];
    return code < FIRST_MARK || !is_composable(code) || compose(parts, decompose(code, parts)) == code;
}

unsigned lin_unicode_split(unsigned code, unsigned *mark)
{
    utf8proc_int32_t parts[PARTS];
    const int n = is_composable(code) ? decompose(code, parts) : 0;
    if (n < 2 || !is_mark((unsigned)parts[n - 1]) || !is_composed(code)) return 0;
    *mark = (unsigned)parts[n - 1];
    return compose(parts, n - 1);
}

/* ---- composing ------------------------------------------------------------------------------------------------------------- */

// Soft hyphen, grapheme joiner, zero-width spaces and joiners, direction marks, byte order mark.
static int is_invisible(unsigned code)
{
    return code == 0xAD || code == 0x34F || code == 0x61C || code == 0x180E || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x2064) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF;
}

// A letter and the marks behind it. Of other scripts only the marks are put in order.
static void put_letter(lin_buffer *out, const char *text, size_t n, int n_marks)
{
    enum { MOST = PARTS * (1 + MOST_MARKS) };
    utf8proc_int32_t codes[MOST + 1];
    unsigned letter = 0;
    size_t as_it_is = lin_utf8_decode(text, n, &letter);
    if (is_composable(letter) && (n_marks || letter >= FIRST_MARK)) as_it_is = 0;
    lin_buffer_bytes(out, text, as_it_is);
    if (as_it_is == n) return;
    const utf8proc_uint8_t *rest = (const utf8proc_uint8_t *)text + as_it_is;
    const utf8proc_ssize_t n_codes = utf8proc_decompose(rest, (utf8proc_ssize_t)(n - as_it_is), codes, MOST, nfc);
    lin_buffer_bytes(out, (const char *)codes, (size_t)utf8proc_reencode(codes, n_codes, nfc));
}

// The letters of a ligature; NULL: it is none.
static const char *letters_of(unsigned code)
{
    static const char *const letters[] = {"ff", "fi", "fl", "ffi", "ffl"};
    return code >= 0xFB00 && code <= 0xFB04 ? letters[code - 0xFB00] : NULL;
}

static lin_status compose_text(const char *text, size_t n, lin_buffer *out, lin_error *err)
{
    char letter[4 * (1 + MOST_MARKS)];
    size_t n_letter = 0;
    int n_marks = 0;
    for (size_t at = 0, step; at < n; at += step) {
        unsigned code = 0;
        step = lin_utf8_decode(text + at, n - at, &code);
        if (is_invisible(code)) continue;
        const char *ligature = letters_of(code);
        if (ligature) { // its last letter may have a mark
            const size_t before = strlen(ligature) - 1;
            put_letter(out, letter, n_letter, n_marks);
            lin_buffer_bytes(out, ligature, before);
            letter[0] = ligature[before];
            n_letter = 1;
            n_marks = 0;
            continue;
        }
        if (n_letter && is_mark(code) && n_marks < MOST_MARKS) {
            n_marks++;
        } else {
            put_letter(out, letter, n_letter, n_marks);
            n_letter = 0;
            n_marks = 0;
        }
        memcpy(letter + n_letter, text + at, step);
        n_letter += step;
    }
    put_letter(out, letter, n_letter, n_marks);
    if (!out->n) lin_buffer_text(out, "");
    return lin_buffer_status(out, err);
}

/* ---- UTF-16 ---------------------------------------------------------------------------------------------------------------- */

static unsigned unit(const char *bytes, int big)
{
    const unsigned char a = (unsigned char)bytes[0], b = (unsigned char)bytes[1];
    return big ? (unsigned)a << 8 | b : (unsigned)b << 8 | a;
}

// A surrogate without its partner becomes U+FFFD.
static lin_status from_utf16(const char *bytes, size_t n, char **text, size_t *n_text, lin_error *err)
{
    const int big = (unsigned char)bytes[0] == 0xFE;
    char *out = lin_alloc(n / 2 * 3 + 1, 1);
    size_t used = 0;
    if (!out) return lin_no_memory(err, "a text in UTF-16", n / 2 * 3 + 1);
    for (size_t at = 2; at + 2 <= n; at += 2) {
        unsigned code = unit(bytes + at, big);
        if (code >= 0xD800 && code < 0xDC00 && at + 4 <= n) {
            const unsigned low = unit(bytes + at + 2, big);
            if (low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                at += 2;
            }
        }
        used += lin_utf8_encode(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, out + used);
    }
    out[used] = '\0';
    *text = out;
    *n_text = used;
    return LIN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

// The first byte that is not of UTF-8, or n; *changes: something has to be composed or dropped.
static size_t look(const char *text, size_t n, int *changes)
{
    unsigned code;
    *changes = 0;
    for (size_t at = 0, step; at < n; at += step) {
        step = 1;
        if ((unsigned char)text[at] < 0x80) continue;
        step = lin_utf8_decode(text + at, n - at, &code);
        if (!step) return at;
        *changes |= is_mark(code) || is_invisible(code) || !is_composed(code) || letters_of(code);
    }
    return n;
}

static lin_status refuse(const char *text, size_t n, size_t bad, const char *name, lin_error *err)
{
    int line = 1;
    for (size_t i = 0; i < bad; i++) line += text[i] == '\n';
    const int is_wide = n >= 2 && (!text[0] || !text[1]);
    return lin_fail(err, LIN_FORMAT, "%s:%d: byte 0x%02x is not UTF-8; convert the text, for example with iconv -f %s -t UTF-8",
                    name ? name : "the text", line, (unsigned char)text[bad], is_wide ? "UTF-16LE" : "WINDOWS-1252");
}

enum { HEAD = 64 }; // bytes among which any other kind of file has a NUL

lin_status lin_unicode_clean(const char *text, size_t n, const char *name, lin_unicode_rule rule, char **own, const char **clean,
                             size_t *n_clean, lin_error *err)
{
    int changes;
    *own = NULL;
    if (n >= 2 && ((unsigned char)text[0] ^ (unsigned char)text[1]) == 1 && ((unsigned char)text[0] | 1) == 0xFF) {
        LIN_TRY(from_utf16(text, n, own, &n, err));
        text = *own;
    }
    size_t bad = look(text, n, &changes);
    if (rule == LIN_UNICODE_ONLY && bad == n && n >= 2 && (!text[0] || !text[1])) bad = !text[0] ? 0 : 1; // UTF-16 of ASCII
    if (bad < n && rule == LIN_UNICODE_ONLY && *own) { // what was UTF-16 is UTF-8 now
        lin_free(*own);
        *own = NULL;
        return lin_fail(err, LIN_FORMAT, "%s: begins as UTF-16 and has a NUL character; convert the text, for example with "
                        "iconv -f UTF-32 -t UTF-8", name ? name : "the text");
    }
    if (bad < n && rule == LIN_UNICODE_ONLY) return refuse(text, n, bad, name, err);
    const char *nul = name && !*own ? memchr(text, 0, n < HEAD ? n : HEAD) : NULL;
    if (nul)
        return lin_fail(err, LIN_FORMAT, "%s is not a text (byte %td is 0); linnet info describes files of linnet", name,
                        nul - text + 1);
    if (bad == n && changes) {
        lin_buffer out = {0};
        const lin_status status = compose_text(text, n, &out, err);
        lin_free(*own);
        *own = status == LIN_OK ? out.data : NULL;
        if (status != LIN_OK) {
            lin_buffer_free(&out);
            return status;
        }
        text = out.data;
        n = out.n;
    }
    *clean = text;
    *n_clean = n;
    return LIN_OK;
}
